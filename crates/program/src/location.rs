//! Named memory: what an object is, where it lives, what is in it at first.

use super::{Layout, LocId, MemoryKind, Proxy, Scope};

/// Who has a copy of an object of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Copied {
    /// Nobody: there is one.
    Not,
    /// Each thread.
    ByThread,
    /// Each CTA.
    ByCta,
    /// Each device.
    ByDevice,
}

/// A value fixed before the program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// An integer.
    Int(i64),
    /// The address of element `index` of a location.
    Address {
        /// The location.
        loc: LocId,
        /// The element.
        index: u32,
    },
    /// Any value: memory that nothing has written (CUDA C++ Programming Guide, __shared__; PTX ISA,
    /// Initializers; OpenCL C, Local Address Space Qualifier). Programs run with 0 in its place,
    /// and no answer may depend on that.
    Unknown,
}

/// A class of the CUDA C++ library, of which an object may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An atomic object.
    Atomic(Scope),
    /// An atomic flag.
    Flag,
    /// A barrier. Its word holds, from the high end, the phase, and 16 bits each of expected and of
    /// missing arrivals.
    Barrier(Scope),
    /// A latch. Its word counts down.
    Latch(Scope),
    /// A semaphore with its largest count. Its word is the count.
    Semaphore(Scope, i64),
    /// An mbarrier object of PTX. Its word is an [`mbarrier`](super::mbarrier) state.
    Mbarrier,
}

/// Where an object lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Global memory: one copy for all.
    Global,
    /// Shared memory (OpenCL local): one copy per CTA.
    Shared,
    /// Constant memory: read-only.
    Constant,
    /// A parameter of the kernel that has an address: read-only, one copy for all.
    Param,
    /// Local or private memory: one copy per thread.
    Local,
    /// The same, of which nothing is in memory: what it holds is in registers, and it has no more
    /// than an address.
    Register,
}

impl Space {
    /// Whether no thread can write there.
    pub fn is_read_only(self) -> bool {
        matches!(self, Space::Constant | Space::Param)
    }

    /// Whether each thread has a copy.
    pub fn is_local(self) -> bool {
        matches!(self, Space::Local | Space::Register)
    }

    /// As in the test format.
    pub fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Constant => "const",
            Space::Param => "param",
            Space::Local | Space::Register => "local",
        }
    }
}

/// What OpenCL declares of an object beyond its [`Space`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenClMemory {
    /// In the region of global memory. An object of a `.litmus` file may be in both regions, or in
    /// none.
    pub global: bool,
    /// In the region of local memory.
    pub local: bool,
    /// Operations on it reach no further than their work-group: local memory, of which each group
    /// has a copy.
    pub capped: bool,
}

/// One named piece of memory, or another name for one.
#[derive(Clone, Debug)]
pub struct Location {
    /// Its name.
    pub name: String,
    /// Further names of the same address.
    pub also: Vec<String>,
    /// Object or alias.
    pub kind: LocationKind,
}

/// What a name in memory stands for.
#[derive(Clone, Debug)]
pub enum LocationKind {
    /// Memory of its own.
    Object {
        /// What an element is made of; an access of another size than a cell's is rejected by the
        /// front end.
        layout: Layout,
        /// One value per cell (a scalar has one).
        init: Vec<Init>,
        /// Which threads see which copy.
        space: Space,
        /// Whether the object was declared atomic (C-like dialects).
        atomic: bool,
        /// What OpenCL says of it; nothing in other dialects.
        opencl: OpenClMemory,
        /// Who allocated it.
        kind: MemoryKind,
        /// The class it is of, if it is of one.
        class: Option<Class>,
    },
    /// Another name for the memory of `of` (which may itself be an alias).
    Alias {
        /// The name it aliases.
        of: LocId,
        /// Through which proxy. `Generic` is a second virtual address; the others are handles bound
        /// to the generic address of `of` (ISCA 2022, mixed-proxy extensions: virtual against
        /// physical aliases).
        proxy: Proxy,
    },
}
