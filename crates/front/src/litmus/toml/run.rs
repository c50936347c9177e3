//! `[[run]]`: expected results of runs of the executor.

use ::toml::de::DeTable;

use super::TestReader;
use super::template::{TemplateChoice, tables};
use crate::document::span_of;
use crate::litmus::keys;
use program::litmus::RunExpectation;

impl TestReader<'_, '_> {
    pub(super) fn runs(&mut self, choice: &TemplateChoice) -> Vec<RunExpectation> {
        let list = tables(self.root, "run");
        list.into_iter()
            .map(|table| self.run(table, choice))
            .collect()
    }

    fn run(&mut self, table: &DeTable<'_>, choice: &TemplateChoice) -> RunExpectation {
        let span = table
            .iter()
            .min_by_key(|(key, _)| key.span().start)
            .map(|(key, value)| {
                diag::Span::new(key.span().start, key.span().end).to(span_of(value))
            });
        self.fits_together(
            table,
            "registers",
            |t| t.contains_key("target"),
            "add `target`",
        );
        self.fits_together(
            table,
            "target",
            |t| !t.contains_key("resident"),
            "leave out `resident`",
        );
        RunExpectation {
            memory: self.word(table, "memory", keys::MEMORIES, choice),
            early: self.word(table, "early", keys::EARLY, choice),
            scheduling: self.word(table, "scheduling", keys::SCHEDULING, choice),
            schedule: self.word(table, "schedule", keys::SCHEDULES, choice),
            runs: self.count(table, &["runs"], choice),
            steps: self.count(table, &["steps"], choice),
            warp_size: self.count(table, &["warp_size"], choice),
            sms: self.count(table, &["sms"], choice),
            resident: self.count(table, &["resident"], choice),
            target: self.word(table, "target", keys::TARGETS, choice),
            registers: self.count(table, &["registers"], choice),
            cooperative: table
                .get("cooperative")
                .and_then(|v| v.get_ref().as_bool())
                .unwrap_or(false),
            ends: self.word(table, "ends", keys::ENDS, choice),
            race: self.word(table, "race", keys::RACE, choice),
            condition: self.word(table, "condition", keys::HOLDS, choice),
            why: self
                .string(table, "why", choice)
                .map(|t| t.as_str().to_owned())
                .filter(|t| !t.is_empty()),
            span: span.unwrap_or_default(),
        }
    }

    /// Reports a key that has no meaning beside the others.
    fn fits_together(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        fits: fn(&DeTable<'_>) -> bool,
        next: &str,
    ) {
        let Some((key, _)) = table.get_key_value(name).filter(|_| !fits(table)) else {
            return;
        };
        let span = diag::Span::new(key.span().start, key.span().end);
        let message = format!("`{name}` has no meaning here");
        self.sink.error("conflicting-keys", span, message, |d| {
            d.label(next)
                .help("`target` and `registers` give the number of resident blocks")
        });
    }
}
