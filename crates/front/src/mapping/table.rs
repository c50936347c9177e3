//! A mapping: for each kind of operation, order and scope, the PTX micro-ops that stand for it. The
//! shipped ones are the files of `models/mappings`.
//!
//! # Invariants
//! - A mapping lives as long as the program: there are few, and reports keep their names.
//! - Within a kind and an order, the row of a scope counts before the one for all others.

use std::fmt;
use std::sync::LazyLock;

use super::file;
use super::gaps::Gap;
use program::words::SCOPES;
use program::{Dialect, Op, Scope};

/// What kind of operation a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Rmw,
    /// A compare-exchange. Without rows of its own, a mapping has those of read-modify-writes for
    /// it.
    Cas,
    /// A fence.
    Fence,
    /// An arrival at a barrier of the library in shared memory.
    Arrive,
    /// A wait at one.
    Wait,
}

/// The kinds, as files of mappings name them.
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

/// The orders, as files of mappings name them.
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
    /// The orders that an operation of the kind can have in the source languages.
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

    /// PTX's instruction for it.
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

/// They, as PTX spells them.
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
    /// It has none: `.weak`, `.volatile`.
    None,
    /// What the source's scope becomes.
    Mapped,
    /// This one, whatever the source says.
    Fixed(Scope),
}

/// One PTX micro-op of a row: a fence, or the access itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Which instruction: [`Kind::Fence`], or that of the row.
    pub kind: Kind,
    /// Its order.
    pub semantics: Semantics,
    /// Its scope.
    pub reach: Reach,
}

/// The word of something in one of the tables above.
pub(super) fn word<T: PartialEq>(table: &[(&'static str, T)], of: &T) -> &'static str {
    table
        .iter()
        .find(|row| row.1 == *of)
        .map_or("?", |row| row.0)
}

impl fmt::Display for Step {
    /// As files of mappings have it: `fence.sc.s`.
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
    /// What an access or a fence of PTX is as a step, at the scope that it has; `None`: it is
    /// neither, or one that no row can have, such as a reduction.
    pub fn of(op: &Op) -> Option<Step> {
        super::lower::step(op)
    }
}

/// One row of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which kind of operation.
    pub kind: Kind,
    /// Which order.
    pub order: Order,
    /// Of which scope. `None`: of all that have no row of their own.
    pub scope: Option<Scope>,
    /// What it becomes, in program order. Nothing: it is dropped.
    pub steps: Vec<Step>,
}

/// A named mapping from a source language to PTX.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Its name, as in `--mapping`: that of its file.
    pub name: String,
    /// As `--mapping` finds it: by its name, or by the path of its file.
    pub asked: String,
    /// The language it maps from.
    pub from: Dialect,
    /// The language it maps to.
    pub to: Dialect,
    /// Whether it is the one for its language when nobody names one.
    pub current: bool,
    /// What it is.
    pub doc: String,
    /// What says so: document and section.
    pub sources: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Source scopes and what they become.
    pub(super) scopes: Vec<(Scope, Scope)>,
    /// The groups that PTX has a barrier for.
    pub(super) groups: Vec<Scope>,
    /// What stands on both sides of a barrier of a scope that is wider than its group.
    pub(super) wider: Vec<Step>,
    /// What it is known not to keep, the smallest gap first.
    pub gaps: Vec<Gap>,
    /// If it is of one program alone: that one, and what it becomes.
    pub(super) by_hand: Option<Box<super::by_hand::Pair>>,
}

/// The shipped mappings: by language, the current one first.
pub fn shipped() -> &'static [Mapping] {
    static SHIPPED: LazyLock<Vec<Mapping>> = LazyLock::new(|| {
        let mut all = file::shipped();
        all.sort_by(|a, b| (a.from, !a.current, &a.name).cmp(&(b.from, !b.current, &b.name)));
        all
    });
    &SHIPPED
}

impl Mapping {
    /// What reports call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shipped mapping of that name.
    pub fn named(name: &str) -> Option<&'static Mapping> {
        shipped().iter().find(|m| m.name == name)
    }

    /// The mapping that is used for a language when nobody names one.
    pub fn current(from: Dialect) -> Option<&'static Mapping> {
        shipped().iter().find(|m| m.from == from && m.current)
    }

    /// What an operation of a scope becomes; `None`: it has no counterpart.
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

    /// What a scope becomes; `None`: it has no counterpart.
    pub fn scope(&self, scope: Scope) -> Option<Scope> {
        self.scopes.iter().find(|s| s.0 == scope).map(|s| s.1)
    }
}
