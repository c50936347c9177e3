//! What a call adds to the lanes: for each command, what has to be over before it starts; for each
//! call, what has to be over before it returns.
//!
//! A lane keeps its *gatekeepers*: the commands that the next one has to wait for. Of a stream or
//! an in-order queue this is the last command, of an out-of-order queue the last barrier; the
//! legacy default stream has those of all blocking streams besides its own, and they have its. As
//! lanes are first in, first out, the last command stands for those before it.
//!
//! A kernel that is launched with programmatic stream serialization waits for none of its stream's
//! gatekeepers: it depends on the kernel in front of it, of which it may wait for the end. It keeps
//! the gate beside those that were there.
//!
//! # Invariants
//! - Calls are issued in an order that respects each host thread's own.
//! - A command's needs are known when it is enqueued, and never change.
//! # Sources
//! - OpenCL API specification, *Execution Model*, clEnqueueMarkerWithWaitList,
//!   clEnqueueBarrierWithWaitList.
//! - CUDA driver API, *Stream synchronization behavior*; CUDA runtime API, cudaEventRecord,
//!   cudaStreamWaitEvent: a wait is for the work captured by the latest record before it, and an
//!   event that was never recorded is empty.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Asked, CallId, ChildStart, CommandId, CommandKind, HandleId, HandleKind, HostOp, HostProgram,
    LaneId, LaneKind, Origin, Query, Ref, Rule,
};

/// What has to be over.
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

/// Something that has to be over, and the rule that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Need {
    /// The rule.
    pub rule: Rule,
    /// What has to be over.
    pub on: On,
}

/// What a call does to the lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    /// The command it enqueues, and what has to be over before that starts.
    pub command: Option<(CommandId, Vec<Need>)>,
    /// What has to be over before the call returns.
    pub returns: Vec<Need>,
}

/// The lanes after some calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lanes {
    lanes: Vec<LaneState>,
    /// What each recorded event stands for.
    captured: Vec<BTreeSet<On>>,
    /// Of kernels with programmatic stream serialization so far: the kernel on which each depends.
    pub(super) depends: BTreeMap<CommandId, CommandId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct LaneState {
    /// Who has to be over before the next command starts.
    gates: BTreeSet<Need>,
    /// All commands so far.
    commands: Vec<CommandId>,
}

impl Lanes {
    /// Lanes on which nothing was enqueued.
    pub fn new(host: &HostProgram) -> Lanes {
        Lanes {
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

    /// Carries out a call.
    pub fn issue(&mut self, host: &HostProgram, call: CallId) -> Issued {
        let mut issued = Issued::default();
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
                    issued.returns.push(Need {
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
                    issued
                        .returns
                        .extend(self.refer(host, *r).into_iter().map(|on| Need { rule, on }));
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
                    .map(|c| Need {
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
                let needs = work.into_iter().map(|on| Need {
                    rule: Rule::StreamWaitEvent,
                    on,
                });
                self.state(*lane).gates.extend(needs);
            }
            HostOp::CreateUser(_) | HostOp::SetUser(_) | HostOp::Flush(_) | HostOp::Release(_) => {}
        }
        issued
    }

    /// Puts a command on its lane; what has to be over before it starts. For a command that a
    /// kernel enqueues, this is called when the kernel does so.
    pub fn enqueue(&mut self, host: &HostProgram, id: CommandId) -> Vec<Need> {
        let command = host.command(id);
        let mut needs: BTreeSet<Need> = BTreeSet::new();
        for r in &command.waits {
            needs.extend(self.refer(host, *r).into_iter().map(|on| Need {
                rule: Rule::WaitList,
                on,
            }));
        }
        if let CommandKind::Callback { of, complete: true } = command.kind {
            needs.extend(self.refer(host, of).into_iter().map(|on| Need {
                rule: Rule::Callback,
                on,
            }));
        }
        if let Origin::Device {
            parent,
            thread,
            flag,
            ..
        } = command.origin
        {
            let of = host.command(parent);
            let group = of
                .threads
                .iter()
                .position(|t| *t == thread)
                .map_or(0, |at| of.groups[at]);
            match flag {
                ChildStart::NoWait => {}
                ChildStart::WaitKernel => {
                    needs.insert(Need {
                        rule: Rule::WaitKernel,
                        on: On::Ended(parent),
                    });
                }
                ChildStart::Tail => {
                    needs.insert(Need {
                        rule: Rule::TailLaunch,
                        on: On::Ended(parent),
                    });
                    for other in host.command_ids().filter(|c| *c != id) {
                        let before = match host.command(other).origin {
                            Origin::Device {
                                parent: p,
                                flag: ChildStart::Tail,
                                ..
                            } => p == parent && other < id,
                            Origin::Device { parent: p, .. } => p == parent,
                            _ => false,
                        };
                        if before {
                            needs.insert(Need {
                                rule: Rule::TailLaunch,
                                on: On::Done(other),
                            });
                        }
                    }
                }
                ChildStart::WaitWorkGroup => {
                    needs.insert(Need {
                        rule: Rule::WaitWorkGroup,
                        on: On::GroupEnded(parent, group),
                    });
                }
            }
        }
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
            let device = host.lane(lane).device;
            for (i, other) in host.commands.iter().enumerate() {
                if other.kind == (CommandKind::Initializer { device }) {
                    needs.insert(Need {
                        rule: Rule::Initializer,
                        on: On::Done(CommandId(i as u16)),
                    });
                }
            }
        }
        let all = |rule: Rule, state: &LaneState| -> Vec<Need> {
            state
                .commands
                .iter()
                .map(|c| Need {
                    rule,
                    on: On::Done(*c),
                })
                .collect()
        };
        let listed = !command.waits.is_empty();
        let kind = host.lane(lane).kind;
        let state = self.state(lane);
        let done = |rule| Need {
            rule,
            on: On::Done(id),
        };
        match command.kind {
            CommandKind::Marker if !listed => needs.extend(all(Rule::Marker, state)),
            CommandKind::Barrier if !listed => needs.extend(all(Rule::BarrierAfter, state)),
            _ => {}
        }
        match (kind, command.kind) {
            (LaneKind::InOrder, _) => state.gates = BTreeSet::from([done(Rule::InOrder)]),
            (LaneKind::Stream { .. } | LaneKind::Null, _) => {
                if before.is_none() {
                    state.gates.clear();
                }
                state.gates.insert(done(Rule::Stream));
            }
            // Several barriers gather: one with a wait list need not wait for those before it.
            (_, CommandKind::Barrier) => {
                state.gates.insert(done(if listed {
                    Rule::BarrierList
                } else {
                    Rule::BarrierBefore
                }));
            }
            _ => {}
        }
        state.commands.push(id);
        needs.into_iter().collect()
    }

    /// An action in the legacy default stream, even one without work, comes after what is in all
    /// blocking streams, and these go on after it.
    fn take_turns(&mut self, host: &HostProgram, lane: LaneId) {
        if host.lane(lane).kind == LaneKind::Null {
            self.state(lane).gates = self.gatekeepers(host, lane);
        }
    }

    /// What the next command of a lane has to wait for because of those before it.
    fn gatekeepers(&self, host: &HostProgram, lane: LaneId) -> BTreeSet<Need> {
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
                gates.extend(state.gates.iter().map(|need| Need { rule, on: need.on }));
            }
        }
        gates
    }

    /// What has to be over for a query that is made now to say so. Of an event of OpenCL the rule
    /// is that of a wait, though the answer orders nothing.
    pub fn asked(&self, host: &HostProgram, query: &Query) -> Vec<Need> {
        match query.of {
            Asked::Lane(lane) => self.finish(host, lane, Rule::StreamQuery),
            Asked::Event(r) => {
                let rule = if query.orders(host) {
                    Rule::EventQuery
                } else {
                    Rule::WaitForEvents
                };
                self.refer(host, r)
                    .into_iter()
                    .map(|on| Need { rule, on })
                    .collect()
            }
        }
    }

    /// What has to be over so that all earlier commands of a lane are; `rule`: who says so of a
    /// stream.
    fn finish(&self, host: &HostProgram, lane: LaneId, rule: Rule) -> Vec<Need> {
        if host.lane(lane).kind.is_stream() {
            let gates = self.gatekeepers(host, lane);
            return gates
                .into_iter()
                .map(|need| Need { rule, on: need.on })
                .collect();
        }
        self.enqueued(lane)
            .iter()
            .map(|c| Need {
                rule: Rule::Finish,
                on: On::Done(*c),
            })
            .collect()
    }

    /// What an event stands for.
    fn refer(&self, host: &HostProgram, r: Ref) -> Vec<On> {
        match r {
            Ref::Command(c) => vec![On::Done(c)],
            Ref::Handle(h) if host.handle(h).kind == HandleKind::User => vec![On::User(h)],
            Ref::Handle(h) => self.captured[usize::from(h.0)].iter().copied().collect(),
        }
    }
}
