//! The effect of a call on the lanes: the conditions for each command to start, and for each call
//! to return.
//!
//! A lane keeps its *gatekeepers*: the commands that the next one has to wait for. A stream or an
//! in-order queue keeps its last command, an out-of-order queue its last barrier. The legacy
//! default stream adds those of all blocking streams, and these add its own. Lanes are first in,
//! first out, so the last command represents those before it.
//!
//! A kernel with programmatic stream serialization waits for none of its stream's gatekeepers. It
//! depends on the preceding kernel and may wait for that kernel's end. It joins the gatekeepers
//! that were there.
//!
//! # Invariants
//! - Calls are issued in an order that respects the order of each host thread.
//! - The needs of a command are fixed when it is enqueued.
//! # Sources
//! - OpenCL API specification, *Execution Model*, clEnqueueMarkerWithWaitList,
//!   clEnqueueBarrierWithWaitList.
//! - CUDA driver API, *Stream synchronization behavior*; CUDA runtime API, cudaEventRecord,
//!   cudaStreamWaitEvent: a wait is for the work captured by the latest record before it, and an
//!   event that was never recorded is empty.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CallId, ChildStart, CommandId, CommandKind, CommandOrigin, HandleId, HandleKind, HostOp,
    HostProgram, HostQuery, LaneId, LaneKind, QuerySubject, Ref, Rule,
};

/// A condition that has to hold before a command starts or a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum On {
    /// A command is complete, with all its children.
    Done(CommandId),
    /// All work-groups of a command have ended.
    Ended(CommandId),
    /// A work-group of a command has ended.
    GroupEnded(CommandId, u32),
    /// A user event is set.
    User(HandleId),
}

/// A condition, and the rule that requires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StartCondition {
    /// The rule.
    pub rule: Rule,
    /// The condition.
    pub on: On,
}

/// The effect of a call on the lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallEffect {
    /// The enqueued command, and the conditions before it starts.
    pub command: Option<(CommandId, Vec<StartCondition>)>,
    /// The conditions before the call returns.
    pub returns: Vec<StartCondition>,
}

/// The state of the lanes after some calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaneStates {
    lanes: Vec<LaneState>,
    /// The work that each recorded event represents.
    captured: Vec<BTreeSet<On>>,
    /// For each kernel with programmatic stream serialization so far, the kernel on which it
    /// depends.
    pub(super) depends: BTreeMap<CommandId, CommandId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct LaneState {
    /// The conditions before the next command starts.
    gates: BTreeSet<StartCondition>,
    /// All commands so far.
    commands: Vec<CommandId>,
}

impl LaneStates {
    /// Empty lanes.
    pub fn new(host: &HostProgram) -> LaneStates {
        LaneStates {
            lanes: vec![LaneState::default(); host.lanes.len()],
            captured: vec![BTreeSet::new(); host.handles.len()],
            depends: BTreeMap::new(),
        }
    }

    /// The commands enqueued on a lane so far.
    pub fn enqueued(&self, lane: LaneId) -> &[CommandId] {
        &self.lanes[usize::from(lane.0)].commands
    }

    fn state(&mut self, lane: LaneId) -> &mut LaneState {
        &mut self.lanes[usize::from(lane.0)]
    }

    /// Executes a call.
    pub fn issue(&mut self, host: &HostProgram, call: CallId) -> CallEffect {
        let mut issued = CallEffect::default();
        match &host.call(call).op {
            HostOp::Enqueue { command, blocking } => {
                issued.command = Some((*command, self.enqueue(host, *command)));
                if *blocking {
                    let stream = host
                        .command(*command)
                        .lane
                        .is_some_and(|l| host.lane(l).kind.is_stream());
                    let rule = if stream {
                        Rule::SynchronousCopy
                    } else {
                        Rule::Blocking
                    };
                    issued.returns.push(StartCondition {
                        rule,
                        on: On::Done(*command),
                    });
                }
            }
            HostOp::Wait(refs) => {
                for r in refs {
                    let rule = match r {
                        Ref::Handle(h) if host.handle(*h).kind == HandleKind::Recorded => {
                            Rule::EventSynchronize
                        }
                        _ => Rule::WaitForEvents,
                    };
                    issued.returns.extend(
                        self.refer(host, *r)
                            .into_iter()
                            .map(|on| StartCondition { rule, on }),
                    );
                }
            }
            HostOp::Finish(lane) => {
                issued.returns = self.finish(host, *lane, Rule::StreamSynchronize)
            }
            HostOp::SyncDevice(device) => {
                let lanes = host
                    .lanes
                    .iter()
                    .zip(&self.lanes)
                    .filter(|(l, _)| l.device == *device);
                let commands = lanes.flat_map(|(_, state)| &state.commands);
                issued.returns = commands
                    .map(|c| StartCondition {
                        rule: Rule::DeviceSynchronize,
                        on: On::Done(*c),
                    })
                    .collect();
            }
            HostOp::Record(handle, lane) => {
                self.take_turns(host, *lane);
                let work = self
                    .gatekeepers(host, *lane)
                    .into_iter()
                    .map(|need| need.on)
                    .collect();
                self.captured[usize::from(handle.0)] = work;
            }
            HostOp::LaneWait(lane, handle) => {
                self.take_turns(host, *lane);
                let work = self.captured[usize::from(handle.0)].clone();
                let needs = work.into_iter().map(|on| StartCondition {
                    rule: Rule::StreamWaitEvent,
                    on,
                });
                self.state(*lane).gates.extend(needs);
            }
            HostOp::CreateUser(_) | HostOp::SetUser(_) | HostOp::Flush(_) | HostOp::Release(_) => {}
        }
        issued
    }

    /// Enqueues a command on its lane and returns the conditions before it starts. For a command
    /// that a kernel enqueues, the caller calls this when the kernel does so.
    pub fn enqueue(&mut self, host: &HostProgram, id: CommandId) -> Vec<StartCondition> {
        let command = host.command(id);
        let mut needs: BTreeSet<StartCondition> = BTreeSet::new();
        for r in &command.waits {
            needs.extend(self.refer(host, *r).into_iter().map(|on| StartCondition {
                rule: Rule::WaitList,
                on,
            }));
        }
        if let CommandKind::Callback { of, complete: true } = command.kind {
            needs.extend(self.refer(host, of).into_iter().map(|on| StartCondition {
                rule: Rule::Callback,
                on,
            }));
        }
        needs.extend(child_conditions(host, id));
        let Some(lane) = command.lane else {
            return needs.into_iter().collect();
        };
        let before = self
            .enqueued(lane)
            .last()
            .copied()
            .filter(|_| command.programmatic);
        let mut gates = self.gatekeepers(host, lane);
        if let Some(before) = before {
            gates = &gates - &self.state(lane).gates;
            self.depends.insert(id, before);
        }
        needs.extend(gates);
        if command.kind == CommandKind::Kernel {
            needs.extend(initializer_conditions(host, lane));
        }
        let listed = !command.waits.is_empty();
        let kind = host.lane(lane).kind;
        let state = self.state(lane);
        match command.kind {
            CommandKind::Marker if !listed => needs.extend(all_complete(Rule::Marker, state)),
            CommandKind::Barrier if !listed => {
                needs.extend(all_complete(Rule::BarrierAfter, state))
            }
            _ => {}
        }
        match (kind, command.kind) {
            (LaneKind::InOrder, _) => state.gates = BTreeSet::from([complete(Rule::InOrder, id)]),
            (LaneKind::Stream { .. } | LaneKind::Null, _) => {
                if before.is_none() {
                    state.gates.clear();
                }
                state.gates.insert(complete(Rule::Stream, id));
            }
            // Barriers accumulate: one with a wait list need not wait for those before it.
            (_, CommandKind::Barrier) => {
                state.gates.insert(complete(
                    if listed {
                        Rule::BarrierList
                    } else {
                        Rule::BarrierBefore
                    },
                    id,
                ));
            }
            _ => {}
        }
        state.commands.push(id);
        needs.into_iter().collect()
    }

    /// An action in the legacy default stream, even one without work, waits for all blocking
    /// streams. They then wait for it.
    fn take_turns(&mut self, host: &HostProgram, lane: LaneId) {
        if host.lane(lane).kind == LaneKind::Null {
            self.state(lane).gates = self.gatekeepers(host, lane);
        }
    }

    /// The conditions that earlier commands impose on the next command of a lane.
    fn gatekeepers(&self, host: &HostProgram, lane: LaneId) -> BTreeSet<StartCondition> {
        let own = host.lane(lane);
        let mut gates = self.lanes[usize::from(lane.0)].gates.clone();
        let (others, rule): (fn(LaneKind) -> bool, Rule) = match own.kind {
            LaneKind::Null => (
                |k| k == LaneKind::Stream { blocking: true },
                Rule::NullAfter,
            ),
            LaneKind::Stream { blocking: true } => (|k| k == LaneKind::Null, Rule::NullBefore),
            _ => return gates,
        };
        for (other, state) in host.lanes.iter().zip(&self.lanes) {
            if other.device == own.device && others(other.kind) {
                gates.extend(
                    state
                        .gates
                        .iter()
                        .map(|need| StartCondition { rule, on: need.on }),
                );
            }
        }
        gates
    }

    /// The conditions for a query to answer "complete" now. For an OpenCL event, the needs carry
    /// the rule of a wait, though the answer orders no memory.
    pub fn asked(&self, host: &HostProgram, query: &HostQuery) -> Vec<StartCondition> {
        match query.of {
            QuerySubject::Lane(lane) => self.finish(host, lane, Rule::StreamQuery),
            QuerySubject::Event(r) => {
                let rule = if query.orders(host) {
                    Rule::EventQuery
                } else {
                    Rule::WaitForEvents
                };
                self.refer(host, r)
                    .into_iter()
                    .map(|on| StartCondition { rule, on })
                    .collect()
            }
        }
    }

    /// The conditions for all earlier commands of a lane to be complete. `rule` is the rule for
    /// streams.
    fn finish(&self, host: &HostProgram, lane: LaneId, rule: Rule) -> Vec<StartCondition> {
        if host.lane(lane).kind.is_stream() {
            let gates = self.gatekeepers(host, lane);
            return gates
                .into_iter()
                .map(|need| StartCondition { rule, on: need.on })
                .collect();
        }
        self.enqueued(lane)
            .iter()
            .map(|c| StartCondition {
                rule: Rule::Finish,
                on: On::Done(*c),
            })
            .collect()
    }

    /// The conditions that an event represents.
    fn refer(&self, host: &HostProgram, r: Ref) -> Vec<On> {
        match r {
            Ref::Command(c) => vec![On::Done(c)],
            Ref::Handle(h) if host.handle(h).kind == HandleKind::User => vec![On::User(h)],
            Ref::Handle(h) => self.captured[usize::from(h.0)].iter().copied().collect(),
        }
    }
}

/// The conditions for a command that a kernel enqueues to start.
fn child_conditions(host: &HostProgram, id: CommandId) -> Vec<StartCondition> {
    let mut needs = Vec::new();
    if let CommandOrigin::Device {
        parent,
        thread,
        flag,
        ..
    } = host.command(id).origin
    {
        let of = host.command(parent);
        let group = of.group_of(thread);
        match flag {
            ChildStart::NoWait => {}
            ChildStart::WaitKernel => {
                needs.push(StartCondition {
                    rule: Rule::WaitKernel,
                    on: On::Ended(parent),
                });
            }
            ChildStart::Tail => {
                needs.push(StartCondition {
                    rule: Rule::TailLaunch,
                    on: On::Ended(parent),
                });
                for other in host.command_ids().filter(|c| *c != id) {
                    let before = match host.command(other).origin {
                        CommandOrigin::Device {
                            parent: p,
                            flag: ChildStart::Tail,
                            ..
                        } => p == parent && other < id,
                        CommandOrigin::Device { parent: p, .. } => p == parent,
                        _ => false,
                    };
                    if before {
                        needs.push(StartCondition {
                            rule: Rule::TailLaunch,
                            on: On::Done(other),
                        });
                    }
                }
            }
            ChildStart::WaitWorkGroup => {
                needs.push(StartCondition {
                    rule: Rule::WaitWorkGroup,
                    on: On::GroupEnded(parent, group),
                });
            }
        }
    }
    needs
}

/// The initialisers of a lane's device, which precede its kernels.
fn initializer_conditions(host: &HostProgram, lane: LaneId) -> Vec<StartCondition> {
    let device = host.lane(lane).device;
    let initializers = host
        .command_ids()
        .filter(|c| host.command(*c).kind == (CommandKind::Initializer { device }));
    initializers
        .map(|c| complete(Rule::Initializer, c))
        .collect()
}

/// All commands of a lane have to be complete.
fn all_complete(rule: Rule, state: &LaneState) -> Vec<StartCondition> {
    state
        .commands
        .iter()
        .map(|c| StartCondition {
            rule,
            on: On::Done(*c),
        })
        .collect()
}

/// A command has to be complete.
fn complete(rule: Rule, id: CommandId) -> StartCondition {
    StartCondition {
        rule,
        on: On::Done(id),
    }
}
