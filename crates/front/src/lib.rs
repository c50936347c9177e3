//! Front ends: read the texts that people write into programs and tests.
//!
//! | Module | Content |
//! |---|---|
//! | [`isa`] | instruction tables: syntax, documentation, lowering; a folder for related dialects |
//! | [`mapping`] | programs in CUDA C++ and OpenCL C lowered to PTX, as compilers translate them |
//! | [`litmus`] | test formats: TOML, `.litmus`, conditions, host programs |
//!
//! # Invariants
//! - Every reader returns a [`program::litmus::LitmusTest`]; nothing above this crate sees syntax.

mod document;
pub mod isa;
pub mod litmus;
pub mod mapping;
