//! Derivations as plain data: chains of [`Link`]s that begin and end where the axiom says.
//!
//! Expressions without a name dissolve into their parts: a sequence into its links, a union into
//! the member that holds. A named expression is one link, with its parts below it.
//!
//! # Invariants
//! - The links of a chain meet, and none of them is a set: membership of an event in a set is
//!   listed beside the chain.

use super::asked::LastObservables;
use super::derive::{Deriver, Step};
use super::words::Words;
use cat::model::ir::{Kind, NodeId, NodeOp, Test};
use verdict::Link;

/// A chain that breaks an axiom.
#[derive(Default)]
pub(super) struct Chain {
    /// The edges that a person would follow.
    pub(super) steps: Vec<Step>,
    /// The edges of the axiom that several steps make up: positions of the first and the last.
    pub(super) made: Vec<(usize, usize, Step)>,
    pub(super) closes: bool,
    /// Conditions of the axiom beside its edges.
    pub(super) besides: Vec<Step>,
    /// The derivations of the axiom's own expression, one per pair: together they break it.
    pub(super) roots: Vec<Step>,
}

/// The number of proofs among which the one closest to the question is chosen.
const TOLD: usize = 32;

/// A cycle, a loop, a pair or a member that breaks a test without negation. `None` if nothing does.
pub(super) fn chain(
    deriver: &Deriver<'_>,
    words: &Words<'_>,
    test: Test,
    node: NodeId,
    members: &[(usize, usize)],
    asked: &LastObservables,
) -> Option<Chain> {
    let roots: Vec<Step> = match test {
        Test::Acyclic => {
            let mut inner = node;
            // A closure has a cycle exactly if its operand has one.
            while let NodeOp::Plus(of) = deriver.model.node(inner).op {
                inner = of;
            }
            // The first among those that say equally much.
            let cycles = deriver.cycles(inner).into_iter().take(TOLD);
            cycles
                .map(|cycle| {
                    let pairs = cycle.windows(2);
                    pairs.map(|w| deriver.derive(inner, w[0], w[1])).collect()
                })
                .rev()
                .max_by_key(|steps| asked.said(steps))
                .unwrap_or_default()
        }
        Test::Irreflexive | Test::Empty => {
            let loops_only = test == Test::Irreflexive;
            let pairs = members
                .iter()
                .copied()
                .filter(|(i, j)| !loops_only || i == j);
            let steps = deriver
                .by_cost(node, pairs)
                .into_iter()
                .take(TOLD)
                .map(|(i, j)| deriver.derive(node, i, j));
            vec![steps.rev().max_by_key(|step| asked.said([step]))?]
        }
    };
    if roots.is_empty() {
        return None;
    }
    let mut chain = Chain {
        closes: test != Test::Empty,
        roots,
        ..Chain::default()
    };
    let mut edges = Vec::new();
    for root in &chain.roots {
        if deriver.model.node(node).kind == Kind::Set {
            chain.besides.push(root.clone());
        } else {
            flatten(deriver, root, true, &mut edges, &mut chain.besides);
        }
    }
    if !chain.closes {
        back(deriver, &mut edges, &mut chain);
    }
    if chain.closes {
        // It begins where the program does.
        let start = (0..edges.len())
            .min_by_key(|&i| (!deriver.starts(edges[i].from), edges[i].from))
            .unwrap_or(0);
        edges.rotate_left(start);
    }
    for edge in edges {
        let mut inner = Vec::new();
        expand(deriver, words, &edge, &mut inner);
        let first = chain.steps.len();
        let itself = matches!(inner.as_slice(), [one] if one.node == edge.node);
        chain.steps.extend(inner);
        if !itself && chain.steps.len() > first {
            chain.made.push((first, chain.steps.len() - 1, edge));
        }
    }
    let mut once: Vec<Step> = Vec::new();
    for step in std::mem::take(&mut chain.besides) {
        if !once
            .iter()
            .any(|o| (o.node, o.from, o.to, o.holds) == (step.node, step.from, step.to, step.holds))
        {
            once.push(step);
        }
    }
    chain.besides = once;
    Some(chain)
}

/// Closes the chain with the way back, if a pair breaks an axiom because an order has it the other
/// way round.
fn back(deriver: &Deriver<'_>, edges: &mut Vec<Step>, chain: &mut Chain) {
    let (Some(from), Some(to)) = (edges.first().map(|e| e.from), edges.last().map(|e| e.to)) else {
        return;
    };
    let turned = chain.besides.iter().find(|s| {
        let order = matches!(deriver.model.node(s.node).op, NodeOp::Free(_));
        order && !s.holds && (s.from, s.to) == (from, to) && deriver.has(s.node, to, from)
    });
    if let Some(order) = turned {
        edges.push(deriver.derive(order.node, to, from));
        chain.closes = true;
    }
}

/// The edges that a person would follow: paths of closures one by one, and of unions the member
/// that holds, down to relations that the model has words for.
fn expand(deriver: &Deriver<'_>, words: &Words<'_>, step: &Step, out: &mut Vec<Step>) {
    let node = deriver.model.node(step.node);
    if words.has(step.node) {
        return out.push(step.clone());
    }
    match node.op {
        NodeOp::Union(..) | NodeOp::Plus(_) => step
            .parts
            .iter()
            .for_each(|p| expand(deriver, words, p, out)),
        NodeOp::Seq(..) if node.name.is_none() || leads_far(deriver, words, step) => {
            step.parts
                .iter()
                .for_each(|p| expand(deriver, words, p, out));
        }
        NodeOp::IdentityOn(_) => {}
        NodeOp::Inter(..) | NodeOp::Diff(..) => {
            let mut inner = Vec::new();
            expand(deriver, words, main(deriver, step), &mut inner);
            // A single edge keeps its conditions.
            if inner.len() == 1 || (node.name.is_some() && !leads_far(deriver, words, step)) {
                out.push(step.clone());
            } else {
                out.extend(inner);
            }
        }
        _ => out.push(step.clone()),
    }
}

/// Whether it is a closure, or consists of one.
fn leads_far(deriver: &Deriver<'_>, words: &Words<'_>, step: &Step) -> bool {
    if words.has(step.node) {
        return false;
    }
    match deriver.model.node(step.node).op {
        NodeOp::Plus(_) => true,
        NodeOp::Union(..) | NodeOp::Seq(..) => {
            step.parts.iter().any(|p| leads_far(deriver, words, p))
        }
        NodeOp::Inter(..) | NodeOp::Diff(..) => leads_far(deriver, words, main(deriver, step)),
        _ => false,
    }
}

/// The part of an intersection or a difference that leads from one event to the other.
fn main<'s>(deriver: &Deriver<'_>, step: &'s Step) -> &'s Step {
    match deriver.model.node(step.node).op {
        NodeOp::Inter(a, b) if step.holds => &step.parts[main_part(deriver, a, b)],
        _ => &step.parts[0],
    }
}

/// The edges that an expression without a name (`open`: or any) consists of, and the conditions
/// beside them.
fn flatten(
    deriver: &Deriver<'_>,
    step: &Step,
    open: bool,
    edges: &mut Vec<Step>,
    besides: &mut Vec<Step>,
) {
    let node = deriver.model.node(step.node);
    if node.name.is_some() && !open {
        return edges.push(step.clone());
    }
    match node.op {
        NodeOp::Union(..) | NodeOp::Seq(..) | NodeOp::Plus(_) => {
            step.parts
                .iter()
                .for_each(|part| flatten(deriver, part, false, edges, besides));
        }
        NodeOp::IdentityOn(_) => step
            .parts
            .iter()
            .for_each(|part| conditions(deriver, part, besides)),
        NodeOp::Inter(a, b) => {
            let main = main_part(deriver, a, b);
            for (i, part) in step.parts.iter().enumerate() {
                if i == main {
                    flatten(deriver, part, false, edges, besides);
                } else {
                    conditions(deriver, part, besides);
                }
            }
        }
        NodeOp::Diff(..) => {
            flatten(deriver, &step.parts[0], false, edges, besides);
            conditions(deriver, &step.parts[1], besides);
        }
        _ => edges.push(step.clone()),
    }
}

/// The part of an intersection that leads from one event to the other; the other part is a
/// condition.
fn main_part(deriver: &Deriver<'_>, a: NodeId, b: NodeId) -> usize {
    let node = |x: NodeId| deriver.model.node(x);
    let leads = |x: NodeId| !matches!(node(x).op, NodeOp::Product(..) | NodeOp::IdentityOn(_));
    let weight = |x: NodeId| {
        (
            leads(x),
            !node(x).is_static,
            matches!(node(x).op, NodeOp::Seq(..)),
        )
    };
    usize::from(weight(b) > weight(a))
}

/// A condition, without the obvious: that something executes, that two different events differ.
fn conditions(deriver: &Deriver<'_>, step: &Step, out: &mut Vec<Step>) {
    let node = deriver.model.node(step.node);
    match node.op {
        NodeOp::Universe => {}
        _ if node.name.is_some() => out.push(step.clone()),
        NodeOp::Product(..) | NodeOp::Inter(..) | NodeOp::IdentityOn(_) if step.holds => {
            step.parts
                .iter()
                .for_each(|part| conditions(deriver, part, out));
        }
        NodeOp::IdentityOn(_) => {}
        NodeOp::Union(..) => step
            .parts
            .iter()
            .for_each(|part| conditions(deriver, part, out)),
        NodeOp::Inter(..) if step.parts.len() == 1 => conditions(deriver, &step.parts[0], out),
        _ => out.push(step.clone()),
    }
}

/// A step as a link, whose events are renumbered.
pub(super) fn link(
    deriver: &Deriver<'_>,
    words: &Words<'_>,
    step: &Step,
    place: &dyn Fn(usize) -> usize,
) -> Link {
    let mut below = Vec::new();
    let head = head(deriver, step, &mut below);
    let unnamed = deriver.model.node(head.node).name.is_none();
    match deriver.model.node(head.node).op {
        // `r^-1` has the parts of `r`.
        NodeOp::Inverse(_) if unnamed => {
            head.parts
                .iter()
                .flat_map(|part| &part.parts)
                .for_each(|part| dissolve(deriver, part, &mut below));
        }
        _ => head
            .parts
            .iter()
            .for_each(|part| dissolve(deriver, part, &mut below)),
    }
    Link {
        from: place(step.from),
        to: place(step.to),
        relation: words.name(head.node),
        is_set: deriver.model.node(step.node).kind == Kind::Set,
        holds: step.holds,
        says: words.clause(head),
        because: below
            .iter()
            .map(|part| link(deriver, words, part, place))
            .collect(),
    }
}

/// The name for an intersection or a difference without one: the part that leads from one event to
/// the other. The other parts are conditions.
fn head<'s>(deriver: &Deriver<'_>, step: &'s Step, conditions: &mut Vec<Step>) -> &'s Step {
    let node = deriver.model.node(step.node);
    match node.op {
        NodeOp::Inter(..) | NodeOp::Diff(..)
            if node.name.is_none() && node.kind == Kind::Rel && step.holds =>
        {
            let main = main(deriver, step);
            for part in step.parts.iter().filter(|p| !std::ptr::eq(*p, main)) {
                dissolve(deriver, part, conditions);
            }
            head(deriver, main, conditions)
        }
        NodeOp::Union(..) if node.name.is_none() && step.holds && step.parts.len() == 1 => {
            head(deriver, &step.parts[0], conditions)
        }
        _ => step,
    }
}

/// The steps with names, or of base relations, that a part consists of.
fn dissolve(deriver: &Deriver<'_>, step: &Step, out: &mut Vec<Step>) {
    let node = deriver.model.node(step.node);
    if node.name.is_some() || matches!(node.op, NodeOp::Base(_) | NodeOp::Free(_)) {
        return out.push(step.clone());
    }
    match node.op {
        NodeOp::Universe | NodeOp::Empty => {}
        NodeOp::IdentityOn(_) if !step.holds => {}
        _ if step.parts.is_empty() => out.push(step.clone()),
        _ => step
            .parts
            .iter()
            .for_each(|part| dissolve(deriver, part, out)),
    }
}

/// All events that a step speaks of.
pub(super) fn events(step: &Step, out: &mut Vec<usize>) {
    out.extend([step.from, step.to]);
    step.parts.iter().for_each(|part| events(part, out));
}
