//! Chooses the pictures for an answer: the executions, their bold steps, and their text.
//!
//! | Answer | Execution | Marked |
//! |---|---|---|
//! | allowed | one with the outcome; if the chain that would forbid it needs other events, also one
//! of the changed program | that chain in bold, with the missing link ([`lacking`](self)) |
//! | forbidden | for each axiom of a minimal set: one with the outcome that breaks it | the chain
//! that breaks it, in bold |
//! | racy, undefined | one with the fault | the events of the fault |
//! | any, of an undefined program | also one with the fault | the events of the fault |
//! | hangs | one that does not end | the final states of its threads, and which wait for which |

use super::super::{AnswerLine, explanation};
use super::scene::{CycleStep, PictureSubject};
use verdict::{Breach, Definedness, Fault, Link, Property, State, Verdict, Witness};

mod lacking;

/// The pictures for an answer; none if there is no execution to show.
pub fn subjects(line: &AnswerLine) -> Vec<PictureSubject<'_>> {
    let answer = &line.answer;
    let mut found = Vec::new();
    if let Some(fault) = &answer.fault {
        found.extend(faulty(line, fault));
    } else if let Some(witness) = &answer.witness {
        found.extend(lacking::witnessed(line, witness));
    } else if let Some(explanation) = &answer.explanation {
        let breaches = &explanation.broken;
        found.extend(breaches.iter().map(|b| forbidden(line, b, breaches)));
    }
    if let Some(Definedness::Undefined(fault)) = &answer.definedness {
        found.extend(faulty(line, fault));
    }
    found
}

/// Why there is no picture.
pub fn nothing(line: &AnswerLine) -> String {
    let answer = &line.answer;
    match &answer.verdict {
        Verdict::Undecided(reason) => {
            format!("There is nothing to draw: the question is undecided ({reason}).")
        }
        Verdict::Forbidden if answer.axioms.is_empty() => {
            let why = answer.explanation.iter().flat_map(|e| &e.impossible);
            let why: Vec<_> = why.map(String::as_str).collect();
            let why = if why.is_empty() {
                "no execution has this outcome".to_owned()
            } else {
                format!("no execution reaches {}", why.join(", "))
            };
            format!("There is nothing to draw: {why}, whatever the axioms.")
        }
        verdict => format!(
            "There is nothing to draw: the answer is {}, and no single execution shows it.",
            verdict.word()
        ),
    }
}

/// The lines below the title.
fn facts(line: &AnswerLine) -> Vec<String> {
    let via = line.mapping.map_or(String::new(), |mapping| {
        format!(", through the mapping {mapping}")
    });
    let mut facts = vec![format!(
        "{} under {}{via}: {}",
        line.property,
        line.model,
        line.answer.verdict.word()
    )];
    if line.property == Property::Reachability && !line.proposition.is_empty() {
        facts.push(format!("{} ({})", line.quantifier, line.proposition));
    }
    if let Some(Definedness::Undefined(fault)) = &line.answer.definedness {
        facts.push(fault.brief());
    }
    facts
}

fn witnessed<'a>(line: &'a AnswerLine, witness: &'a Witness) -> PictureSubject<'a> {
    let mut says = Vec::new();
    match &line.answer.verdict {
        Verdict::Allowed if line.quantifier == "forall" => {
            says.push("This execution is consistent, and violates the condition.".to_owned());
        }
        Verdict::Allowed => {
            says.push("This execution is consistent, and has the outcome.".to_owned())
        }
        Verdict::Hangs => {
            says.push("This execution is consistent and fair, and does not end.".to_owned())
        }
        _ => {}
    }
    if witness.ends.is_empty() {
        says.extend(final_state(&witness.state));
    }
    PictureSubject {
        title: &line.test,
        facts: facts(line),
        witness,
        cycle: Vec::new(),
        marks: Vec::new(),
        says,
    }
}

/// An execution with the outcome that breaks an axiom, and the chain that breaks it.
fn forbidden<'a>(line: &'a AnswerLine, breach: &'a Breach, all: &[Breach]) -> PictureSubject<'a> {
    let mut cycle = Vec::new();
    // Further conditions are drawn if the picture has such edges. For example, no arrow shows that
    // two accesses are to one location.
    let drawn = |l: &Link| {
        let joined = breach
            .chain
            .iter()
            .any(|c| (c.from, c.to) == (l.from, l.to));
        !joined
            && breach
                .execution
                .relations
                .iter()
                .any(|(name, _)| *name == l.relation)
    };
    let (besides, along): (Vec<&Link>, Vec<&Link>) = breach
        .besides
        .iter()
        .filter(|l| l.holds && !l.is_set)
        .partition(|l| drawn(l));
    for link in breach.chain.iter().chain(besides) {
        steps(link, &mut cycle);
    }
    fn name(e: usize) -> String {
        super::super::execution::letter(e)
    }
    let mut chain: Vec<String> = Vec::new();
    for link in &breach.chain {
        if chain.is_empty() {
            chain.push(name(link.from));
        }
        chain.push(format!("-{}-> {}", link.relation, name(link.to)));
    }
    let (all_do, this_one) = match line.quantifier {
        "forall" => (
            "Every consistent execution satisfies the condition",
            "violates it",
        ),
        _ => ("No consistent execution has the outcome", "has it"),
    };
    let mut says = vec![format!(
        "{all_do}. This one {this_one}, and breaks {} ({}).",
        breach.axiom, breach.text
    )];
    let shape = if breach.closes { "cycle" } else { "chain" };
    if chain.is_empty() {
        says.push("The execution lacks the event or pair that the axiom demands.".to_owned());
    } else {
        let mut names: Vec<&str> = along.iter().map(|l| l.relation.as_str()).collect();
        names.dedup();
        let along = if names.is_empty() {
            String::new()
        } else {
            format!("; further relations: {}", names.join(", "))
        };
        says.push(format!("The {shape} in bold: {}{along}.", chain.join(" ")));
    }
    let others: Vec<_> = all
        .iter()
        .map(|b| b.axiom.as_str())
        .filter(|a| *a != breach.axiom)
        .collect();
    if !others.is_empty() {
        says.push(format!(
            "Other executions with the outcome break {}.",
            others.join(", ")
        ));
    }
    says.extend(final_state(&breach.execution.state));
    PictureSubject {
        title: &line.test,
        facts: facts(line),
        witness: &breach.execution,
        cycle,
        marks: Vec::new(),
        says,
    }
}

/// The edges of a link: the link itself if its name is drawn, else its parts if they form a path
/// from its first to its second event.
fn steps(link: &Link, out: &mut Vec<CycleStep>) {
    let parts: Vec<&Link> = link
        .because
        .iter()
        .filter(|l| l.holds && !l.is_set)
        .collect();
    let path = parts.first().is_some_and(|l| l.from == link.from)
        && parts.last().is_some_and(|l| l.to == link.to)
        && parts.windows(2).all(|two| two[0].to == two[1].from);
    let plain = link
        .relation
        .chars()
        .all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if !plain && path {
        parts.into_iter().for_each(|part| steps(part, out));
    } else {
        out.push(CycleStep {
            from: link.from,
            to: link.to,
            name: link.relation.clone(),
        });
    }
}

fn faulty<'a>(line: &'a AnswerLine, fault: &'a Fault) -> Option<PictureSubject<'a>> {
    let witness = fault.execution.as_ref()?;
    let name = fault.name();
    let marks = fault
        .events
        .iter()
        .filter_map(|e| Some((e.at?, format!("{name}: {}", e.noun))));
    let mut says = vec![match &fault.place {
        Some(place) => format!(
            "The events in thick frames are a {name} on {place}: {}.",
            fault.places()
        ),
        None => format!("The events in thick frames: {name}, {}.", fault.places()),
    }];
    says.extend(
        fault
            .why
            .iter()
            .map(|why| format!("{}{}.", why[..1].to_uppercase(), &why[1..])),
    );
    Some(PictureSubject {
        title: &line.test,
        facts: facts(line),
        witness,
        cycle: Vec::new(),
        marks: marks.collect(),
        says,
    })
}

fn final_state(state: &State) -> Option<String> {
    let values: Vec<_> = state
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    (!values.is_empty()).then(|| format!("Final state: {}.", values.join(", ")))
}

/// The texts of an answer next to its pictures, each with several lines.
pub fn texts(line: &AnswerLine) -> Vec<String> {
    let mut texts: Vec<String> = line.notes.clone();
    if let Some(why) = &line.answer.explanation {
        let mut told = Vec::new();
        // Writing to memory cannot fail.
        let _ = explanation::human(&mut told, why, false);
        let told = anstream::adapter::strip_str(&String::from_utf8_lossy(&told)).to_string();
        texts.extend(Some(told).filter(|t| !t.trim().is_empty()));
    }
    texts.extend(
        line.answer
            .defect
            .iter()
            .map(|law| format!("DEFECT: {law}")),
    );
    texts
}
