//! Forward progress: who must be run for ever, under a progress model.
//!
//! Threads are the leaves of a tree: the root, the groups of the scope tree, the threads; siblings
//! are ordered by number. A thread is *live* if it is neither done nor blocked, so a looping thread
//! is live; a group is live if a member is. A thread has *started* if it executed anything; a
//! group, if a member did. The root is *served*. A served group serves the children that its
//! progress model names, and if it is live at least one live child. A served thread is never
//! stopped.
//!
//! The blocks of a cooperative launch are resident together: once one of its threads has started,
//! all have, and each is served like under `fair`; `hsa` alone, which asks who comes first, is as
//! elsewhere.
//!
//! Progress models speak of the threads of kernels. Threads of the host are in no group, and are
//! always served. Threads of commands that never start, and host threads in calls that never
//! return, are not live: they hold up no one's turn.
//!
//! # Sources
//! - Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models", OOPSLA 2021: OBE,
//!   HSA, HSA+OBE, LOBE.
//! - CUDA Programming Guide, Large Scale Groups: the blocks of a cooperative launch are launched as
//!   one; Execution Model: once a thread of a cooperative grid has made a step, all of its threads
//!   make progress.
//! - ISO C++ [intro.progress], parallel and weakly parallel forward progress; CUDA C++ Programming
//!   Guide, Execution Model.
//! - ISO C++ [intro.progress]: general-purpose implementations give concurrent forward progress to
//!   the threads of the host.

use std::fmt;

use super::host::CommandId;
use super::{Place, Program, Scope, ThreadId};

/// A progress model: which children a served group serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProgressModel {
    /// All.
    Fair,
    /// The first one that is live, and those before it.
    Hsa,
    /// Those of `hsa` and those of `obe`.
    HsaObe,
    /// Those that have started, and all before them.
    Lobe,
    /// Those that have started.
    Obe,
}

impl ProgressModel {
    /// All, by name.
    pub const ALL: [ProgressModel; 5] = [
        ProgressModel::Fair,
        ProgressModel::Hsa,
        ProgressModel::HsaObe,
        ProgressModel::Lobe,
        ProgressModel::Obe,
    ];

    /// As in property names.
    pub fn name(self) -> &'static str {
        match self {
            ProgressModel::Fair => "fair",
            ProgressModel::Hsa => "hsa",
            ProgressModel::HsaObe => "hsa-obe",
            ProgressModel::Lobe => "lobe",
            ProgressModel::Obe => "obe",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<ProgressModel> {
        ProgressModel::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Whether any thread may be stopped for ever.
    pub fn may_stop(self) -> bool {
        self != ProgressModel::Fair
    }
}

impl fmt::Display for ProgressModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A leaf.
    Thread(ThreadId),
    /// A group, or the root, with its children in order.
    Group(Vec<Node>),
    /// What is apart from each other: each is served, whatever the progress model.
    Apart(Vec<Node>),
    /// The groups of a cooperative launch, which are resident together: all have started once one
    /// has.
    Together(Vec<Node>),
}

impl Node {
    /// By which progress model those below are served.
    pub fn below(&self, model: ProgressModel) -> ProgressModel {
        match self {
            // That a lower one goes first is no matter of having started.
            Node::Together(_) if model != ProgressModel::Hsa => ProgressModel::Fair,
            _ => model,
        }
    }
}

/// The number of a thread's group among its siblings, at one level of the scope tree. A thread
/// without a sub-group is alone in one, after those that are numbered.
fn number(t: ThreadId, place: &Place, level: Scope) -> (u32, u32) {
    match level {
        Scope::Gpu => (0, place.gpu),
        Scope::Cta => (place.queue_family, place.cta),
        _ => place.warp.map_or((1, t.0.into()), |warp| (0, warp)),
    }
}

/// The tree of a program: GPUs and CTAs, or devices, work-groups and sub-groups.
pub fn tree(program: &Program) -> Node {
    let (hosts, others): (Vec<ThreadId>, _) = program
        .thread_ids()
        .partition(|t| program.thread(*t).place.host);
    let root = Node::Group(children(program, &others, program.dialect.row().progress));
    if hosts.is_empty() {
        return root;
    }
    Node::Apart(
        [root]
            .into_iter()
            .chain(hosts.into_iter().map(Node::Thread))
            .collect(),
    )
}

fn children(program: &Program, threads: &[ThreadId], levels: &[Scope]) -> Vec<Node> {
    let Some((&level, below)) = levels.split_first() else {
        return threads.iter().map(|&t| Node::Thread(t)).collect();
    };
    let mut groups: std::collections::BTreeMap<(u32, u32), Vec<ThreadId>> = Default::default();
    for &t in threads {
        groups
            .entry(number(t, &program.thread(t).place, level))
            .or_default()
            .push(t);
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut launches: Vec<(Launch, usize)> = Vec::new();
    for members in groups.values() {
        let node = Node::Group(children(program, members, below));
        let Some(launch) = cooperative(program, members).filter(|_| level == Scope::Cta) else {
            nodes.push(node);
            continue;
        };
        match launches.iter().find(|(other, _)| *other == launch) {
            Some(&(_, at)) => match &mut nodes[at] {
                Node::Together(all) => all.push(node),
                _ => unreachable!("a launch was put there"),
            },
            None => {
                launches.push((launch, nodes.len()));
                nodes.push(Node::Together(vec![node]));
            }
        }
    }
    nodes
}

/// A cooperative launch: the command that makes it, where there is a host program.
type Launch = Option<CommandId>;

/// The cooperative launch that threads of a block belong to.
fn cooperative(program: &Program, members: &[ThreadId]) -> Option<Launch> {
    let first = members
        .first()
        .filter(|&&t| program.thread(t).place.cooperative)?;
    Some(
        program
            .host
            .as_deref()
            .and_then(|host| host.command_of(*first)),
    )
}

/// How a thread ends, as far as progress is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    /// It is neither done nor blocked: it loops for ever, or is stopped.
    pub live: bool,
    /// It is never run again.
    pub stopped: bool,
    /// It executed anything.
    pub started: bool,
}

/// Whom a progress model has served, given how each thread ends, by thread; as few as it permits.
/// `None` if someone is stopped who must be run.
pub fn serve(tree: &Node, threads: &[Stand], model: ProgressModel) -> Option<Vec<bool>> {
    let mut served = vec![false; threads.len()];
    Scheduler { threads }
        .serve(tree, model, &mut served)
        .then_some(served)
}

/// Who is served.
struct Scheduler<'e> {
    threads: &'e [Stand],
}

impl Scheduler<'_> {
    /// Whether something holds of some thread of a node.
    fn some(&self, node: &Node, holds: fn(&Stand) -> bool) -> bool {
        match node {
            Node::Thread(t) => holds(&self.threads[t.0 as usize]),
            Node::Group(nodes) | Node::Apart(nodes) | Node::Together(nodes) => {
                nodes.iter().any(|n| self.some(n, holds))
            }
        }
    }

    fn live(&self, node: &Node) -> bool {
        self.some(node, |stand| stand.live)
    }

    fn started(&self, node: &Node) -> bool {
        self.some(node, |stand| stand.started)
    }

    /// Serves a node, and below it as few as the progress model permits. False if someone is
    /// stopped who must be served.
    fn serve(&self, node: &Node, model: ProgressModel, served: &mut [bool]) -> bool {
        let model = node.below(model);
        let nodes = match node {
            Node::Thread(t) => {
                served[t.0 as usize] = true;
                return !self.threads[t.0 as usize].stopped;
            }
            Node::Apart(nodes) => return nodes.iter().all(|n| self.serve(n, model, served)),
            Node::Group(nodes) | Node::Together(nodes) => nodes,
        };
        let mut runs = false;
        for (i, child) in nodes.iter().enumerate() {
            let first = !nodes[..i].iter().any(|n| self.live(n));
            let required = match model {
                ProgressModel::Fair => true,
                ProgressModel::Obe => self.started(child),
                ProgressModel::Hsa => first,
                ProgressModel::HsaObe => first || self.started(child),
                ProgressModel::Lobe => nodes[i..].iter().any(|n| self.started(n)),
            };
            if required {
                if !self.serve(child, model, served) {
                    return false;
                }
                runs |= self.live(child);
            }
        }
        runs || !self.live(node)
            || nodes.iter().filter(|n| self.live(n)).any(|child| {
                let before = served.to_vec();
                self.serve(child, model, served) || {
                    served.copy_from_slice(&before);
                    false
                }
            })
    }
}
