//! Defines the syntax trees of the C-like dialects.
//!
//! Trees hold types as the code writes them, unresolved. Lowering finds the type of an expression
//! in the same walk as its meaning.
//!
//! # Invariants
//! - No tree is deeper than [`diag::MAX_NESTING`]; walks over it may recurse.

use std::ops::Range;
use std::rc::Rc;

use program::{BinOp, CmpOp, Format, Space, Ty};

/// An expression with its place in the text.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) range: Range<usize>,
    /// Number of levels of the tree.
    pub(super) depth: usize,
}

/// The form of an expression.
#[derive(Debug)]
pub(super) enum ExprKind {
    /// A number with the type that its spelling implies.
    Int(i64, Ty),
    /// The bits of a number of floating point.
    Float(i64, Format),
    Name,
    Neg(Box<Expr>),
    /// `+a`: promotes.
    Plus(Box<Expr>),
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
    /// `a, b`
    Comma(Box<Expr>, Box<Expr>),
    /// `target = value`, or `target op= value`.
    Assign(Option<BinOp>, Box<Expr>, Box<Expr>),
    /// A call; the name has its own place.
    Call(Range<usize>, Vec<Expr>),
    /// `(int)a`, `(volatile int*)p`, `static_cast<int>(a)`
    Cast(Box<TypeName>, Box<Expr>),
    /// OpenCL C: `(int2)(1, 2)`
    Vector(Box<TypeName>, Vec<Expr>),
    /// `P{1, 2}`, in C `(P){1, 2}`. Without a type, the context decides it, as in `return {1, 2};`.
    Braced(Option<Box<TypeName>>, Box<Initial>),
    /// `sizeof(int)`
    SizeOfType(Box<TypeName>),
    /// `sizeof a`
    SizeOf(Box<Expr>),
    /// CUDA: `cuda::atomic_ref<int, scope>(x)`
    Refer(Box<Reference>),
    /// `x++`, `--x`: the target, the number 1, and whether the operator is a prefix.
    Step {
        target: Box<Expr>,
        one: Box<Expr>,
        op: BinOp,
        prefix: bool,
    },
    /// `n.data`, and `p->data`, which is `(*p).data`; CUDA: `threadIdx.x`. The member has its own
    /// place.
    Field(Box<Expr>, Range<usize>),
    /// CUDA: `f.load(…)`; the name has its own place.
    Method(Box<Expr>, Range<usize>, Vec<Expr>),
    /// C++: `T(1, 2)`, an object without a name.
    Made(Box<TypeName>, Vec<Expr>),
    /// C++: `new (p) T(1, 2)`
    Placed(Box<Expr>, Box<TypeName>, Vec<Expr>),
    /// C++: `S<4>::value`, a constant; with arguments, a call.
    Scoped(Box<TypeName>, Range<usize>, Option<Vec<Expr>>),
    /// C++: `[&](int n) { … }`
    Lambda(Rc<Lambda>),
    /// C++: a call of what an expression gives.
    Invoke(Box<Expr>, Vec<Expr>),
    /// C++: `std::is_same_v<T, float>`: a property of types.
    Trait(Range<usize>, Vec<TypeName>),
}

impl Expr {
    /// The direct subexpressions.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Name
            | ExprKind::SizeOfType(_)
            | ExprKind::Lambda(_)
            | ExprKind::Trait(..) => Vec::new(),
            ExprKind::Made(_, all) => all.iter().collect(),
            ExprKind::Scoped(_, _, all) => all.iter().flatten().collect(),
            ExprKind::Placed(of, _, all) | ExprKind::Invoke(of, all) => {
                std::iter::once(&**of).chain(all).collect()
            }
            ExprKind::Neg(a)
            | ExprKind::Plus(a)
            | ExprKind::Not(a)
            | ExprKind::Complement(a)
            | ExprKind::Deref(a)
            | ExprKind::AddressOf(a)
            | ExprKind::Cast(_, a)
            | ExprKind::Field(a, _)
            | ExprKind::SizeOf(a)
            | ExprKind::Step { target: a, .. } => vec![a],
            ExprKind::Index(a, b)
            | ExprKind::Bin(_, a, b)
            | ExprKind::Cmp(_, a, b)
            | ExprKind::Logic(_, a, b)
            | ExprKind::Comma(a, b)
            | ExprKind::Assign(_, a, b) => vec![a, b],
            ExprKind::Choice(a, b, c) => vec![a, b, c],
            ExprKind::Call(_, all) | ExprKind::Vector(_, all) => all.iter().collect(),
            ExprKind::Refer(reference) => vec![&reference.object],
            ExprKind::Method(object, _, all) => std::iter::once(&**object).chain(all).collect(),
            ExprKind::Braced(_, all) => {
                let mut parts = Vec::new();
                all.each_expr(&mut |part| parts.push(part));
                parts
            }
        }
    }
}

/// CUDA: an atomic reference to an object.
#[derive(Debug)]
pub(super) struct Reference {
    /// The name of the template, such as `cuda::atomic_ref`.
    pub(super) name: Range<usize>,
    /// The first template argument; `None`: the type of the object.
    pub(super) ty: Option<TypeName>,
    pub(super) scope: Option<Range<usize>>,
    pub(super) object: Expr,
}

/// The qualifiers of a type or a `*`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Qualifiers {
    pub(super) constant: bool,
    pub(super) volatile: bool,
    pub(super) atomic: bool,
    /// OpenCL C: the address space.
    pub(super) space: Option<Space>,
    /// The code names the generic address space, in which no object lies.
    pub(super) generic: bool,
}

/// The type that a declaration begins with.
#[derive(Debug)]
pub(super) enum Base {
    Void,
    Bool,
    Int(Ty),
    Float(Format),
    /// The type of the initialiser.
    Auto,
    /// A type that the code has named.
    Named(Range<usize>),
    Enum(Rc<EnumSyntax>),
    Struct(Rc<StructSyntax>),
    /// A class of the CUDA C++ library, with its arguments.
    Class(Range<usize>),
    /// An atomic reference; its first template argument may be missing.
    Refer(Rc<Reference>),
    /// C++: an instance of a class template of the code.
    Instance(Range<usize>, Rc<Vec<TemplateArgument>>),
    /// C++: `decltype(e)`
    TypeOf(Rc<Expr>),
    /// CUDA: a group of threads.
    Group,
    /// OpenCL C: an image.
    Image(Range<usize>),
    /// A name for the type of pointers to functions.
    Function(Range<usize>),
}

/// `struct S { int a, *p; int b[2]; }`
#[derive(Debug)]
pub(super) struct StructSyntax {
    pub(super) name: Option<Range<usize>>,
    /// `None`: the structure is defined elsewhere.
    pub(super) members: Option<Vec<Declaration>>,
    /// C++: its functions.
    pub(super) functions: Vec<Rc<Function>>,
    /// C++: constants of the class, and types that it defines.
    pub(super) constants: Vec<Declaration>,
    /// C++: its base classes.
    pub(super) bases: Vec<TypeName>,
    /// C++: the parameters of its template; empty: it is no template.
    pub(super) template: Vec<TemplateParameter>,
    /// C++: the arguments that this is the specialisation for.
    pub(super) specialises: Option<Vec<TemplateArgument>>,
    /// The alignment that its declaration demands.
    pub(super) align: Option<Rc<Expr>>,
    /// All members begin at its address.
    pub(super) is_union: bool,
    pub(super) range: Range<usize>,
}

/// `enum E : int { A, B = 2 }`
#[derive(Debug)]
pub(super) struct EnumSyntax {
    pub(super) name: Option<Range<usize>>,
    pub(super) underlying: Option<Ty>,
    /// C++: `enum class`.
    pub(super) scoped: bool,
    /// The enumerators; `None`: the enumeration was defined before.
    pub(super) all: Option<Vec<(Range<usize>, Option<Expr>)>>,
}

/// A specifier for the place and lifetime of an object, or for the callers of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    Static,
    Extern,
    Register,
    Typedef,
    Constexpr,
    /// `inline` and similar words, for functions only.
    Inline,
    /// For functions only: an instance of a template with a pack.
    OfPack,
    /// `__shared__`
    Shared,
    /// `__constant__`
    Constant,
    /// `__device__`, `__host__`
    Device,
    /// `__global__`, `kernel`
    Kernel,
    /// `read_only`, for parameters that are images only.
    ReadOnly,
    /// `write_only`, likewise.
    WriteOnly,
    /// `read_write`, likewise.
    ReadWrite,
    /// `pipe`, for parameters only.
    Pipe,
    /// `alignas(16)`. The checker aligns every object at least this much.
    Aligned,
}

/// The specifiers that a declaration begins with.
#[derive(Debug)]
pub(super) struct Specifiers {
    pub(super) base: Base,
    pub(super) of_base: Qualifiers,
    pub(super) storage: Vec<(Storage, Range<usize>)>,
    pub(super) range: Range<usize>,
}

impl Specifiers {
    /// The place of a storage class, if the declaration has it.
    pub(super) fn has(&self, storage: Storage) -> Option<&Range<usize>> {
        self.storage.iter().find(|s| s.0 == storage).map(|s| &s.1)
    }
}

/// The declarator around a declared name: `*const p[4]`.
#[derive(Debug, Default)]
pub(super) struct Declarator {
    /// The qualifiers of each `*`, from the left.
    pub(super) pointers: Vec<Qualifiers>,
    /// C++: `&` or `&&`.
    pub(super) reference: bool,
    /// C++: `&&`.
    pub(super) temporary: bool,
    /// It is a pointer to a function: `(*f)(int)`.
    pub(super) calls: bool,
    /// C++: the names of `auto [x, y]`.
    pub(super) parts: Vec<Range<usize>>,
    /// Empty if the declarator has no name.
    pub(super) name: Range<usize>,
    /// Array sizes from the left; `None`: the initialiser decides.
    pub(super) arrays: Vec<(Option<Expr>, Range<usize>)>,
}

/// A type without a declared name, as in a cast.
#[derive(Debug)]
pub(super) struct TypeName {
    pub(super) specifiers: Specifiers,
    pub(super) declarator: Declarator,
}

impl TypeName {
    /// Whether a parameter of this type takes any type.
    pub(super) fn is_generic(&self) -> bool {
        matches!(self.specifiers.base, Base::Auto)
    }
}

/// `int *p = &x, n;`
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) specifiers: Specifiers,
    pub(super) all: Vec<Declared>,
}

/// A declared name.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) declarator: Declarator,
    pub(super) value: Option<Initial>,
}

/// `__device__ int f(int *p, int v) { … }`
#[derive(Debug)]
pub(super) struct Function {
    /// The return type; its declarator holds the name of the function.
    pub(super) result: TypeName,
    pub(super) params: Vec<TypeName>,
    /// The default argument of each parameter.
    pub(super) defaults: Vec<Option<Expr>>,
    /// The parameters of its template; empty: it is no template.
    pub(super) template: Vec<TemplateParameter>,
    /// The arguments that this is the specialisation for.
    pub(super) specialises: Option<Vec<TemplateArgument>>,
    /// C++: a member function that does not change its object.
    pub(super) constant: bool,
    /// C++: a constructor, with the initialisers of members.
    pub(super) constructs: Option<Vec<(Range<usize>, Initial)>>,
    pub(super) body: Vec<Stmt>,
}

/// A function that is declared, and not defined: `int f(int n);`
#[derive(Debug)]
pub(super) struct Prototype {
    /// The return type; its declarator holds the name of the function.
    pub(super) result: TypeName,
    pub(super) params: Vec<TypeName>,
}

impl Function {
    /// Whether it is an instance of a template with a pack.
    pub(super) fn is_of_pack(&self) -> bool {
        self.result.specifiers.has(Storage::OfPack).is_some()
    }
}

/// A lambda.
#[derive(Debug)]
pub(super) struct Lambda {
    /// How it captures names that it does not list: by reference (true), by value, or not at all.
    pub(super) default: Option<bool>,
    pub(super) captures: Vec<Capture>,
    pub(super) function: Rc<Function>,
}

/// One listed capture.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) name: Range<usize>,
    pub(super) reference: bool,
    /// `[n = x + 1]`
    pub(super) value: Option<Expr>,
}

/// An initialiser.
#[derive(Debug)]
pub(super) enum Initial {
    Value(Expr),
    /// `{1, 2}`
    List(Vec<Initial>, Range<usize>),
    /// `.a = 1` in a list.
    Member(Range<usize>, Box<Initial>),
    /// `(1, 2)`, behind the name of a variable.
    Call(Vec<Expr>, Range<usize>),
}

/// A statement with its place in the text.
#[derive(Debug)]
pub(super) struct Stmt {
    pub(super) kind: StmtKind,
    pub(super) range: Range<usize>,
}

/// The form of a statement.
#[derive(Debug)]
pub(super) enum StmtKind {
    Empty,
    /// A declaration of a function without a body.
    Prototype(Rc<Prototype>),
    Declare(Declaration),
    Expr(Expr),
    If {
        /// C++: `if constexpr`.
        constant: bool,
        cond: Expr,
        then: Box<Stmt>,
        other: Option<Box<Stmt>>,
    },
    /// Any loop: `for (init; cond; step) body`; a `do` loop tests after the body.
    Loop {
        init: Option<Box<Stmt>>,
        cond: Option<Expr>,
        step: Option<Box<Stmt>>,
        body: Box<Stmt>,
        test_last: bool,
    },
    /// C++: `for (int v : a) body`.
    Elements {
        element: Box<TypeName>,
        over: Expr,
        body: Box<Stmt>,
    },
    Switch {
        value: Expr,
        body: Box<Stmt>,
    },
    /// `case n:`; `default:` has no value.
    Case(Option<Expr>),
    Block(Vec<Stmt>),
    /// `B1: barrier(…);`: a barrier with the number of its instance.
    Instance {
        number: i64,
        barrier: Box<Stmt>,
    },
    /// `done: statement`
    Labelled(Range<usize>, Box<Stmt>),
    /// `goto done;`
    Goto(Range<usize>),
    /// A runtime call in host code.
    Host(Box<HostCall>),
    /// CUDA: `asm volatile("…" : … : … : "memory");`
    Assembly(Box<Assembly>),
    /// `static_assert(n == 4, "…");`
    Assert(Expr),
    /// A function; `None`: a declaration of a function that is defined elsewhere.
    Function(Option<Rc<Function>>),
    Break,
    Continue,
    Return(Option<Expr>),
}

impl StmtKind {
    /// The statement of this form at a place in the text.
    pub(super) fn at(self, range: &Range<usize>) -> Stmt {
        Stmt {
            kind: self,
            range: range.clone(),
        }
    }
}

impl Stmt {
    /// Visits the outermost expressions and the initialisers of this statement in source order.
    pub(super) fn each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match &self.kind {
            StmtKind::Declare(declaration) => {
                for declared in &declaration.all {
                    if let Some(value) = &declared.value {
                        value.each_expr(f);
                    }
                }
            }
            StmtKind::Expr(e)
            | StmtKind::Assert(e)
            | StmtKind::Return(Some(e))
            | StmtKind::Case(Some(e)) => f(e),
            StmtKind::If {
                cond, then, other, ..
            } => {
                f(cond);
                then.each_expr(f);
                other.iter().for_each(|s| s.each_expr(f));
            }
            StmtKind::Loop {
                init,
                cond,
                step,
                body,
                ..
            } => {
                init.iter().for_each(|s| s.each_expr(f));
                cond.iter().for_each(&mut *f);
                body.each_expr(f);
                step.iter().for_each(|s| s.each_expr(f));
            }
            StmtKind::Switch { value, body }
            | StmtKind::Elements {
                over: value, body, ..
            } => {
                f(value);
                body.each_expr(f);
            }
            StmtKind::Block(all) => all.iter().for_each(|s| s.each_expr(f)),
            StmtKind::Instance { barrier: stmt, .. } | StmtKind::Labelled(_, stmt) => {
                stmt.each_expr(f);
            }
            StmtKind::Assembly(assembly) => assembly.values().for_each(f),
            StmtKind::Empty
            | StmtKind::Host(_)
            | StmtKind::Function(_)
            | StmtKind::Prototype(_)
            | StmtKind::Goto(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(None)
            | StmtKind::Case(None) => {}
        }
    }

    /// Whether control never reaches the end of this statement.
    pub(super) fn always_returns(&self) -> bool {
        match &self.kind {
            StmtKind::Return(_) | StmtKind::Goto(_) => true,
            StmtKind::Labelled(_, stmt) => stmt.always_returns(),
            StmtKind::Block(all) => all.last().is_some_and(Stmt::always_returns),
            StmtKind::If {
                then,
                other: Some(other),
                ..
            } => then.always_returns() && other.always_returns(),
            StmtKind::Switch { body, .. } => body.is_exhaustive(),
            _ => false,
        }
    }

    /// Whether this body of a `switch` returns for each value.
    fn is_exhaustive(&self) -> bool {
        let StmtKind::Block(all) = &self.kind else {
            return false;
        };
        let otherwise = all
            .iter()
            .any(|stmt| matches!(stmt.kind, StmtKind::Case(None)));
        otherwise && all.last().is_some_and(Stmt::always_returns) && !all.iter().any(Stmt::breaks)
    }

    /// Whether a `break` in it leaves the statement around it.
    fn breaks(&self) -> bool {
        match &self.kind {
            StmtKind::Break => true,
            StmtKind::Labelled(_, stmt) => stmt.breaks(),
            StmtKind::Block(all) => all.iter().any(Stmt::breaks),
            StmtKind::If { then, other, .. } => {
                then.breaks() || other.as_ref().is_some_and(|other| other.breaks())
            }
            _ => false,
        }
    }
}

impl Initial {
    pub(super) fn each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Initial::Value(value) => f(value),
            Initial::List(all, _) => all.iter().for_each(|one| one.each_expr(f)),
            Initial::Member(_, value) => value.each_expr(f),
            Initial::Call(all, _) => all.iter().for_each(f),
        }
    }
}

/// An operand.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    /// `s`, `NULL`, `CL_TRUE`, `CL_MAP_READ | CL_MAP_WRITE`
    Names(Vec<Range<usize>>),
    /// `&e`
    Address(Range<usize>),
    /// `&a[3]`: the name, and the index.
    Element(Range<usize>, u32, Range<usize>),
    /// A number.
    Int(i64, Range<usize>),
    /// `sizeof(x)` or `4 * sizeof(int)`: the factor, and the operand of `sizeof`.
    Size(i64, Range<usize>),
    /// `{e, f}` or `dim3(2, 2)`
    List(Vec<Arg>, Range<usize>),
    /// `ndrange_2D({2, 2}, {1, 1})`: the number of dimensions, and the sizes.
    Range(usize, Vec<Arg>, Range<usize>),
    /// `^{ child(); }` or `^(local void *p){ child(p); }`: the kernel, its local memory, and the
    /// place of the whole block.
    Block(Range<usize>, Vec<Range<usize>>, Range<usize>),
}

impl Arg {
    /// The place of the operand.
    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Arg::Names(all) => all[0].start..all[all.len() - 1].end,
            Arg::Address(r)
            | Arg::Element(_, _, r)
            | Arg::Int(_, r)
            | Arg::Size(_, r)
            | Arg::List(_, r)
            | Arg::Range(_, _, r)
            | Arg::Block(_, _, r) => r.clone(),
        }
    }
}

/// A call of the runtime, or a declaration of a variable for such calls.
#[derive(Clone, Debug)]
pub(super) struct HostCall {
    /// `u` in `cl_event u = clCreateUserEvent(context);`
    pub(super) result: Option<Range<usize>>,
    /// The name of the function; for a launch, the kernel; `None`: only a declaration.
    pub(super) name: Option<Range<usize>>,
    /// The operands; for a launch, those between the triple brackets.
    pub(super) args: Vec<Arg>,
    pub(super) launch: bool,
}

/// An operand of a statement.
#[derive(Debug)]
pub(super) struct AssemblyOperand {
    /// The contents of the constraint string.
    pub(super) constraint: Range<usize>,
    pub(super) value: Expr,
}

/// An assembly statement.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The contents of the strings of its text.
    pub(super) strings: Vec<Range<usize>>,
    pub(super) volatile: bool,
    pub(super) outputs: Vec<AssemblyOperand>,
    pub(super) inputs: Vec<AssemblyOperand>,
    /// It declares that it touches memory.
    pub(super) memory: bool,
}

impl Assembly {
    /// The values of all operands.
    pub(super) fn values(&self) -> impl Iterator<Item = &Expr> {
        self.outputs
            .iter()
            .chain(&self.inputs)
            .map(|operand| &operand.value)
    }
}

/// A parameter of a template.
#[derive(Debug)]
pub(super) struct TemplateParameter {
    pub(super) name: Range<usize>,
    /// The type of a constant; `None`: the parameter is a type.
    pub(super) of: Option<TypeName>,
    /// Whether its arguments are words of the library, such as scopes.
    pub(super) words: bool,
    pub(super) default: Option<TemplateArgument>,
}

/// An argument of a template.
#[derive(Debug)]
pub(super) enum TemplateArgument {
    Type(TypeName),
    Value(Expr),
}
