//! The interface between the machine and its memories.
//!
//! A memory carries out accesses, fences and the handover at barriers. If it could go on in several
//! ways, it takes a choice. If it cannot go on, it returns a [`StepHalt`], and the machine gives up
//! the whole step (the caller works on a copy).

mod ahead;
pub(super) mod clike;
mod early;
pub(super) mod rules;
pub(super) mod sc;
pub(super) mod weak;

use std::fmt::Debug;
use std::hash::Hasher;

use super::choice::Chooser;
use super::code::{Access, AccessPlace, Code, Fence};
use super::record::{Log, RunHazard, Spot};
use super::thread::ThreadState;
use super::{Result, StepHalt};
use program::{Barrier, Scope};

/// The place and time of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) thread: usize,
    /// Index of the instruction in the thread's code.
    pub(super) instr: usize,
    /// The number of micro-ops that the thread has executed before it.
    pub(super) clock: u32,
}

impl At {
    pub(super) fn spot(self) -> Spot {
        Spot {
            thread: self.thread,
            instr: self.instr,
        }
    }
}

/// An access of a thread: time, place and attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryAccess {
    pub(super) at: At,
    pub(super) place: AccessPlace,
    pub(super) access: Access,
}

/// The parts of the machine that a step may use, apart from the state.
pub(super) struct Context<'a> {
    pub(super) code: &'a Code,
    pub(super) chooser: &'a mut dyn Chooser,
    pub(super) log: &'a mut dyn Log,
    /// The age of the values that this step read, and of the places where it wrote.
    pub(super) age: Age,
}

/// Whether a step may be one of infinitely many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Age {
    /// It reads writes that nothing overwrites, and its writes come last.
    New,
    /// A weak read takes an overwritten value. Compilers and caches can repeat that forever, but a
    /// fair memory does not.
    Stale,
    /// Another read takes an overwritten value, or a write comes before an existing one. A thread
    /// that repeats this does so finitely often.
    Old,
}

impl Context<'_> {
    /// Chooses one of several.
    ///
    /// # Errors
    /// Refused, if there are none.
    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> Result<T> {
        if all.is_empty() {
            Err(StepHalt::Refused)
        } else {
            Ok(all[self.chooser.choose(all.len())])
        }
    }

    /// Raises the step's age, if `old`.
    pub(super) fn ages(&mut self, old: bool, age: Age) {
        if old {
            self.age = self.age.max(age);
        }
    }
}

/// The value that a read-modify-write writes, given the value that it read; `None`: it writes
/// nothing.
pub(super) type NewValue<'a> = &'a dyn Fn(i64) -> Option<i64>;

/// The same for an operation on several cells, cell by cell.
pub(super) type NewValues<'a> = &'a dyn Fn(&[i64]) -> Vec<Option<i64>>;

/// A memory: its rules. The contents are [`Backend::Memory`].
pub(super) trait Backend: Clone {
    /// The contents.
    type Memory: Clone + Debug;
    /// The knowledge that an arrival at a barrier hands to the waits.
    type Carried: Clone + Default + Debug;

    /// The part of the memory that an access of one thread to one location can change.
    type Saved;

    /// Saves the part that an access of a thread to a location can change, without early binds.
    fn save(&self, m: &Self::Memory, thread: usize, loc: Option<usize>) -> Self::Saved;

    /// Restores the saved part.
    fn restore(&self, m: &mut Self::Memory, saved: Self::Saved);

    /// The contents before the first step.
    fn start(&self, code: &Code) -> Self::Memory;

    /// Reads and returns the value as stored.
    fn load(&self, cx: &mut Context<'_>, m: &mut Self::Memory, t: MemoryAccess) -> Result<i64>;

    /// Writes.
    fn store(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        t: MemoryAccess,
        value: i64,
    ) -> Result;

    /// Reads and writes, by the two halves of an instruction; returns the old value as stored.
    fn rmw(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        read: MemoryAccess,
        write: MemoryAccess,
        new: NewValue<'_>,
    ) -> Result<i64>;

    /// An operation on several cells at once: reads, then writes the new values (`None`: no write
    /// to that cell). Returns the values read.
    fn several(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        reads: &[MemoryAccess],
        writes: &[MemoryAccess],
        new: NewValues<'_>,
    ) -> Result<Vec<i64>> {
        let old = reads
            .iter()
            .map(|t| self.load(cx, m, *t))
            .collect::<Result<Vec<_>>>()?;
        for (t, value) in writes.iter().zip(new(&old)) {
            value.map_or(Ok(()), |value| self.store(cx, m, *t, value))?;
        }
        Ok(old)
    }

    /// Performs a fence.
    fn fence(&self, cx: &mut Context<'_>, m: &mut Self::Memory, at: At, fence: Fence) -> Result;

    /// Whether a fence commutes with every step of other threads, so that it may execute at once.
    fn fence_commutes(&self, _: &Self::Memory, _thread: usize, _: Fence) -> bool {
        true
    }

    /// A thread arrives at a barrier; returns the knowledge that it hands over.
    fn arrive(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        at: At,
        barrier: &Barrier,
    ) -> Result<Self::Carried>;

    /// Whether the next arrival of a thread commutes with every step of other threads, with respect
    /// to memory.
    fn arrival_commutes(&self, _: &Self::Memory, _thread: usize) -> bool {
        true
    }

    /// Adds the knowledge that another arrival handed over.
    fn join(into: &mut Self::Carried, other: &Self::Carried);

    /// A thread passes its barrier.
    fn pass(&self, code: &Code, m: &mut Self::Memory, at: At, carried: &Self::Carried);

    /// Settles by choice the assumptions that a thread relied on, if they are open.
    fn shut(&self, _: &mut Context<'_>, _: &mut Self::Memory, _thread: usize) -> Result {
        Ok(())
    }

    /// The whole knowledge of a thread, for another thread to learn.
    fn hand(&self, code: &Code, m: &mut Self::Memory, at: At) -> Self::Carried;

    /// The knowledge that release fences of a thread have published, at a scope or for the whole
    /// system.
    fn hand_released(&self, _: &Self::Memory, _thread: usize, _: Scope) -> Self::Carried {
        Self::Carried::default()
    }

    /// A thread learns published knowledge.
    fn learn(&self, _: &mut Self::Memory, _thread: usize, _: &Self::Carried) {}

    /// A thread learns the knowledge of others: its next events come after theirs.
    fn tell(&self, code: &Code, m: &mut Self::Memory, at: At, carried: &Self::Carried);

    /// A thread begins an agent.
    fn begin(&self, _: &mut Self::Memory, _owner: usize, _agent: usize) {}

    /// An agent collects the knowledge of agents that have ended, to report it.
    fn gather(&self, _: &mut Self::Memory, _of: &[usize], _agent: usize) {}

    /// An agent has ended.
    fn ended(&self, _: &mut Self::Memory, _agent: usize) {}

    /// A thread learns that an agent, or only its reads, are complete.
    fn complete(&self, _: &mut Self::Memory, _thread: usize, _agent: usize, _reads: bool) {}

    /// Whether the memory ever binds anything early.
    fn binds(&self) -> bool {
        false
    }

    /// Whether the thread may bind an instruction early now.
    fn may_bind_early(
        &self,
        _: &Code,
        _: &Self::Memory,
        _: &[ThreadState],
        _thread: usize,
    ) -> bool {
        false
    }

    /// Binds an instruction of a thread before its turn.
    fn bind_early(
        &self,
        _: &mut Context<'_>,
        _: &mut Self::Memory,
        _: &[ThreadState],
        _: usize,
    ) -> Result {
        Err(StepHalt::Refused)
    }

    /// Whether some early bind has not had its turn: a state without successors is then not a hang.
    fn is_pending(&self, _: &Self::Memory) -> bool {
        false
    }

    /// Whether an earlier choice may leave a thread without a way to go on. A state without
    /// successors is then a hang only if all remaining threads wait at barriers.
    fn may_refuse(&self) -> bool {
        false
    }

    /// Whether every promise of earlier choices has come true: if not, the end of a run does not
    /// count.
    fn is_whole(&self, _: &Self::Memory) -> bool {
        true
    }

    /// The undefined behaviour of a run that has come to its end.
    fn hazards(&self, _: &Code, _: &Self::Memory) -> Vec<RunHazard> {
        Vec::new()
    }

    /// Brings the contents, and the knowledge in barriers, into a normal form. Returns `false` if
    /// that lost possible behaviour (the history reached its bound).
    fn tidy(
        &self,
        _: &Code,
        _: &mut Self::Memory,
        _: &mut dyn Iterator<Item = &mut Self::Carried>,
    ) -> bool {
        true
    }

    /// Hashes the contents and the knowledge in barriers, after [`Backend::tidy`]. Equal behaviour
    /// may hash differently; different behaviour never hashes equally.
    fn hash(
        &self,
        m: &Self::Memory,
        threads: &[ThreadState],
        carried: &mut dyn Iterator<Item = &Self::Carried>,
        hasher: &mut dyn Hasher,
    );

    /// The possible final values of a location.
    fn finals(&self, m: &Self::Memory, loc: usize) -> Vec<i64>;
}
