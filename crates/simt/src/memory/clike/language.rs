//! The languages that this memory serves: one table of what they differ in.
//!
//! Sources: ISO C11, 5.1.2.4 and 7.17; ISO C++20, intro.races and atomics.order; NVIDIA, libcu++,
//! "Memory model"; Khronos, OpenCL API specification, Memory Model; and, for sequential
//! consistency, M. Batty, A. Donaldson, J. Wickerson, "Overhauling SC Atomics in C11 and OpenCL",
//! POPL 2016, and O. Lahav, V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing Sequential
//! Consistency in C/C++11", PLDI 2017.

/// When two atomic operations include each other's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scopes {
    /// Always.
    Everywhere,
    /// Each scope holds the other thread.
    Mutual,
    /// OpenCL up to 3.0: effective scopes are equal, and hold the other thread.
    Equal,
    /// OpenCL 3.1: effective scopes hold the other thread.
    AtLeast,
}

/// What follows the head of a release sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// Read-modify-writes that read from it, one from the other.
    Chain,
    /// The same, from the head or from a later write of its thread.
    LaterChain,
    /// Directly in modification order: writes of its thread, and read-modify-writes.
    Run,
}

/// What a barrier does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Nothing.
    Nothing,
    /// What precedes it happens before what follows.
    Order,
    /// Its arrival is a release fence and its wait an acquire fence, of the regions of its flags.
    Fences,
}

/// What is required of sequentially consistent operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// No cycle of happens-before and communication (Overhauling).
    Simple,
    /// No cycle of partial SC (Repairing).
    Partial,
}

/// What is undefined about barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uniform {
    /// Nothing.
    Free,
    /// CUDA: a thread waits for ever elsewhere, is at another call, or is not in its own mask.
    Waiting,
    /// OpenCL: a work-item never comes, or comes with other arguments or at another call.
    Everyone,
}

/// A language, as far as memory is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Language {
    pub(crate) scopes: Scopes,
    /// Global and local memory are ordered apart.
    pub(crate) regions: bool,
    pub(crate) sequence: Sequence,
    pub(crate) meeting: Meeting,
    pub(crate) agreement: Agreement,
    /// Locations declared non-atomic have no modification order: reads take what is visible.
    pub(crate) visible: bool,
    /// A failed compare-exchange has its failure order.
    pub(crate) failure: bool,
    /// What is undefined about barriers.
    pub(crate) uniform: Uniform,
    /// Who allocated a location decides whether operations at system scope are atomic.
    pub(crate) kinds: bool,
    /// Program order and reads-from have no cycle.
    pub(crate) in_order: bool,
}

pub(crate) const OPENCL: Language = Language {
    scopes: Scopes::Equal,
    regions: true,
    sequence: Sequence::Run,
    meeting: Meeting::Fences,
    agreement: Agreement::Simple,
    visible: true,
    failure: false,
    uniform: Uniform::Everyone,
    kinds: false,
    in_order: false,
};

pub(crate) const OPENCL_3_1: Language = Language {
    scopes: Scopes::AtLeast,
    ..OPENCL
};

pub(crate) const CUDA: Language = Language {
    scopes: Scopes::Mutual,
    regions: false,
    sequence: Sequence::Chain,
    meeting: Meeting::Order,
    agreement: Agreement::Partial,
    visible: false,
    failure: true,
    uniform: Uniform::Waiting,
    kinds: true,
    in_order: false,
};

pub(crate) const CUDA_17: Language = Language {
    sequence: Sequence::LaterChain,
    ..CUDA
};

pub(crate) const C11: Language = Language {
    scopes: Scopes::Everywhere,
    regions: false,
    sequence: Sequence::Run,
    meeting: Meeting::Nothing,
    agreement: Agreement::Simple,
    visible: true,
    failure: false,
    uniform: Uniform::Free,
    kinds: false,
    in_order: false,
};

pub(crate) const RC11: Language = Language {
    scopes: Scopes::Everywhere,
    regions: false,
    sequence: Sequence::LaterChain,
    meeting: Meeting::Nothing,
    agreement: Agreement::Partial,
    visible: false,
    failure: false,
    uniform: Uniform::Free,
    kinds: false,
    in_order: true,
};
