//! Bit operations as sequences of steps over one register, shared by instructions of PTX and
//! builtins of the C family.
//!
//! # Invariants
//! - Each step computes the register's next value from its present one; no other code reads the
//!   values in between.
//!
//! # Sources
//! - PTX ISA 9.4, *Integer Arithmetic Instructions*; CUDA Math API, *Integer Intrinsics*; OpenCL C,
//!   *Integer Functions*.

use program::{BinOp, Expr, Ty};

/// A function from the register's present value to its next one.
pub(super) type StepFn = fn(Expr, Ty) -> Expr;

/// One step of a sequence.
#[derive(Clone)]
pub(super) enum RegisterStep {
    First(Expr),
    Of(StepFn),
    /// `d | d >> n`
    Smear(i64),
    /// Swaps neighbours of `n` bits.
    Swap(i64),
}

impl RegisterStep {
    /// The register's next value. Steps compute without sign, except those that depend on the sign.
    pub(super) fn next(self, d: Expr, ty: Ty) -> Expr {
        let bits = unsigned(ty);
        match self {
            RegisterStep::First(value) => value,
            // This step needs the type with its sign.
            RegisterStep::Of(step) => step(d, ty),
            RegisterStep::Smear(n) => {
                bin(BinOp::Or, bits, d.clone(), bin(BinOp::Shr, bits, d, int(n)))
            }
            RegisterStep::Swap(n) => {
                let mask = (0..64)
                    .filter(|bit| bit / n % 2 == 0)
                    .fold(0i64, |mask, bit| mask | 1 << bit);
                let down = bin(
                    BinOp::And,
                    bits,
                    bin(BinOp::Shr, bits, d.clone(), int(n)),
                    int(mask),
                );
                bin(
                    BinOp::Or,
                    bits,
                    bin(
                        BinOp::Shl,
                        bits,
                        bin(BinOp::And, bits, d, int(mask)),
                        int(n),
                    ),
                    down,
                )
            }
        }
    }
}

/// Sets all bits below the leading one.
pub(super) fn smear() -> Vec<RegisterStep> {
    [1, 2, 4, 8, 16, 32].map(RegisterStep::Smear).to_vec()
}

/// Counts the ones.
pub(super) fn count_ones() -> Vec<RegisterStep> {
    let steps: [StepFn; 4] = [
        |d, ty| {
            let odd = bin(
                BinOp::And,
                ty,
                bin(BinOp::Shr, ty, d.clone(), int(1)),
                int(0x5555_5555_5555_5555),
            );
            bin(BinOp::Sub, ty, d, odd)
        },
        |d, ty| {
            let mask = int(0x3333_3333_3333_3333);
            let high = bin(
                BinOp::And,
                ty,
                bin(BinOp::Shr, ty, d.clone(), int(2)),
                mask.clone(),
            );
            bin(BinOp::Add, ty, bin(BinOp::And, ty, d, mask), high)
        },
        |d, ty| {
            let both = bin(BinOp::Add, ty, d.clone(), bin(BinOp::Shr, ty, d, int(4)));
            bin(BinOp::And, ty, both, int(0x0f0f_0f0f_0f0f_0f0f))
        },
        |d, ty| {
            let sum = bin(BinOp::Mul, ty, d, int(0x0101_0101_0101_0101));
            bin(BinOp::Shr, ty, sum, int(i64::from(ty.bits) - 8))
        },
    ];
    steps.map(RegisterStep::Of).to_vec()
}

pub(super) fn count_zeros() -> Vec<RegisterStep> {
    let left: StepFn = |d, ty| bin(BinOp::Sub, ty, int(i64::from(ty.bits)), d);
    [smear(), count_ones(), vec![RegisterStep::Of(left)]].concat()
}

pub(super) fn reverse(ty: Ty) -> Vec<RegisterStep> {
    (0..ty.bits.ilog2())
        .map(|n| RegisterStep::Swap(1 << n))
        .collect()
}

/// The position of the lowest one bit, counted from 1; 0 if there is none.
pub(super) fn first_one() -> Vec<RegisterStep> {
    let lowest: StepFn = |d, ty| bin(BinOp::And, ty, d.clone(), bin(BinOp::Sub, ty, int(0), d));
    [vec![RegisterStep::Of(lowest)], smear(), count_ones()].concat()
}

pub(super) fn trailing_zeros() -> Vec<RegisterStep> {
    let behind: StepFn = |d, ty| {
        let below = bin(BinOp::Sub, ty, d.clone(), int(1));
        bin(BinOp::And, ty, bin(BinOp::Xor, ty, d, int(-1)), below)
    };
    [vec![RegisterStep::Of(behind)], count_ones()].concat()
}

/// The absolute value. The least number of a signed type stays as it is.
pub(super) fn absolute(ty: Ty, a: Expr) -> Expr {
    bin(BinOp::Max, ty, a.clone(), bin(BinOp::Sub, ty, int(0), a))
}

/// A type without its sign.
pub(super) fn unsigned(ty: Ty) -> Ty {
    Ty {
        signed: false,
        ..ty
    }
}

fn bin(op: BinOp, ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, ty, a.into(), b.into())
}

fn int(n: i64) -> Expr {
    Expr::Const(n)
}
