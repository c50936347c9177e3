//! Liveness of host programs, as far as the launch graph decides it: waits that never end, commands that nobody submits.
//!
//! # Invariants
//! - A program that a graph says to hang does so whatever the memory model and the progress model: no thread can go on.
//! - Where the graph says nothing, and something waits for a thread that may loop or wait at a barrier, there is no answer:
//!   which threads there are to run then depends on which others have ended.
//!
//! # Sources
//! - See [`crate::program::host`]; OpenCL API specification, *Flush and Finish*, for commands that nobody submits.

use std::collections::BTreeSet;

use crate::program::host::{LaunchGraph, Launches, Node};
use crate::program::{Op, Program, ThreadId};
use crate::verdict::{Ending, ThreadEnd, Witness};

/// What launches alone say about the end of a program.
pub(super) enum Ends {
    /// Nothing that keeps it from ending: all depends on its threads.
    Open,
    /// It can hang so.
    Hangs(Box<Witness>),
    /// Nobody knows.
    Undecided(String),
}

/// What launches alone say about the end of a program.
pub(super) fn ends(program: &Program) -> Ends {
    let Some(host) = program.host.as_deref() else { return Ends::Open };
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
            "nothing submits what {first} belongs to: no clFlush, clFinish or blocking call{queue} comes after it"
        );
        return Ends::Hangs(Box::new(witness(program, graph, &graph.never(&start), &why)));
    }
    if launches.ways.iter().any(|way| program.thread_ids().any(|t| holds_up(program, way, t))) {
        return Ends::Undecided(
            "liveness of host programs in which something waits for threads that loop or wait at barriers"
                .to_string(),
        );
    }
    Ends::Open
}

/// Whether a thread may fail to end, and anything else that does something has to wait for its end.
fn holds_up(program: &Program, graph: &LaunchGraph, t: ThreadId) -> bool {
    let code = &program.thread(t).code;
    let back = |(at, op): (usize, &Op)| match op {
        Op::Branch { target, .. } if *target <= at => Some(*target),
        Op::Barrier(_) => Some(at),
        _ => None,
    };
    let Some(first) = code.iter().map(|i| &i.op).enumerate().filter_map(back).min() else { return false };
    if code[first..].iter().any(|i| matches!(i.op, Op::Call(_) | Op::Enqueue(_))) {
        return true;
    }
    let after = graph.never(&[Node::Leave(t)]);
    program.thread_ids().filter(|u| *u != t).any(|u| {
        let code = &program.thread(u).code;
        let from = match after.contains(&Node::Enter(u)) {
            true => Some(0),
            false => code.iter().position(|i| matches!(i.op, Op::Call(c) if after.contains(&Node::Return(c)))),
        };
        from.is_some_and(|from| code[from..].iter().any(|i| i.op.is_visible()))
    })
}

/// How each thread ends if some points are never reached.
fn witness(program: &Program, graph: &LaunchGraph, never: &BTreeSet<Node>, why: &str) -> Witness {
    let (events, relations, state, threads, derived) = Default::default();
    let ends = program.thread_ids().map(|t| end(program, graph, never, t, why)).collect();
    Witness { events, relations, state, ends, threads, derived }
}

fn end(program: &Program, graph: &LaunchGraph, never: &BTreeSet<Node>, t: ThreadId, why: &str) -> ThreadEnd {
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
