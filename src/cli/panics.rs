//! Turns panics into values: one broken law must not stop the other questions, and the message must
//! have its place.
//!
//! # Invariants
//! - A panic inside [`catch`] prints nothing; its message and place are returned.
//! - A panic outside prints as usual.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// The number of [`catch`]es around this thread's work.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The last message of the panic hook on this thread.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; a panic becomes its message and place.
///
/// The values that `work` touched are in an unknown state afterwards; the caller must drop them.
pub(super) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                return usual(info);
            }
            let payload = info.payload();
            let message = (payload.downcast_ref::<&str>().copied())
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("panic without a message");
            let place = info
                .location()
                .map(|l| format!(" ({}:{})", l.file(), l.line()))
                .unwrap_or_default();
            MESSAGE.with_borrow_mut(|m| *m = Some(format!("{message}{place}")));
        }));
    });
    DEPTH.set(DEPTH.get() + 1);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    result.map_err(|_| {
        MESSAGE
            .take()
            .unwrap_or_else(|| "panic without a message".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch(|| 1), Ok(1));
        let message = catch(|| -> u32 { panic!("law {} broken", 7) }).unwrap_err();
        assert!(
            message.starts_with("law 7 broken (src/cli/panics.rs:"),
            "{message}"
        );
    }
}
