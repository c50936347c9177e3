//! Many pieces of work on several threads, with results in the order of the pieces.
//!
//! # Invariants
//! - The sink sees results by ascending index, without gaps, whatever the number of threads.
//! - Pieces are started in order too, so that results that wait for an earlier one stay few.
//! - After the sink has broken off, no further piece is started.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Evaluation recurses over models and programs: give it room.
const STACK_BYTES: usize = 16 << 20;

/// The threads that answer questions.
pub(super) struct Pool(rayon::ThreadPool);

impl Pool {
    /// `jobs` threads; `None`: one per processor.
    pub(super) fn new(jobs: Option<u16>) -> Result<Pool, rayon::ThreadPoolBuildError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.map_or(0, usize::from))
            .stack_size(STACK_BYTES)
            .thread_name(|i| format!("worker-{i}"))
            .build()
            .map(Pool)
    }

    /// Does `work` on each item and hands the results to `sink`, in order, on the calling thread.
    pub(super) fn in_order<T, R>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
        mut sink: impl FnMut(R) -> ControlFlow<()>,
    ) where
        T: Sync,
        R: Send,
    {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let (next, stop, work, pool) = (&next, &stop, &work, &self.0);
            scope.spawn(move || {
                pool.broadcast(|_| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(index) else { break };
                        // The receiver goes away once the sink has broken off.
                        if sender.send((index, work(item))).is_err() {
                            break;
                        }
                    }
                });
            });
            let mut waiting = BTreeMap::new();
            let mut due = 0;
            for (index, result) in receiver {
                waiting.insert(index, result);
                while let Some(result) = waiting.remove(&due) {
                    due += 1;
                    if sink(result).is_break() {
                        stop.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            }
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
            let pool = Pool::new(Some(jobs)).unwrap();
            let slow_at_first = |&i: &u64| {
                std::thread::sleep(std::time::Duration::from_micros(if i % 7 == 0 { 500 } else { 0 }));
                i
            };
            let mut seen = Vec::new();
            pool.in_order(&items, slow_at_first, |i| {
                seen.push(i);
                if i == 150 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(seen, (0..=150).collect::<Vec<_>>());
        }
    }
}
