//! The binary operators and compound assignments of C, by their signs.
//!
//! # Sources
//! - C11, 6.5, and ISO C++, expr: the levels.

use program::{BinOp, CmpOp};

/// A binary operator.
#[derive(Clone, Copy)]
pub(super) enum Operator {
    Bin(BinOp),
    Cmp(CmpOp),
    And,
    Or,
}

/// Binary operators, from the loosest to the tightest level.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[("|", Operator::Bin(BinOp::Or))],
    &[("^", Operator::Bin(BinOp::Xor))],
    &[("&", Operator::Bin(BinOp::And))],
    &[
        ("==", Operator::Cmp(CmpOp::Eq)),
        ("!=", Operator::Cmp(CmpOp::Ne)),
    ],
    &[
        ("<", Operator::Cmp(CmpOp::Lt)),
        ("<=", Operator::Cmp(CmpOp::Le)),
        (">", Operator::Cmp(CmpOp::Gt)),
        (">=", Operator::Cmp(CmpOp::Ge)),
    ],
    &[
        ("<<", Operator::Bin(BinOp::Shl)),
        (">>", Operator::Bin(BinOp::Shr)),
    ],
    &[
        ("+", Operator::Bin(BinOp::Add)),
        ("-", Operator::Bin(BinOp::Sub)),
    ],
    &[
        ("*", Operator::Bin(BinOp::Mul)),
        ("/", Operator::Bin(BinOp::Div)),
        ("%", Operator::Bin(BinOp::Rem)),
    ],
];

/// The level of `+` and `-`.
pub(super) const ADDITIVE: usize = 8;

/// Compound assignments with their operators.
pub(super) const ASSIGNMENTS: &[(&str, BinOp)] = &[
    ("+=", BinOp::Add),
    ("-=", BinOp::Sub),
    ("*=", BinOp::Mul),
    ("/=", BinOp::Div),
    ("%=", BinOp::Rem),
    ("&=", BinOp::And),
    ("|=", BinOp::Or),
    ("^=", BinOp::Xor),
    ("<<=", BinOp::Shl),
    (">>=", BinOp::Shr),
];

/// The binary operator of a sign with its level, if that is `loosest` or tighter.
pub(super) fn binary(sign: &str, loosest: usize) -> Option<(usize, Operator)> {
    LEVELS
        .iter()
        .enumerate()
        .skip(loosest)
        .find_map(|(level, operators)| {
            let operator = operators.iter().find(|o| o.0 == sign)?;
            Some((level, operator.1))
        })
}
