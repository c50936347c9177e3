//! Steps of a derivation in words.
//!
//! Names of a model are said as its text says them ([`cat::model::words`]), base relations as the signature does, with
//! what the program adds: which memory, whose scope, which groups. A name without words stands for itself.
//!
//! # Invariants
//! - Clauses have `{a}` and `{b}` where the two events belong; they say nothing that the step does not.

use std::collections::BTreeMap;

use super::derive::Step;
use cat::model::ir::{Kind, NodeId, NodeOp, Shape};
use cat::model::text;
use engine::execution::Execution;
use engine::skeleton::signature;
use engine::task::Task;
use engine::{fault, witness};
use program::{Dialect, Place, Scope};

/// Says the steps of one execution.
pub(super) struct Words<'a> {
    task: &'a Task<'a>,
    execution: &'a Execution,
    of_model: BTreeMap<String, String>,
}

impl<'a> Words<'a> {
    /// For one execution.
    pub(super) fn new(task: &'a Task<'a>, execution: &'a Execution) -> Words<'a> {
        Words { task, execution, of_model: cat::model::words::words(task.model) }
    }

    /// What the model calls a node; an expression if it has no name.
    pub(super) fn name(&self, node: NodeId) -> String {
        text::expression(self.task.model, node, false)
    }

    /// Whether the model's text has words for a node, by its name.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.task.model.node(node).name.as_ref().is_some_and(|name| self.of_model.contains_key(name))
    }

    /// A step as a clause.
    pub(super) fn clause(&self, step: &Step) -> String {
        let model = self.task.model;
        let node = model.node(step.node);
        let name = self.name(step.node);
        if let (false, Some(said)) = (step.holds, self.of_model.get(&format!("not {name}"))) {
            return said.clone();
        }
        if let Some(said) = self.of_model.get(&name) {
            // A pair of an event with itself: a pattern of one event.
            let alone = node.kind == Kind::Rel && step.from == step.to;
            let said = if alone { said.replace("{a} and {b} are", "{a} alone is") } else { said.clone() };
            return if step.holds { said } else { format!("it is not so that {said}") };
        }
        match &node.op {
            _ if node.name.is_some() => plain(&name, node.kind, step.holds),
            NodeOp::Base(base) if node.kind == Kind::Rel => self.base(base, step),
            NodeOp::Base(tag) => {
                let not = if step.holds { "" } else { "not " };
                format!("{{a}} is {not}{}", set_words(tag))
            }
            NodeOp::Free(free) => {
                let relation = &model.free[free.0 as usize];
                let place = witness::cell(self.task, self.execution, step.from)
                    .map_or("memory", |c| self.task.sk.memory.cell(c).name.as_str());
                let says = if *free == model.values {
                    ["{a} wrote the value that {b} reads".to_owned(), "{b} does not read from {a}".to_owned()]
                } else if *free == model.finals {
                    [
                        format!("{{a}} comes before {{b}} in the order of writes to `{place}`"),
                        format!("{{a}} does not come before {{b}} in the order of writes to `{place}`"),
                    ]
                } else {
                    debug_assert_eq!(relation.shape, Shape::Order);
                    let name = &relation.name;
                    [
                        format!("{{a}} comes before {{b}} in `{name}`"),
                        format!("{{a}} does not come before {{b}} in `{name}`"),
                    ]
                };
                let [yes, no] = says;
                if step.holds { yes } else { no }
            }
            NodeOp::Inverse(inner) if step.holds => {
                let turned = Step { node: *inner, from: step.to, to: step.from, ..step.clone() };
                swapped(&self.clause(&turned))
            }
            NodeOp::IdentityOn(set) => {
                let inner = Step { node: *set, ..step.clone() };
                self.clause(&inner)
            }
            _ => plain(&name, node.kind, step.holds),
        }
    }

    /// A base relation: what the signature says, and what the program adds to it.
    fn base(&self, name: &str, step: &Step) -> String {
        let clause =
            signature::clause(name, step.holds).map_or_else(|| plain(name, Kind::Rel, step.holds), str::to_owned);
        match self.detail(name, step) {
            Some(Detail::Instead(detail)) => detail,
            Some(Detail::More(detail)) => format!("{clause}: {detail}"),
            None => clause,
        }
    }

    fn detail(&self, name: &str, step: &Step) -> Option<Detail> {
        let sk = &self.task.sk;
        let (a, b) = (&sk.events[step.from], &sk.events[step.to]);
        match name {
            "loc" | "vloc" => {
                let place = |e| witness::cell(self.task, self.execution, e).map(|c| &sk.memory.cell(c).name);
                let (x, y) = (place(step.from)?, place(step.to)?);
                Some(match (step.holds, x == y) {
                    (true, true) => Detail::Instead(format!("both access `{x}`")),
                    (true, false) => Detail::Instead(format!("`{x}` and `{y}` are one memory")),
                    (false, _) if name == "vloc" => {
                        Detail::Instead(format!("`{x}` and `{y}` are different addresses"))
                    }
                    (false, _) => Detail::Instead(format!("`{x}` and `{y}` are different memory")),
                })
            }
            "sr" => {
                let (x, y) = (a.thread?, b.thread?);
                let (px, py) = (sk.program.thread(x), sk.program.thread(y));
                if step.holds {
                    let common = common_group(&px.place, &py.place, sk.program.dialect)?;
                    return Some(Detail::More(format!("{} and {} are {common}", px.name, py.name)));
                }
                for (event, which, from, to) in [(a, "{a}", px, py), (b, "{b}", py, px)] {
                    let Some(scope) = event.scope else {
                        return Some(Detail::Instead(format!("{which} has no scope")));
                    };
                    if !from.place.same(&to.place, scope) {
                        return Some(Detail::Instead(format!(
                            "the scope of {which}, `{}`, does not include {}{}",
                            fault::scope_word(self.task, scope),
                            to.name,
                            fault::elsewhere(&from.place, &to.place, scope, sk.program.dialect)
                        )));
                    }
                }
                None
            }
            _ => None,
        }
    }
}

/// What a program adds to a clause.
enum Detail {
    Instead(String),
    More(String),
}

/// A relation or a set by its name alone.
fn plain(name: &str, kind: Kind, holds: bool) -> String {
    let not = if holds { "" } else { "not " };
    match kind {
        Kind::Set => format!("{{a}} is {not}in `{name}`"),
        Kind::Rel => format!("{{a}} and {{b}} are {not}in `{name}`"),
    }
}

/// A clause with its events in each other's place.
fn swapped(clause: &str) -> String {
    clause.replace("{a}", "{c}").replace("{b}", "{a}").replace("{c}", "{b}")
}

/// What a base set is: `a write (W)`.
fn set_words(name: &str) -> String {
    let one = match name {
        "R" => "a read",
        "W" => "a write",
        "M" => "a memory access",
        "F" => "a fence",
        "IW" => "an initial write",
        _ => "",
    };
    match (one, signature::doc(name)) {
        ("", Some(doc)) => format!("`{name}` ({doc})"),
        ("", None) => format!("in `{name}`"),
        (one, _) => one.to_owned(),
    }
}

/// The narrowest group that holds two threads, after "are".
fn common_group(a: &Place, b: &Place, dialect: Dialect) -> Option<&'static str> {
    let opencl = dialect == Dialect::OpenCl;
    let cuda = dialect == Dialect::Cuda;
    let scopes = [Scope::Warp, Scope::Cta, Scope::Cluster, Scope::QueueFamily, Scope::Gpu, Scope::Sys];
    let has = |scope: &Scope| *scope != Scope::QueueFamily || dialect == Dialect::Vulkan;
    let scope = scopes.into_iter().filter(has).find(|&scope| a.same(b, scope))?;
    Some(match scope {
        Scope::Warp if opencl => "in one sub-group",
        Scope::Cta if opencl => "in one work-group",
        Scope::Gpu if opencl => "on one device",
        Scope::Cta if cuda => "in one block",
        Scope::Warp => "in one warp",
        Scope::Cta => "in one CTA",
        Scope::Cluster => "in one cluster",
        Scope::QueueFamily => "in one queue family",
        Scope::Gpu => "on one GPU",
        _ => "in one system",
    })
}
