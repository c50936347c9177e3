//! Tests each rule about endless executions by hand: an execution that hangs, changed in one edge.
//!
//! The rules are stated twice, as axioms in `models/lib/liveness.cat` and as loops in
//! [`super::evidence`]. Both must reject the changed execution, and accept the original one.

use super::super::replay;
use super::*;
use crate::execution::Execution;
use crate::tests::{parsed, shipped};
use program::EventKind;

const FAIR: ProgressModel = ProgressModel::Fair;

/// A test under `sc`, at a loop bound, with an execution that hangs under `fair`.
struct Hang {
    facts: Rc<Facts<'static>>,
    execution: Execution,
}

fn hang(codes: &[&str], bound: u32) -> Hang {
    let mut text = "name = \"T\"\n[memory]\nx = 0\ny = 0\n".to_string();
    codes
        .iter()
        .for_each(|code| text += &format!("[[thread]]\ncode = \"{code}\"\n"));
    let test = parsed(&text);
    let model = shipped("sc");
    // Tasks borrow their test and model; a test leaks only a few.
    let setting: &'static LivenessTask = Box::leak(Box::new(LivenessTask::new(&test, &model)));
    let limits = Limits {
        bound: Some(bound),
        timeout: None,
    };
    let mut liveness = Liveness::new(setting, Engine::Enumerate, limits, &[]);
    let posed = &setting.posed(false).expect("no host program")[0];
    let ready = liveness
        .ready(0, bound, FAIR, posed, Deadline(None))
        .unwrap_or_else(|e| panic!("{e}"));
    let query = query(&ready.prepared.facts, ready.conditions[&FAIR].hangs);
    let (said, _) = ready
        .prepared
        .ask(Engine::Enumerate, &query, Deadline(None));
    let found = said.found().ok().flatten().expect("it hangs");
    Hang {
        facts: ready.prepared.facts.clone(),
        execution: found.0,
    }
}

fn query(facts: &Facts<'_>, require: Cond) -> Query<'static> {
    let axioms = vec![true; facts.task.model.axioms.len()];
    Query {
        complete: false,
        props: Vec::new(),
        flags: None,
        spared: None,
        require,
        no_fault: true,
        axioms,
    }
}

impl Hang {
    /// The nth executed event of a kind in a thread, or the nth initial write.
    fn event(&self, thread: usize, kind: EventKind, nth: usize) -> usize {
        let events = &self.facts.sk.events;
        let mine = |e: &usize| {
            events[*e].kind == kind
                && (kind == EventKind::Init
                    || events[*e]
                        .thread
                        .is_some_and(|t| usize::from(t.0) == thread))
        };
        self.execution
            .executed
            .iter()
            .filter(mine)
            .nth(nth)
            .expect("the execution has that event")
    }

    /// Gives a read another source.
    fn read_from(&mut self, read: usize, write: usize) {
        let values = self.facts.task.model.values.0 as usize;
        for w in 0..self.facts.sk.len() {
            self.execution.free[values].remove(w, read);
        }
        self.execution.free[values].insert(write, read);
    }

    /// Makes a write the last one of its location.
    fn put_last(&mut self, write: usize) {
        let order = self.facts.task.model.finals.0 as usize;
        let others: Vec<usize> = self.execution.free[order]
            .iter()
            .flat_map(|(a, b)| [a, b])
            .collect();
        let related = |o: &usize| {
            self.execution.free[order].has(write, *o) || self.execution.free[order].has(*o, write)
        };
        for other in others.iter().copied().filter(related).collect::<Vec<_>>() {
            self.execution.free[order].remove(write, other);
            self.execution.free[order].insert(other, write);
        }
    }

    /// The verdict of the definition, and the axioms of the model that reject the execution.
    fn judged(&self) -> (Result<(), String>, Vec<String>) {
        let progress = self
            .facts
            .sk
            .progress
            .as_deref()
            .expect("built for progress");
        let law = evidence::judge(&self.facts, &self.execution, progress, FAIR).map(|_| ());
        let rules: Vec<&str> = RULES.axioms.iter().map(|a| a.name.as_str()).collect();
        let replayed = replay::replay(&self.facts, &self.execution).expect("it is a candidate");
        let names = replayed
            .rejected_by
            .iter()
            .map(|&i| self.facts.task.model.axioms[i].name.clone());
        (law, names.filter(|n| rules.contains(&n.as_str())).collect())
    }

    #[track_caller]
    fn accepted(&self) {
        assert_eq!(self.judged(), (Ok(()), Vec::new()));
    }

    /// The definition rejects it with these words, the model by these axioms.
    #[track_caller]
    fn rejected(&self, words: &str, rules: &[&str]) {
        let (law, by) = self.judged();
        let law = law.expect_err("the definition rejects it");
        assert!(law.contains(words), "{law}");
        assert_eq!(by, rules);
    }
}

const WRITES: &str = "L: st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y; beq r0, 0, L";

#[test]
fn a_repeated_write_is_not_there_for_a_read_that_executes_once() {
    let mut h = hang(&[WRITES, "ld.relaxed.gpu r1, x; ld.relaxed.gpu r1, x"], 2);
    let read = h.event(1, EventKind::Read, 1);
    h.read_from(read, h.event(0, EventKind::Write, 0));
    // The value of the read changes with its source.
    h.execution.reads[read] = Some(1);
    h.accepted();
    h.read_from(read, h.event(0, EventKind::Write, 1));
    h.rejected(
        "executes once and takes its value from repeated write",
        &["Repeated-Writes"],
    );
}

#[test]
fn infinitely_many_writes_do_not_all_come_before_another() {
    let mut h = hang(&[WRITES, "st.relaxed.gpu x, 2"], 2);
    h.accepted();
    h.put_last(h.event(1, EventKind::Write, 0));
    h.rejected(
        "executes once, is after repeated write",
        &["Fair-Coherence"],
    );
}

#[test]
fn a_repeated_read_sees_what_goes_on() {
    let again = "L: atom.relaxed.gpu.exch r0, x, 1; goto L";
    let mut h = hang(
        &[
            "st.relaxed.gpu x, 1",
            again,
            "M: ld.relaxed.gpu r0, x; bne r0, 2, M",
        ],
        2,
    );
    let poll = h.event(2, EventKind::Read, 0);
    h.execution.reads[poll] = Some(1);
    h.read_from(poll, h.event(1, EventKind::Write, 1));
    h.accepted();
    h.read_from(poll, h.event(0, EventKind::Write, 0));
    h.rejected("never sees the writes that repeat", &["Fair-Polling"]);
}

#[test]
fn a_repeated_read_sees_what_nothing_overwrites() {
    let h = hang(
        &[
            "st.relaxed.gpu x, 1; st.relaxed.gpu x, 1",
            "M: ld.relaxed.gpu r0, x; bne r0, 2, M",
        ],
        1,
    );
    h.accepted();
    let mut stale = Hang {
        facts: h.facts.clone(),
        execution: h.execution.clone(),
    };
    stale.read_from(
        h.event(1, EventKind::Read, 0),
        h.event(0, EventKind::Write, 0),
    );
    stale.rejected(
        "never sees a write that overwrites its source",
        &["Fair-Visibility"],
    );
}

#[test]
fn the_later_block_does_what_the_earlier_one_did() {
    let mut h = hang(
        &["L: st.relaxed.gpu x, 1; ld.relaxed.gpu r0, x; beq r0, 1, L"],
        2,
    );
    h.accepted();
    // The earlier block reads its own write; the later one reads that write, too, which has the
    // same value.
    h.read_from(
        h.event(0, EventKind::Read, 1),
        h.event(0, EventKind::Write, 0),
    );
    h.rejected("has not the source", &["Same-Sources"]);
}

#[test]
fn the_later_block_orders_writes_as_the_earlier_one_did() {
    let mut h = hang(
        &["L: st.relaxed.gpu x, 1; st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y; beq r0, 0, L"],
        2,
    );
    h.accepted();
    h.put_last(h.event(0, EventKind::Write, 2));
    h.rejected("have not the order", &["Same-Coherence"]);
}

#[test]
fn blocks_of_two_threads_repeat_side_by_side() {
    let mut h = hang(
        &[
            WRITES,
            "L: st.relaxed.gpu x, 2; ld.relaxed.gpu r0, y; beq r0, 0, L",
        ],
        2,
    );
    h.accepted();
    // All writes of one thread come after all of the other, which cannot continue.
    h.put_last(h.event(1, EventKind::Write, 0));
    h.put_last(h.event(1, EventKind::Write, 1));
    h.rejected("of an earlier block is after write", &["Blocks-In-Order"]);
}

#[test]
fn who_meets_at_a_barrier_for_ever_does_so_together() {
    let met = hang(&["L: bar.sync 0, 2; goto L", "L: bar.sync 0, 2; goto L"], 2);
    met.accepted();
    // If one thread leaves after two rounds, the other is blocked in its third, and does not repeat
    // its second.
    let left = hang(
        &["L: bar.sync 0, 2; goto L", "bar.sync 0, 2; bar.sync 0, 2"],
        4,
    );
    left.accepted();
    let progress = left.facts.sk.progress.clone().expect("built for progress");
    let second = progress.threads[0]
        .repeats
        .iter()
        .find(|r| r.pairs.len() == 2 && r.period == 1);
    let choice = left
        .facts
        .sk
        .pool
        .as_choice(second.expect("two rounds are two blocks").choice)
        .expect("a choice");
    let mut repeated = Hang {
        facts: left.facts.clone(),
        execution: left.execution.clone(),
    };
    repeated.execution.choices[choice as usize] = true;
    // With the choice made, the events of the third round are gone.
    let third: Vec<usize> = (0..left.facts.sk.len())
        .filter(|&e| {
            left.facts.sk.events[e].thread.is_some_and(|t| t.0 == 0)
                && left.execution.executed.has(e)
        })
        .skip(4)
        .collect();
    third
        .iter()
        .for_each(|&e| repeated.execution.executed.remove(e));
    repeated.rejected("and its partner", &["Barriers-Repeat-Together"]);
}
