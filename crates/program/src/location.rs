//! Named memory: objects, their state spaces and their initial values.

use super::{Layout, LocId, MemoryKind, Proxy, Scope};

/// How many copies of an object the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyPer {
    /// One copy for all threads.
    Not,
    /// One copy for each thread.
    ByThread,
    /// One copy for each CTA.
    ByCta,
    /// One copy for each device.
    ByDevice,
}

/// An initial value.
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
    /// Initializers; OpenCL C, Local Address Space Qualifier). Programs run with 0 instead, and no
    /// answer may depend on this choice.
    Unknown,
}

/// A class of the CUDA C++ library that an object can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An atomic object.
    Atomic(Scope),
    /// An atomic flag.
    Flag,
    /// A barrier. Its word holds, from the high end: the phase, 16 bits of expected arrivals, and
    /// 16 bits of missing arrivals.
    Barrier(Scope),
    /// A latch. Its word counts down.
    Latch(Scope),
    /// A semaphore with its largest count. Its word is the count.
    Semaphore(Scope, i64),
    /// An mbarrier object of PTX. Its word is an [`mbarrier`](super::mbarrier) state.
    Mbarrier,
}

/// The state space of an object.
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
    /// Local memory whose contents are all in registers; only its address exists.
    Register,
}

impl Space {
    /// Whether no thread can write there.
    pub fn is_read_only(self) -> bool {
        matches!(self, Space::Constant | Space::Param)
    }

    /// Whether its addresses fit 32 bits: a window of the generic space that small (PTX ISA,
    /// *Generic Addressing*). Compilers take the addresses of shared memory and of parameters so.
    pub fn is_narrow(self) -> bool {
        matches!(self, Space::Shared | Space::Param)
    }

    /// Whether each thread has a copy.
    pub fn is_local(self) -> bool {
        matches!(self, Space::Local | Space::Register)
    }

    /// The word in the test format.
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

/// OpenCL's properties of an object beyond its [`Space`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenClMemory {
    /// Whether it is in the region of global memory. An object of a `.litmus` file may be in both
    /// regions, or in neither.
    pub global: bool,
    /// Whether it is in the region of local memory.
    pub local: bool,
    /// Whether the scope of operations on it is limited to their work-group: local memory, of which
    /// each group has a copy.
    pub capped: bool,
}

/// One named piece of memory, or another name for one.
#[derive(Clone, Debug)]
pub struct Location {
    /// Its name.
    pub name: String,
    /// Further names for the same address.
    pub also: Vec<String>,
    /// Object or alias.
    pub kind: LocationKind,
}

/// The meaning of a memory name.
#[derive(Clone, Debug)]
pub enum LocationKind {
    /// An object with its memory.
    Object {
        /// The layout of an element. The front end rejects an access whose size differs from its
        /// cell's.
        layout: Layout,
        /// One value per cell (a scalar has one).
        init: Vec<Init>,
        /// The state space, which decides which threads see which copy.
        space: Space,
        /// Whether the object was declared atomic (C-like dialects).
        atomic: bool,
        /// The OpenCL properties; empty in other dialects.
        opencl: OpenClMemory,
        /// The kind of allocation.
        kind: MemoryKind,
        /// Its library class, if any.
        class: Option<Class>,
    },
    /// Another name for the memory of `of` (which may itself be an alias).
    Alias {
        /// The name it aliases.
        of: LocId,
        /// The proxy of accesses through this name. `Generic` is a second virtual address. The
        /// others are handles bound to the generic address of `of` (ISCA 2022, mixed-proxy
        /// extensions: virtual against physical aliases).
        proxy: Proxy,
    },
}

impl LocationKind {
    /// Whether it is an object that has mbarrier objects.
    pub fn has_mbarriers(&self) -> bool {
        match self {
            LocationKind::Object { class, layout, .. } => {
                *class == Some(Class::Mbarrier) || layout.has_mbarriers()
            }
            LocationKind::Alias { .. } => false,
        }
    }
}
