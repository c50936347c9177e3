//! The words of the dialects for memory orders, scopes and fence flags, and the orders that each
//! kind of operation may have.

use crate::place::SCOPE_ROWS;
use crate::{Scope, Tag};

/// A memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `memory_order_relaxed`
    Relaxed,
    /// `memory_order_consume`
    Consume,
    /// `memory_order_acquire`
    Acquire,
    /// `memory_order_release`
    Release,
    /// `memory_order_acq_rel`
    AcqRel,
    /// `memory_order_seq_cst`
    SeqCst,
}

/// Orders by name, in C and languages derived from it.
pub const ORDERS: &[(&str, Order)] = &[
    ("memory_order_relaxed", Order::Relaxed),
    ("memory_order_consume", Order::Consume),
    ("memory_order_acquire", Order::Acquire),
    ("memory_order_release", Order::Release),
    ("memory_order_acq_rel", Order::AcqRel),
    ("memory_order_seq_cst", Order::SeqCst),
];

/// Orders of PTX.
pub const PTX_ORDERS: &[(&str, Order)] = &[
    (".relaxed", Order::Relaxed),
    (".acquire", Order::Acquire),
    (".release", Order::Release),
    (".acq_rel", Order::AcqRel),
    (".sc", Order::SeqCst),
];

impl Order {
    /// The effects of an order as bits: acquires, releases, takes part in the order of sequentially
    /// consistent operations.
    pub fn bits(self) -> u8 {
        match self {
            Order::Relaxed => 0b000,
            Order::Consume | Order::Acquire => 0b001,
            Order::Release => 0b010,
            Order::AcqRel => 0b011,
            Order::SeqCst => 0b111,
        }
    }

    /// The tag of a load, or of the read half of a read-modify-write; the release part is dropped.
    pub fn of_read(self) -> Tag {
        match self {
            Order::Relaxed | Order::Release => Tag::Relaxed,
            Order::Consume => Tag::Constant,
            Order::Acquire | Order::AcqRel => Tag::Acquire,
            Order::SeqCst => Tag::SeqCst,
        }
    }

    /// The tag of a store, or of the write half of a read-modify-write; the acquire part is
    /// dropped.
    pub fn of_write(self) -> Tag {
        match self {
            Order::Relaxed | Order::Consume | Order::Acquire => Tag::Relaxed,
            Order::Release | Order::AcqRel => Tag::Release,
            Order::SeqCst => Tag::SeqCst,
        }
    }

    /// The default order of a failed compare-exchange (ISO C++, atomics.types.operations).
    pub fn on_failure(self) -> Order {
        match self {
            Order::Release => Order::Relaxed,
            Order::AcqRel => Order::Acquire,
            other => other,
        }
    }

    /// The tag of a fence. A consume fence is an acquire fence (C11, 7.17.4.1).
    pub fn of_fence(self) -> Tag {
        match self {
            Order::Relaxed => Tag::Relaxed,
            Order::Consume | Order::Acquire => Tag::Acquire,
            Order::Release => Tag::Release,
            Order::AcqRel => Tag::AcqRel,
            Order::SeqCst => Tag::SeqCst,
        }
    }
}

/// The orders that a load may have (C11, 7.17.7.2).
pub const OF_LOADS: &[Order] = &[
    Order::Relaxed,
    Order::Consume,
    Order::Acquire,
    Order::SeqCst,
];

/// The orders that a store may have (C11, 7.17.7.1).
pub const OF_STORES: &[Order] = &[Order::Relaxed, Order::Release, Order::SeqCst];

/// The orders that read-modify-writes and fences may have.
pub const OF_OTHERS: &[Order] = &[
    Order::Relaxed,
    Order::Consume,
    Order::Acquire,
    Order::Release,
    Order::AcqRel,
    Order::SeqCst,
];

/// Scopes, as files of mappings and costs name them. Vulkan's queue family is not among them.
pub const SCOPES: &[(&str, Scope)] = NAMED.0.split_at(NAMED.1).0;

/// The scopes with a name, in front, and their number.
const NAMED: (&[(&str, Scope)], usize) = {
    const ALL: ([(&str, Scope); SCOPE_ROWS.len()], usize) = {
        let mut all = [("", Scope::Thread); SCOPE_ROWS.len()];
        let (mut row, mut count) = (0, 0);
        while row < SCOPE_ROWS.len() {
            if !SCOPE_ROWS[row].name.is_empty() {
                all[count] = (SCOPE_ROWS[row].name, SCOPE_ROWS[row].scope);
                count += 1;
            }
            row += 1;
        }
        (all, count)
    };
    (&ALL.0, ALL.1)
};

/// Fence flags by name, with their tags.
pub const FLAGS: &[(&str, Tag)] = &[
    ("CLK_GLOBAL_MEM_FENCE", Tag::Global),
    ("CLK_LOCAL_MEM_FENCE", Tag::Local),
    ("CLK_IMAGE_MEM_FENCE", Tag::ImageFence),
];
