//! SIGINT and SIGTERM: the first one ends the run in good order, the second one at once.
//!
//! # Invariants
//! - A run that was interrupted ends with 128 and the number of the signal, as shells expect it (130, 143), whatever was
//!   found before: the other codes speak of runs that came to their end.
//! - Within [`PATIENCE`] after the signal nothing is waited for any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The reason of questions that were open when the signal came.
pub(super) const REASON: &str = "interrupted";

/// How long workers have to notice.
pub(super) const PATIENCE: Duration = Duration::from_millis(600);

/// Listens for the signals. If that is impossible, they end the process as ever.
pub(super) fn listen() {
    let request = stop::listen();
    let register = |signal: i32| -> io::Result<()> {
        let number = usize::try_from(signal).unwrap_or_default();
        let again = Arc::new(AtomicBool::new(false));
        // In this order, so that the first signal arms what the second one meets.
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
