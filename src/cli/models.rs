//! `fencepost models`: the list of models, or one model with its relations, axioms and sources.

use serde_json::{Value, json};

use super::args::{FormatArg, ModelsArgs};
use super::catalogue::Catalogue;
use super::model_text;
use super::terminal::Terminal;
use super::{exit, panics, settings};
use cat::model::ir::Model;
use diag::Diagnostic;
use report::ReportSubject;

/// Runs it; returns the exit code.
pub(super) fn run(args: &ModelsArgs, terminal: &Terminal) -> u8 {
    if let Some(diagnostic) = settings::unfit(args.format.into(), ReportSubject::Others) {
        terminal.diagnose(&diagnostic);
        return exit::INVALID;
    }
    let mut catalogue = Catalogue::new(None);
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => catalogue.shipped().to_vec(),
    };
    let mut models = Vec::new();
    let mut defect = false;
    for name in names {
        match panics::catch(|| catalogue.load(&name, &args.prelude)) {
            Ok(model) => models.extend(model),
            Err(message) => {
                let text = format!("a defect of Fencepost: reading model {name}");
                terminal.diagnose(&Diagnostic::plain("defect", text).note(message));
                defect = true;
            }
        }
    }
    let text = match (&args.name, args.format) {
        (None, FormatArg::Human) => {
            let width = models
                .iter()
                .map(|m| m.label.chars().count())
                .max()
                .unwrap_or(0);
            models
                .iter()
                .map(|m| format!("{:width$}  {}\n", m.label, title(&m.model)))
                .collect()
        }
        (Some(_), FormatArg::Human) => models
            .iter()
            .map(|m| model_text::model(&m.label, &m.model))
            .collect(),
        (list, format) => {
            let objects = models.iter().map(|m| match list {
                None => json!({ "name": m.label, "title": title(&m.model) }),
                Some(_) => object(&m.label, &m.model),
            });
            match format {
                FormatArg::Json => {
                    format!(
                        "{:#}\n",
                        json!({ "version": 1, "models": objects.collect::<Vec<_>>() })
                    )
                }
                _ => objects.map(|o| format!("{o}\n")).collect(),
            }
        }
    };
    let invalid = terminal.diagnose_all(&catalogue.diagnostics()) > 0;
    let events = exit::Events {
        answered: true,
        invalid,
        defect,
        ..Default::default()
    };
    terminal.printed(&text, events.code())
}

/// The title, or the first line of the header.
fn title(model: &Model) -> &str {
    let header = model
        .header
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty());
    if model.title.trim().is_empty() {
        header.unwrap_or("")
    } else {
        model.title.trim()
    }
}

fn object(label: &str, model: &Model) -> Value {
    let axiom = |a: &cat::model::ir::Axiom| {
        json!({
            "name": a.name,
            "test": model_text::test_name(a),
            "of": model_text::expression(model, a.node, false),
            "doc": a.doc,
        })
    };
    let options = model.option_words();
    let options: Vec<_> = options
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    json!({
        "name": label,
        "title": title(model),
        "header": model.header,
        "options": options,
        "free": model.free.iter().map(|f| json!({
            "name": f.name,
            "shape": model_text::shape_name(f.shape),
            "within": model_text::expression(model, f.within, false),
        })).collect::<Vec<_>>(),
        "definitions": model.lets.iter().map(|(name, node, _)| json!({
            "name": name,
            "is": model_text::expression(model, *node, true),
        })).collect::<Vec<_>>(),
        "axioms": model.axioms.iter().map(axiom).collect::<Vec<_>>(),
        "flags": model.flags.iter().map(axiom).collect::<Vec<_>>(),
    })
}
