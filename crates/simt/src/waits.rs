//! Finds the threads for which each thread waits, in a run that does not go on. The engines
//! describe a hanging execution in the same form.
//!
//! # Invariants
//! - The result covers only programs with few threads: a picture of more shows nothing.

use super::agents;
use super::explain::{innermost, missing_of};
use super::host;
use super::memory::Backend;
use super::set::Set;
use super::state::MachineState;
use super::step::Machine;
use super::thread::ThreadStatus;
use program::waiting::{Scene, Walk};
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

fn end<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    turning: Option<&Set>,
    t: usize,
) -> ThreadEnd {
    let (code, thread) = (machine.code, &state.threads[t]);
    let mut end = ThreadEnd::done(&code.program.threads[t].name);
    let turns = turning.is_none_or(|set| set.has(t));
    let obstacle = machine
        .layer
        .obstacle(code, &state.layer, &state.threads, t);
    let mut at = thread.pc;
    match thread.status {
        ThreadStatus::Ended => return end,
        ThreadStatus::Waiting => {
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
        ThreadStatus::Running if state.barriers.holds_up(code, t, thread) => {
            end.ending = Ending::Blocked;
            end.why = "waits to arrive again: the phase in which it arrived is not over".to_owned();
        }
        ThreadStatus::Running
            if turns
                && obstacle.is_none()
                && let Some(range) = innermost(code, t, thread) =>
        {
            end.ending = Ending::Looping;
            at = *range.start();
            for_values(machine, state, t, &range, &mut end);
            end.why = format!("loops for ever{}", hang::reading(&end.polls));
        }
        ThreadStatus::Held if !thread.after.is_empty() => {
            (end.ending, end.served) = (Ending::Stopped, false);
            end.why = agents::WAITS.to_owned();
        }
        ThreadStatus::Held => {
            let calling = state.host.is_calling(t);
            end.ending = if calling {
                Ending::Blocked
            } else {
                Ending::Stopped
            };
            end.served = calling;
            end.why = host::unmet(code, &state.host, &state.threads, t);
            end.waits = host::held(code, &state.host, &state.threads, t);
            if !calling {
                return end;
            }
        }
        ThreadStatus::Lost => {
            end.ending = Ending::Looping;
            end.why = "loops for ever".to_owned();
        }
        ThreadStatus::Running => {
            (end.ending, end.served) = (Ending::Stopped, false);
            end.why = obstacle.unwrap_or_else(|| "is not run any more".to_owned());
        }
    }
    let instr = &code.program.threads[t].code[at];
    (end.line, end.text) = (instr.line.clone(), instr.text.clone());
    end
}

fn name<B: Backend>(machine: &Machine<'_, B>, t: usize) -> String {
    machine.code.program.threads[t].name.clone()
}

/// Adds the values that a thread reads in a loop and waits for.
fn for_values<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    t: usize,
    range: &std::ops::RangeInclusive<usize>,
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
    let scene = Scene {
        program,
        address: &address,
        same: &same,
        rest: rest.collect(),
    };
    let thread = &state.threads[t];
    let walk = Walk {
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
