//! Forward progress: which threads a progress model obliges an implementation to run.
//!
//! Threads are the leaves of a tree: the root, the groups of the scope tree, the threads. Siblings
//! are ordered by number. A thread is *live* if it is neither done nor blocked, so a looping thread
//! is live; a group is live if a member is. A thread has *started* if it executed anything; a
//! group, if a member did. The root is *served*. A served group serves the children that its
//! progress model names. If it is live, it also serves at least one live child. A served thread is
//! never stopped.
//!
//! The blocks of a cooperative launch are resident together. Once one thread has started, all have,
//! and each is served as under `fair`. The exception is `hsa`, which depends on the order of
//! threads and not on their start.
//!
//! Progress models cover the threads of kernels. Host threads are in no group and are always
//! served. Threads of commands that never start are not live, and neither are host threads in calls
//! that never return. A turn of such a thread delays no other thread.
//!
//! # Sources
//! - Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models", OOPSLA 2021: OBE,
//!   HSA, HSA+OBE, LOBE.
//! - CUDA Programming Guide, Large Scale Groups: the blocks of a cooperative launch start as one;
//!   Execution Model: once a thread of a cooperative grid has made a step, all its threads make
//!   progress.
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
    /// All children.
    Fair,
    /// The first live child, and those before it.
    Hsa,
    /// The children of `hsa` and of `obe`.
    HsaObe,
    /// The children that have started, and all before them.
    Lobe,
    /// The children that have started.
    Obe,
}

impl ProgressModel {
    /// All progress models, by name.
    pub const ALL: [ProgressModel; 5] = [
        ProgressModel::Fair,
        ProgressModel::Hsa,
        ProgressModel::HsaObe,
        ProgressModel::Lobe,
        ProgressModel::Obe,
    ];

    /// The word in property names.
    pub fn name(self) -> &'static str {
        match self {
            ProgressModel::Fair => "fair",
            ProgressModel::Hsa => "hsa",
            ProgressModel::HsaObe => "hsa-obe",
            ProgressModel::Lobe => "lobe",
            ProgressModel::Obe => "obe",
        }
    }

    /// The progress model with that name.
    pub fn from_name(name: &str) -> Option<ProgressModel> {
        ProgressModel::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Whether the model permits that a thread is stopped forever.
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
pub enum ProgressNode {
    /// A thread.
    Thread(ThreadId),
    /// A group, or the root, with its children in order.
    Group(Vec<ProgressNode>),
    /// Independent nodes: each is served under every progress model.
    Apart(Vec<ProgressNode>),
    /// The groups of a cooperative launch, which are resident together: once one has started, all
    /// have.
    Together(Vec<ProgressNode>),
}

impl ProgressNode {
    /// The progress model for the nodes below this one.
    pub fn below(&self, model: ProgressModel) -> ProgressModel {
        match self {
            // `hsa` serves lower numbers first, whether or not they have started.
            ProgressNode::Together(_) if model != ProgressModel::Hsa => ProgressModel::Fair,
            _ => model,
        }
    }
}

/// The number of a thread's group among its siblings, at one level of the scope tree. A thread
/// without a sub-group is alone in one, which follows the numbered ones.
fn number(t: ThreadId, place: &Place, level: Scope) -> (u32, u32) {
    match level {
        Scope::Gpu => (0, place.gpu),
        Scope::Cta => (place.queue_family, place.cta),
        _ => place.warp.map_or((1, t.0.into()), |warp| (0, warp)),
    }
}

/// The tree of a program: GPUs and CTAs, or devices, work-groups and sub-groups.
pub fn tree(program: &Program) -> ProgressNode {
    let (hosts, others): (Vec<ThreadId>, _) = program
        .thread_ids()
        .partition(|t| program.thread(*t).place.host);
    let root = ProgressNode::Group(children(program, &others, program.dialect.row().progress));
    if hosts.is_empty() {
        return root;
    }
    ProgressNode::Apart(
        [root]
            .into_iter()
            .chain(hosts.into_iter().map(ProgressNode::Thread))
            .collect(),
    )
}

fn children(program: &Program, threads: &[ThreadId], levels: &[Scope]) -> Vec<ProgressNode> {
    let Some((&level, below)) = levels.split_first() else {
        return threads.iter().map(|&t| ProgressNode::Thread(t)).collect();
    };
    let mut groups: std::collections::BTreeMap<(u32, u32), Vec<ThreadId>> = Default::default();
    for &t in threads {
        groups
            .entry(number(t, &program.thread(t).place, level))
            .or_default()
            .push(t);
    }
    let mut nodes: Vec<ProgressNode> = Vec::new();
    let mut launches: Vec<(Launch, usize)> = Vec::new();
    for members in groups.values() {
        let node = ProgressNode::Group(children(program, members, below));
        let Some(launch) = cooperative(program, members).filter(|_| level == Scope::Cta) else {
            nodes.push(node);
            continue;
        };
        match launches.iter().find(|(other, _)| *other == launch) {
            Some(&(_, at)) => match &mut nodes[at] {
                ProgressNode::Together(all) => all.push(node),
                _ => unreachable!("a launch was put there"),
            },
            None => {
                launches.push((launch, nodes.len()));
                nodes.push(ProgressNode::Together(vec![node]));
            }
        }
    }
    nodes
}

/// A cooperative launch: its command, if there is a host program.
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

/// The final state of a thread for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEnding {
    /// It is neither done nor blocked: it loops forever, or is stopped.
    pub live: bool,
    /// It never runs again.
    pub stopped: bool,
    /// It has executed an instruction.
    pub started: bool,
}

/// The threads that a progress model serves, given how each thread ends; as few as it permits.
/// `None` if a stopped thread has to run.
pub fn serve(
    tree: &ProgressNode,
    threads: &[ThreadEnding],
    model: ProgressModel,
) -> Option<Vec<bool>> {
    let mut served = vec![false; threads.len()];
    Scheduler { threads }
        .serve(tree, model, &mut served)
        .then_some(served)
}

/// Decides which nodes are served.
struct Scheduler<'e> {
    threads: &'e [ThreadEnding],
}

impl Scheduler<'_> {
    /// Whether `holds` is true of some thread of a node.
    fn some(&self, node: &ProgressNode, holds: fn(&ThreadEnding) -> bool) -> bool {
        match node {
            ProgressNode::Thread(t) => holds(&self.threads[t.0 as usize]),
            ProgressNode::Group(nodes)
            | ProgressNode::Apart(nodes)
            | ProgressNode::Together(nodes) => nodes.iter().any(|n| self.some(n, holds)),
        }
    }

    fn live(&self, node: &ProgressNode) -> bool {
        self.some(node, |stand| stand.live)
    }

    fn started(&self, node: &ProgressNode) -> bool {
        self.some(node, |stand| stand.started)
    }

    /// Serves a node and as few nodes below it as the progress model permits. False if it has to
    /// serve a stopped thread.
    fn serve(&self, node: &ProgressNode, model: ProgressModel, served: &mut [bool]) -> bool {
        let model = node.below(model);
        let nodes = match node {
            ProgressNode::Thread(t) => {
                served[t.0 as usize] = true;
                return !self.threads[t.0 as usize].stopped;
            }
            ProgressNode::Apart(nodes) => {
                return nodes.iter().all(|n| self.serve(n, model, served));
            }
            ProgressNode::Group(nodes) | ProgressNode::Together(nodes) => nodes,
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
