//! Lowers initialisers: the initial constants of memory, and the values that a thread writes into
//! its own objects.
//!
//! # Invariants
//! - Parts that a list does not reach are 0.
//!
//! # Sources
//! - C11, 6.7.9; ISO C++, dcl.init.aggr.

use super::ast::{Declared, Expr as Tree, Initial};
use super::classes::initial;
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::types::{Qualified, Type};
use program::{Expr, Init, Space};

impl<'a> Lowering<'a, '_> {
    /// The initial constants of a variable.
    pub(super) fn first_values(
        &mut self,
        declared: &Declared,
        of: &Qualified,
    ) -> Option<Vec<Init>> {
        let name = &declared.declarator.name;
        if declared.value.is_none() && of.space == Some(Space::Constant) {
            let message = format!(
                "`{}` is in constant memory, and has no value",
                self.str(name)
            );
            self.error("wrong-operand", name, message, |d| {
                d.label("expected an initialiser")
                    .note("nothing can give it one later")
            });
            return None;
        }
        let mut init = Vec::new();
        match &declared.value {
            Some(Initial::List(all, _)) if of.ty.is_aggregate() => {
                self.list_of_constants(of, all, &mut init)
            }
            value => self.constants(of, &mut one(value.as_ref()), &mut init),
        }?;
        Some(init)
    }

    /// Reports values that remain after all parts of an object have one.
    fn no_more(&mut self, of: &Qualified, left: Option<&Initial>) -> Option<()> {
        let Some(
            Initial::Value(Tree { range, .. })
            | Initial::List(_, range)
            | Initial::Call(_, range)
            | Initial::Member(range, _),
        ) = left
        else {
            return Some(());
        };
        let message = format!("more values than a `{}` has", of.ty.name());
        self.error("wrong-operand", range, message, |d| {
            d.label("expected fewer")
        });
        None
    }

    /// The constants of a list in braces.
    fn list_of_constants(
        &mut self,
        of: &Qualified,
        all: &[Initial],
        out: &mut Vec<Init>,
    ) -> Option<()> {
        match self.by_member(of, all)? {
            Some(values) => {
                for ((_, part), value) in of.parts().iter().zip(values) {
                    match value {
                        Some(Initial::List(all, _)) if part.ty.is_aggregate() => {
                            self.list_of_constants(part, all, out)?;
                        }
                        value => self.constants(part, &mut one(value), out)?,
                    }
                }
                Some(())
            }
            None => {
                let mut values = all.iter();
                self.constants(of, &mut values, out)?;
                self.no_more(of, values.next())
            }
        }
    }

    /// The initial constants of an object, one for each integer in it. Integers without a value are
    /// 0.
    fn constants<'v>(
        &mut self,
        of: &Qualified,
        values: &mut std::slice::Iter<'v, Initial>,
        out: &mut Vec<Init>,
    ) -> Option<()> {
        if of.ty.is_aggregate() {
            // Values without inner braces initialise the parts one after the other (C11, 6.7.9).
            for (_, part) in of.parts() {
                match values.as_slice().first() {
                    Some(Initial::List(all, _)) if part.ty.is_aggregate() => {
                        values.next();
                        self.list_of_constants(&part, all, out)?;
                    }
                    _ => self.constants(&part, values, out)?,
                }
            }
            return Some(());
        }
        let tree = match values.next() {
            None => {
                out.push(Init::Int(0));
                return Some(());
            }
            Some(Initial::Value(tree)) => tree,
            Some(Initial::Member(range, _) | Initial::Call(_, range)) => {
                self.error("wrong-operand", range, "this is no value here", |d| {
                    d.label("expected a value")
                });
                return None;
            }
            Some(Initial::List(all, range)) => match all.as_slice() {
                [Initial::Value(tree)] => tree,
                [] => {
                    out.push(Init::Int(0));
                    return Some(());
                }
                _ => {
                    self.error("wrong-operand", range, "a list for one value", |d| {
                        d.label("expected a value")
                    });
                    return None;
                }
            },
        };
        let inner = match &of.ty {
            Type::Object(_, of) => of,
            ty => ty,
        };
        let value = self.scalar(tree);
        let init = match self.assignable(&value, inner, &tree.range) {
            Expr::Const(v) if value.fixed => match &of.ty {
                Type::Object(class, _) => initial(*class, v).map(Init::Int),
                _ => Ok(Init::Int(v)),
            },
            Expr::Address(loc) => Ok(Init::Address { loc, index: 0 }),
            _ => Err("expected a constant of the text".to_owned()),
        };
        match init {
            Ok(init) => out.push(init),
            Err(problem) => {
                self.error(
                    "wrong-operand",
                    &tree.range,
                    "this is not an initial value",
                    |d| d.label(problem),
                );
                return None;
            }
        }
        Some(())
    }

    /// Initialises an array or structure with a list, each time control reaches its declaration.
    pub(super) fn fill(&mut self, addr: &Expr, of: &Qualified, all: &[Initial]) {
        match self.by_member(of, all) {
            None => {}
            Some(Some(values)) => {
                for ((offset, part), value) in of.parts().into_iter().zip(values) {
                    self.fill_part(&shifted(addr, offset), &part, &mut one(value));
                }
            }
            Some(None) => {
                let mut values = all.iter();
                self.fill_parts(addr, of, &mut values);
                self.no_more(of, values.next());
            }
        }
    }

    /// The values of a list with designators, by member. The outer `None`: an error; the inner
    /// `None`: the list has no designators.
    fn by_member<'v>(
        &mut self,
        of: &Qualified,
        all: &'v [Initial],
    ) -> Option<Option<Vec<Option<&'v Initial>>>> {
        if !all.iter().any(|value| matches!(value, Initial::Member(..))) {
            return Some(None);
        }
        let names: Vec<String> = match &of.ty {
            Type::Struct(structure) => structure.members().iter().map(|m| m.name.clone()).collect(),
            _ => Vec::new(),
        };
        let mut values = vec![None; names.len()];
        let mut last = 0;
        for value in all {
            let (range, message) = match value {
                Initial::Member(name, value) => {
                    match names.iter().position(|n| n == self.str(name)) {
                        None => (
                            name,
                            format!("a `{}` has no member `{}`", of.ty.name(), self.str(name)),
                        ),
                        Some(at) if values[at].is_some() => {
                            (name, format!("`{}` has two values", self.str(name)))
                        }
                        Some(at) if self.env.language.cpp && at < last => (
                            name,
                            format!(
                                "`{}` is before this member in the structure",
                                self.str(name)
                            ),
                        ),
                        Some(at) => {
                            values[at] = Some(&**value);
                            last = at;
                            continue;
                        }
                    }
                }
                Initial::Value(Tree { range, .. })
                | Initial::List(_, range)
                | Initial::Call(_, range) => (
                    range,
                    "a value without a name among those with names".to_owned(),
                ),
            };
            let range = range.clone();
            self.error("wrong-operand", &range, message, |d| {
                d.label("expected the values of members, in their order")
            });
            return None;
        }
        Some(Some(values))
    }

    /// Initialises the parts of an aggregate with the next values. A part without inner braces
    /// takes its values from the same list; a part without a value becomes 0 (C11, 6.7.9).
    fn fill_parts(
        &mut self,
        addr: &Expr,
        of: &Qualified,
        values: &mut std::slice::Iter<'_, Initial>,
    ) {
        for (offset, part) in of.parts() {
            self.fill_part(&shifted(addr, offset), &part, values);
        }
    }

    fn fill_part(
        &mut self,
        at: &Expr,
        part: &Qualified,
        values: &mut std::slice::Iter<'_, Initial>,
    ) {
        let value = match values.as_slice().first() {
            Some(Initial::Value(tree)) if part.ty.is_aggregate() => {
                if self.type_of_place(tree).is_none_or(|of| of.ty != part.ty) {
                    self.fill_parts(at, part, values);
                } else {
                    values.next();
                    self.copy_structure(at.clone(), part.clone(), tree, &tree.range);
                }
                return;
            }
            Some(Initial::List(all, _)) if part.ty.is_aggregate() => {
                values.next();
                self.fill(at, part, all);
                return;
            }
            Some(Initial::List(_, range) | Initial::Member(range, _) | Initial::Call(_, range)) => {
                self.error("wrong-operand", range, "a list for one value", |d| {
                    d.label("expected a value")
                });
                return;
            }
            Some(Initial::Value(tree)) if part.word().is_none() => {
                let message = format!("a value for a `{}`", part.ty.name());
                self.error("unsupported", &tree.range, message, |d| {
                    d.label("expected no initialiser")
                        .help("store it in a separate statement")
                });
                return;
            }
            Some(Initial::Value(tree)) => {
                let value = self.scalar(tree);
                self.assignable(&value, &part.ty, &tree.range)
            }
            None if part.ty.is_aggregate() => {
                self.fill_parts(at, part, values);
                return;
            }
            None => Expr::Const(0),
        };
        values.next();
        self.write(&Place::Memory(at.clone(), part.clone()), value);
    }
}

/// An iterator over at most one value.
fn one(value: Option<&Initial>) -> std::slice::Iter<'_, Initial> {
    value.map_or([].iter(), |value| std::slice::from_ref(value).iter())
}
