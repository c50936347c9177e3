//! Adds results of one test on devices.
//!
//! # Invariants
//! - Only counts are added; the model says whether an outcome is allowed, the same in all of them.
//! - A single result keeps every byte.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A line as written: keys in their order.
type Line = IndexMap<String, Box<RawValue>>;

/// Final values by name, in the order of the test.
type State = IndexMap<String, String>;

#[derive(Deserialize, Serialize)]
struct MergedOutcome {
    state: State,
    count: u64,
    allowed: Option<bool>,
}

/// The line that states the sum of all results.
pub(super) fn added(lines: &[&str]) -> Result<String, serde_json::Error> {
    let all: Vec<Line> = lines
        .iter()
        .map(|line| serde_json::from_str::<Line>(line))
        .collect::<Result<_, _>>()?;
    // A test that could not run in one place ran in another.
    let some: Vec<&Line> = all
        .iter()
        .filter(|line| line.get("runs").is_some_and(|runs| runs.get() != "null"))
        .collect();
    let Some(first) = some.first().filter(|_| all.len() > 1) else {
        return Ok(lines[0].to_owned());
    };
    let (mut runs, mut memory, mut seeds): (u64, Vec<String>, Vec<u64>) = Default::default();
    let mut observed: BTreeMap<Vec<(String, String)>, MergedOutcome> = BTreeMap::new();
    let mut ended: IndexMap<String, u64> = IndexMap::new();
    let mut not_observed: Vec<State> = Vec::new();
    for line in &some {
        runs += part::<u64>(line, "runs")?;
        let place = part::<String>(line, "memory")?;
        if !memory.contains(&place) {
            memory.push(place);
        }
        let seed = part::<u64>(line, "seed")?;
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
        for outcome in part::<Vec<MergedOutcome>>(line, "observed")? {
            let key = outcome.state.clone().into_iter().collect();
            match observed.get_mut(&key) {
                Some(known) => known.count += outcome.count,
                None => _ = observed.insert(key, outcome),
            }
        }
        for (how, count) in part::<IndexMap<String, u64>>(line, "ended")? {
            *ended.entry(how).or_default() += count;
        }
        for state in part::<Vec<State>>(line, "not_observed")? {
            if !not_observed.contains(&state) {
                not_observed.push(state);
            }
        }
    }
    let observed: Vec<MergedOutcome> = observed.into_values().collect();
    not_observed.retain(|state| observed.iter().all(|outcome| outcome.state != *state));
    let mut sum: Line = (*first).clone();
    let mut put = |key: &str, value: Box<RawValue>| _ = sum.insert(key.to_owned(), value);
    put("runs", to_raw_value(&runs)?);
    put("memory", to_raw_value(&memory.join("; "))?);
    put(
        "seed",
        to_raw_value(&Some(seeds[0]).filter(|_| seeds.len() == 1))?,
    );
    put("observed", to_raw_value(&observed)?);
    put("ended", to_raw_value(&ended)?);
    put("not_observed", to_raw_value(&not_observed)?);
    serde_json::to_string(&sum)
}

/// The value of a key of a line.
fn part<'l, T: Deserialize<'l>>(line: &'l Line, key: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(line.get(key).map_or("null", |value| value.get()))
}

#[cfg(test)]
mod tests {
    use super::added;

    fn line(runs: &str, seed: u64, observed: &str, not_observed: &str) -> String {
        format!(
            r#"{{"path":"t","test":"T","schedule":"device","runs":{runs},"observed":[{observed}],"not_observed":[{not_observed}],"ended":{{"finished":{runs}}},"memory":"on a","seed":{seed},"bound":null}}"#
        )
    }

    #[test]
    fn counts_are_added_and_nothing_else_is_lost() {
        let one = line(
            "5",
            1,
            r#"{"state":{"b":"1","a":"0"},"count":5,"allowed":true}"#,
            r#"{"b":"0","a":"0"}"#,
        );
        let other = line(
            "7",
            2,
            r#"{"state":{"b":"0","a":"0"},"count":3,"allowed":false},{"state":{"b":"1","a":"0"},"count":4,"allowed":true}"#,
            "",
        );
        let none = r#"{"path":"t","test":"T","schedule":"device","runs":null,"observed":[],"not_observed":[],"ended":{},"memory":"","seed":null,"bound":null,"reason":"no"}"#;
        let sum = line(
            "12",
            0,
            r#"{"state":{"b":"0","a":"0"},"count":3,"allowed":false},{"state":{"b":"1","a":"0"},"count":9,"allowed":true}"#,
            "",
        )
        .replace("\"seed\":0", "\"seed\":null");
        assert_eq!(added(&[&one, none, &other]).unwrap(), sum);
        assert_eq!(added(&[&one]).unwrap(), one);
        assert_eq!(added(&[none, &one]).unwrap(), one);
        assert_eq!(added(&[none, none]).unwrap(), none);
    }
}
