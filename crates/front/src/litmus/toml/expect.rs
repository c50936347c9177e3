//! `[expect]`: expected answers by model.

use ::toml::de::DeTable;
use indexmap::IndexMap;

use super::Reader;
use super::template::{Choice, tables};
use crate::document::{entries, span_of};
use crate::litmus::keys;
use program::litmus::{Expectation, Reachability};

impl Reader<'_, '_> {
    /// The expectations of the file, then those of the instance.
    pub(super) fn expectations(&mut self, choice: &Choice) -> IndexMap<String, Expectation> {
        let mut all = super::no_expectations();
        let root = self.root;
        self.add_expectations(root, choice, &mut all);
        let instances = tables(root, "instance");
        if let Some(instance) = choice.instance.and_then(|i| instances.get(i)) {
            self.add_expectations(instance, choice, &mut all);
        }
        all
    }

    fn add_expectations(&mut self, table: &DeTable<'_>, choice: &Choice, all: &mut IndexMap<String, Expectation>) {
        let Some(models) = table.get("expect").and_then(|v| v.get_ref().as_table()) else { return };
        for (model, key_span, value) in entries(models) {
            let Some(table) = value.get_ref().as_table() else { continue };
            let entry = all.entry(model.to_string()).or_default();
            entry.span = key_span.to(span_of(value));
            for property in ["reachability", "race", "undefined"] {
                let words = words_of(property);
                if let Some(word) = self.word(table, property, words, choice) {
                    set(entry, property, word);
                }
            }
            if let Some(liveness) = table.get("liveness").and_then(|v| v.get_ref().as_table()) {
                for progress in keys::PROGRESS {
                    if let Some(word) = self.word(liveness, progress, keys::LIVENESS, choice) {
                        set(entry, &format!("liveness:{progress}"), word);
                    }
                }
            }
            let texts = [("axiom", &mut entry.axiom), ("source", &mut entry.source), ("known", &mut entry.known)];
            for (key, field) in texts {
                if let Some(text) = self.string(table, key, choice) {
                    *field = Some(text.as_str().to_string());
                }
            }
        }
    }
}

/// The words in which a property is expected.
pub(super) fn words_of(property: &str) -> &'static [&'static str] {
    match property {
        "race" => keys::RACE,
        "undefined" => keys::UNDEFINED,
        "reachability" => keys::REACHABILITY,
        _ => keys::LIVENESS,
    }
}

/// Sets the expected answer for a property.
pub(super) fn set(expectation: &mut Expectation, property: &str, word: &str) {
    match property {
        "reachability" => {
            expectation.reachability = Some(match word {
                "allowed" => Reachability::Allowed,
                "required" => Reachability::Required,
                _ => Reachability::Forbidden,
            });
        }
        "race" => expectation.race = Some(word == "racy"),
        "undefined" => expectation.undefined = Some(word == "undefined"),
        _ => {
            let progress = property.strip_prefix("liveness:").unwrap_or(property);
            expectation.liveness.insert(progress.to_string(), word == "hangs");
        }
    }
}
