//! Commands that fail: those that wait for a user event which the host sets to a negative status.
//!
//! # Invariants
//! - A command that waits for a failed event, or for a command that fails, does nothing. It is over
//!   as soon as the event is set.
//! - Every other command of the context is complete before the event is set, and no call uses a
//!   queue of the context afterwards. Other programs are refused.
//! # Sources
//! - OpenCL API specification, *Execution Model*, states of a command; clSetUserEventStatus: a
//!   negative status terminates all commands that wait for the event.
//! - *Memory Ordering Rules: Host-side and Device-side Commands*, rule 12: only `CL_COMPLETE`
//!   orders memory.

use std::collections::BTreeSet;

use diag::{Diagnostic, Sink, Span};
use program::host::{
    CallId, CommandId, CommandKind, HostOp, HostProgram, LaneId, LaunchNode, LaunchOrders,
    QuerySubject, Ref,
};
use program::{Op, Program};

/// The specification says this about commands after a failure.
pub(super) const SILENT: &str = "after a negative status, the queues of the context \"may no longer be \
                      available and their behavior is implementation-defined\" (OpenCL API, \
                      Execution Model, Commands)";

/// The failures of a host program.
struct Failures<'p> {
    program: &'p Program,
    host: &'p HostProgram,
    /// The contexts of the queues.
    contexts: &'p [String],
    /// The calls that set an event to a negative status.
    calls: Vec<CallId>,
    /// The commands that fail, in order.
    commands: BTreeSet<CommandId>,
}

/// Ends commands that fail before they begin. Reports programs that the specification leaves open.
pub(super) fn terminate(program: &mut Program, contexts: &[String], sink: &mut Sink) {
    let host = program.host.as_deref().expect("a host program");
    let Some(failures) = Failures::of(program, host, contexts) else {
        return;
    };
    let errors = sink.errors();
    failures.report(sink);
    if sink.errors() > errors {
        return;
    }
    let commands = failures.commands;
    for id in &commands {
        let host = program.host.as_deref_mut().expect("a host program");
        let is_failed = |of: &Ref| fails(host, &commands, *of);
        let waits = host.command(*id).waits.iter().copied();
        let waits = waits.filter(is_failed).collect();
        let command = &mut host.commands[usize::from(id.0)];
        command.waits = waits;
        // It is terminated where it is, also before its queue is flushed.
        command.lane = None;
        for thread in command.threads.clone() {
            program.threads[usize::from(thread.0)].code.clear();
        }
    }
}

/// Whether an event gets a negative status, if these commands fail.
fn fails(host: &HostProgram, commands: &BTreeSet<CommandId>, of: Ref) -> bool {
    match of {
        Ref::Command(id) => commands.contains(&id),
        Ref::Handle(id) => host.handle(id).status < 0,
    }
}

impl<'p> Failures<'p> {
    /// `None`: no command fails.
    fn of(
        program: &'p Program,
        host: &'p HostProgram,
        contexts: &'p [String],
    ) -> Option<Failures<'p>> {
        let mut commands = BTreeSet::new();
        loop {
            let more: Vec<CommandId> = (host.command_ids())
                .filter(|id| !commands.contains(id))
                .filter(|id| {
                    let command = host.command(*id);
                    let mut waits = command.waits.clone();
                    if let CommandKind::Callback { of, .. } = command.kind {
                        waits.push(of);
                    }
                    waits.iter().any(|of| fails(host, &commands, *of))
                })
                .collect();
            if more.is_empty() {
                break;
            }
            commands.extend(more);
        }
        let is_failing = |id: &CallId| match host.call(*id).op {
            HostOp::SetUser(handle) => host.handle(handle).status < 0,
            _ => false,
        };
        (!commands.is_empty()).then(|| Failures {
            program,
            host,
            contexts,
            calls: host.call_ids().filter(is_failing).collect(),
            commands,
        })
    }

    /// Whether a queue is of a context in which a command fails.
    fn is_affected(&self, lane: LaneId) -> bool {
        let context = |lane: LaneId| self.contexts.get(usize::from(lane.0));
        let mut lanes = self
            .commands
            .iter()
            .filter_map(|id| self.host.command(*id).lane);
        lanes.any(|failed| context(failed) == context(lane))
    }

    fn span(&self, call: CallId) -> Span {
        let site = LaunchNode::Call(call).site(self.program);
        site.map_or(Span::default(), |(_, instr)| instr.span)
    }

    /// The place of the first failing call.
    fn failure(&self) -> Span {
        self.calls
            .first()
            .map_or(Span::default(), |call| self.span(*call))
    }

    /// Reports what the text leaves open.
    fn report(&self, sink: &mut Sink) {
        if LaunchOrders::host_threads(self.program).count() > 1 {
            sink.error(
                "unsupported",
                self.failure(),
                "a failed event with several host threads is not supported",
                |d| {
                    d.label("expected one host thread").note(
                        "only `CL_COMPLETE` synchronizes with the commands that wait (OpenCL \
                         API, Host-side and Device-side Commands, rule 12)",
                    )
                },
            );
            return;
        }
        for id in &self.commands {
            self.report_kind(*id, sink);
        }
        self.report_queries(sink);
        self.report_later(sink);
    }

    /// Reports a failing command of a kind that has more to it than its threads.
    fn report_kind(&self, id: CommandId, sink: &mut Sink) {
        let command = self.host.command(id);
        let mut threads = command.threads.iter();
        let enqueues = threads.any(|thread| {
            let code = &self.program.thread(*thread).code;
            code.iter().any(|instr| matches!(instr.op, Op::Enqueue(_)))
        });
        let what = match command.kind {
            CommandKind::Map | CommandKind::Unmap => "a mapping that fails",
            CommandKind::Callback { .. } => "a callback of an event that fails",
            _ if enqueues => "a kernel that fails and enqueues kernels",
            _ => return,
        };
        let at = self
            .call_of(id)
            .map_or(self.failure(), |call| self.span(call));
        self.error(sink, at, format!("{what} is not supported"), |d| {
            d.label("this waits for a failed event")
        });
    }

    /// Reports queries of the status of a command that fails: the text gives no value.
    fn report_queries(&self, sink: &mut Sink) {
        for query in &self.host.queries {
            let QuerySubject::Event(Ref::Command(id)) = query.of else {
                continue;
            };
            if self.commands.contains(&id) {
                let at = self
                    .call_of(id)
                    .map_or(self.failure(), |call| self.span(call));
                self.error(
                    sink,
                    at,
                    "the status of a failed command is not defined",
                    |d| {
                        d.label("expected no query of the event of this command").note(
                        "abnormal termination \"can be indicated by setting the event status to \
                         a negative value\" (OpenCL API, Execution Model, Commands): no sentence \
                         says which",
                    )
                    },
                );
            }
        }
    }

    /// Reports commands that may run after a failure, and calls that use their queues.
    fn report_later(&self, sink: &mut Sink) {
        let Ok(orders) = LaunchOrders::of(self.program) else {
            return;
        };
        let before = |node: LaunchNode| {
            let mut pairs = orders
                .ways
                .iter()
                .flat_map(|way| self.calls.iter().map(move |call| (way, *call)));
            pairs.all(|(way, call)| way.precedes(node, LaunchNode::Call(call)))
        };
        for id in self
            .host
            .command_ids()
            .filter(|id| !self.commands.contains(id))
        {
            let command = self.host.command(id);
            let affected = command.lane.is_some_and(|lane| self.is_affected(lane));
            if affected && !before(LaunchNode::Done(id)) {
                let name = self.host.name_of(id);
                let at = self
                    .call_of(id)
                    .map_or(self.failure(), |call| self.span(call));
                let message = format!("`{name}` may run when a command has failed");
                self.error(sink, at, message, |d| {
                    d.label("expected it to be complete before the failure")
                });
            }
        }
        for id in self.host.call_ids() {
            let (HostOp::Finish(lane) | HostOp::Flush(lane)) = self.host.call(id).op else {
                continue;
            };
            if self.is_affected(lane) && !before(LaunchNode::Return(id)) {
                self.error(
                    sink,
                    self.span(id),
                    "this queue may no longer be available",
                    |d| {
                        d.label("expected it before the failure")
                            .help("wait for events: `clWaitForEvents`")
                    },
                );
            }
        }
    }

    /// The call that enqueues a command.
    fn call_of(&self, id: CommandId) -> Option<CallId> {
        let enqueues = |call: &CallId| match self.host.call(*call).op {
            HostOp::Enqueue { command, .. } => command == id,
            _ => false,
        };
        self.host.call_ids().find(enqueues)
    }

    fn error(
        &self,
        sink: &mut Sink,
        at: Span,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let failure = self.failure();
        sink.error("unsupported", at, message, |d| {
            finish(d).also(failure, "the event fails here").note(SILENT)
        });
    }
}
