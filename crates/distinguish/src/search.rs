//! The search: shapes by size, outcomes by tier, places of threads, and the weakest letters with
//! which one model forbids what the other allows.
//!
//! # Where it cuts
//! Letters are compared by what they ask for. If the model that forbids does so, and the program is
//! defined, with some letters, then also with stronger ones; and if the other model allows, then
//! also with weaker ones. So of each outcome only those letters are looked at that are the weakest
//! with which it is forbidden. One such choice is found from above, by weakening; what is not above
//! it is divided among smaller regions, in which the next one is sought.
//!
//! Whether models are of that kind is tried first, on message passing and store buffering with all
//! letters ([`Compared`]). If not, letters of different scopes are not compared, or none at all:
//! then all choices are gone through.
//!
//! # Invariants
//! - What is found is the first in a fixed order, whatever the number of threads that look for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::judge::{Judge, Judged};
use crate::letters::Alphabet;
use crate::outcome::{Outcome, Tier, distinct};
use crate::shape::{Kind, Program, Shape, Slot, shapes};
use program::Place;
use program::words::Order;

/// What is sought: a program of which `allows` allows an outcome that `forbids` forbids.
#[derive(Debug)]
pub struct Sought<'a> {
    /// The model that allows, and others that have to allow as well.
    pub allows: Vec<Judged<'a>>,
    /// The model that forbids, and others that have to forbid as well.
    pub forbids: Vec<Judged<'a>>,
    /// Of what.
    pub alphabet: &'a Alphabet,
    /// At most so many instructions.
    pub size: usize,
    /// Of which outcomes, those of one part after those of another.
    pub tiers: &'a [Tier],
    /// All of them, not only the first.
    pub all: bool,
    /// On so many threads.
    pub jobs: usize,
    /// Until then.
    pub deadline: Option<Instant>,
}

/// A program, and an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its shape.
    pub shape: Shape,
    /// Where its threads run.
    pub places: Vec<Place>,
    /// By instruction: its letter.
    pub letters: Vec<usize>,
    /// The outcome.
    pub outcome: Outcome,
}

impl Found {
    /// As a test, under that name; the condition asks for the outcome.
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

/// What came of a search.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What was found, the smallest first.
    pub found: Vec<Found>,
    /// Programs of up to so many instructions were all looked at, or up to where something was
    /// found.
    pub searched: usize,
    /// Where time ran out: shapes of one instruction more that were done, and how many there are.
    pub stopped: Option<(usize, usize)>,
}

/// Which letters are compared; others are gone through one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    /// All of a kind; and threads in one group with those in two.
    All,
    /// Those of one scope.
    OfOneScope,
    /// None.
    None,
}

impl Compared {
    /// Whether the second letter is known to ask for no less than the first one (`up`), or for no
    /// more.
    fn has(self, alphabet: &Alphabet, a: usize, b: usize, up: bool) -> bool {
        let (low, high) = if up { (a, b) } else { (b, a) };
        match self {
            Compared::All => alphabet.is_below(low, high),
            Compared::OfOneScope => {
                alphabet.is_below(low, high)
                    && alphabet.letters[low].scope == alphabet.letters[high].scope
            }
            Compared::None => low == high,
        }
    }
}

/// Looks for programs on which the models differ.
///
/// # Errors
/// Why a model cannot judge such programs.
pub fn search(sought: &Sought<'_>) -> Result<Answer, String> {
    let searcher = Searcher::new(sought)?;
    let mut answer = Answer::default();
    let kinds = sought.alphabet.kinds();
    for size in 1..=sought.size {
        let shapes = shapes(size, &kinds);
        let mut of_size = Vec::new();
        let mut done = shapes.len();
        // What no interleaving shows, though each location alone looks like memory, comes first.
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

/// What one thread needs.
#[derive(Clone)]
struct Searcher<'a> {
    alphabet: &'a Alphabet,
    allows: Vec<Judge>,
    forbids: Vec<Judge>,
    /// Models of the language itself, which may call a program undefined.
    defines: Vec<Judge>,
    compared: Compared,
    /// Whether what the weakest letters do not allow to threads apart is never allowed.
    bottom: bool,
    /// Whether what the strongest letters do not forbid to threads together is never forbidden.
    top: bool,
    deadline: Option<Instant>,
    /// Time ran out in the middle of a shape.
    late: bool,
    all: bool,
}

impl<'a> Searcher<'a> {
    fn new(sought: &Sought<'a>) -> Result<Searcher<'a>, String> {
        let alphabet = sought.alphabet;
        let mut defines: Vec<Judge> = Vec::new();
        let mut judges = |all: &[Judged<'a>]| -> Result<Vec<Judge>, String> {
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
        let [top, bottom, of_definedness] = holds(Compared::All);
        let compared = match top && bottom && of_definedness {
            true => Compared::All,
            false if holds(Compared::OfOneScope) == [true; 3] => Compared::OfOneScope,
            false => Compared::None,
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

    /// Searches one tier of all shapes; how many of them were done.
    fn tier(&self, sought: &Sought<'_>, shapes: &[Shape], tier: Tier) -> (Vec<Found>, usize) {
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
            // What lies behind a shape that was not looked at is not the first.
            found.retain(|(index, _)| *index == first && first < undone);
        }
        (found.into_iter().map(|(_, f)| f).collect(), undone)
    }

    fn shape(&mut self, shape: &Shape, tier: Tier) -> Vec<Found> {
        self.late |= stop::late(self.deadline);
        if self.late {
            return Vec::new();
        }
        let mut outcomes = distinct(shape, tier);
        let slots: Vec<Slot> = shape.slots().map(|(_, slot)| slot).collect();
        let choices = classes(self.alphabet, shape, self.compared);
        let placements = self.alphabet.placed(shape);
        let open_of = |chosen: &[usize]| -> Vec<&[usize]> {
            choices
                .iter()
                .zip(chosen)
                .map(|(c, &i)| c[i].as_slice())
                .collect()
        };
        let of_all_scopes = classes(self.alphabet, shape, Compared::All);
        if of_all_scopes.iter().all(|classes| classes.len() == 1) {
            let open: Vec<&[usize]> = of_all_scopes
                .iter()
                .map(|classes| classes[0].as_slice())
                .collect();
            let (apart, together) = (
                self.alphabet.apart(slots.len()),
                self.alphabet.together(slots.len()),
            );
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
        let mut found = Vec::new();
        for places in &placements {
            let mut chosen = vec![0; slots.len()];
            while !outcomes.is_empty() {
                self.late |= stop::late(self.deadline);
                let open = open_of(&chosen);
                let (weak, strong) = (weakest(&open), strongest(&open));
                let mut hunt = Hunt {
                    shape,
                    places,
                    open: &open,
                    defined: Known::default(),
                };
                let mut left: Vec<usize> = (0..outcomes.len()).collect();
                // Of many choices, most are not even defined.
                let mut defined = |hunt: &mut Hunt<'_>, o: &Outcome| {
                    hunt.defined.asked(self.alphabet, &strong, || {
                        is_defined(&mut self.defines, (shape, places, &strong), o)
                    })
                };
                if self.compared != Compared::All
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
                        // What is executed besides depends on the outcome.
                        hunt.defined = Known::default();
                    }
                    if let Some(letters) = self.letters(&mut hunt, &outcomes[o]) {
                        let (shape, places, outcome) =
                            (shape.clone(), places.clone(), outcomes[o].clone());
                        found.push(Found {
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

    /// Letters, of those that are open, with which the models differ on the outcome: none weaker
    /// are forbidden.
    fn letters(&mut self, hunt: &mut Hunt<'_>, outcome: &Outcome) -> Option<Vec<usize>> {
        let Hunt {
            shape,
            places,
            open,
            ..
        } = *hunt;
        let mut least = Least::new(open);
        loop {
            // The program is to be defined, and the outcome forbidden.
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

    /// Whether no instruction can go: without any of them, the rest shows no difference.
    fn is_minimal(&mut self, found: &Found) -> bool {
        (0..found.letters.len()).all(|gone| {
            let Some(less) = without(found, gone) else {
                return true;
            };
            let Found {
                shape,
                places,
                letters,
                outcome,
            } = &less;
            let program = (shape, places.as_slice(), letters.as_slice());
            // Whoever waits at a barrier for threads that do not come is no program.
            !(self.alphabet.placed(shape).contains(places)
                && says(&mut self.forbids, program, outcome, false)
                && says(&mut self.allows, program, outcome, true)
                && is_defined(&mut self.defines, program, outcome))
        })
    }
}

/// Whether all judges allow the outcome, or forbid it.
fn says(
    judges: &mut [Judge],
    (shape, places, letters): Program<'_>,
    outcome: &Outcome,
    allowed: bool,
) -> bool {
    judges
        .iter_mut()
        .all(|judge| judge.load(shape, places, letters) && judge.allows(outcome) == allowed)
}

/// Whether no judge calls the program undefined; what its branches ask for is the outcome's.
fn is_defined(judges: &mut [Judge], program: Program<'_>, outcome: &Outcome) -> bool {
    judges
        .iter_mut()
        .all(|judge| judge.defines(program, outcome))
}

/// Where letters are sought: a shape, its threads at some places, the letters that are open.
struct Hunt<'s> {
    shape: &'s Shape,
    places: &'s [Place],
    open: &'s [&'s [usize]],
    /// With which of them the program is defined.
    defined: Known,
}

/// What is known of letters, if it holds of whatever asks for more than what it holds of.
#[derive(Clone, Default)]
struct Known {
    holds: Vec<Vec<usize>>,
    fails: Vec<Vec<usize>>,
}

impl Known {
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
        // What says less goes.
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

/// The weakest letters, of those that are open, of which something holds that also holds of
/// stronger ones.
struct Least<'o> {
    open: &'o [&'o [usize]],
    /// What asks for no more than one of these was not looked at.
    regions: Vec<Vec<usize>>,
    seen: rustc_hash::FxHashSet<Vec<usize>>,
    known: Known,
}

impl<'o> Least<'o> {
    fn new(open: &'o [&'o [usize]]) -> Least<'o> {
        Least {
            open,
            regions: vec![strongest(open)],
            seen: Default::default(),
            known: Known::default(),
        }
    }

    /// The next ones; what they are asked about is the same each time.
    fn next(
        &mut self,
        alphabet: &Alphabet,
        mut holds: impl FnMut(&[usize]) -> bool,
    ) -> Option<Vec<usize>> {
        let Least {
            open,
            regions,
            seen,
            known,
        } = self;
        let below = |a: usize, b: usize| alphabet.is_below(a, b);
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
                    .filter(|&l| l != strong && below(l, strong));
                letters[i] = weaker
                    .into_iter()
                    .find(|&l| {
                        letters[i] = l;
                        known.asked(alphabet, &letters, || holds(&letters))
                    })
                    .unwrap_or(strong);
            }
            for (i, class) in open.iter().enumerate() {
                let rest = |l: &usize| below(*l, top[i]) && !below(letters[i], *l);
                let rest: Vec<usize> = class.iter().copied().filter(rest).collect();
                for &most in rest
                    .iter()
                    .filter(|&&l| !rest.iter().any(|&other| l != other && below(l, other)))
                {
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

/// The first letter of each class: none in it asks for less.
fn weakest(open: &[&[usize]]) -> Vec<usize> {
    open.iter().map(|class| class[0]).collect()
}

/// The last letter of each class: none in it asks for more.
fn strongest(open: &[&[usize]]) -> Vec<usize> {
    open.iter().map(|class| class[class.len() - 1]).collect()
}

/// The next choice of classes; `false`: there is none.
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

/// The program without an instruction, and what is left of the outcome. `None`: the outcome needs
/// what it wrote.
fn without(found: &Found, gone: usize) -> Option<Found> {
    let Found {
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
        let rest: Vec<Slot> = range
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
    let shape = Shape { threads };
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
    Some(Found {
        shape,
        places: kept,
        letters,
        outcome: Outcome { sources, last },
    })
}

/// By instruction: its letters in classes of such as are compared, each with a weakest and a
/// strongest one, first and last.
fn classes(alphabet: &Alphabet, shape: &Shape, compared: Compared) -> Vec<Vec<Vec<usize>>> {
    let above = |low: usize, l: usize| compared.has(alphabet, low, l, true);
    let of = |fitting: Vec<usize>| {
        let least = fitting
            .iter()
            .filter(|&&low| !fitting.iter().any(|&l| l != low && above(l, low)));
        least
            .map(|&low| fitting.iter().copied().filter(|&l| above(low, l)).collect())
            .collect()
    };
    alphabet.fitting(shape).into_iter().map(of).collect()
}

/// What a judge says of an outcome of the program that it was turned to.
type Says = fn(&mut Judge, Program<'_>, &Outcome) -> bool;

/// Tries whether a judge that says so of a program says so of those with stronger letters (`up`),
/// or weaker ones.
fn tried(judge: &mut Judge, alphabet: &Alphabet, compared: Compared, up: bool, says: Says) -> bool {
    let slot = |kind, l: u8| Slot {
        kind,
        location: Some(l),
    };
    let fence = Slot {
        kind: Kind::Fence,
        location: None,
    };
    let (r, w) = (Kind::Read, Kind::Write);
    let passing = Shape {
        threads: vec![vec![slot(w, 0), slot(w, 1)], vec![slot(r, 1), slot(r, 0)]],
    };
    let passed = Outcome {
        sources: vec![None, None, Some(1), None],
        last: vec![0, 1],
    };
    let buffering = |fences: bool| {
        let thread = |a, b| {
            let mut slots = vec![slot(w, a), slot(r, b)];
            if fences {
                slots.insert(1, fence);
            }
            slots
        };
        Shape {
            threads: vec![thread(0, 1), thread(1, 0)],
        }
    };
    let buffered = |n: u8| Outcome {
        sources: vec![None; usize::from(n) * 2],
        last: vec![0, n],
    };
    let programs = [
        (passing, passed),
        (buffering(false), buffered(2)),
        (buffering(true), buffered(3)),
    ];
    programs.iter().all(|(shape, outcome)| {
        // Beside fences, accesses need not order anything.
        let fences = shape.slots().any(|(_, slot)| slot.kind == Kind::Fence);
        let is_tried = |l: &usize| match &alphabet.letters[*l] {
            letter if letter.kind != Kind::Fence && fences => letter.order == Some(Order::Relaxed),
            _ => true,
        };
        let fitting = alphabet.fitting(shape).into_iter();
        let choices: Vec<Vec<Vec<usize>>> = fitting
            .map(|all| all.into_iter().filter(is_tried).map(|l| vec![l]).collect())
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
            let follows = |letters: &Vec<usize>| {
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
            };
            here.iter().all(follows)
                && (compared != Compared::All || end.is_some_and(|end| here.is_subset(end)))
        })
    })
}

mod suite;
#[cfg(test)]
mod tests;

pub use suite::{Minimal, Suite, Wanted, suite};
