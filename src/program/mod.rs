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

use std::fmt;

use crate::diag::Span;

pub mod edits;
pub mod host;
pub mod isa;
mod live;
mod machine;
pub mod mapping;
mod ndrange;
pub mod progress;
pub mod tags;
mod value;
pub mod waiting;

pub use live::live_registers;
pub use machine::{ATTRIBUTES, Machine, MemoryKind, SVM_ATOMICS};
pub use ndrange::{Item, NdRange, RangeError, SubGroups};
pub use tags::Tags;
pub use value::{BinOp, CmpOp, Ty};

/// Index of a thread, in the order of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u16);

/// Index of a register within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegId(pub u16);

/// Index into [`Program::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocId(pub u16);

/// The language in which a test is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// NVIDIA PTX assembly.
    Ptx,
    /// CUDA C++ with `cuda::atomic_ref` and friends.
    Cuda,
    /// OpenCL C atomics.
    OpenCl,
    /// SPIR-V/Vulkan in the notation of the published suite.
    Vulkan,
    /// C11 atomics.
    C,
}

impl Dialect {
    /// The spelling used in test files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Ptx => "ptx",
            Dialect::Cuda => "cuda",
            Dialect::OpenCl => "opencl",
            Dialect::Vulkan => "vulkan",
            Dialect::C => "c",
        }
    }

    /// The model that judges a test of this dialect when nobody names one.
    pub fn default_model(self) -> &'static str {
        match self {
            Dialect::Ptx => "ptx",
            Dialect::Cuda => "cuda",
            Dialect::OpenCl => "opencl",
            Dialect::Vulkan => "vulkan",
            Dialect::C => "c11",
        }
    }
}

/// How far an operation or a barrier reaches, from the narrowest to the widest.
///
/// PTX words first; OpenCL's work-group is [`Scope::Cta`], its device [`Scope::Gpu`], its sub-group [`Scope::Warp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The thread itself (OpenCL work-item).
    Thread,
    /// Warp or sub-group.
    Warp,
    /// Cooperative thread array, block, work-group.
    Cta,
    /// Thread block cluster.
    Cluster,
    /// Vulkan queue family.
    QueueFamily,
    /// One GPU, device.
    Gpu,
    /// All devices and the host.
    Sys,
}

/// Where a thread runs: its group's number at each level of the scope tree.
///
/// `cta` numbers are relative to their GPU, `warp` numbers to their CTA.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// GPU or device number. A host thread has a device of its own.
    pub gpu: u32,
    /// Vulkan queue family, else 0.
    pub queue_family: u32,
    /// Cluster number relative to the GPU; `None`: the CTA is a cluster of its own.
    pub cluster: Option<u32>,
    /// CTA or work-group number.
    pub cta: u32,
    /// Warp or sub-group number; `None`: the thread is alone in it.
    pub warp: Option<u32>,
    /// Memory synchronization domain of the kernel it belongs to: kernels of different domains share no scope below `Sys`
    /// (CUDA Programming Guide, *Memory Synchronization Domains*).
    pub domain: u32,
    /// OpenCL: the kernel instance that it belongs to, where no host program says so. Groups of different ones are apart.
    pub kernel: u32,
    /// A host thread: every scope below `Sys` holds it alone (`specs`: PTX ISA, Scope; host atomics are system-wide).
    pub host: bool,
    /// Of a cooperative launch: it fails unless all its blocks are resident at once.
    pub cooperative: bool,
}

impl Place {
    /// A device thread at (`gpu`, `cta`).
    pub fn device(gpu: u32, cta: u32) -> Place {
        Place {
            gpu,
            queue_family: 0,
            cluster: None,
            cta,
            warp: None,
            domain: 0,
            kernel: 0,
            host: false,
            cooperative: false,
        }
    }

    /// Whether both are on one GPU, whatever the domains of their kernels.
    pub fn same_gpu(&self, other: &Place) -> bool {
        !self.host && !other.host && self.gpu == other.gpu
    }

    /// Whether two *different* threads at these places are in one group of the given scope.
    pub fn same(&self, other: &Place, scope: Scope) -> bool {
        if scope == Scope::Sys {
            return true;
        }
        if scope == Scope::Thread || !self.same_gpu(other) || self.domain != other.domain {
            return false;
        }
        if scope == Scope::Gpu {
            return true;
        }
        if self.kernel != other.kernel {
            return false;
        }
        if self.queue_family != other.queue_family {
            return false;
        }
        if scope == Scope::QueueFamily {
            return true;
        }
        let same_cta = self.cta == other.cta;
        match scope {
            Scope::Cluster => same_cta || (self.cluster.is_some() && self.cluster == other.cluster),
            Scope::Cta => same_cta,
            _ => same_cta && self.warp.is_some() && self.warp == other.warp,
        }
    }
}

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

    /// The thread's lane: how many threads of its warp come before it.
    pub fn lane(&self, id: ThreadId) -> u32 {
        let place = &self.thread(id).place;
        let before = self.thread_ids().take_while(|t| *t != id);
        before.filter(|t| self.thread(*t).place.same(place, Scope::Warp)).count() as u32
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
    /// Local or private memory: one copy per thread.
    Local,
}

impl Space {
    /// As in the test format.
    pub fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Constant => "const",
            Space::Local => "local",
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
        /// The type of an element; an access of another size is rejected by the front end.
        ty: Ty,
        /// One value per element (a scalar has one).
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

/// The access path to memory (PTX ISA, Memory Consistency Model, Proxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proxy {
    /// Ordinary loads, stores and atomics.
    Generic,
    /// Surface instructions.
    Surface,
    /// Texture instructions.
    Texture,
    /// Constant loads.
    Constant,
}

/// A micro-op with its place in the source.
#[derive(Clone, Debug)]
pub struct Instr {
    /// What it does.
    pub op: Op,
    /// The instruction in the test's source file.
    pub span: Span,
    /// Its 1-based line in the test's source file.
    pub line: u32,
    /// The instruction as written, on one line.
    pub text: String,
}

/// Micro-ops.
#[derive(Clone, Debug)]
pub enum Op {
    /// `dst = [addr]`
    Load {
        /// Receives the value.
        dst: RegId,
        /// Address.
        addr: Expr,
        /// Order, scope, proxy, type.
        access: Access,
    },
    /// `[addr] = value`
    Store {
        /// Address.
        addr: Expr,
        /// Value.
        value: Expr,
        /// Order, scope, proxy, type.
        access: Access,
    },
    /// `dst = [addr]; [addr] = update(dst)` in one step.
    Rmw {
        /// Receives the old value; `None` for a reduction or a discarded result.
        dst: Option<RegId>,
        /// Address.
        addr: Expr,
        /// The new value.
        update: Update,
        /// Order, scope, proxy, type of the read half.
        read: Access,
        /// Of the write half.
        write: Access,
    },
    /// A memory fence or a proxy fence. Never waits.
    Fence {
        /// Order, proxy, flags.
        tags: Tags,
        /// `None` for fences without one (proxy fences).
        scope: Option<Scope>,
    },
    /// A barrier: waits for other threads.
    Barrier(Barrier),
    /// `dst` = 1 if a library function fails here without a reason, else 0: a free choice of the execution.
    Spurious {
        /// Receives the choice.
        dst: RegId,
    },
    /// A call of the runtime by a host thread: a point between its accesses.
    Call(host::CallId),
    /// A thread of a kernel enqueues a command (OpenCL, `enqueue_kernel`): a point between its accesses.
    Enqueue(host::CommandId),
    /// `dst` = 0 if an event is complete, else 1: any of the two, as far as memory is concerned. Orders nothing.
    Status {
        /// Receives the status.
        dst: RegId,
        /// The event.
        of: host::Ref,
    },
    /// `dst = value`
    Assign {
        /// Receives the value.
        dst: RegId,
        /// Value.
        value: Expr,
    },
    /// `if (cond != 0) goto target`; an unconditional jump has a non-zero constant.
    Branch {
        /// Condition.
        cond: Expr,
        /// Index into the thread's code.
        target: usize,
    },
}

impl Op {
    /// Whether it makes events.
    pub fn is_visible(&self) -> bool {
        !matches!(
            self,
            Op::Assign { .. }
                | Op::Branch { .. }
                | Op::Spurious { .. }
                | Op::Call(_)
                | Op::Enqueue(_)
                | Op::Status { .. }
        )
    }
}

/// What a memory access carries besides address and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Order, proxy, … as seen by models.
    pub tags: Tags,
    /// The operation's scope, `None` for weak (non-atomic) accesses.
    pub scope: Option<Scope>,
    /// Size and signedness.
    pub ty: Ty,
}

/// What an RMW writes, given the value it read.
#[derive(Clone, Debug)]
pub enum Update {
    /// The operand, whatever was read.
    Exchange(Expr),
    /// `old op operand`.
    Apply(BinOp, Expr),
    /// `new` if the old value equals `expected`, else nothing
    /// (or the old value, under the option `failed-cas = write`).
    CompareExchange {
        /// Compared with the value read.
        expected: Expr,
        /// Written on success.
        new: Expr,
    },
    /// `new` if `cond` is not 0, else nothing. Both may read the operation's `dst`, which holds the value read by then.
    When {
        /// Whether it writes.
        cond: Expr,
        /// Written in that case.
        new: Expr,
    },
}

/// A barrier instruction.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// Arrive, wait, or both.
    pub action: BarrierAction,
    /// Which threads it can bring together: those in one group of this scope.
    pub domain: Scope,
    /// The lanes that it can bring together, where it is one of a warp that names them; `None`: all threads of the group.
    pub lanes: Option<u32>,
    /// Which barrier it is, and how many it waits for.
    pub naming: BarrierNaming,
    /// Tags of the arrival event.
    pub arrive: Tags,
    /// Tags of the wait event.
    pub wait: Tags,
    /// Scope of both events as models see it; PTX's CTA barriers have none.
    pub scope: Option<Scope>,
}

/// What a barrier instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierAction {
    /// Arrives, then waits for the phase to complete.
    Sync,
    /// Arrives without waiting.
    Arrive,
    /// Waits for the phase in which this thread arrived last.
    Wait,
}

/// How barrier instructions find each other.
#[derive(Clone, Debug)]
pub enum BarrierNaming {
    /// PTX's counted, resetting barriers (PTX ISA, `bar`/`barrier`).
    Counted {
        /// Barrier resource, 0..=15.
        id: Expr,
        /// Threads that make up a phase; `None`: all threads of the domain that have not exited.
        count: Option<Expr>,
    },
    /// The published suites' barriers, paired by a static instance number.
    Instance {
        /// Static number; equal numbers belong together.
        instance: i64,
        /// Run-time identifier; must be equal too.
        id: Option<Expr>,
        /// Number of threads expected; `None`: every matching barrier of the unrolled program.
        quorum: Option<Expr>,
    },
}

/// Side-effect-free expressions over registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// An integer.
    Const(i64),
    /// A register's current value.
    Reg(RegId),
    /// The address of a location (of the copy that the executing thread sees).
    Address(LocId),
    /// An operation, carried out in the given type.
    Bin(BinOp, Ty, Box<Expr>, Box<Expr>),
    /// 1 if the comparison holds in the given type, else 0.
    Cmp(CmpOp, Ty, Box<Expr>, Box<Expr>),
    /// `if cond != 0 then a else b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion to a type.
    Cast(Ty, Box<Expr>),
}

impl Expr {
    /// Calls `f` for every register the expression reads.
    pub fn registers(&self, f: &mut impl FnMut(RegId)) {
        match self {
            Expr::Const(_) | Expr::Address(_) => {}
            Expr::Reg(r) => f(*r),
            Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => {
                a.registers(f);
                b.registers(f);
            }
            Expr::Select(c, a, b) => {
                c.registers(f);
                a.registers(f);
                b.registers(f);
            }
            Expr::Cast(_, a) => a.registers(f),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
