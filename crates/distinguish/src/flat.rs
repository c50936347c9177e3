//! Evaluates a model's table on machine words: a relation has one row per event, and an event is a
//! bit.
//!
//! Searches decide millions of small executions. So evaluation allocates nothing per node, and
//! results that no choice can change are computed once per program.
//!
//! # Invariants
//! - There are at most [`MOST_EVENTS`] events, and all of them execute. So operators have their
//!   textbook meaning as in [`cat::algebra::bits`]; tests compare the two.

use std::sync::Arc;

use cat::algebra::needed;
use cat::model::ir::{FreeId, FreeShape, Kind, Model, NodeId, NodeOp, Test};
use cat::model::signature::BaseId;

/// The number of bits of a word, one per event.
pub const MOST_EVENTS: usize = 32;

/// The rows of a relation; a set uses only the first row.
pub type Rows = [u32; MOST_EVENTS];

/// The nodes that a model's axioms, or other requested nodes, depend on.
#[derive(Clone, Debug)]
pub struct Flat {
    model: Arc<Model>,
    /// The number of events.
    n: usize,
    values: Vec<Rows>,
    /// Base sets and relations with their nodes.
    bases: Vec<(usize, BaseId)>,
    /// Free relations with their nodes.
    free: Vec<(usize, FreeId)>,
    /// The steps by stage, in order. Stage 0 does not depend on choices, stage 1 depends on
    /// functions only, stage 2 also on the first order, and so on. Axioms that need few nodes come
    /// first.
    stages: Vec<Vec<FlatStep>>,
    /// The stage of each node.
    stage: Vec<usize>,
}

/// A node, a fixpoint group or an axiom, by number.
#[derive(Clone, Copy, Debug)]
enum FlatStep {
    Node(FlatNode),
    Group(usize),
    Check(usize),
}

/// A node with its operands as numbers.
#[derive(Clone, Copy, Debug)]
struct FlatNode {
    at: usize,
    sort: FlatOp,
    left: usize,
    right: usize,
    is_set: bool,
}

/// An operator without its operands.
#[derive(Clone, Copy, Debug)]
enum FlatOp {
    /// Set from outside.
    Leaf,
    Empty,
    Universe,
    IdentityOn,
    Product,
    Union,
    Inter,
    Diff,
    Seq,
    Inverse,
    Plus,
    Domain,
    Range,
}

impl FlatNode {
    fn of(model: &Model, at: usize) -> FlatNode {
        let node = &model.nodes[at];
        let (sort, operands) = match node.op {
            NodeOp::Base(_) | NodeOp::Free(_) | NodeOp::Var(..) => (FlatOp::Leaf, None),
            NodeOp::Empty => (FlatOp::Empty, None),
            NodeOp::Universe => (FlatOp::Universe, None),
            NodeOp::IdentityOn(a) => (FlatOp::IdentityOn, Some((a, a))),
            NodeOp::Product(a, b) => (FlatOp::Product, Some((a, b))),
            NodeOp::Union(a, b) => (FlatOp::Union, Some((a, b))),
            NodeOp::Inter(a, b) => (FlatOp::Inter, Some((a, b))),
            NodeOp::Diff(a, b) => (FlatOp::Diff, Some((a, b))),
            NodeOp::Seq(a, b) => (FlatOp::Seq, Some((a, b))),
            NodeOp::Inverse(a) => (FlatOp::Inverse, Some((a, a))),
            NodeOp::Plus(a) => (FlatOp::Plus, Some((a, a))),
            NodeOp::Domain(a) => (FlatOp::Domain, Some((a, a))),
            NodeOp::Range(a) => (FlatOp::Range, Some((a, a))),
        };
        let (left, right) = operands.map_or((0, 0), |(a, b)| (a.index(), b.index()));
        FlatNode {
            at,
            sort,
            left,
            right,
            is_set: node.kind == Kind::Set,
        }
    }
}

impl Flat {
    /// Prepares a model's axioms, the bounds of its free relations, and further nodes.
    pub fn new(whole: Arc<Model>, further: impl IntoIterator<Item = NodeId>) -> Flat {
        let model: &Model = &whole;
        let bounds = model
            .free
            .iter()
            .flat_map(|f| [Some(f.within), f.containing, f.covering])
            .flatten();
        let roots = model
            .axioms
            .iter()
            .map(|a| a.node)
            .chain(bounds)
            .chain(further);
        let needed = needed(model, roots);
        let values = vec![[0; MOST_EVENTS]; model.nodes.len()];
        let mut flat = Flat {
            model: Arc::clone(&whole),
            n: 0,
            values,
            bases: Vec::new(),
            free: Vec::new(),
            stages: Vec::new(),
            stage: Vec::new(),
        };
        let order = |id: FreeId| {
            let free = &model.free[id.0 as usize];
            let before = model.free[..id.0 as usize]
                .iter()
                .filter(|f| f.shape == FreeShape::Order)
                .count();
            if free.shape == FreeShape::Order {
                2 + before
            } else {
                1
            }
        };
        // The stage and the step of each node.
        let mut stage = vec![0; model.nodes.len()];
        let mut steps: Vec<Option<FlatStep>> = vec![None; model.nodes.len()];
        let mut i = 0;
        while i < model.nodes.len() {
            let group = model
                .groups
                .iter()
                .position(|g| g.range.start as usize == i);
            let end = group.map_or(i + 1, |g| model.groups[g].range.end as usize);
            let these = i..end;
            i = end;
            let stages = these.clone().map(|at| match model.nodes[at].op {
                NodeOp::Free(id) => order(id),
                op => op.operands().map(|o| stage[o.index()]).max().unwrap_or(0),
            });
            let last = stages.max().unwrap_or(0);
            stage[these.clone()].fill(last);
            if !needed[these.start] {
                continue;
            }
            match (group, &model.nodes[these.start].op) {
                (None, NodeOp::Base(id)) => flat.bases.push((these.start, *id)),
                (None, NodeOp::Free(id)) => flat.free.push((these.start, *id)),
                (None, _) => {
                    steps[these.start] = Some(FlatStep::Node(FlatNode::of(model, these.start)))
                }
                (Some(g), _) => steps[these.start] = Some(FlatStep::Group(g)),
            }
        }
        let last = 2 + model
            .free
            .iter()
            .filter(|f| f.shape == FreeShape::Order)
            .count();
        for now in 0..last {
            let of_stage = steps_of_stage(model, &needed, &stage, &mut steps, now);
            flat.stages.push(of_stage);
        }
        flat.stage = stage;
        flat
    }

    /// Starts a program with that many events; `fill` writes each base set or relation.
    pub fn begin(&mut self, n: usize, mut fill: impl FnMut(BaseId, Kind, &mut Rows)) {
        assert!(n <= MOST_EVENTS);
        self.n = n;
        for &(node, id) in &self.bases {
            fill(id, self.model.nodes[node].kind, &mut self.values[node]);
        }
    }

    /// Sets a free relation.
    pub fn choose(&mut self, id: FreeId, rows: &Rows) {
        for &(node, free) in &self.free {
            if free == id {
                self.values[node] = *rows;
            }
        }
    }

    /// Computes a stage; the caller runs stages in order. Stage 0 does not depend on choices, stage
    /// 1 depends on functions only, stage 2 also on the first order, and so on.
    ///
    /// # Errors
    /// The first axiom that rejects the choices, except the `excused` ones. Later steps are not
    /// computed.
    pub fn run(&mut self, stage: usize, excused: impl Fn(usize) -> bool) -> Result<(), usize> {
        for i in 0..self.stages[stage].len() {
            match self.stages[stage][i] {
                FlatStep::Node(node) => self.node(node),
                FlatStep::Group(group) => self.group(group),
                FlatStep::Check(axiom) => {
                    let tried = &self.model.axioms[axiom];
                    if self.holds(tried.test, tried.node) == tried.negated && !excused(axiom) {
                        return Err(axiom);
                    }
                }
            }
        }
        Ok(())
    }

    /// The stage that computes a node.
    pub fn stage(&self, id: NodeId) -> usize {
        self.stage[id.index()]
    }

    /// A node's value.
    pub fn value(&self, id: NodeId) -> &Rows {
        &self.values[id.index()]
    }

    /// Whether a test succeeds on a node.
    pub fn holds(&self, test: Test, node: NodeId) -> bool {
        let rows = &self.values[node.index()];
        match test {
            Test::Empty if self.model.node(node).kind == Kind::Set => rows[0] == 0,
            Test::Empty => rows[..self.n].iter().all(|&row| row == 0),
            Test::Irreflexive => rows[..self.n]
                .iter()
                .enumerate()
                .all(|(i, row)| row >> i & 1 == 0),
            Test::Acyclic => is_acyclic(&rows[..self.n]),
        }
    }

    /// Whether a node's value is empty for any choices after that stage. `false` means that this is
    /// not proven.
    pub fn stays_empty(&self, id: NodeId, stage: usize) -> bool {
        self.most(id, stage)
            .is_some_and(|rows| rows[..self.n].iter().all(|&row| row == 0))
    }

    /// An upper bound of a node's value for any choices after that stage; `None`: no bound is
    /// known.
    fn most(&self, id: NodeId, stage: usize) -> Option<Rows> {
        let node = self.model.node(id);
        let known = |id: NodeId| (self.stage(id) <= stage).then(|| self.value(id));
        if let Some(rows) = known(id) {
            let mut rows = *rows;
            // A set is only the first row; rows beyond the last event are zero.
            rows[if node.kind == Kind::Set { 1 } else { self.n }..].fill(0);
            return Some(rows);
        }
        fn with(mut a: Rows, b: &Rows, f: fn(u32, u32) -> u32) -> [u32; 32] {
            a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b));
            a
        }
        match node.op {
            NodeOp::Union(a, b) => {
                Some(with(self.most(a, stage)?, &self.most(b, stage)?, |a, b| {
                    a | b
                }))
            }
            NodeOp::Inter(a, b) => match (self.most(a, stage), self.most(b, stage)) {
                (Some(a), Some(b)) => Some(with(a, &b, |a, b| a & b)),
                (some, other) => some.or(other),
            },
            NodeOp::Diff(a, b) => {
                let from = self.most(a, stage)?;
                Some(known(b).map_or(from, |b| with(from, b, |a, b| a & !b)))
            }
            NodeOp::IdentityOn(a)
            | NodeOp::Domain(a)
            | NodeOp::Range(a)
            | NodeOp::Inverse(a)
            | NodeOp::Plus(a) => self.stays_empty(a, stage).then_some([0; MOST_EVENTS]),
            NodeOp::Seq(a, b) | NodeOp::Product(a, b) => (self.stays_empty(a, stage)
                || self.stays_empty(b, stage))
            .then_some([0; MOST_EVENTS]),
            _ => None,
        }
    }

    fn group(&mut self, group: usize) {
        let model = Arc::clone(&self.model);
        let group = &model.groups[group];
        for var in &group.vars {
            self.values[var.index()] = [0; MOST_EVENTS];
        }
        loop {
            for i in group.range.clone() {
                self.node(FlatNode::of(&model, i as usize));
            }
            let mut changed = false;
            for (var, body) in group.vars.iter().zip(&group.bodies) {
                let new = self.values[body.index()];
                changed |= self.values[var.index()] != new;
                self.values[var.index()] = new;
            }
            if !changed {
                return;
            }
        }
    }

    fn node(&mut self, node: FlatNode) {
        let n = self.n;
        // Operands come before their node.
        let (before, from) = self.values.split_at_mut(node.at);
        let out = &mut from[0][..n];
        if let FlatOp::Leaf = node.sort {
            return;
        }
        if let FlatOp::Universe | FlatOp::Empty = node.sort {
            out.fill(0);
            if let FlatOp::Universe = node.sort {
                out[0] = all(n);
            }
            return;
        }
        let (x, y) = (&before[node.left][..n], &before[node.right][..n]);
        let rows = if node.is_set { 1 } else { n };
        match node.sort {
            FlatOp::Leaf | FlatOp::Empty | FlatOp::Universe => {}
            FlatOp::IdentityOn => (0..n).for_each(|r| out[r] = x[0] & (1 << r)),
            FlatOp::Product => {
                (0..n).for_each(|r| out[r] = if x[0] >> r & 1 == 1 { y[0] } else { 0 })
            }
            FlatOp::Union => (0..rows).for_each(|r| out[r] = x[r] | y[r]),
            FlatOp::Inter => (0..rows).for_each(|r| out[r] = x[r] & y[r]),
            FlatOp::Diff => (0..rows).for_each(|r| out[r] = x[r] & !y[r]),
            FlatOp::Seq => {
                for r in 0..n {
                    let (mut through, mut row) = (x[r], 0);
                    while through != 0 {
                        row |= y[through.trailing_zeros() as usize];
                        through &= through - 1;
                    }
                    out[r] = row;
                }
            }
            FlatOp::Inverse => {
                out.fill(0);
                for (r, &row) in x.iter().enumerate() {
                    ones(row).for_each(|k| out[k] |= 1 << r);
                }
            }
            FlatOp::Plus => {
                out.copy_from_slice(x);
                close(out);
            }
            FlatOp::Domain => out[0] = (0..n).filter(|&r| x[r] != 0).fold(0, |set, r| set | 1 << r),
            FlatOp::Range => out[0] = x.iter().fold(0, |set, row| set | row),
        }
    }
}

/// The steps of a stage. Each axiom adds the steps that earlier axioms lack, and its check. The
/// remaining steps follow.
fn steps_of_stage(
    model: &Model,
    needed: &[bool],
    stage: &[usize],
    steps: &mut [Option<FlatStep>],
    now: usize,
) -> Vec<FlatStep> {
    let under = |axiom: usize| cat::algebra::needed(model, [model.axioms[axiom].node]);
    let mut axioms: Vec<usize> = (0..model.axioms.len())
        .filter(|&a| stage[model.axioms[a].node.index()] == now)
        .collect();
    axioms.sort_by_cached_key(|&axiom| {
        let under = under(axiom);
        (0..steps.len())
            .filter(|&at| under[at] && stage[at] == now && steps[at].is_some())
            .count()
    });
    let mut of_stage = Vec::new();
    for axiom in axioms {
        let under = under(axiom);
        of_stage.extend(
            (0..steps.len())
                .filter(|&at| under[at] && stage[at] == now)
                .filter_map(|at| steps[at].take()),
        );
        of_stage.push(FlatStep::Check(axiom));
    }
    of_stage.extend(
        (0..steps.len())
            .filter(|&at| needed[at] && stage[at] == now)
            .filter_map(|at| steps[at].take()),
    );
    of_stage
}

/// The word with the lowest `n` bits set.
fn all(n: usize) -> u32 {
    if n == MOST_EVENTS {
        !0
    } else {
        (1u32 << n) - 1
    }
}

/// The positions of the set bits.
pub fn ones(mut word: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// Transitive closure (Warshall).
pub fn close(rows: &mut [u32]) {
    for k in 0..rows.len() {
        let through = rows[k];
        if through != 0 {
            rows.iter_mut()
                .filter(|row| **row >> k & 1 == 1)
                .for_each(|row| *row |= through);
        }
    }
}

/// Whether there is no cycle: repeatedly removes events without successors.
pub fn is_acyclic(rows: &[u32]) -> bool {
    let mut left = all(rows.len());
    loop {
        let ends = ones(left)
            .filter(|&r| rows[r] & left == 0)
            .fold(0, |set, r| set | 1u32 << r);
        if ends == 0 {
            return left == 0;
        }
        left &= !ends;
    }
}
