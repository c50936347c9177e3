//! PTX: code as compilers print it and in the short form of litmus tests, lowered to micro-ops.
//!
//! The instruction set is the table of [`rows`]. One row defines one family of instructions
//! completely, so a new instruction is added in one place.
//!
//! # Reading a test
//! 1. [`PtxCode::parse`] replaces calls by the code of functions, and finds the row of each
//!    instruction in a thread's text.
//! 2. [`PtxCode::settle_types`], for every thread: locations get the type of their accesses.
//! 3. [`PtxCode::lower`] resolves names and emits micro-ops.
//! 4. [`pointers::resolve`], once per program, finds the types of accesses through registers that
//!    hold addresses.
//!
//! # Sources
//! - PTX ISA 9.4, *Instruction Statements*, *Memory Consistency Model* and the pages of the single
//!   instructions.
//! - The short form (`ld.relaxed.gpu r0, x`, `goto`, `bne`, `tld`, `sust`, …): the published PTX
//!   litmus suites.
//!
//! # Where we differ
//! - Types and `;` may be left out. An access without type has the type of its location, or else 64
//!   bits.
//! - Registers need no declaration. A register that code reads and nothing writes is an error.

mod arith;
mod asynchronous;
mod atomics;
mod barriers;
mod bits;
mod carry;
mod clusters;
mod code;
mod constant;
mod control;
mod copies;
mod descriptors;
mod expand;
mod families;
mod fences;
mod floats;
mod followed;
mod indirect;
mod known;
mod lanes;
mod lex;
mod lower;
mod matrices;
mod mbarrier;
mod memory;
pub mod module;
mod multimem;
mod names;
mod needs;
mod offsets;
mod operands;
mod origin;
mod outside;
#[cfg(test)]
mod page;
mod parse;
pub(crate) mod parts;
pub mod pointers;
mod print;
mod private;
mod ranges;
mod reading;
mod regs;
pub(crate) mod reuse;
mod seats;
mod shapes;
mod sharing;
mod table;
mod tcgen05;
mod tensormap;
#[cfg(test)]
mod tests;
mod textures;
mod tiles;
mod unknown;
mod wgmma;

pub use asynchronous::refuse_accumulators;
use code::CodeItem;
pub use code::{LoweredThread, PtxCode, PtxEnv, RegInit};
pub use copies::{warn_of_empty_waits, warn_of_lost_bytes};
pub use families::rows;
pub(crate) use lanes::ELECTED;
pub use lanes::ShuffleMode;
pub(super) use lanes::{
    ALONE, LaneSet, LaneValues, NO_LANES, SAY_WARP, ShuffleSources, both, equal, fold,
};
pub(crate) use mbarrier::{away_by, of_some_rank, stride};
pub(super) use memory::{asks_space, is_non_coherent};
pub(crate) use origin::files_named;
pub use print::{Unprintable, opcode, print};
pub use seats::Seats;
pub(crate) use table::PRED;
pub use table::{InstrRow, bits_named, format_named, type_named};
pub use tcgen05::place_columns;
