//! Lists the functions of the C-like dialects; one row describes one function.
//!
//! # Sources
//! - C11, 7.17, *Atomics*: functions without `_explicit` are sequentially consistent.
//! - OpenCL C, *Work-group Collective Functions*, *Sub-group Functions*.
//! - OpenCL C, *Atomic Functions*, *Synchronization Functions*, *Fences*. Without a scope argument,
//!   an operation has device scope; a barrier has the scope of its group.
//! - OpenCL C, *Legacy Atomic Functions*: they are relaxed, at work-group scope.
//! - GCC, *Built-in Functions for Memory Model Aware Atomic Operations*; *Other Built-in Functions
//!   Provided by GCC*.
//! - C11, 7.22.6; OpenCL C, *Integer Functions*.
//! - The published suites: the orders and scopes that occur. The parser reads a failure order and
//!   ignores it.

use super::groups::Vote;
use super::integer::Computed;
use super::lanes::Handed;
use super::language::Language;
use super::refused;
use super::words::{is_keyword, type_named};
use program::words::{OF_LOADS, OF_OTHERS, OF_STORES, Order};
use program::{BinOp, Dialect, Scope, Ty};

/// The dialects that have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    C,
    OpenCl,
    /// C and OpenCL C.
    Both,
    Cuda,
    /// C and CUDA C++: builtins of compilers.
    Builtin,
}

/// The words for orders and scopes of functions that do not use those of the dialect.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) orders: &'static [(&'static str, Order)],
    pub(super) scopes: &'static [(&'static str, Scope)],
}

/// No function takes more arguments. A call with more is wrong, unless the code defines a function
/// with as many parameters; Fencepost refuses that function.
pub(super) const MOST_ARGUMENTS: usize = 64;

/// The role of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The address of the atomic object.
    Addr,
    Val,
    /// The value to compare with.
    Compared,
    /// The address of the expected value: a location or a register (`&r`).
    Expected,
    Order,
    /// The memory order of a failed compare-exchange.
    FailOrder,
    /// A memory scope; optional.
    Scope,
    Flags,
    /// CUDA: the mask of a warp's threads; optional.
    Mask,
    /// CUDA: the mask of the lanes that meet.
    Lanes,
    /// A lane number, or a distance between lanes.
    Lane,
    /// CUDA: the number of lanes in a section of the warp; an optional constant.
    Width,
    /// A constant: whether a compare-exchange may fail spuriously.
    Weak,
    /// One of several values that the function computes with.
    Operand,
    /// A value that the function ignores.
    Ignored,
    /// Any number of values that the function ignores.
    Printed,
}

/// A computation on the bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitOp {
    Absolute,
    Ones,
    LeadingZeros,
    TrailingZeros,
    /// The position of the lowest bit that is set, counted from 1.
    FirstOne,
    /// The position of the lowest or the highest bit that is set, counted from 0; of 0, it is
    /// undefined.
    LowestOne,
    HighestOne,
    Reversed,
}

/// The action of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Load,
    Store,
    Read,
    /// A plain write: an initialisation, or a store with a cache hint.
    Write,
    Exchange,
    /// Read-modify-write that computes with the old value and returns it.
    Fetch(BinOp),
    /// Read-modify-write that returns the new value.
    FetchNew(BinOp),
    /// Read-modify-write that adds or subtracts 1.
    Step(BinOp),
    /// Compare-exchange that returns 1 or 0.
    CompareExchange {
        /// It may fail spuriously.
        weak: bool,
    },
    /// Compare-exchange that returns the old value.
    CompareAndSwap,
    /// CUDA: reads until the value differs from the given one.
    Wait,
    /// The larger of two values.
    Larger,
    /// The smaller of two values.
    Smaller,
    /// Computes with the operands, after converting them to the type, if there is one.
    Computes(Computed, Option<Ty>),
    /// Computes with the bits of a value: in the given type, or else in the type of the value.
    Bits(BitOp, Option<Ty>),
    /// A plain read of memory that no thread writes.
    ReadOnly,
    /// No effect on memory: wakes waiting threads, or sleeps.
    Nothing,
    /// Ends the kernel or the program; with an argument, only if the argument is 0.
    Abort,
    /// Sets a flag and returns the old one.
    TestAndSet,
    Clear,
    /// CUDA: waits for the threads of a block and combines their predicates.
    Vote(Vote),
    /// Passes a value to the threads of a group of that scope and returns a combination of the
    /// values received.
    Hand(Handed, Scope),
    /// OpenCL C: the same with the work-items of the sub-group that run together.
    HandActive(Handed),
    /// CUDA: the lanes of the warp that run together.
    ActiveMask,
    /// A fence. If the row has an order, the call has no order argument.
    Fence(Option<Order>),
    /// Waits for the threads of a group.
    Barrier(Scope),
}

#[derive(Debug)]
pub(super) struct FunctionRow {
    pub(super) name: &'static str,
    pub(super) dialects: In,
    pub(super) does: Does,
    pub(super) args: &'static [Role],
    /// The order and scope that the function's name implies.
    pub(super) fixed: Option<(Order, Scope)>,
    /// The words for orders and scopes, if they differ from the language's.
    pub(super) words: Option<&'static Vocabulary>,
}

/// The orders that an operation may have.
pub(super) fn legal(does: Does) -> &'static [Order] {
    match does {
        Does::Load | Does::Wait => OF_LOADS,
        Does::Store | Does::Clear => OF_STORES,
        _ => OF_OTHERS,
    }
}

const fn row(name: &'static str, dialects: In, does: Does, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        name,
        dialects,
        does,
        args,
        fixed: None,
        words: None,
    }
}

const fn collective(name: &'static str, handed: Handed, group: Scope) -> FunctionRow {
    row(name, In::OpenCl, Does::Hand(handed, group), ONE)
}

/// An integer function of OpenCL C.
const fn integer(name: &'static str, does: Computed, args: &'static [Role]) -> FunctionRow {
    row(name, In::OpenCl, Does::Computes(does, None), args)
}

const fn builtin(name: &'static str, does: Does, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        words: Some(&GNU),
        ..row(name, In::Builtin, does, args)
    }
}

const fn legacy(name: &'static str, does: Does, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        fixed: Some((Order::Relaxed, Scope::Cta)),
        ..row(name, In::OpenCl, does, args)
    }
}

const fn mem_fence(name: &'static str, order: Order) -> FunctionRow {
    let does = Does::Fence(Some(order));
    FunctionRow {
        fixed: Some((order, Scope::Cta)),
        ..row(name, In::OpenCl, does, &[Role::Flags])
    }
}

const LOAD: &[Role] = &[Role::Addr];
const LOAD_X: &[Role] = &[Role::Addr, Role::Order, Role::Scope];
const STORE: &[Role] = &[Role::Addr, Role::Val];
const STORE_X: &[Role] = &[Role::Addr, Role::Val, Role::Order, Role::Scope];
const CAS: &[Role] = &[Role::Addr, Role::Expected, Role::Val];
const CAS_X: &[Role] = &[
    Role::Addr,
    Role::Expected,
    Role::Val,
    Role::Order,
    Role::FailOrder,
    Role::Scope,
];
const BARRIER: &[Role] = &[Role::Flags, Role::Scope];

const BUILTIN_CAS: &[Role] = &[
    Role::Addr,
    Role::Expected,
    Role::Val,
    Role::Weak,
    Role::Order,
    Role::FailOrder,
];
const BUILTIN_VALUE: &[Role] = &[Role::Addr, Role::Val, Role::Order];
pub(super) const PAIR: &[Role] = &[Role::Compared, Role::Val];
const OLD: &[Role] = &[Role::Addr, Role::Val];
const OLD_CAS: &[Role] = &[Role::Addr, Role::Compared, Role::Val];

/// The orders of the builtins of GCC and Clang.
pub(super) const GNU_ORDERS: &[(&str, Order)] = &[
    ("__ATOMIC_RELAXED", Order::Relaxed),
    ("__ATOMIC_CONSUME", Order::Consume),
    ("__ATOMIC_ACQUIRE", Order::Acquire),
    ("__ATOMIC_RELEASE", Order::Release),
    ("__ATOMIC_ACQ_REL", Order::AcqRel),
    ("__ATOMIC_SEQ_CST", Order::SeqCst),
];

const GNU: Vocabulary = Vocabulary {
    orders: GNU_ORDERS,
    scopes: &[],
};

use Does::{CompareExchange, Exchange, Fetch, FetchNew};

pub(super) const ONE: &[Role] = &[Role::Val];
pub(super) const TWO: &[Role] = &[Role::Operand, Role::Operand];
pub(super) const THREE: &[Role] = &[Role::Operand, Role::Operand, Role::Operand];

pub(super) const ROWS: &[FunctionRow] = &[
    row("atomic_load", In::Both, Does::Load, LOAD),
    row("atomic_load_explicit", In::Both, Does::Load, LOAD_X),
    row("atomic_store", In::Both, Does::Store, STORE),
    row("atomic_store_explicit", In::Both, Does::Store, STORE_X),
    row("atomic_init", In::Both, Does::Write, STORE),
    row("atomic_exchange", In::Both, Exchange, STORE),
    row("atomic_exchange_explicit", In::Both, Exchange, STORE_X),
    row("atomic_fetch_add", In::Both, Fetch(BinOp::Add), STORE),
    row(
        "atomic_fetch_add_explicit",
        In::Both,
        Fetch(BinOp::Add),
        STORE_X,
    ),
    row("atomic_fetch_sub", In::Both, Fetch(BinOp::Sub), STORE),
    row(
        "atomic_fetch_sub_explicit",
        In::Both,
        Fetch(BinOp::Sub),
        STORE_X,
    ),
    row("atomic_fetch_and", In::Both, Fetch(BinOp::And), STORE),
    row(
        "atomic_fetch_and_explicit",
        In::Both,
        Fetch(BinOp::And),
        STORE_X,
    ),
    row("atomic_fetch_or", In::Both, Fetch(BinOp::Or), STORE),
    row(
        "atomic_fetch_or_explicit",
        In::Both,
        Fetch(BinOp::Or),
        STORE_X,
    ),
    row("atomic_fetch_xor", In::Both, Fetch(BinOp::Xor), STORE),
    row(
        "atomic_fetch_xor_explicit",
        In::Both,
        Fetch(BinOp::Xor),
        STORE_X,
    ),
    row("atomic_fetch_min", In::Both, Fetch(BinOp::Min), STORE),
    row(
        "atomic_fetch_min_explicit",
        In::Both,
        Fetch(BinOp::Min),
        STORE_X,
    ),
    row("atomic_fetch_max", In::Both, Fetch(BinOp::Max), STORE),
    row(
        "atomic_fetch_max_explicit",
        In::Both,
        Fetch(BinOp::Max),
        STORE_X,
    ),
    row(
        "atomic_compare_exchange_strong",
        In::Both,
        CompareExchange { weak: false },
        CAS,
    ),
    row(
        "atomic_compare_exchange_strong_explicit",
        In::Both,
        CompareExchange { weak: false },
        CAS_X,
    ),
    row(
        "atomic_compare_exchange_weak",
        In::Both,
        CompareExchange { weak: true },
        CAS,
    ),
    row(
        "atomic_compare_exchange_weak_explicit",
        In::Both,
        CompareExchange { weak: true },
        CAS_X,
    ),
    row(
        "atomic_thread_fence",
        In::C,
        Does::Fence(None),
        &[Role::Order],
    ),
    row(
        "atomic_work_item_fence",
        In::OpenCl,
        Does::Fence(None),
        &[Role::Flags, Role::Order, Role::Scope],
    ),
    mem_fence("mem_fence", Order::AcqRel),
    mem_fence("read_mem_fence", Order::Acquire),
    mem_fence("write_mem_fence", Order::Release),
    row("barrier", In::OpenCl, Does::Barrier(Scope::Cta), BARRIER),
    row(
        "work_group_barrier",
        In::OpenCl,
        Does::Barrier(Scope::Cta),
        BARRIER,
    ),
    row(
        "sub_group_barrier",
        In::OpenCl,
        Does::Barrier(Scope::Warp),
        BARRIER,
    ),
    collective("work_group_all", Handed::All, Scope::Cta),
    collective("work_group_any", Handed::Any, Scope::Cta),
    row(
        "work_group_broadcast",
        In::OpenCl,
        Does::Hand(Handed::Broadcast, Scope::Cta),
        &[Role::Val, Role::Lane],
    ),
    collective(
        "work_group_reduce_add",
        Handed::Reduced(BinOp::Add),
        Scope::Cta,
    ),
    collective(
        "work_group_reduce_min",
        Handed::Reduced(BinOp::Min),
        Scope::Cta,
    ),
    collective(
        "work_group_reduce_max",
        Handed::Reduced(BinOp::Max),
        Scope::Cta,
    ),
    collective(
        "work_group_scan_exclusive_add",
        Handed::Before(BinOp::Add),
        Scope::Cta,
    ),
    collective(
        "work_group_scan_exclusive_min",
        Handed::Before(BinOp::Min),
        Scope::Cta,
    ),
    collective(
        "work_group_scan_exclusive_max",
        Handed::Before(BinOp::Max),
        Scope::Cta,
    ),
    collective(
        "work_group_scan_inclusive_add",
        Handed::UpTo(BinOp::Add),
        Scope::Cta,
    ),
    collective(
        "work_group_scan_inclusive_min",
        Handed::UpTo(BinOp::Min),
        Scope::Cta,
    ),
    collective(
        "work_group_scan_inclusive_max",
        Handed::UpTo(BinOp::Max),
        Scope::Cta,
    ),
    collective("sub_group_all", Handed::All, Scope::Warp),
    collective("sub_group_any", Handed::Any, Scope::Warp),
    row(
        "sub_group_broadcast",
        In::OpenCl,
        Does::Hand(Handed::Broadcast, Scope::Warp),
        &[Role::Val, Role::Lane],
    ),
    collective(
        "sub_group_reduce_add",
        Handed::Reduced(BinOp::Add),
        Scope::Warp,
    ),
    collective(
        "sub_group_reduce_min",
        Handed::Reduced(BinOp::Min),
        Scope::Warp,
    ),
    collective(
        "sub_group_reduce_max",
        Handed::Reduced(BinOp::Max),
        Scope::Warp,
    ),
    collective(
        "sub_group_scan_exclusive_add",
        Handed::Before(BinOp::Add),
        Scope::Warp,
    ),
    collective(
        "sub_group_scan_exclusive_min",
        Handed::Before(BinOp::Min),
        Scope::Warp,
    ),
    collective(
        "sub_group_scan_exclusive_max",
        Handed::Before(BinOp::Max),
        Scope::Warp,
    ),
    collective(
        "sub_group_scan_inclusive_add",
        Handed::UpTo(BinOp::Add),
        Scope::Warp,
    ),
    collective(
        "sub_group_scan_inclusive_min",
        Handed::UpTo(BinOp::Min),
        Scope::Warp,
    ),
    collective(
        "sub_group_scan_inclusive_max",
        Handed::UpTo(BinOp::Max),
        Scope::Warp,
    ),
    row("atomic_flag_test_and_set", In::Both, Does::TestAndSet, LOAD),
    row(
        "atomic_flag_test_and_set_explicit",
        In::Both,
        Does::TestAndSet,
        LOAD_X,
    ),
    row("atomic_flag_clear", In::Both, Does::Clear, LOAD),
    row("atomic_flag_clear_explicit", In::Both, Does::Clear, LOAD_X),
    row("min", In::OpenCl, Does::Smaller, PAIR),
    row("max", In::OpenCl, Does::Larger, PAIR),
    row("abs", In::OpenCl, Does::Bits(BitOp::Absolute, None), ONE),
    row(
        "prefetch",
        In::OpenCl,
        Does::Nothing,
        &[Role::Ignored, Role::Ignored],
    ),
    row("popcount", In::OpenCl, Does::Bits(BitOp::Ones, None), ONE),
    row(
        "clz",
        In::OpenCl,
        Does::Bits(BitOp::LeadingZeros, None),
        ONE,
    ),
    row(
        "ctz",
        In::OpenCl,
        Does::Bits(BitOp::TrailingZeros, None),
        ONE,
    ),
    row(
        "__sub_group_lowest",
        In::OpenCl,
        Does::Bits(BitOp::LowestOne, None),
        ONE,
    ),
    row(
        "__sub_group_highest",
        In::OpenCl,
        Does::Bits(BitOp::HighestOne, None),
        ONE,
    ),
    integer("__sub_group_bit", Computed::Bit, THREE),
    integer("clamp", Computed::Clamp, THREE),
    integer("rotate", Computed::Rotate, TWO),
    integer("abs_diff", Computed::Distance, TWO),
    integer("hadd", Computed::HalfSum(false), TWO),
    integer("rhadd", Computed::HalfSum(true), TWO),
    integer("add_sat", Computed::Saturated(BinOp::Add), TWO),
    integer("sub_sat", Computed::Saturated(BinOp::Sub), TWO),
    integer("mul_hi", Computed::Upper, TWO),
    integer("mad_hi", Computed::UpperAnd, THREE),
    integer("mul24", Computed::Low, TWO),
    integer("mad24", Computed::LowAnd, THREE),
    integer("bitselect", Computed::BitSelect, THREE),
    row(
        "abs",
        In::C,
        Does::Bits(BitOp::Absolute, Some(Ty::S32)),
        ONE,
    ),
    row(
        "labs",
        In::C,
        Does::Bits(BitOp::Absolute, Some(Ty::WORD)),
        ONE,
    ),
    row(
        "llabs",
        In::C,
        Does::Bits(BitOp::Absolute, Some(Ty::WORD)),
        ONE,
    ),
    row("thrd_yield", In::C, Does::Nothing, &[]),
    // No test has signal handlers, and such a fence orders nothing else (ISO C11, 7.17.4.2).
    row("atomic_signal_fence", In::C, Does::Nothing, &[Role::Order]),
    row("printf", In::Both, Does::Nothing, &[Role::Printed]),
    row("assert", In::Both, Does::Abort, &[Role::Val]),
    legacy("atomic_add", Fetch(BinOp::Add), OLD),
    legacy("atom_add", Fetch(BinOp::Add), OLD),
    legacy("atomic_sub", Fetch(BinOp::Sub), OLD),
    legacy("atom_sub", Fetch(BinOp::Sub), OLD),
    legacy("atomic_xchg", Exchange, OLD),
    legacy("atom_xchg", Exchange, OLD),
    legacy("atomic_inc", Does::Step(BinOp::Add), LOAD),
    legacy("atom_inc", Does::Step(BinOp::Add), LOAD),
    legacy("atomic_dec", Does::Step(BinOp::Sub), LOAD),
    legacy("atom_dec", Does::Step(BinOp::Sub), LOAD),
    legacy("atomic_min", Fetch(BinOp::Min), OLD),
    legacy("atom_min", Fetch(BinOp::Min), OLD),
    legacy("atomic_max", Fetch(BinOp::Max), OLD),
    legacy("atom_max", Fetch(BinOp::Max), OLD),
    legacy("atomic_and", Fetch(BinOp::And), OLD),
    legacy("atom_and", Fetch(BinOp::And), OLD),
    legacy("atomic_or", Fetch(BinOp::Or), OLD),
    legacy("atom_or", Fetch(BinOp::Or), OLD),
    legacy("atomic_xor", Fetch(BinOp::Xor), OLD),
    legacy("atom_xor", Fetch(BinOp::Xor), OLD),
    legacy("atomic_cmpxchg", Does::CompareAndSwap, OLD_CAS),
    legacy("atom_cmpxchg", Does::CompareAndSwap, OLD_CAS),
    builtin(
        "__builtin_popcount",
        Does::Bits(BitOp::Ones, Some(Ty::U32)),
        ONE,
    ),
    builtin(
        "__builtin_popcountl",
        Does::Bits(BitOp::Ones, Some(Ty::U64)),
        ONE,
    ),
    builtin(
        "__builtin_popcountll",
        Does::Bits(BitOp::Ones, Some(Ty::U64)),
        ONE,
    ),
    builtin(
        "__builtin_ffs",
        Does::Bits(BitOp::FirstOne, Some(Ty::S32)),
        ONE,
    ),
    builtin(
        "__builtin_ffsl",
        Does::Bits(BitOp::FirstOne, Some(Ty::WORD)),
        ONE,
    ),
    builtin(
        "__builtin_ffsll",
        Does::Bits(BitOp::FirstOne, Some(Ty::WORD)),
        ONE,
    ),
    builtin("__atomic_load_n", Does::Load, &[Role::Addr, Role::Order]),
    builtin(
        "__atomic_store_n",
        Does::Store,
        &[Role::Addr, Role::Val, Role::Order],
    ),
    builtin(
        "__atomic_exchange_n",
        Exchange,
        &[Role::Addr, Role::Val, Role::Order],
    ),
    builtin(
        "__atomic_compare_exchange_n",
        CompareExchange { weak: false },
        BUILTIN_CAS,
    ),
    builtin("__atomic_fetch_add", Fetch(BinOp::Add), BUILTIN_VALUE),
    builtin("__atomic_add_fetch", FetchNew(BinOp::Add), BUILTIN_VALUE),
    builtin("__atomic_fetch_sub", Fetch(BinOp::Sub), BUILTIN_VALUE),
    builtin("__atomic_sub_fetch", FetchNew(BinOp::Sub), BUILTIN_VALUE),
    builtin("__atomic_fetch_and", Fetch(BinOp::And), BUILTIN_VALUE),
    builtin("__atomic_and_fetch", FetchNew(BinOp::And), BUILTIN_VALUE),
    builtin("__atomic_fetch_or", Fetch(BinOp::Or), BUILTIN_VALUE),
    builtin("__atomic_or_fetch", FetchNew(BinOp::Or), BUILTIN_VALUE),
    builtin("__atomic_fetch_xor", Fetch(BinOp::Xor), BUILTIN_VALUE),
    builtin("__atomic_xor_fetch", FetchNew(BinOp::Xor), BUILTIN_VALUE),
    builtin("__atomic_fetch_min", Fetch(BinOp::Min), BUILTIN_VALUE),
    builtin("__atomic_min_fetch", FetchNew(BinOp::Min), BUILTIN_VALUE),
    builtin("__atomic_fetch_max", Fetch(BinOp::Max), BUILTIN_VALUE),
    builtin("__atomic_max_fetch", FetchNew(BinOp::Max), BUILTIN_VALUE),
    builtin("__atomic_thread_fence", Does::Fence(None), &[Role::Order]),
];

impl FunctionRow {
    /// The words for orders in calls of this function.
    pub(super) fn orders(&self, language: &Language) -> &'static [(&'static str, Order)] {
        self.words.map_or(language.row().orders, |w| w.orders)
    }

    /// The word for an order in calls of this function.
    pub(super) fn order_word(&self, order: Order, language: &Language) -> &'static str {
        self.orders(language)
            .iter()
            .find(|o| o.1 == order)
            .map_or("", |o| o.0)
    }

    /// The smallest and the largest number of arguments.
    pub(super) fn arity(&self, language: &Language) -> (usize, usize) {
        let most = self
            .args
            .iter()
            .filter(|r| language.scope.is_some() || **r != Role::Scope)
            .count();
        let most = if self.args.contains(&Role::Printed) {
            MOST_ARGUMENTS
        } else {
            most
        };
        (
            self.args.len()
                - self
                    .args
                    .iter()
                    .filter(|role| match role {
                        Role::Scope | Role::Mask | Role::Width | Role::Printed => true,
                        // A fence has to name its order.
                        Role::Order | Role::FailOrder => {
                            language.cpp
                                && self.words.is_none()
                                && !matches!(self.does, Does::Fence(_))
                        }
                        _ => false,
                    })
                    .count(),
            most,
        )
    }

    /// The signature, for messages.
    pub(super) fn syntax(&self, language: &Language) -> String {
        let mut parts = Vec::new();
        for role in self.args {
            let word = match role {
                Role::Val | Role::Compared if self.args == PAIR => "value",
                Role::Addr if language.cpp => "&x",
                Role::Addr => "x",
                Role::Val | Role::Operand => "value",
                Role::Expected => "expected",
                Role::Compared => "compared",
                Role::Mask => "[mask]",
                Role::Lanes => "mask",
                Role::Lane => "lane",
                Role::Width => "[width]",
                Role::Weak => "weak",
                Role::Ignored => "number",
                Role::Printed => "values…",
                Role::Order if language.cpp && self.words.is_none() => "[order]",
                Role::FailOrder if language.cpp && self.words.is_none() => "[failure order]",
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

/// Whether a word means something in OpenCL C: a keyword, or the name of a type or a function.
pub fn is_reserved(word: &str) -> bool {
    let dialect = Dialect::OpenCl;
    let functions = ROWS.iter().any(|row| row.name == word);
    functions
        || is_keyword(word, dialect)
        || type_named(word).is_some()
        || refused::word(word, dialect).is_some()
        || [
            "get_",
            "work_group_",
            "sub_group_",
            "atomic_",
            "as_",
            "convert_",
        ]
        .iter()
        .any(|start| word.starts_with(start))
}
