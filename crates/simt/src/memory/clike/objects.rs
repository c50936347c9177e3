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
use program::host::{CommandId, CommandKind, HostProgram};
use program::{LocId, MemoryKind, Tag, ThreadId};

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
        let mut objects = ObjectUses::default();
        for location in &code.locations {
            let is_whole = matches!(
                location.kind,
                MemoryKind::Buffer | MemoryKind::Image { .. } | MemoryKind::SvmCoarse
            );
            let object = program.object(code.memory.cell(location.cell).location.0);
            objects.whole.push(is_whole.then_some(object));
            let is_shared = matches!(location.kind, MemoryKind::Buffer | MemoryKind::Pipe);
            objects.buffer.push(is_shared);
        }
        if let Some(host) = program.host.as_deref() {
            objects.mappings = host
                .mappings(program)
                .into_iter()
                .filter_map(|(begin, end)| {
                    let end = end.and_then(|c| first_thread(host, c));
                    Some((first_thread(host, begin)?, end))
                })
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
        let used: Vec<BTreeSet<LocId>> = (0..code.threads.len())
            .map(|t| objects.used_by(code, t))
            .collect();
        for t in 0..used.len() {
            for u in (0..t).filter(|&u| !used[t].is_disjoint(&used[u])) {
                objects.apart |= are_apart(code, t, u);
                objects.together |=
                    are_instances(code, t, u) && has_atomics(code, t) && has_atomics(code, u);
            }
        }
        objects
    }

    /// The objects that a thread may access.
    fn used_by(&self, code: &Code, t: usize) -> BTreeSet<LocId> {
        let reach = code.threads[t].reach.first();
        (0..code.locations.len())
            .filter(|&loc| loc >= 128 || reach.is_some_and(|r| r >> loc & 1 != 0))
            .filter_map(|loc| self.whole[loc])
            .collect()
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

fn first_thread(host: &HostProgram, c: CommandId) -> Option<usize> {
    host.command(c).threads.first().map(|t| usize::from(t.0))
}

/// Whether a thread has atomic operations, whose scope is wider than the work-item.
fn has_atomics(code: &Code, t: usize) -> bool {
    let mut accesses = code.threads[t].acts.iter().flat_map(|a| a.accesses());
    accesses.any(|a| a.scope != program::Scope::Thread)
}

impl Clike {
    /// The misuse of whole objects in a finished history, and the uses that are left to
    /// implementations.
    pub(super) fn misused_objects(&self, code: &Code, m: &History) -> BTreeSet<RunHazard> {
        let Some(objects) = self.objects.as_ref().filter(|o| o.is_asked()) else {
            return BTreeSet::new();
        };
        let accesses = (0..m.threads.len())
            .flat_map(|t| m.of(t))
            .filter(|(_, e)| e.is_access() && objects.whole[e.loc].is_some());
        let history = ObjectHistory {
            code,
            m,
            objects,
            accesses: accesses.map(|(i, _)| i).collect(),
        };
        let mut found = BTreeSet::new();
        history.find_unordered(&mut found);
        history.find_outside_mappings(&mut found);
        found
    }
}

/// The accesses of a finished history to whole objects.
struct ObjectHistory<'a> {
    code: &'a Code,
    m: &'a History,
    objects: &'a ObjectUses,
    accesses: Vec<usize>,
}

impl ObjectHistory<'_> {
    fn event(&self, i: usize) -> &HistoryEvent {
        &self.m.events[i]
    }

    /// The accesses of a thread to a location.
    fn of(&self, thread: usize, loc: usize) -> impl Iterator<Item = usize> {
        self.accesses
            .iter()
            .copied()
            .filter(move |&i| self.event(i).thread == thread && self.event(i).loc == loc)
    }

    /// The accesses by which mappings of a location begin, with the threads that end them.
    fn begins(&self, loc: usize) -> impl Iterator<Item = (usize, Option<usize>)> {
        let mappings = self.objects.mappings.iter();
        mappings.flat_map(move |&(begin, end)| self.of(begin, loc).map(move |b| (b, end)))
    }

    /// The accesses to a location by which a thread ends a mapping.
    fn ends(&self, thread: Option<usize>, loc: usize) -> impl Iterator<Item = usize> {
        thread
            .into_iter()
            .flat_map(move |thread| self.of(thread, loc))
    }

    /// Adds conflicting accesses of one object without order.
    fn find_unordered(&self, found: &mut BTreeSet<RunHazard>) {
        for (n, &i) in self.accesses.iter().enumerate() {
            for &j in &self.accesses[..n] {
                let (a, b) = (self.event(i), self.event(j));
                let conflict = a.thread != b.thread
                    && (a.is_write() || b.is_write())
                    && self.objects.whole[a.loc] == self.objects.whole[b.loc];
                if !conflict || are_ordered(self.m, i, j) {
                    continue;
                }
                // At a single location this is an ordinary race.
                if a.loc != b.loc && are_apart(self.code, a.thread, b.thread) {
                    found.insert(pair(HazardKind::Race, a, b, a.loc));
                }
                let in_buffer = a.atomic && b.atomic && self.objects.buffer[a.loc];
                if in_buffer && are_instances(self.code, a.thread, b.thread) {
                    found.insert(pair(HazardKind::Unspecified, a, b, a.loc));
                }
            }
        }
    }

    /// Adds accesses of the host outside its mappings, and accesses of commands to mapped objects.
    fn find_outside_mappings(&self, found: &mut BTreeSet<RunHazard>) {
        for &i in &self.accesses {
            let e = self.event(i);
            let host = self.code.program.threads[e.thread].place.host;
            if host {
                let is_mapped = self.begins(e.loc).next().is_some();
                if is_mapped && !self.is_end(e) && !self.is_within_a_mapping(i) {
                    found.insert(RunHazard {
                        kind: HazardKind::Unmapped,
                        first: place(e),
                        second: None,
                        loc: Some(e.loc),
                    });
                }
                continue;
            }
            if self.objects.maps.contains(&e.thread) {
                continue;
            }
            // No command may use an object mapped for writing, and none may write any mapped
            // object.
            for (begin, end) in self.begins(e.loc) {
                let conflict = e.is_write() || self.event(begin).is_write();
                if conflict
                    && !is_before(self.m, i, begin)
                    && !self.ends(end, e.loc).any(|u| is_before(self.m, u, i))
                {
                    let begin = self.event(begin);
                    found.insert(pair(HazardKind::WhileMapped, e, begin, e.loc));
                }
            }
        }
    }

    /// Whether an access ends the life of its memory: it is no use of it.
    fn is_end(&self, e: &HistoryEvent) -> bool {
        let instr = &self.code.program.threads[e.thread].code[e.instr];
        instr.op.has(Tag::Ends)
    }

    /// Whether an access of the host comes between the completion of a mapping for that use and the
    /// call that ends it.
    fn is_within_a_mapping(&self, i: usize) -> bool {
        let e = self.event(i);
        self.begins(e.loc).any(|(begin, end)| {
            self.event(begin).is_write() == e.is_write()
                && is_before(self.m, begin, i)
                && self.ends(end, e.loc).all(|u| is_before(self.m, i, u))
        })
    }
}

/// A hazard of two accesses, in the order of their threads and instructions.
fn pair(kind: HazardKind, a: &HistoryEvent, b: &HistoryEvent, loc: usize) -> RunHazard {
    RunHazard {
        kind,
        first: place(a).min(place(b)),
        second: Some(place(a).max(place(b))),
        loc: Some(loc),
    }
}
