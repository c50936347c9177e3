//! Lists the functions of CUDA C++: methods of atomic references, and free functions.
//!
//! # Sources
//! - libcu++, *Extended API*: `cuda::atomic_ref`, `cuda::atomic_thread_fence`. The default order is
//!   seq_cst; the default scope is the system.
//! - CUDA Programming Guide, *Atomic Functions*: relaxed; at device scope without a suffix.
//! - CUDA Programming Guide, *Memory Fence Functions* (seq_cst), *Synchronization Functions*.
//! - CUDA Programming Guide, *Built-in atomic functions* (`__nv_atomic_…`): the default scope is
//!   the system.
//! - CUDA Programming Guide, *Load Functions Using Cache Hints*, *Store Functions Using Cache
//!   Hints*; PTX ISA, *Cache Operators*: the hints affect performance only, and do not strengthen
//!   weak accesses.
//! - Clang, *Language Extensions*, *Scoped Atomic Builtins*.

use super::calls::{
    BitOp, Does, FunctionRow, GNU_ORDERS, In, ONE, PAIR, Role, THREE, TWO, Vocabulary,
};
use super::groups::Vote;
use super::integer::{Computed, PartOp};
use super::lanes::Handed;
use crate::isa::ptx::ShuffleMode;
use program::words::Order;
use program::{BinOp, CmpOp, Scope, Ty};

const fn row(name: &'static str, does: Does, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        name,
        dialects: In::Cuda,
        does,
        args,
        fixed: None,
        words: None,
    }
}

const fn hand(handed: Handed) -> Does {
    Does::Hand(handed, Scope::Warp)
}

/// An integer function of CUDA's math library.
const fn integer(name: &'static str, does: Computed, ty: Ty, args: &'static [Role]) -> FunctionRow {
    row(name, Does::Computes(does, Some(ty)), args)
}

const fn parts(name: &'static str, does: PartOp, width: u8) -> FunctionRow {
    integer(name, Computed::Parts(does, width), Ty::U32, TWO)
}

const fn nv(name: &'static str, does: Does, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        words: Some(&NV),
        ..row(name, does, args)
    }
}

const fn scoped(name: &'static str, does: Does, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        words: Some(&CLANG),
        ..row(name, does, args)
    }
}

const fn legacy(
    name: &'static str,
    scope: Scope,
    does: Does,
    args: &'static [Role],
) -> FunctionRow {
    FunctionRow {
        fixed: Some((Order::Relaxed, scope)),
        ..row(name, does, args)
    }
}

const fn fence(name: &'static str, scope: Scope) -> FunctionRow {
    let order = Order::SeqCst;
    FunctionRow {
        fixed: Some((order, scope)),
        ..row(name, Does::Fence(Some(order)), &[])
    }
}

const VALUE: &[Role] = &[Role::Val, Role::Order];
const CAS: &[Role] = &[Role::Expected, Role::Val, Role::Order, Role::FailOrder];
const LEGACY: &[Role] = &[Role::Addr, Role::Val];
const LEGACY_CAS: &[Role] = &[Role::Addr, Role::Compared, Role::Val];

const HANDED: &[Role] = &[Role::Lanes, Role::Val];
const SHUFFLE: &[Role] = &[Role::Lanes, Role::Val, Role::Lane, Role::Width];

const BUILTIN_LOAD: &[Role] = &[Role::Addr, Role::Order, Role::Scope];
const BUILTIN_VALUE: &[Role] = &[Role::Addr, Role::Val, Role::Order, Role::Scope];
const BUILTIN_CAS: &[Role] = &[
    Role::Addr,
    Role::Expected,
    Role::Val,
    Role::Weak,
    Role::Order,
    Role::FailOrder,
    Role::Scope,
];

const NV: Vocabulary = Vocabulary {
    orders: &[
        ("__NV_ATOMIC_RELAXED", Order::Relaxed),
        ("__NV_ATOMIC_CONSUME", Order::Consume),
        ("__NV_ATOMIC_ACQUIRE", Order::Acquire),
        ("__NV_ATOMIC_RELEASE", Order::Release),
        ("__NV_ATOMIC_ACQ_REL", Order::AcqRel),
        ("__NV_ATOMIC_SEQ_CST", Order::SeqCst),
    ],
    scopes: &[
        ("__NV_THREAD_SCOPE_THREAD", Scope::Thread),
        ("__NV_THREAD_SCOPE_BLOCK", Scope::Cta),
        ("__NV_THREAD_SCOPE_CLUSTER", Scope::Cluster),
        ("__NV_THREAD_SCOPE_DEVICE", Scope::Gpu),
        ("__NV_THREAD_SCOPE_SYSTEM", Scope::Sys),
    ],
};

const CLANG: Vocabulary = Vocabulary {
    orders: GNU_ORDERS,
    scopes: &[
        ("__MEMORY_SCOPE_SINGLE", Scope::Thread),
        ("__MEMORY_SCOPE_WVFRNT", Scope::Warp),
        ("__MEMORY_SCOPE_WRKGRP", Scope::Cta),
        ("__MEMORY_SCOPE_CLUSTR", Scope::Cluster),
        ("__MEMORY_SCOPE_DEVICE", Scope::Gpu),
        ("__MEMORY_SCOPE_SYSTEM", Scope::Sys),
    ],
};

use Does::{CompareAndSwap, CompareExchange, Exchange, Fetch, FetchNew};

/// Methods of an atomic reference.
pub(super) const METHODS: &[FunctionRow] = &[
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
    row(
        "compare_exchange_strong",
        CompareExchange { weak: false },
        CAS,
    ),
    row("compare_exchange_weak", CompareExchange { weak: true }, CAS),
    row("wait", Does::Wait, VALUE),
    row("notify_one", Does::Nothing, &[]),
    row("notify_all", Does::Nothing, &[]),
];

/// Methods of an atomic flag.
pub(super) const FLAG_METHODS: &[FunctionRow] = &[
    row("test", Does::Load, &[Role::Order]),
    row("test_and_set", Does::TestAndSet, &[Role::Order]),
    row("clear", Does::Clear, &[Role::Order]),
    row("wait", Does::Wait, VALUE),
    row("notify_one", Does::Nothing, &[]),
    row("notify_all", Does::Nothing, &[]),
];

/// Free functions.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row(
        "atomic_thread_fence",
        Does::Fence(None),
        &[Role::Order, Role::Scope],
    ),
    fence("__threadfence_block", Scope::Cta),
    fence("__threadfence", Scope::Gpu),
    fence("__threadfence_system", Scope::Sys),
    row("__syncthreads", Does::Barrier(Scope::Cta), &[]),
    row("__syncthreads_count", Does::Vote(Vote::Count), &[Role::Val]),
    row("__syncthreads_and", Does::Vote(Vote::And), &[Role::Val]),
    row("__syncthreads_or", Does::Vote(Vote::Or), &[Role::Val]),
    row("__syncwarp", Does::Barrier(Scope::Warp), &[Role::Mask]),
    row("__activemask", Does::ActiveMask, &[]),
    row(
        "__shfl_sync",
        hand(Handed::Shuffle(ShuffleMode::Idx)),
        SHUFFLE,
    ),
    row(
        "__shfl_up_sync",
        hand(Handed::Shuffle(ShuffleMode::Up)),
        SHUFFLE,
    ),
    row(
        "__shfl_down_sync",
        hand(Handed::Shuffle(ShuffleMode::Down)),
        SHUFFLE,
    ),
    row(
        "__shfl_xor_sync",
        hand(Handed::Shuffle(ShuffleMode::Bfly)),
        SHUFFLE,
    ),
    row("__all_sync", hand(Handed::All), HANDED),
    row("__any_sync", hand(Handed::Any), HANDED),
    row("__ballot_sync", hand(Handed::Ballot), HANDED),
    row("__match_any_sync", hand(Handed::Same), HANDED),
    row(
        "__reduce_add_sync",
        hand(Handed::Reduced(BinOp::Add)),
        HANDED,
    ),
    row(
        "__reduce_min_sync",
        hand(Handed::Reduced(BinOp::Min)),
        HANDED,
    ),
    row(
        "__reduce_max_sync",
        hand(Handed::Reduced(BinOp::Max)),
        HANDED,
    ),
    row(
        "__reduce_and_sync",
        hand(Handed::Reduced(BinOp::And)),
        HANDED,
    ),
    row("__reduce_or_sync", hand(Handed::Reduced(BinOp::Or)), HANDED),
    row(
        "__reduce_xor_sync",
        hand(Handed::Reduced(BinOp::Xor)),
        HANDED,
    ),
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
    row("__ldca", Does::Read, &[Role::Addr]),
    row("__ldcg", Does::Read, &[Role::Addr]),
    row("__ldcs", Does::Read, &[Role::Addr]),
    row("__ldlu", Does::Read, &[Role::Addr]),
    row("__ldcv", Does::Read, &[Role::Addr]),
    row("__ldg", Does::ReadOnly, &[Role::Addr]),
    row("__stwb", Does::Write, LEGACY),
    row("__stcg", Does::Write, LEGACY),
    row("__stcs", Does::Write, LEGACY),
    row("__stwt", Does::Write, LEGACY),
    row("min", Does::Smaller, PAIR),
    row("max", Does::Larger, PAIR),
    row("abs", Does::Bits(BitOp::Absolute, None), ONE),
    row("labs", Does::Bits(BitOp::Absolute, Some(Ty::WORD)), ONE),
    row("llabs", Does::Bits(BitOp::Absolute, Some(Ty::WORD)), ONE),
    row("__popc", Does::Bits(BitOp::Ones, Some(Ty::U32)), ONE),
    row("__popcll", Does::Bits(BitOp::Ones, Some(Ty::U64)), ONE),
    row("__clz", Does::Bits(BitOp::LeadingZeros, Some(Ty::S32)), ONE),
    row(
        "__clzll",
        Does::Bits(BitOp::LeadingZeros, Some(Ty::WORD)),
        ONE,
    ),
    row("__ffs", Does::Bits(BitOp::FirstOne, Some(Ty::S32)), ONE),
    row("__ffsll", Does::Bits(BitOp::FirstOne, Some(Ty::WORD)), ONE),
    row("__brev", Does::Bits(BitOp::Reversed, Some(Ty::U32)), ONE),
    row("__brevll", Does::Bits(BitOp::Reversed, Some(Ty::U64)), ONE),
    integer("umin", Computed::Min, Ty::U32, TWO),
    integer("umax", Computed::Max, Ty::U32, TWO),
    integer("llmin", Computed::Min, Ty::WORD, TWO),
    integer("llmax", Computed::Max, Ty::WORD, TWO),
    integer("ullmin", Computed::Min, Ty::U64, TWO),
    integer("ullmax", Computed::Max, Ty::U64, TWO),
    integer("__mul24", Computed::Low, Ty::S32, TWO),
    integer("__umul24", Computed::Low, Ty::U32, TWO),
    integer("__mulhi", Computed::Upper, Ty::S32, TWO),
    integer("__umulhi", Computed::Upper, Ty::U32, TWO),
    integer("__mul64hi", Computed::Upper, Ty::WORD, TWO),
    integer("__umul64hi", Computed::Upper, Ty::U64, TWO),
    integer("__byte_perm", Computed::Permute, Ty::U32, THREE),
    row("__dp4a", Does::Computes(Computed::Dot, None), THREE),
    parts("__vadd2", PartOp::Plain(BinOp::Add), 16),
    parts("__vsub2", PartOp::Plain(BinOp::Sub), 16),
    parts("__vminu2", PartOp::Plain(BinOp::Min), 16),
    parts("__vmaxu2", PartOp::Plain(BinOp::Max), 16),
    parts("__vmins2", PartOp::Signed(BinOp::Min), 16),
    parts("__vmaxs2", PartOp::Signed(BinOp::Max), 16),
    parts("__vcmpeq2", PartOp::Compare(CmpOp::Eq), 16),
    parts("__vcmpne2", PartOp::Compare(CmpOp::Ne), 16),
    parts("__vcmpgtu2", PartOp::Compare(CmpOp::Gt), 16),
    parts("__vcmpgeu2", PartOp::Compare(CmpOp::Ge), 16),
    parts("__vcmpltu2", PartOp::Compare(CmpOp::Lt), 16),
    parts("__vcmpleu2", PartOp::Compare(CmpOp::Le), 16),
    parts("__vcmpgts2", PartOp::CompareSigned(CmpOp::Gt), 16),
    parts("__vcmpges2", PartOp::CompareSigned(CmpOp::Ge), 16),
    parts("__vcmplts2", PartOp::CompareSigned(CmpOp::Lt), 16),
    parts("__vcmples2", PartOp::CompareSigned(CmpOp::Le), 16),
    parts("__vadd4", PartOp::Plain(BinOp::Add), 8),
    parts("__vsub4", PartOp::Plain(BinOp::Sub), 8),
    parts("__vminu4", PartOp::Plain(BinOp::Min), 8),
    parts("__vmaxu4", PartOp::Plain(BinOp::Max), 8),
    parts("__vmins4", PartOp::Signed(BinOp::Min), 8),
    parts("__vmaxs4", PartOp::Signed(BinOp::Max), 8),
    parts("__vcmpeq4", PartOp::Compare(CmpOp::Eq), 8),
    parts("__vcmpne4", PartOp::Compare(CmpOp::Ne), 8),
    parts("__vcmpgtu4", PartOp::Compare(CmpOp::Gt), 8),
    parts("__vcmpgeu4", PartOp::Compare(CmpOp::Ge), 8),
    parts("__vcmpltu4", PartOp::Compare(CmpOp::Lt), 8),
    parts("__vcmpleu4", PartOp::Compare(CmpOp::Le), 8),
    parts("__vcmpgts4", PartOp::CompareSigned(CmpOp::Gt), 8),
    parts("__vcmpges4", PartOp::CompareSigned(CmpOp::Ge), 8),
    parts("__vcmplts4", PartOp::CompareSigned(CmpOp::Lt), 8),
    parts("__vcmples4", PartOp::CompareSigned(CmpOp::Le), 8),
    integer("__sad", Computed::DistanceAnd, Ty::S32, THREE),
    integer("__usad", Computed::DistanceAnd, Ty::U32, THREE),
    integer("__hadd", Computed::HalfSum(false), Ty::S32, TWO),
    integer("__rhadd", Computed::HalfSum(true), Ty::S32, TWO),
    integer("__uhadd", Computed::HalfSum(false), Ty::U32, TWO),
    integer("__urhadd", Computed::HalfSum(true), Ty::U32, TWO),
    integer(
        "__funnelshift_l",
        Computed::Funnel {
            left: true,
            clamped: false,
        },
        Ty::U32,
        THREE,
    ),
    integer(
        "__funnelshift_lc",
        Computed::Funnel {
            left: true,
            clamped: true,
        },
        Ty::U32,
        THREE,
    ),
    integer(
        "__funnelshift_r",
        Computed::Funnel {
            left: false,
            clamped: false,
        },
        Ty::U32,
        THREE,
    ),
    integer(
        "__funnelshift_rc",
        Computed::Funnel {
            left: false,
            clamped: true,
        },
        Ty::U32,
        THREE,
    ),
    row("__nanosleep", Does::Nothing, &[Role::Ignored]),
    row("this_thread::yield", Does::Nothing, &[]),
    // `printf` writes to a buffer that no program can read (CUDA Programming Guide, Formatted
    // Output).
    // No program here has signal handlers, and such a fence orders nothing else (ISO C++,
    // atomics.fences).
    row("atomic_signal_fence", Does::Nothing, &[Role::Order]),
    row("printf", Does::Nothing, &[Role::Printed]),
    row("assert", Does::Abort, &[Role::Val]),
    row("__trap", Does::Abort, &[]),
    nv("__nv_atomic_load_n", Does::Load, BUILTIN_LOAD),
    nv("__nv_atomic_store_n", Does::Store, BUILTIN_VALUE),
    nv("__nv_atomic_exchange_n", Exchange, BUILTIN_VALUE),
    nv(
        "__nv_atomic_compare_exchange_n",
        CompareExchange { weak: false },
        BUILTIN_CAS,
    ),
    nv("__nv_atomic_fetch_add", Fetch(BinOp::Add), BUILTIN_VALUE),
    nv("__nv_atomic_add", Fetch(BinOp::Add), BUILTIN_VALUE),
    nv("__nv_atomic_fetch_sub", Fetch(BinOp::Sub), BUILTIN_VALUE),
    nv("__nv_atomic_sub", Fetch(BinOp::Sub), BUILTIN_VALUE),
    nv("__nv_atomic_fetch_and", Fetch(BinOp::And), BUILTIN_VALUE),
    nv("__nv_atomic_and", Fetch(BinOp::And), BUILTIN_VALUE),
    nv("__nv_atomic_fetch_or", Fetch(BinOp::Or), BUILTIN_VALUE),
    nv("__nv_atomic_or", Fetch(BinOp::Or), BUILTIN_VALUE),
    nv("__nv_atomic_fetch_xor", Fetch(BinOp::Xor), BUILTIN_VALUE),
    nv("__nv_atomic_xor", Fetch(BinOp::Xor), BUILTIN_VALUE),
    nv("__nv_atomic_fetch_min", Fetch(BinOp::Min), BUILTIN_VALUE),
    nv("__nv_atomic_min", Fetch(BinOp::Min), BUILTIN_VALUE),
    nv("__nv_atomic_fetch_max", Fetch(BinOp::Max), BUILTIN_VALUE),
    nv("__nv_atomic_max", Fetch(BinOp::Max), BUILTIN_VALUE),
    nv(
        "__nv_atomic_thread_fence",
        Does::Fence(None),
        &[Role::Order, Role::Scope],
    ),
    scoped("__scoped_atomic_load_n", Does::Load, BUILTIN_LOAD),
    scoped("__scoped_atomic_store_n", Does::Store, BUILTIN_VALUE),
    scoped("__scoped_atomic_exchange_n", Exchange, BUILTIN_VALUE),
    scoped(
        "__scoped_atomic_compare_exchange_n",
        CompareExchange { weak: false },
        BUILTIN_CAS,
    ),
    scoped(
        "__scoped_atomic_fetch_add",
        Fetch(BinOp::Add),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_add_fetch",
        FetchNew(BinOp::Add),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_fetch_sub",
        Fetch(BinOp::Sub),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_sub_fetch",
        FetchNew(BinOp::Sub),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_fetch_and",
        Fetch(BinOp::And),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_and_fetch",
        FetchNew(BinOp::And),
        BUILTIN_VALUE,
    ),
    scoped("__scoped_atomic_fetch_or", Fetch(BinOp::Or), BUILTIN_VALUE),
    scoped(
        "__scoped_atomic_or_fetch",
        FetchNew(BinOp::Or),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_fetch_xor",
        Fetch(BinOp::Xor),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_xor_fetch",
        FetchNew(BinOp::Xor),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_fetch_min",
        Fetch(BinOp::Min),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_min_fetch",
        FetchNew(BinOp::Min),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_fetch_max",
        Fetch(BinOp::Max),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_max_fetch",
        FetchNew(BinOp::Max),
        BUILTIN_VALUE,
    ),
    scoped(
        "__scoped_atomic_thread_fence",
        Does::Fence(None),
        &[Role::Order, Role::Scope],
    ),
];
