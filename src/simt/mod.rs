//! The executor: runs a test step by step, on one of several memories, under one of several schedulers.
//!
//! A [state](self) is a program counter and registers per thread, the phases of barriers, and a memory. A step is one
//! instruction of one thread; where it could go on in several ways, the memory asks for a choice. A *schedule* is the
//! list of threads and choices: it can be explored exhaustively, drawn at random, recorded, and replayed.
//!
//! | Module | What |
//! |---|---|
//! | `code` | a test made ready to run |
//! | `state`, `step` | threads, and one step of one |
//! | `layer` | which threads may step: warps and resident blocks go here |
//! | `barrier` | who has arrived, who waits |
//! | `memory` | the rules of memory: `sc`, PTX's `weak`, and those of OpenCL C, CUDA C++ and C |
//! | `choice`, `schedule` | who answers; exhaustive, random, replay |
//! | `record` | what happened, for the trace and for the checker |
//!
//! # What is claimed
//! - The memory `sc` has exactly the outcomes of the model `sc`.
//! - The memory `weak` has only outcomes that the model `ptx` allows. With [`Early::None`] it has exactly those of
//!   executions in which `po`, `rf`, `sc` and barriers are acyclic; more early binds show more of the others. Of
//!   `ptx-v6.0` and `ptx-v7.5` nothing is claimed: they differ in reductions, failed compare-and-swaps and
//!   dependencies.
//! - The memories of languages bind nothing early: each has exactly the outcomes, and the races, of executions of its
//!   model in which `po`, `rf` and barriers are acyclic. Of load buffering they show nothing, so that a program in which
//!   they find no race may still have one (in the model `rc11` alone there are no such executions).
//! - [`Early::Full`] explores the model; it is no simulator of hardware. It lets a relaxed store overtake an acquire, a
//!   fence or a barrier, because the axioms allow that as long as no cycle closes.
//! - All this is checked, not proven: see `check::operational` and the tests.
//!
//! # Invariants
//! - Nothing in here knows a memory model's text; who holds outcomes against a model is `check::operational`.
//! - What the machine cannot run is refused by name. A run that goes astray in memory ends there.
//! - The same test, options and schedule give the same observations, in the same order.

mod barrier;
pub mod choice;
mod code;
mod explain;
mod fingerprint;
mod groups;
mod launch;
mod layer;
mod memory;
mod place;
pub mod race;
pub mod record;
pub mod schedule;
mod set;
mod state;
mod step;
mod trace;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::litmus::LitmusTest;
use crate::program::Dialect;
use code::Code;
use layer::Layers;
use memory::clike::Clike;
pub use memory::clike::LanguageRules;
use memory::sc::Sc;
pub use memory::weak::Rules;
use memory::weak::Weak;
use schedule::{Limits, Observation, Recorded};
use step::Machine;
pub use trace::{location_names, trace};

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// One store, threads in turns.
    Sc,
    /// PTX's memory consistency model.
    Weak,
    /// OpenCL C with equal scopes.
    OpenCl,
    /// OpenCL C of 3.1, whose scopes need only be wide enough.
    OpenCl31,
    /// CUDA C++ with the release sequences of C++20.
    Cuda,
    /// CUDA C++ with the release sequences of C++17.
    Cuda17,
    /// C11.
    C11,
    /// Repaired C11.
    Rc11,
}

/// By memory: its name in recordings, the model that its outcomes are inside of, and the language of the programs that
/// it runs, if it does not run all.
const MEMORIES: &[(MemoryKind, &str, &str, Option<Dialect>)] = &[
    (MemoryKind::Sc, "sc", "sc", None),
    (MemoryKind::Weak, "weak", "ptx", Some(Dialect::Ptx)),
    (MemoryKind::OpenCl, "opencl", "opencl", Some(Dialect::OpenCl)),
    (MemoryKind::OpenCl31, "opencl-3.1", "opencl-3.1", Some(Dialect::OpenCl)),
    (MemoryKind::Cuda, "cuda", "cuda", Some(Dialect::Cuda)),
    (MemoryKind::Cuda17, "cuda-17", "cuda-17", Some(Dialect::Cuda)),
    (MemoryKind::C11, "c11", "c11", Some(Dialect::C)),
    (MemoryKind::Rc11, "rc11", "rc11", Some(Dialect::C)),
];

impl MemoryKind {
    fn row(self) -> &'static (MemoryKind, &'static str, &'static str, Option<Dialect>) {
        MEMORIES.iter().find(|row| row.0 == self).expect("every memory has its row")
    }

    /// As recordings name it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The shipped model whose outcomes it stays inside of.
    pub fn model(self) -> &'static str {
        self.row().2
    }

    /// The memory of that name.
    pub fn named(name: &str) -> Option<MemoryKind> {
        MEMORIES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The memory of a language that a shipped model describes; `None` if there is none.
    pub fn of(dialect: Dialect, model: &str) -> Option<MemoryKind> {
        MEMORIES.iter().find(|row| row.2 == model && row.3 == Some(dialect)).map(|row| row.0)
    }

    /// Whether it reports races and other undefined behaviour.
    pub fn knows_races(self) -> bool {
        !matches!(self, MemoryKind::Sc | MemoryKind::Weak)
    }

    /// Whether it may bind anything early.
    pub fn binds(self) -> bool {
        self == MemoryKind::Weak
    }
}

/// How much may be bound before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// Nothing: no outcome of the load-buffering family.
    None,
    /// Plain and relaxed accesses past plain and relaxed accesses to other addresses, as hardware might.
    Local,
    /// At most so many instructions per thread at once, past anything.
    Full(u32),
}

impl Early {
    /// At most so many binds per thread at once.
    fn limit(self) -> usize {
        match self {
            Early::None => 0,
            Early::Local => usize::MAX,
            Early::Full(n) => n as usize,
        }
    }

    /// Reads `none`, `local`, `full:N` and `full`.
    pub fn parse(text: &str) -> Option<Early> {
        match text {
            "none" => Some(Early::None),
            "local" => Some(Early::Local),
            "full" => Some(Early::Full(u32::MAX)),
            _ => text.strip_prefix("full:")?.parse().ok().map(Early::Full),
        }
    }
}

impl std::fmt::Display for Early {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Early::None => f.write_str("none"),
            Early::Local => f.write_str("local"),
            Early::Full(u32::MAX) => f.write_str("full"),
            Early::Full(n) => write!(f, "full:{n}"),
        }
    }
}

/// Which thread steps next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduling {
    /// Any thread: PTX for sm_70 and later.
    Independent,
    /// Warps share a program counter, as before Volta.
    Lockstep,
    /// OpenCL: one work-group at a time, its work-items one after the other up to the next barrier.
    SerialGroups,
    /// OpenCL: sub-groups make progress independently, the work-items of one take turns.
    Subgroups,
}

impl Scheduling {
    /// All of them.
    pub const ALL: [Scheduling; 4] =
        [Scheduling::Independent, Scheduling::Lockstep, Scheduling::SerialGroups, Scheduling::Subgroups];

    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::Independent => "independent",
            Scheduling::Lockstep => "lockstep",
            Scheduling::SerialGroups => "serial-groups",
            Scheduling::Subgroups => "subgroups",
        }
    }
}

/// What a kernel is launched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Multiprocessors of each GPU; `None`: enough for every block.
    pub sms: Option<u32>,
    /// Blocks that a multiprocessor has room for; `None`: 1 if `sms` is given.
    pub resident: Option<u32>,
    /// A cooperative launch: fails unless all blocks are resident at once.
    pub cooperative: bool,
    /// Threads per warp; `None`: as the test says.
    pub warp_size: Option<u32>,
    /// Threads that a block can have.
    pub max_block: u32,
    /// Bytes of shared memory that a block can have.
    pub max_shared: u64,
}

impl Default for Launch {
    fn default() -> Self {
        Launch {
            sms: None,
            resident: None,
            cooperative: false,
            warp_size: None,
            max_block: 1024,
            max_shared: 48 * 1024,
        }
    }
}

impl Launch {
    /// Blocks that a GPU has room for at once; `None`: any number.
    pub fn capacity(&self) -> Option<usize> {
        match (self.sms, self.resident) {
            (None, None) => None,
            (sms, resident) => Some(sms.unwrap_or(1) as usize * resident.unwrap_or(1) as usize),
        }
    }
}

/// What a thread did that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An access names no memory that the thread may access.
    Stray,
    /// A barrier is reached by part of those for whom it is.
    Barrier,
    /// A division by zero, where that is undefined.
    Division,
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which thread steps next.
    pub scheduling: Scheduling,
    /// What it is launched on.
    pub launch: Launch,
    /// Which memory.
    pub memory: MemoryKind,
    /// Early binds, of the weak memory.
    pub early: Early,
    /// Rules in force, of the weak memory.
    pub rules: Rules,
    /// Rules in force, of the memories of languages.
    pub language: LanguageRules,
    /// At most so many steps of one run.
    pub steps: usize,
    /// At most so many states of an exhaustive exploration.
    pub states: usize,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// Whether to look for races in runs.
    pub races: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            scheduling: Scheduling::Independent,
            launch: Launch::default(),
            memory: MemoryKind::Weak,
            early: Early::None,
            rules: Rules::ALL,
            language: LanguageRules::ALL,
            steps: 10_000,
            states: 2_000_000,
            timeout: Some(Duration::from_secs(60)),
            races: false,
        }
    }
}

impl Options {
    /// A machine without the rule of that name, in every memory that has it. Such a machine is wrong: tests ask whether
    /// anybody notices.
    ///
    /// # Errors
    /// The rules that there are, if there is none of that name.
    pub fn without(self, rule: &str) -> Result<Options, Vec<&'static str>> {
        let (rules, language) = (self.rules.without(rule), self.language.without(rule));
        if rules.is_none() && language.is_none() {
            let mut names = [Rules::NAMES, LanguageRules::NAMES].concat();
            names.sort_unstable();
            names.dedup();
            return Err(names);
        }
        let (rules, language) = (rules.unwrap_or(self.rules), language.unwrap_or(self.language));
        Ok(Options { rules, language, ..self })
    }
}

/// Why a step, and with it a choice or a run, ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Halt {
    /// The choice made is not possible.
    Refused,
    /// The instruction cannot have its turn yet.
    Blocked,
    /// The thread did something that has no meaning; the run ends.
    Fault { kind: Fault, thread: usize, instr: usize, what: String },
    /// A limit of the machine was met.
    Limit(&'static str),
    /// The machine cannot run this.
    Unsupported(String),
}

/// Who decides what happens next.
#[derive(Clone, Copy, Debug)]
pub enum Schedule<'a> {
    /// Everything in turn.
    Exhaustive,
    /// Chance.
    Random {
        /// How often.
        runs: u64,
        /// With another seed, other runs.
        seed: u64,
    },
    /// A recording.
    Replay(&'a Recorded),
}

/// Runs a test.
///
/// # Errors
/// Why the machine cannot run it, or why a recording does not fit it.
pub fn observe(test: &LitmusTest, options: &Options, schedule: Schedule<'_>) -> Result<Observation, String> {
    let mut observation = explore(test, options, schedule)?;
    let outcomes = observation.outcomes.iter_mut().map(|o| &mut o.schedule);
    let stops = observation.stops.iter_mut().map(|s| &mut s.schedule);
    let races = observation.races.iter_mut().map(|r| &mut r.schedule);
    let hazards = observation.hazards.iter_mut().map(|h| &mut h.schedule);
    for recorded in outcomes.chain(stops).chain(races).chain(hazards) {
        (recorded.memory, recorded.early) = (options.memory.name().into(), options.early.to_string());
        (recorded.scheduling, recorded.launch) = (options.scheduling.name().into(), options.launch);
    }
    Ok(observation)
}

/// Programs with more threads run without early binds unless these are asked for.
const MAX_EARLY: usize = 64;

/// Whether random runs of a test have early binds unless that is said.
pub fn is_mixed(test: &LitmusTest) -> bool {
    test.program.threads.len() <= MAX_EARLY
}

/// As [`observe`], with early binds as a first look wants them: of random runs, three in four without any and one in
/// four with two per thread; exhaustively, without any, and then with one per thread as far as the limits allow.
///
/// # Errors
/// As [`observe`].
pub fn observe_mixed(test: &LitmusTest, options: &Options, schedule: Schedule<'_>) -> Result<Observation, String> {
    let with = |early| Options { early, ..*options };
    match schedule {
        _ if !options.memory.binds() => observe(test, options, schedule),
        // Early binds are for programs small enough to copy at every step.
        Schedule::Random { .. } if !is_mixed(test) => observe(test, &with(Early::None), schedule),
        Schedule::Random { runs, seed } => {
            let some = Schedule::Random { runs: runs - runs / 4, seed };
            let mut all = observe(test, &with(Early::None), some)?;
            all.merge(observe(test, &with(Early::Full(2)), Schedule::Random { runs: runs / 4, seed: !seed })?);
            Ok(all)
        }
        Schedule::Exhaustive => {
            let mut all = observe(test, &with(Early::None), schedule)?;
            let mut further = observe(test, &with(Early::Full(1)), schedule)?;
            further.stops.clear();
            // Hangs are told by the first part: a run with early binds may also stop because a bind was wrong.
            let ended = all.ended;
            all.complete &= further.complete;
            all.merge(further);
            all.ended = schedule::Ended { discarded: all.ended.discarded, ..ended };
            Ok(all)
        }
        Schedule::Replay(_) => observe(test, options, schedule),
    }
}

/// Plays a recording on the memory, and with the early binds, that it names.
///
/// # Errors
/// If it does not fit the test.
pub fn replay(test: &LitmusTest, options: &Options, recorded: &Recorded) -> Result<Observation, String> {
    let memory = MemoryKind::named(&recorded.memory).ok_or_else(|| {
        let known: Vec<&str> = MEMORIES.iter().map(|row| row.1).collect();
        format!("the recorded schedule names a memory `{}`; there are `{}`", recorded.memory, known.join("`, `"))
    })?;
    let early = Early::parse(&recorded.early)
        .ok_or_else(|| format!("the recorded schedule names early binds `{}`", recorded.early))?;
    let named = Scheduling::ALL.into_iter().find(|s| s.name() == recorded.scheduling);
    let scheduling = match named {
        None if recorded.scheduling.is_empty() => Scheduling::Independent,
        None => return Err(format!("the recorded schedule names a scheduling `{}`", recorded.scheduling)),
        Some(named) => named,
    };
    let options = Options { memory, early, scheduling, launch: recorded.launch, ..*options };
    observe(test, &options, Schedule::Replay(recorded))
}

/// A name for what a test runs: schedules are of programs, whatever comments stand around them.
pub fn fingerprint(test: &LitmusTest) -> String {
    let program = &test.program;
    let threads = program.threads.iter().map(|t| {
        let code = t.code.iter().map(|i| format!("{:?};", i.op)).collect::<String>();
        format!("{:?} {:?} {code}", t.place, t.regs)
    });
    let text = threads.collect::<String>() + &format!("{:?}", program.locations);
    format!("{:032x}", fingerprint::Fingerprint::of(&text))
}

fn explore(test: &LitmusTest, options: &Options, schedule: Schedule<'_>) -> Result<Observation, String> {
    runnable(test, options)?;
    let regrouped = launch::regroup(test, options.launch.warp_size)?;
    let code = Code::new(regrouped.as_ref().unwrap_or(test))?;
    let layer = match launch::fits(&code, &options.launch) {
        Ok(()) => Layers::new(&code, options.scheduling, &options.launch)?,
        Err(why) => return Ok(Observation::launch_failed(why)),
    };
    let limits = Limits {
        steps: options.steps,
        states: options.states,
        timeout: options.timeout,
        races: options.races,
        explain: false,
    };
    match options.memory {
        MemoryKind::Sc => schedule::run(&Machine { code: &code, memory: Sc, layer }, schedule, &limits),
        MemoryKind::Weak => {
            let memory = Weak { early: options.early, rules: options.rules, collect: code.loops };
            schedule::run(&Machine { code: &code, memory, layer }, schedule, &limits)
        }
        kind => {
            let memory = Clike::new(kind, options.language, &code)?;
            // This memory knows the races of its language itself.
            let limits = Limits { races: false, explain: options.races, ..limits };
            schedule::run(&Machine { code: &code, memory, layer }, schedule, &limits)
        }
    }
}

/// Whether the memory knows what the test uses.
fn runnable(test: &LitmusTest, options: &Options) -> Result<(), String> {
    let dialect = test.program.dialect;
    if options.memory == MemoryKind::Weak && options.scheduling == Scheduling::Lockstep {
        return Err("not in this machine: warps with one program counter on PTX's memory, whose model is for sm_70 and later; take the memory `sc`".into());
    }
    if let Some(language) = options.memory.row().3.filter(|&l| l != dialect) {
        return Err(format!("not in this machine: {} code on the memory of {}", dialect.name(), language.name()));
    }
    match test.options.iter().find(|(name, value, _)| {
        !matches!(
            (name.as_str(), value.as_str()),
            ("failed-cas", "none") | ("red", "no-acquire") | ("dep", "value") | ("rmw", "two")
        )
    }) {
        Some((name, value, _)) => Err(format!("not in this machine: option {name} = {value}")),
        None => Ok(()),
    }
}
