//! Small programs about asynchronous operations, by number. `programs.toml` lists for each the
//! tests that represent it, and the verdict.
//!
//! `programs::NUMBER` compares that verdict with these tests' expectations for `ptx`.
//! `expectations` checks the expectations themselves, with every engine.

use std::collections::BTreeMap;
use std::path::Path;

use fencepost::diag::{TextStyle, render};
use fencepost::litmus::{LitmusTest, Reachability, read_path};
use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

/// The readings of a two-way proxy fence, in the order of the letters of a verdict.
const READINGS: [&str; 4] = ["letter", "thread", "cta", "path"];

/// One program of the table.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    verdict: String,
    test: String,
    /// The difference, if the test is not exactly the program.
    #[serde(rename = "note")]
    _note: Option<String>,
}

/// A verdict, parsed.
struct Said {
    /// By reading; `None` if there is no outcome to query.
    reachability: Option<[Reachability; 4]>,
    undefined: bool,
}

pub(super) fn trials() -> Vec<Trial> {
    let text =
        std::fs::read_to_string("tests/corpus/programs.toml").expect("the table of programs");
    let table: BTreeMap<String, BTreeMap<String, Entry>> =
        toml::from_str(&text).expect("the table of programs");
    let programs = table.into_values().flatten();
    programs
        .map(|(number, entry)| Trial::test(format!("programs::{number}"), move || hold(&entry)))
        .collect()
}

/// Compares an entry with the expectations of its tests.
fn hold(entry: &Entry) -> Result<(), Failed> {
    let said =
        Said::read(&entry.verdict).ok_or_else(|| format!("no verdict: `{}`", entry.verdict))?;
    let path = entry.test.as_str();
    let stem = path.rsplit_once('/').map_or(path, |(_, stem)| stem);
    let (file, name) = path.split_once("::").unwrap_or((path, stem));
    let tests = read_path(&Path::new("litmus").join(format!("{file}.toml"))).map_err(|all| {
        all.iter()
            .map(|d| render(d, TextStyle::Plain))
            .collect::<String>()
    })?;
    for (i, reading) in READINGS.into_iter().enumerate() {
        let name = name.replace('*', reading);
        let test = tests
            .iter()
            .find(|t| t.name == name)
            .ok_or_else(|| format!("no test `{name}` in {file}"))?;
        let expected = said.reachability.map(|letters| letters[i]);
        expects(test, reading, expected, said.undefined)
            .map_err(|why| format!("{name}, {reading}: {why}"))?;
    }
    Ok(())
}

/// Whether a test expects this under a reading of the fence, because it sets or names that reading.
fn expects(
    test: &LitmusTest,
    reading: &str,
    reachability: Option<Reachability>,
    undefined: bool,
) -> Result<(), String> {
    let words = ("async-fence", reading);
    if let Some(other) = test
        .options
        .iter()
        .find(|s| s.words().0 == words.0 && s.words() != words)
    {
        return Err(format!("it is about the reading {}", other.words().1));
    }
    let expected = test.expect.get("ptx").ok_or("it expects nothing of ptx")?;
    let named = expected
        .readings
        .iter()
        .find(|(setting, _)| setting.words() == words);
    let found = named.map(|(_, verdict)| *verdict).or(expected.reachability);
    if reachability.is_some() && found != reachability {
        return Err(format!(
            "it expects {}",
            found.map_or("no outcome", Reachability::word)
        ));
    }
    match expected.undefined {
        Some(found) if found == undefined => Ok(()),
        Some(found) => Err(format!(
            "it expects {}",
            if found { "undefined" } else { "defined" }
        )),
        None => Err("it does not say whether anything is undefined".into()),
    }
}

impl Said {
    fn read(verdict: &str) -> Option<Said> {
        let (letters, undefined) = match verdict {
            "defined" => ("", false),
            "undefined" => ("", true),
            _ => verdict
                .strip_suffix(" U")
                .map_or((verdict, false), |letters| (letters, true)),
        };
        let letters: Option<Vec<Reachability>> = letters
            .chars()
            .map(|letter| match letter {
                'A' => Some(Reachability::Allowed),
                'F' => Some(Reachability::Forbidden),
                _ => None,
            })
            .collect();
        let reachability = match letters?[..] {
            [] if matches!(verdict, "defined" | "undefined") => None,
            [one] => Some([one; 4]),
            [letter, thread, cta, path] => Some([letter, thread, cta, path]),
            _ => return None,
        };
        Some(Said {
            reachability,
            undefined,
        })
    }
}
