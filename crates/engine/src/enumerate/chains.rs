//! Decides the order of read-modify-writes of one location, each one behind the previous one.
//!
//! Each operation finds the word that the previous one left. So the search takes a write with a
//! known value and decides which operation comes next. It does not take an operation and decide
//! which of all others it follows. Thus each decision makes a value known at once. An impossible
//! position, such as a wait before its phase is complete, fails at once.
//!
//! # Invariants
//! - The module assumes nothing about a model. It puts an operation behind all decided ones only if
//!   the axioms, or the query's flags, surely fail otherwise, by the bounds of this candidate. The
//!   same holds for the rule that no two operations read one write. Both then hold in every
//!   extension of the candidate.
//! - One of the ways to go on is that no candidate comes next. It ends if the remaining reads can
//!   only read their own results, and an axiom keeps values from depending on themselves. Under
//!   other models these reads are decided first.

use std::cmp::Reverse;

use super::candidate::{Chains, EventFacts, Next, PartialCandidate, SearchStop};
use super::prune::{CandidateBounds, put_before};
use super::search::CandidateSearch;
use crate::eval::Eval;
use crate::skeleton::EdgeKind;

impl CandidateSearch<'_, '_, '_> {
    /// Follows chains as far as they are known, and finds the operations that may come next.
    pub(super) fn follow(
        &mut self,
        partial: &PartialCandidate,
        chains: &mut Chains,
        seen: &EventFacts,
        eval: &mut Eval<'_>,
        bounds: &mut CandidateBounds,
    ) -> Result<Next, SearchStop> {
        let open: Vec<usize> = seen
            .algebra
            .may
            .iter()
            .filter(|&r| self.updates[r].is_some() && partial.is_open(r))
            .collect();
        if open.is_empty() {
            return Ok(Next::Any);
        }
        if !self.put_in_order(partial, chains, seen, bounds)? {
            return Ok(Next::Nothing);
        }
        let heads = self.heads(partial, chains, seen, eval, &open);
        let stuck = open.iter().copied().filter(|&r| {
            seen.is_sure(r)
                && chains.bars_any(r)
                && !heads.iter().any(|(w, _)| seen.at(*w) == seen.at(r))
        });
        let stuck: Vec<usize> = stuck.collect();
        if let Some(&r) = stuck
            .iter()
            .max_by_key(|&&r| (self.weight(seen.at(r)), Reverse(r)))
        {
            self.bar_taken(partial, chains, seen, bounds, &stuck)?;
            let ends = self.closed && self.goes_in_circle(partial, chains, seen, eval);
            return Ok(if ends { Next::Nothing } else { Next::Read(r) });
        }
        // Prefers a write whose possible successors all surely execute and are few.
        let head = heads
            .into_iter()
            .filter(|(_, readers)| readers.iter().any(|&r| seen.is_sure(r)))
            .max_by_key(|(w, readers): &(usize, Vec<usize>)| {
                (
                    self.weight(seen.at(*w)),
                    readers.iter().all(|&r| seen.is_sure(r)),
                    Reverse(readers.len()),
                    Reverse(*w),
                )
            });
        Ok(head.map_or(Next::Any, |(w, readers)| {
            Next::Of(
                w,
                readers.into_iter().filter(|&r| seen.is_sure(r)).collect(),
            )
        }))
    }

    /// The operations with a decided source: that source, and their own write.
    fn decided(&self, partial: &PartialCandidate) -> impl Iterator<Item = (usize, usize)> {
        partial
            .source
            .iter()
            .zip(&self.updates)
            .filter_map(|(&source, &own)| source.zip(own))
    }

    /// Orders the writes of operations as far as the axioms imply it: undecided operations come
    /// behind all decided ones. Returns false if the axioms surely fail.
    fn put_in_order(
        &mut self,
        partial: &PartialCandidate,
        chains: &mut Chains,
        seen: &EventFacts,
        bounds: &mut CandidateBounds,
    ) -> Result<bool, SearchStop> {
        let decided = self
            .decided(partial)
            .filter(|&(source, own)| seen.algebra.must.has(source) && seen.algebra.must.has(own));
        let mut decided: Vec<(usize, usize)> = decided.collect();
        // Begins with the first operation, because each step uses the previous ones.
        decided.sort_by_key(|&(_, own)| chains.ordered().filter(|pair| pair.1 == own).count());
        let mut pairs = Vec::new();
        for (source, own) in decided {
            pairs.push((source, own));
            let others = self
                .updates
                .iter()
                .flatten()
                .filter(|&&w| w != own && seen.at(w) == seen.at(own));
            pairs.extend(
                others
                    .filter(|&&w| seen.algebra.must.has(w))
                    .map(|&w| (own, w)),
            );
        }
        let mut found = false;
        for (a, b) in pairs {
            if chains.is_tested(a, b) {
                continue;
            }
            if self.stands_before(bounds, a, b)? {
                chains.put_before(a, b);
                put_before(
                    &mut bounds.free[self.facts.task.model.finals.0 as usize],
                    a,
                    b,
                );
                found = true;
            } else {
                chains.keep_open(a, b);
            }
        }
        Ok(!found || self.is_plausible(bounds)?)
    }

    /// Bars reads from the sources of other operations, where the axioms imply it. It skips
    /// operations with a conditional write: too little about them is known before their source is
    /// decided.
    fn bar_taken(
        &mut self,
        partial: &PartialCandidate,
        chains: &mut Chains,
        seen: &EventFacts,
        bounds: &CandidateBounds,
        reads: &[usize],
    ) -> Result<(), SearchStop> {
        let mut taken: Vec<usize> = self.decided(partial).map(|(source, _)| source).collect();
        taken.sort_unstable();
        taken.dedup();
        for &r in reads {
            if !self.updates[r].is_some_and(|own| seen.algebra.must.has(own)) {
                continue;
            }
            for &w in &taken {
                if self.may_read(chains, seen, r, w) && !self.may_also_read(bounds, r, w)? {
                    chains.bar(r, w);
                }
            }
        }
        Ok(())
    }

    /// The writes with a known value that no operation reads from yet, each with the operations
    /// that may come next. Only the first operation of each thread at the location counts.
    fn heads(
        &self,
        partial: &PartialCandidate,
        chains: &Chains,
        seen: &EventFacts,
        eval: &mut Eval<'_>,
        open: &[usize],
    ) -> Vec<(usize, Vec<usize>)> {
        let sk = &self.facts.sk;
        let mut ends = seen.algebra.must.clone();
        for (r, own) in self.updates.iter().enumerate() {
            let Some(own) = own else { continue };
            match partial.source[r] {
                Some(w) => ends.remove(w),
                None => ends.remove(*own),
            }
        }
        let first = |&r: &usize| {
            !open.iter().any(|&o| {
                seen.at(o).is_some() && seen.at(o) == seen.at(r) && sk.program_order().has(o, r)
            })
        };
        let first: Vec<usize> = open.iter().copied().filter(first).collect();
        let ends: Vec<usize> = ends
            .iter()
            .filter(|&w| sk.events[w].is_write() && seen.at(w).is_some())
            .filter(|&w| eval.value(w).is_some())
            .collect();
        let heads = ends.into_iter().map(|w| {
            let may = first
                .iter()
                .copied()
                .filter(|&r| self.may_read(chains, seen, r, w));
            (w, may.collect::<Vec<usize>>())
        });
        heads.filter(|(_, readers)| !readers.is_empty()).collect()
    }

    /// Whether two writes must be ordered, and the axioms surely fail in the reverse order.
    fn stands_before(
        &mut self,
        bounds: &CandidateBounds,
        a: usize,
        b: usize,
    ) -> Result<bool, SearchStop> {
        let model = self.facts.task.model;
        let order = model.finals.0 as usize;
        let covering = model.free[order]
            .covering
            .and_then(|c| bounds.known.values[c.index()].as_deref());
        if !covering.is_some_and(|c| c.rel().must.has(a, b) || c.rel().must.has(b, a)) {
            return Ok(false);
        }
        if !bounds.free[order].may.has(b, a) {
            return Ok(true);
        }
        self.tick()?;
        let mut other = bounds.clone();
        put_before(&mut other.free[order], b, a);
        Ok(!self.is_plausible(&other)?)
    }

    /// Whether no axiom surely fails if a read takes its value from a write.
    fn may_also_read(
        &mut self,
        bounds: &CandidateBounds,
        r: usize,
        w: usize,
    ) -> Result<bool, SearchStop> {
        self.tick()?;
        let mut with = bounds.clone();
        let reads_from = &mut with.free[self.facts.task.model.values.0 as usize];
        let others: Vec<usize> = (0..self.updates.len())
            .filter(|&v| v != w && reads_from.may.has(v, r))
            .collect();
        others.into_iter().for_each(|v| reads_from.may.remove(v, r));
        reads_from.must.insert(w, r);
        self.is_plausible(&with)
    }

    /// Whether the remaining reads can only read results of their own group. Every read has a
    /// source, because its location is known.
    fn goes_in_circle(
        &self,
        partial: &PartialCandidate,
        chains: &Chains,
        seen: &EventFacts,
        eval: &mut Eval<'_>,
    ) -> bool {
        let sk = &self.facts.sk;
        let mut circle = seen.algebra.must.clone();
        seen.algebra
            .must
            .iter()
            .filter(|&r| !(sk.events[r].is_read() && seen.at(r).is_some() && partial.is_open(r)))
            .for_each(|r| circle.remove(r));
        let data = sk.edges.of(EdgeKind::Data);
        let fed = data
            .iter()
            .filter(|&&(.., cond)| eval.cond(cond) == Some(true));
        let fed: Vec<(usize, usize)> = fed.map(|(r, w, _)| (r.index(), w.index())).collect();
        let writes: Vec<usize> = seen
            .algebra
            .may
            .iter()
            .filter(|&w| sk.events[w].is_write())
            .collect();
        loop {
            let inside = |w: usize| fed.iter().any(|&(r, of)| of == w && circle.has(r));
            let outside: Vec<usize> = circle
                .iter()
                .filter(|&r| {
                    writes
                        .iter()
                        .any(|&w| !inside(w) && self.may_read(chains, seen, r, w))
                })
                .collect();
            if outside.is_empty() {
                return !circle.is_empty();
            }
            outside.into_iter().for_each(|r| circle.remove(r));
        }
    }
}
