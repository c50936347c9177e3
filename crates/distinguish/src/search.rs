//! Searches for the smallest program on which two models differ. It goes through shapes by size,
//! outcomes by tier, and placements of threads. For each it looks for the weakest letters with
//! which one model forbids an outcome that the other allows.
//!
//! # Pruning
//! Letters are ordered by strength. If the forbidding model forbids an outcome of a defined program
//! with some letters, it does so with stronger ones. If the other model allows it, it does so with
//! weaker ones. So for each outcome, only the weakest letters that forbid it matter. The search
//! finds one such choice from above, by weakening. It divides the choices that are not above it
//! into smaller regions, and searches these for the next one.
//!
//! The search first tests both models for this property, on message passing and store buffering
//! with all letters ([`LetterOrder`]). If the property fails, it does not compare letters of
//! different scopes, or compares none; it then tries all choices.
//!
//! # Invariants
//! - The result is the first one in a fixed order, for any number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::judge::{Judge, JudgeSetup};
use crate::letters::Alphabet;
use crate::outcome::{ShapeOutcome, Tier, distinct};
use crate::shape::{InstrKind, LetteredProgram, ProgramShape, ShapeSlot, shapes};
use program::Place;
use program::words::Order;

/// The search problem: a program and an outcome that `allows` allows and `forbids` forbids.
#[derive(Debug)]
pub struct SearchRequest<'a> {
    /// The models that have to allow the outcome.
    pub allows: Vec<JudgeSetup<'a>>,
    /// The models that have to forbid the outcome.
    pub forbids: Vec<JudgeSetup<'a>>,
    /// The letters of programs.
    pub alphabet: &'a Alphabet,
    /// The largest number of instructions.
    pub size: usize,
    /// The tiers of outcomes to search, in this order.
    pub tiers: &'a [Tier],
    /// Whether to find all results, not only the first.
    pub all: bool,
    /// The number of threads.
    pub jobs: usize,
    /// The deadline.
    pub deadline: Option<Instant>,
}

/// A program and an outcome on which the models differ.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferingProgram {
    /// Its shape.
    pub shape: ProgramShape,
    /// The places of its threads.
    pub places: Vec<Place>,
    /// The letter of each instruction.
    pub letters: Vec<usize>,
    /// The outcome.
    pub outcome: ShapeOutcome,
}

impl DifferingProgram {
    /// The program as a test with that name; the condition describes the outcome.
    pub fn text(&self, alphabet: &Alphabet, name: &str, doc: &str) -> String {
        let dialect = alphabet.dialect;
        let dialect = match dialect == program::Dialect::default() {
            true => String::new(),
            false => format!("dialect = \"{dialect}\"\n"),
        };
        let condition = self.outcome.condition(&self.shape);
        let head =
            format!("name = \"{name}\"\ndoc = \"{doc}\"\n{dialect}condition = '{condition}'\n");
        alphabet.test(
            &head,
            &self.shape,
            &self.places,
            &self.letters,
            Some(&self.outcome),
        )
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchAnswer {
    /// The programs found, the smallest first.
    pub found: Vec<DifferingProgram>,
    /// The search covered all programs up to this number of instructions, or stopped at a result.
    pub searched: usize,
    /// If time ran out: the number of finished shapes with one instruction more, and the number of
    /// all such shapes.
    pub stopped: Option<(usize, usize)>,
}

/// The letters that are compared by strength; others are tried one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterOrder {
    /// All letters of a kind, and also threads in one group with threads in two.
    All,
    /// Letters with the same scope.
    OfOneScope,
    /// No letters.
    None,
}

impl LetterOrder {
    /// Whether the second letter is known to be no weaker than the first (`up`), or no stronger.
    fn has(self, alphabet: &Alphabet, a: usize, b: usize, up: bool) -> bool {
        let (low, high) = if up { (a, b) } else { (b, a) };
        match self {
            LetterOrder::All => alphabet.is_below(low, high),
            LetterOrder::OfOneScope => {
                alphabet.is_below(low, high)
                    && alphabet.letters[low].scope == alphabet.letters[high].scope
            }
            LetterOrder::None => low == high,
        }
    }
}

/// Looks for programs on which the models differ.
///
/// # Errors
/// Why a model cannot judge such programs.
pub fn search(sought: &SearchRequest<'_>) -> Result<SearchAnswer, String> {
    let searcher = Searcher::new(sought)?;
    let mut answer = SearchAnswer::default();
    let kinds = sought.alphabet.kinds();
    for size in 1..=sought.size {
        let shapes = shapes(size, &kinds);
        let mut of_size = Vec::new();
        let mut done = shapes.len();
        // Critical outcomes come first: no interleaving shows them, although each location alone is
        // coherent.
        for &tier in sought.tiers {
            let (found, all) = searcher.tier(sought, &shapes, tier);
            of_size.extend(found);
            done = done.min(all);
            if all < shapes.len() || (!of_size.is_empty() && !sought.all) {
                break;
            }
        }
        if sought.all {
            let mut searcher = searcher.clone();
            of_size.retain(|found| searcher.is_minimal(found));
        }
        answer.found.append(&mut of_size);
        if done < shapes.len() && answer.found.is_empty() | sought.all {
            answer.stopped = Some((done, shapes.len()));
            break;
        }
        answer.searched = size;
        if !answer.found.is_empty() && !sought.all {
            break;
        }
    }
    Ok(answer)
}

/// The state of one search thread.
#[derive(Clone)]
struct Searcher<'a> {
    alphabet: &'a Alphabet,
    allows: Vec<Judge>,
    forbids: Vec<Judge>,
    /// Source-language models, which may call a program undefined.
    defines: Vec<Judge>,
    compared: LetterOrder,
    /// Whether an outcome is never allowed if the weakest letters and separate groups do not allow
    /// it.
    bottom: bool,
    /// Whether an outcome is never forbidden if the strongest letters and a single group do not
    /// forbid it.
    top: bool,
    deadline: Option<Instant>,
    /// Whether time ran out in the middle of a shape.
    late: bool,
    all: bool,
}

impl<'a> Searcher<'a> {
    fn new(sought: &SearchRequest<'a>) -> Result<Searcher<'a>, String> {
        let alphabet = sought.alphabet;
        let mut defines: Vec<Judge> = Vec::new();
        let mut judges = |all: &[JudgeSetup<'a>]| -> Result<Vec<Judge>, String> {
            let mut judges = Vec::new();
            for (i, judged) in all.iter().enumerate() {
                let learnt = judged.learnt(alphabet)?;
                judges.push(Judge::of(*judged, Arc::clone(&learnt), false)?);
                if i == 0 && judged.mapping.is_none() {
                    let judge = Judge::of(*judged, learnt, true)?;
                    defines.extend(judge.knows_undefined().then_some(judge));
                }
            }
            Ok(judges)
        };
        let (mut forbids, mut allows) = (judges(&sought.forbids)?, judges(&sought.allows)?);
        let mut holds = |compared| {
            let all = |judges: &mut Vec<Judge>, up, says: Says| {
                judges
                    .iter_mut()
                    .all(|judge| tried(judge, alphabet, compared, up, says))
            };
            [
                all(&mut forbids, true, |judge, _, outcome| {
                    !judge.allows(outcome)
                }),
                all(&mut allows, false, |judge, _, outcome| {
                    judge.allows(outcome)
                }),
                all(&mut defines, true, |judge, program, outcome| {
                    judge.defines(program, outcome)
                }),
            ]
        };
        let [top, bottom, of_definedness] = holds(LetterOrder::All);
        let compared = match top && bottom && of_definedness {
            true => LetterOrder::All,
            false if holds(LetterOrder::OfOneScope) == [true; 3] => LetterOrder::OfOneScope,
            false => LetterOrder::None,
        };
        let (all, deadline) = (sought.all, sought.deadline);
        Ok(Searcher {
            alphabet,
            allows,
            forbids,
            defines,
            compared,
            bottom,
            top,
            deadline,
            late: false,
            all,
        })
    }

    /// Searches one tier of all shapes; also returns the number of finished shapes.
    fn tier(
        &self,
        sought: &SearchRequest<'_>,
        shapes: &[ProgramShape],
        tier: Tier,
    ) -> (Vec<DifferingProgram>, usize) {
        let next = AtomicUsize::new(0);
        let first = AtomicUsize::new(usize::MAX);
        let undone = AtomicUsize::new(shapes.len());
        let found = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..sought.jobs.clamp(1, shapes.len().max(1)) {
                scope.spawn(|| {
                    let mut searcher = self.clone();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(shape) = shapes.get(index) else {
                            break;
                        };
                        if !sought.all && index > first.load(Ordering::Relaxed) {
                            break;
                        }
                        let of_shape = searcher.shape(shape, tier);
                        if searcher.late {
                            undone.fetch_min(index, Ordering::Relaxed);
                            break;
                        }
                        if !of_shape.is_empty() {
                            first.fetch_min(index, Ordering::Relaxed);
                            let mut found = found
                                .lock()
                                .unwrap_or_else(std::sync::PoisonError::into_inner);
                            found.extend(of_shape.into_iter().map(|f| (index, f)));
                        }
                    }
                });
            }
        });
        let mut found = found
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        found.sort_by_key(|(index, _)| *index);
        let undone = undone.into_inner();
        let first = first.into_inner();
        if !sought.all {
            // A result after an unfinished shape is not the first.
            found.retain(|(index, _)| *index == first && first < undone);
        }
        (found.into_iter().map(|(_, f)| f).collect(), undone)
    }

    fn shape(&mut self, shape: &ProgramShape, tier: Tier) -> Vec<DifferingProgram> {
        self.late |= stop::late(self.deadline);
        if self.late {
            return Vec::new();
        }
        let mut outcomes = distinct(shape, tier);
        let slots: Vec<ShapeSlot> = shape.slots().map(|(_, slot)| slot).collect();
        let choices = classes(self.alphabet, shape, self.compared);
        let placements = self.alphabet.placed(shape);
        let open_of = |chosen: &[usize]| -> Vec<&[usize]> {
            choices
                .iter()
                .zip(chosen)
                .map(|(c, &i)| c[i].as_slice())
                .collect()
        };
        self.drop_settled(shape, &mut outcomes);
        let mut found = Vec::new();
        for places in &placements {
            let mut chosen = vec![0; slots.len()];
            while !outcomes.is_empty() {
                self.late |= stop::late(self.deadline);
                let open = open_of(&chosen);
                let (weak, strong) = (weakest(&open), strongest(&open));
                let mut hunt = LetterSearch {
                    shape,
                    places,
                    open: &open,
                    defined: MonotoneCache::default(),
                };
                let mut left: Vec<usize> = (0..outcomes.len()).collect();
                // Most choices of letters are not even defined.
                let mut defined = |hunt: &mut LetterSearch<'_>, o: &ShapeOutcome| {
                    hunt.defined.asked(self.alphabet, &strong, || {
                        is_defined(&mut self.defines, (shape, places, &strong), o)
                    })
                };
                if self.compared != LetterOrder::All
                    && !self.alphabet.asks()
                    && !defined(&mut hunt, &outcomes[0])
                {
                    left.clear();
                }
                left.retain(|&o| {
                    says(
                        &mut self.forbids,
                        (shape, places, &strong),
                        &outcomes[o],
                        false,
                    )
                });
                left.retain(|&o| {
                    says(&mut self.allows, (shape, places, &weak), &outcomes[o], true)
                });
                let mut hit = Vec::new();
                for o in left {
                    if self.alphabet.asks() {
                        // The executed instructions depend on the outcome.
                        hunt.defined = MonotoneCache::default();
                    }
                    if let Some(letters) = self.letters(&mut hunt, &outcomes[o]) {
                        let (shape, places, outcome) =
                            (shape.clone(), places.clone(), outcomes[o].clone());
                        found.push(DifferingProgram {
                            shape,
                            places,
                            letters,
                            outcome,
                        });
                        if !self.all {
                            return found;
                        }
                        hit.push(o);
                    }
                }
                hit.into_iter().rev().for_each(|o| drop(outcomes.remove(o)));
                if self.late {
                    return Vec::new();
                }
                if !advance(&mut chosen, &choices) {
                    break;
                }
            }
        }
        found
    }

    /// Drops outcomes that the weakest letters do not allow, or the strongest do not forbid, if
    /// that settles them.
    fn drop_settled(&mut self, shape: &ProgramShape, outcomes: &mut Vec<ShapeOutcome>) {
        let count = shape.slots().count();
        let of_all_scopes = classes(self.alphabet, shape, LetterOrder::All);
        if of_all_scopes.iter().all(|classes| classes.len() == 1) {
            let open: Vec<&[usize]> = of_all_scopes
                .iter()
                .map(|classes| classes[0].as_slice())
                .collect();
            let (apart, together) = (self.alphabet.apart(count), self.alphabet.together(count));
            if self.bottom {
                outcomes
                    .retain(|o| says(&mut self.allows, (shape, &apart, &weakest(&open)), o, true));
            }
            if self.top {
                outcomes.retain(|o| {
                    says(
                        &mut self.forbids,
                        (shape, &together, &strongest(&open)),
                        o,
                        false,
                    )
                });
            }
        }
    }

    /// Letters among the open ones with which the models differ on the outcome; no weaker choice
    /// forbids it.
    fn letters(
        &mut self,
        hunt: &mut LetterSearch<'_>,
        outcome: &ShapeOutcome,
    ) -> Option<Vec<usize>> {
        let LetterSearch {
            shape,
            places,
            open,
            ..
        } = *hunt;
        let mut least = WeakestLetters::new(open);
        loop {
            // The program has to be defined, and the outcome forbidden.
            let letters = least.next(self.alphabet, |letters| {
                let program = (shape, places, letters);
                self.late |= stop::late(self.deadline);
                !self.late
                    && says(&mut self.forbids, program, outcome, false)
                    && hunt.defined.asked(self.alphabet, letters, || {
                        is_defined(&mut self.defines, program, outcome)
                    })
            })?;
            if says(&mut self.allows, (shape, places, &letters), outcome, true) {
                return Some(letters);
            }
        }
    }

    /// Whether every instruction is necessary: the program without it shows no difference.
    fn is_minimal(&mut self, found: &DifferingProgram) -> bool {
        (0..found.letters.len()).all(|gone| {
            let Some(less) = without(found, gone) else {
                return true;
            };
            let DifferingProgram {
                shape,
                places,
                letters,
                outcome,
            } = &less;
            let program = (shape, places.as_slice(), letters.as_slice());
            // A program without the instruction has to remain valid: all threads of a group must
            // reach a barrier.
            !(self.alphabet.placed(shape).contains(places)
                && says(&mut self.forbids, program, outcome, false)
                && says(&mut self.allows, program, outcome, true)
                && is_defined(&mut self.defines, program, outcome))
        })
    }
}

/// Whether all judges allow the outcome, or all forbid it.
fn says(
    judges: &mut [Judge],
    (shape, places, letters): LetteredProgram<'_>,
    outcome: &ShapeOutcome,
    allowed: bool,
) -> bool {
    judges
        .iter_mut()
        .all(|judge| judge.load(shape, places, letters) && judge.allows(outcome) == allowed)
}

/// Whether no judge calls the program undefined; the outcome supplies the values for its branches.
fn is_defined(judges: &mut [Judge], program: LetteredProgram<'_>, outcome: &ShapeOutcome) -> bool {
    judges
        .iter_mut()
        .all(|judge| judge.defines(program, outcome))
}

/// The position of the search: a shape, its placement, the open letters.
struct LetterSearch<'s> {
    shape: &'s ProgramShape,
    places: &'s [Place],
    open: &'s [&'s [usize]],
    /// Whether the program is defined, by letters.
    defined: MonotoneCache,
}

/// A cache for a property of letters that also holds for all stronger letters.
#[derive(Clone, Default)]
struct MonotoneCache {
    holds: Vec<Vec<usize>>,
    fails: Vec<Vec<usize>>,
}

impl MonotoneCache {
    fn asked(
        &mut self,
        alphabet: &Alphabet,
        letters: &[usize],
        ask: impl FnOnce() -> bool,
    ) -> bool {
        let below =
            |a: &[usize], b: &[usize]| a.iter().zip(b).all(|(&a, &b)| alphabet.is_below(a, b));
        if self.holds.iter().any(|known| below(known, letters)) {
            return true;
        }
        if self.fails.iter().any(|known| below(letters, known)) {
            return false;
        }
        let holds = ask();
        // Drops entries that the new one implies.
        match holds {
            true => self.holds.retain(|known| !below(letters, known)),
            false => self.fails.retain(|known| !below(known, letters)),
        }
        if holds {
            &mut self.holds
        } else {
            &mut self.fails
        }
        .push(letters.to_vec());
        holds
    }
}

/// Enumerates the weakest choices of open letters with a property that also holds for stronger
/// letters.
struct WeakestLetters<'o> {
    open: &'o [&'o [usize]],
    /// Maximal choices whose weaker choices are not searched yet.
    regions: Vec<Vec<usize>>,
    seen: rustc_hash::FxHashSet<Vec<usize>>,
    known: MonotoneCache,
}

impl<'o> WeakestLetters<'o> {
    fn new(open: &'o [&'o [usize]]) -> WeakestLetters<'o> {
        WeakestLetters {
            open,
            regions: vec![strongest(open)],
            seen: Default::default(),
            known: MonotoneCache::default(),
        }
    }

    /// The next choice; `holds` has to be the same property in each call.
    fn next(
        &mut self,
        alphabet: &Alphabet,
        mut holds: impl FnMut(&[usize]) -> bool,
    ) -> Option<Vec<usize>> {
        let WeakestLetters {
            open,
            regions,
            seen,
            known,
        } = self;
        fn below(a: usize, b: usize, alphabet: &Alphabet) -> bool {
            alphabet.is_below(a, b)
        }
        loop {
            let top = regions.pop()?;
            if !known.asked(alphabet, &top, || holds(&top)) {
                continue;
            }
            let mut letters = top.clone();
            for (i, class) in open.iter().enumerate() {
                let strong = letters[i];
                let weaker = class
                    .iter()
                    .copied()
                    .filter(|&l| l != strong && below(l, strong, alphabet));
                letters[i] = weaker
                    .into_iter()
                    .find(|&l| {
                        letters[i] = l;
                        known.asked(alphabet, &letters, || holds(&letters))
                    })
                    .unwrap_or(strong);
            }
            for (i, class) in open.iter().enumerate() {
                let rest =
                    |l: &usize| below(*l, top[i], alphabet) && !below(letters[i], *l, alphabet);
                let rest: Vec<usize> = class.iter().copied().filter(rest).collect();
                for &most in rest.iter().filter(|&&l| {
                    !rest
                        .iter()
                        .any(|&other| l != other && below(l, other, alphabet))
                }) {
                    let mut region = top.clone();
                    region[i] = most;
                    if seen.insert(region.clone()) {
                        regions.push(region);
                    }
                }
            }
            return Some(letters);
        }
    }
}

/// The weakest letter of each class, which is its first.
fn weakest(open: &[&[usize]]) -> Vec<usize> {
    open.iter().map(|class| class[0]).collect()
}

/// The strongest letter of each class, which is its last.
fn strongest(open: &[&[usize]]) -> Vec<usize> {
    open.iter().map(|class| class[class.len() - 1]).collect()
}

/// Advances to the next choice of classes; `false` after the last one.
fn advance(chosen: &mut [usize], choices: &[Vec<Vec<usize>>]) -> bool {
    for (at, classes) in chosen.iter_mut().zip(choices) {
        *at += 1;
        if *at < classes.len() {
            return true;
        }
        *at = 0;
    }
    false
}

/// The program without an instruction, and the rest of the outcome. `None`: the outcome depends on
/// the value that the instruction wrote.
fn without(found: &DifferingProgram, gone: usize) -> Option<DifferingProgram> {
    let DifferingProgram {
        shape,
        places,
        letters,
        outcome,
    } = found;
    let (mut threads, mut kept) = (Vec::new(), Vec::new());
    let mut index = 0;
    for (slots, place) in shape.threads.iter().zip(places) {
        let range = index..index + slots.len();
        index = range.end;
        let rest: Vec<ShapeSlot> = range
            .clone()
            .zip(slots)
            .filter(|(i, _)| *i != gone)
            .map(|(_, slot)| *slot)
            .collect();
        if !rest.is_empty() {
            threads.push(rest);
            kept.push(place.clone());
        }
    }
    let shape = ProgramShape { threads };
    let renumbered = |i: u8| match usize::from(i) {
        i if i == gone => None,
        i if i > gone => Some(i as u8 - 1),
        i => Some(i as u8),
    };
    let mut sources = Vec::new();
    for (i, source) in outcome
        .sources
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != gone)
    {
        let _ = i;
        sources.push(match source {
            Some(w) => Some(renumbered(*w)?),
            None => None,
        });
    }
    let last = outcome
        .last
        .iter()
        .map(|w| renumbered(*w))
        .collect::<Option<Vec<u8>>>()?;
    let letters = letters
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != gone)
        .map(|(_, l)| *l)
        .collect();
    Some(DifferingProgram {
        shape,
        places: kept,
        letters,
        outcome: ShapeOutcome { sources, last },
    })
}

/// For each instruction, its letters in classes of comparable ones. The first letter of a class is
/// the weakest, the last one the strongest.
fn classes(
    alphabet: &Alphabet,
    shape: &ProgramShape,
    compared: LetterOrder,
) -> Vec<Vec<Vec<usize>>> {
    let mut all = Vec::new();
    for fitting in alphabet.fitting(shape) {
        let mut classes = Vec::new();
        for &low in &fitting {
            let mut others = fitting.iter().filter(|&&l| l != low);
            if !others.any(|&l| compared.has(alphabet, l, low, true)) {
                let mut class = fitting.clone();
                class.retain(|&l| compared.has(alphabet, low, l, true));
                classes.push(class);
            }
        }
        all.push(classes);
    }
    all
}

/// A judge's answer about an outcome of the loaded program.
type Says = fn(&mut Judge, LetteredProgram<'_>, &ShapeOutcome) -> bool;

/// Message passing, and store buffering without and with fences, each with its weak outcome.
fn probes() -> [(ProgramShape, ShapeOutcome); 3] {
    fn slot(kind: InstrKind, l: u8) -> ShapeSlot {
        ShapeSlot {
            kind,
            location: Some(l),
        }
    }
    let fence = ShapeSlot {
        kind: InstrKind::Fence,
        location: None,
    };
    let (r, w) = (InstrKind::Read, InstrKind::Write);
    let passing = ProgramShape {
        threads: vec![vec![slot(w, 0), slot(w, 1)], vec![slot(r, 1), slot(r, 0)]],
    };
    let passed = ShapeOutcome {
        sources: vec![None, None, Some(1), None],
        last: vec![0, 1],
    };
    let buffering = ProgramShape {
        threads: vec![vec![slot(w, 0), slot(r, 1)], vec![slot(w, 1), slot(r, 0)]],
    };
    let mut fenced = buffering.clone();
    for thread in &mut fenced.threads {
        thread.insert(1, fence);
    }
    fn buffered(n: u8) -> ShapeOutcome {
        ShapeOutcome {
            sources: vec![None; usize::from(n) * 2],
            last: vec![0, n],
        }
    }
    [
        (passing, passed),
        (buffering, buffered(2)),
        (fenced, buffered(3)),
    ]
}

/// Tests whether a judge's answer for a program extends to stronger letters (`up`), or to weaker
/// ones.
fn tried(
    judge: &mut Judge,
    alphabet: &Alphabet,
    compared: LetterOrder,
    up: bool,
    says: Says,
) -> bool {
    let mut letters = alphabet.letters.iter();
    let has_relaxed = letters.any(|letter| letter.order == Some(Order::Relaxed));
    probes().iter().all(|(shape, outcome)| {
        // In programs with fences, only relaxed accesses are tried, if there are some.
        let fences = shape.slots().any(|(_, slot)| slot.kind == InstrKind::Fence);
        let fitting = alphabet.fitting(shape).into_iter();
        let choices: Vec<Vec<Vec<usize>>> = fitting
            .map(|all| {
                all.into_iter()
                    .filter(|l| match &alphabet.letters[*l] {
                        letter if letter.kind != InstrKind::Fence && fences && has_relaxed => {
                            letter.order == Some(Order::Relaxed)
                        }
                        _ => true,
                    })
                    .map(|l| vec![l])
                    .collect()
            })
            .collect();
        let mut said = |places: &[Place]| {
            let (mut said, mut chosen) = (rustc_hash::FxHashSet::default(), vec![0; choices.len()]);
            loop {
                let letters: Vec<usize> = chosen
                    .iter()
                    .zip(&choices)
                    .map(|(&i, all)| all[i][0])
                    .collect();
                if judge.load(shape, places, &letters)
                    && says(judge, (shape, places, &letters), outcome)
                {
                    said.insert(letters);
                }
                if !advance(&mut chosen, &choices) {
                    return said;
                }
            }
        };
        let end = if up {
            alphabet.together(2)
        } else {
            alphabet.apart(2)
        };
        let all: Vec<_> = alphabet
            .placements(2)
            .into_iter()
            .map(|places| (said(&places), places))
            .collect();
        let end = all
            .iter()
            .find(|(_, places)| *places == end)
            .map(|(said, _)| said);
        all.iter().all(|(here, _)| {
            here.iter().all(|letters| {
                (0..letters.len()).all(|i| {
                    choices[i]
                        .iter()
                        .map(|l| l[0])
                        .filter(|&l| compared.has(alphabet, letters[i], l, up))
                        .all(|l| {
                            let mut other = letters.clone();
                            other[i] = l;
                            here.contains(&other)
                        })
                })
            }) && (compared != LetterOrder::All || end.is_some_and(|end| here.is_subset(end)))
        })
    })
}

mod suite;
#[cfg(test)]
mod tests;

pub use suite::{MinimalSuite, MinimalTest, SuiteRequest, suite};
