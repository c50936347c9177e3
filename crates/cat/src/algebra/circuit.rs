//! The symbolic encoding: builds gates for the open cells that the axioms need.
//!
//! Bounds come first: a cell in the lower bound is true, a cell outside the upper bound is false,
//! and neither costs a gate. The circuit builds the other cells on demand, from the axioms
//! backwards, each once.
//!
//! # Invariants
//! - Exact: under any assignment of the inputs that respects the bounds of the leaves, a cell's
//!   gate has the value that the plain evaluator computes, whenever both its events execute.
//!
//! # Sources
//! - Matrices of gates: Kodkod (Torlak, Jackson, TACAS 2007).

mod closure;
mod common;
mod cycles;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::bounds::{Bound, Bounds};
use super::gates::{Gates, Lit};
use super::{Value, Values};
use crate::model::ir::{FixGroup, FreeId, Model, NodeId, NodeOp, Test};
use crate::model::signature::BaseId;
use crate::rel::{EventSet, Rel};
use closure::Closure;
pub use closure::ClosureOrder;
use common::{Common, SequenceNode};

/// The limit on rounds for a recursive definition that is not a closure.
const MAX_ROUNDS: usize = 256;

/// Supplies the literals of leaves to a circuit.
pub trait CircuitLeaves {
    /// Whether an event executes.
    fn executes(&mut self, gates: &mut Gates, event: usize) -> Lit;
    /// An open cell of a base relation.
    fn base(&mut self, gates: &mut Gates, id: BaseId, i: usize, j: usize) -> Lit;
    /// A cell of a free relation. Other code adds the constraint that orders are transitive inside
    /// their `within` relation among executed events.
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
    agreed: Vec<ClosureOrder>,
    common: Common,
    transposed: FxHashMap<NodeId, Rel>,
    fixed: FxHashMap<NodeId, FxHashMap<(u32, u32), Lit>>,
    /// Whether a recursive definition exceeded the limit; no answer that depends on it is valid.
    pub failed: bool,
}

impl<'a, L: CircuitLeaves> Circuit<'a, L> {
    /// Starts from bounds that cover every node that the caller will need.
    pub fn new(
        model: &'a Model,
        algebra: Rc<Bounds>,
        bounds: Rc<Values<Bounds>>,
        leaves: L,
    ) -> Self {
        Circuit {
            model,
            algebra,
            bounds,
            leaves,
            cells: vec![FxHashMap::default(); model.nodes.len()],
            members: vec![FxHashMap::default(); model.nodes.len()],
            closures: FxHashMap::default(),
            agreed: Vec::new(),
            common: Common::default(),
            transposed: FxHashMap::default(),
            fixed: FxHashMap::default(),
            failed: false,
        }
    }

    fn value(&self, id: NodeId) -> Rc<Value<Bound<EventSet>, Bound<Rel>>> {
        self.bounds[id.index()]
            .clone()
            .expect("bounds were computed")
    }

    fn executes(&mut self, gates: &mut Gates, i: usize) -> Lit {
        if self.algebra.must.has(i) {
            Lit::TRUE
        } else {
            self.leaves.executes(gates, i)
        }
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
        if gates.deep() {
            return Lit::FALSE;
        }
        self.solve_group_of(gates, id);
        let lit = match self.model.node(id).op {
            NodeOp::Base(_) | NodeOp::Empty | NodeOp::Universe => {
                unreachable!("sets of the skeleton are known")
            }
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
        self.transposed
            .entry(id)
            .or_insert_with(|| value.rel().may.inverse())
            .successors(j)
            .collect()
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
        if gates.deep() {
            return Lit::FALSE;
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
                let sequence = SequenceNode {
                    seq: id,
                    a: *a,
                    b: *b,
                };
                self.sequence(gates, sequence, i, j)
            }
            NodeOp::Inverse(a) => self.cell(gates, *a, j, i),
            NodeOp::Plus(a) => self.closed(gates, id, *a, i, j),
            NodeOp::Empty | NodeOp::Universe | NodeOp::Domain(_) | NodeOp::Range(_) => {
                unreachable!("models are typed: a relation was expected")
            }
        };
        self.cells[id.index()].insert(key, lit);
        lit
    }

    /// Unfolds the recursive definition that contains a node, before any cell inside it is built.
    /// Unfolding discards the cells built so far.
    fn solve_group_of(&mut self, gates: &mut Gates, id: NodeId) {
        let model = self.model;
        if let Some(group) = model.groups.iter().find(|g| g.range.contains(&id.0))
            && !self.fixed.contains_key(&group.vars[0])
        {
            self.recursive(gates, group.vars[0], 0, 0);
        }
    }

    /// A cell of a recursive definition that is not a closure. The first call unfolds the whole
    /// group from the empty relations.
    fn recursive(&mut self, gates: &mut Gates, var: NodeId, i: usize, j: usize) -> Lit {
        if let Some(cells) = self.fixed.get(&var) {
            return cells
                .get(&(i as u32, j as u32))
                .copied()
                .unwrap_or(Lit::FALSE);
        }
        let model = self.model;
        let group: &FixGroup = model
            .groups
            .iter()
            .find(|g| g.vars.contains(&var))
            .expect("variables belong to a group");
        let open: Vec<Vec<(usize, usize)>> =
            group.vars.iter().map(|&v| self.open_pairs(v)).collect();
        for &v in &group.vars {
            self.fixed.insert(v, FxHashMap::default());
        }
        // Each round adds a cell or is the last one. So as many rounds as there are open cells
        // reach the fixpoint, even if its gates, which grow in every round, never repeat.
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
                return self.fixed[&var]
                    .get(&(i as u32, j as u32))
                    .copied()
                    .unwrap_or(Lit::FALSE);
            }
        }
        self.failed = true;
        Lit::FALSE
    }

    fn open_pairs(&self, id: NodeId) -> Vec<(usize, usize)> {
        match &*self.value(id) {
            Value::Rel(r) => r.may.clone().minus(&r.must).iter().collect(),
            Value::Set(s) => s
                .may
                .clone()
                .minus(&s.must)
                .iter()
                .map(|i| (i, i))
                .collect(),
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
                for i in self
                    .algebra
                    .clone()
                    .may
                    .iter()
                    .filter(|&i| v.rel().may.has(i, i))
                {
                    let bad = self.edge(gates, id, i, i);
                    all.push(!bad);
                }
                gates.all(all)
            }
            (Test::Acyclic, _) => {
                let steps = self.steps(id);
                let none = Rel::empty(self.algebra.may.universe_len());
                let may = steps
                    .iter()
                    .fold(none, |all, &(part, _)| all.or(&self.value(part).rel().may));
                let may = may.restricted(&self.algebra.may);
                self.acyclic(gates, may, |c, gates, i, j| c.step(gates, &steps, i, j))
            }
        }
    }

    /// Whether a relation has only these pairs; for a set, whether it is empty.
    pub fn is_within(&mut self, gates: &mut Gates, id: NodeId, pairs: &Rel) -> Lit {
        let value = self.value(id);
        let Value::Rel(rel) = &*value else {
            return self.test(gates, Test::Empty, id);
        };
        let mut all = Vec::new();
        for (i, j) in rel.may.iter().filter(|&(i, j)| !pairs.has(i, j)) {
            if gates.tick(0) {
                break;
            }
            let bad = self.edge(gates, id, i, j);
            all.push(!bad);
        }
        gates.all(all)
    }

    /// A cell and the execution of both its events.
    fn edge(&mut self, gates: &mut Gates, id: NodeId, i: usize, j: usize) -> Lit {
        let (a, b) = (self.executes(gates, i), self.executes(gates, j));
        let x = self.cell(gates, id, i, j);
        gates.all([a, x, b])
    }
}
