//! Compares hangs that the executor reaches with hangs that the engines find.
//!
//! Both cover the same runs: those that never end, and are fair to memory and, under a progress
//! model, to threads. The executor finds them in the graph of its states, the engines by axioms
//! about executions. Every disagreement is a defect of one of them.
//!
//! - On the memory `sc`, which has the executions of the model `sc`, they agree.
//! - The weak memory without early binds lacks executions of `ptx` with a cycle of `po` and `rf`.
//!   Each hang that the executor reaches there is a hang to the engines; each one that only the
//!   engines find has such a cycle.
//! - Within the executor, it reports a deadlock or livelock exactly if some run hangs under `fair`.
//!
//! `testkit::suite` sets the number of random programs, `FENCEPOST_SEED` the first seed,
//! `FENCEPOST_TIMEOUT_MS` the time for one query. `FENCEPOST_SUITE` names a further folder of
//! published tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::model::Model;
use fencepost::program::Dialect;
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{Early, MachineMemory, RunOptions, Schedule, observe};
use fencepost::verdict::hang::{Goal, Site};
use fencepost::verdict::{Ending, Verdict, Witness};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use testkit::spins;
use testkit::suite::{files, number, programs, sample, shipped};

/// Counts of pairs of answers.
type Counts = BTreeMap<String, u64>;

fn count(counts: &mut Counts, what: &str) {
    *counts.entry(what.to_owned()).or_default() += 1;
}

/// The setting of a comparison.
struct Machine {
    memory: MachineMemory,
    model: Model,
    timeout: Option<Duration>,
}

impl Machine {
    fn new(memory: MachineMemory) -> Machine {
        let timeout = Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000)));
        Machine {
            memory,
            model: shipped(memory.model()),
            timeout,
        }
    }

    fn options(&self, progress: bool) -> RunOptions {
        let (memory, timeout) = (self.memory, self.timeout);
        RunOptions {
            memory,
            early: Early::None,
            states: 60_000,
            steps: 2_000,
            timeout,
            progress,
            ..RunOptions::default()
        }
    }

    /// By progress model, whether some run of the executor hangs; `None` if unknown.
    fn reached(&self, test: &LitmusTest, counts: &mut Counts) -> Option<Vec<bool>> {
        let Ok(all) = observe(test, &self.options(true), Schedule::Exhaustive) else {
            count(counts, "not run");
            return None;
        };
        if !all.complete {
            count(counts, "not explored completely");
            return None;
        }
        let under = |p: &ProgressModel| all.endless.iter().any(|e| e.model == *p);
        let hangs: Vec<bool> = ProgressModel::ALL.iter().map(under).collect();
        let plain =
            observe(test, &self.options(false), Schedule::Exhaustive).expect("it ran before");
        if plain.complete {
            let reported =
                plain.ended.by(StopKind::Deadlock) + plain.ended.by(StopKind::Livelock) > 0;
            assert_eq!(
                reported, hangs[0],
                "{}: {:?}\n{}",
                test.name, plain.ended, test.file.text
            );
            // The schedule of a report reaches the hang again.
            for e in &all.endless {
                let again = fencepost::simt::replay(test, &self.options(false), &e.schedule)
                    .expect("it fits");
                assert_eq!(again.ended.finished, 0, "{}\n{}", test.name, test.file.text);
            }
        }
        Some(hangs)
    }

    /// Compares both under every progress model; returns a disagreement in words.
    fn compare(&self, test: &LitmusTest, counts: &mut Counts) -> Option<String> {
        let reached = self.reached(test, counts)?;
        let setting = LivenessTask::new(test, &self.model);
        let limits = Limits {
            bound: Some(4),
            timeout: self.timeout,
        };
        let mut liveness = Liveness::new(&setting, Engine::Auto, limits, &[]);
        for (progress, reached) in ProgressModel::ALL.into_iter().zip(reached) {
            let answer = liveness.ask(progress);
            assert_eq!(
                answer.defect, None,
                "{}, {progress}\n{}",
                test.name, test.file.text
            );
            if let Some(witness) = &answer.witness {
                explained(witness).unwrap_or_else(|what| {
                    panic!("{progress}: {what}\n{witness:#?}\n{}", test.file.text)
                });
            }
            let said = match (&answer.verdict, reached) {
                (Verdict::Undecided(_), _) => "undecided",
                (Verdict::Hangs, true) => "hangs",
                (Verdict::Terminates, false) => "terminates",
                (Verdict::Hangs, false)
                    if self.memory == MachineMemory::Weak
                        && answer.witness.as_ref().is_some_and(has_early_reads) =>
                {
                    "hangs by reading early"
                }
                (verdict, reached) => {
                    let said = if reached {
                        "reaches a hang"
                    } else {
                        "reaches none"
                    };
                    let why = answer
                        .witness
                        .as_ref()
                        .map(|w| format!("{w:#?}"))
                        .unwrap_or_default();
                    return Some(format!(
                        "{} under {progress}, {}: the engine says {}, the executor {said}\n{}\n{why}",
                        test.name,
                        self.memory.name(),
                        verdict.word(),
                        test.file.text
                    ));
                }
            };
            count(counts, said);
        }
        None
    }
}

/// Compares the description of a hanging execution with its events.
///
/// # Errors
/// The wrong part.
fn explained(witness: &Witness) -> Result<(), String> {
    let ending = |name: &str| {
        witness
            .ends
            .iter()
            .find(|e| e.thread == name)
            .map(|e| e.ending)
    };
    for end in &witness.ends {
        let name = &end.thread;
        if matches!(end.ending, Ending::Done | Ending::Stopped) != end.waits.is_empty()
            && !end.waits.is_empty()
        {
            return Err(format!("{name} does not wait"));
        }
        for wait in &end.waits {
            if wait
                .helpers
                .iter()
                .any(|s| matches!(ending(&s.thread), None | Some(Ending::Done)))
            {
                return Err(format!("who could help {name} is over"));
            }
            let Goal::Value(goal) = &wait.goal else {
                continue;
            };
            let (place, values) = goal.split_once(' ').expect("a place and values");
            let (op, values) = values.split_once(' ').expect("a comparison");
            let values: Vec<&str> = values.split(" or ").collect();
            let meets = |v: &str| (op == "!=") != values.contains(&v);
            if end.polls.iter().any(|(p, v)| p == place && meets(v))
                && end.polls.iter().all(|p| p.0 == place)
            {
                return Err(format!("{name} sees {goal}"));
            }
            for event in &witness.events {
                let written = event
                    .action
                    .strip_prefix("W ")
                    .and_then(|w| w.split_once(" = "));
                let brought =
                    written.is_some_and(|(p, v)| p == place && meets(v)) && event.thread.is_some();
                let known = |s: &Site| s.thread == event.thread_name && s.line == event.line;
                if brought && !wait.missed.iter().any(known) {
                    return Err(format!(
                        "{name} waits for {goal}, and {} wrote it",
                        event.thread_name
                    ));
                }
            }
            let line = |s: &Site| {
                witness
                    .events
                    .iter()
                    .any(|e| e.thread_name == s.thread && e.line == s.line)
            };
            if !wait.missed.iter().all(line) {
                return Err(format!("what {name} misses was never written"));
            }
        }
    }
    Ok(())
}

/// Whether program order and reads-from of an execution have a cycle: some read takes its value
/// before its turn.
fn has_early_reads(witness: &Witness) -> bool {
    let mut graph = petgraph::graph::DiGraph::<(), ()>::new();
    let nodes: Vec<_> = witness.events.iter().map(|_| graph.add_node(())).collect();
    for (_, pairs) in witness
        .relations
        .iter()
        .filter(|(name, _)| name == "po" || name == "rf")
    {
        pairs.iter().for_each(|&(a, b)| {
            graph.add_edge(nodes[a], nodes[b], ());
        });
    }
    petgraph::algo::is_cyclic_directed(&graph)
}

#[test]
fn hangs_of_random_programs() {
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let machines = [
        Machine::new(MachineMemory::Sc),
        Machine::new(MachineMemory::Weak),
    ];
    let mut counts: [Counts; 2] = Default::default();
    let mut differences = Vec::new();
    for seed in first..first + count {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let text = spins::program(&format!("seed-{seed}"), &mut rng);
        let test = parse("t.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
            .remove(0);
        for (machine, counts) in machines.iter().zip(&mut counts) {
            differences.extend(machine.compare(&test, counts));
        }
    }
    for (machine, counts) in machines.iter().zip(&counts) {
        println!("{count} programs, {}: {counts:?}", machine.memory.name());
        let decided = |word: &str| counts.get(word).copied().unwrap_or(0);
        assert!(
            (decided("hangs") + decided("terminates")) * 2 > count * 5,
            "too few are decided: {counts:?}"
        );
        assert!(
            decided("hangs") > 0 && decided("terminates") > 0,
            "{counts:?}"
        );
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}

/// The ends of a program's runs on the weak memory, as far as they are explored: histories are
/// bounded.
fn ended(threads: &[&str]) -> fencepost::simt::schedule::EndCounts {
    let mut text = "name = \"T\"\n[memory]\nx = 0\ny = 0\n".to_owned();
    for (cta, code) in threads.iter().enumerate() {
        text += &format!("[[thread]]\ncta = {cta}\ncode = \"{code}\"\n");
    }
    let test = parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0);
    let options = Machine::new(MachineMemory::Weak).options(false);
    observe(&test, &options, Schedule::Exhaustive)
        .expect("runs")
        .ended
}

#[test]
fn a_write_that_goes_on_does_not_stay_behind_another() {
    // The 1s come before the 2 finitely often: eventually the poller sees one, and signals that.
    let told = [
        "L: st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y; beq r0, 0, L",
        "st.relaxed.gpu x, 2",
        "M: ld.relaxed.gpu r0, x; bne r0, 1, M; st.relaxed.gpu y, 1",
    ];
    let seen = ended(&told);
    assert!(
        seen.finished > 0 && seen.by(StopKind::Livelock) + seen.by(StopKind::Stale) == 0,
        "{seen:?}"
    );
}

#[test]
fn what_a_weak_read_never_sees_is_told_apart() {
    let seen = ended(&["M: ld.weak r0, x; beq r0, 0, M", "st.relaxed.gpu x, 1"]);
    assert!(
        seen.by(StopKind::Stale) > 0 && seen.by(StopKind::Livelock) == 0,
        "{seen:?}"
    );
    let seen = ended(&[
        "M: ld.relaxed.gpu r0, x; beq r0, 0, M",
        "st.relaxed.gpu x, 1",
    ]);
    assert!(
        seen.finished > 0 && seen.by(StopKind::Livelock) + seen.by(StopKind::Stale) == 0,
        "{seen:?}"
    );
    let seen = ended(&["M: ld.weak r0, x; beq r0, 0, M", "st.relaxed.gpu x, 0"]);
    assert!(seen.by(StopKind::Livelock) > 0, "{seen:?}");
}

/// Compares the PTX tests of files without a filter.
fn compare_files(paths: &[std::path::PathBuf]) {
    let mut differences = Vec::new();
    for machine in [
        Machine::new(MachineMemory::Sc),
        Machine::new(MachineMemory::Weak),
    ] {
        let mut counts = Counts::new();
        let tests = paths
            .iter()
            .flat_map(|path| read_path(path).unwrap_or_default());
        for test in tests.filter(|t| t.program.dialect == Dialect::Ptx && t.filter.is_none()) {
            differences.extend(machine.compare(&test, &mut counts));
        }
        println!("{}: {counts:?}", machine.memory.name());
        assert!(
            counts.get("terminates").is_some_and(|&n| n > 0),
            "{counts:?}"
        );
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}

#[test]
fn hangs_of_the_tests_about_liveness() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let folders = if number("FENCEPOST_PROGRAMS", 0) > 1_000 {
        [""].as_slice()
    } else {
        &["liveness", "barriers"]
    };
    let paths = folders
        .iter()
        .flat_map(|f| files(&root.join(f), &["toml", "litmus"]));
    let paths: Vec<_> = sample(paths).collect();
    compare_files(&paths);
}

#[test]
fn hangs_of_published_tests() {
    let Some(suite) = std::env::var_os("FENCEPOST_SUITE") else {
        return;
    };
    compare_files(&files(&Path::new(&suite).join("ptx"), &["litmus"]));
}
