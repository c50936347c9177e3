//! The events that calls of a host program name.
//!
//! # Invariants
//! - OpenCL: exactly one call creates an event. Its thread names the event only after that call;
//!   another thread that names the event must receive it first.
//! # Sources
//! - OpenCL API specification, *Event Objects*: events of one context; CL_INVALID_EVENT,
//!   CL_INVALID_CONTEXT.
//! - CUDA runtime API, cudaStreamWaitEvent: an event that was never recorded is empty.

use super::HostDeclarations;
use crate::isa::clike::host::{CallAction, Name, Request};
use diag::{Sink, Span};
use program::ThreadId;
use program::dialect::Runtime;
use program::host::{CommandId, Handle, HandleId, HandleKind, Ref};

/// An event, with the call that creates it.
struct HostEvent {
    name: String,
    is: Ref,
    /// Thread and number of the creating call; `None` for a declared event.
    made: Option<(ThreadId, usize)>,
    context: String,
    span: Span,
}

/// All events of a host program.
pub(super) struct HostEvents {
    events: Vec<HostEvent>,
    handles: Vec<Handle>,
}

/// Whether a call puts a command on a queue, or registers a function to run.
pub(super) fn enqueues(does: CallAction) -> bool {
    use CallAction::{
        Barrier, Callback, Copy, CopyRect, Fill, HostFunction, Launch, Map, Marker, Migrate, Unmap,
    };
    matches!(
        does,
        Launch
            | Copy
            | CopyRect
            | Migrate
            | Fill
            | Map
            | Unmap
            | Marker
            | Barrier
            | HostFunction
            | Callback
    )
}

impl HostEvents {
    /// Collects all events. Commands are numbered in call order, after those that no call enqueues.
    pub(super) fn of(
        declared: &HostDeclarations,
        requests: &[Vec<Request>],
        first: usize,
        sink: &mut Sink,
    ) -> HostEvents {
        let mut all = HostEvents {
            events: Vec::new(),
            handles: Vec::new(),
        };
        for name in &declared.events {
            let is = all.handle_for(name, HandleKind::Recorded);
            let (context, span) = (String::new(), Span::default());
            all.events.push(HostEvent {
                name: name.clone(),
                is,
                made: None,
                context,
                span,
            });
        }
        let mut command = first;
        for (t, requests) in requests.iter().enumerate() {
            for (number, request) in requests.iter().enumerate() {
                let is = Ref::Command(CommandId(command as u16));
                command += usize::from(enqueues(request.does));
                let Some(name) = &request.event else { continue };
                let (is, context) = match request.does {
                    CallAction::CreateUser => {
                        let context = request.words.first().map_or("context", |w| w.word.as_str());
                        (
                            all.handle_for(&name.word, HandleKind::User),
                            context.to_string(),
                        )
                    }
                    does if enqueues(does)
                        && does != CallAction::Callback
                        && declared.runtime == Runtime::OpenCl =>
                    {
                        let lane = request.lane.map_or(0, |l| usize::from(l.0));
                        (is, declared.contexts.get(lane).cloned().unwrap_or_default())
                    }
                    _ => continue,
                };
                if let Some(first) = all.events.iter().find(|e| e.name == name.word) {
                    let message = format!("two calls make the event `{}`", name.word);
                    let first = first.span;
                    sink.error("duplicate-name", name.span, message, |d| {
                        d.label("expected an unused name")
                            .also(first, "the first one")
                    });
                    continue;
                }
                let made = Some((ThreadId(t as u16), number));
                all.events.push(HostEvent {
                    name: name.word.clone(),
                    is,
                    made,
                    context,
                    span: name.span,
                });
            }
        }
        all.warn_of_empty(declared, requests, sink);
        all
    }

    fn handle_for(&mut self, name: &str, kind: HandleKind) -> Ref {
        self.handles.push(Handle {
            name: name.to_string(),
            kind,
            status: 0,
        });
        Ref::Handle(HandleId(self.handles.len() as u16 - 1))
    }

    /// Warns about waits for events that no call records: they return at once.
    fn warn_of_empty(
        &self,
        declared: &HostDeclarations,
        requests: &[Vec<Request>],
        sink: &mut Sink,
    ) {
        if declared.runtime != Runtime::Cuda {
            return;
        }
        let all = || requests.iter().flatten();
        let named = |does: CallAction, name: &str| {
            all().any(|r| r.does == does && r.event.as_ref().is_some_and(|e| e.word == name))
        };
        for request in all().filter(|r| {
            matches!(
                r.does,
                CallAction::Wait | CallAction::LaneWait | CallAction::Status
            )
        }) {
            if let Some(event) = request
                .event
                .as_ref()
                .filter(|e| !named(CallAction::Record, &e.word))
            {
                let message = format!("the event `{}` is never recorded", event.word);
                let (label, note) = match request.does {
                    CallAction::Status => (
                        "is complete from the start",
                        "an event that was never recorded is empty, and a query for it finds \
                         it complete (CUDA runtime API, cudaEventQuery)",
                    ),
                    _ => (
                        "waits for nothing",
                        "an event that was never recorded is empty, and a wait for it ends at once \
                         (CUDA runtime API, cudaStreamWaitEvent)",
                    ),
                };
                sink.warn("empty-event", event.span, message, |d| {
                    d.label(label).note(note)
                });
            }
        }
    }

    /// The events that are not the event of a command.
    pub(super) fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }

    /// The context of the first known event in a list.
    pub(super) fn common_context(&self, names: &[Name]) -> Option<String> {
        let first = names
            .iter()
            .find_map(|n| self.events.iter().find(|e| e.name == n.word))?;
        Some(first.context.clone())
    }

    /// Finds an event by the name that a call uses. `context`: the context that it must belong to.
    pub(super) fn find(
        &self,
        name: &Name,
        from: (ThreadId, usize),
        context: Option<&str>,
        sink: &mut Sink,
    ) -> Option<Ref> {
        let Some(event) = self.events.iter().find(|e| e.name == name.word) else {
            sink.error(
                "unknown-event",
                name.span,
                format!("there is no event `{}`", name.word),
                |d| {
                    d.label("expected an event that some call makes")
                        .did_you_mean(&name.word, self.events.iter().map(|e| e.name.as_str()))
                },
            );
            return None;
        };
        if let Some((thread, number)) = event.made
            && thread == from.0
            && number > from.1
        {
            sink.error(
                "null-event",
                name.span,
                format!("`{}` is not an event yet", name.word),
                |d| {
                    d.label("used before the call that makes it")
                        .also(event.span, "made here")
                        .note(
                            "an event that is not valid is an error (OpenCL API: CL_INVALID_EVENT)",
                        )
                },
            );
            return None;
        }
        if let Some(context) = context.filter(|c| *c != event.context) {
            let message = format!("`{}` is an event of another context", name.word);
            sink.error("other-context", name.span, message, |d| {
                d.label(format!(
                    "of `{}`; expected one of `{context}`",
                    event.context
                ))
                .also(event.span, "made here")
                .note(
                    "the events of a wait list are of the queue's context (OpenCL \
                     API: CL_INVALID_CONTEXT)",
                )
            });
            return None;
        }
        Some(event.is)
    }

    /// The user event or recorded event that a call refers to.
    pub(super) fn handle(
        &self,
        event: Ref,
        request: &Request,
        sink: &mut Sink,
    ) -> Option<HandleId> {
        match event {
            Ref::Handle(id) => Some(id),
            Ref::Command(_) => {
                let span = request.event.as_ref().map_or(request.span, |e| e.span);
                sink.error("wrong-operand", span, "this is not a user event", |d| {
                    d.label("expected an event made by `clCreateUserEvent`")
                });
                None
            }
        }
    }
}
