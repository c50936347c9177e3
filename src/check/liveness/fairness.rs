//! Fairness to threads: who must be run, under a progress model.
//!
//! Threads are the leaves of a tree: the root, the groups of the scope tree, the threads; siblings are ordered by number.
//! A thread is *live* if it is neither done nor blocked, so a looping thread is live; a group is live if a member is. A
//! thread has *started* if it executed anything; a group, if a member did. The root is *served*. A served group serves the
//! children that its progress model names, and if it is live at least one live child. A served thread is never stopped.
//!
//! # Sources
//! - Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models", OOPSLA 2021: OBE, HSA, HSA+OBE, LOBE.
//! - ISO C++ [intro.progress], parallel and weakly parallel forward progress; CUDA C++ Programming Guide, Execution Model.

use std::fmt;

use crate::program::{Dialect, Place, Program, ThreadId};
use crate::skeleton::{Cond, Skeleton};

/// A progress model: which children a served group serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProgressModel {
    /// All.
    Fair,
    /// The first one that is live, and those before it.
    Hsa,
    /// Those of `hsa` and those of `obe`.
    HsaObe,
    /// Those that have started, and all before them.
    Lobe,
    /// Those that have started.
    Obe,
}

impl ProgressModel {
    /// All, by name.
    pub const ALL: [ProgressModel; 5] =
        [ProgressModel::Fair, ProgressModel::Hsa, ProgressModel::HsaObe, ProgressModel::Lobe, ProgressModel::Obe];

    /// As in property names.
    pub fn name(self) -> &'static str {
        match self {
            ProgressModel::Fair => "fair",
            ProgressModel::Hsa => "hsa",
            ProgressModel::HsaObe => "hsa-obe",
            ProgressModel::Lobe => "lobe",
            ProgressModel::Obe => "obe",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<ProgressModel> {
        ProgressModel::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Whether any thread may be stopped for ever.
    pub(super) fn may_stop(self) -> bool {
        self != ProgressModel::Fair
    }
}

impl fmt::Display for ProgressModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A leaf.
    Thread(ThreadId),
    /// A group, or the root, with its children in order.
    Group(Vec<Node>),
}

/// The number of a thread's group among its siblings, at one level of the scope tree.
type Level = fn(ThreadId, &Place) -> (u32, u32);

/// The tree of a program: GPUs and CTAs, or devices, work-groups and sub-groups. A thread without a sub-group is alone in
/// one, after those that are numbered.
pub(super) fn tree(program: &Program) -> Node {
    let device: Level = |_, p| (u32::from(p.host), p.gpu);
    let group: Level = |_, p| (p.queue_family, p.cta);
    let sub_group: Level = |t, p| p.warp.map_or((1, t.0.into()), |w| (0, w));
    let levels: &[Level] = match program.dialect {
        Dialect::OpenCl | Dialect::Vulkan => &[device, group, sub_group],
        _ => &[device, group],
    };
    Node::Group(children(program, &program.thread_ids().collect::<Vec<_>>(), levels))
}

fn children(program: &Program, threads: &[ThreadId], levels: &[Level]) -> Vec<Node> {
    let Some((level, below)) = levels.split_first() else {
        return threads.iter().map(|&t| Node::Thread(t)).collect();
    };
    let mut groups: std::collections::BTreeMap<(u32, u32), Vec<ThreadId>> = Default::default();
    for &t in threads {
        groups.entry(level(t, &program.thread(t).place)).or_default().push(t);
    }
    groups.values().map(|members| Node::Group(children(program, members, below))).collect()
}

/// The conditions that questions about one progress model ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// Some thread is blocked or loops for ever, no thread is cut, and threads are treated fairly.
    pub(super) hangs: Cond,
    /// Some thread is cut at the loop bound, and threads are treated fairly if it goes on for ever.
    pub(super) goes_on: Cond,
}

/// What is known of a node: conditions.
struct Known {
    live: Cond,
    started: Cond,
    /// It can be served: no thread that must be run is stopped.
    servable: Cond,
}

/// Builds the conditions of a skeleton that was built for questions about progress.
pub(super) fn conditions(sk: &mut Skeleton, model: ProgressModel) -> Conditions {
    let progress = sk.progress.clone().expect("built for progress");
    let root = tree(&sk.program);
    let fair = known(sk, model, &root).servable;
    let mut stuck = Cond::FALSE;
    for thread in &progress.threads {
        let looping = thread.spins.iter().map(|s| s.cond).chain(thread.repeats.iter().map(|r| r.choice));
        for cond in thread.blocked.iter().map(|b| b.1).chain(looping) {
            stuck = sk.pool.or(stuck, cond);
        }
    }
    let whole = sk.pool.not(sk.cut);
    let hangs = sk.pool.and(stuck, whole);
    Conditions { hangs: sk.pool.and(hangs, fair), goes_on: sk.pool.and(sk.cut, fair) }
}

fn known(sk: &mut Skeleton, model: ProgressModel, node: &Node) -> Known {
    let nodes = match node {
        Node::Thread(t) => {
            let progress = sk.progress.clone().expect("built for progress");
            let thread = &progress.threads[t.0 as usize];
            let over = thread.blocked.iter().fold(thread.done, |c, b| sk.pool.or(c, b.1));
            let stopped = thread.stopped.iter().fold(Cond::FALSE, |c, &s| sk.pool.or(c, s));
            return Known { live: sk.pool.not(over), started: thread.started, servable: sk.pool.not(stopped) };
        }
        Node::Group(nodes) => nodes,
    };
    let members: Vec<Known> = nodes.iter().map(|n| known(sk, model, n)).collect();
    let pool = &mut sk.pool;
    let any = |pool: &mut crate::skeleton::Pool, conds: &mut dyn Iterator<Item = Cond>| {
        conds.fold(Cond::FALSE, |a, b| pool.or(a, b))
    };
    let mut servable = Cond::TRUE;
    let mut some = Cond::FALSE;
    for (i, member) in members.iter().enumerate() {
        let first = any(pool, &mut members[..i].iter().map(|m| m.live));
        let first = pool.not(first);
        let required = match model {
            ProgressModel::Fair => Cond::TRUE,
            ProgressModel::Obe => member.started,
            ProgressModel::Hsa => first,
            ProgressModel::HsaObe => pool.or(first, member.started),
            ProgressModel::Lobe => any(pool, &mut members[i..].iter().map(|m| m.started)),
        };
        let ok = pool.implies(required, member.servable);
        servable = pool.and(servable, ok);
        let runs = pool.and(member.live, member.servable);
        some = pool.or(some, runs);
    }
    let live = any(pool, &mut members.iter().map(|m| m.live));
    let started = any(pool, &mut members.iter().map(|m| m.started));
    let ok = pool.implies(live, some);
    Known { live, started, servable: pool.and(servable, ok) }
}
