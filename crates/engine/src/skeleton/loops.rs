//! Loops of a thread's code: which instructions belong to which backward jump, and where in an unrolled thread a
//! state stands.
//!
//! # Invariants
//! - Loops are intervals of instruction indices; any two are disjoint or nested. Jumps that cross each other
//!   (irreducible code) are merged into one interval.
//! - [`Position`]s of one thread are totally ordered, and every step of control flow goes to a larger one: that is
//!   the order in which a thread is unrolled.

use program::{RegId, Thread, live_registers};

/// One loop: `header ..= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    header: usize,
    end: usize,
}

/// Where a state of an unrolled thread stands: for each enclosing loop, outermost first, its header and the number of
/// the iteration; then the instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Position(Vec<u32>);

impl Position {
    /// The instruction.
    pub(super) fn pc(&self) -> usize {
        *self.0.last().expect("a position ends with an instruction") as usize
    }

    /// What follows in it after the given beginning, if it begins so.
    pub(super) fn suffix(&self, beginning: &[u32]) -> Option<&[u32]> {
        self.0.strip_prefix(beginning)
    }

    /// The loop iterations it is in, outermost first, each as a prefix that identifies it.
    pub(super) fn iterations(&self) -> impl Iterator<Item = &[u32]> {
        (2..self.0.len()).step_by(2).map(|end| &self.0[..end])
    }
}

/// A step from one position to another.
pub(super) enum Step {
    /// To a later instruction, or to the end.
    Forward(Position),
    /// To the next iteration of a loop: the iteration that ends, the number of the one that begins, where it begins,
    /// and whether that is the loop's header.
    Back { iteration: Vec<u32>, next: u32, to: Position, at_header: bool },
}

/// The loops of a thread and, if there are any, the registers needed at each instruction.
pub(super) struct Loops {
    loops: Vec<Loop>,
    live: Vec<Vec<bool>>,
}

impl Loops {
    /// Analyses a thread. `observed` tells which registers are needed at the end.
    pub(super) fn new(thread: &Thread, observed: &[bool]) -> Loops {
        let mut loops: Vec<Loop> = Vec::new();
        for (pc, instr) in thread.code.iter().enumerate() {
            loops.extend(instr.op.target().filter(|t| *t <= pc).map(|header| Loop { header, end: pc }));
        }
        merge(&mut loops);
        // Nobody asks without loops, and the table is large.
        let live = if loops.is_empty() { Vec::new() } else { live_registers(thread, observed) };
        Loops { loops, live }
    }

    /// Whether the thread has a loop at all.
    pub(super) fn any(&self) -> bool {
        !self.loops.is_empty()
    }

    /// Whether the value of a register at that instruction can still matter.
    pub(super) fn is_live(&self, pc: usize, reg: RegId) -> bool {
        self.live[pc][reg.0 as usize]
    }

    /// The position of an instruction reached without any loop iteration.
    pub(super) fn start(&self, pc: usize) -> Position {
        self.position(pc, |_| 0)
    }

    fn position(&self, pc: usize, mut count: impl FnMut(Loop) -> u32) -> Position {
        let mut at = Vec::new();
        // Loops are sorted outermost first among those that contain one instruction.
        for &l in self.loops.iter().filter(|l| l.header <= pc && pc <= l.end) {
            at.push(l.header as u32);
            at.push(count(l));
        }
        at.push(pc as u32);
        Position(at)
    }

    /// The step from a position to instruction `target`.
    pub(super) fn step(&self, from: &Position, target: usize) -> Step {
        let pc = from.pc();
        let count = |l: Loop| {
            let inside = l.header <= pc && pc <= l.end;
            let depth = self.loops.iter().filter(|o| o.header <= l.header && l.end <= o.end).count();
            if inside { from.0[2 * depth - 1] } else { 0 }
        };
        if target > pc {
            return Step::Forward(self.position(target, count));
        }
        let around = |l: &&Loop| l.header <= target && pc <= l.end;
        let innermost = *self.loops.iter().rfind(around).expect("a backward jump lies in a loop");
        let depth = self.loops.iter().filter(around).count();
        let next = count(innermost) + 1;
        let to = self.position(target, |l| {
            if l == innermost {
                next
            } else if l.header <= innermost.header && innermost.end <= l.end {
                count(l)
            } else {
                0
            }
        });
        Step::Back { iteration: from.0[..2 * depth].to_vec(), next, to, at_header: target == innermost.header }
    }
}

/// Makes intervals disjoint or nested, and sorts them: by header, outer ones first.
fn merge(loops: &mut Vec<Loop>) {
    loop {
        loops.sort_by_key(|l| (l.header, std::cmp::Reverse(l.end)));
        loops.dedup();
        let crossing = (0..loops.len()).flat_map(|i| (i + 1..loops.len()).map(move |j| (i, j))).find(|&(i, j)| {
            let (a, b) = (loops[i], loops[j]);
            b.header <= a.end && (b.end > a.end || a.header == b.header)
        });
        let Some((i, j)) = crossing else { return };
        let b = loops.remove(j);
        loops[i].end = loops[i].end.max(b.end);
    }
}
