//! What was seen on a device, counted.

use std::collections::BTreeMap;
use std::time::Duration;

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Final values, in the order of the test's observables, with how often they came out.
    pub outcomes: BTreeMap<Vec<i64>, u64>,
    /// Instances with a thread that was given up: a loop went on for too long.
    pub stuck: u64,
    /// Launches.
    pub launches: u64,
    /// How long the device was at work.
    pub busy: Duration,
}

impl Histogram {
    /// All instances.
    pub fn instances(&self) -> u64 {
        self.outcomes.values().sum::<u64>() + self.stuck
    }
}
