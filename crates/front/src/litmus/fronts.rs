//! How tests of each dialect are read and written: one row per dialect. [`program::dialect`] has
//! the rows for their meaning.

use crate::isa::clike::Language;
use crate::isa::ptx;
use program::{Dialect, Program, Thread};

/// The syntax of a dialect's code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Syntax {
    /// Instructions of PTX.
    Ptx,
    /// Statements of a C-like language.
    C,
}

/// How tests of one dialect are read and written.
pub(super) struct Front {
    pub(super) dialect: Dialect,
    pub(super) syntax: Syntax,
    /// First words of its `.litmus` files; empty if the format does not support the dialect.
    pub(super) heads: &'static [&'static str],
    /// Keys of a location that the dialect lacks.
    pub(super) foreign: &'static [&'static str],
    /// Whether kernels have index spaces with offsets and partial groups, and threads name their
    /// kernel.
    pub(super) ranges: bool,
}

/// The supported dialects, in the order in which they are listed to users.
pub(super) const FRONTS: &[Front] = &[
    Front {
        dialect: Dialect::Ptx,
        syntax: Syntax::Ptx,
        heads: &["PTX"],
        foreign: &["atomic", "svm", "regions", "kind", "gpu", "width", "height"],
        ranges: false,
    },
    Front {
        dialect: Dialect::Cuda,
        syntax: Syntax::C,
        heads: &[],
        foreign: &[
            "proxy", "svm", "regions", "atomic", "bytes", "fields", "width", "height",
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
            "alias", "proxy", "svm", "regions", "space", "kind", "gpu", "bytes", "fields", "width",
            "height",
        ],
        ranges: false,
    },
];

impl Front {
    /// The row of a dialect.
    ///
    /// # Panics
    /// If tests of the dialect cannot be read.
    pub(super) fn of(dialect: Dialect) -> &'static Front {
        FRONTS
            .iter()
            .find(|front| front.dialect == dialect)
            .expect("tests of unread dialects do not exist")
    }
}

/// The language of a dialect's C-like code, or of the host's code for it.
///
/// # Panics
/// If the dialect is not C-like.
pub(super) fn language(dialect: Dialect) -> &'static Language {
    Language::of(dialect).expect("the language of C-like code has a row")
}

/// All supported dialects.
pub fn dialects() -> impl Iterator<Item = Dialect> {
    FRONTS.iter().map(|front| front.dialect)
}

/// A thread's code, printed in its dialect; `None` for dialects that keep the code as written.
pub fn printed(thread: &Thread, program: &Program) -> Option<Result<String, ptx::Unprintable>> {
    match Front::of(program.dialect).syntax {
        Syntax::Ptx => Some(ptx::print(thread, program)),
        Syntax::C => None,
    }
}
