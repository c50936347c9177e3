//! Small changes of a program, one instruction at a time.
//!
//! Whoever wants to know what an answer rests on changes the program a little and asks again: what makes the difference
//! between two models, what an explanation needs.
//!
//! # Invariants
//! - A change touches one instruction, one thread's place or one location; threads, registers and locations keep their
//!   indices, so a proposition means the same before and after.
//! - What is not changed keeps its place in the source.

use super::{Access, Dialect, Expr, Instr, LocId, LocationKind, Op, Program, Scope, Space, Tags, ThreadId, tags};
use crate::strength;
use crate::words::Order;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// An instruction of a thread, by index.
    Instr(ThreadId, usize),
    /// A location.
    Location(LocId),
    /// A thread.
    Thread(ThreadId),
}

/// A fence to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Of sequential consistency, of this scope.
    Sequential(Scope),
    /// That acquires and releases, of this scope.
    AcquireRelease(Scope),
    /// PTX: a proxy fence of this kind, a tag.
    Proxy(&'static str),
}

/// How it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The scope becomes this one.
    Scope(Scope),
    /// The order becomes this one.
    Order(Order),
    /// A strong access becomes weak (PTX).
    Weak,
    /// A fence or a barrier concerns both regions.
    BothRegions,
    /// A location of a work-group's memory becomes global.
    Global,
    /// A weak access becomes relaxed, of this scope.
    Strong(Scope),
    /// A weak load acquires, a weak store releases, at this scope.
    Synchronizing(Scope),
    /// A relaxed load acquires, a relaxed store releases, a relaxed atomic does both.
    Synchronize,
    /// A fence in front of it.
    FenceBefore(Fence),
    /// An atomic access is sequentially consistent.
    Sequential,
    /// There is no such fence or barrier.
    Nothing,
    /// A store writes this value, whatever was read.
    Value(i64),
    /// A branch is taken, or not, whatever was read.
    Path(bool),
    /// A fence of sequential consistency is only acquire and release.
    LesserFence,
    /// A sequentially consistent access is only acquire and release.
    LesserAccess,
    /// A reduction is an atomic whose result is dropped.
    Atomic,
    /// An access goes through the generic proxy.
    Generic,
    /// What is accessed by another name of a location is accessed by its own.
    OneName,
    /// A thread runs where another one does.
    PlaceOf(ThreadId),
}

/// A change at a place.
pub type Edit = (Site, Change);

/// The program after all the edits.
pub fn edited(program: &Program, edits: &[Edit]) -> Program {
    let mut new = program.clone();
    for (site, change) in edits {
        match *site {
            Site::Instr(t, i) => {
                let op = &mut new.threads[t.0 as usize].code[i].op;
                alter(op, *change, program);
            }
            Site::Thread(t) => {
                if let Change::PlaceOf(other) = *change {
                    new.threads[t.0 as usize].place = program.thread(other).place.clone();
                }
            }
            Site::Location(l) if *change == Change::OneName => {
                let object = program.object(l);
                let code = new.threads.iter_mut().flat_map(|t| &mut t.code);
                code.for_each(|instr| rename(&mut instr.op, l, object));
            }
            Site::Location(l) => {
                if let LocationKind::Object { space, opencl, .. } = &mut new.locations[l.0 as usize].kind {
                    *space = Space::Global;
                    (opencl.global, opencl.local, opencl.capped) = (true, false, false);
                }
            }
        }
    }
    // Fences last, from the end: they move what follows.
    let mut fences: Vec<(ThreadId, usize, Fence)> = Vec::new();
    for edit in edits {
        if let (Site::Instr(t, i), Change::FenceBefore(fence)) = *edit {
            fences.push((t, i, fence));
        }
    }
    fences.sort_by_key(|f| std::cmp::Reverse((f.0, f.1)));
    for (t, i, fence) in fences {
        let code = &mut new.threads[t.0 as usize].code;
        for instr in code.iter_mut() {
            if let Op::Branch { target, .. } = &mut instr.op
                && *target > i
            {
                *target += 1;
            }
        }
        let at = &code[i];
        let text = fence_text(program.dialect, fence);
        let fence = Instr { op: fence_op(program, fence), text, ..at.clone() };
        code.insert(i, fence);
    }
    new
}

/// How a fence is written.
pub fn fence_text(dialect: Dialect, fence: Fence) -> String {
    let (ptx, order, scope) = match fence {
        Fence::Proxy(kind) => {
            let kind = match kind {
                "ALIAS" => "alias",
                "SUR" => "surface",
                "TEX" => "texture",
                "CON" => "constant",
                _ => "generic",
            };
            return format!("fence.proxy.{kind}");
        }
        Fence::Sequential(scope) => ("sc", Order::SeqCst, scope),
        Fence::AcquireRelease(scope) => ("acq_rel", Order::AcqRel, scope),
    };
    let named = strength::scope_name(dialect, scope);
    match (dialect, named) {
        (Dialect::Ptx, _) => format!("fence.{ptx}{}", tags::scope_suffix(scope)),
        (Dialect::OpenCl, Some(scope)) => {
            format!("atomic_work_item_fence({}, {}, {scope})", strength::ALL_FLAGS, order.name())
        }
        (_, Some(scope)) => format!("atomic_thread_fence({}, {scope})", order.name()),
        (_, None) => format!("atomic_thread_fence({})", order.name()),
    }
}

fn fence_op(program: &Program, fence: Fence) -> Op {
    let (order, scope) = match fence {
        Fence::Sequential(scope) => ("SC", scope),
        Fence::AcquireRelease(scope) => ("ACQ_REL", scope),
        Fence::Proxy(kind) => return Op::Fence { tags: Tags::of(&["PF", kind]), scope: None },
    };
    let mut tags = Tags::of(&[order]);
    match program.dialect {
        Dialect::Ptx => tags.insert("GEN"),
        Dialect::OpenCl => tags.extend(&["GLOBAL", "LOCAL"]),
        _ => {}
    }
    Op::Fence { tags, scope: Some(scope) }
}

/// The tags with one in place of another.
fn swapped(tags: &Tags, old: &str, new: &'static str) -> Tags {
    let mut out = Tags::default();
    tags.iter().filter(|t| *t != old).for_each(|t| out.insert(t));
    if tags.has(old) && !new.is_empty() {
        out.insert(new);
    }
    out
}

/// The same, of an access.
fn swap(access: &mut Access, old: &str, new: &'static str) {
    access.tags = swapped(&access.tags, old, new);
}

/// The halves of an access: what it reads with, and what it writes with.
fn halves(op: &mut Op) -> (Option<&mut Access>, Option<&mut Access>) {
    match op {
        Op::Load { access, .. } => (Some(access), None),
        Op::Store { access, .. } => (None, Some(access)),
        Op::Rmw { read, write, .. } => (Some(read), Some(write)),
        _ => (None, None),
    }
}

fn each_half(op: &mut Op, change: impl Fn(&mut Access)) {
    let (read, write) = halves(op);
    read.into_iter().chain(write).for_each(change);
}

/// What has one order acquires where it reads, and releases where it writes.
fn acquire_release(op: &mut Op, order: &str) {
    let (read, write) = halves(op);
    read.into_iter().for_each(|access| swap(access, order, "ACQ"));
    write.into_iter().for_each(|access| swap(access, order, "REL"));
}

fn alter(op: &mut Op, change: Change, program: &Program) {
    match (op, change) {
        // A weak access has none.
        (Op::Load { access, .. } | Op::Store { access, .. }, Change::Scope(scope)) if !access.tags.has("WEAK") => {
            access.scope = Some(scope);
        }
        (Op::Rmw { read, write, .. }, Change::Scope(scope)) => {
            (read.scope, write.scope) = (Some(scope), Some(scope));
        }
        (Op::Fence { scope: old, .. }, Change::Scope(scope)) => *old = Some(scope),
        (Op::Fence { tags, .. }, Change::BothRegions) => both_regions(tags, program),
        (Op::Barrier(b), Change::BothRegions) => {
            both_regions(&mut b.arrive, program);
            both_regions(&mut b.wait, program);
        }
        (Op::Load { access, .. } | Op::Store { access, .. }, Change::Strong(scope)) => {
            swap(access, "WEAK", "RLX");
            access.tags.insert("A");
            access.scope = Some(scope);
        }
        (op @ (Op::Load { .. } | Op::Store { .. }), Change::Synchronizing(scope)) => {
            alter(op, Change::Strong(scope), program);
            alter(op, Change::Synchronize, program);
        }
        (op, Change::Synchronize) => acquire_release(op, "RLX"),
        (op, Change::Sequential) => {
            each_half(op, |access| ORDERS.iter().for_each(|order| swap(access, order, "SC")));
        }
        (op @ (Op::Barrier(_) | Op::Fence { .. }), Change::Nothing) => {
            *op = Op::Branch { cond: Expr::Const(0), target: 0 };
        }
        (op, Change::Order(order)) => {
            // The constant proxy of PTX is called as the consume order of C.
            let proxy = match op {
                Op::Load { access, .. } => program.dialect == Dialect::Ptx && access.tags.has("CON"),
                _ => false,
            };
            strength::set_order(op, order);
            if let (true, Op::Load { access, .. }) = (proxy, op) {
                access.tags.insert("CON");
            }
        }
        (Op::Load { access, .. } | Op::Store { access, .. }, Change::Weak) => {
            access.tags = access.tags.without(&["A", "RLX", "ACQ", "REL", "VOLATILE", "MMIO"]);
            access.tags.insert("WEAK");
            access.scope = None;
        }
        (Op::Store { value, .. }, Change::Value(new)) => *value = Expr::Const(new),
        (Op::Branch { cond, .. }, Change::Path(taken)) => *cond = Expr::Const(i64::from(taken)),
        (Op::Fence { tags, .. }, Change::LesserFence) => *tags = swapped(tags, "SC", "ACQ_REL"),
        (op, Change::LesserAccess) => acquire_release(op, "SC"),
        (op, Change::Generic) => {
            each_half(op, |access| PROXIES.iter().for_each(|proxy| swap(access, proxy, "GEN")));
        }
        (Op::Rmw { read, write, .. }, Change::Atomic) => {
            swap(read, "RED", "");
            swap(write, "RED", "");
        }
        _ => {}
    }
}

/// Tags of orders below sequential consistency.
const ORDERS: &[&str] = &["RLX", "ACQ", "REL"];

/// Tags of the proxies of PTX besides the generic one.
pub const PROXIES: &[&str] = &["SUR", "TEX", "CON"];

/// Puts one location's address in place of another's where an access names it.
fn rename(op: &mut Op, old: LocId, new: LocId) {
    fn within(e: &mut Expr, old: LocId, new: LocId) {
        match e {
            Expr::Address(l) if *l == old => *l = new,
            Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => {
                within(a, old, new);
                within(b, old, new);
            }
            Expr::Select(c, a, b) => [c, a, b].into_iter().for_each(|e| within(e, old, new)),
            Expr::Cast(_, a) => within(a, old, new),
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => {}
        }
    }
    if let Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. } = op {
        within(addr, old, new);
    }
}

fn both_regions(tags: &mut Tags, program: &Program) {
    tags.extend(&["GLOBAL", "LOCAL"]);
    let capped = |l: &crate::Location| matches!(&l.kind, LocationKind::Object { opencl, .. } if opencl.capped);
    if program.locations.iter().any(capped) {
        tags.insert("CAPPED");
    }
}

/// The scope of an operation that has chosen one.
pub fn scope_of(op: &Op) -> Option<Scope> {
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } | Op::Rmw { read: access, .. } => {
            // In OpenCL, plain accesses have the scope of their work-item, which is not theirs to choose.
            access.scope.filter(|_| access.tags.has("A"))
        }
        Op::Fence { scope, .. } => *scope,
        _ => None,
    }
}

/// A scope that holds all threads, and is no narrower than any that the program uses.
pub fn enough(program: &Program) -> Scope {
    let places = || program.threads.iter().map(|t| &t.place);
    let holds = |scope: Scope| {
        places().enumerate().all(|(i, a)| places().enumerate().all(|(j, b)| i == j || a.same(b, scope)))
    };
    let needed = [Scope::Cta, Scope::Gpu].into_iter().find(|s| holds(*s)).unwrap_or(Scope::Sys);
    let used = program.threads.iter().flat_map(|t| &t.code).filter_map(|i| scope_of(&i.op)).max();
    used.map_or(needed, |used| used.max(needed))
}
