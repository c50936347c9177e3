//! Changes a test so that it must keep its meaning, or must only forbid more: on the program IR, so
//! for all dialects.
//!
//! # Invariants
//! - A renamed or permuted test keeps the names that outcomes show, up to the mark of [`renamed`].
//! - A stronger test has the same threads, registers and locations.

use std::convert::Infallible;

use program::edits::{Change, Edit, EditSite, NewFence};
use program::litmus::{Atom, ConditionTerm, LitmusTest, Observable, Prop};
use program::words::Order;
use program::{Expr, Init, LocId, LocationKind, Op, Scope, ThreadId};
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use why::knobs::{Around, Knob, scopes, strengths, version};

/// The suffix of every name that [`renamed`] gives.
pub const MARK: &str = "_renamed";

/// The test with its threads in another order.
pub fn permuted(test: &LitmusTest, rng: &mut Pcg64Mcg) -> LitmusTest {
    let mut order: Vec<usize> = (0..test.program.threads.len()).collect();
    order.shuffle(rng);
    let place = |t: ThreadId| {
        ThreadId(
            order
                .iter()
                .position(|&o| o == t.0 as usize)
                .expect("a permutation") as u16,
        )
    };
    let mut new = observed(
        test,
        &|o| match o {
            Observable::Reg(t, r) => Observable::Reg(place(t), r),
            Observable::Mem { loc, index, viewer } => Observable::Mem {
                loc,
                index,
                viewer: viewer.map(place),
            },
        },
        &|l| l,
    );
    new.program.threads = order
        .iter()
        .map(|&o| test.program.threads[o].clone())
        .collect();
    new
}

/// The test with other names for its locations and registers. The locations are also in another
/// order, unless one is an alias of another, which must come later.
pub fn renamed(test: &LitmusTest) -> LitmusTest {
    let n = test.program.locations.len() as u16;
    let aliases = test
        .program
        .locations
        .iter()
        .any(|l| matches!(l.kind, LocationKind::Alias { .. }));
    let place = |l: LocId| if aliases { l } else { LocId(n - 1 - l.0) };
    let mut new = observed(
        test,
        &|o| match o {
            Observable::Mem { loc, index, viewer } => Observable::Mem {
                loc: place(loc),
                index,
                viewer,
            },
            reg => reg,
        },
        &place,
    );
    for location in &mut new.program.locations {
        location.name += MARK;
        match &mut location.kind {
            LocationKind::Object { init, .. } => {
                init.iter_mut().for_each(|i| moved_init(i, &place))
            }
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
    fn atom(
        a: &Atom,
        to: &dyn Fn(Observable) -> Observable,
        place: &dyn Fn(LocId) -> LocId,
    ) -> Atom {
        match *a {
            Atom::Observable(o) => Atom::Observable(to(o)),
            Atom::Address { loc, index } => Atom::Address {
                loc: place(loc),
                index,
            },
            Atom::Const(v) => Atom::Const(v),
        }
    }
    fn prop(
        p: &Prop,
        to: &dyn Fn(Observable) -> Observable,
        place: &dyn Fn(LocId) -> LocId,
    ) -> Prop {
        match p {
            Prop::And(ps) => Prop::And(ps.iter().map(|p| prop(p, to, place)).collect()),
            Prop::Or(ps) => Prop::Or(ps.iter().map(|p| prop(p, to, place)).collect()),
            Prop::Not(p) => Prop::Not(Box::new(prop(p, to, place))),
            Prop::Cmp(op, ty, a, b) => {
                let side = |of: &ConditionTerm| {
                    let moved = of.mapped(&mut |a| Ok::<_, Infallible>(atom(a, to, place)));
                    moved.unwrap_or_else(|never| match never {})
                };
                Prop::Cmp(*op, *ty, side(a), side(b))
            }
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

fn moved_op(op: &mut Op, place: &dyn Fn(LocId) -> LocId) {
    let mut moved = |e: &mut Expr| {
        if let Expr::Address(l) = e {
            *l = place(*l);
        }
    };
    op.operands_mut()
        .into_iter()
        .for_each(|e| e.visit_mut(&mut moved));
}

/// A kind of change that may only forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stronger {
    /// One operation has a stronger order.
    Order,
    /// One operation has a wider scope.
    Scope,
    /// One fence more.
    Fence,
}

/// The test with one such change, and a description of it; `None` if no change is possible.
pub fn strengthened(
    test: &LitmusTest,
    kind: Stronger,
    rng: &mut Pcg64Mcg,
) -> Option<(LitmusTest, String)> {
    if kind == Stronger::Fence {
        let (t, i, instr) = test
            .program
            .instrs()
            .collect::<Vec<_>>()
            .choose(rng)
            .copied()?;
        let order = *[Order::SeqCst, Order::AcqRel, Order::Acquire, Order::Release].choose(rng)?;
        let fence = NewFence::Memory(order, *[Scope::Cta, Scope::Gpu, Scope::Sys].choose(rng)?);
        let what = format!("a fence in front of line {}: {fence:?}", instr.line);
        return Some((
            version(test, &[(EditSite::Instr(t, i), Change::FenceBefore(fence))]),
            what,
        ));
    }
    let around = Around::new(&test.program);
    let knobs = if kind == Stronger::Order {
        strengths(&around)
    } else {
        scopes(&around)
    };
    let knobs: Vec<Knob> = knobs.into_iter().filter_map(Knob::up).collect();
    let levels = knobs
        .iter()
        .flat_map(|knob| (1..=knob.top()).map(move |level| (knob, level)));
    let promised = |(knob, level): &(&Knob, usize)| {
        matches!(
            knob.change(*level),
            Some(Change::Order(_) | Change::Scope(_))
        )
    };
    let (knob, level) = levels
        .filter(promised)
        .collect::<Vec<_>>()
        .choose(rng)
        .copied()?;
    let edits: Vec<Edit> = knob.edits(level).collect();
    let need = knob.needs(test, 0, level).swap_remove(0);
    let what = format!(
        "line {} `{}` of {} has {}, not {}",
        need.line, need.text, need.thread, need.instead, need.what
    );
    Some((version(test, &edits), what))
}
