//! Measuring: the median of many runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// As in the program.
#[global_allocator]
static ALLOCATOR: streams::CountingAllocator = streams::CountingAllocator;

/// How long one line of the report is measured, and how often at least.
const TIME: Duration = Duration::from_secs(1);
const RUNS: usize = 9;

/// Prints the median time of what is measured, and how many things it gets through in a second.
pub fn measure<T>(name: &str, things: u64, mut run: impl FnMut() -> T) {
    // What is asked for by name on the command line alone, as with tests.
    let mut asked = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .peekable();
    if asked.peek().is_some() && !asked.any(|word| name.contains(&word)) {
        return;
    }
    black_box(run());
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < RUNS || start.elapsed() < TIME {
        let before = Instant::now();
        black_box(run());
        times.push(before.elapsed());
    }
    times.sort();
    let median = times[times.len() / 2];
    let rate = things as f64 / median.as_secs_f64();
    println!(
        "{name:60} {median:>12.2?} {rate:>14.0}/s   ({:.2?} to {:.2?})",
        times[0],
        times[times.len() - 1]
    );
}
