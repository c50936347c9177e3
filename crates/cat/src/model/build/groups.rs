//! Recursion in the table: groups of variables and bodies. Most groups are unnecessary, because a
//! closure replaces them.
//!
//! # Invariants
//! - Groups do not overlap: a group is opened, its bodies are built, and it is closed or discarded
//!   before the next one opens.
//! - Outside its group a member is a value node and never a variable, so no outside node depends on
//!   a variable.
//!
//! # Sources
//! - Closed forms: the words of a linear grammar are regular over its parts, and so are those of a
//!   grammar with `X ::= X D X`.

use super::super::ir::{Kind, NodeId, NodeOp};
use super::{RecursionGroup, TableBuilder, TableOp};

/// One operand of the union in a recursive body.
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

impl TableBuilder {
    /// Opens a group; its variables are the members' recursive occurrences.
    pub(in crate::model) fn open_group(
        &mut self,
        names: &[String],
        kinds: &[Kind],
    ) -> (u32, Vec<NodeId>) {
        let group = self.groups.len() as u32;
        let vars: Vec<NodeId> = kinds
            .iter()
            .enumerate()
            .map(|(member, &kind)| {
                self.add(
                    TableOp::Plain(NodeOp::Var(group, member as u32)),
                    kind,
                    true,
                    Some(group),
                )
            })
            .collect();
        let vars_out = vars.clone();
        self.groups.push(RecursionGroup {
            names: names.to_vec(),
            vars,
            bodies: Vec::new(),
            is_static: true,
            closed_at: 0,
        });
        (group, vars_out)
    }

    /// Closes a group whose bodies all depend on its variables. Returns the members' values for use
    /// outside.
    pub(in crate::model) fn close_group(&mut self, group: u32, bodies: &[NodeId]) -> Vec<NodeId> {
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
            .map(|(member, kind)| self.add(TableOp::Value(group, member), kind, is_static, None))
            .collect()
    }

    /// The least fixpoint of `var = body` as a closure. The body must be a union of terms without
    /// the variable and of `X;B`, `B;X`, `X;X` and `X;B;X`.
    pub(in crate::model) fn closed_form(&mut self, var: NodeId, body: NodeId) -> Option<NodeId> {
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
        let Some(&NodeOp::Seq(a, b)) = self.op(term) else {
            return None;
        };
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
