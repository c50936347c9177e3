//! Asynchronous copies from global to shared memory, and what waits for them.
//!
//! # Invariants
//! - A copy is a load and a store for each element, in no order among themselves but that a load comes before its store. They
//!   are events `ASY`: in no thread's program order, after all that stands before the copy. What waits for a copy is ordered
//!   after it, and nothing else is.
//!
//! # Sources
//! - PTX ISA 9.4, *cp.async*, *cp.async.commit_group*, *cp.async.wait_group / cp.async.wait_all*,
//!   *cp.async.mbarrier.arrive*; Memory Consistency Model, *Asynchronous Operations*: weak accesses of the generic proxy.
//!
//! # Where we differ
//! - Addresses are names of locations, of one type; copies that fill up with zeros (`src-size`) are not supported.

use super::lower::{Call, Emit};
use super::mbarrier;
use super::memory::is_ordinary;
use super::operands::plus;
use super::table::{Group, GroupKind, Role, Row};
use program::{Access, BinOp, EventKind, Expr, LocId, Mark, Op, Space, Tags, Ty};

const CACHE: Group = Group { kind: GroupKind::Cache, words: &["ca", "cg"] };
const TO: Group = Group { kind: GroupKind::Ignored, words: &["shared", "shared::cta"] };
const FROM: Group = Group { kind: GroupKind::Ignored, words: &["global"] };
const PREFETCH: Group = Group { kind: GroupKind::Ignored, words: &["L2::64B", "L2::128B", "L2::256B"] };
const OWN: Group = Group { kind: GroupKind::Space, words: &["shared", "shared::cta"] };
const B64: Group = Group { kind: GroupKind::Type, words: &["b64"] };

/// Of a wait for groups, how many may be incomplete at most: more than there can be.
const MOST_GROUPS: i64 = 1 << 16;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "cp",
        "`cp.async{.ca|.cg}{.shared{::cta}}{.global} [dst], [src], bytes`",
        "begins to copy 4, 8 or 16 bytes from global to shared memory",
        &[CACHE, TO, FROM, PREFETCH],
        &[Role::Addr, Role::Addr, Role::Loose],
        copy,
    )
    .keyed(&["async"]),
    Row::new(
        "cp",
        "`cp.async.commit_group`",
        "makes the thread's copies since the last group a group",
        &[],
        &[],
        |e, _| e.push(mark("CG", None)),
    )
    .keyed(&["async", "commit_group"]),
    Row::new(
        "cp",
        "`cp.async.wait_group n`",
        "waits until all groups of the thread but the `n` last ones are complete",
        &[],
        &[Role::Loose],
        |e, c| match c.expr(0) {
            Expr::Const(n) if (0..MOST_GROUPS).contains(&n) => e.push(mark("GW", Some(n as u32))),
            _ => e.error("wrong-operand", c.opcode.clone(), "a wait needs a number of groups", |d| {
                d.label(format!("expected a constant from 0 to {}", MOST_GROUPS - 1))
            }),
        },
    )
    .keyed(&["async", "wait_group"]),
    Row::new(
        "cp",
        "`cp.async.wait_all`",
        "waits until all copies of the thread are complete",
        &[],
        &[],
        |e, _| {
            e.push(mark("CG", None));
            e.push(mark("GW", Some(0)));
        },
    )
    .keyed(&["async", "wait_all"]),
    Row::new(
        "cp",
        "`cp.async.mbarrier.arrive{.noinc}{.shared{::cta}}.b64 [a]`",
        "arrives at an mbarrier object when the thread's copies so far are complete; without `.noinc`, the phase expects that \
         arrival in addition",
        &[OWN, B64],
        &[Role::Addr],
        |e, c| mbarrier::track(e, c, true),
    )
    .keyed(&["async", "mbarrier", "arrive"]),
    Row::new(
        "cp",
        "`cp.async.mbarrier.arrive.noinc{.shared{::cta}}.b64 [a]`",
        "the same, one of the arrivals that the phase expects anyway",
        &[OWN, B64],
        &[Role::Addr],
        |e, c| mbarrier::track(e, c, false),
    )
    .keyed(&["async", "mbarrier", "arrive", "noinc"]),
];

fn mark(tag: &'static str, pending: Option<u32>) -> Op {
    Op::Mark { addr: None, mark: Mark { kind: EventKind::Fence, tags: Tags::of(&[tag]), scope: None, pending } }
}

fn copy(e: &mut Emit<'_, '_>, c: &Call) {
    let bytes = match c.expr(2) {
        Expr::Const(n @ (4 | 8 | 16)) => n,
        _ => {
            e.error("wrong-operand", c.opcode.clone(), "an asynchronous copy has 4, 8 or 16 bytes", |d| {
                d.label("expected a constant: 4, 8 or 16")
            });
            return;
        }
    };
    if c.quals.get(GroupKind::Cache) == Some("cg") && bytes != 16 {
        e.error("conflicting-qualifiers", c.opcode.clone(), "`.cg` goes with 16 bytes alone", |d| {
            d.label("expected `.ca` (PTX ISA, cp.async)")
        });
        return;
    }
    let (Some(to), Some(from)) = (end(e, c, 0, Space::Shared, bytes), end(e, c, 1, Space::Global, bytes)) else {
        return;
    };
    let (ty, other) = (e.symbols.ty(to), e.symbols.ty(from));
    if ty.bits != other.bits {
        let message = format!("a copy from elements of {} bits to such of {} bits", other.bits, ty.bits);
        e.error("mixed-size", c.opcode.clone(), message, |d| {
            d.label("expected locations with elements of one size")
        });
        return;
    }
    let access = |ty: Ty| Access { tags: Tags::of(&["ASY", "GEN", "WEAK"]), scope: None, ty };
    for k in 0..bytes / i64::from(ty.bytes()) {
        let Some(dst) = e.temporary(c, &format!("copy {k}"), ty) else { return };
        e.push(Op::Load { dst, addr: plus(c.expr(1), k, ty), access: access(ty) });
        e.push(Op::Store { addr: plus(c.expr(0), k, ty), value: Expr::Reg(dst), access: access(ty) });
    }
}

/// The location of one end of a copy, if it can be one.
fn end(e: &mut Emit<'_, '_>, c: &Call, at: usize, space: Space, bytes: i64) -> Option<LocId> {
    let (loc, offset) = match c.expr(at) {
        Expr::Address(loc) => (loc, 0),
        Expr::Bin(BinOp::Add, _, base, offset) => match (*base, *offset) {
            (Expr::Address(loc), Expr::Const(offset)) => (loc, offset),
            _ => return through_register(e, c),
        },
        _ => return through_register(e, c),
    };
    is_ordinary(e, loc, &c.opcode)?;
    let declared = e.symbols.object(loc).1;
    let (elements, size, lives) = (declared.init.len(), e.symbols.ty(loc).bytes(), declared.space);
    let symbol = e.symbols.get(loc);
    let (name, place) = (symbol.name.clone(), symbol.span);
    let mut wrong = |id, message: String, expected: String| {
        e.error(id, c.opcode.clone(), message, |d| d.label(expected).also(place, "declared here"));
        None
    };
    if lives != space {
        let (what, word) =
            if space == Space::Shared { ("to shared", "shared") } else { ("from global", "global") };
        return wrong(
            "wrong-space",
            format!("`cp.async` copies {what} memory, and `{name}` lives elsewhere"),
            format!("expected a location in {word} memory"),
        );
    }
    if bytes % i64::from(size) != 0 || offset % bytes != 0 {
        let place = if offset % bytes != 0 { format!("byte {offset} of `{name}`") } else { format!("`{name}`") };
        return wrong(
            "misaligned",
            format!("{bytes} bytes at {place}, whose elements have {size} bytes"),
            "expected whole elements, at a multiple of the number of bytes".to_string(),
        );
    }
    if offset + bytes > elements as i64 * i64::from(size) {
        return wrong(
            "out-of-bounds",
            format!("`{name}` ends before byte {}", offset + bytes),
            format!("expected a location of at least {} bytes", offset + bytes),
        );
    }
    Some(loc)
}

fn through_register(e: &mut Emit<'_, '_>, c: &Call) -> Option<LocId> {
    let message = "a copy through an address in a register is not supported";
    e.error("unsupported-address", c.opcode.clone(), message, |d| {
        d.label("expected the names of two locations: `[x], [g]`")
    });
    None
}
