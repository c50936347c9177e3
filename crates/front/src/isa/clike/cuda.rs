//! What CUDA C++ has beyond C: atomic references and objects, their functions, memory by name, volatile accesses.
//!
//! # Sources
//! - libcu++, *Extended API*, `cuda::atomic_ref`: the scope is that of the reference, not of the object.
//! - ISO C++, atomics.types.operations: operators are sequentially consistent.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind, Reference, Target};
use super::cuda_calls::{FLAG_METHODS, METHODS};
use super::eval::Value;
use super::lower::Lowering;
use program::words::{CUDA_SCOPES, Order};
use program::{Access, BinOp, Class, Expr, LocId, Op, Scope, Ty};

/// An atomic reference.
#[derive(Clone, Debug)]
pub(super) struct Atomic {
    pub(super) addr: Expr,
    pub(super) ty: Ty,
    pub(super) scope: Scope,
}

impl Lowering<'_, '_> {
    /// Whether a location's name is a variable, as in C++; elsewhere, and for arrays, it is an address.
    pub(super) fn is_variable(&self, loc: LocId) -> bool {
        self.env.language.cpp && self.symbols.object(loc).1.init.len() == 1
    }

    /// What a plain access to `tree` carries.
    pub(super) fn access(&self, tree: &Tree, ty: Ty) -> Access {
        let mut access = self.plain(ty);
        let pointer = match &tree.kind {
            ExprKind::Deref(a) | ExprKind::Index(a, _) => Some(&a.kind),
            _ => None,
        };
        if let Some(ExprKind::Cast(Target { volatile: true, .. }, _)) = pointer {
            access.tags.insert("VOLATILE");
        }
        access
    }

    /// CUDA reads consume as acquire; so do the compiler's builtins.
    pub(super) fn effective(&self, order: Order) -> Order {
        match order {
            Order::Consume if self.env.language.cpp => Order::Acquire,
            order => order,
        }
    }

    /// A cast. A pointer may not be cast to one of another size.
    pub(super) fn cast(&mut self, tree: &Tree, to: Target, a: &Tree) -> Value {
        let value = self.eval(a);
        if !to.pointer {
            return Value { expr: value.fit(to.ty), ty: to.ty, target: None };
        }
        let Some((_, from)) = self.address(value.clone(), &a.range) else { return Value::int(0) };
        if from.bits != to.ty.bits {
            self.mixed_size(&tree.range, to.ty, from);
        }
        Value { expr: value.expr, ty: Ty::WORD, target: Some(to.ty) }
    }

    pub(super) fn mixed_size(&mut self, range: &Range<usize>, ty: Ty, object: Ty) {
        let message = format!("a {}-bit access to {}-bit elements", ty.bits, object.bits);
        self.error("mixed-size", range, message, |d| {
            d.label(format!("expected a type of {} bits", object.bits))
                .note("accesses of different sizes to one location are not supported")
        });
    }

    /// An atomic reference where a value stands.
    pub(super) fn bare_reference(&mut self, range: &Range<usize>) -> Value {
        self.error("wrong-operand", range, "an atomic reference is no value here", |d| {
            d.label("expected a call such as `.load()` behind it")
        });
        Value::int(0)
    }

    /// Declares an atomic reference.
    pub(super) fn refer(&mut self, name: &Range<usize>, reference: &Reference) {
        let word = self.str(name);
        if self.location(word).is_some() || self.variables.contains_key(word) {
            self.error("duplicate-name", name, format!("`{word}` is the name of something else"), |d| {
                d.label("expected another name for the reference")
            });
            return;
        }
        if let Some(mut atomic) = self.reference(reference) {
            if !matches!(atomic.addr, Expr::Address(_)) {
                // It stays where it is, whatever happens to the registers.
                let dst = self.temporary(Ty::WORD);
                self.push(Op::Assign { dst, value: atomic.addr });
                atomic.addr = Expr::Reg(dst);
            }
            self.references.insert(word.to_string(), atomic);
        }
    }

    fn reference(&mut self, reference: &Reference) -> Option<Atomic> {
        let name = self.str(&reference.name);
        if !self.env.language.cpp {
            self.error("c-syntax", &reference.name, format!("`{name}` is C++"), |d| {
                d.label("expected a function of this dialect")
            });
            return None;
        }
        let scope = match &reference.scope {
            None => Scope::Sys,
            Some(range) if name == "cuda::atomic_ref" => self.word(range, "scope", CUDA_SCOPES)?,
            Some(range) => {
                self.error("unknown-scope", range, format!("`{name}` has no scope"), |d| {
                    d.label("expected `cuda::atomic_ref`, or no scope")
                });
                return None;
            }
        };
        let (addr, ty) = self.place(&reference.object)?;
        if ty.bits != reference.ty.bits {
            self.mixed_size(&reference.object.range, reference.ty, ty);
            return None;
        }
        Some(Atomic { addr, ty: reference.ty, scope })
    }

    /// A call such as `f.load()`.
    pub(super) fn method(&mut self, tree: &Tree, object: &Tree, name: &Range<usize>, args: &[Tree]) -> Value {
        if let Some(group) = self.group_of(object) {
            return self.group_method(group, tree, name, args);
        }
        let mut rows = METHODS;
        let atomic = match &object.kind {
            _ if self.is_object(object) => match self.atomic_object(object) {
                Some((Class::Atomic(_), atomic)) => Some(atomic),
                Some((Class::Flag, atomic)) => {
                    rows = FLAG_METHODS;
                    Some(atomic)
                }
                Some((class, atomic)) => return self.member_function(class, atomic, tree, name, args),
                None => return Value::int(0),
            },
            ExprKind::Refer(reference) => match self.reference(reference) {
                Some(atomic) => Some(atomic),
                None => return Value::int(0),
            },
            ExprKind::Name => self.references.get(self.str(&object.range)).cloned(),
            _ => None,
        };
        let Some(atomic) = atomic else {
            if !self.unit.broken {
                let text = self.str(&object.range);
                self.error("wrong-operand", &object.range, format!("`{text}` is no atomic reference"), |d| {
                    d.label("expected the name of one, or one")
                        .help(format!("declare it: `cuda::atomic_ref<int, cuda::thread_scope_device> f({text});`"))
                });
            }
            return Value::int(0);
        };
        let word = self.str(name);
        match rows.iter().find(|r| r.name == word) {
            Some(row) => self.function(row, tree, args, Some(atomic)),
            None => {
                let message = format!("there is no function `{word}` of an atomic object");
                self.error("unknown-function", name, message, |d| {
                    d.label("expected a function of it").did_you_mean(word, rows.iter().map(|r| r.name))
                });
                Value::int(0)
            }
        }
    }

    /// Whether an expression names an object of a class of the library.
    pub(super) fn is_object(&self, tree: &Tree) -> bool {
        let name = match &tree.kind {
            ExprKind::Name => &tree.range,
            ExprKind::Index(array, _) if matches!(array.kind, ExprKind::Name) => &array.range,
            _ => return false,
        };
        self.env.language.cpp && self.class_at(self.str(name)).is_some()
    }

    /// An object of a class, used as plain memory.
    pub(super) fn object_as_memory(&mut self, range: &Range<usize>) {
        let name = self.str(range);
        self.error("wrong-operand", range, format!("`{name}` is an object of a class"), |d| {
            d.label("expected a call of one of its functions, as in `f.load()`")
        });
    }

    /// The atomic object there; another object is an error.
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
    pub(super) fn assign_object(&mut self, target: &Tree, op: Option<BinOp>, value: &Tree) {
        let name = match op {
            None => "store",
            Some(op) => match fetch(op) {
                Some(name) => name,
                None => {
                    self.error("wrong-operand", &target.range, "an atomic object has no such operator", |d| {
                        d.label("expected `=`, `+=`, `-=`, `&=`, `|=` or `^=`")
                    });
                    return;
                }
            },
        };
        self.operator(name, target, std::slice::from_ref(value));
    }

    /// `f++` and its like, as a value.
    pub(super) fn step_object(&mut self, target: &Tree, one: &Tree, op: BinOp, prefix: bool) -> Value {
        let Some(name) = fetch(op) else { return Value::int(0) };
        let old = self.operator(name, target, std::slice::from_ref(one));
        if !prefix {
            return old;
        }
        let ty = old.ty;
        Value { expr: Value::bin(op, old, Value::int(1)).fit(ty), ty, target: None }
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
