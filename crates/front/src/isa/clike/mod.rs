//! Parses and lowers the C-like dialects: C11 atomics, OpenCL C and CUDA C++, as statements of a
//! thread. The results are micro-ops.
//!
//! In C and OpenCL C, a name of memory is a pointer to it, as the parameters of the published
//! suites are: `*x` is a plain access, `atomic_load(x)` an atomic one. In CUDA C++ it is the
//! object: `x = 1` is a plain access, and `f.load()` an atomic one through an atomic reference `f`
//! to it.
//!
//! The files:
//! - `lex`, `parse`, `decl`, `expr` and `cpp` make the tree (`ast`).
//! - `types` has the types, `scope` the bindings of names, `effects` the order of evaluation.
//! - `lower` walks over statements, `declare` over declarations, `place` and `eval` over
//!   expressions.
//! - `calls` has the table of functions; a new function is one row there.
//! - `cpp`, `cuda` and `cuda_calls` have the constructs that only CUDA C++ has; `classes`,
//!   `objects` and `pipelines` the objects of its library; `groups` the groups of threads.
//! - `templates` parses templates, `instances` chooses the function of a call, `members` has the
//!   member functions.
//! - `function_values` follows pointers to functions, `prototypes` calls functions without a body.
//! - `floats` computes with numbers of floating point, `annotations` has those of verifiers.
//! - `addressed` finds the variables that are memory.
//! - `host` has the calls of the runtime by host code, `coordinates` the position of a thread in
//!   its kernel.
//!
//! # Sources
//! - C11, 6.5 to 6.8 and 7.17; OpenCL C, *Atomic Functions*, *Synchronization Functions*.
//! - The published C11 and OpenCL litmus suites: the labels of barriers, and the events of a
//!   compare-exchange. It reads the expected value plainly. On failure it writes the value seen
//!   plainly, without an atomic write.
//!
//! # Where we differ
//! - A variable of a thread is a register, and has no address, unless the code takes it.

use std::collections::HashSet;
use std::rc::Rc;

use crate::isa::{Object, SymbolKind, Symbols};
use diag::{MappedText, Sink, Span};
use program::{
    Format, GroupSeat, Init, Instr, LocId, MemoryKind, OpenClMemory, Register, Space, Ty,
};

mod addressed;
mod annotations;
mod ast;
mod async_copies;
mod byte_calls;
mod calls;
mod class_bodies;
mod classes;
mod classes_of_code;
mod coalesced;
mod conditional;
mod coordinates;
mod copy_sites;
mod cpp;
#[cfg(test)]
mod cpp_tests;
mod cuda;
mod cuda_calls;
mod decl;
mod declare;
mod dynamic_memory;
mod effects;
mod either_order;
mod eval;
mod expr;
mod floats;
mod function;
mod function_table;
mod function_values;
mod groups;
mod half_pairs;
mod headers;
pub mod host;
mod host_calls;
pub mod host_main;
mod image_words;
mod images;
mod initialisers;
mod inline;
mod inline_asm;
mod instances;
mod integer;
mod integer_calls;
mod items;
mod jump_places;
mod jumps;
mod kernel_literals;
mod lambda_arguments;
mod lambdas;
mod lanes;
mod language;
mod language_macros;
mod lex;
mod library;
mod library_classes;
mod lower;
mod math;
mod members;
mod memory;
mod objects;
mod open_copies;
mod operators;
mod packs;
mod parse;
mod pipe_words;
mod pipelines;
mod pipes;
mod place;
mod preprocess;
mod promote;
mod prototypes;
mod ptx_calls;
mod ptx_forms;
mod ptx_splice;
mod refused;
mod scope;
mod signs;
mod source;
mod sub_groups;
mod templates;
#[cfg(test)]
mod tests;
mod text_words;
mod texture_words;
mod textures;
mod type_names;
mod types;
mod wide;
mod wide_integers;
mod words;

pub use calls::is_reserved;
pub use classes::{class_name, class_named, initial as class_initial};
pub use coordinates::{Coordinates, WarpMapping};
pub use headers::{included, with_headers};
pub use language::Language;
pub use pipe_words::MOST_PACKETS;
pub use source::{BlockLimit, KernelHead, KernelParameter, ParameterBound, SourceUnit, Traits};
pub use types::Record;
pub use wide_integers::wide_integer;

/// One thread's code, parsed.
#[derive(Debug)]
pub struct ClikeCode {
    text: MappedText,
    stmts: Vec<ast::Stmt>,
    instances: templates::Instances,
    /// It is a kernel of a source file: no condition names its variables.
    of_file: bool,
    /// What the reading of its directives took for granted.
    assumed: Vec<String>,
    broken: bool,
}

/// The context in which a thread's code is lowered.
#[derive(Clone, Debug)]
pub struct Env {
    /// The language of the code.
    pub language: &'static Language,
    /// Whether undeclared registers, and fences that OpenCL C forbids, are errors. In the published
    /// suites they are not.
    pub strict: bool,
    /// Fences of local memory reach no further than the work-group (OpenCL).
    pub capped: bool,
    /// The thread's seat in its warp or sub-group.
    pub warp: GroupSeat,
    /// The thread's seat in its block or work-group.
    pub block: GroupSeat,
    /// For each block of its cluster, by rank: how many copies its shared memory lies after this
    /// block's.
    pub cluster: Vec<i64>,
    /// Values such as that of `threadIdx.x`, by name; empty outside of kernels.
    pub specials: Vec<(&'static str, i64)>,
    /// These values are registers that begin with them, so that the code is the same in every
    /// thread.
    pub places_are_registers: bool,
    /// The names of memory that the thread may use; `None`: all.
    pub visible: Option<HashSet<String>>,
    /// Registers with initial values.
    pub regs: Vec<(String, Init, Span)>,
    /// The names for host code; `None`: the code is not host code.
    pub host: Option<Rc<host::Names>>,
}

impl Env {
    /// The context of a thread without others, outside of kernels.
    fn alone(language: &'static Language) -> Env {
        Env {
            language,
            strict: true,
            capped: false,
            warp: GroupSeat::ALONE,
            block: GroupSeat::ALONE,
            cluster: Vec::new(),
            specials: Vec::new(),
            places_are_registers: false,
            visible: None,
            regs: Vec::new(),
            host: None,
        }
    }
}

/// A thread's registers and micro-ops.
#[derive(Debug)]
pub struct Lowered {
    /// The registers, in the order of their ids.
    pub regs: Vec<Register>,
    /// The micro-ops, in program order.
    pub code: Vec<Instr>,
    /// Reads through a cache that sees no writes; no thread may write the memory they read.
    pub read_only: Vec<usize>,
    /// Calls of the runtime, by number.
    pub calls: Vec<host::Request>,
}

/// Whether the meaning of a word of OpenCL C depends on the division into work-groups. The scope of
/// legacy atomic functions is the work-group.
fn depends_on_groups(word: &str) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "get_local_",
        "get_group_",
        "get_num_",
        "get_enqueued_",
        "get_max_",
        "async_",
        "atom_",
        "wait_group_",
    ];
    const PARTS: [&str; 4] = ["work_group", "sub_group", "barrier", "mem_fence"];
    const LEGACY: [&str; 11] = [
        "add", "sub", "inc", "dec", "xchg", "cmpxchg", "min", "max", "and", "or", "xor",
    ];
    let legacy = word.strip_prefix("atomic_");
    matches!(word, "local" | "__local")
        || BEGINNINGS.iter().any(|start| word.starts_with(start))
        || PARTS.iter().any(|part| word.contains(part))
        || legacy.is_some_and(|name| LEGACY.contains(&name))
}

impl ClikeCode {
    /// A word by which code in OpenCL C may depend on the size of its work-groups.
    pub(crate) fn word_of_groups(&self) -> Option<String> {
        let source = self.text.as_str();
        let words = text_words::words(source).into_iter();
        let mut words = words.map(|(range, _)| &source[range]);
        words
            .find(|word| depends_on_groups(word))
            .map(str::to_owned)
    }

    /// Parses a thread's code; reports errors to `sink`.
    pub fn parse(text: MappedText, language: &'static Language, sink: &mut Sink) -> ClikeCode {
        let errors = sink.errors();
        let text = preprocess::preprocess(text, language.dialect, sink);
        let text = library::with_definitions(text, language);
        let (stmts, instances) = parse::statements(&text, language, sink);
        ClikeCode {
            text,
            stmts,
            instances,
            of_file: false,
            assumed: Vec::new(),
            broken: sink.errors() > errors,
        }
    }

    /// Whether the code combines a predicate of the threads of a block.
    pub fn votes(&self) -> bool {
        self.text.as_str().contains("__syncthreads_")
    }

    /// Whether the code copies asynchronously for its work-group.
    pub fn copies(&self) -> bool {
        copy_sites::copies(self.text.as_str())
    }

    /// The code as written.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// The structure of that name, if declarations at the beginning of the code define it.
    pub fn structure(&self, name: &str, language: &'static Language) -> Option<Record> {
        let env = Env::alone(language);
        // The lowering of the code reports errors in these declarations.
        let file = diag::SourceFile::new("", "");
        let (mut symbols, mut sink) = (Symbols::default(), Sink::new(&file));
        lower::Lowering::new(self, &env, &mut symbols, &mut sink).defined_structure(name)
    }

    /// Lowers the code, and adds the memory that it declares to `symbols`. The result has a meaning
    /// only if `sink` has no errors.
    pub fn lower(&self, env: &Env, symbols: &mut Symbols, sink: &mut Sink) -> Lowered {
        for assumption in &self.assumed {
            symbols.assume(assumption.clone());
        }
        lower::lower(self, env, symbols, sink)
    }
}

/// Declares the memory in which the threads of a block vote.
pub fn declare_votes(symbols: &mut Symbols, sink: &mut Sink) {
    let scalar = Object::scalar(0);
    declare_counters(groups::VOTES, scalar, MemoryKind::Private, symbols, sink);
}

/// Declares the memory in which the work-items of a group tell of complete copies.
pub fn declare_copies(symbols: &mut Symbols, sink: &mut Sink) {
    let counters = Object {
        init: vec![Init::Int(0); copy_sites::COPIERS],
        atomic: Some(true),
        opencl: OpenClMemory {
            global: false,
            local: true,
            capped: true,
        },
        ..Object::scalar(0)
    };
    let (name, kind) = (copy_sites::COPIES, MemoryKind::default());
    declare_counters(name, counters, kind, symbols, sink);
}

/// Declares the memory of a pipe's state, if memory is a pipe.
pub fn declare_pipe(symbols: &mut Symbols, packets: LocId, sink: &mut Sink) {
    let object = symbols.object(packets).1;
    if object.kind != MemoryKind::Pipe {
        return;
    }
    let kind = SymbolKind::Object(Object {
        ty: Some((pipe_words::STATE, Span::default())),
        atomic: Some(true),
        opencl: object.opencl,
        kind: MemoryKind::Pipe,
        declared: true,
        ..Object::scalar(0)
    });
    let (name, span) = (&symbols.get(packets).name, symbols.get(packets).span);
    let name = pipe_words::state_name(name);
    symbols.declare(&name, span, kind, sink);
}

/// Declares numbers, 0 to begin with, that the threads of a block share.
fn declare_counters(
    name: &str,
    counters: Object,
    kind: MemoryKind,
    symbols: &mut Symbols,
    sink: &mut Sink,
) {
    let kind = SymbolKind::Object(Object {
        ty: Some((Ty::S32, Span::default())),
        space: Space::Shared,
        kind,
        declared: true,
        ..counters
    });
    symbols.declare(name, Span::default(), kind, sink);
}

/// The type of that name as an integer of its bits, and whether it is atomic.
pub fn type_named(name: &str) -> Option<(Ty, bool)> {
    words::type_named(name)
        .or_else(|| floats::named_anywhere(name).map(|format| (floats::word(format), false)))
}

/// The format of the numbers of floating point that a type of that name holds.
pub fn floating_format(name: &str) -> Option<Format> {
    floats::named_anywhere(name)
}

/// Whether 0 and 1 are the only values of a type, or of the objects of a class.
pub fn is_boolean(name: &str) -> bool {
    let argument = name
        .split_once('<')
        .and_then(|(_, rest)| rest.split([',', '>']).next());
    words::is_boolean(argument.unwrap_or(name).trim())
}

/// The meaning of the words in a declaration such as `volatile global atomic_int*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeWords {
    /// The type of the object pointed to.
    pub ty: Option<Ty>,
    /// Whether that object is atomic.
    pub atomic: bool,
    /// Whether 0 and 1 are its only values.
    pub boolean: bool,
    /// It names global memory.
    pub global: bool,
    /// It names local memory.
    pub local: bool,
}

impl TypeWords {
    /// Adds one word to the declaration.
    ///
    /// # Errors
    /// The word does not belong to a declaration; the nearest word that does, if any is near.
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
