//! The rules of the weak memory, each of which can be taken out.
//!
//! A memory without one of its rules is wrong; the tests take out each in turn and look for an outcome that the model
//! forbids. Nobody else has a reason to.

use crate::memory::rules::rules;

rules! {
    /// Which rules are in force.
    Rules:
    /// A read may not take a write that is coherence-before one it knows of.
    hidden,
    /// … nor may the two ever be ordered so later.
    never_before,
    /// A write comes coherence-after all that it knows of.
    after_known,
    /// Morally strong writes of a location are totally ordered.
    strong_order,
    /// No morally strong write comes between the halves of an atomic.
    atomicity,
    /// Program order of an address used through several proxies agrees with communication.
    per_location,
    /// Who reads a morally strong write knows of it.
    observation,
    /// A write does not come causally before itself or before a read of it.
    tokens,
    /// An acquire waits until the releases that it synchronizes with have had their turn.
    waiting,
    /// Acquire patterns take over what release patterns hand on.
    synchronization,
    /// A release fence begins a release pattern.
    release_fence,
    /// A release write begins release patterns through later strong writes of its location.
    release_write,
    /// Release patterns go on through atomics.
    chains,
    /// A `fence.sc` knows what earlier morally strong ones knew.
    fence_sc,
    /// Waits at barriers take over what arrivals hand on.
    barriers,
    /// The read of a reduction never acquires.
    reductions,
    /// Synchronization is between operations whose scopes include each other.
    scopes,
    /// An access leaves its proxy with the end of its kernel, and a kernel enters all of them with its start.
    kernels,
}
