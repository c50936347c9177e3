//! Computes the words that operations on one mbarrier object can find.
//!
//! Seen one by one, an arrival can find the word that any other one leaves, even one that follows
//! from its own. But operations on an object come in one order, each of them once, and respect the
//! order of their thread. Over all such orders, `n` arrivals find `n` words, none of a later phase.
//! So engines see without trying orders that a completed wait comes behind all arrivals of its
//! phase. Threads that do the same with an object are counted, not distinguished: only how many of
//! them have come how far matters.
//!
//! # Invariants
//! - The known axioms exclude every execution in which an operation finds another word. Operations
//!   come one at a time ([`Exclusion::whole`]), and none reads a write behind its own. Those of one
//!   thread, and of the operations that it starts, come in the order that this module requires.
//! - An operation that writes nothing may have found any word with which it does not write, in any
//!   order.

use program::Tag;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Facts;
use super::bounds::TaskBounds;
use super::excluded::Exclusion;
use super::implied::{Halves, Implied, ObjectResults, ObjectTurn};
use super::listing::Listing;
use crate::eval::{Assignment, Eval};
use crate::skeleton::EdgeKind;
use crate::skeleton::domain::Domains;
use crate::skeleton::images::Values;
use crate::skeleton::{Cond, Skeleton};
use crate::task::Task;
use crate::thin_air::closes_value_flow;
use program::mbarrier::phase_of;
use program::memory::CellId;
use verdict::InstrPlace;

#[cfg(test)]
mod tests;

/// Up to this number of operations on an object, engines try their orders.
const FEW: usize = 6;
#[cfg(test)]
thread_local! {
    static FROM: std::cell::Cell<usize> = const { std::cell::Cell::new(FEW) };
}

/// Up to this number of operations on an object, this module does nothing.
fn few() -> usize {
    #[cfg(test)]
    return FROM.get();
    #[cfg(not(test))]
    FEW
}

/// The largest number of states of an object and its users to explore.
const MAX_STATES: usize = 100_000;
/// The largest number of operations of one thread on one object to explore.
const MAX_OF_THREAD: usize = 64;

/// By object with many operations: these, if nothing else writes to the object.
fn objects(sk: &Skeleton, domains: &Domains) -> BTreeMap<CellId, Vec<Halves>> {
    let mut objects: BTreeMap<CellId, Vec<Halves>> = BTreeMap::new();
    for (r, w) in sk
        .rmw
        .iter()
        .map(|(r, w)| (r.index(), w.index()))
        .filter(|&(_, w)| sk.events[w].tags.has(Tag::Mbarrier))
    {
        if let Some(cell) = domains.surely_at(sk, w).filter(|_| sk.events[w].parts == 1) {
            objects.entry(cell).or_default().push((r, w));
        }
    }
    objects.retain(|_, operations| operations.len() > few());
    for w in (0..sk.len()).filter(|&w| sk.events[w].is_write() && sk.events[w].thread.is_some()) {
        let at = domains.cells[w].iter().map(|&c| sk.memory.cell(c).memory);
        at.for_each(|cell| {
            if objects
                .get(&cell)
                .is_some_and(|operations| operations.iter().all(|o| o.1 != w))
            {
                objects.remove(&cell);
            }
        });
    }
    objects
}

/// The place of an operation on an object with many.
pub(super) fn of_many(sk: &Skeleton, domains: &Domains) -> Option<InstrPlace> {
    objects(sk, domains)
        .values()
        .find_map(|operations| sk.place(operations[0].1))
}

/// Whether an object has many operations.
pub(super) fn helps(task: &Task<'_>, listing: &Listing) -> bool {
    !task.thin_air && of_many(&listing.sk, &listing.domains).is_some()
}

/// Adds the results for objects with many operations to the facts.
pub(super) fn add(
    plain: &Facts<'_>,
    bounds: &TaskBounds,
    deadline: Option<Instant>,
    implied: &mut Implied,
) {
    if !plain.task.thin_air {
        implied.objects = found(plain, bounds, deadline);
    }
}

/// The words that operations on objects with many operations can find.
fn found(facts: &Facts<'_>, bounds: &TaskBounds, deadline: Option<Instant>) -> ObjectResults {
    let Some(from_reads) = bounds.node_of_from_reads() else {
        return ObjectResults::default();
    };
    let mut excluded = Exclusion::new(facts, bounds, from_reads);
    let mut found = ObjectResults::default();
    for (cell, operations) in objects(&facts.sk, &facts.domains) {
        let object = MbarrierObject::new(facts, bounds, &mut excluded, cell, &operations);
        if let Some(here) = object.and_then(|object| object.found(deadline)) {
            found.words.extend(here.words);
            found.runs.extend(here.runs);
            found.before.extend(here.before);
            found.phases.extend(here.phases);
        }
    }
    found
}

/// The operations of one thread on an object, and those that it starts.
struct User {
    operations: Vec<Halves>,
    /// By operation: the operations that come first, if they write. Sets of operations are bits of
    /// a number here.
    earlier: Vec<u64>,
    /// By operation: whether it may write nothing, and which others then write nothing either.
    spared: Vec<(bool, u64)>,
}

/// An object and its users.
struct MbarrierObject<'x, 'a> {
    facts: &'x Facts<'a>,
    /// The first write, and its value.
    start: (usize, i64),
    users: Vec<User>,
}

/// The effect of an operation that finds a certain word.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OperationEffect {
    /// The word that it leaves, if it can write.
    leaves: Option<i64>,
    /// Whether it can write nothing.
    may_fail: bool,
    /// Operations of its thread that cannot write after it.
    dead: u64,
}

/// Users of one kind with the same remaining operations: kind, operations, number of users.
type UserGroup = (usize, u64, usize);

/// The word of the object, and the progress of its users.
type ObjectState = (i64, Vec<UserGroup>);

/// How a user of a kind leaves a state: the operation, and the open operations before and after.
struct Move {
    from: usize,
    kind: usize,
    at: usize,
    left: u64,
    after: u64,
}

/// Users of one kind that turn out to differ, and the new kinds.
struct UserSplit(usize, Vec<Vec<usize>>);

impl<'x, 'a> MbarrierObject<'x, 'a> {
    /// The object; `None` if this module cannot analyse it.
    fn new(
        facts: &'x Facts<'a>,
        bounds: &TaskBounds,
        excluded: &mut Exclusion<'_, '_>,
        cell: CellId,
        operations: &[Halves],
    ) -> Option<Self> {
        let (sk, model) = (&facts.sk, facts.task.model);
        let [source, co] = [model.values, model.finals].map(|f| &bounds.free[f.0 as usize]);
        let start = (0..sk.len()).find(|&s| {
            sk.events[s].thread.is_none()
                && sk.events[s].is_write()
                && facts.surely_at(s) == Some(cell)
        })?;
        // A write behind an operation takes its word from that operation. So the operation never
        // reads that write, if the model excludes values out of thin air.
        let feeds = operations.iter().all(|&(r, w): &Halves| {
            sk.edges
                .of(EdgeKind::Data)
                .iter()
                .any(|d| (d.0.index(), d.1.index(), d.2) == (r, w, Cond::TRUE))
        }) && model
            .axioms
            .iter()
            .any(|a| closes_value_flow(model, a, false));
        let is_chain = sk.events[start].guard == Cond::TRUE
            && operations.iter().all(|&(r, w)| {
                co.must.has(start, w)
                    && (0..sk.len()).all(|s| {
                        !source.may.has(s, r)
                            || (s == start || s != w && operations.iter().any(|o| o.1 == s))
                    })
            })
            && operations.iter().enumerate().all(|(i, &one)| {
                operations[..i].iter().all(|&other| {
                    excluded.whole(one, other) && (feeds || excluded.reads_no_later(one, other))
                })
            });
        if !is_chain {
            return None;
        }
        let mut of_thread: BTreeMap<_, Vec<Halves>> = BTreeMap::new();
        for &(r, w) in operations {
            of_thread
                .entry(sk.events[w].thread)
                .or_default()
                .push((r, w));
        }
        let mut pool = sk.pool.clone();
        let mut users = Vec::new();
        for operations in of_thread.into_values() {
            if operations.len() > MAX_OF_THREAD {
                return None;
            }
            let spared = operations.iter().map(|one| {
                let fails = pool.not(write_guard(sk, one));
                let with = bits(&operations, |other| {
                    pool.and(write_guard(sk, other), fails) == Cond::FALSE
                });
                (write_guard(sk, one) != Cond::TRUE, with)
            });
            let spared: Vec<(bool, u64)> = spared.collect();
            let earlier = operations.iter().map(|late| {
                bits(&operations, |early| {
                    let events = [early.0, early.1, late.0, late.1];
                    early != late
                        && excluded.is(&events, None, &[(model.finals, (late.1, early.1))])
                })
            });
            users.push(User {
                earlier: earlier.collect(),
                spared,
                operations,
            });
        }
        let word = Eval::new(sk, &Assignment::nothing(sk)).value(start)?;
        Some(MbarrierObject {
            facts,
            start: (start, word),
            users,
        })
    }

    /// The effect of an operation of a user that finds a word; `None` if it cannot be worked out.
    fn step(&self, user: &User, at: usize, word: i64) -> Option<OperationEffect> {
        let sk = &self.facts.sk;
        let (r, w) = user.operations[at];
        let mut known = Assignment::nothing(sk);
        known.reads[r] = Some(sk.events[r].ty.wrap(word));
        let mut eval = Eval::new(sk, &known);
        let writes = eval.cond(sk.events[w].guard);
        let leaves = if writes == Some(false) {
            None
        } else {
            Some(sk.events[w].ty.wrap(eval.value(w)?))
        };
        let dead = bits(&user.operations, |other| {
            eval.cond(sk.events[other.1].guard) == Some(false)
        });
        Some(OperationEffect {
            leaves,
            may_fail: writes != Some(true),
            dead,
        })
    }

    /// The words that every operation can find; `None` if that would take too long.
    fn found(&self, deadline: Option<Instant>) -> Option<ObjectResults> {
        let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (i, user) in self.users.iter().enumerate() {
            kinds
                .entry((&user.earlier, &user.spared))
                .or_default()
                .push(i);
        }
        let mut kinds: Vec<Vec<usize>> = kinds.into_values().collect();
        loop {
            match self.follow(&kinds, deadline)? {
                Ok(found) => return Some(found),
                Err(UserSplit(kind, parts)) => {
                    kinds.swap_remove(kind);
                    kinds.extend(parts);
                }
            }
        }
    }

    /// As [`MbarrierObject::found`], with the users of one kind treated as alike until they turn
    /// out to differ.
    fn follow(
        &self,
        kinds: &[Vec<usize>],
        deadline: Option<Instant>,
    ) -> Option<Result<ObjectResults, UserSplit>> {
        let mut exploration = Exploration::new(self, kinds);
        if let Err(split) = exploration.run(deadline)? {
            return Some(Err(split));
        }
        let phases = self.phases(kinds, &exploration.written);
        let mut found = ObjectResults {
            runs: vec![self.run(kinds, &exploration.states)],
            before: phases
                .iter()
                .flat_map(|&(one, _, last)| {
                    let later = phases.iter().filter(move |other| last < other.1);
                    later.map(move |other| (one, other.0)).collect::<Vec<_>>()
                })
                .collect(),
            phases: phases
                .iter()
                .filter(|(_, first, last)| first == last)
                .map(|&((_, w), phase, _)| (w, phase))
                .collect(),
            ..ObjectResults::default()
        };
        for (kind, users) in kinds.iter().enumerate() {
            for at in 0..self.users[users[0]].operations.len() {
                let here = match exploration.found_at(kind, at)? {
                    Ok(here) => here,
                    Err(split) => return Some(Err(split)),
                };
                let reads = users.iter().map(|&user| self.users[user].operations[at].0);
                found.words.extend(reads.map(|read| (read, here.clone())));
            }
        }
        Some(Ok(found))
    }

    /// Operations with the first and the last phase in which they can write.
    fn phases(
        &self,
        kinds: &[Vec<usize>],
        written: &FxHashMap<(usize, usize), BTreeSet<i64>>,
    ) -> Vec<(Halves, i64, i64)> {
        let mut phases = Vec::new();
        for (&(kind, at), words) in written {
            let (first, last) = (phase_in(words.first()), phase_in(words.last()));
            phases.extend(
                kinds[kind]
                    .iter()
                    .map(|&user| (self.users[user].operations[at], first, last)),
            );
        }
        phases.sort_unstable();
        phases
    }

    /// An order in which as many operations write as in any.
    fn run(&self, kinds: &[Vec<usize>], states: &[(ObjectState, Option<Move>)]) -> Vec<ObjectTurn> {
        let last = (0..states.len())
            .max_by_key(|&state| path(states, state).count())
            .expect("there is the first");
        let mut moves: Vec<&Move> = path(states, last).collect();
        moves.reverse();
        let mut open: Vec<u64> = self.users.iter().map(User::all).collect();
        let mut before = self.start.0;
        moves
            .into_iter()
            .map(|step: &Move| {
                let user = *kinds[step.kind]
                    .iter()
                    .find(|&&user| open[user] == step.left)
                    .expect("there is one in the state");
                open[user] = step.after;
                let operation = self.users[user].operations[step.at];
                (
                    operation,
                    std::mem::replace(&mut before, operation.1),
                    states[step.from].0.0,
                )
            })
            .collect()
    }
}

/// The steps that lead to a state, the last one first.
fn path(states: &[(ObjectState, Option<Move>)], state: usize) -> impl Iterator<Item = &Move> {
    std::iter::successors(states[state].1.as_ref(), |step| {
        states[step.from].1.as_ref()
    })
}

/// The condition that an operation writes.
fn write_guard(sk: &Skeleton, o: &Halves) -> Cond {
    sk.events[o.1].guard
}

fn phase_in(word: Option<&i64>) -> i64 {
    phase_of(*word.expect("a word was found"))
}

impl User {
    /// The set of all its operations.
    fn all(&self) -> u64 {
        bits(&self.operations, |_| true)
    }

    /// The operations that may still write after operation `at` writes, whatever it finds. `None`
    /// if others must write first.
    fn passed_over(&self, at: usize, left: u64) -> Option<u64> {
        let mut after = left;
        for first in
            (0..self.operations.len()).filter(|first| (self.earlier[at] & left) >> first & 1 == 1)
        {
            let (may_fail, with) = self.spared[first];
            if !may_fail || with >> at & 1 == 1 {
                return None;
            }
            after &= !(with | 1 << first);
        }
        Some(after & !(1 << at))
    }
}

/// The states of an object that its users can reach, in any order of their operations.
struct Exploration<'e, 'x, 'a> {
    object: &'e MbarrierObject<'x, 'a>,
    kinds: &'e [Vec<usize>],
    /// By kind, operation and word: the effect, which all users of the kind have.
    effects: FxHashMap<(usize, usize, i64), OperationEffect>,
    words: BTreeSet<i64>,
    /// By kind and operation: the words with which it writes.
    written: FxHashMap<(usize, usize), BTreeSet<i64>>,
    states: Vec<(ObjectState, Option<Move>)>,
}

impl<'e, 'x, 'a> Exploration<'e, 'x, 'a> {
    fn new(object: &'e MbarrierObject<'x, 'a>, kinds: &'e [Vec<usize>]) -> Self {
        let groups = (0..kinds.len()).map(|kind| {
            let first = &object.users[kinds[kind][0]];
            (kind, first.all(), kinds[kind].len())
        });
        let start: ObjectState = (object.start.1, groups.collect());
        Exploration {
            object,
            kinds,
            effects: FxHashMap::default(),
            words: BTreeSet::from([object.start.1]),
            written: FxHashMap::default(),
            states: vec![(start, None)],
        }
    }

    /// The effect of an operation of a kind that finds a word. `None` if it cannot be worked out.
    fn effect(
        &mut self,
        kind: usize,
        at: usize,
        word: i64,
    ) -> Option<Result<OperationEffect, UserSplit>> {
        if let Some(effect) = self.effects.get(&(kind, at, word)) {
            return Some(Ok(effect.clone()));
        }
        let mut by_effect: BTreeMap<OperationEffect, Vec<usize>> = BTreeMap::new();
        for &user in &self.kinds[kind] {
            by_effect
                .entry(self.object.step(&self.object.users[user], at, word)?)
                .or_default()
                .push(user);
        }
        if by_effect.len() > 1 {
            return Some(Err(UserSplit(kind, by_effect.into_values().collect())));
        }
        let effect = by_effect
            .into_keys()
            .next()
            .expect("every event has a kind");
        self.effects.insert((kind, at, word), effect.clone());
        Some(Ok(effect))
    }

    /// Explores all states. `None` if that takes too long, or a word cannot be worked out.
    fn run(&mut self, deadline: Option<Instant>) -> Option<Result<(), UserSplit>> {
        let mut seen = FxHashSet::from_iter([self.states[0].0.clone()]);
        let mut open = vec![0];
        while let Some(from) = open.pop() {
            if self.states.len() > MAX_STATES || stop::late(deadline) {
                return None;
            }
            let (word, groups) = self.states[from].0.clone();
            for (g, &(kind, left, _)) in groups.iter().enumerate() {
                let user = &self.object.users[self.kinds[kind][0]];
                for at in (0..user.operations.len()).filter(|at| left >> at & 1 == 1) {
                    let Some(after) = user.passed_over(at, left) else {
                        continue;
                    };
                    let effect = match self.effect(kind, at, word)? {
                        Ok(effect) => effect,
                        Err(split) => return Some(Err(split)),
                    };
                    let Some(leaves) = effect.leaves else {
                        continue;
                    };
                    if phase_of(leaves) < phase_of(word) {
                        return None;
                    }
                    self.written.entry((kind, at)).or_default().insert(word);
                    self.words.insert(leaves);
                    let after = after & !effect.dead;
                    let next = (leaves, moved(&groups, g, after));
                    if seen.insert(next.clone()) {
                        open.push(self.states.len());
                        let step = Move {
                            from,
                            kind,
                            at,
                            left,
                            after,
                        };
                        self.states.push((next, Some(step)));
                    }
                }
            }
        }
        Some(Ok(()))
    }

    /// The words that an operation of a kind can find.
    fn found_at(&mut self, kind: usize, at: usize) -> Option<Result<Values, UserSplit>> {
        let mut here = self.written.remove(&(kind, at)).unwrap_or_default();
        for word in self.words.clone() {
            match self.effect(kind, at, word)? {
                Ok(effect) if effect.may_fail => drop(here.insert(word)),
                Ok(_) => {}
                Err(split) => return Some(Err(split)),
            }
        }
        Some(Ok(here.into_iter().collect()))
    }
}

/// The operations for which `has` is true, as a set.
fn bits(operations: &[Halves], mut has: impl FnMut(&Halves) -> bool) -> u64 {
    operations
        .iter()
        .enumerate()
        .fold(0, |bits, (at, one)| bits | u64::from(has(one)) << at)
}

/// The groups after one user of a group has performed an operation.
fn moved(groups: &[UserGroup], from: usize, left: u64) -> Vec<UserGroup> {
    let mut groups = groups.to_vec();
    let kind = groups[from].0;
    groups[from].2 -= 1;
    match groups
        .iter_mut()
        .find(|group| (group.0, group.1) == (kind, left))
    {
        Some(group) => group.2 += 1,
        None => groups.push((kind, left, 1)),
    }
    groups.retain(|group| group.2 > 0);
    groups.sort_unstable();
    groups
}
