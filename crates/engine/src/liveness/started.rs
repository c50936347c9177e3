//! Finds the parts of a host program that can run while some of its threads have not ended.
//!
//! A race is a fact about the execution so far. So it can exist although a thread loops or waits
//! without end. Commands behind that thread have not started, and host threads that wait for it
//! have issued no further call. The unreached points fall into the [`cases`](super::cases) of
//! liveness, and each case leaves a smaller program.
//!
//! # Invariants
//! - Each partial execution of the program is one of a part in which the threads have left
//!   [`RunnablePart::left`], and vice versa. Whether the awaited threads continue does not matter:
//!   later events may just not have run yet.

use super::brink::Stretch;
use super::cases::{self, LivenessCase};
use super::host::{Ends, ends};
use crate::facts::Facts;
use crate::skeleton::{Cond, Skeleton};
use program::{Program, ThreadId};

/// A part of a host program that can run alone.
pub struct RunnablePart {
    /// The program, without the parts that have not started.
    pub program: Program,
    /// Stretches that its threads have left, because something in the part runs after them.
    pub left: Vec<Stretch>,
}

/// The parts of a program that can run without the rest; `None` if they are unknown.
pub fn parts(program: &Program) -> Option<Vec<RunnablePart>> {
    let Ends::Open(ways) = ends(program) else {
        return None;
    };
    let cases = cases::cases(program, &ways, false).ok()?;
    Some(
        cases
            .into_iter()
            .map(
                |LivenessCase {
                     program,
                     leave: left,
                     ..
                 }| RunnablePart { program, left },
            )
            .collect(),
    )
}

impl Facts<'_> {
    /// The facts for executions in which no thread stays in these stretches without end. No thread
    /// is cut in them under [`Facts::started`]: then the commands that wait for it run, too.
    #[must_use]
    pub fn leaving(mut self, left: &[Stretch]) -> Self {
        if left.is_empty() {
            return self;
        }
        let Skeleton {
            waits,
            spins,
            cuts,
            constraints,
            pool,
            ..
        } = &mut self.sk;
        for &(stays, thread, at) in &*spins {
            if is_inside(left, thread, at) {
                constraints.push(pool.not(stays));
            }
        }
        for &(reached, passes, thread, at) in &*waits {
            if is_inside(left, thread, at) {
                constraints.push(pool.implies(reached, passes));
            }
        }
        constraints.retain(|&c| c != Cond::TRUE);
        for &(cut, thread, at) in &*cuts {
            if is_inside(left, thread, at) {
                let goes = pool.not(cut);
                self.started = pool.and(self.started, goes);
            }
        }
        self
    }
}

/// Whether an instruction is in one of these stretches.
fn is_inside(left: &[Stretch], thread: ThreadId, at: usize) -> bool {
    left.iter()
        .any(|part| part.thread == thread && part.range.contains(&at))
}
