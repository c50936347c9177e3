//! Encodes the free relations as clauses: sources of reads, orders, and last writes.
//!
//! # Invariants
//! - A clause constrains events only in executions in which they execute.

use rustc_hash::FxHashMap;

use super::encode::{Encoding, at_most_one, exactly_one};
use super::leaves::{Cases, CircuitValue, compare_cases};
use crate::facts::Facts;
use crate::facts::bounds::TaskBounds;
use crate::skeleton::EdgeKind;
use cat::algebra::bounds::Bound;
use cat::algebra::circuit::CircuitLeaves;
use cat::algebra::gates::{Gates, Lit};
use cat::model::ir::{FreeShape, NodeId};
use cat::rel::{EventSet, Rel, ones};
use program::Ty;

impl Encoding<'_> {
    /// The literal that two accesses go to the same memory, by their addresses.
    fn same_memory(&mut self, a: usize, b: usize) -> Lit {
        let facts = self.facts.clone();
        let sk = &facts.sk;
        let (x, y) = (
            sk.events[a].addr.expect("an access"),
            sk.events[b].addr.expect("an access"),
        );
        let (x, y) = (self.term(x), self.term(y));
        compare_cases(&mut self.gates, &x, &y, |p, q| {
            let memory = sk.accessed(a, p);
            memory.is_some() && memory == sk.accessed(b, q)
        })
    }

    /// The literal that an access has an address without memory.
    fn astray(&mut self, e: usize) -> Lit {
        if !self.facts.domains.may_fault[e] {
            return Lit::FALSE;
        }
        let facts = self.facts.clone();
        let sk = &facts.sk;
        let cases = self.term(sk.events[e].addr.expect("an access"));
        let lits: Vec<Lit> = cases
            .iter()
            .filter(|c| sk.accessed(e, c.0).is_none())
            .map(|c| c.1)
            .collect();
        self.gates.any(lits)
    }

    /// The values relation: one source for each read that executes, and its value.
    pub(super) fn sources(&mut self, f: usize) {
        let facts = self.facts.clone();
        let sk = &facts.sk;
        let may = self.start.free[f].may.clone();
        for r in 0..sk.len() {
            if !sk.events[r].is_read() || !self.start.algebra.may.has(r) {
                continue;
            }
            if self.gates.tick(self.clauses.len()) {
                return;
            }
            let sources: Vec<usize> = (0..sk.len())
                .filter(|&w| self.start.algebra.may.has(w) && may.has(w, r))
                .collect();
            let reads = self.executes(r);
            let astray = self.astray(r);
            let lits: Vec<Lit> = match sources.as_slice() {
                [_] if astray == Lit::FALSE => vec![Lit::TRUE],
                _ => sources.iter().map(|_| self.gates.input()).collect(),
            };
            let mut some = lits.clone();
            some.extend([!reads, astray]);
            self.clauses.push(some);
            at_most_one(&mut self.gates, &mut self.clauses, &lits);
            let mine = self.value(sk.events[r].value.expect("reads have values"));
            for (&w, &lit) in sources.iter().zip(&lits) {
                self.inner.leaves.free[f].insert((w as u32, r as u32), lit);
                let mut demands = vec![self.executes(w), !astray];
                demands.push(self.same_memory(r, w));
                demands.push(self.inner.cell(
                    &mut self.gates,
                    facts.task.model.free[f].within,
                    w,
                    r,
                ));
                for d in demands {
                    if d != Lit::TRUE {
                        self.clauses.push(vec![!lit, !reads, d]);
                    }
                }
                let theirs = self.value(facts.domains.seen(sk, w));
                for same in same_value(&mut self.gates, &mine, &theirs, sk.events[r].ty) {
                    self.clauses.push([vec![!lit, !reads], same].concat());
                }
            }
            if astray != Lit::FALSE {
                for zero in same_value(
                    &mut self.gates,
                    &mine,
                    &CircuitValue::constant(0),
                    sk.events[r].ty,
                ) {
                    self.clauses.push([vec![!astray, !reads], zero].concat());
                }
            }
        }
    }

    /// A free order: one input per open pair, transitivity and the declared bounds as clauses.
    pub(super) fn order(&mut self, f: usize) {
        let facts = self.facts.clone();
        let decl = &facts.task.model.free[f];
        let within = self.bound(decl.within);
        let contains = decl.containing.map(|c| self.bound(c));
        let covers = decl.covering.map(|c| self.bound(c));
        let free_bound = self.start.free[f].clone();
        if !self.order_inputs(f, &free_bound, covers.as_ref())
            || !self.order_within(f, decl.within, &free_bound, &within)
        {
            return;
        }
        if let (Some(c), Some(bound)) = (decl.containing, contains) {
            for (i, j) in bound.may.iter() {
                let wanted = self.inner.cell(&mut self.gates, c, i, j);
                let clause = vec![
                    !wanted,
                    self.free_cell(f, i, j),
                    !self.executes(i),
                    !self.executes(j),
                ];
                self.clauses.push(clause);
            }
        }
        if let (Some(c), Some(bound)) = (decl.covering, covers) {
            self.order_covers(f, c, &bound);
        }
        // Transitivity inside `within` makes an order acyclic if `within` itself is transitive.
        let all = &self.start.algebra.clone().may;
        if !free_bound
            .may
            .seq(&free_bound.may, all)
            .is_subset(&within.may.clone().or(&Rel::identity_on(all)))
        {
            let gates = &mut self.gates;
            let l = self
                .inner
                .acyclic(gates, free_bound.may.clone(), |c, _, i, j| {
                    c.leaves.free[f]
                        .get(&(i as u32, j as u32))
                        .copied()
                        .unwrap_or(Lit::FALSE)
                });
            self.clauses.push(vec![l]);
        }
    }

    /// The literal that a pair is in a free order.
    fn free_cell(&self, f: usize, i: usize, j: usize) -> Lit {
        self.inner.leaves.free[f]
            .get(&(i as u32, j as u32))
            .copied()
            .unwrap_or(Lit::FALSE)
    }

    /// Makes the literals of the pairs of a free order. Returns false if the budget is exhausted.
    fn order_inputs(
        &mut self,
        f: usize,
        free_bound: &Bound<Rel>,
        covers: Option<&Bound<Rel>>,
    ) -> bool {
        let pairs: Vec<(usize, usize)> = free_bound.may.iter().collect();
        for &(i, j) in &pairs {
            if self.gates.tick(self.clauses.len()) {
                return false;
            }
            let key = (i as u32, j as u32);
            if free_bound.must.has(i, j) {
                self.inner.leaves.free[f].insert(key, Lit::TRUE);
                continue;
            }
            let back = self.inner.leaves.free[f]
                .get(&(j as u32, i as u32))
                .copied();
            let total = covers.is_some_and(|c| c.must.has(i, j) || c.must.has(j, i));
            let lit = match back {
                Some(l) if total => !l,
                _ => self.gates.input(),
            };
            self.inner.leaves.free[f].insert(key, lit);
        }
        true
    }

    /// Keeps a free order inside `within`, antisymmetric and transitive. Returns false if the
    /// budget is exhausted.
    fn order_within(
        &mut self,
        f: usize,
        id: NodeId,
        free_bound: &Bound<Rel>,
        within: &Bound<Rel>,
    ) -> bool {
        let algebra = self.start.algebra.clone();
        let implied = ImpliedTriples::new(free_bound, within, &algebra.must);
        for i in 0..self.facts.sk.len() {
            for j in free_bound.may.successors(i) {
                if self.gates.tick(self.clauses.len()) {
                    return false;
                }
                let ij = self.free_cell(f, i, j);
                let there: Vec<Lit> = vec![!self.executes(i), !self.executes(j)];
                if !within.must.has(i, j) {
                    let inside = self.inner.cell(&mut self.gates, id, i, j);
                    self.clauses
                        .push([vec![!ij, inside], there.clone()].concat());
                }
                if i < j && free_bound.may.has(j, i) {
                    self.clauses.push(vec![!ij, !self.free_cell(f, j, i)]);
                }
                for k in implied.others(i, j) {
                    let (jk, ik) = (self.free_cell(f, j, k), self.free_cell(f, i, k));
                    let inside = self.inner.cell(&mut self.gates, id, i, k);
                    let mut clause = vec![!ij, !jk, ik, !inside];
                    clause.extend(&there);
                    clause.push(!self.executes(k));
                    self.clauses.push(clause);
                }
            }
        }
        true
    }

    /// Decides each pair that a free order must cover, in one direction or the other.
    fn order_covers(&mut self, f: usize, id: NodeId, bound: &Bound<Rel>) {
        for (i, j) in bound.may.iter() {
            if i == j || bound.may.has(j, i) && j < i {
                continue;
            }
            let mut wanted = self.inner.cell(&mut self.gates, id, i, j);
            if bound.may.has(j, i) {
                let other = self.inner.cell(&mut self.gates, id, j, i);
                wanted = self.gates.or(wanted, other);
            }
            let there = vec![!self.executes(i), !self.executes(j)];
            let clause = vec![!wanted, self.free_cell(f, i, j), self.free_cell(f, j, i)];
            self.clauses.push([clause, there].concat());
        }
    }

    /// Barriers impose an order in time, together with program order: waits in a cycle never pass.
    pub(super) fn barrier_order(&mut self) {
        if !self.facts.check_barrier_order {
            return;
        }
        let facts = self.facts.clone();
        let sk = &facts.sk;
        let mut may = sk.program_order().clone();
        let mut edges: FxHashMap<(usize, usize), Lit> =
            may.iter().map(|p| (p, Lit::TRUE)).collect();
        for &(a, b, cond) in sk.edges.of(EdgeKind::BarrierOrder) {
            let (i, j) = (a.index(), b.index());
            may.insert(i, j);
            let l = self.cond(cond);
            let old = edges.get(&(i, j)).copied().unwrap_or(Lit::FALSE);
            edges.insert((i, j), self.gates.or(old, l));
        }
        let l = self.inner.acyclic(
            &mut self.gates,
            may.restricted(&self.start.algebra.may),
            |_, _, i, j| edges[&(i, j)],
        );
        self.clauses.push(vec![l]);
    }

    /// Chooses one write without executed successor for each observed cell.
    pub(super) fn final_writes(&mut self) {
        let facts = self.facts.clone();
        let order = facts.task.model.finals;
        for (&cell, writers) in facts.observed_cells.iter().zip(&facts.at_cell) {
            let mut here: Vec<(usize, Lit)> = Vec::new();
            for &(w, cond) in writers {
                if !self.start.algebra.may.has(w) {
                    continue;
                }
                let (at, there) = (self.cond(cond), self.executes(w));
                here.push((w, self.gates.and(at, there)));
            }
            let last: Vec<(usize, Lit)> = match here.as_slice() {
                [(w, _)] => vec![(*w, Lit::TRUE)],
                _ => here.iter().map(|&(w, _)| (w, self.gates.input())).collect(),
            };
            let lits: Vec<Lit> = last.iter().map(|l| l.1).collect();
            exactly_one(&mut self.gates, &mut self.clauses, &lits);
            for (&(w, fin), &(_, at)) in last.iter().zip(&here) {
                self.clauses.push(vec![!fin, at]);
                for &(other, also) in here.iter().filter(|o| o.0 != w) {
                    let after = self.inner.leaves.free(&mut self.gates, order, w, other);
                    if after != Lit::FALSE {
                        self.clauses.push(vec![!fin, !also, !after]);
                    }
                }
            }
            self.finals.push((cell, last));
        }
    }
}

/// The number of transitivity clauses for triples of free orders; stops counting beyond `most`.
pub(super) fn triples(facts: &Facts<'_>, start: &TaskBounds, most: usize) -> usize {
    let mut count = 0;
    for (f, order) in facts
        .task
        .model
        .free
        .iter()
        .zip(&start.free)
        .filter(|(f, _)| f.shape == FreeShape::Order)
    {
        let within = start.values[f.within.index()]
            .as_deref()
            .expect("bounds were computed")
            .rel();
        let implied = ImpliedTriples::new(order, within, &start.algebra.must);
        for (i, j) in order.may.iter() {
            if count > most {
                return count;
            }
            count += implied.others(i, j).len();
        }
    }
    count
}

/// Clauses that equate the read and the written value, in the type of the read.
fn same_value(
    gates: &mut Gates,
    read: &CircuitValue,
    written: &CircuitValue,
    ty: Ty,
) -> Vec<Vec<Lit>> {
    if let (CircuitValue::Cases(read), CircuitValue::Cases(written)) = (read, written) {
        let clauses = written.iter().map(|&(v, l)| vec![!l, case_of(read, ty, v)]);
        return clauses.filter(|clause| clause[1] != Lit::TRUE).collect();
    }
    let (read, written) = (read.word(gates), written.word(gates).wrapped(ty));
    let bits = read
        .bits()
        .iter()
        .zip(written.bits())
        .take(usize::from(ty.bits));
    bits.filter(|(r, w)| r != w)
        .flat_map(|(&r, &w)| [vec![!r, w], vec![r, !w]])
        .collect()
}

/// The literal that a read has a value.
fn case_of(read: &Cases, ty: Ty, v: i64) -> Lit {
    read.iter()
        .find(|c| c.0 == ty.wrap(v))
        .map_or(Lit::FALSE, |c| c.1)
}

/// Finds triples of a partly known order whose transitivity follows from other triples and from
/// antisymmetry.
///
/// Take known pairs `i`, `m` and `m`, `j`. Then `j` before `k` gives `m` before `k`, and that gives
/// `i` before `k`; the other end is symmetric. If `k` is known to be before `i`, then `i` before
/// `j` gives `k` before `j`, which contradicts `j` before `k`. The triples used here have clauses,
/// or follow by shorter steps. [`ImpliedTriples::new`] checks that they hold without a condition.
struct ImpliedTriples<'a> {
    order: &'a Bound<Rel>,
    /// The pairs that the order may contain.
    within: &'a Rel,
    /// Known pairs with another event known between them.
    steps: Rel,
    /// Known pairs, reversed.
    back: Rel,
    /// Events that surely execute, if the order on them is fully determined by `within` and its
    /// known part is transitive.
    sure: Option<&'a EventSet>,
}

impl<'a> ImpliedTriples<'a> {
    fn new(order: &'a Bound<Rel>, within: &'a Bound<Rel>, sure: &'a EventSet) -> Self {
        let known = &order.must;
        let steps = known.seq(known, sure);
        let inside = within.must.clone().restricted(sure);
        let whole = inside.inverse() == inside
            && within.may.clone().restricted(sure) == inside
            && inside
                .seq(&inside, sure)
                .is_subset(&inside.clone().or(&Rel::identity_on(sure)))
            && steps.is_subset(known);
        let back = known.inverse();
        ImpliedTriples {
            order,
            within: &within.may,
            steps,
            back,
            sure: whole.then_some(sure),
        }
    }

    /// The events behind `j` that need a clause to be behind `i`, which comes before `j`.
    fn others(&self, i: usize, j: usize) -> Vec<usize> {
        let Bound { must, may } = self.order;
        let sure = self
            .sure
            .filter(|sure| sure.has(i) && sure.has(j))
            .map(EventSet::words);
        let whole = self.steps.has(i, j);
        let words = may.row(j).iter().enumerate().map(|(w, behind)| {
            let implied = if whole {
                !0
            } else {
                self.steps.row(j)[w] | self.back.row(i)[w]
            };
            let implied = implied & sure.map_or(0, |sure| sure[w]);
            behind & self.within.row(i)[w] & !must.row(i)[w] & !implied
        });
        ones(&words.collect::<Vec<u64>>())
            .filter(|&k| k != i)
            .collect()
    }
}
