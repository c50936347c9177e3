//! Writes a program as a TOML test, in the words of its dialect.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Flags, How, Lang, Loc, Order, Program, Scope, Stmt, Update, Val};

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Plain => "plain",
        Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::SeqCst => "seq_cst",
    }
}

fn scope_word(lang: Lang, scope: Scope) -> &'static str {
    match (lang, scope) {
        (Lang::Cuda, Scope::Group) => "block",
        (Lang::Cuda, Scope::All) => "system",
        (_, Scope::Group) => "work_group",
        (_, Scope::Device) => "device",
        (_, Scope::All) => "all_svm_devices",
    }
}

pub(super) fn flags_text(flags: Flags) -> &'static str {
    match (flags.global, flags.local) {
        (true, true) => "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE",
        (true, false) => "CLK_GLOBAL_MEM_FENCE",
        (false, true) => "CLK_LOCAL_MEM_FENCE",
        (false, false) => "0",
    }
}

pub(super) fn registers(body: &[Stmt], found: &mut BTreeSet<usize>) {
    for stmt in body {
        match stmt {
            Stmt::Load { dst, .. } | Stmt::Rmw { dst, .. } => {
                found.insert(*dst);
            }
            Stmt::Lanes { dst, value } => found.extend([*dst, *value]),
            Stmt::If { reg, body, .. } => {
                found.insert(*reg);
                registers(body, found);
            }
            Stmt::Store {
                value: Val::Reg(r), ..
            } => {
                found.insert(*r);
            }
            _ => {}
        }
    }
}

impl Program {
    /// The program as a TOML test.
    pub fn text(&self, name: &str) -> String {
        let mut observe = Vec::new();
        let mut threads = String::new();
        for t in &self.threads {
            let mut found = BTreeSet::new();
            registers(&t.body, &mut found);
            observe.extend(found.iter().map(|r| format!("\"{}:r{r}\"", t.name)));
            write!(threads, "\n[[thread]]\nname = \"{}\"\n", t.name).expect("strings grow");
            match self.lang {
                Lang::OpenCl => {
                    writeln!(threads, "device = {}\nwork_group = {}", t.device, t.group)
                }
                Lang::Cuda => writeln!(threads, "gpu = {}\nblock = {}", t.device, t.group),
                Lang::C => Ok(()),
            }
            .expect("strings grow");
            if let Some(warp) = t.warp {
                writeln!(threads, "warp = {warp}").expect("strings grow");
            }
            threads.push_str("code = '''\n");
            for r in found {
                writeln!(threads, "int r{r} = -1;").expect("strings grow");
            }
            self.body(&t.body, 0, &mut threads);
            threads.push_str("'''\n");
        }
        observe.extend(
            self.locations
                .iter()
                .filter(|l| !l.local)
                .map(|l| format!("\"{}\"", l.name)),
        );
        let dialect = match self.lang {
            Lang::OpenCl => "opencl",
            Lang::Cuda => "cuda",
            Lang::C => "c",
        };
        let memory: String = self.locations.iter().map(|l| self.location(l)).collect();
        let observe = observe.join(", ");
        let doc = format!("doc = \"Made from the shape {}.\"\n", self.shape);
        format!(
            "name = \"{name}\"\n{doc}dialect = \"{dialect}\"\nobserve = [{observe}]\n\n[memory]\n{memory}{threads}"
        )
    }

    fn location(&self, l: &Loc) -> String {
        let mut keys = Vec::new();
        if self.lang != Lang::Cuda {
            keys.push(format!(
                "type = \"{}\"",
                if l.atomic { "atomic_int" } else { "int" }
            ));
        }
        match (self.lang, l.local) {
            (Lang::OpenCl, true) => keys.push("space = \"local\"".into()),
            (Lang::Cuda, true) => keys.push("space = \"shared\"".into()),
            _ => {}
        }
        if l.fine && self.lang == Lang::OpenCl && !l.local {
            keys.push("svm = \"fine-atomic\"".into());
        }
        if keys.is_empty() {
            format!("{} = 0\n", l.name)
        } else {
            format!("{} = {{ {} }}\n", l.name, keys.join(", "))
        }
    }

    pub(super) fn body(&self, body: &[Stmt], depth: usize, out: &mut String) {
        let pad = "    ".repeat(depth);
        for stmt in body {
            if let Stmt::If { reg, value, body } = stmt {
                writeln!(out, "{pad}if (r{reg} == {value}) {{").expect("strings grow");
                self.body(body, depth + 1, out);
                writeln!(out, "{pad}}}").expect("strings grow");
            } else {
                writeln!(out, "{pad}{}", self.statement(stmt)).expect("strings grow");
            }
        }
    }

    fn statement(&self, stmt: &Stmt) -> String {
        let value = |v: &Val| match v {
            Val::Int(n) => n.to_string(),
            Val::Reg(r) => format!("r{r}"),
        };
        match stmt {
            Stmt::Load { dst, loc, how } if how.order == Order::Plain => {
                format!("r{dst} = {};", self.plain(*loc))
            }
            Stmt::Store { loc, value: v, how } if how.order == Order::Plain => {
                format!("{} = {};", self.plain(*loc), value(v))
            }
            Stmt::Load { dst, loc, how } => {
                format!("r{dst} = {};", self.call(*loc, "load", &[], *how))
            }
            Stmt::Store { loc, value: v, how } => {
                format!("{};", self.call(*loc, "store", &[value(v)], *how))
            }
            Stmt::Rmw {
                dst,
                loc,
                update,
                value,
                how,
            } => {
                let call = match update {
                    Update::Add => self.call(*loc, "fetch_add", &[value.to_string()], *how),
                    Update::Exchange => self.call(*loc, "exchange", &[value.to_string()], *how),
                    Update::Cas(expected, fail) => {
                        let e = format!("e{dst}");
                        let given = if self.lang == Lang::Cuda {
                            e.clone()
                        } else {
                            format!("&{e}")
                        };
                        let call = self.cas(*loc, &[given, value.to_string()], *how, *fail);
                        return format!("int {e} = {expected}; r{dst} = {call};");
                    }
                };
                format!("r{dst} = {call};")
            }
            Stmt::Fence { how, flags } => {
                let (order, scope) = (order_word(how.order), scope_word(self.lang, how.scope));
                match self.lang {
                    Lang::OpenCl => format!(
                        "atomic_work_item_fence({}, memory_order_{order}, memory_scope_{scope});",
                        flags_text(*flags)
                    ),
                    Lang::Cuda => {
                        format!(
                            "cuda::atomic_thread_fence(cuda::memory_order_{order}, cuda::thread_scope_{scope});"
                        )
                    }
                    Lang::C => format!("atomic_thread_fence(memory_order_{order});"),
                }
            }
            Stmt::Barrier { .. } if self.lang == Lang::Cuda => "__syncthreads();".into(),
            Stmt::Barrier { flags } => format!("work_group_barrier({});", flags_text(*flags)),
            Stmt::Lanes { dst, value } if self.lang == Lang::Cuda => {
                format!("r{dst} = __shfl_sync(0xffffffff, r{value}, 0);")
            }
            Stmt::Lanes { dst, value } => format!("r{dst} = sub_group_broadcast(r{value}, 0);"),
            Stmt::If { .. } => unreachable!("written by `body`"),
        }
    }

    fn plain(&self, loc: usize) -> String {
        let name = &self.locations[loc].name;
        if self.lang == Lang::Cuda {
            name.clone()
        } else {
            format!("*{name}")
        }
    }

    fn call(&self, loc: usize, function: &str, values: &[String], how: How) -> String {
        self.atomic(loc, function, values, &[how.order], how.scope)
    }

    fn cas(&self, loc: usize, values: &[String], how: How, fail: Order) -> String {
        self.atomic(
            loc,
            "compare_exchange_strong",
            values,
            &[how.order, fail],
            how.scope,
        )
    }

    fn atomic(
        &self,
        loc: usize,
        function: &str,
        values: &[String],
        orders: &[Order],
        scope: Scope,
    ) -> String {
        let name = &self.locations[loc].name;
        let scope = scope_word(self.lang, scope);
        let prefix = if self.lang == Lang::Cuda {
            "cuda::"
        } else {
            ""
        };
        let mut arguments: Vec<String> = values.to_vec();
        arguments.extend(
            orders
                .iter()
                .map(|o| format!("{prefix}memory_order_{}", order_word(*o))),
        );
        match self.lang {
            Lang::Cuda => {
                format!(
                    "cuda::atomic_ref<int, cuda::thread_scope_{scope}>({name}).{function}({})",
                    arguments.join(", ")
                )
            }
            Lang::OpenCl | Lang::C => {
                arguments.insert(0, name.clone());
                if self.lang == Lang::OpenCl {
                    arguments.push(format!("memory_scope_{scope}"));
                }
                format!("atomic_{function}_explicit({})", arguments.join(", "))
            }
        }
    }
}
