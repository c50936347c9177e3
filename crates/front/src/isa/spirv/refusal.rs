//! The reason why an instruction is not translated.
//!
//! # Invariants
//! - It names one instruction of the module, by its number.

/// What keeps an instruction from being translated.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The index of the instruction.
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) label: String,
}

/// A result of the translation.
pub(super) type Translated<T> = Result<T, Box<Refusal>>;
