//! Tags: the named properties of an instruction that a model sees.
//!
//! A dialect attaches tags when it lowers an instruction. In every model, each tag is the set of
//! events that have it. [`TAGS`] is the only table of names; a dialect cannot use other tags. Names
//! are those of published models, so that their files run unmodified.

use std::fmt;

use smallvec::SmallVec;

/// Name and meaning of every tag.
pub const TAGS: &[(&str, &str)] = &[
    ("RLX", "relaxed memory operation"),
    ("ACQ", "acquire operation or fence"),
    ("REL", "release operation or fence"),
    ("ACQ_REL", "fence (or RMW) that is acquire and release"),
    ("SC", "sequentially consistent operation or fence"),
    ("CON", "PTX: constant proxy; C: consume order"),
    ("WEAK", "weak (non-atomic) access"),
    ("A", "atomic operation"),
    (
        "FAIL_RLX",
        "CUDA: a compare-exchange that is relaxed on failure, though not on success",
    ),
    (
        "FAIL_ACQ",
        "CUDA: a compare-exchange that acquires on failure, but differs on success",
    ),
    (
        "FAIL_SC",
        "CUDA: a compare-exchange that is sequentially consistent on failure, but not on success",
    ),
    (
        "OBJECT",
        "CUDA: an operation of a barrier, latch, semaphore or vote of the library",
    ),
    (
        "MISUSE",
        "CUDA, PTX: an operation on an object whose precondition does not hold; orders nothing",
    ),
    (
        "ALIGNED",
        "PTX: an instruction that all threads of a warp must execute together",
    ),
    (
        "LANES",
        "PTX: an aligned instruction of the lanes of a warp that is no barrier",
    ),
    (
        "MB",
        "PTX: either half of an operation on an mbarrier object",
    ),
    (
        "MBA",
        "PTX: an arrival at an mbarrier object, the write half",
    ),
    (
        "MBW",
        "PTX: a wait or test of an mbarrier object that found the phase complete, the write half",
    ),
    (
        "MBI",
        "PTX: initialization of an mbarrier object, the write half; the fence `fence.mbarrier_init`",
    ),
    (
        "OWN",
        "PTX: an operation on an mbarrier object of the thread's own CTA alone",
    ),
    (
        "ASY",
        "PTX: an event of an asynchronous operation, in no thread's program order",
    ),
    ("CG", "PTX: asynchronous copies become a group"),
    ("GW", "PTX: a wait for groups of asynchronous copies"),
    (
        "GR",
        "PTX: a wait until groups of asynchronous copies have read what they copy",
    ),
    (
        "BULK",
        "PTX: of bulk copies, whose groups are their own: they become a group, or are waited for",
    ),
    (
        "MBT",
        "PTX: bytes that an asynchronous copy has brought are taken off an mbarrier object, the write half",
    ),
    ("RMW", "either half of a read-modify-write"),
    (
        "WGMMA",
        "PTX: of matrix instructions of a warpgroup: their reads, the groups that they become, waits for these",
    ),
    ("WGF", "PTX: `wgmma.fence`"),
    (
        "CLC",
        "PTX: a response of `clusterlaunchcontrol.try_cancel` is written",
    ),
    (
        "REFUSED",
        "PTX: a query finds that `clusterlaunchcontrol.try_cancel` was refused",
    ),
    ("GDL", "PTX: `griddepcontrol.launch_dependents`"),
    ("GDW", "PTX: `griddepcontrol.wait`"),
    (
        "AWAY",
        "PTX: an access of an asynchronous operation to the shared memory of another CTA alone",
    ),
    (
        "RED",
        "either half of a PTX reduction, which returns no value",
    ),
    ("VOLATILE", "volatile access"),
    ("MMIO", "mmio access"),
    ("GEN", "generic proxy"),
    ("SUR", "surface proxy"),
    ("TEX", "texture proxy"),
    ("ASYNC", "async proxy; `fence.proxy.async`"),
    (
        "TMAP",
        "PTX: tensormap proxy: reads of tensor maps, and the halves of `fence.proxy.tensormap`",
    ),
    ("OF_GLOBAL", "PTX: `fence.proxy.async.global`"),
    ("OF_CTA", "PTX: `fence.proxy.async.shared::cta`"),
    ("OF_CLUSTER", "PTX: `fence.proxy.async.shared::cluster`"),
    (
        "OF_READS",
        "PTX: a fence of reads alone, `.sync_restrict::shared::cluster::read`",
    ),
    ("ALIAS", "alias proxy fence"),
    (
        "HALF",
        "PTX: a proxy fence with an order, which does its work together with one of the other order",
    ),
    ("PF", "proxy fence"),
    ("B", "either half of a barrier"),
    ("BA", "arrival at a barrier"),
    ("BW", "wait at a barrier"),
    (
        "COLLECTIVE",
        "CUDA: arrival at a barrier of a group of threads, all of which must take part",
    ),
    (
        "EF",
        "OpenCL: entry fence of a barrier, the same event as its arrival",
    ),
    (
        "XF",
        "OpenCL: exit fence of a barrier, the same event as its wait",
    ),
    ("GLOBAL", "OpenCL: fences of global memory; accesses to it"),
    ("LOCAL", "OpenCL: fences of local memory; accesses to it"),
    (
        "MAP",
        "OpenCL: accesses of a command that maps memory to the host",
    ),
    ("UNMAP", "OpenCL: accesses of a command that ends a mapping"),
    (
        "CAPPED",
        "OpenCL: what reaches no further than its work-group in local memory",
    ),
];

/// Tags for an operation's [`super::Scope`]. An event has the PTX, OpenCL and Vulkan names of its
/// scope's level.
pub const SCOPE_TAGS: &[(&str, super::Scope)] = &[
    ("WI", super::Scope::Thread),
    ("WARP", super::Scope::Warp),
    ("SG", super::Scope::Warp),
    ("CTA", super::Scope::Cta),
    ("WG", super::Scope::Cta),
    ("CLUSTER", super::Scope::Cluster),
    ("QF", super::Scope::QueueFamily),
    ("GPU", super::Scope::Gpu),
    ("DV", super::Scope::Gpu),
    ("SYS", super::Scope::Sys),
    ("ALL", super::Scope::Sys),
];

/// A scope as PTX writes it: `.gpu`.
pub fn scope_suffix(scope: super::Scope) -> String {
    SCOPE_TAGS
        .iter()
        .find(|t| t.1 == scope)
        .map_or(String::new(), |t| format!(".{}", t.0.to_lowercase()))
}

/// A small sorted set of tags.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tags(SmallVec<[&'static str; 4]>);

impl Tags {
    /// The set of the given tags.
    ///
    /// # Panics
    /// If a name is not in [`TAGS`]: a dialect must not invent tags.
    pub fn of(names: &[&'static str]) -> Tags {
        let mut tags = Tags::default();
        for name in names {
            tags.insert(name);
        }
        tags
    }

    /// Adds a tag; see [`Tags::of`].
    pub fn insert(&mut self, name: &'static str) {
        assert!(
            TAGS.iter().any(|t| t.0 == name),
            "`{name}` is not in program::tags::TAGS"
        );
        if let Err(at) = self.0.binary_search(&name) {
            self.0.insert(at, name);
        }
    }

    /// Adds several tags; see [`Tags::of`].
    pub fn extend(&mut self, names: &[&'static str]) {
        for name in names {
            self.insert(name);
        }
    }

    /// The set without some tags.
    pub fn without(&self, names: &[&str]) -> Tags {
        Tags(self.iter().filter(|name| !names.contains(name)).collect())
    }

    /// Whether the tag is in the set.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// The tags in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().copied()
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
