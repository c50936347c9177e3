//! Finds the link that holds in a changed program only: its place, and the condition behind it.
//!
//! The changed program has the events of the program, and perhaps more fences. An execution of it
//! that breaks an axiom is read as one of the original program, and every step of its chain is
//! looked up there.
//!
//! # Invariants
//! - Each claim that a step holds or fails was looked up in the values of that execution, in the
//!   original program.

use super::derive::{Deriver, Step};
use super::words::Words;
use super::{analysed, deriver};
use crate::knobs::Added;
use cat::model::ir::NodeOp;
use cat::rel::{EventSet, Rel};
use engine::execution::Execution;
use engine::facts::Facts;
use engine::replay;
use engine::replay::Replay;
use engine::witness;
use verdict::{Breach, MissingLink};

/// An execution of the changed program that breaks an axiom.
pub(crate) struct Refuting<'r, 'a> {
    pub(crate) facts: &'r Facts<'a>,
    pub(crate) execution: &'r Execution,
    pub(crate) replayed: &'r Replay,
    pub(crate) axiom: usize,
}

/// How the changed program breaks an axiom, and which part of that the original program lacks.
///
/// # Errors
/// The law that the explanation itself breaks.
pub(crate) fn missing_links(
    facts: &Facts<'_>,
    added: &Added,
    refuting: &Refuting<'_, '_>,
) -> Result<(Breach, Vec<MissingLink>), String> {
    let (breach, chain) = analysed(
        refuting.facts,
        refuting.execution,
        refuting.replayed,
        refuting.axiom,
    )?;
    let Some(before) = Before::new(facts, added, refuting) else {
        return Ok((breach, Vec::new()));
    };
    let values = replay::evaluate(facts, &before.execution);
    let deriver = deriver(facts, &values, &before.execution);
    let look = Look {
        before: &before,
        deriver: &deriver,
        words: Words::new(facts, &before.execution),
        facts,
    };
    let mut links = Vec::new();
    for (i, step) in chain.steps.iter().enumerate() {
        links.extend(look.lacks(step).map(|(path, why)| MissingLink {
            link: Some(i),
            path,
            why,
        }));
    }
    if links.is_empty() {
        for (first, _, step) in &chain.made {
            links.extend(look.lacks(step).map(|(path, why)| MissingLink {
                link: Some(*first),
                path,
                why,
            }));
        }
    }
    if links.is_empty() {
        let roots = chain.besides.iter().chain(&chain.roots);
        links.extend(
            roots
                .filter_map(|step| look.lacks(step))
                .map(|(path, why)| MissingLink {
                    link: None,
                    path,
                    why,
                }),
        );
        links.truncate(1);
    }
    if links.is_empty() {
        links = unordered(facts, refuting, &chain.steps, &look);
    }
    Ok((breach, links))
}

/// An order that the model leaves free holds only the pairs that it must. If a step of the chain
/// rests on such a pair: the reason for the pair in the changed program, which fails in the
/// original one.
fn unordered(
    facts: &Facts<'_>,
    refuting: &Refuting<'_, '_>,
    steps: &[Step],
    look: &Look<'_>,
) -> Vec<MissingLink> {
    let after = deriver(
        refuting.facts,
        &refuting.replayed.values,
        refuting.execution,
    );
    let mut links = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let mut left = vec![step];
        while let Some(at) = left.pop() {
            left.extend(&at.parts);
            let NodeOp::Free(free) = facts.task.model.node(at.node).op else {
                continue;
            };
            let Some(covering) = facts.task.model.free[free.0 as usize].covering else {
                continue;
            };
            // The pair may be there by transitivity only.
            for pair in after.way(at.node, covering, at.from, at.to).windows(2) {
                if let Some((mut path, why)) = look.lacks(&after.derive(covering, pair[0], pair[1]))
                {
                    path.insert(0, look.words.name(at.node));
                    links.push(MissingLink {
                        link: Some(i),
                        path,
                        why,
                    });
                }
            }
        }
    }
    links
}

/// An execution of the changed program as one of the original program.
struct Before {
    execution: Execution,
    /// By event of the changed program.
    event: Vec<Option<usize>>,
}

/// By event of the changed program, the event of the original one; `None` for an added fence.
/// `None` as a whole if the programs differ in more.
pub(super) fn pairing(
    facts: &Facts<'_>,
    added: &Added,
    changed: &Facts<'_>,
) -> Option<Vec<Option<usize>>> {
    let (old, new) = (&facts.sk, &changed.sk);
    let mut event = Vec::with_capacity(new.len());
    let mut next = 0;
    for e in &new.events {
        let put_in = e
            .thread
            .is_some_and(|t| added.has(&new.program, (t, e.instr)));
        event.push((!put_in).then_some(next));
        next += usize::from(!put_in);
    }
    let paired = next == old.len()
        && event.iter().enumerate().all(|(e, i)| {
            i.is_none_or(|i| {
                (old.events[i].thread, old.events[i].kind)
                    == (new.events[e].thread, new.events[e].kind)
            })
        });
    (paired && old.pool.choice_count() == new.pool.choice_count()).then_some(event)
}

impl Before {
    fn new(facts: &Facts<'_>, added: &Added, refuting: &Refuting<'_, '_>) -> Option<Before> {
        let old = &facts.sk;
        let event = pairing(facts, added, refuting.facts)?;
        let from = refuting.execution;
        let mut executed = EventSet::empty(old.len());
        let mut reads = vec![None; old.len()];
        for (e, at) in event.iter().enumerate() {
            let Some(at) = *at else { continue };
            if from.executed.has(e) {
                executed.insert(at);
            }
            reads[at] = from.reads[e];
        }
        let execution = Execution {
            executed,
            reads,
            choices: from.choices.clone(),
            free: from
                .free
                .iter()
                .map(|r| {
                    Rel::from_pairs(
                        old.len(),
                        r.iter().filter_map(|(i, j)| Some((event[i]?, event[j]?))),
                    )
                })
                .collect(),
            finals: from
                .finals
                .iter()
                .filter_map(|&(c, w)| Some((c, event[w]?)))
                .collect(),
        };
        Some(Before { execution, event })
    }
}

struct Look<'l> {
    before: &'l Before,
    deriver: &'l Deriver<'l>,
    words: Words<'l>,
    facts: &'l Facts<'l>,
}

impl Look<'_> {
    /// Whether a step differs in the original program, with its events there.
    fn differs(&self, step: &Step) -> bool {
        match (self.before.event[step.from], self.before.event[step.to]) {
            (Some(i), Some(j)) => self.deriver.has(step.node, i, j) != step.holds,
            _ => true,
        }
    }

    /// The names down to the failing condition, and the reason; `None` if the step is unchanged.
    fn lacks(&self, step: &Step) -> Option<(Vec<String>, String)> {
        if !self.differs(step) {
            return None;
        }
        let mut path = Vec::new();
        let mut at = step;
        loop {
            let name = self.words.name(at.node);
            let named = self.facts.task.model.node(at.node).name.is_some() || at.parts.is_empty();
            if named && path.last() != Some(&name) {
                path.push(name);
            }
            match at.parts.iter().find(|p| self.differs(p)) {
                Some(part) => at = part,
                None => break,
            }
        }
        let (Some(i), Some(j)) = (self.before.event[at.from], self.before.event[at.to]) else {
            return Some((path, "the fence is not there".to_owned()));
        };
        let failing = Step {
            from: i,
            to: j,
            holds: !at.holds,
            parts: Vec::new(),
            ..at.clone()
        };
        let why = self
            .words
            .clause(&failing)
            .replace("{a}", &self.called(i))
            .replace("{b}", &self.called(j));
        Some((path, why))
    }

    fn called(&self, event: usize) -> String {
        let e = witness::event(self.facts, &self.before.execution, event);
        match e.thread {
            Some(_) => format!("`{}` ({}, line {})", e.text.trim(), e.who(), e.line),
            None => format!("the initial `{}`", e.action.trim_start_matches("W ")),
        }
    }
}
