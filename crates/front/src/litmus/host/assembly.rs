//! Tests with kernels in PTX and a host in CUDA C++: once all threads exist, this file maps those
//! in CUDA C++ to PTX.
//!
//! # Invariants
//! - Models see only PTX: the current mapping from CUDA C++ lowers the host's accesses.
//! # Sources
//! - NVIDIA, *PTX Writer's Guide to Interoperability*, Atomics ABI, for the host's accesses
//!   ([`crate::mapping`]).
//! - PTX ISA, Memory Consistency Model, *Proxies*: a C++ access goes through the generic proxy.
//! - CUDA C++ Programming Guide, *Variable Memory Space Specifiers*: the host has no shared memory.

use crate::isa::ptx;
use crate::isa::ptx::{PtxCode, pointers};
use crate::isa::{OpenObjects, Symbols};
use crate::mapping::Mapping;
use diag::{Sink, Span};
use program::{Expr, LocId, LocationKind, Program, Proxy, ThreadId};

/// The code of kernels in PTX.
pub(in crate::litmus) struct PtxKernels {
    pub(in crate::litmus) units: Vec<PtxCode>,
    /// The settings for reading the code.
    pub(in crate::litmus) env: ptx::PtxEnv,
}

impl PtxKernels {
    /// Memory gets the type of the kernels' accesses; the host's accesses follow it.
    pub(super) fn settle_types(&self, symbols: &mut Symbols, sink: &mut Sink) {
        for unit in &self.units {
            unit.settle_types(self.env.strict, symbols, sink);
        }
    }
}

/// Maps the whole program to PTX. `untyped`: for each thread in PTX, its accesses without a type;
/// `open`: objects whose declarations leave something open.
pub(super) fn in_ptx(
    program: Program,
    untyped: &[Option<Vec<usize>>],
    open: &OpenObjects,
    sink: &mut Sink,
) -> Program {
    let errors = sink.errors();
    let of_kernel = |t: ThreadId| untyped[usize::from(t.0)].is_some();
    for t in program.thread_ids().filter(|t| !of_kernel(*t)) {
        for instr in &program.thread(t).code {
            if let Some(loc) = instr.op.address().and_then(Expr::base) {
                reachable(&program, loc, instr.span, sink);
            }
        }
    }
    let mapping = Mapping::current(program.dialect).expect("CUDA C++ maps to PTX");
    let mut mapped = match mapping.lower_where(&program, |t| !of_kernel(t)) {
        Ok(mapped) => mapped,
        Err(all) => {
            for unmapped in all {
                let message = "the host's code has no counterpart in PTX here";
                sink.error("unsupported", unmapped.span, message, |d| {
                    d.label("expected plain, volatile or atomic accesses and fences")
                        .note(format!("mapping `{}`: {}", mapping.name, unmapped.rule))
                });
            }
            return program;
        }
    };
    if sink.errors() == errors {
        pointers::resolve(&mut mapped, untyped, open, sink);
    }
    mapped
}

/// Reports memory that an access or a copy of the host cannot reach.
fn reachable(program: &Program, loc: LocId, span: Span, sink: &mut Sink) {
    let name = &program.location(loc).name;
    if let LocationKind::Alias { proxy, .. } = program.location(loc).kind
        && proxy != Proxy::Generic
    {
        let of = &program.location(program.object(loc)).name;
        sink.error(
            "wrong-proxy",
            span,
            format!("`{name}` is the memory of `{of}` through another proxy"),
            |d| {
                d.label("the host and copies have the generic proxy alone")
                    .help(format!("name the memory itself: `{of}`"))
            },
        );
    }
    if program.is_shared(program.object(loc)) {
        sink.error(
            "wrong-space",
            span,
            format!("`{name}` is shared memory, of which each CTA has its own"),
            |d| {
                d.label("neither the host nor a copy reaches it")
                    .help("let the kernel copy the values that the host needs to global memory")
            },
        );
    }
}
