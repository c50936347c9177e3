//! The control-flow graph of a thread: where the two sides of a branch meet again.

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::code::Act;

/// By instruction: its immediate post-dominator, the first instruction that every way from it to
/// the end passes. The value is the end (the length of the code) if there is no other, or if no way
/// leads to the end.
pub(super) fn reconvergence(acts: &[Act]) -> Vec<usize> {
    let end = acts.len();
    // Edges run backwards: post-dominators are the dominators from the end.
    let mut back: DiGraph<(), ()> = DiGraph::with_capacity(end + 1, 2 * end);
    let nodes: Vec<NodeIndex> = (0..=end).map(|_| back.add_node(())).collect();
    for (pc, act) in acts.iter().enumerate() {
        for next in act
            .target()
            .into_iter()
            .chain(act.falls_through().then_some(pc + 1))
        {
            back.add_edge(nodes[next], nodes[pc], ());
        }
    }
    let dominators = simple_fast(&back, nodes[end]);
    (0..end)
        .map(|pc| {
            dominators
                .immediate_dominator(nodes[pc])
                .map_or(end, NodeIndex::index)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::{Expr, RegId};

    fn code(branches: &[Option<(usize, bool)>]) -> Vec<Act> {
        let reg = Expr::Reg(RegId(0));
        let act = |b: &Option<(usize, bool)>| match b {
            Some((target, always)) => Act::Branch {
                cond: if *always { Expr::Const(1) } else { reg.clone() },
                target: *target,
            },
            None => Act::Assign {
                dst: RegId(0),
                value: Expr::Const(0),
            },
        };
        branches.iter().map(act).collect()
    }

    #[test]
    fn sides_meet_where_both_must_pass() {
        // if (r) { 1, jump 4 } else { 3 } 4
        let acts = code(&[Some((3, false)), None, Some((4, true)), None, None]);
        assert_eq!(reconvergence(&acts), [4, 2, 4, 4, 5]);
    }

    #[test]
    fn a_loop_is_left_together() {
        // do { 0 } while (r); 2
        assert_eq!(
            reconvergence(&code(&[None, Some((0, false)), None])),
            [1, 2, 3]
        );
    }

    #[test]
    fn no_way_to_the_end_means_the_end() {
        assert_eq!(reconvergence(&code(&[Some((0, true)), None])), [2, 2]);
        // One side returns, the other one goes on.
        assert_eq!(reconvergence(&code(&[Some((3, false)), None, None]))[0], 3);
    }
}
