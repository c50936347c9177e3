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
pub enum OpKind {
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
pub const KINDS: &[(&str, OpKind)] = &[
    ("load", OpKind::Load),
    ("store", OpKind::Store),
    ("rmw", OpKind::Rmw),
    ("cas", OpKind::Cas),
    ("fence", OpKind::Fence),
    ("arrive", OpKind::Arrive),
    ("wait", OpKind::Wait),
];

/// The order of an operation of the source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceOrder {
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
pub const ORDERS: &[(&str, SourceOrder)] = &[
    ("plain", SourceOrder::Plain),
    ("volatile", SourceOrder::Volatile),
    ("relaxed", SourceOrder::Relaxed),
    ("acquire", SourceOrder::Acquire),
    ("release", SourceOrder::Release),
    ("acq_rel", SourceOrder::AcqRel),
    ("seq_cst", SourceOrder::SeqCst),
];

impl OpKind {
    /// The orders that an operation of this kind can have in the source languages.
    pub fn orders(self) -> &'static [SourceOrder] {
        use SourceOrder::{AcqRel, Acquire, Plain, Relaxed, Release, SeqCst, Volatile};
        match self {
            OpKind::Load => &[Plain, Volatile, Relaxed, Acquire, SeqCst],
            OpKind::Store => &[Plain, Volatile, Relaxed, Release, SeqCst],
            OpKind::Rmw | OpKind::Cas | OpKind::Fence => {
                &[Relaxed, Acquire, Release, AcqRel, SeqCst]
            }
            OpKind::Arrive => &[Release],
            OpKind::Wait => &[Acquire],
        }
    }

    /// The PTX instruction of this kind.
    pub fn opcode(self) -> &'static str {
        match self {
            OpKind::Load => "ld",
            OpKind::Store => "st",
            OpKind::Rmw | OpKind::Cas => "atom",
            OpKind::Fence => "fence",
            OpKind::Arrive => "mbarrier.arrive",
            OpKind::Wait => "mbarrier.try_wait",
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
pub enum StepScope {
    /// No scope: `.weak`, `.volatile`.
    None,
    /// The image of the source's scope.
    Mapped,
    /// This scope, whatever the source's.
    Fixed(Scope),
}

/// One PTX micro-op of a row: a fence, or the access itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappingStep {
    /// The instruction: [`OpKind::Fence`], or the kind of the row.
    pub kind: OpKind,
    /// Its order.
    pub semantics: Semantics,
    /// Its scope.
    pub reach: StepScope,
}

/// The name of a value in one of the tables above.
pub(super) fn word<T: PartialEq>(table: &[(&'static str, T)], of: &T) -> &'static str {
    table
        .iter()
        .find(|row| row.1 == *of)
        .map_or("?", |row| row.0)
}

impl fmt::Display for MappingStep {
    /// Prints the step as mapping files write it: `fence.sc.s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}",
            self.kind.opcode(),
            word(SEMANTICS, &self.semantics)
        )?;
        match self.reach {
            StepScope::None => Ok(()),
            StepScope::Mapped => f.write_str(".s"),
            StepScope::Fixed(scope) => write!(f, ".{}", word(SCOPES, &scope)),
        }
    }
}

impl MappingStep {
    /// A PTX access or fence as a step, at its scope. `None` for anything else, and for operations
    /// that no row can have, such as a reduction.
    pub fn of(op: &Op) -> Option<MappingStep> {
        super::lower::step(op)
    }
}

/// One row of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingRow {
    /// The kind of operation.
    pub kind: OpKind,
    /// The order of the operation.
    pub order: SourceOrder,
    /// The scope of the operation. `None`: all scopes without a separate row.
    pub scope: Option<Scope>,
    /// The target sequence, in program order. If empty, the operation is dropped.
    pub steps: Vec<MappingStep>,
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
    pub rows: Vec<MappingRow>,
    /// Pairs of a source scope and its PTX scope.
    pub(super) scopes: Vec<(Scope, Scope)>,
    /// The groups for which PTX has a barrier.
    pub(super) groups: Vec<Scope>,
    /// The steps before and after a barrier whose scope is wider than its group.
    pub(super) wider: Vec<MappingStep>,
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
    pub fn steps(
        &self,
        kind: OpKind,
        order: SourceOrder,
        scope: Option<Scope>,
    ) -> Option<&[MappingStep]> {
        let row = |of: Option<Scope>| {
            self.rows
                .iter()
                .find(|r: &&MappingRow| (r.kind, r.order, r.scope) == (kind, order, of))
                .map(|r| r.steps.as_slice())
        };
        let found = scope.and_then(|s| row(Some(s))).or_else(|| row(None));
        match (found, kind) {
            (None, OpKind::Cas) => self.steps(OpKind::Rmw, order, scope),
            _ => found,
        }
    }

    /// The PTX scope for a source scope; `None` if it has no counterpart.
    pub fn scope(&self, scope: Scope) -> Option<Scope> {
        self.scopes.iter().find(|s| s.0 == scope).map(|s| s.1)
    }
}
