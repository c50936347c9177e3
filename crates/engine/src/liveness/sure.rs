//! Finds threads that end whatever they read. Their loops have constant numbers of rounds, and
//! every path through their code has the same barriers, at which all partners arrive.
//!
//! # Invariants
//! - If a thread is sure, so are all threads that it meets at barriers. Any two come to the
//!   barriers of their common groups in the same order, so the slower one lets the others continue.
//! - So if all threads of a program are sure, it ends under every progress model. Among the threads
//!   that have not ended, take one that is least far (by barriers of the widest group, then of the
//!   next). It waits for no other thread, so it is live. Some live thread must be run without end,
//!   and it reaches its end.

use program::host::CommandId;
use program::{Barrier, BarrierNaming, Expr, Init, Op, Program, Scope, Thread, ThreadId};

/// A thread that takes more steps may never end.
const MAX_STEPS: usize = 10_000;

/// The largest number of branches in sequence that depend on reads.
const MAX_BRANCHES: u32 = 40;

/// The properties of a barrier that decide which threads meet there: its level, its number in that
/// level, and its action.
type BarrierMeeting = (Scope, Option<i64>, String);

/// By thread: whether it surely ends once it has started, if nothing in its code waits except
/// barriers.
pub(super) fn all(program: &Program) -> Vec<bool> {
    let met: Vec<Option<Vec<BarrierMeeting>>> = program.threads.iter().map(meetings).collect();
    let mut sure: Vec<bool> = met.iter().map(Option::is_some).collect();
    // A thread that waits for an unsure thread is unsure.
    loop {
        let next: Vec<bool> = program
            .thread_ids()
            .map(|t| sure[usize::from(t.0)] && ends_with(program, &met, t, &sure))
            .collect();
        if next == sure {
            return sure;
        }
        sure = next;
    }
}

/// Whether a thread ends if these threads do: it meets only sure threads.
fn ends_with(
    program: &Program,
    met: &[Option<Vec<BarrierMeeting>>],
    t: ThreadId,
    sure: &[bool],
) -> bool {
    let Some(own) = &met[usize::from(t.0)] else {
        return false;
    };
    let Some(widest) = own.iter().map(|m| m.0).max() else {
        return true;
    };
    program
        .thread_ids()
        .filter(|u| same_group(program, t, *u, widest))
        .all(|u| {
            // Barriers of a group without this thread do not matter to it.
            let shared = |m: &&BarrierMeeting| same_group(program, t, u, m.0);
            // A thread of another command may start much later.
            sure[usize::from(u.0)]
                && command_of(program, u) == command_of(program, t)
                && met[usize::from(u.0)].as_ref().is_some_and(|other| {
                    other == own || other.iter().filter(shared).eq(own.iter().filter(shared))
                })
        })
}

fn command_of(program: &Program, u: ThreadId) -> Option<CommandId> {
    program.host.as_ref().and_then(|host| host.command_of(u))
}

/// Whether two threads are in one group.
fn same_group(program: &Program, t: ThreadId, u: ThreadId, scope: Scope) -> bool {
    program
        .thread(u)
        .place
        .same(&program.thread(t).place, scope)
}

/// The barriers on every path through a thread's code; `None` if they may differ, or if the thread
/// may not end.
fn meetings(thread: &Thread) -> Option<Vec<BarrierMeeting>> {
    behind(
        thread,
        0,
        0,
        thread.regs.iter().map(|r| initial(&r.init)).collect(),
        &mut 0,
    )
}

fn initial(init: &Init) -> Option<i64> {
    if let Init::Int(value) = init {
        Some(*value)
    } else {
        None
    }
}

/// As [`meetings`], from an instruction on, behind `branches` branches that depend on reads.
fn behind(
    thread: &Thread,
    mut pc: usize,
    branches: u32,
    mut regs: Vec<Option<i64>>,
    steps: &mut usize,
) -> Option<Vec<BarrierMeeting>> {
    let mut found = Vec::new();
    while let Some(instr) = thread.code.get(pc) {
        *steps += 1;
        if *steps > MAX_STEPS {
            return None;
        }
        let mut next = pc + 1;
        match &instr.op {
            Op::Branch { cond, target } => match value(cond, &regs) {
                Some(0) => {}
                Some(_) => next = *target,
                None if *target <= pc || branches >= MAX_BRANCHES => return None,
                None => {
                    let taken = behind(thread, *target, branches + 1, regs.clone(), steps)?;
                    if behind(thread, next, branches + 1, regs, steps)? != taken {
                        return None;
                    }
                    found.extend(taken);
                    return Some(found);
                }
            },
            Op::Barrier(b) => found.push(meeting(b, &regs)?),
            Op::Give { among, lanes, .. } => {
                found.push((*among, None, value(lanes, &regs)?.to_string()))
            }
            Op::Assign { dst, value: e } => regs[usize::from(dst.0)] = value(e, &regs),
            op => op
                .defines()
                .into_iter()
                .for_each(|dst| regs[usize::from(dst.0)] = None),
        }
        pc = next;
    }
    Some(found)
}

/// A barrier that all threads of a group meet at; `None` if it is for some of them.
fn meeting(b: &Barrier, regs: &[Option<i64>]) -> Option<BarrierMeeting> {
    match &b.naming {
        BarrierNaming::Counted { id, count: None } if b.lanes.is_none() => {
            Some((b.domain, Some(value(id, regs)?), format!("{:?}", b.action)))
        }
        _ => None,
    }
}

/// The value of an expression, if it does not depend on reads.
fn value(e: &Expr, regs: &[Option<i64>]) -> Option<i64> {
    e.value(&|leaf| {
        if let Expr::Reg(r) = leaf {
            regs[usize::from(r.0)]
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use front::litmus::parse;

    /// Whether each of these threads of one block surely ends.
    fn sure(codes: &[(u32, &str)]) -> Vec<bool> {
        let mut text = "name = \"T\"\n[memory]\nx = 0\n".to_string();
        for (warp, code) in codes {
            text += &format!(
                "[[thread]]\ncta = 0\nwarp = {warp}\nregs = {{ n = 2 }}\ncode = \"{code}\"\n"
            );
        }
        all(&parse("t.toml", text.as_bytes())
            .expect("a valid test")
            .remove(0)
            .program)
    }

    #[test]
    fn threads_end_if_every_way_leads_to_the_same_barriers() {
        let counted = "mov.u32 i, 0; L: st.relaxed.gpu x, i; bar.sync 0; add.u32 i, i, 1; \
        setp.lt.u32 p, i, n; @p bra L";
        assert_eq!(sure(&[(0, counted), (0, counted)]), [true, true]);
        let once = "st.relaxed.gpu x, 1; bar.sync 0";
        assert_eq!(
            sure(&[(0, counted), (0, once)]),
            [false, false],
            "another number of barriers"
        );
        let either = "ld.relaxed.gpu r0, x; beq r0, 0, E; st.relaxed.gpu x, 1; E: bar.sync 0";
        assert_eq!(sure(&[(0, either), (0, once)]), [true, true]);
        let skips = "ld.relaxed.gpu r0, x; beq r0, 0, E; bar.sync 0; E: st.relaxed.gpu x, 1";
        assert_eq!(
            sure(&[(0, skips), (0, once)]),
            [false, false],
            "by what is read"
        );
        assert_eq!(
            sure(&[
                (0, "L: ld.relaxed.gpu r0, x; beq r0, 0, L"),
                (0, "st.relaxed.gpu x, 1")
            ]),
            [false, true]
        );
        assert_eq!(
            sure(&[(0, once), (0, "bar.sync 0, 2")]),
            [false, false],
            "not of the whole group"
        );
    }

    #[test]
    fn barriers_of_one_warp_are_none_of_another() {
        let votes = "shfl.sync.bfly.b32 r0, n, 1, 31, -1; bar.sync 0";
        assert_eq!(
            sure(&[(0, votes), (0, votes), (1, "bar.sync 0")]),
            [true, true, true]
        );
        assert_eq!(
            sure(&[(0, votes), (0, "bar.sync 0"), (1, "bar.sync 0")]),
            [false, false, false],
            "a lane lacks"
        );
        let apart = "shfl.sync.bfly.b32 r0, n, 1, 31, -1";
        let stores = "st.relaxed.gpu x, 1";
        assert_eq!(
            sure(&[(0, apart), (0, stores), (1, stores)]),
            [false, true, true]
        );
    }
}
