//! Finds the side effects of an expression, and checks the order in which the languages evaluate
//! its parts.
//!
//! Fencepost evaluates operands from left to right, or as the language requires. If the language
//! leaves the order open and the order could be noticed, each execution chooses one order
//! (`either_order`), or Fencepost refuses the expression.
//!
//! Two plain reads may be operands of one expression, a plain read and an atomic operation may not.
//! Fencepost orders plain reads, but this makes no difference to the models of these languages.
//! Such a read takes part in no synchronisation, and every other event precedes or follows both
//! reads alike.
//!
//! In the published suites, operands are evaluated from left to right.
//!
//! # Sources
//! - C11, 6.5 and annex C; ISO C++17, intro.execution, expr.ass, expr.shift, expr.sub, expr.call.

use std::collections::BTreeSet;
use std::ops::Range;

use super::ast::{Base, Expr as Tree, ExprKind, TypeName};
use super::coordinates::is_shape;
use super::groups::is_reduction;
use super::lower::{Lowering, Touches};
use super::scope::Binding;
use super::types::{Qualified, Type};
use program::{BinOp, RegId};

/// The effects of an expression.
#[derive(Default)]
pub(super) struct Effects {
    reads: BTreeSet<RegId>,
    writes: BTreeSet<RegId>,
    /// Writes that may still be pending when the value is ready.
    pending: BTreeSet<RegId>,
    /// Memory writes that may still be pending when the value is ready; `None`: memory without a
    /// known name.
    stores: BTreeSet<Option<String>>,
    /// It reads memory plainly.
    plain: bool,
    /// It has another effect that other code may notice.
    acts: bool,
}

impl Effects {
    /// Those of a function that accesses memory in this way.
    fn of_function(touches: Touches) -> Effects {
        Effects {
            plain: touches == Touches::Memory,
            acts: touches == Touches::Everything,
            ..Effects::default()
        }
    }

    /// Whether it has an effect that must not occur if the expression is not evaluated.
    pub(super) fn any(&self) -> bool {
        self.plain || self.acts || !self.writes.is_empty()
    }

    /// Whether it has another effect than to read memory plainly and to change variables.
    pub(super) fn acts(&self) -> bool {
        self.acts
    }

    /// Whether it changes a variable.
    pub(super) fn writes_variables(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Whether other code may notice the order of two expressions in memory.
    pub(super) fn acts_beside(&self, other: &Effects) -> bool {
        (self.acts && (other.acts || other.plain)) || (self.plain && other.acts)
    }

    /// Whether these effects change the value of an expression.
    pub(super) fn changes(&self, expr: &program::Expr) -> bool {
        !self.writes.is_empty()
            && expr.any(&|e| matches!(e, program::Expr::Reg(reg) if self.writes.contains(reg)))
    }

    /// Whether a variable may change after the value is ready.
    pub(super) fn leaves_open(&self, reg: RegId) -> bool {
        self.pending.contains(&reg)
    }

    /// Whether memory of that name may change after the value is ready.
    pub(super) fn leaves_memory_open(&self, name: &Option<String>) -> bool {
        !self.stores.is_empty()
            && (name.is_none() || self.stores.contains(name) || self.stores.contains(&None))
    }

    pub(super) fn and(mut self, other: Effects) -> Effects {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.pending.extend(other.pending);
        self.stores.extend(other.stores);
        self.plain |= other.plain;
        self.acts |= other.acts;
        self
    }

    /// These effects, then the other ones.
    fn then(mut self, other: Effects) -> Effects {
        self.pending.clear();
        self.stores.clear();
        self.and(other)
    }
}

/// Whether an access through a type may reach a volatile or atomic object.
fn is_volatile(ty: &Type) -> bool {
    match ty {
        Type::Pointer(of) | Type::Array(of, _) => of.volatile || of.atomic || is_volatile(&of.ty),
        Type::Struct(_) => !Qualified::from(ty.clone()).is_plain(),
        _ => false,
    }
}

fn says_volatile(name: &TypeName) -> bool {
    name.specifiers.of_base.volatile || name.declarator.pointers.iter().any(|p| p.volatile)
}

impl Lowering<'_, '_> {
    /// The effects of evaluating an expression.
    pub(super) fn effects(&self, tree: &Tree) -> Effects {
        let of = |tree: &Tree| self.effects(tree);
        if let Some((known, operands, _)) = self.operator_of(tree) {
            let touches = known.touches;
            let parts = operands.into_iter().map(of);
            return parts.fold(Effects::of_function(touches), Effects::and);
        }
        match &tree.kind {
            ExprKind::Lambda(_) | ExprKind::Trait(..) => Effects::default(),
            ExprKind::Made(name, args) => {
                let constructs = self
                    .known_structure(name)
                    .is_none_or(|ty| self.has_constructor(&ty));
                let made = Effects {
                    acts: constructs && !args.is_empty(),
                    ..Effects::default()
                };
                args.iter().map(of).fold(made, Effects::and)
            }
            ExprKind::Scoped(_, _, None) => Effects::default(),
            // A function object of a reduction.
            ExprKind::Scoped(_, name, Some(_)) if is_reduction(self.str(name)) => {
                Effects::default()
            }
            ExprKind::Scoped(_, _, Some(args)) => {
                let acts = Effects::of_function(Touches::Everything);
                args.iter().map(of).fold(acts, Effects::and)
            }
            ExprKind::Placed(..) => Effects::of_function(Touches::Everything),
            ExprKind::Invoke(called, args) => {
                let known = self
                    .type_of_place(called)
                    .and_then(|of| Some(self.method_of_type(&of.ty, "operator()")?.touches));
                let acts = Effects::of_function(known.unwrap_or(Touches::Everything));
                args.iter().map(of).fold(acts, Effects::and)
            }
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::SizeOf(_)
            | ExprKind::SizeOfType(_) => Effects::default(),
            ExprKind::Field(..) if self.is_special(tree) => Effects::default(),
            ExprKind::Name => self.read_of(tree),
            ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Field(..) => {
                self.effects_of_place(tree).and(self.read_of(tree))
            }
            ExprKind::Neg(a)
            | ExprKind::Plus(a)
            | ExprKind::Cast(_, a)
            | ExprKind::Not(a)
            | ExprKind::Complement(a) => of(a),
            ExprKind::AddressOf(a) => self.effects_of_place(a),
            ExprKind::Bin(_, a, b) | ExprKind::Cmp(_, a, b) => of(a).and(of(b)),
            ExprKind::Logic(_, a, b) | ExprKind::Comma(a, b) => of(a).then(of(b)),
            ExprKind::Choice(c, a, b) => of(c).then(of(a).and(of(b))),
            ExprKind::Assign(op, target, value) => {
                let both = self.effects_of_place(target).and(of(value));
                let both = if op.is_some() {
                    both.and(self.read_of(target))
                } else {
                    both
                };
                both.and(self.write_of(target))
            }
            ExprKind::Step { target, .. } => self
                .effects_of_place(target)
                .and(self.read_of(target))
                .and(self.write_of(target)),
            ExprKind::Call(name, args) => self.effects_of_call(self.str(name), args),
            ExprKind::Method(object, name, args) => {
                let mut all = self
                    .effects_of_place(object)
                    .and(self.effects_of_call(self.str(name), args));
                if let Some(known) = self.method_of_code(object, name) {
                    (all.acts, all.plain) = (false, false);
                    let parts = args.iter().map(of).chain([self.effects_of_place(object)]);
                    all = parts.fold(Effects::of_function(known.touches), Effects::and);
                }
                all
            }
            ExprKind::Refer(reference) => self.effects_of_place(&reference.object),
            ExprKind::Braced(..) | ExprKind::Vector(..) => tree
                .parts()
                .into_iter()
                .fold(Effects::default(), |all, part| all.and(of(part))),
        }
    }

    /// The effects of finding a place, without the read from it.
    pub(super) fn effects_of_place(&self, tree: &Tree) -> Effects {
        match &tree.kind {
            ExprKind::Name => Effects::default(),
            ExprKind::Deref(a) => self.effects(a),
            ExprKind::Field(..) if self.is_special(tree) => Effects::default(),
            ExprKind::Field(a, _) => self.effects_of_place(a),
            ExprKind::Index(a, i) if self.is_array(a) => {
                self.effects_of_place(a).and(self.effects(i))
            }
            ExprKind::Index(a, i) => self.effects(a).and(self.effects(i)),
            _ => self.effects(tree),
        }
    }

    /// The effects of a call: all arguments first, then the function.
    fn effects_of_call(&self, name: &str, args: &[Tree]) -> Effects {
        if self.is_call_of_language(name, args) {
            let parts = args.iter().map(|arg| self.effects(arg));
            return parts.fold(Effects::default(), Effects::and);
        }
        let plain = self.is_plain_read(name);
        let mut all = match self.touches_of_call(name) {
            Some(touches) => Effects::of_function(touches),
            None => Effects {
                acts: !plain && !self.is_pure(name),
                plain,
                ..Effects::default()
            },
        };
        let written = self
            .functions
            .get(name)
            .map_or(&[][..], |known| &known.written);
        for (n, arg) in args.iter().enumerate() {
            all = all.and(self.effects(arg));
            if written.get(n) == Some(&true) {
                all = all.and(self.write_of(arg));
            }
            // A compare-exchange writes the value found to the variable with the expected value.
            let given = match &arg.kind {
                ExprKind::AddressOf(inner) => inner,
                _ => arg,
            };
            if let (true, Some(Binding::Register(variable))) =
                (name.contains("compare_exchange"), self.binding(given))
            {
                all.reads.insert(variable.reg);
                all.writes.insert(variable.reg);
            }
        }
        all.pending.clear();
        all.stores.clear();
        all
    }

    /// The accesses of a lambda, of an object that is called, of a function of the current class,
    /// or of `S::f`.
    fn touches_of_call(&self, name: &str) -> Option<Touches> {
        match self.scopes.find(name) {
            Some(Binding::Closure(closure)) => return Some(closure.touches),
            Some(Binding::Memory(_, of)) => {
                return Some(self.method_of_type(&of.ty, "operator()")?.touches);
            }
            _ => {}
        }
        if let Some((known, _)) = self.method_of_this(name) {
            return Some(known.touches);
        }
        Some(self.function_of_class(name)?.0.touches)
    }

    /// Whether an expression contains a name.
    pub(super) fn mentions(&self, tree: &Tree, word: &str) -> bool {
        let here = matches!(tree.kind, ExprKind::Name) && self.str(&tree.range) == word;
        here || tree
            .parts()
            .into_iter()
            .any(|part| self.mentions(part, word))
    }

    /// The declaration that a name refers to, if the tree is a name.
    pub(super) fn binding(&self, tree: &Tree) -> Option<&Binding> {
        match tree.kind {
            ExprKind::Name => self.find_binding(self.str(&tree.range)),
            _ => None,
        }
    }

    /// Whether an expression denotes a whole array or the address of memory. Neither is a read.
    fn is_array(&self, tree: &Tree) -> bool {
        let named = matches!(tree.kind, ExprKind::Name) && self.binding(tree).is_none();
        match self.location(self.str(&tree.range)).filter(|_| named) {
            Some(loc) => !self.is_variable(loc),
            None => self
                .type_of_place(tree)
                .is_some_and(|of| matches!(of.ty, Type::Array(..))),
        }
    }

    /// The type of a place, as far as names and operators show; for other values, their type.
    pub(super) fn type_of_place(&self, tree: &Tree) -> Option<Qualified> {
        let pointed = |tree: &Tree| match self.type_of_place(tree)?.ty {
            Type::Pointer(to) | Type::Array(to, _) => Some(Qualified::clone(&to)),
            _ => None,
        };
        if let Some((known, ..)) = self.operator_of(tree) {
            return known.returns.clone();
        }
        if let Some(of) = self.type_of_vectors(tree) {
            return Some(of.into());
        }
        match &tree.kind {
            ExprKind::Name => match self.binding(tree) {
                Some(Binding::Register(variable)) => Some(variable.of.clone()),
                Some(Binding::Memory(_, of)) => Some(of.clone()),
                Some(Binding::Constant(value)) => Some(value.ty.clone().into()),
                Some(_) => None,
                None => {
                    let loc = self.location(self.str(&tree.range))?;
                    let (of, n) = (self.of_location(loc), self.symbols.elements(loc));
                    Some(match self.is_variable(loc) {
                        true => of,
                        false if self.env.language.cpp => Type::Array(of.into(), n as u32).into(),
                        false => of.pointer().into(),
                    })
                }
            },
            ExprKind::Deref(a) => pointed(a),
            ExprKind::Index(a, _) => pointed(a),
            ExprKind::Field(a, name) => {
                let of = self.type_of_place(a)?;
                let word = self.str(name);
                let single = self.single_component(&of.ty, word);
                let (_, member) = of.ty.member(single.as_deref().unwrap_or(word))?;
                Some(member.within(&of))
            }
            ExprKind::AddressOf(a) => match (&a.kind, self.binding(a), self.type_of_place(a)?) {
                // For memory that the test names, `&x` is its address.
                (ExprKind::Name, None, of) if !matches!(of.ty, Type::Struct(_)) => {
                    Some(match of.ty {
                        Type::Array(element, _) => Type::Pointer(element).into(),
                        Type::Pointer(_) => of,
                        _ => of.pointer().into(),
                    })
                }
                (_, _, of) => Some(of.pointer().into()),
            },
            ExprKind::Bin(BinOp::Add | BinOp::Sub, a, b) => {
                self.type_of_pointer(a).or_else(|| self.type_of_pointer(b))
            }
            ExprKind::Call(name, args) => {
                let word = self.str(name);
                let of_object = match self.scopes.find(word) {
                    Some(Binding::Memory(_, of)) => self.method_of_type(&of.ty, "operator()"),
                    _ => None,
                };
                if let Some(known) = of_object {
                    return known.returns.clone();
                }
                if let Some((known, _)) = self.method_of_this(word) {
                    return known.returns;
                }
                if let Some((known, _)) = self.function_of_class(word) {
                    return known.returns;
                }
                if let Some(pixel) = self.pixel_type(word) {
                    return Some(pixel);
                }
                if let Some(fetched) = self.fetched(name) {
                    return Some(fetched);
                }
                let known = self.functions.get(word);
                match known.filter(|_| !self.is_call_of_language(word, args)) {
                    Some(known) => known.returns.clone(),
                    None => self
                        .structure_of_prototype(word)
                        .or_else(|| self.pair_returned(word, args))
                        .or_else(|| self.vector(word.strip_prefix("make_")?))
                        .map(Qualified::from),
                }
            }
            ExprKind::Method(object, name, _) => self.method_of_code(object, name)?.returns.clone(),
            ExprKind::Invoke(of, _) => {
                let of = self.type_of_place(of)?;
                self.method_of_type(&of.ty, "operator()")?.returns.clone()
            }
            ExprKind::Braced(Some(of), _) | ExprKind::Vector(of, _) | ExprKind::Made(of, _) => {
                self.known_structure(of).map(Qualified::from)
            }
            ExprKind::Cast(of, _) => self.known_cast(of),
            ExprKind::Comma(_, a)
            | ExprKind::Choice(_, a, _)
            | ExprKind::Assign(_, a, _)
            | ExprKind::Step { target: a, .. } => self.type_of_place(a),
            _ => None,
        }
    }

    /// The type of a pointer, or of an array as one.
    fn type_of_pointer(&self, tree: &Tree) -> Option<Qualified> {
        match self.type_of_place(tree)?.ty {
            Type::Array(element, _) => Some(Type::Pointer(element).into()),
            pointer @ Type::Pointer(_) => Some(pointer.into()),
            _ => None,
        }
    }

    /// The type of a cast to a structure or to a pointer to one.
    fn known_cast(&self, of: &TypeName) -> Option<Qualified> {
        if let Some(of) = self.known_structure(of) {
            return Some(of.into());
        }
        let Base::Named(range) = &of.specifiers.base else {
            return None;
        };
        let word = self.str(range);
        let to = match self.find_binding(word) {
            Some(Binding::Type(to)) => to.ty.clone(),
            _ => self.vector(word)?,
        };
        let pointer = of.declarator.pointers.len() == 1 && of.declarator.arrays.is_empty();
        (pointer && matches!(to, Type::Struct(_))).then(|| {
            let said = of.specifiers.of_base;
            Qualified {
                constant: said.constant,
                volatile: said.volatile,
                space: said.space,
                ..to.into()
            }
            .pointer()
            .into()
        })
    }

    /// Whether an expression is a value of the thread's position, such as `threadIdx.x`, or looks
    /// like one.
    pub(super) fn is_special(&self, tree: &Tree) -> bool {
        let ExprKind::Field(object, _) = &tree.kind else {
            return false;
        };
        // `block.thread_index().x`
        if let ExprKind::Method(_, name, args) = &object.kind {
            return args.is_empty() && self.env.language.cpp && is_shape(self.str(name));
        }
        let named = matches!(object.kind, ExprKind::Name) && self.binding(object).is_none();
        named && self.location(self.str(&object.range)).is_none()
    }

    /// The effects of reading the place that an expression names.
    pub(super) fn read_of(&self, tree: &Tree) -> Effects {
        fn of_memory(of: &Qualified) -> Effects {
            let acts = of.volatile || of.atomic;
            Effects {
                plain: !acts,
                acts,
                ..Effects::default()
            }
        }
        let word = self.str(&tree.range);
        if self.is_object(tree) {
            return Effects {
                acts: true,
                ..Effects::default()
            };
        }
        match (&tree.kind, self.binding(tree)) {
            (_, Some(Binding::Register(variable))) => Effects {
                reads: [variable.reg].into(),
                ..Effects::default()
            },
            (_, Some(Binding::Memory(_, of))) if !matches!(of.ty, Type::Array(..)) => of_memory(of),
            (_, Some(_)) => Effects::default(),
            (ExprKind::Name, None) => match self.location(word) {
                Some(loc) if self.is_variable(loc) => of_memory(&self.of_location(loc)),
                _ => Effects::default(),
            },
            _ if self.is_array(tree) => Effects::default(),
            _ => {
                let acts = self.may_be_volatile(tree);
                Effects {
                    plain: !acts,
                    acts,
                    ..Effects::default()
                }
            }
        }
    }

    fn write_of(&self, tree: &Tree) -> Effects {
        match self.binding(tree) {
            Some(Binding::Register(variable)) => {
                let all: BTreeSet<RegId> = [variable.reg].into();
                Effects {
                    writes: all.clone(),
                    pending: all,
                    ..Effects::default()
                }
            }
            _ => Effects {
                acts: true,
                stores: [self.memory_named(tree)].into(),
                ..Effects::default()
            },
        }
    }

    /// The memory that contains a place, if a name identifies it: `x`, `*x` or `x[i]`.
    pub(super) fn memory_named(&self, tree: &Tree) -> Option<String> {
        let mut name = tree;
        loop {
            name = match &name.kind {
                ExprKind::Field(a, _) => a,
                // Inside an object, an array is a part and not a pointer to elsewhere.
                ExprKind::Deref(a) | ExprKind::Index(a, _)
                    if matches!(a.kind, ExprKind::Name) || self.is_array(a) =>
                {
                    a
                }
                _ => break,
            };
        }
        let word = self.str(&name.range);
        let memory = matches!(name.kind, ExprKind::Name) && self.binding(name).is_none();
        (memory && self.location(word).is_some()).then(|| word.to_owned())
    }

    /// Whether the object at a place may be volatile or atomic, as far as its names and casts show.
    fn may_be_volatile(&self, tree: &Tree) -> bool {
        match &tree.kind {
            ExprKind::Name => match self.binding(tree) {
                Some(Binding::Register(variable)) => is_volatile(&variable.of.ty),
                Some(Binding::Memory(_, of)) => of.volatile || of.atomic || is_volatile(&of.ty),
                Some(Binding::Constant(value)) => is_volatile(&value.ty),
                _ => self.location(self.str(&tree.range)).is_some_and(|loc| {
                    let of = self.of_location(loc);
                    of.volatile || of.atomic
                }),
            },
            // `threadIdx.x` is a value: its use as an index makes nothing volatile.
            ExprKind::Field(..) if self.is_special(tree) => false,
            ExprKind::Field(..) => self
                .type_of_place(tree)
                .is_none_or(|of| of.volatile || of.atomic || is_volatile(&of.ty)),
            ExprKind::Cast(to, a) => says_volatile(to) || self.may_be_volatile(a),
            ExprKind::Deref(a) | ExprKind::AddressOf(a) | ExprKind::Neg(a) | ExprKind::Plus(a) => {
                self.may_be_volatile(a)
            }
            ExprKind::Index(a, b)
            | ExprKind::Bin(_, a, b)
            | ExprKind::Comma(a, b)
            | ExprKind::Choice(_, a, b) => self.may_be_volatile(a) || self.may_be_volatile(b),
            ExprKind::Assign(_, a, _) | ExprKind::Step { target: a, .. } => self.may_be_volatile(a),
            _ => false,
        }
    }

    /// Reports two parts of an expression that the language does not order, if their order could be
    /// noticed.
    pub(super) fn unsequenced(&mut self, a: &Effects, b: &Effects, range: &Range<usize>) {
        let changed = a
            .writes
            .iter()
            .find(|r| b.reads.contains(r) || b.writes.contains(r));
        let changed = changed.or_else(|| b.writes.iter().find(|r| a.reads.contains(r)));
        if let Some(reg) = changed {
            let name = self.register_name(*reg);
            self.undefined_order(&name, range);
        } else if self.env.strict && a.acts_beside(b) {
            self.open_order(range);
        }
    }

    /// Reports memory accesses without an order.
    pub(super) fn open_order(&mut self, range: &Range<usize>) {
        self.error(
            "unsequenced",
            range,
            "the order of two accesses in this expression is left open",
            |d| {
                d.label("which of them comes first is for the compiler to say")
                    .help("write them in separate statements, in the intended order")
            },
        );
    }

    /// Reports a variable that the expression changes and uses without an order.
    pub(super) fn undefined_order(&mut self, name: &str, range: &Range<usize>) {
        let message = format!("`{name}` is changed here, and used or changed again in no order");
        let source = if self.env.language.cpp {
            "ISO C++, intro.execution"
        } else {
            "C11, 6.5"
        };
        self.error("unsequenced", range, message, |d| {
            d.label("this is undefined")
                .note(format!(
                    "unsequenced evaluations of one variable ({source})"
                ))
                .help("write the change in a separate statement")
        });
    }
}
