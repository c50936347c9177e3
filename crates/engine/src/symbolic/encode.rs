//! Encodes a task as a circuit: the constraints of every execution, axioms, flags, final values.
//!
//! # Invariants
//! - A gate of an axiom, a flag or a final value is built at its first use.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::leaves::{Cases, CircuitValue, LeafGates, calculated, collect, holds};
use super::words::BitWord;
use crate::execution::Execution;
use crate::facts::Facts;
use crate::facts::bounds::TaskBounds;
use crate::skeleton::linear::are_equal;
use crate::skeleton::{Cond, TermId};
use cat::algebra::bounds::Bound;
use cat::algebra::circuit::{Circuit, CircuitLeaves};
use cat::algebra::gates::{Budget, Gates, Lit};
use cat::model::ir::{Axiom, FreeShape, NodeId, Test};
use cat::rel::{EventSet, Rel};
use program::litmus::{Atom as PropAtom, ConditionTerm, Observable, Prop};
use program::memory::CellId;
use program::{CmpOp, Ty};

/// The circuit of a task, built on demand.
pub(super) struct Encoding<'a> {
    pub(super) gates: Gates,
    /// The constraints of every execution.
    pub(super) clauses: Vec<Vec<Lit>>,
    pub(super) facts: Rc<Facts<'a>>,
    pub(super) start: Rc<TaskBounds>,
    pub(super) inner: Circuit<'a, LeafGates<'a>>,
    /// By cell: the writes that may be its last, each with the literal that it is.
    pub(super) finals: Vec<(CellId, Vec<(usize, Lit)>)>,
    axioms: Vec<Option<Lit>>,
    flags: Vec<Option<Lit>>,
    /// Likely values of inputs.
    pub(super) likely: Rc<FxHashMap<usize, bool>>,
}

/// Encodes a task.
pub(super) fn with_encoding<'a>(
    facts: &Rc<Facts<'a>>,
    start: Rc<TaskBounds>,
    budget: Budget,
) -> Encoding<'a> {
    let sk = &facts.sk;
    let n = sk.len();
    let mut gates = Gates::within(budget);
    let mut clauses = Vec::new();
    let choices = (0..sk.pool.choice_count()).map(|_| gates.input()).collect();
    let mut reads = vec![None; n];
    for (r, event) in sk.events.iter().enumerate() {
        if !event.is_read() || !start.algebra.may.has(r) {
            continue;
        }
        let value = match facts
            .domains
            .of(event.value.expect("reads have values"))
            .map(Vec::as_slice)
        {
            None => CircuitValue::Word(Rc::new(BitWord::input(&mut gates, event.ty))),
            Some([one]) => CircuitValue::constant(*one),
            Some([a, b]) => {
                let first = gates.input();
                CircuitValue::Cases(Rc::new(vec![(*a, first), (*b, !first)]))
            }
            Some(domain) => {
                let cases: Cases = domain.iter().map(|&v| (v, gates.input())).collect();
                let lits: Vec<Lit> = cases.iter().map(|c| c.1).collect();
                exactly_one(&mut gates, &mut clauses, &lits);
                CircuitValue::Cases(Rc::new(cases))
            }
        };
        reads[r] = Some(value);
    }
    let leaves = LeafGates {
        facts: facts.clone(),
        conds: FxHashMap::default(),
        terms: FxHashMap::default(),
        words: FxHashMap::default(),
        choices,
        reads,
        combined: FxHashMap::default(),
        free: vec![FxHashMap::default(); facts.task.model.free.len()],
    };
    let mut e = Encoding {
        gates,
        clauses,
        facts: facts.clone(),
        inner: Circuit::new(
            facts.task.model,
            start.algebra.clone(),
            start.values.clone(),
            leaves,
        ),
        start,
        finals: Vec::new(),
        axioms: vec![None; facts.task.model.axioms.len()],
        flags: vec![None; facts.task.model.flags.len()],
        likely: Rc::default(),
    };
    for (_, agreed) in &e.start.agreed {
        e.inner.agree(agreed.clone());
    }
    for &c in &sk.constraints {
        let l = e.cond(c);
        e.clauses.push(vec![l]);
    }
    for (i, f) in facts.task.model.free.iter().enumerate() {
        match f.shape {
            FreeShape::Function => e.sources(i),
            FreeShape::Order => e.order(i),
        }
    }
    // An encoding that was given up is useless, so the rest is left out.
    if e.gates.exhausted().is_some() {
        return e;
    }
    e.barrier_order();
    e.final_writes();
    e.likely = Rc::new(e.guesses());
    e
}

impl Encoding<'_> {
    /// The literal of a condition of the skeleton.
    pub(super) fn cond(&mut self, c: Cond) -> Lit {
        self.inner.leaves.cond(&mut self.gates, c)
    }

    /// The literal that an event executes.
    pub(super) fn executes(&mut self, e: usize) -> Lit {
        if self.start.algebra.must.has(e) {
            Lit::TRUE
        } else {
            self.inner.leaves.executes(&mut self.gates, e)
        }
    }

    /// A value of the skeleton.
    pub(super) fn value(&mut self, t: TermId) -> CircuitValue {
        self.inner.leaves.value(&mut self.gates, t)
    }

    /// The cases of a value of the skeleton, if they are listed, as those of addresses always are.
    pub(super) fn term(&mut self, t: TermId) -> Rc<Cases> {
        self.inner.leaves.term(&mut self.gates, t)
    }

    /// The bounds of a relation before any choice.
    pub(super) fn bound(&self, id: NodeId) -> Bound<Rel> {
        self.start.values[id.index()]
            .as_deref()
            .expect("bounds were computed")
            .rel()
            .clone()
    }

    /// Whether a recursive definition was given up.
    pub(super) fn failed(&self) -> bool {
        self.inner.failed
    }

    fn test(&mut self, of: &Axiom) -> Lit {
        let l = self.inner.test(&mut self.gates, of.test, of.node);
        if of.negated { !l } else { l }
    }

    /// Whether an axiom holds.
    pub(super) fn axiom(&mut self, i: usize) -> Lit {
        if let Some(l) = self.axioms[i] {
            return l;
        }
        let model = self.facts.task.model;
        let mut l = self.test(&model.axioms[i]);
        let start = self.start.clone();
        for (_, agreed) in start.agreed.iter().filter(|&&(axiom, _)| axiom == i) {
            let agreement = self.inner.agreement(&mut self.gates, agreed);
            l = self.gates.and(l, agreement);
        }
        self.axioms[i] = Some(l);
        l
    }

    /// Whether a flag is raised, by pairs outside `spared`.
    pub(super) fn flag(&mut self, i: usize, spared: Option<&Rel>) -> Lit {
        let flag = &self.facts.task.model.flags[i];
        if let Some(spared) = spared.filter(|_| flag.test == Test::Empty) {
            let l = self.inner.is_within(&mut self.gates, flag.node, spared);
            return if flag.negated { !l } else { l };
        }
        if let Some(l) = self.flags[i] {
            return l;
        }
        let model = self.facts.task.model;
        let l = self.test(&model.flags[i]);
        self.flags[i] = Some(l);
        l
    }

    /// The final value of an observable.
    pub(super) fn observable(&mut self, o: Observable) -> CircuitValue {
        let facts = self.facts.clone();
        let sk = &facts.sk;
        if let Some(register) = sk.observed_register(o) {
            return self.value(register);
        }
        let cell = sk.observed_cell(o);
        let Some((_, last)) = self
            .finals
            .iter()
            .find(|last| Some(last.0) == cell)
            .cloned()
        else {
            return CircuitValue::constant(0);
        };
        let values: Vec<(CircuitValue, Lit)> = last
            .into_iter()
            .map(|(w, fin)| (self.value(facts.domains.seen(sk, w)), fin))
            .collect();
        let gates = &mut self.gates;
        if values
            .iter()
            .all(|(value, _)| matches!(value, CircuitValue::Cases(_)))
        {
            let mut list = Vec::new();
            for (value, fin) in &values {
                let CircuitValue::Cases(cases) = value else {
                    continue;
                };
                list.extend(cases.iter().map(|&(v, l)| (v, gates.and(*fin, l))));
            }
            return CircuitValue::Cases(collect(gates, list));
        }
        let words = values
            .into_iter()
            .map(|(value, fin)| (value.word(gates), fin))
            .collect::<Vec<_>>();
        let (first, rest) = words.split_first().expect("a cell is written at the start");
        let chosen = rest.iter().fold((*first.0).clone(), |other, (word, fin)| {
            BitWord::ite(gates, *fin, word, &other)
        });
        CircuitValue::Word(Rc::new(chosen))
    }

    /// Input values of an execution in which operations on mbarrier objects come in a possible
    /// order.
    fn guesses(&self) -> FxHashMap<usize, bool> {
        let (facts, leaves) = (&self.facts, &self.inner.leaves);
        let [values, finals] =
            [facts.task.model.values, facts.task.model.finals].map(|f| &leaves.free[f.0 as usize]);
        let mut guesses: Vec<(Lit, bool)> = Vec::new();
        for run in &facts.implied.objects.runs {
            let place = run
                .iter()
                .enumerate()
                .map(|(at, turn)| (turn.0.1 as u32, at));
            let place: FxHashMap<u32, usize> = place.collect();
            guesses.extend(
                finals
                    .iter()
                    .filter_map(|((i, j), &l)| Some((l, place.get(i)? < place.get(j)?))),
            );
            let before: FxHashMap<u32, u32> = run
                .iter()
                .map(|&((r, _), before, _)| (r as u32, before as u32))
                .collect();
            guesses.extend(
                values
                    .iter()
                    .filter_map(|(&(w, r), &l)| Some((l, *before.get(&r)? == w))),
            );
            for &((r, _), _, word) in run {
                if let Some(CircuitValue::Cases(cases)) = &leaves.reads[r] {
                    guesses.extend(cases.iter().map(|&(v, l)| (l, v == word)));
                }
            }
        }
        guesses
            .into_iter()
            .map(|(l, is)| (l.gate(), is != l.negated()))
            .collect()
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
                let (a, b) = (self.side(*ty, a), self.side(*ty, b));
                holds(&mut self.gates, *op, *ty, &a, &b)
            }
        }
    }

    /// Whether a proposition holds in all executions, or in none, by sums of reads alone; no gate
    /// is made.
    pub(super) fn by_sums(&self, prop: &Prop) -> Option<bool> {
        match prop {
            Prop::And(parts) | Prop::Or(parts) => {
                let stops = matches!(prop, Prop::Or(_));
                let mut all = Some(!stops);
                for part in parts {
                    match self.by_sums(part) {
                        Some(holds) if holds == stops => return Some(stops),
                        Some(_) => {}
                        None => all = None,
                    }
                }
                all
            }
            Prop::Not(part) => self.by_sums(part).map(|holds| !holds),
            Prop::Cmp(CmpOp::Eq, ty, a, b) => self.are_same(*ty, a, b),
            Prop::Cmp(CmpOp::Ne, ty, a, b) => self.are_same(*ty, a, b).map(|same| !same),
            Prop::Cmp(..) => None,
        }
    }

    /// Whether two registers have equal final values in all executions, or in none.
    fn are_same(&self, ty: Ty, a: &ConditionTerm, b: &ConditionTerm) -> Option<bool> {
        let sk = &self.facts.sk;
        let term = |side: &ConditionTerm| match side {
            ConditionTerm::Atom(PropAtom::Observable(o)) => sk.observed_register(*o),
            _ => None,
        };
        let (a, b) = (term(a)?, term(b)?);
        // Values of one type are equal if their bits in that type are.
        let narrow = sk
            .pool
            .known_type(a)
            .filter(|ty| sk.pool.known_type(b) == Some(*ty));
        let bits = narrow.map_or(ty.bits, |narrow| narrow.bits.min(ty.bits));
        are_equal(&sk.pool, u32::from(bits), a, b)
    }

    fn side(&mut self, ty: Ty, of: &ConditionTerm) -> CircuitValue {
        match of {
            ConditionTerm::Atom(a) => self.atom(a),
            ConditionTerm::Of(op, a, b) => {
                let (a, b) = (self.side(ty, a), self.side(ty, b));
                calculated(&mut self.gates, *op, ty, &a, &b)
            }
        }
    }

    fn atom(&mut self, a: &PropAtom) -> CircuitValue {
        match *a {
            PropAtom::Observable(o) => self.observable(o),
            ref other => {
                CircuitValue::constant(self.facts.atom_value(other, &mut |_| None).unwrap_or(0))
            }
        }
    }

    /// The execution that an assignment of all gates describes; meaningless if the circuit was
    /// given up in the meantime.
    pub(super) fn decode(&mut self, values: &[bool]) -> Execution {
        let facts = self.facts.clone();
        let sk = &facts.sk;
        let is = |l: Lit| values.get(l.gate()).copied().unwrap_or(false) != l.negated();
        // Guards outside all clauses have no gate yet.
        let lits: Vec<Lit> = (0..sk.len())
            .map(|e| self.inner.leaves.executes(&mut self.gates, e))
            .collect();
        let all = self
            .gates
            .evaluate(|i| values.get(i).copied().unwrap_or(false));
        let executed = EventSet::from_fn(sk.len(), |e| {
            let l = lits[e.index()];
            all[l.gate()] != l.negated()
        });
        let reads = (0..sk.len())
            .map(|r| {
                let value = self.inner.leaves.reads[r]
                    .as_ref()
                    .filter(|_| executed.has(r))?;
                value.read(is).map(|read| read.0)
            })
            .collect();
        let choices = self.inner.leaves.choices.iter().map(|&l| is(l)).collect();
        let free = (0..facts.task.model.free.len())
            .map(|f| {
                let chosen = self.inner.leaves.free[f].iter().filter(|(_, l)| is(**l));
                Rel::from_pairs(
                    sk.len(),
                    chosen.map(|(&(i, j), _)| (i as usize, j as usize)),
                )
                .restricted(&executed)
            })
            .collect();
        let finals = self
            .finals
            .iter()
            .filter_map(|(cell, of)| Some((*cell, of.iter().find(|l| is(l.1))?.0)))
            .collect();
        Execution {
            executed,
            reads,
            choices,
            free,
            finals,
        }
    }
}

/// Clauses for "exactly one of these literals".
pub(super) fn exactly_one(gates: &mut Gates, clauses: &mut Vec<Vec<Lit>>, lits: &[Lit]) {
    clauses.push(lits.to_vec());
    at_most_one(gates, clauses, lits);
}

/// Clauses for "at most one of these literals": pairs if they are few, otherwise a ladder
/// (sequential counter).
pub(super) fn at_most_one(gates: &mut Gates, clauses: &mut Vec<Vec<Lit>>, lits: &[Lit]) {
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
