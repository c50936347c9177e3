//! `fencepost show`: an execution as a picture.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::slice;

use super::args::ShowArgs;
use super::catalogue::Named;
use super::load::File;
use super::plan::{self, Question};
use super::run::Run;
use super::terminal::{self, Terminal};
use super::{ask, decide, exit, files, seams};
use cat::model::ir::{Kind, NodeOp};
use diag::Diagnostic;
use front::mapping::{Mapping, shipped};
use program::litmus::LitmusTest;
use report::picture::{RelationChoice, Scene, dot, pdf, png, subject, svg, tikz};
use report::{AnswerLine, ReportSubject};
use verdict::Witness;

mod page;

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PictureForm {
    Svg,
    Dot,
    Pdf,
    Png,
    Tikz,
    Html,
}

impl PictureForm {
    /// By the file's name; without a file, SVG.
    fn of(output: Option<&Path>) -> Result<PictureForm, Box<Diagnostic>> {
        let Some(path) = output else {
            return Ok(PictureForm::Svg);
        };
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Ok(PictureForm::Svg),
            Some("dot" | "gv") => Ok(PictureForm::Dot),
            Some("pdf") => Ok(PictureForm::Pdf),
            Some("png") => Ok(PictureForm::Png),
            Some("tex" | "tikz") => Ok(PictureForm::Tikz),
            Some("html" | "htm") => Ok(PictureForm::Html),
            _ => {
                let message = format!("no picture can be written to `{}`", path.display());
                let help = "give it a name that ends in .svg, .pdf, .png, .tex, .dot or .html";
                Err(Box::new(
                    Diagnostic::plain("unknown-picture", message).help(help),
                ))
            }
        }
    }
}

/// Runs it; returns the exit code.
pub(super) fn run(args: &ShowArgs, terminal: &Terminal) -> u8 {
    show(args, terminal).unwrap_or_else(|code| code)
}

fn show(args: &ShowArgs, terminal: &Terminal) -> Result<u8, u8> {
    let refuse = |diagnostic: &Diagnostic| {
        terminal.diagnose(diagnostic);
        exit::INVALID
    };
    let form = match args.lowered {
        true => PictureForm::Svg,
        false => PictureForm::of(args.output.as_deref()).map_err(|d| refuse(&d))?,
    };
    let mut run = Run::new(terminal, &args.question, ReportSubject::Others)?;
    run.sources = args.sources.options();
    (run.settings.explain, run.settings.detail) = (true, true);
    let mut files = run.load(slice::from_ref(&args.test));
    run.keep_inputs(args.output.iter())?;
    choose(&mut files, args.name.as_deref()).map_err(|d| refuse(&d))?;
    if args.lowered {
        let Some(test) = files.iter().flat_map(|f| &f.tests).next() else {
            return Ok(run.events.code());
        };
        let text = lowered(test, run.settings.mapping).map_err(|d| refuse(&d))?;
        run.events.answered = true;
        return written(
            terminal,
            args.output.as_ref(),
            text.as_bytes(),
            run.events.code(),
        );
    }
    let mut units = run.plan(&files, |test, model| question(args, test, model));
    if form != PictureForm::Html && args.question.models.is_empty() {
        // Without a choice: the first of the test's models.
        units.truncate(1);
    }
    if form != PictureForm::Html && units.len() > 1 {
        let named: Vec<_> = units.iter().map(|u| u.model.label.as_str()).collect();
        let message = format!(
            "one picture shows one model; the test has {}: {}",
            units.len(),
            named.join(", ")
        );
        return Err(refuse(
            &Diagnostic::plain("several-models", message)
                .help("choose one with `--model`, or write .html"),
        ));
    }
    for unit in &units {
        known(&args.relations, &unit.model).map_err(|d| refuse(&d))?;
    }
    if form == PictureForm::Html {
        let shown = page::of(&mut run, &units);
        let code = run.events.code();
        return match shown {
            Some(text) => written(terminal, args.output.as_ref(), text.as_bytes(), code),
            None => Ok(code),
        };
    }
    let mut lines: Vec<AnswerLine> = Vec::new();
    run.decide(&units, decide::answers, |run, line| {
        note(run, &line);
        lines.push(line);
        ControlFlow::Continue(())
    });
    let code = run.events.code();
    let Some(line) = lines.first() else {
        return Ok(code);
    };
    let subjects = subject::subjects(line);
    if subjects.is_empty() {
        terminal.diagnose(&Diagnostic::plain("nothing-to-draw", subject::nothing(line)).warning());
        return Ok(code);
    }
    let choice = RelationChoice {
        relations: (!args.relations.is_empty()).then(|| args.relations.clone()),
        rest: false,
        no_caption: args.no_caption,
        no_initial: args.no_init,
        only_vital: args.only.is_some(),
    };
    for name in args
        .relations
        .iter()
        .filter(|name| !subjects.iter().any(|s| s.witness.relates(name)))
    {
        let message = match subjects.len() {
            1 => format!("`{name}` relates no events of this execution"),
            _ => format!("`{name}` relates no events of these executions"),
        };
        terminal.diagnose(&Diagnostic::plain("empty-relation", message).warning());
    }
    let scenes: Vec<Scene> = subjects
        .iter()
        .map(|subject| Scene::new(subject, &choice))
        .collect();
    let picture = picture(form, &scenes).map_err(|d| refuse(&d))?;
    written(terminal, args.output.as_ref(), &picture, code)
}

/// The file of some scenes.
fn picture(form: PictureForm, scenes: &[Scene]) -> Result<Vec<u8>, Box<Diagnostic>> {
    let text = match form {
        PictureForm::Dot => dot::several(scenes),
        PictureForm::Pdf => pdf::file(scenes),
        PictureForm::Png => return png::file(scenes).map_err(too_large),
        PictureForm::Tikz => tikz::file(scenes),
        PictureForm::Svg | PictureForm::Html => svg::stacked(scenes),
    };
    Ok(text.into_bytes())
}

/// A picture that is too large for pixels: its width and height.
fn too_large(size: (f64, f64)) -> Box<Diagnostic> {
    let message = format!(
        "a picture of {} × {} pixels is too large for .png",
        size.0, size.1
    );
    let help = "write .svg or .pdf, or draw less: `--only racing`, `--relations rf,co`";
    Box::new(Diagnostic::plain("large-picture", message).help(help))
}

/// The test in PTX as TOML, with the mapping's name and sources above it.
fn lowered(
    test: &LitmusTest,
    selected: Option<&'static Mapping>,
) -> Result<String, Box<Diagnostic>> {
    let dialect = test.program.dialect;
    let of_dialect = |m: &&Mapping| m.from == dialect;
    let Some(mapping) = selected
        .or_else(|| Mapping::current(dialect))
        .filter(of_dialect)
    else {
        let message = format!(
            "`--mapping` must name a mapping that lowers {}",
            dialect.row().doc
        );
        let known: Vec<&str> = shipped()
            .iter()
            .filter(of_dialect)
            .map(Mapping::name)
            .collect();
        let plain = Diagnostic::plain("no-mapping", message);
        return Err(Box::new(match known.as_slice() {
            [] => plain.note("no mapping lowers such tests"),
            known => plain.help(format!("name one with `--mapping`: {}", known.join(", "))),
        }));
    };
    fn cannot(why: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::plain("cannot-lower", why.to_owned()))
    }
    let spelled = mapping.spelled(test).map_err(|why| cannot(&why))?;
    let text = seams::to_toml(&spelled)?;
    // A text that cannot be read back is a defect.
    if let Err(found) = seams::read_tests("lowered.toml", text.as_bytes()) {
        let why = found.first().map_or("", |d| &d.message);
        let message = format!(
            "no test can express the program to which `{}` maps `{}`: {why}",
            mapping.name, test.name
        );
        return Err(cannot(&message));
    }
    Ok(format!(
        "# `{}` by mapping `{}`: {}.\n{text}",
        test.name, mapping.name, mapping.doc
    ))
}

/// Whether the model has relations of these names.
fn known(names: &[String], model: &Named) -> Result<(), Box<Diagnostic>> {
    let ir = &model.model;
    let bases = ir.nodes.iter().filter_map(|node| match node.op {
        NodeOp::Base(id) if node.kind == Kind::Rel => Some(ir.base(id).name),
        _ => None,
    });
    let lets = ir
        .lets
        .iter()
        .filter(|(_, node, _)| ir.node(*node).kind == Kind::Rel)
        .map(|(name, ..)| name.as_str());
    let free = ir.free.iter().map(|f| f.name.as_str());
    let shows = ir.shows.iter().map(|(name, _)| name.as_str());
    let all: BTreeSet<&str> = Witness::ALWAYS
        .iter()
        .map(|a| a.0)
        .chain(bases)
        .chain(lets)
        .chain(free)
        .chain(shows)
        .collect();
    match names.iter().find(|name| !all.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let message = format!("model `{}` has no relation `{name}`", model.label);
            let diagnostic = Diagnostic::plain("unknown-relation", message)
                .did_you_mean(name, all.iter().copied());
            let note = format!(
                "relations: {}",
                all.into_iter().collect::<Vec<_>>().join(", ")
            );
            Err(Box::new(diagnostic.note(note)))
        }
    }
}

/// Counts an answer. Whether an expectation is met is the business of `check`.
fn note(run: &mut Run<'_>, line: &AnswerLine) {
    run.events.answered = true;
    run.events.undecided |= line.answer.verdict.reason().is_some();
}

/// Keeps one test: that of the name, or the only one.
fn choose(files: &mut [File], name: Option<&str>) -> Result<(), Box<Diagnostic>> {
    let names: Vec<String> = files
        .iter()
        .flat_map(|f| &f.tests)
        .map(|t| t.name.clone())
        .collect();
    match name {
        Some(name) if !names.is_empty() && !names.iter().any(|n| n == name) => {
            let message = format!("there is no test `{name}` in the file");
            Err(Box::new(
                Diagnostic::plain("unknown-test", message)
                    .did_you_mean(name, names.iter().map(String::as_str)),
            ))
        }
        Some(name) => {
            files
                .iter_mut()
                .for_each(|f| f.tests.retain(|t| t.name == name));
            Ok(())
        }
        None if names.len() > 1 => {
            let message = format!("a picture shows one test; the file has {}", names.len());
            let some = names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let more = if names.len() > 8 { ", …" } else { "" };
            let diagnostic =
                Diagnostic::plain("several-tests", message).note(format!("tests: {some}{more}"));
            Err(Box::new(diagnostic.help("choose one with `--name`")))
        }
        None => Ok(()),
    }
}

/// The question: about the given outcome or property.
fn question(
    args: &ShowArgs,
    test: &LitmusTest,
    model: &str,
) -> Result<Vec<Question>, Vec<Diagnostic>> {
    if let Some(outcome) = args.outcome.as_deref() {
        return ask::question(test, model, Some(outcome));
    }
    let all = plan::expectations(test, model, true);
    let known: Vec<String> = all.iter().map(|q| q.property().to_string()).collect();
    let found: Vec<_> = all
        .into_iter()
        .filter(|q| q.property().to_string() == args.property)
        .collect();
    if found.is_empty() {
        let message = format!("there is no property `{}`", args.property);
        let diagnostic = Diagnostic::plain("unknown-property", message)
            .note(format!("properties: {}", known.join(", ")));
        return Err(vec![
            diagnostic.did_you_mean(&args.property, known.iter().map(String::as_str)),
        ]);
    }
    Ok(found)
}

/// Writes the file, as a whole or not at all, or to standard output; `code` if that goes well.
fn written(
    terminal: &Terminal,
    output: Option<&PathBuf>,
    content: &[u8],
    code: u8,
) -> Result<u8, u8> {
    let Some(path) = output else {
        // Only text goes to standard output.
        return Ok(terminal.printed(&String::from_utf8_lossy(content), code));
    };
    match files::replace(path, content) {
        Ok(()) => Ok(code),
        Err(error) => {
            terminal.diagnose(&terminal::cannot_write(path, &error));
            Err(exit::INVALID)
        }
    }
}
