//! Random programs of PTX with accesses of several sizes. The model `ptx` allows the same outcomes
//! as the oracle for whole operations and single bytes, and both call the same programs undefined.

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::parse;
use fencepost::verdict::Verdict;
use testkit::bytewise::generate;
use testkit::suite::{number, programs, shipped};

use crate::vectors::allowed;

#[test]
fn cells_mean_what_bytes_mean() {
    let (count, first) = (programs(4000), number("FENCEPOST_SEED", 1));
    let (mut defined, mut undefined, mut alike) = (0, 0, 0);
    for seed in first..first + count {
        let program = generate(seed);
        let text = program.text();
        let behaviour = program.behaviour();
        let test = &parse("generated.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"))[0];
        let model = shipped("ptx");
        let asked = Session::new(test, &model, Engine::Auto, Limits::default(), &[]).undefined();
        if matches!(
            asked.as_ref().map(|answer| &answer.verdict),
            Some(Verdict::Undecided(_))
        ) {
            continue;
        }
        let is_undefined = asked.is_some_and(|answer| answer.verdict == Verdict::Undefined);
        assert_eq!(
            is_undefined, behaviour.undefined,
            "undefined? seed {seed}\n{text}"
        );
        let Some(outcomes) = allowed(test, "ptx", Engine::Auto) else {
            continue;
        };
        if behaviour.undefined {
            undefined += 1;
            alike += u64::from(outcomes == behaviour.outcomes);
            continue;
        }
        defined += 1;
        let (more, less) = (
            outcomes.difference(&behaviour.outcomes),
            behaviour.outcomes.difference(&outcomes),
        );
        assert_eq!(
            outcomes,
            behaviour.outcomes,
            "seed {seed}\n{text}too many: {:?}\ntoo few: {:?}",
            more.collect::<Vec<_>>(),
            less.collect::<Vec<_>>()
        );
    }
    println!(
        "{count} programs: {defined} defined, with equal outcomes; {undefined} undefined, {alike} of them too"
    );
    assert!(
        defined * 3 > count,
        "too few are defined and decided: {defined} of {count}"
    );
}
