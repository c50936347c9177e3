//! Operations of the C-like dialects with other orders and scopes: what is stronger than what, and how each is written.
//!
//! # Invariants
//! - An operation changes in nothing but its order, its scope, or in being atomic; only orders that it may have are given.
//!
//! # Sources
//! - C11, 7.17.3, *Order and consistency*; OpenCL C, *Memory order and scope*; libcu++, *Thread scopes*.

use crate::words::{CUDA_SCOPES, FLAGS, OF_LOADS, OF_OTHERS, OF_STORES, ORDERS, SCOPES};
use crate::{Access, Dialect, Op, Scope, Tags};

pub use crate::words::Order;

/// The tags that say an order.
const ORDER_TAGS: &[&str] = &["RLX", "CON", "ACQ", "REL", "ACQ_REL", "SC"];

/// The scopes of a dialect, narrowest first, each with its name; those that atomic accesses may have.
pub fn scopes(dialect: Dialect) -> &'static [(&'static str, Scope)] {
    match dialect {
        Dialect::Cuda => CUDA_SCOPES,
        // That of the work-item is for fences of images.
        Dialect::OpenCl => &SCOPES[1..],
        _ => &[],
    }
}

/// How a scope is written.
pub fn scope_name(dialect: Dialect, scope: Scope) -> Option<&'static str> {
    let table = if dialect == Dialect::OpenCl { SCOPES } else { scopes(dialect) };
    table.iter().find(|s| s.1 == scope).map(|s| s.0)
}

/// The order of an atomic operation or a fence; `None` for anything else.
pub fn order(op: &Op) -> Option<Order> {
    let tagged = |tags: &Tags, of: fn(Order) -> &'static str, orders: &[Order]| {
        orders.iter().copied().find(|o| tags.has(of(*o)))
    };
    match op {
        Op::Load { access, .. } if access.tags.has("A") => tagged(&access.tags, Order::of_read, OF_LOADS),
        Op::Store { access, .. } if access.tags.has("A") => tagged(&access.tags, Order::of_write, OF_STORES),
        Op::Rmw { read, write, .. } => {
            ORDERS.iter().map(|o| o.1).find(|o| read.tags.has(o.of_read()) && write.tags.has(o.of_write()))
        }
        Op::Fence { tags, .. } => {
            ORDERS.iter().map(|o| o.1).find(|o| *o != Order::Consume && tags.has(o.of_fence()))
        }
        _ => None,
    }
}

/// The orders that an operation may have and that are stronger than its own, weaker ones first.
pub fn stronger(op: &Op) -> Vec<Order> {
    others(op, |own, other| other.bits() & own.bits() == own.bits())
}

/// The orders that an operation may have and that are weaker than its own, the weakest first. No fence is relaxed.
pub fn weaker(op: &Op) -> Vec<Order> {
    let fence = matches!(op, Op::Fence { .. });
    others(op, |own, other| other.bits() & own.bits() == other.bits() && !(fence && other == Order::Relaxed))
}

/// The orders that an operation may have besides its own, of which `wanted` (own, other) holds, weaker ones first.
fn others(op: &Op, wanted: impl Fn(Order, Order) -> bool) -> Vec<Order> {
    let Some(own) = order(op) else { return Vec::new() };
    let all = match op {
        Op::Load { .. } => OF_LOADS,
        Op::Store { .. } => OF_STORES,
        _ => OF_OTHERS,
    };
    let another = |o: &Order| *o != Order::Consume && o.bits() != own.bits() && wanted(own, *o);
    let mut orders: Vec<Order> = all.iter().copied().filter(another).collect();
    orders.sort_by_key(|o| o.bits().count_ones());
    orders
}

/// The scope of an atomic operation or a fence.
pub fn scope(op: &Op) -> Option<Scope> {
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } if access.tags.has("A") => access.scope,
        Op::Rmw { read, .. } => read.scope,
        Op::Fence { scope, .. } => *scope,
        _ => None,
    }
}

/// The scopes wider than that of an operation, narrower ones first.
pub fn wider(op: &Op, dialect: Dialect) -> Vec<Scope> {
    let Some(own) = scope(op) else { return Vec::new() };
    let mut wider: Vec<Scope> = scopes(dialect).iter().map(|s| s.1).filter(|s| *s > own).collect();
    wider.dedup();
    wider
}

/// Gives an operation another order.
pub fn set_order(op: &mut Op, order: Order) {
    let set = |tags: &mut Tags, tag: &'static str| {
        *tags = tags.without(ORDER_TAGS);
        tags.insert(tag);
    };
    match op {
        Op::Load { access, .. } => set(&mut access.tags, order.of_read()),
        Op::Store { access, .. } => set(&mut access.tags, order.of_write()),
        Op::Rmw { read, write, .. } => {
            set(&mut read.tags, order.of_read());
            set(&mut write.tags, order.of_write());
        }
        Op::Fence { tags, .. } => set(tags, order.of_fence()),
        _ => {}
    }
}

/// Gives an operation another scope.
pub fn set_scope(op: &mut Op, new: Scope) {
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.scope = Some(new),
        Op::Rmw { read, write, .. } => {
            read.scope = Some(new);
            write.scope = Some(new);
        }
        Op::Fence { scope, .. } => *scope = Some(new),
        _ => {}
    }
}

/// The flags of fences and barriers that have all regions of memory.
pub const ALL_FLAGS: &str = "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE";

/// Whether a fence or a barrier of OpenCL leaves out a region of memory.
pub fn lacks_flags(op: &Op) -> bool {
    let lacks = |tags: &Tags| FLAGS.iter().filter_map(|f| f.1).any(|flag| !tags.has(flag));
    match op {
        Op::Fence { tags, .. } => lacks(tags),
        Op::Barrier(barrier) => lacks(&barrier.arrive),
        _ => false,
    }
}

/// Gives a fence or a barrier the flags of all regions.
pub fn set_flags(op: &mut Op) {
    for flag in FLAGS.iter().filter_map(|f| f.1) {
        match op {
            Op::Fence { tags, .. } => tags.insert(flag),
            Op::Barrier(barrier) => {
                barrier.arrive.insert(flag);
                barrier.wait.insert(flag);
            }
            _ => {}
        }
    }
}

/// Whether it is an access to memory that is not atomic.
pub fn is_plain(op: &Op) -> bool {
    matches!(op, Op::Load { access, .. } | Op::Store { access, .. } if !access.tags.has("A"))
}

/// Makes a plain access atomic. An order that a load or a store cannot have counts for what it can.
pub fn make_atomic(op: &mut Op, order: Order, scope: Option<Scope>) {
    let set = |access: &mut Access, tag| {
        access.tags = access.tags.without(&["VOLATILE"]);
        access.tags.extend(&["A", tag]);
        if scope.is_some() {
            access.scope = scope;
        }
    };
    match op {
        Op::Load { access, .. } => set(access, order.of_read()),
        Op::Store { access, .. } => set(access, order.of_write()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expr, RegId, Ty};

    fn load(order: &'static str) -> Op {
        let access = Access { tags: Tags::of(&["A", order]), scope: Some(Scope::Cta), ty: Ty::S32 };
        Op::Load { dst: RegId(0), addr: Expr::Const(0), access }
    }

    #[test]
    fn a_load_becomes_acquire_but_never_release() {
        assert_eq!(stronger(&load("RLX")), [Order::Acquire, Order::SeqCst]);
        assert_eq!(stronger(&load("ACQ")), [Order::SeqCst]);
        assert_eq!(stronger(&load("SC")), []);
    }

    #[test]
    fn what_was_set_is_there() {
        let mut op = load("RLX");
        set_order(&mut op, Order::Acquire);
        set_scope(&mut op, Scope::Sys);
        assert_eq!((order(&op), scope(&op)), (Some(Order::Acquire), Some(Scope::Sys)));
        let fence = Op::Fence { tags: Tags::of(&["GLOBAL", "REL"]), scope: Some(Scope::Cta) };
        assert_eq!(stronger(&fence), [Order::AcqRel, Order::SeqCst]);
        assert_eq!(wider(&fence, Dialect::OpenCl), [Scope::Gpu, Scope::Sys]);
        assert_eq!(wider(&fence, Dialect::C), []);
        let mut both = fence.clone();
        set_flags(&mut both);
        assert_eq!((lacks_flags(&fence), lacks_flags(&both)), (true, false));
    }
}
