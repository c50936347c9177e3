//! Turns fairness to threads, as [`program::progress`] defines it, into conditions on a skeleton.
//!
//! The decisions of a later thread mostly come later in a diagram. So conditions on many threads
//! are built from the last thread on: each step adds a few decisions on top of those that exist.
//! From the first thread on, a step copies the diagram: 1,024 threads took more than a minute.

use std::ops::Range;

use super::brink::Stretch;
use super::cases::LivenessCase;
use crate::skeleton::progress::{ProgressFacts, ThreadProgress};
use crate::skeleton::{Cond, Skeleton, TermPool};
use program::progress::{ProgressModel, ProgressNode, tree};

/// The conditions for queries about one progress model.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// Some thread is blocked or loops without end, no thread is cut, and scheduling is fair.
    pub(super) hangs: Cond,
    /// Some thread is cut at the loop bound, and scheduling is fair if it continues without end.
    pub(super) goes_on: Cond,
    /// As `goes_on`, for each of the skeleton's cuts.
    pub(super) loops: Vec<Cond>,
}

/// The conditions of a node.
struct NodeConditions {
    live: Cond,
    started: Cond,
    /// The node can be served: no thread that must be run is stopped.
    servable: Cond,
}

/// The condition that a thread is blocked or loops without end, at instructions of a part of its
/// code.
fn never_ends(sk: &mut Skeleton, thread: &ThreadProgress, part: &Range<usize>) -> Cond {
    let looping = thread.spins.iter().map(|s| (s.header, s.cond));
    let repeating = thread.repeats.iter().map(|r| (r.header, r.choice));
    let blocked: Vec<(usize, Cond)> = thread
        .blocked
        .iter()
        .map(|b| (b.0.instr(&sk.events), b.1))
        .collect();
    let all = blocked
        .into_iter()
        .chain(looping)
        .chain(repeating)
        .filter(|(at, _)| part.contains(at));
    all.fold(Cond::FALSE, |any, (_, cond)| sk.pool.or(any, cond))
}

impl Conditions {
    /// The conditions for executions that belong to a case.
    pub(super) fn of_case(mut self, sk: &mut Skeleton, case: &LivenessCase) -> Conditions {
        let progress = sk.progress.clone().expect("built for progress");
        for parts in &case.stay {
            let mut some = Cond::FALSE;
            for part in parts {
                let stays = stays_in(&progress, sk, part);
                some = sk.pool.or(some, stays);
            }
            self.hangs = sk.pool.and(self.hangs, some);
        }
        for part in &case.leave {
            let stays = stays_in(&progress, sk, part);
            let leaves = sk.pool.not(stays);
            self.hangs = sk.pool.and(self.hangs, leaves);
        }
        self
    }
}

/// The condition that a thread stays in a part of its code, or stops there.
fn stays_in(progress: &ProgressFacts, sk: &mut Skeleton, part: &Stretch) -> Cond {
    let thread = &progress.threads[usize::from(part.thread.0)];
    let never = never_ends(sk, thread, &part.range);
    // The scheduler may also stop it just before it leaves.
    let stopped = thread
        .stopped
        .iter()
        .filter(|(at, _)| (part.range.start..=part.range.end).contains(at));
    stopped.fold(never, |any, (_, stop)| sk.pool.or(any, *stop))
}

/// Builds the conditions of a skeleton that was built for questions about progress.
pub(super) fn conditions(sk: &mut Skeleton, model: ProgressModel) -> Conditions {
    let progress = sk.progress.clone().expect("built for progress");
    let root = tree(&sk.program);
    let fair = known(sk, model, &root).servable;
    let mut stuck = Cond::FALSE;
    for thread in progress.threads.iter().rev() {
        let one = never_ends(sk, thread, &(0..usize::MAX));
        stuck = sk.pool.or(one, stuck);
    }
    let whole = sk.pool.not(sk.cut);
    let hangs = sk.pool.and(stuck, whole);
    let loops = (0..sk.cuts.len())
        .map(|i| sk.pool.and(sk.cuts[i].0, fair))
        .collect();
    Conditions {
        hangs: sk.pool.and(hangs, fair),
        goes_on: sk.pool.and(sk.cut, fair),
        loops,
    }
}

fn known(sk: &mut Skeleton, model: ProgressModel, node: &ProgressNode) -> NodeConditions {
    let nodes = match node {
        ProgressNode::Thread(t) => {
            let progress = sk.progress.clone().expect("built for progress");
            let thread = &progress.threads[t.0 as usize];
            let over = thread
                .blocked
                .iter()
                .fold(thread.done, |c, b| sk.pool.or(c, b.1));
            let stopped = thread
                .stopped
                .iter()
                .fold(Cond::FALSE, |c, s| sk.pool.or(c, s.1));
            return NodeConditions {
                live: sk.pool.not(over),
                started: thread.started,
                servable: sk.pool.not(stopped),
            };
        }
        ProgressNode::Group(nodes) | ProgressNode::Apart(nodes) | ProgressNode::Together(nodes) => {
            nodes
        }
    };
    let model = node.below(model);
    let members: Vec<NodeConditions> = nodes.iter().map(|n| known(sk, model, n)).collect();
    let apart = matches!(node, ProgressNode::Apart(_));
    let pool = &mut sk.pool;
    let served = if apart {
        all_served(pool, &members)
    } else {
        required_served(pool, model, &members)
    };
    let some = any(pool, &members, |pool, m| pool.and(m.live, m.servable));
    let live = any(pool, &members, |_, m| m.live);
    let started = any(pool, &members, |_, m| m.started);
    let runs = pool.implies(live, some);
    NodeConditions {
        live,
        started,
        servable: pool.and(served, runs),
    }
}

/// Every member that a progress model requires to run is served.
fn required_served(pool: &mut TermPool, model: ProgressModel, members: &[NodeConditions]) -> Cond {
    match model {
        ProgressModel::Fair => all_served(pool, members),
        ProgressModel::Obe => started_served(pool, members),
        ProgressModel::Hsa => first_served(pool, members),
        ProgressModel::HsaObe => {
            let (first, started) = (first_served(pool, members), started_served(pool, members));
            pool.and(first, started)
        }
        ProgressModel::Lobe => below_started_served(pool, members),
    }
}

/// Every member is served.
fn all_served(pool: &mut TermPool, members: &[NodeConditions]) -> Cond {
    members
        .iter()
        .rev()
        .fold(Cond::TRUE, |rest, m| pool.and(m.servable, rest))
}

/// Every member that has started is served.
fn started_served(pool: &mut TermPool, members: &[NodeConditions]) -> Cond {
    members.iter().rev().fold(Cond::TRUE, |rest, m| {
        let ok = pool.implies(m.started, m.servable);
        pool.and(ok, rest)
    })
}

/// The first live member is served, and each one before it: a live member excuses all behind it.
fn first_served(pool: &mut TermPool, members: &[NodeConditions]) -> Cond {
    members.iter().rev().fold(Cond::TRUE, |rest, m| {
        let rest = pool.or(m.live, rest);
        pool.and(m.servable, rest)
    })
}

/// Every member that has started, or has a started member behind it, is served.
fn below_started_served(pool: &mut TermPool, members: &[NodeConditions]) -> Cond {
    let (mut served, mut started) = (Cond::TRUE, Cond::FALSE);
    for m in members.iter().rev() {
        started = pool.or(m.started, started);
        let ok = pool.implies(started, m.servable);
        served = pool.and(ok, served);
    }
    served
}

/// A condition holds for some member.
fn any(
    pool: &mut TermPool,
    members: &[NodeConditions],
    cond: fn(&mut TermPool, &NodeConditions) -> Cond,
) -> Cond {
    members.iter().rev().fold(Cond::FALSE, |rest, m| {
        let one = cond(pool, m);
        pool.or(one, rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(pool: &mut TermPool, count: usize) -> Vec<NodeConditions> {
        let one = |_| NodeConditions {
            live: pool.fresh_choice(),
            started: pool.fresh_choice(),
            servable: pool.fresh_choice(),
        };
        (0..count).map(one).collect()
    }

    /// Whether a model requires a member to run, by the definition of [`ProgressModel`].
    fn required(
        pool: &mut TermPool,
        model: ProgressModel,
        members: &[NodeConditions],
        i: usize,
    ) -> Cond {
        let live = any(pool, &members[..i], |_, m| m.live);
        let first = pool.not(live);
        match model {
            ProgressModel::Fair => Cond::TRUE,
            ProgressModel::Obe => members[i].started,
            ProgressModel::Hsa => first,
            ProgressModel::HsaObe => pool.or(first, members[i].started),
            ProgressModel::Lobe => any(pool, &members[i..], |_, m| m.started),
        }
    }

    #[test]
    fn a_model_serves_exactly_the_members_that_it_requires() {
        for model in ProgressModel::ALL {
            let mut pool = TermPool::default();
            let members = members(&mut pool, 4);
            let mut all = Cond::TRUE;
            for (i, member) in members.iter().enumerate() {
                let required = required(&mut pool, model, &members, i);
                let ok = pool.implies(required, member.servable);
                all = pool.and(all, ok);
            }
            let served = required_served(&mut pool, model, &members);
            // Equal conditions are equal ids.
            assert_eq!(served, all, "{model:?}");
        }
    }

    /// A quadratic number of decisions kept 1,024 blocks from any answer within a minute.
    #[test]
    fn conditions_grow_with_the_number_of_members() {
        for model in ProgressModel::ALL {
            let mut pool = TermPool::default();
            let members = members(&mut pool, 1_000);
            required_served(&mut pool, model, &members);
            assert!(
                pool.size() < 20 * members.len(),
                "{model:?}: {}",
                pool.size()
            );
        }
    }
}
