//! Refuses calls that a runtime rejects whatever the program does, so that they get no verdict.
//!
//! # Invariants
//! - A call is refused only if it is an error in every order of the calls of several host threads.
//! # Sources
//! - OpenCL API specification: clSetUserEventStatus (CL_INVALID_OPERATION), clEnqueueMapBuffer
//!   (overlapping regions mapped for writing: CL_INVALID_OPERATION), clEnqueueUnmapMemObject
//!   (CL_INVALID_VALUE), clEnqueueCopyBuffer and clEnqueueSVMMemcpy (CL_MEM_COPY_OVERLAP), *Shared
//!   virtual memory*.
//! - CUDA Programming Guide, *Multi-Device System: Stream and Event Behavior*.
//! - CUDA Programming Guide, *Compute Capabilities: Technical Specifications*; the limits used here
//!   are the same for all current devices.
//! - CUDA runtime API, cudaMemcpy: the kind of a copy.

use super::HostDeclarations;
use crate::isa::Symbols;
use crate::isa::clike::host::{CallAction, Name, Request};
use diag::{Diagnostic, Sink, Span};
use program::dialect::Runtime;
use program::host::LaneKind;
use program::{LocId, MemoryKind};

/// The maximum number of threads in a CUDA block.
const BLOCK: u64 = 1024;
/// The maximum size of a CUDA block in z.
const BLOCK_Z: u64 = 64;

/// Reports all misuses.
pub(super) fn report(
    declared: &HostDeclarations,
    requests: &[Vec<Request>],
    symbols: &Symbols,
    sink: &mut Sink,
) {
    let mut misuse = Misuse { symbols, sink };
    for request in requests.iter().flatten() {
        misuse.own_event(request);
        match (declared.runtime, request.does) {
            (Runtime::Cuda, CallAction::Launch) => {
                misuse.block(request);
                misuse.device(declared, request);
            }
            (Runtime::Cuda, CallAction::Copy) => {
                misuse.direction(request);
                misuse.onto_itself(request, "cudaMemcpy: the memory areas may not overlap");
            }
            (Runtime::OpenCl, does) => {
                misuse.memory(request);
                if does == CallAction::Copy {
                    misuse.onto_itself(
                        request,
                        "OpenCL API, clEnqueueCopyBuffer: CL_MEM_COPY_OVERLAP",
                    );
                }
            }
            _ => {}
        }
    }
    misuse.dependent(declared, requests);
    misuse.set_twice(requests);
    misuse.mappings(requests);
}

/// The context of the checks.
struct Misuse<'a> {
    symbols: &'a Symbols,
    sink: &'a mut Sink,
}

impl Misuse<'_> {
    /// Streams with programmatically dependent launches may contain only kernels: CUDA does not
    /// define what such a launch depends on otherwise.
    fn dependent(&mut self, declared: &HostDeclarations, requests: &[Vec<Request>]) {
        let all = || requests.iter().flatten();
        for launch in all().filter(|r| {
            r.kernel
                .map(|k| &declared.kernels[k])
                .is_some_and(|k| k.programmatic)
        }) {
            let Some(lane) = launch.lane else { continue };
            if declared.lanes[usize::from(lane.0)].kind == LaneKind::Null {
                self.error(
                    "unsupported",
                    launch.span,
                    "a dependent launch in a default stream is not supported".into(),
                    |d| d.label("expected a stream of this test"),
                );
                return;
            }
            let passes = [CallAction::Finish, CallAction::Status, CallAction::Release];
            let other = |r: &&Request| {
                r.lane == Some(lane) && r.does != CallAction::Launch && !passes.contains(&r.does)
            };
            if let Some(other) = all().find(other) {
                let (message, first) = (
                    format!(
                        "`{}` in a stream with dependent launches is not supported",
                        other.name
                    ),
                    launch.span,
                );
                self.error("unsupported", other.span, message, |d| {
                    d.label("expected kernels alone in this stream")
                        .also(first, "a launch that depends on the kernel in front of it")
                        .note(
                            "without a kernel before it, CUDA does not define the launch's \
                            dependency",
                        )
                });
                return;
            }
        }
    }

    fn kind(&self, memory: LocId) -> MemoryKind {
        self.symbols.object(memory).1.kind
    }

    fn error(
        &mut self,
        id: &'static str,
        at: Span,
        message: String,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.sink.error(id, at, message, finish);
    }

    /// A command that waits for its own event: the runtime reads the wait list before it creates
    /// the event.
    fn own_event(&mut self, request: &Request) {
        let Some(event) = &request.event else { return };
        let Some(wait) = request.waits.iter().find(|w| w.word == event.word) else {
            return;
        };
        let made = event.span;
        self.error(
            "null-event",
            wait.span,
            format!("`{}` is not an event yet", wait.word),
            |d| {
                d.label("used before the call that makes it")
                    .also(made, "made here")
                    .note("an event that is not valid is an error (OpenCL API: CL_INVALID_EVENT)")
            },
        );
    }

    /// A block that is too large for every device.
    fn block(&mut self, request: &Request) {
        let size = |d: usize| {
            request.sizes[1]
                .as_ref()
                .and_then(|s| s.0.get(d).copied())
                .unwrap_or(1)
        };
        let threads = (0..3).fold(1u64, |all, d| all.saturating_mul(size(d)));
        let (message, expected) = if threads > BLOCK {
            (
                format!("a block of {threads} threads"),
                format!("expected at most {BLOCK}"),
            )
        } else if size(2) > BLOCK_Z {
            (
                format!("a block of {} threads in z", size(2)),
                format!("expected at most {BLOCK_Z}"),
            )
        } else {
            return;
        };
        let at = request.sizes[1].as_ref().map_or(request.span, |s| s.1);
        self.error("bad-range", at, message, |d| {
            d.label(expected)
                .note("such a launch fails (CUDA: cudaErrorInvalidConfiguration)")
        });
    }

    /// A launch into a stream of a device other than the current one.
    fn device(&mut self, declared: &HostDeclarations, request: &Request) {
        let Some(lane) = request.lane.map(|l| &declared.lanes[usize::from(l.0)]) else {
            return;
        };
        if lane.device == request.device || lane.kind == LaneKind::Null {
            return;
        }
        let message = format!("`{}` is a stream of device {}", lane.name, lane.device);
        let (is, of) = (request.device, lane.device);
        self.error("wrong-operand", request.span, message, |d| {
            d.label(format!("the current device is {is}"))
                .note("such a launch fails (CUDA Programming Guide, Stream and Event Behavior)")
                .help(format!("put `cudaSetDevice({of});` in front of it"))
        });
    }

    /// A copy with a kind that contradicts the memory.
    fn direction(&mut self, request: &Request) {
        let Some(word) = request.words.first() else {
            return;
        };
        let (from, to) = match word.word.as_str() {
            "cudaMemcpyHostToHost" => (true, true),
            "cudaMemcpyHostToDevice" => (true, false),
            "cudaMemcpyDeviceToHost" => (false, true),
            _ => (false, false),
        };
        for (memory, of_host) in request.memory.into_iter().zip([to, from]) {
            let Some((memory, span)) = memory else {
                continue;
            };
            if !of_host || !matches!(self.kind(memory), MemoryKind::Device(_)) {
                continue;
            }
            let message = format!(
                "this memory belongs to a GPU, and `{}` needs memory of the host",
                word.word
            );
            let kind = word.span;
            self.error("wrong-operand", span, message, |d| {
                d.label("expected memory of the host")
                    .also(kind, "the direction of the copy")
                    .note(
                        "a direction that contradicts the memory is undefined (CUDA \
                         runtime API, cudaMemcpy)",
                    )
                    .help("`cudaMemcpyDefault` follows the memory")
            });
        }
    }

    fn onto_itself(&mut self, request: &Request, note: &str) {
        let [Some((to, at)), Some((from, _))] = request.memory else {
            return;
        };
        // The ends of parts are known where the call says the bytes.
        let bytes = request.bytes.map_or(u64::MAX, |bytes| bytes.0);
        let size = u64::from(self.symbols.ty(to).bits / 8).max(1);
        let apart = u64::from(request.first[0].abs_diff(request.first[1]));
        if to == from && apart.saturating_mul(size) < bytes {
            self.error(
                "overlapping-copy",
                at,
                "memory is copied onto itself".into(),
                |d| d.label("expected other memory").note(note),
            );
        }
    }

    /// Calls for shared virtual memory on a buffer, and calls for buffers on shared virtual memory.
    fn memory(&mut self, request: &Request) {
        let svm = request.name.starts_with("clEnqueueSVM");
        // A read accesses its source object, every other call its target; the other side is memory
        // of the host.
        let buffers: &[usize] = match request.name.as_str() {
            "clEnqueueReadBuffer" | "clEnqueueReadBufferRect" | "clEnqueueReadImage" => &[1],
            "clEnqueueCopyBuffer"
            | "clEnqueueCopyBufferRect"
            | "clEnqueueCopyImage"
            | "clEnqueueCopyImageToBuffer"
            | "clEnqueueCopyBufferToImage"
            | "clEnqueueSVMMemcpy" => &[0, 1],
            _ => &[0],
        };
        for (memory, span) in buffers.iter().filter_map(|n| request.memory[*n]) {
            let kind = self.kind(memory);
            // Another check reports calls that name variables of kernels.
            if kind == MemoryKind::ProgramScope {
                continue;
            }
            if kind == MemoryKind::Pipe {
                let message = format!("`{}` of a pipe", request.name);
                self.error("wrong-operand", span, message, |d| {
                    d.label("expected a buffer object, or shared virtual memory")
                        .note(
                            "\"Pipe objects are not accessible from the host\" (OpenCL API, Pipes)",
                        )
                });
                continue;
            }
            let of_images = request.name.contains("Image");
            let of_objects = ["clEnqueueUnmapMemObject", "clEnqueueMigrateMemObjects"];
            if let MemoryKind::Image { .. } = kind {
                if !of_images && !of_objects.contains(&request.name.as_str()) {
                    let message = format!("`{}` of an image", request.name);
                    self.error("wrong-operand", span, message, |d| {
                        d.label("expected a buffer object, or shared virtual memory")
                            .help("images have separate calls, such as `clEnqueueReadImage`")
                    });
                }
                continue;
            }
            let (expected, help) = match (svm, kind == MemoryKind::Buffer) {
                (true, true) => (
                    "expected shared virtual memory",
                    "such as the kind `svm-coarse`",
                ),
                (false, false) => (
                    "expected a buffer object",
                    "such memory has separate calls, `clEnqueueSVM…`",
                ),
                _ => continue,
            };
            let is = if svm {
                "a buffer object"
            } else {
                "shared virtual memory"
            };
            let message = format!("`{}` of {is}", request.name);
            self.error("wrong-operand", span, message, |d| {
                d.label(expected).help(help)
            });
        }
    }

    /// A user event is set more than once.
    fn set_twice(&mut self, requests: &[Vec<Request>]) {
        let mut first: Vec<&Name> = Vec::new();
        for request in requests
            .iter()
            .flatten()
            .filter(|r| r.does == CallAction::SetUser)
        {
            let Some(event) = &request.event else {
                continue;
            };
            let Some(before) = first.iter().find(|f| f.word == event.word) else {
                first.push(event);
                continue;
            };
            let before = before.span;
            self.error(
                "set-twice",
                event.span,
                format!("the user event `{}` is set twice", event.word),
                |d| {
                    d.label("expected it to be set once")
                        .also(before, "set here, too")
                        .note("OpenCL API, clSetUserEventStatus: CL_INVALID_OPERATION")
                },
            );
        }
    }

    /// The number of elements that a mapping has.
    fn elements(&self, request: &Request, memory: LocId) -> u32 {
        let layout = self.symbols.layout(memory);
        let all = self.symbols.object(memory).1.init.len() / layout.cells();
        let given = request
            .bytes
            .map(|bytes| bytes.0 / layout.bytes(layout.cells()));
        given.map_or(all as u64, |elements| elements.min(all as u64)) as u32
    }

    /// Mappings of an object that only one host thread maps, since their order is known.
    fn mappings(&mut self, requests: &[Vec<Request>]) {
        for (t, thread) in requests.iter().enumerate() {
            let mut open: Vec<OpenMapping> = Vec::new();
            for request in thread {
                let Some(memory) = mapped_memory(request) else {
                    continue;
                };
                if requests.iter().enumerate().any(|(u, other)| {
                    u != t && other.iter().any(|r| mapped_memory(r) == Some(memory))
                }) {
                    continue;
                }
                let at = request.memory[0].map_or(request.span, |m| m.1);
                if request.does == CallAction::Map {
                    let writes = request
                        .words
                        .iter()
                        .any(|w| w.word.starts_with("CL_MAP_WRITE"));
                    let mapping = OpenMapping {
                        memory,
                        at,
                        writes,
                        first: request.first[0],
                        elements: self.elements(request, memory),
                    };
                    let other = open
                        .iter()
                        .find(|o| o.writes && writes && o.overlaps(&mapping))
                        .map(|o| o.at);
                    if let Some(other) = other {
                        self.error(
                            "mapped-twice",
                            at,
                            "this is mapped for writing already".into(),
                            |d| {
                                d.label("expected the other mapping to end first")
                                    .also(other, "mapped here")
                                    .note(
                                        "overlapping regions mapped for writing are an error \
                                         (CL_INVALID_OPERATION)",
                                    )
                            },
                        );
                    }
                    open.push(mapping);
                } else if let Some(n) = open
                    .iter()
                    .position(|o| o.memory == memory && o.first == request.first[0])
                {
                    open.remove(n);
                } else {
                    self.error("not-mapped", at, "this is not mapped".into(), |d| {
                        d.label("expected a mapping before it ends")
                            .note("OpenCL API, clEnqueueUnmapMemObject: CL_INVALID_VALUE")
                    });
                }
            }
        }
    }
}

/// A mapping that has not ended.
struct OpenMapping {
    memory: LocId,
    /// The place of the call.
    at: Span,
    writes: bool,
    first: u32,
    elements: u32,
}

impl OpenMapping {
    fn overlaps(&self, other: &OpenMapping) -> bool {
        let end = |mapping: &OpenMapping| mapping.first.saturating_add(mapping.elements);
        self.memory == other.memory && self.first < end(other) && other.first < end(self)
    }
}

fn mapped_memory(r: &Request) -> Option<LocId> {
    r.memory[0]
        .filter(|_| matches!(r.does, CallAction::Map | CallAction::Unmap))
        .map(|m| m.0)
}
