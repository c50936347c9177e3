//! Bounds the leaves of a model, given the known part of a task's open cells and free relations.
//! Before any choice, the bounds already limit which write each read can read from.

use std::rc::Rc;
use std::time::Instant;

use super::task::Task;
use crate::skeleton::Cond;
use crate::skeleton::base::Base;
use cat::algebra::bounds::{Bound, Bounds};
use cat::algebra::circuit::Agreed;
use cat::algebra::implied::{Said, implied, rests_on_free};
use cat::algebra::{Computed, Leaves, Value, Values, empty, interpret, needed_unless};
use cat::model::ir::{Axiom, FreeId, FreeRel, Kind, Model, NodeId, NodeOp, Shape};
use cat::model::signature::BaseId;
use cat::rel::{EventSet, Rel};

/// Bounds of leaves among the events of `algebra`.
pub(super) struct BoundLeaves<'x, 'a> {
    pub(super) task: &'x Task<'a>,
    pub(super) algebra: &'x Bounds,
    /// The known values of [`Task::open`].
    pub(super) open: &'x [Option<bool>],
    pub(super) free: &'x [Bound<Rel>],
}

impl Leaves<Bounds> for BoundLeaves<'_, '_> {
    fn base(&self, id: BaseId, _: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        let may = &self.algebra.may;
        let (first, base) = &self.task.bases[&id];
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
pub(super) fn declared_order(within: &Bound<Rel>, containing: Option<&Bound<Rel>>) -> Bound<Rel> {
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
/// The bounds hold only for queries that include these axioms: [`TaskBounds::rests_on`].
pub(crate) struct TaskBounds {
    /// Events that surely and possibly execute.
    pub(crate) algebra: Rc<Bounds>,
    /// By node: its bounds.
    pub(crate) values: Rc<Values<Bounds>>,
    /// By free relation: its bounds.
    pub(crate) free: Vec<Bound<Rel>>,
    /// By axiom: the closures that it makes equal to an order.
    pub(crate) agreed: Vec<(usize, Agreed)>,
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

impl TaskBounds {
    /// Computes the bounds for executions in which certain axioms hold. `None` means out of time.
    pub(crate) fn new(
        task: &Task<'_>,
        axioms: &[bool],
        deadline: Option<Instant>,
    ) -> Option<TaskBounds> {
        let sk = &task.sk;
        let n = sk.len();
        let model = task.model;
        let algebra = Bounds {
            must: EventSet::from_fn(n, |e| sk.event(e).guard == Cond::TRUE),
            may: EventSet::from_fn(n, |e| sk.event(e).guard != Cond::FALSE),
        };
        let roots = model
            .free
            .iter()
            .flat_map(|f| [Some(f.within), f.containing, f.covering])
            .flatten();
        let open = vec![None; task.open.len()];
        let leaves = BoundLeaves {
            task,
            algebra: &algebra,
            open: &open,
            free: &[],
        };
        // A node that is empty in every execution is empty under any bounds. Most nodes of a large
        // model are.
        let absent = |id: NodeId| task.absent[id.index()];
        let nothing = [Kind::Set, Kind::Rel].map(|kind| Rc::new(empty(&algebra, kind)));
        let nothing: Values<Bounds> = (model.nodes.iter().zip(&task.absent))
            .map(|(node, &absent)| {
                absent.then(|| nothing[usize::from(node.kind == Kind::Rel)].clone())
            })
            .collect();
        let asked = needed_unless(model, roots, absent);
        let mut fixed = interpret(model, &algebra, &leaves, &asked, (&nothing, &[]), deadline)?;
        fixed
            .iter_mut()
            .zip(&nothing)
            .for_each(|(value, nothing)| *value = value.take().or(nothing.clone()));
        let rel = |id: NodeId| fixed[id.index()].as_deref().expect("asked for").rel();
        let only_source = |bound: &mut Bound<Rel>| {
            for r in (0..n).filter(|&r| sk.events[r].is_read() && !task.domains.may_fault[r]) {
                let mut sources = (0..n).filter(|&w| bound.may.has(w, r) && algebra.may.has(w));
                if let (Some(w), None) = (sources.next(), sources.next()) {
                    bound.must.insert(w, r);
                }
            }
        };
        let declared = |f: &FreeRel| {
            let within = rel(f.within);
            match f.shape {
                Shape::Function => {
                    let may = Rel::from_fn(n, |w, r| {
                        within.may.has(w, r)
                            && sk.events[r].is_read()
                            && sk.events[w].is_write()
                            && task.domains.may_overlap(sk, r, w)
                    });
                    let mut bound = Bound {
                        must: Rel::empty(n),
                        may: may.restricted(&algebra.may),
                    };
                    only_source(&mut bound);
                    bound
                }
                Shape::Order => declared_order(within, f.containing.map(rel)),
            }
        };
        let mut free: Vec<Bound<Rel>> = model.free.iter().map(declared).collect();
        for &((read, first), (_, second)) in &task.objects.before {
            free[model.finals.0 as usize].must.insert(first, second);
            free[model.finals.0 as usize].may.remove(second, first);
            free[model.values.0 as usize].may.remove(second, read);
        }
        let all = vec![true; model.nodes.len()];
        let on_free = rests_on_free(model);
        let mut rests_on = Vec::new();
        let mut from_reads = from_reads(model).map(|node| (node, Rel::empty(n)));
        let mut values: Values<Bounds> = Vec::new();
        for round in 0.. {
            let leaves = BoundLeaves {
                free: &free,
                ..leaves
            };
            values = interpret(model, &algebra, &leaves, &all, (&fixed, &values), deadline)?;
            let mut news = false;
            let direct = |axiom: &Axiom| match model.node(axiom.node).op {
                NodeOp::Diff(_, order) => matches!(model.node(order).op, NodeOp::Free(_)),
                _ => false,
            };
            let asked = |i: usize, axiom: &Axiom| {
                axioms[i] && !axiom.negated && round < MAX_ROUNDS && (n <= MANY || direct(axiom))
            };
            for (i, axiom) in model
                .axioms
                .iter()
                .enumerate()
                .filter(|&(i, axiom)| asked(i, axiom))
            {
                let mut of_free = Vec::new();
                implied(
                    model,
                    &on_free,
                    &algebra,
                    &values,
                    (axiom.test, axiom.node),
                    &mut |node, said| {
                        if let NodeOp::Free(f) = model.node(node).op {
                            of_free.push((f, said.clone()));
                        }
                        if let (Some((from_reads, never)), Some(more)) =
                            (&mut from_reads, &said.never)
                            && *from_reads == node
                        {
                            *never = std::mem::replace(never, Rel::empty(0)).or(more);
                        }
                    },
                );
                for (f, mut said) in of_free {
                    let decl = &model.free[f.0 as usize];
                    let bound = &mut free[f.0 as usize];
                    let mut heard = false;
                    if decl.shape == Shape::Order {
                        // If the order covers a pair, one direction holds if the other does not.
                        let turned = |pairs: &Option<Rel>| pairs.as_ref().map(Rel::inverse);
                        let covered = decl
                            .covering
                            .map(|c| rel(c).must.clone().or(&rel(c).must.inverse()));
                        let total = turned(&said.never)
                            .zip(covered)
                            .map(|(pairs, covered)| pairs.and(&covered));
                        heard = bound.hear(&Said {
                            never: turned(&said.always),
                            always: total,
                        });
                    } else {
                        said.always = None;
                    }
                    if bound.hear(&said) || heard {
                        news = true;
                        rests_on.push(i);
                        if decl.shape == Shape::Function {
                            only_source(bound);
                        }
                    }
                }
                if stop::late(deadline) {
                    return None;
                }
            }
            if !news {
                break;
            }
        }
        let mut agreed: Vec<(usize, Agreed)> = Vec::new();
        for (i, axiom) in model
            .axioms
            .iter()
            .enumerate()
            .filter(|&(i, axiom)| axioms[i] && !axiom.negated)
        {
            let one = Agreed::new(model, &algebra, &values, axiom.test, axiom.node);
            agreed.extend(
                one.filter(|one| agreed.iter().all(|(_, other)| !one.of_same(other)))
                    .map(|one| (i, one)),
            );
        }
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
    pub(crate) fn open(&self, task: &Task<'_>) -> usize {
        let model = task.model;
        let axioms = model.axioms.iter().map(|axiom| axiom.node);
        let wanted = needed_unless(model, axioms, |id| task.absent[id.index()]);
        let wanted = self
            .values
            .iter()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted);
        let pairs = |value: &Computed<Bounds>| match value.as_deref() {
            Some(Value::Rel(bound)) => bound.may.len() - bound.must.len(),
            _ => 0,
        };
        wanted.map(|(value, _)| pairs(value)).sum()
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
    pub(crate) fn never_read(&self, task: &Task<'_>) -> Rel {
        let sk = &task.sk;
        let may = &self.free[task.model.values.0 as usize].may;
        Rel::from_fn(sk.len(), |w, r| {
            let [write, read] = [w, r].map(|e| &sk.events[e]);
            write.is_write()
                && read.is_read()
                && task.domains.may_overlap(sk, r, w)
                && !may.has(w, r)
        })
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
