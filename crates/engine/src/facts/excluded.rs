//! Decides which relations among a few events the axioms of a model exclude, whatever other events
//! execute.
//!
//! # Invariants
//! - The answer "yes" holds in every execution in which the axioms do; the answer "no" means
//!   nothing.

use rustc_hash::FxHashMap;

use super::Facts;
use super::bounds::{BoundLeaves, TaskBounds};
use crate::skeleton::base::Base;
use cat::algebra::bounds::{Bound, Bounds, Truth};
use cat::algebra::{Reuse, Value, Values, empty, interpret, needed_unless};
use cat::model::ir::{FreeId, Model, NodeId, NodeOp};
use cat::rel::{EventSet, Rel};

/// Decides which relations among a few events the axioms exclude.
///
/// A relation is excluded if an axiom already fails on these events alone. This is sound only for
/// axioms that keep failing when events are added: the node that they test grows with the events.
pub(crate) struct Exclusion<'x, 'a> {
    facts: &'x Facts<'a>,
    bounds: &'x TaskBounds,
    from_reads: NodeId,
    axioms: Vec<usize>,
    needed: Vec<bool>,
    /// By the known facts about the events: whether the axioms exclude them.
    known: FxHashMap<Vec<u64>, bool>,
}

impl<'x, 'a> Exclusion<'x, 'a> {
    pub(crate) fn new(facts: &'x Facts<'a>, bounds: &'x TaskBounds, from_reads: NodeId) -> Self {
        let model = facts.task.model;
        // By node: whether a pair remains when events are added, and whether a pair depends only on
        // its two events.
        let (mut grows, mut is_local) = (Vec::new(), Vec::new());
        for (node, absent) in model.nodes.iter().zip(&facts.absent) {
            let (more, local) = match node.op {
                _ if *absent => (true, true),
                NodeOp::Var(..) => (false, false),
                NodeOp::Diff(a, b) => (
                    grows[a.index()] && is_local[b.index()],
                    all_operands(&node.op, &is_local),
                ),
                NodeOp::Seq(..) | NodeOp::Plus(_) | NodeOp::Domain(_) | NodeOp::Range(_) => {
                    (all_operands(&node.op, &grows), false)
                }
                _ => (
                    all_operands(&node.op, &grows),
                    all_operands(&node.op, &is_local),
                ),
            };
            grows.push(more);
            is_local.push(local);
        }
        let axioms: Vec<usize> = (0..model.axioms.len())
            .filter(|&i| !model.axioms[i].negated && grows[model.axioms[i].node.index()])
            .collect();
        let roots = axioms.iter().map(|&i| model.axioms[i].node);
        let needed = needed_unless(model, roots, |id| facts.absent[id.index()]);
        Exclusion {
            facts,
            bounds,
            from_reads,
            axioms,
            needed,
            known: FxHashMap::default(),
        }
    }

    /// Whether the axioms exclude that these events execute with these pairs in free relations and
    /// this pair in from-reads.
    pub(crate) fn is(
        &mut self,
        events: &[usize],
        from_reads: Option<(usize, usize)>,
        free: &[(FreeId, (usize, usize))],
    ) -> bool {
        let key = self.key(events, from_reads, free);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let (facts, model, n) = (self.facts, self.facts.task.model, self.facts.sk.len());
        let few = EventSet::from_fn(n, |e| events.contains(&e.index()));
        let algebra = Bounds {
            must: few.clone(),
            may: few.clone(),
            companions: None,
        };
        let mut bounds: Vec<Bound<Rel>> = (self.bounds.free.iter())
            .map(|b| Bound {
                must: b.must.clone().restricted(&few),
                may: b.may.clone().restricted(&few),
            })
            .collect();
        free.iter()
            .for_each(|&(f, (a, b))| bounds[f.0 as usize].must.insert(a, b));
        let possible = bounds.iter().all(|bound| bound.must.is_subset(&bound.may));
        let mut known: Values<Bounds> = (model.nodes.iter().zip(&facts.absent))
            .map(|(node, &absent)| absent.then(|| std::rc::Rc::new(empty(&algebra, node.kind))))
            .collect();
        if let Some((read, write)) = from_reads {
            let must = Rel::from_pairs(n, [(read, write)]);
            let may = Rel::product(&few, &few);
            known[self.from_reads.index()] =
                Some(std::rc::Rc::new(Value::Rel(Bound { must, may })));
        }
        let open = vec![None; facts.open.len()];
        let leaves = BoundLeaves {
            facts,
            algebra: &algebra,
            open: &open,
            free: &bounds,
        };
        let reuse = Reuse {
            known: &known,
            before: &[],
        };
        let values =
            interpret(model, &algebra, &leaves, &self.needed, reuse, None).expect("without end");
        let excluded = !possible
            || self
                .axioms
                .iter()
                .any(|&i| fails(model, &algebra, &values, i));
        self.known.insert(key, excluded);
        excluded
    }

    /// Whether one of two atomics on one location, each a read and a write half, comes wholly
    /// before the other if both execute. This means [`Exclusion::whole`] and
    /// [`Exclusion::reads_no_later`].
    pub(crate) fn apart(&mut self, one: (usize, usize), other: (usize, usize)) -> bool {
        self.whole(one, other) && self.reads_no_later(one, other)
    }

    /// Whether the two are ordered, and neither write falls between the halves of the other.
    pub(crate) fn whole(&mut self, one: (usize, usize), other: (usize, usize)) -> bool {
        let finals = self.facts.task.model.finals;
        let co = &self.bounds.free[finals.0 as usize].must;
        let covering = self.facts.task.model.free[finals.0 as usize].covering;
        let covered = covering.and_then(|node| self.bounds.values[node.index()].as_deref());
        let ordered = |a, b| co.has(a, b) || covered.is_some_and(|c| c.rel().must.has(a, b));
        let events = [one.0, one.1, other.0, other.1];
        (ordered(one.1, other.1) || ordered(other.1, one.1))
            && [(one, other), (other, one)]
                .into_iter()
                .all(|((r, w), (_, other))| {
                    self.is(&events, Some((r, other)), &[(finals, (other, w))])
                })
    }

    /// Whether neither reads a write of the other that comes behind its own write.
    pub(crate) fn reads_no_later(&mut self, one: (usize, usize), other: (usize, usize)) -> bool {
        let [values, finals] = [self.facts.task.model.values, self.facts.task.model.finals];
        let events = [one.0, one.1, other.0, other.1];
        [(one, other), (other, one)]
            .into_iter()
            .all(|((r, w), (_, other))| {
                self.is(&events, None, &[(values, (other, r)), (finals, (w, other))])
            })
    }

    /// All facts that the answer depends on.
    fn key(
        &self,
        events: &[usize],
        from_reads: Option<(usize, usize)>,
        free: &[(FreeId, (usize, usize))],
    ) -> Vec<u64> {
        let mut key = vec![from_reads.map_or(u64::MAX, |(a, b)| {
            index_in(events, a) << 8 | index_in(events, b)
        })];
        key.extend(free.iter().map(|&(f, (a, b))| {
            u64::from(f.0) << 16 | index_in(events, a) << 8 | index_in(events, b)
        }));
        let mut bases: Vec<_> = self.facts.bases.iter().collect();
        bases.sort_unstable_by_key(|(id, _)| **id);
        for (_, (_, base)) in bases {
            match base {
                Base::Set(set) => key.push(bits(events, &|a, b| a == b && set.has(a))),
                Base::Rel(rel) => {
                    key.extend([
                        bits(events, &|a, b| rel.fixed.has(a, b)),
                        bits(events, &|a, b| {
                            rel.open
                                .binary_search_by_key(&(a, b), |cell| (cell.0, cell.1))
                                .is_ok()
                        }),
                    ]);
                }
            }
        }
        for bound in &self.bounds.free {
            key.extend([
                bits(events, &|a, b| bound.must.has(a, b)),
                bits(events, &|a, b| bound.may.has(a, b)),
            ]);
        }
        key
    }
}

/// The pairs of these events in a relation, as bits.
fn bits(events: &[usize], has: &dyn Fn(usize, usize) -> bool) -> u64 {
    let pairs = events
        .iter()
        .flat_map(|&a| events.iter().map(move |&b| (a, b)));
    pairs.fold(0, |bits, (a, b)| bits << 1 | u64::from(has(a, b)))
}

/// The index of an event among these.
fn index_in(events: &[usize], e: usize) -> u64 {
    events
        .iter()
        .position(|&other| other == e)
        .expect("one of these") as u64
}

/// Whether all operands of a node have a property.
fn all_operands(op: &NodeOp, of: &[bool]) -> bool {
    op.operands().all(|a| of[a.index()])
}

/// Whether an axiom fails under these bounds.
fn fails(model: &Model, algebra: &Bounds, values: &Values<Bounds>, i: usize) -> bool {
    let axiom = &model.axioms[i];
    algebra.holds(
        axiom.test,
        values[axiom.node.index()].as_deref().expect("asked for"),
    ) == Truth::No
}
