//! Types of the C family, and conversions between them.
//!
//! # Invariants
//! - A value of a type is kept as the integer it stands for: in the range of its [`Type::word`], 0 or 1 for `bool`.
//! - What is said of an object in memory beyond its type (volatile, const, atomic, address space) is in [`Qualified`], at
//!   each level of a pointer.
//!
//! # Sources
//! - C11, 6.3.1, *Arithmetic operands*; ISO C++, conv.prom, conv.integral, conv.bool, expr.arith.conv.
//! - OpenCL C, *Built-in Scalar Data Types*. On every target that Fencepost speaks of, `char` is signed, `int` has 32
//!   bits, `long`, `size_t` and pointers have 64: LP64, as nvcc and the C compilers of x86-64 have it.

use std::rc::Rc;

use program::{BinOp, CmpOp, Expr, Space, Ty};

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Void,
    Bool,
    Int(Ty),
    Enum(Rc<Enumeration>),
    /// A pointer to something; `nullptr` and pointers to `void` point to [`Type::Void`].
    Pointer(Rc<Qualified>),
    Array(Rc<Qualified>, u32),
}

/// An enumeration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Enumeration {
    pub(super) name: String,
    /// The integer type that holds its values.
    pub(super) ty: Ty,
    /// What its values are promoted to.
    pub(super) promoted: Ty,
}

/// What is at a place: a type, and what its declaration says besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Qualified {
    pub(super) ty: Type,
    pub(super) constant: bool,
    pub(super) volatile: bool,
    pub(super) atomic: bool,
    /// The address space that it is said to be in.
    pub(super) space: Option<Space>,
}

/// The type of the elements of memory that nothing says more about.
pub(super) const BYTE: Ty = Ty { bits: 8, signed: false };

impl From<Type> for Qualified {
    fn from(ty: Type) -> Qualified {
        Qualified { ty, constant: false, volatile: false, atomic: false, space: None }
    }
}

impl From<Ty> for Qualified {
    fn from(ty: Ty) -> Qualified {
        Type::Int(ty).into()
    }
}

impl Qualified {
    /// The pointer to it.
    pub(super) fn pointer(self) -> Type {
        Type::Pointer(Rc::new(self))
    }

    /// What a plain access to it has; `None`: it is more than one access could be to.
    pub(super) fn word(&self) -> Option<Ty> {
        self.ty.word()
    }

    /// Whether a pointer to this may become one to `to` without a cast: no qualifier is lost (C11, 6.5.16.1).
    pub(super) fn lost(&self, to: &Qualified) -> Option<&'static str> {
        match () {
            () if self.constant && !to.constant => Some("const"),
            () if self.volatile && !to.volatile => Some("volatile"),
            () => None,
        }
    }
}

impl Type {
    /// `int`
    pub(super) const INT: Type = Type::Int(Ty::S32);

    /// A pointer to an integer type.
    pub(super) fn pointer_to(ty: Ty) -> Type {
        Qualified::from(ty).pointer()
    }

    /// What it points to, if it is a pointer.
    pub(super) fn target(&self) -> Option<&Rc<Qualified>> {
        match self {
            Type::Pointer(to) => Some(to),
            _ => None,
        }
    }

    /// The integers that stand for its values; `None`: it has no values that a register could hold.
    pub(super) fn word(&self) -> Option<Ty> {
        match self {
            Type::Void | Type::Array(..) => None,
            Type::Bool => Some(BYTE),
            Type::Int(ty) => Some(*ty),
            Type::Enum(e) => Some(e.ty),
            Type::Pointer(_) => Some(Ty::WORD),
        }
    }

    /// Size in bytes; 0 of `void`.
    pub(super) fn size(&self) -> u64 {
        match self {
            Type::Array(of, n) => of.ty.size() * u64::from(*n),
            _ => self.word().map_or(0, |ty| u64::from(ty.bytes())),
        }
    }

    /// The type that arithmetic on it is done in, if it is an arithmetic one: the integer promotions (C11, 6.3.1.1; ISO
    /// C++, conv.prom).
    pub(super) fn promoted(&self) -> Option<Ty> {
        match self {
            Type::Bool => Some(Ty::S32),
            Type::Int(ty) if ty.bits < 32 => Some(Ty::S32),
            Type::Int(ty) => Some(*ty),
            Type::Enum(e) => Some(e.promoted),
            Type::Void | Type::Pointer(_) | Type::Array(..) => None,
        }
    }

    /// How it is written.
    pub(super) fn name(&self) -> String {
        match self {
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Enum(e) => e.name.clone(),
            Type::Int(ty) => {
                let name = match ty.bits {
                    8 => "char",
                    16 => "short",
                    32 => "int",
                    _ => "long",
                };
                if ty.signed { name.into() } else { format!("unsigned {name}") }
            }
            Type::Pointer(to) => {
                let mut words = Vec::new();
                words.extend(to.constant.then_some("const "));
                words.extend(to.volatile.then_some("volatile "));
                format!("{}{}*", words.concat(), to.ty.name())
            }
            Type::Array(of, n) => format!("{}[{n}]", of.ty.name()),
        }
    }
}

/// The common type of two operands: the usual arithmetic conversions (C11, 6.3.1.8) of promoted types. Two types of one
/// width have one rank here: it makes no difference to values.
pub(super) fn common(a: Ty, b: Ty) -> Ty {
    match a.bits.cmp(&b.bits) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => Ty { bits: a.bits, signed: a.signed && b.signed },
    }
}

/// Whether every value of type `from` is one of `ty`.
pub(super) fn holds(ty: Ty, from: Ty) -> bool {
    ty == from || (ty.bits > from.bits && (ty.signed || !from.signed))
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) expr: Expr,
    pub(super) ty: Type,
    /// It is made of constants of the text alone: what the language calls a constant expression.
    pub(super) fixed: bool,
}

impl Value {
    /// A value of an integer type.
    pub(super) fn of(expr: Expr, ty: Ty) -> Value {
        Value { expr, ty: Type::Int(ty), fixed: false }
    }

    /// A value of some type.
    pub(super) fn new(expr: Expr, ty: Type) -> Value {
        Value { expr, ty, fixed: false }
    }

    /// A constant of the text.
    pub(super) fn literal(value: i64, ty: Type) -> Value {
        Value { expr: Expr::Const(value), ty, fixed: true }
    }

    /// An integer; an `int` if it is one.
    pub(super) fn int(value: i64) -> Value {
        let ty = if Ty::S32.wrap(value) == value { Ty::S32 } else { Ty::WORD };
        Value::literal(value, Type::Int(ty))
    }

    /// What a call without a value gives.
    pub(super) fn void() -> Value {
        Value { expr: Expr::Const(0), ty: Type::Void, fixed: false }
    }

    /// What it points to, if it is an address.
    pub(super) fn target(&self) -> Option<&Rc<Qualified>> {
        self.ty.target()
    }

    /// The integers that stand for it.
    pub(super) fn word(&self) -> Ty {
        self.ty.word().unwrap_or(Ty::S32)
    }

    /// The number that it is, if it is one whatever happens.
    pub(super) fn constant(&self) -> Option<i64> {
        fold(&self.expr)
    }

    /// The value as an integer of a type.
    pub(super) fn fit(&self, ty: Ty) -> Expr {
        match &self.expr {
            Expr::Const(v) => Expr::Const(ty.wrap(*v)),
            expr if holds(ty, self.word()) => expr.clone(),
            expr => Expr::Cast(ty, expr.clone().into()),
        }
    }

    /// The value converted to a type that has values.
    pub(super) fn converted(&self, to: &Type) -> Value {
        let expr = match to {
            Type::Bool if self.ty != Type::Bool => folded(self.is_true()),
            _ => self.fit(to.word().unwrap_or(Ty::S32)),
        };
        Value { expr, ty: to.clone(), fixed: self.fixed }
    }

    /// An expression that is 1 where the value is not 0, else 0.
    pub(super) fn is_true(&self) -> Expr {
        match &self.expr {
            cmp @ Expr::Cmp(..) => cmp.clone(),
            Expr::Const(v) => Expr::Const(i64::from(*v != 0)),
            expr => Expr::Cmp(CmpOp::Ne, self.word(), expr.clone().into(), Expr::Const(0).into()),
        }
    }

    /// An expression that is not 0 where the value is 0.
    pub(super) fn is_false(&self) -> Expr {
        match &self.expr {
            Expr::Cmp(op, ty, a, b) => {
                let negated = match op {
                    CmpOp::Eq => CmpOp::Ne,
                    CmpOp::Ne => CmpOp::Eq,
                    CmpOp::Lt => CmpOp::Ge,
                    CmpOp::Le => CmpOp::Gt,
                    CmpOp::Gt => CmpOp::Le,
                    CmpOp::Ge => CmpOp::Lt,
                };
                Expr::Cmp(negated, *ty, a.clone(), b.clone())
            }
            expr => Expr::Cmp(CmpOp::Eq, self.word(), expr.clone().into(), Expr::Const(0).into()),
        }
    }

    /// `a op b` in the type of the operation; `b` was converted to it.
    pub(super) fn calculated(op: BinOp, ty: Ty, a: &Value, b: Expr, fixed: bool) -> Value {
        let expr = Expr::Bin(op, ty, a.fit(ty).into(), b.into());
        let expr = if fixed { folded(expr) } else { expr };
        Value { expr, ty: Type::Int(ty), fixed }
    }
}

/// The number that an expression is, if it is one whatever happens.
pub(super) fn fold(expr: &Expr) -> Option<i64> {
    expr.value(&|_| None)
}

/// The expression, as a number if it is one.
pub(super) fn folded(expr: Expr) -> Expr {
    fold(&expr).map_or(expr, Expr::Const)
}
