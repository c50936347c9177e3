//! Answers the questions of a web page: a request in JSON goes in, the answers come out as JSON.
//!
//! A page loads the crate as WebAssembly (`cargo play`). [`reply`] is the same for every target, so
//! tests of this crate need no browser.
//!
//! # Invariants
//! - No question has a time limit here: WebAssembly has no clock. The page runs the module in a
//!   worker, and ends the worker.
//! - The answers are those of the program without Z3: the same engines, words, texts and pictures.
//!
//! # Calls of a page
//! [`fencepost_input`] returns the place for so many bytes of a request; [`fencepost_ask`] answers
//! it and returns the length of the answer; [`fencepost_output`] is the place of the answer. After
//! a trap, [`fencepost_failure`] puts the message of the panic there.

mod ask;
mod examples;
mod request;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use ask::reply;
pub use examples::{EXAMPLES, Example};

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static FAILURE: Mutex<String> = Mutex::new(String::new());

/// What a poisoned lock holds is still text.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes text the output, and returns its length.
fn put(text: String) -> usize {
    let mut output = locked(&OUTPUT);
    *output = text.into_bytes();
    output.len()
}

/// The place for a request of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn fencepost_input(bytes: usize) -> *mut u8 {
    let mut input = locked(&INPUT);
    *input = vec![0; bytes];
    input.as_mut_ptr()
}

/// Answers the request, and returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn fencepost_ask() -> usize {
    std::panic::set_hook(Box::new(|panic| {
        *locked(&FAILURE) = panic.to_string();
    }));
    let request = std::mem::take(&mut *locked(&INPUT));
    put(reply(&request))
}

/// The place of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn fencepost_output() -> *const u8 {
    locked(&OUTPUT).as_ptr()
}

/// Makes the message of the last panic the answer, and returns its length.
#[unsafe(no_mangle)]
pub extern "C" fn fencepost_failure() -> usize {
    let message = locked(&FAILURE).clone();
    put(message)
}
