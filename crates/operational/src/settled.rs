//! Turns a finished run into a program without open questions: each access has its address, and
//! each write its value, of the run.
//!
//! The run is one of the executions of that program: the same events, values, sources and orders.
//! So the axioms and flags of a model give the same answer for it, except for rules about
//! dependencies, because the program has none. A run without early binds needs none: it executed
//! its events in an order that agrees with program order and with the sources of reads.
//!
//! # Invariants
//! - Instructions keep their lines, and threads their names and places.
//! - Threads that came to the same phase of a barrier come to the same instance, which waits for
//!   all of them. A thread may have ended before it came to a phase. That orders no accesses in PTX
//!   (PTX ISA, *bar*: exited threads count as arrived, but do not synchronize).

use program::litmus::LitmusTest;
use program::memory::Memory;
use program::{Barrier, BarrierNaming, Expr, Instr, Op, Thread, Ty, Update};
use simt::record::{RunEvent, WriteId};

use super::straight::way;

/// The program of a finished run without early binds.
///
/// # Errors
/// If there is none.
pub(super) fn settled(test: &LitmusTest, events: &[RunEvent]) -> Result<LitmusTest, &'static str> {
    if test.program.host.is_some() {
        return Err("a host program: its calls run in one order of many");
    }
    if test.program.asynchronous().is_some() {
        return Err("asynchronous operations: their accesses belong to no thread");
    }
    if simt::elements::has_vectors(test) || test.program.of_several_cells().is_some() {
        return Err("accesses to several cells: a run accesses these in one order of many");
    }
    let memory = Memory::new(&test.program);
    if memory
        .cells
        .iter()
        .enumerate()
        .any(|(i, cell)| cell.memory.0 as usize != i)
    {
        return Err("aliases: a run does not record which name an access used");
    }
    let mut new = test.clone();
    (new.condition, new.filter) = (None, None);
    new.observe.clear();
    for (t, thread) in new.program.threads.iter_mut().enumerate() {
        let jumps = events.iter().filter_map(|e| match e {
            RunEvent::Jump(at, taken) if at.thread == t => Some((at.instr, *taken)),
            _ => None,
        });
        let way = way(thread, jumps)?;
        thread.code = code(
            thread,
            &way,
            events.iter().filter(|e| does(e) == Some(t)),
            &memory,
        )?;
    }
    Ok(new)
}

/// The thread of an event that accesses memory, or comes to a barrier.
fn does(event: &RunEvent) -> Option<usize> {
    match event {
        RunEvent::Read { thread, .. }
        | RunEvent::Write {
            source: WriteId::Write(thread, _),
            ..
        } => Some(*thread),
        RunEvent::Arrive(spot, _) | RunEvent::Pass(spot, _) => Some(spot.thread),
        _ => None,
    }
}

/// The phase of a barrier to which a thread came.
fn phase(event: &RunEvent) -> Option<u32> {
    match event {
        RunEvent::Arrive(_, phase) | RunEvent::Pass(_, phase) => Some(*phase),
        _ => None,
    }
}

/// The code that a thread executed, event by event.
fn code<'e>(
    thread: &Thread,
    way: &[(usize, bool)],
    events: impl Iterator<Item = &'e RunEvent>,
    memory: &Memory,
) -> Result<Vec<Instr>, &'static str> {
    let mut events = events.peekable();
    let mut code = Vec::new();
    for &(at, _) in way {
        let instr = &thread.code[at];
        let own = InstrEvents {
            read: events.next_if(|e| matches!(e, RunEvent::Read { instr, .. } if *instr == at)),
            write: events.next_if(|e| matches!(e, RunEvent::Write { instr, .. } if *instr == at)),
            came: events.next_if(|e| matches!(e, RunEvent::Arrive(spot, _) if spot.instr == at)),
            passed: events.next_if(|e| matches!(e, RunEvent::Pass(spot, _) if spot.instr == at)),
        };
        if let Some(op) = own.settle(&instr.op, memory)? {
            code.push(Instr {
                op,
                ..instr.clone()
            });
        }
    }
    if events.next().is_some() {
        Err("a run with accesses out of program order")
    } else {
        Ok(code)
    }
}

const LOST: &str = "a run with unrecorded accesses";

/// The events of one execution of an instruction.
struct InstrEvents<'e> {
    read: Option<&'e RunEvent>,
    write: Option<&'e RunEvent>,
    came: Option<&'e RunEvent>,
    passed: Option<&'e RunEvent>,
}

impl InstrEvents<'_> {
    /// The operation with the addresses and values of the events; `None` if it is not needed.
    fn settle(&self, op: &Op, memory: &Memory) -> Result<Option<Op>, &'static str> {
        Ok(Some(match op.clone() {
            Op::Load { dst, access, .. } => Op::Load {
                dst,
                addr: place(self.read, memory).ok_or(LOST)?.0,
                access,
            },
            Op::Store { access, .. } => {
                let (addr, value) = place(self.write, memory).ok_or(LOST)?;
                Op::Store {
                    addr,
                    value: Expr::Const(value),
                    access,
                }
            }
            Op::Rmw {
                dst,
                update,
                read,
                write,
                ..
            } => {
                let (addr, found) = place(self.read, memory).ok_or(LOST)?;
                let update = match (place(self.write, memory), update) {
                    (Some((_, value)), _) => Update::Exchange(Expr::Const(value)),
                    // The compared value was not found.
                    (None, Update::CompareExchange { .. } | Update::When { .. }) => {
                        let ty: Ty = read.ty;
                        Update::CompareExchange {
                            expected: Expr::Const(ty.wrap(found ^ 1)),
                            new: Expr::Const(0),
                        }
                    }
                    (None, _) => return Err(LOST),
                };
                Op::Rmw {
                    dst,
                    addr,
                    update,
                    read,
                    write,
                }
            }
            Op::Mark { addr: None, mark } => Op::Mark { addr: None, mark },
            // All threads that came to one phase share a separate instance.
            Op::Barrier(barrier) => {
                let phase = self.came.or(self.passed).and_then(phase).ok_or(LOST)?;
                let naming = BarrierNaming::Instance {
                    instance: phase.into(),
                    id: None,
                    quorum: None,
                };
                Op::Barrier(Barrier {
                    naming,
                    lanes: None,
                    ..barrier
                })
            }
            // No later instruction needs the computed or chosen value, and meetings of lanes order
            // no accesses.
            Op::Assign { .. }
            | Op::Branch { .. }
            | Op::Give { .. }
            | Op::Take { .. }
            | Op::Choice { .. } => return Ok(None),
            Op::Mark { .. } => return Err("fences that name an address"),
            Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => {
                return Err("calls of the runtime");
            }
        }))
    }
}

/// The address and the value of an access.
fn place(event: Option<&RunEvent>, memory: &Memory) -> Option<(Expr, i64)> {
    match event? {
        RunEvent::Read { loc, value, .. } | RunEvent::Write { loc, value, .. } => memory
            .cells
            .get(*loc)
            .map(|cell| (Expr::Const(cell.address), *value)),
        _ => None,
    }
}
