//! Replays the steps and choices of a recording, and logs every event.

use super::{EndCounts, Observation, Recorded, SearchLimits, Seeing, StopKind};
use crate::choice::Tape;
use crate::memory::Backend;
use crate::record::{RunEvent, Silent};
use crate::state::MachineState;
use crate::step::Machine;
use crate::{StepHalt, explain, race};

/// Plays a recording.
///
/// # Errors
/// If it does not fit the program.
pub(super) fn play<B: Backend>(
    machine: &Machine<'_, B>,
    recorded: &Recorded,
    limits: &SearchLimits,
) -> Result<Observation, String> {
    let mut events: Vec<RunEvent> = Vec::new();
    let mut state = machine
        .start(&mut events)
        .map_err(|halt| machine.why(&halt))?;
    let mut seeing = Seeing::default();
    let before = recorded
        .steps
        .len()
        .checked_sub(recorded.round)
        .filter(|_| recorded.round > 0);
    let mut begun = None;
    for (i, step) in recorded.steps.iter().enumerate() {
        if before == Some(i) {
            begun = Some(fingerprint(machine, &state));
            events.push(RunEvent::Round);
        }
        if !machine.may(&state, step.action()) {
            return Err(misfit(i, "its thread cannot step"));
        }
        let active = machine.layer.active(&state.layer, step.thread);
        events.push(RunEvent::Turn {
            thread: step.thread,
            active,
        });
        let mut tape = Tape::new(&step.answers);
        let result = machine.step(&mut state, step.action(), &mut tape, &mut events);
        if !tape.fitted() {
            return Err(misfit(i, "its choices are others"));
        }
        match result {
            Ok(_) => {}
            // A fault or a limit ends the run, so it is the last step.
            Err(halt @ (StepHalt::Fault { .. } | StepHalt::Limit(_)))
                if i + 1 == recorded.steps.len() =>
            {
                seeing.fault(machine, &halt, recorded.clone());
            }
            Err(halt) => return Err(misfit(i, &machine.why(&halt))),
        }
        if machine.tidies(i + 1, recorded.period.max(1)) {
            machine.tidy(&mut state);
        }
    }
    match begun {
        _ if machine.is_finished(&state) => {
            finished(machine, &state, &events, recorded, &mut seeing)?
        }
        _ if seeing.ended != EndCounts::default() => {}
        Some(begun) => {
            if begun != fingerprint(machine, &state) {
                return Err(
                    "the recorded schedule does not fit this test: its last steps do not repeat a \
                    state"
                        .into(),
                );
            }
            let turning = recorded.steps[recorded.steps.len() - recorded.round..]
                .iter()
                .map(|s| s.thread)
                .collect();
            seeing.stop(
                StopKind::Livelock,
                || explain::spinning(machine, &state, Some(&turning)),
                recorded.clone(),
            );
        }
        None => unfinished(machine, &state, &events, recorded, &mut seeing),
    }
    if limits.races {
        let looked = race::find(machine.code, &events, recorded, &mut seeing.races, &|| {
            false
        });
        seeing.judged = u64::from(looked == race::RaceCoverage::Through);
    } else if limits.explain {
        let found = machine.memory.hazards(machine.code, &state.memory);
        race::explain(
            machine.code,
            &events,
            recorded,
            &found,
            &mut seeing.races,
            &|| false,
        );
    }
    let steps = recorded.steps.len() as u64;
    // A replay shows the recorded run, and no limit cuts it.
    Ok(Observation {
        states: steps,
        steps,
        events,
        reason: None,
        ..seeing.into()
    })
}

fn misfit(i: usize, why: &str) -> String {
    format!(
        "the recorded schedule does not fit this test: step {}: {why}",
        i + 1
    )
}

/// Records the outcome of a run that ended, with the final values that the recording picks.
///
/// # Errors
/// If the recording does not fit.
fn finished<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    events: &[RunEvent],
    recorded: &Recorded,
    seeing: &mut Seeing,
) -> Result<(), String> {
    let values = machine.final_values(state);
    let picks = if recorded.finals.is_empty() {
        vec![0; values.len()]
    } else {
        recorded.finals.clone()
    };
    let fits = picks.len() == values.len()
        && picks
            .iter()
            .zip(&values)
            .all(|(p, v)| (*p as usize) < v.1.len());
    if !fits {
        return Err("the recorded schedule does not fit this test: its final values differ".into());
    }
    seeing.ended.finished = 1;
    let outcome = machine.outcome(state, &values, &picks);
    seeing.hazards(machine, state, Some(&outcome), || recorded.clone());
    seeing.misuse(machine, state, events, Some(&outcome), recorded);
    seeing.outcomes.add(outcome, || recorded.clone());
    Ok(())
}

/// Records a run that has not ended: it is stuck, or a limit cut it.
fn unfinished<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    events: &[RunEvent],
    recorded: &Recorded,
    seeing: &mut Seeing,
) {
    if machine.actions(state).is_empty() {
        seeing.stuck(machine, state, || recorded.clone());
        if seeing.ended.discarded == 0 {
            seeing.misuse(machine, state, events, None, recorded);
        }
    }
    if seeing.stops.is_empty() {
        seeing.ended.count(
            StopKind::Limit,
            u64::from(seeing.ended == EndCounts::default()),
        );
        seeing.stops.add(
            StopKind::Limit,
            || explain::spinning(machine, state, None),
            recorded.clone(),
        );
    }
}

/// The fingerprint of a state that need not be in normal form.
fn fingerprint<B: Backend>(machine: &Machine<'_, B>, state: &MachineState<B>) -> u128 {
    let mut state = state.clone();
    machine.tidy(&mut state);
    machine.fingerprint(&state)
}

/// The state after the steps of a recording that fits.
///
/// # Errors
/// If it does not fit after all.
pub(super) fn state_after<B: Backend>(
    machine: &Machine<'_, B>,
    recorded: &Recorded,
) -> Result<MachineState<B>, String> {
    let mut state = machine
        .start(&mut Silent)
        .map_err(|halt| machine.why(&halt))?;
    for (i, step) in recorded.steps.iter().enumerate() {
        let mut tape = Tape::new(&step.answers);
        machine
            .step(&mut state, step.action(), &mut tape, &mut Silent)
            .map_err(|halt| machine.why(&halt))?;
        if machine.tidies(i + 1, recorded.period.max(1)) {
            machine.tidy(&mut state);
        }
    }
    Ok(state)
}
