//! Puts the executor's observations into a report.

use super::{RunMethod, RunPlan};
use operational::{self, Faults, ModelComparison};
use program::litmus::LitmusTest;
use report::{
    HazardPart, Hazards, Observations, ObservedHazard, ObservedOutcome, RacePair, UnfinishedRuns,
};
use simt::schedule::{Observation, Recorded};
use simt::{self, MachineMemory, Scheduling};
use verdict::Verdict;

/// The machine, in words.
pub(super) fn machine(plan: &RunPlan, mixed: bool) -> String {
    let options = &plan.options;
    let mut text = memory(plan, mixed);
    if options.scheduling != Scheduling::Independent {
        text += &format!(", {} scheduling", options.scheduling.name());
    }
    if let Some(size) = options.launch.warp_size {
        text += &format!(", warps of {size}");
    }
    if let Some(room) = options.launch.capacity() {
        text += &format!(
            ", room for {room} block{}",
            if room == 1 { "" } else { "s" }
        );
    }
    text
}

fn memory(plan: &RunPlan, mixed: bool) -> String {
    let early = match (plan.options.memory, &plan.how, plan.mixed) {
        (MachineMemory::Sc, ..) => return "sequentially consistent memory".into(),
        (memory, ..) if !memory.binds() => {
            return format!("memory of {}, early binds: none", memory.name());
        }
        (_, RunMethod::Replay(_), _) => "as recorded".into(),
        (_, RunMethod::Random { .. }, true) if !mixed => "none".into(),
        (_, RunMethod::Random { .. }, true) => "none, and full:2 in one run of four".into(),
        (_, RunMethod::Exhaustive, true) => "none, then full:1".into(),
        (_, _, false) => plan.options.early.to_string(),
    };
    let memory = match plan.options.memory {
        MachineMemory::Weak => "weak memory".to_owned(),
        language => format!("memory of {}", language.name()),
    };
    format!("{memory}, early binds: {early}")
}

/// Adds observations other than outcomes.
pub(super) fn tell(
    report: &mut Observations,
    test: &LitmusTest,
    plan: &RunPlan,
    observation: &Observation,
) {
    report.stops = observation
        .stops
        .iter()
        .map(|s| UnfinishedRuns {
            how: s.how.name(),
            count: s.count,
            why: s.why.clone(),
            ends: s.ends.clone(),
            trace: trace(test, plan, &s.schedule),
        })
        .collect();
    report.races = observation
        .races
        .iter()
        .map(|r| RacePair {
            location: r.location.clone(),
            space: r.space,
            sides: [r.first.to_string(), r.second.to_string()],
            why: r.why.clone(),
            count: r.count,
        })
        .collect();
    report.judged = observation.judged;
    report.not_judged = observation.not_judged.clone();
}

/// Fills the report; returns the broken law if the model forbids an observation.
pub(super) fn fill(
    report: &mut Observations,
    test: &LitmusTest,
    plan: &RunPlan,
    observation: &Observation,
    held: &ModelComparison,
) -> Option<String> {
    report.ended = observation.ended.words();
    report.complete = observation.complete;
    (report.states, report.listed) = (observation.states, held.complete);
    report.reason = observation.reason.clone().or_else(|| {
        let why = held.reason.as_ref()?;
        (!held.complete).then(|| format!("the outcomes that the model allows: {why}"))
    });
    report.bound = held.bound;
    report.too_large = held.too_large;
    report.not_observed = held.not_observed.clone();
    report.defect = held.defect.clone();
    report.observed = held
        .observed
        .iter()
        .map(|o| ObservedOutcome {
            state: o.state.clone(),
            count: o.count,
            allowed: o.allowed,
            trace: trace(test, plan, &o.schedule),
        })
        .collect();
    let outside: Vec<String> = held
        .observed
        .iter()
        .filter(|o| o.allowed == Some(false))
        .map(|o| {
            o.state
                .iter()
                .map(|(n, v)| format!("{n} = {v}"))
                .collect::<Vec<_>>()
                .join(", ")
        })
        .collect();
    (!outside.is_empty()).then(|| {
        format!(
            "the executor shows outcomes that the model forbids: {}",
            outside.join("; ")
        )
    })
}

/// The observed undefined behaviour, and the model's answer about it.
pub(super) fn hazards(
    test: &LitmusTest,
    observation: &Observation,
    faults: Option<&Faults>,
) -> Hazards {
    let part = |&(thread, instr): &(usize, usize)| {
        let thread = &test.program.threads[thread];
        let instr = &thread.code[instr];
        HazardPart {
            thread: thread.name.clone(),
            line: instr.line.clone(),
            text: instr.text.clone(),
        }
    };
    let names = simt::location_names(test);
    let word = |of: fn(&Faults) -> &Option<Verdict>| {
        faults.and_then(|f| of(f).as_ref()).map(Verdict::word)
    };
    let observed = operational::hazards(test, observation)
        .iter()
        .map(|h| ObservedHazard {
            kind: h.kind.name(),
            undefined: h.kind.is_undefined(),
            place: h.loc.map(|loc| names[loc].clone()),
            parts: std::iter::once(&h.first)
                .chain(&h.second)
                .map(part)
                .collect(),
        })
        .collect();
    Hazards {
        observed,
        race: word(|f| &f.race),
        undefined: word(|f| &f.undefined),
    }
}

/// A run in words, if wanted.
fn trace(test: &LitmusTest, plan: &RunPlan, recorded: &Recorded) -> Option<String> {
    plan.trace
        .then(|| match simt::replay(test, &plan.options, recorded) {
            Ok(observation) => simt::trace(test, &observation.events),
            Err(why) => why,
        })
}
