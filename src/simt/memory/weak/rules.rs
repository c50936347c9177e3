//! The rules of the weak memory, each of which can be taken out.
//!
//! A memory without one of its rules is wrong; the tests take out each in turn and look for an outcome that the model
//! forbids. Nobody else has a reason to.

/// Which rules are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A read may not take a write that is coherence-before one it knows of.
    pub hidden: bool,
    /// … nor may the two ever be ordered so later.
    pub never_before: bool,
    /// A write comes coherence-after all that it knows of.
    pub after_known: bool,
    /// Morally strong writes of a location are totally ordered.
    pub strong_order: bool,
    /// No morally strong write comes between the halves of an atomic.
    pub atomicity: bool,
    /// Program order of an address used through several proxies agrees with communication.
    pub per_location: bool,
    /// Who reads a morally strong write knows of it.
    pub observation: bool,
    /// A write does not come causally before itself or before a read of it.
    pub tokens: bool,
    /// An acquire waits until the releases that it synchronizes with have had their turn.
    pub waiting: bool,
    /// Acquire patterns take over what release patterns hand on.
    pub synchronization: bool,
    /// A release fence begins a release pattern.
    pub release_fence: bool,
    /// A release write begins release patterns through later strong writes of its location.
    pub release_write: bool,
    /// Release patterns go on through atomics.
    pub chains: bool,
    /// A `fence.sc` knows what earlier morally strong ones knew.
    pub fence_sc: bool,
    /// Waits at barriers take over what arrivals hand on.
    pub barriers: bool,
    /// The read of a reduction never acquires.
    pub reductions: bool,
    /// Synchronization is between operations whose scopes include each other.
    pub scopes: bool,
}

impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules {
        hidden: true,
        never_before: true,
        after_known: true,
        strong_order: true,
        atomicity: true,
        per_location: true,
        observation: true,
        tokens: true,
        waiting: true,
        synchronization: true,
        release_fence: true,
        release_write: true,
        chains: true,
        fence_sc: true,
        barriers: true,
        reductions: true,
        scopes: true,
    };
}

impl Default for Rules {
    fn default() -> Self {
        Rules::ALL
    }
}
