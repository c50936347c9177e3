//! Checks every expectation in `litmus/`, each as a separate test.
//!
//! - `FILE::TEST::MODEL::ENGINE` decides all expectations of the test for the model, by one engine,
//!   in rotation. With `FENCEPOST_LONG` the other engines decide, with `FENCEPOST_LONG=all` all of
//!   them. An expected `forbidden` that names an axiom must need it: the axiom is in the minimal
//!   set that the explanation gives.
//! - `agreement::FILE::TEST` compares the whole outcome sets of the engines under `ptx`, for a
//!   sample of the small tests ([`testkit::suite`] sets its size).
//! - `axioms::MODEL` checks that some expectation names each axiom of a shipped PTX model, except
//!   for [`IMPLIED`] ones.
//! - `FILE` alone fails if the file cannot be read, or if a test in it has no expectations;
//!   `FILE::warnings`, if its reading has warnings that the file does not allow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session};
use fencepost::diag::{Diagnostic, TextStyle, render};
use fencepost::litmus::{Expectation, LitmusTest, Quantifier, Reachability, TestFile, read};
use fencepost::model::ir::Model;
use fencepost::model::{Library, load_shipped};
use fencepost::program::Dialect;
use fencepost::program::mapping::Mapping;
use fencepost::skeleton::signature::signature;
use fencepost::verdict::{Answer, Reason, Verdict};
use libtest_mimic::{Failed, Trial};
use testkit::suite::{is_long, step};

/// Axioms that the specification calls implied by the others if all accesses use the generic proxy:
/// then no outcome rests on them alone. The unit tests of `check::replay` have executions, made by
/// hand, that each of them rejects. `litmus/proxies/implied.toml` has outcomes beyond the generic
/// proxy.
const IMPLIED: &[(&str, &str)] = &[
    (
        "Fence-SC",
        "Fence-SC order is total on morally strong fences, so Causality excludes the outcomes",
    ),
    (
        "SC-per-Location",
        "follows from Coherence, Atomicity and Causality where base causality holds program order",
    ),
    (
        "Single-Copy-Atomicity",
        "follows from SC-per-Location, which relates whole accesses; the text states both",
    ),
    (
        "Whole-Coherence",
        "SC-per-Location relates whole accesses that are morally strong; causality, which alone orders others, relates whole ones",
    ),
    (
        "Well-Formedness",
        "a cycle in base causality is not a schedule; barriers and communication exclude it",
    ),
];

/// Outcome sets are compared for tests with at most this many instructions.
const SMALL: usize = 24;

pub(super) fn trials() -> Vec<Trial> {
    let mut corpus = Corpus {
        models: models(),
        trials: Vec::new(),
        named: BTreeMap::new(),
        expectations: 0,
    };
    for path in files(Path::new("litmus")) {
        let file = label(&path);
        let bytes = std::fs::read(&path).expect("readable");
        match read(&path.display().to_string(), &bytes) {
            Ok(TestFile { tests, warnings }) => {
                if !warnings.is_empty() {
                    let name = format!("{file}::warnings");
                    let judge = move || Err(rendered(&warnings).into());
                    corpus.trials.push(Trial::test(name, judge));
                }
                for test in tests {
                    corpus.add(&file, &Arc::new(test));
                }
            }
            Err(diagnostics) => {
                corpus.trials.push(Trial::test(
                    file,
                    move || Err(rendered(&diagnostics).into()),
                ));
            }
        }
    }
    let Corpus {
        models,
        mut trials,
        named,
        ..
    } = corpus;
    for (name, model) in models.iter().filter(|(name, _)| name.starts_with("ptx")) {
        let (model, named) = (model.clone(), named.get(name).cloned().unwrap_or_default());
        trials.push(Trial::test(format!("axioms::{name}"), move || {
            every_axiom_is_named(&model, &named)
        }));
    }
    trials
}

/// The results of reading so far.
struct Corpus {
    models: BTreeMap<String, Arc<Model>>,
    trials: Vec<Trial>,
    /// By model: the axioms that expectations name.
    named: BTreeMap<String, BTreeSet<String>>,
    /// The number of expectations.
    expectations: usize,
}

/// The shipped models.
fn models() -> BTreeMap<String, Arc<Model>> {
    let signature = signature();
    let load = |name: &str| match load_shipped(name, &signature) {
        Some(Ok(model)) => (name.to_string(), Arc::new(model)),
        Some(Err(diagnostics)) => panic!("{}", rendered(&diagnostics)),
        None => panic!("`{name}` is listed and not there"),
    };
    Library::names().into_iter().map(load).collect()
}

/// The test files in a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|e| e.expect("readable").path())
        .collect();
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else if entry
            .extension()
            .is_some_and(|e| e == "toml" || e == "litmus")
        {
            found.push(entry);
        }
    }
    found
}

/// `litmus/a/b.toml` as `a/b`.
fn label(path: &Path) -> String {
    let inner = path
        .strip_prefix("litmus")
        .unwrap_or(path)
        .with_extension("");
    inner
        .components()
        .map(|c| c.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(|d| render(d, TextStyle::Plain))
        .collect::<Vec<_>>()
        .join("\n")
}

impl Corpus {
    /// Adds the trials of one test, and notes the axioms that it names by model.
    fn add(&mut self, file: &str, test: &Arc<LitmusTest>) {
        let name = format!("{file}::{}", test.name);
        // `kernels` checks expectations about runs.
        if test.expect.values().all(expects_nothing) && test.runs.is_empty() {
            self.trials.push(Trial::test(name.clone(), || {
                Err("this test expects nothing of any model".into())
            }));
        }
        for (model_name, expectation) in &test.expect {
            // `fencepost check` handles names of models that are not shipped.
            let Some(model) = self.models.get(model_name) else {
                continue;
            };
            if let (Some(Reachability::Forbidden), Some(axiom)) =
                (expectation.reachability, &expectation.axiom)
            {
                self.named
                    .entry(model_name.clone())
                    .or_default()
                    .insert(axiom.clone());
            }
            // Models of PTX judge other dialects through their mapping.
            let mapping =
                Mapping::current(test.program.dialect).filter(|_| model_name.starts_with("ptx"));
            let judged = match mapping.map(|mapping| mapping.lowered(test)) {
                None => test.clone(),
                Some(Ok(lowered)) => Arc::new(lowered),
                Some(Err(why)) => {
                    self.trials
                        .push(Trial::test(name.clone(), move || Err(why.into())));
                    continue;
                }
            };
            self.expectations += 1;
            for engine in engines(self.expectations) {
                let (test, model, expectation) =
                    (judged.clone(), model.clone(), expectation.clone());
                self.trials.push(Trial::test(
                    format!("{name}::{model_name}::{}", engine.name()),
                    move || decide(&test, &model, engine, &expectation),
                ));
            }
        }
        let is_asked = self.expectations.is_multiple_of(step());
        if test.program.dialect == Dialect::Ptx && is_small(test) && is_asked {
            let (test, model) = (test.clone(), self.models["ptx"].clone());
            self.trials
                .push(Trial::test(format!("agreement::{name}"), move || {
                    agree(&test, &model)
                }));
        }
    }
}

/// The engines for an expectation: one in a quick run, the others in a long one.
fn engines(number: usize) -> impl Iterator<Item = Engine> {
    let all = Engine::ALONE.iter().copied().enumerate();
    all.filter(move |(i, _)| step() == 1 || (number % Engine::ALONE.len() == *i) != is_long())
        .map(|(_, engine)| engine)
}

fn expects_nothing(e: &Expectation) -> bool {
    e.answers() == 0
}

fn is_small(test: &LitmusTest) -> bool {
    test.program
        .threads
        .iter()
        .map(|t| t.code.len())
        .sum::<usize>()
        <= SMALL
}

/// A busy machine is slow; the limit still catches queries that never end.
fn limits() -> Limits {
    Limits {
        timeout: Some(Duration::from_secs(600)),
        ..Limits::default()
    }
}

/// Decides all expectations of a test for a model.
fn decide(
    test: &LitmusTest,
    model: &Model,
    engine: Engine,
    expectation: &Expectation,
) -> Result<(), Failed> {
    let mut session = Session::new(test, model, engine, limits(), &[]);
    if expectation.axiom.is_some() {
        session = session.explaining();
    }
    if let Some(expected) = expectation.reachability {
        let required = expected == Reachability::Required;
        let negate = required || test.quantifier == Quantifier::ForAll;
        let answer = session.reachability(None, negate);
        let verdict = match expected {
            Reachability::Allowed => Verdict::Allowed,
            Reachability::Forbidden | Reachability::Required => Verdict::Forbidden,
        };
        compare(&answer, &verdict)?;
        // One engine is enough: all agree on these answers.
        if engine == Engine::Sat {
            readings(test, model, engine, (expectation, negate))?;
        }
        if let (Some(axiom), Verdict::Forbidden) = (&expectation.axiom, &verdict)
            && !answer.axioms.contains(axiom)
        {
            return Err(format!(
                "expected to rest on {axiom}, rests on [{}]",
                answer.axioms.join(", ")
            )
            .into());
        }
    }
    if let Some(racy) = expectation.race {
        let answer = session.race().ok_or("the model knows no races")?;
        compare(
            &answer,
            if racy {
                &Verdict::Racy
            } else {
                &Verdict::RaceFree
            },
        )?;
    }
    if let Some(undefined) = expectation.undefined {
        let answer = session.undefined().or_else(|| session.never_undefined());
        let answer = answer.ok_or("the model knows no undefined behaviour")?;
        compare(
            &answer,
            if undefined {
                &Verdict::Undefined
            } else {
                &Verdict::Defined
            },
        )?;
    }
    if let Some(misused) = expectation.lifetime {
        let answer = session.lifetime();
        let answer = answer.ok_or("the model knows no lifetimes")?;
        compare(
            &answer,
            if misused {
                &Verdict::Misused
            } else {
                &Verdict::Proper
            },
        )?;
    }
    let setting = LivenessTask::new(test, model);
    let mut liveness = Liveness::new(&setting, engine, limits(), &[]);
    for (progress, &hangs) in &expectation.liveness {
        let model = ProgressModel::from_name(progress).ok_or("no such progress model")?;
        let expected = if hangs {
            Verdict::Hangs
        } else {
            Verdict::Terminates
        };
        compare(&liveness.ask(model), &expected).map_err(|why| {
            let why = why.message().unwrap_or_default();
            Failed::from(format!("{progress}: {why}"))
        })?;
    }
    Ok(())
}

/// Decides a test's expectations under readings of the source; the test has to declare every answer
/// that depends on one.
fn readings(
    test: &LitmusTest,
    model: &Model,
    engine: Engine,
    (expectation, negate): (&Expectation, bool),
) -> Result<(), Failed> {
    let ask = |session: &mut Session<'_>| Some(session.reachability(None, negate));
    let mut session = Session::new(test, model, engine, limits(), &[]);
    let answer = session.reachability(None, negate);
    let depends = session.dependences(&answer.verdict, ask);
    let named = |option: &str| {
        expectation
            .readings
            .iter()
            .any(|(setting, _)| setting.words().0 == option)
    };
    // A test that sets a reading is about that reading.
    let is_about_one = test
        .options
        .iter()
        .any(|setting| setting.row().reading.is_some());
    if let Some(silent) = depends.iter().find(|d| !named(&d.option) && !is_about_one) {
        return Err(format!(
            "{}, and the test does not say so under `readings`",
            silent.text()
        )
        .into());
    }
    for (setting, expected) in &expectation.readings {
        let (name, value) = setting.words();
        let under = depends
            .iter()
            .find(|d| d.option == name)
            .and_then(|d| d.verdicts.iter().find(|v| v.0 == value));
        let verdict = under.map_or(answer.verdict.word(), |v| &v.1);
        let expected = if *expected == Reachability::Required {
            "forbidden"
        } else {
            expected.word()
        };
        if verdict != expected {
            return Err(
                format!("expected {expected} under {name} = {value}, got {verdict}").into(),
            );
        }
    }
    // Under other values, the answer is as expected.
    for depends in depends.iter().filter(|d| named(&d.option)) {
        for (value, word) in &depends.verdicts {
            let said = expectation
                .readings
                .iter()
                .any(|(s, _)| s.words() == (&depends.option, value));
            if !said && word != answer.verdict.word() {
                return Err(format!(
                    "{word} under {} = {value}, which the test does not say",
                    depends.option
                )
                .into());
            }
        }
    }
    Ok(())
}

fn compare(answer: &Answer, expected: &Verdict) -> Result<(), Failed> {
    if let Some(defect) = &answer.defect {
        return Err(format!("defect: {defect}").into());
    }
    if answer.verdict == *expected {
        return Ok(());
    }
    let why = answer
        .verdict
        .reason()
        .map(|r| format!(" ({r})"))
        .unwrap_or_default();
    Err(format!(
        "expected {}, got {}{why}",
        expected.word(),
        answer.verdict.word()
    )
    .into())
}

/// Checks that all engines list the same outcomes.
fn agree(test: &LitmusTest, model: &Model) -> Result<(), Failed> {
    // Two iterations are enough to compare the engines; the expectations cover loops of any length.
    let limits = Limits {
        bound: Some(2),
        ..limits()
    };
    let outcomes = Session::new(test, model, Engine::Both, limits, &[]).outcomes();
    match (&outcomes.defect, &outcomes.reason) {
        (Some(defect), _) => Err(format!("defect: {defect}").into()),
        (None, Some(Reason::Time)) => Err("out of time".into()),
        _ => Ok(()),
    }
}

fn every_axiom_is_named(model: &Model, named: &BTreeSet<String>) -> Result<(), Failed> {
    let is_implied = |name: &str| IMPLIED.iter().any(|(implied, _)| *implied == name);
    let missing: Vec<&str> = model
        .axioms
        .iter()
        .map(|a| a.name.as_str())
        .filter(|name| !named.contains(*name) && !is_implied(name))
        .collect();
    let unknown: Vec<&String> = named
        .iter()
        .filter(|n| model.axioms.iter().all(|a| a.name != **n))
        .collect();
    if !missing.is_empty() {
        return Err(format!("no expectation names {}", missing.join(", ")).into());
    }
    if !unknown.is_empty() {
        return Err(format!("expectations name axioms that the model has not: {unknown:?}").into());
    }
    Ok(())
}
