//! Operations on bits: counts, fields, permutations, and other arithmetic that compilers print.
//!
//! # Sources
//! - PTX ISA 9.4, *Integer Arithmetic Instructions* (`abs`, `sad`, `mul.hi`, `mul24`, `popc`,
//!   `clz`, `bfind`, `brev`, `bfe`, `bfi`, `fns`, `szext`, `bmsk`, `dp4a`), *Comparison and
//!   Selection Instructions* (`slct`), *Logic and Shift Instructions* (`lop3`, `cnot`, `shf`),
//!   *Data Movement and Conversion Instructions* (`prmt`).
//!
//! An operation of several steps computes them in its destination register ([`crate::isa::bits`]).

use super::arith::{assign, double, op as bin, wide_product};
use super::floats::{absolute_value, flushed, suits};
use super::lower::{Emit, PtxInstr};
use super::needs::Need;
use super::table::{
    DATA, FLUSH, InstrRow, NUMBERS, OperandRole, QualGroup, QualKind, ResultTy, TYPES,
};
use crate::isa::bits::{
    RegisterStep, StepFn, absolute, count_ones, count_zeros, reverse, smear, unsigned,
};
use program::{BinOp, CmpOp, Expr, FloatOp, Format, Op, Ty};

const UNARY: &[OperandRole] = &[OperandRole::Dst, OperandRole::Val];
const TERNARY: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Val,
];
const FIELD: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Loose,
    OperandRole::Loose,
];
const INSERT: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Loose,
    OperandRole::Loose,
];
const LOOKUP: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Loose,
];
const LOOKUP_ONE: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Loose,
    OperandRole::Loose,
    OperandRole::Loose,
];
const SHIFT: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Loose,
];
const FIELD_END: &[OperandRole] = &[OperandRole::Dst, OperandRole::Loose, OperandRole::Loose];
const B32: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b32"],
};
const BYTES: QualGroup = QualGroup {
    kind: QualKind::Types,
    words: &["u32", "s32"],
};
const PERMUTATIONS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"],
};
const MODE: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["wrap", "clamp"],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "popc",
        "`popc{.type} d, a`",
        "number of ones",
        &[TYPES],
        UNARY,
        |e, c| {
            let steps = [start(e, c), count_ones()].concat();
            run(e, c, steps);
        },
    )
    .result(ResultTy::U32),
    InstrRow::new(
        "clz",
        "`clz{.type} d, a`",
        "number of zeros in front",
        &[TYPES],
        UNARY,
        |e, c| {
            let stages = [start(e, c), count_zeros()].concat();
            run(e, c, stages);
        },
    )
    .result(ResultTy::U32),
    InstrRow::new(
        "bfind",
        "`bfind{.type} d, a`",
        "the place of the leading one; of a negative number, zero",
        &[TYPES],
        UNARY,
        |e, c| {
            let stages = leading_one(e, c);
            run(e, c, stages);
        },
    )
    .result(ResultTy::U32),
    InstrRow::new(
        "bfind",
        "`bfind.shiftamt{.type} d, a`",
        "how far the leading one (of a negative number, zero) is from the highest place",
        &[TYPES],
        UNARY,
        |e, c| {
            let distance: StepFn = |d, ty| {
                let none = Expr::Cmp(
                    CmpOp::Eq,
                    Ty::U32,
                    d.clone().into(),
                    int(0xffff_ffff).into(),
                );
                let far = bin(BinOp::Sub, Ty::U32, int(i64::from(ty.bits) - 1), d.clone());
                Expr::Select(none.into(), d.into(), far.into())
            };
            let stages = [leading_one(e, c), vec![RegisterStep::Of(distance)]].concat();
            run(e, c, stages);
        },
    )
    .keyed(&["shiftamt"])
    .result(ResultTy::U32),
    InstrRow::new(
        "brev",
        "`brev{.type} d, a`",
        "the bits in reverse",
        &[TYPES],
        UNARY,
        |e, c| {
            let stages = [start(e, c), reverse(c.ty)].concat();
            run(e, c, stages);
        },
    ),
    InstrRow::new(
        "bfe",
        "`bfe{.type} d, a, pos, len`",
        "a field of bits, extended by its sign where the type has one",
        &[TYPES],
        FIELD,
        |e, c| {
            let (a, ty, bits) = (c.expr(1), c.ty, i64::from(c.ty.bits));
            let (pos, len) = (byte(c.expr(2)), byte(c.expr(3)));
            let value = if ty.signed {
                let end = bin(BinOp::Add, Ty::S32, pos.clone(), len.clone());
                let whole = bin(BinOp::Shr, ty, a.clone(), pos);
                let up = bin(
                    BinOp::Shl,
                    ty,
                    a,
                    bin(BinOp::Sub, Ty::S32, int(bits), end.clone()),
                );
                let down = bin(
                    BinOp::Shr,
                    ty,
                    up,
                    bin(BinOp::Sub, Ty::S32, int(bits), len.clone()),
                );
                let fits = Expr::Cmp(CmpOp::Lt, Ty::S32, end.into(), int(bits).into());
                let field = Expr::Select(fits.into(), down.into(), whole.into());
                Expr::Select(len.into(), field.into(), int(0).into())
            } else {
                bin(BinOp::And, ty, bin(BinOp::Shr, ty, a, pos), ones(ty, len))
            };
            assign(e, c, value);
        },
    ),
    InstrRow::new(
        "bfi",
        "`bfi{.type} d, a, b, pos, len`",
        "`b` with a field of bits from `a`",
        &[TYPES],
        INSERT,
        |e, c| {
            let ty = unsigned(c.ty);
            // Builds a pointer from its halves if the upper one is 0.
            if (c.expr(3), c.expr(4), ty.bits) == (int(32), int(32), 64) {
                e.ask();
                if c.expr(1) == int(0) && c.expr(2).base().is_some() {
                    return assign(e, c, c.expr(2));
                }
            }
            let (a, b, pos, len) = (c.expr(1), c.expr(2), byte(c.expr(3)), byte(c.expr(4)));
            let mask = bin(BinOp::Shl, ty, ones(ty, len), pos.clone());
            let kept = bin(
                BinOp::And,
                ty,
                b,
                bin(BinOp::Xor, ty, mask.clone(), int(-1)),
            );
            let put = bin(BinOp::And, ty, bin(BinOp::Shl, ty, a, pos), mask);
            assign(e, c, bin(BinOp::Or, ty, kept, put));
        },
    ),
    InstrRow::new(
        "lop3",
        "`lop3{.type} d, a, b, c, lut`",
        "any function of three bits, given by its table",
        &[TYPES],
        LOOKUP,
        |e, c| {
            let Expr::Const(table) = c.expr(4) else {
                return constant(e, c, "the table of `lop3`");
            };
            let operands = [c.expr(1), c.expr(2), c.expr(3)];
            let terms = (0..8).filter(|n| table >> n & 1 == 1).map(|n: i64| {
                let bits = operands
                    .iter()
                    .zip([4, 2, 1])
                    .map(|(x, bit)| match n & bit {
                        0 => bin(BinOp::Xor, c.ty, x.clone(), int(-1)),
                        _ => x.clone(),
                    });
                bits.reduce(|a, b| bin(BinOp::And, c.ty, a, b))
                    .expect("three of them")
            });
            let value = terms
                .reduce(|a, b| bin(BinOp::Or, c.ty, a, b))
                .unwrap_or(int(0));
            assign(e, c, value);
        },
    ),
    InstrRow::new(
        "prmt",
        "`prmt{.type}{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16} d, a, b, selector`",
        "bytes of two words, or what their signs fill; in a mode, those that two bits of the \
         selector choose",
        &[TYPES, PERMUTATIONS],
        SHIFT,
        permute,
    ),
    InstrRow::new(
        "fns",
        "`fns.b32 d, mask, base, offset`",
        "the place of a one: of those from `base` on, upwards or, where `offset` is negative, \
         downwards, the one of that number",
        &[B32],
        LOOKUP_ONE,
        find_one,
    ),
    InstrRow::new(
        "shf",
        "`shf.l{.wrap|.clamp}{.type} d, a, b, n`",
        "the upper word of `b:a`, shifted left",
        &[MODE, TYPES],
        SHIFT,
        |e, c| {
            let n = amount(c);
            let low = bin(
                BinOp::Shr,
                Ty::U32,
                c.expr(1),
                bin(BinOp::Sub, Ty::U32, int(32), n.clone()),
            );
            assign(
                e,
                c,
                bin(
                    BinOp::Or,
                    Ty::U32,
                    bin(BinOp::Shl, Ty::U32, c.expr(2), n),
                    low,
                ),
            );
        },
    )
    .keyed(&["l"]),
    InstrRow::new(
        "shf",
        "`shf.r{.wrap|.clamp}{.type} d, a, b, n`",
        "the lower word of `b:a`, shifted right",
        &[MODE, TYPES],
        SHIFT,
        |e, c| {
            let n = amount(c);
            let high = bin(
                BinOp::Shl,
                Ty::U32,
                c.expr(2),
                bin(BinOp::Sub, Ty::U32, int(32), n.clone()),
            );
            assign(
                e,
                c,
                bin(
                    BinOp::Or,
                    Ty::U32,
                    bin(BinOp::Shr, Ty::U32, c.expr(1), n),
                    high,
                ),
            );
        },
    )
    .keyed(&["r"]),
    InstrRow::new(
        "abs",
        "`abs{.ftz}{.type} d, a`",
        "absolute value",
        &[FLUSH, NUMBERS],
        UNARY,
        |e, c| {
            if !suits(e, c) {
                return;
            }
            match c.quals.format() {
                Some(format) => absolute_value(e, c, format),
                None => assign(e, c, absolute(c.ty, c.expr(1))),
            }
        },
    )
    .needs(&[
        Need::of(&["f16", "f16x2"], (6, 5), 70),
        Need::of(&["bf16", "bf16x2"], (7, 0), 80),
    ]),
    InstrRow::new(
        "sad",
        "`sad{.type} d, a, b, c`",
        "`c` plus the absolute difference",
        &[TYPES],
        TERNARY,
        |e, c| {
            let (a, b) = (c.expr(1), c.expr(2));
            let difference = bin(
                BinOp::Sub,
                c.ty,
                bin(BinOp::Max, c.ty, a.clone(), b.clone()),
                bin(BinOp::Min, c.ty, a, b),
            );
            assign(e, c, bin(BinOp::Add, c.ty, c.expr(3), difference));
        },
    ),
    InstrRow::new(
        "szext",
        "`szext.{clamp|wrap}.type d, a, n`",
        "the lowest `n` bits, extended by their sign where the type has one",
        &[MODE, TYPES],
        FIELD_END,
        |e, c| {
            let Some(n) = width(e, c, 2) else { return };
            let above = bin(BinOp::Sub, Ty::U32, int(32), n);
            let up = bin(BinOp::Shl, c.ty, c.expr(1), above.clone());
            assign(e, c, bin(BinOp::Shr, c.ty, up, above));
        },
    )
    .needs(&[Need::always((7, 6), 70)]),
    InstrRow::new(
        "bmsk",
        "`bmsk.{clamp|wrap}.b32 d, pos, len`",
        "ones in a field of bits",
        &[MODE, B32],
        FIELD_END,
        |e, c| {
            let (Some(pos), Some(len)) = (width(e, c, 1), width(e, c, 2)) else {
                return;
            };
            assign(e, c, bin(BinOp::Shl, Ty::U32, ones(Ty::U32, len), pos));
        },
    )
    .needs(&[Need::always((7, 6), 70)]),
    InstrRow::new(
        "dp4a",
        "`dp4a.type.type d, a, b, c`",
        "`c` plus the products of the bytes of `a` and `b`",
        &[BYTES],
        &[
            OperandRole::Dst,
            OperandRole::Loose,
            OperandRole::Loose,
            OperandRole::Loose,
        ],
        |e, c| products(e, c, &[0, 8, 16, 24].map(|from| [(8, from); 2])),
    ),
    InstrRow::new(
        "dp2a",
        "`dp2a.lo.type.type d, a, b, c`",
        "`c` plus the products of the halves of `a` and the two lower bytes of `b`",
        &[BYTES],
        &[
            OperandRole::Dst,
            OperandRole::Loose,
            OperandRole::Loose,
            OperandRole::Loose,
        ],
        |e, c| products(e, c, &[[(16, 0), (8, 0)], [(16, 16), (8, 8)]]),
    )
    .keyed(&["lo"]),
    InstrRow::new(
        "dp2a",
        "`dp2a.hi.type.type d, a, b, c`",
        "`c` plus the products of the halves of `a` and the two upper bytes of `b`",
        &[BYTES],
        &[
            OperandRole::Dst,
            OperandRole::Loose,
            OperandRole::Loose,
            OperandRole::Loose,
        ],
        |e, c| products(e, c, &[[(16, 0), (8, 16)], [(16, 16), (8, 24)]]),
    )
    .keyed(&["hi"]),
    InstrRow::new(
        "mul24",
        "`mul24.lo.type d, a, b`",
        "product of the lowest 24 bits, lower half",
        &[TYPES],
        &[OperandRole::Dst, OperandRole::Val, OperandRole::Val],
        |e, c| {
            if is_word(e, c) {
                assign(e, c, low_product(c));
            }
        },
    )
    .keyed(&["lo"]),
    InstrRow::new(
        "mad24",
        "`mad24.lo.type d, a, b, c`",
        "product of the lowest 24 bits, lower half, plus `c`",
        &[TYPES],
        TERNARY,
        |e, c| {
            if is_word(e, c) {
                assign(e, c, bin(BinOp::Add, c.ty, low_product(c), c.expr(3)));
            }
        },
    )
    .keyed(&["lo"]),
    InstrRow::new(
        "slct",
        "`slct{.ftz}.type.{s32|f32} d, a, b, c`",
        "`a` if `c` is not negative, else `b`; NaN counts as negative",
        &[
            FLUSH,
            QualGroup {
                kind: QualKind::Types,
                words: DATA.words,
            },
        ],
        &[
            OperandRole::Dst,
            OperandRole::Val,
            OperandRole::Val,
            OperandRole::Loose,
        ],
        |e, c| {
            let holds = match c.quals.conversion() {
                Some((_, "s32")) => Expr::Cmp(CmpOp::Ge, Ty::S32, c.expr(3).into(), int(0).into()),
                Some((_, "f32")) => {
                    let looked_at = flushed(c, Format::SINGLE, c.expr(3));
                    bin(
                        BinOp::Float(FloatOp::LessEqual, Format::SINGLE),
                        Ty::U32,
                        int(0),
                        looked_at,
                    )
                }
                _ => {
                    e.error(
                        "missing-type",
                        c.opcode.clone(),
                        "`slct` names the type of its third operand",
                        |d| d.label("expected `.s32` or `.f32` behind the type of the result"),
                    );
                    return;
                }
            };
            let (a, b) = (e.fit(c.expr(1), c.ty), e.fit(c.expr(2), c.ty));
            assign(e, c, Expr::Select(holds.into(), a.into(), b.into()));
        },
    ),
    InstrRow::new(
        "cnot",
        "`cnot{.type} d, a`",
        "1 if `a` is 0, else 0",
        &[TYPES],
        UNARY,
        |e, c| {
            assign(
                e,
                c,
                Expr::Cmp(CmpOp::Eq, c.ty, c.expr(1).into(), int(0).into()),
            );
        },
    ),
    InstrRow::new(
        "mul",
        "`mul.hi{.type} d, a, b`",
        "product, upper half",
        &[TYPES],
        &[OperandRole::Dst, OperandRole::Val, OperandRole::Val],
        |e, c| {
            let value = upper(e, c);
            assign(e, c, value);
        },
    )
    .keyed(&["hi"]),
    InstrRow::new(
        "mad",
        "`mad.hi{.type} d, a, b, c`",
        "product, upper half, plus `c`",
        &[TYPES],
        TERNARY,
        |e, c| {
            let value = upper(e, c);
            assign(e, c, bin(BinOp::Add, c.ty, value, c.expr(3)));
        },
    )
    .keyed(&["hi"]),
];

/// Selects bytes of two words. Each byte of the result has a selector of four bits: a byte number,
/// and a bit that fills the byte with the selected byte's sign.
fn permute(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    // For each mode, the selectors for its four values, the first one lowest (PTX ISA, prmt).
    let of_mode: Option<u64> = c.quals.get(QualKind::Op).map(|mode| match mode {
        "f4e" => 0x6543_5432_4321_3210,
        "b4e" => 0x0123_7012_6701_5670,
        "rc8" => 0x3333_2222_1111_0000,
        "ecl" => 0x3333_3222_3211_3210,
        "ecr" => 0x3210_2210_1110_0000,
        _ => 0x3232_1010_3232_1010,
    });
    let selector = match of_mode {
        Some(all) => {
            let at = bin(
                BinOp::Mul,
                Ty::U32,
                bin(BinOp::And, Ty::U32, c.expr(3), int(3)),
                int(16),
            );
            bin(
                BinOp::And,
                Ty::U64,
                bin(BinOp::Shr, Ty::U64, int(all as i64), at),
                int(0xffff),
            )
        }
        None => c.expr(3),
    };
    let [low, high] = [1, 2].map(|i| bin64(BinOp::And, c.expr(i), int(0xffff_ffff)));
    let words = bin64(BinOp::Or, bin64(BinOp::Shl, high, int(32)), low);
    let value = (0..4)
        .map(|n: i64| {
            let from = bin(BinOp::Shr, Ty::U32, selector.clone(), int(4 * n));
            let at = bin(
                BinOp::Mul,
                Ty::U32,
                bin(BinOp::And, Ty::U32, from.clone(), int(7)),
                int(8),
            );
            let byte = bin64(BinOp::And, bin64(BinOp::Shr, words.clone(), at), int(0xff));
            let signs = bin64(
                BinOp::Mul,
                bin64(BinOp::Shr, byte.clone(), int(7)),
                int(0xff),
            );
            let filled = bin(BinOp::And, Ty::U32, from, int(8));
            bin(
                BinOp::Shl,
                Ty::U32,
                Expr::Select(filled.into(), signs.into(), byte.into()),
                int(8 * n),
            )
        })
        .reduce(|a, b| bin(BinOp::Or, Ty::U32, a, b))
        .expect("four bytes");
    assign(e, c, value);
}

fn bin64(op: BinOp, a: Expr, b: Expr) -> Expr {
    bin(op, Ty::U64, a, b)
}

/// Finds the position of the leading one; for a negative number, of the leading zero.
fn leading_one(e: &Emit<'_, '_>, c: &PtxInstr) -> Vec<RegisterStep> {
    let flip: StepFn = |d, ty| {
        let negative = Expr::Cmp(CmpOp::Lt, ty, d.clone().into(), int(0).into());
        Expr::Select(
            negative.into(),
            bin(BinOp::Xor, ty, d.clone(), int(-1)).into(),
            d.into(),
        )
    };
    let flipped = if c.ty.signed {
        vec![RegisterStep::Of(flip)]
    } else {
        Vec::new()
    };
    let place: StepFn = |d, _| bin(BinOp::Sub, Ty::U32, d, int(1));
    [
        start(e, c),
        flipped,
        smear(),
        count_ones(),
        vec![RegisterStep::Of(place)],
    ]
    .concat()
}

/// The lower half of the product of the lowest 24 bits.
fn low_product(c: &PtxInstr) -> Expr {
    let [a, b] = [c.expr(1), c.expr(2)]
        .map(|a| bin(BinOp::Shr, c.ty, bin(BinOp::Shl, c.ty, a, int(8)), int(8)));
    bin(BinOp::Mul, c.ty, a, b)
}

/// The third operand plus products of parts of the first two. Each part is given by its number of
/// bits and its lowest bit.
fn products(e: &mut Emit<'_, '_>, c: &PtxInstr, parts: &[[(u8, i64); 2]]) {
    let Some((of_a, of_b)) = c.quals.conversion() else {
        e.error(
            "missing-type",
            c.opcode.clone(),
            format!("`{}` names two types", c.row.opcode),
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    };
    fn part(value: Expr, ty: &str, bits: u8, from: i64) -> Expr {
        let of = Ty {
            bits,
            signed: ty == "s32",
        };
        Expr::Cast(of, bin(BinOp::Shr, Ty::U32, value, int(from)).into())
    }
    let product = |[a, b]: [(u8, i64); 2]| {
        bin(
            BinOp::Mul,
            Ty::S32,
            part(c.expr(1), of_a, a.0, a.1),
            part(c.expr(2), of_b, b.0, b.1),
        )
    };
    let sum = parts.iter().fold(c.expr(3), |sum, p| {
        bin(BinOp::Add, Ty::S32, sum, product(*p))
    });
    assign(
        e,
        c,
        Expr::Cast(
            Ty {
                signed: [of_a, of_b].contains(&"s32"),
                ..Ty::U32
            },
            sum.into(),
        ),
    );
}

fn start(e: &Emit<'_, '_>, c: &PtxInstr) -> Vec<RegisterStep> {
    vec![RegisterStep::First(e.fit(c.expr(1), c.ty))]
}

/// Computes the steps in the destination register.
fn run(e: &mut Emit<'_, '_>, c: &PtxInstr, stages: Vec<RegisterStep>) {
    let Some(dst) = c.dst(0) else {
        return assign(e, c, int(0));
    };
    for stage in stages {
        let value = stage.next(Expr::Reg(dst), c.ty);
        e.push(Op::Assign { dst, value });
    }
}

fn constant(e: &mut Emit<'_, '_>, c: &PtxInstr, what: &str) {
    e.error(
        "wrong-operand",
        c.opcode.clone(),
        format!("{what} is not a constant"),
        |d| d.label("expected a constant: one from a register is not supported"),
    );
}

pub(super) fn upper(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Expr {
    if c.ty.bits == 64 {
        return upper_half(c);
    }
    let product = wide_product(e, c);
    Expr::Cast(
        c.ty,
        bin(BinOp::Shr, double(c.ty), product, int(i64::from(c.ty.bits))).into(),
    )
}

/// The upper 64 bits of a product of 128 bits, from products of halves that fit 64 bits.
fn upper_half(c: &PtxInstr) -> Expr {
    let (a, b) = (c.expr(1), c.expr(2));
    let ([a_low, b_low], [a_high, b_high]) = ([&a, &b].map(low_half), [&a, &b].map(high_half));
    let middle = both64(
        BinOp::Add,
        &both64(BinOp::Mul, &a_high, &b_low),
        &high_half(&both64(BinOp::Mul, &a_low, &b_low)),
    );
    let other = both64(
        BinOp::Add,
        &both64(BinOp::Mul, &a_low, &b_high),
        &low_half(&middle),
    );
    let carried = both64(BinOp::Add, &high_half(&middle), &high_half(&other));
    let product = both64(BinOp::Add, &both64(BinOp::Mul, &a_high, &b_high), &carried);
    if !c.ty.signed {
        return product;
    }
    // For a negative factor, the unsigned product is too large by 2^64 times the other factor.
    Expr::Cast(
        c.ty,
        [(&a, &b), (&b, &a)]
            .into_iter()
            .fold(product, |product, (factor, other)| {
                let negative = Expr::Cmp(CmpOp::Lt, c.ty, factor.clone().into(), int(0).into());
                both64(
                    BinOp::Sub,
                    &product,
                    &Expr::Select(negative.into(), other.clone().into(), int(0).into()),
                )
            })
            .into(),
    )
}

fn both64(op: BinOp, a: &Expr, b: &Expr) -> Expr {
    bin(op, Ty::U64, a.clone(), b.clone())
}

fn high_half(a: &Expr) -> Expr {
    both64(BinOp::Shr, a, &int(32))
}

fn low_half(a: &Expr) -> Expr {
    both64(BinOp::And, a, &int(0xffff_ffff))
}

/// Lowers `fns`: looks for a one bit from a position on, bit by bit.
fn find_one(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (Expr::Const(base), Expr::Const(offset)) = (c.expr(2), c.expr(3)) else {
        return constant(e, c, "where `fns` looks");
    };
    let offset = Ty::S32.wrap(offset);
    if !(0..32).contains(&base) {
        return e.error(
            "out-of-range",
            c.opcode.clone(),
            "`fns` looks from a place that a word does not have",
            |d| d.label("expected a `base` from 0 to 31"),
        );
    }
    let [Some(found), Some(count)] = ["found", "ones"].map(|name| e.temporary(c, name, Ty::U32))
    else {
        return;
    };
    let none = int(0xffff_ffff);
    e.push(Op::Assign {
        dst: found,
        value: none.clone(),
    });
    e.push(Op::Assign {
        dst: count,
        value: int(0),
    });
    let places: Vec<i64> = match offset {
        0 => vec![base],
        1.. => (base..32).collect(),
        _ => (0..=base).rev().collect(),
    };
    let wanted = int(offset.abs().max(1));
    for place in places {
        let one = bin(
            BinOp::And,
            Ty::U32,
            bin(BinOp::Shr, Ty::U32, c.expr(1), int(place)),
            int(1),
        );
        e.push(Op::Assign {
            dst: count,
            value: bin(BinOp::Add, Ty::U32, Expr::Reg(count), one),
        });
        let reached = Expr::Cmp(
            CmpOp::Eq,
            Ty::U32,
            Expr::Reg(count).into(),
            wanted.clone().into(),
        );
        let open = Expr::Cmp(
            CmpOp::Eq,
            Ty::U32,
            Expr::Reg(found).into(),
            none.clone().into(),
        );
        let here = bin(BinOp::And, Ty::U32, reached, open);
        let value = Expr::Select(here.into(), int(place).into(), Expr::Reg(found).into());
        e.push(Op::Assign { dst: found, value });
    }
    assign(e, c, Expr::Reg(found));
}

/// The distance of `shf`: modulo 32, or limited to 32.
fn amount(c: &PtxInstr) -> Expr {
    match c.quals.get(QualKind::Op) {
        Some("clamp") => bin(BinOp::Min, Ty::U32, c.expr(3), int(32)),
        _ => bin(BinOp::And, Ty::U32, c.expr(3), int(31)),
    }
}

/// A number of bits, limited to 32 or taken modulo 32; the instruction must say which.
fn width(e: &mut Emit<'_, '_>, c: &PtxInstr, operand: usize) -> Option<Expr> {
    let is_word = is_word(e, c);
    match c.quals.get(QualKind::Op) {
        Some("clamp") => is_word.then(|| bin(BinOp::Min, Ty::U32, c.expr(operand), int(32))),
        Some(_) => is_word.then(|| bin(BinOp::And, Ty::U32, c.expr(operand), int(31))),
        None => {
            e.error(
                "missing-operation",
                c.opcode.clone(),
                "PTX clamps or wraps a position out of range",
                |d| d.label(format!("expected the form {}", c.row.syntax)),
            );
            None
        }
    }
}

/// Whether the type has 32 bits; if not, reports an error.
fn is_word(e: &mut Emit<'_, '_>, c: &PtxInstr) -> bool {
    if c.ty.bits != 32 {
        let message = format!("`{}` has 32 bits", c.row.opcode);
        e.error("unsupported-type", c.opcode.clone(), message, |d| {
            d.label("expected a type of 32 bits")
        });
    }
    c.ty.bits == 32
}

fn ones(ty: Ty, len: Expr) -> Expr {
    let ty = unsigned(ty);
    bin(BinOp::Sub, ty, bin(BinOp::Shl, ty, int(1), len), int(1))
}

fn byte(e: Expr) -> Expr {
    bin(BinOp::And, Ty::U32, e, int(0xff))
}

fn int(n: i64) -> Expr {
    Expr::Const(n)
}
