//! Cycles: gates that say that a graph has none.
//!
//! # Sources
//! - Acyclicity by vertex elimination: Rankooh, Rintanen, AAAI 2022.

use rustc_hash::FxHashMap;

use super::{Circuit, CircuitLeaves};
use crate::algebra::gates::{Gates, Lit};
use crate::model::ir::{FreeId, Shape};
use crate::rel::{EventSet, Rel, first_common, ones};

impl<L: CircuitLeaves> Circuit<'_, L> {
    /// The free orders that have something to say of a component of a graph.
    fn orders(&mut self, gates: &mut Gates, graph: &Rel, component: &[usize]) -> Vec<Along> {
        let n = self.algebra.may.universe_len();
        let mut here = EventSet::empty(n);
        component.iter().for_each(|&i| here.insert(i));
        let free = self
            .model
            .free
            .iter()
            .enumerate()
            .filter(|(_, free)| free.shape == Shape::Order);
        let along = free.map(|(f, free)| {
            let id = FreeId(f as u32);
            let inside = self.value(free.within).rel().must.clone().restricted(&here);
            let in_graph = |&(i, j): &(usize, usize)| {
                graph.has(i, j) || self.leaves.free(gates, id, i, j) == Lit::FALSE
            };
            Along {
                id,
                alone: Rel::empty(n),
                led: Rel::from_pairs(n, inside.iter().filter(in_graph)),
            }
        });
        along.filter(|order| !order.led.is_empty()).collect()
    }

    /// Whether the graph of the given cells has no cycle of executed events: eliminates vertices
    /// one by one, those with the fewest detours first. A detour along a free order leads where
    /// that order leads without it, and takes no gate; one along what is certain takes none either,
    /// and one against it is a cycle.
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
            // Between events that surely execute.
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
            // Of what is certain, the steps: between events that are left there is always a way of
            // them.
            let steps = certain.clone().minus(&certain.seq(&certain, &left));
            edges.extend(steps.iter().map(|pair| (pair, Lit::TRUE)));
            // Where there is an edge, by both ends.
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

/// For some events: when one of the given edges leads to them, or to what surely comes before them.
/// What comes before one of them comes before those behind it, too, and is gone through once.
fn returns(
    gates: &mut Gates,
    earlier: &Rel,
    events: &[usize],
    targets: &[usize],
    edge: impl Fn(usize) -> Lit,
) -> Vec<(usize, Lit)> {
    let mut found: Vec<(usize, Lit)> = Vec::new();
    let from = |u: usize, w: usize| u == w || earlier.has(u, w);
    let mut events = events.to_vec();
    events.sort_by_key(|&u| common(earlier.row(u), earlier.row(u)));
    for u in events {
        let mut here = targets.iter().copied().filter(|&w| from(u, w)).peekable();
        if here.peek().is_none() {
            continue;
        }
        let known = found
            .iter()
            .rev()
            .find(|&&(p, _)| earlier.has(u, p))
            .copied();
        let more = here
            .filter(|&w| known.is_none_or(|(p, _)| !from(p, w)))
            .map(&edge);
        let lit = gates.any(more.chain(known.map(|(_, lit)| lit)));
        found.push((u, lit));
    }
    found
}

/// In smaller graphs, detours are not looked at for whether they are along an order.
const ALONG: usize = 16;

/// A free order in a graph whose cycles are looked for.
struct Along {
    id: FreeId,
    /// Edges that are in the graph if and only if they are in the order.
    alone: Rel,
    /// Pairs that are in the graph if they are in the order, and are in it if a third event lies
    /// between them there: what the order's transitivity says, given that all three execute.
    led: Rel,
}

impl Along {
    /// Notes an edge of the graph, and when it is one of the order.
    fn note(&mut self, i: usize, j: usize, edge: Lit, ordered: Lit) {
        if edge == ordered {
            self.alone.insert(i, j);
        } else if edge != Lit::TRUE && ordered != Lit::FALSE {
            self.led.remove(i, j);
        }
    }

    /// Whether the way from `u` over `v` to `w` is one of the order, and there is another one then.
    fn leads(&self, u: usize, v: usize, w: usize) -> bool {
        self.alone.has(u, v) && self.alone.has(v, w) && self.led.has(u, w)
    }
}

/// Strongly connected components that can hold a cycle, in order of their first event (Kosaraju:
/// what comes last in the one direction comes first in the other).
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

/// Goes from an event to those left that it reaches, depth first, and puts down each when all
/// behind it have been.
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

/// How many events two rows have in common.
fn common(a: &[u64], b: &[u64]) -> usize {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a & b).count_ones() as usize)
        .sum()
}
