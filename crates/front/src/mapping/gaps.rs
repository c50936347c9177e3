//! Known gaps: what a mapping is known not to keep of a model of its source language, as data.
//!
//! A gap says how to tell whether an outcome, which PTX allows and the source model forbids, lies in it ([`Told`]). What a
//! mapping does not keep beyond its gaps is a violation.
//!
//! # Sources
//! - O. Lahav, V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI 2017,
//!   section 2: leading fences do not order sequentially consistent accesses by happens-before through other locations
//!   (their Z6.U); what they keep is partial SC.
//! - NVIDIA, *PTX Writer's Guide to Interoperability*, Atomics ABI: a sequentially consistent read-modify-write is
//!   `fence.sc; atom.acquire`, so its own write releases nothing. What precedes it is published by the fence, but neither
//!   what it acquires itself nor its own place in the order of its location. With release sequences that hold later stores
//!   of the thread, as OpenCL and C++17 have them, this loses the data (D. Lustig, S. Sahasrabuddhe, O. Giroux, "A Formal
//!   Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019, Figure 12); where scopes do not include each
//!   other, the operation can read what its own write led to. The older mapping to `atom.acq_rel` has no such gap.
//! - PTX ISA, Memory Consistency Model, Fence-SC: `fence.sc` operations are ordered only if morally strong, so if the
//!   scope of each includes the other.

/// One known gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What reports call it.
    pub name: &'static str,
    /// What the mapping does not keep; the end of a sentence.
    pub lost: &'static str,
    /// How to tell that an outcome lies in it.
    pub told: Told,
}

/// How to tell that an outcome lies in a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// By the source model: it allows the outcome once less stands for some of its axioms. Its text says for which, and what,
    /// under the gap's name.
    Less,
    /// By another mapping of that name: through it, PTX forbids the outcome.
    Mended(&'static str),
}

/// Happens-before between sequentially consistent operations through other locations.
const LEADING_FENCES: Gap = Gap {
    name: "leading fences",
    lost: "a happens-before edge between seq_cst operations that goes through other locations",
    told: Told::Less,
};

/// Sequential consistency beyond scopes.
const SCOPES_OF_SC: Gap = Gap {
    name: "scopes of SC",
    lost: "an order of seq_cst operations whose scopes do not include each other",
    told: Told::Less,
};

/// Both of them in one outcome.
const BOTH: Gap = Gap {
    name: "leading fences and scopes of SC",
    lost: "an order of seq_cst operations through other locations and beyond their scopes",
    told: Told::Less,
};

/// A sequentially consistent read-modify-write that does not release.
const fn sc_rmw(mended: &'static str) -> Gap {
    Gap {
        name: "SC read-modify-write",
        lost: "the release of a seq_cst read-modify-write",
        told: Told::Mended(mended),
    }
}

/// The gaps of the current mapping from OpenCL, the smallest first.
pub(super) const OPENCL: &[Gap] = &[sc_rmw("opencl-ptx-old-rmw"), LEADING_FENCES, SCOPES_OF_SC, BOTH];

/// Those of the mappings from OpenCL that have leading fences.
pub(super) const OPENCL_FENCES: &[Gap] = &[LEADING_FENCES, SCOPES_OF_SC, BOTH];

/// The gaps of the current mapping from CUDA C++.
pub(super) const CUDA: &[Gap] = &[sc_rmw("cuda-ptx-old-rmw")];
