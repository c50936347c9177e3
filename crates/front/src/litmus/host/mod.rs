//! Assembles host programs: the calls of all host threads become commands, threads for the
//! commands, and one table of calls.
//!
//! # Invariants
//! - Host threads come first, then the threads of commands in the order of the calls.
//! - A mistake is reported at its call; the program is meaningful only if there were no errors.
//! - If kernels are in PTX, the host and the copies of the runtime are in CUDA C++ until all
//!   threads exist. Then they are mapped to PTX, as a compiler would ([`assembly`]).

use std::rc::Rc;

use super::build::{
    CThreadDraft, lower_clike, refuse_host_groups, settle_atomicity, warn_of_shared_local,
};
use super::places::GridLayout;
use super::{program_scope, views};
use crate::isa::Symbols;
use crate::isa::clike::host::{CallAction, Request};
use crate::isa::clike::{ClikeCode, Env};
use crate::isa::ptx::RegInit;
use diag::{Sink, Span};
use program::dialect::Runtime;
use program::host::{
    CallId, HostOp, HostProgram, HostQuery, Lane, QueryId, QuerySubject, RuntimeCall,
};
use program::{Dialect, Machine, Op, Program, RegId, Thread, ThreadId};

mod assembly;
mod bodies;
mod children;
mod commands;
mod events;
mod failures;
mod misuse;
mod rectangles;

pub(super) use assembly::PtxKernels;
use bodies::Bodies;
use events::HostEvents;

/// A kernel or a host function, before a call launches it.
pub(super) struct Routine {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) text: RoutineCode,
    pub(super) layout: GridLayout,
    pub(super) initializer: bool,
    /// OpenCL: a kernel of destructors.
    pub(super) cleanup: bool,
    /// OpenCL: built with `-cl-uniform-work-group-size`.
    pub(super) uniform: bool,
    /// CUDA: launched with programmatic stream serialization.
    pub(super) programmatic: bool,
}

/// The code of a kernel or a host function.
pub(super) enum RoutineCode {
    /// Code in the runtime's language.
    C(Rc<ClikeCode>, Env),
    /// Code in PTX: the index of its unit in the [`PtxKernels`], and its registers with initial
    /// values.
    Ptx { unit: usize, regs: Vec<RegInit> },
}

/// The declarations of a host program.
pub(super) struct HostDeclarations {
    /// The runtime that the host calls.
    pub(super) runtime: Runtime,
    /// The kernels' code, if it is PTX.
    pub(super) assembly: Option<PtxKernels>,
    pub(super) lanes: Vec<Lane>,
    /// OpenCL: the context of each lane.
    pub(super) contexts: Vec<String>,
    /// CUDA: the names of the events.
    pub(super) events: Vec<String>,
    pub(super) kernels: Vec<Routine>,
    pub(super) functions: Vec<Routine>,
    pub(super) hosts: Vec<CThreadDraft>,
}

impl Default for HostDeclarations {
    fn default() -> HostDeclarations {
        let (lanes, contexts, events) = Default::default();
        let (assembly, kernels, functions, hosts) = Default::default();
        HostDeclarations {
            runtime: Runtime::OpenCl,
            assembly,
            lanes,
            contexts,
            events,
            kernels,
            functions,
            hosts,
        }
    }
}

/// Assembles a host program.
pub(super) fn assemble(
    mut declared: HostDeclarations,
    mut symbols: Symbols,
    sink: &mut Sink,
) -> Program {
    let dialect = declared.runtime.dialect();
    let hosts = std::mem::take(&mut declared.hosts);
    let errors = sink.errors();
    if let Some(assembly) = &declared.assembly {
        assembly.settle_types(&mut symbols, sink);
    }
    let lowered = lower_clike(hosts, &mut symbols, sink);
    let (mut threads, requests): (Vec<Thread>, Vec<Vec<Request>>) = lowered.into_iter().unzip();
    let machine = Machine::full();
    if sink.errors() > errors {
        return without_host(dialect, threads, symbols);
    }
    misuse::report(&declared, &requests, &symbols, sink);
    if sink.errors() > errors {
        return without_host(dialect, threads, symbols);
    }
    let mut host = HostProgram {
        lanes: declared.lanes.clone(),
        ..HostProgram::default()
    };
    let mut bodies = Bodies::new(&declared, &mut symbols, threads.len());
    bodies.initializers(&mut host);
    let events = HostEvents::of(&declared, &requests, host.commands.len(), sink);
    host.handles = events.handles();
    for (t, (thread, requests)) in threads.iter_mut().zip(&requests).enumerate() {
        let id = ThreadId(t as u16);
        let calls = thread
            .code
            .iter_mut()
            .filter(|i| matches!(i.op, Op::Call(_)));
        for (number, (request, instr)) in requests.iter().zip(calls).enumerate() {
            let at = CallId(host.calls.len() as u16);
            let mut part = HostBuilder {
                declared: &declared,
                events: &events,
                host: &mut host,
                bodies: &mut bodies,
                sink,
            };
            if let Some(result) = part.call((id, number), at, request) {
                instr.op = operation(result, id, &mut host);
            }
        }
    }
    if sink.errors() > errors {
        return without_host(dialect, threads, symbols);
    }
    bodies.cleanups(&mut host);
    let hosts = threads.len();
    let bodies = children::finish(&declared, &events, &mut host, bodies, sink);
    let mut untyped = vec![None; hosts];
    for body in bodies {
        threads.push(body.thread);
        untyped.push(body.untyped);
    }
    host.late_uses = symbols.lives.late_uses();
    let (open, dynamic) = (symbols.open(), symbols.dynamic());
    let structures = symbols.views_structures();
    let (assumed, locations) = (symbols.assumed(), symbols.into_locations());
    let mut program = Program {
        dialect,
        threads,
        locations,
        machine,
        host: Some(Box::new(host)),
        assumed,
        group_copies: Vec::new(),
    };
    if sink.errors() == errors {
        views::divide(&mut program, &dynamic, structures, sink);
    }
    settle_atomicity(&mut program);
    refuse_host_groups(&program, sink);
    warn_of_shared_local(&program, sink);
    program_scope::check(&program, sink);
    if sink.errors() == errors && declared.runtime == Runtime::OpenCl {
        failures::terminate(&mut program, &declared.contexts, sink);
    }
    if declared.assembly.is_none() || sink.errors() > errors {
        return program;
    }
    assembly::in_ptx(program, &untyped, &open, sink)
}

/// The operation of a thread that makes a call, which is added to the program.
fn operation(result: RequestResult, thread: ThreadId, host: &mut HostProgram) -> Op {
    match result {
        RequestResult::Call(op) => {
            let at = CallId(host.calls.len() as u16);
            host.calls.push(RuntimeCall { thread, op });
            Op::Call(at)
        }
        RequestResult::Status(dst, of) => {
            let id = QueryId(host.queries.len() as u16);
            host.queries.push(HostQuery {
                thread,
                of,
                never: None,
            });
            Op::Status { dst, of: id }
        }
    }
}

/// The program after errors: without commands.
fn without_host(dialect: Dialect, threads: Vec<Thread>, symbols: Symbols) -> Program {
    Program {
        dialect,
        threads,
        locations: symbols.into_locations(),
        machine: Machine::full(),
        host: None,
        assumed: Vec::new(),
        group_copies: Vec::new(),
    }
}

/// The result of a request: a call, or a register that receives a status.
enum RequestResult {
    Call(HostOp),
    Status(RegId, QuerySubject),
}

/// The context in which requests become calls and commands.
struct HostBuilder<'p, 'b> {
    declared: &'b HostDeclarations,
    events: &'p HostEvents,
    host: &'p mut HostProgram,
    bodies: &'p mut Bodies<'b>,
    sink: &'p mut Sink,
}

impl HostBuilder<'_, '_> {
    /// Lowers one call. `from`: its thread and its number in the thread; `at`: its future number in
    /// the table of calls.
    fn call(
        &mut self,
        from: (ThreadId, usize),
        at: CallId,
        request: &Request,
    ) -> Option<RequestResult> {
        let lane = request.lane;
        let event = |part: &mut Self| {
            part.events
                .find(request.event.as_ref()?, from, None, part.sink)
        };
        let op = match request.does {
            CallAction::Wait => {
                let mut refs = Vec::new();
                if let Some(r) = &request.event {
                    refs.push(self.events.find(r, from, None, self.sink)?);
                }
                let context = self.events.common_context(&request.waits);
                for name in &request.waits {
                    refs.push(
                        self.events
                            .find(name, from, context.as_deref(), self.sink)?,
                    );
                }
                if refs.is_empty() {
                    self.sink.error(
                        "wrong-operands",
                        request.span,
                        "this waits for nothing",
                        |d| {
                            d.label("expected at least one event").note(
                                "an empty list is an error (OpenCL API, clWaitForEvents: \
                                 CL_INVALID_VALUE)",
                            )
                        },
                    );
                    return None;
                }
                HostOp::Wait(refs)
            }
            CallAction::Finish => HostOp::Finish(lane?),
            CallAction::Flush => HostOp::Flush(lane?),
            CallAction::Release => HostOp::Release(lane?),
            CallAction::SyncDevice => HostOp::SyncDevice(request.device),
            CallAction::CreateUser => {
                HostOp::CreateUser(self.events.handle(event(self)?, request, self.sink)?)
            }
            CallAction::SetUser => {
                let handle = self.events.handle(event(self)?, request, self.sink)?;
                self.host.handles[usize::from(handle.0)].status = request.value;
                HostOp::SetUser(handle)
            }
            CallAction::Record => {
                HostOp::Record(self.events.handle(event(self)?, request, self.sink)?, lane?)
            }
            CallAction::LaneWait => {
                HostOp::LaneWait(lane?, self.events.handle(event(self)?, request, self.sink)?)
            }
            CallAction::Status => {
                let of = match request.event {
                    Some(_) => QuerySubject::Event(event(self)?),
                    None => QuerySubject::Lane(lane?),
                };
                return Some(RequestResult::Status(request.status?, of));
            }
            CallAction::SetDevice
            | CallAction::Nothing
            | CallAction::EndOfLife
            | CallAction::Ended
            | CallAction::UsedAfterEnd
            | CallAction::RetainMemory
            | CallAction::ReleaseMemory => return None,
            _ => return self.enqueue(from, at, request).map(RequestResult::Call),
        };
        Some(RequestResult::Call(op))
    }
}
