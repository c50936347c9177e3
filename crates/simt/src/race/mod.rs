//! Finds races in a run: conflicting accesses without order.
//!
//! Two accesses of one location by different threads conflict if one of them is a write. They race
//! unless one comes before the other ([`order`]) or both are strong with scopes that include each
//! other. A race is a fact about the run; a run without a race says nothing about others. In PTX a
//! race is information; in CUDA C++ it makes the program undefined.
//!
//! # Invariants
//! - Asynchronous operations are separate threads, their agents. An access of the async proxy and
//!   one of the generic proxy have an order only with a proxy fence between them ([`clock`]). So
//!   have a write of a tensor map and a copy that reads the map.
//! - For each location, it keeps the latest access of each kind and thread. Earlier ones of the
//!   kind come before it, so a later access that races with one of them also races with the latest.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, *Morally strong operations*, *Conflict and data-races*.
//! - libcu++, *Memory model*, *Atomicity* and *Data races*.

mod clock;
mod order;
mod why;

use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::LazyCell;
use std::fmt;
use std::sync::Arc;

use super::code::{Access, Code};
use super::place::place;
use super::record::{HazardKind, RunEvent, RunHazard};
use super::schedule::Recorded;
use order::{Requirement, RunOrder, Touch};
use program::{Proxy, Scope, SourceLine, TENSOR_TAGS};

/// One of the two accesses of a race.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RacingAccess {
    /// The thread's number.
    pub thread: usize,
    /// Its name.
    pub name: String,
    /// Its place: block, warp and lane, or the host.
    pub place: String,
    /// The line of the instruction in the test's file.
    pub line: SourceLine,
    /// The instruction as written.
    pub text: String,
    /// Whether it writes.
    pub write: bool,
}

/// Two accesses that race.
#[derive(Clone, Debug)]
pub struct Race {
    /// The location that they access.
    pub location: String,
    /// Its address space, as in the test format.
    pub space: &'static str,
    /// The earlier one in the run.
    pub first: RacingAccess,
    /// The later one.
    pub second: RacingAccess,
    /// The missing condition.
    pub why: String,
    /// The number of pairs of threads and locations that race at these two instructions, over all
    /// runs examined.
    pub count: u64,
    /// A run that contains it.
    pub schedule: Recorded,
    /// Further runs that contain it, at most [`MOST_RUNS`]: a test may leave out the first one.
    /// [`Race::runs`] completes them.
    also: Vec<Arc<Recorded>>,
}

/// The number of further runs that are kept with a race.
const MOST_RUNS: usize = 50;

impl Race {
    /// The runs that are kept, with the options of the first one.
    pub fn runs(&self) -> impl Iterator<Item = Recorded> {
        let first = &self.schedule;
        let others = self.also.iter().map(|run| Recorded {
            memory: first.memory.clone(),
            early: first.early.clone(),
            scheduling: first.scheduling.clone(),
            launch: first.launch,
            patient: first.patient,
            lazy: first.lazy,
            ..Recorded::clone(run)
        });
        std::iter::once(first.clone()).chain(others)
    }
}

impl fmt::Display for RacingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = if self.write { "writes" } else { "reads" };
        write!(
            f,
            "{} ({}) {does} at line {}: `{}`",
            self.name, self.place, self.line, self.text
        )
    }
}

/// Checks that the program's runs can be examined for races; if not, says why.
pub(super) fn applies(code: &Code) -> Result<(), String> {
    let dialect = code.program.dialect;
    let mut instrs = code.program.instrs();
    if instrs.any(|(_, _, instr)| instr.op.has_any(&TENSOR_TAGS)) {
        return Err("the executor does not search for races in tensor memory".into());
    }
    match dialect.row().race_rules {
        Some(_) if !code.agents.is_empty() && code.program.host.is_some() => Err(
            "the executor does not search for races in host programs with asynchronous operations"
                .into(),
        ),
        Some(_) if code.plain || has_no_other_proxy(code) => Ok(()),
        Some(_) => {
            Err("the executor does not search for races in programs with proxies or aliases".into())
        }
        None => Err(format!(
            "the executor does not search for races in runs of {dialect} code"
        )),
    }
}

/// Whether every location is accessed by its own name, through the generic proxy or, by
/// asynchronous operations, through the async proxy and, for tensor maps, the tensormap proxy.
fn has_no_other_proxy(code: &Code) -> bool {
    code.memory
        .cells
        .iter()
        .enumerate()
        .all(|(i, cell)| cell.memory.0 as usize == i)
        && code.threads.iter().flat_map(|t| &t.acts).all(|act| {
            act.accesses()
                .all(|access| matches!(access.proxy, Proxy::Generic | Proxy::Async))
        })
}

/// An access that is kept for comparison with later ones.
#[derive(Clone, Copy, Debug)]
struct PastAccess {
    touch: Touch,
    /// Its number among the events of its thread.
    time: u32,
    /// The number of barriers of its block that the thread had passed.
    epoch: u32,
}

/// A race by thread and instruction.
#[derive(Clone, Copy, Debug)]
struct RacingAccesses {
    first: PastAccess,
    second: PastAccess,
}

impl RacingAccesses {
    /// The threads, instructions and locations of both accesses.
    fn places(&self) -> [(usize, usize, usize); 2] {
        [&self.first, &self.second].map(|p| (p.touch.thread, p.touch.instr, p.touch.loc))
    }
}

/// The races of a run. Threads of a launch race pair by pair at the same two lines, so the first
/// race of two lines stands for all.
struct RunRaces<'c> {
    code: &'c Code,
    /// Whether a race counts.
    counts: &'c dyn Fn(&RacingAccesses) -> bool,
    /// The places of all races.
    places: FxHashSet<[(usize, usize, usize); 2]>,
    /// The number in `all` of two lines.
    of_lines: FxHashMap<[(&'c SourceLine, &'c str); 2], usize>,
    /// The first race of two lines, and the number of races there.
    all: Vec<(RacingAccesses, u64)>,
}

impl<'c> RunRaces<'c> {
    fn new(code: &'c Code, counts: &'c dyn Fn(&RacingAccesses) -> bool) -> RunRaces<'c> {
        RunRaces {
            code,
            counts,
            places: FxHashSet::default(),
            of_lines: FxHashMap::default(),
            all: Vec::new(),
        }
    }

    fn add(&mut self, race: RacingAccesses) {
        if !(self.counts)(&race) || !self.places.insert(race.places()) {
            return;
        }
        let threads = &self.code.program.threads;
        let lines = [&race.first, &race.second].map(|p| {
            let instr = &threads[p.touch.thread].code[p.touch.instr];
            (&instr.line, instr.text.as_str())
        });
        let at = *self.of_lines.entry(lines).or_insert(self.all.len());
        if at == self.all.len() {
            self.all.push((race, 0));
        }
        self.all[at].1 += 1;
    }
}

/// The message when time ran out.
pub(super) const NOT_ALL: &str = "the search for races ran out of time before the last run";

/// The part of a run that was examined for races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RaceCoverage {
    /// The whole run.
    Through,
    /// A first part, until the time was over.
    Late,
    /// Nothing: early binds in the run hide some handovers.
    Open,
}

/// Examines a run for races, and adds them to the known ones.
pub(super) fn find(
    code: &Code,
    events: &[RunEvent],
    recorded: &Recorded,
    known: &mut Vec<Race>,
    late: &dyn Fn() -> bool,
) -> RaceCoverage {
    let (races, looked) = races_of(code, events, &|_| true, late);
    if looked != RaceCoverage::Open {
        add(code, events, recorded, known, races);
    }
    looked
}

/// Like [`find`], but only explains the races that the memory found.
pub(super) fn explain(
    code: &Code,
    events: &[RunEvent],
    recorded: &Recorded,
    hazards: &[RunHazard],
    known: &mut Vec<Race>,
    late: &dyn Fn() -> bool,
) {
    fn at(p: &PastAccess) -> (usize, usize) {
        (p.touch.thread, p.touch.instr)
    }
    let of_memory = hazards.iter().filter(|h| h.kind == HazardKind::Race);
    let of_memory: FxHashSet<_> = of_memory.map(|h| (h.first, h.second)).collect();
    let is_of_memory = |f: &RacingAccesses| {
        let (a, b) = (at(&f.first), at(&f.second));
        of_memory.contains(&(a.min(b), Some(a.max(b))))
    };
    if !of_memory.is_empty() {
        let (races, _) = races_of(code, events, &is_of_memory, late);
        add(code, events, recorded, known, races);
    }
}

fn add(
    code: &Code,
    events: &[RunEvent],
    recorded: &Recorded,
    known: &mut Vec<Race>,
    races: RunRaces<'_>,
) {
    if races.all.is_empty() {
        return;
    }
    let run = Arc::new(recorded.clone());
    for (found, count) in races.all {
        let sides = [side(code, &found.first), side(code, &found.second)];
        if let Some(race) = known.iter_mut().find(|r| {
            (&r.first.line, &r.first.text, &r.second.line, &r.second.text)
                == (
                    &sides[0].line,
                    &sides[0].text,
                    &sides[1].line,
                    &sides[1].text,
                )
        }) {
            race.count += count;
            if race.also.len() < MOST_RUNS {
                race.also.push(run.clone());
            }
            continue;
        }
        let [first, second] = sides;
        let cell = code.cell_of(found.first.touch.loc);
        known.push(Race {
            location: cell.name.clone(),
            space: cell.space.name(),
            first,
            second,
            why: why::why(code, events, &found),
            count,
            schedule: recorded.clone(),
            also: Vec::new(),
        });
    }
}

/// The number of events between two looks at the clock.
const EVENTS_PER_LOOK: usize = 256;

/// The races of a run that count, and the part that was examined.
fn races_of<'c>(
    code: &'c Code,
    events: &[RunEvent],
    counts: &'c dyn Fn(&RacingAccesses) -> bool,
    late: &dyn Fn() -> bool,
) -> (RunRaces<'c>, RaceCoverage) {
    let mut order = RunOrder::new(code, Requirement::All);
    let mut past: Vec<Vec<PastAccess>> = vec![Vec::new(); code.locations.len()];
    let mut epochs = vec![0; code.threads.len()];
    let mut found = RunRaces::new(code, counts);
    for (i, event) in events.iter().enumerate() {
        if i.is_multiple_of(EVENTS_PER_LOOK) && late() {
            return (found, RaceCoverage::Late);
        }
        if let RunEvent::Pass(at, _) = event {
            epochs[at.thread] += 1;
        }
        order.event(event, &mut |order, touch| {
            let clock = &order.clocks[touch.thread];
            let now = PastAccess {
                touch,
                time: clock[touch.thread],
                epoch: epochs[touch.thread],
            };
            let before = |p: &PastAccess| {
                clock.orders(
                    code,
                    touch.loc,
                    p.touch.by_proxy(),
                    p.time,
                    touch.by_proxy(),
                )
            };
            let observed = LazyCell::new(|| order.observed(&touch));
            let follows = LazyCell::new(|| order.follows(touch.thread));
            let list = &mut past[touch.loc];
            for p in list.iter().filter(|p| p.touch.thread != touch.thread) {
                let same =
                    code.same_value && p.touch.value.is_some() && p.touch.value == touch.value;
                let harmless =
                    !(p.touch.write || touch.write) || together(code, &p.touch, &touch) || same;
                let pair = RacingAccesses {
                    first: *p,
                    second: now,
                };
                let is_free = || !observed.contains(&(p.touch.thread, p.time));
                if !harmless && !before(p) && is_free() {
                    found.add(pair);
                }
            }
            // An access before a plain write races with nothing that does not race with the write.
            // The completion of an operation orders nothing that came before the operation.
            let own = code.agent(touch.thread).is_none();
            let covers = touch.write && !touch.access.strong && own;
            let stands_for = |p: &PastAccess| {
                if p.touch.thread != touch.thread || !alike(&p.touch, &touch) {
                    return false;
                }
                let half = !p.touch.write && order.is_half(p.touch.thread, p.time);
                let observable = half || p.touch.write && p.touch.access.strong;
                let other = code.same_value && p.touch.write && p.touch.value != touch.value;
                let kept = other || observable && !follows.contains(&(touch.thread, p.time));
                (half && touch.write || p.touch.write == touch.write) && !kept
            };
            list.retain(|p| !(covers && before(p) || stands_for(p)));
            list.push(now);
        });
    }
    (
        found,
        if order.open {
            RaceCoverage::Open
        } else {
            RaceCoverage::Through
        },
    )
}

/// Whether two accesses have the same strength and scope.
fn alike(a: &Touch, b: &Touch) -> bool {
    fn kind(access: &Access) -> (bool, Scope, Proxy, bool) {
        (access.strong, access.scope, access.proxy, access.map)
    }
    kind(&a.access) == kind(&b.access)
}

/// Whether two accesses may be concurrent: both are strong, with scopes that include each other.
fn together(code: &Code, a: &Touch, b: &Touch) -> bool {
    if a.access.object.is_some() && b.access.object.is_some() {
        return true;
    }
    fn fit(a: &Access, b: &Access) -> bool {
        a.strong && b.strong && a.proxy == b.proxy
    }
    fit(&a.access, &b.access) && code.mutual(a.thread, a.access.scope, b.thread, b.access.scope)
}

fn side(code: &Code, past: &PastAccess) -> RacingAccess {
    let Touch {
        thread,
        instr,
        write,
        ..
    } = past.touch;
    let t = &code.program.threads[thread];
    let instr = &t.code[instr];
    RacingAccess {
        thread,
        name: t.name.clone(),
        place: place(&code.program, thread),
        line: instr.line.clone(),
        text: instr.text.clone(),
        write,
    }
}
