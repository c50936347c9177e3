//! The table of functions of the C-like dialects: one row says everything about one function.
//!
//! # Sources
//! - C11, 7.17, *Atomics*: functions without `_explicit` are sequentially consistent.
//! - OpenCL C, *Atomic Functions*, *Synchronization Functions*, *Fences*: without a scope argument the scope is that of
//!   the device, of a barrier that of its group.
//! - The published suites: which orders and scopes occur; a failure order is read and ignored.

use super::groups::Vote;
use super::language::Language;
use program::words::{OF_LOADS, OF_OTHERS, OF_STORES, Order};
use program::{BinOp, Scope};

/// Which dialects have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    /// C.
    C,
    /// OpenCL C.
    OpenCl,
    /// Both.
    Both,
    /// CUDA C++.
    Cuda,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The address of the atomic object.
    Addr,
    /// A value.
    Val,
    /// A value to compare with.
    Compared,
    /// The address of the expected value: of a location, or of a register (`&r`).
    Expected,
    /// The memory order.
    Order,
    /// The memory order of a failed compare-exchange.
    FailOrder,
    /// A memory scope; may be left out.
    Scope,
    /// Fence flags.
    Flags,
    /// CUDA: the threads of a warp; may be left out.
    Mask,
}

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Initialises: a plain write.
    Init,
    /// Reads and writes another value.
    Exchange,
    /// Reads and writes a value made of the old one.
    Fetch(BinOp),
    /// Compares and exchanges; gives 1 or 0.
    CompareExchange {
        /// It may fail without a reason.
        weak: bool,
    },
    /// Compares and exchanges; gives the old value.
    CompareAndSwap,
    /// CUDA: reads until the value is another one.
    Wait,
    /// CUDA: wakes waiting threads; nothing that memory shows.
    Notify,
    /// CUDA: sets a flag; gives what it was.
    TestAndSet,
    /// CUDA: clears a flag.
    Clear,
    /// CUDA: waits for the threads of a block, and combines what they say.
    Vote(Vote),
    /// Orders accesses. With an order of its own, it has no order argument.
    Fence(Option<Order>),
    /// Waits for the threads of a group.
    Barrier(Scope),
}

/// A function.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) dialects: In,
    pub(super) does: Does,
    pub(super) args: &'static [Role],
    /// The order and scope that the name says.
    pub(super) fixed: Option<(Order, Scope)>,
}

/// The orders that an operation may have.
pub(super) fn legal(does: Does) -> &'static [Order] {
    match does {
        Does::Load | Does::Wait => OF_LOADS,
        Does::Store | Does::Clear => OF_STORES,
        _ => OF_OTHERS,
    }
}

const fn row(name: &'static str, dialects: In, does: Does, args: &'static [Role]) -> Row {
    Row { name, dialects, does, args, fixed: None }
}

const fn mem_fence(name: &'static str, order: Order) -> Row {
    let does = Does::Fence(Some(order));
    Row { name, dialects: In::OpenCl, does, args: &[Role::Flags], fixed: Some((order, Scope::Cta)) }
}

const LOAD: &[Role] = &[Role::Addr];
const LOAD_X: &[Role] = &[Role::Addr, Role::Order, Role::Scope];
const STORE: &[Role] = &[Role::Addr, Role::Val];
const STORE_X: &[Role] = &[Role::Addr, Role::Val, Role::Order, Role::Scope];
const CAS: &[Role] = &[Role::Addr, Role::Expected, Role::Val];
const CAS_X: &[Role] = &[Role::Addr, Role::Expected, Role::Val, Role::Order, Role::FailOrder, Role::Scope];
const BARRIER: &[Role] = &[Role::Flags, Role::Scope];

use Does::{CompareExchange, Exchange, Fetch};

/// The table.
pub(super) const ROWS: &[Row] = &[
    row("atomic_load", In::Both, Does::Load, LOAD),
    row("atomic_load_explicit", In::Both, Does::Load, LOAD_X),
    row("atomic_store", In::Both, Does::Store, STORE),
    row("atomic_store_explicit", In::Both, Does::Store, STORE_X),
    row("atomic_init", In::Both, Does::Init, STORE),
    row("atomic_exchange", In::Both, Exchange, STORE),
    row("atomic_exchange_explicit", In::Both, Exchange, STORE_X),
    row("atomic_fetch_add", In::Both, Fetch(BinOp::Add), STORE),
    row("atomic_fetch_add_explicit", In::Both, Fetch(BinOp::Add), STORE_X),
    row("atomic_fetch_sub", In::Both, Fetch(BinOp::Sub), STORE),
    row("atomic_fetch_sub_explicit", In::Both, Fetch(BinOp::Sub), STORE_X),
    row("atomic_fetch_and", In::Both, Fetch(BinOp::And), STORE),
    row("atomic_fetch_and_explicit", In::Both, Fetch(BinOp::And), STORE_X),
    row("atomic_fetch_or", In::Both, Fetch(BinOp::Or), STORE),
    row("atomic_fetch_or_explicit", In::Both, Fetch(BinOp::Or), STORE_X),
    row("atomic_fetch_xor", In::Both, Fetch(BinOp::Xor), STORE),
    row("atomic_fetch_xor_explicit", In::Both, Fetch(BinOp::Xor), STORE_X),
    row("atomic_fetch_min", In::Both, Fetch(BinOp::Min), STORE),
    row("atomic_fetch_min_explicit", In::Both, Fetch(BinOp::Min), STORE_X),
    row("atomic_fetch_max", In::Both, Fetch(BinOp::Max), STORE),
    row("atomic_fetch_max_explicit", In::Both, Fetch(BinOp::Max), STORE_X),
    row("atomic_compare_exchange_strong", In::Both, CompareExchange { weak: false }, CAS),
    row("atomic_compare_exchange_strong_explicit", In::Both, CompareExchange { weak: false }, CAS_X),
    row("atomic_compare_exchange_weak", In::Both, CompareExchange { weak: true }, CAS),
    row("atomic_compare_exchange_weak_explicit", In::Both, CompareExchange { weak: true }, CAS_X),
    row("atomic_thread_fence", In::C, Does::Fence(None), &[Role::Order]),
    row("atomic_work_item_fence", In::OpenCl, Does::Fence(None), &[Role::Flags, Role::Order, Role::Scope]),
    mem_fence("mem_fence", Order::AcqRel),
    mem_fence("read_mem_fence", Order::Acquire),
    mem_fence("write_mem_fence", Order::Release),
    row("barrier", In::OpenCl, Does::Barrier(Scope::Cta), BARRIER),
    row("work_group_barrier", In::OpenCl, Does::Barrier(Scope::Cta), BARRIER),
    row("sub_group_barrier", In::OpenCl, Does::Barrier(Scope::Warp), BARRIER),
];

impl Row {
    /// How many arguments it may have: at least and at most.
    pub(super) fn arity(&self, language: &Language) -> (usize, usize) {
        let optional = |role: &&Role| match role {
            Role::Scope | Role::Mask => true,
            // A fence says its order.
            Role::Order | Role::FailOrder => language.cpp && !matches!(self.does, Does::Fence(_)),
            _ => false,
        };
        let most = self.args.iter().filter(|r| language.scope.is_some() || **r != Role::Scope).count();
        (self.args.len() - self.args.iter().filter(optional).count(), most)
    }

    /// How it is written, for messages.
    pub(super) fn syntax(&self, language: &Language) -> String {
        let mut parts = Vec::new();
        for role in self.args {
            let word = match role {
                Role::Addr if language.cpp => "&x",
                Role::Addr => "x",
                Role::Val => "value",
                Role::Expected => "expected",
                Role::Compared => "compared",
                Role::Mask => "[mask]",
                Role::Order if language.cpp => "[order]",
                Role::FailOrder if language.cpp => "[failure order]",
                Role::Order => "order",
                Role::FailOrder => "failure order",
                Role::Scope if language.scope.is_some() => "[scope]",
                Role::Scope => continue,
                Role::Flags => "flags",
            };
            parts.push(word);
        }
        format!("`{}({})`", self.name, parts.join(", "))
    }
}
