//! The common part of `check`, `ask` and `outcomes`: read, plan, decide on several threads, report
//! in order.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use super::args::{NoTests, QuestionArgs, SelectArgs};
use super::cache::Cache;
use super::catalogue::Catalogue;
use super::decide::Decided;
use super::defect::{self, Defect};
use super::exit::Events;
use super::load::{self, File, Loaded};
use super::outputs::Outputs;
use super::plan::{self, Plan, Question, RequestedModels, Unit};
use super::pool::{Pool, PoolEvent};
use super::progress::Progress;
use super::running::{RunningPairs, Titled};
use super::select::Selection;
use super::settings::Settings;
use super::terminal::Terminal;
use super::{files, interrupt, list};
use diag::{Diagnostic, Severity};
use front::litmus::source::Options;
use program::litmus::LitmusTest;
use report::{HumanOptions, ReportFormat, ReportSubject, Summary};
use verdict::Property;

/// The widest column: one long name must not push all others off the screen.
const WIDEST: usize = 80;

/// The number of answers that a person can look at one by one.
const FEW: usize = 10;

/// The remark about tests without a question for any model.
const OF_RUNS: &str = "{} only runs of the executor (`[[run]]`), and no answer of a model";
const RUN_THEM: &str = "`fencepost run` executes such tests; `--model` asks a model about them";

/// One run over some tests.
pub(super) struct Run<'a> {
    /// The terminal.
    pub terminal: &'a Terminal,
    /// The question options, as given.
    pub args: &'a QuestionArgs,
    /// The question options, checked.
    pub settings: Settings,
    /// How source files are read.
    pub sources: Options,
    /// Known verdicts.
    pub cache: Option<Arc<Cache>>,
    /// The workers.
    pub pool: Pool,
    /// The events so far.
    pub events: Events,
    /// Their numbers.
    pub summary: Summary,
    /// The targets of the results, once they are open.
    pub outputs: Outputs,
    /// The reaction to an empty selection.
    no_tests: NoTests,
    /// Whether the run only shows its questions.
    lists: bool,
    /// The options that narrow the selection.
    narrowed: Vec<&'static str>,
    /// The number of skipped tests that have expectations about runs alone.
    pub of_runs: usize,
    /// Errors in the input from before the outputs were open.
    told: Vec<Diagnostic>,
    /// Files that the run reads: no report may take the place of one.
    inputs: Vec<PathBuf>,
}

impl<'a> Run<'a> {
    /// Checks the options and starts the workers; on failure, prints the reason and returns the
    /// exit code.
    pub(super) fn new(
        terminal: &'a Terminal,
        args: &'a QuestionArgs,
        subject: ReportSubject,
    ) -> Result<Run<'a>, u8> {
        let settings = Settings::new(args, subject).map_err(|diagnostics| {
            terminal.diagnose_all(&diagnostics);
            super::exit::INVALID
        })?;
        let pool = Pool::new(args.jobs);
        let (events, summary) = (Events::default(), Summary::default());
        let outputs = Outputs::default();
        Ok(Run {
            terminal,
            args,
            settings,
            sources: Options::default(),
            cache: None,
            pool,
            events,
            summary,
            outputs,
            no_tests: NoTests::default(),
            lists: false,
            narrowed: Vec::new(),
            of_runs: 0,
            told: Vec::new(),
            inputs: args
                .models
                .iter()
                .map(PathBuf::from)
                .chain(args.mapping.as_ref().map(PathBuf::from))
                .collect(),
        })
    }

    /// Reads the tests under `paths`, and reports the faults of the others.
    pub(super) fn load(&mut self, paths: &[PathBuf]) -> Vec<File> {
        let loaded = load::load(self.request(paths));
        self.loaded(loaded)
    }

    /// The reading of the files under `paths`, with the options of the run.
    pub(super) fn request<'r>(&'r self, paths: &'r [PathBuf]) -> load::LoadRequest<'r> {
        load::LoadRequest {
            arguments: paths,
            pool: self.pool,
            options: &self.sources,
            kernels: &self.args.kernels,
        }
    }

    /// Reports the faults of a reading; returns its files.
    pub(super) fn loaded<F>(&mut self, loaded: Loaded<F>) -> Vec<F> {
        self.complain(&loaded.diagnostics);
        self.inputs.extend(loaded.inputs);
        if loaded.interrupted {
            // Reports on a part of the files would look complete.
            let text = "interrupted before all tests were read: the unread tests have no answer";
            self.complain(&[Diagnostic::plain("interrupted", text).help("run it again")]);
        }
        for crash in loaded.crashes {
            self.summary.defects += 1;
            let defect = defect::record_crash(&crash, &self.settings.repro_dir);
            self.told.push(defect::diagnostic(&defect));
            self.defect(&defect);
        }
        loaded.files
    }

    /// Plans the questions, and reports faults and skipped tests.
    pub(super) fn plan<'t>(
        &mut self,
        files: &'t [File],
        questions: impl FnMut(&'t LitmusTest, &str) -> Result<Vec<Question>, Vec<Diagnostic>>,
    ) -> Vec<Unit<'t>> {
        self.plan_for(
            files,
            RequestedModels::Expected(&self.args.models),
            questions,
        )
    }

    /// As [`Run::plan`], with the choice of models.
    pub(super) fn plan_for<'t>(
        &mut self,
        files: &'t [File],
        asked: RequestedModels<'_>,
        questions: impl FnMut(&'t LitmusTest, &str) -> Result<Vec<Question>, Vec<Diagnostic>>,
    ) -> Vec<Unit<'t>> {
        let catalogue = Catalogue::new(self.args.prelude.clone());
        let Plan {
            units,
            diagnostics,
            passed_over,
        } = plan::plan(files, asked, self.settings.mapping, catalogue, questions);
        self.complain(&diagnostics);
        self.summary.passed_over += passed_over;
        units
    }

    /// The subject of the run; on failure, prints the reason and returns the exit code.
    pub(super) fn select(&mut self, args: &SelectArgs) -> Result<Selection, u8> {
        self.no_tests = args.no_tests;
        self.lists = args.list;
        self.narrowed = args.narrowing();
        let selection = Selection::new(args).map_err(|diagnostic| {
            self.terminal.diagnose(&diagnostic);
            super::exit::INVALID
        })?;
        if let Some(file) = selection.changed_for_all() {
            let text = format!("`{file}` changed: this run keeps the tests of all files");
            self.terminal.remark(&text);
        }
        Ok(selection)
    }

    /// Prints the questions of a run that only shows them; returns the exit code.
    fn list(&mut self, units: &[Unit<'_>]) -> u8 {
        let Some(text) = list::list(units, self.args.format.into()) else {
            let plain = Diagnostic::plain("list-format", "this format has no list of questions");
            self.complain(&[plain.help("use `--format human`, `json` or `jsonl`")]);
            return super::exit::INVALID;
        };
        self.events.answered |= !units.is_empty();
        let code = self.end();
        self.terminal.printed(&text, code)
    }

    /// Whether one of the outputs has a format of that kind; the second argument says whether it is
    /// quiet.
    pub(super) fn formats(&self, mut is: impl FnMut(ReportFormat, bool) -> bool) -> bool {
        is(self.args.format.into(), self.terminal.quiet)
            || self
                .args
                .reports
                .iter()
                .any(|(format, _)| is((*format).into(), false))
    }

    /// Opens the outputs. On failure, prints the reason and returns the exit code; with `--list`,
    /// the questions.
    pub(super) fn open(&mut self, units: &[Unit<'_>], explain: bool) -> Result<(), u8> {
        if self.lists {
            return Err(self.list(units));
        }
        let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let properties = units
            .iter()
            .flat_map(|u| &u.questions)
            .map(|q| q.property());
        let others = properties.clone().any(|p| p != Property::Reachability);
        let mut human = HumanOptions {
            quiet: self.terminal.quiet,
            verbose: self.terminal.verbose,
            explain,
            few: properties.clone().count() <= FEW,
            columns: self.terminal.columns(),
            namesakes: namesakes(units),
            test_width: 0,
            model_width: width(&mut units.iter().map(|u| u.model.request.chars().count()))
                .min(WIDEST),
            property_width: if others {
                width(&mut properties.map(|p| p.to_string().len()))
            } else {
                0
            },
        };
        human.test_width = width(
            &mut units
                .iter()
                .map(|u| human.called(&u.test.name, u.path).chars().count()),
        )
        .min(WIDEST);
        self.keep_inputs(self.args.reports.iter().map(|(_, path)| path))?;
        let opened = Outputs::open(self.terminal, self.args.format, &self.args.reports, &human);
        self.outputs = opened.map_err(|diagnostic| {
            self.terminal.diagnose(&diagnostic);
            super::exit::INVALID
        })?;
        self.told
            .iter()
            .for_each(|diagnostic| self.outputs.diagnostic(diagnostic));
        Ok(())
    }

    /// Refuses to write a file in the place of an input, or two into one file; prints the reason
    /// and returns the exit code.
    pub(super) fn keep_inputs<'p>(
        &self,
        outputs: impl Iterator<Item = &'p PathBuf> + Clone,
    ) -> Result<(), u8> {
        for (i, output) in outputs.clone().enumerate() {
            let Some(file) = identity(output) else {
                continue;
            };
            let taken = |path: &PathBuf| identity(path).is_some_and(|other| other == file);
            let problem = if self.inputs.iter().any(taken) {
                "is an input of this run"
            } else if files::replaceable(output) && outputs.clone().take(i).any(taken) {
                "is the target of two outputs"
            } else {
                continue;
            };
            let message = format!("`{}` {problem} and was not overwritten", output.display());
            let plain = Diagnostic::plain("output-overwrites", message)
                .help("name another file for the output");
            self.terminal.diagnose(&plain);
            return Err(super::exit::INVALID);
        }
        Ok(())
    }

    /// Decides all units on the workers; `report` gets each result, in order, and may break off.
    pub(super) fn decide<U: Sync + Titled, R: Send>(
        &mut self,
        units: &[U],
        work: impl Fn(&U, &Settings) -> Decided<R> + Sync,
        mut report: impl FnMut(&mut Run<'a>, R) -> ControlFlow<()>,
    ) {
        let progress = Progress::new(self.terminal, units.len());
        let settings = self.settings.clone();
        let running = RunningPairs::new(settings.slow);
        let (pool, terminal) = (self.pool, self.terminal);
        let tell = |text: &str| progress.aside(|| terminal.remark(text));
        let decide = |unit: &U| {
            let _share = settings.share();
            let number = running.begin(unit.title());
            let decided = work(unit, &settings);
            running.end(number).iter().for_each(|text| tell(text));
            progress.done_one(decided.failed, decided.undecided);
            decided
        };
        thread::scope(|scope| {
            // Goes away where this ends, also by a panic, and the watch with it.
            let (_alive, ended) = mpsc::channel();
            let (running, progress) = (&running, &progress);
            scope.spawn(move || running.watch(&ended, |oldest| progress.oldest(oldest), tell));
            pool.in_order(units, decide, |event| {
                let PoolEvent::Result(decided) = event else {
                    progress.finish();
                    interrupt::leave(self.end());
                };
                progress.aside(|| {
                    let mut defects = decided.defects.iter();
                    defects.by_ref().for_each(|defect| self.defect(defect));
                    let mut results = decided.results.into_iter();
                    results.try_for_each(|result| report(self, result))
                })
            });
        });
        progress.finish();
        let warnings = self.cache.as_ref().map(|cache| cache.warnings());
        self.complain(&warnings.unwrap_or_default());
    }

    /// Ends the outputs and gives the exit code.
    pub(super) fn end(&mut self) -> u8 {
        self.summary.interrupted = interrupt::code().is_some();
        let failures = std::mem::take(&mut self.outputs).end(&self.summary);
        self.complain(&failures);
        if let Some(code) = interrupt::code() {
            return code;
        }
        let code = self.events.code();
        if code == super::exit::NO_TEST && self.no_tests == NoTests::Pass {
            return super::exit::OK;
        }
        if code == super::exit::NO_TEST {
            let mut plain = super::exit::no_test();
            if !self.narrowed.is_empty() {
                plain = plain
                    .note(format!("selected by {}", self.narrowed.join(" and ")))
                    .help("`--no-tests pass` accepts an empty selection");
            }
            self.terminal.diagnose(&match self.of_runs {
                0 => plain,
                1 => plain
                    .note(OF_RUNS.replace("{}", "1 test expects"))
                    .help(RUN_THEM),
                n => plain
                    .note(OF_RUNS.replace("{}", &format!("{n} tests expect")))
                    .help(RUN_THEM),
            });
        }
        code
    }

    /// Prints diagnostics and counts the errors among them.
    pub(super) fn complain(&mut self, diagnostics: &[Diagnostic]) {
        let errors = self.terminal.diagnose_all(diagnostics);
        self.summary.invalid += errors;
        self.events.invalid |= errors > 0;
        self.told.extend(
            diagnostics
                .iter()
                .filter(|d| d.severity == Severity::Error)
                .cloned(),
        );
    }

    /// Reports a broken law.
    fn defect(&mut self, defect: &Defect) {
        self.events.defect = true;
        self.terminal.diagnose(&defect::diagnostic(defect));
    }
}

/// The file that a path leads to, by whatever name; a new file, by its folder and name.
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    })
}

/// Names that tests of several files have.
fn namesakes(units: &[Unit<'_>]) -> BTreeSet<String> {
    let mut path_of: HashMap<&str, &str> = HashMap::new();
    let mut found = BTreeSet::new();
    for unit in units {
        if *path_of.entry(&unit.source.name).or_insert(unit.path) != unit.path {
            found.insert(unit.source.name.clone());
        }
    }
    found
}
