//! `fencepost explain`: the meaning of an axiom, a relation, a term or an instruction, its source,
//! and a small example.
//!
//! # Invariants
//! - Definitions come from the models' texts, base names from the signature, terms from the
//!   glossary, instructions and words of code from their pages: nothing about a single name is
//!   written here.
//! - Without `--model`, a name that several models define appears as the first of them has it; the
//!   others are listed.

mod book;
mod example;
mod glossary;
mod instructions;
mod text;

use std::fmt::Write as _;

use super::args::ExplainArgs;
use super::catalogue::{Catalogue, Named};
use super::exit;
use super::terminal::Terminal;
use cat::model::ir::Kind as Shape;
use diag::{Diagnostic, nearest};
use engine::skeleton::signature::signature;
use example::AxiomRole;
use program::Dialect;
use program::dialect::DIALECTS;
use program::litmus::LitmusTest;
use text::{Entry, StatementKind};
use verdict::Verdict;

/// The definitions of the shipped models.
struct Defined {
    model: Named,
    entries: Vec<Entry>,
}

/// Runs it; returns the exit code.
pub(super) fn run(args: &ExplainArgs, terminal: &Terminal) -> u8 {
    let word = args.word.join(" ");
    let mut catalogue = Catalogue::new(None);
    let names = match &args.model {
        Some(name) => vec![name.clone()],
        None => in_order(catalogue.shipped()),
    };
    let models: Vec<Named> = names
        .iter()
        .filter_map(|name| catalogue.load(name, &args.prelude))
        .collect();
    if terminal.diagnose_all(&catalogue.diagnostics()) > 0 {
        return exit::INVALID;
    }
    let models: Vec<Defined> = models
        .into_iter()
        .map(|model| Defined {
            entries: text::entries(&model.model),
            model,
        })
        .collect();
    if word.is_empty() {
        return terminal.printed(&contents(&models), exit::OK);
    }
    // A qualifier of PTX, such as `.mmio`, is a word behind its dot.
    let bare = word.strip_prefix('.').unwrap_or(&word);
    let answer = explain(bare, &models);
    if answer.is_empty() {
        terminal.diagnose(&unknown(&word, &models, args.model.as_deref()));
        return exit::INVALID;
    }
    terminal.printed(&answer, exit::OK)
}

/// The shipped models, those of the default first.
fn in_order(shipped: &[String]) -> Vec<String> {
    let mut names: Vec<String> = shipped.to_vec();
    fn rank(name: &str) -> Option<usize> {
        DIALECTS.iter().position(|row| row.default_model == name)
    }
    names.sort_by_key(|name| rank(name).unwrap_or(DIALECTS.len()));
    names
}

/// The contents, for a call without a word.
fn contents(models: &[Defined]) -> String {
    let mut out = String::from("Terms\n");
    let terms: Vec<String> = glossary::terms()
        .into_iter()
        .map(|t| t.names[0].clone())
        .collect();
    let _ = writeln!(out, "  {}", terms.join(", "));
    for defined in models {
        let of = |kinds: &[StatementKind]| -> Vec<&str> {
            let mut names: Vec<&str> = defined
                .entries
                .iter()
                .filter(|e| kinds.contains(&e.kind))
                .map(|e| e.name.as_str())
                .collect();
            names.dedup();
            names
        };
        let _ = writeln!(out, "Axioms and flags of {}", defined.model.label);
        let _ = writeln!(
            out,
            "  {}",
            of(&[StatementKind::Axiom, StatementKind::Flag]).join(", ")
        );
    }
    out.push_str("Definitions: `fencepost models NAME`; `explain` takes any name in it.\n");
    out
}

/// Case, blanks and underscores do not matter if no name matches exactly.
fn folded(word: &str) -> String {
    word.to_lowercase().replace([' ', '_'], "-")
}

fn explain(word: &str, models: &[Defined]) -> String {
    let mut out = String::new();
    for term in glossary::terms() {
        if term.names.iter().any(|name| folded(name) == folded(word)) {
            section(&mut out);
            term_text(&mut out, &term);
        }
    }
    let is_term = !out.is_empty();
    let signature = signature();
    let exact = models
        .iter()
        .any(|d| d.entries.iter().any(|e| e.name == word))
        || signature.names.iter().any(|n| n.name == word)
        || signature.options.iter().any(|o| o.name == word);
    let fits = |name: &str| {
        if exact {
            name == word
        } else {
            folded(name) == folded(word)
        }
    };
    for kinds in [
        &[StatementKind::Axiom][..],
        &[
            StatementKind::Definition,
            StatementKind::Function,
            StatementKind::Free,
        ],
        &[StatementKind::Flag],
    ] {
        defined(&mut out, models, |e| {
            kinds.contains(&e.kind) && fits(&e.name)
        });
    }
    for name in signature.names.iter().filter(|n| fits(n.name)) {
        section(&mut out);
        let what = if name.kind == Shape::Set {
            "set of events"
        } else {
            "relation"
        };
        let _ = writeln!(out, "{}: a base {what}: the program fixes it\n", name.name);
        let _ = writeln!(out, "  {}", name.doc);
        base_example(&mut out, name.name, name.kind == Shape::Set, models);
    }
    for option in signature.options.iter().filter(|o| fits(o.name)) {
        section(&mut out);
        let _ = writeln!(
            out,
            "{}: an option of models (`option` in a model, `[options]` in a test, `--set`)\n",
            option.name
        );
        let _ = writeln!(
            out,
            "  {}\n  Values: {}; the first is the default.",
            option.doc,
            option.values.join(", ")
        );
    }
    if !is_term && !exact {
        instruction_text(&mut out, word);
    }
    if out.is_empty() {
        book_text(&mut out, word);
    }
    out
}

/// A word of code that is nothing else: the passages of the book that have it.
fn book_text(out: &mut String, word: &str) {
    let passages = book::passages(word);
    if passages.is_empty() {
        return;
    }
    let _ = writeln!(out, "{word}: a word of code");
    for passage in passages {
        let _ = writeln!(out, "\n  {} ({})", passage.heading, passage.page);
        indented(out, "    ", &passage.text);
    }
}

fn instruction_text(out: &mut String, word: &str) {
    let rows = instructions::rows(word);
    if rows.is_empty() {
        return;
    }
    section(out);
    let _ = writeln!(out, "{word}: a PTX instruction");
    for row in rows {
        let _ = writeln!(out, "\n  {}", row.heading);
        indented(out, "    ", &row.form);
        indented(out, "    ", &row.effect);
    }
}

fn section(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn indented(out: &mut String, by: &str, text: &str) {
    for line in text.trim().lines() {
        let _ = writeln!(out, "{}", format!("{by}{line}").trim_end());
    }
}

fn term_text(out: &mut String, term: &glossary::GlossaryTerm) {
    let _ = writeln!(out, "{}: a term\n", term.names.join(", "));
    indented(out, "  ", &term.text);
    let Some((name, model)) = &term.example else {
        return;
    };
    let loaded = Catalogue::new(None).load(model, Dialect::default().row().prelude);
    let (Some(model), Some(test)) = (loaded, example::tests(name, model).into_iter().next()) else {
        return;
    };
    let word = match example::verdict(&test, &model.model) {
        Verdict::Allowed => "allows",
        Verdict::Forbidden => "forbids",
        _ => return,
    };
    test_text(out, &test);
    let _ = writeln!(out, "  {} {word} it.", model.label);
}

fn test_text(out: &mut String, test: &LitmusTest) {
    let _ = writeln!(out, "\n  Example: {}", test.name);
    for line in example::listing(test).lines() {
        let _ = writeln!(out, "  {line}");
    }
}

/// The entries that fit: the first in full, the others by their place.
fn defined(out: &mut String, models: &[Defined], fits: impl Fn(&Entry) -> bool) {
    let mut found: Vec<(&Entry, Vec<&Defined>)> = Vec::new();
    for model in models {
        for entry in model.entries.iter().filter(|e| fits(e)) {
            match found
                .iter_mut()
                .find(|(e, _)| (&e.file, e.line) == (&entry.file, entry.line))
            {
                Some((_, in_models)) => in_models.push(model),
                None => found.push((entry, vec![model])),
            }
        }
    }
    let Some(((first, in_models), others)) = found.split_first() else {
        return;
    };
    section(out);
    entry_text(out, first, in_models);
    if !others.is_empty() {
        let list = others
            .iter()
            .map(|(e, m)| format!("{} ({}:{})", labels(m), e.file, e.line));
        let _ = writeln!(out, "\n  Also in {}", list.collect::<Vec<_>>().join("; "));
    }
}

fn labels(models: &[&Defined]) -> String {
    models
        .iter()
        .map(|d| d.model.label.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn entry_text(out: &mut String, entry: &Entry, models: &[&Defined]) {
    let every = models.len() > 1 && entry.file.ends_with("stdlib.cat");
    let of = if every {
        "every model".to_owned()
    } else {
        labels(models)
    };
    let _ = writeln!(
        out,
        "{}: {} of {of} ({}:{})\n",
        entry.name,
        entry.kind.words(),
        entry.file,
        entry.line
    );
    indented(out, "    ", &entry.text);
    if !entry.comment.is_empty() {
        out.push('\n');
        indented(out, "  ", &entry.comment);
    }
    if !entry.source.is_empty() {
        out.push('\n');
        indented(out, "  ", &entry.source);
    }
    let Some(model) = models.first() else { return };
    let uses =
        |other: &&Entry| other.speaks_of.contains(&entry.name) && !std::ptr::eq(*other, entry);
    let mut used: Vec<&str> = Vec::new();
    for other in model.entries.iter().filter(uses) {
        if !used.contains(&other.name.as_str()) {
            used.push(&other.name);
        }
    }
    let _ = writeln!(out, "\n  Speaks of: {}", entry.speaks_of.join(", "));
    if !used.is_empty() && entry.kind != StatementKind::Axiom && !every {
        let _ = writeln!(out, "  Used by: {}", used.join(", "));
    }
    match entry.kind {
        StatementKind::Axiom => axiom_example(out, entry, model),
        StatementKind::Function => {}
        StatementKind::Flag => relation_example(
            out,
            &entry.name,
            &entry.tested,
            entry.is_set(&model.model.model),
            model,
        ),
        StatementKind::Definition | StatementKind::Free => {
            relation_example(
                out,
                &entry.name,
                &entry.name,
                entry.is_set(&model.model.model),
                model,
            );
        }
    }
}

fn axiom_example(out: &mut String, entry: &Entry, defined: &Defined) {
    let label = &defined.model.label;
    let Some((test, role)) = example::of_axiom(&defined.model.model, label, entry) else {
        return;
    };
    test_text(out, &test);
    let why = match role {
        AxiomRole::Needed => format!("without {} it would be allowed", entry.name),
        AxiomRole::Enough => format!(
            "{} alone suffices, and other axioms also forbid it",
            entry.name
        ),
        AxiomRole::Other(axioms) if axioms.is_empty() => {
            "several other axioms also forbid it".to_owned()
        }
        AxiomRole::Other(axioms) => format!("so would {} without it", axioms.join(", ")),
    };
    let _ = writeln!(out, "  {label} forbids it: {why}.");
}

fn relation_example(out: &mut String, name: &str, expression: &str, set: bool, defined: &Defined) {
    let label = &defined.model.label;
    let Some(shown) = example::of_relation(label, name, expression, set, &defined.entries) else {
        return;
    };
    test_text(out, &shown.test);
    let _ = match shown.rejected_by.as_slice() {
        [] => writeln!(out, "  In an execution that {label} allows, {name} has"),
        axioms => writeln!(
            out,
            "  In an execution that {label} rejects ({}), {name} has",
            axioms.join(", ")
        ),
    };
    for line in &shown.lines {
        let _ = writeln!(out, "    {line}");
    }
    if shown.more > 0 {
        let _ = writeln!(out, "    … and {} more", shown.more);
    }
}

/// An example of a base name, under the first model that has one.
fn base_example(out: &mut String, name: &str, set: bool, models: &[Defined]) {
    let mut used: Vec<String> = Vec::new();
    for defined in models {
        let by: Vec<&str> = (defined
            .entries
            .iter()
            .filter(|e| e.speaks_of.iter().any(|n| n == name)))
        .map(|e| e.name.as_str())
        .collect();
        if !by.is_empty() && used.len() < 4 {
            used.push(format!("{} ({})", defined.model.label, by.join(", ")));
        }
    }
    if !used.is_empty() {
        let _ = writeln!(out, "  Used in: {}", used.join("; "));
    }
    let shown = models.iter().find(|d| {
        let mut text = String::new();
        relation_example(&mut text, name, name, set, d);
        out.push_str(&text);
        !text.is_empty()
    });
    if shown.is_none() {
        out.push_str("  No shipped test has such events.\n");
    }
}

/// An unknown word.
fn unknown(word: &str, models: &[Defined], model: Option<&str>) -> Diagnostic {
    let of = model
        .map(|m| format!(", nor one of model `{m}`"))
        .unwrap_or_default();
    let message =
        format!("`{word}` is not a known term, instruction, axiom, relation or option{of}");
    let signature = signature();
    let terms = glossary::terms();
    let mut names: Vec<&str> = terms
        .iter()
        .flat_map(|t| &t.names)
        .map(String::as_str)
        .collect();
    names.extend(
        models
            .iter()
            .flat_map(|d| &d.entries)
            .map(|e| e.name.as_str()),
    );
    names.extend(signature.names.iter().map(|n| n.name));
    names.extend(signature.options.iter().map(|o| o.name));
    names.sort_unstable();
    names.dedup();
    let diagnostic = Diagnostic::plain("unknown-word", message).note(
        "`fencepost explain` without a word lists the terms and axioms, `fencepost models NAME` \
        definitions",
    );
    match nearest(word, names.iter().copied()).or_else(|| nearest(&folded(word), names)) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}
