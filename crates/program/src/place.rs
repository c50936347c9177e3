//! Scopes, and places of threads in the scope tree.
//!
//! # Invariants
//! - A scope that comes before another in [`Scope`] reaches no further; the groups of a place are
//!   nested in that order.

use std::collections::HashMap;

/// How far an operation or a barrier reaches, from the narrowest to the widest.
///
/// PTX words first; OpenCL's work-group is [`Scope::Cta`], its device [`Scope::Gpu`], its sub-group
/// [`Scope::Warp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The thread itself (OpenCL work-item).
    Thread,
    /// Warp or sub-group.
    Warp,
    /// Cooperative thread array, block, work-group.
    Cta,
    /// Thread block cluster.
    Cluster,
    /// Vulkan queue family.
    QueueFamily,
    /// One GPU, device.
    Gpu,
    /// All devices and the host.
    Sys,
}

/// Where a thread runs: its group's number at each level of the scope tree.
///
/// `cta` numbers are relative to their GPU, `warp` numbers to their CTA.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// GPU or device number. A host thread has a device of its own.
    pub gpu: u32,
    /// Vulkan queue family, else 0.
    pub queue_family: u32,
    /// Cluster number relative to the GPU; `None`: the CTA is a cluster of its own.
    pub cluster: Option<u32>,
    /// CTA or work-group number.
    pub cta: u32,
    /// Warp or sub-group number; `None`: the thread is alone in it.
    pub warp: Option<u32>,
    /// Memory synchronization domain of the kernel it belongs to: kernels of different domains
    /// share no scope below `Sys` (CUDA Programming Guide, *Memory Synchronization Domains*).
    pub domain: u32,
    /// OpenCL: the kernel instance that it belongs to, where no host program says so. Groups of
    /// different ones are apart.
    pub kernel: u32,
    /// A host thread: every scope below `Sys` holds it alone (`specs`: PTX ISA, Scope; host atomics
    /// are system-wide).
    pub host: bool,
    /// Of a cooperative launch: it fails unless all its blocks are resident at once.
    pub cooperative: bool,
    /// Of a kernel that the test has the whole of: its CTA starts and exits. Else the code is a
    /// part of what it runs.
    pub launched: bool,
}

impl Place {
    /// A device thread at (`gpu`, `cta`).
    pub fn device(gpu: u32, cta: u32) -> Place {
        Place {
            gpu,
            queue_family: 0,
            cluster: None,
            cta,
            warp: None,
            domain: 0,
            kernel: 0,
            host: false,
            cooperative: false,
            launched: false,
        }
    }

    /// The number of its group at a level of the scope tree.
    pub fn group(&self, level: Scope) -> Option<u32> {
        match level {
            Scope::Gpu => Some(self.gpu),
            Scope::QueueFamily => Some(self.queue_family),
            Scope::Cluster => self.cluster,
            Scope::Cta => Some(self.cta),
            Scope::Warp => self.warp,
            Scope::Thread | Scope::Sys => None,
        }
    }

    /// Whether both are on one GPU, whatever the domains of their kernels.
    pub fn same_gpu(&self, other: &Place) -> bool {
        !self.host && !other.host && self.gpu == other.gpu
    }

    /// Whether two *different* threads at these places are in one group of the given scope.
    pub fn same(&self, other: &Place, scope: Scope) -> bool {
        if scope == Scope::Sys {
            return true;
        }
        if scope == Scope::Thread || !self.same_gpu(other) || self.domain != other.domain {
            return false;
        }
        if scope == Scope::Gpu {
            return true;
        }
        if self.kernel != other.kernel {
            return false;
        }
        if self.queue_family != other.queue_family {
            return false;
        }
        if scope == Scope::QueueFamily {
            return true;
        }
        let same_cta = self.cta == other.cta;
        match scope {
            Scope::Cluster => same_cta || (self.cluster.is_some() && self.cluster == other.cluster),
            Scope::Cta => same_cta,
            _ => same_cta && self.warp.is_some() && self.warp == other.warp,
        }
    }
}

/// A group of threads, as a key: two different threads are in one group of a scope if they have the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey([u32; 4], Option<u32>, Option<u32>);

impl Place {
    /// The warp, CTA or cluster of a place; `None` where the thread is alone in it, or its CTA is a
    /// cluster of its own. [`Place::same`] is the same question about two places, of any scope:
    /// there, a CTA is also in one cluster with itself.
    pub fn group_key(&self, scope: Scope) -> Option<GroupKey> {
        let gpu = [self.gpu, self.domain, self.kernel, self.queue_family];
        match scope {
            _ if self.host => None,
            Scope::Warp => self
                .warp
                .map(|warp| GroupKey(gpu, Some(self.cta), Some(warp))),
            Scope::Cta => Some(GroupKey(gpu, Some(self.cta), None)),
            Scope::Cluster => self
                .cluster
                .map(|cluster| GroupKey(gpu, None, Some(cluster))),
            _ => unreachable!("keys are for groups inside a GPU, not for {scope:?}"),
        }
    }
}

/// A thread's seat in a group of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// How many threads of the group come before it; in a warp, its lane.
    pub rank: u32,
    /// How many threads the group has.
    pub of: u32,
    /// Whether nothing says which group of that scope it is in: it is alone in one then.
    pub unsaid: bool,
}

impl Seat {
    /// The seat of a thread that is alone.
    pub const ALONE: Seat = Seat {
        rank: 0,
        of: 1,
        unsaid: false,
    };

    /// The seat in its group of the thread at one of the places.
    pub fn among<'a>(
        places: impl Iterator<Item = &'a Place> + Clone,
        at: usize,
        group: Scope,
    ) -> Seat {
        let mine = places.clone().nth(at);
        let is_mate = |(i, place): (usize, &Place)| {
            i == at || mine.is_some_and(|mine| mine.same(place, group))
        };
        let count = |n: usize| {
            places
                .clone()
                .take(n)
                .enumerate()
                .filter(|p| is_mate(*p))
                .count() as u32
        };
        let unsaid =
            group == Scope::Warp && mine.is_some_and(|mine| !mine.host && mine.warp.is_none());
        Seat {
            rank: count(at),
            of: count(usize::MAX),
            unsaid,
        }
    }

    /// The seats of all threads in their warps or CTAs, in one pass.
    pub fn all_among(places: &[Place], group: Scope) -> Vec<Seat> {
        let mut counts: HashMap<GroupKey, u32> = HashMap::new();
        let keys: Vec<Option<GroupKey>> =
            places.iter().map(|place| place.group_key(group)).collect();
        let ranks: Vec<u32> = (keys.iter())
            .map(|key| {
                let Some(key) = key else { return 0 };
                let count = counts.entry(*key).or_default();
                *count += 1;
                *count - 1
            })
            .collect();
        let of = |key: &Option<GroupKey>| key.map_or(1, |key| counts[&key]);
        let unsaid = |place: &Place| group == Scope::Warp && !place.host && place.warp.is_none();
        let seat = |((rank, key), place)| Seat {
            rank,
            of: of(key),
            unsaid: unsaid(place),
        };
        ranks.into_iter().zip(&keys).zip(places).map(seat).collect()
    }

    /// The threads of the group as a set of bits, as far as there are bits for them.
    pub fn all(self) -> i64 {
        1i64.checked_shl(self.of)
            .map_or(-1, |bit| bit.wrapping_sub(1))
    }
}

impl Default for Seat {
    fn default() -> Seat {
        Seat::ALONE
    }
}
