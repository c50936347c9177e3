//! Lowers calls of member functions of the code's structures.
//!
//! # Invariants
//! - In a member function, the name of a member means the member of the object that the function is
//!   called for. The name of a parameter hides it.
//!
//! # Sources
//! - ISO C++, class.mfct, expr.prim.this.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::lower::{Known, Lowering, OWN_CLASS};
use super::place::{Place, shifted};
use super::scope::Binding;
use super::types::{Qualified, Type, Value};
use program::Expr;

impl Lowering<'_, '_> {
    /// The member function that a call on an object means, if its structure defines one.
    pub(super) fn method_of_code(&self, object: &Tree, name: &Range<usize>) -> Option<&Known> {
        let of = self.type_of_place(object)?;
        self.method_of_type(&of.ty, self.str(name))
    }

    pub(super) fn method_of_type(&self, ty: &Type, word: &str) -> Option<&Known> {
        let Type::Struct(structure) = ty else {
            return None;
        };
        let own = self.functions.get(&format!("{}::{word}", structure.name));
        own.or_else(|| {
            let bases = &self.class_of(ty)?.bases;
            let plain = !word.starts_with('(');
            bases
                .iter()
                .filter(|_| plain)
                .find_map(|base| self.method_of_type(&base.0, word))
        })
    }

    /// Lowers `s.f(…)` of a structure of the code; `None`: the method is another one.
    pub(super) fn call_of_method(
        &mut self,
        tree: &Tree,
        object: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let known = self.method_of_code(object, name)?.clone();
        let Some(Place::Memory(at, of)) = self.place(object) else {
            return Some(self.nothing());
        };
        let at = self.stable(at);
        self.in_any_order(args, &tree.range);
        let args: Vec<&Tree> = args.iter().collect();
        self.call_function(&tree.range, name, &known, Some((at, of)), &args)
    }

    /// The member function of that name of the object that the current function is called for.
    pub(super) fn method_of_this(&self, word: &str) -> Option<(Known, Option<(Expr, Qualified)>)> {
        if let Some(Binding::Type(class)) = self.scopes.find(OWN_CLASS) {
            return Some((self.method_of_type(&class.ty, word)?.clone(), None));
        }
        let Some(Binding::Constant(this)) = self.scopes.find("this") else {
            return None;
        };
        let of = Qualified::clone(this.target()?);
        let known = self.method_of_type(&of.ty, word)?.clone();
        Some((known, Some((this.expr.clone(), of))))
    }

    /// Binds `this` and the members of the object that a function is called for.
    pub(super) fn bind_members(&mut self, at: Expr, of: &Qualified) {
        if let Type::Struct(structure) = &of.ty {
            for member in structure.members() {
                let place = shifted(&at, member.offset);
                let binding = Binding::Memory(place, member.of.within(of));
                self.scopes.bind(&member.name, binding);
            }
        }
        let this = Value::new(at, of.clone().pointer());
        self.scopes.bind("this", Binding::Constant(this));
    }
}
