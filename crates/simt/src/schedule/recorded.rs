//! Runs written down: the thread of every step, and the answers to its choices.

use serde::{Deserialize, Serialize};

use crate::Launch;

/// One step of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The thread.
    pub thread: usize,
    /// Whether it bound something before its turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early: bool,
    /// Its choices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<u32>,
}

/// A recorded run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The memory, as [`crate::MachineMemory::name`] has it.
    #[serde(default)]
    pub memory: String,
    /// The early binds allowed, as [`crate::Early::parse`] reads them.
    #[serde(default)]
    pub early: String,
    /// The scheduling, as [`crate::Scheduling::name`] has it; independent if empty.
    #[serde(default)]
    pub scheduling: String,
    /// What it was launched on.
    #[serde(default)]
    pub launch: Launch,
    /// Whether fences and barriers were steps of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patient: bool,
    /// Whether commands waited for a flush.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lazy: bool,
    /// After how many steps each the memory was brought into normal form.
    #[serde(default = "every")]
    pub period: usize,
    /// In order.
    pub steps: Vec<Step>,
    /// How many steps at the end come back to the state before them: the run may go on so for ever.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: usize,
    /// Which of the possible final values each location has.
    #[serde(default)]
    pub finals: Vec<u32>,
}

impl Recorded {
    /// Those steps, each in normal form.
    pub(super) fn whole(steps: Vec<Step>) -> Recorded {
        Recorded {
            period: 1,
            steps,
            ..Recorded::default()
        }
    }
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

fn every() -> usize {
    1
}
