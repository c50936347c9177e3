//! Judges small programs by a model: which outcomes it allows, and whether it calls the program
//! defined.
//!
//! # Invariants
//! - Decisions come from explicit executions. The judge tries every source of each read, and all
//!   choices of free orders that can matter.

use std::sync::Arc;

use crate::flat::{Flat, MOST_EVENTS, Rows, close, is_acyclic, ones};
use crate::letters::Alphabet;
use crate::outcome::{ShapeOutcome, alike, orders};
use crate::reduced::{ReducedModel, TypeSet};
use crate::shape::{InstrKind, LetteredProgram, MOST_THREADS, ProgramShape};
use cat::model::ir::{FreeId, FreeShape as Form, Kind as Sort, Model, NodeOp, Test};
use program::Place;
use rustc_hash::FxHashMap;

mod cuts;
mod learnt;

use cuts::cuts;
pub use learnt::{JudgeSetup, LetterMeanings, ModelSummary, sample, says};
use learnt::{LetterEvent, NumberedEvent, groups, reduced_by, standing};

/// A model, and the program that it judges.
#[derive(Clone, Debug)]
pub struct Judge {
    model: Arc<Model>,
    learnt: Arc<LetterMeanings>,
    leaves: Arc<Vec<TypeSet>>,
    flat: Flat,
    /// Flags that make the program undefined.
    flags: Vec<usize>,
    /// The stage after which the flags are known.
    flagged: usize,
    /// The outcomes of a shape; outcomes that look alike are in one group.
    alike: (Option<ProgramShape>, Vec<Vec<ShapeOutcome>>),
    /// The outcomes of a shape and of its cuts, without the last writes.
    outcomes: FxHashMap<ProgramShape, Vec<ShapeOutcome>>,

    /// The current program.
    loaded: Option<(ProgramShape, Vec<Place>, Vec<usize>)>,
    events: Vec<LetterEvent>,
    /// Whether stage 0 rejects nothing.
    possible: bool,
    /// For each instruction, its event that reads and its event that writes.
    reading: Vec<Option<usize>>,
    writing: Vec<Option<usize>>,
    /// The writes that each read may read from.
    readable: Rows,
    /// The possible choices for each free order, and the current ones.
    orders: Vec<LetterChoices>,
    chosen: Vec<Rows>,
    /// For each order, the axioms that require pairs of it, if other pairs bring no advantage
    /// ([`least`]).
    least: Vec<Vec<usize>>,
}

/// A free order, its bounds, and its possible choices.
#[derive(Clone, Debug)]
struct LetterChoices {
    free: FreeId,
    within: Rows,
    containing: Rows,
    covering: Rows,
    all: Vec<Vec<u32>>,
}

impl Judge {
    /// Learns the meaning of letters in a model. With `flags`, the judge can decide whether
    /// programs are defined.
    ///
    /// # Errors
    /// Why the model cannot judge such programs.
    pub fn new(judged: JudgeSetup<'_>, alphabet: &Alphabet, flags: bool) -> Result<Judge, String> {
        Judge::of(judged, judged.learnt(alphabet)?, flags)
    }

    /// The same with letters that were already learned.
    ///
    /// # Errors
    /// Why the model cannot judge such programs.
    pub fn of(
        judged: JudgeSetup<'_>,
        learnt: Arc<LetterMeanings>,
        flags: bool,
    ) -> Result<Judge, String> {
        let ReducedModel { model, leaves } = reduced_by(judged.model, &learnt, flags)?;
        let flags: Vec<usize> = (0..model.flags.len()).collect();
        fn some(is: fn(&LetterEvent) -> bool, learnt: &LetterMeanings) -> bool {
            learnt.becomes.iter().flatten().any(is)
        }
        if !flags.is_empty()
            && some(|e| e.tied && e.reads, &learnt)
            && some(|e| e.adds || e.tied && e.writes, &learnt)
        {
            return Err(format!(
                "`{}` calls some programs undefined; the search cannot tell which, if a branch \
                tests a value that depends on other values",
                judged.model.name
            ));
        }
        let least: Vec<Vec<usize>> = (0..model.free.len())
            .filter(|f| model.free[*f].shape == Form::Order)
            .map(|f| {
                if flags.is_empty() {
                    least(&model, FreeId(f as u32)).unwrap_or_default()
                } else {
                    Vec::new()
                }
            })
            .collect();
        let model = Arc::new(model);
        let flat = Flat::new(
            Arc::clone(&model),
            flags.iter().map(|&f| model.flags[f].node),
        );
        Ok(Judge {
            flagged: flags
                .iter()
                .map(|&f| flat.stage(model.flags[f].node))
                .fold(1, usize::max),
            model,
            learnt,
            leaves: Arc::new(leaves),
            alike: (None, Vec::new()),
            outcomes: FxHashMap::default(),
            flat,
            flags,
            loaded: None,
            events: Vec::new(),
            possible: true,
            reading: Vec::new(),
            writing: Vec::new(),
            readable: [0; MOST_EVENTS],
            orders: Vec::new(),
            chosen: vec![[0; MOST_EVENTS]; least.len()],
            least,
        })
    }

    /// Whether the judge can decide that a program is undefined.
    pub fn knows_undefined(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Loads a program. `false`: it has too many events.
    pub fn load(&mut self, shape: &ProgramShape, places: &[Place], letters: &[usize]) -> bool {
        if self
            .loaded
            .as_ref()
            .is_some_and(|(s, p, l)| s == shape && p == places && l == letters)
        {
            return true;
        }
        self.loaded = None;
        self.build_events(shape, letters);
        let n = self.events.len();
        if n > MOST_EVENTS {
            return false;
        }
        self.begin(places, shape.threads.len());
        self.possible = self.flat.run(0, |_| false).is_ok();
        // Steps after an axiom that always rejects were not computed for this program.
        self.loaded = Some((shape.clone(), places.to_vec(), letters.to_vec()));
        if !self.possible {
            return true;
        }
        self.choose_orders();
        true
    }

    /// Builds the events of a program, initial writes first.
    fn build_events(&mut self, shape: &ProgramShape, letters: &[usize]) {
        self.events.clear();
        self.reading.clear();
        self.writing.clear();
        for l in 0..shape.locations() as u8 {
            self.events.push(LetterEvent {
                location: Some(l),
                ..LetterEvent::initial(shape.is_plain(usize::from(l)))
            });
        }
        for (i, ((thread, slot), &letter)) in shape.slots().zip(letters).enumerate() {
            let (mut reading, mut writing) = (None, None);
            for event in &self.learnt.becomes[letter] {
                let accesses = event.reads || event.writes;
                if event.reads {
                    reading = Some(self.events.len());
                }
                if event.writes {
                    writing = Some(self.events.len());
                }
                let location = slot.location.filter(|_| accesses);
                self.events.push(LetterEvent {
                    thread: Some(thread as u8),
                    slot: i as u8,
                    location,
                    ..*event
                });
            }
            self.reading.push(reading);
            self.writing.push(writing);
        }
    }

    /// Sets the leaves of the table for the events, given the threads' places.
    fn begin(&mut self, places: &[Place], threads: usize) {
        let n = self.events.len();
        let LetterMeanings { pairs, apart, .. } = &*self.learnt;
        let mut classes = [[0; MOST_THREADS]; MOST_THREADS];
        let placed = &places[..threads];
        for (x, p) in placed.iter().enumerate() {
            for (y, q) in placed.iter().enumerate().filter(|(y, _)| *y != x) {
                let shared = groups(p, q);
                classes[x][y] = apart
                    .iter()
                    .position(|known| *known == shared)
                    .expect("placements of two are all");
            }
        }
        let events = &self.events;
        let mut numbers = [[0; MOST_EVENTS]; MOST_EVENTS];
        for (i, a) in events.iter().enumerate() {
            for (j, b) in events.iter().enumerate() {
                let (first, second) = (NumberedEvent::new(i, a), NumberedEvent::new(j, b));
                let standing = standing(first, second, |x: u8, y: u8| {
                    classes[usize::from(x)][usize::from(y)]
                });
                numbers[i][j] = pairs.at(a.ty.into(), b.ty.into(), standing);
            }
        }
        let leaves = &self.leaves;
        self.flat.begin(n, |leaf, sort, rows| {
            let bits = &leaves[leaf.index()];
            match sort {
                Sort::Set => {
                    rows[0] = (0..n)
                        .filter(|e| bits.has(events[*e].ty.into()))
                        .fold(0, |all, e| all | 1 << e);
                }
                Sort::Rel => {
                    for (row, numbers) in rows.iter_mut().zip(&numbers[..n]) {
                        *row = (0..n)
                            .filter(|j| bits.has(numbers[*j]))
                            .fold(0, |all, j| all | 1 << j);
                    }
                }
            }
        });
    }

    /// Computes the bounds of the free relations, and the possible choices of each order.
    fn choose_orders(&mut self) {
        let n = self.events.len();
        let mut next = 0;
        for (f, free) in self.model.free.iter().enumerate() {
            let of = |node| *self.flat.value(node);
            if free.shape == Form::Function {
                self.readable = of(free.within);
                continue;
            }
            let bound = |node: Option<_>| cut(node.map_or([0; MOST_EVENTS], of), n);
            let (within, containing, covering) = (
                cut(of(free.within), n),
                bound(free.containing),
                bound(free.covering),
            );
            let known = |w: &LetterChoices| {
                w.within == within && w.containing == containing && w.covering == covering
            };
            if !self
                .orders
                .get(next)
                .is_some_and(|w| known(w) && w.all.first().is_none_or(|o| o.len() == n))
            {
                let open = if self.least[next].is_empty() {
                    within
                } else {
                    both_ways(&covering, &within, n)
                };
                let mut all = orders(n, &open[..n], &containing[..n], &covering[..n]);
                for order in &mut all {
                    close(order);
                    (0..n).for_each(|r| order[r] &= within[r]);
                }
                all.retain(|order| is_acyclic(order));
                let ways = LetterChoices {
                    free: FreeId(f as u32),
                    within,
                    containing,
                    covering,
                    all,
                };
                self.orders.truncate(next);
                self.orders.push(ways);
            }
            next += 1;
        }
    }

    /// Whether some consistent execution of the program shows the outcome.
    pub fn allows(&mut self, outcome: &ShapeOutcome) -> bool {
        let Some((shape, ..)) = self
            .loaded
            .as_ref()
            .filter(|loaded| loaded.0.has(InstrKind::Reduce))
        else {
            return self.some(outcome, false);
        };
        // Any value that an addition may have read counts, since no register shows it.
        if self.alike.0.as_ref() != Some(shape) {
            self.alike = (Some(shape.clone()), alike(shape).into_values().collect());
        }
        let all = std::mem::take(&mut self.alike.1);
        let alike = all.iter().find(|alike| alike.contains(outcome));
        let allowed =
            alike.is_some_and(|alike| alike.iter().any(|outcome| self.some(outcome, false)));
        self.alike.1 = all;
        allowed
    }

    /// Whether some consistent execution with the outcome makes the program undefined.
    pub fn flags(&mut self, outcome: &ShapeOutcome) -> bool {
        self.some(outcome, true)
    }

    /// Loads a program and decides whether no consistent execution makes it undefined. Its branches
    /// test for the values in the outcome. Also `false` if it has too many events.
    pub fn defines(
        &mut self,
        (shape, places, letters): LetteredProgram<'_>,
        outcome: &ShapeOutcome,
    ) -> bool {
        if !self.outcomes.contains_key(shape) {
            self.outcomes.clear();
        }
        let learnt = Arc::clone(&self.learnt);
        let failing = |slot: usize| learnt.failing[letters[slot]];
        cuts(
            shape,
            |slot: usize| {
                self.learnt.becomes[letters[slot]]
                    .iter()
                    .any(|e| e.tied && e.reads)
            },
            |slot| failing(slot).is_some(),
        )
        .iter()
        .all(|cut| {
            let kept = cut.kept.iter().enumerate();
            let letters: Vec<usize> = kept
                .map(|(at, &slot)| match failing(slot) {
                    Some(failing) if cut.branches.contains(&(at, false)) => failing,
                    _ => letters[slot],
                })
                .collect();
            if !self.load(&cut.shape, places, &letters) {
                return false;
            }
            let mut known = std::mem::take(&mut self.outcomes);
            let of_shape = known.entry(cut.shape.clone()).or_insert_with_key(|shape| {
                let mut outcomes = crate::outcome::outcomes(shape);
                outcomes.retain(|outcome| outcome.written(shape).is_some());
                // Undefinedness does not depend on the last writes.
                outcomes.iter_mut().for_each(|outcome| outcome.last.clear());
                outcomes.sort();
                outcomes.dedup();
                outcomes
            });
            let defined = !of_shape
                .iter()
                .any(|o| cut.shows(o, outcome) && self.flags(o));
            self.outcomes = known;
            defined
        })
    }

    /// Whether a flag is raised, or choices after that stage may raise it.
    fn may_be_raised(&self, stage: usize) -> bool {
        self.flags
            .iter()
            .map(|&flag| &self.model.flags[flag])
            .any(|flag| {
                if self.flat.stage(flag.node) <= stage {
                    return self.flat.holds(flag.test, flag.node) != flag.negated;
                }
                let is_of_some = flag.test == Test::Empty && flag.negated;
                !is_of_some || !self.flat.stays_empty(flag.node, stage)
            })
    }

    /// Computes a stage. Returns whether it accepts and, with `flagged`, a flag may still be
    /// raised.
    fn passes(&mut self, stage: usize, flagged: bool) -> bool {
        // If an order only contains the pairs that its axioms require, these axioms do not reject
        // yet.
        let asked = |axiom| self.least.iter().any(|asking| asking.contains(&axiom));
        if self.flat.run(stage, asked).is_err() {
            return false;
        }
        !flagged || stage > self.flagged || self.may_be_raised(stage)
    }

    fn some(&mut self, outcome: &ShapeOutcome, flagged: bool) -> bool {
        if !self.possible || flagged && !self.may_be_raised(0) {
            return false;
        }
        let mut rf = [0; MOST_EVENTS];
        for (i, reading) in self.reading.iter().enumerate() {
            let Some(read) = *reading else { continue };
            let location = self.events[read].location;
            let write = match outcome.sources[i] {
                Some(w) => self.writing[usize::from(w)],
                None => (0..self.events.len()).find(|&e| self.events[e].location == location),
            };
            let Some(write) = write.filter(|&w| self.readable[w] >> read & 1 == 1) else {
                return false;
            };
            rf[write] |= 1 << read;
        }
        self.flat.choose(self.model.values, &rf);
        // No write to a location may come after its last one.
        let mut last = 0u32;
        for w in &outcome.last {
            if let Some(e) = self.writing[usize::from(*w)] {
                last |= 1 << e;
            }
        }
        self.passes(1, flagged) && self.complete(0, last, flagged)
    }

    fn complete(&mut self, next: usize, last: u32, flagged: bool) -> bool {
        if next == self.orders.len() {
            return self.grows(last);
        }
        for i in 0..self.orders[next].all.len() {
            let LetterChoices { free, all, .. } = &self.orders[next];
            if *free == self.model.finals && !leaves_last(&all[i], last) {
                continue;
            }
            let mut rows = [0; MOST_EVENTS];
            rows[..all[i].len()].copy_from_slice(&all[i]);
            let free = *free;
            self.chosen[next] = rows;
            self.flat.choose(free, &rows);
            if self.passes(2 + next, flagged) && self.complete(next + 1, last, flagged) {
                return true;
            }
        }
        false
    }

    /// Adds to the chosen orders the pairs that axioms require, and returns whether the result is
    /// accepted.
    fn grows(&mut self, last: u32) -> bool {
        let n = self.events.len();
        let mut grown: Vec<(usize, Rows)> = Vec::new();
        let good = loop {
            let Some((i, asked)) = self.least.iter().enumerate().find_map(|(i, asking)| {
                let axioms = asking.iter().map(|&axiom| &self.model.axioms[axiom]);
                let mut unmet = axioms.filter(|a| !self.flat.holds(a.test, a.node));
                unmet.next().map(|axiom| (i, *self.flat.value(axiom.node)))
            }) else {
                break true;
            };
            let mut rows = self.chosen[i];
            grown.push((i, rows));
            (0..n).for_each(|r| rows[r] |= asked[r]);
            close(&mut rows[..n]);
            let LetterChoices { free, within, .. } = &self.orders[i];
            let fits = (0..n).all(|r| asked[r] & !within[r] == 0) && is_acyclic(&rows[..n]);
            (0..n).for_each(|r| rows[r] &= within[r]);
            if !fits || *free == self.model.finals && !leaves_last(&rows[..n], last) {
                break false;
            }
            self.chosen[i] = rows;
            self.flat.choose(*free, &rows);
            if !(i..self.orders.len()).all(|order| self.passes(2 + order, false)) {
                break false;
            }
        };
        // Restores the choices for the next attempt.
        let first = grown.iter().map(|(i, _)| *i).min();
        for (i, rows) in grown.into_iter().rev() {
            self.chosen[i] = rows;
            self.flat.choose(self.orders[i].free, &rows);
        }
        // Recomputes the stages that depend on them.
        let again = first.map_or(0..0, |first| first..self.orders.len() - 1);
        again.for_each(|order| {
            let _ = self.passes(2 + order, false);
        });
        good
    }

    /// The rows of a model's base sets and relations for the program, for tests.
    #[cfg(test)]
    pub(crate) fn base_rows(&self) -> Vec<(cat::model::signature::BaseId, Sort, Rows)> {
        let places = &self.loaded.as_ref().expect("a program").1;
        let of = |(id, bits): (&cat::model::signature::BaseId, &Result<TypeSet, String>)| {
            let (bits, n) = (bits.as_ref().expect("it judges"), self.events.len());
            let mut rows = [0; MOST_EVENTS];
            let is_set = bits.is_of(self.learnt.pairs.types);
            let sort = if is_set { Sort::Set } else { Sort::Rel };
            for (i, a) in self.events.iter().enumerate() {
                match sort {
                    Sort::Set => rows[0] |= u32::from(bits.has(a.ty.into())) << i,
                    Sort::Rel => {
                        rows[i] = (0..n)
                            .filter(|j| {
                                let b = &self.events[*j];
                                let pairs = &self.learnt.pairs;
                                let (a, b) = (NumberedEvent::new(i, a), NumberedEvent::new(*j, b));
                                let standing = standing(a, b, |x: u8, y: u8| {
                                    let shared =
                                        groups(&places[usize::from(x)], &places[usize::from(y)]);
                                    self.learnt
                                        .apart
                                        .iter()
                                        .position(|known| *known == shared)
                                        .expect("known")
                                });
                                bits.has(pairs.at(a.event.ty.into(), b.event.ty.into(), standing))
                            })
                            .fold(0, |all, j| all | 1 << j)
                    }
                }
            }
            (*id, sort, rows)
        };
        self.learnt.bases.iter().map(of).collect()
    }
}

/// Whether no event follows a last write.
fn leaves_last(order: &[u32], last: u32) -> bool {
    (0..order.len()).all(|e| last >> e & 1 == 0 || order[e] == 0)
}

/// The pairs of `within` that `covering` relates in either direction.
fn both_ways(covering: &Rows, within: &Rows, n: usize) -> Rows {
    let mut open = *covering;
    for (r, row) in covering[..n].iter().enumerate() {
        ones(*row).for_each(|k| open[k] |= 1 << r);
    }
    (0..n).for_each(|r| open[r] &= within[r]);
    open
}

/// The axioms `empty … \ order` that require pairs of a free order. `None` if the order is the
/// right operand of another difference. Otherwise an unnecessary pair can only make axioms reject.
fn least(model: &Model, free: FreeId) -> Option<Vec<usize>> {
    let mut asking = Vec::new();
    for (i, axiom) in model.axioms.iter().enumerate() {
        let plain = !axiom.negated;
        let asked = match model.node(axiom.node).op {
            NodeOp::Diff(asked, order) if plain && axiom.test == Test::Empty => {
                matches!(model.node(order).op, NodeOp::Free(f) if f == free).then_some(asked)
            }
            _ => None,
        };
        let node = asked.unwrap_or(axiom.node);
        asking.extend(asked.map(|_| i));
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![(node, plain)];
        while let Some((id, grows)) = todo.pop() {
            if !seen.insert((id, grows)) {
                continue;
            }
            match model.node(id).op {
                NodeOp::Free(f) if f == free && !grows => return None,
                NodeOp::Diff(a, b) => todo.extend([(a, grows), (b, !grows)]),
                NodeOp::Var(group, _) => {
                    todo.extend(
                        model.groups[group as usize]
                            .bodies
                            .iter()
                            .map(|body| (*body, grows)),
                    );
                }
                op => todo.extend(op.operands().map(|o| (o, grows))),
            }
        }
    }
    Some(asking)
}

/// The first `n` rows; later ones belong to another program.
fn cut(mut rows: Rows, n: usize) -> Rows {
    rows[n..].fill(0);
    rows
}

#[cfg(test)]
mod tests;
