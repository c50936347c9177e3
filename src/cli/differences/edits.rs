//! Small changes of a program, one instruction at a time: what a rule of difference is tried on.
//!
//! # Invariants
//! - A change touches one instruction or one location; threads, registers and locations keep their indices, so a
//!   proposition means the same before and after.
//! - What is not changed keeps its place in the source.

use crate::program::{
    Access, Dialect, Expr, Instr, LocId, LocationKind, Op, Program, Scope, Space, Tags, ThreadId,
};

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// An instruction of a thread, by index.
    Instr(ThreadId, usize),
    /// A location.
    Location(LocId),
}

/// How it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The scope becomes this one.
    Scope(Scope),
    /// A fence or a barrier concerns both regions.
    BothRegions,
    /// A location of a work-group's memory becomes global.
    Global,
    /// A weak access becomes relaxed, of this scope.
    Strong(Scope),
    /// A relaxed load acquires, a relaxed store releases, a relaxed atomic does both.
    Synchronize,
    /// A fence of sequential consistency, of this scope, in front of it.
    FenceBefore(Scope),
    /// An atomic access is sequentially consistent.
    Sequential,
    /// There is no barrier.
    NoBarrier,
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
}

/// A change at a place.
pub(super) type Edit = (Site, Change);

/// Which edits a rule consists of.
type Lister = fn(&Program) -> Vec<Edit>;

/// The program after all the edits.
pub(super) fn edited(program: &Program, edits: &[Edit]) -> Program {
    let mut new = program.clone();
    for (site, change) in edits {
        match *site {
            Site::Instr(t, i) => {
                let op = &mut new.threads[t.0 as usize].code[i].op;
                alter(op, *change, program);
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
    let mut fences: Vec<(ThreadId, usize, Scope)> = Vec::new();
    for edit in edits {
        if let (Site::Instr(t, i), Change::FenceBefore(scope)) = *edit {
            fences.push((t, i, scope));
        }
    }
    fences.sort_by_key(|f| std::cmp::Reverse((f.0, f.1)));
    for (t, i, scope) in fences {
        let code = &mut new.threads[t.0 as usize].code;
        for instr in code.iter_mut() {
            if let Op::Branch { target, .. } = &mut instr.op
                && *target > i
            {
                *target += 1;
            }
        }
        let fence = Op::Fence { tags: fence_tags(program), scope: Some(scope) };
        let at = &code[i];
        let fence = Instr { op: fence, ..at.clone() };
        code.insert(i, fence);
    }
    new
}

fn fence_tags(program: &Program) -> Tags {
    match program.dialect {
        Dialect::Ptx => Tags::of(&["SC", "GEN"]),
        Dialect::OpenCl => Tags::of(&["SC", "GLOBAL", "LOCAL"]),
        _ => Tags::of(&["SC"]),
    }
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

fn alter(op: &mut Op, change: Change, program: &Program) {
    let swap = |access: &mut Access, old: &str, new: &'static str| access.tags = swapped(&access.tags, old, new);
    match (op, change) {
        (Op::Load { access, .. } | Op::Store { access, .. }, Change::Scope(scope)) => access.scope = Some(scope),
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
        (Op::Load { access, .. }, Change::Synchronize) => swap(access, "RLX", "ACQ"),
        (Op::Store { access, .. }, Change::Synchronize) => swap(access, "RLX", "REL"),
        (Op::Rmw { read, write, .. }, Change::Synchronize) => {
            swap(read, "RLX", "ACQ");
            swap(write, "RLX", "REL");
        }
        (Op::Load { access, .. } | Op::Store { access, .. }, Change::Sequential) => {
            ORDERS.iter().for_each(|order| swap(access, order, "SC"));
        }
        (Op::Rmw { read, write, .. }, Change::Sequential) => {
            ORDERS.iter().for_each(|order| swap(read, order, "SC"));
            ORDERS.iter().for_each(|order| swap(write, order, "SC"));
        }
        (op @ Op::Barrier(_), Change::NoBarrier) => *op = Op::Branch { cond: Expr::Const(0), target: 0 },
        (Op::Fence { tags, .. }, Change::LesserFence) => *tags = swapped(tags, "SC", "ACQ_REL"),
        (Op::Load { access, .. }, Change::LesserAccess) => swap(access, "SC", "ACQ"),
        (Op::Store { access, .. }, Change::LesserAccess) => swap(access, "SC", "REL"),
        (Op::Rmw { read, write, .. }, Change::LesserAccess) => {
            swap(read, "SC", "ACQ");
            swap(write, "SC", "REL");
        }
        (Op::Load { access, .. } | Op::Store { access, .. }, Change::Generic) => {
            PROXIES.iter().for_each(|proxy| swap(access, proxy, "GEN"));
        }
        (Op::Rmw { read, write, .. }, Change::Generic) => {
            PROXIES.iter().for_each(|proxy| swap(read, proxy, "GEN"));
            PROXIES.iter().for_each(|proxy| swap(write, proxy, "GEN"));
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
const PROXIES: &[&str] = &["SUR", "TEX", "CON"];

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
    let capped =
        |l: &crate::program::Location| matches!(&l.kind, LocationKind::Object { opencl, .. } if opencl.capped);
    if program.locations.iter().any(capped) {
        tags.insert("CAPPED");
    }
}

/// All instructions on which `change` says that something can be done.
fn each(program: &Program, change: impl Fn(&Op) -> Option<Change>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for t in program.thread_ids() {
        for (i, instr) in program.thread(t).code.iter().enumerate() {
            edits.extend(change(&instr.op).map(|c| (Site::Instr(t, i), c)));
        }
    }
    edits
}

fn scope_of(op: &Op) -> Option<Scope> {
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
fn enough(program: &Program) -> Scope {
    let places = || program.threads.iter().map(|t| &t.place);
    let holds = |scope: Scope| {
        places().enumerate().all(|(i, a)| places().enumerate().all(|(j, b)| i == j || a.same(b, scope)))
    };
    let needed = [Scope::Cta, Scope::Gpu].into_iter().find(|s| holds(*s)).unwrap_or(Scope::Sys);
    let used = program.threads.iter().flat_map(|t| &t.code).filter_map(|i| scope_of(&i.op)).max();
    used.map_or(needed, |used| used.max(needed))
}

/// All scopes wide enough.
pub(super) fn scopes(program: &Program) -> Vec<Edit> {
    if program.dialect == Dialect::C {
        return Vec::new();
    }
    let wide = enough(program);
    each(program, |op| scope_of(op).filter(|s| *s != wide).map(|_| Change::Scope(wide)))
}

/// Fences and barriers of both regions, and all memory global.
pub(super) fn regions(program: &Program) -> Vec<Edit> {
    if program.dialect != Dialect::OpenCl {
        return Vec::new();
    }
    let partial = |tags: &Tags| !(tags.has("GLOBAL") && tags.has("LOCAL"));
    let mut edits = each(program, |op| match op {
        Op::Fence { tags, .. } if partial(tags) => Some(Change::BothRegions),
        Op::Barrier(b) if partial(&b.arrive) => Some(Change::BothRegions),
        _ => None,
    });
    for (i, location) in program.locations.iter().enumerate() {
        if matches!(&location.kind, LocationKind::Object { opencl, .. } if opencl.local && !opencl.global) {
            edits.push((Site::Location(LocId(i as u16)), Change::Global));
        }
    }
    edits
}

/// No weak accesses (PTX).
pub(super) fn strong(program: &Program) -> Vec<Edit> {
    if program.dialect != Dialect::Ptx {
        return Vec::new();
    }
    let wide = enough(program);
    each(program, |op| match op {
        Op::Load { access, .. } | Op::Store { access, .. }
            if access.tags.has("WEAK") && access.tags.has("GEN") =>
        {
            Some(Change::Strong(wide))
        }
        _ => None,
    })
}

/// No relaxed accesses.
pub(super) fn synchronizing(program: &Program) -> Vec<Edit> {
    each(program, |op| match op {
        Op::Load { access, .. } | Op::Store { access, .. } if access.tags.has("RLX") => Some(Change::Synchronize),
        Op::Rmw { read, write, .. } if read.tags.has("RLX") || write.tags.has("RLX") => Some(Change::Synchronize),
        _ => None,
    })
}

/// Only sequentially consistent accesses (not PTX, which has none).
pub(super) fn sequential(program: &Program) -> Vec<Edit> {
    if program.dialect == Dialect::Ptx {
        return Vec::new();
    }
    each(program, |op| match op {
        Op::Load { access, .. } | Op::Store { access, .. } | Op::Rmw { read: access, .. }
            if access.tags.has("A") && !access.tags.has("SC") =>
        {
            Some(Change::Sequential)
        }
        _ => None,
    })
}

/// No barriers.
pub(super) fn no_barriers(program: &Program) -> Vec<Edit> {
    each(program, |op| matches!(op, Op::Barrier(_)).then_some(Change::NoBarrier))
}

/// A fence of sequential consistency between any two accesses of a thread.
pub(super) fn fences(program: &Program) -> Vec<Edit> {
    let wide = enough(program);
    let access = |op: &Op| matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. });
    let mut seen = vec![false; program.threads.len()];
    let all = each(program, |op| access(op).then_some(Change::FenceBefore(wide)));
    let later = |(site, _): &Edit| match site {
        Site::Instr(t, _) => std::mem::replace(&mut seen[t.0 as usize], true),
        Site::Location(_) => false,
    };
    let mut later = later;
    all.into_iter().filter(|edit| later(edit)).collect()
}

/// Fences of sequential consistency are only acquire and release.
pub(super) fn lesser_fences(program: &Program) -> Vec<Edit> {
    each(program, |op| matches!(op, Op::Fence { tags, .. } if tags.has("SC")).then_some(Change::LesserFence))
}

/// Accesses of sequential consistency are only acquire and release.
pub(super) fn lesser_accesses(program: &Program) -> Vec<Edit> {
    each(program, |op| {
        let access = match op {
            Op::Load { access, .. } | Op::Store { access, .. } | Op::Rmw { read: access, .. } => access,
            _ => return None,
        };
        access.tags.has("SC").then_some(Change::LesserAccess)
    })
}

/// One proxy and one name for each location (PTX).
pub(super) fn proxies(program: &Program) -> Vec<Edit> {
    if program.dialect != Dialect::Ptx {
        return Vec::new();
    }
    let mut edits = Vec::new();
    for (i, location) in program.locations.iter().enumerate() {
        if matches!(location.kind, LocationKind::Alias { .. }) {
            edits.push((Site::Location(LocId(i as u16)), Change::OneName));
        }
    }
    edits.extend(each(program, |op| match op {
        Op::Load { access, .. } | Op::Store { access, .. } | Op::Rmw { read: access, .. }
            if PROXIES.iter().any(|proxy| access.tags.has(proxy)) =>
        {
            Some(Change::Generic)
        }
        _ => None,
    }));
    edits
}

/// No reductions (PTX).
pub(super) fn atomics(program: &Program) -> Vec<Edit> {
    each(program, |op| matches!(op, Op::Rmw { read, .. } if read.tags.has("RED")).then_some(Change::Atomic))
}

/// A kind of change, and what a difference that it removes is called.
pub(super) struct Rule {
    /// The rule's name in reports.
    pub name: &'static str,
    /// Its edits.
    pub edits: Lister,
    /// What the edits do, after "with".
    pub with: &'static str,
}

/// Changes that make a program stronger, in the order in which they are tried; the first [`NARROW`] before those of
/// [`WEAKER`].
pub(super) const STRONGER: &[Rule] = &[
    Rule { name: "scope inclusion", edits: scopes, with: "a scope that holds all threads" },
    Rule { name: "region", edits: regions, with: "the flags of both regions" },
    Rule { name: "proxy", edits: proxies, with: "the location's own name and the generic proxy" },
    Rule { name: "reduction", edits: atomics, with: "`atom` in place of `red`" },
    Rule { name: "release and acquire", edits: synchronizing, with: "release or acquire order" },
    Rule { name: "moral strength", edits: strong, with: "a relaxed access in place of a weak one" },
    Rule { name: "sequential consistency", edits: sequential, with: "seq_cst order" },
    Rule { name: "program order", edits: fences, with: "a fence of sequential consistency in front" },
];

/// How many of [`STRONGER`] are about what an operation concerns, not about what it does.
pub(super) const NARROW: usize = 3;

/// Changes that take away what one model orders by and the other does not.
pub(super) const WEAKER: &[Rule] = &[
    Rule { name: "SC fence", edits: lesser_fences, with: "an acq_rel fence in its place" },
    Rule { name: "SC access", edits: lesser_accesses, with: "acquire or release order in its place" },
    Rule { name: "barrier", edits: no_barriers, with: "the barrier taken out" },
];
