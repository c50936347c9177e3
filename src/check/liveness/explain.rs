//! What to tell about an execution that hangs: how each thread ends, and why.

use super::evidence::{End, Evidence};
use super::fairness::ProgressModel;
use crate::check::eval::{Assignment, Eval};
use crate::check::execution::Execution;
use crate::check::task::Task;
use crate::program::{BarrierNaming, Op, ThreadId};
use crate::skeleton::progress::Progress;
use crate::verdict::{Ending, ThreadEnd};

/// How each thread of an execution ends that hangs under a progress model.
pub(super) fn explain(
    task: &Task<'_>,
    execution: &Execution,
    progress: &Progress,
    evidence: &Evidence<'_>,
    model: ProgressModel,
) -> Vec<ThreadEnd> {
    let known = Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let mut teller = Teller { task, execution, eval: Eval::new(&task.sk.pool, &known), progress, evidence, model };
    task.sk.program.thread_ids().map(|t| teller.thread(t)).collect()
}

struct Teller<'t, 'a> {
    task: &'t Task<'a>,
    execution: &'t Execution,
    eval: Eval<'t>,
    progress: &'t Progress,
    evidence: &'t Evidence<'t>,
    model: ProgressModel,
}

impl Teller<'_, '_> {
    fn thread(&mut self, t: ThreadId) -> ThreadEnd {
        let sk = &self.task.sk;
        let thread = sk.program.thread(t);
        let mut end = ThreadEnd {
            thread: thread.name.clone(),
            ending: Ending::Done,
            line: 0,
            text: String::new(),
            served: self.evidence.served[t.0 as usize],
            waits_for: Vec::new(),
            polls: Vec::new(),
            period: None,
            why: "runs to its end".to_string(),
        };
        let at = match self.evidence.ends[t.0 as usize] {
            End::Done => None,
            End::Blocked(wait) => {
                end.ending = Ending::Blocked;
                end.waits_for = self.absent(t, wait);
                end.why = match end.waits_for.as_slice() {
                    [] => "waits for ever: too few threads arrive".to_string(),
                    [one] => format!("waits for ever: {one} never arrives"),
                    some => format!("waits for ever: {} never arrive", some.join(", ")),
                };
                Some(sk.events[wait].instr)
            }
            End::Looping(spin) => {
                end.ending = Ending::Looping;
                end.polls = spin.events.iter().filter_map(|e| self.poll(e.index())).collect();
                end.polls.dedup();
                end.why = format!("loops for ever{}", seeing(&end.polls));
                Some(spin.header)
            }
            End::Repeating(repeat) => {
                end.ending = Ending::Looping;
                end.period = Some(repeat.period);
                end.polls = repeat.pairs.iter().filter_map(|p| self.poll(p.1?.index())).collect();
                let blocks = match repeat.period {
                    1 => "repeats its last iteration for ever".to_string(),
                    n => format!("repeats its last {n} iterations for ever"),
                };
                end.why = format!("{blocks}{}", seeing(&end.polls));
                Some(repeat.header)
            }
            End::Stopped => {
                end.ending = Ending::Stopped;
                let last = self.execution.executed.iter().filter(|&e| sk.events[e].thread == Some(t)).last();
                let place = if last.is_some() { "any more" } else { "at all" };
                end.why = format!("is not run {place}: {}", self.excuse());
                last.map(|e| sk.events[e].instr)
            }
        };
        if let Some(instr) = at.and_then(|i| thread.code.get(i)) {
            (end.line, end.text) = (instr.line, instr.text.clone());
        }
        end
    }

    /// What a read of an iteration sees: location and value.
    fn poll(&mut self, e: usize) -> Option<(String, String)> {
        let event = &self.task.sk.events[e];
        if !event.is_read() || !self.execution.executed.has(e) {
            return None;
        }
        let cell = self.task.sk.memory.at(self.eval.term(event.addr?)?)?;
        let value = self.execution.reads[e]?;
        Some((self.task.sk.memory.cell(cell).name.clone(), self.task.show(value)))
    }

    /// The threads that could let a blocked one pass, and never arrive.
    fn absent(&mut self, t: ThreadId, wait: usize) -> Vec<String> {
        let sk = &self.task.sk;
        let Op::Barrier(barrier) = &sk.program.thread(t).code[sk.events[wait].instr].op else {
            return Vec::new();
        };
        // The wait itself never executes, so it has no partners; its thread's last arrival has.
        let executed = |e: usize| self.execution.executed.has(e);
        let mine = (0..wait).rev().find(|&e| {
            executed(e)
                && sk.events[e].thread == Some(t)
                && sk.events[e].kind == crate::skeleton::EventKind::Arrive
        });
        let mut here = vec![false; sk.program.threads.len()];
        let mut awaited = vec![false; sk.program.threads.len()];
        for (a, b, cond) in &self.progress.partners {
            let Some(other) = sk.event(*b).thread.filter(|_| Some(a.index()) == mine) else { continue };
            if executed(b.index()) {
                here[other.0 as usize] |= self.eval.cond(*cond) == Some(true);
            } else {
                awaited[other.0 as usize] |= sk.event(*b).kind == crate::skeleton::EventKind::Arrive;
            }
        }
        let place = &sk.program.thread(t).place;
        let group = sk
            .program
            .thread_ids()
            .filter(|&u| u != t && !here[u.0 as usize] && place.same(&sk.program.thread(u).place, barrier.domain));
        let can_help = |u: &ThreadId| match barrier.naming {
            BarrierNaming::Counted { count: None, .. } => true,
            BarrierNaming::Counted { .. } | BarrierNaming::Instance { .. } => awaited[u.0 as usize],
        };
        group.filter(can_help).map(|u| sk.program.thread(u).name.clone()).collect()
    }

    /// Why the progress model lets a thread be stopped.
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

/// `, reading x = 0 and y = 1`.
fn seeing(polls: &[(String, String)]) -> String {
    let mut said: Vec<String> = polls.iter().map(|(place, value)| format!("{place} = {value}")).collect();
    said.dedup();
    if said.is_empty() { String::new() } else { format!(", reading {}", said.join(" and ")) }
}
