//! The table of functions of CUDA C++: those of atomic references, and free ones.
//!
//! # Sources
//! - libcu++, *Extended API*: `cuda::atomic_ref`, `cuda::atomic_thread_fence`. Orders that are left out are seq_cst,
//!   scopes that are left out are the system's.
//! - CUDA Programming Guide: *Atomic Functions* (relaxed; at device scope without a suffix), *Memory Fence Functions*
//!   (seq_cst), *Synchronization Functions*.

use super::calls::{Does, In, Role, Row};
use super::groups::Vote;
use program::words::Order;
use program::{BinOp, Scope};

const fn row(name: &'static str, does: Does, args: &'static [Role]) -> Row {
    Row { name, dialects: In::Cuda, does, args, fixed: None }
}

const fn legacy(name: &'static str, scope: Scope, does: Does, args: &'static [Role]) -> Row {
    Row { name, dialects: In::Cuda, does, args, fixed: Some((Order::Relaxed, scope)) }
}

const fn fence(name: &'static str, scope: Scope) -> Row {
    let order = Order::SeqCst;
    Row { name, dialects: In::Cuda, does: Does::Fence(Some(order)), args: &[], fixed: Some((order, scope)) }
}

const VALUE: &[Role] = &[Role::Val, Role::Order];
const CAS: &[Role] = &[Role::Expected, Role::Val, Role::Order, Role::FailOrder];
const LEGACY: &[Role] = &[Role::Addr, Role::Val];
const LEGACY_CAS: &[Role] = &[Role::Addr, Role::Compared, Role::Val];

use Does::{CompareAndSwap, CompareExchange, Exchange, Fetch};

/// Functions of an atomic reference.
pub(super) const METHODS: &[Row] = &[
    row("load", Does::Load, &[Role::Order]),
    row("store", Does::Store, VALUE),
    row("exchange", Exchange, VALUE),
    row("fetch_add", Fetch(BinOp::Add), VALUE),
    row("fetch_sub", Fetch(BinOp::Sub), VALUE),
    row("fetch_and", Fetch(BinOp::And), VALUE),
    row("fetch_or", Fetch(BinOp::Or), VALUE),
    row("fetch_xor", Fetch(BinOp::Xor), VALUE),
    row("fetch_min", Fetch(BinOp::Min), VALUE),
    row("fetch_max", Fetch(BinOp::Max), VALUE),
    row("compare_exchange_strong", CompareExchange { weak: false }, CAS),
    row("compare_exchange_weak", CompareExchange { weak: true }, CAS),
    row("wait", Does::Wait, VALUE),
    row("notify_one", Does::Notify, &[]),
    row("notify_all", Does::Notify, &[]),
];

/// Functions of an atomic flag.
pub(super) const FLAG_METHODS: &[Row] = &[
    row("test", Does::Load, &[Role::Order]),
    row("test_and_set", Does::TestAndSet, &[Role::Order]),
    row("clear", Does::Clear, &[Role::Order]),
    row("wait", Does::Wait, VALUE),
    row("notify_one", Does::Notify, &[]),
    row("notify_all", Does::Notify, &[]),
];

/// Free functions.
pub(super) const FUNCTIONS: &[Row] = &[
    row("atomic_thread_fence", Does::Fence(None), &[Role::Order, Role::Scope]),
    fence("__threadfence_block", Scope::Cta),
    fence("__threadfence", Scope::Gpu),
    fence("__threadfence_system", Scope::Sys),
    row("__syncthreads", Does::Barrier(Scope::Cta), &[]),
    row("__syncthreads_count", Does::Vote(Vote::Count), &[Role::Val]),
    row("__syncthreads_and", Does::Vote(Vote::And), &[Role::Val]),
    row("__syncthreads_or", Does::Vote(Vote::Or), &[Role::Val]),
    row("__syncwarp", Does::Barrier(Scope::Warp), &[Role::Mask]),
    legacy("atomicAdd", Scope::Gpu, Fetch(BinOp::Add), LEGACY),
    legacy("atomicAdd_block", Scope::Cta, Fetch(BinOp::Add), LEGACY),
    legacy("atomicAdd_system", Scope::Sys, Fetch(BinOp::Add), LEGACY),
    legacy("atomicSub", Scope::Gpu, Fetch(BinOp::Sub), LEGACY),
    legacy("atomicSub_block", Scope::Cta, Fetch(BinOp::Sub), LEGACY),
    legacy("atomicSub_system", Scope::Sys, Fetch(BinOp::Sub), LEGACY),
    legacy("atomicAnd", Scope::Gpu, Fetch(BinOp::And), LEGACY),
    legacy("atomicAnd_block", Scope::Cta, Fetch(BinOp::And), LEGACY),
    legacy("atomicAnd_system", Scope::Sys, Fetch(BinOp::And), LEGACY),
    legacy("atomicOr", Scope::Gpu, Fetch(BinOp::Or), LEGACY),
    legacy("atomicOr_block", Scope::Cta, Fetch(BinOp::Or), LEGACY),
    legacy("atomicOr_system", Scope::Sys, Fetch(BinOp::Or), LEGACY),
    legacy("atomicXor", Scope::Gpu, Fetch(BinOp::Xor), LEGACY),
    legacy("atomicXor_block", Scope::Cta, Fetch(BinOp::Xor), LEGACY),
    legacy("atomicXor_system", Scope::Sys, Fetch(BinOp::Xor), LEGACY),
    legacy("atomicMin", Scope::Gpu, Fetch(BinOp::Min), LEGACY),
    legacy("atomicMin_block", Scope::Cta, Fetch(BinOp::Min), LEGACY),
    legacy("atomicMin_system", Scope::Sys, Fetch(BinOp::Min), LEGACY),
    legacy("atomicMax", Scope::Gpu, Fetch(BinOp::Max), LEGACY),
    legacy("atomicMax_block", Scope::Cta, Fetch(BinOp::Max), LEGACY),
    legacy("atomicMax_system", Scope::Sys, Fetch(BinOp::Max), LEGACY),
    legacy("atomicInc", Scope::Gpu, Fetch(BinOp::Inc), LEGACY),
    legacy("atomicInc_block", Scope::Cta, Fetch(BinOp::Inc), LEGACY),
    legacy("atomicInc_system", Scope::Sys, Fetch(BinOp::Inc), LEGACY),
    legacy("atomicDec", Scope::Gpu, Fetch(BinOp::Dec), LEGACY),
    legacy("atomicDec_block", Scope::Cta, Fetch(BinOp::Dec), LEGACY),
    legacy("atomicDec_system", Scope::Sys, Fetch(BinOp::Dec), LEGACY),
    legacy("atomicExch", Scope::Gpu, Exchange, LEGACY),
    legacy("atomicExch_block", Scope::Cta, Exchange, LEGACY),
    legacy("atomicExch_system", Scope::Sys, Exchange, LEGACY),
    legacy("atomicCAS", Scope::Gpu, CompareAndSwap, LEGACY_CAS),
    legacy("atomicCAS_block", Scope::Cta, CompareAndSwap, LEGACY_CAS),
    legacy("atomicCAS_system", Scope::Sys, CompareAndSwap, LEGACY_CAS),
];
