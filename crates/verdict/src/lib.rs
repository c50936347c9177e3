//! Defines answers: the question, the verdict, and its evidence.
//!
//! # Invariants
//! - A verdict judges the proposition itself. `Allowed` means that some consistent, complete
//!   execution satisfies it (for `forall`: violates it). The reporter applies the test's
//!   quantifier.
//! - Every `Allowed` comes with a [`Witness`] that the plain evaluator replayed.
//! - All types here are plain data, ready to print and to store; none refers to an engine.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use diag::SourceLine;
use serde::{Deserialize, Deserializer, Serialize};

mod difference;
mod explanation;
mod fault;
pub mod hang;
mod reason;

pub use difference::{Finding, Relation};
pub use explanation::{
    Breach, ComposedLink, Explanation, Link, Missing, MissingLink, Need, Needs, Where,
};
pub use fault::{Change, Definedness, Fault, FaultEvent, RacingPair, RacingPairs, Remedy};
pub use reason::{InstrPlace, Reason};

/// A property of a test under a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// Can the condition hold at the end?
    Reachability,
    /// Does some consistent execution raise the model's race flag?
    Race,
    /// Does some consistent execution raise one of the model's other flags (undefined behaviour)?
    Undefined,
    /// Can threads of a block part before a barrier of all of them?
    Divergence,
    /// Does some execution use memory, a stream or an event after its end?
    Lifetime,
    /// Does every execution end under the named progress model?
    Liveness(String),
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Property::Reachability => f.write_str("reachability"),
            Property::Race => f.write_str("race"),
            Property::Undefined => f.write_str("undefined"),
            Property::Divergence => f.write_str("divergence"),
            Property::Lifetime => f.write_str("lifetime"),
            Property::Liveness(progress) => write!(f, "liveness:{progress}"),
        }
    }
}

/// An answer about one property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Reachability: the condition can hold.
    Allowed,
    /// Reachability: the condition cannot hold.
    Forbidden,
    /// Race: some execution races.
    Racy,
    /// Race: no execution races.
    RaceFree,
    /// Undefined: some execution is undefined.
    Undefined,
    /// Undefined: no execution is undefined.
    Defined,
    /// Divergence: some threads of a block come to a barrier, and others never do.
    Divergent,
    /// Divergence: all threads of a block come to its barriers together.
    Uniform,
    /// Lifetime: some execution uses something after its end.
    Misused,
    /// Lifetime: no execution does.
    Proper,
    /// Liveness: some fair execution never ends.
    Hangs,
    /// Liveness: all fair executions end.
    Terminates,
    /// No answer. The reason is a limit (time, loop bound, events), or something that the model
    /// does not define.
    #[serde(skip)]
    Undecided(Reason),
}

impl Verdict {
    /// All words of verdicts, in the order of summaries; the last one is `undecided`.
    pub const WORDS: [&str; 13] = [
        "allowed",
        "forbidden",
        "racy",
        "race-free",
        "undefined",
        "defined",
        "divergent",
        "uniform",
        "misused",
        "proper",
        "hangs",
        "terminates",
        "undecided",
    ];

    /// The word that result lines print.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Allowed => "allowed",
            Verdict::Forbidden => "forbidden",
            Verdict::Racy => "racy",
            Verdict::RaceFree => "race-free",
            Verdict::Undefined => "undefined",
            Verdict::Defined => "defined",
            Verdict::Divergent => "divergent",
            Verdict::Uniform => "uniform",
            Verdict::Misused => "misused",
            Verdict::Proper => "proper",
            Verdict::Hangs => "hangs",
            Verdict::Terminates => "terminates",
            Verdict::Undecided(_) => "undecided",
        }
    }

    /// The reason, if undecided.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Verdict::Undecided(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Final values by name, in a fixed order: `[("P1:r0", "1"), ("x", "2")]`. The states of one test
/// share names and values.
pub type State = Vec<(Arc<str>, Arc<str>)>;

/// The proposition that exactly this final state satisfies.
pub fn as_prop(state: &State) -> String {
    if state.is_empty() {
        return "true".into();
    }
    state
        .iter()
        .map(|(name, value)| format!("{name} == {value}"))
        .collect::<Vec<_>>()
        .join(" /\\ ")
}

/// The answer to one question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// `symbolic`, `enumerate` or `both`.
    #[serde(deserialize_with = "engine")]
    pub engine: EngineName,
    /// The loop bound that the answer needed; `None` if no loop was cut.
    pub bound: Option<u32>,
    /// For a negative answer: names of axioms that together exclude every execution, in model
    /// order.
    pub axioms: Vec<String>,
    /// For a positive answer: an execution that proves it.
    pub witness: Option<Witness>,
    /// A broken law (engines differ, a witness failed its replay): exit code 70.
    pub defect: Option<String>,
    /// For `racy` and `undefined`: the fault of the witness.
    pub fault: Option<Box<Fault>>,
    /// For `racy`: all races, if the question included them.
    pub races: Option<Box<RacingPairs>>,
    /// For reachability: whether the program is defined. `None` if the question did not include it,
    /// or the model has no undefined behaviour.
    pub definedness: Option<Definedness>,
    /// For reachability: the explanation, if the question included it.
    pub explanation: Option<Box<Explanation>>,
    /// The open points of the model's source whose readings change the answer.
    pub dependences: Vec<Dependence>,
    /// For `forbidden`: no execution runs to its end, or the filter admits none. Every condition is
    /// then forbidden.
    pub vacuous: bool,
    /// How many events the program has at the question's loop bound; `None` if it was not unrolled.
    pub events: Option<usize>,
    /// Further attempts, and options to try.
    pub remarks: Vec<String>,
    /// Reads that can observe memory before any write to it.
    #[serde(default)]
    pub unwritten: Vec<Unwritten>,
    /// How far the answer about a kernel goes.
    #[serde(default)]
    pub reach: Option<Box<Reach>>,
}

/// How far an answer about a kernel goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The launches and inputs that it holds for.
    pub launches: Launches,
    /// What was assumed.
    pub assumed: Vec<String>,
    /// The two lines that a proof could not separate.
    pub lines: Option<[SourceLine; 2]>,
    /// Why nothing is said of other launches.
    pub open: Option<String>,
}

/// Launches and inputs of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Launches {
    /// Every launch, with every input.
    Every,
    /// All launches of one size, with every input.
    Size,
    /// One launch with its arguments, and every content of memory.
    Arguments,
    /// One launch, with its inputs.
    One,
    /// Those that were tried: up to so many blocks, of so many threads.
    Tried([u64; 2]),
}

impl Launches {
    /// The word that result lines print.
    pub fn word(self) -> &'static str {
        match self {
            Launches::Every => "every-launch",
            Launches::Size | Launches::Arguments => "every-input",
            Launches::One => "launch",
            Launches::Tried(_) => "tried",
        }
    }
}

impl fmt::Display for Launches {
    /// Behind `for`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Launches::Every => f.write_str("every launch and every input"),
            Launches::Size => f.write_str("every input of launches of this size"),
            Launches::Arguments => f.write_str("this launch and every content of memory"),
            Launches::One => f.write_str("this launch with these inputs"),
            Launches::Tried([blocks, threads]) => {
                write!(f, "launches of up to {blocks} blocks of {threads} threads")
            }
        }
    }
}

/// A read that can observe memory before any write to it, where the initial value is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten {
    /// The name of its thread.
    pub thread: String,
    /// Its 1-based line in the test file.
    pub line: SourceLine,
    /// The instruction as written.
    pub text: String,
    /// The memory that it reads.
    pub memory: String,
}

impl Unwritten {
    /// The read in a sentence.
    pub fn said(&self) -> String {
        let Unwritten {
            thread,
            line,
            text,
            memory,
        } = self;
        format!("`{text}` ({thread}, line {line}) can read `{memory}` before any write to it")
    }
}

/// An answer that depends on how a source is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependence {
    /// The option of the model that chooses a reading.
    pub option: String,
    /// The open point.
    pub on: String,
    /// The section of the source that leaves it open.
    pub source: String,
    /// The answer's word, by value of the option. The model's own value has the answer itself.
    pub verdicts: Vec<(String, String)>,
}

impl Dependence {
    /// The dependence in a sentence.
    pub fn text(&self) -> String {
        let mut by_word: Vec<(&str, Vec<String>)> = Vec::new();
        for (value, word) in &self.verdicts {
            let value = format!("`{value}`");
            match by_word.iter_mut().find(|(known, _)| known == word) {
                Some((_, values)) => values.push(value),
                None => by_word.push((word, vec![value])),
            }
        }
        let each: Vec<String> = by_word
            .into_iter()
            .map(|(word, values)| format!("{word} under {}", values.join(", ")))
            .collect();
        format!(
            "depends on {}: {} (`--set {}=…`); {}",
            self.on,
            each.join("; "),
            self.option,
            self.source
        )
    }
}

impl Answer {
    /// An answer without evidence.
    pub fn new(verdict: Verdict, engine: EngineName) -> Answer {
        Answer {
            verdict,
            engine,
            bound: None,
            axioms: Vec::new(),
            witness: None,
            defect: None,
            fault: None,
            races: None,
            definedness: None,
            explanation: None,
            dependences: Vec::new(),
            vacuous: false,
            events: None,
            remarks: Vec::new(),
            unwritten: Vec::new(),
            reach: None,
        }
    }

    /// The same answer, given up for a reason.
    pub fn undecided(mut self, reason: Reason) -> Answer {
        if let Reason::Unwritten {
            read: Some(read),
            memory,
            ..
        } = &reason
            && self.unwritten.is_empty()
        {
            let InstrPlace { text, thread, line } = &**read;
            let (text, thread, line, memory) =
                (text.clone(), thread.clone(), line.clone(), memory.clone());
            self.unwritten.push(Unwritten {
                thread,
                line,
                text,
                memory,
            });
        }
        Answer {
            verdict: Verdict::Undecided(reason),
            ..self
        }
    }

    /// The same answer, marked as untrustworthy because a law was broken.
    pub fn defective(self, law: String) -> Answer {
        Answer {
            defect: Some(law),
            ..self.undecided(Reason::Defect)
        }
    }
}

/// The name of an engine: static, so that answers read back from storage borrow nothing.
pub type EngineName = &'static str;

/// The engine name of an answer from a run of the executor.
pub const EXECUTOR: EngineName = "executor";

/// The engine name of an answer for launches of any size.
pub const PARAMETRIC: EngineName = "parametric";

/// The engine name of an answer by one run that stands for all executions.
pub const STEADY: EngineName = "steady";

/// All engine names that answers can have.
const ENGINES: [&str; 7] = [
    "symbolic",
    "sat",
    "enumerate",
    "both",
    EXECUTOR,
    PARAMETRIC,
    STEADY,
];

fn engine<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EngineName, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = ENGINES.into_iter().find(|engine| *engine == name);
    known.ok_or_else(|| serde::de::Error::unknown_variant(&name, &ENGINES))
}

/// A complete execution, as evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// Its executed events; relations refer to them by position.
    pub events: Vec<WitnessEvent>,
    /// Non-empty relations to show, by name: `po`, the free relations, then those that the model
    /// marks for display.
    pub relations: Vec<(String, Vec<(usize, usize)>)>,
    /// Final values of everything that the test observes.
    pub state: State,
    /// For an execution that hangs: how each thread ends.
    pub ends: Vec<ThreadEnd>,
    /// Every thread of the program, by [`WitnessEvent::thread`].
    pub threads: Vec<Seat>,
    /// If the question included them: further relations of model and program, by name. Base
    /// relations come first, then those of the model in its order.
    pub derived: Vec<(String, Vec<(usize, usize)>)>,
    /// The styles of relations, by name, for those that have one.
    pub styles: Vec<(String, Style)>,
}

/// The role of a relation, for readers without knowledge of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Style {
    /// Program order.
    ProgramOrder,
    /// Carries values from writes to reads.
    ReadsFrom,
    /// An order of writes.
    Coherence,
    /// From a read to writes that come after its source.
    FromReads,
    /// Order between threads.
    Synchronization,
    /// A dependency between instructions of a thread.
    Dependency,
}

impl Style {
    /// The style that models call `word`.
    pub fn named(word: &str) -> Option<Style> {
        Some(match word {
            "po" => Style::ProgramOrder,
            "rf" => Style::ReadsFrom,
            "co" => Style::Coherence,
            "fr" => Style::FromReads,
            "sync" => Style::Synchronization,
            "dep" => Style::Dependency,
            _ => return None,
        })
    }
}

impl Witness {
    /// Relations that every description of an execution has, in addition to the free ones, under
    /// any model.
    pub const ALWAYS: [(&str, Style); 2] = [("po", Style::ProgramOrder), ("fr", Style::FromReads)];

    /// The style of the relation `name`.
    pub fn style(&self, name: &str) -> Option<Style> {
        self.styles.iter().find(|s| s.0 == name).map(|s| s.1)
    }

    /// The pairs of the relation that has this style; of several relations, the first.
    pub fn drawn_as(&self, style: Style) -> &[(usize, usize)] {
        let found = self
            .relations
            .iter()
            .find(|(name, _)| self.style(name) == Some(style));
        found.map_or(&[], |(_, pairs)| pairs)
    }

    /// Whether a relation of that name has a pair.
    pub fn relates(&self, name: &str) -> bool {
        self.relations
            .iter()
            .chain(&self.derived)
            .any(|(known, pairs)| known == name && !pairs.is_empty())
    }
}

/// A thread, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The thread's name.
    pub thread: String,
    /// The groups that contain it, from the widest to the narrowest, as its dialect calls them:
    /// `GPU 0`, `CTA 1`.
    pub groups: Vec<String>,
}

/// In which way a thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It runs to its end.
    Done,
    /// It waits at a barrier without end.
    Blocked,
    /// Its last iterations repeat without end.
    Looping,
    /// The scheduler never runs it again.
    Stopped,
}

impl Ending {
    /// The word that output prints.
    pub fn word(self) -> &'static str {
        match self {
            Ending::Done => "done",
            Ending::Blocked => "blocked",
            Ending::Looping => "looping",
            Ending::Stopped => "stopped",
        }
    }
}

/// How a thread of an execution that hangs ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadEnd {
    /// The thread's name.
    pub thread: String,
    /// In which way.
    pub ending: Ending,
    /// 1-based line of the barrier, of the beginning of the loop, or of the last instruction of a
    /// stopped thread; 0 if it has none.
    pub line: SourceLine,
    /// The instruction at this line, as written.
    pub text: String,
    /// Whether the thread runs as far as the progress model lets it.
    pub served: bool,
    /// Blocked: the threads that never arrive.
    pub waits_for: Vec<String>,
    /// Looping: the locations and values that it reads again and again.
    pub polls: Vec<(String, String)>,
    /// Looping with effect: how many iterations repeat.
    pub period: Option<u32>,
    /// The goals that it waits for, and the instructions that could bring them.
    pub waits: Vec<hang::Wait>,
    /// The whole ending in words.
    pub why: String,
}

/// One event of a [`Witness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessEvent {
    /// Thread index; `None` for initial writes.
    pub thread: Option<usize>,
    /// Thread name, or `init`.
    pub thread_name: String,
    /// For an asynchronous operation: the agent of the thread that performs it, `agent`, or `agent
    /// 2` of several.
    pub agent: Option<String>,
    /// 1-based line of its instruction in the test file; 0 for initial writes.
    pub line: SourceLine,
    /// Its effect: `R x = 1`, `W flag = 1`, `F`, `BA`, `BW`.
    pub action: String,
    /// The instruction as written.
    pub text: String,
}

impl WitnessEvent {
    /// The thread or agent that performs it: `P0`, `P0's agent 2`.
    pub fn who(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}'s {agent}", self.thread_name),
            None => self.thread_name.clone(),
        }
    }
}

/// One outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Final values.
    pub state: State,
    /// Whether some consistent execution ends so.
    pub allowed: bool,
    /// Whether some consistent execution that ends so raises the model's race flag.
    pub racy: bool,
    /// The race of such an execution, if the question included it.
    pub race: Option<Box<Fault>>,
}

/// Every outcome of a test under a model.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// Whether the list is complete.
    pub complete: bool,
    /// If not: the reason.
    pub reason: Option<Reason>,
    /// The outcomes, sorted by state: those that the model allows, and those of candidate
    /// executions that it rejects.
    pub outcomes: Vec<Outcome>,
    /// The engine that answered.
    pub engine: &'static str,
    /// As in [`Answer::bound`].
    pub bound: Option<u32>,
    /// As in [`Answer::defect`].
    pub defect: Option<String>,
    /// As in [`Answer::definedness`].
    pub definedness: Option<Definedness>,
}

impl Outcomes {
    /// The final states that the model allows; `None` if the list is not complete.
    pub fn allowed_states(self) -> Option<BTreeSet<State>> {
        let allowed = self.outcomes.into_iter().filter(|o| o.allowed);
        self.complete.then(|| allowed.map(|o| o.state).collect())
    }
}
