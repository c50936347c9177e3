//! Loads and stores through the generic proxy, and the surface, texture and constant accesses of
//! the proxy tests.
//!
//! # Sources
//! - PTX ISA 9.4, *ld*, *st*: `.weak` is the default; `.relaxed`, `.acquire`, `.release` need a
//!   scope; `.volatile` is relaxed at system scope; `.mmio` accesses have the scope of the system.
//! - PTX ISA 9.4, *st.bulk*: a weak write of zeros.
//! - PTX ISA 9.4, *discard*: a weak write of indeterminate values.
//! - PTX ISA 9.4, *Cache Operators* and *Cache Eviction Priority Hints*: no effect on consistency,
//!   hence ignored.
//!
//! # Where we differ
//! - A register of 128 bits is written as its halves, as in `ld.b128 {lo, hi}, [a]`
//!   ([`super::expand`]). The text has scalars of at most 64 bits. A strong access of 128 bits is
//!   one scalar (option `b128`), a weak one is two.
//! - `tld`, `suld`, `cold`, `sust`: the notation of the published mixed-proxy tests (ISCA 2022).

use super::needs::Need;
use std::ops::Range;

use super::copies;
use super::lower::PtxArg;
use super::lower::{Emit, PtxInstr};
use super::operands::plus;
use super::table::{
    B128, BARE, CACHE, DATA, InstrRow, OperandRole, QualGroup, QualKind, ResultTy, SCOPES, SPACES,
    TYPES, VECTORS,
};
use program::{
    Access, BinOp, Class, CmpOp, Expr, Instr, LocId, Op, Proxy, Scope, Space, Tag, Tags, Ty,
};

pub(super) const LOAD_SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["weak", "relaxed", "acquire"],
};
pub(super) const STORE_SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["weak", "relaxed", "release"],
};
const FLAGS: QualGroup = QualGroup {
    kind: QualKind::Flag,
    words: &["volatile", "mmio"],
};

const QUERIED: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &[
        "const",
        "global",
        "local",
        "shared",
        "shared::cta",
        "shared::cluster",
        "param",
        "param::entry",
    ],
};
const NC_SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["weak"],
};
const NC_SPACE: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["global"],
};
const CTA_SPACE: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared::cta"],
};
const PREFETCHED: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["global", "local"],
};
const MAP_SPACES: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["const", "param"],
};
const LEVELS: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["L1", "L2", "L2::evict_last", "L2::evict_normal"],
};
const DISCARDED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["L2"],
};
/// The number of bytes that a discard covers.
const LINE: i64 = 128;
const LOAD: &[QualGroup] = &[LOAD_SEM, SCOPES, SPACES, FLAGS, CACHE, VECTORS, DATA];
const STORE: &[QualGroup] = &[STORE_SEM, SCOPES, SPACES, FLAGS, CACHE, VECTORS, DATA];
const PROXY_LOAD: &[QualGroup] = &[LOAD_SEM, SCOPES, TYPES];
const PROXY_STORE: &[QualGroup] = &[STORE_SEM, SCOPES, TYPES];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "ld",
        "`ld{.weak|{.mmio}.relaxed.scope|{.mmio}.acquire.scope|.volatile}{.space}{.v2|.v4|.v8}\
         {.type} d, [a]`, or `.b128 {lo, hi}, [a]`",
        "load; weak unless it says otherwise",
        LOAD,
        &[OperandRole::Dst, OperandRole::Addr],
        |e, c| {
            let constant = c.quals.get(QualKind::Space) == Some("const");
            load(
                e,
                c,
                if constant {
                    Proxy::Constant
                } else {
                    Proxy::Generic
                },
            );
        },
    )
    .needs(&[Need::of(&["b128"], (8, 3), 70)]),
    InstrRow::new(
        "ld",
        "`ld{.weak}.global.nc{.type} d, [a]`",
        "a weak load of memory that nothing in the test writes",
        &[NC_SEM, NC_SPACE, CACHE, VECTORS, DATA],
        &[OperandRole::Dst, OperandRole::Addr],
        |e, c| load(e, c, Proxy::Generic),
    )
    .needs(&[Need::of(&["b128"], (8, 3), 70)])
    .keyed(&["nc"]),
    InstrRow::new(
        "prefetch",
        "`prefetch{.space}.level [a]`",
        "a hint; does nothing here",
        &[PREFETCHED, LEVELS],
        &[OperandRole::Addr],
        |_, _| {},
    ),
    InstrRow::new(
        "prefetch",
        "`prefetch{.space}.tensormap [a]`",
        "a hint; does nothing here",
        &[MAP_SPACES],
        &[OperandRole::Addr],
        |e, _| e.through_register = false,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["tensormap"]),
    InstrRow::new(
        "discard",
        "`discard{.global}.L2 [a], 128`",
        "leaves unknown values in memory: weak stores of values that are not worked out to 128 \
        bytes",
        &[NC_SPACE, DISCARDED],
        &[OperandRole::Addr, OperandRole::Loose],
        discard,
    )
    .needs(&[Need::always((7, 4), 80)]),
    InstrRow::new(
        "st",
        "`st.bulk{.weak}{.shared::cta} [a], size, 0`",
        "weak stores of 0 to `size` bytes of shared memory; the size is a constant",
        &[NC_SEM, CTA_SPACE],
        &[OperandRole::Addr, OperandRole::Loose, OperandRole::Loose],
        store_bulk,
    )
    .needs(&[Need::always((8, 6), 100)])
    .keyed(&["bulk"]),
    InstrRow::new(
        "prefetchu",
        "`prefetchu.L1 [a]`",
        "a hint; does nothing here",
        &[LEVELS],
        &[OperandRole::Addr],
        |_, _| {},
    ),
    InstrRow::new(
        "ld",
        "`ld d, 5`",
        "sets a register to a constant; no memory access (short form)",
        &[],
        &[OperandRole::Dst, OperandRole::Val],
        |e, c| {
            let value = c.expr(1);
            if let Some(dst) = c.dst(0) {
                e.push(Op::Assign { dst, value });
            }
        },
    )
    .keyed(&[BARE]),
    InstrRow::new(
        "ld",
        "`ld.param{.type} d, [p]`",
        "reads a parameter; `regs` of the test sets those of the kernel; no memory access. \
        Through a register, or if code takes the parameter's address, it is a load from memory \
        declared with `space = \"param\"`",
        &[DATA],
        &[OperandRole::Dst, OperandRole::Param],
        |e, c| {
            let value = Expr::Cast(c.ty, Box::new(c.expr(1)));
            let value = if c.ty.bits == 64 { c.expr(1) } else { value };
            if let Some(dst) = c.dst(0) {
                e.push(Op::Assign { dst, value });
            }
        },
    )
    .keyed(&["param"]),
    InstrRow::new(
        "st",
        "`st.param{.type} [p], a`",
        "sets a parameter of a call; no memory access",
        &[DATA],
        &[OperandRole::DstParam, OperandRole::Val],
        |e, c| {
            let value = e.fit(c.expr(1), c.ty);
            if let Some(dst) = c.dst(0) {
                e.push(Op::Assign { dst, value });
            }
        },
    )
    .keyed(&["param"]),
    InstrRow::new(
        "st",
        "`st{.weak|{.mmio}.relaxed.scope|{.mmio}.release.scope|.volatile}{.space}{.v2|.v4|.v8}\
         {.type} [a], b`, or `.b128 [a], {lo, hi}`",
        "store; weak unless it says otherwise",
        STORE,
        &[OperandRole::Addr, OperandRole::Val],
        |e, c| store(e, c, Proxy::Generic),
    )
    .needs(&[Need::of(&["b128"], (8, 3), 70)]),
    InstrRow::new(
        "isspacep",
        "`isspacep.space p, a`",
        "whether a generic address is in a state space; the answer must be the same for all \
        objects that the address can point to",
        &[QUERIED],
        &[OperandRole::Dst, OperandRole::Loose],
        |e, c| {
            let own = matches!(c.quals.get(QualKind::Space), Some("shared" | "shared::cta"));
            if own && e.env.cluster.len() > 1 {
                let message = "whether an address is in this CTA's shared memory is not known in a \
                         cluster";
                return e.error("unsupported-instruction", c.opcode.clone(), message, |d| {
                    d.label("expected `.shared::cluster`, or a kernel without clusters")
                });
            }
            // `pointers` replaces this comparison by the answer, once all threads show the possible
            // targets of the address.
            if let Some(dst) = c.dst(0) {
                let value = Expr::Cmp(CmpOp::Eq, Ty::U64, c.expr(1).into(), Expr::Const(0).into());
                e.push(Op::Assign { dst, value });
            }
        },
    )
    .needs(&[
        Need::of(&["param"], (7, 7), 70),
        Need::of(&["param::entry"], (8, 3), 70),
    ])
    .result(ResultTy::Pred),
    InstrRow::new(
        "tld",
        "`tld{.weak|.relaxed.scope|.acquire.scope}{.type} d, [a]`",
        "load through the texture proxy",
        PROXY_LOAD,
        &[OperandRole::Dst, OperandRole::Addr],
        |e, c| load(e, c, Proxy::Texture),
    ),
    InstrRow::new(
        "suld",
        "`suld{.weak|.relaxed.scope|.acquire.scope}{.type} d, [a]`",
        "load through the surface proxy",
        PROXY_LOAD,
        &[OperandRole::Dst, OperandRole::Addr],
        |e, c| load(e, c, Proxy::Surface),
    ),
    InstrRow::new(
        "cold",
        "`cold{.weak|.relaxed.scope|.acquire.scope}{.type} d, [a]`",
        "load through the constant proxy",
        PROXY_LOAD,
        &[OperandRole::Dst, OperandRole::Addr],
        |e, c| load(e, c, Proxy::Constant),
    ),
    InstrRow::new(
        "ldc",
        "`ldc{.weak|.relaxed.scope|.acquire.scope}{.type} d, [a]`",
        "the same as `cold`",
        PROXY_LOAD,
        &[OperandRole::Dst, OperandRole::Addr],
        |e, c| load(e, c, Proxy::Constant),
    ),
    InstrRow::new(
        "sust",
        "`sust{.weak|.relaxed.scope|.release.scope}{.type} [a], b`",
        "store through the surface proxy",
        PROXY_STORE,
        &[OperandRole::Addr, OperandRole::Val],
        |e, c| store(e, c, Proxy::Surface),
    ),
];

fn discard(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if c.expr(1) != Expr::Const(LINE) || c.quals.get(QualKind::Ignored).is_none() {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            "a discard is of 128 bytes in the L2 cache",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    }
    let line = ByteRange {
        space: Space::Global,
        length: LINE,
        unit: LINE,
    };
    store_weakly(e, c, line, Expr::unknown);
}

/// The number of bytes that a size of `st.bulk` is a multiple of.
const BULK_UNIT: i64 = 8;

fn store_bulk(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let length = match (c.expr(1), c.expr(2)) {
        (Expr::Const(size), Expr::Const(0)) if size > 0 && size % BULK_UNIT == 0 => size,
        _ => {
            let message = "this bulk store is not supported";
            return e.error("wrong-operand", c.opcode.clone(), message, |d| {
                d.label("expected a constant size, a multiple of 8, and the value 0")
            });
        }
    };
    let range = ByteRange {
        space: Space::Shared,
        length,
        unit: BULK_UNIT,
    };
    store_weakly(e, c, range, |_| Expr::Const(0));
}

/// Bytes of a state space, from an address that is a multiple of `unit`.
struct ByteRange {
    space: Space,
    length: i64,
    unit: i64,
}

/// Stores a value to each location in a range.
fn store_weakly(e: &mut Emit<'_, '_>, c: &PtxInstr, bytes: ByteRange, value: fn(Ty) -> Expr) {
    let ByteRange {
        space,
        length,
        unit,
    } = bytes;
    // The accesses have the type of the location.
    e.through_register = false;
    read_only(e, c);
    let first = copies::aligned(c.expr(0), unit);
    let Some(memory) = copies::end(e, c, 0, space, length, unit) else {
        return;
    };
    let Some(ty) = copies::one_type(e, c, memory, memory) else {
        return;
    };
    for k in 0..length / i64::from(ty.bytes()) {
        let access = Access {
            tags: Tags::of(&[Tag::Generic, Tag::Weak]),
            scope: None,
            ty,
        };
        e.push(Op::Store {
            addr: plus(first.clone(), k, ty),
            value: value(ty),
            access,
        });
    }
}

/// Whether an object in a state space answers an `isspacep` with yes.
pub(in crate::isa) type IsIn = fn(Space) -> bool;

/// For an `isspacep` instruction: its address operand, and a function from the state space of an
/// object to the answer.
pub(in crate::isa) fn asks_space(instr: &Instr) -> Option<(&Expr, IsIn)> {
    let asks = instr.assembly.as_ref().filter(|a| a.opcode == "isspacep")?;
    let space = asks.qualifiers.first()?;
    let Op::Assign {
        value: Expr::Cmp(_, _, address, _),
        ..
    } = &instr.op
    else {
        return None;
    };
    Some((
        address,
        match space.as_str() {
            "global" => |space| space == Space::Global,
            "const" => |space| space == Space::Constant,
            "local" => Space::is_local,
            "param" | "param::entry" => |space| space == Space::Param,
            _ => |space| space == Space::Shared,
        },
    ))
}

/// Whether an instruction in PTX is a non-coherent load. It becomes a weak load; a later check
/// reports it if some thread writes the memory.
pub(in crate::isa) fn is_non_coherent(instr: &Instr) -> bool {
    let load = instr.assembly.as_ref().filter(|a| a.opcode == "ld");
    load.is_some() && instr.has_qualifier("nc")
}

fn load(e: &mut Emit<'_, '_>, c: &PtxInstr, proxy: Proxy) {
    let Some(access) = access(e, c, proxy) else {
        return;
    };
    let mut ops = Vec::new();
    let Some(addresses) = addresses(e, c, c.expr(1)) else {
        return;
    };
    for (addr, dst) in addresses.into_iter().zip(c.elements(0)) {
        let PtxArg::Dst(Some(dst)) = *dst else {
            e.error(
                "wrong-operand",
                c.opcode.clone(),
                "a load needs a register to write to",
                |d| d.label("only `atom` can discard its result with `_`"),
            );
            return;
        };
        if ops.iter().any(|op: &Op| op.defines() == Some(dst)) {
            e.error(
                "wrong-operand",
                c.opcode.clone(),
                "a vector load writes a register twice",
                |d| d.label("expected a register for each element"),
            );
            return;
        }
        ops.push(Op::Load {
            dst,
            addr,
            access: access.clone(),
        });
    }
    if is_scalar(c, &access) {
        if ops.iter().any(changes_own_address) {
            let message = "a load of 128 bits changes the register of its address";
            e.error("wrong-operand", c.opcode.clone(), message, |d| {
                d.label("expected other registers")
            });
            return;
        }
        e.push_scalar(ops);
        return;
    }
    // The load that overwrites the address register comes last: all loads use the old address.
    ops.sort_by_key(changes_own_address);
    e.push_elements(ops);
}

/// Whether the elements are the halves of one scalar.
fn is_scalar(c: &PtxInstr, access: &Access) -> bool {
    c.quals.get(QualKind::Vector) == Some(B128) && access.tags.has(Tag::Atomic)
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr, proxy: Proxy) {
    let Some(access) = access(e, c, proxy) else {
        return;
    };
    read_only(e, c);
    let Some(addresses) = addresses(e, c, c.expr(0)) else {
        return;
    };
    let ops = addresses
        .into_iter()
        .zip(c.elements(1))
        .map(|(addr, value)| {
            let value = if let PtxArg::Expr(value) = value {
                value.clone()
            } else {
                Expr::Const(0)
            };
            Op::Store {
                addr,
                value: e.fit(value, access.ty),
                access: access.clone(),
            }
        });
    let ops = ops.collect();
    if is_scalar(c, &access) {
        e.push_scalar(ops)
    } else {
        e.push_elements(ops)
    }
}

fn changes_own_address(op: &Op) -> bool {
    op.address()
        .zip(op.defines())
        .is_some_and(|(addr, dst)| addr.any(&|e| *e == Expr::Reg(dst)))
}

/// The addresses of an access's elements. A vector address in a register is checked when its value
/// is known: if it is not a multiple of the vector's size, the access is outside all memory (PTX
/// ISA, Addresses as Operands, Alignment).
pub(super) fn addresses(e: &mut Emit<'_, '_>, c: &PtxInstr, first: Expr) -> Option<Vec<Expr>> {
    let (width, bytes) = (c.quals.width() as i64, i64::from(c.ty.bytes()));
    if width == 1 {
        return Some(vec![first]);
    }
    let place = c.quals.place(QualKind::Vector).unwrap_or_default();
    if c.quals.get(QualKind::Vector) == Some(B128) && c.quals.get(QualKind::Type).is_some() {
        e.error(
            "conflicting-qualifiers",
            place,
            "`.b128` is a type, and another one is given",
            |d| d.label("expected one type"),
        );
        return None;
    }
    if c.quals.ty().is_none() {
        e.error(
            "missing-type",
            place,
            "a vector access needs the type of its elements",
            |d| d.label("expected a type such as `.u32` behind it"),
        );
        return None;
    }
    let size = width * bytes;
    if size > 32 || (width == 8 && bytes != 4 && !c.quals.is_half()) {
        let message = format!(
            "there is no vector of {width} elements of {} bits",
            c.ty.bits
        );
        e.error("unsupported-qualifier", place, message, |d| {
            d.label(
                "expected at most 16 bytes, or `.v4` of 64 bits or `.v8` of 32 bits (PTX \
                 ISA, ld, st)",
            )
        });
        return None;
    }
    let cast =
        |op, a: &Expr, n| Expr::Bin(op, Ty::U64, Box::new(a.clone()), Box::new(Expr::Const(n)));
    let aligned = |addr: Expr| match first.base() {
        Some(_) => addr,
        None => {
            let rest = cast(BinOp::And, &first, size - 1);
            let aligned = Expr::Cmp(CmpOp::Eq, Ty::U64, Box::new(rest), Box::new(Expr::Const(0)));
            Expr::Select(Box::new(aligned), Box::new(addr), Box::new(Expr::Const(0)))
        }
    };
    Some(
        (0..width)
            .map(|n| aligned(plus(first.clone(), n, c.ty)))
            .collect(),
    )
}

/// Reports an ordinary access to an mbarrier object.
pub(super) fn opaque(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if let Some(loc) = c.loc {
        is_ordinary(e, loc, &c.opcode);
    }
}

/// Reports an mbarrier object as the location of an ordinary access.
pub(super) fn is_ordinary(e: &mut Emit<'_, '_>, loc: LocId, at: &Range<usize>) -> Option<()> {
    let (object, declared) = e.symbols.object(loc);
    if declared.class != Some(Class::Mbarrier) {
        return Some(());
    }
    let symbol = e.symbols.get(object);
    let (name, place) = (symbol.name.clone(), symbol.span);
    e.error(
        "mbarrier-access",
        at.clone(),
        format!("`{name}` is an mbarrier object"),
        |d| {
            d.label("expected an `mbarrier` instruction")
                .also(place, "declared here")
                .note(
                    "an ordinary access to an mbarrier object is undefined (PTX ISA 9.4, mbarrier)",
                )
                .help(format!(
                    "if it is invalidated before, declare its storage: `{name} = {{ bytes = 8, \
                     space = \"shared\" }}`"
                ))
        },
    );
    None
}

/// Reports a write to constant memory.
pub(super) fn read_only(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(loc) = c.loc else { return };
    let (object, declared) = e.symbols.object(loc);
    if declared.space.is_read_only() {
        let what = if declared.space == Space::Param {
            "a parameter of the kernel"
        } else {
            "in constant memory"
        };
        let symbol = e.symbols.get(object);
        let (name, place) = (symbol.name.clone(), symbol.span);
        e.error(
            "read-only",
            c.opcode.clone(),
            format!("`{name}` is {what}"),
            |d| d.label("this writes it").also(place, "declared here"),
        );
    }
}

/// The order, scope and proxy of a load or store.
pub(super) fn access(e: &mut Emit<'_, '_>, c: &PtxInstr, proxy: Proxy) -> Option<Access> {
    opaque(e, c);
    let (sem, scope, flag) = (
        c.quals.get(QualKind::Sem),
        c.quals.scope(),
        c.quals.get(QualKind::Flag),
    );
    let mut tags = Tags::of(&[proxy.row().tag]);
    if flag == Some("volatile") {
        let extra = c
            .quals
            .place(QualKind::Sem)
            .or(c.quals.place(QualKind::Scope));
        if let Some(place) = extra {
            e.error(
                "conflicting-qualifiers",
                place,
                "`.volatile` has neither order nor scope",
                |d| d.label("`.volatile` means relaxed at system scope"),
            );
            return None;
        }
        tags.extend(&[Tag::Relaxed, Tag::Atomic, Tag::Volatile]);
        return Some(Access {
            tags,
            scope: Some(Scope::Sys),
            ty: c.ty,
        });
    }
    let order = match sem {
        None | Some("weak") => None,
        Some("relaxed") => Some(Tag::Relaxed),
        Some("acquire") => Some(Tag::Acquire),
        Some(_) => Some(Tag::Release),
    };
    if flag == Some("mmio") && (order.is_none() || scope != Some(Scope::Sys)) {
        let strong = if c.row.opcode == "ld" {
            "acquire"
        } else {
            "release"
        };
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "`.mmio` accesses have an order and the scope of the system",
            |d| {
                d.label(format!(
                    "expected `.mmio.relaxed.sys` or `.mmio.{strong}.sys`"
                ))
            },
        );
        return None;
    }
    match (order, scope) {
        (None, Some(_)) => {
            let place = c.quals.place(QualKind::Scope).unwrap_or_default();
            let id = "conflicting-qualifiers";
            e.error(id, place, "a weak access has no scope", |d| {
                d.label("expected an order such as `.relaxed`")
            });
            None
        }
        (None, None) => {
            tags.insert(Tag::Weak);
            Some(Access {
                tags,
                scope: None,
                ty: c.ty,
            })
        }
        (Some(_), None) => {
            let place = c.quals.place(QualKind::Sem).unwrap_or_default();
            let message = format!("`.{}` needs a scope", sem.unwrap_or_default());
            e.error("missing-scope", place, message, |d| {
                d.label("expected one of `.cta`, `.cluster`, `.gpu` or `.sys`")
            });
            None
        }
        (Some(order), Some(_)) => {
            tags.extend(&[order, Tag::Atomic]);
            if flag == Some("mmio") {
                tags.insert(Tag::Mmio);
            }
            Some(Access {
                tags,
                scope,
                ty: c.ty,
            })
        }
    }
}
