//! Syntax trees of the C-like dialects.
//!
//! # Invariants
//! - No tree is deeper than [`MAX_DEPTH`]; walks over it may recurse.

use std::ops::Range;

use super::host::HostCall;
use super::inline_asm::Assembly;
use program::{BinOp, CmpOp, Ty};

/// How deep expressions and statements may be nested.
pub(super) const MAX_DEPTH: usize = 100;

/// An expression with its place in the text.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) range: Range<usize>,
    /// Number of levels of the tree.
    pub(super) depth: usize,
}

/// What an expression is.
#[derive(Debug)]
pub(super) enum ExprKind {
    Int(i64),
    Name,
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Complement(Box<Expr>),
    /// `*p`
    Deref(Box<Expr>),
    /// `&r`
    AddressOf(Box<Expr>),
    /// `a[i]`
    Index(Box<Expr>, Box<Expr>),
    Bin(BinOp, Box<Expr>, Box<Expr>),
    Cmp(CmpOp, Box<Expr>, Box<Expr>),
    /// `a && b` (true) or `a || b`.
    Logic(bool, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A call; the name has its own place.
    Call(Range<usize>, Vec<Expr>),
    /// `(int)a`, `(volatile int*)p`
    Cast(Target, Box<Expr>),
    /// CUDA: `cuda::atomic_ref<int, scope>(x)`
    Refer(Box<Reference>),
    /// `x++`, `--x`: the target, the number 1, and whether the sign is in front.
    Step {
        target: Box<Expr>,
        one: Box<Expr>,
        op: BinOp,
        prefix: bool,
    },
    /// CUDA: `threadIdx.x`
    Member,
    /// CUDA: `f.load(…)`; the name has its own place.
    Method(Box<Expr>, Range<usize>, Vec<Expr>),
}

/// The type of a cast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) ty: Ty,
    /// It is a pointer to something of type `ty`.
    pub(super) pointer: bool,
    /// What it points to is volatile.
    pub(super) volatile: bool,
}

/// CUDA: an atomic reference to an object.
#[derive(Debug)]
pub(super) struct Reference {
    /// Name of the template, such as `cuda::atomic_ref`.
    pub(super) name: Range<usize>,
    pub(super) ty: Ty,
    pub(super) scope: Option<Range<usize>>,
    pub(super) object: Expr,
}

/// A statement with its place in the text.
#[derive(Debug)]
pub(super) struct Stmt {
    pub(super) kind: StmtKind,
    pub(super) range: Range<usize>,
}

/// A declared register.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) ty: Ty,
    /// It is a pointer to something of type `ty`.
    pub(super) pointer: bool,
    /// CUDA: `auto`; the value decides the type.
    pub(super) auto: bool,
    pub(super) name: Range<usize>,
    pub(super) value: Option<Expr>,
}

/// What a statement is.
#[derive(Debug)]
pub(super) enum StmtKind {
    Empty,
    Declare(Vec<Declared>),
    /// CUDA: `cuda::atomic_ref<int, scope> f(x);`: the name and what it refers to.
    Refer(Range<usize>, Reference),
    /// `target = value`, or `target op= value`.
    Assign {
        target: Expr,
        op: Option<BinOp>,
        value: Expr,
    },
    Expr(Expr),
    If {
        cond: Expr,
        then: Box<Stmt>,
        other: Option<Box<Stmt>>,
    },
    /// All loops: `for (init; cond; step) body`; `do` tests behind the body.
    Loop {
        init: Option<Box<Stmt>>,
        cond: Option<Expr>,
        step: Option<Box<Stmt>>,
        body: Box<Stmt>,
        test_last: bool,
    },
    Block(Vec<Stmt>),
    /// `B1: barrier(…);`: the barrier's instance.
    Instance {
        number: i64,
        barrier: Box<Stmt>,
    },
    /// A call of the runtime by host code.
    Host(Box<HostCall>),
    /// CUDA: `asm volatile("…" : … : … : "memory");`
    Assembly(Box<Assembly>),
    Break,
    Continue,
    Return,
}
