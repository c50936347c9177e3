//! Small shipped tests that show what an axiom forbids and a relation relates. They are decided on
//! the spot.
//!
//! # Invariants
//! - Each statement about a test was decided a moment ago; undecided parts are left out.
//! - The test of an axiom is one that its comment in the model names (`Forbids NAME.`). The test of
//!   another name is one that the model lists under `Shown in:`, or one of an axiom that uses the
//!   name.

use std::time::Duration;

use super::super::seams;
use super::text::{Entry, StatementKind};
use cat::model::ir::Model;
use cat::model::words::notes;
use cat::model::{Library, Shipped};
use diag::SourceFile;
use engine::skeleton::signature::signature;
use engine::{Engine, Limits};
use program::litmus::LitmusTest;
use verdict::{Verdict, Witness};
use why::Session;

/// The longest time for an example.
const PATIENCE: Duration = Duration::from_secs(5);

/// The largest number of pairs shown.
const PAIRS: usize = 4;

/// The shipped tests of the file of that name which the model can judge: one, or those of a
/// template.
pub(super) fn tests(name: &str, model: &str) -> Vec<LitmusTest> {
    let file = format!("{name}.toml");
    let mut found = Vec::new();
    examples::TESTS
        .iter()
        .for_each(|folder| collect(folder, &file, &mut found));
    let read = found
        .iter()
        .filter_map(|text| front::litmus::parse(&file, text.as_bytes()).ok());
    read.flatten()
        .filter(|test| seams::speaks(model, test.program.dialect))
        .collect()
}

fn collect<'d>(folder: &'d include_dir::Dir<'static>, name: &str, found: &mut Vec<&'d str>) {
    let here = folder
        .files()
        .filter(|f| f.path().file_name().is_some_and(|n| n == name));
    found.extend(here.filter_map(|f| f.contents_utf8()));
    folder.dirs().for_each(|inner| collect(inner, name, found));
}

/// The tests that a comment names: `Forbids A, B.`
pub(super) fn forbids(comment: &str) -> Vec<String> {
    let flat = diag::one_line(comment);
    let Some((_, list)) = flat.split_once("Forbids ") else {
        return Vec::new();
    };
    // A dot ends the list only at the end of a word, before a blank or the end.
    let list = list.split(". ").next().unwrap_or(list);
    list.trim_end_matches('.')
        .split(", ")
        .map(str::to_owned)
        .collect()
}

fn session<'a>(test: &'a LitmusTest, model: &'a Model) -> Session<'a> {
    let limits = Limits {
        timeout: Some(PATIENCE),
        ..Limits::default()
    };
    Session::new(test, model, Engine::Auto, limits, &[])
}

/// The model's answer about the test's outcome.
pub(super) fn verdict(test: &LitmusTest, model: &Model) -> Verdict {
    session(test, model).reachability(None, false).verdict
}

/// The part of an axiom in a test.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AxiomRole {
    /// Without the axiom the outcome is allowed.
    Needed,
    /// The axiom alone forbids it.
    Enough,
    /// Other axioms together forbid it.
    Other(Vec<String>),
}

/// The first of the axiom's tests that the model forbids, best one first, and the axiom's part in
/// it.
pub(super) fn of_axiom(
    model: &Model,
    label: &str,
    entry: &Entry,
) -> Option<(LitmusTest, AxiomRole)> {
    let mut best: Option<(LitmusTest, AxiomRole)> = None;
    for name in forbids(&entry.comment) {
        let Some(test) = tests(&name, label)
            .into_iter()
            .find(|t| verdict(t, model) == Verdict::Forbidden)
        else {
            continue;
        };
        let role = role(model, &test, &entry.name)?;
        match role {
            AxiomRole::Needed => return Some((test, role)),
            role => best = best.or(Some((test, role))),
        }
    }
    best
}

fn role(model: &Model, test: &LitmusTest, axiom: &str) -> Option<AxiomRole> {
    let only = |keep: bool| {
        let mut other = model.clone();
        other.axioms.retain(|a| (a.name == axiom) == keep);
        other
    };
    let without = only(false);
    let answer = session(test, &without)
        .explaining()
        .reachability(None, false);
    match answer.verdict {
        Verdict::Allowed => Some(AxiomRole::Needed),
        Verdict::Forbidden => match verdict(test, &only(true)) {
            Verdict::Forbidden => Some(AxiomRole::Enough),
            _ => Some(AxiomRole::Other(answer.axioms)),
        },
        _ => None,
    }
}

/// A relation, or a set, in one execution.
pub(super) struct RelationExample {
    /// The test.
    pub test: LitmusTest,
    /// The axioms that reject the execution; none if the model allows it.
    pub rejected_by: Vec<String>,
    /// The pairs, or the members, in words; the longest lists are cut.
    pub lines: Vec<String>,
    /// The number of further pairs.
    pub more: usize,
}

/// Some execution in which the relation is not empty: of a test of an axiom that uses it, if
/// possible. `expression` is the subject in the words of the model; `set` states whether it is a
/// set.
pub(super) fn of_relation(
    label: &str,
    name: &str,
    expression: &str,
    set: bool,
    entries: &[Entry],
) -> Option<RelationExample> {
    let model = probe(label, name, expression, set)?;
    let more = notes(&model.files, "Shown in:")
        .remove(name)
        .unwrap_or_default();
    let mut names: Vec<String> = more.split(", ").map(str::to_owned).collect();
    for direct in [true, false] {
        let axioms = entries.iter().filter(|e| {
            e.kind == StatementKind::Axiom && speaks_of(entries, e, name, &mut Vec::new()) == direct
        });
        names.extend(axioms.flat_map(|e| forbids(&e.comment)));
    }
    names
        .iter()
        .flat_map(|name| tests(name, label))
        .find_map(|test| shown(&model, test, name, set))
}

/// The model with one more relation to show.
fn probe(label: &str, name: &str, expression: &str, set: bool) -> Option<Model> {
    let source = Library::model(label)?;
    let (open, close) = if set { ('[', ']') } else { ('(', ')') };
    let text = format!(
        "{}\nshow {open}{expression}{close} as {name}\n",
        source.text
    );
    let main = SourceFile::new(source.name.clone(), text);
    cat::model::load(main, label, &Shipped, &signature(), None).ok()
}

/// Whether an entry uses a name, through any number of definitions.
fn speaks_of(entries: &[Entry], entry: &Entry, name: &str, seen: &mut Vec<String>) -> bool {
    entry.speaks_of.iter().any(|n| n == name)
        || entry.speaks_of.iter().any(|inner| {
            if seen.contains(inner) {
                return false;
            }
            seen.push(inner.clone());
            let mut defined = entries
                .iter()
                .filter(|e| e.name == *inner && e.kind != StatementKind::Axiom);
            defined.any(|e| speaks_of(entries, e, name, seen))
        })
}

/// Asks for the test's outcome, and takes out the axioms that forbid it until an execution is left;
/// for any execution if no axiom is the reason.
fn shown(all: &Model, mut test: LitmusTest, name: &str, set: bool) -> Option<RelationExample> {
    let mut model = all.clone();
    let mut rejected_by: Vec<String> = Vec::new();
    let witness = loop {
        let answer = session(&test, &model)
            .explaining()
            .reachability(None, false);
        match (answer.verdict, answer.witness) {
            (Verdict::Allowed, Some(witness)) => break witness,
            (Verdict::Forbidden, _) if model.axioms.is_empty() => {
                test.condition.take()?;
                rejected_by.clear();
                model = all.clone();
            }
            (Verdict::Forbidden, _) => {
                let before = model.axioms.len();
                // If several axioms forbid it independently, none is named.
                let named = answer.axioms;
                rejected_by.extend(
                    model
                        .axioms
                        .iter()
                        .map(|a| a.name.clone())
                        .filter(|a| named.is_empty() || named.iter().any(|n| n == a)),
                );
                model.axioms.retain(|a| !rejected_by.contains(&a.name));
                if model.axioms.len() == before {
                    return None;
                }
            }
            _ => return None,
        }
    };
    let (_, pairs) = witness
        .relations
        .iter()
        .find(|(n, pairs)| n == name && !pairs.is_empty())?;
    // Pairs between threads are most telling, pairs with initial writes least.
    let mut pairs = pairs.clone();
    let thread = |e: usize| witness.events[e].thread;
    pairs.sort_by_key(|&(a, b)| {
        (
            thread(a).is_none() || thread(b).is_none(),
            thread(a) == thread(b),
        )
    });
    let lines = pairs.iter().take(PAIRS).map(|&(from, to)| match set {
        true => event(&witness, from),
        false => format!("{}  ->  {}", event(&witness, from), event(&witness, to)),
    });
    let lines: Vec<String> = lines.collect();
    Some(RelationExample {
        more: pairs.len() - lines.len(),
        test,
        rejected_by,
        lines,
    })
}

fn event(witness: &Witness, at: usize) -> String {
    let event = &witness.events[at];
    match event.thread {
        None => format!("init: {}", event.action),
        Some(_) => format!("{}: {} [{}]", event.who(), event.text.trim(), event.action),
    }
}

/// The test for people: each thread with its place and code, and the condition.
pub(super) fn listing(test: &LitmusTest) -> String {
    let mut text = String::new();
    let table: toml::Table = test.file.text.parse().unwrap_or_default();
    // The code of a template is not that of its tests, and a kernel's code serves many threads.
    let written = table.get("thread").and_then(toml::Value::as_array);
    let written = written.filter(|_| {
        !["axis", "instance", "kernel"]
            .iter()
            .any(|key| table.contains_key(*key))
    });
    for (i, thread) in test.program.threads.iter().enumerate() {
        let written = written
            .and_then(|list| list.get(i))
            .and_then(toml::Value::as_table);
        let place: Vec<String> = (written.into_iter().flatten())
            .filter(|(key, _)| !matches!(key.as_str(), "code" | "name" | "regs"))
            .map(|(key, value)| format!("{key} {value}"))
            .collect();
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" ({})", place.join(", "))
        };
        text.push_str(&format!("  {}{place}\n", thread.name));
        let code = written
            .and_then(|table| table.get("code"))
            .and_then(toml::Value::as_str);
        let mut lines: Vec<&str> = match code {
            Some(code) => code
                .lines()
                .flat_map(|l| l.split("; "))
                .map(str::trim_end)
                .collect(),
            None => thread.code.iter().map(|instr| instr.text.trim()).collect(),
        };
        lines.retain(|line| !line.trim().is_empty());
        // An instruction can be several steps.
        lines.dedup();
        lines
            .iter()
            .for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    if test.condition.is_some() {
        text.push_str(&format!("  exists ({})\n", test.condition_text.trim()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::suite::sample;

    #[test]
    fn the_tests_of_a_comment_are_read_with_their_dots() {
        assert_eq!(
            forbids("Axioms, Causality: no way.\nForbids MP+rel.gpu+acq.gpu."),
            ["MP+rel.gpu+acq.gpu"]
        );
        assert_eq!(
            forbids("Forbids CoRR, SB+sc. And so on."),
            ["CoRR", "SB+sc"]
        );
        assert!(forbids("Says nothing.").is_empty());
    }

    #[test]
    fn a_test_is_found_in_the_dialect_of_the_model() {
        use program::Dialect;
        assert_eq!(
            tests("LB+rel+acq", "opencl")[0].program.dialect,
            Dialect::OpenCl
        );
        assert_eq!(tests("LB+rel+acq", "rc11")[0].program.dialect, Dialect::C);
        assert!(tests("MP+rel.gpu+acq.gpu", "c11").is_empty());
    }

    const OPEN: &str = "an execution with such a pair leaves the answer open";

    /// Names without an example, and the reason.
    const EMPTY: &[(&str, &str)] = &[
        ("unsequenced-race", "program order is total in a work-item"),
        ("both-regions-too", "empty where no model defines it anew"),
        ("between-work-items", OPEN),
        ("images-between-work-items", OPEN),
    ];

    /// Base names without events: kept for published models, or of no shipped test.
    const UNUSED: &[&str] = &[
        "FW",
        "UL",
        "LK",
        "ATOM",
        "NONPRIV",
        "AV",
        "VIS",
        "AVDEVICE",
        "VISDEVICE",
        "SC0",
        "SC1",
        "SC2",
        "SC3",
        "SEMSC0",
        "SEMSC1",
        "SEMSC2",
        "SEMSC3",
        "SEMAV",
        "SEMVIS",
        "CBAR",
        "QF",
    ];

    #[test]
    fn every_axiom_of_every_shipped_model_has_a_test_that_it_forbids() {
        for name in Library::names() {
            let model = cat::model::load_shipped(name, &signature())
                .unwrap()
                .unwrap();
            for entry in super::super::text::entries(&model)
                .iter()
                .filter(|e| e.kind == StatementKind::Axiom)
            {
                assert!(
                    of_axiom(&model, name, entry).is_some(),
                    "{name}: {}",
                    entry.name
                );
            }
        }
    }

    #[test]
    fn every_definition_and_flag_of_every_shipped_model_is_shown_in_an_execution() {
        let mut missing = Vec::new();
        for name in Library::names() {
            let model = cat::model::load_shipped(name, &signature())
                .unwrap()
                .unwrap();
            let entries = super::super::text::entries(&model);
            let own = entries.iter().filter(|e| !e.file.ends_with("stdlib.cat"));
            for entry in sample(
                own.filter(|e| !matches!(e.kind, StatementKind::Axiom | StatementKind::Function)),
            ) {
                let expression = if entry.kind == StatementKind::Flag {
                    &entry.tested
                } else {
                    &entry.name
                };
                let shown = of_relation(
                    name,
                    &entry.name,
                    expression,
                    entry.is_set(&model),
                    &entries,
                );
                let empty = EMPTY.iter().any(|(n, _)| *n == entry.name);
                if shown.is_none() && !empty {
                    missing.push(format!("{name}: {}", entry.name));
                }
            }
        }
        assert!(
            missing.is_empty(),
            "name a test under `Shown in:` for each of {missing:?}"
        );
    }

    #[test]
    fn every_base_name_is_shown_in_an_execution_of_some_model() {
        let models: Vec<_> = (Library::names().into_iter())
            .map(|name| {
                (
                    name,
                    cat::model::load_shipped(name, &signature())
                        .unwrap()
                        .unwrap(),
                )
            })
            .collect();
        let mut missing = Vec::new();
        for base in sample(
            signature()
                .names
                .iter()
                .filter(|base| !UNUSED.contains(&base.name)),
        ) {
            let set = base.kind == cat::model::ir::Kind::Set;
            let shown = models.iter().any(|(label, model)| {
                let entries = super::super::text::entries(model);
                of_relation(label, base.name, base.name, set, &entries).is_some()
            });
            if !shown {
                missing.push(base.name);
            }
        }
        assert!(
            missing.is_empty(),
            "name a test under `Shown in:` for each of {missing:?}"
        );
    }
}
