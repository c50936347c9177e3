//! Replay: the steps and choices of a recording, with everything that happens written down.

use super::{Ended, Hazards, Observation, Recorded, Seen};
use crate::simt::choice::Tape;
use crate::simt::layer::Layer;
use crate::simt::memory::Backend;
use crate::simt::record::Event;
use crate::simt::step::Machine;

/// Plays a recording.
///
/// # Errors
/// If it does not fit the program.
pub(super) fn play<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    recorded: &Recorded,
) -> Result<Observation, String> {
    let mut events: Vec<Event> = Vec::new();
    let mut state = machine.start(&mut events).map_err(|halt| machine.why(&halt))?;
    for (i, step) in recorded.steps.iter().enumerate() {
        let misfit = |why: &str| format!("the recorded schedule does not fit this test: step {}: {why}", i + 1);
        if !machine.actions(&state).contains(&step.action()) {
            return Err(misfit("its thread cannot step"));
        }
        let mut tape = Tape::new(&step.answers);
        let result = machine.step(&mut state, step.action(), &mut tape, &mut events);
        if !tape.fitted() {
            return Err(misfit("its choices are others"));
        }
        result.map_err(|halt| misfit(&machine.why(&halt)))?;
        if machine.code.loops {
            machine.tidy(&mut state);
        }
    }
    let mut ended = Ended::default();
    let mut outcomes = Vec::new();
    let mut hazards = Hazards::default();
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
    } else if machine.actions(&state).is_empty() {
        machine.count_stuck(&state, &mut ended, &mut hazards, || recorded.clone());
    } else {
        ended.step_limit = 1;
    }
    let steps = recorded.steps.len() as u64;
    let hazards = hazards.into_list();
    Ok(Observation { outcomes, ended, complete: false, reason: None, states: steps, steps, events, hazards })
}
