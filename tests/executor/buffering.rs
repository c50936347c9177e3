//! Load buffering on the executor's memories of OpenCL C, CUDA C++ and C. With early binds they
//! show more outcomes that their models allow, and none that these forbid.
//!
//! `testkit::suite` sets the number of random programs per language, `FENCEPOST_SEED` the first
//! seed, `FENCEPOST_TIMEOUT_MS` the time for one query. The output gives the fraction of allowed
//! outcomes that was reached.

use std::collections::BTreeSet;

use fencepost::check::operational;
use fencepost::litmus::{LitmusTest, parse};
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{
    Early, MachineMemory, MemoryRules, RunOptions, Schedule, observe, observe_mixed,
};
use testkit::clike::shapes::program;
use testkit::clike::{Lang, Program};
use testkit::sides::{Behaviour, Mutant, Side, each_is_missed, modelled, shown, sides};
use testkit::suite::{number, programs};

/// The modes that are compared.
const MODES: [Early; 4] = [Early::None, Early::Local, Early::Full(1), Early::Full(2)];

fn options(side: &Side, early: Early, rules: MemoryRules) -> RunOptions {
    RunOptions {
        early,
        ..side.options(rules)
    }
}

/// The part of the machine's behaviour that its model forbids.
fn outside(machine: &Behaviour, model: &Behaviour) -> Option<String> {
    let more: Vec<_> = machine.outcomes.difference(&model.outcomes).collect();
    let race = machine.racy && !model.racy || machine.undefined && !model.undefined;
    (!more.is_empty() || race)
        .then(|| format!("forbidden: {more:?}; undefined in the machine alone: {race}"))
}

/// Sums over the programs that the model and every mode completed.
#[derive(Debug, Default)]
struct Sums {
    programs: usize,
    allowed: usize,
    /// By mode: outcomes reached, programs with all of them, states, and programs that only the
    /// model calls racy.
    modes: [[u64; 4]; MODES.len()],
    skipped: usize,
}

/// Compares one program under every mode.
fn compare(test: &LitmusTest, side: &Side, sums: &mut Sums) -> Option<String> {
    let mut by_mode = Vec::new();
    for early in MODES {
        let Ok(shown) = shown(test, &options(side, early, MemoryRules::ALL)) else {
            sums.skipped += 1;
            return None;
        };
        by_mode.push(shown);
    }
    let Some(model) = modelled(test, &side.full) else {
        sums.skipped += 1;
        return None;
    };
    sums.programs += 1;
    sums.allowed += model.outcomes.len();
    for (i, (machine, states)) in by_mode.iter().enumerate() {
        if let Some(how) = outside(machine, &model) {
            return Some(format!("early binds {}: {how}", MODES[i]));
        }
        let reached = machine.outcomes.len() as u64;
        let all = u64::from(machine.outcomes == model.outcomes);
        let missed = u64::from(machine.racy != model.racy);
        sums.modes[i]
            .iter_mut()
            .zip([reached, all, *states, missed])
            .for_each(|(sum, n)| *sum += n);
        if !by_mode[0].0.outcomes.is_subset(&machine.outcomes) {
            return Some(format!("early binds {} show less than none do", MODES[i]));
        }
    }
    None
}

#[test]
fn early_binds_show_nothing_forbidden_on_random_programs() {
    let (count, first) = (programs(20), number("FENCEPOST_SEED", 1));
    for side in sides() {
        let mut sums = Sums::default();
        // The same number again of shapes of load buffering.
        let buffering = (first..).map(|seed| (seed, program(side.lang, seed)));
        let buffering = buffering
            .filter(|p| p.1.shape.contains("LB"))
            .take(count as usize);
        let any = (first..first + count).map(|seed| (seed, program(side.lang, seed)));
        for (seed, source) in any.chain(buffering) {
            if compare(&source.read("generated"), &side, &mut sums).is_some() {
                let differs =
                    |p: &Program| compare(&p.read("generated"), &side, &mut Sums::default());
                let small = source.shrink(|p| differs(p).is_some());
                let how = differs(&small).unwrap_or_default();
                panic!(
                    "{}, seed {seed}: {how}\n{}",
                    side.memory.name(),
                    small.text("Smaller")
                );
            }
        }
        println!("{}: twice {count} programs: {sums:?}", side.memory.name());
        let [none, .., full] = sums.modes;
        if side.memory == MachineMemory::Rc11 {
            assert_eq!(none, full, "rc11 has no load buffering");
        } else {
            assert!(
                count < 20 || full[0] > none[0],
                "{}: {sums:?}",
                side.memory.name()
            );
        }
    }
}

/// Two threads, each of which reads one location and then writes the other.
fn buffering(lang: Lang, bodies: [[&str; 2]; 2]) -> LitmusTest {
    let (dialect, kind) = match lang {
        Lang::OpenCl => ("opencl", "{ type = \"atomic_int\" }"),
        Lang::Cuda => ("cuda", "{ type = \"int\" }"),
        Lang::C => ("c", "{ type = \"atomic_int\" }"),
    };
    let mut text =
        format!("name = \"LB\"\ndialect = \"{dialect}\"\n[memory]\nx = {kind}\ny = {kind}\n");
    for body in bodies {
        text += &format!("[[thread]]\ncode = '''\n{}\n'''\n", body.concat());
    }
    text = text.replacen(
        "[memory]",
        "condition = 'P0:r == 1 /\\ P1:r == 1'\n[memory]",
        1,
    );
    parse("LB.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0)
}

fn load(lang: Lang, loc: &str, order: &str) -> String {
    match lang {
        Lang::OpenCl => format!(
            "int r = atomic_load_explicit({loc}, memory_order_{order}, memory_scope_device);"
        ),
        Lang::Cuda => format!(
            "int r = cuda::atomic_ref<int, cuda::thread_scope_device>({loc}).load(cuda::memory_order_{order});"
        ),
        Lang::C => format!("int r = atomic_load_explicit({loc}, memory_order_{order});"),
    }
}

fn add(lang: Lang, loc: &str) -> String {
    match lang {
        Lang::OpenCl => {
            format!(
                "int r = atomic_fetch_add_explicit({loc}, 0, memory_order_relaxed, memory_scope_device);"
            )
        }
        Lang::Cuda => format!(
            "int r = cuda::atomic_ref<int, cuda::thread_scope_device>({loc}).fetch_add(0, cuda::memory_order_relaxed);"
        ),
        Lang::C => format!("int r = atomic_fetch_add_explicit({loc}, 0, memory_order_relaxed);"),
    }
}

fn store(lang: Lang, loc: &str, value: &str, order: &str) -> String {
    match lang {
        Lang::OpenCl => {
            format!(
                "atomic_store_explicit({loc}, {value}, memory_order_{order}, memory_scope_device);"
            )
        }
        Lang::Cuda => format!(
            "cuda::atomic_ref<int, cuda::thread_scope_device>({loc}).store({value}, cuda::memory_order_{order});"
        ),
        Lang::C => format!("atomic_store_explicit({loc}, {value}, memory_order_{order});"),
    }
}

/// Whether both threads read 1, by every schedule and by random ones, with the default early binds.
fn shows(test: &LitmusTest, side: &Side) -> [bool; 2] {
    let both = |o: &fencepost::simt::schedule::RunOutcome| o.state == [1, 1];
    [
        Schedule::Exhaustive,
        Schedule::Random {
            runs: 2_000,
            seed: 1,
        },
    ]
    .map(|schedule| {
        let options = options(side, Early::None, MemoryRules::ALL);
        let seen = observe_mixed(test, &options, schedule).expect("it runs");
        assert!(operational::name(test, &seen).len() == seen.outcomes.len());
        seen.outcomes.iter().any(both)
    })
}

#[test]
fn load_buffering_shows_where_the_model_allows_it() {
    for side in sides() {
        let l = side.lang;
        let (load, store) = (
            |x: &str, order: &str| load(l, x, order),
            |y: &str, v: &str, o: &str| store(l, y, v, o),
        );
        let program = |first: [&str; 2], second: [&str; 2]| buffering(l, [first, second]);
        let one = |order: (&str, &str)| {
            [
                [load("x", order.0), store("y", "1", order.1)],
                [load("y", order.0), store("x", "1", order.1)],
            ]
        };
        let texts = |t: &[[String; 2]; 2]| program([&t[0][0], &t[0][1]], [&t[1][0], &t[1][1]]);
        let plain = one(("relaxed", "relaxed"));
        let data = [
            [load("x", "relaxed"), store("y", "r", "relaxed")],
            [load("y", "relaxed"), store("x", "r", "relaxed")],
        ];
        let half = [plain[0].clone(), data[1].clone()];
        let false_data = [
            plain[0].clone(),
            [load("y", "relaxed"), store("x", "1 + r - r", "relaxed")],
        ];
        let updates = [
            [add(l, "x"), plain[0][1].clone()],
            [add(l, "y"), plain[1][1].clone()],
        ];
        let ordered = one(("acquire", "release"));
        let one_sided = [plain[0].clone(), ordered[1].clone()];
        for (name, bodies, allowed) in [
            ("relaxed", &plain, true),
            ("a dependency on one side", &half, true),
            ("a dependency in form only", &false_data, true),
            ("read-modify-writes that read", &updates, true),
            ("acquires", &one(("acquire", "relaxed")), true),
            ("releases", &one(("relaxed", "release")), true),
            ("acquire and release on one side", &one_sided, true),
            ("dependencies", &data, false),
            ("acquire and release", &ordered, false),
            (
                "sequentially consistent",
                &one(("seq_cst", "seq_cst")),
                false,
            ),
        ] {
            let test = texts(bodies);
            let allowed = allowed && side.memory != MachineMemory::Rc11;
            let both = |b: &Behaviour| b.outcomes.iter().any(|o| o.iter().all(|v| &*v.1 == "1"));
            let model = modelled(&test, &side.full).expect("decided");
            assert!(
                !allowed || both(&model),
                "{}, {name}: {model:?}",
                side.memory.name()
            );
            assert_eq!(
                shows(&test, &side),
                [allowed; 2],
                "{}, {name}",
                side.memory.name()
            );
        }
    }
}

const MUTANTS: &[Mutant] = {
    use MachineMemory::{C11, Cuda, Cuda17, OpenCl, Rc11};
    &[
        (
            "places of early writes",
            |r| r.early_places = false,
            &[OpenCl, Cuda, C11],
        ),
        (
            "agreement at their turn",
            |r| r.early_agreement = false,
            &[OpenCl, Cuda, C11],
        ),
        (
            "waiting for releases",
            |r| r.waiting = false,
            &[OpenCl, Cuda, Cuda17, C11],
        ),
        ("languages in order", |r| r.in_order = false, &[Rc11]),
    ]
};

#[test]
fn every_rule_is_needed_with_early_binds() {
    each_is_missed(MUTANTS, &|side, test, rules| {
        // The machine is quick, and most programs do not use the rule.
        let run = |rules| {
            shown(test, &options(side, Early::Full(1), rules))
                .ok()
                .map(|s| s.0)
        };
        let machine = run(rules)?;
        if run(MemoryRules::ALL)? == machine {
            return None;
        }
        outside(&machine, &modelled(test, &side.full)?)
    });
}

#[test]
fn random_runs_with_early_binds_show_what_every_schedule_shows() {
    for side in sides() {
        for seed in 1..=programs(15) {
            let test = program(side.lang, seed).read("generated");
            let options = options(&side, Early::Full(2), MemoryRules::ALL);
            let Ok((all, _)) = shown(&test, &options) else {
                continue;
            };
            let some =
                observe(&test, &options, Schedule::Random { runs: 300, seed: 1 }).expect("it runs");
            let named = operational::name(&test, &some);
            let states: BTreeSet<_> = named.iter().map(|n| n.0.clone()).collect();
            assert!(states.is_subset(&all.outcomes), "{}", test.file.text);
            assert!(
                some.hazards.is_empty() || all.undefined,
                "{}",
                test.file.text
            );
            for (state, seen) in named {
                let again =
                    fencepost::simt::replay(&test, &options, &seen.schedule).expect("it fits");
                let again = operational::name(&test, &again);
                assert_eq!(
                    again.iter().map(|n| &n.0).collect::<Vec<_>>(),
                    [&state],
                    "{}",
                    test.file.text
                );
            }
        }
    }
}

/// One thread never has its turn because of its early bind, and another one spins until it has.
#[test]
fn an_early_bind_that_cannot_be_kept_is_no_hang() {
    let text = "name = 'T'\nmemory = { x = 0, c = 0 }\n\
        [[thread]]\ncta = 0\ncode = 'st.weak x, 1; fence.sc.gpu; atom.relaxed.gpu.add r0, c, 1'\n\
        [[thread]]\ncta = 1\ncode = 'atom.relaxed.gpu.add r9, c, 10; L: ld.relaxed.gpu r0, c; bne r0, 11, L'\n";
    let test = &parse("test.toml", text.as_bytes()).expect("well-formed")[0];
    let with = |early| {
        let options = RunOptions {
            early,
            steps: 1_000,
            ..RunOptions::default()
        };
        observe(test, &options, Schedule::Random { runs: 200, seed: 1 })
            .expect("runs")
            .ended
    };
    let (none, some) = (with(Early::None), with(Early::Full(2)));
    assert_eq!((none.finished, none.discarded), (200, 0), "{none:?}");
    assert!(
        some.discarded > 0 && some.by(StopKind::Limit) == 0,
        "{some:?}"
    );
    assert_eq!(some.finished + some.discarded, 200, "{some:?}");
}
