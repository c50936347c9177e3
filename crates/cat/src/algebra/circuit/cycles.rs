//! Builds gates for the absence of cycles in a graph.
//!
//! # Sources
//! - Acyclicity by vertex elimination: Rankooh, Rintanen, AAAI 2022.

use rustc_hash::FxHashMap;

use super::{Circuit, CircuitLeaves};
use crate::algebra::gates::{Gates, Lit};
use crate::model::ir::{FreeId, FreeShape};
use crate::rel::{EventSet, Rel, first_common, ones};

impl<L: CircuitLeaves> Circuit<'_, L> {
    /// The free orders that decide pairs in a component of a graph.
    fn orders(&mut self, gates: &mut Gates, graph: &Rel, component: &[usize]) -> Vec<OrderInGraph> {
        let n = self.algebra.may.universe_len();
        let mut here = EventSet::empty(n);
        component.iter().for_each(|&i| here.insert(i));
        let free = self
            .model
            .free
            .iter()
            .enumerate()
            .filter(|(_, free)| free.shape == FreeShape::Order);
        let along = free.map(|(f, free)| {
            let id = FreeId(f as u32);
            let inside = self.value(free.within).rel().must.clone().restricted(&here);
            OrderInGraph {
                id,
                alone: Rel::empty(n),
                led: Rel::from_pairs(
                    n,
                    inside.iter().filter(|&(i, j)| {
                        graph.has(i, j) || self.leaves.free(gates, id, i, j) == Lit::FALSE
                    }),
                ),
            }
        });
        along.filter(|order| !order.led.is_empty()).collect()
    }

    /// Whether the graph of the given cells has no cycle of executed events. Eliminates vertices
    /// one by one, those with the fewest detours first. A detour along a free order needs no gate,
    /// because the order has a direct edge there. A detour along a certain path needs none either.
    /// A detour against a certain path is a cycle.
    pub fn acyclic(
        &mut self,
        gates: &mut Gates,
        may: Rel,
        mut cell: impl FnMut(&mut Self, &mut Gates, usize, usize) -> Lit,
    ) -> Lit {
        let n = may.universe_len();
        let mut all = Vec::new();
        for component in components(&may) {
            let mut left = EventSet::empty(n);
            component.iter().for_each(|&i| left.insert(i));
            let mut edges: FxHashMap<(usize, usize), Lit> = FxHashMap::default();
            // Edges that are certain, between events that must execute.
            let mut certain = Rel::empty(n);
            let mut orders = if component.len() < ALONG {
                Vec::new()
            } else {
                self.orders(gates, &may, &component)
            };
            for &i in &component {
                for j in may.successors(i).filter(|&j| left.has(j)) {
                    let there = self.executes(gates, j);
                    let c = cell(self, gates, i, j);
                    for order in &mut orders {
                        order.note(i, j, c, self.leaves.free(gates, order.id, i, j));
                    }
                    let lit = gates.and(c, there);
                    if lit == Lit::TRUE && self.algebra.must.has(i) {
                        certain.insert(i, j);
                    } else if lit != Lit::FALSE {
                        edges.insert((i, j), lit);
                    }
                }
            }
            let certain = certain.plus(&left);
            if certain.has_loop(&left) {
                return Lit::FALSE;
            }
            let earlier = certain.inverse();
            edges.retain(|&(i, j), lit| {
                let cycle = i == j || certain.has(j, i);
                if cycle {
                    all.push(!*lit);
                }
                !cycle && !certain.has(i, j)
            });
            // The certain steps without shortcuts. They still connect the remaining events in the
            // same way.
            let steps = certain.clone().minus(&certain.seq(&certain, &left));
            edges.extend(steps.iter().map(|pair| (pair, Lit::TRUE)));
            // The edges by source and by target.
            let mut out = Rel::from_pairs(n, edges.keys().copied());
            let mut into = out.inverse();
            while !left.is_empty() && !gates.tick(0) {
                let cost =
                    |v: usize| common(into.row(v), left.words()) * common(out.row(v), left.words());
                let v = left
                    .iter()
                    .min_by_key(|&v| (cost(v), v))
                    .expect("not empty");
                left.remove(v);
                let among = |edges: &Rel| {
                    edges
                        .successors(v)
                        .filter(|&u| left.has(u))
                        .collect::<Vec<usize>>()
                };
                let (before, behind) = (among(&into), among(&out));
                for (u, back) in returns(gates, &earlier, &before, &behind, |w| edges[&(v, w)]) {
                    all.push(!gates.and(edges[&(u, v)], back));
                }
                for &u in &before {
                    for &w in &behind {
                        if u == w || certain.has(w, u) {
                            continue;
                        }
                        if certain.has(u, w) {
                            let between =
                                || ones(certain.row(u)).any(|k| left.has(k) && certain.has(k, w));
                            if !certain.has(u, v) || !certain.has(v, w) || between() {
                                continue;
                            }
                        } else if orders.iter().any(|order| order.leads(u, v, w)) {
                            continue;
                        }
                        let detour = gates.and(edges[&(u, v)], edges[&(v, w)]);
                        if detour == Lit::FALSE {
                            continue;
                        }
                        let old = edges.get(&(u, w)).copied().unwrap_or(Lit::FALSE);
                        edges.insert((u, w), gates.or(old, detour));
                        orders.iter_mut().for_each(|order| order.alone.remove(u, w));
                        out.insert(u, w);
                        into.insert(w, u);
                    }
                }
            }
        }
        gates.all(all)
    }
}

/// For each of some events: the condition that a given edge leads to it or to a certain
/// predecessor. An event's predecessors are also predecessors of later events, so they are visited
/// once.
fn returns(
    gates: &mut Gates,
    earlier: &Rel,
    events: &[usize],
    targets: &[usize],
    edge: impl Fn(usize) -> Lit,
) -> Vec<(usize, Lit)> {
    let mut found: Vec<(usize, Lit)> = Vec::new();
    fn from(u: usize, w: usize, earlier: &Rel) -> bool {
        u == w || earlier.has(u, w)
    }
    let mut events = events.to_vec();
    events.sort_by_key(|&u| common(earlier.row(u), earlier.row(u)));
    for u in events {
        let mut here = targets
            .iter()
            .copied()
            .filter(|&w| from(u, w, earlier))
            .peekable();
        if here.peek().is_none() {
            continue;
        }
        let known = found
            .iter()
            .rev()
            .find(|&&(p, _)| earlier.has(u, p))
            .copied();
        let more = here
            .filter(|&w| known.is_none_or(|(p, _)| !from(p, w, earlier)))
            .map(&edge);
        let lit = gates.any(more.chain(known.map(|(_, lit)| lit)));
        found.push((u, lit));
    }
    found
}

/// The smallest component in which detours are compared with orders.
const ALONG: usize = 16;

/// A free order within a graph that is searched for cycles.
struct OrderInGraph {
    id: FreeId,
    /// Edges that are in the graph iff they are in the order.
    alone: Rel,
    /// Pairs that are in the graph if they are in the order. By transitivity they are in the order
    /// if it has a third event between them, given that all three execute.
    led: Rel,
}

impl OrderInGraph {
    /// Records an edge of the graph, with its conditions in the graph and in the order.
    fn note(&mut self, i: usize, j: usize, edge: Lit, ordered: Lit) {
        if edge == ordered {
            self.alone.insert(i, j);
        } else if edge != Lit::TRUE && ordered != Lit::FALSE {
            self.led.remove(i, j);
        }
    }

    /// Whether the path from `u` over `v` to `w` follows the order, so that the order also has a
    /// direct edge.
    fn leads(&self, u: usize, v: usize, w: usize) -> bool {
        self.alone.has(u, v) && self.alone.has(v, w) && self.led.has(u, w)
    }
}

/// The strongly connected components that can contain a cycle, in order of their first event
/// (Kosaraju: the second search visits events in reverse order of completion).
fn components(may: &Rel) -> Vec<Vec<usize>> {
    let all = EventSet::full(may.universe_len());
    let mut finished = Vec::new();
    let mut left = all.clone();
    all.iter()
        .for_each(|root| walk(may, root, &mut left, &mut finished));
    let (back, mut left) = (may.inverse(), all);
    let mut found: Vec<Vec<usize>> = Vec::new();
    for &root in finished.iter().rev() {
        let mut one = Vec::new();
        walk(&back, root, &mut left, &mut one);
        if one.len() > 1 || one.first().is_some_and(|&i| may.has(i, i)) {
            one.sort_unstable();
            found.push(one);
        }
    }
    found.sort_unstable();
    found
}

/// Visits the remaining events that are reachable from `root`, depth first, and appends each on
/// completion.
fn walk(edges: &Rel, root: usize, left: &mut EventSet, finished: &mut Vec<usize>) {
    if !left.has(root) {
        return;
    }
    left.remove(root);
    let mut path = vec![root];
    while let Some(&i) = path.last() {
        match first_common(edges.row(i), left.words()) {
            Some(next) => {
                left.remove(next);
                path.push(next);
            }
            None => finished.extend(path.pop()),
        }
    }
}

/// The number of events in both rows.
fn common(a: &[u64], b: &[u64]) -> usize {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a & b).count_ones() as usize)
        .sum()
}
