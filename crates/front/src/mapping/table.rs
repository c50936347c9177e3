//! The mappings as data: for each kind of operation and each order, the PTX micro-ops that stand for it.
//!
//! # Sources
//! - NVIDIA, *PTX Writer's Guide to Interoperability*, Atomics ABI: the rows of loads, stores, read-modify-writes and
//!   fences; its middle revision is the `erratum`, its older one (as in Lustig et al., *A Formal Analysis of the NVIDIA
//!   PTX Memory Consistency Model*, ASPLOS 2019) the `old-rmw`.
//! - ISO C++, atomics.fences; OpenCL C, Fences: a relaxed fence has no effect.
//! - LLVM's NVPTX back end (pull request #98022); CUDA Programming Guide, *Volatile Qualifier*: volatile accesses become
//!   those of PTX, and are atomic there alone.
//! - OpenCL: flags are dropped, as PTX fences cover all state spaces; a barrier orders all memory of its group.

use super::gaps::{self, Gap};
use program::{Dialect, Scope};

/// What kind of operation a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write, compare-exchange included.
    Rmw,
    /// A fence.
    Fence,
}

/// The order of an operation of the source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Not atomic.
    Plain,
    /// Volatile.
    Volatile,
    /// `relaxed`
    Relaxed,
    /// `acquire`
    Acquire,
    /// `release`
    Release,
    /// `acq_rel`
    AcqRel,
    /// `seq_cst`
    SeqCst,
}

/// One PTX micro-op; `s` is the mapped scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// `fence.acquire.s`
    FenceAcquire,
    /// `fence.release.s`
    FenceRelease,
    /// `fence.acq_rel.s`
    FenceAcqRel,
    /// `fence.sc.s`
    FenceSc,
    /// The access as `.weak`.
    Weak,
    /// The access as `.volatile`.
    Volatile,
    /// The access as `.relaxed.s`.
    Relaxed,
    /// The access as `.acquire.s`.
    Acquire,
    /// The access as `.release.s`.
    Release,
    /// The access as `.acq_rel.s`.
    AcqRel,
}

/// One row of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which kind of operation.
    pub kind: Kind,
    /// Which order.
    pub order: Order,
    /// What it becomes, in program order. Nothing: it is dropped.
    pub steps: &'static [Step],
}

const fn row(kind: Kind, order: Order, steps: &'static [Step]) -> Row {
    Row { kind, order, steps }
}

/// The rows that all mappings share.
const COMMON: &[Row] = &[
    row(Kind::Load, Order::Plain, &[Step::Weak]),
    row(Kind::Store, Order::Plain, &[Step::Weak]),
    row(Kind::Load, Order::Volatile, &[Step::Volatile]),
    row(Kind::Store, Order::Volatile, &[Step::Volatile]),
    row(Kind::Load, Order::Relaxed, &[Step::Relaxed]),
    row(Kind::Load, Order::Acquire, &[Step::Acquire]),
    row(Kind::Load, Order::SeqCst, &[Step::FenceSc, Step::Acquire]),
    row(Kind::Store, Order::Relaxed, &[Step::Relaxed]),
    row(Kind::Store, Order::Release, &[Step::Release]),
    row(Kind::Store, Order::SeqCst, &[Step::FenceSc, Step::Relaxed]),
    row(Kind::Rmw, Order::Relaxed, &[Step::Relaxed]),
    row(Kind::Rmw, Order::Acquire, &[Step::Acquire]),
    row(Kind::Rmw, Order::Release, &[Step::Release]),
    row(Kind::Rmw, Order::AcqRel, &[Step::AcqRel]),
    row(Kind::Rmw, Order::SeqCst, &[Step::FenceSc, Step::Acquire]),
    row(Kind::Fence, Order::Acquire, &[Step::FenceAcquire]),
    row(Kind::Fence, Order::Release, &[Step::FenceRelease]),
    row(Kind::Fence, Order::AcqRel, &[Step::FenceAcqRel]),
    row(Kind::Fence, Order::SeqCst, &[Step::FenceSc]),
    row(Kind::Fence, Order::Relaxed, &[]),
];

/// A sequentially consistent load without acquire: it loses message passing.
const ERRATUM: &[Row] = &[row(Kind::Load, Order::SeqCst, &[Step::FenceSc, Step::Relaxed])];

/// A sequentially consistent read-modify-write that also releases.
const OLD_RMW: &[Row] = &[row(Kind::Rmw, Order::SeqCst, &[Step::FenceSc, Step::AcqRel])];

/// Source scopes and what they become. PTX has no scope below the CTA; a queue family is Vulkan's.
pub const SCOPES: &[(Scope, Scope)] = &[
    (Scope::Thread, Scope::Cta),
    (Scope::Warp, Scope::Cta),
    (Scope::Cta, Scope::Cta),
    (Scope::Cluster, Scope::Cluster),
    (Scope::Gpu, Scope::Gpu),
    (Scope::Sys, Scope::Sys),
];

/// Scopes whose fences become nothing: they order nothing that another thread could see. Compilers emit no instruction for
/// `cuda::atomic_thread_fence(…, cuda::thread_scope_thread)` (libcu++), nor for a fence of LLVM's `singlethread`.
pub(super) const FENCELESS: &[Option<Scope>] = &[Some(Scope::Thread)];

/// A named mapping from a source language to PTX.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// Its name, as in `--mapping`.
    pub name: &'static str,
    /// The language it maps from.
    pub from: Dialect,
    /// The language it maps to.
    pub to: Dialect,
    /// What it is.
    pub doc: &'static str,
    /// Its rows in groups; the first row that fits counts.
    groups: &'static [&'static [Row]],
    /// What it is known not to keep, the smallest gap first.
    pub gaps: &'static [Gap],
}

/// The mappings; for each language, the current one first.
pub const MAPPINGS: &[Mapping] = &[
    Mapping {
        name: "opencl-ptx",
        from: Dialect::OpenCl,
        to: Dialect::Ptx,
        doc: "the current Atomics ABI: leading fence.sc",
        groups: &[COMMON],
        gaps: gaps::OPENCL,
    },
    Mapping {
        name: "opencl-ptx-erratum",
        from: Dialect::OpenCl,
        to: Dialect::Ptx,
        doc: "seq_cst load without acquire, as a middle revision of the ABI had it",
        groups: &[ERRATUM, COMMON],
        gaps: gaps::OPENCL_FENCES,
    },
    Mapping {
        name: "opencl-ptx-old-rmw",
        from: Dialect::OpenCl,
        to: Dialect::Ptx,
        doc: "seq_cst read-modify-write as atom.acq_rel, as the older ABI had it",
        groups: &[OLD_RMW, COMMON],
        gaps: gaps::OPENCL_FENCES,
    },
    Mapping {
        name: "cuda-ptx",
        from: Dialect::Cuda,
        to: Dialect::Ptx,
        doc: "the current Atomics ABI: leading fence.sc",
        groups: &[COMMON],
        gaps: gaps::CUDA,
    },
    Mapping {
        name: "cuda-ptx-erratum",
        from: Dialect::Cuda,
        to: Dialect::Ptx,
        doc: "seq_cst load without acquire, as a middle revision of the ABI had it",
        groups: &[ERRATUM, COMMON],
        gaps: &[],
    },
    Mapping {
        name: "cuda-ptx-old-rmw",
        from: Dialect::Cuda,
        to: Dialect::Ptx,
        doc: "seq_cst read-modify-write as atom.acq_rel, as the older ABI had it",
        groups: &[OLD_RMW, COMMON],
        gaps: &[],
    },
];

impl Mapping {
    /// The mapping of that name.
    pub fn named(name: &str) -> Option<&'static Mapping> {
        MAPPINGS.iter().find(|m| m.name == name)
    }

    /// The mapping that is used for a language when nobody names one.
    pub fn current(from: Dialect) -> Option<&'static Mapping> {
        MAPPINGS.iter().find(|m| m.from == from)
    }

    /// All rows that count.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for row in self.groups.iter().copied().flatten() {
            if !rows.iter().any(|r| (r.kind, r.order) == (row.kind, row.order)) {
                rows.push(*row);
            }
        }
        rows
    }

    /// What an operation becomes; `None`: it has no counterpart.
    pub fn steps(&self, kind: Kind, order: Order) -> Option<&'static [Step]> {
        let mut rows = self.groups.iter().copied().flatten();
        rows.find(|r| r.kind == kind && r.order == order).map(|r| r.steps)
    }
}

/// What a scope becomes; `None`: it has no counterpart.
pub fn scope(scope: Scope) -> Option<Scope> {
    SCOPES.iter().find(|s| s.0 == scope).map(|s| s.1)
}
