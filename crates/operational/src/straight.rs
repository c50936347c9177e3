//! Turns one run into a straight program: the instructions that each thread executed, one after the
//! other, without loops.
//!
//! At a branch of the run, the straight program ends the thread if the branch goes the other way.
//! So the run is one of its executions. Each of its executions that runs to the end is one of the
//! original program, with the same events and values.
//!
//! # Invariants
//! - No dependency is lost: instructions after a branch depend on it, even after both ways of the
//!   program meet again. Models use dependencies to forbid, and the machine resolves a branch
//!   before it binds any later instruction. So this rejects no run that the program's own
//!   executions would allow.
//! - Barriers whose members follow from the written code are excluded: the straight code has
//!   others.

use program::litmus::LitmusTest;
use program::{BarrierNaming, CmpOp, Expr, Instr, Op, Thread, Ty};
use simt::record::RunEvent;

/// Runs with more instructions are not replayed.
pub(super) const MAX_STEPS: usize = 2_000;

/// Whether a program has a loop.
pub(super) fn has_loop(test: &LitmusTest) -> bool {
    test.program.threads.iter().any(Thread::has_loop)
}

/// The straight program of a finished run.
///
/// # Errors
/// If there is none.
pub(super) fn straight(test: &LitmusTest, events: &[RunEvent]) -> Result<LitmusTest, &'static str> {
    if test.program.instrs().any(|(_, _, i)| {
        i.op.barrier()
            .is_some_and(|b| !matches!(b.naming, BarrierNaming::Counted { .. }))
    }) {
        return Err("loops in programs with barriers that compute their members");
    }
    let mut new = test.clone();
    let mut steps = 0;
    for (t, thread) in new.program.threads.iter_mut().enumerate() {
        let jumps = events.iter().filter_map(|e| match e {
            RunEvent::Jump(at, taken) if at.thread == t => Some((at.instr, *taken)),
            _ => None,
        });
        let way = way(thread, jumps)?;
        steps += way.len();
        if steps > MAX_STEPS {
            return Err("a run of more than 2,000 instructions");
        }
        thread.code = path(thread, &way);
    }
    Ok(new)
}

/// The instructions that a thread executed, and whether each branch was taken.
pub(super) fn way(
    thread: &Thread,
    mut jumps: impl Iterator<Item = (usize, bool)>,
) -> Result<Vec<(usize, bool)>, &'static str> {
    let (mut way, mut pc) = (Vec::new(), 0);
    while let Some(instr) = thread.code.get(pc) {
        let taken = match (
            instr.op.target(),
            instr.op.target().and_then(|_| jumps.next()),
        ) {
            (None, _) => false,
            (_, Some((at, taken))) if at == pc => taken,
            _ => return Err("a run with unrecorded branches"),
        };
        if way.len() > MAX_STEPS {
            return Err("a run of more than 2,000 instructions");
        }
        way.push((pc, taken));
        pc = instr.op.target().filter(|_| taken).unwrap_or(pc + 1);
    }
    Ok(way)
}

/// These instructions in a row; a branch leads to the end in the direction that the run did not
/// take.
fn path(thread: &Thread, way: &[(usize, bool)]) -> Vec<Instr> {
    let constant = |&&(pc, _): &&(usize, bool)| {
        matches!(
            thread.code[pc].op,
            Op::Branch {
                cond: Expr::Const(_),
                ..
            }
        )
    };
    let kept: Vec<&(usize, bool)> = way.iter().filter(|w| !constant(w)).collect();
    let end = kept.len();
    kept.iter()
        .map(|&&(pc, taken)| {
            let instr = thread.code[pc].clone();
            let op = match instr.op {
                Op::Branch { cond, .. } if taken => {
                    let not = Expr::Cmp(
                        CmpOp::Eq,
                        Ty::WORD,
                        Box::new(cond),
                        Box::new(Expr::Const(0)),
                    );
                    Op::Branch {
                        cond: not,
                        target: end,
                    }
                }
                Op::Branch { cond, .. } => Op::Branch { cond, target: end },
                other => other,
            };
            Instr { op, ..instr }
        })
        .collect()
}
