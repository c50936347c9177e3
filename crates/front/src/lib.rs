//! Front ends: what people write, read into programs and tests.
//!
//! | Module | What |
//! |---|---|
//! | [`isa`] | instruction tables: syntax, documentation and lowering to micro-ops, a folder per family of dialects |
//! | [`mapping`] | what compilers make of CUDA C++ and OpenCL C: programs lowered to PTX |
//! | [`litmus`] | test formats: TOML, `.litmus`, conditions, host programs |
//!
//! # Invariants
//! - What is read is a [`program::litmus::LitmusTest`]; nothing above this crate sees syntax.

mod document;
pub mod isa;
pub mod litmus;
pub mod mapping;
