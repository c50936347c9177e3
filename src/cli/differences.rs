//! Why two models differ on a test, and whether a mapping keeps what its source model promises.
//!
//! # Where the words come from
//! - A mapping is *respected* if PTX allows no outcome of the mapped program that the source model forbids. Nothing is
//!   asked of it where the source program is undefined.
//! - The *known gap* is that of OpenCL's order of sequentially consistent operations, which holds happens-before: the
//!   mapping with leading fences keeps that of repaired C11 only. It shows in an outcome that the source model forbids
//!   by its axiom of sequential consistency, and would allow without it.

use super::plan::{Ask, Unit};
use super::settings::Settings;
use super::{decide, seams};
use crate::check::Session;
use crate::litmus::Prop;
use crate::model::ir::Model;
use crate::program::{Dialect, Op, Program};
use crate::report::{Column, Finding, Line, Relation};
use crate::verdict::{Fault, Property, State, Verdict};

/// At most so many outcomes are explained: one is enough for a sentence.
const EXPLAINED: usize = 8;

/// A model's unit, and what came out.
type Side<'a> = (&'a Unit<'a>, &'a Column);

/// Compares two models.
pub(super) fn finding(a: Side<'_>, b: Side<'_>, settings: &Settings) -> Finding {
    let differs = match (reachability(a.1), reachability(b.1)) {
        (Some(Verdict::Undecided(_)) | None, _) | (_, Some(Verdict::Undecided(_)) | None) => None,
        (x, y) => Some(x != y),
    };
    let (relation, by, why) = match (a.0.mapping, b.0.mapping) {
        _ if differs.is_none() => (Relation::Undecided, None, "one of the answers is undecided".to_owned()),
        (None, Some(name)) if speaks_of_source(a.0) => mapping(a, b, name, settings),
        (Some(name), None) if speaks_of_source(b.0) => mapping(b, a, name, settings),
        _ => models(a, b, settings),
    };
    // What is said of outcomes is not to be read as if the program were defined.
    let why = [a, b].iter().fold(why, |why, side| match side.1.undefined() {
        Some(fault) if relation != Relation::Exempt => {
            format!("{why}; the program {} under `{}`", described(fault), side.0.model.label)
        }
        _ => why,
    });
    Finding { left: a.0.model.label.clone(), right: b.0.model.label.clone(), differs, relation, by, why }
}

fn reachability(column: &Column) -> Option<&Verdict> {
    column.lines.first().map(|line| &line.answer.verdict)
}

fn verdict(column: &Column, property: Property) -> Option<&Verdict> {
    column.lines.iter().find(|line| line.property == property).map(|line| &line.answer.verdict)
}

/// What makes the program undefined, or race, under the model of a column.
fn fault(column: &Column) -> Option<&Fault> {
    column.undefined().or_else(|| column.lines.iter().find_map(Line::fault))
}

/// A fault, as something that a program has.
fn described(fault: &Fault) -> String {
    let what =
        if fault.race { "a data race".to_owned() } else { format!("undefined behaviour, {}", fault.name()) };
    format!("has {what} ({})", fault.places())
}

/// Whether the model is one of the source language; sequential consistency is nobody's.
fn speaks_of_source(unit: &Unit<'_>) -> bool {
    unit.model.label != "sc"
}

/// The axioms that together forbid something.
fn axioms(unit: &Unit<'_>, (prop, negate): (Option<&Prop>, bool), settings: &Settings) -> Vec<String> {
    decide::open(unit, settings, true).reachability(prop, negate).axioms
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "no single axiom".into() } else { names.join(", ") }
}

/// The unit's own condition.
fn condition<'u>(unit: &'u Unit<'_>) -> (Option<&'u Prop>, bool) {
    match unit.questions.first().map(|q| &q.ask) {
        Some(Ask::Reachability { prop, negate }) => (prop.as_ref(), *negate),
        _ => (None, false),
    }
}

/// Two models of which neither is held against the other.
fn models(a: Side<'_>, b: Side<'_>, settings: &Settings) -> (Relation, Option<String>, String) {
    let (left, right) = (&a.0.model.label, &b.0.model.label);
    if reachability(a.1) != reachability(b.1) {
        let (forbids, allows) = if reachability(a.1) == Some(&Verdict::Forbidden) { (a, b) } else { (b, a) };
        let names = listed(&axioms(forbids.0, condition(forbids.0), settings));
        let why =
            format!("`{}` forbids it by {names}, `{}` allows it", forbids.0.model.label, allows.0.model.label);
        return (Relation::Differ, Some(names), why);
    }
    match (verdict(a.1, Property::Race), verdict(b.1, Property::Race)) {
        (Some(x), Some(y)) if x != y => {
            let why = format!("under `{left}` it is {}, under `{right}` {}", x.word(), y.word());
            return (Relation::Differ, Some("race".into()), why);
        }
        _ => {}
    }
    let words = |c: &Column, s: &State| c.outcomes.outcomes.iter().any(|o| o.allowed && o.state == *s);
    let only =
        |x: &Column, y: &Column| x.outcomes.outcomes.iter().filter(|o| o.allowed && !words(y, &o.state)).count();
    let why = match (only(a.1, b.1), only(b.1, a.1)) {
        (0, 0) => "the same answer and the same outcomes".to_owned(),
        (n, m) => format!("the same answer; outcomes that only `{left}` allows: {n}, only `{right}`: {m}"),
    };
    (Relation::Agree, None, why)
}

/// A model of the source language, and one of PTX that judges what the mapping made of the test.
fn mapping(
    source: Side<'_>,
    ptx: Side<'_>,
    name: &str,
    settings: &Settings,
) -> (Relation, Option<String>, String) {
    let (from, to) = (&source.0.model.label, &ptx.0.model.label);
    for property in [Property::Undefined, Property::Race] {
        match verdict(source.1, property) {
            Some(Verdict::Racy | Verdict::Undefined) => {
                let what = fault(source.1).map_or("is undefined".to_owned(), described);
                let why = format!("the program {what} under `{from}`, so nothing is asked of the mapping");
                return (Relation::Exempt, None, why);
            }
            Some(Verdict::Undecided(reason)) => {
                let why = format!("whether the program is defined under `{from}` is undecided: {reason}");
                return (Relation::Undecided, None, why);
            }
            _ => {}
        }
    }
    let mut broken: Vec<(String, Option<Prop>, bool)> = Vec::new();
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
    let Some((what, _, _)) = broken.first() else {
        return kept(source, ptx, settings);
    };
    // One outcome that is more than the known gap makes it a violation.
    let mut gap: Option<Vec<String>> = None;
    for (what, prop, negate) in broken.iter().take(EXPLAINED) {
        let Some(prop) = prop else {
            let why = format!("`{to}` allows {what} through `{name}`, which `{from}` forbids");
            return (Relation::Violated, None, why);
        };
        let names = axioms(source.0, (Some(prop), *negate), settings);
        if !is_gap(source.0, &names, (prop, *negate), settings) {
            let names = listed(&names);
            let why = format!("`{to}` allows {what} through `{name}`, which `{from}` forbids by {names}");
            return (Relation::Violated, Some(names), why);
        }
        gap.get_or_insert(names);
    }
    let names: Vec<String> = gap.unwrap_or_default().into_iter().filter(|n| orders_sc(n)).collect();
    let names = listed(&names);
    let why = format!(
        "`{to}` allows {what}, which `{from}` forbids by {names} alone: a happens-before edge between seq_cst accesses \
         that `{name}` does not keep"
    );
    (Relation::KnownGap, Some(names), why)
}

/// The outcomes that PTX allows and the source model, whose list is complete, forbids.
fn beyond<'c>(source: &Column, ptx: &'c Column) -> Vec<&'c State> {
    if !source.outcomes.complete {
        return Vec::new();
    }
    let allowed = |s: &State| source.outcomes.outcomes.iter().any(|o| o.allowed && o.state == *s);
    ptx.outcomes.outcomes.iter().filter(|o| o.allowed && !allowed(&o.state)).map(|o| &o.state).collect()
}

/// Nothing was found against the mapping.
fn kept(source: Side<'_>, ptx: Side<'_>, settings: &Settings) -> (Relation, Option<String>, String) {
    let (from, to) = (&source.0.model.label, &ptx.0.model.label);
    for (side, label) in [(source, from), (ptx, to)] {
        if !side.1.outcomes.complete {
            let reason = side.1.outcomes.reason.as_deref().unwrap_or("not all were found");
            let why = format!("the list of outcomes under `{label}` is not complete: {reason}");
            return (Relation::Undecided, None, why);
        }
    }
    if reachability(source.1) == reachability(ptx.1) {
        return (Relation::Respected, None, format!("`{to}` allows no outcome that `{from}` forbids"));
    }
    let names = listed(&axioms(ptx.0, condition(ptx.0), settings));
    let why = format!("`{to}` is stronger: it forbids by {names} what `{from}` allows");
    (Relation::Respected, Some(names), why)
}

/// Whether the source model forbids something by the order of sequentially consistent accesses alone.
fn is_gap(unit: &Unit<'_>, names: &[String], (prop, negate): (&Prop, bool), settings: &Settings) -> bool {
    let program = &unit.test.program;
    if program.dialect != Dialect::OpenCl || !has_sc_access(program) || !names.iter().any(|n| orders_sc(n)) {
        return false;
    }
    let mut model = Model::clone(&unit.model.model);
    model.axioms.retain(|axiom| !orders_sc(&axiom.name));
    let mut session = Session::new(&unit.test, &model, settings.engine, settings.limits, &settings.set);
    session.reachability(Some(prop), negate).verdict == Verdict::Allowed
}

/// Whether an axiom of a source model orders sequentially consistent operations, by its name.
fn orders_sc(axiom: &str) -> bool {
    axiom.starts_with("S-") || axiom == "SC" || axiom.ends_with("-SC")
}

fn has_sc_access(program: &Program) -> bool {
    program.threads.iter().flat_map(|t| &t.code).any(|instr| match &instr.op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.tags.has("SC"),
        Op::Rmw { read, write, .. } => read.tags.has("SC") || write.tags.has("SC"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axioms_of_the_sc_order_are_known_by_name() {
        for name in ["Scoped-SC", "Simple-SC", "S-happens-before", "SC"] {
            assert!(orders_sc(name), "{name}");
        }
        for name in ["SC-per-Location", "Global-coherence", "Atomicity", "Causality"] {
            assert!(!orders_sc(name), "{name}");
        }
    }
}
