//! Kernels of one block whose threads meet at barriers, leave loops and exit by values read,
//! compared with an interpreter with vector clocks ([`testkit::phases`]). Under `sc` they have the
//! same outcomes, and the same of them hang. Under `ptx` the same of them race, and those that do
//! not race have the same outcomes there and hang alike.

use std::collections::BTreeSet;
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::LitmusTest;
use fencepost::model::Model;
use fencepost::verdict::Verdict;
use testkit::phases::Kernel;
use testkit::suite::{number, programs, shipped};

/// The result of a comparison.
#[derive(Debug, PartialEq)]
enum Compared {
    Racy,
    Stuck,
    Same,
    /// It is too large.
    Skipped,
    Different(String),
}

fn limits() -> Limits {
    let timeout = Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000));
    Limits {
        timeout: Some(timeout),
        ..Limits::default()
    }
}

/// All outcomes that a model allows, if known.
fn allowed(session: &mut Session<'_>) -> Option<BTreeSet<verdict::State>> {
    let outcomes = session.outcomes();
    assert_eq!(outcomes.defect, None);
    let allowed = outcomes
        .outcomes
        .into_iter()
        .filter(|outcome| outcome.allowed)
        .map(|outcome| {
            let mut state = outcome.state;
            state.sort();
            state
        });
    outcomes.complete.then(|| allowed.collect())
}

/// Whether threads can wait forever, if known.
fn hangs(test: &LitmusTest, model: &Model) -> Option<bool> {
    let setting = LivenessTask::new(test, model);
    match Liveness::new(&setting, Engine::Auto, limits(), &[])
        .ask(ProgressModel::Fair)
        .verdict
    {
        Verdict::Hangs => Some(true),
        Verdict::Terminates => Some(false),
        _ => None,
    }
}

/// Whether two sets are equal, or the first has more and may have; if not, the difference.
fn same(
    found: &BTreeSet<verdict::State>,
    expected: &BTreeSet<verdict::State>,
    may_have_more: bool,
) -> Result<(), String> {
    if found == expected || may_have_more && found.is_superset(expected) {
        return Ok(());
    }
    let only =
        |a: &BTreeSet<_>, b: &BTreeSet<_>| format!("{:?}", a.difference(b).collect::<Vec<_>>());
    Err(format!(
        "only the model: {}\nonly the interpreter: {}",
        only(found, expected),
        only(expected, found)
    ))
}

fn compare(kernel: &Kernel, [sc, ptx]: [&Model; 2]) -> Compared {
    let Some(expected) = kernel.behaviour() else {
        return Compared::Skipped;
    };
    let test = kernel.read();
    let in_order = allowed(&mut Session::new(&test, sc, Engine::Auto, limits(), &[]));
    if let Some(Err(how)) = in_order.map(|found| same(&found, &expected.outcomes, false)) {
        return Compared::Different(format!("sc: {how}"));
    }
    let mut session = Session::new(&test, ptx, Engine::Auto, limits(), &[]);
    // If neither a race nor an exit decides the order of accesses, it is that of an interleaving.
    let exact = !expected.racy && !expected.loose;
    for (model, exact) in [(sc, true), (ptx, exact)] {
        if hangs(&test, model).is_some_and(|hangs| hangs != expected.stuck && (exact || !hangs)) {
            return Compared::Different(format!(
                "{}: hangs, or else the interpreter says so",
                model.name
            ));
        }
    }
    if expected.stuck {
        return Compared::Stuck;
    }
    let racy = match session.race().map(|answer| answer.verdict) {
        Some(Verdict::Racy) => true,
        Some(Verdict::RaceFree) => false,
        _ => return Compared::Skipped,
    };
    // After an exit of a thread, no handover covers its accesses.
    if racy != expected.racy && !(racy && expected.loose) {
        return Compared::Different(format!(
            "racy: {racy}, and the interpreter says {}",
            expected.racy
        ));
    }
    if racy {
        return Compared::Racy;
    }
    match allowed(&mut session).map(|found| same(&found, &expected.outcomes, expected.loose)) {
        None => Compared::Skipped,
        Some(Ok(())) => Compared::Same,
        Some(Err(how)) => Compared::Different(format!("ptx: {how}")),
    }
}

#[test]
fn kernels_of_one_block_are_what_interleavings_say() {
    let [sc, ptx] = ["sc", "ptx"].map(shipped);
    let models = [&sc, &ptx];
    let (count, first) = (programs(2_000), number("FENCEPOST_SEED", 1));
    let (mut racy, mut stuck, mut same, mut skipped) = (0, 0, 0, 0);
    for seed in first..first + count {
        let kernel = Kernel::of(seed);
        match compare(&kernel, models) {
            Compared::Racy => racy += 1,
            Compared::Stuck => stuck += 1,
            Compared::Same => same += 1,
            Compared::Skipped => skipped += 1,
            Compared::Different(_) => {
                let differs =
                    |kernel: &Kernel| matches!(compare(kernel, models), Compared::Different(_));
                let small = kernel.smallest(differs);
                panic!(
                    "seed {seed}: {:?}\n{}",
                    compare(&small, models),
                    small.text()
                );
            }
        }
    }
    println!(
        "{count} kernels: {racy} race, {stuck} wait for ever, {same} the same, {skipped} skipped"
    );
    assert!(
        racy > 0 && stuck > 0 && same > 0 && skipped * 4 < count,
        "{racy} {stuck} {same} {skipped}"
    );
}
