//! Reduces a model to programs of some letters: fewer nodes, and equal results for clauses that
//! have no effect on these programs.
//!
//! Events have few types, and pairs of events have few relative positions (standings). A node that
//! depends only on these becomes a lookup table. For every other node, the reducer bounds the pairs
//! that it can contain. It then removes operands of `|`, `\` and `&` that have no effect.
//!
//! # Invariants
//! - In every program of these letters, the reduced model accepts and flags the same executions.
//! - Leaves are [`NodeOp::Base`] nodes. Their number is the index of a [`TypeSet`] in
//!   [`ReducedModel`], and no longer one of the signature.

use std::collections::HashMap;

use cat::algebra::needed;
use cat::model::ir::{
    Axiom, FixGroup, FreeRel, FreeShape, Kind, Model, ModelNode, NodeId, NodeOp, Test, TestEffect,
};
use cat::model::signature::BaseId;
use rustc_hash::FxHashMap;

/// A set of event types, or of pairs of types with a standing, as bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeSet(Vec<u32>);

impl TypeSet {
    /// The empty set with room for `count` elements.
    pub fn none(count: usize) -> TypeSet {
        TypeSet(vec![0; count.div_ceil(32)])
    }

    /// Adds an element.
    pub fn add(&mut self, at: usize) {
        self.0[at / 32] |= 1 << (at % 32);
    }

    /// Whether it contains an element.
    pub fn has(&self, at: usize) -> bool {
        self.0[at / 32] >> (at % 32) & 1 == 1
    }

    /// Whether it has room for `count` elements.
    #[cfg(test)]
    pub(crate) fn is_of(&self, count: usize) -> bool {
        self.0.len() == count.div_ceil(32)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn with(&self, other: &TypeSet, op: impl Fn(u32, u32) -> u32) -> TypeSet {
        TypeSet(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(a, b)| op(*a, *b))
                .collect(),
        )
    }

    fn is_in(&self, other: &TypeSet) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    fn meets(&self, other: &TypeSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

/// The number of standings of two events. The standings of a pair of types fill one word of
/// [`TypeSet`].
pub const STANDINGS: usize = 32;

/// The pairs of event types with standings that programs can have.
#[derive(Clone, Debug)]
pub struct TypePairs {
    /// The number of types.
    pub types: usize,
    /// The possible pairs; others are never looked up.
    pub possible: TypeSet,
    /// For each standing, the reverse standing.
    pub inverse: [u8; STANDINGS],
    /// The standings of an event to itself, as bits.
    pub own: u32,
}

impl TypePairs {
    /// The index of a pair.
    pub fn at(&self, a: usize, b: usize, standing: usize) -> usize {
        (a * self.types + b) * STANDINGS + standing
    }

    /// Filters the standings of each possible pair of types.
    fn each(&self, keeps: impl Fn(usize, usize, u32) -> u32) -> TypeSet {
        TypeSet(
            self.possible
                .0
                .iter()
                .enumerate()
                .map(|(at, word)| match word {
                    0 => 0,
                    word => word & keeps(at / self.types, at % self.types, *word),
                })
                .collect(),
        )
    }

    fn between(&self, a: &TypeSet, b: &TypeSet) -> TypeSet {
        self.each(|x, y, word| if a.has(x) && b.has(y) { word } else { 0 })
    }

    fn identity(&self, types: &TypeSet) -> TypeSet {
        self.each(|x, _, word| if types.has(x) { word & self.own } else { 0 })
    }

    fn turned(&self, bits: &TypeSet) -> TypeSet {
        self.each(|x, y, _| {
            let from = bits.0[y * self.types + x];
            (0..STANDINGS).fold(0, |word, s: usize| {
                word | (from >> s & 1) << self.inverse[s]
            })
        })
    }

    fn types_of(&self, bits: &TypeSet, second: bool) -> TypeSet {
        let mut types = TypeSet::none(self.types);
        for (at, _) in bits.0.iter().enumerate().filter(|(_, word)| **word != 0) {
            types.add(if second {
                at % self.types
            } else {
                at / self.types
            });
        }
        types
    }
}

/// A reduced model.
#[derive(Clone, Debug)]
pub struct ReducedModel {
    /// The model; its base sets and relations are indices of leaves.
    pub model: Model,
    /// The leaves.
    pub leaves: Vec<TypeSet>,
}

/// A model without node numbers, for comparison. Equal forms mean equal models on these programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparableModel {
    nodes: Vec<(NodeOp, Kind)>,
    leaves: Vec<TypeSet>,
    tests: Vec<(Test, bool, TestEffect, NodeId)>,
    free: Vec<(FreeShape, [Option<NodeId>; 3])>,
    ends: [u32; 2],
}

/// An upper bound of a node's value, and whether it is exact.
#[derive(Clone, Debug)]
struct NodeBound {
    most: TypeSet,
    exact: bool,
}

struct Reducer<'a> {
    pairs: &'a TypePairs,
    nodes: Vec<ModelNode>,
    bounds: Vec<NodeBound>,
    known: FxHashMap<(NodeOp, Kind), NodeId>,
    leaves: Vec<TypeSet>,
    of_leaf: HashMap<(TypeSet, Kind), NodeId>,
}

/// Reduces a model with some of its flags, given each of its base sets and relations.
pub fn reduced(
    model: &Model,
    flags: &[usize],
    pairs: &TypePairs,
    mut base: impl FnMut(BaseId) -> TypeSet,
) -> ReducedModel {
    let asked = flags.iter().map(|&f| &model.flags[f]);
    let bounds = model
        .free
        .iter()
        .flat_map(|f| [Some(f.within), f.containing, f.covering])
        .flatten();
    let roots = model
        .axioms
        .iter()
        .chain(asked.clone())
        .map(|a| a.node)
        .chain(bounds);
    let needed = needed(model, roots);
    let mut reducer = Reducer {
        pairs,
        nodes: Vec::new(),
        bounds: Vec::new(),
        known: FxHashMap::default(),
        leaves: Vec::new(),
        of_leaf: HashMap::new(),
    };
    let mut new: Vec<Option<NodeId>> = vec![None; model.nodes.len()];
    let mut groups = Vec::new();
    let mut number_of = HashMap::new();
    let mut at = 0;
    while at < model.nodes.len() {
        let group = model
            .groups
            .iter()
            .position(|g| g.range.start as usize == at);
        let these = at..group.map_or(at + 1, |g| model.groups[g].range.end as usize);
        at = these.end;
        if !needed[these.start] {
            continue;
        }
        let operand =
            |new: &[Option<NodeId>], id: NodeId| new[id.index()].expect("operands come before");
        let Some(g) = group else {
            let node = &model.nodes[these.start];
            new[these.start] = Some(match node.op {
                NodeOp::Base(id) => reducer.leaf(base(id), node.kind),
                NodeOp::Free(id) => {
                    let free = &model.free[id.0 as usize];
                    let within = new[free.within.index()];
                    reducer.free(node.op, free.shape, within)
                }
                op => reducer.node(op.map_operands(|id| operand(&new, id)), node.kind),
            });
            continue;
        };
        // A fixpoint is not reduced.
        let start = reducer.nodes.len() as u32;
        number_of.insert(g as u32, groups.len() as u32);
        for i in these {
            let node = &model.nodes[i];
            let op = match node.op {
                NodeOp::Var(g, member) => NodeOp::Var(number_of[&g], member),
                op => op.map_operands(|id| operand(&new, id)),
            };
            let most = reducer.everything(node.kind);
            new[i] = Some(reducer.push(op, node.kind, NodeBound { most, exact: false }));
        }
        let old = &model.groups[g];
        let range = start..reducer.nodes.len() as u32;
        groups.push(FixGroup {
            names: old.names.clone(),
            vars: old.vars.iter().map(|id| operand(&new, *id)).collect(),
            bodies: old.bodies.iter().map(|id| operand(&new, *id)).collect(),
            range,
        });
    }
    assemble(model, flags, &new, groups, reducer)
}

/// The reduced model; `new` has the reduced node of each node.
fn assemble(
    model: &Model,
    flags: &[usize],
    new: &[Option<NodeId>],
    groups: Vec<FixGroup>,
    reducer: Reducer<'_>,
) -> ReducedModel {
    let of = |id: NodeId| new[id.index()].expect("it is needed");
    let tested = |axiom: &Axiom| Axiom {
        node: of(axiom.node),
        ..axiom.clone()
    };
    let axioms = model.axioms.iter().map(tested);
    // An axiom over a node that is empty in every program rejects nothing.
    let axioms: Vec<Axiom> = axioms
        .filter(|a| a.negated || reducer.nodes[a.node.index()].op != NodeOp::Empty)
        .collect();
    let (flags, free) = (
        flags.iter().map(|&f| tested(&model.flags[f])).collect(),
        model
            .free
            .iter()
            .map(|free| FreeRel {
                within: of(free.within),
                containing: free.containing.map(of),
                covering: free.covering.map(of),
                ..free.clone()
            })
            .collect(),
    );
    let Reducer { nodes, leaves, .. } = reducer;
    let model = Model {
        name: model.name.clone(),
        language: model.language.clone(),
        title: String::new(),
        header: String::new(),
        nodes,
        groups,
        free,
        values: model.values,
        finals: model.finals,
        axioms,
        flags,
        lets: Vec::new(),
        shows: Vec::new(),
        drawn: Vec::new(),
        options: model.options.clone(),
        signature: model.signature.clone(),
        files: Vec::new(),
    };
    ReducedModel { model, leaves }
}

impl Reducer<'_> {
    /// A free relation, given its `within` relation.
    fn free(&mut self, op: NodeOp, shape: FreeShape, within: Option<NodeId>) -> NodeId {
        let within = within.map(|w| self.bounds[w.index()].most.clone());
        let pairs = self.pairs;
        let most = within.unwrap_or_else(|| pairs.possible.clone());
        let apart = pairs.each(|_, _, word| word & !pairs.own);
        let most = if shape == FreeShape::Order {
            most.with(&apart, |a, b| a & b)
        } else {
            most
        };
        self.add(op, Kind::Rel, NodeBound { most, exact: false })
    }

    fn everything(&self, kind: Kind) -> TypeSet {
        match kind {
            Kind::Rel => self.pairs.possible.clone(),
            Kind::Set => {
                let mut all = TypeSet::none(self.pairs.types);
                (0..self.pairs.types).for_each(|t| all.add(t));
                all
            }
        }
    }

    fn push(&mut self, op: NodeOp, kind: Kind, bound: NodeBound) -> NodeId {
        self.nodes.push(ModelNode {
            op,
            kind,
            is_static: false,
            name: None,
            span: Default::default(),
        });
        self.bounds.push(bound);
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn add(&mut self, op: NodeOp, kind: Kind, bound: NodeBound) -> NodeId {
        if let Some(id) = self.known.get(&(op, kind)) {
            return *id;
        }
        let id = self.push(op, kind, bound);
        self.known.insert((op, kind), id);
        id
    }

    fn leaf(&mut self, bits: TypeSet, kind: Kind) -> NodeId {
        let bits = bits.with(&self.everything(kind), |a, b| a & b);
        let bound = NodeBound {
            most: bits.clone(),
            exact: true,
        };
        if bits.is_empty() {
            return self.add(NodeOp::Empty, kind, bound);
        }
        if let Some(id) = self.of_leaf.get(&(bits.clone(), kind)) {
            return *id;
        }
        self.leaves.push(bits.clone());
        let id = self.push(
            NodeOp::Base(BaseId(self.leaves.len() as u16 - 1)),
            kind,
            bound,
        );
        self.of_leaf.insert((bits, kind), id);
        id
    }

    /// The types of pairs or events that a node may have.
    fn most(&self, id: NodeId) -> &TypeSet {
        &self.bounds[id.index()].most
    }

    /// Whether a node has all that it may have.
    fn is_exact(&self, id: NodeId) -> bool {
        self.bounds[id.index()].exact
    }

    /// The bound of a node that combines two others type by type.
    fn pointwise(&self, a: NodeId, b: NodeId, op: fn(u32, u32) -> u32) -> (TypeSet, bool) {
        let most = self.most(a).with(self.most(b), op);
        (most, self.is_exact(a) && self.is_exact(b))
    }

    /// Whether a node surely has all that another one may have.
    fn is_within(&self, a: NodeId, b: NodeId) -> bool {
        self.is_exact(b) && self.most(a).is_in(self.most(b))
    }

    /// Whether a node is an identity on all events at which the other operand begins or ends.
    fn is_neutral(&self, id: NodeId, others: &TypeSet) -> bool {
        let most = self.most(id);
        let types = self.pairs.types_of(most, false);
        self.is_exact(id) && *most == self.pairs.identity(&types) && others.is_in(&types)
    }

    /// Builds a node from reduced operands.
    fn node(&mut self, op: NodeOp, kind: Kind) -> NodeId {
        let pairs = self.pairs;
        let (most, exact) = match op {
            NodeOp::Base(_) | NodeOp::Free(_) | NodeOp::Var(..) => {
                unreachable!("leaves are made elsewhere")
            }
            NodeOp::Empty => (TypeSet(vec![0; self.everything(kind).0.len()]), true),
            NodeOp::Universe => (self.everything(kind), true),
            NodeOp::IdentityOn(a) => (pairs.identity(self.most(a)), self.is_exact(a)),
            NodeOp::Product(a, b) => (
                pairs.between(self.most(a), self.most(b)),
                self.is_exact(a) && self.is_exact(b),
            ),
            NodeOp::Union(a, b) => self.pointwise(a, b, |a, b| a | b),
            NodeOp::Inter(a, b) => self.pointwise(a, b, |a, b| a & b),
            NodeOp::Diff(a, b) if self.is_exact(b) => self.pointwise(a, b, |a, b| a & !b),
            NodeOp::Diff(a, _) => (self.most(a).clone(), false),
            NodeOp::Seq(a, b) => {
                let meet = pairs
                    .types_of(self.most(a), true)
                    .meets(&pairs.types_of(self.most(b), false));
                let all = pairs.between(
                    &pairs.types_of(self.most(a), false),
                    &pairs.types_of(self.most(b), true),
                );
                if meet {
                    (all, false)
                } else {
                    (TypeSet(vec![0; all.0.len()]), true)
                }
            }
            NodeOp::Inverse(a) => (pairs.turned(self.most(a)), self.is_exact(a)),
            NodeOp::Plus(a) => (
                pairs.between(
                    &pairs.types_of(self.most(a), false),
                    &pairs.types_of(self.most(a), true),
                ),
                false,
            ),
            NodeOp::Domain(a) => (pairs.types_of(self.most(a), false), false),
            NodeOp::Range(a) => (pairs.types_of(self.most(a), true), false),
        };
        if exact || most.is_empty() {
            return self.leaf(most, kind);
        }
        // Removes operands without effect.
        let kept = match op {
            NodeOp::Union(a, b) if a == b || self.most(b).is_empty() || self.is_within(b, a) => {
                Some(a)
            }
            NodeOp::Union(a, b) if self.most(a).is_empty() || self.is_within(a, b) => Some(b),
            NodeOp::Inter(a, b) if a == b || self.is_within(a, b) => Some(a),
            NodeOp::Inter(a, b) if self.is_within(b, a) => Some(b),
            NodeOp::Diff(a, b) if !self.most(a).meets(self.most(b)) => Some(a),
            NodeOp::Seq(a, b) if self.is_neutral(b, &pairs.types_of(self.most(a), true)) => Some(a),
            NodeOp::Seq(a, b) if self.is_neutral(a, &pairs.types_of(self.most(b), false)) => {
                Some(b)
            }
            _ => None,
        };
        if let Some(kept) = kept {
            return kept;
        }
        let op = match op {
            NodeOp::Union(a, b) if b < a => NodeOp::Union(b, a),
            NodeOp::Inter(a, b) if b < a => NodeOp::Inter(b, a),
            op => op,
        };
        self.add(op, kind, NodeBound { most, exact: false })
    }
}

impl ReducedModel {
    /// The comparable form, without node numbers.
    pub fn same(&self) -> ComparableModel {
        let mut same = ComparableModel {
            ends: [self.model.values.0, self.model.finals.0],
            ..ComparableModel::default()
        };
        let mut numbers: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for axiom in self.model.axioms.iter().chain(&self.model.flags) {
            let node = self.number(axiom.node, &mut same, &mut numbers);
            same.tests
                .push((axiom.test, axiom.negated, axiom.effect, node));
        }
        for free in &self.model.free {
            let bounds = [Some(free.within), free.containing, free.covering];
            let bounds =
                bounds.map(|node| node.map(|node| self.number(node, &mut same, &mut numbers)));
            same.free.push((free.shape, bounds));
        }
        same
    }

    /// The number of a node in order of first visit.
    fn number(
        &self,
        id: NodeId,
        same: &mut ComparableModel,
        numbers: &mut FxHashMap<NodeId, NodeId>,
    ) -> NodeId {
        if let Some(number) = numbers.get(&id) {
            return *number;
        }
        let group = self
            .model
            .groups
            .iter()
            .find(|group| group.range.contains(&id.0));
        let these: Vec<NodeId> =
            group.map_or(vec![id], |group| group.range.clone().map(NodeId).collect());
        for inner in &these {
            for operand in self
                .model
                .node(*inner)
                .op
                .operands()
                .filter(|o| !these.contains(o))
            {
                self.number(operand, same, numbers);
            }
        }
        for inner in &these {
            let node = self.model.node(*inner);
            let op = match node.op {
                NodeOp::Base(leaf) => {
                    same.leaves.push(self.leaves[leaf.index()].clone());
                    NodeOp::Base(BaseId(same.leaves.len() as u16 - 1))
                }
                NodeOp::Var(_, member) => NodeOp::Var(0, member),
                op => op.map_operands(|operand| numbers[&operand]),
            };
            numbers.insert(*inner, NodeId(same.nodes.len() as u32));
            same.nodes.push((op, node.kind));
        }
        // Assigns bodies to members.
        for body in group.into_iter().flat_map(|group| &group.bodies) {
            let number = self.number(*body, same, numbers);
            same.nodes.push((NodeOp::Domain(number), Kind::Set));
        }
        numbers[&id]
    }
}
