//! Calls that enqueue commands: the command, its wait list, its range, and whether the call waits.
//!
//! # Sources
//! - OpenCL API specification, clEnqueueNDRangeKernel, *Mapping Work-items Onto an ND-range*;
//!   clEnqueueMapBuffer.
//! - CUDA runtime API, *Execution Control*; CUDA driver API, *API synchronization behavior*,
//!   Memcpy.

use super::HostBuilder;
use super::bodies::{Body, CopiedCell, MapWrites, Mapping};
use super::events::enqueues;
use crate::isa::clike::host::{CallAction, Request};
use crate::litmus::demands::{check_block, check_clusters};
use crate::litmus::host::RoutineCode;
use crate::litmus::places::MAX_THREADS;
use program::dialect::Runtime;
use program::host::{CallId, CommandId, CommandKind, CommandOrigin, HostCommand, HostOp};
use program::{Layout, LocId, MemoryKind, NdRange, RangeError, ThreadId};

/// Whether a call has a flag or constant with that name.
pub(super) fn has_word(request: &Request, word: &str) -> bool {
    request.words.iter().any(|w| w.word == word)
}

/// A list of sizes of a launch, by its number in the call.
fn sizes(request: &Request, n: usize) -> Option<&[u64]> {
    request.sizes[n].as_ref().map(|s| s.0.as_slice())
}

/// The place of a list of sizes, or else of the call.
fn sizes_at(request: &Request, n: usize) -> diag::Span {
    request.sizes[n].as_ref().map_or(request.span, |s| s.1)
}

impl HostBuilder<'_, '_> {
    /// Lowers a call that enqueues a command.
    pub(super) fn enqueue(
        &mut self,
        from: (ThreadId, usize),
        at: CallId,
        request: &Request,
    ) -> Option<HostOp> {
        assert!(enqueues(request.does), "every other call was seen to");
        let id = CommandId(self.host.commands.len() as u16);
        let context = request
            .lane
            .and_then(|l| self.declared.contexts.get(usize::from(l.0)));
        let context = context
            .filter(|_| self.declared.runtime == Runtime::OpenCl)
            .cloned();
        let mut waits = Vec::new();
        for name in &request.waits {
            waits.push(
                self.events
                    .find(name, from, context.as_deref(), self.sink)?,
            );
        }
        let device = request.lane.map_or(0, |l| self.host.lane(l).device);
        let mut blocking = request.blocking;
        let (kind, (threads, groups)) = self.command(from, device, request, &mut blocking)?;
        let kernel = request.kernel.map(|k| &self.declared.kernels[k]);
        let name = match (request.does, kernel) {
            (CallAction::Launch, Some(kernel)) => kernel.name.clone(),
            _ => request.name.clone(),
        };
        if self.bodies.too_many(request, self.sink) {
            return None;
        }
        let lane = request
            .lane
            .filter(|_| !matches!(kind, CommandKind::Callback { .. }));
        let origin = CommandOrigin::Call(at);
        let programmatic = request
            .kernel
            .is_some_and(|k| self.declared.kernels[k].programmatic);
        self.host.commands.push(HostCommand {
            name,
            kind,
            lane,
            waits,
            origin,
            threads,
            groups,
            programmatic,
        });
        Some(HostOp::Enqueue {
            command: id,
            blocking,
        })
    }

    /// The kind of a command with its threads. Clears `blocking` if a copy of CUDA returns early.
    fn command(
        &mut self,
        from: (ThreadId, usize),
        device: u32,
        request: &Request,
        blocking: &mut bool,
    ) -> Option<(CommandKind, Body)> {
        Some(match request.does {
            CallAction::Launch => {
                let kernel = request.kernel?;
                let range = self.range(request)?;
                (
                    CommandKind::Kernel,
                    self.bodies.kernel(kernel, range, device),
                )
            }
            CallAction::Copy => {
                let (to, source) = (request.memory[0]?, request.memory[1]?);
                let cells = self.cells(request, to.0, source.0)?;
                if self.declared.runtime == Runtime::Cuda {
                    *blocking = *blocking && self.synchronous(request, to.0, source.0)?;
                }
                let memory = [Some(source.0), Some(to.0)];
                (
                    CommandKind::Copy,
                    self.bodies.copy(request, memory, &cells, device),
                )
            }
            CallAction::CopyRect => {
                let (to, source) = (request.memory[0]?, request.memory[1]?);
                let cells = self.rectangle(request, to.0, source.0)?;
                let memory = [Some(source.0), Some(to.0)];
                (
                    CommandKind::Copy,
                    self.bodies.copy(request, memory, &cells, device),
                )
            }
            CallAction::Migrate => (CommandKind::Copy, Body::default()),
            CallAction::Fill => {
                let to = request.memory[0]?.0;
                let cells = self.cells(request, to, to)?;
                (
                    CommandKind::Copy,
                    self.bodies.copy(request, [None, Some(to)], &cells, device),
                )
            }
            CallAction::Map | CallAction::Unmap => {
                let memory = request.memory[0]?.0;
                let kind = if request.does == CallAction::Map {
                    CommandKind::Map
                } else {
                    CommandKind::Unmap
                };
                let mapping = self.mapping(request, memory)?;
                let mut part = request.clone();
                (part.first[0], part.bytes) = (mapping.first, mapping.bytes);
                let cells = self.cells(&part, memory, memory)?;
                if kind == CommandKind::Map {
                    self.bodies.opens(memory, mapping);
                }
                (
                    kind,
                    self.bodies
                        .map(request, memory, mapping.writes, &cells, device),
                )
            }
            CallAction::Marker => (CommandKind::Marker, Default::default()),
            CallAction::Barrier => (CommandKind::Barrier, Default::default()),
            CallAction::HostFunction => (
                CommandKind::HostFunction,
                self.bodies.function(request.function?),
            ),
            _ => {
                let of = self
                    .events
                    .find(request.event.as_ref()?, from, None, self.sink)?;
                let complete = request.words.iter().any(|w| w.word == "CL_COMPLETE");
                (
                    CommandKind::Callback { of, complete },
                    self.bodies.function(request.function?),
                )
            }
        })
    }

    /// The index space of a launch.
    pub(super) fn range(&mut self, request: &Request) -> Option<NdRange> {
        let range = match self.declared.runtime {
            Runtime::Cuda => self.grid(request),
            Runtime::OpenCl => self.nd_range(request),
        }?;
        let kernel = &self.declared.kernels[request.kernel?];
        check_clusters(&kernel.layout, &range, sizes_at(request, 0), self.sink)?;
        if let RoutineCode::C(unit, env) = &kernel.text {
            check_block(unit, env.language, &range, self.sink)?;
        }
        Some(range)
    }

    /// The index space of a CUDA launch.
    fn grid(&mut self, request: &Request) -> Option<NdRange> {
        let grid = sizes(request, 0).unwrap_or(&[1]);
        let block = sizes(request, 1).unwrap_or(&[1]);
        for (n, sizes) in [(0, grid), (1, block)] {
            if sizes.contains(&0) {
                let at = sizes_at(request, n);
                self.sink
                    .error("empty-range", at, "a launch of no threads", |d| {
                        d.label("expected positive numbers").note(
                            "an empty grid or block is an error (CUDA: \
                             cudaErrorInvalidConfiguration)",
                        )
                    });
                return None;
            }
        }
        // If a product saturates, there are too many threads in any case.
        let global: Vec<u64> = (0..grid.len().max(block.len()))
            .map(|d| {
                let [blocks, threads] = [grid, block].map(|list| list.get(d).copied().unwrap_or(1));
                blocks.saturating_mul(threads)
            })
            .collect();
        let range =
            NdRange::new(&global, block, &[]).expect("blocks that are not empty, without offset");
        self.bounded(range, request, sizes_at(request, 0))
    }

    /// The index space of an OpenCL launch.
    fn nd_range(&mut self, request: &Request) -> Option<NdRange> {
        let global = sizes(request, 1).unwrap_or(&[1]);
        self.check_sizes(request, global)?;
        // Without a local size, no word of the kernel depends on the choice.
        let ones = vec![1; global.len()];
        let local = sizes(request, 2).unwrap_or(&ones);
        let offset = sizes(request, 0).unwrap_or(&[]);
        let range = match NdRange::new(global, local, offset) {
            Ok(range) => range,
            Err(error) => {
                let (n, expected, note) = match error {
                    RangeError::Overflow(_) => (
                        0,
                        "expected an offset for which every global id fits 64 bits",
                        "OpenCL API, clEnqueueNDRangeKernel: CL_INVALID_GLOBAL_OFFSET",
                    ),
                    _ => (
                        2,
                        "expected positive numbers",
                        "OpenCL API, clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE",
                    ),
                };
                let at = sizes_at(request, n);
                self.sink.error("bad-range", at, error.to_string(), |d| {
                    d.label(expected).note(note)
                });
                return None;
            }
        };
        if self.is_uniform(request) {
            self.check_full_groups(request, &range)?;
        }
        let at = sizes_at(request, 1);
        if global.contains(&0) {
            self.sink
                .warn("empty-range", at, "a range of no work-items", |d| {
                    d.label("this command does nothing")
                        .note("before OpenCL 2.1 it is an error (CL_INVALID_GLOBAL_WORK_SIZE)")
                });
        }
        self.bounded(range, request, at)
    }

    /// Reports sizes with different numbers of dimensions, and a missing local size that matters.
    fn check_sizes(&mut self, request: &Request, global: &[u64]) -> Option<()> {
        let first = sizes_at(request, 1);
        for n in [0, 2] {
            let dimensions = sizes(request, n).map_or(global.len(), <[u64]>::len);
            if dimensions != global.len() {
                let message = format!(
                    "{dimensions} dimensions here, {} in the global size",
                    global.len()
                );
                let at = sizes_at(request, n);
                self.sink.error("bad-range", at, message, |d| {
                    d.label("expected as many numbers")
                        .also(first, "the global size")
                });
                return None;
            }
        }
        let chosen = sizes(request, 2).is_none() && global.iter().any(|g| *g > 1);
        if let Some(word) = self.word_of_groups(request).filter(|_| chosen) {
            let message = "the size of the work-groups is not given";
            self.sink.error("bad-range", first, message, |d| {
                d.label("expected a local size behind the global one")
                    .note(format!(
                        "without one, the implementation chooses it, and the program may depend on \
                         the choice: its kernel names `{word}`"
                    ))
            });
            return None;
        }
        Some(())
    }

    /// The word by which a kernel may depend on its work-groups.
    fn word_of_groups(&self, request: &Request) -> Option<String> {
        match &self.declared.kernels[request.kernel?].text {
            RoutineCode::C(unit, _) => unit.word_of_groups(),
            RoutineCode::Ptx { .. } => None,
        }
    }

    /// Reports a work-group that is not full.
    fn check_full_groups(&mut self, request: &Request, range: &NdRange) -> Option<()> {
        let Some(d) = range.remainder() else {
            return Some(());
        };
        let (size, group) = (range.global()[d], range.local()[d]);
        let message =
            format!("in dimension {d}, {size} work-items are not whole work-groups of {group}");
        let code = match request.does {
            CallAction::EnqueueKernel => "OpenCL C, enqueue_kernel: CLK_INVALID_NDRANGE",
            _ => "OpenCL API, clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE",
        };
        let (first, at) = (sizes_at(request, 1), sizes_at(request, 2));
        self.sink.error("bad-range", at, message, |diagnostic| {
            diagnostic
                .label(format!("the global size has to be a multiple of {group}"))
                .also(first, "the global size")
                .note(format!(
                    "the kernel is `uniform`, as built with `-cl-uniform-work-group-size` ({code})"
                ))
                .help("without `uniform = true`, the last work-group may be smaller")
        });
        None
    }

    /// Whether all work-groups of the launched kernel must be full.
    fn is_uniform(&self, request: &Request) -> bool {
        request
            .kernel
            .is_some_and(|k| self.declared.kernels[k].uniform)
    }

    fn bounded(&mut self, range: NdRange, request: &Request, at: diag::Span) -> Option<NdRange> {
        if range.count().is_some_and(|n| n <= MAX_THREADS as u64) {
            return Some(range);
        }
        let message = format!("a test has at most {MAX_THREADS} threads");
        let name = &request.name;
        self.sink.error("too-many-threads", at, message, |d| {
            d.label(format!("`{name}` has more"))
        });
        None
    }

    /// The cells that a copy copies, or that a fill writes: then `from` is `to`.
    fn cells(&mut self, request: &Request, to: LocId, from: LocId) -> Option<Vec<CopiedCell>> {
        let [target, source] = [to, from].map(|memory| self.bodies.layout(memory));
        let ta = target.field(0).ty;
        let span = request.bytes.map_or(request.span, |b| b.1);
        if !target.is_alike(&source) {
            self.sink.error(
                "mixed-size",
                span,
                "a copy between elements of different sizes",
                |d| d.label(format!("expected two types of {} bits", ta.bits)),
            );
            return None;
        }
        let behind = |memory, n: usize| {
            let all: u32 = self.bodies.elements(memory);
            all.saturating_sub(request.first[n])
        };
        let a = behind(to, 0);
        let b = if from == to { a } else { behind(from, 1) };
        let whole = u64::from(a.min(b));
        let size = target.bytes(target.cells());
        let bytes = request.bytes.map_or(whole * size, |b| b.0);
        let elements = bytes / size;
        let sizes_differ = request.bytes.is_none() && a != b;
        if !bytes.is_multiple_of(size) || elements > whole || elements == 0 || sizes_differ {
            let message = "the size differs from that of the memory";
            self.sink.error("bad-number", span, message, |d| {
                d.label(format!(
                    "expected up to {} bytes, in elements of {size}",
                    whole * size
                ))
            });
            return None;
        }
        let starts = |layout: &Layout, n: usize| layout.cells() as u32 * request.first[n];
        let (a, b) = (
            starts(&target, 0),
            starts(&source, if from == to { 0 } else { 1 }),
        );
        let count = u32::try_from(elements).ok()? * target.cells() as u32;
        let cell = |at: u32| CopiedCell {
            to: target.offset(a + at),
            from: source.offset(b + at),
            ty: target.field(at).ty,
        };
        Some((0..count).map(cell).collect())
    }

    /// Whether a `cudaMemcpy` returns only after it is complete.
    fn synchronous(&mut self, request: &Request, to: LocId, from: LocId) -> Option<bool> {
        let (a, b) = (self.bodies.kind(to), self.bodies.kind(from));
        let word = request
            .words
            .first()
            .map_or("cudaMemcpyDefault", |w| w.word.as_str());
        let kind = match (word, is_host_memory(b), is_host_memory(a)) {
            ("cudaMemcpyDefault", true, true) => "cudaMemcpyHostToHost",
            ("cudaMemcpyDefault", true, false) => "cudaMemcpyHostToDevice",
            ("cudaMemcpyDefault", false, true) => "cudaMemcpyDeviceToHost",
            ("cudaMemcpyDefault", false, false) => "cudaMemcpyDeviceToDevice",
            (word, ..) => word,
        };
        match kind {
            "cudaMemcpyHostToHost" | "cudaMemcpyDeviceToHost" => Some(true),
            "cudaMemcpyHostToDevice" if matches!(b, MemoryKind::System | MemoryKind::File) => {
                self.sink.error(
                    "unsupported",
                    request.span,
                    "copies from pageable memory are not supported",
                    |d| {
                        d.label("such a call returns once the memory is staged")
                            .help("give the source the kind `mapped`, which is pinned memory")
                    },
                );
                None
            }
            "cudaMemcpyHostToDevice" => Some(b == MemoryKind::Mapped),
            _ => Some(false),
        }
    }

    /// The mapping that a call makes or ends.
    fn mapping(&mut self, request: &Request, memory: LocId) -> Option<Mapping> {
        let (first, bytes) = (request.first[0], request.bytes);
        if request.does != CallAction::Map {
            return Some(self.bodies.closes(memory, first));
        }
        let invalidates = has_word(request, "CL_MAP_WRITE_INVALIDATE_REGION");
        if invalidates && request.words.len() > 1 {
            let message = "`CL_MAP_WRITE_INVALIDATE_REGION` is combined with another flag";
            self.sink
                .error("wrong-operands", request.span, message, |d| {
                    d.label("expected this flag alone, or others without it")
                        .note("they are mutually exclusive (OpenCL API, clEnqueueMapBuffer)")
                });
            return None;
        }
        let writes = if invalidates {
            MapWrites::Discards
        } else if has_word(request, "CL_MAP_WRITE") {
            MapWrites::SameValues
        } else {
            MapWrites::Nothing
        };
        Some(Mapping {
            writes,
            first,
            bytes,
        })
    }
}

fn is_host_memory(kind: MemoryKind) -> bool {
    matches!(
        kind,
        MemoryKind::Mapped | MemoryKind::System | MemoryKind::File
    )
}
