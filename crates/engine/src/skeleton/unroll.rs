//! Unrolling a thread into guarded events.
//!
//! A thread is executed symbolically, all paths at once. States that reach the same [`Position`] are merged: their
//! guards by disjunction, each register by a choice between its values. A round through a loop that executes no write
//! and no barrier and leaves every register that is still needed unchanged has no effect; one such round stands
//! for all that could follow, and the thread *spins* there ([`super::returns`]). Other iterations are continued up to the
//! bound, where the thread is *cut*.
//!
//! Lanes of a warp that hand each other values ([`Op::Give`]) are unrolled together, each up to where they meet.
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
use super::fixed::Fixed;
use super::graph::{MAX_STEPS, MAX_VALUE_DEPTH, place};
use super::loops::{Loops, Position, Step};
use super::pool::{Cond, TermId};
use super::progress::Purpose;
use super::racing::Instructions;
use super::returns::{Effect, How, LongLoops, Past, Round};
use super::unrolled::{Ending, Endings, Met, Segment, Unrolled, WaitKey};
use cat::rel::EventId;
use program::memory::Memory;
use program::options::Options;
use program::{BarrierNaming, BinOp, CmpOp, Instr, Op, Program, Scope, Thread, ThreadId, Ty};
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
    /// By lane: what it brought when this thread met others last, as long as no other way joins.
    pub(super) brought: Rc<Taken>,
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
    /// What nobody writes.
    pub(super) fixed: &'a Fixed,
    /// Read-modify-writes that are not waits even where they write what they read.
    pub(super) writing: &'a Instructions,
    /// Reads of which one has to be there wherever iterations with them are left out.
    pub(super) racing: &'a Instructions,
    pub(super) purpose: Purpose,
    pub(super) out: Unrolled,
    /// Ways in which the present thread ends.
    pub(super) endings: Endings,
}

/// What a thread meets others for ([`Op::Give`]).
#[derive(Clone, Copy, PartialEq)]
struct Meeting {
    among: Scope,
    /// Who meets.
    lanes: i64,
    /// When.
    guard: Cond,
}

impl Meeting {
    /// Whether it is for the thread of that rank in its group.
    fn names(self, rank: u32) -> bool {
        self.lanes.checked_shr(rank).unwrap_or(0) & 1 != 0
    }
}

/// Of so many threads, all sets are listed that may run together.
const MOST_LISTED: usize = 8;

/// By lane: what it brought.
type Taken = Vec<Option<(TermId, Taint)>>;

/// When two of some threads meet.
type Meet = (usize, usize, Cond);

/// What a thread asks for at a place where only some may come.
struct Asked {
    rank: u32,
    lanes: TermId,
    value: (TermId, Taint),
    guard: Cond,
}

/// Whether two threads have the same instructions, but for their operands.
fn is_alike(a: &Thread, b: &Thread) -> bool {
    let same = |a: &Instr, b: &Instr| {
        let [kind, of] = [a, b].map(|instr| std::mem::discriminant(&instr.op));
        kind == of && a.text == b.text && a.op.target() == b.op.target()
    };
    a.code.len() == b.code.len() && a.code.iter().zip(&b.code).all(|(a, b)| same(a, b))
}

/// A thread while it is unrolled.
pub(super) struct Run {
    pub(super) id: ThreadId,
    loops: Loops,
    past: Past,
    ending: Ending,
    /// Ways in which it ends, while others are unrolled.
    endings: Endings,
    pending: BTreeMap<Position, State>,
    end: Option<State>,
    steps: usize,
    /// Whether it has barriers of the published suites; then: what is reached, and the ways never taken, each with whether the
    /// thread leaves a loop instead.
    suites: bool,
    reached: BTreeSet<Position>,
    unreached: Vec<(Position, usize, bool, State)>,
    /// Where it waits for lanes of its warp to meet.
    pub(super) meets: Option<(Position, State)>,
}

impl Unroller<'_> {
    /// Begins with a thread. `observed`: the registers needed at its end.
    pub(super) fn begin(&mut self, id: ThreadId, observed: &[bool]) -> Result<Run, Reason> {
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
        let mut start = State { guard: Cond::TRUE, taints, regs, ctrl: no_taint, brought, fresh: false };
        if !thread.code.is_empty() {
            self.may_stop(&mut start, 0)?;
        }
        let ending = Ending {
            done: Cond::FALSE,
            cut: Cond::FALSE,
            cuts: Vec::new(),
            spinning: Cond::FALSE,
            idle: Cond::FALSE,
            regs: Vec::new(),
            progress: Endings::default(),
        };
        let mut run = Run {
            id,
            past: Past::default(),
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

    /// Adds the events of a thread, until it meets lanes of its warp or nothing is left of it.
    pub(super) fn advance(&mut self, run: &mut Run) -> Result<(), Reason> {
        std::mem::swap(&mut self.endings, &mut run.endings);
        let done = self.until_a_meeting(run);
        std::mem::swap(&mut self.endings, &mut run.endings);
        done
    }

    fn until_a_meeting(&mut self, run: &mut Run) -> Result<(), Reason> {
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
                // It is unrolled anew, with their iterations counted.
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
                    if op.is_visible() || matches!(op, Op::Enqueue(_) | Op::Give { .. }) {
                        self.may_stop(&mut state, pc)?;
                    }
                    if matches!(op, Op::Give { .. }) {
                        run.past.does(&at, Effect::meeting(state.guard));
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

    /// Lets a state go to where it jumps, each under its condition.
    fn go_on(
        &mut self,
        run: &mut Run,
        at: &Position,
        state: State,
        mut jumps: Vec<(Cond, usize)>,
    ) -> Result<(), Reason> {
        let (id, last) = (run.id, self.program.thread(run.id).code.len());
        for &(_, dead) in jumps.iter().filter(|(guard, _)| run.suites && *guard == Cond::FALSE) {
            let live = jumps.iter().filter(|(guard, _)| *guard != Cond::FALSE);
            // An iteration that does not take place is none of the program: the thread leaves a loop.
            let around = |to: usize| run.loops.around(at.pc(), to);
            let leaves = live.clone().count() > 0 && live.clone().all(|(_, to)| around(*to) < around(dead));
            run.unreached.push((at.clone(), dead, leaves, state.clone()));
        }
        jumps.retain(|(guard, _)| *guard != Cond::FALSE);
        let mut state = Some(state);
        for (i, &(guard, target)) in jumps.iter().enumerate() {
            // Threads have many registers and few branches: only a branch copies them.
            let last_jump = i + 1 == jumps.len();
            let mut next = if last_jump { state.take() } else { state.clone() }.expect("taken by the last jump");
            next.guard = guard;
            if target == last {
                self.merge(&mut run.end, next)?;
                continue;
            }
            let to = match run.loops.step(at, target) {
                Step::Forward(to) => to,
                Step::Back { to, round } => {
                    let progress = self.purpose.is_progress();
                    let (mut left_out, mut segments) = (Cond::FALSE, Vec::new());
                    for found in run.past.rounds(&mut self.out.pool, &next, &run.loops, (&to, round), progress) {
                        let Round { from, when: idle, keeps, how, length } = found;
                        let pool = &mut self.out.pool;
                        self.out.left_out.extend(Some(keeps));
                        if let How::Together { shows } = how {
                            let twice = progress || shows;
                            let number = run.loops.number(&to, round);
                            segments.push(Segment {
                                thread: id,
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
                        if how == How::First {
                            continue;
                        }
                        run.ending.spinning = pool.or(run.ending.spinning, idle);
                        if keeps && progress {
                            // One that is gone through for ever is found where two follow each other.
                            left_out = pool.or(left_out, idle);
                            continue;
                        }
                        let busy = pool.not(idle);
                        let going_on = pool.and(next.guard, busy);
                        if progress {
                            next.guard = idle;
                            self.spins(&next, &from, id)?;
                        } else {
                            // A run in which all is complete that is asked about goes on to see it.
                            self.asks_for_ever(idle, id, &|place| *place >= from);
                        }
                        next.guard = going_on;
                    }
                    if progress {
                        self.repeats(&mut next, (&to, round), &run.past, &run.loops, id)?;
                        let left_out = self.out.pool.and(next.guard, left_out);
                        let busy = self.out.pool.not(left_out);
                        self.out.constraints.push(busy);
                        next.guard = self.out.pool.and(next.guard, busy);
                    }
                    if next.guard == Cond::FALSE {
                        continue;
                    }
                    for mut segment in segments {
                        segment.when = self.out.pool.and(segment.when, next.guard);
                        self.out.segments.push(segment);
                    }
                    let spent = run.past.spent_after(at, round);
                    if spent > self.bound {
                        self.cuts(&mut run.ending, &next, run.loops.instr(to.head(round)))?;
                        continue;
                    }
                    self.out.deepest = self.out.deepest.max(spent);
                    to
                }
            };
            let mut slot = run.pending.remove(&to);
            self.merge(&mut slot, next)?;
            run.pending.insert(to, slot.expect("merged"));
        }
        Ok(())
    }

    /// The meeting that a thread waits for; `None` if it waits for none, or it depends on what is read for which.
    fn asks(&mut self, run: &Run) -> Option<Meeting> {
        let (at, state) = run.meets.as_ref()?;
        let Op::Give { among, lanes, converged: false, .. } = &self.program.thread(run.id).code[at.pc()].op else {
            return None;
        };
        let lanes = self.eval(state, lanes, run.id).0;
        Some(Meeting { among: *among, lanes: self.out.pool.as_const(lanes)?, guard: state.guard })
    }

    /// Lets those of a group's threads go on that meet. Whether some do.
    ///
    /// Threads meet if all that are named stand at a [`Op::Give`] that names the same ones, in just the same executions: then
    /// each of them comes, whatever is read, and nothing has to be said of who waits for whom.
    pub(super) fn meet(&mut self, runs: &mut [Run]) -> Result<bool, Reason> {
        let asked: Vec<Option<Meeting>> = runs.iter().map(|run| self.asks(run)).collect();
        for first in 0..runs.len() {
            let Some(meeting @ Meeting { among, guard, .. }) = asked[first] else { continue };
            let place = &self.program.thread(runs[first].id).place;
            let rank = |i: usize| self.program.seat(runs[i].id, among).rank;
            let is_named =
                |i: &usize| self.program.thread(runs[*i].id).place.same(place, among) && meeting.names(rank(*i));
            let group: Vec<usize> = (0..runs.len()).filter(is_named).collect();
            if !group.contains(&first) || group.iter().any(|&i| asked[i] != asked[first]) {
                continue;
            }
            let mut brought = vec![None; i64::BITS as usize];
            for &i in &group {
                let (at, state) = runs[i].meets.as_ref().expect("it stands there");
                let Op::Give { value, .. } = &self.program.thread(runs[i].id).code[at.pc()].op else { continue };
                brought[self.program.seat(runs[i].id, among).rank as usize] =
                    Some(self.eval(state, value, runs[i].id));
            }
            let brought = Rc::new(brought);
            let place = |i: &usize| (runs[*i].id, runs[*i].meets.as_ref().expect("it stands there").0.clone());
            let threads = group.iter().map(place).collect();
            self.out.meetings.push(Met { guard, events: self.out.events.len(), threads });
            for &i in &group {
                let (at, mut state) = runs[i].meets.take().expect("it stands there");
                state.brought = Rc::clone(&brought);
                self.leave(&mut runs[i], &at, state)?;
            }
            return Ok(true);
        }
        self.meet_in_part(runs)
    }

    /// Lets threads go on that stand at the first place where some of their group do: no other one comes there any more.
    ///
    /// Each meets those of whom it turns out, once values are known, that they come there and name the same ones. Executions in which one
    /// of those that it names is not among them are put aside ([`Unrolled::unmet`]). If not all that are named have to come, some of
    /// those that are there run together: the execution chooses.
    fn meet_in_part(&mut self, runs: &mut [Run]) -> Result<bool, Reason> {
        let program = self.program;
        let stands = |i: &usize| runs[*i].meets.is_some();
        let Some(first) = (0..runs.len()).filter(stands).min_by_key(|&i| runs[i].meets.as_ref().map(|m| &m.0))
        else {
            return Ok(false);
        };
        let here = runs[first].meets.as_ref().expect("it stands there").0.clone();
        let (thread, pc) = (program.thread(runs[first].id), here.pc());
        let Op::Give { among, converged, .. } = thread.code[pc].op else { return Ok(false) };
        let mates = |i: &usize| program.thread(runs[*i].id).place.same(&thread.place, among);
        // Where their code differs, places of one are none of the other.
        let alike = (0..runs.len()).filter(mates).all(|i| is_alike(thread, program.thread(runs[i].id)));
        // In a loop, one may run together with others that are in another iteration.
        if converged && (!alike || self.purpose.is_progress() || here.iterations().next().is_some()) {
            let what =
                "which threads of a warp run together (`activemask`) in a loop, in different code, or for ever";
            return Err(Reason::Unsupported(what.into()));
        }
        if !alike || self.purpose.is_progress() {
            return Ok(false);
        }
        let is_here = |i: &usize| mates(i) && runs[*i].meets.as_ref().is_some_and(|(at, _)| *at == here);
        let group: Vec<usize> = (0..runs.len()).filter(is_here).collect();
        let mut asked: Vec<Asked> = Vec::new();
        for &i in &group {
            let state = &runs[i].meets.as_ref().expect("it stands there").1;
            let Op::Give { value, lanes, .. } = &program.thread(runs[i].id).code[pc].op else { return Ok(false) };
            let (lanes, value) = (self.eval(state, lanes, runs[i].id).0, self.eval(state, value, runs[i].id));
            asked.push(Asked { rank: program.seat(runs[i].id, among).rank, lanes, value, guard: state.guard });
        }
        let (meet, brought) = match converged {
            true => self.converged(&asked),
            false => {
                let size = program.seat(runs[first].id, among).of;
                let (meet, unmet) = self.named(&asked, size);
                if unmet.iter().zip(&asked).any(|(unmet, one)| *unmet == one.guard) {
                    return Ok(false);
                }
                let places = group.iter().map(|&i| place(program, (runs[i].id, pc)));
                self.out.unmet.extend(unmet.into_iter().zip(places).filter(|(unmet, _)| *unmet != Cond::FALSE));
                let mut brought = vec![None; i64::BITS as usize];
                asked.iter().for_each(|one| brought[one.rank as usize] = Some(one.value.clone()));
                let brought = Rc::new(brought);
                (meet, asked.iter().map(|_| Rc::clone(&brought)).collect())
            }
        };
        for (i, j, guard) in meet {
            let threads = [i, j].map(|i| (runs[group[i]].id, here.clone())).to_vec();
            self.out.meetings.push(Met { guard, events: self.out.events.len(), threads });
        }
        for (&i, brought) in group.iter().zip(brought) {
            let (at, mut state) = runs[i].meets.take().expect("it stands there");
            state.brought = brought;
            self.leave(&mut runs[i], &at, state)?;
        }
        Ok(true)
    }

    /// When two of some that come to a place name each other; and when one names any that do not come, or name others.
    fn named(&mut self, all: &[Asked], size: u32) -> (Vec<Meet>, Vec<Cond>) {
        let (mut meet, mut unmet) = (Vec::new(), Vec::new());
        for (i, one) in all.iter().enumerate() {
            let mut lacks = Cond::FALSE;
            for rank in 0..size.min(i64::BITS) {
                let pool = &mut self.out.pool;
                let [at, bit] = [i64::from(rank), 1].map(|n| pool.constant(n));
                let shifted = pool.bin(BinOp::Shr, Ty::WORD, one.lanes, at);
                let bit = pool.bin(BinOp::And, Ty::WORD, shifted, bit);
                let names = pool.non_zero(bit);
                let comes = all.iter().find(|other| other.rank == rank).map_or(Cond::FALSE, |other| {
                    let same = pool.cmp(CmpOp::Eq, Ty::WORD, one.lanes, other.lanes);
                    pool.and(other.guard, same)
                });
                let lack = match rank == one.rank {
                    true => pool.not(names),
                    false => {
                        let absent = pool.not(comes);
                        pool.and(names, absent)
                    }
                };
                lacks = pool.or(lacks, lack);
                if let Some(j) = all[..i].iter().position(|other| other.rank == rank) {
                    let both = pool.and(names, comes);
                    meet.push((j, i, pool.and(one.guard, both)));
                }
            }
            unmet.push(self.out.pool.and(one.guard, lacks));
        }
        (meet, unmet)
    }

    /// Which of some that are at one place run together, which is an equivalence, and what each of them takes.
    fn converged(&mut self, all: &[Asked]) -> (Vec<Meet>, Vec<Rc<Taken>>) {
        let mut meet = Vec::new();
        let mut together = vec![vec![Cond::TRUE; all.len()]; all.len()];
        for i in 0..all.len() {
            for j in 0..i {
                let both = self.out.pool.and(all[i].guard, all[j].guard);
                let choice = match both {
                    Cond::FALSE => Cond::FALSE,
                    both => {
                        let choice = self.out.pool.fresh_choice();
                        self.out.pool.and(both, choice)
                    }
                };
                (together[i][j], together[j][i]) = (choice, choice);
                meet.push((j, i, choice));
            }
        }
        for i in 0..all.len() {
            for j in 0..all.len() {
                for k in (0..all.len()).filter(|&k| k < i && i != j && j != k) {
                    let way = self.out.pool.and(together[i][j], together[j][k]);
                    let follows = self.out.pool.implies(way, together[i][k]);
                    self.out.constraints.push(follows);
                }
            }
        }
        let taken = |i: usize| {
            let mut brought = vec![None; i64::BITS as usize];
            let set = self.set(&together[i], all, 0);
            brought[all[i].rank as usize] = Some((set, all[i].value.1.clone()));
            Rc::new(brought)
        };
        let brought = (0..all.len()).map(taken).collect();
        (meet, brought)
    }

    /// What some of those that are at one place bring, as one set of bits together with `first`.
    fn set(&mut self, some: &[Cond], all: &[Asked], first: i64) -> TermId {
        let Some((one, others)) = all.split_first() else { return self.out.pool.constant(first) };
        let (with, others_of) = (some[0], &some[1..]);
        let value = self.out.pool.as_const(one.value.0).filter(|_| all.len() <= MOST_LISTED);
        let Some(value) = value else {
            let nothing = self.out.pool.constant(first);
            return all.iter().zip(some).fold(nothing, |set, (one, &with)| {
                let pool = &mut self.out.pool;
                let more = pool.bin(BinOp::Or, Ty::WORD, set, one.value.0);
                pool.ite(with, more, set)
            });
        };
        // A choice between numbers, of which everything that rests on it is known for each.
        match with {
            Cond::TRUE => self.set(others_of, others, first | value),
            Cond::FALSE => self.set(others_of, others, first),
            with => {
                let more = self.set(others_of, others, first | value);
                let less = self.set(others_of, others, first);
                self.out.pool.ite(with, more, less)
            }
        }
    }

    /// Lets one that met others go on.
    fn leave(&mut self, run: &mut Run, at: &Position, state: State) -> Result<(), Reason> {
        let (guard, next) = (state.guard, at.pc() + 1);
        std::mem::swap(&mut self.endings, &mut run.endings);
        let done = self.go_on(run, at, state, vec![(guard, next)]);
        std::mem::swap(&mut self.endings, &mut run.endings);
        done
    }

    /// Gives up what waits for lanes that it does not meet: nothing is known of what follows.
    pub(super) fn part(&mut self, runs: &mut [Run]) {
        for run in runs {
            let named = self.asks(run).is_none_or(|m| m.names(self.program.seat(run.id, m.among).rank));
            let Some((at, _)) = run.meets.take() else { continue };
            let place = place(self.program, (run.id, at.pc()));
            self.out.apart.get_or_insert(Reason::Apart { place, named });
        }
    }

    /// Says how a thread ends of which nothing is left.
    pub(super) fn finish(&mut self, mut run: Run) -> Result<Ending, Reason> {
        std::mem::swap(&mut self.endings, &mut run.endings);
        let (id, program) = (run.id, self.program);
        let thread = program.thread(id);
        for (at, dead, leaves, state) in std::mem::take(&mut run.unreached) {
            self.never_reached(state, (&at, dead), leaves, &run);
        }
        let mut ending = run.ending;
        if let Some(mut state) = run.end {
            // A command ends when its threads do, so that it matters whether they come to that.
            let last = thread.code.len();
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
        Ok(ending)
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
        old.brought = Rc::default();
        old.guard = guard;
        Ok(())
    }

    /// Ends a thread at the loop bound of the loop with that first instruction.
    fn cuts(&mut self, ending: &mut Ending, state: &State, header: usize) -> Result<(), Reason> {
        ending.cut = self.out.pool.or(ending.cut, state.guard);
        ending.cuts.push((state.guard, header));
        self.ends(state)
    }

    /// Notes the barriers of the suites on a way that is never taken, if no other way leads there in the same iterations of
    /// the loops around; in any, if the thread `leaves` a loop instead. That values alone show that it is not taken makes no
    /// difference: to those who wait for all matching barriers of the program they count.
    fn never_reached(&mut self, mut state: State, (at, dead): (&Position, usize), leaves: bool, run: &Run) {
        let thread = run.id;
        let code = &self.program.thread(thread).code;
        let mut seen: BTreeSet<Position> = BTreeSet::new();
        let mut todo = vec![(at.clone(), dead)];
        while let Some((from, pc)) = todo.pop() {
            if pc >= code.len() || (leaves && run.reached.iter().any(|at| at.pc() == pc)) {
                continue;
            }
            let Step::Forward(here) = run.loops.step(&from, pc) else { continue };
            if run.reached.contains(&here) || !seen.insert(here.clone()) {
                continue;
            }
            let op = &code[pc].op;
            if let Op::Assign { dst, value } = op {
                let (value, taint) = self.eval(&state, value, thread);
                state.set(*dst, value, taint);
            }
            if let (Some(barrier), true) = (op.barrier(), is_of_suites(op)) {
                // They name no lanes, so that there is always one.
                let never = self.barrier(&state, barrier, thread).ok();
                self.out.unreached.extend(never);
            }
            let next = op.target().into_iter().chain(op.falls_through().then_some(pc + 1));
            todo.extend(next.map(|to| (here.clone(), to)));
        }
    }

    /// Notes that a branch was decided, by what registers of loops hold.
    fn counts(&mut self, state: &State, at: &Position, run: &mut Run) {
        let thread = run.id;
        for (round, counters) in run.loops.tested(at.pc()) {
            let pool = &self.out.pool;
            let by: Vec<_> = counters.iter().map(|r| pool.as_const(state.regs[usize::from(r.0)])).collect();
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
    op.barrier().is_some_and(|b| matches!(b.naming, BarrierNaming::Instance { .. }))
}
