//! Shares gates between cells of a sequence whose middle events overlap.
//!
//! In program order, an event precedes everything that the next event precedes. So `po ; r` for an
//! event is `po ; r` for the next event, plus one cell of `r`. Without sharing, each such cell
//! would need a gate with as many operands as there are later events.

use rustc_hash::FxHashMap;

use super::{Circuit, CircuitLeaves};
use crate::algebra::gates::{Gates, Lit};
use crate::model::ir::NodeId;
use crate::rel::Rel;

/// The least number of certain pairs for which sharing starts.
const SHARED: usize = 4;

/// The two sides of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SequenceSide {
    First,
    Second,
}

/// A sequence node with its two operands.
#[derive(Clone, Copy)]
pub(super) struct SequenceNode {
    pub(super) seq: NodeId,
    pub(super) a: NodeId,
    pub(super) b: NodeId,
}

/// The cells of sequences built so far.
#[derive(Default)]
pub(super) struct Common {
    /// By sequence and side: the certain pairs of that side, seen from the outer event.
    along: FxHashMap<(NodeId, SequenceSide), CertainPairs>,
    /// By sequence, side, outer event of that side, and event at the other end.
    memo: FxHashMap<(NodeId, SequenceSide, u32, u32), Lit>,
}

struct CertainPairs {
    pairs: Rel,
    sizes: Vec<u32>,
    /// By event, once computed: another event whose pairs are a subset of this event's.
    inner: Vec<Option<Option<u32>>>,
}

impl CertainPairs {
    fn new(pairs: Rel) -> Self {
        let n = pairs.universe_len();
        CertainPairs {
            sizes: (0..n)
                .map(|e| pairs.row(e).iter().map(|word| word.count_ones()).sum())
                .collect(),
            inner: vec![None; n],
            pairs,
        }
    }

    /// The event with the most pairs among those whose pairs are a subset of `e`'s. Among events
    /// with equal pairs, only smaller ones count.
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
    /// An open cell of a sequence.
    pub(super) fn sequence(
        &mut self,
        gates: &mut Gates,
        sequence: SequenceNode,
        i: usize,
        j: usize,
    ) -> Lit {
        let SequenceNode { seq, a, b } = sequence;
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
            let certain = [SequenceSide::First, SequenceSide::Second].map(|side| {
                (
                    middle
                        .iter()
                        .filter(|&&k| match side {
                            SequenceSide::First => first.must.has(i, k),
                            SequenceSide::Second => second.must.has(k, j),
                        })
                        .count(),
                    side,
                )
            });
            let (count, side) = if certain[0].0 >= certain[1].0 {
                certain[0]
            } else {
                certain[1]
            };
            if count >= SHARED {
                let (pairs, outer, end) = match side {
                    SequenceSide::First => (&first.must, i, j),
                    SequenceSide::Second => (&second.must, j, i),
                };
                self.common.along.entry((seq, side)).or_insert_with(|| {
                    CertainPairs::new(if side == SequenceSide::First {
                        pairs.clone()
                    } else {
                        pairs.inverse()
                    })
                });
                any.push(self.along(gates, sequence, side, outer, end));
                middle.retain(|&k| match side {
                    SequenceSide::First => !first.must.has(i, k),
                    SequenceSide::Second => !second.must.has(k, j),
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

    /// Whether a sequence relates two events through the certain pairs of one side.
    fn along(
        &mut self,
        gates: &mut Gates,
        sequence: SequenceNode,
        side: SequenceSide,
        outer: usize,
        end: usize,
    ) -> Lit {
        let SequenceNode { seq, a, b } = sequence;
        // Follows `inner` from the outer event to one that is known or has none, then builds the
        // cells on the way back.
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
                    let other = if side == SequenceSide::First {
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
