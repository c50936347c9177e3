//! Runs all threads of a program once, each as far as it comes, and records the order of accesses.
//!
//! # Invariants
//! - An asynchronous operation performs its accesses when its thread begins it, and signals its
//!   mbarrier object when no thread can go on. So a wait sees as few operations as it can.
//! - A run stops at everything that may differ between executions: a branch or an address that
//!   depends on an unknown value, a strong read, an arrival whose phase is not certain.

use std::collections::{BTreeMap, VecDeque};

use super::barriers::{BarrierKey, RunBarriers};
use super::clock::{Clock, Performer};
use super::places::RunMemory;
use super::shadow::{AccessKind, RunRace, Shadow, Touch};
use program::mbarrier::{PHASE, PHASES, count_of, phase_of};
use program::{
    ATTENDED, Access, Attendance, Barrier, BarrierAction, BarrierNaming, BinOp, EventKind, Expr,
    Init, Instr, Mark, Op, Program, RegId, Scope, Space, Tag, ThreadId, Update,
};

/// The most micro-ops of a thread.
const MOST_STEPS: usize = 1 << 20;
/// The warps of a warpgroup (PTX ISA, *Warpgroup*).
const WARPS: u32 = 4;
/// The families of groups: `cp.async`, bulk copies, matrix instructions.
const FAMILIES: usize = 3;
const BULK: usize = 1;
const MATRICES: usize = 2;

/// Why a run ends early.
#[derive(Clone, Debug)]
pub(super) enum EarlyEnd {
    /// The run says nothing of other executions.
    Unsteady(String),
    /// An operation whose precondition does not hold.
    Misuse(usize, usize),
}

/// What a thread did when it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    On,
    /// It waits, or looked in vain.
    Waits,
}

/// The groups of a family that a thread made.
#[derive(Clone, Debug, Default)]
struct ThreadGroups {
    /// The performers of each group: of its reads, and of its writes.
    made: Vec<Option<[Performer; 2]>>,
    open: Option<[Performer; 2]>,
}

/// A thread of the run.
#[derive(Clone, Debug)]
struct RunThread {
    pc: usize,
    regs: Vec<Option<i64>>,
    steps: usize,
    ended: bool,
    /// Whether it looked in vain, and where.
    in_vain: Option<usize>,
    /// The values of its last meeting.
    brought: Vec<Option<i64>>,
    groups: [ThreadGroups; FAMILIES],
    /// What it knew at its last `wgmma.fence`.
    fenced: Clock,
    /// The objects that it initialised, and those before its last `fence.mbarrier_init`.
    inits: Vec<i64>,
    released: Vec<i64>,
}

/// The signal that ends an operation.
#[derive(Clone, Debug)]
struct Completion {
    performers: Vec<Performer>,
    site: (usize, usize),
    address: i64,
    /// The bytes of the object, and its memory.
    object: Option<TouchedBytes>,
    /// What its thread knew as it began.
    known: Clock,
}

/// A barrier that a thread names.
struct NamedBarrier {
    key: BarrierKey,
    members: Vec<usize>,
    count: Option<i64>,
}

/// A run in progress.
pub(super) struct SteadyRun<'p> {
    program: &'p Program,
    /// The lane that `elect.sync` elects: the first, or the last.
    last_lane: bool,
    pub(super) memory: RunMemory,
    threads: Vec<RunThread>,
    pub(super) clocks: Vec<Clock>,
    performers: usize,
    barriers: RunBarriers,
    pending: VecDeque<Completion>,
    pub(super) shadow: Shadow,
    /// By thread: the threads of its warp, its CTA and its cluster.
    mates: BTreeMap<Scope, Vec<Vec<usize>>>,
    /// The number of events.
    pub(super) events: usize,
    /// A look in vain behind which its thread went on.
    strayed: Option<(usize, usize)>,
    /// A wait in vain that another execution may not have.
    unclear: Option<(usize, usize)>,
    /// The waits at objects that passed.
    passed: Vec<PassedWait>,
}

/// A wait at an mbarrier object that passed.
#[derive(Clone, Copy, Debug)]
struct PassedWait {
    address: i64,
    /// The number of phases that were over in the first state that let it pass.
    over: usize,
    site: (usize, usize),
    event: u32,
}

type Ended<T> = Result<T, EarlyEnd>;
/// Ranges of bytes, and their memory: 0 shared, 1 other.
type TouchedBytes = (Vec<(i64, i64)>, usize);

fn unsteady<T>(instr: &Instr, why: &str) -> Ended<T> {
    let place = format!("`{}` (line {}), {why}", instr.text, instr.line);
    Err(EarlyEnd::Unsteady(place))
}

/// Whether an instruction elects a lane.
pub(super) fn elects(instr: &Instr) -> bool {
    let assembly = instr.assembly.as_ref();
    assembly.is_some_and(|assembly| assembly.opcode == "elect")
}

/// The lines of two accesses.
fn lines(program: &Program, a: &Touch, b: &Touch) -> [u32; 2] {
    [a, b].map(|touch| {
        let (t, at) = touch.site;
        program.threads[t].code[at].line.number
    })
}

impl<'p> SteadyRun<'p> {
    /// A run before its first step.
    ///
    /// # Errors
    /// If the program has no such run.
    pub(super) fn new(program: &'p Program, last_lane: bool) -> Result<SteadyRun<'p>, String> {
        if program.host.is_some() {
            return Err("a host program".to_owned());
        }
        let memory = RunMemory::new(program)?;
        let n = program.threads.len();
        let first = |reg: &program::Register, t: usize| match &reg.init {
            Init::Int(value) => Some(*value),
            Init::Address { loc, index } => {
                let viewer = Some(ThreadId(t as u16));
                memory.map.address(program, *loc, *index, viewer)
            }
            Init::Unknown => None,
        };
        let threads = program
            .threads
            .iter()
            .enumerate()
            .map(|(t, thread)| RunThread {
                pc: 0,
                regs: thread.regs.iter().map(|reg| first(reg, t)).collect(),
                steps: 0,
                ended: thread.code.is_empty(),
                in_vain: None,
                brought: Vec::new(),
                groups: Default::default(),
                fenced: Clock::default(),
                inits: Vec::new(),
                released: Vec::new(),
            });
        let threads = threads.collect();
        let scopes = [Scope::Warp, Scope::Cta, Scope::Cluster, Scope::Grid];
        let of = |t: usize, scope: Scope| {
            let mate =
                |u: &usize| program.same_group(ThreadId(t as u16), ThreadId(*u as u16), scope);
            (0..n).filter(mate).collect::<Vec<_>>()
        };
        let mates = scopes.map(|scope| (scope, (0..n).map(|t| of(t, scope)).collect()));
        let mates: BTreeMap<Scope, Vec<Vec<usize>>> = mates.into_iter().collect();
        if (0..n).any(|t| mates[&Scope::Cluster][t].len() > mates[&Scope::Cta][t].len()) {
            return Err("a cluster of several CTAs".to_owned());
        }
        Ok(SteadyRun {
            program,
            last_lane,
            memory,
            threads,
            clocks: vec![Clock::default(); n],
            performers: n,
            barriers: RunBarriers::default(),
            pending: VecDeque::new(),
            shadow: Shadow::default(),
            mates,
            events: 0,
            strayed: None,
            unclear: None,
            passed: Vec::new(),
        })
    }

    /// Runs to the end. Returns the places of the threads that wait forever, if some do.
    pub(super) fn finish(&mut self, late: &dyn Fn() -> bool) -> Ended<Vec<(usize, usize)>> {
        loop {
            let mut moved = false;
            for t in 0..self.threads.len() {
                if late() {
                    return Err(EarlyEnd::Unsteady("out of time".to_owned()));
                }
                while !self.threads[t].ended {
                    let before = self.events;
                    let turn = self.step(t)?;
                    if let Some((t, at)) = self.strayed {
                        return unsteady(self.instr(t, at), "a look without a loop around it");
                    }
                    moved |= self.events > before;
                    if turn == Turn::Waits {
                        break;
                    }
                }
            }
            if moved {
                continue;
            }
            if let Some(completion) = self.pending.pop_front() {
                self.complete(&completion)?;
                continue;
            }
            let threads = self.threads.iter().enumerate();
            let waiting = threads.filter(|(_, thread)| !thread.ended);
            return Ok(waiting
                .map(|(t, thread)| (t, thread.in_vain.unwrap_or(thread.pc)))
                .collect());
        }
    }

    /// A wait that may miss its phase in another execution: the next phase may be over, too, before
    /// the thread looks, and then the wait is for the one behind it.
    pub(super) fn missable(&mut self) -> Option<(usize, usize)> {
        let passed = std::mem::take(&mut self.passed);
        let mut passed = passed.iter();
        let missed = passed.find(|wait| {
            let object = self.barriers.object(wait.address);
            let next = object.complete.get(wait.over);
            next.is_some_and(|next| next.of(wait.site.0) < wait.event)
        });
        missed.map(|wait| wait.site)
    }

    /// Why other executions may go another way than this run, which has ended.
    pub(super) fn unclear(&self) -> Option<String> {
        let (t, at) = self.unclear?;
        let instr = self.instr(t, at);
        let (text, line) = (&instr.text, instr.line.number);
        Some(format!(
            "`{text}` (line {line}), a wait that may end before, or never"
        ))
    }

    fn instr(&self, t: usize, at: usize) -> &'p Instr {
        &self.program.threads[t].code[at]
    }

    fn eval(&self, t: usize, e: &Expr) -> Option<i64> {
        self.eval_with(t, e, None)
    }

    /// The value of an expression; with the value of one register in place of its own.
    fn eval_with(&self, t: usize, e: &Expr, with: Option<(RegId, i64)>) -> Option<i64> {
        let value = |e: &Expr| self.eval_with(t, e, with);
        match e {
            Expr::Const(v) => Some(*v),
            Expr::Reg(reg) => match with {
                Some((own, value)) if own == *reg => Some(value),
                _ => self.threads[t].regs[usize::from(reg.0)],
            },
            Expr::Address(loc) => self.memory.address(self.program, *loc, t),
            Expr::Bin(BinOp::Unknown | BinOp::Tells, ..) => None,
            Expr::Bin(op, ty, a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                (!op.divides() || ty.wrap(b) != 0).then(|| op.apply(*ty, a, b))
            }
            Expr::Cmp(op, ty, a, b) => Some(i64::from(op.holds(*ty, value(a)?, value(b)?))),
            Expr::Select(cond, a, b) => match value(cond) {
                Some(0) => value(b),
                Some(_) => value(a),
                None => value(a).filter(|known| value(b) == Some(*known)),
            },
            Expr::Cast(ty, a) => Some(ty.wrap(value(a)?)),
            Expr::Fused(..) => None,
        }
    }

    /// Executes a micro-op of a thread, or begins an asynchronous operation.
    fn step(&mut self, t: usize) -> Ended<Turn> {
        let at = self.threads[t].pc;
        let Some(instr) = self.program.threads[t].code.get(at) else {
            self.threads[t].ended = true;
            self.events += 1;
            return Ok(Turn::On);
        };
        self.threads[t].steps += 1;
        if self.threads[t].steps > MOST_STEPS {
            return unsteady(instr, "in a loop that does not end soon");
        }
        if instr.op.has(Tag::Asynchronous) {
            return self.begin(t, at);
        }
        let mut next = at + 1;
        match &instr.op {
            Op::Assign { dst, value } => {
                let value = self.eval(t, value);
                self.set(t, *dst, value);
            }
            Op::Branch { cond, target } => match self.eval(t, cond) {
                None => return unsteady(instr, "with a condition on an unknown value"),
                Some(0) => {}
                Some(_) => next = *target,
            },
            Op::Mark { mark, .. } => {
                if self.mark(t, at, mark)? == Turn::Waits {
                    return Ok(Turn::Waits);
                }
            }
            Op::Barrier(barrier) => {
                if self.barrier(t, at, barrier)? == Turn::Waits {
                    return Ok(Turn::Waits);
                }
            }
            Op::Give { .. } => return self.meet(t, at),
            Op::Take { dst, lane } => {
                let brought = &self.threads[t].brought;
                let value = brought.get(usize::from(*lane)).copied().flatten();
                self.set(t, *dst, value);
            }
            Op::Choice { dst, .. } => {
                if !elects(instr) {
                    return unsteady(instr, "with a free choice");
                }
                let warp = &self.mates[&Scope::Warp][t];
                let elected = if self.last_lane {
                    warp.last()
                } else {
                    warp.first()
                };
                self.set(t, *dst, Some(i64::from(elected == Some(&t))));
            }
            Op::Rmw { .. } if instr.op.has(Tag::Mbarrier) => {
                if self.object(t, at)? == Turn::Waits {
                    self.threads[t].pc = next;
                    return Ok(Turn::Waits);
                }
            }
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } => self.access(t, at)?,
            Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => {
                return unsteady(instr, "a call of the runtime");
            }
        }
        self.threads[t].pc = next;
        Ok(Turn::On)
    }

    fn set(&mut self, t: usize, dst: RegId, value: Option<i64>) {
        self.threads[t].regs[usize::from(dst.0)] = value;
    }

    /// Counts an event of a thread, and returns its number.
    fn tick(&mut self, t: usize) -> u32 {
        self.events += 1;
        let thread = &mut self.threads[t];
        // A look in vain must lead back to itself: otherwise the course depends on the schedule.
        if let Some(at) = thread.in_vain.take()
            && at != thread.pc
        {
            self.strayed.get_or_insert((t, at));
        }
        let number = self.clocks[t].of(t) + 1;
        self.clocks[t].learn(t, number);
        number
    }

    /// The ranges of bytes that an access touches, and its memory: 0 shared, 1 other. `None` for
    /// memory that no thread writes for another.
    fn ranges(&self, t: usize, at: usize, access: &Access) -> Ended<Option<TouchedBytes>> {
        let instr = self.instr(t, at);
        let address = instr.op.address().and_then(|addr| self.eval(t, addr));
        let Some(address) = address else {
            return unsteady(instr, "at an address that depends on an unknown value");
        };
        let bytes = i64::from(access.ty.bytes());
        let Some((copy, shift)) = self.memory.copy(address, address + bytes) else {
            return unsteady(instr, "at an address outside of all memory");
        };
        let ranges = match &instr.tile {
            None => vec![(address, address + bytes)],
            Some(tile) => {
                let value = |e: &Expr| self.eval(t, e);
                match tile.ranges(address - copy.base, &value) {
                    Some(all) => all
                        .into_iter()
                        .map(|(a, b)| (a + copy.base, b + copy.base))
                        .collect(),
                    None => return unsteady(instr, "of a tile at unknown coordinates"),
                }
            }
        };
        if ranges
            .iter()
            .any(|(from, to)| *from < copy.base || *to > copy.end)
        {
            return unsteady(instr, "of a tile that leaves its object");
        }
        let memory = match copy.space {
            Space::Shared => 0,
            Space::Global => 1,
            _ => return Ok(None),
        };
        let ranges = ranges.into_iter().map(|(a, b)| (a + shift, b + shift));
        Ok(Some((ranges.collect(), memory)))
    }

    /// An access of the thread itself.
    fn access(&mut self, t: usize, at: usize) -> Ended<()> {
        let instr = self.instr(t, at);
        let op = &instr.op;
        let strong = op.accesses().any(|access| access.scope.is_some());
        if strong || matches!(op, Op::Rmw { .. }) {
            return unsteady(instr, "a strong access");
        }
        let Some(access) = op.accesses().last() else {
            return Ok(());
        };
        if !access.tags.has(Tag::Generic) {
            return unsteady(instr, "an access through another proxy");
        }
        let write = op.write().is_some();
        let event = self.tick(t);
        let address = op
            .address()
            .and_then(|addr| self.eval(t, addr))
            .unwrap_or(0);
        if let Some((ranges, memory)) = self.ranges(t, at, access)? {
            let touch = Touch {
                performer: t,
                event,
                site: (t, at),
                write,
                kind: AccessKind::Weak,
                async_proxy: false,
                tensormap: false,
                memory,
            };
            let known = self.clocks[t].clone();
            self.touch(touch, &ranges, &known)?;
        }
        let bytes = access.ty.bytes();
        match op {
            Op::Load { dst, access, .. } => {
                let value = self.memory.load(address, bytes).map(|v| access.ty.wrap(v));
                self.set(t, *dst, value);
            }
            Op::Store { value, .. } => {
                let value = self.eval(t, value);
                self.memory
                    .store(address, address + i64::from(bytes), value);
            }
            _ => {}
        }
        Ok(())
    }

    fn touch(&mut self, touch: Touch, ranges: &[(i64, i64)], known: &Clock) -> Ended<()> {
        let program = self.program;
        let is_new = |races: &[RunRace], a: &Touch, b: &Touch| {
            let lines = lines(program, a, b);
            !races
                .iter()
                .any(|race| self::lines(program, &race.first, &race.second) == lines)
        };
        self.shadow.touch(touch, ranges, known, &is_new);
        match self.shadow.rewritten.take() {
            Some((t, at)) => unsteady(self.instr(t, at), "with a tensor map that threads write"),
            None => Ok(()),
        }
    }

    /// Begins an asynchronous operation: it performs its accesses, and the thread goes on.
    fn begin(&mut self, t: usize, first: usize) -> Ended<Turn> {
        let code = &self.program.threads[t].code;
        let end = first
            + code[first..]
                .iter()
                .take_while(|i| i.id == code[first].id)
                .count();
        let tracked = code[first..end]
            .iter()
            .any(|i| i.op.has(Tag::Asynchronous) && i.op.has(Tag::Mbarrier));
        self.tick(t);
        let mut own: Option<Performer> = None;
        let mut at = first;
        while at < end {
            let instr = &code[at];
            at += 1;
            match &instr.op {
                Op::Assign { dst, value } => {
                    let value = self.eval(t, value);
                    self.set(t, *dst, value);
                }
                Op::Branch { cond, target } => match self.eval(t, cond) {
                    None => return unsteady(instr, "with an unknown value"),
                    Some(0) => {}
                    Some(_) => at = *target,
                },
                Op::Load { access, .. } | Op::Store { access, .. } => {
                    let write = instr.op.write().is_some();
                    let tracked = tracked.then_some(&mut own);
                    let performer = self.performer(t, access, write, tracked);
                    self.perform(t, at - 1, access, performer)?;
                }
                Op::Rmw { addr, write, .. } if write.tags.has(Tag::MbarrierBytes) => {
                    let Some(address) = self.eval(t, addr) else {
                        return unsteady(instr, "with an mbarrier object at an unknown address");
                    };
                    let performers = own.into_iter().collect();
                    let site = (t, at - 1);
                    let object = self.ranges(t, at - 1, write)?;
                    let known = self.clocks[t].clone();
                    self.pending.push_back(Completion {
                        performers,
                        site,
                        address,
                        object,
                        known,
                    });
                    // The check of its precondition follows.
                    at += 2;
                }
                _ => return unsteady(instr, "an asynchronous operation of this form"),
            }
        }
        self.threads[t].pc = end;
        Ok(Turn::On)
    }

    /// The performer of an access of an operation.
    fn performer(
        &mut self,
        t: usize,
        access: &Access,
        write: bool,
        own: Option<&mut Option<Performer>>,
    ) -> Performer {
        let new = self.performers;
        if let Some(own) = own {
            if own.is_none() {
                self.performers += 1;
            }
            return *own.get_or_insert(new);
        }
        let family = match () {
            () if access.tags.has(Tag::Wgmma) => MATRICES,
            () if access.tags.has_any(&[Tag::AsyncProxy, Tag::TensormapProxy]) => BULK,
            () => 0,
        };
        let open = &mut self.threads[t].groups[family].open;
        if open.is_none() {
            self.performers += 2;
        }
        open.get_or_insert([new, new + 1])[usize::from(write)]
    }

    /// An access of an operation.
    fn perform(&mut self, t: usize, at: usize, access: &Access, performer: Performer) -> Ended<()> {
        let instr = self.instr(t, at);
        if access.scope.is_some() {
            return unsteady(instr, "an asynchronous operation of this form");
        }
        let write = instr.op.write().is_some();
        if let Some((ranges, memory)) = self.ranges(t, at, access)? {
            let touch = Touch {
                performer,
                event: 1,
                site: (t, at),
                write,
                kind: AccessKind::Weak,
                async_proxy: access.tags.has(Tag::AsyncProxy),
                tensormap: access.tags.has(Tag::TensormapProxy),
                memory,
            };
            let known = match access.tags.has(Tag::Wgmma) {
                true => self.threads[t].fenced.clone(),
                false => self.clocks[t].clone(),
            };
            self.touch(touch, &ranges, &known)?;
            if write {
                ranges
                    .iter()
                    .for_each(|(from, to)| self.memory.store(*from, *to, None));
            }
        }
        if let Op::Load { dst, addr, .. } = &instr.op {
            let map = access.tags.has(Tag::TensormapProxy);
            let address = self.eval(t, addr).filter(|_| map);
            let value = address.and_then(|at| self.memory.load(at, access.ty.bytes()));
            self.set(t, *dst, value);
        }
        Ok(())
    }

    /// Ends an operation: it signals its object.
    fn complete(&mut self, completion: &Completion) -> Ended<()> {
        let (t, at) = completion.site;
        if let Some((ranges, memory)) = &completion.object {
            let touch = Touch {
                performer: self.performers,
                event: 1,
                site: (t, at),
                write: true,
                kind: AccessKind::Object,
                async_proxy: false,
                tensormap: false,
                memory: *memory,
            };
            self.performers += 1;
            self.touch(touch, ranges, &completion.known)?;
        }
        let mut known = Clock::default();
        completion
            .performers
            .iter()
            .for_each(|own| known.learn(*own, 1));
        self.events += 1;
        let passed = self.update(t, at, completion.address)?;
        let Some((old, new)) = passed else {
            return Err(EarlyEnd::Misuse(t, at));
        };
        let object = self.barriers.object(completion.address);
        object.present.join(&known);
        if phase_of(old) != phase_of(new) {
            self.completed(t, at, completion.address)?;
        }
        Ok(())
    }

    /// Completes the phase of an object.
    fn completed(&mut self, t: usize, at: usize, address: i64) -> Ended<()> {
        if self.pending.iter().any(|other| other.address == address) {
            return unsteady(self.instr(t, at), "which other operations may come before");
        }
        self.barriers.object(address).advance();
        Ok(())
    }

    /// Applies an operation to the word of an mbarrier object. Returns the old word and the new
    /// one, if it writes.
    fn update(&mut self, t: usize, at: usize, address: i64) -> Ended<Option<(i64, i64)>> {
        let instr = self.instr(t, at);
        let Op::Rmw {
            dst: Some(dst),
            update: Update::When { cond, new },
            write,
            ..
        } = &instr.op
        else {
            return unsteady(instr, "an operation of this form on an mbarrier object");
        };
        let bytes = write.ty.bytes();
        let Some(old) = self.memory.load(address, bytes) else {
            return unsteady(instr, "on memory with an unknown value");
        };
        self.set(t, *dst, Some(old));
        let with = Some((*dst, old));
        match self.eval_with(t, cond, with) {
            None => unsteady(instr, "with a precondition on an unknown value"),
            Some(0) => Ok(None),
            Some(_) => {
                let Some(new) = self.eval_with(t, new, with) else {
                    return unsteady(instr, "with an unknown number");
                };
                self.memory
                    .store(address, address + i64::from(bytes), Some(new));
                Ok(Some((old, new)))
            }
        }
    }

    /// An operation of a thread on an mbarrier object.
    fn object(&mut self, t: usize, at: usize) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let Op::Rmw { addr, write, .. } = &instr.op else {
            return Ok(Turn::On);
        };
        let Some(address) = self.eval(t, addr) else {
            return unsteady(instr, "at an address that depends on an unknown value");
        };
        let tags = write.tags;
        let waits = tags.has(Tag::MbarrierWait);
        let init = tags.has(Tag::MbarrierInit);
        if tags.has(Tag::Relaxed) || waits && !tags.has(Tag::Acquire) {
            return unsteady(instr, "a relaxed operation");
        }
        let done = self.update(t, at, address)?;
        if waits && done.is_none() {
            let word = self.memory.load(address, write.ty.bytes());
            if word.is_none_or(|word| count_of(word) == 0) {
                return unsteady(instr, "on memory without an object");
            }
            if self.might_have_passed(t, at, address) {
                self.unclear.get_or_insert((t, at));
            }
            if self.threads[t].in_vain != Some(at) {
                self.looks(t, at, write)?;
            }
            self.threads[t].in_vain = Some(at);
            return Ok(Turn::Waits);
        }
        if waits && self.threads[t].in_vain != Some(at) {
            let known = self.clocks[t]
                .phases
                .get(&self.barriers.object(address).index);
            let known = known.copied().unwrap_or(0);
            let complete = self.barriers.object(address).complete.len() as i64;
            // It may look before the phase is over, so it does once.
            if let (true, Op::Rmw { dst: Some(dst), .. }, Some((word, _))) =
                (known < complete, &instr.op, done)
            {
                let earlier = (phase_of(word) - (complete - known)).rem_euclid(PHASES);
                let word = word & !((PHASES - 1) << PHASE) | earlier << PHASE;
                self.set(t, *dst, Some(word));
                self.threads[t].in_vain = Some(at);
                self.events += 1;
                return Ok(Turn::Waits);
            }
        }
        let event = self.tick(t);
        if let Some((ranges, memory)) = self.ranges(t, at, write)? {
            let kind = if init {
                AccessKind::Init
            } else {
                AccessKind::Object
            };
            let touch = Touch {
                performer: t,
                event,
                site: (t, at),
                write: true,
                kind,
                async_proxy: false,
                tensormap: false,
                memory,
            };
            let known = self.clocks[t].clone();
            self.touch(touch, &ranges, &known)?;
        }
        let Some((old, new)) = done else {
            // What follows finds the misuse.
            return Ok(Turn::On);
        };
        if init {
            self.barriers.renew(address);
            self.threads[t].inits.push(address);
            return Ok(Turn::On);
        }
        if waits {
            return self.passes(t, at, address, old);
        }
        let known = &self.clocks[t];
        let object = self.barriers.object(address);
        let phases = known.phases.get(&object.index).copied().unwrap_or(0);
        if phases != object.complete.len() as i64 {
            // PTX ISA, Phase of the mbarrier object: a wait for the phase before comes first.
            return match tags.has(Tag::MbarrierArrive) {
                true => Err(EarlyEnd::Misuse(t, at)),
                false => unsteady(instr, "possibly in an earlier phase"),
            };
        }
        if tags.has(Tag::MbarrierArrive) && !tags.has(Tag::Relaxed) {
            object.present.join(known);
        }
        if phase_of(old) != phase_of(new) {
            self.completed(t, at, address)?;
        }
        Ok(Turn::On)
    }

    /// A wait looks at an object in vain.
    fn looks(&mut self, t: usize, at: usize, access: &Access) -> Ended<()> {
        let Some((ranges, memory)) = self.ranges(t, at, access)? else {
            return Ok(());
        };
        let touch = Touch {
            performer: t,
            event: self.clocks[t].of(t) + 1,
            site: (t, at),
            write: false,
            kind: AccessKind::Object,
            async_proxy: false,
            tensormap: false,
            memory,
        };
        let known = self.clocks[t].clone();
        self.touch(touch, &ranges, &known)
    }

    /// Whether a wait in vain could have passed in an earlier phase of those that its thread does
    /// not know to be over.
    fn might_have_passed(&mut self, t: usize, at: usize, address: i64) -> bool {
        let Op::Rmw {
            dst: Some(dst),
            update: Update::When { cond, .. },
            write,
            ..
        } = &self.instr(t, at).op
        else {
            return true;
        };
        let Some(word) = self.memory.load(address, write.ty.bytes()) else {
            return true;
        };
        let object = self.barriers.object(address);
        let (index, complete) = (object.index, object.complete.len() as i64);
        let known = self.clocks[t].phases.get(&index).copied().unwrap_or(0);
        let phase = phase_of(word);
        (known..complete).any(|over| {
            let earlier = (phase - (complete - over)).rem_euclid(PHASES);
            let word = word & !((PHASES - 1) << PHASE) | earlier << PHASE;
            self.eval_with(t, cond, Some((*dst, word))) != Some(0)
        })
    }

    /// A wait that an object lets pass: it learns of the first phase that does.
    fn passes(&mut self, t: usize, at: usize, address: i64, word: i64) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let Op::Rmw {
            dst: Some(dst),
            update: Update::When { cond, .. },
            ..
        } = &instr.op
        else {
            return Ok(Turn::On);
        };
        let object = self.barriers.object(address);
        let (index, complete) = (object.index, object.complete.len() as i64);
        let known = self.clocks[t].phases.get(&index).copied().unwrap_or(0);
        let phase = phase_of(word);
        let lets_pass = |over: &i64| {
            let earlier = (phase - (complete - over)).rem_euclid(PHASES);
            let word = word & !((PHASES - 1) << PHASE) | earlier << PHASE;
            self.eval_with(t, cond, Some((*dst, word))) == Some(1)
        };
        let first = (known..=complete).find(lets_pass).unwrap_or(complete);
        self.passed.push(PassedWait {
            address,
            over: first as usize,
            site: (t, at),
            event: self.clocks[t].of(t),
        });
        if first > known {
            let given = self.barriers.object(address).complete[first as usize - 1].clone();
            self.clocks[t].join(&given);
        }
        Ok(Turn::On)
    }

    /// Fences, groups, and misuse.
    fn mark(&mut self, t: usize, at: usize, mark: &Mark) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let tags = &mark.tags;
        if tags.has(Tag::Misuse) {
            return Err(EarlyEnd::Misuse(t, at));
        }
        if mark.kind != EventKind::Fence || tags.has_any(&[Tag::Half, Tag::Alias, Tag::GridWait]) {
            return unsteady(instr, "a fence of this form");
        }
        let orders = tags.has_any(&[Tag::Acquire, Tag::Release, Tag::SeqCst, Tag::TensormapProxy]);
        if orders && !tags.has(Tag::MbarrierInit) {
            return unsteady(instr, "a fence of memory");
        }
        let family = match () {
            () if tags.has(Tag::Wgmma) => MATRICES,
            () if tags.has(Tag::Bulk) => BULK,
            () => 0,
        };
        if tags.has_any(&[Tag::WaitGroup, Tag::WaitGroupRead]) {
            let reads = tags.has(Tag::WaitGroupRead);
            return self.awaits(t, at, family, mark.pending.unwrap_or(0), reads);
        }
        self.tick(t);
        if tags.has(Tag::CommitGroup) {
            let groups = &mut self.threads[t].groups[family];
            let open = std::mem::take(&mut groups.open);
            groups.made.push(open);
        }
        if tags.has(Tag::WgmmaFence) {
            self.threads[t].fenced = self.clocks[t].clone();
        }
        if tags.has(Tag::ProxyFence) && tags.has(Tag::AsyncProxy) {
            let of_global = tags.has(Tag::OfGlobal);
            let of_shared = tags.has_any(&[Tag::OfCta, Tag::OfCluster]);
            if !of_global {
                self.clocks[t].fence(0);
            }
            if !of_shared {
                self.clocks[t].fence(1);
            }
        }
        if tags.has(Tag::MbarrierInit) {
            self.threads[t].released = self.threads[t].inits.clone();
            let own = self.threads[t].inits.clone();
            self.clocks[t].objects.extend(own);
        }
        Ok(Turn::On)
    }

    /// A wait for groups; one for matrix instructions is for those of the warpgroup.
    fn awaits(
        &mut self,
        t: usize,
        at: usize,
        family: usize,
        pending: u32,
        reads: bool,
    ) -> Ended<Turn> {
        let made = self.threads[t].groups[family].made.len();
        let until = made.saturating_sub(pending as usize);
        let of: Vec<usize> = match family {
            MATRICES => self.warpgroup(t),
            _ => vec![t],
        };
        let mut others = of.iter().map(|u| &self.threads[*u]);
        if others.any(|other| other.groups[family].made.len() < until && !other.ended) {
            self.threads[t].in_vain = Some(at);
            return Ok(Turn::Waits);
        }
        self.tick(t);
        for u in of {
            let made = &self.threads[u].groups[family].made;
            let done = made[..until.min(made.len())].iter().flatten();
            for [read, written] in done {
                self.clocks[t].learn(*read, 1);
                if !reads {
                    self.clocks[t].learn(*written, 1);
                }
            }
        }
        Ok(Turn::On)
    }

    fn warpgroup(&self, t: usize) -> Vec<usize> {
        let mates = self.mates[&Scope::Cta][t].iter().copied();
        let own = self.warpgroup_number(t);
        mates
            .filter(|u| *u == t || own.is_some() && self.warpgroup_number(*u) == own)
            .collect()
    }

    fn warpgroup_number(&self, t: usize) -> Option<u32> {
        let place = &self.program.threads[t].place;
        place.warp.map(|warp| warp / WARPS)
    }

    /// The key, the members and the count of a barrier.
    fn named(&self, t: usize, at: usize, barrier: &Barrier) -> Ended<NamedBarrier> {
        let instr = self.instr(t, at);
        let BarrierNaming::Counted { id, count } = &barrier.naming else {
            return unsteady(instr, "a barrier of a published suite");
        };
        let known = |e: &Expr| self.eval(t, e);
        let lanes = barrier.lanes.as_ref().map(known);
        let count = count.as_ref().map(known);
        let (Some(id), true) = (known(id), count != Some(None) && lanes != Some(None)) else {
            return unsteady(instr, "a barrier that an unknown value names");
        };
        let (count, lanes) = (count.flatten(), lanes.flatten());
        let Some(group) = self.mates.get(&barrier.domain).map(|all| &all[t]) else {
            return unsteady(instr, "a barrier of this scope");
        };
        let members = group.iter().enumerate();
        let members =
            members.filter(|(rank, _)| lanes.is_none_or(|lanes| lanes >> (*rank).min(63) & 1 == 1));
        Ok(NamedBarrier {
            key: BarrierKey {
                domain: barrier.domain,
                group: group[0],
                id,
                lanes,
            },
            members: members.map(|(_, u)| *u).collect(),
            count,
        })
    }

    /// A barrier of threads.
    fn barrier(&mut self, t: usize, at: usize, barrier: &Barrier) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let named = self.named(t, at, barrier)?;
        let state = self.barriers.barrier(named.key);
        let arrived = state.arrived.contains(&t);
        let waits_in = match barrier.action {
            BarrierAction::Wait => state.last.get(&t).copied(),
            _ if self.threads[t].in_vain == Some(at) => state.last.get(&t).copied(),
            _ => None,
        };
        if let Some(phase) = waits_in {
            return Ok(self.released(t, at, &named, phase));
        }
        if arrived || barrier.action == BarrierAction::Wait {
            return unsteady(instr, "out of turn");
        }
        if *state.count.get_or_insert(named.count) != named.count {
            return unsteady(instr, "with another count than before");
        }
        state.users.insert(t);
        if named
            .count
            .is_some_and(|count| state.users.len() as i64 > count)
        {
            return unsteady(instr, "by more threads than its count");
        }
        self.tick(t);
        let known = &self.clocks[t];
        let state = self.barriers.barrier(named.key);
        let phase = state.complete.len();
        if known.phases.get(&state.index).copied().unwrap_or(0) != phase as i64 {
            return unsteady(instr, "possibly in an earlier phase");
        }
        match barrier.arrive.has(Tag::Relaxed) {
            true => {
                state.present.join_relaxed(known);
                let released = self.threads[t].released.iter();
                state.present.objects.extend(released);
            }
            false => state.present.join(known),
        }
        state.arrived.push(t);
        state.last.insert(t, phase);
        if barrier.action == BarrierAction::Arrive {
            self.completes(&named);
            return Ok(Turn::On);
        }
        self.threads[t].in_vain = Some(at);
        Ok(self.released(t, at, &named, phase))
    }

    /// Completes the present phase of a barrier if all have arrived.
    fn completes(&mut self, named: &NamedBarrier) {
        let state = self.barriers.barrier(named.key);
        let all = match named.count {
            Some(count) => state.arrived.len() as i64 >= count,
            None => named
                .members
                .iter()
                .all(|u| state.arrived.contains(u) || self.threads[*u].ended),
        };
        if all && !state.arrived.is_empty() {
            state.advance();
            self.events += 1;
        }
    }

    /// Lets a thread pass a barrier if the phase of its arrival is complete.
    fn released(&mut self, t: usize, at: usize, named: &NamedBarrier, phase: usize) -> Turn {
        self.completes(named);
        let state = self.barriers.barrier(named.key);
        let Some(given) = state.complete.get(phase) else {
            self.threads[t].in_vain = Some(at);
            return Turn::Waits;
        };
        self.clocks[t].join(given);
        self.tick(t);
        Turn::On
    }

    /// A meeting of threads, which exchange values.
    fn meet(&mut self, t: usize, at: usize) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let asked = |u: usize| {
            let thread = &self.threads[u];
            let code = &self.program.threads[u].code;
            match code.get(thread.pc).map(|instr| &instr.op) {
                Some(Op::Give { among, lanes, .. }) => Some((*among, self.eval(u, lanes))),
                _ => None,
            }
        };
        let Op::Give {
            among, attendance, ..
        } = &instr.op
        else {
            return Ok(Turn::On);
        };
        let own = asked(t);
        let Some((_, Some(lanes))) = own else {
            return unsteady(instr, "among lanes that an unknown value names");
        };
        let Some(group) = self.mates.get(among).map(|all| all[t].clone()) else {
            return unsteady(instr, "a meeting of this scope");
        };
        if *attendance == Attendance::Present {
            return unsteady(instr, "a meeting of those that happen to be there");
        }
        let ranks: Vec<(usize, usize)> = group.into_iter().enumerate().collect();
        let mut brought: Vec<Option<i64>> = vec![Some(0); usize::from(ATTENDED) + 1];
        let mut came = Vec::new();
        let mut set = 0;
        for (rank, u) in ranks
            .into_iter()
            .filter(|(rank, _)| *rank < 64 && lanes >> rank & 1 == 1)
        {
            if self.threads[u].ended && attendance.spares_ended() {
                continue;
            }
            if asked(u) != own || self.threads[u].ended {
                self.threads[t].in_vain = Some(at);
                return Ok(Turn::Waits);
            }
            let Op::Give { value, .. } = &self.instr(u, self.threads[u].pc).op else {
                continue;
            };
            brought[rank] = self.eval(u, value);
            set |= 1 << rank;
            came.push(u);
        }
        if !came.contains(&t) {
            return Err(EarlyEnd::Misuse(t, at));
        }
        brought[usize::from(ATTENDED)] = Some(set);
        for u in came {
            self.tick(u);
            let thread = &mut self.threads[u];
            thread.brought.clone_from(&brought);
            thread.pc += 1;
        }
        Ok(Turn::On)
    }
}
