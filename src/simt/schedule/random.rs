//! Random schedules: a thread, then the choices of its step.
//!
//! A thread stays on with probability 0.3, so that runs are neither lockstep nor one thread after the other; choices within a
//! step are uniform, so that old values and inner places of coherence order get their full weight. With early binds, one
//! step in five tries one.
//!
//! # Invariants
//! - Run number `i` of a seed depends on the seed and `i` alone.

use super::{Clock, Ended, Hazards, Limits, Observation, Outcomes, Recorded, Step};
use crate::simt::Halt;
use crate::simt::choice::{Dice, Script};
use crate::simt::layer::Layer;
use crate::simt::memory::Backend;
use crate::simt::record::{HazardKind, Silent};
use crate::simt::state::Status;
use crate::simt::step::{Action, Machine, StateOf};

/// After so many choices that were refused, all successors are looked at.
const MAX_TRIES: usize = 6;

/// How one run ended.
enum End {
    Finished(Vec<i64>, Recorded),
    Stuck(Recorded),
    StepLimit(Recorded),
    Stray(Halt),
}

/// Draws runs.
pub(super) fn sample<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    start: &StateOf<B, L>,
    (runs, seed): (u64, u64),
    limits: &Limits,
) -> Result<Observation, String> {
    let (mut outcomes, mut ended, mut steps) = (Outcomes::default(), Ended::default(), 0);
    let mut clock = Clock::new(limits.timeout);
    let mut reason = None;
    let mut hazards = Hazards::default();
    for run in 0..runs {
        let mut dice = Dice::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(run));
        let mut state = start.clone();
        match one(machine, &mut state, &mut dice, limits.steps, &mut steps)? {
            End::Finished(..) if !machine.memory.is_whole(&state.memory) => ended.discarded += 1,
            End::Finished(outcome, recorded) => {
                ended.finished += 1;
                machine.note_hazards(&state, Some(&outcome), &mut hazards, || recorded.clone());
                outcomes.add(outcome, || recorded);
            }
            End::Stuck(recorded) => {
                machine.count_stuck(&state, &mut ended, &mut hazards, || recorded.clone());
            }
            End::StepLimit(recorded) => {
                // It may well go on for ever; what it has done it has done.
                ended.step_limit += 1;
                for hazard in machine.memory.hazards(machine.code, &state.memory) {
                    if hazard.kind == HazardKind::Race {
                        hazards.add(hazard, None, || recorded.clone());
                    }
                }
            }
            End::Stray(halt) => {
                ended.stray += 1;
                reason.get_or_insert_with(|| machine.why(&halt));
            }
        }
        if clock.is_over() && run + 1 < runs {
            reason = Some("out of time".into());
            break;
        }
    }
    let outcomes = outcomes.into_list();
    Ok(Observation {
        outcomes,
        ended,
        complete: false,
        reason,
        states: steps,
        steps,
        events: Vec::new(),
        hazards: hazards.into_list(),
    })
}

fn one<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    state: &mut StateOf<B, L>,
    dice: &mut Dice,
    limit: usize,
    steps: &mut u64,
) -> Result<End, String> {
    let mut recorded = Recorded::default();
    let (mut last, mut tries) = (None, 0);
    let early = |state: &StateOf<B, L>, thread| {
        machine.memory.may_bind_early(machine.code, &state.memory, &state.threads, thread)
    };
    loop {
        if machine.is_finished(state) {
            dice.taken.clear();
            let (outcome, finals) = machine.draw(state, dice);
            return Ok(End::Finished(outcome, Recorded { finals, ..recorded }));
        }
        if recorded.steps.len() >= limit {
            return Ok(End::StepLimit(recorded));
        }
        let able: Vec<usize> = (0..state.threads.len())
            .filter(|&t| {
                state.threads[t].status == Status::Running
                    && machine.layer.may_step(machine.code, &state.layer, &state.threads, t)
            })
            .collect();
        let stay = last.filter(|t| able.contains(t) && dice.below(10) < 3);
        let pick = match (able.len(), stay) {
            (0, _) => None,
            (_, Some(t)) => Some(t),
            (n, None) => Some(able[dice.below(n)]),
        };
        let done = match pick.filter(|_| tries < MAX_TRIES) {
            Some(thread) => {
                let action =
                    Action { thread, early: machine.binds() && dice.below(5) == 0 && early(state, thread) };
                let mut next = state.clone();
                dice.taken.clear();
                match machine.step(&mut next, action, dice, &mut Silent) {
                    Ok(()) => {
                        *state = next;
                        Some(Step::new(action, std::mem::take(&mut dice.taken)))
                    }
                    Err(Halt::Refused | Halt::Blocked) => None,
                    Err(halt @ Halt::Stray { .. }) => return Ok(End::Stray(halt)),
                    Err(Halt::Limit(_)) => return Ok(End::StepLimit(recorded)),
                    Err(halt @ Halt::Unsupported(_)) => return Err(machine.why(&halt)),
                }
            }
            None => {
                // Chance has not found a way on; look whether there is one.
                let mut all = successors(machine, state)?;
                if all.is_empty() {
                    return Ok(End::Stuck(recorded));
                }
                let (step, next) = all.swap_remove(dice.below(all.len()));
                *state = next;
                Some(step)
            }
        };
        match done {
            Some(step) => {
                *steps += 1;
                (last, tries) = (Some(step.thread), 0);
                recorded.steps.push(step);
                if machine.code.loops {
                    machine.tidy(state);
                }
            }
            None => tries += 1,
        }
    }
}

/// All successors of a state.
#[allow(clippy::type_complexity)] // one pair, used once
fn successors<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    state: &StateOf<B, L>,
) -> Result<Vec<(Step, StateOf<B, L>)>, String> {
    let mut all = Vec::new();
    for action in machine.actions(state) {
        let mut script = Script::default();
        loop {
            script.rewind();
            let mut next = state.clone();
            match machine.step(&mut next, action, &mut script, &mut Silent) {
                Ok(()) => all.push((Step::new(action, script.taken()), next)),
                Err(Halt::Refused | Halt::Blocked | Halt::Stray { .. } | Halt::Limit(_)) => {}
                Err(halt @ Halt::Unsupported(_)) => return Err(machine.why(&halt)),
            }
            if !script.advance() {
                break;
            }
        }
    }
    Ok(all)
}
