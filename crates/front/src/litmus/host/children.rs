//! Commands that kernels enqueue. Lowering a kernel's threads finds the commands that they enqueue;
//! the threads of those are lowered in turn.
//!
//! # Invariants
//! - A child comes after its parent in the list of commands. Its threads come after those of
//!   everything enqueued before.
//! - A thread names an event only after the call that creates it; no other thread can name it.
//! - A call that sets a user event is a command without threads, which completes the event.
//! # Sources
//! - OpenCL C, *Enqueuing Kernels*, *Event Functions*: events of the device stay on the device.
//!   Only wait lists order children. OpenCL API specification, *Execution Model: Device-side
//!   enqueue*.
//! - CUDA Programming Guide, *CUDA Dynamic Parallelism*. Launches into the stream of a block run
//!   one after another. Fire-and-forget launches wait for nothing. Tail launches wait for their
//!   parent and all its other launches.

use std::collections::HashMap;

use super::bodies::{Bodies, CommandThread};
use super::commands::has_word;
use super::events::HostEvents;
use super::failures::SILENT;
use super::{HostBuilder, HostDeclarations};
use crate::isa::clike::host::{CallAction, Name, Request};
use diag::Sink;
use program::dialect::Runtime;
use program::host::{
    ChildStart, CommandId, CommandKind, CommandOrigin, HostCommand, HostProgram, Lane, LaneId,
    LaneKind, Ref,
};
use program::{Op, Thread, ThreadId};

/// The maximum depth of kernels that launch each other.
const MAX_DEPTH: usize = 24;

/// Lowers and names all threads of commands, including those of children.
pub(super) fn finish<'b>(
    declared: &'b HostDeclarations,
    events: &HostEvents,
    host: &mut HostProgram,
    mut bodies: Bodies<'b>,
    sink: &mut Sink,
) -> Vec<CommandThread> {
    let errors = sink.errors();
    let mut threads: Vec<CommandThread> = Vec::new();
    let mut lanes = DeviceLanes::default();
    for depth in 0.. {
        let round = bodies.lower(threads.len(), sink);
        if round.is_empty() || sink.errors() > errors {
            threads.extend(round);
            break;
        }
        for mut lowered in round {
            let requests = std::mem::take(&mut lowered.requests);
            let id = bodies.id(threads.len());
            let mut part = HostBuilder {
                declared,
                events,
                host,
                bodies: &mut bodies,
                sink,
            };
            if let (Some(first), true) = (requests.first(), depth >= MAX_DEPTH) {
                let message = format!("kernels that launch kernels, more than {MAX_DEPTH} deep");
                part.sink.error("too-deep", first.span, message, |d| {
                    d.label("expected an end to this")
                });
            } else {
                part.children(id, &mut lowered.thread, &requests, &mut lanes);
            }
            threads.push(lowered);
        }
    }
    bodies.name(&mut threads, sink);
    threads
}

/// The lanes of devices, created when a thread first enqueues to them.
#[derive(Default)]
struct DeviceLanes {
    /// OpenCL: each device's queue.
    queues: HashMap<u32, LaneId>,
    /// CUDA: each block's stream, by command and block, with the thread that launches into it.
    streams: HashMap<(CommandId, u32), (LaneId, ThreadId)>,
    /// CUDA: the thread that makes the tail launches of a grid.
    tails: HashMap<CommandId, ThreadId>,
}

/// The events of a thread of a kernel so far.
#[derive(Default)]
struct DeviceEvents {
    /// By the name of an event, the command that completes it.
    commands: HashMap<String, CommandId>,
    /// The names of user events.
    users: Vec<String>,
    /// The user events that no call sets.
    never_set: Vec<Name>,
}

/// The thread of a kernel that enqueues a command.
#[derive(Clone, Copy)]
struct Caller {
    command: CommandId,
    thread: ThreadId,
    device: u32,
}

impl HostBuilder<'_, '_> {
    /// Adds the commands that one thread of a kernel enqueues.
    fn children(
        &mut self,
        id: ThreadId,
        thread: &mut Thread,
        requests: &[Request],
        lanes: &mut DeviceLanes,
    ) {
        let Some(command) = self.host.command_of(id).filter(|_| !requests.is_empty()) else {
            return;
        };
        let caller = Caller {
            command,
            thread: id,
            device: thread.place.gpu,
        };
        let mut made = DeviceEvents::default();
        let mut calls = thread
            .code
            .iter_mut()
            .filter(|i| matches!(i.op, Op::Enqueue(_)));
        for (number, request) in requests.iter().enumerate() {
            let child = CommandId(self.host.commands.len() as u16);
            if request.does == CallAction::CreateUser {
                self.user_event(request, &requests[number..], child, &mut made);
                continue;
            }
            if self.child(caller, request, lanes, &made).is_none() {
                return;
            }
            if let Some(instr) = calls.next() {
                instr.op = Op::Enqueue(child);
            }
            if let Some(event) = &request.event {
                made.commands.insert(event.word.clone(), child);
            }
        }
    }

    /// Adds a user event: it is complete when the command of a later call is. `next`: the command
    /// of the next call.
    fn user_event(
        &mut self,
        request: &Request,
        later: &[Request],
        next: CommandId,
        made: &mut DeviceEvents,
    ) {
        let Some(event) = &request.event else { return };
        let mut calls = later.iter().filter(|r| r.does != CallAction::CreateUser);
        let names = |r: &Request| r.event.as_ref().is_some_and(|e| e.word == event.word);
        let set = calls.position(|r| r.does == CallAction::SetUser && names(r));
        match set {
            Some(at) => {
                let set = CommandId(next.0 + at as u16);
                made.commands.insert(event.word.clone(), set);
            }
            None => made.never_set.push(event.clone()),
        }
        made.users.push(event.word.clone());
    }

    /// Reports a call that sets something other than a user event, sets it twice, or fails it.
    fn set_user_event(&mut self, request: &Request, made: &DeviceEvents) -> Option<()> {
        let event = request.event.as_ref()?;
        if !made.users.contains(&event.word) {
            let message = format!("`{}` is not a user event of this thread", event.word);
            self.sink.error("wrong-operand", event.span, message, |d| {
                d.label("expected one of `create_user_event` above")
                    .note("any other event is undefined (OpenCL C, set_user_event_status)")
            });
            return None;
        }
        let own = CommandId(self.host.commands.len() as u16);
        if made.commands.get(&event.word) != Some(&own) {
            let message = format!("the user event `{}` is set twice", event.word);
            self.sink.error("set-twice", event.span, message, |d| {
                d.label("expected it to be set once")
            });
            return None;
        }
        if request.value < 0 {
            let message = format!("the user event `{}` fails", event.word);
            self.sink.error("unsupported", event.span, message, |d| {
                d.label("expected `CL_COMPLETE`").note(SILENT)
            });
            return None;
        }
        Some(())
    }

    /// The wait list of a command; `None` if an error was reported.
    fn waits(&mut self, request: &Request, made: &DeviceEvents) -> Option<Vec<Ref>> {
        let mut waits = Vec::new();
        for name in &request.waits {
            if let Some(event) = made.never_set.iter().find(|e| e.word == name.word) {
                let message = format!("no call sets the user event `{}`", name.word);
                let created = event.span;
                self.sink.error("unsupported", name.span, message, |d| {
                    d.label("a command that waits for it never starts")
                        .also(created, "made here")
                        .help("set it below: `set_user_event_status(…, CL_COMPLETE)`")
                });
                return None;
            }
            let Some(event) = made.commands.get(&name.word) else {
                let message = format!("`{}` is not an event of this thread", name.word);
                self.sink.error("unknown-event", name.span, message, |d| {
                    d.label("expected an event of an earlier call")
                        .note(
                            "events of the host, and those of other work-items, cannot be \
                             waited for on the device",
                        )
                        .did_you_mean(&name.word, made.commands.keys().map(String::as_str))
                });
                return None;
            };
            waits.push(Ref::Command(*event));
        }
        Some(waits)
    }

    /// Adds one command; `None` if an error was reported.
    fn child(
        &mut self,
        caller: Caller,
        request: &Request,
        lanes: &mut DeviceLanes,
        made: &DeviceEvents,
    ) -> Option<()> {
        let waits = self.waits(request, made)?;
        if request.does == CallAction::SetUser {
            self.set_user_event(request, made)?;
        }
        let flag = match () {
            () if has_word(request, "CLK_ENQUEUE_FLAGS_WAIT_KERNEL") => ChildStart::WaitKernel,
            () if has_word(request, "CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP") => {
                ChildStart::WaitWorkGroup
            }
            () if has_word(request, "cudaStreamTailLaunch") => ChildStart::Tail,
            () => ChildStart::NoWait,
        };
        if request.does == CallAction::EnqueueMarker && waits.is_empty() {
            self.sink.error(
                "wrong-operands",
                request.span,
                "a marker of the device needs a wait list",
                |d| {
                    d.label("expected events, such as `1, &e`").note(
                        "an empty list is an error (OpenCL C, enqueue_marker: \
                         CLK_INVALID_EVENT_WAIT_LIST)",
                    )
                },
            );
            return None;
        }
        let lane = match self.declared.runtime {
            Runtime::Cuda => self.stream(caller, request, lanes)?,
            _ => *lanes.queues.entry(caller.device).or_insert_with(|| {
                self.host.lanes.push(Lane {
                    name: "the queue of the device".to_string(),
                    kind: LaneKind::OnDevice,
                    device: caller.device,
                });
                LaneId(self.host.lanes.len() as u16 - 1)
            }),
        };
        let (name, kind, (threads, groups)) = match request.does {
            CallAction::EnqueueMarker => (
                request.name.clone(),
                CommandKind::Marker,
                Default::default(),
            ),
            CallAction::SetUser => (
                request.name.clone(),
                CommandKind::UserEvent,
                Default::default(),
            ),
            _ => {
                let kernel = request.kernel?;
                let range = self.range(request)?;
                let name = self.declared.kernels[kernel].name.clone();
                (
                    name,
                    CommandKind::Kernel,
                    self.bodies.kernel(kernel, range, caller.device),
                )
            }
        };
        if self.bodies.too_many(request, self.sink) {
            return None;
        }
        let origin = CommandOrigin::Device {
            parent: caller.command,
            thread: caller.thread,
            flag,
        };
        self.host.commands.push(HostCommand {
            name,
            kind,
            lane: (kind != CommandKind::UserEvent).then_some(lane),
            waits,
            origin,
            threads,
            groups,
            programmatic: false,
        });
        Some(())
    }

    /// CUDA: the stream of a launch. Every fire-and-forget launch and every tail launch gets a new
    /// stream.
    fn stream(
        &mut self,
        caller: Caller,
        request: &Request,
        lanes: &mut DeviceLanes,
    ) -> Option<LaneId> {
        let Caller {
            command,
            thread,
            device,
        } = caller;
        let next = LaneId(self.host.lanes.len() as u16);
        let named = request.words.first().map(|w| w.word.clone());
        let is_tail = named.as_deref() == Some("cudaStreamTailLaunch");
        if is_tail && *lanes.tails.entry(command).or_insert(thread) != thread {
            return self.contended(request, "two threads of a grid launch into its tail");
        }
        let of = self.host.command(command);
        let group = of.group_of(thread);
        if named.is_none() {
            if let Some((lane, first)) = lanes.streams.get(&(command, group)) {
                if *first != thread {
                    return self
                        .contended(request, "two threads of a block launch into one stream");
                }
                return Some(*lane);
            }
            lanes.streams.insert((command, group), (next, thread));
        }
        let name = named.unwrap_or_else(|| "the stream of the block".to_string());
        self.host.lanes.push(Lane {
            name,
            kind: LaneKind::Stream { blocking: false },
            device,
        });
        Some(next)
    }

    /// Reports a launch into a stream that another thread already uses.
    fn contended(&mut self, request: &Request, message: &str) -> Option<LaneId> {
        self.sink.error("unsupported", request.span, message, |d| {
            d.label("expected one of them")
                .note("an execution could choose the order of the two; this is not supported")
        });
        None
    }
}
