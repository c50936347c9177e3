//! Compares the answers of one run for all executions with those of the exact engines, on the tests
//! of the project that both decide.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use fencepost::check::liveness::{Liveness, LivenessTask};
use fencepost::check::operational::{SteadyAnswer, steady};
use fencepost::check::{Engine, Limits, ProgressModel, Session};
use fencepost::litmus::{self, LitmusTest};
use fencepost::model::ir::Model;
use fencepost::program::Dialect;
use fencepost::verdict::Verdict;
use testkit::mbarriers;
use testkit::suite::{files, number, programs, sample, shipped};

const LIMITS: Limits = Limits {
    bound: None,
    timeout: Some(Duration::from_secs(10)),
};

/// The claims of a run: each is a verdict that the exact engines should give.
pub(crate) fn claims(test: &LitmusTest, model: &Model) -> Vec<(&'static str, Verdict)> {
    let deadline = Some(Instant::now() + Duration::from_secs(10));
    match steady(test, model, &[], deadline) {
        SteadyAnswer::Decided {
            races,
            waits,
            missable,
            doubt,
            ..
        } => {
            let is_clean = races.is_empty() && waits.is_empty() && missable.is_none();
            let defined = (is_clean && doubt.is_none()).then_some(("undefined", Verdict::Defined));
            let race = match races.is_empty() {
                true => Verdict::RaceFree,
                false => Verdict::Racy,
            };
            let ends = match (waits.is_empty(), missable) {
                (false, _) => Some(Verdict::Hangs),
                (true, None) if races.is_empty() => Some(Verdict::Terminates),
                (true, _) => None,
            };
            let ends = ends.map(|verdict| ("liveness", verdict));
            let all = [("race", race)].into_iter().chain(ends).chain(defined);
            all.collect()
        }
        SteadyAnswer::Misused(_, races) => {
            let race = (!races.pairs.is_empty()).then_some(("race", Verdict::Racy));
            let undefined = ("undefined", Verdict::Undefined);
            [undefined].into_iter().chain(race).collect()
        }
        SteadyAnswer::HangsOnce { races, .. } => {
            let race = (!races.pairs.is_empty()).then_some(("race", Verdict::Racy));
            let hangs = ("liveness", Verdict::Hangs);
            [hangs].into_iter().chain(race).collect()
        }
        SteadyAnswer::RacyUntil(..) => vec![("race", Verdict::Racy)],
        SteadyAnswer::Open(_) => Vec::new(),
    }
}

/// The verdict of the exact engines.
fn exact(test: &LitmusTest, model: &Model, property: &str) -> Option<Verdict> {
    let mut session = Session::new(test, model, Engine::Auto, LIMITS, &[]);
    Some(match property {
        "race" => session.race()?.verdict,
        "undefined" => match session.undefined() {
            Some(answer) => answer.verdict,
            None => session.never_undefined()?.verdict,
        },
        _ => {
            let task = LivenessTask::new(test, model);
            let answer = Liveness::new(&task, Engine::Auto, LIMITS, &[]).ask(ProgressModel::Fair);
            answer.verdict
        }
    })
}

/// Comparisons of claims with verdicts.
#[derive(Default)]
pub(crate) struct Comparison {
    counts: BTreeMap<String, usize>,
    pub(crate) different: Vec<String>,
}

impl Comparison {
    pub(crate) fn add(&mut self, test: &LitmusTest, model: &Model) {
        for (property, claim) in claims(test, model) {
            let verdict = exact(test, model, property);
            let Some(verdict) = verdict.filter(|v| v.reason().is_none()) else {
                continue;
            };
            let kind = format!("{property} {}", claim.word());
            *self.counts.entry(kind).or_default() += 1;
            if verdict != claim {
                let (run, exact) = (claim.word(), verdict.word());
                let name = &test.name;
                self.different
                    .push(format!("{name}: {run} in a run, {exact}"));
            }
        }
    }

    pub(crate) fn check(&self, least: usize) {
        println!("{:?}", self.counts);
        assert!(self.different.is_empty(), "{}", self.different.join("\n"));
        let all: usize = self.counts.values().sum();
        assert!(all >= least, "too few: {:?}", self.counts);
    }
}

#[test]
fn one_run_agrees_with_the_exact_engines() {
    let models = [
        (Dialect::Ptx, shipped("ptx")),
        (Dialect::Cuda, shipped("cuda")),
    ];
    let mut comparison = Comparison::default();
    for file in sample(files(Path::new("litmus"), &["toml", "cu"])) {
        let bytes = std::fs::read(&file).expect("readable");
        let Ok(tests) = litmus::parse(file.to_str().expect("UTF-8"), &bytes) else {
            continue;
        };
        let is_plain = |test: &&LitmusTest| {
            test.filter.is_none() && test.options.is_empty() && test.program.assembly().is_none()
        };
        for test in tests.iter().filter(is_plain) {
            let of_dialect = models.iter().find(|(of, _)| *of == test.program.dialect);
            if let Some((_, model)) = of_dialect {
                comparison.add(test, model);
            }
        }
    }
    comparison.check(50);
}

#[test]
fn one_run_agrees_on_random_programs() {
    let model = shipped("ptx");
    let mut comparison = Comparison::default();
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    for seed in first..first + count {
        for make in [
            mbarriers::program,
            mbarriers::with_copies,
            mbarriers::with_operations,
        ] {
            let source = make(seed, 4);
            let wrong = |source: &mbarriers::Source| {
                let mut one = Comparison::default();
                one.add(&source.read("generated"), &model);
                one
            };
            let mut one = wrong(&source);
            if !one.different.is_empty() {
                let small = source.shrink(|s| wrong(s).different == one.different);
                let text = small.text(&format!("Seed-{seed}"));
                one.different.push(text);
            }
            comparison.different.extend(one.different);
            for (kind, count) in one.counts {
                *comparison.counts.entry(kind).or_default() += count;
            }
        }
    }
    comparison.check(count as usize / 8);
}
