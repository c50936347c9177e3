//! Random host programs of CUDA streams and OpenCL queues, with plain accesses; some with threads
//! that wait for memory.

use std::fmt::Write as _;

use front::litmus::parse;
use program::host::{
    CallId, CommandId, CommandKind, CommandOrigin, Handle, HandleId, HandleKind, HostCommand,
    HostOp, HostProgram, HostQuery, Lane, LaneId, LaneKind, QueryId, QuerySubject, Ref, RuleSet,
    RuntimeCall,
};
use program::litmus::{LitmusTest, Observable};
use program::{
    CmpOp, Expr, Init, Instr, InstrId, Op, RegId, Register, Tag, Tags, Thread, ThreadId, Ty,
};
use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A step of a host thread.
enum Step {
    Access(String),
    Call(HostOp),
    /// Queries the status of an event until it is complete.
    Poll(Ref),
}

/// The probabilities of waits for memory.
#[derive(Clone, Copy, Default)]
struct Waits {
    /// A thread of a kernel waits, first.
    kernels: f64,
    /// A host thread waits between two calls.
    hosts: f64,
    /// A host thread waits for the status of an event (OpenCL).
    polls: f64,
    /// The probability that a kernel has many threads.
    wide: f64,
}

/// A program under construction.
struct Maker<'r> {
    rng: &'r mut Pcg64Mcg,
    cuda: bool,
    lanes: Vec<LaneKind>,
    handles: Vec<HandleKind>,
    /// The commands, with the code of their threads and their groups.
    commands: Vec<(HostCommand, Vec<String>)>,
    /// The steps of each host thread.
    hosts: Vec<Vec<Step>>,
    registers: u32,
    /// Whether some command maps memory.
    is_mapped: bool,
    waits: Waits,
}

impl Maker<'_> {
    fn access(&mut self) -> String {
        let place = if self.rng.random_bool(0.7) { "x" } else { "y" };
        self.registers += 1;
        // A location that some kernel waits for has an atomic type, which plain accesses cast away.
        let star = if self.cuda { "" } else { "*(global int *)" };
        if self.rng.random_bool(0.5) {
            format!("{star}{place} = {};", self.registers)
        } else {
            format!("int r{} = {star}{place};", self.registers)
        }
    }

    /// A loop that waits for memory with this probability, or nothing.
    fn spin(&mut self, often: f64) -> String {
        if often == 0.0 || !self.rng.random_bool(often) {
            return String::new();
        }
        let place = if self.rng.random_bool(0.7) { "x" } else { "y" };
        if !self.cuda {
            return format!(
                "while (atomic_load_explicit({place}, memory_order_relaxed, memory_scope_all_svm_devices) == 0) {{ }}\n"
            );
        }
        // Each gets a separate name, as a host thread may have several.
        self.registers += 1;
        let n = self.registers;
        format!(
            "cuda::atomic_ref<int, cuda::thread_scope_system> f{n}({place});\n\
             while (f{n}.load(cuda::memory_order_relaxed) == 0) {{ }}\n"
        )
    }

    /// Code for a command that maps memory or ends a mapping: it reads the memory, and may write it
    /// back.
    fn mapping(&mut self) -> String {
        let place = if self.rng.random_bool(0.8) { "x" } else { "y" };
        self.registers += 1;
        let (n, back) = (self.registers, self.rng.random_bool(0.5));
        let at = format!("*(global int *){place}");
        format!("int r{n} = {at};")
            + &if back {
                format!("\n{at} = r{n};")
            } else {
                String::new()
            }
    }

    fn lane(&mut self) -> LaneId {
        LaneId(self.rng.random_range(0..self.lanes.len()) as u16)
    }

    /// Events that a call may name: user events, and events of commands that this thread enqueued
    /// earlier.
    fn events(&mut self, mine: &[CommandId]) -> Vec<Ref> {
        let mut all: Vec<Ref> = mine.iter().map(|c| Ref::Command(*c)).collect();
        all.extend((0..self.handles.len() as u16).map(|h| Ref::Handle(HandleId(h))));
        all.retain(|_| self.rng.random_bool(0.3));
        all
    }

    fn command(&mut self, mine: &[CommandId]) -> (HostOp, CommandId) {
        let id = CommandId(self.commands.len() as u16);
        let callback = !self.cuda && !mine.is_empty() && self.rng.random_bool(0.1);
        let kind = match self.rng.random_range(0..10u32) {
            _ if callback => {
                let of = Ref::Command(mine[self.rng.random_range(0..mine.len())]);
                CommandKind::Callback {
                    of,
                    complete: self.rng.random_bool(0.7),
                }
            }
            0 if !self.cuda => CommandKind::Marker,
            1 | 2 if !self.cuda => CommandKind::Barrier,
            3 => CommandKind::Copy,
            4 if !self.cuda => CommandKind::Map,
            5 if !self.cuda && self.is_mapped => CommandKind::Unmap,
            _ => CommandKind::Kernel,
        };
        self.is_mapped |= kind == CommandKind::Map;
        let threads = match kind {
            CommandKind::Marker | CommandKind::Barrier => 0,
            CommandKind::Kernel
                if self.waits.wide > 0.0 && self.rng.random_bool(self.waits.wide) =>
            {
                self.rng.random_range(3..=4)
            }
            CommandKind::Kernel => self.rng.random_range(1..=4) / 3 + 1,
            _ => 1,
        };
        let code = match kind {
            CommandKind::Map | CommandKind::Unmap => vec![self.mapping()],
            CommandKind::Kernel => {
                let often = self.waits.kernels;
                (0..threads)
                    .map(|_| self.spin(often) + &self.access())
                    .collect()
            }
            _ => vec![self.access(); threads as usize],
        };
        let groups = (0..threads).collect();
        let lane = (!callback).then(|| self.lane());
        let waits = if self.cuda || callback {
            Vec::new()
        } else {
            self.events(mine)
        };
        let blocking = !callback && self.rng.random_bool(0.1);
        let name = format!("C{}", id.0);
        let command = HostCommand {
            name,
            kind,
            lane,
            waits,
            origin: CommandOrigin::Start,
            threads: Vec::new(),
            groups,
            programmatic: false,
        };
        self.commands.push((command, code));
        (
            HostOp::Enqueue {
                command: id,
                blocking,
            },
            id,
        )
    }

    fn steps(&mut self) -> Vec<Step> {
        let (mut steps, mut mine) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.random_range(2..=5) {
            let handle = HandleId(0);
            let spin = self.spin(self.waits.hosts);
            if !spin.is_empty() {
                steps.push(Step::Access(spin));
            }
            if self.waits.polls > 0.0 && self.rng.random_bool(self.waits.polls) {
                steps.extend(self.events(&mine).into_iter().take(1).map(Step::Poll));
            }
            steps.push(match self.rng.random_range(0..12u32) {
                0 | 1 => Step::Access(self.access()),
                2 => Step::Call(HostOp::Finish(self.lane())),
                3 if self.cuda => Step::Call(HostOp::SyncDevice(0)),
                3 => Step::Call(HostOp::Flush(self.lane())),
                4 if self.cuda => Step::Call(HostOp::Record(handle, self.lane())),
                5 if self.cuda => Step::Call(HostOp::LaneWait(self.lane(), handle)),
                4 | 5 => Step::Call(HostOp::Wait(self.events(&mine))),
                6 if self.cuda => Step::Call(HostOp::Wait(vec![Ref::Handle(handle)])),
                _ => {
                    let (op, id) = self.command(&mine);
                    mine.push(id);
                    Step::Call(op)
                }
            });
            // Otherwise nearly every program hangs, as nothing submits its commands.
            if !self.cuda && self.waits.hosts > 0.0 && self.rng.random_bool(0.8) {
                let lane = mine
                    .last()
                    .and_then(|c| self.commands[usize::from(c.0)].0.lane);
                steps.extend(lane.map(|l| Step::Call(HostOp::Flush(l))));
            }
        }
        steps
    }
}

/// A random program.
pub fn program(rng: &mut Pcg64Mcg, cuda: bool) -> LitmusTest {
    spinning(rng, cuda, Waits::default())
}

/// A random program of CUDA in which threads of kernels wait for memory.
pub fn waiting(rng: &mut Pcg64Mcg) -> LitmusTest {
    spinning(
        rng,
        true,
        Waits {
            kernels: 0.3,
            ..Waits::default()
        },
    )
}

/// A random program in which kernels of many threads wait for memory, and hosts wait for it between
/// their calls.
pub fn lively(rng: &mut Pcg64Mcg, cuda: bool) -> LitmusTest {
    let polls = if cuda { 0.0 } else { 0.2 };
    spinning(
        rng,
        cuda,
        Waits {
            kernels: 0.3,
            hosts: 0.12,
            polls,
            wide: 0.15,
        },
    )
}

fn spinning(rng: &mut Pcg64Mcg, cuda: bool, waits: Waits) -> LitmusTest {
    let stream = |blocking| LaneKind::Stream { blocking };
    let lanes = match cuda {
        true => vec![LaneKind::Null, stream(true), stream(true), stream(false)],
        false => vec![
            LaneKind::InOrder,
            LaneKind::OutOfOrder,
            LaneKind::OutOfOrder,
        ],
    };
    let handles = vec![if cuda {
        HandleKind::Recorded
    } else {
        HandleKind::User
    }];
    let mut maker = Maker {
        rng,
        cuda,
        lanes,
        handles,
        commands: Vec::new(),
        hosts: Vec::new(),
        registers: 0,
        is_mapped: false,
        waits,
    };
    for _ in 0..maker.rng.random_range(1..=2) {
        let steps = maker.steps();
        maker.hosts.push(steps);
    }
    if !cuda && maker.rng.random_bool(0.8) {
        let host = maker.rng.random_range(0..maker.hosts.len());
        let last = if waits.hosts > 0.0 {
            1
        } else {
            maker.hosts[host].len()
        };
        let at = maker.rng.random_range(0..=last);
        maker.hosts[host].insert(at, Step::Call(HostOp::SetUser(HandleId(0))));
    }
    build(maker)
}

/// Writes the accesses as a test, and adds the calls to the test that the front end reads from it.
fn build(maker: Maker<'_>) -> LitmusTest {
    let Maker {
        cuda,
        lanes,
        handles,
        commands,
        hosts,
        waits,
        ..
    } = maker;
    let (dialect, group) = if cuda {
        ("cuda", "block")
    } else {
        ("opencl", "work_group")
    };
    let mut text = format!("name = \"T\"\ndialect = \"{dialect}\"\n[memory]\n");
    let is_atomic = !cuda && waits.kernels > 0.0;
    let kind = if is_atomic {
        "type = \"atomic_int\", kind = \"svm-fine-atomic\""
    } else {
        "type = \"int\""
    };
    write!(text, "x = {{ {kind} }}\ny = {{ {kind} }}\n").expect("a string");
    let mut lines = Vec::new();
    for steps in &hosts {
        lines.push(text.lines().count() as u32 + 4);
        let accesses = steps.iter().filter_map(|s| match s {
            Step::Access(code) => Some(code.trim_end()),
            Step::Call(_) | Step::Poll(_) => None,
        });
        let code = accesses
            .chain(["int z = 0;"])
            .collect::<Vec<_>>()
            .join("\n");
        writeln!(text, "[[thread]]\nhost = true\ncode = '''\n{code}\n'''").expect("a string");
    }
    for (i, code) in commands.iter().flat_map(|(_, codes)| codes).enumerate() {
        writeln!(text, "[[thread]]\n{group} = {i}\ncode = '''\n{code}\n'''").expect("a string");
    }
    let mut test = parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0);
    let mut next = hosts.len();
    let mut host = HostProgram {
        rules: RuleSet::default(),
        ..HostProgram::default()
    };
    for (mut command, codes) in commands {
        command.threads = (next..next + codes.len())
            .map(|t| ThreadId(t as u16))
            .collect();
        next += codes.len();
        let tag = match command.kind {
            CommandKind::Map => Some(Tag::Map),
            CommandKind::Unmap => Some(Tag::Unmap),
            _ => None,
        };
        for instr in codes_of(&mut test, &command) {
            if let (Some(tag), Op::Load { access, .. } | Op::Store { access, .. }) =
                (tag, &mut instr.op)
            {
                access.tags = Tags::of(&[tag]);
            }
        }
        host.commands.push(command);
    }
    for (t, steps) in hosts.into_iter().enumerate() {
        host_code(
            (ThreadId(t as u16), lines[t]),
            &mut test.program.threads[t],
            steps,
            &mut host,
        );
    }
    let lane = |(i, kind): (usize, LaneKind)| Lane {
        name: format!("q{i}"),
        kind,
        device: 0,
    };
    host.lanes = lanes.into_iter().enumerate().map(lane).collect();
    host.handles = handles
        .into_iter()
        .enumerate()
        .map(|(i, kind)| Handle {
            name: format!("e{i}"),
            kind,
            status: 0,
        })
        .collect();
    test.program.host = Some(Box::new(host));
    // Observes every value that threads read.
    for t in test.program.thread_ids() {
        let regs = &test.program.thread(t).regs;
        let read = (0..regs.len() as u16).filter(|r| regs[usize::from(*r)].name.starts_with('r'));
        test.observe
            .extend(read.map(|r| Observable::Reg(t, RegId(r))));
    }
    test
}

/// Puts the calls of a host thread between its accesses.
fn host_code(
    (t, mut line): (ThreadId, u32),
    thread: &mut Thread,
    steps: Vec<Step>,
    host: &mut HostProgram,
) {
    let old = std::mem::take(&mut thread.code);
    let span = old.first().map(|i: &Instr| i.span).expect("some code");
    // The new index of each instruction; the target of a jump to the first instruction after a
    // step.
    let (mut places, mut next) = (vec![0; old.len()], 0);
    let mut ends = vec![None; old.len() + 1];
    let mut new: Vec<(Instr, Option<usize>)> = Vec::new();
    let plain = |op: Op, text: String| Instr::new(InstrId::default(), op, span, 0.into(), text);
    for step in steps
        .into_iter()
        .chain([Step::Access("int z = 0;".to_owned())])
    {
        match step {
            Step::Access(code) => {
                let lines = code.trim_end().lines().count() as u32;
                let first = next;
                while next < old.len() && old[next].line.number < line + lines {
                    places[next] = new.len();
                    new.push((old[next].clone(), Some(first)));
                    next += 1;
                }
                line += lines;
                ends[next].get_or_insert(new.len());
            }
            Step::Call(op) => {
                let call = CallId(host.calls.len() as u16);
                if let HostOp::Enqueue { command, .. } = op {
                    host.commands[usize::from(command.0)].origin = CommandOrigin::Call(call);
                }
                let text = format!("{op:?}");
                new.push((plain(Op::Call(call), text), None));
                host.calls.push(RuntimeCall { thread: t, op });
            }
            Step::Poll(of) => {
                let dst = RegId(thread.regs.len() as u16);
                let name = format!("status{}", dst.0);
                thread.regs.push(Register {
                    name,
                    ty: Ty::WORD,
                    init: Init::Int(0),
                });
                let (target, text) = (new.len(), format!("poll {of:?}"));
                let is_open = Expr::Cmp(
                    CmpOp::Ne,
                    Ty::WORD,
                    Box::new(Expr::Reg(dst)),
                    Box::new(Expr::Const(0)),
                );
                let query = QueryId(host.queries.len() as u16);
                host.queries.push(HostQuery {
                    thread: t,
                    of: QuerySubject::Event(of),
                    never: None,
                });
                new.push((plain(Op::Status { dst, of: query }, text.clone()), None));
                new.push((
                    plain(
                        Op::Branch {
                            cond: is_open,
                            target,
                        },
                        text,
                    ),
                    None,
                ));
            }
        }
    }
    assert_eq!(next, old.len(), "every instruction belongs to a step");
    let moved = |(mut instr, first): (Instr, Option<usize>)| {
        if let (Op::Branch { target, .. }, Some(first)) = (&mut instr.op, first) {
            *target = ends[*target]
                .filter(|_| *target != first)
                .unwrap_or_else(|| places[*target]);
        }
        instr
    };
    thread.code = new.into_iter().map(moved).collect();
}

/// The instructions of a command.
fn codes_of<'t>(
    test: &'t mut LitmusTest,
    command: &HostCommand,
) -> impl Iterator<Item = &'t mut Instr> {
    let threads = command.threads.clone();
    let all = test.program.threads.iter_mut().enumerate();
    all.filter(move |(t, _)| threads.contains(&ThreadId(*t as u16)))
        .flat_map(|(_, thread)| thread.code.iter_mut())
}
