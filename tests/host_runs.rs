//! Runs of host programs against the launch graph, on random programs of CUDA streams and OpenCL queues.
//!
//! The executor knows states of commands and what each waits for; the launch graph knows edges. Neither uses the other.
//!
//! - Some run of the executor ends in a deadlock if and only if the graph of some order of calls has waits that cannot end.
//! - Where none has: the executor finds a race if and only if two accesses conflict that, in some order of calls, the graph
//!   leaves unordered. Accesses are plain, so nothing but the host program orders them.
//! - A run that deadlocks says who waits for what.
//!
//! The tests of host programs are run, too: what runs show is what the model of their language says.
//!
//! `FENCEPOST_PROGRAMS` sets the number of random programs, `FENCEPOST_SEED` the first seed.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use common::suite::{files, number};
use fencepost::check::liveness::{Liveness, ProgressModel, Setting};
use fencepost::check::{Engine, Limits, operational};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::model::load_shipped;
use fencepost::program::host::{
    Call, CallId, Command, CommandId, CommandKind, Handle, HandleId, HandleKind, HostOp, HostProgram, Lane,
    LaneId, LaneKind, Launches, Origin, Ref, Rules,
};
use fencepost::program::{Instr, Op, ThreadId};
use fencepost::simt::record::HazardKind;
use fencepost::simt::schedule::Observation;
use fencepost::simt::{Early, MachineMemory, Options, Schedule, observe};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::Verdict;
use rand::{Rng, SeedableRng};
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
            _ => CommandKind::Kernel,
        };
        let threads = match kind {
            CommandKind::Marker | CommandKind::Barrier => 0,
            CommandKind::Kernel => self.rng.random_range(1..=4) / 3 + 1,
            _ => 1,
        };
        let code = (0..threads).map(|_| self.access()).collect();
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
fn program(rng: &mut Pcg64Mcg, cuda: bool) -> LitmusTest {
    let stream = |blocking| LaneKind::Stream { blocking };
    let lanes = match cuda {
        true => vec![LaneKind::Null, stream(true), stream(true), stream(false)],
        false => vec![LaneKind::InOrder, LaneKind::OutOfOrder, LaneKind::OutOfOrder],
    };
    let handles = vec![if cuda { HandleKind::Recorded } else { HandleKind::User }];
    let mut maker = Maker { rng, cuda, lanes, handles, commands: Vec::new(), hosts: Vec::new(), registers: 0 };
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
    test
}

/// Whether two accesses conflict that some order of calls leaves unordered.
fn races(test: &LitmusTest, launches: &Launches) -> bool {
    let mut accesses: Vec<(ThreadId, usize, String, bool)> = Vec::new();
    for t in test.program.thread_ids() {
        for (at, instr) in test.program.thread(t).code.iter().enumerate() {
            match &instr.op {
                Op::Load { addr, .. } => accesses.push((t, at, format!("{addr:?}"), false)),
                Op::Store { addr, .. } => accesses.push((t, at, format!("{addr:?}"), true)),
                _ => {}
            }
        }
    }
    let operations: Vec<(ThreadId, usize)> = accesses.iter().map(|a| (a.0, a.1)).collect();
    launches.ways.iter().any(|graph| {
        let before = graph.ordered(&operations, false);
        (0..accesses.len()).any(|i| {
            (0..i).any(|j| {
                let (a, b) = (&accesses[i], &accesses[j]);
                a.0 != b.0 && a.2 == b.2 && (a.3 || b.3) && !before[i][j] && !before[j][i]
            })
        })
    })
}

fn run(test: &LitmusTest, memory: MachineMemory) -> Observation {
    let options = Options { memory, early: Early::None, states: 100_000, ..Options::default() };
    observe(test, &options, Schedule::Exhaustive).unwrap_or_else(|e| panic!("{e}\n{}", test.file.text))
}

fn compare(cuda: bool) {
    let (programs, first) = (number("FENCEPOST_PROGRAMS", 40), number("FENCEPOST_SEED", 1));
    let memory = if cuda { MachineMemory::Cuda } else { MachineMemory::OpenCl };
    let (mut stuck, mut racy, mut fine, mut skipped) = (0, 0, 0, 0);
    for seed in first..first + programs {
        let test = program(&mut Pcg64Mcg::seed_from_u64(seed), cuda);
        let what = || format!("seed {seed}:\n{}\n{:#?}", test.file.text, test.program.host);
        let Ok(launches) = Launches::of(&test.program) else {
            skipped += 1;
            continue;
        };
        let seen = run(&test, memory);
        if !seen.complete {
            skipped += 1;
            continue;
        }
        assert_eq!(seen.ended.deadlock > 0, launches.stuck.is_some(), "{:?}\n{}", seen.ended, what());
        assert_eq!(run(&test, MachineMemory::Sc).ended.deadlock > 0, launches.stuck.is_some(), "{}", what());
        if launches.stuck.is_some() {
            stuck += 1;
            for stop in &seen.stops {
                // A marker or barrier has no threads that could say so.
                let told = stop.why.iter().any(|w| w.contains("never completes: it waits for"));
                assert!(told || stop.ends.iter().any(|e| !e.waits.is_empty()), "{:?}\n{}", stop.why, what());
            }
            continue;
        }
        let expected = races(&test, &launches);
        assert_eq!(!seen.hazards.is_empty(), expected, "{:?}\n{}", seen.hazards, what());
        *(if expected { &mut racy } else { &mut fine }) += 1;
    }
    println!("{programs} programs: {racy} racy, {fine} race-free, {stuck} stuck, {skipped} skipped");
    assert!(racy > 0 && fine > 0 && (cuda || stuck > 0) && skipped * 5 < programs);
}

#[test]
fn streams() {
    compare(true);
}

#[test]
fn queues() {
    compare(false);
}

/// How a run of all schedules ends, submitted at once and by flushes alone.
///
/// # Errors
/// If the machine refuses the test.
fn both(test: &LitmusTest, memory: MachineMemory) -> Result<[Observation; 2], String> {
    let run = |lazy| {
        let options = Options { memory, early: Early::None, states: 100_000, lazy, ..Options::default() };
        let seen = observe(test, &options, Schedule::Exhaustive);
        seen.inspect_err(|e| assert!(e.starts_with("not in this machine: "), "{}: {e}", test.name))
    };
    Ok([run(false)?, run(true)?])
}

/// Every test of host programs: what runs show is what the model of the test's language says.
#[test]
fn tests_of_host_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/host");
    let limits = Limits { bound: 4, timeout: Some(Duration::from_secs(20)) };
    let (mut tests, mut stuck, mut racy) = (0, 0, 0);
    let (mut differences, mut refused) = (Vec::new(), Vec::new());
    for path in files(&root, &["toml"]) {
        for test in
            read_path(&path).unwrap_or_else(|e| panic!("{e:?}")).iter().filter(|t| t.program.host.is_some())
        {
            let dialect = test.program.dialect;
            let memory = MachineMemory::of(dialect, dialect.default_model()).unwrap_or(MachineMemory::Weak);
            let model = load_shipped(memory.model(), &signature()).expect("shipped").expect("valid");
            let [eager, lazy] = match both(test, memory) {
                Ok(seen) => seen,
                Err(why) => {
                    refused.push(format!("{}: {why}", test.name));
                    continue;
                }
            };
            tests += 1;
            let mut differ = |what: String| differences.push(format!("{}: {what}", test.name));
            let hang = |seen: &Observation| seen.ended.deadlock + seen.ended.livelock > 0;
            let setting = Setting::new(test, &model);
            let answer = Liveness::new(&setting, Engine::Auto, limits, &[]).ask(ProgressModel::Fair);
            // Whether a command starts whose queue is never flushed is up to the implementation.
            match answer.verdict {
                Verdict::Hangs if !hang(&eager) && !hang(&lazy) => {
                    differ("the engine says hangs, and no run does".into())
                }
                Verdict::Terminates if hang(&eager) => {
                    differ(format!("a run hangs: {:?}", eager.stops.first().map(|s| &s.why)));
                }
                _ => {}
            }
            if hang(&eager) {
                stuck += 1;
                continue;
            }
            let held = operational::hold(test, &model, Engine::Auto, limits, &[], &eager);
            if let Some(defect) = held.defect {
                differ(defect);
            }
            for o in held.observed.iter().filter(|o| o.allowed == Some(false)) {
                differ(format!("observed, and forbidden: {:?}", o.state));
            }
            if !memory.knows_races() {
                continue;
            }
            let faults = operational::faults(test, &model, Engine::Auto, limits, &[], &eager);
            if let Some(defect) = faults.defect {
                differ(defect);
            }
            let races = eager.hazards.iter().any(|h| h.hazard.kind == HazardKind::Race);
            racy += u32::from(races);
            if eager.complete && faults.race == Some(Verdict::Racy) && !races {
                differ("the model knows a race, and no run has it".into());
            }
        }
    }
    println!("{tests} tests: {stuck} stuck, {racy} racy; {} refused: {refused:#?}", refused.len());
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(tests > 5 * refused.len() && stuck > 0 && racy > 0);
}
