//! Stops long work on request: a signal handler sets the request, and everything that runs long
//! polls it.
//!
//! # Invariants
//! - [`late`] is the one place that decides whether work has to end. A request, and
//!   a used-up share of memory or stack ([`share`]), act like a passed deadline.
//! - A request is never taken back.
//! - Without [`listen`] there is never a request, and a poll costs one load.
//!
//! The request is state of the process, because signals are. This crate depends on neither the
//! senders nor the stopped work.

mod share;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

pub use share::{Share, Spent, count, deep, memory_for_all, share, spent};

/// Holds the number of the received signal; 0 before the first one.
static REQUEST: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

type Interrupt = Box<dyn Fn() + Send>;

/// Callbacks that end work which cannot poll.
static INTERRUPTS: Mutex<Vec<Interrupt>> = Mutex::new(Vec::new());

/// Begins to listen. Storing a number other than 0 in the returned cell requests a stop.
pub fn listen() -> Arc<AtomicUsize> {
    Arc::clone(REQUEST.get_or_init(Arc::default))
}

/// Whether [`listen`] was called.
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

/// Whether work has to end: the deadline has passed, a request came, or this thread's question has
/// used up its share.
pub fn late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|d| Instant::now() >= d) || requested().is_some() || share::is_spent()
}

/// Registers a callback that ends work which cannot poll [`late`]; it stays registered while the
/// process lives. [`interrupt_all`] may call it more than once, from any thread.
pub fn on_request(interrupt: impl Fn() + Send + 'static) {
    interrupts().push(Box::new(interrupt));
}

/// Calls every registered callback.
pub fn interrupt_all() {
    interrupts().iter().for_each(|interrupt| interrupt());
}

fn interrupts() -> MutexGuard<'static, Vec<Interrupt>> {
    INTERRUPTS.lock().unwrap_or_else(PoisonError::into_inner)
}
