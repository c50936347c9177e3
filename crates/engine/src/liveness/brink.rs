//! Defines the points of a host program that may never be reached, and the queries about work that
//! never completes.

use std::ops::Range;

use program::host::{
    ChildStart, CommandId, CommandOrigin, HandleKind, HostProgram, LaunchGraph, LaunchNode,
    QueryId, QuerySubject as About, Ref,
};
use program::{Program, ThreadId};

/// A part of a thread's code, without calls, in which it may loop or wait without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The thread.
    pub thread: ThreadId,
    /// Its instructions.
    pub range: Range<usize>,
}

/// A point that may never be reached, although everything that calls order before it takes place.
#[derive(Clone, Debug)]
pub(super) struct Brink {
    pub(super) node: LaunchNode,
    /// It is reached exactly if no thread stays in one of these parts; empty for a command that
    /// implementations need not start.
    pub(super) behind: Vec<Stretch>,
}

/// A query about work that never completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusQuery {
    pub(super) thread: ThreadId,
    /// Its instruction.
    pub(super) at: usize,
    pub(super) of: QueryId,
}

impl StatusQuery {
    /// The point that brings the awaited answer, if the query comes after all calls.
    pub(super) fn awaits(&self, program: &Program, graph: &LaunchGraph) -> LaunchNode {
        let host = host(program);
        match host.query(self.of).of {
            About::Event(Ref::Command(c)) => LaunchNode::Done(c),
            About::Event(Ref::Handle(h)) if host.handle(h).kind == HandleKind::User => {
                LaunchNode::User(h)
            }
            _ => LaunchNode::Query(self.of, graph.views_of(self.of).saturating_sub(1)),
        }
    }
}

/// The point that the end of a command's thread contributes to. If a command waits for its
/// work-group, this is the end of the group, otherwise the end of the command.
pub(super) fn end_of(program: &Program, command: CommandId, t: ThreadId) -> LaunchNode {
    let host = host(program);
    match group_of(host, command, t) {
        Some(group)
            if host
                .command_ids()
                .any(|c| waits_for_group(host, c, command, group)) =>
        {
            LaunchNode::GroupEnd(command, group)
        }
        _ => LaunchNode::End(command),
    }
}

/// Whether a command waits for the end of a work-group of its parent `command`.
fn waits_for_group(host: &HostProgram, c: CommandId, command: CommandId, group: u32) -> bool {
    match host.command(c).origin {
        CommandOrigin::Device {
            parent,
            thread,
            flag: ChildStart::WaitWorkGroup,
        } => parent == command && group_of(host, command, thread) == Some(group),
        _ => false,
    }
}

/// The work-group of a thread in its command.
fn group_of(host: &HostProgram, command: CommandId, t: ThreadId) -> Option<u32> {
    let of = host.command(command);
    of.threads
        .iter()
        .position(|u| *u == t)
        .map(|at| of.groups[at])
}

pub(super) fn host(program: &Program) -> &program::host::HostProgram {
    program.host.as_deref().expect("a host program")
}
