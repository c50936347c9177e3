//! Finds the events that execute whenever another event does, from their guards.
//!
//! Behind a lock, or a barrier that a lock precedes, no event surely executes. But a guard often
//! implies another one: all threads of a block pass a barrier together, and a later event executes
//! only if earlier ones did. Bounds then contain the paths over such events
//! ([`cat::algebra::companions`]), and circuits need no gates for them.
//!
//! # Invariants
//! - An event executes exactly if its guard holds. So the pairs depend on no axiom.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::skeleton::{Cond, Skeleton};
use cat::algebra::companions::Companions;
use cat::rel::Rel;

/// The name of the pass, by which a test leaves it out.
pub(super) const COMPANIONS: &str = "companions";

/// With more events, paths over open events would take long to find.
const MOST_EVENTS: usize = 2_048;

/// How many steps all comparisons of guards may take. Without more, guards count as unrelated.
const MOST_STEPS: usize = 400_000;

/// The events that execute whenever another one does, among those with a condition.
pub(super) fn of(sk: &Skeleton) -> Option<Rc<Companions>> {
    let mut by_guard: BTreeMap<Cond, Vec<usize>> = BTreeMap::new();
    for (e, event) in sk.events.iter().enumerate() {
        if !event.guard.is_const() {
            by_guard.entry(event.guard).or_default().push(e);
        }
    }
    if by_guard.is_empty() || sk.len() > MOST_EVENTS {
        return None;
    }
    let mut left = MOST_STEPS;
    let mut pairs = Rel::empty(sk.len());
    for (&guard, events) in &by_guard {
        for (&other, brought) in &by_guard {
            if guard == other || sk.pool.entails_within(guard, other, &mut left) {
                for &e in events {
                    brought.iter().for_each(|&k| pairs.insert(e, k));
                }
            }
        }
    }
    Some(Rc::new(Companions::new(pairs)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::engines::TaskEngines;
    use crate::facts::Facts;
    use crate::facts::bounds::TaskBounds;
    use crate::facts::passes::tests::without;
    use crate::facts::passes::{PASSES, Pass};
    use crate::limits::Engine;
    use crate::query::{Deadline, FinalState, Query};
    use crate::task::Task;
    use crate::tests::{parsed, shipped};

    /// A block of `n` threads writes, and its first thread sets a flag; another block waits for it
    /// and reads. Each block meets at a barrier, if `meets` says so.
    fn handing_over(n: usize, meets: [bool; 2]) -> String {
        let cells: Vec<String> = (0..n).map(|i| format!("x{i} = 0")).collect();
        let reads: Vec<String> = (0..n).map(|i| format!("P{}:r == 1", n + i)).collect();
        let mut text = format!(
            "name = \"Handing\"\ncondition = '{}'\nmemory = {{ flag = 0, {} }}\n",
            reads.join(" && "),
            cells.join(", "),
        );
        let [first, second] = meets.map(|meets| if meets { "bar.sync 0; " } else { "" });
        for i in 0..n {
            let set = if i == 0 {
                "st.release.gpu.u32 [flag], 1;"
            } else {
                ""
            };
            text += &format!(
                "[[thread]]\ncta = 0\ncode = 'st.relaxed.gpu.u32 [x{i}], 1; {first}{set}'\n"
            );
        }
        for i in 0..n {
            let wait = "W: ld.acquire.gpu.u32 f, [flag]; setp.eq.u32 p, f, 0; @p bra W; ";
            let wait = if i == 0 { wait } else { "" };
            let of = (i + 1) % n;
            text += &format!(
                "[[thread]]\ncta = 1\ncode = '{wait}{second}ld.relaxed.gpu.u32 r, [x{of}];'\n"
            );
        }
        text
    }

    /// All outcomes by some passes, and the number of open pairs before solving.
    fn states(passes: &[Pass], text: &str, engine: Engine) -> (Vec<FinalState>, usize) {
        let (test, model) = (parsed(text), shipped("ptx"));
        let facts = Facts::by(passes, &Task::new(&test, &model, &[], 2), None).expect("small");
        let all = vec![true; model.axioms.len()];
        let bounds = TaskBounds::new(&facts, &all, None::<Instant>).expect("no deadline");
        let open = bounds.open(&facts);
        let query = Query::complete(&model);
        let (states, halt, _) = TaskEngines::new(facts).all_states(engine, &query, Deadline(None));
        assert!(halt.is_none(), "{text}");
        (states, open)
    }

    #[test]
    fn outcomes_are_the_same_without_companions() {
        for n in 1..=4 {
            for meets in [[true, true], [true, false], [false, true], [false, false]] {
                let text = handing_over(n, meets);
                let (expected, before) = states(&without(COMPANIONS), &text, Engine::Sat);
                for engine in [Engine::Sat, Engine::Enumerate] {
                    let (found, open) = states(&PASSES, &text, engine);
                    assert_eq!(found, expected, "{text}");
                    assert!(open <= before, "{text}");
                    assert!(open < before || n == 1 || !meets[1], "{text}");
                }
                assert_eq!(
                    expected.len() == 1,
                    n == 1 || meets == [true, true],
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn blocks_of_forty_threads_hand_over() {
        let (states, _) = states(&PASSES, &handing_over(20, [true, true]), Engine::Sat);
        assert_eq!(states.len(), 1);
    }
}
