//! Host programs: the state of queues, streams, commands and events, and the conditions that each
//! command waits for.
//!
//! A command is queued, submitted, running, ended, complete. Its conditions are fixed when it is
//! enqueued: they follow from the earlier entries of its queue and from its wait list. It starts as
//! soon as all of them hold. Such transitions happen without a choice: they only permit more steps.
//! Only the status of a command shows their time, so a query of OpenCL chooses among statuses. An
//! option decides whether a command is submitted at once or only by a flush.
//!
//! Knowledge moves from point to point: from the call to the command, from a complete command to
//! the calls and commands that wait for it, and to the threads of those commands. This module does
//! not use the edges of the launch graph. The checkers use them, and tests compare the two.
//!
//! # Invariants
//! - A thread of a command is held until its command runs; a thread in a call is held until the
//!   call returns.
//! # Sources
//! - OpenCL API specification, *Execution Model*: states of a command, synchronisation of commands;
//!   *Flush and Finish*.
//! - CUDA driver API, *Stream synchronization behavior*; CUDA runtime API, cudaEventRecord,
//!   cudaStreamWaitEvent.

mod run;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use super::code::Code;
use super::thread::ThreadState;
use program::host::{
    CallId, ChildStart, CommandId, CommandKind, CommandOrigin, HandleId, HandleKind, HostOp,
    HostProgram, HostQuery, LaneId, LaneKind, LaunchNode, QuerySubject, Ref,
};
use program::{Scope, SourceLine, ThreadId};
pub(super) use tell::{held, unmet};

/// The stage that a command has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CommandStage {
    /// Not enqueued.
    Absent,
    Queued,
    Submitted,
    /// Its threads may step.
    Running,
    /// Its threads have ended.
    Ended,
    /// Its children have ended, too.
    Complete,
}

/// A condition that may come to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum HostCondition {
    /// A command has reached at least this stage.
    Reached(CommandId, CommandStage),
    /// A work-group of a command has ended.
    GroupEnded(CommandId, u32),
    /// A user event exists.
    Made(HandleId),
    /// A user event is set.
    Set(HandleId),
    /// The stream has passed a point.
    Passed(usize),
    /// All work-groups of a command have triggered their dependents, or have ended.
    Triggered(CommandId),
}

/// A point at which knowledge is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum KnowledgePoint {
    Issue(CommandId),
    Start(CommandId),
    GroupEnd(CommandId, u32),
    End(CommandId),
    Done(CommandId),
    Set(HandleId),
    Passed(usize),
    /// The knowledge for dependents of a command, as far as fences of this scope publish it.
    Trigger(CommandId, Scope),
}

impl KnowledgePoint {
    /// A number that identifies the point.
    fn number(self) -> u32 {
        let (kind, index, group) = match self {
            KnowledgePoint::Issue(c) => (0, c.0, 0),
            KnowledgePoint::Start(c) => (1, c.0, 0),
            KnowledgePoint::End(c) => (2, c.0, 0),
            KnowledgePoint::Done(c) => (3, c.0, 0),
            KnowledgePoint::Set(h) => (4, h.0, 0),
            KnowledgePoint::Passed(i) => (5, i as u16, 0),
            KnowledgePoint::GroupEnd(c, group) => (6, c.0, group),
            KnowledgePoint::Trigger(c, scope) => (7, c.0, scope as u32),
        };
        kind << 28 | (group & 0xfff) << 16 | u32::from(index)
    }
}

/// The content of an entry of a queue or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EntryContent {
    Command(CommandId),
    /// A point of a stream that records an event or waits for one.
    Point,
}

/// An entry of a queue or a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct QueueEntry {
    lane: Option<LaneId>,
    what: EntryContent,
    /// The conditions before it starts, or is passed.
    waits: BTreeSet<HostCondition>,
    passed: bool,
}

/// A call that has not returned yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InCall {
    /// Whether the call was issued; if not, it names an event that does not exist yet.
    issued: bool,
    /// The conditions of its return.
    waits: BTreeSet<HostCondition>,
}

/// The state of a host program; `C` is the knowledge at a point.
#[derive(Clone, Debug, Default)]
pub(super) struct HostProgress<C> {
    /// By command.
    stages: Vec<CommandStage>,
    /// In the order of their enqueueing.
    items: Vec<QueueEntry>,
    /// By handle: whether the event exists.
    made: Vec<bool>,
    /// By handle: whether the user event is set.
    set: Vec<bool>,
    /// By handle: the entry that recorded it last.
    recorded: Vec<Option<usize>>,
    /// Threads inside a call.
    calls: BTreeMap<usize, InCall>,
    /// By dependent command: the command in front of it.
    depends: BTreeMap<CommandId, CommandId>,
    /// The work-groups of commands that have triggered their dependents.
    triggered: BTreeSet<(CommandId, u32)>,
    /// The status that the last query of a command in OpenCL gave.
    reported: BTreeMap<CommandId, i64>,
    /// The knowledge at each point.
    pub(super) known: BTreeMap<KnowledgePoint, C>,
}

impl<C: Default> HostProgress<C> {
    /// The state before the first call.
    pub(super) fn new(code: &Code) -> HostProgress<C> {
        let Some(host) = code.program.host.as_deref() else {
            return HostProgress::default();
        };
        HostProgress {
            stages: vec![CommandStage::Absent; host.commands.len()],
            made: (0..host.handles.len() as u16)
                .map(|h| !makes(host, HandleId(h)))
                .collect(),
            set: vec![false; host.handles.len()],
            recorded: vec![None; host.handles.len()],
            ..HostProgress::default()
        }
    }

    pub(super) fn hash_into(&self, hasher: &mut impl Hasher) {
        (
            &self.stages,
            &self.items,
            &self.made,
            &self.set,
            &self.recorded,
            &self.calls,
        )
            .hash(hasher);
        (&self.depends, &self.triggered, &self.reported).hash(hasher);
        self.known.keys().for_each(|point| point.hash(hasher));
    }

    /// Whether only steps of threads remain.
    pub(super) fn is_over(&self) -> bool {
        self.stages
            .iter()
            .all(|s| matches!(s, CommandStage::Absent | CommandStage::Complete))
    }

    /// Whether a command was never enqueued.
    pub(super) fn is_absent(&self, command: CommandId) -> bool {
        self.stage(command) == CommandStage::Absent
    }

    fn stage(&self, command: CommandId) -> CommandStage {
        self.stages[usize::from(command.0)]
    }

    fn set_stage(&mut self, command: CommandId, stage: CommandStage) {
        self.stages[usize::from(command.0)] = stage;
    }

    /// The entry of a command that was enqueued.
    fn item(&self, command: CommandId) -> Option<&QueueEntry> {
        self.items
            .iter()
            .find(|i| i.what == EntryContent::Command(command))
    }

    fn holds(&self, code: &Code, threads: &[ThreadState], cond: HostCondition) -> bool {
        match cond {
            HostCondition::Reached(c, stage) => self.stage(c) >= stage,
            HostCondition::GroupEnded(c, group) => {
                self.stage(c) >= CommandStage::Running
                    && members(code, c, group).all(|t| threads[t].is_over())
            }
            HostCondition::Made(h) => self.made[usize::from(h.0)],
            HostCondition::Set(h) => self.set[usize::from(h.0)],
            HostCondition::Passed(i) => self.items[i].passed,
            HostCondition::Triggered(c) => {
                self.stage(c) >= CommandStage::Running
                    && (0..host(code).command(c).group_count()).all(|group| {
                        self.triggered.contains(&(c, group))
                            || members(code, c, group).all(|t| threads[t].is_over())
                    })
            }
        }
    }

    /// Whether a thread may go on behind a `griddepcontrol.wait`.
    pub(super) fn may_pass(&self, code: &Code, thread: usize) -> bool {
        self.depends_on(code, thread)
            .is_none_or(|before| self.stage(before) == CommandStage::Complete)
    }

    /// The command in front on the stream, if the command that is enqueued now depends on it.
    fn in_front(&self, host: &HostProgram, id: CommandId) -> Option<CommandId> {
        let command = host.command(id);
        match self
            .items
            .iter()
            .rev()
            .find(|item| item.lane == command.lane)?
            .what
        {
            EntryContent::Command(before) if command.programmatic => Some(before),
            _ => None,
        }
    }

    /// The command on which the command of a thread depends.
    fn depends_on(&self, code: &Code, thread: usize) -> Option<CommandId> {
        let command = code
            .program
            .host
            .as_deref()?
            .command_of(ThreadId(thread as u16))?;
        self.depends.get(&command).copied()
    }

    /// The point whose knowledge comes with a condition.
    fn point(cond: HostCondition) -> Option<KnowledgePoint> {
        match cond {
            HostCondition::Reached(c, CommandStage::Complete) => Some(KnowledgePoint::Done(c)),
            HostCondition::Reached(c, CommandStage::Ended) => Some(KnowledgePoint::End(c)),
            // A command on its way says nothing about memory.
            HostCondition::Reached(..) | HostCondition::Made(_) | HostCondition::Triggered(_) => {
                None
            }
            HostCondition::GroupEnded(c, group) => Some(KnowledgePoint::GroupEnd(c, group)),
            HostCondition::Set(h) => Some(KnowledgePoint::Set(h)),
            HostCondition::Passed(i) => Some(KnowledgePoint::Passed(i)),
        }
    }

    /// The condition that an event denotes now.
    fn event(&self, host: &HostProgram, r: Ref) -> Option<HostCondition> {
        match r {
            Ref::Command(c) => Some(HostCondition::Reached(c, CommandStage::Complete)),
            Ref::Handle(h) if host.handle(h).kind == HandleKind::User => {
                Some(HostCondition::Set(h))
            }
            Ref::Handle(h) => self.recorded[usize::from(h.0)].map(HostCondition::Passed),
        }
    }

    /// The conditions under which a query that is made now answers "complete".
    pub(super) fn asked(&self, host: &HostProgram, query: &HostQuery) -> BTreeSet<HostCondition> {
        match query.of {
            QuerySubject::Event(r) => self.event(host, r).into_iter().collect(),
            QuerySubject::Lane(lane) => self.before(host, lane, true),
        }
    }

    /// The conditions of an entry of a lane that follow from the earlier entries there. `all`:
    /// regardless of the kind of queue.
    fn before(&self, host: &HostProgram, lane: LaneId, all: bool) -> BTreeSet<HostCondition> {
        self.before_where(host, lane, all, &|_| true)
    }

    fn before_where(
        &self,
        host: &HostProgram,
        lane: LaneId,
        all: bool,
        asked: &dyn Fn(&QueueEntry) -> bool,
    ) -> BTreeSet<HostCondition> {
        let own = host.lane(lane);
        let counts = |item: &QueueEntry| {
            let Some(of) = item.lane.filter(|_| asked(item)) else {
                return false;
            };
            let other = host.lane(of);
            match own.kind {
                LaneKind::InOrder => of == lane,
                LaneKind::OutOfOrder | LaneKind::OnDevice => {
                    let barrier = match item.what {
                        EntryContent::Command(c) => host.command(c).kind == CommandKind::Barrier,
                        EntryContent::Point => false,
                    };
                    of == lane && (all || barrier)
                }
                LaneKind::Stream { blocking } => {
                    of == lane
                        || blocking && other.kind == LaneKind::Null && other.device == own.device
                }
                LaneKind::Null => {
                    let blocking = LaneKind::Stream { blocking: true };
                    of == lane || other.kind == blocking && other.device == own.device
                }
            }
        };
        self.items
            .iter()
            .enumerate()
            .filter(|(_, item)| counts(item))
            .map(|(i, item)| match item.what {
                EntryContent::Command(c) => HostCondition::Reached(c, CommandStage::Complete),
                EntryContent::Point => HostCondition::Passed(i),
            })
            .collect()
    }

    /// The conditions of a command that is enqueued now.
    fn needs(&self, host: &HostProgram, id: CommandId) -> BTreeSet<HostCondition> {
        let command = host.command(id);
        let mut needs: BTreeSet<HostCondition> = command
            .waits
            .iter()
            .filter_map(|&r| self.event(host, r))
            .collect();
        match (command.kind, command.origin) {
            (CommandKind::Callback { of, complete: true }, _) => needs.extend(self.event(host, of)),
            (
                CommandKind::Callback {
                    of: Ref::Command(c),
                    complete: false,
                },
                _,
            ) => {
                needs.insert(HostCondition::Reached(c, CommandStage::Submitted));
            }
            (
                _,
                CommandOrigin::Device {
                    parent,
                    flag: ChildStart::WaitKernel,
                    ..
                },
            ) => {
                needs.insert(HostCondition::Reached(parent, CommandStage::Ended));
            }
            (
                _,
                CommandOrigin::Device {
                    parent,
                    thread,
                    flag: ChildStart::WaitWorkGroup,
                },
            ) => {
                let of = host.command(parent);
                let group = of.group_of(thread);
                needs.insert(HostCondition::GroupEnded(parent, group));
            }
            (
                _,
                CommandOrigin::Device {
                    parent,
                    flag: ChildStart::Tail,
                    ..
                },
            ) => {
                needs.insert(HostCondition::Reached(parent, CommandStage::Ended));
                // It waits forevery other launch of the parent, but only for earlier tail
                // launches. One thread makes all launches, in the order of their numbers.
                let first = |other: CommandId| match host.command(other).origin {
                    CommandOrigin::Device {
                        parent: p, flag, ..
                    } => p == parent && (flag != ChildStart::Tail || other < id),
                    _ => false,
                };
                let others = host.command_ids().filter(|c| *c != id && first(*c));
                needs.extend(others.map(|c| HostCondition::Reached(c, CommandStage::Complete)));
            }
            _ => {}
        }
        let Some(lane) = command.lane else {
            return needs;
        };
        if let Some(&before) = self.depends.get(&id) {
            needs.extend(self.before_where(host, lane, false, &|item| item.lane != Some(lane)));
            needs.insert(HostCondition::Triggered(before));
            return needs;
        }
        let gathers = matches!(command.kind, CommandKind::Marker | CommandKind::Barrier)
            && command.waits.is_empty();
        needs.extend(self.before(host, lane, gathers));
        if command.kind == CommandKind::Kernel {
            let device = host.lane(lane).device;
            let before = host
                .command_ids()
                .filter(|c| host.command(*c).kind == CommandKind::Initializer { device });
            needs.extend(before.map(|c| HostCondition::Reached(c, CommandStage::Complete)));
        }
        needs
    }

    /// The conditions before a call can be issued: the events that it names exist.
    fn names(host: &HostProgram, op: &HostOp) -> BTreeSet<HostCondition> {
        let refs = match op {
            HostOp::Wait(refs) => refs.clone(),
            HostOp::Enqueue { command, .. } => {
                let command = host.command(*command);
                let of = match command.kind {
                    CommandKind::Callback { of, .. } => Some(of),
                    _ => None,
                };
                command.waits.iter().copied().chain(of).collect()
            }
            HostOp::SetUser(h) => vec![Ref::Handle(*h)],
            _ => Vec::new(),
        };
        refs.iter()
            .map(|r| match r {
                Ref::Command(c) => HostCondition::Reached(*c, CommandStage::Queued),
                Ref::Handle(h) => HostCondition::Made(*h),
            })
            .collect()
    }

    /// The conditions under which a call returns.
    fn returns(&self, host: &HostProgram, op: &HostOp) -> BTreeSet<HostCondition> {
        fn complete(c: CommandId) -> HostCondition {
            HostCondition::Reached(c, CommandStage::Complete)
        }
        let commands = |of: &dyn Fn(LaneId) -> bool| -> BTreeSet<HostCondition> {
            self.items
                .iter()
                .filter(|i| i.lane.is_some_and(of))
                .filter_map(|i| match i.what {
                    EntryContent::Command(c) => Some(complete(c)),
                    EntryContent::Point => None,
                })
                .collect()
        };
        match op {
            HostOp::Enqueue {
                command,
                blocking: true,
            } => BTreeSet::from([complete(*command)]),
            HostOp::Wait(refs) => refs.iter().filter_map(|&r| self.event(host, r)).collect(),
            HostOp::Finish(lane) if host.lane(*lane).kind.is_stream() => {
                self.before(host, *lane, true)
            }
            HostOp::Finish(lane) => commands(&|l| l == *lane),
            HostOp::SyncDevice(device) => commands(&|l| host.lane(l).device == *device),
            _ => BTreeSet::new(),
        }
    }

    /// The queues that a call flushes.
    fn flushes(host: &HostProgram, op: &HostOp) -> BTreeSet<LaneId> {
        match op {
            HostOp::Enqueue {
                command,
                blocking: true,
            } => host.command(*command).lane.into_iter().collect(),
            HostOp::Finish(lane) | HostOp::Flush(lane) | HostOp::Release(lane) => {
                BTreeSet::from([*lane])
            }
            HostOp::Wait(refs) => refs
                .iter()
                .filter_map(|r| match r {
                    Ref::Command(c) => host.command(*c).lane,
                    Ref::Handle(_) => None,
                })
                .collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// Whether some call makes the event; otherwise it exists from the start.
fn makes(host: &HostProgram, handle: HandleId) -> bool {
    host.calls
        .iter()
        .any(|c| c.op == HostOp::CreateUser(handle))
}

/// The host part of a program that has one.
fn host(code: &Code) -> &HostProgram {
    code.program.host.as_deref().expect("a host program")
}

/// The threads of a work-group of a command, and the agents that these begin.
fn members(code: &Code, command: CommandId, group: u32) -> impl Iterator<Item = usize> + '_ {
    code.commands[usize::from(command.0)]
        .groups
        .get(group as usize)
        .into_iter()
        .flatten()
        .copied()
}

/// The line of a call, and its thread.
fn call_site(code: &Code, call: CallId) -> (usize, SourceLine) {
    let thread = host(code).call(call).thread;
    let at = LaunchNode::Call(call).site(&code.program);
    (
        usize::from(thread.0),
        at.map_or(0.into(), |(_, i)| i.line.clone()),
    )
}
