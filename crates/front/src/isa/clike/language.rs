//! Lists the C-like languages; a row holds the differences in reading their code.

use super::calls::{Does, In};
use super::coordinates::{self, Coordinates};
use super::types::Structure;
use program::{Dialect, DialectRow, Scope};

/// The result of a shift by the width of a type or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shifts {
    Undefined,
    /// A shift by the amount modulo the width (OpenCL C, *Operators*).
    Modulo,
}

/// A C-like language.
#[derive(Debug)]
pub struct Language {
    /// The dialect that uses the language.
    pub dialect: Dialect,
    /// CUDA's C++: names have namespaces, arguments may be references, and a memory name is a
    /// variable. The language has atomic references and objects of classes.
    pub cpp: bool,
    /// Assignments evaluate the right operand first, shifts and subscripts the left one (ISO
    /// C++17). Otherwise the order is open.
    pub(super) sequenced: bool,
    /// The result of shifts by too much.
    pub(super) shifts: Shifts,
    /// The function sets that the language has.
    pub(super) functions: &'static [In],
    /// The default scope; `None`: the language has no scopes.
    pub(super) scope: Option<Scope>,
    /// The scope of plain accesses.
    pub plain_scope: Option<Scope>,
    /// Whether the language has a consume order.
    pub(super) consume: bool,
    /// The section with the rules for the types of accesses.
    pub(super) aliasing: &'static str,
    /// The rules that restrict the orders of loads, stores, and other operations.
    order_rules: [&'static str; 3],
    /// The values of a thread's position that kernel code can name.
    pub(super) specials: fn(Coordinates) -> Vec<(&'static str, u64)>,
}

const NOT_HERE: &str = "the language does not have it here";

/// The rows.
static LANGUAGES: [Language; 3] = [
    Language {
        dialect: Dialect::C,
        cpp: false,
        sequenced: false,
        shifts: Shifts::Undefined,
        functions: &[In::C, In::Both, In::Builtin],
        scope: None,
        plain_scope: None,
        consume: true,
        aliasing: "C11, 6.5",
        order_rules: [
            "a load cannot release (C11, 7.17.7.2)",
            "a store cannot acquire (C11, 7.17.7.1)",
            NOT_HERE,
        ],
        specials: |_| Vec::new(),
    },
    Language {
        dialect: Dialect::OpenCl,
        cpp: false,
        sequenced: false,
        shifts: Shifts::Modulo,
        functions: &[In::OpenCl, In::Both],
        scope: Some(Scope::Gpu),
        plain_scope: Some(Scope::Thread),
        consume: false,
        aliasing: "C99, 6.5",
        order_rules: [
            "a load cannot release (OpenCL C, The atomic_load Functions)",
            "a store cannot acquire (OpenCL C, The atomic_store Functions)",
            "OpenCL C has no consume order (Memory Order)",
        ],
        specials: coordinates::of_item,
    },
    Language {
        dialect: Dialect::Cuda,
        cpp: true,
        sequenced: true,
        shifts: Shifts::Undefined,
        functions: &[In::Cuda, In::Builtin],
        scope: Some(Scope::Sys),
        plain_scope: None,
        consume: true,
        aliasing: "ISO C++, basic.lval",
        order_rules: [
            "a load cannot release (ISO C++, atomics.ref.ops)",
            "a store cannot acquire (ISO C++, atomics.ref.ops)",
            NOT_HERE,
        ],
        specials: coordinates::of_thread,
    },
];

impl Language {
    /// The language of a dialect; `None`: the dialect is not C-like.
    pub fn of(dialect: Dialect) -> Option<&'static Language> {
        LANGUAGES.iter().find(|l| l.dialect == dialect)
    }

    /// The row of its dialect.
    pub(super) fn row(&self) -> &'static DialectRow {
        self.dialect.row()
    }

    /// The vector type of that name, if the language has one.
    pub(super) fn vector(&self, name: &str) -> Option<Structure> {
        let opencl = self.row().regions;
        Structure::vector(name, opencl).filter(|_| self.cpp || opencl)
    }

    /// The values that kernel code can name.
    pub fn specials(&self, at: Coordinates) -> Vec<(&'static str, i64)> {
        (self.specials)(at)
            .into_iter()
            .map(|(name, value)| (name, value as i64))
            .collect()
    }

    /// The rule that restricts the orders of an operation.
    pub(super) fn order_rule(&self, does: Does) -> &'static str {
        self.order_rules[match does {
            Does::Load => 0,
            Does::Store => 1,
            _ => 2,
        }]
    }
}
