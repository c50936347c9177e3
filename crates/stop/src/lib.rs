//! A request to stop, from outside: what a signal handler sets, and everything that may run for
//! long asks for.
//!
//! # Invariants
//! - Wherever a deadline is asked for, a request to stop is as good as one that has passed:
//!   [`late`] is the one place. So is a question that has spent its share of memory or of the stack
//!   ([`share`]).
//! - A request is never taken back.
//! - Without [`listen`] nothing is ever requested, and asking costs one load.
//!
//! This is state of the process, because signals are. It is a leaf: it knows nothing of who asks or
//! who is stopped.

mod share;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

pub use share::{Share, Spent, deep, memory_for_all, share, spent};

/// Holds the number of the signal that was received; 0: none yet.
static REQUEST: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

type Interrupt = Box<dyn Fn() + Send>;

/// What ends the work of others that cannot ask.
static INTERRUPTS: Mutex<Vec<Interrupt>> = Mutex::new(Vec::new());

/// Begins to listen; whoever stores a number other than 0 here requests a stop.
pub fn listen() -> Arc<AtomicUsize> {
    Arc::clone(REQUEST.get_or_init(Arc::default))
}

/// Whether anybody may request a stop.
pub fn is_listening() -> bool {
    REQUEST.get().is_some()
}

/// The number of the request, if there is one.
pub fn requested() -> Option<usize> {
    REQUEST
        .get()
        .map(|request| request.load(Ordering::Relaxed))
        .filter(|&number| number != 0)
}

/// Whether work has to end: the deadline has passed, a stop was requested, or this thread's
/// question has spent its share.
pub fn late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|d| Instant::now() >= d) || requested().is_some() || share::is_spent()
}

/// Registers what ends work that cannot ask [`late`], for as long as the process lives. It may be
/// called more than once, from any thread.
pub fn on_request(interrupt: impl Fn() + Send + 'static) {
    interrupts().push(Box::new(interrupt));
}

/// Calls everything that was registered.
pub fn interrupt_all() {
    interrupts().iter().for_each(|interrupt| interrupt());
}

fn interrupts() -> MutexGuard<'static, Vec<Interrupt>> {
    INTERRUPTS.lock().unwrap_or_else(PoisonError::into_inner)
}
