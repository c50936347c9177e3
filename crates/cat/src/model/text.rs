//! Prints nodes of the relational IR in the model language.
//!
//! Named nodes print as their names; others are written out.

use super::ir::{Axiom, FreeShape, Kind, Model, NodeId, NodeOp, Test};

/// The length at which expressions are cut off: unnamed nodes may be shared, so their text can be
/// much larger than the table.
const LONGEST: usize = 400;

/// `acyclic`, `~empty`, …
pub fn test_name(axiom: &Axiom) -> &'static str {
    match (axiom.test, axiom.negated) {
        (Test::Acyclic, false) => "acyclic",
        (Test::Acyclic, true) => "~acyclic",
        (Test::Irreflexive, false) => "irreflexive",
        (Test::Irreflexive, true) => "~irreflexive",
        (Test::Empty, false) => "empty",
        (Test::Empty, true) => "~empty",
    }
}

/// `function` or `order`.
pub fn shape_name(shape: FreeShape) -> &'static str {
    match shape {
        FreeShape::Function => "function",
        FreeShape::Order => "order",
    }
}

/// A node as an expression; `unfold` writes it out even if it has a name.
pub fn expression(model: &Model, node: NodeId, unfold: bool) -> String {
    let mut text = String::new();
    write_node(model, node, unfold, 0, &mut text);
    if text.chars().count() > LONGEST {
        text = text.chars().take(LONGEST).collect::<String>() + " …";
    }
    text
}

/// A node as an operand: like [`expression`], with brackets if necessary.
pub fn operand(model: &Model, node: NodeId) -> String {
    let mut text = String::new();
    write_node(model, node, false, 5, &mut text);
    text
}

/// Writes a node inside an operator with the binding strength `around`: `|` 1, `;` 2, `\` 3, `&` 4,
/// `*` 5, postfix operators 6.
fn write_node(model: &Model, id: NodeId, unfold: bool, around: u8, out: &mut String) {
    if out.len() > 2 * LONGEST {
        return;
    }
    let node = model.node(id);
    if let (Some(name), false) = (&node.name, unfold) {
        out.push_str(name);
        return;
    }
    let mut binary = |a: NodeId, sign: &str, b: NodeId, binds: u8, associates: bool| {
        let open = binds < around || (binds == around && !associates);
        out.push_str(if open { "(" } else { "" });
        write_node(model, a, false, binds, out);
        out.push_str(sign);
        // The right operand of a non-associative operator needs brackets.
        write_node(
            model,
            b,
            false,
            if associates { binds } else { binds + 1 },
            out,
        );
        out.push_str(if open { ")" } else { "" });
    };
    match &node.op {
        NodeOp::Base(base) => out.push_str(model.base(*base).name),
        NodeOp::Free(free) => {
            out.push_str(model.free.get(free.0 as usize).map_or("?", |f| &f.name))
        }
        NodeOp::Var(group, member) => {
            let group = model.groups.get(*group as usize);
            out.push_str(
                group
                    .and_then(|g| g.names.get(*member as usize))
                    .map_or("?", |name| name),
            );
        }
        NodeOp::Empty if node.kind == Kind::Set => out.push_str("{}"),
        NodeOp::Empty => out.push('0'),
        NodeOp::Universe => out.push('_'),
        NodeOp::Union(a, b) => binary(*a, " | ", *b, 1, true),
        NodeOp::Inter(a, b) => binary(*a, " & ", *b, 4, true),
        NodeOp::Diff(a, b) => binary(*a, " \\ ", *b, 3, false),
        NodeOp::Seq(a, b) => binary(*a, " ; ", *b, 2, true),
        NodeOp::Product(a, b) => binary(*a, " * ", *b, 5, false),
        NodeOp::IdentityOn(a) => wrapped(model, "[", *a, "]", 0, out),
        NodeOp::Inverse(a) => wrapped(model, "", *a, "^-1", 6, out),
        NodeOp::Plus(a) => wrapped(model, "", *a, "+", 6, out),
        NodeOp::Domain(a) => wrapped(model, "domain(", *a, ")", 0, out),
        NodeOp::Range(a) => wrapped(model, "range(", *a, ")", 0, out),
    }
}

fn wrapped(model: &Model, before: &str, node: NodeId, after: &str, around: u8, out: &mut String) {
    out.push_str(before);
    write_node(model, node, false, around, out);
    out.push_str(after);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ir::{FreeId, FreeRel, ModelNode};
    use crate::model::signature::{BaseId, BaseName, Signature};

    /// Nodes 0 to 3 are the base relations a, b, c and the set S; `ops` follow.
    fn of(ops: &[NodeOp]) -> Model {
        let kind = |name| if name == "S" { Kind::Set } else { Kind::Rel };
        let names = ["a", "b", "c", "S"].map(|name| BaseName {
            name,
            kind: kind(name),
            doc: "",
        });
        let base = [0, 1, 2, 3].map(|i| NodeOp::Base(BaseId(i)));
        let node = |op: &NodeOp| {
            let kind = if *op == base[3] { Kind::Set } else { Kind::Rel };
            ModelNode {
                op: *op,
                kind,
                is_static: true,
                name: None,
                span: Default::default(),
            }
        };
        Model {
            name: "m".into(),
            language: String::new(),
            title: "T".into(),
            header: String::new(),
            nodes: base.iter().chain(ops).map(node).collect(),
            groups: Vec::new(),
            free: vec![FreeRel {
                name: "rf".into(),
                shape: FreeShape::Function,
                within: NodeId(0),
                containing: None,
                covering: None,
                span: Default::default(),
            }],
            values: FreeId(0),
            finals: FreeId(0),
            axioms: Vec::new(),
            flags: Vec::new(),
            lets: Vec::new(),
            shows: Vec::new(),
            drawn: Vec::new(),
            options: Vec::new(),
            signature: Signature {
                names: names.into(),
                options: Vec::new(),
            },
            files: Vec::new(),
        }
    }

    fn text(ops: &[NodeOp]) -> String {
        let model = of(ops);
        expression(&model, NodeId(model.nodes.len() as u32 - 1), false)
    }

    #[test]
    fn brackets_stand_where_they_must() {
        use NodeOp::*;
        let n = NodeId;
        assert_eq!(text(&[Union(n(0), n(1)), Seq(n(4), n(2))]), "(a | b) ; c");
        assert_eq!(text(&[Seq(n(0), n(1)), Union(n(4), n(2))]), "a ; b | c");
        assert_eq!(text(&[Diff(n(0), n(1)), Diff(n(2), n(4))]), "c \\ (a \\ b)");
        assert_eq!(text(&[Diff(n(0), n(1)), Inter(n(4), n(2))]), "(a \\ b) & c");
        assert_eq!(
            text(&[Inverse(n(0)), Plus(n(4)), IdentityOn(n(3)), Seq(n(6), n(5))]),
            "[S] ; a^-1+"
        );
        assert_eq!(text(&[Free(FreeId(0))]), "rf");
    }

    #[test]
    fn shared_nodes_do_not_explode() {
        let doubled = |i: u32| NodeOp::Union(NodeId(3 + i), NodeId(3 + i));
        let ops: Vec<_> = (0..60).map(doubled).collect();
        assert!(text(&ops).chars().count() < 2 * LONGEST);
    }
}
