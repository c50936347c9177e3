//! A program ready to run: expressions without names, and operations with the attributes that the
//! machine needs. `prepare` builds it.
//!
//! # Invariants
//! - Every address of the program is a number. [`program::memory::Memory`] maps numbers to memory,
//!   so that values mean the same here as in the checkers. The executor uses no other part of the
//!   skeleton.

use std::collections::HashMap;
use std::sync::Arc;

use super::agents::{Agent, Await, Group};
use super::groups::Groups;
use program::host::{CommandId, CommandOrigin};
use program::litmus::Observable;
use program::memory::{Cell, CellId, Memory};
use program::{
    Expr, MemoryKind, Op, OpenClMemory, Program, Proxy, Scope, SourceLine, Space, ThreadId, Ty,
    Update,
};

/// The attributes of an access, except its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) ty: Ty,
    /// Relaxed, acquire or release: strong in PTX's sense.
    pub(super) strong: bool,
    pub(super) scope: Scope,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) proxy: Proxy,
    /// A read of a tensor map, which goes through a separate proxy.
    pub(super) map: bool,
    /// Half of a reduction, whose read never acquires.
    pub(super) red: bool,
    /// Declared atomic by its function (C-like languages).
    pub(super) atomic: bool,
    /// Half of a read-modify-write.
    pub(super) updates: bool,
    /// Its effect on an mbarrier object, if it is an operation on one.
    pub(super) object: Option<OnObject>,
    /// Sequentially consistent (C-like languages).
    pub(super) sc: bool,
    pub(super) consume: bool,
    /// The order of a failed compare-exchange, where that differs.
    pub(super) failure: Option<FailureOrder>,
    /// Which cell of its operation it accesses, and how many cells there are.
    pub(super) part: (u8, u8),
}

/// The effect of an operation on an mbarrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnObject {
    Init,
    Arrive,
    /// Observes that a phase is complete.
    Wait,
    /// Reports that an asynchronous operation is complete.
    Complete,
    /// Another change, or a test without waiting.
    Other,
}

/// The order of a compare-exchange that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureOrder {
    Relaxed,
    Acquire,
    SeqCst,
}

/// OpenCL's regions of memory, as a set: number 0 is global memory, number 1 local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Regions(u8);

impl Regions {
    pub(super) fn of(global: bool, local: bool) -> Regions {
        Regions(u8::from(global) | u8::from(local) << 1)
    }

    pub(super) fn one(region: usize) -> Regions {
        Regions(1 << region)
    }

    pub(super) fn has(self, region: usize) -> bool {
        self.0 >> region & 1 != 0
    }
}

/// The memory that a `fence.proxy.async` covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FenceMemory {
    All,
    Global,
    /// Shared memory of the executing thread's CTA or cluster.
    Shared(Scope),
}

/// The accesses between which a `fence.proxy.async` stands, by the option `async-fence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FenceReach {
    /// All between which it is on the way.
    Path,
    /// Those of the async proxy in its CTA, with all on the way.
    Cta,
    /// Generic ones of its thread, with all on the way.
    Thread,
    /// Those of its thread.
    Letter,
}

/// A fence: of threads, of proxies or of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// A thread fence.
    Thread {
        acquire: bool,
        release: bool,
        sc: bool,
        scope: Scope,
        /// OpenCL: the regions that its flags name.
        regions: Regions,
        /// OpenCL: in local memory it reaches only its work-group.
        capped: bool,
        /// CUDA: not a fence, but a library call whose precondition does not hold.
        misuse: bool,
    },
    /// `fence.mbarrier_init`.
    Inits,
    /// `fence.proxy.alias`.
    Alias,
    /// `fence.proxy` of a proxy.
    Proxy(Proxy),
    /// `fence.proxy.async`, for all memory or part of it.
    Async(FenceMemory),
    /// A half of a fence of aliases, or of the async proxy for part of memory.
    Half {
        /// Whether this half acquires; otherwise it releases.
        acquire: bool,
        scope: Scope,
        /// The memory, for the async proxy; `None`: the half is of a fence of aliases.
        part: Option<FenceMemory>,
        /// Whether this half releases only the reads of its thread.
        of_reads: bool,
    },
    /// A half of `fence.proxy.tensormap`.
    Map {
        /// Whether this half acquires, for one map; otherwise it releases.
        acquire: bool,
        scope: Scope,
        /// The address of that map, once known.
        va: Option<u16>,
    },
    /// Makes a group of the asynchronous operations so far.
    Commit(Group),
    /// A wait for groups.
    Await(Await),
    /// `wgmma.fence`.
    Matrices,
    /// `griddepcontrol.launch_dependents`.
    Trigger,
    /// `griddepcontrol.wait`.
    GridWait,
}

impl Fence {
    /// The fences that it performs, in order. A half of aliases or of the async proxy performs its
    /// whole fence and a fence of all memory. That orders more than one half has to; but halves do
    /// their work in pairs.
    pub(super) fn in_turn(self) -> impl Iterator<Item = Fence> {
        let (first, second) = match self {
            Fence::Half {
                acquire,
                scope,
                part,
                ..
            } => {
                let whole = part.map_or(Fence::Alias, Fence::Async);
                let memory = Fence::of_memory(acquire, scope);
                if acquire {
                    (memory, Some(whole))
                } else {
                    (whole, Some(memory))
                }
            }
            Fence::Map { acquire, scope, .. } => {
                let memory = Fence::of_memory(acquire, scope);
                if acquire {
                    (memory, Some(self))
                } else {
                    (self, Some(memory))
                }
            }
            whole => (whole, None),
        };
        std::iter::once(first).chain(second)
    }

    /// A fence in one direction.
    pub(super) fn of_memory(acquire: bool, scope: Scope) -> Fence {
        Fence::Thread {
            acquire,
            release: !acquire,
            sc: false,
            scope,
            regions: Regions::of(false, false),
            capped: false,
            misuse: false,
        }
    }
}

/// One micro-op, ready to run: addresses are numbers.
pub(super) type Act = Op<Access, Fence>;

/// One thread's code.
#[derive(Clone, Debug)]
pub(super) struct ThreadCode {
    pub(super) acts: Vec<Act>,
    pub(super) start: Vec<i64>,
    /// Registers that matter at each instruction and at the end.
    pub(super) live: Vec<Vec<bool>>,
    /// Registers that the code after an instruction reads, apart from those observed at the end.
    pub(super) used: Vec<Vec<bool>>,
    /// Locations that the code from an instruction on may access, as a bit set.
    pub(super) reach: Vec<u128>,
    /// By instruction: whether a division in it may have no meaning.
    pub(super) divides: Vec<bool>,
    /// Whether it has a backward branch.
    pub(super) loops: bool,
}

/// The target of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessPlace {
    /// Physical location, an index of [`Code::locations`].
    pub(super) loc: usize,
    /// Virtual address, as a cell number.
    pub(super) va: u16,
}

/// One physical location.
#[derive(Clone, Debug)]
pub(super) struct PhysicalLocation {
    pub(super) cell: CellId,
    pub(super) init: i64,
    /// Whether its object was declared atomic (C-like languages).
    pub(super) atomic: bool,
    pub(super) opencl: OpenClMemory,
    /// The allocator of its memory.
    pub(super) kind: MemoryKind,
}

/// A test, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) program: Arc<Program>,
    pub(super) memory: Memory,
    pub(super) threads: Vec<ThreadCode>,
    pub(super) locations: Vec<PhysicalLocation>,
    /// By cell: its location.
    pub(super) loc_of: Vec<usize>,
    pub(super) observed: Vec<Observable>,
    /// Whether the test has a filter: then its outcomes decide which runs count.
    pub(super) filtered: bool,
    pub(super) groups: Groups,
    /// By thread: the first thread of its CTA.
    pub(super) cta: Vec<usize>,
    /// By thread: the first thread that runs the same code of the test.
    pub(super) kin: Vec<usize>,
    /// By thread: its lane.
    pub(super) lanes: Vec<u32>,
    /// Whether lanes hand each other values somewhere.
    pub(super) has_meetings: bool,
    /// No alias, no proxy but the generic one.
    pub(super) plain: bool,
    /// Some access goes through a proxy other than the generic one.
    pub(super) proxies: bool,
    /// Whether kernel calls hand knowledge over: they are CUDA launches, or all shared memory is
    /// fine-grained.
    pub(super) calls_hand_over: bool,
    /// Whether some operation accesses several cells at once.
    pub(super) several: bool,
    /// Whether any thread has a backward branch.
    pub(super) loops: bool,
    /// Whether some thread has a branch: then the effect of a barrier depends on values read.
    pub(super) branches: bool,
    /// Whether some barrier has a thread count: then the participants of a phase depend on the
    /// order of arrival.
    pub(super) counts: bool,
    /// The agents of asynchronous operations: the last threads, in this order.
    pub(super) agents: Vec<Agent>,
    /// By command of a host program: its threads, and the commands that they enqueue.
    pub(super) commands: Vec<CommandCode>,
    /// A `fence.proxy.async` covers only accesses of its CTA.
    pub(super) local_fences: bool,
    /// The accesses between which a `fence.proxy.async` prevents a race.
    pub(super) fence_reach: FenceReach,
    /// A wait for the reads of copies brings no fence of the async proxy.
    pub(super) strict_read_wait: bool,
    /// Two writes of the same value do not race.
    pub(super) same_value: bool,
    /// A read of several cells takes all cells that one write wrote, or none of them.
    pub(super) untorn: bool,
}

/// A command of a host program.
#[derive(Clone, Debug)]
pub(super) struct CommandCode {
    /// By work-group: its threads, and the agents that these begin.
    pub(super) groups: Vec<Vec<usize>>,
    /// The commands that its threads enqueue.
    pub(super) children: Vec<CommandId>,
}

impl CommandCode {
    /// All commands of a program, in order.
    pub(super) fn of(program: &Program, agents: &[Agent]) -> Vec<CommandCode> {
        let Some(host) = program.host.as_deref() else {
            return Vec::new();
        };
        let mut begun: HashMap<usize, Vec<usize>> = HashMap::new();
        let own = program.threads.len() - agents.len();
        for (thread, agent) in (own..).zip(agents) {
            begun.entry(agent.owner).or_default().push(thread);
        }
        let mut all: Vec<CommandCode> = host
            .command_ids()
            .map(|id| {
                let command = host.command(id);
                let mut groups = vec![Vec::new(); command.group_count() as usize];
                for (thread, group) in command.threads.iter().zip(&command.groups) {
                    let thread = usize::from(thread.0);
                    groups[*group as usize].push(thread);
                    groups[*group as usize].extend(begun.get(&thread).into_iter().flatten());
                }
                CommandCode {
                    groups,
                    children: Vec::new(),
                }
            })
            .collect();
        for id in host.command_ids() {
            if let CommandOrigin::Device { parent, .. } = host.command(id).origin {
                all[usize::from(parent.0)].children.push(id);
            }
        }
        all
    }
}

impl Code {
    /// The number of the test's threads; the others are agents.
    pub(super) fn own_threads(&self) -> usize {
        self.threads.len() - self.agents.len()
    }

    /// The agent that a thread is; `None`: it is a thread of the test.
    pub(super) fn agent(&self, thread: usize) -> Option<&Agent> {
        self.agents.get(thread.checked_sub(self.own_threads())?)
    }

    /// All agents, with their thread numbers.
    pub(super) fn all_agents(&self) -> impl Iterator<Item = (usize, &Agent)> {
        (self.own_threads()..).zip(&self.agents)
    }

    /// The agents that an instruction of a thread begins.
    pub(super) fn begins(&self, thread: usize, pc: usize) -> impl Iterator<Item = (usize, &Agent)> {
        self.all_agents()
            .filter(move |(_, a)| a.owner == thread && a.instr.start == pc)
    }

    /// Whether a location belongs to a part of memory, as a thread sees it.
    pub(super) fn is_in(&self, loc: usize, part: FenceMemory, thread: usize) -> bool {
        let cell = self.cell_of(loc);
        match part {
            FenceMemory::All => true,
            FenceMemory::Global => cell.space == Space::Global,
            FenceMemory::Shared(scope) => {
                cell.space == Space::Shared
                    && cell.owner.is_some_and(|u| {
                        self.groups.of(usize::from(u.0), scope) == self.groups.of(thread, scope)
                    })
            }
        }
    }

    /// The target of a thread's access; `None` if the thread may not access that address.
    pub(super) fn place(
        &self,
        thread: usize,
        address: i64,
        ty: Ty,
        write: bool,
    ) -> Option<AccessPlace> {
        let cell = self.memory.accessed(
            &self.program,
            ThreadId(thread as u16),
            address,
            ty.bytes(),
            write,
        )?;
        let va = self.memory.cell(cell).virtual_address.0 as u16;
        Some(AccessPlace {
            loc: self.loc_of[cell.0 as usize],
            va,
        })
    }

    /// The cell of a location's own memory.
    pub(super) fn cell_of(&self, loc: usize) -> &Cell {
        self.memory.cell(self.locations[loc].cell)
    }

    /// The number of cells that an instruction accesses at once, and the number of consecutive
    /// micro-ops that do so.
    pub(super) fn at_once(&self, thread: usize, pc: usize) -> (u8, u8) {
        let element = self.program.threads[thread].code[pc].element;
        let ops = if element.whole { element.of } else { 1 };
        (element.cells * ops, ops)
    }

    /// The location that a micro-op accesses with these registers, allowed or not.
    pub(super) fn touched(&self, act: &Act, regs: &[i64]) -> Option<usize> {
        let (addr, access) = (act.address()?, act.accesses().next()?);
        self.memory
            .cell_at(eval(addr, regs), access.ty.bytes())
            .map(|c| self.location(c))
    }

    /// The location of a cell.
    pub(super) fn location(&self, cell: CellId) -> usize {
        self.loc_of[cell.0 as usize]
    }

    /// The location that an observable names.
    pub(super) fn observed_location(&self, o: Observable) -> Option<usize> {
        self.memory
            .observed(&self.program, o)
            .map(|c| self.loc_of[c.0 as usize])
    }

    /// Whether `scope` of thread `t` includes `u`; a thread always includes itself.
    pub(super) fn holds(&self, t: usize, scope: Scope, u: usize) -> bool {
        self.groups.of(t, scope) == self.groups.of(u, scope)
    }

    /// Whether operations of these threads and scopes include each other.
    pub(super) fn mutual(&self, t: usize, a: Scope, u: usize, b: Scope) -> bool {
        self.holds(t, a, u) && self.holds(u, b, t)
    }

    /// The first thread of a thread's group.
    pub(super) fn group(&self, thread: usize, scope: Scope) -> usize {
        self.groups.of(thread, scope)
    }

    /// The source line of an instruction; `None` at the end.
    pub(super) fn line(&self, thread: usize, pc: usize) -> Option<&SourceLine> {
        self.program.threads[thread].code.get(pc).map(|i| &i.line)
    }

    /// The threads of a group, identified by its first thread.
    pub(super) fn members(&self, group: usize, scope: Scope) -> &[usize] {
        &self.groups.members[scope as usize][group]
    }
}

/// The value of an expression.
pub(super) fn eval(e: &Expr, regs: &[i64]) -> i64 {
    match e {
        Expr::Const(v) => *v,
        Expr::Reg(r) => regs[r.0 as usize],
        Expr::Address(_) => unreachable!("addresses were resolved"),
        Expr::Bin(op, ty, a, b) => op.apply(*ty, eval(a, regs), eval(b, regs)),
        Expr::Cmp(op, ty, a, b) => i64::from(op.holds(*ty, eval(a, regs), eval(b, regs))),
        Expr::Select(c, a, b) => {
            if eval(c, regs) != 0 {
                eval(a, regs)
            } else {
                eval(b, regs)
            }
        }
        Expr::Cast(ty, a) => ty.wrap(eval(a, regs)),
        Expr::Fused(fused, three) => {
            let [a, b, c] = three.each_ref().map(|e| eval(e, regs));
            fused.apply(a, b, c)
        }
    }
}

/// The value that a read-modify-write writes, given the value that it read. `Some(None)`: it writes
/// nothing; `None`: an operand is unknown.
pub(super) fn new_value(
    update: &Update,
    old: i64,
    read: Ty,
    write: Ty,
    value: &dyn Fn(&Expr) -> Option<i64>,
) -> Option<Option<i64>> {
    Some(match update {
        Update::Exchange(e) => Some(write.wrap(value(e)?)),
        Update::Apply(op, e) => Some(write.wrap(op.apply(write, old, value(e)?))),
        Update::When { cond, new } => match value(cond)? {
            0 => None,
            _ => Some(write.wrap(value(new)?)),
        },
        Update::CompareExchange { expected, new } => {
            if read.wrap(value(expected)?) == old {
                Some(write.wrap(value(new)?))
            } else {
                None
            }
        }
    })
}
