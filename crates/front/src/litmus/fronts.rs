//! How tests of each dialect are read and written: a row each. What they mean is in the rows of
//! [`program::dialect`].

use crate::isa::clike::Language;
use crate::isa::ptx;
use program::{Dialect, Program, Thread};

/// What the code of a dialect is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Syntax {
    /// Instructions of PTX.
    Ptx,
    /// Statements of a C-like language.
    C,
}

/// One dialect.
pub(super) struct Front {
    pub(super) dialect: Dialect,
    pub(super) syntax: Syntax,
    /// What `.litmus` files begin with; empty: there are none.
    pub(super) heads: &'static [&'static str],
    /// Keys of a location that the dialect lacks.
    pub(super) foreign: &'static [&'static str],
    /// Kernels have index spaces with offsets and groups that are not full, and threads say to
    /// which kernel they belong.
    pub(super) ranges: bool,
}

/// The dialects that are read, in the order in which they are listed.
pub(super) const FRONTS: &[Front] = &[
    Front {
        dialect: Dialect::Ptx,
        syntax: Syntax::Ptx,
        heads: &["PTX"],
        foreign: &["atomic", "svm", "regions", "kind", "gpu"],
        ranges: false,
    },
    Front {
        dialect: Dialect::Cuda,
        syntax: Syntax::C,
        heads: &[],
        foreign: &[
            "alias", "proxy", "svm", "regions", "atomic", "bytes", "fields",
        ],
        ranges: false,
    },
    Front {
        dialect: Dialect::OpenCl,
        syntax: Syntax::C,
        heads: &["OPENCL", "OpenCL"],
        foreign: &["alias", "proxy", "gpu", "bytes", "fields"],
        ranges: true,
    },
    Front {
        dialect: Dialect::C,
        syntax: Syntax::C,
        heads: &["C"],
        foreign: &[
            "alias", "proxy", "svm", "regions", "space", "kind", "gpu", "bytes", "fields",
        ],
        ranges: false,
    },
];

impl Front {
    /// That of a dialect.
    ///
    /// # Panics
    /// If no test of it can be read.
    pub(super) fn of(dialect: Dialect) -> &'static Front {
        FRONTS
            .iter()
            .find(|front| front.dialect == dialect)
            .expect("tests of unread dialects do not exist")
    }
}

/// The language of a dialect's code, or of the host's in a program of it.
///
/// # Panics
/// If it is not C-like.
pub(super) fn language(dialect: Dialect) -> &'static Language {
    Language::of(dialect).expect("the language of C-like code has a row")
}

/// The dialects that are read.
pub fn dialects() -> impl Iterator<Item = Dialect> {
    FRONTS.iter().map(|front| front.dialect)
}

/// A thread's code as its dialect writes it; `None`: code is kept as it was written.
pub fn printed(thread: &Thread, program: &Program) -> Option<Result<String, ptx::Unprintable>> {
    match Front::of(program.dialect).syntax {
        Syntax::Ptx => Some(ptx::print(thread, program)),
        Syntax::C => None,
    }
}
