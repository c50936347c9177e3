//! Bounds the leaves of a model, given the known part of a task's open cells and free relations.
//! Before any choice, the bounds already limit which write each read can read from.

use std::rc::Rc;
use std::time::Instant;

use super::Facts;
use crate::skeleton::Cond;
use crate::skeleton::base::Base;
use cat::algebra::bounds::{Bound, Bounds};
use cat::algebra::circuit::ClosureOrder;
use cat::algebra::implied::{ImpliedPairs, implied, rests_on_free};
use cat::algebra::{Computed, Leaves, Reuse, Value, Values, empty, interpret, needed_unless};
use cat::model::ir::{Axiom, FreeId, FreeRel, FreeShape, Kind, Model, NodeId, NodeOp};
use cat::model::signature::BaseId;
use cat::rel::{EventSet, Rel};

/// Bounds of leaves among the events of `algebra`.
pub(crate) struct BoundLeaves<'x, 'a> {
    pub(crate) facts: &'x Facts<'a>,
    pub(crate) algebra: &'x Bounds,
    /// The known values of [`Facts::open`].
    pub(crate) open: &'x [Option<bool>],
    pub(crate) free: &'x [Bound<Rel>],
}

impl Leaves<Bounds> for BoundLeaves<'_, '_> {
    fn base(&self, id: BaseId, _: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        let may = &self.algebra.may;
        let (first, base) = &self.facts.bases[&id];
        match base {
            Base::Set(s) => {
                let s = s.clone().and(may);
                Value::Set(Bound {
                    must: s.clone(),
                    may: s,
                })
            }
            Base::Rel(r) if r.open.is_empty() => {
                Value::Rel(Bound::known(r.fixed.clone().restricted(may)))
            }
            Base::Rel(r) => {
                let mut bound = Bound {
                    must: r.fixed.clone(),
                    may: r.fixed.clone(),
                };
                for (&(i, j, _), known) in r.open.iter().zip(&self.open[*first..]) {
                    if *known == Some(true) {
                        bound.must.insert(i, j);
                    }
                    if *known != Some(false) {
                        bound.may.insert(i, j);
                    }
                }
                Value::Rel(Bound {
                    must: bound.must.restricted(may),
                    may: bound.may.restricted(may),
                })
            }
        }
    }

    fn free(&self, id: FreeId) -> Bound<Rel> {
        self.free[id.0 as usize].clone()
    }
}

/// The bounds that the declaration of an order gives.
pub(crate) fn declared_order(within: &Bound<Rel>, containing: Option<&Bound<Rel>>) -> Bound<Rel> {
    let n = within.may.universe_len();
    let must = containing.map_or_else(|| Rel::empty(n), |c| c.must.clone());
    let mut may = within.may.clone().minus(&must.inverse());
    (0..n).for_each(|i| may.remove(i, i));
    Bound {
        must: must.and(&may),
        may,
    }
}

/// Bounds of every node, and of the free relations, before any choice.
///
/// Axioms imply pairs that are in a free relation, or outside it, in every execution in which they
/// hold ([`implied`]). Such pairs cost neither inputs nor clauses. In PTX, for example, coherence
/// orders the writes of one thread to one location. And a read never takes a value that was
/// overwritten before a barrier that precedes it.
///
/// The bounds hold only for queries that include these axioms: [`FactsBounds::rests_on`].
pub(crate) struct TaskBounds {
    /// Events that surely and possibly execute.
    pub(crate) algebra: Rc<Bounds>,
    /// By node: its bounds.
    pub(crate) values: Rc<Values<Bounds>>,
    /// By free relation: its bounds.
    pub(crate) free: Vec<Bound<Rel>>,
    /// By axiom: the closures that it makes equal to an order.
    pub(crate) agreed: Vec<(usize, ClosureOrder)>,
    /// The axioms that these bounds, or `agreed`, depend on.
    pub(crate) rests_on: Vec<usize>,
    /// The node of from-reads, if the model has one, and pairs that it never contains.
    from_reads: Option<(NodeId, Rel)>,
}

/// With more events, only axioms that keep a relation inside a free order are read backwards. That
/// takes one step, while others go through products of relations, in cubic time.
const MANY: usize = 4_096;

/// How often bounds are narrowed at most, while axioms still imply more.
const MAX_ROUNDS: usize = 6;

/// Bounds that are being narrowed by what the axioms imply.
struct Narrowing<'x, 'a> {
    facts: &'x Facts<'a>,
    algebra: &'x Bounds,
    /// The values of the nodes that bound free relations.
    fixed: &'x Values<Bounds>,
    /// By node: whether it is built from free relations alone.
    on_free: Vec<bool>,
    /// By free relation: its bounds so far.
    free: Vec<Bound<Rel>>,
    rests_on: Vec<usize>,
    from_reads: Option<(NodeId, Rel)>,
}

impl Narrowing<'_, '_> {
    /// Narrows the bounds by an axiom; returns whether they changed.
    fn hear(&mut self, i: usize, axiom: &Axiom, values: &Values<Bounds>) -> bool {
        let model = self.facts.task.model;
        let from_reads = &mut self.from_reads;
        let mut of_free = Vec::new();
        implied(
            model,
            &self.on_free,
            self.algebra,
            values,
            axiom.test,
            axiom.node,
            &mut |node, said| {
                if let NodeOp::Free(f) = model.node(node).op {
                    of_free.push((f, said.clone()));
                }
                if let (Some((from_reads, never)), Some(more)) = (&mut *from_reads, &said.never)
                    && *from_reads == node
                {
                    *never = std::mem::replace(never, Rel::empty(0)).or(more);
                }
            },
        );
        let mut news = false;
        for (f, said) in of_free {
            if self.narrow(f, said) {
                news = true;
                self.rests_on.push(i);
            }
        }
        news
    }

    /// Narrows the bounds of a free relation; returns whether they changed.
    fn narrow(&mut self, f: FreeId, mut said: ImpliedPairs) -> bool {
        let decl = &self.facts.task.model.free[f.0 as usize];
        let bound = &mut self.free[f.0 as usize];
        let mut heard = false;
        if decl.shape == FreeShape::Order {
            // If the order covers a pair, one direction holds if the other does not.
            let covered = decl.covering.map(|c| {
                let pairs = &rel_of(self.fixed, c).must;
                pairs.clone().or(&pairs.inverse())
            });
            let never = said.never.as_ref().map(Rel::inverse);
            let total = never
                .zip(covered)
                .map(|(pairs, covered)| pairs.and(&covered));
            heard = bound.hear(&ImpliedPairs {
                never: said.always.as_ref().map(Rel::inverse),
                always: total,
            });
        } else {
            said.always = None;
        }
        let news = bound.hear(&said) || heard;
        if news && decl.shape == FreeShape::Function {
            require_only_source(self.facts, self.algebra, bound);
        }
        news
    }
}

/// The bounds of a node.
fn rel_of(values: &Values<Bounds>, id: NodeId) -> &Bound<Rel> {
    values[id.index()].as_deref().expect("asked for").rel()
}

/// The values of the nodes that bound free relations, and of the nodes that are always empty.
fn fixed_values(
    facts: &Facts<'_>,
    algebra: &Bounds,
    leaves: &BoundLeaves<'_, '_>,
    deadline: Option<Instant>,
) -> Option<Values<Bounds>> {
    let model = facts.task.model;
    let roots = model
        .free
        .iter()
        .flat_map(|f| [Some(f.within), f.containing, f.covering])
        .flatten();
    // A node that is empty in every execution is empty under any bounds. Most nodes of a large
    // model are.
    let nothing = [Kind::Set, Kind::Rel].map(|kind| Rc::new(empty(algebra, kind)));
    let nothing: Values<Bounds> = (model.nodes.iter().zip(&facts.absent))
        .map(|(node, &absent)| absent.then(|| nothing[usize::from(node.kind == Kind::Rel)].clone()))
        .collect();
    let asked = needed_unless(model, roots, |id| facts.absent[id.index()]);
    let reuse = Reuse {
        known: &nothing,
        before: &[],
    };
    let mut fixed = interpret(model, algebra, leaves, &asked, reuse, deadline)?;
    fixed
        .iter_mut()
        .zip(&nothing)
        .for_each(|(value, nothing)| *value = value.take().or(nothing.clone()));
    Some(fixed)
}

/// Requires the source of each read that has only one possible source.
fn require_only_source(facts: &Facts<'_>, algebra: &Bounds, bound: &mut Bound<Rel>) {
    let (sk, n) = (&facts.sk, facts.sk.len());
    for r in (0..n).filter(|&r| sk.events[r].is_read() && !facts.domains.may_fault[r]) {
        let mut sources = (0..n).filter(|&w| bound.may.has(w, r) && algebra.may.has(w));
        if let (Some(w), None) = (sources.next(), sources.next()) {
            bound.must.insert(w, r);
        }
    }
}

/// The bounds of a free relation by its declaration.
fn declared(
    facts: &Facts<'_>,
    algebra: &Bounds,
    fixed: &Values<Bounds>,
    f: &FreeRel,
) -> Bound<Rel> {
    let (sk, n) = (&facts.sk, facts.sk.len());
    let within = rel_of(fixed, f.within);
    match f.shape {
        FreeShape::Function => {
            let may = Rel::from_fn(n, |w, r| {
                within.may.has(w, r)
                    && sk.events[r].is_read()
                    && sk.events[w].is_write()
                    && facts.domains.may_read(sk, r, w)
            });
            let mut bound = Bound {
                must: Rel::empty(n),
                may: may.restricted(&algebra.may),
            };
            require_only_source(facts, algebra, &mut bound);
            bound
        }
        FreeShape::Order => declared_order(within, f.containing.map(|id| rel_of(fixed, id))),
    }
}

/// Whether an axiom keeps a relation inside a free order.
fn is_direct(model: &Model, axiom: &Axiom) -> bool {
    match model.node(axiom.node).op {
        NodeOp::Diff(_, order) => matches!(model.node(order).op, NodeOp::Free(_)),
        _ => false,
    }
}

/// The closures that axioms make equal to an order, each with the first such axiom.
fn agreed(
    model: &Model,
    algebra: &Bounds,
    values: &Values<Bounds>,
    axioms: &[bool],
) -> Vec<(usize, ClosureOrder)> {
    let mut agreed: Vec<(usize, ClosureOrder)> = Vec::new();
    for (i, axiom) in model
        .axioms
        .iter()
        .enumerate()
        .filter(|&(i, axiom)| axioms[i] && !axiom.negated)
    {
        let one = ClosureOrder::new(model, algebra, values, axiom.test, axiom.node);
        agreed.extend(
            one.filter(|one| agreed.iter().all(|(_, other)| !one.of_same(other)))
                .map(|one| (i, one)),
        );
    }
    agreed
}

impl TaskBounds {
    /// Computes the bounds for executions in which certain axioms hold. `None` means out of time.
    pub(crate) fn new(
        facts: &Facts<'_>,
        axioms: &[bool],
        deadline: Option<Instant>,
    ) -> Option<TaskBounds> {
        let sk = &facts.sk;
        let n = sk.len();
        let model = facts.task.model;
        let algebra = Bounds {
            must: EventSet::from_fn(n, |e| sk.event(e).guard == Cond::TRUE),
            may: EventSet::from_fn(n, |e| sk.event(e).guard != Cond::FALSE),
            companions: facts.companions.clone(),
        };
        let open = vec![None; facts.open.len()];
        let leaves = BoundLeaves {
            facts,
            algebra: &algebra,
            open: &open,
            free: &[],
        };
        let fixed = fixed_values(facts, &algebra, &leaves, deadline)?;
        let mut free: Vec<Bound<Rel>> = (model.free.iter())
            .map(|f| declared(facts, &algebra, &fixed, f))
            .collect();
        for &((read, first), (_, second)) in &facts.implied.objects.before {
            free[model.finals.0 as usize].must.insert(first, second);
            free[model.finals.0 as usize].may.remove(second, first);
            free[model.values.0 as usize].may.remove(second, read);
        }
        let all = vec![true; model.nodes.len()];
        let mut narrowing = Narrowing {
            facts,
            algebra: &algebra,
            fixed: &fixed,
            on_free: rests_on_free(model),
            free,
            rests_on: Vec::new(),
            from_reads: from_reads(model).map(|node| (node, Rel::empty(n))),
        };
        let mut values: Values<Bounds> = Vec::new();
        for round in 0.. {
            let leaves = BoundLeaves {
                free: &narrowing.free,
                ..leaves
            };
            let reuse = Reuse {
                known: &fixed,
                before: &values,
            };
            values = interpret(model, &algebra, &leaves, &all, reuse, deadline)?;
            let mut news = false;
            for (i, axiom) in model.axioms.iter().enumerate() {
                let counts = axioms[i] && !axiom.negated && round < MAX_ROUNDS;
                if !counts || n > MANY && !is_direct(model, axiom) {
                    continue;
                }
                news |= narrowing.hear(i, axiom, &values);
                if stop::late(deadline) {
                    return None;
                }
            }
            if !news {
                break;
            }
        }
        let agreed = agreed(model, &algebra, &values, axioms);
        let Narrowing {
            free,
            mut rests_on,
            from_reads,
            ..
        } = narrowing;
        rests_on.extend(agreed.iter().map(|&(i, _)| i));
        Some(TaskBounds {
            algebra: Rc::new(algebra),
            values: Rc::new(values),
            free,
            agreed,
            rests_on,
            from_reads,
        })
    }

    /// Whether the bounds hold in all executions that satisfy certain axioms.
    pub(crate) fn serve(&self, axioms: &[bool]) -> bool {
        self.rests_on.iter().all(|&i| axioms[i])
    }

    /// The number of open pairs in the relations that axioms use.
    pub(crate) fn open(&self, facts: &Facts<'_>) -> usize {
        let model = facts.task.model;
        let axioms = model.axioms.iter().map(|axiom| axiom.node);
        let wanted = needed_unless(model, axioms, |id| facts.absent[id.index()]);
        let wanted = self
            .values
            .iter()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted);
        wanted.map(|(value, _)| open_pairs(value)).sum()
    }

    /// The node of from-reads, if the model has one.
    pub(crate) fn node_of_from_reads(&self) -> Option<NodeId> {
        self.from_reads.as_ref().map(|from_reads| from_reads.0)
    }

    /// Whether a write never comes behind the source of a read.
    pub(crate) fn is_never_behind(&self, write: usize, read: usize) -> bool {
        self.from_reads.as_ref().is_some_and(|(node, never)| {
            let bound = self.values[node.index()]
                .as_deref()
                .expect("bounds were computed");
            never.has(read, write) || !bound.rel().may.has(read, write)
        })
    }

    /// The pairs of a write and a read that may access the same memory, but where the read never
    /// reads from the write.
    pub(crate) fn never_read(&self, facts: &Facts<'_>) -> Rel {
        let sk = &facts.sk;
        let may = &self.free[facts.task.model.values.0 as usize].may;
        Rel::from_fn(sk.len(), |w, r| {
            let [write, read] = [w, r].map(|e| &sk.events[e]);
            write.is_write()
                && read.is_read()
                && facts.domains.may_overlap(sk, r, w)
                && !may.has(w, r)
        })
    }
}

fn open_pairs(value: &Computed<Bounds>) -> usize {
    match value.as_deref() {
        Some(Value::Rel(bound)) => bound.may.len() - bound.must.len(),
        _ => 0,
    }
}

/// The node of a model for from-reads: the writes behind the source of a read.
fn from_reads(model: &Model) -> Option<NodeId> {
    (0..model.nodes.len())
        .map(|i| NodeId(i as u32))
        .find(|&id| is_from_reads(model, id))
}

/// Whether a node is the inverse of the values relation, followed by the order of final writes.
fn is_from_reads(model: &Model, id: NodeId) -> bool {
    let NodeOp::Seq(sources, order) = model.node(id).op else {
        return false;
    };
    let NodeOp::Inverse(values) = model.node(sources).op else {
        return false;
    };
    is_free(model, values, model.values) && is_free(model, order, model.finals)
}

fn is_free(model: &Model, id: NodeId, free: FreeId) -> bool {
    matches!(model.node(id).op, NodeOp::Free(f) if f == free)
}
