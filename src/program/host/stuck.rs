//! Waits that can never end: a cycle of the launch graph, or a user event that nobody sets.
//!
//! # Invariants
//! - What is reported is a shortest such chain from the wait that a person sees, so that each link can be checked.
//! # Sources
//! - OpenCL API specification, *Execution Model*: a command starts when all events of its wait list are complete.

use std::collections::{HashMap, VecDeque};

use petgraph::Direction;
use petgraph::algo::tarjan_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::graph::never_set;
use super::{Edge, HandleId, LaunchGraph, Mask, Node};
use crate::program::Program;

/// A step of a chain of waits: `waits` cannot happen before `awaited`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What cannot happen yet.
    pub waits: Node,
    /// What has to happen before it.
    pub awaited: Node,
    /// Why.
    pub edge: Edge,
}

/// Why part of a program never runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Waits that wait for each other: each link waits for the next one, the last one for the first.
    Cycle(Vec<Link>),
    /// Something waits for a user event that no call sets.
    NeverSet(HandleId),
}

impl LaunchGraph {
    /// Why some of the program can never run, if that is so. `time`: also if only the order of the calls is to blame.
    pub(super) fn stuck_in(&self, program: &Program, time: bool) -> Option<Stuck> {
        let graph = self.graph.filter_map(
            |_, node| Some(*node),
            |e, edge| {
                // That a command starts after its call is a fact; the order of the calls is one of several.
                let (a, b) = self.graph.edge_endpoints(e)?;
                let calls = matches!((self.graph[a], self.graph[b]), (Node::Call(_), Node::Call(_)));
                (time || edge.mask != Mask::Time || !calls).then_some(*edge)
            },
        );
        let inside = tarjan_scc(&graph).into_iter().filter(|c| c.len() > 1).min_by_key(|c| c.len());
        if let Some(component) = inside {
            return Some(Stuck::Cycle(cycle(&graph, &component)));
        }
        never_set(program).into_iter().map(Stuck::NeverSet).next()
    }

    /// Why some of the program can never run, if that is so.
    pub fn stuck(&self, program: &Program) -> Option<Stuck> {
        self.stuck_in(program, false)
    }
}

/// A shortest cycle through a node of a strongly connected component, against the direction of the edges.
fn cycle(graph: &petgraph::Graph<Node, Edge>, component: &[NodeIndex]) -> Vec<Link> {
    // It begins at a return that waits, if there is one: that is what a person sees.
    let rank = |n: &NodeIndex| match graph[*n] {
        Node::Return(c) => (0, c.0),
        Node::Start(c) => (1, c.0),
        _ => (2, 0),
    };
    let start = *component.iter().min_by_key(|n| rank(n)).expect("a component has nodes");
    let mut from: HashMap<NodeIndex, (NodeIndex, Edge)> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(n) = queue.pop_front() {
        for e in graph.edges_directed(n, Direction::Incoming) {
            let before = e.source();
            if before == start {
                let mut links = vec![Link { waits: graph[n], awaited: graph[start], edge: *e.weight() }];
                let mut at = n;
                while let Some((next, edge)) = from.get(&at).copied() {
                    links.push(Link { waits: graph[next], awaited: graph[at], edge });
                    at = next;
                }
                links.reverse();
                return links;
            }
            if component.contains(&before) && !from.contains_key(&before) {
                from.insert(before, (n, *e.weight()));
                queue.push_back(before);
            }
        }
    }
    Vec::new()
}
