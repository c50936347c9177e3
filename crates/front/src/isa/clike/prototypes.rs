//! Lowers calls of functions that the code declares and does not define.
//!
//! Such a function may return any value. It is taken to return, and to touch no memory that others
//! see: the program lists this assumption, and a warning names it.
//!
//! # Invariants
//! - A call that hands over an address is refused, for the function may write there.
//! - A function with a body in the same file is never called this way.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{Expr as Tree, Prototype, Storage, TypeName};
use super::lower::Lowering;
use super::types::{Qualified, Type, Value};
use program::{CmpOp, Expr, Op, Ty};

/// Whether values of a type hold addresses.
fn holds_addresses(of: &Qualified) -> bool {
    match &of.ty {
        Type::Pointer(_) | Type::Object(..) => true,
        Type::Array(of, _) => holds_addresses(of),
        Type::Struct(_) => of.parts().iter().any(|(_, part)| holds_addresses(part)),
        _ => false,
    }
}

impl<'a> Lowering<'a, '_> {
    /// Registers a function that is declared.
    pub(super) fn declare_prototype(&mut self, prototype: &Rc<Prototype>) {
        let word: &'a str = self.str(&prototype.result.declarator.name);
        // A function of CUDA C++ without `__device__` is one of the host.
        let is_of_device = prototype.result.specifiers.has(Storage::Device).is_some();
        if self.env.language.cpp && !is_of_device {
            return;
        }
        let all = self.prototypes.entry(word).or_default();
        all.push(prototype.clone());
    }

    /// Lowers a call of a function without a body; `None`: the code declares none of that name.
    pub(super) fn call_of_prototype(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let word = self.str(name);
        let all = self.prototypes.get(word)?;
        // A declaration may stand in the file again.
        let fits = all.iter().find(|one| one.params.len() == args.len());
        let Some(prototype) = fits.cloned() else {
            let message = format!("`{word}` takes another number of arguments");
            self.error("wrong-operands", name, message, |d| {
                d.label("expected as many as its declaration has")
            });
            return Some(self.nothing());
        };
        let Some(returned) = self.named_type(&prototype.result) else {
            return Some(self.nothing());
        };
        if prototype.result.declarator.reference || holds_addresses(&returned) {
            return Some(self.refuse_prototype(name, "returns an address"));
        }
        if let Type::Struct(_) = &returned.ty
            && returned.parts().iter().any(|part| part.1.word().is_none())
        {
            return Some(self.refuse_prototype(name, "returns a structure with parts"));
        }
        for (param, arg) in prototype.params.iter().zip(args) {
            if self.may_write_through(param) {
                return Some(self.refuse_prototype(name, "is given an address"));
            }
            drop(self.argument_of(param, &Vec::new(), arg, &[]));
        }
        let span = self.unit.text.span(name.clone());
        let message = format!("`{word}` has no body here: it may return any value");
        self.sink.warn("function-without-body", span, message, |d| {
            d.label("expected to return, and to touch no memory")
                .help("add its definition, if it does more than to compute")
        });
        self.symbols.assume(format!(
            "`{word}`, which has no body here, returns, and touches no memory"
        ));
        Some(self.any_value(tree, &returned))
    }

    /// The structure that a function without a body returns.
    pub(super) fn structure_of_prototype(&self, word: &str) -> Option<Type> {
        let prototype = self.prototypes.get(word)?.first()?;
        self.known_structure(&prototype.result)
    }

    /// Whether a function may reach memory of its caller through an argument.
    fn may_write_through(&mut self, param: &TypeName) -> bool {
        let refers = param.declarator.reference || !param.declarator.arrays.is_empty();
        refers || param.is_generic() || {
            let of = self.named_type(param);
            of.is_none_or(|of| holds_addresses(&of))
        }
    }

    fn refuse_prototype(&mut self, name: &Range<usize>, does: &str) -> Value {
        let word = self.str(name);
        let message = format!("`{word}` has no body here, and {does}");
        self.error("unknown-function", name, message, |d| {
            d.label("expected a function that the file defines")
                .note("it may read and write the memory behind the address")
                .help("add its definition")
        });
        self.nothing()
    }

    /// A value with a known type, and nothing else known.
    fn any_value(&mut self, tree: &Tree, of: &Qualified) -> Value {
        match &of.ty {
            Type::Void => Value::void(),
            Type::Struct(_) => {
                let parts = of.parts();
                let values: Vec<Expr> = parts.iter().map(|part| self.any_word(&part.1)).collect();
                self.made_of_values(tree, of, parts.len(), values)
            }
            ty => Value::new(self.any_word(of), ty.clone()),
        }
    }

    fn any_word(&mut self, of: &Qualified) -> Expr {
        let ty = of.word().unwrap_or(Ty::WORD);
        let unknown = Expr::unknown(ty);
        let value = match of.ty {
            Type::Bool => Expr::Cmp(CmpOp::Ne, ty, unknown.into(), Expr::Const(0).into()),
            _ => unknown,
        };
        let dst = self.temporary(ty);
        self.push(Op::Assign { dst, value });
        Expr::Reg(dst)
    }
}
