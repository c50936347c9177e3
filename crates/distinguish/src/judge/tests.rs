//! Compares judges with skeletons and sessions on random programs.

use super::learnt::read;
use super::*;
use crate::letters::Further;
use crate::outcome::outcomes;
use crate::search::DifferingProgram;
use crate::shape::{ShapeSlot, shapes};
use cat::model::clauses::ModelText;
use cat::model::{Library, Shipped};
use engine::facts::Facts;
use engine::skeleton::base::Base;
use engine::skeleton::signature::{row, signature};
use engine::task::Task;
use engine::{Engine, Limits};
use front::mapping::Mapping;
use program::Dialect;
use program::words::Order;
use testkit::suite::{is_long, shipped};
use verdict::{Reason, Verdict};
use why::Session;

/// Deterministic pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

const MODELS: &[(&str, Option<&str>)] = &[
    ("ptx", None),
    ("ptx-v7.5", None),
    ("ptx-v6.0", None),
    ("sc", None),
    ("c11", None),
    ("rc11", None),
    ("cuda", None),
    ("cuda-17", None),
    ("opencl", None),
    ("opencl-3.1", None),
    ("opencl-simp", None),
    ("opencl-2.0", None),
    ("opencl-total", None),
    ("ptx", Some("opencl-ptx")),
    ("ptx", Some("cuda-ptx")),
];

const FURTHER: [&[Further]; 4] = [
    &[
        Further::System,
        Further::Cluster,
        Further::Reduce,
        Further::Alias,
        Further::Surface,
        Further::Plain,
        Further::Depend,
        Further::Barrier,
    ],
    &[Further::Plain, Further::Branch, Further::Barrier],
    &[
        Further::Compare,
        Further::System,
        Further::Cluster,
        Further::Reduce,
        Further::Alias,
        Further::Surface,
        Further::Plain,
        Further::Depend,
        Further::Barrier,
    ],
    &[
        Further::Compare,
        Further::Plain,
        Further::Branch,
        Further::Barrier,
    ],
];

/// Tests each model on programs of its language, with up to four instructions and all letters.
/// Compares the judge's answer for an outcome with the session's answer for the test, and the bases
/// of both.
#[test]
fn judges_agree_with_sessions() {
    let mut numbers = Numbers(1);
    for (&(name, mapping), further) in MODELS
        .iter()
        .flat_map(|m| FURTHER.map(|further| (m, further)))
    {
        let model = shipped(name);
        let mapping = mapping.map(|m| Mapping::named(m).expect("shipped"));
        let dialect = mapping
            .map(|m| m.from)
            .or(Dialect::of_model(name))
            .unwrap_or_default();
        let alphabet = Alphabet::new(dialect, further);
        let judged = JudgeSetup {
            model: &model,
            mapping,
            set: &[],
            learnt: None,
        };
        let mut judge = Judge::new(judged, &alphabet, true).expect("it speaks of such programs");
        for size in 2..=4 {
            let shapes = shapes(size, &alphabet.kinds());
            for _ in 0..if is_long() { 96 } else { 12 } {
                let shape = &shapes[numbers.below(shapes.len())];
                let placements = alphabet.placed(shape);
                let places = placements[numbers.below(placements.len())].clone();
                let fitting = alphabet.fitting(shape).into_iter();
                let letters: Vec<usize> =
                    fitting.map(|all| all[numbers.below(all.len())]).collect();
                assert!(judge.load(shape, &places, &letters));
                let mut all = outcomes(shape);
                all.retain(|outcome| outcome.written(shape).is_some());
                let outcome = all[numbers.below(all.len())].clone();
                let found = DifferingProgram {
                    shape: shape.clone(),
                    places: places.clone(),
                    letters,
                    outcome,
                };
                let text = found.text(&alphabet, "T", "");
                let source = read(&text).unwrap_or_else(|why| panic!("{why}"));
                let test = mapping.map_or(source.clone(), |m| {
                    m.lowered(&source).expect("all letters have rows")
                });
                let facts =
                    Facts::of(&Task::new(&test, &model, &[], 1), None).expect("it speaks of them");
                for (id, sort, rows) in judge.base_rows() {
                    let base: Vec<u32> = match facts.base(id) {
                        Base::Set(set) => vec![set.iter().fold(0, |all, e| all | 1 << e)],
                        Base::Rel(rel) => (0..facts.sk.len())
                            .map(|i| rel.fixed.successors(i).fold(0, |all, e| all | 1 << e))
                            .collect(),
                    };
                    let rows = if sort == Sort::Set {
                        &rows[..1]
                    } else {
                        &rows[..facts.sk.len()]
                    };
                    assert_eq!(rows, base, "{name}: `{}` of\n{text}", row(id).name);
                }
                let mut session =
                    Session::new(&test, &model, Engine::Enumerate, Limits::default(), &[]);
                let verdict = session.reachability(test.condition.as_ref(), false).verdict;
                let allowed = judge.allows(&found.outcome);
                assert_eq!(
                    allowed,
                    verdict == Verdict::Allowed,
                    "{name} says {verdict:?} of\n{text}"
                );
                if let Some(answer) = session.undefined() {
                    let undefined =
                        !judge.defines((shape, &places, &found.letters), &found.outcome);
                    assert_eq!(
                        undefined,
                        answer.verdict == Verdict::Undefined,
                        "{name} of\n{text}"
                    );
                }
            }
        }
    }
}

/// A clause that is known to have no effect on these programs changes no answer of a session, on
/// random programs.
#[test]
fn clauses_that_say_nothing_change_no_answer() {
    let mut numbers = Numbers(2);
    let (mut silent, mut speaking) = (0, 0);
    for name in ["ptx", "cuda", "opencl-3.1", "c11", "sc"] {
        let signature = signature();
        let text = ModelText {
            main: Library::model(name).expect("shipped"),
            name,
            includes: &Shipped,
            signature: &signature,
            prelude: None,
        };
        let (model, clauses) = text.clauses().expect("valid");
        let alphabet = Alphabet::new(Dialect::of_model(name).unwrap_or_default(), &[]);
        let plain = JudgeSetup {
            model: &model,
            mapping: None,
            set: &[],
            learnt: None,
        };
        let learnt = Arc::new(LetterMeanings::new(plain, &alphabet).expect("it judges"));
        let judged = JudgeSetup {
            learnt: Some(&learnt),
            ..plain
        };
        let said = says(judged, &alphabet).expect("it judges");
        for clause in &clauses {
            let Ok(mutant) = text.without(clause) else {
                continue;
            };
            let Ok(of) = says(judged.instead(&mutant), &alphabet) else {
                continue;
            };
            if of != said {
                speaking += 1;
                continue;
            }
            silent += 1;
            for _ in 0..if is_long() { 10 } else { 1 } {
                let shapes = shapes(2 + numbers.below(3), &alphabet.kinds());
                let shape = shapes[numbers.below(shapes.len())].clone();
                let placements = alphabet.placements(shape.threads.len());
                let places = placements[numbers.below(placements.len())].clone();
                let mut letters = Vec::new();
                for (_, slot) in shape.slots() {
                    let all: Vec<usize> = alphabet.of(slot.kind).collect();
                    letters.push(all[numbers.below(all.len())]);
                }
                let all = outcomes(&shape);
                let outcome = all[numbers.below(all.len())].clone();
                let text = DifferingProgram {
                    shape,
                    places,
                    letters,
                    outcome,
                }
                .text(&alphabet, "T", "");
                let test = read(&text).unwrap_or_else(|why| panic!("{why}"));
                let answers = [&model, &mutant].map(|model| {
                    let mut session =
                        Session::new(&test, model, Engine::Enumerate, Limits::default(), &[]);
                    let verdict = session.reachability(test.condition.as_ref(), false).verdict;
                    (verdict, session.undefined().map(|answer| answer.verdict))
                });
                // Implementation-defined results are not compared.
                if matches!(
                    answers[1].0.reason(),
                    Some(Reason::ImplementationDefined { .. })
                ) {
                    continue;
                }
                assert_eq!(
                    answers[0], answers[1],
                    "{name} without {}:\n{text}",
                    clause.name
                );
            }
        }
    }
    assert!(
        silent > 500 && speaking > 200,
        "{silent} say nothing, {speaking} may"
    );
}

/// A failing compare-exchange writes nothing. So a read of the value that it writes after a release
/// implies that it succeeded.
#[test]
fn a_compare_exchange_that_fails_writes_nothing() {
    let model = shipped("rc11");
    for (further, defined) in [
        (
            &[Further::Plain, Further::Branch, Further::Compare][..],
            true,
        ),
        (&[Further::Plain, Further::Branch], false),
    ] {
        let alphabet = Alphabet::new(Dialect::C, further);
        let judged = JudgeSetup {
            model: &model,
            mapping: None,
            set: &[],
            learnt: None,
        };
        let mut judge = Judge::new(judged, &alphabet, true).expect("it judges");
        let slot = |kind, location| ShapeSlot {
            kind,
            location: Some(location),
        };
        let threads = vec![
            vec![slot(InstrKind::PlainWrite, 0), slot(InstrKind::Write, 1)],
            vec![slot(InstrKind::Read, 1), slot(InstrKind::PlainRead, 0)],
            vec![slot(InstrKind::Update, 1)],
        ];
        let shape = ProgramShape { threads };
        let letter = |kind, order, tied| {
            let fits = |l: &usize| {
                (alphabet.letters[*l].order, alphabet.letters[*l].tied) == (order, tied)
            };
            alphabet.of(kind).find(fits).expect("there is one")
        };
        let letters = vec![
            letter(InstrKind::PlainWrite, None, false),
            letter(InstrKind::Write, Some(Order::Release), false),
            letter(InstrKind::Read, Some(Order::Acquire), true),
            letter(InstrKind::PlainRead, None, false),
            letter(InstrKind::Update, Some(Order::Relaxed), false),
        ];
        let outcome = ShapeOutcome {
            sources: vec![None, None, Some(4), Some(0), Some(1)],
            last: vec![0, 4],
        };
        let places = alphabet.apart(3);
        assert_eq!(
            judge.defines((&shape, &places, &letters), &outcome),
            defined,
            "{further:?}"
        );
        let text = DifferingProgram {
            shape,
            places,
            letters,
            outcome,
        }
        .text(&alphabet, "T", "");
        let test = read(&text).unwrap_or_else(|why| panic!("{why}"));
        let mut session = Session::new(&test, &model, Engine::Enumerate, Limits::default(), &[]);
        let undefined = session
            .undefined()
            .expect("it knows undefined behaviour")
            .verdict
            == Verdict::Undefined;
        assert_eq!(!undefined, defined, "{text}");
    }
}

/// A compare-exchange after an addition expects the sum, and a store that depends on a read
/// computes with it.
#[test]
fn what_is_read_of_an_addition_is_what_it_leaves() {
    let model = shipped("sc");
    let slot = |kind, location| ShapeSlot {
        kind,
        location: Some(location),
    };
    let added = || {
        [
            vec![slot(InstrKind::Write, 0)],
            vec![slot(InstrKind::Reduce, 0)],
        ]
    };
    for (further, then, last, written) in [
        (
            Further::Compare,
            vec![slot(InstrKind::Update, 0)],
            vec![2],
            "cas r0, x, 3, 4",
        ),
        (
            Further::Depend,
            vec![slot(InstrKind::Read, 0), slot(InstrKind::Write, 1)],
            vec![1, 3],
            "add v1, r0, -2\n",
        ),
    ] {
        let alphabet = Alphabet::new(Dialect::Ptx, &[Further::Reduce, further]);
        let shape = ProgramShape {
            threads: added().into_iter().chain([then]).collect(),
        };
        let tied = further == Further::Depend;
        let letter = |(at, slot): (usize, ShapeSlot)| {
            let fits = |&l: &usize| alphabet.letters[l].tied == (tied && at == 3);
            alphabet.of(slot.kind).find(fits).expect("there is one")
        };
        let letters: Vec<usize> = shape
            .slots()
            .map(|(_, slot)| slot)
            .enumerate()
            .map(letter)
            .collect();
        let mut sources = vec![None, Some(0), Some(1)];
        sources.resize(letters.len(), None);
        let outcome = ShapeOutcome { sources, last };
        let text = DifferingProgram {
            places: alphabet.apart(3),
            shape,
            letters,
            outcome,
        }
        .text(&alphabet, "T", "");
        assert!(text.contains(written), "{text}");
        let test = read(&text).unwrap_or_else(|why| panic!("{why}"));
        let mut session = Session::new(&test, &model, Engine::Enumerate, Limits::default(), &[]);
        assert_eq!(
            session.reachability(test.condition.as_ref(), false).verdict,
            Verdict::Allowed,
            "{text}"
        );
    }
}

/// If an axiom rejects a program at once, later steps keep their values from the previous program,
/// which may have had more events.
#[test]
fn a_program_that_is_excluded_at_once_may_follow_a_larger_one() {
    let text = "test\nempty F as No-Fence\nfree rf : function within (W * R) & loc\nfree co : \
                order within ((W * W) & loc) \\ id\n\
                covering ((W * W) & loc) \\ id\nvalues rf\nfinal co\nacyclic po | rf | co | fr as \
                SC\n";
    let source = diag::SourceFile::new("test.cat", text.to_owned());
    let model =
        cat::model::load(source, "test", &cat::model::Shipped, &signature(), None).expect("valid");
    let alphabet = Alphabet::new(Dialect::Ptx, &[]);
    let mut judge = Judge::new(
        JudgeSetup {
            model: &model,
            mapping: None,
            set: &[],
            learnt: None,
        },
        &alphabet,
        true,
    )
    .expect("it judges");
    let mut asked = |shape: &ProgramShape| {
        let letters: Vec<usize> = shape
            .slots()
            .map(|(_, s)| alphabet.of(s.kind).next().expect("there is one"))
            .collect();
        let places = alphabet.apart(shape.threads.len());
        assert!(judge.load(shape, &places, &letters));
        outcomes(shape).iter().any(|outcome| judge.allows(outcome))
    };
    let of = |size, fence| {
        let all = shapes(size, &alphabet.kinds());
        all.into_iter()
            .rev()
            .find(|shape| shape.has(InstrKind::Fence) == fence)
            .expect("there is one")
    };
    assert!(asked(&of(4, false)));
    assert!(!asked(&of(3, true)) && asked(&of(2, false)));
}
