//! Evaluates a model on a partial candidate: for every cell, whether it must hold and whether it
//! may.
//!
//! # Invariants
//! - `must ⊆ may`, both among events that may execute.
//! - Sound: if the events of a cell execute, a cell in `must` holds in every completion of the
//!   partial candidate, and a cell outside `may` never holds.

use std::rc::Rc;

use super::companions::Companions;
use super::{RelAlgebra, Value};
use crate::model::ir::Test;
use crate::rel::{EventSet, Rel};

/// The algebra of a partial candidate, given by the events that must and may execute.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The events that execute in every completion.
    pub must: EventSet,
    /// The events that execute in some completion.
    pub may: EventSet,
    /// The events that execute whenever another one does, if they are known.
    pub companions: Option<Rc<Companions>>,
}

/// A lower and an upper bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound<T> {
    /// The members in every completion.
    pub must: T,
    /// A superset of the members in each completion.
    pub may: T,
}

impl Bound<Rel> {
    /// Both bounds of a known relation share one copy in memory. An operator on such operands
    /// computes its result only once.
    pub fn known(rel: Rel) -> Self {
        Bound {
            must: rel.clone(),
            may: rel,
        }
    }

    fn is_known(&self) -> bool {
        self.must.is_shared(&self.may)
    }

    /// Computes the lower bound from this lower bound and the `below` bound of the other, and the
    /// upper bound from this upper bound and the other's `above` bound.
    fn with(
        &self,
        other: &Self,
        below: BoundSide,
        above: BoundSide,
        of: impl Fn(Rel, &Rel) -> Rel,
    ) -> Self {
        let must = of(self.must.clone(), other.side(below));
        if self.is_known() && other.is_known() {
            return Bound::known(must);
        }
        Bound {
            must,
            may: of(self.may.clone(), other.side(above)),
        }
    }

    fn side(&self, side: BoundSide) -> &Rel {
        match side {
            BoundSide::Must => &self.must,
            BoundSide::May => &self.may,
        }
    }
}

/// One of the two bounds.
#[derive(Clone, Copy)]
enum BoundSide {
    Must,
    May,
}

/// The result of a test on bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It succeeds in every completion.
    Yes,
    /// It fails in every completion.
    No,
    /// The bounds do not decide it.
    Unknown,
}

impl Truth {
    /// The conjunction.
    pub fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::No, _) | (_, Truth::No) => Truth::No,
            (Truth::Yes, Truth::Yes) => Truth::Yes,
            _ => Truth::Unknown,
        }
    }
}

impl Bounds {
    /// Whether a test succeeds on a value.
    pub fn holds(&self, test: Test, value: &Value<Bound<EventSet>, Bound<Rel>>) -> Truth {
        let (fails, succeeds) = match (test, value) {
            (Test::Empty, Value::Set(s)) => (
                !s.must.clone().and(&self.must).is_empty(),
                s.may.clone().and(&self.may).is_empty(),
            ),
            (Test::Empty, Value::Rel(r)) => (
                !r.must.clone().restricted(&self.must).is_empty(),
                r.may.clone().restricted(&self.may).is_empty(),
            ),
            (Test::Irreflexive, v) => (
                v.rel().must.has_loop(&self.must),
                !v.rel().may.has_loop(&self.may),
            ),
            (Test::Acyclic, v) => (
                v.rel().must.has_cycle(&self.must),
                !v.rel().may.has_cycle(&self.may),
            ),
        };
        match (fails, succeeds) {
            (true, _) => Truth::No,
            (_, true) => Truth::Yes,
            _ => Truth::Unknown,
        }
    }

    fn n(&self) -> usize {
        self.may.universe_len()
    }

    /// Whether an event executes in every completion in which another one does.
    pub(crate) fn brings(&self, event: usize, other: usize) -> bool {
        let companions = self.companions.as_ref();
        self.must.has(other) || companions.is_some_and(|all| all.brings(event, other))
    }

    /// Adds to the lower bound of an operator with middle events.
    fn also(
        &self,
        mut bound: Bound<Rel>,
        of: impl Fn(&Companions, Rel, &EventSet) -> Rel,
    ) -> Bound<Rel> {
        if let Some(companions) = &self.companions
            && self.must != self.may
        {
            let open = self.may.clone().minus(&self.must);
            bound.must = of(companions, bound.must, &open);
        }
        bound
    }

    /// Computes both bounds of an operator with middle events: the events that must execute for the
    /// lower one, those that may for the upper one.
    fn through(&self, known: bool, of: impl Fn(BoundSide, &EventSet) -> Rel) -> Bound<Rel> {
        if known && self.must == self.may {
            return Bound::known(of(BoundSide::Must, &self.must));
        }
        Bound {
            must: of(BoundSide::Must, &self.must),
            may: of(BoundSide::May, &self.may),
        }
    }
}

impl RelAlgebra for Bounds {
    type Set = Bound<EventSet>;
    type Rel = Bound<Rel>;

    fn is_large(&self) -> bool {
        self.n() > 512
    }
    fn empty_set(&self) -> Self::Set {
        Bound {
            must: EventSet::empty(self.n()),
            may: EventSet::empty(self.n()),
        }
    }
    fn empty_rel(&self) -> Self::Rel {
        Bound::known(Rel::empty(self.n()))
    }
    fn universe(&self) -> Self::Set {
        // A cell of `_` holds given that its event executes. So the lower bound contains all
        // possible events, not only those that must execute.
        Bound {
            must: self.may.clone(),
            may: self.may.clone(),
        }
    }
    fn identity_on(&self, a: &Self::Set) -> Self::Rel {
        if a.must == a.may {
            return Bound::known(Rel::identity_on(&a.may));
        }
        Bound {
            must: Rel::identity_on(&a.must),
            may: Rel::identity_on(&a.may),
        }
    }
    fn product(&self, a: &Self::Set, b: &Self::Set) -> Self::Rel {
        if a.must == a.may && b.must == b.may {
            return Bound::known(Rel::product(&a.may, &b.may));
        }
        Bound {
            must: Rel::product(&a.must, &b.must),
            may: Rel::product(&a.may, &b.may),
        }
    }
    fn union_set(&self, a: &Self::Set, b: &Self::Set) -> Self::Set {
        Bound {
            must: a.must.clone().or(&b.must),
            may: a.may.clone().or(&b.may),
        }
    }
    fn inter_set(&self, a: &Self::Set, b: &Self::Set) -> Self::Set {
        Bound {
            must: a.must.clone().and(&b.must),
            may: a.may.clone().and(&b.may),
        }
    }
    fn diff_set(&self, a: &Self::Set, b: &Self::Set) -> Self::Set {
        Bound {
            must: a.must.clone().minus(&b.may),
            may: a.may.clone().minus(&b.must),
        }
    }
    fn union_rel(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel {
        a.with(b, BoundSide::Must, BoundSide::May, Rel::or)
    }
    fn inter_rel(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel {
        a.with(b, BoundSide::Must, BoundSide::May, Rel::and)
    }
    fn diff_rel(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel {
        a.with(b, BoundSide::May, BoundSide::Must, Rel::minus)
    }
    fn seq(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel {
        let bound = self.through(a.is_known() && b.is_known(), |side, middle| {
            a.side(side).seq(b.side(side), middle)
        });
        self.also(bound, |companions, all, open| {
            companions.sequence(all, &a.must, &b.must, open)
        })
    }
    fn inverse(&self, a: &Self::Rel) -> Self::Rel {
        if a.is_known() {
            Bound::known(a.may.inverse())
        } else {
            Bound {
                must: a.must.inverse(),
                may: a.may.inverse(),
            }
        }
    }
    fn plus(&self, a: &Self::Rel) -> Self::Rel {
        let bound = self.through(a.is_known(), |side, middle| {
            a.side(side).clone().plus(middle)
        });
        self.also(bound, Companions::closed)
    }
    fn domain(&self, a: &Self::Rel) -> Self::Set {
        Bound {
            must: a.must.domain(&self.must),
            may: a.may.domain(&self.may),
        }
    }
    fn range(&self, a: &Self::Rel) -> Self::Set {
        Bound {
            must: a.must.range(&self.must),
            may: a.may.range(&self.may),
        }
    }
}
