//! Checks that some test of `litmus/` notices each clause that is missing from a model.
//!
//! `mutants/MODEL.toml` lists every clause of the model under one of these keys:
//! - `noticed`: with a test whose expectation fails without it;
//! - `redundant`: with the laws by which [`testkit::redundant`] proves that the model has the same
//!   meaning without it;
//! - `equivalent`: with another reason why no test can notice;
//! - `open`: no test of at most [`LARGEST`] instructions notices, for whatever reason.
//!
//! The quick form runs the named tests, and repeats a part of the proofs. With `FENCEPOST_LONG` it
//! repeats all proofs, and runs tests of that size (a part or all, by [`testkit::suite`]) for the
//! clauses without a test. No noticed clause may have a proof of redundancy. `BLESS=1` searches for
//! entries that are missing in the file, smallest tests first; together with `FENCEPOST_LONG` it
//! searches for all clauses without a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{Expectation, LitmusTest, Quantifier, Reachability, read_path};
use fencepost::model::clauses::{Clause, ModelText};
use fencepost::model::ir::{Axiom, Model, TestEffect};
use fencepost::model::{Library, Shipped};
use fencepost::program::Dialect;
use fencepost::program::mapping::Mapping;
use fencepost::program::options::Setting;
use fencepost::skeleton::signature::{fingerprint, signature};
use fencepost::verdict::{Answer, Reason, Verdict};
use testkit::redundant::Prover;
use testkit::suite::{files, in_parallel, is_long, sample, step};

/// Larger tests are not used: smaller ones show the same.
const LARGEST: usize = 44;

/// For one of this number of noticed clauses, the quick form checks that there is no proof of
/// redundancy.
const SAMPLED: usize = 16;

/// The file's entries about a model's clauses.
#[derive(Default, PartialEq)]
struct Known {
    /// By clause: the test that notices.
    noticed: BTreeMap<String, String>,
    /// By clause: the laws by which the model has the same meaning without it, see
    /// [`testkit::redundant`].
    redundant: BTreeMap<String, String>,
    /// By clause: the reason why no test can notice.
    equivalent: BTreeMap<String, String>,
    /// By clause: further remarks.
    open: BTreeMap<String, String>,
}

impl Known {
    fn read(path: &Path) -> Known {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let table: toml::Table = text
            .parse()
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let entries = |key: &str| {
            let entries = table
                .get(key)
                .and_then(|v| v.as_table())
                .cloned()
                .unwrap_or_default();
            entries
                .into_iter()
                .map(|(k, v)| (k, v.as_str().expect("a string").to_owned()))
                .collect()
        };
        let [noticed, redundant] = ["noticed", "redundant"].map(entries);
        Known {
            noticed,
            redundant,
            equivalent: entries("equivalent"),
            open: entries("open"),
        }
    }

    /// The entries as text, in the order of the clauses.
    fn written(&self, model: &str, clauses: &[Clause]) -> String {
        let mut text = format!(
            "# Clauses of `{model}`, and what notices that one is missing: tests/engines/mutants.rs.\n"
        );
        let tables = [
            ("noticed", &self.noticed),
            ("redundant", &self.redundant),
            ("equivalent", &self.equivalent),
            ("open", &self.open),
        ];
        for (head, entries) in tables
            .into_iter()
            .filter(|(_, entries)| !entries.is_empty())
        {
            let _ = writeln!(text, "\n[{head}]");
            for clause in clauses {
                if let Some(entry) = entries.get(&clause.name) {
                    let _ = writeln!(
                        text,
                        "'{}' = {}",
                        clause.name,
                        toml::Value::from(entry.as_str())
                    );
                }
            }
        }
        text
    }
}

/// The tag of tests that the text of a model leaves open.
const LEFT_OPEN: &str = "left-open";

/// A test and its expectation for a model.
struct Case {
    /// The file without its ending; with the test's name, if the file has several.
    name: String,
    test: LitmusTest,
    expected: Expectation,
    /// Whether the text leaves the behaviour open, so that the answer is undecided.
    is_open: bool,
    size: usize,
    /// The answers of the whole model, computed on demand.
    says: OnceLock<BTreeSet<u64>>,
}

/// The tests of the repository by their files.
static TESTS: LazyLock<Vec<(PathBuf, Vec<LitmusTest>)>> = LazyLock::new(|| {
    let files = files(Path::new("litmus"), &["toml"]);
    let read = in_parallel(&files, |_, path| read_path(path).unwrap_or_default());
    files.into_iter().zip(read).collect()
});

/// The tests with expectations for a model, smallest first.
fn cases(model: &Model) -> Vec<Case> {
    let of_file = |(path, tests): &(PathBuf, Vec<LitmusTest>)| {
        let several = tests.len() > 1;
        let mut cases = Vec::new();
        for test in tests {
            let is_open = test.tags.iter().any(|tag| tag == LEFT_OPEN)
                && Some(test.program.dialect) == Dialect::of_model(&model.name);
            let expected = test.expect.get(&model.name).cloned();
            let Some(expected) = expected.or_else(|| is_open.then(Expectation::default)) else {
                continue;
            };
            let file = path
                .strip_prefix("litmus")
                .unwrap_or(path)
                .with_extension("");
            let name = match several {
                true => format!("{}::{}", file.display(), test.name),
                false => file.display().to_string(),
            };
            let mapping = Mapping::current(test.program.dialect)
                .filter(|_| Dialect::of_model(&model.name) == Some(Dialect::Ptx));
            let test = match mapping {
                Some(mapping) => mapping
                    .lowered(test)
                    .expect("tests that expect something can be mapped"),
                None => test.clone(),
            };
            let size = test
                .program
                .threads
                .iter()
                .map(|t| t.code.len())
                .sum::<usize>();
            cases.push(Case {
                name,
                test,
                expected,
                is_open,
                size,
                says: OnceLock::new(),
            });
        }
        cases
    };
    let mut cases: Vec<Case> = TESTS.iter().flat_map(of_file).collect();
    cases.sort_by_key(|case| case.size);
    cases
}

/// The answers of a model about a test, as far as an expectation could be about them.
fn says(model: &Model, test: &LitmusTest) -> BTreeSet<u64> {
    fingerprint(
        model,
        &test.program,
        &[
            TestEffect::Race,
            TestEffect::Undefined,
            TestEffect::Lifetime,
            TestEffect::ImplementationDefined,
        ],
    )
}

/// Whether an expectation of the test fails under the model.
fn fails(case: &Case, model: &Model) -> bool {
    let Case { test, expected, .. } = case;
    let session = |set: &[Setting]| Session::new(test, model, Engine::Auto, Limits::default(), set);
    let differs = |answer: Option<Answer>, expected: Verdict| {
        // The answer leaves only implementation-defined behaviour open.
        let is_open = |reason: &Reason| !matches!(reason, Reason::ImplementationDefined { .. });
        answer.is_none_or(|answer| {
            !answer.verdict.reason().is_some_and(is_open) && answer.verdict != expected
        })
    };
    let reaches = |set: &[Setting], expected: Reachability| {
        let negate = expected == Reachability::Required || test.quantifier == Quantifier::ForAll;
        let verdict = match expected {
            Reachability::Allowed => Verdict::Allowed,
            Reachability::Forbidden | Reachability::Required => Verdict::Forbidden,
        };
        differs(Some(session(set).reachability(None, negate)), verdict)
    };
    let race = |racy: bool| {
        if racy {
            Verdict::Racy
        } else {
            Verdict::RaceFree
        }
    };
    let undefined = |undefined: bool| {
        if undefined {
            Verdict::Undefined
        } else {
            Verdict::Defined
        }
    };
    let lifetime = |misused: bool| {
        if misused {
            Verdict::Misused
        } else {
            Verdict::Proper
        }
    };
    let is_decided = || {
        let answers = [
            Some(session(&[]).reachability(None, false)),
            session(&[]).race(),
        ];
        let reasons = answers
            .iter()
            .flatten()
            .map(|answer| answer.verdict.reason());
        let is_decided = |reason| !matches!(reason, Some(&Reason::ImplementationDefined { .. }));
        reasons.into_iter().any(is_decided)
    };
    (case.is_open && is_decided())
        || expected
            .reachability
            .is_some_and(|expected| reaches(&[], expected))
        || expected
            .readings
            .iter()
            .any(|&(reading, expected)| reaches(&[reading], expected))
        || expected
            .race
            .is_some_and(|racy| differs(session(&[]).race(), race(racy)))
        || expected.undefined.is_some_and(|is_undefined| {
            let mut session = session(&[]);
            let answer = session.undefined().or_else(|| session.never_undefined());
            differs(answer, undefined(is_undefined))
        })
        || expected
            .lifetime
            .is_some_and(|misused| differs(session(&[]).lifetime(), lifetime(misused)))
}

/// The result for a clause.
enum Found {
    /// The entry is right, as far as it was checked.
    AsKnown,
    /// By these laws, the model has the same meaning without it.
    Redundant(String),
    /// This test notices, or none of all tests.
    Noticed(Option<String>),
}

/// The material for judging the clauses of a model.
struct Judge<'a> {
    text: &'a ModelText<'a>,
    model: &'a Model,
    laws: &'a Model,
    cases: &'a [Case],
    known: &'a Known,
    bless: bool,
}

impl Judge<'_> {
    /// The result for the clause of that number, the error in its entry, and the number of tests
    /// run.
    fn judge(&self, number: usize, clause: &Clause) -> (Found, Option<String>, usize) {
        let Judge {
            text,
            model,
            laws,
            cases,
            known,
            bless,
        } = *self;
        let name = &clause.name;
        let as_known = |wrong, asked| (Found::AsKnown, wrong, asked);
        // A clause without which the text is no model needs no test.
        let Ok(mutant) = text.without(clause) else {
            return as_known(None, 0);
        };
        let proof = || Prover::new(model, laws).proof(&mutant);
        let named = known.noticed.get(name);
        let case = named.and_then(|named| cases.iter().find(|case| case.name == *named));
        let mut asked = usize::from(case.is_some());
        if case.is_some_and(|case| fails(case, &mutant)) {
            let both = (is_long() || number.is_multiple_of(SAMPLED)) && proof().is_some();
            return as_known(
                both.then(|| format!("{name}: proved redundant, and noticed")),
                asked,
            );
        }
        let proved = known.redundant.get(name);
        if proved.is_some() && !bless && !is_long() && !number.is_multiple_of(step()) {
            return as_known(None, asked);
        }
        let mut wrong = None;
        if proved.is_some() || bless || is_long() {
            let proof = proof();
            if proof.as_ref() != proved && !bless {
                wrong = Some(format!(
                    "{name}: proved redundant by {proof:?}, not by {proved:?}"
                ));
            }
            if let Some(proof) = proof {
                return (Found::Redundant(proof), wrong, asked);
            }
        }
        let unnoticed = known.equivalent.contains_key(name) || known.open.contains_key(name);
        if !bless && (named.is_some() || !unnoticed) {
            wrong = Some(match named {
                Some(named) => format!("{name}: {named} does not notice that it is missing"),
                None => format!("{name}: nothing is said to notice that it is missing"),
            });
            return as_known(wrong, asked);
        }
        if !is_long() && (!bless || unnoticed && named.is_none()) {
            return as_known(wrong, asked);
        }
        let differs = |case: &Case| {
            *case.says.get_or_init(|| says(model, &case.test)) != says(&mutant, &case.test)
        };
        let small = cases
            .iter()
            .filter(|case| case.size <= LARGEST)
            .step_by(if bless { 1 } else { step() });
        let found = small.filter(|case| differs(case)).find(|case| {
            asked += 1;
            fails(case, &mutant)
        });
        if let Some(case) = found.filter(|_| !bless) {
            wrong = Some(format!("{name}: {} notices that it is missing", case.name));
        }
        (
            Found::Noticed(found.map(|case| case.name.clone())),
            wrong,
            asked,
        )
    }
}

fn noticed(name: &str) {
    let signature = signature();
    let text = ModelText {
        main: Library::model(name).expect("shipped"),
        name,
        includes: &Shipped,
        signature: &signature,
        prelude: None,
    };
    let (model, clauses) = text.clauses().unwrap_or_else(|errors| panic!("{errors:?}"));
    let path = PathBuf::from(format!("tests/engines/mutants/{name}.toml"));
    let bless = std::env::var_os("BLESS").is_some();
    let mut known = Known::read(&path);
    let cases = cases(&model);
    let laws = laws(&model);
    laws_hold(&laws, &cases);
    let judge = Judge {
        text: &text,
        model: &model,
        laws: &laws,
        cases: &cases,
        known: &known,
        bless,
    };
    let judged = in_parallel(&clauses, |number, clause| judge.judge(number, clause));
    let asked: usize = judged.iter().map(|(_, _, asked)| asked).sum();
    let mut wrong: Vec<String> = Vec::new();
    for (clause, (found, why, _)) in clauses.iter().zip(judged) {
        wrong.extend(why);
        let name = &clause.name;
        match found {
            Found::AsKnown => {}
            Found::Redundant(laws) => {
                for table in [&mut known.noticed, &mut known.equivalent, &mut known.open] {
                    table.remove(name);
                }
                known.redundant.insert(name.clone(), laws);
            }
            Found::Noticed(case) => {
                known.redundant.remove(name);
                match case {
                    Some(case) => {
                        known.equivalent.remove(name);
                        known.open.remove(name);
                        known.noticed.insert(name.clone(), case);
                    }
                    None => {
                        known.noticed.remove(name);
                        if !known.equivalent.contains_key(name) {
                            known.open.entry(name.clone()).or_default();
                        }
                    }
                }
            }
        }
    }
    eprintln!(
        "{name}: {} clauses, {asked} questions about {} tests",
        clauses.len(),
        cases.len()
    );
    let is_clause = |name: &&String| !clauses.iter().any(|c| c.name == **name);
    let tables = [
        &known.noticed,
        &known.redundant,
        &known.equivalent,
        &known.open,
    ];
    let listed = tables.into_iter().flat_map(|table| table.keys());
    let gone: Vec<String> = listed.filter(is_clause).cloned().collect();
    let written = known.written(name, &clauses);
    if bless {
        std::fs::write(&path, &written).expect("writable");
    } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&written) {
        wrong.push(format!(
            "{}: not as it would be written: BLESS=1; no clauses: {gone:?}",
            path.display()
        ));
    }
    for (clause, _) in known.equivalent.iter().filter(|(_, why)| why.is_empty()) {
        wrong.push(format!(
            "{clause}: nothing says why no test can notice that it is missing"
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_model_loses_one_clause_at_a_time() {
    let text = "option red = atom\n\
        free rf : function within (W * R) & loc\n\
        free co : order within ((W * W) & loc) \\ id containing (IW * W) & loc\n\
        values rf\nfinal co\n\
        let both(r) = r & (po | loc)\n\
        let unused(r) = r & po\n\
        acyclic both(rf) | both(co) as First\n\
        flag ~empty both(co) as second\n";
    let signature = signature();
    let main = fencepost::diag::SourceFile::new("m.cat", text);
    let text = ModelText {
        main,
        name: "m",
        includes: &Shipped,
        signature: &signature,
        prelude: None,
    };
    let (model, clauses) = text.clauses().expect("well-formed");
    let names: Vec<&str> = clauses.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "option red = no-acquire",
            "rf: & W * R",
            "rf: & loc",
            "co: & W * W",
            "co: & loc",
            "co: \\ id",
            "co: & IW * W",
            "co: at least IW * W & loc",
            "co: & loc #2",
            "both: & r",
            "both: | po",
            "both: & po | loc",
            "both: | loc",
            "axiom First",
            "First: | both(rf)",
            "First: | both(co)",
            "flag second",
        ]
    );
    let without = |name: &str| {
        let clause = clauses
            .iter()
            .find(|c| c.name == name)
            .expect("it was listed");
        text.without(clause).expect("well-formed")
    };
    let first =
        |model: &Model| fencepost::model::text::expression(model, model.axioms[0].node, true);
    assert_eq!(first(&model), "rf & (loc | po) | co & (loc | po)");
    assert_eq!(first(&without("both: | po")), "loc & rf | loc & co");
    assert_eq!(first(&without("both: & po | loc")), "rf | co");
    assert_eq!(first(&without("First: | both(rf)")), "co & (loc | po)");
    assert_eq!(
        (
            without("axiom First").axioms.len(),
            without("axiom First").flags.len()
        ),
        (0, 1)
    );
    assert_eq!(
        (
            without("flag second").axioms.len(),
            without("flag second").flags.len()
        ),
        (1, 0)
    );
    assert!(
        without("co: at least IW * W & loc").free[1]
            .containing
            .is_none()
    );
    assert_ne!(without(names[0]).options, model.options);
}

/// The laws of a model's language, as a model with the same options and a flag for each law.
fn laws(model: &Model) -> Model {
    let folder = Path::new("tests/engines/mutants");
    let own =
        std::fs::read_to_string(folder.join(format!("{}.cat", model.name))).unwrap_or_default();
    let text = std::fs::read_to_string(folder.join("laws.cat")).expect("readable") + &own;
    let main = fencepost::diag::SourceFile::new("laws.cat", text);
    let laws = fencepost::model::load(main, "laws", &Shipped, &signature(), None);
    Model {
        options: model.options.clone(),
        ..laws.unwrap_or_else(|errors| panic!("{errors:?}"))
    }
}

/// Checks that each law holds in the executions of all tests, as far as they can be enumerated.
fn laws_hold(laws: &Model, cases: &[Case]) {
    let cases: Vec<&Case> = sample(cases).collect();
    let judged = in_parallel(&cases, |_, Case { name, test, .. }| {
        let undefined =
            |m: &Model| Session::new(test, m, Engine::Auto, Limits::default(), &[]).undefined();
        let answer = undefined(laws)?;
        let mut broken = Vec::new();
        if answer.verdict == Verdict::Undefined {
            let alone = |flag: &&Axiom| {
                let flags = vec![Axiom::clone(flag)];
                undefined(&Model {
                    flags,
                    ..laws.clone()
                })
                .is_some_and(|a| a.verdict == Verdict::Undefined)
            };
            broken.extend(
                laws.flags
                    .iter()
                    .filter(alone)
                    .map(|flag| format!("{}: not in {name}", flag.name)),
            );
        }
        Some((answer.verdict.reason().is_some(), broken))
    });
    let undecided = judged
        .iter()
        .flatten()
        .filter(|(undecided, _)| *undecided)
        .count();
    let broken: Vec<String> = judged
        .into_iter()
        .flatten()
        .flat_map(|(_, broken)| broken)
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(
        undecided * 10 < cases.len(),
        "{undecided} of {} tests are undecided",
        cases.len()
    );
}

#[test]
fn a_clause_is_redundant_where_nothing_can_be_told_by_it() {
    let text = |a: &str| {
        format!(
            "free rf : function within (W * R) & loc\n\
            free co : order within ((W * W) & loc) \\ id containing (IW * (W \\ IW)) & loc\n\
            values rf\nfinal co\n\
            let noted = {a}\n\
            irreflexive ([W] ; po ; [F]) ; noted as First\n\
            acyclic rf | co | (noted & po) as Second\n"
        )
    };
    let load = |text: &str| {
        let main = fencepost::diag::SourceFile::new("m.cat", text.to_owned());
        fencepost::model::load(main, "m", &Shipped, &signature(), None).expect("well-formed")
    };
    let proof = |a: &str, b: &str| {
        let model = load(&text(a));
        Prover::new(&model, &laws(&model)).proof(&load(&text(b)))
    };
    // The ends of an update, the context of each use, and the parts that only one use has.
    assert!(proof("[F] ; po ; rmw ; po", "[F] ; po ; (rmw & (R * W)) ; po").is_some());
    assert!(proof("[F] ; po", "[F \\ M] ; po").is_some());
    assert!(proof("[F \\ B] ; po", "[F] ; po").is_none());
    assert!(proof("[F] ; po", "po").is_none());
    assert!(proof("po ; [W]", "po ; [M]").is_none());
    assert!(proof("(po ; [F])+", "(po ; [F \\ R])+").is_some());
    assert!(proof("(po ; [F])+", "(po ; [F \\ B])+").is_none());
    assert!(proof("po & ext", "rf ; rf").is_some());
}

#[test]
fn tests_notice_what_is_missing_from_ptx() {
    noticed("ptx");
}

#[test]
fn tests_notice_what_is_missing_from_cuda() {
    noticed("cuda");
}

#[test]
fn tests_notice_what_is_missing_from_opencl() {
    noticed("opencl");
}

#[test]
fn tests_notice_what_is_missing_from_c11() {
    noticed("c11");
}
