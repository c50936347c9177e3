//! What of a program can be turned up: orders, scopes, flags of fences, kinds of memory; and how to say it.
//!
//! A knob has levels: 0 is what is written, the last is the most that there is.
//!
//! # Invariants
//! - Copies of one instruction (threads of one kernel, or of one placeholder) have one knob.
//! - Barriers that meet have the same flags, so all barriers have one knob.

use std::collections::{BTreeSet, HashMap};

use crate::search::Setting;
use engine::task::Task;
use program::litmus::LitmusTest;
use program::strength;
use program::words::Order;
use program::{Dialect, Instr, LocId, LocationKind, MemoryKind, Op, Scope, ThreadId};
use verdict::{Change, Fault};

/// An instruction of a thread.
pub(crate) type Spot = (ThreadId, usize);

/// What can be turned, with its levels above what is written.
#[derive(Clone, Debug)]
enum Knob {
    /// The order of an operation and its copies.
    Order(Vec<Spot>, Vec<Order>),
    /// Its scope.
    Scope(Vec<Spot>, Vec<Scope>),
    /// OpenCL: whether fences and barriers have the flags of all regions.
    Flags(Vec<Spot>),
    /// OpenCL: whether a buffer that several devices use is fine-grained shared virtual memory with atomics.
    Fine(LocId),
    /// All plain accesses to a location become atomic.
    Atomic(LocId, Vec<(Order, Option<Scope>)>),
}

impl Knob {
    fn top(&self) -> usize {
        match self {
            Knob::Order(_, levels) => levels.len(),
            Knob::Scope(_, levels) => levels.len(),
            Knob::Flags(_) | Knob::Fine(_) => 1,
            Knob::Atomic(_, levels) => levels.len(),
        }
    }
}

/// The knobs of a test.
pub(super) struct Knobs<'t> {
    test: &'t LitmusTest,
    /// Plain accesses, by the location that they may be to.
    plain: Vec<(LocId, Spot)>,
    list: Vec<Knob>,
    nothing_orders: bool,
}

impl<'t> Knobs<'t> {
    /// Those of orders, scopes and flags.
    pub(super) fn new(test: &'t LitmusTest, task: &Task<'_>) -> Knobs<'t> {
        let dialect = test.program.dialect;
        let sites = sites(test);
        let op = |spots: &[Spot]| &instr(test, spots[0]).op;
        // Scopes first: one that is too small is the likelier mistake.
        let scopes = sites.iter().map(|s| Knob::Scope(s.clone(), strength::wider(op(s), dialect)));
        let orders = sites.iter().map(|s| Knob::Order(s.clone(), strength::stronger(op(s))));
        let mut list: Vec<Knob> = scopes.chain(orders).filter(|knob| knob.top() > 0).collect();
        if dialect == Dialect::OpenCl {
            list.extend(opencl(test, &sites));
        }
        Knobs { test, plain: plain_accesses(task), list, nothing_orders: sites.is_empty() }
    }

    /// Whether the program has nothing that orders accesses of different threads, apart from barriers.
    pub(super) fn nothing_orders(&self) -> bool {
        self.nothing_orders
    }

    /// Everything turned up.
    pub(super) fn top(&self) -> Setting {
        self.list.iter().map(Knob::top).collect()
    }

    /// The location of that name, if there are plain accesses to it.
    pub(super) fn plain_location(&self, name: &str) -> Option<LocId> {
        let at = self.test.program.locations.iter().position(|l| l.name == name)?;
        let loc = LocId(u16::try_from(at).ok()?);
        self.plain.iter().any(|p| p.0 == loc).then_some(loc)
    }

    /// Adds the knob of making a location atomic, as the last one.
    pub(super) fn add_atomic(&mut self, loc: LocId) {
        let mut scopes: Vec<Option<Scope>> =
            strength::scopes(self.test.program.dialect).iter().map(|s| Some(s.1)).collect();
        scopes.dedup();
        if scopes.is_empty() {
            scopes.push(None);
        }
        let orders = [Order::Relaxed, Order::AcqRel, Order::SeqCst];
        let levels = orders.into_iter().flat_map(|o| scopes.iter().map(move |&s| (o, s))).collect();
        self.list.push(Knob::Atomic(loc, levels));
    }

    /// Which knob to turn down first. Plain memory stays plain if it can, above all that of the first race: if the rest
    /// orders it, fewer changes are left.
    pub(super) fn in_order_of_lowering(&self) -> Vec<usize> {
        let atomic = |i: &usize| matches!(self.list[*i], Knob::Atomic(..));
        let (atomic, others): (Vec<usize>, Vec<usize>) = (0..self.list.len()).partition(atomic);
        [atomic, others].concat()
    }

    /// The test with its knobs so turned.
    pub(super) fn turned(&self, setting: &Setting) -> LitmusTest {
        let mut test = self.test.clone();
        let mut each = |spots: &[Spot], f: &dyn Fn(&mut Op)| {
            for &(thread, at) in spots {
                f(&mut test.program.threads[thread.0 as usize].code[at].op);
            }
        };
        let mut objects = Vec::new();
        for (knob, &level) in self.list.iter().zip(setting) {
            let Some(level) = level.checked_sub(1) else { continue };
            match knob {
                Knob::Order(spots, levels) => each(spots, &|op| strength::set_order(op, levels[level])),
                Knob::Scope(spots, levels) => each(spots, &|op| strength::set_scope(op, levels[level])),
                Knob::Flags(spots) => each(spots, &strength::set_flags),
                Knob::Fine(loc) => objects.push((*loc, true)),
                Knob::Atomic(loc, levels) => {
                    let (order, scope) = levels[level];
                    let spots: Vec<Spot> = self.plain.iter().filter(|p| p.0 == *loc).map(|p| p.1).collect();
                    each(&spots, &|op| strength::make_atomic(op, order, scope));
                    objects.push((*loc, false));
                }
            }
        }
        for (loc, becomes_fine) in objects {
            if let LocationKind::Object { atomic, kind, .. } = &mut test.program.locations[loc.0 as usize].kind {
                if becomes_fine {
                    *kind = MemoryKind::SvmFineAtomic;
                } else {
                    *atomic = true;
                }
            }
        }
        test
    }

    /// A setting in words, in the order of the program; `first` is the race that is shown with them.
    pub(super) fn changes(&self, setting: &Setting, first: &Fault) -> Vec<Change> {
        let turned = self.list.iter().zip(setting).filter(|(_, level)| **level > 0);
        let mut changes: Vec<Change> = turned.map(|(knob, level)| self.change(knob, level - 1, first)).collect();
        changes.sort_by_key(|c| c.line);
        changes
    }

    fn change(&self, knob: &Knob, level: usize, first: &Fault) -> Change {
        let test = self.test;
        let scope_word = |s: Scope| strength::scope_name(test.program.dialect, s).unwrap_or("?");
        match knob {
            Knob::Order(spots, levels) => {
                let (line, name) = self.called(spots);
                let (old, new) = (strength::order(&instr(test, spots[0]).op), levels[level].name());
                let old = old.map_or("?", Order::name);
                Change {
                    line,
                    text: format!("{name} at line {line} has `{new}`, not `{old}`"),
                    reason: format!("{name} at line {line} does not synchronize with `{old}`: it takes `{new}`"),
                }
            }
            Knob::Scope(spots, levels) => {
                let (line, name) = self.called(spots);
                let old = strength::scope(&instr(test, spots[0]).op).unwrap_or(Scope::Thread);
                let (word, new) = (scope_word(old), scope_word(levels[level]));
                let owner = test.program.thread(spots[0].0);
                // Of the accesses that race, the fault itself says so.
                let said = |e: &verdict::FaultEvent| (e.event.line, &e.event.thread_name) == (line, &owner.name);
                let out: Vec<&str> = (test.program.threads.iter())
                    .filter(|t| t.name != owner.name && !owner.place.same(&t.place, old))
                    .map(|t| t.name.as_str())
                    .collect();
                let reason = match out.as_slice() {
                    _ if first.events.iter().any(said) => String::new(),
                    [] => format!("`{word}` of {name} at line {line} is not the scope of what it should meet"),
                    out => format!("`{word}` of {name} at line {line} does not include {}", out.join(", ")),
                };
                Change { line, text: format!("{name} at line {line} has `{new}`, not `{word}`"), reason }
            }
            Knob::Flags(spots) => {
                let (line, name) = self.called(spots);
                let (what, have) = match instr(test, spots[0]).op {
                    Op::Barrier(_) => ("the barriers".to_owned(), "have"),
                    _ => (format!("{name} at line {line}"), "has"),
                };
                Change {
                    line,
                    text: format!("{what} {have} `{}`", strength::ALL_FLAGS),
                    reason: format!("the flags of {what} leave out memory that has to be ordered"),
                }
            }
            Knob::Fine(loc) => {
                let name = &test.program.location(*loc).name;
                Change {
                    line: 0,
                    text: format!("`{name}` is fine-grained shared virtual memory with atomics"),
                    reason: format!("`{name}` is a buffer: operations on it reach no other device"),
                }
            }
            Knob::Atomic(loc, levels) => {
                let (order, scope) = levels[level];
                let how = match order {
                    Order::SeqCst => "`memory_order_seq_cst`",
                    Order::AcqRel => "`memory_order_release` for stores, `memory_order_acquire` for loads",
                    _ => "`memory_order_relaxed` is enough",
                };
                let at = scope.map_or(String::new(), |s| format!(" at `{}`", scope_word(s)));
                let name = &test.program.location(*loc).name;
                let reason = if first.object.as_ref() == Some(name) {
                    format!("nothing orders the accesses to `{name}`, and they are not all atomic")
                } else {
                    format!("the accesses to `{name}` are not all atomic")
                };
                Change { line: 0, text: format!("every access to `{name}` is atomic{at} ({how})"), reason }
            }
        }
    }

    /// The line of an operation, and what to call it and its copies.
    fn called(&self, spots: &[Spot]) -> (u32, String) {
        let first = instr(self.test, spots[0]);
        let noun = match first.op {
            Op::Load { .. } => "load",
            Op::Store { .. } => "store",
            Op::Rmw { .. } => "read-modify-write",
            Op::Barrier(_) => "barrier",
            _ => "fence",
        };
        let names: Vec<&str> = spots.iter().map(|s| self.test.program.thread(s.0).name.as_str()).collect();
        let owner = match names.as_slice() {
            [first, .., last] => format!("the ({first} to {last})"),
            [one] => format!("{one}'s"),
            [] => String::new(),
        };
        (first.line, format!("{owner} {noun}"))
    }
}

fn instr(test: &LitmusTest, (thread, at): Spot) -> &Instr {
    &test.program.thread(thread).code[at]
}

/// The atomic operations and fences of a test, each with its copies: those made of the same text.
fn sites(test: &LitmusTest) -> Vec<Vec<Spot>> {
    sites_of(test, &|op| strength::order(op).is_some())
}

/// The instructions of a kind, each with its copies.
pub(crate) fn sites_of(test: &LitmusTest, wanted: &dyn Fn(&Op) -> bool) -> Vec<Vec<Spot>> {
    let mut sites: Vec<(_, usize, Vec<Spot>)> = Vec::new();
    for thread in test.program.thread_ids() {
        let mut seen: HashMap<_, usize> = HashMap::new();
        for (at, this) in test.program.thread(thread).code.iter().enumerate() {
            if !wanted(&this.op) {
                continue;
            }
            let ordinal = *seen.entry(this.span).and_modify(|n| *n += 1).or_default();
            let like = |site: &&mut (_, usize, Vec<Spot>)| {
                let op = &instr(test, site.2[0]).op;
                (site.0, site.1) == (this.span, ordinal)
                    && strength::order(op) == strength::order(&this.op)
                    && strength::scope(op) == strength::scope(&this.op)
            };
            match sites.iter_mut().find(like) {
                Some(site) => site.2.push((thread, at)),
                None => sites.push((this.span, ordinal, vec![(thread, at)])),
            }
        }
    }
    sites.into_iter().map(|site| site.2).collect()
}

/// What only OpenCL has: flags of fences and barriers, kinds of memory.
fn opencl(test: &LitmusTest, sites: &[Vec<Spot>]) -> Vec<Knob> {
    let program = &test.program;
    let is_fence = |s: &&Vec<Spot>| matches!(instr(test, s[0]).op, Op::Fence { .. });
    let lacking = |s: &&Vec<Spot>| strength::lacks_flags(&instr(test, s[0]).op);
    let mut knobs: Vec<Knob> =
        sites.iter().filter(is_fence).filter(lacking).map(|s| Knob::Flags(s.clone())).collect();
    let devices: BTreeSet<u32> = program.threads.iter().map(|t| t.place.gpu).collect();
    if devices.len() > 1 {
        let buffer = |kind: &LocationKind| match kind {
            // What each device has of its own is not shared.
            LocationKind::Object { kind: MemoryKind::ProgramScope, .. } => false,
            LocationKind::Object { opencl, kind, .. } => opencl.global && !program.machine.has_svm_atomics(*kind),
            LocationKind::Alias { .. } => false,
        };
        let buffers = program.locations.iter().zip(0..).filter(|(l, _)| buffer(&l.kind));
        knobs.extend(buffers.map(|(_, i)| Knob::Fine(LocId(i))));
    }
    let spots = program.thread_ids().flat_map(|t| (0..program.thread(t).code.len()).map(move |i| (t, i)));
    let barrier = |s: &Spot| {
        let op = &instr(test, *s).op;
        matches!(op, Op::Barrier(_)) && strength::lacks_flags(op)
    };
    let barriers: Vec<Spot> = spots.filter(barrier).collect();
    if !barriers.is_empty() {
        knobs.push(Knob::Flags(barriers));
    }
    knobs
}

/// The plain accesses of a program, each with the locations that it may be to.
fn plain_accesses(task: &Task<'_>) -> Vec<(LocId, Spot)> {
    let sk = &task.sk;
    let mut found = Vec::new();
    for (e, event) in sk.events.iter().enumerate() {
        let Some(thread) = event.thread else { continue };
        if !event.is_memory() || !strength::is_plain(&sk.program.thread(thread).code[event.instr].op) {
            continue;
        }
        for &cell in &task.domains.cells[e] {
            let loc = sk.memory.cell(sk.memory.cell(cell).memory).location.0;
            let access = (loc, (thread, event.instr));
            if !found.contains(&access) {
                found.push(access);
            }
        }
    }
    found
}
