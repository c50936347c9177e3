//! Writes a model for people: header, options, free relations, definitions, axioms.

use std::fmt::Write as _;

use cat::model::ir::{Axiom, Model};
use cat::model::text::operand;
pub(super) use cat::model::text::{expression, shape_name, test_name};

/// The whole model.
pub(super) fn model(label: &str, model: &Model) -> String {
    let mut text = String::new();
    let title = if model.title.trim().is_empty() {
        String::new()
    } else {
        format!(": {}", model.title.trim())
    };
    let _ = writeln!(text, "{label}{title}");
    if !model.header.trim().is_empty() {
        let _ = writeln!(text, "\n{}", model.header.trim_end());
    }
    section(
        &mut text,
        "Options",
        model
            .option_words()
            .map(|(name, value)| format!("{name} = {value}")),
    );
    let free = model.free.iter().map(|free| {
        let mut line = format!(
            "{} {} within {}",
            shape_name(free.shape),
            free.name,
            operand(model, free.within)
        );
        if let Some(node) = free.containing {
            let _ = write!(line, " containing {}", operand(model, node));
        }
        if let Some(node) = free.covering {
            let _ = write!(line, " covering {}", operand(model, node));
        }
        line
    });
    section(&mut text, "Free relations", free);
    let lets = model
        .lets
        .iter()
        .map(|(name, node, _)| format!("{name} = {}", expression(model, *node, true)));
    section(&mut text, "Definitions", lets);
    section(
        &mut text,
        "Axioms",
        model.axioms.iter().map(|axiom| axiom_text(model, axiom)),
    );
    section(
        &mut text,
        "Flags",
        model.flags.iter().map(|flag| axiom_text(model, flag)),
    );
    text
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    for (i, line) in lines.enumerate() {
        if i == 0 {
            let _ = writeln!(text, "\n{title}");
        }
        for line in line.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
}

fn axiom_text(model: &Model, axiom: &Axiom) -> String {
    let mut text = format!(
        "{}: {} {}",
        axiom.name,
        test_name(axiom),
        expression(model, axiom.node, false)
    );
    for line in axiom.doc.trim().lines() {
        let _ = write!(text, "\n    {}", line.trim());
    }
    text
}
