//! The rules of this memory, each of which can be taken out: see [`crate::Rules`].

use crate::memory::rules::rules;

rules! {
    /// Which rules are in force.
    LanguageRules:
    /// Accesses agree with what happens before them.
    coherence,
    /// No other thread's write comes between the halves of a read-modify-write.
    atomicity,
    /// Locations declared non-atomic hold what is visible.
    visible,
    /// Sequentially consistent operations agree.
    agreement,
    /// … those of fences, too.
    agreement_fences,
    /// Acquires synchronize with releases.
    synchronization,
    /// Release fences are releases.
    release_fence,
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
    /// Synchronization, agreement and races ask for inclusive scopes.
    scopes,
    /// Barriers order memory.
    barriers,
    /// A write that was bound early is, at its turn, behind all that its thread knows.
    early_places,
    /// Sequentially consistent operations agree at its turn, too.
    early_agreement,
    /// An acquire waits until the releases before an early write that it reads have had their turn.
    waiting,
    /// Where the language lets program order and reads-from have no cycle, nothing is bound early.
    in_order,
}
