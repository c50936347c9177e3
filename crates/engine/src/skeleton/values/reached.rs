//! Decides whether a guard can hold, by the values that are listed so far.
//!
//! Threads often write only if they read what others write: then some writes wait for each other,
//! and none of them ever executes. If the listing let such writes hand on their values, engines
//! would try all their combinations.
//!
//! # Why nothing is lost
//! - Some axiom makes every cycle of `rf` with dependencies impossible, or with program order
//!   ([`crate::thin_air`]). An event depends on the reads in its guard, like on those in its value.
//!   So the events of a consistent execution have an order in which each comes behind the sources
//!   of the reads that its guard and its values need.
//! - By induction in that order, each read returns a listed value, and each guard that holds in the
//!   execution can hold by listed values. So the write counts before its first reader does.
//! - A condition can hold if some path of its decision diagram leads to *true*, and each comparison
//!   on it has the wanted result for some listed values of its two sides. This admits more than
//!   executions do: values of different comparisons may exclude each other. Choices go both ways.

use rustc_hash::FxHashSet;

use super::images::{Image, MAX_VALUES, Values, together};
use crate::skeleton::pool::{Cond, CondAtom, TermId, TermPool};
use cat::rel::EventId;
use program::{CmpOp, Ty};

/// Guards over values that are listed so far.
pub(super) struct ListedGuards<'x> {
    pub(super) pool: &'x TermPool,
    /// By term: its image.
    pub(super) images: &'x [Image],
    /// By event: the values of a read; `None` means any.
    pub(super) of_read: &'x [Option<Values>],
}

impl ListedGuards<'_> {
    /// Whether a condition can hold.
    pub(super) fn may_hold(&self, cond: Cond) -> bool {
        let mut open = vec![cond];
        let mut seen: FxHashSet<Cond> = FxHashSet::default();
        while let Some(cond) = open.pop() {
            let Some((atom, low, high)) = self.pool.decision(cond) else {
                if cond == Cond::TRUE {
                    return true;
                }
                continue;
            };
            if !seen.insert(cond) {
                continue;
            }
            let [may_fail, may_succeed] = match self.pool.atom(atom) {
                CondAtom::Choice(_) => [true; 2],
                CondAtom::Eq(ty, a, b) => self.results(CmpOp::Eq, ty, a, b),
                CondAtom::Lt(ty, a, b) => self.results(CmpOp::Lt, ty, a, b),
            };
            open.extend(
                [(may_fail, low), (may_succeed, high)]
                    .into_iter()
                    .filter_map(|(may, next)| may.then_some(next)),
            );
        }
        false
    }

    /// Whether a comparison can fail, and whether it can succeed.
    fn results(&self, op: CmpOp, ty: Ty, a: TermId, b: TermId) -> [bool; 2] {
        let images = [a, b].map(|t| &self.images[TermPool::term_index(t)]);
        let sizes = |e: EventId| self.of_read[e.index()].as_ref().map_or(0, Vec::len);
        let of = |truths: &mut dyn Iterator<Item = bool>| {
            let mut results = [false; 2];
            for truth in truths {
                results[usize::from(truth)] = true;
                if results == [true; 2] {
                    break;
                }
            }
            results
        };
        if let Some((_, truths)) = together(&sizes, &images, |row| op.holds(ty, row[0], row[1])) {
            return of(&mut truths.into_iter());
        }
        let [
            Image::Of(_, xs) | Image::Any(xs),
            Image::Of(_, ys) | Image::Any(ys),
        ] = images
        else {
            return [true; 2];
        };
        if xs.len().saturating_mul(ys.len()) > MAX_VALUES * 4 {
            return [true; 2];
        }
        let pairs = xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y)));
        of(&mut pairs.map(|pair: (i64, i64)| op.holds(ty, pair.0, pair.1)))
    }
}
