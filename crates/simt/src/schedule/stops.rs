//! Runs that did not finish.

use super::Recorded;
use crate::Fault;
use verdict::ThreadEnd;

/// How a run ended that did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Threads wait for each other at barriers.
    Deadlock,
    /// Threads go round and round, though every thread that may step does so again and again.
    Livelock,
    /// They do if a weak read finds for ever what was overwritten: compilers and caches permit that, and the progress
    /// models do not count it.
    Stale,
    /// A limit was met.
    Limit,
    /// A thread did something that has no meaning.
    Fault(Fault),
    /// The launch failed: nothing ran.
    Launch,
}

impl How {
    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            How::Deadlock => "deadlock",
            How::Livelock => "livelock",
            How::Stale => "stale-livelock",
            How::Limit => "step-limit",
            How::Fault(Fault::Stray) => "stray",
            How::Fault(Fault::Barrier) => "divergence",
            How::Fault(Fault::Division) => "division",
            How::Launch => "launch-failure",
        }
    }
}

/// Why a run ended that did not finish.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reason {
    /// Line by line.
    pub(crate) why: Vec<String>,
    /// How each thread stands, if that says anything.
    pub(crate) ends: Vec<ThreadEnd>,
}

impl Reason {
    /// In one line.
    pub(super) fn line(why: String) -> Reason {
        Reason { why: vec![why], ends: Vec::new() }
    }
}

/// Runs that ended in one way, for one reason.
#[derive(Clone, Debug)]
pub struct Stop {
    /// How.
    pub how: How,
    /// The reason, line by line.
    pub why: Vec<String>,
    /// How each thread stands, if the program has few.
    pub ends: Vec<ThreadEnd>,
    /// How many runs, or states.
    pub count: u64,
    /// One of them.
    pub schedule: Recorded,
}

/// At most so many reasons are told apart; after that they count for the last one of their kind.
const MAX_REASONS: usize = 16;

/// Stops while they are collected.
#[derive(Default)]
pub(super) struct Stops(Vec<Stop>);

impl Stops {
    pub(super) fn add(&mut self, how: How, reason: impl FnOnce() -> Reason, schedule: Recorded) {
        let full = self.0.len() >= MAX_REASONS;
        if let Some(known) = self.0.iter_mut().rev().find(|s| full && s.how == how) {
            known.count += 1;
            return;
        }
        let Reason { why, ends } = reason();
        match self.0.iter_mut().find(|s| s.how == how && s.why == why) {
            Some(known) => known.count += 1,
            None => self.0.push(Stop { how, why, ends, count: 1, schedule }),
        }
    }

    pub(super) fn into_list(self) -> Vec<Stop> {
        self.0
    }
}
