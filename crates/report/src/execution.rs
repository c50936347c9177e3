//! Writes executions as text and as objects.

use std::io::{self, Write};

use anstyle::Style;
use indexmap::IndexMap;
use serde::{Serialize, Serializer};

use diag::SourceLine;
use verdict::hang::{self, Goal, Site, Wait};
use verdict::{Ending, State, ThreadEnd, Witness, WitnessEvent};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// `a`, `b`, …, `z`, `e26`, …
pub(crate) fn letter(event: usize) -> String {
    match u8::try_from(event) {
        Ok(n) if n < 26 => char::from(b'a' + n).to_string(),
        _ => format!("e{event}"),
    }
}

/// The actor of events: a thread, an agent of a thread, or none for initial writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor<'a> {
    pub thread: Option<usize>,
    pub agent: Option<&'a str>,
}

impl<'a> Actor<'a> {
    pub(crate) fn of(event: &'a WitnessEvent) -> Actor<'a> {
        Actor {
            thread: event.thread,
            agent: event.agent.as_deref(),
        }
    }
}

/// The actors of an execution: each thread before its agents, agents in the order of their
/// operations.
pub(crate) fn actors(witness: &Witness) -> Vec<Actor<'_>> {
    let mut found: Vec<Actor<'_>> = Vec::new();
    for actor in witness.events.iter().map(Actor::of) {
        if !found.contains(&actor) {
            found.push(actor);
        }
    }
    found.sort_by_key(|actor| (actor.thread, actor.agent.is_some()));
    found
}

/// An execution: events per thread and agent, relations, final state.
pub(crate) fn execution(out: &mut dyn Write, witness: &Witness) -> io::Result<()> {
    writeln!(out, "  by this execution:")?;
    let action_width = witness
        .events
        .iter()
        .map(|e| e.action.chars().count())
        .max()
        .unwrap_or(0);
    for actor in actors(witness) {
        let events = witness
            .events
            .iter()
            .enumerate()
            .filter(|(_, e)| Actor::of(e) == actor);
        for (i, (index, event)) in events.enumerate() {
            if i == 0 {
                writeln!(out, "    {BOLD}{}{BOLD:#}", event.who())?;
            }
            write!(
                out,
                "      {:>3}: {:action_width$}",
                letter(index),
                event.action
            )?;
            if event.line.is_known() {
                write!(
                    out,
                    "  {DIM}line {}: {}{DIM:#}",
                    event.line,
                    event.text.trim()
                )?;
            }
            writeln!(out)?;
        }
    }
    let name_width = witness
        .relations
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    for (name, pairs) in &witness.relations {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|&(a, b)| format!("{}->{}", letter(a), letter(b)))
            .collect();
        writeln!(out, "    {name:name_width$}  {}", pairs.join(" "))?;
    }
    if !witness.ends.is_empty() {
        return end_lines(out, &witness.ends);
    }
    writeln!(out, "    final state: {}", state_text(&witness.state))
}

/// The final states of threads in an execution that hangs.
fn end_lines(out: &mut dyn Write, ends: &[ThreadEnd]) -> io::Result<()> {
    writeln!(out, "    which does not end:")?;
    let width = ends
        .iter()
        .map(|e| e.thread.chars().count())
        .max()
        .unwrap_or(0);
    ends.iter().try_for_each(|end| end_line(out, end, width))?;
    picture(out, ends)
}

/// Which threads wait for which.
pub(crate) fn picture(out: &mut dyn Write, ends: &[ThreadEnd]) -> io::Result<()> {
    let (circle, lines) = hang::picture(ends);
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "      {}",
        if circle {
            "they wait in a circle:"
        } else {
            "which thread waits for which:"
        }
    )?;
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "        {line}"))
}

/// The final state of one thread.
pub(crate) fn end_line(out: &mut dyn Write, end: &ThreadEnd, width: usize) -> io::Result<()> {
    let style = if matches!(end.ending, Ending::Blocked | Ending::Looping) {
        BOLD
    } else {
        Style::new()
    };
    write!(
        out,
        "      {:width$}  {style}{:7}{style:#}  {}",
        end.thread,
        end.ending.word(),
        end.why
    )?;
    if end.line.is_known() {
        let after = if end.ending == Ending::Stopped {
            "after "
        } else {
            ""
        };
        write!(
            out,
            "  {DIM}{after}line {}: {}{DIM:#}",
            end.line,
            end.text.trim()
        )?;
    }
    writeln!(out)
}

/// `P1:r0 = 1, x = 2`.
pub(crate) fn state_text(state: &State) -> String {
    match state.as_slice() {
        [] => "(nothing is observed)".to_owned(),
        some => some
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// An execution; relations refer to events by index.
#[derive(Serialize)]
pub(crate) struct WitnessObject<'a> {
    events: Vec<EventJson<'a>>,
    relations: IndexMap<&'a str, &'a [(usize, usize)]>,
    state: StateObject<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ends: Vec<EndObject<'a>>,
    /// Which threads wait for which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<String>,
}

/// The final state of a thread in an execution that hangs.
#[derive(Serialize)]
struct EndObject<'a> {
    thread: &'a str,
    end: &'a str,
    #[serde(flatten)]
    line: &'a SourceLine,
    text: &'a str,
    served: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    waits_for: &'a [String],
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    reads: IndexMap<&'a str, Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<WaitObject<'a>>,
    why: &'a str,
}

/// The condition that a thread waits for.
#[derive(Serialize)]
struct WaitObject<'a> {
    r#for: &'a str,
    helpers: Vec<SiteObject<'a>>,
    only: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<SiteObject<'a>>,
}

#[derive(Serialize)]
struct SiteObject<'a> {
    thread: &'a str,
    #[serde(flatten)]
    line: &'a SourceLine,
}

#[derive(Serialize)]
struct EventJson<'a> {
    thread: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(flatten)]
    line: &'a SourceLine,
    action: &'a str,
    text: &'a str,
}

/// Final values by name.
pub(crate) struct StateObject<'a>(pub(crate) &'a State);

impl Serialize for StateObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// An execution as an object.
pub(crate) fn witness(witness: &Witness) -> WitnessObject<'_> {
    WitnessObject {
        events: (witness.events.iter())
            .map(|e| EventJson {
                thread: &e.thread_name,
                agent: e.agent.as_deref(),
                line: &e.line,
                action: &e.action,
                text: &e.text,
            })
            .collect(),
        relations: witness
            .relations
            .iter()
            .map(|(name, pairs)| (name.as_str(), pairs.as_slice()))
            .collect(),
        state: StateObject(&witness.state),
        ends: witness.ends.iter().map(end_object).collect(),
        waits: hang::picture(&witness.ends).1,
    }
}

fn wait(wait: &Wait) -> WaitObject<'_> {
    fn sites(sites: &[Site]) -> Vec<SiteObject<'_>> {
        sites
            .iter()
            .map(|s| SiteObject {
                thread: &s.thread,
                line: &s.line,
            })
            .collect()
    }
    WaitObject {
        r#for: match &wait.goal {
            Goal::Value(what) | Goal::Change(what) | Goal::Event(what) => what,
            Goal::Barrier => "barrier",
        },
        helpers: sites(&wait.helpers),
        only: wait.only,
        missed: sites(&wait.missed),
    }
}

/// The final states of threads as a list.
pub(crate) fn end_objects<S: serde::Serializer>(
    ends: &[ThreadEnd],
    out: S,
) -> Result<S::Ok, S::Error> {
    out.collect_seq(ends.iter().map(end_object))
}

fn end_object(end: &ThreadEnd) -> EndObject<'_> {
    let mut reads: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (place, value) in &end.polls {
        reads.entry(place).or_default().push(value);
    }
    EndObject {
        thread: &end.thread,
        end: end.ending.word(),
        line: &end.line,
        text: end.text.trim(),
        served: end.served,
        waits_for: &end.waits_for,
        reads,
        period: end.period,
        waits: end.waits.iter().map(wait).collect(),
        why: &end.why,
    }
}
