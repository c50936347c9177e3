//! Lowers runtime calls in kernel code: OpenCL C's device-side enqueue, and CUDA's device-side
//! launches.
//!
//! A thread of a kernel makes such a call exactly once on every path, or not at all. The lowering
//! decides branches on the thread's position in the index space, and drops the calls in branches
//! not taken.
//!
//! # Sources
//! - OpenCL C, *Enqueuing Kernels*, *Determining when a Child Kernel Begins Execution*, *Event
//!   Functions*.
//! - CUDA Programming Guide, *CUDA Dynamic Parallelism*: device runtime streams, fire-and-forget
//!   and tail launch.

use std::ops::Range;

use super::lower::Wrong;
use super::{Name, Request};
use crate::isa::clike::ast::Arg;
use crate::isa::clike::lower::Lowering;
use program::Space;

/// The names of CUDA's device streams.
const STREAMS: [&str; 2] = ["cudaStreamFireAndForget", "cudaStreamTailLaunch"];

impl Lowering<'_, '_> {
    /// Reads a stream in device code. Streams of the host are not allowed.
    pub(super) fn device_stream(
        &mut self,
        arg: &Arg,
        request: &mut Request,
    ) -> Result<bool, Wrong> {
        let range = arg.range();
        let word = self.str(&range).to_string();
        if matches!(arg, Arg::Int(0, _)) || word == "NULL" || word == "nullptr" {
            return Ok(true);
        }
        if let Some(known) = STREAMS.iter().find(|s| **s == word) {
            request.words.push(Name {
                word: (*known).to_string(),
                span: self.unit.text.span(range),
            });
            return Ok(true);
        }
        self.error(
            "wrong-operand",
            &range,
            format!("`{word}` is not allowed here"),
            |d| {
                d.label("expected no stream, `cudaStreamFireAndForget` or `cudaStreamTailLaunch`")
                    .note(
                        "streams of the host are unknown to the device; streams made by kernels \
                        are not supported",
                    )
                    .did_you_mean(&word, STREAMS)
            },
        );
        Err(Wrong)
    }

    /// Reads a device queue: the default one, or a name for it. All act alike, since all are out of
    /// order.
    pub(super) fn device_queue(&mut self, arg: &Arg) -> Result<bool, Wrong> {
        let Arg::Names(_) = arg else { return Ok(false) };
        let range = arg.range();
        let word = self.str(&range).to_string();
        if word.starts_with("get_default_queue") || self.host.queues.contains(&word) {
            return Ok(true);
        }
        let known = self.host.queues.clone();
        self.error(
            "wrong-operand",
            &range,
            format!("`{word}` is not a queue of the device"),
            |d| {
                d.label("expected `get_default_queue()`, or a name for it")
                    .help("declare one as in `queue_t q = get_default_queue();`")
                    .did_you_mean(&word, known.iter().map(String::as_str))
            },
        );
        Err(Wrong)
    }

    /// Reads an index space, `ndrange_1D(offset, global, local)`. With two sizes, the offset is
    /// missing; with one, the local size is missing, too.
    pub(super) fn device_range(&mut self, arg: &Arg, request: &mut Request) -> Result<bool, Wrong> {
        let Arg::Range(dimensions, parts, range) = arg else {
            return Ok(false);
        };
        let mut lists: Vec<Vec<u64>> = Vec::new();
        for part in parts {
            let items = match part {
                Arg::List(all, _) => all.as_slice(),
                one => std::slice::from_ref(one),
            };
            fn number(a: &Arg) -> Option<u64> {
                match a {
                    Arg::Int(n, _) => u64::try_from(*n).ok(),
                    _ => None,
                }
            }
            match items.iter().map(number).collect::<Option<Vec<u64>>>() {
                Some(all) if all.len() == *dimensions => lists.push(all),
                _ => {
                    self.error("wrong-operand", &part.range(), "this is not a size", |d| {
                        d.label(match dimensions {
                            1 => "expected a number that is not negative".to_string(),
                            n => format!("expected {n} numbers, as in `{{2, 2}}`"),
                        })
                    });
                    return Err(Wrong);
                }
            }
        }
        let places: &[usize] = match lists.len() {
            1 => &[1],
            2 => &[1, 2],
            3 => &[0, 1, 2],
            _ => {
                self.error(
                    "wrong-operands",
                    range,
                    "an index space has up to three sizes",
                    |d| {
                        d.label(
                            "expected `(global)`, `(global, local)` or `(offset, global, local)`",
                        )
                    },
                );
                return Err(Wrong);
            }
        };
        let span = self.unit.text.span(Range {
            start: range.start,
            end: range.end,
        });
        for (place, list) in places.iter().zip(lists) {
            request.sizes[*place] = Some((list, span));
        }
        Ok(true)
    }

    /// Takes the size of the next local memory that a block passes to its kernel. The memory is
    /// declared in the test, with that size.
    pub(super) fn device_local(&mut self, arg: &Arg, request: &mut Request) -> Result<(), Wrong> {
        let (Some((bytes, _)), false) = (request.bytes.take(), request.locals.is_empty()) else {
            let message = "this is the size of no local memory";
            return self.host_wrong(
                arg,
                message,
                "a parameter `local void *` of the block for it",
            );
        };
        let local = request.locals.remove(0);
        let object = self
            .location(&local.word)
            .map(|loc| self.symbols.object(loc).1);
        let size = object
            .filter(|object| object.space == Space::Shared)
            .map(|object| object.layout().bytes(object.init.len()));
        match size {
            Some(size) if size == bytes => Ok(()),
            Some(size) => {
                let message = format!("`{}` has {size} bytes", local.word);
                self.host_wrong(arg, message, "its size")
            }
            None => {
                let message = format!("there is no local memory `{}`", local.word);
                let expected = "a parameter with the name of local memory of the test";
                self.host_wrong(arg, message, expected)
            }
        }
    }

    /// Whether the code is that of an OpenCL or CUDA kernel.
    pub(super) fn is_kernel_code(&self) -> bool {
        self.env.host.as_ref().is_some_and(|names| names.of_kernel) && self.runtime().is_some()
    }
}
