//! Computes the facts of a task: lists its values, and narrows them by a short list of passes.
//!
//! 1. Unroll the program, and list the possible values of its terms.
//! 2. If no pass helps with these values, build the base relations. That is all for most tasks.
//! 3. Otherwise bound the relations of the model, and run every pass on these bounds.
//! 4. List the values again, from the same events and the facts found, and build the base
//!    relations.
//!
//! # Invariants
//! - Facts hold in all executions in which all axioms do. Without some pass, the answers to every
//!   query are the same or undecided.
//! - The program is unrolled once.

use std::rc::Rc;
use std::time::Instant;

use super::bounds::TaskBounds;
use super::companions;
use super::implied::Implied;
use super::listing::{self, Listing, UnrolledTask};
use super::relations::{bases, fault, has_cyclic_barrier_order, writers};
use super::{Facts, UnwrittenReads, never, not_worked_out, objects, sums};
use crate::expressible;
use crate::fault::race_is_undefined;
use crate::skeleton::rivals::Rivals;
use crate::skeleton::{Cond, place, signature};
use crate::task::Task;
use program::memory::CellId;
use program::unknown::Unknowns;
use verdict::Reason;

/// One pass.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    /// Its name, by which a test leaves it out.
    pub(crate) name: &'static str,
    /// Whether it can help with a listing of values.
    pub(super) helps: fn(&Task<'_>, &Listing) -> bool,
    /// Adds its facts, from the facts without any pass and their bounds.
    pub(super) add: fn(&Facts<'_>, &TaskBounds, Option<Instant>, &mut Implied),
}

/// All passes, in order.
pub(crate) const PASSES: [Pass; 5] = [
    Pass {
        name: companions::COMPANIONS,
        helps: |_, _| false,
        add: |_, _, _, _| {},
    },
    Pass {
        name: listing::GUARDS,
        helps: |_, _| false,
        add: |_, _, _, _| {},
    },
    Pass {
        name: "never",
        helps: never::helps,
        add: never::add,
    },
    Pass {
        name: "sums",
        helps: sums::helps,
        add: sums::add,
    },
    Pass {
        name: "objects",
        helps: objects::helps,
        add: objects::add,
    },
];

impl<'a> Facts<'a> {
    /// Computes everything known about a task before solving.
    ///
    /// # Errors
    /// The reason why every question about the task is `undecided`.
    pub fn of(task: &Task<'a>, deadline: Option<Instant>) -> Result<Facts<'a>, Reason> {
        Facts::by(&PASSES, task, deadline)
    }

    /// As [`Facts::of`], by these passes alone.
    pub(crate) fn by(
        passes: &[Pass],
        task: &Task<'a>,
        deadline: Option<Instant>,
    ) -> Result<Facts<'a>, Reason> {
        let program = &task.test.program;
        expressible::check(task.test, task.model)?;
        if task.options.same_value_benign() && race_is_undefined(task.model) {
            let what = "`same-value=benign` under this model: a race is undefined behaviour here, \
                whatever the values; take a model of PTX";
            return Err(Reason::Unsupported(what.into()));
        }
        let unknowns = Unknowns::of(program);
        if let Some((made, steered)) = unknowns.steered() {
            let depends = place(program, steered).to_string();
            return Err(not_worked_out(program, made, depends));
        }
        let guards = passes.iter().any(|pass| pass.name == listing::GUARDS);
        let mut unrolled = UnrolledTask::new(guards, task, deadline)?;
        let nothing = unrolled.nothing();
        let (plain, unlisted) = match unrolled.list(&nothing, false) {
            Ok(listing) if !passes.iter().any(|pass| (pass.helps)(task, &listing)) => {
                // The listing then owns its events, and nothing copies them.
                drop(unrolled);
                return Facts::complete(passes, task, listing, nothing, unknowns, deadline);
            }
            Ok(listing) => (listing, None),
            Err(why @ Reason::TooManyValues(_)) => match unrolled.list(&nothing, true) {
                Ok(listing) => (listing, Some(why)),
                Err(_) => return Err(why),
            },
            Err(why) => return Err(why),
        };
        let plain = match Facts::complete(passes, task, plain, nothing, unknowns, deadline) {
            Ok(plain) => plain,
            Err(why) => return Err(unlisted.unwrap_or(why)),
        };
        let narrowed = narrowed(passes, &plain, unlisted.as_ref(), &mut unrolled, deadline)?;
        match (narrowed, unlisted) {
            (Some(facts), _) => Ok(facts),
            (None, Some(why)) => Err(why),
            (None, None) => Ok(plain),
        }
    }

    /// Builds the relations and conditions over listed values.
    fn complete(
        passes: &[Pass],
        task: &Task<'a>,
        listing: Listing,
        implied: Implied,
        unknowns: Unknowns,
        deadline: Option<Instant>,
    ) -> Result<Facts<'a>, Reason> {
        let (test, model) = (task.test, task.model);
        let (mut sk, domains) = (Rc::unwrap_or_clone(listing.sk), listing.domains);
        let (bases, open) = bases(model, &mut sk, &domains, deadline)?;
        let rivals = task
            .options
            .same_value_benign()
            .then(|| Rivals::of(&mut sk, &domains, &unknowns));
        debug_assert!(
            bases
                .iter()
                .all(|(&id, (_, base))| signature::is_present(id, &sk.program) || base.is_empty()),
            "base relations that need absent instructions have no members"
        );
        let fault = fault(&mut sk, &domains, deadline)?;
        let observed = test.observables();
        let mut observed_cells: Vec<CellId> = Vec::new();
        for &o in &observed {
            if let Some(c) = sk.observed_cell(o)
                && !observed_cells.contains(&c)
            {
                observed_cells.push(c);
            }
        }
        let mut at_cell = Vec::new();
        for &cell in &observed_cells {
            if stop::late(deadline) {
                return Err(Reason::Time);
            }
            at_cell.push(writers(&mut sk, &domains, cell));
        }
        // Later users of the pool have their own deadline.
        sk.pool.unwatch()?;
        let by_companions = passes
            .iter()
            .any(|pass| pass.name == companions::COMPANIONS);
        Ok(Facts {
            names: observed
                .iter()
                .map(|&o| sk.memory.observable_name(&sk.program, o).into())
                .collect(),
            check_barrier_order: has_cyclic_barrier_order(&sk),
            companions: by_companions.then(|| companions::of(&sk)).flatten(),
            absent: signature::absent(model, &sk.program),
            open_values: domains.open && !task.excludes_thin_air(),
            task: *task,
            sk,
            domains,
            bases,
            open,
            fault,
            started: Cond::TRUE,
            observed,
            observed_cells,
            at_cell,
            rivals,
            unknowns,
            unwritten: UnwrittenReads::default(),
            needed: listing.needed,
            unlisted: None,
            implied,
        })
    }
}

/// The facts with those that passes find in the facts without them. `None` if the passes find
/// nothing, or do not make the values listable. `unlisted` is the reason why the values could not
/// be listed without them.
fn narrowed<'a>(
    passes: &[Pass],
    plain: &Facts<'a>,
    unlisted: Option<&Reason>,
    unrolled: &mut UnrolledTask<'_, 'a>,
    deadline: Option<Instant>,
) -> Result<Option<Facts<'a>>, Reason> {
    let all = vec![true; plain.task.model.axioms.len()];
    let bounds = TaskBounds::new(plain, &all, deadline).ok_or(Reason::Time)?;
    let mut implied = Implied::nothing(plain.sk.len());
    for pass in passes {
        (pass.add)(plain, &bounds, deadline, &mut implied);
    }
    if implied.is_empty() {
        return Ok(None);
    }
    let again = unrolled.list(&implied, false).and_then(|listing| {
        let unknowns = plain.unknowns.clone();
        Facts::complete(passes, &plain.task, listing, implied, unknowns, deadline)
    });
    match again {
        Ok(mut facts) if facts.sk.len() == plain.sk.len() && facts.needed.is_none() => {
            // The axioms justify that values of no domain are never read.
            facts.domains.open = true;
            facts.unlisted = rests_on_axioms(plain, unlisted, &facts.implied);
            Ok(Some(facts))
        }
        Err(reason @ (Reason::Time | Reason::Interrupted)) => Err(reason),
        _ => Ok(None),
    }
}

/// Why listed values rest on the axioms.
fn rests_on_axioms(
    plain: &Facts<'_>,
    unlisted: Option<&Reason>,
    implied: &Implied,
) -> Option<Reason> {
    if let Some(why) = unlisted {
        return Some(why.clone());
    }
    if let Some(sum) = implied.sums.first() {
        return sum.place(&plain.sk).map(Reason::AddedUp);
    }
    match &plain.needed {
        Some((_, why)) => Some(why.clone()),
        None if implied.objects.words.is_empty() => None,
        None => objects::of_many(&plain.sk, &plain.domains).map(Reason::InOrder),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::engines::TaskEngines;
    use crate::limits::Engine;
    use crate::query::{Deadline, FinalState, Query};
    use crate::tests::{parsed, shipped};

    /// All passes but one.
    pub(in crate::facts) fn without(name: &str) -> Vec<Pass> {
        let left: Vec<Pass> = PASSES
            .into_iter()
            .filter(|pass| pass.name != name)
            .collect();
        assert_eq!(left.len() + 1, PASSES.len(), "no pass {name}");
        left
    }

    /// A block in which each thread adds another power of two, and one reads behind the barrier.
    fn adding(threads: usize) -> String {
        adding_often(threads, 1)
    }

    /// As [`adding`], with several additions by each thread.
    fn adding_often(threads: usize, times: usize) -> String {
        let mut text =
            "name = \"Adding\"\ncondition = 'P0:r == 1'\nmemory = { x = 0 }\n".to_owned();
        for t in 0..threads {
            let read = if t == 0 { "ld.relaxed.cta r, x;" } else { "" };
            let add = format!("atom.relaxed.cta.add a, x, {}; ", 1 << t).repeat(times);
            text += &format!("[[thread]]\ncta = 0\ncode = '{add} bar.sync 0; {read}'\n");
        }
        text
    }

    /// The outcomes by some passes, and whether the facts have pairs that are never read, and sums.
    fn states(passes: &[Pass], text: &str) -> (Vec<FinalState>, [bool; 2]) {
        let test = parsed(text);
        let model = shipped("ptx");
        let facts = Facts::by(passes, &Task::new(&test, &model, &[], 1), None).expect("small");
        let found = [
            !facts.implied.never.is_empty(),
            !facts.implied.sums.is_empty(),
        ];
        let query = Query::complete(&model);
        let (states, halt, _) =
            TaskEngines::new(facts).all_states(Engine::Sat, &query, Deadline(None));
        assert!(halt.is_none(), "{text}");
        (states, found)
    }

    #[test]
    fn outcomes_are_the_same_without_a_pass() {
        let text = adding(5);
        let (all, found) = states(&PASSES, &text);
        assert_eq!((all.len(), found), (1, [true, true]));
        for (name, left) in [("never", [false, true]), ("sums", [false, false])] {
            let (states, found) = states(&without(name), &text);
            assert_eq!((&states, found), (&all, left), "without {name}");
        }
    }

    #[test]
    fn additions_of_one_thread_are_one_sum_with_those_of_others() {
        let text = adding_often(3, 3);
        let (all, found) = states(&PASSES, &text);
        assert_eq!((all.len(), found), (1, [true, true]));
        let (states, _) = states(&without("sums"), &text);
        assert_eq!(states, all);
    }

    #[test]
    fn few_values_need_no_pass() {
        let (all, found) = states(&PASSES, &adding(2));
        assert_eq!((all.len(), found), (1, [false, false]));
    }
}
