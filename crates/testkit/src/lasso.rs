//! Finds endless behaviour of interleavings: searches for lassos in the graph of all states.
//!
//! The states are those of [`super::interleave`], with the set of threads that have started. For
//! each set of threads that run forever, a lasso is a strongly connected part of the graph of their
//! steps. Each of them takes a step in it. The other threads stay ended, wait at a barrier, or
//! never run again. A behaviour hangs if some thread waits or runs forever, and counts if it is
//! fair. The search shares only the definition with the checker: the tree of groups, and the
//! threads that a progress model serves.
//!
//! # Limits
//! - Only programs of PTX: groups are GPUs and CTAs. Every thread with code begins with an
//!   instruction that others can notice.

use std::collections::{BTreeMap, HashMap};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use program::Program;
use program::litmus::LitmusTest;

use super::interleave::{Doing, State, Stop, machine, most};

/// Whether some behaviour that is fair under the named progress model hangs.
///
/// # Errors
/// If the interpreter cannot run the program.
pub fn hangs(test: &LitmusTest, progress: &str) -> Result<bool, Stop> {
    let (machine, start) = machine(test);
    let threads = start.threads.len();
    let mut numbers: HashMap<(State, u32), usize> = HashMap::new();
    let mut states: Vec<(State, u32)> = Vec::new();
    let mut steps: Vec<(usize, usize, usize)> = Vec::new();
    let mut add = |states: &mut Vec<(State, u32)>, node: (State, u32)| {
        *numbers.entry(node.clone()).or_insert_with(|| {
            states.push(node);
            states.len() - 1
        })
    };
    add(&mut states, (start, 0));
    let (mut next, most) = (0, most());
    while next < states.len() {
        if states.len() > most / 10 {
            return Err(Stop::TooManyStates);
        }
        let (state, started) = states[next].clone();
        for t in 0..threads {
            if state.threads[t].doing == Doing::Running {
                let mut after = state.clone();
                if machine.step(&mut after, t)? {
                    let to = add(&mut states, (after, started | 1 << t));
                    steps.push((next, t, to));
                }
            }
        }
        next += 1;
    }
    for running in 0..1u32 << threads {
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        for _ in &states {
            graph.add_node(());
        }
        let taken = || steps.iter().filter(|(_, t, _)| running >> t & 1 != 0);
        for &(a, _, b) in taken() {
            graph.add_edge(NodeIndex::new(a), NodeIndex::new(b), ());
        }
        let parts = tarjan_scc(&graph);
        let mut part = vec![0; states.len()];
        for (i, nodes) in parts.iter().enumerate() {
            nodes.iter().for_each(|n| part[n.index()] = i);
        }
        let mut stepping = vec![0u32; parts.len()];
        for &(a, t, _) in taken().filter(|(a, _, b)| part[*a] == part[*b]) {
            stepping[part[a]] |= 1 << t;
        }
        for (nodes, _) in parts
            .iter()
            .zip(&stepping)
            .filter(|(_, stepping)| **stepping == running)
        {
            let (state, started) = &states[nodes[0].index()];
            let end = |t: usize| match state.threads[t].doing {
                _ if running >> t & 1 != 0 => End::Looping,
                Doing::Lost => End::Looping,
                Doing::Ended => End::Done,
                Doing::Waiting => End::Blocked,
                Doing::Running => End::Stopped,
            };
            let ends: Vec<End> = (0..threads).map(end).collect();
            let stuck = ends
                .iter()
                .any(|e| matches!(e, End::Looping | End::Blocked));
            if stuck && fair(&test.program, &ends, *started, progress) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Blocked,
    Looping,
    Stopped,
}

/// A group: threads, or groups of them.
enum Group {
    Thread(usize),
    Of(Vec<Group>),
}

impl Group {
    fn members(&self) -> Vec<usize> {
        match self {
            Group::Thread(t) => vec![*t],
            Group::Of(groups) => groups.iter().flat_map(Group::members).collect(),
        }
    }
}

fn fair(program: &Program, ends: &[End], started: u32, progress: &str) -> bool {
    let mut gpus: BTreeMap<u32, BTreeMap<u32, Vec<Group>>> = BTreeMap::new();
    for (t, thread) in program.threads.iter().enumerate() {
        gpus.entry(thread.place.gpu)
            .or_default()
            .entry(thread.place.cta)
            .or_default()
            .push(Group::Thread(t));
    }
    let root = gpus
        .into_values()
        .map(|ctas| Group::Of(ctas.into_values().map(Group::Of).collect()))
        .collect();
    can_serve(&Group::Of(root), ends, started, progress)
}

/// Whether running this group can serve every thread that must be served.
fn can_serve(group: &Group, ends: &[End], started: u32, progress: &str) -> bool {
    let live = |g: &Group| {
        g.members()
            .iter()
            .any(|&t| matches!(ends[t], End::Looping | End::Stopped))
    };
    let begun = |g: &Group| g.members().iter().any(|&t| started >> t & 1 != 0);
    let children = match group {
        Group::Thread(t) => return ends[*t] != End::Stopped,
        Group::Of(children) => children,
    };
    let must = |i: usize| {
        let foremost = children[..i].iter().all(|g| !live(g));
        match progress {
            "fair" => true,
            "obe" => begun(&children[i]),
            "hsa" => foremost,
            "hsa-obe" => foremost || begun(&children[i]),
            "lobe" => children[i..].iter().any(begun),
            other => panic!("no such progress model: {other}"),
        }
    };
    let serve = |i: usize| can_serve(&children[i], ends, started, progress);
    (0..children.len()).all(|i| !must(i) || serve(i))
        && (!live(group) || (0..children.len()).any(|i| live(&children[i]) && serve(i)))
}
