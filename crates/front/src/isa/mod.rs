//! Instruction tables: syntax, documentation and lowering to micro-ops, one folder per dialect.

mod bits;
pub mod clike;
pub mod ptx;
pub mod spirv;
mod symbols;

pub use symbols::{
    DeclarationPlace, MemorySymbol, Object, OpenObjects, SymbolKind, Symbols, TensorShape,
};
