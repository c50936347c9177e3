//! Sequences along certain pairs: what those of several events have in common is built once.
//!
//! In program order, an event comes before all that the one behind it comes before: `po ; r` of the
//! one is `po ; r` of the other, and one cell of `r` more. Written out for each, a sequence would
//! take a gate with as many operands as there are events behind.

use rustc_hash::FxHashMap;

use super::{Circuit, CircuitLeaves};
use crate::algebra::gates::{Gates, Lit};
use crate::model::ir::NodeId;
use crate::rel::Rel;

/// From so many certain pairs on that a sequence goes along.
const SHARED: usize = 4;

/// The two sides of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Side {
    First,
    Second,
}

/// What sequences have in common.
#[derive(Default)]
pub(super) struct Common {
    /// By sequence and side: certain pairs, seen from the outer event.
    along: FxHashMap<(NodeId, Side), Along>,
    /// By sequence, side, outer event of that side, and the other end.
    memo: FxHashMap<(NodeId, Side, u32, u32), Lit>,
}

struct Along {
    pairs: Rel,
    sizes: Vec<u32>,
    /// By event, once asked for: another one, whose pairs are among its own.
    inner: Vec<Option<Option<u32>>>,
}

impl Along {
    fn new(pairs: Rel) -> Self {
        let n = pairs.universe_len();
        let size = |e: usize| pairs.row(e).iter().map(|word| word.count_ones()).sum();
        Along {
            sizes: (0..n).map(size).collect(),
            inner: vec![None; n],
            pairs,
        }
    }

    /// The event with the most pairs of those whose pairs are all among the event's own; of such as
    /// have the same, the first.
    fn inner(&mut self, e: usize) -> Option<usize> {
        if let Some(known) = self.inner[e] {
            return known.map(|inner| inner as usize);
        }
        let mut best: Option<usize> = None;
        let mine = self.pairs.row(e);
        for other in 0..self.sizes.len() {
            let (size, own) = (self.sizes[other], self.sizes[e]);
            let candidate = size > best.map_or(0, |best| self.sizes[best])
                && (size < own || (size == own && other < e));
            if candidate
                && self
                    .pairs
                    .row(other)
                    .iter()
                    .zip(mine)
                    .all(|(a, b)| a & !b == 0)
            {
                best = Some(other);
            }
        }
        self.inner[e] = Some(best.map(|inner| inner as u32));
        best
    }
}

impl<L: CircuitLeaves> Circuit<'_, L> {
    /// A cell of a sequence that is open.
    pub(super) fn sequence(
        &mut self,
        gates: &mut Gates,
        seq: NodeId,
        (a, b): (NodeId, NodeId),
        i: usize,
        j: usize,
    ) -> Lit {
        let (first, second) = (self.value(a), self.value(b));
        let (first, second) = (first.rel(), second.rel());
        let mut middle: Vec<usize> = first
            .may
            .successors(i)
            .filter(|&k| second.may.has(k, j))
            .collect();
        let mut any = Vec::new();
        if middle.len() >= SHARED
            && !self
                .model
                .groups
                .iter()
                .any(|group| group.range.contains(&seq.0))
        {
            let certain = [Side::First, Side::Second].map(|side| {
                let along = |&&k: &&usize| match side {
                    Side::First => first.must.has(i, k),
                    Side::Second => second.must.has(k, j),
                };
                (middle.iter().filter(along).count(), side)
            });
            let (count, side) = if certain[0].0 >= certain[1].0 {
                certain[0]
            } else {
                certain[1]
            };
            if count >= SHARED {
                let (pairs, outer, end) = match side {
                    Side::First => (&first.must, i, j),
                    Side::Second => (&second.must, j, i),
                };
                let new = || {
                    Along::new(if side == Side::First {
                        pairs.clone()
                    } else {
                        pairs.inverse()
                    })
                };
                self.common.along.entry((seq, side)).or_insert_with(new);
                any.push(self.along(gates, seq, (a, b), side, outer, end));
                middle.retain(|&k| match side {
                    Side::First => !first.must.has(i, k),
                    Side::Second => !second.must.has(k, j),
                });
            }
        }
        for k in middle {
            let x = self.cell(gates, a, i, k);
            let y = self.cell(gates, b, k, j);
            let there = self.executes(gates, k);
            any.push(gates.all([x, there, y]));
        }
        gates.any(any)
    }

    /// Whether a sequence leads from one event to another, along certain pairs on one side.
    fn along(
        &mut self,
        gates: &mut Gates,
        seq: NodeId,
        (a, b): (NodeId, NodeId),
        side: Side,
        outer: usize,
        end: usize,
    ) -> Lit {
        // From the event with the most of them inwards, to one that is known or has none inside,
        // and back.
        let mut way = vec![outer];
        let mut lit = Lit::FALSE;
        loop {
            let last = *way.last().expect("it starts with one");
            if let Some(&known) = self.common.memo.get(&(seq, side, last as u32, end as u32)) {
                lit = known;
                break;
            }
            match self
                .common
                .along
                .get_mut(&(seq, side))
                .expect("made by the caller")
                .inner(last)
            {
                Some(inner) => way.push(inner),
                None => break,
            }
        }
        let mut inside: Option<usize> = None;
        for event in way.into_iter().rev() {
            let key = (seq, side, event as u32, end as u32);
            if !self.common.memo.contains_key(&key) {
                let pairs = &self.common.along[&(seq, side)].pairs;
                let more: Vec<usize> = pairs
                    .successors(event)
                    .filter(|&k| inside.is_none_or(|inside| !pairs.has(inside, k)))
                    .collect();
                let mut any = vec![lit];
                for k in more {
                    let other = if side == Side::First {
                        self.cell(gates, b, k, end)
                    } else {
                        self.cell(gates, a, end, k)
                    };
                    let there = self.executes(gates, k);
                    any.push(gates.and(other, there));
                }
                lit = gates.any(any);
                self.common.memo.insert(key, lit);
            }
            inside = Some(event);
        }
        lit
    }
}
