//! What is wrong with an execution that a model flags: a data race, or other undefined behaviour.
//!
//! # Invariants
//! - A [`Remedy::Changes`] was verified: the changed program was decided anew, and it does not
//!   race.

use diag::SourceLine;
use serde::{Deserialize, Serialize};

use super::{Need, Reason, Witness, WitnessEvent};

/// Whether a program is defined under a model that knows undefined behaviour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Definedness {
    /// No execution is undefined.
    Defined,
    /// Some execution is; one thing that is wrong with it.
    Undefined(Box<Fault>),
    /// It was not decided, and why.
    #[serde(skip)]
    Undecided(Reason),
}

/// Something that a flag of the model marks in one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The flag's name.
    pub flag: String,
    /// What the model calls the relation that has the events: `data-race`, `divergence`.
    pub relation: String,
    /// Whether it is a data race.
    pub race: bool,
    /// The memory that both events access, as outcomes call it.
    pub place: Option<String>,
    /// The location that it is part of.
    pub object: Option<String>,
    /// Two events, or one; none if the flag marks no events.
    pub events: Vec<FaultEvent>,
    /// Why the model objects, one reason each.
    pub why: Vec<String>,
    /// What would help; `None` if nobody looked for it.
    pub remedy: Option<Remedy>,
    /// The whole execution.
    pub execution: Option<Witness>,
}

/// An event that takes part in a [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// The event.
    pub event: WitnessEvent,
    /// What it is: `plain store`, `load`, `barrier`.
    pub noun: String,
    /// Its position in [`Fault::execution`].
    pub at: Option<usize>,
}

/// Two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RacingPair {
    /// The memory that both access, as outcomes call it.
    pub place: Option<String>,
    /// The two.
    pub events: [FaultEvent; 2],
}

impl RacingPair {
    /// Where: `P0 line 3 with P1 line 8`.
    pub fn places(&self) -> String {
        self.events
            .iter()
            .map(FaultEvent::place)
            .collect::<Vec<_>>()
            .join(" with ")
    }
}

/// All accesses of a program that race: two for each two lines that do in some execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RacingPairs {
    /// They, that of the answer's own execution first.
    pub pairs: Vec<RacingPair>,
    /// Whether there are no others, at the loop bound of the answer.
    pub complete: bool,
}

/// What makes a program race-free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remedy {
    /// These changes together do; none of them can be spared or made weaker.
    Changes(Vec<Change>),
    /// No change of orders, scopes and atomicity that was tried does, and why.
    None(String),
    /// It was not found out.
    #[serde(skip)]
    Undecided(Reason),
}

/// One change to a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The line of the operation; 0: all accesses to a location.
    pub line: SourceLine,
    /// What has to be, as a clause: ``P0's store at line 5 has `thread_scope_device` ``.
    pub text: String,
    /// Why what is there does not do; empty if the reasons of the fault say so.
    pub reason: String,
    /// The same as text to be put into the code; `None`: it is no change of the code.
    pub edit: Option<Need>,
}

impl FaultEvent {
    /// Where: `P0 line 3`.
    pub fn place(&self) -> String {
        format!("{} line {}", self.event.who(), self.event.line)
    }
}

impl Fault {
    /// What it is called: `data race`, `unsequenced race`, `divergence`.
    pub fn name(&self) -> String {
        if self.race {
            "data race".to_owned()
        } else {
            self.relation.replace(['-', '_'], " ")
        }
    }

    /// Where: `P0 line 3 with P1 line 8`.
    pub fn places(&self) -> String {
        self.events
            .iter()
            .map(FaultEvent::place)
            .collect::<Vec<_>>()
            .join(" with ")
    }

    /// In a few words, for a result line: `racy: undefined behaviour, P0 line 3 with P1 line 8`.
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
