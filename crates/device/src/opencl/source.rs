//! Writes a test as a kernel in OpenCL C.
//!
//! # Invariants
//! - A compare-exchange that may fail spuriously becomes one that does not, and a failing one gets
//!   the strongest order that it may have: the kernel shows no more than the test may.
//! - The kernel computes values like [`program::BinOp::apply`]: it leaves nothing undefined that
//!   the test defines.
//!
//! # Sources
//! - OpenCL C, *Atomic Functions*, *Synchronization Functions*.

use std::fmt::Write;

use crate::kernel::{
    KernelLanguage, KernelSpace, MAX_STEPS, OFTEN, RegisterStart, ResultValue, ThreadRegister,
    ThreadSelection, body, slots, unbuilt,
};
use crate::launch::{APART, FINISHED, KernelShape, LaunchObject, STRESSED};
use program::dialect::OPENCL_SCOPES;
use program::litmus::LitmusTest;
use program::strength;
use program::words::{FLAGS, Order};
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, Dialect, EventKind, Expr, LocationKind,
    MemoryKind, Op, Scope, Tag, Tags, ThreadId, Ty, Update,
};

/// A barrier of all work-items of a group.
const MEET: &str = "work_group_barrier(CLK_LOCAL_MEM_FENCE);";

/// The kernel of a test.
///
/// # Errors
/// If the language cannot express part of the test.
pub(crate) fn source(test: &LitmusTest, shape: &KernelShape) -> Result<String, String> {
    let program = &test.program;
    if program.dialect != Dialect::OpenCl {
        return Err("it is not in OpenCL C: `--on opencl` runs no other dialect".into());
    }
    for location in &program.locations {
        let LocationKind::Object { kind, .. } = location.kind else {
            continue;
        };
        let what = match kind {
            MemoryKind::Image { .. } => "an image",
            MemoryKind::Pipe => "a pipe",
            _ => continue,
        };
        let name = &location.name;
        return Err(format!("`{name}` is {what}: kernels get buffers alone"));
    }
    // A backslash would join the next line to the comment.
    let mut text = format!(
        "// {}, made by Fencepost.\n",
        test.name.replace(['\n', '\r', '\\'], " ")
    );
    text += PRELUDE;
    for (i, object) in shape.shared.iter().enumerate() {
        let name = &program.location(object.loc).name;
        writeln!(
            text,
            "#define M{} (memory + places[{}] + instance * places[{}]) // {name}",
            object.loc.0,
            2 * i,
            2 * i + 1
        )
        .expect("a string");
    }
    text += KERNEL;
    for object in &shape.local {
        let words = object.bytes.div_ceil(8).max(1);
        let name = &program.location(object.loc).name;
        writeln!(text, "  local ulong L{}[{words}]; // {name}", object.loc.0).expect("a string");
    }
    match slots(test, shape) {
        0 => {}
        slots => writeln!(text, "  local long given[{slots}];").expect("a string"),
    }
    text += TEAMS;
    text += &initial(&shape.local);
    text += MEETING;
    if shape.meets() {
        writeln!(text, "    {MEET}").expect("a string");
    }
    text += DELAY;
    text += &body(test, shape, &OpenClC { shape })?;
    text += "  }\n  if (get_local_id(0) == 0) atomic_fetch_add_explicit(through, 1, \
        memory_order_relaxed, memory_scope_device);\n}\n";
    let numbers = [
        ("${groups}", shape.groups.len()),
        ("${apart}", APART),
        ("${often}", OFTEN as usize),
        ("${stressed}", STRESSED),
    ];
    Ok(numbers.iter().fold(text, |text, (name, number)| {
        text.replace(name, &number.to_string())
    }))
}

const PRELUDE: &str = "\
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#endif
// All threads are on one device: its scope holds all that this one does.
#if __OPENCL_C_VERSION__ >= 300 && !defined(__opencl_c_atomic_scope_all_devices)
#define memory_scope_all_svm_devices memory_scope_device
#endif

";

const KERNEL: &str = "
kernel void test(global uchar *memory, global const ulong *places, global atomic_uint *meeting, \
global long *results,
                 global const uint *order, uint teams, uint instances, uint factor, uint first, \
                 uint patience, uint delay,
                 uint salt, uint stress) {
  local uint joined;
";

/// Groups join in the order in which they start.
const TEAMS: &str = "
  if (get_local_id(0) == 0) joined = atomic_fetch_add_explicit(meeting, 1, memory_order_relaxed, \
  memory_scope_device);
  work_group_barrier(CLK_LOCAL_MEM_FENCE);
  uint team = joined / ${groups};
  uint group = order[joined % ${groups}];
  global atomic_uint *through = meeting + ${apart};
  if (team >= teams) {
    // Spare groups keep memory busy until all others are through, for a limited time.
    volatile global uint *words = (volatile global uint *)(meeting + (2 + 2 * teams) * ${apart});
    uint at = joined * 2654435761u ^ salt;
    for (uint i = 0; joined - teams * ${groups} < stress && i < (1u << 22); i++) {
      at = at * 1664525u + 1013904223u;
      words[(at >> 16) % ${stressed} * ${apart}] += i;
      if (i % 64 == 0 && atomic_load_explicit(through, memory_order_relaxed, \
      memory_scope_device) == teams * ${groups}) return;
    }
    return;
  }
  global atomic_uint *met = meeting + (2 + 2 * team) * ${apart};
  global atomic_uint *missed = met + ${apart};
  for (uint turn = 0; turn < instances; turn++) {
    ulong instance = (ulong)team * instances + ((ulong)turn * factor + first) % instances;
";

/// The groups of a team wait for each other, at the start longer than later, and no longer after
/// many misses.
const MEETING: &str = "
    if (get_local_id(0) == 0 && patience != 0) {
      atomic_fetch_add_explicit(met, 1, memory_order_relaxed, memory_scope_device);
      if (atomic_load_explicit(missed, memory_order_relaxed, memory_scope_device) < ${often}) {
        uint left = turn == 0 ? patience * ${often} : patience;
        while (atomic_load_explicit(met, memory_order_relaxed, memory_scope_device) < (turn + 1) \
        * ${groups}) {
          if (left-- == 0) {
            atomic_fetch_add_explicit(missed, 1, memory_order_relaxed, memory_scope_device);
            break;
          }
        }
      }
    }
";

const DELAY: &str = "
    if (delay != 0) {
      uint drawn = ((turn * 2654435761u) ^ (uint)(get_global_id(0) * 40503u) ^ salt) % delay;
      for (volatile uint i = 0; i < drawn; i++) {}
    }
";

/// The code by which the first work-item of a group initialises local memory before an instance.
fn initial(local: &[LaunchObject]) -> String {
    let mut text = String::new();
    for object in local {
        for (offset, cell) in &object.cells {
            let (ty, init) = (name(cell.ty), literal(cell.init));
            let place = format!(
                "(local {ty} *)((local uchar *)L{} + {offset})",
                object.loc.0
            );
            writeln!(
                text,
                "    if (get_local_id(0) == 0) *{place} = ({ty}){init};"
            )
            .expect("a string");
        }
    }
    text
}

/// The type of C.
fn name(ty: Ty) -> &'static str {
    match (ty.bits, ty.signed) {
        (8, true) => "char",
        (8, false) => "uchar",
        (16, true) => "short",
        (16, false) => "ushort",
        (32, true) => "int",
        (32, false) => "uint",
        (64, true) => "long",
        _ => "ulong",
    }
}

/// The unsigned type of C, whose arithmetic is fully defined.
fn unsigned(ty: Ty) -> &'static str {
    name(Ty {
        signed: false,
        ..ty
    })
}

fn literal(value: i64) -> String {
    format!("((long){:#x}ul)", value as u64)
}

/// Writes OpenCL C.
struct OpenClC<'t> {
    shape: &'t KernelShape,
}

impl KernelLanguage for OpenClC<'_> {
    fn register(
        &self,
        ThreadRegister(t, r): ThreadRegister,
        start: RegisterStart,
    ) -> Result<String, String> {
        let start = match start {
            RegisterStart::Number(value) => literal(value),
            RegisterStart::Address(loc, offset) => format!("(long)(ulong)(M{} + {offset})", loc.0),
        };
        Ok(format!("    long r{}_{} = {start};\n", t.0, r.0))
    }

    fn counters(&self) -> String {
        "    uint steps = 0, ended = 0;\n".into()
    }

    fn only(&self, who: ThreadSelection, lines: &str) -> String {
        let item = who.at.filter(|_| self.shape.group_size() > 1);
        let item = item.map_or(String::new(), |at| format!(" && get_local_id(0) == {at}"));
        let running = if who.running { " && ended == 0" } else { "" };
        format!(
            "    if (group == {}{item}{running}) {{\n{lines}    }}\n",
            who.group
        )
    }

    fn label(&self, label: &str) -> String {
        format!("      {label}:;\n")
    }

    fn jump(
        &self,
        t: ThreadId,
        cond: &Expr,
        to: &str,
        end: Option<&str>,
    ) -> Result<String, String> {
        let steps = end.map_or(String::new(), |end| {
            format!("if (++steps > {MAX_STEPS}) {{ ended = 2; goto {end}; }} ")
        });
        Ok(format!(
            "      if ({} != 0) {{ {steps}goto {to}; }}\n",
            self.value(cond, t)?
        ))
    }

    fn assign(&self, ThreadRegister(t, r): ThreadRegister, value: &Expr) -> Result<String, String> {
        Ok(format!(
            "      r{}_{} = {};\n",
            t.0,
            r.0,
            self.value(value, t)?
        ))
    }

    fn give(&self, t: ThreadId, value: &Expr, slot: usize) -> Result<String, String> {
        Ok(format!(
            "      given[{slot}] = {};\n",
            self.value(value, t)?
        ))
    }

    fn take(&self, ThreadRegister(t, r): ThreadRegister, slot: usize) -> String {
        format!("      r{}_{} = given[{slot}];\n", t.0, r.0)
    }

    fn fence(&self, op: &Op) -> Result<String, String> {
        let mark = op.mark(EventKind::Fence).ok_or("this event")?;
        let scope = scope(mark.scope).ok_or("a fence without a scope")?;
        Ok(format!(
            "      atomic_work_item_fence({}, {}, {scope});\n",
            regions(&mark.tags),
            word(order(op))
        ))
    }

    fn access(&self, t: ThreadId, op: &Op, space: KernelSpace) -> Result<String, String> {
        Ok(format!("      {}\n", self.call(t, op, space)?))
    }

    fn barrier(&self, op: &Op, all: i64) -> Result<String, String> {
        let call = match op {
            Op::Barrier(one) => barrier(one)?,
            // It orders more than necessary, and shows less.
            Op::Give {
                among: Scope::Cta,
                lanes: Expr::Const(lanes),
                ..
            } if lanes & all == all => MEET.into(),
            _ => return Err(unbuilt("values handed to a part of a work-group")),
        };
        Ok(format!("    {call}\n"))
    }

    fn meet(&self) -> String {
        format!("    {MEET}\n")
    }

    fn result(&self, word: usize, value: ResultValue) -> String {
        let value = match value {
            ResultValue::End => format!("ended == 0 ? {FINISHED} : ended"),
            ResultValue::Register(ThreadRegister(t, r)) => format!("r{}_{}", t.0, r.0),
            ResultValue::Local(loc, offset, ty) => {
                format!(
                    "*(volatile local {} *)((local uchar *)L{} + {offset})",
                    name(ty),
                    loc.0
                )
            }
        };
        format!(
            "      results[instance * {} + {word}] = {value};\n",
            self.shape.results.len()
        )
    }
}

impl OpenClC<'_> {
    /// An access, in a space.
    fn call(&self, t: ThreadId, op: &Op, space: KernelSpace) -> Result<String, String> {
        let space = match space {
            KernelSpace::Global => "global",
            KernelSpace::Local => "local",
        };
        let address = self.value(op.address().expect("an access has one"), t)?;
        let access = op.read().or(op.write()).expect("it has a half");
        let atomic =
            access.tags.has(Tag::Atomic) || op.write().is_some_and(|w| w.tags.has(Tag::Atomic));
        let ty = name(access.ty);
        let volatile = if access.tags.has(Tag::Volatile) || atomic {
            "volatile "
        } else {
            ""
        };
        let object = if atomic {
            format!("atomic_{ty}")
        } else {
            ty.to_owned()
        };
        if atomic && access.ty.bits < 32 {
            return Err("an atomic access of this size".into());
        }
        let place = format!("(({volatile}{space} {object} *)(ulong)({address}))");
        fn words(access: &Access, op: &Op) -> Result<String, String> {
            let scope = scope(access.scope).ok_or("an atomic access without a scope")?;
            Ok(format!("{}, {scope}", word(order(op))))
        }
        Ok(match op {
            Op::Load { dst, access, .. } if atomic => {
                format!(
                    "r{}_{} = (long)atomic_load_explicit({place}, {});",
                    t.0,
                    dst.0,
                    words(access, op)?
                )
            }
            Op::Load { dst, .. } => format!("r{}_{} = (long)*{place};", t.0, dst.0),
            Op::Store { value, access, .. } if atomic => {
                format!(
                    "atomic_store_explicit({place}, ({ty}){}, {});",
                    self.value(value, t)?,
                    words(access, op)?
                )
            }
            Op::Store { value, .. } => format!("*{place} = ({ty}){};", self.value(value, t)?),
            Op::Rmw {
                dst, update, read, ..
            } => {
                let dst = dst.map_or(String::new(), |dst| format!("r{}_{} = (long)", t.0, dst.0));
                let scope = scope(read.scope).ok_or("an atomic access without a scope")?;
                let order = order(op);
                let fetch = |name: &str, operand: &Expr| -> Result<String, String> {
                    let operand = self.value(operand, t)?;
                    Ok(format!(
                        "{dst}atomic_{name}_explicit({place}, ({ty}){operand}, {}, {scope});",
                        word(order)
                    ))
                };
                match update {
                    Update::Exchange(operand) => fetch("exchange", operand)?,
                    Update::Apply(op, operand) => fetch(
                        match op {
                            BinOp::Add => "fetch_add",
                            BinOp::Sub => "fetch_sub",
                            BinOp::And => "fetch_and",
                            BinOp::Or => "fetch_or",
                            BinOp::Xor => "fetch_xor",
                            BinOp::Min => "fetch_min",
                            BinOp::Max => "fetch_max",
                            _ => return Err("this read-modify-write".into()),
                        },
                        operand,
                    )?,
                    Update::CompareExchange { expected, new } => {
                        let (expected, new) = (self.value(expected, t)?, self.value(new, t)?);
                        let dst = dst.replace("(long)", "(long)expected");
                        let dst = if dst.is_empty() { dst } else { dst + ";" };
                        format!(
                            "{{ {ty} expected = ({ty}){expected}; \
                             atomic_compare_exchange_strong_explicit({place}, &expected, \
                             ({ty}){new}, {}, {}, {scope}); {dst} }}",
                            word(order),
                            // The strongest order that it may have.
                            word(order.on_failure())
                        )
                    }
                    Update::When { .. } => return Err("this read-modify-write".into()),
                }
            }
            _ => return Err(format!("this {}", op.noun())),
        })
    }

    /// A value, as a `long`.
    fn value(&self, expr: &Expr, t: ThreadId) -> Result<String, String> {
        Ok(match expr {
            Expr::Const(value) => literal(*value),
            Expr::Reg(r) => format!("r{}_{}", t.0, r.0),
            Expr::Address(loc) => match self.shape.is_local(*loc) {
                true => format!("((long)(ulong)L{})", loc.0),
                false => format!("((long)(ulong)M{})", loc.0),
            },
            Expr::Cast(ty, of) if ty.bits == 1 => format!("({} & 1)", self.value(of, t)?),
            Expr::Cast(ty, of) => format!("((long)({})({}))", name(*ty), self.value(of, t)?),
            Expr::Fused(..) => return Err("arithmetic of floating point".into()),
            Expr::Select(cond, a, b) => {
                format!(
                    "({} != 0 ? {} : {})",
                    self.value(cond, t)?,
                    self.value(a, t)?,
                    self.value(b, t)?
                )
            }
            Expr::Cmp(op, ty, a, b) => {
                let (ty, op) = (name(of_register(*ty)), op.symbol());
                format!(
                    "((long)(({ty})({}) {op} ({ty})({})))",
                    self.value(a, t)?,
                    self.value(b, t)?
                )
            }
            Expr::Bin(op, ty, a, b) => {
                let ty = of_register(*ty);
                binary(
                    *op,
                    ty,
                    &format!("({})", self.value(a, t)?),
                    &format!("({})", self.value(b, t)?),
                )?
            }
        })
    }
}

/// The call for a barrier of a work-group.
fn barrier(barrier: &Barrier) -> Result<String, String> {
    let plain = match &barrier.naming {
        BarrierNaming::Counted { count, .. } => count.is_none(),
        BarrierNaming::Instance { quorum, .. } => quorum.is_none(),
    };
    if barrier.action != BarrierAction::Sync
        || barrier.domain != Scope::Cta
        || barrier.lanes.is_some()
        || !plain
    {
        return Err(unbuilt("a barrier that is not one of a whole work-group"));
    }
    let scope = scope(barrier.scope).unwrap_or("memory_scope_work_group");
    Ok(format!(
        "work_group_barrier({}, {scope});",
        regions(&barrier.arrive)
    ))
}

/// The flags of a fence or barrier.
fn regions(tags: &Tags) -> String {
    let all: Vec<&str> = FLAGS
        .iter()
        .filter_map(|(name, tag)| tags.has(*tag).then_some(*name))
        .collect();
    if all.is_empty() {
        "0".into()
    } else {
        all.join(" | ")
    }
}

/// The word for a scope, if OpenCL has it.
fn scope(scope: Option<Scope>) -> Option<&'static str> {
    OPENCL_SCOPES
        .iter()
        .find(|row| Some(row.1) == scope)
        .map(|row| row.0)
}

/// The word for an order.
fn order(op: &Op) -> Order {
    strength::order(op).unwrap_or(Order::Relaxed)
}

fn word(order: Order) -> &'static str {
    Dialect::OpenCl.row().order_word(order)
}

/// Truth values are computed in integers.
fn of_register(ty: Ty) -> Ty {
    if ty.bits == 1 { Ty::U32 } else { ty }
}

/// `a op b` in a type.
fn binary(op: BinOp, ty: Ty, a: &str, b: &str) -> Result<String, String> {
    let (as_is, plain, bits) = (name(ty), unsigned(ty), ty.bits);
    let simple = |op: &str| format!("((long)({as_is})(({plain}){a} {op} ({plain}){b}))");
    Ok(match op {
        BinOp::Add => simple("+"),
        BinOp::Sub => simple("-"),
        BinOp::Mul => simple("*"),
        BinOp::And => simple("&"),
        BinOp::Or => simple("|"),
        BinOp::Xor => simple("^"),
        // The quotient of the least number and -1 is the least number.
        BinOp::Div | BinOp::Rem => {
            let (by_zero, by_one, symbol) = match op {
                BinOp::Div => (
                    format!("({as_is})-1"),
                    format!("({as_is})(0 - ({plain}){a})"),
                    '/',
                ),
                _ => (format!("({as_is}){a}"), format!("({as_is})0"), '%'),
            };
            let whole = format!("({as_is})(({as_is}){a} {symbol} ({as_is}){b})");
            let rest = match ty.signed {
                true => format!("(({as_is}){b} == ({as_is})-1 ? {by_one} : {whole})"),
                false => whole,
            };
            format!("((long)(({as_is}){b} == 0 ? {by_zero} : {rest}))")
        }
        BinOp::Shl => {
            format!(
                "((ulong)({plain}){b} >= {bits} ? 0l : (long)({as_is})(({plain}){a} << \
                    ({plain}){b}))"
            )
        }
        BinOp::Shr if ty.signed => {
            format!(
                "((long)(({as_is}){a} >> min((ulong)({plain}){b}, (ulong){})))",
                bits - 1
            )
        }
        BinOp::Shr => {
            format!("((ulong)({plain}){b} >= {bits} ? 0l : (long)(({plain}){a} >> ({plain}){b}))")
        }
        BinOp::Min => format!("((long)min(({as_is}){a}, ({as_is}){b}))"),
        BinOp::Max => format!("((long)max(({as_is}){a}, ({as_is}){b}))"),
        BinOp::Inc | BinOp::Dec | BinOp::Float(..) | BinOp::Unknown | BinOp::Tells => {
            return Err("this arithmetic".into());
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::{Trouble, prepare};
    use program::dialect::Runtime;

    /// The kernel of a test of two work-items, or the reason why there is none.
    fn built(
        memory: &str,
        more: &str,
        codes: [&str; 2],
        same_group: bool,
        condition: &str,
    ) -> Result<String, String> {
        let mut text = format!(
            "name = \"T\"\ndialect = \"opencl\"\n{more}\ncondition = '{condition}'\n[memory]\n\
                {memory}\n"
        );
        for (at, code) in codes.iter().enumerate() {
            let group = if same_group { 0 } else { at };
            text += &format!("[[thread]]\nwork_group = {group}\ncode = '''\n{code}\n'''\n");
        }
        let test = front::litmus::parse("t.toml", text.as_bytes())
            .expect("a good test")
            .remove(0);
        match prepare(&test, Runtime::OpenCl) {
            Ok(prepared) => Ok(prepared.source),
            Err(Trouble::Refused(why) | Trouble::Failed(why)) => Err(why),
        }
    }

    const MEMORY: &str = "x = { type = \"atomic_int\" }\ny = { type = \"int\" }\nz = { type = \
        \"atomic_uint\", space = \"local\" }\nu = { type = \"atomic_ulong\" }";

    #[test]
    fn every_form_becomes_the_same_form() {
        let forms = [
            ("*y = 5;", "*((global int *)"),
            ("int r = *y;", "= (long)*((global int *)"),
            (
                "volatile global int *p = y; *p = 1;",
                "*((volatile global int *)",
            ),
            (
                "int r = atomic_load_explicit(x, memory_order_acquire, memory_scope_work_group);",
                "atomic_load_explicit(((volatile global atomic_int *)",
            ),
            (
                "int r = atomic_load_explicit(x, memory_order_acquire, memory_scope_work_group);",
                "memory_order_acquire, memory_scope_work_group);",
            ),
            (
                "atomic_store_explicit(z, 1u, memory_order_release, memory_scope_work_group);",
                "atomic_store_explicit(((volatile local atomic_uint *)",
            ),
            (
                "ulong r = atomic_fetch_max(u, 3ul);",
                "(long)atomic_fetch_max_explicit(((volatile global atomic_ulong *)",
            ),
            (
                "ulong r = atomic_fetch_max(u, 3ul);",
                "memory_order_seq_cst, memory_scope_device);",
            ),
            (
                "int r = atomic_exchange_explicit(x, 2, memory_order_acq_rel, \
                    memory_scope_device);",
                "atomic_exchange_explicit(",
            ),
            (
                "int e = 0; int r = atomic_compare_exchange_strong_explicit(x, &e, 1, \
                    memory_order_release, memory_order_relaxed, memory_scope_device);",
                "memory_order_release, memory_order_relaxed, memory_scope_device); r0_",
            ),
            (
                "atomic_work_item_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE, \
                    memory_order_acq_rel, memory_scope_work_group);",
                "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, \
                    memory_order_acq_rel, memory_scope_work_group);",
            ),
            (
                "while (atomic_load(x) == 0) { }",
                "if (++steps > 4096) { ended = 2; goto T0_",
            ),
        ];
        for (code, wanted) in forms {
            let source = built(MEMORY, "", [code, "*y = 1;"], false, "y == 0").expect(code);
            assert!(
                source.contains(wanted),
                "{code}: `{wanted}` is missing in:\n{source}"
            );
        }
    }

    #[test]
    fn work_items_of_a_group_come_to_the_same_barriers() {
        let barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
        let codes = [
            format!("*y = 1; {barrier}"),
            format!("{barrier} int r = *y;"),
        ];
        let codes = [codes[0].as_str(), codes[1].as_str()];
        let source = built(MEMORY, "", codes, true, "P1:r == 1").expect("a kernel");
        let at = |wanted: &str| {
            source
                .find(wanted)
                .unwrap_or_else(|| panic!("`{wanted}` is missing in:\n{source}"))
        };
        let barrier = at("work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);");
        assert!(
            at("= (int)((long)0x1ul);") < barrier && barrier < at("r1_0 = (long)*"),
            "{source}"
        );
        assert!(
            source.contains("if (group == 0 && get_local_id(0) == 1 && ended == 0)"),
            "{source}"
        );
    }

    #[test]
    fn what_cannot_be_built_faithfully_is_refused() {
        let barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
        let branch = "if (atomic_load(x) == 0) { barrier(CLK_LOCAL_MEM_FENCE); }";
        let refused = [
            (["*y = 1;", barrier], true, "y == 0", "different barriers"),
            (
                [branch, branch],
                true,
                "y == 0",
                "a barrier behind a branch or in a loop",
            ),
            (
                ["sub_group_barrier(CLK_LOCAL_MEM_FENCE);", "*y = 1;"],
                false,
                "y == 0",
                "not one of a whole work-group",
            ),
        ];
        for (codes, same_group, condition, wanted) in refused {
            let why = built(MEMORY, "", codes, same_group, condition).expect_err(wanted);
            assert!(why.contains(wanted), "{why}");
        }
        let of = |text: &str| {
            let test = front::litmus::parse("t.toml", text.as_bytes())
                .expect("a good test")
                .remove(0);
            prepare(&test, Runtime::OpenCl)
                .err()
                .expect("no kernel")
                .to_string()
        };
        let ptx = "name = \"T\"\ncondition = 'x == 0'\nmemory = { x = 0 }\n[[thread]]\ncode = \
            \"st.relaxed.gpu x, 1\"\n";
        assert!(of(ptx).contains("it is not in OpenCL C"));
        let thread = |device: u32| format!("[[thread]]\ndevice = {device}\ncode = \"*x = 1;\"\n");
        let devices =
            "name = \"T\"\ndialect = \"opencl\"\ncondition = 'x == 0'\nmemory = { x = 0 }\n"
                .to_owned();
        assert!(of(&(devices + &thread(0) + &thread(1))).contains("several devices"));
        let pointer = "name = \"T\"\ndialect = \"opencl\"\ncondition = 'x == 0'\nmemory = { x = \
            0, p = { type = \"ulong\", init = \"&x\" } }\n";
        assert!(of(&(pointer.to_owned() + &thread(0))).contains("`p` holds an address"));
        let name = "name = 'T\\'\ndialect = \"opencl\"\ncondition = 'x == 0'\nmemory = { x = 0 }\n"
            .to_owned()
            + &thread(0);
        let test = front::litmus::parse("t.toml", name.as_bytes())
            .expect("a good test")
            .remove(0);
        assert!(
            prepare(&test, Runtime::OpenCl)
                .expect("a kernel")
                .source
                .starts_with("// T , made by Fencepost.\n#ifdef")
        );
    }
}
