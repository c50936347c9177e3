//! Loops of a thread's code: which instructions belong to which backward jump, and where in an unrolled thread a
//! state stands.
//!
//! # Invariants
//! - Loops are intervals of instruction indices; any two are disjoint or nested. Jumps that cross each other
//!   (irreducible code) are merged into one interval.
//! - [`Position`]s of one thread are totally ordered, and every step of control flow goes to a larger one: that is
//!   the order in which a thread is unrolled.

use program::{Op, RegId, Thread, live_registers};

/// One loop: `header ..= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    header: usize,
    end: usize,
}

impl Loop {
    fn contains(self, pc: usize) -> bool {
        (self.header..=self.end).contains(&pc)
    }
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

    /// The loop whose iterations have their numbers at `round`, as a prefix.
    pub(super) fn around(&self, round: usize) -> &[u32] {
        &self.0[..round]
    }

    /// The number of its iteration.
    pub(super) fn number(&self, round: usize) -> u32 {
        self.0[round]
    }

    /// The same place in another iteration.
    pub(super) fn at_number(&self, round: usize, number: u32) -> Position {
        let mut at = self.clone();
        at.0[round] = number;
        at
    }
}

/// A step from one position to another.
pub(super) enum Step {
    /// To a later instruction, or to the end.
    Forward(Position),
    /// To an iteration of a loop that begins there; which loop, as the place in the position where its iteration has its
    /// number.
    Back { to: Position, round: usize },
}

/// The loops of a thread and, if there are any, the registers needed at each instruction.
pub(super) struct Loops {
    loops: Vec<Loop>,
    /// By instruction: whether some jump leads back to it.
    entered: Vec<bool>,
    /// By branch: the loops that one of its ways leaves and the other does not, if it can count how often.
    tests: Vec<Vec<Loop>>,
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
        // Nobody asks without loops, and the tables are large.
        let (mut entered, mut tests, mut live) = (Vec::new(), Vec::new(), Vec::new());
        if !loops.is_empty() {
            live = live_registers(thread, observed);
            entered = vec![false; thread.code.len()];
            for (pc, instr) in thread.code.iter().enumerate() {
                instr.op.target().filter(|t| *t <= pc).into_iter().for_each(|t| entered[t] = true);
                tests.push(counted_loops(thread, &loops, pc));
            }
        }
        Loops { loops, entered, tests, live }
    }

    /// Whether some jump leads back to that instruction.
    pub(super) fn is_entered(&self, pc: usize) -> bool {
        self.entered.get(pc) == Some(&true)
    }

    /// The loops whose iterations a branch may count, each as the place of its iteration's number in a position of that
    /// branch.
    pub(super) fn tested(&self, pc: usize) -> impl Iterator<Item = usize> {
        let tests = self.tests.get(pc).into_iter().flatten();
        tests.map(|l| 2 * self.loops.iter().filter(|o| o.contains(l.header) && o.contains(l.end)).count() - 1)
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
        for &l in self.loops.iter().filter(|l| l.contains(pc)) {
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
        let round = 2 * self.loops.iter().filter(around).count() - 1;
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
        Step::Back { to, round }
    }
}

/// The loops that one way of a branch leaves and the other does not, if what decides is a register that they change: an
/// exit that can count their iterations.
fn counted_loops(thread: &Thread, loops: &[Loop], pc: usize) -> Vec<Loop> {
    let Op::Branch { cond, target } = &thread.code[pc].op else { return Vec::new() };
    let counts = |l: &Loop| {
        let mut changed = false;
        let assigned = |r: RegId| {
            (l.header..=l.end).any(|at| matches!(thread.code[at].op, Op::Assign { dst, .. } if dst == r))
        };
        cond.registers(&mut |r| changed |= assigned(r));
        changed
    };
    let leaves = |l: &&Loop| l.contains(pc) && l.contains(*target) != l.contains(pc + 1);
    loops.iter().filter(leaves).filter(|l| counts(l)).copied().collect()
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
