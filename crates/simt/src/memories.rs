//! The memories that there are: whose outcomes each stays inside of, and which programs it runs.

use super::memory::clike::may_bind;
use program::Dialect;

/// Which memory.
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

/// By memory: its name in recordings, the model that its outcomes are inside of, and the language of the programs that
/// it runs, if it does not run all.
pub(super) const MEMORIES: &[(MachineMemory, &str, &str, Option<Dialect>)] = &[
    (MachineMemory::Sc, "sc", "sc", None),
    (MachineMemory::Weak, "weak", "ptx", Some(Dialect::Ptx)),
    (MachineMemory::OpenCl, "opencl", "opencl", Some(Dialect::OpenCl)),
    (MachineMemory::OpenCl31, "opencl-3.1", "opencl-3.1", Some(Dialect::OpenCl)),
    (MachineMemory::Cuda, "cuda", "cuda", Some(Dialect::Cuda)),
    (MachineMemory::Cuda17, "cuda-17", "cuda-17", Some(Dialect::Cuda)),
    (MachineMemory::C11, "c11", "c11", Some(Dialect::C)),
    (MachineMemory::Rc11, "rc11", "rc11", Some(Dialect::C)),
];

impl MachineMemory {
    pub(super) fn row(self) -> &'static (MachineMemory, &'static str, &'static str, Option<Dialect>) {
        MEMORIES.iter().find(|row| row.0 == self).expect("every memory has its row")
    }

    /// As recordings name it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The shipped model whose outcomes it stays inside of.
    pub fn model(self) -> &'static str {
        self.row().2
    }

    /// The memory of that name.
    pub fn named(name: &str) -> Option<MachineMemory> {
        MEMORIES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The memory of a language that a shipped model describes; `None` if there is none.
    pub fn of(dialect: Dialect, model: &str) -> Option<MachineMemory> {
        MEMORIES.iter().find(|row| row.2 == model && row.3 == Some(dialect)).map(|row| row.0)
    }

    /// Whether it reports races and other undefined behaviour.
    pub fn knows_races(self) -> bool {
        !matches!(self, MachineMemory::Sc | MachineMemory::Weak)
    }

    /// Whether it may bind anything early.
    pub fn binds(self) -> bool {
        self == MachineMemory::Weak || may_bind(self)
    }
}
