//! Evaluates places: expressions that code can assign to, read, and point at. Also lowers
//! assignments, and conversions to the type of a place.
//!
//! # Invariants
//! - A value is converted to the type of its place before the write: a `bool` holds 0 or 1, an
//!   `unsigned char` 0 to 255.
//!
//! # Sources
//! - C11, 6.3.2.1, 6.5.2.4, 6.5.3.2, 6.5.16; ISO C++17, conv, expr.ass, expr.pre.incr.
//!
//! # Where we differ
//! - The value of an assignment is the one that was written: no second read of memory.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind, Initial, TypeName};
use super::lower::Lowering;
use super::scope::{Binding, Variable};
use super::types::{Qualified, Record, Type, Value, components};
use crate::isa::Object;
use program::{Access, BinOp, Expr, LocId, Op, Space, Tag, Tags, Ty, Update};

/// A place.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A variable of the thread.
    Register(Variable),
    /// Memory at an address.
    Memory(Expr, Qualified),
}

impl Place {
    /// The type at the place.
    pub(super) fn of(&self) -> &Qualified {
        match self {
            Place::Register(variable) => &variable.of,
            Place::Memory(_, of) => of,
        }
    }
}

/// Whether a structure is a row of cells of the size of a number: a `float4` in floats.
fn alike(whole: &Qualified, cell: &Qualified) -> bool {
    let mut sizes = Vec::new();
    whole.ty.each_cell(&mut |_, _, of| sizes.push(of.ty.size()));
    let cells = match &cell.ty {
        Type::Struct(_) => {
            let mut inner = Vec::new();
            cell.ty.each_cell(&mut |_, _, of| inner.push(of.ty.size()));
            inner
        }
        ty => vec![ty.size()],
    };
    let size = cells.first().copied().unwrap_or(0);
    let even = |sizes: &[u64], all: u64| {
        sizes.iter().all(|s| *s == size) && sizes.iter().sum::<u64>() == all
    };
    matches!(whole.ty, Type::Struct(_))
        && size > 0
        && even(&sizes, whole.ty.size())
        && even(&cells, cell.ty.size())
}

/// The address `by` bytes further on.
pub(super) fn shifted(addr: &Expr, by: u64) -> Expr {
    let (base, offset) = match addr {
        Expr::Bin(BinOp::Add, Ty::WORD, base, offset) if matches!(**offset, Expr::Const(_)) => {
            let Expr::Const(n) = **offset else {
                return addr.clone();
            };
            (Expr::clone(base), n)
        }
        addr => (addr.clone(), 0),
    };
    match offset.wrapping_add(by as i64) {
        0 => base,
        n => Expr::Bin(BinOp::Add, Ty::WORD, base.into(), Expr::Const(n).into()),
    }
}

impl Lowering<'_, '_> {
    /// The type of a location of the test; for an array, that of one element.
    pub(super) fn of_location(&self, loc: LocId) -> Qualified {
        let object = self.symbols.object(loc).1;
        if let Some(Record(ty)) = &object.record {
            return ty.clone().into();
        }
        let ty = match (object.boolean, object.floating) {
            (true, _) => Type::Bool,
            (_, Some(format)) => Type::Float(format),
            _ => Type::Int(self.symbols.ty(loc)),
        };
        let ty = match object.class {
            Some(class) if self.env.language.cpp => Type::Object(class, ty.into()),
            _ => ty,
        };
        let atomic = self.env.strict && object.atomic == Some(true);
        Qualified {
            atomic,
            ..ty.into()
        }
    }

    /// The target type of the address of a cell. At the first cell of an element, it is the
    /// element.
    pub(super) fn of_cell(&self, loc: LocId, cell: u32) -> Qualified {
        match &self.symbols.object(loc).1.record {
            Some(record) if !(cell as usize).is_multiple_of(record.layout().cells()) => {
                record.of_cell(cell)
            }
            _ => self.of_location(loc),
        }
    }

    /// The tags and scope of an access by an operator. The access is plain, except for atomic
    /// objects in C, where it is sequentially consistent (C11, 6.2.6.1, 6.5.16).
    fn access(&mut self, of: &Qualified, ty: Ty) -> Access {
        let mut access = self.plain(ty);
        if of.atomic {
            access.tags = Tags::of(&[Tag::Atomic, Tag::SeqCst]);
            if self.env.language.row().regions {
                let (span, id) = (self.here(), "atomic-object");
                self.sink
                    .error(id, span, "an operator on an atomic object", |d| {
                        d.label("expected an atomic function, such as `atomic_load`")
                            .note("in OpenCL C, atomic types are for the atomic functions")
                            .help(
                                "an access that is not atomic is written with a cast, as in \
                                `*(global int *)x`",
                            )
                    });
            }
        }
        if of.volatile {
            access.tags.insert(Tag::Volatile);
        }
        access
    }

    /// The place that an expression names. Reports any other expression.
    pub(super) fn place(&mut self, tree: &Tree) -> Option<Place> {
        let cpp = self.env.language.cpp;
        match &tree.kind {
            ExprKind::Name => return self.named_place(tree),
            ExprKind::Deref(a) => {
                let pointer = self.eval(a);
                return self.pointed(pointer, &tree.range);
            }
            ExprKind::Field(object, name) if self.type_of_vectors(tree).is_none() => {
                return self.member_of(object, name);
            }
            _ if self.is_value_with_place(tree) => return self.place_of_value(tree),
            ExprKind::Index(a, i) => return self.element_of(a, i, &tree.range),
            ExprKind::Assign(op, target, value) if cpp && !self.is_object(target) => {
                return self.assigned(tree, target, *op, value).map(|all| all.0);
            }
            ExprKind::Step {
                target,
                one,
                op,
                prefix: true,
            } if cpp && !self.is_object(target) => {
                return self.assigned(tree, target, Some(*op), one).map(|all| all.0);
            }
            ExprKind::Comma(a, b) if cpp => {
                self.discard(a);
                return self.place(b);
            }
            _ => {}
        }
        self.unassignable(&tree.range);
        None
    }

    /// Whether an expression has a value that is at a place: a structure, or the object that a
    /// returned reference refers to.
    fn is_value_with_place(&self, tree: &Tree) -> bool {
        fn is_structure(of: Qualified) -> bool {
            matches!(of.ty, Type::Struct(_))
        }
        match &tree.kind {
            ExprKind::Call(..) | ExprKind::Braced(..) | ExprKind::Vector(..)
                if self.type_of_place(tree).is_some() =>
            {
                true
            }
            ExprKind::Call(..)
            | ExprKind::Method(..)
            | ExprKind::Made(..)
            | ExprKind::Invoke(..)
            | ExprKind::Scoped(..)
                if self.env.language.cpp =>
            {
                true
            }
            _ if self.operator_of(tree).is_some() || self.type_of_vectors(tree).is_some() => true,
            ExprKind::Cast(..) | ExprKind::Choice(..) | ExprKind::Assign(None, ..) => {
                self.type_of_place(tree).is_some_and(is_structure)
            }
            _ => false,
        }
    }

    /// The place of a variable.
    fn named_place(&mut self, tree: &Tree) -> Option<Place> {
        let word = self.str(&tree.range);
        match self.scopes.find(word).cloned() {
            Some(Binding::Register(variable)) => return Some(Place::Register(variable)),
            Some(Binding::Memory(addr, of)) => return Some(Place::Memory(addr, of)),
            Some(_) => {
                self.unassignable(&tree.range);
                return None;
            }
            None => {}
        }
        let found = self.location(word);
        if let Some(loc) = found {
            self.refuse_image(loc, &tree.range);
        }
        match found {
            Some(loc) if self.is_variable(loc) => {
                return Some(Place::Memory(Expr::Address(loc), self.of_location(loc)));
            }
            Some(_) => {
                let message = format!("`{word}` is a location");
                self.error("wrong-operand", &tree.range, message, |d| {
                    d.label("expected a register")
                        .help(format!("`*{word} = …` is a plain store"))
                });
            }
            None => self.unknown_register(&tree.range),
        }
        None
    }

    /// The place of `a[i]`.
    fn element_of(&mut self, a: &Tree, i: &Tree, range: &Range<usize>) -> Option<Place> {
        let (of_a, of_i) = (self.effects(a), self.effects(i));
        if !self.env.language.sequenced {
            self.unsequenced(&of_a, &of_i, range);
        }
        let mut pointer = self.eval(a);
        if of_i.changes(&pointer.expr) {
            pointer = self.kept(pointer);
        }
        let index = self.scalar(i);
        // `0[a]` is `a[0]`.
        let (pointer, index) = if pointer.target().is_some() {
            (pointer, index)
        } else {
            (index, pointer)
        };
        if pointer.target().is_none() {
            return self.pointed(pointer, range);
        }
        self.within_bounds(a, &index, &i.range);
        let element = self.moved(pointer, index, false, range);
        self.pointed(element, range)
    }

    fn unassignable(&mut self, range: &Range<usize>) {
        let message = "this cannot be assigned to";
        self.error("wrong-operand", range, message, |d| {
            d.label("expected a register, `*x` or `x[i]`")
        });
    }

    /// The place of a structure without a name, or of the object that a returned reference refers
    /// to.
    fn place_of_value(&mut self, tree: &Tree) -> Option<Place> {
        let (value, refers) = self.eval_with_reference(tree);
        match (refers, value.target(), &value.ty) {
            (true, Some(of), _) => Some(Place::Memory(value.expr.clone(), Qualified::clone(of))),
            (_, _, Type::Struct(_)) => Some(Place::Memory(value.expr, value.ty.into())),
            _ if self.is_nothing(&value) => None,
            _ => {
                self.error(
                    "wrong-operand",
                    &tree.range,
                    "this cannot be assigned to",
                    |d| d.label("expected a variable, or a reference"),
                );
                None
            }
        }
    }

    /// The place of a member.
    fn member_of(&mut self, object: &Tree, name: &Range<usize>) -> Option<Place> {
        let word = self.str(&object.range);
        let pointer = match self.type_of_place(object).map(|of| of.ty) {
            Some(Type::Pointer(to)) => matches!(to.ty, Type::Struct(_)).then_some("->"),
            Some(Type::Array(of, _)) => matches!(of.ty, Type::Struct(_)).then_some("[0]."),
            _ => None,
        };
        if let Some(instead) = pointer {
            self.error(
                "wrong-operand",
                &object.range,
                format!("`{word}` is a pointer to structures"),
                |d| {
                    d.label("expected a structure")
                        .help(format!("write `{word}{instead}…`"))
                },
            );
            return None;
        }
        let place = self.place(object)?;
        let (word, of) = (self.str(name), place.of().clone());
        let member = match &of.ty {
            Type::Struct(structure) => {
                let single = self.single_component(&of.ty, word);
                let word = single.as_deref().unwrap_or(word);
                structure.members().iter().find(|m| m.name == word)
            }
            _ => None,
        };
        match (place, member) {
            (Place::Memory(addr, _), Some(member)) => Some(Place::Memory(
                shifted(&addr, member.offset),
                member.of.within(&of),
            )),
            _ => {
                let type_name = of.ty.name();
                let known: Vec<&str> = match &of.ty {
                    Type::Struct(structure) => structure
                        .members()
                        .iter()
                        .map(|m| m.name.as_str())
                        .collect(),
                    _ => Vec::new(),
                };
                self.error(
                    "no-field",
                    name,
                    format!("a `{type_name}` has no member `{word}`"),
                    |d| {
                        d.label("expected a member of a structure")
                            .did_you_mean(word, known)
                    },
                );
                None
            }
        }
    }

    /// The member that another name of a vector's component means: `s0` of `x`.
    pub(super) fn single_component(&self, of: &Type, word: &str) -> Option<String> {
        let (_, n) = self
            .vector_type(of)
            .filter(|_| self.env.language.row().regions)?;
        let Type::Struct(structure) = of else {
            return None;
        };
        match components(word, n)?.as_slice() {
            [one] => structure.members().get(*one).map(|m| m.name.clone()),
            _ => None,
        }
    }

    /// Reports a constant index outside of the array that an expression names.
    fn within_bounds(&mut self, array: &Tree, index: &Value, range: &Range<usize>) {
        // For memory that the test names, the access checks the bounds. An index that depends on
        // the thread may stand behind a condition.
        let is_named = matches!(array.kind, ExprKind::Name) && self.binding(array).is_none();
        if is_named || !index.fixed {
            return;
        }
        let (Some(Type::Array(_, n)), Some(i)) =
            (self.type_of_place(array).map(|of| of.ty), index.constant())
        else {
            return;
        };
        // The address after the last element is valid.
        if !(0..=i64::from(n)).contains(&i) {
            self.error(
                "out-of-bounds",
                range,
                format!("element {i} of an array of {n}"),
                |d| {
                    d.label(format!("expected 0 to {}", n - 1))
                        .note("any other is undefined")
                },
            );
        }
    }

    /// Copies a structure, member by member with plain accesses, all reads before the first write.
    /// The languages leave the order open, and plain accesses take part in no synchronisation.
    pub(super) fn copy_structure(
        &mut self,
        to: Expr,
        of: Qualified,
        value: &Tree,
        range: &Range<usize>,
    ) {
        if self.splat(&to, &of, value) {
            return;
        }
        let from = match self
            .type_of_place(value)
            .filter(|from| matches!(from.ty, Type::Struct(_)))
        {
            Some(_) => self.memory_place(value),
            None => {
                let errors = self.sink.errors();
                // A template's result has a type only after the call.
                let called = matches!(
                    value.kind,
                    ExprKind::Call(..) | ExprKind::Method(..) | ExprKind::Invoke(..)
                ) || self.operator_of(value).is_some();
                let given = called.then(|| self.eval(value));
                if self.sink.errors() > errors {
                    return;
                }
                if let Some(given) = given
                    && matches!(given.ty, Type::Struct(_))
                {
                    let there = given.ty.into();
                    self.copy_members(to, of, given.expr, there, range);
                    return;
                }
                let name = of.ty.name();
                self.error(
                    "wrong-operand",
                    &value.range,
                    format!("this is not a `{name}` in memory"),
                    |d| {
                        d.label("expected the name of one, `*p` or `p[i]`")
                            .help("copy its members one by one")
                    },
                );
                return;
            }
        };
        let Some((from, there)) = from else { return };
        self.copy_members(to, of, from, there, range);
    }

    /// Copies the members of a structure in memory to another one.
    pub(super) fn copy_members(
        &mut self,
        to: Expr,
        of: Qualified,
        from: Expr,
        there: Qualified,
        range: &Range<usize>,
    ) {
        if of.ty != there.ty {
            let (a, b) = (there.ty.name(), of.ty.name());
            self.error(
                "wrong-operand",
                range,
                format!("a `{a}` is not a `{b}`"),
                |d| d.label("expected one"),
            );
            return;
        }
        if !of.is_plain() || !there.is_plain() {
            self.error(
                "unsupported",
                range,
                "a copy of a structure with volatile or atomic members",
                |d| {
                    d.label("expected a copy of each member")
                        .note("the languages do not say how they are accessed")
                },
            );
            return;
        }
        let mut cells = Vec::new();
        of.ty
            .each_cell(&mut |_, offset, of| cells.push((offset, of.clone())));
        let values: Vec<Value> = cells
            .iter()
            .map(|(offset, of)| self.read(Place::Memory(shifted(&from, *offset), of.clone())))
            .collect();
        for ((offset, of), value) in cells.into_iter().zip(values) {
            self.write(&Place::Memory(shifted(&to, offset), of), value.expr);
        }
    }

    /// `a = b` of structures.
    fn assign_structure(
        &mut self,
        tree: &Tree,
        target: &Tree,
        op: Option<BinOp>,
        value: &Tree,
        used: bool,
    ) -> Value {
        if self.assign_vector(tree, target, op, value) {
            return Value::void();
        }
        if op.is_some() || (used && !self.env.language.cpp) {
            self.error(
                "unsupported",
                &tree.range,
                "this use of a structure is not supported",
                |d| d.label("expected a separate assignment, or its members"),
            );
            return self.nothing();
        }
        let (of_target, of_value) = (self.effects_of_place(target), self.effects_of_place(value));
        if !self.env.language.sequenced {
            self.unsequenced(&of_target, &of_value, &tree.range);
        }
        let Some((addr, of)) = self.memory_place(target) else {
            return self.nothing();
        };
        let addr = self.stable(addr);
        let mut constant = of.constant;
        of.ty.each_cell(&mut |_, _, of| constant |= of.constant);
        if constant {
            let name = self.str(&target.range);
            self.error(
                "constant",
                &target.range,
                format!("`{name}` is `const`"),
                |d| d.label("expected something that may be changed"),
            );
            return self.nothing();
        }
        if let Some(name) = self.constant(&addr).map(str::to_string) {
            self.constant_memory(&name, &target.range);
            return self.nothing();
        }
        let ty = of.ty.clone();
        match &value.kind {
            ExprKind::Braced(None, all) => {
                if let Initial::List(all, range) = &**all {
                    self.initial_list(&addr, &of, all, range);
                }
            }
            _ => self.construct(&addr, &of, &[value], &tree.range),
        }
        Value::new(addr, ty)
    }

    /// The memory that an expression names; reports a register.
    pub(super) fn memory_place(&mut self, tree: &Tree) -> Option<(Expr, Qualified)> {
        match self.place(tree)? {
            Place::Memory(addr, of) => Some((addr, of)),
            Place::Register(_) => {
                self.no_address(&tree.range);
                None
            }
        }
    }

    fn no_address(&mut self, range: &Range<usize>) {
        self.error("wrong-operand", range, "only memory has an address", |d| {
            d.label("expected a variable, a location or an element of one")
                .note("the value of an expression has none, nor has a constant")
        });
    }

    /// The place that a pointer points to.
    pub(super) fn pointed(&mut self, pointer: Value, range: &Range<usize>) -> Option<Place> {
        self.address(pointer, range)
            .map(|(addr, of)| Place::Memory(addr, of))
    }

    /// A value as an address, and the type at that address.
    pub(super) fn address(
        &mut self,
        pointer: Value,
        range: &Range<usize>,
    ) -> Option<(Expr, Qualified)> {
        match pointer.target() {
            Some(of) if of.ty == Type::Void => {
                self.error(
                    "wrong-operand",
                    range,
                    "the target of this pointer is unknown",
                    |d| {
                        d.label("expected a pointer to a type that has a size")
                            .help("cast it: `*(int*)p`")
                    },
                );
                None
            }
            Some(of) => Some((pointer.expr.clone(), Qualified::clone(of))),
            None => {
                if !self.unit.broken {
                    self.error("wrong-operand", range, "this is not a pointer", |d| {
                        d.label("expected a location, or a register declared as a pointer")
                    });
                }
                None
            }
        }
    }

    /// `&a`
    pub(super) fn take_address(&mut self, tree: &Tree, a: &Tree) -> Value {
        let word = self.str(&a.range);
        // If the test names the memory, `&x` is a common way to write its address.
        if let (ExprKind::Name, None, Some(_)) =
            (&a.kind, self.scopes.find(word), self.location(word))
        {
            return self.address_of(&a.range);
        }
        if let Some(Binding::Atomic(_)) = self.binding(a) {
            return self.bare_reference(&a.range);
        }
        let is_place = match &a.kind {
            ExprKind::Name => self.scopes.find(word).is_some(),
            ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Field(..) => true,
            ExprKind::Assign(..) | ExprKind::Comma(..) | ExprKind::Step { .. } => {
                self.env.language.cpp
            }
            _ => false,
        };
        if !is_place {
            self.no_address(&tree.range);
            return self.nothing();
        }
        match self.place(a) {
            Some(Place::Memory(addr, of)) => Value::new(addr, of.pointer()),
            Some(Place::Register(_)) => {
                self.no_address(&tree.range);
                self.nothing()
            }
            None => self.nothing(),
        }
    }

    /// The type of a place before any conversion; `None`: the expression does not name a place.
    pub(super) fn whole(&mut self, tree: &Tree) -> Option<Qualified> {
        if let Some(Binding::Constant(value)) = self.binding(tree) {
            return Some(value.ty.clone().into());
        }
        match tree.kind {
            ExprKind::Name if self.scopes.find(self.str(&tree.range)).is_some() => {
                self.place(tree).map(|place| place.of().clone())
            }
            ExprKind::Name if self.env.language.cpp => {
                let loc = self.location(self.str(&tree.range))?;
                let (of, n) = (self.of_location(loc), self.symbols.elements(loc));
                Some(if n == 1 {
                    of
                } else {
                    Type::Array(of.into(), n as u32).into()
                })
            }
            ExprKind::Field(..) if self.is_special(tree) => None,
            ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Field(..) => {
                self.place(tree).map(|place| place.of().clone())
            }
            _ => None,
        }
    }

    /// Reads the value at a place.
    pub(super) fn read(&mut self, place: Place) -> Value {
        match place {
            Place::Register(Variable {
                known: Some(value),
                of,
                ..
            }) => Value::literal(value, of.ty),
            Place::Register(variable) => Value::new(Expr::Reg(variable.reg), variable.of.ty),
            Place::Memory(addr, of) => match (&of.ty, of.word()) {
                // An array becomes a pointer to its first element.
                (Type::Array(element, _), _) => Value::new(addr, Type::Pointer(element.clone())),
                (_, None) => Value::void(),
                (_, Some(ty)) => {
                    let access = self.access(&of, ty);
                    Value {
                        ty: of.ty,
                        ..self.load(addr, access)
                    }
                }
            },
        }
    }

    /// Writes a value of the place's type to a place.
    pub(super) fn write(&mut self, place: &Place, value: Expr) {
        match place {
            Place::Register(variable) => drop(self.push(Op::Assign {
                dst: variable.reg,
                value,
            })),
            Place::Memory(addr, of) => {
                let access = self.access(of, of.word().unwrap_or(Ty::S32));
                self.push(Op::Store {
                    addr: addr.clone(),
                    value,
                    access,
                });
            }
        }
    }

    fn constant_memory(&mut self, name: &str, range: &Range<usize>) {
        let message = format!("a store to `{name}`, which is in constant memory");
        self.error("constant-memory", range, message, |d| {
            d.label("expected memory that can be written")
                .note("constant memory is read-only")
        });
    }

    /// Whether code may write to a place. Reports an error if not.
    pub(super) fn writable(&mut self, place: &Place, range: &Range<usize>) -> bool {
        if let Place::Memory(addr, _) = place
            && let Some(name) = self.constant(addr).map(str::to_string)
        {
            self.constant_memory(&name, range);
            return false;
        }
        let of = place.of();
        if of.constant {
            let name = self.str(range);
            self.error("constant", range, format!("`{name}` is `const`"), |d| {
                d.label("expected something that may be changed")
            });
            return false;
        }
        if of.word().is_none() {
            let name = of.ty.name();
            self.error(
                "wrong-operand",
                range,
                format!("a `{name}` cannot be assigned to"),
                |d| d.label("expected an element of it"),
            );
            return false;
        }
        true
    }

    /// The value for an assignment to an object of a type. Allows only the conversions that need no
    /// cast.
    pub(super) fn assignable(&mut self, value: &Value, to: &Type, range: &Range<usize>) -> Expr {
        if let (Type::Pointer(to), false) = (to, self.is_nothing(value)) {
            self.other_space(to, value, range);
        }
        let problem = match (to, &value.ty) {
            _ if self.is_nothing(value) => None,
            (Type::Pointer(_), _) if value.is_null() => None,
            (Type::Pointer(to), Type::Pointer(from)) => self.unlike(to, from, range),
            (Type::Pointer(_), _) => Some("a number is not an address".to_string()),
            (Type::Bool, Type::Pointer(_)) => None,
            (_, Type::Pointer(_)) => Some("an address is not a number".to_string()),
            (Type::Enum(to), from) if self.env.language.cpp && *from != Type::Enum(to.clone()) => {
                Some(format!("a `{}` is not a `{}`", from.name(), to.name))
            }
            (to, Type::Enum(from)) if from.scoped && *to != value.ty => {
                Some(format!("a `{}` is not a `{}`", from.name, to.name()))
            }
            (_, Type::Void) => Some("this has no value".to_string()),
            _ => None,
        };
        if let Some(problem) = problem.filter(|_| self.env.strict) {
            self.error("wrong-operand", range, problem, |d| {
                d.label(format!("expected `{}`", to.name()))
                    .help("if that is meant, write a cast")
            });
        }
        value.converted(to).expr
    }

    /// Reports a pointer to one named address space if the code needs a pointer to another.
    fn other_space(&mut self, to: &Qualified, value: &Value, range: &Range<usize>) {
        let named = value
            .expr
            .base()
            .map(|loc| self.symbols.object(loc).1.space);
        let from = value
            .target()
            .and_then(|from| from.space)
            .or(named.filter(|_| self.env.language.row().regions));
        if let (Some(to), Some(from)) = (to.space, from)
            && to != from
            && self.env.strict
        {
            self.error(
                "wrong-space",
                range,
                "a pointer to another address space",
                |d| {
                    d.label("expected one to the address space that is named").note(
                    "only the generic address space takes pointers to others (OpenCL C, Address \
                    Space Qualifiers)",
                )
                },
            );
        }
    }

    /// The error in giving a pointer to `from` for a pointer to `to`.
    fn unlike(&mut self, to: &Qualified, from: &Qualified, range: &Range<usize>) -> Option<String> {
        if let Some(lost) = from.lost(to) {
            return Some(format!("this pointer would lose its `{lost}`"));
        }
        if from.atomic != to.atomic && from.ty != Type::Void && to.ty != Type::Void {
            let (is, other) = if from.atomic {
                ("an", "no ")
            } else {
                ("no", "an ")
            };
            return Some(format!(
                "a pointer to {is} atomic object, where {other}atomic one is expected"
            ));
        }
        match (to.word(), from.word()) {
            (Some(a), Some(b)) if a.bits != b.bits => {
                self.mixed_size(range, a, b);
                None
            }
            (Some(_), Some(_)) => match (&to.ty, &from.ty) {
                (Type::Pointer(x), Type::Pointer(y)) if x != y => Some(format!(
                    "a `{}*` is not a `{}*`",
                    from.ty.name(),
                    to.ty.name()
                )),
                (Type::Float(_), x) | (x, Type::Float(_)) if !matches!(x, Type::Float(_)) => Some(
                    format!("a `{}*` is not a `{}*`", from.ty.name(), to.ty.name()),
                ),
                (Type::Pointer(_), x) | (x, Type::Pointer(_)) if !matches!(x, Type::Pointer(_)) => {
                    Some(format!(
                        "a `{}*` is not a `{}*`",
                        from.ty.name(),
                        to.ty.name()
                    ))
                }
                _ => None,
            },
            _ if to.ty == Type::Void => None,
            _ if from.ty == Type::Void && !self.env.language.cpp => None,
            _ if to.ty == from.ty => None,
            _ => Some(format!(
                "a `{}*` is not a `{}*`",
                from.ty.name(),
                to.ty.name()
            )),
        }
    }

    /// `target = value` or `target op= value`; `used`: the code uses the result.
    pub(super) fn assign(
        &mut self,
        tree: &Tree,
        target: &Tree,
        op: Option<BinOp>,
        value: &Tree,
        used: bool,
    ) -> Value {
        if self.is_object(target) {
            return self.assign_object(target, op, value);
        }
        if let Some(value) = self.operator_of_code(tree) {
            return value;
        }
        if self
            .type_of_place(target)
            .is_some_and(|of| matches!(of.ty, Type::Struct(_)))
        {
            let assigned = self.assign_structure(tree, target, op, value, used);
            return if used { assigned } else { Value::void() };
        }
        if self.assign_vector(tree, target, op, value) {
            return Value::void();
        }
        let Some((place, value)) = self.assigned(tree, target, op, value) else {
            return self.nothing();
        };
        self.value_of(place, value, used, &tree.range)
    }

    /// The value of a completed assignment.
    fn value_of(&mut self, place: Place, value: Expr, used: bool, range: &Range<usize>) -> Value {
        if used && place.of().volatile && matches!(place, Place::Memory(..)) {
            self.error(
                "unsupported",
                range,
                "the value of an assignment to something volatile",
                |d| {
                    d.label("whether it is read again is left open")
                        .help("read it in a separate statement")
                },
            );
        }
        let ty = place.of().ty.clone();
        match place {
            Place::Register(variable) => Value::new(Expr::Reg(variable.reg), ty),
            Place::Memory(..) => Value::new(value, ty),
        }
    }

    /// Assigns; returns the place, and the value written to it.
    fn assigned(
        &mut self,
        tree: &Tree,
        target: &Tree,
        op: Option<BinOp>,
        value: &Tree,
    ) -> Option<(Place, Expr)> {
        self.assume_register(target);
        let of_value = self.effects(value);
        let place;
        let mut given;
        let mut old = None;
        if self.env.language.sequenced {
            // The right operand comes first (ISO C++17, expr.ass).
            given = self.scalar(value);
            if self.effects_of_place(target).changes(&given.expr) {
                given = self.kept(given);
            }
            place = self.place(target)?;
            if op.is_some() && !place.of().atomic {
                old = Some(self.read(place.clone()));
            }
        } else {
            let mut of_target = self.effects_of_place(target);
            if op.is_some() {
                of_target = of_target.and(self.read_of(target));
            }
            self.unsequenced(&of_target, &of_value, &tree.range);
            place = match self.place(target) {
                Some(place) => place,
                None => {
                    self.eval(value);
                    return None;
                }
            };
            if let Place::Register(variable) = &place
                && of_value.leaves_open(variable.reg)
            {
                let name = self.register_name(variable.reg);
                self.undefined_order(&name, &tree.range);
            }
            let named = self.memory_named(target);
            if matches!(place, Place::Memory(..))
                && of_value.leaves_memory_open(&named)
                && self.env.strict
            {
                self.open_order(&tree.range);
            }
            if op.is_some() && !place.of().atomic {
                old = Some(self.read(place.clone()));
            }
            given = self.scalar(value);
        }
        if !self.writable(&place, &target.range) {
            return None;
        }
        if let (Some(op), Place::Memory(addr, of), true) = (op, &place, place.of().atomic) {
            let value = self.atomic_update(op, addr.clone(), of, given, &tree.range)?;
            return Some((place, value));
        }
        if let (Some(op), Some(old)) = (op, old) {
            given = self.arithmetic(op, old, given, &tree.range);
        }
        let to = place.of().ty.clone();
        let value = match op {
            // Arithmetic on an enumeration gives an integer.
            Some(_) if self.env.language.cpp || to.target().is_some() => {
                self.assignable(&given, &to, &value.range)
            }
            Some(_) => given.converted(&to).expr,
            None => self.assignable(&given, &to, &value.range),
        };
        self.write(&place, value.clone());
        Some((place, value))
    }

    /// `x += value` of an atomic object: one sequentially consistent read-modify-write. Returns the
    /// new value.
    fn atomic_update(
        &mut self,
        op: BinOp,
        addr: Expr,
        of: &Qualified,
        value: Value,
        range: &Range<usize>,
    ) -> Option<Expr> {
        let (access, ty) = (self.access(of, of.word()?), of.word()?);
        if !matches!(
            op,
            BinOp::Add | BinOp::Sub | BinOp::And | BinOp::Or | BinOp::Xor
        ) || of.ty != Type::Int(ty)
        {
            self.error(
                "unsupported",
                range,
                "this operator on an atomic object is not supported",
                |d| d.label("expected `+=`, `-=`, `&=`, `|=` or `^=` on an integer"),
            );
            return None;
        }
        let dst = self.temporary(ty);
        let mut half = access;
        half.tags.insert(Tag::Rmw);
        let operand = value.fit(ty);
        let update = Update::Apply(op, operand.clone());
        self.push(Op::Rmw {
            dst: Some(dst),
            addr,
            update,
            read: half.clone(),
            write: half,
        });
        Some(Expr::Bin(op, ty, Expr::Reg(dst).into(), operand.into()))
    }

    /// `x++` and similar operators; `used`: the code uses the result.
    pub(super) fn step(
        &mut self,
        tree: &Tree,
        target: &Tree,
        one: &Tree,
        op: BinOp,
        prefix: bool,
        used: bool,
    ) -> Value {
        if self.is_object(target) {
            return self.step_object(target, one, op, prefix);
        }
        if prefix || !used {
            let Some((place, value)) = self.assigned(tree, target, Some(op), one) else {
                return self.nothing();
            };
            return self.value_of(place, value, used, &tree.range);
        }
        let Some(place) = self.place(target) else {
            return self.nothing();
        };
        if !self.writable(&place, &target.range) {
            return self.nothing();
        }
        if let Place::Memory(addr, of) = &place
            && of.atomic
        {
            let new = self.atomic_update(op, addr.clone(), of, Value::int(1), &tree.range);
            let Some(Expr::Bin(_, _, old, _)) = new else {
                return self.nothing();
            };
            return Value::new(*old, of.ty.clone());
        }
        let mut old = self.read(place.clone());
        if matches!(place, Place::Register(_)) {
            old = self.kept(old);
        }
        let new = self.arithmetic(op, old.clone(), Value::int(1), &tree.range);
        let new = self.assignable(&new, &place.of().ty.clone(), &tree.range);
        self.write(&place, new);
        old
    }

    /// Lowers a cast. A pointer must not be cast to a pointer to elements of another size.
    pub(super) fn cast(&mut self, tree: &Tree, to: &TypeName, a: &Tree) -> Value {
        let Some(to) = self.named_type(to) else {
            return self.nothing();
        };
        if to.ty == Type::Void {
            self.discard(a);
            return Value::void();
        }
        if matches!(to.ty, Type::Struct(_)) && self.env.language.cpp {
            return self.made_of(tree, &to, &[a]);
        }
        let value = self.scalar(a);
        if to.word().is_none() {
            let name = to.ty.name();
            self.error(
                "wrong-operand",
                &tree.range,
                format!("the type `{name}` has no values"),
                |d| d.label("expected a type that has values"),
            );
            return self.nothing();
        }
        if let Type::Pointer(to) = &to.ty {
            self.other_space(to, &value, &tree.range);
        }
        if let (Type::Pointer(to), Type::Pointer(from)) = (&to.ty, &value.ty)
            && to.ty != from.ty
        {
            match (to.word(), from.word()) {
                (Some(a), Some(b)) if a.bits != b.bits && !self.may_view(&value) => {
                    self.mixed_size(&tree.range, a, b)
                }
                (Some(_), Some(_)) => {}
                _ if to.ty == Type::Void || from.ty == Type::Void => {}
                _ if alike(to, from) || alike(from, to) => {}
                _ if self.may_view(&value) => self.symbols.view_structures(),
                _ => {
                    let (to, from) = (to.ty.name(), from.ty.name());
                    self.error(
                        "unsupported",
                        &tree.range,
                        format!("a pointer to `{from}` as one to `{to}`"),
                        |d| {
                            d.label("expected a pointer of the same type")
                                .note("what lies where in a structure or array is not looked at")
                                .help("take the address of the member or element")
                        },
                    );
                    return self.nothing();
                }
            }
        }
        let narrow = value.ty.promoted().is_some_and(|ty| ty.bits < 64);
        if to.ty.target().is_some() && narrow && value.constant() != Some(0) {
            self.error("wrong-operand", &tree.range, "this is not a pointer", |d| {
                d.label("expected a pointer, or an integer of 64 bits that holds an address")
            });
            return self.nothing();
        }
        value.converted(&to.ty)
    }

    /// Whether an address may be in dynamic shared memory, which code views as several types. In
    /// OpenCL C, a launch gives such memory as an argument.
    fn may_view(&mut self, address: &Value) -> bool {
        let is_argument = |object: &Object| object.space == Space::Shared && !object.of_code;
        if !self.env.language.cpp {
            self.symbols.set_dynamic(is_argument);
        }
        match address.expr.base() {
            Some(loc) => self.symbols.object(loc).1.dynamic,
            None => !self.symbols.dynamic().is_empty(),
        }
    }

    pub(super) fn mixed_size(&mut self, range: &Range<usize>, ty: Ty, object: Ty) {
        let message = format!("a {}-bit access to {}-bit elements", ty.bits, object.bits);
        let source = self.env.language.aliasing;
        // Characters may access any object, other types only objects of the same type.
        let rule = match ty.bits {
            8 => format!(
                "the language has it ({source}), Fencepost has accesses of one size to one location"
            ),
            _ => format!(
                "an object is accessed as its own type, or as characters; as another, it is \
                undefined ({source})"
            ),
        };
        self.error("mixed-size", range, message, |d| {
            d.label(format!("expected a type of {} bits", object.bits))
                .note(rule)
                .help("access the whole and take a part of its value: `(x >> 8) & 0xff`")
        });
    }

    /// Declares the target of an assignment as a register, in dialects that need no declarations.
    fn assume_register(&mut self, target: &Tree) {
        let word = self.str(&target.range);
        let known = self.scopes.find(word).is_some() || self.location(word).is_some();
        if matches!(target.kind, ExprKind::Name) && !known && !self.env.strict {
            self.undeclared(word);
        }
    }
}
