//! Compares the search with an exhaustive enumeration, and tests its first results.

use std::collections::BTreeSet;

use super::*;
use crate::letters::Further;
use front::mapping::{self, Mapping};
use program::Dialect;
use testkit::suite::{is_long, shipped};

/// Runs a test with both models, the first one's mapping if any, and the alphabet.
fn with(a: &str, b: &str, mapping: Option<&str>, test: impl FnOnce(SearchRequest<'_>)) {
    with_further(a, b, mapping, &[], test);
}

fn with_further(
    a: &str,
    b: &str,
    mapping: Option<&str>,
    further: &[Further],
    test: impl FnOnce(SearchRequest<'_>),
) {
    let (a_model, b_model) = (shipped(a), shipped(b));
    let mapping = mapping.map(|m| Mapping::named(m).expect("shipped"));
    let dialect = mapping
        .map(|m| m.from)
        .or(Dialect::of_model(a))
        .or(Dialect::of_model(b))
        .unwrap_or_default();
    let alphabet = Alphabet::new(dialect, further);
    test(SearchRequest {
        allows: vec![JudgeSetup {
            model: &a_model,
            mapping,
            set: &[],
            learnt: None,
        }],
        forbids: vec![JudgeSetup {
            model: &b_model,
            mapping: None,
            set: &[],
            learnt: None,
        }],
        alphabet: &alphabet,
        size: 4,
        tiers: &[Tier::Critical, Tier::Other],
        all: true,
        jobs: 2,
        deadline: None,
    });
}

/// Tries all placements and letters. Returns the results without the letters.
fn plain(
    sought: &SearchRequest<'_>,
    shapes: &[ProgramShape],
) -> BTreeSet<(ProgramShape, ShapeOutcome)> {
    let mut searcher = Searcher::new(sought).expect("they judge such programs");
    let mut found = BTreeSet::new();
    for shape in shapes {
        let fitting = sought.alphabet.fitting(shape).into_iter();
        let choices: Vec<Vec<Vec<usize>>> = fitting
            .map(|all| all.into_iter().map(|l| vec![l]).collect())
            .collect();
        let all = distinct(shape, Tier::All);
        for places in sought.alphabet.placed(shape) {
            let mut chosen = vec![0; choices.len()];
            loop {
                let letters: Vec<usize> =
                    chosen.iter().zip(&choices).map(|(&i, c)| c[i][0]).collect();
                for outcome in &all {
                    let says = |judge: &mut Judge| {
                        judge.load(shape, &places, &letters) && judge.allows(outcome)
                    };
                    if says(&mut searcher.allows[0])
                        && !says(&mut searcher.forbids[0])
                        && is_defined(&mut searcher.defines, (shape, &places, &letters), outcome)
                    {
                        found.insert((shape.clone(), outcome.clone()));
                    }
                }
                if !advance(&mut chosen, &choices) {
                    break;
                }
            }
        }
    }
    found
}

/// Pruning loses no result of a plain enumeration.
#[test]
fn cutting_loses_nothing() {
    let long = is_long();
    let pairs = [
        ("ptx", "sc", None),
        ("sc", "ptx", None),
        ("ptx-v6.0", "ptx", None),
        ("c11", "rc11", None),
        ("rc11", "c11", None),
        ("cuda", "cuda-17", None),
        ("opencl", "opencl-3.1", None),
        ("opencl-3.1", "opencl", None),
        ("opencl-simp", "opencl", None),
        ("opencl", "opencl-simp", None),
        ("ptx", "cuda", Some("cuda-ptx-erratum")),
        ("ptx", "opencl", Some("opencl-ptx-erratum")),
    ];
    for (a, b, mapping) in pairs {
        with(a, b, mapping, |sought| {
            // All letters with four instructions are feasible only without scopes.
            let most = if !long {
                2
            } else if sought.alphabet.levels.is_empty() {
                4
            } else {
                3
            };
            for size in 2..=most {
                let shapes = shapes(size, &sought.alphabet.kinds());
                let searcher = Searcher::new(&sought).expect("they judge such programs");
                let found = [Tier::Critical, Tier::Other]
                    .into_iter()
                    .flat_map(|tier| searcher.tier(&sought, &shapes, tier).0);
                let found: BTreeSet<_> = found.map(|f| (f.shape, f.outcome)).collect();
                assert_eq!(
                    found,
                    plain(&sought, &shapes),
                    "{a} and {b}, {size} instructions"
                );
            }
        });
    }
}

/// The same with further letters, on shapes of four instructions that use them; a program with them
/// is found.
#[test]
fn cutting_loses_nothing_of_further_letters() {
    let barriers = |shape: &ProgramShape| shape.has(InstrKind::Barrier);
    let named = |name: &'static str| move |shape: &ProgramShape| shape.name() == name;
    let plain = |shape: &ProgramShape| {
        named("Rxry+wyWx")(shape) || shape.has(InstrKind::Barrier) && shape.is_plain(0)
    };
    type Fits<'a> = &'a dyn Fn(&ProgramShape) -> bool;
    let cases: [(&str, &str, &[Further], Fits<'_>, bool); 8] = [
        ("ptx", "sc", &[Further::Barrier], &barriers, true),
        ("sc", "ptx", &[Further::Barrier], &barriers, false),
        ("ptx", "sc", &[Further::Depend], &named("RxWy+RyWx"), true),
        ("ptx", "sc", &[Further::Branch], &named("RxWy+RyWx"), true),
        (
            "rc11",
            "c11",
            &[Further::Plain, Further::Branch],
            &plain,
            false,
        ),
        (
            "c11",
            "rc11",
            &[Further::Plain, Further::Branch],
            &named("RxWy+RyWx"),
            true,
        ),
        (
            "cuda",
            "cuda-17",
            &[Further::Plain, Further::Barrier],
            &plain,
            false,
        ),
        (
            "opencl",
            "opencl-3.1",
            &[Further::Plain, Further::Barrier],
            &plain,
            false,
        ),
    ];
    for (a, b, further, fits, differs) in cases {
        with_further(a, b, None, further, |sought| {
            let mut shapes = shapes(4, &sought.alphabet.kinds());
            shapes.retain(fits);
            assert!(!shapes.is_empty());
            let searcher = Searcher::new(&sought).expect("they judge such programs");
            let tiers = [Tier::Critical, Tier::Other].into_iter();
            let found: BTreeSet<_> = tiers
                .flat_map(|tier| searcher.tier(&sought, &shapes, tier).0)
                .map(|f| (f.shape, f.outcome))
                .collect();
            assert_eq!(found, self::plain(&sought, &shapes), "{a} and {b}");
            assert_eq!(!found.is_empty(), differs, "{a} and {b}: {found:?}");
        });
    }
}

/// Data written before a flag are defined if the flag orders the reading thread, and only then.
#[test]
fn plain_accesses_behind_a_branch_are_defined_where_they_are_ordered() {
    for (branch, order, defined) in [
        (true, Some(Order::Acquire), true),
        (true, Some(Order::Relaxed), false),
        (false, Some(Order::Acquire), false),
    ] {
        with_further(
            "rc11",
            "rc11",
            None,
            &[Further::Plain, Further::Branch],
            |sought| {
                let shapes = shapes(4, &sought.alphabet.kinds());
                let shape = shapes
                    .iter()
                    .find(|shape| shape.name() == "Rxry+wyWx")
                    .expect("there is one");
                let letter = |kind, order, tied| {
                    let fits = |&l: &usize| {
                        let letter = &sought.alphabet.letters[l];
                        letter.order == order && letter.tied == tied
                    };
                    sought.alphabet.of(kind).find(fits).expect("there is one")
                };
                let letters = [
                    letter(InstrKind::Read, order, branch),
                    letter(InstrKind::PlainRead, None, false),
                    letter(InstrKind::PlainWrite, None, false),
                    letter(InstrKind::Write, Some(Order::Release), false),
                ];
                let outcome = ShapeOutcome {
                    sources: vec![Some(3), Some(2), None, None],
                    last: vec![3, 2],
                };
                let mut searcher = Searcher::new(&sought).expect("they judge such programs");
                let places = sought.alphabet.apart(2);
                let said = is_defined(&mut searcher.defines, (shape, &places, &letters), &outcome);
                assert_eq!(said, defined, "{order:?}, with a branch: {branch}");
            },
        );
    }
}

#[test]
fn the_smallest_programs_have_these_sizes() {
    let sizes = [
        ("ptx", "sc", 2),
        ("c11", "rc11", 4),
        ("rc11", "c11", 5),
        ("opencl", "opencl-3.1", 4),
        ("opencl-simp", "opencl", 4),
        ("cuda", "cuda-17", 5),
    ];
    for (a, b, size) in sizes {
        with(a, b, None, |sought| {
            let answer = search(&SearchRequest {
                all: false,
                size: 5,
                ..sought
            })
            .expect("they judge such programs");
            assert_eq!(
                answer.found.first().map(|f| f.letters.len()),
                Some(size),
                "{a} and {b}"
            );
            assert_eq!((answer.searched, answer.stopped), (size, None));
        });
    }
}

/// LLVM's PR 201468 stores with `fence.sc; st.relaxed` where it stored with `fence.sc; st.release`.
#[test]
fn a_store_behind_an_sc_fence_needs_no_release() {
    let ptx = shipped("ptx");
    let named = |name| Mapping::named(name).expect("shipped");
    let (proposed, today) = (named("cuda-ptx"), named("cuda-ptx-llvm"));
    // The fence is necessary, the release is not: without the fence programs differ.
    let mut without = today.clone();
    let stores = without.rows.iter_mut().filter(|row| {
        (row.kind, row.order) == (mapping::OpKind::Store, mapping::SourceOrder::SeqCst)
    });
    stores.for_each(|row| row.steps.retain(|step| step.kind != mapping::OpKind::Fence));
    let without: &'static Mapping = Box::leak(Box::new(without));
    let alphabet = Alphabet::new(Dialect::Cuda, &[]);
    let judged = |mapping| {
        vec![JudgeSetup {
            model: &ptx,
            mapping: Some(mapping),
            set: &[],
            learnt: None,
        }]
    };
    for (allows, forbids, size, found) in [
        (proposed, today, 3, 0),
        (today, proposed, 3, 0),
        (without, proposed, 4, 1),
        (without, today, 4, 1),
    ] {
        let (allows, forbids) = (judged(allows), judged(forbids));
        let alphabet = &alphabet;
        let sought = SearchRequest {
            allows,
            forbids,
            alphabet,
            size,
            tiers: &[Tier::Critical, Tier::Other],
            all: false,
            jobs: 2,
            deadline: None,
        };
        let answer = search(&sought).expect("they judge such programs");
        assert_eq!((answer.found.len(), answer.stopped), (found, None));
    }
}

#[test]
fn equal_scopes_are_gone_through_one_by_one() {
    for (a, b, mapping, compared) in [
        ("ptx", "sc", None, LetterOrder::All),
        ("ptx-v6.0", "ptx", None, LetterOrder::All),
        ("c11", "rc11", None, LetterOrder::All),
        ("cuda", "cuda-17", None, LetterOrder::All),
        ("opencl-3.1", "opencl-3.1", None, LetterOrder::All),
        ("opencl", "opencl-simp", None, LetterOrder::OfOneScope),
        // The weakest letters of all scopes allow the most, but do not order definedness.
        ("opencl", "opencl-3.1", None, LetterOrder::OfOneScope),
        ("opencl-3.1", "opencl", None, LetterOrder::OfOneScope),
        ("ptx", "cuda", Some("cuda-ptx"), LetterOrder::All),
        ("ptx", "opencl", Some("opencl-ptx"), LetterOrder::OfOneScope),
    ] {
        with(a, b, mapping, |sought| {
            let searcher = Searcher::new(&sought).expect("they judge such programs");
            assert_eq!(searcher.compared, compared, "{a} and {b}");
            // A model's scopes alone may be comparable, although the other model's are not.
            let alone =
                |model: &str| model != "opencl" && model != "opencl-simp" && mapping.is_none();
            assert!(searcher.bottom || !alone(a), "{a} and {b}");
            assert!(searcher.top || !alone(b), "{a} and {b}");
        });
    }
}

#[test]
fn what_is_found_does_not_depend_on_threads_and_time_is_kept() {
    with("ptx", "sc", None, |sought| {
        let of = |jobs| {
            let sought = SearchRequest {
                allows: sought.allows.clone(),
                forbids: sought.forbids.clone(),
                jobs,
                size: 3,
                ..sought
            };
            search(&sought).expect("they judge such programs").found
        };
        assert_eq!(of(1), of(4));
        assert!(!of(1).is_empty());
        let late = SearchRequest {
            allows: sought.allows.clone(),
            forbids: sought.forbids.clone(),
            deadline: Some(Instant::now()),
            ..sought
        };
        let answer = search(&late).expect("they judge such programs");
        assert_eq!(
            (answer.found.len(), answer.searched, answer.stopped),
            (0, 1, Some((0, 13)))
        );
    });
}

/// Tries all placements, all letters, and every weakening of a forbidden test.
fn plainly_minimal(sought: &SearchRequest<'_>, size: usize) -> Vec<DifferingProgram> {
    let alphabet = sought.alphabet;
    let mut asked =
        suite::ForbiddenJudge::new(sought.forbids[0], alphabet).expect("it judges such programs");
    let below = |a: usize, b: usize| a != b && alphabet.letters[a].is_below(&alphabet.letters[b]);
    let mut found = Vec::new();
    for shape in shapes(size, &alphabet.kinds()) {
        let fitting = alphabet.fitting(&shape).into_iter();
        let choices: Vec<Vec<Vec<usize>>> = fitting
            .map(|all| all.into_iter().map(|l| vec![l]).collect())
            .collect();
        for (outcome, places) in distinct(&shape, Tier::All).into_iter().flat_map(|o| {
            alphabet
                .placements(shape.threads.len())
                .into_iter()
                .map(move |p| (o.clone(), p))
        }) {
            let mut chosen = vec![0; choices.len()];
            loop {
                let letters: Vec<usize> =
                    chosen.iter().zip(&choices).map(|(&i, c)| c[i][0]).collect();
                let test = DifferingProgram {
                    shape: shape.clone(),
                    places: places.clone(),
                    letters,
                    outcome: outcome.clone(),
                };
                let weaker = (0..size).flat_map(|i| {
                    let all = (0..alphabet.letters.len())
                        .filter(|&l| below(l, test.letters[i]))
                        .collect::<Vec<_>>();
                    let next = all
                        .clone()
                        .into_iter()
                        .filter(move |&l| !all.iter().any(|&m| below(l, m)));
                    let test = test.clone();
                    next.map(move |l| {
                        let mut weaker = test.clone();
                        weaker.letters[i] = l;
                        weaker
                    })
                });
                let apart =
                    alphabet
                        .steps_apart(&places)
                        .into_iter()
                        .map(|places| DifferingProgram {
                            places,
                            ..test.clone()
                        });
                let weaker: Vec<DifferingProgram> = weaker.chain(apart).collect();
                let mut spared = (0..size).map(|gone| suite::left(&test, gone));
                if asked.forbids(&test)
                    && !weaker.iter().any(|weaker| asked.forbids(weaker))
                    && !spared.any(|left| left.iter().all(|left| asked.forbids(left)))
                {
                    found.push(test);
                }
                if !advance(&mut chosen, &choices) {
                    break;
                }
            }
        }
    }
    found
}

/// One test for each class that differs only in names.
fn up_to_names(tests: &[DifferingProgram]) -> BTreeSet<String> {
    let name = |test: &DifferingProgram| {
        let DifferingProgram {
            shape,
            places,
            letters,
            outcome,
        } = test;
        let images = crate::outcome::symmetries(shape)
            .into_iter()
            .map(|s| (s.image(outcome), s.labels(places, letters)));
        format!(
            "{} {:?}",
            shape.name(),
            images.min().expect("there is the identity")
        )
    };
    tests.iter().map(name).collect()
}

/// The suite contains each result of a plain enumeration once.
#[test]
fn suites_have_all_minimal_tests() {
    let long = is_long();
    for (name, most) in [
        ("ptx", 3),
        ("sc", 3),
        ("rc11", 3),
        ("cuda", 2),
        ("opencl-3.1", 2),
        ("opencl", 2),
    ] {
        let size = if long { most } else { 2 };
        with(name, name, None, |sought| {
            let wanted = SuiteRequest {
                model: sought.forbids[0],
                mutants: &[],
                alphabet: sought.alphabet,
                size,
                jobs: 2,
                deadline: None,
            };
            let made = suite(&wanted).expect("it judges such programs");
            assert_eq!((made.searched, made.stopped), (size, None));
            let tests: Vec<DifferingProgram> =
                made.tests.into_iter().map(|minimal| minimal.test).collect();
            let names = up_to_names(&tests);
            assert_eq!(names.len(), tests.len(), "{name}: some test is there twice");
            let plain: Vec<DifferingProgram> = (1..=size)
                .flat_map(|size| plainly_minimal(&sought, size))
                .collect();
            assert_eq!(names, up_to_names(&plain), "{name}");
        });
    }
}

/// In sequential consistency, an outcome that no interleaving shows needs the order axiom. An
/// outcome of a broken exchange needs the atomicity axiom.
#[test]
fn minimal_tests_need_their_clauses() {
    with("sc", "sc", None, |sought| {
        let model = sought.forbids[0].model;
        let without = |axiom: &str| {
            let mut mutant = model.clone();
            mutant.axioms.retain(|a| a.name != axiom);
            mutant
        };
        let mutants = [without("SC"), without("Atomicity")];
        let (model, alphabet) = (sought.forbids[0], sought.alphabet);
        let wanted = SuiteRequest {
            model,
            mutants: &mutants,
            alphabet,
            size: 4,
            jobs: 2,
            deadline: None,
        };
        let made = suite(&wanted).expect("it judges such programs");
        let needs = |shape: &str| {
            let of_shape = made.tests.iter().filter(|m| m.test.shape.name() == shape);
            of_shape.map(|m| m.needs.clone()).collect::<Vec<_>>()
        };
        for shape in [
            "WxWy+RyRx",
            "WxRy+WyRx",
            "RxWy+RyWx",
            "WxWy+WyRx",
            "WxWy+RyWx",
            "WxWy+WyWx",
        ] {
            assert_eq!(needs(shape), [[0]], "{shape}");
        }
        assert!(needs("Wx+Ux").contains(&vec![1]));
        // Either exchange of one location is superfluous: the other location alone shows the
        // forbidden outcome.
        assert!(
            needs("Ux+Ux+Uy+Uy").is_empty(),
            "{:?}",
            needs("Ux+Ux+Uy+Uy")
        );
    });
}
