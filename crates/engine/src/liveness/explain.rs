//! Describes an execution that hangs: how each thread ends, and why.

use std::collections::BTreeMap;

use super::cases::LivenessCase;
use super::evidence::{Evidence, ThreadFate};
use super::held;
use crate::eval::Eval;
use crate::execution::Execution;
use crate::facts::Facts;
use crate::skeleton::progress::{BlockedAt, LaneWait, ProgressFacts};
use program::host::LaunchOrders;
use program::progress::ProgressModel;
use program::waiting::{LoopWalk, PausedProgram, WalkEnd, loop_at};
use program::{BarrierNaming, EventKind, LocId, Program, ThreadId};
use verdict::hang::{Goal, Site, Wait, never_arrive, reading};
use verdict::{Ending, ThreadEnd};

/// The end of each thread in an execution that hangs under a progress model.
pub(super) fn explain(
    facts: &Facts<'_>,
    execution: &Execution,
    progress: &ProgressFacts,
    evidence: &Evidence<'_>,
    model: ProgressModel,
    case: &LivenessCase,
) -> Vec<ThreadEnd> {
    let known = execution.known();
    let eval = Eval::new(&facts.sk, &known);
    let mut teller = HangExplainer {
        facts,
        execution,
        eval,
        progress,
        evidence,
        model,
        case,
    };
    let mut ends: Vec<ThreadEnd> = facts
        .sk
        .program
        .thread_ids()
        .map(|t| teller.thread(t))
        .collect();
    // A thread that never reaches the point at which it would be held up has its own reason.
    case.held
        .iter()
        .filter(|(t, _)| matches!(evidence.ends[usize::from(t.0)], ThreadFate::Done))
        .for_each(|(t, end)| ends[usize::from(t.0)] = end.clone());
    for (t, end) in teller.waiting() {
        let is = &mut ends[usize::from(t.0)];
        if is.ending == Ending::Done {
            *is = end;
        }
    }
    let over: Vec<String> = ends
        .iter()
        .filter(|e| e.ending == Ending::Done)
        .map(|e| e.thread.clone())
        .collect();
    let waits = ends
        .iter_mut()
        .flat_map(|e| &mut e.waits)
        .filter(|w| matches!(w.goal, Goal::Event(_)));
    waits.for_each(|w| w.helpers.retain(|s| !over.contains(&s.thread)));
    ends
}

struct HangExplainer<'t, 'a> {
    facts: &'t Facts<'a>,
    execution: &'t Execution,
    eval: Eval<'t>,
    progress: &'t ProgressFacts,
    evidence: &'t Evidence<'t>,
    model: ProgressModel,
    case: &'t LivenessCase,
}

impl HangExplainer<'_, '_> {
    fn thread(&mut self, t: ThreadId) -> ThreadEnd {
        let sk = &self.facts.sk;
        let thread = sk.program.thread(t);
        let mut end = ThreadEnd::done(&thread.name);
        end.served = self.evidence.served[t.0 as usize];
        let at = match self.evidence.ends[t.0 as usize] {
            ThreadFate::Done => None,
            ThreadFate::Blocked(held) => {
                end.ending = Ending::Blocked;
                end.waits_for = match held {
                    BlockedAt::Barrier(wait) => self.absent(t, wait.index()),
                    BlockedAt::Lanes(apart) => self.missing(t, apart),
                };
                end.why = never_arrive(&end.waits_for);
                // A thread that is done without arriving cannot help any more.
                let left: Vec<String> = end
                    .waits_for
                    .iter()
                    .filter(|n| !self.is_over(n))
                    .cloned()
                    .collect();
                end.waits.push(Wait::at_barrier(&left));
                Some(held.instr(&sk.events))
            }
            ThreadFate::Looping(spin) => {
                end.ending = Ending::Looping;
                end.polls = spin
                    .events
                    .iter()
                    .filter_map(|e| self.poll(e.index()))
                    .collect();
                end.polls.dedup();
                end.why = format!("loops forever{}", reading(&end.polls));
                end.waits = self.for_values(t, spin.header);
                Some(spin.header)
            }
            ThreadFate::Repeating(repeat) => {
                end.ending = Ending::Looping;
                end.period = Some(repeat.period);
                end.polls = repeat
                    .pairs
                    .iter()
                    .filter_map(|p| self.poll(p.1?.index()))
                    .collect();
                let blocks = match repeat.period {
                    1 => "repeats its last iteration forever".to_string(),
                    n => format!("repeats its last {n} iterations forever"),
                };
                end.why = format!("{blocks}{}", reading(&end.polls));
                end.waits = self.for_values(t, repeat.header);
                Some(repeat.header)
            }
            ThreadFate::Stopped => {
                end.ending = Ending::Stopped;
                let last = self
                    .execution
                    .executed
                    .iter()
                    .filter(|&e| sk.events[e].thread == Some(t))
                    .last();
                let place = if last.is_some() { "any more" } else { "at all" };
                end.why = format!("does not run {place}: {}", self.excuse());
                last.map(|e| sk.events[e].instr)
            }
        };
        if let Some(instr) = at.and_then(|i| thread.code.get(i)) {
            (end.line, end.text) = (instr.line.clone(), instr.text.clone());
        }
        end
    }

    /// Whether the thread of that name is done.
    fn is_over(&self, name: &String) -> bool {
        let mut all = self.facts.sk.program.thread_ids().zip(&self.evidence.ends);
        all.any(|(u, end)| {
            matches!(end, ThreadFate::Done) && self.facts.sk.program.thread(u).name == *name
        })
    }

    /// The location and the value of a read in an iteration.
    fn poll(&mut self, e: usize) -> Option<(String, String)> {
        let event = &self.facts.sk.events[e];
        if !event.is_read() || !self.execution.executed.has(e) {
            return None;
        }
        let cell = self
            .facts
            .sk
            .memory
            .cell_at(self.eval.address(e)?, event.ty.bytes())?;
        let value = self.execution.reads[e]?;
        let sk = &self.facts.sk;
        Some((
            sk.memory.cell(cell).name.clone(),
            sk.memory.show_in(&sk.program, cell, value),
        ))
    }

    /// The goals that a thread waits for in a loop.
    fn for_values(&mut self, t: ThreadId, header: usize) -> Vec<Wait> {
        let sk = &self.facts.sk;
        // A held-up thread may be the one with the awaited write.
        let (program, memory) = (&self.case.whole, &sk.memory);
        let Some(range) = loop_at(program, t, header) else {
            return Vec::new();
        };
        let asked = self
            .case
            .polls
            .iter()
            .filter(|(u, at, _)| *u == t && range.contains(at));
        let mut waits: Vec<Wait> = asked.map(|(_, _, wait)| wait.clone()).collect();
        let cell = |a: i64| memory.at(a).map(|c| memory.cell(c).memory);
        let same = |a: i64, b: i64| cell(a) == cell(b);
        let rest = self.rest();
        let scene = PausedProgram {
            program,
            address: &|t: ThreadId, loc: LocId| memory.address(program, loc, 0, Some(t)),
            same: &same,
            rest,
        };
        // Replays its reads, up to the place where the next iteration would read.
        let mine = self
            .execution
            .executed
            .iter()
            .filter(|&e| sk.events[e].thread == Some(t) && sk.events[e].is_read());
        let mut values = mine.map(|e| self.execution.reads[e]);
        let regs = program
            .thread(t)
            .regs
            .iter()
            .map(|r| memory.initial(program, &r.init, Some(t)))
            .collect();
        let mut walk = LoopWalk { pc: 0, regs };
        let mut last: BTreeMap<i64, i64> = BTreeMap::new();
        let came = scene.walk(t, &mut walk, None, &mut |a| {
            let value = values.next()??;
            last.insert(a, value);
            Some(value)
        });
        if came != WalkEnd::Read || !range.contains(&walk.pc) {
            return waits;
        }
        let polls = scene.polls(t, &walk, &range, &|a| last.get(&a).copied());
        let writes: Vec<usize> = self
            .execution
            .executed
            .iter()
            .filter(|&e| sk.events[e].is_write() && sk.events[e].thread.is_some())
            .collect();
        for poll in &polls {
            let mut missed = Vec::new();
            for &w in &writes {
                let event = &sk.events[w];
                let (at, value) = (self.eval.address(w), self.eval.value(w));
                if let (Some(at), Some(value), Some(u)) = (at, value, event.thread)
                    && same(at, poll.address)
                    && poll.wants(value)
                {
                    missed.push(site(program, u, event.instr));
                }
            }
            missed.dedup();
            let Some(place) = memory.at(poll.address) else {
                continue;
            };
            let goal = match &poll.wanted {
                Some(wanted) => Goal::Value(memory.awaited(program, place, wanted, poll.seen)),
                None if polls.iter().all(|p| p.wanted.is_none()) => {
                    Goal::Change(memory.cell(place).name.clone())
                }
                None => continue,
            };
            let helpers = poll
                .writers
                .iter()
                .map(|&(u, pc)| site(program, u, pc))
                .collect();
            waits.push(Wait {
                goal,
                helpers,
                only: poll.sure,
                missed,
            });
        }
        waits
    }

    /// Threads whose last calls wait for threads that never end. No case contains them, because
    /// they hold nothing up.
    fn waiting(&mut self) -> Vec<(ThreadId, ThreadEnd)> {
        let sk = &self.facts.sk;
        let Some(Ok(launches)) = sk
            .program
            .host
            .as_ref()
            .map(|_| LaunchOrders::of(&sk.program))
        else {
            return Vec::new();
        };
        let chosen = sk
            .launch_ways
            .iter()
            .position(|way| self.eval.cond(*way) == Some(true));
        let Some(way) = chosen.and_then(|w| launches.ways.get(w)) else {
            return Vec::new();
        };
        held::waiting(&self.case.whole, &way.order, &self.rest())
    }

    /// By thread: where the part of the code begins that it never reaches; `None` if it is done.
    fn rest(&self) -> Vec<Option<usize>> {
        let sk = &self.facts.sk;
        sk.program
            .thread_ids()
            .zip(&self.evidence.ends)
            .map(|(t, end): (ThreadId, &ThreadFate<'_>)| match end {
                ThreadFate::Done if self.is_held(t) => Some(sk.program.thread(t).code.len()),
                ThreadFate::Done => None,
                ThreadFate::Blocked(held) => Some(held.instr(&sk.events) + 1),
                ThreadFate::Looping(spin) => Some(spin.header),
                ThreadFate::Repeating(repeat) => Some(repeat.header),
                ThreadFate::Stopped => Some(self.after_last(t)),
            })
            .collect()
    }

    /// The instruction behind the last one that a thread executed.
    fn after_last(&self, t: ThreadId) -> usize {
        let mine = self
            .execution
            .executed
            .iter()
            .filter(|&e| self.facts.sk.events[e].thread == Some(t));
        mine.last().map_or(0, |e| self.facts.sk.events[e].instr + 1)
    }

    /// Whether a thread is held up by a point that is never reached.
    fn is_held(&self, t: ThreadId) -> bool {
        self.case.held.iter().any(|(u, _)| *u == t)
    }

    /// The lanes that a thread waits for and that never arrive.
    fn missing(&mut self, t: ThreadId, apart: &LaneWait) -> Vec<String> {
        let program = &self.facts.sk.program;
        let named = self.eval.term(apart.named).unwrap_or(0);
        let all = program.named_among(t, apart.among, named).into_iter();
        all.filter(|u| !self.waits_with(apart, u))
            .map(|u| program.thread(u).name.clone())
            .collect()
    }

    /// Whether a thread waits at the same meeting.
    fn waits_with(&self, apart: &LaneWait, u: &ThreadId) -> bool {
        match self.evidence.ends[usize::from(u.0)] {
            ThreadFate::Blocked(BlockedAt::Lanes(other)) => other.is_with(apart),
            _ => false,
        }
    }

    /// The threads that could let a blocked one pass, and never arrive.
    fn absent(&mut self, t: ThreadId, wait: usize) -> Vec<String> {
        let sk = &self.facts.sk;
        let Some(barrier) = sk.program.thread(t).code[sk.events[wait].instr]
            .op
            .barrier()
        else {
            return Vec::new();
        };
        // The wait itself never executes, so it has no partners; the last arrival of its thread
        // has.
        let mine = (0..wait).rev().find(|&e| {
            self.execution.executed.has(e)
                && sk.events[e].thread == Some(t)
                && sk.events[e].kind == EventKind::Arrive
        });
        let mut here = vec![false; sk.program.threads.len()];
        let mut awaited = vec![false; sk.program.threads.len()];
        for (a, b, cond) in &self.progress.partners {
            let Some(other) = sk.event(*b).thread.filter(|_| Some(a.index()) == mine) else {
                continue;
            };
            if self.execution.executed.has(b.index()) {
                here[other.0 as usize] |= self.eval.cond(*cond) == Some(true);
            } else {
                awaited[other.0 as usize] |= sk.event(*b).kind == EventKind::Arrive;
            }
        }
        let place = &sk.program.thread(t).place;
        let group = sk.program.thread_ids().filter(|&u| {
            u != t && !here[u.0 as usize] && place.same(&sk.program.thread(u).place, barrier.domain)
        });
        group
            .filter(|u| match barrier.naming {
                BarrierNaming::Counted { count: None, .. } => true,
                BarrierNaming::Counted { .. } | BarrierNaming::Instance { .. } => {
                    awaited[u.0 as usize]
                }
            })
            .map(|u| sk.program.thread(u).name.clone())
            .collect()
    }

    /// Why the progress model lets the scheduler stop a thread.
    fn excuse(&self) -> String {
        let whom = match self.model {
            ProgressModel::Fair => return "no thread may be stopped".to_string(),
            ProgressModel::Obe => "have not started",
            ProgressModel::Hsa => "come after one that has not ended",
            ProgressModel::HsaObe => "have not started and come after one that has not ended",
            ProgressModel::Lobe => "have not started and come after all that have",
        };
        format!("{} need not run threads or groups that {whom}", self.model)
    }
}

fn site(program: &Program, t: ThreadId, pc: usize) -> Site {
    let thread = program.thread(t);
    Site {
        thread: thread.name.clone(),
        line: thread.code[pc].line.clone(),
    }
}
