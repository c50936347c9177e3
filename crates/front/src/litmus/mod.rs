//! Litmus tests: a program, a proposition about its outcomes, and what each model is expected to
//! say.
//!
//! # Formats
//! - TOML ([`parse`], [`to_toml`], [`schema()`], [`bless()`]): one test, or a template that stands
//!   for several. The keys are the table `keys::TEST`; `docs/src/test-format.md` is the guide for
//!   users.
//! - `.litmus`, PTX dialect: the published suites. Names that are not listed start at 0, and
//!   barriers are paired by instance; `import` writes such a test as TOML with `barriers =
//!   "litmus"`.
//!
//! # Invariants
//! - A [`LitmusTest`] is fully resolved; every name in its condition was found.
//! - Spans point into [`LitmusTest::file`]; code that came through a placeholder points to where it
//!   was written.
//! - A file gives all its tests or all its errors, never some of both.
//! - Offsets in addresses are in bytes once a test is read: element 1 of `a`, of type `u32`, is
//!   `Address(a) + 4`.

mod bless;
mod build;
pub mod condition;
mod dotlitmus;
mod fronts;
mod host;
pub mod kernel;
mod keys;
mod places;
mod program_scope;
mod read;
mod respell;
mod schema;
mod toml;
mod write;

pub use bless::bless;
pub use condition::parse_prop;
pub use fronts::{dialects, printed};
pub use keys::PROPERTIES;
pub use read::{Read, parse, read, read_path};
pub use respell::{Splice, respelled};
pub use schema::schema;
pub use write::to_toml;

pub use program::litmus::*;
