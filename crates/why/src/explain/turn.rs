//! What a forbidden outcome rests on, and what an allowed one lacks: the program is changed, and decided anew.
//!
//! # Invariants
//! - Every program that the results speak of was decided by the engine of the session; nothing is concluded from one
//!   execution.
//! - Which changes are found depends on the program and the model alone, unless time runs out; then there are none.

use std::collections::HashMap;
use std::time::Instant;

use super::knobs::{self, Knob};
use crate::Session;
use crate::repair::knobs::Spot;
use crate::search::{Decides, GivenUp, Setting, lowered, one_two_or_all};
use program::edits::Edit;
use program::litmus::LitmusTest;
use verdict::{Need, Needs, Verdict};

/// At most so many programs are decided for one explanation.
const DECISIONS: usize = 400;

/// Programs with some knobs turned, and whether they have the outcome.
pub(crate) struct Versions<'s, 'a> {
    session: &'s Session<'a>,
    negate: bool,
    knobs: Vec<Knob>,
    known: HashMap<Setting, bool>,
    deadline: Option<Instant>,
}

impl<'s, 'a> Versions<'s, 'a> {
    fn new(session: &'s Session<'a>, negate: bool, knobs: Vec<Knob>, deadline: Option<Instant>) -> Self {
        Versions { session, negate, knobs, known: HashMap::new(), deadline }
    }

    fn top(&self) -> Setting {
        self.knobs.iter().map(Knob::top).collect()
    }
}

impl Decides for Versions<'_, '_> {
    /// Whether the outcome is forbidden.
    fn decide(&mut self, setting: &Setting) -> Result<bool, GivenUp> {
        if let Some(&known) = self.known.get(setting) {
            return Ok(known);
        }
        let left = self.deadline.map(|d| d.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(GivenUp(engine::query::TIMED_OUT.into()));
        }
        if self.known.len() >= DECISIONS {
            return Err(GivenUp("there are too many changes to try".into()));
        }
        let test = knobs::version(self.session.test(), &knobs::edits(&self.knobs, setting));
        let forbidden = match self.session.of(&test, left).reachability(None, self.negate).verdict {
            Verdict::Forbidden => true,
            Verdict::Allowed => false,
            Verdict::Undecided(reason) => return Err(GivenUp(reason)),
            other => return Err(GivenUp(format!("`{}` is no answer about an outcome", other.word()))),
        };
        self.known.insert(setting.clone(), forbidden);
        Ok(forbidden)
    }
}

/// What of its program a forbidden outcome rests on. `value` and `path` say what stores write, and which way branches go,
/// in an execution that has the outcome.
pub(crate) fn needs(
    session: &Session<'_>,
    negate: bool,
    value: &dyn Fn(Spot) -> Option<i64>,
    path: &dyn Fn(Spot) -> Option<bool>,
    deadline: Option<Instant>,
) -> Needs {
    let knobs = knobs::weaker(session.test(), session.model(), value, path);
    let mut versions = Versions::new(session, negate, knobs, deadline);
    let top = versions.top();
    match least(&mut versions, top.clone()) {
        Ok(setting) => {
            #[cfg(test)]
            session.claim(claims(&versions, &setting));
            let levels = || versions.knobs.iter().zip(&setting).zip(&top);
            let needed =
                levels().filter(|((_, at), _)| **at > 0).map(|((k, &at), _)| k.need(at, at - 1)).collect();
            let mut spare: Vec<Need> = levels()
                .filter(|((k, at), top)| at < top && k.may_be_spare)
                .map(|((k, &at), &top)| k.need(top, at))
                .collect();
            // What is not there, or weak, has no scope to speak of.
            let gone = |n: &Need| n.instead.is_empty() || n.instead == knobs::WEAK;
            let without: Vec<Need> = spare.iter().filter(|n| gone(n)).cloned().collect();
            spare.retain(|n| {
                gone(n) || !without.iter().any(|w| (&w.thread, w.line, &w.text) == (&n.thread, n.line, &n.text))
            });
            Needs { needed, spare, given_up: None }
        }
        Err(GivenUp(reason)) => Needs { needed: Vec::new(), spare: Vec::new(), given_up: Some(reason) },
    }
}

/// The setting, lowered until no knob can be turned down alone.
fn least(versions: &mut Versions<'_, '_>, mut setting: Setting) -> Result<Setting, GivenUp> {
    let order: Vec<usize> = (0..setting.len()).collect();
    loop {
        let lower = lowered(versions, setting.clone(), &order)?;
        if lower == setting {
            return Ok(setting);
        }
        setting = lower;
    }
}

/// Changes that forbid an allowed outcome: what they are, and the program that has them.
pub(crate) struct Forbidding {
    pub(crate) needs: Vec<Need>,
    pub(crate) edits: Vec<Edit>,
    pub(crate) test: LitmusTest,
}

/// Looks for the fewest changes that forbid an outcome.
///
/// # Errors
/// Why there are none.
pub(crate) fn forbidding(
    session: &Session<'_>,
    negate: bool,
    deadline: Option<Instant>,
) -> Result<Forbidding, String> {
    let mut versions = Versions::new(session, negate, knobs::stronger(session.test()), deadline);
    let top = versions.top();
    let found = one_two_or_all(&mut versions, &top).and_then(|found| match found {
        Some(setting) => least(&mut versions, setting).map(Some),
        None => Ok(None),
    });
    match found {
        Ok(Some(setting)) => {
            #[cfg(test)]
            session.claim(claims(&versions, &setting));
            let edits = knobs::edits(&versions.knobs, &setting);
            let turned = versions.knobs.iter().zip(&setting).filter(|(_, at)| **at > 0);
            let needs = turned.map(|(knob, &at)| knob.need(0, at)).collect();
            let test = knobs::version(session.test(), &edits);
            Ok(Forbidding { needs, edits, test })
        }
        Ok(None) => {
            Err("no wider scope, stronger order, added fence or other place of a thread forbids it".into())
        }
        Err(GivenUp(reason)) => Err(format!("what would forbid it was not found out: {reason}")),
    }
}

/// For the tests: the programs that a setting speaks of, and whether each forbids the outcome: the one of the setting does,
/// and none that has less in one place.
#[cfg(test)]
fn claims(versions: &Versions<'_, '_>, setting: &Setting) -> Vec<(LitmusTest, bool)> {
    let of = |setting: &Setting| knobs::version(versions.session.test(), &knobs::edits(&versions.knobs, setting));
    let less = (0..setting.len()).filter(|&i| setting[i] > 0).map(|i| {
        let mut lower = setting.clone();
        lower[i] -= 1;
        (of(&lower), false)
    });
    std::iter::once((of(setting), true)).chain(less).collect()
}
