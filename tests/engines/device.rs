//! Runs random programs on a device and compares the results with the models: the models allow
//! everything that a device shows for a defined program. Also reads kernels in PTX back as tests.
//!
//! Tests that need a device are ignored by default. With an OpenCL driver: `cargo test --test
//! engines -- --ignored device`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fencepost::check::operational;
use fencepost::check::{Engine, Limits, Session};
use fencepost::device::cuda::WarpFill;
use fencepost::device::{self, Trouble};
use fencepost::diag::Diagnostic;
use fencepost::litmus::kernel::PtxFile;
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::model::{Model, load_shipped};
use fencepost::program::dialect::Runtime;
use fencepost::program::{Dialect, Op};
use fencepost::simt::schedule::{Observation, Recorded, RunOutcome};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::{State, Verdict};
use testkit::clike::Lang;
use testkit::clike::shapes::program_of_one_device;
use testkit::suite::{files, in_parallel, is_long, number, programs, sample};

/// The models of OpenCL, from the one that allows least.
const MODELS: [&str; 3] = ["opencl", "opencl-3.1", "opencl-2.0"];

#[test]
#[ignore = "needs an OpenCL device"]
fn random_programs_show_what_the_models_allow() {
    let device = device::devices(Runtime::OpenCl)
        .expect("OpenCL")
        .into_iter()
        .next()
        .expect("a device");
    let models = MODELS.map(|name| {
        load_shipped(name, &signature())
            .expect("shipped")
            .expect("valid")
    });
    let (mut run, mut refused, mut weak, mut undefined) = (0, 0, 0, 0);
    let first = number("FENCEPOST_SEED", 1);
    for seed in first..first + programs(100) {
        let test = program_of_one_device(Lang::OpenCl, seed).read(&format!("random-{seed}"));
        let prepared = match device::prepare(&test, Runtime::OpenCl) {
            Ok(prepared) => prepared,
            Err(Trouble::Refused(_)) => {
                refused += 1;
                continue;
            }
            Err(Trouble::Failed(why)) => panic!("seed {seed}: {why}"),
        };
        let options = device::DeviceOptions {
            instances: 20_000,
            seed,
            time: None,
        };
        let (seen, trouble) = device::run(&prepared, device.as_ref(), &options);
        match trouble {
            Some(Trouble::Refused(_)) => {
                refused += 1;
                continue;
            }
            Some(Trouble::Failed(why)) => panic!("seed {seed}: {why}\n{}", prepared.source),
            None => {}
        }
        assert_eq!(
            seen.stuck, 0,
            "seed {seed}: it has no loops\n{}",
            test.file.text
        );
        let outcomes = seen.outcomes.iter();
        let outcomes = outcomes.map(|(state, &count)| RunOutcome {
            state: state.clone(),
            count,
            schedule: Recorded::default(),
        });
        let observation = Observation {
            outcomes: outcomes.collect(),
            ..Observation::default()
        };
        for model in &models {
            let held = operational::hold(
                &test,
                model,
                Engine::Auto,
                Limits::default(),
                &[],
                &observation,
            );
            assert_eq!(held.defect, None, "seed {seed}");
            if held.observed.iter().all(|o| o.allowed == Some(true)) {
                continue;
            }
            let mut session = Session::new(&test, model, Engine::Auto, Limits::default(), &[]);
            let faults =
                [session.race(), session.undefined()].map(|answer| answer.map(|a| a.verdict));
            if faults.contains(&Some(Verdict::Racy))
                || faults.iter().flatten().any(|v| v.word() == "undefined")
            {
                undefined += 1;
                continue;
            }
            panic!(
                "seed {seed}, {}: {:?}\n{}\n{}",
                model.name, held.observed, test.file.text, prepared.source
            );
        }
        let sc = load_shipped("sc", &signature())
            .expect("shipped")
            .expect("valid");
        let held = operational::hold(
            &test,
            &sc,
            Engine::Auto,
            Limits::default(),
            &[],
            &observation,
        );
        weak += u32::from(held.observed.iter().any(|o| o.allowed == Some(false)));
        run += 1;
    }
    eprintln!(
        "{run} programs run, {refused} refused; {weak} showed what `sc` forbids; {undefined} times undefined"
    );
    assert!(run > 2 * refused, "{run} run, {refused} refused");
}

/// Tests of PTX in the repository.
fn tests_of_ptx() -> Vec<LitmusTest> {
    let tests = files(Path::new("litmus"), &["toml"]).into_iter();
    let tests = tests
        .flat_map(|file| read_path(&file).unwrap_or_else(|d| panic!("{}: {d:?}", file.display())));
    tests
        .filter(|test| test.program.dialect == Dialect::Ptx)
        .collect()
}

/// All outcomes that the model allows, if listing them is quick.
fn allowed(test: &LitmusTest, model: &Model) -> Option<Vec<State>> {
    let limits = Limits {
        timeout: Some(Duration::from_millis(250)),
        ..Limits::default()
    };
    let outcomes = Session::new(test, model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.name);
    let all = outcomes
        .outcomes
        .into_iter()
        .filter(|o| o.allowed)
        .map(|o| o.state)
        .collect();
    outcomes.complete.then_some(all)
}

#[test]
fn a_kernel_in_ptx_has_the_outcomes_of_its_test() {
    let model = load_shipped("ptx", &signature())
        .expect("shipped")
        .expect("valid");
    let (mut same, mut unbuilt, mut unlisted, mut too_many) = (0, 0, 0, 0);
    for test in sample(tests_of_ptx()).step_by(if is_long() { 1 } else { 3 }) {
        let Ok(prepared) = device::prepare_ptx(&test, WarpFill::Bare) else {
            unbuilt += 1;
            continue;
        };
        let Some(once) = prepared.once() else {
            unbuilt += 1;
            continue;
        };
        let wrong = |all: Vec<Diagnostic>| -> (String, Vec<Diagnostic>) {
            let all: Vec<&str> = all.iter().map(|d| d.message.as_str()).collect();
            panic!("{}: {}\n{}", test.name, all.join("; "), prepared.source)
        };
        let module = PtxFile::read("kernel.ptx", &prepared.source);
        let (text, _) = module
            .and_then(|module| module.to_toml(None, &once.launch))
            .unwrap_or_else(wrong);
        let again = fencepost::litmus::parse("kernel.toml", text.as_bytes())
            .expect("it was read back")
            .remove(0);
        // A loop bound cuts some lists in every engine.
        let Some(wanted) = allowed(&test, &model) else {
            unlisted += 1;
            continue;
        };
        let Some(found) = allowed(&again, &model) else {
            too_many += 1;
            continue;
        };
        // A number that is also an address is printed as an address.
        let number = |value: &str| -> Option<i64> {
            value
                .parse::<i64>()
                .ok()
                .or_else(|| value.parse::<u64>().ok().map(|n| n as i64))
        };
        let value = |state: &State, name: &str| -> Option<i64> {
            number(
                &state
                    .iter()
                    .find(|(own, _)| **own == *name)
                    .unwrap_or_else(|| panic!("{name}: {state:?}"))
                    .1,
            )
        };
        let numbers = |state: &State| state.iter().map(|(_, value)| number(value)).collect();
        let wanted: Option<BTreeSet<Vec<i64>>> = wanted.iter().map(numbers).collect();
        let ended = |state: &&State| once.ends.iter().all(|end| value(state, end) == Some(1));
        let of_test = |state: &State| {
            once.places
                .iter()
                .map(|place| value(state, place))
                .collect()
        };
        let found: Option<BTreeSet<Vec<i64>>> = found.iter().filter(ended).map(of_test).collect();
        let (Some(wanted), Some(mut found)) = (wanted, found) else {
            unlisted += 1;
            continue;
        };
        // A device ignores filters: the test applies them to its outcomes.
        found.retain(|state| operational::passes(&test, state));
        // The barrier for handing over values orders more than necessary.
        let hands_over = test
            .program
            .instrs()
            .any(|(_, _, instr)| matches!(instr.op, Op::Give { .. }));
        let as_wanted = if hands_over {
            found.is_subset(&wanted)
        } else {
            found == wanted
        };
        assert!(
            as_wanted,
            "{}: {found:?} instead of {wanted:?}\n{}\n{text}",
            test.name, prepared.source
        );
        same += 1;
    }
    let text = format!(
        "{same} kernels with the same outcomes, {too_many} with too many accesses; {unlisted} tests without a list, {unbuilt} without a kernel"
    );
    eprintln!("{text}");
    assert!(same > too_many + unlisted, "{text}");
}

#[test]
#[ignore = "needs PTXAS, NVIDIA's assembler"]
fn the_assembler_takes_every_kernel_in_ptx() {
    let ptxas = std::env::var("PTXAS").expect("PTXAS is the path of ptxas");
    let folder = tempfile::tempdir().expect("a folder");
    let taken = in_parallel(&tests_of_ptx(), |i, test| {
        let Ok(prepared) = device::prepare(test, Runtime::Cuda) else {
            return false;
        };
        let file = folder.path().join(format!("kernel-{i}.ptx"));
        std::fs::write(&file, &prepared.source).expect("it can be written");
        // The assembler decides about later versions.
        let words = ["-arch=sm_90", "-o", "/dev/null"];
        let said = std::process::Command::new(&ptxas)
            .args(words)
            .arg(&file)
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&said.stderr);
        assert!(
            said.status.success(),
            "{}: {told}\n{}",
            test.name,
            prepared.source
        );
        true
    });
    let taken = taken.into_iter().filter(|&taken| taken).count();
    eprintln!("{taken} kernels");
    assert!(taken > 800, "{taken} kernels");
}
