//! Computes operators of host code with known values, and leaves those with registers in the
//! program that remains.

use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::tree::HostExpr;
use super::values::{ElementType, HostValue, Pointer};
use program::Ty;

const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

impl Machine<'_> {
    /// `a op b`
    pub(super) fn binary(
        &mut self,
        op: &'static str,
        a: HostValue,
        b: HostValue,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let (a, b) = (self.decayed(a), self.decayed(b));
        Ok(match (&a, &b) {
            (HostValue::Int(x, s), HostValue::Int(y, t)) => {
                self.integers(op, [*x, *y], common(*s, *t), range)?
            }
            (HostValue::Float(..), HostValue::Int(..) | HostValue::Float(..))
            | (HostValue::Int(..), HostValue::Float(..)) => floats(op, &a, &b),
            // `std::cout << x`
            (HostValue::Text(_), _) if op == "<<" => a,
            (HostValue::Pointer(p), HostValue::Int(n, _)) if op == "+" || op == "-" => {
                let n = if op == "-" { -n } else { *n };
                HostValue::Pointer(Pointer {
                    offset: p.offset + n * p.element.bytes(),
                    ..p.clone()
                })
            }
            (HostValue::Int(n, _), HostValue::Pointer(p)) if op == "+" => {
                HostValue::Pointer(Pointer {
                    offset: p.offset + n * p.element.bytes(),
                    ..p.clone()
                })
            }
            (HostValue::Cell(at), HostValue::Int(n, _)) if op == "+" => {
                HostValue::Cell((*at as i64 + n).max(0) as usize)
            }
            (HostValue::Pointer(p), HostValue::Pointer(q)) if p.memory == q.memory && op == "-" => {
                HostValue::Int((p.offset - q.offset) / p.element.bytes(), Ty::WORD)
            }
            _ if op == "==" || op == "!=" => self.same(op, &a, &b, range),
            (HostValue::Register(..), HostValue::Int(..) | HostValue::Register(..))
            | (HostValue::Int(..), HostValue::Register(..)) => self.remaining(op, &a, &b, range),
            _ => HostValue::Unknown,
        })
    }

    /// Arrays as the addresses that they become.
    pub(super) fn decayed(&self, value: HostValue) -> HostValue {
        match value {
            HostValue::Buffer(memory) => HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset: 0,
                element: self.state.memory[memory].element,
            }),
            HostValue::Cells(first, _) => HostValue::Cell(first),
            other => other,
        }
    }

    fn same(
        &mut self,
        op: &'static str,
        a: &HostValue,
        b: &HostValue,
        range: &Range<usize>,
    ) -> HostValue {
        let equal = match (a, b) {
            (HostValue::Register(..), HostValue::Int(..) | HostValue::Register(..))
            | (HostValue::Int(..), HostValue::Register(..)) => {
                return self.remaining(op, a, b, range);
            }
            (HostValue::Unknown | HostValue::Unset | HostValue::Register(..), _)
            | (_, HostValue::Unknown | HostValue::Unset | HostValue::Register(..)) => {
                return HostValue::Unknown;
            }
            (HostValue::Pointer(p), HostValue::Int(0, _))
            | (HostValue::Int(0, _), HostValue::Pointer(p)) => p.memory.is_none(),
            (HostValue::Pointer(p), HostValue::Pointer(q)) => {
                p.memory == q.memory && p.offset == q.offset
            }
            (a, b) => a == b,
        };
        HostValue::Int(i64::from(equal == (op == "==")), Ty::S32)
    }

    /// Leaves an operator in the program that remains.
    fn remaining(
        &mut self,
        op: &'static str,
        a: &HostValue,
        b: &HostValue,
        range: &Range<usize>,
    ) -> HostValue {
        let ty = match COMPARISONS.contains(&op) {
            true => Ty::S32,
            false => common(type_of(a), type_of(b)),
        };
        let (Some(left), Some(right)) = (text_of(a), text_of(b)) else {
            return HostValue::Unknown;
        };
        let register = self.register();
        let of = self.type_text(ElementType::number(ty, false));
        self.emit(format!("{of} {register} = {left} {op} {right};"), range);
        HostValue::Register(register, ty)
    }

    fn integers(
        &mut self,
        op: &'static str,
        operands: [i64; 2],
        ty: Ty,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let [a, b] = operands.map(|operand| ty.wrap(operand));
        let (x, y) = match ty.signed {
            true => (i128::from(a), i128::from(b)),
            false => {
                let mask = if ty.bits == 64 {
                    u64::MAX
                } else {
                    (1u64 << ty.bits) - 1
                };
                (i128::from(a as u64 & mask), i128::from(b as u64 & mask))
            }
        };
        if matches!(op, "/" | "%") && y == 0 {
            let d = self
                .code
                .error("division", range, "the host divides by zero");
            return Err(Box::new(d.label("the divisor is 0 here")));
        }
        if COMPARISONS.contains(&op) {
            let holds = match op {
                "==" => x == y,
                "!=" => x != y,
                "<" => x < y,
                "<=" => x <= y,
                ">" => x > y,
                _ => x >= y,
            };
            return Ok(HostValue::Int(i64::from(holds), Ty::S32));
        }
        let value = match op {
            "+" => x + y,
            "-" => x - y,
            "*" => x * y,
            "/" => x / y,
            "%" => x % y,
            "&" => x & y,
            "|" => x | y,
            "^" => x ^ y,
            "<<" => x << (y & 63),
            _ => x >> (y & 63),
        };
        Ok(HostValue::Int(ty.wrap(value as i64), ty))
    }

    /// `a && b` or `a || b`
    pub(super) fn logic(
        &mut self,
        op: &'static str,
        a: &HostExpr,
        b: &HostExpr,
    ) -> Read<HostValue> {
        let is_and = op == "&&";
        let left = self.value(a)?;
        if let Some(left) = self.truth(&left) {
            if left != is_and {
                return Ok(HostValue::Int(i64::from(left), Ty::S32));
            }
            let right = self.value(b)?;
            return Ok(match self.truth(&right) {
                Some(right) => HostValue::Int(i64::from(right), Ty::S32),
                None => right,
            });
        }
        let from = self.state.lines.len();
        let right = self.value(b)?;
        let lines = self.state.lines.split_off(from);
        if let Some(call) = lines.iter().find(|line| line.calls()) {
            let range = call.range.clone();
            return self.wrong(
                &range,
                "a call of the runtime depends on the device here",
                "expected it in a statement of its own",
                "write an `if` around a statement",
            );
        }
        let (condition, outcome) = (self.condition(&left, &a.range), self.truth(&right));
        if lines.is_empty() && outcome == Some(is_and) {
            return Ok(left);
        }
        let register = self.register();
        self.emit(
            format!("int {register} = {};", i64::from(!is_and)),
            &a.range,
        );
        let not = if is_and { "" } else { "!" };
        self.emit(format!("if ({not}({condition} != 0)) {{"), &a.range);
        self.state.lines.extend(lines);
        let right = self.condition(&right, &b.range);
        self.emit(format!("{register} = {right} != 0; }}"), &b.range);
        Ok(HostValue::Register(register, Ty::S32))
    }

    /// A condition as text: a register, a number, or a register of any value.
    pub(super) fn condition(&mut self, value: &HostValue, range: &Range<usize>) -> String {
        match self.truth(value) {
            Some(holds) => i64::from(holds).to_string(),
            None => text_of(value).unwrap_or_else(|| self.anything(range)),
        }
    }

    /// Whether a condition holds; `None`: that is not known.
    pub(super) fn truth(&self, value: &HostValue) -> Option<bool> {
        match value {
            HostValue::Int(n, _) => Some(*n != 0),
            HostValue::Float(n, _) => Some(*n != 0.0),
            HostValue::Pointer(p) => Some(p.memory.is_some()),
            HostValue::Unknown | HostValue::Unset | HostValue::Register(..) => None,
            HostValue::Stream(stream) => Some(*stream != super::values::StreamValue::Default),
            _ => Some(true),
        }
    }

    /// The number that a value is known to be.
    pub(super) fn known(&mut self, value: &HostValue, range: &Range<usize>) -> Read<i64> {
        match value {
            HostValue::Int(n, _) => Ok(*n),
            HostValue::Float(n, _) => Ok(*n as i64),
            HostValue::Pointer(p) if p.memory.is_none() => Ok(0),
            HostValue::Register(..) => self.wrong(
                range,
                "this number depends on the device",
                "expected a number that the host knows before the program runs",
                "write the value in place of what the device computes, to check this case",
            ),
            _ => self.wrong(
                range,
                "this number is not worked out",
                "expected a number that the host knows before the program runs",
                "write a number, or give it with `--args`",
            ),
        }
    }

    /// The number that an expression is.
    pub(super) fn number(&mut self, tree: &HostExpr) -> Read<i64> {
        let value = self.value(tree)?;
        self.known(&value, &tree.range)
    }
}

/// A number or a register as text.
pub(super) fn text_of(value: &HostValue) -> Option<String> {
    match value {
        HostValue::Int(n, _) => Some(n.to_string()),
        HostValue::Register(name, _) => Some(name.clone()),
        _ => None,
    }
}

pub(super) fn type_of(value: &HostValue) -> Ty {
    match value {
        HostValue::Int(_, ty) | HostValue::Register(_, ty) => *ty,
        _ => Ty::S32,
    }
}

/// The common type of two operands (ISO C++, expr.arith.conv).
fn common(a: Ty, b: Ty) -> Ty {
    fn promoted(ty: Ty) -> Ty {
        if ty.bits < 32 { Ty::S32 } else { ty }
    }
    let (a, b) = (promoted(a), promoted(b));
    match a.bits.cmp(&b.bits) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => Ty {
            bits: a.bits,
            signed: a.signed && b.signed,
        },
    }
}

fn floats(op: &'static str, a: &HostValue, b: &HostValue) -> HostValue {
    fn number(value: &HostValue) -> (f64, u8) {
        match value {
            HostValue::Int(n, _) => (*n as f64, 0),
            HostValue::Float(n, bits) => (*n, *bits),
            _ => (0.0, 0),
        }
    }
    let ((x, s), (y, t)) = (number(a), number(b));
    let holds = match op {
        "==" => Some(x == y),
        "!=" => Some(x != y),
        "<" => Some(x < y),
        "<=" => Some(x <= y),
        ">" => Some(x > y),
        ">=" => Some(x >= y),
        _ => None,
    };
    if let Some(holds) = holds {
        return HostValue::Int(i64::from(holds), Ty::S32);
    }
    let bits = s.max(t);
    let value = match op {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        _ => return HostValue::Unknown,
    };
    HostValue::Float(
        if bits == 32 {
            f64::from(value as f32)
        } else {
            value
        },
        bits,
    )
}
