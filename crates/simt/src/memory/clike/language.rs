//! The languages that this memory serves: a table of their differences.
//!
//! Sources: ISO C11, 5.1.2.4 and 7.17; ISO C++20, intro.races and atomics.order; NVIDIA, libcu++,
//! "Memory model"; Khronos, OpenCL API specification, Memory Model; and, for sequential
//! consistency, M. Batty, A. Donaldson, J. Wickerson, "Overhauling SC Atomics in C11 and OpenCL",
//! POPL 2016, and O. Lahav, V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing Sequential
//! Consistency in C/C++11", PLDI 2017.

/// The rule by which two atomic operations include each other's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeRule {
    /// Always.
    Everywhere,
    /// Each scope holds the other thread.
    Mutual,
    /// OpenCL up to 3.0: effective scopes are equal, and hold the other thread.
    Equal,
    /// OpenCL 3.1: effective scopes hold the other thread.
    AtLeast,
}

/// The continuation of a release sequence after its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// Read-modify-writes in a chain: each reads from the one before, the first from the head.
    Chain,
    /// The same, starting at the head or at a later write of its thread.
    LaterChain,
    /// Directly in modification order: writes of the same thread, and read-modify-writes.
    Run,
}

/// The effect of a barrier on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierMeaning {
    /// Nothing.
    Nothing,
    /// Events before the barrier happen before the events after it.
    Order,
    /// The arrival is a release fence and the wait an acquire fence, for the regions of its flags.
    Fences,
}

/// The axiom of sequentially consistent operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// No cycle of happens-before and communication (Overhauling).
    Simple,
    /// No cycle of partial SC (Repairing).
    Partial,
}

/// The undefined behaviour of barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uniform {
    /// Nothing.
    Free,
    /// CUDA: a thread waits elsewhere forever, is at another call, or is not in its own mask.
    Waiting,
    /// OpenCL: a work-item never comes, or comes with other arguments or at another call.
    Everyone,
}

/// The rules of a language for memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LanguageRules {
    pub(crate) scopes: ScopeRule,
    /// Global and local memory are ordered apart.
    pub(crate) regions: bool,
    pub(crate) sequence: Sequence,
    pub(crate) meeting: BarrierMeaning,
    pub(crate) agreement: Agreement,
    /// Locations declared non-atomic have no modification order: a read takes a visible write.
    pub(crate) visible: bool,
    /// A failed compare-exchange uses its failure order.
    pub(crate) failure: bool,
    /// The undefined behaviour of barriers.
    pub(crate) uniform: Uniform,
    /// The allocator of a location decides whether operations at system scope are atomic.
    pub(crate) kinds: bool,
    /// Program order and reads-from have no cycle.
    pub(crate) in_order: bool,
}

pub(crate) const OPENCL: LanguageRules = LanguageRules {
    scopes: ScopeRule::Equal,
    regions: true,
    sequence: Sequence::Run,
    meeting: BarrierMeaning::Fences,
    agreement: Agreement::Simple,
    visible: true,
    failure: false,
    uniform: Uniform::Everyone,
    kinds: false,
    in_order: false,
};

pub(crate) const OPENCL_3_1: LanguageRules = LanguageRules {
    scopes: ScopeRule::AtLeast,
    ..OPENCL
};

pub(crate) const CUDA: LanguageRules = LanguageRules {
    scopes: ScopeRule::Mutual,
    regions: false,
    sequence: Sequence::Chain,
    meeting: BarrierMeaning::Order,
    agreement: Agreement::Partial,
    visible: false,
    failure: true,
    uniform: Uniform::Waiting,
    kinds: true,
    in_order: false,
};

pub(crate) const CUDA_17: LanguageRules = LanguageRules {
    sequence: Sequence::LaterChain,
    ..CUDA
};

pub(crate) const C11: LanguageRules = LanguageRules {
    scopes: ScopeRule::Everywhere,
    regions: false,
    sequence: Sequence::Run,
    meeting: BarrierMeaning::Nothing,
    agreement: Agreement::Simple,
    visible: true,
    failure: false,
    uniform: Uniform::Free,
    kinds: false,
    in_order: false,
};

pub(crate) const RC11: LanguageRules = LanguageRules {
    scopes: ScopeRule::Everywhere,
    regions: false,
    sequence: Sequence::LaterChain,
    meeting: BarrierMeaning::Nothing,
    agreement: Agreement::Partial,
    visible: false,
    failure: false,
    uniform: Uniform::Free,
    kinds: false,
    in_order: true,
};
