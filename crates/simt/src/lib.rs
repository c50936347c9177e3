//! The executor: runs a test step by step, on one of several memories, under one of several
//! schedulers.
//!
//! A [state](self) consists of a program counter and registers per thread, the phases of barriers,
//! and a memory. A step is one instruction of one thread. If the memory could go on in several
//! ways, it takes a choice. A *schedule* is the list of threads and choices. Schedules can be
//! explored exhaustively, drawn at random, recorded and replayed.
//!
//! | Module | Contents |
//! |---|---|
//! | `agents` | threads that carry out asynchronous operations |
//! | `code`, `prepare` | a test ready to run, and its preparation |
//! | `thread`, `state`, `step`, `halt` | threads, a step of one, and how it ends early |
//! | `layer` | the threads that may step: warps and resident blocks |
//! | `barrier` | arrivals and waits |
//! | `misuse` | operations of PTX that a run must not carry out |
//! | `options`, `memories` | settings of a run, and the memories |
//! | `memory` | the rules of memory: `sc`, PTX's `weak`, and those of OpenCL C, CUDA C++ and C |
//! | `choice`, `schedule` | the source of choices: exhaustive, random, replay |
//! | `identity` | the program to which a recording belongs |
//! | `record` | the log of a run, for the trace and for the checker |
//!
//! # Claims
//! - The memory `sc` has exactly the outcomes of the model `sc`.
//! - The memory `weak` has only outcomes that the model `ptx` allows. With [`Early::None`] it has
//!   exactly the outcomes of executions in which `po`, `rf`, `sc` and barriers are acyclic. More
//!   early binds show more of the other outcomes. There is no claim about `ptx-v6.0` and
//!   `ptx-v7.5`: they differ in reductions, failed compare-and-swaps and dependencies.
//! - The memories of languages have only outcomes, and races, that their models allow. With
//!   [`Early::None`] each has exactly those of executions of its model in which `po`, `rf` and
//!   barriers are acyclic. Early binds show more (load buffering), but not all: a program without a
//!   race found may still have one. The model `rc11` alone has no such executions, and nothing is
//!   bound early.
//! - [`Early::Full`] explores the model; it does not simulate hardware. It lets a relaxed store
//!   overtake an acquire, a fence or a barrier, because the axioms allow that as long as no cycle
//!   closes.
//! - All this is checked, not proven: see `check::operational` and the tests.
//!
//! # Invariants
//! - The executor never reads the text of a memory model; `check::operational` compares outcomes
//!   with a model.
//! - A program that the machine cannot run is refused, with the reason. A run with a stray access
//!   ends at that access.
//! - The same test, options and schedule give the same observations, in the same order.

mod agents;
mod barrier;
pub mod choice;
mod code;
pub mod elements;
mod explain;
mod fingerprint;
mod groups;
mod halt;
mod host;
mod identity;
mod launch;
mod layer;
mod meetings;
mod memories;
mod memory;
mod misuse;
mod options;
mod place;
mod prepare;
pub mod race;
pub mod record;
pub mod schedule;
mod set;
mod state;
mod step;
mod thread;
mod trace;
mod waits;

use std::time::Instant;

use code::Code;
pub use halt::FaultKind;
use halt::{Result, StepHalt};
pub use identity::identity;
pub use launch::cooperative;
use layer::Layers;
use memories::MEMORIES;
pub use memories::MachineMemory;
use memory::clike::Clike;
pub use memory::rules::MemoryRules;
use memory::sc::Sc;
use memory::weak::Weak;
pub use options::{Early, LaunchOptions, RunOptions, Scheduling};
use program::litmus::LitmusTest;
pub use schedule::Schedule;
use schedule::{Observation, Recorded, SearchLimits};
use step::Machine;
pub use trace::{location_names, trace};

/// Runs a test.
///
/// # Errors
/// If the machine cannot run it, or if a recording does not fit it.
pub fn observe(
    test: &LitmusTest,
    options: &RunOptions,
    schedule: Schedule<'_>,
) -> Result<Observation, String> {
    let mut observation = explore(test, options, schedule)?;
    let outcomes = observation.outcomes.iter_mut().map(|o| &mut o.schedule);
    let stops = observation.stops.iter_mut().map(|s| &mut s.schedule);
    let races = observation.races.iter_mut().map(|r| &mut r.schedule);
    let hazards = observation.hazards.iter_mut().map(|h| &mut h.schedule);
    let endless = observation.endless.iter_mut().map(|e| &mut e.schedule);
    for recorded in outcomes
        .chain(stops)
        .chain(races)
        .chain(hazards)
        .chain(endless)
    {
        (recorded.memory, recorded.early) =
            (options.memory.name().into(), options.early.to_string());
        (recorded.scheduling, recorded.launch) = (options.scheduling.name().into(), options.launch);
        (recorded.patient, recorded.lazy) = (options.progress, options.lazy);
    }
    Ok(observation)
}

/// Whether the program excludes early binds, because of agents or operations on several cells at
/// once.
fn is_in_order(program: &program::Program) -> bool {
    program.asynchronous().is_some() || program.of_several_cells().is_some()
}

/// Programs with more threads run without early binds, unless an option requests them.
const MAX_EARLY: usize = 64;

/// Whether random runs of a test have early binds by default.
pub fn is_mixed(test: &LitmusTest) -> bool {
    test.program.threads.len() <= MAX_EARLY && !is_in_order(&test.program)
}

/// The options with the rest of their time, which began to count at `begun`.
fn within(options: RunOptions, begun: Instant) -> RunOptions {
    RunOptions {
        timeout: options
            .timeout
            .map(|time| time.saturating_sub(begun.elapsed())),
        ..options
    }
}

/// Like [`observe`], with early binds suited to a first look. Of random runs, three in four have
/// none, and one in four has two per thread. Exhaustive runs have none, and then one per thread as
/// far as the limits allow.
///
/// # Errors
/// Like [`observe`].
pub fn observe_mixed(
    test: &LitmusTest,
    options: &RunOptions,
    schedule: Schedule<'_>,
) -> Result<Observation, String> {
    let with = |early| RunOptions { early, ..*options };
    match schedule {
        _ if !options.memory.binds() || is_in_order(&test.program) => {
            observe(test, options, schedule)
        }
        // Early binds suit programs that are small enough to copy at every step.
        Schedule::Random { .. } if !is_mixed(test) => observe(test, &with(Early::None), schedule),
        Schedule::Random { runs, seed } => {
            let some = Schedule::Random {
                runs: runs - runs / 4,
                seed,
            };
            let begun = Instant::now();
            let mut all = observe(test, &with(Early::None), some)?;
            all.merge(observe(
                test,
                &within(with(Early::Full(2)), begun),
                Schedule::Random {
                    runs: runs / 4,
                    seed: !seed,
                },
            )?);
            Ok(all)
        }
        Schedule::Exhaustive => {
            let begun = Instant::now();
            let mut all = observe(test, &with(Early::None), schedule)?;
            let mut further = observe(test, &within(with(Early::Full(1)), begun), schedule)?;
            // Only the first part reports hangs: a run with early binds may also stop because of a
            // wrong bind.
            further.stops.clear();
            further.ended = further.ended.without_stops();
            all.complete &= further.complete;
            all.merge(further);
            Ok(all)
        }
        Schedule::Replay(_) => observe(test, options, schedule),
    }
}

/// Plays a recording with the memory and the early binds that it names.
///
/// # Errors
/// If it does not fit the test.
pub fn replay(
    test: &LitmusTest,
    options: &RunOptions,
    recorded: &Recorded,
) -> Result<Observation, String> {
    let memory = MachineMemory::named(&recorded.memory).ok_or_else(|| {
        let known: Vec<&str> = MEMORIES.iter().map(|row| row.name).collect();
        format!(
            "the recorded schedule names a memory `{}`; there are `{}`",
            recorded.memory,
            known.join("`, `")
        )
    })?;
    let early = Early::parse(&recorded.early).ok_or_else(|| {
        format!(
            "the recorded schedule names early binds `{}`",
            recorded.early
        )
    })?;
    let named = Scheduling::ALL
        .into_iter()
        .find(|s| s.name() == recorded.scheduling);
    let scheduling = match named {
        None if recorded.scheduling.is_empty() => Scheduling::Independent,
        None => {
            return Err(format!(
                "the recorded schedule names a scheduling `{}`",
                recorded.scheduling
            ));
        }
        Some(named) => named,
    };
    let (launch, progress, lazy) = (recorded.launch, recorded.patient, recorded.lazy);
    let options = RunOptions {
        memory,
        early,
        scheduling,
        launch,
        progress,
        lazy,
        ..*options
    };
    observe(test, &options, Schedule::Replay(recorded))
}

fn explore(
    test: &LitmusTest,
    options: &RunOptions,
    schedule: Schedule<'_>,
) -> Result<Observation, String> {
    runnable(test, options)?;
    let regrouped = launch::regroup(test, options.launch.warp_size)?;
    let test = regrouped.as_ref().unwrap_or(test);
    let launched = launch::cooperative(test, &options.launch);
    let test = launched.as_ref().unwrap_or(test);
    let (apart, agents) = agents::taken_apart(test)?;
    let code = Code::new(apart.as_ref().unwrap_or(test), agents)?;
    let layer = match launch::fits(&code, &options.launch) {
        Ok(()) => Layers::new(&code, options.scheduling, &options.launch)?,
        Err(why) => return Ok(Observation::launch_failed(why)),
    };
    let mut seen = run_on_memory(test, options, schedule, &code, layer)?;
    if apart.is_some() {
        for undefined in &mut seen.hazards {
            let hazard = &mut undefined.hazard;
            hazard.first = own_instruction(test, &code, hazard.first);
            hazard.second = hazard.second.map(|at| own_instruction(test, &code, at));
        }
    }
    Ok(seen)
}

/// The instruction of the test that an instruction of the executed program was made from.
fn own_instruction(test: &LitmusTest, code: &Code, at: (usize, usize)) -> (usize, usize) {
    let (thread, instr) = at;
    let id = code.program.threads[thread].code[instr].id;
    let own = &test.program.threads[thread].code;
    let same = own.iter().position(|instr| instr.id == id);
    (thread, same.expect("made from an instruction of the test"))
}

/// Runs a program on the memory that the options name.
fn run_on_memory(
    test: &LitmusTest,
    options: &RunOptions,
    schedule: Schedule<'_>,
    code: &Code,
    layer: Layers,
) -> Result<Observation, String> {
    let limits = SearchLimits {
        steps: options.steps,
        states: options.states,
        timeout: options.timeout,
        races: options.races,
        progress: options.progress,
        explain: false,
    };
    // The last action of a command's thread decides what the command hands on.
    let patient = options.progress || code.program.host.is_some();
    let lazy = options.lazy;
    if let Some(&language) = options.memory.row().language {
        let memory = Clike::new(language, options.rules, options.early, code)?;
        // This memory finds the races of its language.
        let limits = SearchLimits {
            races: false,
            explain: options.races,
            ..limits
        };
        return schedule::run(
            &Machine {
                code,
                memory,
                layer,
                lazy,
                patient,
            },
            schedule,
            &limits,
        );
    }
    if options.memory == MachineMemory::Sc {
        return schedule::run(
            &Machine {
                code,
                memory: Sc,
                layer,
                lazy,
                patient,
            },
            schedule,
            &limits,
        );
    }
    let early = if is_in_order(&test.program) {
        Early::None
    } else {
        options.early
    };
    let memory = Weak {
        early,
        rules: options.rules,
        collect: code.loops && !code.several,
        several: code.several,
    };
    schedule::run(
        &Machine {
            code,
            memory,
            layer,
            lazy,
            patient,
        },
        schedule,
        &limits,
    )
}

/// Checks that the memory supports everything that the test uses.
fn runnable(test: &LitmusTest, options: &RunOptions) -> Result<(), String> {
    let dialect = test.program.dialect;
    if options.memory == MachineMemory::Weak && options.scheduling == Scheduling::Lockstep {
        return Err(
            "not in this machine: warps with one program counter on PTX's memory (its model is \
            for sm_70 and later); take the memory `sc`"
                .into(),
        );
    }
    if let Some(instr) = test.program.asynchronous()
        && (options.scheduling != Scheduling::Independent || options.progress)
    {
        return Err(format!(
            "not in this machine: asynchronous operations under that scheduling, `{}`",
            instr.text
        ));
    }
    if let Some(language) = options.memory.dialect().filter(|&l| l != dialect) {
        return Err(format!(
            "not in this machine: {} code on the memory of {}",
            dialect.name(),
            language.name()
        ));
    }
    if let (Some(instr), Some(_)) = (test.program.assembly(), options.memory.dialect()) {
        return Err(format!(
            "not in this machine: assembly, `{}`; take `--model ptx`",
            instr.text
        ));
    }
    let is_language = options.memory.knows_races();
    if let (Some(instr), true) = (test.program.of_several_cells(), is_language) {
        return Err(format!(
            "not in this machine: an atomic access to a structure, `{}`; take `--model ptx`",
            instr.text
        ));
    }
    // For these the machine takes the value that orders most, or supports them all.
    const READINGS: [&str; 5] = [
        "async-fence",
        "read-wait",
        "completion-scope",
        "b128",
        "tearing",
    ];
    // `same-value` is about races, not about memory.
    fn other(o: &(&str, &str)) -> bool {
        !READINGS.contains(&o.0) && o.0 != "same-value"
    }
    match test
        .options
        .iter()
        .filter(|o| o.is_on())
        .map(|o| o.words())
        .find(other)
    {
        Some((name, value)) => Err(format!("not in this machine: option {name} = {value}")),
        None => Ok(()),
    }
}
