//! A program made ready to run: expressions without names, operations with what the machine asks of them.
//!
//! # Invariants
//! - Every address of the program is a number; the map from numbers to memory is [`program::memory::Memory`], so that
//!   values mean the same as in the checkers. Nothing else of the skeleton is used.
//! - What the machine cannot run is refused here, by name, or where it turns up while running ([`super::Halt`]).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::groups::Groups;
use program::host::{CallId, CommandId, QueryId};
use program::litmus::{LitmusTest, Observable};
use program::memory::{Cell, CellId, Memory};
use program::{
    Barrier, BarrierAction, BarrierNaming, Dialect, Expr, LocationKind, MemoryKind, Op, OpenClMemory, Program,
    Proxy, RegId, Scope, Space, Tags, ThreadId, Ty, Update, live_registers,
};

/// What an access is, beside its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) ty: Ty,
    /// Relaxed, acquire or release: strong in PTX's sense.
    pub(super) strong: bool,
    pub(super) scope: Scope,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) proxy: Proxy,
    /// Half of a reduction, whose read never acquires.
    pub(super) red: bool,
    /// Declared atomic by its function (C-like languages).
    pub(super) atomic: bool,
    /// Half of a read-modify-write.
    pub(super) updates: bool,
    /// Sequentially consistent (C-like languages).
    pub(super) sc: bool,
    pub(super) consume: bool,
    /// The order of a failed compare-exchange, where that differs.
    pub(super) failure: Option<Failure>,
}

/// The order of a compare-exchange that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
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

/// A fence, of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// A thread fence.
    Thread {
        acquire: bool,
        release: bool,
        sc: bool,
        scope: Scope,
        /// OpenCL: those of its flags.
        regions: Regions,
        /// OpenCL: it reaches no further than its work-group in local memory.
        capped: bool,
        /// CUDA: no fence, but a call of a library function whose precondition does not hold.
        misuse: bool,
    },
    /// `fence.proxy.alias`.
    Alias,
    /// `fence.proxy` of a proxy.
    Proxy(Proxy),
}

/// One micro-op, ready to run.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Load { dst: RegId, addr: Expr, access: Access },
    Store { addr: Expr, value: Expr, access: Access },
    Rmw { dst: Option<RegId>, addr: Expr, update: Update, read: Access, write: Access },
    Fence(Fence),
    Barrier(Barrier),
    Spurious { dst: RegId },
    Call(CallId),
    Enqueue(CommandId),
    Status { dst: RegId, of: QueryId },
    Assign { dst: RegId, value: Expr },
    Branch { cond: Expr, target: usize },
}

/// One thread's code.
#[derive(Clone, Debug)]
pub(super) struct ThreadCode {
    pub(super) acts: Vec<Act>,
    pub(super) start: Vec<i64>,
    /// Registers that matter at each instruction and at the end.
    pub(super) live: Vec<Vec<bool>>,
    /// Registers that the code after an instruction reads, whatever is observed at the end.
    pub(super) used: Vec<Vec<bool>>,
    /// Locations that the code from an instruction on may access, as a bit set.
    pub(super) reach: Vec<u128>,
    /// By instruction: whether a division in it may have no meaning.
    pub(super) divides: Vec<bool>,
    /// Whether it has a backward branch.
    pub(super) loops: bool,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Physical location, an index of [`Code::locations`].
    pub(super) loc: usize,
    /// Virtual address, as a cell number.
    pub(super) va: u16,
}

/// One physical location.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) cell: CellId,
    pub(super) init: i64,
    /// Whether its object was declared atomic (C-like languages).
    pub(super) atomic: bool,
    pub(super) opencl: OpenClMemory,
    /// Who allocated it.
    pub(super) kind: MemoryKind,
}

/// A test, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) program: Arc<Program>,
    pub(super) memory: Memory,
    pub(super) threads: Vec<ThreadCode>,
    pub(super) locations: Vec<Location>,
    /// By cell: its location.
    loc_of: Vec<usize>,
    pub(super) observed: Vec<Observable>,
    /// Whether the test has a filter: then outcomes decide what counts.
    pub(super) filtered: bool,
    groups: Groups,
    /// By thread: the first thread of its CTA.
    pub(super) cta: Vec<usize>,
    /// By thread: the first thread that runs the same code, as it is written in the test.
    pub(super) kin: Vec<usize>,
    /// By thread: its lane.
    pub(super) lanes: Vec<u32>,
    /// No alias, no proxy but the generic one.
    pub(super) plain: bool,
    /// Some access goes through a proxy other than the generic one.
    pub(super) proxies: bool,
    /// Whether calls of kernels hand over what is known: they are launches of CUDA, or all memory that is shared is
    /// fine-grained.
    pub(super) calls_hand_over: bool,
    /// Whether any thread has a backward branch.
    pub(super) loops: bool,
    /// Whether some thread has a branch: then what a barrier does depends on what is read.
    pub(super) branches: bool,
}

impl Code {
    /// Makes a test ready.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub(super) fn new(test: &LitmusTest) -> Result<Code, String> {
        let program = Arc::new(test.program.clone());
        let memory = Memory::new(&program);
        let mut locations = Vec::new();
        let mut loc_of = vec![0; memory.cells.len()];
        for (i, cell) in memory.cells.iter().enumerate() {
            if cell.memory.0 as usize == i {
                loc_of[i] = locations.len();
                let (atomic, opencl, kind) = match program.location(cell.location.0).kind {
                    LocationKind::Object { atomic, opencl, kind, .. } => (atomic, opencl, kind),
                    LocationKind::Alias { .. } => (false, OpenClMemory::default(), MemoryKind::Private),
                };
                locations.push(Location { cell: cell.memory, init: cell.init, atomic, opencl, kind });
            } else {
                loc_of[i] = loc_of[cell.memory.0 as usize];
            }
        }
        if memory.cells.len() > usize::from(u16::MAX) {
            return Err("not in this machine: more than 65,535 memory cells".into());
        }
        let observed = test.observables();
        let groups = Groups::new(&program);
        let mut code = Code {
            threads: Vec::new(),
            locations,
            loc_of,
            observed,
            filtered: test.filter.is_some(),
            cta: (0..program.threads.len()).map(|t| groups.of(t, Scope::Cta)).collect(),
            groups,
            kin: kin(&program),
            lanes: program.thread_ids().map(|t| program.lane(t)).collect(),
            plain: true,
            proxies: false,
            calls_hand_over: false,
            loops: false,
            branches: false,
            memory,
            program: program.clone(),
        };
        for t in program.thread_ids() {
            let thread = code.thread(t)?;
            code.loops |= thread.loops;
            code.branches |= thread.acts.iter().any(|a| matches!(a, Act::Branch { .. }));
            code.threads.push(thread);
        }
        code.proxies = code.threads.iter().flat_map(|t| &t.acts).any(|a| match a {
            Act::Load { access, .. } | Act::Store { access, .. } => access.proxy != Proxy::Generic,
            Act::Rmw { read, write, .. } => read.proxy != Proxy::Generic || write.proxy != Proxy::Generic,
            _ => false,
        });
        code.calls_hand_over = code.calls_hand_over()?;
        code.plain = !code.proxies && code.memory.cells.iter().enumerate().all(|(i, c)| c.memory.0 as usize == i);
        Ok(code)
    }

    /// Whether what a thread of a kernel knows is known to the commands that it enqueues: on streams of CUDA, and on
    /// queues of OpenCL if all global memory is fine-grained shared virtual memory.
    ///
    /// # Errors
    /// If a kernel enqueues commands on a queue, and it is so of part of the memory alone.
    fn calls_hand_over(&self) -> Result<bool, String> {
        let host = self.program.host.as_deref();
        if host.is_some_and(|h| h.lanes.iter().all(|l| l.kind.is_stream())) {
            return Ok(true);
        }
        let enqueues = self.threads.iter().flat_map(|t| &t.acts).any(|a| matches!(a, Act::Enqueue(_)));
        let global = |l: &&Location| self.memory.cell(l.cell).space == Space::Global;
        let mut fine = self.locations.iter().filter(global).map(|l| l.kind.is_fine_grained());
        let (first, mut rest) = (fine.next().unwrap_or(false), fine);
        if enqueues && rest.any(|f| f != first) {
            return Err(
                "not in this machine: commands enqueued by kernels where part of memory is fine-grained".into()
            );
        }
        Ok(first)
    }

    fn thread(&self, id: ThreadId) -> Result<ThreadCode, String> {
        let thread = self.program.thread(id);
        let mut acts = Vec::with_capacity(thread.code.len());
        for instr in &thread.code {
            acts.push(self.act(&instr.op, id).map_err(|what| format!("{what} (`{}`)", instr.text))?);
        }
        let mut needed = vec![false; thread.regs.len()];
        for o in &self.observed {
            if let Observable::Reg(t, r) = o
                && *t == id
            {
                needed[r.0 as usize] = true;
            }
        }
        let start = thread.regs.iter().map(|r| self.memory.initial(&self.program, &r.init, Some(id))).collect();
        let loops =
            acts.iter().enumerate().any(|(pc, a)| matches!(a, Act::Branch { target, .. } if *target <= pc));
        let reach = self.reach(&acts);
        // PTX leaves the result open, and the value types have settled it; the languages of C's family do not.
        let undefined = self.program.dialect != Dialect::Ptx;
        let divides = thread.code.iter().map(|i| undefined && divides(&i.op)).collect();
        Ok(ThreadCode {
            divides,
            live: live_registers(thread, &needed),
            used: live_registers(thread, &vec![false; thread.regs.len()]),
            acts,
            start,
            reach,
            loops,
        })
    }

    fn act(&self, op: &Op, t: ThreadId) -> Result<Act, String> {
        let name = |e: &Expr| self.resolve(e, t);
        Ok(match op {
            Op::Load { dst, addr, access: a } => {
                Act::Load { dst: *dst, addr: name(addr), access: access(&a.tags, a.scope, a.ty)? }
            }
            Op::Store { addr, value, access: a } => {
                Act::Store { addr: name(addr), value: name(value), access: access(&a.tags, a.scope, a.ty)? }
            }
            Op::Rmw { dst, addr, update, read, write } => Act::Rmw {
                dst: *dst,
                addr: name(addr),
                update: match update {
                    Update::Exchange(e) => Update::Exchange(name(e)),
                    Update::Apply(op, e) => Update::Apply(*op, name(e)),
                    Update::CompareExchange { expected, new } => {
                        Update::CompareExchange { expected: name(expected), new: name(new) }
                    }
                    Update::When { cond, new } => Update::When { cond: name(cond), new: name(new) },
                },
                read: access(&read.tags, read.scope, read.ty)?,
                write: access(&write.tags, write.scope, write.ty)?,
            },
            Op::Fence { tags, scope } => Act::Fence(fence(tags, *scope)),
            Op::Barrier(b) => {
                let mut b = b.clone();
                match &mut b.naming {
                    BarrierNaming::Counted { id, count } => {
                        *id = name(id);
                        *count = count.as_ref().map(name);
                    }
                    BarrierNaming::Instance { id, quorum, .. } => {
                        *id = id.as_ref().map(name);
                        *quorum = quorum.as_ref().map(name);
                        if b.action == BarrierAction::Wait {
                            return Err("not in this machine: a barrier instance that only waits".into());
                        }
                    }
                }
                Act::Barrier(b)
            }
            Op::Spurious { dst } => Act::Spurious { dst: *dst },
            Op::Call(call) => Act::Call(*call),
            Op::Enqueue(command) => Act::Enqueue(*command),
            Op::Status { dst, of } => Act::Status { dst: *dst, of: *of },
            Op::Assign { dst, value } => Act::Assign { dst: *dst, value: name(value) },
            Op::Branch { cond, target } => Act::Branch { cond: name(cond), target: *target },
        })
    }

    /// The expression with addresses as numbers.
    fn resolve(&self, e: &Expr, t: ThreadId) -> Expr {
        let go = |e: &Expr| Box::new(self.resolve(e, t));
        match e {
            Expr::Const(_) | Expr::Reg(_) => e.clone(),
            Expr::Address(loc) => {
                let cell = self.memory.cell_of(&self.program, *loc, 0, Some(t));
                Expr::Const(cell.map_or(0, |c| self.memory.cell(c).address))
            }
            Expr::Bin(op, ty, a, b) => Expr::Bin(*op, *ty, go(a), go(b)),
            Expr::Cmp(op, ty, a, b) => Expr::Cmp(*op, *ty, go(a), go(b)),
            Expr::Select(c, a, b) => Expr::Select(go(c), go(a), go(b)),
            Expr::Cast(ty, a) => Expr::Cast(*ty, go(a)),
        }
    }

    /// By instruction: the locations that the code from there on may access; all bits if that is not known.
    fn reach(&self, acts: &[Act]) -> Vec<u128> {
        let at = |addr: &Expr| match addr {
            Expr::Const(a) => self.memory.at(*a).map_or(0, |c| match self.loc_of[c.0 as usize] {
                loc if loc < 128 => 1u128 << loc,
                _ => u128::MAX,
            }),
            _ => u128::MAX,
        };
        let mut reach = vec![0; acts.len() + 1];
        loop {
            let before = reach.clone();
            for (pc, act) in acts.iter().enumerate().rev() {
                reach[pc] |= match act {
                    Act::Load { addr, .. } | Act::Store { addr, .. } | Act::Rmw { addr, .. } => at(addr),
                    Act::Branch { target, .. } => reach[*target],
                    _ => 0,
                } | reach[pc + 1];
            }
            if reach == before {
                return reach;
            }
        }
    }

    /// Where an access of a thread goes; `None` if it names nothing that the thread may access.
    pub(super) fn place(&self, thread: usize, address: i64, ty: Ty, write: bool) -> Option<Place> {
        let cell = self.memory.at(address)?;
        let id = ThreadId(thread as u16);
        if !self.memory.accessible(&self.program, cell, id, ty, write) {
            return None;
        }
        let va = self.memory.cell(cell).virtual_address.0 as u16;
        Some(Place { loc: self.loc_of[cell.0 as usize], va })
    }

    /// The cell of a location's own memory.
    pub(super) fn cell_of(&self, loc: usize) -> &Cell {
        self.memory.cell(self.locations[loc].cell)
    }

    /// The location of a cell.
    pub(super) fn location(&self, cell: CellId) -> usize {
        self.loc_of[cell.0 as usize]
    }

    /// The location that an observable names.
    pub(super) fn observed_location(&self, o: Observable) -> Option<usize> {
        self.memory.observed(&self.program, o).map(|c| self.loc_of[c.0 as usize])
    }

    /// Whether `scope` of thread `t` holds `u`; its own thread always.
    pub(super) fn holds(&self, t: usize, scope: Scope, u: usize) -> bool {
        self.groups.of(t, scope) == self.groups.of(u, scope)
    }

    /// Whether two operations of these threads and scopes include each other.
    pub(super) fn mutual(&self, (t, a): (usize, Scope), (u, b): (usize, Scope)) -> bool {
        self.holds(t, a, u) && self.holds(u, b, t)
    }

    /// The first thread of a thread's group.
    pub(super) fn group(&self, thread: usize, scope: Scope) -> usize {
        self.groups.of(thread, scope)
    }

    /// The source line of an instruction; `None` at the end.
    pub(super) fn line(&self, thread: usize, pc: usize) -> Option<u32> {
        self.program.threads[thread].code.get(pc).map(|i| i.line)
    }

    /// The threads of a group, given by its first one.
    pub(super) fn members(&self, group: usize, scope: Scope) -> &[usize] {
        &self.groups.members[scope as usize][group]
    }
}

/// By thread: the first one whose instructions stand at the same places of the file.
fn kin(program: &Program) -> Vec<usize> {
    let mut first: FxHashMap<Vec<_>, usize> = FxHashMap::default();
    let places = program.threads.iter().map(|t| t.code.iter().map(|i| (i.span.start, i.span.end)).collect());
    places.enumerate().map(|(t, spans)| *first.entry(spans).or_insert(t)).collect()
}

fn access(tags: &Tags, scope: Option<Scope>, ty: Ty) -> Result<Access, String> {
    let proxy = match () {
        () if tags.has("SUR") => Proxy::Surface,
        () if tags.has("TEX") => Proxy::Texture,
        // The word also stands for C's consume order, which has an order beside it.
        () if tags.has("CON") && tags.has("WEAK") => Proxy::Constant,
        () => Proxy::Generic,
    };
    // Accesses of PTX are never sequentially consistent by themselves; those of the other languages may be.
    let sc = tags.has("SC");
    let strong = tags.has("RLX") || tags.has("ACQ") || tags.has("REL") || sc;
    Ok(Access {
        ty,
        strong,
        scope: scope.unwrap_or(Scope::Thread),
        acquire: tags.has("ACQ") || sc,
        release: tags.has("REL") || sc,
        proxy,
        red: tags.has("RED"),
        atomic: tags.has("A"),
        updates: tags.has("RMW"),
        sc,
        consume: tags.has("CON"),
        failure: match () {
            () if tags.has("FAIL_RLX") => Some(Failure::Relaxed),
            () if tags.has("FAIL_ACQ") => Some(Failure::Acquire),
            () if tags.has("FAIL_SC") => Some(Failure::SeqCst),
            () => None,
        },
    })
}

fn fence(tags: &Tags, scope: Option<Scope>) -> Fence {
    if tags.has("PF") {
        return match () {
            () if tags.has("ALIAS") => Fence::Alias,
            () if tags.has("SUR") => Fence::Proxy(Proxy::Surface),
            () if tags.has("TEX") => Fence::Proxy(Proxy::Texture),
            () if tags.has("CON") => Fence::Proxy(Proxy::Constant),
            () => Fence::Proxy(Proxy::Generic),
        };
    }
    let sc = tags.has("SC");
    let both = sc || tags.has("ACQ_REL");
    Fence::Thread {
        acquire: both || tags.has("ACQ"),
        release: both || tags.has("REL"),
        sc,
        scope: scope.unwrap_or(Scope::Thread),
        regions: Regions::of(tags.has("GLOBAL"), tags.has("LOCAL")),
        capped: tags.has("CAPPED"),
        misuse: tags.has("MISUSE"),
    }
}

fn divides(op: &Op) -> bool {
    fn within(e: &Expr) -> bool {
        match e {
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => false,
            Expr::Bin(op, _, a, b) => op.divides() || within(a) || within(b),
            Expr::Cmp(_, _, a, b) => within(a) || within(b),
            Expr::Select(c, a, b) => within(c) || within(a) || within(b),
            Expr::Cast(_, a) => within(a),
        }
    }
    let mut found = false;
    op.expressions(&mut |e| found |= within(e));
    found
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
    }
}
