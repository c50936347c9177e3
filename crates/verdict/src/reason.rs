//! Defines why a question is left undecided.

use std::fmt;

use diag::SourceLine;
use thiserror::Error;

/// A reason, as data; `Display` makes its text. Undecided answers are not stored, so it needs no
/// serialization.
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
    /// A signal interrupted the program.
    #[error("interrupted")]
    Interrupted,
    /// A consistent execution continues after `bound` iterations.
    #[error("loop bound: {}", going_on(*.bound, .at))]
    LoopBound {
        /// The largest bound that was tried.
        bound: u32,
        /// The loop, by its first instruction.
        at: InstrPlace,
    },
    /// The model does not exclude values that depend on themselves.
    #[error("values out of thin air: this model does not exclude them, and they are too many")]
    ThinAir,
    /// Lanes of a warp exchange values at a place where they may not meet.
    #[error("{}", apart(place, *.named))]
    Apart {
        /// The place where one of them waits.
        place: InstrPlace,
        /// Whether the lane names itself.
        named: bool,
    },
    /// An access may address memory outside all locations; the access, if it belongs to a thread.
    #[error("{}", astray(.0))]
    Astray(Option<InstrPlace>),
    /// A consistent execution reaches a trap, a failing assertion, or a call of an unknown
    /// function.
    #[error("{_0} {}", aborted(_0))]
    Aborted(InstrPlace),
    /// The answer depends on a value that the checker cannot work out.
    #[error("not worked out: the value of {made}, on which {depends} depends")]
    Unknown {
        /// The instruction that makes the value.
        made: InstrPlace,
        /// The part of the answer that depends on it, in words.
        depends: String,
    },
    /// The answer depends on the content of memory before any write to it.
    #[error("not worked out: {}", unwritten(.read, .memory, .depends))]
    Unwritten {
        /// The read; `None` if the outcome shows the memory's final value.
        read: Option<Box<InstrPlace>>,
        /// The memory.
        memory: String,
        /// The part of the answer that depends on it, in words.
        depends: String,
    },
    /// Implementations may define the behaviour of these instructions.
    #[error("implementation-defined: {}; {what}", all(.at))]
    ImplementationDefined {
        /// The instructions.
        at: Vec<InstrPlace>,
        /// The choice, in the model's words.
        what: String,
    },
    /// Only executions in which a thread does not end have the outcome.
    #[error(
        "only executions with a thread that does not end have this outcome, and later commands \
        may not run then"
    )]
    Unended,
    /// A host program in which some wait never ends.
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// The checker cannot work out the results of calls by host threads.
    #[error("{0}")]
    Calls(String),
    /// A progress model does not say which thread runs.
    #[error("{model} does not say which thread runs when {what}")]
    Unserved {
        /// The progress model.
        model: String,
        /// The case that it leaves open.
        what: String,
    },
    /// The model cannot express it.
    #[error("not in this model: {0}")]
    NotInModel(String),
    /// Neither a proof for launches of this size was found, nor an execution.
    #[error("not proved: {0}")]
    NotProved(String),
    /// Fencepost does not support it.
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
    /// A barrier has more possible phase assignments than the checker tries.
    #[error("too many barrier phases: more than {0} arrivals share a barrier with a smaller count")]
    TooManyPhases(usize),
    /// A term takes too many values to list; the first instruction that needs the list.
    #[error("too many values: {}", many(.0))]
    TooManyValues(Option<InstrPlace>),
    /// The checker works out the sum of atomics at one location as a whole, given all axioms. One
    /// of the atomics.
    #[error("the sum computed by {} and others assumes every axiom, so the deciding axioms cannot \
        be named", .0)]
    AddedUp(InstrPlace),
    /// The checker works out the results of operations on one mbarrier object as a whole, given all
    /// axioms. One of the operations.
    #[error("the phases seen by {} and others assume every axiom, so the deciding axioms cannot \
        be named", .0)]
    InOrder(InstrPlace),
    /// More outcomes than a person would read.
    #[error("too many outcomes: there are more than {0}")]
    TooManyOutcomes(usize),
    /// The circuit is too large for a solver.
    #[error("too large: the circuit has more than 2 million gates or clauses")]
    TooManyGates,
    /// The orders between decisions and open cells take too much memory.
    #[error("too large: the orders between events take more than a gigabyte")]
    TooManyOrders,
    /// Runs that are too long for the checkers.
    #[error(
        "its {0} accesses are too many for the checkers; the executor searched its runs for races \
        only"
    )]
    TooManyAccesses(usize),
    /// A program with too many accesses to list the outcomes that a model allows.
    #[error(
        "its {0} accesses are too many to list all allowed outcomes; the model judged each \
        observed outcome"
    )]
    NotListed(usize),
    /// A search through changes of the program ended early.
    #[error("the program has too many changes to try")]
    TooManyChanges,
    /// An engine failed.
    #[error("{0}")]
    Engine(String),
    /// A law was broken: the answer has its text.
    #[error("defect")]
    Defect,
    /// The checker itself failed.
    #[error("a defect of Fencepost")]
    Broken,
}

impl Reason {
    /// Whether the program is too large for the engines, however much time they have.
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

    /// A short text, without the details such as line and instruction.
    pub fn kind(&self) -> String {
        let text = self.to_string();
        text.split(": ").next().unwrap_or(&text).to_owned()
    }
}

/// An instruction of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrPlace {
    /// The instruction as written.
    pub text: String,
    /// The name of its thread.
    pub thread: String,
    /// Its 1-based line in the test file; 0 if it has none.
    pub line: SourceLine,
}

impl fmt::Display for InstrPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}, line {})", self.text, self.thread, self.line)
    }
}

fn all(places: &[InstrPlace]) -> String {
    let places: Vec<String> = places.iter().map(InstrPlace::to_string).collect();
    places.join(" and ")
}

fn going_on(bound: u32, at: &InstrPlace) -> String {
    let iterations = if bound == 1 {
        "1 iteration".to_owned()
    } else {
        format!("{bound} iterations")
    };
    let InstrPlace { thread, line, .. } = at;
    format!(
        "{thread} can go on after {iterations} of the loop at line {line}; try `--bound {}`",
        2 * bound.max(2)
    )
}

fn aborted(place: &InstrPlace) -> &'static str {
    if has_opcode(place, "call") {
        "calls an unknown function, and the effect of the call is unknown"
    } else if has_opcode(place, "brx") {
        "can go beyond the end of its list of labels, and the behaviour is undefined then"
    } else {
        "can end the program, and the content of memory is unknown then"
    }
}

/// Whether an instruction has this opcode.
fn has_opcode(place: &InstrPlace, opcode: &str) -> bool {
    place
        .text
        .split_whitespace()
        .any(|word| word.split('.').next() == Some(opcode))
}

fn many(at: &Option<InstrPlace>) -> String {
    let what = "an address, an operand of floating point, or a value that depends on itself";
    let of = at
        .as_ref()
        .map(|at| format!(", of {at}"))
        .unwrap_or_default();
    format!("{what}{of}, takes more than a thousand values")
}

fn unwritten(read: &Option<Box<InstrPlace>>, memory: &str, depends: &str) -> String {
    match read {
        Some(read) => {
            format!(
                "{read} can read `{memory}` before any write to it; its first value is unknown, \
                and {depends} depends on it"
            )
        }
        None => {
            format!(
                "`{memory}` can keep its initial value, which is unknown, and {depends} depends \
                on it"
            )
        }
    }
}

fn apart(place: &InstrPlace, named: bool) -> String {
    if named {
        format!(
            "{place} waits for threads of its group, and some of them may not arrive in every \
            execution"
        )
    } else {
        format!(
            "{place} is undefined: it does not name its own thread, or reads from a thread that \
            it does not name"
        )
    }
}

fn astray(access: &Option<InstrPlace>) -> String {
    match access {
        Some(access) => {
            format!(
                "{access} can access memory outside every location, or memory that it may not \
                access"
            )
        }
        None => "an access can be outside every location".to_owned(),
    }
}
