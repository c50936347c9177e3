//! Lowers expressions to values: loads and calls become micro-ops, the rest remains an expression
//! over registers.
//!
//! # Sources
//! - C11, 6.3 and 6.5; ISO C++17, expr; OpenCL C, *Operators*.
//!
//! # Where we differ
//! - Signed arithmetic wraps.
//! - A shift by the width or more gives 0 or the sign, as in PTX.
//! - A division by zero gives all ones; a run of the executor ends there.
//! - If constants cause one of these cases, Fencepost reports an error.

use std::ops::Range;

use super::annotations::{is_claim, is_operator};
use super::ast::{Expr as Tree, ExprKind, Initial, TypeName};
use super::calls::{Does, MOST_ARGUMENTS};
use super::coordinates::of_groups;
use super::cuda_calls::FUNCTIONS;
use super::function_table::rows;
use super::language::Shifts;
use super::lower::{Lowering, Touches};
use super::pipelines::role;
use super::place::{Place, shifted};
use super::refused;
use super::scope::Binding;
use super::texture_words::FETCHES;
use super::types::{Qualified, Type, Value, common, folded};
use super::words::{LIMITS, bare};
use super::{floats, math};
use program::{Access, BinOp, CmpOp, Expr, LocId, Op, Space, Ty};

impl Lowering<'_, '_> {
    /// The test's location that a name denotes in this thread.
    pub(super) fn location(&self, name: &str) -> Option<LocId> {
        match &self.env.visible {
            Some(visible) if !visible.contains(name) => None,
            _ => self
                .symbols
                .find(name)
                .filter(|loc| !self.symbols.object(*loc).1.of_code),
        }
    }

    /// Evaluates an expression. After an error, which this function reports, the value is
    /// arbitrary.
    pub(super) fn eval(&mut self, tree: &Tree) -> Value {
        self.depth += 1;
        let (value, refers) = self.eval_with_reference(tree);
        self.depth -= 1;
        match (refers, value.target().cloned()) {
            (true, Some(of)) if matches!(of.ty, Type::Struct(_)) => {
                Value::new(value.expr, of.ty.clone())
            }
            (true, Some(of)) => self.read(Place::Memory(value.expr, Qualified::clone(&of))),
            _ => value,
        }
    }

    /// The same; a returned reference is the address of its object, and true.
    pub(super) fn eval_with_reference(&mut self, tree: &Tree) -> (Value, bool) {
        self.refers = false;
        let value = self.eval_inner(tree);
        (value, std::mem::take(&mut self.refers))
    }

    fn eval_inner(&mut self, tree: &Tree) -> Value {
        if let Some(value) = self.operator_of_code(tree) {
            return value;
        }
        if let Some(value) = self.vector_operation(tree) {
            return value;
        }
        match &tree.kind {
            ExprKind::Int(v, ty) => Value::literal(*v, Type::Int(*ty)),
            ExprKind::Float(bits, format) => Value::literal(*bits, Type::Float(*format)),
            ExprKind::Name | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..)
                if self.is_object(tree) =>
            {
                self.read_object(tree)
            }
            ExprKind::Name => self.name(tree),
            ExprKind::Field(..) if self.is_special(tree) => self.member(tree),
            ExprKind::Step {
                target,
                one,
                op,
                prefix,
            } => self.step(tree, target, one, *op, *prefix, true),
            ExprKind::Neg(a) => {
                let a = self.eval(a);
                self.negative(a, &tree.range)
            }
            ExprKind::Plus(a) => {
                let a = self.eval(a);
                if matches!(a.ty, Type::Float(_)) {
                    return a;
                }
                self.arithmetic(BinOp::Add, a, Value::int(0), &tree.range)
            }
            ExprKind::Complement(a) => {
                let a = self.eval(a);
                self.arithmetic(BinOp::Xor, a, Value::int(-1), &tree.range)
            }
            ExprKind::Not(a) => {
                let a = self.condition(a);
                Value {
                    fixed: a.fixed,
                    ..self.truth(folded(a.is_false()))
                }
            }
            ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Field(..) => {
                match self.place(tree) {
                    Some(place) => self.read(place),
                    None => self.nothing(),
                }
            }
            ExprKind::AddressOf(a) => self.take_address(tree, a),
            ExprKind::Bin(op, a, b) => {
                let shift = matches!(op, BinOp::Shl | BinOp::Shr);
                let (a, b) = self.operands(a, b, shift && self.env.language.sequenced, &tree.range);
                self.arithmetic(*op, a, b, &tree.range)
            }
            ExprKind::Cmp(op, a, b) => {
                let (a, b) = self.operands(a, b, false, &tree.range);
                self.compare(*op, a, b, &tree.range)
            }
            ExprKind::Logic(and, a, b) => self.logic(*and, a, b),
            ExprKind::Choice(c, a, b) => self.choice(tree, c, a, b),
            ExprKind::Comma(a, b) => {
                self.discard(a);
                Value {
                    fixed: false,
                    ..self.eval(b)
                }
            }
            ExprKind::Assign(op, target, value) => self.assign(tree, target, *op, value, true),
            ExprKind::Call(name, args) => self.call(tree, name, args),
            ExprKind::Cast(to, a) => self.cast(tree, to, a),
            ExprKind::SizeOfType(of) => {
                let size = self.named_type(of).map_or(0, |of| of.ty.size());
                self.size(size, &tree.range)
            }
            ExprKind::SizeOf(of) => {
                let size = self.unevaluated(of).ty.size();
                self.size(size, &tree.range)
            }
            ExprKind::Refer(_) => self.bare_reference(&tree.range),
            ExprKind::Vector(to, all) => self.vector_of(tree, to, all),
            ExprKind::Braced(to, all) => self.braced(tree, to.as_deref(), all),
            ExprKind::Method(object, name, args) => self.method(tree, object, name, args),
            ExprKind::Made(of, args) => match self.named_type(of) {
                Some(of) => self.made_of(tree, &of, &args.iter().collect::<Vec<_>>()),
                None => self.nothing(),
            },
            ExprKind::Placed(at, of, args) => self.place_new(tree, at, of, args),
            ExprKind::Scoped(of, name, args) => self.scoped(tree, of, name, args.as_deref()),
            ExprKind::Lambda(_) => self.lambda_as_value(tree),
            ExprKind::Invoke(of, args) => self.invoke(tree, of, args),
            ExprKind::Trait(name, all) => self.type_trait(name, all),
        }
    }

    /// `-a`
    pub(super) fn negative(&mut self, a: Value, range: &Range<usize>) -> Value {
        if let Type::Float(format) = a.ty {
            return Value {
                expr: floats::negated(format, &a.expr),
                ..a
            };
        }
        self.arithmetic(BinOp::Sub, Value::int(0), a, range)
    }

    /// `std::is_same_v<T, float>` and other properties of types.
    fn type_trait(&mut self, name: &Range<usize>, all: &[TypeName]) -> Value {
        let mut types = Vec::new();
        for of in all {
            match self.named_type(of) {
                Some(of) => types.push(of),
                None => return self.nothing(),
            }
        }
        let word = bare(self.str(name));
        if let [of] = types.as_slice()
            && let Some(limit) = math::limit_of_type(&of.ty, word)
        {
            return limit;
        }
        fn signed(ty: &Type) -> bool {
            ty.word().is_some_and(|ty| ty.signed)
        }
        fn number(ty: &Type) -> bool {
            matches!(ty, Type::Int(_) | Type::Bool)
        }
        let holds = match (word.strip_suffix("_v").unwrap_or(word), types.as_slice()) {
            ("is_same", [a, b]) => a == b,
            ("is_integral", [a]) => number(&a.ty),
            ("is_floating_point", [a]) => matches!(a.ty, Type::Float(_)),
            ("is_arithmetic", [a]) => number(&a.ty) || matches!(a.ty, Type::Float(_)),
            ("is_pointer", [a]) => a.ty.target().is_some(),
            ("is_signed", [a]) => matches!(a.ty, Type::Float(_)) || signed(&a.ty),
            ("is_unsigned", [a]) => number(&a.ty) && !signed(&a.ty),
            _ => {
                let message = format!("`{word}` takes another number of types");
                self.error("wrong-operands", name, message, |d| {
                    d.label("expected another number")
                });
                return self.nothing();
            }
        };
        Value::literal(i64::from(holds), Type::Bool)
    }

    /// Evaluates an expression and discards its value.
    pub(super) fn discard(&mut self, tree: &Tree) {
        match &tree.kind {
            ExprKind::Assign(op, target, value) => {
                drop(self.assign(tree, target, *op, value, false))
            }
            ExprKind::Step {
                target,
                one,
                op,
                prefix,
            } => {
                drop(self.step(tree, target, one, *op, *prefix, false));
            }
            ExprKind::Comma(a, b) => {
                self.discard(a);
                self.discard(b);
            }
            _ => drop(self.eval(tree)),
        }
    }

    /// The value after an error. Code may use it without further messages.
    pub(super) fn nothing(&self) -> Value {
        Value::new(Expr::Const(0), Type::pointer_to(Ty::S32))
    }

    /// Whether a value is, or may be, the result of an error.
    pub(super) fn is_nothing(&self, value: &Value) -> bool {
        self.unit.broken || (self.sink.errors() > 0 && value.expr == Expr::Const(0) && !value.fixed)
    }

    /// The value of a comparison: an `int` in C, a `bool` in C++.
    fn truth(&self, expr: Expr) -> Value {
        let ty = if self.env.language.cpp {
            Type::Bool
        } else {
            Type::INT
        };
        Value::new(expr, ty)
    }

    /// Evaluates an expression that must have a value.
    pub(super) fn scalar(&mut self, tree: &Tree) -> Value {
        let value = self.converted_object(tree);
        if matches!(value.ty, Type::Void | Type::Struct(_)) {
            let message = match value.ty {
                Type::Void => "this has no value".to_owned(),
                ty => format!("a `{}` is not a number", ty.name()),
            };
            self.error("wrong-operand", &tree.range, message, |d| {
                d.label("expected a number")
            });
            return self.nothing();
        }
        value
    }

    /// `P{1, 2}`: a structure without a name. For a type with values, as in `int{3}`: a value.
    fn braced(&mut self, tree: &Tree, to: Option<&TypeName>, all: &Initial) -> Value {
        let (Some(to), Initial::List(values, _)) = (to, all) else {
            self.error(
                "wrong-operand",
                &tree.range,
                "nothing says what type this list is of",
                |d| d.label("expected a type before it"),
            );
            return self.nothing();
        };
        let Some(of) = self.named_type(to) else {
            return self.nothing();
        };
        match (&of.ty, values.as_slice()) {
            (Type::Struct(_), _) => {
                let Some(at) = self.unnamed(&format!("{}{{}}", of.ty.name()), &of, &tree.range)
                else {
                    return self.nothing();
                };
                self.initial_list(&at, &of, values, &tree.range);
                Value::new(at, of.ty)
            }
            (ty, []) if ty.word().is_some() => Value::literal(0, of.ty),
            (ty, [Initial::Value(value)]) if ty.word().is_some() => self.cast(tree, to, value),
            _ => {
                self.error("wrong-operand", &tree.range, "this is not a value", |d| {
                    d.label("expected a structure, or one value")
                });
                self.nothing()
            }
        }
    }

    /// `(int2)(1, 2)`, or one value for all components (OpenCL C, *Vector Literals*).
    fn vector_of(&mut self, tree: &Tree, to: &TypeName, all: &[Tree]) -> Value {
        let Some(of) = self.named_type(to).map(|of| of.ty) else {
            return self.nothing();
        };
        if !matches!(of, Type::Struct(_)) {
            self.error(
                "unsupported",
                &tree.range,
                "the name of a vector type that is another one here",
                |d| {
                    d.label("expected a vector")
                        .help("give your own type another name")
                },
            );
            return self.nothing();
        }
        self.in_any_order(all, &tree.range);
        let mut values = self.flattened(all);
        let of = Qualified::from(of);
        let parts = of.parts();
        if let [one] = values.as_slice() {
            let value = match one.0.expr {
                Expr::Const(_) | Expr::Reg(_) => one.0.clone(),
                _ => self.kept(one.0.clone()),
            };
            let one = (value, one.1.clone());
            values = vec![one; parts.len()];
        }
        let given = values.len();
        let values = values.into_iter().zip(&parts);
        let values: Vec<Expr> = values
            .map(|((value, range), (_, part))| self.assignable(&value, &part.ty, &range))
            .collect();
        self.made_of_values(tree, &of, given, values)
    }

    /// `make_int2(1, 2)`
    fn made(&mut self, tree: &Tree, of: Type, args: &[&Tree]) -> Value {
        let of = Qualified::from(of);
        let parts = of.parts();
        let values: Vec<Expr> = args
            .iter()
            .zip(&parts)
            .map(|(arg, (_, part))| {
                let value = self.scalar(arg);
                self.assignable(&value, &part.ty, &arg.range)
            })
            .collect();
        self.made_of_values(tree, &of, args.len(), values)
    }

    /// A structure of values; `given`: how many the code gives.
    pub(super) fn made_of_values(
        &mut self,
        tree: &Tree,
        of: &Qualified,
        given: usize,
        values: Vec<Expr>,
    ) -> Value {
        let parts = of.parts();
        if parts.len() != given {
            let (name, wanted) = (of.ty.name(), parts.len());
            let message = format!("a `{name}` is made of {wanted} values, {given} given");
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected a value for each member")
            });
            return self.nothing();
        }
        let Some(at) = self.unnamed(&format!("{}{{}}", of.ty.name()), of, &tree.range) else {
            return self.nothing();
        };
        for ((offset, part), value) in parts.into_iter().zip(values) {
            self.write(&Place::Memory(shifted(&at, offset), part), value);
        }
        Value::new(at, of.ty.clone())
    }

    /// Evaluates an expression as a truth value.
    pub(super) fn condition(&mut self, tree: &Tree) -> Value {
        let value = self.scalar(tree);
        if let Type::Enum(of) = &value.ty
            && of.scoped
        {
            let message = format!("a `{}` is not a truth value", of.name);
            self.error("wrong-operand", &tree.range, message, |d| {
                d.label("expected a comparison, or a cast")
            });
        }
        value
    }

    /// The value that an expression would have; emits no code.
    pub(super) fn unevaluated(&mut self, tree: &Tree) -> Value {
        let code = self.code.len();
        let of = match self.whole(tree) {
            Some(of) => Value::new(Expr::Const(0), of.ty),
            None => self.eval(tree),
        };
        self.code.truncate(code);
        self.read_only.retain(|read| *read < code);
        of
    }

    /// The size of an object or type. Reports a size of 0.
    fn size(&mut self, size: u64, range: &Range<usize>) -> Value {
        if size == 0 {
            self.error("wrong-operand", range, "this has no size", |d| {
                d.label("expected a type that has one")
            });
        }
        Value::literal(size as i64, Type::Int(Ty::U64))
    }

    /// Evaluates both operands of an operator; `in_order`: the language evaluates the left one
    /// first.
    fn operands(
        &mut self,
        a: &Tree,
        b: &Tree,
        in_order: bool,
        range: &Range<usize>,
    ) -> (Value, Value) {
        let (of_a, of_b) = (self.effects(a), self.effects(b));
        if !in_order {
            if let Some(both) = self.in_either_order(a, b) {
                return both;
            }
            self.unsequenced(&of_a, &of_b, range);
        }
        let mut left = self.scalar(a);
        if of_b.changes(&left.expr) {
            left = self.kept(left);
        }
        (left, self.scalar(b))
    }

    /// Copies a value to a register, so that later changes of variables do not affect it.
    pub(super) fn kept(&mut self, value: Value) -> Value {
        let dst = self.temporary(value.word());
        self.push(Op::Assign {
            dst,
            value: value.expr,
        });
        Value {
            expr: Expr::Reg(dst),
            ..value
        }
    }

    /// `a op b` after the conversions of the language.
    pub(super) fn arithmetic(
        &mut self,
        op: BinOp,
        a: Value,
        b: Value,
        range: &Range<usize>,
    ) -> Value {
        // The operand of an error brings no further error.
        if self.is_nothing(&a) || self.is_nothing(&b) {
            return self.nothing();
        }
        let fixed = a.fixed && b.fixed;
        match (op, a.target().cloned(), b.target().cloned()) {
            (BinOp::Add, Some(_), None) => return self.moved(a, b, false, range),
            (BinOp::Add, None, Some(_)) => return self.moved(b, a, false, range),
            (BinOp::Sub, Some(_), None) => return self.moved(a, b, true, range),
            (BinOp::Sub, Some(to), Some(_)) => {
                let bytes = Expr::Bin(BinOp::Sub, Ty::WORD, a.expr.into(), b.expr.into());
                let size = Expr::Const((to.ty.size() as i64).max(1));
                return Value::of(
                    Expr::Bin(BinOp::Div, Ty::WORD, bytes.into(), size.into()),
                    Ty::WORD,
                );
            }
            _ => {}
        }
        if let Some(value) = self.float_arithmetic(op, &a, &b, range) {
            return value;
        }
        let (Some(left), Some(right)) = (a.ty.promoted(), b.ty.promoted()) else {
            if !self.is_nothing(&a) && !self.is_nothing(&b) {
                let (a, b) = (a.ty.name(), b.ty.name());
                self.error(
                    "wrong-operand",
                    range,
                    format!("no such operation on `{a}` and `{b}`"),
                    |d| d.label("expected integers"),
                );
            }
            return self.nothing();
        };
        let shift = matches!(op, BinOp::Shl | BinOp::Shr);
        let ty = if shift { left } else { common(left, right) };
        let mut second = if shift { b.fit(right) } else { b.fit(ty) };
        if shift {
            let last = i64::from(ty.bits) - 1;
            match (self.env.language.shifts, b.constant().filter(|_| b.fixed)) {
                (Shifts::Modulo, Some(n)) => second = Expr::Const(n & last),
                (Shifts::Modulo, None) => {
                    second = Expr::Bin(BinOp::And, right, second.into(), Expr::Const(last).into());
                }
                (Shifts::Undefined, Some(n)) if !(0..=last).contains(&n) => {
                    self.error(
                        "undefined-value",
                        range,
                        format!("a shift by {n} of {} bits", ty.bits),
                        |d| {
                            d.label(format!("expected an amount of 0 to {last}"))
                                .note("any other is undefined")
                        },
                    );
                }
                _ => {}
            }
        }
        if op.divides() && b.fixed && b.constant() == Some(0) {
            self.error("undefined-value", range, "a division by zero", |d| {
                d.label("expected another divisor").note("it is undefined")
            });
        }
        if fixed && overflows(op, ty, a.constant(), b.constant()) {
            self.error(
                "undefined-value",
                range,
                format!("this overflows `{}`", Type::Int(ty).name()),
                |d| {
                    d.label("expected a value that the type has")
                        .note("overflow of a signed type is undefined")
                },
            );
        }
        Value::calculated(op, ty, &a, second, fixed)
    }

    /// A pointer moved by a number of elements.
    pub(super) fn moved(
        &mut self,
        pointer: Value,
        by: Value,
        back: bool,
        range: &Range<usize>,
    ) -> Value {
        let size = pointer.target().map_or(0, |to| to.ty.size()) as i64;
        if size == 0 || by.ty.promoted().is_none() {
            if !self.is_nothing(&pointer) && !self.is_nothing(&by) {
                self.error(
                    "wrong-operand",
                    range,
                    format!("no such operation on `{}`", pointer.ty.name()),
                    |d| d.label("expected a pointer to something that has a size, and an integer"),
                );
            }
            return self.nothing();
        }
        let ty = common(by.word(), Ty::WORD);
        let by = match by.constant() {
            Some(n) => Expr::Const(n.wrapping_mul(size)),
            None if size == 1 => by.expr,
            None => Expr::Bin(BinOp::Mul, ty, by.expr.into(), Expr::Const(size).into()),
        };
        let op = if back { BinOp::Sub } else { BinOp::Add };
        Value::new(
            Expr::Bin(op, Ty::WORD, pointer.expr.into(), by.into()),
            pointer.ty,
        )
    }

    pub(super) fn compare(&mut self, op: CmpOp, a: Value, b: Value, range: &Range<usize>) -> Value {
        if let Some(format) = floats::common(&a.ty, &b.ty) {
            let fixed = a.fixed && b.fixed;
            let expr = floats::compared(op, format, &a, &b);
            return Value {
                fixed,
                ..self.truth(expr)
            };
        }
        fn pointer(value: &Value) -> bool {
            value.target().is_some()
        }
        let ty = match (a.ty.promoted(), b.ty.promoted()) {
            (Some(a), Some(b)) => common(a, b),
            _ if a.ty == b.ty && matches!(a.ty, Type::Enum(_)) => a.word(),
            _ if (pointer(&a) || a.is_null()) && (pointer(&b) || b.is_null()) => Ty::U64,
            _ => {
                if self.env.strict && !self.is_nothing(&a) && !self.is_nothing(&b) {
                    let (a, b) = (a.ty.name(), b.ty.name());
                    self.error(
                        "wrong-operand",
                        range,
                        format!("no comparison of `{a}` and `{b}`"),
                        |d| d.label("expected two integers or two pointers"),
                    );
                }
                Ty::U64
            }
        };
        let fixed = a.fixed && b.fixed;
        let expr = Expr::Cmp(op, ty, a.fit(ty).into(), b.fit(ty).into());
        Value {
            fixed,
            ..self.truth(if fixed { folded(expr) } else { expr })
        }
    }

    fn name(&mut self, tree: &Tree) -> Value {
        let range = &tree.range;
        let name = self.str(range);
        match self.find_binding(name).cloned() {
            Some(Binding::Register(variable)) => return self.read(Place::Register(variable)),
            Some(Binding::Memory(addr, of)) => return self.read(Place::Memory(addr, of)),
            Some(Binding::Constant(value)) => return value,
            Some(Binding::Atomic(_)) => return self.bare_reference(range),
            Some(
                Binding::Group(_)
                | Binding::Pipeline(_)
                | Binding::PipelineState(_)
                | Binding::Type(_)
                | Binding::Closure(_)
                | Binding::Closures(_)
                | Binding::Spelled(_),
            ) => {
                self.error(
                    "wrong-operand",
                    range,
                    format!("`{name}` is not a value"),
                    |d| d.label("expected one"),
                );
                return self.nothing();
            }
            None => {}
        }
        if let Some(loc) = self.location(name) {
            self.refuse_image(loc, range);
            self.refuse_pipe(loc, range);
            let of = self.of_location(loc);
            return match self.is_variable(loc) {
                true => self.read(Place::Memory(Expr::Address(loc), of)),
                false => self.address_of(range),
            };
        }
        if let Some(value) = self
            .special(name)
            .or_else(|| self.result(name).map(Value::int))
        {
            return value;
        }
        if let Some(role) = role(name).filter(|_| self.env.language.cpp) {
            return role;
        }
        if let Some(&(_, value, ty)) = LIMITS.iter().find(|limit| limit.0 == name) {
            return Value::literal(value, Type::Int(ty));
        }
        if let Some(value) = math::constant(name) {
            return value;
        }
        match name {
            "true" | "false" if self.env.language.cpp => {
                Value::literal(i64::from(name == "true"), Type::Bool)
            }
            "true" | "false" => Value::int(i64::from(name == "true")),
            "nullptr" | "NULL" => Value::literal(0, Qualified::from(Type::Void).pointer()),
            _ => {
                self.unknown_register(range);
                self.nothing()
            }
        }
    }

    /// The address of the test's location that `range` names.
    pub(super) fn address_of(&mut self, range: &Range<usize>) -> Value {
        match self.location(self.str(range)) {
            Some(loc) => Value::new(Expr::Address(loc), self.of_location(loc).pointer()),
            None => self.nothing(),
        }
    }

    pub(super) fn unknown_register(&mut self, range: &Range<usize>) {
        let name = self.str(range);
        let elsewhere = self.symbols.find(name).is_some();
        let mut known: Vec<String> = self.scopes.names().map(str::to_string).collect();
        known.extend(
            self.symbols
                .names()
                .filter(|n| self.location(n).is_some())
                .map(str::to_string),
        );
        known.extend(self.results().map(|r| r.0.to_string()));
        known.sort_unstable();
        let behind = self.is_known_elsewhere(name);
        if self.unit.broken {
            // A statement that the parser could not read may contain the declaration.
            return;
        }
        if self.functions.contains_key(name) {
            self.refuse_function_pointer(range);
            return;
        }
        if self.of_host.contains(name) {
            let message = format!("`{name}` is a variable of the host");
            self.error("unsupported", range, message, |d| {
                d.label("expected a variable of the device")
                    .help("write `__device__` before its declaration")
            });
            return;
        }
        self.error(
            "unknown-name",
            range,
            format!("there is no register or parameter `{name}` here"),
            |d| {
                let d = d.label("expected a declared register or a location");
                if behind {
                    d.help(format!(
                        "`{name}` is declared in another block, and known there only"
                    ))
                } else if elsewhere {
                    d.help(format!(
                        "`{name}` is a location; add it to the parameters of this thread"
                    ))
                } else if is_macro_like(name) {
                    d.help(format!(
                        "if the command of the build defines it, give it: `--define {name}=16`"
                    ))
                } else {
                    d.did_you_mean(name, known.iter().map(String::as_str))
                }
            },
        );
    }

    /// A load.
    pub(super) fn load(&mut self, addr: Expr, access: Access) -> Value {
        let ty = access.ty;
        let dst = self.temporary(ty);
        self.push(Op::Load { dst, addr, access });
        Value::of(Expr::Reg(dst), ty)
    }

    fn logic(&mut self, and: bool, a: &Tree, b: &Tree) -> Value {
        let left = self.condition(a);
        self.logic_with(and, left, b)
    }

    /// `left && b` (true) or `left || b`, where the left operand is evaluated already.
    pub(super) fn logic_with(&mut self, and: bool, left: Value, b: &Tree) -> Value {
        if !self.effects(b).any() {
            let right = self.condition(b);
            let op = if and { BinOp::And } else { BinOp::Or };
            let fixed = left.fixed && right.fixed;
            let expr = Expr::Bin(op, Ty::S32, left.is_true().into(), right.is_true().into());
            return Value {
                fixed,
                ..self.truth(if fixed { folded(expr) } else { expr })
            };
        }
        let dst = self.temporary(Ty::S32);
        self.push(Op::Assign {
            dst,
            value: left.is_true(),
        });
        let known = Value::of(Expr::Reg(dst), Ty::S32);
        let skip = self.branch(if and {
            known.is_false()
        } else {
            Expr::Reg(dst)
        });
        let right = self.condition(b);
        self.push(Op::Assign {
            dst,
            value: right.is_true(),
        });
        let end = self.code.len();
        self.patch(skip, end);
        self.truth(Expr::Reg(dst))
    }

    pub(super) fn choice(&mut self, tree: &Tree, cond: &Tree, a: &Tree, b: &Tree) -> Value {
        let structure = self
            .type_of_place(a)
            .filter(|of| matches!(of.ty, Type::Struct(_)));
        if let Some(of) = structure {
            return self.choice_of_structures(tree, cond, a, b, &Qualified::from(of.ty));
        }
        let range = &cond.range;
        let cond = self.condition(cond);
        if matches!(cond.ty, Type::Float(_)) && self.env.language.row().regions {
            let message = "a number of floating point chooses between two values";
            self.error("wrong-operand", range, message, |d| {
                d.label("expected an integer")
                    .note("`?:` takes any first operand but such a number (OpenCL C, Operators)")
                    .help("compare it: `v != 0 ? … : …`")
            });
        }
        if !self.effects(a).any() && !self.effects(b).any() {
            let (a, b) = (self.eval(a), self.eval(b));
            let ty = self.of_both(&a, &b, &tree.range);
            let fixed = cond.fixed && a.fixed && b.fixed;
            let (a, b) = (a.converted(&ty).expr, b.converted(&ty).expr);
            let expr = Expr::Select(cond.is_true().into(), a.into(), b.into());
            return Value {
                expr: if fixed { folded(expr) } else { expr },
                ty,
                fixed,
            };
        }
        let dst = self.temporary(Ty::WORD);
        let skip = self.branch(cond.is_false());
        let a = self.eval(a);
        // The second operand determines the target type of this conversion.
        let first = self.push(Op::Assign {
            dst,
            value: Expr::Const(0),
        });
        let over = self.branch(Expr::Const(1));
        let middle = self.code.len();
        self.patch(skip, middle);
        let b = self.eval(b);
        let ty = self.of_both(&a, &b, &tree.range);
        self.code[first].op = Op::Assign {
            dst,
            value: a.converted(&ty).expr,
        };
        self.push(Op::Assign {
            dst,
            value: b.converted(&ty).expr,
        });
        let end = self.code.len();
        self.patch(over, end);
        Value::new(Expr::Reg(dst), ty)
    }

    /// `c ? a : b` of structures: a copy of one of them.
    fn choice_of_structures(
        &mut self,
        tree: &Tree,
        cond: &Tree,
        a: &Tree,
        b: &Tree,
        of: &Qualified,
    ) -> Value {
        let Some(at) = self.unnamed(&format!("{}()", of.ty.name()), of, &tree.range) else {
            return self.nothing();
        };
        let cond = self.condition(cond);
        let skip = self.branch(cond.is_false());
        self.copy_structure(at.clone(), of.clone(), a, &tree.range);
        let over = self.branch(Expr::Const(1));
        let middle = self.code.len();
        self.patch(skip, middle);
        self.copy_structure(at.clone(), of.clone(), b, &tree.range);
        let end = self.code.len();
        self.patch(over, end);
        Value::new(at, of.ty.clone())
    }

    /// The type of a choice between two values.
    fn of_both(&mut self, a: &Value, b: &Value, range: &Range<usize>) -> Type {
        match (&a.ty, &b.ty) {
            // C converts two operands of one type, C++ does not (C11, 6.5.15; ISO C++, expr.cond).
            (x, y) if x == y && (self.env.language.cpp || x.promoted().is_none()) => x.clone(),
            (Type::Pointer(_), _) if b.is_null() => a.ty.clone(),
            (_, Type::Pointer(_)) if a.is_null() => b.ty.clone(),
            (Type::Pointer(x), Type::Pointer(y)) if x.ty == y.ty => {
                let volatile = x.volatile || y.volatile;
                let constant = x.constant || y.constant;
                Qualified {
                    volatile,
                    constant,
                    ..Qualified::clone(x)
                }
                .pointer()
            }
            (x, y) if floats::common(x, y).is_some() => {
                floats::common(x, y).map_or(Type::INT, Type::Float)
            }
            (x, y) => match (x.promoted(), y.promoted()) {
                (Some(x), Some(y)) => Type::Int(common(x, y)),
                _ => {
                    if !self.is_nothing(a) && !self.is_nothing(b) {
                        let (x, y) = (x.name(), y.name());
                        self.error(
                            "wrong-operand",
                            range,
                            format!("`{x}` or `{y}`: no type is both"),
                            |d| d.label("expected two values of one type"),
                        );
                    }
                    Type::INT
                }
            },
        }
    }

    fn call(&mut self, tree: &Tree, name: &Range<usize>, args: &[Tree]) -> Value {
        let word = self.str(name);
        if !is_claim(word) {
            self.in_any_order(args, &tree.range);
        }
        if let Some(value) = self.call_of_code(tree, name, args) {
            return value;
        }
        if let Some(value) = self.texture_fetch(tree, name, args) {
            return value;
        }
        let of_object = self.image_call(word, tree, args);
        if let Some(value) = of_object.or_else(|| self.pipe_call(word, tree, args)) {
            return value;
        }
        if let Some(value) = self.annotation(tree, word, args) {
            return value;
        }
        if let Some(value) = self.call_of_bytes(tree, name, args) {
            return value;
        }
        if let Some(value) = self.ptx_call(tree, name, args) {
            return value;
        }
        if let Some(value) = self.coordinate(tree, word, args) {
            return value;
        }
        if let Some(value) = self.group_call(tree, name, args) {
            return value;
        }
        if let Some(value) = self.answer(tree, name, args) {
            return value;
        }
        if let Some(value) = self.conversion(tree, name, args) {
            return value;
        }
        if let Some(value) = self.math_call(tree, word, args) {
            return value;
        }
        if let Some(of) = word
            .strip_prefix("make_")
            .and_then(|name| self.vector(name))
        {
            return self.made(tree, of, &args.iter().collect::<Vec<_>>());
        }
        let language = self.env.language;
        match (bare(word), args) {
            ("init", _) if self.env.language.cpp => return self.init_object(tree, args),
            ("construct_at", [at, rest @ ..]) if self.env.language.cpp => {
                return self.construct_at(tree, at, rest);
            }
            ("destroy_at", [at]) if self.env.language.cpp => return self.destroy_at(at),
            // For a value without an owner, `move` returns the value.
            ("move" | "forward", [arg]) if self.env.language.cpp => return self.eval(arg),
            ("swap", [a, b]) if self.env.language.cpp => return self.swap(tree, a, b),
            ("to_global", [arg]) if language.row().regions => {
                return self.pointer_into(Space::Global, arg);
            }
            ("to_local", [arg]) if language.row().regions => {
                return self.pointer_into(Space::Shared, arg);
            }
            ("to_private", [arg]) if language.row().regions => {
                return self.pointer_into(Space::Local, arg);
            }
            _ => {}
        }
        if let Some(value) = self.copies_async(word, tree, args) {
            return value;
        }
        let here = |r: &&super::calls::FunctionRow| language.functions.contains(&r.dialects);
        let plain = if language.cpp { bare(word) } else { word };
        match rows().filter(here).find(|r| r.name == plain) {
            Some(row) => self.function(row, tree, args, None),
            None => {
                if self.refused_function(name, word) {
                    return Value::int(0);
                }
                if let Some(value) = self.call_of_prototype(tree, name, args) {
                    return value;
                }
                let other = rows().any(|r| r.name == word);
                let calls: Vec<&str> = self.value_calls().collect();
                self.error(
                    "unknown-function",
                    name,
                    format!("there is no function `{word}` here"),
                    |d| {
                        let d = d.label("expected a function of this dialect");
                        let d = if other {
                            d.note("another dialect has it")
                        } else {
                            d
                        };
                        d.did_you_mean(plain, rows().filter(here).map(|r| r.name).chain(calls))
                    },
                );
                self.nothing()
            }
        }
    }

    /// `to_global(p)` and its like: the pointer if it leads into the space, else null (OpenCL C,
    /// *Address Space Qualifier Functions*).
    fn pointer_into(&mut self, space: Space, tree: &Tree) -> Value {
        let pointer = self.eval(tree);
        let Some(of) = pointer.target().map(|of| Qualified::clone(of)) else {
            self.error("wrong-operand", &tree.range, "this is not a pointer", |d| {
                d.label("expected one to any address space")
            });
            return self.nothing();
        };
        let to = Type::Pointer(
            Qualified {
                space: Some(space),
                ..of
            }
            .into(),
        );
        let expr = match pointer.expr.base() {
            Some(loc) if self.symbols.object(loc).1.space == space => pointer.expr,
            Some(_) => Expr::Const(0),
            None => {
                let at = self.stable(pointer.expr);
                let inside: Vec<Expr> = self
                    .symbols
                    .objects()
                    .filter(|(_, object)| object.space == space)
                    .map(|(loc, object)| {
                        let bytes = object.layout().bytes(object.init.len());
                        let distance = Expr::Bin(
                            BinOp::Sub,
                            Ty::U64,
                            at.clone().into(),
                            Expr::Address(loc).into(),
                        );
                        let end = Expr::Const(bytes as i64);
                        Expr::Cmp(CmpOp::Lt, Ty::U64, distance.into(), end.into())
                    })
                    .collect();
                let any = inside.into_iter().fold(Expr::Const(0), |all, one| {
                    Expr::Bin(BinOp::Or, Ty::S32, all.into(), one.into())
                });
                Expr::Select(any.into(), at.into(), Expr::Const(0).into())
            }
        };
        Value::new(expr, to)
    }

    /// `std::swap(a, b)`
    fn swap(&mut self, tree: &Tree, a: &Tree, b: &Tree) -> Value {
        let (Some(first), Some(second)) = (self.place(a), self.place(b)) else {
            return self.nothing();
        };
        let (of_first, of_second) = (first.of().ty.clone(), second.of().ty.clone());
        if of_first != of_second || of_first.word().is_none() {
            self.error(
                "wrong-operands",
                &tree.range,
                "these are not exchanged here",
                |d| d.label("expected two numbers of one type"),
            );
            return self.nothing();
        }
        let (old_first, old_second) = (self.read(first.clone()), self.read(second.clone()));
        let (old_first, old_second) = (self.kept(old_first), self.kept(old_second));
        if self.writable(&first, &a.range) && self.writable(&second, &b.range) {
            self.write(&first, old_second.expr);
            self.write(&second, old_first.expr);
        }
        Value::void()
    }

    /// Reports a function that the languages have and Fencepost does not support. Returns whether
    /// `word` is one.
    pub(super) fn refused_function(&mut self, name: &Range<usize>, word: &str) -> bool {
        let Some((what, instead)) = refused::function(word) else {
            return false;
        };
        self.error(
            "unsupported-function",
            name,
            format!("`{word}` is not supported: {what}"),
            |d| {
                d.label("the language has it, the checker has not")
                    .help(instead)
            },
        );
        true
    }

    /// Whether a call of that name changes nothing and reads no memory.
    pub(super) fn is_pure(&self, name: &str) -> bool {
        let row = rows().find(|r| r.name == bare(name));
        if let Some(known) = self.functions.get(name) {
            return known.touches == Touches::Nothing;
        }
        row.is_some_and(|row| {
            matches!(
                row.does,
                Does::Larger | Does::Smaller | Does::Bits(..) | Does::Computes(..) | Does::Nothing
            )
        }) || is_operator(name)
            || self.prototypes.contains_key(name)
            || math::is_function(name, self.env.language)
            || (self.env.language.cpp && FETCHES.contains(&name))
            || self.env.specials.iter().any(|s| s.0 == name)
            || name.starts_with("get_")
            || (self.env.language.row().regions
                && (name.starts_with("convert_")
                    || name.starts_with("as_")
                    || TO_SPACES.contains(&name)))
            || of_groups().any(|function| function == name)
            || GROUPS_OF_LAUNCH.contains(&super::words::group_word(name))
            || matches!(
                name,
                "std::move"
                    | "cuda::std::move"
                    | "cuda::aligned_size_t"
                    | "meta_group_rank"
                    | "meta_group_size"
            )
    }

    /// Whether a call of that name reads memory plainly and has no other effect.
    pub(super) fn is_plain_read(&self, name: &str) -> bool {
        if let Some(known) = self.functions.get(name) {
            return known.touches == Touches::Memory;
        }
        let row = FUNCTIONS
            .iter()
            .find(|r| r.name == name)
            .filter(|_| self.env.language.cpp);
        row.is_some_and(|row| matches!(row.does, Does::Read | Does::ReadOnly))
    }

    /// Reports arguments if their order could be noticed: no language orders arguments.
    pub(super) fn in_any_order(&mut self, args: &[Tree], range: &Range<usize>) {
        // No function takes more arguments.
        if args.len() > MOST_ARGUMENTS {
            return;
        }
        for (n, arg) in args.iter().enumerate() {
            let of_arg = self.effects(arg);
            for before in &args[..n] {
                let of_before = self.effects(before);
                self.unsequenced(&of_before, &of_arg, range);
            }
        }
    }
}

/// Whether a name is spelled like a macro: `BLOCK_SIZE`.
fn is_macro_like(name: &str) -> bool {
    name.len() > 1
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// The functions from a generic pointer to one into a space.
const TO_SPACES: [&str; 3] = ["to_global", "to_local", "to_private"];

/// Functions that give a group of threads, and do nothing.
const GROUPS_OF_LAUNCH: [&str; 4] = [
    "this_thread_block",
    "this_cluster",
    "this_grid",
    "tiled_partition",
];

/// Whether an operation on constants of a signed type overflows.
fn overflows(op: BinOp, ty: Ty, a: Option<i64>, b: Option<i64>) -> bool {
    let (true, Some(a), Some(b)) = (ty.signed, a, b) else {
        return false;
    };
    let (a, b) = (i128::from(ty.wrap(a)), i128::from(ty.wrap(b)));
    let exact = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div if b != 0 => a / b,
        BinOp::Rem if b != 0 => a / b,
        _ => return false,
    };
    i64::try_from(exact).map_or(true, |v| ty.wrap(v) != v)
}
