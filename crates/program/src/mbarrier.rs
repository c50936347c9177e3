//! The state of an mbarrier object, packed into its 64 bits, and the operations on it.
//!
//! From the low end: 15 bits of pending arrivals, 15 of expected arrivals, 21 of bytes that copies
//! have yet to deliver, 12 of the phase. The number of bytes may be negative, so the word stores it
//! plus 2^20. An object without expected arrivals is not live.
//!
//! # Invariants
//! - Operations are expressions over the old word, so engines and the executor treat the word like
//!   any other value.
//! - A phase completes in the operation after which no arrival is pending and no byte is
//!   outstanding.
//! - Invalidating an object advances its phase to an even one. No arrival at the old object has
//!   this phase or the one before it.
//!
//! # Sources
//! - PTX ISA 9.4, *mbarrier*: Size and alignment, Contents, Lifecycle, Phase, Tracking asynchronous
//!   operations, Phase completion.
//!
//! # Where we differ
//! - Counts go up to 32,767, not to 2^20 - 1. Phases are counted modulo 4,096; no test has that
//!   many events.

use crate::{BinOp, CmpOp, Expr, Ty};

/// The most arrivals that a phase can expect.
pub const MOST_ARRIVALS: i64 = (1 << 15) - 1;
/// The limit on outstanding bytes, and on bytes that arrive before they are expected.
pub const MOST_BYTES: i64 = (1 << 20) - 1;
/// The type of the word.
pub const WORD: Ty = Ty::U64;

const EXPECTED: u32 = 15;
const BYTES: u32 = 30;
/// The lowest bit of the phase.
pub const PHASE: u32 = 51;
/// The number of phases before the count wraps.
pub const PHASES: i64 = 1 << 12;
/// The stored value for zero outstanding bytes.
const NO_BYTES: i64 = MOST_BYTES + 1;

/// A state, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MbarrierState {
    /// Arrivals that the current phase waits for.
    pub pending: i64,
    /// Arrivals that the next phase will wait for; 0: there is no object.
    pub expected: i64,
    /// Bytes that the current phase waits for.
    pub bytes: i64,
    /// How many phases are complete.
    pub phase: i64,
}

impl MbarrierState {
    /// Unpacks a word.
    pub fn of(word: i64) -> MbarrierState {
        MbarrierState {
            pending: word & MOST_ARRIVALS,
            expected: word >> EXPECTED & MOST_ARRIVALS,
            bytes: (word >> BYTES & (2 * NO_BYTES - 1)) - NO_BYTES,
            phase: phase_of(word),
        }
    }

    /// The state as text for messages.
    pub fn text(self) -> String {
        if self.expected == 0 {
            return "no mbarrier object".to_string();
        }
        let bytes = match self.bytes {
            0 => String::new(),
            n if n < 0 => format!(", {} bytes came before they were expected", -n),
            n => format!(", tx {n}"),
        };
        format!(
            "phase {}, pending {} of {}{bytes}",
            self.phase, self.pending, self.expected
        )
    }
}

/// The phase of a state.
pub fn phase_of(word: i64) -> i64 {
    word >> PHASE & (PHASES - 1)
}

/// The word of a new object that expects `count` arrivals; for 0, the word of memory without an
/// object.
pub fn made(count: i64) -> i64 {
    if count == 0 {
        0
    } else {
        count | count << EXPECTED | NO_BYTES << BYTES
    }
}

/// The number of arrivals that an object was made with.
pub fn count_of(word: i64) -> i64 {
    MbarrierState::of(word).expected
}

fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, WORD, a.into(), b.into())
}

fn cmp(op: CmpOp, a: Expr, b: Expr) -> Expr {
    Expr::Cmp(op, Ty::WORD, a.into(), b.into())
}

fn number(n: i64) -> Expr {
    Expr::Const(n)
}

fn shifted(e: Expr, by: u32) -> Expr {
    match e {
        Expr::Const(n) => number(n << by),
        e => bin(BinOp::Shl, e, number(by.into())),
    }
}

fn field(word: Expr, at: u32, most: i64) -> Expr {
    let from = if at == 0 {
        word
    } else {
        bin(BinOp::Shr, word, number(at.into()))
    };
    bin(BinOp::And, from, number(most))
}

/// The conjunction.
pub fn both(a: Expr, b: Expr) -> Expr {
    Expr::Bin(BinOp::And, Ty::S32, a.into(), b.into())
}

/// Arrivals that the current phase waits for.
pub fn pending(word: Expr) -> Expr {
    field(word, 0, MOST_ARRIVALS)
}

/// Arrivals that the next phase will wait for.
pub fn expected(word: Expr) -> Expr {
    field(word, EXPECTED, MOST_ARRIVALS)
}

/// The number of the current phase.
pub fn phase(word: Expr) -> Expr {
    field(word, PHASE, PHASES - 1)
}

/// Whether there is an object.
pub fn live(word: Expr) -> Expr {
    cmp(CmpOp::Ne, expected(word), number(0))
}

/// Whether a number is between 1 and `most`.
pub fn within(n: Expr, most: Expr) -> Expr {
    both(
        cmp(CmpOp::Ge, n.clone(), number(1)),
        cmp(CmpOp::Le, n, most),
    )
}

/// The word after initialising an object; the phase stays.
pub fn init(word: Expr, count: Expr) -> Expr {
    let count = bin(BinOp::And, count, number(MOST_ARRIVALS));
    let fields = bin(BinOp::Mul, count, number(made(1) & !(NO_BYTES << BYTES)));
    bin(
        BinOp::Add,
        word,
        bin(BinOp::Add, fields, number(NO_BYTES << BYTES)),
    )
}

/// The word after invalidating an object.
pub fn inval(word: Expr) -> Expr {
    let phase = phase(word);
    let odd = bin(BinOp::And, phase.clone(), number(1));
    let next = bin(
        BinOp::And,
        bin(BinOp::Add, bin(BinOp::Add, phase, odd), number(2)),
        number(PHASES - 1),
    );
    shifted(next, PHASE)
}

/// The word after expecting more bytes, or fewer if `sign` is -1.
pub fn expect(word: Expr, bytes: Expr, sign: i64) -> Expr {
    let op = if sign < 0 { BinOp::Sub } else { BinOp::Add };
    bin(op, word, shifted(bytes, BYTES))
}

/// Whether an object can count its bytes after adding some (`sign` is -1: after subtracting some).
pub fn in_range(word: Expr, bytes: Expr, sign: i64) -> Expr {
    let op = if sign < 0 { BinOp::Sub } else { BinOp::Add };
    let after = bin(op, field(word, BYTES, 2 * NO_BYTES - 1), bytes.clone());
    let given = both(
        cmp(CmpOp::Ge, bytes.clone(), number(0)),
        cmp(CmpOp::Le, bytes, number(MOST_BYTES)),
    );
    both(
        given,
        both(
            cmp(CmpOp::Ge, after.clone(), number(1)),
            cmp(CmpOp::Lt, after, number(2 * NO_BYTES)),
        ),
    )
}

/// The word after `count` arrivals.
pub fn arrive(word: Expr, count: Expr) -> Expr {
    bin(BinOp::Sub, word, count)
}

/// The word with `count` fewer arrivals in later phases.
pub fn drop(word: Expr, count: Expr) -> Expr {
    bin(BinOp::Sub, word, shifted(count, EXPECTED))
}

/// Whether nothing is outstanding in the phase.
pub fn is_complete(word: Expr) -> Expr {
    let left = bin(
        BinOp::And,
        word,
        number(((2 * NO_BYTES - 1) << BYTES) | MOST_ARRIVALS),
    );
    cmp(CmpOp::Eq, left, number(NO_BYTES << BYTES))
}

/// The word, with the phase completed if nothing is outstanding.
pub fn settled(word: Expr) -> Expr {
    let begun = bin(
        BinOp::Add,
        bin(BinOp::Add, word.clone(), expected(word.clone())),
        number(1 << PHASE),
    );
    let begun = bin(BinOp::And, begun, number(i64::MAX));
    Expr::Select(is_complete(word.clone()).into(), begun.into(), word.into())
}

/// Whether the phase with that parity, the current or the previous one, is complete.
pub fn has_passed_parity(word: Expr, parity: Expr) -> Expr {
    let now = bin(BinOp::And, phase(word), number(1));
    cmp(CmpOp::Ne, now, parity)
}

/// The result of an arrival: the object and the phase of the arrival.
pub fn token(word: Expr, object: Expr) -> Expr {
    bin(
        BinOp::Add,
        bin(BinOp::Mul, object, number(PHASES)),
        phase(word),
    )
}

/// Whether the phase of a token is complete: it is the previous one.
pub fn has_passed(word: Expr, token: Expr) -> Expr {
    let since = bin(
        BinOp::And,
        bin(BinOp::Sub, phase(word), token),
        number(PHASES - 1),
    );
    cmp(CmpOp::Eq, since, number(1))
}

/// Whether a token belongs to the object, and to its current or previous phase.
pub fn is_token(word: Expr, token: Expr, object: Expr) -> Expr {
    let of = cmp(
        CmpOp::Eq,
        bin(BinOp::Shr, token.clone(), number(12)),
        object,
    );
    let since = bin(
        BinOp::And,
        bin(BinOp::Sub, phase(word), token),
        number(PHASES - 1),
    );
    both(of, cmp(CmpOp::Le, since, number(1)))
}

/// The number of arrivals of an operation that leaves the arrivals of later phases as they are;
/// `None`: it is another operation. `new` is the word after it.
pub fn arrivals(new: &Expr) -> Option<&Expr> {
    let Expr::Select(_, _, arrived) = new else {
        return None;
    };
    let Expr::Bin(BinOp::Sub, _, before, count) = &**arrived else {
        return None;
    };
    let is_old = |word: &Expr| matches!(word, Expr::Reg(_));
    match &**before {
        // It expects more bytes.
        Expr::Bin(BinOp::Add, _, old, _) => is_old(old),
        before => is_old(before),
    }
    .then_some(count)
}

/// The phase that a wait needs to be complete.
#[derive(Clone, Copy, Debug)]
pub enum Awaited<'e> {
    /// That of an arrival, by its token.
    Token(&'e Expr),
    /// The one with this parity, the current or the previous one.
    Parity(&'e Expr),
}

/// The phase that a condition asks for, about a word of a barrier; `None`: it asks for something
/// else.
pub fn awaited<'e>(passes: &'e Expr, word: &Expr) -> Option<Awaited<'e>> {
    let Expr::Bin(BinOp::And, _, complete, _) = passes else {
        return None;
    };
    match &**complete {
        Expr::Cmp(CmpOp::Ne, _, _, parity) => {
            let same = has_passed_parity(word.clone(), Expr::clone(parity));
            (same == **complete).then_some(Awaited::Parity(parity))
        }
        Expr::Cmp(CmpOp::Eq, _, since, _) => {
            let Expr::Bin(BinOp::And, _, distance, _) = &**since else {
                return None;
            };
            let Expr::Bin(BinOp::Sub, _, _, token) = &**distance else {
                return None;
            };
            let same = has_passed(word.clone(), Expr::clone(token));
            (same == **complete).then_some(Awaited::Token(token))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(e: &Expr) -> i64 {
        e.value(&|_| None).expect("constants alone")
    }

    fn state(pending: i64, expected: i64, bytes: i64, phase: i64) -> MbarrierState {
        MbarrierState {
            pending,
            expected,
            bytes,
            phase,
        }
    }

    #[test]
    fn operations_change_the_fields_that_they_name() {
        let word = made(3);
        assert_eq!(MbarrierState::of(word), state(3, 3, 0, 0));
        let word = value(&settled(arrive(number(word), number(2))));
        assert_eq!(MbarrierState::of(word), state(1, 3, 0, 0));
        let word = value(&settled(drop(number(word), number(1))));
        assert_eq!(MbarrierState::of(word), state(1, 2, 0, 0));
        let word = value(&settled(expect(number(word), number(16), -1)));
        assert_eq!(MbarrierState::of(word), state(1, 2, -16, 0));
        let word = value(&settled(arrive(
            expect(number(word), number(32), 1),
            number(1),
        )));
        assert_eq!(MbarrierState::of(word), state(0, 2, 16, 0));
        assert_eq!(value(&has_passed_parity(number(word), number(0))), 0);
        let word = value(&settled(expect(number(word), number(16), -1)));
        assert_eq!(MbarrierState::of(word), state(2, 2, 0, 1));
        assert_eq!(value(&has_passed_parity(number(word), number(0))), 1);
        let gone = value(&inval(number(word)));
        assert_eq!((value(&live(number(gone))), phase_of(gone)), (0, 4));
        assert_eq!(
            MbarrierState::of(value(&init(number(gone), number(2)))),
            state(2, 2, 0, 4)
        );
    }

    #[test]
    fn bytes_stay_in_range() {
        let word = made(1);
        let fits = |bytes, sign| value(&in_range(number(word), number(bytes), sign)) != 0;
        assert!(fits(MOST_BYTES, 1) && fits(MOST_BYTES, -1) && fits(0, 1));
        assert!(!fits(MOST_BYTES + 1, 1) && !fits(-1, 1));
        let full = value(&expect(number(word), number(MOST_BYTES), 1));
        assert_eq!(MbarrierState::of(full).bytes, MOST_BYTES);
        assert_eq!(value(&in_range(number(full), number(1), 1)), 0);
    }

    #[test]
    fn tokens_name_object_and_phase() {
        let (before, after) = (made(1), value(&settled(arrive(number(made(1)), number(1)))));
        let token = value(&token(number(before), number(0x300)));
        let passed = |word| value(&has_passed(number(word), number(token))) != 0;
        assert!(!passed(before) && passed(after));
        let mine =
            |word, object| value(&is_token(number(word), number(token), number(object))) != 0;
        assert!(mine(before, 0x300) && mine(after, 0x300) && !mine(after, 0x400));
        let two = value(&settled(arrive(number(after), number(1))));
        assert!(!mine(two, 0x300));
    }

    #[test]
    fn the_last_phase_is_followed_by_the_first() {
        let word = made(1) | (PHASES - 1) << PHASE;
        assert_eq!(
            MbarrierState::of(value(&settled(arrive(number(word), number(1))))),
            state(1, 1, 0, 0)
        );
    }
}
