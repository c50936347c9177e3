//! Describes runs that did not finish.

use super::recorded::Recorded;
use crate::Fault;
use verdict::ThreadEnd;

/// The way in which a run ended without finishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Threads wait for each other at barriers.
    Deadlock,
    /// Threads repeat the same steps, although every thread that may step does so again and again.
    Livelock,
    /// A livelock in which a weak read finds an overwritten value forever. Compilers and caches
    /// permit that; the progress models do not count it.
    Stale,
    /// The run reached a limit.
    Limit,
    /// An action of a thread has no meaning.
    Fault(Fault),
    /// The launch failed: nothing ran.
    Launch,
}

impl How {
    /// All of them, with their names in reports.
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

    /// The name in reports.
    pub fn name(self) -> &'static str {
        How::ALL[self.number()].1
    }
}

/// The numbers of runs by their end; for an exhaustive exploration, the numbers of end states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Every thread ran to its end.
    pub finished: u64,
    /// Runs that could not commit an early bind, which do not count.
    pub discarded: u64,
    /// The others, in the order of [`How::ALL`].
    stopped: [u64; How::ALL.len()],
}

impl Ended {
    /// The number of runs that ended in this way.
    pub fn by(&self, how: How) -> u64 {
        self.stopped[how.number()]
    }

    pub(super) fn count(&mut self, how: How, times: u64) {
        self.stopped[how.number()] += times;
    }

    /// Only the runs that finished or do not count.
    pub(crate) fn without_stops(self) -> Ended {
        Ended {
            stopped: Default::default(),
            ..self
        }
    }

    /// Adds the numbers of another exploration.
    pub(super) fn add(&mut self, other: &Ended) {
        self.finished += other.finished;
        self.discarded += other.discarded;
        self.stopped
            .iter_mut()
            .zip(other.stopped)
            .for_each(|(a, b)| *a += b);
    }

    /// The ends with their numbers, in words; without zeros.
    pub fn words(&self) -> Vec<(&'static str, u64)> {
        let stopped = How::ALL.iter().zip(self.stopped).map(|(how, n)| (how.1, n));
        let all = [("finished", self.finished)]
            .into_iter()
            .chain(stopped)
            .chain([("discarded", self.discarded)]);
        all.filter(|e| e.1 > 0).collect()
    }

    /// Whether no run finished or otherwise showed the program's behaviour: all wait or go on.
    pub fn only_hangs(&self) -> bool {
        let hangs = [How::Deadlock, How::Livelock, How::Stale, How::Limit]
            .map(|how| self.by(how))
            .iter()
            .sum::<u64>();
        self.finished == 0 && hangs > 0 && hangs == self.stopped.iter().sum::<u64>()
    }
}

/// The reason why a run ended without finishing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reason {
    /// Line by line.
    pub(crate) why: Vec<String>,
    /// The situation of each thread, if that is informative.
    pub(crate) ends: Vec<ThreadEnd>,
}

impl Reason {
    /// A reason of one line.
    pub(super) fn line(why: String) -> Reason {
        Reason {
            why: vec![why],
            ends: Vec::new(),
        }
    }
}

/// Runs that ended in the same way for the same reason.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The way in which they ended.
    pub how: How,
    /// The reason, line by line.
    pub why: Vec<String>,
    /// The situation of each thread, if the program has few.
    pub ends: Vec<ThreadEnd>,
    /// The number of runs, or of states.
    pub count: u64,
    /// One of them.
    pub schedule: Recorded,
}

/// The largest number of separate reasons; further ones count for the last one of their kind.
const MAX_REASONS: usize = 16;

/// The stops collected so far.
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
