//! The node table under construction: hash-consing and the simplifications that are exact.
//!
//! # Invariants
//! - Operands come before the nodes that use them; equal operators over equal operands are one node.
//! - Every rewriting here preserves the value in every execution, including those in which sets are empty.
//! - `[S];r` and `r;[S]` become `r & (S * _)` and `r & (_ * S)`: operands only hold executed events, so the event in
//!   the middle needs no guard and the result is decided cell by cell. Products that meet are merged.
//! - A relation intersected with a product is always `Inter(core, product)` in this order.
//!
//! # Sources
//! - Hash-consed relational circuits: Torlak, Jackson, *Kodkod*, TACAS 2007.

use rustc_hash::FxHashMap;

use super::ir::{FixGroup, Kind, Model, Node, NodeId, NodeOp};
use crate::diag::Span;

/// A place in one of the model's files.
pub(super) type Place = (u32, Span);

/// An operator under construction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Op {
    /// As in the finished table.
    Plain(NodeOp),
    /// The value of member `.1` of the recursion group `.0`, seen from outside the group.
    Value(u32, u32),
}

#[derive(Clone, Debug)]
struct Entry {
    op: Op,
    kind: Kind,
    is_static: bool,
    /// The recursion group whose variables it depends on.
    group: Option<u32>,
    name: Option<String>,
    place: Place,
}

#[derive(Clone, Debug)]
struct Group {
    names: Vec<String>,
    vars: Vec<NodeId>,
    bodies: Vec<NodeId>,
    is_static: bool,
    /// Length of the table when the group was closed; 0 if it was given up.
    closed_at: usize,
}

/// The table.
#[derive(Default)]
pub(super) struct Builder {
    entries: Vec<Entry>,
    known: FxHashMap<(Op, Kind), NodeId>,
    groups: Vec<Group>,
    /// The place that new nodes get.
    pub(super) place: Place,
}

impl Builder {
    fn add(&mut self, op: Op, kind: Kind, is_static: bool, group: Option<u32>) -> NodeId {
        if let Some(&id) = self.known.get(&(op.clone(), kind)) {
            return id;
        }
        let id = NodeId(self.entries.len() as u32);
        self.entries.push(Entry { op: op.clone(), kind, is_static, group, name: None, place: self.place });
        self.known.insert((op, kind), id);
        id
    }

    /// An operator node: static and recursive as its operands are.
    fn node(&mut self, op: NodeOp, kind: Kind) -> NodeId {
        let is_static = op.operands().all(|o| self.entries[o.index()].is_static);
        let group = op.operands().find_map(|o| self.entries[o.index()].group);
        self.add(Op::Plain(op), kind, is_static, group)
    }

    fn op(&self, id: NodeId) -> Option<&NodeOp> {
        match &self.entries[id.index()].op {
            Op::Plain(op) => Some(op),
            Op::Value(..) => None,
        }
    }

    /// Set or relation.
    pub(super) fn kind(&self, id: NodeId) -> Kind {
        self.entries[id.index()].kind
    }

    /// Whether no free relation is below it.
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

    pub(super) fn base(&mut self, name: &str, kind: Kind) -> NodeId {
        self.add(Op::Plain(NodeOp::Base(name.to_string())), kind, true, None)
    }

    pub(super) fn free(&mut self, id: super::ir::FreeId) -> NodeId {
        self.add(Op::Plain(NodeOp::Free(id)), Kind::Rel, false, None)
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
        if self.is_empty(set) { self.empty(Kind::Rel) } else { self.node(NodeOp::IdentityOn(set), Kind::Rel) }
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
        if let Some(&NodeOp::Diff(all, not)) = self.op(b) {
            if self.is_all(all) {
                return self.diff(a, not);
            }
        }
        if let Some(&NodeOp::Diff(all, not)) = self.op(a) {
            if self.is_all(all) {
                return self.diff(b, not);
            }
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

    /// A relation as the intersection of something and a product.
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

    /// `core & (s * t)` where `core` is not such an intersection itself.
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
        // `~~b` is `b`, and so is `a \ ~b` inside `a`.
        if let Some(&NodeOp::Diff(all, inner)) = self.op(b) {
            if self.is_all(all) {
                return self.inter(a, inner);
            }
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

    /// `a ; b ; …`: identities are first joined to the factor before them, so that each restricts the smallest piece.
    pub(super) fn seq_all(&mut self, factors: &[NodeId]) -> NodeId {
        let mut joined: Vec<NodeId> = Vec::new();
        for &factor in factors {
            let identity = |b: &Self, id| matches!(b.op(id), Some(NodeOp::IdentityOn(_)));
            match joined.last_mut() {
                Some(last) if identity(self, factor) || identity(self, *last) => *last = self.seq(*last, factor),
                _ => joined.push(factor),
            }
        }
        let mut joined = joined.into_iter();
        let Some(first) = joined.next() else { return self.id() };
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
            Some(NodeOp::Plus(_) | NodeOp::Empty | NodeOp::IdentityOn(_) | NodeOp::Product(..)) => a,
            _ => self.node(NodeOp::Plus(a), Kind::Rel),
        }
    }

    /// `a?`
    pub(super) fn optional(&mut self, a: NodeId) -> NodeId {
        let id = self.id();
        if let Some(NodeOp::IdentityOn(_)) = self.op(a) { id } else { self.union(a, id) }
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

    /// Whether every event of set `a` is surely in set `b`, as far as the operators show.
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

/// What one summand of a recursive body is.
enum Summand {
    /// Does not mention the variable.
    Plain(NodeId),
    /// The variable alone.
    Variable,
    /// `X ; B`
    Left(NodeId),
    /// `B ; X`
    Right(NodeId),
    /// `X ; B ; X`; `None` for `X ; X`
    Both(Option<NodeId>),
}

// Recursion.
impl Builder {
    /// Opens a group; its variables are the members' recursive occurrences.
    pub(super) fn open_group(&mut self, names: &[String], kinds: &[Kind]) -> (u32, Vec<NodeId>) {
        let group = self.groups.len() as u32;
        let vars: Vec<NodeId> = kinds
            .iter()
            .enumerate()
            .map(|(member, &kind)| self.add(Op::Plain(NodeOp::Var(group, member as u32)), kind, true, Some(group)))
            .collect();
        let vars_out = vars.clone();
        self.groups.push(Group { names: names.to_vec(), vars, bodies: Vec::new(), is_static: true, closed_at: 0 });
        (group, vars_out)
    }

    /// Closes a group whose bodies all depend on its variables; the members' values, to be used outside it.
    pub(super) fn close_group(&mut self, group: u32, bodies: &[NodeId]) -> Vec<NodeId> {
        let is_static = bodies.iter().all(|&b| self.is_static(b));
        let closed_at = self.entries.len();
        let names = self.groups[group as usize].names.clone();
        for (body, name) in bodies.iter().zip(&names) {
            self.name(*body, name);
        }
        let group_entry = &mut self.groups[group as usize];
        group_entry.bodies = bodies.to_vec();
        group_entry.is_static = is_static;
        group_entry.closed_at = closed_at;
        let kinds: Vec<Kind> = bodies.iter().map(|&b| self.kind(b)).collect();
        (0..bodies.len() as u32)
            .zip(kinds)
            .map(|(member, kind)| self.add(Op::Value(group, member), kind, is_static, None))
            .collect()
    }

    /// The least fixpoint of `var = body` as a closure, if the body is a union of terms that do not mention the
    /// variable and of `X;B`, `B;X`, `X;X` and `X;B;X`.
    pub(super) fn closed_form(&mut self, var: NodeId, body: NodeId) -> Option<NodeId> {
        let empty = self.empty(Kind::Rel);
        let (mut plain, mut left, mut right, mut both) = (empty, empty, empty, empty);
        let mut square = false;
        let mut todo = vec![body];
        while let Some(term) = todo.pop() {
            if let (Some(&NodeOp::Union(a, b)), true) = (self.op(term), self.is_recursive(term)) {
                todo.extend([b, a]);
                continue;
            }
            match self.summand(var, term)? {
                Summand::Plain(a) => plain = self.union(plain, a),
                Summand::Variable => {}
                Summand::Left(b) => left = self.union(left, b),
                Summand::Right(b) => right = self.union(right, b),
                Summand::Both(Some(b)) => both = self.union(both, b),
                Summand::Both(None) => square = true,
            }
        }
        // Words of the grammar X ::= A | X B | C X | X D X are (C* A B*) (D C* A B*)*.
        let before = self.star(right);
        let after = self.star(left);
        let word = self.seq_all(&[before, plain, after]);
        if square {
            let id = self.id();
            both = self.union(both, id);
        }
        let step = self.seq(both, word);
        if self.is_empty(step) {
            return Some(word);
        }
        // w | w;(D;w)+ ; for D = id this is w+.
        if square && matches!(self.op(both), Some(NodeOp::IdentityOn(_))) {
            return Some(self.plus(word));
        }
        let step = self.star_of_prefix(both, word);
        let more = self.seq(step, word);
        Some(self.union(word, more))
    }

    /// `(w;d)+`
    fn star_of_prefix(&mut self, d: NodeId, w: NodeId) -> NodeId {
        let step = self.seq(w, d);
        self.plus(step)
    }

    fn star(&mut self, a: NodeId) -> NodeId {
        let plus = self.plus(a);
        self.optional(plus)
    }

    fn summand(&self, var: NodeId, term: NodeId) -> Option<Summand> {
        if !self.is_recursive(term) {
            return Some(Summand::Plain(term));
        }
        if term == var {
            return Some(Summand::Variable);
        }
        let Some(&NodeOp::Seq(a, b)) = self.op(term) else { return None };
        match (self.is_recursive(a), self.is_recursive(b)) {
            (true, false) if a == var => Some(Summand::Left(b)),
            (false, true) if b == var => Some(Summand::Right(a)),
            (true, true) if a == var && b == var => Some(Summand::Both(None)),
            (true, true) => {
                // `(X;B);X` or `X;(B;X)`
                let middle = match (self.op(a), self.op(b)) {
                    (Some(&NodeOp::Seq(x, m)), _) if x == var && b == var => m,
                    (_, Some(&NodeOp::Seq(m, x))) if x == var && a == var => m,
                    _ => return None,
                };
                (!self.is_recursive(middle)).then_some(Summand::Both(Some(middle)))
            }
            _ => None,
        }
    }
}

// The finished table.
impl Builder {
    /// Writes the nodes that `roots` need into the model, groups contiguous; the new index of every root, in order.
    pub(super) fn finish(&self, roots: &[NodeId], model: &mut Model) -> Vec<NodeId> {
        let needed = self.needed(roots);
        let mut index: Vec<Option<NodeId>> = vec![None; self.entries.len()];
        // Groups close in order, so one pass over the table suffices.
        let mut closing: Vec<u32> = (0..self.groups.len() as u32)
            .filter(|&g| self.groups[g as usize].vars.iter().any(|v| needed[v.index()]))
            .collect();
        closing.sort_by_key(|&g| self.groups[g as usize].closed_at);
        let mut closing = closing.into_iter().peekable();
        for at in 0..=self.entries.len() {
            while let Some(group) = closing.next_if(|&g| self.groups[g as usize].closed_at == at) {
                self.finish_group(group, &needed, &mut index, model);
            }
            if at < self.entries.len() && needed[at] && self.entries[at].group.is_none() {
                self.finish_node(at, None, &mut index, model);
            }
        }
        roots.iter().map(|r| index[r.index()].expect("roots are needed, so they were written")).collect()
    }

    /// Which entries are reachable from the roots.
    fn needed(&self, roots: &[NodeId]) -> Vec<bool> {
        let mut needed = vec![false; self.entries.len()];
        let mut todo = roots.to_vec();
        while let Some(id) = todo.pop() {
            if std::mem::replace(&mut needed[id.index()], true) {
                continue;
            }
            match &self.entries[id.index()].op {
                Op::Plain(op) => todo.extend(op.operands()),
                Op::Value(group, _) => {
                    let group = &self.groups[*group as usize];
                    todo.extend(group.vars.iter().chain(&group.bodies));
                }
            }
        }
        needed
    }

    fn finish_group(&self, group: u32, needed: &[bool], index: &mut [Option<NodeId>], model: &mut Model) {
        let entry = &self.groups[group as usize];
        let number = model.groups.len() as u32;
        let start = model.nodes.len() as u32;
        for (member, var) in entry.vars.iter().enumerate() {
            index[var.index()] = Some(NodeId(model.nodes.len() as u32));
            let from = &self.entries[var.index()];
            model.nodes.push(Node {
                op: NodeOp::Var(number, member as u32),
                kind: from.kind,
                is_static: entry.is_static,
                name: Some(entry.names[member].clone()),
                span: from.place,
            });
        }
        for at in 0..entry.closed_at {
            if needed[at] && self.entries[at].group == Some(group) && index[at].is_none() {
                self.finish_node(at, Some(entry.is_static), index, model);
            }
        }
        let new = |id: &NodeId| index[id.index()].expect("members of a needed group are needed");
        model.groups.push(FixGroup {
            names: entry.names.clone(),
            vars: entry.vars.iter().map(new).collect(),
            bodies: entry.bodies.iter().map(new).collect(),
            range: start..model.nodes.len() as u32,
        });
        // From outside, a member is its body.
        for (member, body) in entry.bodies.iter().enumerate() {
            let value = (Op::Value(group, member as u32), self.kind(*body));
            if let Some(value) = self.known.get(&value) {
                index[value.index()] = index[body.index()];
            }
        }
    }

    fn finish_node(&self, at: usize, is_static: Option<bool>, index: &mut [Option<NodeId>], model: &mut Model) {
        if index[at].is_some() {
            return;
        }
        let entry = &self.entries[at];
        let Op::Plain(op) = &entry.op else { return };
        let new = |id: &NodeId| index[id.index()].expect("operands come before their users");
        let op = match op {
            NodeOp::Base(_) | NodeOp::Free(_) | NodeOp::Var(..) | NodeOp::Empty | NodeOp::Universe => op.clone(),
            NodeOp::IdentityOn(a) => NodeOp::IdentityOn(new(a)),
            NodeOp::Inverse(a) => NodeOp::Inverse(new(a)),
            NodeOp::Plus(a) => NodeOp::Plus(new(a)),
            NodeOp::Domain(a) => NodeOp::Domain(new(a)),
            NodeOp::Range(a) => NodeOp::Range(new(a)),
            NodeOp::Product(a, b) => NodeOp::Product(new(a), new(b)),
            NodeOp::Union(a, b) => NodeOp::Union(new(a), new(b)),
            NodeOp::Inter(a, b) => NodeOp::Inter(new(a), new(b)),
            NodeOp::Diff(a, b) => NodeOp::Diff(new(a), new(b)),
            NodeOp::Seq(a, b) => NodeOp::Seq(new(a), new(b)),
        };
        index[at] = Some(NodeId(model.nodes.len() as u32));
        model.nodes.push(Node {
            op,
            kind: entry.kind,
            is_static: is_static.unwrap_or(entry.is_static),
            name: entry.name.clone(),
            span: entry.place,
        });
    }
}
