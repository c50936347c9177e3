//! Derivations: why a pair is in a relation of a model, in one execution, down to the facts of the
//! execution.
//!
//! A union holds by one member, a sequence by an event in the middle, a closure by a path, an
//! intersection by both parts, and a difference by its left part and the failure of the right one.
//! Of several ways, the derivation takes the one with the fewest edges, and of these the first.
//!
//! # Invariants
//! - It reads the values that replay computed; [`Deriver::verify`] checks a derivation against them
//!   again.
//! - Deterministic: it depends on the execution and the model alone.
//! - Members of a recursive definition are derived from earlier rounds of its fixpoint, so no
//!   derivation is circular.
//! - The code names no relation of a model.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use cat::algebra::bits::Bits;
use cat::algebra::{Value, Values, rounds};
use cat::model::ir::{Kind, Model, NodeId, NodeOp};
use cat::rel::EventSet;

/// Above this number of events any derivation will do: a search for the shortest takes too long.
const WEIGHED: usize = 160;

/// A group and a round of its fixpoint; [`LAST`]: after the last round.
pub(super) type Round = Option<(usize, usize)>;

const LAST: Round = None;

/// The fact that a pair is in a relation, or (`from` is `to`) an event in a set; or the fact that
/// it is not.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) node: NodeId,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) holds: bool,
    /// Its reasons; for a step that does not hold, the failing parts, as far as single pairs show
    /// them.
    pub(super) parts: Vec<Step>,
    pub(super) round: Round,
}

/// Derives pairs in one execution.
pub(super) struct Deriver<'a> {
    pub(super) model: &'a Model,
    values: &'a Values<Bits>,
    n: usize,
    executed: &'a EventSet,
    /// The events of threads: all but initial writes.
    of_thread: EventSet,
    /// By group, the rounds of its fixpoint.
    rounds: Vec<Vec<Values<Bits>>>,
    costs: RefCell<FxHashMap<(NodeId, Round, usize, usize), u32>>,
}

impl<'a> Deriver<'a> {
    /// For the values of one execution.
    pub(super) fn new(
        model: &'a Model,
        values: &'a Values<Bits>,
        executed: &'a EventSet,
        of_thread: EventSet,
    ) -> Deriver<'a> {
        let algebra = Bits {
            executed: executed.clone(),
        };
        let rounds = model
            .groups
            .iter()
            .map(|g| rounds(model, &algebra, g, values))
            .collect();
        let n = executed.universe_len();
        Deriver {
            model,
            values,
            n,
            executed,
            of_thread,
            rounds,
            costs: RefCell::default(),
        }
    }

    fn group_of(&self, node: NodeId) -> Option<usize> {
        self.model
            .groups
            .iter()
            .position(|g| g.range.contains(&node.0))
    }

    fn has_at(&self, node: NodeId, round: Round, i: usize, j: usize) -> bool {
        let value = match round {
            Some((g, r)) if self.group_of(node) == Some(g) => {
                self.rounds[g][r][node.index()].as_deref()
            }
            _ => self.values[node.index()].as_deref(),
        };
        match value.expect("all nodes were asked for") {
            Value::Set(s) => i == j && s.has(i),
            Value::Rel(r) => r.has(i, j),
        }
    }

    /// Whether an event can begin a chain: one of a thread.
    pub(super) fn starts(&self, event: usize) -> bool {
        self.of_thread.has(event)
    }

    /// Whether the pair is in the relation, or the event in the set.
    pub(super) fn has(&self, node: NodeId, i: usize, j: usize) -> bool {
        self.has_at(node, LAST, i, j)
    }

    /// A recursive name means its body in the round that first had the pair.
    fn settle(&self, node: NodeId, round: Round, i: usize, j: usize) -> (NodeId, Round) {
        let (group, body, before) = match (self.model.node(node).op, self.group_of(node)) {
            (NodeOp::Var(g, member), _) => {
                let body = self.model.groups[g as usize].bodies[member as usize];
                (g as usize, body, round.map_or(usize::MAX, |(_, r)| r))
            }
            (_, Some(g)) if round.is_none_or(|(of, _)| of != g) => (g, node, usize::MAX),
            _ => return (node, round),
        };
        let rounds = 0..self.rounds[group].len().min(before);
        let first = rounds
            .map(|r| Some((group, r)))
            .find(|&round| self.has_at(body, round, i, j));
        (body, first.unwrap_or(LAST))
    }

    /// The number of edges in the shortest derivation of a pair that holds.
    fn cost(&self, node: NodeId, round: Round, i: usize, j: usize) -> u32 {
        if self.n > WEIGHED {
            return 1;
        }
        let (node, round) = self.settle(node, round, i, j);
        if let Some(&known) = self.costs.borrow().get(&(node, round, i, j)) {
            return known;
        }
        let cost = match self.model.node(node).op {
            _ if self.model.node(node).kind == Kind::Set => 0,
            NodeOp::IdentityOn(_) => 0,
            NodeOp::Union(a, b) => [a, b]
                .into_iter()
                .filter(|&x| self.has_at(x, round, i, j))
                .map(|x| self.cost(x, round, i, j))
                .min()
                .unwrap_or(u32::MAX),
            NodeOp::Inter(a, b) => self.cost(a, round, i, j).max(self.cost(b, round, i, j)),
            NodeOp::Diff(a, _) => self.cost(a, round, i, j),
            NodeOp::Inverse(a) => self.cost(a, round, j, i),
            NodeOp::Seq(a, b) => self.middle(a, b, round, i, j).map_or(u32::MAX, |m| m.1),
            NodeOp::Plus(a) => self.cost_of_path(a, round, &self.path(a, round, i, j)),
            _ => 1,
        };
        self.costs.borrow_mut().insert((node, round, i, j), cost);
        cost
    }

    fn cost_of_path(&self, node: NodeId, round: Round, path: &[usize]) -> u32 {
        path.windows(2)
            .map(|w| self.cost(node, round, w[0], w[1]))
            .fold(0, u32::saturating_add)
    }

    /// The event in the middle of a sequence, with the cost of both sides.
    fn middle(
        &self,
        a: NodeId,
        b: NodeId,
        round: Round,
        i: usize,
        j: usize,
    ) -> Option<(usize, u32)> {
        let middles = self
            .executed
            .iter()
            .filter(|k| self.has_at(a, round, i, *k) && self.has_at(b, round, *k, j));
        let costs = middles.map(|k| {
            let (before, after) = (self.cost(a, round, i, k), self.cost(b, round, k, j));
            (k, before.saturating_add(after))
        });
        costs.min_by_key(|&(k, cost)| (cost, k))
    }

    /// A path with the fewest steps from `i` to `j`, both included; `j` may be `i`.
    fn path(&self, a: NodeId, round: Round, i: usize, j: usize) -> Vec<usize> {
        self.walk(&|x, y| self.has_at(a, round, x, y), i, j)
    }

    /// A path as by transitivity: from `i` to `j` by pairs that are in both relations.
    pub(super) fn way(&self, a: NodeId, b: NodeId, i: usize, j: usize) -> Vec<usize> {
        self.walk(&|x, y| self.has(a, x, y) && self.has(b, x, y), i, j)
    }

    fn walk(&self, has: &dyn Fn(usize, usize) -> bool, i: usize, j: usize) -> Vec<usize> {
        let mut before: Vec<Option<usize>> = vec![None; self.n];
        let mut todo = std::collections::VecDeque::from([i]);
        while let Some(x) = todo.pop_front() {
            for y in self.executed.iter().filter(|&y| has(x, y)) {
                if y == j {
                    let mut path = vec![j, x];
                    let mut at = x;
                    while at != i {
                        at = before[at]
                            .expect("every event but the first was reached from another one");
                        path.push(at);
                    }
                    path.reverse();
                    return path;
                }
                if y != i && before[y].is_none() {
                    before[y] = Some(x);
                    todo.push_back(y);
                }
            }
        }
        Vec::new()
    }

    /// Cycles of a relation, the shortest through each event; shorter ones first.
    pub(super) fn cycles(&self, node: NodeId) -> Vec<Vec<usize>> {
        let round = LAST;
        let cycles = self
            .executed
            .iter()
            .map(|e| self.path(node, round, e, e))
            .filter(|path| !path.is_empty());
        let mut cycles: Vec<Vec<usize>> = cycles.collect();
        cycles.sort_by_cached_key(|path| (path.len(), self.cost_of_path(node, round, path)));
        cycles
    }

    /// Pairs that hold, those whose derivations have the fewest edges first.
    pub(super) fn by_cost(
        &self,
        node: NodeId,
        pairs: impl Iterator<Item = (usize, usize)>,
    ) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = pairs.collect();
        pairs.sort_by_cached_key(|&(i, j)| (self.cost(node, LAST, i, j), i, j));
        pairs
    }

    /// Why a pair is in a relation.
    pub(super) fn derive(&self, node: NodeId, i: usize, j: usize) -> Step {
        self.at(node, LAST, i, j)
    }

    fn at(&self, asked: NodeId, asked_in: Round, i: usize, j: usize) -> Step {
        let (node, round) = self.settle(asked, asked_in, i, j);
        let of = |x: NodeId, i: usize, j: usize| self.at(x, round, i, j);
        let parts = match self.model.node(node).op {
            NodeOp::Base(_)
            | NodeOp::Free(_)
            | NodeOp::Var(..)
            | NodeOp::Empty
            | NodeOp::Universe => Vec::new(),
            NodeOp::IdentityOn(s) => vec![of(s, i, i)],
            NodeOp::Product(a, b) => vec![of(a, i, i), of(b, j, j)],
            NodeOp::Union(a, b) => {
                let (x, y) = (self.has_at(a, round, i, j), self.has_at(b, round, i, j));
                let second = !x || y && self.cost(b, round, i, j) < self.cost(a, round, i, j);
                vec![of(if second { b } else { a }, i, j)]
            }
            NodeOp::Inter(a, b) => vec![of(a, i, j), of(b, i, j)],
            NodeOp::Diff(a, b) => vec![of(a, i, j), self.refuse(b, round, i, j)],
            NodeOp::Inverse(a) => vec![of(a, j, i)],
            NodeOp::Seq(a, b) => {
                let (k, _) = self
                    .middle(a, b, round, i, j)
                    .expect("a pair of a sequence has an event in the middle");
                vec![of(a, i, k), of(b, k, j)]
            }
            NodeOp::Plus(a) => self
                .path(a, round, i, j)
                .windows(2)
                .map(|w| self.at(a, round, w[0], w[1]))
                .collect(),
            NodeOp::Domain(a) => {
                let to = self.executed.iter().find(|&k| self.has_at(a, round, i, k));
                to.map(|k| of(a, i, k)).into_iter().collect()
            }
            NodeOp::Range(a) => {
                let from = self.executed.iter().find(|&k| self.has_at(a, round, k, i));
                from.map(|k| of(a, k, i)).into_iter().collect()
            }
        };
        Step {
            node,
            from: i,
            to: j,
            holds: true,
            parts,
            round,
        }
    }

    /// Why a pair is not in a relation, as far as single pairs can say it: a sequence or a closure
    /// without a way there has no parts.
    fn refuse(&self, node: NodeId, round: Round, i: usize, j: usize) -> Step {
        let not = |x: NodeId, i: usize, j: usize| self.refuse(x, round, i, j);
        let has = |x: NodeId, i: usize, j: usize| self.has_at(x, round, i, j);
        let parts = match self.model.node(node).op {
            NodeOp::Union(a, b) => vec![not(a, i, j), not(b, i, j)],
            // A fact of the program is the better reason.
            NodeOp::Inter(a, b) => {
                let first = !has(a, i, j) && (self.model.node(a).is_static || has(b, i, j));
                vec![not(if first { a } else { b }, i, j)]
            }
            NodeOp::Diff(a, _) if !has(a, i, j) => vec![not(a, i, j)],
            NodeOp::Diff(_, b) => vec![self.at(b, round, i, j)],
            NodeOp::Inverse(a) => vec![not(a, j, i)],
            NodeOp::IdentityOn(s) if i == j => vec![not(s, i, i)],
            NodeOp::Product(a, _) if !has(a, i, i) => vec![not(a, i, i)],
            NodeOp::Product(_, b) => vec![not(b, j, j)],
            _ => Vec::new(),
        };
        Step {
            node,
            from: i,
            to: j,
            holds: false,
            parts,
            round,
        }
    }

    /// Checks a derivation against the values: every step is right, and its parts suffice for it.
    ///
    /// # Errors
    /// The mistake.
    pub(super) fn verify(&self, step: &Step) -> Result<(), String> {
        let &Step {
            node,
            from: i,
            to: j,
            holds,
            ref parts,
            round,
        } = step;
        let found = &self.model.node(node);
        let called = || format!("node {} from {i} to {j}", node.0);
        if self.has_at(node, round, i, j) != holds {
            return Err(format!(
                "{} is claimed to hold, and does not, or the reverse",
                called()
            ));
        }
        let is = |at: usize, x: NodeId, i: usize, j: usize, holds: bool| {
            parts.get(at).is_some_and(|p| {
                let same = p.node == x || self.settle(x, round, i, j).0 == p.node;
                same && (p.from, p.to, p.holds) == (i, j, holds)
            })
        };
        let ends_meet = parts.windows(2).all(|w| w[0].to == w[1].from)
            && parts.first().map(|p| p.from) == Some(i)
            && parts.last().map(|p| p.to) == Some(j);
        let fits = !holds
            || match found.op {
                NodeOp::Base(_) | NodeOp::Free(_) | NodeOp::Universe => parts.is_empty(),
                NodeOp::Var(..) | NodeOp::Empty => false,
                NodeOp::IdentityOn(s) => i == j && is(0, s, i, i, true),
                NodeOp::Product(a, b) => is(0, a, i, i, true) && is(1, b, j, j, true),
                NodeOp::Union(a, b) => is(0, a, i, j, true) || is(0, b, i, j, true),
                NodeOp::Inter(a, b) => is(0, a, i, j, true) && is(1, b, i, j, true),
                NodeOp::Diff(a, b) => is(0, a, i, j, true) && is(1, b, i, j, false),
                NodeOp::Inverse(a) => is(0, a, j, i, true),
                NodeOp::Seq(a, b) => {
                    let k = parts.first().map_or(0, |p| p.to);
                    self.executed.has(k) && is(0, a, i, k, true) && is(1, b, k, j, true)
                }
                NodeOp::Plus(a) => {
                    ends_meet
                        && (0..parts.len()).all(|p| is(p, a, parts[p].from, parts[p].to, true))
                }
                NodeOp::Domain(a) => parts.first().is_some_and(|p| is(0, a, i, p.to, true)),
                NodeOp::Range(a) => parts.first().is_some_and(|p| is(0, a, p.from, i, true)),
            };
        if !fits {
            return Err(format!("the parts of {} do not make it up", called()));
        }
        parts.iter().try_for_each(|p| self.verify(p))
    }
}
