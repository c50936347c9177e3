//! Explanations of the tests of the repository, held against the engines and the executions that
//! they speak of.
//!
//! `FENCEPOST_SAMPLE` sets of how many tests (`0`: all), `FENCEPOST_SHARD=K/N` takes every `N`th of
//! them; `FENCEPOST_SUITE` names a folder of `.litmus` files to be explained besides, under the
//! models that `FENCEPOST_MODELS` names.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Session;
use cat::model::{Model, load_shipped};
use engine::skeleton::signature::signature;
use engine::thin_air::thin_air_axioms;
use engine::{Engine, Limits};
use front::litmus;
use program::Dialect;
use program::litmus::LitmusTest;
use verdict::{Breach, Link, Reason, Verdict, Witness};

/// How many (test, model) pairs a quick run explains.
const SAMPLE: usize = 30;

/// For one question.
const LIMITS: Limits = Limits {
    bound: Some(4),
    timeout: Some(Duration::from_secs(20)),
};

pub(crate) fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|e| e.expect("it can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, ending, out);
        } else if path.extension().is_some_and(|e| e == ending) {
            out.push(path);
        }
    }
}

/// Whether a model is of the language of a test: without a mapping, that is all it can judge.
fn speaks(test: &LitmusTest, model: &str) -> bool {
    model == "sc" || model.starts_with("ptx") == (test.program.dialect == Dialect::Ptx)
}

/// The tests of one file in `every`, with the models that judge them.
fn corpus(every: usize) -> Vec<(LitmusTest, Vec<String>)> {
    let mut tests = Vec::new();
    let mut paths = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus"),
        "toml",
        &mut paths,
    );
    for path in paths.into_iter().step_by(every) {
        for test in litmus::read_path(&path).unwrap_or_default() {
            let models: Vec<String> = test
                .expect
                .keys()
                .filter(|m| speaks(&test, m))
                .cloned()
                .collect();
            tests.push((test, models));
        }
    }
    if let (Some(suite), Ok(models)) = (
        std::env::var_os("FENCEPOST_SUITE"),
        std::env::var("FENCEPOST_MODELS"),
    ) {
        let mut paths = Vec::new();
        files(Path::new(&suite), "litmus", &mut paths);
        let models: Vec<String> = models.split(',').map(str::to_owned).collect();
        let read = paths
            .iter()
            .flat_map(|path| litmus::read_path(path).unwrap_or_default());
        tests.extend(read.map(|test| (test, models.clone())));
    }
    tests
}

/// Whether an execution shows a pair of a relation; orders with all that follows by transitivity.
/// `None`: it does not show the relation.
fn shown(witness: &Witness, name: &str, from: usize, to: usize) -> Option<bool> {
    let all = witness.relations.iter().chain(&witness.derived);
    let (_, pairs) = all.clone().find(|(known, _)| known == name)?;
    let (mut seen, mut todo) = (vec![false; witness.events.len()], vec![from]);
    while let Some(at) = todo.pop() {
        for &(_, b) in pairs.iter().filter(|p| p.0 == at) {
            if !std::mem::replace(&mut seen[b], true)
                && matches!(name, "po" | "co" | "mo" | "sc" | "S")
            {
                todo.push(b);
            }
        }
    }
    Some(seen[to])
}

/// A link against the execution beside it, as far as that shows the relation; and all that it is
/// made of.
fn check_link(link: &Link, witness: &Witness, counts: &mut Counts) {
    assert!(link.from < witness.events.len() && link.to < witness.events.len());
    if !link.is_set {
        let (name, turned) = match link.relation.strip_suffix("^-1") {
            Some(name) => (name, (link.to, link.from)),
            None => (link.relation.as_str(), (link.from, link.to)),
        };
        match shown(witness, name, turned.0, turned.1) {
            Some(there) => {
                counts.edges += 1;
                assert_eq!(
                    there, link.holds,
                    "{} from {} to {}",
                    link.relation, link.from, link.to
                );
            }
            None => {
                // One without a name, or with no pair at all.
                counts.unseen += usize::from(link.holds);
                assert!(
                    !link.holds || !matches!(name, "po" | "rf" | "co" | "fr"),
                    "no {name} is shown"
                );
            }
        }
    }
    link.because
        .iter()
        .for_each(|part| check_link(part, witness, counts));
}

fn check_breach(breach: &Breach, counts: &mut Counts) {
    let chain = &breach.chain;
    chain
        .iter()
        .chain(&breach.besides)
        .chain(breach.made.iter().map(|m| &m.link))
        .for_each(|l| check_link(l, &breach.execution, counts));
    assert!(
        chain.windows(2).all(|w| w[0].to == w[1].from),
        "the links of {} meet",
        breach.axiom
    );
    assert!(chain.iter().all(|l| l.holds && !l.is_set));
    assert!(
        !chain.is_empty() || !breach.besides.is_empty(),
        "{} is broken by something",
        breach.axiom
    );
    if let (true, Some(first), Some(last)) = (breach.closes, chain.first(), chain.last()) {
        assert_eq!(first.from, last.to, "the cycle of {} closes", breach.axiom);
    }
    for made in &breach.made {
        assert_eq!(
            (chain[made.first].from, chain[made.last].to),
            (made.link.from, made.link.to)
        );
    }
}

fn load(name: &str) -> Option<Model> {
    load_shipped(name, &signature())?.ok()
}

fn verdict(test: &LitmusTest, model: &Model, negate: bool) -> Verdict {
    // Other engines than the one that found the explanation.
    let answer = Session::new(test, model, Engine::Both, LIMITS, &[]).reachability(None, negate);
    assert_eq!(answer.defect, None, "{}", test.name);
    answer.verdict
}

/// What came of the tests.
#[derive(Debug, Default)]
struct Counts {
    forbidden: usize,
    allowed: usize,
    undecided: usize,
    breaches: usize,
    /// Edges that were looked up in the execution beside them, and expressions that it has no name
    /// for.
    edges: usize,
    unseen: usize,
    needed: usize,
    nothing_needed: usize,
    lacking: usize,
    links: usize,
    nothing_forbids: usize,
    /// Changed programs that were decided again.
    programs: usize,
    /// Those that took the other engine too long.
    programs_undecided: usize,
    given_up: BTreeMap<String, usize>,
    slowest: (Duration, String),
}

fn check(test: &LitmusTest, model: &Model, counts: &mut Counts) {
    let negate = test.quantifier == litmus::Quantifier::ForAll;
    let start = Instant::now();
    let mut session = Session::new(test, model, Engine::Auto, LIMITS, &[])
        .with_explanations()
        .detailed();
    let answer = session.reachability(None, negate);
    let name = format!("{} under {}", test.name, model.name);
    counts.slowest = counts.slowest.clone().max((start.elapsed(), name.clone()));
    assert_eq!(answer.defect, None, "{name}");
    let Some(explanation) = answer.explanation else {
        counts.undecided += 1;
        return;
    };
    if let Some(reason) = &explanation.given_up {
        *counts.given_up.entry(reason.to_string()).or_default() += 1;
    }
    let claims = session.claims();
    match answer.verdict {
        Verdict::Forbidden => {
            counts.forbidden += 1;
            explanation
                .broken
                .iter()
                .for_each(|b| check_breach(b, counts));
            counts.breaches += explanation.broken.len();
            if explanation.given_up.is_none() {
                let named: Vec<&String> = explanation.broken.iter().map(|b| &b.axiom).collect();
                assert_eq!(named, answer.axioms.iter().collect::<Vec<_>>(), "{name}");
            }
            // An answer that rests on all axioms says so, and names none.
            let unnamed = matches!(
                explanation.given_up,
                Some(Reason::AddedUp(_) | Reason::InOrder(_))
            );
            if !(unnamed && answer.axioms.is_empty()) {
                check_axioms(test, model, negate, &answer.axioms, &name);
            }
            check_claims(&claims, model, negate, &name, counts);
            let Some(needs) = explanation.needs else {
                return;
            };
            match needs.given_up {
                Some(reason) => *counts.given_up.entry(reason.to_string()).or_default() += 1,
                None => {
                    assert!(!claims.is_empty(), "{name}");
                    counts.nothing_needed += usize::from(needs.needed.is_empty());
                    counts.needed += needs.needed.len();
                }
            }
        }
        Verdict::Allowed => {
            counts.allowed += 1;
            let missing = explanation
                .missing
                .expect("an allowed outcome lacks something");
            missing.breach.iter().for_each(|b| check_breach(b, counts));
            counts.links += missing.links.len();
            // Another reading may forbid the outcome without an edit.
            let as_it_stands = missing.edits.is_empty() && missing.under.is_some();
            let told = claims.is_empty() == missing.edits.is_empty();
            assert!(as_it_stands || told, "{name}");
            check_claims(&claims, model, negate, &name, counts);
            if missing.edits.is_empty() {
                counts.nothing_forbids += 1;
                assert!(missing.none.is_some(), "{name}: nothing is said");
            } else {
                counts.lacking += 1;
                let told = missing.breach.is_none() || !missing.links.is_empty();
                assert!(told, "{name}: which link is missing?");
            }
        }
        _ => {}
    }
}

/// What is said of changed programs, decided again with the other engine too: some forbid the
/// outcome, and with anything less they do not.
fn check_claims(
    claims: &[(LitmusTest, bool)],
    model: &Model,
    negate: bool,
    name: &str,
    counts: &mut Counts,
) {
    for (changed, forbids) in claims {
        match verdict(changed, model, negate) {
            Verdict::Undecided(_) => counts.programs_undecided += 1,
            found => {
                counts.programs += 1;
                assert_eq!(
                    found == Verdict::Forbidden,
                    *forbids,
                    "{name}: {:#?}",
                    changed.program.threads
                );
            }
        }
    }
}

/// The axioms forbid the outcome, and any fewer of them do not.
fn check_axioms(test: &LitmusTest, model: &Model, negate: bool, names: &[String], what: &str) {
    let only = |names: &[&String]| {
        let mut less = model.clone();
        less.axioms.retain(|a| names.contains(&&a.name));
        let answer =
            Session::new(test, &less, Engine::Auto, LIMITS, &[]).reachability(None, negate);
        answer.verdict
    };
    let all: Vec<&String> = names.iter().collect();
    let thin_air: Vec<&String> = thin_air_axioms(model)
        .iter()
        .map(|&i| &model.axioms[i].name)
        .collect();
    let tame = thin_air.is_empty() || names.iter().any(|n| thin_air.contains(&n));
    // Without the axiom against them, values out of thin air can be too many to be sure.
    if tame {
        match only(&all) {
            // Nor where none of them is what keeps values from going on without end: other orders
            // may be needed for that.
            Verdict::Undecided(Reason::ThinAir) => {}
            Verdict::Undecided(_) if names.is_empty() => {}
            found => assert_eq!(found, Verdict::Forbidden, "{what}: {names:?}"),
        }
    }
    for spared in names {
        let fewer: Vec<&String> = names.iter().filter(|n| *n != spared).collect();
        let said = only(&fewer);
        assert_ne!(said, Verdict::Forbidden, "{what}: {spared} can be spared");
    }
}

/// Whether more is tested than a quick run does.
pub(crate) fn is_long() -> bool {
    std::env::var_os("FENCEPOST_LONG").is_some()
}

/// Of how many things something is asked, where a quick run asks of so many (`0`: of all).
pub(crate) fn sample(quick: usize) -> usize {
    let said = std::env::var("FENCEPOST_SAMPLE")
        .ok()
        .and_then(|n| n.parse().ok());
    said.unwrap_or(if is_long() { 4 * quick } else { quick })
}

/// Every `N`th of some things, from the `K`th: `K/N`.
pub(crate) fn shard() -> (usize, usize) {
    let parts = std::env::var("FENCEPOST_SHARD").ok();
    let parts = parts.as_ref().and_then(|text| text.split_once('/'));
    parts
        .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)))
        .unwrap_or((0, 1))
}

#[test]
fn explanations_of_the_corpus_are_true() {
    let sample = sample(SAMPLE);
    let mut models: BTreeMap<String, Option<Model>> = BTreeMap::new();
    // Files take longer to read than what is asked of a few of their tests.
    let corpus = corpus(if sample == 0 { 1 } else { 10 });
    let mut pairs = Vec::new();
    for (test, names) in &corpus {
        for name in names.iter().filter(|_| test.condition.is_some()) {
            models.entry(name.clone()).or_insert_with(|| load(name));
            pairs.push((test, name));
        }
    }
    let step = if sample == 0 {
        1
    } else {
        pairs.len().div_ceil(sample)
    };
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    let (first, shards) = shard();
    for (i, (test, name)) in pairs
        .iter()
        .enumerate()
        .step_by(step)
        .skip(first)
        .step_by(shards)
    {
        let Some(model) = &models[*name] else {
            continue;
        };
        let start = Instant::now();
        // One that fails keeps no other from being looked at.
        let checked =
            std::panic::catch_unwind(AssertUnwindSafe(|| check(test, model, &mut counts)));
        if checked.is_err() {
            failed.push(format!("{} under {name}", test.name));
        }
        if sample == 0 {
            eprintln!(
                "{i}/{}: {:?} {} under {name}",
                pairs.len(),
                start.elapsed(),
                test.name
            );
        }
    }
    eprintln!("{counts:#?}");
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
    assert!(counts.forbidden > 5 && counts.allowed > 5 && counts.needed > 0 && counts.links > 0);
}

/// Facts that rest on the axioms narrow the values of this test. No query that leaves an axiom out
/// may use them.
#[test]
fn values_that_axioms_narrow_hide_no_axiom() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("litmus/ptx-async/11-kernels/Dependent.copies.toml");
    let text = std::fs::read(&file).expect("the file is there");
    let tests = litmus::parse("Dependent.copies.toml", &text).expect("good tests");
    let test = tests
        .iter()
        .find(|test| test.name.ends_with("+load.barrier"))
        .expect("the file has it");
    let model = load("sc").expect("a shipped model");
    let mut session = Session::new(test, &model, Engine::Sat, LIMITS, &[]).with_explanations();
    let answer = session.reachability(None, false);
    assert_eq!(answer.verdict, Verdict::Forbidden);
    assert_eq!(answer.axioms, ["SC"]);
}
