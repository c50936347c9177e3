//! Calls of the runtime: operands are looked up, and the call becomes a micro-op and a request.
//!
//! # Invariants
//! - The calls of a thread are numbered in the order of its code, from 0; who puts threads together numbers them anew.

use std::ops::Range;

use super::calls::{Does, LAUNCH, Param, ROWS, Row, is_value};
use super::device::Paths;
use super::lifetimes::Lifetimes;
use super::parse::{Arg, HostCall};
use super::{Name, Request, advice};
use crate::isa::clike::lower::Lowering;
use crate::isa::clike::scope::Binding;
use crate::isa::clike::words::type_named;
use diag::Diagnostic;
use program::dialect::Runtime;
use program::host::{CallId, CommandId};
use program::{LocId, Op, Ty};

/// What the lowering of host code knows beyond that of other code.
#[derive(Default)]
pub(in crate::isa::clike) struct HostState {
    /// Calls so far.
    pub(in crate::isa::clike) requests: Vec<Request>,
    /// Where the code stands.
    pub(in crate::isa::clike) paths: Paths,
    /// OpenCL: names of queues of the device.
    pub(super) queues: Vec<String>,
    /// The device of calls.
    device: u32,
    /// What was given back.
    pub(super) lifetimes: Lifetimes,
}

/// An operand that is not what it has to be, which was reported.
pub(super) struct Wrong;

impl Lowering<'_, '_> {
    /// A call of the runtime.
    pub(in crate::isa::clike) fn host_call(&mut self, call: &HostCall, range: &Range<usize>) {
        let Some(name) = &call.name else { return };
        let word = self.str(name).to_string();
        let Some(names) = self.env.host.clone() else {
            self.error("host-call", range, format!("`{word}` is called outside of host code"), |d| {
                d.label("only a `[[host]]` thread calls the runtime")
            });
            return;
        };
        let Some(row) = self.host_row(call, name) else { return };
        if names.of_kernel && self.host.paths.is_dead() {
            return;
        }
        if names.inside {
            self.host_call_inside(row, call, &word, range);
            return;
        }
        if row.does != Does::Status && self.host.paths.is_open() {
            self.error("unsupported", range, format!("`{word}` in a branch or a loop is not supported"), |d| {
                let d = d.label("expected it on every path, exactly once");
                let d = d.note("which commands there are has to be known before the program runs");
                let here =
                    "a branch on the place of the thread, such as `if (get_global_id(0) == 0)`, is no obstacle";
                if names.of_kernel { d.help(here) } else { d }
            });
            return;
        }
        let span = self.unit.text.span(range.clone());
        let mut request = Request {
            does: row.does,
            name: word.clone(),
            span,
            lane: None,
            kernel: None,
            function: None,
            sizes: [None, None, None],
            memory: [None, None],
            bytes: None,
            value: 0,
            waits: Vec::new(),
            event: None,
            blocking: row.waits,
            words: Vec::new(),
            device: self.host.device,
            status: None,
        };
        if call.launch {
            match names.kernels.iter().position(|k| *k == word) {
                Some(kernel) => request.kernel = Some(kernel),
                None => return self.host_unknown(name, "kernel", &names.kernels),
            }
        }
        if self.host_operands(row, call, range, &mut request).is_err() {
            return;
        }
        if let (Some(queue), Does::DefaultQueue) = (&call.result, row.does) {
            let name = self.str(queue).to_string();
            self.host.queues.push(name);
            return;
        }
        if let Some(result) = &call.result {
            if row.does != Does::CreateUser {
                self.error("wrong-operand", result, format!("`{word}` gives no event"), |d| {
                    d.label("expected `clCreateUserEvent(…)` behind it")
                        .help("an event that a command makes is its last operand, as in `&e`")
                });
                return;
            }
            request.event = Some(self.host_name(result));
        } else if row.does == Does::CreateUser {
            self.error("wrong-operand", range, "the new event has no name", |d| {
                d.label("expected `cl_event u = clCreateUserEvent(…)`")
            });
            return;
        }
        if row.does == Does::Release && (request.lane.is_none() || request.lane == names.per_thread) {
            self.error("wrong-operand", range, "a default stream cannot be destroyed", |d| {
                d.label("expected a stream of this test")
                    .note("CUDA runtime API, cudaStreamDestroy: cudaErrorInvalidResourceHandle")
            });
            return;
        }
        if row.runtime == Runtime::Cuda && request.lane.is_none() && !names.of_kernel {
            request.lane = names.null.get(self.host.device as usize).copied();
        }
        if is_value(row.name) {
            request.status = Some(self.temporary(Ty::S32));
        }
        self.host_gives_back(&request);
        match row.does {
            Does::SetDevice => return self.host.device = request.device,
            Does::Nothing | Does::DefaultQueue | Does::RetainEvent | Does::ReleaseEvent => return,
            _ => {}
        }
        let number = u16::try_from(self.host.requests.len()).unwrap_or(u16::MAX);
        self.push(if names.of_kernel { Op::Enqueue(CommandId(number)) } else { Op::Call(CallId(number)) });
        self.host.requests.push(request);
    }

    /// Whose runtime the code calls.
    pub(super) fn runtime(&self) -> Option<Runtime> {
        self.env.language.row().runtime
    }

    /// The row of a call.
    fn host_row(&mut self, call: &HostCall, name: &Range<usize>) -> Option<&'static Row> {
        let runtime = self.runtime();
        if call.launch && runtime == Some(Runtime::Cuda) {
            return Some(&LAUNCH);
        }
        let word = self.str(name);
        let of_kernel = self.is_kernel_code();
        let here = || ROWS.iter().filter(move |r| Some(r.runtime) == runtime && r.of_device == of_kernel);
        let row = here().find(|r| r.name == word && !call.launch);
        if row.is_none() {
            let elsewhere = call.launch || ROWS.iter().any(|r| r.name == word);
            self.error("unknown-function", name, format!("there is no call `{word}` here"), |d| {
                let whose = runtime.unwrap_or(Runtime::OpenCl).name();
                let d = d.label(format!("expected a call of {whose}'s runtime"));
                let d = if elsewhere {
                    d.note("another dialect has it, or other code: the host's or that of kernels")
                } else {
                    d
                };
                match advice::instead_of(word) {
                    Some(advice) => d.help(advice),
                    None => d.did_you_mean(word, here().map(|r| r.name)),
                }
            });
        }
        row
    }

    /// Functions of the host that the runtime calls must not call the runtime.
    fn host_call_inside(&mut self, row: &Row, call: &HostCall, word: &str, range: &Range<usize>) {
        let cuda = row.runtime == Runtime::Cuda;
        let blocks = |arg: &Arg| matches!(self.str(&arg.range()), "CL_TRUE" | "CL_BLOCKING");
        let waits = row.waits || (row.params.contains(&Param::Blocking) && call.args.iter().any(blocks));
        if !cuda && !waits {
            self.error("unsupported", range, format!("`{word}` in a callback is not supported"), |d| {
                d.label("expected accesses to memory alone")
            });
            return;
        }
        let message = match cuda {
            true => format!("`{word}` in a function that `cudaLaunchHostFunc` runs"),
            false => format!("`{word}` waits in a callback"),
        };
        self.error("blocking-callback", range, message, |d| {
            d.label("this is undefined").note(match cuda {
                true => "a host function must not make any CUDA call (CUDA runtime API, cudaLaunchHostFunc)",
                false => {
                    "calling a blocking function from a callback is undefined (OpenCL API, clSetEventCallback)"
                }
            })
        });
    }

    fn host_unknown(&mut self, range: &Range<usize>, what: &str, known: &[String]) {
        let word = self.str(range);
        self.error("unknown-name", range, format!("there is no {what} `{word}`"), |d| {
            let article = if what.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            let d = d.label(format!("expected {article} {what} of this test"));
            d.did_you_mean(word, known.iter().map(String::as_str))
        });
    }

    fn host_name(&self, range: &Range<usize>) -> Name {
        let text = self.str(range).trim_start_matches('&').trim().to_string();
        Name { text, span: self.unit.text.span(range.clone()) }
    }

    /// Looks up all operands.
    fn host_operands(
        &mut self,
        row: &Row,
        call: &HostCall,
        range: &Range<usize>,
        request: &mut Request,
    ) -> Result<(), Wrong> {
        let mut args = call.args.iter().peekable();
        let mut given = 0;
        for param in row.params {
            let Some(arg) = args.peek() else { break };
            let skipped = match param {
                Param::Bytes => !matches!(arg, Arg::Size(..) | Arg::Int(..)),
                // Kernels are enqueued with a wait list and an event, or without both.
                Param::Waits | Param::NewEvent => matches!(arg, Arg::Block(..)),
                _ => false,
            };
            if skipped {
                given += 1;
                continue;
            }
            let arg = args.next().expect("peeked");
            given += 1;
            if *param == Param::Waits
                && let (Arg::Int(count, _), Some(next)) = (arg, args.peek())
                && !matches!(next, Arg::Int(..))
            {
                // The count in front of a list.
                let list = args.next().expect("peeked");
                self.host_operand(*param, list, request)?;
                if request.waits.len() as i64 != *count {
                    let message = format!("{count} events are announced, {} listed", request.waits.len());
                    return self.host_wrong(list, message, "a list of that length");
                }
                continue;
            }
            self.host_operand(*param, arg, request)?;
        }
        let params = row.params.iter().filter(|p| **p != Param::Bytes).count();
        if let Some(extra) = args.next() {
            return self.host_wrong(extra, format!("`{}` takes no such operand", row.name), "fewer operands");
        }
        let optional = row.params.iter().take(given).filter(|p| **p == Param::Bytes).count();
        if given - optional < row.needed.min(params) {
            let message = format!("`{}` lacks operands", request.name);
            self.error("wrong-operands", range, message, |d| d.label(format!("expected at least {}", row.needed)));
            return Err(Wrong);
        }
        Ok(())
    }

    fn host_wrong<T>(&mut self, arg: &Arg, message: impl Into<String>, expected: &str) -> Result<T, Wrong> {
        self.host_report(arg, message, |d| d.label(format!("expected {expected}")))
    }

    fn host_report<T>(
        &mut self,
        arg: &Arg,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Result<T, Wrong> {
        self.error("wrong-operand", &arg.range(), message, finish);
        Err(Wrong)
    }

    fn host_operand(&mut self, param: Param, arg: &Arg, request: &mut Request) -> Result<(), Wrong> {
        let range = arg.range();
        let text = self.str(&range).to_string();
        let names = self.env.host.clone().unwrap_or_default();
        let null = text == "NULL" || text == "nullptr";
        let cannot = format!("`{text}` cannot stand here");
        match (param, arg) {
            (Param::Lane, _) if names.of_kernel => {
                if !self.device_stream(arg, request) {
                    return Err(Wrong);
                }
            }
            (Param::Queue, Arg::Names(_)) => {
                if !self.device_queue(arg) {
                    return Err(Wrong);
                }
            }
            (Param::Range, Arg::Range(..)) => {
                if !self.device_range(arg, request) {
                    return Err(Wrong);
                }
            }
            (Param::Block, Arg::Block(kernel, _)) => {
                let text = self.str(kernel);
                let Some(at) = names.kernels.iter().position(|k| k == text) else {
                    self.host_unknown(kernel, "kernel", &names.kernels);
                    return Err(Wrong);
                };
                request.kernel = Some(at);
            }
            (Param::Lane, Arg::Int(0, _)) if self.runtime() == Some(Runtime::Cuda) => {}
            (Param::Lane, Arg::Names(_)) if self.runtime() == Some(Runtime::Cuda) && null => {}
            (Param::Lane, Arg::Names(_) | Arg::Address(_)) => match text.trim_start_matches('&') {
                "cudaStreamLegacy" => {}
                "cudaStreamPerThread" => request.lane = names.per_thread,
                word => match names.lanes.iter().find(|l| l.0 == word) {
                    Some((_, lane)) => {
                        self.host_lives(*lane, arg)?;
                        request.lane = Some(*lane);
                    }
                    None => {
                        let what = if self.runtime() == Some(Runtime::Cuda) { "stream" } else { "queue" };
                        let known: Vec<String> = names.lanes.iter().map(|l| l.0.clone()).collect();
                        self.host_unknown(&range, what, &known);
                        return Err(Wrong);
                    }
                },
            },
            (Param::Kernel | Param::Function, Arg::Names(_)) => {
                let (what, known) = match param {
                    Param::Kernel => ("kernel", &names.kernels),
                    _ => ("function", &names.functions),
                };
                let Some(at) = known.iter().position(|k| *k == text) else {
                    self.host_unknown(&range, what, known);
                    return Err(Wrong);
                };
                let slot = if param == Param::Kernel { &mut request.kernel } else { &mut request.function };
                *slot = Some(at);
            }
            (Param::Sizes(_) | Param::Waits | Param::NewEvent, Arg::Names(_)) if null => {}
            (Param::Sizes(n), Arg::Int(..) | Arg::List(..)) => {
                let list = match arg {
                    Arg::List(all, _) => all.as_slice(),
                    one => std::slice::from_ref(one),
                };
                let number = |a: &Arg| match a {
                    Arg::Int(n, r) if !self.str(r).starts_with('-') => Some(*n as u64),
                    _ => None,
                };
                match list.iter().map(number).collect::<Option<Vec<u64>>>() {
                    Some(all) if (1..=3).contains(&all.len()) => {
                        request.sizes[n] = Some((all, self.unit.text.span(range)));
                    }
                    _ => return self.host_wrong(arg, cannot, "one to three numbers that are not negative"),
                }
            }
            (Param::Waits, Arg::Int(0, _)) => {}
            (Param::Waits, Arg::List(all, _)) => {
                for one in all {
                    match one {
                        Arg::Names(_) | Arg::Address(_) => {
                            let name = self.host_name(&one.range());
                            self.event_lives(&name, one)?;
                            request.waits.push(name);
                        }
                        _ => return self.host_wrong(one, cannot, "the name of an event"),
                    }
                }
            }
            (Param::Waits, Arg::Names(_) | Arg::Address(_)) => {
                let name = self.host_name(&range);
                self.event_lives(&name, arg)?;
                request.waits.push(name);
            }
            (Param::Event, Arg::Names(_) | Arg::Address(_)) => {
                let name = self.host_name(&range);
                self.event_lives(&name, arg)?;
                if self.runtime() == Some(Runtime::Cuda) && !names.events.contains(&name.text) {
                    self.host_unknown(&range, "event", &names.events);
                    return Err(Wrong);
                }
                request.event = Some(name);
            }
            (Param::NewEvent, Arg::Address(_)) => request.event = Some(self.host_name(&range)),
            (Param::To, Arg::Names(_) | Arg::Address(_)) => {
                request.memory[0] = Some((self.host_memory(arg)?, self.unit.text.span(range)));
            }
            (Param::From, Arg::Names(_) | Arg::Address(_)) => {
                request.memory[1] = Some((self.host_memory(arg)?, self.unit.text.span(range)));
            }
            (Param::Bytes, Arg::Int(n, _)) if *n >= 0 => {
                request.bytes = Some((*n as u64, self.unit.text.span(range)));
            }
            (Param::Bytes, Arg::Size(factor, of)) if *factor >= 0 => {
                let word = self.str(of);
                let size = match (type_named(word), self.location(word)) {
                    (Some((ty, _)), _) => u64::from(ty.bits) / 8,
                    (None, Some(loc)) => self.symbols.layout(loc).bytes(self.symbols.object(loc).1.init.len()),
                    _ => return self.host_wrong(arg, cannot, "the size of a type or of memory"),
                };
                request.bytes = Some((size * *factor as u64, self.unit.text.span(range)));
            }
            (Param::Value, Arg::Int(n, _)) => request.value = *n,
            (Param::Blocking, Arg::Names(_)) if matches!(text.as_str(), "CL_TRUE" | "CL_BLOCKING") => {
                request.blocking = true;
            }
            (Param::Blocking, Arg::Names(_)) if matches!(text.as_str(), "CL_FALSE" | "CL_NON_BLOCKING") => {}
            (Param::Blocking, _) => return self.host_wrong(arg, cannot, "`CL_TRUE` or `CL_FALSE`"),
            (Param::Words(known), Arg::Names(all)) => {
                for one in all {
                    let word = self.str(one);
                    if !known.contains(&word) {
                        let message = format!("`{word}` cannot stand here");
                        return self.host_report(arg, message, |d| {
                            d.label(format!("expected one of {}", known.join(", ")))
                                .did_you_mean(word, known.iter().copied())
                        });
                    }
                    request.words.push(self.host_name(one));
                }
            }
            (Param::Words(known), Arg::Int(n, _)) if *n < 0 && known.contains(&"CL_COMPLETE") => {
                return self.host_report(arg, "failing commands are not supported", |d| {
                    d.label("expected `CL_COMPLETE`")
                        .note("what a terminated command does to memory is specified nowhere")
                });
            }
            (Param::Words(known), _) => {
                return self.host_wrong(arg, cannot, &format!("one of {}", known.join(", ")));
            }
            (Param::Status, Arg::Address(_)) => {
                let name = self.host_name(&range);
                match self.scopes.find(&name.text) {
                    Some(Binding::Register(variable)) => request.status = Some(variable.reg),
                    _ => return self.host_wrong(arg, cannot, "the address of a declared register"),
                }
            }
            (Param::Context, Arg::Names(_)) if names.contexts.contains(&text) => {
                request.words.push(self.host_name(&range));
            }
            (Param::Context, Arg::Names(_)) => {
                self.host_unknown(&range, "context", &names.contexts);
                return Err(Wrong);
            }
            (Param::Device, Arg::Int(n, _)) if usize::try_from(*n).is_ok_and(|n| n < names.null.len()) => {
                request.device = *n as u32;
            }
            (Param::Device, _) => {
                return self.host_report(arg, cannot, |d| {
                    d.label(format!("expected the number of a device, 0 to {}", names.null.len() - 1))
                        .note("a device is one that a stream or memory of the test is of")
                });
            }
            (Param::Unused, Arg::Int(..) | Arg::Names(_)) => {}
            _ => {
                let expected = match param {
                    Param::Lane => "the name of a stream or queue",
                    Param::Kernel => "the name of a kernel",
                    Param::Function => "the name of a function",
                    Param::Event => "the name of an event",
                    Param::NewEvent => "`&` and the name of the event, or `NULL`",
                    Param::Waits => "a list of events, such as `{e, f}`, or `NULL`",
                    Param::To | Param::From => "the name of memory",
                    Param::Status => "`&` and the name of a register",
                    Param::Sizes(_) => "one to three numbers",
                    Param::Queue | Param::Range | Param::Block => Self::device_expected(param),
                    _ => "a number or `NULL`",
                };
                return self.host_wrong(arg, cannot, expected);
            }
        }
        Ok(())
    }

    /// The memory that an operand names.
    fn host_memory(&mut self, arg: &Arg) -> Result<LocId, Wrong> {
        let range = arg.range();
        let name = self.str(&range).trim_start_matches('&').trim();
        match self.location(name) {
            Some(loc) if self.symbols.layout(loc).cells() > 1 => {
                let message = format!("`{name}` is of a structure");
                self.host_report(arg, message, |d| {
                    d.label("expected memory of integers").note("commands on structures are not supported")
                })
            }
            Some(loc) => Ok(loc),
            None => {
                let known: Vec<String> = self.symbols.names().map(str::to_string).collect();
                self.host_unknown(&range, "location", &known);
                Err(Wrong)
            }
        }
    }
}
