//! Describes an execution that a model flags: a data race, or other undefined behaviour.
//!
//! # Invariants
//! - An engine verified each [`Remedy::Changes`]: it decided the changed program anew and found no
//!   race.

use diag::{SourceLine, Span};
use serde::{Deserialize, Serialize};

use super::{Need, Reason, Witness, WitnessEvent};

/// Whether a program is defined under a model that has undefined behaviour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Definedness {
    /// No execution is undefined.
    Defined,
    /// Some execution is undefined; one of its faults.
    Undefined(Box<Fault>),
    /// The question was not decided; the reason.
    #[serde(skip)]
    Undecided(Reason),
}

/// The events that a flag of the model marks in one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The flag's name.
    pub flag: String,
    /// The model's name for the relation that contains the events: `data-race`, `divergence`.
    pub relation: String,
    /// Whether it is a data race.
    pub race: bool,
    /// Whether something is used after its end.
    #[serde(default)]
    pub lifetime: bool,
    /// The memory that both events access, as outcomes name it.
    pub place: Option<String>,
    /// The location that contains this memory.
    pub object: Option<String>,
    /// One or two events; none if the flag marks no events.
    pub events: Vec<FaultEvent>,
    /// Why the model objects, one reason each.
    pub why: Vec<String>,
    /// Changes that would help; `None` if the question did not include them.
    pub remedy: Option<Remedy>,
    /// The whole execution.
    pub execution: Option<Witness>,
}

/// An event that takes part in a [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// The event.
    pub event: WitnessEvent,
    /// The kind of event: `plain store`, `load`, `barrier`.
    pub noun: String,
    /// Its position in [`Fault::execution`].
    pub at: Option<usize>,
    /// Its instruction in the test's source file; `None` for initial writes.
    pub span: Option<Span>,
}

/// Two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RacingPair {
    /// The memory that both access, as outcomes name it.
    pub place: Option<String>,
    /// The two accesses.
    pub events: [FaultEvent; 2],
}

impl RacingPair {
    /// The places as text: `P0 line 3 with P1 line 8`.
    pub fn places(&self) -> String {
        self.events
            .iter()
            .map(FaultEvent::place)
            .collect::<Vec<_>>()
            .join(" with ")
    }
}

/// All races of a program: one pair of accesses for each two lines that race in some execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RacingPairs {
    /// The pairs; the one of the answer's own execution comes first.
    pub pairs: Vec<RacingPair>,
    /// Whether the list is complete at the answer's loop bound.
    pub complete: bool,
}

/// Changes that make a program race-free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remedy {
    /// These changes together remove all races; each is necessary and as weak as possible.
    Changes(Vec<Change>),
    /// No tried change of orders, scopes and atomicity removes the races; the reason.
    None(String),
    /// The search was not completed; the reason.
    #[serde(skip)]
    Undecided(Reason),
}

/// One change to a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The line of the operation; 0 means all accesses to a location.
    pub line: SourceLine,
    /// The requirement, as a clause: ``P0's store at line 5 has `thread_scope_device` ``.
    pub text: String,
    /// Why the current code does not suffice; empty if the reasons of the fault say so.
    pub reason: String,
    /// The change as text to insert into the code; `None` if it does not change the code.
    pub edit: Option<Need>,
}

impl FaultEvent {
    /// The place as text: `P0 line 3`.
    pub fn place(&self) -> String {
        format!("{} line {}", self.event.who(), self.event.line)
    }
}

impl Fault {
    /// The name of the fault: `data race`, `unsequenced race`, `divergence`.
    pub fn name(&self) -> String {
        if self.race {
            "data race".to_owned()
        } else {
            self.relation.replace(['-', '_'], " ")
        }
    }

    /// The places as text: `P0 line 3 with P1 line 8`.
    pub fn places(&self) -> String {
        self.events
            .iter()
            .map(FaultEvent::place)
            .collect::<Vec<_>>()
            .join(" with ")
    }

    /// A short text for a result line: `racy: the program is undefined (P0 line 3 with P1 line 8)`.
    pub fn brief(&self) -> String {
        let places = self.places();
        let at = if places.is_empty() {
            String::new()
        } else {
            format!(" ({places})")
        };
        if self.race {
            format!("racy: the program is undefined{at}")
        } else {
            format!("the program is undefined: {}{at}", self.name())
        }
    }
}
