//! Memory objects of OpenCL as wholes: checks mapped objects, objects that host and devices share,
//! and objects that several kernel instances update.
//!
//! # Invariants
//! - Only finished histories are checked: then happens-before of all accesses is known.
//! - The program determines which command ends which mapping
//!   ([`program::host::HostProgram::mappings`]); the history gives the order around it.
//!
//! # Sources
//! - Khronos, OpenCL API specification, clEnqueueMapBuffer, *Accessing mapped regions of a memory
//!   object*; Memory Model, *Shared Virtual Memory*; *Memory Ordering Rules: Host-side and
//!   Device-side Commands*, on atomic operations of several kernel instances on one buffer.

use std::collections::BTreeSet;

use super::graph::{History, HistoryEvent};
use super::{Clike, GLOBAL};
use crate::code::Code;
use crate::record::{HazardKind, RunHazard};
use program::host::{CommandId, CommandKind};
use program::{LocId, MemoryKind, ThreadId};

/// The program's uses of memory that is not fine-grained.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectUses {
    /// By location: its object, if it is shared by whole objects.
    whole: Vec<Option<LocId>>,
    /// By location: whether it is in a buffer.
    buffer: Vec<bool>,
    /// For each mapping: the thread of the command that begins it, and that of the command that
    /// ends it.
    mappings: Vec<(usize, Option<usize>)>,
    /// Threads of commands that begin or end mappings.
    maps: BTreeSet<usize>,
    /// Whether one object is used from several devices, or from the host and a device.
    apart: bool,
    /// Whether several kernel instances may have atomic operations on one buffer.
    together: bool,
}

impl ObjectUses {
    /// The uses in a program.
    pub(super) fn new(code: &Code) -> ObjectUses {
        let program = &code.program;
        let object =
            |loc: usize| program.object(code.memory.cell(code.locations[loc].cell).location.0);
        let all = || 0..code.locations.len();
        let shared = |loc: usize| {
            matches!(
                code.locations[loc].kind,
                MemoryKind::Buffer | MemoryKind::SvmCoarse
            )
        };
        let mut objects = ObjectUses {
            whole: all().map(|loc| shared(loc).then(|| object(loc))).collect(),
            buffer: all()
                .map(|loc| code.locations[loc].kind == MemoryKind::Buffer)
                .collect(),
            ..ObjectUses::default()
        };
        if let Some(host) = program.host.as_deref() {
            let thread = |c: CommandId| host.command(c).threads.first().map(|t| usize::from(t.0));
            objects.mappings = host
                .mappings(program)
                .into_iter()
                .filter_map(|(begin, end)| Some((thread(begin)?, end.and_then(thread))))
                .collect();
            let maps = host
                .commands
                .iter()
                .filter(|c| matches!(c.kind, CommandKind::Map | CommandKind::Unmap));
            objects.maps = maps
                .flat_map(|c| &c.threads)
                .map(|t| usize::from(t.0))
                .collect();
        }
        let uses = |t: usize, loc: usize| {
            loc >= 128
                || code.threads[t]
                    .reach
                    .first()
                    .is_some_and(|r| r >> loc & 1 != 0)
        };
        let atomic = |t: usize| {
            code.threads[t]
                .acts
                .iter()
                .any(|a| a.accesses().any(|a| a.scope != program::Scope::Thread))
        };
        let threads = code.threads.len();
        for (t, u) in (0..threads).flat_map(|t| (0..t).map(move |u| (t, u))) {
            let used = |t: usize| -> BTreeSet<LocId> {
                all()
                    .filter(|&loc| uses(t, loc))
                    .filter_map(|loc| objects.whole[loc])
                    .collect()
            };
            if used(t).is_disjoint(&used(u)) {
                continue;
            }
            objects.apart |= are_apart(code, t, u);
            objects.together |= are_instances(code, t, u) && atomic(t) && atomic(u);
        }
        objects
    }

    /// Whether a finished history can have anything to report.
    fn is_asked(&self) -> bool {
        !self.mappings.is_empty() || self.apart || self.together
    }
}

/// Whether two threads are on different devices, or one on a device and one on the host.
fn are_apart(code: &Code, t: usize, u: usize) -> bool {
    let (x, y) = (
        &code.program.threads[t].place,
        &code.program.threads[u].place,
    );
    !(x.same_gpu(y) || x.host && y.host)
}

/// Whether two threads belong to kernels that the host enqueued separately.
fn are_instances(code: &Code, t: usize, u: usize) -> bool {
    let host = |t: usize| code.program.threads[t].place.host;
    !host(t)
        && !host(u)
        && !code
            .program
            .same_kernel(ThreadId(t as u16), ThreadId(u as u16))
}

/// Whether one event of a history happens before the other, in either order.
fn are_ordered(m: &History, a: usize, b: usize) -> bool {
    is_before(m, a, b) || is_before(m, b, a)
}

fn is_before(m: &History, a: usize, b: usize) -> bool {
    m.events[b].past[GLOBAL].has(a)
}

fn place(e: &HistoryEvent) -> (usize, usize) {
    (e.thread, e.instr)
}

impl Clike {
    /// The misuse of whole objects in a finished history, and the uses that are left to
    /// implementations.
    pub(super) fn misused_objects(&self, code: &Code, m: &History) -> BTreeSet<RunHazard> {
        let mut found = BTreeSet::new();
        let Some(objects) = self.objects.as_ref().filter(|o| o.is_asked()) else {
            return found;
        };
        let is_whole = |e: &HistoryEvent| e.is_access() && objects.whole[e.loc].is_some();
        let accesses: Vec<usize> = (0..m.threads.len())
            .flat_map(|t| m.of(t).filter(|(_, e)| is_whole(e)).map(|(i, _)| i))
            .collect();
        let event = |i: usize| &*m.events[i];
        for (n, &i) in accesses.iter().enumerate() {
            for &j in &accesses[..n] {
                let (a, b) = (event(i), event(j));
                let apart = a.thread != b.thread
                    && (a.is_write() || b.is_write())
                    && objects.whole[a.loc] == objects.whole[b.loc]
                    && !are_ordered(m, i, j);
                if !apart {
                    continue;
                }
                let pair = |kind| RunHazard {
                    kind,
                    first: place(a).min(place(b)),
                    second: Some(place(a).max(place(b))),
                    loc: Some(a.loc),
                };
                // At a single location this is an ordinary race.
                if a.loc != b.loc && are_apart(code, a.thread, b.thread) {
                    found.insert(pair(HazardKind::Race));
                }
                let settled = !(a.atomic && b.atomic && objects.buffer[a.loc]);
                if !settled && are_instances(code, a.thread, b.thread) {
                    found.insert(pair(HazardKind::Unspecified));
                }
            }
        }
        let of = |thread: usize, loc: usize| {
            accesses
                .iter()
                .copied()
                .filter(move |&i| event(i).thread == thread && event(i).loc == loc)
        };
        for &i in &accesses {
            let e = event(i);
            let host = code.program.threads[e.thread].place.host;
            let begins = || {
                objects
                    .mappings
                    .iter()
                    .flat_map(|&(begin, end)| of(begin, e.loc).map(move |b| (b, end)))
            };
            let ends = |end: Option<usize>| end.into_iter().flat_map(|end| of(end, e.loc));
            if host && begins().next().is_some() {
                // The host may use the memory between the completion of a mapping and the call that
                // ends it.
                let fits = |&(begin, end): &(usize, Option<usize>)| {
                    event(begin).is_write() == e.is_write()
                        && is_before(m, begin, i)
                        && ends(end).all(|u| is_before(m, i, u))
                };
                if !begins().any(|b| fits(&b)) {
                    let (first, loc) = (place(e), Some(e.loc));
                    found.insert(RunHazard {
                        kind: HazardKind::Unmapped,
                        first,
                        second: None,
                        loc,
                    });
                }
            }
            if host || objects.maps.contains(&e.thread) {
                continue;
            }
            // No command may use an object mapped for writing, and none may write any mapped
            // object.
            for (begin, end) in begins() {
                let conflict = e.is_write() || event(begin).is_write();
                if conflict && !is_before(m, i, begin) && !ends(end).any(|u| is_before(m, u, i)) {
                    let (a, b) = (place(e), place(event(begin)));
                    let kind = HazardKind::WhileMapped;
                    found.insert(RunHazard {
                        kind,
                        first: a.min(b),
                        second: Some(a.max(b)),
                        loc: Some(e.loc),
                    });
                }
            }
        }
        found
    }
}
