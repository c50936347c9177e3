//! A task as a circuit: values, sources, orders, final writes, axioms.
//!
//! # Invariants
//! - A value is a list of (integer, condition): the conditions of one value exclude each other and cover everything,
//!   given that the reads in it execute.
//! - Leaf cells speak of two events given that both execute.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::algebra::bounds::Bound;
use crate::algebra::circuit::{Circuit, CircuitLeaves};
use crate::algebra::gates::{Budget, Gates, Lit};
use crate::check::bounds::TaskBounds;
use crate::check::execution::Execution;
use crate::check::query::Deadline;
use crate::check::task::Task;
use crate::litmus::{Atom as PropAtom, Observable, Prop};
use crate::model::ir::{FreeId, NodeId, Shape};
use crate::program::CmpOp;
use crate::rel::{EventSet, Rel};
use crate::skeleton::base::Base;
use crate::skeleton::domain::fits;
use crate::skeleton::{Atom, CellId, Cond, Term, TermId};

/// A value by cases.
type Cases = Vec<(i64, Lit)>;

/// The circuit of a task, built on demand.
pub(super) struct Encoding<'a> {
    pub(super) gates: Gates,
    /// What holds in every execution.
    pub(super) clauses: Vec<Vec<Lit>>,
    task: Rc<Task<'a>>,
    start: Rc<TaskBounds>,
    inner: Circuit<'a, LeafGates<'a>>,
    finals: BTreeMap<CellId, Vec<(usize, Lit)>>,
    axioms: Vec<Option<Lit>>,
    flags: Vec<Option<Lit>>,
}

/// Gates of leaves: guards, values, open cells.
struct LeafGates<'a> {
    task: Rc<Task<'a>>,
    conds: FxHashMap<Cond, Lit>,
    terms: FxHashMap<TermId, Rc<Cases>>,
    choices: Vec<Lit>,
    /// Values of reads, as inputs.
    reads: Vec<Option<Rc<Cases>>>,
    open: FxHashMap<(String, u32, u32), Cond>,
    free: Vec<FxHashMap<(u32, u32), Lit>>,
}

impl LeafGates<'_> {
    fn cond(&mut self, gates: &mut Gates, c: Cond) -> Lit {
        let task = self.task.clone();
        let pool = &task.sk.pool;
        let Some((atom, low, high)) = pool.decision(c) else {
            return Lit::constant(c == Cond::TRUE);
        };
        if let Some(&l) = self.conds.get(&c) {
            return l;
        }
        let test = match pool.atom(atom) {
            Atom::Choice(i) => self.choices[i as usize],
            Atom::Eq(ty, a, b) => self.compare(gates, a, b, |x, y| CmpOp::Eq.holds(ty, x, y)),
            Atom::Lt(ty, a, b) => self.compare(gates, a, b, |x, y| CmpOp::Lt.holds(ty, x, y)),
        };
        let (low, high) = (self.cond(gates, low), self.cond(gates, high));
        let lit = gates.ite(test, high, low);
        self.conds.insert(c, lit);
        lit
    }

    fn compare(&mut self, gates: &mut Gates, a: TermId, b: TermId, holds: impl Fn(i64, i64) -> bool) -> Lit {
        let (a, b) = (self.term(gates, a), self.term(gates, b));
        compare_cases(gates, &a, &b, holds)
    }

    fn term(&mut self, gates: &mut Gates, t: TermId) -> Rc<Cases> {
        if let Some(c) = self.terms.get(&t) {
            return c.clone();
        }
        let cases = match self.task.sk.pool.term(t) {
            Term::Const(v) => Rc::new(vec![(v, Lit::TRUE)]),
            Term::Read(e) => self.reads[e.index()].clone().expect("reads have inputs"),
            Term::Cast(ty, a) => {
                let a = self.term(gates, a);
                collect(gates, a.iter().map(|&(v, l)| (ty.wrap(v), l)))
            }
            Term::Ite(c, a, b) => {
                let c = self.cond(gates, c);
                let (a, b) = (self.term(gates, a), self.term(gates, b));
                let mut list = Vec::new();
                for &(v, l) in a.iter() {
                    list.push((v, gates.and(c, l)));
                }
                for &(v, l) in b.iter() {
                    list.push((v, gates.and(!c, l)));
                }
                collect(gates, list)
            }
            Term::Bin(op, ty, a, b) => {
                let (a, b) = (self.term(gates, a), self.term(gates, b));
                let mut list = Vec::new();
                for &(x, lx) in a.iter() {
                    for &(y, ly) in b.iter() {
                        list.push((op.apply(ty, x, y), gates.and(lx, ly)));
                    }
                }
                collect(gates, list)
            }
        };
        self.terms.insert(t, cases.clone());
        cases
    }
}

/// Joins cases of equal value.
fn collect(gates: &mut Gates, list: impl IntoIterator<Item = (i64, Lit)>) -> Rc<Cases> {
    let mut by_value: BTreeMap<i64, Vec<Lit>> = BTreeMap::new();
    for (v, l) in list {
        if l != Lit::FALSE {
            by_value.entry(v).or_default().push(l);
        }
    }
    Rc::new(by_value.into_iter().map(|(v, ls)| (v, gates.any(ls))).collect())
}

fn compare_cases(gates: &mut Gates, a: &Cases, b: &Cases, holds: impl Fn(i64, i64) -> bool) -> Lit {
    let (mut yes, mut no) = (Vec::new(), Vec::new());
    for &(x, lx) in a {
        for &(y, ly) in b {
            let both = gates.and(lx, ly);
            if holds(x, y) { yes.push(both) } else { no.push(both) }
        }
    }
    // Exactly one case holds, so the shorter list is enough.
    if no.is_empty() {
        Lit::TRUE
    } else if no.len() < yes.len() {
        !gates.any(no)
    } else {
        gates.any(yes)
    }
}

impl CircuitLeaves for LeafGates<'_> {
    fn executes(&mut self, gates: &mut Gates, event: usize) -> Lit {
        self.cond(gates, self.task.sk.events[event].guard)
    }

    fn base(&mut self, gates: &mut Gates, name: &str, i: usize, j: usize) -> Lit {
        let cond = self.open[&(name.to_string(), i as u32, j as u32)];
        self.cond(gates, cond)
    }

    fn free(&mut self, _: &mut Gates, id: FreeId, i: usize, j: usize) -> Lit {
        self.free[id.0 as usize].get(&(i as u32, j as u32)).copied().unwrap_or(Lit::FALSE)
    }
}

/// Encodes a task.
pub(super) fn with_encoding<'a>(task: &Rc<Task<'a>>, start: Rc<TaskBounds>, deadline: Deadline) -> Encoding<'a> {
    let sk = &task.sk;
    let n = sk.len();
    let mut gates = Gates::within(Budget { deadline: deadline.0, ..Budget::default() });
    let mut clauses = Vec::new();
    let choices = (0..sk.pool.choice_count()).map(|_| gates.input()).collect();
    let mut reads = vec![None; n];
    for (r, event) in sk.events.iter().enumerate() {
        if !event.is_read() || !start.algebra.may.has(r) {
            continue;
        }
        let domain = task.domains.of(event.value.expect("reads have values"));
        let cases: Cases = match domain.as_slice() {
            [one] => vec![(*one, Lit::TRUE)],
            [a, b] => {
                let first = gates.input();
                vec![(*a, first), (*b, !first)]
            }
            _ => {
                let cases: Cases = domain.iter().map(|&v| (v, gates.input())).collect();
                let lits: Vec<Lit> = cases.iter().map(|c| c.1).collect();
                exactly_one(&mut gates, &mut clauses, &lits);
                cases
            }
        };
        reads[r] = Some(Rc::new(cases));
    }
    let mut open = FxHashMap::default();
    for (name, base) in &task.bases {
        if let Base::Rel(r) = base {
            for &(i, j, cond) in &r.open {
                open.insert((name.clone(), i as u32, j as u32), cond);
            }
        }
    }
    let leaves = LeafGates {
        task: task.clone(),
        conds: FxHashMap::default(),
        terms: FxHashMap::default(),
        choices,
        reads,
        open,
        free: vec![FxHashMap::default(); task.model.free.len()],
    };
    let mut e = Encoding {
        gates,
        clauses,
        task: task.clone(),
        inner: Circuit::new(task.model, start.algebra.clone(), start.values.clone(), leaves),
        start,
        finals: BTreeMap::new(),
        axioms: vec![None; task.model.axioms.len()],
        flags: vec![None; task.model.flags.len()],
    };
    for &c in &sk.constraints {
        let l = e.cond(c);
        e.clauses.push(vec![l]);
    }
    for (i, f) in task.model.free.iter().enumerate() {
        match f.shape {
            Shape::Function => e.sources(i),
            Shape::Order => e.order(i),
        }
    }
    e.barrier_order();
    e.final_writes();
    e
}

impl Encoding<'_> {
    /// A condition of the skeleton.
    pub(super) fn cond(&mut self, c: Cond) -> Lit {
        self.inner.leaves.cond(&mut self.gates, c)
    }

    fn executes(&mut self, e: usize) -> Lit {
        if self.start.algebra.must.has(e) { Lit::TRUE } else { self.inner.leaves.executes(&mut self.gates, e) }
    }

    fn term(&mut self, t: TermId) -> Rc<Cases> {
        self.inner.leaves.term(&mut self.gates, t)
    }

    fn bound(&self, id: NodeId) -> Bound<Rel> {
        self.start.values[id.index()].as_deref().expect("bounds were computed").rel().clone()
    }

    /// Whether a recursive definition was given up.
    pub(super) fn failed(&self) -> bool {
        self.inner.failed
    }

    /// Whether an axiom holds.
    pub(super) fn axiom(&mut self, i: usize) -> Lit {
        if let Some(l) = self.axioms[i] {
            return l;
        }
        let a = &self.task.model.axioms[i];
        let l = self.inner.test(&mut self.gates, a.test, a.node);
        let l = if a.negated { !l } else { l };
        self.axioms[i] = Some(l);
        l
    }

    /// Whether a flag is raised.
    pub(super) fn flag(&mut self, i: usize) -> Lit {
        if let Some(l) = self.flags[i] {
            return l;
        }
        let f = &self.task.model.flags[i];
        let l = self.inner.test(&mut self.gates, f.test, f.node);
        let l = if f.negated { !l } else { l };
        self.flags[i] = Some(l);
        l
    }

    /// When two accesses are to the same memory, as far as their addresses say.
    fn same_memory(&mut self, a: usize, b: usize) -> Lit {
        let task = self.task.clone();
        let sk = &task.sk;
        let (x, y) = (sk.events[a].addr.expect("an access"), sk.events[b].addr.expect("an access"));
        let (x, y) = (self.term(x), self.term(y));
        let cell = |e: usize, address: i64| {
            sk.memory.at(address).filter(|&c| fits(sk, &sk.events[e], c)).map(|c| sk.memory.cell(c).memory)
        };
        compare_cases(&mut self.gates, &x, &y, |p, q| {
            let c = cell(a, p);
            c.is_some() && c == cell(b, q)
        })
    }

    /// When an access names no memory.
    fn astray(&mut self, e: usize) -> Lit {
        if !self.task.domains.may_fault[e] {
            return Lit::FALSE;
        }
        let task = self.task.clone();
        let sk = &task.sk;
        let cases = self.term(sk.events[e].addr.expect("an access"));
        let bad = |&&(a, _): &&(i64, Lit)| sk.memory.at(a).is_none_or(|c| !fits(sk, &sk.events[e], c));
        let lits: Vec<Lit> = cases.iter().filter(bad).map(|c| c.1).collect();
        self.gates.any(lits)
    }

    /// The values relation: one source for each read that executes, and its value.
    fn sources(&mut self, f: usize) {
        let task = self.task.clone();
        let sk = &task.sk;
        let within = self.bound(task.model.free[f].within).may;
        for r in 0..sk.len() {
            if !sk.events[r].is_read() || !self.start.algebra.may.has(r) {
                continue;
            }
            if self.gates.tick(self.clauses.len()) {
                return;
            }
            let sources: Vec<usize> = (0..sk.len())
                .filter(|&w| {
                    sk.events[w].is_write()
                        && self.start.algebra.may.has(w)
                        && within.has(w, r)
                        && task.domains.may_overlap(sk, r, w)
                })
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
            let mine = self.term(sk.events[r].value.expect("reads have values"));
            for (&w, &lit) in sources.iter().zip(&lits) {
                self.inner.leaves.free[f].insert((w as u32, r as u32), lit);
                let mut demands = vec![self.executes(w), !astray];
                demands.push(self.same_memory(r, w));
                demands.push(self.inner.cell(&mut self.gates, task.model.free[f].within, w, r));
                for d in demands {
                    if d != Lit::TRUE {
                        self.clauses.push(vec![!lit, !reads, d]);
                    }
                }
                let theirs = self.term(sk.events[w].value.expect("writes have values"));
                for &(v, l) in theirs.iter() {
                    let v = sk.events[r].ty.wrap(v);
                    let case = mine.iter().find(|c| c.0 == v).map_or(Lit::FALSE, |c| c.1);
                    if case != Lit::TRUE {
                        self.clauses.push(vec![!lit, !reads, !l, case]);
                    }
                }
            }
            if astray != Lit::FALSE {
                let zero = mine.iter().find(|c| c.0 == 0).map_or(Lit::FALSE, |c| c.1);
                self.clauses.push(vec![!astray, !reads, zero]);
            }
        }
    }

    /// A free order: one input per open pair, transitivity and the declared bounds as clauses.
    fn order(&mut self, f: usize) {
        let task = self.task.clone();
        let decl = &task.model.free[f];
        let n = task.sk.len();
        let within = self.bound(decl.within);
        let contains = decl.containing.map(|c| self.bound(c));
        let covers = decl.covering.map(|c| self.bound(c));
        let free_bound = self.start.free[f].clone();
        let pairs: Vec<(usize, usize)> = free_bound.may.iter().collect();
        for &(i, j) in &pairs {
            let key = (i as u32, j as u32);
            if free_bound.must.has(i, j) {
                self.inner.leaves.free[f].insert(key, Lit::TRUE);
                continue;
            }
            let back = self.inner.leaves.free[f].get(&(j as u32, i as u32)).copied();
            let total = covers.as_ref().is_some_and(|c| c.must.has(i, j) || c.must.has(j, i));
            let lit = match back {
                Some(l) if total => !l,
                _ => self.gates.input(),
            };
            self.inner.leaves.free[f].insert(key, lit);
        }
        let cell = |e: &Self, i: usize, j: usize| {
            e.inner.leaves.free[f].get(&(i as u32, j as u32)).copied().unwrap_or(Lit::FALSE)
        };
        for i in 0..n {
            for j in free_bound.may.successors(i) {
                if self.gates.tick(self.clauses.len()) {
                    return;
                }
                let ij = cell(self, i, j);
                let there: Vec<Lit> = vec![!self.executes(i), !self.executes(j)];
                if !within.must.has(i, j) {
                    let inside = self.inner.cell(&mut self.gates, decl.within, i, j);
                    self.clauses.push([vec![!ij, inside], there.clone()].concat());
                }
                if i < j && free_bound.may.has(j, i) {
                    self.clauses.push(vec![!ij, !cell(self, j, i)]);
                }
                for k in free_bound.may.successors(j) {
                    if k == i {
                        continue;
                    }
                    let (jk, ik) = (cell(self, j, k), cell(self, i, k));
                    if !within.may.has(i, k) || ik == Lit::TRUE {
                        continue;
                    }
                    let inside = self.inner.cell(&mut self.gates, decl.within, i, k);
                    let mut clause = vec![!ij, !jk, ik, !inside];
                    clause.extend(&there);
                    clause.push(!self.executes(k));
                    self.clauses.push(clause);
                }
            }
        }
        if let (Some(c), Some(bound)) = (decl.containing, contains) {
            for (i, j) in bound.may.iter() {
                let wanted = self.inner.cell(&mut self.gates, c, i, j);
                let clause = vec![!wanted, cell(self, i, j), !self.executes(i), !self.executes(j)];
                self.clauses.push(clause);
            }
        }
        if let (Some(c), Some(bound)) = (decl.covering, covers) {
            for (i, j) in bound.may.iter() {
                if i == j || bound.may.has(j, i) && j < i {
                    continue;
                }
                let mut wanted = self.inner.cell(&mut self.gates, c, i, j);
                if bound.may.has(j, i) {
                    let other = self.inner.cell(&mut self.gates, c, j, i);
                    wanted = self.gates.or(wanted, other);
                }
                let there = vec![!self.executes(i), !self.executes(j)];
                let clause = vec![!wanted, cell(self, i, j), cell(self, j, i)];
                self.clauses.push([clause, there].concat());
            }
        }
        // Transitivity inside `within` makes an order acyclic if `within` is transitive itself.
        let all = &self.start.algebra.clone().may;
        if !free_bound.may.seq(&free_bound.may, all).is_subset(&within.may.clone().or(&Rel::identity_on(all))) {
            let gates = &mut self.gates;
            let l = self.inner.acyclic(gates, free_bound.may.clone(), |c, _, i, j| {
                c.leaves.free[f].get(&(i as u32, j as u32)).copied().unwrap_or(Lit::FALSE)
            });
            self.clauses.push(vec![l]);
        }
    }

    fn barrier_order(&mut self) {
        if !self.task.check_barrier_order {
            return;
        }
        let task = self.task.clone();
        let sk = &task.sk;
        let mut may = sk.program_order();
        let mut edges: FxHashMap<(usize, usize), Lit> = may.iter().map(|p| (p, Lit::TRUE)).collect();
        for &(a, b, cond) in &sk.barrier_order {
            let (i, j) = (a.index(), b.index());
            may.insert(i, j);
            let l = self.cond(cond);
            let old = edges.get(&(i, j)).copied().unwrap_or(Lit::FALSE);
            edges.insert((i, j), self.gates.or(old, l));
        }
        let l = self
            .inner
            .acyclic(&mut self.gates, may.restricted(&self.start.algebra.may), |_, _, i, j| edges[&(i, j)]);
        self.clauses.push(vec![l]);
    }

    /// For each observed cell one write without executed successor.
    fn final_writes(&mut self) {
        let task = self.task.clone();
        let order = task.model.finals;
        for (&cell, writers) in task.observed_cells.iter().zip(&task.at_cell) {
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
            self.finals.insert(cell, last);
        }
    }

    /// The final value of an observable, by cases.
    pub(super) fn observable(&mut self, o: Observable) -> Cases {
        let task = self.task.clone();
        let sk = &task.sk;
        if let Observable::Reg(t, r) = o {
            return self.term(sk.final_regs[t.0 as usize][r.0 as usize]).to_vec();
        }
        let Some(last) = sk.observed_cell(o).and_then(|c| self.finals.get(&c).cloned()) else {
            return vec![(0, Lit::TRUE)];
        };
        let mut list = Vec::new();
        for (w, fin) in last {
            let value = self.term(sk.events[w].value.expect("writes have values"));
            for &(v, l) in value.iter() {
                list.push((v, self.gates.and(fin, l)));
            }
        }
        collect(&mut self.gates, list).to_vec()
    }

    /// A proposition over final values.
    pub(super) fn prop(&mut self, p: &Prop) -> Lit {
        match p {
            Prop::And(ps) => {
                let ls: Vec<Lit> = ps.iter().map(|p| self.prop(p)).collect();
                self.gates.all(ls)
            }
            Prop::Or(ps) => {
                let ls: Vec<Lit> = ps.iter().map(|p| self.prop(p)).collect();
                self.gates.any(ls)
            }
            Prop::Not(p) => !self.prop(p),
            Prop::Cmp(op, ty, a, b) => {
                let (a, b) = (self.atom(a), self.atom(b));
                compare_cases(&mut self.gates, &a, &b, |x, y| op.holds(*ty, x, y))
            }
        }
    }

    fn atom(&mut self, a: &PropAtom) -> Cases {
        match *a {
            PropAtom::Observable(o) => self.observable(o),
            ref other => {
                let v = self.task.atom_value(other, &mut |_| None).unwrap_or(0);
                vec![(v, Lit::TRUE)]
            }
        }
    }

    /// The execution that an assignment of all gates describes.
    pub(super) fn decode(&mut self, values: &[bool]) -> Execution {
        let task = self.task.clone();
        let sk = &task.sk;
        let holds = |l: Lit| values.get(l.gate()).copied().unwrap_or(false) != l.negated();
        // Every guard was demanded by some clause or is constant, so its gate exists already.
        let lits: Vec<Lit> = (0..sk.len()).map(|e| self.inner.leaves.executes(&mut self.gates, e)).collect();
        let all = self.gates.evaluate(|i| values.get(i).copied().unwrap_or(false));
        let executed = EventSet::from_fn(sk.len(), |e| {
            let l = lits[e.index()];
            all[l.gate()] != l.negated()
        });
        let reads = (0..sk.len())
            .map(|r| {
                let cases = self.inner.leaves.reads[r].as_ref().filter(|_| executed.has(r))?;
                cases.iter().find(|c| holds(c.1)).map(|c| c.0)
            })
            .collect();
        let choices = self.inner.leaves.choices.iter().map(|&l| holds(l)).collect();
        let free = (0..task.model.free.len())
            .map(|f| {
                let chosen = self.inner.leaves.free[f].iter().filter(|(_, l)| holds(**l));
                Rel::from_pairs(sk.len(), chosen.map(|(&(i, j), _)| (i as usize, j as usize)))
                    .restricted(&executed)
            })
            .collect();
        let finals =
            self.finals.iter().filter_map(|(&c, last)| Some((c, last.iter().find(|l| holds(l.1))?.0))).collect();
        Execution { executed, reads, choices, free, finals }
    }
}

/// Clauses for "exactly one of them".
fn exactly_one(gates: &mut Gates, clauses: &mut Vec<Vec<Lit>>, lits: &[Lit]) {
    clauses.push(lits.to_vec());
    at_most_one(gates, clauses, lits);
}

/// Clauses for "at most one of them": pairs if there are few, else a ladder (sequential counter).
fn at_most_one(gates: &mut Gates, clauses: &mut Vec<Vec<Lit>>, lits: &[Lit]) {
    if lits.len() <= 6 {
        for (i, &a) in lits.iter().enumerate() {
            for &b in &lits[i + 1..] {
                clauses.push(vec![!a, !b]);
            }
        }
        return;
    }
    let mut before: Option<Lit> = None;
    for &l in lits {
        let now = gates.input();
        clauses.push(vec![!l, now]);
        if let Some(b) = before {
            clauses.push(vec![!b, now]);
            clauses.push(vec![!b, !l]);
        }
        before = Some(now);
    }
}
