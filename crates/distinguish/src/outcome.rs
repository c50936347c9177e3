//! Outcomes of a shape: the value of each read, and the final value of each location.
//!
//! All writes to a location have distinct values and everything is observed. So an outcome
//! determines the source of each read and the last write of each location. A less specific outcome
//! is a union of these. With additions whose result no register shows, a visible result is such a
//! union, too.

use crate::flat::{MOST_EVENTS, Rows, close, is_acyclic, ones};
use crate::letters::values;
use crate::shape::{InstrKind, LOCATIONS, ProgramShape, ShapeSlot, permutations};
use program::Place;
use rustc_hash::{FxHashMap, FxHashSet};

/// A complete result of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeOutcome {
    /// For each instruction, the instruction whose value it reads; `None` for an initial value and
    /// for instructions that do not read.
    pub sources: Vec<Option<u8>>,
    /// For each location, its last writing instruction.
    pub last: Vec<u8>,
}

/// A part of the outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Outcomes that no interleaving shows, although each location alone is coherent.
    Critical,
    /// All other outcomes.
    Other,
    /// All outcomes.
    All,
}

/// The outcomes of a shape, one for each class that differs only in names. A search over all
/// placements and letters covers the others, too.
///
/// If no register shows the value that an instruction read, outcomes look alike ([`alike`]). One
/// represents all of them, and is critical only if all are.
pub fn distinct(shape: &ProgramShape, tier: Tier) -> Vec<ShapeOutcome> {
    if shape.has(InstrKind::Reduce) {
        let critical: FxHashSet<ShapeOutcome> =
            of_tier(shape, Tier::Critical).into_iter().collect();
        let mut all: Vec<ShapeOutcome> = alike(shape)
            .into_values()
            .filter(|alike| match tier {
                Tier::All => true,
                Tier::Critical => alike.iter().all(|o| critical.contains(o)),
                Tier::Other => !alike.iter().all(|o| critical.contains(o)),
            })
            .map(|alike| alike[0].clone())
            .collect();
        all.sort();
        return all;
    }
    let symmetries = symmetries(shape);
    let mut all = of_tier(shape, tier);
    if symmetries.len() > 1 {
        all.retain(|o| symmetries.iter().all(|s| *o <= s.image(o)));
    }
    all
}

/// The outcomes of a shape, grouped by equal registers and memory.
pub fn alike(shape: &ProgramShape) -> FxHashMap<Vec<usize>, Vec<ShapeOutcome>> {
    let mut all: FxHashMap<Vec<usize>, Vec<ShapeOutcome>> = FxHashMap::default();
    for outcome in outcomes(shape) {
        if let Some(seen) = outcome.seen(shape) {
            all.entry(seen).or_default().push(outcome);
        }
    }
    all
}

/// All outcomes of a shape.
pub fn outcomes(shape: &ProgramShape) -> Vec<ShapeOutcome> {
    of_tier(shape, Tier::All)
}

fn of_tier(shape: &ProgramShape, tier: Tier) -> Vec<ShapeOutcome> {
    let slots: Vec<(usize, ShapeSlot)> = shape.slots().collect();
    let mut all = Vec::new();
    if tier == Tier::Critical && !can_be_critical(shape) {
        return all;
    }
    let mut locals: Vec<Vec<Local>> = (0..shape.locations() as u8)
        .map(|l| locals(&slots, l))
        .collect();
    if tier == Tier::Critical {
        locals
            .iter_mut()
            .for_each(|all| all.retain(|local| !local.orders.is_empty()));
        if locals.iter().any(Vec::is_empty) {
            return all;
        }
    }
    let mut chosen = vec![0; locals.len()];
    loop {
        let these: Vec<&Local> = locals
            .iter()
            .zip(&chosen)
            .map(|(all, &i)| &all[i])
            .collect();
        let is_of_tier = match tier {
            Tier::All => true,
            Tier::Critical => !is_interleaved(&slots, &these),
            Tier::Other => {
                !these.iter().all(|local| !local.orders.is_empty())
                    || is_interleaved(&slots, &these)
            }
        };
        if is_of_tier {
            let mut sources = vec![None; slots.len()];
            these
                .iter()
                .flat_map(|local| &local.sources)
                .for_each(|(slot, source)| sources[*slot] = *source);
            all.push(ShapeOutcome {
                sources,
                last: these.iter().map(|local| local.last).collect(),
            });
        }
        let Some(at) = (0..chosen.len()).find(|&at| chosen[at] + 1 < locals[at].len()) else {
            return all;
        };
        chosen[at] += 1;
        chosen[..at].fill(0);
    }
}

/// Whether two threads access several locations. If only one does, a cycle leaves it and returns to
/// it at one location. If that location is coherent, this respects the order of its instructions,
/// so there is no cycle.
fn can_be_critical(shape: &ProgramShape) -> bool {
    shape
        .threads
        .iter()
        .filter(|slots| {
            let mut locations = slots.iter().filter_map(|slot| slot.location);
            let first = locations.next();
            locations.any(|location| Some(location) != first)
        })
        .count()
        > 1
}

/// The behaviour at one location.
struct Local {
    /// The sources of its reads.
    sources: Vec<(usize, Option<u8>)>,
    /// The last write.
    last: u8,
    /// For each order of its writes that makes the location coherent, the resulting order of
    /// instructions.
    orders: Vec<Rows>,
}

fn locals(slots: &[(usize, ShapeSlot)], location: u8) -> Vec<Local> {
    let here = |i: &usize| slots[*i].1.location == Some(location);
    let reads: Vec<usize> = (0..slots.len())
        .filter(here)
        .filter(|&i| slots[i].1.kind.reads())
        .collect();
    let writes: Vec<u8> = (0..slots.len())
        .filter(here)
        .filter(|&i| slots[i].1.kind.writes())
        .map(|i| i as u8)
        .collect();
    let mut local = [0u32; MOST_EVENTS];
    for i in (0..slots.len()).filter(here) {
        let later = (i + 1..slots.len())
            .filter(here)
            .filter(|&j| slots[i].0 == slots[j].0);
        local[i] = later.fold(0, |row, j| row | 1 << j);
    }
    if writes.is_empty() {
        // A cut of a program may lack the only write to a location. Reads then return the initial
        // value, and there is no last write.
        let sources = reads.into_iter().map(|read| (read, None)).collect();
        return vec![Local {
            sources,
            last: 0,
            orders: vec![[0; MOST_EVENTS]],
        }];
    }
    // For each order: its last write, and for each write the later ones; at the end, those after
    // the initial one.
    let orders: Vec<(u8, Vec<u32>)> = permutations(writes.len())
        .into_iter()
        .map(|order| {
            let mut after = vec![0; writes.len() + 1];
            let mut rest = 0;
            for &w in order.iter().rev() {
                after[usize::from(w)] = rest;
                rest |= 1 << writes[usize::from(w)];
            }
            after[writes.len()] = rest;
            (order.last().map_or(0, |&w| writes[usize::from(w)]), after)
        })
        .collect();
    let mut all = Vec::new();
    // For each read, the number of its source; the initial write is the last number.
    let mut chosen = vec![writes.len(); reads.len()];
    loop {
        let sources: Vec<(usize, Option<u8>)> = reads
            .iter()
            .zip(&chosen)
            .map(|(&read, &w)| (read, writes.get(w).copied()))
            .collect();
        let from = all.len();
        all.extend(writes.iter().map(|&last| Local {
            sources: sources.clone(),
            last,
            orders: Vec::new(),
        }));
        for (last, after) in &orders {
            let mut com = [0u32; MOST_EVENTS];
            writes
                .iter()
                .zip(after)
                .for_each(|(&w, after)| com[usize::from(w)] |= after);
            for (&read, &w) in reads.iter().zip(&chosen) {
                com[read] |= after[w] & !(1 << read);
                if let Some(&w) = writes.get(w) {
                    com[usize::from(w)] |= 1 << read;
                }
            }
            let mut both = com;
            both.iter_mut()
                .zip(&local)
                .for_each(|(row, more)| *row |= more);
            if is_acyclic(&both[..slots.len()]) {
                let of_last: Option<&mut Local> =
                    all[from..].iter_mut().find(|local| local.last == *last);
                of_last
                    .expect("each write is last somewhere")
                    .orders
                    .push(com);
            }
        }
        let Some(at) = (0..chosen.len()).find(|&at| chosen[at] > 0) else {
            return all;
        };
        chosen[at] -= 1;
        chosen[..at].fill(writes.len());
    }
}

/// Whether an interleaving shows the behaviour of all locations, with some of the orders of each.
fn is_interleaved(slots: &[(usize, ShapeSlot)], locals: &[&Local]) -> bool {
    let n = slots.len();
    let mut rows = [0u32; MOST_EVENTS];
    for i in 0..n {
        rows[i] = (i + 1..n)
            .filter(|&j| slots[i].0 == slots[j].0)
            .fold(0, |row, j| row | 1 << j);
    }
    fn some(locals: &[&Local], rows: &Rows, n: usize) -> bool {
        let Some((local, rest)) = locals.split_first() else {
            return is_acyclic(&rows[..n]);
        };
        local.orders.iter().any(|order| {
            let mut rows = *rows;
            rows.iter_mut()
                .zip(order)
                .for_each(|(row, more)| *row |= more);
            some(rest, &rows, n)
        })
    }
    some(locals, &rows, n)
}

/// A renaming that maps a shape to itself.
pub(crate) struct Symmetry {
    /// For each instruction, its image.
    slots: Vec<u8>,
    /// For each thread, its image.
    threads: Vec<u8>,
    /// For each location, its image.
    locations: Vec<u8>,
}

impl Symmetry {
    pub(crate) fn image(&self, o: &ShapeOutcome) -> ShapeOutcome {
        let mut image = o.clone();
        for (i, source) in o.sources.iter().enumerate() {
            image.sources[usize::from(self.slots[i])] = source.map(|s| self.slots[usize::from(s)]);
        }
        for (l, last) in o.last.iter().enumerate() {
            image.last[usize::from(self.locations[l])] = self.slots[usize::from(*last)];
        }
        image
    }

    /// The renamed placement, with devices, clusters and groups numbered in order of first use, and
    /// the renamed letters.
    pub(crate) fn labels(
        &self,
        places: &[Place],
        letters: &[usize],
    ) -> (Vec<[u32; 3]>, Vec<usize>) {
        let (mut moved, mut image) = (places.to_vec(), letters.to_vec());
        places
            .iter()
            .zip(&self.threads)
            .for_each(|(place, &to)| moved[usize::from(to)] = place.clone());
        letters
            .iter()
            .zip(&self.slots)
            .for_each(|(letter, &to)| image[usize::from(to)] = *letter);
        fn renumbered(group: fn(&Place) -> u32, moved: &[Place]) -> Vec<u32> {
            let mut known: Vec<u32> = Vec::new();
            moved
                .iter()
                .map(|place| {
                    let group = group(place);
                    known.iter().position(|k| *k == group).unwrap_or_else(|| {
                        known.push(group);
                        known.len() - 1
                    }) as u32
                })
                .collect::<Vec<u32>>()
        }
        let [gpus, clusters, ctas] = [
            renumbered(|p| p.gpu, &moved),
            renumbered(|p| p.cluster.unwrap_or(0), &moved),
            renumbered(|p| p.cta, &moved),
        ];
        let groups = (0..moved.len())
            .map(|t| [gpus[t], clusters[t], ctas[t]])
            .collect();
        (groups, image)
    }
}

pub(crate) fn symmetries(shape: &ProgramShape) -> Vec<Symmetry> {
    let starts: Vec<u8> = (0..shape.threads.len())
        .map(|t| {
            shape.threads[..t]
                .iter()
                .map(|slots| slots.len() as u8)
                .sum()
        })
        .collect();
    let mut found = Vec::new();
    for locations in permutations(shape.locations()) {
        for threads in permutations(shape.threads.len()) {
            let fits = shape.threads.iter().zip(&threads).all(|(slots, &to)| {
                let there = &shape.threads[usize::from(to)];
                slots.len() == there.len()
                    && slots.iter().zip(there).all(|(a, b)| {
                        a.kind == b.kind
                            && a.location.map(|l| locations[usize::from(l)]) == b.location
                    })
            });
            if fits {
                let slots = shape
                    .threads
                    .iter()
                    .zip(&threads)
                    .flat_map(|(slots, &to)| {
                        let start = starts[usize::from(to)];
                        (0..slots.len() as u8)
                            .map(move |i| start + i)
                            .collect::<Vec<u8>>()
                    })
                    .collect();
                found.push(Symmetry {
                    slots,
                    threads: threads.clone(),
                    locations: locations.clone(),
                });
            }
        }
    }
    found
}

impl ShapeOutcome {
    /// The value that each instruction writes. `None`: an addition adds to its result, which no
    /// number satisfies.
    pub fn written(&self, shape: &ProgramShape) -> Option<Vec<usize>> {
        let slots: Vec<ShapeSlot> = shape.slots().map(|(_, slot)| slot).collect();
        let own = values(shape);
        (0..slots.len())
            .map(|mut i| {
                let mut sum = own[i];
                for _ in 0..slots.len() {
                    if slots[i].kind != InstrKind::Reduce {
                        return Some(sum);
                    }
                    let Some(source) = self.sources[i] else {
                        return Some(sum);
                    };
                    i = usize::from(source);
                    sum += own[i];
                }
                None
            })
            .collect()
    }

    /// The final registers and memory that a condition can name.
    fn seen(&self, shape: &ProgramShape) -> Option<Vec<usize>> {
        let written = self.written(shape)?;
        let told = shape
            .slots()
            .enumerate()
            .filter(|(_, (_, slot))| slot.kind.tells());
        let read = told.map(|(i, _)| self.sources[i].map_or(0, |w| written[usize::from(w)]));
        let last = self
            .last
            .iter()
            .enumerate()
            .filter(|(l, _)| writes(shape, *l) > 1);
        Some(
            read.chain(last.map(|(_, w)| written[usize::from(*w)]))
                .collect(),
        )
    }

    /// The outcome as a condition.
    pub fn condition(&self, shape: &ProgramShape) -> String {
        let values = self.written(shape).unwrap_or_else(|| values(shape));
        let mut atoms = Vec::new();
        let (mut thread, mut registers) = (0, 0);
        for (i, (t, slot)) in shape.slots().enumerate() {
            if t != thread {
                (thread, registers) = (t, 0);
            }
            if slot.kind.tells() {
                let value = self.sources[i].map_or(0, |w| values[usize::from(w)]);
                atoms.push(format!("P{t}:r{registers} == {value}"));
                registers += 1;
            }
        }
        for (l, last) in self.last.iter().enumerate() {
            if writes(shape, l) > 1 {
                atoms.push(format!(
                    "{} == {}",
                    LOCATIONS[l],
                    values[usize::from(*last)]
                ));
            }
        }
        atoms.join(" /\\ ")
    }
}

/// The number of instructions that write to a location.
fn writes(shape: &ProgramShape, location: usize) -> usize {
    shape
        .slots()
        .filter(|(_, s)| s.kind.writes() && s.location == Some(location as u8))
        .count()
}

/// The partial orders inside `within` that contain `containing`, relate the pairs of `covering`,
/// and are transitive inside `within`.
pub fn orders(n: usize, within: &[u32], containing: &[u32], covering: &[u32]) -> Vec<Vec<u32>> {
    fn has(rows: &[u32], i: usize, j: usize) -> bool {
        rows[i] >> j & 1 == 1
    }
    let mut pairs = Vec::new();
    let mut start = containing.to_vec();
    close(&mut start);
    (0..n).for_each(|i| start[i] = start[i] & within[i] | containing[i]);
    for i in 0..n {
        for j in ones(
            within[i]
                | (0..n)
                    .filter(|&j| has(within, j, i))
                    .fold(0, |s, j| s | 1 << j),
        ) {
            if i < j && !has(&start, i, j) && !has(&start, j, i) {
                pairs.push((i, j));
            }
        }
    }
    let mut found = Vec::new();
    let mut open = vec![0u32; n];
    for &(i, j) in &pairs {
        open[i] |= 1 << j;
        open[j] |= 1 << i;
    }
    extend_order(within, covering, &pairs, &mut open, &mut start, &mut found);
    found
}

fn extend_order(
    within: &[u32],
    covering: &[u32],
    pairs: &[(usize, usize)],
    open: &mut Vec<u32>,
    order: &mut Vec<u32>,
    found: &mut Vec<Vec<u32>>,
) {
    let n = order.len();
    let Some((&(i, j), rest)) = pairs.split_first() else {
        if is_acyclic(order) {
            found.push(order.clone());
        }
        return;
    };
    open[i] &= !(1 << j);
    open[j] &= !(1 << i);
    let must = covering[i] >> j & 1 == 1 || covering[j] >> i & 1 == 1;
    for (from, to) in [(i, j), (j, i), (i, i)] {
        let fits = if from == to {
            !must
        } else {
            within[from] >> to & 1 == 1
        };
        if !fits {
            continue;
        }
        if from != to {
            order[from] |= 1 << to;
        }
        // If all pairs of a triple are decided, the triple has to be transitive.
        let whole = |k: usize| k != i && k != j && open[k] >> i & 1 == 0 && open[k] >> j & 1 == 0;
        let o = |a: usize, b: usize| order[a] >> b & 1 == 1;
        let step =
            |a, b, c| !(o(a, b) && o(b, c)) || (!o(c, a) && (o(a, c) || within[a] >> c & 1 == 0));
        if (0..n).filter(|&k| whole(k)).all(|k| {
            step(i, j, k)
                && step(i, k, j)
                && step(j, i, k)
                && step(j, k, i)
                && step(k, i, j)
                && step(k, j, i)
        }) {
            extend_order(within, covering, rest, open, order, found);
        }
        if from != to {
            order[from] &= !(1 << to);
        }
    }
    open[i] |= 1 << j;
    open[j] |= 1 << i;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::shapes;
    use testkit::suite::is_long;

    #[test]
    fn what_nothing_writes_holds_its_initial_value() {
        let slot = |kind, l: u8| ShapeSlot {
            kind,
            location: Some(l),
        };
        let threads = vec![
            vec![slot(InstrKind::Write, 0), slot(InstrKind::Read, 1)],
            vec![slot(InstrKind::Read, 0)],
        ];
        let all = outcomes(&ProgramShape { threads });
        let sources: Vec<_> = all.iter().map(|outcome| outcome.sources.clone()).collect();
        assert_eq!(sources, [[None, None, None], [None, None, Some(0)]]);
    }

    #[test]
    fn outcomes_are_counted() {
        let kinds = [
            InstrKind::Write,
            InstrKind::Read,
            InstrKind::Update,
            InstrKind::Fence,
        ];
        let count = |size, tier| {
            shapes(size, &kinds)
                .iter()
                .map(|shape| distinct(shape, tier).len())
                .sum::<usize>()
        };
        let largest = if is_long() { 5 } else { 4 };
        let counts: Vec<[usize; 3]> = (2..=largest)
            .map(|size| [Tier::Critical, Tier::Other, Tier::All].map(|tier| count(size, tier)))
            .collect();
        let all = [
            [0, 66, 66],
            [0, 1569, 1569],
            [36, 59_635, 59_671],
            [1736, 2_590_118, 2_591_854],
        ];
        assert_eq!(counts, all[..largest - 1]);
    }

    #[test]
    fn partial_orders_are_counted() {
        // OEIS A001035, and factorials.
        for (n, partial, total) in [(1, 1, 1), (2, 3, 2), (3, 19, 6), (4, 219, 24)] {
            let all: Vec<u32> = (0..n).map(|i| ((1 << n) - 1) & !(1 << i)).collect();
            let none = vec![0; n];
            assert_eq!(orders(n, &all, &none, &none).len(), partial);
            assert_eq!(orders(n, &all, &none, &all).len(), total);
        }
    }
}
