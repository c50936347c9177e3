//! Snapshots of every outcome of classic tests under `ptx`: missing outcomes and extra ones both
//! show.
//!
//! All engines make the list, and differences between them are defects.

use std::fmt::Write;
use std::path::Path;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::read_path;
use fencepost::verdict::Outcome;
use testkit::suite::shipped;

fn line(outcome: &Outcome) -> String {
    let values: Vec<String> = outcome
        .state
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let racy = if outcome.racy { "  racy" } else { "" };
    format!("  {}{racy}", values.join(", "))
}

#[test]
fn classics() {
    let tests = read_path(Path::new("tests/engines/classics.toml")).expect("well-formed");
    let model = shipped("ptx");
    let mut text = String::new();
    for test in &tests {
        let outcomes = Session::new(test, &model, Engine::Both, Limits::default(), &[]).outcomes();
        assert_eq!(outcomes.defect, None, "{}", test.name);
        assert!(outcomes.complete, "{}: {:?}", test.name, outcomes.reason);
        let allowed: Vec<&Outcome> = outcomes.outcomes.iter().filter(|o| o.allowed).collect();
        let sorted = allowed.is_sorted_by_key(|o| &o.state);
        assert!(sorted, "{}: outcomes come sorted", test.name);
        writeln!(text, "{}: {}", test.name, allowed.len()).expect("into a string");
        for outcome in allowed {
            writeln!(text, "{}", line(outcome)).expect("into a string");
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(text) });
}
