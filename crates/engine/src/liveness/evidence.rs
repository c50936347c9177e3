//! Checks an execution that hangs a second time: applies the definition to one execution with plain
//! loops.
//!
//! The engines find such executions by the conditions of [`super::fairness`] and by the axioms of
//! `lib/liveness.cat`. This module judges them again before any report, using only the ends of the
//! threads, `rf` and `co`.
//!
//! # Invariants
//! - It shares with the search only the skeleton's list of ways to end, and no condition derived
//!   from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::eval::Eval;
use crate::execution::Execution;
use crate::facts::Facts;
use crate::skeleton::Cond;
use crate::skeleton::progress::{BlockedAt, ProgressFacts, Repeat, SpinIteration};
use program::ThreadId;
use program::memory::CellId;
use program::progress::{ProgressModel, ThreadEnding, serve, tree};

/// The way in which a thread ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum ThreadFate<'s> {
    Done,
    Blocked(&'s BlockedAt),
    Looping(&'s SpinIteration),
    Repeating(&'s Repeat),
    Stopped,
}

impl ThreadFate<'_> {
    /// Whether the thread is live: neither done nor blocked.
    fn is_live(self) -> bool {
        !matches!(self, ThreadFate::Done | ThreadFate::Blocked(_))
    }
}

/// An execution that hangs, by this module's judgement.
pub(super) struct Evidence<'s> {
    /// By thread: its end.
    pub(super) ends: Vec<ThreadFate<'s>>,
    /// By thread: whether it is run without end, as far as it can.
    pub(super) served: Vec<bool>,
}

/// One execution, with its values.
pub(super) struct JudgedExecution<'t, 'a> {
    facts: &'t Facts<'a>,
    execution: &'t Execution,
    eval: Eval<'t>,
    cells: Vec<Option<CellId>>,
}

/// Judges an execution of a task that was built for progress.
///
/// # Errors
/// The law that it breaks.
pub(super) fn judge<'s>(
    facts: &Facts<'_>,
    execution: &Execution,
    progress: &'s ProgressFacts,
    model: ProgressModel,
) -> Result<Evidence<'s>, String> {
    let known = execution.known();
    let mut seen = JudgedExecution {
        facts,
        execution,
        eval: Eval::new(&facts.sk, &known),
        cells: Vec::new(),
    };
    for e in 0..facts.sk.len() {
        let cell = seen.eval.memory(e).flatten();
        seen.cells.push(cell.filter(|_| execution.executed.has(e)));
    }
    let ends = seen.ends(progress)?;
    if !ends.iter().any(|e| {
        matches!(
            e,
            ThreadFate::Blocked(_) | ThreadFate::Looping(_) | ThreadFate::Repeating(_)
        )
    }) {
        return Err("no thread is blocked or loops forever".to_string());
    }
    let served = seen.fair(progress, &ends, model)?;
    seen.wait_in_vain(&ends)?;
    seen.repeats(progress, &ends)?;
    Ok(Evidence { ends, served })
}

/// The events of an execution that repeat.
struct Repetition {
    repeated: BTreeSet<usize>,
    /// Events of both blocks of loops with effect.
    blocks: BTreeSet<usize>,
    /// By event of an earlier block: that of the later one.
    again: BTreeMap<usize, usize>,
}

impl JudgedExecution<'_, '_> {
    fn holds(&mut self, c: Cond) -> Result<bool, String> {
        self.eval
            .cond(c)
            .ok_or_else(|| "how a thread ends is not determined".to_string())
    }

    /// The end of each thread; exactly one.
    fn ends<'s>(&mut self, progress: &'s ProgressFacts) -> Result<Vec<ThreadFate<'s>>, String> {
        let mut all = Vec::new();
        for (t, thread) in progress.threads.iter().enumerate() {
            let mut ways: Vec<ThreadFate<'s>> = Vec::new();
            if self.holds(thread.cut)? {
                return Err(format!("thread {t} is cut at the loop bound"));
            }
            if self.holds(thread.done)? {
                ways.push(ThreadFate::Done);
            }
            for (held, cond) in &thread.blocked {
                if self.holds(*cond)? {
                    ways.push(ThreadFate::Blocked(held));
                }
            }
            for spin in &thread.spins {
                if self.holds(spin.cond)? {
                    ways.push(ThreadFate::Looping(spin));
                }
            }
            for repeat in &thread.repeats {
                if self.holds(repeat.choice)? {
                    ways.push(ThreadFate::Repeating(repeat));
                }
            }
            for &(_, stop) in &thread.stopped {
                if self.holds(stop)? {
                    ways.push(ThreadFate::Stopped);
                }
            }
            match ways.as_slice() {
                [one] => all.push(*one),
                several => return Err(format!("thread {t} ends in {} ways", several.len())),
            }
        }
        Ok(all)
    }

    /// Decides which threads are served, and checks that this is fair; by thread.
    fn fair(
        &mut self,
        progress: &ProgressFacts,
        ends: &[ThreadFate<'_>],
        model: ProgressModel,
    ) -> Result<Vec<bool>, String> {
        let mut threads = Vec::new();
        for (thread, end) in progress.threads.iter().zip(ends) {
            let started = self.holds(thread.started)?;
            threads.push(ThreadEnding {
                live: end.is_live(),
                stopped: matches!(end, ThreadFate::Stopped),
                started,
            });
        }
        let served = serve(&tree(&self.facts.sk.program), &threads, model)
            .ok_or("a thread that must be run is stopped")?;
        if ends
            .iter()
            .zip(&served)
            .any(|(end, &served)| served && matches!(end, ThreadFate::Stopped))
        {
            return Err("a served thread is stopped".to_string());
        }
        Ok(served)
    }

    /// Checks that a thread blocked on lanes names one that neither arrives nor runs to its end.
    fn wait_in_vain(&mut self, ends: &[ThreadFate<'_>]) -> Result<(), String> {
        let program = &self.facts.sk.program;
        for (t, end) in program.thread_ids().zip(ends) {
            let ThreadFate::Blocked(BlockedAt::Lanes(apart)) = end else {
                continue;
            };
            let named = self
                .eval
                .term(apart.named)
                .ok_or("the thread for which another one waits is not determined")?;
            if !program
                .named_among(t, apart.among, named)
                .into_iter()
                .any(|u: ThreadId| match ends[usize::from(u.0)] {
                    ThreadFate::Done => false,
                    ThreadFate::Blocked(BlockedAt::Lanes(other)) => !other.is_with(apart),
                    _ => true,
                })
            {
                return Err(format!(
                    "thread {} waits for lanes of which none is missing",
                    t.0
                ));
            }
        }
        Ok(())
    }

    fn executed(&self, e: usize) -> bool {
        self.execution.executed.has(e)
    }

    fn is_write(&self, e: usize) -> bool {
        self.facts.sk.events[e].is_write()
    }

    /// The address and the value of an executed event.
    fn content(&mut self, e: usize) -> (Option<i64>, Option<i64>) {
        (self.eval.address(e), self.eval.value(e))
    }

    /// Checks that repeated events can repeat.
    fn repeats(&mut self, progress: &ProgressFacts, ends: &[ThreadFate<'_>]) -> Result<(), String> {
        let mut repeated: BTreeSet<usize> = BTreeSet::new();
        let mut blocks: BTreeSet<usize> = BTreeSet::new();
        let mut again: BTreeMap<usize, usize> = BTreeMap::new();
        for end in ends {
            match end {
                ThreadFate::Looping(spin) => {
                    let events = spin
                        .events
                        .iter()
                        .map(|e| e.index())
                        .filter(|&e| self.executed(e));
                    repeated.extend(events);
                }
                ThreadFate::Repeating(repeat) => {
                    for (a, b) in self.equal_blocks(repeat)? {
                        again.insert(a, b);
                        repeated.insert(b);
                        blocks.extend([a, b]);
                    }
                }
                _ => {}
            }
        }
        if let Some(&w) = repeated
            .iter()
            .find(|&&e| self.is_write(e) && !blocks.contains(&e))
        {
            return Err(format!("write {w} is in an iteration without effect"));
        }
        let repetition = Repetition {
            repeated,
            blocks,
            again,
        };
        self.sources_repeat(&repetition)?;
        self.coherence_repeats(&repetition)?;
        self.reads_see_changes(&repetition)?;
        for (a, b, cond) in &progress.partners {
            let (a, b) = (a.index(), b.index());
            if self.executed(a)
                && self.executed(b)
                && repetition.repeated.contains(&a)
                && !repetition.repeated.contains(&b)
            {
                let together = self.holds(*cond)?;
                if together {
                    return Err(format!(
                        "barrier event {a} repeats, and its partner {b} does not"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that repeated reads keep their sources, and that no other read has a repeated source.
    fn sources_repeat(&self, of: &Repetition) -> Result<(), String> {
        let rf = self.values();
        for (w, r) in rf.iter() {
            if of.repeated.contains(&w) && !of.repeated.contains(&r) {
                return Err(format!(
                    "read {r} executes once and takes its value from repeated write {w}"
                ));
            }
            if let (Some(&w2), Some(&r2)) = (of.again.get(&w), of.again.get(&r))
                && !rf.has(w2, r2)
            {
                return Err(format!("read {r2} has not the source that read {r} has"));
            }
        }
        Ok(())
    }

    /// Checks that coherence orders repeated writes alike each time, and behind all others.
    fn coherence_repeats(&self, of: &Repetition) -> Result<(), String> {
        let co = self.order();
        for (a, b) in co.iter() {
            if of.repeated.contains(&a) && !of.blocks.contains(&b) {
                return Err(format!(
                    "write {b}, which executes once, is after repeated write {a}"
                ));
            }
            if let (Some(&a2), Some(&b2)) = (of.again.get(&a), of.again.get(&b))
                && !co.has(a2, b2)
            {
                return Err(format!(
                    "writes {a2} and {b2} have not the order that {a} and {b} have"
                ));
            }
        }
        if let Some((a, b)) = co.iter().find(|(a, b)| {
            of.blocks.contains(a)
                && of.repeated.contains(a)
                && of.blocks.contains(b)
                && !of.repeated.contains(b)
        }) {
            return Err(format!(
                "write {b} of an earlier block is after write {a} of a later one"
            ));
        }
        Ok(())
    }

    /// Checks that repeated reads see the writes that repeat, or else the last write.
    fn reads_see_changes(&self, of: &Repetition) -> Result<(), String> {
        let (rf, co) = (self.values(), self.order());
        for &r in of
            .repeated
            .iter()
            .filter(|&&e| self.facts.sk.events[e].is_read())
        {
            let Some((w, _)) = rf.iter().find(|&(_, to)| to == r) else {
                continue;
            };
            let changing = of
                .blocks
                .iter()
                .any(|&b| self.is_write(b) && self.cells[b] == self.cells[r]);
            if changing && !of.blocks.contains(&w) {
                return Err(format!(
                    "repeated read {r} never sees the writes that repeat"
                ));
            }
            if !changing && co.iter().any(|(a, b)| a == w && self.executed(b)) {
                return Err(format!(
                    "repeated read {r} never sees a write that overwrites its source"
                ));
            }
        }
        Ok(())
    }

    /// The pairs of executed events of two blocks of equal content.
    fn equal_blocks(&mut self, repeat: &Repeat) -> Result<Vec<(usize, usize)>, String> {
        let mut pairs = Vec::new();
        for (a, b) in &repeat.pairs {
            let there =
                |e: &Option<cat::rel::EventId>| e.map(|e| e.index()).filter(|&e| self.executed(e));
            match (there(a), there(b)) {
                (None, None) => {}
                (Some(a), Some(b)) if self.content(a) == self.content(b) => pairs.push((a, b)),
                _ => return Err("two consecutive blocks of a loop differ in content".to_string()),
            }
        }
        for &(x, y) in &repeat.registers {
            if self.eval.term(x) != self.eval.term(y) {
                return Err(
                    "two consecutive blocks of a loop end with different registers".to_string(),
                );
            }
        }
        Ok(pairs)
    }

    fn values(&self) -> &cat::rel::Rel {
        &self.execution.free[self.facts.task.model.values.0 as usize]
    }

    fn order(&self) -> &cat::rel::Rel {
        &self.execution.free[self.facts.task.model.finals.0 as usize]
    }
}
