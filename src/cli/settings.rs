//! The question options, checked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{MemoryArg, QuestionArgs};
use super::memory::{self, Size};
use super::pool::{Pool, STACK_BYTES};
use super::seams;
use diag::Diagnostic;
use engine::{Engine, Limits, z3_version};
use front::mapping::{self, Mapping};
use program::options::{OPTIONS, Setting};
use report::{FORMATS, ReportFormat, ReportSubject};

/// The error for an unknown prelude.
fn unknown_prelude(name: &str) -> Option<Diagnostic> {
    let known = seams::prelude_names();
    (!known.contains(&name)).then(|| {
        Diagnostic::plain("unknown-prelude", format!("there is no prelude `{name}`"))
            .note(format!("preludes: {}", known.join(", ")))
            .did_you_mean(name, known)
    })
}

/// The error for a format that has no words for the subject.
pub(super) fn unfit(format: ReportFormat, subject: ReportSubject) -> Option<Diagnostic> {
    (!format.tells(subject)).then(|| {
        let others: Vec<_> = FORMATS
            .iter()
            .filter(|row| row.0.tells(subject))
            .map(|row| row.1)
            .collect();
        let name = format.name();
        let commands = match format.tells(ReportSubject::Outcomes) {
            true => "`check`, `ask`, `compare` and `outcomes`",
            false => "`check`, `ask` and `compare`",
        };
        Diagnostic::plain(
            "unfit-format",
            format!("`{name}` is a format of {commands}"),
        )
        .help(format!("formats of this command: {}", others.join(", ")))
    })
}

/// The mapping of that name or in that file, or its faults.
fn named_mapping(name: &str) -> Result<&'static Mapping, Vec<Diagnostic>> {
    if name.ends_with(".toml") || name.contains(['/', std::path::MAIN_SEPARATOR]) {
        return Mapping::load(Path::new(name));
    }
    Mapping::named(name).ok_or_else(|| {
        let known = mapping::shipped();
        let message = format!("there is no mapping `{name}`");
        let plain = Diagnostic::plain("unknown-mapping", message)
            .did_you_mean(name, known.iter().map(|m| m.name.as_str()));
        let plain = known
            .iter()
            .fold(plain, |d, m| d.note(format!("{}: {}", m.name, m.doc)));
        vec![plain.note("or a file that ends in .toml")]
    })
}

/// Checked options that hold for every question of a run.
#[derive(Clone)]
pub(super) struct Settings {
    /// The engine.
    pub engine: Engine,
    /// The limits.
    pub limits: Limits,
    /// The memory limit of each question; `None`: no limit.
    pub memory: Option<usize>,
    /// Options of the model.
    pub set: Vec<Setting>,
    /// The mapping of the request.
    pub mapping: Option<&'static Mapping>,
    /// Whether negative answers name the axioms that they rest on.
    pub name_axioms: bool,
    /// Whether every answer about an outcome is explained.
    pub explain: bool,
    /// Whether answers that miss a test's expectation are explained.
    pub explain_unmet: bool,
    /// Whether executions come with every relation that the model names.
    pub detail: bool,
    /// Whether an undefined program is a failure if the test does not mention it.
    pub deny_undefined: bool,
    /// Whether a race is a failure where the test expects nothing of races.
    pub deny_race: bool,
    /// Whether kernels of source files are decided for launches of any size.
    pub every_launch: bool,
    /// After how long a pair that runs is named; `None`: never.
    pub slow: Option<Duration>,
    /// Whether to measure.
    pub timings: bool,
    /// The folder of reproducers.
    pub repro_dir: PathBuf,
}

/// The options of models, and a fault for each that no model has.
fn options(given: &[(String, String)]) -> (Vec<Setting>, Vec<Diagnostic>) {
    let (mut set, mut wrong) = (Vec::new(), Vec::new());
    for (name, value) in given {
        match Setting::read(name, value) {
            Ok(setting) => set.push(setting),
            Err(None) => {
                let known: Vec<&str> = OPTIONS.iter().map(|o| o.name).collect();
                let message = format!("no model has an option `{name}`");
                wrong.push(
                    Diagnostic::plain("unknown-option", message)
                        .note(format!("options: {}", known.join(", ")))
                        .did_you_mean(name, known),
                );
            }
            Err(Some(option)) => {
                let message = format!("option `{name}` cannot be `{value}`");
                wrong.push(
                    Diagnostic::plain("unknown-value", message)
                        .note(format!("values: {}", option.values.join(", ")))
                        .did_you_mean(value, option.values.iter().copied()),
                );
            }
        }
    }
    (set, wrong)
}

/// The limit of memory, and a fault for each memory of the executor.
fn memory_limit(args: &QuestionArgs) -> (Size, Vec<Diagnostic>) {
    let mut limit = Size(Some(memory::default(Pool::new(args.jobs).jobs())));
    let mut wrong = Vec::new();
    for given in &args.memory {
        match given {
            MemoryArg::Size(size) => limit = *size,
            MemoryArg::Sc | MemoryArg::Weak => wrong.push(
                Diagnostic::plain(
                    "wrong-memory",
                    "a memory by name applies to `run` without `--on`",
                )
                .help("give a limit, as in `--memory 500M`"),
            ),
        }
    }
    (limit, wrong)
}

impl Settings {
    /// Checks the options; reports every mistake at once.
    pub(super) fn new(
        args: &QuestionArgs,
        subject: ReportSubject,
    ) -> Result<Settings, Vec<Diagnostic>> {
        let mut diagnostics = Vec::new();
        let formats = [args.format]
            .into_iter()
            .chain(args.reports.iter().map(|(format, _)| *format));
        diagnostics.extend(formats.filter_map(|format| unfit(format.into(), subject)));
        let (set, wrong) = options(&args.set);
        diagnostics.extend(wrong);
        if let Some(name) = &args.prelude {
            diagnostics.extend(unknown_prelude(name));
        }
        let mapping = args.mapping.as_deref().map(named_mapping).transpose();
        let mapping = mapping.unwrap_or_else(|found| {
            diagnostics.extend(found);
            None
        });
        for (i, (_, file)) in args.reports.iter().enumerate() {
            if args.reports[..i].iter().any(|(_, other)| other == file) {
                let message = format!("two reports have the same file `{}`", file.display());
                diagnostics.push(Diagnostic::plain("same-report", message));
            }
        }
        let (memory, wrong) = memory_limit(args);
        diagnostics.extend(wrong);
        let asks_z3 = Engine::from(args.engine).asks_z3();
        let version = if asks_z3 { z3_version::check() } else { Ok(()) };
        if let Err(error) = version {
            diagnostics.push(
                Diagnostic::plain("wrong-z3", error.to_string())
                    .help("the other engines work without Z3"),
            );
        }
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let timeout = args
            .timeout
            .map_or(Limits::default().timeout, |timeout| timeout.0);
        Ok(Settings {
            engine: args.engine.into(),
            limits: Limits {
                bound: args.bound,
                timeout,
            },
            memory: memory.0,
            set,
            mapping,
            name_axioms: false,
            explain: false,
            explain_unmet: false,
            detail: false,
            deny_undefined: false,
            deny_race: false,
            every_launch: false,
            slow: args.slow_timeout.0,
            timings: args.timings,
            repro_dir: args.repro_dir.clone().unwrap_or_else(std::env::temp_dir),
        })
    }

    /// Begins a question, or several that belong together: its limits of memory and stack.
    pub(super) fn share(&self) -> stop::Share {
        stop::share(self.memory, STACK_BYTES / 4 * 3)
    }

    /// The engine in a result line if no engine got far enough to be named.
    pub(super) fn engine_name(&self) -> &'static str {
        if self.engine == Engine::Auto {
            Engine::Sat.name()
        } else {
            self.engine.name()
        }
    }
}
