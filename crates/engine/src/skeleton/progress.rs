//! Describes threads that never end, for questions about progress.
//!
//! Unrolled for such a question, a thread ends in exactly one of these ways:
//! - *done*: it ran to its end;
//! - *blocked*: it reached a barrier that does not let it pass, or waits for lanes that never
//!   arrive;
//! - *looping without effect*: one iteration that changes nothing represents all further ones
//!   ([`SpinIteration`]);
//! - *looping with effect*: its last iterations are two consecutive blocks of equal content, and
//!   the later one repeats without end ([`Repeat`]);
//! - *stopped*: the scheduler never runs it again, possibly before its first instruction;
//! - *cut*: the thread reached the loop bound. This is not an end, but a gap in the knowledge.
//!
//! # Invariants
//! - Stopping and repeating are choices of the program. A choice is true only if the thread takes
//!   it, so each execution has one description.
//! - Unrolling finds these ends ([`super::unrolling::ends`]). Rules about endless executions use
//!   the relations of `relations::endless`.
//!
//! # Sources
//! - T. Sorensen, L. F. Salvador, H. Raval, H. Evrard, J. Wickerson, M. Martonosi, A. F. Donaldson,
//!   "Specifying and Testing GPU Workgroup Progress Models", OOPSLA 2021: threads that are not
//!   scheduled any more.
//! - Lahav, Namakonov, Oberhauser, Podkopaev, Vafeiadis, "Making Weak Memory Models Fair", OOPSLA
//!   2021: fairness to memory.

use std::ops::Range;

use super::event::Event;
use super::loops::Position;
use super::pool::{Cond, TermId};
use cat::rel::EventId;
use program::Scope;

/// The kind of question that a skeleton is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Questions about executions that end.
    Outcomes,
    /// Questions about executions that do not end.
    Progress {
        /// Whether threads may stop without end.
        stops: bool,
        /// Whether registers have a final value wherever the thread ends.
        registers: bool,
    },
}

impl Purpose {
    /// Whether registers have a final value wherever a thread ends.
    pub(super) fn asks_for_registers(self) -> bool {
        matches!(
            self,
            Purpose::Progress {
                registers: true,
                ..
            }
        )
    }

    /// Whether it is [`Purpose::Progress`].
    pub fn is_progress(self) -> bool {
        self != Purpose::Outcomes
    }
}

/// An iteration without effect that a thread may repeat without end.
#[derive(Clone, Debug)]
pub struct SpinIteration {
    /// The condition that the thread ends there.
    pub cond: Cond,
    /// Instruction at which its rounds begin.
    pub header: usize,
    /// Events of the round; those on other paths never execute together with `cond`.
    pub events: Vec<EventId>,
}

/// Two consecutive blocks of iterations with effect; the later one may repeat without end.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The choice to end there; true only if the blocks have equal content.
    pub choice: Cond,
    /// Instruction at which the loop begins.
    pub header: usize,
    /// Iterations in one block.
    pub period: u32,
    /// Events of the earlier and the later block with the same place in it. A missing one never
    /// executes.
    pub pairs: Vec<(Option<EventId>, Option<EventId>)>,
    /// Needed registers at the end of each block.
    pub registers: Vec<(TermId, TermId)>,
    /// Where the blocks begin, and where they end.
    pub(super) range: Range<Position>,
}

/// A place where a thread can be blocked.
#[derive(Clone, Debug)]
pub enum BlockedAt {
    /// A wait at a barrier.
    Barrier(EventId),
    /// A meeting with lanes to exchange values, at which some never arrive.
    Lanes(LaneWait),
}

/// A place where a thread waits for lanes of its group ([`program::Op::Give`]).
#[derive(Clone, Debug)]
pub struct LaneWait {
    pub(super) place: Position,
    /// The scope of the group.
    pub among: Scope,
    /// The lanes that it names, as a set of bits.
    pub named: TermId,
}

impl LaneWait {
    /// The instruction.
    pub fn instr(&self) -> usize {
        self.place.pc()
    }

    /// Whether both wait at the same place, in the same iterations.
    pub fn is_with(&self, other: &LaneWait) -> bool {
        (&self.place, self.among) == (&other.place, other.among)
    }
}

impl BlockedAt {
    /// The instruction.
    pub fn instr(&self, events: &[Event]) -> usize {
        match self {
            BlockedAt::Barrier(wait) => events[wait.index()].instr,
            BlockedAt::Lanes(apart) => apart.instr(),
        }
    }
}

/// The ways in which one thread can end, each with its condition.
#[derive(Clone, Debug)]
pub struct ThreadProgress {
    /// It runs to its end.
    pub done: Cond,
    /// It reached the loop bound.
    pub cut: Cond,
    /// It executes at least one instruction.
    pub started: Cond,
    /// It is blocked, by place.
    pub blocked: Vec<(BlockedAt, Cond)>,
    /// It loops without effect.
    pub spins: Vec<SpinIteration>,
    /// It loops with effect.
    pub repeats: Vec<Repeat>,
    /// It is stopped, by place: before that instruction, or at the end of its code.
    pub stopped: Vec<(usize, Cond)>,
}

/// The ways in which all threads can end, and the barrier events that belong together.
#[derive(Clone, Debug)]
pub struct ProgressFacts {
    /// By thread.
    pub threads: Vec<ThreadProgress>,
    /// Events of one barrier and phase, in either direction.
    pub partners: Vec<(EventId, EventId, Cond)>,
}

impl ProgressFacts {
    /// Pairs of events of repeating blocks, each with the choice to end there.
    pub(super) fn repeats(
        &self,
    ) -> impl Iterator<Item = ((Option<EventId>, Option<EventId>), Cond)> {
        let repeats = self.threads.iter().flat_map(|t| &t.repeats);
        repeats.flat_map(|r| r.pairs.iter().map(|&pair| (pair, r.choice)))
    }
}
