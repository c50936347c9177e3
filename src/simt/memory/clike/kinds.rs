//! Kinds of memory. CUDA: whether operations at system scope are atomic, by who allocated the memory. OpenCL: who may share
//! it.
//!
//! Where that depends on who else accesses the location concurrently, only the whole execution knows: such programs are
//! refused.
//!
//! Source: NVIDIA, libcu++, "Memory model", Atomicity.

use std::collections::BTreeMap;

use crate::program::host::CommandKind;
use crate::program::{LocId, MemoryKind, Scope, ThreadId};
use crate::simt::code::{Access, Act, Code};

/// What is atomic at system scope.
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

/// That of every location.
///
/// # Errors
/// If it depends on the execution.
pub(super) fn all(code: &Code) -> Result<Vec<Atomicity>, String> {
    let machine = &code.program.machine;
    let wide = |a: &Access| a.atomic && a.scope == Scope::Sys;
    let asks = code.threads.iter().flat_map(|t| &t.acts).any(|a| match a {
        Act::Load { access, .. } | Act::Store { access, .. } => wide(access),
        Act::Rmw { read, .. } => wide(read),
        _ => false,
    });
    let when = |all: bool| if all { Atomicity::Everything } else { Atomicity::Nothing };
    let one = |(loc, l): (usize, &crate::simt::code::Location)| {
        let users = || {
            let reaches = |&t: &usize| loc >= 128 || code.threads[t].reach[0] >> loc & 1 != 0;
            (0..code.threads.len()).filter(reaches).map(|t| &code.program.threads[t].place)
        };
        Ok(match l.kind {
            MemoryKind::Private
            | MemoryKind::Buffer
            | MemoryKind::SvmCoarse
            | MemoryKind::SvmFine
            | MemoryKind::SvmFineAtomic
            | MemoryKind::SvmSystem => Atomicity::Everything,
            MemoryKind::System => when(machine.has("pageableMemoryAccess")),
            MemoryKind::File => {
                when(machine.has("pageableMemoryAccess") && machine.has("pageableMemoryAccessUsesHostPageTables"))
            }
            MemoryKind::Managed => when(machine.has("concurrentManagedAccess")),
            MemoryKind::Mapped if machine.has("hostNativeAtomicSupported") => Atomicity::Everything,
            MemoryKind::Mapped => Atomicity::Simple,
            MemoryKind::Device(_) => {
                let host = users().any(|p| p.host);
                let several = users().any(|p| users().any(|q| p.gpu != q.gpu));
                if asks && (host || (several && machine.p2p.is_some())) {
                    return Err(
                        "not in this machine: operations at system scope on memory of a GPU that the host, or \
                                a GPU without native atomics, may access"
                            .into(),
                    );
                }
                Atomicity::Everything
            }
        })
    };
    code.locations.iter().enumerate().map(one).collect()
}

/// OpenCL: whether every execution is one that this memory knows the rules of.
///
/// # Errors
/// If kernel instances use one buffer in a way that implementations settle, several devices use one object that is no
/// fine-grained memory, or memory is mapped to the host.
///
/// Source: Khronos, OpenCL API specification, Memory Model, Shared Virtual Memory; Memory Ordering Rules, Host-side and
/// Device-side Commands.
pub(super) fn shared(code: &Code) -> Result<(), String> {
    let program = &code.program;
    // Who may use what while it is mapped is a matter of what is ordered, and this memory keeps no track of it.
    if let Some(map) = program.host.iter().flat_map(|h| &h.commands).find(|c| c.kind == CommandKind::Map) {
        return Err(format!("not in this machine: memory that is mapped to the host (`{}`)", map.name));
    }
    let object = |loc: usize| program.object(code.memory.cell(code.locations[loc].cell).location.0);
    let uses =
        |t: usize, loc: usize| loc >= 128 || code.threads[t].reach.first().is_some_and(|r| r >> loc & 1 != 0);
    let atomic = |t: usize| {
        let wide = |a: &Access| a.scope != Scope::Thread;
        code.threads[t].acts.iter().any(|a| match a {
            Act::Load { access, .. } | Act::Store { access, .. } => wide(access),
            Act::Rmw { read, .. } => wide(read),
            _ => false,
        })
    };
    let whole = |loc: &usize| matches!(code.locations[*loc].kind, MemoryKind::Buffer | MemoryKind::SvmCoarse);
    let mut objects: BTreeMap<LocId, Vec<usize>> = BTreeMap::new();
    (0..code.locations.len()).filter(whole).for_each(|loc| objects.entry(object(loc)).or_default().push(loc));
    let threads = code.threads.len();
    for (t, u) in (0..threads).flat_map(|t| (0..t).map(move |u| (t, u))) {
        let (x, y) = (&program.threads[t].place, &program.threads[u].place);
        let apart = !(x.same_gpu(y) || (x.host && y.host));
        let kernels = !x.host && !y.host && !program.same_kernel(ThreadId(t as u16), ThreadId(u as u16));
        if !apart && !kernels {
            continue;
        }
        for (object, cells) in &objects {
            let of = |t: usize| cells.iter().copied().filter(|loc| uses(t, *loc)).collect::<Vec<_>>();
            let (a, b) = (of(t), of(u));
            if a.is_empty() || b.is_empty() {
                continue;
            }
            let name = &program.location(*object).name;
            if apart && (a.len() > 1 || a != b) {
                return Err(format!(
                    "not in this machine: elements of `{name}`, which is not fine-grained, on several devices"
                ));
            }
            if kernels && code.locations[a[0]].kind == MemoryKind::Buffer && atomic(t) && atomic(u) {
                return Err(format!(
                    "not in this machine: atomic operations of several kernel instances on buffers such as `{name}`, \
                     which are implementation-defined"
                ));
            }
        }
    }
    Ok(())
}
