//! Derives from an axiom which pairs free relations must or cannot have, given bounds. It works
//! backwards: from pairs that the whole relation cannot have to pairs that its operands cannot or
//! must have.
//!
//! Example: `fr ; causality` is irreflexive, and a write surely precedes a read in causality order.
//! Then the read cannot read from any write that this write overwrites. This follows before any
//! choice is made.
//!
//! # Invariants
//! - Sound: in every completion of the bounds in which the axiom holds, the relation has no pair of
//!   [`ImpliedPairs::never`] and every pair of [`ImpliedPairs::always`], given that both events of
//!   the pair execute. Any third event involved must execute in every completion.
//! - Recursive definitions are skipped.

use super::Values;
use super::bounds::{Bound, Bounds};
use crate::model::ir::{Kind, Model, NodeId, NodeOp, Test};
use crate::rel::{EventSet, Rel};

/// The derived facts about one relation.
#[derive(Clone, Debug, Default)]
pub struct ImpliedPairs {
    /// Pairs that it does not have.
    pub never: Option<Rel>,
    /// Pairs that it has.
    pub always: Option<Rel>,
}

/// Derives facts from the success of a test on a node, given the bounds of all its operands. Calls
/// `hear` for each node below it that depends on a free relation, including the free relations.
/// `free` is the result of [`rests_on_free`].
pub fn implied(
    model: &Model,
    free: &[bool],
    algebra: &Bounds,
    values: &Values<Bounds>,
    test: Test,
    node: NodeId,
    hear: &mut dyn FnMut(NodeId, &ImpliedPairs),
) {
    let top = node.index();
    if model.nodes[top].kind == Kind::Set {
        return;
    }
    let rel = |id: NodeId| {
        values[id.index()]
            .as_deref()
            .expect("bounds were computed")
            .rel()
    };
    let first = impossible(test, rel(node), algebra);
    let mut said: Vec<ImpliedPairs> = vec![ImpliedPairs::default(); top + 1];
    said[top].never = Some(first);
    for id in (0..=top).rev() {
        let ImpliedPairs { never, always } = std::mem::take(&mut said[id]);
        let node = NodeId(id as u32);
        if (never.is_none() && always.is_none()) || !free[id] {
            continue;
        }
        let bound = rel(node);
        // Known facts are not reported. If the axiom contradicts a known fact, no execution exists.
        let never = news(never.map(|never| {
            never
                .restricted(&algebra.may)
                .and(&bound.may)
                .minus(&bound.must)
        }));
        let always = news(always.map(|always| always.restricted(&algebra.may).minus(&bound.must)));
        let here = ImpliedPairs { never, always };
        hear(node, &here);
        let ImpliedPairs { never, always } = here;
        let mut say = |id: NodeId, never: Option<Rel>, always: Option<Rel>| {
            if free[id.index()] {
                let ImpliedPairs {
                    never: old_never,
                    always: old_always,
                } = &mut said[id.index()];
                add(old_never, never);
                add(old_always, always);
            }
        };
        match model.node(node).op {
            NodeOp::Union(a, b) => {
                let only =
                    |other: NodeId| always.clone().map(|always| always.minus(&rel(other).may));
                let (of_a, of_b) = (only(b), only(a));
                say(a, never.clone(), of_a);
                say(b, never, of_b);
            }
            NodeOp::Inter(a, b) => {
                let without =
                    |other: NodeId| never.clone().map(|never| never.and(&rel(other).must));
                let (of_a, of_b) = (without(b), without(a));
                say(a, of_a, always.clone());
                say(b, of_b, always);
            }
            NodeOp::Diff(a, b) => {
                let of_a = never.clone().map(|never| never.minus(&rel(b).may));
                let of_b = never.map(|never| never.and(&rel(a).must));
                say(a, of_a, always.clone());
                say(b, always, of_b);
            }
            NodeOp::Inverse(a) => {
                say(a, never.map(|r| r.inverse()), always.map(|r| r.inverse()));
            }
            NodeOp::Seq(a, b) => {
                if let Some(never) = never {
                    let of_a =
                        free[a.index()].then(|| without_end(&never, &rel(b).must, &algebra.must));
                    let of_b =
                        free[b.index()].then(|| without_start(&never, &rel(a).must, &algebra.must));
                    say(a, of_a, None);
                    say(b, of_b, None);
                }
            }
            NodeOp::Plus(a) => {
                if let Some(never) = never {
                    let later = without_start(&never, &bound.must, &algebra.must).or(&never);
                    let inner = without_end(&later, &bound.must, &algebra.must).or(&later);
                    say(a, Some(inner), None);
                }
            }
            _ => {}
        }
    }
}

/// The pairs, unless there are none.
fn news(pairs: Option<Rel>) -> Option<Rel> {
    pairs.filter(|pairs| !pairs.is_empty())
}

/// The pairs that a relation cannot have if a test succeeds on it.
fn impossible(test: Test, bound: &Bound<Rel>, algebra: &Bounds) -> Rel {
    match test {
        Test::Empty => bound.may.clone(),
        Test::Irreflexive => Rel::identity_on(&algebra.may),
        Test::Acyclic => bound
            .must
            .clone()
            .plus(&algebra.must)
            .inverse()
            .or(&Rel::identity_on(&algebra.may)),
    }
}

/// The pairs that would give one of `pairs` if followed by one of `behind`.
fn without_end(pairs: &Rel, behind: &Rel, sure: &EventSet) -> Rel {
    composed(pairs, &behind.inverse(), sure)
}

/// The pairs that would give one of `pairs` if preceded by one of `before`.
fn without_start(pairs: &Rel, before: &Rel, sure: &EventSet) -> Rel {
    composed(&before.inverse(), pairs, sure)
}

/// `a ; b`, where the middle event must execute or is one end of the resulting pair.
fn composed(a: &Rel, b: &Rel, sure: &EventSet) -> Rel {
    let mut out = a.seq(b, sure);
    for e in 0..a.universe_len() {
        if a.has(e, e) {
            b.successors(e).for_each(|k| out.insert(e, k));
        }
        if b.has(e, e) {
            (0..a.universe_len())
                .filter(|&i| a.has(i, e))
                .for_each(|i| out.insert(i, e));
        }
    }
    out
}

fn add(all: &mut Option<Rel>, more: Option<Rel>) {
    if let Some(more) = more {
        *all = Some(all.take().map_or_else(|| more.clone(), |all| all.or(&more)));
    }
}

/// By node: whether it is a relation that depends on a free relation and is no part of a recursive
/// definition.
pub fn rests_on_free(model: &Model) -> Vec<bool> {
    let mut rests = vec![false; model.nodes.len()];
    for (id, node) in model.nodes.iter().enumerate() {
        let of_operands = node.op.operands().any(|a| rests[a.index()]);
        let recursive = model.groups.iter().any(|g| g.range.contains(&(id as u32)));
        rests[id] = node.kind == Kind::Rel
            && !recursive
            && (matches!(node.op, NodeOp::Free(_)) || of_operands);
    }
    rests
}

impl Bound<Rel> {
    /// Applies derived facts to the bounds; returns whether they changed.
    pub fn hear(&mut self, said: &ImpliedPairs) -> bool {
        let before = (self.must.len(), self.may.len());
        if let Some(never) = &said.never {
            self.may = self.may.clone().minus(never);
        }
        if let Some(always) = &said.always {
            self.must = self.must.clone().or(always);
        }
        self.must = self.must.clone().and(&self.may);
        (self.must.len(), self.may.len()) != before
    }
}
