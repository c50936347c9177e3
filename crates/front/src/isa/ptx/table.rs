//! The rows of the instruction table: qualifiers, operands and micro-ops of an instruction.
//!
//! # Invariants
//! - A row defines everything about its instructions: qualifiers, operands, micro-ops. No other
//!   place lists opcodes.

use std::ops::Range;

use super::lower::{Emit, PtxInstr};
use super::needs::Need;
use super::parse::{OperandKind, PtxOperand, RawInstr};
use program::{Format, Scope, Ty};

/// A row of the table: one instruction family.
pub struct InstrRow {
    /// The opcode: the first word of the instruction.
    pub opcode: &'static str,
    /// Qualifiers that select this row among those of its opcode.
    pub keys: &'static [&'static str],
    /// Qualifiers of which the instruction needs at least one; if empty, it needs none.
    pub(super) one_of: &'static [&'static str],
    /// The forms of the instruction, for messages and documentation.
    pub syntax: &'static str,
    /// One line that describes the instruction and its modelling.
    pub doc: &'static str,
    /// Further qualifiers.
    pub(super) groups: &'static [QualGroup],
    /// The roles of the operands, in order.
    pub(super) operands: &'static [OperandRole],
    /// The number of trailing operands that may be left out.
    pub(super) optional: usize,
    /// Whether the lowering handles the predicate itself, as for branches.
    pub(super) takes_predicate: bool,
    /// Whether coordinates follow an address, as operand of their own.
    pub(super) tiled: bool,
    /// The type of the result.
    pub(super) result: ResultTy,
    /// The versions and targets that it requires of a module.
    pub(super) needs: &'static [Need],
    /// Emits the micro-ops.
    pub(super) lower: fn(&mut Emit<'_, '_>, &PtxInstr),
}

impl InstrRow {
    /// A row with only the qualifiers in `groups`, and with a result of its operation's type.
    pub(super) const fn new(
        opcode: &'static str,
        syntax: &'static str,
        doc: &'static str,
        groups: &'static [QualGroup],
        operands: &'static [OperandRole],
        lower: fn(&mut Emit<'_, '_>, &PtxInstr),
    ) -> InstrRow {
        let (keys, result): (&[&str], _) = (&[], ResultTy::Own);
        let one_of: &[&str] = &[];
        InstrRow {
            opcode,
            keys,
            one_of,
            syntax,
            doc,
            groups,
            operands,
            optional: 0,
            takes_predicate: false,
            tiled: false,
            result,
            needs: &[],
            lower,
        }
    }

    /// Restricts the row to instructions with all of these qualifiers.
    pub(super) const fn keyed(mut self, keys: &'static [&'static str]) -> InstrRow {
        self.keys = keys;
        self
    }

    /// Restricts the row to instructions with one of these qualifiers, which `groups` lists, too.
    pub(super) const fn one_of(mut self, words: &'static [&'static str]) -> InstrRow {
        self.one_of = words;
        self
    }

    /// Makes the last `n` operands optional.
    pub(super) const fn optional(mut self, n: usize) -> InstrRow {
        self.optional = n;
        self
    }

    /// Marks the row as one with a lowering that handles the predicate.
    pub(super) const fn takes_predicate(mut self) -> InstrRow {
        self.takes_predicate = true;
        self
    }

    /// Makes the row one for instructions with coordinates.
    pub(super) const fn tiled(mut self) -> InstrRow {
        self.tiled = true;
        self
    }

    /// Sets the versions and targets that the row requires of a module.
    pub(super) const fn needs(mut self, needs: &'static [Need]) -> InstrRow {
        self.needs = needs;
        self
    }

    /// Whether a key or a group of the row contains a qualifier.
    pub(super) fn names(&self, word: &str) -> bool {
        self.keys.contains(&word) || self.groups.iter().any(|g| g.words.contains(&word))
    }

    /// Sets the type of the result.
    pub(super) const fn result(mut self, result: ResultTy) -> InstrRow {
        self.result = result;
        self
    }
}

/// The type of an instruction's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultTy {
    /// The type qualifier's, or else the accessed location's, or else [`Ty::WORD`].
    Own,
    Pred,
    /// Twice as wide as the operands (`mul.wide`).
    Wide,
    /// 32 bits, whatever the operands (`popc`).
    U32,
}

/// The type of predicates. It has one bit, to differ from integers of 8 bits.
pub(crate) const PRED: Ty = Ty {
    bits: 1,
    signed: false,
};

/// The role of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandRole {
    /// A destination register; `_` discards the result.
    Dst,
    /// A destination register, optionally followed by `|` and a destination predicate.
    DstAndPred,
    /// The destination predicate after `|`.
    DstPred,
    Addr,
    /// A register, a constant or the address of a location.
    Val,
    /// Like `Val`, but of any type (shift amounts, sources of conversions).
    Loose,
    /// Like `Loose`, or a floating-point constant.
    Any,
    /// A predicate register, possibly negated.
    Pred,
    /// A parameter, `[name]`, which is a register. Only the test sets a kernel's parameters.
    Param,
    /// Any number of destination registers.
    Dsts,
    /// Any number of source registers.
    Vals,
    /// A parameter as a destination.
    DstParam,
    Label,
    /// A texel, `[t, {x, y}]`.
    Texel,
    /// An address of tensor memory, a number in a register: `[t]`, `[t+8]`.
    Tensor,
    /// A matrix: a descriptor, or an address of tensor memory.
    Matrix,
}

impl OperandRole {
    pub(super) fn expected(self) -> &'static str {
        match self {
            OperandRole::Dst | OperandRole::DstAndPred => "a register to write to",
            OperandRole::DstPred => "a predicate to write to",
            OperandRole::Addr => "an address such as `[x]`, `[x+4]` or `[%rd1]`",
            OperandRole::Val | OperandRole::Loose | OperandRole::Any => "a register or a constant",
            OperandRole::Dsts | OperandRole::Vals => "registers such as `{r0, r1}`",
            OperandRole::Pred => "a predicate register",
            OperandRole::Param | OperandRole::DstParam => "a parameter such as `[name]`",
            OperandRole::Label => "a label",
            OperandRole::Texel => "a texel such as `[t, {x, y}]`",
            OperandRole::Tensor => "an address of tensor memory such as `[t]` or `[t+8]`",
            OperandRole::Matrix => "a matrix descriptor, or an address of tensor memory",
        }
    }
}

/// A set of qualifiers; an instruction has at most one of them.
pub(super) struct QualGroup {
    pub(super) kind: QualKind,
    pub(super) words: &'static [&'static str],
}

/// The property that a group of qualifiers decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QualKind {
    Sem,
    Scope,
    Space,
    Type,
    /// The number of elements of a vector.
    Vector,
    /// A second type (`cvt`).
    Types,
    /// Cache operator or eviction hint; it never changes consistency (PTX ISA, Cache Operators).
    Cache,
    /// `.volatile` or `.mmio`.
    Flag,
    /// The rounding of floating-point numbers.
    Round,
    /// `.ftz`: subnormal numbers become zero.
    Flush,
    /// Limits of a result: `.sat`, `.satfinite`, or the NaN results of `.NaN`.
    Clamp,
    /// `.relu`: no result is negative.
    Rectify,
    /// Operation, comparison or proxy.
    Op,
    /// Accepted, without effect here.
    Ignored,
    /// The words that select the row.
    Key,
}

pub(super) const SCOPES: QualGroup = QualGroup {
    kind: QualKind::Scope,
    words: &["cta", "cluster", "gpu", "sys"],
};
pub(super) const SPACES: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &[
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "const",
        "local",
    ],
};
pub(super) const TYPES: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64",
    ],
};
pub(super) const TYPES_PRED: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "pred",
    ],
};
/// The types of moved values: floating-point numbers are moved as bits.
pub(super) const DATA: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64",
    ],
};
/// The types of arithmetic.
pub(super) const NUMBERS: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64", "f16", "f16x2", "bf16", "bf16x2",
    ],
};
pub(super) const NOFTZ: QualGroup = QualGroup {
    kind: QualKind::Flush,
    words: &["noftz"],
};
pub(super) const DATA_PRED: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64", "pred",
    ],
};
pub(super) const ROUND: QualGroup = QualGroup {
    kind: QualKind::Round,
    words: &["rn", "rz", "rm", "rp"],
};
pub(super) const FLUSH: QualGroup = QualGroup {
    kind: QualKind::Flush,
    words: &["ftz"],
};
pub(super) const VECTORS: QualGroup = QualGroup {
    kind: QualKind::Vector,
    words: &["v2", "v4", "v8", B128],
};
/// The type of 128 bits. A register of it is the vector of its halves.
pub(super) const B128: &str = "b128";
pub(super) const WIDE: QualGroup = QualGroup {
    kind: QualKind::Vector,
    words: &[B128],
};
pub(super) const CACHE: QualGroup = QualGroup {
    kind: QualKind::Cache,
    words: &[
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::evict_normal",
        "L2::evict_first",
        "L2::evict_last",
        POLICY,
        "L2::64B",
        "L2::128B",
        "L2::256B",
    ],
};

/// With this qualifier, the last operand is a cache policy.
/// The cache policy that an operand holds.
pub(super) const POLICY: &str = "L2::cache_hint";
pub(super) const HINT: QualGroup = QualGroup {
    kind: QualKind::Cache,
    words: &[POLICY],
};

/// The qualifiers of one instruction, sorted into groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Quals(Vec<(QualKind, &'static str, Range<usize>)>);

impl Quals {
    /// Adds a qualifier that stands at a place.
    pub(super) fn push(&mut self, kind: QualKind, word: &'static str, range: Range<usize>) {
        self.0.push((kind, word, range));
    }

    /// The first qualifier of a group.
    pub(super) fn get(&self, kind: QualKind) -> Option<&'static str> {
        self.0.iter().find(|q| q.0 == kind).map(|q| q.1)
    }

    /// Whether the instruction has a key.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.0.iter().any(|q| q.0 == QualKind::Key && q.1 == key)
    }

    /// All qualifiers of a group, in order.
    pub(super) fn all(&self, kind: QualKind) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter(move |q| q.0 == kind).map(|q| q.1)
    }

    /// The place of a group's first qualifier.
    pub(super) fn place(&self, kind: QualKind) -> Option<Range<usize>> {
        self.0.iter().find(|q| q.0 == kind).map(|q| q.2.clone())
    }

    /// The scope qualifier.
    pub(super) fn scope(&self) -> Option<Scope> {
        Some(match self.get(QualKind::Scope)? {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" => Scope::Gpu,
            _ => Scope::Sys,
        })
    }

    /// The number of elements of a vector access; 1 for a scalar.
    pub(super) fn width(&self) -> usize {
        match self.get(QualKind::Vector) {
            Some("v2" | B128) => 2,
            Some("v4") => 4,
            Some(_) => 8,
            None => 1,
        }
    }

    /// The types of a conversion: target and source.
    pub(super) fn conversion(&self) -> Option<(&'static str, &'static str)> {
        let mut words = self
            .0
            .iter()
            .filter(|q| q.0 == QualKind::Types)
            .map(|q| q.1);
        Some((words.next()?, words.next()?))
    }

    /// All qualifiers with their places.
    pub(super) fn written(&self) -> impl Iterator<Item = (QualKind, &'static str, Range<usize>)> {
        self.0.iter().cloned()
    }

    /// The format of floating-point operands.
    pub(super) fn format(&self) -> Option<Format> {
        self.get(QualKind::Type).and_then(format_named)
    }

    /// Whether the operands are floating-point numbers of 16 bits, or pairs of them.
    pub(super) fn is_half(&self) -> bool {
        self.format().is_some_and(|format| format.bits == 16)
    }

    /// The number of numbers in an element: an access to a packed type is an access to each of
    /// them.
    pub(super) fn packed(&self) -> u8 {
        if self
            .get(QualKind::Type)
            .is_some_and(|ty| ty.ends_with("x2"))
        {
            2
        } else {
            1
        }
    }

    /// The type qualifier; of a conversion, the first one.
    pub(super) fn ty(&self) -> Option<Ty> {
        let wide = (self.get(QualKind::Vector) == Some(B128)).then_some(Ty::U64);
        self.get(QualKind::Type)
            .or(self.get(QualKind::Types))
            .and_then(bits_named)
            .or(wide)
    }
}

/// The type of that name; a floating-point type gives the type of its bits.
pub fn bits_named(name: &str) -> Option<Ty> {
    match name {
        "f32" | "f16x2" | "bf16x2" | "tf32" => Some(Ty::U32),
        "f64" | "f32x2" => Some(Ty::U64),
        "f16" | "bf16" | "e4m3x2" | "e5m2x2" => Some(Ty {
            bits: 16,
            signed: false,
        }),
        _ => type_named(name),
    }
}

/// The floating-point format of a type, or of the numbers in a packed type.
pub fn format_named(name: &str) -> Option<Format> {
    Some(match name {
        "f16" | "f16x2" => Format::HALF,
        "bf16" | "bf16x2" => Format::BRAIN,
        "f32" | "f32x2" => Format::SINGLE,
        "f64" => Format::DOUBLE,
        _ => return None,
    })
}

/// The integer type of that name, without its dot.
pub fn type_named(name: &str) -> Option<Ty> {
    if name == "pred" {
        return Some(PRED);
    }
    let (class, bits) = name.split_at_checked(1)?;
    let bits = bits.parse().ok().filter(|b| [8, 16, 32, 64].contains(b))?;
    matches!(class, "u" | "s" | "b").then_some(Ty {
        bits,
        signed: class == "s",
    })
}

/// An instruction with its row.
#[derive(Clone)]
pub(super) struct Matched {
    pub(super) row: &'static InstrRow,
    pub(super) quals: Quals,
    pub(super) raw: RawInstr,
}

impl Matched {
    /// The operands with their roles, each with the number of parts of its value. Elements of a
    /// vector have the role of the vector.
    pub(super) fn operands(&self) -> impl Iterator<Item = (OperandRole, &PtxOperand, u8)> {
        let operands = self.row.operands.iter().zip(&self.raw.operands);
        operands.flat_map(|(role, operand)| {
            let (roles, pieces) = match (role, &operand.kind) {
                (OperandRole::DstAndPred, OperandKind::Pair(_)) => {
                    ([OperandRole::Dst, OperandRole::DstPred], 1)
                }
                (OperandRole::Dsts, OperandKind::Vector(all)) => {
                    ([OperandRole::Dst; 2], all.len() as u8)
                }
                (OperandRole::Vals, OperandKind::Vector(all)) => {
                    ([OperandRole::Any; 2], all.len() as u8)
                }
                (OperandRole::Texel, OperandKind::Texel(_)) => ([OperandRole::Any; 2], 1),
                (OperandRole::DstAndPred | OperandRole::Dsts, _) => ([OperandRole::Dst; 2], 1),
                (OperandRole::Vals, _) => ([OperandRole::Val; 2], 1),
                _ => ([*role; 2], 1),
            };
            operand
                .elements()
                .iter()
                .enumerate()
                .map(move |(i, element)| (roles[usize::from(i > 0)], element, pieces))
        })
    }
}

/// The key of a row for instructions without qualifiers and with a constant as the last operand.
pub(super) const BARE: &str = "";

/// Joins words to "`a`, `b` or `c`".
pub(super) fn or_list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
