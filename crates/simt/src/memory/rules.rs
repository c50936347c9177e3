//! The rules of the memories, each of which can be taken out.
//!
//! A memory without one of its rules is wrong; tests take out each in turn and look for what it
//! then shows. Nobody else has a reason to.

/// Declares the set: its rules with a line about each.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident,)*) => {
        /// Which rules are in force.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Rules {
            $($(#[$doc])* pub $rule: bool,)*
        }

        impl Rules {
            /// All of them.
            pub const ALL: Rules = Rules { $($rule: true,)* };

            /// Their names.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($rule)),*];

            /// What is left without the rule of that name, in every memory that has it; `None` if
            /// there is none.
            pub fn without(mut self, name: &str) -> Option<Rules> {
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
    // Of all weak memories.
    /// Acquires synchronize with releases: they take over what these hand on.
    synchronization,
    /// Release fences are releases.
    release_fence,
    /// Synchronization, and what goes with it, is between operations whose scopes include each
    /// other.
    scopes,
    /// Barriers order memory.
    barriers,
    /// No other write (in PTX: that is morally strong with it) comes between the halves of a
    /// read-modify-write.
    atomicity,
    /// An acquire waits until the releases that it synchronizes with have had their turn.
    waiting,

    // Of PTX.
    /// A read may not take a write that is coherence-before one it knows of.
    hidden,
    /// … nor may the two ever be ordered so later.
    never_before,
    /// A write comes coherence-after all that it knows of.
    after_known,
    /// Morally strong writes of a location are totally ordered.
    strong_order,
    /// Program order of an address used through several proxies agrees with communication.
    per_location,
    /// Who reads a morally strong write knows of it.
    observation,
    /// What is done to several cells at once is one operation.
    wholes,
    /// A write does not come causally before itself or before a read of it.
    tokens,
    /// A release write begins release patterns through later strong writes of its location.
    release_write,
    /// Release patterns go on through atomics.
    chains,
    /// A `fence.sc` knows what earlier morally strong ones knew.
    fence_sc,
    /// The read of a reduction never acquires.
    reductions,
    /// An access leaves its proxy with the end of its kernel, and a kernel enters all of them with
    /// its start.
    kernels,

    // Of languages.
    /// Accesses agree with what happens before them.
    coherence,
    /// Locations declared non-atomic hold what is visible.
    visible,
    /// Sequentially consistent operations agree.
    agreement,
    /// … those of fences, too.
    agreement_fences,
    /// Acquire fences are acquires.
    acquire_fence,
    /// Release sequences go on after their head.
    sequence,
    /// What a release sequence was relied on for stays true of it.
    pins,
    /// … and what was not relied on does not come true.
    breaks,
    /// OpenCL: synchronization that counts for both regions.
    cross,
    /// OpenCL: regions are ordered apart.
    regions,
    /// A write that was bound early is, at its turn, behind all that its thread knows.
    early_places,
    /// Sequentially consistent operations agree at its turn, too.
    early_agreement,
    /// Where the language lets program order and reads-from have no cycle, nothing is bound early.
    in_order,
}
