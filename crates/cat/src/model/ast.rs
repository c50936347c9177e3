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
pub struct Expr {
    /// Its form.
    pub kind: ExprKind,
    /// Its span without brackets.
    pub span: Span,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
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

/// Operators with two or more operands. Longer lists of [`Chain::Diff`] group to the left; the
/// others are associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
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
pub enum ExprKind {
    /// A name.
    Name(String),
    /// `_`
    Universe,
    /// `0`, a set or a relation as the context needs.
    Zero,
    /// `{}`
    EmptySet,
    /// A unary operator.
    Unary(Unary, Box<Expr>),
    /// An operator with several operands.
    Chain(Chain, Vec<Expr>),
    /// `f(e, …)` or `f e`
    Call(Ident, Vec<Expr>),
    /// `let x = e and … in e`
    Let(Vec<Binding>, Box<Expr>),
    /// `if "variant" then e else e`
    If(String, Box<Expr>, Box<Expr>),
    /// `try e with e`
    Try(Box<Expr>, Box<Expr>),
    /// A construct that the parser recognises and the language does not support: its name and its
    /// text.
    Unsupported(String, String),
}

/// `x = e` or `f(a, b) = e`
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The defined name.
    pub name: Ident,
    /// The parameters of a function.
    pub params: Option<Vec<Ident>>,
    /// The right-hand side.
    pub body: Expr,
}

/// `function` or `order`.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeDecl {
    /// Its name.
    pub name: Ident,
    /// The word after the colon.
    pub shape: Ident,
    /// Upper bound.
    pub within: Expr,
    /// Lower bound.
    pub containing: Option<Expr>,
    /// Pairs that the order must decide.
    pub covering: Option<Expr>,
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
    pub expr: Expr,
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
pub enum StmtKind {
    /// `let` or `let rec`
    Let {
        /// Whether it is recursive.
        recursive: bool,
        /// The definitions, joined by `and`.
        bindings: Vec<Binding>,
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
    Show(Vec<(Expr, Option<Ident>)>),
    /// `unshow x, …`
    Unshow(Vec<Ident>),
    /// `showflag x, …`
    ShowFlag(Vec<Ident>),
    /// `include "file"`
    Include(String),
    /// `procedure p(x) = … end`
    Procedure(Ident, Vec<Ident>, Vec<Stmt>),
    /// `call p(e)`
    Call(Ident, Vec<Expr>),
    /// `with x from e`
    With(Ident, Expr),
    /// `if "variant" … else … end`
    If(String, Vec<Stmt>, Vec<Stmt>),
}

/// A statement with its span.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its form.
    pub kind: StmtKind,
    /// Its span.
    pub span: Span,
}

impl PartialEq for Stmt {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// The names and strings before the first statement, strings in quotes.
    pub head: Vec<String>,
    /// The first string of the head.
    pub title: String,
    /// The first comment.
    pub header: String,
    /// The statements.
    pub statements: Vec<Stmt>,
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head && self.statements == other.statements
    }
}

impl Expr {
    /// Calls `visit` on this expression and all below it, outermost first; stops early when it
    /// returns false.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if !visit(self) {
            return false;
        }
        match &self.kind {
            ExprKind::Name(_)
            | ExprKind::Universe
            | ExprKind::Zero
            | ExprKind::EmptySet
            | ExprKind::Unsupported(..) => true,
            ExprKind::Unary(_, e) => e.walk(visit),
            ExprKind::Chain(_, list) | ExprKind::Call(_, list) => {
                list.iter().all(|e| e.walk(visit))
            }
            ExprKind::Let(bindings, e) => {
                bindings.iter().all(|b| b.body.walk(visit)) && e.walk(visit)
            }
            ExprKind::If(_, a, b) | ExprKind::Try(a, b) => a.walk(visit) && b.walk(visit),
        }
    }

    /// The first unsupported construct in it: its name and span.
    pub fn unsupported(&self) -> Option<(String, Span)> {
        let mut found = None;
        self.walk(&mut |e| {
            match &e.kind {
                ExprKind::Unsupported(what, _) => found = Some((what.clone(), e.span)),
                ExprKind::Call(f, args) if args.is_empty() => {
                    found = Some((format!("{}()", f.name), e.span))
                }
                _ => {}
            }
            found.is_none()
        });
        found
    }
}
