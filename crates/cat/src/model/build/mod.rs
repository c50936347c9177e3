//! The node table under construction: hash-consing and exact simplifications.
//!
//! # Invariants
//! - Operands come before the nodes that use them. Equal operators over equal operands are the same
//!   node.
//! - Every rewriting here preserves the value in every execution, even if sets are empty.
//! - `[S];r` and `r;[S]` become `r & (S * _)` and `r & (_ * S)`. Operands hold only executed
//!   events, so the middle event needs no guard, and the result is decided cell by cell. Adjacent
//!   products are merged.
//! - A relation intersected with a product is always `Inter(core, product)` in this order.
//!
//! # Sources
//! - Hash-consed relational circuits: Torlak, Jackson, *Kodkod*, TACAS 2007.

use rustc_hash::FxHashMap;

use super::ir::{Kind, NodeId, NodeOp};
use super::signature::BaseId;
use diag::Span;

mod finish;
mod groups;

/// A span in one of the model's files.
pub(super) type Place = (u32, Span);

/// An operator under construction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TableOp {
    /// As in the finished table.
    Plain(NodeOp),
    /// The value of member `.1` of the recursion group `.0`, seen from outside the group.
    Value(u32, u32),
}

#[derive(Clone, Debug)]
struct TableEntry {
    op: TableOp,
    kind: Kind,
    is_static: bool,
    /// The recursion group whose variables it depends on.
    group: Option<u32>,
    name: Option<String>,
    place: Place,
}

#[derive(Clone, Debug)]
struct RecursionGroup {
    names: Vec<String>,
    vars: Vec<NodeId>,
    bodies: Vec<NodeId>,
    is_static: bool,
    /// Length of the table when the group was closed; 0 if it was discarded.
    closed_at: usize,
}

/// The table.
#[derive(Default)]
pub(super) struct TableBuilder {
    entries: Vec<TableEntry>,
    known: FxHashMap<(TableOp, Kind), NodeId>,
    groups: Vec<RecursionGroup>,
    /// The place that new nodes get.
    pub(super) place: Place,
}

impl TableBuilder {
    fn add(&mut self, op: TableOp, kind: Kind, is_static: bool, group: Option<u32>) -> NodeId {
        if let Some(&id) = self.known.get(&(op.clone(), kind)) {
            return id;
        }
        let id = NodeId(self.entries.len() as u32);
        self.entries.push(TableEntry {
            op: op.clone(),
            kind,
            is_static,
            group,
            name: None,
            place: self.place,
        });
        self.known.insert((op, kind), id);
        id
    }

    /// An operator node; it is static and recursive according to its operands.
    fn node(&mut self, op: NodeOp, kind: Kind) -> NodeId {
        let is_static = op.operands().all(|o| self.entries[o.index()].is_static);
        let group = op.operands().find_map(|o| self.entries[o.index()].group);
        self.add(TableOp::Plain(op), kind, is_static, group)
    }

    fn op(&self, id: NodeId) -> Option<&NodeOp> {
        match &self.entries[id.index()].op {
            TableOp::Plain(op) => Some(op),
            TableOp::Value(..) => None,
        }
    }

    /// Set or relation.
    pub(super) fn kind(&self, id: NodeId) -> Kind {
        self.entries[id.index()].kind
    }

    /// Whether it depends on no free relation.
    pub(super) fn is_static(&self, id: NodeId) -> bool {
        self.entries[id.index()].is_static
    }

    /// Whether it depends on a variable of a recursion group that is still open.
    pub(super) fn is_recursive(&self, id: NodeId) -> bool {
        self.entries[id.index()].group.is_some()
    }

    /// Gives a computed node its `let` name, unless it has one.
    pub(super) fn name(&mut self, id: NodeId, name: &str) {
        let leaf = self.is_all(id)
            || match self.op(id) {
                Some(&NodeOp::IdentityOn(set)) => self.is_universe(set),
                Some(NodeOp::Base(_) | NodeOp::Free(_) | NodeOp::Var(..) | NodeOp::Empty) => true,
                _ => false,
            };
        let entry = &mut self.entries[id.index()];
        if entry.name.is_none() && !leaf {
            entry.name = Some(name.to_string());
        }
    }

    // Leaves.

    pub(super) fn base(&mut self, id: BaseId, kind: Kind) -> NodeId {
        self.add(TableOp::Plain(NodeOp::Base(id)), kind, true, None)
    }

    pub(super) fn free(&mut self, id: super::ir::FreeId) -> NodeId {
        self.add(TableOp::Plain(NodeOp::Free(id)), Kind::Rel, false, None)
    }

    pub(super) fn empty(&mut self, kind: Kind) -> NodeId {
        self.node(NodeOp::Empty, kind)
    }

    pub(super) fn universe(&mut self) -> NodeId {
        self.node(NodeOp::Universe, Kind::Set)
    }

    /// `_ * _`
    pub(super) fn full(&mut self) -> NodeId {
        let all = self.universe();
        self.node(NodeOp::Product(all, all), Kind::Rel)
    }

    /// `[_]`
    pub(super) fn id(&mut self) -> NodeId {
        let all = self.universe();
        self.node(NodeOp::IdentityOn(all), Kind::Rel)
    }

    /// Everything of a kind: `_` or `_ * _`.
    pub(super) fn all(&mut self, kind: Kind) -> NodeId {
        match kind {
            Kind::Set => self.universe(),
            Kind::Rel => self.full(),
        }
    }

    fn is_empty(&self, id: NodeId) -> bool {
        self.op(id) == Some(&NodeOp::Empty)
    }

    fn is_universe(&self, id: NodeId) -> bool {
        self.op(id) == Some(&NodeOp::Universe)
    }

    fn is_all(&self, id: NodeId) -> bool {
        match self.op(id) {
            Some(NodeOp::Universe) => true,
            Some(&NodeOp::Product(a, b)) => self.is_universe(a) && self.is_universe(b),
            _ => false,
        }
    }

    // Operators. The caller has checked kinds.

    pub(super) fn identity(&mut self, set: NodeId) -> NodeId {
        if self.is_empty(set) {
            self.empty(Kind::Rel)
        } else {
            self.node(NodeOp::IdentityOn(set), Kind::Rel)
        }
    }

    pub(super) fn product(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if self.is_empty(a) || self.is_empty(b) {
            return self.empty(Kind::Rel);
        }
        self.node(NodeOp::Product(a, b), Kind::Rel)
    }

    pub(super) fn union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if a == b || self.is_empty(b) || self.is_all(a) {
            return a;
        }
        if self.is_empty(a) || self.is_all(b) {
            return b;
        }
        let kind = self.kind(a);
        self.node(NodeOp::Union(a.min(b), a.max(b)), kind)
    }

    pub(super) fn inter(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if a == b || self.is_empty(a) || self.is_all(b) {
            return a;
        }
        if self.is_empty(b) || self.is_all(a) {
            return b;
        }
        // `a & ~b` is `a \ b`.
        if let Some(&NodeOp::Diff(all, not)) = self.op(b)
            && self.is_all(all)
        {
            return self.diff(a, not);
        }
        if let Some(&NodeOp::Diff(all, not)) = self.op(a)
            && self.is_all(all)
        {
            return self.diff(b, not);
        }
        if self.kind(a) == Kind::Set {
            return self.node(NodeOp::Inter(a.min(b), a.max(b)), Kind::Set);
        }
        let (core_a, product_a) = self.split(a);
        let (core_b, product_b) = self.split(b);
        let core = match (core_a, core_b) {
            (Some(x), Some(y)) if x == y => Some(x),
            (Some(x), Some(y)) => match (self.op(x).cloned(), self.op(y).cloned()) {
                (Some(NodeOp::IdentityOn(s)), Some(NodeOp::IdentityOn(t))) => {
                    let both = self.inter(s, t);
                    Some(self.identity(both))
                }
                _ => Some(self.node(NodeOp::Inter(x.min(y), x.max(y)), Kind::Rel)),
            },
            (x, y) => x.or(y),
        };
        let product = match (product_a, product_b) {
            (Some((s, t)), Some((u, v))) => Some((self.inter(s, u), self.inter(t, v))),
            (p, q) => p.or(q),
        };
        match (core, product) {
            (Some(core), Some((s, t))) => self.restrict(core, s, t),
            (Some(core), None) => core,
            (None, Some((s, t))) => self.product(s, t),
            (None, None) => a,
        }
    }

    /// Splits a relation into a core and a product that it is intersected with.
    fn split(&self, id: NodeId) -> (Option<NodeId>, Option<(NodeId, NodeId)>) {
        match self.op(id) {
            Some(&NodeOp::Product(s, t)) => (None, Some((s, t))),
            Some(&NodeOp::Inter(core, p)) => match self.op(p) {
                Some(&NodeOp::Product(s, t)) => (Some(core), Some((s, t))),
                _ => (Some(id), None),
            },
            _ => (Some(id), None),
        }
    }

    /// `core & (s * t)`, where `core` is no such intersection.
    fn restrict(&mut self, core: NodeId, s: NodeId, t: NodeId) -> NodeId {
        if self.is_universe(s) && self.is_universe(t) {
            return core;
        }
        if let Some(&NodeOp::IdentityOn(set)) = self.op(core) {
            let ends = self.inter(s, t);
            let set = self.inter(set, ends);
            return self.identity(set);
        }
        let product = self.product(s, t);
        if self.is_empty(product) || self.is_empty(core) {
            return self.empty(Kind::Rel);
        }
        self.node(NodeOp::Inter(core, product), Kind::Rel)
    }

    pub(super) fn diff(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let kind = self.kind(a);
        if a == b || self.is_all(b) {
            return self.empty(kind);
        }
        if self.is_empty(a) || self.is_empty(b) {
            return a;
        }
        // `~~b` is `b`; so `a \ ~b` is `a & b`.
        if let Some(&NodeOp::Diff(all, inner)) = self.op(b)
            && self.is_all(all)
        {
            return self.inter(a, inner);
        }
        self.node(NodeOp::Diff(a, b), kind)
    }

    /// `a ; b`
    pub(super) fn seq(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if self.is_empty(a) || self.is_empty(b) {
            return self.empty(Kind::Rel);
        }
        if let Some(&NodeOp::IdentityOn(set)) = self.op(a) {
            let all = self.universe();
            let ends = self.product(set, all);
            return self.inter(b, ends);
        }
        if let Some(&NodeOp::IdentityOn(set)) = self.op(b) {
            let all = self.universe();
            let ends = self.product(all, set);
            return self.inter(a, ends);
        }
        self.node(NodeOp::Seq(a, b), Kind::Rel)
    }

    /// `a ; b ; …`. Identities are first joined to a neighbouring factor, so that each restricts
    /// the smallest piece.
    pub(super) fn seq_all(&mut self, factors: &[NodeId]) -> NodeId {
        let mut joined: Vec<NodeId> = Vec::new();
        for &factor in factors {
            fn identity(b: &TableBuilder, id: NodeId) -> bool {
                matches!(b.op(id), Some(NodeOp::IdentityOn(_)))
            }
            match joined.last_mut() {
                Some(last) if identity(self, factor) || identity(self, *last) => {
                    *last = self.seq(*last, factor)
                }
                _ => joined.push(factor),
            }
        }
        let mut joined = joined.into_iter();
        let Some(first) = joined.next() else {
            return self.id();
        };
        joined.fold(first, |a, b| self.seq(a, b))
    }

    pub(super) fn inverse(&mut self, a: NodeId) -> NodeId {
        match self.op(a).cloned() {
            Some(NodeOp::Inverse(inner)) => inner,
            Some(NodeOp::Empty | NodeOp::IdentityOn(_)) => a,
            Some(NodeOp::Product(s, t)) => self.product(t, s),
            _ => self.node(NodeOp::Inverse(a), Kind::Rel),
        }
    }

    pub(super) fn plus(&mut self, a: NodeId) -> NodeId {
        match self.op(a) {
            Some(NodeOp::Plus(_) | NodeOp::Empty | NodeOp::IdentityOn(_) | NodeOp::Product(..)) => {
                a
            }
            _ => self.node(NodeOp::Plus(a), Kind::Rel),
        }
    }

    /// `a?`
    pub(super) fn optional(&mut self, a: NodeId) -> NodeId {
        let id = self.id();
        if let Some(NodeOp::IdentityOn(_)) = self.op(a) {
            id
        } else {
            self.union(a, id)
        }
    }

    pub(super) fn domain(&mut self, a: NodeId) -> NodeId {
        match self.op(a) {
            Some(&NodeOp::IdentityOn(set)) => set,
            Some(NodeOp::Empty) => self.empty(Kind::Set),
            _ => self.node(NodeOp::Domain(a), Kind::Set),
        }
    }

    pub(super) fn range(&mut self, a: NodeId) -> NodeId {
        match self.op(a) {
            Some(&NodeOp::IdentityOn(set)) => set,
            Some(NodeOp::Empty) => self.empty(Kind::Set),
            _ => self.node(NodeOp::Range(a), Kind::Set),
        }
    }

    /// Whether the operators prove that set `a` is a subset of set `b`.
    pub(super) fn is_subset(&self, a: NodeId, b: NodeId) -> bool {
        self.is_subset_within(a, b, 32)
    }

    fn is_subset_within(&self, a: NodeId, b: NodeId, depth: u32) -> bool {
        let sub = |x| depth > 0 && self.is_subset_within(x, b, depth - 1);
        a == b
            || match self.op(a) {
                Some(&NodeOp::Inter(x, y)) => sub(x) || sub(y),
                Some(&NodeOp::Diff(x, _)) => sub(x),
                Some(&NodeOp::Union(x, y)) => sub(x) && sub(y),
                _ => false,
            }
    }
}
