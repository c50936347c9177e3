//! Lists the base relations of rules about endless executions. Only skeletons built for
//! [`Purpose::Progress`](crate::skeleton::Purpose::Progress) have them.

use rustc_hash::FxHashMap;

use super::base::{BaseRel, Build};
use crate::skeleton::Skeleton;
use crate::skeleton::graph::Edges;
use crate::skeleton::pool::Cond;
use crate::skeleton::progress::{ProgressFacts, ThreadProgress};
use cat::rel::{EventId, Rel};

/// A relation about how threads end: pairs of events, each under a condition.
pub(crate) type Pairs = fn(&Skeleton, &ProgressFacts) -> Edges;

/// Base relations of rules about endless executions. Sets that depend on the execution are subsets
/// of the identity.
pub(crate) const ROWS: &[(&str, &str, Pairs)] = &[
    (
        "repeated",
        "an event that is executed again and again, to itself",
        |_, progress| {
            progress
                .threads
                .iter()
                .flat_map(|thread: &ThreadProgress| {
                    let blocks = thread.repeats.iter().flat_map(|r| {
                        r.pairs
                            .iter()
                            .filter_map(|&(_, later)| Some((later?, later?, r.choice)))
                    });
                    let spins = thread
                        .spins
                        .iter()
                        .flat_map(|s| s.events.iter().map(|&e| (e, e, s.cond)));
                    blocks.chain(spins).collect::<Edges>()
                })
                .collect()
        },
    ),
    (
        "block",
        "an event of one of the two blocks of a thread that loops with effect, to itself",
        |_, progress| {
            let repeats = progress.repeats();
            repeats
                .flat_map(|(pair, choice)| either(pair).map(move |e| (e, e, choice)))
                .collect()
        },
    ),
    (
        "unfinished",
        "an event of a thread that is cut at the loop bound, to itself",
        |sk, progress| {
            (0..sk.len())
                .map(EventId::new)
                .filter_map(|e: EventId| {
                    Some((
                        e,
                        e,
                        progress.threads[usize::from(sk.event(e).thread?.0)].cut,
                    ))
                })
                .collect()
        },
    ),
    (
        "again",
        "event of an earlier block to the same one in the later block",
        |_, progress| {
            progress
                .repeats()
                .filter_map(|((earlier, later), choice)| Some((earlier?, later?, choice)))
                .collect()
        },
    ),
    (
        "partner",
        "barrier events of one barrier and phase",
        |_, progress| progress.partners.clone(),
    ),
];

fn either(pair: (Option<EventId>, Option<EventId>)) -> impl Iterator<Item = EventId> {
    pair.0.into_iter().chain(pair.1)
}

/// The builder for one of [`ROWS`].
pub(crate) fn relation(pairs: Pairs) -> Build {
    Build::Rel(Box::new(move |sk, _| {
        let progress = sk
            .progress
            .clone()
            .expect("rules about endless executions are for skeletons that know them");
        let mut found: FxHashMap<(EventId, EventId), Cond> = FxHashMap::default();
        for (a, b, cond) in pairs(sk, &progress) {
            let old = found.get(&(a, b)).copied().unwrap_or(Cond::FALSE);
            found.insert((a, b), sk.pool.or(old, cond));
        }
        let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
        for ((a, b), cond) in found {
            // Only executions in which both execute matter.
            let care = sk.pool.and(sk.event(a).guard, sk.event(b).guard);
            let cond = sk.pool.restrict(cond, care);
            rel.add(a.index(), b.index(), cond);
        }
        rel.open.sort_unstable();
        rel
    }))
}
