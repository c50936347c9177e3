//! The relational IR: a model as one flat, topologically ordered, hash-consed table of nodes.
//!
//! # Invariants
//! - Operands of a node have smaller indices, except that a fixpoint group's bodies follow its
//!   [`NodeOp::Var`]s.
//! - Nodes that depend on a variable of group `g` lie inside `groups[g].range`, and nothing else
//!   does; outside that range a recursive name is represented by its *body* node.
//! - Kinds fit: operators that need sets have sets, those that need relations have relations.
//! - A node is *static* if it depends on no free relation.

use std::ops::Range;

use super::signature::{BaseId, BaseName, OptionValue, Signature};
use diag::Span;

/// Index into [`Model::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into [`Model::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FreeId(pub u32);

/// Set of events or relation on events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A set of events.
    Set,
    /// A relation on events.
    Rel,
}

/// One node: an operator applied to earlier nodes.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it computes.
    pub op: NodeOp,
    /// Set or relation.
    pub kind: Kind,
    /// Whether no free relation is below it.
    pub is_static: bool,
    /// The `let` name that first denoted it, for output.
    pub name: Option<String>,
    /// Where it was first written, in [`Model::files`]`[.0]`.
    pub span: (u32, Span),
}

/// Operators. `S` stands for a set operand, `R` for a relation, `X` for two of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeOp {
    /// A base set or relation of the skeleton.
    Base(BaseId),
    /// A free relation.
    Free(FreeId),
    /// A recursive occurrence: member `.1` of fixpoint group `.0`.
    Var(u32, u32),
    /// The empty set or relation (see the node's kind).
    Empty,
    /// The set `_` of all executed events.
    Universe,
    /// `[S]`
    IdentityOn(NodeId),
    /// `S * S`
    Product(NodeId, NodeId),
    /// `X | X`
    Union(NodeId, NodeId),
    /// `X & X`
    Inter(NodeId, NodeId),
    /// `X \ X`
    Diff(NodeId, NodeId),
    /// `R ; R`
    Seq(NodeId, NodeId),
    /// `R^-1`
    Inverse(NodeId),
    /// `R+`
    Plus(NodeId),
    /// `domain(R)`
    Domain(NodeId),
    /// `range(R)`
    Range(NodeId),
}

impl NodeOp {
    /// The operands, in order.
    pub fn operands(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (a, b) = match *self {
            NodeOp::Base(_)
            | NodeOp::Free(_)
            | NodeOp::Var(..)
            | NodeOp::Empty
            | NodeOp::Universe => (None, None),
            NodeOp::IdentityOn(a)
            | NodeOp::Inverse(a)
            | NodeOp::Plus(a)
            | NodeOp::Domain(a)
            | NodeOp::Range(a) => (Some(a), None),
            NodeOp::Product(a, b)
            | NodeOp::Union(a, b)
            | NodeOp::Inter(a, b)
            | NodeOp::Diff(a, b)
            | NodeOp::Seq(a, b) => (Some(a), Some(b)),
        };
        a.into_iter().chain(b)
    }

    /// The same operator with other operands.
    pub fn map_operands(&self, new: impl Fn(NodeId) -> NodeId) -> NodeOp {
        match *self {
            NodeOp::Base(_)
            | NodeOp::Free(_)
            | NodeOp::Var(..)
            | NodeOp::Empty
            | NodeOp::Universe => *self,
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
        }
    }
}

/// `let rec x = … and y = …`: the least fixpoint of monotone bodies.
#[derive(Clone, Debug)]
pub struct FixGroup {
    /// The names, in order.
    pub names: Vec<String>,
    /// The [`NodeOp::Var`] node of each member.
    pub vars: Vec<NodeId>,
    /// The body node of each member; after the fixpoint is reached, its value.
    pub bodies: Vec<NodeId>,
    /// All nodes that depend on a variable of this group, contiguous, starting with the variables.
    pub range: Range<u32>,
}

/// The shape of a free relation: the only thing that Rust knows about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Each executed event in the range of `within` has exactly one predecessor.
    Function,
    /// A strict partial order: irreflexive, transitive inside `within`, acyclic.
    Order,
}

/// A relation that is chosen, not computed.
#[derive(Clone, Debug)]
pub struct FreeRel {
    /// Its name.
    pub name: String,
    /// Function or order.
    pub shape: Shape,
    /// Upper bound (static).
    pub within: NodeId,
    /// Lower bound (static).
    pub containing: Option<NodeId>,
    /// Pairs of which one direction must be chosen (static; only for orders).
    pub covering: Option<NodeId>,
    /// Where it was declared.
    pub span: (u32, Span),
}

/// What an axiom or a flag tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// No cycle.
    Acyclic,
    /// No event related to itself.
    Irreflexive,
    /// Nothing in it (set or relation).
    Empty,
}

/// What follows for an execution in which a test holds, or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// An axiom: those that fail it are no executions.
    Rejects,
    /// A flag: those that satisfy it have a data race.
    Race,
    /// A flag: they are undefined.
    Undefined,
    /// A flag: a warning; nothing follows.
    Hazard,
    /// A flag: implementations may settle them as they like, so that no answer about the program
    /// holds for all of them, except that it is undefined.
    ImplementationDefined,
}

/// What a flag can mean, as the language says it.
pub const EFFECTS: [(&str, Effect); 4] = [
    ("race", Effect::Race),
    ("undefined", Effect::Undefined),
    ("hazard", Effect::Hazard),
    ("implementation-defined", Effect::ImplementationDefined),
];

impl Effect {
    /// `means WORD`
    pub fn read(word: &str) -> Option<Effect> {
        EFFECTS.iter().find(|e| e.0 == word).map(|e| e.1)
    }

    /// The word.
    ///
    /// # Panics
    /// Of an axiom.
    pub fn word(self) -> &'static str {
        EFFECTS
            .iter()
            .find(|e| e.1 == self)
            .expect("flags have a meaning")
            .0
    }

    /// What a flag of that name means where the text does not say it, as in published files.
    pub fn of_published(name: &str) -> Effect {
        match name.to_lowercase().as_str() {
            "race" | "racy" | "data-race" | "data_race" | "dr" => Effect::Race,
            _ => Effect::Undefined,
        }
    }
}

/// A condition on executions. As an axiom it rejects those that fail it; as a flag it marks those
/// that satisfy it.
#[derive(Clone, Debug)]
pub struct Axiom {
    /// Name from `as NAME`, or made from its kind and position.
    pub name: String,
    /// What is tested.
    pub test: Test,
    /// `~acyclic` and so on.
    pub negated: bool,
    /// What follows.
    pub effect: Effect,
    /// Of which node.
    pub node: NodeId,
    /// The comment directly above it, if any: source section, tests that it forbids.
    pub doc: String,
    /// Where it stands.
    pub span: (u32, Span),
}

/// What every text may call the free relation with the role `values`.
pub const READS_FROM: &str = "reads-from";
/// What every text may call the free relation with the role `final`.
pub const COHERENCE: &str = "coherence";

/// A model, ready to run.
#[derive(Clone, Debug)]
pub struct Model {
    /// File name without `.cat`.
    pub name: String,
    /// The first name of its head, if any: the language whose programs it is about.
    pub language: String,
    /// Its title string, if any.
    pub title: String,
    /// Its first comment: source document, version, deviations.
    pub header: String,
    /// The node table.
    pub nodes: Vec<Node>,
    /// Fixpoint groups, in order of their ranges.
    pub groups: Vec<FixGroup>,
    /// Free relations.
    pub free: Vec<FreeRel>,
    /// The free function that carries values from writes to reads (role `values`).
    pub values: FreeId,
    /// The free order whose maximal writes give final values (role `final`).
    pub finals: FreeId,
    /// What rejects.
    pub axioms: Vec<Axiom>,
    /// What marks. A flag holds when its test succeeds (`flag ~empty r`: when `r` is not empty).
    pub flags: Vec<Axiom>,
    /// Every definition in file order (later ones shadow): name, node, place.
    pub lets: Vec<(String, NodeId, (u32, Span))>,
    /// `show e as N`.
    pub shows: Vec<(String, NodeId)>,
    /// How its relations are drawn, by name: names of styles.
    pub drawn: Vec<(String, String)>,
    /// `option NAME = VALUE`, the last one of each name.
    pub options: Vec<OptionValue>,
    /// What it may refer to.
    pub signature: Signature,
    /// The files it was read from: main file first, then includes.
    pub files: Vec<std::sync::Arc<diag::SourceFile>>,
}

impl Model {
    /// The node at that index.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The base set or relation of that id.
    pub fn base(&self, id: BaseId) -> &BaseName {
        &self.signature.names[id.index()]
    }

    /// The model's own name of [`READS_FROM`] or [`COHERENCE`].
    pub fn of_role(&self, name: &str) -> Option<&str> {
        let id = match name {
            READS_FROM => self.values,
            COHERENCE => self.finals,
            _ => return None,
        };
        Some(&self.free[id.0 as usize].name)
    }

    /// Its options as words, in the order of the text.
    pub fn option_words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.options.iter().map(|&(option, value)| {
            let spec = &self.signature.options[option];
            (spec.name, spec.values[value])
        })
    }
}
