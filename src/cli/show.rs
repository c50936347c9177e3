//! `fencepost show`: an execution as a picture.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use super::args::ShowArgs;
use super::load::File;
use super::plan::{self, Question};
use super::run::Run;
use super::terminal::{self, Terminal};
use super::{ask, decide, exit, printed};
use crate::diag::Diagnostic;
use crate::litmus::LitmusTest;
use crate::report::picture::{Choice, Scene, dot, subject, svg};
use crate::report::{Line, Subject};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Svg,
    Dot,
    Html,
}

impl Form {
    /// By the file's name; without a file, SVG.
    fn of(output: Option<&Path>) -> Result<Form, Box<Diagnostic>> {
        let Some(path) = output else { return Ok(Form::Svg) };
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Ok(Form::Svg),
            Some("dot" | "gv") => Ok(Form::Dot),
            Some("html" | "htm") => Ok(Form::Html),
            _ => {
                let message = format!("no picture can be written to `{}`", path.display());
                let help = "give it a name that ends in .svg, .dot or .html";
                Err(Box::new(Diagnostic::plain("unknown-picture", message).help(help)))
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
    let form = Form::of(args.output.as_deref()).map_err(|d| refuse(&d))?;
    let mut run = Run::new(terminal, &args.question, Subject::Others)?;
    (run.settings.explain, run.settings.detail) = (true, true);
    let mut files = run.load(slice::from_ref(&args.test));
    choose(&mut files, args.name.as_deref()).map_err(|d| refuse(&d))?;
    let mut units = run.plan(&files, |test, model| question(args, test, model));
    if form != Form::Html && args.question.models.is_empty() {
        // Nobody chose one: the first of those that the test speaks of.
        units.truncate(1);
    }
    if form != Form::Html && units.len() > 1 {
        let named: Vec<_> = units.iter().map(|u| u.model.label.as_str()).collect();
        let message = format!("one picture shows one model, and there are {}: {}", units.len(), named.join(", "));
        return Err(refuse(
            &Diagnostic::plain("several-models", message).help("choose one with `--model`, or write .html"),
        ));
    }
    let mut lines: Vec<Line> = Vec::new();
    run.decide(&units, decide::answers, |run, line| {
        run.summary.add(&line);
        run.events.answered = true;
        run.events.undecided |= line.answer.verdict.reason().is_some();
        lines.push(line);
        std::ops::ControlFlow::Continue(())
    });
    let code = run.events.code();
    let Some(line) = lines.first() else { return Ok(code) };
    let subjects = subject::subjects(line);
    let Some(chosen) = subjects.first() else {
        terminal.diagnose(&Diagnostic::plain("nothing-to-draw", subject::nothing(line)).warning());
        return Ok(code);
    };
    let choice = Choice { relations: (!args.relations.is_empty()).then(|| args.relations.clone()), rest: false };
    let scene = Scene::new(chosen, &choice);
    let text = if form == Form::Dot { dot::file(&scene) } else { svg::file(&scene) };
    written(terminal, args.output.as_ref(), &text, code)
}

/// Keeps one test: that of the name, or the only one.
fn choose(files: &mut [File], name: Option<&str>) -> Result<(), Box<Diagnostic>> {
    let names: Vec<String> = files.iter().flat_map(|f| &f.tests).map(|t| t.name.clone()).collect();
    match name {
        Some(name) if !names.is_empty() && !names.iter().any(|n| n == name) => {
            let message = format!("there is no test `{name}` in the file");
            Err(Box::new(
                Diagnostic::plain("unknown-test", message).did_you_mean(name, names.iter().map(String::as_str)),
            ))
        }
        Some(name) => {
            files.iter_mut().for_each(|f| f.tests.retain(|t| t.name == name));
            Ok(())
        }
        None if names.len() > 1 => {
            let message = format!("a picture is of one test, and the file has {}", names.len());
            let some = names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let more = if names.len() > 8 { ", …" } else { "" };
            let diagnostic = Diagnostic::plain("several-tests", message).note(format!("tests: {some}{more}"));
            Err(Box::new(diagnostic.help("choose one with `--name`")))
        }
        None => Ok(()),
    }
}

/// What is asked: about the outcome given, or the property given.
fn question(args: &ShowArgs, test: &LitmusTest, model: &str) -> Result<Vec<Question>, Vec<Diagnostic>> {
    if let Some(outcome) = args.outcome.as_deref() {
        return ask::question(test, model, Some(outcome));
    }
    let all = plan::expectations(test, model, true);
    let known: Vec<String> = all.iter().map(|q| q.property.to_string()).collect();
    let found: Vec<_> = all.into_iter().filter(|q| q.property.to_string() == args.property).collect();
    if found.is_empty() {
        let message = format!("there is no property `{}`", args.property);
        let diagnostic =
            Diagnostic::plain("unknown-property", message).note(format!("properties: {}", known.join(", ")));
        return Err(vec![diagnostic.did_you_mean(&args.property, known.iter().map(String::as_str))]);
    }
    Ok(found)
}

/// Writes the file, or to standard output; `code` if that goes well.
fn written(terminal: &Terminal, output: Option<&PathBuf>, text: &str, code: u8) -> Result<u8, u8> {
    let Some(path) = output else { return Ok(printed(terminal, text, code)) };
    match fs::write(path, text) {
        Ok(()) => Ok(code),
        Err(error) => {
            terminal.diagnose(&terminal::cannot_write(path, &error));
            Err(exit::INVALID)
        }
    }
}
