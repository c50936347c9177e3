//! Decides programs of many threads whose synchronisation does not depend on their schedule, by one
//! run.
//!
//! Barriers and mbarrier objects with counted phases let each execution go the same way. Then one
//! run has the accesses of all executions, and an order of them that every execution has. Two
//! accesses race in some execution if and only if that order leaves them apart.
//!
//! # Why one run suffices
//! - *The same accesses.* A thread's way depends on values of registers alone, and these depend on
//!   memory that no other thread writes, or on nothing: a branch or an address on any other value
//!   gives the run up. So every execution without a race has the same accesses, or ends earlier.
//! - *The same phases.* A thread arrives only in a phase whose predecessors it knows to be over, so
//!   each phase has the same arrivals in every execution.
//! - *No more order than every execution has.* A wait takes over the first phase that lets it pass
//!   and that it does not know to be over. If it could pass later phases as well, it knows more in
//!   some executions, and never less. An operation is known from its signal on, and the signals of
//!   a run come as late as they can.
//! - *A race is one.* Up to the first two accesses without order, an execution goes as the run, and
//!   it may have the two in either order.
//!
//! - *No misuse.* Every execution has the operations of the run, on the same words up to the order
//!   of arrivals in a phase. `run/rules.rs` holds them against the rules of the models.
//! - *An end.* Each wait of the run passes. It passes in every execution, if the phase behind the
//!   one that it awaits cannot be over before it looks.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model; the clauses are those of `models/ptx.cat`, with
//!   `async-fence = path`. A run gives up a program with a strong access, a fence of memory, a
//!   relaxed operation on an mbarrier object, a second address of memory, or a barrier with fewer
//!   arrivals than threads.
//! - CUDA C++: `models/cuda-base.cat`. A run gives up a program with an atomic or volatile access,
//!   or a fence. So barriers alone order its accesses, and a program without a race has no other
//!   results than its turns in any order.
//! - Determinate programs: R. M. Karp, R. E. Miller, "Parallel Program Schemata", JCSS 1969.
//!
//! # Where we differ
//! - `elect.sync` elects the first lane of a warp in one run and the last lane in another. That is
//!   an assumption of the answer: lanes between them are taken for their like.

mod barriers;
mod clock;
mod places;
mod run;
mod shadow;
mod tensor_memory;

use std::time::Instant;

use cat::model::ir::Model;
use program::litmus::LitmusTest;
use program::options::Setting;
use program::{Dialect, Tag};
use run::{EarlyEnd, SteadyRun};
use shadow::{RunRace, Touch};
use verdict::{Fault, FaultEvent, RacingPair, WitnessEvent};

/// What the runs of a program show.
#[derive(Clone, Debug)]
pub enum SteadyAnswer {
    /// Every execution goes as the run, with these races, and these threads wait forever in it.
    Decided {
        /// The races, by two lines each.
        races: Vec<RacingPair>,
        /// The waits that never end, in words.
        waits: Vec<String>,
        /// A wait that may not end in another execution, in words.
        missable: Option<String>,
        /// Why some execution may be undefined in another way than by a race, in words; `None`:
        /// none is.
        doubt: Option<String>,
        /// The number of events of a run.
        events: usize,
        /// Whether the program elects lanes.
        elects: bool,
    },
    /// An operation breaks its precondition.
    Misused(Box<Fault>, SteadyRaces),
    /// These threads wait forever in the run, which has these races. Other executions may go
    /// another way; the reason.
    HangsOnce {
        /// The races of the run.
        races: SteadyRaces,
        /// The waits that never end, in words.
        waits: Vec<String>,
        /// Why other executions may differ.
        why: String,
    },
    /// The run has these races, and says nothing of what comes behind them; the reason.
    RacyUntil(SteadyRaces, String),
    /// The run says nothing of other executions; the reason.
    Open(String),
}

/// The races of a run that says nothing of later accesses.
#[derive(Clone, Debug)]
pub struct SteadyRaces {
    /// The races, by two lines each.
    pub pairs: Vec<RacingPair>,
    /// A phase that ends too early, in words.
    pub early: Option<String>,
}

/// Runs a program, if a model and its settings are those that the order of a run has.
pub fn steady(
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    deadline: Option<Instant>,
) -> SteadyAnswer {
    let program = &test.program;
    let own = [(Dialect::Ptx, "ptx"), (Dialect::Cuda, "cuda")];
    if !own.contains(&(program.dialect, model.name.as_str())) {
        return SteadyAnswer::Open(format!("the model `{}`", model.name));
    }
    if !set.is_empty() || !test.options.is_empty() {
        return SteadyAnswer::Open("other readings of the model".to_owned());
    }
    let elects = program.instrs().any(|(_, _, instr)| run::elects(instr));
    let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let mut found = None;
    for last_lane in [false, true] {
        if last_lane && !elects {
            break;
        }
        let answer = one_run(test, last_lane, elects, &late);
        let is_clean = matches!(&answer, SteadyAnswer::Decided { races, waits, .. }
            if races.is_empty() && waits.is_empty());
        if !is_clean {
            return answer;
        }
        found = Some(answer);
    }
    found.unwrap_or_else(|| SteadyAnswer::Open("no run".to_owned()))
}

fn one_run(
    test: &LitmusTest,
    last_lane: bool,
    elects: bool,
    late: &dyn Fn() -> bool,
) -> SteadyAnswer {
    let mut run = match SteadyRun::new(&test.program, last_lane) {
        Ok(run) => run,
        Err(why) => return SteadyAnswer::Open(why),
    };
    let end = run.finish(late);
    let races = run.shadow.races.iter();
    let races: Vec<RacingPair> = races.map(|race| pair(test, &run, race)).collect();
    let early = run.early();
    let until = |pairs| SteadyRaces { pairs, early };
    let waits = match end {
        Ok(waits) => waits,
        Err(EarlyEnd::Unsteady(why)) if races.is_empty() => return SteadyAnswer::Open(why),
        Err(EarlyEnd::Unsteady(why)) => return SteadyAnswer::RacyUntil(until(races), why),
        Err(EarlyEnd::Misuse(t, at)) => {
            return SteadyAnswer::Misused(Box::new(misuse(test, t, at)), until(races));
        }
    };
    let missable = run.missable().map(|(t, at)| {
        let thread = &test.program.threads[t];
        let instr = &thread.code[at];
        format!(
            "{} may come to line {} (`{}`) when a later phase is over, too",
            thread.name, instr.line, instr.text
        )
    });
    let waits = waits.iter().map(|(t, at)| {
        let thread = &test.program.threads[*t];
        let instr = &thread.code[*at];
        let wait = format!(
            "{} waits at line {} (`{}`)",
            thread.name, instr.line, instr.text
        );
        match run.state_of_wait(*t, *at) {
            Some(state) => format!("{wait}, and {state}"),
            None => wait,
        }
    });
    let waits = waits.collect::<Vec<_>>();
    match run.unclear() {
        Some(why) if !waits.is_empty() => {
            let races = until(races);
            return SteadyAnswer::HangsOnce { races, waits, why };
        }
        Some(why) if !races.is_empty() => return SteadyAnswer::RacyUntil(until(races), why),
        Some(why) => return SteadyAnswer::Open(why),
        None => {}
    }
    SteadyAnswer::Decided {
        races,
        waits,
        missable,
        doubt: run.undoubted().err(),
        events: run.events,
        elects,
    }
}

/// An event for reports.
fn event(test: &LitmusTest, site: (usize, usize), action: String, noun: &str) -> FaultEvent {
    let thread = &test.program.threads[site.0];
    let instr = &thread.code[site.1];
    let agent = instr.op.has(Tag::Asynchronous).then(|| "agent".to_owned());
    FaultEvent {
        event: WitnessEvent {
            thread: Some(site.0),
            thread_name: thread.name.clone(),
            agent,
            line: instr.line.clone(),
            action,
            text: instr.text.clone(),
        },
        noun: noun.to_owned(),
        at: None,
        span: Some(instr.span),
    }
}

fn pair(test: &LitmusTest, run: &SteadyRun<'_>, race: &RunRace) -> RacingPair {
    let place = tensor_memory::name(race.address).or_else(|| run.memory.name(race.address));
    let name = place.clone().unwrap_or_default();
    let of = |touch: &Touch| {
        let (mark, noun) = if touch.write {
            ("W", "store")
        } else {
            ("R", "load")
        };
        event(test, touch.site, format!("{mark} {name}"), noun)
    };
    RacingPair {
        place,
        events: [of(&race.first), of(&race.second)],
    }
}

/// The fault of a race, by its pair.
pub fn race_fault(pair: &RacingPair) -> Fault {
    let place = pair.place.clone();
    let object = place.as_deref().map(|place| {
        let name = place.split_once(':').map_or(place, |parts| parts.1);
        name.split(['[', '.']).next().unwrap_or(name).to_owned()
    });
    Fault {
        flag: "race".to_owned(),
        relation: "race".to_owned(),
        race: true,
        lifetime: false,
        place,
        object,
        events: pair.events.to_vec(),
        why: Vec::new(),
        remedy: None,
        execution: None,
    }
}

fn misuse(test: &LitmusTest, t: usize, at: usize) -> Fault {
    Fault {
        flag: "undefined".to_owned(),
        relation: "misuse".to_owned(),
        race: false,
        lifetime: false,
        place: None,
        object: None,
        events: vec![event(test, (t, at), "F".to_owned(), "operation")],
        why: Vec::new(),
        remedy: None,
        execution: None,
    }
}
