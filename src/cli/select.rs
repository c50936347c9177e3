//! Selects the planned questions of a run: `--filter`, `--changed`, `--partition`,
//! `--rerun-failed`, all at once.
//!
//! # Invariants
//! - Each of them only removes questions, so their order does not matter, nor does that of the
//!   tests.

use super::args::SelectArgs;
use super::cache::Keys;
use super::changed::Changed;
use super::digest::{hex, sha256};
use super::failed::FailureList;
use super::filter::Filter;
use super::partition::Partition;
use super::plan::{Question, Unit};
use super::settings::Settings;
use diag::Diagnostic;
use report::{AnswerLine, PartOf};

/// The questions to keep.
#[derive(Clone, Default)]
pub(super) struct Selection {
    filter: Option<Filter>,
    partition: Option<Partition>,
    changed: Option<Changed>,
    /// The failures of the last run.
    pub failed: Option<FailureList>,
    whole: Option<Whole>,
}

/// The whole run that this one is a part of.
#[derive(Clone)]
struct Whole {
    partition: Partition,
    here: usize,
    pairs: usize,
    digest: String,
}

impl Selection {
    /// From the arguments. Asks git for the files that changed.
    pub(super) fn new(args: &SelectArgs) -> Result<Selection, Box<Diagnostic>> {
        let given = args
            .filter
            .as_ref()
            .map(|text| ("--filter".to_owned(), text.clone()));
        let filter = given
            .as_ref()
            .or(args.configured_filter.as_ref())
            .map(|(origin, text)| Filter::parse(origin, text))
            .transpose()?;
        let changed = args.changed.as_deref().map(Changed::since).transpose()?;
        Ok(Selection {
            filter,
            partition: args.partition,
            changed,
            failed: None,
            whole: None,
        })
    }

    /// A changed file that any test may rest on: all tests are kept.
    pub(super) fn changed_for_all(&self) -> Option<&str> {
        self.changed.as_ref().and_then(Changed::for_all)
    }

    /// Whether everything is kept.
    pub(super) fn is_everything(&self) -> bool {
        self.filter.is_none()
            && self.partition.is_none()
            && self.changed.is_none()
            && self.failed.is_none()
    }

    /// Removes unwanted (test, model) pairs.
    pub(super) fn narrow(&self, units: &mut Vec<Unit<'_>>) {
        units.retain(|unit| {
            self.partition
                .is_none_or(|p| p.holds(unit.path, &unit.test.name, &unit.model.request))
                && self
                    .changed
                    .as_ref()
                    .is_none_or(|c| c.holds(&unit.source.file.name))
                && match unit.questions.as_slice() {
                    [] => self
                        .filter
                        .as_ref()
                        .is_none_or(|f| f.admits(unit, None, None)),
                    questions => questions.iter().any(|question| self.asks(unit, question)),
                }
        });
    }

    /// Removes single questions, too. For a part, notes the whole run.
    pub(super) fn narrow_questions(&mut self, units: &mut Vec<Unit<'_>>, settings: &Settings) {
        for unit in units.iter_mut() {
            let mut questions = std::mem::take(&mut unit.questions);
            questions.retain(|question| self.asks(unit, question));
            unit.questions = questions;
        }
        units.retain(|unit| !unit.questions.is_empty());
        self.keep_part(units, settings, "");
    }

    /// As [`Selection::narrow_questions`], for pairs that are run. `how` names the machine.
    pub(super) fn narrow_runs(
        &mut self,
        units: &mut Vec<Unit<'_>>,
        settings: &Settings,
        how: &str,
    ) {
        let partition = self.partition.take();
        self.narrow(units);
        self.partition = partition;
        self.keep_part(units, settings, how);
    }

    /// Removes the pairs of other parts, and notes the whole run.
    fn keep_part(&mut self, units: &mut Vec<Unit<'_>>, settings: &Settings, how: &str) {
        if let Some(partition) = self.partition {
            let (keys, mut all) = (Keys::default(), how.to_owned());
            for (place, unit) in units.iter_mut().enumerate() {
                unit.place = place;
                let key = keys.of(unit, settings, false);
                all += &format!(
                    "{}\0{}\0{}\0{key}\n",
                    unit.path, unit.test.name, unit.model.request
                );
            }
            let digest = hex(&sha256(all.as_bytes())[..16]);
            let pairs = units.len();
            self.narrow(units);
            self.whole = Some(Whole {
                partition,
                here: units.len(),
                pairs,
                digest,
            });
        } else {
            self.narrow(units);
        }
    }

    /// States the place of a pair's answers in the whole run.
    pub(super) fn mark(&self, unit: &Unit<'_>, answers: &mut [AnswerLine]) {
        let count = answers.len();
        for (answer, line) in answers.iter_mut().enumerate() {
            line.part = self.part(unit, answer, count);
        }
    }

    /// The place of one of a pair's answers in the whole run.
    pub(super) fn part(&self, unit: &Unit<'_>, answer: usize, answers: usize) -> Option<PartOf> {
        let Whole {
            partition,
            here,
            pairs,
            digest,
        } = self.whole.as_ref()?;
        Some(PartOf {
            number: partition.part,
            of: partition.parts,
            pair: unit.place,
            here: *here,
            pairs: *pairs,
            answer,
            answers,
            whole: digest.clone(),
        })
    }

    fn asks(&self, unit: &Unit<'_>, question: &Question) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|f| f.admits(unit, Some(question), None))
            && self.failed.as_ref().is_none_or(|failed| {
                failed.has(
                    unit.path,
                    &unit.test.name,
                    &unit.model.request,
                    &question.property(),
                )
            })
    }

    /// Whether an answer is reported.
    pub(super) fn shows(
        &self,
        unit: &Unit<'_>,
        question: Option<&Question>,
        verdict: &str,
    ) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|f| f.admits(unit, question, Some(verdict)))
    }
}
