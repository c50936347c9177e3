//! Known gaps: what a mapping is known not to keep of a model of its source language, as data.
//!
//! A gap names axioms of source models, and a definition of theirs that is all the mapping keeps of them. An outcome that
//! PTX allows and the source model forbids lies in the gap if the source model allows it once that definition, which must
//! be acyclic, stands for the axioms. Everything else that a mapping does not keep is a violation.
//!
//! # Sources
//! - O. Lahav, V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI 2017,
//!   section 2: leading fences do not order sequentially consistent accesses by happens-before through other locations
//!   (their Z6.U); what they keep is partial SC.
//! - NVIDIA, *PTX Writer's Guide to Interoperability*, Atomics ABI: a sequentially consistent read-modify-write is
//!   `fence.sc; atom.acquire`, so its own write releases nothing. What precedes it is published by the fence; the
//!   operation itself is not ordered before what a reader of its write does. In PTX an `atom` is a read and a write, and
//!   observation orders the write alone: the read can take its value from a write that the atomic's own write led to, if
//!   their scopes do not include each other. The older mapping to `atom.acq_rel` has no such gap.
//! - PTX ISA, Memory Consistency Model, Fence-SC: `fence.sc` operations are ordered only if morally strong, so if the
//!   scope of each includes the other.

/// One known gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What reports call it.
    pub name: &'static str,
    /// What the mapping does not keep; the end of a sentence.
    pub lost: &'static str,
    /// The axioms of source models that the mapping keeps in part.
    pub axioms: &'static [&'static str],
    /// The definition in the source model that must be acyclic instead.
    pub kept: &'static str,
}

/// The axioms of the OpenCL models that order sequentially consistent operations.
const OPENCL_SC: &[&str] = &[
    "Scoped-SC",
    "Simple-SC",
    "S-happens-before",
    "S-modification-order",
    "S-read-before-write",
    "S-last-write",
    "S-fence-read",
    "S-write-fence",
    "S-fence-fence",
];

/// Happens-before between sequentially consistent operations through other locations.
const LEADING_FENCES: Gap = Gap {
    name: "leading fences",
    lost: "a happens-before edge between seq_cst operations that goes through other locations",
    axioms: OPENCL_SC,
    kept: "sc-of-leading-fences",
};

/// Sequential consistency beyond scopes.
const SCOPES_OF_SC: Gap = Gap {
    name: "scopes of SC",
    lost: "an order of seq_cst operations whose scopes do not include each other",
    axioms: OPENCL_SC,
    kept: "sc-of-scopes",
};

/// Both of them in one outcome.
const BOTH: Gap = Gap {
    name: "leading fences and scopes of SC",
    lost: "an order of seq_cst operations through other locations and beyond their scopes",
    axioms: OPENCL_SC,
    kept: "sc-of-both",
};

/// The name and the end of the sentence of the gap of mappings that drop the release of a sequentially consistent
/// read-modify-write.
const SC_RMW: (&str, &str) =
    ("SC read-modify-write", "the order of a seq_cst read-modify-write before what its own write leads to");

/// The gaps of the mappings from OpenCL, the smallest first.
pub(super) const OPENCL: &[Gap] = &[
    Gap {
        name: SC_RMW.0,
        lost: SC_RMW.1,
        axioms: &["Read-from-past", "Global-coherence", "Local-coherence"],
        kept: "coherence-without-own-reads",
    },
    LEADING_FENCES,
    SCOPES_OF_SC,
    BOTH,
];

/// Those of the mapping with a sequentially consistent read-modify-write that releases.
pub(super) const OPENCL_OLD_RMW: &[Gap] = &[LEADING_FENCES, SCOPES_OF_SC, BOTH];

/// The gaps of the mappings from CUDA C++; that with a sequentially consistent read-modify-write that releases has none.
pub(super) const CUDA: &[Gap] =
    &[Gap { name: SC_RMW.0, lost: SC_RMW.1, axioms: &["Coherence"], kept: "coherence-without-own-reads" }];
