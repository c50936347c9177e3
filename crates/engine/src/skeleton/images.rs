//! The possible values of terms, given those of the reads.
//!
//! A term over few reads is a function of them: it is computed for each of their combinations, so that what it makes of one
//! value is not mixed with what it makes, or a condition asks, of another. Of other terms only a set of values is known; or,
//! where that is too large to be listed, nothing.
//!
//! # Invariants
//! - A superset: every value that a term has in some execution is listed.
//! - Where a term that is a function has a value, all reads that it is a function of execute.

use std::collections::BTreeSet;
use std::time::Instant;

use super::domain::{MAX_VALUES, Values};
use super::pool::{Atom, Cond, Pool, Term, TermId};
use cat::rel::EventId;
use program::{BinOp, CmpOp, Ty};
use verdict::Reason;

/// What is known of one term.
#[derive(Clone, Debug)]
pub enum Image {
    /// A function of these reads, in their order (of none: a number), with its value for each combination of theirs; that of
    /// the last read changes fastest.
    Of(Vec<EventId>, Values),
    /// Any of these.
    Any(Values),
    /// Any value at all: there are too many to be listed.
    Word,
}

impl Image {
    /// The values, if they are listed.
    fn values(&self) -> Option<&Values> {
        match self {
            Image::Of(_, all) | Image::Any(all) => Some(all),
            Image::Word => None,
        }
    }

    /// Any of these, if they are few enough to be listed.
    fn any(values: impl IntoIterator<Item = i64>) -> Image {
        let values: BTreeSet<i64> = values.into_iter().collect();
        if values.len() > MAX_VALUES { Image::Word } else { Image::Any(values.into_iter().collect()) }
    }
}

/// What is known of all terms, by index; and their values, sorted. `of_read`: the values of reads, `None` for any at all.
pub(super) fn images(
    pool: &Pool,
    of_read: &[Option<BTreeSet<i64>>],
    deadline: Option<Instant>,
) -> Result<(Vec<Image>, Vec<Option<Values>>), Reason> {
    let sizes =
        |e: EventId| of_read[e.index()].as_ref().expect("functions are of reads whose values are listed").len();
    let mut images: Vec<Image> = Vec::with_capacity(pool.term_count());
    let mut sorted = Vec::with_capacity(pool.term_count());
    for id in pool.term_ids() {
        if images.len().is_multiple_of(256) && stop::late(deadline) {
            return Err(Reason::Time);
        }
        let image = match pool.term(id) {
            Term::Read(e) => match &of_read[e.index()] {
                Some(values) => Image::Of(vec![e], values.iter().copied().collect()),
                None => Image::Word,
            },
            term => image(pool, &sizes, &images, term)?,
        };
        sorted.push(image.values().map(|all| {
            let values: BTreeSet<i64> = all.iter().copied().collect();
            values.into_iter().collect()
        }));
        images.push(image);
    }
    Ok((images, sorted))
}

fn image(pool: &Pool, sizes: &impl Fn(EventId) -> usize, images: &[Image], term: Term) -> Result<Image, Reason> {
    let get = |t: TermId| &images[Pool::term_index(t)];
    Ok(match term {
        Term::Const(v) => Image::Of(Vec::new(), vec![v]),
        Term::Read(_) => unreachable!("handled above"),
        Term::Cast(ty, a) => match get(a) {
            Image::Of(reads, all) => Image::Of(reads.clone(), all.iter().map(|&v| ty.wrap(v)).collect()),
            Image::Any(all) => Image::any(all.iter().map(|&v| ty.wrap(v))),
            Image::Word => masked(ty, Ty { signed: false, ..ty }.wrap(-1)),
        },
        Term::Bin(op, ty, a, b) => match together(sizes, &[get(a), get(b)]) {
            Some((reads, rows)) => Image::Of(reads, rows.iter().map(|row| op.apply(ty, row[0], row[1])).collect()),
            None => match (get(a).values(), get(b).values()) {
                (Some(a), Some(b)) if a.len() * b.len() <= MAX_VALUES * 64 => {
                    Image::any(a.iter().flat_map(|&x| b.iter().map(move |&y| op.apply(ty, x, y))))
                }
                _ if matches!(op, BinOp::Float(_)) => return Err(Reason::TooManyValues),
                (values, others) => narrowed(op, ty, values, others),
            },
        },
        Term::Ite(c, a, b) => {
            let mut terms = vec![a, b];
            let decidable = tested(pool, c, &mut terms);
            let parts: Vec<&Image> = terms.iter().map(|&t| get(t)).collect();
            // A read in one of the branches need not execute where the other one is taken.
            match together(sizes, &parts).filter(|(reads, _)| decidable && reads.len() <= 1) {
                Some((reads, rows)) => {
                    let value = |row: &Vec<i64>| {
                        let of = |t: TermId| row[terms.iter().position(|&x| x == t).expect("it is tested")];
                        if holds(pool, c, of) { row[0] } else { row[1] }
                    };
                    Image::Of(reads, rows.iter().map(value).collect())
                }
                None => match (get(a).values(), get(b).values()) {
                    (Some(a), Some(b)) => Image::any(a.iter().chain(b).copied()),
                    _ => Image::Word,
                },
            }
        }
    })
}

/// What an operation leaves of values that are not all listed: bits under a mask, a rest, the upper bits.
fn narrowed(op: BinOp, ty: Ty, a: Option<&Values>, b: Option<&Values>) -> Image {
    let listed = |values: Option<&Values>| values.filter(|all| all.len() == 1).map(|all| ty.wrap(all[0]));
    let bits = |values: &Values| values.iter().fold(0, |mask, &v| mask | ty.wrap(v));
    match (op, a, b) {
        (BinOp::And, Some(mask), None) | (BinOp::And, None, Some(mask)) => masked(ty, bits(mask)),
        (BinOp::And, Some(a), Some(b)) => masked(ty, bits(a) & bits(b)),
        (BinOp::Rem, _, divisor) if !ty.signed => match listed(divisor) {
            Some(n @ 1..=1024) => Image::any(0..n),
            _ => Image::Word,
        },
        (BinOp::Shr, _, by) if !ty.signed => match listed(by) {
            Some(by @ 0..64) => masked(ty, ((ty.wrap(-1) as u64) >> by) as i64),
            _ => Image::Word,
        },
        _ => Image::Word,
    }
}

/// All values of a type with no bits but those of a mask.
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

/// The values of several functions for each combination of the values of their reads, and those reads; `None` if one of
/// them is no function, or if the combinations are too many.
pub(crate) fn together(
    sizes: &impl Fn(EventId) -> usize,
    images: &[&Image],
) -> Option<(Vec<EventId>, Vec<Vec<i64>>)> {
    let mut all: Vec<EventId> = Vec::new();
    let mut lists: Vec<&Values> = Vec::new();
    for image in images {
        let Image::Of(reads, values) = image else { return None };
        all.extend(reads);
        lists.push(values);
    }
    all.sort_unstable();
    all.dedup();
    let n = all.iter().try_fold(1usize, |n, &e| n.checked_mul(sizes(e)).filter(|n| *n <= MAX_VALUES))?;
    // By image and read of its own: how far a step of that read goes in it.
    let strides: Vec<Vec<usize>> = images.iter().map(|image| strides(sizes, &all, image)).collect();
    let lengths: Vec<usize> = all.iter().map(|&e| sizes(e)).collect();
    let mut at = vec![0; all.len()];
    // By image: where its value is.
    let mut offsets = vec![0; images.len()];
    let mut rows = Vec::with_capacity(n);
    for _ in 0..n {
        rows.push(lists.iter().zip(&offsets).map(|(values, &offset)| values[offset]).collect());
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
    Some((all, rows))
}

/// By read of `all`: how far a step of it goes in the values of an image.
fn strides(sizes: &impl Fn(EventId) -> usize, all: &[EventId], image: &Image) -> Vec<usize> {
    let Image::Of(reads, _) = image else { return Vec::new() };
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

/// Adds the terms that a condition compares; `false`: it also depends on a choice.
fn tested(pool: &Pool, c: Cond, terms: &mut Vec<TermId>) -> bool {
    pool.support(c).into_iter().all(|atom| match pool.atom(atom) {
        Atom::Eq(_, a, b) | Atom::Lt(_, a, b) => {
            terms.extend([a, b]);
            true
        }
        Atom::Choice(_) => false,
    })
}

/// Whether a condition holds where terms have these values.
fn holds(pool: &Pool, mut c: Cond, of: impl Fn(TermId) -> i64) -> bool {
    while let Some((atom, low, high)) = pool.decision(c) {
        let yes = match pool.atom(atom) {
            Atom::Eq(ty, a, b) => CmpOp::Eq.holds(ty, of(a), of(b)),
            Atom::Lt(ty, a, b) => CmpOp::Lt.holds(ty, of(a), of(b)),
            Atom::Choice(_) => false,
        };
        c = if yes { high } else { low };
    }
    c == Cond::TRUE
}
