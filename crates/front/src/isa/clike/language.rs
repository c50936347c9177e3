//! The C-like languages, a row each: what differs in reading their code.

use super::calls::{Does, In};
use super::coordinates::{self, Coordinates};
use super::types::Structure;
use program::{Dialect, DialectRow, Scope};

/// What a shift by the width of a type or more is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shifts {
    /// Undefined.
    Undefined,
    /// By the amount modulo the width (OpenCL C, *Operators*).
    Modulo,
}

/// A C-like language.
#[derive(Debug)]
pub struct Language {
    /// The dialect whose language it is.
    pub dialect: Dialect,
    /// The C++ of CUDA: names have namespaces, arguments may be references, memory is named as a
    /// variable, and there are references to it and objects of classes.
    pub cpp: bool,
    /// Assignments evaluate the right operand first, shifts and subscripts the left one (ISO
    /// C++17); else in any order.
    pub(super) sequenced: bool,
    /// What shifts by too much are.
    pub(super) shifts: Shifts,
    /// Which functions of the tables it has.
    pub(super) functions: &'static [In],
    /// The scope of an operation that names none; `None`: there are no scopes.
    pub(super) scope: Option<Scope>,
    /// The scope of plain accesses.
    pub plain_scope: Option<Scope>,
    /// Whether there is a consume order.
    pub(super) consume: bool,
    /// Where it says as which types an object may be accessed.
    pub(super) aliasing: &'static str,
    /// Why a load, a store or anything else cannot have some order.
    order_rules: [&'static str; 3],
    /// What the code of a kernel can name of a thread's place.
    pub(super) specials: fn(Coordinates) -> Vec<(&'static str, u64)>,
}

const NOT_HERE: &str = "the language does not have it here";

/// All.
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
            "there is no consume order in OpenCL C (Memory Order)",
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
    /// That of a dialect; `None`: it is not C-like.
    pub fn of(dialect: Dialect) -> Option<&'static Language> {
        LANGUAGES.iter().find(|l| l.dialect == dialect)
    }

    /// What there is to know of its dialect.
    pub(super) fn row(&self) -> &'static DialectRow {
        self.dialect.row()
    }

    /// The vector type of that name, if the language has one.
    pub(super) fn vector(&self, name: &str) -> Option<Structure> {
        let opencl = self.row().regions;
        Structure::vector(name, opencl).filter(|_| self.cpp || opencl)
    }

    /// The values that code of a kernel can name.
    pub fn specials(&self, at: Coordinates) -> Vec<(&'static str, i64)> {
        (self.specials)(at)
            .into_iter()
            .map(|(name, value)| (name, value as i64))
            .collect()
    }

    /// The rule that says which orders an operation may have.
    pub(super) fn order_rule(&self, does: Does) -> &'static str {
        self.order_rules[match does {
            Does::Load => 0,
            Does::Store => 1,
            _ => 2,
        }]
    }
}
