//! Base sets and relations of a skeleton, by name: what the rows of [`super::signature`] mean.
//!
//! # Invariants
//! - A relation speaks of two events *given that both execute*. Pairs that depend on more than that (an address known
//!   only at run time, the phase of a barrier) are *open*: each has the condition under which it holds.
//! - Initial writes belong to no thread: scope relations leave them out.

use rustc_hash::FxHashMap;

use super::domain::{Domains, fits};
use super::{Cond, Event, EventKind, Skeleton};
use cat::model::ir::Kind;
use cat::rel::{EventId, EventSet, Rel};
use program::tags::SCOPE_TAGS;
use program::{ATTRIBUTES, CmpOp, LocId, LocationKind, MemoryKind, OpenClMemory, Scope, Ty};

/// A base relation.
#[derive(Clone, Debug)]
pub struct BaseRel {
    /// Pairs that hold whenever both events execute.
    pub fixed: Rel,
    /// Further pairs, in lexicographic order, each with its condition.
    pub open: Vec<(usize, usize, Cond)>,
}

/// A base set or relation.
#[derive(Clone, Debug)]
pub enum Base {
    /// A set; always known.
    Set(EventSet),
    /// A relation.
    Rel(BaseRel),
}

/// Builds the base set or relation of that name.
///
/// # Panics
/// If a relation is not in the signature: models are resolved against it.
pub fn base(sk: &mut Skeleton, domains: &Domains, name: &str, kind: Kind) -> Base {
    match kind {
        Kind::Set => Base::Set(set(sk, domains, name)),
        Kind::Rel => Base::Rel(relation(sk, domains, name)),
    }
}

fn set(sk: &Skeleton, domains: &Domains, name: &str) -> EventSet {
    let n = sk.len();
    let of = |f: &dyn Fn(&Event) -> bool| EventSet::from_fn(n, |e| f(sk.event(e)));
    match name {
        "R" => of(&Event::is_read),
        "W" => of(&Event::is_write),
        "M" => of(&Event::is_memory),
        "F" => of(&|e| matches!(e.kind, EventKind::Fence | EventKind::Arrive | EventKind::Wait)),
        "IW" => of(&|e| e.kind == EventKind::Init),
        "FW" | "UL" | "LK" => EventSet::empty(n),
        "NAL" => accesses(sk, domains, &|object| !object.atomic),
        "FGA" => accesses(sk, domains, &|object| sk.program.machine.has_svm_atomics(object.kind)),
        "HOST" => of(&|e| e.thread.is_some_and(|t| sk.program.thread(t).place.host)),
        "P2P" => EventSet::from_fn(n, |e| peers(sk, domains, e.index())),
        // Fences have these as tags, accesses by the memory they are to.
        "GLOBAL" => of(&|e| e.tags.has(name)).or(&accesses(sk, domains, &|object| object.opencl.global)),
        "LOCAL" => of(&|e| e.tags.has(name)).or(&accesses(sk, domains, &|object| object.opencl.local)),
        "CAPPED" => of(&|e| e.tags.has(name)).or(&accesses(sk, domains, &|object| object.opencl.capped)),
        _ if ATTRIBUTES.contains(&name) => of(&|_| sk.program.machine.has(name)),
        _ if super::signature::MEMORY_KINDS.iter().any(|k| k.0 == name) => {
            accesses(sk, domains, &|object| object.kind.set() == name)
        }
        _ => {
            if let Some((_, scope)) = SCOPE_TAGS.iter().find(|t| t.0 == name) {
                return of(&|e| e.scope == Some(*scope));
            }
            // Tags of other dialects are sets without members.
            of(&|e| e.tags.has(name))
        }
    }
}

/// What is known of an object.
struct Known {
    atomic: bool,
    opencl: OpenClMemory,
    kind: MemoryKind,
}

fn known(sk: &Skeleton, loc: LocId) -> Option<Known> {
    match sk.program.location(loc).kind {
        LocationKind::Object { atomic, opencl, kind, .. } => Some(Known { atomic, opencl, kind }),
        LocationKind::Alias { .. } => None,
    }
}

/// The objects that an event may access.
fn objects<'a>(sk: &'a Skeleton, domains: &'a Domains, event: usize) -> impl Iterator<Item = Known> + 'a {
    let object = |c: program::memory::CellId| known(sk, sk.memory.cell(sk.memory.cell(c).memory).location.0);
    domains.cells[event].iter().copied().filter_map(object)
}

/// Accesses that may be to an object of some kind. Of initial writes this is exact; models that must be exact for
/// other accesses to addresses from registers say `range([IW & X]; loc)`.
fn accesses(sk: &Skeleton, domains: &Domains, kind: &dyn Fn(Known) -> bool) -> EventSet {
    EventSet::from_fn(sk.len(), |e| objects(sk, domains, e.index()).any(kind))
}

/// Whether an event is of a GPU and, as an access to memory of a GPU, surely of that one or of a peer with native atomics.
fn peers(sk: &Skeleton, domains: &Domains, event: usize) -> bool {
    let Some(thread) = sk.events[event].thread else { return false };
    let place = &sk.program.thread(thread).place;
    let near = |object: Known| match object.kind {
        MemoryKind::Device(gpu) => !place.host && sk.program.machine.peers(place.gpu, gpu),
        _ => !place.host,
    };
    objects(sk, domains, event).all(near)
}

fn relation(sk: &mut Skeleton, domains: &Domains, name: &str) -> BaseRel {
    let n = sk.len();
    let pairs = |f: &dyn Fn(&Event, &Event) -> bool| BaseRel {
        fixed: Rel::from_fn(n, |i, j| f(&sk.events[i], &sk.events[j])),
        open: Vec::new(),
    };
    let same = |scope: Scope| {
        pairs(&|a, b| match (a.thread, b.thread) {
            (Some(x), Some(y)) => x == y || sk.program.thread(x).place.same(&sk.program.thread(y).place, scope),
            _ => false,
        })
    };
    match name {
        "po" => BaseRel { fixed: sk.program_order(), open: Vec::new() },
        "int" => pairs(&|a, b| a.thread == b.thread),
        "ext" => pairs(&|a, b| a.thread != b.thread),
        "loc" => location(sk, domains, |sk, c| sk.memory.cell(c).memory),
        "vloc" => location(sk, domains, |sk, c| sk.memory.cell(c).virtual_address),
        "rmw" => BaseRel {
            fixed: Rel::from_pairs(n, sk.rmw.iter().map(|&(a, b)| (a.index(), b.index()))),
            open: Vec::new(),
        },
        "addr" => edges(n, &sk.addr),
        "data" => edges(n, &sk.data),
        "ctrl" => edges(n, &sk.ctrl),
        "syncbar" | "sync_barrier" => edges(n, &sk.syncbar),
        "exitbar" => edges(n, &sk.exitbar),
        "sr" => pairs(&|a, b| {
            let (Some(x), Some(y), Some(sa), Some(sb)) = (a.thread, b.thread, a.scope, b.scope) else {
                return false;
            };
            let (px, py) = (&sk.program.thread(x).place, &sk.program.thread(y).place);
            x == y || (px.same(py, sa) && px.same(py, sb))
        }),
        "swarp" | "ssg" => same(Scope::Warp),
        "scta" | "swg" => same(Scope::Cta),
        "scluster" => same(Scope::Cluster),
        "sqf" => same(Scope::QueueFamily),
        "sgpu" | "sdv" => same(Scope::Gpu),
        "one-gpu" => pairs(&|a, b| match (a.thread, b.thread) {
            (Some(x), Some(y)) => x == y || sk.program.thread(x).place.same_gpu(&sk.program.thread(y).place),
            _ => false,
        }),
        "skernel" => pairs(&|a, b| match (a.thread, b.thread) {
            (Some(x), Some(y)) => sk.program.same_kernel(x, y),
            _ => false,
        }),
        "mapping" => {
            let host = sk.program.host.as_deref();
            let mappings = host.map_or(Vec::new(), |host| host.mappings(&sk.program));
            let command = |e: &Event| host.and_then(|host| host.command_of(e.thread?));
            let commands: Vec<_> = sk.events.iter().map(command).collect();
            let ends = |i: usize, j: usize| {
                commands[i].is_some_and(|begin| mappings.contains(&(begin, commands[j])) && commands[j].is_some())
            };
            BaseRel { fixed: Rel::from_fn(n, ends), open: Vec::new() }
        }
        "same-object" => location(sk, domains, |sk, c| sk.memory.cell(sk.memory.cell(c).memory).location.0),
        "divergence" => edges(n, &sk.divergence),
        "launch" | "ssw" => edges(n, &sk.launch),
        "launch-fine" => edges(n, &sk.launch_fine),
        "call-order" => edges(n, &sk.call_order),
        "asw" => pairs(&|a, b| a.kind == EventKind::Init && b.thread.is_some()),
        _ => super::progress::relation(sk, name)
            .unwrap_or_else(|| panic!("`{name}` is not a relation of the signature")),
    }
}

fn edges(n: usize, list: &[(EventId, EventId, Cond)]) -> BaseRel {
    let mut rel = BaseRel { fixed: Rel::empty(n), open: Vec::new() };
    for &(a, b, cond) in list {
        match cond {
            Cond::TRUE => rel.fixed.insert(a.index(), b.index()),
            Cond::FALSE => {}
            cond => rel.open.push((a.index(), b.index(), cond)),
        }
    }
    rel.open.retain(|&(i, j, _)| !rel.fixed.has(i, j));
    rel.open.sort();
    rel
}

/// Pairs of accesses whose addresses agree in `key`.
fn location<K: PartialEq>(
    sk: &mut Skeleton,
    domains: &Domains,
    key: impl Fn(&Skeleton, program::memory::CellId) -> K,
) -> BaseRel {
    let n = sk.len();
    let mut rel = BaseRel { fixed: Rel::empty(n), open: Vec::new() };
    let accesses: Vec<usize> = (0..n).filter(|&i| sk.events[i].is_memory()).collect();
    // The condition that an access is to a cell, made once per pair of access and cell.
    let mut at: FxHashMap<(usize, u32), Cond> = FxHashMap::default();
    for &i in &accesses {
        for &c in &domains.cells[i] {
            let cond = is_at(sk, i, c);
            at.insert((i, c.0), cond);
        }
    }
    for &i in &accesses {
        for &j in &accesses {
            let mut cond = Cond::FALSE;
            if i == j && !domains.cells[i].is_empty() {
                cond = Cond::TRUE;
            } else {
                for &x in &domains.cells[i] {
                    for &y in &domains.cells[j] {
                        if key(sk, x) == key(sk, y) {
                            let both = sk.pool.and(at[&(i, x.0)], at[&(j, y.0)]);
                            cond = sk.pool.or(cond, both);
                        }
                    }
                }
            }
            match cond {
                Cond::TRUE => rel.fixed.insert(i, j),
                Cond::FALSE => {}
                cond => rel.open.push((i, j, cond)),
            }
        }
    }
    rel
}

/// When an access is to a cell.
pub fn is_at(sk: &mut Skeleton, event: usize, cell: program::memory::CellId) -> Cond {
    let addr = sk.events[event].addr.expect("accesses have addresses");
    let address = sk.memory.cell(cell).address;
    let value = sk.pool.constant(address);
    sk.pool.cmp(CmpOp::Eq, Ty::WORD, addr, value)
}

/// When an access names no memory that it can access.
pub fn faults(sk: &mut Skeleton, domains: &Domains, event: usize) -> Cond {
    if !domains.may_fault[event] {
        return Cond::FALSE;
    }
    let mut ok = Cond::FALSE;
    for &c in &domains.cells[event] {
        if fits(sk, &sk.events[event], c) {
            let here = is_at(sk, event, c);
            ok = sk.pool.or(ok, here);
        }
    }
    sk.pool.not(ok)
}
