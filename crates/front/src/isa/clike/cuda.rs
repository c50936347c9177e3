//! Lowers CUDA C++ constructs that C lacks: atomic references and objects, their functions, memory
//! by name, volatile accesses.
//!
//! # Sources
//! - libcu++, *Extended API*, `cuda::atomic_ref`: the scope belongs to the reference, not to the
//!   object.
//! - ISO C++, atomics.types.operations: operators are sequentially consistent.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind, Reference};
use super::cuda_calls::{FLAG_METHODS, METHODS};
use super::lower::Lowering;
use super::scope::{Atomic, Binding};
use super::types::{Qualified, Type, Value};
use super::wide::wide_members;
use program::dialect::CUDA_SCOPES;
use program::words::Order;
use program::{BinOp, Class, Expr, LocId, Op, Scope, Update};

impl Lowering<'_, '_> {
    /// Whether a location's name is a variable, as in C++. In other languages, and for arrays, the
    /// name is an address.
    pub(super) fn is_variable(&self, loc: LocId) -> bool {
        self.env.language.cpp && self.symbols.elements(loc) == 1
    }

    /// The order after promotion: CUDA and the compiler's builtins treat consume as acquire.
    pub(super) fn effective(&self, order: Order) -> Order {
        match order {
            Order::Consume if self.env.language.cpp => Order::Acquire,
            order => order,
        }
    }

    /// Reports an atomic reference that the code uses as a value.
    pub(super) fn bare_reference(&mut self, range: &Range<usize>) -> Value {
        self.error(
            "wrong-operand",
            range,
            "an atomic reference is not a value here",
            |d| d.label("expected a call such as `.load()` behind it"),
        );
        Value::int(0)
    }

    /// Declares an atomic reference.
    pub(super) fn refer(&mut self, name: &Range<usize>, reference: &Reference) {
        if let Some(atomic) = self.reference(reference) {
            // A reference keeps its address when registers change.
            let addr = self.stable(atomic.addr);
            self.bind(name, Binding::Atomic(Atomic { addr, ..atomic }));
        }
    }

    /// Binds a parameter that is an atomic reference to its argument.
    pub(super) fn reference_given(&mut self, wanted: &Reference, arg: &Tree) -> Option<Binding> {
        let scope = self.scope_of(wanted)?;
        let ty = match &wanted.ty {
            Some(ty) => Some(self.named_type(ty)?.ty),
            None => None,
        };
        let given = match &arg.kind {
            ExprKind::Refer(reference) => Some(self.reference(reference)?),
            _ => match self.binding(arg) {
                Some(Binding::Atomic(atomic)) => Some(atomic.clone()),
                // `f(x)` makes a reference to an object.
                _ => self
                    .memory_place(arg)
                    .map(|(addr, of)| Atomic { addr, of, scope }),
            },
        }?;
        if given.scope != scope || ty.is_some_and(|ty| ty != given.of.ty) {
            self.error(
                "wrong-operand",
                &arg.range,
                "this is not a reference of the type of the parameter",
                |d| d.label("expected one of that type and scope"),
            );
            return None;
        }
        let addr = self.stable(given.addr);
        Some(Binding::Atomic(Atomic { addr, ..given }))
    }

    /// The scope in the type of a reference.
    fn scope_of(&mut self, reference: &Reference) -> Option<Scope> {
        let name = self.str(&reference.name);
        match &reference.scope {
            None => Some(Scope::Sys),
            Some(range) if matches!(name, "cuda::atomic_ref" | "atomic_ref") => {
                self.word(range, "scope", CUDA_SCOPES)
            }
            Some(range) => {
                self.error(
                    "unknown-scope",
                    range,
                    format!("`{name}` has no scope"),
                    |d| d.label("expected `cuda::atomic_ref`, or no scope"),
                );
                None
            }
        }
    }

    fn reference(&mut self, reference: &Reference) -> Option<Atomic> {
        let name = self.str(&reference.name);
        if !self.env.language.cpp {
            self.error(
                "c-syntax",
                &reference.name,
                format!("`{name}` is C++"),
                |d| d.label("expected a function of this dialect"),
            );
            return None;
        }
        let scope = self.scope_of(reference)?;
        let (addr, there) = self.memory_place(&reference.object)?;
        let of = match &reference.ty {
            Some(name) => self.named_type(name)?,
            None => there.clone(),
        };
        match (of.word(), there.word()) {
            (Some(ty), Some(object)) if ty.bits != object.bits => {
                self.mixed_size(&reference.object.range, ty, object);
                return None;
            }
            (Some(_), Some(_)) => {}
            // All members of a small structure are one atomic object.
            _ if of.ty == there.ty && wide_members(&of).is_some() => {}
            _ => {
                let name = there.ty.name();
                self.error(
                    "wrong-operand",
                    &reference.object.range,
                    format!("a `{name}` is not an integer"),
                    |d| {
                        d.label("expected an integer").note(
                            "a structure may have 2, 4, 8 or 16 bytes without a gap, is aligned \
                            at its size, and the reference has its type",
                        )
                    },
                );
                return None;
            }
        }
        Some(Atomic {
            addr,
            of: Qualified {
                constant: of.constant || there.constant,
                ..of
            },
            scope,
        })
    }

    /// A call such as `f.load()`.
    pub(super) fn method(
        &mut self,
        tree: &Tree,
        object: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Value {
        if let Some(value) = self.call_of_method(tree, object, name, args) {
            return value;
        }
        if let Some(group) = self.group_of(object) {
            return self.group_method(group, tree, name, args);
        }
        if let Some(value) = self.pipeline_method(tree, object, name, args) {
            return value;
        }
        let mut rows = METHODS;
        let atomic = match &object.kind {
            _ if self.is_object(object) => match self.atomic_object(object) {
                Some((Class::Atomic(_), atomic)) => Some(atomic),
                Some((Class::Flag, atomic)) => {
                    rows = FLAG_METHODS;
                    Some(atomic)
                }
                Some((class, atomic)) => {
                    return self.member_function(class, atomic, tree, name, args);
                }
                None => return Value::int(0),
            },
            ExprKind::Refer(reference) => match self.reference(reference) {
                Some(atomic) => Some(atomic),
                None => return Value::int(0),
            },
            _ => None,
        };
        let Some(atomic) = atomic else {
            if !self.unit.broken {
                let text = self.str(&object.range);
                self.error(
                    "wrong-operand",
                    &object.range,
                    format!("`{text}` is not an atomic reference"),
                    |d| {
                        d.label("expected the name of one, or one").help(format!(
                            "declare it: `cuda::atomic_ref<int, \
                            cuda::thread_scope_device> f({text});`"
                        ))
                    },
                );
            }
            return Value::int(0);
        };
        let word = self.str(name);
        match rows.iter().find(|r| r.name == word) {
            Some(row) => self.function(row, tree, args, Some(atomic)),
            None => {
                let message = format!("there is no function `{word}` of an atomic object");
                self.error("unknown-function", name, message, |d| {
                    d.label("expected a function of it")
                        .did_you_mean(word, rows.iter().map(|r| r.name))
                });
                Value::int(0)
            }
        }
    }

    /// Whether an expression names an object of a library class, or an atomic reference.
    pub(super) fn is_object(&self, tree: &Tree) -> bool {
        fn object(of: &Qualified) -> bool {
            matches!(of.ty, Type::Object(..))
        }
        self.env.language.cpp
            && (matches!(self.binding(tree), Some(Binding::Atomic(_)))
                || self.type_of_place(tree).as_ref().is_some_and(object))
    }

    /// Reports an object of a class that the code uses as plain memory.
    pub(super) fn object_as_memory(&mut self, range: &Range<usize>) {
        let name = self.str(range);
        self.error(
            "wrong-operand",
            range,
            format!("`{name}` is an object of a class"),
            |d| d.label("expected a call of one of its functions, as in `f.load()`"),
        );
    }

    /// The atomic object that an expression names. Reports an object of another class.
    fn atomic_at(&mut self, tree: &Tree) -> Option<Atomic> {
        match self.atomic_object(tree)? {
            (Class::Atomic(_), atomic) => Some(atomic),
            _ => {
                self.object_as_memory(&tree.range);
                None
            }
        }
    }

    fn operator(&mut self, name: &str, tree: &Tree, args: &[Tree]) -> Value {
        let atomic = self.atomic_at(tree);
        match (atomic, METHODS.iter().find(|r| r.name == name)) {
            (Some(atomic), Some(row)) => self.function(row, tree, args, Some(atomic)),
            _ => Value::int(0),
        }
    }

    /// `int r = f`: a sequentially consistent load.
    pub(super) fn read_object(&mut self, tree: &Tree) -> Value {
        self.operator("load", tree, &[])
    }

    /// `f = 1` or `f += 1`: a sequentially consistent store or read-modify-write.
    pub(super) fn assign_object(
        &mut self,
        target: &Tree,
        op: Option<BinOp>,
        value: &Tree,
    ) -> Value {
        let name = match op {
            None => "store",
            Some(op) => match fetch(op) {
                Some(name) => name,
                None => {
                    self.error(
                        "wrong-operand",
                        &target.range,
                        "an atomic object has no such operator",
                        |d| d.label("expected `=`, `+=`, `-=`, `&=`, `|=` or `^=`"),
                    );
                    return self.nothing();
                }
            },
        };
        let result = self.operator(name, target, std::slice::from_ref(value));
        // An operator returns the value that it wrote, not the old one (ISO C++,
        // atomics.types.operations).
        match self.code.last().map(|instr| instr.op.clone()) {
            Some(Op::Rmw {
                dst: Some(old),
                update: Update::Apply(op, by),
                write,
                ..
            }) => Value::new(
                Expr::Bin(op, write.ty, Expr::Reg(old).into(), by.into()),
                result.ty,
            ),
            _ => result,
        }
    }

    /// `f++` and similar operators, as a value.
    pub(super) fn step_object(
        &mut self,
        target: &Tree,
        one: &Tree,
        op: BinOp,
        prefix: bool,
    ) -> Value {
        let Some(name) = fetch(op) else {
            return Value::int(0);
        };
        let old = self.operator(name, target, std::slice::from_ref(one));
        if !prefix {
            return old;
        }
        let ty = old.ty.clone();
        self.arithmetic(op, old, Value::int(1), &target.range)
            .converted(&ty)
    }
}

/// The function that an operator of atomic objects calls.
fn fetch(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add => "fetch_add",
        BinOp::Sub => "fetch_sub",
        BinOp::And => "fetch_and",
        BinOp::Or => "fetch_or",
        BinOp::Xor => "fetch_xor",
        _ => return None,
    })
}
