//! Observations: the outcomes that the executor showed, with counts, compared with the model.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use indexmap::IndexMap;
use serde::Serialize;

use diag::SourceLine;

use super::execution;
use super::line::PartOf;
use verdict::{State, ThreadEnd};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// An observed outcome.
#[derive(Clone, Debug)]
pub struct ObservedOutcome {
    /// Final values.
    pub state: State,
    /// The number of runs; for an exhaustive exploration, the number of final states.
    pub count: u64,
    /// Whether the model allows it; `None`: undecided.
    pub allowed: Option<bool>,
    /// A run with this outcome, step by step, if requested.
    pub trace: Option<String>,
}

/// Runs that did not finish, grouped by reason.
#[derive(Clone, Debug, Serialize)]
pub struct UnfinishedRuns {
    /// The kind: `deadlock`, `livelock`, …
    pub how: &'static str,
    /// The number of runs; for an exhaustive exploration, the number of states or cycles of states.
    pub count: u64,
    /// The reason, line by line.
    pub why: Vec<String>,
    /// The state of each thread, if the program has few.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "execution::end_objects"
    )]
    pub ends: Vec<ThreadEnd>,
    /// One of the runs, step by step, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Two racing accesses.
#[derive(Clone, Debug, Serialize)]
pub struct RacePair {
    /// The accessed location.
    pub location: String,
    /// Its address space.
    pub space: &'static str,
    /// The accesses: thread, place and line.
    pub sides: [String; 2],
    /// The missing synchronization.
    pub why: String,
    /// The number of observations.
    pub count: u64,
}

/// An instruction that is involved in undefined behaviour.
#[derive(Clone, Debug, Serialize)]
pub struct HazardPart {
    /// The thread's name.
    pub thread: String,
    /// The line in the test's file.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The instruction as written.
    pub text: String,
}

/// Observed undefined behaviour.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedHazard {
    /// Its name: `data race`, `divergence`, `barrier arguments`, …
    pub kind: &'static str,
    /// Whether it makes the program undefined; otherwise its effect is implementation-defined.
    #[serde(skip)]
    pub undefined: bool,
    /// The location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// One instruction, or two.
    pub parts: Vec<HazardPart>,
}

/// Undefined behaviour, as observed and according to the model.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Hazards {
    /// The observed cases.
    pub observed: Vec<ObservedHazard>,
    /// The model's verdict on races.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub race: Option<&'static str>,
    /// The model's verdict on all undefined behaviour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<&'static str>,
}

/// A test's expectation for runs, and its result.
#[derive(Clone, Debug, Serialize)]
pub struct RunExpected {
    /// The line in the test's file.
    pub line: u32,
    /// The settings of the runs, and the expectation.
    #[serde(rename = "run")]
    pub text: String,
    /// Whether it is met; `None`: the runs do not decide it.
    pub met: Option<bool>,
    /// If it is not met: the actual observations; if undecided: the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// The observations for one test.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// As in [`super::AnswerLine`].
    pub path: String,
    /// As in [`super::AnswerLine`].
    pub test: String,
    /// As in [`super::AnswerLine`].
    pub model: String,
    /// As in [`super::AnswerLine`].
    pub mapping: Option<&'static str>,
    /// The memory and its early choices.
    pub memory: String,
    /// `random`, `exhaustive` or `replay`.
    pub schedule: &'static str,
    /// The number of random runs and their seed.
    pub runs: Option<(u64, u64)>,
    /// Whether the machine can show no other outcome.
    pub complete: bool,
    /// Why an exploration, or the model's list, is incomplete.
    pub reason: Option<String>,
    /// Why the test cannot run at all.
    pub refused: Option<String>,
    /// No run finished, although nothing requires that. So there is no outcome to compare with the
    /// model.
    pub unfinished: bool,
    /// Sorted by state.
    pub observed: Vec<ObservedOutcome>,
    /// Outcomes that the model allows and no run showed.
    pub not_observed: Vec<State>,
    /// Undefined behaviour, if the memory detects it.
    pub hazards: Option<Hazards>,
    /// The numbers of runs by kind of end, without zeros.
    pub ended: Vec<(&'static str, u64)>,
    /// Why runs did not finish.
    pub stops: Vec<UnfinishedRuns>,
    /// Races in the checked runs.
    pub races: Vec<RacePair>,
    /// The number of runs checked for races.
    pub judged: u64,
    /// Why none were checked, if the machine cannot detect races.
    pub not_judged: Option<String>,
    /// The number of outcomes with a run that was replayed through the model; `None` if replay is
    /// off.
    pub replayed: Option<usize>,
    /// Why some were not replayed.
    pub not_replayed: Option<&'static str>,
    /// The test's expectations for runs, in its order.
    pub expected: Vec<RunExpected>,
    /// The number of visited states; for random runs, of steps.
    pub states: u64,
    /// Whether the list of allowed outcomes is complete.
    pub listed: bool,
    /// The test is too large for the model; nothing was compared.
    pub too_large: bool,
    /// The loop bound that the model needed.
    pub bound: Option<u32>,
    /// A broken law: an observed outcome is forbidden, or engines differ.
    pub defect: Option<String>,
    /// Wall time in milliseconds, if timings are on.
    pub ms: Option<f64>,
    /// The position in the whole run, if this run is a part of it.
    pub part: Option<PartOf>,
    /// The object of an earlier run, to be written again unchanged.
    pub kept: Option<String>,
}

impl Observations {
    /// The schedule name for observations of a device.
    pub const ON_DEVICE: &'static str = "device";

    /// Why the result is incomplete; the cause of a run's end does not count.
    pub fn limit(&self) -> Option<&str> {
        self.reason
            .as_deref()
            .filter(|why| !self.stops.iter().any(|s| s.why.iter().any(|w| w == why)))
    }

    /// Why there is no result, if so.
    pub fn undecided(&self) -> Option<&str> {
        let unfinished = self
            .unfinished
            .then_some("no run finished: the model has no outcome to judge");
        self.refused.as_deref().or(unfinished).or(self.limit())
    }

    /// Whether the user should look at it.
    pub fn striking(&self) -> bool {
        self.refused.is_some()
            || self.unfinished
            || self.defect.is_some()
            || self.observed.iter().any(|o| o.allowed != Some(true))
            || self.expected.iter().any(|e| e.met != Some(true))
    }
}

#[derive(Serialize)]
struct ObservedObject<'a> {
    state: execution::StateObject<'a>,
    count: u64,
    allowed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a str>,
}

#[derive(Serialize)]
struct ObservationsObject<'a> {
    path: &'a str,
    test: &'a str,
    model: &'a str,
    schedule: &'a str,
    runs: Option<u64>,
    complete: bool,
    observed: Vec<ObservedObject<'a>>,
    not_observed: Vec<execution::StateObject<'a>>,
    ended: IndexMap<&'a str, u64>,
    memory: &'a str,
    seed: Option<u64>,
    bound: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stops: &'a [UnfinishedRuns],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    races: &'a [RacePair],
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hazards: Option<&'a Hazards>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    expected: &'a [RunExpected],
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_replayed: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'a PartOf>,
}

impl Hazards {
    /// The model's verdicts, as a suffix for the observations.
    fn of_model(&self) -> String {
        let words: Vec<&str> = [self.race, self.undefined].into_iter().flatten().collect();
        if words.is_empty() {
            String::new()
        } else {
            format!("; the model: {}", words.join(", "))
        }
    }
}

/// Writes the object for one test, without a line end.
pub(super) fn write(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    if let Some(object) = &seen.kept {
        return out.write_all(object.as_bytes());
    }
    let observed = seen.observed.iter().map(|o| ObservedObject {
        state: execution::StateObject(&o.state),
        count: o.count,
        allowed: o.allowed,
        trace: o.trace.as_deref(),
    });
    let object = ObservationsObject {
        path: &seen.path,
        test: &seen.test,
        model: &seen.model,
        schedule: seen.schedule,
        runs: seen.runs.map(|r| r.0),
        complete: seen.complete,
        observed: observed.collect(),
        not_observed: seen
            .not_observed
            .iter()
            .map(execution::StateObject)
            .collect(),
        ended: seen.ended.iter().copied().collect(),
        memory: &seen.memory,
        seed: seen.runs.map(|r| r.1),
        bound: seen.bound,
        stops: &seen.stops,
        races: &seen.races,
        judged: (seen.judged > 0).then_some(seen.judged),
        reason: seen.undecided().or(seen.reason.as_deref()),
        ms: seen.ms,
        defect: seen.defect.as_deref(),
        mapping: seen.mapping,
        hazards: seen.hazards.as_ref(),
        expected: &seen.expected,
        replayed: seen.replayed,
        not_replayed: seen.not_replayed,
        part: seen.part.as_ref(),
    };
    super::compact::write(out, &object)
}

/// Writes it as text: one row per outcome, observed ones first.
pub(super) fn human(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    write!(out, "{BOLD}{}{BOLD:#} under {}", seen.test, seen.model)?;
    if let Some(mapping) = seen.mapping {
        write!(out, " via {mapping}")?;
    }
    if let Some(why) = &seen.refused {
        writeln!(out, ": {UNSURE}not run{UNSURE:#}: {why}")?;
        expected(out, seen)?;
        return writeln!(out);
    }
    settings(out, seen)?;
    rows(out, seen)?;
    let ended: Vec<String> = seen
        .ended
        .iter()
        .map(|(how, n)| format!("{n} {how}"))
        .collect();
    if let Some(h) = &seen.hazards {
        if seen.schedule == Observations::ON_DEVICE {
            // Devices do not report it.
            writeln!(
                out,
                "  {UNSURE}undefined{UNSURE:#}: any outcome is possible{}",
                h.of_model()
            )?;
        } else {
            hazards(
                out,
                h,
                seen.stops
                    .iter()
                    .any(|s| matches!(s.how, "stray" | "division" | "divergence")),
            )?;
        }
    }
    writeln!(
        out,
        "  ended: {}",
        if ended.is_empty() {
            "nothing".into()
        } else {
            ended.join(", ")
        }
    )?;
    stops_and_races(out, seen)?;
    limits(out, seen)?;
    expected(out, seen)?;
    traces(out, seen)?;
    writeln!(out)
}

/// Writes the memory, the schedule and the time of the runs.
fn settings(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    write!(out, ": {}", seen.memory)?;
    match (seen.runs, seen.complete) {
        (Some((runs, seed)), _) if seen.schedule == Observations::ON_DEVICE => {
            write!(out, ", {runs} instances of seed {seed}")?;
        }
        (Some((runs, seed)), _) => write!(out, ", {runs} random runs of seed {seed}")?,
        (None, true) => write!(out, ", every schedule")?,
        (None, false) => write!(out, ", {}", seen.schedule)?,
    }
    writeln!(
        out,
        "{}",
        seen.ms.map_or(String::new(), |ms| format!(", {ms} ms"))
    )?;
    Ok(())
}

/// Writes runs that did not finish, and races.
fn stops_and_races(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    for stop in &seen.stops {
        let n = if stop.count == 1 {
            String::new()
        } else {
            format!(" ({} times)", stop.count)
        };
        writeln!(out, "  {UNSURE}{}{UNSURE:#}{n}:", stop.how)?;
        stop.why
            .iter()
            .try_for_each(|line| writeln!(out, "    {line}"))?;
        execution::picture(out, &stop.ends)?;
    }
    for race in &seen.races {
        let n = if race.count == 1 {
            String::new()
        } else {
            format!(" ({} times)", race.count)
        };
        writeln!(
            out,
            "  {UNSURE}race{UNSURE:#} on `{}` in {} memory{n}: {}",
            race.location, race.space, race.why
        )?;
        race.sides
            .iter()
            .try_for_each(|side| writeln!(out, "    {side}"))?;
    }
    match (&seen.not_judged, seen.judged) {
        (Some(why), _) => writeln!(out, "  {DIM}{why}{DIM:#}")?,
        (None, n) if n > 0 && seen.races.is_empty() => {
            writeln!(
                out,
                "  {DIM}no race in {n} run{}{DIM:#}",
                if n == 1 { "" } else { "s" }
            )?;
        }
        _ => {}
    }
    Ok(())
}

/// Writes why the result is incomplete, and further remarks on the comparison with the model.
fn limits(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    if let Some(why) = seen.undecided().filter(|_| seen.unfinished) {
        writeln!(out, "  {UNSURE}undecided:{UNSURE:#} {why}")?;
    } else if let Some(why) = seen.limit() {
        writeln!(out, "  {UNSURE}not complete:{UNSURE:#} {why}")?;
    }
    if let Some(why) = seen.not_replayed {
        let n = seen.observed.len() - seen.replayed.unwrap_or(0);
        writeln!(
            out,
            "  {DIM}{n} of {} outcomes without a run replayed through the model: {why}{DIM:#}",
            seen.observed.len()
        )?;
    }
    if let Some(bound) = seen.bound {
        writeln!(out, "  the model's answer is for loop bound {bound}")?;
    }
    if let Some(defect) = &seen.defect {
        writeln!(out, "  {BAD}DEFECT:{BAD:#} {defect}")?;
    }
    Ok(())
}

/// Writes the requested traces.
fn traces(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    for o in &seen.observed {
        if let Some(trace) = &o.trace {
            let values: Vec<String> = o
                .state
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            let to = if values.is_empty() {
                "its end".to_owned()
            } else {
                values.join(", ")
            };
            writeln!(out, "  a run to {to}:\n{}", trace.trim_end())?;
        }
    }
    for stop in &seen.stops {
        if let Some(trace) = &stop.trace {
            writeln!(out, "  a run to {}:\n{}", stop.how, trace.trim_end())?;
        }
    }
    Ok(())
}

/// Writes the test's expectations for runs.
fn expected(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    for e in &seen.expected {
        let (style, word) = match e.met {
            Some(true) => (GOOD, "as expected"),
            Some(false) => (BAD, "NOT MET"),
            None => (UNSURE, "undecided"),
        };
        writeln!(out, "  {style}{word}{style:#}: line {}, {}", e.line, e.text)?;
        e.why
            .iter()
            .try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    Ok(())
}

/// Writes observed faults once for each pair of instructions: threads and elements of a kernel
/// differ, but the fault is the same. Reports for programs list every one.
fn hazards(out: &mut dyn Write, seen: &Hazards, faults: bool) -> io::Result<()> {
    fn lines(h: &ObservedHazard) -> Vec<u32> {
        h.parts.iter().map(|p| p.line.number).collect::<Vec<_>>()
    }
    let mut told: Vec<(&ObservedHazard, u64)> = Vec::new();
    for h in &seen.observed {
        match told
            .iter_mut()
            .find(|(first, _)| first.kind == h.kind && lines(first) == lines(h))
        {
            Some((_, more)) => *more += 1,
            None => told.push((h, 0)),
        }
    }
    for (h, more) in told {
        let place = h
            .place
            .as_ref()
            .map_or(String::new(), |p| format!(" on {p}"));
        let parts = h
            .parts
            .iter()
            .map(|p| format!("{} line {}: `{}`", p.thread, p.line, p.text));
        write!(
            out,
            "  {BAD}{}{BAD:#}{place}: {}",
            h.kind,
            parts.collect::<Vec<_>>().join(" and ")
        )?;
        let same = if h.parts.len() == 1 {
            "on this line"
        } else {
            "between these lines"
        };
        writeln!(
            out,
            "{}",
            if more == 0 {
                String::new()
            } else {
                format!("; {more} more {same}")
            }
        )?;
    }
    let proved = seen.race != Some("racy") && seen.undefined == Some("defined");
    let model = seen.of_model();
    if seen.observed.is_empty() && faults {
        // The cause of the run's end is undefined, too, and reported below.
        return Ok(());
    }
    if seen.observed.is_empty() {
        // In-order runs miss executions and their races.
        let proof = if proved {
            ""
        } else {
            ", but runs prove nothing"
        };
        writeln!(out, "  no undefined behaviour observed{proof}{model}")
    } else if seen.observed.iter().all(|h| !h.undefined) {
        writeln!(
            out,
            "  implementation-defined: these runs show the behaviour of one implementation{model}"
        )
    } else {
        writeln!(out, "  undefined: any outcome is possible{model}")
    }
}

/// The limit on listed outcomes that were not observed.
const MAX_MISSING: usize = 24;

fn rows(out: &mut dyn Write, seen: &Observations) -> io::Result<()> {
    let states = seen
        .observed
        .iter()
        .map(|o| &o.state)
        .chain(&seen.not_observed);
    let Some(first) = states.clone().next() else {
        return Ok(());
    };
    let mut table: Vec<(Style, Vec<String>, &str)> = vec![(
        DIM,
        first
            .iter()
            .map(|(name, _)| name.to_string())
            .chain(["count".into()])
            .collect(),
        "model",
    )];
    fn row(state: &State, count: String) -> Vec<String> {
        state
            .iter()
            .map(|(_, v)| v.to_string())
            .chain([count])
            .collect()
    }
    for o in &seen.observed {
        let (style, word) = match o.allowed {
            Some(true) => (Style::new(), "allowed"),
            Some(false) => (BAD, "FORBIDDEN"),
            None if seen.too_large => (Style::new(), "not asked"),
            None => (UNSURE, "undecided"),
        };
        table.push((style, row(&o.state, o.count.to_string()), word));
    }
    for state in seen.not_observed.iter().take(MAX_MISSING) {
        table.push((DIM, row(state, "-".into()), "allowed, not observed"));
    }
    let widths: Vec<usize> = (0..=first.len())
        .map(|i| {
            table
                .iter()
                .map(|r| r.1[i].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for (style, cells, word) in &table {
        let cells: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(c, w)| format!("{c:>w$}"))
            .collect();
        writeln!(out, "  {style}{}  {word}{style:#}", cells.join(" "))?;
    }
    if let more @ 1.. = seen.not_observed.len().saturating_sub(MAX_MISSING) {
        writeln!(
            out,
            "  {DIM}… and {more} more that are allowed and were not observed{DIM:#}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Observations {
        let state = |v: &str| vec![("P1:r0".into(), v.into())];
        let observed = |v, count, allowed| ObservedOutcome {
            state: state(v),
            count,
            allowed,
            trace: None,
        };
        Observations {
            path: "MP.toml".into(),
            test: "MP".into(),
            model: "ptx".into(),
            memory: "weak memory, early binds: none".into(),
            schedule: "random",
            runs: Some((100, 7)),
            observed: vec![observed("0", 98, Some(true)), observed("1", 2, None)],
            not_observed: vec![state("2")],
            ended: vec![("finished", 100)],
            ..Observations::default()
        }
    }

    #[test]
    fn keys_come_in_the_promised_order() {
        let mut out = Vec::new();
        write(&mut out, &sample()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"path":"MP.toml","test":"MP","model":"ptx","schedule":"random","runs":100,"complete":false,"observed":[{"state":{"P1:r0":"0"},"count":98,"allowed":true},{"state":{"P1:r0":"1"},"count":2,"allowed":null}],"not_observed":[{"P1:r0":"2"}],"ended":{"finished":100},"memory":"weak memory, early binds: none","seed":7,"bound":null}"#
        );
    }

    #[test]
    fn people_see_every_outcome() {
        let mut out = Vec::new();
        human(&mut out, &sample()).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        let expected = "\
MP under ptx: weak memory, early binds: none, 100 random runs of seed 7
  P1:r0 count  model
      0    98  allowed
      1     2  undecided
      2     -  allowed, not observed
  ended: 100 finished

";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_fault_is_told_once_for_its_lines() {
        let part = |thread: &str, line: u32| HazardPart {
            thread: thread.into(),
            line: line.into(),
            text: "s[t] = s[t + 1];".into(),
        };
        let race = |place: &str, parts: [HazardPart; 2]| ObservedHazard {
            kind: "data race",
            undefined: true,
            place: Some(place.into()),
            parts: parts.into(),
        };
        let hazards = |observed, undefined| Hazards {
            observed,
            race: Some("race-free"),
            undefined,
        };
        let told = |h: &Hazards| {
            let mut out = Vec::new();
            super::hazards(&mut out, h, false).unwrap();
            anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string()
        };
        let observed = vec![
            race("s[1]", [part("P0", 3), part("P1", 3)]),
            race("s[2]", [part("P1", 3), part("P2", 3)]),
            race("s[3]", [part("P2", 3), part("P3", 4)]),
        ];
        let expected = "  data race on s[1]: P0 line 3: `s[t] = s[t + 1];` and P1 line 3: `s[t] = \
            s[t + 1];`; 1 more between these lines
  data race on s[3]: P2 line 3: `s[t] = s[t + 1];` and P3 line 4: `s[t] = s[t + 1];`
  undefined: any outcome is possible; the model: race-free
";
        assert_eq!(told(&hazards(observed, None)), expected);
        // The note that runs are no proof appears only if the model does not decide.
        assert!(!told(&hazards(vec![], Some("defined"))).contains("runs prove nothing"));
        assert!(told(&hazards(vec![], Some("undecided"))).contains("runs prove nothing"));
    }
}
