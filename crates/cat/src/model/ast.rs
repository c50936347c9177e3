//! The syntax tree of a model file.
//!
//! # Invariants
//! - Chains of `|`, `;`, `&` and `\` are flat lists, so a tree is as deep as its brackets. The
//!   parser limits these; every pass over a tree may therefore recurse.
//! - Equality ignores spans and comments.

use diag::Span;

/// A name with its span.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Its span.
    pub span: Span,
}

impl PartialEq for Ident {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// An expression with its span.
#[derive(Clone, Debug)]
pub struct CatExpr {
    /// Its form.
    pub kind: CatExprKind,
    /// Its span without brackets.
    pub span: Span,
}

impl PartialEq for CatExpr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `~e`
    Not,
    /// `e^-1`
    Inverse,
    /// `e?`
    Optional,
    /// `e+`
    Plus,
    /// `e*`
    Star,
    /// `[e]`
    Identity,
}

/// Operators with two or more operands. Longer lists of [`ChainOp::Diff`] group to the left; the
/// others are associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainOp {
    /// `e | e`
    Union,
    /// `e ; e`
    Seq,
    /// `e \ e`
    Diff,
    /// `e & e`
    Inter,
    /// `e * e`
    Product,
}

/// The forms of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum CatExprKind {
    /// A name.
    Name(String),
    /// `_`
    Universe,
    /// `0`, a set or a relation as the context needs.
    Zero,
    /// `{}`
    EmptySet,
    /// A unary operator.
    Unary(UnaryOp, Box<CatExpr>),
    /// An operator with several operands.
    Chain(ChainOp, Vec<CatExpr>),
    /// `f(e, …)` or `f e`
    Call(Ident, Vec<CatExpr>),
    /// `let x = e and … in e`
    Let(Vec<LetBinding>, Box<CatExpr>),
    /// `if "variant" then e else e`
    If(String, Box<CatExpr>, Box<CatExpr>),
    /// `try e with e`
    Try(Box<CatExpr>, Box<CatExpr>),
    /// A construct that the parser recognises and the language does not support: its name and its
    /// text.
    Unsupported(String, String),
}

/// `x = e` or `f(a, b) = e`
#[derive(Clone, Debug, PartialEq)]
pub struct LetBinding {
    /// The defined name.
    pub name: Ident,
    /// The parameters of a function.
    pub params: Option<Vec<Ident>>,
    /// The right-hand side.
    pub body: CatExpr,
}

/// `function` or `order`.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeDecl {
    /// Its name.
    pub name: Ident,
    /// The word after the colon.
    pub shape: Ident,
    /// Upper bound.
    pub within: CatExpr,
    /// Lower bound.
    pub containing: Option<CatExpr>,
    /// Pairs that the order must decide.
    pub covering: Option<CatExpr>,
}

/// `acyclic`, `irreflexive`, `empty`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestWord {
    /// `acyclic`
    Acyclic,
    /// `irreflexive`
    Irreflexive,
    /// `empty`
    Empty,
}

/// The purpose of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestRole {
    /// Rejects executions that fail it.
    Axiom,
    /// `flag`: marks executions that pass it.
    Flag,
    /// `undefined_unless`: marks executions that fail it.
    UndefinedUnless,
}

/// An axiom or a flag.
#[derive(Clone, Debug)]
pub struct TestStmt {
    /// Its purpose.
    pub role: TestRole,
    /// Whether a `~` precedes it.
    pub negated: bool,
    /// The test.
    pub word: TestWord,
    /// The tested expression.
    pub expr: CatExpr,
    /// `as NAME`
    pub name: Option<Ident>,
    /// `means WORD`, for flags.
    pub means: Option<Ident>,
    /// The comment directly above.
    pub doc: String,
}

impl PartialEq for TestStmt {
    fn eq(&self, other: &Self) -> bool {
        (self.role, self.negated, self.word) == (other.role, other.negated, other.word)
            && self.expr == other.expr
            && self.name == other.name
            && self.means == other.means
    }
}

/// The forms of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum CatStmtKind {
    /// `let` or `let rec`
    Let {
        /// Whether it is recursive.
        recursive: bool,
        /// The definitions, joined by `and`.
        bindings: Vec<LetBinding>,
    },
    /// `free x : shape within e containing e covering e`
    Free(Box<FreeDecl>),
    /// `values x`
    Values(Ident),
    /// `final x`
    Final(Ident),
    /// `option name = value`
    Option(Ident, Ident),
    /// An axiom or flag.
    Test(Box<TestStmt>),
    /// `show e as x, …`
    Show(Vec<(CatExpr, Option<Ident>)>),
    /// `unshow x, …`
    Unshow(Vec<Ident>),
    /// `showflag x, …`
    ShowFlag(Vec<Ident>),
    /// `include "file"`
    Include(String),
    /// `procedure p(x) = … end`
    Procedure(Ident, Vec<Ident>, Vec<CatStmt>),
    /// `call p(e)`
    Call(Ident, Vec<CatExpr>),
    /// `with x from e`
    With(Ident, CatExpr),
    /// `if "variant" … else … end`
    If(String, Vec<CatStmt>, Vec<CatStmt>),
}

/// A statement with its span.
#[derive(Clone, Debug)]
pub struct CatStmt {
    /// Its form.
    pub kind: CatStmtKind,
    /// Its span.
    pub span: Span,
}

impl PartialEq for CatStmt {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct ModelFile {
    /// The names and strings before the first statement, strings in quotes.
    pub head: Vec<String>,
    /// The first string of the head.
    pub title: String,
    /// The first comment.
    pub header: String,
    /// The statements.
    pub statements: Vec<CatStmt>,
}

impl PartialEq for ModelFile {
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head && self.statements == other.statements
    }
}

impl CatExpr {
    /// Calls `visit` on this expression and all below it, outermost first; stops early when it
    /// returns false.
    pub fn walk(&self, visit: &mut dyn FnMut(&CatExpr) -> bool) -> bool {
        if !visit(self) {
            return false;
        }
        match &self.kind {
            CatExprKind::Name(_)
            | CatExprKind::Universe
            | CatExprKind::Zero
            | CatExprKind::EmptySet
            | CatExprKind::Unsupported(..) => true,
            CatExprKind::Unary(_, e) => e.walk(visit),
            CatExprKind::Chain(_, list) | CatExprKind::Call(_, list) => {
                list.iter().all(|e| e.walk(visit))
            }
            CatExprKind::Let(bindings, e) => {
                bindings.iter().all(|b| b.body.walk(visit)) && e.walk(visit)
            }
            CatExprKind::If(_, a, b) | CatExprKind::Try(a, b) => a.walk(visit) && b.walk(visit),
        }
    }

    /// The first unsupported construct in it: its name and span.
    pub fn unsupported(&self) -> Option<(String, Span)> {
        let mut found = None;
        self.walk(&mut |e| {
            match &e.kind {
                CatExprKind::Unsupported(what, _) => found = Some((what.clone(), e.span)),
                CatExprKind::Call(f, args) if args.is_empty() => {
                    found = Some((format!("{}()", f.name), e.span))
                }
                _ => {}
            }
            found.is_none()
        });
        found
    }
}
