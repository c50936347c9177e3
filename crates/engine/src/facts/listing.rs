//! Lists the events of a task, and the possible values of their terms.
//!
//! If the values are too many, the listing drops those that nothing depends on
//! ([`skeleton::needed`](crate::skeleton::needed)).

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Instant;

use super::implied::Implied;
use crate::skeleton::Skeleton;
use crate::skeleton::domain::{self, Domains, KnownFacts};
use crate::skeleton::needed::NeededTerms;
use crate::task::Task;
use program::litmus::{self, Atom as PropAtom, Prop};
use program::mbarrier;
use verdict::Reason;

/// The events of a task, with the possible values of their terms.
pub(super) struct Listing {
    pub(super) sk: Rc<Skeleton>,
    pub(super) domains: Domains,
    /// If the engine cannot list every value: the terms whose values it lists, and the reason.
    pub(super) needed: Option<(NeededTerms, Reason)>,
}

/// The name of the pass that belongs to each listing: a write needs a guard that can hold.
pub(super) const GUARDS: &str = "guards";

/// An unrolled task. Each listing of its values begins with the same events.
pub(super) struct UnrolledTask<'t, 'a> {
    task: &'t Task<'a>,
    /// Whether listings have the pass `guards`.
    by_guards: bool,
    deadline: Option<Instant>,
    sk: Rc<Skeleton>,
    /// Unrolled without the values of memory that no thread writes, once needed.
    unfolded: Option<Rc<Skeleton>>,
}

fn unrolled(
    task: &Task<'_>,
    fold: bool,
    deadline: Option<Instant>,
) -> Result<Rc<Skeleton>, Reason> {
    let &Task {
        test,
        options,
        bound,
        purpose,
        ..
    } = task;
    Skeleton::build_for(purpose, test, options, bound, fold, deadline).map(Rc::new)
}

impl<'t, 'a> UnrolledTask<'t, 'a> {
    /// With `guards`, listings have the pass of that name, if it is sound for the task.
    pub(super) fn new(
        guards: bool,
        task: &'t Task<'a>,
        deadline: Option<Instant>,
    ) -> Result<Self, Reason> {
        Ok(UnrolledTask {
            task,
            by_guards: guards && task.excludes_thin_air() && !task.purpose.is_progress(),
            deadline,
            sk: unrolled(task, true, deadline)?,
            unfolded: None,
        })
    }

    /// No fact about these events.
    pub(super) fn nothing(&self) -> Implied {
        Implied::nothing(self.sk.len())
    }

    /// Lists the values, given facts about all executions of interest. With `rough`, only addresses
    /// have to be listed; such a listing serves to bound relations.
    pub(super) fn list(&mut self, implied: &Implied, rough: bool) -> Result<Listing, Reason> {
        let mut listing = self.values(self.sk.clone(), implied, rough)?;
        if listing.domains.hit_fixed(&listing.sk) {
            let unfolded = match self.unfolded.take() {
                Some(sk) => sk,
                None => unrolled(self.task, false, self.deadline)?,
            };
            self.unfolded = Some(unfolded.clone());
            listing = self.values(unfolded, implied, rough)?;
        }
        // A value computed from an unnamed value may be any other value.
        let domains = &mut listing.domains;
        domains.open |= domains.seeded && self.task.props().iter().any(|prop| prop.computes());
        Ok(listing)
    }

    fn values(
        &self,
        mut sk: Rc<Skeleton>,
        implied: &Implied,
        rough: bool,
    ) -> Result<Listing, Reason> {
        let known = KnownFacts {
            by_guards: self.by_guards,
            ..known(&mut sk, implied)
        };
        let seeds = if self.task.excludes_thin_air() {
            Vec::new()
        } else {
            seeds(&sk, &self.task.props())
        };
        match Domains::compute(&sk, &seeds, &known, None, rough, self.deadline) {
            Ok(domains) => Ok(Listing {
                sk,
                domains,
                needed: None,
            }),
            Err(why) => self.fewer_values(&sk, &known, &why).ok_or(why),
        }
    }

    /// Lists the values without those that nothing depends on, if they are then few enough; `why`
    /// is the reason why all of them cannot be listed.
    fn fewer_values(&self, sk: &Skeleton, known: &KnownFacts<'_>, why: &Reason) -> Option<Listing> {
        // No proposition requires any value to exist.
        let may = self.task.excludes_thin_air() && matches!(why, Reason::TooManyValues(_));
        let test = self.task.test;
        let filtered = litmus::observables(&test.filter, &[]);
        [test.observables(), filtered]
            .into_iter()
            .filter(|_| may)
            .find_map(|observables| {
                let mut sk = sk.clone();
                let needed = NeededTerms::alone(&mut sk, &observables);
                let domains =
                    Domains::compute(&sk, &[], known, Some(&needed), false, self.deadline).ok()?;
                needed.covers(&sk, &domains.cells).then(|| Listing {
                    sk: Rc::new(sk),
                    domains,
                    needed: Some((needed, why.clone())),
                })
            })
    }
}

/// The facts in terms of these events.
fn known<'k>(sk: &mut Rc<Skeleton>, implied: &'k Implied) -> KnownFacts<'k> {
    let mut known = KnownFacts::default();
    if implied.is_empty() {
        return known;
    }
    let sk = Rc::make_mut(sk);
    for sum in &implied.sums {
        known.terms.seen.extend(sum.seen(sk));
    }
    for (write, _, _) in &sk.phases {
        if let Some(&phase) = implied.objects.phases.get(&write.index()) {
            let phases = [phase, (phase + 1) & (mbarrier::PHASES - 1)];
            let phases = phases.map(|phase| sk.pool.constant(phase));
            known.terms.phases.insert(write.index(), phases);
        }
    }
    KnownFacts {
        never: Some(&implied.never),
        found: Some(&implied.objects.words),
        ..known
    }
}

/// Constants that a value out of thin air could be compared with, and one that occurs nowhere.
fn seeds(sk: &Skeleton, props: &[&Prop]) -> Vec<i64> {
    fn constants(p: &Prop, out: &mut BTreeSet<i64>) {
        match p {
            Prop::And(ps) | Prop::Or(ps) => ps.iter().for_each(|p| constants(p, out)),
            Prop::Not(p) => constants(p, out),
            Prop::Cmp(_, _, a, b) => {
                for side in [a, b] {
                    side.atoms(&mut |atom| {
                        if let PropAtom::Const(v) = atom {
                            out.insert(*v);
                        }
                    });
                }
            }
        }
    }
    let mut seeds: BTreeSet<i64> = domain::compared_constants(sk).into_iter().collect();
    props.iter().for_each(|p| constants(p, &mut seeds));
    for t in sk.pool.term_ids() {
        seeds.extend(sk.pool.as_const(t));
    }
    let fresh = seeds.iter().max().map_or(1, |m| m.saturating_add(1));
    // The program distinguishes from `fresh` only constants in its propositions and tests.
    let mut named: BTreeSet<i64> = domain::compared_constants(sk).into_iter().collect();
    props.iter().for_each(|p| constants(p, &mut named));
    named.insert(fresh);
    named.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::TaskEngines;
    use crate::facts::Facts;
    use crate::facts::passes::PASSES;
    use crate::facts::passes::tests::without;
    use crate::limits::Engine;
    use crate::query::{Deadline, FinalState, Query};
    use crate::tests::{parsed, shipped};

    /// Threads that write only if they read what the next ones write; with `begins`, a further one
    /// writes without a condition.
    fn feeding(threads: usize, reads: usize, begins: bool) -> String {
        let mut text = "name = \"Feeding\"\ncondition = 'x0 == 1'\n".to_owned();
        let cells: Vec<String> = (0..threads).map(|i| format!("x{i} = 0")).collect();
        text += &format!("memory = {{ {} }}\n", cells.join(", "));
        for i in 0..threads {
            let one = |k: usize| {
                format!(
                    "ld.relaxed.gpu.u32 r{k}, [x{}]; setp.eq.u32 p, r{k}, 0; @p bra L{k}; \
                     st.relaxed.gpu.u32 [x{i}], {}; L{k}: ",
                    (i + k + 1) % threads,
                    k + 1
                )
            };
            let code: String = (0..reads).map(one).collect();
            text += &format!("[[thread]]\ncode = '{code}'\n");
        }
        if begins {
            text += "[[thread]]\ncode = 'st.relaxed.gpu.u32 [x1], 5;'\n";
        }
        text
    }

    /// All outcomes with the pass or without it, and the number of writes that never execute.
    fn outcomes(text: &str, with: bool, engine: Engine) -> (Vec<FinalState>, usize) {
        let (test, model) = (parsed(text), shipped("ptx"));
        let passes = if with {
            PASSES.to_vec()
        } else {
            without(GUARDS)
        };
        let facts = Facts::by(&passes, &Task::new(&test, &model, &[], 1), None).expect("small");
        let unreached = facts.domains.unreached.iter().count();
        let query = Query::complete(&model);
        let (states, halt, _) = TaskEngines::new(facts).all_states(engine, &query, Deadline(None));
        assert!(halt.is_none(), "{text}");
        (states, unreached)
    }

    #[test]
    fn writes_that_wait_for_each_other_never_execute() {
        let text = feeding(24, 4, false);
        let (test, model) = (parsed(&text), shipped("ptx"));
        let facts = Facts::by(&PASSES, &Task::new(&test, &model, &[], 1), None).expect("small");
        assert_eq!(facts.domains.unreached.iter().count(), 24 * 4);
        let (states, _) = outcomes(&text, true, Engine::Auto);
        assert_eq!(states.len(), 1);
    }

    #[test]
    fn outcomes_are_the_same_without_guards() {
        for (threads, reads) in [(2, 1), (2, 2), (3, 1), (3, 2)] {
            for begins in [false, true] {
                let text = feeding(threads, reads, begins);
                let (expected, none) = outcomes(&text, false, Engine::Sat);
                assert_eq!(none, 0);
                for engine in [Engine::Sat, Engine::Enumerate] {
                    let (states, unreached) = outcomes(&text, true, engine);
                    assert_eq!(states, expected, "{text}");
                    assert_eq!(unreached == 0, begins, "{text}");
                }
                assert_eq!(expected.len() > 1, begins);
            }
        }
    }
}
