//! Why two models differ on a test, and whether a mapping keeps what its source model promises.
//!
//! | File | What |
//! |---|---|
//! | this | how two models stand to each other, in one sentence |
//! | `rule` | the rule that makes the difference, found by changing the program |
//! | `edits` | the changes |
//!
//! # Where the words come from
//! - A mapping is *respected* if PTX allows no outcome of the mapped program that the source model forbids. Nothing is
//!   asked of it where the source program is undefined.
//! - A *known gap* is one that the mapping declares ([`Gap`]), with the way to tell it. Every other outcome that PTX alone
//!   allows is a violation.

mod edits;
mod rule;

use rule::{Asked, Cause, Search};

use super::plan::{Ask, Unit};
use super::settings::Settings;
use super::{decide, seams};
use cat::model::ir::Model;
use front::mapping::{Gap, Mapping, Told};
use program::litmus::{LitmusTest, Prop};
use report::{Column, Finding, Line, Place, Relation};
use verdict::{Fault, Property, State, Verdict};
use why::Session;
use why::known_gap::reduced;

/// At most so many outcomes are held against the known gaps: one that is more decides.
const EXPLAINED: usize = 8;

/// A model's unit, and what came out.
type Side<'a> = (&'a Unit<'a>, &'a Column);

/// Something that PTX allows and the source model forbids: in words, as a proposition, and whether its violation is meant.
type Broken = (String, Option<Prop>, bool);

/// What was found, before the models' names.
struct Found {
    relation: Relation,
    rule: Option<String>,
    by: Option<String>,
    places: Vec<Place>,
    why: String,
}

impl Found {
    fn plain(relation: Relation, why: String) -> Found {
        Found { relation, rule: None, by: None, places: Vec::new(), why }
    }

    /// With the rule, if there is one.
    fn with(self, cause: Option<Cause>) -> Found {
        let Some(Cause { rule, places, seen }) = cause else { return self };
        let why = match places.is_empty() {
            true => format!("{}; {rule}: {seen}", self.why),
            false => format!("{}; {rule} at {}: {seen}", self.why, listed_places(&places, &self.why)),
        };
        Found { rule: Some(rule), places, why, ..self }
    }
}

/// Compares two models.
pub(super) fn finding(a: Side<'_>, b: Side<'_>, settings: &Settings) -> Finding {
    let differs = match (reachability(a.1), reachability(b.1)) {
        (Some(Verdict::Undecided(_)) | None, _) | (_, Some(Verdict::Undecided(_)) | None) => None,
        (x, y) => Some(x != y),
    };
    let unknown = [a, b].into_iter().find_map(|side| match reachability(side.1) {
        Some(Verdict::Undecided(reason)) => Some(format!("{} is undecided: {reason}", side.0.model.label)),
        _ => None,
    });
    let found = match (a.0.mapping, b.0.mapping) {
        _ if differs.is_none() => {
            Found::plain(Relation::Undecided, unknown.unwrap_or_else(|| "one of them gave no answer".to_owned()))
        }
        (None, Some(name)) if speaks_of_source(a.0) => mapping(a, b, name, settings),
        (Some(name), None) if speaks_of_source(b.0) => mapping(b, a, name, settings),
        _ => models(a, b, settings),
    };
    let Found { relation, rule, by, places, why } = found;
    let (left, right) = (a.0.model.label.clone(), b.0.model.label.clone());
    Finding { left, right, differs, relation, rule, by, places, why }
}

fn reachability(column: &Column) -> Option<&Verdict> {
    column.lines.first().map(|line| &line.answer.verdict)
}

/// Whether the model is one of the source language; sequential consistency is nobody's.
fn speaks_of_source(unit: &Unit<'_>) -> bool {
    unit.model.label != "sc"
}

/// The axioms that together forbid something.
fn axioms(unit: &Unit<'_>, (prop, negate): (Option<&Prop>, bool), settings: &Settings) -> Vec<String> {
    decide::open(unit, settings, true).reachability(prop, negate).axioms
}

/// Places, in full only where `said` does not have them yet.
fn listed_places(places: &[Place], said: &str) -> String {
    const SHOWN: usize = 3;
    let text = |place: &Place| {
        let full = place.to_string();
        if said.contains(&full) { place.short() } else { full }
    };
    let mut texts: Vec<String> = places.iter().take(SHOWN).map(text).collect();
    if places.len() > SHOWN {
        texts.push(format!("{} more", places.len() - SHOWN));
    }
    texts.join(", ")
}

/// What makes the program undefined, or race, under the model of a column.
fn fault(column: &Column) -> Option<&Fault> {
    column.undefined().or_else(|| column.lines.iter().find_map(Line::fault))
}

/// The unit's own condition.
fn condition<'u>(unit: &'u Unit<'_>) -> (Option<&'u Prop>, bool) {
    match unit.questions.first().map(|q| &q.ask) {
        Some(Ask::Reachability { prop, negate }) => (prop.as_ref(), *negate),
        _ => (None, false),
    }
}

/// The rule behind an outcome that `strong` forbids and `weak` allows.
fn cause(strong: &Unit<'_>, weak: &Unit<'_>, prop: &Prop, negate: bool, settings: &Settings) -> Option<Cause> {
    Search { refusing: Some(strong), weak, asked: Asked::Outcome(prop, negate), settings }.cause()
}

/// `weak` allows what `strong` forbids.
fn forbidden(
    relation: Relation,
    (strong, weak): (&Unit<'_>, &Unit<'_>),
    (what, prop, negate): (&str, Option<&Prop>, bool),
    settings: &Settings,
) -> Found {
    let names = decide::listed(&axioms(strong, (prop, negate), settings));
    let (s, w) = (&strong.model.label, &weak.model.label);
    let why = format!("`{s}` forbids {what} by {names}, `{w}` allows it");
    let found = Found { by: Some(names), ..Found::plain(relation, why) };
    found.with(prop.and_then(|prop| cause(strong, weak, prop, negate, settings)))
}

/// Two models of which neither is held against the other.
fn models(a: Side<'_>, b: Side<'_>, settings: &Settings) -> Found {
    match (a.1.undefined().is_some(), b.1.undefined().is_some()) {
        (true, true) => return Found::plain(Relation::Agree, "both call it undefined".to_owned()),
        (true, false) => return race(Relation::Differ, a, Some(b.0), settings),
        (false, true) => return race(Relation::Differ, b, Some(a.0), settings),
        (false, false) => {}
    }
    if reachability(a.1) != reachability(b.1) {
        let (strong, weak) = if reachability(a.1) == Some(&Verdict::Forbidden) { (a, b) } else { (b, a) };
        let (prop, negate) = condition(strong.0);
        return forbidden(Relation::Differ, (strong.0, weak.0), ("the condition", prop, negate), settings);
    }
    match (a.1.verdict(Property::Race), b.1.verdict(Property::Race)) {
        (Some(Verdict::Racy), Some(Verdict::RaceFree)) => return race(Relation::Differ, a, Some(b.0), settings),
        (Some(Verdict::RaceFree), Some(Verdict::Racy)) => return race(Relation::Differ, b, Some(a.0), settings),
        _ => {}
    }
    for (strong, weak) in [(a, b), (b, a)] {
        let new = beyond(strong.1, weak.1);
        let Some(state) = new.first() else { continue };
        let text = decide::as_prop(state);
        let prop = seams::parse_prop(&weak.0.test, &text).ok();
        return forbidden(Relation::Differ, (strong.0, weak.0), (&text, prop.as_ref(), false), settings);
    }
    Found::plain(Relation::Agree, "the same answer and the same outcomes".to_owned())
}

/// A program that is undefined or races under one model, and what would mend it.
fn race(relation: Relation, racy: Side<'_>, other: Option<&Unit<'_>>, settings: &Settings) -> Found {
    let (racy, column) = racy;
    let label = &racy.model.label;
    let defined = match other {
        Some(o) if o.model.model.flags.is_empty() => format!(", and `{}` knows no races", o.model.label),
        Some(o) => format!(", and under `{}` it is defined", o.model.label),
        None => String::new(),
    };
    let (places, why) = match fault(column) {
        Some(fault) => {
            let places: Vec<Place> = fault.events.iter().map(|e| rule::place_of(&e.event)).collect();
            let both = places.iter().map(Place::to_string).collect::<Vec<_>>().join(" and ");
            let why = if fault.race {
                format!("under `{label}`, {both} race{defined}")
            } else {
                format!("under `{label}`, the program is undefined: {} at {both}{defined}", fault.name())
            };
            (places, why)
        }
        None => (Vec::new(), format!("the program is undefined under `{label}`{defined}")),
    };
    let found = Found::plain(relation, why);
    let cause = Search { refusing: other, weak: racy, asked: Asked::Race, settings }.cause();
    let found = found.with(cause);
    let rule = match &found.rule {
        Some(rule) => format!("race ({rule})"),
        None => fault(column).filter(|f| !f.race).map_or_else(|| "race".into(), Fault::name),
    };
    let places = if found.places.is_empty() { places } else { found.places };
    Found { rule: Some(rule), places, ..found }
}

/// A model of the source language, and one of PTX that judges what the mapping made of the test.
fn mapping(source: Side<'_>, ptx: Side<'_>, name: &str, settings: &Settings) -> Found {
    let (from, to) = (&source.0.model.label, &ptx.0.model.label);
    if source.1.undefined().is_some() {
        let found = race(Relation::Exempt, source, None, settings);
        let why = format!("nothing is asked of the mapping: {}", found.why);
        return Found { why, ..found };
    }
    for property in [Property::Undefined, Property::Race] {
        if let Some(Verdict::Undecided(reason)) = source.1.verdict(property) {
            let why = format!("whether the program is defined under `{from}` is undecided: {reason}");
            return Found::plain(Relation::Undecided, why);
        }
    }
    let mut broken: Vec<Broken> = Vec::new();
    let verdicts = (reachability(source.1), reachability(ptx.1));
    if verdicts == (Some(&Verdict::Forbidden), Some(&Verdict::Allowed)) {
        let (prop, negate) = condition(source.0);
        broken.push(("the condition".into(), prop.cloned(), negate));
    }
    for state in beyond(source.1, ptx.1) {
        let text = decide::as_prop(state);
        let prop = seams::parse_prop(&source.0.test, &text).ok();
        broken.push((text, prop, false));
    }
    if broken.is_empty() {
        return kept(source, ptx, settings);
    }
    // The widest gap that an outcome needs; one outcome that is in none makes it a violation.
    let gaps = Mapping::named(name).map_or(&[][..], |m| m.gaps);
    let mut widest: Option<(usize, &Broken)> = None;
    for outcome in broken.iter().take(EXPLAINED) {
        let (what, prop, negate) = outcome;
        let gap = prop
            .as_ref()
            .and_then(|p| gaps.iter().position(|g| in_gap((source.0, ptx.0), g, p, *negate, settings)));
        let Some(gap) = gap else {
            let found = forbidden(Relation::Violated, (source.0, ptx.0), (what, prop.as_ref(), *negate), settings);
            return Found { why: format!("`{name}` does not keep its promise: {}", found.why), ..found };
        };
        if widest.is_none_or(|w| gap > w.0) {
            widest = Some((gap, outcome));
        }
    }
    let Some((gap, (what, prop, negate))) = widest else { return kept(source, ptx, settings) };
    let gap = &gaps[gap];
    let names = decide::listed(&axioms(source.0, (prop.as_ref(), *negate), settings));
    let of_sc = |prop: &Prop| {
        let asked = Asked::Outcome(prop, *negate);
        Search { refusing: Some(source.0), weak: ptx.0, asked, settings }.of_sc()
    };
    let places = prop.as_ref().map(of_sc).unwrap_or_default();
    let at = if places.is_empty() { String::new() } else { format!(" at {}", listed_places(&places, "")) };
    let why = format!(
        "`{from}` forbids {what} by {names}, `{to}` allows it; mapping gap ({}){at}: `{name}` does not keep {}",
        gap.name, gap.lost
    );
    let rule = Some(format!("mapping gap ({})", gap.name));
    Found { relation: Relation::KnownGap, rule, by: Some(names), places, why }
}

/// The outcomes that one model allows and the other one, whose list is complete, forbids.
fn beyond<'c>(strong: &Column, weak: &'c Column) -> Vec<&'c State> {
    if !strong.outcomes.complete {
        return Vec::new();
    }
    let allowed = |s: &State| strong.outcomes.outcomes.iter().any(|o| o.allowed && o.state == *s);
    weak.outcomes.outcomes.iter().filter(|o| o.allowed && !allowed(&o.state)).map(|o| &o.state).collect()
}

/// Nothing was found against the mapping.
fn kept(source: Side<'_>, ptx: Side<'_>, settings: &Settings) -> Found {
    let (from, to) = (&source.0.model.label, &ptx.0.model.label);
    for (side, label) in [(source, from), (ptx, to)] {
        if !side.1.outcomes.complete {
            let reason = side.1.outcomes.reason.as_deref().unwrap_or("not all were found");
            let why = format!("the list of outcomes under `{label}` is not complete: {reason}");
            return Found::plain(Relation::Undecided, why);
        }
    }
    if reachability(source.1) != reachability(ptx.1) {
        let (prop, negate) = condition(ptx.0);
        return forbidden(Relation::Respected, (ptx.0, source.0), ("the condition", prop, negate), settings);
    }
    if let Some(state) = beyond(ptx.1, source.1).first() {
        let text = decide::as_prop(state);
        let prop = seams::parse_prop(&source.0.test, &text).ok();
        return forbidden(Relation::Respected, (ptx.0, source.0), (&text, prop.as_ref(), false), settings);
    }
    Found::plain(Relation::Respected, format!("`{from}` and `{to}` allow the same outcomes"))
}

/// Whether an outcome that the source model forbids and PTX allows lies in a gap of the mapping.
fn in_gap(
    (source, ptx): (&Unit<'_>, &Unit<'_>),
    gap: &Gap,
    prop: &Prop,
    negate: bool,
    settings: &Settings,
) -> bool {
    let verdict = |test: &LitmusTest, model: &Model| {
        let mut session = Session::new(test, model, settings.engine, settings.limits, &settings.set);
        session.reachability(Some(prop), negate).verdict
    };
    match gap.told {
        Told::Less { .. } => reduced(&source.model.model, gap)
            .is_some_and(|model| verdict(&source.test, &model) == Verdict::Allowed),
        Told::Mended(by) => Mapping::named(by)
            .and_then(|by| by.lowered(source.source).ok())
            .is_some_and(|test| verdict(&test, &ptx.model.model) == Verdict::Forbidden),
    }
}
