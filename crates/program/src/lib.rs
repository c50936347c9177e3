//! The program IR: threads of micro-ops at places in a scope tree, over named memory.
//!
//! Micro-ops are the whole contract between the dialects (PTX, OpenCL C, CUDA C++, the `.litmus` files) and their
//! two consumers, the skeleton and the executor. A dialect's instruction is lowered to micro-ops in one place.
//!
//! # Invariants
//! - Everything is resolved: registers, locations and branch targets are indices, valid in their tables.
//! - A branch target is in `0..=code.len()`; `code.len()` is the end of the thread.
//! - What a model may see of an instruction (order, scope, proxy) is a [`Tags`] entry from [`tags::TAGS`].
//! - Values are `i64`. A value of type [`Ty`] is kept wrapped to that type by [`Ty::wrap`].

pub mod dialect;
pub mod edits;
mod event;
mod float;
pub mod host;
mod instr;
mod layout;
pub mod litmus;
mod live;
mod machine;
pub mod mbarrier;
pub mod memory;
mod ndrange;
pub mod options;
mod parts;
mod place;
pub mod points;
pub mod progress;
pub mod proxy;
pub mod strength;
pub mod tags;
mod ty;
pub mod unknown;
mod value;
pub mod waiting;
pub mod words;
pub mod writing;

pub use diag::SourceLine;
pub use dialect::{Dialect, DialectRow};
pub use event::{EVENT_SETS, EventKind, KINDS, KindRow};
pub use float::{FloatOp, Format, Fused, Number, Rounding};
pub use instr::{
    Access, Barrier, BarrierAction, BarrierNaming, Element, Expr, Instr, Mark, Op, Update, is_further, is_of_word,
};
pub use layout::{Field, Layout};
pub use live::live_registers;
pub use machine::{ATTRIBUTES, Machine, MemoryKind, SVM_ATOMICS};
pub use ndrange::{Item, NdRange, RangeError, SubGroups};
pub use parts::Parts;
pub use place::{Place, Scope, Seat};
pub use proxy::Proxy;
pub use tags::Tags;
pub use ty::Ty;
pub use value::{BinOp, CmpOp};

/// Index of a thread, in the order of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u16);

/// Index of a register within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegId(pub u16);

/// Index into [`Program::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocId(pub u16);

/// A whole program: what every checker runs.
#[derive(Clone, Debug)]
pub struct Program {
    /// The language it was written in.
    pub dialect: Dialect,
    /// Its threads, in order.
    pub threads: Vec<Thread>,
    /// Its memory.
    pub locations: Vec<Location>,
    /// The machine it runs on.
    pub machine: Machine,
    /// What host threads enqueue and wait for, in programs that have such; else all threads run from the start.
    pub host: Option<Box<host::HostProgram>>,
}

impl Program {
    /// The thread with that index.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.0 as usize]
    }

    /// The location with that index.
    pub fn location(&self, id: LocId) -> &Location {
        &self.locations[id.0 as usize]
    }

    /// Thread indices in order.
    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads.len() as u16).map(ThreadId)
    }

    /// All instructions, each with its thread and its place there.
    pub fn instrs(&self) -> impl Iterator<Item = (ThreadId, usize, &Instr)> {
        let of = |t: ThreadId| self.thread(t).code.iter().enumerate().map(move |(at, instr)| (t, at, instr));
        self.thread_ids().flat_map(of)
    }

    /// The first access of several cells: one to an object that is accessed in smaller pieces elsewhere, or of 128 bits.
    pub fn of_several_cells(&self) -> Option<&Instr> {
        self.instrs().map(|(_, _, instr)| instr).find(|instr| instr.element.cells > 1 || instr.element.whole)
    }

    /// The first asynchronous operation.
    pub fn asynchronous(&self) -> Option<&Instr> {
        self.instrs().map(|(_, _, instr)| instr).find(|instr| instr.op.has("ASY"))
    }

    /// Whether it has mbarrier objects.
    pub fn has_mbarriers(&self) -> bool {
        let of = |l: &Location| match &l.kind {
            LocationKind::Object { class, layout, .. } => {
                *class == Some(Class::Mbarrier) || layout.has_mbarriers()
            }
            LocationKind::Alias { .. } => false,
        };
        self.locations.iter().any(of)
    }

    /// The first access or fence in assembly: one of PTX, in a program of another language. Its models have no words for it.
    pub fn assembly(&self) -> Option<&Instr> {
        let foreign = !self.dialect.row().proxies;
        self.instrs().map(|(_, _, instr)| instr).find(|instr| foreign && instr.op.is_ptx())
    }

    /// The thread's lane: how many threads of its warp come before it.
    pub fn lane(&self, id: ThreadId) -> u32 {
        self.seat(id, Scope::Warp).rank
    }

    /// The thread's seat in its group of that scope.
    pub fn seat(&self, id: ThreadId, group: Scope) -> Seat {
        Seat::among(self.threads.iter().map(|t| &t.place), usize::from(id.0), group)
    }

    /// The lanes of its warp that a mask names; `None`: all of them.
    pub fn named_by(&self, id: ThreadId, mask: i64) -> Option<u32> {
        let all = self.seat(id, Scope::Warp).all();
        (mask & all != all).then_some((mask & all) as u32)
    }

    /// The threads of its group that a set of bits names.
    pub fn named_among(&self, id: ThreadId, group: Scope, mask: i64) -> Vec<ThreadId> {
        let place = &self.thread(id).place;
        let mates = self.thread_ids().filter(|u| self.thread(*u).place.same(place, group)).zip(0..i64::BITS);
        mates.filter(|(_, rank)| mask >> rank & 1 != 0).map(|(u, _)| u).collect()
    }

    /// Whether two threads belong to one kernel instance that the host enqueued, or to descendants of it.
    pub fn same_kernel(&self, a: ThreadId, b: ThreadId) -> bool {
        let (x, y) = (&self.thread(a).place, &self.thread(b).place);
        match self.host.as_deref() {
            _ if a == b => true,
            _ if !x.same_gpu(y) => false,
            Some(host) => host.family_of(a) == host.family_of(b),
            None => x.kernel == y.kernel,
        }
    }

    /// Follows aliases to the object whose memory `id` names.
    pub fn object(&self, mut id: LocId) -> LocId {
        while let LocationKind::Alias { of, .. } = self.location(id).kind {
            id = of;
        }
        id
    }

    /// What the elements of a location's object are made of.
    pub fn layout(&self, id: LocId) -> &Layout {
        match &self.location(self.object(id)).kind {
            LocationKind::Object { layout, .. } => layout,
            LocationKind::Alias { .. } => unreachable!("Program::object ends at an object"),
        }
    }

    /// Whether a cell of a location's object is an mbarrier object.
    pub fn is_mbarrier(&self, id: LocId, cell: u32) -> bool {
        match &self.location(self.object(id)).kind {
            LocationKind::Object { class: Some(Class::Mbarrier), .. } => true,
            LocationKind::Object { layout, .. } => layout.field(cell).mbarrier,
            LocationKind::Alias { .. } => false,
        }
    }

    /// The type of the elements of a location's object, where they are integers.
    pub fn element(&self, id: LocId) -> Ty {
        self.layout(id).field(0).ty
    }

    /// Of what an object has copies.
    pub fn copied(&self, id: LocId) -> Copied {
        match &self.location(self.object(id)).kind {
            LocationKind::Object { kind: MemoryKind::ProgramScope, space: Space::Global, .. } => Copied::ByDevice,
            LocationKind::Object { space, .. } => match space {
                Space::Global | Space::Constant | Space::Param => Copied::Not,
                Space::Shared => Copied::ByCta,
                Space::Local | Space::Register => Copied::ByThread,
            },
            LocationKind::Alias { .. } => Copied::Not,
        }
    }
}

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

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its name, `P0`, `P1`, … unless the test says otherwise.
    pub name: String,
    /// Where it runs.
    pub place: Place,
    /// Its registers.
    pub regs: Vec<Register>,
    /// Its code.
    pub code: Vec<Instr>,
    /// Its code as written (C-like dialects), for writing the test as TOML.
    pub source: String,
}

impl Thread {
    /// The register of that name.
    pub fn register(&self, name: &str) -> Option<RegId> {
        self.regs.iter().position(|r| r.name == name).map(|i| RegId(i as u16))
    }

    /// Whether it has a branch backwards.
    pub fn has_loop(&self) -> bool {
        self.code.iter().enumerate().any(|(at, instr)| instr.op.jumps_back(at))
    }
}

/// One register.
#[derive(Clone, Debug)]
pub struct Register {
    /// Its name as written, without a `%` that the short form does not have.
    pub name: String,
    /// The type of the first instruction that writes it; decides how conditions compare it.
    pub ty: Ty,
    /// Its value before the first instruction.
    pub init: Init,
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
}

/// A class of the CUDA C++ library, of which an object may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An atomic object.
    Atomic(Scope),
    /// An atomic flag.
    Flag,
    /// A barrier. Its word holds, from the high end, the phase, and 16 bits each of expected and of missing arrivals.
    Barrier(Scope),
    /// A latch. Its word counts down.
    Latch(Scope),
    /// A semaphore with its largest count. Its word is the count.
    Semaphore(Scope, i64),
    /// An mbarrier object of PTX. Its word is an [`mbarrier`] state.
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
    /// The same, of which nothing is in memory: what it holds is in registers, and it has no more than an address.
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
    /// In the region of global memory. An object of a `.litmus` file may be in both regions, or in none.
    pub global: bool,
    /// In the region of local memory.
    pub local: bool,
    /// Operations on it reach no further than their work-group: local memory, of which each group has a copy.
    pub capped: bool,
}

/// One named piece of memory, or another name for one.
#[derive(Clone, Debug)]
pub struct Location {
    /// Its name.
    pub name: String,
    /// Object or alias.
    pub kind: LocationKind,
}

/// What a name in memory stands for.
#[derive(Clone, Debug)]
pub enum LocationKind {
    /// Memory of its own.
    Object {
        /// What an element is made of; an access of another size than a cell's is rejected by the front end.
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
        /// Through which proxy. `Generic` is a second virtual address; the others are handles bound to the
        /// generic address of `of` (ISCA 2022, mixed-proxy extensions: virtual against physical aliases).
        proxy: Proxy,
    },
}
