//! `fencepost check --launch`: kernels of TOML tests, for every launch or for the one that they
//! give, whatever its size.
//!
//! One line a kernel and property, in the order of the paths.

use super::args::{CheckArgs, FormatArg, LaunchArg};
use super::exit::Events;
use super::paths;
use super::terminal::Terminal;
use diag::{Diagnostic, file};
use front::litmus::form::{Form, forms};
use parametric::{Answer, Kernel, Limits, Property, decide};

/// Answers about all kernels of the paths; returns the exit code.
pub(super) fn check(args: &CheckArgs, launch: LaunchArg, terminal: &Terminal) -> u8 {
    let mut diagnostics = Vec::new();
    let found = paths::discover(&args.paths, &mut diagnostics);
    let mut events = Events::default();
    let mut text = String::new();
    let jsonl = args.question.format == FormatArg::Jsonl;
    for found in found {
        let Some(path) = found.file else { continue };
        let bytes = match file::read(&path, file::LARGEST) {
            Ok(bytes) => bytes,
            Err(error) => {
                diagnostics.push(paths::unreadable(&path, &error));
                continue;
            }
        };
        let name = path.to_string_lossy();
        let all = match forms(&name, &bytes) {
            Ok(all) => all,
            Err(errors) => {
                diagnostics.extend(errors);
                continue;
            }
        };
        for form in &all {
            let kernel = Kernel {
                form,
                name: &name,
                bytes: &bytes,
            };
            for property in properties(args) {
                let any = launch == LaunchArg::Any;
                let answer = decide(kernel, property, any, &limits(args));
                note(&mut events, &answer);
                let line = match jsonl {
                    true => object(&found.path, form, property, &answer),
                    false => sentence(&found.path, form, property, &answer),
                };
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    events.invalid |= !diagnostics.is_empty();
    terminal.diagnose_all(&diagnostics);
    terminal.printed(&text, events.code())
}

fn limits(args: &CheckArgs) -> Limits {
    let usual = Limits::default();
    let timeout = args.question.timeout;
    Limits {
        answer: timeout.and_then(|t| t.0).unwrap_or(usual.answer),
        ..usual
    }
}

fn properties(args: &CheckArgs) -> Vec<Property> {
    let asked = |name: &str| args.property.is_empty() || args.property.iter().any(|p| p == name);
    let all = [
        ("race", Property::Race),
        ("undefined", Property::Divergence),
    ];
    let asked = all.into_iter().filter(|(name, _)| asked(name));
    asked.map(|(_, property)| property).collect()
}

fn note(events: &mut Events, answer: &Answer) {
    events.answered = true;
    match answer {
        Answer::Never { .. } => {}
        Answer::Happens { .. } => events.unmet = true,
        Answer::Tried { .. } | Answer::Undecided { .. } => events.undecided = true,
    }
}

fn word(property: Property) -> &'static str {
    match property {
        Property::Race => "race",
        Property::Divergence => "divergence",
    }
}

/// The verdict in the words of answers.
fn verdict(property: Property, answer: &Answer) -> &'static str {
    match (property, answer) {
        (Property::Race, Answer::Never { .. } | Answer::Tried { .. }) => "race-free",
        (Property::Race, Answer::Happens { .. }) => "racy",
        (Property::Divergence, Answer::Never { .. } | Answer::Tried { .. }) => "uniform",
        (Property::Divergence, Answer::Happens { .. }) => "divergent",
        (_, Answer::Undecided { .. }) => "undecided",
    }
}

/// An answer for people.
fn sentence(path: &str, form: &Form, property: Property, answer: &Answer) -> String {
    let head = format!("{path}: {}: {}", form.test.name, verdict(property, answer));
    match answer {
        Answer::Never { proved, assumed } => {
            let assumed = assumed.join("; ");
            format!("{head} for {}, assuming: {assumed}", proved.phrase())
        }
        Answer::Happens { launch, apart, .. } => {
            let [a, b] = &apart.lines;
            let lines = match a.number == b.number {
                true => format!("line {}", a.number),
                false => format!("lines {} and {}", a.number, b.number),
            };
            format!("{head} at {lines}; an execution of {launch} shows it")
        }
        Answer::Tried {
            up_to: [blocks, threads],
            apart,
        } => {
            let [a, b] = &apart.lines;
            format!(
                "{head} in launches up to {blocks} blocks of {threads} threads with the inputs of the \
                 file; not proved beyond: lines {} and {}",
                a.number, b.number
            )
        }
        Answer::Undecided { reason, .. } => format!("{head} ({}): {reason}", word(property)),
    }
}

/// An answer as an object, with its keys in the order of all answers.
fn object(path: &str, form: &Form, property: Property, answer: &Answer) -> String {
    let text = |s: &str| serde_json::Value::from(s).to_string();
    let list = |all: &[String]| serde_json::Value::from(all.to_vec()).to_string();
    let mut object = format!(
        "{{\"path\":{},\"test\":{},\"property\":\"{}\",\"verdict\":\"{}\",\"expected\":null,\
         \"engine\":\"parametric\"",
        text(path),
        text(&form.test.name),
        word(property),
        verdict(property, answer)
    );
    let lines = |apart: &parametric::decide::Apart| {
        let [a, b] = &apart.lines;
        format!(",\"lines\":[{},{}]", a.number, b.number)
    };
    object.push_str(&match answer {
        Answer::Never { proved, assumed } => {
            let assumed = list(assumed);
            format!(",\"proved\":\"{}\",\"assumed\":{assumed}", proved.word())
        }
        Answer::Happens { launch, apart, .. } => {
            format!(",\"launch\":{}{}", text(launch), lines(apart))
        }
        Answer::Tried {
            up_to: [b, t],
            apart,
        } => {
            format!(",\"proved\":\"tried\",\"up_to\":[{b},{t}]{}", lines(apart))
        }
        Answer::Undecided { reason, .. } => format!(",\"reason\":{}", text(reason)),
    });
    object.push('}');
    object
}

/// What is wrong with `--launch` where no solver is there.
pub(super) fn without_solver() -> Diagnostic {
    Diagnostic::plain(
        "no-solver",
        "`--launch` needs Z3, and this program was built without it".to_owned(),
    )
    .help("build it with `--features z3`, or leave `--launch` out")
}
