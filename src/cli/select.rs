//! Which of the planned questions a run is about: `--filter`, `--partition`, `--rerun-failed`, all at once.
//!
//! # Invariants
//! - Each of them only takes away, so their order does not matter, and neither does that of the tests.

use super::args::SelectArgs;
use super::failed::Failed;
use super::filter::Filter;
use super::partition::Partition;
use super::plan::{Question, Unit};
use diag::Diagnostic;

/// What to keep.
#[derive(Clone, Default)]
pub(super) struct Selection {
    filter: Option<Filter>,
    partition: Option<Partition>,
    /// What failed in the last run.
    pub failed: Option<Failed>,
}

impl Selection {
    /// As the arguments say.
    pub(super) fn new(args: &SelectArgs) -> Result<Selection, Box<Diagnostic>> {
        let parse = |(origin, text): &(String, String)| Filter::parse(origin, text);
        let given = args.filter.as_ref().map(|text| ("--filter".to_owned(), text.clone()));
        let filter = given.as_ref().or(args.configured_filter.as_ref()).map(parse).transpose()?;
        Ok(Selection { filter, partition: args.partition, failed: None })
    }

    /// Whether everything is kept.
    pub(super) fn is_everything(&self) -> bool {
        self.filter.is_none() && self.partition.is_none() && self.failed.is_none()
    }

    /// Takes away the (test, model) pairs that are not wanted.
    pub(super) fn narrow(&self, units: &mut Vec<Unit<'_>>) {
        units.retain(|unit| {
            self.partition.is_none_or(|p| p.holds(unit.path, &unit.test.name, &unit.model.label))
                && match unit.questions.as_slice() {
                    [] => self.filter.as_ref().is_none_or(|f| f.admits(unit, None, None)),
                    questions => questions.iter().any(|question| self.asks(unit, question)),
                }
        });
    }

    /// Takes away single questions, too.
    pub(super) fn narrow_questions(&self, units: &mut Vec<Unit<'_>>) {
        for unit in units.iter_mut() {
            let mut questions = std::mem::take(&mut unit.questions);
            questions.retain(|question| self.asks(unit, question));
            unit.questions = questions;
        }
        units.retain(|unit| !unit.questions.is_empty());
        self.narrow(units);
    }

    fn asks(&self, unit: &Unit<'_>, question: &Question) -> bool {
        let failed =
            |failed: &Failed| failed.has(unit.path, &unit.test.name, &unit.model.label, &question.property);
        self.filter.as_ref().is_none_or(|f| f.admits(unit, Some(question), None))
            && self.failed.as_ref().is_none_or(failed)
    }

    /// Whether an answer is reported.
    pub(super) fn shows(&self, unit: &Unit<'_>, question: Option<&Question>, verdict: &str) -> bool {
        self.filter.as_ref().is_none_or(|f| f.admits(unit, question, Some(verdict)))
    }
}
