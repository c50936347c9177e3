//! A finished run as a program of its own in which nothing is open: each access has the address,
//! and each write the value, that it had in the run.
//!
//! Of its executions, one is the run: the same events, the same values, the same sources and
//! orders. So what the axioms and flags of a model say of that one, they say of the run, but for
//! what they ask of dependencies, of which there are none left. A run in which nothing was bound
//! early needs none of them: it went from one event to the next in an order with which program
//! order and the sources of reads agree.
//!
//! # Invariants
//! - Instructions keep their lines, and threads their names and places.
//! - Threads that came to one phase of a barrier in the run come to one instance, which waits for
//!   all of them. That one which came to fewer had ended by then orders no accesses in PTX (PTX
//!   ISA, *bar*: exited threads count as arrived, and synchronize with nobody).

use program::litmus::LitmusTest;
use program::memory::Memory;
use program::{Barrier, BarrierNaming, Expr, Instr, Op, Thread, Ty, Update};
use simt::record::{Event, Source};

use super::straight::way;

/// The program of a finished run in which nothing was bound early.
///
/// # Errors
/// Why there is none.
pub(super) fn settled(test: &LitmusTest, events: &[Event]) -> Result<LitmusTest, &'static str> {
    if test.program.host.is_some() {
        return Err("a host program, whose calls come in some order");
    }
    if test.program.asynchronous().is_some() {
        return Err("asynchronous operations, whose accesses are in no thread");
    }
    if simt::elements::has_vectors(test) || test.program.of_several_cells().is_some() {
        return Err("accesses to several cells, which a run carries out in some order");
    }
    let memory = Memory::new(&test.program);
    if memory
        .cells
        .iter()
        .enumerate()
        .any(|(i, cell)| cell.memory.0 as usize != i)
    {
        return Err("aliases, of which a run does not tell which was used");
    }
    let mut new = test.clone();
    (new.condition, new.filter) = (None, None);
    new.observe.clear();
    for (t, thread) in new.program.threads.iter_mut().enumerate() {
        let jumps = events.iter().filter_map(|e| match e {
            Event::Jump(at, taken) if at.thread == t => Some((at.instr, *taken)),
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

/// The thread that accesses memory, or comes to a barrier.
fn does(event: &Event) -> Option<usize> {
    match event {
        Event::Read { thread, .. }
        | Event::Write {
            source: Source::Write(thread, _),
            ..
        } => Some(*thread),
        Event::Arrive(spot, _) | Event::Pass(spot, _) => Some(spot.thread),
        _ => None,
    }
}

/// The phase of a barrier to which a thread came.
fn phase(event: &Event) -> Option<u32> {
    match event {
        Event::Arrive(_, phase) | Event::Pass(_, phase) => Some(*phase),
        _ => None,
    }
}

/// What a thread did, one event after the other.
fn code<'e>(
    thread: &Thread,
    way: &[(usize, bool)],
    events: impl Iterator<Item = &'e Event>,
    memory: &Memory,
) -> Result<Vec<Instr>, &'static str> {
    let mut events = events.peekable();
    let mut code = Vec::new();
    for &(at, _) in way {
        let instr = &thread.code[at];
        let read = events.next_if(|e| matches!(e, Event::Read { instr, .. } if *instr == at));
        let write = events.next_if(|e| matches!(e, Event::Write { instr, .. } if *instr == at));
        let came = events.next_if(|e| matches!(e, Event::Arrive(spot, _) if spot.instr == at));
        let passed = events.next_if(|e| matches!(e, Event::Pass(spot, _) if spot.instr == at));
        let place = |event: &Event| match event {
            Event::Read { loc, value, .. } | Event::Write { loc, value, .. } => memory
                .cells
                .get(*loc)
                .map(|cell| (Expr::Const(cell.address), *value)),
            _ => None,
        };
        let lost = "a run whose accesses were not all written down";
        let of = |event: Option<&Event>| event.and_then(place).ok_or(lost);
        let op = match instr.op.clone() {
            Op::Load { dst, access, .. } => Op::Load {
                dst,
                addr: of(read)?.0,
                access,
            },
            Op::Store { access, .. } => {
                let (addr, value) = of(write)?;
                Op::Store {
                    addr,
                    value: Expr::Const(value),
                    access,
                }
            }
            Op::Rmw {
                dst,
                update,
                read: tags,
                write: written,
                ..
            } => {
                let (addr, found) = of(read)?;
                let update = match (write.and_then(place), update) {
                    (Some((_, value)), _) => Update::Exchange(Expr::Const(value)),
                    // It has not found what it compares with.
                    (None, Update::CompareExchange { .. } | Update::When { .. }) => {
                        let ty: Ty = tags.ty;
                        Update::CompareExchange {
                            expected: Expr::Const(ty.wrap(found ^ 1)),
                            new: Expr::Const(0),
                        }
                    }
                    (None, _) => return Err(lost),
                };
                Op::Rmw {
                    dst,
                    addr,
                    update,
                    read: tags,
                    write: written,
                }
            }
            Op::Mark { addr: None, mark } => Op::Mark { addr: None, mark },
            // All that came to one phase are an instance of their own.
            Op::Barrier(barrier) => {
                let phase = came.or(passed).and_then(phase).ok_or(lost)?;
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
            // Nothing is left that needs what it computes or chooses, and lanes that meet order no
            // accesses.
            Op::Assign { .. }
            | Op::Branch { .. }
            | Op::Give { .. }
            | Op::Take { .. }
            | Op::Choice { .. } => {
                continue;
            }
            Op::Mark { .. } => return Err("fences that name an address"),
            Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => return Err("calls of the runtime"),
        };
        code.push(Instr {
            op,
            ..instr.clone()
        });
    }
    if events.next().is_some() {
        Err("a run whose accesses came out of order")
    } else {
        Ok(code)
    }
}
