//! Makes a test ready to run: turns addresses into numbers, and tags into the attributes that the
//! machine needs.
//!
//! # Invariants
//! - Anything that the machine cannot run is refused with the reason: here, or during the run
//!   ([`super::Halt`]).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::agents::{Agent, Await, group_of};
use super::code::{
    Access, Act, Code, CommandCode, FailureOrder, Fence, FenceMemory, FenceReach, OnObject,
    PhysicalLocation, Regions, ThreadCode,
};
use super::groups::Groups;
use program::host::{CommandId, CommandKind};
use program::litmus::{LitmusTest, Observable};
use program::memory::Memory;
use program::unknown::Unknowns;
use program::{
    Barrier, BarrierAction, BarrierNaming, EventKind, Expr, Instr, LocationKind, Mark, MemoryKind,
    Op, OpenClMemory, Program, Proxy, Scope, Space, Tag, Tags, ThreadId, Ty, live_registers,
};

/// The physical locations of a program, and the one of each cell.
fn physical_locations(program: &Program, memory: &Memory) -> (Vec<PhysicalLocation>, Vec<usize>) {
    let mut locations = Vec::new();
    let mut loc_of = vec![0; memory.cells.len()];
    for (i, cell) in memory.cells.iter().enumerate() {
        if cell.memory.0 as usize != i {
            loc_of[i] = loc_of[cell.memory.0 as usize];
            continue;
        }
        loc_of[i] = locations.len();
        let (atomic, opencl, kind) = match program.location(cell.location.0).kind {
            LocationKind::Object {
                atomic,
                opencl,
                kind,
                ..
            } => (atomic, opencl, kind),
            LocationKind::Alias { .. } => (false, OpenClMemory::default(), MemoryKind::Private),
        };
        locations.push(PhysicalLocation {
            cell: cell.memory,
            init: cell.init,
            atomic,
            opencl,
            kind,
        });
    }
    (locations, loc_of)
}

/// Refuses a program in which a value that is not worked out decides something.
fn refuse_unknown_values(
    program: &Program,
    memory: &Memory,
    observed: &[Observable],
) -> Result<(), String> {
    let unknowns = Unknowns::of(program);
    let shown = observed
        .iter()
        .find_map(|o| unknowns.shown(program, memory, *o));
    let Some((t, at)) = unknowns.steered().map(|s| s.0).or(shown) else {
        return Ok(());
    };
    let text = &program.thread(t).code[at].text;
    Err(format!(
        "not in this machine: a value that is not worked out and that matters (`{text}`)"
    ))
}

impl Code {
    /// Prepares a test.
    ///
    /// # Errors
    /// If the machine cannot run it.
    pub(super) fn new(test: &LitmusTest, agents: Vec<Agent>) -> Result<Code, String> {
        let program = Arc::new(test.program.clone());
        let memory = Memory::new(&program);
        let (locations, loc_of) = physical_locations(&program, &memory);
        if memory.cells.len() > usize::from(u16::MAX) {
            return Err("not in this machine: more than 65,535 memory cells".into());
        }
        let observed = test.observables();
        refuse_unknown_values(&program, &memory, &observed)?;
        let groups = Groups::new(&program, program.threads.len() - agents.len());
        let is_on = |option| test.options.iter().any(|o| o.words() == option);
        let mut code = Code {
            threads: Vec::new(),
            locations,
            loc_of,
            observed,
            filtered: test.filter.is_some(),
            cta: (0..program.threads.len())
                .map(|t| groups.of(t, Scope::Cta))
                .collect(),
            lanes: groups.ranks(Scope::Warp),
            groups,
            kin: kin(&program),
            has_meetings: false,
            plain: true,
            proxies: false,
            calls_hand_over: false,
            several: program.of_several_cells().is_some(),
            loops: false,
            branches: false,
            counts: false,
            local_fences: is_on(("async-fence", "cta")),
            fence_reach: match () {
                () if is_on(("async-fence", "cta")) => FenceReach::Cta,
                () if is_on(("async-fence", "thread")) => FenceReach::Thread,
                () if is_on(("async-fence", "letter")) => FenceReach::Letter,
                () => FenceReach::Path,
            },
            strict_read_wait: is_on(("read-wait", "strict")),
            same_value: is_on(("same-value", "benign")),
            untorn: is_on(("tearing", "none")),
            commands: CommandCode::of(&program, &agents),
            agents,
            memory,
            program: program.clone(),
        };
        code.add_threads()?;
        code.note_proxies();
        code.calls_hand_over = code.calls_hand_over()?;
        Ok(code)
    }

    /// Prepares the code of all threads, and notes which features it has.
    fn add_threads(&mut self) -> Result<(), String> {
        for t in self.program.clone().thread_ids() {
            let thread = self.thread(t)?;
            self.loops |= thread.loops;
            self.has_meetings |= thread.acts.iter().any(|a| matches!(a, Act::Give { .. }));
            self.branches |= thread.acts.iter().any(|a| a.target().is_some());
            let mut barriers = thread.acts.iter().filter_map(Act::barrier);
            self.counts |= barriers.any(Barrier::says_count);
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Notes whether the program uses proxies, or several addresses of one cell.
    fn note_proxies(&mut self) {
        let mut acts = self.threads.iter().flat_map(|t| &t.acts);
        self.proxies = acts.any(|a| {
            a.accesses()
                .any(|access| access.map || access.proxy != Proxy::Generic)
        });
        let mut cells = self.memory.cells.iter().enumerate();
        self.plain = !self.proxies && cells.all(|(i, c)| c.memory.0 as usize == i);
    }

    /// Whether commands that a kernel enqueues learn the knowledge of the enqueueing thread. That
    /// is so on streams of CUDA, and on queues of OpenCL if all global memory is fine-grained
    /// shared virtual memory.
    ///
    /// # Errors
    /// If a kernel enqueues commands on a queue, and that is so for only part of the memory.
    fn calls_hand_over(&self) -> Result<bool, String> {
        let host = self.program.host.as_deref();
        if host.is_some_and(|h| h.lanes.iter().all(|l| l.kind.is_stream())) {
            return Ok(true);
        }
        // A call that sets a user event hands over all memory.
        let is_set =
            |id: CommandId| host.is_some_and(|h| h.command(id).kind == CommandKind::UserEvent);
        let enqueues = self
            .threads
            .iter()
            .flat_map(|t| &t.acts)
            .any(|a| matches!(a, Act::Enqueue(c) if !is_set(*c)));
        let mut fine = self
            .locations
            .iter()
            .filter(|l| self.memory.cell(l.cell).space == Space::Global)
            .map(|l| l.kind.is_fine_grained());
        let (first, mut rest) = (fine.next().unwrap_or(false), fine);
        if enqueues && rest.any(|f| f != first) {
            return Err(
                "not in this machine: commands enqueued by kernels where part of memory is \
                    fine-grained"
                    .into(),
            );
        }
        Ok(first)
    }

    fn thread(&self, id: ThreadId) -> Result<ThreadCode, String> {
        let thread = self.program.thread(id);
        let mut acts = Vec::with_capacity(thread.code.len());
        for instr in &thread.code {
            acts.push(
                self.act(&instr.op, id)
                    .map_err(|what| format!("{what} (`{}`)", instr.text))?,
            );
        }
        // The machine does not record which iterations reach a barrier.
        let around = |pc: usize| {
            thread
                .code
                .iter()
                .enumerate()
                .any(|(at, i)| i.op.target().is_some_and(|to| (to..=at).contains(&pc)))
        };
        fn instance(i: &Instr) -> bool {
            i.op.barrier()
                .is_some_and(|b| matches!(b.naming, BarrierNaming::Instance { .. }))
        }
        if let Some((_, instr)) = thread
            .code
            .iter()
            .enumerate()
            .find(|(pc, i)| instance(i) && around(*pc))
        {
            return Err(format!(
                "not in this machine: a barrier instance in a loop (`{}`)",
                instr.text
            ));
        }
        let mut needed = vec![false; thread.regs.len()];
        for o in &self.observed {
            if let Observable::Reg(t, r) = o
                && *t == id
            {
                needed[r.0 as usize] = true;
            }
        }
        let start = thread
            .regs
            .iter()
            .map(|r| self.memory.initial(&self.program, &r.init, Some(id)))
            .collect();
        let several: Vec<bool> = thread
            .code
            .iter()
            .map(|i| i.element.cells > 1 || i.element.whole)
            .collect();
        let reach = self.reach(&acts, &several);
        let undefined = self.program.dialect.row().undefined_division;
        let divides = thread
            .code
            .iter()
            .map(|i| undefined && divides(&i.op))
            .collect();
        Ok(ThreadCode {
            divides,
            live: live_registers(thread, &needed),
            used: live_registers(thread, &vec![false; thread.regs.len()]),
            acts,
            start,
            reach,
            loops: thread.has_loop(),
        })
    }

    fn act(&self, op: &Op, t: ThreadId) -> Result<Act, String> {
        let mut act = op.clone();
        act.operands_mut()
            .into_iter()
            .for_each(|e| self.resolve(e, t));
        if let Op::Barrier(Barrier {
            naming: BarrierNaming::Instance { .. },
            action: BarrierAction::Wait,
            ..
        }) = op
        {
            return Err("not in this machine: a barrier instance that only waits".into());
        }
        act.try_map(|a| access(&a.tags, a.scope, a.ty), |mark| fence(&mark))
    }

    /// Replaces addresses by numbers.
    fn resolve(&self, e: &mut Expr, t: ThreadId) {
        e.visit_mut(&mut |e| {
            if let Expr::Address(loc) = e {
                *e = Expr::Const(
                    self.memory
                        .address(&self.program, *loc, 0, Some(t))
                        .unwrap_or(0),
                );
            }
        });
    }

    /// By instruction: the locations that the code from there on may access; all bits if unknown.
    fn reach(&self, acts: &[Act], several: &[bool]) -> Vec<u128> {
        let at = |act: &Act| match act.address() {
            None => 0,
            Some(Expr::Const(_)) => self.touched(act, &[]).map_or(0, |loc| match loc {
                loc if loc < 128 => 1u128 << loc,
                _ => u128::MAX,
            }),
            Some(_) => u128::MAX,
        };
        let mut reach = vec![0; acts.len() + 1];
        loop {
            let before = reach.clone();
            for (pc, act) in acts.iter().enumerate().rev() {
                let cells = if several[pc] { u128::MAX } else { at(act) };
                let here = cells | act.target().map_or(0, |target| reach[target]);
                reach[pc] |= here | reach[pc + 1];
            }
            if reach == before {
                return reach;
            }
        }
    }
}

/// By thread: the first thread whose instructions are at the same places in the file.
fn kin(program: &Program) -> Vec<usize> {
    let mut first: FxHashMap<Vec<_>, usize> = FxHashMap::default();
    let places = program
        .threads
        .iter()
        .map(|t| t.code.iter().map(|i| (i.span.start, i.span.end)).collect());
    places
        .enumerate()
        .map(|(t, spans)| *first.entry(spans).or_insert(t))
        .collect()
}

fn access(tags: &Tags, scope: Option<Scope>, ty: Ty) -> Result<Access, String> {
    if tags.has(Tag::TensormapProxy) {
        return Ok(Access {
            map: true,
            ..access(&tags.without(&[Tag::TensormapProxy]), scope, ty)?
        });
    }
    // Asynchronous operations go through a separate proxy.
    if tags.has(Tag::AsyncProxy) {
        return Ok(Access {
            proxy: Proxy::Async,
            ..access(&tags.without(&[Tag::AsyncProxy]), scope, ty)?
        });
    }
    // The tag of the constant proxy also means C's consume order, which no weak access has.
    let proxy = Proxy::tagged(tags)
        .filter(|proxy| *proxy != Proxy::Constant || tags.has(Tag::Weak))
        .unwrap_or(Proxy::Generic);
    // An access of PTX is never sequentially consistent; accesses of the other languages may be.
    let sc = tags.has(Tag::SeqCst);
    let strong = tags.has(Tag::Relaxed) || tags.has(Tag::Acquire) || tags.has(Tag::Release) || sc;
    Ok(Access {
        ty,
        strong,
        scope: scope.unwrap_or(Scope::Thread),
        acquire: tags.has(Tag::Acquire) || sc,
        release: tags.has(Tag::Release) || sc,
        proxy,
        map: false,
        red: tags.has(Tag::Reduction),
        atomic: tags.has(Tag::Atomic),
        updates: tags.has(Tag::Rmw),
        object: tags.has(Tag::Mbarrier).then(|| match () {
            () if tags.has(Tag::MbarrierInit) => OnObject::Init,
            () if tags.has(Tag::Asynchronous) => OnObject::Complete,
            () if tags.has(Tag::MbarrierArrive) => OnObject::Arrive,
            () if tags.has(Tag::MbarrierWait) => OnObject::Wait,
            () => OnObject::Other,
        }),
        sc,
        consume: tags.has(Tag::Constant),
        failure: match () {
            () if tags.has(Tag::FailRelaxed) => Some(FailureOrder::Relaxed),
            () if tags.has(Tag::FailAcquire) => Some(FailureOrder::Acquire),
            () if tags.has(Tag::FailSeqCst) => Some(FailureOrder::SeqCst),
            () => None,
        },
        part: (0, 1),
    })
}

fn fence(
    Mark {
        kind,
        tags,
        scope,
        pending,
        ..
    }: &Mark,
) -> Result<Fence, String> {
    if *kind != EventKind::Fence {
        return Err(format!("not in this machine: a {}", kind.row().noun));
    }
    if tags.has(Tag::CommitGroup) {
        return Ok(Fence::Commit(group_of(tags)));
    }
    if tags.has(Tag::WaitGroup) || tags.has(Tag::WaitGroupRead) {
        let pending = pending.ok_or("not in this machine: a wait for groups without a number")?;
        return Ok(Fence::Await(Await {
            group: group_of(tags),
            pending,
            reads: tags.has(Tag::WaitGroupRead),
        }));
    }
    let alone = [
        (Tag::WgmmaFence, Fence::Matrices),
        (Tag::LaunchDependents, Fence::Trigger),
        (Tag::GridWait, Fence::GridWait),
    ];
    if let Some((_, fence)) = alone.into_iter().find(|row| tags.has(row.0)) {
        return Ok(fence);
    }
    if tags.has(Tag::TensormapProxy) {
        return Ok(Fence::Map {
            acquire: tags.has(Tag::Acquire),
            scope: scope.unwrap_or(Scope::Thread),
            va: None,
        });
    }
    let part = match () {
        () if tags.has(Tag::OfGlobal) => FenceMemory::Global,
        () if tags.has(Tag::OfCta) => FenceMemory::Shared(Scope::Cta),
        () if tags.has(Tag::OfCluster) => FenceMemory::Shared(Scope::Cluster),
        () => FenceMemory::All,
    };
    if tags.has(Tag::Half) {
        let (acquire, scope) = (tags.has(Tag::Acquire), scope.unwrap_or(Scope::Thread));
        return Ok(match (tags.has(Tag::AsyncProxy), tags.has(Tag::Alias)) {
            // The restriction to part of memory is dropped: the fence orders more.
            (false, false) => Fence::of_memory(acquire, scope),
            (of_async, _) => Fence::Half {
                acquire,
                scope,
                part: of_async.then_some(part),
                of_reads: tags.has(Tag::OfReads),
            },
        });
    }
    if tags.has(Tag::ProxyFence) && tags.has(Tag::AsyncProxy) {
        return Ok(Fence::Async(part));
    }
    if tags.has(Tag::ProxyFence) {
        return Ok(if tags.has(Tag::Alias) {
            Fence::Alias
        } else {
            Fence::Proxy(Proxy::tagged(tags).unwrap_or(Proxy::Generic))
        });
    }
    if tags.has(Tag::MbarrierInit) {
        return Ok(Fence::Inits);
    }
    let sc = tags.has(Tag::SeqCst);
    let both = sc || tags.has(Tag::AcqRel);
    Ok(Fence::Thread {
        acquire: both || tags.has(Tag::Acquire),
        release: both || tags.has(Tag::Release),
        sc,
        scope: scope.unwrap_or(Scope::Thread),
        regions: Regions::of(tags.has(Tag::Global), tags.has(Tag::Local)),
        capped: tags.has(Tag::Capped),
        misuse: tags.has(Tag::Misuse),
    })
}

fn divides(op: &Op) -> bool {
    op.operands()
        .iter()
        .any(|e| e.any(&|e| matches!(e, Expr::Bin(op, ..) if op.divides())))
}
