//! Lowers calls of the functions in the table to micro-ops.
//!
//! # Invariants
//! - The arguments are evaluated from left to right, then the function acts.

use std::iter;
use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind};
use super::calls::{BitOp, Does, FunctionRow, In, Role, legal};
use super::floats;
use super::groups::{SUB_GROUP_BARRIER, WORK_GROUP_BARRIER};
use super::lower::Lowering;
use super::place::Place;
use super::refused::scope_meant;
use super::scope::{Atomic, Binding, Variable};
use super::types::{Qualified, Type, Value, folded};
use super::words::enumerator;
use crate::isa::bits::{
    RegisterStep, absolute, count_ones, count_zeros, first_one, reverse, trailing_zeros, unsigned,
};
use program::words::{FLAGS, Order};
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, CmpOp, Expr, FloatOp, Format, Op, RegId,
    Rounding, Scope, Space, Tag, Tags, Ty, Update,
};

/// The place of a compare-exchange's expected value.
enum Expected {
    Memory(Expr, Qualified),
    Register(Variable),
}

/// The order, the scope and the type of an atomic operation.
#[derive(Clone, Copy)]
pub(super) struct AtomicQualifiers {
    pub(super) order: Order,
    pub(super) scope: Option<Scope>,
    pub(super) ty: Ty,
}

impl AtomicQualifiers {
    /// An access with an order: a whole operation, or half of a read-modify-write.
    pub(super) fn with(self, order: Tag, is_half: bool) -> Access {
        let mut tags = Tags::of(&[Tag::Atomic, order]);
        if is_half {
            tags.insert(Tag::Rmw);
        }
        Access {
            tags,
            scope: self.scope,
            ty: self.ty,
        }
    }
}

/// The way in which a compare-exchange may fail.
struct Failing {
    /// The order after a failure, if the call names one.
    order: Option<Order>,
    /// It may fail spuriously.
    weak: bool,
}

pub(super) fn plain_access(ty: Ty, scope: Option<Scope>) -> Access {
    Access {
        tags: Tags::default(),
        scope,
        ty,
    }
}

/// The operation of an update on a number of its type.
fn on_numbers(op: BinOp, float: Option<(Format, FloatOp)>) -> BinOp {
    float.map_or(op, |(format, add)| BinOp::Float(add, format))
}

/// The arguments of a call.
#[derive(Default)]
pub(super) struct Args {
    addr: Option<(Expr, Qualified)>,
    pub(super) value: Option<Value>,
    operands: Vec<Value>,
    expected: Option<Expected>,
    compared: Option<Value>,
    pub(super) order: Option<Order>,
    pub(super) failure: Option<Order>,
    /// Whether a compare-exchange may fail spuriously, if an argument decides it.
    weak: Option<bool>,
    scope: Option<Scope>,
    flags: Vec<Tag>,
    /// The lanes that a warp barrier names; `None`: all.
    pub(super) lanes: Option<Expr>,
    /// Whether all lanes of the group have to come, even those that have ended.
    pub(super) collective: bool,
    /// The lane of a shuffle, and the number of lanes in a section.
    pub(super) lane: Option<Value>,
    pub(super) width: Option<i64>,
}

impl Lowering<'_, '_> {
    /// Lowers a call. For a method, `atomic` is the atomic object.
    pub(super) fn function(
        &mut self,
        row: &'static FunctionRow,
        tree: &Tree,
        given: &[Tree],
        atomic: Option<Atomic>,
    ) -> Value {
        let (least, most) = row.arity(self.env.language);
        if given.len() > most || given.len() < least {
            let wanted = match most - least {
                0 => most.to_string(),
                1 => format!("{least} or {most}"),
                _ => format!("{least} to {most}"),
            };
            let message = format!(
                "`{}` takes {wanted} arguments, {} given",
                row.name,
                given.len()
            );
            self.error("wrong-operands", &tree.range, message, |d| {
                let d = d.label(format!(
                    "expected the form {}",
                    row.syntax(self.env.language)
                ));
                let scope = given.last().is_some_and(|last| {
                    self.unit.text.as_str()[last.range.clone()].contains("_scope_")
                });
                if scope && self.env.language.scope.is_none() {
                    d.note("C has no scopes")
                } else {
                    d
                }
            });
            return Value::int(0);
        }
        if let Some(of) = &atomic
            && matches!(of.of.ty, Type::Struct(_))
        {
            let done = self.wide_function(row, tree, given, of.clone());
            return done.unwrap_or_else(|| self.nothing());
        }
        let mut args = Args::default();
        if let Some(atomic) = atomic {
            args.addr = Some((atomic.addr, atomic.of));
            args.scope = Some(atomic.scope);
        }
        let mut whole = true;
        let roles = row.args.iter().chain(iter::repeat(&Role::Printed));
        for (role, arg) in roles.zip(given) {
            whole &= self.argument(row, *role, arg, &mut args).is_some();
        }
        if !whole {
            return Value::int(0);
        }
        self.act(row, tree, args).unwrap_or_else(|| Value::int(0))
    }

    /// Evaluates one argument. `None`: this function reported an error.
    pub(super) fn argument(
        &mut self,
        row: &FunctionRow,
        role: Role,
        tree: &Tree,
        args: &mut Args,
    ) -> Option<()> {
        match role {
            Role::Addr => {
                let pointer = self.eval(tree);
                args.addr = Some(self.address(pointer, &tree.range)?);
            }
            Role::Val => args.value = Some(self.scalar(tree)),
            Role::Operand => args.operands.push(self.scalar(tree)),
            Role::Compared => args.compared = Some(self.scalar(tree)),
            Role::Mask | Role::Lanes => args.lanes = self.mask(tree)?,
            Role::Lane => args.lane = Some(self.scalar(tree)),
            Role::Width => args.width = Some(self.section(tree)?),
            Role::Ignored | Role::Printed => drop(self.eval(tree)),
            Role::Weak => {
                let Some(weak) = self.eval(tree).constant() else {
                    self.error(
                        "wrong-operand",
                        &tree.range,
                        "only a constant says whether it is weak",
                        |d| d.label("expected `true` or `false`"),
                    );
                    return None;
                };
                args.weak = Some(weak != 0);
            }
            Role::Expected => args.expected = Some(self.expected(row, tree)?),
            Role::Order => {
                let order = self.order(row, tree)?;
                let consume = self.env.language.consume;
                let mut allowed = legal(row.does)
                    .iter()
                    .filter(|o| consume || **o != Order::Consume);
                if !allowed.clone().any(|o| *o == order) {
                    let written = |order: &Order| row.order_word(*order, self.env.language);
                    let message =
                        format!("`{}` cannot have the order `{}`", row.name, written(&order));
                    let names: Vec<_> = allowed
                        .by_ref()
                        .map(|o| format!("`{}`", written(o)))
                        .collect();
                    self.error("illegal-order", &tree.range, message, |d| {
                        d.label(format!("expected one of {}", names.join(", ")))
                            .note(self.env.language.order_rule(row.does))
                    });
                    return None;
                }
                args.order = Some(order);
            }
            Role::FailOrder => {
                let order = self.order(row, tree)?;
                if self.env.strict && matches!(order, Order::Release | Order::AcqRel) {
                    let word = row.order_word(order, self.env.language);
                    let message =
                        format!("a failed compare-exchange cannot have the order `{word}`");
                    self.error("illegal-order", &tree.range, message, |d| {
                        d.label("expected the order of a load")
                            .note("a compare-exchange that fails is a load")
                    });
                    return None;
                }
                args.failure = Some(order);
            }
            Role::Scope => {
                let scopes = row
                    .words
                    .map_or(self.env.language.row().scopes, |w| w.scopes);
                let scope = self.word(&tree.range, "scope", scopes)?;
                let of_images = args.flags.contains(&Tag::ImageFence);
                if !self.env.language.cpp && scope == Scope::Thread && !of_images {
                    let message = format!("`{}` has the scope of one work-item", row.name);
                    let span = self.unit.text.span(tree.range.clone());
                    self.sink.warn("useless-scope", span, message, |d| {
                        d.label("includes no other work-item").note(
                            "`memory_scope_work_item` is for fences of images alone (OpenCL C, \
                            Memory Scope)",
                        )
                    });
                }
                args.scope = Some(scope);
            }
            Role::Flags => self.flags(tree, &mut args.flags)?,
        }
        Some(())
    }

    fn order(&mut self, row: &FunctionRow, tree: &Tree) -> Option<Order> {
        self.word(&tree.range, "order", row.orders(self.env.language))
    }

    /// Looks up a word in a table.
    pub(super) fn word<T: Copy>(
        &mut self,
        range: &Range<usize>,
        what: &str,
        table: &[(&'static str, T)],
    ) -> Option<T> {
        let range = &self.spelled_range(range);
        let word = self.str(range);
        let plain = if self.env.language.cpp {
            enumerator(word)
        } else {
            word.into()
        };
        let plain = plain.as_ref();
        if let Some((_, value)) = table.iter().find(|w| w.0 == plain) {
            return Some(*value);
        }
        let names: Vec<&str> = table.iter().map(|w| w.0).collect();
        let id = if what == "order" {
            "unknown-order"
        } else {
            "unknown-scope"
        };
        let meant = scope_meant(word, self.env.language.dialect).filter(|_| what == "scope");
        self.error(id, range, format!("`{word}` is not a memory {what}"), |d| {
            let d = d.label(format!("expected one of `{}`", names.join("`, `")));
            match meant {
                Some(meant) => d.help(format!("did you mean `{meant}`?")),
                None => d.did_you_mean(plain, names.iter().copied()),
            }
        });
        None
    }

    /// `0`, a flag, or flags joined with `|`.
    fn flags(&mut self, tree: &Tree, flags: &mut Vec<Tag>) -> Option<()> {
        match &tree.kind {
            ExprKind::Int(0, _) => Some(()),
            ExprKind::Bin(BinOp::Or, a, b) => {
                self.flags(a, flags)?;
                self.flags(b, flags)
            }
            _ => {
                let word = self.str(&tree.range);
                match FLAGS.iter().find(|f| f.0 == word) {
                    Some((_, tag)) => {
                        flags.push(*tag);
                        Some(())
                    }
                    None => {
                        let names: Vec<&str> = FLAGS.iter().map(|f| f.0).collect();
                        self.error(
                            "unknown-flag",
                            &tree.range,
                            format!("`{word}` is not a fence flag"),
                            |d| {
                                d.label("expected 0, a flag, or flags joined with `|`")
                                    .did_you_mean(word, names)
                            },
                        );
                        None
                    }
                }
            }
        }
    }

    fn expected(&mut self, row: &FunctionRow, tree: &Tree) -> Option<Expected> {
        // Builtins of compilers take a pointer.
        if self.env.language.cpp && row.words.is_none() {
            // The argument is a reference.
            let place = self.place(tree)?;
            if !self.writable(&place, &tree.range) {
                return None;
            }
            return Some(match place {
                Place::Register(variable) => Expected::Register(variable),
                Place::Memory(addr, of) => Expected::Memory(addr, of),
            });
        }
        if let ExprKind::AddressOf(inner) = &tree.kind
            && let Some(Binding::Register(variable)) = self.binding(inner)
        {
            return Some(Expected::Register(variable.clone()));
        }
        let pointer = self.eval(tree);
        let (addr, of) = self.address(pointer, &tree.range)?;
        Some(Expected::Memory(addr, of))
    }

    /// The scope of an operation: from its name, from an argument, or the language's default.
    fn scope(&self, row: &FunctionRow, args: &Args) -> Option<Scope> {
        self.env
            .language
            .scope
            .map(|default| row.fixed.map(|f| f.1).or(args.scope).unwrap_or(default))
    }

    /// Carries out a function of the table.
    fn act(&mut self, row: &FunctionRow, tree: &Tree, args: Args) -> Option<Value> {
        match row.does {
            Does::Fence(fixed) => self.fence(row, tree, fixed, &args)?,
            Does::Barrier(domain) => self.barrier(domain, &args),
            Does::Vote(vote) => return Some(self.vote(tree, vote, args.value?)),
            Does::Hand(handed, group) => return self.hands(handed, group, tree, args),
            Does::HandActive(handed) => return self.hands_active(handed, tree, args),
            Does::ActiveMask => return Some(self.active_mask(&tree.range)),
            Does::Nothing => {}
            Does::Abort => self.abort(args.value),
            Does::Computes(what, of) => return self.computes(tree, what, of, args.operands),
            Does::Bits(bits, of) => return self.bits(row, tree, bits, of, args.value?),
            Does::Larger | Does::Smaller => {
                let op = if row.does == Does::Larger {
                    BinOp::Max
                } else {
                    BinOp::Min
                };
                return Some(self.arithmetic(op, args.compared?, args.value?, &tree.range));
            }
            _ => return self.access_memory(row, tree, args),
        }
        Some(Value::void())
    }

    /// Ends the program, if a condition fails.
    fn abort(&mut self, condition: Option<Value>) {
        let holds = condition.map(|value| self.branch(value.is_true()));
        // This access reaches no memory. Fencepost reports only whether an execution reaches it.
        let dst = self.temporary(Ty::U32);
        let access = self.plain(Ty::U32);
        self.push(Op::Load {
            dst,
            addr: Expr::Const(0),
            access,
        });
        if let Some(at) = holds {
            self.patch(at, self.code.len());
        }
    }

    /// Carries out a function on the memory that its first argument points to.
    fn access_memory(&mut self, row: &FunctionRow, tree: &Tree, mut args: Args) -> Option<Value> {
        let (addr, of) = args.addr.take()?;
        if let (Type::Struct(_), Does::Read | Does::ReadOnly) = (&of.ty, row.does)
            && self.env.language.cpp
        {
            return self.read_vector(row, tree, addr, of);
        }
        let ty = self.accessed_word(row, tree, &addr, &of)?;
        let named = row.fixed.map(|f| f.0).or(args.order);
        let order = self.effective(named.unwrap_or(Order::SeqCst));
        let scope = self.scope(row, &args);
        let atomic = AtomicQualifiers { order, scope, ty };
        let float = match of.ty {
            Type::Float(format) => Some((format, self.atomic_float(row, tree, format)?)),
            _ => None,
        };
        let value = match (row.does, args.value.take()) {
            (Does::Fetch(op) | Does::FetchNew(op), value) => {
                self.operand(row, tree, op, &of.ty, value)?
            }
            (_, Some(value)) => value.converted(&of.ty).expr,
            (_, None) => Expr::Const(0),
        };
        let update = match row.does {
            Does::Read | Does::ReadOnly => {
                self.in_global(row, tree, &addr)?;
                if row.does == Does::ReadOnly {
                    self.read_only.push(self.code.len());
                }
                return Some(self.read(Place::Memory(addr, of)));
            }
            Does::Load => {
                let dst = self.atomic_load(addr, atomic);
                return Some(Value::new(Expr::Reg(dst), of.ty));
            }
            Does::Wait => {
                self.wait_while_equal(addr, atomic, value);
                return Some(Value::void());
            }
            Does::Store | Does::Clear => {
                let access = atomic.with(order.of_write(), false);
                return Some(self.store(addr, value, access));
            }
            Does::Write => {
                self.in_global(row, tree, &addr)?;
                let access = self.plain(ty);
                return Some(self.store(addr, value, access));
            }
            Does::CompareExchange { weak } => {
                let failure = args.failure.map(|o| self.effective(o));
                let failing = Failing {
                    order: failure.filter(|_| self.env.language.cpp),
                    weak: args.weak.unwrap_or(weak),
                };
                let expected = args.expected?;
                return Some(self.compare_exchange(expected, addr, value, atomic, &failing));
            }
            Does::CompareAndSwap => Update::CompareExchange {
                expected: args.compared?.converted(&of.ty).expr,
                new: value.clone(),
            },
            Does::TestAndSet => Update::Exchange(Expr::Const(1)),
            Does::Step(op) => Update::Apply(op, Expr::Const(1)),
            Does::Fetch(op) | Does::FetchNew(op) => {
                Update::Apply(on_numbers(op, float), value.clone())
            }
            _ => Update::Exchange(value.clone()),
        };
        let old = Expr::Reg(self.read_modify_write(addr, update, atomic));
        let result = match row.does {
            Does::FetchNew(op) => Expr::Bin(on_numbers(op, float), ty, old.into(), value.into()),
            _ => old,
        };
        Some(Value::new(result, of.ty))
    }

    /// `__ldg(&v)` of a vector: reads each of its members.
    fn read_vector(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        addr: Expr,
        of: Qualified,
    ) -> Option<Value> {
        self.in_global(row, tree, &addr)?;
        let own = Qualified::from(of.ty.clone());
        let at = self.unnamed(&format!("{}()", row.name), &own, &tree.range)?;
        let start = self.code.len();
        self.copy_members(at.clone(), own, addr, of.clone(), &tree.range);
        let reads =
            (start..self.code.len()).filter(|&n| matches!(self.code[n].op, Op::Load { .. }));
        if row.does == Does::ReadOnly {
            self.read_only.extend(reads.collect::<Vec<usize>>());
        }
        Some(Value::new(at, of.ty))
    }

    /// The type of the word that a function accesses. Reports memory on which it cannot act.
    fn accessed_word(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        addr: &Expr,
        of: &Qualified,
    ) -> Option<Ty> {
        let Some(ty) = of.word() else {
            let message = format!("a `{}` is not an integer", of.ty.name());
            self.error("wrong-operand", &tree.range, message, |d| {
                d.label("expected the address of an integer")
            });
            return None;
        };
        let only_reads = matches!(
            row.does,
            Does::Load | Does::Wait | Does::Read | Does::ReadOnly
        );
        self.may_access(row, tree, addr, of, only_reads)?;
        Some(ty)
    }

    /// Reports memory that a function must not access.
    pub(super) fn may_access(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        addr: &Expr,
        of: &Qualified,
        only_reads: bool,
    ) -> Option<()> {
        if of.constant && !only_reads {
            let message = format!("`{}` on something `const`", row.name);
            self.error("constant", &tree.range, message, |d| {
                d.label("expected something that may be changed")
            });
            return None;
        }
        if let Some(name) = self.constant(addr).map(str::to_string) {
            let message = format!("`{}` on `{name}`, which is in constant memory", row.name);
            self.error("constant-memory", &tree.range, message, |d| {
                d.label("expected global or local memory")
                    .note("constant memory is read-only, and never atomic")
            });
            return None;
        }
        self.beyond_the_thread(row, tree, addr)
    }

    fn atomic_load(&mut self, addr: Expr, atomic: AtomicQualifiers) -> RegId {
        let dst = self.temporary(atomic.ty);
        let access = atomic.with(atomic.order.of_read(), false);
        self.push(Op::Load { dst, addr, access });
        dst
    }

    /// Loads until the value differs from a given one.
    fn wait_while_equal(&mut self, addr: Expr, atomic: AtomicQualifiers, value: Expr) {
        let head = self.code.len();
        let read = Expr::Reg(self.atomic_load(addr, atomic));
        let cond = Expr::Cmp(CmpOp::Eq, atomic.ty, read.into(), value.into());
        self.push(Op::Branch { cond, target: head });
    }

    fn store(&mut self, addr: Expr, value: Expr, access: Access) -> Value {
        self.push(Op::Store {
            addr,
            value,
            access,
        });
        Value::void()
    }

    /// Adds a read-modify-write; returns the register of the value that it reads.
    fn read_modify_write(&mut self, addr: Expr, update: Update, atomic: AtomicQualifiers) -> RegId {
        let dst = self.temporary(atomic.ty);
        self.push(Op::Rmw {
            dst: Some(dst),
            addr,
            update,
            read: atomic.with(atomic.order.of_read(), true),
            write: atomic.with(atomic.order.of_write(), true),
        });
        dst
    }

    /// Reports an atomic function of CUDA on memory of the thread alone: it is for global and
    /// shared memory (CUDA C++ Programming Guide, *Atomic Functions*).
    fn beyond_the_thread(&mut self, row: &FunctionRow, tree: &Tree, addr: &Expr) -> Option<()> {
        let named = row.dialects == In::Cuda && row.fixed.is_some();
        let space = addr.base().map(|loc| self.symbols.object(loc).1.space);
        if !named || space != Some(Space::Local) {
            return Some(());
        }
        let message = format!("`{}` on memory of one thread", row.name);
        self.error("wrong-space", &tree.range, message, |d| {
            d.label("expected an address of global or shared memory")
        });
        None
    }

    /// The addition of an atomic operation on a number of floating point; reports operations that
    /// integers alone have.
    fn atomic_float(&mut self, row: &FunctionRow, tree: &Tree, format: Format) -> Option<FloatOp> {
        let integer = match row.does {
            Does::Fetch(BinOp::Min) if row.dialects == In::Both => return Some(FloatOp::Min),
            Does::Fetch(BinOp::Max) if row.dialects == In::Both => return Some(FloatOp::Max),
            Does::Fetch(op) | Does::FetchNew(op) => op != BinOp::Add,
            Does::Step(_) | Does::CompareAndSwap | Does::TestAndSet | Does::Clear => true,
            _ => false,
        };
        if integer {
            let name = floats::name(format);
            let message = format!("`{}` of a `{name}` is not supported", row.name);
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected an addition, an exchange, or an integer")
            });
            return None;
        }
        Some(FloatOp::Add(Rounding::Nearest))
    }

    /// The operand of a read-modify-write, scaled to elements if the object is a pointer. Builtins
    /// of compilers count bytes. Arithmetic on a `bool` or an enumeration is an error (C11,
    /// 7.17.7.5; ISO C++, atomics.types.pointer).
    fn operand(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        op: BinOp,
        of: &Type,
        value: Option<Value>,
    ) -> Option<Expr> {
        let value = value.unwrap_or(Value::int(1));
        let problem = match of {
            Type::Pointer(_) if row.words.is_some() => None,
            Type::Pointer(to) if matches!(op, BinOp::Add | BinOp::Sub) && row.fixed.is_none() => {
                let (size, by) = (to.ty.size() as i64, value.fit(Ty::WORD));
                if size > 0 && value.target().is_none() {
                    return Some(folded(Expr::Bin(
                        BinOp::Mul,
                        Ty::WORD,
                        by.into(),
                        Expr::Const(size).into(),
                    )));
                }
                Some("expected a pointer to something that has a size, and an integer")
            }
            Type::Pointer(_) => Some("expected an integer"),
            Type::Bool | Type::Enum(_) if self.env.strict => {
                Some("expected an integer: exchange and compare-exchange take it")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let message = format!("`{}` on a `{}`", row.name, of.name());
            self.error("wrong-operand", &tree.range, message, |d| d.label(problem));
            return None;
        }
        Some(value.converted(of).expr)
    }

    /// Computes with the bits of a value, in the given type or in the value's own.
    fn bits(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        bits: BitOp,
        of: Option<Ty>,
        value: Value,
    ) -> Option<Value> {
        let opencl = self.env.language.functions.contains(&In::OpenCl);
        let own = match &value.ty {
            // OpenCL C does not promote here.
            Type::Int(ty) if opencl => Some(*ty),
            ty => ty.promoted(),
        };
        let Some(own) = own else {
            let name = value.ty.name();
            if !self.is_nothing(&value) {
                self.error(
                    "wrong-operand",
                    &tree.range,
                    format!("`{}` of a `{name}`", row.name),
                    |d| d.label("expected an integer"),
                );
            }
            return None;
        };
        if bits == BitOp::Absolute && of.is_none() && !own.signed && self.env.language.cpp {
            self.error(
                "wrong-operand",
                &tree.range,
                "`abs` of something without a sign",
                |d| {
                    d.label("expected a signed integer")
                        .note("the call is ambiguous in C++")
                },
            );
            return None;
        }
        let ty = of.unwrap_or(own);
        let mut first = value.fit(ty);
        if matches!(bits, BitOp::LowestOne | BitOp::HighestOne) {
            first = self.kept(Value::of(first, ty)).expr;
            let zero = Expr::Const(0);
            self.misused_unless(Expr::Cmp(CmpOp::Ne, ty, first.clone().into(), zero.into()));
        }
        let stages = match bits {
            BitOp::Absolute => {
                let result = if opencl { unsigned(ty) } else { ty };
                let value = if ty.signed {
                    absolute(ty, first)
                } else {
                    first
                };
                return Some(Value::of(Value::of(value, ty).fit(result), result));
            }
            BitOp::Ones => count_ones(),
            BitOp::LeadingZeros | BitOp::HighestOne => count_zeros(),
            BitOp::TrailingZeros | BitOp::LowestOne => trailing_zeros(),
            BitOp::FirstOne => first_one(),
            BitOp::Reversed => reverse(ty),
        };
        let word = unsigned(ty);
        let dst = self.temporary(word);
        for stage in
            std::iter::once(RegisterStep::First(Value::of(first, ty).fit(word))).chain(stages)
        {
            let value = stage.next(Expr::Reg(dst), word);
            self.push(Op::Assign { dst, value });
        }
        let result = match bits {
            BitOp::Reversed => word,
            _ if opencl => ty,
            _ => Ty::S32,
        };
        let mut counted = Value::of(Expr::Reg(dst), word).fit(result);
        if bits == BitOp::HighestOne {
            let last = Expr::Const(i64::from(ty.bits) - 1);
            counted = Expr::Bin(BinOp::Sub, result, last.into(), counted.into());
        }
        Some(Value::of(counted, result))
    }

    /// Reports a cache hint on memory outside the global space. These hints apply to global memory
    /// only.
    fn in_global(&mut self, row: &FunctionRow, tree: &Tree, addr: &Expr) -> Option<()> {
        let Some(loc) = addr.base().filter(|_| row.dialects == In::Cuda) else {
            return Some(());
        };
        let (object, declared) = self.symbols.object(loc);
        if declared.space == Space::Global {
            return Some(());
        }
        let message = format!(
            "`{}` on `{}`, which is not in global memory",
            row.name,
            self.symbols.get(object).name
        );
        self.error("wrong-space", &tree.range, message, |d| {
            d.label("expected an address of global memory")
                .note("it becomes an instruction for global memory (PTX ISA, Cache Operators)")
        });
        None
    }

    /// Reads the expected value plainly, then acts atomically; on failure, writes the value seen
    /// plainly. A spurious failure is a load (ISO C++, atomics.types.operations).
    fn compare_exchange(
        &mut self,
        expected: Expected,
        addr: Expr,
        new: Expr,
        atomic: AtomicQualifiers,
        failing: &Failing,
    ) -> Value {
        let AtomicQualifiers { order, scope, ty } = atomic;
        // In the published OpenCL tests, accesses to the expected location have the scope of the
        // operation.
        let of_plain = scope.filter(|_| self.env.language.plain_scope.is_some());
        let wanted = self.read_expected(&expected, ty, of_plain);
        let (mut read, write) = (
            atomic.with(order.of_read(), true),
            atomic.with(order.of_write(), true),
        );
        let differs = |f: &Order| f.of_read() != order.on_failure().of_read();
        if let Some(failure) = failing.order.filter(differs) {
            read.tags.insert(match failure {
                Order::SeqCst => Tag::FailSeqCst,
                Order::Acquire => Tag::FailAcquire,
                _ => Tag::FailRelaxed,
            });
        }
        let old = self.temporary(ty);
        let result = self.temporary(Ty::S32);
        let give_up = failing.weak.then(|| {
            let on_failure = failing.order.unwrap_or(order.on_failure());
            let access = atomic.with(on_failure.of_read(), false);
            self.fail_spuriously(old, result, addr.clone(), access)
        });
        let update = Update::CompareExchange {
            expected: Expr::Reg(wanted),
            new,
        };
        self.push(Op::Rmw {
            dst: Some(old),
            addr,
            update,
            read,
            write,
        });
        let success = Expr::Cmp(
            CmpOp::Eq,
            ty,
            Expr::Reg(old).into(),
            Expr::Reg(wanted).into(),
        );
        self.push(Op::Assign {
            dst: result,
            value: success,
        });
        let skip = self.branch(Expr::Reg(result));
        if let Some(over) = give_up {
            let here = self.code.len();
            self.patch(over, here);
        }
        self.write_expected(expected, Value::of(Expr::Reg(old), ty), of_plain);
        let end = self.code.len();
        self.patch(skip, end);
        Value::new(Expr::Reg(result), Type::Bool)
    }

    /// Reads the expected value of a compare-exchange into a register.
    fn read_expected(&mut self, expected: &Expected, ty: Ty, scope: Option<Scope>) -> RegId {
        let dst = self.temporary(ty);
        self.push(match expected {
            Expected::Memory(at, of) => Op::Load {
                dst,
                addr: at.clone(),
                access: plain_access(of.word().unwrap_or(ty), scope),
            },
            Expected::Register(variable) => {
                let value = Value::new(Expr::Reg(variable.reg), variable.of.ty.clone()).fit(ty);
                Op::Assign { dst, value }
            }
        });
        dst
    }

    /// Writes the value that a failed compare-exchange saw to the place of the expected one.
    fn write_expected(&mut self, expected: Expected, seen: Value, scope: Option<Scope>) {
        let ty = seen.word();
        self.push(match expected {
            Expected::Memory(addr, of) => Op::Store {
                addr,
                value: seen.converted(&of.ty).expr,
                access: plain_access(of.word().unwrap_or(ty), scope),
            },
            Expected::Register(variable) => Op::Assign {
                dst: variable.reg,
                value: seen.converted(&variable.of.ty).expr,
            },
        });
    }

    /// Adds the choice of a spurious failure: a load, and 0 as the result. Returns the branch that
    /// such a failure takes.
    fn fail_spuriously(&mut self, old: RegId, result: RegId, addr: Expr, access: Access) -> usize {
        let fails = self.temporary(Ty::S32);
        self.push(Op::Choice {
            dst: fails,
            spurious: true,
        });
        let go_on = self.branch(Expr::Cmp(
            CmpOp::Eq,
            Ty::S32,
            Expr::Reg(fails).into(),
            Expr::Const(0).into(),
        ));
        self.push(Op::Load {
            dst: old,
            addr,
            access,
        });
        self.push(Op::Assign {
            dst: result,
            value: Expr::Const(0),
        });
        let over = self.branch(Expr::Const(1));
        let here = self.code.len();
        self.patch(go_on, here);
        over
    }

    fn fence(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        fixed: Option<Order>,
        args: &Args,
    ) -> Option<()> {
        let language = self.env.language;
        if language.row().regions && args.flags.is_empty() && self.env.strict {
            self.error(
                "missing-flag",
                &tree.range,
                format!("`{}` needs a fence flag", row.name),
                |d| {
                    d.label("expected `CLK_GLOBAL_MEM_FENCE`, `CLK_LOCAL_MEM_FENCE` or both")
                        .note("a fence without flags is undefined (OpenCL C, Fences)")
                },
            );
            return None;
        }
        let order = fixed.or(args.order).unwrap_or(Order::SeqCst);
        // A relaxed fence has no effect (ISO C++, atomics.fences).
        if language.cpp && order == Order::Relaxed {
            return Some(());
        }
        let mut tags = self.flagged(&[order.of_fence()], &args.flags);
        if self.env.capped {
            tags.insert(Tag::Capped);
        }
        let scope = self.scope(row, args);
        self.push(Op::fence(tags, scope));
        Some(())
    }

    fn flagged(&self, names: &[Tag], flags: &[Tag]) -> Tags {
        let mut tags = Tags::of(names);
        tags.extend(flags);
        tags
    }

    /// A barrier: a release fence, the meeting of the group, and an acquire fence.
    fn barrier(&mut self, domain: Scope, args: &Args) {
        let regions = self.env.language.row().regions;
        let mut arrive = self.flagged(
            &[
                Tag::Barrier,
                Tag::BarrierArrive,
                Tag::EntryFence,
                Tag::Release,
            ],
            &args.flags,
        );
        let mut wait = self.flagged(
            &[Tag::Barrier, Tag::BarrierWait, Tag::ExitFence, Tag::Acquire],
            &args.flags,
        );
        if self.env.capped {
            arrive.insert(Tag::Capped);
            wait.insert(Tag::Capped);
        }
        let naming = match self.instance.take() {
            Some(instance) => BarrierNaming::Instance {
                instance,
                id: None,
                quorum: None,
            },
            None => {
                let id = if domain == Scope::Cta {
                    WORK_GROUP_BARRIER
                } else {
                    SUB_GROUP_BARRIER
                };
                BarrierNaming::Counted {
                    id: Expr::Const(id),
                    count: None,
                }
            }
        };
        if !regions {
            // Without fences: here a barrier orders all earlier events before all later ones.
            (arrive, wait) = (
                Tags::of(&[Tag::Barrier, Tag::BarrierArrive]),
                Tags::of(&[Tag::Barrier, Tag::BarrierWait]),
            );
        }
        if domain == Scope::Cta {
            // In PTX this barrier is `bar.sync`.
            arrive.insert(Tag::Aligned);
        }
        let scope = regions.then(|| args.scope.unwrap_or(domain));
        self.push(Op::Barrier(Barrier {
            action: BarrierAction::Sync,
            domain,
            lanes: args.lanes.clone(),
            naming,
            arrive,
            wait,
            scope,
        }));
    }
}
