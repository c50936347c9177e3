//! Builds the kernel of a test from parts that are common to all languages.
//!
//! # Invariants
//! - Every access, fence and barrier of the test is one in the kernel, with the same order, scope,
//!   type and kind of memory. A test with anything else is refused.
//! - All threads of a group execute the same barriers, even those that were given up. No barrier is
//!   within a condition unless the groups of the test execute different ones: drivers handle such
//!   barriers badly.

use std::ops::Range;

use crate::launch::{KernelShape, ResultWord};
use program::litmus::{LitmusTest, Observable};
use program::{Attendance, Expr, GroupSeat, Init, LocId, Op, RegId, Scope, Thread, ThreadId, Ty};

/// The number of backward jumps after which a thread is given up.
pub(crate) const MAX_STEPS: u32 = 4096;

/// The number of times that the groups of a team may miss each other.
pub(crate) const OFTEN: u32 = 32;

/// A language of kernels; each text consists of whole lines. Registers hold values of 64 bits, with
/// the sign of their type.
pub(crate) trait KernelLanguage {
    /// A register before the first instruction.
    fn register(&self, register: ThreadRegister, start: RegisterStart) -> Result<String, String>;
    /// The counters of each thread: its backward jumps, and its end, where 0 means that it goes on.
    fn counters(&self) -> String;
    /// Lines for certain threads of a group only.
    fn only(&self, who: ThreadSelection, lines: &str) -> String;
    /// A jump target.
    fn label(&self, label: &str) -> String;
    /// A jump if a value is not 0. A backward one gives the thread up after [`MAX_STEPS`], by a
    /// jump to the end of the part.
    fn jump(&self, t: ThreadId, cond: &Expr, to: &str, end: Option<&str>)
    -> Result<String, String>;
    /// `to = value`.
    fn assign(&self, to: ThreadRegister, value: &Expr) -> Result<String, String>;
    /// Stores a value for other threads of the group.
    fn give(&self, t: ThreadId, value: &Expr, slot: usize) -> Result<String, String>;
    /// Takes a value that another thread stored.
    fn take(&self, to: ThreadRegister, slot: usize) -> String;
    /// A fence.
    fn fence(&self, op: &Op) -> Result<String, String>;
    /// A load, store or read-modify-write.
    fn access(&self, t: ThreadId, op: &Op, space: KernelSpace) -> Result<String, String>;
    /// A barrier of the test, or the one after which handed-over values are there; `all` has the
    /// threads of its group, as bits.
    fn barrier(&self, op: &Op, all: i64) -> Result<String, String>;
    /// A barrier of all threads of a group.
    fn meet(&self) -> String;
    /// A word of the results of the instance.
    fn result(&self, word: usize, value: ResultValue) -> String;
}

/// A register of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadRegister(pub(crate) ThreadId, pub(crate) RegId);

/// The initial content of a register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegisterStart {
    /// A number.
    Number(i64),
    /// The address of a byte of an object that all groups see.
    Address(LocId, u64),
}

/// Some threads of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSelection {
    /// The work-group of the test.
    pub(crate) group: usize,
    /// One of its threads; `None`: all.
    pub(crate) at: Option<usize>,
    /// Whether to exclude a thread that was given up.
    pub(crate) running: bool,
}

/// A part of an instance's results.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResultValue {
    /// The end of the thread.
    End,
    /// A register.
    Register(ThreadRegister),
    /// A cell of the group's local memory.
    Local(LocId, u64, Ty),
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelSpace {
    /// Memory that all groups see.
    Global,
    /// Memory of one group.
    Local,
}

/// The kinds of memory that an address may belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spaces {
    global: bool,
    local: bool,
}

impl Spaces {
    fn with(self, other: Spaces) -> Spaces {
        Spaces {
            global: self.global || other.global,
            local: self.local || other.local,
        }
    }

    fn any(self) -> bool {
        self.global || self.local
    }
}

/// The reason why there is no kernel. The text after the colon differs from test to test.
pub(crate) fn unbuilt(what: &str) -> String {
    format!("no kernel can be built: {what}")
}

/// The code of an instance.
///
/// # Errors
/// If the language cannot express part of the test.
pub(crate) fn body(
    test: &LitmusTest,
    shape: &KernelShape,
    language: &dyn KernelLanguage,
) -> Result<String, String> {
    let groups = shape.groups.iter().enumerate();
    let groups: Vec<WorkGroup<'_>> = groups
        .map(|(number, threads)| WorkGroup {
            test,
            shape,
            language,
            number,
            threads,
        })
        .collect();
    let barriers: Vec<Vec<String>> = groups
        .iter()
        .map(WorkGroup::barriers)
        .collect::<Result<_, _>>()?;
    let mut text = String::new();
    for group in &groups {
        text += &group.registers()?;
    }
    text += &language.counters();
    for part in 0..=barriers.iter().map(Vec::len).max().unwrap_or(0) {
        for group in &groups {
            text += &group.between(part)?;
        }
        // A group that is through may still execute barriers of others.
        let here: Vec<(usize, &String)> = barriers
            .iter()
            .enumerate()
            .filter_map(|(number, all)| Some((number, all.get(part)?)))
            .collect();
        match here.as_slice() {
            [(_, one), others @ ..] if others.iter().all(|(_, other)| other == one) => text += one,
            several => {
                for (group, barrier) in several {
                    text += &language.only(
                        ThreadSelection {
                            group: *group,
                            at: None,
                            running: false,
                        },
                        barrier,
                    );
                }
            }
        }
    }
    let meet = if shape.meets() {
        language.meet()
    } else {
        String::new()
    };
    text += &meet;
    for group in &groups {
        text += &group.results()?;
    }
    // The next instance begins with other values.
    text += &meet;
    Ok(text)
}

/// The number of values that the threads of a group hand over in an instance.
pub(crate) fn slots(test: &LitmusTest, shape: &KernelShape) -> usize {
    let program = &test.program;
    let gives = program
        .instrs()
        .any(|(_, _, instr)| matches!(instr.op, Op::Give { .. }));
    let marks = program.threads.iter().map(|t| marks(t).len());
    if gives {
        marks.max().unwrap_or(0) * shape.group_size()
    } else {
        0
    }
}

/// The instructions at which a thread meets others: barriers, and handovers of values.
fn marks(thread: &Thread) -> Vec<usize> {
    fn meets(op: &Op) -> bool {
        op.barrier().is_some() || matches!(op, Op::Give { .. })
    }
    thread
        .code
        .iter()
        .enumerate()
        .filter(|(_, instr)| meets(&instr.op))
        .map(|(at, _)| at)
        .collect()
}

/// A work-group of the test.
struct WorkGroup<'t> {
    test: &'t LitmusTest,
    shape: &'t KernelShape,
    language: &'t dyn KernelLanguage,
    number: usize,
    threads: &'t [ThreadId],
}

impl WorkGroup<'_> {
    fn thread(&self, id: ThreadId) -> &Thread {
        self.test.program.thread(id)
    }

    /// Its registers before the first instruction.
    fn registers(&self) -> Result<String, String> {
        let mut text = String::new();
        for &t in self.threads {
            for (r, register) in self.thread(t).regs.iter().enumerate() {
                let start = match register.init {
                    Init::Int(value) => RegisterStart::Number(register.ty.wrap(value)),
                    Init::Unknown => RegisterStart::Number(0),
                    Init::Address { loc, index } => {
                        let object = self.shape.shared.iter().find(|object| object.loc == loc);
                        let object = object
                            .ok_or_else(|| unbuilt("an address of local memory as an argument"))?;
                        RegisterStart::Address(loc, object.cells[index as usize].0)
                    }
                };
                text += &self
                    .language
                    .register(ThreadRegister(t, RegId(r as u16)), start)?;
            }
        }
        Ok(text)
    }

    /// The code of its threads between two barriers.
    fn between(&self, part: usize) -> Result<String, String> {
        let mut text = String::new();
        for (at, &t) in self.threads.iter().enumerate() {
            let marks = marks(self.thread(t));
            if part > marks.len() {
                continue;
            }
            let from = if part == 0 { 0 } else { marks[part - 1] + 1 };
            let to = marks
                .get(part)
                .copied()
                .unwrap_or(self.thread(t).code.len());
            let lines = self.part(t, part, from..to)?;
            text += &self.language.only(
                ThreadSelection {
                    group: self.number,
                    at: Some(at),
                    running: true,
                },
                &lines,
            );
        }
        Ok(text)
    }

    /// Its barriers in order, if all threads execute all of them, whatever they read.
    fn barriers(&self) -> Result<Vec<String>, String> {
        let mut all: Option<Vec<String>> = None;
        for &t in self.threads {
            let code = &self.thread(t).code;
            let marks = marks(self.thread(t));
            fn jumps(from: usize, to: usize, mark: usize) -> bool {
                from.min(to) <= mark && mark < from.max(to)
            }
            for (at, instr) in code.iter().enumerate() {
                if instr
                    .op
                    .target()
                    .is_some_and(|to| marks.iter().any(|&mark| jumps(at, to, mark)))
                {
                    return Err(unbuilt("a barrier behind a branch or in a loop"));
                }
            }
            let mine: Vec<String> = marks
                .iter()
                .map(|mark| {
                    let op = &code[*mark].op;
                    let among = match op {
                        Op::Give {
                            attendance: Attendance::Present,
                            ..
                        } => return Err(unbuilt("which threads run together")),
                        Op::Give { among, .. } => *among,
                        op => op.barrier().map_or(Scope::Cta, |barrier| barrier.domain),
                    };
                    self.language.barrier(
                        op,
                        GroupSeat {
                            of: self.mates(t, among).len() as u32,
                            ..GroupSeat::ALONE
                        }
                        .all(),
                    )
                })
                .collect::<Result<_, _>>()?;
            match &all {
                Some(others) if *others != mine => {
                    return Err(unbuilt("different barriers of threads of one group"));
                }
                _ => all = Some(mine),
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// The kinds of address that each register of a thread may hold.
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
        for o in &observed {
            if let Observable::Reg(of, reg) = o
                && *of == t
                && held[usize::from(reg.0)].any()
            {
                return Err(unbuilt("a final value that is an address"));
            }
        }
        for instr in &thread.code {
            if instr
                .op
                .written()
                .is_some_and(|value| self.spaces(value, &held).any())
            {
                return Err(unbuilt("an address that is stored"));
            }
        }
        Ok(held)
    }

    fn space(&self, loc: LocId) -> Spaces {
        let local = self.shape.is_local(loc);
        Spaces {
            global: !local,
            local,
        }
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

    /// The slot in which a thread stores its value at the end of a part.
    fn slot(&self, part: usize, at: usize) -> usize {
        part * self.shape.group_size() + at
    }

    /// A part of a thread's code, without barriers.
    fn part(&self, t: ThreadId, part: usize, range: Range<usize>) -> Result<String, String> {
        let held = &self.addresses(t)?;
        let code = &self.thread(t).code;
        let label = |at: usize| format!("T{}_{at}", t.0);
        let language = self.language;
        let mut text = String::new();
        for at in range.clone() {
            if code.iter().any(|instr| instr.op.target() == Some(at)) {
                text += &language.label(&label(at));
            }
            let instr = &code[at];
            if instr.element.of > 1 || instr.element.cells > 1 {
                return Err(unbuilt(&format!(
                    "an access of several cells, line {}",
                    instr.line
                )));
            }
            let refuse = |what: &str| unbuilt(&format!("{what}, line {}", instr.line));
            let end = label(range.end);
            text += &match &instr.op {
                // Kernels cannot express instructions that end the program.
                op if op.aborts() => return Err(refuse("an instruction that ends the program")),
                Op::Branch { cond, target } => {
                    language.jump(t, cond, &label(*target), (*target <= at).then_some(&end))
                }
                Op::Assign { dst, value } => language.assign(ThreadRegister(t, *dst), value),
                Op::Take { dst, lane } => {
                    // The latest handover comes before this part.
                    let marks = marks(self.thread(t)).into_iter().enumerate();
                    let mut last = marks.filter(|(_, at)| *at < range.start).filter_map(
                        |(part, at)| match code[at].op {
                            Op::Give { among, .. } => Some((part, among)),
                            _ => None,
                        },
                    );
                    let (part, among) = last
                        .next_back()
                        .ok_or_else(|| refuse("a value that no lane handed over"))?;
                    // A value from a missing lane was never written: such programs are undefined.
                    let mate = self.mates(t, among).get(usize::from(*lane)).copied();
                    let mate =
                        mate.ok_or_else(|| refuse("a value of a lane that does not exist"))?;
                    Ok(language.take(ThreadRegister(t, *dst), self.slot(part, mate)))
                }
                Op::Choice { dst, .. } => language.assign(ThreadRegister(t, *dst), &Expr::Const(0)),
                op if op.is_fence() => language.fence(op),
                op if op.is_access() => {
                    let spaces = self.spaces(op.address().expect("an access has one"), held);
                    let space = match (spaces.global, spaces.local) {
                        (true, false) => KernelSpace::Global,
                        (false, true) => KernelSpace::Local,
                        (false, false) => return Err(refuse("an address that is a number")),
                        (true, true) => return Err(refuse("an address of memory of either kind")),
                    };
                    language.access(t, op, space)
                }
                op => Err(format!("this {}", op.noun())),
            }
            .map_err(|what| refuse(&what))?;
        }
        text += &language.label(&label(range.end));
        if let Some(Op::Give { value, .. }) = code.get(range.end).map(|instr| &instr.op) {
            text += &language.give(t, value, self.slot(part, self.at(t)))?;
        }
        Ok(text)
    }

    /// The index of a thread in the group.
    fn at(&self, t: ThreadId) -> usize {
        self.threads
            .iter()
            .position(|&u| u == t)
            .expect("it is one of them")
    }

    /// The threads of the group that share a group of that scope with one, in order of rank.
    fn mates(&self, t: ThreadId, among: Scope) -> Vec<usize> {
        let place = |u: ThreadId| &self.thread(u).place;
        self.threads
            .iter()
            .enumerate()
            .filter(|(_, u)| among == Scope::Cta || **u == t || place(**u).same(place(t), among))
            .map(|(at, _)| at)
            .collect()
    }

    /// The results that the group stores after an instance.
    fn results(&self) -> Result<String, String> {
        let mut text = String::new();
        let observables = self.test.observables();
        for (at, &t) in self.threads.iter().enumerate() {
            let mut lines = self
                .language
                .result(self.shape.word(ResultWord::End(t)), ResultValue::End);
            let mut put = |i: usize, value: ResultValue| {
                lines += &self
                    .language
                    .result(self.shape.word(ResultWord::Final(i)), value);
            };
            for (i, observable) in observables.iter().enumerate() {
                match *observable {
                    Observable::Reg(of, reg) if of == t => {
                        put(i, ResultValue::Register(ThreadRegister(t, reg)))
                    }
                    Observable::Mem { loc, index, viewer }
                        if self.shape.is_local(loc) && at == 0 =>
                    {
                        if viewer.is_none_or(|viewer| self.threads.contains(&viewer)) {
                            let object = self.shape.local.iter().find(|object| object.loc == loc);
                            let (offset, cell) = &object
                                .ok_or_else(|| unbuilt("local memory of no group"))?
                                .cells[index as usize];
                            put(i, ResultValue::Local(loc, *offset, cell.ty));
                        }
                    }
                    Observable::Reg(..) | Observable::Mem { .. } => {}
                }
            }
            text += &self.language.only(
                ThreadSelection {
                    group: self.number,
                    at: Some(at),
                    running: false,
                },
                &lines,
            );
        }
        Ok(text)
    }
}
