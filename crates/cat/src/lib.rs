//! The `.cat` language and its relations.
//!
//! | Module | What |
//! |---|---|
//! | [`rel`] | events as integers, sets and relations of them |
//! | [`model`] | the language, down to a table of relational operators |
//! | [`algebra`] | ways to run that table: on bits, on bounds, as gates |
//!
//! # Invariants
//! - This crate knows no memory model and no program. Base names come from a [`model::Signature`],
//!   and relations from [`algebra`]'s leaves.

pub mod algebra;
pub mod model;
pub mod rel;
