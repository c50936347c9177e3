//! Computes with numbers of floating point: arithmetic, comparisons, conversions. Their values are
//! bits. The functions of the mathematical library are in `math.rs`.
//!
//! # Sources
//! - C11, 6.3.1 and 7.12; ISO C++, conv.double, conv.fpint, expr.arith.conv.
//! - CUDA C++ Programming Guide, *Floating-Point Standard*; CUDA Math API.
//! - OpenCL C, *Math Functions*, *Relational Functions*.
//!
//! # Where we differ
//! - Each operation is rounded on its own, to the nearest: no product and sum are fused. Compilers
//!   do so under `nvcc -fmad=false` and under `#pragma OPENCL FP_CONTRACT OFF`.
//! - Quotients and square roots are rounded correctly, and small numbers are not flushed to zero,
//!   also not by `atomicAdd` in global memory.
//! - A number that no integer type holds becomes the nearest one that it does, as in PTX. The
//!   languages leave it undefined.
//! - Functions without an exact result, such as `expf`, have values that are not worked out.

use super::types::{Type, Value, folded};
use program::{BinOp, CmpOp, Expr, FloatOp, Format, NumberType, Rounding, Ty};

/// The types by name, and whether C, OpenCL C and CUDA C++ have them.
const TYPES: &[(&str, Format, [bool; 3])] = &[
    ("float", Format::SINGLE, [true; 3]),
    ("double", Format::DOUBLE, [true; 3]),
    ("half", Format::HALF, [false, true, true]),
    ("__half", Format::HALF, [false, false, true]),
    ("__nv_bfloat16", Format::BRAIN, [false, false, true]),
    ("nv_bfloat16", Format::BRAIN, [false, false, true]),
];

/// The type of that name in a language with that column of tables.
pub(super) fn named(name: &str, column: usize) -> Option<Format> {
    TYPES
        .iter()
        .find(|row| row.0 == name && row.2[column])
        .map(|row| row.1)
}

/// The type of that name in any of the languages.
pub(super) fn named_anywhere(name: &str) -> Option<Format> {
    TYPES.iter().find(|row| row.0 == name).map(|row| row.1)
}

pub(super) fn name(format: Format) -> &'static str {
    TYPES
        .iter()
        .find(|row| row.1 == format)
        .map_or("half", |row| row.0)
}

/// The integer type that holds the bits.
pub(super) fn word(format: Format) -> Ty {
    Ty {
        bits: format.bits,
        signed: false,
    }
}

/// One of the operations on the bits.
pub(super) fn float(op: FloatOp, format: Format, a: Expr, b: Expr) -> Expr {
    let ty = match op {
        FloatOp::To(..) | FloatOp::From(..) => Ty::U64,
        _ => word(format),
    };
    folded(Expr::Bin(BinOp::Float(op, format), ty, a.into(), b.into()))
}

pub(super) fn unary(op: FloatOp, format: Format, a: Expr) -> Expr {
    float(op, format, a, Expr::Const(0))
}

/// A number as an integer, towards zero.
pub(super) fn to_integer(format: Format, ty: Ty, expr: &Expr) -> Expr {
    let op = FloatOp::To(NumberType::Int(ty), Rounding::Zero);
    folded(Expr::Cast(ty, unary(op, format, expr.clone()).into()))
}

/// A value of any arithmetic type as a number of a format.
pub(super) fn converted(value: &Value, to: Format) -> Expr {
    match &value.ty {
        Type::Float(from) if *from == to => value.expr.clone(),
        Type::Float(from) => {
            let op = FloatOp::To(NumberType::Float(to), Rounding::Nearest);
            unary(op, *from, value.expr.clone())
        }
        _ => {
            let op = FloatOp::From(value.word(), Rounding::Nearest);
            unary(op, to, value.expr.clone())
        }
    }
}

/// An expression: 1 if the number is zero, or if it is not, else 0.
pub(super) fn is_zero(format: Format, expr: &Expr, zero: bool) -> Expr {
    let equal = unary(FloatOp::Equal, format, expr.clone());
    if zero { equal } else { not(equal) }
}

pub(super) fn not(truth: Expr) -> Expr {
    folded(Expr::Cmp(
        CmpOp::Eq,
        Ty::S32,
        truth.into(),
        Expr::Const(0).into(),
    ))
}

/// The common format of two operands, if one is of floating point and both are arithmetic.
pub(super) fn common(a: &Type, b: &Type) -> Option<Format> {
    fn format(ty: &Type) -> Option<Format> {
        match ty {
            Type::Float(format) => Some(*format),
            _ => None,
        }
    }
    match (format(a), format(b)) {
        (Some(x), Some(y)) => Some(if x.bits >= y.bits { x } else { y }),
        (Some(x), None) => b.promoted().map(|_| x),
        (None, Some(y)) => a.promoted().map(|_| y),
        (None, None) => None,
    }
}

/// `a op b` in a format; `None`: only integers have the operation.
pub(super) fn arithmetic(op: BinOp, format: Format, a: &Value, b: &Value) -> Option<Value> {
    let by = Rounding::Nearest;
    let op = match op {
        BinOp::Add => FloatOp::Add(by),
        BinOp::Sub => FloatOp::Sub(by),
        BinOp::Mul => FloatOp::Mul(by),
        BinOp::Div => FloatOp::Div(by),
        BinOp::Min => FloatOp::Min,
        BinOp::Max => FloatOp::Max,
        _ => return None,
    };
    let expr = float(op, format, converted(a, format), converted(b, format));
    Some(Value {
        expr,
        ty: Type::Float(format),
        fixed: a.fixed && b.fixed,
    })
}

/// `-a`: changes the sign, also that of a zero.
pub(super) fn negated(format: Format, a: &Expr) -> Expr {
    let sign = Expr::Const(format.sign());
    folded(Expr::Bin(
        BinOp::Xor,
        word(format),
        a.clone().into(),
        sign.into(),
    ))
}

pub(super) fn magnitude(format: Format, a: &Expr) -> Expr {
    let all = Expr::Const(!format.sign());
    folded(Expr::Bin(
        BinOp::And,
        word(format),
        a.clone().into(),
        all.into(),
    ))
}

/// Whether `a op b` holds. With a NaN, only `!=` holds.
pub(super) fn compared(op: CmpOp, format: Format, a: &Value, b: &Value) -> Expr {
    let (a, b) = (converted(a, format), converted(b, format));
    match op {
        CmpOp::Lt => float(FloatOp::Less, format, a, b),
        CmpOp::Le => float(FloatOp::LessEqual, format, a, b),
        CmpOp::Gt => float(FloatOp::Less, format, b, a),
        CmpOp::Ge => float(FloatOp::LessEqual, format, b, a),
        CmpOp::Eq => float(FloatOp::Equal, format, a, b),
        CmpOp::Ne => not(float(FloatOp::Equal, format, a, b)),
    }
}
