//! The record of a run: the thread of every step, and the answers to its choices.

use serde::{Deserialize, Serialize};

use crate::LaunchOptions;

/// One step of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleStep {
    /// The thread.
    pub thread: usize,
    /// Whether it bound an instruction before its turn.
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
    /// The memory, by [`crate::MachineMemory::name`].
    #[serde(default)]
    pub memory: String,
    /// The early binds allowed, in the form that [`crate::Early::parse`] reads.
    #[serde(default)]
    pub early: String,
    /// The scheduling, by [`crate::Scheduling::name`]; independent if empty.
    #[serde(default)]
    pub scheduling: String,
    /// The device and the parameters of the launch.
    #[serde(default)]
    pub launch: LaunchOptions,
    /// Whether fences and barriers were separate steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patient: bool,
    /// Whether commands waited for a flush.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lazy: bool,
    /// The number of steps after which the memory was brought into normal form each time.
    #[serde(default = "every")]
    pub period: usize,
    /// The steps, in order.
    pub steps: Vec<ScheduleStep>,
    /// The number of steps at the end that return to the state before them: the run may repeat them
    /// forever.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: usize,
    /// For each location, the index of its final value among the possible ones.
    #[serde(default)]
    pub finals: Vec<u32>,
}

impl Recorded {
    /// A recording of those steps, with the normal form after each.
    pub(super) fn whole(steps: Vec<ScheduleStep>) -> Recorded {
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
