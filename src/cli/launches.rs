//! `fencepost check --launch any` and `given`: kernels for every launch, or for the one that they
//! give, whatever its size. [`every_launch`](super::every_launch) asks the engine.
//!
//! # Invariants
//! - An expectation of a test is about its own launch; it is held against no other one.
//! - A proof rests on the model of the kernel's language, and answers for no other model.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::args::{CheckArgs, LaunchArg};
use super::decide::{self, Decided};
use super::every_launch::{self, EveryLaunch};
use super::kernels;
use super::load::{self, File, FileContents};
use super::plan::{self, Question, Unit};
use super::run::Run;
use super::seams;
use super::settings::Settings;
use super::with;
use diag::Diagnostic;
use front::litmus::form::{self, Form, forms};
use front::litmus::{FileKind, MAX_THREADS, TestFile, source};
use parametric::{KernelLimits, Sizes};
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

/// The launches that a command line asks of.
#[derive(Clone, Copy)]
pub(super) struct LaunchRequest {
    launch: LaunchArg,
    /// Only if each kernel has too many threads for the exact engines.
    if_large: bool,
}

/// The launches that a command line asks of; `None`: its questions are for the exact engines.
///
/// # Errors
/// If there is no solver, or a question is about one launch.
pub(super) fn asked(args: &CheckArgs) -> Result<Option<LaunchRequest>, Box<Diagnostic>> {
    let (launch, if_large) = match args.sources.unknown() {
        Some(_) if !parametric::solver::is_there() => return Err(Box::new(without_solver())),
        Some(launch) => (launch, false),
        None if is_of_launches(args) => (LaunchArg::Given, true),
        None => return Ok(None),
    };
    let is_other = |name: &&String| !OF_LAUNCHES.contains(&name.as_str());
    if let Some(other) = args.property.iter().find(is_other) {
        return Err(Box::new(of_one_launch(other)));
    }
    Ok(Some(LaunchRequest { launch, if_large }))
}

/// Reads the files of a run. The questions stay with the exact engines if the request is for large
/// kernels, and one is small.
pub(super) fn load(
    run: &mut Run<'_>,
    args: &CheckArgs,
    asked: LaunchRequest,
) -> (Vec<File>, Option<LaunchRun>) {
    let options = source::Options {
        launches: Vec::new(),
        ..run.sources.clone()
    };
    let request = load::LoadRequest {
        options: if asked.if_large {
            &run.sources
        } else {
            &options
        },
        ..run.request(&args.paths)
    };
    let loaded = load::load_as(request, |name, bytes, options| {
        FileReading::new(name, bytes, options, asked.if_large)
    });
    let files = run.loaded(loaded);
    if asked.if_large && !files.iter().all(|file| file.contents.is_large()) {
        return (exact(run, files), None);
    }
    let timeout = args.question.timeout.and_then(|t| t.0);
    let mut launches = LaunchRun {
        launch: asked.launch,
        time: timeout.unwrap_or(KernelLimits::default().answer),
        forms: BTreeMap::new(),
    };
    let mut read = Vec::new();
    for file in files {
        let tests = file.contents.kernels.map(|all| TestFile {
            tests: launches.take(&file.path, all.kernels),
            warnings: all.warnings,
        });
        read.extend(complained(run, file.path, file.below, tests));
    }
    (read, Some(launches))
}

/// The tests of files for the exact engines.
fn exact(run: &mut Run<'_>, files: Vec<FileContents<FileReading>>) -> Vec<File> {
    let mut read = Vec::new();
    for file in files {
        let tests = file.contents.tests.unwrap_or_else(|| Err(Vec::new()));
        read.extend(complained(run, file.path, file.below, tests));
    }
    read
}

/// A file whose warnings are reported; nothing after errors.
fn complained(
    run: &mut Run<'_>,
    path: String,
    below: String,
    tests: Result<TestFile, Vec<Diagnostic>>,
) -> Option<File> {
    match tests {
        Ok(TestFile { tests, warnings }) => {
            run.complain(&warnings);
            Some(File { path, below, tests })
        }
        Err(diagnostics) => {
            run.complain(&diagnostics);
            None
        }
    }
}

impl LaunchRun {
    /// Keeps the forms of the kernels of a file; returns their tests.
    fn take(&mut self, path: &str, kernels: Vec<FileKernel>) -> Vec<LitmusTest> {
        let mut tests = Vec::new();
        for FileKernel { form, source } in kernels {
            let test = source.unwrap_or_else(|| form.test.clone());
            let key = (path.to_owned(), test.name.clone());
            self.forms.insert(key, form);
            tests.push(test);
        }
        tests
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
            start: Cell::new(Instant::now()),
        };
        let of_model = unit.asks_own_model();
        let all = unit.questions.iter().map(|question| {
            let start = Instant::now();
            kernel.start.set(start);
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

/// Whether the questions are about races and barriers alone, under no model that is named.
fn is_of_launches(args: &CheckArgs) -> bool {
    let mut properties = args.property.iter();
    !args.property.is_empty()
        && properties.all(|name| OF_LAUNCHES.contains(&name.as_str()))
        && parametric::solver::is_there()
        && args.question.models.is_empty()
}

/// Whether a kernel has too many threads for the exact engines.
fn is_large(form: &Form) -> bool {
    form.range.count().is_none_or(|n| n > MAX_THREADS as u64)
}

/// A kernel of a file.
struct FileKernel {
    form: Form,
    /// Of a source file: the test that was made of it.
    source: Option<LitmusTest>,
}

/// The kernels of a file.
struct FileKernels {
    kernels: Vec<FileKernel>,
    warnings: Vec<Diagnostic>,
}

/// The contents of a file.
struct FileReading {
    kernels: Result<FileKernels, Vec<Diagnostic>>,
    /// Its tests for the exact engines, if a run may need them.
    tests: Option<Result<TestFile, Vec<Diagnostic>>>,
}

impl FileReading {
    /// Reads a file. `if_large`: the kernels of test files only, and the tests of all.
    fn new(
        name: &str,
        bytes: &[u8],
        options: &source::Options,
        if_large: bool,
    ) -> Result<FileReading, Vec<Diagnostic>> {
        let kind = FileKind::of(name, &String::from_utf8_lossy(bytes));
        let is_source = options.language.is_some() || matches!(kind, FileKind::Source(_));
        let kernels = match (is_source, if_large) {
            (true, true) => Err(Vec::new()),
            (true, false) => of_source(name, bytes, options),
            (false, _) => of_tests(name, bytes),
        };
        let tests = if_large.then(|| with::read(name, bytes, options));
        Ok(FileReading { kernels, tests })
    }

    fn is_large(&self) -> bool {
        let kernels = self.kernels.as_ref().ok().map(|file| &file.kernels);
        kernels.is_some_and(|all| !all.is_empty() && all.iter().all(|k| is_large(&k.form)))
    }
}

/// The kernels of a test file.
fn of_tests(name: &str, bytes: &[u8]) -> Result<FileKernels, Vec<Diagnostic>> {
    let all = forms(name, bytes)?.into_iter();
    let kernels = all.map(|form| FileKernel { form, source: None });
    Ok(FileKernels {
        kernels: kernels.collect(),
        warnings: Vec::new(),
    })
}

/// The kernels of a source file.
fn of_source(
    name: &str,
    bytes: &[u8],
    options: &source::Options,
) -> Result<FileKernels, Vec<Diagnostic>> {
    let file = seams::read_file(name, bytes, options)?;
    let mut warnings = file.warnings;
    let mut kernels = Vec::new();
    for test in file.tests {
        let launch = test.launch.as_ref();
        if launch.is_some_and(|l| matches!(l.by, LaunchOrigin::Main(_))) {
            let message = format!("`{name}` is a program, which launches its kernels itself");
            let help = "leave `--launch` out: the program is decided as it is";
            warnings.push(Diagnostic::plain("unsupported-program", message).help(help));
            continue;
        }
        match form::of_source(&test) {
            Ok(Some(form)) => kernels.push(FileKernel {
                form,
                source: Some(test),
            }),
            Ok(None) => {
                let message = format!("`{}` is launched with clusters", test.name);
                let help = "leave `--launch` out: this launch is decided exactly";
                warnings.push(Diagnostic::plain("unsupported-cluster", message).help(help));
            }
            Err(errors) => warnings.extend(errors),
        }
    }
    Ok(FileKernels { kernels, warnings })
}

/// What is wrong with `--launch` where no solver is there.
fn without_solver() -> Diagnostic {
    Diagnostic::plain(
        "no-solver",
        "`--launch` needs the program `z3`, and there is none in PATH".to_owned(),
    )
    .help("`pip install z3-solver` brings it; or name it in FENCEPOST_Z3, or leave `--launch` out")
}
