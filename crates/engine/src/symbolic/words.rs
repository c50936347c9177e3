//! Represents values as bits: a value with too many numbers to list is 64 gates.
//!
//! # Invariants
//! - A word holds the bits, lowest first, of the `i64` that represents the value elsewhere.
//! - [`BitWord::apply`] and [`BitWord::holds`] are [`BinOp::apply`] and [`CmpOp::holds`], bit by
//!   bit; constant operands give constants.

use cat::algebra::gates::{Gates, Lit};
use program::{BinOp, CmpOp, Ty};

const BITS: usize = 64;

/// A value as its bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BitWord([Lit; BITS]);

impl BitWord {
    /// A constant.
    pub(super) fn constant(v: i64) -> BitWord {
        BitWord(std::array::from_fn(|i| Lit::constant(v >> i & 1 != 0)))
    }

    /// Any value of a type.
    pub(super) fn input(gates: &mut Gates, ty: Ty) -> BitWord {
        let bits: Vec<Lit> = (0..ty.bits).map(|_| gates.input()).collect();
        extended(&bits, ty)
    }

    /// The word of a list of cases: numbers, each with the literal that it is the value.
    pub(super) fn of_cases(gates: &mut Gates, cases: &[(i64, Lit)]) -> BitWord {
        let bit = |i: usize| gates.any(cases.iter().filter(|c| c.0 >> i & 1 != 0).map(|c| c.1));
        let mut word = BitWord(array(bit));
        // A bit that all cases have is true whichever case holds.
        for (i, bit) in word.0.iter_mut().enumerate() {
            if cases.iter().all(|c| c.0 >> i & 1 != 0) {
                *bit = Lit::TRUE;
            }
        }
        word
    }

    /// Its bits.
    pub(super) fn bits(&self) -> &[Lit] {
        &self.0
    }

    /// The value of a type that has the same low bits.
    pub(super) fn wrapped(&self, ty: Ty) -> BitWord {
        extended(&self.0[..usize::from(ty.bits)], ty)
    }

    /// `if c then a else b`.
    pub(super) fn ite(gates: &mut Gates, c: Lit, a: &BitWord, b: &BitWord) -> BitWord {
        BitWord(array(|i| gates.ite(c, a.0[i], b.0[i])))
    }

    /// Whether `a op b` holds in type `ty`.
    pub(super) fn holds(gates: &mut Gates, op: CmpOp, ty: Ty, a: &BitWord, b: &BitWord) -> Lit {
        let (a, b) = (a.wrapped(ty), b.wrapped(ty));
        match op {
            CmpOp::Eq => equal(gates, &a.0, &b.0),
            CmpOp::Ne => !equal(gates, &a.0, &b.0),
            CmpOp::Lt => less_in(gates, ty, &a, &b),
            CmpOp::Ge => !less_in(gates, ty, &a, &b),
            CmpOp::Gt => less_in(gates, ty, &b, &a),
            CmpOp::Le => !less_in(gates, ty, &b, &a),
        }
    }

    /// `a op b` in type `ty`; not for floating point, because its operands are always listed.
    pub(super) fn apply(gates: &mut Gates, op: BinOp, ty: Ty, a: &BitWord, b: &BitWord) -> BitWord {
        let n = usize::from(ty.bits);
        let (x, y) = (&a.0[..n], &b.0[..n]);
        let each = |gates: &mut Gates, of: fn(&mut Gates, Lit, Lit) -> Lit| {
            x.iter().zip(y).map(|(&x, &y)| of(gates, x, y)).collect()
        };
        let bits = match op {
            BinOp::Add => sum(gates, x, y, Lit::FALSE).0,
            BinOp::Sub => difference(gates, x, y).0,
            BinOp::Mul => product(gates, x, y),
            BinOp::Div | BinOp::Rem => {
                let (signs, none) = ((x[n - 1], y[n - 1]), !gates.any(y.iter().copied()));
                let (p, q) = (
                    magnitude(ty, gates, x, signs.0),
                    magnitude(ty, gates, y, signs.1),
                );
                let (quotient, rest) = quotient(gates, &p, &q);
                let (result, minus, by_zero) = match op {
                    BinOp::Div => (quotient, xor(gates, signs.0, signs.1), vec![Lit::TRUE; n]),
                    _ => (rest, signs.0, x.to_vec()),
                };
                let result = if ty.signed {
                    negated_if(gates, minus, &result)
                } else {
                    result
                };
                choice(gates, none, &by_zero, &result)
            }
            BinOp::And => each(gates, Gates::and),
            BinOp::Or => each(gates, Gates::or),
            BinOp::Xor => each(gates, xor),
            BinOp::Shl => shifted(gates, x, y, Lit::FALSE, |i, by| i.checked_sub(by)),
            BinOp::Shr => {
                let fill = if ty.signed { x[n - 1] } else { Lit::FALSE };
                shifted(gates, x, y, fill, |i, by| Some(i + by))
            }
            BinOp::Min | BinOp::Max => {
                let less = less_in(gates, ty, &a.wrapped(ty), &b.wrapped(ty));
                if op == BinOp::Min {
                    choice(gates, less, x, y)
                } else {
                    choice(gates, less, y, x)
                }
            }
            BinOp::Inc => {
                let (more, last) = (
                    sum(gates, x, &vec![Lit::FALSE; n], Lit::TRUE).0,
                    !less(gates, x, y),
                );
                choice(gates, last, &vec![Lit::FALSE; n], &more)
            }
            BinOp::Dec => {
                let fewer = difference(gates, x, &one(n)).0;
                let (some, above) = (gates.any(x.iter().copied()), less(gates, y, x));
                let again = gates.or(!some, above);
                choice(gates, again, y, &fewer)
            }
            BinOp::Float(..) | BinOp::Unknown => unreachable!("their values are listed"),
            BinOp::Tells => unreachable!("it is a comparison"),
        };
        extended(&bits, ty)
    }
}

/// The magnitude of a number of a type.
fn magnitude(ty: Ty, gates: &mut Gates, of: &[Lit], sign: Lit) -> Vec<Lit> {
    if ty.signed {
        negated_if(gates, sign, of)
    } else {
        of.to_vec()
    }
}

fn array(mut of: impl FnMut(usize) -> Lit) -> [Lit; BITS] {
    std::array::from_fn(&mut of)
}

fn extended(bits: &[Lit], ty: Ty) -> BitWord {
    let sign = if ty.signed {
        bits[bits.len() - 1]
    } else {
        Lit::FALSE
    };
    BitWord(array(|i| bits.get(i).copied().unwrap_or(sign)))
}

fn one(n: usize) -> Vec<Lit> {
    (0..n).map(|i| Lit::constant(i == 0)).collect()
}

fn xor(gates: &mut Gates, a: Lit, b: Lit) -> Lit {
    gates.ite(a, !b, b)
}

fn choice(gates: &mut Gates, c: Lit, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
    a.iter().zip(b).map(|(&a, &b)| gates.ite(c, a, b)).collect()
}

fn equal(gates: &mut Gates, a: &[Lit], b: &[Lit]) -> Lit {
    let same: Vec<Lit> = a.iter().zip(b).map(|(&a, &b)| !xor(gates, a, b)).collect();
    gates.all(same)
}

/// Whether `a < b`, unsigned: the highest bit in which they differ decides.
fn less(gates: &mut Gates, a: &[Lit], b: &[Lit]) -> Lit {
    a.iter().zip(b).fold(Lit::FALSE, |lower, (&a, &b)| {
        let differ = xor(gates, a, b);
        gates.ite(differ, b, lower)
    })
}

/// Whether `a < b` in a type.
fn less_in(gates: &mut Gates, ty: Ty, a: &BitWord, b: &BitWord) -> Lit {
    let n = usize::from(ty.bits);
    let (mut a, mut b) = (a.0[..n].to_vec(), b.0[..n].to_vec());
    if ty.signed {
        a[n - 1] = !a[n - 1];
        b[n - 1] = !b[n - 1];
    }
    less(gates, &a, &b)
}

/// Sum and carry.
fn sum(gates: &mut Gates, a: &[Lit], b: &[Lit], mut carry: Lit) -> (Vec<Lit>, Lit) {
    let bits = a
        .iter()
        .zip(b)
        .map(|(&a, &b): (&Lit, &Lit)| {
            let differ = xor(gates, a, b);
            let bit = xor(gates, differ, carry);
            carry = gates.ite(differ, carry, a);
            bit
        })
        .collect();
    (bits, carry)
}

/// Difference, and whether it is at least zero.
fn difference(gates: &mut Gates, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Lit) {
    let b: Vec<Lit> = b.iter().map(|&b| !b).collect();
    sum(gates, a, &b, Lit::TRUE)
}

fn negated_if(gates: &mut Gates, c: Lit, of: &[Lit]) -> Vec<Lit> {
    let minus = difference(gates, &vec![Lit::FALSE; of.len()], of).0;
    choice(gates, c, &minus, of)
}

fn product(gates: &mut Gates, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
    let n = a.len();
    let mut all = vec![Lit::FALSE; n];
    for (i, &bit) in b.iter().enumerate() {
        let part: Vec<Lit> = a[..n - i].iter().map(|&a| gates.and(a, bit)).collect();
        let upper = sum(gates, &all[i..], &part, Lit::FALSE).0;
        all.splice(i.., upper);
    }
    all
}

/// Quotient and remainder by long division; meaningless for the divisor zero.
fn quotient(gates: &mut Gates, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
    let n = a.len();
    let (mut quotient, mut rest) = (vec![Lit::FALSE; n], vec![Lit::FALSE; n]);
    let divisor = [b, &[Lit::FALSE]].concat();
    for i in (0..n).rev() {
        rest.insert(0, a[i]);
        let (left, fits) = difference(gates, &rest, &divisor);
        quotient[i] = fits;
        rest = choice(gates, fits, &left, &rest);
        rest.truncate(n);
    }
    (quotient, rest)
}

/// Shifts by a word. `from` gives the source bit of a place, if it has one. Amounts of at least the
/// size give only `fill`.
fn shifted(
    gates: &mut Gates,
    a: &[Lit],
    by: &[Lit],
    fill: Lit,
    from: impl Fn(usize, usize) -> Option<usize>,
) -> Vec<Lit> {
    let n = a.len();
    let steps = n.ilog2() as usize;
    let mut all = a.to_vec();
    for (k, &bit) in by.iter().enumerate().take(steps) {
        let moved: Vec<Lit> = (0..n)
            .map(|i| {
                from(i, 1 << k)
                    .and_then(|j| all.get(j).copied())
                    .unwrap_or(fill)
            })
            .collect();
        all = choice(gates, bit, &moved, &all);
    }
    let out = gates.any(by[steps..].iter().copied());
    choice(gates, out, &vec![fill; n], &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [BinOp; 14] = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Rem,
        BinOp::And,
        BinOp::Or,
        BinOp::Xor,
        BinOp::Shl,
        BinOp::Shr,
        BinOp::Min,
        BinOp::Max,
        BinOp::Inc,
        BinOp::Dec,
    ];
    const COMPARISONS: [CmpOp; 6] = [
        CmpOp::Eq,
        CmpOp::Ne,
        CmpOp::Lt,
        CmpOp::Le,
        CmpOp::Gt,
        CmpOp::Ge,
    ];

    fn types() -> impl Iterator<Item = Ty> {
        [1, 8, 16, 32, 64]
            .into_iter()
            .flat_map(|bits| [true, false].map(|signed| Ty { bits, signed }))
    }

    /// Small numbers, numbers at the ends of types and of shifts, and some between.
    fn numbers() -> impl Iterator<Item = i64> + Clone {
        let ends = [7, 8, 15, 16, 31, 32, 62, 63]
            .into_iter()
            .flat_map(|k| [-1, 0, 1].map(|d| (1i64 << k).wrapping_add(d)));
        let some = [
            -64,
            -5,
            -2,
            -1,
            0,
            1,
            2,
            3,
            6,
            10,
            33,
            64,
            65,
            1000,
            -123_456_789,
            0x1234_5678_9abc_def0,
        ];
        some.into_iter().chain(ends)
    }

    fn pairs() -> impl Iterator<Item = (i64, i64)> {
        numbers().flat_map(|a| numbers().map(move |b| (a, b)))
    }

    #[test]
    fn words_of_numbers_are_what_the_numbers_make() {
        let mut gates = Gates::default();
        for ty in types() {
            for (a, b) in pairs() {
                let (x, y) = (BitWord::constant(a), BitWord::constant(b));
                assert_eq!(
                    x.wrapped(ty),
                    BitWord::constant(ty.wrap(a)),
                    "{a} as {ty:?}"
                );
                for op in OPS {
                    let made = BitWord::apply(&mut gates, op, ty, &x, &y);
                    assert_eq!(
                        made,
                        BitWord::constant(op.apply(ty, a, b)),
                        "{a} {op:?} {b} in {ty:?}"
                    );
                }
                for op in COMPARISONS {
                    let made = BitWord::holds(&mut gates, op, ty, &x, &y);
                    assert_eq!(
                        made,
                        Lit::constant(op.holds(ty, a, b)),
                        "{a} {op:?} {b} in {ty:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn words_of_inputs_are_what_the_numbers_make() {
        for ty in types().filter(|ty| ty.bits <= 16) {
            let mut gates = Gates::default();
            let (x, y) = (
                BitWord::input(&mut gates, ty),
                BitWord::input(&mut gates, ty),
            );
            let made: Vec<BitWord> = OPS
                .iter()
                .map(|&op| BitWord::apply(&mut gates, op, ty, &x, &y))
                .collect();
            let held: Vec<Lit> = COMPARISONS
                .iter()
                .map(|&op| BitWord::holds(&mut gates, op, ty, &x, &y))
                .collect();
            for (a, b) in pairs().map(|(a, b)| (ty.wrap(a), ty.wrap(b))) {
                let bit = |gate: usize| {
                    let n = usize::from(ty.bits);
                    // Inputs are numbered in the order of their creation, after the constant.
                    let (of, i) = if gate <= n {
                        (a, gate - 1)
                    } else {
                        (b, gate - 1 - n)
                    };
                    of >> i & 1 != 0
                };
                let values = gates.evaluate(bit);
                let is = |l: Lit| values[l.gate()] != l.negated();
                let number = |w: &BitWord| {
                    w.bits()
                        .iter()
                        .rev()
                        .fold(0i64, |v, &l| v << 1 | i64::from(is(l)))
                };
                assert_eq!((number(&x), number(&y)), (a, b));
                for (op, made) in OPS.iter().zip(&made) {
                    assert_eq!(number(made), op.apply(ty, a, b), "{a} {op:?} {b} in {ty:?}");
                }
                for (op, &held) in COMPARISONS.iter().zip(&held) {
                    assert_eq!(is(held), op.holds(ty, a, b), "{a} {op:?} {b} in {ty:?}");
                }
            }
        }
    }
}
