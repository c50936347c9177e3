//! Turns fairness to threads, as [`program::progress`] defines it, into conditions on a skeleton.

use std::ops::Range;

use super::brink::Stretch;
use super::cases::LivenessCase;
use crate::skeleton::progress::{ProgressFacts, ThreadProgress};
use crate::skeleton::{Cond, Skeleton};
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
    for thread in &progress.threads {
        let one = never_ends(sk, thread, &(0..usize::MAX));
        stuck = sk.pool.or(stuck, one);
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
    let pool = &mut sk.pool;
    let mut servable = Cond::TRUE;
    let mut some = Cond::FALSE;
    for (i, member) in members.iter().enumerate() {
        let first = any(pool, &mut members[..i].iter().map(|m| m.live));
        let first = pool.not(first);
        let required = match model {
            _ if matches!(node, ProgressNode::Apart(_)) => Cond::TRUE,
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
    NodeConditions {
        live,
        started,
        servable: pool.and(servable, ok),
    }
}

/// The disjunction of conditions.
fn any(pool: &mut crate::skeleton::TermPool, conds: &mut dyn Iterator<Item = Cond>) -> Cond {
    conds.fold(Cond::FALSE, |a, b| pool.or(a, b))
}
