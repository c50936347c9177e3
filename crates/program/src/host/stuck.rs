//! Waits that can never end: a cycle of the launch graph, or a user event that no call sets.
//!
//! # Invariants
//! - The report is a shortest such chain from the wait in the user's code, so that the user can
//!   check each link.
//! # Sources
//! - OpenCL API specification, *Execution Model*: a command starts when all events of its wait list
//!   are complete.

use std::collections::{BTreeSet, HashMap, VecDeque};

use petgraph::Direction;
use petgraph::algo::tarjan_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::submission::never_set;
use super::{
    CallId, CommandId, CommandOrigin, HandleId, LaunchEdge, LaunchGraph, LaunchNode, Mask, Rule,
};
use crate::{Instr, Op, Program, ThreadId};

/// A link in a chain of waits: `waits` cannot happen before `awaited`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitLink {
    /// The blocked point.
    pub waits: LaunchNode,
    /// The point that has to come first.
    pub awaited: LaunchNode,
    /// The edge between them.
    pub edge: LaunchEdge,
}

/// The reason why part of a program never runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StuckWait {
    /// A cycle of waits: each link waits for the next one, the last one for the first.
    Cycle(Vec<WaitLink>),
    /// A wait for a user event that no call sets.
    NeverSet(HandleId),
}

impl LaunchGraph {
    /// Why part of the program can never run, if so. `time`: the order of the calls counts as a
    /// reason, too.
    pub(super) fn stuck_in(&self, program: &Program, time: bool) -> Option<StuckWait> {
        let graph = self.graph.filter_map(
            |_, node| Some(*node),
            |e, edge| {
                // Every order has the edges from a call to its command's start. The edges between
                // calls belong to one of several orders.
                let (a, b) = self.graph.edge_endpoints(e)?;
                let calls = matches!(
                    (self.graph[a], self.graph[b]),
                    (LaunchNode::Call(_), LaunchNode::Call(_))
                );
                (time || edge.mask != Mask::Time || !calls).then_some(*edge)
            },
        );
        let inside = tarjan_scc(&graph)
            .into_iter()
            .filter(|c| c.len() > 1)
            .min_by_key(|c| c.len());
        if let Some(component) = inside {
            return Some(StuckWait::Cycle(cycle(&graph, &component)));
        }
        never_set(program)
            .into_iter()
            .map(StuckWait::NeverSet)
            .next()
    }

    /// Why part of the program can never run, if so.
    pub fn stuck(&self, program: &Program) -> Option<StuckWait> {
        self.stuck_in(program, false)
    }
}

impl LaunchNode {
    /// The point as text for messages.
    pub fn describe(&self, program: &Program) -> String {
        let host = program.host.as_deref().expect("a host program");
        let place = |(t, i): (ThreadId, &Instr)| {
            format!(
                "`{}` of {} (line {})",
                i.text,
                program.thread(t).name,
                i.line
            )
        };
        let call = |id: CallId| {
            LaunchNode::Call(id)
                .site(program)
                .map_or("a call".to_string(), place)
        };
        let command = |id: CommandId| {
            let name = &host.command(id).name;
            let enqueued = match host.command(id).origin {
                CommandOrigin::Call(c) => LaunchNode::Call(c),
                _ => LaunchNode::Enqueue(id),
            };
            enqueued
                .site(program)
                .map_or(format!("`{name}`"), |(_, i)| {
                    format!("`{name}` (line {})", i.line)
                })
        };
        match *self {
            LaunchNode::Call(c) => format!("the call {}", call(c)),
            LaunchNode::Return(c) => format!("the return from {}", call(c)),
            LaunchNode::Enqueue(c) => format!("the call that enqueues {}", command(c)),
            LaunchNode::Enter(t) | LaunchNode::Leave(t) => {
                format!("thread {}", program.thread(t).name)
            }
            LaunchNode::GridWait(t) => {
                format!(
                    "a wait of thread {} for the kernel before its own",
                    program.thread(t).name
                )
            }
            LaunchNode::Start(c) => format!("the start of {}", command(c)),
            LaunchNode::GroupEnd(c, _) | LaunchNode::End(c) => format!("the end of {}", command(c)),
            LaunchNode::Done(c) => format!("the completion of {}", command(c)),
            LaunchNode::User(h) => format!("the user event `{}`", host.handle(h).name),
            LaunchNode::Query(q, _) => {
                let asks = |op: &Op| matches!(op, Op::Status { of, .. } if *of == q);
                let asked = program
                    .instrs()
                    .find(|(_, _, i)| asks(&i.op))
                    .map(|(t, _, i)| (t, i));
                asked.map_or("a query".to_string(), place)
            }
        }
    }
}

impl StuckWait {
    /// One sentence for each link of the wait that is visible in the user's code.
    pub fn describe(&self, program: &Program) -> Vec<String> {
        match self {
            StuckWait::NeverSet(h) => {
                let host = program.host.as_deref().expect("a host program");
                vec![format!(
                    "the user event `{}` is awaited, and no call sets it",
                    host.handle(*h).name
                )]
            }
            StuckWait::Cycle(links) => links
                .iter()
                // A command obviously ends after it starts.
                .filter(|link| {
                    link.edge.rule != Some(Rule::GroupEnd) && link.edge.rule != Some(Rule::OwnEvent)
                })
                .map(|link| {
                    let (waits, awaited) =
                        (link.waits.describe(program), link.awaited.describe(program));
                    let rule = link
                        .edge
                        .rule
                        .map_or(String::new(), |r| format!(" ({}: {})", r.id(), r.doc()));
                    format!("{waits} waits for {awaited}{rule}")
                })
                .collect(),
        }
    }

    /// The same on one line.
    pub fn brief(&self, program: &Program) -> String {
        match self {
            StuckWait::NeverSet(_) => self.describe(program).concat(),
            StuckWait::Cycle(links) => {
                let chain: Vec<String> = links
                    .iter()
                    .filter(|l| !matches!(l.edge.rule, Some(Rule::GroupEnd | Rule::OwnEvent)))
                    .map(|l| l.waits.describe(program))
                    .collect();
                format!("waits in a circle: {}", chain.join(" for "))
            }
        }
    }
}

impl StuckWait {
    /// The points that are never reached.
    pub fn nodes(&self) -> Vec<LaunchNode> {
        match self {
            StuckWait::Cycle(links) => links.iter().map(|l| l.waits).collect(),
            StuckWait::NeverSet(h) => vec![LaunchNode::User(*h)],
        }
    }
}

impl LaunchGraph {
    /// The points behind these: they are never reached if these are not.
    pub fn never(&self, nodes: &[LaunchNode]) -> BTreeSet<LaunchNode> {
        let mut found: BTreeSet<LaunchNode> = nodes.iter().copied().collect();
        let mut queue: Vec<LaunchNode> = nodes.to_vec();
        while let Some(node) = queue.pop() {
            let Some(&at) = self.index.get(&node) else {
                continue;
            };
            for e in self.graph.edges(at) {
                let next = self.graph[e.target()];
                // The order of calls of different threads is one of several.
                let order = self.is_timed
                    && e.weight().mask == Mask::Time
                    && matches!((node, next), (LaunchNode::Call(_), LaunchNode::Call(_)));
                if !order && found.insert(next) {
                    queue.push(next);
                }
            }
        }
        found
    }

    /// The unreached points that a point waits for.
    pub fn awaited(&self, node: LaunchNode, never: &BTreeSet<LaunchNode>) -> Vec<LaunchNode> {
        let Some(&at) = self.index.get(&node) else {
            return Vec::new();
        };
        let before = self
            .graph
            .edges_directed(at, Direction::Incoming)
            .map(|e| self.graph[e.source()]);
        let mut all: Vec<LaunchNode> = before.filter(|n| never.contains(n)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A shortest cycle through a node of a strongly connected component, against the direction of the
/// edges.
fn cycle(
    graph: &petgraph::Graph<LaunchNode, LaunchEdge>,
    component: &[NodeIndex],
) -> Vec<WaitLink> {
    // Prefers to begin at a return that waits, because that wait is in the user's code.
    let start = *component
        .iter()
        .min_by_key(|n| match graph[**n] {
            LaunchNode::Return(c) => (0, c.0),
            LaunchNode::Start(c) => (1, c.0),
            _ => (2, 0),
        })
        .expect("a component has nodes");
    let mut from: HashMap<NodeIndex, (NodeIndex, LaunchEdge)> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(n) = queue.pop_front() {
        for e in graph.edges_directed(n, Direction::Incoming) {
            let before = e.source();
            if before == start {
                let mut links = vec![WaitLink {
                    waits: graph[n],
                    awaited: graph[start],
                    edge: *e.weight(),
                }];
                let mut at = n;
                while let Some((next, edge)) = from.get(&at).copied() {
                    links.push(WaitLink {
                        waits: graph[next],
                        awaited: graph[at],
                        edge,
                    });
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
