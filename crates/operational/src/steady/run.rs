//! Runs all threads of a program once, each as far as it comes, and records the order of accesses.
//!
//! # Invariants
//! - An asynchronous operation performs its accesses when its thread begins it, and signals its
//!   mbarrier object when no thread can go on. So a wait sees as few operations as it can.
//! - A run stops at everything that may differ between executions: a branch or an address that
//!   depends on an unknown value, a strong read, an arrival whose phase is not certain.

mod library;
mod meetings;
mod objects;
mod operations;
mod rules;
mod tensors;

use std::collections::{BTreeMap, VecDeque};

use super::barriers::{BarrierKey, RunBarriers};
use super::clock::{Clock, Performer};
use super::places::RunMemory;
use super::shadow::{AccessKind, RunRace, Shadow, Touch};
use super::tensor_memory::TensorMemory;
use program::mbarrier::MbarrierState;
use program::{Access, BinOp, Expr, Init, Instr, Op, Program, RegId, Scope, Space, Tag, ThreadId};

/// The most micro-ops of a thread.
const MOST_STEPS: usize = 1 << 20;
/// The warps of a warpgroup (PTX ISA, *Warpgroup*).
const WARPS: u32 = 4;
/// The tags of accesses that may order others, or differ between executions.
const STRONG: [Tag; 8] = [
    Tag::Atomic,
    Tag::Volatile,
    Tag::Mmio,
    Tag::Relaxed,
    Tag::Acquire,
    Tag::Release,
    Tag::Begins,
    Tag::Ends,
];
/// The families of groups: `cp.async`, bulk copies, matrix instructions, reads and writes of tensor
/// memory.
const FAMILIES: usize = 5;
const BULK: usize = 1;
const MATRICES: usize = 2;
const TENSOR_LOADS: usize = 3;
const TENSOR_STORES: usize = 4;

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
    /// By lane: the value that it brought when this thread last met it.
    brought: Vec<Option<i64>>,
    groups: [ThreadGroups; FAMILIES],
    /// The performers of its products of tensor cores; the last one is of those since its last
    /// `tcgen05.commit`, if any came.
    products: Vec<Performer>,
    committed: bool,
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
    /// Of an arrival, the phase for which it counts.
    phase: Option<usize>,
}

/// A barrier that a thread names.
struct NamedBarrier {
    key: BarrierKey,
    members: Vec<usize>,
    count: Option<i64>,
}

/// A phase of an object, and a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectPhase {
    /// The number of the object.
    pub(super) object: usize,
    pub(super) phase: i64,
    pub(super) thread: usize,
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
    /// Where another execution may go another way than this one.
    parting: Option<Parting>,
    /// The waits at objects that passed.
    passed: Vec<PassedWait>,
    tensors: TensorMemory,
    /// By thread: its barriers and meetings, in order.
    turns: Vec<Vec<(Scope, usize)>>,
    /// Operations that expect bytes, without a later arrival of their thread in the phase.
    expected: Vec<(ObjectPhase, usize)>,
    /// What may break a rule of the model in some execution, and why.
    doubt: Option<(usize, usize, &'static str)>,
}

/// A place from which executions may go several ways, of which the run goes one.
#[derive(Clone, Copy, Debug)]
enum Parting {
    /// A wait in vain, which may pass or never end in another execution.
    Wait(usize, usize),
    /// An operation that ends a phase, and a copy that has yet to signal the object.
    Phase {
        ended: (usize, usize),
        outstanding: (usize, usize),
    },
}

/// A wait at an mbarrier object that passed.
#[derive(Clone, Copy, Debug)]
struct PassedWait {
    /// The number of the object.
    object: usize,
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
                products: Vec::new(),
                committed: true,
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
            parting: None,
            passed: Vec::new(),
            tensors: Default::default(),
            turns: vec![Vec::new(); n],
            expected: Vec::new(),
            doubt: None,
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
    pub(super) fn missable(&self) -> Option<(usize, usize)> {
        let mut passed = self.passed.iter();
        let missed = passed.find(|wait| {
            let object = self.barriers.numbered(wait.object);
            let next = object.and_then(|object| {
                let next = object.complete.get(wait.over)?;
                Some((next, object.all_begun.get(wait.over)?))
            });
            let t = wait.site.0;
            next.is_some_and(|(next, begun)| next.of(t).max(begun.of(t)) < wait.event)
        });
        missed.map(|wait| wait.site)
    }

    /// Why other executions may go another way than this run, which has ended.
    pub(super) fn unclear(&self) -> Option<String> {
        let told = |(t, at): (usize, usize)| {
            let instr = self.instr(t, at);
            format!("`{}` (line {})", instr.text, instr.line.number)
        };
        Some(match self.parting? {
            Parting::Wait(t, at) => {
                format!("{}, a wait that may end before, or never", told((t, at)))
            }
            Parting::Phase { ended, outstanding } => format!(
                "{} ends a phase before {} signals",
                told(ended),
                told(outstanding)
            ),
        })
    }

    /// A phase that ends too early, in words.
    pub(super) fn early(&self) -> Option<String> {
        let Some(Parting::Phase { ended, outstanding }) = self.parting else {
            return None;
        };
        let [ended, outstanding] =
            [ended, outstanding].map(|(t, at)| self.instr(t, at).line.number);
        Some(format!(
            "a phase ends with line {ended}, while the copy of line {outstanding} is under way: \
             its mbarrier object expects fewer bytes than come"
        ))
    }

    /// The state of the mbarrier object at which a thread waits, in words.
    pub(super) fn state_of_wait(&self, t: usize, at: usize) -> Option<String> {
        let Op::Rmw { addr, write, .. } = &self.instr(t, at).op else {
            return None;
        };
        let address = self
            .eval(t, addr)
            .filter(|_| write.tags.has(Tag::Mbarrier))?;
        let state = MbarrierState::of(self.memory.load(address, write.ty.bytes())?);
        let lost = state.pending == 0 && state.bytes != 0;
        let why = if lost {
            ": other bytes come than are expected"
        } else {
            ""
        };
        Some(format!("its object is in {}{why}", state.text()))
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
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } if instr.op.has(Tag::Object) => {
                if self.library(t, at)? == Turn::Waits {
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
        let is_strong = |access: &Access| access.scope.is_some() || access.tags.has_any(&STRONG);
        if op.accesses().any(is_strong) || matches!(op, Op::Rmw { .. }) {
            return unsteady(instr, "a strong access");
        }
        let Some(access) = op.accesses().last() else {
            return Ok(());
        };
        let has_proxies = self.program.dialect.row().proxies;
        if has_proxies && !access.tags.has(Tag::Generic) {
            return unsteady(instr, "an access through another proxy");
        }
        let write = op.write().is_some();
        let event = self.tick(t);
        let address = op
            .address()
            .and_then(|addr| self.eval(t, addr))
            .unwrap_or(0);
        self.doubt_object(t, at);
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
}
