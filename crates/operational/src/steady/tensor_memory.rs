//! The state of tensor memory in a run, and the addresses that it has there.
//!
//! # Invariants
//! - No other memory has addresses of tensor memory.

use std::collections::{HashMap, HashSet};

use program::TensorPart;

/// The first address of tensor memory.
const START: i64 = 1 << 40;
/// The distance between the tensor memory of CTAs, and of groups of lanes.
const OF_CTA: i64 = 1 << 16;
const OF_GROUP: i64 = 1 << 12;

/// The state of tensor memory.
#[derive(Default)]
pub(super) struct TensorMemory {
    /// The columns that are allocated, by the first thread of the CTA.
    pub(super) allocated: HashSet<(usize, i64)>,
    /// By form and accumulator: the thread of the last product.
    pub(super) products: HashMap<(u64, i64), usize>,
}

/// The address of the first column of a group of lanes.
pub(super) fn address(cta: usize, group: i64) -> i64 {
    START + cta as i64 * OF_CTA + group * OF_GROUP
}

/// The lane and column at an address.
pub(super) fn name(address: i64) -> Option<String> {
    let place = (address >= START).then_some((address - START) % OF_CTA)?;
    let (group, column) = (place / OF_GROUP, place % OF_GROUP);
    let lane = group * TensorPart::LANES;
    Some(format!("tensor memory (lane {lane}, column {column})"))
}
