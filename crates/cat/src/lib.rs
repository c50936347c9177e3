//! The `.cat` language and the relations that it speaks of.
//!
//! | Module | What |
//! |---|---|
//! | [`rel`] | events as integers, sets and relations of them |
//! | [`model`] | the language, down to a table of relational operators |
//! | [`algebra`] | ways to run that table: on bits, on bounds, as gates |
//!
//! # Invariants
//! - No memory model and no program is known here: base names come in a [`model::Signature`],
//!   relations in [`algebra`]'s leaves.

pub mod algebra;
pub mod model;
pub mod rel;
