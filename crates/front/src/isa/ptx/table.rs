//! What a row of the instruction table says, and how an instruction finds its row.
//!
//! # Invariants
//! - Qualifiers are taken in any order; PTX's own order changed between versions
//!   (`ld.global.relaxed.gpu.u32` and `ld.relaxed.gpu.global.u32` are both in use).
//! - A row decides everything about its instructions: qualifiers, operands, micro-ops. Nothing else
//!   lists opcodes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::lower::{Call, Emit};
use super::parse::{Operand, OperandKind, RawInstr};
use super::{
    arith, asynchronous, atomics, barriers, bits, carry, clusters, control, copies, fences, lanes,
    matrices, mbarrier, memory, multimem, outside, tensormap, unknown,
};
use diag::{MappedText, Sink};
use program::{Format, Scope, Ty};

/// One instruction family.
pub struct Row {
    /// First word.
    pub opcode: &'static str,
    /// Qualifiers that select this row among those of its opcode.
    pub keys: &'static [&'static str],
    /// The same, of which one is enough; empty: none is needed.
    pub(super) one_of: &'static [&'static str],
    /// The forms, for messages and documentation.
    pub syntax: &'static str,
    /// One line: what it does and how it is modelled.
    pub doc: &'static str,
    /// Further qualifiers.
    pub(super) groups: &'static [Group],
    /// Operands in order.
    pub(super) operands: &'static [Role],
    /// How many trailing operands may be left out.
    pub(super) optional: usize,
    /// Whether it deals with its predicate itself (branches).
    pub(super) takes_predicate: bool,
    /// The type of what it writes to its destination.
    pub(super) result: ResultTy,
    /// Emits the micro-ops.
    pub(super) lower: fn(&mut Emit<'_, '_>, &Call),
}

impl Row {
    /// A row with no qualifiers but those of `groups` that writes its type to its destination.
    pub(super) const fn new(
        opcode: &'static str,
        syntax: &'static str,
        doc: &'static str,
        groups: &'static [Group],
        operands: &'static [Role],
        lower: fn(&mut Emit<'_, '_>, &Call),
    ) -> Row {
        let (keys, result): (&[&str], _) = (&[], ResultTy::Own);
        let one_of: &[&str] = &[];
        Row {
            opcode,
            keys,
            one_of,
            syntax,
            doc,
            groups,
            operands,
            optional: 0,
            takes_predicate: false,
            result,
            lower,
        }
    }

    /// The same, for instructions with these qualifiers.
    pub(super) const fn keyed(mut self, keys: &'static [&'static str]) -> Row {
        self.keys = keys;
        self
    }

    /// The same, for instructions with one of these qualifiers, which are among its further ones.
    pub(super) const fn one_of(mut self, words: &'static [&'static str]) -> Row {
        self.one_of = words;
        self
    }

    /// The same, with that many optional operands at the end.
    pub(super) const fn optional(mut self, n: usize) -> Row {
        self.optional = n;
        self
    }

    /// The same, for a row whose lowering uses the predicate.
    pub(super) const fn takes_predicate(mut self) -> Row {
        self.takes_predicate = true;
        self
    }

    /// The same, with another type of result.
    pub(super) const fn result(mut self, result: ResultTy) -> Row {
        self.result = result;
        self
    }
}

/// The type that an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultTy {
    /// That of its type qualifier, else that of the location accessed, else [`Ty::WORD`].
    Own,
    /// A predicate.
    Pred,
    /// Twice as wide (`mul.wide`).
    Wide,
    /// 32 bits, whatever it reads (`popc`).
    U32,
}

/// Predicates hold 0 or 1: one bit, so that they are no integers of 8 bits.
pub(crate) const PRED: Ty = Ty {
    bits: 1,
    signed: false,
};

/// What an operand is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A register that is written; `_` discards.
    Dst,
    /// The same, and behind `|` perhaps a predicate that is written, too.
    DstAndPred,
    /// That predicate.
    DstPred,
    /// An address.
    Addr,
    /// A register, a constant or the address of a location.
    Val,
    /// Like `Val`, but of any type (shift amounts, sources of conversions).
    Loose,
    /// Like `Loose`, or a fraction.
    Any,
    /// A predicate register, perhaps negated.
    Pred,
    /// A parameter, `[name]`: a register. That of a kernel is one that only the test sets.
    Param,
    /// Registers that are written, however many.
    Dsts,
    /// As many registers as there are.
    Vals,
    /// A parameter that is written.
    DstParam,
    /// A label.
    Label,
}

impl Role {
    pub(super) fn expected(self) -> &'static str {
        match self {
            Role::Dst | Role::DstAndPred => "a register to write to",
            Role::DstPred => "a predicate to write to",
            Role::Addr => "an address such as `[x]`, `[x+4]` or `[%rd1]`",
            Role::Val | Role::Loose | Role::Any => "a register or a constant",
            Role::Dsts | Role::Vals => "registers such as `{r0, r1}`",
            Role::Pred => "a predicate register",
            Role::Param | Role::DstParam => "a parameter such as `[name]`",
            Role::Label => "a label",
        }
    }
}

/// A set of qualifiers of which at most one is written.
pub(super) struct Group {
    pub(super) kind: GroupKind,
    pub(super) words: &'static [&'static str],
}

/// What a group of qualifiers decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    /// Memory order.
    Sem,
    /// Scope.
    Scope,
    /// State space.
    Space,
    /// Type.
    Type,
    /// How many elements a vector has.
    Vector,
    /// A second type (`cvt`).
    Types,
    /// Cache operator or eviction hint: never changes consistency (PTX ISA, Cache Operators).
    Cache,
    /// `.volatile` or `.mmio`.
    Flag,
    /// How floating-point numbers are rounded.
    Round,
    /// `.ftz`: subnormal numbers are zeros.
    Flush,
    /// Limits of a result: `.sat`, `.satfinite`, or what `.NaN` makes of operands that are no
    /// numbers.
    Clamp,
    /// `.relu`: no result is negative.
    Rectify,
    /// Operation, comparison or proxy.
    Op,
    /// Accepted, without meaning here.
    Ignored,
    /// The words that select the row.
    Key,
}

pub(super) const SCOPES: Group = Group {
    kind: GroupKind::Scope,
    words: &["cta", "cluster", "gpu", "sys"],
};
pub(super) const SPACES: Group = Group {
    kind: GroupKind::Space,
    words: &[
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "const",
        "local",
    ],
};
pub(super) const TYPES: Group = Group {
    kind: GroupKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64",
    ],
};
pub(super) const TYPES_PRED: Group = Group {
    kind: GroupKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "pred",
    ],
};
/// What values are moved as: floating-point numbers are their bits.
pub(super) const DATA: Group = Group {
    kind: GroupKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64",
    ],
};
/// What is computed with.
pub(super) const NUMBERS: Group = Group {
    kind: GroupKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64", "f16", "f16x2", "bf16", "bf16x2",
    ],
};
pub(super) const NOFTZ: Group = Group {
    kind: GroupKind::Flush,
    words: &["noftz"],
};
pub(super) const DATA_PRED: Group = Group {
    kind: GroupKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64", "pred",
    ],
};
pub(super) const ROUND: Group = Group {
    kind: GroupKind::Round,
    words: &["rn", "rz", "rm", "rp"],
};
pub(super) const FLUSH: Group = Group {
    kind: GroupKind::Flush,
    words: &["ftz"],
};
pub(super) const VECTORS: Group = Group {
    kind: GroupKind::Vector,
    words: &["v2", "v4", "v8", B128],
};
/// The type of what has 128 bits: a register of it is its halves, a vector.
pub(super) const B128: &str = "b128";
pub(super) const WIDE: Group = Group {
    kind: GroupKind::Vector,
    words: &[B128],
};
pub(super) const CACHE: Group = Group {
    kind: GroupKind::Cache,
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

/// The last operand is a cache policy.
const POLICY: &str = "L2::cache_hint";
pub(super) const HINT: Group = Group {
    kind: GroupKind::Cache,
    words: &[POLICY],
};

/// The families of the instruction set, in order of documentation: what they are, whether models
/// know events of theirs, and their rows. What is no event is worked out before.
pub(super) const FAMILIES: [(&str, bool, &[Row]); 17] = [
    ("loads and stores", true, memory::ROWS),
    ("atomic operations", true, atomics::ROWS),
    ("fences", true, fences::ROWS),
    ("barriers", true, barriers::ROWS),
    ("mbarrier objects", true, mbarrier::ROWS),
    ("asynchronous copies", true, copies::ROWS),
    ("tensor maps", true, tensormap::ROWS),
    (
        "asynchronous stores, reductions and matrix instructions",
        true,
        asynchronous::ROWS,
    ),
    (
        "requests to the scheduler of clusters",
        true,
        clusters::ROWS,
    ),
    ("multimem addresses", true, multimem::ROWS),
    ("matrices in shared memory", true, matrices::ROWS),
    ("lanes of a warp", false, lanes::ROWS),
    ("control", false, control::ROWS),
    ("arithmetic and moves", false, arith::ROWS),
    ("bits", false, bits::ROWS),
    ("carries", false, carry::ROWS),
    (
        "operations whose values are not worked out",
        false,
        unknown::ROWS,
    ),
];

/// The instruction set: every row, in order of documentation.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.into_iter().flat_map(|family| family.2)
}

fn by_opcode() -> &'static HashMap<&'static str, Vec<&'static Row>> {
    static INDEX: OnceLock<HashMap<&'static str, Vec<&'static Row>>> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for row in rows() {
            index.entry(row.opcode).or_default().push(row);
        }
        index
    })
}

/// The qualifiers of one instruction, sorted into groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Quals(Vec<(GroupKind, &'static str, Range<usize>)>);

impl Quals {
    /// The word written of a group.
    pub(super) fn get(&self, kind: GroupKind) -> Option<&'static str> {
        self.0.iter().find(|q| q.0 == kind).map(|q| q.1)
    }

    /// Whether a key was written.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.0.iter().any(|q| q.0 == GroupKind::Key && q.1 == key)
    }

    /// The words written of a group, in their order.
    pub(super) fn all(&self, kind: GroupKind) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter(move |q| q.0 == kind).map(|q| q.1)
    }

    /// Where the word of a group was written.
    pub(super) fn place(&self, kind: GroupKind) -> Option<Range<usize>> {
        self.0.iter().find(|q| q.0 == kind).map(|q| q.2.clone())
    }

    /// The scope written.
    pub(super) fn scope(&self) -> Option<Scope> {
        Some(match self.get(GroupKind::Scope)? {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" => Scope::Gpu,
            _ => Scope::Sys,
        })
    }

    /// How many elements the vector has that is accessed; 1: it is none.
    pub(super) fn width(&self) -> usize {
        match self.get(GroupKind::Vector) {
            Some("v2" | B128) => 2,
            Some("v4") => 4,
            Some(_) => 8,
            None => 1,
        }
    }

    /// The words of a conversion's types: to which, and from which.
    pub(super) fn conversion(&self) -> Option<(&'static str, &'static str)> {
        let mut words = self
            .0
            .iter()
            .filter(|q| q.0 == GroupKind::Types)
            .map(|q| q.1);
        Some((words.next()?, words.next()?))
    }

    /// All qualifiers, with where they were written.
    pub(super) fn written(&self) -> impl Iterator<Item = (GroupKind, &'static str, Range<usize>)> {
        self.0.iter().cloned()
    }

    /// The format of the floating-point numbers that it works on.
    pub(super) fn format(&self) -> Option<Format> {
        self.get(GroupKind::Type).and_then(format_named)
    }

    /// Whether it works on floating-point numbers of 16 bits, or on pairs of them.
    pub(super) fn is_half(&self) -> bool {
        self.format().is_some_and(|format| format.bits == 16)
    }

    /// How many numbers an element is made of: an access to a packed type is one to each.
    pub(super) fn packed(&self) -> u8 {
        if self
            .get(GroupKind::Type)
            .is_some_and(|ty| ty.ends_with("x2"))
        {
            2
        } else {
            1
        }
    }

    /// The type written; of a conversion, the first.
    pub(super) fn ty(&self) -> Option<Ty> {
        let wide = (self.get(GroupKind::Vector) == Some(B128)).then_some(Ty::U64);
        self.get(GroupKind::Type)
            .or(self.get(GroupKind::Types))
            .and_then(bits_named)
            .or(wide)
    }
}

/// The type of that name, where a floating-point one is that of its bits.
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

/// The format of the floating-point numbers that a type of that name is, or is packed of.
pub fn format_named(name: &str) -> Option<Format> {
    Some(match name {
        "f16" | "f16x2" => Format::HALF,
        "bf16" | "bf16x2" => Format::BRAIN,
        "f32" | "f32x2" => Format::SINGLE,
        "f64" => Format::DOUBLE,
        _ => return None,
    })
}

/// The integer type of that name (without its dot).
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
    pub(super) row: &'static Row,
    pub(super) quals: Quals,
    pub(super) raw: RawInstr,
}

impl Matched {
    /// Its operands with their roles; elements of a vector have that of the vector. With each, of
    /// how many pieces of a value it is one.
    pub(super) fn operands(&self) -> impl Iterator<Item = (Role, &Operand, u8)> {
        let operands = self.row.operands.iter().zip(&self.raw.operands);
        operands.flat_map(|(role, operand)| {
            let (roles, pieces) = match (role, &operand.kind) {
                (Role::DstAndPred, OperandKind::Pair(_)) => ([Role::Dst, Role::DstPred], 1),
                (Role::Dsts, OperandKind::Vector(all)) => ([Role::Dst; 2], all.len() as u8),
                (Role::Vals, OperandKind::Vector(all)) => ([Role::Any; 2], all.len() as u8),
                (Role::DstAndPred | Role::Dsts, _) => ([Role::Dst; 2], 1),
                (Role::Vals, _) => ([Role::Val; 2], 1),
                _ => ([*role; 2], 1),
            };
            let element = move |(i, element)| (roles[usize::from(i > 0)], element, pieces);
            operand.elements().iter().enumerate().map(element)
        })
    }
}

/// Finds the row of an instruction and sorts its qualifiers; `None` with a diagnostic if there is
/// none.
pub(super) fn find(text: &MappedText, mut raw: RawInstr, sink: &mut Sink) -> Option<Matched> {
    let str = |range: &Range<usize>| &text.as_str()[range.clone()];
    let opcode = str(&raw.opcode);
    let span = text.span(raw.opcode.clone());
    let Some(rows) = by_opcode().get(opcode) else {
        if let Some(what) = outside::instruction(opcode) {
            sink.error(
                "unsupported-instruction",
                span,
                format!("`{opcode}` is not supported: {what}"),
                |d| d.label("PTX has this instruction, the checker has not"),
            );
        } else {
            sink.error(
                "unknown-instruction",
                span,
                format!("there is no instruction `{opcode}`"),
                |d| {
                    d.label("expected a PTX instruction")
                        .did_you_mean(opcode, by_opcode().keys().copied())
                },
            );
        }
        return None;
    };
    let written = |key: &str| raw.quals.iter().any(|q| str(q) == key);
    let bare = raw.quals.is_empty()
        && matches!(
            raw.operands.last().map(|o| &o.kind),
            Some(OperandKind::Int(_))
        );
    let fits = |row: &&&Row| match row.keys {
        [BARE] => bare,
        keys => {
            keys.iter().all(|k| written(k))
                && (row.one_of.is_empty() || row.one_of.iter().any(|k| written(k)))
        }
    };
    let keys = |row: &&&Row| row.keys.len() + usize::from(!row.one_of.is_empty());
    let Some(row) = rows.iter().filter(fits).max_by_key(keys).copied() else {
        let known = |q: &str| {
            rows.iter()
                .any(|r| r.keys.contains(&q) || r.groups.iter().any(|g| g.words.contains(&q)))
        };
        let bad = raw
            .quals
            .iter()
            .find(|q| outside::qualifier(str(q)).is_some() && !known(str(q)));
        if let Some(bad) = bad {
            report_unsupported(text, opcode, bad, sink);
            return None;
        }
        let forms: Vec<&str> = rows.iter().map(|r| r.syntax).collect();
        let whole = text.span(raw.opcode.start..raw.quals.last().map_or(raw.opcode.end, |q| q.end));
        sink.error(
            "unknown-instruction",
            whole,
            format!("there is no such form of `{opcode}`"),
            |d| {
                let keys = rows
                    .iter()
                    .flat_map(|r| r.keys.iter().copied())
                    .filter(|k| *k != BARE);
                let d = d.label(format!("expected {}", or_list(&forms)));
                match raw.quals.first() {
                    Some(first) => d.did_you_mean(str(first), keys),
                    None => d,
                }
            },
        );
        return None;
    };
    let mut quals = Quals::default();
    let mut ok = true;
    for range in &raw.quals {
        let word = str(range);
        if row.keys.contains(&word) && !quals.0.iter().any(|q| q.1 == word) {
            let key = row
                .keys
                .iter()
                .find(|k| **k == word)
                .copied()
                .unwrap_or_default();
            quals.0.push((GroupKind::Key, key, range.clone()));
            continue;
        }
        let place = text.span(range.clone());
        let group = row
            .groups
            .iter()
            .find_map(|g| Some((g.kind, *g.words.iter().find(|w| **w == word)?)));
        let Some((kind, known)) = group else {
            ok = false;
            if outside::qualifier(word).is_some() {
                report_unsupported(text, opcode, range, sink);
            } else {
                let words = || row.groups.iter().flat_map(|g| g.words.iter().copied());
                let id = "unknown-qualifier";
                sink.error(
                    id,
                    place,
                    format!("`{opcode}` has no qualifier `.{word}`"),
                    |d| {
                        d.label(format!("expected the form {}", row.syntax))
                            .did_you_mean(word, words())
                    },
                );
            }
            continue;
        };
        let many = matches!(kind, GroupKind::Cache | GroupKind::Ignored);
        let room = if kind == GroupKind::Types { 2 } else { 1 };
        let before = quals.0.iter().filter(|q| q.0 == kind).count();
        if !many && before >= room {
            ok = false;
            let first = quals.place(kind).unwrap_or_default();
            sink.error(
                "conflicting-qualifiers",
                place,
                format!("`.{word}` after `.{}`", str(&first)),
                |d| {
                    d.label("only one of these can be given")
                        .also(text.span(first), "the first one")
                },
            );
            continue;
        }
        quals.0.push((kind, known, range.clone()));
    }
    if quals.all(GroupKind::Cache).any(|word| word == POLICY) {
        // It changes no value that is read (PTX ISA, Cache Eviction Priority Hints).
        let policy = raw.operands.pop();
        let is_register = |o: &Operand| matches!(&o.kind, OperandKind::Name(n) if !n.brackets);
        if !policy.as_ref().is_some_and(is_register) {
            let place = policy.map_or(raw.opcode.clone(), |o| o.range);
            sink.error(
                "wrong-operand",
                text.span(place),
                "no cache policy stands here",
                |d| {
                    d.label(format!(
                        "`.{POLICY}` takes one in a register, behind the other operands"
                    ))
                },
            );
            return None;
        }
    }
    ok.then_some(Matched { row, quals, raw })
}

/// The key of a row that is chosen when there are no qualifiers and the last operand is a constant.
pub(super) const BARE: &str = "";

fn report_unsupported(text: &MappedText, opcode: &str, range: &Range<usize>, sink: &mut Sink) {
    let word = &text.as_str()[range.clone()];
    let what = outside::qualifier(word).unwrap_or_default();
    let message = format!("`{opcode}` with `.{word}` is not supported: {what}");
    sink.error(
        "unsupported-qualifier",
        text.span(range.clone()),
        message,
        |d| d.label("PTX has this qualifier, the checker has not"),
    );
}

/// "`a`, `b` or `c`".
pub(super) fn or_list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
