//! Executions as pictures.
//!
//! ```text
//! Witness, cycle, marks ─▶ Scene ─▶ Layout ─▶ svg        (and in pages: html)
//!                            └──────────────▶ dot
//! ```
//!
//! | Module | What |
//! |---|---|
//! | [`scene`] | what is drawn: threads, events, edges, what is said beside them |
//! | [`style`] | how each relation is drawn: colour, dashes, whether it is drawn unasked |
//! | [`layout`] | where everything goes: rectangles and curves, without a word of any format |
//! | [`svg`], [`dot`] | the writers |
//! | [`page`] | a page with the outcomes of a test under one or two models |
//!
//! # Invariants
//! - The same scene gives the same bytes.
//! - No text goes into a file without passing [`escape`].
//! - What is left out of a picture is said in the picture.

pub mod dot;
pub mod escape;
pub mod layout;
pub mod page;
pub mod scene;
pub mod style;
pub mod subject;
pub mod svg;

pub use scene::{Choice, Scene, Subject};
