//! Small changes of a program, each at one instruction, thread or location.
//!
//! An analysis that needs to know which parts of a program an answer depends on edits the program
//! and judges it again.
//!
//! # Invariants
//! - A change affects one instruction, one thread's place or one location. Threads, registers and
//!   locations keep their indices, so a proposition means the same before and after.
//! - Unchanged instructions keep their spans in the source.

use super::{
    Dialect, Element, Expr, Instr, LocId, Location, LocationKind, MemoryKind, Op, Program, Scope,
    Space, Tag, Tags, ThreadId,
};
use crate::proxy::PROXY_FENCES;
use crate::strength;
use crate::words::Order;

/// The target of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditSite {
    /// An instruction of a thread, by index.
    Instr(ThreadId, usize),
    /// A location.
    Location(LocId),
    /// A thread.
    Thread(ThreadId),
}

/// A fence to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewFence {
    /// A memory fence of this order and scope.
    Memory(Order, Scope),
    /// PTX: a proxy fence; the tag names its kind.
    Proxy(Tag),
}

/// A change of an instruction, a location or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The scope becomes this one.
    Scope(Scope),
    /// The order becomes this one, without the parts that the access cannot have.
    Order(Order),
    /// A strong access becomes weak (PTX).
    Weak,
    /// A plain or weak access becomes atomic with this order and scope; a location gets an atomic
    /// type.
    Atomic(Order, Option<Scope>),
    /// A reduction becomes an atomic that drops its result (PTX).
    Result,
    /// An access goes through the generic proxy (PTX).
    Generic,
    /// An access through an alias of a location uses the location's own name (PTX).
    OneName,
    /// A fence or a barrier covers all regions of memory (OpenCL).
    Regions,
    /// A location in work-group memory becomes global (OpenCL).
    Global,
    /// A buffer becomes fine-grained shared virtual memory with atomics (OpenCL).
    FineGrained,
    /// Inserts a fence before the instruction.
    FenceBefore(NewFence),
    /// Removes the instruction.
    Nothing,
    /// A store writes this value in every execution.
    Value(i64),
    /// A branch is always taken, or never.
    Path(bool),
    /// The thread moves to the place of another thread.
    PlaceOf(ThreadId),
}

/// A change at a place.
pub type Edit = (EditSite, Change);

/// Applies all edits to a copy of the program.
pub fn edited(program: &Program, edits: &[Edit]) -> Program {
    let mut new = program.clone();
    for &(site, change) in edits {
        match site {
            EditSite::Instr(t, i) => {
                let code = &mut new.threads[usize::from(t.0)].code;
                // Removing an operation on an mbarrier object removes the micro-ops that follow it,
                // too.
                let last = (i..code.len())
                    .take_while(|&at| at == i || code[at].follows(&code[i]))
                    .last();
                let whole = if change == Change::Nothing {
                    i..last.unwrap_or(i) + 1
                } else {
                    i..i + 1
                };
                let whole = if code[i].element.of > 1 {
                    code[i].element.siblings(i)
                } else {
                    whole
                };
                // The elements of a vector share one order and scope.
                for at in whole {
                    if at == i || !matches!(change, Change::Value(_)) {
                        alter(&mut code[at].op, at, change, program);
                    }
                }
            }
            EditSite::Thread(t) => {
                if let Change::PlaceOf(other) = change {
                    new.threads[usize::from(t.0)].place = program.thread(other).place.clone();
                }
            }
            EditSite::Location(l) if change == Change::OneName => {
                let object = program.object(l);
                let code = new.threads.iter_mut().flat_map(|t| &mut t.code);
                code.for_each(|instr| rename(&mut instr.op, l, object));
            }
            EditSite::Location(l) => {
                alter_location(&mut new.locations[usize::from(l.0)].kind, change)
            }
        }
    }
    // Fences come last and from the end of the code, since an insertion moves later indices.
    let mut fences: Vec<(ThreadId, usize, NewFence)> = Vec::new();
    for edit in edits {
        if let (EditSite::Instr(t, i), Change::FenceBefore(fence)) = *edit {
            let first = program.thread(t).code[i].element.siblings(i).start;
            fences.push((t, first, fence));
        }
    }
    fences.sort_by_key(|f| std::cmp::Reverse((f.0, f.1)));
    for (t, i, fence) in fences {
        let code = &mut new.threads[usize::from(t.0)].code;
        for instr in code.iter_mut() {
            instr
                .op
                .target_mut()
                .filter(|target| **target > i)
                .into_iter()
                .for_each(|target| *target += 1);
        }
        let text = fence_text(program.dialect, fence);
        let fence = Instr {
            op: fence_op(program, fence),
            element: Element::ONLY,
            text,
            assembly: None,
            tile: None,
            ..code[i].clone()
        };
        code.insert(i, fence);
    }
    new
}

/// The source text of a fence.
pub fn fence_text(dialect: Dialect, fence: NewFence) -> String {
    let (order, scope) = match fence {
        NewFence::Proxy(kind) => {
            let kind = PROXY_FENCES
                .iter()
                .find(|row| row.1 == kind)
                .map_or("generic", |row| row.0);
            return format!("fence.proxy.{kind}");
        }
        NewFence::Memory(order, scope) => (order, scope),
    };
    let row = dialect.row();
    (row.fence)(row.order_word(order), &row.scope_word(scope))
}

fn fence_op(program: &Program, fence: NewFence) -> Op {
    match fence {
        NewFence::Proxy(kind) => Op::fence(Tags::of(&[Tag::ProxyFence, kind]), None),
        NewFence::Memory(order, scope) => {
            let mut tags = Tags::of(&[order.of_fence()]);
            tags.extend(program.dialect.row().fence_tags);
            Op::fence(tags, Some(scope))
        }
    }
}

fn alter(op: &mut Op, at: usize, change: Change, program: &Program) {
    match (op, change) {
        // Weak accesses have no scope.
        (op, Change::Scope(scope)) if !op.has(Tag::Weak) => op.set_scope(Some(scope)),
        (op, Change::Order(order)) => strength::set_order(op, order),
        (op, Change::Weak) => strength::make_weak(op),
        (op, Change::Atomic(order, scope)) => strength::make_atomic(op, order, scope),
        (op, Change::Result) => op
            .accesses_mut()
            .for_each(|access| access.tags = access.tags.without(&[Tag::Reduction])),
        (op, Change::Generic) => op.accesses_mut().for_each(|access| {
            access.tags = access.tags.without(&PROXIES);
            access.tags.insert(Tag::Generic);
        }),
        (op, Change::Regions) => {
            let ordering = op
                .tags_mut()
                .into_iter()
                .filter(|(kind, _)| kind.is_in("F"));
            ordering.for_each(|(_, tags)| all_regions(tags, program));
        }
        // A branch to the next instruction that is never taken.
        (op, Change::Nothing) => {
            *op = Op::Branch {
                cond: Expr::Const(0),
                target: at + 1,
            }
        }
        (Op::Store { value, .. }, Change::Value(new)) => *value = Expr::Const(new),
        (Op::Branch { cond, .. }, Change::Path(taken)) => *cond = Expr::Const(i64::from(taken)),
        _ => {}
    }
}

fn alter_location(location: &mut LocationKind, change: Change) {
    let LocationKind::Object {
        space,
        opencl,
        kind,
        atomic,
        ..
    } = location
    else {
        return;
    };
    match change {
        Change::Global => {
            *space = Space::Global;
            (opencl.global, opencl.local, opencl.capped) = (true, false, false);
        }
        Change::FineGrained => *kind = MemoryKind::SvmFineAtomic,
        Change::Atomic(..) => *atomic = true,
        _ => {}
    }
}

/// The tags of the proxies that a PTX proxy fence can synchronize with the generic proxy.
pub const PROXIES: [Tag; 5] = [
    Tag::Surface,
    Tag::Texture,
    Tag::Constant,
    Tag::Alias,
    Tag::AsyncProxy,
];

/// Replaces one location's address by another's in the address of an access.
fn rename(op: &mut Op, old: LocId, new: LocId) {
    if let Some(addr) = op.address_mut() {
        addr.visit_mut(&mut |e| {
            if *e == Expr::Address(old) {
                *e = Expr::Address(new);
            }
        });
    }
}

fn all_regions(tags: &mut Tags, program: &Program) {
    tags.extend(&[Tag::Global, Tag::Local]);
    let capped =
        |l: &Location| matches!(&l.kind, LocationKind::Object { opencl, .. } if opencl.capped);
    if program.locations.iter().any(capped) {
        tags.insert(Tag::Capped);
    }
}

/// The narrowest scope that covers all threads and is at least as wide as each scope in the
/// program.
pub fn enough(program: &Program) -> Scope {
    let places = || program.threads.iter().map(|t| &t.place);
    let needed = [Scope::Cta, Scope::Gpu]
        .into_iter()
        .find(|s| {
            places()
                .enumerate()
                .all(|(i, a)| places().enumerate().all(|(j, b)| i == j || a.same(b, *s)))
        })
        .unwrap_or(Scope::Sys);
    let used = program
        .threads
        .iter()
        .flat_map(|t| &t.code)
        .filter_map(|i| strength::scope(&i.op))
        .max();
    used.map_or(needed, |used| used.max(needed))
}
