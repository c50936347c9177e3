//! Answers: what was asked, what came out, and the evidence.
//!
//! # Invariants
//! - A verdict speaks of the proposition itself: `Allowed` means that some consistent, complete
//!   execution satisfies it (`forall`: violates it). How a test's quantifier is judged is the
//!   reporter's matter.
//! - Every `Allowed` comes with a [`Witness`] that was replayed by the plain evaluator.
//! - Everything in here is plain data, ready to print and to keep; nothing refers to an engine.

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
pub use explanation::{Breach, Explanation, Link, Made, Missing, MissingLink, Need, Needs, Where};
pub use fault::{Change, Definedness, Fault, FaultEvent, RacingPair, RacingPairs, Remedy};
pub use reason::{Place, Reason};

/// A property of a test under a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// Can the condition hold at the end?
    Reachability,
    /// Does some consistent execution raise the model's race flag?
    Race,
    /// Does some consistent execution raise one of the model's other flags (undefined behaviour)?
    Undefined,
    /// Does it end, under the named progress model?
    Liveness(String),
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Property::Reachability => f.write_str("reachability"),
            Property::Race => f.write_str("race"),
            Property::Undefined => f.write_str("undefined"),
            Property::Liveness(progress) => write!(f, "liveness:{progress}"),
        }
    }
}

/// An answer about one property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Reachability: possible.
    Allowed,
    /// Reachability: impossible.
    Forbidden,
    /// Race: some execution races.
    Racy,
    /// Race: none does.
    RaceFree,
    /// Undefined: some execution is undefined.
    Undefined,
    /// Undefined: none is.
    Defined,
    /// Liveness: some fair execution never ends.
    Hangs,
    /// Liveness: all end.
    Terminates,
    /// No answer, and why: a limit (time, loop bound, events), or something the model cannot speak
    /// of.
    #[serde(skip)]
    Undecided(Reason),
}

impl Verdict {
    /// The word in result lines.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Allowed => "allowed",
            Verdict::Forbidden => "forbidden",
            Verdict::Racy => "racy",
            Verdict::RaceFree => "race-free",
            Verdict::Undefined => "undefined",
            Verdict::Defined => "defined",
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

/// Final values by name, in a fixed order: `[("P1:r0", "1"), ("x", "2")]`. Those of one test have
/// names and values in common.
pub type State = Vec<(Arc<str>, Arc<str>)>;

/// The proposition that holds in one final state.
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
    /// What came out.
    pub verdict: Verdict,
    /// `symbolic`, `enumerate` or `both`.
    #[serde(deserialize_with = "engine")]
    pub engine: EngineName,
    /// The loop bound that the answer needed; `None` if no loop was cut.
    pub bound: Option<u32>,
    /// For a negative answer: names of axioms that together exclude every execution, in model
    /// order.
    pub axioms: Vec<String>,
    /// For a positive answer: an execution that shows it.
    pub witness: Option<Witness>,
    /// Broken laws (engines differ, a witness failed its replay): exit code 70.
    pub defect: Option<String>,
    /// For `racy` and `undefined`: what the witness does wrong.
    pub fault: Option<Box<Fault>>,
    /// For `racy`: all that races, if it was asked for.
    pub races: Option<Box<RacingPairs>>,
    /// For reachability: whether the program is defined at all; `None` if nobody asked, or the
    /// model knows no undefined behaviour.
    pub definedness: Option<Definedness>,
    /// For reachability: why, if it was asked for.
    pub explanation: Option<Box<Explanation>>,
    /// Where the source of the model can be read in several ways, and the answer is not the same
    /// under all of them.
    pub dependences: Vec<Dependence>,
    /// For `forbidden`: no execution at all runs to its end, or none that the filter lets through
    /// does, so that every condition is forbidden.
    pub vacuous: bool,
    /// How many events the program has at the loop bound that was asked about; `None`: it was not
    /// unrolled.
    pub events: Option<usize>,
    /// What else was tried, and what there is to try.
    pub remarks: Vec<String>,
    /// Reads that can find memory in which nothing was written.
    #[serde(default)]
    pub unwritten: Vec<Unwritten>,
}

/// A read that can find memory before anything is written there, where that begins with an unknown
/// value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten {
    /// The name of its thread.
    pub thread: String,
    /// Its 1-based line in the test file.
    pub line: SourceLine,
    /// The instruction as written.
    pub text: String,
    /// What it reads.
    pub memory: String,
}

impl Unwritten {
    /// In a sentence.
    pub fn said(&self) -> String {
        let Unwritten {
            thread,
            line,
            text,
            memory,
        } = self;
        format!(
            "`{text}` ({thread}, line {line}) can read `{memory}` before anything is written there"
        )
    }
}

/// An answer that depends on how a source is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependence {
    /// The option of the model that chooses a reading.
    pub option: String,
    /// What the answer depends on.
    pub on: String,
    /// Where the source is silent on it.
    pub source: String,
    /// The answer's word, by value of the option; the model's own value has the answer itself.
    pub verdicts: Vec<(String, String)>,
}

impl Dependence {
    /// In a sentence.
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
    /// An answer with nothing to show for it.
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
        }
    }

    /// The same, given up for a reason.
    pub fn undecided(mut self, reason: Reason) -> Answer {
        if let Reason::Unwritten {
            read: Some(read),
            memory,
            ..
        } = &reason
            && self.unwritten.is_empty()
        {
            let Place { text, thread, line } = &**read;
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

    /// The same, of which nothing may be believed: a law was broken.
    pub fn defective(self, law: String) -> Answer {
        Answer {
            defect: Some(law),
            ..self.undecided(Reason::Defect)
        }
    }
}

/// The name of an engine. By this name, for what is read back borrows nothing.
pub type EngineName = &'static str;

/// That of an answer that rests on a run of the executor.
pub const EXECUTOR: EngineName = "executor";

/// Names of engines, as answers have them.
const ENGINES: [&str; 5] = ["symbolic", "sat", "enumerate", "both", EXECUTOR];

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
    /// Non-empty relations worth showing, by name: `po`, the free relations, then what the model
    /// shows.
    pub relations: Vec<(String, Vec<(usize, usize)>)>,
    /// Final values of what the test observes.
    pub state: State,
    /// Of an execution that hangs: how each thread ends.
    pub ends: Vec<ThreadEnd>,
    /// Every thread of the program, by [`WitnessEvent::thread`].
    pub threads: Vec<Seat>,
    /// If it was asked for: what else the model and the program relate, by name, in the order of
    /// the model; base relations first.
    pub derived: Vec<(String, Vec<(usize, usize)>)>,
    /// What relations are, by name, if it is one of these.
    pub styles: Vec<(String, Style)>,
}

/// What a relation is, for those who know no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Style {
    /// Program order.
    ProgramOrder,
    /// What carries values from writes to reads.
    ReadsFrom,
    /// An order of writes.
    Coherence,
    /// From a read to writes that come after what it took.
    FromReads,
    /// Order between threads.
    Synchronization,
    /// Between instructions of a thread.
    Dependency,
}

impl Style {
    /// By the word that models use.
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
    /// Relations that every execution is described with besides the free ones, whatever the model.
    pub const ALWAYS: [(&str, Style); 2] = [("po", Style::ProgramOrder), ("fr", Style::FromReads)];

    /// What a relation is.
    pub fn style(&self, name: &str) -> Option<Style> {
        self.styles.iter().find(|s| s.0 == name).map(|s| s.1)
    }

    /// The pairs of the relation that is drawn so; of several, the first.
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
    /// The groups that it is in, from the widest to the narrowest, as its dialect calls them: `GPU
    /// 0`, `CTA 1`.
    pub groups: Vec<String>,
}

/// In which way a thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It runs to its end.
    Done,
    /// It waits for ever at a barrier.
    Blocked,
    /// Its last iterations repeat for ever.
    Looping,
    /// It is never run again.
    Stopped,
}

impl Ending {
    /// The word in output.
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
    /// stopped thread; 0 if there is none.
    pub line: SourceLine,
    /// That instruction as written.
    pub text: String,
    /// Whether the progress model has it run as far as it can.
    pub served: bool,
    /// Blocked: the threads that never arrive.
    pub waits_for: Vec<String>,
    /// Looping: what it reads again and again, locations and values.
    pub polls: Vec<(String, String)>,
    /// Looping with effect: how many iterations repeat.
    pub period: Option<u32>,
    /// What it waits for, and who could bring it.
    pub waits: Vec<hang::Wait>,
    /// All that in words.
    pub why: String,
}

/// One event of a [`Witness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessEvent {
    /// Thread index; `None` for initial writes.
    pub thread: Option<usize>,
    /// Thread name, or `init`.
    pub thread_name: String,
    /// Of an asynchronous operation: which agent of the thread performs it, `agent`, or `agent 2`
    /// of several.
    pub agent: Option<String>,
    /// 1-based line of its instruction in the test file; 0 for initial writes.
    pub line: SourceLine,
    /// `R x = 1`, `W flag = 1`, `F`, `BA`, `BW`: what it did.
    pub action: String,
    /// The instruction as written.
    pub text: String,
}

impl WitnessEvent {
    /// Who performs it: `P0`, `P0's agent 2`.
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
    /// The race of such an execution, if it was asked for.
    pub race: Option<Box<Fault>>,
}

/// Every outcome of a test under a model.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// Whether the list is complete.
    pub complete: bool,
    /// If not: why.
    pub reason: Option<Reason>,
    /// The outcomes, sorted by state: the allowed ones, and those of candidate executions that the
    /// model rejects.
    pub outcomes: Vec<Outcome>,
    /// Which engine.
    pub engine: &'static str,
    /// As in [`Answer::bound`].
    pub bound: Option<u32>,
    /// As in [`Answer::defect`].
    pub defect: Option<String>,
    /// As in [`Answer::definedness`].
    pub definedness: Option<Definedness>,
}
