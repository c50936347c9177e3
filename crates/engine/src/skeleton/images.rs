//! The possible values of terms, given those of the reads.
//!
//! A term over one read is computed value by value, so that what it makes of one value is not mixed with the condition
//! that another one meets; a term over several reads has every combination.
//!
//! # Invariants
//! - A superset: every value that a term has in some execution is listed.

use std::collections::BTreeSet;
use std::time::Instant;

use super::domain::{MAX_VALUES, Values};
use super::pool::{Atom, Cond, Pool, Term, TermId};
use cat::rel::EventId;
use program::CmpOp;
use verdict::Reason;

/// What is known of one term.
enum Image {
    /// It is this number.
    Number(i64),
    /// A function of one read: its values in the order of those of the read.
    Of(EventId, Vec<i64>),
    /// Any of these.
    Any(Values),
}

impl Image {
    fn values(&self) -> Vec<i64> {
        match self {
            Image::Number(v) => vec![*v],
            Image::Of(_, all) => all.clone(),
            Image::Any(all) => all.clone(),
        }
    }

    /// The value where the read has its `i`-th.
    fn at(&self, i: usize) -> i64 {
        match self {
            Image::Number(v) => *v,
            Image::Of(_, all) | Image::Any(all) => all[i],
        }
    }
}

/// The values of all terms, by index.
pub(super) fn term_values(
    pool: &Pool,
    of_read: &[BTreeSet<i64>],
    deadline: Option<Instant>,
) -> Result<Vec<Values>, Reason> {
    let mut images: Vec<Image> = Vec::with_capacity(pool.term_count());
    for id in pool.term_ids() {
        if images.len().is_multiple_of(256) && stop::late(deadline) {
            return Err(Reason::Time);
        }
        let image = image(pool, of_read, &images, id)?;
        if let Image::Any(values) = &image
            && values.len() > MAX_VALUES
        {
            return Err(Reason::TooManyValues);
        }
        images.push(image);
    }
    let sorted = |image: Image| {
        let values: BTreeSet<i64> = image.values().into_iter().collect();
        if values.len() > MAX_VALUES { Err(Reason::TooManyValues) } else { Ok(values.into_iter().collect()) }
    };
    images.into_iter().map(sorted).collect()
}

fn image(pool: &Pool, of_read: &[BTreeSet<i64>], images: &[Image], id: TermId) -> Result<Image, Reason> {
    let get = |t: TermId| &images[Pool::term_index(t)];
    let any = |values: BTreeSet<i64>| Image::Any(values.into_iter().collect());
    Ok(match pool.term(id) {
        Term::Const(v) => Image::Number(v),
        Term::Read(e) => Image::Of(e, of_read[e.index()].iter().copied().collect()),
        Term::Cast(ty, a) => match get(a) {
            Image::Number(v) => Image::Number(ty.wrap(*v)),
            Image::Of(e, all) => Image::Of(*e, all.iter().map(|&v| ty.wrap(v)).collect()),
            Image::Any(all) => any(all.iter().map(|&v| ty.wrap(v)).collect()),
        },
        Term::Bin(op, ty, a, b) => match common(&[get(a), get(b)]) {
            Some(Some(e)) => {
                let n = of_read[e.index()].len();
                Image::Of(e, (0..n).map(|i| op.apply(ty, get(a).at(i), get(b).at(i))).collect())
            }
            Some(None) => Image::Number(op.apply(ty, get(a).at(0), get(b).at(0))),
            None => {
                let (a, b) = (get(a).values(), get(b).values());
                if a.len() * b.len() > MAX_VALUES * 64 {
                    return Err(Reason::TooManyValues);
                }
                any(a.iter().flat_map(|&x| b.iter().map(move |&y| op.apply(ty, x, y))).collect())
            }
        },
        Term::Ite(c, a, b) => {
            let mut parts = vec![get(a), get(b)];
            let decidable = tested(pool, c, &mut |t| parts.push(get(t)));
            match common(&parts).filter(|_| decidable) {
                Some(Some(e)) => {
                    let n = of_read[e.index()].len();
                    let choose = |i| if holds(pool, images, c, i) { get(a).at(i) } else { get(b).at(i) };
                    Image::Of(e, (0..n).map(choose).collect())
                }
                _ => any(get(a).values().into_iter().chain(get(b).values()).collect()),
            }
        }
    })
}

/// The one read that all are functions of (`Some(None)`: all are numbers), if there is no more than one.
fn common(images: &[&Image]) -> Option<Option<EventId>> {
    let mut one = None;
    for image in images {
        match image {
            Image::Number(_) => {}
            Image::Of(e, _) if one.is_none_or(|o| o == *e) => one = Some(*e),
            _ => return None,
        }
    }
    Some(one)
}

/// Calls `f` for the terms that a condition compares; `false`: it also depends on a choice.
fn tested(pool: &Pool, c: Cond, f: &mut impl FnMut(TermId)) -> bool {
    pool.support(c).into_iter().all(|atom| match pool.atom(atom) {
        Atom::Eq(_, a, b) | Atom::Lt(_, a, b) => {
            f(a);
            f(b);
            true
        }
        Atom::Choice(_) => false,
    })
}

/// Whether a condition holds where the read has its `i`-th value.
fn holds(pool: &Pool, images: &[Image], mut c: Cond, i: usize) -> bool {
    let get = |t: TermId| images[Pool::term_index(t)].at(i);
    while let Some((atom, low, high)) = pool.decision(c) {
        let yes = match pool.atom(atom) {
            Atom::Eq(ty, a, b) => CmpOp::Eq.holds(ty, get(a), get(b)),
            Atom::Lt(ty, a, b) => CmpOp::Lt.holds(ty, get(a), get(b)),
            Atom::Choice(_) => false,
        };
        c = if yes { high } else { low };
    }
    c == Cond::TRUE
}
