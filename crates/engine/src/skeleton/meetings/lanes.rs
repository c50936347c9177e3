//! Lets lanes of a warp meet to exchange values ([`Op::Give`]): decides which lanes meet, and which
//! values each takes.
//!
//! # Invariants
//! - Threads are unrolled up to their meeting; the values that they bring are known before one of
//!   them continues.
//! - Lanes meet exactly in the executions in which every named lane arrives. [`Unrolling::unmet`]
//!   lists the other executions, or [`Reason::Apart`] gives up.
//! - For questions about progress, a lane is blocked if it waits for a lane that stopped before
//!   arriving. A lane that repeats iterations with meetings does so together with its partners.
//! - A meeting that spares ended lanes ([`Attendance`]) also takes place without lanes that
//!   finished their code. [`Op::Take`] then gets the set of those that came.
//!
//! # Sources
//! - PTX ISA 9.4, *shfl.sync*: it waits "until all non-exited threads corresponding to
//!   `membermask`" have executed it. A value taken from an exited thread is undefined.

use std::rc::Rc;

use crate::skeleton::graph::place;
use crate::skeleton::loops::Position;
use crate::skeleton::pool::{Cond, TermId, TermPool};
use crate::skeleton::progress::LaneWait;
use crate::skeleton::unrolling::state::{Taint, Taken};
use crate::skeleton::unrolling::unroll::{ThreadUnrolling, Unroller};
use crate::skeleton::unrolling::unrolled::LaneMeeting;
use program::{ATTENDED, Attendance, BinOp, CmpOp, Instr, Op, Scope, Thread, Ty};
use verdict::Reason;

/// The request of a thread that waits to meet others ([`Op::Give`]).
#[derive(Clone, Copy, PartialEq)]
struct MeetingRequest {
    among: Scope,
    /// The set of lanes that meet.
    lanes: i64,
    /// The condition that the thread is there.
    guard: Cond,
}

impl MeetingRequest {
    /// Whether the request names the thread of that rank in its group.
    fn names(self, rank: u32) -> bool {
        self.lanes.checked_shr(rank).unwrap_or(0) & 1 != 0
    }
}

/// The number of values that a thread has after a meeting: one for each lane, and the set of those
/// that came.
const BROUGHT: usize = ATTENDED as usize + 1;

/// Up to this number of threads, all sets of threads that may run together are listed.
const MOST_LISTED: usize = 8;

/// The outcome for the lanes at one place, by lane in their order.
#[derive(Default)]
struct MeetingOutcome {
    /// Groups of lanes that meet, each with its condition.
    meet: Vec<(Vec<usize>, Cond)>,
    /// The condition that it names a lane that arrives but does not meet it.
    unmet: Vec<Cond>,
    /// The condition that every lane it lacks has ended.
    blocked: Vec<Cond>,
    /// The condition that it continues.
    on: Vec<Cond>,
}

impl MeetingOutcome {
    /// Adds a lane that arrives under `guard`. `lacks`: it names a lane that it does not meet and
    /// that has not ended. `complete`: it meets all lanes that it names.
    fn push(&mut self, pool: &mut TermPool, guard: Cond, lacks: Cond, complete: Cond) {
        self.unmet.push(pool.and(guard, lacks));
        let known = pool.or(complete, lacks);
        let stuck = pool.not(known);
        self.blocked.push(pool.and(guard, stuck));
        self.on.push(pool.and(guard, known));
    }
}

/// The request of a thread at a place that only some lanes may reach.
#[derive(Clone)]
struct LaneRequest {
    rank: u32,
    lanes: TermId,
    value: (TermId, Taint),
    guard: Cond,
}

impl LaneRequest {
    /// The set of lanes that all requests name, if it is constant and the same.
    fn named_by_all(&self, all: &[LaneRequest], pool: &TermPool) -> Option<i64> {
        pool.as_const(self.lanes)
            .filter(|_| all.iter().all(|other| other.lanes == self.lanes))
    }
}

/// The conditions under which a lane is not at a place where others meet.
struct LaneAbsence {
    /// It is not awaited any more.
    spared: Cond,
    /// It is at another place, or has ended, and is awaited.
    elsewhere: Cond,
}

/// Whether two threads have the same instructions, except for their operands.
fn is_alike(a: &Thread, b: &Thread) -> bool {
    let same_length = a.source == b.source && a.code.len() == b.code.len();
    same_length && a.code.iter().zip(&b.code).all(|(a, b)| is_same(a, b))
}

/// Whether two instructions are the same, except for their operands.
fn is_same(a: &Instr, b: &Instr) -> bool {
    let [kind, of] = [a, b].map(|instr| std::mem::discriminant(&instr.op));
    kind == of && a.assembly == b.assembly && a.op.target() == b.op.target()
}

impl Unroller<'_> {
    /// The meeting that a thread waits for. `None` if it waits for none, or if the lanes depend on
    /// reads.
    fn asks(&mut self, run: &ThreadUnrolling) -> Option<MeetingRequest> {
        let (at, state) = run.meets.as_ref()?;
        let Op::Give {
            among,
            lanes,
            attendance,
            ..
        } = &self.program.thread(run.id).code[at.pc()].op
        else {
            return None;
        };
        if *attendance == Attendance::Present {
            return None;
        }
        let lanes = self.eval(state, lanes, run.id).0;
        Some(MeetingRequest {
            among: *among,
            lanes: self.out.pool.as_const(lanes)?,
            guard: state.guard,
        })
    }

    /// Lets the threads `came`, which just reached a meeting, stop before it. If nothing was
    /// executed `since` the last meeting, a stop here equals a stop before that one.
    pub(crate) fn may_stop_before(
        &mut self,
        runs: &mut [ThreadUnrolling],
        came: &[usize],
        since: Option<usize>,
    ) -> Result<(), Reason> {
        if since == Some(self.out.events.len()) && !self.purpose.asks_for_registers() {
            return Ok(());
        }
        for &i in came {
            let Some((at, mut state)) = runs[i].meets.take() else {
                continue;
            };
            self.of_run(&mut runs[i], |unroller, _| {
                unroller.may_stop(&mut state, at.pc())
            })?;
            runs[i].meets = Some((at, state));
        }
        Ok(())
    }

    /// Continues the threads of a group that meet. Returns whether some do.
    ///
    /// Threads meet if all named lanes are at a [`Op::Give`] that names the same lanes, under the
    /// same condition. Then each of them arrives whatever is read, and no question of waiting
    /// remains.
    pub(crate) fn meet(&mut self, runs: &mut [ThreadUnrolling]) -> Result<bool, Reason> {
        let asked: Vec<Option<MeetingRequest>> = runs.iter().map(|run| self.asks(run)).collect();
        for first in 0..runs.len() {
            let Some(meeting @ MeetingRequest { among, guard, .. }) = asked[first] else {
                continue;
            };
            let id = runs[first].id;
            let group: Vec<usize> = (0..runs.len())
                .filter(|i| {
                    self.program.same_group(id, runs[*i].id, among)
                        && meeting.names(self.program.seat(runs[*i].id, among).rank)
                })
                .collect();
            if !group.contains(&first) || group.iter().any(|&i| asked[i] != asked[first]) {
                continue;
            }
            let mut brought = vec![None; BROUGHT];
            let all = self.out.pool.constant(meeting.lanes);
            brought[usize::from(ATTENDED)] = Some((all, Taint::default()));
            for &i in &group {
                let (at, state) = runs[i].meets.as_ref().expect("it stands there");
                let Op::Give { value, .. } = &self.program.thread(runs[i].id).code[at.pc()].op
                else {
                    continue;
                };
                brought[self.program.seat(runs[i].id, among).rank as usize] =
                    Some(self.eval(state, value, runs[i].id));
            }
            let brought = Rc::new(brought);
            let threads = group
                .iter()
                .map(|i| {
                    (
                        runs[*i].id,
                        runs[*i].meets.as_ref().expect("it stands there").0.clone(),
                    )
                })
                .collect();
            self.out.meetings.push(LaneMeeting {
                guard,
                events: self.out.events.len(),
                threads,
            });
            for &i in &group {
                let (at, mut state) = runs[i].meets.take().expect("it stands there");
                (state.brought, state.fresh) = (Rc::clone(&brought), false);
                self.leave(&mut runs[i], &at, state)?;
            }
            return Ok(true);
        }
        self.meet_in_part(runs)
    }

    /// Continues the threads at the first place that some of their group reached: no other thread
    /// can still arrive there.
    ///
    /// Each meets the lanes that arrive there and name the same lanes, once values are known.
    /// [`Unrolling::unmet`] sets aside executions in which a named lane is not among them. If not
    /// all named lanes have to arrive, an execution chooses which of the present lanes run
    /// together.
    fn meet_in_part(&mut self, runs: &mut [ThreadUnrolling]) -> Result<bool, Reason> {
        let program = self.program;
        let Some(first) = (0..runs.len())
            .filter(|i| runs[*i].meets.is_some())
            .min_by_key(|&i| runs[i].meets.as_ref().map(|m| &m.0))
        else {
            return Ok(false);
        };
        let here = runs[first]
            .meets
            .as_ref()
            .expect("it stands there")
            .0
            .clone();
        let (thread, pc) = (program.thread(runs[first].id), here.pc());
        let Op::Give {
            among, attendance, ..
        } = thread.code[pc].op
        else {
            return Ok(false);
        };
        let converged = attendance == Attendance::Present;
        let id = runs[first].id;
        let mates = |i: &usize| program.same_group(id, runs[*i].id, among);
        // If their code differs, places of one thread do not exist in the other.
        let alike = (0..runs.len())
            .filter(|i| mates(i) && !(attendance.spares_ended() && runs[*i].is_over()))
            .all(|i| is_alike(thread, program.thread(runs[i].id)));
        // In a loop, a thread may run together with others in another iteration.
        let progress = self.purpose.is_progress();
        if converged && (!alike || progress || here.iterations().next().is_some()) {
            let what = "`activemask` in a loop, in threads with different code, or in questions \
                of liveness";
            return Err(Reason::Unsupported(what.into()));
        }
        if !alike {
            return Ok(false);
        }
        let is_here =
            |i: &usize| mates(i) && runs[*i].meets.as_ref().is_some_and(|(at, _)| *at == here);
        let group: Vec<usize> = (0..runs.len()).filter(is_here).collect();
        let Some(asked) = self.requests(runs, &group, pc, among) else {
            return Ok(false);
        };
        let (found, brought) = match converged {
            true => self.converged(&asked),
            false => {
                let mates: Vec<usize> = (0..runs.len()).filter(mates).collect();
                let absent = mates
                    .iter()
                    .map(|&i| self.absence(&runs[i], &here, attendance))
                    .collect();
                let Some(met) = self.met_by_name(&asked, absent, attendance) else {
                    return Ok(false);
                };
                met
            }
        };
        for (some, guard) in found.meet {
            let threads = some
                .into_iter()
                .map(|i| (runs[group[i]].id, here.clone()))
                .collect();
            self.out.meetings.push(LaneMeeting {
                guard,
                events: self.out.events.len(),
                threads,
            });
        }
        for (one, ((i, brought), asked)) in group.into_iter().zip(brought).zip(asked).enumerate() {
            let run = &mut runs[i];
            let (at, mut state) = run.meets.take().expect("it stands there");
            if let Some(unmet) = found.unmet.get(one).filter(|unmet| **unmet != Cond::FALSE) {
                self.out.unmet.push((*unmet, place(program, (run.id, pc))));
            }
            if let Some(blocked) = found
                .blocked
                .get(one)
                .filter(|blocked| **blocked != Cond::FALSE)
            {
                state.guard = *blocked;
                let apart = LaneWait {
                    place: at.clone(),
                    among,
                    named: asked.lanes,
                };
                run.endings.apart.push((apart, *blocked));
                self.of_run(run, |unroller, _| unroller.ends(&state))?;
            }
            state.guard = found.on[one];
            (state.brought, state.fresh) = (brought, false);
            self.leave(run, &at, state)?;
        }
        Ok(true)
    }

    /// The requests of threads that wait at instruction `pc` to meet among a scope; `None` if one
    /// of them has another instruction there.
    fn requests(
        &mut self,
        runs: &[ThreadUnrolling],
        group: &[usize],
        pc: usize,
        among: Scope,
    ) -> Option<Vec<LaneRequest>> {
        let program = self.program;
        let mut requests: Vec<LaneRequest> = Vec::new();
        for &i in group {
            let (id, (_, state)) = (runs[i].id, runs[i].meets.as_ref().expect("it stands there"));
            let Op::Give { value, lanes, .. } = &program.thread(id).code[pc].op else {
                return None;
            };
            let lanes = self.eval(state, lanes, id).0;
            let value = self.eval(state, value, id);
            requests.push(LaneRequest {
                rank: program.seat(id, among).rank,
                lanes,
                value,
                guard: state.guard,
            });
        }
        Some(requests)
    }

    /// The conditions under which a thread is not at a place.
    fn absence(
        &mut self,
        run: &ThreadUnrolling,
        here: &Position,
        attendance: Attendance,
    ) -> LaneAbsence {
        let ended = run.end.as_ref().map_or(Cond::FALSE, |end| end.guard);
        let elsewhere = self.elsewhere(run, here);
        let pool = &mut self.out.pool;
        match attendance {
            Attendance::Running => LaneAbsence {
                spared: ended,
                elsewhere,
            },
            Attendance::Collective => LaneAbsence {
                spared: pool.or(ended, elsewhere),
                elsewhere: Cond::FALSE,
            },
            Attendance::All | Attendance::Present => LaneAbsence {
                spared: Cond::FALSE,
                elsewhere: pool.or(ended, elsewhere),
            },
        }
    }

    /// The outcome for lanes that name each other, and the value that each takes. `absent` is, by
    /// rank, the absence of each thread of the group. `None` if some lane never meets the lanes
    /// that it names.
    fn met_by_name(
        &mut self,
        requests: &[LaneRequest],
        absent: Vec<LaneAbsence>,
        attendance: Attendance,
    ) -> Option<(MeetingOutcome, Vec<Rc<Taken>>)> {
        let progress = self.purpose.is_progress();
        let found = match requests[0]
            .named_by_all(requests, &self.out.pool)
            .filter(|_| progress)
        {
            Some(lanes) => self.all_or_none(requests, lanes, &absent),
            None => self.named(requests, &absent),
        };
        if found
            .unmet
            .iter()
            .zip(requests)
            .any(|(unmet, one)| *unmet == one.guard)
        {
            return None;
        }
        let mut brought = vec![None; BROUGHT];
        requests
            .iter()
            .for_each(|one| brought[one.rank as usize] = Some(one.value.clone()));
        if !attendance.spares_ended() {
            let brought = Rc::new(brought);
            return Some((found, vec![brought; requests.len()]));
        }
        let each = requests
            .iter()
            .map(|one| {
                let mut brought = brought.clone();
                brought[usize::from(ATTENDED)] = Some(self.attended(one, requests));
                Rc::new(brought)
            })
            .collect();
        Some((found, each))
    }

    /// The set of lanes that come with the same request as `one`.
    fn attended(&mut self, one: &LaneRequest, all: &[LaneRequest]) -> (TermId, Taint) {
        let mut bits = Vec::new();
        let mut come = Vec::new();
        for other in all {
            let pool = &mut self.out.pool;
            let same = pool.cmp(CmpOp::Eq, Ty::WORD, one.lanes, other.lanes);
            come.push(pool.and(other.guard, same));
            let value = (pool.constant(1 << other.rank), Taint::default());
            bits.push(LaneRequest {
                value,
                ..other.clone()
            });
        }
        (self.set(&come, &bits, 0), one.value.1.clone())
    }

    /// The outcome for lanes at a place, where each names its own set. `absent` is, by rank, the
    /// absence of each thread of the group.
    fn named(&mut self, all: &[LaneRequest], absent: &[LaneAbsence]) -> MeetingOutcome {
        let progress = self.purpose.is_progress();
        let mut came = MeetingOutcome::default();
        for (i, one) in all.iter().enumerate() {
            let (mut lacks, mut complete) = (Cond::FALSE, Cond::TRUE);
            for (rank, absent) in (0..i64::BITS).zip(absent) {
                let pool = &mut self.out.pool;
                let [at, bit] = [i64::from(rank), 1].map(|n| pool.constant(n));
                let shifted = pool.bin(BinOp::Shr, Ty::WORD, one.lanes, at);
                let bit = pool.bin(BinOp::And, Ty::WORD, shifted, bit);
                let names = pool.non_zero(bit);
                let (comes, otherwise) = match all.iter().find(|other| other.rank == rank) {
                    None => (Cond::FALSE, Cond::FALSE),
                    Some(other) => {
                        let same = pool.cmp(CmpOp::Eq, Ty::WORD, one.lanes, other.lanes);
                        let differ = pool.not(same);
                        (pool.and(other.guard, same), pool.and(other.guard, differ))
                    }
                };
                let suffices = pool.or(comes, absent.spared);
                let there = pool.implies(names, suffices);
                complete = pool.and(complete, there);
                let lack = if rank == one.rank {
                    pool.not(names)
                } else if progress {
                    let lack = pool.or(otherwise, absent.elsewhere);
                    pool.and(names, lack)
                } else {
                    pool.not(there)
                };
                lacks = pool.or(lacks, lack);
                if let Some(j) = all[..i].iter().position(|other| other.rank == rank) {
                    let both = pool.and(names, comes);
                    came.meet.push((vec![j, i], pool.and(one.guard, both)));
                }
            }
            came.push(&mut self.out.pool, one.guard, lacks, complete);
        }
        came
    }

    /// As [`Unroller::named`], if all of them name the same lanes.
    fn all_or_none(
        &mut self,
        all: &[LaneRequest],
        lanes: i64,
        absent: &[LaneAbsence],
    ) -> MeetingOutcome {
        let pool = &mut self.out.pool;
        let (mut complete, mut lacks) = (Cond::TRUE, Cond::FALSE);
        for (rank, absent) in (0..i64::BITS)
            .zip(absent)
            .filter(|(rank, _)| lanes >> rank & 1 != 0)
        {
            let comes = all
                .iter()
                .find(|one| one.rank == rank)
                .map_or(Cond::FALSE, |one| one.guard);
            let suffices = pool.or(comes, absent.spared);
            complete = pool.and(complete, suffices);
            lacks = pool.or(lacks, absent.elsewhere);
        }
        let mut came = MeetingOutcome {
            meet: vec![((0..all.len()).collect(), complete)],
            ..MeetingOutcome::default()
        };
        for one in all {
            let lacks = if lanes >> one.rank & 1 == 0 {
                Cond::TRUE
            } else {
                lacks
            };
            came.push(pool, one.guard, lacks, complete);
        }
        if lacks == Cond::FALSE {
            // The condition is the same for all of them, so none is recorded twice.
            came.on.fill(complete);
        }
        came
    }

    /// A thread that repeats iterations in which it meets others repeats them without end only if
    /// the others repeat the same ones.
    pub(crate) fn repeat_together(&mut self, runs: &[ThreadUnrolling]) {
        let program = self.program;
        for run in runs {
            for repeat in &run.endings.repeats {
                for met in &self.out.meetings {
                    if !met
                        .threads
                        .iter()
                        .any(|(t, at)| *t == run.id && repeat.range.contains(at))
                    {
                        continue;
                    }
                    let pool = &mut self.out.pool;
                    let both = pool.and(repeat.choice, met.guard);
                    for other in runs
                        .iter()
                        .filter(|o| o.id != run.id && met.threads.iter().any(|(t, _)| *t == o.id))
                    {
                        let alike = is_alike(program.thread(run.id), program.thread(other.id));
                        let same = other
                            .endings
                            .repeats
                            .iter()
                            .filter(|r| alike && r.range == repeat.range);
                        let same = same.fold(Cond::FALSE, |any, r| pool.or(any, r.choice));
                        self.out.constraints.push(pool.implies(both, same));
                    }
                }
            }
        }
    }

    /// The lanes at one place that run together, as an equivalence relation, and the value that
    /// each of them takes.
    fn converged(&mut self, all: &[LaneRequest]) -> (MeetingOutcome, Vec<Rc<Taken>>) {
        let mut came = MeetingOutcome {
            on: all.iter().map(|one| one.guard).collect(),
            ..MeetingOutcome::default()
        };
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
                came.meet.push((vec![j, i], choice));
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
        let brought = (0..all.len())
            .map(|i: usize| {
                let mut brought = vec![None; i64::BITS as usize];
                let set = self.set(&together[i], all, 0);
                brought[all[i].rank as usize] = Some((set, all[i].value.1.clone()));
                Rc::new(brought)
            })
            .collect();
        (came, brought)
    }

    /// The union of the bits that the lanes `some` bring and of `first`.
    fn set(&mut self, some: &[Cond], all: &[LaneRequest], first: i64) -> TermId {
        let Some((one, others)) = all.split_first() else {
            return self.out.pool.constant(first);
        };
        let (with, others_of) = (some[0], &some[1..]);
        let value = self
            .out
            .pool
            .as_const(one.value.0)
            .filter(|_| all.len() <= MOST_LISTED);
        let Some(value) = value else {
            let nothing = self.out.pool.constant(first);
            return all.iter().zip(some).fold(nothing, |set, (one, &with)| {
                let pool = &mut self.out.pool;
                let more = pool.bin(BinOp::Or, Ty::WORD, set, one.value.0);
                pool.ite(with, more, set)
            });
        };
        // A choice between constants: terms over it have a known value for each.
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

    /// Gives up threads that wait for lanes they do not meet, because their continuation is
    /// unknown.
    pub(crate) fn part(&mut self, runs: &mut [ThreadUnrolling]) {
        for run in runs {
            let named = self
                .asks(run)
                .is_none_or(|m| m.names(self.program.seat(run.id, m.among).rank));
            let Some((at, _)) = run.meets.take() else {
                continue;
            };
            let place = place(self.program, (run.id, at.pc()));
            self.out.apart.get_or_insert(Reason::Apart { place, named });
        }
    }
}
