//! Operations on values of integer types.

use super::{FloatOp, Format, Ty};

/// Binary operations. Results are wrapped to the type of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, rounded towards zero. Division by zero returns all ones, as PTX hardware does.
    Div,
    /// Remainder of [`BinOp::Div`]; for a zero divisor, the dividend.
    Rem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left; amounts of `bits` or more give 0.
    Shl,
    /// Shift right, arithmetic if signed; amounts are clamped to `bits`.
    Shr,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// `a >= b ? 0 : a + 1` (PTX ISA, `atom.inc`), unsigned.
    Inc,
    /// `(a == 0 || a > b) ? b : a - 1` (PTX ISA, `atom.dec`), unsigned.
    Dec,
    /// A floating-point operation on the bits of its operands.
    Float(FloatOp, Format),
    /// An operation with an unknown result: 0 is its stand-in, and no answer may depend on it
    /// ([`crate::unknown`]).
    Unknown,
    /// 1 if its operands are equal, else 0. An instruction uses it to state a fact about an
    /// otherwise unknown value that no other instruction can interpret.
    Tells,
}

impl BinOp {
    /// Whether operands may be reordered and regrouped.
    pub fn is_free_of_order(self) -> bool {
        matches!(
            self,
            BinOp::Add | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Min | BinOp::Max
        )
    }

    /// Whether its operands may be swapped.
    pub fn is_symmetric(self) -> bool {
        match self {
            BinOp::Float(op, _) => matches!(
                op,
                FloatOp::Add(_)
                    | FloatOp::AddFlush
                    | FloatOp::Mul(_)
                    | FloatOp::Min
                    | FloatOp::Max
                    | FloatOp::Equal
                    | FloatOp::Unordered
            ),
            BinOp::Mul => true,
            other => other.is_free_of_order(),
        }
    }

    /// Whether it divides by its second operand.
    pub fn divides(self) -> bool {
        matches!(self, BinOp::Div | BinOp::Rem)
    }

    /// `a op b` in type `ty`.
    pub fn apply(self, ty: Ty, a: i64, b: i64) -> i64 {
        let (a, b) = (ty.wrap(a), ty.wrap(b));
        let (ua, ub) = (a as u64, b as u64);
        let less = if ty.signed { a < b } else { ua < ub };
        let bits = u64::from(ty.bits);
        let unsigned = Ty {
            signed: false,
            ..ty
        };
        let (za, zb) = (unsigned.wrap(a) as u64, unsigned.wrap(b) as u64);
        let v = match self {
            BinOp::Add => a.wrapping_add(b),
            BinOp::Sub => a.wrapping_sub(b),
            BinOp::Mul => a.wrapping_mul(b),
            BinOp::Div if b == 0 => -1,
            BinOp::Div if ty.signed => a.wrapping_div(b),
            BinOp::Div => (ua / ub) as i64,
            BinOp::Rem if b == 0 => a,
            BinOp::Rem if ty.signed => a.wrapping_rem(b),
            BinOp::Rem => (ua % ub) as i64,
            BinOp::And => a & b,
            BinOp::Or => a | b,
            BinOp::Xor => a ^ b,
            BinOp::Shl if zb >= bits => 0,
            BinOp::Shl => a << zb,
            BinOp::Shr if ty.signed => a >> zb.min(63),
            BinOp::Shr if zb >= bits => 0,
            BinOp::Shr => (za >> zb) as i64,
            BinOp::Min => {
                if less {
                    a
                } else {
                    b
                }
            }
            BinOp::Max => {
                if less {
                    b
                } else {
                    a
                }
            }
            BinOp::Float(op, format) => op.apply(format, a, b),
            BinOp::Unknown => 0,
            BinOp::Tells => i64::from(a == b),
            BinOp::Inc => {
                if za >= zb {
                    0
                } else {
                    a.wrapping_add(1)
                }
            }
            BinOp::Dec => {
                if za == 0 || za > zb {
                    b
                } else {
                    a.wrapping_sub(1)
                }
            }
        };
        ty.wrap(v)
    }
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CmpOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl CmpOp {
    /// The name in PTX comparisons (PTX ISA, *setp*).
    pub fn ptx_name(self) -> &'static str {
        match self {
            CmpOp::Eq => "eq",
            CmpOp::Ne => "ne",
            CmpOp::Lt => "lt",
            CmpOp::Le => "le",
            CmpOp::Gt => "gt",
            CmpOp::Ge => "ge",
        }
    }

    /// Whether `a op b` holds in type `ty`.
    pub fn holds(self, ty: Ty, a: i64, b: i64) -> bool {
        let (a, b) = (ty.wrap(a), ty.wrap(b));
        let order = if ty.signed {
            a.cmp(&b)
        } else {
            (a as u64).cmp(&(b as u64))
        };
        match self {
            CmpOp::Eq => order.is_eq(),
            CmpOp::Ne => order.is_ne(),
            CmpOp::Lt => order.is_lt(),
            CmpOp::Le => order.is_le(),
            CmpOp::Gt => order.is_gt(),
            CmpOp::Ge => order.is_ge(),
        }
    }

    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inc_and_dec_are_those_of_the_isa() {
        let t = Ty::U32;
        assert_eq!(BinOp::Inc.apply(t, 3, 3), 0);
        assert_eq!(BinOp::Inc.apply(t, 2, 3), 3);
        assert_eq!(BinOp::Dec.apply(t, 0, 3), 3);
        assert_eq!(BinOp::Dec.apply(t, 4, 3), 3);
        assert_eq!(BinOp::Dec.apply(t, 2, 3), 1);
    }

    #[test]
    fn shifts_clamp() {
        assert_eq!(BinOp::Shl.apply(Ty::U32, 1, 32), 0);
        assert_eq!(BinOp::Shr.apply(Ty::S32, -8, 99), -1);
        assert_eq!(BinOp::Shr.apply(Ty::U32, -8, 99), 0);
    }

    #[test]
    fn comparison_is_signed_or_not() {
        assert!(CmpOp::Lt.holds(Ty::S32, -1, 0));
        assert!(!CmpOp::Lt.holds(Ty::U32, -1, 0));
        assert!(CmpOp::Eq.holds(Ty::U32, -1, 0xffff_ffff));
    }
}
