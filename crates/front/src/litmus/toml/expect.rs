//! `[expect]`: expected answers by model.

use ::toml::de::DeTable;
use indexmap::IndexMap;

use super::TestReader;
use super::template::{TemplateChoice, tables};
use crate::document::{entries, span_of};
use crate::litmus::keys;
use diag::Span;
use program::litmus::{Expectation, Reachability};
use program::options::{OPTIONS, Setting};

impl TestReader<'_, '_> {
    /// The expectations of the file, then those of the instance.
    pub(super) fn expectations(
        &mut self,
        choice: &TemplateChoice,
    ) -> IndexMap<String, Expectation> {
        let mut all = super::no_expectations();
        let root = self.root;
        self.add_expectations(root, choice, &mut all);
        let instances = tables(root, "instance");
        if let Some(instance) = choice.instance.and_then(|i| instances.get(i)) {
            self.add_expectations(instance, choice, &mut all);
        }
        all
    }

    fn add_expectations(
        &mut self,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
        all: &mut IndexMap<String, Expectation>,
    ) {
        let Some(models) = table.get("expect").and_then(|v| v.get_ref().as_table()) else {
            return;
        };
        for (model, key_span, value) in entries(models) {
            let Some(table) = value.get_ref().as_table() else {
                continue;
            };
            let entry = all.entry(model.to_string()).or_default();
            entry.span = key_span.to(span_of(value));
            for property in ["reachability", "race", "undefined", "lifetime"] {
                let words = words_of(property);
                if let Some(word) = self.word(table, property, words, choice) {
                    set(entry, property, word);
                }
            }
            let readings = self.readings(table, choice);
            entry.readings.extend(readings);
            if let Some(liveness) = table.get("liveness").and_then(|v| v.get_ref().as_table()) {
                for progress in keys::PROGRESS {
                    if let Some(word) = self.word(liveness, progress, keys::LIVENESS, choice) {
                        set(entry, &format!("liveness:{progress}"), word);
                    }
                }
            }
            let texts = [
                ("axiom", &mut entry.axiom),
                ("source", &mut entry.source),
                ("known", &mut entry.known),
            ];
            for (key, field) in texts {
                if let Some(text) = self.string(table, key, choice) {
                    *field = Some(text.as_str().to_string());
                }
            }
        }
    }
}

impl TestReader<'_, '_> {
    /// Expected answers under readings of the source, by option and value.
    fn readings(
        &mut self,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Vec<(Setting, Reachability)> {
        let mut all = Vec::new();
        let Some(given) = table.get("readings") else {
            return all;
        };
        if !table.contains_key("reachability") {
            self.sink.error(
                "conflicting-keys",
                span_of(given),
                "`readings` says how an answer differs",
                |d| d.label("expected `reachability` with it"),
            );
        }
        for (option, span, values) in given.get_ref().as_table().into_iter().flat_map(entries) {
            let Some(values) = values.get_ref().as_table() else {
                continue;
            };
            for (value, place, _) in entries(values) {
                let setting = Setting::read(option, value).ok();
                let Some(setting) = setting.filter(|setting| setting.row().reading.is_some())
                else {
                    self.no_reading(option, span, value, place);
                    continue;
                };
                if let Some(word) = self.word(values, value, words_of("reachability"), choice) {
                    all.push((setting, reachability(word)));
                }
            }
        }
        all
    }

    fn no_reading(&mut self, option: &str, span: Span, value: &str, place: Span) {
        let known = OPTIONS.iter().filter(|row| row.reading.is_some());
        match known.clone().find(|row| row.name == option) {
            None => self.sink.error(
                "unknown-option",
                span,
                format!("`{option}` chooses no reading"),
                |d| {
                    d.label("expected an option that chooses one")
                        .did_you_mean(option, known.map(|row| row.name))
                },
            ),
            Some(row) => {
                self.sink.error(
                    "unknown-option",
                    place,
                    format!("`{option}` has no value `{value}`"),
                    |d| {
                        d.label(format!("expected one of {}", row.values.join(", ")))
                            .did_you_mean(value, row.values.iter().copied())
                    },
                );
            }
        }
    }
}

/// The answer that a word names.
pub(super) fn reachability(word: &str) -> Reachability {
    match word {
        "allowed" => Reachability::Allowed,
        "required" => Reachability::Required,
        _ => Reachability::Forbidden,
    }
}

/// The words for the answers about a property.
pub(super) fn words_of(property: &str) -> &'static [&'static str] {
    match property {
        "race" => keys::RACE,
        "undefined" => keys::UNDEFINED,
        "lifetime" => keys::LIFETIME,
        "reachability" => keys::REACHABILITY,
        _ => keys::LIVENESS,
    }
}

/// Sets the expected answer for a property.
pub(super) fn set(expectation: &mut Expectation, property: &str, word: &str) {
    match property {
        "reachability" => {
            expectation.reachability = Some(reachability(word));
        }
        "race" => expectation.race = Some(word == "racy"),
        "undefined" => expectation.undefined = Some(word == "undefined"),
        "lifetime" => expectation.lifetime = Some(word == "misused"),
        _ => {
            let progress = property.strip_prefix("liveness:").unwrap_or(property);
            expectation
                .liveness
                .insert(progress.to_string(), word == "hangs");
        }
    }
}
