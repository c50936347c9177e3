//! Answers under the other readings of a source that is silent on a point.
//!
//! # Invariants
//! - A reading that the test or the user chose is kept. One that does not concern the program is
//!   skipped.
//! - Readings vary one option at a time; the others keep their values.

use super::Session;
use cat::model::Model;
use engine::skeleton::signature;
use program::options::{OPTIONS, Setting};
use verdict::{Answer, Dependence, Verdict};

impl<'a> Session<'a> {
    /// The points on which an answer depends, where the source can be read in several ways. `ask`
    /// asks again.
    pub fn dependences(
        &mut self,
        verdict: &Verdict,
        ask: impl Fn(&mut Session<'a>) -> Option<Answer>,
    ) -> Vec<Dependence> {
        let model = self.model;
        let mut all = Vec::new();
        for (option, row) in OPTIONS.iter().enumerate() {
            let Some(reading) = &row.reading else {
                continue;
            };
            let open = self.is_open(option) && reading.bears_on(&self.test.program);
            if !open || verdict.reason().is_some() {
                continue;
            }
            let words: Option<Vec<&str>> = (0..row.values.len())
                .map(|value| {
                    if value == model_value(model, option) {
                        return Some(verdict.word());
                    }
                    ask(self.under(Setting { option, value })).map(|answer| answer.verdict.word())
                })
                .collect();
            let Some(words) = words.filter(|words| words.iter().any(|word| *word != words[0]))
            else {
                continue;
            };
            let verdicts = row.values.iter().zip(words);
            all.push(Dependence {
                option: row.name.to_owned(),
                on: reading.on.to_owned(),
                source: reading.source.to_owned(),
                verdicts: verdicts
                    .map(|(value, word)| ((*value).to_owned(), word.to_owned()))
                    .collect(),
            });
        }
        all
    }

    /// Whether the model has readings that an option chooses, and the option is still free.
    fn is_open(&self, option: usize) -> bool {
        let mut set = self.set.iter().chain(&self.test.options);
        set.all(|s| s.option != option) && signature::has_readings(self.model, OPTIONS[option].name)
    }

    /// The readings that the test or the user chose.
    pub(super) fn chosen_readings(&self) -> Vec<Setting> {
        let chosen = self.set.iter().chain(&self.test.options).copied();
        chosen
            .filter(|s| s.row().reading.is_some())
            .filter(|s| signature::has_readings(self.model, s.row().name))
            .collect()
    }

    /// Readings of the source, other than that of the model, that may be chosen.
    pub(super) fn other_readings(&self) -> Vec<Setting> {
        let rows = OPTIONS
            .iter()
            .enumerate()
            .filter(|(option, row)| row.reading.is_some() && self.is_open(*option));
        rows.flat_map(|(option, row)| {
            (0..row.values.len())
                .map(move |value| Setting { option, value })
                .collect::<Vec<_>>()
        })
        .filter(|s| s.value != model_value(self.model, s.option))
        .collect()
    }

    /// The same test and model under one other setting. Parts of the program that stay the same are
    /// not made again, so it has this session's values out of thin air.
    pub(super) fn under(&mut self, setting: Setting) -> &mut Session<'a> {
        let kept = self
            .others
            .remove(&setting)
            .filter(|other| other.thin_air == self.thin_air);
        let mut other = kept.unwrap_or_else(|| {
            let mut other = Session {
                thin_air: self.thin_air,
                ..self.fresh()
            };
            other.set.push(setting);
            other
        });
        for (&bound, prepared) in &self.prepared {
            if !other.prepared.contains_key(&bound)
                && let Some(prepared) = prepared
                    .as_ref()
                    .ok()
                    .and_then(|prepared| prepared.under(&other.set))
            {
                other.prepared.insert(bound, Ok(prepared));
            }
        }
        self.others.entry(setting).or_insert(other)
    }
}

/// The value that a model gives to an option; by default, the first one.
fn model_value(model: &Model, option: usize) -> usize {
    let chosen = model.options.iter().find(|o| o.0 == option);
    chosen.map_or(0, |o| o.1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use cat::model::load_shipped;
    use engine::skeleton::signature::signature;
    use engine::{Engine, Limits};

    #[test]
    fn a_reading_counts_with_the_values_of_its_session() {
        let model = load_shipped("ptx", &signature())
            .expect("shipped")
            .expect("loads");
        // Each stores the value that it read of the other.
        let copy = |from: &str, to: &str| {
            format!("code = 'ld.relaxed.gpu r0, {from}; st.relaxed.gpu {to}, r0'")
        };
        let text = format!(
            "name = 'LB'\ncondition = 'P0:r0 == 7'\nmemory = {{ x = 0, y = 0 }}\n[[thread]]\ncta \
            = 0\n{}\n[[thread]]\ncta = 1\n{}",
            copy("x", "y"),
            copy("y", "x"),
        );
        let test = front::litmus::parse("lb.toml", text.as_bytes())
            .expect("a good test")
            .remove(0);
        let option = OPTIONS
            .iter()
            .position(|row| row.name == "async-fence")
            .expect("there is one");
        let setting = Setting { option, value: 1 };
        let mut session = Session::new(&test, &model, Engine::Sat, Limits::default(), &[]);
        let mut values = |thin_air: bool| {
            session.thin_air = thin_air;
            session.prepared.clear();
            let verdict = session.reachability(None, false).verdict;
            assert_eq!(verdict.word(), "forbidden");
            let domains = |session: &Session<'_>| {
                let prepared = session
                    .prepared
                    .values()
                    .next()
                    .expect("it was asked")
                    .as_ref()
                    .ok();
                let facts = &prepared.expect("a small test").facts;
                let read = facts
                    .sk
                    .events
                    .iter()
                    .find(|e| e.is_read())
                    .expect("threads read");
                facts
                    .domains
                    .of(read.value.expect("reads have values"))
                    .cloned()
            };
            let here = domains(&session);
            let other = session.under(setting);
            assert_eq!((domains(other), other.thin_air), (here.clone(), thin_air));
            // A separate session comes to the same result.
            other.prepared.clear();
            assert_eq!(other.reachability(None, false).verdict.word(), "forbidden");
            assert_eq!(domains(other), here);
            here
        };
        let (with, without) = (values(true), values(false));
        assert_ne!(with, without, "the setting is of no matter to the test");
        assert_eq!(values(true), with);
    }

    #[test]
    fn a_reading_is_answered_as_if_it_were_the_first() {
        let model = load_shipped("ptx", &signature())
            .expect("shipped")
            .expect("loads");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/ptx-async");
        let (mut changed, mut same) = (0, 0);
        for file in [
            "14-strong-copies/Strong.toml",
            "10-clusters/Home.peer.toml",
            "09-async-proxy/Fence.flag.toml",
        ] {
            for mut test in front::litmus::read_path(&folder.join(file)).expect("tests") {
                test.options.clear();
                let ask = |session: &mut Session<'_>| {
                    let undefined = session.undefined().map(|answer| answer.verdict.word());
                    (session.reachability(None, false).verdict.word(), undefined)
                };
                let mut session = Session::new(&test, &model, Engine::Auto, Limits::default(), &[]);
                let first = ask(&mut session);
                for (option, row) in OPTIONS
                    .iter()
                    .enumerate()
                    .filter(|(_, row)| row.reading.is_some())
                {
                    for value in 0..row.values.len() {
                        let setting = Setting { option, value };
                        let other = session.under(setting);
                        let shared = !other.prepared.is_empty();
                        assert!(
                            shared || row.name == "b128",
                            "{}: {} is not a matter of events",
                            test.name,
                            row.name
                        );
                        let mut alone =
                            Session::new(&test, &model, Engine::Sat, Limits::default(), &[setting]);
                        let (other, alone) = (ask(other), ask(&mut alone));
                        assert_eq!(other, alone, "{} under {:?}", test.name, setting.words());
                        *(if other == first {
                            &mut same
                        } else {
                            &mut changed
                        }) += 1;
                    }
                }
            }
        }
        assert!(
            changed > 10 && same > 100,
            "{changed} answers are others under another reading, {same} are not"
        );
    }
}
