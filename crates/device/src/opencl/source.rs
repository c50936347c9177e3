//! A test as a kernel in OpenCL C.
//!
//! # Invariants
//! - Every access and fence of the test is one in the kernel, with the same order, scope, type and address space; what has no such form is
//!   refused. A compare-exchange that may fail without a reason becomes one that does not, and one that fails has the
//!   strongest order that it may have: the kernel shows no more than the test may.
//! - Values are computed as [`program::BinOp::apply`] computes them: nothing is left open that is not left open in the test.
//! - All work-items of a group come to the same barriers, also those whose thread was given up.
//!
//! # Sources
//! - OpenCL C, *Atomic Functions*, *Synchronization Functions*.

use std::fmt::Write;

use crate::launch::{APART, FINISHED, Object, STRESSED, Shape, Word};
use program::litmus::{LitmusTest, Observable};
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, Dialect, EventKind, Expr, Init, LocId, Op, Scope, Tags,
    Thread, ThreadId, Ty, Update,
};

/// How many steps backwards a thread may take before it is given up.
const MAX_STEPS: u32 = 4096;

/// The kernel of a test.
///
/// # Errors
/// What it has no words for.
pub(crate) fn source(test: &LitmusTest, shape: &Shape) -> Result<String, String> {
    let program = &test.program;
    if program.dialect != Dialect::OpenCl {
        return Err("it is not in OpenCL C: `--on opencl` runs no other dialect".into());
    }
    // A backslash would take the next line into the comment.
    let mut text = format!("// {}, made by Fencepost.\n", test.name.replace(['\n', '\r', '\\'], " "));
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
    let size = shape.group_size();
    for object in &shape.local {
        let words = object.bytes.div_ceil(8).max(1);
        let name = &program.location(object.loc).name;
        writeln!(text, "  local ulong L{}[{words}]; // {name}", object.loc.0).expect("a string");
    }
    let program = &test.program;
    let marks = program
        .threads
        .iter()
        .map(|t| t.code.iter().filter(|i| i.op.barrier().is_some() || matches!(i.op, Op::Give { .. })).count());
    if program.instrs().any(|(_, _, instr)| matches!(instr.op, Op::Give { .. })) {
        let words = marks.max().unwrap_or(0) * size;
        writeln!(text, "  local long given[{words}];").expect("a string");
    }
    text += TEAMS;
    text += &initial(&shape.local);
    text += MEETING;
    if size > 1 || !shape.local.is_empty() {
        text += "    work_group_barrier(CLK_LOCAL_MEM_FENCE);\n";
    }
    text += DELAY;
    text += &body(test, shape)?;
    text += "  }\n  if (get_local_id(0) == 0) atomic_fetch_add_explicit(through, 1, memory_order_relaxed, memory_scope_device);\n}\n";
    let numbers = [
        ("${groups}", shape.groups.len()),
        ("${apart}", APART),
        ("${often}", OFTEN as usize),
        ("${stressed}", STRESSED),
    ];
    Ok(numbers.iter().fold(text, |text, (name, number)| text.replace(name, &number.to_string())))
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
kernel void test(global uchar *memory, global const ulong *places, global atomic_uint *meeting, global long *results,
                 global const uint *order, uint teams, uint instances, uint factor, uint first, uint patience, uint delay,
                 uint salt, uint stress) {
  local uint joined;
";

/// Groups join in the order in which they start.
const TEAMS: &str = "
  if (get_local_id(0) == 0) joined = atomic_fetch_add_explicit(meeting, 1, memory_order_relaxed, memory_scope_device);
  work_group_barrier(CLK_LOCAL_MEM_FENCE);
  uint team = joined / ${groups};
  uint group = order[joined % ${groups}];
  global atomic_uint *through = meeting + ${apart};
  if (team >= teams) {
    // What is not needed for the test keeps memory busy until all others are through, but not for ever.
    volatile global uint *words = (volatile global uint *)(meeting + (2 + 2 * teams) * ${apart});
    uint at = joined * 2654435761u ^ salt;
    for (uint i = 0; joined - teams * ${groups} < stress && i < (1u << 22); i++) {
      at = at * 1664525u + 1013904223u;
      words[(at >> 16) % ${stressed} * ${apart}] += i;
      if (i % 64 == 0 && atomic_load_explicit(through, memory_order_relaxed, memory_scope_device) == teams * ${groups}) return;
    }
    return;
  }
  global atomic_uint *met = meeting + (2 + 2 * team) * ${apart};
  global atomic_uint *missed = met + ${apart};
  for (uint turn = 0; turn < instances; turn++) {
    ulong instance = (ulong)team * instances + ((ulong)turn * factor + first) % instances;
";

/// The groups of a team wait for each other, at the start for longer than later, and no more after they have missed each other often.
const MEETING: &str = "
    if (get_local_id(0) == 0 && patience != 0) {
      atomic_fetch_add_explicit(met, 1, memory_order_relaxed, memory_scope_device);
      if (atomic_load_explicit(missed, memory_order_relaxed, memory_scope_device) < ${often}) {
        uint left = turn == 0 ? patience * ${often} : patience;
        while (atomic_load_explicit(met, memory_order_relaxed, memory_scope_device) < (turn + 1) * ${groups}) {
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

/// How often the groups of a team may miss each other.
const OFTEN: u32 = 32;

/// What the first work-item of a group writes to local memory before an instance.
fn initial(local: &[Object]) -> String {
    let mut text = String::new();
    for object in local {
        for (offset, cell) in &object.cells {
            let (ty, init) = (name(cell.ty), literal(cell.init));
            let place = format!("(local {ty} *)((local uchar *)L{} + {offset})", object.loc.0);
            writeln!(text, "    if (get_local_id(0) == 0) *{place} = ({ty}){init};").expect("a string");
        }
    }
    text
}

/// Why there is no kernel. What comes behind the colon differs from test to test.
fn unbuilt(what: &str) -> String {
    format!("no kernel can be built: {what}")
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

/// The unsigned one, in which arithmetic leaves nothing open.
fn unsigned(ty: Ty) -> &'static str {
    name(Ty { signed: false, ..ty })
}

fn literal(value: i64) -> String {
    format!("((long){:#x}ul)", value as u64)
}

/// The kinds of memory that an address may be one of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spaces {
    global: bool,
    local: bool,
}

impl Spaces {
    fn with(self, other: Spaces) -> Spaces {
        Spaces { global: self.global || other.global, local: self.local || other.local }
    }

    fn any(self) -> bool {
        self.global || self.local
    }
}

/// An instance. No barrier stands within a condition unless the groups of the test come to different ones: drivers do such badly.
fn body(test: &LitmusTest, shape: &Shape) -> Result<String, String> {
    let groups = shape.groups.iter().enumerate();
    let groups: Vec<Group<'_>> = groups.map(|(number, threads)| Group { test, shape, number, threads }).collect();
    let barriers: Vec<Vec<String>> = groups.iter().map(Group::barriers).collect::<Result<_, _>>()?;
    let mut text = String::new();
    for group in &groups {
        text += &group.registers()?;
    }
    text += "    uint steps = 0, ended = 0;\n";
    for part in 0..=barriers.iter().map(Vec::len).max().unwrap_or(0) {
        for group in &groups {
            text += &group.between(part)?;
        }
        // A group that is through may come to those of others.
        let here: Vec<(usize, &String)> =
            barriers.iter().enumerate().filter_map(|(number, all)| Some((number, all.get(part)?))).collect();
        match here.as_slice() {
            [(_, one), others @ ..] if others.iter().all(|(_, other)| other == one) => {
                writeln!(text, "    {one}").expect("a string");
            }
            several => {
                for (number, barrier) in several {
                    writeln!(text, "    if (group == {number}) {barrier}").expect("a string");
                }
            }
        }
    }
    let apart = shape.group_size() > 1 || !shape.local.is_empty();
    let apart = if apart { "    work_group_barrier(CLK_LOCAL_MEM_FENCE);\n" } else { "" };
    text += apart;
    for group in &groups {
        text += &group.results()?;
    }
    // The next instance begins with other values.
    text += apart;
    Ok(text)
}

/// A work-group of the test.
struct Group<'t> {
    test: &'t LitmusTest,
    shape: &'t Shape,
    number: usize,
    threads: &'t [ThreadId],
}

impl Group<'_> {
    fn thread(&self, id: ThreadId) -> &Thread {
        self.test.program.thread(id)
    }

    /// Its registers before the first instruction.
    fn registers(&self) -> Result<String, String> {
        let mut text = String::new();
        for &t in self.threads {
            for (r, register) in self.thread(t).regs.iter().enumerate() {
                let init = match register.init {
                    Init::Int(value) => literal(register.ty.wrap(value)),
                    Init::Address { loc, index } => {
                        let object = self.shape.shared.iter().find(|object| object.loc == loc);
                        let object = object.ok_or_else(|| unbuilt("an address of local memory as an argument"))?;
                        format!("(long)(ulong)(M{} + {})", loc.0, object.cells[index as usize].0)
                    }
                };
                writeln!(text, "    long r{}_{r} = {init};", t.0).expect("a string");
            }
        }
        Ok(text)
    }

    /// Who runs the code of one of its threads.
    fn is(&self, at: usize) -> String {
        let group = format!("group == {}", self.number);
        if self.shape.group_size() > 1 { format!("{group} && get_local_id(0) == {at}") } else { group }
    }

    /// What its work-items do between two barriers.
    fn between(&self, part: usize) -> Result<String, String> {
        let mut text = String::new();
        for (at, &t) in self.threads.iter().enumerate() {
            let marks = self.marks(t);
            if part > marks.len() {
                continue;
            }
            let from = if part == 0 { 0 } else { marks[part - 1] + 1 };
            let to = marks.get(part).copied().unwrap_or(self.thread(t).code.len());
            writeln!(text, "    if ({} && ended == 0) {{", self.is(at)).expect("a string");
            text += &self.part(t, part, from..to)?;
            text += "    }\n";
        }
        Ok(text)
    }

    /// Where a thread meets the others: its barriers, and where it hands them a value.
    fn marks(&self, t: ThreadId) -> Vec<usize> {
        let code = self.thread(t).code.iter().enumerate();
        let meets = |op: &Op| op.barrier().is_some() || matches!(op, Op::Give { .. });
        code.filter(|(_, instr)| meets(&instr.op)).map(|(at, _)| at).collect()
    }

    /// Its barriers in their order, if all threads come to all of them, whatever they read.
    fn barriers(&self) -> Result<Vec<String>, String> {
        let mut all: Option<Vec<String>> = None;
        for &t in self.threads {
            let code = &self.thread(t).code;
            let marks = self.marks(t);
            let jumps = |(from, to): (usize, usize), mark: usize| from.min(to) <= mark && mark < from.max(to);
            for (at, instr) in code.iter().enumerate() {
                if instr.op.target().is_some_and(|to| marks.iter().any(|&mark| jumps((at, to), mark))) {
                    return Err(unbuilt("a barrier behind a branch or in a loop"));
                }
            }
            let named = |mark: &usize| match &code[*mark].op {
                Op::Barrier(one) => barrier(one),
                op => self.hand_over(op),
            };
            let mine: Vec<String> = marks.iter().map(named).collect::<Result<_, _>>()?;
            match &all {
                Some(others) if *others != mine => {
                    return Err(unbuilt("different barriers of work-items of one group"));
                }
                _ => all = Some(mine),
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// The barrier by which values that are handed over have come: it orders more than it must, and shows less.
    fn hand_over(&self, op: &Op) -> Result<String, String> {
        let all = (1i64 << self.threads.len()) - 1;
        match op {
            Op::Give { among: Scope::Cta, lanes: Expr::Const(lanes), .. } if lanes & all == all => {
                Ok("work_group_barrier(CLK_LOCAL_MEM_FENCE);".into())
            }
            _ => Err(unbuilt("values handed to a part of a work-group")),
        }
    }

    /// Which addresses each register of a thread may hold.
    fn addresses(&self, t: ThreadId) -> Result<Vec<Spaces>, String> {
        let thread = self.thread(t);
        let mut held = vec![Spaces::default(); thread.regs.len()];
        for (register, held) in thread.regs.iter().zip(&mut held) {
            if let Init::Address { loc, .. } = register.init {
                *held = self.space(loc);
            }
        }
        loop {
            let before = held.clone();
            for instr in &thread.code {
                if let Op::Assign { dst, value } = &instr.op {
                    let spaces = self.spaces(value, &held);
                    held[usize::from(dst.0)] = held[usize::from(dst.0)].with(spaces);
                }
            }
            if held == before {
                break;
            }
        }
        let observed = self.test.observables();
        for (r, spaces) in held.iter().enumerate() {
            let is_it =
                |o: &Observable| matches!(o, Observable::Reg(of, reg) if *of == t && usize::from(reg.0) == r);
            if spaces.any() && observed.iter().any(is_it) {
                return Err(unbuilt("a final value that is an address"));
            }
        }
        for instr in &thread.code {
            if instr.op.written().is_some_and(|value| self.spaces(value, &held).any()) {
                return Err(unbuilt("an address that is stored"));
            }
        }
        Ok(held)
    }

    fn space(&self, loc: LocId) -> Spaces {
        let local = self.shape.local.iter().any(|object| object.loc == loc);
        Spaces { global: !local, local }
    }

    fn spaces(&self, expr: &Expr, held: &[Spaces]) -> Spaces {
        let mut all = Spaces::default();
        expr.visit(&mut |e| match e {
            Expr::Address(loc) => all = all.with(self.space(*loc)),
            Expr::Reg(r) => all = all.with(held[usize::from(r.0)]),
            _ => {}
        });
        all
    }

    /// Some of a thread's code, without barriers.
    fn part(&self, t: ThreadId, part: usize, range: std::ops::Range<usize>) -> Result<String, String> {
        let held = &self.addresses(t)?;
        let code = &self.thread(t).code;
        let is_target = |at: usize| code.iter().any(|instr| instr.op.target() == Some(at));
        let label = |at: usize| format!("T{}_{at}", t.0);
        let mut text = String::new();
        for at in range.clone() {
            if is_target(at) {
                writeln!(text, "      {}:;", label(at)).expect("a string");
            }
            let instr = &code[at];
            if instr.element.of > 1 || instr.element.cells > 1 {
                return Err(unbuilt(&format!("an access of several cells, line {}", instr.line)));
            }
            let refuse = |what: &str| unbuilt(&format!("{what}, line {}", instr.line));
            let line = match &instr.op {
                Op::Branch { cond, target } => {
                    let steps = if *target <= at {
                        format!("if (++steps > {MAX_STEPS}) {{ ended = 2; goto {}; }} ", label(range.end))
                    } else {
                        String::new()
                    };
                    format!("if ({} != 0) {{ {steps}goto {}; }}", self.value(cond, t)?, label(*target))
                }
                Op::Assign { dst, value } => format!("r{}_{} = {};", t.0, dst.0, self.value(value, t)?),
                Op::Take { dst, lane } => {
                    // The last that was handed over stands before this part.
                    let last = code[..range.start].iter().rposition(|instr| matches!(instr.op, Op::Give { .. }));
                    let part = last.and_then(|last| self.marks(t).iter().position(|&mark| mark == last));
                    let part = part.ok_or_else(|| refuse("a value that nobody handed over"))?;
                    format!("r{}_{} = {};", t.0, dst.0, given(part, self.shape.group_size(), usize::from(*lane)))
                }
                Op::Spurious { dst } => format!("r{}_{} = 0;", t.0, dst.0),
                Op::Mark { mark, .. } if mark.kind == EventKind::Fence => {
                    let scope = scope(mark.scope).ok_or_else(|| refuse("a fence without a scope"))?;
                    let order = order(&mark.tags);
                    format!("atomic_work_item_fence({}, {order}, {scope});", regions(&mark.tags))
                }
                op if op.is_access() => {
                    let spaces = self.spaces(op.address().expect("an access has one"), held);
                    let space = match (spaces.global, spaces.local) {
                        (true, false) => "global",
                        (false, true) => "local",
                        (false, false) => return Err(refuse("an address that is a number")),
                        (true, true) => return Err(refuse("an address of memory of either kind")),
                    };
                    self.access(op, space, t).map_err(|what| refuse(&what))?
                }
                op => return Err(refuse(&format!("this {}", op.noun()))),
            };
            writeln!(text, "      {line}").expect("a string");
        }
        writeln!(text, "      {}:;", label(range.end)).expect("a string");
        if let Some(Op::Give { value, .. }) = code.get(range.end).map(|instr| &instr.op) {
            let at = self.threads.iter().position(|&u| u == t).expect("it is one of them");
            let place = given(part, self.shape.group_size(), at);
            writeln!(text, "      {place} = {};", self.value(value, t)?).expect("a string");
        }
        Ok(text)
    }

    /// An access, in a space.
    fn access(&self, op: &Op, space: &str, t: ThreadId) -> Result<String, String> {
        let address = self.value(op.address().expect("an access has one"), t)?;
        let access = op.read().or(op.write()).expect("it has a half");
        let atomic = access.tags.has("A") || op.write().is_some_and(|w| w.tags.has("A"));
        let ty = name(access.ty);
        let volatile = if access.tags.has("VOLATILE") || atomic { "volatile " } else { "" };
        let object = if atomic { format!("atomic_{ty}") } else { ty.to_owned() };
        if atomic && access.ty.bits < 32 {
            return Err("an atomic access of this size".into());
        }
        let place = format!("(({volatile}{space} {object} *)(ulong)({address}))");
        let words = |access: &Access| -> Result<String, String> {
            let scope = scope(access.scope).ok_or("an atomic access without a scope")?;
            Ok(format!("{}, {scope}", order(&access.tags)))
        };
        Ok(match op {
            Op::Load { dst, access, .. } if atomic => {
                format!("r{}_{} = (long)atomic_load_explicit({place}, {});", t.0, dst.0, words(access)?)
            }
            Op::Load { dst, .. } => format!("r{}_{} = (long)*{place};", t.0, dst.0),
            Op::Store { value, access, .. } if atomic => {
                format!("atomic_store_explicit({place}, ({ty}){}, {});", self.value(value, t)?, words(access)?)
            }
            Op::Store { value, .. } => format!("*{place} = ({ty}){};", self.value(value, t)?),
            Op::Rmw { dst, update, read, write, .. } => {
                let dst = dst.map_or(String::new(), |dst| format!("r{}_{} = (long)", t.0, dst.0));
                let tags = both(&read.tags, &write.tags);
                let scope = scope(read.scope).ok_or("an atomic access without a scope")?;
                let order = order(&tags);
                let fetch = |name: &str, operand: &Expr| -> Result<String, String> {
                    let operand = self.value(operand, t)?;
                    Ok(format!("{dst}atomic_{name}_explicit({place}, ({ty}){operand}, {order}, {scope});"))
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
                             atomic_compare_exchange_strong_explicit({place}, &expected, ({ty}){new}, {order}, {}, {scope}); {dst} }}",
                            failing(&tags)
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
            Expr::Address(loc) => match self.space(*loc).local {
                true => format!("((long)(ulong)L{})", loc.0),
                false => format!("((long)(ulong)M{})", loc.0),
            },
            Expr::Cast(ty, of) if ty.bits == 1 => format!("({} & 1)", self.value(of, t)?),
            Expr::Cast(ty, of) => format!("((long)({})({}))", name(*ty), self.value(of, t)?),
            Expr::Select(cond, a, b) => {
                format!("({} != 0 ? {} : {})", self.value(cond, t)?, self.value(a, t)?, self.value(b, t)?)
            }
            Expr::Cmp(op, ty, a, b) => {
                let (ty, op) = (name(of_register(*ty)), op.symbol());
                format!("((long)(({ty})({}) {op} ({ty})({})))", self.value(a, t)?, self.value(b, t)?)
            }
            Expr::Bin(op, ty, a, b) => {
                let ty = of_register(*ty);
                binary(*op, ty, &format!("({})", self.value(a, t)?), &format!("({})", self.value(b, t)?))?
            }
        })
    }

    /// What the group says of an instance when it is through.
    fn results(&self) -> Result<String, String> {
        let mut text = String::new();
        let width = self.shape.results.len();
        let observables = self.test.observables();
        for (at, &t) in self.threads.iter().enumerate() {
            writeln!(text, "    if ({}) {{", self.is(at)).expect("a string");
            let mut put = |word: Word, value: &str| {
                let word = self.shape.word(word);
                writeln!(text, "      results[instance * {width} + {word}] = {value};").expect("a string");
            };
            put(Word::End(t), &format!("ended == 0 ? {FINISHED} : ended"));
            for (i, observable) in observables.iter().enumerate() {
                match *observable {
                    Observable::Reg(of, reg) if of == t => put(Word::Final(i), &format!("r{}_{}", t.0, reg.0)),
                    Observable::Mem { loc, index, viewer } if self.space(loc).local && at == 0 => {
                        if viewer.is_none_or(|viewer| self.threads.contains(&viewer)) {
                            let object = self.shape.local.iter().find(|object| object.loc == loc);
                            let (offset, cell) =
                                &object.ok_or_else(|| unbuilt("local memory of no group"))?.cells[index as usize];
                            let ty = name(cell.ty);
                            let place = format!("*(volatile local {ty} *)((local uchar *)L{} + {offset})", loc.0);
                            put(Word::Final(i), &place);
                        }
                    }
                    Observable::Reg(..) | Observable::Mem { .. } => {}
                }
            }
            text += "    }\n";
        }
        Ok(text)
    }
}

/// Where a thread leaves what it hands over at the end of a part.
fn given(part: usize, size: usize, at: usize) -> String {
    format!("given[{}]", part * size + at)
}

/// A barrier of a work-group as it is called.
fn barrier(barrier: &Barrier) -> Result<String, String> {
    let plain = match &barrier.naming {
        BarrierNaming::Counted { count, .. } => count.is_none(),
        BarrierNaming::Instance { quorum, .. } => quorum.is_none(),
    };
    if barrier.action != BarrierAction::Sync || barrier.domain != Scope::Cta || barrier.lanes.is_some() || !plain {
        return Err(unbuilt("a barrier that is not one of a whole work-group"));
    }
    let scope = scope(barrier.scope).unwrap_or("memory_scope_work_group");
    Ok(format!("work_group_barrier({}, {scope});", regions(&barrier.arrive)))
}

/// The flags of a fence or barrier.
fn regions(tags: &Tags) -> &'static str {
    match (tags.has("GLOBAL"), tags.has("LOCAL")) {
        (true, true) => "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE",
        (false, true) => "CLK_LOCAL_MEM_FENCE",
        (true, false) => "CLK_GLOBAL_MEM_FENCE",
        (false, false) => "0",
    }
}

fn scope(scope: Option<Scope>) -> Option<&'static str> {
    Some(match scope? {
        Scope::Thread => "memory_scope_work_item",
        Scope::Warp => "memory_scope_sub_group",
        Scope::Cta => "memory_scope_work_group",
        Scope::Gpu => "memory_scope_device",
        Scope::Sys => "memory_scope_all_svm_devices",
        Scope::Cluster | Scope::QueueFamily => return None,
    })
}

/// The tags of both halves.
fn both(a: &Tags, b: &Tags) -> Tags {
    let mut tags = a.clone();
    tags.extend(&b.iter().collect::<Vec<_>>());
    tags
}

fn order(tags: &Tags) -> &'static str {
    let acquire = tags.has("ACQ") || tags.has("ACQ_REL");
    let release = tags.has("REL") || tags.has("ACQ_REL");
    match (tags.has("SC"), acquire, release) {
        (true, ..) => "memory_order_seq_cst",
        (_, true, true) => "memory_order_acq_rel",
        (_, true, false) => "memory_order_acquire",
        (_, false, true) => "memory_order_release",
        (_, false, false) => "memory_order_relaxed",
    }
}

/// The strongest order that a failing compare-exchange may have.
fn failing(tags: &Tags) -> &'static str {
    match (tags.has("SC"), tags.has("ACQ") || tags.has("ACQ_REL")) {
        (true, _) => "memory_order_seq_cst",
        (_, true) => "memory_order_acquire",
        (_, false) => "memory_order_relaxed",
    }
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
                BinOp::Div => (format!("({as_is})-1"), format!("({as_is})(0 - ({plain}){a})"), '/'),
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
            format!("((ulong)({plain}){b} >= {bits} ? 0l : (long)({as_is})(({plain}){a} << ({plain}){b}))")
        }
        BinOp::Shr if ty.signed => {
            format!("((long)(({as_is}){a} >> min((ulong)({plain}){b}, (ulong){})))", bits - 1)
        }
        BinOp::Shr => {
            format!("((ulong)({plain}){b} >= {bits} ? 0l : (long)(({plain}){a} >> ({plain}){b}))")
        }
        BinOp::Min => format!("((long)min(({as_is}){a}, ({as_is}){b}))"),
        BinOp::Max => format!("((long)max(({as_is}){a}, ({as_is}){b}))"),
        BinOp::Inc | BinOp::Dec | BinOp::Float(_) => return Err("this arithmetic".into()),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Trouble, prepare};

    /// The kernel of a test of two work-items, or why there is none.
    fn built(
        memory: &str,
        more: &str,
        codes: [&str; 2],
        same_group: bool,
        condition: &str,
    ) -> Result<String, String> {
        let mut text =
            format!("name = \"T\"\ndialect = \"opencl\"\n{more}\ncondition = '{condition}'\n[memory]\n{memory}\n");
        for (at, code) in codes.iter().enumerate() {
            let group = if same_group { 0 } else { at };
            text += &format!("[[thread]]\nwork_group = {group}\ncode = '''\n{code}\n'''\n");
        }
        let test = front::litmus::parse("t.toml", text.as_bytes()).expect("a good test").remove(0);
        match prepare(&test) {
            Ok(prepared) => Ok(prepared.source),
            Err(Trouble::Refused(why) | Trouble::Failed(why)) => Err(why),
        }
    }

    const MEMORY: &str = "x = { type = \"atomic_int\" }\ny = { type = \"int\" }\nz = { type = \"atomic_uint\", space = \"local\" }\nu = { type = \"atomic_ulong\" }";

    #[test]
    fn every_form_becomes_the_same_form() {
        let forms = [
            ("*y = 5;", "*((global int *)"),
            ("int r = *y;", "= (long)*((global int *)"),
            ("volatile global int *p = y; *p = 1;", "*((volatile global int *)"),
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
            ("ulong r = atomic_fetch_max(u, 3ul);", "memory_order_seq_cst, memory_scope_device);"),
            (
                "int r = atomic_exchange_explicit(x, 2, memory_order_acq_rel, memory_scope_device);",
                "atomic_exchange_explicit(",
            ),
            (
                "int e = 0; int r = atomic_compare_exchange_strong_explicit(x, &e, 1, memory_order_release, memory_order_relaxed, memory_scope_device);",
                "memory_order_release, memory_order_relaxed, memory_scope_device); r0_",
            ),
            (
                "atomic_work_item_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_work_group);",
                "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, memory_order_acq_rel, memory_scope_work_group);",
            ),
            ("while (atomic_load(x) == 0) { }", "if (++steps > 4096) { ended = 2; goto T0_"),
        ];
        for (code, wanted) in forms {
            let source = built(MEMORY, "", [code, "*y = 1;"], false, "y == 0").expect(code);
            assert!(source.contains(wanted), "{code}: `{wanted}` is missing in:\n{source}");
        }
    }

    #[test]
    fn work_items_of_a_group_come_to_the_same_barriers() {
        let barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
        let codes = [format!("*y = 1; {barrier}"), format!("{barrier} int r = *y;")];
        let codes = [codes[0].as_str(), codes[1].as_str()];
        let source = built(MEMORY, "", codes, true, "P1:r == 1").expect("a kernel");
        let at =
            |wanted: &str| source.find(wanted).unwrap_or_else(|| panic!("`{wanted}` is missing in:\n{source}"));
        let barrier = at("work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);");
        assert!(at("= (int)((long)0x1ul);") < barrier && barrier < at("r1_0 = (long)*"), "{source}");
        assert!(source.contains("if (group == 0 && get_local_id(0) == 1 && ended == 0)"), "{source}");
    }

    #[test]
    fn what_cannot_be_built_faithfully_is_refused() {
        let barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
        let branch = "if (atomic_load(x) == 0) { barrier(CLK_LOCAL_MEM_FENCE); }";
        let refused = [
            (["*y = 1;", barrier], true, "y == 0", "different barriers"),
            ([branch, branch], true, "y == 0", "a barrier behind a branch or in a loop"),
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
            let test = front::litmus::parse("t.toml", text.as_bytes()).expect("a good test").remove(0);
            prepare(&test).err().expect("no kernel").to_string()
        };
        let ptx =
            "name = \"T\"\ncondition = 'x == 0'\nmemory = { x = 0 }\n[[thread]]\ncode = \"st.relaxed.gpu x, 1\"\n";
        assert!(of(ptx).contains("it is not in OpenCL C"));
        let thread = |device: u32| format!("[[thread]]\ndevice = {device}\ncode = \"*x = 1;\"\n");
        let devices = "name = \"T\"\ndialect = \"opencl\"\ncondition = 'x == 0'\nmemory = { x = 0 }\n".to_owned();
        assert!(of(&(devices + &thread(0) + &thread(1))).contains("several devices"));
        let pointer = "name = \"T\"\ndialect = \"opencl\"\ncondition = 'x == 0'\nmemory = { x = 0, p = { type = \"ulong\", init = \"&x\" } }\n";
        assert!(of(&(pointer.to_owned() + &thread(0))).contains("`p` holds an address"));
        let name = "name = 'T\\'\ndialect = \"opencl\"\ncondition = 'x == 0'\nmemory = { x = 0 }\n".to_owned()
            + &thread(0);
        let test = front::litmus::parse("t.toml", name.as_bytes()).expect("a good test").remove(0);
        assert!(prepare(&test).expect("a kernel").source.starts_with("// T , made by Fencepost.\n#ifdef"));
    }
}
