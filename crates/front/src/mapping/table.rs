//! The rows of a mapping: for each kind of operation, order and scope, a sequence of PTX micro-ops.
//! The shipped mappings are the files of `models/mappings`.
//!
//! # Invariants
//! - A mapping lives as long as the process: there are few, and reports keep their names.
//! - Within a kind and an order, the row of a scope takes precedence over the row for all scopes.

use std::fmt;
use std::sync::LazyLock;

use super::file;
use super::gaps::Gap;
use program::words::SCOPES;
use program::{Dialect, Op, Scope};

/// The kind of operation that a row maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Rmw,
    /// A compare-exchange. A mapping without rows for it uses those of read-modify-writes.
    Cas,
    /// A fence.
    Fence,
    /// An arrival at a barrier of the library in shared memory.
    Arrive,
    /// A wait at a barrier of the library in shared memory.
    Wait,
}

/// The kinds with their names in mapping files.
pub const KINDS: &[(&str, Kind)] = &[
    ("load", Kind::Load),
    ("store", Kind::Store),
    ("rmw", Kind::Rmw),
    ("cas", Kind::Cas),
    ("fence", Kind::Fence),
    ("arrive", Kind::Arrive),
    ("wait", Kind::Wait),
];

/// The order of an operation of the source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// Not atomic.
    Plain,
    /// Volatile.
    Volatile,
    /// `relaxed`
    Relaxed,
    /// `acquire`
    Acquire,
    /// `release`
    Release,
    /// `acq_rel`
    AcqRel,
    /// `seq_cst`
    SeqCst,
}

/// The orders with their names in mapping files.
pub const ORDERS: &[(&str, Order)] = &[
    ("plain", Order::Plain),
    ("volatile", Order::Volatile),
    ("relaxed", Order::Relaxed),
    ("acquire", Order::Acquire),
    ("release", Order::Release),
    ("acq_rel", Order::AcqRel),
    ("seq_cst", Order::SeqCst),
];

impl Kind {
    /// The orders that an operation of this kind can have in the source languages.
    pub fn orders(self) -> &'static [Order] {
        use Order::{AcqRel, Acquire, Plain, Relaxed, Release, SeqCst, Volatile};
        match self {
            Kind::Load => &[Plain, Volatile, Relaxed, Acquire, SeqCst],
            Kind::Store => &[Plain, Volatile, Relaxed, Release, SeqCst],
            Kind::Rmw | Kind::Cas | Kind::Fence => &[Relaxed, Acquire, Release, AcqRel, SeqCst],
            Kind::Arrive => &[Release],
            Kind::Wait => &[Acquire],
        }
    }

    /// The PTX instruction of this kind.
    pub fn opcode(self) -> &'static str {
        match self {
            Kind::Load => "ld",
            Kind::Store => "st",
            Kind::Rmw | Kind::Cas => "atom",
            Kind::Fence => "fence",
            Kind::Arrive => "mbarrier.arrive",
            Kind::Wait => "mbarrier.try_wait",
        }
    }
}

/// The order of a PTX micro-op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Semantics {
    /// `.weak`
    Weak,
    /// `.volatile`
    Volatile,
    /// `.relaxed`
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`
    AcqRel,
    /// `.sc`
    Sc,
}

/// The orders of PTX with their spelling.
pub const SEMANTICS: &[(&str, Semantics)] = &[
    ("weak", Semantics::Weak),
    ("volatile", Semantics::Volatile),
    ("relaxed", Semantics::Relaxed),
    ("acquire", Semantics::Acquire),
    ("release", Semantics::Release),
    ("acq_rel", Semantics::AcqRel),
    ("sc", Semantics::Sc),
];

/// The scope of a PTX micro-op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// No scope: `.weak`, `.volatile`.
    None,
    /// The image of the source's scope.
    Mapped,
    /// This scope, whatever the source's.
    Fixed(Scope),
}

/// One PTX micro-op of a row: a fence, or the access itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The instruction: [`Kind::Fence`], or the kind of the row.
    pub kind: Kind,
    /// Its order.
    pub semantics: Semantics,
    /// Its scope.
    pub reach: Reach,
}

/// The name of a value in one of the tables above.
pub(super) fn word<T: PartialEq>(table: &[(&'static str, T)], of: &T) -> &'static str {
    table
        .iter()
        .find(|row| row.1 == *of)
        .map_or("?", |row| row.0)
}

impl fmt::Display for Step {
    /// Prints the step as mapping files write it: `fence.sc.s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}",
            self.kind.opcode(),
            word(SEMANTICS, &self.semantics)
        )?;
        match self.reach {
            Reach::None => Ok(()),
            Reach::Mapped => f.write_str(".s"),
            Reach::Fixed(scope) => write!(f, ".{}", word(SCOPES, &scope)),
        }
    }
}

impl Step {
    /// A PTX access or fence as a step, at its scope. `None` for anything else, and for operations
    /// that no row can have, such as a reduction.
    pub fn of(op: &Op) -> Option<Step> {
        super::lower::step(op)
    }
}

/// One row of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind of operation.
    pub kind: Kind,
    /// The order of the operation.
    pub order: Order,
    /// The scope of the operation. `None`: all scopes without a separate row.
    pub scope: Option<Scope>,
    /// The target sequence, in program order. If empty, the operation is dropped.
    pub steps: Vec<Step>,
}

/// A named mapping from a source language to PTX.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The name for `--mapping`, which is the name of its file.
    pub name: String,
    /// The argument of `--mapping` that found it: its name, or the path of its file.
    pub asked: String,
    /// The source language.
    pub from: Dialect,
    /// The target language.
    pub to: Dialect,
    /// Whether it is the default mapping of its language.
    pub current: bool,
    /// A description of the mapping.
    pub doc: String,
    /// The sources of the mapping: document and section.
    pub sources: Vec<String>,
    /// The rows of the mapping.
    pub rows: Vec<Row>,
    /// Pairs of a source scope and its PTX scope.
    pub(super) scopes: Vec<(Scope, Scope)>,
    /// The groups for which PTX has a barrier.
    pub(super) groups: Vec<Scope>,
    /// The steps before and after a barrier whose scope is wider than its group.
    pub(super) wider: Vec<Step>,
    /// Properties that it is known not to preserve, the smallest gap first.
    pub gaps: Vec<Gap>,
    /// For a mapping of one program alone: that program and its target.
    pub(super) by_hand: Option<Box<super::by_hand::Pair>>,
}

/// The shipped mappings, sorted by language, the current one first.
pub fn shipped() -> &'static [Mapping] {
    static SHIPPED: LazyLock<Vec<Mapping>> = LazyLock::new(|| {
        let mut all = file::shipped();
        all.sort_by(|a, b| (a.from, !a.current, &a.name).cmp(&(b.from, !b.current, &b.name)));
        all
    });
    &SHIPPED
}

impl Mapping {
    /// The name of the mapping in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shipped mapping of that name.
    pub fn named(name: &str) -> Option<&'static Mapping> {
        shipped().iter().find(|m| m.name == name)
    }

    /// The default mapping of a language.
    pub fn current(from: Dialect) -> Option<&'static Mapping> {
        shipped().iter().find(|m| m.from == from && m.current)
    }

    /// The sequence for an operation; `None` if it has no counterpart.
    pub fn steps(&self, kind: Kind, order: Order, scope: Option<Scope>) -> Option<&[Step]> {
        let row = |of: Option<Scope>| {
            let fits = |r: &&Row| (r.kind, r.order, r.scope) == (kind, order, of);
            self.rows.iter().find(fits).map(|r| r.steps.as_slice())
        };
        let found = scope.and_then(|s| row(Some(s))).or_else(|| row(None));
        match (found, kind) {
            (None, Kind::Cas) => self.steps(Kind::Rmw, order, scope),
            _ => found,
        }
    }

    /// The PTX scope for a source scope; `None` if it has no counterpart.
    pub fn scope(&self, scope: Scope) -> Option<Scope> {
        self.scopes.iter().find(|s| s.0 == scope).map(|s| s.1)
    }
}
