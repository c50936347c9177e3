//! The C-like dialects: C11 atomics, OpenCL C and CUDA C++, as statements of a thread, lowered to micro-ops.
//!
//! A name of memory is a pointer to it, as the parameters of the published suites are: `*x` is a plain access,
//! `atomic_load(x)` an atomic one. The functions are the table in `calls`, so a new one is added in one place.
//!
//! In CUDA C++ it is the object itself: `x = 1` is a plain access, and `f.load()` an atomic one through an atomic reference
//! `f` to it. What only CUDA C++ has is in `cpp`, `cuda` and `cuda_calls`.
//!
//! # Sources
//! - C11, 6.5 to 6.8 and 7.17; OpenCL C, *Atomic Functions*, *Synchronization Functions*.
//! - The published C11 and OpenCL litmus suites: what a compare-exchange does (a plain read of the expected value; on
//!   failure a plain write of the value seen and no atomic write), labels of barriers.
//!
//! # Where we differ
//! - Operands are evaluated from left to right, so no evaluations are unsequenced.
//! - A register is known in the whole thread, whatever block declares it, and starts at 0.
//! - A weak compare-exchange does not fail spuriously.

use std::collections::HashSet;

use crate::diag::{MappedText, Sink, Span};
use crate::program::isa::Symbols;
use crate::program::{Dialect, Init, Instr, Register, Ty};

mod ast;
mod calls;
mod cpp;
mod cuda;
mod cuda_calls;
mod eval;
mod expr;
mod function;
mod lex;
mod lower;
mod parse;
mod refused;
pub mod strength;
#[cfg(test)]
mod tests;
mod words;

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
    /// [`Dialect::C`], [`Dialect::OpenCl`] or [`Dialect::Cuda`].
    pub dialect: Dialect,
    /// Registers must be declared; what OpenCL C forbids of fences is an error. Not so in the published suites.
    pub strict: bool,
    /// Fences of local memory reach no further than the work-group (OpenCL).
    pub capped: bool,
    /// How many threads the warp of the thread has.
    pub warp_threads: u32,
    /// The names of memory that the thread may use; `None`: all.
    pub visible: Option<HashSet<String>>,
    /// Registers with initial values.
    pub regs: Vec<(String, Init, Span)>,
}

/// A thread's registers and micro-ops.
#[derive(Debug)]
pub struct Lowered {
    /// Its registers.
    pub regs: Vec<Register>,
    /// Its code.
    pub code: Vec<Instr>,
}

impl Unit {
    /// Parses a thread's code; what is wrong with it goes to `sink`.
    pub fn parse(text: MappedText, sink: &mut Sink) -> Unit {
        let errors = sink.errors();
        let stmts = parse::statements(&text, sink);
        Unit { text, stmts, broken: sink.errors() > errors }
    }

    /// The code as written.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Lowers the code. The result is meaningful only if nothing was reported to `sink`.
    pub fn lower(&self, env: &Env, symbols: &Symbols, sink: &mut Sink) -> Lowered {
        lower::lower(self, env, symbols, sink)
    }
}

/// The integer type of that name, and whether it is atomic.
pub fn type_named(name: &str) -> Option<(Ty, bool)> {
    words::type_named(name)
}

/// What the words of a declaration such as `volatile global atomic_int*` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The type of the object pointed to.
    pub ty: Option<Ty>,
    /// Whether it is atomic.
    pub atomic: bool,
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
                }
                None => {
                    let names = words::type_names();
                    let known = names.iter().map(String::as_str).chain(["global", "local", "volatile"]);
                    return Err(crate::diag::nearest(word, known).map(str::to_string));
                }
            },
        }
        Ok(())
    }
}
