//! Assembly in CUDA C++: named barriers, which the language has no other form of.
//!
//! # Invariants
//! - The text is read by the rows of PTX; what it means is said there alone. Anything but barriers is refused.
//! - Barrier 0 is the one that `__syncthreads()` waits at.
//!
//! # Sources
//! - NVIDIA, *Inline PTX Assembly in CUDA*; PTX ISA, *bar / barrier*.

use std::ops::Range;

use super::groups::WORK_GROUP_BARRIER;
use super::lower::Lowering;
use super::parse::{Failed, Parsed, Parser};
use crate::isa::{Symbols, ptx};
use diag::MappedText;
use program::{Barrier, BarrierNaming, Expr, Op, Scope, Tags};

/// What may stand between `asm` and its parenthesis.
const QUALIFIERS: &[&str] = &["volatile", "__volatile__"];

/// Whether a word begins such a statement.
pub(super) fn begins(word: &str) -> bool {
    matches!(word, "asm" | "__asm__")
}

impl Parser<'_, '_> {
    /// `asm volatile("bar.sync 1, 64;" ::: "memory")`, without the `;`: the contents of its strings.
    pub(super) fn assembly(&mut self) -> Parsed<Vec<Range<usize>>> {
        self.next();
        while QUALIFIERS.contains(&self.word()) {
            self.next();
        }
        self.expect("(")?;
        let mut strings = Vec::new();
        while let Some(contents) = self.string() {
            strings.push(contents);
        }
        if strings.is_empty() {
            return self.unexpected("a string of PTX, such as `\"bar.sync 1, 64;\"`");
        }
        // A barrier takes constants, and is a compiler barrier with or without the clobber.
        while self.eat(":") || self.eat("::") {}
        let clobber = self.range();
        if let Some(contents) = self.string()
            && self.str(&contents) != "memory"
        {
            let span = self.text.span(clobber);
            self.sink.error("unsupported", span, "operands of assembly are not supported", |d| {
                d.label("expected `\"memory\"`").help("write constants into the text: `asm(\"bar.sync 1, 64;\");`")
            });
            return Err(Failed);
        }
        self.expect(")")?;
        Ok(strings)
    }
}

impl Lowering<'_, '_> {
    /// The barriers of an assembly statement.
    pub(super) fn assembly(&mut self, strings: &[Range<usize>], range: &Range<usize>) {
        if !self.env.language.cpp {
            self.error("unsupported", range, "assembly is not supported in this dialect", |d| {
                d.label("expected another statement")
            });
            return;
        }
        let mut text = MappedText::new();
        strings.iter().for_each(|s| text.push_slice(&self.unit.text, s.clone()));
        let before = self.sink.errors();
        let env = ptx::Env { strict: true, warp_threads: self.env.warp_threads, ..ptx::Env::default() };
        let lowered = ptx::Unit::parse(text, self.sink).lower(&env, &Symbols::default(), self.sink);
        if self.sink.errors() > before {
            return;
        }
        for instr in lowered.code {
            match instr.op {
                Op::Barrier(barrier) if barrier.domain == Scope::Cta => self.named_barrier(barrier),
                _ => {
                    self.error("unsupported", range, "only barriers of a block are supported in assembly", |d| {
                        d.label("expected `bar.sync` or `bar.arrive`")
                            .help("write the test in PTX: `dialect = \"ptx\"`")
                    });
                    return;
                }
            }
        }
    }

    fn named_barrier(&mut self, mut barrier: Barrier) {
        if let BarrierNaming::Counted { id: id @ Expr::Const(0), .. } = &mut barrier.naming {
            *id = Expr::Const(WORK_GROUP_BARRIER);
        }
        (barrier.arrive, barrier.wait) = (Tags::of(&["B", "BA"]), Tags::of(&["B", "BW"]));
        self.push(Op::Barrier(barrier));
    }
}
