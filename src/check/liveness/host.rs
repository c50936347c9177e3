//! Liveness of host programs: what the launch graph alone decides, and into which programs the rest falls apart.
//!
//! Waits that never end and commands that nobody submits are seen in the graph. Otherwise only threads of kernels can fail
//! to end. Where something waits for threads that may, the question falls into [`Case`]s: for each set of them, that just these
//! never end. What waits for them then never runs, and the program without it has no such waits left.
//!
//! # Invariants
//! - A program that a graph says to hang does so whatever the memory model and the progress model: no thread can go on.
//! - Every execution that never ends belongs to exactly one case, and every one of a case's program in which the threads of
//!   the case never end is one of the program.
//!
//! # Sources
//! - See [`crate::program::host`]; OpenCL API specification, *Flush and Finish*, for commands that nobody submits.

use std::collections::BTreeSet;

use super::sure;
use crate::program::host::{LaunchGraph, Launches, Node};
use crate::program::{Expr, Instr, Op, Program, ThreadId};
use crate::verdict::{Ending, ThreadEnd, Witness};

/// More threads that may not end, and that something waits for, are too many.
const MAX_AWAITED: usize = 3;

/// What launches alone say about the end of a program.
pub(super) enum Ends {
    /// Nothing that keeps it from ending: all depends on the threads of these cases, of which one holds.
    Open(Vec<Case>),
    /// It can hang so.
    Hangs(Box<Witness>),
    /// Nobody knows.
    Undecided(String),
}

/// Of the threads that something waits for, that just these never end.
pub(super) struct Case {
    /// The program, without what never runs.
    pub(super) program: Program,
    /// Who never ends.
    pub(super) hang: Vec<ThreadId>,
    /// Who ends, of those that need not.
    pub(super) end: Vec<ThreadId>,
    /// How those stand that never run, or not to their end.
    pub(super) held: Vec<(ThreadId, ThreadEnd)>,
}

impl Case {
    /// The only one of a program in which nothing waits for what may not end.
    fn only(program: &Program) -> Case {
        Case { program: program.clone(), hang: Vec::new(), end: Vec::new(), held: Vec::new() }
    }
}

/// What launches alone say about the end of a program.
pub(super) fn ends(program: &Program) -> Ends {
    let Some(host) = program.host.as_deref() else { return Ends::Open(vec![Case::only(program)]) };
    let launches = match Launches::of(program) {
        Ok(launches) => launches,
        Err(error) => return Ends::Undecided(error.to_string()),
    };
    if let Some((graph, stuck)) = &launches.stuck {
        let never = graph.never(&stuck.nodes());
        let why = stuck.describe(program).join("; ");
        return Ends::Hangs(Box::new(witness(program, graph, &never, &why)));
    }
    if let Some(graph) = launches.ways.iter().find(|way| !way.unsubmitted.is_empty()) {
        let start: Vec<Node> = graph.unsubmitted.iter().map(|c| Node::Start(*c)).collect();
        let first = Node::Start(graph.unsubmitted[0]).describe(program);
        let lane = host.command(graph.unsubmitted[0]).lane;
        let queue = lane.map_or(String::new(), |l| format!(" of `{}`", host.lane(l).name));
        let why = format!(
            "nothing submits what {first} belongs to: no clFlush, clFinish or blocking call{queue} is issued after it"
        );
        return Ends::Hangs(Box::new(witness(program, graph, &graph.never(&start), &why)));
    }
    let mut awaited: BTreeSet<ThreadId> = BTreeSet::new();
    for (way, t) in launches.ways.iter().flat_map(|way| program.thread_ids().map(move |t| (way, t))) {
        let Some(from) = may_not_end(program, t) else { continue };
        let calls = |op: &Op| matches!(op, Op::Call(_) | Op::Enqueue(_));
        if program.thread(t).code[from..].iter().any(|i| calls(&i.op)) {
            return undecided("a thread that may loop or wait for ever calls the runtime after that");
        }
        if holds_up(program, way, t) {
            awaited.insert(t);
        }
    }
    let awaited: Vec<ThreadId> = awaited.into_iter().collect();
    match awaited.len() {
        0 => Ends::Open(vec![Case::only(program)]),
        1..=MAX_AWAITED => match cases(program, &launches.ways, &awaited) {
            Some(cases) => Ends::Open(cases),
            None => {
                undecided("it depends on the order of calls who waits for threads that may loop or wait for ever")
            }
        },
        _ => undecided("something waits for many threads that may loop or wait for ever"),
    }
}

fn undecided(what: &str) -> Ends {
    Ends::Undecided(format!("liveness of host programs in which {what}"))
}

/// From which instruction on a thread may fail to end; `None` if it ends for certain.
fn may_not_end(program: &Program, t: ThreadId) -> Option<usize> {
    let code = &program.thread(t).code;
    let back = |(at, op): (usize, &Op)| match op {
        Op::Branch { target, .. } if *target <= at => Some(*target),
        Op::Barrier(_) => Some(at),
        _ => None,
    };
    let first = code.iter().map(|i| &i.op).enumerate().filter_map(back).min()?;
    (!sure::ends(program, t)).then_some(first)
}

/// Whether anything else that does something has to wait for a thread's end.
fn holds_up(program: &Program, graph: &LaunchGraph, t: ThreadId) -> bool {
    let after = graph.never(&[Node::Leave(t)]);
    program.thread_ids().filter(|u| *u != t).any(|u| {
        let code = &program.thread(u).code;
        code[reached(program, &after, u)..].iter().any(|i| i.op.is_visible())
    })
}

/// How many instructions of a thread run if some points are never reached.
fn reached(program: &Program, never: &BTreeSet<Node>, t: ThreadId) -> usize {
    let code = &program.thread(t).code;
    if never.contains(&Node::Enter(t)) {
        return 0;
    }
    let stops = |op: &Op| matches!(op, Op::Call(c) if never.contains(&Node::Return(*c)));
    code.iter().position(|i| stops(&i.op)).map_or(code.len(), |at| at + 1)
}

/// The cases of a program in which something waits for these threads; `None` if it depends on the order of calls what
/// they are.
fn cases(program: &Program, ways: &[LaunchGraph], awaited: &[ThreadId]) -> Option<Vec<Case>> {
    let host = program.host.as_deref().expect("a host program");
    let one = |set: usize| {
        let (hang, end): (Vec<_>, Vec<_>) = awaited.iter().enumerate().partition(|(i, _)| set >> i & 1 != 0);
        let [hang, end]: [Vec<ThreadId>; 2] = [hang, end].map(|list| list.into_iter().map(|(_, t)| *t).collect());
        let leaves: Vec<Node> = hang.iter().map(|t| Node::Leave(*t)).collect();
        let (graph, others) = ways.split_first()?;
        let never = graph.never(&leaves);
        let all =
            |never: &BTreeSet<Node>| program.thread_ids().map(|t| reached(program, never, t)).collect::<Vec<_>>();
        let differs = |way: &LaunchGraph| {
            let other = way.never(&leaves);
            all(&other) != all(&never) || unanswered(way, &other) != unanswered(graph, &never)
        };
        if others.iter().any(differs) {
            return None;
        }
        // Who waits for another one of them never starts.
        if hang.iter().any(|t| never.contains(&Node::Enter(*t))) {
            return Some(None);
        }
        let names = hang.iter().map(|t| match host.command_of(*t) {
            Some(command) => format!("`{}`", host.name_of(command)),
            None => program.thread(*t).name.clone(),
        });
        let why = format!("{} does not end", names.collect::<Vec<_>>().join(" and "));
        let mut case = Case { hang, end, ..Case::only(program) };
        for t in program.thread_ids() {
            no_answer(&mut case.program.threads[usize::from(t.0)].code, graph, &never)?;
            let runs = reached(program, &never, t);
            if runs < program.thread(t).code.len() {
                case.held.push((t, end_of(program, graph, &never, t, &why)));
                case.program.threads[usize::from(t.0)].code.truncate(runs);
            }
        }
        Some(Some(case))
    };
    let all: Option<Vec<Option<Case>>> = (0..1 << awaited.len()).map(one).collect();
    Some(all?.into_iter().flatten().collect())
}

/// Puts the answer in place of queries about what is never complete; `None` if it depends on when they are asked.
fn no_answer(code: &mut [Instr], graph: &LaunchGraph, never: &BTreeSet<Node>) -> Option<()> {
    for instr in code {
        let Op::Status { dst, of } = instr.op else { continue };
        let views = graph.views().into_iter().filter(|v| v.0 == of);
        let open: Vec<bool> = views.map(|(q, v)| never.contains(&Node::Query(q, v))).collect();
        if open.iter().all(|never| *never) {
            instr.op = Op::Assign { dst, value: Expr::Const(1) };
        } else if open.contains(&true) {
            return None;
        }
    }
    Some(())
}

/// The queries that never find all complete, by view.
fn unanswered(graph: &LaunchGraph, never: &BTreeSet<Node>) -> Vec<bool> {
    graph.views().into_iter().map(|(q, v)| never.contains(&Node::Query(q, v))).collect()
}

/// How each thread ends if some points are never reached.
fn witness(program: &Program, graph: &LaunchGraph, never: &BTreeSet<Node>, why: &str) -> Witness {
    let (events, relations, state, threads, derived) = Default::default();
    let ends = program.thread_ids().map(|t| end_of(program, graph, never, t, why)).collect();
    Witness { events, relations, state, ends, threads, derived }
}

fn end_of(program: &Program, graph: &LaunchGraph, never: &BTreeSet<Node>, t: ThreadId, why: &str) -> ThreadEnd {
    let thread = program.thread(t);
    let mut end = ThreadEnd::done(&thread.name);
    let of_host = program.host.as_ref().is_some_and(|h| h.command_of(t).is_none());
    if of_host {
        let waits = thread.code.iter().find(|i| matches!(i.op, Op::Call(c) if never.contains(&Node::Return(c))));
        if let Some(call) = waits {
            end.ending = Ending::Blocked;
            (end.line, end.text) = (call.line, call.text.clone());
            end.why = format!("waits for ever: {why}");
            if let Op::Call(c) = call.op {
                end.waits_for =
                    graph.awaited(Node::Return(c), never).iter().map(|n| n.describe(program)).collect();
            }
        }
    } else if never.contains(&Node::Enter(t)) {
        end.ending = Ending::Stopped;
        end.why = format!("never starts: {why}");
    }
    end
}
