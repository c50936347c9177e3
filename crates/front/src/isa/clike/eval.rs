//! Expressions to values: loads and calls become micro-ops, the rest stays an expression over registers.
//!
//! # Sources
//! - C11, 6.3.1.8, *Usual arithmetic conversions*: here, 32 bits unless an operand has 64, unsigned if one of the widest
//!   operands is; comparisons and logic give `int`.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind};
use super::calls::ROWS;
use super::cuda_calls::FUNCTIONS;
use super::lower::Lowering;
use super::refused;
use super::words::bare;
use program::{Access, BinOp, CmpOp, Expr, LocId, Op, Ty};

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) expr: Expr,
    pub(super) ty: Ty,
    /// What it points to, if it is an address.
    pub(super) target: Option<Ty>,
}

impl Value {
    pub(super) fn int(value: i64) -> Value {
        let ty = if Ty::S32.wrap(value) == value { Ty::S32 } else { Ty::WORD };
        Value { expr: Expr::Const(value), ty, target: None }
    }

    /// `a op b` after the usual conversions. A pointer stays one under addition and subtraction of an integer, which counts
    /// elements, as does the difference of two.
    pub(super) fn bin(op: BinOp, mut a: Value, mut b: Value) -> Value {
        let target = match op {
            BinOp::Add => a.target.or(b.target),
            BinOp::Sub if b.target.is_none() => a.target,
            _ => None,
        };
        if let Some(to) = target {
            let integer = if a.target.is_none() { &mut a } else { &mut b };
            *integer = integer.times(i64::from(to.bytes()));
        }
        let ty = match op {
            BinOp::Shl | BinOp::Shr => promoted(a.ty),
            _ => common(a.ty, b.ty),
        };
        let expr = Expr::Bin(op, ty, a.expr.into(), b.expr.into());
        match (op, a.target, b.target) {
            (BinOp::Sub, Some(to), Some(_)) => {
                let size = Expr::Const(i64::from(to.bytes()));
                Value { expr: Expr::Bin(BinOp::Div, Ty::WORD, expr.into(), size.into()), ty: Ty::WORD, target }
            }
            _ => Value { expr, ty, target },
        }
    }

    /// So many elements of some size, in bytes.
    fn times(&self, size: i64) -> Value {
        let ty = common(self.ty, Ty::WORD);
        let expr = match self.constant() {
            Some(n) => Expr::Const(n.wrapping_mul(size)),
            None if size == 1 => self.expr.clone(),
            None => Expr::Bin(BinOp::Mul, ty, self.expr.clone().into(), Expr::Const(size).into()),
        };
        Value { expr, ty, target: None }
    }

    fn cmp(op: CmpOp, a: Value, b: Value) -> Value {
        let ty = common(a.ty, b.ty);
        Value { expr: Expr::Cmp(op, ty, a.expr.into(), b.expr.into()), ty: Ty::S32, target: None }
    }

    /// The number that it is, if it is one whatever happens.
    pub(super) fn constant(&self) -> Option<i64> {
        fold(&self.expr)
    }

    /// The value converted to a type.
    pub(super) fn fit(&self, ty: Ty) -> Expr {
        match &self.expr {
            Expr::Const(v) => Expr::Const(ty.wrap(*v)),
            expr if holds(ty, self.ty) => expr.clone(),
            expr => Expr::Cast(ty, expr.clone().into()),
        }
    }
}

pub(super) fn fold(expr: &Expr) -> Option<i64> {
    expr.value(&|_| None)
}

/// Whether every value of type `from` is one of `ty`.
fn holds(ty: Ty, from: Ty) -> bool {
    ty == from || (ty.bits > from.bits && (ty.signed || !from.signed))
}

fn promoted(ty: Ty) -> Ty {
    if ty.bits < 32 { Ty::S32 } else { ty }
}

fn common(a: Ty, b: Ty) -> Ty {
    let (a, b) = (promoted(a), promoted(b));
    match a.bits.cmp(&b.bits) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => Ty { bits: a.bits, signed: a.signed && b.signed },
    }
}

/// An expression that is not 0 where the value is 0.
pub(super) fn falsity(value: &Value) -> Expr {
    match &value.expr {
        Expr::Cmp(op, ty, a, b) => {
            let negated = match op {
                CmpOp::Eq => CmpOp::Ne,
                CmpOp::Ne => CmpOp::Eq,
                CmpOp::Lt => CmpOp::Ge,
                CmpOp::Le => CmpOp::Gt,
                CmpOp::Gt => CmpOp::Le,
                CmpOp::Ge => CmpOp::Lt,
            };
            Expr::Cmp(negated, *ty, a.clone(), b.clone())
        }
        expr => Expr::Cmp(CmpOp::Eq, value.ty, expr.clone().into(), Expr::Const(0).into()),
    }
}

/// An expression that is 1 where the value is not 0, else 0.
fn truth(value: &Value) -> Expr {
    match &value.expr {
        cmp @ Expr::Cmp(..) => cmp.clone(),
        expr => Expr::Cmp(CmpOp::Ne, value.ty, expr.clone().into(), Expr::Const(0).into()),
    }
}

/// Whether an expression reads memory or calls something; where names are `memory`, they read it.
fn acts(tree: &Tree, memory: &dyn Fn(&Range<usize>) -> bool) -> bool {
    let acts = |tree| acts(tree, memory);
    match &tree.kind {
        ExprKind::Int(_) | ExprKind::Member => false,
        ExprKind::Step { .. } => true,
        ExprKind::Name => memory(&tree.range),
        ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Call(..) => true,
        ExprKind::Refer(_) | ExprKind::Method(..) => true,
        ExprKind::Neg(a)
        | ExprKind::Cast(_, a)
        | ExprKind::Not(a)
        | ExprKind::Complement(a)
        | ExprKind::AddressOf(a) => acts(a),
        ExprKind::Bin(_, a, b) | ExprKind::Cmp(_, a, b) | ExprKind::Logic(_, a, b) => acts(a) || acts(b),
        ExprKind::Choice(c, a, b) => acts(c) || acts(a) || acts(b),
    }
}

impl Lowering<'_, '_> {
    /// The location that a name stands for in this thread.
    pub(super) fn location(&self, name: &str) -> Option<LocId> {
        match &self.env.visible {
            Some(visible) if !visible.contains(name) => None,
            _ => self.symbols.find(name),
        }
    }

    /// Evaluates an expression. What is wrong with it was reported, and it then has some value.
    pub(super) fn eval(&mut self, tree: &Tree) -> Value {
        match &tree.kind {
            ExprKind::Int(v) => Value::int(*v),
            ExprKind::Name if self.is_object(tree) => self.read_object(tree),
            ExprKind::Name => self.name(&tree.range),
            ExprKind::Member => self.member(tree),
            ExprKind::Step { target, one, op, prefix } => self.step(target, one, *op, *prefix),
            ExprKind::Neg(a) => {
                let a = self.eval(a);
                match a.expr {
                    Expr::Const(v) => Value::int(v.wrapping_neg()),
                    _ => Value::bin(BinOp::Sub, Value::int(0), a),
                }
            }
            ExprKind::Not(a) => {
                let a = self.eval(a);
                Value { expr: falsity(&a), ty: Ty::S32, target: None }
            }
            ExprKind::Complement(a) => {
                let a = self.eval(a);
                Value::bin(BinOp::Xor, a, Value::int(-1))
            }
            ExprKind::Index(..) if self.is_object(tree) => self.read_object(tree),
            ExprKind::Deref(_) | ExprKind::Index(..) => match self.place(tree) {
                Some((addr, ty)) => {
                    let access = self.access(tree, ty);
                    self.load(addr, access)
                }
                None => Value::int(0),
            },
            ExprKind::AddressOf(a) => match &a.kind {
                ExprKind::Deref(_) | ExprKind::Index(..) => match self.place(a) {
                    Some((expr, ty)) => Value { expr, ty: Ty::WORD, target: Some(ty) },
                    None => Value::int(0),
                },
                // Where memory is given by name, `&x` is a common way to write its address.
                ExprKind::Name if self.location(self.str(&a.range)).is_some() => self.address_of(&a.range),
                _ if self.is_object(a) => {
                    self.object_as_memory(&a.range);
                    Value { target: Some(Ty::S32), ..Value::int(0) }
                }
                _ => {
                    self.error("wrong-operand", &tree.range, "only memory has an address", |d| {
                        d.label("expected a location or an element of one")
                            .note("`&r` of a register is understood as the expected value of a compare-exchange")
                    });
                    Value::int(0)
                }
            },
            ExprKind::Bin(op, a, b) => {
                let a = self.eval(a);
                let b = self.eval(b);
                Value::bin(*op, a, b)
            }
            ExprKind::Cmp(op, a, b) => {
                let a = self.eval(a);
                let b = self.eval(b);
                Value::cmp(*op, a, b)
            }
            ExprKind::Logic(and, a, b) => self.logic(*and, a, b),
            ExprKind::Choice(c, a, b) => self.choice(c, a, b),
            ExprKind::Call(name, args) => self.call(tree, name, args),
            ExprKind::Cast(target, a) => self.cast(tree, *target, a),
            ExprKind::Refer(_) => self.bare_reference(&tree.range),
            ExprKind::Method(object, name, args) => self.method(tree, object, name, args),
        }
    }

    fn name(&mut self, range: &Range<usize>) -> Value {
        let name = self.str(range);
        if let Some(v) = self.variables.get(name) {
            return Value { expr: Expr::Reg(v.reg), ty: v.ty, target: v.target };
        }
        match self.location(name) {
            Some(loc) if self.is_variable(loc) => {
                let ty = self.symbols.ty(loc);
                let access = self.plain(ty);
                self.load(Expr::Address(loc), access)
            }
            Some(_) => self.address_of(range),
            None if self.special(name).is_some() => self.special(name).unwrap_or(Value::int(0)),
            None if self.result(name).is_some() => Value::int(self.result(name).unwrap_or(0)),
            None if self.references.contains_key(name) => self.bare_reference(range),
            None => {
                self.unknown_register(range);
                // Whatever is done with it is no further mistake.
                Value { target: Some(Ty::S32), ..Value::int(0) }
            }
        }
    }

    /// The address of the location that is named there.
    fn address_of(&mut self, range: &Range<usize>) -> Value {
        if self.class_at(self.str(range)).is_some() {
            self.object_as_memory(range);
        }
        match self.location(self.str(range)) {
            Some(loc) => Value { expr: Expr::Address(loc), ty: Ty::WORD, target: Some(self.symbols.ty(loc)) },
            None => Value::int(0),
        }
    }

    /// Whether an expression reads memory or calls something.
    fn acts(&self, tree: &Tree) -> bool {
        acts(tree, &|range| self.location(self.str(range)).is_some_and(|loc| self.is_variable(loc)))
    }

    pub(super) fn unknown_register(&mut self, range: &Range<usize>) {
        let name = self.str(range);
        let elsewhere = self.symbols.find(name).is_some();
        let mut known: Vec<String> = self.variables.keys().filter(|n| !n.starts_with('$')).cloned().collect();
        known.extend(self.symbols.names().filter(|n| self.location(n).is_some()).map(str::to_string));
        known.extend(self.results().map(|r| r.0.to_string()));
        known.sort_unstable();
        let broken = self.unit.broken;
        if broken {
            // The declaration may be in a statement that could not be read.
            return;
        }
        self.error("unknown-name", range, format!("there is no register or parameter `{name}` here"), |d| {
            let d = d.label("expected a declared register or a location");
            if elsewhere {
                d.help(format!("`{name}` is a location; add it to the parameters of this thread"))
            } else {
                d.did_you_mean(name, known.iter().map(String::as_str))
            }
        });
    }

    /// A load.
    pub(super) fn load(&mut self, addr: Expr, access: Access) -> Value {
        let ty = access.ty;
        let dst = self.temporary(ty);
        self.push(Op::Load { dst, addr, access });
        Value { expr: Expr::Reg(dst), ty, target: None }
    }

    /// The address of `*p` or `a[i]`, and the type there.
    pub(super) fn place(&mut self, tree: &Tree) -> Option<(Expr, Ty)> {
        let pointer = match &tree.kind {
            ExprKind::Name if self.location(self.str(&tree.range)).is_some_and(|loc| self.is_variable(loc)) => {
                self.address_of(&tree.range)
            }
            ExprKind::Deref(a) => self.eval(a),
            ExprKind::Index(a, i) => {
                let a = self.eval(a);
                let i = self.eval(i);
                Value::bin(BinOp::Add, a, i)
            }
            _ => {
                self.error("wrong-operand", &tree.range, "this cannot be assigned to", |d| {
                    d.label("expected a register, `*x` or `x[i]`")
                });
                return None;
            }
        };
        self.address(pointer, &tree.range)
    }

    /// The value as an address, and the type there.
    pub(super) fn address(&mut self, pointer: Value, range: &Range<usize>) -> Option<(Expr, Ty)> {
        match pointer.target {
            Some(ty) => Some((pointer.expr, ty)),
            None => {
                if !self.unit.broken {
                    self.error("wrong-operand", range, "this is no pointer", |d| {
                        d.label("expected a location, or a register declared as a pointer")
                    });
                }
                None
            }
        }
    }

    fn logic(&mut self, and: bool, a: &Tree, b: &Tree) -> Value {
        let left = self.eval(a);
        if !self.acts(b) {
            let right = self.eval(b);
            let op = if and { BinOp::And } else { BinOp::Or };
            let expr = Expr::Bin(op, Ty::S32, truth(&left).into(), truth(&right).into());
            return Value { expr, ty: Ty::S32, target: None };
        }
        let dst = self.temporary(Ty::S32);
        self.push(Op::Assign { dst, value: truth(&left) });
        let known = Value { expr: Expr::Reg(dst), ty: Ty::S32, target: None };
        let skip = self.branch(if and { falsity(&known) } else { Expr::Reg(dst) });
        let right = self.eval(b);
        self.push(Op::Assign { dst, value: truth(&right) });
        let end = self.code.len();
        self.patch(skip, end);
        known
    }

    fn choice(&mut self, cond: &Tree, a: &Tree, b: &Tree) -> Value {
        let cond = self.eval(cond);
        if !self.acts(a) && !self.acts(b) {
            let (a, b) = (self.eval(a), self.eval(b));
            let (ty, target) = (common(a.ty, b.ty), a.target.or(b.target));
            let expr = Expr::Select(truth(&cond).into(), a.fit(ty).into(), b.fit(ty).into());
            return Value { expr, ty, target };
        }
        let dst = self.temporary(Ty::WORD);
        let skip = self.branch(falsity(&cond));
        let a = self.eval(a);
        self.push(Op::Assign { dst, value: a.expr });
        let over = self.branch(Expr::Const(1));
        let middle = self.code.len();
        self.patch(skip, middle);
        let b = self.eval(b);
        self.push(Op::Assign { dst, value: b.expr });
        let end = self.code.len();
        self.patch(over, end);
        Value { expr: Expr::Reg(dst), ty: common(a.ty, b.ty), target: a.target.or(b.target) }
    }

    fn call(&mut self, tree: &Tree, name: &Range<usize>, args: &[Tree]) -> Value {
        let word = self.str(name);
        if let Some(value) = self.coordinate(tree, word, args) {
            return value;
        }
        if let Some(value) = self.group_call(tree, name, args) {
            return value;
        }
        if let Some(value) = self.answer(tree, name, args) {
            return value;
        }
        if self.env.language.cpp && bare(word) == "init" {
            return self.init_object(tree, args);
        }
        let language = self.env.language;
        let here = |r: &&super::calls::Row| language.functions.contains(&r.dialects);
        let rows = || ROWS.iter().chain(FUNCTIONS);
        let plain = if language.cpp { bare(word) } else { word };
        match rows().filter(here).find(|r| r.name == plain) {
            Some(row) => self.function(row, tree, args, None),
            None => {
                if let Some((what, instead)) = refused::function(word) {
                    self.error("unsupported-function", name, format!("`{word}` is not supported: {what}"), |d| {
                        d.label("the language has it, the checker has not").help(instead)
                    });
                    return Value::int(0);
                }
                let other = rows().any(|r| r.name == word);
                let calls: Vec<&str> = self.value_calls().collect();
                self.error("unknown-function", name, format!("there is no function `{word}` here"), |d| {
                    let d = d.label("expected a function of this dialect");
                    let d = if other { d.note("another dialect has it") } else { d };
                    d.did_you_mean(plain, rows().filter(here).map(|r| r.name).chain(calls))
                });
                Value::int(0)
            }
        }
    }
}
