//! Draws executions as pictures.
//!
//! ```text
//! Witness, cycle, marks ─▶ Scene ─▶ Layout ─▶ svg        (and in pages: html)
//!                            │          └─▶ Drawing ─▶ pdf, png, tikz
//!                            └──────────────▶ dot
//! ```
//!
//! | Module | What |
//! |---|---|
//! | [`scene`] | the content: threads, events, edges, and text |
//! | [`style`] | the style of each relation: colour, dashes, whether it is drawn by default |
//! | [`layout`] | positions: rectangles and curves, independent of the format |
//! | `drawing` | shapes and texts with their colours, for papers |
//! | [`svg`], [`pdf`], `png`, [`tikz`], [`dot`] | the writers |
//! | [`page`] | a page with the outcomes of a test under one or two models |
//!
//! # Invariants
//! - The same scene gives the same bytes.
//! - All text in a file passes through [`escape`].
//! - A picture states what it leaves out.

pub mod dot;
mod drawing;
pub mod escape;
pub mod layout;
pub mod page;
pub mod pdf;
#[cfg(feature = "png")]
pub mod png;
pub mod scene;
pub mod style;
pub mod subject;
pub mod svg;
pub mod tikz;

pub use scene::{PictureSubject, RelationChoice, Scene};
