//! Words of the C-like dialects: integer types, memory orders, scopes, fence flags.

use crate::program::{Scope, Ty};

/// Integer types by name. `atomic_` in front of one makes it atomic.
const TYPES: &[(&str, Ty)] = &[
    ("int", Ty::S32),
    ("uint", Ty::U32),
    ("long", Ty::WORD),
    ("ulong", Ty::U64),
    ("short", Ty { bits: 16, signed: true }),
    ("ushort", Ty { bits: 16, signed: false }),
    ("char", Ty { bits: 8, signed: true }),
    ("uchar", Ty { bits: 8, signed: false }),
    ("unsigned", Ty::U32),
    ("signed", Ty::S32),
    ("bool", Ty::S32),
    ("size_t", Ty::U64),
    ("int32_t", Ty::S32),
    ("uint32_t", Ty::U32),
    ("int64_t", Ty::WORD),
    ("uint64_t", Ty::U64),
];

/// Types of what calls of a runtime give back.
const RESULT_TYPES: &[(&str, Ty)] = &[("cudaError_t", Ty::S32), ("cl_int", Ty::S32)];

/// What queries of CUDA give back (CUDA runtime API, *Data types used by CUDA Runtime*, cudaError).
pub(super) const RESULTS: [(&str, i64); 2] = [("cudaSuccess", 0), ("cudaErrorNotReady", 600)];

/// The type of that name, and whether it is atomic.
pub(super) fn type_named(name: &str) -> Option<(Ty, bool)> {
    let name = bare(name);
    let plain = |name: &str| TYPES.iter().chain(RESULT_TYPES).find(|t| t.0 == name).map(|t| t.1);
    match name.strip_prefix("atomic_") {
        Some(rest) => plain(rest).map(|ty| (ty, true)),
        None => plain(name).map(|ty| (ty, false)),
    }
}

/// Names of the types that a declaration may begin with.
pub(super) fn type_names() -> Vec<String> {
    TYPES.iter().flat_map(|t| [t.0.to_string(), format!("atomic_{}", t.0)]).collect()
}

/// Words that may stand beside a type and say nothing that matters to a model.
pub(super) const QUALIFIERS: &[&str] = &["volatile", "const", "restrict", "__restrict", "private", "__private"];

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

/// Orders by name.
pub(super) const ORDERS: &[(&str, Order)] = &[
    ("memory_order_relaxed", Order::Relaxed),
    ("memory_order_consume", Order::Consume),
    ("memory_order_acquire", Order::Acquire),
    ("memory_order_release", Order::Release),
    ("memory_order_acq_rel", Order::AcqRel),
    ("memory_order_seq_cst", Order::SeqCst),
];

impl Order {
    /// What it does, as bits: acquires, releases, is in the order of sequentially consistent operations.
    pub(super) fn bits(self) -> u8 {
        match self {
            Order::Relaxed => 0b000,
            Order::Consume | Order::Acquire => 0b001,
            Order::Release => 0b010,
            Order::AcqRel => 0b011,
            Order::SeqCst => 0b111,
        }
    }

    /// As written.
    pub fn name(self) -> &'static str {
        ORDERS.iter().find(|o| o.1 == self).map_or("", |o| o.0)
    }

    /// The tag of a load, or of the read half of a read-modify-write: what only concerns writes is dropped.
    pub(super) fn of_read(self) -> &'static str {
        match self {
            Order::Relaxed | Order::Release => "RLX",
            Order::Consume => "CON",
            Order::Acquire | Order::AcqRel => "ACQ",
            Order::SeqCst => "SC",
        }
    }

    /// The tag of a store, or of the write half of a read-modify-write.
    pub(super) fn of_write(self) -> &'static str {
        match self {
            Order::Relaxed | Order::Consume | Order::Acquire => "RLX",
            Order::Release | Order::AcqRel => "REL",
            Order::SeqCst => "SC",
        }
    }

    /// The order that a compare-exchange has on failure if none is given (ISO C++, atomics.types.operations).
    pub(super) fn on_failure(self) -> Order {
        match self {
            Order::Release => Order::Relaxed,
            Order::AcqRel => Order::Acquire,
            other => other,
        }
    }

    /// The tag of a fence. A consume fence is an acquire fence (C11, 7.17.4.1).
    pub(super) fn of_fence(self) -> &'static str {
        match self {
            Order::Relaxed => "RLX",
            Order::Consume | Order::Acquire => "ACQ",
            Order::Release => "REL",
            Order::AcqRel => "ACQ_REL",
            Order::SeqCst => "SC",
        }
    }
}

/// Scopes by name.
pub(super) const SCOPES: &[(&str, Scope)] = &[
    ("memory_scope_work_item", Scope::Thread),
    ("memory_scope_sub_group", Scope::Warp),
    ("memory_scope_work_group", Scope::Cta),
    ("memory_scope_device", Scope::Gpu),
    ("memory_scope_all_svm_devices", Scope::Sys),
    ("memory_scope_all_devices", Scope::Sys),
];

/// Scopes of CUDA by name. The cluster's is that of the compiler's builtins.
pub(super) const CUDA_SCOPES: &[(&str, Scope)] = &[
    ("thread_scope_thread", Scope::Thread),
    ("thread_scope_block", Scope::Cta),
    ("thread_scope_cluster", Scope::Cluster),
    ("thread_scope_device", Scope::Gpu),
    ("thread_scope_system", Scope::Sys),
];

/// A name without the namespaces of the standard libraries.
pub(super) fn bare(name: &str) -> &str {
    ["cuda::std::", "cuda::", "std::"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name)
}

/// Types of groups of threads, without their namespace.
pub(super) const GROUP_TYPES: &[&str] = &["thread_block", "grid_group", "cluster_group", "thread_block_tile"];

/// A name without the namespace of cooperative groups.
pub(super) fn group_word(name: &str) -> &str {
    ["cooperative_groups::", "cg::"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name)
}

/// Fence flags by name, with the tag each becomes. Images have no formal model.
pub(super) const FLAGS: &[(&str, Option<&str>)] = &[
    ("CLK_GLOBAL_MEM_FENCE", Some("GLOBAL")),
    ("CLK_LOCAL_MEM_FENCE", Some("LOCAL")),
    ("CLK_IMAGE_MEM_FENCE", None),
];
