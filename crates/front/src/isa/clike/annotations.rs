//! Lowers the annotations of verifiers in kernels, as GPUVerify has them: preconditions, assertions
//! and invariants; and what code tells compilers to assume.
//!
//! # Sources
//! - GPUVerify, *Specifying preconditions, loop invariants, assertions*; `annotations.h` of its
//!   distribution.
//!
//! # Where we differ
//! - An annotation about the accesses of threads, such as `__write_implies`, describes a proof.
//!   Fencepost warns that it does not use it. A value made of one is refused.
//! - A precondition of a kernel that the launch breaks is an error. Of a kernel for every launch,
//!   threads stop in front of it.
//! - Reads of memory in an annotation are accesses of the program.

use super::ast::{Expr as Tree, ExprKind};
use super::calls::{Does, FunctionRow, In, Role};
use super::lower::Lowering;
use super::types::{Type, Value, folded};
use diag::{Sink, Span};
use program::{BinOp, Expr, Init, Op, RegId, Ty};

/// The claim of an annotation about its condition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It holds: of a kernel, because the launch makes it so; of a function, wherever it is called.
    Required,
    /// It holds in every execution.
    Assumed,
    /// The program promises it.
    Asserted,
    /// The program promises it, as a step of a proof.
    Invariant,
}

const CLAIMS: &[(&str, Claim)] = &[
    ("__requires", Claim::Required),
    ("__global_requires", Claim::Required),
    ("__assume", Claim::Assumed),
    ("__builtin_assume", Claim::Asserted),
    ("__assert", Claim::Asserted),
    ("__global_assert", Claim::Asserted),
    ("__invariant", Claim::Invariant),
    ("__global_invariant", Claim::Invariant),
    ("__function_wide_invariant", Claim::Invariant),
];

/// Annotations of proofs, without an effect on any execution. Candidates are guesses: a proof may
/// drop them.
const STEPS: &[&str] = &[
    "__barrier_invariant",
    "__requires_fresh_array",
    "__candidate_",
    "__function_wide_candidate_",
];

/// How annotations begin that state what holds behind a function, or which memory it accesses.
const CONTRACTS: &[&str] = &[
    "__ensures",
    "__global_ensures",
    "__function_wide_ensures",
    "__reads_from",
    "__writes_to",
];

/// Operators that annotations are written with.
const OPERATORS: &[&str] = &["__implies", "__ite", "__enabled", "__is_pow2"];

/// How the names of functions begin that speak of other threads or of the accesses so far.
const OF_PROOFS: &[&str] = &[
    "__read",
    "__write",
    "__no_read",
    "__no_write",
    "__accessed",
    "__ptr_",
    "__other_",
    "__uniform_",
    "__distinct_",
    "__exclusive",
    "__at_most_one",
    "__return_val",
    "__old_",
    "__array_snapshot",
    "__dominator_enabled",
    "__atomic_has_taken_value",
    "__axiom",
    "__add_noovfl",
    "__uninterpreted_function",
];

/// Warns of an annotation that has no effect here.
pub(super) fn warn_unused(span: Span, sink: &mut Sink) {
    let message = "this annotation is neither checked nor used";
    sink.warn("unchecked-annotation", span, message, |d| {
        d.label("it is a part of a proof: it speaks of other threads, or of accesses")
    });
}

/// The assertion of C, which stops a program where it does not hold.
static ASSERTION: FunctionRow = FunctionRow {
    name: "__assert",
    dialects: In::Both,
    does: Does::Abort,
    args: &[Role::Val],
    fixed: None,
    words: None,
};

/// Whether an annotation of that name makes a claim: no operand of it has an effect.
pub(super) fn is_claim(name: &str) -> bool {
    let mut of_proofs = STEPS.iter().chain(CONTRACTS);
    of_proofs.any(|step| name.starts_with(step)) || CLAIMS.iter().any(|row| row.0 == name)
}

/// Whether a function of that name is an operator of annotations: it does nothing.
pub(super) fn is_operator(name: &str) -> bool {
    OPERATORS.contains(&name)
}

/// Whether an annotation of that name speaks of other threads or of the accesses so far.
pub(super) fn is_of_proof(name: &str) -> bool {
    OF_PROOFS.iter().any(|of| name.starts_with(of))
}

/// The register that an operation writes.
fn written(op: &Op) -> Option<RegId> {
    match op {
        Op::Load { dst, .. }
        | Op::Take { dst, .. }
        | Op::Choice { dst, .. }
        | Op::Status { dst, .. }
        | Op::Assign { dst, .. } => Some(*dst),
        Op::Rmw { dst, .. } => *dst,
        _ => None,
    }
}

impl Lowering<'_, '_> {
    /// Lowers an annotation, or an operator of one; `None`: the call is another one.
    pub(super) fn annotation(&mut self, tree: &Tree, name: &str, args: &[Tree]) -> Option<Value> {
        if !name.starts_with("__") {
            return None;
        }
        if STEPS.iter().any(|step| name.starts_with(step)) {
            return Some(Value::void());
        }
        if self.is_of_specification(name) {
            let message = format!("`{name}` says what a function elsewhere does to memory");
            self.error("unsupported-function", &tree.range, message, |d| {
                d.label("expected code that does it")
                    .help("add the definition of the function")
            });
            return Some(Value::void());
        }
        if CONTRACTS.iter().any(|contract| name.starts_with(contract)) {
            warn_unused(self.unit.text.span(tree.range.clone()), self.sink);
            return Some(Value::void());
        }
        if is_operator(name) {
            return Some(self.operator_of_annotation(tree, name, args));
        }
        if is_of_proof(name) {
            self.error(
                "unsupported-function",
                &tree.range,
                format!("`{name}` is not supported: it describes a proof"),
                |d| {
                    d.label("it speaks of other threads, or of the accesses so far")
                        .help("leave it out: races are found without it")
                },
            );
            return Some(Value::int(0));
        }
        let claim = CLAIMS.iter().find(|row| row.0 == name)?.1;
        if args.iter().any(|holds| self.speaks_of_proof(holds)) {
            warn_unused(self.unit.text.span(tree.range.clone()), self.sink);
            return Some(Value::void());
        }
        let [holds] = args else {
            self.error(
                "wrong-operands",
                &tree.range,
                format!("`{name}` takes one condition"),
                |d| d.label("expected `(condition)`"),
            );
            return Some(Value::void());
        };
        self.claim(tree, name, claim, holds);
        Some(Value::void())
    }

    /// Whether an annotation stands for the accesses of a function that is defined elsewhere:
    /// GPUVerify has such specifications in functions `__spec_…`.
    fn is_of_specification(&self, name: &str) -> bool {
        let around = self.frames.last();
        let is_access = name.starts_with("__reads_from") || name.starts_with("__writes_to");
        is_access && around.is_some_and(|frame| frame.name.starts_with("__spec_"))
    }

    fn claim(&mut self, tree: &Tree, name: &str, claim: Claim, holds: &Tree) {
        let errors = self.sink.errors();
        let value = self.condition(holds);
        if self.sink.errors() > errors {
            return;
        }
        let known = value.is_true().value(&|at| match at {
            Expr::Reg(reg) => self.value_at_entry(*reg),
            _ => None,
        });
        let of_kernel = self.frames.is_empty();
        // In an open launch, threads stop where it does not hold. The same goes for a source file:
        // the reader may have chosen the launch and its arguments.
        if self.env.places_are_registers || (self.unit.of_file && known.is_none_or(|n| n == 0)) {
            drop(self.function(&ASSERTION, tree, std::slice::from_ref(holds), None));
            return;
        }
        match (claim, known) {
            (_, Some(truth)) if truth != 0 => {}
            (Claim::Required, Some(_)) if of_kernel => {
                self.error(
                    "broken-precondition",
                    &tree.range,
                    "the launch breaks this precondition",
                    |d| {
                        d.label("false for the values of the test")
                            .help("give the kernel arguments, or a grid, for which it holds")
                    },
                );
            }
            (Claim::Assumed, _) | (Claim::Required, None)
                if of_kernel || claim == Claim::Assumed =>
            {
                self.error(
                    "unsupported",
                    &tree.range,
                    format!("`{name}` of values that are not known before the kernel runs"),
                    |d| {
                        d.label("expected a condition on arguments and on the launch")
                            .help("write `__assert(…)`, or `if (!(…)) return;`")
                    },
                );
            }
            _ => drop(self.function(&ASSERTION, tree, std::slice::from_ref(holds), None)),
        }
    }

    /// The value of a register that still has the one that the launch gave it.
    fn value_at_entry(&self, reg: RegId) -> Option<i64> {
        // Code behind this place may have run before it in a loop.
        let first = self.frames.is_empty() && self.scopes.depth() == self.outermost;
        let unchanged = first
            && !self
                .code
                .iter()
                .any(|instr| written(&instr.op) == Some(reg));
        match self.initial(reg) {
            Init::Int(value) if unchanged && self.is_given(reg) => Some(value),
            _ => None,
        }
    }

    /// Whether an expression calls something that speaks of other threads or of accesses.
    fn speaks_of_proof(&self, tree: &Tree) -> bool {
        let here = match &tree.kind {
            ExprKind::Call(name, _) => is_of_proof(self.str(name)),
            _ => false,
        };
        here || tree
            .parts()
            .into_iter()
            .any(|part| self.speaks_of_proof(part))
    }

    fn operator_of_annotation(&mut self, tree: &Tree, name: &str, args: &[Tree]) -> Value {
        match (name, args) {
            // The thread that evaluates it is there.
            ("__enabled", []) => Value::int(1),
            ("__implies", [a, b]) => {
                let a = self.condition(a);
                let unless = Value {
                    fixed: a.fixed,
                    ..Value::of(folded(a.is_false()), Ty::S32)
                };
                self.logic_with(false, unless, b)
            }
            ("__ite", [cond, a, b]) => self.choice(tree, cond, a, b),
            ("__is_pow2", [a]) => {
                let value = self.scalar(a);
                let value = self.kept(value.converted(&Type::Int(Ty::U64)));
                self.power_of_two(&value.expr)
            }
            _ => {
                self.error(
                    "wrong-operands",
                    &tree.range,
                    format!("`{name}` takes another number of arguments"),
                    |d| d.label("expected another number"),
                );
                Value::int(0)
            }
        }
    }

    /// Whether a number is a power of two: it is not 0, and has no bit below its highest one.
    fn power_of_two(&self, a: &Expr) -> Value {
        let less = Expr::Bin(BinOp::Sub, Ty::U64, a.clone().into(), Expr::Const(1).into());
        let both = Expr::Bin(BinOp::And, Ty::U64, a.clone().into(), less.into());
        let one = Value::of(both, Ty::U64).is_false();
        let some = Value::of(a.clone(), Ty::U64).is_true();
        let expr = Expr::Bin(BinOp::And, Ty::S32, one.into(), some.into());
        Value::of(folded(expr), Ty::S32)
    }
}
