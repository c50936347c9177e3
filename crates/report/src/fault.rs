//! Writes undefined behaviour as text and as the keys of `jsonl`.
//!
//! # Keys
//! - `undefined`: whether the program is undefined; `null` with an `undefined_reason` if that is
//!   undecided. Absent if the model has no undefined behaviour, or for another property.
//! - `race`: the accesses of a data race and why they race; `misuse`: other undefined behaviour in
//!   the same form.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::execution::{WitnessObject, execution, witness};
use diag::{SourceLine, SourceOrigin};
use verdict::{Definedness, Fault, FaultEvent, RacingPair, Remedy};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The keys in an answer or a table.
#[derive(Serialize, Default)]
pub(super) struct UndefinedKeys<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    undefined: Option<Option<bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undefined_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    race: Option<FaultObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    misuse: Option<FaultObject<'a>>,
}

impl<'a> UndefinedKeys<'a> {
    /// The keys for an answer about a program, or for an answer about a fault.
    pub(super) fn of(definedness: Option<&'a Definedness>, fault: Option<&'a Fault>) -> Self {
        let (undefined, undefined_reason, found) = match definedness {
            None => (None, None, None),
            Some(Definedness::Defined) => (Some(Some(false)), None, None),
            Some(Definedness::Undefined(fault)) => (Some(Some(true)), None, Some(&**fault)),
            Some(Definedness::Undecided(reason)) => (Some(None), Some(reason.to_string()), None),
        };
        let (race, misuse) = match found.or(fault) {
            None => (None, None),
            Some(fault) if fault.race => (Some(FaultObject::of(fault)), None),
            Some(fault) => (None, Some(FaultObject::of(fault))),
        };
        UndefinedKeys {
            undefined,
            undefined_reason,
            race,
            misuse,
        }
    }

    /// The same without the fault, which another answer about the program contains.
    pub(super) fn alone(self) -> Self {
        UndefinedKeys {
            race: None,
            misuse: None,
            ..self
        }
    }
}

/// A fault; fields in the order of the keys.
#[derive(Serialize)]
pub(super) struct FaultObject<'a> {
    flag: &'a str,
    relation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    accesses: Vec<AccessObject<'a>>,
    why: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Vec<ChangeObject<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_remedy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<WitnessObject<'a>>,
}

#[derive(Serialize)]
struct AccessObject<'a> {
    thread: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(flatten)]
    line: &'a SourceLine,
    what: &'a str,
    action: &'a str,
    text: &'a str,
}

/// Two accesses that race.
#[derive(Serialize)]
pub(super) struct PairObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    accesses: [AccessObject<'a>; 2],
}

impl<'a> PairObject<'a> {
    /// The object for a pair.
    pub(super) fn of(pair: &'a RacingPair) -> Self {
        PairObject {
            place: pair.place.as_deref(),
            accesses: pair.events.each_ref().map(AccessObject::of),
        }
    }
}

impl<'a> AccessObject<'a> {
    fn of(e: &'a FaultEvent) -> Self {
        AccessObject {
            thread: &e.event.thread_name,
            agent: e.event.agent.as_deref(),
            line: &e.event.line,
            what: &e.noun,
            action: &e.event.action,
            text: e.event.text.trim(),
        }
    }
}

#[derive(Serialize)]
struct ChangeObject<'a> {
    line: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    origin: &'a [SourceOrigin],
    change: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

impl<'a> FaultObject<'a> {
    /// The object for a fault.
    pub(super) fn of(fault: &'a Fault) -> Self {
        let (remedy, no_remedy) = match &fault.remedy {
            Some(Remedy::Changes(changes)) => (
                Some(
                    changes
                        .iter()
                        .map(|c| ChangeObject {
                            line: c.line.is_known().then_some(c.line.number),
                            origin: &c.line.origin,
                            change: &c.text,
                            reason: &c.reason,
                        })
                        .collect(),
                ),
                None,
            ),
            Some(Remedy::None(why)) => (None, Some(why.clone())),
            Some(Remedy::Undecided(why)) => (None, Some(why.to_string())),
            None => (None, None),
        };
        FaultObject {
            flag: &fault.flag,
            relation: &fault.relation,
            place: fault.place.as_deref(),
            accesses: fault.events.iter().map(AccessObject::of).collect(),
            why: &fault.why,
            remedy,
            no_remedy,
            execution: fault.execution.as_ref().map(witness),
        }
    }
}

/// Writes a fault as text: the events with their places, the reasons, possible remedies; `whole`:
/// also the execution.
pub(super) fn human(out: &mut dyn Write, path: &str, fault: &Fault, whole: bool) -> io::Result<()> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let on = fault
        .place
        .as_ref()
        .map_or(String::new(), |place| format!(" on `{place}`"));
    writeln!(
        out,
        "  {BAD}{}{BAD:#}{on} (flag `{}`, by `{}`):",
        fault.name(),
        fault.flag,
        fault.relation
    )?;
    let places: Vec<String> = fault
        .events
        .iter()
        .map(|e| format!("{BOLD}{}{BOLD:#} {file}:{}", e.event.who(), e.event.line))
        .collect();
    let width = places.iter().map(|p| p.chars().count()).max().unwrap_or(0);
    for (place, event) in places.iter().zip(&fault.events) {
        let (text, action) = (event.event.text.trim(), &event.event.action);
        writeln!(
            out,
            "    {place:width$}  {text}  {DIM}{}: {action}{DIM:#}",
            event.noun
        )?;
    }
    for reason in &fault.why {
        writeln!(out, "    - {reason}")?;
    }
    match &fault.remedy {
        None => {}
        Some(Remedy::Changes(changes)) => {
            for change in changes.iter().filter(|c| !c.reason.is_empty()) {
                writeln!(out, "    - {}", change.reason)?;
            }
            writeln!(out, "    it becomes race-free if")?;
            for (i, change) in changes.iter().enumerate() {
                let and = if i == 0 { "" } else { "and " };
                writeln!(out, "      {and}{}", change.text)?;
            }
        }
        Some(Remedy::None(why)) => writeln!(
            out,
            "    - no change of orders, scopes and atomicity helps: {why}"
        )?,
        Some(Remedy::Undecided(why)) => writeln!(
            out,
            "    {DIM}the search for a repair was given up: {why}{DIM:#}"
        )?,
    }
    match &fault.execution {
        Some(execution_shown) if whole => execution(out, execution_shown),
        _ => Ok(()),
    }
}
