//! Types of the C family, and conversions between them.
//!
//! # Invariants
//! - A value of a type is kept as the integer it stands for: in the range of its [`Type::word`], 0
//!   or 1 for `bool`.
//! - What is said of an object in memory beyond its type (volatile, const, atomic, address space)
//!   is in [`Qualified`], at each level of a pointer.
//!
//! # Sources
//! - C11, 6.3.1, *Arithmetic operands*; ISO C++, conv.prom, conv.integral, conv.bool,
//!   expr.arith.conv.
//! - OpenCL C, *Built-in Scalar Data Types*. On every target that Fencepost speaks of, `char` is
//!   signed, `int` has 32 bits, `long`, `size_t` and pointers have 64: LP64, as nvcc and the C
//!   compilers of x86-64 have it.

use std::cell::OnceCell;
use std::rc::Rc;

use super::classes::class_name;
use program::{BinOp, Class, CmpOp, Expr, Field, Layout, Space, Ty};

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
    Struct(Rc<Structure>),
    /// An object of a class of the CUDA C++ library, with the type of the values in it. It has
    /// functions, and no values.
    Object(Class, Rc<Type>),
}

/// A structure. Two are the same type if they have one name and their members agree, so that a
/// thread's own definition is that of the test's memory.
pub(super) struct Structure {
    pub(super) name: String,
    /// `None`: it was named, and not defined.
    members: OnceCell<Members>,
}

/// What vector types are made of.
const VECTORS: &[(&str, Ty)] = &[
    (
        "char",
        Ty {
            bits: 8,
            signed: true,
        },
    ),
    ("uchar", BYTE),
    (
        "short",
        Ty {
            bits: 16,
            signed: true,
        },
    ),
    (
        "ushort",
        Ty {
            bits: 16,
            signed: false,
        },
    ),
    ("int", Ty::S32),
    ("uint", Ty::U32),
    ("long", Ty::WORD),
    ("ulong", Ty::U64),
    ("longlong", Ty::WORD),
    ("ulonglong", Ty::U64),
];

/// The members of a structure, and its size (C11, 6.7.2.1).
struct Members {
    all: Vec<Member>,
    size: u64,
    align: u64,
    /// How deep the types of the members are.
    depth: usize,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) of: Qualified,
    /// Its distance from the first byte of the structure.
    pub(super) offset: u64,
}

impl std::fmt::Debug for Structure {
    // A member may point to another object of the type.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Structure {
    fn eq(&self, other: &Structure) -> bool {
        let named = |m: &Member| {
            (
                m.name.clone(),
                m.of.ty.name(),
                m.of.volatile,
                m.of.atomic,
                m.offset,
            )
        };
        std::ptr::eq(self, other)
            || (self.name == other.name
                && self
                    .members()
                    .iter()
                    .map(named)
                    .eq(other.members().iter().map(named)))
    }
}

impl Eq for Structure {}

impl Structure {
    /// One that is not defined yet.
    pub(super) fn new(name: &str) -> Structure {
        Structure {
            name: name.to_string(),
            members: OnceCell::new(),
        }
    }

    /// The same with another name.
    pub(super) fn renamed(&self, name: &str) -> Structure {
        let members = self.members.get().map(|m| Members {
            all: m.all.clone(),
            ..*m
        });
        Structure {
            name: name.to_string(),
            members: members.map_or_else(OnceCell::new, OnceCell::from),
        }
    }

    /// Whether it is defined.
    pub(super) fn is_complete(&self) -> bool {
        self.members.get().is_some()
    }

    /// Defines it: each member at the next place that suits its type.
    pub(super) fn define(&self, members: Vec<(String, Qualified)>) {
        let (mut size, mut align) = (0, 1);
        let mut all = Vec::new();
        let depth = members
            .iter()
            .map(|(_, of)| of.ty.depth())
            .max()
            .unwrap_or(0);
        for (name, of) in members {
            let offset = u64::next_multiple_of(size, of.ty.align());
            size = offset + of.ty.size();
            align = align.max(of.ty.align());
            all.push(Member { name, of, offset });
        }
        // One that is defined stays what it is; a second definition was reported.
        let _ = self.members.set(Members {
            all,
            size: size.next_multiple_of(align),
            align,
            depth,
        });
    }

    /// A vector type, if a name is that of one: a structure with up to four members, aligned as a
    /// whole if they are two or four (CUDA C++ Programming Guide, *Built-in Vector Types*). In
    /// OpenCL C, one of three takes the room of four (OpenCL C, *Alignment of Types*).
    pub(super) fn vector(name: &str, opencl: bool) -> Option<Structure> {
        let (of, n) = name.split_at_checked(name.len().checked_sub(1)?)?;
        let n = n
            .parse::<usize>()
            .ok()
            .filter(|n| (1 + usize::from(opencl)..=4).contains(n))?;
        let ty = VECTORS
            .iter()
            .find(|v| v.0 == of && !(opencl && of.ends_with("longlong")))?
            .1;
        let structure = Structure::new(name);
        structure.define(
            ["x", "y", "z", "w"][..n]
                .iter()
                .map(|m| (m.to_string(), ty.into()))
                .collect(),
        );
        let members = structure.members.into_inner()?;
        let whole = u64::from(ty.bytes()) * n.next_multiple_of(2) as u64;
        let members = match (opencl, n % 2) {
            (true, _) => Members {
                align: whole,
                size: whole,
                ..members
            },
            (false, 0) => Members {
                align: whole.min(16),
                ..members
            },
            (false, _) => members,
        };
        Some(Structure {
            name: structure.name,
            members: OnceCell::from(members),
        })
    }

    /// Its members, none of one that is not defined.
    pub(super) fn members(&self) -> &[Member] {
        self.members.get().map_or(&[], |m| &m.all)
    }
}

/// What an element of memory is made of that is more than an integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(pub(super) Type);

impl Record {
    /// Its cells.
    pub fn layout(&self) -> Layout {
        let mut fields = Vec::new();
        self.0.each_cell(&mut |path, offset, of| {
            let boolean = of.ty.is_boolean();
            let ty = of.ty.stored().unwrap_or(BYTE);
            fields.push(Field {
                path: path.to_string(),
                offset: offset as u32,
                ty,
                boolean,
                mbarrier: false,
            });
        });
        let name = match &self.0 {
            Type::Struct(of) => Some(of.name.as_str()),
            _ => None,
        };
        Layout::record(name, fields, self.0.size() as u32)
    }

    /// The type of a cell.
    pub(super) fn of_cell(&self, cell: u32) -> Qualified {
        let mut all = Vec::new();
        self.0.each_cell(&mut |_, _, of| all.push(of.clone()));
        all.swap_remove(cell as usize % all.len())
    }
}

/// An enumeration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Enumeration {
    pub(super) name: String,
    /// The integer type that holds its values.
    pub(super) ty: Ty,
    /// What its values are promoted to.
    pub(super) promoted: Ty,
    /// C++: `enum class`, whose values become integers by a cast alone.
    pub(super) scoped: bool,
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
pub(super) const BYTE: Ty = Ty {
    bits: 8,
    signed: false,
};

impl From<Type> for Qualified {
    fn from(ty: Type) -> Qualified {
        Qualified {
            ty,
            constant: false,
            volatile: false,
            atomic: false,
            space: None,
        }
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

    /// Each integer in it, behind a path and from an offset on.
    fn cells(&self, path: &mut String, offset: u64, f: &mut dyn FnMut(&str, u64, &Qualified)) {
        let length = path.len();
        match &self.ty {
            Type::Array(of, n) => {
                for i in 0..u64::from(*n) {
                    path.push_str(&format!("[{i}]"));
                    of.cells(path, offset + i * of.ty.size(), f);
                    path.truncate(length);
                }
            }
            Type::Struct(of) => {
                for member in of.members() {
                    path.push('.');
                    path.push_str(&member.name);
                    member
                        .of
                        .within(self)
                        .cells(path, offset + member.offset, f);
                    path.truncate(length);
                }
            }
            _ => f(path, offset, self),
        }
    }

    /// What a plain access to it has; `None`: it is more than one access could be to.
    pub(super) fn word(&self) -> Option<Ty> {
        self.ty.word()
    }

    /// The same with what is said of the object that it is a part of.
    pub(super) fn within(&self, whole: &Qualified) -> Qualified {
        let ty = match &self.ty {
            Type::Array(of, n) => Type::Array(of.within(whole).into(), *n),
            ty => ty.clone(),
        };
        let (constant, volatile) = (
            self.constant || whole.constant,
            self.volatile || whole.volatile,
        );
        Qualified {
            ty,
            constant,
            volatile,
            atomic: self.atomic,
            space: self.space.or(whole.space),
        }
    }

    /// What it consists of, if it is an array or a structure: parts with their offsets.
    pub(super) fn parts(&self) -> Vec<(u64, Qualified)> {
        match &self.ty {
            Type::Array(of, n) => (0..u64::from(*n))
                .map(|i| (i * of.ty.size(), of.within(self)))
                .collect(),
            Type::Struct(of) => of
                .members()
                .iter()
                .map(|m| (m.offset, m.of.within(self)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a plain copy of it is what the language makes of its assignment: nothing in it is
    /// volatile or atomic.
    pub(super) fn is_plain(&self) -> bool {
        let mut plain = !self.volatile;
        self.ty
            .each_cell(&mut |_, _, of| plain &= !of.volatile && !of.atomic && of.word().is_some());
        plain
    }

    /// Whether a pointer to this may become one to `to` without a cast: no qualifier is lost (C11,
    /// 6.5.16.1).
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

    /// Each integer in an object of the type: what stands behind its name, its offset, and what is
    /// there.
    pub(super) fn each_cell(&self, f: &mut dyn FnMut(&str, u64, &Qualified)) {
        Qualified::from(self.clone()).cells(&mut String::new(), 0, f);
    }

    /// How many integers an object of the type holds.
    pub(super) fn cells(&self) -> u64 {
        match self {
            Type::Array(of, n) => of.ty.cells().saturating_mul(u64::from(*n)),
            Type::Struct(of) => of
                .members()
                .iter()
                .fold(0, |n: u64, m| n.saturating_add(m.of.ty.cells())),
            _ => 1,
        }
    }

    /// How many pointers, dimensions and structures there are inside each other. What a structure
    /// points to counts as far as it was defined before: a pointer to the structure itself leads
    /// nowhere deeper. Whatever walks over a type may recurse, since declared types are not deeper
    /// than [`diag::MAX_NESTING`].
    pub(super) fn depth(&self) -> usize {
        match self {
            Type::Pointer(of) | Type::Array(of, _) => 1 + of.ty.depth(),
            Type::Struct(of) => 1 + of.members.get().map_or(0, |m| m.depth),
            _ => 0,
        }
    }

    /// What addresses of objects of the type are multiples of.
    pub(super) fn align(&self) -> u64 {
        match self {
            Type::Array(of, _) => of.ty.align(),
            Type::Struct(of) => of.members.get().map_or(1, |m| m.align),
            _ => self.size().max(1),
        }
    }

    /// Whether it consists of other objects.
    pub(super) fn is_aggregate(&self) -> bool {
        matches!(self, Type::Array(..) | Type::Struct(_))
    }

    /// The integers that stand for its values; `None`: it has no values that a register could hold.
    pub(super) fn word(&self) -> Option<Ty> {
        match self {
            Type::Void | Type::Array(..) | Type::Struct(_) | Type::Object(..) => None,
            Type::Bool => Some(BYTE),
            Type::Int(ty) => Some(*ty),
            Type::Enum(e) => Some(e.ty),
            Type::Pointer(_) => Some(Ty::WORD),
        }
    }

    /// The integers that it is kept as, be it an object of a class.
    pub(super) fn stored(&self) -> Option<Ty> {
        match self {
            Type::Object(_, of) => of.word(),
            of => of.word(),
        }
    }

    /// Whether what it keeps is 0 or 1.
    pub(super) fn is_boolean(&self) -> bool {
        match self {
            Type::Object(_, of) => **of == Type::Bool,
            of => *of == Type::Bool,
        }
    }

    /// Size in bytes; 0 of `void` and of what is not defined.
    pub(super) fn size(&self) -> u64 {
        match self {
            Type::Array(of, n) => of.ty.size().saturating_mul(u64::from(*n)),
            Type::Struct(of) => of.members.get().map_or(0, |m| m.size),
            _ => self.stored().map_or(0, |ty| u64::from(ty.bytes())),
        }
    }

    /// The type that arithmetic on it is done in, if it is an arithmetic one: the integer
    /// promotions (C11, 6.3.1.1; ISO C++, conv.prom).
    pub(super) fn promoted(&self) -> Option<Ty> {
        match self {
            Type::Bool => Some(Ty::S32),
            Type::Int(ty) if ty.bits < 32 => Some(Ty::S32),
            Type::Int(ty) => Some(*ty),
            Type::Enum(e) => Some(e.promoted).filter(|_| !e.scoped),
            Type::Void
            | Type::Pointer(_)
            | Type::Array(..)
            | Type::Struct(_)
            | Type::Object(..) => None,
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
                if ty.signed {
                    name.into()
                } else {
                    format!("unsigned {name}")
                }
            }
            Type::Pointer(to) => {
                let mut words = Vec::new();
                words.extend(to.constant.then_some("const "));
                words.extend(to.volatile.then_some("volatile "));
                format!("{}{}*", words.concat(), to.ty.name())
            }
            Type::Array(of, n) => format!("{}[{n}]", of.ty.name()),
            Type::Struct(of) => of.name.clone(),
            Type::Object(class, of) => class_name(*class, &of.name(), 0).0,
        }
    }
}

/// The common type of two operands: the usual arithmetic conversions (C11, 6.3.1.8) of promoted
/// types. Two types of one width have one rank here: it makes no difference to values.
pub(super) fn common(a: Ty, b: Ty) -> Ty {
    match a.bits.cmp(&b.bits) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => Ty {
            bits: a.bits,
            signed: a.signed && b.signed,
        },
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
        Value {
            expr,
            ty: Type::Int(ty),
            fixed: false,
        }
    }

    /// A value of some type.
    pub(super) fn new(expr: Expr, ty: Type) -> Value {
        Value {
            expr,
            ty,
            fixed: false,
        }
    }

    /// A constant of the text.
    pub(super) fn literal(value: i64, ty: Type) -> Value {
        Value {
            expr: Expr::Const(value),
            ty,
            fixed: true,
        }
    }

    /// An integer; an `int` if it is one.
    pub(super) fn int(value: i64) -> Value {
        let ty = if Ty::S32.wrap(value) == value {
            Ty::S32
        } else {
            Ty::WORD
        };
        Value::literal(value, Type::Int(ty))
    }

    /// What a call without a value gives.
    pub(super) fn void() -> Value {
        Value {
            expr: Expr::Const(0),
            ty: Type::Void,
            fixed: false,
        }
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

    /// Whether it is a constant that a pointer may become: 0.
    pub(super) fn is_null(&self) -> bool {
        let scoped = matches!(&self.ty, Type::Enum(of) if of.scoped);
        self.fixed && !scoped && self.constant() == Some(0)
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
        Value {
            expr,
            ty: to.clone(),
            fixed: self.fixed,
        }
    }

    /// An expression that is 1 where the value is not 0, else 0.
    pub(super) fn is_true(&self) -> Expr {
        match &self.expr {
            cmp @ Expr::Cmp(..) => cmp.clone(),
            Expr::Const(v) => Expr::Const(i64::from(*v != 0)),
            expr => Expr::Cmp(
                CmpOp::Ne,
                self.word(),
                expr.clone().into(),
                Expr::Const(0).into(),
            ),
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
            expr => Expr::Cmp(
                CmpOp::Eq,
                self.word(),
                expr.clone().into(),
                Expr::Const(0).into(),
            ),
        }
    }

    /// `a op b` in the type of the operation; `b` was converted to it.
    pub(super) fn calculated(op: BinOp, ty: Ty, a: &Value, b: Expr, fixed: bool) -> Value {
        let expr = Expr::Bin(op, ty, a.fit(ty).into(), b.into());
        let expr = if fixed { folded(expr) } else { expr };
        Value {
            expr,
            ty: Type::Int(ty),
            fixed,
        }
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
