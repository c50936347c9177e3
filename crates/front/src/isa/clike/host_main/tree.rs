//! Defines the syntax trees of host code: `main` of a source file and the functions that it calls.
//!
//! Host code has constructs that no kernel has, such as launches, strings and `new`. It needs no
//! types for its meaning but those of memory, so trees keep operators as they are written.

use std::ops::Range;
use std::rc::Rc;

use super::records::HostRecord;
use program::Ty;

/// An expression with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct HostExpr {
    pub(super) kind: HostExprKind,
    pub(super) range: Range<usize>,
}

/// The form of an expression.
#[derive(Clone, Debug)]
pub(super) enum HostExprKind {
    Int(i64, Ty),
    /// A number of floating point.
    Float(f64),
    Str(String),
    Name(String),
    /// `-a`, `!a`, `~a`, `*a`, `&a`
    Unary(&'static str, Box<HostExpr>),
    Binary(&'static str, Box<HostExpr>, Box<HostExpr>),
    Choice(Box<HostExpr>, Box<HostExpr>, Box<HostExpr>),
    Comma(Box<HostExpr>, Box<HostExpr>),
    /// `a = b`, or `a op= b` with the operator.
    Assign(Option<&'static str>, Box<HostExpr>, Box<HostExpr>),
    /// `++a`, `a--`: whether it adds, and whether the operator is a prefix.
    Step(Box<HostExpr>, bool, bool),
    Call(Box<HostExpr>, Vec<HostExpr>),
    /// `kernel<<<grid, block, bytes, stream>>>(arguments)`
    Launch(Box<HostLaunch>),
    Index(Box<HostExpr>, Box<HostExpr>),
    /// `a.b` and `a->b`
    Member(Box<HostExpr>, String),
    Cast(HostType, Box<HostExpr>),
    SizeOfType(HostType),
    SizeOf(Box<HostExpr>),
    /// `new T`, `new T[n]`
    New(HostType, Option<Box<HostExpr>>),
    /// `new (p) T(value)`
    Place(Box<HostExpr>, HostType, Vec<HostExpr>),
    /// `delete p`, `delete[] p`
    Delete(Box<HostExpr>),
    /// `dim3(2, 2)`, `std::vector<int>(n)`, `int(x)`
    Construct(HostType, Vec<HostExpr>),
    /// `{1, 2}`
    Braces(Vec<HostExpr>),
    /// A lambda, and whether it captures values.
    Lambda(Rc<HostFunction>, bool),
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub(super) struct HostLaunch {
    pub(super) kernel: Range<usize>,
    /// The arguments of its template.
    pub(super) instance: Option<Range<usize>>,
    /// The operands between the triple brackets.
    pub(super) configuration: Vec<HostExpr>,
    pub(super) arguments: Vec<HostExpr>,
}

/// A type as host code writes it.
#[derive(Clone, Debug)]
pub(super) struct HostType {
    pub(super) base: HostBase,
    /// The number of `*`.
    pub(super) pointers: usize,
    pub(super) reference: bool,
    pub(super) constant: bool,
}

impl HostType {
    /// A type without `*` and `&`.
    pub(super) fn plain(base: HostBase) -> HostType {
        HostType {
            base,
            pointers: 0,
            reference: false,
            constant: false,
        }
    }
}

/// The type without its `*` and `&`.
#[derive(Clone, Debug)]
pub(super) enum HostBase {
    Void,
    Bool,
    Int(Ty),
    /// A number of floating point, by its bits.
    Float(u8),
    Auto,
    Stream,
    Event,
    Dim3,
    /// `cuda::atomic<int, cuda::thread_scope_system>`, and whether it is a reference to a number:
    /// the type of its value, and its name as kernels have it.
    Atomic(Ty, bool, Rc<str>),
    /// A structure of the file or of the runtime.
    Record(Rc<HostRecord>),
    /// `std::vector<T>`, `std::array<T, n>`
    Vector(Box<HostType>, Option<Box<HostExpr>>),
    /// `std::thread`; `std::jthread`, which joins at its end.
    Thread(bool),
    /// Any other type.
    Other(String),
}

/// A declared name.
#[derive(Clone, Debug)]
pub(super) struct HostDeclared {
    pub(super) name: String,
    pub(super) range: Range<usize>,
    pub(super) of: HostType,
    /// The sizes of an array; `None`: the initialiser decides.
    pub(super) arrays: Vec<Option<HostExpr>>,
    pub(super) value: Option<HostExpr>,
}

/// A function or a lambda.
#[derive(Clone, Debug)]
pub(super) struct HostFunction {
    pub(super) name: String,
    pub(super) params: Vec<HostDeclared>,
    pub(super) body: Vec<HostStmt>,
    pub(super) range: Range<usize>,
}

/// A statement with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct HostStmt {
    pub(super) kind: HostStmtKind,
    pub(super) range: Range<usize>,
}

/// The form of a statement.
#[derive(Clone, Debug)]
pub(super) enum HostStmtKind {
    Empty,
    Declare(Vec<HostDeclared>),
    Expr(HostExpr),
    If(HostExpr, Box<HostStmt>, Option<Box<HostStmt>>),
    /// Any loop: `for (init; cond; step) body`; a `do` loop tests after the body.
    Loop {
        init: Option<Box<HostStmt>>,
        cond: Option<HostExpr>,
        step: Option<HostExpr>,
        body: Box<HostStmt>,
        test_last: bool,
    },
    /// `for (auto &s : streams) body`
    Elements(HostDeclared, HostExpr, Box<HostStmt>),
    Switch(HostExpr, Vec<HostStmt>),
    /// `case n:`; `default:` has no value.
    Case(Option<HostExpr>),
    Block(Vec<HostStmt>),
    Break,
    Continue,
    Return(Option<HostExpr>),
}
