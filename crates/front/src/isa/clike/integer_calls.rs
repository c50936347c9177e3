//! Lowers calls of integer functions, and conversions by name.
//!
//! # Sources
//! - OpenCL C, *Integer Functions*, *Explicit Conversions*, *Reinterpreting Data As Another Type*;
//!   CUDA Math API, *Integer Intrinsics*.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::floats;
use super::integer::{Computed, cmp, limits, select};
use super::lower::Lowering;
use super::types::{Type, Value, folded};
use super::words::{column, has_type, type_named};
use program::{CmpOp, Expr, Ty};

impl Lowering<'_, '_> {
    /// Computes with operands, converted to a type or in the type that all of them have.
    pub(super) fn computes(
        &mut self,
        tree: &Tree,
        does: Computed,
        of: Option<Ty>,
        all: Vec<Value>,
    ) -> Option<Value> {
        fn word(value: &Value) -> Option<Ty> {
            match value.ty {
                Type::Int(ty) => Some(ty),
                _ => None,
            }
        }
        // Constants take the type of the other operands if it holds them.
        let own = all
            .iter()
            .find(|value| !value.fixed)
            .or(all.first())
            .and_then(word);
        let ty = match (of, own) {
            (Some(ty), _) if all.iter().all(|value| value.ty.promoted().is_some()) => ty,
            (None, Some(ty))
                if all.iter().all(|value| {
                    word(value) == Some(ty)
                        || (value.fixed && value.constant().is_some_and(|n| ty.wrap(n) == n))
                }) =>
            {
                ty
            }
            _ => {
                if !all.iter().any(|value| self.is_nothing(value)) {
                    self.error(
                        "wrong-operand",
                        &tree.range,
                        "operands of different types",
                        |d| d.label("expected integers of one type").help("write casts"),
                    );
                }
                return None;
            }
        };
        let low = matches!(does, Computed::Low | Computed::LowAnd);
        if low && ty.bits != 32 {
            let name = Type::Int(ty).name();
            self.error(
                "unsupported",
                &tree.range,
                format!("this function of a `{name}` is not supported"),
                |d| d.label("expected operands of 32 bits"),
            );
            return None;
        }
        let operands: Vec<Expr> = all
            .into_iter()
            .map(|value| match folded(value.fit(ty)) {
                known @ (Expr::Const(_) | Expr::Reg(_)) => known,
                expr => self.kept(Value::of(expr, ty)).expr,
            })
            .collect();
        if let (Computed::Bit, [_, index, size]) = (does, operands.as_slice()) {
            let (index, size) = (index.clone().into(), size.clone().into());
            self.misused_unless(Expr::Cmp(CmpOp::Lt, ty, index, size));
        }
        let (value, ty) = does.of(ty, &operands);
        Some(Value::of(Value::of(value, ty).expr, ty))
    }

    /// `convert_uchar_sat(v)`, `as_uint(v)`, of one integer; `None`: no such function.
    pub(super) fn conversion(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let word = self.str(name);
        let (to, same_bits) = match (word.strip_prefix("convert_"), word.strip_prefix("as_")) {
            (Some(to), _) => (to, false),
            (_, to) => (to?, true),
        };
        // The rounding mode makes no difference for integers.
        let rounding = ["_rte", "_rtz", "_rtp", "_rtn"]
            .iter()
            .find_map(|mode| to.strip_suffix(mode));
        let to = rounding.filter(|_| !same_bits).unwrap_or(to);
        let saturated = to.strip_suffix("_sat").filter(|_| !same_bits);
        let named = saturated.unwrap_or(to);
        let dialect = self.env.language.dialect;
        let known =
            dialect.row().regions && has_type(named, dialect) && !matches!(named, "bool" | "_Bool");
        let float = floats::named(named, column(dialect)).filter(|_| dialect.row().regions);
        if let Some(format) = float {
            return Some(self.as_float(tree, format, same_bits, args));
        }
        let (ty, _) = type_named(named).filter(|(_, atomic)| known && !atomic)?;
        let [arg] = args else {
            self.error(
                "wrong-operands",
                &tree.range,
                format!("`{word}` takes 1 argument"),
                |d| d.label(format!("{} given", args.len())),
            );
            return Some(self.nothing());
        };
        let value = self.scalar(arg);
        let from = value.word();
        if let (Type::Float(format), true) = (&value.ty, !same_bits || from.bits == ty.bits) {
            let expr = match same_bits {
                true => Value::of(value.expr, from).fit(ty),
                // Without a mode, a conversion to an integer rounds towards zero.
                false if rounding.is_none() || word.ends_with("_rtz") => {
                    floats::to_integer(*format, ty, &value.expr)
                }
                false => return None,
            };
            return Some(Value::of(expr, ty));
        }
        if value.ty.promoted().is_none()
            || (same_bits && (from.bits != ty.bits || value.ty == Type::Bool))
        {
            let of = value.ty.name();
            self.error(
                "wrong-operand",
                &arg.range,
                format!("`{word}` of a `{of}`"),
                |d| {
                    d.label(if same_bits {
                        "expected an integer of the same size"
                    } else {
                        "expected an integer"
                    })
                },
            );
            return Some(self.nothing());
        }
        if saturated.is_none() {
            return Some(Value {
                fixed: false,
                ..value.converted(&Type::Int(ty))
            });
        }
        let value = match value.expr {
            Expr::Const(_) | Expr::Reg(_) => value,
            _ => self.kept(value),
        };
        let (least, most) = limits(ty);
        let (v, wide) = (value.expr, Ty { bits: 64, ..from });
        let mut result = v.clone();
        if ty.bits < 64 || (ty.signed && !from.signed) {
            result = select(
                cmp(CmpOp::Gt, wide, &v, &Expr::Const(most)),
                Expr::Const(most),
                result,
            );
        }
        if from.signed {
            result = select(
                cmp(CmpOp::Lt, wide, &v, &Expr::Const(least)),
                Expr::Const(least),
                result,
            );
        }
        Some(Value::of(Value::of(result, wide).fit(ty), ty))
    }
}
