//! Checks the expectations about runs (`[[run]]`) of the repository's tests, each as a separate
//! test: `kernels::TEST::NUMBER::WORDS`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencepost::check::operational::{self, ExpectationResult, carry_out};
use fencepost::diag::{TextStyle, render};
use fencepost::litmus::{LitmusTest, read_path};
use libtest_mimic::{Failed, Trial};

use testkit::suite::files;

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for path in files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/kernels"),
        &["toml"],
    ) {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        match read_path(&path) {
            Ok(tests) => {
                for test in tests.into_iter().map(Arc::new) {
                    for i in 0..test.runs.len() {
                        let test = test.clone();
                        trials.push(Trial::test(label(&test, i), move || judge(&test, i)));
                    }
                }
            }
            Err(diagnostics) => {
                let text: String = diagnostics
                    .iter()
                    .map(|d| render(d, TextStyle::Plain))
                    .collect();
                trials.push(Trial::test(name, move || Err(text.into())));
            }
        }
    }
    trials
}

fn label(test: &LitmusTest, i: usize) -> String {
    let run = &test.runs[i];
    let words = [run.memory, run.scheduling, run.schedule];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    format!("kernels::{}::{}::{}", test.name, i + 1, words.join(" "))
}

fn judge(test: &LitmusTest, i: usize) -> Result<(), Failed> {
    let run = &test.runs[i];
    let start = Instant::now();
    let observed = carry_out(test, run, Some(Duration::from_secs(60)));
    if let Ok(seen) = &observed {
        let seconds = start.elapsed().as_secs_f64();
        println!("{}: {} steps, {:.2} s", label(test, i), seen.steps, seconds);
    }
    match operational::judge(test, run, &observed) {
        ExpectationResult::Met => Ok(()),
        ExpectationResult::Unmet(lines) => Err(lines.join("\n").into()),
        ExpectationResult::Undecided(why) => Err(format!("undecided: {why}").into()),
    }
}
