//! Tracks the queues, streams and events that a host thread has released and must not name any
//! more.
//!
//! # Sources
//! - CUDA runtime API, cudaStreamDestroy, cudaEventDestroy.
//! - OpenCL API specification, clReleaseCommandQueue, clRetainEvent, clReleaseEvent: the last
//!   release deletes an event. An event needs one release for its creation and one for each retain.

use super::calls::Does;
use super::lower::Wrong;
use super::{Name, Request};
use crate::isa::clike::host_calls::Arg;
use crate::isa::clike::lower::Lowering;
use diag::Span;
use program::dialect::Runtime;
use program::host::LaneId;

impl Lowering<'_, '_> {
    /// Records the releases and retains of a call.
    pub(super) fn host_gives_back(&mut self, request: &Request) {
        let all = &mut self.host.lifetimes;
        match (request.does, &request.event) {
            (Does::Release, _) => all
                .lanes
                .extend(request.lane.map(|lane| (lane, request.span))),
            (Does::RetainEvent, Some(event)) => all.retained.push(event.word.clone()),
            (Does::ReleaseEvent, Some(event)) => {
                match all.retained.iter().position(|r| *r == event.word) {
                    Some(n) => drop(all.retained.remove(n)),
                    None => all.events.push((event.word.clone(), request.span)),
                }
            }
            _ => {}
        }
    }

    /// Reports a lane that was released before.
    pub(super) fn host_lives(&mut self, lane: LaneId, arg: &Arg) -> Result<(), Wrong> {
        let Some((_, span)) = self
            .host
            .lifetimes
            .lanes
            .iter()
            .find(|r| r.0 == lane)
            .copied()
        else {
            return Ok(());
        };
        let text = self.str(&arg.range()).to_string();
        let (what, note) = match self.runtime() {
            Some(Runtime::Cuda) => (
                "stream",
                "using a destroyed stream is undefined (CUDA runtime API, cudaStreamDestroy)",
            ),
            _ => (
                "queue",
                "a released queue must not be used (OpenCL API, clReleaseCommandQueue)",
            ),
        };
        self.host_gone(arg, format!("the {what} `{text}`"), span, note)
    }

    /// Reports an event that was released before.
    pub(super) fn event_lives(&mut self, event: &Name, arg: &Arg) -> Result<(), Wrong> {
        let all = &self.host.lifetimes.events;
        let Some(span) = all.iter().find(|e| e.0 == event.word).map(|e| e.1) else {
            return Ok(());
        };
        let note = match self.runtime() {
            Some(Runtime::Cuda) => {
                "using a destroyed event is undefined (CUDA runtime API, cudaEventDestroy)"
            }
            _ => {
                "an event that is not valid is an error (OpenCL API, clReleaseEvent: \
                CL_INVALID_EVENT)"
            }
        };
        self.host_gone(arg, format!("the event `{}`", event.word), span, note)
    }

    fn host_gone(&mut self, arg: &Arg, what: String, span: Span, note: &str) -> Result<(), Wrong> {
        self.error(
            "released",
            &arg.range(),
            format!("{what} no longer exists"),
            |d| {
                d.label("used after it was given back")
                    .also(span, "given back here")
                    .note(note)
            },
        );
        Err(Wrong)
    }
}
