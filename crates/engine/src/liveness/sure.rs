//! Threads that end whatever they read: they take one way through their code, with loops of so many rounds, and every
//! barrier on it is met.
//!
//! # Invariants
//! - Of a thread for which that is said, it is true of all threads that it meets at barriers: they come to the same
//!   barriers in the same order, so that whoever is behind brings the others on.

use program::{Barrier, BarrierNaming, Expr, Op, Program, Scope, Thread, ThreadId};

/// A thread that takes more steps than this may go on for ever.
const MAX_STEPS: usize = 10_000;

/// A barrier, as far as it matters who meets there: its level, which one of that level, and what it does.
type Meeting = (Scope, Option<i64>, String);

/// By thread: whether it ends for certain once it has started, if nothing in its code waits but barriers.
pub(super) fn all(program: &Program) -> Vec<bool> {
    program.thread_ids().map(|t| ends(program, t)).collect()
}

fn ends(program: &Program, t: ThreadId) -> bool {
    let Some(own) = meetings(program.thread(t)) else { return false };
    let Some(widest) = own.iter().map(|m| m.0).max() else { return true };
    let command = |u: ThreadId| program.host.as_ref().and_then(|host| host.command_of(u));
    // Who is not of the command may start much later.
    let together = |u: &ThreadId| program.thread(*u).place.same(&program.thread(t).place, widest);
    program
        .thread_ids()
        .filter(together)
        .all(|u| command(u) == command(t) && meetings(program.thread(u)).as_ref() == Some(&own))
}

/// The barriers on the only way through a thread's code; `None` if there may be several ways, or one that does not end.
fn meetings(thread: &Thread) -> Option<Vec<Meeting>> {
    let mut regs: Vec<Option<i64>> = vec![None; thread.regs.len()];
    let (mut found, mut pc, mut steps) = (Vec::new(), 0, 0);
    while let Some(instr) = thread.code.get(pc) {
        steps += 1;
        if steps > MAX_STEPS {
            return None;
        }
        let mut next = pc + 1;
        match &instr.op {
            Op::Branch { cond, target } if value(cond, &regs)? != 0 => next = *target,
            Op::Barrier(b) => found.push(meeting(b, &regs)?),
            Op::Give { among, lanes, .. } => found.push((*among, None, value(lanes, &regs)?.to_string())),
            Op::Assign { dst, value: e } => regs[usize::from(dst.0)] = value(e, &regs),
            op => op.defines().into_iter().for_each(|dst| regs[usize::from(dst.0)] = None),
        }
        pc = next;
    }
    Some(found)
}

/// A barrier that all threads of a group meet at; `None` if it is for some of them.
fn meeting(b: &Barrier, regs: &[Option<i64>]) -> Option<Meeting> {
    match &b.naming {
        BarrierNaming::Counted { id, count: None } if b.lanes.is_none() => {
            Some((b.domain, Some(value(id, regs)?), format!("{:?}", b.action)))
        }
        _ => None,
    }
}

/// The value of an expression, if it does not depend on what is read.
fn value(e: &Expr, regs: &[Option<i64>]) -> Option<i64> {
    e.value(&|leaf| if let Expr::Reg(r) = leaf { regs[usize::from(r.0)] } else { None })
}
