//! Defines the types of the C family, and conversions between them.
//!
//! # Invariants
//! - A register holds a value as an integer in the range of its type's [`Type::word`]; for `bool`,
//!   0 or 1.
//! - [`Qualified`] holds the qualifiers of an object in memory (volatile, const, atomic, address
//!   space), at each level of a pointer.
//!
//! # Sources
//! - C11, 6.3.1, *Arithmetic operands*; ISO C++, conv.prom, conv.integral, conv.bool,
//!   expr.arith.conv.
//! - OpenCL C, *Built-in Scalar Data Types*.
//! - LP64, as in nvcc and the C compilers of x86-64, on every target of Fencepost: `char` is
//!   signed, `int` has 32 bits, `long`, `size_t` and pointers have 64.

use std::cell::OnceCell;
use std::rc::Rc;

use super::classes::class_name;
use super::floats;
use program::{BinOp, Class, CmpOp, Expr, Field, Format, Layout, Space, Ty};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Void,
    Bool,
    Int(Ty),
    /// A number of floating point; a register holds its bits.
    Float(Format),
    Enum(Rc<Enumeration>),
    /// A pointer; `nullptr` and pointers to `void` point to [`Type::Void`].
    Pointer(Rc<Qualified>),
    Array(Rc<Qualified>, u32),
    Struct(Rc<Structure>),
    /// An object of a CUDA C++ library class, with the type of its inner values. It has functions,
    /// but no value.
    Object(Class, Rc<Type>),
}

/// A structure. Two structures are the same type if their names and members agree. So a definition
/// in a thread's code matches that of the test's memory.
pub(super) struct Structure {
    pub(super) name: String,
    /// `None`: declared, but not defined.
    members: OnceCell<Members>,
}

/// The element types of vector types.
const VECTORS: &[(&str, Type)] = &[
    ("char", integer(8, true)),
    ("uchar", Type::Int(BYTE)),
    ("short", integer(16, true)),
    ("ushort", integer(16, false)),
    ("int", Type::INT),
    ("uint", Type::Int(Ty::U32)),
    ("long", Type::Int(Ty::WORD)),
    ("ulong", Type::Int(Ty::U64)),
    ("longlong", Type::Int(Ty::WORD)),
    ("ulonglong", Type::Int(Ty::U64)),
    ("float", Type::Float(Format::SINGLE)),
    ("double", Type::Float(Format::DOUBLE)),
];

/// The element types of vectors of two that CUDA has under names with and without underscores.
const PAIRS: &[(&str, Type)] = &[
    ("half", Type::Float(Format::HALF)),
    ("nv_bfloat16", Type::Float(Format::BRAIN)),
];

const fn integer(bits: u8, signed: bool) -> Type {
    Type::Int(Ty { bits, signed })
}

/// The members of a structure, and its size (C11, 6.7.2.1).
struct Members {
    all: Vec<Member>,
    size: u64,
    align: u64,
    /// The depth of the deepest member type.
    depth: usize,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) of: Qualified,
    /// The distance from the first byte of the structure.
    pub(super) offset: u64,
}

impl std::fmt::Debug for Structure {
    // Prints only the name: a member may point back to the structure.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Structure {
    fn eq(&self, other: &Structure) -> bool {
        fn named(m: &Member) -> (String, String, bool, bool, u64) {
            (
                m.name.clone(),
                m.of.ty.name(),
                m.of.volatile,
                m.of.atomic,
                m.offset,
            )
        }
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
    /// A structure without a definition.
    pub(super) fn new(name: &str) -> Structure {
        Structure {
            name: name.to_string(),
            members: OnceCell::new(),
        }
    }

    /// The same structure with another name.
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

    /// Whether the structure has a definition.
    pub(super) fn is_complete(&self) -> bool {
        self.members.get().is_some()
    }

    /// Defines the structure; each member takes the next offset that suits its type.
    pub(super) fn define(&self, members: Vec<(String, Qualified)>) {
        self.define_class(None, members, 1);
    }

    /// The same behind the members of a base class, with at least that alignment.
    pub(super) fn define_class(
        &self,
        base: Option<&Structure>,
        members: Vec<(String, Qualified)>,
        least: u64,
    ) {
        let base = base.and_then(|base| base.members.get());
        let (mut size, mut align) = base.map_or((0, 1), |m| (m.size, m.align));
        align = align.max(least);
        let mut all = base.map_or_else(Vec::new, |m| m.all.clone());
        let inherited = base.map_or(0, |m| m.depth);
        let depth = members
            .iter()
            .map(|(_, of)| of.ty.depth())
            .max()
            .unwrap_or(0)
            .max(inherited);
        for (name, of) in members {
            let offset = u64::next_multiple_of(size, of.ty.align());
            size = offset + of.ty.size();
            align = align.max(of.ty.align());
            all.push(Member { name, of, offset });
        }
        // A second definition does not replace the first; it was reported before.
        let _ = self.members.set(Members {
            all,
            size: size.next_multiple_of(align),
            align,
            depth,
        });
    }

    /// Defines a union: all members begin at its address. They are numbers of one size. Reading
    /// another member than the last written one gives the same bits (C11, 6.5.2.3; GCC, *Type
    /// punning*, which nvcc follows; ISO C++ leaves it undefined).
    pub(super) fn define_union(&self, members: Vec<(String, Qualified)>, least: u64) {
        let align = members.iter().map(|(_, of)| of.ty.align()).max();
        let align = align.unwrap_or(1).max(least);
        let size = members.iter().map(|(_, of)| of.ty.size()).max();
        let member = |(name, of)| Member {
            name,
            of,
            offset: 0,
        };
        let _ = self.members.set(Members {
            all: members.into_iter().map(member).collect(),
            size: size.unwrap_or(0).next_multiple_of(align),
            align,
            depth: 0,
        });
    }

    /// Whether two members have one address, here or in a member.
    pub(super) fn has_union(&self) -> bool {
        let all = self.members();
        let same = all.windows(2).any(|two| two[0].offset == two[1].offset);
        same || all.iter().any(|member| match &member.of.ty {
            Type::Struct(inner) => inner.has_union(),
            _ => false,
        })
    }

    /// The vector type of that name: a structure of up to four members, in OpenCL C also of eight
    /// or sixteen. Vectors of two or four members are aligned as a whole (CUDA C++ Programming
    /// Guide, *Built-in Vector Types*); `_16a` and `_32a` behind the name of four long numbers say
    /// how. In OpenCL C, a vector of three has the size of one of four (OpenCL C, *Alignment of
    /// Types*).
    pub(super) fn vector(name: &str, opencl: bool) -> Option<Structure> {
        let (word, said) = match name.rsplit_once('_') {
            Some((word, "16a")) if !opencl => (word, Some(16)),
            Some((word, "32a")) if !opencl => (word, Some(32)),
            _ => (name, None),
        };
        let of = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let n = word[of.len()..].parse::<usize>().ok().filter(|n| {
            let is_long = opencl && matches!(n, 8 | 16);
            is_long || (1 + usize::from(opencl)..=4).contains(n)
        })?;
        let pair = PAIRS
            .iter()
            .find(|v| !opencl && n == 2 && v.0 == of.trim_start_matches("__"));
        // `__half2` and `half2` are one type.
        let name = pair.map_or(name, |_| name.trim_start_matches("__"));
        let ty = &VECTORS
            .iter()
            .find(|v| v.0 == of && !(opencl && of.ends_with("longlong")))
            .or(pair)?
            .1;
        if said.is_some() && (n, ty.size()) != (4, 8) {
            return None;
        }
        let structure = Structure::new(name);
        structure.define(
            (0..n)
                .map(|i| {
                    let name = match ["x", "y", "z", "w"].get(i) {
                        Some(name) if n <= 4 => (*name).to_string(),
                        _ => format!("s{i:x}"),
                    };
                    (name, ty.clone().into())
                })
                .collect(),
        );
        let members = structure.members.into_inner()?;
        let whole = ty.size() * n.next_multiple_of(2) as u64;
        let members = match (opencl, n % 2) {
            (true, _) => Members {
                align: whole,
                size: whole,
                ..members
            },
            (false, 0) => Members {
                align: said.unwrap_or(whole.min(16)),
                ..members
            },
            (false, _) => members,
        };
        Some(Structure {
            name: structure.name,
            members: OnceCell::from(members),
        })
    }

    /// The members; empty without a definition.
    pub(super) fn members(&self) -> &[Member] {
        self.members.get().map_or(&[], |m| &m.all)
    }
}

/// The type of a memory element that is more than an integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(pub(super) Type);

impl Record {
    /// The layout of its cells.
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
    /// The type that its values are promoted to.
    pub(super) promoted: Ty,
    /// C++: `enum class`. Only a cast converts its values to integers.
    pub(super) scoped: bool,
}

/// A type with its qualifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Qualified {
    pub(super) ty: Type,
    pub(super) constant: bool,
    pub(super) volatile: bool,
    pub(super) atomic: bool,
    /// The declared address space.
    pub(super) space: Option<Space>,
}

/// The element type of memory without further information.
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
    /// The type of a pointer to it.
    pub(super) fn pointer(self) -> Type {
        Type::Pointer(Rc::new(self))
    }

    /// Calls `f` with each integer in it: its path, its offset, its type.
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

    /// The integer type of a plain access; `None`: no single access covers it.
    pub(super) fn word(&self) -> Option<Ty> {
        self.ty.word()
    }

    /// This part with the qualifiers of the object that contains it.
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

    /// The parts of an array or structure, with their offsets.
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

    /// Whether plain copies implement its assignment: no part is volatile or atomic.
    pub(super) fn is_plain(&self) -> bool {
        let mut plain = !self.volatile;
        self.ty
            .each_cell(&mut |_, _, of| plain &= !of.volatile && !of.atomic && of.word().is_some());
        plain
    }

    /// The qualifier that a conversion to a pointer to `to` would lose without a cast, if any (C11,
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
    pub(super) const INT: Type = Type::Int(Ty::S32);

    /// A pointer to an integer type.
    pub(super) fn pointer_to(ty: Ty) -> Type {
        Qualified::from(ty).pointer()
    }

    /// The member of a structure of that name: its offset and type.
    pub(super) fn member(&self, name: &str) -> Option<(u64, Qualified)> {
        let Type::Struct(of) = self else {
            return None;
        };
        let member = of.members().iter().find(|m| m.name == name)?;
        Some((member.offset, member.of.clone()))
    }

    /// The target type of a pointer.
    pub(super) fn target(&self) -> Option<&Rc<Qualified>> {
        match self {
            Type::Pointer(to) => Some(to),
            _ => None,
        }
    }

    /// Calls `f` with each integer in an object of the type: the path after the object's name, the
    /// offset, and the type.
    pub(super) fn each_cell(&self, f: &mut dyn FnMut(&str, u64, &Qualified)) {
        Qualified::from(self.clone()).cells(&mut String::new(), 0, f);
    }

    /// The number of integers in an object of the type.
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

    /// The nesting depth of pointers, dimensions and structures. The target of a pointer counts as
    /// far as it is defined: a pointer to the enclosing structure adds no depth. Declared types are
    /// at most [`diag::MAX_NESTING`] deep, so walks over types may recurse.
    pub(super) fn depth(&self) -> usize {
        match self {
            Type::Pointer(of) | Type::Array(of, _) => 1 + of.ty.depth(),
            Type::Struct(of) => 1 + of.members.get().map_or(0, |m| m.depth),
            _ => 0,
        }
    }

    /// The alignment of objects of the type.
    pub(super) fn align(&self) -> u64 {
        match self {
            Type::Array(of, _) => of.ty.align(),
            Type::Struct(of) => of.members.get().map_or(1, |m| m.align),
            _ => self.size().max(1),
        }
    }

    /// Whether it is an array or a structure.
    pub(super) fn is_aggregate(&self) -> bool {
        matches!(self, Type::Array(..) | Type::Struct(_))
    }

    /// The integer type that represents its values; `None`: no register can hold them.
    pub(super) fn word(&self) -> Option<Ty> {
        match self {
            Type::Void | Type::Array(..) | Type::Struct(_) | Type::Object(..) => None,
            Type::Bool => Some(BYTE),
            Type::Int(ty) => Some(*ty),
            Type::Float(format) => Some(floats::word(*format)),
            Type::Enum(e) => Some(e.ty),
            Type::Pointer(_) => Some(Ty::WORD),
        }
    }

    /// The integer type in memory, also for an object of a class.
    pub(super) fn stored(&self) -> Option<Ty> {
        match self {
            Type::Object(_, of) => of.word(),
            of => of.word(),
        }
    }

    /// Whether its objects hold 0 or 1.
    pub(super) fn is_boolean(&self) -> bool {
        match self {
            Type::Object(_, of) => **of == Type::Bool,
            of => *of == Type::Bool,
        }
    }

    /// The size in bytes; 0 for `void` and types without a definition.
    pub(super) fn size(&self) -> u64 {
        match self {
            Type::Array(of, n) => of.ty.size().saturating_mul(u64::from(*n)),
            Type::Struct(of) => of.members.get().map_or(0, |m| m.size),
            _ => self.stored().map_or(0, |ty| u64::from(ty.bytes())),
        }
    }

    /// The type after the integer promotions, for an arithmetic type (C11, 6.3.1.1; ISO C++,
    /// conv.prom).
    pub(super) fn promoted(&self) -> Option<Ty> {
        match self {
            Type::Bool => Some(Ty::S32),
            Type::Int(ty) if ty.bits < 32 => Some(Ty::S32),
            Type::Int(ty) => Some(*ty),
            Type::Enum(e) => Some(e.promoted).filter(|_| !e.scoped),
            Type::Void
            | Type::Float(_)
            | Type::Pointer(_)
            | Type::Array(..)
            | Type::Struct(_)
            | Type::Object(..) => None,
        }
    }

    /// The type as the code writes it.
    pub(super) fn name(&self) -> String {
        match self {
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Enum(e) => e.name.clone(),
            Type::Float(format) => floats::name(*format).into(),
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

/// The common type of two promoted types after the usual arithmetic conversions (C11, 6.3.1.8). Two
/// types of one width have one rank here, which does not affect values.
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

/// Whether `ty` holds every value of type `from`.
pub(super) fn holds(ty: Ty, from: Ty) -> bool {
    ty == from || (ty.bits > from.bits && (ty.signed || !from.signed))
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) expr: Expr,
    pub(super) ty: Type,
    /// Whether it is a constant expression of the language: made only of constants in the text.
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

    /// A value of any type.
    pub(super) fn new(expr: Expr, ty: Type) -> Value {
        Value {
            expr,
            ty,
            fixed: false,
        }
    }

    /// A constant in the text.
    pub(super) fn literal(value: i64, ty: Type) -> Value {
        Value {
            expr: Expr::Const(value),
            ty,
            fixed: true,
        }
    }

    /// An integer constant; an `int` if it fits.
    pub(super) fn int(value: i64) -> Value {
        let ty = if Ty::S32.wrap(value) == value {
            Ty::S32
        } else {
            Ty::WORD
        };
        Value::literal(value, Type::Int(ty))
    }

    /// The result of a call without a value.
    pub(super) fn void() -> Value {
        Value {
            expr: Expr::Const(0),
            ty: Type::Void,
            fixed: false,
        }
    }

    /// The target type, if the value is an address.
    pub(super) fn target(&self) -> Option<&Rc<Qualified>> {
        self.ty.target()
    }

    /// The integer type that represents the value.
    pub(super) fn word(&self) -> Ty {
        self.ty.word().unwrap_or(Ty::S32)
    }

    /// The number, if the value is constant.
    pub(super) fn constant(&self) -> Option<i64> {
        fold(&self.expr)
    }

    /// Whether it is a null pointer constant: 0.
    pub(super) fn is_null(&self) -> bool {
        if matches!(self.ty, Type::Float(_)) {
            return false;
        }
        let scoped = matches!(&self.ty, Type::Enum(of) if of.scoped);
        self.fixed && !scoped && self.constant() == Some(0)
    }

    /// The value as an integer of a type.
    pub(super) fn fit(&self, ty: Ty) -> Expr {
        if let Type::Float(format) = &self.ty {
            return floats::to_integer(*format, ty, &self.expr);
        }
        match &self.expr {
            Expr::Const(v) => Expr::Const(ty.wrap(*v)),
            expr if holds(ty, self.word()) => expr.clone(),
            expr => Expr::Cast(ty, expr.clone().into()),
        }
    }

    /// The bits of the value as an integer of a type.
    pub(super) fn bits(&self, ty: Ty) -> Expr {
        match &self.ty {
            Type::Float(_) => Value::of(self.expr.clone(), self.word()).fit(ty),
            _ => self.fit(ty),
        }
    }

    /// The value converted to a type that has values.
    pub(super) fn converted(&self, to: &Type) -> Value {
        let expr = match to {
            Type::Bool if self.ty != Type::Bool => folded(self.is_true()),
            Type::Float(format) => floats::converted(self, *format),
            _ => self.fit(to.word().unwrap_or(Ty::S32)),
        };
        Value {
            expr,
            ty: to.clone(),
            fixed: self.fixed,
        }
    }

    /// An expression: 1 if the value is not 0, else 0.
    pub(super) fn is_true(&self) -> Expr {
        if let Type::Float(format) = self.ty {
            return floats::is_zero(format, &self.expr, false);
        }
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

    /// An expression that is not 0 exactly if the value is 0.
    pub(super) fn is_false(&self) -> Expr {
        if let Type::Float(format) = self.ty {
            return floats::is_zero(format, &self.expr, true);
        }
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

    /// `a op b` in the type of the operation; `b` has that type already.
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

/// The number, if the expression is constant.
pub(super) fn fold(expr: &Expr) -> Option<i64> {
    expr.value(&|_| None)
}

/// The expression, folded to a number if it is constant.
pub(super) fn folded(expr: Expr) -> Expr {
    fold(&expr).map_or(expr, Expr::Const)
}

/// The components of a vector of `n` that a member name chooses: `xy`, `s03`, `lo`, `even`.
pub(super) fn components(name: &str, n: usize) -> Option<Vec<usize>> {
    let half = n.div_ceil(2);
    let all: Vec<usize> = match name {
        "lo" => (0..half).collect(),
        "hi" => (half..2 * half).collect(),
        "even" => (0..half).map(|i| 2 * i).collect(),
        "odd" => (0..half).map(|i| 2 * i + 1).collect(),
        _ => match name.strip_prefix(['s', 'S']) {
            Some(digits) if !digits.is_empty() => digits
                .chars()
                .map(|c| c.to_digit(16).map(|n| n as usize))
                .collect::<Option<_>>()?,
            _ => name
                .chars()
                .map(|c| "xyzw".find(c))
                .collect::<Option<_>>()?,
        },
    };
    let fits = matches!(all.len(), 1 | 2 | 3 | 4 | 8 | 16);
    (fits && all.iter().all(|i| *i < n)).then_some(all)
}
