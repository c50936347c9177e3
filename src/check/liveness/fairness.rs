//! Fairness to threads as conditions on a skeleton: what [`crate::program::progress`] defines, asked of all executions.

use crate::program::ThreadId;
use crate::program::progress::{Node, ProgressModel, tree};
use crate::skeleton::progress::ThreadProgress;
use crate::skeleton::{Cond, Skeleton};

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

/// That a thread is blocked or loops for ever.
fn never_ends(sk: &mut Skeleton, thread: &ThreadProgress) -> Cond {
    let looping = thread.spins.iter().map(|s| s.cond).chain(thread.repeats.iter().map(|r| r.choice));
    thread.blocked.iter().map(|b| b.1).chain(looping).fold(Cond::FALSE, |any, cond| sk.pool.or(any, cond))
}

impl Conditions {
    /// The conditions of executions in which, besides, these threads never end, and those do.
    pub(super) fn of_case(mut self, sk: &mut Skeleton, hang: &[ThreadId], end: &[ThreadId]) -> Conditions {
        let progress = sk.progress.clone().expect("built for progress");
        for t in hang {
            let never = never_ends(sk, &progress.threads[usize::from(t.0)]);
            self.hangs = sk.pool.and(self.hangs, never);
        }
        for t in end {
            self.hangs = sk.pool.and(self.hangs, progress.threads[usize::from(t.0)].done);
        }
        self
    }
}

/// Builds the conditions of a skeleton that was built for questions about progress.
pub(super) fn conditions(sk: &mut Skeleton, model: ProgressModel) -> Conditions {
    let progress = sk.progress.clone().expect("built for progress");
    let root = tree(&sk.program);
    let fair = known(sk, model, &root).servable;
    let mut stuck = Cond::FALSE;
    for thread in &progress.threads {
        let one = never_ends(sk, thread);
        stuck = sk.pool.or(stuck, one);
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
