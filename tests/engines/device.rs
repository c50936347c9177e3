//! Random programs on a device, held against the models: what a device shows of a program that is defined, the models
//! allow.
//!
//! These tests need a device and are ignored unless they are asked for; with an OpenCL driver:
//! `cargo test --test engines -- --ignored device`.

use fencepost::check::operational;
use fencepost::check::{Engine, Limits, Session};
use fencepost::device::{self, Trouble, opencl};
use fencepost::model::load_shipped;
use fencepost::simt::schedule::{Observation, Recorded, Seen};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::Verdict;
use testkit::clike::Lang;
use testkit::clike::shapes::program;
use testkit::suite::{number, programs};

/// The models of OpenCL, from the one that allows least.
const MODELS: [&str; 3] = ["opencl", "opencl-3.1", "opencl-2.0"];

#[test]
#[ignore = "needs an OpenCL device"]
fn random_programs_show_what_the_models_allow() {
    let device = opencl::devices().expect("OpenCL").into_iter().next().expect("a device");
    let models = MODELS.map(|name| load_shipped(name, &signature()).expect("shipped").expect("valid"));
    let (mut run, mut refused, mut weak, mut undefined) = (0, 0, 0, 0);
    let first = number("FENCEPOST_SEED", 1);
    for seed in first..first + programs(100) {
        let test = program(Lang::OpenCl, seed).read(&format!("random-{seed}"));
        let prepared = match device::prepare(&test) {
            Ok(prepared) => prepared,
            Err(Trouble::Refused(_)) => {
                refused += 1;
                continue;
            }
            Err(Trouble::Failed(why)) => panic!("seed {seed}: {why}"),
        };
        let options = device::Options { instances: 20_000, seed, time: None };
        let (seen, trouble) = device::run(&prepared, &device, &options);
        match trouble {
            Some(Trouble::Refused(_)) => {
                refused += 1;
                continue;
            }
            Some(Trouble::Failed(why)) => panic!("seed {seed}: {why}\n{}", prepared.source),
            None => {}
        }
        assert_eq!(seen.stuck, 0, "seed {seed}: it has no loops\n{}", test.file.text);
        let outcomes = seen.outcomes.iter();
        let outcomes =
            outcomes.map(|(state, &count)| Seen { state: state.clone(), count, schedule: Recorded::default() });
        let observation = Observation { outcomes: outcomes.collect(), ..Observation::default() };
        for model in &models {
            let held = operational::hold(&test, model, Engine::Auto, Limits::default(), &[], &observation);
            assert_eq!(held.defect, None, "seed {seed}");
            if held.observed.iter().all(|o| o.allowed == Some(true)) {
                continue;
            }
            let mut session = Session::new(&test, model, Engine::Auto, Limits::default(), &[]);
            let faults = [session.race(), session.undefined()].map(|answer| answer.map(|a| a.verdict));
            if faults.contains(&Some(Verdict::Racy)) || faults.iter().flatten().any(|v| v.word() == "undefined") {
                undefined += 1;
                continue;
            }
            panic!("seed {seed}, {}: {:?}\n{}\n{}", model.name, held.observed, test.file.text, prepared.source);
        }
        let sc = load_shipped("sc", &signature()).expect("shipped").expect("valid");
        let held = operational::hold(&test, &sc, Engine::Auto, Limits::default(), &[], &observation);
        weak += u32::from(held.observed.iter().any(|o| o.allowed == Some(false)));
        run += 1;
    }
    eprintln!(
        "{run} programs run, {refused} refused; {weak} showed what `sc` forbids; {undefined} times undefined"
    );
    assert!(run > 2 * refused, "{run} run, {refused} refused");
}
