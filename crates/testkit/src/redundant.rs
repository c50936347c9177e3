//! Proves that a model has the same meaning without one of its clauses, for every program, from
//! laws about base sets and relations.
//!
//! `mutants/laws.cat` holds these laws, and `mutants/MODEL.cat` those for one language: clauses
//! that hold in every execution. A test checks them against the executions of all tests. From these
//! laws and the bounds of free relations, the prover shows that each axiom, flag and bound is
//! equivalent with and without the clause.
//!
//! # Invariants
//! - A proof shows that two nodes agree on a pair of events, given facts about these and a few
//!   others. Nodes with the same operator agree if their operands agree wherever the other operand
//!   makes that matter. Other nodes agree if each implies the other. A solver refutes the contrary.
//!   Its limits (no events beyond [`EVENTS`], no induction over closures) can only lose proofs.
//! - Options, deletions of whole parts, and recursive definitions are not covered.

use std::collections::BTreeSet;

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use cat::model::ir::{Axiom, FreeId, Model, NodeId, NodeOp, Test};
use rustc_hash::FxHashMap;

/// The largest number of events in a proof.
const EVENTS: usize = 6;
/// The number of references to other events up to which a node is expanded where it does not hold.
const OTHERS: u32 = 12;
/// The largest number of queries to the solver.
const STEPS: usize = 300;
/// The largest number of expanded parts of a fact.
const UNFOLDED: usize = 48;

/// Says that a relation holds of two events, or does not; for a set, both are the same event.
type Fact = (NodeId, usize, usize, bool);

/// The nodes of several models, without duplicates.
#[derive(Default)]
struct Table {
    ops: Vec<NodeOp>,
    known: FxHashMap<NodeOp, NodeId>,
    /// By node: the number of its references to events other than its ends.
    others: Vec<u32>,
}

impl Table {
    fn node(&mut self, op: NodeOp) -> NodeId {
        let key = match op {
            NodeOp::Union(a, b) if b < a => NodeOp::Union(b, a),
            NodeOp::Inter(a, b) if b < a => NodeOp::Inter(b, a),
            op => op,
        };
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = NodeId(self.ops.len() as u32);
        let speaks = matches!(
            op,
            NodeOp::Seq(..) | NodeOp::Plus(_) | NodeOp::Domain(_) | NodeOp::Range(_)
        );
        let others = op.operands().map(|o| self.others[o.index()]);
        self.others
            .push(others.fold(u32::from(speaks), u32::saturating_add));
        self.ops.push(op);
        self.known.insert(key, id);
        id
    }

    /// Adds a model; returns, for each of its nodes, the node here.
    fn add(&mut self, model: &Model, free: impl Fn(FreeId) -> FreeId) -> Vec<NodeId> {
        assert!(model.groups.is_empty(), "no recursive definitions");
        let mut ids: Vec<NodeId> = Vec::new();
        for node in &model.nodes {
            let op = match node.op {
                NodeOp::Free(id) => NodeOp::Free(free(id)),
                op => op.map_operands(|o| ids[o.index()]),
            };
            ids.push(self.node(op));
        }
        ids
    }
}

/// Proves redundancy of clauses of one model.
pub struct Prover {
    model: Model,
    table: Table,
    /// By node of the model: the node in the table.
    whole: Vec<NodeId>,
    identity: NodeId,
    solver: BasicSolver,
    truth: Lit,
    /// By node and events: its literal, and whether it has consequences if it holds (1), and if not
    /// (2).
    lits: FxHashMap<(NodeId, usize, usize), (Lit, u8)>,
    /// The places of a node's atoms.
    atoms: FxHashMap<NodeId, Vec<(usize, usize, Lit)>>,
    equal: Vec<Lit>,
    /// Nodes that facts about other events may imply.
    pending: Vec<(NodeId, usize, usize, Lit)>,
    /// Assumptions about all events: name and literal.
    laws: Vec<(String, Lit)>,
    /// The laws that the proof so far has used.
    used: BTreeSet<usize>,
    steps: usize,
    /// The number of expanded parts of a fact.
    unfolded: usize,
    /// Whether nodes agree on any pair, or on any event, as far as computed.
    anywhere: FxHashMap<(NodeId, NodeId, bool), bool>,
}

impl Prover {
    /// A prover for a model; the flags of the model `laws` never hold.
    pub fn new(model: &Model, laws: &Model) -> Prover {
        let mut table = Table::default();
        let whole = table.add(model, |id| id);
        let free = |id| {
            if id == laws.values {
                model.values
            } else {
                model.finals
            }
        };
        let of_laws = table.add(laws, free);
        let everything = table.node(NodeOp::Universe);
        let identity = table.node(NodeOp::IdentityOn(everything));
        let mut solver = BasicSolver::default();
        let truth = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![truth]);
        let mut prover = Prover {
            model: model.clone(),
            table,
            whole,
            identity,
            solver,
            truth,
            lits: FxHashMap::default(),
            atoms: FxHashMap::default(),
            equal: Vec::new(),
            pending: Vec::new(),
            laws: Vec::new(),
            used: BTreeSet::new(),
            steps: 0,
            unfolded: 0,
            anywhere: FxHashMap::default(),
        };
        prover.equalities();
        for flag in &laws.flags {
            let law = prover.law(&flag.name);
            prover.assume_never(law, of_laws[flag.node.index()]);
        }
        for (i, free) in model.free.iter().enumerate() {
            let law = prover.law(&format!("the bounds of {}", free.name));
            let node = prover.table.node(NodeOp::Free(FreeId(i as u32)));
            let outside = prover
                .table
                .node(NodeOp::Diff(node, prover.whole[free.within.index()]));
            prover.assume_never(law, outside);
        }
        prover
    }

    /// The laws from which it follows that the model has the same meaning without a clause; `None`
    /// if there is no proof.
    pub fn proof(&mut self, mutant: &Model) -> Option<String> {
        let model = self.model.clone();
        let tests =
            |m: &Model| -> Vec<Axiom> { m.axioms.iter().chain(&m.flags).cloned().collect() };
        let (before, after) = (tests(&model), tests(mutant));
        let same =
            |a: &Axiom, b: &Axiom| (a.test, a.negated, a.effect) == (b.test, b.negated, b.effect);
        if mutant.options != model.options || before.len() != after.len() {
            return None;
        }
        let ids = self.table.add(mutant, |id| id);
        (self.used, self.steps) = (BTreeSet::new(), 0);
        self.anywhere.clear();
        // Bounds of free relations are assumed only once they are known to be equal.
        let all = self.laws.len();
        // In every model, a read and its source write access the same memory.
        let base =
            |name: &str| NodeOp::Base(model.signature.find(name).expect("it is a word of models"));
        let [writes, reads, loc] = ["W", "R", "loc"].map(|name| self.table.node(base(name)));
        let of_values = [(writes, 0, 0, true), (reads, 1, 1, true), (loc, 0, 1, true)];
        for (i, (a, b)) in model.free.iter().zip(&mutant.free).enumerate() {
            let bounds = |f: &cat::model::ir::FreeRel| [Some(f.within), f.containing, f.covering];
            for (a, b) in bounds(a).into_iter().zip(bounds(b)) {
                let (a, b) = (a.map(|n| self.whole[n.index()]), b.map(|n| ids[n.index()]));
                let facts: &[Fact] = if i == model.values.0 as usize {
                    &of_values
                } else {
                    &[]
                };
                if a != b && !self.agree(a?, b?, (0, 1), facts, 2, all - model.free.len()) {
                    return None;
                }
            }
        }
        for (a, b) in before.iter().zip(&after) {
            if !same(a, b) || !self.test(a.test, self.whole[a.node.index()], ids[b.node.index()]) {
                return None;
            }
        }
        let laws: Vec<&str> = self
            .used
            .iter()
            .map(|&law| self.laws[law].0.as_str())
            .collect();
        Some(if laws.is_empty() {
            "as operators are".to_owned()
        } else {
            laws.join(", ")
        })
    }

    /// Whether a test of one node is equivalent to the same test of the other.
    fn test(&mut self, test: Test, a: NodeId, b: NodeId) -> bool {
        let all = self.laws.len();
        if a == b {
            return true;
        }
        match test {
            Test::Irreflexive => self.agree(a, b, (0, 0), &[], 1, all),
            // One direction of a symmetric relation suffices.
            Test::Empty => {
                let mut both_ways = |r: NodeId, other: NodeId| {
                    let facts = [(r, 0, 1, true), (other, 0, 1, false), (other, 1, 0, false)];
                    self.refuted(&facts, 2, all)
                };
                both_ways(a, b) && both_ways(b, a) || self.agree(a, b, (0, 1), &[], 2, all)
            }
            Test::Acyclic => {
                // Each step of a cycle has one before it, and one after it.
                let mut on_cycle = |r: NodeId, other: NodeId| {
                    let steps = [
                        (r, 2, 0, true),
                        (r, 0, 1, true),
                        (r, 1, 3, true),
                        (other, 0, 1, false),
                    ];
                    self.refuted(&steps, 4, all)
                };
                on_cycle(a, b) && on_cycle(b, a) || self.agree(a, b, (0, 1), &[], 2, all)
            }
        }
    }

    /// Whether two nodes agree on a pair of events, given facts about events below `next`, and the
    /// first laws.
    fn agree(
        &mut self,
        a: NodeId,
        b: NodeId,
        (x, y): (usize, usize),
        facts: &[Fact],
        next: usize,
        laws: usize,
    ) -> bool {
        if a == b {
            return true;
        }
        let anywhere = match self.anywhere.get(&(a, b, x == y)) {
            Some(known) => *known,
            None => {
                self.anywhere.insert((a, b, x == y), false);
                let (ends, next) = if x == y { ((0, 0), 1) } else { ((0, 1), 2) };
                let agree = self.agree_given(a, b, ends, &[], next, laws);
                self.anywhere.insert((a, b, x == y), agree);
                agree
            }
        };
        anywhere || !facts.is_empty() && self.agree_given(a, b, (x, y), facts, next, laws)
    }

    /// The same under further facts; [`Prover::agree`] stores results without any.
    fn agree_given(
        &mut self,
        a: NodeId,
        b: NodeId,
        (x, y): (usize, usize),
        facts: &[Fact],
        next: usize,
        laws: usize,
    ) -> bool {
        if self.steps > STEPS {
            return false;
        }
        let used = self.used.clone();
        if self.agree_by_parts(a, b, (x, y), facts, next, laws) {
            return true;
        }
        self.used = used;
        if self.table.others[a.index()].max(self.table.others[b.index()]) > OTHERS {
            return false;
        }
        let mut without = |a: NodeId, b: NodeId| {
            let facts = [facts, &[(a, x, y, true), (b, x, y, false)]].concat();
            self.refuted(&facts, next, laws)
        };
        without(a, b) && without(b, a)
    }

    /// Whether they agree because their operands agree.
    fn agree_by_parts(
        &mut self,
        a: NodeId,
        b: NodeId,
        (x, y): (usize, usize),
        facts: &[Fact],
        next: usize,
        laws: usize,
    ) -> bool {
        let ops = (self.op(a), self.op(b));
        let identity = self.identity;
        let mut also = |a, b, ends, fact: Option<Fact>, next| {
            let facts: Vec<Fact> = facts.iter().copied().chain(fact).collect();
            self.agree(a, b, ends, &facts, next, laws)
        };
        let apart = |a: NodeId, b: NodeId, c: NodeId, d: NodeId| {
            // Puts equal operands next to each other.
            if a == d || b == c {
                (a, b, d, c)
            } else {
                (a, b, c, d)
            }
        };
        let by_parts = match ops {
            (NodeOp::Union(a, b), NodeOp::Union(c, d)) => {
                let (a, b, c, d) = apart(a, b, c, d);
                also(a, c, (x, y), Some((b, x, y, false)), next)
                    && also(b, d, (x, y), Some((c, x, y, false)), next)
            }
            (NodeOp::Inter(a, b), NodeOp::Inter(c, d)) => {
                let (a, b, c, d) = apart(a, b, c, d);
                also(a, c, (x, y), Some((b, x, y, true)), next)
                    && also(b, d, (x, y), Some((c, x, y, true)), next)
            }
            (NodeOp::Diff(a, b), NodeOp::Diff(c, d)) => {
                also(a, c, (x, y), Some((b, x, y, false)), next)
                    && also(b, d, (x, y), Some((c, x, y, true)), next)
            }
            (NodeOp::Seq(a, b), NodeOp::Seq(c, d)) if next < EVENTS => {
                also(a, c, (x, next), Some((b, next, y, true)), next + 1)
                    && also(b, d, (next, y), Some((c, x, next, true)), next + 1)
            }
            (NodeOp::Plus(inner), NodeOp::Plus(other)) => {
                self.agree(inner, other, (0, 1), &[], 2, laws)
            }
            (NodeOp::Inverse(a), NodeOp::Inverse(b)) => also(a, b, (y, x), None, next),
            (NodeOp::IdentityOn(a), NodeOp::IdentityOn(b)) => {
                also(a, b, (x, x), Some((identity, x, y, true)), next)
            }
            (NodeOp::Product(a, b), NodeOp::Product(c, d)) => {
                also(a, c, (x, x), Some((b, y, y, true)), next)
                    && also(b, d, (y, y), Some((c, x, x, true)), next)
            }
            (NodeOp::Domain(a), NodeOp::Domain(b)) if next < EVENTS => {
                also(a, b, (x, next), None, next + 1)
            }
            (NodeOp::Range(a), NodeOp::Range(b)) if next < EVENTS => {
                also(a, b, (next, x), None, next + 1)
            }
            _ => false,
        };
        by_parts
            || self.drops(a, b, (x, y), facts, next, laws)
            || self.drops(b, a, (x, y), facts, next, laws)
    }

    /// Whether the first node can lose an operand so that the rest agrees with the second one.
    fn drops(
        &mut self,
        a: NodeId,
        b: NodeId,
        (x, y): (usize, usize),
        facts: &[Fact],
        next: usize,
        laws: usize,
    ) -> bool {
        let (kept, gone): (Vec<NodeId>, Vec<[Fact; 2]>) = match self.op(a) {
            NodeOp::Inter(a, b) => (
                vec![a, b],
                vec![
                    [(a, x, y, true), (b, x, y, false)],
                    [(b, x, y, true), (a, x, y, false)],
                ],
            ),
            NodeOp::Union(a, b) => (
                vec![a, b],
                vec![
                    [(b, x, y, true), (a, x, y, false)],
                    [(a, x, y, true), (b, x, y, false)],
                ],
            ),
            NodeOp::Diff(a, b) => (vec![a], vec![[(a, x, y, true), (b, x, y, true)]]),
            _ => return false,
        };
        let mut all = kept.into_iter().zip(gone);
        all.any(|(kept, gone)| {
            // Nothing is gained if the operators differ, too.
            let alike = kept == b
                || std::mem::discriminant(&self.op(kept)) == std::mem::discriminant(&self.op(b));
            alike
                && self.refuted(&[facts, &gone].concat(), next, laws)
                && self.agree(kept, b, (x, y), facts, next, laws)
        })
    }

    fn op(&self, node: NodeId) -> NodeOp {
        self.table.ops[node.index()]
    }

    /// Whether facts about events below `next` contradict each other, given the first laws.
    fn refuted(&mut self, facts: &[Fact], mut next: usize, laws: usize) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return false;
        }
        let question = self.input();
        for &(node, x, y, holds) in facts {
            if holds {
                self.unfolded = 0;
                next = self.unfold(question, node, (x, y), next);
            } else {
                let lit = self.lit(node, x, y, 2);
                self.clause(&[!question, !lit]);
            }
        }
        self.settle();
        let mut given: Vec<Lit> = self.laws[..laws].iter().map(|law| law.1).collect();
        given.push(question);
        let refuted = self.solver.solve_limited(&given) == lbool::FALSE;
        if refuted {
            let core: BTreeSet<_> = self
                .solver
                .unsat_core()
                .iter()
                .map(|lit| lit.var())
                .collect();
            self.used
                .extend((0..laws).filter(|&law| core.contains(&self.laws[law].1.var())));
        }
        self.clause(&[!question]);
        refuted
    }

    /// Demands that a node holds if a literal does, together with the events that it refers to.
    /// Returns the next free event.
    fn unfold(&mut self, when: Lit, node: NodeId, (x, y): (usize, usize), next: usize) -> usize {
        let lit = self.lit(node, x, y, 1);
        self.clause(&[!when, lit]);
        self.unfolded += 1;
        if self.table.others[node.index()] == 0 || self.unfolded > UNFOLDED {
            return next;
        }
        match self.op(node) {
            NodeOp::Union(a, b) => {
                let [one, other] = self.either(when);
                self.unfold(one, a, (x, y), next)
                    .max(self.unfold(other, b, (x, y), next))
            }
            NodeOp::Inter(a, b) => {
                let next = self.unfold(when, a, (x, y), next);
                self.unfold(when, b, (x, y), next)
            }
            NodeOp::Product(a, b) => {
                let next = self.unfold(when, a, (x, x), next);
                self.unfold(when, b, (y, y), next)
            }
            NodeOp::Diff(a, _) => self.unfold(when, a, (x, y), next),
            NodeOp::IdentityOn(a) => self.unfold(when, a, (x, x), next),
            NodeOp::Inverse(a) => self.unfold(when, a, (y, x), next),
            NodeOp::Seq(a, b) if next < EVENTS => {
                let after = self.unfold(when, a, (x, next), next + 1);
                self.unfold(when, b, (next, y), after)
            }
            NodeOp::Domain(a) if next < EVENTS => self.unfold(when, a, (x, next), next + 1),
            NodeOp::Range(a) if next < EVENTS => self.unfold(when, a, (next, x), next + 1),
            NodeOp::Plus(a) if next + 1 < EVENTS => {
                let [one, more] = self.either(when);
                let (first, last) = (next, next + 1);
                let after = self.unfold(more, a, (x, first), next + 2);
                let after = self.unfold(more, a, (last, y), after);
                let (inner, equal) = (self.lit(node, first, last, 1), self.equal(first, last));
                self.clause(&[!more, inner, equal]);
                self.unfold(one, a, (x, y), next).max(after)
            }
            _ => next,
        }
    }

    /// Two literals of which exactly one holds if this one does.
    fn either(&mut self, when: Lit) -> [Lit; 2] {
        let both = [self.input(), self.input()];
        self.clause(&[!when, both[0], both[1]]);
        self.clause(&[!both[0], !both[1]]);
        both
    }

    fn input(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    fn clause(&mut self, lits: &[Lit]) {
        self.solver.add_clause_reuse(&mut lits.to_vec());
    }

    fn law(&mut self, name: &str) -> Lit {
        let law = self.input();
        self.laws.push((name.to_owned(), law));
        law
    }

    /// If that literal holds, the node holds for no events.
    fn assume_never(&mut self, law: Lit, node: NodeId) {
        for (x, y) in (0..EVENTS).flat_map(|x| (0..EVENTS).map(move |y| (x, y))) {
            let lit = self.lit(node, x, y, 2);
            self.clause(&[!law, !lit]);
        }
        self.settle();
    }

    fn equalities(&mut self) {
        for i in 0..EVENTS * EVENTS {
            let (x, y) = (i / EVENTS, i % EVENTS);
            let lit = match x.cmp(&y) {
                std::cmp::Ordering::Less => self.input(),
                std::cmp::Ordering::Equal => self.truth,
                std::cmp::Ordering::Greater => self.equal(y, x),
            };
            self.equal.push(lit);
        }
        for i in 0..EVENTS * EVENTS * EVENTS {
            let (x, y, z) = (i / EVENTS / EVENTS, i / EVENTS % EVENTS, i % EVENTS);
            let clause = [!self.equal(x, y), !self.equal(y, z), self.equal(x, z)];
            self.clause(&clause);
        }
    }

    fn equal(&self, x: usize, y: usize) -> Lit {
        self.equal[x * EVENTS + y]
    }

    /// The literal of a node, with consequences if it holds (1), if it does not (2), or both.
    fn lit(&mut self, node: NodeId, x: usize, y: usize, needs: u8) -> Lit {
        let op = self.op(node);
        match op {
            NodeOp::Universe => return self.truth,
            NodeOp::Empty => return !self.truth,
            NodeOp::Inverse(a) => return self.lit(a, y, x, needs),
            _ => {}
        }
        let (lit, has) = match self.lits.get(&(node, x, y)) {
            Some(known) => *known,
            None => (self.input(), 0),
        };
        self.lits.insert((node, x, y), (lit, has | needs));
        let is_atom = !matches!(
            op,
            NodeOp::IdentityOn(_)
                | NodeOp::Product(..)
                | NodeOp::Union(..)
                | NodeOp::Inter(..)
                | NodeOp::Diff(..)
        );
        if has == 0 && is_atom {
            for (u, v, other) in self.atoms.get(&node).cloned().unwrap_or_default() {
                let differ = [!self.equal(x, u), !self.equal(y, v)];
                self.clause(&[differ[0], differ[1], !lit, other]);
                self.clause(&[differ[0], differ[1], lit, !other]);
            }
            self.atoms.entry(node).or_default().push((x, y, lit));
        }
        let new = needs & !has;
        let flipped = (new & 1) << 1 | new >> 1;
        // Both hold if it does, and it does if both hold.
        let both = match op {
            NodeOp::IdentityOn(a) => Some((self.equal(x, y), self.lit(a, x, x, new))),
            NodeOp::Product(a, b) => Some((self.lit(a, x, x, new), self.lit(b, y, y, new))),
            NodeOp::Inter(a, b) => Some((self.lit(a, x, y, new), self.lit(b, x, y, new))),
            NodeOp::Diff(a, b) => Some((self.lit(a, x, y, new), !self.lit(b, x, y, flipped))),
            NodeOp::Union(a, b) => {
                let (a, b) = (self.lit(a, x, y, new), self.lit(b, x, y, new));
                if new & 1 != 0 {
                    self.clause(&[!lit, a, b]);
                }
                if new & 2 != 0 {
                    self.clause(&[lit, !a]);
                    self.clause(&[lit, !b]);
                }
                None
            }
            NodeOp::Seq(..) | NodeOp::Plus(_) | NodeOp::Domain(_) | NodeOp::Range(_)
                if new & 2 != 0 && self.table.others[node.index()] <= OTHERS =>
            {
                self.pending.push((node, x, y, lit));
                None
            }
            _ => None,
        };
        if let Some((a, b)) = both.filter(|_| new & 1 != 0) {
            self.clause(&[!lit, a]);
            self.clause(&[!lit, b]);
        }
        if let Some((a, b)) = both.filter(|_| new & 2 != 0) {
            self.clause(&[lit, !a, !b]);
        }
        lit
    }

    /// Adds the clauses that imply nodes through each other event.
    fn settle(&mut self) {
        while let Some((node, x, y, lit)) = self.pending.pop() {
            if let NodeOp::Plus(a) = self.op(node) {
                let one = self.lit(a, x, y, 2);
                self.clause(&[!one, lit]);
            }
            for z in 0..EVENTS {
                let (a, b) = match self.op(node) {
                    NodeOp::Seq(a, b) => (self.lit(a, x, z, 2), self.lit(b, z, y, 2)),
                    NodeOp::Plus(_) => (self.lit(node, x, z, 2), self.lit(node, z, y, 2)),
                    NodeOp::Domain(a) => (self.truth, self.lit(a, x, z, 2)),
                    NodeOp::Range(a) => (self.truth, self.lit(a, z, x, 2)),
                    _ => unreachable!("no other is said to be pending"),
                };
                self.clause(&[!a, !b, lit]);
            }
        }
    }
}
