//! Random programs that were made: read as tests, and made smaller as long as something holds of
//! them.

use diag::{Style, render};
use front::litmus::parse;
use program::litmus::LitmusTest;

/// The test that a text says.
///
/// # Panics
/// If the front end rejects it: that is a defect of the front end or of the generator.
pub fn read(text: &str) -> LitmusTest {
    match parse("generated.toml", text.as_bytes()) {
        Ok(mut tests) => tests.remove(0),
        Err(errors) => {
            let errors: String = errors.iter().map(|d| render(d, Style::Plain)).collect();
            panic!("a generated program was rejected:\n{errors}\n{text}")
        }
    }
}

/// Whether the front end takes a text: what is made smaller may lack something that it needs.
pub fn is_read(text: &str) -> bool {
    parse("generated.toml", text.as_bytes()).is_ok()
}

/// The smallest program on which something still holds that single steps of `smaller` lead to.
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
