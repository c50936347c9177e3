//! Unrolling a thread into guarded events.
//!
//! A thread is executed symbolically, all paths at once. States that reach the same [`Position`] are merged: their
//! guards by disjunction, each register by a choice between its values. A round through a loop that executes no write
//! and no barrier and leaves every register that is still needed unchanged has no effect; one such round stands
//! for all that could follow, and the thread *spins* there ([`super::returns`]). Other iterations are continued up to the
//! bound, where the thread is *cut*.
//!
//! # Invariants
//! - Events of a thread are created in an order that contains program order.
//! - At every point of a thread the guards of done, spinning, cut and waiting states are disjoint and cover everything.
//! - Every state has a value for every register: a register set on one side of a branch keeps, on the other side, the
//!   value it had before.
//! - Unrolled for questions about progress ([`Purpose::Progress`]), threads end in further ways (see
//!   [`super::progress`]); otherwise nothing here depends on them.
//! # Sources
//! - Iterations without effect: specification of liveness in the style of Dartagnan's spin-loop detection.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::execute::union;
use super::graph::{MAX_STEPS, MAX_VALUE_DEPTH};
use super::loops::{Loops, Position, Step};
use super::pool::{Cond, TermId};
use super::progress::Purpose;
use super::returns::{LongLoops, Past};
use super::unrolled::{Ending, Endings, Unrolled, WaitKey};
use cat::rel::EventId;
use program::memory::Memory;
use program::options::Options;
use program::{BarrierNaming, Op, Program, ThreadId};
use verdict::Reason;

/// Read events that a value depends on in the eyes of the syntax.
pub(super) type Taint = Rc<BTreeSet<EventId>>;

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) guard: Cond,
    pub(super) regs: Vec<TermId>,
    /// What each register depends on, and whether the thread is here at all.
    pub(super) taints: Vec<Taint>,
    pub(super) ctrl: Taint,
    /// Whether nothing was executed since the thread could last stop.
    pub(super) fresh: bool,
}

/// The program-wide part of unrolling; threads are added one by one.
pub(super) struct Unroller<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory,
    pub(super) options: Options,
    pub(super) bound: u32,
    /// Waits that are known to let their thread pass.
    pub(super) passing: &'a FxHashSet<WaitKey>,
    /// Loops that are known to take too many iterations to be unrolled to their end.
    pub(super) long: &'a LongLoops,
    pub(super) purpose: Purpose,
    pub(super) out: Unrolled,
    /// Ways in which the present thread ends.
    pub(super) endings: Endings,
}

impl Unroller<'_> {
    /// Adds the events of a thread. `observed`: the registers needed at its end.
    pub(super) fn thread(&mut self, id: ThreadId, observed: &[bool]) -> Result<(), Reason> {
        let program = self.program;
        let thread = program.thread(id);
        let loops = Loops::new(thread, observed)?;
        self.out.has_loops |= loops.any();
        let no_taint = Taint::default();
        let regs: Vec<TermId> = thread
            .regs
            .iter()
            .map(|r| {
                let v = self.memory.initial(program, &r.init, Some(id));
                self.out.pool.constant(v)
            })
            .collect();
        let taints = vec![no_taint.clone(); regs.len()];
        let mut start = State { guard: Cond::TRUE, taints, regs, ctrl: no_taint, fresh: false };
        if !thread.code.is_empty() {
            self.may_stop(&mut start, 0)?;
        }
        let mut end: Option<State> = None;
        let mut ending = Ending {
            done: Cond::FALSE,
            cut: Cond::FALSE,
            cuts: Vec::new(),
            spinning: Cond::FALSE,
            regs: Vec::new(),
            progress: Endings::default(),
        };
        let mut past = Past::default();
        let suites = thread.code.iter().any(|i| is_of_suites(&i.op));
        let (mut unreached, mut reached) = (Vec::new(), vec![false; thread.code.len()]);
        let mut pending: BTreeMap<Position, State> = BTreeMap::new();
        let last = thread.code.len();
        if last == 0 {
            end = Some(start);
        } else {
            pending.insert(loops.start(0), start);
        }
        let mut steps = 0usize;
        while let Some((at, mut state)) = pending.pop_first() {
            steps += 1;
            if steps > MAX_STEPS {
                return Err(Reason::TooManySteps(MAX_STEPS));
            }
            self.out.pool.tick();
            self.out.pool.given_up()?;
            if !self.out.long.is_empty() {
                // It is unrolled anew, with their iterations counted.
                return Ok(());
            }
            let pc = at.pc();
            past.arrives(&at, &state, &loops);
            reached[pc] = true;
            let mut jumps: Vec<(Cond, usize)> = Vec::new();
            let instr = &thread.code[pc];
            match &instr.op {
                Op::Branch { cond, target } => {
                    let (value, taint) = self.eval(&state, cond, id);
                    let taken = self.out.pool.non_zero(value);
                    if taken.is_const() {
                        self.counts(&state, &at, &loops, &mut past, id);
                    }
                    if !taken.is_const() || !taint.is_empty() {
                        state.ctrl = union(&state.ctrl, &taint);
                    }
                    let pool = &mut self.out.pool;
                    let fallthrough = pool.not(taken);
                    jumps.push((pool.and(state.guard, taken), *target));
                    jumps.push((pool.and(state.guard, fallthrough), pc + 1));
                }
                op => {
                    if !matches!(op, Op::Assign { .. }) {
                        let (spent, header) = past.spent(&at);
                        if spent >= self.bound {
                            self.cuts(&mut ending, &state, loops.instr(header))?;
                            continue;
                        }
                        self.out.deepest = self.out.deepest.max(spent + 1);
                    }
                    if op.is_visible() || matches!(op, Op::Enqueue(_)) {
                        self.may_stop(&mut state, pc)?;
                    }
                    let effect = self.execute(&mut state, op, id, pc, &at)?;
                    past.does(&at, effect);
                    jumps.push((state.guard, pc + 1));
                }
            }
            for &(_, dead) in jumps.iter().filter(|(guard, _)| suites && *guard == Cond::FALSE) {
                unreached.push((dead, state.clone()));
            }
            jumps.retain(|(guard, _)| *guard != Cond::FALSE);
            let mut state = Some(state);
            for (i, &(guard, target)) in jumps.iter().enumerate() {
                // Threads have many registers and few branches: only a branch copies them.
                let last_jump = i + 1 == jumps.len();
                let mut next =
                    if last_jump { state.take() } else { state.clone() }.expect("taken by the last jump");
                next.guard = guard;
                if target == last {
                    self.merge(&mut end, next)?;
                    continue;
                }
                let to = match loops.step(&at, target) {
                    Step::Forward(to) => to,
                    Step::Back { to, round } => {
                        for (from, idle) in past.rounds(&mut self.out.pool, &next, &loops, (&to, round)) {
                            let pool = &mut self.out.pool;
                            ending.spinning = pool.or(ending.spinning, idle);
                            let busy = pool.not(idle);
                            let going_on = pool.and(next.guard, busy);
                            if self.purpose.is_progress() {
                                next.guard = idle;
                                self.spins(&next, &from, id)?;
                            } else {
                                // A run in which all is complete that is asked about goes on to see it.
                                self.asks_for_ever(idle, id, &|place| *place >= from);
                            }
                            next.guard = going_on;
                        }
                        if self.purpose.is_progress() {
                            self.repeats(&mut next, (&to, round), &past, &loops, id)?;
                        }
                        if next.guard == Cond::FALSE {
                            continue;
                        }
                        let spent = past.spent_after(&at, round);
                        if spent > self.bound {
                            self.cuts(&mut ending, &next, loops.instr(to.head(round)))?;
                            continue;
                        }
                        self.out.deepest = self.out.deepest.max(spent);
                        to
                    }
                };
                let mut slot = pending.remove(&to);
                self.merge(&mut slot, next)?;
                pending.insert(to, slot.expect("merged"));
            }
        }
        for (dead, state) in unreached {
            self.never_reached(state, dead, &reached, id);
        }
        if let Some(mut state) = end {
            // A command ends when its threads do, so that it matters whether they come to that.
            if last > 0 && program.host.as_ref().is_some_and(|h| h.command_of(id).is_some()) {
                self.may_stop(&mut state, last)?;
            }
            ending.done = state.guard;
            self.ends(&state)?;
            ending.regs = state.regs;
        } else {
            ending.regs = vec![self.out.pool.constant(0); thread.regs.len()];
        }
        ending.progress = std::mem::take(&mut self.endings);
        if let Some(state) = ending.progress.at_end.take() {
            ending.regs = state.regs;
        }
        self.out.endings.push(ending);
        Ok(())
    }

    /// Notes the registers of a state in which the thread ends, if somebody asks for them.
    pub(super) fn ends(&mut self, state: &State) -> Result<(), Reason> {
        if !matches!(self.purpose, Purpose::Progress { registers: true, .. }) || state.guard == Cond::FALSE {
            return Ok(());
        }
        let mut slot = self.endings.at_end.take();
        self.merge(&mut slot, state.clone())?;
        self.endings.at_end = slot;
        Ok(())
    }

    /// A place where a thread may stop for ever, if it executed anything since the last one.
    pub(super) fn may_stop(&mut self, state: &mut State, at: usize) -> Result<(), Reason> {
        if !matches!(self.purpose, Purpose::Progress { stops: true, .. })
            || state.fresh
            || state.guard == Cond::FALSE
        {
            return Ok(());
        }
        let pool = &mut self.out.pool;
        let stop = pool.fresh_choice();
        self.out.constraints.push(pool.implies(stop, state.guard));
        let here = pool.and(state.guard, stop);
        let on = pool.not(stop);
        let on = pool.and(state.guard, on);
        self.endings.stopped.push((at, stop));
        state.guard = here;
        self.ends(state)?;
        (state.guard, state.fresh) = (on, true);
        Ok(())
    }

    /// Merges a state into the one that waits at the same position.
    fn merge(&mut self, slot: &mut Option<State>, new: State) -> Result<(), Reason> {
        let Some(old) = slot else {
            *slot = Some(new);
            return Ok(());
        };
        let pool = &mut self.out.pool;
        let guard = pool.or(old.guard, new.guard);
        let choose_new = pool.restrict(new.guard, guard);
        for (o, n) in old.regs.iter_mut().zip(&new.regs) {
            *o = pool.ite(choose_new, *n, *o);
            if pool.depth(*o) > MAX_VALUE_DEPTH {
                return Err(Reason::TooDeepValue(MAX_VALUE_DEPTH));
            }
        }
        for (o, n) in old.taints.iter_mut().zip(&new.taints) {
            *o = union(o, n);
        }
        old.ctrl = union(&old.ctrl, &new.ctrl);
        old.fresh &= new.fresh;
        old.guard = guard;
        Ok(())
    }

    /// Ends a thread at the loop bound of the loop with that first instruction.
    fn cuts(&mut self, ending: &mut Ending, state: &State, header: usize) -> Result<(), Reason> {
        ending.cut = self.out.pool.or(ending.cut, state.guard);
        ending.cuts.push((state.guard, header));
        self.ends(state)
    }

    /// Notes the barriers of the suites on a way that is never taken, if no other way leads there. That values alone show that
    /// it is not taken makes no difference: to those who wait for all matching barriers of the program they count.
    fn never_reached(&mut self, mut state: State, from: usize, reached: &[bool], thread: ThreadId) {
        let code = &self.program.thread(thread).code;
        let mut seen = vec![false; code.len()];
        let mut todo = vec![from];
        while let Some(pc) = todo.pop() {
            if pc >= code.len() || std::mem::replace(&mut seen[pc], true) || reached[pc] {
                continue;
            }
            let op = &code[pc].op;
            if let Op::Assign { dst, value } = op {
                let (value, taint) = self.eval(&state, value, thread);
                state.set(*dst, value, taint);
            }
            if let (Some(barrier), true) = (op.barrier(), is_of_suites(op)) {
                let never = self.barrier(&state, barrier, thread);
                self.out.unreached.push(never);
            }
            todo.extend(op.target().into_iter().chain(op.falls_through().then_some(pc + 1)));
        }
    }

    /// Notes that a branch was decided, by what registers of loops hold.
    fn counts(&mut self, state: &State, at: &Position, loops: &Loops, past: &mut Past, thread: ThreadId) {
        for (round, counters) in loops.tested(at.pc()) {
            let pool = &self.out.pool;
            let by: Vec<_> = counters.iter().map(|r| pool.as_const(state.regs[usize::from(r.0)])).collect();
            if !self.long.contains(&(thread, at.head(round))) && by.iter().any(Option::is_some) {
                self.out.counted = true;
                if let Some(head) = past.decided(at, round, &by) {
                    self.out.long.insert((thread, head));
                }
            }
        }
    }
}

/// Whether it is a barrier of the published suites.
fn is_of_suites(op: &Op) -> bool {
    op.barrier().is_some_and(|b| matches!(b.naming, BarrierNaming::Instance { .. }))
}
