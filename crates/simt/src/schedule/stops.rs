//! Runs that did not finish.

use super::recorded::Recorded;
use crate::Fault;
use verdict::ThreadEnd;

/// How a run ended that did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Threads wait for each other at barriers.
    Deadlock,
    /// Threads go round and round, though every thread that may step does so again and again.
    Livelock,
    /// They do if a weak read finds for ever what was overwritten: compilers and caches permit
    /// that, and the progress models do not count it.
    Stale,
    /// A limit was met.
    Limit,
    /// A thread did something that has no meaning.
    Fault(Fault),
    /// The launch failed: nothing ran.
    Launch,
}

impl How {
    /// All of them, with the words for them in reports.
    const ALL: [(How, &'static str); 8] = [
        (How::Deadlock, "deadlock"),
        (How::Livelock, "livelock"),
        (How::Stale, "stale-livelock"),
        (How::Limit, "step-limit"),
        (How::Fault(Fault::Stray), "stray"),
        (How::Fault(Fault::Barrier), "divergence"),
        (How::Fault(Fault::Division), "division"),
        (How::Launch, "launch-failure"),
    ];

    fn number(self) -> usize {
        How::ALL
            .iter()
            .position(|how| how.0 == self)
            .expect("all are listed")
    }

    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        How::ALL[self.number()].1
    }
}

/// How runs ended; of an exhaustive exploration, how many states are such ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Every thread ran to its end.
    pub finished: u64,
    /// Something bound early could not be committed: such a run counts for nothing.
    pub discarded: u64,
    /// The others, as [`How::ALL`] has them.
    stopped: [u64; How::ALL.len()],
}

impl Ended {
    /// How many ended so.
    pub fn by(&self, how: How) -> u64 {
        self.stopped[how.number()]
    }

    pub(super) fn count(&mut self, how: How, times: u64) {
        self.stopped[how.number()] += times;
    }

    /// Those that finished or count for nothing.
    pub(crate) fn without_stops(self) -> Ended {
        Ended {
            stopped: Default::default(),
            ..self
        }
    }

    /// Adds those of another exploration.
    pub(super) fn add(&mut self, other: &Ended) {
        self.finished += other.finished;
        self.discarded += other.discarded;
        self.stopped
            .iter_mut()
            .zip(other.stopped)
            .for_each(|(a, b)| *a += b);
    }

    /// In words, as far as there are any.
    pub fn words(&self) -> Vec<(&'static str, u64)> {
        let stopped = How::ALL.iter().zip(self.stopped).map(|(how, n)| (how.1, n));
        let all = [("finished", self.finished)]
            .into_iter()
            .chain(stopped)
            .chain([("discarded", self.discarded)]);
        all.filter(|e| e.1 > 0).collect()
    }

    /// Whether no run finished, or came to anything else that says what the program does: they
    /// wait, or go on.
    pub fn only_hangs(&self) -> bool {
        let hangs = [How::Deadlock, How::Livelock, How::Stale, How::Limit]
            .map(|how| self.by(how))
            .iter()
            .sum::<u64>();
        self.finished == 0 && hangs > 0 && hangs == self.stopped.iter().sum::<u64>()
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
        Reason {
            why: vec![why],
            ends: Vec::new(),
        }
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
            None => self.0.push(Stop {
                how,
                why,
                ends,
                count: 1,
                schedule,
            }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_list(self) -> Vec<Stop> {
        self.0
    }
}
