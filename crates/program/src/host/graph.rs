//! The launch graph: what the calls of host threads order, for CUDA and OpenCL alike.
//!
//! Its nodes are the points at which host threads call, and for every command its start, the ends
//! of its work-groups, its end and its completion. The operations of a thread lie between two
//! points of it: what precedes which is a matter of paths ([`LaunchGraph::ordered`]).
//!
//! ```text
//!  call ─▶ start ─▶ enter ─ operations ─▶ leave ─▶ group end ─▶ end ─▶ done ─▶ start of another, return of a wait
//! ```
//!
//! # Invariants
//! - The graph belongs to one order in which the host threads' calls are issued
//!   ([`super::Launches`] has them all).
//! - Every edge rests on one [`Rule`], or orders time alone: a callback does not run before it is
//!   registered, and no call is issued before the one that the order has in front of it. Time never
//!   orders memory.
//! - An edge of the mask [`Mask::Fine`] orders accesses to fine-grained shared virtual memory only.
//! # Sources
//! - OpenCL API specification, *Memory Ordering Rules: Host-side and Device-side Commands*; KHR:
//!   clFlush, *Flush and Finish*, for what is submitted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeFiltered};

use super::submission::makers;
use super::{
    CallId, CommandId, CommandKind, HandleId, HostOp, HostProgram, Lanes, Need, On, Origin,
    QueryId, Rule, View,
};
use crate::{Instr, Op, Program, Tag, ThreadId};

/// What an order of calls comes to: edges, what is never submitted, and what queries find.
pub(super) type Effect = (
    Vec<(Node, Node, Edge)>,
    Vec<CommandId>,
    Vec<(CallId, CallId)>,
    BTreeMap<QueryId, Vec<View>>,
    Depends,
);

/// The kernel on which each kernel depends that is launched with programmatic stream serialization.
type Depends = BTreeMap<CommandId, CommandId>;

/// A point in the life of a command or of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// A host thread calls.
    Call(CallId),
    /// The call returns.
    Return(CallId),
    /// A thread of a kernel enqueues this command.
    Enqueue(CommandId),
    /// A thread begins.
    Enter(ThreadId),
    /// A thread is over.
    Leave(ThreadId),
    /// A command starts.
    Start(CommandId),
    /// A thread may return from `griddepcontrol.wait`.
    GridWait(ThreadId),
    /// A work-group of it ends.
    GroupEnd(CommandId, u32),
    /// All of it has ended.
    End(CommandId),
    /// It is complete, with its children: its event is set.
    Done(CommandId),
    /// A user event is set.
    User(HandleId),
    /// What a query asks about in one of its views is complete. Nothing waits for it; it stands for
    /// no point of a thread.
    Query(QueryId, usize),
}

impl Node {
    /// The points that a micro-op makes: when a thread comes to it, and when it goes on.
    pub fn of(op: &Op) -> Option<(Node, Node)> {
        match *op {
            Op::Call(id) => Some((Node::Call(id), Node::Return(id))),
            Op::Enqueue(id) => Some((Node::Enqueue(id), Node::Enqueue(id))),
            _ => None,
        }
    }

    /// Where a micro-op makes it.
    pub fn site(self, program: &Program) -> Option<(ThreadId, &Instr)> {
        let makes =
            |op: &Op| Node::of(op).is_some_and(|(before, after)| before == self || after == self);
        program
            .instrs()
            .find(|(_, _, i)| makes(&i.op))
            .map(|(t, _, i)| (t, i))
    }
}

/// For what an edge holds.
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
    /// The point at which that is over.
    pub(super) fn node(self) -> Node {
        match self {
            On::Done(c) => Node::Done(c),
            On::Ended(c) => Node::End(c),
            On::GroupEnded(c, group) => Node::GroupEnd(c, group),
            On::User(h) => Node::User(h),
        }
    }
}

/// An edge of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// What it rests on; `None` orders time alone.
    pub rule: Option<Rule>,
    /// For what it holds.
    pub mask: Mask,
}

/// What the calls of a program order, if they are issued in one particular order.
#[derive(Clone, Debug)]
pub struct LaunchGraph {
    /// The graph itself.
    pub graph: DiGraph<Node, Edge>,
    /// Where each node is.
    pub index: HashMap<Node, NodeIndex>,
    /// Calls in the order in which they are issued.
    pub order: Vec<CallId>,
    /// Commands of OpenCL that nothing ever submits to the device, and that so may never start.
    pub unsubmitted: Vec<CommandId>,
    /// Calls of different threads on one lane or event, the first one first, sorted.
    pub(super) first: Vec<(CallId, CallId)>,
    depends: Depends,
    /// What each query finds, by when it is asked.
    pub(super) asked: BTreeMap<QueryId, Vec<View>>,
    /// By thread, its points in ascending order: instruction, node before, node after.
    points: Vec<Vec<(usize, Node, Node)>>,
    /// Every `griddepcontrol.wait`: no point between what a thread does, as there are ways around
    /// it.
    grid_waits: HashSet<(ThreadId, usize)>,
    /// Whether it has edges from each call to the next one of the order.
    pub(super) is_timed: bool,
}

impl LaunchGraph {
    /// The graph of a program whose calls are issued in that order.
    ///
    /// # Panics
    /// If the program has no host part, or the order is not one of all its calls.
    pub fn new(program: &Program, order: &[CallId]) -> LaunchGraph {
        let calls = program.host.as_ref().map_or(0, |host| host.calls.len());
        assert_eq!(order.len(), calls, "an order of all calls");
        let mut graph = LaunchGraph::untimed(program, order);
        graph.unsubmitted = super::submission::unsubmitted(program, &graph);
        for pair in order.windows(2) {
            Builder {
                program,
                g: &mut graph,
            }
            .time(Node::Call(pair[0]), Node::Call(pair[1]));
        }
        graph.is_timed = true;
        graph
    }

    /// The same, but for what precedes what by that order alone, and perhaps of some of the calls:
    /// the others are not issued.
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
        let mut out = Builder { program, g: &mut g };
        let mut lanes = Lanes::new(host);
        let queries: Vec<(QueryId, Option<CallId>)> = program
            .thread_ids()
            .flat_map(|t| HostProgram::placed_queries(program, t))
            .collect();
        // Those that may be asked now.
        let mut open: Vec<QueryId> = queries
            .iter()
            .filter(|q| q.1.is_none())
            .map(|q| q.0)
            .collect();
        open.iter().for_each(|q| out.looks(&lanes, *q, 0));
        // What runs before everything else is on its lane first.
        for c in host
            .command_ids()
            .filter(|c| host.command(*c).origin == Origin::Start)
        {
            let needs = lanes.enqueue(host, c);
            out.needs(Node::Start(c), &needs);
        }
        for (at, &id) in order.iter().enumerate() {
            open.retain(|q| host.query(*q).thread != host.call(id).thread);
            let issued = lanes.issue(host, id);
            out.needs(Node::Return(id), &issued.returns);
            if let Some((command, needs)) = issued.command {
                out.needs(Node::Start(command), &needs);
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
                out.edge(Node::Call(id), Node::User(*h), Rule::UserEvent, Mask::All);
            }
        }
        host.command_ids().for_each(|c| out.command(c));
        program.thread_ids().for_each(|t| out.thread(t));
        g.first = super::touch::ordered(host, order);
        g
    }

    /// The nodes between which the operation of a thread's instruction lies.
    pub(super) fn around(&self, (thread, instr): (ThreadId, usize)) -> (Node, Node) {
        let points = &self.points[usize::from(thread.0)];
        let after = points
            .iter()
            .find(|p| p.0 > instr)
            .map_or(Node::Leave(thread), |p| p.1);
        let before = match self.grid_waits.contains(&(thread, instr)) {
            true => Node::GridWait(thread),
            false => points
                .iter()
                .rev()
                .find(|p| p.0 < instr)
                .map_or(Node::Enter(thread), |p| p.2),
        };
        (before, after)
    }

    /// For each pair of operations of different threads, whether some call that comes after the
    /// first is issued before one, on the same lane or event, that comes before the second: a table
    /// as that of [`LaunchGraph::ordered`]. Orders no memory, but nothing that does may run against
    /// it.
    pub fn called_before(&self, operations: &[(ThreadId, usize)]) -> Vec<Vec<bool>> {
        let mut table = vec![vec![false; operations.len()]; operations.len()];
        let around: Vec<(Node, Node)> = operations.iter().map(|o| self.around(*o)).collect();
        let mut after: HashMap<Node, BTreeSet<Node>> = HashMap::new();
        for &(x, y) in &self.first {
            let (x, y) = (Node::Call(x), Node::Call(y));
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

    /// The nodes that can be reached from a node by edges that hold for memory: all of it, or
    /// fine-grained memory too.
    pub(super) fn reached(&self, from: Node, fine: bool) -> HashSet<Node> {
        let mut found = HashSet::new();
        self.for_each_reached(from, fine, |node| {
            found.insert(self.graph[node]);
        });
        found
    }

    fn for_each_reached(&self, from: Node, fine: bool, mut visit: impl FnMut(NodeIndex)) {
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

    /// For each pair of operations, whether the second is of a kernel that depends on that of the
    /// first: a table as that of [`LaunchGraph::ordered`].
    pub fn dependents(
        &self,
        program: &Program,
        operations: &[(ThreadId, usize)],
    ) -> Vec<Vec<bool>> {
        let command = |o: &(ThreadId, usize)| program.host.as_deref()?.command_of(o.0);
        let commands: Vec<Option<CommandId>> = operations.iter().map(command).collect();
        let before = |command: &Option<CommandId>| self.depends.get(&(*command)?).copied();
        let before: Vec<Option<CommandId>> = commands.iter().map(before).collect();
        let row = |a: &Option<CommandId>| before.iter().map(|b| a.is_some() && a == b).collect();
        commands.iter().map(row).collect()
    }

    /// For each pair of operations of different threads, whether the first comes before the second:
    /// a table by the indices of `operations`, which are (thread, instruction). `fine`: as accesses
    /// to fine-grained memory.
    pub fn ordered(&self, operations: &[(ThreadId, usize)], fine: bool) -> Vec<Vec<bool>> {
        let around: Vec<(Node, Node)> = operations.iter().map(|o| self.around(*o)).collect();
        // Nodes by number: there may be thousands, each of which is looked up for each operation.
        let enters: Vec<Option<usize>> = around
            .iter()
            .map(|(enters, _)| self.index.get(enters).map(|node| node.index()))
            .collect();
        let mut after: HashMap<Node, Vec<bool>> = HashMap::new();
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

struct Builder<'a> {
    program: &'a Program,
    g: &'a mut LaunchGraph,
}

impl Builder<'_> {
    fn node(&mut self, node: Node) -> NodeIndex {
        *self
            .g
            .index
            .entry(node)
            .or_insert_with(|| self.g.graph.add_node(node))
    }

    fn add(&mut self, from: Node, to: Node, edge: Edge) {
        let (a, b) = (self.node(from), self.node(to));
        self.g.graph.update_edge(a, b, edge);
    }

    /// An edge that rests on a rule, if the rule holds.
    fn edge(&mut self, from: Node, to: Node, rule: Rule, mask: Mask) {
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
                Edge {
                    rule: Some(rule),
                    mask,
                },
            );
        }
    }

    /// An edge in time alone, unless memory is ordered as well.
    fn time(&mut self, from: Node, to: Node) {
        let (a, b) = (self.node(from), self.node(to));
        if self.g.graph.find_edge(a, b).is_none() {
            self.add(
                from,
                to,
                Edge {
                    rule: None,
                    mask: Mask::Time,
                },
            );
        }
    }

    fn needs(&mut self, node: Node, needs: &[Need]) {
        self.node(node);
        for need in needs {
            self.edge(need.on.node(), node, need.rule, Mask::All);
        }
    }

    /// What a query finds that is asked now, after so many calls.
    fn looks(&mut self, lanes: &Lanes, id: QueryId, issued: usize) {
        let host = self.program.host.as_deref().expect("a host program");
        self.g.looks(id, lanes.asked(host, host.query(id)), issued);
    }

    /// What kernels depend on: they start behind it, and may wait until it is complete.
    fn depends(&mut self, depends: Depends) {
        let host = self.program.host.as_deref().expect("a host program");
        for (&id, &before) in &depends {
            self.time(Node::Start(before), Node::Start(id));
            for &thread in &host.command(id).threads {
                self.edge(
                    Node::Done(before),
                    Node::GridWait(thread),
                    Rule::GridWait,
                    Mask::All,
                );
            }
        }
        self.g.depends = depends;
    }

    /// The points at which what queries ask about is complete.
    fn views(&mut self) {
        let host = self.program.host.as_deref().expect("a host program");
        let mut asked = std::mem::take(&mut self.g.asked);
        for (id, views) in &mut asked {
            let changers = host.changers(*id);
            for (number, view) in views.iter_mut().enumerate() {
                let node = Node::Query(*id, number);
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

    /// A call names an event only after the call that makes it.
    fn handles(&mut self, call: CallId, op: &HostOp) {
        for made in makers(self.program, op)
            .into_iter()
            .filter(|made| *made != call)
        {
            self.time(Node::Call(made), Node::Call(call));
        }
    }

    /// Puts the commands that a command's threads enqueue on their queues, and those that these
    /// enqueue.
    fn children(&mut self, lanes: &mut Lanes, parent: CommandId) {
        let host = self.program.host.as_deref().expect("a host program");
        for child in host.command_ids() {
            if matches!(host.command(child).origin, Origin::Device { parent: p, .. } if p == parent)
            {
                let needs = lanes.enqueue(host, child);
                self.needs(Node::Start(child), &needs);
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
            Origin::Start => {}
            // What the text says of callbacks speaks of the event alone.
            Origin::Call(call) if matches!(command.kind, CommandKind::Callback { .. }) => {
                self.time(Node::Call(call), Node::Start(id));
            }
            Origin::Call(call) => {
                self.edge(Node::Call(call), Node::Start(id), issue, Mask::All);
                self.time(Node::Call(call), Node::Start(id));
            }
            Origin::Device { parent, .. } => {
                let mask = if stream { Mask::All } else { Mask::Fine };
                self.edge(Node::Enqueue(id), Node::Start(id), issue, mask);
                self.time(Node::Enqueue(id), Node::Start(id));
                self.edge(Node::Done(id), Node::Done(parent), Rule::Family, Mask::All);
            }
        }
        for (thread, group) in command.threads.iter().zip(&command.groups) {
            self.edge(Node::Start(id), Node::Enter(*thread), body, Mask::All);
            self.edge(
                Node::Leave(*thread),
                Node::GroupEnd(id, *group),
                end,
                Mask::All,
            );
        }
        for group in 0..command.group_count() {
            self.edge(
                Node::GroupEnd(id, group),
                Node::End(id),
                Rule::GroupEnd,
                Mask::All,
            );
        }
        self.edge(Node::Start(id), Node::End(id), Rule::GroupEnd, Mask::All);
        self.edge(Node::End(id), Node::Done(id), Rule::OwnEvent, Mask::All);
    }

    /// The points of a thread, one after the other.
    fn thread(&mut self, thread: ThreadId) {
        let code = self.program.thread(thread).code.iter().enumerate();
        let point = |(at, instr): (usize, &Instr)| {
            Node::of(&instr.op).map(|(before, after)| (at, before, after))
        };
        let points: Vec<(usize, Node, Node)> = code.filter_map(point).collect();
        let mut last = Node::Enter(thread);
        for &(_, before, after) in &points {
            self.edge(last, before, Rule::HostOrder, Mask::All);
            if before != after {
                self.edge(before, after, Rule::HostOrder, Mask::All);
            }
            last = after;
        }
        self.edge(last, Node::Leave(thread), Rule::HostOrder, Mask::All);
        for (at, _) in self
            .program
            .thread(thread)
            .code
            .iter()
            .enumerate()
            .filter(|(_, i)| i.op.has(Tag::GridWait))
        {
            self.edge(
                Node::Enter(thread),
                Node::GridWait(thread),
                Rule::HostOrder,
                Mask::All,
            );
            self.g.grid_waits.insert((thread, at));
        }
        self.g.points[usize::from(thread.0)] = points;
    }
}

impl LaunchGraph {
    /// The edges that order memory, what is never submitted, and which calls come first: two orders
    /// of calls with the same come to the same.
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
