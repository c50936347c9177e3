//! Random programs with vector accesses of PTX, and with accesses of two sizes. All engines find
//! the same outcomes, the machine `sc` finds exactly those of the model `sc`, and the weak machine
//! stays within `ptx`.

use std::collections::BTreeSet;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::litmus::{LitmusTest, parse};
use fencepost::simt::{Early, MachineMemory, RunOptions, Schedule, observe};
use fencepost::verdict::State;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{in_parallel, number, programs, shipped};

/// Two or three threads over four elements of memory.
fn generate(seed: u64, sizes: bool) -> String {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut text = format!("name = \"seed-{seed}\"\n");
    let (mut threads, mut observe) = (String::new(), vec!["x[0]".to_owned(), "x[2]".to_owned()]);
    let mut value = 0i64;
    for t in 0..rng.random_range(2..=3) {
        let (mut code, mut regs) = (String::new(), 0);
        for _ in 0..rng.random_range(1..=2) {
            let (suffix, count, at) = match rng.random_range(0..if sizes { 14 } else { 8 }) {
                0..=2 => (".u32", 1, rng.random_range(0..4)),
                3..=6 => (".v2.u32", 2, 2 * rng.random_range(0..2)),
                7 => (".v4.u32", 4, 0),
                8 => (".v2.u64", 2, 0),
                12 => (".b128", 2, 0),
                13 => (".b128", 2, 0),
                _ => (".u64", 1, 2 * rng.random_range(0..2)),
            };
            let scope = *["cta", "gpu"].choose(&mut rng).expect("two");
            let list = |items: Vec<String>| {
                if count == 1 {
                    items[0].clone()
                } else {
                    format!("{{{}}}", items.join(", "))
                }
            };
            let place = format!("[x+{}]", 4 * at);
            let wide = suffix == ".b128";
            let halves = if suffix.ends_with("u32") {
                0
            } else {
                (value + 1) << 32
            };
            if sizes && !suffix.contains('v') && rng.random_bool(0.25) {
                let order = *["relaxed", "acquire", "release", "acq_rel"]
                    .choose(&mut rng)
                    .expect("four");
                let names: Vec<String> = (regs..regs + count).map(|r| format!("r{r}")).collect();
                observe.extend(names.iter().take(2).map(|r| format!("P{t}:{r}")));
                regs += count;
                value += 1;
                code += &format!(
                    "atom.{order}.{scope}.exch{} {}, {place}, {};\n",
                    suffix.replace('u', "b"),
                    list(names),
                    list(vec![(halves + value).to_string(); count as usize])
                );
            } else if rng.random_bool(0.5) {
                let order = *["weak", "relaxed", "acquire"][usize::from(wide)..]
                    .choose(&mut rng)
                    .expect("two");
                let order = if order == "weak" {
                    order.to_owned()
                } else {
                    format!("{order}.{scope}")
                };
                let names: Vec<String> = (regs..regs + count).map(|r| format!("r{r}")).collect();
                observe.extend(names.iter().take(2).map(|r| format!("P{t}:{r}")));
                regs += count;
                code += &format!("ld.{order}{suffix} {}, {place};\n", list(names));
            } else {
                let order = *["weak", "relaxed", "release"][usize::from(wide)..]
                    .choose(&mut rng)
                    .expect("two");
                let order = if order == "weak" {
                    order.to_owned()
                } else {
                    format!("{order}.{scope}")
                };
                value += 1;
                code += &format!(
                    "st.{order}{suffix} {place}, {};\n",
                    list(vec![(halves + value).to_string(); count as usize])
                );
            }
            if rng.random_bool(0.2) {
                code += &format!(
                    "fence.{}.{scope};\n",
                    ["acq_rel", "sc"].choose(&mut rng).expect("two")
                );
            }
        }
        threads += &format!(
            "\n[[thread]]\ncta = {}\ncode = '''\n{code}'''\n",
            rng.random_range(0..2)
        );
    }
    let observe: Vec<String> = observe.iter().map(|o| format!("\"{o}\"")).collect();
    text += &format!(
        "observe = [{}]\n\n[memory]\nx = {{ init = [0, 0, 0, 0], type = \"u32\" }}\n{threads}",
        observe.join(", ")
    );
    text
}

pub(crate) fn allowed(test: &LitmusTest, model: &str, engine: Engine) -> Option<BTreeSet<State>> {
    let model = shipped(model);
    let limits = Limits {
        bound: Some(4),
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000))),
    };
    let outcomes = Session::new(test, &model, engine, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    outcomes.allowed_states()
}

fn shown(test: &LitmusTest, memory: MachineMemory) -> Option<BTreeSet<State>> {
    let options = RunOptions {
        memory,
        early: Early::None,
        timeout: Some(Duration::from_secs(2)),
        ..RunOptions::default()
    };
    let observation = observe(test, &options, Schedule::Exhaustive).expect("it runs");
    let seen = operational::name(test, &observation)
        .into_iter()
        .map(|n| n.0)
        .collect();
    observation.complete.then_some(seen)
}

#[test]
fn engines_and_machine_agree() {
    agree(false);
}

#[test]
fn engines_and_machine_agree_on_mixed_sizes() {
    agree(true);
}

fn agree(sizes: bool) {
    // Programs with several sizes take ten times as long.
    let (count, first) = (
        programs(if sizes { 50 } else { 200 }),
        number("FENCEPOST_SEED", 1),
    );
    let seeds: Vec<u64> = (first..first + count).collect();
    let counted = in_parallel(&seeds, |_, &seed| {
        let (mut compared, mut run, mut held, mut all) = (0, 0, 0, 0);
        let text = generate(seed, sizes);
        let test = &parse("generated.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"))[0];
        let ptx = allowed(test, "ptx", Engine::Enumerate);
        for &engine in Engine::ALONE
            .iter()
            .filter(|&&engine| engine != Engine::Enumerate)
        {
            if let (Some(ptx), Some(other)) = (&ptx, allowed(test, "ptx", engine)) {
                assert_eq!(*ptx, other, "{text}");
                compared += u64::from(engine == Engine::Sat);
            }
        }
        if let (Some(model), Some(machine)) = (
            allowed(test, "sc", Engine::Auto),
            shown(test, MachineMemory::Sc),
        ) {
            assert_eq!(model, machine, "{text}");
            run += 1;
        }
        if let (Some(ptx), Some(machine)) = (&ptx, shown(test, MachineMemory::Weak)) {
            assert!(
                machine.is_subset(ptx),
                "{text}{:?}",
                machine.difference(ptx)
            );
            (held, all) = (held + 1, all + u64::from(machine == *ptx));
        }
        [compared, run, held, all]
    });
    let [compared, run, held, all] =
        [0, 1, 2, 3].map(|i| counted.iter().map(|counts| counts[i]).sum::<u64>());
    println!(
        "{count} programs, engines compared on {compared}, machine and `sc` on {run}, and `ptx` on {held}, equal on {all}"
    );
    assert!(
        compared * 2 > count && run * 2 > count,
        "too few are decided: {compared}, {run} of {count}"
    );
    // Without early binds some outcomes do not show.
    assert!(
        held * 2 > count && all * 2 > held,
        "{held} of {count} are run, and all is seen of {all}"
    );
}
