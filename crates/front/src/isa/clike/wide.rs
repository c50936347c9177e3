//! Lowers atomic operations on structures: one operation on all members at once.
//!
//! # Invariants
//! - The members are adjacent micro-ops of one access ([`Element::whole`]).
//! - The structure has no gaps, up to 16 bytes, and is aligned at its size.
//! - A value that such an operation takes or gives is a structure in memory of the thread.
//!
//! # Sources
//! - libcu++, *Memory model*, Atomicity: a load or store of a naturally aligned object of 16 bytes
//!   is atomic, also on mapped memory. *Extended API*, `cuda::atomic_ref`.
//! - ISO C++, atomics.ref.generic, atomics.types.operations: a compare-exchange compares all bits.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::calls::{Does, FunctionRow, Role};
use super::function::{Args, AtomicQualifiers};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::scope::Atomic;
use super::types::{Qualified, Type, Value};
use program::words::Order;
use program::{BinOp, CmpOp, Element, Expr, Op, RegId, Tag, Ty, Update};

/// The size of the largest such structure in bytes.
const MOST_BYTES: u64 = 16;

/// A member: its distance from the first byte, and its type.
type WideMember = (u64, Ty);

/// The members of a structure that one atomic operation can access.
pub(super) fn wide_members(of: &Qualified) -> Option<Vec<WideMember>> {
    let Type::Struct(structure) = &of.ty else {
        return None;
    };
    let size = of.ty.size();
    let fits = size.is_power_of_two() && size <= MOST_BYTES && of.ty.align() == size;
    if !fits || !of.is_plain() || structure.has_union() {
        return None;
    }
    let mut members = Vec::new();
    of.ty
        .each_cell(&mut |_, offset, of| members.push(of.word().map(|ty| (offset, ty))));
    let members: Vec<WideMember> = members.into_iter().collect::<Option<_>>()?;
    let bytes: u64 = members.iter().map(|(_, ty)| u64::from(ty.bytes())).sum();
    (bytes == size).then_some(members)
}

/// An object that one operation accesses with all its members.
struct WideObject {
    addr: Expr,
    of: Qualified,
    members: Vec<WideMember>,
}

/// A member for a micro-op: its number, its address, and its type.
struct MemberAccess {
    number: usize,
    addr: Expr,
    ty: Ty,
}

/// How a wide operation is ordered: its orders, and its scope with a type to be filled in.
struct WideOrders {
    atomic: AtomicQualifiers,
    failure: Option<Order>,
}

impl Lowering<'_, '_> {
    /// A function of an atomic reference to a structure. `None`: this function reported an error.
    pub(super) fn wide_function(
        &mut self,
        row: &FunctionRow,
        tree: &Tree,
        given: &[Tree],
        atomic: Atomic,
    ) -> Option<Value> {
        let members = wide_members(&Qualified::from(atomic.of.ty.clone()))?;
        let is_read = matches!(row.does, Does::Load | Does::Wait);
        self.may_access(row, tree, &atomic.addr, &atomic.of, is_read)?;
        let object = WideObject {
            addr: self.stable(atomic.addr),
            of: Qualified::from(atomic.of.ty),
            members,
        };
        let mut args = Args::default();
        let (mut value, mut expected) = (None, None);
        for (role, arg) in row.args.iter().zip(given) {
            match role {
                Role::Val => value = Some(self.wide_value(&object, arg)?),
                Role::Expected => expected = Some(self.wide_expected(&object, arg)?),
                _ => self.argument(row, *role, arg, &mut args)?,
            }
        }
        let orders = WideOrders {
            atomic: AtomicQualifiers {
                order: self.effective(args.order.unwrap_or(Order::SeqCst)),
                scope: Some(atomic.scope),
                ty: Ty::U64,
            },
            failure: args.failure.map(|order| self.effective(order)),
        };
        let word = row.name;
        match (row.does, value, expected) {
            (Does::Load, ..) => {
                let read = self.wide_load(&object, orders.atomic);
                self.in_own_memory(word, &object, &read, &tree.range)
            }
            (Does::Store, Some(value), _) => {
                self.wide_store(&object, orders.atomic, &value);
                Some(Value::void())
            }
            (Does::Wait, Some(value), _) => {
                let head = self.code.len();
                let read = self.wide_load(&object, orders.atomic);
                let cond = all_equal(&object, &read, &value);
                self.push(Op::Branch { cond, target: head });
                Some(Value::void())
            }
            (Does::Exchange, Some(value), _) => {
                let old = self.wide_rmw(&object, orders.atomic, None, |_, k| Update::When {
                    cond: Expr::Const(1),
                    new: Expr::Reg(value[k]),
                });
                self.in_own_memory(word, &object, &old, &tree.range)
            }
            (Does::CompareExchange { weak }, Some(new), Some(expected)) => {
                Some(self.wide_compare_exchange(&object, &orders, expected, &new, weak))
            }
            _ => {
                let message = format!("`{word}` of a structure");
                self.error("wrong-operand", &tree.range, message, |d| {
                    d.label("expected an integer, or a load, a store or an exchange")
                });
                None
            }
        }
    }

    /// Evaluates a structure to the registers of its members.
    fn wide_value(&mut self, object: &WideObject, arg: &Tree) -> Option<Vec<RegId>> {
        let at = self.unnamed("value", &object.of, &arg.range)?;
        self.construct(&at, &object.of, &[arg], &arg.range);
        Some(self.plain_members(object, &at))
    }

    /// The place of the expected value of a compare-exchange.
    fn wide_expected(&mut self, object: &WideObject, arg: &Tree) -> Option<Expr> {
        match self.place(arg)? {
            Place::Memory(addr, of) if of.ty == object.of.ty && !of.constant => {
                Some(self.stable(addr))
            }
            _ => {
                let name = object.of.ty.name();
                let message = format!("the expected value is not a `{name}`");
                self.error("wrong-operand", &arg.range, message, |d| {
                    d.label("expected a variable of that type")
                });
                None
            }
        }
    }

    /// Reads the members at an address, one after the other.
    fn plain_members(&mut self, object: &WideObject, at: &Expr) -> Vec<RegId> {
        let mut read = Vec::new();
        for (offset, ty) in &object.members {
            let dst = self.temporary(*ty);
            let (addr, access) = (shifted(at, *offset), self.plain(*ty));
            self.push(Op::Load { dst, addr, access });
            read.push(dst);
        }
        read
    }

    /// Writes the members to an address, one after the other.
    fn write_plain_members(&mut self, object: &WideObject, at: &Expr, values: &[RegId]) {
        for ((offset, ty), value) in object.members.iter().zip(values) {
            let (addr, access) = (shifted(at, *offset), self.plain(*ty));
            self.push(Op::Store {
                addr,
                value: Expr::Reg(*value),
                access,
            });
        }
    }

    /// The structure of these members, in memory of the thread.
    fn in_own_memory(
        &mut self,
        word: &str,
        object: &WideObject,
        values: &[RegId],
        range: &Range<usize>,
    ) -> Option<Value> {
        let at = self.unnamed(&format!("{word}()"), &object.of, range)?;
        self.write_plain_members(object, &at, values);
        Some(Value::new(at, object.of.ty.clone()))
    }

    /// Adds the micro-ops of one access, one for each member.
    fn push_wide(&mut self, object: &WideObject, op: impl Fn(MemberAccess) -> Op) {
        let first = self.code.len();
        for (number, (offset, ty)) in object.members.iter().enumerate() {
            let addr = shifted(&object.addr, *offset);
            self.push(op(MemberAccess {
                number,
                addr,
                ty: *ty,
            }));
        }
        let of = object.members.len() as u8;
        for (at, instr) in (0..of).zip(&mut self.code[first..]) {
            instr.element = Element {
                at,
                of,
                whole: true,
                ..Element::ONLY
            };
        }
    }

    /// A register for each member.
    fn of_members(&mut self, object: &WideObject) -> Vec<RegId> {
        let types: Vec<Ty> = object.members.iter().map(|(_, ty)| *ty).collect();
        types.into_iter().map(|ty| self.temporary(ty)).collect()
    }

    fn wide_load(&mut self, object: &WideObject, atomic: AtomicQualifiers) -> Vec<RegId> {
        let read = self.of_members(object);
        self.wide_load_to(object, atomic, &read);
        read
    }

    fn wide_load_to(&mut self, object: &WideObject, atomic: AtomicQualifiers, to: &[RegId]) {
        self.push_wide(object, |member| Op::Load {
            dst: to[member.number],
            addr: member.addr,
            access: AtomicQualifiers {
                ty: member.ty,
                ..atomic
            }
            .with(atomic.order.of_read(), false),
        });
    }

    fn wide_store(&mut self, object: &WideObject, atomic: AtomicQualifiers, values: &[RegId]) {
        self.push_wide(object, |member| Op::Store {
            addr: member.addr,
            value: Expr::Reg(values[member.number]),
            access: AtomicQualifiers {
                ty: member.ty,
                ..atomic
            }
            .with(atomic.order.of_write(), false),
        });
    }

    /// Emits a read-modify-write, and returns the values that it reads. `fails` is its order on
    /// failure.
    fn wide_rmw(
        &mut self,
        object: &WideObject,
        atomic: AtomicQualifiers,
        fails: Option<Tag>,
        update: impl Fn(&[RegId], usize) -> Update,
    ) -> Vec<RegId> {
        let old = self.of_members(object);
        self.push_wide(object, |member| {
            let of = AtomicQualifiers {
                ty: member.ty,
                ..atomic
            };
            let mut read = of.with(atomic.order.of_read(), true);
            read.tags.extend(fails.as_slice());
            Op::Rmw {
                dst: Some(old[member.number]),
                addr: member.addr,
                update: update(&old, member.number),
                read,
                write: of.with(atomic.order.of_write(), true),
            }
        });
        old
    }

    /// Compares all members with the expected ones. On failure, it stores the values that it read
    /// there.
    fn wide_compare_exchange(
        &mut self,
        object: &WideObject,
        orders: &WideOrders,
        expected: Expr,
        new: &[RegId],
        weak: bool,
    ) -> Value {
        let order = orders.atomic.order;
        let wanted = self.plain_members(object, &expected);
        let differs = |f: &Order| f.of_read() != order.on_failure().of_read();
        let fails = orders.failure.filter(differs).map(|order| match order {
            Order::SeqCst => Tag::FailSeqCst,
            Order::Acquire => Tag::FailAcquire,
            _ => Tag::FailRelaxed,
        });
        let result = self.temporary(Ty::S32);
        let seen = self.of_members(object);
        let over = weak.then(|| {
            let choice = self.temporary(Ty::S32);
            self.push(Op::Choice {
                dst: choice,
                spurious: true,
            });
            let zero = Expr::Const(0);
            let holds = Expr::Cmp(CmpOp::Eq, Ty::S32, Expr::Reg(choice).into(), zero.into());
            let go_on = self.branch(holds);
            let order = orders.failure.unwrap_or(order.on_failure());
            let atomic = AtomicQualifiers {
                order,
                ..orders.atomic
            };
            self.wide_load_to(object, atomic, &seen);
            self.push(Op::Assign {
                dst: result,
                value: Expr::Const(0),
            });
            let over = self.branch(Expr::Const(1));
            self.patch(go_on, self.code.len());
            over
        });
        let old = self.wide_rmw(object, orders.atomic, fails, |old, k| Update::When {
            cond: all_equal(object, old, &wanted),
            new: Expr::Reg(new[k]),
        });
        self.push(Op::Assign {
            dst: result,
            value: all_equal(object, &old, &wanted),
        });
        for (dst, value) in seen.iter().zip(&old) {
            self.push(Op::Assign {
                dst: *dst,
                value: Expr::Reg(*value),
            });
        }
        let done = self.branch(Expr::Reg(result));
        if let Some(over) = over {
            self.patch(over, self.code.len());
        }
        self.write_plain_members(object, &expected, &seen);
        self.patch(done, self.code.len());
        Value::new(Expr::Reg(result), Type::Bool)
    }
}

/// Whether all members have the values of others: 0 or 1.
fn all_equal(object: &WideObject, a: &[RegId], b: &[RegId]) -> Expr {
    let pairs = object.members.iter().zip(a.iter().zip(b));
    pairs
        .map(|((_, ty), (a, b))| {
            Expr::Cmp(CmpOp::Eq, *ty, Expr::Reg(*a).into(), Expr::Reg(*b).into())
        })
        .reduce(|all, one| Expr::Bin(BinOp::And, Ty::S32, all.into(), one.into()))
        .unwrap_or(Expr::Const(1))
}
