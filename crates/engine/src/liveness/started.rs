//! What of a host program can run while some of its threads have not ended.
//!
//! A race is a fact about what has run so far. So it can be there although a thread loops for ever,
//! or waits for ever; but commands behind that thread have not started, and host threads that wait
//! for it have issued no further call. The points that are not reached fall into the
//! [`cases`](super::cases) that liveness knows, and each leaves a smaller program.
//!
//! # Invariants
//! - Each execution so far of the program is one of a part in which the threads in [`Part::left`]
//!   have gone on, and the other way round. Whether those go on that the others wait for does not
//!   matter: what comes later may just not have run yet.

use super::cases::{self, Case, Stretch};
use super::host::{Ends, ends};
use crate::skeleton::{Cond, Skeleton};
use program::Program;

/// A part of a host program that can run by itself.
pub struct Part {
    /// The program, without what has not started.
    pub program: Program,
    /// What its threads have left, as something in it runs after that.
    pub left: Vec<Stretch>,
}

/// The parts of a program of which some can run without the rest; `None` if they are not known.
pub fn parts(program: &Program) -> Option<Vec<Part>> {
    let Ends::Open(ways) = ends(program) else {
        return None;
    };
    let cases = cases::cases(program, &ways, false).ok()?;
    Some(
        cases
            .into_iter()
            .map(
                |Case {
                     program,
                     leave: left,
                     ..
                 }| Part { program, left },
            )
            .collect(),
    )
}

impl Skeleton {
    /// Takes only executions in which no thread stays in one of these for ever. When none is cut
    /// there either: what waits for it runs then, too.
    pub fn leave(&mut self, left: &[Stretch]) -> Cond {
        if left.is_empty() {
            return Cond::TRUE;
        }
        let inside = |thread, at| {
            left.iter()
                .any(|part| part.thread == thread && part.range.contains(&at))
        };
        let (waits, spins, cuts) = (self.waits.clone(), self.spins.clone(), self.cuts.clone());
        for (stays, thread, at) in spins {
            if inside(thread, at) {
                let leaves = self.pool.not(stays);
                self.constraints.push(leaves);
            }
        }
        for (reached, passes, thread, at) in waits {
            if inside(thread, at) {
                let leaves = self.pool.implies(reached, passes);
                self.constraints.push(leaves);
            }
        }
        self.constraints.retain(|&c| c != Cond::TRUE);
        let mut gone = Cond::TRUE;
        for (cut, thread, at) in cuts {
            if inside(thread, at) {
                let goes = self.pool.not(cut);
                gone = self.pool.and(gone, goes);
            }
        }
        gone
    }
}
