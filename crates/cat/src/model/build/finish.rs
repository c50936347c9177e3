//! Writes the finished table: needed nodes only, each group contiguous.
//!
//! # Invariants
//! - Nodes keep their order of creation, except the nodes of a group, which wait until the group is
//!   closed. By then all their outside operands are written, and no node has used the group yet.

use super::super::ir::{FixGroup, Model, ModelNode, NodeId, NodeOp};
use super::{TableBuilder, TableOp};

impl TableBuilder {
    /// Writes the nodes that `roots` need into the model, groups contiguous. Returns the new index
    /// of every root, in order.
    pub(in crate::model) fn finish(&self, roots: &[NodeId], model: &mut Model) -> Vec<NodeId> {
        let needed = self.needed(roots);
        let mut index: Vec<Option<NodeId>> = vec![None; self.entries.len()];
        // Groups close in order, so one pass over the table suffices.
        let mut closing: Vec<u32> = (0..self.groups.len() as u32)
            .filter(|&g| {
                self.groups[g as usize]
                    .vars
                    .iter()
                    .any(|v| needed[v.index()])
            })
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
        roots
            .iter()
            .map(|r| index[r.index()].expect("roots are needed, so they were written"))
            .collect()
    }

    /// Which entries the roots reach.
    fn needed(&self, roots: &[NodeId]) -> Vec<bool> {
        let mut needed = vec![false; self.entries.len()];
        let mut todo = roots.to_vec();
        while let Some(id) = todo.pop() {
            if std::mem::replace(&mut needed[id.index()], true) {
                continue;
            }
            match &self.entries[id.index()].op {
                TableOp::Plain(op) => todo.extend(op.operands()),
                TableOp::Value(group, _) => {
                    let group = &self.groups[*group as usize];
                    todo.extend(group.vars.iter().chain(&group.bodies));
                }
            }
        }
        needed
    }

    fn finish_group(
        &self,
        group: u32,
        needed: &[bool],
        index: &mut [Option<NodeId>],
        model: &mut Model,
    ) {
        let entry = &self.groups[group as usize];
        let number = model.groups.len() as u32;
        let start = model.nodes.len() as u32;
        for (member, var) in entry.vars.iter().enumerate() {
            index[var.index()] = Some(NodeId(model.nodes.len() as u32));
            let from = &self.entries[var.index()];
            model.nodes.push(ModelNode {
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
        // Outside its group, a member is represented by its body.
        for (member, body) in entry.bodies.iter().enumerate() {
            let value = (TableOp::Value(group, member as u32), self.kind(*body));
            if let Some(value) = self.known.get(&value) {
                index[value.index()] = index[body.index()];
            }
        }
    }

    fn finish_node(
        &self,
        at: usize,
        is_static: Option<bool>,
        index: &mut [Option<NodeId>],
        model: &mut Model,
    ) {
        if index[at].is_some() {
            return;
        }
        let entry = &self.entries[at];
        let TableOp::Plain(op) = &entry.op else {
            return;
        };
        let op = op.map_operands(|id| index[id.index()].expect("operands come before their users"));
        index[at] = Some(NodeId(model.nodes.len() as u32));
        model.nodes.push(ModelNode {
            op,
            kind: entry.kind,
            is_static: is_static.unwrap_or(entry.is_static),
            name: entry.name.clone(),
            span: entry.place,
        });
    }
}
