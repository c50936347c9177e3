//! Describes runs that did not finish.

use super::recorded::Recorded;
use crate::FaultKind;
use verdict::ThreadEnd;

/// The way in which a run ended without finishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StopKind {
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
    Fault(FaultKind),
    /// The launch failed: nothing ran.
    Launch,
}

impl StopKind {
    /// All of them, with their names in reports.
    const ALL: [(StopKind, &'static str); 8] = [
        (StopKind::Deadlock, "deadlock"),
        (StopKind::Livelock, "livelock"),
        (StopKind::Stale, "stale-livelock"),
        (StopKind::Limit, "step-limit"),
        (StopKind::Fault(FaultKind::Stray), "stray"),
        (StopKind::Fault(FaultKind::Barrier), "divergence"),
        (StopKind::Fault(FaultKind::Division), "division"),
        (StopKind::Launch, "launch-failure"),
    ];

    fn number(self) -> usize {
        StopKind::ALL
            .iter()
            .position(|how| how.0 == self)
            .expect("all are listed")
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        StopKind::ALL[self.number()].1
    }
}

/// The numbers of runs by their end; for an exhaustive exploration, the numbers of end states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// Every thread ran to its end.
    pub finished: u64,
    /// Runs that could not commit an early bind, which do not count.
    pub discarded: u64,
    /// The others, in the order of [`StopKind::ALL`].
    stopped: [u64; StopKind::ALL.len()],
}

impl EndCounts {
    /// The number of runs that ended in this way.
    pub fn by(&self, how: StopKind) -> u64 {
        self.stopped[how.number()]
    }

    pub(super) fn count(&mut self, how: StopKind, times: u64) {
        self.stopped[how.number()] += times;
    }

    /// Only the runs that finished or do not count.
    pub(crate) fn without_stops(self) -> EndCounts {
        EndCounts {
            stopped: Default::default(),
            ..self
        }
    }

    /// Adds the numbers of another exploration.
    pub(super) fn add(&mut self, other: &EndCounts) {
        self.finished += other.finished;
        self.discarded += other.discarded;
        self.stopped
            .iter_mut()
            .zip(other.stopped)
            .for_each(|(a, b)| *a += b);
    }

    /// The ends with their numbers, in words; without zeros.
    pub fn words(&self) -> Vec<(&'static str, u64)> {
        let stopped = StopKind::ALL
            .iter()
            .zip(self.stopped)
            .map(|(how, n)| (how.1, n));
        let all = [("finished", self.finished)]
            .into_iter()
            .chain(stopped)
            .chain([("discarded", self.discarded)]);
        all.filter(|e| e.1 > 0).collect()
    }

    /// Whether no run finished or otherwise showed the program's behaviour: all wait or go on.
    pub fn only_hangs(&self) -> bool {
        let hangs = [
            StopKind::Deadlock,
            StopKind::Livelock,
            StopKind::Stale,
            StopKind::Limit,
        ]
        .map(|how| self.by(how))
        .iter()
        .sum::<u64>();
        self.finished == 0 && hangs > 0 && hangs == self.stopped.iter().sum::<u64>()
    }
}

/// The reason why a run ended without finishing.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopReason {
    /// Line by line.
    pub(crate) why: Vec<String>,
    /// The situation of each thread, if that is informative.
    pub(crate) ends: Vec<ThreadEnd>,
}

impl StopReason {
    /// A reason of one line.
    pub(super) fn line(why: String) -> StopReason {
        StopReason {
            why: vec![why],
            ends: Vec::new(),
        }
    }
}

/// Runs that ended in the same way for the same reason.
#[derive(Clone, Debug)]
pub struct StopReport {
    /// The way in which they ended.
    pub how: StopKind,
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
pub(super) struct Stops(Vec<StopReport>);

impl Stops {
    pub(super) fn add(
        &mut self,
        how: StopKind,
        reason: impl FnOnce() -> StopReason,
        schedule: Recorded,
    ) {
        let full = self.0.len() >= MAX_REASONS;
        if let Some(known) = self.0.iter_mut().rev().find(|s| full && s.how == how) {
            known.count += 1;
            return;
        }
        let StopReason { why, ends } = reason();
        match self.0.iter_mut().find(|s| s.how == how && s.why == why) {
            Some(known) => known.count += 1,
            None => self.0.push(StopReport {
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

    pub(super) fn into_list(self) -> Vec<StopReport> {
        self.0
    }
}
