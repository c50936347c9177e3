//! Puts questions about one test under one model to the checkers. Runs on a worker; a panic becomes
//! an answer.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use super::cache::Cache;
use super::defect::{self, Defect};
use super::every_launch::{self, EveryLaunch};
use super::plan::{self, Question, Unit};
use super::settings::Settings;
use super::{full_launches, kernels, panics, seams, steady};
use cat::model::ir::{Model, TestEffect};
use diag::nearest;
use engine::ProgressModel;
use engine::liveness::{Liveness, LivenessTask};
use engine::{Engine, Limits};
use operational::{HangSearch, RunSearch, SteadyAnswer};
use program::litmus::{Expectation, LitmusTest};
use program::options::Setting as Value;
use report::{self, AnswerLine, KnownFailure, OutcomeTable, UnmetReading};
use stop::Spent;
use verdict::{
    Answer, Definedness, EXECUTOR, Explanation, Fault, Outcomes, PARAMETRIC, Property, Reason,
    Remedy, STEADY, Unwritten, Verdict, as_prop,
};
use why::{Ask, Session};

/// The results of one unit.
pub(super) struct Decided<R> {
    /// The results, in order of the questions.
    pub results: Vec<R>,
    /// Broken laws, in order.
    pub defects: Vec<Defect>,
    /// The number of failed results, for the progress bar.
    pub failed: usize,
    /// The number of undecided results, likewise.
    pub undecided: usize,
}

impl<R> Decided<R> {
    /// The same with other results.
    pub(super) fn map<S>(self, new: impl FnMut(R) -> S) -> Decided<S> {
        let Decided {
            results,
            defects,
            failed,
            undecided,
        } = self;
        Decided {
            results: results.into_iter().map(new).collect(),
            defects,
            failed,
            undecided,
        }
    }

    /// Results and broken laws.
    pub(super) fn new(results: Vec<R>, defects: Vec<Defect>) -> Decided<R> {
        Decided {
            results,
            defects,
            failed: 0,
            undecided: 0,
        }
    }
}

/// No longer is a change looked for that makes a kernel of a source file race-free.
const REMEDY: Duration = Duration::from_secs(20);
/// The same for a program with its host: its answer names the missing call without this search.
const PROGRAM_REMEDY: Duration = Duration::from_secs(2);

/// Answers the questions of one unit, in order.
pub(super) fn answers(unit: &Unit<'_>, settings: &Settings) -> Decided<AnswerLine> {
    kept(unit, settings, None)
}

/// Answers the questions of one unit, from the cache if possible.
pub(super) fn kept(
    unit: &Unit<'_>,
    settings: &Settings,
    cache: Option<&Cache>,
) -> Decided<AnswerLine> {
    let start = Instant::now();
    // Naming axioms costs further questions, so it is done on request.
    let explain = settings.explain
        || settings.name_axioms
        || unit.questions.iter().any(|q| q.axiom.is_some());
    let cache = cache.map(|cache| (cache, cache.key(unit, settings, explain)));
    if let Some((cache, key)) = &cache
        && let Some(known) = cache.get(key, unit.questions.len())
    {
        return lines(
            unit,
            settings,
            known.into_iter().map(|answer| Timed {
                answer,
                ms: milliseconds(start),
                shown: None,
            }),
        );
    }
    let asked = ask_all(unit, settings, explain);
    let answers: Vec<Option<Answer>> = asked.answers.iter().map(|a| a.answer.clone()).collect();
    if let Some((cache, key)) = &cache
        && asked.lasting
    {
        cache.put(key, &answers);
    }
    lines(unit, settings, asked.answers.into_iter())
}

/// An answer, and how it was found.
pub(super) struct Timed {
    /// `None`: the model has no such property.
    answer: Option<Answer>,
    ms: f64,
    /// The kernel with another launch than the unit's, which shows the answer.
    shown: Option<Box<LitmusTest>>,
}

impl Timed {
    /// An answer to a question put at `start`, with the launch that shows it.
    pub(super) fn new(answer: Answer, shown: Option<LitmusTest>, start: Instant) -> Timed {
        Timed {
            answer: Some(answer),
            ms: milliseconds(start),
            shown: shown.map(Box::new),
        }
    }
}

/// The answers to the questions of a unit.
struct UnitAnswers {
    answers: Vec<Timed>,
    /// Whether they would be the same at any other time.
    lasting: bool,
}

/// The lines of answers with their times. `None`: the model has no such property, and no
/// expectation names it.
pub(super) fn lines(
    unit: &Unit<'_>,
    settings: &Settings,
    answers: impl Iterator<Item = Timed>,
) -> Decided<AnswerLine> {
    let mut decided = Decided::new(Vec::new(), Vec::new());
    let expectation = unit.source.expect.get(&unit.model.label);
    let mentions_undefined = expectation.is_some_and(|e| e.race.is_some() || e.undefined.is_some());
    for (question, timed) in unit.questions.iter().zip(answers) {
        let Timed { answer, ms, shown } = timed;
        let Some(answer) = answer else { continue };
        if let Some(text) = &answer.defect {
            let about = question.property().to_string();
            decided.defects.push(defect::record(
                &unit.test,
                &unit.model,
                &about,
                text,
                settings,
            ));
        }
        let of_condition = expectation.filter(|_| question.property() == Property::Reachability);
        let (expected, reading) =
            readings(unit, settings, question.expected, &answer, of_condition);
        decided.results.push(AnswerLine {
            path: unit.path.to_owned(),
            test: unit.test.name.clone(),
            site: plan::site(&unit.test, &unit.model.label),
            model: unit.model.request.clone(),
            property: question.property(),
            quantifier: question.quantifier,
            proposition: question.proposition.clone(),
            expected,
            reading,
            mapping: unit.mapping.map(|m| m.name()),
            settings: told_settings(unit, settings, &question.property()),
            values: Vec::new(),
            known: None,
            mentions_undefined,
            denies_undefined: settings.deny_undefined,
            denies_fault: kernels::denies(unit, question, settings),
            kernel: kernels::told(unit, shown.as_deref(), question, &answer),
            notes: notes(unit, expectation, question, &answer, &decided.results),
            answer,
            ms: settings.timings.then_some(ms),
            part: None,
        });
    }
    if let Some(expectation) = expectation {
        know(&mut decided.results, expectation);
    }
    decided.failed = decided
        .results
        .iter()
        .filter(|l| l.status().fails())
        .count()
        + decided.defects.len();
    decided.undecided = decided
        .results
        .iter()
        .filter(|l| l.answer.verdict.reason().is_some())
        .count();
    decided
}

/// The expectation under the chosen readings; and another reading whose answer misses its
/// expectation.
fn readings(
    unit: &Unit<'_>,
    settings: &Settings,
    expected: Option<&'static str>,
    answer: &Answer,
    of_condition: Option<&Expectation>,
) -> (Option<&'static str>, Option<UnmetReading>) {
    let said = of_condition.map_or(&[][..], |expectation| &expectation.readings);
    let word = |setting: Value| {
        said.iter()
            .find(|(of, _)| *of == setting)
            .map(|(_, word)| word.word())
    };
    let chosen = |option: usize| {
        unit.test
            .options
            .iter()
            .chain(&settings.set)
            .rev()
            .find(|s| s.option == option)
            .copied()
    };
    let expected = said
        .iter()
        .find_map(|(of, _)| word(chosen(of.option)?))
        .or(expected);
    let mut open = said
        .iter()
        .map(|(of, _)| *of)
        .filter(|of| chosen(of.option).is_none());
    let unmet = open.find_map(|of| {
        let (name, _) = of.words();
        let depends = answer.dependences.iter().find(|d| d.option == name);
        of.row()
            .values
            .iter()
            .enumerate()
            .find_map(|(value, text)| {
                let other = depends.and_then(|d| d.verdicts.iter().find(|v| v.0 == *text));
                let verdict = other.map_or(answer.verdict.word(), |v| v.1.as_str());
                let expected = word(Value { value, ..of }).or(expected)?;
                (report::is_met(Some(expected), verdict) != Some(true)).then(|| UnmetReading {
                    under: format!("{name}={text}"),
                    expected: expected.to_owned(),
                    verdict: verdict.to_owned(),
                })
            })
    });
    let own = report::is_met(expected, answer.verdict.word());
    (expected, unmet.filter(|_| own == Some(true)))
}

/// Marks the known failures among the expectations of a model. If only several together are known
/// to fail, the first one says so once all of them are met.
fn know(lines: &mut [AnswerLine], expectation: &Expectation) {
    let Some(reason) = &expectation.known else {
        return;
    };
    let met = lines.iter().filter(|line| line.met() == Some(true)).count();
    let passes = met == expectation.answers();
    for line in lines
        .iter_mut()
        .filter(|line| line.met() == Some(passes))
        .take(if passes { 1 } else { usize::MAX })
    {
        line.known = Some(KnownFailure {
            reason: reason.clone(),
            passes,
        });
    }
}

/// Puts the questions of a unit to the checkers.
fn ask_all(unit: &Unit<'_>, settings: &Settings, explain: bool) -> UnitAnswers {
    let setting = OnceCell::new();
    let mut checkers = Checkers {
        models: ModelChecker {
            unit,
            settings,
            explain,
            session: None,
            run: OnceCell::new(),
        },
        every_launch: OnceCell::new(),
        setting: &setting,
        liveness: None,
    };
    let (mut answers, mut lasting) = (Vec::new(), true);
    for question in &unit.questions {
        let (timed, is_lasting) = checkers.timed(question);
        lasting &= is_lasting;
        answers.push(timed);
    }
    checkers.abandon();
    UnitAnswers { answers, lasting }
}

/// The checkers of a unit. Each is opened when a question first needs it.
struct Checkers<'u> {
    models: ModelChecker<'u>,
    every_launch: OnceCell<Option<EveryLaunch<'u>>>,
    setting: &'u OnceCell<LivenessTask>,
    liveness: Option<Liveness<'u>>,
}

/// The checker of the unit's own launch under its model.
struct ModelChecker<'u> {
    unit: &'u Unit<'u>,
    settings: &'u Settings,
    explain: bool,
    session: Option<Session<'u>>,
    /// The run that may stand for all executions.
    run: OnceCell<Option<SteadyAnswer>>,
}

impl<'u> ModelChecker<'u> {
    fn session(&mut self) -> &mut Session<'u> {
        self.session.get_or_insert_with(|| {
            let session = open(self.unit, self.settings, self.explain);
            if self.settings.explain {
                session.with_explanations()
            } else {
                session
            }
        })
    }

    /// Answers in the time that is left to a question from `start` on.
    ///
    /// A few runs of the executor come before the engines if the launch is wide. If they show a
    /// fault, the engines have less time to list all races, and may leave the answer to the runs.
    fn answer(&mut self, question: &Question, start: Instant) -> Option<Answer> {
        if let Some(answer) = self.of_one_run(&question.ask, start) {
            return Some(answer);
        }
        let settings = self.settings;
        let limit = time_of(&question.ask, settings);
        let seen = first_runs(self.unit, &question.ask, settings, left(limit, start));
        let session = self.session();
        let time = left(limit, start);
        session.limit(match (&seen, time, limit) {
            (Some(_), Some(time), Some(limit)) => Some(time.min(limit / FIRST_SHARE)),
            (Some(_), None, _) => Some(AFTER_A_FAULT),
            _ => time,
        });
        let exact = ask(session, question, settings);
        let Some(seen) = seen else { return exact };
        let Some(exact) = exact else {
            return Some(seen);
        };
        match &exact.verdict {
            Verdict::Undecided(_) => Some(seen),
            verdict if *verdict == seen.verdict => Some(exact),
            verdict => {
                let law = format!(
                    "a run is {}, the engine says {}",
                    seen.verdict.word(),
                    verdict.word()
                );
                Some(exact.defective(law))
            }
        }
    }
}

impl ModelChecker<'_> {
    /// The answer of one run of a wide launch, if it stands for all executions and has no fault.
    fn of_one_run(&self, ask: &Ask, start: Instant) -> Option<Answer> {
        let (unit, settings) = (self.unit, self.settings);
        let is_wide = unit.test.program.threads.len() >= WIDE;
        if !is_wide || settings.engine != Engine::Auto {
            return None;
        }
        let run = self.run.get_or_init(|| {
            let left = left(settings.limits.timeout, start);
            let time = left.map_or(ONE_RUN, |left| ONE_RUN.min(left / 4));
            steady::one_run(unit, settings, time)
        });
        steady::faultless(run.as_ref()?, ask, unit.source.launch.is_none())
    }
}

impl Checkers<'_> {
    /// Answers a question within its share of memory and time. Also returns whether the answer
    /// would be the same at any other time.
    fn timed(&mut self, question: &Question) -> (Timed, bool) {
        let ModelChecker { unit, settings, .. } = self.models;
        let start = Instant::now();
        let _share = settings.share();
        let mut shown = None;
        let caught = panics::catch(|| self.answer(question, start, &mut shown));
        let mut answer = match caught {
            // Work that was interrupted may have been cut short anywhere.
            Ok(_) if stop::requested().is_some() => Some(undecided(settings, Reason::Interrupted)),
            // A result computed without stack for further calls means nothing.
            _ if stop::spent() == Some(Spent::Stack) => Some(undecided(settings, Reason::Stack)),
            Ok(answer) => answer.map(|answer| spent(answer, settings)),
            Err(message) => {
                self.abandon();
                Some(broken(settings, message))
            }
        };
        let in_share = stop::spent().is_none();
        if !in_share {
            // The next question begins anew, with all of its share.
            self.abandon();
        }
        if let Some(answer) = &mut answer
            && in_share
            && shown.is_none()
            && answer.engine != PARAMETRIC
        {
            let rest = left(settings.limits.timeout, start);
            try_runs(unit, &question.ask, answer, settings, rest);
            explain_unmet(unit, question, answer, settings, start);
        }
        // Close to the limit, some step may have been left out for want of time.
        let in_time = settings
            .limits
            .timeout
            .is_none_or(|limit| start.elapsed() < limit.mul_f64(0.9));
        let lasting = in_time
            && in_share
            && stop::spent().is_none()
            && stop::requested().is_none()
            && shown.is_none()
            && answer.as_ref().is_none_or(is_settled);
        let timed = Timed {
            answer,
            ms: milliseconds(start),
            shown,
        };
        (timed, lasting)
    }

    /// Answers a question. `shown` becomes another launch, if that shows the answer.
    fn answer(
        &mut self,
        question: &Question,
        start: Instant,
        shown: &mut Option<Box<LitmusTest>>,
    ) -> Option<Answer> {
        if stop::requested().is_some() {
            return None;
        }
        let ModelChecker { unit, settings, .. } = self.models;
        if let Some(reason) = &unit.refused {
            let wanted =
                question.property() == Property::Reachability || question.expected.is_some();
            return wanted.then(|| undecided(settings, reason.clone()));
        }
        if let Some(answer) = steady::answer(unit, &question.ask, settings) {
            return Some(answer);
        }
        if let Ask::Liveness(progress) = question.ask {
            return Some(self.liveness(question, progress, start));
        }
        let kernel = match question.ask {
            Ask::Race | Ask::Divergence => self
                .every_launch
                .get_or_init(|| EveryLaunch::of(unit, settings)),
            _ => &None,
        };
        let models = &mut self.models;
        let answer = match kernel {
            Some(kernel) => {
                let (answer, test) = every_launch::answer(kernel, question, start, || {
                    models.answer(question, start)
                });
                *shown = test.map(Box::new);
                answer
            }
            None => models.answer(question, start).map(|answer| {
                let answer = every_launch::in_place_of(unit, settings, question, start, answer);
                let (answer, test) = full_launches::joined(unit, settings, question, answer);
                *shown = test.map(Box::new);
                answer
            }),
        };
        let Some(session) = &mut models.session else {
            return answer;
        };
        session.limit(left(settings.limits.timeout, start));
        answer.map(|mut answer| {
            // Other readings of a program that is too large for the engines are too large, too.
            if ![EXECUTOR, STEADY].contains(&answer.engine) {
                answer.dependences =
                    session.dependences(&answer.verdict, |other| other.decide(&question.ask));
            }
            answer.vacuous =
                matches!(question.ask, Ask::Reachability { .. }) && session.is_vacuous(&answer);
            answer
        })
    }

    /// Answers a question about liveness.
    fn liveness(&mut self, question: &Question, progress: ProgressModel, start: Instant) -> Answer {
        if let Some(answer) = self.models.of_one_run(&question.ask, start) {
            return answer;
        }
        let ModelChecker { unit, settings, .. } = self.models;
        let setting = self
            .setting
            .get_or_init(|| LivenessTask::new(&unit.test, &unit.model.model));
        let limits = Limits {
            timeout: left(time_of(&question.ask, settings), start),
            ..settings.limits
        };
        let answer = self
            .liveness
            .get_or_insert_with(|| Liveness::new(setting, settings.engine, limits, &settings.set))
            .ask(progress);
        let session = self.models.session();
        // Whether a kernel of a source file is defined is another question.
        match unit.source.launch {
            Some(_) => answer,
            None => with_definedness(answer, session, settings, start),
        }
    }

    /// Drops the checkers, each with its own net: their state may be broken.
    fn abandon(&mut self) {
        abandon(&mut self.models.session);
        abandon(&mut self.liveness);
    }
}

/// An answer whose question may have used up its memory: engines give up as if time were up.
fn spent(answer: Answer, settings: &Settings) -> Answer {
    match (stop::spent(), &answer.verdict) {
        (Some(Spent::Stack), _) => undecided(settings, Reason::Stack),
        (Some(Spent::Memory), Verdict::Undecided(Reason::Time)) => answer.undecided(Reason::Memory),
        _ => answer,
    }
}

/// Whether everything about an answer was decided.
fn is_settled(answer: &Answer) -> bool {
    fn open(fault: &Fault) -> bool {
        matches!(fault.remedy, Some(Remedy::Undecided(_)))
    }
    let definedness = match &answer.definedness {
        Some(Definedness::Undecided(_)) => false,
        Some(Definedness::Undefined(fault)) => !open(fault),
        Some(Definedness::Defined) | None => true,
    };
    fn needs(e: &Explanation) -> bool {
        e.needs
            .as_ref()
            .is_none_or(|needs| needs.given_up.is_none())
    }
    let explained = answer
        .explanation
        .as_deref()
        .is_none_or(|e| e.given_up.is_none() && needs(e));
    let fault = answer.fault.as_deref().is_none_or(|fault| !open(fault));
    answer.verdict.reason().is_none()
        && answer.defect.is_none()
        && definedness
        && fault
        && explained
}

/// Explains an answer that misses the test's expectation; for a race, names a repair.
fn explain_unmet(
    unit: &Unit<'_>,
    question: &Question,
    answer: &mut Answer,
    settings: &Settings,
    start: Instant,
) {
    let met = report::is_met(question.expected, answer.verdict.word());
    // A change of compiled code is none of the file.
    let launch = unit.source.launch.as_ref().filter(|l| l.compiler.is_none());
    let fault = launch.is_some() && answer.verdict == Verdict::Racy;
    // Who asked of a kernel asked for no proof, and waits.
    let most = match unit.source.program.host {
        Some(_) => PROGRAM_REMEDY,
        None => REMEDY,
    };
    let limits = match fault {
        true => Limits {
            timeout: Some(settings.limits.timeout.map_or(most, |limit| {
                let left = limit.saturating_sub(start.elapsed());
                left.max(limit / 8).min(most)
            })),
            ..settings.limits
        },
        false => settings.limits,
    };
    let settings = &Settings {
        limits,
        ..settings.clone()
    };
    if !fault && (!settings.explain_unmet || met != Some(false)) {
        return;
    }
    let asked = panics::catch(|| match (&question.ask, &mut answer.fault) {
        (Ask::Reachability { prop, negate }, _) if answer.explanation.is_none() => {
            let again = open(unit, settings, true)
                .with_explanations()
                .reachability(prop.as_ref(), *negate);
            if !is_cut_short() {
                (answer.axioms, answer.explanation) = (again.axioms, again.explanation);
            }
        }
        (Ask::Race | Ask::Undefined, Some(fault)) if fault.race && fault.remedy.is_none() => {
            let mut session = open(unit, settings, true);
            // The program so changed has no race, whichever race led to it.
            let remedy = match session.definedness(settings.limits.timeout) {
                Some(Ok(Definedness::Undefined(again))) if again.race => again.remedy,
                Some(Ok(Definedness::Undecided(_)) | Err(_)) => None,
                // In models whose races are not undefined behaviour.
                _ => session.remedy(fault),
            };
            if !is_cut_short() {
                fault.remedy = remedy;
            }
        }
        _ => {}
    });
    if let Err(message) = asked
        && !is_cut_short()
    {
        answer.defect = Some(message);
    }
}

/// Whether the current work may have ended anywhere: then it explains nothing.
fn is_cut_short() -> bool {
    stop::requested().is_some() || stop::spent() == Some(Spent::Stack)
}

/// The time of the engines for a question. Runs of the executor keep an eighth of the limit, unless
/// the question is about outcomes.
fn time_of(ask: &Ask, settings: &Settings) -> Option<Duration> {
    let limit = settings.limits.timeout?;
    Some(match ask {
        Ask::Race | Ask::Undefined | Ask::Misuse | Ask::Liveness(_) => limit - limit / 8,
        Ask::Reachability { .. } | Ask::Divergence | Ask::Lifetime => limit,
    })
}

/// What is left of a time from `start` on.
fn left(time: Option<Duration>, start: Instant) -> Option<Duration> {
    time.map(|time| time.saturating_sub(start.elapsed()))
}

/// Runs may still show a race, undefined behaviour or a hang of a program that is too large for the
/// engines, takes them too long, or has what they do not support.
fn try_runs(
    unit: &Unit<'_>,
    ask: &Ask,
    answer: &mut Answer,
    settings: &Settings,
    left: Option<Duration>,
) {
    let Some(reason) = answer.verdict.reason() else {
        return;
    };
    let is_large = reason.is_size() || *reason == Reason::Time;
    let is_beyond = matches!(
        reason,
        Reason::Unsupported(_) | Reason::NotInModel(_) | Reason::Apart { .. }
    );
    if !(is_large || is_beyond) || stop::requested().is_some() {
        return;
    }
    let looked = panics::catch(|| match ask {
        Ask::Race => Some(faulty_run(unit, answer, settings, left, TestEffect::Race)),
        Ask::Undefined | Ask::Misuse => Some(faulty_run(
            unit,
            answer,
            settings,
            left,
            TestEffect::Undefined,
        )),
        Ask::Liveness(_) => Some(hanging_run(unit, answer, left)),
        Ask::Reachability { .. } | Ask::Divergence | Ask::Lifetime => None,
    });
    let more = format!("fencepost run {} --runs 1000", unit.path);
    let smaller = if is_large {
        "try a smaller launch (`grid`, `block`, `--launch`) or a smaller `--bound`; "
    } else {
        ""
    };
    let way_on = format!("{smaller}`{more}` searches more runs");
    match looked {
        Err(message) => answer.defect = Some(message),
        Ok(Some(Some(remark))) => answer.remarks.extend([remark, way_on]),
        Ok(Some(None) | None) => {}
    }
}

/// The reason why the engines gave up, in words.
fn given_up(answer: &Answer) -> String {
    let reason = answer.verdict.reason();
    reason.map(Reason::kind).unwrap_or_default()
}

/// A number of runs, in words.
fn runs(count: u64) -> String {
    if count == 1 {
        "1 run".to_owned()
    } else {
        format!("{count} runs")
    }
}

/// The number of threads from which on a few runs come before the engines. A run of a wide launch
/// takes less time than the facts of its program, and most races are in any run.
const WIDE: usize = 32;
/// The part of a question's time for the first runs, and for the engines after a fault.
const FIRST_SHARE: u32 = 16;
/// The longest time for one run that stands for all executions.
const ONE_RUN: Duration = Duration::from_secs(10);
/// The longest time for the first runs.
const FIRST_RUNS: Duration = Duration::from_secs(2);
/// The time for the engines after a fault, without a limit.
const AFTER_A_FAULT: Duration = Duration::from_secs(4);

/// The answer of the first few runs of a wide launch, if one of them shows a fault.
fn first_runs(
    unit: &Unit<'_>,
    ask: &Ask,
    settings: &Settings,
    left: Option<Duration>,
) -> Option<Answer> {
    let (effect, verdict) = match ask {
        Ask::Race => (TestEffect::Race, Verdict::Racy),
        Ask::Undefined => (TestEffect::Undefined, Verdict::Undefined),
        _ => return None,
    };
    let is_wide = unit.test.program.threads.len() >= WIDE;
    if !is_wide || settings.engine != Engine::Auto {
        return None;
    }
    let time = left.map_or(FIRST_RUNS, |left| FIRST_RUNS.min(left / FIRST_SHARE));
    let (test, model) = (&unit.test, &unit.model.model);
    match operational::look_once(test, model, &settings.set, time, effect) {
        RunSearch::Shown(fault) => Some(Answer {
            fault: Some(fault),
            ..Answer::new(verdict, EXECUTOR)
        }),
        _ => None,
    }
}

/// Answers by a run with a race or undefined behaviour; returns a remark if no run answers.
fn faulty_run(
    unit: &Unit<'_>,
    answer: &mut Answer,
    settings: &Settings,
    left: Option<Duration>,
    effect: TestEffect,
) -> Option<String> {
    let (what, none, verdict) = match effect {
        TestEffect::Race => ("a race", "no race", Verdict::Racy),
        _ => (
            "undefined behaviour",
            "no undefined behaviour",
            Verdict::Undefined,
        ),
    };
    match operational::look(&unit.test, &unit.model.model, &settings.set, left, effect) {
        RunSearch::Shown(fault) => {
            let which = match effect {
                TestEffect::Race => "has this race, and the model confirms it",
                _ => "has undefined behaviour, and the model confirms it",
            };
            let why = given_up(answer);
            let remark = format!("the engines gave up ({why}); a run of the executor {which}");
            (answer.verdict, answer.engine) = (verdict, EXECUTOR);
            answer.fault = Some(fault);
            answer.remarks.push(remark);
            None
        }
        RunSearch::Seen { what: seen, but } => {
            Some(format!("a run of the executor has {what} {seen}; {but}"))
        }
        RunSearch::Not(count) => Some(format!(
            "the executor found {none} in {}, which proves nothing",
            runs(count)
        )),
        RunSearch::None(why) => Some(format!("the executor could not help: {why}")),
    }
}

/// Answers by a run that hangs; returns a remark if no run does.
fn hanging_run(unit: &Unit<'_>, answer: &mut Answer, left: Option<Duration>) -> Option<String> {
    match operational::look_for_hang(&unit.test, left) {
        HangSearch::Shown(lines) => {
            let why = given_up(answer);
            let remark = format!(
                "the engines gave up ({why}); a run of the executor hangs: {}",
                lines.join("; ")
            );
            (answer.verdict, answer.engine) = (Verdict::Hangs, EXECUTOR);
            answer.remarks.push(remark);
            None
        }
        HangSearch::Not(count) => Some(format!(
            "the executor found no hang in {}, which proves nothing",
            runs(count)
        )),
        HangSearch::None(why) => Some(format!("the executor could not help: {why}")),
    }
}

/// Further questions about a list of outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Also {
    /// Whether the program is defined.
    pub definedness: bool,
    /// The race of each racy outcome, and a repair.
    pub races: bool,
}

/// Lists the outcomes of one unit.
pub(super) fn outcomes(unit: &Unit<'_>, settings: &Settings, also: Also) -> Decided<OutcomeTable> {
    let start = Instant::now();
    let none = |reason: Reason, defect| Outcomes {
        complete: false,
        reason: Some(reason),
        outcomes: Vec::new(),
        engine: settings.engine_name(),
        bound: None,
        defect,
        definedness: None,
    };
    let listed = panics::catch(|| {
        if let Some(reason) = &unit.refused {
            return none(reason.clone(), None);
        }
        let mut session = open(unit, settings, also.races);
        let mut outcomes = session.outcomes();
        if also.definedness {
            match definedness(&mut session, settings, start) {
                Some(Ok(known)) => outcomes.definedness = Some(known),
                Some(Err(law)) => {
                    outcomes.defect.get_or_insert(law);
                }
                None => {}
            }
        }
        if let (false, Some(Definedness::Undefined(fault))) =
            (also.races, &mut outcomes.definedness)
        {
            fault.execution = None;
        }
        if also.races {
            for outcome in outcomes.outcomes.iter_mut().filter(|o| o.racy) {
                let prop = seams::parse_prop(&unit.test, &as_prop(&outcome.state)).ok();
                outcome.race = prop.and_then(|prop| session.race_with(&prop));
            }
        }
        outcomes
    });
    let outcomes = match (listed, stop::spent()) {
        (_, Some(Spent::Stack)) => none(Reason::Stack, None),
        (Ok(outcomes), Some(Spent::Memory)) if outcomes.reason == Some(Reason::Time) => Outcomes {
            reason: Some(Reason::Memory),
            ..outcomes
        },
        (Ok(outcomes), _) => outcomes,
        (Err(message), _) => none(Reason::Broken, Some(message)),
    };
    let ms = settings.timings.then(|| milliseconds(start));
    let defects = (outcomes.defect.iter())
        .map(|text| defect::record(&unit.test, &unit.model, "outcomes", text, settings))
        .collect();
    let table = OutcomeTable {
        path: unit.path.to_owned(),
        test: unit.test.name.clone(),
        model: unit.model.request.clone(),
        mapping: unit.mapping.map(|m| m.name()),
        outcomes,
        ms,
    };
    Decided::new(vec![table], defects)
}

/// The session of a unit.
pub(super) fn open<'s>(unit: &'s Unit<'_>, settings: &Settings, explain: bool) -> Session<'s> {
    let session = Session::new(
        &unit.test,
        &unit.model.model,
        settings.engine,
        settings.limits,
        &settings.set,
    );
    let session = match unit.mapping {
        Some(mapping) => session.via(unit.source, mapping),
        None => session,
    };
    let session = if settings.detail {
        session.detailed()
    } else {
        session
    }
    .with_all_races();
    if explain {
        session.explaining()
    } else {
        session
    }
}

/// `None` if the model has no such property and no expectation names it.
fn ask(session: &mut Session<'_>, question: &Question, settings: &Settings) -> Option<Answer> {
    let start = Instant::now();
    let answer = session.decide(&question.ask);
    match &question.ask {
        Ask::Reachability { .. } => {
            answer.map(|answer| with_definedness(answer, session, settings, start))
        }
        Ask::Race => answer.or_else(|| {
            question
                .expected
                .map(|_| undecided(settings, Reason::NotInModel("data races".into())))
        }),
        _ => answer.or_else(|| {
            question.expected.map(|_| {
                session.never_undefined().unwrap_or_else(|| {
                    undecided(settings, Reason::NotInModel("undefined behaviour".into()))
                })
            })
        }),
    }
}

/// Whether the program is defined, in the time that remains to an answer begun at `start`.
fn definedness(
    session: &mut Session<'_>,
    settings: &Settings,
    start: Instant,
) -> Option<Result<Definedness, String>> {
    session.definedness(
        settings
            .limits
            .timeout
            .map(|t| t.saturating_sub(start.elapsed())),
    )
}

/// An answer about an outcome, or about the end, is worth little if the program is undefined.
fn with_definedness(
    mut answer: Answer,
    session: &mut Session<'_>,
    settings: &Settings,
    start: Instant,
) -> Answer {
    match definedness(session, settings, start) {
        Some(Ok(known)) => answer.definedness = Some(known),
        Some(Err(law)) => {
            answer.defect.get_or_insert(law);
        }
        None => {}
    }
    answer
}

fn undecided(settings: &Settings, reason: Reason) -> Answer {
    Answer::new(Verdict::Undecided(reason), settings.engine_name())
}

fn broken(settings: &Settings, message: String) -> Answer {
    Answer {
        defect: Some(message),
        ..undecided(settings, Reason::Broken)
    }
}

/// Ends a session. After a panic it may be in any state, and ending it may panic again.
fn abandon<S>(session: &mut Option<S>) {
    let session = session.take();
    let _ = panics::catch(move || {
        let _ended = session;
    });
}

/// The number of lines with reads of unwritten memory that are listed.
const MOST_READS: usize = 8;

/// Remarks about reads of unwritten memory, one for each line of the code.
fn unwritten(reads: &[Unwritten]) -> Vec<String> {
    let mut told: Vec<(&Unwritten, usize)> = Vec::new();
    for read in reads {
        match told
            .iter_mut()
            .find(|(one, _)| (&one.line, &one.text) == (&read.line, &read.text))
        {
            Some((one, others)) => *others += usize::from(one.thread != read.thread),
            None => told.push((read, 0)),
        }
    }
    let said = told
        .into_iter()
        .take(MOST_READS)
        .map(|(read, others)| match others {
            0 => read.said(),
            1 => format!("{}; so can another thread", read.said()),
            n => format!("{}; so can {n} other threads", read.said()),
        });
    said.collect()
}

/// The options that were set and that an answer has to name: it rests on more than the text of the
/// model.
fn told_settings(
    unit: &Unit<'_>,
    settings: &Settings,
    property: &Property,
) -> Vec<(&'static str, &'static str)> {
    let set = settings
        .set
        .iter()
        .chain(&unit.test.options)
        .filter(|set| set.row().told);
    let mut told: Vec<(&str, &str)> = Vec::new();
    for setting in set.filter(|_| *property == Property::Race) {
        let (name, value) = setting.words();
        // The command line goes before the test.
        let first = settings
            .set
            .iter()
            .chain(&unit.test.options)
            .find(|s| s.option == setting.option);
        let last = settings.set.iter().rfind(|s| s.option == setting.option);
        if last.or(first) == Some(setting) && setting.is_on() && !told.contains(&(name, value)) {
            told.push((name, value));
        }
    }
    told
}

/// Remarks about an answer that is no failure, but may surprise the author.
fn notes(
    unit: &Unit<'_>,
    expectation: Option<&Expectation>,
    question: &Question,
    answer: &Answer,
    earlier: &[AnswerLine],
) -> Vec<String> {
    let about_axiom = question
        .axiom
        .as_ref()
        .and_then(|axiom| note_on_axiom(&unit.model.model, axiom, answer));
    // If a test states how its threads end, or the axiom that excludes it, its author knows.
    let vacuous = answer.vacuous
        && question.axiom.is_none()
        && expectation.is_none_or(|e| e.liveness.is_empty());
    let about_end = vacuous.then(|| match unit.test.filter {
        Some(_) => {
            "no execution that ends satisfies the filter, so every outcome is forbidden".to_owned()
        }
        None => "no execution runs to its end, so every outcome is forbidden: `--property \
            liveness` shows the waiting threads"
            .to_owned(),
    });
    // If the answer is undecided for one of them, the reason says so.
    let told = answer.verdict.reason().is_some();
    let reads = kernels::mistaken_reads(unit, earlier, answer);
    let of_memory = if told { Vec::new() } else { unwritten(&reads) };
    about_axiom
        .into_iter()
        .chain(about_end)
        .chain(of_memory)
        .chain(answer.remarks.iter().cloned())
        .collect()
}

fn note_on_axiom(model: &Model, axiom: &String, answer: &Answer) -> Option<String> {
    let names: Vec<&str> = model.axioms.iter().map(|a| a.name.as_str()).collect();
    if !names.contains(&axiom.as_str()) {
        let hint = nearest(axiom, names)
            .map_or_else(String::new, |near| format!("; did you mean {near}?"));
        return Some(format!(
            "the test names the axiom {axiom}, and this model has no such axiom{hint}"
        ));
    }
    if answer.axioms.is_empty() || answer.axioms.contains(axiom) {
        return None;
    }
    let does = if answer.axioms.len() == 1 {
        "does"
    } else {
        "do"
    };
    Some(format!(
        "the test says that {axiom} forbids this, but {} {does} without it",
        answer.axioms.join(", ")
    ))
}

/// Wall time in milliseconds, to the microsecond.
pub(super) fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_micros() as f64 / 1000.0
}
