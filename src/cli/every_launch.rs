//! `fencepost check --launch`: kernels of TOML tests, for every launch or for the one that they
//! give, whatever its size. [`EveryLaunch`] does so for kernels of source files, beside the exact
//! engines.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::args::{CheckArgs, LaunchArg};
use super::decide::{self, Decided};
use super::headers;
use super::load::File;
use super::paths;
use super::plan::{self, Question, Unit};
use super::seams;
use super::settings::Settings;
use diag::{Diagnostic, file};
use front::litmus::form::{self, Form, forms};
use front::litmus::{FileKind, MAX_THREADS, source};
use parametric::decide::Apart;
use parametric::{Answer, Kernel, Limits, Property, Sizes, decide_for};
use program::Dialect;
use program::litmus::{KernelLaunch, LaunchOrigin, LitmusTest};
use report::AnswerLine;
use verdict::{Change, Launches, Need, PARAMETRIC, Reach, Reason, Remedy, Verdict, Where};
use why::Ask;

/// The time for a proof about a launch; to extend it to every launch; and to look for a race.
const PROOF: Duration = Duration::from_secs(4);
const EXTENSION: Duration = Duration::from_secs(2);
const SEARCH: Duration = Duration::from_secs(10);

/// A kernel of a source file for launches of any size.
pub(super) struct EveryLaunch<'a> {
    test: &'a LitmusTest,
    form: Result<Form, String>,
    timeout: Option<Duration>,
}

/// What a proof left open.
pub(super) struct Open {
    why: String,
    apart: Option<Box<Apart>>,
}

impl<'a> EveryLaunch<'a> {
    /// The kernel of a unit; `None`: the unit asks of one launch alone.
    pub(super) fn of(unit: &'a Unit<'_>, settings: &Settings) -> Option<EveryLaunch<'a>> {
        let test = unit.source;
        // A program launches its kernels itself, and a form is that of the file's own code.
        let is_kernel =
            |l: &KernelLaunch| !matches!(l.by, LaunchOrigin::Main(_)) && l.compiler.is_none();
        if !is_plain(unit, settings) || !test.launch.as_ref().is_some_and(is_kernel) {
            return None;
        }
        let form = match form::of_source(test) {
            Ok(Some(form)) => Ok(form),
            Ok(None) => Err("a launch with clusters".to_owned()),
            Err(errors) => Err(errors.first().map_or(String::new(), |d| d.message.clone())),
        };
        let timeout = settings.limits.timeout;
        Some(EveryLaunch {
            test,
            form,
            timeout,
        })
    }

    /// Whether the exact engines have a smaller launch than the given one.
    pub(super) fn is_smaller(&self) -> bool {
        self.test.launch.as_ref().is_some_and(|l| l.is_smaller)
    }

    /// Whether the launch has so many threads that deciding it exactly takes long.
    fn is_wide(&self) -> bool {
        let sizes = self
            .test
            .launch
            .as_ref()
            .map(|l| l.grid.iter().chain(&l.block));
        sizes.is_some_and(|all| all.product::<u32>() > 32)
    }

    /// Whether nothing but sizes is given.
    pub(super) fn has_open_arguments(&self) -> bool {
        let launch = self.test.launch.as_ref();
        launch.is_some_and(|l| l.by != LaunchOrigin::Choice && !l.given.has_arguments)
    }

    fn decide(&self, ask: &Ask, sizes: Sizes, time: Duration, tries: bool) -> Result<Answer, Open> {
        let form = self.form.as_ref().map_err(|why| Open {
            why: why.clone(),
            apart: None,
        })?;
        let kernel = Kernel {
            form,
            name: &self.test.file.name,
            bytes: self.test.file.text.as_bytes(),
            source: self.test.launch.is_some().then_some(self.test),
        };
        let property = match ask {
            Ask::Race => Property::Race,
            _ => Property::Divergence,
        };
        let limits = Limits {
            answer: time,
            tries,
            ..Limits::default()
        };
        Ok(decide_for(kernel, property, sizes, &limits))
    }

    /// A part of the time limit; without one, so much.
    fn time(&self, usual: Duration, part: u32) -> Duration {
        self.timeout.map_or(usual, |timeout| timeout / part)
    }

    /// A proof for the launch that is given, or for every one.
    pub(super) fn proof(&self, ask: &Ask) -> Result<verdict::Answer, Open> {
        let form = self.form.as_ref().map_err(|why| Open {
            why: why.clone(),
            apart: None,
        })?;
        let sizes = given(self.test, form);
        let begun = Instant::now();
        let (proved, assumed) = match self.decide(ask, sizes, self.time(PROOF, 2), false)? {
            Answer::Never { proved, assumed } => (proved, assumed),
            Answer::Happens { apart, .. } | Answer::Tried { apart, .. } => {
                return Err(Open {
                    why: said(ask, &apart),
                    apart: Some(Box::new(apart)),
                });
            }
            Answer::Undecided { reason, apart } => {
                let why = apart.as_ref().map_or(reason, |apart| said(ask, apart));
                return Err(Open {
                    why,
                    apart: apart.map(Box::new),
                });
            }
        };
        // Where blocks are not told apart, one block is meant.
        let one = Sizes {
            grid: [Some(1); 3],
            ..Sizes::ANY
        };
        let is_one = sizes.grid.iter().flatten().product::<u64>() == 1;
        let wider = [Some(Sizes::ANY), is_one.then_some(one)];
        let mut answer = never(ask, proved.launches(), assumed);
        for wide in wider.into_iter().flatten() {
            let left = self.time(EXTENSION, 4).saturating_sub(begun.elapsed() / 4);
            match self.decide(ask, wide, left, false) {
                Ok(Answer::Never { proved, assumed }) => {
                    return Ok(never(ask, proved.launches(), assumed));
                }
                Ok(Answer::Undecided {
                    apart: Some(apart), ..
                }) => {
                    if let Some(reach) = &mut answer.reach {
                        reach.open = Some(said(ask, &apart));
                        reach.lines = Some(apart.lines);
                    }
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Looks for an execution of what a proof left open, in launches of the given size and smaller
    /// ones.
    pub(super) fn search(&self, ask: &Ask) -> (verdict::Answer, Option<LitmusTest>) {
        match &self.form {
            Ok(form) => self.tried(ask, given(self.test, form), self.time(SEARCH, 1)),
            Err(why) => {
                let (why, apart) = (why.clone(), None);
                (undecided(Open { why, apart }), None)
            }
        }
    }

    /// A proof for launches of some sizes, else an execution; with the execution, its test.
    fn tried(
        &self,
        ask: &Ask,
        sizes: Sizes,
        time: Duration,
    ) -> (verdict::Answer, Option<LitmusTest>) {
        match self.decide(ask, sizes, time, true) {
            Err(open) => (undecided(open), None),
            Ok(Answer::Never { proved, assumed }) => (never(ask, proved.launches(), assumed), None),
            Ok(Answer::Happens {
                exact, test, apart, ..
            }) => {
                let verdict = match ask {
                    Ask::Race => Verdict::Racy,
                    _ => Verdict::Divergent,
                };
                let mut answer = verdict::Answer {
                    verdict,
                    engine: PARAMETRIC,
                    ..*exact
                };
                if let (Some(fault), Ask::Race) = (&mut answer.fault, ask) {
                    fault.remedy = self
                        .barrier(&apart)
                        .map(|change| Remedy::Changes(vec![change]));
                }
                (answer, Some(*test))
            }
            Ok(Answer::Tried { up_to, apart }) => {
                let mut answer = never(ask, Launches::Tried(up_to), Vec::new());
                if let Some(reach) = &mut answer.reach {
                    reach.open = Some(said(ask, &apart));
                    reach.lines = Some(apart.lines);
                }
                (answer, None)
            }
            Ok(Answer::Undecided { reason, apart }) => {
                let (why, apart) = (reason, apart.map(Box::new));
                (undecided(Open { why, apart }), None)
            }
        }
    }
}

/// The answer where neither a proof was found nor an execution.
fn undecided(open: Open) -> verdict::Answer {
    let verdict = Verdict::Undecided(Reason::NotProved(open.why));
    let mut answer = verdict::Answer::new(verdict, PARAMETRIC);
    answer.reach = open.apart.map(|apart| {
        Box::new(Reach {
            launches: Launches::One,
            assumed: Vec::new(),
            lines: Some(apart.lines),
            open: None,
        })
    });
    answer
}

/// A proof about the launch of a TOML kernel that the exact engines did not decide.
pub(super) fn in_place_of(
    unit: &Unit<'_>,
    settings: &Settings,
    question: &Question,
    exact: verdict::Answer,
) -> verdict::Answer {
    fn given_up(reason: &Reason) -> bool {
        reason.is_size() || *reason == Reason::Time
    }
    let test = unit.source;
    let is_open = exact.verdict.reason().is_some_and(given_up) && exact.defect.is_none();
    let asked = matches!(question.ask, Ask::Race | Ask::Divergence) && test.launch.is_none();
    if !is_open || !asked || !is_plain(unit, settings) {
        return exact;
    }
    let bytes = test.file.text.as_bytes();
    let all = forms(&test.file.name, bytes).unwrap_or_default();
    let Some(form) = all.into_iter().find(|form| form.test.name == test.name) else {
        return exact;
    };
    let sizes = Sizes::given(&form);
    let kernel = EveryLaunch {
        test,
        form: Ok(form),
        timeout: settings.limits.timeout,
    };
    match kernel.decide(&question.ask, sizes, kernel.time(PROOF, 2), false) {
        Ok(Answer::Never { proved, assumed }) => never(&question.ask, proved.launches(), assumed),
        _ => exact,
    }
}

/// Whether nothing but the model of the dialect is asked, by no engine in particular.
fn is_plain(unit: &Unit<'_>, settings: &Settings) -> bool {
    let plain = settings.set.is_empty() && settings.engine == engine::Engine::Auto;
    let own = unit.mapping.is_none() && unit.refused.is_none();
    let shipped = unit.model.request == unit.source.program.dialect.default_model();
    settings.every_launch && plain && own && shipped
}

impl EveryLaunch<'_> {
    /// A barrier of a block between two accesses, with which the kernel is proved not to race, and
    /// its threads to come to all barriers together.
    fn barrier(&self, apart: &Apart) -> Option<Change> {
        let text = match self.test.program.dialect {
            Dialect::OpenCl => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
            Dialect::Ptx => "bar.sync 0;",
            _ => "__syncthreads();",
        };
        let [a, b] = &apart.lines;
        let places = [
            (a, Where::After),
            (b, Where::Before),
            (b, Where::After),
            (a, Where::Before),
        ];
        let end = Instant::now() + self.time(PROOF, 2);
        let (line, place) = places.into_iter().find(|(line, place)| {
            let left = end.saturating_duration_since(Instant::now());
            !left.is_zero() && self.is_proved_with(text, line.number, *place, left)
        })?;
        Some(Change {
            line: line.clone(),
            text: format!("a barrier at line {}", line.number),
            reason: String::new(),
            edit: Some(Need {
                line: line.clone(),
                place,
                instead: text.to_owned(),
                thread: String::new(),
                text: String::new(),
                what: "a barrier".to_owned(),
            }),
        })
    }

    fn is_proved_with(&self, barrier: &str, line: u32, place: Where, time: Duration) -> bool {
        let behind = usize::from(place == Where::After);
        let at = (line as usize + behind).saturating_sub(1);
        let mut lines: Vec<&str> = self.test.file.text.lines().collect();
        if at > lines.len() {
            return false;
        }
        lines.insert(at, barrier);
        let test = LitmusTest {
            file: self.test.file.changed(lines.join("\n") + "\n"),
            ..self.test.clone()
        };
        let Ok(Some(form)) = form::of_source(&test) else {
            return false;
        };
        let sizes = given(&test, &form);
        let changed = EveryLaunch {
            test: &test,
            form: Ok(form),
            timeout: self.timeout,
        };
        [Ask::Race, Ask::Divergence].iter().all(|ask| {
            let answer = changed.decide(ask, sizes, time, false);
            matches!(answer, Ok(Answer::Never { .. }))
        })
    }
}

/// Says of an exact answer what a proof left open.
pub(super) fn limited(answer: &mut verdict::Answer, open: Open) {
    answer.reach = Some(Box::new(Reach {
        launches: Launches::One,
        assumed: Vec::new(),
        lines: open.apart.map(|apart| apart.lines),
        open: Some(open.why),
    }));
}

/// Two lines that may race, or a barrier that threads may miss.
fn said(ask: &Ask, apart: &Apart) -> String {
    let [a, b] = apart.lines.each_ref().map(|line| line.number);
    match ask {
        Ask::Race if a == b => format!("threads may race at line {a}"),
        Ask::Race => format!("lines {a} and {b} may race"),
        _ => format!("threads may part before the barrier of line {a}"),
    }
}

fn never(ask: &Ask, launches: Launches, assumed: Vec<String>) -> verdict::Answer {
    let verdict = match ask {
        Ask::Race => Verdict::RaceFree,
        _ => Verdict::Uniform,
    };
    let mut answer = verdict::Answer::new(verdict, PARAMETRIC);
    answer.reach = Some(Box::new(Reach {
        launches,
        assumed,
        lines: None,
        open: None,
    }));
    answer
}

/// Answers a question about a kernel; with it, the test of another launch that shows the answer.
///
/// `exact` decides the launch of the unit.
pub(super) fn answer(
    kernel: &EveryLaunch<'_>,
    question: &Question,
    exact: impl FnOnce() -> Option<verdict::Answer>,
) -> (Option<verdict::Answer>, Option<LitmusTest>) {
    let ask = &question.ask;
    let open = match kernel.proof(ask) {
        Ok(answer) => return (Some(answer), None),
        Err(open) => open,
    };
    // A race in a launch of many threads is found sooner in a smaller one.
    let searched = kernel.is_smaller() || (kernel.has_open_arguments() && kernel.is_wide());
    let searched = (searched && open.apart.is_some()).then(|| kernel.search(ask));
    let exact =
        match kernel.is_smaller() || searched.as_ref().is_some_and(|(_, test)| test.is_some()) {
            true => None,
            false => exact(),
        };
    let Some(mut exact) = exact else {
        let (answer, test) = searched.unwrap_or_else(|| (undecided(open), None));
        return (Some(answer), test);
    };
    let is_settled = match exact.verdict {
        Verdict::Undecided(_) => exact.defect.is_some(),
        Verdict::RaceFree | Verdict::Uniform => !kernel.has_open_arguments(),
        _ => true,
    };
    if is_settled || open.apart.is_none() {
        if matches!(exact.verdict, Verdict::RaceFree | Verdict::Uniform) {
            limited(&mut exact, open);
        }
        return (Some(exact), None);
    }
    let (wider, test) = searched.unwrap_or_else(|| kernel.search(ask));
    match (&exact.verdict, &wider.verdict) {
        (Verdict::Undecided(_), Verdict::Undecided(_)) => (Some(exact), None),
        (Verdict::Undecided(_), _) | (_, Verdict::Racy | Verdict::Divergent) => (Some(wider), test),
        _ => {
            limited(&mut exact, open);
            (Some(exact), None)
        }
    }
}

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
            Some(_) if !parametric::solver::IS_THERE => return Err(Box::new(without_solver())),
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
            (LaunchArg::Given, Ok(form)) => given(unit.source, form),
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
                false => (undecided(of_another_model(unit)), None),
            };
            decide::Timed::new(answer, shown, start)
        });
        let mut decided = decide::lines(unit, settings, all);
        // A race in PTX is information.
        let is_ptx = unit.source.program.dialect == Dialect::Ptx;
        for line in &mut decided.results {
            line.denies_fault |= !is_ptx || line.property != RACE;
        }
        decided
    }
}

/// The properties that are decided for every launch.
const OF_LAUNCHES: [&str; 2] = ["race", "divergence"];

const RACE: verdict::Property = verdict::Property::Race;

/// The fault of a question that only one launch answers.
fn of_one_launch(property: &str) -> Diagnostic {
    let message = format!("`{property}` is decided for one launch only");
    let help = "ask `--property race` or `divergence`, or leave `--launch` out";
    Diagnostic::plain("property-of-one-launch", message).help(help)
}

fn of_another_model(unit: &Unit<'_>) -> Open {
    let own = unit.source.program.dialect.default_model();
    Open {
        why: format!("proofs for every launch rest on the model `{own}`"),
        apart: None,
    }
}

/// Whether the questions are about races and barriers alone, of kernels in TOML that have too many
/// threads for the exact engines.
pub(super) fn is_too_large(args: &CheckArgs) -> bool {
    fn of_pairs(name: &String) -> bool {
        ["race", "divergence"].contains(&name.as_str())
    }
    let asked = !args.property.is_empty() && args.property.iter().all(of_pairs);
    if !asked || !parametric::solver::IS_THERE || !args.question.models.is_empty() {
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

/// The sizes that a file gives, and its arguments, if it gives them.
fn given(test: &LitmusTest, form: &Form) -> Sizes {
    let launch = test.launch.as_ref();
    Sizes {
        any_arguments: launch.is_some_and(|l| !l.given.has_arguments),
        ..Sizes::given(form)
    }
}

/// What is wrong with `--launch` where no solver is there.
pub(super) fn without_solver() -> Diagnostic {
    Diagnostic::plain(
        "no-solver",
        "`--launch` needs Z3, and this program was built without it".to_owned(),
    )
    .help("build it with `--features z3`, or leave `--launch` out")
}
