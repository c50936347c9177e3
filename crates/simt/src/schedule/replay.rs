//! Replay: the steps and choices of a recording, with everything that happens written down.

use super::{Ended, Hazards, How, Limits, Observation, Reason, Recorded, Seen, Stops};
use crate::choice::Tape;
use crate::layer::Layer;
use crate::memory::Backend;
use crate::record::{Event, Silent};
use crate::step::{Machine, StateOf};
use crate::{Halt, explain, race};

/// Plays a recording.
///
/// # Errors
/// If it does not fit the program.
pub(super) fn play<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    recorded: &Recorded,
    limits: &Limits,
) -> Result<Observation, String> {
    let mut events: Vec<Event> = Vec::new();
    let mut state = machine.start(&mut events).map_err(|halt| machine.why(&halt))?;
    let (mut ended, mut stops) = (Ended::default(), Stops::default());
    let before = recorded.steps.len().checked_sub(recorded.round).filter(|_| recorded.round > 0);
    let mut begun = None;
    for (i, step) in recorded.steps.iter().enumerate() {
        if before == Some(i) {
            begun = Some(fingerprint(machine, &state));
            events.push(Event::Round);
        }
        let misfit = |why: &str| format!("the recorded schedule does not fit this test: step {}: {why}", i + 1);
        if !machine.may(&state, step.action()) {
            return Err(misfit("its thread cannot step"));
        }
        let active = machine.layer.active(&state.layer, step.thread);
        events.push(Event::Turn { thread: step.thread, active });
        let mut tape = Tape::new(&step.answers);
        let result = machine.step(&mut state, step.action(), &mut tape, &mut events);
        if !tape.fitted() {
            return Err(misfit("its choices are others"));
        }
        match result {
            Ok(_) => {}
            // What a run ends with is its last step.
            Err(halt @ (Halt::Fault { .. } | Halt::Limit(_))) if i + 1 == recorded.steps.len() => {
                let how = ended.count_fault(&halt);
                stops.add(how, || Reason::line(machine.why(&halt)), recorded.clone());
            }
            Err(halt) => return Err(misfit(&machine.why(&halt))),
        }
        if machine.tidies(i + 1, recorded.period.max(1)) {
            machine.tidy(&mut state);
        }
    }
    let (mut outcomes, mut hazards) = (Vec::new(), Hazards::default());
    if machine.is_finished(&state) {
        let values = machine.final_values(&state);
        let picks = if recorded.finals.is_empty() { vec![0; values.len()] } else { recorded.finals.clone() };
        let fits =
            picks.len() == values.len() && picks.iter().zip(&values).all(|(p, v)| (*p as usize) < v.1.len());
        if !fits {
            return Err("the recorded schedule does not fit this test: its final values are others".into());
        }
        ended.finished = 1;
        let outcome = machine.outcome(&state, &values, &picks);
        machine.note_hazards(&state, Some(&outcome), &mut hazards, || recorded.clone());
        let state = outcome;
        outcomes.push(Seen { state, count: 1, schedule: recorded.clone() });
    } else if begun.is_some() && ended == Ended::default() {
        if begun != Some(fingerprint(machine, &state)) {
            return Err("the recorded schedule does not fit this test: its last steps do not come back".into());
        }
        let turning = recorded.steps[recorded.steps.len() - recorded.round..].iter().map(|s| s.thread).collect();
        ended.livelock = 1;
        stops.add(How::Livelock, || explain::spinning(machine, &state, Some(&turning)), recorded.clone());
    } else if ended == Ended::default() {
        let stuck = machine.actions(&state).is_empty().then(|| machine.count_stuck(&state, &mut ended)).flatten();
        let why = || {
            if stuck.is_some() {
                explain::stuck(machine, &state)
            } else {
                explain::spinning(machine, &state, None)
            }
        };
        if stuck == Some(How::Deadlock) {
            machine.note_hazards(&state, None, &mut hazards, || recorded.clone());
        }
        ended.step_limit += u64::from(ended == Ended::default());
        stops.add(stuck.unwrap_or(How::Limit), why, recorded.clone());
    }
    let mut races = Vec::new();
    if limits.races {
        race::find(machine.code, &events, recorded, &mut races);
    } else if limits.explain {
        let found = machine.memory.hazards(machine.code, &state.memory);
        race::explain(machine.code, &events, (recorded, &found), &mut races);
    }
    let steps = recorded.steps.len() as u64;
    let (stops, judged) = (stops.into_list(), u64::from(limits.races));
    Ok(Observation {
        outcomes,
        ended,
        stops,
        races,
        judged,
        hazards: hazards.into_list(),
        states: steps,
        steps,
        events,
        ..Observation::default()
    })
}

/// The fingerprint of a state that may not be in normal form.
fn fingerprint<B: Backend, L: Layer>(machine: &Machine<'_, B, L>, state: &StateOf<B, L>) -> u128 {
    let mut state = state.clone();
    machine.tidy(&mut state);
    machine.fingerprint(&state)
}

/// The state after the steps of a recording that fits.
///
/// # Errors
/// If it does not fit after all.
pub(super) fn state_after<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    recorded: &Recorded,
) -> Result<StateOf<B, L>, String> {
    let mut state = machine.start(&mut Silent).map_err(|halt| machine.why(&halt))?;
    for (i, step) in recorded.steps.iter().enumerate() {
        let mut tape = Tape::new(&step.answers);
        machine.step(&mut state, step.action(), &mut tape, &mut Silent).map_err(|halt| machine.why(&halt))?;
        if machine.tidies(i + 1, recorded.period.max(1)) {
            machine.tidy(&mut state);
        }
    }
    Ok(state)
}
