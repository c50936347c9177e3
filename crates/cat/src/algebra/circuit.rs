//! The symbolic encoding: gates for the cells that are open *and* asked for.
//!
//! Bounds come first: a cell that must hold is true, one that may not is false, and neither costs a gate. The others
//! are built on demand, from the axioms backwards, each once.
//!
//! # Invariants
//! - Exact: under any assignment of the inputs that respects the bounds of the leaves, a cell's gate has the value that
//!   the plain evaluator computes, whenever both its events execute.
//! - Closures go through the ends of open edges only: between them, edges that are certain are closed beforehand.
//!
//! # Sources
//! - Matrices of gates: Kodkod (Torlak, Jackson, TACAS 2007).
//! - Acyclicity by vertex elimination: Rankooh, Rintanen, AAAI 2022.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::bounds::{Bound, Bounds};
use super::gates::{Gates, Lit};
use super::{Value, Values};
use crate::model::ir::{FixGroup, FreeId, Model, NodeId, NodeOp, Shape, Test};
use crate::model::signature::BaseId;
use crate::rel::{EventSet, Rel, first_common};

/// Rounds after which a recursive definition that is not a closure is given up.
const MAX_ROUNDS: usize = 256;

/// What a circuit asks about leaves.
pub trait CircuitLeaves {
    /// Whether an event executes.
    fn executes(&mut self, gates: &mut Gates, event: usize) -> Lit;
    /// An open cell of a base relation.
    fn base(&mut self, gates: &mut Gates, id: BaseId, i: usize, j: usize) -> Lit;
    /// A cell of a free relation. That orders are transitive inside the relation that bounds them, where events execute, is demanded
    /// elsewhere.
    fn free(&mut self, gates: &mut Gates, id: FreeId, i: usize, j: usize) -> Lit;
}

/// A recursive definition that takes too many rounds to unfold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRounds;

/// Builds gates for a model.
pub struct Circuit<'a, L> {
    model: &'a Model,
    algebra: Rc<Bounds>,
    bounds: Rc<Values<Bounds>>,
    /// The leaves.
    pub leaves: L,
    cells: Vec<FxHashMap<(u32, u32), Lit>>,
    members: Vec<FxHashMap<u32, Lit>>,
    closures: FxHashMap<NodeId, Closure>,
    transposed: FxHashMap<NodeId, Rel>,
    fixed: FxHashMap<NodeId, FxHashMap<(u32, u32), Lit>>,
    /// Set once a recursive definition was given up: no answer that depends on it may be used.
    pub failed: bool,
}

/// A transitive closure: middle events by number, and what is reachable through the first of them.
struct Closure {
    hubs: Vec<usize>,
    may: Vec<Rel>,
    memo: FxHashMap<(u32, u32, u32), Lit>,
    /// By event from which only certain edges lead, to events that surely execute: the nearest of these.
    after: Vec<Option<Vec<usize>>>,
    /// The same of edges that lead to it.
    before: Vec<Option<Vec<usize>>>,
}

impl<'a, L: CircuitLeaves> Circuit<'a, L> {
    /// Over bounds computed for every node that will be asked for.
    pub fn new(model: &'a Model, algebra: Rc<Bounds>, bounds: Rc<Values<Bounds>>, leaves: L) -> Self {
        Circuit {
            model,
            algebra,
            bounds,
            leaves,
            cells: vec![FxHashMap::default(); model.nodes.len()],
            members: vec![FxHashMap::default(); model.nodes.len()],
            closures: FxHashMap::default(),
            transposed: FxHashMap::default(),
            fixed: FxHashMap::default(),
            failed: false,
        }
    }

    fn value(&self, id: NodeId) -> Rc<Value<Bound<EventSet>, Bound<Rel>>> {
        self.bounds[id.index()].clone().expect("bounds were computed")
    }

    fn executes(&mut self, gates: &mut Gates, i: usize) -> Lit {
        if self.algebra.must.has(i) { Lit::TRUE } else { self.leaves.executes(gates, i) }
    }

    /// Whether an event is in a set node, given that it executes.
    pub fn member(&mut self, gates: &mut Gates, id: NodeId, i: usize) -> Lit {
        let value = self.value(id);
        let bound = value.set();
        if bound.must.has(i) {
            return Lit::TRUE;
        }
        if !bound.may.has(i) {
            return Lit::FALSE;
        }
        if let Some(&l) = self.members[id.index()].get(&(i as u32)) {
            return l;
        }
        self.solve_group_of(gates, id);
        let lit = match self.model.node(id).op {
            NodeOp::Base(_) | NodeOp::Empty | NodeOp::Universe => unreachable!("sets of the skeleton are known"),
            NodeOp::Var(..) => self.recursive(gates, id, i, i),
            NodeOp::Union(a, b) => {
                let (x, y) = (self.member(gates, a, i), self.member(gates, b, i));
                gates.or(x, y)
            }
            NodeOp::Inter(a, b) => {
                let (x, y) = (self.member(gates, a, i), self.member(gates, b, i));
                gates.and(x, y)
            }
            NodeOp::Diff(a, b) => {
                let (x, y) = (self.member(gates, a, i), self.member(gates, b, i));
                gates.and(x, !y)
            }
            NodeOp::Domain(a) => {
                let ends: Vec<usize> = self.value(a).rel().may.successors(i).collect();
                self.some_end(gates, a, ends, |j| (i, j))
            }
            NodeOp::Range(a) => {
                let ends: Vec<usize> = self.column(a, i);
                self.some_end(gates, a, ends, |j| (j, i))
            }
            _ => unreachable!("models are typed: a set was expected"),
        };
        self.members[id.index()].insert(i as u32, lit);
        lit
    }

    fn some_end(
        &mut self,
        gates: &mut Gates,
        rel: NodeId,
        ends: Vec<usize>,
        pair: impl Fn(usize) -> (usize, usize),
    ) -> Lit {
        let mut any = Vec::new();
        for e in ends {
            let (i, j) = pair(e);
            let (cell, there) = (self.cell(gates, rel, i, j), self.executes(gates, e));
            any.push(gates.and(cell, there));
        }
        gates.any(any)
    }

    fn column(&mut self, id: NodeId, j: usize) -> Vec<usize> {
        let value = self.value(id);
        self.transposed.entry(id).or_insert_with(|| value.rel().may.inverse()).successors(j).collect()
    }

    /// Whether a pair is in a relation node, given that both events execute.
    pub fn cell(&mut self, gates: &mut Gates, id: NodeId, i: usize, j: usize) -> Lit {
        let value = self.value(id);
        let bound = value.rel();
        if bound.must.has(i, j) {
            return Lit::TRUE;
        }
        if !bound.may.has(i, j) {
            return Lit::FALSE;
        }
        let key = (i as u32, j as u32);
        if let Some(&l) = self.cells[id.index()].get(&key) {
            return l;
        }
        self.solve_group_of(gates, id);
        let model = self.model;
        let lit = match &model.node(id).op {
            NodeOp::Base(id) => self.leaves.base(gates, *id, i, j),
            NodeOp::Free(f) => self.leaves.free(gates, *f, i, j),
            NodeOp::Var(..) => self.recursive(gates, id, i, j),
            NodeOp::IdentityOn(a) => self.member(gates, *a, i),
            NodeOp::Product(a, b) => {
                let (x, y) = (self.member(gates, *a, i), self.member(gates, *b, j));
                gates.and(x, y)
            }
            NodeOp::Union(a, b) => {
                let (x, y) = (self.cell(gates, *a, i, j), self.cell(gates, *b, i, j));
                gates.or(x, y)
            }
            NodeOp::Inter(a, b) => {
                let x = self.cell(gates, *a, i, j);
                if x == Lit::FALSE {
                    x
                } else {
                    let y = self.cell(gates, *b, i, j);
                    gates.and(x, y)
                }
            }
            NodeOp::Diff(a, b) => {
                let (x, y) = (self.cell(gates, *a, i, j), self.cell(gates, *b, i, j));
                gates.and(x, !y)
            }
            NodeOp::Seq(a, b) => {
                let (from, to) = (self.value(*a), self.value(*b));
                let from: Vec<usize> = from.rel().may.successors(i).collect();
                let may_b = &to.rel().may;
                let mut any = Vec::new();
                for k in from {
                    if !may_b.has(k, j) {
                        continue;
                    }
                    let x = self.cell(gates, *a, i, k);
                    let y = self.cell(gates, *b, k, j);
                    let there = self.executes(gates, k);
                    any.push(gates.all([x, there, y]));
                }
                gates.any(any)
            }
            NodeOp::Inverse(a) => self.cell(gates, *a, j, i),
            NodeOp::Plus(a) => {
                if !self.closures.contains_key(&id) {
                    let closure = self.closure(gates, id, *a);
                    self.closures.insert(id, closure);
                }
                let closure = &self.closures[&id];
                let (i, j) = (on(&closure.after, i), on(&closure.before, j));
                let nearer: Vec<(usize, usize)> = match (&closure.after[i], &closure.before[j]) {
                    (Some(nearest), _) => nearest.iter().map(|&k| (k, j)).collect(),
                    (None, Some(nearest)) => nearest.iter().map(|&k| (i, k)).collect(),
                    (None, None) => {
                        let level = closure.hubs.len();
                        return self.reach(gates, id, *a, level, i, j);
                    }
                };
                let any: Vec<Lit> = nearer.into_iter().map(|(i, j)| self.cell(gates, id, i, j)).collect();
                gates.any(any)
            }
            NodeOp::Empty | NodeOp::Universe | NodeOp::Domain(_) | NodeOp::Range(_) => {
                unreachable!("models are typed: a relation was expected")
            }
        };
        self.cells[id.index()].insert(key, lit);
        lit
    }

    /// The middle events that matter, and what may be reached through the first so many of them.
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
        for k in self.algebra.may.iter().filter(|&k| !self.algebra.must.has(k)) {
            hub.insert(k);
        }
        let mut reach = inner.may.clone().or(&outer.must);
        let mut may = vec![reach.clone()];
        let hubs: Vec<usize> = hub.and(&self.algebra.may).iter().collect();
        for &k in &hubs {
            if gates.tick(may.len() * n * n.div_ceil(64) / 16) {
                break;
            }
            let mut one = EventSet::empty(n);
            one.insert(k);
            reach = reach.plus(&one);
            may.push(reach.clone());
        }
        let after = self.nearest(&inner.must, &inner.may, &outer.must);
        let before = self.nearest(&inner.must.inverse(), &inner.may.inverse(), &outer.must.inverse());
        Closure { hubs, may, memo: FxHashMap::default(), after, before }
    }

    /// For each event whose edges are all certain, and lead to events that surely execute: those of them to which it comes through no other.
    /// What it reaches, beyond what it surely does, is what these reach.
    fn nearest(&self, must: &Rel, may: &Rel, closed: &Rel) -> Vec<Option<Vec<usize>>> {
        let one = |i: usize| {
            // Of events in a circle none is the nearest.
            let straight = |k: usize| !closed.has(k, i) && !closed.has(k, k);
            let certain = may.successors(i).all(|k| must.has(i, k) && self.algebra.must.has(k) && straight(k));
            certain.then(|| {
                // What others of them lead to.
                let mut beyond = vec![0; must.row(i).len()];
                let leads = |beyond: &[u64], k: usize| beyond[k / 64] >> (k % 64) & 1 == 1;
                for k in may.successors(i) {
                    if !leads(&beyond, k) {
                        beyond.iter_mut().zip(closed.row(k)).for_each(|(all, more)| *all |= more);
                    }
                }
                may.successors(i).filter(|&k| !leads(&beyond, k)).collect()
            })
        };
        (0..self.algebra.may.universe_len()).map(one).collect()
    }

    /// Whether `j` is reachable from `i` through the first `level` hubs.
    fn reach(&mut self, gates: &mut Gates, plus: NodeId, a: NodeId, level: usize, i: usize, j: usize) -> Lit {
        if self.value(plus).rel().must.has(i, j) {
            return Lit::TRUE;
        }
        if gates.exhausted().is_some() {
            return Lit::FALSE;
        }
        let closure = &self.closures[&plus];
        if !closure.may[level].has(i, j) {
            return Lit::FALSE;
        }
        if level == 0 {
            return self.cell(gates, a, i, j);
        }
        let key = (level as u32, i as u32, j as u32);
        if let Some(&l) = closure.memo.get(&key) {
            return l;
        }
        let k = closure.hubs[level - 1];
        let before = &closure.may[level - 1];
        let through = before.has(i, k) && before.has(k, j) && k != i && k != j;
        let direct = self.reach(gates, plus, a, level - 1, i, j);
        let lit = if through && direct != Lit::TRUE {
            let x = self.reach(gates, plus, a, level - 1, i, k);
            let y = if x == Lit::FALSE { x } else { self.reach(gates, plus, a, level - 1, k, j) };
            let there = self.executes(gates, k);
            let detour = gates.all([x, there, y]);
            gates.or(direct, detour)
        } else {
            direct
        };
        self.closures.get_mut(&plus).expect("made by the caller").memo.insert(key, lit);
        lit
    }

    /// Unfolds the recursive definition that a node belongs to, before anything inside it is asked for: unfolding forgets
    /// what was built of it so far.
    fn solve_group_of(&mut self, gates: &mut Gates, id: NodeId) {
        let model = self.model;
        if let Some(group) = model.groups.iter().find(|g| g.range.contains(&id.0))
            && !self.fixed.contains_key(&group.vars[0])
        {
            self.recursive(gates, group.vars[0], 0, 0);
        }
    }

    /// A cell of a recursive definition that is no closure: unfolds the whole group from the empty relations.
    fn recursive(&mut self, gates: &mut Gates, var: NodeId, i: usize, j: usize) -> Lit {
        if let Some(cells) = self.fixed.get(&var) {
            return cells.get(&(i as u32, j as u32)).copied().unwrap_or(Lit::FALSE);
        }
        let model = self.model;
        let group: &FixGroup =
            model.groups.iter().find(|g| g.vars.contains(&var)).expect("variables belong to a group");
        let open: Vec<Vec<(usize, usize)>> = group.vars.iter().map(|&v| self.open_pairs(v)).collect();
        for &v in &group.vars {
            self.fixed.insert(v, FxHashMap::default());
        }
        // Each round adds a cell or is the last, so with as many rounds as there are open cells the fixpoint is reached even
        // if its gates, which grow with every round, never repeat.
        let enough: usize = open.iter().map(Vec::len).sum();
        for round in 0..MAX_ROUNDS {
            if gates.tick(0) {
                return Lit::FALSE;
            }
            for n in group.range.clone() {
                self.cells[n as usize].clear();
                self.members[n as usize].clear();
                self.closures.remove(&NodeId(n));
            }
            let mut changed = false;
            let mut next = Vec::new();
            for ((&v, &body), pairs) in group.vars.iter().zip(&group.bodies).zip(&open) {
                let mut cells = FxHashMap::default();
                for &(x, y) in pairs {
                    let lit = match model.node(v).kind {
                        crate::model::ir::Kind::Rel => self.cell(gates, body, x, y),
                        crate::model::ir::Kind::Set => self.member(gates, body, x),
                    };
                    cells.insert((x as u32, y as u32), lit);
                }
                changed |= self.fixed[&v] != cells;
                next.push((v, cells));
            }
            self.fixed.extend(next);
            if !changed || round >= enough {
                for n in group.range.clone() {
                    self.cells[n as usize].clear();
                    self.members[n as usize].clear();
                    self.closures.remove(&NodeId(n));
                }
                return self.fixed[&var].get(&(i as u32, j as u32)).copied().unwrap_or(Lit::FALSE);
            }
        }
        self.failed = true;
        Lit::FALSE
    }

    fn open_pairs(&self, id: NodeId) -> Vec<(usize, usize)> {
        match &*self.value(id) {
            Value::Rel(r) => r.may.clone().minus(&r.must).iter().collect(),
            Value::Set(s) => s.may.clone().minus(&s.must).iter().map(|i| (i, i)).collect(),
        }
    }

    /// Whether a test succeeds.
    pub fn test(&mut self, gates: &mut Gates, test: Test, id: NodeId) -> Lit {
        let value = self.value(id);
        match (test, &*value) {
            (Test::Empty, Value::Set(s)) => {
                let mut all = Vec::new();
                for i in s.may.iter() {
                    let (x, there) = (self.member(gates, id, i), self.executes(gates, i));
                    all.push(!gates.and(x, there));
                }
                gates.all(all)
            }
            (Test::Empty, Value::Rel(r)) => {
                let mut all = Vec::new();
                for (i, j) in r.may.iter() {
                    if gates.tick(0) {
                        break;
                    }
                    let bad = self.edge(gates, id, i, j);
                    all.push(!bad);
                }
                gates.all(all)
            }
            (Test::Irreflexive, v) => {
                let mut all = Vec::new();
                for i in self.algebra.clone().may.iter().filter(|&i| v.rel().may.has(i, i)) {
                    let bad = self.edge(gates, id, i, i);
                    all.push(!bad);
                }
                gates.all(all)
            }
            (Test::Acyclic, v) => {
                let may = v.rel().may.clone().restricted(&self.algebra.may);
                self.acyclic(gates, may, |c, gates, i, j| c.cell(gates, id, i, j))
            }
        }
    }

    /// The free orders that have something to say of a component of a graph.
    fn orders(&mut self, gates: &mut Gates, graph: &Rel, component: &[usize]) -> Vec<Along> {
        let n = self.algebra.may.universe_len();
        let mut here = EventSet::empty(n);
        component.iter().for_each(|&i| here.insert(i));
        let free = self.model.free.iter().enumerate().filter(|(_, free)| free.shape == Shape::Order);
        let along = free.map(|(f, free)| {
            let id = FreeId(f as u32);
            let inside = self.value(free.within).rel().must.clone().restricted(&here);
            let in_graph =
                |&(i, j): &(usize, usize)| graph.has(i, j) || self.leaves.free(gates, id, i, j) == Lit::FALSE;
            Along { id, alone: Rel::empty(n), led: Rel::from_pairs(n, inside.iter().filter(in_graph)) }
        });
        along.filter(|order| !order.led.is_empty()).collect()
    }

    /// A cell together with the execution of both ends.
    fn edge(&mut self, gates: &mut Gates, id: NodeId, i: usize, j: usize) -> Lit {
        let (a, b) = (self.executes(gates, i), self.executes(gates, j));
        let x = self.cell(gates, id, i, j);
        gates.all([a, x, b])
    }

    /// Whether the graph of the given cells has no cycle of executed events: eliminates vertices one by one, those with
    /// the fewest detours first. A detour along a free order leads where that order leads without it, and takes no gate.
    pub fn acyclic(
        &mut self,
        gates: &mut Gates,
        may: Rel,
        mut cell: impl FnMut(&mut Self, &mut Gates, usize, usize) -> Lit,
    ) -> Lit {
        let n = may.universe_len();
        let mut all = Vec::new();
        for component in components(&may) {
            let mut left = EventSet::empty(n);
            component.iter().for_each(|&i| left.insert(i));
            let mut edges: FxHashMap<(usize, usize), Lit> = FxHashMap::default();
            // Where there is an edge, by both ends.
            let (mut out, mut into) = (Rel::empty(n), Rel::empty(n));
            let mut orders =
                if component.len() < ALONG { Vec::new() } else { self.orders(gates, &may, &component) };
            for &i in &component {
                for j in may.successors(i).filter(|&j| left.has(j)) {
                    let there = self.executes(gates, j);
                    let c = cell(self, gates, i, j);
                    for order in &mut orders {
                        order.note(i, j, c, self.leaves.free(gates, order.id, i, j));
                    }
                    let lit = gates.and(c, there);
                    if lit != Lit::FALSE {
                        edges.insert((i, j), lit);
                        out.insert(i, j);
                        into.insert(j, i);
                    }
                }
            }
            while !left.is_empty() && !gates.tick(0) {
                let cost = |v: usize| {
                    let of = |edges: &Rel| common(edges.row(v), left.words()) - usize::from(edges.has(v, v));
                    of(&into) * of(&out)
                };
                let v = left.iter().min_by_key(|&v| (cost(v), v)).expect("not empty");
                left.remove(v);
                let there = self.executes(gates, v);
                if let Some(&l) = edges.get(&(v, v)) {
                    all.push(!gates.and(l, there));
                }
                let among = |edges: &Rel| edges.successors(v).filter(|&u| left.has(u)).collect::<Vec<usize>>();
                let (before, behind) = (among(&into), among(&out));
                for &u in &before {
                    for &w in &behind {
                        if orders.iter().any(|order| order.leads(u, v, w)) {
                            continue;
                        }
                        let detour = gates.and(edges[&(u, v)], edges[&(v, w)]);
                        if detour == Lit::FALSE {
                            continue;
                        }
                        let old = edges.get(&(u, w)).copied().unwrap_or(Lit::FALSE);
                        edges.insert((u, w), gates.or(old, detour));
                        orders.iter_mut().for_each(|order| order.alone.remove(u, w));
                        out.insert(u, w);
                        into.insert(w, u);
                    }
                }
            }
        }
        gates.all(all)
    }
}

/// In smaller graphs, detours are not looked at for whether they are along an order.
const ALONG: usize = 16;

/// A free order in a graph whose cycles are looked for.
struct Along {
    id: FreeId,
    /// Edges that are in the graph if and only if they are in the order.
    alone: Rel,
    /// Pairs that are in the graph if they are in the order, and are in it if a third event lies between them there: what the
    /// order's transitivity says, given that all three execute.
    led: Rel,
}

impl Along {
    /// Notes an edge of the graph, and when it is one of the order.
    fn note(&mut self, i: usize, j: usize, edge: Lit, ordered: Lit) {
        if edge == ordered {
            self.alone.insert(i, j);
        } else if edge != Lit::TRUE && ordered != Lit::FALSE {
            self.led.remove(i, j);
        }
    }

    /// Whether the way from `u` over `v` to `w` is one of the order, and there is another one then.
    fn leads(&self, u: usize, v: usize, w: usize) -> bool {
        self.alone.has(u, v) && self.alone.has(v, w) && self.led.has(u, w)
    }
}

/// Goes from an event to its nearest ones as long as there is one.
fn on(nearest: &[Option<Vec<usize>>], mut event: usize) -> usize {
    while let Some([next]) = nearest[event].as_deref() {
        event = *next;
    }
    event
}

/// Strongly connected components that can hold a cycle, in order of their first event (Kosaraju: what comes last in the one
/// direction comes first in the other).
fn components(may: &Rel) -> Vec<Vec<usize>> {
    let all = EventSet::full(may.universe_len());
    let mut finished = Vec::new();
    let mut left = all.clone();
    all.iter().for_each(|root| walk(may, root, &mut left, &mut finished));
    let (back, mut left) = (may.inverse(), all);
    let mut found: Vec<Vec<usize>> = Vec::new();
    for &root in finished.iter().rev() {
        let mut one = Vec::new();
        walk(&back, root, &mut left, &mut one);
        if one.len() > 1 || one.first().is_some_and(|&i| may.has(i, i)) {
            one.sort_unstable();
            found.push(one);
        }
    }
    found.sort_unstable();
    found
}

/// Goes from an event to those left that it reaches, depth first, and puts down each when all behind it have been.
fn walk(edges: &Rel, root: usize, left: &mut EventSet, finished: &mut Vec<usize>) {
    if !left.has(root) {
        return;
    }
    left.remove(root);
    let mut path = vec![root];
    while let Some(&i) = path.last() {
        match first_common(edges.row(i), left.words()) {
            Some(next) => {
                left.remove(next);
                path.push(next);
            }
            None => finished.extend(path.pop()),
        }
    }
}

/// How many events two rows have in common.
fn common(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones() as usize).sum()
}
