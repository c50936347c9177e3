//! Litmus tests: a program, a proposition about its outcomes, and the expected answer of each
//! model.
//!
//! # Formats
//! - TOML ([`parse`], [`to_toml`], [`schema()`], [`bless()`]): one test, or a template for several.
//!   `keys::TEST` is the table of its keys; `docs/src/test-format.md` is the guide for users.
//! - `.litmus`, PTX dialect: the published suites. Unlisted names start at 0, and barriers are
//!   paired by instance; `import` writes such a test as TOML with `barriers = "litmus"`.
//!
//! # Invariants
//! - A [`LitmusTest`] is fully resolved; every name in its condition was found.
//! - Spans point into [`LitmusTest::file`]; code from a placeholder points to the place where it
//!   was written.
//! - Reading a file gives all its tests or all its errors, never some of both.
//! - After reading, offsets in addresses are in bytes: element 1 of `a`, of type `u32`, is
//!   `Address(a) + 4`.

mod bless;
mod build;
pub mod condition;
mod demands;
mod dotlitmus;
pub mod form;
mod fronts;
mod host;
pub mod kernel;
mod keys;
mod places;
mod program_scope;
mod read;
mod reading;
mod respell;
mod schema;
pub mod source;
mod toml;
mod views;
mod write;

pub use bless::bless;
pub use condition::parse_prop;
pub use fronts::{dialects, printed};
pub use keys::PROPERTIES;
pub use places::MAX_THREADS;
pub use read::{FileKind, TestFile, parse, read, read_compiled, read_path, read_with};
pub use respell::{Splice, respelled};
pub use schema::schema;
pub use write::to_toml;

pub use program::litmus::*;
