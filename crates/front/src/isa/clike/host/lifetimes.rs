//! Tracks the memory, queues, streams and events whose life a host thread has ended, and marks
//! the uses behind that.
//!
//! # Invariants
//! - A late use is an event `ENDS` of the program, and no error: whether an execution comes to it
//!   is the engines' matter.
//! - A write `ENDS` ends the life of the memory that it writes.
//!
//! # Sources
//! - CUDA runtime API, cudaStreamDestroy, cudaEventDestroy, cudaFree, cudaFreeHost.
//! - OpenCL API specification, clReleaseCommandQueue, clRetainEvent, clReleaseEvent,
//!   clReleaseMemObject, clSVMFree: the last release deletes an object. It needs one release for
//!   its creation and one for each retain. Memory stays until the commands that use it are
//!   complete; `clSVMFree` does not wait for them.

use super::calls::CallAction;
use super::lower::Wrong;
use super::{Name, Request};
use crate::isa::clike::ast::Arg;
use crate::isa::clike::lower::Lowering;
use diag::Span;
use program::dialect::Runtime;
use program::host::LaneId;
use program::{Access, BinOp, Expr, LocId, Op, Tag, Tags, Ty};

impl Lowering<'_, '_> {
    /// Records the releases and retains of a call.
    pub(super) fn host_gives_back(&mut self, request: &Request) {
        let all = &mut self.host.lifetimes;
        match (request.does, &request.event) {
            (CallAction::Release, _) => all
                .lanes
                .extend(request.lane.map(|lane| (lane, request.span))),
            (CallAction::RetainMemory, _) => {
                let memory = request.memory[0].map(|memory| memory.0);
                all.retained_memory.extend(memory);
            }
            (CallAction::ReleaseMemory, _) => {
                let memory = request.memory[0].map(|memory| memory.0);
                let retained = all.retained_memory.iter().position(|r| Some(*r) == memory);
                match retained {
                    Some(n) => drop(all.retained_memory.remove(n)),
                    None => all
                        .memory
                        .extend(memory.map(|memory| (memory, request.span))),
                }
            }
            (CallAction::RetainEvent, Some(event)) => all.retained.push(event.word.clone()),
            (CallAction::ReleaseEvent, Some(event)) => {
                match all.retained.iter().position(|r| *r == event.word) {
                    Some(n) => drop(all.retained.remove(n)),
                    None => all.events.push((event.word.clone(), request.span)),
                }
            }
            _ => {}
        }
    }

    /// Marks the use of a lane that was released before.
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
        let word = self.str(&arg.range()).trim_start_matches('&').to_string();
        let kind = match self.runtime() {
            Some(Runtime::Cuda) => "stream",
            _ => "queue",
        };
        Err(self.late_use(format!("the {kind} `{word}`"), span))
    }

    /// Marks the use of memory that was freed before.
    pub(super) fn memory_lives(&mut self, memory: LocId, arg: &Arg) -> Result<(), Wrong> {
        let all = &self.host.lifetimes.memory;
        let Some(span) = all.iter().find(|freed| freed.0 == memory).map(|f| f.1) else {
            return Ok(());
        };
        let word = self.str(&arg.range()).trim_start_matches('&').to_string();
        let word = word.split(['[', '.']).next().unwrap_or(&word).trim();
        Err(self.late_use(format!("`{word}`"), span))
    }

    /// Marks the use of an event that was released before.
    pub(super) fn event_lives(&mut self, event: &Name) -> Result<(), Wrong> {
        let all = &self.host.lifetimes.events;
        let Some(span) = all.iter().find(|e| e.0 == event.word).map(|e| e.1) else {
            return Ok(());
        };
        Err(self.late_use(format!("the event `{}`", event.word), span))
    }

    /// Marks a use behind the end at a place. The call itself is left out.
    fn late_use(&mut self, object: String, ended: Span) -> Wrong {
        self.symbols.lives.ends.push((object.clone(), ended));
        self.mark_late_use(object);
        Wrong
    }

    fn mark_late_use(&mut self, object: String) {
        let used = self.statement_span();
        self.symbols.lives.uses.push((object, used));
        self.push(Op::fence(Tags::of(&[Tag::Misuse, Tag::Ends]), None));
    }

    /// Lowers a note about a life.
    pub(super) fn host_life(&mut self, request: &Request) {
        let Some(name) = &request.event else { return };
        let names = self.env.host.clone().unwrap_or_default();
        let event = names.events.contains(&name.word);
        let lane = names.lanes.iter().any(|lane| lane.0 == name.word);
        let word = &name.word;
        let object = match self.runtime() {
            _ if self.location(word).is_some() => format!("`{word}`"),
            Some(Runtime::Cuda) if lane => format!("the stream `{word}`"),
            _ if lane => format!("the queue `{word}`"),
            Some(Runtime::Cuda) if !event => format!("the thread `{word}`"),
            _ => format!("the event `{word}`"),
        };
        match request.does {
            CallAction::Ended => self.symbols.lives.ends.push((object, request.span)),
            _ => self.mark_late_use(object),
        }
    }

    /// Ends the life of memory: a write of the host to all of it.
    pub(super) fn end_of_memory(&mut self, request: &Request) {
        let Some((memory, _)) = request.memory[0] else {
            return;
        };
        self.host.lifetimes.memory.push((memory, request.span));
        let layout = self.symbols.layout(memory);
        let cells = self.symbols.object(memory).1.init.len() as u32;
        for cell in 0..cells {
            let offset = Expr::Const(layout.offset(cell)).into();
            let access = Access {
                tags: Tags::of(&[Tag::Ends]),
                scope: self.env.language.plain_scope,
                ty: layout.field(cell).ty,
            };
            self.push(Op::Store {
                addr: Expr::Bin(BinOp::Add, Ty::WORD, Expr::Address(memory).into(), offset),
                value: Expr::Const(0),
                access,
            });
        }
    }
}
