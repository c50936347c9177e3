//! Finds waits that pass alike, so that one choice stands for all of them.
//!
//! Whether a wait passes is a choice, tied to the arrivals of the other threads. All threads of a
//! block often wait for one of them, which may not come: it takes a lock first. Then each thread
//! has a choice of its own, and conditions about several threads have the product of them all.
//!
//! # Why one choice suffices
//! - A constraint ties the choice of a wait that is reached to the condition that it passes. If two
//!   waits have the same condition to be reached and the same condition to pass, their choices are
//!   equal wherever these waits are reached. Where they are not, nothing depends on their choices.
//! - So each execution with two choices is one with a single choice, and the other way round. A
//!   circular wait stays impossible: that is a matter of events, not of choices.
//! - Unrolling with shared choices changes the conditions. So the classes are computed again, and
//!   each old class must be part of a new one. Otherwise no choice is shared.
//! - Questions about progress tell the threads that wait from those that passed. They share none.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::{GuardedWait, WaitKey};

/// By wait: the first wait of its class.
pub(crate) type SharedWaits = FxHashMap<WaitKey, WaitKey>;

/// Fewer waits have few combinations of choices.
const MANY: usize = 8;
#[cfg(test)]
thread_local! {
    pub(crate) static FROM: std::cell::Cell<usize> = const { std::cell::Cell::new(MANY) };
}

/// The number of waits from which a class shares its choice.
fn many() -> usize {
    #[cfg(test)]
    return FROM.get();
    #[cfg(not(test))]
    MANY
}

/// The classes of waits that are reached and pass under the same conditions, but those that surely
/// pass. `passes` has the condition for each wait.
pub(super) fn classes(
    waits: &[GuardedWait],
    passes: &[Cond],
    sure: &FxHashSet<WaitKey>,
) -> SharedWaits {
    let mut of_key: FxHashMap<&WaitKey, usize> = FxHashMap::default();
    let mut classes: FxHashMap<(Cond, Cond), Vec<&WaitKey>> = FxHashMap::default();
    for (wait, &passes) in waits.iter().zip(passes) {
        *of_key.entry(&wait.key).or_default() += 1;
        let is_open = wait.pass != Cond::TRUE && !sure.contains(&wait.key);
        // A condition that is not known yet counts as false.
        if is_open && passes != Cond::FALSE && wait.reached != Cond::FALSE {
            let class = classes.entry((wait.reached, passes)).or_default();
            class.push(&wait.key);
        }
    }
    let mut shared = SharedWaits::default();
    for class in classes.values_mut() {
        class.retain(|key| of_key[*key] == 1);
        if class.len() >= many() {
            let first = class[0];
            shared.extend(class.iter().map(|key| ((*key).clone(), first.clone())));
        }
    }
    shared
}

/// Whether waits that shared a choice are still alike, or surely pass.
pub(crate) fn are_alike(old: &SharedWaits, new: &SharedWaits, sure: &FxHashSet<WaitKey>) -> bool {
    old.iter().all(|(key, first)| {
        let classes = [key, first].map(|key| new.get(key));
        let both_sure = [key, first].iter().all(|key| sure.contains(*key));
        both_sure || classes[0].is_some() && classes[0] == classes[1]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::TaskEngines;
    use crate::facts::Facts;
    use crate::limits::Engine;
    use crate::query::{Deadline, FinalState, Query};
    use crate::task::Task;
    use crate::tests::{parsed, shipped};

    /// Blocks in which the first thread takes a lock before a barrier; all threads then add to
    /// words of their own, meet again, and the first one lets the lock go.
    fn locked(blocks: usize, threads: usize) -> String {
        let words: Vec<String> = (0..threads).map(|t| format!("x{t} = 0")).collect();
        let mut text = format!(
            "name = \"Locked\"\nbound = 2\ncondition = 'x0 == 1'\nmemory = {{ l = 0, {} }}\n",
            words.join(", ")
        );
        for block in 0..blocks {
            for t in 0..threads {
                let [take, give] = match t {
                    0 => [
                        "L: atom.acquire.gpu.cas.b32 s, [l], 0, 1; setp.ne.u32 p, s, 0; @p bra L;",
                        "st.release.gpu.u32 [l], 0;",
                    ],
                    _ => ["", ""],
                };
                let code = format!(
                    "{take} bar.sync 0; ld.weak.u32 r, [x{t}]; add.u32 r, r, 1; \
                     st.weak.u32 [x{t}], r; bar.sync 0; {give}"
                );
                text += &format!("[[thread]]\ncta = {block}\ncode = '{code}'\n");
            }
        }
        text
    }

    /// The outcomes and the number of choices, if so many waits share one.
    fn outcomes(from: usize, text: &str, engine: Engine) -> (Vec<FinalState>, u32) {
        let (test, model) = (parsed(text), shipped("ptx"));
        FROM.set(from);
        let facts = Facts::of(&Task::new(&test, &model, &[], 2), None);
        FROM.set(MANY);
        let facts = facts.expect("small");
        let choices = facts.sk.pool.choice_count();
        let query = Query::complete(&model);
        let (states, halt, _) = TaskEngines::new(facts).all_states(engine, &query, Deadline(None));
        assert!(halt.is_none(), "{text}");
        (states, choices)
    }

    #[test]
    fn outcomes_are_the_same_with_shared_choices() {
        for (blocks, threads, engines) in [
            (1, 3, &[Engine::Sat, Engine::Enumerate][..]),
            (2, 2, &[Engine::Sat, Engine::Enumerate]),
            (2, 4, &[Engine::Sat]),
        ] {
            let text = locked(blocks, threads);
            let (expected, many) = outcomes(usize::MAX, &text, Engine::Sat);
            assert!(!expected.is_empty() && many as usize >= blocks * threads);
            for &engine in engines {
                let (states, few) = outcomes(2, &text, engine);
                assert_eq!(states, expected, "{text} {engine:?}");
                // A class of one saves nothing.
                assert_eq!(few < many, threads > 2, "{text}");
            }
        }
    }
}
