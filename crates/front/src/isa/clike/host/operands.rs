//! Reads the operands of runtime calls, one kind after the other.

use std::ops::Range;
use std::rc::Rc;

use super::calls::{CallAction, ParamRole};
use super::lower::Wrong;
use super::{Name, Names, Request};
use crate::isa::clike::ast::Arg;
use crate::isa::clike::lower::Lowering;
use crate::isa::clike::scope::Binding;
use crate::isa::clike::words::type_named;
use program::LocId;
use program::dialect::Runtime;

/// Whether the operand has the expected form; if so, it was read.
type Read = Result<bool, Wrong>;

impl Lowering<'_, '_> {
    /// Reads an operand into a request.
    pub(super) fn host_operand(
        &mut self,
        param: ParamRole,
        arg: &Arg,
        request: &mut Request,
    ) -> Result<(), Wrong> {
        let (expected, read) = match param {
            ParamRole::Lane => (
                "the name of a stream or queue",
                self.host_lane(arg, request)?,
            ),
            ParamRole::Kernel => ("the name of a kernel", self.host_kernel(arg, request)?),
            ParamRole::Function => ("the name of a function", self.host_function(arg, request)?),
            ParamRole::Sizes(n) => ("one to three numbers", self.host_sizes(n, arg, request)?),
            ParamRole::Waits => (
                "a list of events, such as `{e, f}`, or `NULL`",
                self.host_waits(arg, request)?,
            ),
            ParamRole::Event => ("the name of an event", self.host_event(arg, request)?),
            ParamRole::NewEvent => (
                "`&` and the name of the event, or `NULL`",
                self.host_new_event(arg, request),
            ),
            ParamRole::To => ("the name of memory", self.host_memory(0, arg, request)?),
            ParamRole::From => ("the name of memory", self.host_memory(1, arg, request)?),
            ParamRole::Freed => ("the name of memory", self.host_memory(0, arg, request)?),
            ParamRole::Object => (
                "the name of memory, a stream, a queue or an event",
                self.host_object(arg, request),
            ),
            ParamRole::Bytes | ParamRole::Extent => ("a number", self.host_bytes(arg, request)?),
            ParamRole::Value => ("a number", self.host_value(arg, request)),
            ParamRole::LocalBytes => {
                self.host_bytes(arg, request)?;
                return self.device_local(arg, request);
            }
            ParamRole::Pitch(n) => ("a number of bytes", self.host_pitch(n, arg, request)),
            ParamRole::Flags(_) if matches!(arg, Arg::Int(0, _)) => return Ok(()),
            ParamRole::Flags(known) => return self.host_words(known, arg, request),
            ParamRole::Blocking => ("`CL_TRUE` or `CL_FALSE`", self.host_blocking(arg, request)),
            ParamRole::Words(known) => return self.host_words(known, arg, request),
            ParamRole::Status => (
                "`&` and the name of a register",
                self.host_status(arg, request)?,
            ),
            ParamRole::Context => ("the name of a context", self.host_context(arg, request)?),
            ParamRole::Device => return self.host_device(arg, request),
            ParamRole::Queue => (
                "a queue of the device, such as `get_default_queue()`",
                self.device_queue(arg)?,
            ),
            ParamRole::Range => (
                "an index space, such as `ndrange_1D(1)`",
                self.device_range(arg, request)?,
            ),
            ParamRole::Block => (
                "a block that calls a kernel, such as `^{ child(); }`",
                self.host_block(arg, request)?,
            ),
            ParamRole::Unused => (
                "a number or `NULL`",
                matches!(arg, Arg::Int(..) | Arg::Names(_)),
            ),
        };
        if read {
            Ok(())
        } else {
            self.host_wrong(arg, self.cannot_stand(arg), expected)
        }
    }

    fn cannot_stand(&self, arg: &Arg) -> String {
        format!("`{}` is not allowed here", self.str(&arg.range()))
    }

    fn host_names(&self) -> Rc<Names> {
        self.env.host.clone().unwrap_or_default()
    }

    fn is_null(&self, arg: &Arg) -> bool {
        matches!(arg, Arg::Names(_)) && matches!(self.str(&arg.range()), "NULL" | "nullptr")
    }

    /// The index of the operand's name among the known names.
    fn host_position(
        &mut self,
        arg: &Arg,
        what: &str,
        known: &[String],
    ) -> Result<Option<usize>, Wrong> {
        let (Arg::Names(_) | Arg::Block(..)) = arg else {
            return Ok(None);
        };
        let range = if let Arg::Block(kernel, ..) = arg {
            kernel.clone()
        } else {
            arg.range()
        };
        let found = known.iter().position(|name| name == self.str(&range));
        if found.is_none() {
            self.host_unknown(&range, what, known);
            return Err(Wrong);
        }
        Ok(found)
    }

    fn host_lane(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let names = self.host_names();
        if names.of_kernel {
            return self.device_stream(arg, request);
        }
        let cuda = self.runtime() == Some(Runtime::Cuda);
        if cuda && (matches!(arg, Arg::Int(0, _)) || self.is_null(arg)) {
            return Ok(true);
        }
        let (Arg::Names(_) | Arg::Address(_)) = arg else {
            return Ok(false);
        };
        let range = arg.range();
        match self.str(&range).trim_start_matches('&') {
            "cudaStreamLegacy" => {}
            "cudaStreamPerThread" => request.lane = names.per_thread,
            word => {
                let Some((_, lane)) = names.lanes.iter().find(|l| l.0 == word) else {
                    let known: Vec<String> = names.lanes.iter().map(|l| l.0.clone()).collect();
                    self.host_unknown(&range, if cuda { "stream" } else { "queue" }, &known);
                    return Err(Wrong);
                };
                self.host_lives(*lane, arg)?;
                request.lane = Some(*lane);
            }
        }
        Ok(true)
    }

    fn host_kernel(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let (Arg::Names(_), names) = (arg, self.host_names()) else {
            return Ok(false);
        };
        request.kernel = self.host_position(arg, "kernel", &names.kernels)?;
        Ok(true)
    }

    fn host_block(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let (Arg::Block(_, locals, _), names) = (arg, self.host_names()) else {
            return Ok(false);
        };
        request.locals = locals.iter().map(|local| self.host_name(local)).collect();
        request.kernel = self.host_position(arg, "kernel", &names.kernels)?;
        Ok(true)
    }

    fn host_function(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let (Arg::Names(_), names) = (arg, self.host_names()) else {
            return Ok(false);
        };
        request.function = self.host_position(arg, "function", &names.functions)?;
        Ok(true)
    }

    fn host_context(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let (Arg::Names(_), names) = (arg, self.host_names()) else {
            return Ok(false);
        };
        self.host_position(arg, "context", &names.contexts)?;
        request.words.push(self.host_name(&arg.range()));
        Ok(true)
    }

    fn host_sizes(&mut self, n: usize, arg: &Arg, request: &mut Request) -> Read {
        let list = match arg {
            Arg::List(all, _) => all.as_slice(),
            Arg::Int(..) => std::slice::from_ref(arg),
            _ => return Ok(self.is_null(arg)),
        };
        let number = |a: &Arg| match a {
            Arg::Int(n, r) if !self.str(r).starts_with('-') => Some(*n as u64),
            _ => None,
        };
        match list.iter().map(number).collect::<Option<Vec<u64>>>() {
            Some(all) if (1..=3).contains(&all.len()) => {
                request.sizes[n] = Some((all, self.unit.text.span(arg.range())));
                Ok(true)
            }
            _ => self.host_wrong(
                arg,
                self.cannot_stand(arg),
                "one to three numbers that are not negative",
            ),
        }
    }

    /// The name of an event that was not released.
    fn host_event_name(&mut self, arg: &Arg) -> Result<Option<Name>, Wrong> {
        let (Arg::Names(_) | Arg::Address(_)) = arg else {
            return Ok(None);
        };
        let name = self.host_name(&arg.range());
        self.event_lives(&name)?;
        Ok(Some(name))
    }

    fn host_waits(&mut self, arg: &Arg, request: &mut Request) -> Read {
        if matches!(arg, Arg::Int(0, _)) || self.is_null(arg) {
            return Ok(true);
        }
        let Arg::List(all, _) = arg else {
            let name = self.host_event_name(arg)?;
            request.waits.extend(name.clone());
            return Ok(name.is_some());
        };
        for one in all {
            match self.host_event_name(one)? {
                Some(name) => request.waits.push(name),
                None => {
                    return self.host_wrong(one, self.cannot_stand(arg), "the name of an event");
                }
            }
        }
        Ok(true)
    }

    fn host_event(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let Some(name) = self.host_event_name(arg)? else {
            return Ok(false);
        };
        let names = self.host_names();
        if self.runtime() == Some(Runtime::Cuda) && !names.events.contains(&name.word) {
            self.host_unknown(&arg.range(), "event", &names.events);
            return Err(Wrong);
        }
        request.event = Some(name);
        Ok(true)
    }

    fn host_new_event(&mut self, arg: &Arg, request: &mut Request) -> bool {
        if let Arg::Address(range) = arg {
            request.event = Some(self.host_name(range));
        }
        matches!(arg, Arg::Address(_)) || self.is_null(arg)
    }

    fn host_memory(&mut self, n: usize, arg: &Arg, request: &mut Request) -> Read {
        let name = match arg {
            Arg::Names(_) | Arg::Address(_) => arg.range(),
            Arg::Element(name, at, _) => {
                request.first[n] = *at;
                name.clone()
            }
            _ => return Ok(false),
        };
        let range = arg.range();
        let loc = self.host_location(arg, &name)?;
        let whole = matches!(request.does, CallAction::Map | CallAction::Unmap);
        if whole && self.symbols.layout(loc).cells() > 1 {
            let message = format!("`{}` is of a structure", self.str(&name));
            return self.host_report(arg, message, |d| {
                d.label("expected memory of integers")
                    .note("mappings of structures are not supported")
            });
        }
        self.memory_lives(loc, arg)?;
        request.memory[n] = Some((loc, self.unit.text.span(range)));
        Ok(true)
    }

    /// The name of something that a note about its life is about.
    fn host_object(&mut self, arg: &Arg, request: &mut Request) -> bool {
        if let Arg::Names(_) = arg {
            request.event = Some(self.host_name(&arg.range()));
        }
        matches!(arg, Arg::Names(_))
    }

    /// The memory that an operand names.
    fn host_location(&mut self, arg: &Arg, named: &Range<usize>) -> Result<LocId, Wrong> {
        let range = arg.range();
        let name = self.str(named).trim_start_matches('&').trim();
        match self.location(name) {
            Some(loc) => Ok(loc),
            None => {
                let known: Vec<String> = self.symbols.names().map(str::to_string).collect();
                self.host_unknown(&range, "location", &known);
                Err(Wrong)
            }
        }
    }

    fn host_bytes(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let bytes = match arg {
            Arg::Int(n, _) if *n >= 0 => *n as u64,
            Arg::Size(factor, of) if *factor >= 0 => {
                let word = self.str(of);
                let size = match (type_named(word), self.location(word)) {
                    (Some((ty, _)), _) => u64::from(ty.bits) / 8,
                    (None, Some(loc)) => self
                        .symbols
                        .layout(loc)
                        .bytes(self.symbols.object(loc).1.init.len()),
                    _ => {
                        return self.host_wrong(
                            arg,
                            self.cannot_stand(arg),
                            "the size of a type or of memory",
                        );
                    }
                };
                size * *factor as u64
            }
            _ => return Ok(false),
        };
        request.bytes = Some((bytes, self.unit.text.span(arg.range())));
        Ok(true)
    }

    fn host_value(&mut self, arg: &Arg, request: &mut Request) -> bool {
        if let Arg::Int(n, _) = arg {
            request.value = *n;
        }
        matches!(arg, Arg::Int(..))
    }

    fn host_pitch(&mut self, n: usize, arg: &Arg, request: &mut Request) -> bool {
        let Arg::Int(bytes @ 0.., _) = arg else {
            return false;
        };
        request.pitches[n] = *bytes as u64;
        true
    }

    fn host_blocking(&mut self, arg: &Arg, request: &mut Request) -> bool {
        let word = if let Arg::Names(_) = arg {
            self.str(&arg.range())
        } else {
            ""
        };
        let blocks = matches!(word, "CL_TRUE" | "CL_BLOCKING");
        request.blocking |= blocks;
        blocks || matches!(word, "CL_FALSE" | "CL_NON_BLOCKING")
    }

    fn host_words(
        &mut self,
        known: &'static [&str],
        arg: &Arg,
        request: &mut Request,
    ) -> Result<(), Wrong> {
        let expected = match request.does {
            CallAction::SetUser => "`CL_COMPLETE`, or a negative status".to_owned(),
            _ => format!("one of {}", known.join(", ")),
        };
        match arg {
            Arg::Names(all) => {
                for one in all {
                    let word = self.str(one);
                    if !known.contains(&word) {
                        return self.host_report(
                            arg,
                            format!("`{word}` is not allowed here"),
                            |d| {
                                d.label(format!("expected {expected}"))
                                    .did_you_mean(word, known.iter().copied())
                            },
                        );
                    }
                    request.words.push(self.host_name(one));
                }
                Ok(())
            }
            Arg::Int(n, _) if *n < 0 && request.does == CallAction::SetUser => {
                request.value = *n;
                Ok(())
            }
            _ => self.host_wrong(arg, self.cannot_stand(arg), &expected),
        }
    }

    fn host_status(&mut self, arg: &Arg, request: &mut Request) -> Read {
        let Arg::Address(range) = arg else {
            return Ok(false);
        };
        let name = self.host_name(range);
        let Some(Binding::Register(variable)) = self.scopes.find(&name.word) else {
            return self.host_wrong(
                arg,
                self.cannot_stand(arg),
                "the address of a declared register",
            );
        };
        request.status = Some(variable.reg);
        Ok(true)
    }

    fn host_device(&mut self, arg: &Arg, request: &mut Request) -> Result<(), Wrong> {
        let devices = self.host_names().null.len();
        match arg {
            Arg::Int(n, _) if usize::try_from(*n).is_ok_and(|n| n < devices) => {
                request.device = *n as u32;
                Ok(())
            }
            _ => self.host_report(arg, self.cannot_stand(arg), |d| {
                d.label(format!(
                    "expected the number of a device, 0 to {}",
                    devices - 1
                ))
                .note("a device is one that a stream or memory of the test is of")
            }),
        }
    }
}
