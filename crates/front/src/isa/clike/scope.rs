//! Keeps the bindings of names, block by block.
//!
//! # Invariants
//! - A name has the binding from the innermost block that declares it. When that block ends, the
//!   earlier binding returns.
//! - Code of a function sees its own blocks, and nothing of its caller. It sees the types and
//!   constants outside of all functions, but not the variables there: those belong to the thread.
//!
//! # Sources
//! - C11, 6.2.1, *Scopes of identifiers*; ISO C++, basic.scope.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::ast::Function;
use super::types::{Qualified, Value};
use program::{Expr, LocId, RegId, Scope};

/// A variable in a register.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) reg: RegId,
    pub(super) of: Qualified,
    /// The value of a C++ constant.
    pub(super) known: Option<i64>,
}

/// CUDA: an atomic reference.
#[derive(Clone, Debug)]
pub(super) struct Atomic {
    pub(super) addr: Expr,
    /// The type of the object.
    pub(super) of: Qualified,
    pub(super) scope: Scope,
}

/// CUDA: a group of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadGroup {
    pub(super) domain: Scope,
    /// For a warp: the lanes in the group.
    pub(super) lanes: GroupLanes,
    /// For a tile: its number of lanes in a block that is large enough.
    pub(super) size: u32,
    /// Whether it consists of the lanes that happened to run together: ranks count these.
    pub(super) coalesced: bool,
    /// Whether it is a tile of a block.
    pub(super) of_block: bool,
}

impl ThreadGroup {
    /// The group that a launch makes for a scope.
    pub(super) fn of_scope(domain: Scope) -> ThreadGroup {
        ThreadGroup {
            domain,
            lanes: GroupLanes::All,
            size: 32,
            coalesced: false,
            of_block: false,
        }
    }
}

/// The lanes of a group in a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupLanes {
    /// All of the warp.
    All,
    /// These, as a set of bits.
    Some(u32),
    /// The set of bits in a register.
    In(RegId),
}

/// CUDA: the memory that the threads of a pipeline share.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineState {
    pub(super) barriers: LocId,
    /// The counter of the producers among the threads.
    pub(super) count: LocId,
    pub(super) stages: i64,
}

/// CUDA: a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline {
    /// The next stages of the producer and of the consumer. In a pipeline of one thread, the
    /// numbers of groups begun and waited for.
    pub(super) head: RegId,
    pub(super) tail: RegId,
    pub(super) shared: Option<SharedPipeline>,
}

/// Additional state of a shared pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedPipeline {
    pub(super) state: PipelineState,
    /// The parities that the next waits wait for.
    pub(super) consumed: RegId,
    pub(super) produced: RegId,
}

/// The accesses of a function beyond its own variables, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touches {
    Nothing,
    /// It reads memory plainly.
    Memory,
    /// It has effects that other code may notice.
    Everything,
}

/// A lambda with the names that it sees.
#[derive(Debug)]
pub(super) struct LambdaValue {
    pub(super) function: Rc<Function>,
    pub(super) sees: Instance,
    /// Its accesses beyond its own variables.
    pub(super) touches: Touches,
    /// The class of a member function.
    pub(super) class: Option<String>,
}

/// The parameters of a template, bound for a call; the names that a lambda sees.
pub(super) type Instance = Vec<(String, Binding)>;

/// The meaning of a name.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    Register(Variable),
    /// Memory at an address: an object that the code declares, or the target of a C++ reference.
    Memory(Expr, Qualified),
    /// CUDA: an atomic reference.
    Atomic(Atomic),
    /// CUDA: a group of threads.
    Group(ThreadGroup),
    /// CUDA: a pipeline, and the state that its threads share.
    Pipeline(Pipeline),
    PipelineState(PipelineState),
    /// A constant value, such as an enumerator.
    Constant(Value),
    Type(Qualified),
    /// A lambda, or a pointer to a function.
    Closure(Rc<LambdaValue>),
    /// A table of functions.
    Closures(Rc<[Rc<LambdaValue>]>),
    /// A word of the library, such as a scope, by the place where the code writes it.
    Spelled(Range<usize>),
}

impl Binding {
    /// Whether the binding is the same for all threads: a type, or a constant.
    fn is_constant(&self) -> bool {
        match self {
            Binding::Type(_) | Binding::Constant(_) | Binding::Spelled(_) => true,
            Binding::Register(variable) => variable.known.is_some(),
            Binding::Memory(..)
            | Binding::Atomic(_)
            | Binding::Group(_)
            | Binding::Pipeline(_)
            | Binding::PipelineState(_)
            | Binding::Closure(_)
            | Binding::Closures(_) => false,
        }
    }
}

/// The blocks around a place in the code.
#[derive(Debug)]
pub(super) struct Scopes {
    blocks: Vec<HashMap<String, Binding>>,
    /// The number of each open block, and how many blocks began so far.
    numbers: Vec<usize>,
    begun: usize,
    /// The index of the current function's first block. The blocks before it belong to callers,
    /// except block 0.
    base: usize,
}

impl Scopes {
    pub(super) fn new() -> Scopes {
        Scopes {
            blocks: vec![HashMap::new()],
            numbers: vec![0],
            begun: 0,
            base: 1,
        }
    }

    pub(super) fn enter(&mut self) {
        self.blocks.push(HashMap::new());
        self.begun += 1;
        self.numbers.push(self.begun);
    }

    /// Begins a function, which sees nothing of its caller. Returns the argument for
    /// [`Scopes::leave_function`].
    pub(super) fn enter_function(&mut self) -> usize {
        let base = std::mem::replace(&mut self.base, self.blocks.len());
        self.enter();
        base
    }

    pub(super) fn leave_function(&mut self, base: usize) {
        self.leave();
        self.base = base;
    }

    pub(super) fn leave(&mut self) {
        self.blocks.pop();
        self.numbers.pop();
    }

    /// The binding of a name.
    pub(super) fn find(&self, name: &str) -> Option<&Binding> {
        let own = self
            .blocks
            .iter()
            .skip(self.base)
            .rev()
            .find_map(|block| block.get(name));
        own.or_else(|| {
            self.blocks
                .get(1)?
                .get(name)
                .filter(|binding| binding.is_constant())
        })
        .or_else(|| self.blocks.first()?.get(name))
    }

    /// The constants and types of the innermost block.
    pub(super) fn constants_here(&self) -> Vec<(String, Binding)> {
        let here = self.blocks.last().into_iter().flatten();
        let constant = here.filter(|(_, binding)| binding.is_constant());
        let mut all: Vec<_> = constant
            .map(|(name, b)| (name.clone(), b.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The bindings of the blocks of the current function, the innermost of each name.
    pub(super) fn own(&self) -> Vec<(String, Binding)> {
        let mut all: HashMap<&String, &Binding> = HashMap::new();
        for block in self.blocks.iter().skip(self.base) {
            all.extend(block);
        }
        let mut all: Vec<_> = all
            .into_iter()
            .map(|(n, b)| (n.clone(), b.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The numbers of the open blocks, the innermost last. No two blocks have the same one.
    pub(super) fn blocks(&self) -> Vec<usize> {
        self.numbers.clone()
    }

    /// The number of open blocks.
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

    /// All visible names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.blocks.iter().skip(self.base);
        own.chain(self.blocks.first())
            .flat_map(|block| block.keys().map(String::as_str))
    }
}
