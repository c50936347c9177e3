//! Scopes, and places of threads in the scope tree.
//!
//! # Invariants
//! - A scope that precedes another in [`Scope`] is no wider. The groups of a place are nested in
//!   that order.

use std::collections::HashMap;

/// The set of threads that an operation or a barrier covers, from the narrowest to the widest
/// scope.
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
    /// One launch of a kernel. Barriers have this scope; accesses and fences do not.
    Grid,
    /// One GPU, device.
    Gpu,
    /// All devices and the host.
    Sys,
}

/// The names of a scope.
#[derive(Debug)]
pub struct ScopeRow {
    /// The scope.
    pub scope: Scope,
    /// Its name in files of mappings and costs; empty: they do not speak of it.
    pub name: &'static str,
    /// The noun for it in reports of the executor.
    pub noun: &'static str,
    /// The sets of operations with this scope in models, PTX's name first; empty: only barriers
    /// have it.
    pub sets: &'static [&'static str],
    /// The relation between threads of one group in models: PTX's, and that of OpenCL and Vulkan.
    pub groups: [Option<GroupRelation>; 2],
}

/// A relation between the threads of one group.
#[derive(Clone, Copy, Debug)]
pub struct GroupRelation {
    /// Its name in models.
    pub name: &'static str,
    /// One line about it.
    pub doc: &'static str,
    /// Clauses for a pair in it, and for another pair.
    pub says: [&'static str; 2],
}

const fn relation(
    name: &'static str,
    doc: &'static str,
    says: [&'static str; 2],
) -> Option<GroupRelation> {
    Some(GroupRelation { name, doc, says })
}

/// All scopes, in order.
pub const SCOPE_ROWS: &[ScopeRow] = &[
    ScopeRow {
        scope: Scope::Thread,
        name: "thread",
        noun: "thread's own",
        sets: &["WI"],
        groups: [None; 2],
    },
    ScopeRow {
        scope: Scope::Warp,
        name: "warp",
        noun: "warp",
        sets: &["WARP", "SG"],
        groups: [
            relation(
                "swarp",
                "threads of one warp (sub-group)",
                [
                    "both threads are in one warp",
                    "their threads are in different warps",
                ],
            ),
            relation(
                "ssg",
                "threads of one sub-group",
                [
                    "both are in one sub-group",
                    "they are in different sub-groups",
                ],
            ),
        ],
    },
    ScopeRow {
        scope: Scope::Cta,
        name: "cta",
        noun: "block",
        sets: &["CTA", "WG"],
        groups: [
            relation(
                "scta",
                "threads of one CTA (work-group)",
                [
                    "both threads are in one CTA",
                    "their threads are in different CTAs",
                ],
            ),
            relation(
                "swg",
                "threads of one work-group",
                [
                    "both are in one work-group",
                    "they are in different work-groups",
                ],
            ),
        ],
    },
    ScopeRow {
        scope: Scope::Cluster,
        name: "cluster",
        noun: "cluster",
        sets: &["CLUSTER"],
        groups: [
            relation(
                "scluster",
                "threads of one cluster",
                [
                    "both threads are in one cluster",
                    "their threads are in different clusters",
                ],
            ),
            None,
        ],
    },
    ScopeRow {
        scope: Scope::QueueFamily,
        name: "",
        noun: "queue-family",
        sets: &["QF"],
        groups: [
            None,
            relation(
                "sqf",
                "threads of one queue family",
                [
                    "both are in one queue family",
                    "they are in different queue families",
                ],
            ),
        ],
    },
    ScopeRow {
        scope: Scope::Grid,
        name: "",
        noun: "grid",
        sets: &[],
        groups: [None; 2],
    },
    ScopeRow {
        scope: Scope::Gpu,
        name: "gpu",
        noun: "device",
        sets: &["GPU", "DV"],
        groups: [
            relation(
                "sgpu",
                "threads of one GPU (device), and of one memory synchronization domain",
                [
                    "both threads are on one GPU",
                    "their threads are not of one GPU",
                ],
            ),
            relation(
                "sdv",
                "threads of one device",
                ["both are on one device", "they are on different devices"],
            ),
        ],
    },
    ScopeRow {
        scope: Scope::Sys,
        name: "sys",
        noun: "system",
        sets: &["SYS", "ALL"],
        groups: [None; 2],
    },
];

impl Scope {
    /// The row of the scope.
    pub fn row(self) -> &'static ScopeRow {
        &SCOPE_ROWS[self as usize]
    }

    /// A scope as PTX writes it: `.gpu`.
    pub fn suffix(self) -> String {
        let row = self.row();
        let name = row.sets.first().unwrap_or(&row.noun);
        format!(".{}", name.to_lowercase())
    }
}

/// The place of a thread: its group's number at each level of the scope tree.
///
/// `cta` numbers are relative to their GPU, `warp` numbers to their CTA.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// GPU or device number. Each host thread has a distinct number.
    pub gpu: u32,
    /// Vulkan queue family, else 0.
    pub queue_family: u32,
    /// The launch among those of the GPU, if a host program has several.
    pub grid: u32,
    /// Cluster number relative to the GPU; `None`: the CTA is its only member.
    pub cluster: Option<u32>,
    /// CTA or work-group number.
    pub cta: u32,
    /// Warp or sub-group number; `None`: the thread is alone in it.
    pub warp: Option<u32>,
    /// Memory synchronization domain of the kernel it belongs to: kernels of different domains
    /// share no scope below `Sys` (CUDA Programming Guide, *Memory Synchronization Domains*).
    pub domain: u32,
    /// OpenCL: the kernel instance, if no host program defines it. Groups of different instances
    /// are different groups.
    pub kernel: u32,
    /// A host thread: every scope below `Sys` contains only this thread (PTX ISA, Scope; host
    /// atomics are system-wide).
    pub host: bool,
    /// Part of a cooperative launch, which fails unless all its blocks are resident at once.
    pub cooperative: bool,
    /// Whether the test has the whole kernel, so that the CTA starts and exits. Otherwise the code
    /// is a part of a kernel.
    pub launched: bool,
}

impl Place {
    /// A device thread at (`gpu`, `cta`).
    pub fn device(gpu: u32, cta: u32) -> Place {
        Place {
            gpu,
            queue_family: 0,
            grid: 0,
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

    /// The number of the thread's group at a level of the scope tree.
    pub fn group(&self, level: Scope) -> Option<u32> {
        match level {
            Scope::Gpu => Some(self.gpu),
            Scope::Grid => Some(self.grid),
            Scope::QueueFamily => Some(self.queue_family),
            Scope::Cluster => self.cluster,
            Scope::Cta => Some(self.cta),
            Scope::Warp => self.warp,
            Scope::Thread | Scope::Sys => None,
        }
    }

    /// Sets the number of the thread's group at a level; `None`: the test does not name it.
    pub fn set_group(&mut self, level: Scope, number: Option<u32>) {
        match level {
            Scope::Gpu => self.gpu = number.unwrap_or(0),
            Scope::Grid => self.grid = number.unwrap_or(0),
            Scope::QueueFamily => self.queue_family = number.unwrap_or(0),
            Scope::Cluster => self.cluster = number,
            Scope::Cta => self.cta = number.unwrap_or(0),
            Scope::Warp => self.warp = number,
            Scope::Thread | Scope::Sys => {}
        }
    }

    /// Whether both are on one GPU, in any domains.
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
        if scope == Scope::Grid {
            return self.grid == other.grid;
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

/// Numbers that the places of a group have in common.
pub type SharedNumbers = ([u32; 4], [Option<u32>; 2]);

/// A group of threads as a key: different threads are in one group of a scope iff their keys are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey([u32; 4], Option<u32>, Option<u32>);

impl Place {
    /// The numbers of the groups of a scope that contain this place. Two places share one of them
    /// iff [`Place::same`] holds. Empty: a thread here is alone.
    pub fn shared_numbers(&self, scope: Scope) -> Vec<SharedNumbers> {
        let device = [self.gpu, self.domain, self.kernel, self.queue_family];
        let launch = [self.gpu, self.domain, 0, 0];
        let block = (device, [Some(self.cta), None]);
        match scope {
            Scope::Sys => vec![([0; 4], [None; 2])],
            _ if self.host => Vec::new(),
            Scope::Thread => Vec::new(),
            Scope::Gpu => vec![(launch, [None; 2])],
            Scope::Grid => vec![(launch, [Some(self.grid), None])],
            Scope::QueueFamily => vec![(device, [None; 2])],
            Scope::Cluster => {
                let cluster = self.cluster.map(|cluster| (device, [None, Some(cluster)]));
                [Some(block), cluster].into_iter().flatten().collect()
            }
            Scope::Cta => vec![block],
            Scope::Warp => {
                let warp = self.warp.map(|warp| (device, [Some(self.cta), Some(warp)]));
                warp.into_iter().collect()
            }
        }
    }

    /// The warp, CTA or cluster of a place; `None` if the thread is alone in it, or the CTA is its
    /// cluster's only member. [`Place::same`] decides the same for two places and any scope; for
    /// it, a CTA is in one cluster with itself.
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

/// A thread's position in a group of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSeat {
    /// The number of threads before it in the group; in a warp, its lane.
    pub rank: u32,
    /// The number of threads in the group.
    pub of: u32,
    /// Whether the test does not name its group of that scope; it is then alone in one.
    pub unsaid: bool,
    /// Whether it stands for every seat of the group: code that depends on its rank is that of no
    /// other thread.
    pub anywhere: bool,
}

impl GroupSeat {
    /// The seat of a thread that is alone in its group.
    pub const ALONE: GroupSeat = GroupSeat {
        rank: 0,
        of: 1,
        unsaid: false,
        anywhere: false,
    };

    /// Two seats of a full warp for code that every thread of a warp runs: they differ in rank, and
    /// with them code that depends on it.
    pub const ANYWHERE: [GroupSeat; 2] = [
        GroupSeat {
            rank: 0,
            of: 32,
            unsaid: false,
            anywhere: true,
        },
        GroupSeat {
            rank: 31,
            of: 32,
            unsaid: false,
            anywhere: true,
        },
    ];

    /// The seat of the thread at index `at` in its group.
    pub fn among<'a>(
        places: impl Iterator<Item = &'a Place> + Clone,
        at: usize,
        group: Scope,
    ) -> GroupSeat {
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
        GroupSeat {
            rank: count(at),
            of: count(usize::MAX),
            unsaid,
            anywhere: false,
        }
    }

    /// The seats of all threads in their warps or CTAs, computed in one pass.
    pub fn all_among(places: &[Place], group: Scope) -> Vec<GroupSeat> {
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
        ranks
            .into_iter()
            .zip(&keys)
            .zip(places)
            .map(|((rank, key), place)| GroupSeat {
                rank,
                of: of(key),
                unsaid: unsaid(place),
                anywhere: false,
            })
            .collect()
    }

    /// The threads of the group as a bit set; threads beyond the last bit are missing.
    pub fn all(self) -> i64 {
        1i64.checked_shl(self.of)
            .map_or(-1, |bit| bit.wrapping_sub(1))
    }
}

impl Default for GroupSeat {
    fn default() -> GroupSeat {
        GroupSeat::ALONE
    }
}

#[cfg(test)]
mod tests {
    use super::SCOPE_ROWS;

    #[test]
    fn rows_are_in_order() {
        for (number, row) in SCOPE_ROWS.iter().enumerate() {
            assert_eq!(row.scope as usize, number, "{row:?}");
        }
    }
}
