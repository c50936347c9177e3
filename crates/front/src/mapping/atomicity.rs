//! Rejects operations of system scope that PTX makes atomic although the source's model does not
//! guarantee it.
//!
//! # Invariants
//! - Conservative: an operation passes only if it is atomic whatever the other threads do.
//!
//! # Sources
//! - libcu++, *Memory model*, Atomicity.

use program::{LocId, LocationKind, MemoryKind, Op, Program, Scope, Tag};

/// The unmet condition for an operation to be atomic; `None` if it is atomic.
pub(super) fn unmet(program: &Program, op: &Op) -> Option<String> {
    let (addr, access) = (op.address()?, op.accesses().next()?);
    let rmw = op.read().is_some() && op.write().is_some();
    if !access.tags.has(Tag::Atomic) || access.scope != Some(Scope::Sys) {
        return None;
    }
    let objects: Vec<LocId> = match addr.base() {
        Some(loc) => vec![program.object(loc)],
        None => (0..program.locations.len() as u16).map(LocId).collect(),
    };
    objects
        .into_iter()
        .find_map(|loc| match program.location(loc).kind {
            LocationKind::Object { kind, .. } => lacking(program, kind, rmw),
            LocationKind::Alias { .. } => None,
        })
}

fn lacking(program: &Program, kind: MemoryKind, rmw: bool) -> Option<String> {
    let needed: &[&str] = match kind {
        MemoryKind::Managed => &["concurrentManagedAccess"],
        MemoryKind::Mapped if rmw => &["hostNativeAtomicSupported"],
        MemoryKind::System => &["pageableMemoryAccess"],
        MemoryKind::File => &[
            "pageableMemoryAccess",
            "pageableMemoryAccessUsesHostPageTables",
        ],
        MemoryKind::Mapped | MemoryKind::Private => &[],
        // Memory of OpenCL: PTX gives its operations no wider scope than OpenCL does.
        MemoryKind::Buffer
        | MemoryKind::Image { .. }
        | MemoryKind::Pipe
        | MemoryKind::SvmCoarse
        | MemoryKind::SvmFine
        | MemoryKind::SvmFineAtomic
        | MemoryKind::SvmSystem
        | MemoryKind::ProgramScope => &[],
        MemoryKind::Device(_) => {
            let mut places = program.threads.iter().map(|t| &t.place);
            let first = places.next()?;
            let alone = !first.host && places.all(|p| p.same_gpu(first));
            let peer = |gpu: u32| {
                program
                    .threads
                    .iter()
                    .all(|t| !t.place.host && program.machine.peers(t.place.gpu, gpu))
            };
            return match kind {
                MemoryKind::Device(gpu) if !alone && !peer(gpu) => Some(rule(
                    "memory of a GPU that devices other than it and its peers may access",
                )),
                _ => None,
            };
        }
    };
    let lacks = needed.iter().find(|a| !program.machine.supports(a))?;
    Some(rule(&format!("the machine has no `{lacks}`")))
}

fn rule(what: &str) -> String {
    format!(
        "atomicity: at system scope this operation may not be atomic here, as PTX's would be: \
         {what}"
    )
}
