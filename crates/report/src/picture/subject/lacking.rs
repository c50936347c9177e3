//! Shows why an outcome is allowed: the chain that would forbid it, with the missing link.
//!
//! # Invariants
//! - The execution with the outcome and the execution of the changed program that breaks the axiom
//!   may differ only in fences that the chain avoids. Then one picture shows both the outcome and
//!   the chain. Otherwise a second picture, with a note, shows the chain in the changed program's
//!   execution.

use super::super::super::AnswerLine;
use super::super::scene::{CycleStep, PictureSubject};
use super::super::style::MISSING;
use super::{facts, final_state, steps, witnessed as shown};
use verdict::{Breach, Missing, Style, Witness, WitnessEvent};

/// The execution that shows an answer, with the missing link of an allowed outcome.
pub(super) fn witnessed<'a>(line: &'a AnswerLine, witness: &'a Witness) -> Vec<PictureSubject<'a>> {
    let mut first = shown(line, witness);
    let missing = line
        .answer
        .explanation
        .as_ref()
        .and_then(|e| e.missing.as_ref());
    let Some((missing, breach)) = missing.and_then(|m| Some((m, m.breach.as_ref()?))) else {
        return vec![first];
    };
    let cycle = chain(missing, breach);
    let here = placed(&breach.execution, witness);
    let said = says(missing, breach);
    if let Some(cycle) = cycle
        .iter()
        .map(|step| {
            let here = here.as_ref()?;
            Some(CycleStep {
                from: here[step.from]?,
                to: here[step.to]?,
                name: step.name.clone(),
            })
        })
        .collect()
    {
        first.cycle = cycle;
        first.says.extend(said);
        return vec![first];
    }
    let mut says =
        vec!["An execution of the program changed so that the outcome is forbidden.".to_owned()];
    says.extend(said);
    says.extend(final_state(&breach.execution.state));
    let (title, witness) = (line.test.as_str(), &breach.execution);
    vec![
        first,
        PictureSubject {
            title,
            facts: facts(line),
            witness,
            cycle,
            marks: Vec::new(),
            says,
        },
    ]
}

/// The steps of the chain; steps that the original program lacks get the prefix [`MISSING`].
fn chain(missing: &Missing, breach: &Breach) -> Vec<CycleStep> {
    let mut cycle = Vec::new();
    for (i, link) in breach.chain.iter().enumerate() {
        let before = cycle.len();
        steps(link, &mut cycle);
        if missing.links.iter().any(|m| m.link == Some(i)) {
            cycle[before..]
                .iter_mut()
                .for_each(|step| step.name.insert_str(0, MISSING));
        }
    }
    cycle
}

fn says(missing: &Missing, breach: &Breach) -> Vec<String> {
    let drawn = missing.links.iter().any(|m| m.link.is_some());
    let mut says = vec![match drawn {
        true => {
            format!(
                "If the missing link held, the chain in bold would break {} ({}).",
                breach.axiom, breach.text
            )
        }
        false => format!(
            "Nearly, the chain in bold breaks {} ({}).",
            breach.axiom, breach.text
        ),
    }];
    for link in &missing.links {
        says.push(format!("It does not hold: {}.", link.why.replace('`', "")));
    }
    says
}

/// For each event of the changed program's execution, the corresponding event of the original one;
/// `None` for an inserted fence. Returns `None` if the executions differ in more.
fn placed(changed: &Witness, witness: &Witness) -> Option<Vec<Option<usize>>> {
    fn of(w: &Witness, thread: Option<usize>) -> Vec<usize> {
        (0..w.events.len())
            .filter(|&e| w.events[e].thread == thread)
            .collect()
    }
    fn alike(a: &WitnessEvent, b: &WitnessEvent) -> bool {
        (&a.line, &a.action) == (&b.line, &b.action)
    }
    let mut place = vec![None; changed.events.len()];
    // Only initial writes with edges are shown.
    for e in of(changed, None) {
        place[e] = of(witness, None)
            .into_iter()
            .find(|&w| alike(&changed.events[e], &witness.events[w]));
    }
    for thread in 0..changed.threads.len().max(witness.threads.len()) {
        let (new, old) = (of(changed, Some(thread)), of(witness, Some(thread)));
        let mut added = new.len().checked_sub(old.len())?;
        let mut next = old.into_iter().peekable();
        for e in new {
            let event = &changed.events[e];
            place[e] = next.next_if(|w: &usize| {
                let other = &witness.events[*w];
                alike(event, other)
                    && (added == 0 || event.action != "F" || event.text == other.text)
            });
            if place[e].is_none() {
                added = added.checked_sub(1).filter(|_| event.action == "F")?;
            }
        }
    }
    fn pairs(w: &Witness) -> Vec<(usize, usize)> {
        w.drawn_as(Style::ReadsFrom).to_vec()
    }
    let sources: Option<Vec<(usize, usize)>> = pairs(changed)
        .into_iter()
        .map(|(a, b)| Some((place[a]?, place[b]?)))
        .collect();
    let (mut new, mut old) = (sources?, pairs(witness));
    new.sort_unstable();
    old.sort_unstable();
    (new == old).then_some(place)
}
