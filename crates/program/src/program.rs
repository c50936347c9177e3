//! A program as a whole: its threads, its memory and its machine.

use super::{
    Barrier, Class, CopyPer, Dialect, GroupCopy, GroupSeat, Init, Instr, Layout, LocId, Location,
    LocationKind, Machine, MemoryKind, Place, RegId, Scope, Space, Tag, ThreadId, Ty, host,
};

/// A whole program, the input of every checker.
#[derive(Clone, Debug)]
pub struct Program {
    /// The language it was written in.
    pub dialect: Dialect,
    /// Its threads, in order.
    pub threads: Vec<Thread>,
    /// Its memory.
    pub locations: Vec<Location>,
    /// The machine.
    pub machine: Machine,
    /// The commands and waits of host threads, in programs with a host part. In other programs, all
    /// threads run from the start.
    pub host: Option<Box<host::HostProgram>>,
    /// Assumptions about the code, in words: that a function without a body touches no memory.
    pub assumed: Vec<String>,
    /// The asynchronous copies of work-groups, in code for every launch.
    pub group_copies: Vec<GroupCopy>,
}

/// A kernel instance on a device, with the instances that its threads enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelInstance {
    /// The command of the host that started it; `None` for a thread of the host.
    Enqueued(Option<host::CommandId>),
    /// The number that the test gives, if it has no host program.
    Placed(u32),
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

    /// All instructions, each with its thread and its index there.
    pub fn instrs(&self) -> impl Iterator<Item = (ThreadId, usize, &Instr)> {
        self.thread_ids().flat_map(|t| {
            self.thread(t)
                .code
                .iter()
                .enumerate()
                .map(move |(at, instr)| (t, at, instr))
        })
    }

    /// An access to a tile, if the program has one.
    pub fn tiled(&self) -> Option<&Instr> {
        let mut all = self.instrs().map(|(_, _, instr)| instr);
        all.find(|instr| instr.tile.is_some())
    }

    /// The first access that covers several cells: one of 128 bits, or one to an object that has
    /// smaller accesses elsewhere.
    pub fn of_several_cells(&self) -> Option<&Instr> {
        self.instrs()
            .map(|(_, _, instr)| instr)
            .find(|instr| instr.element.cells > 1 || instr.element.whole)
    }

    /// The first asynchronous operation.
    pub fn asynchronous(&self) -> Option<&Instr> {
        self.instrs()
            .map(|(_, _, instr)| instr)
            .find(|instr| instr.op.has(Tag::Asynchronous))
    }

    /// Whether it has mbarrier objects.
    pub fn has_mbarriers(&self) -> bool {
        self.locations.iter().any(|l| l.kind.has_mbarriers())
    }

    /// The first PTX access or fence (inline assembly) in a program of another language. The models
    /// of that language cannot express it.
    pub fn assembly(&self) -> Option<&Instr> {
        let foreign = !self.dialect.row().proxies;
        self.instrs()
            .map(|(_, _, instr)| instr)
            .find(|instr| foreign && instr.op.is_ptx())
    }

    /// A further virtual address of memory in a program of a language without proxies.
    pub fn alias_in_source(&self) -> Option<&str> {
        let foreign = !self.dialect.row().proxies;
        let mut aliases = self.locations.iter().filter(|_| foreign);
        let alias = aliases.find(|l| matches!(l.kind, LocationKind::Alias { .. }))?;
        Some(&alias.name)
    }

    /// The thread's lane: the number of threads of its warp before it.
    pub fn lane(&self, id: ThreadId) -> u32 {
        self.seat(id, Scope::Warp).rank
    }

    /// The thread's position in its group of that scope.
    pub fn seat(&self, id: ThreadId, group: Scope) -> GroupSeat {
        GroupSeat::among(
            self.threads.iter().map(|t| &t.place),
            usize::from(id.0),
            group,
        )
    }

    /// Whether two threads are in one group of that scope; a thread is in one group with itself.
    pub fn same_group(&self, a: ThreadId, b: ThreadId, group: Scope) -> bool {
        a == b || self.thread(a).place.same(&self.thread(b).place, group)
    }

    /// The lanes of its warp that a mask selects; `None`: all of them.
    pub fn named_by(&self, id: ThreadId, mask: i64) -> Option<u32> {
        let all = self.seat(id, Scope::Warp).all();
        (mask & all != all).then_some((mask & all) as u32)
    }

    /// The threads of its group that a bit set selects.
    pub fn named_among(&self, id: ThreadId, group: Scope, mask: i64) -> Vec<ThreadId> {
        let mates = self
            .thread_ids()
            .filter(|u| self.same_group(id, *u, group))
            .zip(0..i64::BITS);
        mates
            .filter(|(_, rank)| mask >> rank & 1 != 0)
            .map(|(u, _)| u)
            .collect()
    }

    /// Whether a barrier of a thread synchronizes its grid, but the launch is not cooperative.
    pub fn is_uncooperative(&self, thread: ThreadId, barrier: &Barrier) -> bool {
        let place = &self.thread(thread).place;
        let of_grid = barrier.domain == Scope::Grid && barrier.is_collective();
        of_grid && place.launched && !place.cooperative
    }

    /// Whether two threads belong to one kernel instance that the host enqueued, or to its
    /// descendants.
    pub fn same_kernel(&self, a: ThreadId, b: ThreadId) -> bool {
        let (x, y) = (&self.thread(a).place, &self.thread(b).place);
        a == b || x.same_gpu(y) && self.kernel_of(a) == self.kernel_of(b)
    }

    /// The kernel instance of a thread on its device. A search over all commands: for all pairs of
    /// threads, ask it once for each thread.
    pub fn kernel_of(&self, thread: ThreadId) -> KernelInstance {
        match self.host.as_deref() {
            Some(host) => KernelInstance::Enqueued(host.family_of(thread)),
            None => KernelInstance::Placed(self.thread(thread).place.kernel),
        }
    }

    /// Follows aliases to the object whose memory `id` names.
    pub fn object(&self, mut id: LocId) -> LocId {
        while let LocationKind::Alias { of, .. } = self.location(id).kind {
            id = of;
        }
        id
    }

    /// Whether a location is an object in shared memory.
    pub fn is_shared(&self, id: LocId) -> bool {
        matches!(
            self.location(id).kind,
            LocationKind::Object {
                space: Space::Shared,
                ..
            }
        )
    }

    /// The layout of the elements of a location's object.
    pub fn layout(&self, id: LocId) -> &Layout {
        match &self.location(self.object(id)).kind {
            LocationKind::Object { layout, .. } => layout,
            LocationKind::Alias { .. } => unreachable!("Program::object ends at an object"),
        }
    }

    /// Whether a cell of a location's object is an mbarrier object.
    pub fn is_mbarrier(&self, id: LocId, cell: u32) -> bool {
        match &self.location(self.object(id)).kind {
            LocationKind::Object {
                class: Some(Class::Mbarrier),
                ..
            } => true,
            LocationKind::Object { layout, .. } => layout.field(cell).mbarrier,
            LocationKind::Alias { .. } => false,
        }
    }

    /// The type of the elements of a location's object, if they are integers.
    pub fn element(&self, id: LocId) -> Ty {
        self.layout(id).field(0).ty
    }

    /// How many copies an object has.
    pub fn copied(&self, id: LocId) -> CopyPer {
        match &self.location(self.object(id)).kind {
            LocationKind::Object {
                kind: MemoryKind::ProgramScope,
                space: Space::Global,
                ..
            } => CopyPer::ByDevice,
            LocationKind::Object { space, .. } => match space {
                Space::Global | Space::Constant | Space::Param => CopyPer::Not,
                Space::Shared => CopyPer::ByCta,
                Space::Local | Space::Register => CopyPer::ByThread,
            },
            LocationKind::Alias { .. } => CopyPer::Not,
        }
    }
}

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its name; `P0`, `P1`, … by default.
    pub name: String,
    /// Its place in the scope tree.
    pub place: Place,
    /// Its registers.
    pub regs: Vec<Register>,
    /// Its code.
    pub code: Vec<Instr>,
    /// Its source code (C-like dialects), for writing the test as TOML.
    pub source: String,
}

impl Thread {
    /// The register of that name.
    pub fn register(&self, name: &str) -> Option<RegId> {
        self.regs
            .iter()
            .position(|r| r.name == name)
            .map(|i| RegId(i as u16))
    }

    /// Whether it has a branch backwards.
    pub fn has_loop(&self) -> bool {
        self.code
            .iter()
            .enumerate()
            .any(|(at, instr)| instr.op.jumps_back(at))
    }
}

/// One register.
#[derive(Clone, Debug)]
pub struct Register {
    /// Its name as written, without the `%` that the short form omits.
    pub name: String,
    /// The type of the first instruction that writes it; conditions compare it in this type.
    pub ty: Ty,
    /// Its value before the first instruction.
    pub init: Init,
}
