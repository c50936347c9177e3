//! Changes of an operation's order and scope: which orders are stronger, and how to set them.
//!
//! # Invariants
//! - A change affects only an operation's order, its scope, or whether it is atomic. Callers pass
//!   only orders that the operation may have.
//!
//! # Sources
//! - C11, 7.17.3, *Order and consistency*; OpenCL C, *Memory order and scope*; libcu++, *Thread
//!   scopes*.

use crate::words::{OF_LOADS, OF_OTHERS, OF_STORES};
use crate::{Access, EventKind, Op, Scope, Tag, Tags};

pub use crate::words::Order;

/// The tags of orders. The last one is also the tag of PTX's constant proxy, in addition to an
/// order.
const ORDER_TAGS: &[Tag] = &[
    Tag::Relaxed,
    Tag::Acquire,
    Tag::Release,
    Tag::AcqRel,
    Tag::SeqCst,
    Tag::Constant,
];

/// The orders that an atomic operation or a fence may have; empty for any other operation.
fn orders(op: &Op) -> &'static [Order] {
    fn atomic(access: &Access) -> bool {
        access.tags.has(Tag::Atomic)
    }
    match (op.read(), op.write()) {
        _ if op.has(Tag::Asynchronous) => &[],
        // For mbarrier objects, arrivals release and waits acquire.
        _ if op.has(Tag::MbarrierArrive) => &[Order::Relaxed, Order::Release],
        _ if op.has(Tag::MbarrierWait) => &[Order::Relaxed, Order::Acquire],
        _ if op.has(Tag::Mbarrier) => &[],
        (Some(_), Some(_)) => OF_OTHERS,
        (Some(read), None) if atomic(read) => OF_LOADS,
        (None, Some(write)) if atomic(write) => OF_STORES,
        (None, None) if op.is_fence() => OF_OTHERS,
        _ => &[],
    }
}

/// The tag for an order of an event of this kind with these tags; `None`: such events have none.
fn tag(order: Order, kind: EventKind, tags: &Tags) -> Option<Tag> {
    match kind {
        EventKind::Read if tags.has(Tag::Mbarrier) => None,
        EventKind::Write if tags.has(Tag::MbarrierWait) => Some(order.of_read()),
        EventKind::Read => Some(order.of_read()),
        EventKind::Write => Some(order.of_write()),
        EventKind::Fence => Some(order.of_fence()),
        _ => None,
    }
}

/// The order of an atomic operation or a fence; `None` for anything else.
pub fn order(op: &Op) -> Option<Order> {
    // A consume fence is an acquire fence.
    orders(op)
        .iter()
        .filter(|o| !(op.is_fence() && **o == Order::Consume))
        .find(|o| {
            op.tags()
                .iter()
                .all(|(kind, tags)| tag(**o, *kind, tags).is_none_or(|tag| tags.has(tag)))
        })
        .copied()
}

/// The orders that an operation may have and that are stronger than its current one, weakest first.
pub fn stronger(op: &Op) -> Vec<Order> {
    others(op, |own, other| other.bits() & own.bits() == own.bits())
}

/// The orders that an operation may have and that are weaker than its current one, weakest first.
/// No fence is relaxed.
pub fn weaker(op: &Op) -> Vec<Order> {
    let fence = op.is_fence();
    others(op, |own, other| {
        other.bits() & own.bits() == other.bits() && !(fence && other == Order::Relaxed)
    })
}

/// The other orders that an operation may have and for which `wanted` (current, other) holds,
/// weakest first.
fn others(op: &Op, wanted: impl Fn(Order, Order) -> bool) -> Vec<Order> {
    let Some(own) = order(op) else {
        return Vec::new();
    };
    let mut orders: Vec<Order> = orders(op)
        .iter()
        .copied()
        .filter(|o| *o != Order::Consume && o.bits() != own.bits() && wanted(own, *o))
        .collect();
    orders.sort_by_key(|o| o.bits().count_ones());
    orders
}

/// The scope of an atomic operation or a fence.
pub fn scope(op: &Op) -> Option<Scope> {
    op.scope().filter(|_| {
        op.accesses()
            .all(|access| access.tags.has(Tag::Atomic) && !access.tags.has(Tag::Asynchronous))
    })
}

/// Gives an operation another order.
pub fn set_order(op: &mut Op, order: Order) {
    for (kind, tags) in op.tags_mut() {
        if let Some(tag) = tag(order, kind, tags) {
            let own = ORDER_TAGS.iter().copied().find(|own| tags.has(*own));
            // A volatile operation is always relaxed.
            let relaxed: &[Tag] = if order == Order::Relaxed {
                &[]
            } else {
                &[Tag::Volatile, Tag::Mmio]
            };
            *tags = tags.without(own.as_slice()).without(relaxed);
            tags.insert(tag);
        }
    }
}

/// The fence flags for all regions of memory.
pub const ALL_FLAGS: &str = "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE";

/// Whether an OpenCL fence or barrier leaves out a region of memory.
pub fn lacks_flags(op: &Op) -> bool {
    op.tags().iter().any(|(kind, tags)| {
        let mut regions = [Tag::Global, Tag::Local].into_iter();
        kind.is_in("F") && regions.any(|flag| !tags.has(flag))
    })
}

/// Whether it is a non-atomic memory access.
pub fn is_plain(op: &Op) -> bool {
    op.accesses().any(|access| !access.tags.has(Tag::Atomic))
}

/// Makes an access weak (PTX).
pub fn make_weak(op: &mut Op) {
    for access in op.accesses_mut() {
        access.tags = access.tags.without(&[
            Tag::Atomic,
            Tag::Relaxed,
            Tag::Acquire,
            Tag::Release,
            Tag::Volatile,
            Tag::Mmio,
        ]);
        access.tags.insert(Tag::Weak);
        access.scope = None;
    }
}

/// Makes a plain or weak access atomic. A load or a store drops the parts of the order that it
/// cannot have.
pub fn make_atomic(op: &mut Op, order: Order, scope: Option<Scope>) {
    for (kind, tags) in op.tags_mut() {
        if let Some(tag) = tag(order, kind, tags) {
            *tags = tags.without(&[Tag::Volatile, Tag::Weak]);
            tags.extend(&[Tag::Atomic, tag]);
        }
    }
    if scope.is_some() {
        op.set_scope(scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expr, RegId, Ty};

    fn load(order: Tag) -> Op {
        let access = Access {
            tags: Tags::of(&[Tag::Atomic, order]),
            scope: Some(Scope::Cta),
            ty: Ty::S32,
        };
        Op::Load {
            dst: RegId(0),
            addr: Expr::Const(0),
            access,
        }
    }

    #[test]
    fn a_load_becomes_acquire_but_never_release() {
        assert_eq!(
            stronger(&load(Tag::Relaxed)),
            [Order::Acquire, Order::SeqCst]
        );
        assert_eq!(stronger(&load(Tag::Acquire)), [Order::SeqCst]);
        assert_eq!(stronger(&load(Tag::SeqCst)), []);
    }

    #[test]
    fn what_was_set_is_there() {
        let mut op = load(Tag::Relaxed);
        set_order(&mut op, Order::Acquire);
        op.set_scope(Some(Scope::Sys));
        assert_eq!(
            (order(&op), scope(&op)),
            (Some(Order::Acquire), Some(Scope::Sys))
        );
        let fence = Op::fence(Tags::of(&[Tag::Global, Tag::Release]), Some(Scope::Cta));
        assert_eq!(stronger(&fence), [Order::AcqRel, Order::SeqCst]);
        assert!(lacks_flags(&fence));
    }
}
