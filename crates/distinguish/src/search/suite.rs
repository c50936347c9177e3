//! Builds the minimal conformance suite of a model: the programs and outcomes that it forbids while
//! it allows every weakening. Also computes the clauses of the model that each test needs.
//!
//! A weakening makes one instruction one step weaker, removes it, or splits the threads of one
//! group into two. If the removed instruction wrote a value in the outcome, any other value may
//! take its place. Undefined programs have no forbidden outcomes.
//!
//! # Pruning
//! The same as in the search ([`super::LetterOrder`]): if a choice is forbidden and not weakest, it
//! has a forbidden weakening.
//!
//! # Source
//! Lustig, Wright, Papakonstantinou, Giroux, ASPLOS 2017, §3: a test is minimal if every relaxation
//! makes its outcome observable; there is one suite for each axiom.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::*;
use crate::outcome::{Symmetry, symmetries};
use cat::model::Model;

/// The specification of a suite.
#[derive(Debug)]
pub struct SuiteRequest<'a> {
    /// The model.
    pub model: JudgeSetup<'a>,
    /// For each of its clauses, the model without it.
    pub mutants: &'a [Model],
    /// The letters of programs.
    pub alphabet: &'a Alphabet,
    /// The largest number of instructions.
    pub size: usize,
    /// The number of threads.
    pub jobs: usize,
    /// The deadline.
    pub deadline: Option<Instant>,
}

/// A minimal test.
#[derive(Clone, Debug, PartialEq)]
pub struct MinimalTest {
    /// The program and the forbidden outcome.
    pub test: DifferingProgram,
    /// The mutants that allow it, by number.
    pub needs: Vec<usize>,
}

/// A suite.
#[derive(Clone, Debug, Default)]
pub struct MinimalSuite {
    /// The tests, the smallest first.
    pub tests: Vec<MinimalTest>,
    /// The suite covers all programs up to this number of instructions.
    pub searched: usize,
    /// If time ran out: the number of finished shapes with one instruction more, and the number of
    /// all such shapes.
    pub stopped: Option<(usize, usize)>,
    /// The number of mutants judged on all tests; all mutants, unless time ran out.
    pub asked: usize,
}

/// Builds the suite.
///
/// # Errors
/// Why the model cannot judge such programs.
pub fn suite(wanted: &SuiteRequest<'_>) -> Result<MinimalSuite, String> {
    let alphabet = wanted.alphabet;
    let sought = SearchRequest {
        allows: Vec::new(),
        forbids: vec![wanted.model],
        alphabet,
        size: wanted.size,
        tiers: &[Tier::All],
        all: true,
        jobs: wanted.jobs,
        deadline: wanted.deadline,
    };
    let compared = Searcher::new(&sought)?.compared;
    let mut asked = ForbiddenJudge::new(wanted.model, alphabet)?;
    asked.compared = (compared == LetterOrder::All).then(|| Arc::new(alphabet.clone()));
    let mutants = wanted
        .mutants
        .iter()
        .map(|model| {
            ForbiddenJudge::new(
                JudgeSetup {
                    model,
                    ..wanted.model
                },
                alphabet,
            )
        })
        .collect::<Result<Vec<_>, String>>()?;
    let mut suite = MinimalSuite::default();
    for size in 1..=wanted.size {
        let shapes = shapes(size, &alphabet.kinds());
        let (found, done) = each(
            &asked,
            &shapes,
            wanted.jobs,
            |asked: &mut ForbiddenJudge, shape: &ProgramShape| {
                asked.minimal(shape, alphabet, compared, wanted.deadline)
            },
        );
        suite
            .tests
            .extend(found.into_iter().flatten().map(|test| MinimalTest {
                test,
                needs: Vec::new(),
            }));
        if done < shapes.len() {
            suite.stopped = Some((done, shapes.len()));
            break;
        }
        suite.searched = size;
    }
    let tests: Vec<DifferingProgram> = suite
        .tests
        .iter()
        .map(|minimal| minimal.test.clone())
        .collect();
    // Each mutant judges all tests in turn, because consecutive programs are similar.
    let numbers: Vec<usize> = (0..mutants.len()).collect();
    let allowed = |mutants: &mut Vec<ForbiddenJudge>, mutant: &usize| {
        let mut found = Vec::new();
        for (number, test) in tests.iter().enumerate() {
            if stop::late(wanted.deadline) {
                return None;
            }
            if !mutants[*mutant].forbids(test) {
                found.push(number);
            }
        }
        Some(found)
    };
    let (found, asked) = each(&mutants, &numbers, wanted.jobs, allowed);
    for (mutant, allowed) in found.into_iter().enumerate() {
        allowed
            .into_iter()
            .for_each(|test| suite.tests[test].needs.push(mutant));
    }
    suite.asked = asked;
    Ok(suite)
}

/// Applies the work to every item on several threads. Returns the results in order, up to the first
/// unfinished item.
fn each<S: Clone + Sync, I: Sync, T: Send>(
    state: &S,
    items: &[I],
    jobs: usize,
    work: impl Fn(&mut S, &I) -> Option<T> + Sync,
) -> (Vec<T>, usize) {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                let mut state = state.clone();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let Some(result) = work(&mut state, item) else {
                        break;
                    };
                    results
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push((index, result));
                }
            });
        }
    });
    let mut results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    let done = results
        .iter()
        .enumerate()
        .take_while(|(i, (index, _))| i == index)
        .count();
    (
        results
            .into_iter()
            .take(done)
            .map(|(_, result)| result)
            .collect(),
        done,
    )
}

/// For each placement of a shape, whether programs are defined: by letters, with the derived facts.
type Definedness = Vec<(Vec<Place>, FxHashMap<Vec<usize>, bool>, MonotoneCache)>;

/// A model that decides which tests it forbids.
#[derive(Clone)]
pub(super) struct ForbiddenJudge {
    judge: Judge,
    /// The judge for undefined behaviour, if the model has any.
    defines: Option<Judge>,
    /// For each letter, whether the executed instructions depend on the value it reads.
    asks: Vec<bool>,
    /// Whether programs are defined, for one shape and its shapes without an instruction.
    defined: Vec<(ProgramShape, Definedness)>,
    /// The strength order of letters, if definedness extends to stronger letters.
    compared: Option<Arc<Alphabet>>,
}

impl ForbiddenJudge {
    pub(super) fn new(
        judged: JudgeSetup<'_>,
        alphabet: &Alphabet,
    ) -> Result<ForbiddenJudge, String> {
        let learnt = judged.learnt(alphabet)?;
        let judge = Judge::of(judged, Arc::clone(&learnt), false)?;
        let defines = Some(Judge::of(judged, learnt, true)?).filter(Judge::knows_undefined);
        let letters = alphabet.letters.iter().enumerate();
        let asks = letters
            .map(|(l, letter)| letter.tied || alphabet.failing(l).is_some())
            .collect();
        Ok(ForbiddenJudge {
            judge,
            defines,
            asks,
            defined: Vec::new(),
            compared: None,
        })
    }

    /// Whether the program is defined and does not show the outcome.
    pub(super) fn forbids(&mut self, test: &DifferingProgram) -> bool {
        let DifferingProgram {
            shape,
            places,
            letters,
            outcome,
        } = test;
        self.judge.load(shape, places, letters)
            && !self.judge.allows(outcome)
            && self.is_defined(test)
    }

    fn is_defined(&mut self, test: &DifferingProgram) -> bool {
        let Some(judge) = &mut self.defines else {
            return true;
        };
        let DifferingProgram {
            shape,
            places,
            letters,
            outcome,
        } = test;
        if shape
            .slots()
            .zip(letters)
            .any(|((_, slot), &l)| slot.kind.reads() && self.asks[l])
        {
            // The executed instructions depend on the outcome.
            return judge.defines((shape, places, letters), outcome);
        }
        let of_shape = match self.defined.iter().position(|known| known.0 == *shape) {
            Some(at) => &mut self.defined[at].1,
            None => {
                self.defined.push((shape.clone(), Vec::new()));
                &mut self.defined.last_mut().expect("just added").1
            }
        };
        let at = of_shape
            .iter()
            .position(|known| known.0 == *places)
            .unwrap_or_else(|| {
                of_shape.push((
                    places.clone(),
                    FxHashMap::default(),
                    MonotoneCache::default(),
                ));
                of_shape.len() - 1
            });
        let (_, exact, known) = &mut of_shape[at];
        if let Some(defined) = exact.get(letters) {
            return *defined;
        }
        let mut defines = || judge.defines((shape, places, letters), outcome);
        let defined = match &self.compared {
            Some(alphabet) => known.asked(alphabet, letters, defines),
            None => defines(),
        };
        exact.insert(letters.clone(), defined);
        defined
    }

    /// The minimal tests of a shape; `None`: time ran out.
    fn minimal(
        &mut self,
        shape: &ProgramShape,
        alphabet: &Alphabet,
        compared: LetterOrder,
        deadline: Option<Instant>,
    ) -> Option<Vec<DifferingProgram>> {
        self.defined.clear();
        let slots: Vec<ShapeSlot> = shape.slots().map(|(_, slot)| slot).collect();
        let choices = classes(alphabet, shape, compared);
        let placements = alphabet.placements(shape.threads.len());
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        for outcome in distinct(shape, Tier::All) {
            let symmetries: Vec<Symmetry> = symmetries(shape)
                .into_iter()
                .filter(|s| s.image(&outcome) == outcome)
                .collect();
            for places in &placements {
                let mut chosen = vec![0; slots.len()];
                loop {
                    if stop::late(deadline) {
                        return None;
                    }
                    let open: Vec<&[usize]> = choices
                        .iter()
                        .zip(&chosen)
                        .map(|(c, &i)| c[i].as_slice())
                        .collect();
                    let with = |letters| DifferingProgram {
                        shape: shape.clone(),
                        places: places.clone(),
                        letters,
                        outcome: outcome.clone(),
                    };
                    // No test is minimal if an instruction is superfluous for all letters.
                    let spared = self.forbids(&with(strongest(&open)))
                        && self.can_spare(&with(weakest(&open)));
                    let mut least = WeakestLetters::new(&open);
                    let mut late = false;
                    while let Some(letters) = least.next(alphabet, |letters| {
                        late |= stop::late(deadline);
                        !late && !spared && self.forbids(&with(letters.to_vec()))
                    }) {
                        let labels = symmetries
                            .iter()
                            .map(|s| s.labels(places, &letters))
                            .min()
                            .expect("there is the identity");
                        let test = with(letters);
                        if self.is_minimal(&test, alphabet)
                            && seen.insert((labels, outcome.clone()))
                        {
                            found.push(test);
                        }
                    }
                    if late {
                        return None;
                    }
                    if !advance(&mut chosen, &choices) {
                        break;
                    }
                }
            }
        }
        Some(found)
    }

    /// Whether no weakening of a forbidden test is forbidden.
    pub(super) fn is_minimal(&mut self, test: &DifferingProgram, alphabet: &Alphabet) -> bool {
        let mut weaker = test.clone();
        for i in 0..test.letters.len() {
            for below in alphabet.steps_below(test.letters[i]) {
                weaker.letters[i] = below;
                if self.forbids(&weaker) {
                    return false;
                }
            }
            weaker.letters[i] = test.letters[i];
        }
        let apart = alphabet.steps_apart(&test.places);
        !self.can_spare(test)
            && !apart.into_iter().any(|places| {
                self.forbids(&DifferingProgram {
                    places,
                    ..test.clone()
                })
            })
    }

    /// Whether the test remains forbidden without some instruction.
    fn can_spare(&mut self, test: &DifferingProgram) -> bool {
        (0..test.letters.len()).any(|gone| left(test, gone).iter().all(|left| self.forbids(left)))
    }
}

/// The program without an instruction, with each outcome that agrees with the rest of the test's
/// outcome.
pub(super) fn left(test: &DifferingProgram, gone: usize) -> Vec<DifferingProgram> {
    let DifferingProgram { shape, outcome, .. } = test;
    let slots: Vec<ShapeSlot> = shape.slots().map(|(_, slot)| slot).collect();
    let of = |l: Option<u8>| {
        (0..slots.len())
            .filter(|i| *i != gone && slots[*i].kind.writes() && slots[*i].location == l)
            .map(|i| i as u8)
            .collect::<Vec<u8>>()
    };
    // If no instruction writes to the location any more, the outcome keeps only another location's
    // last write.
    let other = outcome
        .last
        .iter()
        .copied()
        .find(|w| usize::from(*w) != gone);
    let any = other.unwrap_or_else(|| (0..slots.len()).find(|i| *i != gone).map_or(0, |i| i as u8));
    let mut all = vec![outcome.clone()];
    for (i, slot) in slots
        .iter()
        .enumerate()
        .filter(|(i, _)| outcome.sources[*i] == Some(gone as u8) && *i != gone)
    {
        let sources: Vec<Option<u8>> = [None]
            .into_iter()
            .chain(of(slot.location).into_iter().map(Some))
            .collect();
        all = with_each(&all, &sources, |o, source| o.sources[i] = source);
    }
    for (l, _) in outcome
        .last
        .iter()
        .enumerate()
        .filter(|(_, last)| **last == gone as u8)
    {
        let mut writes = of(Some(l as u8));
        if writes.is_empty() {
            writes.push(any);
        }
        all = with_each(&all, &writes, |o, last| o.last[l] = last);
    }
    let mut left = Vec::new();
    for outcome in all {
        let program = DifferingProgram {
            outcome,
            ..test.clone()
        };
        left.push(without(&program, gone).expect("nothing is said of it"));
    }
    left
}

fn with_each<T: Copy>(
    all: &[ShapeOutcome],
    choices: &[T],
    set: impl Fn(&mut ShapeOutcome, T),
) -> Vec<ShapeOutcome> {
    all.iter()
        .flat_map(|outcome| choices.iter().map(move |choice| (outcome, choice)))
        .map(|(outcome, choice)| {
            let mut outcome = outcome.clone();
            set(&mut outcome, *choice);
            outcome
        })
        .collect()
}
