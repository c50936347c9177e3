//! Reads generated programs as tests, and makes them smaller as long as a property holds.

use diag::{TextStyle, render};
use front::litmus::parse;
use program::litmus::LitmusTest;

/// The test that a text describes.
///
/// # Panics
/// If the front end rejects it: that is a defect of the front end or of the generator.
pub fn read(text: &str) -> LitmusTest {
    match parse("generated.toml", text.as_bytes()) {
        Ok(mut tests) => tests.remove(0),
        Err(errors) => {
            let errors: String = errors.iter().map(|d| render(d, TextStyle::Plain)).collect();
            panic!("a generated program was rejected:\n{errors}\n{text}")
        }
    }
}

/// Whether the front end accepts a text: a smaller program may lack something that it needs.
pub fn is_read(text: &str) -> bool {
    parse("generated.toml", text.as_bytes()).is_ok()
}

/// The smallest program that single steps of `smaller` reach and on which the property still holds.
pub fn smallest<P: Clone>(
    program: &P,
    smaller: impl Fn(&P) -> Vec<P>,
    holds: impl Fn(&P) -> bool,
) -> P {
    let mut best = program.clone();
    while let Some(next) = smaller(&best).into_iter().find(&holds) {
        best = next;
    }
    best
}
