//! Adds axioms from another text to a model.
//!
//! # Invariants
//! - Both have the same base names; the rules may have more.
//! - The model's nodes, axioms and flags keep their numbers; added ones follow.

use super::ir::{Axiom, Model, ModelNode, NodeId, NodeOp};

impl Model {
    /// The model with the additional axioms of `rules`. The values relation and the final order of
    /// `rules` are mapped to those of the model.
    ///
    /// # Panics
    /// If `rules` declares other free relations, or recursive definitions that an axiom needs.
    pub fn with_axioms(&self, rules: &Model) -> Model {
        let mut joined = self.clone();
        joined.signature = rules.signature.clone();
        let file = joined.files.len() as u32;
        joined.files.extend(rules.files.iter().cloned());
        let mut needed = vec![false; rules.nodes.len()];
        rules
            .axioms
            .iter()
            .for_each(|a| needed[a.node.index()] = true);
        for i in (0..rules.nodes.len()).rev() {
            // Operands come before their users.
            if needed[i] {
                rules.nodes[i]
                    .op
                    .operands()
                    .for_each(|o| needed[o.index()] = true);
            }
        }
        let mut index: Vec<Option<NodeId>> = vec![None; rules.nodes.len()];
        for (i, node) in rules.nodes.iter().enumerate().filter(|(i, _)| needed[*i]) {
            let op = match &node.op {
                NodeOp::Free(id) if *id == rules.values => NodeOp::Free(self.values),
                NodeOp::Free(id) if *id == rules.finals => NodeOp::Free(self.finals),
                NodeOp::Free(_) => panic!("rules speak of values and final order only"),
                NodeOp::Var(..) => panic!("rules are not recursive"),
                op => op.map_operands(|id: NodeId| {
                    index[id.index()].expect("operands come before their users")
                }),
            };
            index[i] = Some(NodeId(joined.nodes.len() as u32));
            joined.nodes.push(ModelNode {
                op,
                span: (node.span.0 + file, node.span.1),
                ..node.clone()
            });
        }
        joined.axioms.extend(rules.axioms.iter().map(|a| Axiom {
            node: index[a.node.index()].expect("axioms are needed"),
            span: (a.span.0 + file, a.span.1),
            ..a.clone()
        }));
        joined
    }
}
