//! Computes the possible values of terms from those of the reads.
//!
//! A term over few reads is a function of them, with one value for each combination of theirs. This
//! keeps the results for one value apart from those for another, also in conditions. For other
//! terms only a set of values is known, or nothing if the set is too large to list.
//!
//! # Invariants
//! - A superset: every value that a term has in some execution is listed.
//! - If a term that is a function has a value, all reads that it depends on execute.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::skeleton::pool::{Cond, CondAtom, Term, TermId, TermPool};
use cat::rel::EventId;
use program::{BinOp, CmpOp, Ty};

/// The largest number of values of one term that are listed.
pub(crate) const MAX_VALUES: usize = 1024;

/// A sorted set of values.
pub type Values = Vec<i64>;

/// The possible values of one term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// A function of these reads, in their order, with a value for each combination of their
    /// values; the last read changes fastest. Without reads it is a number.
    Of(Vec<EventId>, Values),
    /// One of these values.
    Any(Values),
    /// Any value: there are too many to list.
    Word,
}

impl Image {
    /// The values, if they are listed; those of a function in the order of combinations.
    fn values(&self) -> Option<&Values> {
        match self {
            Image::Of(_, all) | Image::Any(all) => Some(all),
            Image::Word => None,
        }
    }

    /// The set of these values, if they are few enough to list.
    fn any(values: impl IntoIterator<Item = i64>) -> Image {
        let mut all = FxHashSet::default();
        for value in values {
            if all.insert(value) && all.len() > MAX_VALUES {
                return Image::Word;
            }
        }
        Image::Any(distinct(all.into_iter().collect()))
    }
}

/// Why values are unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ImageFailure {
    /// The deadline has passed.
    Late,
    /// The operands of this term have to be listed, and take too many values.
    At(TermId),
}

/// The possible values of all terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermImages {
    /// By term: its image.
    pub(crate) all: Vec<Image>,
    /// By term: its values, sorted, if they are listed.
    pub(crate) sorted: Vec<Option<Values>>,
    /// By term: whether the last [`TermImages::update`] changed its image.
    pub(crate) changed: Vec<bool>,
    /// By term: the values that the last update added, if the values are listed.
    pub(crate) gained: Vec<Values>,
    /// By term: the terms that it computes with.
    operands: Vec<Operands>,
}

/// The terms that a term computes with: its parts, and those that its condition compares.
#[derive(Clone, Debug)]
struct Operands {
    terms: Vec<TermId>,
    /// Whether their values decide the term's. A choice may decide, too.
    decide: bool,
}

impl Operands {
    fn of(pool: &TermPool, term: Term) -> Operands {
        let (mut terms, mut decide) = (Vec::new(), true);
        match term {
            Term::Const(_) | Term::Read(_) => {}
            Term::Cast(_, a) => terms.push(a),
            Term::Bin(_, _, a, b) => terms.extend([a, b]),
            Term::Fused(_, three) => terms.extend(three),
            Term::Ite(c, a, b) => {
                terms.extend([a, b]);
                decide = tested(pool, c, &mut terms);
            }
        }
        Operands { terms, decide }
    }

    /// The value of a term if its operands have these values.
    fn value(&self, pool: &TermPool, term: Term, row: &[i64]) -> i64 {
        match term {
            Term::Const(v) => v,
            Term::Read(_) => unreachable!("a read has no operands"),
            Term::Cast(ty, _) => ty.wrap(row[0]),
            Term::Bin(op, ty, ..) => op.apply(ty, row[0], row[1]),
            Term::Fused(fused, _) => fused.apply(row[0], row[1], row[2]),
            Term::Ite(c, ..) => match holds(pool, c, |t| tested_value(&self.terms, row, t)) {
                true => row[0],
                false => row[1],
            },
        }
    }
}

impl TermImages {
    /// Recomputes the terms that depend on reads with changed values. `of_read` gives the values of
    /// reads; `None` means any.
    ///
    /// The image of a term follows from those of its parts, and from the number of values of the
    /// reads that they depend on. A function changes if one of its reads gains a value. So a term
    /// without a changed part stays the same. Terms that `needs` rejects get no image. With
    /// `rough`, the same holds for terms with operands that must be listed but have too many
    /// values.
    pub(crate) fn update(
        &mut self,
        pool: &TermPool,
        needs: impl Fn(TermId) -> bool,
        of_read: &[Option<Values>],
        has_changed: impl Fn(EventId) -> bool,
        rough: bool,
        deadline: Option<Instant>,
    ) -> Result<(), ImageFailure> {
        let first = self.all.is_empty();
        if first {
            let all = pool.term_ids().map(|id| Operands::of(pool, pool.term(id)));
            self.operands = all.collect();
        }
        // By changed read: the positions of its new values.
        let mut fresh: FxHashMap<EventId, Vec<usize>> = FxHashMap::default();
        self.changed.clear();
        self.gained.resize(pool.term_count(), Values::new());
        for id in pool.term_ids() {
            let at = TermPool::term_index(id);
            if at.is_multiple_of(256) && stop::late(deadline) {
                return Err(ImageFailure::Late);
            }
            let term = pool.term(id);
            let stale = first
                || match term {
                    Term::Read(e) => has_changed(e),
                    _ => {
                        let operands = &self.operands[at];
                        operands.terms.iter().any(|&t| self.has_changed(t))
                    }
                };
            if !stale {
                self.changed.push(false);
                continue;
            }
            if self.grow(pool, id, &fresh) {
                self.changed.push(true);
                continue;
            }
            if let (Term::Read(e), Some(Image::Of(_, before)), Some(now)) =
                (term, self.all.get(at), of_read_of(of_read, term))
            {
                fresh.insert(e, new_positions(before, now));
            }
            let image = match term {
                _ if !needs(id) => Image::Word,
                Term::Read(e) => match &of_read[e.index()] {
                    Some(values) => Image::Of(vec![e], values.clone()),
                    None => Image::Word,
                },
                term => match image(
                    pool,
                    &|e: EventId| {
                        of_read[e.index()]
                            .as_ref()
                            .expect("functions have reads with listed values")
                            .len()
                    },
                    &self.all,
                    &self.operands[at],
                    term,
                ) {
                    None if rough => Image::Word,
                    image => image.ok_or(ImageFailure::At(id))?,
                },
            };
            if first {
                let values = sorted(&image);
                self.gained[at] = values.clone().unwrap_or_default();
                self.sorted.push(values);
                self.all.push(image);
                self.changed.push(true);
            } else {
                let changed = self.all[at] != image;
                if changed {
                    let values = sorted(&image);
                    self.gained[at] = added(self.sorted[at].as_deref(), values.as_deref());
                    self.sorted[at] = values;
                    self.all[at] = image;
                }
                self.changed.push(changed);
            }
        }
        Ok(())
    }

    /// Adds to the image of a term, if it is a function of one read, the values for new values of
    /// that read. `false`: the whole image has to be computed.
    ///
    /// An update computes the image of each term that depends on a changed read. So the image has
    /// the values for the earlier values of the read.
    fn grow(
        &mut self,
        pool: &TermPool,
        id: TermId,
        fresh: &FxHashMap<EventId, Vec<usize>>,
    ) -> bool {
        let at = TermPool::term_index(id);
        let Some(Image::Of(reads, before)) = self.all.get(at) else {
            return false;
        };
        let &[read] = reads.as_slice() else {
            return false;
        };
        let (Some(new), operands) = (fresh.get(&read), &self.operands[at]) else {
            return false;
        };
        let length = before.len() + new.len();
        if !operands.decide || operands.terms.is_empty() || length > MAX_VALUES {
            return false;
        }
        let mut lists: Vec<&Values> = Vec::with_capacity(operands.terms.len());
        for &part in &operands.terms {
            match image_of(&self.all, part) {
                Image::Of(reads, list) if reads.is_empty() => lists.push(list),
                Image::Of(reads, list) if *reads == [read] && list.len() == length => {
                    lists.push(list);
                }
                _ => return false,
            }
        }
        let term = pool.term(id);
        let mut row = vec![0; lists.len()];
        let mut results = Values::with_capacity(new.len());
        for &at in new {
            for (value, list) in row.iter_mut().zip(&lists) {
                *value = list[at.min(list.len() - 1)];
            }
            results.push(operands.value(pool, term, &row));
        }
        let mut all = Values::with_capacity(length);
        let mut old = before.iter();
        for (&at, &result) in new.iter().zip(&results) {
            all.extend(old.by_ref().take(at - all.len()));
            all.push(result);
        }
        all.extend(old);
        self.all[at] = Image::Of(vec![read], all);
        let sorted = self.sorted[at].as_mut().expect("a function is listed");
        let mut gained = distinct(results);
        gained.retain(|v| sorted.binary_search(v).is_err());
        sorted.extend(&gained);
        sorted.sort();
        self.gained[at] = gained;
        true
    }

    /// Whether the image of a term changed in this update.
    fn has_changed(&self, t: TermId) -> bool {
        self.changed[TermPool::term_index(t)]
    }
}

/// The values, each once and in order, if they are listed.
fn sorted(image: &Image) -> Option<Values> {
    match image {
        Image::Of(_, all) => Some(distinct(all.clone())),
        Image::Any(all) => Some(all.clone()),
        Image::Word => None,
    }
}

/// The values of one list that are not in another; both are sorted.
fn added(before: Option<&[i64]>, now: Option<&[i64]>) -> Values {
    let (mut before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
    let mut added = Values::new();
    for &value in now {
        let smaller = before.iter().take_while(|&&v| v < value).count();
        before = &before[smaller..];
        if before.first() != Some(&value) {
            added.push(value);
        }
    }
    added
}

/// The positions of the values that are not in an earlier list; both are sorted.
fn new_positions(before: &[i64], now: &[i64]) -> Vec<usize> {
    (0..now.len())
        .filter(|&at| before.binary_search(&now[at]).is_err())
        .collect()
}

fn of_read_of(of_read: &[Option<Values>], term: Term) -> Option<&Values> {
    match term {
        Term::Read(e) => of_read[e.index()].as_ref(),
        _ => None,
    }
}

/// Each value once, in order.
pub(crate) fn distinct(mut values: Values) -> Values {
    values.sort_unstable();
    values.dedup();
    values
}

/// The image of a term; `None` if its operands have to be listed, and take too many values.
fn image(
    pool: &TermPool,
    sizes: &impl Fn(EventId) -> usize,
    images: &[Image],
    operands: &Operands,
    term: Term,
) -> Option<Image> {
    let value = |row: &[i64]| operands.value(pool, term, row);
    Some(match term {
        Term::Const(v) => Image::Of(Vec::new(), vec![v]),
        Term::Read(_) => unreachable!("handled above"),
        Term::Cast(ty, a) => match image_of(images, a) {
            Image::Of(reads, all) => {
                Image::Of(reads.clone(), all.iter().map(|&v| ty.wrap(v)).collect())
            }
            Image::Any(all) => Image::any(all.iter().map(|&v| ty.wrap(v))),
            Image::Word => masked(
                ty,
                Ty {
                    signed: false,
                    ..ty
                }
                .wrap(-1),
            ),
        },
        // An unknown value has this image for any operands.
        Term::Bin(BinOp::Unknown, ..) => Image::Of(Vec::new(), vec![0]),
        Term::Bin(op, ty, a, b) => {
            match together(sizes, &[image_of(images, a), image_of(images, b)], value) {
                Some((reads, values)) => Image::Of(reads, values),
                None => match (image_of(images, a).values(), image_of(images, b).values()) {
                    (Some(a), Some(b)) if a.len() * b.len() <= MAX_VALUES * 64 => {
                        match Image::any(
                            a.iter()
                                .flat_map(|&x| b.iter().map(move |&y| op.apply(ty, x, y))),
                        ) {
                            // Results of floating point have no bits to bound them by.
                            Image::Word if matches!(op, BinOp::Float(..)) => return None,
                            image => image,
                        }
                    }
                    _ if matches!(op, BinOp::Float(..)) => return None,
                    (values, others) => narrowed(op, ty, values, others),
                },
            }
        }
        Term::Fused(fused, three) => {
            let parts = three.map(|t| image_of(images, t));
            match together(sizes, &parts, value) {
                Some((reads, values)) => Image::Of(reads, values),
                None => {
                    let [Some(a), Some(b), Some(c)] = parts.map(Image::values) else {
                        return None;
                    };
                    if a.len().saturating_mul(b.len()).saturating_mul(c.len()) > MAX_VALUES * 64 {
                        return None;
                    }
                    Some(Image::any(a.iter().flat_map(|&x| {
                        b.iter()
                            .flat_map(move |&y| c.iter().map(move |&z| fused.apply(x, y, z)))
                    })))
                    .filter(|image| *image != Image::Word)?
                }
            }
        }
        Term::Ite(_, a, b) => {
            let parts = operands.terms.iter().map(|&t| image_of(images, t));
            let parts: Vec<&Image> = parts.collect();
            // A read in one branch may not execute if the other branch is taken.
            let alone = operands.decide && of_one_read(&parts);
            match alone.then(|| together(sizes, &parts, value)).flatten() {
                Some((reads, values)) => Image::Of(reads, values),
                None => match (image_of(images, a).values(), image_of(images, b).values()) {
                    (Some(a), Some(b)) => Image::any(a.iter().chain(b).copied()),
                    _ => Image::Word,
                },
            }
        }
    })
}

/// The value of a term in a row of values.
fn tested_value(terms: &[TermId], row: &[i64], t: TermId) -> i64 {
    row[terms.iter().position(|&x| x == t).expect("it is tested")]
}

fn image_of(images: &[Image], t: TermId) -> &Image {
    &images[TermPool::term_index(t)]
}

/// The possible results of an operation with an unlisted operand: bits under a mask, a remainder,
/// the upper bits.
fn narrowed(op: BinOp, ty: Ty, a: Option<&Values>, b: Option<&Values>) -> Image {
    match (op, a, b) {
        (BinOp::And, Some(mask), None) | (BinOp::And, None, Some(mask)) => {
            masked(ty, bits(ty, mask))
        }
        (BinOp::And, Some(a), Some(b)) => masked(ty, bits(ty, a) & bits(ty, b)),
        (BinOp::Rem, _, divisor) if !ty.signed => match only_value(ty, divisor) {
            Some(n @ 1..=1024) => Image::any(0..n),
            _ => Image::Word,
        },
        (BinOp::Shr, _, by) if !ty.signed => match only_value(ty, by) {
            Some(by @ 0..64) => masked(ty, ((ty.wrap(-1) as u64) >> by) as i64),
            _ => Image::Word,
        },
        _ => Image::Word,
    }
}

/// All bits of some values.
fn bits(ty: Ty, values: &Values) -> i64 {
    values.iter().fold(0, |mask, &v| mask | ty.wrap(v))
}

/// The value of a list with one value.
fn only_value(ty: Ty, values: Option<&Values>) -> Option<i64> {
    values
        .filter(|all| all.len() == 1)
        .map(|all| ty.wrap(all[0]))
}

/// All values of a type that have only bits of a mask.
fn masked(ty: Ty, mask: i64) -> Image {
    if mask.count_ones() > MAX_VALUES.ilog2() {
        return Image::Word;
    }
    let mut values = vec![0];
    for bit in (0..64).map(|i| 1i64 << i).filter(|bit| mask & bit != 0) {
        values.extend(values.clone().iter().map(|v| v | bit));
    }
    Image::any(values.into_iter().map(|v| ty.wrap(v)))
}

/// Whether the images are functions of at most one read.
fn of_one_read(images: &[&Image]) -> bool {
    let mut reads = images.iter().flat_map(|image| match image {
        Image::Of(reads, _) => reads.as_slice(),
        Image::Any(_) | Image::Word => &[],
    });
    let first = reads.next();
    reads.all(|read| Some(read) == first)
}

/// Applies `of` to the values of several functions, for each combination of the values of their
/// reads; also returns those reads. `None` if one image is not a function, or if there are too many
/// combinations.
pub(crate) fn together<T>(
    sizes: &impl Fn(EventId) -> usize,
    images: &[&Image],
    mut of: impl FnMut(&[i64]) -> T,
) -> Option<(Vec<EventId>, Vec<T>)> {
    let mut all: Vec<EventId> = Vec::new();
    let mut lists: Vec<&Values> = Vec::new();
    for image in images {
        let Image::Of(reads, values) = image else {
            return None;
        };
        all.extend(reads);
        lists.push(values);
    }
    all.sort_unstable();
    all.dedup();
    let n = all.iter().try_fold(1usize, |n, &e| {
        n.checked_mul(sizes(e)).filter(|n| *n <= MAX_VALUES)
    })?;
    let mut row = vec![0; images.len()];
    // Fast path: most images are functions of the same reads.
    if images
        .iter()
        .all(|image| matches!(image, Image::Of(reads, _) if reads.is_empty() || *reads == all))
    {
        let made = (0..n).map(|i| {
            row.iter_mut()
                .zip(&lists)
                .for_each(|(value, list)| *value = list[i.min(list.len() - 1)]);
            of(&row)
        });
        let made = made.collect();
        return Some((all, made));
    }
    // By image and read: how far one step of the read moves in the image's values.
    let strides: Vec<Vec<usize>> = images
        .iter()
        .map(|image| strides(sizes, &all, image))
        .collect();
    let lengths: Vec<usize> = all.iter().map(|&e| sizes(e)).collect();
    let mut at = vec![0; all.len()];
    // By image: the position of its value.
    let mut offsets = vec![0; images.len()];
    let mut made = Vec::with_capacity(n);
    for _ in 0..n {
        for ((value, values), &offset) in row.iter_mut().zip(&lists).zip(&offsets) {
            *value = values[offset];
        }
        made.push(of(&row));
        for (k, length) in lengths.iter().enumerate().rev() {
            at[k] += 1;
            let places = offsets.iter_mut().zip(&strides);
            if at[k] < *length {
                places.for_each(|(offset, strides)| *offset += strides[k]);
                break;
            }
            places.for_each(|(offset, strides)| *offset -= strides[k] * (length - 1));
            at[k] = 0;
        }
    }
    Some((all, made))
}

/// By read of `all`: how far one step of it moves in the values of an image.
fn strides(sizes: &impl Fn(EventId) -> usize, all: &[EventId], image: &Image) -> Vec<usize> {
    let Image::Of(reads, _) = image else {
        return Vec::new();
    };
    let mut stride = 1;
    let mut list: Vec<usize> = (all.iter().rev())
        .map(|e| match reads.contains(e) {
            true => {
                let next = stride * sizes(*e);
                std::mem::replace(&mut stride, next)
            }
            false => 0,
        })
        .collect();
    list.reverse();
    list
}

/// Adds the terms that a condition compares. False if it also depends on a choice.
fn tested(pool: &TermPool, c: Cond, terms: &mut Vec<TermId>) -> bool {
    pool.support(c)
        .into_iter()
        .all(|atom| match pool.atom(atom) {
            CondAtom::Eq(_, a, b) | CondAtom::Lt(_, a, b) => {
                terms.extend([a, b]);
                true
            }
            CondAtom::Choice(_) => false,
        })
}

/// Whether a condition holds, if terms have these values.
fn holds(pool: &TermPool, mut c: Cond, of: impl Fn(TermId) -> i64) -> bool {
    while let Some((atom, low, high)) = pool.decision(c) {
        let yes = match pool.atom(atom) {
            CondAtom::Eq(ty, a, b) => CmpOp::Eq.holds(ty, of(a), of(b)),
            CondAtom::Lt(ty, a, b) => CmpOp::Lt.holds(ty, of(a), of(b)),
            CondAtom::Choice(_) => false,
        };
        c = if yes { high } else { low };
    }
    c == Cond::TRUE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Terms over one read and over two, with a condition and an unlisted operand.
    fn terms() -> TermPool {
        let mut pool = TermPool::default();
        let reads = [0, 1].map(|e| pool.read(EventId::new(e), Ty::U32));
        let byte = Ty {
            bits: 8,
            signed: true,
        };
        let [seven, three] = [7, 3].map(|v| pool.constant(v));
        let less = pool.bin(BinOp::Sub, Ty::U32, reads[0], seven);
        let low = pool.bin(BinOp::And, Ty::U32, less, three);
        let below = pool.cmp(CmpOp::Lt, Ty::U32, reads[0], seven);
        let chosen = pool.ite(below, low, reads[0]);
        pool.cast(byte, chosen);
        let sum = pool.bin(BinOp::Add, Ty::U32, chosen, reads[1]);
        let choice = pool.fresh_choice();
        pool.ite(choice, sum, three);
        pool
    }

    fn updated(
        mut images: TermImages,
        pool: &TermPool,
        of_read: &[Option<Values>],
        changed: [bool; 2],
    ) -> TermImages {
        let is_changed = |e: EventId| changed[e.index()];
        images
            .update(pool, |_| true, of_read, is_changed, true, None)
            .expect("no deadline");
        images
    }

    #[test]
    fn images_grow_to_those_of_all_values() {
        let pool = terms();
        let mut of_read = vec![Some(vec![5, 9]), Some(vec![1])];
        let mut grown = updated(TermImages::default(), &pool, &of_read, [true; 2]);
        let steps = [
            (Some(vec![0, 5, 6, 9, 300]), None),
            (Some(vec![0, 1, 5, 6, 9, 300]), Some(vec![1, 2, 8])),
            (None, Some(vec![1, 2, 4, 8])),
        ];
        for (first, second) in steps {
            let changed = [first.is_some(), second.is_some()];
            for (values, new) in of_read.iter_mut().zip([first, second]) {
                *values = new.or(values.take());
            }
            let before = grown.sorted.clone();
            grown = updated(grown, &pool, &of_read, changed);
            let whole = updated(TermImages::default(), &pool, &of_read, [true; 2]);
            assert_eq!(grown.all, whole.all);
            assert_eq!(grown.sorted, whole.sorted);
            for (at, before) in before
                .iter()
                .enumerate()
                .filter(|(at, _)| grown.changed[*at])
            {
                let expected = added(before.as_deref(), grown.sorted[at].as_deref());
                assert_eq!(grown.gained[at], expected, "{:?}", grown.all[at]);
            }
        }
    }
}
