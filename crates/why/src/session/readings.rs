//! Answers under the other readings of a source that is silent on a point.
//!
//! # Invariants
//! - A reading that the test or whoever asks has chosen is not questioned, nor one that the program has nothing to do with.
//! - Readings are taken one option at a time; the others are as they were.

use super::Session;
use engine::skeleton::signature;
use program::options::{OPTIONS, Setting};
use verdict::{Answer, Dependence, Verdict};

impl<'a> Session<'a> {
    /// On which points, where its source can be read in several ways, an answer depends. `ask` asks again.
    pub fn dependences(
        &self,
        verdict: &Verdict,
        ask: impl Fn(&mut Session<'a>) -> Option<Answer>,
    ) -> Vec<Dependence> {
        let chosen = |option: usize| self.set.iter().chain(&self.test.options).any(|s| s.option == option);
        let of_model = |option: usize| self.model.options.iter().find(|o| o.0 == option).map_or(0, |o| o.1);
        let mut all = Vec::new();
        for (option, row) in OPTIONS.iter().enumerate() {
            let Some(reading) = &row.reading else { continue };
            let open = !chosen(option) && reading.bears_on(&self.test.program);
            if !open || verdict.reason().is_some() || !signature::has_readings(self.model, row.name) {
                continue;
            }
            let under = |value: usize| {
                if value == of_model(option) {
                    return Some(verdict.word());
                }
                let mut session = self.fresh();
                session.set.push(Setting { option, value });
                ask(&mut session).map(|answer| answer.verdict.word())
            };
            let words: Option<Vec<&str>> = (0..row.values.len()).map(under).collect();
            let Some(words) = words.filter(|words| words.iter().any(|word| *word != words[0])) else { continue };
            let verdicts = row.values.iter().zip(words);
            all.push(Dependence {
                option: row.name.to_owned(),
                on: reading.on.to_owned(),
                source: reading.source.to_owned(),
                verdicts: verdicts.map(|(value, word)| ((*value).to_owned(), word.to_owned())).collect(),
            });
        }
        all
    }
}
