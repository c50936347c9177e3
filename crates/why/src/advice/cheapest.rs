//! Finds the cheapest setting that holds, among choices that are partial orders.
//!
//! Known settings answer for their neighbours: everything above a setting that holds, holds;
//! everything below a failure fails. Branch and bound proposes the cheapest setting that is below
//! no failure. If it holds, nothing cheaper does. If it fails, the search raises it until no single
//! choice can rise without success; this larger failure is then known.
//!
//! # Invariants
//! - The search decided that its result holds, and that it fails with any single choice one step
//!   weaker.
//! - "Nothing is cheaper" assumes that a stronger setting holds whenever a weaker one does.
//!
//! # Sources
//! - Minimal hitting sets: as in the search for minimal corrections of unsatisfiable formulas.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use verdict::Reason;

use super::choice::Choice;
use crate::knobs::Changes;
use crate::search::{GivenUp, Search, Setting};

/// The largest number of parts of the space that one answer looks at.
const PARTS: usize = 400_000;

/// Settings of some choices, and the answers that the search has about them.
pub(super) struct Space<'s, D> {
    pub(super) choices: &'s [Choice],
    /// By choice and option: the options that are no stronger, as bits.
    below: Vec<Vec<u64>>,
    pub(super) search: Search<'s, D>,
    holds: Vec<Setting>,
    fails: Vec<Setting>,
}

impl<'s, D: FnMut(&Changes, Option<Duration>) -> Result<bool, GivenUp>> Space<'s, D> {
    pub(super) fn new(choices: &'s [Choice], search: Search<'s, D>) -> Self {
        fn below(choice: &Choice) -> Vec<u64> {
            let options = 0..choice.costs.len();
            let bits = |b: usize| {
                options
                    .clone()
                    .filter(|a| choice.up_to(*a, b))
                    .map(|a| 1 << a)
                    .sum()
            };
            options.clone().map(bits).collect()
        }
        let below = choices.iter().map(below).collect();
        Space {
            choices,
            below,
            search,
            holds: Vec::new(),
            fails: Vec::new(),
        }
    }

    /// The setting as written.
    pub(super) fn written(&self) -> Setting {
        self.choices
            .iter()
            .map(|choice| choice.knob.written())
            .collect()
    }

    /// All options, as bits.
    pub(super) fn everything(&self) -> Vec<u64> {
        self.choices
            .iter()
            .map(|choice| u64::MAX >> (64 - choice.costs.len()))
            .collect()
    }

    /// The options that are no weaker than the written ones, as bits.
    pub(super) fn no_weaker(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for (below, choice) in self.below.iter().zip(self.choices) {
            let written = choice.knob.written();
            let options = (0..below.len()).filter(|o| below[*o] >> written & 1 == 1);
            all.push(options.map(|o| 1 << o).sum());
        }
        all
    }

    /// The cost of a setting's options.
    pub(super) fn cost(&self, setting: &Setting) -> u64 {
        self.choices
            .iter()
            .zip(setting)
            .map(|(choice, option)| choice.costs[*option])
            .sum()
    }

    /// The options that are not as strong as one.
    pub(super) fn not_above(&self, k: usize, option: usize) -> u64 {
        (0..self.below[k].len())
            .filter(|o| self.below[k][*o] >> option & 1 == 0)
            .map(|o| 1 << o)
            .sum()
    }

    /// The options that are one step weaker than one, and cost no more.
    pub(super) fn weaker(&self, k: usize, option: usize) -> Vec<usize> {
        let (below, costs) = (&self.below[k], &self.choices[k].costs);
        let is_weaker =
            |o: &usize, than: usize| below[than] >> *o & 1 == 1 && below[*o] >> than & 1 == 0;
        let weaker: Vec<usize> = (0..below.len()).filter(|o| is_weaker(o, option)).collect();
        let steps = weaker
            .iter()
            .filter(|o| !weaker.iter().any(|between| is_weaker(o, *between)));
        steps
            .copied()
            .filter(|o| costs[*o] <= costs[option])
            .collect()
    }

    fn up_to(&self, a: &Setting, b: &Setting) -> bool {
        (0..a.len()).all(|k| self.below[k][b[k]] >> a[k] & 1 == 1)
    }

    /// Whether a setting holds: known already, or decided now.
    fn decided(&mut self, setting: &Setting) -> Result<bool, GivenUp> {
        if self.holds.iter().any(|h| self.up_to(h, setting)) {
            return Ok(true);
        }
        if self.fails.iter().any(|f| self.up_to(setting, f)) {
            return Ok(false);
        }
        let holds = self.search.helps(setting)?;
        if holds {
            let held = std::mem::take(&mut self.holds);
            self.holds = held
                .into_iter()
                .filter(|h| !self.up_to(setting, h))
                .collect();
            self.holds.push(setting.clone());
        }
        Ok(holds)
    }

    /// Raises a failing setting as long as it still fails.
    fn raised(&mut self, mut setting: Setting) -> Result<Setting, GivenUp> {
        for k in 0..setting.len() {
            let own = setting[k];
            let mut above: Vec<usize> = (0..self.below[k].len())
                .filter(|o| *o != own && self.below[k][*o] >> own & 1 == 1)
                .collect();
            above.sort_by_key(|o| {
                Reverse((self.below[k][*o].count_ones(), self.choices[k].costs[*o]))
            });
            for option in above {
                let mut higher = setting.clone();
                higher[k] = option;
                if !self.decided(&higher)? {
                    setting = higher;
                    break;
                }
            }
        }
        Ok(setting)
    }

    /// Notes a failing setting.
    fn failed(&mut self, setting: Setting) -> Result<(), GivenUp> {
        let raised = self.raised(setting)?;
        let failed = std::mem::take(&mut self.fails);
        self.fails = failed
            .into_iter()
            .filter(|f| !self.up_to(f, &raised))
            .collect();
        self.fails.push(raised);
        Ok(())
    }

    /// The cheapest remaining option of each choice; among equally cheap ones, the written one.
    fn pick(&self, allowed: &[u64]) -> Setting {
        let mut setting = Setting::new();
        for (choice, bits) in self.choices.iter().zip(allowed) {
            let written = choice.knob.written();
            let left = (0..choice.costs.len()).filter(|o| bits >> o & 1 == 1);
            let cheapest = left.min_by_key(|o| (choice.costs[*o], *o != written, *o));
            setting.push(cheapest.unwrap_or(written));
        }
        setting
    }

    /// The strongest remaining options, if each choice has one that is stronger than all others.
    fn strongest(&self, allowed: &[u64]) -> Option<Setting> {
        let mut setting = Setting::new();
        for (below, bits) in self.below.iter().zip(allowed) {
            setting
                .push((0..below.len()).find(|o| bits >> o & 1 == 1 && below[*o] & bits == *bits)?);
        }
        Some(setting)
    }

    /// The cheapest setting that holds among some options; `None` if none does.
    pub(super) fn cheapest(&mut self, allowed: Vec<u64>) -> Result<Option<Setting>, GivenUp> {
        if allowed.contains(&0) {
            return Ok(None);
        }
        if let Some(top) = self.strongest(&allowed)
            && !self.decided(&top)?
        {
            self.failed(top)?;
        }
        let among = allowed.clone();
        let first = self.pick(&allowed);
        let mut parts = BinaryHeap::from([Reverse((self.cost(&first), allowed))]);
        let mut looked = 0;
        while let Some(Reverse((cost, mut allowed))) = parts.pop() {
            looked += 1;
            if looked > PARTS {
                return Err(GivenUp(Reason::TooManyChanges));
            }
            let pick = self.pick(&allowed);
            if let Some(failure) = self.fails.iter().find(|f| self.up_to(&pick, f)).cloned() {
                // A setting that holds is above the failure in some choice: take the first such
                // choice.
                for k in 0..pick.len() {
                    let below = self.below[k][failure[k]];
                    if allowed[k] & !below != 0 {
                        let mut part = allowed.clone();
                        part[k] &= !below;
                        parts.push(Reverse((self.cost(&self.pick(&part)), part)));
                    }
                    allowed[k] &= below;
                    if allowed[k] == 0 {
                        break;
                    }
                }
                continue;
            }
            // The decision counts, not what weaker settings suggest.
            if self.search.helps(&pick)? {
                return self.lowered(pick, &among).map(Some);
            }
            self.failed(pick)?;
            parts.push(Reverse((cost, allowed)));
        }
        Ok(None)
    }

    /// Weakens single choices among some options as long as the setting holds. The search decides
    /// each step, even if it knows the answer for stronger settings.
    fn lowered(&mut self, mut setting: Setting, among: &[u64]) -> Result<Setting, GivenUp> {
        let mut k = 0;
        while k < setting.len() {
            let lower = |option| {
                let mut lower = setting.clone();
                lower[k] = option;
                lower
            };
            let weaker: Vec<Setting> = self
                .weaker(k, setting[k])
                .into_iter()
                .filter(|o| among[k] >> o & 1 == 1)
                .map(lower)
                .collect();
            match self.search.first_of(weaker)? {
                Some(lower) => (setting, k) = (lower, 0),
                None => k += 1,
            }
        }
        Ok(setting)
    }
}
