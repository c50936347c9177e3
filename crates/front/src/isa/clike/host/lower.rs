//! Lowers runtime calls: looks up the operands, and makes a micro-op and a request of each call.
//!
//! # Invariants
//! - The calls of a thread have numbers from 0, in the order of its code. The caller renumbers them
//!   when it joins the threads.

use std::ops::Range;

use super::calls::{CallAction, CallRow, LAUNCH, ParamRole, ROWS, is_value};
use super::{Name, Request, advice};
use crate::isa::clike::ast::{Arg, HostCall};
use crate::isa::clike::lower::Lowering;
use diag::Diagnostic;
use program::dialect::Runtime;
use program::host::{CallId, CommandId};
use program::{Op, Ty};

/// An operand that is invalid; the error was reported.
pub(super) struct Wrong;

impl Lowering<'_, '_> {
    /// Lowers a runtime call.
    pub(in crate::isa::clike) fn host_call(&mut self, call: &HostCall, range: &Range<usize>) {
        let Some(name) = &call.name else { return };
        let word = self.str(name).to_string();
        let Some(names) = self.env.host.clone() else {
            let message = format!("`{word}` is called outside of host code");
            self.error("host-call", range, message, |d| {
                d.label("only a `[[host]]` thread calls the runtime")
            });
            return;
        };
        let Some(row) = self.host_row(call, name) else {
            return;
        };
        if names.of_kernel && self.host.paths.is_dead() {
            return;
        }
        if names.inside {
            self.host_call_inside(row, call, &word, range);
            return;
        }
        if row.does != CallAction::Status && self.host.paths.is_open() {
            self.refuse_conditional_call(&word, names.of_kernel, range);
            return;
        }
        let mut request = self.request(row, &word, range);
        if call.launch {
            match names.kernels.iter().position(|k| *k == word) {
                Some(kernel) => request.kernel = Some(kernel),
                None => return self.host_unknown(name, "kernel", &names.kernels),
            }
        }
        if self.host_operands(row, call, range, &mut request).is_err()
            || self.image_operands(&mut request).is_err()
        {
            return;
        }
        if let (Some(queue), CallAction::DefaultQueue) = (&call.result, row.does) {
            let name = self.str(queue).to_string();
            self.host.queues.push(name);
            return;
        }
        if self.host_result(row, call, range, &mut request).is_err() {
            return;
        }
        if row.does == CallAction::Release
            && (request.lane.is_none() || request.lane == names.per_thread)
        {
            let message = "a default stream cannot be destroyed";
            self.error("wrong-operand", range, message, |d| {
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
        if row.name.starts_with("cudaMemset") {
            // Each byte gets the value.
            request.value = i64::from_ne_bytes([request.value as u8; 8]);
        }
        self.host_gives_back(&request);
        match row.does {
            CallAction::EndOfLife => return self.end_of_memory(&request),
            CallAction::RetainMemory | CallAction::ReleaseMemory => return,
            CallAction::Ended | CallAction::UsedAfterEnd => return self.host_life(&request),
            CallAction::SetDevice => return self.host.device = request.device,
            CallAction::Nothing
            | CallAction::DefaultQueue
            | CallAction::RetainEvent
            | CallAction::ReleaseEvent => return,
            _ => {}
        }
        if names.of_kernel && row.does == CallAction::CreateUser {
            // The call that sets the event is a command, and this one is none.
            return self.host.requests.push(request);
        }
        let number = u16::try_from(self.host.requests.len()).unwrap_or(u16::MAX);
        self.push(if names.of_kernel {
            Op::Enqueue(CommandId(number))
        } else {
            Op::Call(CallId(number))
        });
        // `cudaFree` waits first.
        if row.params.contains(&ParamRole::Freed) {
            self.end_of_memory(&request);
        }
        self.host.requests.push(request);
    }

    /// Reports a command that only some paths reach.
    fn refuse_conditional_call(&mut self, word: &str, of_kernel: bool, range: &Range<usize>) {
        let message = format!("`{word}` in a branch or a loop is not supported");
        self.error("unsupported", range, message, |d| {
            let d = d.label("expected it on every path, exactly once");
            let d = d.note("which commands there are has to be known before the program runs");
            let here = "a branch on the place of the thread, such as `if (get_global_id(0) == 0)`, \
                        is not an obstacle";
            if of_kernel { d.help(here) } else { d }
        });
    }

    /// The request of a call whose operands are not read yet.
    fn request(&self, row: &CallRow, word: &str, range: &Range<usize>) -> Request {
        Request {
            does: row.does,
            name: word.to_owned(),
            span: self.unit.text.span(range.clone()),
            lane: None,
            kernel: None,
            function: None,
            sizes: [None, None, None],
            memory: [None, None],
            first: [0, 0],
            pitches: [0; 4],
            bytes: None,
            value: 0,
            locals: Vec::new(),
            waits: Vec::new(),
            event: None,
            blocking: row.waits,
            words: Vec::new(),
            device: self.host.device,
            status: None,
        }
    }

    /// Takes the name for the result of a call: a user event is the only one.
    fn host_result(
        &mut self,
        row: &CallRow,
        call: &HostCall,
        range: &Range<usize>,
        request: &mut Request,
    ) -> Result<(), Wrong> {
        match (&call.result, row.does) {
            (None, CallAction::CreateUser) => {
                let message = "the new event has no name";
                self.error("wrong-operand", range, message, |d| {
                    let ty = if row.of_device {
                        "clk_event_t"
                    } else {
                        "cl_event"
                    };
                    d.label(format!("expected `{ty} u = {}(…)`", row.name))
                });
                Err(Wrong)
            }
            (None, _) => Ok(()),
            (Some(result), CallAction::CreateUser) => {
                request.event = Some(self.host_name(result));
                Ok(())
            }
            (Some(result), _) => {
                let message = format!("`{}` gives no event", request.name);
                self.error("wrong-operand", result, message, |d| {
                    d.label("expected `clCreateUserEvent(…)` behind it")
                        .help("an event that a command makes is its last operand, as in `&e`")
                });
                Err(Wrong)
            }
        }
    }

    /// The runtime that the code calls.
    pub(super) fn runtime(&self) -> Option<Runtime> {
        self.env.language.row().runtime
    }

    /// The table row of a call.
    fn host_row(&mut self, call: &HostCall, name: &Range<usize>) -> Option<&'static CallRow> {
        let runtime = self.runtime();
        if call.launch && runtime == Some(Runtime::Cuda) {
            return Some(&LAUNCH);
        }
        let word = self.str(name);
        let of_kernel = self.is_kernel_code();
        let here = || {
            ROWS.iter()
                .filter(move |r| Some(r.runtime) == runtime && r.of_device == of_kernel)
        };
        let row = here().find(|r| r.name == word && !call.launch);
        if row.is_none() {
            let elsewhere = call.launch || ROWS.iter().any(|r| r.name == word);
            self.error(
                "unknown-function",
                name,
                format!("there is no call `{word}` here"),
                |d| {
                    let language = runtime.unwrap_or(Runtime::OpenCl).name();
                    let d = d.label(format!("expected a call of the {language} runtime"));
                    let d = if elsewhere {
                        d.note(
                            "another dialect has it, or other code: the host's or that of kernels",
                        )
                    } else {
                        d
                    };
                    match advice::instead_of(word) {
                        Some(advice) => d.help(advice),
                        None => d.did_you_mean(word, here().map(|r| r.name)),
                    }
                },
            );
        }
        row
    }

    /// Reports runtime calls in a host function that the runtime calls.
    fn host_call_inside(
        &mut self,
        row: &CallRow,
        call: &HostCall,
        word: &str,
        range: &Range<usize>,
    ) {
        let cuda = row.runtime == Runtime::Cuda;
        let blocks = |arg: &Arg| matches!(self.str(&arg.range()), "CL_TRUE" | "CL_BLOCKING");
        let waits = row.waits
            || (row.params.contains(&ParamRole::Blocking) && call.args.iter().any(blocks));
        if !cuda && !waits {
            self.error(
                "unsupported",
                range,
                format!("`{word}` in a callback is not supported"),
                |d| d.label("expected accesses to memory alone"),
            );
            return;
        }
        let message = match cuda {
            true => format!("`{word}` in a function that `cudaLaunchHostFunc` runs"),
            false => format!("`{word}` waits in a callback"),
        };
        self.error("blocking-callback", range, message, |d| {
            d.label("this is undefined").note(match cuda {
                true => {
                    "a host function must not make any CUDA call (CUDA runtime API, \
                    cudaLaunchHostFunc)"
                }
                false => {
                    "calling a blocking function from a callback is undefined (OpenCL API, \
                    clSetEventCallback)"
                }
            })
        });
    }

    pub(super) fn host_unknown(&mut self, range: &Range<usize>, what: &str, known: &[String]) {
        let word = self.str(range);
        self.error(
            "unknown-name",
            range,
            format!("there is no {what} `{word}`"),
            |d| {
                let article = if what.starts_with(['a', 'e', 'i', 'o']) {
                    "an"
                } else {
                    "a"
                };
                let d = d.label(format!("expected {article} {what} of this test"));
                d.did_you_mean(word, known.iter().map(String::as_str))
            },
        );
    }

    pub(super) fn host_name(&self, range: &Range<usize>) -> Name {
        Name {
            word: self.str(range).trim_start_matches('&').trim().to_string(),
            span: self.unit.text.span(range.clone()),
        }
    }

    /// Looks up all operands.
    fn host_operands(
        &mut self,
        row: &CallRow,
        call: &HostCall,
        range: &Range<usize>,
        request: &mut Request,
    ) -> Result<(), Wrong> {
        let mut args = call.args.iter().peekable();
        let mut given = 0;
        for param in row.params {
            let Some(arg) = args.peek() else { break };
            let skipped = match param {
                ParamRole::Bytes => !matches!(arg, Arg::Size(..) | Arg::Int(..)),
                ParamRole::Extent => !matches!(arg, Arg::Size(..)),
                // Kernels enqueue with a wait list and an event, or without both.
                ParamRole::Waits | ParamRole::NewEvent => matches!(arg, Arg::Block(..)),
                _ => false,
            };
            if skipped {
                given += 1;
                continue;
            }
            let arg = args.next().expect("peeked");
            given += 1;
            if *param == ParamRole::Waits
                && let (Arg::Int(count, _), Some(next)) = (arg, args.peek())
                && !matches!(next, Arg::Int(..))
            {
                // The operand is the count before a list.
                let list = args.next().expect("peeked");
                self.host_operand(*param, list, request)?;
                if request.waits.len() as i64 != *count {
                    let message = format!(
                        "{count} events are announced, {} listed",
                        request.waits.len()
                    );
                    return self.host_wrong(list, message, "a list of that length");
                }
                continue;
            }
            self.host_operand(*param, arg, request)?;
        }
        fn is_optional(p: &&ParamRole) -> bool {
            matches!(p, ParamRole::Bytes | ParamRole::Extent)
        }
        let params = row.params.iter().filter(|p| !is_optional(p)).count();
        if let Some(extra) = args.next() {
            return self.host_wrong(
                extra,
                format!("`{}` takes no such operand", row.name),
                "fewer operands",
            );
        }
        let optional = row.params.iter().take(given).filter(is_optional).count();
        if given - optional < row.needed.min(params) {
            let message = format!("`{}` lacks operands", request.name);
            self.error("wrong-operands", range, message, |d| {
                d.label(format!("expected at least {}", row.needed))
            });
            return Err(Wrong);
        }
        if let Some(local) = request.locals.first() {
            let message = format!("the size of `{}` is missing", local.word);
            self.error("wrong-operands", range, message, |d| {
                d.label("expected a number of bytes for each parameter of the block")
            });
            return Err(Wrong);
        }
        Ok(())
    }

    pub(super) fn host_wrong<T>(
        &mut self,
        arg: &Arg,
        message: impl Into<String>,
        expected: &str,
    ) -> Result<T, Wrong> {
        self.host_report(arg, message, |d| d.label(format!("expected {expected}")))
    }

    pub(super) fn host_report<T>(
        &mut self,
        arg: &Arg,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Result<T, Wrong> {
        self.error("wrong-operand", &arg.range(), message, finish);
        Err(Wrong)
    }
}
