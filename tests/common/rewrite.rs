//! Changes of a test that must mean nothing, or must only forbid: on the program IR, so for every dialect alike.
//!
//! # Invariants
//! - A renamed or permuted test keeps the names that outcomes show, up to the mark of [`renamed`].
//! - A stronger test has the same threads, registers and locations.

use fencepost::litmus::{Atom, LitmusTest, Observable, Prop};
use fencepost::program::{
    Access, Dialect, Expr, Init, Instr, LocId, LocationKind, Op, Program, RegId, Scope, Tags, ThreadId, Update,
};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;

/// Ends every name that [`renamed`] gives.
pub const MARK: &str = "_renamed";

/// The test with its threads in another order.
pub fn permuted(test: &LitmusTest, rng: &mut Pcg64Mcg) -> LitmusTest {
    let mut order: Vec<usize> = (0..test.program.threads.len()).collect();
    order.shuffle(rng);
    let place =
        |t: ThreadId| ThreadId(order.iter().position(|&o| o == t.0 as usize).expect("a permutation") as u16);
    let mut new = observed(
        test,
        &|o| match o {
            Observable::Reg(t, r) => Observable::Reg(place(t), r),
            Observable::Mem { loc, index, viewer } => Observable::Mem { loc, index, viewer: viewer.map(place) },
        },
        &|l| l,
    );
    new.program.threads = order.iter().map(|&o| test.program.threads[o].clone()).collect();
    new
}

/// The test with its locations under other names and, where none is another's alias, which must come later, in another
/// order; its registers have other names, too.
pub fn renamed(test: &LitmusTest) -> LitmusTest {
    let n = test.program.locations.len() as u16;
    let aliases = test.program.locations.iter().any(|l| matches!(l.kind, LocationKind::Alias { .. }));
    let place = |l: LocId| if aliases { l } else { LocId(n - 1 - l.0) };
    let mut new = observed(
        test,
        &|o| match o {
            Observable::Mem { loc, index, viewer } => Observable::Mem { loc: place(loc), index, viewer },
            reg => reg,
        },
        &place,
    );
    for location in &mut new.program.locations {
        location.name += MARK;
        match &mut location.kind {
            LocationKind::Object { init, .. } => init.iter_mut().for_each(|i| moved_init(i, &place)),
            LocationKind::Alias { of, .. } => *of = place(*of),
        }
    }
    if !aliases {
        new.program.locations.reverse();
    }
    for thread in &mut new.program.threads {
        for reg in &mut thread.regs {
            reg.name += MARK;
            moved_init(&mut reg.init, &place);
        }
        for instr in &mut thread.code {
            moved_op(&mut instr.op, &place);
        }
    }
    new
}

/// The test with other observables.
fn observed(
    test: &LitmusTest,
    to: &dyn Fn(Observable) -> Observable,
    place: &dyn Fn(LocId) -> LocId,
) -> LitmusTest {
    fn atom(a: &Atom, to: &dyn Fn(Observable) -> Observable, place: &dyn Fn(LocId) -> LocId) -> Atom {
        match *a {
            Atom::Observable(o) => Atom::Observable(to(o)),
            Atom::Address { loc, index } => Atom::Address { loc: place(loc), index },
            Atom::Const(v) => Atom::Const(v),
        }
    }
    fn prop(p: &Prop, to: &dyn Fn(Observable) -> Observable, place: &dyn Fn(LocId) -> LocId) -> Prop {
        match p {
            Prop::And(ps) => Prop::And(ps.iter().map(|p| prop(p, to, place)).collect()),
            Prop::Or(ps) => Prop::Or(ps.iter().map(|p| prop(p, to, place)).collect()),
            Prop::Not(p) => Prop::Not(Box::new(prop(p, to, place))),
            Prop::Cmp(op, ty, a, b) => Prop::Cmp(*op, *ty, atom(a, to, place), atom(b, to, place)),
        }
    }
    LitmusTest {
        condition: test.condition.as_ref().map(|p| prop(p, to, place)),
        filter: test.filter.as_ref().map(|p| prop(p, to, place)),
        observe: test.observe.iter().map(|&o| to(o)).collect(),
        ..test.clone()
    }
}

fn moved_init(init: &mut Init, place: &dyn Fn(LocId) -> LocId) {
    if let Init::Address { loc, .. } = init {
        *loc = place(*loc);
    }
}

fn moved(e: &mut Expr, place: &dyn Fn(LocId) -> LocId) {
    match e {
        Expr::Address(l) => *l = place(*l),
        Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => [a, b].into_iter().for_each(|e| moved(e, place)),
        Expr::Select(a, b, c) => [a, b, c].into_iter().for_each(|e| moved(e, place)),
        Expr::Cast(_, a) => moved(a, place),
        Expr::Const(_) | Expr::Reg(RegId(_)) => {}
    }
}

fn moved_op(op: &mut Op, place: &dyn Fn(LocId) -> LocId) {
    match op {
        Op::Load { addr, .. } => moved(addr, place),
        Op::Store { addr, value, .. } => [addr, value].into_iter().for_each(|e| moved(e, place)),
        Op::Rmw { addr, update, .. } => {
            moved(addr, place);
            match update {
                Update::Exchange(e) | Update::Apply(_, e) => moved(e, place),
                Update::CompareExchange { expected, new } => {
                    [expected, new].into_iter().for_each(|e| moved(e, place));
                }
                Update::When { cond, new } => [cond, new].into_iter().for_each(|e| moved(e, place)),
            }
        }
        Op::Assign { value, .. } => moved(value, place),
        Op::Branch { cond, .. } => moved(cond, place),
        Op::Fence { .. }
        | Op::Barrier(_)
        | Op::Spurious { .. }
        | Op::Call(_)
        | Op::Enqueue(_)
        | Op::Status { .. } => {}
    }
}

/// A kind of change that may only forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stronger {
    /// One operation's order, one step up.
    Order,
    /// One operation's scope, one step wider.
    Scope,
    /// One fence more.
    Fence,
}

/// The test with one such change, and what was changed; `None` if nothing can be.
pub fn strengthened(test: &LitmusTest, kind: Stronger, rng: &mut Pcg64Mcg) -> Option<(LitmusTest, String)> {
    let dialect = test.program.dialect;
    let mut new = test.clone();
    let mut changes: Vec<(usize, usize, Op)> = Vec::new();
    for (t, thread) in test.program.threads.iter().enumerate() {
        for (i, instr) in thread.code.iter().enumerate() {
            let found = match kind {
                Stronger::Order => orders(&instr.op, dialect),
                Stronger::Scope => wider(&instr.op, dialect).into_iter().collect(),
                Stronger::Fence => Vec::new(),
            };
            changes.extend(found.into_iter().map(|op| (t, i, op)));
        }
    }
    if kind == Stronger::Fence {
        let (t, thread) = test.program.threads.iter().enumerate().collect::<Vec<_>>().choose(rng).copied()?;
        if thread.code.is_empty() {
            return None;
        }
        let i = rng.random_range(0..thread.code.len());
        let what = format!("a fence in front of line {} of {}", thread.code[i].line, thread.name);
        insert(&mut new.program, t, i, fence(dialect, rng));
        return Some((new, what));
    }
    let (t, i, op) = changes.choose(rng)?.clone();
    let instr = &mut new.program.threads[t].code[i];
    let what = format!("line {} `{}` of P{t} becomes {op:?}", instr.line, instr.text);
    instr.op = op;
    Some((new, what))
}

fn fence(dialect: Dialect, rng: &mut Pcg64Mcg) -> Op {
    let order = *["SC", "ACQ_REL", "ACQ", "REL"].choose(rng).expect("not empty");
    let scope = *[Scope::Cta, Scope::Gpu, Scope::Sys].choose(rng).expect("not empty");
    let tags = match dialect {
        Dialect::Ptx => Tags::of(&[order, "GEN"]),
        Dialect::OpenCl => Tags::of(&[order, "GLOBAL", "LOCAL", "CAPPED"]),
        _ => Tags::of(&[order]),
    };
    Op::Fence { tags, scope: (dialect != Dialect::C).then_some(scope) }
}

fn insert(program: &mut Program, t: usize, i: usize, op: Op) {
    let code = &mut program.threads[t].code;
    for instr in code.iter_mut() {
        if let Op::Branch { target, .. } = &mut instr.op
            && *target > i
        {
            *target += 1;
        }
    }
    let new = Instr { op, ..code[i].clone() };
    code.insert(i, new);
}

fn with(access: &Access, old: &'static str, new: &'static str) -> Option<Access> {
    access.tags.has(old).then(|| {
        let mut tags = Tags::default();
        access.tags.iter().filter(|t| *t != old).for_each(|t| tags.insert(t));
        tags.insert(new);
        Access { tags, ..access.clone() }
    })
}

/// The operation with its order one step up, in every way there is.
fn orders(op: &Op, dialect: Dialect) -> Vec<Op> {
    // PTX has no sequentially consistent accesses.
    let top = |from| (dialect != Dialect::Ptx).then_some((from, "SC"));
    let steps = |strong: &'static str| [Some(("RLX", strong)), top(strong)];
    let mut list = Vec::new();
    match op {
        Op::Load { dst, addr, access } => {
            for (old, new) in steps("ACQ").into_iter().flatten() {
                if let Some(access) = with(access, old, new) {
                    list.push(Op::Load { dst: *dst, addr: addr.clone(), access });
                }
            }
        }
        Op::Store { addr, value, access } => {
            for (old, new) in steps("REL").into_iter().flatten() {
                if let Some(access) = with(access, old, new) {
                    list.push(Op::Store { addr: addr.clone(), value: value.clone(), access });
                }
            }
        }
        Op::Rmw { dst, addr, update, read, write } => {
            let rmw = |read: Access, write: Access| Op::Rmw {
                dst: *dst,
                addr: addr.clone(),
                update: update.clone(),
                read,
                write,
            };
            if !read.tags.has("RED") {
                list.extend(with(read, "RLX", "ACQ").map(|r| rmw(r, write.clone())));
            }
            list.extend(with(write, "RLX", "REL").map(|w| rmw(read.clone(), w)));
        }
        Op::Fence { tags, scope } => {
            for (old, new) in [("ACQ", "ACQ_REL"), ("REL", "ACQ_REL"), ("ACQ_REL", "SC")] {
                if tags.has(old) {
                    let access = Access { tags: tags.clone(), scope: *scope, ty: fencepost::program::Ty::S32 };
                    let tags = with(&access, old, new).expect("it has the tag").tags;
                    list.push(Op::Fence { tags, scope: *scope });
                }
            }
        }
        _ => {}
    }
    list
}

/// The operation with its scope one step wider.
fn wider(op: &Op, dialect: Dialect) -> Option<Op> {
    if dialect == Dialect::C {
        return None;
    }
    let next = |scope: Scope| match scope {
        Scope::Cta | Scope::Cluster | Scope::QueueFamily => Some(Scope::Gpu),
        Scope::Gpu => Some(Scope::Sys),
        Scope::Warp => Some(Scope::Cta),
        Scope::Thread | Scope::Sys => None,
    };
    let mut op = op.clone();
    let wide = |access: &mut Access| -> Option<()> {
        access.tags.has("A").then_some(())?;
        access.scope = Some(next(access.scope?)?);
        Some(())
    };
    match &mut op {
        Op::Load { access, .. } | Op::Store { access, .. } => wide(access)?,
        Op::Rmw { read, write, .. } => {
            wide(read)?;
            write.scope = read.scope;
        }
        Op::Fence { scope, .. } => *scope = Some(next((*scope)?)?),
        _ => return None,
    }
    Some(op)
}
