//! The search: shapes by size, outcomes by tier, places of threads, and the weakest letters with which one model forbids
//! what the other allows.
//!
//! # Where it cuts
//! Of the letters that are still open, the strongest tell whether the model that forbids can forbid at all, and the weakest
//! whether the other can allow. That takes for granted that a model forbids no less when an instruction asks for the most that
//! it can, and allows no less when it asks for the least; and that a program is then as defined as before. Whether that is so is tried first, on message passing and store
//! buffering with all letters ([`Cuts`]): for all letters of a kind, or else for those of one scope.
//!
//! # Invariants
//! - What is found is the first in a fixed order, whatever the number of threads that look for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::judge::{Judge, Judged};
use crate::letters::Alphabet;
use crate::outcome::{Outcome, distinct, outcomes};
use crate::shape::{Kind, Shape, Slot, shapes};
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
        let head = format!("name = \"{name}\"\ndoc = \"{doc}\"\n{dialect}condition = '{condition}'\n");
        alphabet.test(&head, &self.shape, &self.places, &self.letters, Some(&self.outcome))
    }
}

/// What came of a search.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What was found, the smallest first.
    pub found: Vec<Found>,
    /// Programs of up to so many instructions were all looked at, or up to where something was found.
    pub searched: usize,
    /// Where time ran out: shapes of one instruction more that were done, and how many there are.
    pub stopped: Option<(usize, usize)>,
}

/// Where a search may cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cuts {
    /// Letters of different scopes are compared; if not, every choice of scopes is gone through.
    scopes: bool,
    /// By what the strongest letters forbid.
    up: bool,
    /// By what the weakest letters allow.
    down: bool,
    /// By what is undefined even with the strongest letters.
    defined: bool,
}

/// Looks for programs on which the models differ.
///
/// # Errors
/// Why a model cannot judge such programs.
pub fn search(sought: &Sought<'_>) -> Result<Answer, String> {
    let searcher = Searcher::new(sought)?;
    let mut answer = Answer::default();
    for size in 1..=sought.size {
        let shapes = shapes(size);
        let mut of_size = Vec::new();
        let mut done = shapes.len();
        // What no interleaving shows, though each location alone looks like memory, comes first.
        for critical in [true, false] {
            let (found, all) = searcher.tier(sought, &shapes, critical);
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
    allows: Vec<Judge<'a>>,
    forbids: Vec<Judge<'a>>,
    /// Models of the language itself, which may call a program undefined.
    defines: Vec<Judge<'a>>,
    cuts: Cuts,
    deadline: Option<Instant>,
    /// Time ran out in the middle of a shape.
    late: bool,
    all: bool,
}

impl<'a> Searcher<'a> {
    fn new(sought: &Sought<'a>) -> Result<Searcher<'a>, String> {
        let alphabet = sought.alphabet;
        let judges = |all: &[Judged<'a>]| -> Result<Vec<Judge<'a>>, String> {
            all.iter().map(|judged| Judge::new(*judged, alphabet, false)).collect()
        };
        let (mut allows, mut forbids) = (judges(&sought.allows)?, judges(&sought.forbids)?);
        let mut defines: Vec<Judge<'a>> = Vec::new();
        for judged in [sought.forbids.first(), sought.allows.first()].into_iter().flatten() {
            if judged.mapping.is_some() {
                continue;
            }
            let judge = Judge::new(*judged, alphabet, true)?;
            if judge.knows_undefined() {
                defines.push(judge);
            }
        }
        let mut cuts = |scopes| {
            let all = |judges: &mut Vec<Judge<'a>>, up, says: Says<'a>| {
                judges.iter_mut().all(|judge| tried(judge, alphabet, (scopes, up), says))
            };
            Cuts {
                scopes,
                up: all(&mut forbids, true, |judge, _, outcome| !judge.allows(outcome)),
                down: all(&mut allows, false, |judge, _, outcome| judge.allows(outcome)),
                defined: all(&mut defines, true, |judge, shape, _| {
                    !outcomes(shape).iter().any(|o| judge.flags(o))
                }),
            }
        };
        let wide = cuts(true);
        let cuts = if wide.up && wide.down { wide } else { cuts(false) };
        let (all, deadline) = (sought.all, sought.deadline);
        Ok(Searcher { alphabet, allows, forbids, defines, cuts, deadline, late: false, all })
    }

    /// Searches one tier of all shapes; how many of them were done.
    fn tier(&self, sought: &Sought<'_>, shapes: &[Shape], critical: bool) -> (Vec<Found>, usize) {
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
                        let Some(shape) = shapes.get(index) else { break };
                        if !sought.all && index > first.load(Ordering::Relaxed) {
                            break;
                        }
                        let of_shape = searcher.shape(shape, critical);
                        if searcher.late {
                            undone.fetch_min(index, Ordering::Relaxed);
                            break;
                        }
                        if !of_shape.is_empty() {
                            first.fetch_min(index, Ordering::Relaxed);
                            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                            found.extend(of_shape.into_iter().map(|f| (index, f)));
                        }
                    }
                });
            }
        });
        let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.sort_by_key(|(index, _)| *index);
        let undone = undone.into_inner();
        let first = first.into_inner();
        if !sought.all {
            // What lies behind a shape that was not looked at is not the first.
            found.retain(|(index, _)| *index == first && first < undone);
        }
        (found.into_iter().map(|(_, f)| f).collect(), undone)
    }

    fn shape(&mut self, shape: &Shape, critical: bool) -> Vec<Found> {
        let mut outcomes = distinct(shape);
        outcomes.retain(|o| o.is_critical(shape) == critical);
        let slots: Vec<Slot> = shape.slots().map(|(_, slot)| slot).collect();
        let choices: Vec<Vec<Vec<usize>>> =
            slots.iter().map(|slot| classes(self.alphabet, slot.kind, self.cuts.scopes)).collect();
        let placements = self.alphabet.placements(shape.threads.len());
        if self.cuts.up && self.cuts.scopes && !outcomes.is_empty() {
            // What is not forbidden with the strongest letters and all threads together is never forbidden.
            let strong: Vec<usize> = choices.iter().map(|classes| strongest(&classes[0])).collect();
            let one = |places: &&Vec<Place>| places.iter().all(|p| *p == places[0]);
            let together = placements.iter().find(one).expect("threads may be together");
            for judge in &mut self.forbids {
                outcomes.retain(|outcome| judge.load(shape, together, &strong) && !judge.allows(outcome));
            }
        }
        let mut hunt =
            Hunt { shape, places: &[], left: (0..outcomes.len()).collect(), outcomes, found: Vec::new() };
        for places in &placements {
            hunt.places = places;
            let mut chosen = vec![0; slots.len()];
            while !hunt.left.is_empty() {
                self.late |= stop::late(self.deadline);
                if self.late {
                    return Vec::new();
                }
                let open: Vec<&[usize]> = choices.iter().zip(&chosen).map(|(c, &i)| c[i].as_slice()).collect();
                self.letters(&mut hunt, &open);
                if !self.all && !hunt.found.is_empty() {
                    return hunt.found;
                }
                if !advance(&mut chosen, &choices) {
                    break;
                }
            }
        }
        hunt.found
    }

    /// Looks for the weakest letters, of those that are open, with which the models differ.
    fn letters(&mut self, hunt: &mut Hunt<'_>, open: &[&[usize]]) {
        let mut letters: Vec<usize> = open.iter().map(|class| strongest(class)).collect();
        let weak: Vec<usize> = open.iter().map(|class| class[0]).collect();
        let mut left = hunt.left.clone();
        if self.cuts.up {
            self.keep_forbidden(hunt, &letters, &mut left);
        }
        if self.cuts.down {
            self.keep_allowed(hunt, &weak, &mut left);
        }
        // Nor is a program defined that asks for less than one that is not.
        if !left.is_empty() && (!self.cuts.defined || self.is_defined(hunt.shape, hunt.places, &letters)) {
            self.extend(hunt, (open, &weak), 0, &mut letters, &left);
        }
    }

    /// Chooses the letters from `next` on; those behind it are the strongest.
    fn extend(
        &mut self,
        hunt: &mut Hunt<'_>,
        (open, weak): (&[&[usize]], &[usize]),
        next: usize,
        letters: &mut Vec<usize>,
        left: &[usize],
    ) {
        let mut left: Vec<usize> = left.iter().copied().filter(|o| hunt.left.contains(o)).collect();
        if next == open.len() {
            if !self.cuts.up {
                self.keep_forbidden(hunt, letters, &mut left);
            }
            if !self.cuts.down {
                self.keep_allowed(hunt, letters, &mut left);
            }
            if !left.is_empty() && (self.cuts.defined || self.is_defined(hunt.shape, hunt.places, letters)) {
                left.truncate(if self.all { left.len() } else { 1 });
                hunt.hit(letters, &left);
            }
            return;
        }
        let top = letters[next];
        for &letter in open[next] {
            letters[next] = letter;
            let mut left = left.clone();
            if self.cuts.up && letter != top {
                self.keep_forbidden(hunt, letters, &mut left);
            }
            if self.cuts.down && letter != weak[next] {
                self.keep_allowed(hunt, &[&letters[..=next], &weak[next + 1..]].concat(), &mut left);
            }
            self.late |= stop::late(self.deadline);
            if self.late {
                return;
            }
            let defined = |searcher: &mut Self| searcher.is_defined(hunt.shape, hunt.places, letters);
            if !left.is_empty() && (!self.cuts.defined || letter == top || defined(self)) {
                self.extend(hunt, (open, weak), next + 1, letters, &left);
                if !self.all && !hunt.found.is_empty() {
                    return;
                }
            }
        }
        letters[next] = top;
    }

    /// Keeps the outcomes that the one model forbids.
    fn keep_forbidden(&mut self, hunt: &Hunt<'_>, letters: &[usize], left: &mut Vec<usize>) {
        for judge in &mut self.forbids {
            left.retain(|&o| judge.load(hunt.shape, hunt.places, letters) && !judge.allows(&hunt.outcomes[o]));
        }
    }

    /// Keeps the outcomes that the other one allows.
    fn keep_allowed(&mut self, hunt: &Hunt<'_>, letters: &[usize], left: &mut Vec<usize>) {
        for judge in &mut self.allows {
            left.retain(|&o| judge.load(hunt.shape, hunt.places, letters) && judge.allows(&hunt.outcomes[o]));
        }
    }

    /// Whether no model of the language calls the program undefined.
    fn is_defined(&mut self, shape: &Shape, places: &[Place], letters: &[usize]) -> bool {
        if self.defines.is_empty() {
            return true;
        }
        let all = outcomes(shape);
        self.defines
            .iter_mut()
            .all(|judge| judge.load(shape, places, letters) && !all.iter().any(|outcome| judge.flags(outcome)))
    }

    /// Whether no instruction can go: without any of them, the rest shows no difference.
    fn is_minimal(&mut self, found: &Found) -> bool {
        (0..found.letters.len()).all(|gone| {
            let Some(less) = without(found, gone) else { return true };
            let Found { shape, places, letters, outcome } = &less;
            let say = |judges: &mut Vec<Judge<'a>>, allowed| {
                judges.iter_mut().all(|j| j.load(shape, places, letters) && j.allows(outcome) == allowed)
            };
            let (forbidden, allowed) = (say(&mut self.forbids, false), say(&mut self.allows, true));
            !(forbidden && allowed && self.is_defined(shape, places, letters))
        })
    }
}

/// What is looked for in a shape, with threads at some places.
struct Hunt<'s> {
    shape: &'s Shape,
    places: &'s [Place],
    outcomes: Vec<Outcome>,
    /// Outcomes for which nothing was found yet.
    left: Vec<usize>,
    found: Vec<Found>,
}

impl Hunt<'_> {
    fn hit(&mut self, letters: &[usize], outcomes: &[usize]) {
        self.left.retain(|o| !outcomes.contains(o));
        self.found.extend(outcomes.iter().map(|&o| Found {
            shape: self.shape.clone(),
            places: self.places.to_vec(),
            letters: letters.to_vec(),
            outcome: self.outcomes[o].clone(),
        }));
    }
}

/// The last letter of a class: none in it asks for more.
fn strongest(class: &[usize]) -> usize {
    class[class.len() - 1]
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

/// The program without an instruction, and what is left of the outcome. `None`: the outcome needs what it wrote.
fn without(found: &Found, gone: usize) -> Option<Found> {
    let Found { shape, places, letters, outcome } = found;
    let (mut threads, mut kept) = (Vec::new(), Vec::new());
    let mut index = 0;
    for (slots, place) in shape.threads.iter().zip(places) {
        let range = index..index + slots.len();
        index = range.end;
        let rest: Vec<Slot> =
            range.clone().zip(slots).filter(|(i, _)| *i != gone).map(|(_, slot)| *slot).collect();
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
    for (i, source) in outcome.sources.iter().enumerate().filter(|(i, _)| *i != gone) {
        let _ = i;
        sources.push(match source {
            Some(w) => Some(renumbered(*w)?),
            None => None,
        });
    }
    let last = outcome.last.iter().map(|w| renumbered(*w)).collect::<Option<Vec<u8>>>()?;
    let letters = letters.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, l)| *l).collect();
    Some(Found { shape, places: kept, letters, outcome: Outcome { sources, last } })
}

/// The letters of a kind in classes, each with a weakest and a strongest one, first and last; with `scopes`, those of
/// different scopes are compared.
fn classes(alphabet: &Alphabet, kind: Kind, scopes: bool) -> Vec<Vec<usize>> {
    let letters = &alphabet.letters;
    let above = |low: usize, l: usize| {
        letters[low].is_below(&letters[l]) && (scopes || letters[low].scope == letters[l].scope)
    };
    let weakest = alphabet.of(kind).filter(|&low| !alphabet.of(kind).any(|l| l != low && above(l, low)));
    weakest.map(|low| alphabet.of(kind).filter(|&l| above(low, l)).collect()).collect()
}

/// What a judge says of an outcome of the program that it was turned to.
type Says<'a> = fn(&mut Judge<'a>, &Shape, &Outcome) -> bool;

/// Tries whether a judge that says so of a program says so of those with the strongest letters (`up`), or the weakest.
fn tried<'a>(judge: &mut Judge<'a>, alphabet: &Alphabet, how: (bool, bool), says: Says<'a>) -> bool {
    let slot = |kind, l: u8| Slot { kind, location: Some(l) };
    let fence = Slot { kind: Kind::Fence, location: None };
    let (r, w) = (Kind::Read, Kind::Write);
    let passing = Shape { threads: vec![vec![slot(w, 0), slot(w, 1)], vec![slot(r, 1), slot(r, 0)]] };
    let passed = Outcome { sources: vec![None, None, Some(1), None], last: vec![0, 1] };
    let buffering = |fences: bool| {
        let thread = |a, b| {
            let mut slots = vec![slot(w, a), slot(r, b)];
            if fences {
                slots.insert(1, fence);
            }
            slots
        };
        Shape { threads: vec![thread(0, 1), thread(1, 0)] }
    };
    let buffered = |n: u8| Outcome { sources: vec![None; usize::from(n) * 2], last: vec![0, n] };
    let programs = [(passing, passed), (buffering(false), buffered(2)), (buffering(true), buffered(3))];
    programs.iter().all(|(shape, outcome)| {
        alphabet.placements(2).iter().all(|places| {
            tried_on(alphabet, how, shape, |letters| {
                judge.load(shape, places, letters) && says(judge, shape, outcome)
            })
        })
    })
}

/// The same on programs of one shape, with all letters.
fn tried_on(
    alphabet: &Alphabet,
    (scopes, up): (bool, bool),
    shape: &Shape,
    mut says: impl FnMut(&[usize]) -> bool,
) -> bool {
    // Beside fences, accesses need not order anything.
    let fences = shape.slots().any(|(_, slot)| slot.kind == Kind::Fence);
    let is_tried = |l: &usize| match &alphabet.letters[*l] {
        letter if letter.kind != Kind::Fence && fences => letter.order == Some(Order::Relaxed),
        _ => true,
    };
    let slots: Vec<Slot> = shape.slots().map(|(_, slot)| slot).collect();
    let single = |slot: &Slot| alphabet.of(slot.kind).filter(is_tried).map(|l| vec![l]).collect();
    let choices: Vec<Vec<Vec<usize>>> = slots.iter().map(single).collect();
    let mut said = rustc_hash::FxHashSet::default();
    let mut chosen = vec![0; choices.len()];
    loop {
        let letters: Vec<usize> = chosen.iter().zip(&choices).map(|(&i, all)| all[i][0]).collect();
        if says(&letters) {
            said.insert(letters);
        }
        if !advance(&mut chosen, &choices) {
            break;
        }
    }
    said.iter().all(|letters| {
        let changed = |(i, slot): (usize, &Slot)| {
            let of_letter = classes(alphabet, slot.kind, scopes).into_iter().filter(|c| c.contains(&letters[i]));
            let end = |class: Vec<usize>| {
                let class: Vec<usize> = class.into_iter().filter(is_tried).collect();
                let mut other = letters.clone();
                other[i] = if up { strongest(&class) } else { class[0] };
                other
            };
            of_letter.map(end).collect::<Vec<_>>()
        };
        slots.iter().enumerate().flat_map(changed).all(|other| said.contains(&other))
    })
}

mod suite;
#[cfg(test)]
mod tests;

pub use suite::{Minimal, Suite, Wanted, suite};
