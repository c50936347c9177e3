//! Finds the obstacle of each thread, and the threads for which it waits, in a run that does not go
//! on. The engines describe a hanging execution in the same form.
//!
//! # Invariants
//! - The result covers only programs with few threads: a picture of more shows nothing.

use std::ops::RangeInclusive;

use super::agents;
use super::code::{Act, Code};
use super::host;
use super::memory::Backend;
use super::set::Set;
use super::state::MachineState;
use super::step::Machine;
use super::thread::{ThreadState, ThreadStatus};
use program::waiting::{LoopWalk, PausedProgram};
use program::{LocId, ThreadId};
use verdict::hang::{self, Goal, Site, Wait};
use verdict::{Ending, ThreadEnd};

/// Programs with more threads are explained only in words.
const MAX_THREADS: usize = 16;

/// The situation of each thread in a state that the run does not leave; `turning` lists the threads
/// that still step, if known. Empty for programs of many threads.
pub(super) fn ends<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    turning: Option<&Set>,
) -> Vec<ThreadEnd> {
    if state.threads.len() > MAX_THREADS {
        return Vec::new();
    }
    (0..state.threads.len())
        .map(|t| end(machine, state, turning, t))
        .collect()
}

/// The reason why a thread does not go on.
pub(super) enum Obstacle {
    /// The thread has ended.
    Ended,
    /// It waits at a barrier or a meeting until other threads arrive.
    Arrivals,
    /// It runs in a loop without access to memory.
    Lost,
    /// It is an agent that waits for the accesses of its operation.
    Agents,
    /// Its command has not begun, or it is in a call (`calling`).
    Host { why: String, calling: bool },
    /// It is at an instruction, which is not executed.
    Turn {
        /// Whether it waits to arrive again at a barrier.
        held_up: bool,
        /// The reason of the scheduler layer, if it has one.
        layer: Option<String>,
    },
}

/// The obstacle of a thread.
pub(super) fn obstacle<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    t: usize,
) -> Obstacle {
    let (code, threads) = (machine.code, &state.threads);
    match threads[t].status {
        ThreadStatus::Ended => Obstacle::Ended,
        ThreadStatus::Waiting => Obstacle::Arrivals,
        ThreadStatus::Lost => Obstacle::Lost,
        ThreadStatus::Held if !threads[t].after.is_empty() => Obstacle::Agents,
        ThreadStatus::Held => Obstacle::Host {
            why: host::unmet(code, &state.host, threads, t),
            calling: state.host.is_calling(t),
        },
        ThreadStatus::Running => Obstacle::Turn {
            held_up: state.barriers.holds_up(code, t, &threads[t]),
            layer: machine.layer.obstacle(code, &state.layer, threads, t),
        },
    }
}

fn end<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    turning: Option<&Set>,
    t: usize,
) -> ThreadEnd {
    let (code, thread) = (machine.code, &state.threads[t]);
    let mut end = ThreadEnd::done(&code.program.threads[t].name);
    let turns = turning.is_none_or(|set| set.has(t));
    let mut at = thread.pc;
    match obstacle(machine, state, t) {
        Obstacle::Ended => return end,
        Obstacle::Arrivals => {
            end.ending = Ending::Blocked;
            let missing = missing_of(machine, state, t);
            end.waits_for = missing.iter().map(|&u| name(machine, u)).collect();
            end.why = hang::never_arrive(&end.waits_for);
            // A thread that has ended cannot help any more.
            let left = missing.iter().filter(|&&u| !state.threads[u].is_over());
            end.waits.push(Wait::at_barrier(
                &left.map(|&u| name(machine, u)).collect::<Vec<_>>(),
            ));
        }
        Obstacle::Turn { held_up: true, .. } => {
            end.ending = Ending::Blocked;
            end.why = "waits to arrive again: the phase in which it arrived is not over".to_owned();
        }
        Obstacle::Turn { layer: None, .. }
            if turns && let Some(range) = innermost(code, t, thread) =>
        {
            end.ending = Ending::Looping;
            at = *range.start();
            for_values(machine, state, t, &range, &mut end);
            end.why = format!("loops forever{}", hang::reading(&end.polls));
        }
        Obstacle::Agents => {
            (end.ending, end.served) = (Ending::Stopped, false);
            end.why = agents::WAITS.to_owned();
        }
        Obstacle::Host { why, calling } => {
            end.ending = if calling {
                Ending::Blocked
            } else {
                Ending::Stopped
            };
            end.served = calling;
            end.why = why;
            end.waits = host::held(code, &state.host, &state.threads, t);
            if !calling {
                return end;
            }
        }
        Obstacle::Lost => {
            end.ending = Ending::Looping;
            end.why = "loops forever".to_owned();
        }
        Obstacle::Turn { layer, .. } => {
            (end.ending, end.served) = (Ending::Stopped, false);
            end.why = layer.unwrap_or_else(|| "does not run any more".to_owned());
        }
    }
    let instr = &code.program.threads[t].code[at];
    (end.line, end.text) = (instr.line.clone(), instr.text.clone());
    end
}

/// The innermost loop around the next instruction.
pub(super) fn innermost(
    code: &Code,
    t: usize,
    thread: &ThreadState,
) -> Option<RangeInclusive<usize>> {
    let acts = &code.threads[t].acts;
    acts.iter()
        .enumerate()
        .filter_map(|(pc, act)| match act {
            Act::Branch { target, .. } if (*target..=pc).contains(&thread.pc) => {
                Some((pc - target, *target, pc))
            }
            _ => None,
        })
        .min()
        .map(|(_, from, to)| from..=to)
}

/// The threads that are missing at the barrier where a thread waits.
fn missing_of<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    t: usize,
) -> Vec<usize> {
    let mut waits = state
        .barriers
        .waits(machine.code, |u| state.threads[u].is_over());
    waits
        .find(|(_, waiting, ..)| waiting.has(t))
        .map_or(Vec::new(), |(_, _, missing, _)| missing)
}

fn name<B: Backend>(machine: &Machine<'_, B>, t: usize) -> String {
    machine.code.program.threads[t].name.clone()
}

/// Adds the values that a thread reads in a loop and waits for.
fn for_values<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    t: usize,
    range: &RangeInclusive<usize>,
    end: &mut ThreadEnd,
) {
    let code = machine.code;
    let (program, memory) = (&*code.program, &code.memory);
    let address = |t: ThreadId, loc: LocId| memory.address(program, loc, 0, Some(t));
    let place = |a: i64| memory.at(a).map(|c| code.location(c));
    let same = |a: i64, b: i64| place(a) == place(b);
    // A thread that waits at a barrier goes on after it, if at all.
    let rest = state.threads.iter().map(|u| match u.status {
        ThreadStatus::Ended => None,
        ThreadStatus::Waiting => Some(u.pc + 1),
        ThreadStatus::Running | ThreadStatus::Lost | ThreadStatus::Held => Some(u.pc),
    });
    let scene = PausedProgram {
        program,
        address: &address,
        same: &same,
        rest: rest.collect(),
    };
    let thread = &state.threads[t];
    let walk = LoopWalk {
        pc: thread.pc,
        regs: thread.regs.to_vec(),
    };
    let seen = |a: i64| {
        machine
            .memory
            .finals(&state.memory, place(a)?)
            .first()
            .copied()
    };
    let polls = scene.polls(ThreadId(t as u16), &walk, range, &seen);
    for poll in &polls {
        let Some(at) = memory.at(poll.address).map(|c| memory.cell(c).memory) else {
            continue;
        };
        let name = memory.cell(at).name.clone();
        end.polls
            .push((name.clone(), memory.show_in(program, at, poll.seen)));
        let goal = match &poll.wanted {
            Some(wanted) => Goal::Value(memory.awaited(program, at, wanted, poll.seen)),
            None if polls.iter().all(|p| p.wanted.is_none()) => Goal::Change(name),
            None => continue,
        };
        let helpers = poll
            .writers
            .iter()
            .map(|&(u, pc)| {
                let other = program.thread(u);
                Site {
                    thread: other.name.clone(),
                    line: other.code[pc].line.clone(),
                }
            })
            .collect();
        end.waits.push(Wait {
            goal,
            helpers,
            only: poll.sure,
            missed: Vec::new(),
        });
    }
}
