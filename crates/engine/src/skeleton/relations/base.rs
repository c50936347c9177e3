//! Builds the base sets and relations of a skeleton; the rows of [`super::signature`] combine these
//! builders.

use rustc_hash::FxHashMap;

use crate::skeleton::graph::EdgeKind;
use crate::skeleton::values::domain::Domains;
use crate::skeleton::{Cond, Event, Skeleton};
use cat::rel::{EventId, EventSet, Rel};
use program::memory::{CellId, Memory};
use program::{
    Class, CmpOp, EventKind, LocId, LocationKind, MemoryKind, OpenClMemory, Program, Scope, Space,
    ThreadId, Ty,
};

/// A base relation.
#[derive(Clone, Debug)]
pub struct BaseRel {
    /// Pairs that hold whenever both events execute.
    pub fixed: Rel,
    /// Further pairs, in lexicographic order, each with its condition.
    pub open: Vec<(usize, usize, Cond)>,
}

impl BaseRel {
    /// A relation without open pairs.
    pub(crate) fn fixed(fixed: Rel) -> BaseRel {
        BaseRel {
            fixed,
            open: Vec::new(),
        }
    }

    /// Adds a pair that holds under a condition.
    pub(crate) fn add(&mut self, i: usize, j: usize, cond: Cond) {
        match cond {
            Cond::TRUE => self.fixed.insert(i, j),
            Cond::FALSE => {}
            cond => self.open.push((i, j, cond)),
        }
    }
}

/// A base set or relation.
#[derive(Clone, Debug)]
pub enum Base {
    /// A set; always known.
    Set(EventSet),
    /// A relation.
    Rel(BaseRel),
}

impl Base {
    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        match self {
            Base::Set(set) => set.is_empty(),
            Base::Rel(rel) => rel.fixed.is_empty() && rel.open.is_empty(),
        }
    }
}

/// How a base set or relation is built.
pub(crate) enum Build {
    /// As a set.
    Set(SetOf),
    /// As a relation.
    Rel(RelOf),
}

type SetOf = Box<dyn Fn(&Skeleton, &Domains) -> EventSet + Send + Sync>;
type RelOf = Box<dyn Fn(&mut Skeleton, &Domains) -> BaseRel + Send + Sync>;

/// Whether CTAs of clusters start and exit within the program.
pub(crate) fn has_launched_clusters(program: &Program) -> bool {
    program
        .threads
        .iter()
        .any(|t| t.place.launched && t.place.cluster.is_some())
}

/// Whether the program has a feature that readings are about.
pub(crate) fn speaks_of_readings(program: &Program) -> bool {
    program.asynchronous().is_some()
        || program.has_mbarriers()
        || program.of_several_cells().is_some()
}

/// Events with a property.
pub(crate) fn events(is: impl Fn(&Skeleton, &Event) -> bool + Send + Sync + 'static) -> Build {
    Build::Set(Box::new(move |sk, _| {
        EventSet::from_fn(sk.len(), |e| is(sk, sk.event(e)))
    }))
}

/// Accesses that may go to an object with a property. The set is exact for initial writes. Models
/// that need exact sets for other accesses through registers use `range([IW & X]; loc)`.
pub(crate) fn accesses(
    to: impl Fn(&Skeleton, ObjectTraits) -> bool + Send + Sync + 'static,
) -> Build {
    Build::Set(Box::new(move |sk, domains| {
        EventSet::from_fn(sk.len(), |e| {
            objects(sk, domains, e).any(|object| to(sk, object))
        })
    }))
}

/// A relation with its own builder.
pub(crate) fn relation(build: fn(&mut Skeleton, &Domains) -> BaseRel) -> Build {
    Build::Rel(Box::new(build))
}

/// Pairs of events with a property.
pub(crate) fn pairs(
    holds: impl Fn(&Skeleton, &Event, &Event) -> bool + Send + Sync + 'static,
) -> Build {
    let all =
        move |sk: &Skeleton| Rel::from_fn(sk.len(), |i, j| holds(sk, &sk.events[i], &sk.events[j]));
    Build::Rel(Box::new(move |sk, _| BaseRel::fixed(all(sk))))
}

/// Pairs of events by their threads.
pub(crate) fn threads(
    holds: impl Fn(&Skeleton, ThreadId, ThreadId) -> bool + Send + Sync + 'static,
) -> Build {
    pairs(move |sk, a, b| a.thread.zip(b.thread).is_some_and(|(a, b)| holds(sk, a, b)))
}

/// Events of threads in one group.
pub(crate) fn group(scope: Scope) -> Build {
    threads(move |sk, a, b| {
        a == b
            || sk
                .program
                .thread(a)
                .place
                .same(&sk.program.thread(b).place, scope)
    })
}

/// Events of threads of one kernel instance and of its descendants.
pub(crate) fn kernels(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let program = &sk.program;
    let kernels: Vec<_> = program.thread_ids().map(|t| program.kernel_of(t)).collect();
    let same = |a: ThreadId, b: ThreadId| {
        let (x, y) = (&program.thread(a).place, &program.thread(b).place);
        a == b || x.same_gpu(y) && kernels[usize::from(a.0)] == kernels[usize::from(b.0)]
    };
    let thread = |i: usize| sk.events[i].thread;
    BaseRel::fixed(Rel::from_fn(sk.len(), |i, j| {
        thread(i).zip(thread(j)).is_some_and(|(a, b)| same(a, b))
    }))
}

/// Pairs with their conditions, as the skeleton lists them.
pub(crate) fn edges(kind: EdgeKind) -> Build {
    Build::Rel(Box::new(move |sk, _| {
        let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
        for &(a, b, cond) in sk.edges.of(kind) {
            rel.add(a.index(), b.index(), cond);
        }
        rel.open.retain(|&(i, j, _)| !rel.fixed.has(i, j));
        rel.open.sort();
        rel
    }))
}

/// Accesses whose cells agree in `key`.
pub(crate) fn cells<K: PartialEq + 'static>(key: fn(&Memory, CellId) -> K) -> Build {
    Build::Rel(Box::new(move |sk, domains| location(sk, domains, key)))
}

/// Whether the scope of each event includes the other's thread.
pub(crate) fn includes(sk: &Skeleton, a: &Event, b: &Event) -> bool {
    let (Some(x), Some(y), Some(sa), Some(sb)) = (a.thread, b.thread, a.scope, b.scope) else {
        return false;
    };
    let (px, py) = (&sk.program.thread(x).place, &sk.program.thread(y).place);
    x == y || (px.same(py, sa) && px.same(py, sb))
}

/// The read half of each atomic with its write half.
pub(crate) fn halves(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    BaseRel::fixed(Rel::from_pairs(
        sk.len(),
        sk.rmw.iter().map(|&(a, b)| (a.index(), b.index())),
    ))
}

/// Pairs of cells of one access.
pub(crate) fn whole(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    BaseRel::fixed(Rel::from_fn(sk.len(), |i, j| {
        i != j && sk.first_part(i) == sk.first_part(j)
    }))
}

/// Accesses of commands that map memory, each with those of the command that unmaps it.
pub(crate) fn mapping(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let host = sk.program.host.as_deref();
    let mappings = host.map_or(Vec::new(), |host| host.mappings(&sk.program));
    let commands: Vec<_> = sk
        .events
        .iter()
        .map(|e| host.and_then(|host| host.command_of(e.thread?)))
        .collect();
    BaseRel::fixed(Rel::from_fn(sk.len(), |i: usize, j: usize| {
        commands[i]
            .is_some_and(|begin| mappings.contains(&(begin, commands[j])) && commands[j].is_some())
    }))
}

/// Operations on one mbarrier object in one phase. With `after`, the second is in the phase after
/// that of the first.
pub(crate) fn phases(after: bool) -> Build {
    Build::Rel(Box::new(move |sk, domains| {
        let same = location(sk, domains, |memory, c| memory.cell(c).memory);
        let mut at: FxHashMap<(usize, usize), Cond> =
            same.fixed.iter().map(|pair| (pair, Cond::TRUE)).collect();
        at.extend(same.open.iter().map(|&(i, j, cond)| ((i, j), cond)));
        let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
        let phases = domains.phases(sk);
        for &(x, [now, next]) in &phases {
            for &(y, [other, _]) in &phases {
                let Some(&here) = at.get(&(x, y)).filter(|_| x != y) else {
                    continue;
                };
                let first = if after { next } else { now };
                let agree = sk.pool.cmp(CmpOp::Eq, Ty::WORD, first, other);
                let cond = sk.pool.and(here, agree);
                rel.add(x, y, cond);
            }
        }
        rel.open.sort();
        rel
    }))
}

/// Accesses to shared memory of another CTA, each with itself.
pub(crate) fn remote(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for i in 0..sk.len() {
        let Some(thread) = sk.events[i].thread else {
            continue;
        };
        let mut away = Cond::FALSE;
        for &c in &domains.cells[i] {
            let cell = sk.memory.cell(c);
            if cell.space == Space::Shared
                && !cell.owner.is_none_or(|owner| same_block(sk, owner, thread))
            {
                let here = is_at(sk, i, c);
                away = sk.pool.or(away, here);
            }
        }
        rel.add(i, i, away);
    }
    rel
}

/// Events of threads, each with the accesses of other CTAs to its CTA's shared memory. Empty unless
/// CTAs of clusters start and exit in the test.
pub(crate) fn lends(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    if !has_launched_clusters(&sk.program) {
        return rel;
    }
    for j in 0..sk.len() {
        let Some(guest) = sk.events[j].thread else {
            continue;
        };
        let hosts: Vec<(ThreadId, Cond)> = shared_cells(sk, domains, j)
            .into_iter()
            .map(|(c, owner)| (owner, is_at(sk, j, c)))
            .collect();
        for i in 0..sk.len() {
            let Some(thread) = sk.events[i].thread else {
                continue;
            };
            if same_block(sk, thread, guest) {
                continue;
            }
            let mut cond = Cond::FALSE;
            for &(owner, here) in &hosts {
                if same_block(sk, owner, thread) {
                    cond = sk.pool.or(cond, here);
                }
            }
            rel.add(i, j, cond);
        }
    }
    rel.open.sort();
    rel
}

/// The cells of shared memory that event `i` may access, each with the thread that owns it.
fn shared_cells(sk: &Skeleton, domains: &Domains, i: usize) -> Vec<(CellId, ThreadId)> {
    let cells = domains.cells[i].iter().map(|&c| (c, sk.memory.cell(c)));
    let shared = cells.filter(|(_, cell)| cell.space == Space::Shared);
    shared
        .filter_map(|(c, cell)| Some((c, cell.owner?)))
        .collect()
}

/// Whether two threads are in one CTA.
pub(crate) fn same_block(sk: &Skeleton, a: ThreadId, b: ThreadId) -> bool {
    a == b
        || sk
            .program
            .thread(a)
            .place
            .same(&sk.program.thread(b).place, Scope::Cta)
}

/// Arrivals at the barrier of a grid with a non-cooperative launch, each with itself.
pub(crate) fn not_cooperative(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for i in (0..sk.len()).filter(|&i| sk.events[i].kind == EventKind::Arrive) {
        let Some(thread) = sk.events[i].thread else {
            continue;
        };
        let barrier = sk.program.thread(thread).code[sk.events[i].instr]
            .op
            .barrier();
        if barrier.is_some_and(|b| sk.program.is_uncooperative(thread, b)) {
            rel.add(i, i, Cond::TRUE);
        }
    }
    rel
}

/// Accesses to shared memory of another CTA that starts and exits in the test, if all its threads
/// end. Each is related to itself.
pub(crate) fn leaves(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    if !has_launched_clusters(&sk.program) {
        return rel;
    }
    for i in 0..sk.len() {
        // The CTAs of a cluster start together.
        let Some(guest) = sk.events[i]
            .thread
            .filter(|t: &ThreadId| sk.program.thread(*t).place.launched)
        else {
            continue;
        };
        let mut leaves = Cond::FALSE;
        for (c, owner) in shared_cells(sk, domains, i) {
            let block: Vec<ThreadId> = sk
                .program
                .thread_ids()
                .filter(|t| same_block(sk, *t, owner))
                .collect();
            if block.contains(&guest) {
                continue;
            }
            let done = block.iter().fold(is_at(sk, i, c), |all, t| {
                sk.pool.and(all, sk.done[usize::from(t.0)])
            });
            leaves = sk.pool.or(leaves, done);
        }
        rel.add(i, i, leaves);
    }
    rel
}

/// The properties of an object.
pub(crate) struct ObjectTraits {
    pub(crate) atomic: bool,
    pub(crate) opencl: OpenClMemory,
    pub(crate) kind: MemoryKind,
    pub(crate) class: Option<Class>,
}

fn known(sk: &Skeleton, loc: LocId, index: u32) -> Option<ObjectTraits> {
    match sk.program.location(loc).kind {
        LocationKind::Object {
            atomic,
            opencl,
            kind,
            class,
            ..
        } => {
            let class = if sk.program.is_mbarrier(loc, index) {
                Some(Class::Mbarrier)
            } else {
                class
            };
            Some(ObjectTraits {
                atomic,
                opencl,
                kind,
                class,
            })
        }
        LocationKind::Alias { .. } => None,
    }
}

/// The objects that an event may access.
pub(crate) fn objects<'a>(
    sk: &'a Skeleton,
    domains: &'a Domains,
    event: EventId,
) -> impl Iterator<Item = ObjectTraits> + 'a {
    domains.cells[event.index()]
        .iter()
        .copied()
        .filter_map(|c| {
            let (loc, index) = sk.memory.cell(sk.memory.cell(c).memory).location;
            known(sk, loc, index)
        })
}

/// Whether an event is of a GPU and surely accesses no memory of another GPU, except of a peer with
/// native atomics.
pub(crate) fn near(sk: &Skeleton, domains: &Domains, event: EventId) -> bool {
    let Some(thread) = sk.event(event).thread else {
        return false;
    };
    let place = &sk.program.thread(thread).place;
    objects(sk, domains, event).all(|object| match object.kind {
        MemoryKind::Device(gpu) => !place.host && sk.program.machine.peers(place.gpu, gpu),
        _ => !place.host,
    })
}

/// Pairs of accesses whose addresses agree in `key`.
pub(crate) fn location<K: PartialEq>(
    sk: &mut Skeleton,
    domains: &Domains,
    key: fn(&Memory, CellId) -> K,
) -> BaseRel {
    let n = sk.len();
    let mut rel = BaseRel::fixed(Rel::empty(n));
    let accesses: Vec<usize> = (0..n).filter(|&i| sk.events[i].addr.is_some()).collect();
    // Makes the condition that an access goes to a cell once per pair of access and cell, sorted by
    // cell. The conditions of one cell are then adjacent in diagrams. Otherwise the condition that
    // two accesses share one of many cells takes exponentially many nodes.
    let mut pairs: Vec<(CellId, usize)> = accesses
        .iter()
        .flat_map(|&i: &usize| domains.cells[i].iter().map(move |&c| (c, i)))
        .collect();
    pairs.sort_unstable();
    let mut at: FxHashMap<(usize, u32), Cond> = FxHashMap::default();
    for (c, i) in pairs {
        at.insert((i, c.0), is_at(sk, i, c));
    }
    for &i in &accesses {
        for &j in &accesses {
            let mut cond = Cond::FALSE;
            if i == j && !domains.cells[i].is_empty() {
                cond = Cond::TRUE;
            } else {
                for &x in &domains.cells[i] {
                    for &y in &domains.cells[j] {
                        if key(&sk.memory, x) == key(&sk.memory, y) {
                            let both = sk.pool.and(at[&(i, x.0)], at[&(j, y.0)]);
                            cond = sk.pool.or(cond, both);
                        }
                    }
                }
            }
            rel.add(i, j, cond);
        }
    }
    rel
}

/// The condition that an access goes to a cell.
pub fn is_at(sk: &mut Skeleton, event: usize, cell: CellId) -> Cond {
    let addr = sk.events[event].addr.expect("accesses have addresses");
    let address = sk.memory.cell(cell).address;
    let value = sk.pool.constant(address);
    sk.pool.cmp(CmpOp::Eq, Ty::WORD, addr, value)
}

/// The condition that an access has an address without memory that it can access.
pub fn faults(sk: &mut Skeleton, domains: &Domains, event: usize) -> Cond {
    if !domains.may_fault[event] {
        return Cond::FALSE;
    }
    let mut ok = Cond::FALSE;
    for &c in &domains.cells[event] {
        let here = is_at(sk, event, c);
        ok = sk.pool.or(ok, here);
    }
    sk.pool.not(ok)
}
