//! SIGINT and SIGTERM: the first one ends the run in good order, the second one at once.
//!
//! # Invariants
//! - An interrupted run ends with 128 plus the number of the signal, as shells expect it (130,
//!   143), whatever was decided before: the other codes speak of runs that came to their end.
//! - [`PATIENCE`] after the signal the run waits for nothing more, and [`LAST`] after it the run is
//!   over: a reader that does not read, or a pipe that is never opened, does not delay it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{io, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::DEFECT;
use super::pool::STACK_BYTES;

/// The time that workers have to notice.
pub(super) const PATIENCE: Duration = Duration::from_millis(600);

/// The time for writing the results.
const LAST: Duration = Duration::from_secs(5);

/// Listens for the signals. If that is impossible, they end the process as usual.
pub(super) fn listen() {
    let request = stop::listen();
    let register = |signal: i32| -> io::Result<()> {
        let number = usize::try_from(signal).unwrap_or_default();
        let again = Arc::new(AtomicBool::new(false));
        // In this order, the first signal prepares the effect of the second one.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
        flag::register(signal, again)?;
        flag::register_usize(signal, Arc::clone(&request), number)?;
        Ok(())
    };
    let _ = register(SIGINT).and_then(|()| register(SIGTERM));
}

/// The exit code of an interrupted run.
pub(super) fn code() -> Option<u8> {
    stop::requested().and_then(|signal| u8::try_from(128 + signal).ok())
}

thread_local! {
    /// Takes the exit code of this thread's work.
    static LEAVING: RefCell<Option<Sender<u8>>> = const { RefCell::new(None) };
}

/// Does the work of a run on a new thread, and returns its exit code: that of its end, or the one
/// that it [leaves](leave) with.
///
/// # Errors
/// If no thread can be had.
pub(super) fn done(work: impl FnOnce() -> u8 + Send + 'static) -> io::Result<u8> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            LEAVING.set(Some(sender.clone()));
            let _ = sender.send(work());
        })?;
    let mut since = None;
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(code) => return Ok(code),
            Err(RecvTimeoutError::Disconnected) => return Ok(DEFECT),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(code) = code()
            && since.get_or_insert_with(Instant::now).elapsed() > LAST
        {
            return Ok(code);
        }
    }
}

/// Ends a run with that exit code, although some of its workers have not returned.
pub(super) fn leave(code: u8) -> ! {
    LEAVING.with_borrow(|sender| sender.as_ref().map(|s| s.send(code)));
    loop {
        thread::park();
    }
}
