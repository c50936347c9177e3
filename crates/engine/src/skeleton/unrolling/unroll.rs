//! Unrolls a thread into guarded events.
//!
//! A thread is executed symbolically, all paths at once. States that reach the same [`Position`]
//! are merged: their guards by disjunction, each register by a choice between its values. A round
//! through a loop has no effect if it executes no write and no barrier, and leaves every register
//! that is still needed unchanged. One such round represents all further ones, and the thread
//! *spins* there ([`super::returns`]). Other iterations are continued up to the bound, at which the
//! thread is *cut*.
//!
//! Lanes of a warp that exchange values ([`Op::Give`]) are unrolled together, each up to the
//! meeting ([`crate::skeleton::meetings::lanes`]).
//!
//! # Invariants
//! - Events of a thread are created in an order that contains program order.
//! - At every point of a thread the guards of done, spinning, cut and waiting states are disjoint
//!   and cover everything.
//! - Every state has a value for every register. A register set on one side of a branch keeps, on
//!   the other side, the value it had before.
//! - Unrolled for questions about progress ([`Purpose::Progress`]), threads end in further ways
//!   (see [`crate::skeleton::progress`]); nothing else here depends on them.
//!
//! # Sources
//! - Iterations without effect: specification of liveness in the style of Dartagnan's spin-loop
//!   detection.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::returns::{Round, RoundRemoval, VisibleEffect, VisitHistory};
use super::state::{Taint, UnrollState, union};
use super::unrolled::{
    Instructions, LongLoops, ProgressEndings, Segment, ThreadEndings, Unrolling, WaitKey,
};
use crate::skeleton::fixed::UnwrittenObjects;
use crate::skeleton::graph::{MAX_STEPS, MAX_VALUE_DEPTH};
use crate::skeleton::loops::{FlowStep, Jump, Loops, Position};
use crate::skeleton::meetings::barrier::alike::SharedWaits;
use crate::skeleton::pool::{Cond, TermId};
use crate::skeleton::progress::Purpose;
use crate::skeleton::touched::TouchedCells;
use program::memory::Memory;
use program::options::OptionValues;
use program::{BarrierNaming, Op, Program, ThreadId};
use verdict::Reason;

/// The program-wide part of unrolling; threads are added one by one.
pub(crate) struct Unroller<'a> {
    pub(crate) program: &'a Program,
    pub(crate) memory: &'a Memory,
    pub(crate) options: OptionValues,
    pub(crate) bound: u32,
    /// Waits that surely let their thread pass.
    pub(crate) passing: &'a FxHashSet<WaitKey>,
    /// Waits that share their choice, and the choices made so far, by the first wait of a class.
    pub(crate) shared: &'a SharedWaits,
    pub(crate) choices: FxHashMap<WaitKey, Cond>,
    /// Loops that surely take too many iterations to unroll to their end.
    pub(crate) long: &'a LongLoops,
    /// Memory that no thread writes.
    pub(crate) fixed: &'a UnwrittenObjects,
    /// Read-modify-writes that are not waits even if they write the value they read.
    pub(crate) writing: &'a Instructions,
    /// Reads that have to remain once if iterations with them are left out.
    pub(crate) racing: &'a Instructions,
    /// The cells that have initial writes.
    pub(crate) cells: &'a TouchedCells,
    pub(crate) purpose: Purpose,
    pub(crate) out: Unrolling,
    /// The ways in which the current thread ends.
    pub(crate) endings: ProgressEndings,
}

/// A thread during unrolling.
pub(crate) struct ThreadUnrolling {
    pub(crate) id: ThreadId,
    loops: Loops,
    past: VisitHistory,
    ending: ThreadEndings,
    /// The ways in which it ends, kept here while others are unrolled.
    pub(crate) endings: ProgressEndings,
    pending: BTreeMap<Position, UnrollState>,
    pub(crate) end: Option<UnrollState>,
    steps: usize,
    /// Whether it has barriers of the published suites. If so: the reached positions and the ways
    /// never taken, each with whether the thread leaves a loop instead.
    suites: bool,
    reached: BTreeSet<Position>,
    unreached: Vec<(Position, usize, bool, UnrollState)>,
    /// The place where it waits for lanes of its warp to meet.
    pub(crate) meets: Option<(Position, UnrollState)>,
}

impl ThreadUnrolling {
    /// Whether no part of it continues.
    pub(crate) fn is_over(&self) -> bool {
        self.meets.is_none() && self.pending.is_empty()
    }
}

impl Unroller<'_> {
    /// Begins with a thread. `observed` gives the registers needed at its end.
    pub(crate) fn begin(
        &mut self,
        id: ThreadId,
        observed: &[bool],
    ) -> Result<ThreadUnrolling, Reason> {
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
        let brought = Rc::default();
        let mut start = UnrollState {
            guard: Cond::TRUE,
            taints,
            regs,
            ctrl: no_taint,
            brought,
            fresh: false,
        };
        if !thread.code.is_empty() {
            self.may_stop(&mut start, 0)?;
        }
        let ending = ThreadEndings {
            done: Cond::FALSE,
            cut: Cond::FALSE,
            cuts: Vec::new(),
            spinning: Cond::FALSE,
            spins: Vec::new(),
            idle: Cond::FALSE,
            regs: Vec::new(),
            progress: ProgressEndings::default(),
        };
        let mut run = ThreadUnrolling {
            id,
            past: VisitHistory::default(),
            ending,
            endings: std::mem::take(&mut self.endings),
            pending: BTreeMap::new(),
            end: None,
            steps: 0,
            suites: thread.code.iter().any(|i| is_of_suites(&i.op)),
            reached: BTreeSet::new(),
            unreached: Vec::new(),
            meets: None,
            loops,
        };
        if thread.code.is_empty() {
            run.end = Some(start);
        } else {
            run.pending.insert(run.loops.start(0), start);
        }
        Ok(run)
    }

    /// Adds the events of a thread, until it waits for lanes of its warp or ends.
    pub(crate) fn advance(&mut self, run: &mut ThreadUnrolling) -> Result<(), Reason> {
        self.of_run(run, |unroller, run| unroller.until_a_meeting(run))
    }

    /// Runs `what` with this thread's endings as the current ones.
    pub(crate) fn of_run<T>(
        &mut self,
        run: &mut ThreadUnrolling,
        what: impl FnOnce(&mut Self, &mut ThreadUnrolling) -> T,
    ) -> T {
        std::mem::swap(&mut self.endings, &mut run.endings);
        let done = what(self, run);
        std::mem::swap(&mut self.endings, &mut run.endings);
        done
    }

    fn until_a_meeting(&mut self, run: &mut ThreadUnrolling) -> Result<(), Reason> {
        let id = run.id;
        let thread = self.program.thread(id);
        while let Some((at, mut state)) = run.pending.pop_first() {
            run.steps += 1;
            if run.steps > MAX_STEPS {
                return Err(Reason::TooManySteps(MAX_STEPS));
            }
            self.out.pool.tick();
            self.out.pool.given_up()?;
            if !self.out.long.is_empty() {
                // The program is unrolled again, with the iterations of these loops counted.
                return Ok(());
            }
            let pc = at.pc();
            run.past.arrives(&at, &state, &run.loops);
            if run.suites {
                run.reached.insert(at.clone());
            }
            let mut jumps: Vec<(Cond, usize)> = Vec::new();
            let instr = &thread.code[pc];
            match &instr.op {
                Op::Branch { cond, target } => {
                    let (value, taint) = self.eval(&state, cond, id);
                    let taken = self.out.pool.non_zero(value);
                    if taken.is_const() {
                        self.counts(&state, &at, run);
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
                    if !matches!(op, Op::Assign { .. } | Op::Take { .. }) {
                        let (spent, header) = run.past.spent(&at);
                        if spent >= self.bound {
                            self.cuts(&mut run.ending, &state, run.loops.instr(header))?;
                            continue;
                        }
                        self.out.deepest = self.out.deepest.max(spent + 1);
                    }
                    if op.is_visible() || matches!(op, Op::Enqueue(_)) {
                        self.may_stop(&mut state, pc)?;
                    }
                    if matches!(op, Op::Give { .. }) {
                        run.past.does(&at, VisibleEffect::meeting(state.guard));
                        run.meets = Some((at, state));
                        return Ok(());
                    }
                    let effect = self.execute(&mut state, op, id, pc, &at)?;
                    run.past.does(&at, effect);
                    jumps.push((state.guard, pc + 1));
                }
            }
            self.go_on(run, &at, state, jumps)?;
        }
        Ok(())
    }

    /// Sends a state to the targets of its jumps, each under its condition.
    fn go_on(
        &mut self,
        run: &mut ThreadUnrolling,
        at: &Position,
        state: UnrollState,
        mut jumps: Vec<(Cond, usize)>,
    ) -> Result<(), Reason> {
        let last = self.program.thread(run.id).code.len();
        for &(_, dead) in jumps
            .iter()
            .filter(|(guard, _)| run.suites && *guard == Cond::FALSE)
        {
            let live = jumps.iter().filter(|(guard, _)| *guard != Cond::FALSE);
            // An iteration that does not take place is not part of the program: the thread leaves a
            // loop.
            let around = |to: usize| run.loops.around(at.pc(), to);
            let leaves =
                live.clone().count() > 0 && live.clone().all(|(_, to)| around(*to) < around(dead));
            run.unreached
                .push((at.clone(), dead, leaves, state.clone()));
        }
        jumps.retain(|(guard, _)| *guard != Cond::FALSE);
        let mut state = Some(state);
        for (i, &(guard, target)) in jumps.iter().enumerate() {
            // Threads have many registers and few branches, so only a branch copies the registers.
            let last_jump = i + 1 == jumps.len();
            let mut next = if last_jump {
                state.take()
            } else {
                state.clone()
            }
            .expect("taken by the last jump");
            next.guard = guard;
            if target == last {
                self.merge(&mut run.end, next)?;
                continue;
            }
            let to = match run.loops.step(at, target) {
                FlowStep::Forward(to) => to,
                FlowStep::Back { to, round } => {
                    if !self.jump_back(run, at, &to, round, &mut next)? {
                        continue;
                    }
                    to
                }
            };
            let mut slot = run.pending.remove(&to);
            self.merge(&mut slot, next)?;
            run.pending.insert(to, slot.expect("merged"));
        }
        Ok(())
    }

    /// Jumps back to `to`, in the loop at `round`, with state `next`: leaves out rounds without
    /// effect, and records repetitions. Returns whether a part of the state continues there.
    fn jump_back(
        &mut self,
        run: &mut ThreadUnrolling,
        at: &Position,
        to: &Position,
        round: usize,
        next: &mut UnrollState,
    ) -> Result<bool, Reason> {
        let jump = Jump { to, round };
        let progress = self.purpose.is_progress();
        let (mut left_out, mut segments) = (Cond::FALSE, Vec::new());
        for found in run
            .past
            .rounds(&mut self.out.pool, next, &run.loops, jump, progress)
        {
            let Round {
                from,
                when: idle,
                keeps,
                how,
                length,
            } = found;
            let pool = &mut self.out.pool;
            self.out.left_out.extend(Some(keeps));
            if let RoundRemoval::Together { shows } = how {
                let twice = progress || shows;
                let number = run.loops.number(to, round);
                segments.push(Segment {
                    thread: run.id,
                    from,
                    to: to.clone(),
                    number,
                    length,
                    when: idle,
                    twice,
                });
                continue;
            }
            run.ending.idle = pool.or(run.ending.idle, idle);
            if how == RoundRemoval::First {
                continue;
            }
            run.ending.spinning = pool.or(run.ending.spinning, idle);
            run.ending.spins.push((idle, from.pc()));
            if keeps && progress {
                // A round that repeats without end is found when two follow each other.
                left_out = pool.or(left_out, idle);
                continue;
            }
            let busy = pool.not(idle);
            let going_on = pool.and(next.guard, busy);
            if progress {
                next.guard = idle;
                self.spins(next, &from, run.id)?;
            } else {
                // An execution in which all queried work is complete continues until the query
                // shows it.
                self.asks_for_ever(idle, run.id, &|place| *place >= from);
            }
            next.guard = going_on;
        }
        if progress {
            self.repeats(next, jump, &run.past, &run.loops, run.id)?;
            let left_out = self.out.pool.and(next.guard, left_out);
            let busy = self.out.pool.not(left_out);
            self.out.constraints.push(busy);
            next.guard = self.out.pool.and(next.guard, busy);
        }
        if next.guard == Cond::FALSE {
            return Ok(false);
        }
        for mut segment in segments {
            segment.when = self.out.pool.and(segment.when, next.guard);
            self.out.segments.push(segment);
        }
        let spent = run.past.spent_after(at, round);
        if spent > self.bound {
            self.cuts(&mut run.ending, next, run.loops.instr(to.head(round)))?;
            return Ok(false);
        }
        self.out.deepest = self.out.deepest.max(spent);
        Ok(true)
    }

    /// Continues a thread after a meeting.
    pub(crate) fn leave(
        &mut self,
        run: &mut ThreadUnrolling,
        at: &Position,
        state: UnrollState,
    ) -> Result<(), Reason> {
        let (guard, next) = (state.guard, at.pc() + 1);
        self.of_run(run, |unroller, run| {
            unroller.go_on(run, at, state, vec![(guard, next)])
        })
    }

    /// Describes the end of a thread without remaining states.
    pub(crate) fn finish(&mut self, mut run: ThreadUnrolling) -> Result<ThreadEndings, Reason> {
        std::mem::swap(&mut self.endings, &mut run.endings);
        let (id, program) = (run.id, self.program);
        let thread = program.thread(id);
        for (at, dead, leaves, state) in std::mem::take(&mut run.unreached) {
            self.never_reached(state, &at, dead, leaves, &run);
        }
        let mut ending = run.ending;
        if let Some(mut state) = run.end {
            // A command ends when its threads do, so it matters whether they reach the end of their
            // code.
            let last = thread.code.len();
            if last > 0
                && program
                    .host
                    .as_ref()
                    .is_some_and(|h| h.command_of(id).is_some())
            {
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
        Ok(ending)
    }

    /// Records the registers of a state in which the thread ends, if the question needs them.
    pub(crate) fn ends(&mut self, state: &UnrollState) -> Result<(), Reason> {
        if !self.purpose.asks_for_registers() || state.guard == Cond::FALSE {
            return Ok(());
        }
        let mut slot = self.endings.at_end.take();
        self.merge(&mut slot, state.clone())?;
        self.endings.at_end = slot;
        Ok(())
    }

    /// The condition that a thread is at another place than this one, and continues from there.
    pub(crate) fn elsewhere(&mut self, run: &ThreadUnrolling, here: &Position) -> Cond {
        let stands = run
            .meets
            .as_ref()
            .filter(|(at, _)| at != here)
            .map(|(_, state)| state);
        let states = run.pending.values().chain(stands);
        states.fold(Cond::FALSE, |any, state| self.out.pool.or(any, state.guard))
    }

    /// A place where a thread may stop without end, if it executed anything since the last one.
    pub(crate) fn may_stop(&mut self, state: &mut UnrollState, at: usize) -> Result<(), Reason> {
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
    fn merge(&mut self, slot: &mut Option<UnrollState>, new: UnrollState) -> Result<(), Reason> {
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
        old.brought = Rc::default();
        old.guard = guard;
        Ok(())
    }

    /// Ends a thread at the loop bound; `header` is the first instruction of the loop.
    fn cuts(
        &mut self,
        ending: &mut ThreadEndings,
        state: &UnrollState,
        header: usize,
    ) -> Result<(), Reason> {
        ending.cut = self.out.pool.or(ending.cut, state.guard);
        ending.cuts.push((state.guard, header));
        self.ends(state)
    }

    /// Records the barriers of the suites on a way that is never taken. No other way may lead there
    /// in the same iterations of the outer loops. If the thread `leaves` a loop instead, no way in
    /// any iteration may lead there. These barriers count for waits for all matching barriers of
    /// the program, even if only values rule the way out.
    fn never_reached(
        &mut self,
        mut state: UnrollState,
        at: &Position,
        dead: usize,
        leaves: bool,
        run: &ThreadUnrolling,
    ) {
        let thread = run.id;
        let code = &self.program.thread(thread).code;
        let mut seen: BTreeSet<Position> = BTreeSet::new();
        let mut todo = vec![(at.clone(), dead)];
        while let Some((from, pc)) = todo.pop() {
            if pc >= code.len() || (leaves && run.reached.iter().any(|at| at.pc() == pc)) {
                continue;
            }
            let FlowStep::Forward(here) = run.loops.step(&from, pc) else {
                continue;
            };
            if run.reached.contains(&here) || !seen.insert(here.clone()) {
                continue;
            }
            let op = &code[pc].op;
            if let Op::Assign { dst, value } = op {
                let (value, taint) = self.eval(&state, value, thread);
                state.set(*dst, value, taint);
            }
            if let (Some(barrier), true) = (op.barrier(), is_of_suites(op)) {
                // These barriers name no lanes, so the barrier always exists.
                let never = self.barrier(&state, barrier, thread).ok();
                self.out.unreached.extend(never);
            }
            let next = op
                .target()
                .into_iter()
                .chain(op.falls_through().then_some(pc + 1));
            todo.extend(next.map(|to| (here.clone(), to)));
        }
    }

    /// Records that a branch was decided, with the values of loop registers.
    fn counts(&mut self, state: &UnrollState, at: &Position, run: &mut ThreadUnrolling) {
        let thread = run.id;
        for (round, counters) in run.loops.tested(at.pc()) {
            let pool = &self.out.pool;
            let by: Vec<_> = counters
                .iter()
                .map(|r| pool.as_const(state.regs[usize::from(r.0)]))
                .collect();
            if !self.long.contains(&(thread, at.head(round))) && by.iter().any(Option::is_some) {
                self.out.counted = true;
                if let Some(head) = run.past.decided(at, round, &by) {
                    self.out.long.insert((thread, head));
                }
            }
        }
    }
}

/// Whether it is a barrier of the published suites.
fn is_of_suites(op: &Op) -> bool {
    op.barrier()
        .is_some_and(|b| matches!(b.naming, BarrierNaming::Instance { .. }))
}
