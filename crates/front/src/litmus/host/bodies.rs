//! The threads of commands: the work-items of kernels, and one thread for each copy, mapping and
//! host function.
//!
//! # Invariants
//! - No two commands share a work-group: group numbers run on across the commands of a device.
//! - Threads of a command are consecutive, group by group.

use std::collections::{HashMap, VecDeque};

use super::{HostDeclarations, PtxKernels, Routine, RoutineCode};
use crate::isa::Symbols;
use crate::isa::clike::host::{CallAction, Request};
use crate::isa::clike::{Coordinates, Env};
use crate::litmus::build::{CThreadDraft, ThreadDraft, lower_clike, lower_ptx};
use crate::litmus::fronts::language;
use crate::litmus::places::{GridLayout, MAX_THREADS, host_place, special_registers};
use diag::{Sink, Span};
use program::host::{CommandId, CommandKind, CommandOrigin, HostCommand, HostProgram, Ref};
use program::{
    Access, BinOp, Expr, Init, Instr, InstrId, Layout, LocId, MemoryKind, NdRange, Op, Place,
    RegId, Register, Tag, Tags, Thread, ThreadId, Ty,
};

/// The threads of a command, and the work-group of each.
pub(super) type Body = (Vec<ThreadId>, Vec<u32>);

/// A cell that a copy or a fill writes: its offsets in the two objects, and its type.
pub(super) struct CopiedCell {
    pub(super) to: i64,
    pub(super) from: i64,
    pub(super) ty: Ty,
}

/// The values that a mapping writes (OpenCL API specification, clEnqueueMapBuffer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapWrites {
    /// None: a mapping for reading.
    Nothing,
    /// The newest values, which the host may overwrite.
    SameValues,
    /// Values that nothing may read: the contents are undefined.
    Discards,
}

/// A mapping of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) writes: MapWrites,
    /// The first element that it maps.
    pub(super) first: u32,
    /// The number of bytes; `None`: all from there on.
    pub(super) bytes: Option<(u64, Span)>,
}

/// A thread of a command, before lowering.
enum BodyDraft {
    /// A thread in a C-like language.
    Code(CThreadDraft),
    /// A thread in PTX.
    Assembly(ThreadDraft),
    /// A thread that this file generates, which needs no lowering.
    Made(Thread),
}

/// A thread of a command, lowered.
pub(super) struct CommandThread {
    pub(super) thread: Thread,
    /// The thread's calls of the runtime.
    pub(super) requests: Vec<Request>,
    /// For a thread in PTX: its accesses through registers that do not name a type.
    pub(super) untyped: Option<Vec<usize>>,
}

/// Builds the threads of all commands.
pub(super) struct Bodies<'a> {
    declared: &'a HostDeclarations,
    symbols: &'a mut Symbols,
    first: usize,
    /// Drafts of threads; a lowered one is taken out.
    drafts: Vec<Option<BodyDraft>>,
    /// For each thread: its code's name, the number of the launch, its number in the launch, and
    /// the launch's size.
    names: Vec<(String, usize, usize, usize)>,
    /// The number of launches of each name.
    launches: HashMap<String, usize>,
    /// Mappings of memory that have not ended yet: whether each is for writing.
    mappings: HashMap<LocId, VecDeque<Mapping>>,
    /// The next free work-group number of each device.
    groups: HashMap<u32, u32>,
}

impl<'a> Bodies<'a> {
    pub(super) fn new(
        declared: &'a HostDeclarations,
        symbols: &'a mut Symbols,
        first: usize,
    ) -> Bodies<'a> {
        let (drafts, names, launches, mappings, groups) = Default::default();
        Bodies {
            declared,
            symbols,
            first,
            drafts,
            names,
            launches,
            mappings,
            groups,
        }
    }

    pub(super) fn elements(&self, loc: LocId) -> u32 {
        (self.symbols.object(loc).1.init.len() / self.layout(loc).cells()) as u32
    }

    pub(super) fn layout(&self, loc: LocId) -> Layout {
        self.symbols.layout(loc)
    }

    /// How the object was allocated.
    pub(super) fn kind(&self, loc: LocId) -> MemoryKind {
        self.symbols.object(loc).1.kind
    }

    fn launch(&mut self, name: &str) -> usize {
        let launches = self.launches.entry(name.to_string()).or_default();
        *launches += 1;
        *launches
    }

    fn add(&mut self, draft: BodyDraft, name: (String, usize, usize, usize)) -> ThreadId {
        let id = ThreadId((self.first + self.drafts.len()) as u16);
        self.drafts.push(Some(draft));
        self.names.push(name);
        id
    }

    fn next_groups(&mut self, device: u32, groups: u64) -> u32 {
        let next = self.groups.entry(device).or_default();
        let base = *next;
        *next += groups as u32;
        base
    }

    /// Adds the kernels that run before all others: one command for each device that has a queue.
    pub(super) fn initializers(&mut self, host: &mut HostProgram) {
        self.of_program(
            host,
            |kernel| kernel.initializer,
            |_, device| (CommandKind::Initializer { device }, Vec::new()),
        );
    }

    /// Adds the kernels that run after all others of a device.
    pub(super) fn cleanups(&mut self, host: &mut HostProgram) {
        self.of_program(
            host,
            |kernel| kernel.cleanup,
            |host, device| {
                let of_device = |id: &CommandId| {
                    let command = host.command(*id);
                    let lane = command.lane.filter(|_| command.kind == CommandKind::Kernel);
                    lane.is_some_and(|lane| host.lane(lane).device == device)
                };
                let kernels = host.command_ids().filter(of_device);
                (CommandKind::Kernel, kernels.map(Ref::Command).collect())
            },
        );
    }

    /// Adds kernels of one work-item that no call enqueues, on each device that has a queue.
    fn of_program(
        &mut self,
        host: &mut HostProgram,
        is_one: fn(&Routine) -> bool,
        command: fn(&HostProgram, u32) -> (CommandKind, Vec<Ref>),
    ) {
        let mut devices: Vec<u32> = host.lanes.iter().map(|l| l.device).collect();
        devices.sort_unstable();
        devices.dedup();
        let declared = self.declared;
        let one = NdRange::new(&[1], &[1], &[]).expect("a single work-item");
        let before: Vec<_> = devices.iter().map(|it| command(host, *it)).collect();
        for (k, kernel) in declared.kernels.iter().enumerate() {
            if !is_one(kernel) {
                continue;
            }
            for (device, (kind, waits)) in devices.iter().zip(&before) {
                let (threads, groups) = self.kernel(k, one, *device);
                host.commands.push(HostCommand {
                    name: kernel.name.clone(),
                    kind: *kind,
                    lane: None,
                    waits: waits.clone(),
                    origin: CommandOrigin::Start,
                    threads,
                    groups,
                    programmatic: false,
                });
            }
        }
    }

    /// Adds the work-items of a kernel.
    pub(super) fn kernel(&mut self, kernel: usize, range: NdRange, device: u32) -> Body {
        let declared = self.declared;
        let code: &Routine = &declared.kernels[kernel];
        let number = self.launch(&code.name);
        let base = self.next_groups(device, range.groups().iter().product());
        let all = GridLayout {
            gpu: device,
            ..code.layout
        }
        .threads(range);
        let count = all.len();
        let mut body = Body::default();
        for (i, (at, mut place)) in all.into_iter().enumerate() {
            let group = place.cta;
            place.cta += base;
            place.grid = base;
            place.cluster = place.cluster.map(|c| c + base);
            let draft = self.draft(code, at, place);
            body.0
                .push(self.add(draft, (code.name.clone(), number, i, count)));
            body.1.push(group);
        }
        body
    }

    /// The draft of one work-item of a kernel.
    fn draft(&self, code: &Routine, at: Coordinates, place: Place) -> BodyDraft {
        let name = String::new();
        match &code.text {
            RoutineCode::C(unit, env) => {
                let env = Env {
                    specials: env.language.specials(at),
                    ..env.clone()
                };
                BodyDraft::Code(CThreadDraft {
                    name,
                    place,
                    unit: unit.clone(),
                    of_kernel: true,
                    env,
                })
            }
            RoutineCode::Ptx { unit, regs } => {
                let (regs, specials) = (regs.clone(), special_registers(at));
                BodyDraft::Assembly(ThreadDraft {
                    name,
                    place,
                    unit: *unit,
                    regs,
                    specials,
                })
            }
        }
    }

    /// Adds the thread of a host function.
    pub(super) fn function(&mut self, function: usize) -> Body {
        let declared = self.declared;
        let code = &declared.functions[function];
        let number = self.launch(&code.name);
        let place = host_place(self.first + self.drafts.len());
        let RoutineCode::C(unit, env) = &code.text else {
            unreachable!("functions of the host are in its language")
        };
        let (unit, env) = (unit.clone(), env.clone());
        let draft = CThreadDraft {
            name: String::new(),
            place,
            unit,
            of_kernel: false,
            env,
        };
        (
            vec![self.add(BodyDraft::Code(draft), (code.name.clone(), number, 0, 1))],
            vec![0],
        )
    }

    /// Adds the thread of a copy to memory, from memory or of a value. `memory`: source, target.
    pub(super) fn copy(
        &mut self,
        request: &Request,
        memory: [Option<LocId>; 2],
        cells: &[CopiedCell],
        device: u32,
    ) -> Body {
        let [from, to] = memory;
        let Some(to) = to else { return Body::default() };
        let mut registers: Vec<Ty> = Vec::new();
        let mut ops = Vec::new();
        // Memory lives from its allocation in a stream to its end in one.
        let tags = match request.name.as_str() {
            "cudaMallocAsync" => Tags::of(&[Tag::Begins]),
            "cudaFreeAsync" => Tags::of(&[Tag::Ends]),
            _ => Tags::default(),
        };
        for &CopiedCell {
            to: at,
            from: source,
            ty,
        } in cells
        {
            let known = registers.iter().position(|known| *known == ty);
            let register = RegId(known.unwrap_or(registers.len()) as u16);
            if known.is_none() {
                registers.push(ty);
            }
            let value = match from {
                Some(from) => {
                    ops.push(Op::Load {
                        dst: register,
                        addr: at_offset(from, source),
                        access: self.plain(ty),
                    });
                    Expr::Reg(register)
                }
                None => Expr::Const(ty.wrap(request.value)),
            };
            ops.push(Op::Store {
                addr: at_offset(to, at),
                value,
                access: Access {
                    tags,
                    ..self.plain(ty)
                },
            });
        }
        self.made(request, ops, &registers, device)
    }

    /// Opens a mapping.
    pub(super) fn opens(&mut self, memory: LocId, mapping: Mapping) {
        self.mappings.entry(memory).or_default().push_back(mapping);
    }

    /// The mapping that ends: the earliest open one that begins at this element. Its end writes
    /// back what memory holds, unless the mapping is for reading only.
    pub(super) fn closes(&mut self, memory: LocId, first: u32) -> Mapping {
        let open = self.mappings.entry(memory).or_default();
        let at = open.iter().position(|mapping| mapping.first == first);
        let mapping = at.and_then(|at| open.remove(at));
        let mut mapping = mapping.unwrap_or(Mapping {
            writes: MapWrites::SameValues,
            first,
            bytes: None,
        });
        if mapping.writes == MapWrites::Discards {
            mapping.writes = MapWrites::SameValues;
        }
        mapping
    }

    /// Adds the thread of a mapping or of its end.
    pub(super) fn map(
        &mut self,
        request: &Request,
        memory: LocId,
        writes: MapWrites,
        cells: &[CopiedCell],
        device: u32,
    ) -> Body {
        let tag = if request.does == CallAction::Map {
            Tag::Map
        } else {
            Tag::Unmap
        };
        let mut registers: Vec<Ty> = Vec::new();
        let mut ops = Vec::new();
        for &CopiedCell { to: at, ty, .. } in cells {
            let known = registers.iter().position(|known| *known == ty);
            let dst = RegId(known.unwrap_or(registers.len()) as u16);
            if known.is_none() {
                registers.push(ty);
            }
            let access = Access {
                tags: Tags::of(&[tag]),
                ..self.plain(ty)
            };
            ops.push(Op::Load {
                dst,
                addr: at_offset(memory, at),
                access: access.clone(),
            });
            let tags = match writes {
                MapWrites::Nothing => continue,
                MapWrites::SameValues => access.tags,
                // A model says that none may read this value.
                MapWrites::Discards => Tags::of(&[tag, Tag::Discards]),
            };
            ops.push(Op::Store {
                addr: at_offset(memory, at),
                value: Expr::Reg(dst),
                access: Access { tags, ..access },
            });
        }
        self.made(request, ops, &registers, device)
    }

    fn plain(&self, ty: Ty) -> Access {
        let scope = language(self.declared.runtime.dialect()).plain_scope;
        Access {
            tags: Tags::default(),
            scope,
            ty,
        }
    }

    /// A generated thread of the device, without code in the test.
    fn made(&mut self, request: &Request, ops: Vec<Op>, registers: &[Ty], device: u32) -> Body {
        let number = self.launch(&request.name);
        let place = Place::device(device, self.next_groups(device, 1));
        let (span, text) = (request.span, &request.name);
        let code: Vec<Instr> = ops
            .into_iter()
            .enumerate()
            .map(|(i, op)| Instr::new(InstrId(i as u32), op, span, 0.into(), text.clone()))
            .collect();
        fn register(ty: &Ty) -> Register {
            Register {
                name: "copied".to_string(),
                ty: *ty,
                init: Init::Int(0),
            }
        }
        let regs = registers.iter().map(register).collect();
        let thread = Thread {
            name: String::new(),
            place,
            regs,
            code,
            source: String::new(),
        };
        (
            vec![self.add(
                BodyDraft::Made(thread),
                (request.name.clone(), number, 0, 1),
            )],
            vec![0],
        )
    }

    /// Whether there are too many threads; if so, reports it.
    pub(super) fn too_many(&self, request: &Request, sink: &mut Sink) -> bool {
        let all = self.first + self.drafts.len();
        if all > MAX_THREADS {
            let message = format!("a test has at most {MAX_THREADS} threads");
            sink.error("too-many-threads", request.span, message, |d| {
                d.label("too many with these")
            });
        }
        all > MAX_THREADS
    }

    /// The id of a thread, from its number among all threads of commands.
    pub(super) fn id(&self, at: usize) -> ThreadId {
        ThreadId((self.first + at) as u16)
    }

    /// Lowers the threads from number `from` on.
    pub(super) fn lower(&mut self, from: usize, sink: &mut Sink) -> Vec<CommandThread> {
        let first = from.min(self.drafts.len());
        let (mut codes, mut assembly) = (Vec::new(), Vec::new());
        // The positions in `all` of the threads in each list.
        let (mut of_codes, mut of_assembly) = (Vec::new(), Vec::new());
        let mut all: Vec<Option<CommandThread>> = Vec::new();
        for draft in self.drafts[first..].iter_mut().filter_map(Option::take) {
            let at = all.len();
            all.push(None);
            match draft {
                BodyDraft::Code(draft) => {
                    codes.push(draft);
                    of_codes.push(at);
                }
                BodyDraft::Assembly(draft) => {
                    assembly.push(draft);
                    of_assembly.push(at);
                }
                BodyDraft::Made(mut thread) => {
                    for instr in &mut thread.code {
                        instr.line = sink.line(instr.span.start).into();
                    }
                    all[at] = Some(CommandThread {
                        thread,
                        requests: Vec::new(),
                        untyped: None,
                    });
                }
            }
        }
        for (at, (thread, requests)) in
            of_codes
                .into_iter()
                .zip(lower_clike(codes, self.symbols, sink))
        {
            all[at] = Some(CommandThread {
                thread,
                requests,
                untyped: None,
            });
        }
        if let Some(PtxKernels { units, env }) = &self.declared.assembly {
            let lowered = lower_ptx(assembly, units, self.symbols, env, sink);
            for (at, (thread, untyped)) in of_assembly.into_iter().zip(lowered) {
                all[at] = Some(CommandThread {
                    thread,
                    requests: Vec::new(),
                    untyped: Some(untyped),
                });
            }
        }
        all.into_iter()
            .map(|one| one.expect("every draft was lowered"))
            .collect()
    }

    /// Names the threads, and warns about kernels and functions that never run.
    pub(super) fn name(&self, threads: &mut [CommandThread], sink: &mut Sink) {
        for kernel in self.declared.kernels.iter().chain(&self.declared.functions) {
            if !self.launches.contains_key(&kernel.name) {
                sink.warn(
                    "never-launched",
                    kernel.span,
                    format!("`{}` is never run", kernel.name),
                    |d| d.label("no call names it"),
                );
            }
        }
        for (CommandThread { thread, .. }, (name, launch, number, of)) in
            threads.iter_mut().zip(&self.names)
        {
            thread.name = name.clone();
            if self.launches[name] > 1 {
                thread.name += &format!(".{launch}");
            }
            if *of > 1 {
                thread.name += &format!(".{number}");
            }
        }
    }
}

/// The address `offset` bytes behind the start of an object.
fn at_offset(loc: LocId, offset: i64) -> Expr {
    match offset {
        0 => Expr::Address(loc),
        n => {
            let (base, offset) = (Expr::Address(loc), Expr::Const(n));
            Expr::Bin(BinOp::Add, Ty::WORD, base.into(), offset.into())
        }
    }
}
