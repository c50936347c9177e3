//! Computes with pairs of small numbers of floating point: `__half2` and `__nv_bfloat162`.
//!
//! # Invariants
//! - A function of pairs computes with the first numbers and with the second numbers. Each result
//!   is rounded on its own.
//! - A pair in memory is two places, `x` and `y`. A compiler accesses both at once; no race and no
//!   order depends on that.
//!
//! # Sources
//! - CUDA Math API, *Half2 Arithmetic Functions*, *Half Precision Conversion and Data Movement*,
//!   and the same of bfloat16.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::floats::{converted, float};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::types::{Qualified, Type, Value};
use program::{Expr, FloatOp, Format, Fused, Rounding};

const NEAREST: Rounding = Rounding::Nearest;

/// Functions of two pairs.
const ARITHMETIC: &[(&str, FloatOp)] = &[
    ("__hadd2", FloatOp::Add(NEAREST)),
    ("__hsub2", FloatOp::Sub(NEAREST)),
    ("__hmul2", FloatOp::Mul(NEAREST)),
    ("__h2div", FloatOp::Div(NEAREST)),
    ("__hmax2", FloatOp::Max),
    ("__hmin2", FloatOp::Min),
];

/// Functions that make a pair of one number (true) or of two numbers (false).
const MADE: &[(&str, Format, bool)] = &[
    ("__float2half2_rn", Format::HALF, true),
    ("__half2half2", Format::HALF, true),
    ("__floats2half2_rn", Format::HALF, false),
    ("__halves2half2", Format::HALF, false),
    ("make_half2", Format::HALF, false),
    ("__float2bfloat162_rn", Format::BRAIN, true),
    ("__bfloat162bfloat162", Format::BRAIN, true),
    ("__floats2bfloat162_rn", Format::BRAIN, false),
    ("__halves2bfloat162", Format::BRAIN, false),
];

/// Functions that take a number from a pair: its position, and the format of the result.
const TAKEN: &[(&str, usize, Option<Format>)] = &[
    ("__low2half", 0, None),
    ("__high2half", 1, None),
    ("__low2bfloat16", 0, None),
    ("__high2bfloat16", 1, None),
    ("__low2float", 0, Some(Format::SINGLE)),
    ("__high2float", 1, Some(Format::SINGLE)),
];

/// Whether a function of that name computes with pairs.
pub(super) fn is_function(name: &str) -> bool {
    name == "__hfma2"
        || ARITHMETIC.iter().any(|row| row.0 == name)
        || MADE.iter().any(|row| row.0 == name)
        || TAKEN.iter().any(|row| row.0 == name)
}

impl Lowering<'_, '_> {
    /// The type of the pair that a function returns; `None`: it returns none.
    pub(super) fn pair_returned(&self, name: &str, args: &[Tree]) -> Option<Type> {
        if let Some((_, format, _)) = MADE.iter().find(|row| row.0 == name) {
            return self.vector_named(&Type::Float(*format), 2);
        }
        let computes = name == "__hfma2" || ARITHMETIC.iter().any(|row| row.0 == name);
        let of = self.type_of_place(args.first().filter(|_| computes)?)?;
        Some(of.ty)
    }

    /// Calls a function of pairs; `None`: the call is another one.
    pub(super) fn pair_call(&mut self, tree: &Tree, name: &str, args: &[Tree]) -> Option<Value> {
        if !self.env.language.cpp {
            return None;
        }
        let arithmetic = ARITHMETIC.iter().find(|row| row.0 == name);
        if let (Some((_, op)), [a, b]) = (arithmetic, args) {
            let (format, a) = self.pair(a)?;
            let (_, b) = self.pair(b)?;
            let [first, second] = [0, 1].map(|n| float(*op, format, a[n].clone(), b[n].clone()));
            return self.new_pair(format, [first, second], &tree.range);
        }
        if let ("__hfma2", [a, b, c]) = (name, args) {
            let (format, a) = self.pair(a)?;
            let (b, c) = (self.pair(b)?.1, self.pair(c)?.1);
            let both = [0, 1].map(|n| {
                let three = [&a[n], &b[n], &c[n]].map(|expr| Box::new(expr.clone()));
                let rounding = NEAREST;
                Expr::Fused(Fused { format, rounding }, three)
            });
            return self.new_pair(format, both, &tree.range);
        }
        if let Some((_, format, twice)) = MADE.iter().find(|row| row.0 == name) {
            let both = match (args, twice) {
                ([one], true) => [one, one],
                ([first, second], false) => [first, second],
                _ => return None,
            };
            let numbers = both.map(|arg| self.scalar(arg));
            let numbers = numbers.map(|value| converted(&value, *format));
            return self.new_pair(*format, numbers, &tree.range);
        }
        let (_, position, to) = TAKEN.iter().find(|row| row.0 == name)?;
        let [arg] = args else { return None };
        let (format, both) = self.pair(arg)?;
        let value = Value::new(both[*position].clone(), Type::Float(format));
        Some(match to {
            Some(to) => Value::new(converted(&value, *to), Type::Float(*to)),
            None => value,
        })
    }

    /// The numbers of a pair, and their format; reports any other value.
    fn pair(&mut self, tree: &Tree) -> Option<(Format, [Expr; 2])> {
        let (at, of) = self.structure_at(tree)?;
        let at = self.stable(at);
        let mut parts: Vec<(u64, Qualified)> = Vec::new();
        of.ty
            .each_cell(&mut |_, offset, of| parts.push((offset, of.clone())));
        let ([(first, of_first), (second, of_second)], Type::Struct(_)) = (&parts[..], &of.ty)
        else {
            return self.no_pair(tree);
        };
        let (Type::Float(format), true) = (&of_first.ty, of_first.ty == of_second.ty) else {
            return self.no_pair(tree);
        };
        let both = [(first, of_first), (second, of_second)].map(|(offset, of)| {
            let value = self.read(Place::Memory(shifted(&at, *offset), of.clone()));
            self.kept(value).expr
        });
        Some((*format, both))
    }

    fn no_pair<T>(&mut self, tree: &Tree) -> Option<T> {
        let message = "this is no pair of numbers";
        self.error("wrong-operand", &tree.range, message, |d| {
            d.label("expected a `__half2` or a `__nv_bfloat162`")
        });
        None
    }

    /// A pair in memory of the thread.
    fn new_pair(&mut self, format: Format, both: [Expr; 2], range: &Range<usize>) -> Option<Value> {
        let name = match format {
            Format::BRAIN => "nv_bfloat162",
            _ => "half2",
        };
        let ty = self.vector(name)?;
        let at = self.unnamed(&format!("{name}()"), &ty.clone().into(), range)?;
        for (offset, expr) in [0, 2].into_iter().zip(both) {
            let of = Qualified::from(Type::Float(format));
            self.write(&Place::Memory(shifted(&at, offset), of), expr);
        }
        Some(Value::new(at, ty))
    }
}
