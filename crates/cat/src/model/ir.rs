//! The relational IR: a model as a flat, topologically ordered, hash-consed table of nodes.
//!
//! # Invariants
//! - Operands of a node have smaller indices, except that a fixpoint group's bodies follow its
//!   [`NodeOp::Var`]s.
//! - A node depends on a variable of group `g` iff it lies inside `groups[g].range`. Outside that
//!   range, a recursive name is represented by its *body* node.
//! - Kinds fit: set operators have set operands, and relation operators have relation operands.
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
pub struct ModelNode {
    /// Its operator.
    pub op: NodeOp,
    /// Set or relation.
    pub kind: Kind,
    /// Whether it depends on no free relation.
    pub is_static: bool,
    /// The first `let` name for it, used in output.
    pub name: Option<String>,
    /// The span of its first occurrence, in [`Model::files`]`[.0]`.
    pub span: (u32, Span),
}

/// Operators. `S` is a set operand, `R` a relation operand, and `X` two operands of one kind.
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
    /// The body node of each member; its value at the fixpoint is the member's value.
    pub bodies: Vec<NodeId>,
    /// All nodes that depend on a variable of this group, contiguous, starting with the variables.
    pub range: Range<u32>,
}

/// The shape of a free relation, which is all that the Rust code knows about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FreeShape {
    /// Each executed event in the range of `within` has exactly one predecessor.
    Function,
    /// A strict partial order: irreflexive, transitive inside `within`, acyclic.
    Order,
}

/// A relation that an execution chooses; no definition computes it.
#[derive(Clone, Debug)]
pub struct FreeRel {
    /// Its name.
    pub name: String,
    /// Function or order.
    pub shape: FreeShape,
    /// Upper bound (static).
    pub within: NodeId,
    /// Lower bound (static).
    pub containing: Option<NodeId>,
    /// Pairs for which the order must choose one direction (static; only for orders).
    pub covering: Option<NodeId>,
    /// The span of its declaration.
    pub span: (u32, Span),
}

/// The test of an axiom or a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// No cycle.
    Acyclic,
    /// No event is related to itself.
    Irreflexive,
    /// No members (set or relation).
    Empty,
}

/// The consequence of an axiom that fails or a flag that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestEffect {
    /// An axiom: executions that fail it are not allowed.
    Rejects,
    /// A flag: executions that satisfy it have a data race.
    Race,
    /// A flag: executions that satisfy it are undefined.
    Undefined,
    /// A flag: executions that satisfy it use something after its end.
    Lifetime,
    /// A flag: a warning without consequences.
    Hazard,
    /// A flag: the behaviour is implementation-defined. No answer about the program holds for all
    /// implementations, except that it is undefined.
    ImplementationDefined,
}

/// The meanings of a flag, as written in the language.
pub const EFFECTS: [(&str, TestEffect); 5] = [
    ("race", TestEffect::Race),
    ("undefined", TestEffect::Undefined),
    ("lifetime", TestEffect::Lifetime),
    ("hazard", TestEffect::Hazard),
    ("implementation-defined", TestEffect::ImplementationDefined),
];

impl TestEffect {
    /// `means WORD`
    pub fn read(word: &str) -> Option<TestEffect> {
        EFFECTS.iter().find(|e| e.0 == word).map(|e| e.1)
    }

    /// The word.
    ///
    /// # Panics
    /// If it is an axiom.
    pub fn word(self) -> &'static str {
        EFFECTS
            .iter()
            .find(|e| e.1 == self)
            .expect("flags have a meaning")
            .0
    }

    /// The default meaning of a flag with that name, for published files without `means`.
    pub fn of_published(name: &str) -> TestEffect {
        match name.to_lowercase().as_str() {
            "race" | "racy" | "data-race" | "data_race" | "dr" => TestEffect::Race,
            _ => TestEffect::Undefined,
        }
    }
}

/// A condition on executions. An axiom rejects executions that fail it; a flag marks executions
/// that satisfy it.
#[derive(Clone, Debug)]
pub struct Axiom {
    /// The name from `as NAME`, or one made from its kind and position.
    pub name: String,
    /// The test.
    pub test: Test,
    /// `~acyclic` and so on.
    pub negated: bool,
    /// The consequence.
    pub effect: TestEffect,
    /// The tested node.
    pub node: NodeId,
    /// The comment directly above it, if any: source section, tests that it forbids.
    pub doc: String,
    /// Its span.
    pub span: (u32, Span),
}

/// The name by which every text can refer to the free relation with the role `values`.
pub const READS_FROM: &str = "reads-from";
/// The name by which every text can refer to the free relation with the role `final`.
pub const COHERENCE: &str = "coherence";

/// A model, ready to run.
#[derive(Clone, Debug)]
pub struct Model {
    /// File name without `.cat`.
    pub name: String,
    /// The first name of its head, if any: the language of its programs.
    pub language: String,
    /// Its title string, if any.
    pub title: String,
    /// Its first comment: source document, version, deviations.
    pub header: String,
    /// The node table.
    pub nodes: Vec<ModelNode>,
    /// Fixpoint groups, in order of their ranges.
    pub groups: Vec<FixGroup>,
    /// Free relations.
    pub free: Vec<FreeRel>,
    /// The free function that carries values from writes to reads (role `values`).
    pub values: FreeId,
    /// The free order whose maximal writes give final values (role `final`).
    pub finals: FreeId,
    /// The conditions that reject executions.
    pub axioms: Vec<Axiom>,
    /// The conditions that mark executions. A flag holds when its test succeeds (`flag ~empty r`:
    /// when `r` is not empty).
    pub flags: Vec<Axiom>,
    /// Every definition in file order (later ones shadow): name, node, span.
    pub lets: Vec<(String, NodeId, (u32, Span))>,
    /// `show e as N`.
    pub shows: Vec<(String, NodeId)>,
    /// Styles for drawing relations, by relation name.
    pub drawn: Vec<(String, String)>,
    /// `option NAME = VALUE`, the last one of each name.
    pub options: Vec<OptionValue>,
    /// The base names and options that it may use.
    pub signature: Signature,
    /// The files of its text: main file first, then includes.
    pub files: Vec<std::sync::Arc<diag::SourceFile>>,
}

impl Model {
    /// The node at that index.
    pub fn node(&self, id: NodeId) -> &ModelNode {
        &self.nodes[id.index()]
    }

    /// The base set or relation of that id.
    pub fn base(&self, id: BaseId) -> &BaseName {
        &self.signature.names[id.index()]
    }

    /// The model's name for [`READS_FROM`] or [`COHERENCE`].
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
