//! Finds the OpenCL commands that no call submits to the device: no later call flushes their queue.
//!
//! # Invariants
//! - A call that waits for an unsubmitted command does not return. The calls after it are never
//!   issued and flush nothing.
//!
//! # Sources
//! - OpenCL API specification, *Flush and Finish*: `clFlush`, `clFinish`, blocking calls,
//!   `clReleaseCommandQueue` and calls that wait for an event of the queue submit what was enqueued
//!   before them.

use std::collections::{BTreeSet, HashSet};

use super::{
    CallId, CommandId, CommandKind, CommandOrigin, HandleId, HandleKind, HostOp, LaneKind,
    LaunchGraph, LaunchNode, Ref,
};
use crate::Program;

/// The calls that are still issued, in order, if these points are never reached.
pub(super) fn issued(
    program: &Program,
    never: &BTreeSet<LaunchNode>,
    calls: &[CallId],
) -> Vec<CallId> {
    let host = program.host.as_deref().expect("a host program");
    let (mut issued, mut blocked) = (Vec::new(), HashSet::new());
    for &call in calls {
        let thread = host.call(call).thread;
        if blocked.contains(&thread) {
            continue;
        }
        let comes = !never.contains(&LaunchNode::Call(call)) && known(program, call, &issued);
        if comes {
            issued.push(call);
        }
        if !comes || never.contains(&LaunchNode::Return(call)) {
            blocked.insert(thread);
        }
    }
    issued
}

/// Whether earlier calls have made all events that a call names.
pub(super) fn known(program: &Program, call: CallId, before: &[CallId]) -> bool {
    let host = program.host.as_deref().expect("a host program");
    makers(program, &host.call(call).op)
        .iter()
        .all(|made| *made == call || before.contains(made))
}

/// The enqueued commands of host queues that no call submits if the calls are issued in the order
/// of a graph. Empty if no run issues the calls in this order.
pub(super) fn unsubmitted(program: &Program, all: &LaunchGraph) -> Vec<CommandId> {
    let mut calls = all.order.clone();
    if queued(program, &calls).next().is_none() {
        return Vec::new();
    }
    // The graph of the remaining calls.
    let mut rest: Option<LaunchGraph> = None;
    loop {
        let graph = rest.as_ref().unwrap_or(all);
        let mut waiting: Vec<CommandId> = queued(program, &calls).collect();
        let (never, come) = loop {
            let starts: Vec<LaunchNode> = waiting.iter().map(|c| LaunchNode::Start(*c)).collect();
            let never = graph.never(&starts);
            let come = issued(program, &never, &calls);
            let submitted = submitted(program, &come);
            let before = waiting.len();
            waiting.retain(|c| !submitted.contains(c));
            if waiting.len() == before {
                break (never, come);
            }
        };
        if come.len() == calls.len() {
            return if comes_about(program, &never, &come, &all.order) {
                waiting
            } else {
                Vec::new()
            };
        }
        // Without the calls that are not issued, calls of other threads may wait for less.
        rest = Some(LaunchGraph::untimed(program, &come));
        calls = come;
    }
}

/// Whether every thread with missing calls is blocked: by its last issued call, or by a missing
/// event.
fn comes_about(
    program: &Program,
    never: &BTreeSet<LaunchNode>,
    come: &[CallId],
    order: &[CallId],
) -> bool {
    let host = program.host.as_deref().expect("a host program");
    let mut held = HashSet::new();
    order
        .iter()
        .filter(|call| !come.contains(call))
        .all(|&call| {
            let thread = host.call(call).thread;
            // The first missing call decides; the later ones are missing because of it.
            !held.insert(thread) || {
                let last = come.iter().rev().find(|c| host.call(**c).thread == thread);
                last.is_some_and(|last| never.contains(&LaunchNode::Return(*last)))
                    || !known(program, call, come)
            }
        })
}

/// The commands that these calls enqueue on host queues.
pub(super) fn queued<'a>(
    program: &'a Program,
    calls: &'a [CallId],
) -> impl Iterator<Item = CommandId> + 'a {
    let host = program.host.as_deref().expect("a host program");
    calls.iter().filter_map(|&call| match &host.call(call).op {
        HostOp::Enqueue { command, .. } => {
            let kind = host.lane(host.command(*command).lane?).kind;
            matches!(kind, LaneKind::InOrder | LaneKind::OutOfOrder).then_some(*command)
        }
        _ => None,
    })
}

/// The commands among them that these calls submit.
pub(super) fn submitted(program: &Program, calls: &[CallId]) -> HashSet<CommandId> {
    let host = program.host.as_deref().expect("a host program");
    let mut submitted = HashSet::new();
    for (at, &call) in calls.iter().enumerate() {
        let mut flushed = Vec::new();
        match &host.call(call).op {
            HostOp::Enqueue {
                command,
                blocking: true,
            } => flushed.extend(host.command(*command).lane),
            HostOp::Finish(lane) | HostOp::Flush(lane) | HostOp::Release(lane) => {
                flushed.push(*lane)
            }
            HostOp::Wait(refs) => flushed.extend(refs.iter().filter_map(|r| match r {
                Ref::Command(c) => host.command(*c).lane,
                Ref::Handle(_) => None,
            })),
            _ => {}
        }
        let by_then = queued(program, &calls[..=at]);
        submitted.extend(by_then.filter(|c| {
            host.command(*c)
                .lane
                .is_some_and(|lane| flushed.contains(&lane))
        }));
    }
    submitted
}

/// The events that a call names.
pub(super) fn named(program: &Program, op: &HostOp) -> Vec<Ref> {
    let host = program.host.as_deref().expect("a host program");
    match op {
        HostOp::Wait(refs) => refs.clone(),
        HostOp::Enqueue { command, .. } => {
            let command = host.command(*command);
            let mut all = command.waits.clone();
            if let CommandKind::Callback { of, .. } = command.kind {
                all.push(of);
            }
            all
        }
        _ => Vec::new(),
    }
}

/// The calls that make the events that a call names.
pub(super) fn makers(program: &Program, op: &HostOp) -> Vec<CallId> {
    let host = program.host.as_deref().expect("a host program");
    let mut refs = named(program, op);
    if let HostOp::SetUser(h) = op {
        refs.push(Ref::Handle(*h));
    }
    refs.iter()
        .filter_map(|r| match r {
            Ref::Command(c) => match host.command(*c).origin {
                CommandOrigin::Call(made) => Some(made),
                _ => None,
            },
            Ref::Handle(h) => host
                .call_ids()
                .find(|c| host.call(*c).op == HostOp::CreateUser(*h)),
        })
        .collect()
}

/// The user events that something waits for and that no call sets.
pub(super) fn never_set(program: &Program) -> Vec<HandleId> {
    let host = program.host.as_deref().expect("a host program");
    let set = |h: HandleId| host.calls.iter().any(|c| c.op == HostOp::SetUser(h));
    let awaited = |h: HandleId| {
        host.calls
            .iter()
            .any(|c| named(program, &c.op).contains(&Ref::Handle(h)))
    };
    let all = (0..host.handles.len() as u16).map(HandleId);
    all.filter(|h| host.handle(*h).kind == HandleKind::User && awaited(*h) && !set(*h))
        .collect()
}
