//! Works on many items on several threads, with results in the order of the items.
//!
//! # Invariants
//! - The sink sees results by ascending index, without gaps, whatever the number of threads.
//! - Items are started in order too, so that few results wait for an earlier one.
//! - After the sink has broken off, no further item is started.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::interrupt;

/// Evaluation recurses over models and programs, so it needs room. The system provides memory only
/// for the used part.
pub(super) const STACK_BYTES: usize = 128 << 20;

/// The interval of looking for a stop request.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The time that the first thread works alone: a small test ends before a second thread pays off.
const ALONE: Duration = Duration::from_millis(2);

/// An event for the sink.
pub(super) enum PoolEvent<R> {
    /// The next result.
    Result(R),
    /// All results were given, but some worker has not returned and does not listen. Nothing
    /// follows.
    Abandoned,
}

/// The threads that answer questions: never more than questions.
#[derive(Clone, Copy)]
pub(super) struct Pool {
    jobs: usize,
}

impl Pool {
    /// `jobs` threads; `None`: one per processor.
    pub(super) fn new(jobs: Option<u16>) -> Pool {
        Pool {
            jobs: jobs.map_or_else(
                || thread::available_parallelism().map_or(1, usize::from),
                usize::from,
            ),
        }
    }

    /// The number of threads.
    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    /// Does `work` on each item and hands the results to `sink`, in order, on the calling thread.
    ///
    /// Once a stop is requested, `work` should return soon, with a result that needs no work. If it
    /// does not return within [`interrupt::PATIENCE`], the calling thread repeats it, and
    /// [`Event::Abandoned`] ends the sequence. The sink may then [leave](interrupt::leave), since
    /// this function would wait.
    pub(super) fn in_order<T, R>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
        sink: impl FnMut(PoolEvent<R>) -> ControlFlow<()>,
    ) where
        T: Sync,
        R: Send,
    {
        self.in_order_until(
            items,
            work,
            sink,
            &|| stop::requested().is_some(),
            interrupt::PATIENCE,
        );
    }

    fn in_order_until<T, R>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
        mut sink: impl FnMut(PoolEvent<R>) -> ControlFlow<()>,
        stopped: &dyn Fn() -> bool,
        patience: Duration,
    ) where
        T: Sync,
        R: Send,
    {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let (next, stop, work) = (&next, &stop, &work);
            let does = move |sender: Sender<(usize, R)>| {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    // The receiver goes away once the sink has broken off.
                    if sender.send((index, work(item))).is_err() {
                        break;
                    }
                }
            };
            let start = |i: usize, sender: &Sender<(usize, R)>| {
                let sender = sender.clone();
                let worker = thread::Builder::new()
                    .name(format!("worker-{i}"))
                    .stack_size(STACK_BYTES);
                worker.spawn_scoped(scope, move || does(sender)).is_ok()
            };
            // If the system gives fewer threads, fewer do the work; if it gives none, this one
            // does.
            if !start(0, &sender) {
                does(sender.clone());
            }
            let begun = Instant::now();
            let mut for_others = Some(sender);
            let mut waiting = BTreeMap::new();
            let mut due = 0;
            let mut since: Option<Instant> = None;
            loop {
                if due == items.len() {
                    return;
                }
                if begun.elapsed() >= ALONE
                    && let Some(sender) = for_others.take()
                {
                    let left = items.len().saturating_sub(next.load(Ordering::Relaxed));
                    let _ = (1..self.jobs.min(left + 1)).all(|i| start(i, &sender));
                }
                match receiver.recv_timeout(if for_others.is_some() { ALONE } else { LOOK_UP }) {
                    Ok((index, result)) => {
                        waiting.insert(index, result);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                while let Some(result) = waiting.remove(&due) {
                    due += 1;
                    if sink(PoolEvent::Result(result)).is_break() {
                        stop.store(true, Ordering::Relaxed);
                        return;
                    }
                }
                if stopped() {
                    stop::interrupt_all();
                    if since.get_or_insert_with(Instant::now).elapsed() > patience {
                        break;
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
            for (index, item) in items.iter().enumerate().skip(due) {
                let result = waiting.remove(&index).unwrap_or_else(|| work(item));
                if sink(PoolEvent::Result(result)).is_break() {
                    break;
                }
            }
            let _ = sink(PoolEvent::Abandoned);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_breaking_off_works() {
        let items: Vec<u64> = (0..200).collect();
        for jobs in [1, 2, 8] {
            let pool = Pool::new(Some(jobs));
            let slow_at_first = |&i: &u64| {
                std::thread::sleep(std::time::Duration::from_micros(if i % 7 == 0 {
                    500
                } else {
                    0
                }));
                i
            };
            let mut seen = Vec::new();
            pool.in_order(&items, slow_at_first, |event| {
                let PoolEvent::Result(i) = event else {
                    panic!("nothing was stopped")
                };
                seen.push(i);
                if i == 150 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            assert_eq!(seen, (0..=150).collect::<Vec<_>>());
        }
    }

    #[test]
    fn others_come_where_the_first_is_not_done_soon() {
        let meet = std::sync::Barrier::new(2);
        let mut seen = 0;
        Pool::new(Some(2)).in_order(
            &[(), ()],
            |()| meet.wait(),
            |_| {
                seen += 1;
                ControlFlow::Continue(())
            },
        );
        assert_eq!(seen, 2);
        Pool::new(Some(2)).in_order(&[], |()| (), |_| panic!("there is nothing"));
    }

    #[test]
    fn whoever_does_not_listen_is_not_waited_for() {
        let (pool, stopped) = (Pool::new(Some(2)), AtomicBool::new(false));
        let work = |&i: &u32| {
            if i == 1 && !stopped.swap(true, Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(2));
                return (i, "late");
            }
            (i, "at once")
        };
        let (mut seen, mut abandoned) = (Vec::new(), None);
        let begin = Instant::now();
        let sink = |event: PoolEvent<(u32, &'static str)>| {
            match event {
                PoolEvent::Result(result) => seen.push(result),
                PoolEvent::Abandoned => abandoned = Some(begin.elapsed()),
            }
            ControlFlow::Continue(())
        };
        let is_stopped = || stopped.load(Ordering::Relaxed);
        pool.in_order_until(
            &[0, 1, 2],
            work,
            sink,
            &is_stopped,
            Duration::from_millis(50),
        );
        assert_eq!(seen, [(0, "at once"), (1, "at once"), (2, "at once")]);
        assert!(
            abandoned.is_some_and(|time| time < Duration::from_secs(1)),
            "{abandoned:?}"
        );
    }
}
