//! Counts the outcomes seen on a device.

use std::collections::BTreeMap;
use std::time::Duration;

/// The results of a run on a device.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Final values, in the order of the test's observables, with their counts.
    pub outcomes: BTreeMap<Vec<i64>, u64>,
    /// Instances with a thread that was given up, because a loop took too long.
    pub stuck: u64,
    /// Launches.
    pub launches: u64,
    /// The time for which the device was busy.
    pub busy: Duration,
}

impl Histogram {
    /// All instances.
    pub fn instances(&self) -> u64 {
        self.outcomes.values().sum::<u64>() + self.stuck
    }
}
