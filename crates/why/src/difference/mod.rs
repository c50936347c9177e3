//! Why two models differ on a test, and whether a mapping keeps what its source model promises.
//!
//! | File | Content |
//! |---|---|
//! | this | how two models compare, in one sentence |
//! | `rule` | the rule that makes the difference, found by changing the program |
//!
//! # The words
//! - A mapping is *respected* if PTX allows no outcome of the mapped program that the source model
//!   forbids. An undefined source program promises nothing.
//! - A *known gap* is one that the mapping declares ([`Gap`]), with a way to recognise it. Every
//!   other outcome that PTX alone allows is a violation.

mod rule;

use cat::model::ir::Model;
use engine::{Engine, Limits};
use front::litmus;
use front::mapping::{Gap, GapTest, Mapping};
use program::litmus::LitmusTest;
use program::options::Setting;
use verdict::{
    Answer, Definedness, Fault, Finding, InstrPlace, Outcomes, Property, Relation, State, Verdict,
    as_prop,
};

use self::rule::{Cause, Difference};
use crate::ask::Ask;
use crate::known_gap::reduced;
use crate::session::Session;

/// The number of outcomes compared with the known gaps; beyond it, one outcome decides.
const EXPLAINED: usize = 8;

/// A model, and its results.
pub struct Side<'a> {
    /// The model's name.
    pub label: &'a str,
    /// The model.
    pub model: &'a Model,
    /// The mapping through which it judges the test.
    pub mapping: Option<&'static Mapping>,
    /// The test as written.
    pub source: &'a LitmusTest,
    /// The test that the mapping made.
    pub test: &'a LitmusTest,
    /// The question about the test's condition.
    pub condition: Ask,
    /// The answer about the condition, then about races and undefined behaviour if the model knows
    /// them.
    pub answers: Vec<(&'a Property, &'a Answer)>,
    /// All outcomes.
    pub outcomes: &'a Outcomes,
}

impl Side<'_> {
    /// Whether the condition can hold.
    fn reachability(&self) -> Option<&Verdict> {
        self.answers.first().map(|(_, answer)| &answer.verdict)
    }

    fn verdict(&self, property: Property) -> Option<&Verdict> {
        self.answers
            .iter()
            .find(|a| *a.0 == property)
            .map(|a| &a.1.verdict)
    }

    /// The fault that makes the program undefined.
    fn undefined(&self) -> Option<&Fault> {
        match &self.answers.first()?.1.definedness {
            Some(Definedness::Undefined(fault)) => Some(fault),
            _ => None,
        }
    }

    /// The fault that makes it undefined, or the race.
    fn fault(&self) -> Option<&Fault> {
        self.undefined().or_else(|| {
            self.answers
                .iter()
                .find_map(|(_, answer)| answer.fault.as_deref())
        })
    }
}

/// How to decide changed programs.
pub struct Means {
    /// The engine.
    pub engine: Engine,
    /// The limits.
    pub limits: Limits,
    /// Options of the model.
    pub set: Vec<Setting>,
}

impl Means {
    fn session<'a>(&self, test: &'a LitmusTest, model: &'a Model) -> Session<'a> {
        Session::new(test, model, self.engine, self.limits, &self.set)
    }
}

/// An outcome that PTX allows and the source model forbids: in words, and as a question.
type Broken = (String, Ask);

/// A result before the models' names are put in.
struct UnnamedFinding {
    relation: Relation,
    rule: Option<String>,
    by: Option<String>,
    places: Vec<InstrPlace>,
    why: String,
}

impl UnnamedFinding {
    fn plain(relation: Relation, why: String) -> UnnamedFinding {
        UnnamedFinding {
            relation,
            rule: None,
            by: None,
            places: Vec::new(),
            why,
        }
    }

    /// With the rule, if there is one.
    fn with(self, cause: Option<Cause>) -> UnnamedFinding {
        let Some(Cause { rule, places, seen }) = cause else {
            return self;
        };
        let why = match places.is_empty() {
            true => format!("{}; {rule}: {seen}", self.why),
            false => format!(
                "{}; {rule} at {}: {seen}",
                self.why,
                listed_places(&places, &self.why)
            ),
        };
        UnnamedFinding {
            rule: Some(rule),
            places,
            why,
            ..self
        }
    }
}

/// Compares two models.
pub fn finding(a: &Side<'_>, b: &Side<'_>, means: &Means) -> Finding {
    let differs = match (a.reachability(), b.reachability()) {
        (Some(Verdict::Undecided(_)) | None, _) | (_, Some(Verdict::Undecided(_)) | None) => None,
        (x, y) => Some(x != y),
    };
    let unknown = [a, b]
        .into_iter()
        .find_map(|side| match side.reachability() {
            Some(Verdict::Undecided(reason)) => {
                Some(format!("{} is undecided: {reason}", side.label))
            }
            _ => None,
        });
    let found = match (a.mapping, b.mapping) {
        _ if differs.is_none() => UnnamedFinding::plain(
            Relation::Undecided,
            unknown.unwrap_or_else(|| "one of them gave no answer".to_owned()),
        ),
        (None, Some(by)) if speaks_of_source(a) => mapping(a, b, by, means),
        (Some(by), None) if speaks_of_source(b) => mapping(b, a, by, means),
        _ => models(a, b, means),
    };
    let UnnamedFinding {
        relation,
        rule,
        by,
        places,
        why,
    } = found;
    let (left, right) = (a.label.to_owned(), b.label.to_owned());
    Finding {
        left,
        right,
        differs,
        relation,
        rule,
        by,
        places,
        why,
    }
}

/// Whether the model belongs to the source language; sequential consistency belongs to none.
fn speaks_of_source(side: &Side<'_>) -> bool {
    side.label != "sc"
}

/// The axioms that together forbid something.
fn axioms(side: &Side<'_>, outcome: &Ask, means: &Means) -> String {
    let mut session = means.session(side.test, side.model).explaining();
    let answer = session.decide(outcome);
    listed(&answer.map_or(Vec::new(), |answer| answer.axioms))
}

/// Axioms that together forbid something, as a list.
pub fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "several axioms, each of which suffices alone".into()
    } else {
        names.join(", ")
    }
}

/// Places, in full only where `said` lacks them.
fn listed_places(places: &[InstrPlace], said: &str) -> String {
    const SHOWN: usize = 3;
    let text = |place: &InstrPlace| {
        let full = place.long();
        if said.contains(&full) {
            place.short()
        } else {
            full
        }
    };
    let mut texts: Vec<String> = places.iter().take(SHOWN).map(text).collect();
    if places.len() > SHOWN {
        texts.push(format!("{} more", places.len() - SHOWN));
    }
    texts.join(", ")
}

/// The case that `weak` allows what `strong` forbids.
fn forbidden(
    relation: Relation,
    strong: &Side<'_>,
    weak: &Side<'_>,
    what: &str,
    outcome: &Ask,
    means: &Means,
) -> UnnamedFinding {
    let names = axioms(strong, outcome, means);
    let why = format!(
        "`{}` forbids {what} by {names}, `{}` allows it",
        strong.label, weak.label
    );
    let found = UnnamedFinding {
        by: Some(names),
        ..UnnamedFinding::plain(relation, why)
    };
    let difference = Difference {
        refusing: Some(strong),
        weak,
        asked: outcome.clone(),
        means,
    };
    found.with(outcome.has_prop().then(|| difference.cause()).flatten())
}

/// Two models of which neither is the reference.
fn models(a: &Side<'_>, b: &Side<'_>, means: &Means) -> UnnamedFinding {
    match (a.undefined().is_some(), b.undefined().is_some()) {
        (true, true) => {
            return UnnamedFinding::plain(Relation::Agree, "both call it undefined".to_owned());
        }
        (true, false) => return race(Relation::Differ, a, Some(b), means),
        (false, true) => return race(Relation::Differ, b, Some(a), means),
        (false, false) => {}
    }
    if a.reachability() != b.reachability() {
        let (strong, weak) = if a.reachability() == Some(&Verdict::Forbidden) {
            (a, b)
        } else {
            (b, a)
        };
        return forbidden(
            Relation::Differ,
            strong,
            weak,
            "the condition",
            &strong.condition,
            means,
        );
    }
    match (a.verdict(Property::Race), b.verdict(Property::Race)) {
        (Some(Verdict::Racy), Some(Verdict::RaceFree)) => {
            return race(Relation::Differ, a, Some(b), means);
        }
        (Some(Verdict::RaceFree), Some(Verdict::Racy)) => {
            return race(Relation::Differ, b, Some(a), means);
        }
        _ => {}
    }
    for (strong, weak) in [(a, b), (b, a)] {
        if let Some((text, outcome)) = beyond(strong, weak).into_iter().next() {
            return forbidden(Relation::Differ, strong, weak, &text, &outcome, means);
        }
    }
    UnnamedFinding::plain(
        Relation::Agree,
        "the same answer and the same outcomes".to_owned(),
    )
}

/// A program that is undefined or races under one model, and a change that mends it.
fn race(
    relation: Relation,
    racy: &Side<'_>,
    other: Option<&Side<'_>>,
    means: &Means,
) -> UnnamedFinding {
    let label = racy.label;
    let defined = match other {
        Some(o) if o.model.flags.is_empty() => format!(", and `{}` knows no races", o.label),
        Some(o) => format!(", and under `{}` it is defined", o.label),
        None => String::new(),
    };
    let (places, why) = match racy.fault() {
        Some(fault) => {
            let places: Vec<InstrPlace> = fault
                .events
                .iter()
                .map(|e| rule::place_of(&e.event))
                .collect();
            let both = places
                .iter()
                .map(InstrPlace::long)
                .collect::<Vec<_>>()
                .join(" and ");
            let why = if fault.race {
                format!("under `{label}`, {both} race{defined}")
            } else {
                format!(
                    "under `{label}`, the program is undefined: {} at {both}{defined}",
                    fault.name()
                )
            };
            (places, why)
        }
        None => (
            Vec::new(),
            format!("the program is undefined under `{label}`{defined}"),
        ),
    };
    let difference = Difference {
        refusing: other,
        weak: racy,
        asked: Ask::Race,
        means,
    };
    let found = UnnamedFinding::plain(relation, why).with(difference.cause());
    let rule = match &found.rule {
        Some(rule) => format!("race ({rule})"),
        None => racy
            .fault()
            .filter(|f| !f.race)
            .map_or_else(|| "race".into(), Fault::name),
    };
    let places = if found.places.is_empty() {
        places
    } else {
        found.places
    };
    UnnamedFinding {
        rule: Some(rule),
        places,
        ..found
    }
}

/// Compares a model of the source language with a model of PTX, which judges the mapped test.
fn mapping(source: &Side<'_>, ptx: &Side<'_>, by: &Mapping, means: &Means) -> UnnamedFinding {
    let (from, to, name) = (source.label, ptx.label, by.name());
    if source.undefined().is_some() {
        let found = race(Relation::Exempt, source, None, means);
        let why = format!("the mapping need not keep anything: {}", found.why);
        return UnnamedFinding { why, ..found };
    }
    for property in [Property::Undefined, Property::Race] {
        if let Some(Verdict::Undecided(reason)) = source.verdict(property) {
            let why =
                format!("whether the program is defined under `{from}` is undecided: {reason}");
            return UnnamedFinding::plain(Relation::Undecided, why);
        }
    }
    let mut broken: Vec<Broken> = Vec::new();
    if (source.reachability(), ptx.reachability())
        == (Some(&Verdict::Forbidden), Some(&Verdict::Allowed))
    {
        broken.push(("the condition".into(), source.condition.clone()));
    }
    broken.extend(beyond(source, ptx));
    if broken.is_empty() {
        return kept(source, ptx, means);
    }
    // The widest gap that an outcome needs; one outcome outside all gaps is a violation.
    let mut widest: Option<(usize, &Broken)> = None;
    for outcome in broken.iter().take(EXPLAINED) {
        let (what, ask) = outcome;
        let is_in = |gap: &Gap| ask.has_prop() && in_gap(source, ptx, gap, ask, means);
        let gap = by.gaps.iter().position(is_in);
        let Some(gap) = gap else {
            let found = forbidden(Relation::Violated, source, ptx, what, ask, means);
            return UnnamedFinding {
                why: format!("`{name}` does not keep its promise: {}", found.why),
                ..found
            };
        };
        if widest.is_none_or(|w| gap > w.0) {
            widest = Some((gap, outcome));
        }
    }
    let Some((gap, (what, ask))) = widest else {
        return kept(source, ptx, means);
    };
    let gap = &by.gaps[gap];
    let names = axioms(source, ask, means);
    let difference = Difference {
        refusing: Some(source),
        weak: ptx,
        asked: ask.clone(),
        means,
    };
    let places = difference.of_sc();
    let at = if places.is_empty() {
        String::new()
    } else {
        format!(" at {}", listed_places(&places, ""))
    };
    let why = format!(
        "`{from}` forbids {what} by {names}, `{to}` allows it; mapping gap ({}){at}: `{name}` \
        does not keep {}",
        gap.name, gap.lost
    );
    let rule = Some(format!("mapping gap ({})", gap.name));
    UnnamedFinding {
        relation: Relation::KnownGap,
        rule,
        by: Some(names),
        places,
        why,
    }
}

/// The outcomes that one model allows and the other one, whose list is complete, forbids: as text,
/// and as questions.
fn beyond(strong: &Side<'_>, weak: &Side<'_>) -> Vec<(String, Ask)> {
    let allowed = |s: &State| {
        strong
            .outcomes
            .outcomes
            .iter()
            .any(|o| o.allowed && o.state == *s)
    };
    let new = weak
        .outcomes
        .outcomes
        .iter()
        .filter(|o| strong.outcomes.complete && o.allowed && !allowed(&o.state));
    new.map(|o| {
        let text = as_prop(&o.state);
        let prop = litmus::parse_prop(weak.source, &text).ok();
        let negate = false;
        (text, Ask::Reachability { prop, negate })
    })
    .collect()
}

/// Nothing speaks against the mapping.
fn kept(source: &Side<'_>, ptx: &Side<'_>, means: &Means) -> UnnamedFinding {
    for side in [source, ptx] {
        if !side.outcomes.complete {
            let reason = side.outcomes.reason.as_ref();
            let reason = reason.map_or("not all were found".to_owned(), ToString::to_string);
            let why = format!(
                "the list of outcomes under `{}` is not complete: {reason}",
                side.label
            );
            return UnnamedFinding::plain(Relation::Undecided, why);
        }
    }
    let (text, outcome) = if source.reachability() != ptx.reachability() {
        ("the condition".to_owned(), ptx.condition.clone())
    } else if let Some(outcome) = beyond(ptx, source).into_iter().next() {
        outcome
    } else {
        let why = format!(
            "`{}` and `{}` allow the same outcomes",
            source.label, ptx.label
        );
        return UnnamedFinding::plain(Relation::Respected, why);
    };
    forbidden(Relation::Respected, ptx, source, &text, &outcome, means)
}

/// Whether an outcome that the source model forbids and PTX allows lies in a gap of the mapping.
fn in_gap(source: &Side<'_>, ptx: &Side<'_>, gap: &Gap, outcome: &Ask, means: &Means) -> bool {
    let says = |test: &LitmusTest, model: &Model, verdict: Verdict| {
        let answer = means.session(test, model).decide(outcome);
        answer.is_some_and(|answer| answer.verdict == verdict)
    };
    match &gap.told {
        GapTest::Less => reduced(source.model, gap)
            .is_some_and(|model| says(source.test, &model, Verdict::Allowed)),
        GapTest::Mended(by) => Mapping::named(by)
            .and_then(|by| by.lowered(source.source).ok())
            .is_some_and(|test| says(&test, ptx.model, Verdict::Forbidden)),
    }
}
