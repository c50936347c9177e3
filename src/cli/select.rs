//! Which of the planned questions a run is about: `--filter`, `--partition`, `--rerun-failed`, all at once.
//!
//! # Invariants
//! - Each of them only takes away, so their order does not matter, and neither does that of the tests.
//! - The parts of a partition are disjoint, and together they are everything.

use super::args::SelectArgs;
use super::cache::sha256;
use super::failed::Failed;
use super::filter::Filter;
use super::plan::{Question, Unit};
use diag::Diagnostic;

/// `hash:M/N`: the M-th of N parts.
///
/// A (test, model) pair is in part `1 + h mod N`, where `h` is the number that the first eight bytes of
/// SHA-256(`path NUL test NUL model`) are, the highest byte first. So the part of a pair depends on nothing else, and any
/// tool can compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    part: u64,
    parts: u64,
}

impl Partition {
    /// Reads `hash:M/N`; the error says what is accepted.
    pub fn parse(text: &str) -> Result<Partition, String> {
        let help = "expected hash:M/N, as in hash:1/4 for the first of four parts";
        let (part, parts) = text.strip_prefix("hash:").and_then(|t| t.split_once('/')).ok_or(help)?;
        let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| help.to_owned()),
            false => Err(help.to_owned()),
        };
        let (part, parts) = (number(part)?, number(parts)?);
        if part == 0 || part > parts {
            return Err(format!("there is no part {part} of {parts}; {help}"));
        }
        Ok(Partition { part, parts })
    }

    fn holds(self, path: &str, test: &str, model: &str) -> bool {
        let hash = sha256(format!("{path}\0{test}\0{model}").as_bytes());
        let number = hash[..8].iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        number % self.parts == self.part - 1
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_in_one_part() {
        for parts in [1, 2, 3, 7] {
            let mut sizes = vec![0; parts];
            for test in 0..500 {
                let name = format!("T{test}");
                let of: Vec<_> = (1..=parts)
                    .filter(|m| {
                        Partition::parse(&format!("hash:{m}/{parts}")).unwrap().holds("a.toml", &name, "ptx")
                    })
                    .collect();
                assert_eq!(of.len(), 1, "{name} in {of:?} of {parts}");
                sizes[of[0] - 1] += 1;
            }
            assert!(sizes.iter().all(|n| *n > 500 / parts / 2), "{sizes:?}");
        }
    }

    #[test]
    fn the_part_is_what_the_documentation_says() {
        // printf 'a.toml\0MP\0ptx' | sha256sum
        let number: u64 = 0x9389_df75_bd49_afba;
        let part = Partition { part: 1 + number % 5, parts: 5 };
        assert!(part.holds("a.toml", "MP", "ptx"));
        assert!(!Partition { part: 1 + (number + 1) % 5, ..part }.holds("a.toml", "MP", "ptx"));
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        for text in [
            "",
            "1/2",
            "hash:",
            "hash:1",
            "hash:0/2",
            "hash:3/2",
            "hash:1/0",
            "hash:-1/2",
            "hash:a/b",
            "count:1/2",
        ] {
            assert!(Partition::parse(text).is_err(), "{text}");
        }
    }
}
