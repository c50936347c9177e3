//! Encodes transitive closures by Warshall's algorithm. Middle events are only the ends of open
//! edges; certain edges are closed beforehand.
//!
//! An axiom may say that a closure, among some events, is contained in a free order that is itself
//! part of the closed relation. Then the closure and the order agree among these events, and no
//! paths between them are encoded. Examples are PTX's Fence-SC order and base causality among
//! fences.

use rustc_hash::FxHashMap;

use super::{Circuit, CircuitLeaves, NodeOp};
use crate::algebra::Values;
use crate::algebra::bounds::Bounds;
use crate::algebra::gates::{Gates, Lit};
use crate::model::ir::{FreeId, FreeShape, Model, NodeId, Test};
use crate::rel::{EventSet, Rel};

/// A middle event of a closure. A path may come from some events to it, and lead from it to others,
/// through earlier middle events alone.
struct Hub {
    event: usize,
    from: EventSet,
    to: EventSet,
}

impl Hub {
    /// Whether a path from `i` to `j` may lead through this event, and earlier ones.
    fn is_between(&self, i: usize, j: usize) -> bool {
        self.from.has(i) && self.to.has(j) && self.event != i && self.event != j
    }
}

/// A transitive closure: its middle events in the order in which paths are built.
pub(super) struct Closure {
    hubs: Vec<Hub>,
    /// By middle event and pair with a path through it: whether a path exists through it and
    /// earlier ones.
    memo: FxHashMap<(u32, u32, u32), Lit>,
    /// Paths from other events to the events among which the closure is an order.
    last_reached: FxHashMap<(u32, u32), Lit>,
    /// For each event with only certain outgoing edges, to events that execute whenever it does:
    /// the nearest of its successors.
    after: Vec<Option<Vec<usize>>>,
    /// The same for incoming edges.
    before: Vec<Option<Vec<usize>>>,
}

/// Some events, and a free order that equals a closure among them whenever an axiom holds.
#[derive(Clone, Debug)]
pub struct ClosureOrder {
    plus: NodeId,
    order: FreeId,
    among: EventSet,
}

impl ClosureOrder {
    /// Matches an axiom `empty closure & … \ order`, where the order is part of the closed
    /// relation. Needs the bounds of all nodes. The events are those whose pairs all lie, in the
    /// lower bounds, inside the intersection and the order's `within` relation. There the order is
    /// transitive.
    pub fn new(
        model: &Model,
        algebra: &Bounds,
        values: &Values<Bounds>,
        test: Test,
        node: NodeId,
    ) -> Option<Self> {
        let rel = |id: NodeId| {
            values[id.index()]
                .as_deref()
                .expect("bounds were computed")
                .rel()
        };
        let (Test::Empty, &NodeOp::Diff(mut whole, order)) = (test, &model.node(node).op) else {
            return None;
        };
        let &NodeOp::Free(order) = &model.node(order).op else {
            return None;
        };
        let declared = model
            .free
            .get(order.0 as usize)
            .filter(|free| free.shape == FreeShape::Order)?;
        let mut pairs = rel(declared.within).must.clone();
        let (plus, closed) = loop {
            match model.node(whole).op {
                NodeOp::Plus(closed) => break (whole, closed),
                NodeOp::Inter(a, b) => {
                    let core = if holds_closure(model, a) { a } else { b };
                    pairs = pairs.and(&rel(if core == a { b } else { a }).must);
                    whole = core;
                }
                _ => return None,
            }
        };
        let recursive = model
            .groups
            .iter()
            .any(|group| group.range.contains(&plus.0));
        if recursive || !parts(model, closed).contains(&NodeOp::Free(order)) {
            return None;
        }
        let mut among = EventSet::empty(algebra.may.universe_len());
        for i in algebra.may.iter() {
            if pairs.successors(i).next().is_some()
                && among.iter().all(|k| pairs.has(i, k) && pairs.has(k, i))
            {
                among.insert(i);
            }
        }
        (among.len() > 1).then_some(ClosureOrder { plus, order, among })
    }

    /// Whether both concern the same closure.
    pub fn of_same(&self, other: &ClosureOrder) -> bool {
        self.plus == other.plus
    }

    /// Whether the order decides this pair of the closure.
    fn settles(&self, i: usize, j: usize) -> bool {
        i != j && self.among.has(i) && self.among.has(j)
    }
}

/// Whether an intersection contains a closure as an operand.
fn holds_closure(model: &Model, id: NodeId) -> bool {
    match model.node(id).op {
        NodeOp::Plus(_) => true,
        NodeOp::Inter(a, b) => holds_closure(model, a) || holds_closure(model, b),
        _ => false,
    }
}

/// The operands of a union.
fn parts(model: &Model, id: NodeId) -> Vec<NodeOp> {
    match &model.node(id).op {
        NodeOp::Union(a, b) => [parts(model, *a), parts(model, *b)].concat(),
        op => vec![*op],
    }
}

impl<L: CircuitLeaves> Circuit<'_, L> {
    /// Treats the closure as equal to the order from now on. The caller then has to require
    /// [`Circuit::agreement`] instead of the axiom.
    pub fn agree(&mut self, agreed: ClosureOrder) {
        self.agreed.push(agreed);
    }

    /// The condition that closure and order agree: a path between two of the events, outside the
    /// others, implies that the order relates the two. The order is transitive, so paths through
    /// the other events follow it, too.
    pub fn agreement(&mut self, gates: &mut Gates, agreed: &ClosureOrder) -> Lit {
        let &NodeOp::Plus(a) = &self.model.node(agreed.plus).op else {
            unreachable!("it is about a closure")
        };
        self.prepare(gates, agreed.plus, a);
        let level = self.closures[&agreed.plus].hubs.len();
        let mut all = Vec::new();
        for i in agreed.among.iter() {
            for j in agreed.among.iter().filter(|&j| j != i) {
                if gates.tick(0) {
                    return Lit::FALSE;
                }
                let ordered = self.leaves.free(gates, agreed.order, i, j);
                if ordered != Lit::TRUE {
                    let way = self.reach(gates, agreed.plus, a, level, i, j);
                    let there = [self.executes(gates, i), self.executes(gates, j)];
                    all.push(!gates.all([way, there[0], there[1], !ordered]));
                }
            }
        }
        gates.all(all)
    }

    /// An open cell of a closure.
    pub(super) fn closed(
        &mut self,
        gates: &mut Gates,
        plus: NodeId,
        a: NodeId,
        i: usize,
        j: usize,
    ) -> Lit {
        self.prepare(gates, plus, a);
        let closure = &self.closures[&plus];
        let (i, j) = (on(&closure.after, i), on(&closure.before, j));
        let nearer: Vec<(usize, usize)> = match (&closure.after[i], &closure.before[j]) {
            (Some(nearest), _) => nearest.iter().map(|&k| (k, j)).collect(),
            (None, Some(nearest)) => nearest.iter().map(|&k| (i, k)).collect(),
            (None, None) => return self.through(gates, plus, a, i, j),
        };
        let any: Vec<Lit> = nearer
            .into_iter()
            .map(|(i, j)| self.cell(gates, plus, i, j))
            .collect();
        gates.any(any)
    }

    fn agreed(&self, plus: NodeId) -> Option<&ClosureOrder> {
        self.agreed.iter().find(|agreed| agreed.plus == plus)
    }

    /// Whether `j` is reachable from `i`. The path either avoids the events among which the closure
    /// is an order, or is split at the first and the last of them.
    ///
    /// A cell's gate must not depend on itself. [`Circuit::closed`] reduces a pair to nearer pairs,
    /// and these can lead out of the order's events. So the cell of a path from `i` to the last
    /// such event could depend on the cell of `i` and `j`. To avoid this cycle, paths to such an
    /// event are built here and split at the first of these events. They use only
    /// [`Circuit::reach`] and the order. Neither uses a cell of the closure, since its operand
    /// precedes it in the model's table.
    fn through(&mut self, gates: &mut Gates, plus: NodeId, a: NodeId, i: usize, j: usize) -> Lit {
        let level = self.closures[&plus].hubs.len();
        let Some(ClosureOrder { order, among, .. }) = self.agreed(plus).cloned() else {
            return self.reach(gates, plus, a, level, i, j);
        };
        if among.has(i) && among.has(j) {
            return match i == j {
                true => self.reach(gates, plus, a, level, i, j),
                false => self.leaves.free(gates, order, i, j),
            };
        }
        let (from, to) = (among.has(i), among.has(j));
        let mut any = if to || from {
            Vec::new()
        } else {
            vec![self.reach(gates, plus, a, level, i, j)]
        };
        for k in among.iter() {
            // Splits at the first of them if `j` is one of them, else at the last.
            let (x, y) = if to {
                let ordered = if k == j {
                    Lit::TRUE
                } else {
                    self.leaves.free(gates, order, k, j)
                };
                (self.reach(gates, plus, a, level, i, k), ordered)
            } else {
                let outside = self.reach(gates, plus, a, level, k, j);
                let before = match (outside, from) {
                    (Lit::FALSE, _) => Lit::FALSE,
                    (_, true) if k == i => Lit::TRUE,
                    (_, true) => self.leaves.free(gates, order, i, k),
                    (_, false) => self.last_reached(gates, plus, a, i, k),
                };
                (before, outside)
            };
            let there = self.executes(gates, k);
            any.push(gates.all([x, there, y]));
        }
        gates.any(any)
    }

    /// Whether `k`, one of the events among which the closure is an order, is reachable from `i`,
    /// which is not one of them.
    fn last_reached(
        &mut self,
        gates: &mut Gates,
        plus: NodeId,
        a: NodeId,
        i: usize,
        k: usize,
    ) -> Lit {
        let bound = self.value(plus);
        if bound.rel().must.has(i, k) || !bound.rel().may.has(i, k) {
            return Lit::constant(bound.rel().must.has(i, k));
        }
        let key = (i as u32, k as u32);
        if let Some(&known) = self.closures[&plus].last_reached.get(&key) {
            return known;
        }
        let lit = self.through(gates, plus, a, i, k);
        self.closures
            .get_mut(&plus)
            .expect("made by the caller")
            .last_reached
            .insert(key, lit);
        lit
    }

    fn prepare(&mut self, gates: &mut Gates, plus: NodeId, a: NodeId) {
        if !self.closures.contains_key(&plus) {
            let closure = self.closure(gates, plus, a);
            self.closures.insert(plus, closure);
        }
    }

    /// The operands of a union for cycle detection. A closure is replaced by its operand, with its
    /// [`ClosureOrder`] order if it has one.
    pub(super) fn steps(&self, id: NodeId) -> Vec<(NodeId, Option<ClosureOrder>)> {
        let mut found = Vec::new();
        let mut left = vec![(id, None)];
        while let Some((id, agreed)) = left.pop() {
            match self.model.node(id).op {
                NodeOp::Union(a, b) if agreed.is_some() || self.has_closure(id) => {
                    left.extend([(a, agreed.clone()), (b, agreed)]);
                }
                NodeOp::Plus(a) if agreed.is_none() => left.push((a, self.agreed(id).cloned())),
                _ => found.push((id, agreed)),
            }
        }
        found
    }

    /// Whether one of these relations has an edge from one event to another.
    pub(super) fn step(
        &mut self,
        gates: &mut Gates,
        steps: &[(NodeId, Option<ClosureOrder>)],
        i: usize,
        j: usize,
    ) -> Lit {
        let mut any = Vec::new();
        for (part, agreed) in steps {
            let settled = agreed.as_ref().filter(|agreed| agreed.settles(i, j));
            if settled.is_none_or(|agreed| self.model.node(*part).op == NodeOp::Free(agreed.order))
            {
                any.push(self.cell(gates, *part, i, j));
            }
        }
        gates.any(any)
    }

    fn has_closure(&self, id: NodeId) -> bool {
        match self.model.node(id).op {
            NodeOp::Plus(_) => true,
            NodeOp::Union(a, b) => self.has_closure(a) || self.has_closure(b),
            _ => false,
        }
    }

    /// Chooses the middle events of a closure, and computes the pairs that may be reachable through
    /// each prefix of them.
    fn closure(&self, gates: &mut Gates, plus: NodeId, a: NodeId) -> Closure {
        let (inner, outer) = (self.value(a), self.value(plus));
        let (inner, outer) = (inner.rel(), outer.rel());
        let n = self.algebra.may.universe_len();
        let mut hub = EventSet::empty(n);
        for (i, j) in inner.may.iter() {
            if !outer.must.has(i, j) {
                hub.insert(i);
                hub.insert(j);
            }
        }
        let into = outer.must.inverse();
        for k in self
            .algebra
            .may
            .iter()
            .filter(|&k| !self.algebra.must.has(k) && !is_passed(&outer.must, &into, k))
        {
            hub.insert(k);
        }
        let mut reach = inner.may.clone().or(&outer.must);
        let mut middle = hub.and(&self.algebra.may);
        if let Some(agreed) = self.agreed(plus) {
            middle = middle.minus(&agreed.among);
        }
        let mut hubs = Vec::new();
        for k in middle.iter() {
            if gates.tick(hubs.len() * n.div_ceil(64) / 8) {
                break;
            }
            let mut one = EventSet::empty(n);
            one.insert(k);
            hubs.push(Hub {
                event: k,
                from: reach.domain(&one),
                to: EventSet::from_fn(n, |j| reach.has(k, j.index())),
            });
            reach = reach.plus(&one);
        }
        let after = self.nearest(&inner.must, &inner.may, &outer.must);
        let before = self.nearest(
            &inner.must.inverse(),
            &inner.may.inverse(),
            &outer.must.inverse(),
        );
        Closure {
            hubs,
            memo: FxHashMap::default(),
            last_reached: FxHashMap::default(),
            after,
            before,
        }
    }

    /// For each event with only certain edges, to events that then execute: the successors that it
    /// does not reach through another successor. Any open pair from the event is a pair from one of
    /// these.
    fn nearest(&self, must: &Rel, may: &Rel, closed: &Rel) -> Vec<Option<Vec<usize>>> {
        (0..self.algebra.may.universe_len())
            .map(|i| {
                // No event of a cycle counts as nearest.
                let certain = may.successors(i).all(|k| {
                    must.has(i, k)
                        && self.algebra.brings(i, k)
                        && !closed.has(k, i)
                        && !closed.has(k, k)
                });
                certain.then(|| {
                    // The events reachable from other successors.
                    let mut beyond = vec![0; must.row(i).len()];
                    fn leads(beyond: &[u64], k: usize) -> bool {
                        beyond[k / 64] >> (k % 64) & 1 == 1
                    }
                    for k in may.successors(i) {
                        if !leads(&beyond, k) {
                            beyond
                                .iter_mut()
                                .zip(closed.row(k))
                                .for_each(|(all, more)| *all |= more);
                        }
                    }
                    may.successors(i).filter(|&k| !leads(&beyond, k)).collect()
                })
            })
            .collect()
    }

    /// Whether `j` is reachable from `i` through the first `level` hubs. Most hubs are on no path
    /// between the two, and cost neither a gate nor memory.
    fn reach(
        &mut self,
        gates: &mut Gates,
        plus: NodeId,
        a: NodeId,
        level: usize,
        i: usize,
        j: usize,
    ) -> Lit {
        if self.value(plus).rel().must.has(i, j) {
            return Lit::TRUE;
        }
        if gates.deep() {
            return Lit::FALSE;
        }
        let closure = &self.closures[&plus];
        let (mut open, mut known) = (Vec::new(), None);
        for at in (0..level)
            .rev()
            .filter(|&at| closure.hubs[at].is_between(i, j))
        {
            known = closure.memo.get(&(at as u32, i as u32, j as u32)).copied();
            if known.is_some() {
                break;
            }
            open.push(at);
        }
        let mut lit = known.unwrap_or_else(|| self.cell(gates, a, i, j));
        for at in open.into_iter().rev() {
            if lit != Lit::TRUE {
                let k = self.closures[&plus].hubs[at].event;
                let x = self.reach(gates, plus, a, at, i, k);
                let y = if x == Lit::FALSE {
                    x
                } else {
                    self.reach(gates, plus, a, at, k, j)
                };
                let there = self.executes(gates, k);
                let detour = gates.all([x, there, y]);
                lit = gates.or(lit, detour);
            }
            let closure = self.closures.get_mut(&plus).expect("made by the caller");
            closure.memo.insert((at as u32, i as u32, j as u32), lit);
        }
        lit
    }
}

/// Whether every certain path over an event has a certain pair beside it.
fn is_passed(certain: &Rel, into: &Rel, event: usize) -> bool {
    into.successors(event).all(|i| {
        let mut rows = certain.row(event).iter().zip(certain.row(i));
        rows.all(|(beyond, own)| beyond & !own == 0)
    })
}

/// Moves to the nearest event as long as there is exactly one.
fn on(nearest: &[Option<Vec<usize>>], mut event: usize) -> usize {
    while let Some([next]) = nearest[event].as_deref() {
        event = *next;
    }
    event
}
