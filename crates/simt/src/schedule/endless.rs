//! Finds runs that never end, fair or not, and the progress models under which some run hangs.
//!
//! From some point on, such a run takes steps of only some threads, in states that these steps
//! strongly connect. The other threads have ended, wait at barriers, or never run again.
//! [`program::progress`] decides by the end of each thread whether that is fair. A run hangs if
//! some thread goes on forever or waits.
//!
//! # Invariants
//! - A result needs a visit to every state, with fences and barriers as separate steps: a thread
//!   may stop before any of them.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Recorded;
use super::graph::{Graph, components};
use crate::memory::Age;
use crate::thread::ThreadStatus;
use program::Program;
use program::progress::{ProgressModel, ThreadEnding, serve, tree};

/// The largest number of threads: the search tries every set of them.
const MAX_THREADS: usize = 8;

/// A run that never ends.
#[derive(Clone, Debug)]
pub struct Endless {
    /// A progress model under which it is fair.
    pub model: ProgressModel,
    /// By thread: whether it takes steps forever.
    pub running: Vec<bool>,
    /// By thread: whether it never runs again, although it could.
    pub stopped: Vec<bool>,
    /// The steps up to the states that repeat.
    pub schedule: Recorded,
}

/// A state, and the set of threads that have taken a step before it.
type StartedState = (u32, u32);

/// A step from one point to another, by their numbers: the thread, and the age of its reads.
type Move = (usize, usize, u32, Age);

/// For each progress model under which some run never ends, one such run.
///
/// # Errors
/// If the program has too many threads.
pub(super) fn find(graph: &Graph, program: &Program) -> Result<Vec<Endless>, String> {
    let threads = program.threads.len();
    if threads > MAX_THREADS {
        return Err(format!(
            "the executor distinguishes progress models for at most {MAX_THREADS} threads"
        ));
    }
    let (points, edges) = points(graph);
    let tree = tree(program);
    let mut found: Vec<Endless> = Vec::new();
    for running in 0..1u32 << threads {
        for part in parts(points.len(), &edges, running) {
            let (state, started) = points[part];
            let statuses = &graph.stands[state as usize];
            let runs = |t: usize| running >> t & 1 != 0;
            let stopped: Vec<bool> = (0..threads)
                .map(|t| !runs(t) && statuses[t] == ThreadStatus::Running)
                .collect();
            if !(0..threads).any(|t| {
                runs(t)
                    || matches!(
                        statuses[t],
                        ThreadStatus::Waiting | ThreadStatus::Held | ThreadStatus::Lost
                    )
            }) {
                continue;
            }
            let stands: Vec<ThreadEnding> = (0..threads)
                .map(|t| ThreadEnding {
                    live: runs(t)
                        || matches!(statuses[t], ThreadStatus::Running | ThreadStatus::Lost),
                    stopped: stopped[t],
                    // A thread that ended or got lost without a step has still executed something.
                    started: started >> t & 1 != 0
                        || statuses[t] != ThreadStatus::Running
                            && !program.threads[t].code.is_empty(),
                })
                .collect();
            for model in ProgressModel::ALL {
                if found.iter().all(|e| e.model != model) && serve(&tree, &stands, model).is_some()
                {
                    let schedule = Recorded {
                        period: 1,
                        steps: graph.path(state),
                        ..Recorded::default()
                    };
                    let running = (0..threads).map(runs).collect();
                    found.push(Endless {
                        model,
                        running,
                        stopped: stopped.clone(),
                        schedule,
                    });
                }
            }
        }
    }
    found.sort_by_key(|e| e.model);
    Ok(found)
}

/// States with the sets of started threads, and the steps between them.
fn points(graph: &Graph) -> (Vec<StartedState>, Vec<Move>) {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); graph.stands.len()];
    graph
        .edges
        .iter()
        .enumerate()
        .for_each(|(i, e)| out[e.from as usize].push(i));
    let mut numbers: FxHashMap<StartedState, usize> = FxHashMap::default();
    let (mut points, mut edges) = (vec![(0, 0)], Vec::new());
    numbers.insert((0, 0), 0);
    let mut todo: VecDeque<usize> = [0].into();
    while let Some(at) = todo.pop_front() {
        let (state, started) = points[at];
        for &i in &out[state as usize] {
            let e = &graph.edges[i];
            let point = (e.to, started | 1 << e.thread);
            let to = *numbers.entry(point).or_insert_with(|| {
                points.push(point);
                todo.push_back(points.len() - 1);
                points.len() - 1
            });
            edges.push((at, to, e.thread, e.age));
        }
    }
    (points, edges)
}

/// One point of every strongly connected part in which exactly these threads take steps that can
/// happen infinitely often.
fn parts(points: usize, edges: &[Move], running: u32) -> Vec<usize> {
    if running == 0 {
        return (0..points).collect();
    }
    let taken = || {
        edges
            .iter()
            .filter(|(_, _, t, age)| running >> t & 1 != 0 && *age == Age::New)
    };
    let (sets, set_of) = components(points, taken().map(|&(a, b, ..)| (a as u32, b as u32)));
    let mut stepping = vec![0u32; sets.len()];
    for &(a, _, t, _) in taken().filter(|(a, b, ..)| set_of[*a] == set_of[*b]) {
        stepping[set_of[a] as usize] |= 1 << t;
    }
    let all = sets
        .iter()
        .zip(stepping)
        .filter(|(_, stepping)| *stepping == running);
    all.map(|(set, _)| set[0] as usize).collect()
}
