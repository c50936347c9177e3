//! Liveness of host programs: what the launch graph alone decides.
//!
//! Waits that never end and commands that nobody submits are seen in the graph. Otherwise only
//! threads that loop, or wait at barriers, can fail to end, and the question falls into
//! [`super::cases`].
//!
//! # Invariants
//! - A program that a graph says to hang does so whatever the memory model and the progress model:
//!   no thread can go on.
//!
//! # Sources
//! - See [`program::host`]; OpenCL API specification, *Flush and Finish*, for commands that nobody
//!   submits.

use super::held::witness;
use program::Program;
use program::host::{LaunchGraph, Launches, Node};
use verdict::{Reason, Witness};

/// What launches alone say about the end of a program.
pub(super) enum Ends {
    /// Nothing that keeps it from ending: all depends on threads. The ways in which calls can be
    /// issued, if it has some.
    Open(Vec<LaunchGraph>),
    /// It can hang so.
    Hangs(Box<Witness>),
    /// Nobody knows.
    Undecided(Reason),
}

/// What launches alone say about the end of a program.
pub(super) fn ends(program: &Program) -> Ends {
    let Some(host) = program.host.as_deref() else {
        return Ends::Open(Vec::new());
    };
    if host.commands.iter().any(|c| c.programmatic) {
        let what = "whether kernels with programmatic stream serialization end";
        return Ends::Undecided(Reason::Unsupported(what.to_owned()));
    }
    let launches = match Launches::of(program) {
        Ok(launches) => launches,
        Err(error) => return Ends::Undecided(Reason::Calls(error.to_string())),
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
        return Ends::Hangs(Box::new(witness(
            program,
            graph,
            &graph.never(&start),
            &why,
        )));
    }
    Ends::Open(launches.ways)
}
