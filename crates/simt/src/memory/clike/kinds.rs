//! CUDA's kinds of memory: the allocator of a location decides whether operations at system scope
//! are atomic.
//!
//! For some kinds it also depends on the concurrent accesses to the location, so only the whole
//! execution decides. Such programs are refused.
//!
//! Source: NVIDIA, libcu++, "Memory model", Atomicity.

use crate::code::Code;
use program::{MemoryKind, Scope};

/// The operations that are atomic at system scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomicity {
    Nothing,
    /// Loads and stores, but no read-modify-writes.
    Simple,
    Everything,
}

impl Atomicity {
    /// Whether an operation at system scope is atomic.
    pub(super) fn holds(self, updates: bool) -> bool {
        self == Atomicity::Everything || (self == Atomicity::Simple && !updates)
    }
}

/// The atomicity of every location.
///
/// # Errors
/// If it depends on the execution.
pub(super) fn all(code: &Code) -> Result<Vec<Atomicity>, String> {
    let machine = &code.program.machine;
    let asks = code
        .threads
        .iter()
        .flat_map(|t| &t.acts)
        .any(|a| a.accesses().any(|a| a.atomic && a.scope == Scope::Sys));
    fn when(all: bool) -> Atomicity {
        if all {
            Atomicity::Everything
        } else {
            Atomicity::Nothing
        }
    }
    let one = |(loc, l): (usize, &crate::code::PhysicalLocation)| {
        let users = || {
            (0..code.threads.len())
                .filter(|&t| loc >= 128 || code.threads[t].reach[0] >> loc & 1 != 0)
                .map(|t| &code.program.threads[t].place)
        };
        Ok(match l.kind {
            MemoryKind::Private
            | MemoryKind::Buffer
            | MemoryKind::Image { .. }
            | MemoryKind::Pipe
            | MemoryKind::SvmCoarse
            | MemoryKind::SvmFine
            | MemoryKind::SvmFineAtomic
            | MemoryKind::SvmSystem
            | MemoryKind::ProgramScope => Atomicity::Everything,
            MemoryKind::System => when(machine.supports("pageableMemoryAccess")),
            MemoryKind::File => when(
                machine.supports("pageableMemoryAccess")
                    && machine.supports("pageableMemoryAccessUsesHostPageTables"),
            ),
            MemoryKind::Managed => when(machine.supports("concurrentManagedAccess")),
            MemoryKind::Mapped if machine.supports("hostNativeAtomicSupported") => {
                Atomicity::Everything
            }
            MemoryKind::Mapped => Atomicity::Simple,
            MemoryKind::Device(_) => {
                let host = users().any(|p| p.host);
                let several = users().any(|p| users().any(|q| p.gpu != q.gpu));
                if asks && (host || (several && machine.p2p.is_some())) {
                    return Err(
                        "not in this machine: operations at system scope on memory of a GPU that \
                            the host, or a GPU without native atomics, may access"
                            .into(),
                    );
                }
                Atomicity::Everything
            }
        })
    };
    code.locations.iter().enumerate().map(one).collect()
}
