//! Why a question is left undecided.

use std::fmt;

use diag::SourceLine;
use thiserror::Error;

/// A reason, as data; how it reads is made at the end. Answers that have one are not kept, so it is
/// never written as such.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// Time was up.
    #[error("out of time")]
    Time,
    /// The question needs more memory than it may use.
    #[error("out of memory")]
    Memory,
    /// Functions of the checker call themselves too often for this question.
    #[error("out of stack")]
    Stack,
    /// The program was told to end.
    #[error("interrupted")]
    Interrupted,
    /// A consistent execution goes on after that many iterations.
    #[error("loop bound: {}", going_on(*.bound, .at))]
    LoopBound {
        /// The largest bound that was tried.
        bound: u32,
        /// The loop, by its first instruction.
        at: Place,
    },
    /// The model does not exclude values that depend on themselves.
    #[error("values out of thin air: this model does not exclude them, and they are too many")]
    ThinAir,
    /// Lanes of a warp hand each other values where it is not known that they meet.
    #[error("{}", apart(place, *.named))]
    Apart {
        /// Where one of them waits.
        place: Place,
        /// Whether it names itself.
        named: bool,
    },
    /// An access can name no memory that it may access: which, if it is of a thread.
    #[error("{}", astray(.0))]
    Astray(Option<Place>),
    /// A consistent execution comes to a trap, to an assertion that does not hold, or to a call of
    /// an unknown function.
    #[error("{_0} {}", aborted(_0))]
    Aborted(Place),
    /// The answer depends on a value that is not worked out.
    #[error("not worked out: the value of {made}, on which {depends} depends")]
    Unknown {
        /// What makes the value.
        made: Place,
        /// What depends on it, in words.
        depends: String,
    },
    /// The answer depends on what is in memory that nothing has written.
    #[error("not worked out: {}", unwritten(.read, .memory, .depends))]
    Unwritten {
        /// What reads it; `None`: it is there at the end.
        read: Option<Box<Place>>,
        /// The memory.
        memory: String,
        /// What depends on it, in words.
        depends: String,
    },
    /// Implementations may settle what these instructions do: in what way, by the model.
    #[error("implementation-defined: {}; {what}", .at.iter().map(Place::to_string).collect::<Vec<_>>().join(" and "))]
    ImplementationDefined {
        /// Where.
        at: Vec<Place>,
        /// What the model says.
        what: String,
    },
    /// Only executions in which a thread does not end show what was asked for.
    #[error(
        "only executions in which a thread does not end show it, and then later commands may not run"
    )]
    Unended,
    /// A host program in which some wait never ends.
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// What calls of host threads can come to is not known.
    #[error("{0}")]
    Calls(String),
    /// A progress model leaves something open.
    #[error("{model} does not say who is run where {what}")]
    Unserved {
        /// The progress model.
        model: String,
        /// What it does not speak of.
        what: String,
    },
    /// The model has no words for it.
    #[error("not in this model: {0}")]
    NotInModel(String),
    /// We have none.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// More events than relations can hold.
    #[error("too many events: the test unrolls to more than {0}")]
    TooManyEvents(usize),
    /// Unrolling does not end in reasonable time.
    #[error("too many steps: a thread unrolls to more than {0} instructions")]
    TooManySteps(usize),
    /// A register is computed from itself too often.
    #[error("too deep a value: a register takes more than {0} operations in a row")]
    TooDeepValue(u32),
    /// Conditions and values take too much memory.
    #[error("too many paths: conditions and values of the test have more than {0} parts")]
    TooManyParts(usize),
    /// A barrier with more possible phase assignments than are worth trying.
    #[error("too many barrier phases: more than {0} arrivals share a barrier with a smaller count")]
    TooManyPhases(usize),
    /// A term takes too many values, where they have to be listed; the first instruction that needs
    /// it.
    #[error("too many values: {}", many(.0))]
    TooManyValues(Option<Place>),
    /// What atomics add to one location is worked out as a whole, which rests on all axioms; one of
    /// them.
    #[error("what {} and others add up is worked out only where all axioms hold, so which of them it takes is not known", .0)]
    AddedUp(Place),
    /// What operations on one mbarrier object find is worked out as a whole, which rests on all
    /// axioms; one of them.
    #[error("what {} and others find in one mbarrier object is worked out only where all axioms hold, so which of them it takes is not known", .0)]
    InOrder(Place),
    /// More outcomes than anybody would read.
    #[error("too many outcomes: there are more than {0}")]
    TooManyOutcomes(usize),
    /// The circuit is too large for a solver.
    #[error("too large: the circuit has more than 2 million gates or clauses")]
    TooManyGates,
    /// The orders between decisions and open questions take too much memory.
    #[error("too large: the orders that are being decided take more than a gigabyte")]
    TooManyOrders,
    /// Runs that are too long to be put before the checkers.
    #[error(
        "its {0} accesses are too many for the checkers; the runs were looked through for races alone"
    )]
    TooManyAccesses(usize),
    /// A program of which the outcomes that a model allows are not listed.
    #[error(
        "its {0} accesses are too many to list what the model allows; it was asked of each outcome that was observed"
    )]
    NotListed(usize),
    /// A search through changes of the program was given up.
    #[error("there are too many changes to try")]
    TooManyChanges,
    /// An engine failed.
    #[error("{0}")]
    Engine(String),
    /// A law was broken: the answer comes with it.
    #[error("defect")]
    Defect,
    /// The checker itself failed.
    #[error("a defect of Fencepost")]
    Broken,
}

impl Reason {
    /// Whether the program is too large for the engines, whatever time they have.
    pub fn is_size(&self) -> bool {
        matches!(
            self,
            Reason::TooManyEvents(_)
                | Reason::TooManySteps(_)
                | Reason::TooDeepValue(_)
                | Reason::TooManyParts(_)
                | Reason::TooManyPhases(_)
                | Reason::TooManyValues(_)
                | Reason::TooManyGates
                | Reason::TooManyOrders
        )
    }

    /// In short, without the details: which line, which instruction.
    pub fn kind(&self) -> String {
        let text = self.to_string();
        text.split(": ").next().unwrap_or(&text).to_owned()
    }
}

/// An instruction of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As written.
    pub text: String,
    /// The name of its thread.
    pub thread: String,
    /// Its 1-based line in the test file; 0: none.
    pub line: SourceLine,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}, line {})", self.text, self.thread, self.line)
    }
}

fn going_on(bound: u32, at: &Place) -> String {
    let iterations = if bound == 1 {
        "1 iteration".to_owned()
    } else {
        format!("{bound} iterations")
    };
    let Place { thread, line, .. } = at;
    format!(
        "{thread} can go on after {iterations} of the loop at line {line}; try `--bound {}`",
        2 * bound.max(2)
    )
}

fn aborted(place: &Place) -> &'static str {
    let word = |opcode: &str| {
        place
            .text
            .split_whitespace()
            .any(|word| word.split('.').next() == Some(opcode))
    };
    if word("call") {
        "calls a function that is not known: what happens then is not said"
    } else if word("brx") {
        "goes beyond the end of its list of labels, which is undefined: what happens then is not said"
    } else {
        "can end the program: what is in memory then is not said"
    }
}

fn many(at: &Option<Place>) -> String {
    let what = "an address, an operand of floating point, or a value that depends on itself";
    let of = at
        .as_ref()
        .map(|at| format!(", of {at}"))
        .unwrap_or_default();
    format!("{what}{of}, takes more than a thousand")
}

fn unwritten(read: &Option<Box<Place>>, memory: &str, depends: &str) -> String {
    match read {
        Some(read) => {
            format!(
                "{read} can read `{memory}` before anything is written there; its first value is unknown, and {depends} depends on it"
            )
        }
        None => {
            format!(
                "`{memory}` can end as it began, with an unknown value, and {depends} depends on it"
            )
        }
    }
}

fn apart(place: &Place, named: bool) -> String {
    if named {
        format!(
            "{place} waits for threads of its group that may not all come, or not in the same executions"
        )
    } else {
        format!(
            "{place} is undefined: it names threads without itself, or reads one that it does not name"
        )
    }
}

fn astray(access: &Option<Place>) -> String {
    match access {
        Some(access) => {
            format!("{access} can access memory that no location names, or that it may not access")
        }
        None => "an access can name no memory".to_owned(),
    }
}
