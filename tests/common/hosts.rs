//! Random host programs of CUDA streams and OpenCL queues, with plain accesses.

use std::fmt::Write as _;

use fencepost::litmus::{LitmusTest, Observable, parse};
use fencepost::program::host::{
    Call, CallId, Command, CommandId, CommandKind, Handle, HandleId, HandleKind, HostOp, HostProgram, Lane,
    LaneId, LaneKind, Origin, Ref, Rules,
};
use fencepost::program::{Instr, Op, RegId, Tags, ThreadId};
use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A step of a host thread.
enum Step {
    Access(String),
    Call(HostOp),
}

/// A program while it is made.
struct Maker<'r> {
    rng: &'r mut Pcg64Mcg,
    cuda: bool,
    lanes: Vec<LaneKind>,
    handles: Vec<HandleKind>,
    /// By command, with the code of its threads and their groups.
    commands: Vec<(Command, Vec<String>)>,
    /// By host thread.
    hosts: Vec<Vec<Step>>,
    registers: u32,
    /// Whether some command maps memory.
    is_mapped: bool,
    /// How often a thread of a kernel waits for memory first.
    spins: f64,
}

impl Maker<'_> {
    fn access(&mut self) -> String {
        let place = if self.rng.random_bool(0.7) { "x" } else { "y" };
        self.registers += 1;
        let star = if self.cuda { "" } else { "*" };
        if self.rng.random_bool(0.5) {
            format!("{star}{place} = {};", self.registers)
        } else {
            format!("int r{} = {star}{place};", self.registers)
        }
    }

    /// What waits for memory, in a kernel of CUDA, or nothing.
    fn spin(&mut self) -> String {
        if self.spins == 0.0 || !self.rng.random_bool(self.spins) {
            return String::new();
        }
        let place = if self.rng.random_bool(0.7) { "x" } else { "y" };
        format!(
            "cuda::atomic_ref<int, cuda::thread_scope_system> f({place});\n\
             while (f.load(cuda::memory_order_relaxed) == 0) {{ }}\n"
        )
    }

    /// What maps memory, or ends that: it reads it, and perhaps writes it back.
    fn mapping(&mut self) -> String {
        let place = if self.rng.random_bool(0.8) { "x" } else { "y" };
        self.registers += 1;
        let (n, back) = (self.registers, self.rng.random_bool(0.5));
        format!("int r{n} = *{place};") + &if back { format!("\n*{place} = r{n};") } else { String::new() }
    }

    fn lane(&mut self) -> LaneId {
        LaneId(self.rng.random_range(0..self.lanes.len()) as u16)
    }

    /// Events that a call may name: those of commands enqueued before by this thread, and user events.
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
                CommandKind::Callback { of, complete: self.rng.random_bool(0.7) }
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
            CommandKind::Kernel => self.rng.random_range(1..=4) / 3 + 1,
            _ => 1,
        };
        let code = match kind {
            CommandKind::Map | CommandKind::Unmap => vec![self.mapping()],
            CommandKind::Kernel => (0..threads).map(|_| self.spin() + &self.access()).collect(),
            _ => vec![self.access(); threads as usize],
        };
        let groups = (0..threads).collect();
        let lane = (!callback).then(|| self.lane());
        let waits = if self.cuda || callback { Vec::new() } else { self.events(mine) };
        let blocking = !callback && self.rng.random_bool(0.1);
        let name = format!("C{}", id.0);
        let command = Command { name, kind, lane, waits, origin: Origin::Start, threads: Vec::new(), groups };
        self.commands.push((command, code));
        (HostOp::Enqueue { command: id, blocking }, id)
    }

    fn steps(&mut self) -> Vec<Step> {
        let (mut steps, mut mine) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.random_range(2..=5) {
            let handle = HandleId(0);
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
        }
        steps
    }
}

/// A random program.
pub fn program(rng: &mut Pcg64Mcg, cuda: bool) -> LitmusTest {
    spinning(rng, cuda, 0.0)
}

/// A random program of CUDA in which threads of kernels wait for memory.
pub fn waiting(rng: &mut Pcg64Mcg) -> LitmusTest {
    spinning(rng, true, 0.3)
}

fn spinning(rng: &mut Pcg64Mcg, cuda: bool, spins: f64) -> LitmusTest {
    let stream = |blocking| LaneKind::Stream { blocking };
    let lanes = match cuda {
        true => vec![LaneKind::Null, stream(true), stream(true), stream(false)],
        false => vec![LaneKind::InOrder, LaneKind::OutOfOrder, LaneKind::OutOfOrder],
    };
    let handles = vec![if cuda { HandleKind::Recorded } else { HandleKind::User }];
    let mut maker = Maker {
        rng,
        cuda,
        lanes,
        handles,
        commands: Vec::new(),
        hosts: Vec::new(),
        registers: 0,
        is_mapped: false,
        spins,
    };
    for _ in 0..maker.rng.random_range(1..=2) {
        let steps = maker.steps();
        maker.hosts.push(steps);
    }
    if !cuda && maker.rng.random_bool(0.8) {
        let host = maker.rng.random_range(0..maker.hosts.len());
        let at = maker.rng.random_range(0..=maker.hosts[host].len());
        maker.hosts[host].insert(at, Step::Call(HostOp::SetUser(HandleId(0))));
    }
    build(maker)
}

/// Writes the accesses as a test, and adds the calls to what is read from it.
fn build(maker: Maker<'_>) -> LitmusTest {
    let Maker { cuda, lanes, handles, commands, hosts, .. } = maker;
    let (dialect, group) = if cuda { ("cuda", "block") } else { ("opencl", "work_group") };
    let mut text = format!("name = \"T\"\ndialect = \"{dialect}\"\n[memory]\n");
    text += "x = { type = \"int\" }\ny = { type = \"int\" }\n";
    for steps in &hosts {
        let accesses = steps.iter().filter_map(|s| match s {
            Step::Access(code) => Some(code.as_str()),
            Step::Call(_) => None,
        });
        let code = accesses.chain(["int z = 0;"]).collect::<Vec<_>>().join("\n");
        writeln!(text, "[[thread]]\nhost = true\ncode = '''\n{code}\n'''").expect("a string");
    }
    for (i, code) in commands.iter().flat_map(|(_, codes)| codes).enumerate() {
        writeln!(text, "[[thread]]\n{group} = {i}\ncode = '''\n{code}\n'''").expect("a string");
    }
    let mut test = parse("t.toml", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
    let mut next = hosts.len();
    let mut host = HostProgram { rules: Rules::default(), ..HostProgram::default() };
    for (mut command, codes) in commands {
        command.threads = (next..next + codes.len()).map(|t| ThreadId(t as u16)).collect();
        next += codes.len();
        let tag = match command.kind {
            CommandKind::Map => Some("MAP"),
            CommandKind::Unmap => Some("UNMAP"),
            _ => None,
        };
        for instr in codes_of(&mut test, &command) {
            if let (Some(tag), Op::Load { access, .. } | Op::Store { access, .. }) = (tag, &mut instr.op) {
                access.tags = Tags::of(&[tag]);
            }
        }
        host.commands.push(command);
    }
    for (t, steps) in hosts.into_iter().enumerate() {
        let thread = &mut test.program.threads[t];
        let old = std::mem::take(&mut thread.code);
        let (line, span) = old.first().map(|i: &Instr| (i.line, i.span)).expect("some code");
        let mut old = old.into_iter();
        for step in steps {
            let op = match step {
                Step::Access(_) => {
                    // All micro-ops of the statement, its access among them.
                    let mut touched = false;
                    while !touched {
                        let instr = old.next().expect("an access per statement");
                        touched = matches!(instr.op, Op::Load { .. } | Op::Store { .. });
                        thread.code.push(instr);
                    }
                    continue;
                }
                Step::Call(op) => op,
            };
            let call = CallId(host.calls.len() as u16);
            if let HostOp::Enqueue { command, .. } = op {
                host.commands[usize::from(command.0)].origin = Origin::Call(call);
            }
            let text = format!("{op:?}");
            thread.code.push(Instr { op: Op::Call(call), line, span, text });
            host.calls.push(Call { thread: ThreadId(t as u16), op });
        }
        thread.code.extend(old);
    }
    let lane = |(i, kind): (usize, LaneKind)| Lane { name: format!("q{i}"), kind, device: 0 };
    host.lanes = lanes.into_iter().enumerate().map(lane).collect();
    host.handles =
        handles.into_iter().enumerate().map(|(i, kind)| Handle { name: format!("e{i}"), kind }).collect();
    test.program.host = Some(Box::new(host));
    // Outcomes show all that threads read.
    for t in test.program.thread_ids() {
        let regs = &test.program.thread(t).regs;
        let read = (0..regs.len() as u16).filter(|r| regs[usize::from(*r)].name.starts_with('r'));
        test.observe.extend(read.map(|r| Observable::Reg(t, RegId(r))));
    }
    test
}

/// The instructions of a command.
fn codes_of<'t>(test: &'t mut LitmusTest, command: &Command) -> impl Iterator<Item = &'t mut Instr> {
    let threads = command.threads.clone();
    let all = test.program.threads.iter_mut().enumerate();
    all.filter(move |(t, _)| threads.contains(&ThreadId(*t as u16))).flat_map(|(_, thread)| thread.code.iter_mut())
}
