//! Compares runs of host programs with the launch graph, on random programs of CUDA streams and
//! OpenCL queues.
//!
//! The executor tracks states of commands and their conditions; the launch graph has edges. Neither
//! uses the other.
//!
//! - Some run of the executor ends in a deadlock exactly if the graph of some order of calls has
//!   waits that cannot end.
//! - Without such waits, the executor finds a race exactly if two accesses conflict that the graph
//!   of some order of calls leaves unordered. Accesses are plain, so only the host program orders
//!   them.
//! - Without such waits, it finds memory used against its mapping exactly if the graph has such a
//!   use.
//! - A deadlocked run reports which thread waits for which.
//! - If threads wait for memory or for the status of an event, some run hangs exactly if the engine
//!   says so.
//! - Commands that wait for a flush never start exactly if the graph says that nothing submits
//!   them.
//! - A loop that queries until all is complete acts like the call that waits for it.
//! - Random runs, warps with one program counter, groups in sequence and room for few blocks show
//!   nothing that runs of all schedules do not show, and hang exactly if these do.
//!
//! The tests of host programs run, too: runs must show the verdicts of the model of their language.
//!
//! `FENCEPOST_SEED` sets the first seed of random programs, `testkit::suite` their number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::program::host::{
    CallId, CommandId, CommandKind, CommandOrigin, HostOp, HostQuery, LaunchGraph, LaunchOrders,
    QueryId, QuerySubject,
};
use fencepost::program::{Expr, Init, Instr, Op, RegId, Register, ThreadId, Ty};
use fencepost::simt::record::HazardKind;
use fencepost::simt::schedule::{Observation, StopKind};
use fencepost::simt::{
    Early, LaunchOptions, MachineMemory, RunOptions, Schedule, Scheduling, observe,
};
use fencepost::verdict::{Reason, Verdict};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use testkit::hosts::{lively, program, waiting};
use testkit::suite::{files, is_long, number, programs, sample, shipped};

/// An access: thread and instruction, location, whether it writes.
type Touch = (ThreadId, usize, String, bool);

fn touches(test: &LitmusTest) -> Vec<Touch> {
    let mut accesses: Vec<Touch> = Vec::new();
    for t in test.program.thread_ids() {
        for (at, instr) in test.program.thread(t).code.iter().enumerate() {
            match &instr.op {
                Op::Load { addr, .. } => accesses.push((t, at, format!("{addr:?}"), false)),
                Op::Store { addr, .. } => accesses.push((t, at, format!("{addr:?}"), true)),
                _ => {}
            }
        }
    }
    accesses
}

/// Whether two accesses conflict that some order of calls leaves unordered.
fn races(test: &LitmusTest, launches: &LaunchOrders) -> bool {
    let accesses = touches(test);
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

/// Whether, in some order of calls, memory is used against its mapping: by a command while it is
/// mapped, or by the host while it is not.
fn misuses_mappings(test: &LitmusTest, launches: &LaunchOrders) -> bool {
    let host = test.program.host.as_deref().expect("a host program");
    let accesses = touches(test);
    let operations: Vec<(ThreadId, usize)> = accesses.iter().map(|a| (a.0, a.1)).collect();
    let mappings = host.mappings(&test.program);
    let kind = |t: ThreadId| host.command_of(t).map(|c| host.command(c).kind);
    let of = |c: CommandId, place: &str| -> Vec<usize> {
        let mine = |a: &Touch| host.command_of(a.0) == Some(c) && a.2 == place;
        (0..accesses.len())
            .filter(|&i| mine(&accesses[i]))
            .collect()
    };
    let wrong = |graph: &LaunchGraph| {
        let before = graph.ordered(&operations, false);
        accesses
            .iter()
            .enumerate()
            .any(|(i, (thread, _, place, writes))| {
                let is_host = test.program.thread(*thread).place.host;
                let begun: Vec<(usize, Option<CommandId>)> = mappings
                    .iter()
                    .flat_map(|m| of(m.0, place).into_iter().map(|b| (b, m.1)))
                    .collect();
                let ends = |end: Option<CommandId>| end.map_or(Vec::new(), |end| of(end, place));
                if is_host {
                    let fits = |&(b, end): &(usize, Option<CommandId>)| {
                        accesses[b].3 == *writes
                            && before[b][i]
                            && ends(end).iter().all(|&u| before[i][u])
                    };
                    return !begun.is_empty() && !begun.iter().any(fits);
                }
                let is_command =
                    !matches!(kind(*thread), Some(CommandKind::Map | CommandKind::Unmap));
                is_command
                    && begun.iter().any(|&(b, end)| {
                        let conflict = *writes || accesses[b].3;
                        conflict && !before[i][b] && !ends(end).iter().any(|&u| before[u][i])
                    })
            })
    };
    launches.ways.iter().any(wrong)
}

fn options(memory: MachineMemory) -> RunOptions {
    RunOptions {
        memory,
        early: Early::None,
        states: 100_000,
        steps: 2_000,
        ..RunOptions::default()
    }
}

fn run(test: &LitmusTest, options: &RunOptions) -> Observation {
    let seen = observe(test, options, Schedule::Exhaustive);
    seen.unwrap_or_else(|e| panic!("{e}\n{}", test.file.text))
}

fn has(seen: &Observation, kinds: &[HazardKind]) -> bool {
    seen.hazards.iter().any(|h| kinds.contains(&h.hazard.kind))
}

fn hangs(seen: &Observation) -> bool {
    seen.ended.by(StopKind::Deadlock) + seen.ended.by(StopKind::Livelock) > 0
}

/// Ways to schedule the threads of a test: the rule that picks threads, and the room for blocks.
fn schedulings(base: &RunOptions) -> Vec<RunOptions> {
    let resident = |n| LaunchOptions {
        resident: n,
        ..base.launch
    };
    let with = |scheduling, n| RunOptions {
        scheduling,
        launch: resident(n),
        ..*base
    };
    let all = |s: Scheduling| [with(s, None), with(s, Some(1)), with(s, Some(2))];
    Scheduling::ALL.into_iter().flat_map(all).collect()
}

/// Compares random runs, and runs under other schedulings, with all runs: they show nothing else.
/// With `whole`, they also hang exactly if runs of any thread do; that holds if no thread waits for
/// another through memory.
///
/// # Errors
/// The further behaviour that they show.
fn schedules(
    test: &LitmusTest,
    base: &RunOptions,
    all: &Observation,
    whole: bool,
) -> Result<u64, String> {
    const UNDEFINED: [HazardKind; 3] = [
        HazardKind::Race,
        HazardKind::WhileMapped,
        HazardKind::Unmapped,
    ];
    let mut runs = 0;
    for options in schedulings(base) {
        for schedule in [Schedule::Random { runs: 10, seed: 1 }, Schedule::Exhaustive] {
            let options = RunOptions {
                states: 300,
                ..options
            };
            let seen = match observe(test, &options, schedule) {
                Ok(seen) => seen,
                // The threads of a warp run the same code.
                Err(why) if why.starts_with("not in this machine: ") => continue,
                Err(why) => return Err(why),
            };
            let under = || {
                let RunOptions {
                    scheduling, launch, ..
                } = options;
                format!(
                    "{} scheduling, room for {:?}, {schedule:?}",
                    scheduling.name(),
                    launch.resident
                )
            };
            let known = |state: &[i64]| all.outcomes.iter().any(|o| o.state == state);
            if let Some(new) = seen.outcomes.iter().find(|o| !known(&o.state)) {
                return Err(format!("{}: only there: {:?}", under(), new.state));
            }
            if let Some(kind) = UNDEFINED
                .into_iter()
                .find(|&k| has(&seen, &[k]) && !has(all, &[k]))
            {
                return Err(format!("{}: only there: {}", under(), kind.name()));
            }
            let exhaustive = matches!(schedule, Schedule::Exhaustive) && seen.complete;
            if whole && (hangs(&seen) && !hangs(all) || exhaustive && hangs(&seen) != hangs(all)) {
                return Err(format!(
                    "{}: {:?}, and all runs: {:?}",
                    under(),
                    seen.ended,
                    all.ended
                ));
            }
            runs += seen.ended.finished + seen.ended.by(StopKind::Deadlock);
        }
    }
    Ok(runs)
}

fn compare(cuda: bool) {
    let (count, first) = (programs(40), number("FENCEPOST_SEED", 1));
    let memory = if cuda {
        MachineMemory::Cuda
    } else {
        MachineMemory::OpenCl
    };
    let (mut stuck, mut racy, mut fine, mut skipped, mut misuses, mut runs) = (0, 0, 0, 0, 0, 0);
    for seed in first..first + count {
        let test = program(&mut Pcg64Mcg::seed_from_u64(seed), cuda);
        let what = || format!("seed {seed}:\n{}\n{:#?}", test.file.text, test.program.host);
        let Ok(launches) = LaunchOrders::of(&test.program) else {
            skipped += 1;
            continue;
        };
        let seen = run(&test, &options(memory));
        if !seen.complete {
            skipped += 1;
            continue;
        }
        assert_eq!(
            hangs(&seen),
            launches.stuck.is_some(),
            "{:?}\n{}",
            seen.ended,
            what()
        );
        let sc = run(&test, &options(MachineMemory::Sc));
        assert_eq!(hangs(&sc), launches.stuck.is_some(), "{}", what());
        let unsubmitted =
            launches.stuck.is_some() || launches.ways.iter().any(|way| !way.unsubmitted.is_empty());
        let lazy = run(
            &test,
            &RunOptions {
                lazy: true,
                ..options(memory)
            },
        );
        assert_eq!(
            hangs(&lazy),
            unsubmitted,
            "by flushes alone: {:?}\n{}",
            lazy.ended,
            what()
        );
        let explored = [(&seen, options(memory)), (&sc, options(MachineMemory::Sc))];
        for (all, options) in explored.into_iter().filter(|(all, _)| all.complete) {
            runs += schedules(&test, &options, all, true)
                .unwrap_or_else(|why| panic!("{why}\n{}", what()));
        }
        if launches.stuck.is_some() {
            stuck += 1;
            for stop in &seen.stops {
                // A marker or barrier has no threads that could report it.
                let told = stop
                    .why
                    .iter()
                    .any(|w| w.contains("never completes: it waits for"));
                assert!(
                    told || stop.ends.iter().any(|e| !e.waits.is_empty()),
                    "{:?}\n{}",
                    stop.why,
                    what()
                );
            }
            continue;
        }
        let expected = races(&test, &launches);
        assert_eq!(
            has(&seen, &[HazardKind::Race]),
            expected,
            "{:?}\n{}",
            seen.hazards,
            what()
        );
        let misused = misuses_mappings(&test, &launches);
        let shown = has(&seen, &[HazardKind::WhileMapped, HazardKind::Unmapped]);
        assert_eq!(shown, misused, "{:?}\n{}", seen.hazards, what());
        misuses += u64::from(misused);
        *(if expected { &mut racy } else { &mut fine }) += 1;
    }
    println!(
        "{count} programs: {racy} racy, {fine} race-free, {stuck} stuck, {skipped} skipped; {misuses} use memory \
         against its mapping; {runs} runs and ends under other schedules"
    );
    assert!(
        count < 40
            || racy > 0 && fine > 0 && (cuda || stuck > 0 && misuses > 0) && skipped * 5 < count
    );
}

#[test]
fn streams() {
    compare(true);
}

#[test]
fn queues() {
    compare(false);
}

/// Checks the ends of random programs: the engine says that they hang exactly if some run does, or
/// is undecided.
fn hold_ends(what: &str, make: &dyn Fn(&mut Pcg64Mcg) -> LitmusTest, lazy: bool) {
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let model = shipped("sc");
    let limits = Limits {
        bound: Some(4),
        timeout: Some(Duration::from_secs(10)),
    };
    let (mut hang, mut end, mut skipped) = (0, 0, 0);
    let mut undecided: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..first + count {
        let test = make(&mut Pcg64Mcg::seed_from_u64(seed));
        let mut runs = vec![run(&test, &options(MachineMemory::Sc))];
        if lazy {
            runs.push(run(
                &test,
                &RunOptions {
                    lazy: true,
                    ..options(MachineMemory::Sc)
                },
            ));
        }
        if !runs.iter().all(|seen| seen.complete) {
            skipped += 1;
            continue;
        }
        let hanging = runs.iter().find(|seen| hangs(seen));
        let setting = LivenessTask::new(&test, &model);
        let answer = Liveness::new(&setting, Engine::Auto, limits, &[]).ask(ProgressModel::Fair);
        let what = || format!("seed {seed}:\n{}\n{:#?}", test.file.text, test.program);
        assert_eq!(answer.defect, None, "{}", what());
        match answer.verdict {
            Verdict::Hangs => {
                assert!(
                    hanging.is_some(),
                    "no run hangs: {:?}\n{:#?}\n{}",
                    runs[0].ended,
                    answer.witness,
                    what()
                );
                hang += 1;
            }
            Verdict::Terminates => {
                let why = hanging.map(|seen| seen.stops.first().map(|s| &s.why));
                assert!(hanging.is_none(), "a run hangs: {why:?}\n{}", what());
                end += 1;
            }
            other => {
                *undecided
                    .entry(other.reason().map_or(String::new(), Reason::to_string))
                    .or_default() += 1
            }
        }
    }
    println!(
        "{count} programs, {what}: {hang} hang, {end} end, {skipped} skipped; undecided: {undecided:#?}"
    );
    assert!(count < 60 || hang > 0 && end > 0 && (hang + end) * 2 > count);
}

/// The program with a loop of queries in place of every call of CUDA that waits for a stream or an
/// event, and the number of loops. Later calls get new numbers.
fn polling(test: &LitmusTest) -> (LitmusTest, usize) {
    let mut test = test.clone();
    let host = test.program.host.as_deref_mut().expect("a host program");
    let mut number = Vec::new();
    let calls = std::mem::take(&mut host.calls);
    for call in &calls {
        let asked = match &call.op {
            HostOp::Finish(lane) => Some(QuerySubject::Lane(*lane)),
            HostOp::Wait(refs) => Some(QuerySubject::Event(refs[0])),
            _ => None,
        };
        match asked {
            Some(of) => {
                number.push(Err(QueryId(host.queries.len() as u16)));
                host.queries.push(HostQuery {
                    thread: call.thread,
                    of,
                    never: None,
                });
            }
            None => {
                number.push(Ok(CallId(host.calls.len() as u16)));
                host.calls.push(call.clone());
            }
        }
    }
    for command in &mut host.commands {
        if let CommandOrigin::Call(call) = &mut command.origin {
            *call = number[usize::from(call.0)].expect("it enqueues");
        }
    }
    let asked = host.queries.len();
    for thread in &mut test.program.threads {
        let code = std::mem::take(&mut thread.code);
        for instr in code {
            let at = thread.code.len();
            match instr.op {
                Op::Call(call) => match number[usize::from(call.0)] {
                    Ok(call) => thread.code.push(Instr {
                        op: Op::Call(call),
                        ..instr
                    }),
                    Err(of) => {
                        let dst = RegId(thread.regs.len() as u16);
                        let init = Init::Int(0);
                        thread.regs.push(Register {
                            name: format!("$asked{}", of.0),
                            ty: Ty::S32,
                            init,
                        });
                        let again = Op::Branch {
                            cond: Expr::Reg(dst),
                            target: at,
                        };
                        thread.code.push(Instr {
                            op: Op::Status { dst, of },
                            ..instr.clone()
                        });
                        thread.code.push(Instr { op: again, ..instr });
                    }
                },
                Op::Branch { .. } => panic!("host threads of these programs have no branches"),
                _ => thread.code.push(instr),
            }
        }
    }
    (test, asked)
}

/// Querying until all is complete is waiting, in runs and in the model.
#[test]
fn a_loop_of_queries_waits() {
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let model = shipped("cuda");
    let race = |test: &LitmusTest| {
        let limits = Limits {
            timeout: Some(Duration::from_secs(20)),
            ..Limits::default()
        };
        let mut session = Session::new(test, &model, Engine::Auto, limits, &[]);
        session.race().expect("a race flag").verdict
    };
    let (mut racy, mut fine, mut late, mut skipped) = (0, 0, 0, 0);
    for seed in first..first + count {
        let test = program(&mut Pcg64Mcg::seed_from_u64(seed), true);
        let (asks, queries) = polling(&test);
        let waits = run(&test, &options(MachineMemory::Cuda));
        let polls = run(&asks, &options(MachineMemory::Cuda));
        if queries == 0 || !waits.complete || !polls.complete {
            skipped += 1;
            continue;
        }
        let what = || format!("seed {seed}:\n{}\n{:#?}", test.file.text, asks.program.host);
        assert_eq!(hangs(&waits), hangs(&polls), "{}", what());
        let shown = has(&waits, &[HazardKind::Race]);
        assert_eq!(shown, has(&polls, &[HazardKind::Race]), "{}", what());
        let states = |seen: &Observation| -> BTreeSet<Vec<i64>> {
            seen.outcomes.iter().map(|o| o.state.clone()).collect()
        };
        assert_eq!(states(&waits), states(&polls), "{}", what());
        let (one, other) = (race(&test), race(&asks));
        if other.reason() == Some(&Reason::Time) {
            late += 1;
            continue;
        }
        assert_eq!(one, other, "{}", what());
        assert_eq!(one == Verdict::Racy, shown, "{}", what());
        *(if shown { &mut racy } else { &mut fine }) += 1;
    }
    println!(
        "{count} programs: {racy} racy, {fine} race-free, {late} not decided in time, {skipped} skipped"
    );
    assert!(count < 60 || racy > 0 && fine > 0 && late * 10 < racy + fine);
}

#[test]
fn runs_show_every_answer_of_a_query() {
    let seen = run(
        &file("cuda/Query+one-answer", |text| text),
        &options(MachineMemory::Cuda),
    );
    assert!(seen.complete);
    let mut states: Vec<Vec<i64>> = seen.outcomes.iter().map(|o| o.state.clone()).collect();
    states.sort_unstable();
    // first, r, second
    assert_eq!(states, [vec![0, 1, 0], vec![600, 0, 0], vec![600, 0, 600]]);
}

#[test]
fn hangs_of_programs_that_spin() {
    hold_ends("kernels wait", &waiting, false);
}

#[test]
fn hangs_of_programs_whose_hosts_wait_between_calls() {
    hold_ends("CUDA", &|rng| lively(rng, true), false);
    // Whether a command starts whose queue is never flushed depends on the implementation.
    hold_ends("OpenCL", &|rng| lively(rng, false), true);
}

/// What ends the life of memory is no use of it through a mapping that has ended; a write is.
#[test]
fn a_release_behind_a_mapping_is_no_use_of_it() {
    let path = "litmus/host/opencl/Svm-free.mapped.toml";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(path)).expect("readable");
    let is_unmapped = |text: &str| {
        let tests = parse(path, text.as_bytes()).expect("a good test");
        let memory = MachineMemory::of(tests[0].program.dialect, "opencl").expect("a memory");
        has(&run(&tests[0], &options(memory)), &[HazardKind::Unmapped])
    };
    assert!(!is_unmapped(&text));
    let written = text.replace("clSVMFree(context, p);", "*p = 2;");
    assert!(written != text && is_unmapped(&written));
}

/// Tests that the machine refuses: commands enqueued by kernels with partly fine-grained memory,
/// and operations at system scope on memory of a GPU that the host accesses.
const REFUSED: [&str; 2] = ["Child.pointer+", "Gpu-memory+"];

/// Every test of host programs: runs show the verdict of the model of the test's language.
#[test]
fn tests_of_host_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/host");
    let limits = Limits {
        bound: Some(4),
        timeout: Some(Duration::from_secs(20)),
    };
    let (mut tests, mut stuck, mut racy, mut runs) = (0, 0, 0, 0);
    let (mut differences, mut undecided) = (Vec::new(), Vec::new());
    for path in sample(files(&root, &["toml"])) {
        for test in read_path(&path)
            .unwrap_or_else(|e| panic!("{e:?}"))
            .iter()
            .filter(|t| t.program.host.is_some())
        {
            let dialect = test.program.dialect;
            let memory =
                MachineMemory::of(dialect, dialect.default_model()).unwrap_or(MachineMemory::Weak);
            let model = shipped(memory.model());
            if REFUSED.iter().any(|refused| test.name.starts_with(refused)) {
                assert!(
                    observe(test, &options(memory), Schedule::Exhaustive).is_err(),
                    "{}",
                    test.name
                );
                continue;
            }
            let eager = run(test, &options(memory));
            let lazy = run(
                test,
                &RunOptions {
                    lazy: true,
                    ..options(memory)
                },
            );
            tests += 1;
            let mut differ = |what: String| differences.push(format!("{}: {what}", test.name));
            let setting = LivenessTask::new(test, &model);
            let answer =
                Liveness::new(&setting, Engine::Auto, limits, &[]).ask(ProgressModel::Fair);
            // Whether a command starts whose queue is never flushed depends on the implementation.
            let hang = hangs(&eager) || hangs(&lazy);
            match &answer.verdict {
                Verdict::Hangs if !hang => differ("the engine says hangs, and no run does".into()),
                Verdict::Terminates if hang => {
                    differ(format!(
                        "a run hangs: {:?}",
                        eager.stops.iter().chain(&lazy.stops).next().map(|s| &s.why)
                    ));
                }
                Verdict::Hangs | Verdict::Terminates => {}
                other => undecided.push(format!("{}: {other:?}", test.name)),
            }
            match schedules(test, &options(memory), &eager, false) {
                Ok(n) => runs += n,
                Err(why) => differ(why),
            }
            if hangs(&eager) {
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
            let races = eager
                .hazards
                .iter()
                .any(|h| h.hazard.kind == HazardKind::Race);
            racy += u32::from(races);
            if eager.complete && faults.race == Some(Verdict::Racy) && !races {
                differ("the model knows a race, and no run has it".into());
            }
        }
    }
    println!(
        "{tests} tests: {stuck} stuck, {racy} racy, {runs} runs and ends under other schedules"
    );
    println!("liveness undecided: {undecided:#?}");
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(!is_long() || stuck > 0 && racy > 0 && runs > 500);
}

/// A test of host programs, by its file; `edit` changes its text.
fn file(name: &str, edit: impl Fn(String) -> String) -> LitmusTest {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("litmus/host")
        .join(name)
        .with_extension("toml");
    let text =
        edit(std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}"))
        .remove(0)
}

#[test]
fn atomics_of_several_kernels_on_a_buffer_are_run_and_left_to_implementations() {
    let test = file("opencl/Kernels+atomics", |text| {
        text.replace("kind = \"svm-coarse\"", "kind = \"buffer\"")
    });
    let model = shipped("opencl");
    let seen = run(&test, &options(MachineMemory::OpenCl));
    assert!(
        seen.ended.finished > 0 && has(&seen, &[HazardKind::Unspecified]),
        "{:?}",
        seen.hazards
    );
    assert!(seen.hazards.iter().all(|h| !h.hazard.kind.is_undefined()));
    // None of its outcomes counts as allowed or forbidden.
    let (engine, limits) = (Engine::Auto, Limits::default());
    let held = operational::hold(&test, &model, engine, limits, &[], &seen);
    assert!(
        !held.observed.is_empty() && held.observed.iter().all(|o| o.allowed.is_none()),
        "{held:?}"
    );
    let faults = operational::faults(&test, &model, engine, limits, &[], &seen);
    assert_eq!(faults.defect, None);
    // If the queue orders them, nothing is left open.
    let ordered = run(
        &file("opencl/Kernels+atomics+ordered", |text| text),
        &options(MachineMemory::OpenCl),
    );
    assert!(ordered.hazards.is_empty(), "{:?}", ordered.hazards);
}

#[test]
fn waits_are_told_by_the_number_of_the_launch() {
    let twice = |text: String| {
        let wait = "clWaitForEvents({e});";
        text.replace(
            wait,
            &format!("clEnqueueNDRangeKernel(q, K2, NULL, 1, 1);\n{wait}"),
        )
        .replace("K2:r == 0", "x == 0")
    };
    let test = file("opencl/H20-user-event-set-too-late", twice);
    let seen = run(&test, &options(MachineMemory::OpenCl));
    let why: Vec<&String> = seen.stops.iter().flat_map(|s| &s.why).collect();
    assert!(
        why.iter()
            .any(|w| w.contains("waits for `K2.1` to complete")),
        "{why:?}"
    );
}

/// A launch on a GPU with limited room hangs exactly if a resident block waits for one that has no
/// room.
#[test]
fn which_launch_gets_room_is_a_choice() {
    let test = file("cuda/resident-consumer-first", |text| text);
    for (room, hang) in [(None, false), (Some(1), true), (Some(2), false)] {
        let launch = LaunchOptions {
            resident: room,
            ..LaunchOptions::default()
        };
        for memory in [MachineMemory::Cuda, MachineMemory::Sc] {
            let seen = run(
                &test,
                &RunOptions {
                    launch,
                    ..options(memory)
                },
            );
            assert_eq!(hangs(&seen), hang, "room for {room:?}: {:?}", seen.ended);
            assert!(
                seen.ended.finished > 0,
                "room for {room:?}: {:?}",
                seen.ended
            );
        }
    }
    // In one stream, the consumer never gives way; behind the producer, it never waits.
    let one = |text: String| text.replace("0, u>>>", "0, s>>>");
    let launch = LaunchOptions {
        resident: Some(1),
        ..LaunchOptions::default()
    };
    let seen = run(
        &file("cuda/resident-consumer-first", one),
        &RunOptions {
            launch,
            ..options(MachineMemory::Sc)
        },
    );
    assert!(hangs(&seen) && seen.ended.finished == 0, "{:?}", seen.ended);
    let swap = |text: String| {
        let text = text.replace(
            "consume<<<1, 1, 0, s>>>();\nproduce<<<1, 1, 0, u>>>();",
            "@",
        );
        text.replace(
            '@',
            "produce<<<1, 1, 0, s>>>();\nconsume<<<1, 1, 0, s>>>();",
        )
    };
    let seen = run(
        &file("cuda/resident-consumer-first", swap),
        &RunOptions {
            launch,
            ..options(MachineMemory::Sc)
        },
    );
    assert!(!hangs(&seen) && seen.ended.finished > 0, "{:?}", seen.ended);
}
