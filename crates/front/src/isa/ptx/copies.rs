//! Asynchronous copies between global and shared memory, and what waits for them.
//!
//! # Invariants
//! - A bulk copy that an mbarrier object tracks ends with the operation on it, once for each CTA that it brings something to; one
//!   without belongs to a bulk group.
//! - A copy is a load and a store for each element, in no order among themselves but that a load comes before its store. They
//!   are events `ASY`: in no thread's program order, after all that stands before the copy. What waits for a copy is ordered
//!   after it, and nothing else is.
//!
//! # Sources
//! - PTX ISA 9.4, *cp.async*, *cp.async.commit_group*, *cp.async.wait_group / cp.async.wait_all*,
//!   *cp.async.mbarrier.arrive*; Memory Consistency Model, *Asynchronous Operations*: weak accesses of the generic proxy.
//! - PTX ISA 9.4, *cp.async.bulk*, *cp.async.bulk.commit_group*, *cp.async.bulk.wait_group*; *Async Proxy*: weak accesses of the
//!   async proxy; the operation on the mbarrier object is of the generic proxy and of cluster scope.
//!
//! # Where we differ
//! - Addresses are names of locations, of one type, but that a bulk copy may go to another CTA of the cluster through a register;
//!   copies that fill up with zeros (`src-size`) are not supported.
//! - Memory of bulk copies has no second address: of aliases, the text has no clause for the async proxy.

use super::lower::{Call, Emit};
use super::mbarrier;
use super::memory::is_ordinary;
use super::operands::plus;
use super::table::{Group, GroupKind, Role, Row, SCOPES};
use diag::Sink;
use program::{Access, BinOp, CmpOp, EventKind, Expr, Instr, LocId, Mark, Op, Program, Space, Tags, Ty};

const CACHE: Group = Group { kind: GroupKind::Cache, words: &["ca", "cg"] };
const TO: Group = Group { kind: GroupKind::Ignored, words: &["shared", "shared::cta"] };
const FROM: Group = Group { kind: GroupKind::Ignored, words: &["global"] };
const PREFETCH: Group = Group { kind: GroupKind::Ignored, words: &["L2::64B", "L2::128B", "L2::256B"] };
const OWN: Group = Group { kind: GroupKind::Space, words: &["shared", "shared::cta"] };
const BULK: Group = Group {
    kind: GroupKind::Ignored,
    words: &["shared::cta", "shared::cluster", "global", TRACKED, GROUPED, MULTICAST, STRONG],
};
/// An mbarrier object tells of a bulk copy.
const TRACKED: &str = "mbarrier::complete_tx::bytes";
/// A bulk copy is of a group.
const GROUPED: &str = "bulk_group";
/// Its accesses are strong.
const STRONG: &str = "relaxed";
/// A bulk copy goes to several CTAs.
const MULTICAST: &str = "multicast::cluster";
const B64: Group = Group { kind: GroupKind::Type, words: &["b64"] };

/// A bulk copy is of so many bytes, or of a multiple, at a multiple.
const UNIT: i64 = 16;

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
        |e, _| e.push(mark(&["CG"], None)),
    )
    .keyed(&["async", "commit_group"]),
    Row::new(
        "cp",
        "`cp.async.wait_group n`",
        "waits until all groups of the thread but the `n` last ones are complete",
        &[],
        &[Role::Loose],
        |e, c| wait_group(e, c, &["GW"]),
    )
    .keyed(&["async", "wait_group"]),
    Row::new(
        "cp",
        "`cp.async.wait_all`",
        "waits until all copies of the thread are complete",
        &[],
        &[],
        |e, _| {
            e.push(mark(&["CG"], None));
            e.push(mark(&["GW"], Some(0)));
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
    Row::new(
        "cp",
        "`cp.async.bulk.shared::cta|::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster} [dst], [src], bytes, [a]{, \
         mask}`, or `cp.async.bulk.global.shared::cta.bulk_group [dst], [src], bytes`",
        "begins to copy a multiple of 16 bytes through the async proxy: to shared memory, where an mbarrier object tells of it, or \
         to global memory",
        &[BULK, SCOPES],
        &[Role::Addr, Role::Addr, Role::Loose, Role::Addr, Role::Loose],
        bulk,
    )
    .keyed(&["async", "bulk"])
    .optional(2),
    Row::new(
        "cp",
        "`cp.async.bulk.commit_group`",
        "makes the thread's bulk copies since the last bulk group a group",
        &[],
        &[],
        |e, _| e.push(mark(&["CG", "BULK"], None)),
    )
    .keyed(&["async", "bulk", "commit_group"]),
    Row::new(
        "cp",
        "`cp.async.bulk.wait_group n`",
        "waits until all bulk groups of the thread but the `n` last ones are complete",
        &[],
        &[Role::Loose],
        |e, c| wait_group(e, c, &["GW", "BULK"]),
    )
    .keyed(&["async", "bulk", "wait_group"]),
    Row::new(
        "cp",
        "`cp.async.bulk.wait_group.read n`",
        "waits until all bulk groups of the thread but the `n` last ones have read what they copy",
        &[],
        &[Role::Loose],
        |e, c| wait_group(e, c, &["GR", "BULK"]),
    )
    .keyed(&["async", "bulk", "wait_group", "read"]),
];

fn mark(tags: &[&'static str], pending: Option<u32>) -> Op {
    Op::Mark { addr: None, mark: Mark { kind: EventKind::Fence, tags: Tags::of(tags), scope: None, pending } }
}

/// Waits until all groups but a number of last ones are complete, or have been read.
fn wait_group(e: &mut Emit<'_, '_>, c: &Call, tags: &[&'static str]) {
    match c.expr(0) {
        Expr::Const(n) if (0..MOST_GROUPS).contains(&n) => e.push(mark(tags, Some(n as u32))),
        _ => e.error("wrong-operand", c.opcode.clone(), "a wait needs a number of groups", |d| {
            d.label(format!("expected a constant from 0 to {}", MOST_GROUPS - 1))
        }),
    }
}

/// Waits for groups in which there is no copy that must be complete, whatever way a thread goes: a warning says what is missing.
pub fn warn_of_empty_waits(program: &Program, sink: &mut Sink) {
    let mut told = Vec::new();
    for thread in &program.threads {
        let code = &thread.code;
        for (at, wait) in code.iter().enumerate() {
            let Some(mark) = wait.op.mark(EventKind::Fence).filter(|m| m.tags.has("GW") || m.tags.has("GR"))
            else {
                continue;
            };
            if told.contains(&wait.span) {
                continue;
            }
            let bulk = mark.tags.has("BULK");
            let is_copy =
                |i: &usize| code[*i].op.read().is_some_and(|r| r.tags.has("ASY") && r.tags.has("ASYNC") == bulk);
            // Bulk copies that an mbarrier object tells of are in no group.
            let is_tracked = |i: &usize| {
                (i + 1..code.len()).take_while(|&j| code[j].span == code[*i].span).any(|j| code[j].op.has("MB"))
            };
            let makes = |i: &Instr| {
                i.op.mark(EventKind::Fence).is_some_and(|m| m.tags.has("CG") && m.tags.has("BULK") == bulk)
            };
            // In a loop, what stands behind it may come before it.
            let before = if thread.has_loop() { 0..code.len() } else { 0..at };
            let copies: Vec<usize> = before.clone().filter(is_copy).collect();
            let grouped: Vec<usize> = copies.iter().copied().filter(|i| !bulk || !is_tracked(i)).collect();
            let groups = |from: usize| code[from..before.end].iter().filter(|i| makes(i)).count();
            let from = |first: &usize| if thread.has_loop() { 0 } else { *first };
            let name = if bulk { "cp.async.bulk" } else { "cp.async" };
            let pending = mark.pending.unwrap_or(0) as usize;
            let why = match grouped.first() {
                None if copies.is_empty() => format!("no `{name}` of this thread comes before it"),
                None => "the copies before it are tracked by an mbarrier object, and in no group".to_owned(),
                Some(first) => match groups(from(first)) {
                    0 => format!("no `{name}.commit_group` stands between the copies and it"),
                    n if n <= pending && !thread.has_loop() => {
                        format!("{n} of {pending} groups that may be incomplete are made before it")
                    }
                    _ => continue,
                },
            };
            told.push(wait.span);
            sink.warn("empty-wait", wait.span, "a wait that waits for nothing", |d| {
                d.label(why).note("a wait for groups waits for copies that the thread has committed to one (PTX ISA 9.4, cp.async.wait_group)")
            });
        }
    }
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
    let extent = (bytes, bytes);
    let (Some(to), Some(from)) = (end(e, c, 0, Space::Shared, extent), end(e, c, 1, Space::Global, extent)) else {
        return;
    };
    let Some(ty) = one_type(e, c, to, from) else { return };
    elements(e, c, "GEN", ty, (c.expr(0), c.expr(1), bytes));
}

fn bulk(e: &mut Emit<'_, '_>, c: &Call) {
    // Its accesses have the type of what is named.
    e.through_register = false;
    let words: Vec<&str> = c.quals.all(GroupKind::Ignored).collect();
    let has = |word: &str| words.contains(&word);
    let spaces: Vec<&str> = words.iter().copied().filter(|w| ![TRACKED, GROUPED, MULTICAST].contains(w)).collect();
    let tracked = c.given(3).is_some();
    let short = words.is_empty();
    if has(STRONG) {
        e.error("unsupported-qualifier", c.opcode.clone(), "strong bulk copies are not supported", |d| {
            d.label(format!("expected {}", c.row.syntax))
        });
        return;
    }
    let written = match *spaces {
        ["shared::cta" | "shared::cluster", "global"] => tracked && has(TRACKED) && !has(GROUPED),
        ["global", "shared::cta"] => !tracked && has(GROUPED) && !has(TRACKED),
        _ => short,
    };
    let multicast = c.given(4).is_some();
    if !written
        || c.quals.scope().is_some()
        || has(MULTICAST) != multicast
        || multicast && spaces.first() != Some(&"shared::cluster")
    {
        e.error("conflicting-qualifiers", c.opcode.clone(), "there is no such form of a bulk copy", |d| {
            d.label(format!("expected {}", c.row.syntax))
        });
        return;
    }
    let bytes = match c.expr(2) {
        Expr::Const(n) if n > 0 && n % UNIT == 0 => n,
        _ => {
            e.error("wrong-operand", c.opcode.clone(), "a bulk copy has a multiple of 16 bytes", |d| {
                d.label("expected a constant: 16, 32, …")
            });
            return;
        }
    };
    let (to, from) = if tracked { (Space::Shared, Space::Global) } else { (Space::Global, Space::Shared) };
    let Some(source) = end(e, c, 1, from, (bytes, UNIT)) else { return };
    let away = c.expr(0).base().is_none() && (short || has("shared::cluster")) && tracked;
    let destination = if away { None } else { Some(end(e, c, 0, to, (bytes, UNIT))) };
    let ty = match destination {
        Some(None) => return,
        Some(Some(destination)) => one_type(e, c, destination, source),
        None => Some(e.symbols.ty(source)),
    };
    let Some(ty) = ty else { return };
    for loc in [Some(source), destination.flatten()].into_iter().flatten() {
        if one_address(e, c, loc).is_none() {
            return;
        }
    }
    let whole = |addr: Expr| match addr.base() {
        Some(_) => addr,
        // What is not aligned is no address of memory.
        None => {
            let rest = Expr::Bin(BinOp::And, Ty::U64, addr.clone().into(), Expr::Const(UNIT - 1).into());
            let aligned = Expr::Cmp(CmpOp::Eq, Ty::U64, rest.into(), Expr::Const(0).into());
            Expr::Select(aligned.into(), addr.into(), Expr::Const(0).into())
        }
    };
    let Some(targets) = targets(e, c, multicast) else { return };
    for (to, object) in targets {
        if elements(e, c, "ASYNC", ty, (whole(to), c.expr(1), bytes)).is_none() {
            return;
        }
        if tracked {
            mbarrier::complete(e, c, 3, object, bytes);
        }
    }
}

/// Where a bulk copy goes, with the mbarrier objects: of all CTAs in the mask, the same place in the memory of each.
fn targets(e: &mut Emit<'_, '_>, c: &Call, multicast: bool) -> Option<Vec<(Expr, Expr)>> {
    let own = (c.expr(0), c.expr(3));
    if !multicast {
        return Some(vec![own]);
    }
    let (Expr::Const(mask), Some(to), Some(object)) = (c.expr(4), own.0.base(), own.1.base()) else {
        let message = "a copy to several CTAs through addresses or a mask in a register is not supported";
        e.error("unsupported-address", c.opcode.clone(), message, |d| {
            d.label("expected the names of locations in shared memory, and a constant mask")
        });
        return None;
    };
    if !(1..1 << 16).contains(&mask) {
        e.error("out-of-range", c.opcode.clone(), format!("{mask} names no CTAs"), |d| {
            d.label("expected a mask of 16 bits, not all 0")
        });
        return None;
    }
    let ranks = (0..16).filter(|rank| mask >> rank & 1 == 1);
    let of = |rank| {
        Some((
            mbarrier::of_rank(e, c, to, own.0.clone(), rank)?,
            mbarrier::of_rank(e, c, object, own.1.clone(), rank)?,
        ))
    };
    ranks.map(of).collect()
}

/// The accesses of a copy through a proxy: to, from, and how many bytes.
fn elements(
    e: &mut Emit<'_, '_>,
    c: &Call,
    proxy: &'static str,
    ty: Ty,
    (to, from, bytes): (Expr, Expr, i64),
) -> Option<()> {
    let access = || Access { tags: Tags::of(&["ASY", proxy, "WEAK"]), scope: None, ty };
    for k in 0..bytes / i64::from(ty.bytes()) {
        let dst = e.temporary(c, &format!("copy {k}"), ty)?;
        e.push(Op::Load { dst, addr: plus(from.clone(), k, ty), access: access() });
        e.push(Op::Store { addr: plus(to.clone(), k, ty), value: Expr::Reg(dst), access: access() });
    }
    Some(())
}

/// The type of the elements of both ends.
fn one_type(e: &mut Emit<'_, '_>, c: &Call, to: LocId, from: LocId) -> Option<Ty> {
    let (ty, other) = (e.symbols.ty(to), e.symbols.ty(from));
    if ty.bits == other.bits {
        return Some(ty);
    }
    let message = format!("a copy from elements of {} bits to such of {} bits", other.bits, ty.bits);
    e.error("mixed-size", c.opcode.clone(), message, |d| d.label("expected locations with elements of one size"));
    None
}

/// Reports memory that has several addresses.
fn one_address(e: &mut Emit<'_, '_>, c: &Call, loc: LocId) -> Option<()> {
    let (object, _) = e.symbols.object(loc);
    let Some(other) = e.symbols.alias_of(object) else { return Some(()) };
    let (name, place) = (e.symbols.get(object).name.clone(), e.symbols.get(other).span);
    let message = format!("a bulk copy of `{name}`, which has a second address, is not supported");
    e.error("unsupported-alias", c.opcode.clone(), message, |d| {
        d.label("expected memory of one address").also(place, "the second address").note(
            "PTX ISA 9.4, Memory Consistency Model, Causality Order: the clause of aliases does not speak of the async proxy",
        )
    });
    None
}

/// The location of one end of a copy of so many bytes at a multiple of so many, if it can be one.
fn end(e: &mut Emit<'_, '_>, c: &Call, at: usize, space: Space, (bytes, unit): (i64, i64)) -> Option<LocId> {
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
        let (what, word) = if space == Space::Shared {
            (("to shared", "from shared"), "shared")
        } else {
            (("to global", "from global"), "global")
        };
        let what = if at == 0 { what.0 } else { what.1 };
        return wrong(
            "wrong-space",
            format!("this copies {what} memory, and `{name}` lives elsewhere"),
            format!("expected a location in {word} memory"),
        );
    }
    if bytes % i64::from(size) != 0 || offset % unit != 0 {
        let place = if offset % unit != 0 { format!("byte {offset} of `{name}`") } else { format!("`{name}`") };
        return wrong(
            "misaligned",
            format!("{bytes} bytes at {place}, whose elements have {size} bytes"),
            format!("expected whole elements, at a multiple of {unit} bytes"),
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
