//! What names stand for, block by block.
//!
//! # Invariants
//! - A name stands for what the innermost block that declares it says; behind the block it is what
//!   it was before.
//! - Code of a function sees its own blocks, and of what is declared outside of all functions types
//!   and constants, but no variables: those are of the thread whose statements are around. Of its
//!   caller it sees nothing.
//!
//! # Sources
//! - C11, 6.2.1, *Scopes of identifiers*; ISO C++, basic.scope.

use std::collections::HashMap;

use super::types::{Qualified, Value};
use program::{Expr, LocId, RegId, Scope};

/// A variable that is a register.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) reg: RegId,
    pub(super) of: Qualified,
    /// The constant that it always has, if it is one (C++).
    pub(super) known: Option<i64>,
}

/// CUDA: an atomic reference.
#[derive(Clone, Debug)]
pub(super) struct Atomic {
    pub(super) addr: Expr,
    /// What is there.
    pub(super) of: Qualified,
    pub(super) scope: Scope,
}

/// CUDA: a group of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadGroup {
    pub(super) domain: Scope,
    /// Of a warp: the lanes in it; `None`: all.
    pub(super) lanes: Option<u32>,
    /// Of a tile: how many lanes it has where the block is large enough.
    pub(super) size: u32,
}

/// CUDA: what the threads of a pipeline share.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineState {
    pub(super) barriers: LocId,
    /// In it, threads count who is a producer.
    pub(super) count: LocId,
    pub(super) stages: i64,
}

/// CUDA: a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline {
    /// The stage that comes next for a producer and for a consumer; of one thread, how many groups
    /// it has begun and waited for.
    pub(super) head: RegId,
    pub(super) tail: RegId,
    pub(super) shared: Option<SharedPipeline>,
}

/// What a pipeline of several threads has besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedPipeline {
    pub(super) state: PipelineState,
    /// The parities that are waited for.
    pub(super) consumed: RegId,
    pub(super) produced: RegId,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    Register(Variable),
    /// Memory at an address: what the code declares, and what a C++ reference refers to.
    Memory(Expr, Qualified),
    /// CUDA: an atomic reference.
    Atomic(Atomic),
    /// CUDA: a group of threads.
    Group(ThreadGroup),
    /// CUDA: a pipeline, and what the threads of one share.
    Pipeline(Pipeline),
    PipelineState(PipelineState),
    /// An enumerator.
    Constant(Value),
    Type(Qualified),
}

impl Binding {
    /// Whether it is the same wherever it is used: a type, or a constant.
    fn is_constant(&self) -> bool {
        match self {
            Binding::Type(_) | Binding::Constant(_) => true,
            Binding::Register(variable) => variable.known.is_some(),
            Binding::Memory(..)
            | Binding::Atomic(_)
            | Binding::Group(_)
            | Binding::Pipeline(_)
            | Binding::PipelineState(_) => false,
        }
    }
}

/// The blocks around a place in the code.
#[derive(Debug)]
pub(super) struct Scopes {
    blocks: Vec<HashMap<String, Binding>>,
    /// The first block of the function that the code is in. Those before it, but the first, are its
    /// callers'.
    base: usize,
}

impl Scopes {
    pub(super) fn new() -> Scopes {
        Scopes {
            blocks: vec![HashMap::new()],
            base: 1,
        }
    }

    /// Begins a block.
    pub(super) fn enter(&mut self) {
        self.blocks.push(HashMap::new());
    }

    /// Begins a function, whose code sees nothing of its caller; what [`Scopes::leave_function`]
    /// wants.
    pub(super) fn enter_function(&mut self) -> usize {
        let base = std::mem::replace(&mut self.base, self.blocks.len());
        self.enter();
        base
    }

    /// Ends a function.
    pub(super) fn leave_function(&mut self, base: usize) {
        self.leave();
        self.base = base;
    }

    /// Ends the innermost block.
    pub(super) fn leave(&mut self) {
        self.blocks.pop();
    }

    /// What a name stands for.
    pub(super) fn find(&self, name: &str) -> Option<&Binding> {
        let own = self
            .blocks
            .iter()
            .skip(self.base)
            .rev()
            .find_map(|block| block.get(name));
        let outside = || {
            self.blocks
                .get(1)?
                .get(name)
                .filter(|binding| binding.is_constant())
        };
        own.or_else(outside)
            .or_else(|| self.blocks.first()?.get(name))
    }

    /// In how many blocks the code is.
    pub(super) fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// Whether the innermost block declares a name.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.blocks
            .last()
            .is_some_and(|block| block.contains_key(name))
    }

    /// Declares a name in the innermost block.
    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        if let Some(block) = self.blocks.last_mut() {
            block.insert(name.to_string(), binding);
        }
    }

    /// Declares a name outside of all functions.
    pub(super) fn bind_outside(&mut self, name: &str, binding: Binding) {
        if let Some(block) = self.blocks.first_mut() {
            block.insert(name.to_string(), binding);
        }
    }

    /// All names that can be seen.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.blocks.iter().skip(self.base);
        own.chain(self.blocks.first())
            .flat_map(|block| block.keys().map(String::as_str))
    }
}
