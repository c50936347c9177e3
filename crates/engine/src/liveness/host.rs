//! Decides liveness of host programs as far as the launch graph alone allows.
//!
//! Endless waits and commands that no call submits show in the graph. Otherwise only threads that
//! loop, or wait at barriers, can fail to end, and the question falls into [`super::cases`].
//!
//! # Invariants
//! - If the graph shows that a program hangs, it does so under every memory model and progress
//!   model: no thread can continue.
//!
//! # Sources
//! - See [`program::host`]; OpenCL API specification, *Flush and Finish*, for commands that no call
//!   submits.

use super::held::witness;
use program::Program;
use program::host::{LaunchGraph, LaunchNode, LaunchOrders};
use verdict::{Reason, Witness};

/// The launches' answer about the end of a program.
pub(super) enum Ends {
    /// Nothing in the launches prevents the end: it depends on threads. Holds the possible orders
    /// of calls, if the program has some.
    Open(Vec<LaunchGraph>),
    /// The program can hang so.
    Hangs(Box<Witness>),
    /// The answer is unknown.
    Undecided(Reason),
}

/// The launches' answer about the end of a program.
pub(super) fn ends(program: &Program) -> Ends {
    let Some(host) = program.host.as_deref() else {
        return Ends::Open(Vec::new());
    };
    if host.commands.iter().any(|c| c.programmatic) {
        let what = "whether kernels with programmatic stream serialization end";
        return Ends::Undecided(Reason::Unsupported(what.to_owned()));
    }
    let launches = match LaunchOrders::of(program) {
        Ok(launches) => launches,
        Err(error) => return Ends::Undecided(Reason::Calls(error.to_string())),
    };
    if let Some((graph, stuck)) = &launches.stuck {
        let never = graph.never(&stuck.nodes());
        let why = stuck.describe(program).join("; ");
        return Ends::Hangs(Box::new(witness(program, graph, &never, &why)));
    }
    if let Some(graph) = launches.ways.iter().find(|way| !way.unsubmitted.is_empty()) {
        let start: Vec<LaunchNode> = graph
            .unsubmitted
            .iter()
            .map(|c| LaunchNode::Start(*c))
            .collect();
        let first = LaunchNode::Start(graph.unsubmitted[0]).describe(program);
        let lane = host.command(graph.unsubmitted[0]).lane;
        let queue = lane.map_or(String::new(), |l| format!(" of `{}`", host.lane(l).name));
        let why = format!(
            "nothing submits what {first} belongs to: no clFlush, clFinish or blocking \
            call{queue} is issued after it"
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
