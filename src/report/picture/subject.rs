//! Answers as pictures: which execution is drawn, what is bold in it, and what is said beside it.
//!
//! | Answer | Execution | Marked |
//! |---|---|---|
//! | allowed | one that has the outcome | |
//! | racy, undefined | one that is | the events of the fault |
//! | hangs | one that does not end | how its threads end, who waits for whom |

use super::super::Line;
use super::scene::Subject;
use crate::verdict::{Fault, Property, State, Verdict, Witness};

/// What can be drawn of an answer: nothing, where there is no execution to show.
pub fn subjects(line: &Line) -> Vec<Subject<'_>> {
    let answer = &line.answer;
    let mut found = Vec::new();
    if let Some(fault) = &answer.fault {
        found.extend(faulty(line, fault));
    } else if let Some(witness) = &answer.witness {
        found.push(witnessed(line, witness));
    }
    found
}

/// Why there is nothing to draw.
pub fn nothing(line: &Line) -> String {
    let answer = &line.answer;
    match &answer.verdict {
        Verdict::Undecided(reason) => format!("There is nothing to draw: the question is undecided ({reason})."),
        Verdict::Forbidden if answer.axioms.is_empty() => {
            "There is nothing to draw: no execution ends so, whatever the axioms.".to_owned()
        }
        verdict => format!(
            "There is nothing to draw: the answer is {}, and no single execution shows it.",
            verdict.word()
        ),
    }
}

/// The lines below the title.
fn facts(line: &Line) -> Vec<String> {
    let via = line.mapping.map_or(String::new(), |mapping| format!(", through the mapping {mapping}"));
    let mut facts = vec![format!("{} under {}{via}: {}", line.property, line.model, line.answer.verdict.word())];
    if line.property == Property::Reachability && !line.proposition.is_empty() {
        facts.push(format!("{} ({})", line.quantifier, line.proposition));
    }
    facts
}

fn witnessed<'a>(line: &'a Line, witness: &'a Witness) -> Subject<'a> {
    let mut says = Vec::new();
    match &line.answer.verdict {
        Verdict::Allowed if line.quantifier == "forall" => {
            says.push("This execution is consistent, and violates the condition.".to_owned());
        }
        Verdict::Allowed => says.push("This execution is consistent, and has the outcome.".to_owned()),
        Verdict::Hangs => says.push("This execution is consistent and fair, and does not end.".to_owned()),
        _ => {}
    }
    if witness.ends.is_empty() {
        says.extend(final_state(&witness.state));
    }
    Subject { title: &line.test, facts: facts(line), witness, cycle: Vec::new(), marks: Vec::new(), says }
}

fn faulty<'a>(line: &'a Line, fault: &'a Fault) -> Option<Subject<'a>> {
    let witness = fault.execution.as_ref()?;
    let name = fault.name();
    let marks = fault.events.iter().filter_map(|e| Some((e.at?, format!("{name}: {}", e.noun))));
    let mut says = vec![match &fault.place {
        Some(place) => format!("The events in thick frames are a {name} on {place}: {}.", fault.places()),
        None => format!("The events in thick frames: {name}, {}.", fault.places()),
    }];
    says.extend(fault.why.iter().map(|why| format!("{}{}.", why[..1].to_uppercase(), &why[1..])));
    Some(Subject {
        title: &line.test,
        facts: facts(line),
        witness,
        cycle: Vec::new(),
        marks: marks.collect(),
        says,
    })
}

fn final_state(state: &State) -> Option<String> {
    let values: Vec<_> = state.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    (!values.is_empty()).then(|| format!("Final state: {}.", values.join(", ")))
}
