//! The C-like dialects: C11 atomics, OpenCL C and CUDA C++, as statements of a thread, lowered to
//! micro-ops.
//!
//! A name of memory is a pointer to it, as the parameters of the published suites are: `*x` is a
//! plain access, `atomic_load(x)` an atomic one. The functions are the table in `calls`, so a new
//! one is added in one place.
//!
//! In CUDA C++ it is the object itself: `x = 1` is a plain access, and `f.load()` an atomic one
//! through an atomic reference `f` to it. What only CUDA C++ has is in `cpp`, `cuda` and
//! `cuda_calls`; objects of its library in `classes`, `objects` and `pipelines`, groups of threads
//! in `groups`; calls of the runtime by host code in `host`; what threads of a kernel know of their
//! place in `coordinates`.
//!
//! # Sources
//! - C11, 6.5 to 6.8 and 7.17; OpenCL C, *Atomic Functions*, *Synchronization Functions*.
//! - The published C11 and OpenCL litmus suites: what a compare-exchange does (a plain read of the
//!   expected value; on failure a plain write of the value seen and no atomic write), labels of
//!   barriers.
//!
//! What is in which file: `lex`, `parse`, `decl`, `expr`, `cpp` make the tree (`ast`); `types` has
//! the types, `scope` what names stand for, `effects` the order of evaluation; `lower` walks over
//! statements, `declare` over declarations, `place` and `eval` over expressions.
//!
//! # Where we differ
//! - A variable of a thread is a register: it has no address.

use std::collections::HashSet;
use std::rc::Rc;

use crate::isa::{Object, SymbolKind, Symbols};
use diag::{MappedText, Sink, Span};
use program::{Init, Instr, MemoryKind, Register, Seat, Space, Ty};

mod ast;
mod calls;
mod classes;
mod conditional;
mod coordinates;
mod cpp;
mod cuda;
mod cuda_calls;
mod decl;
mod declare;
mod effects;
mod eval;
mod expr;
mod function;
mod groups;
pub mod host;
mod host_calls;
mod initialisers;
mod inline;
mod inline_asm;
mod integer;
mod integer_calls;
mod lanes;
mod language;
mod lex;
mod lower;
mod memory;
mod objects;
mod parse;
mod pipelines;
mod place;
mod preprocess;
mod ptx_calls;
mod ptx_forms;
mod refused;
mod scope;
#[cfg(test)]
mod tests;
mod type_names;
mod types;
mod words;

pub use classes::{class_name, class_named, initial as class_initial};
pub use coordinates::Coordinates;
pub use language::Language;
pub use types::Record;

/// One thread's code, parsed.
#[derive(Debug)]
pub struct Unit {
    text: MappedText,
    stmts: Vec<ast::Stmt>,
    broken: bool,
}

/// What a thread's code is read with.
#[derive(Clone, Debug)]
pub struct Env {
    /// The language it is in.
    pub language: &'static Language,
    /// Registers must be declared; what OpenCL C forbids of fences is an error. Not so in the
    /// published suites.
    pub strict: bool,
    /// Fences of local memory reach no further than the work-group (OpenCL).
    pub capped: bool,
    /// The thread's seat in its warp or sub-group.
    pub warp: Seat,
    /// The thread's seat in its block or work-group.
    pub block: Seat,
    /// The blocks of its cluster in the order of their ranks: how many copies of shared memory each
    /// one's lies behind its own.
    pub cluster: Vec<i64>,
    /// Values such as that of `threadIdx.x`, by name; none outside of a kernel.
    pub specials: Vec<(&'static str, i64)>,
    /// The names of memory that the thread may use; `None`: all.
    pub visible: Option<HashSet<String>>,
    /// Registers with initial values.
    pub regs: Vec<(String, Init, Span)>,
    /// What host code can name; `None`: this is no host code.
    pub host: Option<Rc<host::Names>>,
}

/// A thread's registers and micro-ops.
#[derive(Debug)]
pub struct Lowered {
    /// Its registers.
    pub regs: Vec<Register>,
    /// Its code.
    pub code: Vec<Instr>,
    /// Its reads through a cache that sees no writes: nothing may write what they read.
    pub read_only: Vec<usize>,
    /// Calls of the runtime, by number.
    pub calls: Vec<host::Request>,
}

impl Unit {
    /// Parses a thread's code; what is wrong with it goes to `sink`.
    pub fn parse(text: MappedText, language: &'static Language, sink: &mut Sink) -> Unit {
        let errors = sink.errors();
        let text = preprocess::preprocess(text, language.dialect, sink);
        let stmts = parse::statements(&text, language, sink);
        Unit {
            text,
            stmts,
            broken: sink.errors() > errors,
        }
    }

    /// Whether the code combines a predicate of the threads of a block.
    pub fn votes(&self) -> bool {
        self.text.as_str().contains("__syncthreads_")
    }

    /// The code as written.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// The structure of a name, if the declarations at the beginning of the code define one.
    pub fn structure(&self, name: &str, language: &'static Language) -> Option<Record> {
        let env = Env {
            language,
            strict: true,
            capped: false,
            warp: Seat::ALONE,
            block: Seat::ALONE,
            cluster: Vec::new(),
            specials: Vec::new(),
            visible: None,
            regs: Vec::new(),
            host: None,
        };
        // What is wrong with them is reported where the code is lowered.
        let file = diag::SourceFile::new("", "");
        let (mut symbols, mut sink) = (Symbols::default(), Sink::new(&file));
        lower::Lowering::new(self, &env, &mut symbols, &mut sink).defined_structure(name)
    }

    /// Lowers the code. The result is meaningful only if nothing was reported to `sink`.
    /// Memory that it declares is added to `symbols`.
    pub fn lower(&self, env: &Env, symbols: &mut Symbols, sink: &mut Sink) -> Lowered {
        lower::lower(self, env, symbols, sink)
    }
}

/// Declares the memory in which the threads of a block vote.
pub fn declare_votes(symbols: &mut Symbols, sink: &mut Sink) {
    let scalar = Object {
        ty: Some((Ty::S32, Span::default())),
        space: Space::Shared,
        ..Object::scalar(0)
    };
    let kind = SymbolKind::Object(Object {
        kind: MemoryKind::Private,
        declared: true,
        ..scalar
    });
    symbols.declare(groups::VOTES, Span::default(), kind, sink);
}

/// The integer type of that name, and whether it is atomic.
pub fn type_named(name: &str) -> Option<(Ty, bool)> {
    words::type_named(name)
}

/// Whether the values of a type, or of the objects of a class, are 0 and 1 alone.
pub fn is_boolean(name: &str) -> bool {
    let argument = name
        .split_once('<')
        .and_then(|(_, rest)| rest.split([',', '>']).next());
    words::is_boolean(argument.unwrap_or(name).trim())
}

/// What the words of a declaration such as `volatile global atomic_int*` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The type of the object pointed to.
    pub ty: Option<Ty>,
    /// Whether it is atomic.
    pub atomic: bool,
    /// Whether its values are 0 and 1 alone.
    pub boolean: bool,
    /// It names global memory.
    pub global: bool,
    /// It names local memory.
    pub local: bool,
}

impl Declaration {
    /// Takes in one word. `Err`: it is no word of a declaration; the nearest one, if any is near.
    ///
    /// # Errors
    /// The word that was probably meant.
    pub fn word(&mut self, word: &str, regions: bool) -> Result<(), Option<String>> {
        match word {
            "global" | "__global" if regions => self.global = true,
            "local" | "__local" if regions => self.local = true,
            _ if words::QUALIFIERS.contains(&word) => {}
            _ => match words::type_named(word) {
                Some((ty, atomic)) => {
                    self.ty = Some(ty);
                    self.atomic |= atomic;
                    self.boolean |= words::is_boolean(word);
                }
                None => {
                    let names = words::type_names();
                    let known = names
                        .iter()
                        .map(String::as_str)
                        .chain(["global", "local", "volatile"]);
                    return Err(diag::nearest(word, known).map(str::to_string));
                }
            },
        }
        Ok(())
    }
}
