//! The rules of the memories; each can be taken out.
//!
//! A memory without one of its rules is wrong. Tests take out each rule in turn and look for wrong
//! outcomes. There is no other reason to do so.

/// Declares the set of rules, with a line about each.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident,)*) => {
        /// The rules in force.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct MemoryRules {
            $($(#[$doc])* pub $rule: bool,)*
        }

        impl MemoryRules {
            /// All rules.
            pub const ALL: MemoryRules = MemoryRules { $($rule: true,)* };

            /// The names of the rules.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($rule)),*];

            /// The rules without the one of that name, in every memory that has it; `None` if there
            /// is no such rule.
            pub fn without(mut self, name: &str) -> Option<MemoryRules> {
                match name {
                    $(stringify!($rule) => self.$rule = false,)*
                    _ => return None,
                }
                Some(self)
            }
        }
    };
}

rules! {
    // For all weak memories.
    /// Acquires synchronize with releases: they take over the knowledge of the release.
    synchronization,
    /// Release fences are releases.
    release_fence,
    /// Only operations whose scopes include each other synchronize; the same goes for related
    /// rules.
    scopes,
    /// Barriers order memory.
    barriers,
    /// No other write comes between the halves of a read-modify-write; in PTX, no write that is
    /// morally strong with it.
    atomicity,
    /// An acquire waits for the turns of the releases that it synchronizes with.
    waiting,

    // For PTX.
    /// A read may not take a write that is coherence-before one in its past.
    hidden,
    /// And the two may never be ordered so later.
    never_before,
    /// A write comes coherence-after all writes in its past.
    after_known,
    /// Morally strong writes of a location are totally ordered.
    strong_order,
    /// Program order of an address used through several proxies agrees with communication.
    per_location,
    /// A thread that reads a morally strong write has it in its past.
    observation,
    /// An operation on several cells acts as one operation.
    wholes,
    /// A write does not come causally before itself or before a read of it.
    tokens,
    /// A release write begins release patterns through later strong writes of its location.
    release_write,
    /// Release patterns continue through atomics.
    chains,
    /// A `fence.sc` takes over the knowledge of earlier morally strong ones.
    fence_sc,
    /// The read of a reduction never acquires.
    reductions,
    /// The end of a kernel makes an access leave its proxy, and the start of a kernel makes it
    /// enter all proxies.
    kernels,

    // For languages.
    /// Accesses agree with the events that happen before them.
    coherence,
    /// Locations declared non-atomic hold visible writes only.
    visible,
    /// Sequentially consistent operations satisfy the axiom of the model.
    agreement,
    /// The axiom includes fences.
    agreement_fences,
    /// Acquire fences are acquires.
    acquire_fence,
    /// Release sequences continue after their head.
    sequence,
    /// An assumption about a release sequence stays true.
    pins,
    /// A release sequence assumed to break does break.
    breaks,
    /// OpenCL: synchronization can count for both regions.
    cross,
    /// OpenCL: regions are ordered separately.
    regions,
    /// At its turn, a write that was bound early is behind all writes in its thread's past.
    early_places,
    /// At its turn, sequentially consistent operations satisfy the axiom again.
    early_agreement,
    /// If the language excludes cycles of program order and reads-from, nothing is bound early.
    in_order,
}
