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

use std::collections::HashSet;
use std::ops::Range;

use diag::{MappedText, Sink, Span};
use program::{Class, GroupSeat, Init, Instr, LocId, Register};

mod arith;
mod asynchronous;
mod atomics;
mod barriers;
mod bits;
mod carry;
mod clusters;
mod constant;
mod control;
mod copies;
mod descriptors;
mod expand;
mod fences;
mod floats;
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
mod regs;
pub(crate) mod reuse;
mod table;
mod tensormap;
#[cfg(test)]
mod tests;
mod textures;
mod tiles;
mod unknown;
mod wgmma;

use super::Symbols;
use origin::Origins;
use parse::{OperandKind, PtxOperand, PtxStmt};
use table::{Matched, OperandRole};

pub use asynchronous::refuse_accumulators;
pub use copies::{warn_of_empty_waits, warn_of_lost_bytes};
pub(crate) use lanes::ELECTED;
pub use lanes::ShuffleMode;
pub(super) use lanes::{
    ALONE, LaneSet, LaneValues, NO_LANES, SAY_WARP, ShuffleSources, both, equal, fold,
};
pub(crate) use mbarrier::{away_by, of_some_rank, stride};
pub(super) use memory::{asks_space, is_non_coherent};
pub(crate) use origin::files_named;
pub use print::{Unprintable, opcode, print};
pub(crate) use table::PRED;
pub use table::{InstrRow, bits_named, format_named, rows, type_named};

/// One thread's parsed code.
pub struct PtxCode {
    text: MappedText,
    items: Vec<CodeItem>,
    origins: Origins,
    /// Some statements could not be parsed, so the registers that they write are unknown.
    incomplete: bool,
    /// Names in instructions without a row, which may be registers that these instructions write.
    suspects: HashSet<String>,
}

enum CodeItem {
    Label(Range<usize>),
    Instr(Matched),
    Reg {
        ty: Range<usize>,
        name: Range<usize>,
        count: Option<i64>,
    },
    Targets(Vec<Range<usize>>),
}

/// Settings for reading a thread's code.
#[derive(Clone, Debug, Default)]
pub struct PtxEnv {
    /// Whether unknown names are errors. Otherwise they are registers and locations that start at 0
    /// (`.litmus`).
    pub strict: bool,
    /// Barrier operands are (instance, id, quorum) as in the published suites, instead of PTX's
    /// (barrier, thread count).
    pub instance_barriers: bool,
    /// `red` may be acquire, as in the published suites.
    pub acquiring_red: bool,
    /// Values of special registers, by name with `%`.
    pub specials: Vec<(String, i64)>,
    /// The thread's seat in its warp.
    pub warp: GroupSeat,
    /// The thread's seat in its CTA.
    pub block: GroupSeat,
    /// For each CTA of the cluster, by rank: the distance of its copy of shared memory from the
    /// thread's copy, in copies.
    pub cluster: Vec<i64>,
    /// Registers with initial values.
    pub regs: Vec<RegInit>,
    /// Registers for the operands of an inline assembly statement; the code around it sets them.
    pub operands: Vec<String>,
    /// Code cannot name locations.
    pub nameless: bool,
    /// The code is that of every thread of a kernel.
    pub of_every_thread: bool,
}

/// A register's initial value, as the test gives it.
#[derive(Clone, Debug)]
pub struct RegInit {
    /// The register's name, with or without `%`.
    pub name: String,
    /// Its value.
    pub init: Init,
    /// The place where the test gives the value.
    pub span: Span,
}

/// A thread's registers and micro-ops.
pub struct LoweredThread {
    /// Its registers.
    pub regs: Vec<Register>,
    /// Its code.
    pub code: Vec<Instr>,
    /// Whether some instruction ends the thread.
    pub leaves: bool,
    /// Indices of accesses through registers without a type, in order.
    untyped: Vec<usize>,
}

impl PtxCode {
    /// Parses a thread's code and reports mistakes to `sink`.
    pub fn parse(text: MappedText, sink: &mut Sink) -> PtxCode {
        let mut items = Vec::new();
        let mut suspects = HashSet::new();
        let errors = sink.errors();
        let origins = Origins::read(&text, sink);
        let text = expand::expand(&text, sink).unwrap_or(text);
        let stmts = parse::parse(&text, sink);
        let incomplete = sink.errors() > errors;
        for stmt in stmts {
            match stmt {
                PtxStmt::Label(range) => items.push(CodeItem::Label(range)),
                PtxStmt::Reg { ty, name, count } => items.push(CodeItem::Reg { ty, name, count }),
                PtxStmt::Targets(labels) => items.push(CodeItem::Targets(labels)),
                PtxStmt::Instr(raw) => {
                    let names = raw
                        .operands
                        .iter()
                        .flat_map(PtxOperand::elements)
                        .filter_map(|o| match &o.kind {
                            OperandKind::Name(n) => {
                                Some(regs::bare(&text.as_str()[n.name.clone()]).to_string())
                            }
                            _ => None,
                        });
                    let names: Vec<String> = names.collect();
                    match table::find(&text, raw, sink) {
                        Some(matched) => items.push(CodeItem::Instr(matched)),
                        None => suspects.extend(names),
                    }
                }
            }
        }
        PtxCode {
            text,
            items,
            origins,
            incomplete,
            suspects,
        }
    }

    /// Records the types of all accesses to named locations. Unless `strict`, adds undeclared
    /// locations.
    pub fn settle_types(&self, strict: bool, symbols: &mut Symbols, sink: &mut Sink) {
        for item in &self.items {
            let CodeItem::Instr(m) = item else { continue };
            for (role, operand) in m.row.operands.iter().zip(&m.raw.operands) {
                // The reference of a texel has the texel's type.
                let named = match &operand.kind {
                    OperandKind::Texel(all) => &all[0].kind,
                    kind => kind,
                };
                let OperandKind::Name(n) = named else {
                    continue;
                };
                let name = &self.text.as_str()[n.name.clone()];
                if (n.offset, n.index) != (0, 0)
                    && let Some(id) = symbols.find(name)
                    && let (object, _) = symbols.object(id)
                    && let Some(object) = symbols.object_mut(object)
                {
                    object.indexed = true;
                }
                let is_memory = matches!(role, OperandRole::Addr | OperandRole::Texel);
                if !is_memory || name.starts_with('%') {
                    continue;
                }
                let span = self.text.span(n.name.clone());
                let id = symbols.find(name).or_else(|| {
                    let object = super::SymbolKind::Object(super::Object::scalar(0));
                    if strict {
                        None
                    } else {
                        symbols.declare(name, span, object, sink)
                    }
                });
                // An mbarrier operand does not have the instruction's type.
                let ordinary = |id: &LocId| symbols.object(*id).1.class != Some(Class::Mbarrier);
                let ty = m.quals.ty().map(|ty| ty.piece(m.quals.packed()));
                if let (Some(id), Some(ty)) = (id.filter(ordinary), ty) {
                    let at = m
                        .quals
                        .place(table::QualKind::Type)
                        .unwrap_or(n.name.clone());
                    symbols.access_in_ptx(id, ty, self.text.span(at), sink);
                }
            }
        }
    }

    /// The places of calls of unknown functions.
    pub fn unknown_calls(&self) -> impl Iterator<Item = Span> {
        self.items.iter().filter_map(|item: &CodeItem| match item {
            CodeItem::Instr(m) if m.row.opcode == "call" => {
                Some(self.text.span(m.raw.range.clone()))
            }
            _ => None,
        })
    }

    /// Lowers the code. The result is only meaningful if `sink` got no errors.
    pub fn lower(&self, env: &PtxEnv, symbols: &Symbols, sink: &mut Sink) -> LoweredThread {
        lower::lower(self, env, symbols, sink)
    }
}
