//! Asks the checkers about one test under one model. Runs on a worker; a panic becomes an answer.

use std::cell::OnceCell;
use std::time::Instant;

use super::defect::{self, Defect};
use super::plan::{self, Ask, Question, Unit};
use super::settings::Settings;
use super::{panics, seams};
use crate::check::Session;
use crate::check::liveness::{Liveness, Setting};
use crate::report::{Line, Table};
use crate::verdict::{Answer, Definedness, Outcomes, Property, State, Verdict};

/// Why a question that ran into a panic has no answer.
const BROKEN: &str = "a defect of Fencepost";

/// What came out of one unit.
pub(super) struct Decided<R> {
    /// The results, in order of the questions.
    pub results: Vec<R>,
    /// Broken laws that showed, in order.
    pub defects: Vec<Defect>,
    /// How many of the results somebody has to look at, for the progress bar.
    pub failed: usize,
    /// How many are undecided, likewise.
    pub undecided: usize,
}

impl<R> Decided<R> {
    /// Results and broken laws.
    pub(super) fn new(results: Vec<R>, defects: Vec<Defect>) -> Decided<R> {
        Decided { results, defects, failed: 0, undecided: 0 }
    }
}

/// Asks the questions of one unit, in order.
pub(super) fn answers(unit: &Unit<'_>, settings: &Settings) -> Decided<Line> {
    let mut decided = Decided::new(Vec::new(), Vec::new());
    let mut session = None;
    let setting = OnceCell::new();
    let mut liveness = None;
    // Naming axioms costs further questions: only where somebody wants to know.
    let explain = settings.explain || unit.questions.iter().any(|q| q.axiom.is_some());
    for question in &unit.questions {
        let start = Instant::now();
        let asked = panics::catch(|| {
            if let Some(reason) = &unit.refused {
                let wanted = question.property == Property::Reachability || question.expected.is_some();
                return wanted.then(|| undecided(settings, reason.clone()));
            }
            if let Ask::Liveness(progress) = question.ask {
                let setting = setting.get_or_init(|| Setting::new(&unit.test, &unit.model.model));
                let new = || Liveness::new(setting, settings.engine, settings.limits, &settings.set);
                return Some(liveness.get_or_insert_with(new).ask(progress));
            }
            let new = || {
                let session = open(unit, settings, explain);
                if settings.explain { session.with_explanations() } else { session }
            };
            ask(session.get_or_insert_with(new), question, settings)
        });
        let answer = match asked {
            Ok(Some(answer)) => answer,
            Ok(None) => continue,
            Err(message) => {
                abandon(&mut session);
                abandon(&mut liveness);
                broken(settings, message)
            }
        };
        let ms = settings.timings.then(|| milliseconds(start));
        if let Some(text) = &answer.defect {
            let about = question.property.to_string();
            decided.defects.push(defect::record(&unit.test, &unit.model, &about, text, settings));
        }
        decided.results.push(Line {
            path: unit.path.to_owned(),
            test: unit.test.name.clone(),
            site: plan::site(&unit.test, &unit.model.label),
            model: unit.model.label.clone(),
            property: question.property.clone(),
            quantifier: question.quantifier,
            proposition: question.proposition.clone(),
            expected: question.expected,
            mapping: unit.mapping,
            notes: notes(question, &answer),
            answer,
            ms,
        });
    }
    abandon(&mut session);
    abandon(&mut liveness);
    decided.failed = decided.results.iter().filter(|l| l.met() == Some(false)).count() + decided.defects.len();
    decided.undecided = decided.results.iter().filter(|l| l.answer.verdict.reason().is_some()).count();
    decided
}

/// What to find out about outcomes besides which there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Also {
    /// Whether the program is defined.
    pub definedness: bool,
    /// The race of each racy outcome, and what would make the program race-free.
    pub races: bool,
}

/// Lists the outcomes of one unit.
pub(super) fn outcomes(unit: &Unit<'_>, settings: &Settings, also: Also) -> Decided<Table> {
    let start = Instant::now();
    let none = |reason: String, defect| Outcomes {
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
        if let (false, Some(Definedness::Undefined(fault))) = (also.races, &mut outcomes.definedness) {
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
    let outcomes = listed.unwrap_or_else(|message| none(BROKEN.into(), Some(message)));
    let ms = settings.timings.then(|| milliseconds(start));
    let defects = (outcomes.defect.iter())
        .map(|text| defect::record(&unit.test, &unit.model, "outcomes", text, settings))
        .collect();
    let table = Table {
        path: unit.path.to_owned(),
        test: unit.test.name.clone(),
        model: unit.model.label.clone(),
        mapping: unit.mapping,
        outcomes,
        ms,
    };
    Decided::new(vec![table], defects)
}

/// The proposition that holds in one final state.
pub(super) fn as_prop(state: &State) -> String {
    if state.is_empty() {
        return "true".into();
    }
    state.iter().map(|(name, value)| format!("{name} == {value}")).collect::<Vec<_>>().join(" /\\ ")
}

/// The session of a unit.
pub(super) fn open<'s>(unit: &'s Unit<'_>, settings: &Settings, explain: bool) -> Session<'s> {
    let session = Session::new(&unit.test, &unit.model.model, settings.engine, settings.limits, &settings.set);
    let session = if settings.detail { session.detailed() } else { session };
    if explain { session.explaining() } else { session }
}

/// `None` if the model has no such property and nobody expects one.
fn ask(session: &mut Session<'_>, question: &Question, settings: &Settings) -> Option<Answer> {
    match &question.ask {
        Ask::Reachability { prop, negate } => {
            let start = Instant::now();
            let mut answer = session.reachability(prop.as_ref(), *negate);
            // An answer about an outcome is worth little if the program is undefined.
            match definedness(session, settings, start) {
                Some(Ok(known)) => answer.definedness = Some(known),
                Some(Err(law)) => {
                    answer.defect.get_or_insert(law);
                }
                None => {}
            }
            Some(answer)
        }
        Ask::Race => session
            .race()
            .or_else(|| question.expected.map(|_| undecided(settings, "not in this model: data races".into()))),
        Ask::Undefined => session.undefined().or_else(|| {
            question.expected.map(|_| undecided(settings, "not in this model: undefined behaviour".into()))
        }),
        Ask::Liveness(_) => unreachable!("asked elsewhere: it needs another skeleton"),
    }
}

/// Whether the program is defined, in the time that an answer begun at `start` leaves.
fn definedness(
    session: &mut Session<'_>,
    settings: &Settings,
    start: Instant,
) -> Option<Result<Definedness, String>> {
    session.definedness(settings.limits.timeout.map(|t| t.saturating_sub(start.elapsed())))
}

fn undecided(settings: &Settings, reason: String) -> Answer {
    Answer {
        verdict: Verdict::Undecided(reason),
        engine: settings.engine_name(),
        bound: None,
        axioms: Vec::new(),
        witness: None,
        defect: None,
        fault: None,
        definedness: None,
        explanation: None,
    }
}

fn broken(settings: &Settings, message: String) -> Answer {
    Answer { defect: Some(message), ..undecided(settings, BROKEN.into()) }
}

/// Names of axioms, for a sentence.
pub(super) fn listed(names: &[String]) -> String {
    if names.is_empty() { "several axioms, each enough alone".into() } else { names.join(", ") }
}

/// Ends a session. After a panic it may be in any state, and ending it may panic again.
fn abandon<S>(session: &mut Option<S>) {
    let session = session.take();
    let _ = panics::catch(move || {
        let _ended = session;
    });
}

/// Remarks about an answer that is no failure, but not what its author had in mind.
fn notes(question: &Question, answer: &Answer) -> Vec<String> {
    match &question.axiom {
        Some(axiom) if !answer.axioms.is_empty() && !answer.axioms.contains(axiom) => {
            vec![format!(
                "the test says that this rests on {axiom}, but {} do without it",
                answer.axioms.join(", ")
            )]
        }
        _ => Vec::new(),
    }
}

/// Wall time in milliseconds, to the microsecond.
pub(super) fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_micros() as f64 / 1000.0
}
