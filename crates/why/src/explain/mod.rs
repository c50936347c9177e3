//! Explains why an outcome is forbidden, or which part an allowed one lacks:
//! [`Explanation`](verdict::Explanation)s.
//!
//! | File | Content |
//! |---|---|
//! | `asked` | the subject of the condition, and the proof that speaks of it |
//! | `derive` | why a pair is in a relation, in one execution |
//! | `links` | derivations as chains, as plain data |
//! | `words` | steps of a derivation in words |
//! | `missing` | the link that holds in a changed program only |
//! | `carried` | an execution as one of a changed program |
//!
//! # Invariants
//! - Each statement about an execution was verified against its values. The engine of the session
//!   decided each statement about another program.
//! - The code names no relation of a model; a model that is only a text is explained like the
//!   shipped ones.

mod asked;
mod carried;
mod derive;
mod links;
mod missing;
mod words;

pub(super) use carried::{carried_over, placed, reordered};
pub(super) use missing::{Refuting, missing_links};

use self::asked::{LastObservables, Said};
use self::derive::Deriver;
use self::links::Chain;
use self::words::Words;
use cat::algebra::bits::Bits;
use cat::algebra::{Value, Values};
use cat::model::ir::Axiom;
use cat::model::text;
use cat::rel::EventSet;
use engine::execution::Execution;
use engine::facts::Facts;
use engine::replay::Replay;
use engine::witness;
use verdict::{Breach, ComposedLink};

/// How an execution breaks an axiom.
///
/// # Errors
/// The law that the explanation itself breaks.
pub(super) fn breach(
    facts: &Facts<'_>,
    execution: &Execution,
    replayed: &Replay,
    axiom: usize,
) -> Result<Breach, String> {
    analysed(facts, execution, replayed, axiom).map(|(breach, _)| breach)
}

/// Among executions that some axioms reject: the one, with its axiom, whose proof says most about
/// the question; the first of equals.
fn telling<'r>(
    facts: &Facts<'_>,
    rejected: impl DoubleEndedIterator<Item = &'r (Execution, Replay)>,
    axioms: impl Fn(&Replay) -> Vec<usize>,
) -> Option<(&'r (Execution, Replay), usize)> {
    let asked = LastObservables::new(facts);
    let said = |(execution, replayed): &(Execution, Replay), axiom: usize| -> Option<Said> {
        let (_, chain) = analysed(facts, execution, replayed, axiom).ok()?;
        Some(asked.said(chain.steps.iter().chain(&chain.besides)))
    };
    let all = rejected.rev().flat_map(|found| {
        axioms(&found.1)
            .into_iter()
            .rev()
            .map(move |axiom| (found, axiom))
    });
    all.max_by_key(|(found, axiom)| said(found, *axiom))
}

/// As [`breach`], with the derivations.
fn analysed(
    facts: &Facts<'_>,
    execution: &Execution,
    replayed: &Replay,
    axiom: usize,
) -> Result<(Breach, Chain), String> {
    let model = facts.task.model;
    let axiom = &model.axioms[axiom];
    let deriver = deriver(facts, &replayed.values, execution);
    let words = Words::new(facts, execution);
    let asked = LastObservables::new(facts);
    let members: Vec<(usize, usize)> = match replayed.values[axiom.node.index()].as_deref() {
        Some(Value::Rel(rel)) => rel.iter().collect(),
        Some(Value::Set(set)) => set.iter().map(|e| (e, e)).collect(),
        None => Vec::new(),
    };
    // Nothing shows what a negated test lacks.
    let found = if axiom.negated {
        None
    } else {
        links::chain(&deriver, &words, axiom.test, axiom.node, &members, &asked)
    };
    if found.is_none() && !axiom.negated {
        return Err(format!(
            "an execution that breaks `{}` does not show it",
            axiom.name
        ));
    }
    let chain = found.unwrap_or_default();
    verify(&deriver, &chain, axiom)?;
    let mut events = Vec::new();
    let made = chain.made.iter().map(|m| &m.2);
    chain
        .steps
        .iter()
        .chain(&chain.besides)
        .chain(made)
        .for_each(|step| links::events(step, &mut events));
    let (shown, position) = witness::describe_with(facts, execution, replayed, &events);
    let place = |e: usize| position[e].expect("the events of an explanation are shown");
    let all = |steps: &[derive::Step]| {
        steps
            .iter()
            .map(|s| links::link(&deriver, &words, s, &place))
            .collect()
    };
    let breach = Breach {
        axiom: axiom.name.clone(),
        text: format!(
            "{} {}",
            text::test_name(axiom),
            text::expression(model, axiom.node, false)
        ),
        doc: axiom.doc.clone(),
        execution: shown,
        chain: all(&chain.steps),
        made: (chain.made.iter())
            .map(|(first, last, step)| ComposedLink {
                first: *first,
                last: *last,
                link: links::link(&deriver, &words, step, &place),
            })
            .collect(),
        closes: chain.closes,
        besides: all(&chain.besides),
    };
    Ok((breach, chain))
}

fn deriver<'a>(
    facts: &'a Facts<'_>,
    values: &'a Values<Bits>,
    execution: &'a Execution,
) -> Deriver<'a> {
    let of_thread = EventSet::from_fn(facts.sk.len(), |e| facts.sk.event(e).thread.is_some());
    Deriver::new(facts.task.model, values, &execution.executed, of_thread)
}

/// Checks a chain against the execution: its derivations are right, their pairs break the axiom,
/// and its links meet.
fn verify(deriver: &Deriver<'_>, chain: &Chain, axiom: &Axiom) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("the explanation of `{}`: {what}", axiom.name));
    let made = chain.made.iter().map(|m| &m.2);
    for step in chain
        .roots
        .iter()
        .chain(&chain.steps)
        .chain(&chain.besides)
        .chain(made)
    {
        if let Err(what) = deriver.verify(step) {
            return wrong(&what);
        }
    }
    if chain.steps.windows(2).any(|w| w[0].to != w[1].from) {
        return wrong("its links do not meet");
    }
    if let (true, Some(first), Some(last)) = (chain.closes, chain.steps.first(), chain.steps.last())
        && first.from != last.to
    {
        return wrong("its cycle does not close");
    }
    if !axiom.negated && chain.roots.is_empty() {
        return wrong("nothing breaks it");
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
