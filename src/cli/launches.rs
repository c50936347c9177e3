//! `fencepost check --launch any` and `given`: kernels for every launch, or for the one that they
//! give, whatever its size. [`every_launch`](super::every_launch) asks the engine.
//!
//! # Invariants
//! - An expectation of a test is about its own launch; it is held against no other one.
//! - A proof rests on the model of the kernel's language, and answers for no other model.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::args::{CheckArgs, LaunchArg};
use super::decide::{self, Decided};
use super::every_launch::{self, EveryLaunch};
use super::headers;
use super::kernels;
use super::load::File;
use super::paths;
use super::plan::{self, Question, Unit};
use super::seams;
use super::settings::Settings;
use diag::{Diagnostic, file};
use front::litmus::form::{self, Form, forms};
use front::litmus::{FileKind, MAX_THREADS, source};
use parametric::{Limits, Sizes};
use program::Dialect;
use program::litmus::{LaunchOrigin, LitmusTest};
use report::AnswerLine;
use verdict::{Answer, PARAMETRIC, Property, Reason, Verdict};

/// The kernels of a run that asks of launches of any size, or of one whatever its size.
pub(super) struct LaunchRun {
    launch: LaunchArg,
    time: Duration,
    /// By path and name of the test.
    forms: BTreeMap<(String, String), Form>,
}

impl LaunchRun {
    /// What a command line asks of launches; `None`: it is for the exact engines first. Errors: no
    /// solver, or a question that is about one launch.
    pub(super) fn new(args: &CheckArgs) -> Result<Option<LaunchRun>, Box<Diagnostic>> {
        let launch = match args.sources.unknown() {
            Some(_) if !parametric::solver::is_there() => return Err(Box::new(without_solver())),
            Some(launch) => launch,
            None if is_too_large(args) => LaunchArg::Given,
            None => return Ok(None),
        };
        let is_other = |name: &&String| !OF_LAUNCHES.contains(&name.as_str());
        if let Some(other) = args.property.iter().find(is_other) {
            return Err(Box::new(of_one_launch(other)));
        }
        let timeout = args.question.timeout.and_then(|t| t.0);
        Ok(Some(LaunchRun {
            launch,
            time: timeout.unwrap_or(Limits::default().answer),
            forms: BTreeMap::new(),
        }))
    }

    /// Reads the kernels of the paths, with their faults.
    pub(super) fn load(&mut self, args: &CheckArgs) -> (Vec<File>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let mut files = Vec::new();
        let found = paths::discover_with(&args.paths, &args.question.kernels, &mut diagnostics);
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
            let all = match kernels(&name, &bytes, args, &mut diagnostics) {
                Ok(all) => all,
                Err(errors) => {
                    diagnostics.extend(errors);
                    continue;
                }
            };
            let mut tests = Vec::new();
            for FileKernel { form, source } in all {
                let test = source.unwrap_or_else(|| form.test.clone());
                let key = (found.path.clone(), test.name.clone());
                self.forms.insert(key, form);
                tests.push(test);
            }
            files.push(File {
                path: found.path,
                below: found.below,
                tests,
            });
        }
        (files, diagnostics)
    }

    /// The questions about a kernel. An expectation is about the launch of its test.
    pub(super) fn questions(
        &self,
        test: &LitmusTest,
        model: &str,
        args: &CheckArgs,
    ) -> Vec<Question> {
        let races = plan::expectations(test, model, true).into_iter();
        let mut races: Vec<Question> = races.filter(|q| q.property() == RACE).collect();
        for question in &mut races {
            question.expected = question
                .expected
                .filter(|_| self.launch == LaunchArg::Given);
        }
        races.push(plan::of_barriers(test));
        races.retain(|q| {
            args.property.is_empty() || args.property.contains(&q.property().to_string())
        });
        races
    }

    /// Answers the questions of a unit.
    pub(super) fn answers(&self, unit: &Unit<'_>, settings: &Settings) -> Decided<AnswerLine> {
        let key = (unit.path.to_owned(), unit.source.name.clone());
        let form = self.forms.get(&key).cloned();
        let form = form.ok_or_else(|| "the kernel has no form for every launch".to_owned());
        let sizes = match (self.launch, &form) {
            (LaunchArg::Given, Ok(form)) => every_launch::given(unit.source, form),
            _ => Sizes::ANY,
        };
        let kernel = EveryLaunch {
            test: unit.source,
            form,
            timeout: Some(self.time),
        };
        let of_model = unit.model.request == unit.source.program.dialect.default_model();
        let all = unit.questions.iter().map(|question| {
            let start = Instant::now();
            let (answer, shown) = match of_model {
                true => kernel.tried(&question.ask, sizes, self.time),
                false => (of_another_model(unit), None),
            };
            decide::Timed::new(answer, shown, start)
        });
        let mut decided = decide::lines(unit, settings, all);
        // PTX gives programs with races a meaning, so a race there is no failure.
        let is_ptx = unit.source.program.dialect == Dialect::Ptx;
        for line in &mut decided.results {
            line.denies_fault |= !is_ptx || line.property != RACE;
            if line.kernel.is_none() {
                line.notes.extend(kernels::beyond(&line.test, &line.answer));
            }
        }
        decided
    }
}

/// The properties that are decided for every launch.
const OF_LAUNCHES: [&str; 2] = ["race", "divergence"];

const RACE: Property = Property::Race;

/// The fault of a question that only one launch answers.
fn of_one_launch(property: &str) -> Diagnostic {
    let message = format!("`{property}` is decided for one launch only");
    let help = "ask `--property race` or `divergence`, or leave `--launch` out";
    Diagnostic::plain("property-of-one-launch", message).help(help)
}

fn of_another_model(unit: &Unit<'_>) -> Answer {
    let own = unit.source.program.dialect.default_model();
    let why = format!("proofs for every launch rest on the model `{own}`");
    Answer::new(Verdict::Undecided(Reason::NotProved(why)), PARAMETRIC)
}

/// Whether the questions are about races and barriers alone, of kernels in TOML that have too many
/// threads for the exact engines.
fn is_too_large(args: &CheckArgs) -> bool {
    let mut properties = args.property.iter();
    let asked =
        !args.property.is_empty() && properties.all(|name| OF_LAUNCHES.contains(&name.as_str()));
    if !asked || !parametric::solver::is_there() || !args.question.models.is_empty() {
        return false;
    }
    let found = paths::discover_with(&args.paths, &args.question.kernels, &mut Vec::new());
    fn is_large(form: &Form) -> bool {
        form.range.count().is_none_or(|n| n > MAX_THREADS as u64)
    }
    fn are_large(found: &paths::Found) -> bool {
        let Some(path) = found.file.as_ref().filter(|path| path.is_file()) else {
            return false;
        };
        let all = file::read(path, file::LARGEST).ok();
        let all = all.and_then(|bytes| forms(&path.to_string_lossy(), &bytes).ok());
        all.is_some_and(|all| !all.is_empty() && all.iter().all(is_large))
    }
    !found.is_empty() && found.iter().all(are_large)
}

/// A kernel of a file.
struct FileKernel {
    form: Form,
    /// Of a source file: the test that was made of it.
    source: Option<LitmusTest>,
}

/// The kernels of a file.
fn kernels(
    name: &str,
    bytes: &[u8],
    args: &CheckArgs,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<FileKernel>, Vec<Diagnostic>> {
    let options = source::Options {
        launches: Vec::new(),
        ..args.sources.options()
    };
    let options = headers::with_options(name.as_ref(), bytes, &options);
    let kind = FileKind::of(name, &String::from_utf8_lossy(bytes));
    let is_source = options.language.is_some() || matches!(kind, FileKind::Source(_));
    if !is_source {
        let all = forms(name, bytes)?.into_iter();
        let all = all.map(|form| FileKernel { form, source: None });
        return Ok(all.collect());
    }
    let file = seams::read_file(name, bytes, &options)?;
    diagnostics.extend(file.warnings);
    let mut all = Vec::new();
    for test in file.tests {
        if test
            .launch
            .as_ref()
            .is_some_and(|l| matches!(l.by, LaunchOrigin::Main(_)))
        {
            let message = format!("`{name}` is a program, which launches its kernels itself");
            let help = "leave `--launch` out: the program is decided as it is";
            diagnostics.push(Diagnostic::plain("unsupported-program", message).help(help));
            continue;
        }
        match form::of_source(&test) {
            Ok(Some(form)) => all.push(FileKernel {
                form,
                source: Some(test),
            }),
            Ok(None) => {
                let message = format!("`{}` is launched with clusters", test.name);
                let help = "leave `--launch` out: this launch is decided exactly";
                diagnostics.push(Diagnostic::plain("unsupported-cluster", message).help(help));
            }
            Err(errors) => diagnostics.extend(errors),
        }
    }
    Ok(all)
}

/// What is wrong with `--launch` where no solver is there.
fn without_solver() -> Diagnostic {
    Diagnostic::plain(
        "no-solver",
        "`--launch` needs the program `z3`, and there is none in PATH".to_owned(),
    )
    .help("`pip install z3-solver` brings it; or name it in FENCEPOST_Z3, or leave `--launch` out")
}
