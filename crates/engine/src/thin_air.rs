//! Finds the axioms of a model that exclude values out of thin air: values that depend on
//! themselves.

use std::collections::BTreeSet;

use crate::skeleton::signature::{self, BaseRole};
use cat::model::ir::{Axiom, Model, NodeId, NodeOp, Test};

/// Whether an axiom of the model makes every cycle of `rf` and value flow impossible.
pub(crate) fn excludes_thin_air(model: &Model) -> bool {
    model
        .axioms
        .iter()
        .any(|a| closes_value_flow(model, a, true))
}

/// The axioms that only exclude values out of thin air. They forbid cycles of `rf` with program
/// order or dependencies, and mention no other free relation.
pub fn thin_air_axioms(model: &Model) -> Vec<usize> {
    (0..model.axioms.len())
        .filter(|&i| {
            closes_value_flow(model, &model.axioms[i], true) && is_alone(model, &model.axioms[i])
        })
        .collect()
}

/// Whether an axiom mentions no other free relation than the values.
fn is_alone(model: &Model, a: &Axiom) -> bool {
    let mut seen = vec![false; model.nodes.len()];
    let mut todo = vec![a.node];
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        match &model.node(id).op {
            NodeOp::Free(f) if *f != model.values => return false,
            NodeOp::Var(group, _) => {
                let group = &model.groups[*group as usize];
                todo.extend(group.bodies.iter().copied());
            }
            op => todo.extend(op.operands()),
        }
    }
    true
}

/// Whether an axiom is `acyclic` over a union that holds the values relation and all three
/// dependencies. With `by_order`, program order may replace the dependencies.
pub(crate) fn closes_value_flow(model: &Model, a: &Axiom, by_order: bool) -> bool {
    if a.test != Test::Acyclic || a.negated {
        return false;
    }
    let mut parts: Vec<NodeId> = vec![a.node];
    let (mut has_values, mut ordered, mut dependencies) = (false, false, BTreeSet::new());
    while let Some(id) = parts.pop() {
        match &model.node(id).op {
            NodeOp::Union(x, y) => parts.extend([*x, *y]),
            NodeOp::Free(f) => has_values |= *f == model.values,
            NodeOp::Base(base) => match signature::row(*base).role {
                BaseRole::ProgramOrder => ordered = true,
                BaseRole::Dependency => {
                    dependencies.insert(*base);
                }
                _ => {}
            },
            _ => {}
        }
    }
    has_values
        && (by_order && ordered || dependencies.len() == signature::count(BaseRole::Dependency))
}
