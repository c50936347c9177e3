//! Relates accesses to tensor memory by the lanes and columns that they touch.
//!
//! # Invariants
//! - An access to tensor memory is a mark; the number in its operand is its address. Each CTA has
//!   its own tensor memory.
//!
//! # Sources
//! - PTX ISA 9.4, *Tensor Memory* (Addressing, Allocation); *Pipelined tcgen05 Instructions*: two
//!   products form a pipeline if they have one accumulator, shape and kind.

use super::base::{BaseRel, same_block};
use crate::skeleton::pool::{Cond, TermId};
use crate::skeleton::values::domain::Domains;
use crate::skeleton::{Event, Skeleton};
use cat::rel::Rel;
use program::{CmpOp, EventKind, Program, TENSOR_TAGS, Tag, TensorPart, ThreadId, Ty};

/// An access to tensor memory.
#[derive(Clone, Copy)]
struct TensorAccess {
    event: usize,
    thread: ThreadId,
    address: TermId,
    part: TensorPart,
    tag: Tag,
}

/// The kinds of accesses.
const KINDS: [Tag; 6] = [
    Tag::TensorLoad,
    Tag::TensorStore,
    Tag::TensorMultiply,
    Tag::TensorOperand,
    Tag::TensorAlloc,
    Tag::TensorFree,
];

fn accesses(sk: &Skeleton) -> Vec<TensorAccess> {
    let of = |(event, e): (usize, &Event)| {
        let tag = KINDS.into_iter().find(|tag| e.tags.has(*tag))?;
        let (thread, address) = (e.thread?, e.addr?);
        let instr = sk.program.thread(thread).code.get(e.instr)?;
        Some(TensorAccess {
            event,
            thread,
            address,
            part: instr.op.mark(EventKind::Fence)?.tensor?,
            tag,
        })
    };
    sk.events.iter().enumerate().filter_map(of).collect()
}

/// Whether a program has instructions of tensor memory.
pub(crate) fn has_tensor_memory(program: &Program) -> bool {
    let mut instrs = program.instrs();
    instrs.any(|(_, _, instr)| instr.op.has_any(&TENSOR_TAGS))
}

/// Pairs of accesses in one CTA, under the condition that their addresses are so related.
fn related(
    sk: &mut Skeleton,
    domains: &Domains,
    of: impl Fn(&Skeleton, [(&TensorAccess, i64); 2]) -> bool,
) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    let all = accesses(sk);
    for a in &all {
        for b in &all {
            if a.event == b.event || !same_block(sk, a.thread, b.thread) {
                continue;
            }
            let mut cond = Cond::FALSE;
            for &x in domains.addresses(a.address) {
                for &y in domains.addresses(b.address) {
                    if of(sk, [(a, x), (b, y)]) {
                        let (here, there) = (is(sk, a, x), is(sk, b, y));
                        let both = sk.pool.and(here, there);
                        cond = sk.pool.or(cond, both);
                    }
                }
            }
            rel.add(a.event, b.event, cond);
        }
    }
    rel
}

/// The condition that an access has an address.
fn is(sk: &mut Skeleton, access: &TensorAccess, address: i64) -> Cond {
    let value = sk.pool.constant(address);
    sk.pool.cmp(CmpOp::Eq, Ty::WORD, access.address, value)
}

/// The groups of lanes of an access, and its ranges of columns; `None` if it leaves tensor memory.
fn place(access: &TensorAccess, address: i64) -> Option<(u8, Vec<(i64, i64)>)> {
    let (group, column) = TensorPart::place(address)?;
    let groups = access.part.groups_at(group)?;
    let ranges = access.part.ranges();
    let ranges = ranges.map(|(from, length)| (column + from, column + from + length));
    Some((groups, ranges.collect()))
}

/// Accesses that touch a common lane and column.
pub(crate) fn overlap(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    related(sk, domains, |_, [(a, x), (b, y)]| {
        let (Some((of_a, in_a)), Some((of_b, in_b))) = (place(a, x), place(b, y)) else {
            return false;
        };
        let meets = |(from, to): &(i64, i64)| in_b.iter().any(|b| *from < b.1 && b.0 < *to);
        of_a & of_b != 0 && in_a.iter().any(meets)
    })
}

/// Whether a thread's warp may access groups of lanes by `ld` and `st`: those of its quarter.
fn in_quarter(sk: &Skeleton, access: &TensorAccess, groups: u8) -> bool {
    let of_warp = [Tag::TensorLoad, Tag::TensorStore].contains(&access.tag);
    let warp = sk.program.thread(access.thread).place.warp;
    !of_warp || TensorPart::is_of_warp(groups, warp)
}

/// Allocations with the accesses that stay in their columns, and in the lanes of their warp.
pub(crate) fn within(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    related(sk, domains, |sk, [(a, x), (b, y)]| {
        let (Some((_, given)), Some((groups, taken))) = (place(a, x), place(b, y)) else {
            return false;
        };
        let stays = |(from, to): &(i64, i64)| given.iter().any(|g| g.0 <= *from && *to <= g.1);
        a.tag == Tag::TensorAlloc && in_quarter(sk, b, groups) && taken.iter().all(stays)
    })
}

/// Products with one accumulator, shape and kind.
pub(crate) fn same_accumulator(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    related(sk, domains, |_, [(a, x), (b, y)]| {
        let products = [a, b].map(|access| access.tag == Tag::TensorMultiply);
        products == [true; 2] && a.part == b.part && x == y
    })
}
