//! Changes a program and decides it again: the one search for few changes that turn an answer.
//!
//! A setting gives every [`Knob`] a level. The search decides its program anew and concludes
//! nothing from single executions. It tries one knob, then two, then all together. It then turns a
//! setting that helps down, knob by knob, as long as it still helps.
//!
//! # Invariants
//! - The search decided that its result helps. In a lowered setting, no knob could be turned down
//!   alone at its turn; in the [`least`](Search::least) one, none can at all.
//! - The result depends on the program and the model alone. If time runs out, there is none.
//!
//! # Sources
//! - Minimal sets by deletion: as for unsatisfiable cores.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use program::litmus::LitmusTest;
use verdict::Reason;

use crate::knobs::{Changes, Knob, Version, Written};

/// By knob, its level.
pub(crate) type Setting = Vec<usize>;

/// The reason why a search ended early.
pub(crate) struct GivenUp(pub(crate) Reason);

/// The number of knobs among which pairs are tried.
const PAIRED: usize = 16;

/// A search among the versions of a test.
pub(crate) struct Search<'s, D> {
    test: &'s LitmusTest,
    pub(crate) knobs: Vec<Knob>,
    /// Decides within a time whether changes help.
    decides: D,
    known: HashMap<Setting, bool>,
    /// Whether the written test helps.
    written: bool,
    /// The number of versions to decide.
    most: usize,
    deadline: Option<Instant>,
    /// Whether an undecided version counts as one that does not help.
    lenient: bool,
    /// The reason why a version that might have helped was not decided.
    pub(crate) open: Option<Reason>,
}

/// Decides changes by the changed test; a text that the front end refuses does not help.
pub(crate) fn of_test(
    test: &LitmusTest,
    mut decides: impl FnMut(&LitmusTest, Option<Duration>) -> Result<bool, GivenUp>,
) -> impl FnMut(&Changes, Option<Duration>) -> Result<bool, GivenUp> {
    move |changes, left| {
        changes
            .of(test)
            .map_or(Ok(false), |version| decides(&version.test, left))
    }
}

impl<'s, D: FnMut(&Changes, Option<Duration>) -> Result<bool, GivenUp>> Search<'s, D> {
    pub(crate) fn new(
        test: &'s LitmusTest,
        knobs: Vec<Knob>,
        written: bool,
        most: usize,
        deadline: Option<Instant>,
        decides: D,
    ) -> Self {
        let mut search = Search {
            test,
            knobs: Vec::new(),
            decides,
            known: HashMap::new(),
            written,
            most,
            deadline,
            lenient: false,
            open: None,
        };
        search.add(knobs);
        search
    }

    /// Goes on past undecided versions, since another one may help. The search then never claims
    /// that none does.
    pub(crate) fn past_undecided(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Adds knobs, as the last ones.
    pub(crate) fn add(&mut self, knobs: Vec<Knob>) {
        self.knobs.extend(knobs);
        self.known = HashMap::from([(self.setting(Knob::written), self.written)]);
    }

    /// Forgets all decisions: from now on the search asks another question.
    pub(crate) fn forget(&mut self) {
        self.add(Vec::new());
    }

    /// The number of versions decided since knobs were added.
    pub(crate) fn decided(&self) -> usize {
        self.known.len()
    }

    /// All knobs at their strongest level, except those that are tried alone.
    pub(crate) fn top(&self) -> Setting {
        self.setting(|knob| if knob.is_alone() { 0 } else { knob.top() })
    }

    fn setting(&self, level: impl Fn(&Knob) -> usize) -> Setting {
        self.knobs.iter().map(level).collect()
    }

    /// The knobs that are turned up, with their levels.
    pub(crate) fn turned(&self, setting: &Setting) -> impl Iterator<Item = (&Knob, usize)> {
        let turned = self
            .knobs
            .iter()
            .zip(setting.clone())
            .filter(|(_, level)| *level > 0);
        let mut turned: Vec<(&Knob, usize)> = turned.collect();
        // Fences in front of one instruction: a later one goes before those put there earlier.
        for i in 0..turned.len() {
            for j in i + 1..turned.len() {
                let (first, second) = (turned[i], turned[j]);
                let site = first.0.fence_site(first.1);
                if site.is_some() && site == second.0.fence_site(second.1) {
                    turned.swap(i, j);
                }
            }
        }
        turned.into_iter()
    }

    /// The test with its knobs at a setting; `None` if no text means it.
    pub(crate) fn version(&self, setting: &Setting) -> Option<Version> {
        self.changes(setting).of(self.test)
    }

    /// The changes of a setting.
    pub(crate) fn changes(&self, setting: &Setting) -> Changes {
        let mut changes = Changes::default();
        for (knob, &level) in self.knobs.iter().zip(setting) {
            changes.edits.extend(knob.edits(level));
            changes.splices.extend_from_slice(knob.splices(level));
        }
        changes
    }

    /// Whether a setting helps.
    pub(crate) fn helps(&mut self, setting: &Setting) -> Result<bool, GivenUp> {
        if let Some(&known) = self.known.get(setting) {
            return Ok(known);
        }
        let left = self
            .deadline
            .map(|d| d.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(GivenUp(Reason::Time));
        }
        if self.known.len() > self.most {
            return Err(GivenUp(Reason::TooManyChanges));
        }
        let changes = self.changes(setting);
        let helps = match (self.decides)(&changes, left) {
            Err(GivenUp(reason)) if self.lenient && reason != Reason::Time => {
                self.open = Some(reason);
                false
            }
            helps => helps?,
        };
        self.known.insert(setting.clone(), helps);
        Ok(helps)
    }

    /// The first setting that helps.
    pub(crate) fn first_of(
        &mut self,
        settings: impl IntoIterator<Item = Setting>,
    ) -> Result<Option<Setting>, GivenUp> {
        for setting in settings {
            if self.helps(&setting)? {
                return Ok(Some(setting));
            }
        }
        Ok(None)
    }

    /// A setting that helps: of one knob, of two, or of all. `None` if none of these does.
    pub(crate) fn one_two_or_all(&mut self) -> Result<Option<Setting>, GivenUp> {
        let all: Vec<usize> = (0..self.knobs.len()).collect();
        self.one_two_or_all_of(&all)
    }

    /// The same among some of the knobs.
    pub(crate) fn one_two_or_all_of(
        &mut self,
        among: &[usize],
    ) -> Result<Option<Setting>, GivenUp> {
        let top = self.setting(Knob::top);
        let of = |few: &[usize]| {
            (0..top.len())
                .map(|i| if few.contains(&i) { top[i] } else { 0 })
                .collect()
        };
        let (alone, together): (Vec<usize>, Vec<usize>) =
            among.iter().partition(|&&i| self.knobs[i].is_alone());
        let all: Setting = of(&together);
        let alone = alone.iter().map(|&i| of(&[i]));
        // If all together do not help, fewer do not; but if that is undecided, they may.
        let before = self.open.take();
        let none = together.is_empty() || (!self.helps(&all)? && self.open.is_none());
        self.open = self.open.take().or(before);
        if none {
            return self.first_of(alone);
        }
        let paired = &together[..together.len().min(PAIRED)];
        let pairs = paired
            .iter()
            .enumerate()
            .flat_map(|(n, &i)| paired[n + 1..].iter().map(move |&j| of(&[i, j])));
        // A wider scope need not help where a narrower one does: some models want equal ones.
        let least = |i: usize| {
            if self.knobs[i].kind() == Written::Scope {
                1.min(top[i])
            } else {
                top[i]
            }
        };
        let levels = together
            .iter()
            .flat_map(|&i| (least(i)..=top[i]).rev().map(move |level| (i, level)));
        let ones: Vec<Setting> = levels
            .map(|(i, level)| {
                let mut setting = of(&[i]);
                setting[i] = level;
                setting
            })
            .collect();
        let ones = ones.into_iter().chain(alone);
        self.first_of(ones.chain(pairs).chain([all.clone()]))
    }

    /// Pairs of two knobs of the kind that helps alone, and of such a knob and an added statement.
    pub(crate) fn pairs_alone(&self) -> Vec<Setting> {
        let (alone, others): (Vec<usize>, Vec<usize>) =
            (0..self.knobs.len()).partition(|i| self.knobs[*i].is_alone());
        let others: Vec<usize> = others
            .into_iter()
            .filter(|i| self.knobs[*i].kind() == Written::More)
            .take(PAIRED)
            .collect();
        let alone = &alone[..alone.len().min(PAIRED)];
        let mut pairs = Vec::new();
        for (n, &i) in alone.iter().enumerate() {
            for &j in others.iter().chain(&alone[n + 1..]) {
                let mut pair = vec![0; self.knobs.len()];
                (pair[i], pair[j]) = (self.knobs[i].top(), self.knobs[j].top());
                pairs.push(pair);
            }
        }
        pairs
    }

    /// Turns every knob down, in this order, as long as the setting still helps.
    pub(crate) fn lowered(
        &mut self,
        mut setting: Setting,
        order: impl Iterator<Item = usize>,
    ) -> Result<Setting, GivenUp> {
        for i in order {
            for level in 0..setting[i] {
                let mut lower = setting.clone();
                lower[i] = level;
                if self.helps(&lower)? {
                    setting = lower;
                    break;
                }
            }
        }
        Ok(setting)
    }

    /// The same for the first `first` knobs, until none of them can be turned down alone: less of
    /// one may be made up for by more of another.
    pub(crate) fn least(&mut self, mut setting: Setting, first: usize) -> Result<Setting, GivenUp> {
        loop {
            let lower = self.lowered(setting.clone(), 0..first)?;
            if lower == setting {
                return Ok(setting);
            }
            setting = lower;
        }
    }
}
