//! Lists the memories: the model that allows all outcomes of each, and the programs that it runs.

use super::memory::clike::language::{self, LanguageRules};
use program::Dialect;

/// A memory of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineMemory {
    /// One store, threads in turns.
    Sc,
    /// PTX's memory consistency model.
    Weak,
    /// OpenCL C with equal scopes.
    OpenCl,
    /// OpenCL C of 3.1, whose scopes need only be wide enough.
    OpenCl31,
    /// CUDA C++ with the release sequences of C++20.
    Cuda,
    /// CUDA C++ with the release sequences of C++17.
    Cuda17,
    /// C11.
    C11,
    /// Repaired C11.
    Rc11,
}

/// The properties of a memory.
#[derive(Debug)]
pub(super) struct MemoryRow {
    memory: MachineMemory,
    /// Its name in recordings.
    pub(super) name: &'static str,
    /// The model that allows all its outcomes.
    model: &'static str,
    /// The rules of its language, if it is the memory of a language.
    pub(super) language: Option<&'static LanguageRules>,
}

const fn row(
    memory: MachineMemory,
    name: &'static str,
    model: &'static str,
    language: Option<&'static LanguageRules>,
) -> MemoryRow {
    MemoryRow {
        memory,
        name,
        model,
        language,
    }
}

pub(super) const MEMORIES: &[MemoryRow] = &[
    row(MachineMemory::Sc, "sc", "sc", None),
    row(MachineMemory::Weak, "weak", "ptx", None),
    row(
        MachineMemory::OpenCl,
        "opencl",
        "opencl",
        Some(&language::OPENCL),
    ),
    row(
        MachineMemory::OpenCl31,
        "opencl-3.1",
        "opencl-3.1",
        Some(&language::OPENCL_3_1),
    ),
    row(MachineMemory::Cuda, "cuda", "cuda", Some(&language::CUDA)),
    row(
        MachineMemory::Cuda17,
        "cuda-17",
        "cuda-17",
        Some(&language::CUDA_17),
    ),
    row(MachineMemory::C11, "c11", "c11", Some(&language::C11)),
    row(MachineMemory::Rc11, "rc11", "rc11", Some(&language::RC11)),
];

impl MachineMemory {
    pub(super) fn row(self) -> &'static MemoryRow {
        MEMORIES
            .iter()
            .find(|row| row.memory == self)
            .expect("every memory has its row")
    }

    /// Its name in recordings.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The shipped model that allows all its outcomes.
    pub fn model(self) -> &'static str {
        self.row().model
    }

    /// The language of the programs that it runs; `None`: any.
    pub(super) fn dialect(self) -> Option<Dialect> {
        Dialect::of_model(self.model())
    }

    /// The memory of that name.
    pub fn named(name: &str) -> Option<MachineMemory> {
        MEMORIES
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.memory)
    }

    /// The memory of a language that a shipped model describes; `None` if there is none.
    pub fn of(dialect: Dialect, model: &str) -> Option<MachineMemory> {
        Dialect::of_model(model).filter(|of| *of == dialect)?;
        MEMORIES
            .iter()
            .find(|row| row.model == model)
            .map(|row| row.memory)
    }

    /// Whether it reports races and other undefined behaviour.
    pub fn knows_races(self) -> bool {
        self.row().language.is_some()
    }

    /// Whether it can bind anything early.
    pub fn binds(self) -> bool {
        self == MachineMemory::Weak || self.row().language.is_some_and(|l| !l.in_order)
    }
}
