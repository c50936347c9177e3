//! The launch graph: the orders that the calls of host threads establish, for CUDA and OpenCL
//! alike.
//!
//! For each host call the graph has a node for the call and one for its return. For each command it
//! has nodes for the start, the ends of its work-groups, its end and its completion. A thread's
//! operation lies between two of these points. An operation precedes another if a path leads from
//! the first to the second ([`LaunchGraph::ordered`]).
//!
//! ```text
//!  call ─▶ start ─▶ enter ─ operations ─▶ leave ─▶ group end ─▶ end ─▶ done
//!  done ─▶ start of another, return of a wait
//! ```
//!
//! # Invariants
//! - The graph belongs to one order of the host threads' calls ([`super::Launches`] collects all
//!   orders).
//! - Every edge either rests on one [`Rule`] or orders time only. Time edges say that a callback
//!   runs after its registration, and that calls are issued in the given order. They never order
//!   memory.
//! - An edge with [`Mask::Fine`] orders accesses to fine-grained shared virtual memory only.
//! # Sources
//! - OpenCL API specification, *Memory Ordering Rules: Host-side and Device-side Commands*; KHR:
//!   clFlush, *Flush and Finish*, for submission.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use petgraph::algo::has_path_connecting;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeFiltered};

use super::submission::makers;
use super::{
    CallId, CommandId, CommandKind, CommandOrigin, HandleId, HostOp, HostProgram, LaneStates, On,
    QueryId, QueryView, Rule, StartCondition,
};
use crate::{Instr, Op, Program, Tag, ThreadId};

/// The effect of an order of calls: edges, commands never submitted, pairs of calls, query results,
/// and dependencies of kernels.
pub(super) type Effect = (
    Vec<(LaunchNode, LaunchNode, LaunchEdge)>,
    Vec<CommandId>,
    Vec<(CallId, CallId)>,
    BTreeMap<QueryId, Vec<QueryView>>,
    Depends,
);

/// For each kernel with programmatic stream serialization, the kernel on which it depends.
type Depends = BTreeMap<CommandId, CommandId>;

/// A point in the life of a command or of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaunchNode {
    /// A host thread calls.
    Call(CallId),
    /// The call returns.
    Return(CallId),
    /// A thread of a kernel enqueues this command.
    Enqueue(CommandId),
    /// A thread begins.
    Enter(ThreadId),
    /// A thread ends.
    Leave(ThreadId),
    /// A command starts.
    Start(CommandId),
    /// A thread may return from `griddepcontrol.wait`.
    GridWait(ThreadId),
    /// A work-group of a command ends.
    GroupEnd(CommandId, u32),
    /// All work-groups of a command have ended.
    End(CommandId),
    /// A command and its children are complete: its event is set.
    Done(CommandId),
    /// A user event is set.
    User(HandleId),
    /// The subject of a query is complete, as seen in one of its views. This node is no point of a
    /// thread, and no other node waits for it.
    Query(QueryId, usize),
}

impl LaunchNode {
    /// The points of a micro-op: before it and after it in its thread.
    pub fn of(op: &Op) -> Option<(LaunchNode, LaunchNode)> {
        match *op {
            Op::Call(id) => Some((LaunchNode::Call(id), LaunchNode::Return(id))),
            Op::Enqueue(id) => Some((LaunchNode::Enqueue(id), LaunchNode::Enqueue(id))),
            _ => None,
        }
    }

    /// The micro-op of this point.
    pub fn site(self, program: &Program) -> Option<(ThreadId, &Instr)> {
        let makes = |op: &Op| {
            LaunchNode::of(op).is_some_and(|(before, after)| before == self || after == self)
        };
        program
            .instrs()
            .find(|(_, _, i)| makes(&i.op))
            .map(|(t, _, i)| (t, i))
    }
}

/// The memory that an edge orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mask {
    /// All memory.
    All,
    /// Fine-grained shared virtual memory only.
    Fine,
    /// No memory: time alone.
    Time,
}

impl On {
    /// The graph node for this condition.
    pub(super) fn node(self) -> LaunchNode {
        match self {
            On::Done(c) => LaunchNode::Done(c),
            On::Ended(c) => LaunchNode::End(c),
            On::GroupEnded(c, group) => LaunchNode::GroupEnd(c, group),
            On::User(h) => LaunchNode::User(h),
        }
    }
}

/// An edge of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchEdge {
    /// The rule that it rests on; `None` orders time only.
    pub rule: Option<Rule>,
    /// The memory that it orders.
    pub mask: Mask,
}

/// The order that a program's calls establish if they are issued in one particular order.
#[derive(Clone, Debug)]
pub struct LaunchGraph {
    /// The graph itself.
    pub graph: DiGraph<LaunchNode, LaunchEdge>,
    /// The graph index of each node.
    pub index: HashMap<LaunchNode, NodeIndex>,
    /// Calls in the order in which they are issued.
    pub order: Vec<CallId>,
    /// OpenCL commands that no call submits to the device, so that they may never start.
    pub unsubmitted: Vec<CommandId>,
    /// Pairs of calls of different threads on one lane or event, the earlier call first; sorted.
    pub(super) first: Vec<(CallId, CallId)>,
    depends: Depends,
    /// The views of each query, in the order of time.
    pub(super) asked: BTreeMap<QueryId, Vec<QueryView>>,
    /// By thread, its points in ascending order: instruction, node before, node after.
    points: Vec<Vec<(usize, LaunchNode, LaunchNode)>>,
    /// Every `griddepcontrol.wait`. It is not among a thread's points because paths lead around it.
    grid_waits: HashSet<(ThreadId, usize)>,
    /// Whether it has an edge from each call to the next one of the order.
    pub(super) is_timed: bool,
}

impl LaunchGraph {
    /// The graph of a program whose calls are issued in that order.
    ///
    /// # Panics
    /// If the program has no host part, or the order does not contain all its calls.
    pub fn new(program: &Program, order: &[CallId]) -> LaunchGraph {
        let calls = program.host.as_ref().map_or(0, |host| host.calls.len());
        assert_eq!(order.len(), calls, "an order of all calls");
        let mut graph = LaunchGraph::untimed(program, order);
        graph.unsubmitted = super::submission::unsubmitted(program, &graph);
        for pair in order.windows(2) {
            GraphBuilder {
                program,
                g: &mut graph,
            }
            .time(LaunchNode::Call(pair[0]), LaunchNode::Call(pair[1]));
        }
        graph.is_timed = true;
        graph
    }

    /// The same without the edges between consecutive calls of the order. The order may leave calls
    /// out; these are not issued.
    pub fn untimed(program: &Program, order: &[CallId]) -> LaunchGraph {
        let host = program.host.as_deref().expect("a host program");
        let mut g = LaunchGraph {
            graph: DiGraph::new(),
            index: HashMap::new(),
            order: order.to_vec(),
            unsubmitted: Vec::new(),
            first: Vec::new(),
            depends: Depends::new(),
            asked: BTreeMap::new(),
            points: vec![Vec::new(); program.threads.len()],
            grid_waits: HashSet::new(),
            is_timed: false,
        };
        let mut out = GraphBuilder { program, g: &mut g };
        let mut lanes = LaneStates::new(host);
        let queries: Vec<(QueryId, Option<CallId>)> = program
            .thread_ids()
            .flat_map(|t| HostProgram::placed_queries(program, t))
            .collect();
        // The queries that their threads may execute at this point.
        let mut open: Vec<QueryId> = queries
            .iter()
            .filter(|q| q.1.is_none())
            .map(|q| q.0)
            .collect();
        open.iter().for_each(|q| out.looks(&lanes, *q, 0));
        // Commands that run before everything else enter their lanes first.
        for c in host
            .command_ids()
            .filter(|c| host.command(*c).origin == CommandOrigin::Start)
        {
            let needs = lanes.enqueue(host, c);
            out.needs(LaunchNode::Start(c), &needs);
        }
        for (at, &id) in order.iter().enumerate() {
            open.retain(|q| host.query(*q).thread != host.call(id).thread);
            let issued = lanes.issue(host, id);
            out.needs(LaunchNode::Return(id), &issued.returns);
            if let Some((command, needs)) = issued.command {
                out.needs(LaunchNode::Start(command), &needs);
                out.children(&mut lanes, command);
            }
            open.extend(queries.iter().filter(|q| q.1 == Some(id)).map(|q| q.0));
            open.iter().for_each(|q| out.looks(&lanes, *q, at + 1));
        }
        out.views();
        out.depends(lanes.depends);
        for id in host.call_ids() {
            out.handles(id, &host.call(id).op);
            if let HostOp::SetUser(h) = &host.call(id).op {
                out.edge(
                    LaunchNode::Call(id),
                    LaunchNode::User(*h),
                    Rule::UserEvent,
                    Mask::All,
                );
            }
        }
        host.command_ids().for_each(|c| out.command(c));
        program.thread_ids().for_each(|t| out.thread(t));
        g.first = super::touch::ordered(host, order);
        g
    }

    /// Whether one point comes before another in time, in every run.
    pub fn precedes(&self, one: LaunchNode, other: LaunchNode) -> bool {
        match (self.index.get(&one), self.index.get(&other)) {
            (Some(one), Some(other)) => has_path_connecting(&self.graph, *one, *other, None),
            _ => false,
        }
    }

    /// The nodes directly before and after a thread's instruction.
    pub fn around(&self, operation: (ThreadId, usize)) -> (LaunchNode, LaunchNode) {
        let (thread, instr) = operation;
        let points = &self.points[usize::from(thread.0)];
        let after = points
            .iter()
            .find(|p| p.0 > instr)
            .map_or(LaunchNode::Leave(thread), |p| p.1);
        let before = match self.grid_waits.contains(&(thread, instr)) {
            true => LaunchNode::GridWait(thread),
            false => points
                .iter()
                .rev()
                .find(|p| p.0 < instr)
                .map_or(LaunchNode::Enter(thread), |p| p.2),
        };
        (before, after)
    }

    /// For each pair of operations of different threads: whether a call after the first is issued
    /// before a call before the second, on the same lane or event. The table has the format of
    /// [`LaunchGraph::ordered`]. This does not order memory, but memory order never contradicts it.
    pub fn called_before(&self, operations: &[(ThreadId, usize)]) -> Vec<Vec<bool>> {
        let mut table = vec![vec![false; operations.len()]; operations.len()];
        let around: Vec<(LaunchNode, LaunchNode)> =
            operations.iter().map(|o| self.around(*o)).collect();
        let mut after: HashMap<LaunchNode, BTreeSet<LaunchNode>> = HashMap::new();
        for &(x, y) in &self.first {
            let (x, y) = (LaunchNode::Call(x), LaunchNode::Call(y));
            after.entry(y).or_insert_with(|| self.never(&[y]));
            for (i, a) in operations.iter().enumerate() {
                let leaves = around[i].1;
                if !after
                    .entry(leaves)
                    .or_insert_with(|| self.never(&[leaves]))
                    .contains(&x)
                {
                    continue;
                }
                let behind = &after[&y];
                for (j, b) in operations.iter().enumerate() {
                    table[i][j] |= a.0 != b.0 && behind.contains(&around[j].0);
                }
            }
        }
        table
    }

    /// The nodes that are reachable from a node by edges that order memory. `fine`: edges for
    /// fine-grained memory count, too.
    pub(super) fn reached(&self, from: LaunchNode, fine: bool) -> HashSet<LaunchNode> {
        let mut found = HashSet::new();
        self.for_each_reached(from, fine, |node| {
            found.insert(self.graph[node]);
        });
        found
    }

    fn for_each_reached(&self, from: LaunchNode, fine: bool, mut visit: impl FnMut(NodeIndex)) {
        let holds = |mask: Mask| mask == Mask::All || (fine && mask == Mask::Fine);
        let edges = EdgeFiltered::from_fn(&self.graph, |e| holds(e.weight().mask));
        let Some(&start) = self.index.get(&from) else {
            return;
        };
        let mut dfs = Dfs::new(&edges, start);
        while let Some(node) = dfs.next(&edges) {
            visit(node);
        }
    }

    /// For each pair of operations: whether the second one's kernel depends on the first one's. The
    /// table has the format of [`LaunchGraph::ordered`].
    pub fn dependents(
        &self,
        program: &Program,
        operations: &[(ThreadId, usize)],
    ) -> Vec<Vec<bool>> {
        let command = |o: &(ThreadId, usize)| program.host.as_deref()?.command_of(o.0);
        let commands: Vec<Option<CommandId>> = operations.iter().map(command).collect();
        let before = |command: &Option<CommandId>| self.depends.get(&(*command)?).copied();
        let before: Vec<Option<CommandId>> = commands.iter().map(before).collect();
        commands
            .iter()
            .map(|a| before.iter().map(|b| a.is_some() && a == b).collect())
            .collect()
    }

    /// For each pair of operations of different threads: whether the first comes before the second.
    /// The indices of the table are those of `operations`, which are (thread, instruction) pairs.
    /// `fine`: the accesses are to fine-grained memory.
    pub fn ordered(&self, operations: &[(ThreadId, usize)], fine: bool) -> Vec<Vec<bool>> {
        let around: Vec<(LaunchNode, LaunchNode)> =
            operations.iter().map(|o| self.around(*o)).collect();
        // Numbers instead of nodes: every operation looks up thousands of nodes.
        let enters: Vec<Option<usize>> = around
            .iter()
            .map(|(enters, _)| self.index.get(enters).map(|node| node.index()))
            .collect();
        let mut after: HashMap<LaunchNode, Vec<bool>> = HashMap::new();
        let mut table = Vec::with_capacity(operations.len());
        for (a, (_, leaves)) in operations.iter().zip(&around) {
            let reached = after.entry(*leaves).or_insert_with(|| {
                let mut reached = vec![false; self.graph.node_count()];
                self.for_each_reached(*leaves, fine, |node| reached[node.index()] = true);
                reached
            });
            let row = (operations.iter().zip(&enters))
                .map(|(b, enters)| a.0 != b.0 && enters.is_some_and(|enters| reached[enters]));
            table.push(row.collect());
        }
        table
    }
}

struct GraphBuilder<'a> {
    program: &'a Program,
    g: &'a mut LaunchGraph,
}

impl GraphBuilder<'_> {
    fn node(&mut self, node: LaunchNode) -> NodeIndex {
        *self
            .g
            .index
            .entry(node)
            .or_insert_with(|| self.g.graph.add_node(node))
    }

    fn add(&mut self, from: LaunchNode, to: LaunchNode, edge: LaunchEdge) {
        let (a, b) = (self.node(from), self.node(to));
        self.g.graph.update_edge(a, b, edge);
    }

    /// Adds an edge for a rule, if the rule holds.
    fn edge(&mut self, from: LaunchNode, to: LaunchNode, rule: Rule, mask: Mask) {
        self.node(from);
        self.node(to);
        if self
            .program
            .host
            .as_ref()
            .is_some_and(|h| h.rules.has(rule))
        {
            self.add(
                from,
                to,
                LaunchEdge {
                    rule: Some(rule),
                    mask,
                },
            );
        }
    }

    /// Adds a time edge, unless an edge is there already.
    fn time(&mut self, from: LaunchNode, to: LaunchNode) {
        let (a, b) = (self.node(from), self.node(to));
        if self.g.graph.find_edge(a, b).is_none() {
            self.add(
                from,
                to,
                LaunchEdge {
                    rule: None,
                    mask: Mask::Time,
                },
            );
        }
    }

    fn needs(&mut self, node: LaunchNode, needs: &[StartCondition]) {
        self.node(node);
        for need in needs {
            self.edge(need.on.node(), node, need.rule, Mask::All);
        }
    }

    /// Records the view of a query at this time, after the first `issued` calls.
    fn looks(&mut self, lanes: &LaneStates, id: QueryId, issued: usize) {
        let host = self.program.host.as_deref().expect("a host program");
        self.g.looks(id, lanes.asked(host, host.query(id)), issued);
    }

    /// Adds the edges of dependent kernels: each starts after its predecessor starts, and may wait
    /// until that is complete.
    fn depends(&mut self, depends: Depends) {
        let host = self.program.host.as_deref().expect("a host program");
        for (&id, &before) in &depends {
            self.time(LaunchNode::Start(before), LaunchNode::Start(id));
            for &thread in &host.command(id).threads {
                self.edge(
                    LaunchNode::Done(before),
                    LaunchNode::GridWait(thread),
                    Rule::GridWait,
                    Mask::All,
                );
            }
        }
        self.g.depends = depends;
    }

    /// Adds the points at which the subjects of queries are complete.
    fn views(&mut self) {
        let host = self.program.host.as_deref().expect("a host program");
        let mut asked = std::mem::take(&mut self.g.asked);
        for (id, views) in &mut asked {
            let changers = host.changers(*id);
            for (number, view) in views.iter_mut().enumerate() {
                let node = LaunchNode::Query(*id, number);
                self.node(node);
                match host.query(*id).orders(host) {
                    true => self.needs(node, &view.needs),
                    false => view
                        .needs
                        .iter()
                        .for_each(|need| self.time(need.on.node(), node)),
                }
                view.before.retain(|c| changers.contains(c));
                view.after.retain(|c| changers.contains(c));
                view.before.sort_unstable();
                view.after.sort_unstable();
            }
        }
        self.g.asked = asked;
    }

    /// A call that names an event comes after the call that makes the event.
    fn handles(&mut self, call: CallId, op: &HostOp) {
        for made in makers(self.program, op)
            .into_iter()
            .filter(|made| *made != call)
        {
            self.time(LaunchNode::Call(made), LaunchNode::Call(call));
        }
    }

    /// Enqueues the commands that a command's threads launch, and recursively theirs.
    fn children(&mut self, lanes: &mut LaneStates, parent: CommandId) {
        let host = self.program.host.as_deref().expect("a host program");
        for child in host.command_ids() {
            let CommandOrigin::Device { parent: own, .. } = host.command(child).origin else {
                continue;
            };
            if own == parent {
                let needs = lanes.enqueue(host, child);
                self.needs(LaunchNode::Start(child), &needs);
                self.children(lanes, child);
            }
        }
    }

    fn command(&mut self, id: CommandId) {
        let host = self.program.host.as_deref().expect("a host program");
        let command = host.command(id);
        let stream = command.lane.is_some_and(|l| host.lane(l).kind.is_stream());
        let (issue, body, end) = match stream {
            true => (Rule::Launch, Rule::LaunchBody, Rule::LaunchEnd),
            false => (Rule::Issue, Rule::KernelStart, Rule::KernelEnd),
        };
        match command.origin {
            CommandOrigin::Start => {}
            // The rules for callbacks mention the event only.
            CommandOrigin::Call(call) if matches!(command.kind, CommandKind::Callback { .. }) => {
                self.time(LaunchNode::Call(call), LaunchNode::Start(id));
            }
            CommandOrigin::Call(call) => {
                self.edge(
                    LaunchNode::Call(call),
                    LaunchNode::Start(id),
                    issue,
                    Mask::All,
                );
                self.time(LaunchNode::Call(call), LaunchNode::Start(id));
            }
            CommandOrigin::Device { parent, .. } => {
                let (rule, mask) = match command.kind {
                    CommandKind::UserEvent => (Rule::UserEvent, Mask::All),
                    _ if stream => (issue, Mask::All),
                    _ => (issue, Mask::Fine),
                };
                self.edge(LaunchNode::Enqueue(id), LaunchNode::Start(id), rule, mask);
                self.time(LaunchNode::Enqueue(id), LaunchNode::Start(id));
                self.edge(
                    LaunchNode::Done(id),
                    LaunchNode::Done(parent),
                    Rule::Family,
                    Mask::All,
                );
            }
        }
        for (thread, group) in command.threads.iter().zip(&command.groups) {
            self.edge(
                LaunchNode::Start(id),
                LaunchNode::Enter(*thread),
                body,
                Mask::All,
            );
            self.edge(
                LaunchNode::Leave(*thread),
                LaunchNode::GroupEnd(id, *group),
                end,
                Mask::All,
            );
        }
        for group in 0..command.group_count() {
            self.edge(
                LaunchNode::GroupEnd(id, group),
                LaunchNode::End(id),
                Rule::GroupEnd,
                Mask::All,
            );
        }
        self.edge(
            LaunchNode::Start(id),
            LaunchNode::End(id),
            Rule::GroupEnd,
            Mask::All,
        );
        self.edge(
            LaunchNode::End(id),
            LaunchNode::Done(id),
            Rule::OwnEvent,
            Mask::All,
        );
    }

    /// Chains the points of a thread.
    fn thread(&mut self, thread: ThreadId) {
        let code = self.program.thread(thread).code.iter().enumerate();
        let points: Vec<(usize, LaunchNode, LaunchNode)> = code
            .filter_map(|(at, instr)| {
                LaunchNode::of(&instr.op).map(|(before, after)| (at, before, after))
            })
            .collect();
        let mut last = LaunchNode::Enter(thread);
        for &(_, before, after) in &points {
            self.edge(last, before, Rule::HostOrder, Mask::All);
            if before != after {
                self.edge(before, after, Rule::HostOrder, Mask::All);
            }
            last = after;
        }
        self.edge(last, LaunchNode::Leave(thread), Rule::HostOrder, Mask::All);
        for (at, _) in self
            .program
            .thread(thread)
            .code
            .iter()
            .enumerate()
            .filter(|(_, i)| i.op.has(Tag::GridWait))
        {
            self.edge(
                LaunchNode::Enter(thread),
                LaunchNode::GridWait(thread),
                Rule::HostOrder,
                Mask::All,
            );
            self.g.grid_waits.insert((thread, at));
        }
        self.g.points[usize::from(thread.0)] = points;
    }
}

impl LaunchGraph {
    /// The edges that order memory, the commands never submitted, and which calls come first. Two
    /// orders of calls with equal effects are equivalent.
    pub(super) fn comes_to(&self) -> Effect {
        let ends = |e| self.graph.edge_endpoints(e).expect("an edge of the graph");
        let all = self
            .graph
            .edge_indices()
            .map(|e| (self.graph[ends(e).0], self.graph[ends(e).1], self.graph[e]));
        let mut edges: Vec<_> = all.filter(|(_, _, edge)| edge.mask != Mask::Time).collect();
        edges.sort_unstable();
        (
            edges,
            self.unsubmitted.clone(),
            self.first.clone(),
            self.asked.clone(),
            self.depends.clone(),
        )
    }
}
