//! Algebras: the different ways to evaluate a model over a skeleton.
//!
//! [`interpret`] loops over a model's node table once, for any [`RelAlgebra`]:
//!
//! | Algebra | A relation is … | For |
//! |---|---|---|
//! | [`bits::Bits`] | rows of machine words | one candidate; replaying a witness |
//! | [`bounds::Bounds`] | a pair (must, may) of them | pruning partial candidates |
//! | [`presence::Presence`] | whether it may have members at all | finding the flags that a program
//! can raise |
//! | [`fingerprint::HashAlgebra`] | a hash | comparing two models |
//! | [`circuit::Circuit`] | gates for the open cells that the axioms need | the symbolic encoding |
//! | `naive::Naive` (tests) | a set of pairs | the oracle for the others |
//!
//! # Invariants
//! - A cell states a fact about two events *given that both execute*. `;`, closures, `domain` and
//!   `range` require that the middle event executes; tests require it of both ends. No other
//!   operator mentions execution.
//!
//! # Sources
//! - One evaluator for checking and translating: Kodkod (Torlak, Jackson, TACAS 2007).

use std::rc::Rc;
use std::time::Instant;

use crate::model::ir::{FixGroup, FreeId, Kind, Model, NodeId, NodeOp};
use crate::model::signature::BaseId;

pub mod bits;
pub mod bounds;
pub mod circuit;
pub mod companions;
pub mod fingerprint;
pub mod gates;
pub mod implied;
pub mod presence;

/// The value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<S, R> {
    /// The value of a set node.
    Set(S),
    /// The value of a relation node.
    Rel(R),
}

impl<S, R> Value<S, R> {
    /// The set.
    ///
    /// # Panics
    /// If it is a relation: models are typed.
    pub fn set(&self) -> &S {
        match self {
            Value::Set(s) => s,
            Value::Rel(_) => panic!("models are typed: a set was expected"),
        }
    }

    /// The relation.
    ///
    /// # Panics
    /// If it is a set: models are typed.
    pub fn rel(&self) -> &R {
        match self {
            Value::Rel(r) => r,
            Value::Set(_) => panic!("models are typed: a relation was expected"),
        }
    }
}

/// Set and relation operators over some representation.
pub trait RelAlgebra {
    /// A set of events.
    type Set: Clone + PartialEq;
    /// A relation on events.
    type Rel: Clone + PartialEq;

    /// Whether one operation may take long, so that the clock is read before each.
    fn is_large(&self) -> bool {
        false
    }
    /// The empty set.
    fn empty_set(&self) -> Self::Set;
    /// The empty relation.
    fn empty_rel(&self) -> Self::Rel;
    /// All executed events.
    fn universe(&self) -> Self::Set;
    /// `[a]`
    fn identity_on(&self, a: &Self::Set) -> Self::Rel;
    /// `a * b`
    fn product(&self, a: &Self::Set, b: &Self::Set) -> Self::Rel;
    /// `a | b`
    fn union_set(&self, a: &Self::Set, b: &Self::Set) -> Self::Set;
    /// `a & b`
    fn inter_set(&self, a: &Self::Set, b: &Self::Set) -> Self::Set;
    /// `a \ b`
    fn diff_set(&self, a: &Self::Set, b: &Self::Set) -> Self::Set;
    /// `a | b`
    fn union_rel(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel;
    /// `a & b`
    fn inter_rel(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel;
    /// `a \ b`
    fn diff_rel(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel;
    /// `a ; b`
    fn seq(&self, a: &Self::Rel, b: &Self::Rel) -> Self::Rel;
    /// `a^-1`
    fn inverse(&self, a: &Self::Rel) -> Self::Rel;
    /// `a+`
    fn plus(&self, a: &Self::Rel) -> Self::Rel;
    /// `domain(a)`
    fn domain(&self, a: &Self::Rel) -> Self::Set;
    /// `range(a)`
    fn range(&self, a: &Self::Rel) -> Self::Set;
}

/// Values of a model's leaves in an algebra.
pub trait Leaves<A: RelAlgebra> {
    /// A base set or relation.
    fn base(&self, id: BaseId, kind: Kind) -> Value<A::Set, A::Rel>;
    /// A free relation.
    fn free(&self, id: FreeId) -> A::Rel;
}

/// The value of a node, if it was computed.
pub type Computed<A> = Option<Rc<Value<<A as RelAlgebra>::Set, <A as RelAlgebra>::Rel>>>;

/// Receives the value of a node, and returns whether to continue.
pub type Seer<'s, A> =
    &'s mut dyn FnMut(NodeId, &Value<<A as RelAlgebra>::Set, <A as RelAlgebra>::Rel>) -> bool;

/// Values by node.
pub type Values<A> = Vec<Computed<A>>;

/// The nodes that the given roots depend on.
pub fn needed(model: &Model, roots: impl IntoIterator<Item = NodeId>) -> Vec<bool> {
    needed_unless(model, roots, |_| false)
}

/// The nodes that the given roots depend on, except those that are used only by nodes with a
/// `known` value.
pub fn needed_unless(
    model: &Model,
    roots: impl IntoIterator<Item = NodeId>,
    known: impl Fn(NodeId) -> bool,
) -> Vec<bool> {
    let mut needed = vec![false; model.nodes.len()];
    let mut stack: Vec<NodeId> = roots.into_iter().collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut needed[id.index()], true) || known(id) {
            continue;
        }
        stack.extend(model.node(id).op.operands());
        // A fixpoint is always computed as a whole.
        if let Some(group) = model.groups.iter().find(|g| g.range.contains(&id.0)) {
            stack.extend(group.range.clone().map(NodeId));
        }
    }
    needed
}

/// Values that an evaluation takes over.
pub struct Reuse<'v, A: RelAlgebra> {
    /// The values of some nodes.
    pub known: &'v [Computed<A>],
    /// An earlier run in an equal algebra, or empty. Equal values are shared with it, and nodes
    /// with only shared operands are not recomputed.
    pub before: &'v [Computed<A>],
}

impl<A: RelAlgebra> Reuse<'_, A> {
    /// No values.
    pub fn none() -> Self {
        Reuse {
            known: &[],
            before: &[],
        }
    }
}

/// Computes every needed node. `None`: the deadline has passed, or a stop was requested.
pub fn interpret<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    leaves: &impl Leaves<A>,
    needed: &[bool],
    reuse: Reuse<'_, A>,
    deadline: Option<Instant>,
) -> Option<Values<A>> {
    interpret_while(
        model,
        algebra,
        leaves,
        needed,
        reuse,
        &|| stop::late(deadline),
        &mut |_, _| true,
    )
}

/// The same as [`interpret`], but cannot stop early; for short computations.
pub fn interpret_all<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    leaves: &impl Leaves<A>,
    needed: &[bool],
) -> Values<A> {
    interpret_while(
        model,
        algebra,
        leaves,
        needed,
        Reuse::none(),
        &|| false,
        &mut |_, _| true,
    )
    .expect("nothing ends it")
}

/// The same as [`interpret`], until the observer of the values returns false; later nodes then have
/// no value. `None`: `ends` stopped it.
pub fn interpret_while<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    leaves: &impl Leaves<A>,
    needed: &[bool],
    reuse: Reuse<'_, A>,
    ends: &dyn Fn() -> bool,
    more: Seer<'_, A>,
) -> Option<Values<A>> {
    let Reuse { known, before } = reuse;
    let mut values: Values<A> = vec![None; model.nodes.len()];
    let (mut i, mut made) = (0, 0usize);
    while i < model.nodes.len() {
        let group = model.groups.iter().find(|g| g.range.start as usize == i);
        let these = i..group.map_or(i + 1, |g| g.range.end as usize);
        i = these.end;
        if !needed[these.start] {
            continue;
        }
        let kept = |i: usize| match (&values[i], before.get(i)) {
            (Some(now), Some(Some(then))) => Rc::ptr_eq(now, then),
            _ => these.contains(&i),
        };
        match (group, known.get(these.start)) {
            (None, Some(Some(value))) => values[these.start] = Some(value.clone()),
            _ if these.clone().all(|i| {
                let op = &model.nodes[i].op;
                let leaf = matches!(op, NodeOp::Base(_) | NodeOp::Free(_));
                !leaf
                    && matches!(before.get(i), Some(Some(_)))
                    && op.operands().all(|o| kept(o.index()))
            }) =>
            {
                values[these.clone()].clone_from_slice(&before[these.clone()])
            }
            _ => {
                // Reading the clock costs more than computing a small relation.
                made += 1;
                if (made.is_multiple_of(16) || algebra.is_large()) && ends() {
                    return None;
                }
                match group {
                    Some(group) => fixpoint(model, algebra, leaves, group, &mut values, |_| {}),
                    None => {
                        values[these.start] =
                            Some(Rc::new(node(model, algebra, leaves, these.start, &values)));
                    }
                }
                for (now, then) in values[these.clone()]
                    .iter_mut()
                    .zip(before.get(these.clone()).into_iter().flatten())
                {
                    if now == then {
                        now.clone_from(then);
                    }
                }
            }
        }
        for at in these {
            if let Some(value) = &values[at]
                && !more(NodeId(at as u32), value)
            {
                return Some(values);
            }
        }
    }
    Some(values)
}

/// Computes the least fixpoint of a group by iteration from the empty relations. It terminates
/// because the bodies are monotone and the universe is finite. `each` sees the values of every
/// round, in which variables have the values of their bodies in the previous round.
fn fixpoint<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    leaves: &impl Leaves<A>,
    group: &FixGroup,
    values: &mut Values<A>,
    mut each: impl FnMut(&Values<A>),
) {
    for var in &group.vars {
        values[var.index()] = Some(Rc::new(empty(algebra, model.node(*var).kind)));
    }
    loop {
        for i in group.range.clone() {
            if !matches!(model.nodes[i as usize].op, NodeOp::Var(..)) {
                values[i as usize] =
                    Some(Rc::new(node(model, algebra, leaves, i as usize, values)));
            }
        }
        each(values);
        let mut changed = false;
        for (var, body) in group.vars.iter().zip(&group.bodies) {
            let new = values[body.index()].clone();
            changed |= values[var.index()] != new;
            values[var.index()] = new;
        }
        if !changed {
            return;
        }
    }
}

/// The rounds of a group's fixpoint, given the values of all other nodes. In round `r`, a variable
/// has the value of its body in round `r - 1`. The last round changes nothing.
pub fn rounds<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    group: &FixGroup,
    values: &Values<A>,
) -> Vec<Values<A>> {
    /// No group contains leaves, since they depend on no variable.
    struct NoLeaves;
    impl<A: RelAlgebra> Leaves<A> for NoLeaves {
        fn base(&self, _: BaseId, _: Kind) -> Value<A::Set, A::Rel> {
            unreachable!("a base relation depends on no variable")
        }
        fn free(&self, _: FreeId) -> A::Rel {
            unreachable!("a free relation depends on no variable")
        }
    }
    let mut rounds = Vec::new();
    fixpoint(
        model,
        algebra,
        &NoLeaves,
        group,
        &mut values.clone(),
        |round| rounds.push(round.clone()),
    );
    rounds
}

/// The empty set or relation.
pub fn empty<A: RelAlgebra>(algebra: &A, kind: Kind) -> Value<A::Set, A::Rel> {
    match kind {
        Kind::Set => Value::Set(algebra.empty_set()),
        Kind::Rel => Value::Rel(algebra.empty_rel()),
    }
}

fn node<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    leaves: &impl Leaves<A>,
    index: usize,
    values: &Values<A>,
) -> Value<A::Set, A::Rel> {
    let node = &model.nodes[index];
    let get = |id: NodeId| {
        values[id.index()]
            .as_deref()
            .expect("operands come before their node")
    };
    match &node.op {
        NodeOp::Base(id) => leaves.base(*id, node.kind),
        NodeOp::Free(id) => Value::Rel(leaves.free(*id)),
        NodeOp::Var(..) => unreachable!("variables are set by their group"),
        NodeOp::Empty => empty(algebra, node.kind),
        NodeOp::Universe => Value::Set(algebra.universe()),
        NodeOp::IdentityOn(a) => Value::Rel(algebra.identity_on(get(*a).set())),
        NodeOp::Product(a, b) => Value::Rel(algebra.product(get(*a).set(), get(*b).set())),
        NodeOp::Union(a, b) => match (get(*a), get(*b)) {
            (Value::Set(x), y) => Value::Set(algebra.union_set(x, y.set())),
            (Value::Rel(x), y) => Value::Rel(algebra.union_rel(x, y.rel())),
        },
        NodeOp::Inter(a, b) => match (get(*a), get(*b)) {
            (Value::Set(x), y) => Value::Set(algebra.inter_set(x, y.set())),
            (Value::Rel(x), y) => Value::Rel(algebra.inter_rel(x, y.rel())),
        },
        NodeOp::Diff(a, b) => match (get(*a), get(*b)) {
            (Value::Set(x), y) => Value::Set(algebra.diff_set(x, y.set())),
            (Value::Rel(x), y) => Value::Rel(algebra.diff_rel(x, y.rel())),
        },
        NodeOp::Seq(a, b) => Value::Rel(algebra.seq(get(*a).rel(), get(*b).rel())),
        NodeOp::Inverse(a) => Value::Rel(algebra.inverse(get(*a).rel())),
        NodeOp::Plus(a) => Value::Rel(algebra.plus(get(*a).rel())),
        NodeOp::Domain(a) => Value::Set(algebra.domain(get(*a).rel())),
        NodeOp::Range(a) => Value::Set(algebra.range(get(*a).rel())),
    }
}
