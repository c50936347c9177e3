//! Instruction tables: syntax, documentation and lowering to micro-ops, one folder per dialect.

mod bits;
pub mod clike;
pub mod ptx;
mod symbols;

pub use symbols::{Object, OpenObjects, Symbol, SymbolKind, Symbols};
