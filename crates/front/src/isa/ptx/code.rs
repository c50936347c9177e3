//! One thread's code in PTX: its parsed form, the settings for reading it, and its micro-ops.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use diag::{MappedText, Sink, Span};
use program::{Class, Expr, Init, Instr, LocId, Register};

use super::lower::KnownItems;
use super::origin::Origins;
use super::parse::OperandKind;
use super::seats::Seats;
use super::table::{Matched, OperandRole, QualKind};
use crate::isa::Symbols;

/// One thread's parsed code.
pub struct PtxCode {
    pub(super) text: MappedText,
    pub(super) items: Vec<CodeItem>,
    pub(super) origins: Origins,
    /// Some statements could not be parsed, so the registers that they write are unknown.
    pub(super) incomplete: bool,
    /// Names in instructions without a row, which may be registers that these instructions write.
    pub(super) suspects: HashSet<String>,
    /// The known values of registers in the thread that was lowered last. Those of the next one are
    /// often the same.
    pub(super) latest: Mutex<KnownItems>,
    /// The code of threads that were lowered before.
    pub(super) shared: Mutex<Vec<SharedCode>>,
}

pub(super) enum CodeItem {
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
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub specials: Vec<(String, Expr)>,
    /// The special registers that differ between the threads of a kernel. Empty: each thread's code
    /// is lowered alone.
    pub varying: Arc<[String]>,
    /// The thread's seats in its warp and its CTA.
    pub seats: Seats,
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

impl PtxEnv {
    /// The number of the thread's lane, if it differs between the threads of a kernel.
    pub(super) fn varying_lane(&self) -> Option<Expr> {
        const LANE: &str = "%laneid";
        let all = self.specials.iter().filter(|(name, _)| name == LANE);
        let mut all = all.filter(|(name, _)| self.varying.contains(name));
        all.next().map(|(_, value)| value.clone())
    }
}

/// A register's initial value, as the test gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegInit {
    /// The register's name, with or without `%`.
    pub name: String,
    /// Its value.
    pub init: Init,
    /// The place where the test gives the value.
    pub span: Span,
}

/// The code of some threads, with placeholders.
pub(super) struct SharedCode {
    /// The settings that these threads have in common, with placeholders.
    pub(super) env: PtxEnv,
    /// `None`: the code cannot be lowered without the values.
    pub(super) lowered: Option<LoweredThread>,
}

/// A thread's registers and micro-ops.
#[derive(Clone)]
pub struct LoweredThread {
    /// Its registers.
    pub regs: Vec<Register>,
    /// Its code.
    pub code: Vec<Instr>,
    /// Whether some instruction ends the thread.
    pub leaves: bool,
    /// Indices of accesses through registers without a type, in order.
    pub(super) untyped: Vec<usize>,
}

impl PtxCode {
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
                    let object = crate::isa::SymbolKind::Object(crate::isa::Object::scalar(0));
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
                    let at = m.quals.place(QualKind::Type).unwrap_or(n.name.clone());
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
}
