//! Counts the answers of a run.

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::advice::{AdviceReport, AdviceVerdict};
use super::comparison::Comparison;
use super::compiled::{CompiledOperation, CompiledReport, CompiledVerdict};
use super::counted::counted;
use super::distinction::Distinction;
use super::kernel::Kernels;
use super::line::{AnswerLine, OutcomeTable};
use super::observations::Observations;
use super::status::QueryStatus;
use super::suite::ConformanceSuite;
use verdict::{Reason, Relation, Verdict};

/// The relation between two models over several tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ComparisonCounts {
    /// The number of tests on whose condition they differ.
    conditions: usize,
    /// The numbers of tests by relation.
    relations: BTreeMap<Relation, usize>,
    /// The numbers of tests by rule.
    rules: BTreeMap<String, usize>,
}

/// The executor's observations under one model, over several tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ObservationCounts {
    /// Tests that ran.
    tests: usize,
    /// Tests that the machine cannot run.
    refused: usize,
    /// Runs of random schedules, finished or not.
    runs: u64,
    /// States visited by other schedules.
    states: u64,
    /// Distinct outcomes observed.
    outcomes: usize,
    /// For tests with a complete list of allowed outcomes: the number of allowed outcomes, and of
    /// observed ones among them.
    allowed: usize,
    observed: usize,
    /// Tests with all states visited.
    complete: usize,
    /// Outcomes that the model forbids.
    outside: usize,
    /// Outcomes without a decision, in tests that the model judged.
    undecided: usize,
}

/// Counts over all answers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Answers, or lists of outcomes.
    pub answers: usize,
    verdicts: [usize; Verdict::WORDS.len()],
    /// Expectations met.
    pub met: usize,
    /// Expectations not met.
    pub unmet: usize,
    /// Unmet expectations that are known failures.
    pub known: usize,
    /// The number of (test, model) pairs with an undefined program that the test does not mention;
    /// and whether that is a failure.
    pub undefined: (usize, bool),
    /// Queries that were not answered before an interrupt.
    pub unasked: usize,
    /// The last pair counted as undefined.
    last_undefined: (String, String, String),
    /// The numbers of undecided answers by kind of reason, which is the text before the first `: `.
    pub undecided: BTreeMap<String, usize>,
    /// Broken laws of the checker.
    pub defects: usize,
    /// Errors in tests, models, options and files.
    pub invalid: usize,
    /// (test, model) pairs that were skipped, because the model does not support the test's
    /// dialect.
    pub passed_over: usize,
    /// Comparisons, by pair of models.
    compared: IndexMap<(String, String), ComparisonCounts>,
    /// The executor's observations, by model.
    seen: IndexMap<String, ObservationCounts>,
    /// Whether the run stopped at the first failure.
    pub stopped: bool,
    /// The number of answers by engine.
    pub engines: BTreeMap<&'static str, usize>,
    /// Answers that a filter hides from the reports.
    pub hidden: usize,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Kernels of source files.
    pub kernels: Kernels,
}

impl Summary {
    /// Counts one answer.
    pub fn add(&mut self, line: &AnswerLine) {
        self.answers += 1;
        self.kernels.add(line);
        *self.engines.entry(line.answer.engine).or_default() += 1;
        if let Some(index) = Verdict::WORDS
            .iter()
            .position(|word| *word == line.answer.verdict.word())
        {
            self.verdicts[index] += 1;
        }
        let status = line.status();
        match (status, line.met()) {
            (QueryStatus::Known, _) => self.known += 1,
            (QueryStatus::Unmet, _) | (_, Some(false)) => self.unmet += 1,
            (_, Some(true)) => self.met += 1,
            (_, None) => {}
        }
        if let QueryStatus::Undefined(denied) = status {
            let pair = (line.path.clone(), line.test.clone(), line.model.clone());
            // The answers for a pair are consecutive.
            self.undefined = (
                self.undefined.0 + usize::from(self.last_undefined != pair),
                denied,
            );
            self.last_undefined = pair;
        }
        self.unasked += usize::from(line.answer.verdict.reason() == Some(&Reason::Interrupted));
        if let Some(reason) = line.answer.verdict.reason() {
            self.add_undecided(&reason.to_string());
        }
        self.defects += usize::from(line.answer.defect.is_some());
    }

    /// Counts the result of one search.
    pub fn add_distinction(&mut self, distinction: &Distinction) {
        self.answers += 1;
        if distinction.stopped.is_some() {
            self.add_undecided(&Reason::Time.to_string());
        }
    }

    /// Counts one suite.
    pub fn add_suite(&mut self, suite: &ConformanceSuite) {
        self.answers += 1;
        if suite.stopped.is_some() {
            self.add_undecided(&Reason::Time.to_string());
        }
    }

    /// Counts the operations of a report on a compiler.
    pub fn add_compiled(&mut self, compiled: &CompiledReport) {
        self.answers += compiled
            .operations
            .iter()
            .map(CompiledOperation::count)
            .sum::<usize>();
        for _ in 0..compiled.count(CompiledVerdict::Unjudged) {
            self.add_undecided("instructions that are not judged");
        }
    }

    /// Counts one piece of advice.
    pub fn add_advice(&mut self, advice: &AdviceReport) {
        self.answers += 1;
        if advice.verdict == AdviceVerdict::Undecided {
            self.add_undecided(
                advice
                    .reason
                    .as_deref()
                    .unwrap_or("the search was given up"),
            );
        }
    }

    /// Counts one list of outcomes.
    pub fn add_table(&mut self, table: &OutcomeTable) {
        self.answers += 1;
        if !table.outcomes.complete {
            let reason = table.outcomes.reason.as_ref();
            self.add_undecided(&reason.map_or("incomplete".to_owned(), ToString::to_string));
        }
        self.defects += usize::from(table.outcomes.defect.is_some());
    }

    /// Counts the observations of one test.
    pub fn add_observations(&mut self, seen: &Observations) {
        self.answers += 1;
        let count = |allowed| {
            seen.observed
                .iter()
                .filter(|o| o.allowed == allowed)
                .count()
        };
        self.verdicts[0] += count(Some(true));
        self.verdicts[1] += count(Some(false));
        self.verdicts[Verdict::WORDS.len() - 1] += count(None);
        if let Some(reason) = seen.undecided() {
            self.add_undecided(reason);
        }
        self.defects += usize::from(seen.defect.is_some());
        for expected in &seen.expected {
            match expected.met {
                Some(true) => self.met += 1,
                Some(false) => self.unmet += 1,
                None => self.add_undecided(&expected.why.join("; ")),
            }
        }
        let sum = self.seen.entry(seen.model.clone()).or_default();
        if seen.refused.is_some() {
            sum.refused += 1;
            return;
        }
        sum.tests += 1;
        let ended: u64 = seen.ended.iter().map(|e| e.1).sum();
        if seen.runs.is_some() {
            sum.runs += ended
        } else {
            sum.states += seen.states
        }
        sum.outcomes += seen.observed.len();
        sum.complete += usize::from(seen.complete);
        sum.outside += count(Some(false));
        sum.undecided += if seen.too_large { 0 } else { count(None) };
        if seen.listed {
            sum.observed += count(Some(true));
            sum.allowed += count(Some(true)) + seen.not_observed.len();
        }
    }

    /// One line per model with several tests: the number of runs, and the share of the model's
    /// outcomes that they showed.
    pub fn observations(&self) -> Vec<String> {
        self.seen
            .iter()
            .filter(|(_, s)| s.tests + s.refused > 1)
            .map(|(model, s)| {
            let effort = match (s.runs, s.states) {
                (0, states) => format!("{states} states"),
                (runs, 0) => format!("{runs} runs"),
                (runs, states) => format!("{runs} runs, {states} states"),
            };
            let share = 100.0 * s.observed as f64 / s.allowed.max(1) as f64;
            format!(
                "{model}, {} run, {} not: {effort}; {} observed, {} of them outside the model, {} \
                undecided; {} of {} allowed outcomes observed ({share:.2} %) in tests with a \
                complete list; {} with a complete state space",
                counted(s.tests, "test"),
                s.refused,
                counted(s.outcomes, "outcome"),
                s.outside,
                s.undecided,
                s.observed,
                s.allowed,
                counted(s.complete, "test"),
            )
        })
            .collect()
    }

    /// Drops the details of a reason (line, instruction), which the answer contains.
    fn add_undecided(&mut self, reason: &str) {
        let kind = reason.split(": ").next().unwrap_or(reason);
        *self.undecided.entry(kind.to_owned()).or_default() += 1;
    }

    /// Counts one comparison.
    pub fn add_comparison(&mut self, comparison: &Comparison) {
        for line in comparison.columns.iter().flat_map(|c| c.lines.first()) {
            self.add(line);
        }
        for finding in &comparison.findings {
            let pair = (finding.left.clone(), finding.right.clone());
            let compared = self.compared.entry(pair).or_default();
            compared.conditions += usize::from(finding.differs == Some(true));
            *compared.relations.entry(finding.relation).or_default() += 1;
            let unnamed = matches!(finding.relation, Relation::Differ | Relation::Violated)
                .then_some("no rule found");
            if let Some(rule) = finding.rule.as_deref().or(unnamed) {
                *compared.rules.entry(rule.to_owned()).or_default() += 1;
            }
        }
    }

    /// One line per compared pair of models: their relations, and the rules by which they differ.
    pub fn comparisons(&self) -> Vec<String> {
        self.compared
            .iter()
            .map(|((left, right), c)| {
                let tests = counted(c.relations.values().sum(), "test");
                let stand: Vec<_> = c
                    .relations
                    .iter()
                    .map(|(r, n)| format!("{n} {}", r.word()))
                    .collect();
                let mut line = format!("{left} and {right}, {tests}: {}", stand.join(", "));
                line += &format!("; the condition differs in {}", c.conditions);
                let mut rules: Vec<_> = c.rules.iter().collect();
                rules.sort_by_key(|r| std::cmp::Reverse(r.1));
                let rules: Vec<_> = rules
                    .into_iter()
                    .map(|(rule, n)| format!("{n} × {rule}"))
                    .collect();
                if rules.is_empty() {
                    line
                } else {
                    line + "; by rule: " + &rules.join(", ")
                }
            })
            .collect()
    }

    /// The number of answers that an interrupt left open, as one line.
    pub(super) fn interruption(&self) -> Option<String> {
        let (unasked, all) = (self.unasked, self.answers);
        (unasked > 0).then(|| {
            format!(
                "interrupted: {unasked} of {} are missing",
                counted(all, "answer")
            )
        })
    }

    /// The verdicts with a non-zero count.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        Verdict::WORDS
            .into_iter()
            .zip(self.verdicts)
            .filter(|&(_, n)| n > 0)
    }
}

impl fmt::Display for Summary {
    /// The summary line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdicts: Vec<_> = self
            .verdicts()
            .map(|(word, n)| format!("{n} {word}"))
            .collect();
        let kernels = self.kernels.text();
        let mut parts = vec![match verdicts.as_slice() {
            [] => counted(self.answers, "answer"),
            some => format!("{}: {}", counted(self.answers, "answer"), some.join(", ")),
        }];
        match kernels {
            Some(text) if self.kernels.answers == self.answers => parts = vec![text],
            other => parts.extend(other),
        }
        if self.met + self.unmet > 0 {
            let not = match self.unmet {
                0 => "all met".to_owned(),
                n => format!("{n} NOT MET"),
            };
            parts.push(format!(
                "{}, {not}",
                counted(self.met + self.unmet, "expectation")
            ));
        }
        if self.known > 0 {
            parts.push(counted(self.known, "known failure"));
        }
        match self.undefined {
            (0, _) => {}
            (n, false) => parts.push(counted(n, "undefined program")),
            (n, true) => parts.push(counted(n, "undefined program").to_uppercase()),
        }
        if !self.undecided.is_empty() {
            let reasons: Vec<_> = self
                .undecided
                .iter()
                .map(|(reason, n)| format!("{n} × {reason}"))
                .collect();
            parts.push(format!("undecided: {}", reasons.join(", ")));
        }
        for (n, what) in [
            (self.defects, "DEFECT"),
            (self.invalid, "error in the input"),
        ] {
            match (n, what) {
                (0, _) => {}
                (1, what) => parts.push(format!("1 {what}")),
                (n, "DEFECT") => parts.push(format!("{n} DEFECTS")),
                (n, _) => parts.push(format!("{n} errors in the input")),
            }
        }
        if self.passed_over > 0 {
            parts.push(format!("{} passed over", self.passed_over));
        }
        if self.hidden > 0 {
            parts.push(format!("{} not shown", self.hidden));
        }
        if self.stopped {
            parts.push("stopped at the first failure".into());
        }
        if self.interrupted {
            parts.push("INTERRUPTED".into());
        }
        f.write_str(&parts.join("; "))
    }
}

impl Serialize for Summary {
    /// Fixed keys in a fixed order, without absent verdicts and reasons.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("answers", &self.answers)?;
        map.serialize_entry(
            "verdicts",
            &self.verdicts().collect::<indexmap::IndexMap<_, _>>(),
        )?;
        map.serialize_entry("met", &self.met)?;
        map.serialize_entry("unmet", &self.unmet)?;
        map.serialize_entry("undecided", &self.undecided)?;
        map.serialize_entry("defects", &self.defects)?;
        map.serialize_entry("invalid", &self.invalid)?;
        map.serialize_entry("passed_over", &self.passed_over)?;
        map.serialize_entry("stopped", &self.stopped)?;
        for (key, n) in [
            ("hidden", self.hidden),
            ("known", self.known),
            ("undefined_programs", self.undefined.0),
        ] {
            if n > 0 {
                map.serialize_entry(key, &n)?;
            }
        }
        if self.interrupted {
            map.serialize_entry("interrupted", &true)?;
        }
        if !self.compared.is_empty() {
            map.serialize_entry(
                "compared",
                &self
                    .compared
                    .iter()
                    .map(|((left, right), c)| {
                        let stand: IndexMap<&str, usize> =
                            c.relations.iter().map(|(r, n)| (r.word(), *n)).collect();
                        serde_json::json!({
                            "models": [left, right], "conditions": c.conditions,
                            "relations": stand, "rules": c.rules
                        })
                    })
                    .collect::<Vec<_>>(),
            )?;
        }
        if !self.seen.is_empty() {
            map.serialize_entry(
                "observed",
                &self.seen.iter().map(|(model, s)| {
                serde_json::json!({
                    "model": model, "tests": s.tests, "not_run": s.refused,
                    "runs": s.runs, "states": s.states,
                    "outcomes": s.outcomes, "outside": s.outside, "undecided": s.undecided,
                    "allowed": s.allowed, "allowed_observed": s.observed, "complete": s.complete
                })
            }).collect::<Vec<_>>(),
            )?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn everything_is_counted_once() {
        let mut summary = Summary::default();
        samples::lines().iter().for_each(|line| summary.add(line));
        summary.passed_over = 2;
        assert_eq!(
            summary.to_string(),
            "6 answers: 2 allowed, 2 forbidden, 1 racy, 1 undecided; 3 expectations, 1 NOT MET; \
             undecided: 1 × loop bound; 1 DEFECT; 2 passed over"
        );
    }

    #[test]
    fn nothing_is_said_of_what_did_not_happen() {
        assert_eq!(Summary::default().to_string(), "0 answers");
    }
}
