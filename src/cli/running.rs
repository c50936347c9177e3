//! Names what runs: a question that takes long, on standard error; the oldest one, in the bar.
//!
//! # Invariants
//! - A pair is named each time that a further period has passed, and once more when it ends.
//! - Nothing here ends a question: `--timeout` does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::plan::Unit;

/// The longest time between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// What workers decide, as messages call it.
pub(super) trait Titled {
    /// Its file, its test and its model.
    fn title(&self) -> String;
}

impl Titled for Unit<'_> {
    fn title(&self) -> String {
        format!(
            "{}: {} under {}",
            self.path, self.source.name, self.model.request
        )
    }
}

/// One that runs.
struct RunningPair {
    title: String,
    since: Instant,
    /// How many periods were told.
    periods: u32,
}

impl RunningPair {
    fn says(&self) -> String {
        format!("{} s: {}", self.since.elapsed().as_secs(), self.title)
    }
}

/// All that run.
pub(super) struct RunningPairs {
    /// By age: the oldest first.
    pairs: Mutex<BTreeMap<u64, RunningPair>>,
    next: AtomicU64,
    /// What counts as long; `None`: nothing.
    period: Option<Duration>,
}

impl RunningPairs {
    /// None yet.
    pub(super) fn new(period: Option<Duration>) -> RunningPairs {
        RunningPairs {
            pairs: Mutex::default(),
            next: AtomicU64::new(0),
            period,
        }
    }

    fn pairs(&self) -> MutexGuard<'_, BTreeMap<u64, RunningPair>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that one begins; its number.
    pub(super) fn begin(&self, title: String) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let since = Instant::now();
        let pair = RunningPair {
            title,
            since,
            periods: 0,
        };
        self.pairs().insert(number, pair);
        number
    }

    /// Notes that one ends; what to say if it took long.
    pub(super) fn end(&self, number: u64) -> Option<String> {
        let pair = self.pairs().remove(&number)?;
        (pair.periods > 0).then(|| format!("slow: ended after {}", pair.says()))
    }

    /// Looks from time to time, until the other side of the channel is gone. `bar` gets the oldest
    /// pair, `tell` each one that takes long.
    pub(super) fn watch(&self, ended: &Receiver<()>, bar: impl Fn(&str), tell: impl Fn(&str)) {
        let look = self.period.map_or(LOOK, |period| LOOK.min(period));
        while ended.recv_timeout(look) == Err(RecvTimeoutError::Timeout) {
            let (oldest, slow) = self.look();
            bar(&oldest);
            slow.iter().for_each(|text| tell(text));
        }
    }

    /// The oldest pair, and those that a further period has passed for.
    fn look(&self) -> (String, Vec<String>) {
        let mut pairs = self.pairs();
        let oldest = pairs.values().next().map(RunningPair::says);
        let mut slow = Vec::new();
        for pair in pairs.values_mut() {
            let passed = self.period.map_or(0, |period| {
                let passed = pair.since.elapsed().as_nanos() / period.as_nanos().max(1);
                u32::try_from(passed).unwrap_or(u32::MAX)
            });
            if passed > pair.periods {
                pair.periods = passed;
                slow.push(format!("slow: running for {}", pair.says()));
            }
        }
        (oldest.unwrap_or_default(), slow)
    }
}

impl Titled for &[Unit<'_>] {
    fn title(&self) -> String {
        self.first().map_or(String::new(), |unit| {
            format!("{}: {}", unit.path, unit.source.name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_named_once_a_period_and_at_its_end() {
        let pairs = RunningPairs::new(Some(Duration::from_millis(40)));
        let (old, new) = (pairs.begin("a".into()), pairs.begin("b".into()));
        assert_eq!(pairs.look(), ("0 s: a".into(), Vec::new()));
        assert_eq!(pairs.end(new), None);
        std::thread::sleep(Duration::from_millis(50));
        let (oldest, slow) = pairs.look();
        assert_eq!(oldest, "0 s: a");
        assert_eq!(slow, ["slow: running for 0 s: a"]);
        let short = RunningPairs::new(None);
        short.begin("c".into());
        assert_eq!(short.look().1, Vec::<String>::new());
        assert_eq!(pairs.end(old).as_deref(), Some("slow: ended after 0 s: a"));
        assert_eq!(pairs.look().0, "");
    }
}
