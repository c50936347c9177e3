//! Outcomes of a shape: what each read returns, and what each location holds in the end.
//!
//! Every write to a location writes another value and everything is observed, so an outcome says which write each read
//! takes its value from, and which one is last. What leaves more open is a union of these.

use crate::flat::{close, is_acyclic, ones};
use crate::letters::values;
use crate::shape::{LOCATIONS, Shape, permutations};
use program::Place;

/// What is observed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// By instruction: the one whose value it reads; of what reads an initial value, and of what reads nothing, none.
    pub sources: Vec<Option<u8>>,
    /// By location: the instruction that writes it last.
    pub last: Vec<u8>,
}

/// The outcomes of a shape, one for each set of those that differ in names alone: whoever goes through all places and
/// letters sees the others, too.
pub fn distinct(shape: &Shape) -> Vec<Outcome> {
    let symmetries = symmetries(shape);
    let mut all = outcomes(shape);
    all.retain(|o| symmetries.iter().all(|s| *o <= s.image(o)));
    all
}

/// All outcomes of a shape.
pub fn outcomes(shape: &Shape) -> Vec<Outcome> {
    let slots: Vec<_> = shape.slots().map(|(_, slot)| slot).collect();
    let writes = |l: u8| {
        let writes = |i: &usize| slots[*i].kind.writes() && slots[*i].location == Some(l);
        (0..slots.len()).filter(writes).map(|i| i as u8).collect::<Vec<u8>>()
    };
    let mut all = vec![Outcome { sources: Vec::new(), last: Vec::new() }];
    for slot in &slots {
        let choices: Vec<Option<u8>> = match slot.location {
            Some(l) if slot.kind.reads() => [None].into_iter().chain(writes(l).into_iter().map(Some)).collect(),
            _ => vec![None],
        };
        let longer = |o: Outcome| {
            let with = move |c: &Option<u8>| {
                let mut o = o.clone();
                o.sources.push(*c);
                o
            };
            choices.iter().map(with).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    for l in 0..shape.locations() as u8 {
        let longer = |o: Outcome| {
            let with = move |w: u8| {
                let mut o = o.clone();
                o.last.push(w);
                o
            };
            writes(l).into_iter().map(with).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// A change of names that leaves a shape as it is.
pub(crate) struct Symmetry {
    /// By instruction: what it becomes.
    slots: Vec<u8>,
    /// By thread.
    threads: Vec<u8>,
    /// By location.
    locations: Vec<u8>,
}

impl Symmetry {
    pub(crate) fn image(&self, o: &Outcome) -> Outcome {
        let mut image = o.clone();
        for (i, source) in o.sources.iter().enumerate() {
            image.sources[usize::from(self.slots[i])] = source.map(|s| self.slots[usize::from(s)]);
        }
        for (l, last) in o.last.iter().enumerate() {
            image.last[usize::from(self.locations[l])] = self.slots[usize::from(*last)];
        }
        image
    }

    /// Where the threads run then, device and group in the order of their first threads, and the letters.
    pub(crate) fn labels(&self, places: &[Place], letters: &[usize]) -> (Vec<(u32, u32)>, Vec<usize>) {
        let (mut moved, mut image) = (places.to_vec(), letters.to_vec());
        places.iter().zip(&self.threads).for_each(|(place, &to)| moved[usize::from(to)] = place.clone());
        letters.iter().zip(&self.slots).for_each(|(letter, &to)| image[usize::from(to)] = *letter);
        let renumbered = |group: fn(&Place) -> u32| {
            let mut known: Vec<u32> = Vec::new();
            let number = |place: &Place| {
                let group = group(place);
                known.iter().position(|k| *k == group).unwrap_or_else(|| {
                    known.push(group);
                    known.len() - 1
                }) as u32
            };
            moved.iter().map(number).collect::<Vec<u32>>()
        };
        let (ctas, gpus) = (renumbered(|p| p.cta), renumbered(|p| p.gpu));
        (gpus.into_iter().zip(ctas).collect(), image)
    }
}

pub(crate) fn symmetries(shape: &Shape) -> Vec<Symmetry> {
    let starts: Vec<u8> =
        (0..shape.threads.len()).map(|t| shape.threads[..t].iter().map(|slots| slots.len() as u8).sum()).collect();
    let mut found = Vec::new();
    for locations in permutations(shape.locations()) {
        for threads in permutations(shape.threads.len()) {
            let fits = shape.threads.iter().zip(&threads).all(|(slots, &to)| {
                let there = &shape.threads[usize::from(to)];
                slots.len() == there.len()
                    && slots.iter().zip(there).all(|(a, b)| {
                        a.kind == b.kind && a.location.map(|l| locations[usize::from(l)]) == b.location
                    })
            });
            if fits {
                let moved = |(slots, &to): (&Vec<_>, &u8)| {
                    let start = starts[usize::from(to)];
                    (0..slots.len() as u8).map(move |i| start + i).collect::<Vec<u8>>()
                };
                let slots = shape.threads.iter().zip(&threads).flat_map(moved).collect();
                found.push(Symmetry { slots, threads: threads.clone(), locations: locations.clone() });
            }
        }
    }
    found
}

impl Outcome {
    /// Whether no interleaving shows it, though each location alone looks like one of memory.
    pub fn is_critical(&self, shape: &Shape) -> bool {
        let slots: Vec<_> = shape.slots().collect();
        let n = slots.len();
        let mut po = vec![0u32; n];
        let mut local = vec![0u32; n];
        for i in 0..n {
            for j in i + 1..n {
                if slots[i].0 == slots[j].0 {
                    po[i] |= 1 << j;
                    if slots[i].1.location.is_some() && slots[i].1.location == slots[j].1.location {
                        local[i] |= 1 << j;
                    }
                }
            }
        }
        let mut orders: Vec<Vec<u8>> = vec![Vec::new()];
        for (l, last) in self.last.iter().enumerate() {
            let others: Vec<u8> = (0..n as u8)
                .filter(|i| i != last)
                .filter(|&i| slots[usize::from(i)].1.kind.writes())
                .filter(|&i| slots[usize::from(i)].1.location == Some(l as u8))
                .collect();
            let ways: Vec<Vec<u8>> = permutations(others.len())
                .into_iter()
                .map(|p| p.into_iter().map(|i| others[usize::from(i)]).chain([*last]).collect())
                .collect();
            // One list for all locations: writes to different ones are not compared.
            orders =
                orders.iter().flat_map(|order| ways.iter().map(|way| [order.as_slice(), way].concat())).collect();
        }
        let mut critical = false;
        for order in orders {
            let mut com = vec![0u32; n];
            let place = |w: usize| order.iter().position(|&o| usize::from(o) == w);
            for (i, &(_, slot)) in slots.iter().enumerate() {
                let here = |j: usize| slots[j].1.location == slot.location && slots[j].1.kind.writes() && i != j;
                if slot.kind.writes() {
                    (0..n).filter(|&j| here(j) && place(i) < place(j)).for_each(|j| com[i] |= 1 << j);
                }
                if slot.kind.reads() {
                    let from = self.sources[i].map(usize::from);
                    if let Some(w) = from {
                        com[w] |= 1 << i;
                    }
                    let later = |j: usize| from.is_none_or(|w| place(w) < place(j));
                    (0..n).filter(|&j| here(j) && later(j) && from != Some(j)).for_each(|j| com[i] |= 1 << j);
                }
            }
            let with = |order: &[u32]| {
                let mut all: Vec<u32> = com.iter().zip(order).map(|(a, b)| a | b).collect();
                close(&mut all);
                is_acyclic(&all)
            };
            if with(&local) {
                if with(&po) {
                    return false;
                }
                critical = true;
            }
        }
        critical
    }

    /// As a condition.
    pub fn condition(&self, shape: &Shape) -> String {
        let values = values(shape);
        let mut atoms = Vec::new();
        let (mut thread, mut registers) = (0, 0);
        for (i, (t, slot)) in shape.slots().enumerate() {
            if t != thread {
                (thread, registers) = (t, 0);
            }
            if slot.kind.reads() {
                let value = self.sources[i].map_or(0, |w| values[usize::from(w)]);
                atoms.push(format!("P{t}:r{registers} == {value}"));
                registers += 1;
            }
        }
        for (l, last) in self.last.iter().enumerate() {
            let writes = shape.slots().filter(|(_, s)| s.kind.writes() && s.location == Some(l as u8)).count();
            if writes > 1 {
                atoms.push(format!("{} == {}", LOCATIONS[l], values[usize::from(*last)]));
            }
        }
        atoms.join(" /\\ ")
    }
}

/// The partial orders inside `within` that hold `containing`, relate the pairs of `covering`, and are transitive inside
/// `within`.
pub fn orders(n: usize, within: &[u32], containing: &[u32], covering: &[u32]) -> Vec<Vec<u32>> {
    let has = |rows: &[u32], i: usize, j: usize| rows[i] >> j & 1 == 1;
    let mut pairs = Vec::new();
    let mut start = containing.to_vec();
    close(&mut start);
    (0..n).for_each(|i| start[i] = start[i] & within[i] | containing[i]);
    for i in 0..n {
        for j in ones(within[i] | (0..n).filter(|&j| has(within, j, i)).fold(0, |s, j| s | 1 << j)) {
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
    extend_order((within, covering), &pairs, &mut open, &mut start, &mut found);
    found
}

fn extend_order(
    (within, covering): (&[u32], &[u32]),
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
        let fits = if from == to { !must } else { within[from] >> to & 1 == 1 };
        if !fits {
            continue;
        }
        if from != to {
            order[from] |= 1 << to;
        }
        // Triples of which every pair is decided are transitive.
        let whole = |k: usize| k != i && k != j && open[k] >> i & 1 == 0 && open[k] >> j & 1 == 0;
        let o = |a: usize, b: usize| order[a] >> b & 1 == 1;
        let step = |a, b, c| !(o(a, b) && o(b, c)) || (!o(c, a) && (o(a, c) || within[a] >> c & 1 == 0));
        let is_good = |k: usize| {
            step(i, j, k) && step(i, k, j) && step(j, i, k) && step(j, k, i) && step(k, i, j) && step(k, j, i)
        };
        if (0..n).filter(|&k| whole(k)).all(is_good) {
            extend_order((within, covering), rest, open, order, found);
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
