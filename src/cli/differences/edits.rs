//! Small changes of a program, one instruction at a time: what a rule of difference is tried on.

use program::edits::{Change, Edit, Fence, PROXIES, Site, enough, scope_of};
use program::{Dialect, LocId, LocationKind, Op, Program, Tags};

/// Which edits a rule consists of.
type Lister = fn(&Program) -> Vec<Edit>;

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
    each(program, |op| matches!(op, Op::Barrier(_)).then_some(Change::Nothing))
}

/// A fence of sequential consistency between any two accesses of a thread.
pub(super) fn fences(program: &Program) -> Vec<Edit> {
    let wide = enough(program);
    let access = |op: &Op| matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. });
    let mut seen = vec![false; program.threads.len()];
    let all = each(program, |op| access(op).then_some(Change::FenceBefore(Fence::Sequential(wide))));
    let later = |(site, _): &Edit| match site {
        Site::Instr(t, _) => std::mem::replace(&mut seen[t.0 as usize], true),
        _ => false,
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
