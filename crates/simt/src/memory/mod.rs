//! What a memory is to the machine.
//!
//! A memory carries out accesses, fences and what barriers hand over. Where it could go on in
//! several ways it asks the chooser; where it cannot go on it says [`Halt`], and the step is given
//! up as a whole (the caller works on a copy).

mod ahead;
pub(super) mod clike;
mod early;
pub(super) mod rules;
pub(super) mod sc;
pub(super) mod weak;

use std::fmt::Debug;
use std::hash::Hasher;

use super::choice::Chooser;
use super::code::{Access, Code, Fence, Place};
use super::record::{Hazard, Log, Spot};
use super::thread::Thread;
use super::{Halt, Result};
use program::{Barrier, Scope};

/// Where and when a step happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) thread: usize,
    /// Index of the instruction in the thread's code.
    pub(super) instr: usize,
    /// Micro-ops that the thread carried out before it.
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

/// An access of a thread: when, where, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) at: At,
    pub(super) place: Place,
    pub(super) access: Access,
}

/// What a step may use besides the state.
pub(super) struct Context<'a> {
    pub(super) code: &'a Code,
    pub(super) chooser: &'a mut dyn Chooser,
    pub(super) log: &'a mut dyn Log,
    /// How old what this step read is, and where it wrote.
    pub(super) age: Age,
}

/// Whether a step may be one of infinitely many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Age {
    /// It reads what nothing overwrites, and writes last.
    New,
    /// A weak read takes what was overwritten. Compilers and caches can make it find that for ever,
    /// but a fair memory does not.
    Stale,
    /// Another read takes what was overwritten, or a write comes before one that is there: a thread
    /// that keeps on does so finitely often.
    Old,
}

impl Context<'_> {
    /// One of those that there are.
    ///
    /// # Errors
    /// Refused, if there is none.
    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> Result<T> {
        if all.is_empty() {
            Err(Halt::Refused)
        } else {
            Ok(all[self.chooser.choose(all.len())])
        }
    }

    /// Something the step did is of that age.
    pub(super) fn ages(&mut self, old: bool, age: Age) {
        if old {
            self.age = self.age.max(age);
        }
    }
}

/// What a read-modify-write writes, given what it read; `None`: nothing.
pub(super) type NewValue<'a> = &'a dyn Fn(i64) -> Option<i64>;

/// The same of an operation on several cells, cell by cell.
pub(super) type NewValues<'a> = &'a dyn Fn(&[i64]) -> Vec<Option<i64>>;

/// A memory: its rules. The contents are [`Backend::Memory`].
pub(super) trait Backend: Clone {
    /// The contents.
    type Memory: Clone + Debug;
    /// What an arrival at a barrier hands to the waits.
    type Carried: Clone + Default + Debug;

    /// What an access of one thread to one location can change.
    type Saved;

    /// Keeps what an access of a thread to a location, without early binds, can change.
    fn save(&self, m: &Self::Memory, thread: usize, loc: Option<usize>) -> Self::Saved;

    /// Puts it back.
    fn restore(&self, m: &mut Self::Memory, saved: Self::Saved);

    /// The contents before the first step.
    fn start(&self, code: &Code) -> Self::Memory;

    /// Reads; gives the value as stored.
    fn load(&self, cx: &mut Context<'_>, m: &mut Self::Memory, t: Target) -> Result<i64>;

    /// Writes.
    fn store(&self, cx: &mut Context<'_>, m: &mut Self::Memory, t: Target, value: i64) -> Result;

    /// Reads and writes, by two halves of one instruction; gives the old value as stored.
    fn rmw(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        halves: (Target, Target),
        new: NewValue<'_>,
    ) -> Result<i64>;

    /// An operation on several cells at once: reads, then writes what that makes of it (`None`:
    /// nothing there). Gives what was read.
    fn several(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        (reads, writes): (&[Target], &[Target]),
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

    /// A fence of either kind.
    fn fence(&self, cx: &mut Context<'_>, m: &mut Self::Memory, at: At, fence: Fence) -> Result;

    /// Whether a fence commutes with every step of other threads, so that it may be carried out at
    /// once.
    fn fence_commutes(&self, _: &Self::Memory, _thread: usize, _: Fence) -> bool {
        true
    }

    /// A thread arrives at a barrier; what it hands over.
    fn arrive(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        at: At,
        barrier: &Barrier,
    ) -> Result<Self::Carried>;

    /// Whether the next arrival of a thread commutes with every step of other threads, as far as
    /// memory goes.
    fn arrival_commutes(&self, _: &Self::Memory, _thread: usize) -> bool {
        true
    }

    /// Adds what another arrival handed over.
    fn join(into: &mut Self::Carried, other: &Self::Carried);

    /// A thread passes the barrier that it is at.
    fn pass(&self, code: &Code, m: &mut Self::Memory, at: At, carried: &Self::Carried);

    /// Makes up a thread's mind about what it relied on, where that was left open.
    fn shut(&self, _: &mut Context<'_>, _: &mut Self::Memory, _thread: usize) -> Result {
        Ok(())
    }

    /// All that a thread knows, for another to be told of.
    fn hand(&self, code: &Code, m: &mut Self::Memory, at: At) -> Self::Carried;

    /// What release fences of a thread have published, of a scope or of the whole system.
    fn hand_released(&self, _: &Self::Memory, _thread: usize, _: Scope) -> Self::Carried {
        Self::Carried::default()
    }

    /// A thread learns what was published.
    fn learn(&self, _: &mut Self::Memory, _thread: usize, _: &Self::Carried) {}

    /// A thread is told what others know: it comes after that.
    fn tell(&self, code: &Code, m: &mut Self::Memory, at: At, carried: &Self::Carried);

    /// An agent is begun by a thread.
    fn begin(&self, _: &mut Self::Memory, _owner: usize, _agent: usize) {}

    /// An agent is to tell of what others did, who have ended.
    fn gather(&self, _: &mut Self::Memory, _of: &[usize], _agent: usize) {}

    /// An agent has ended.
    fn ended(&self, _: &mut Self::Memory, _agent: usize) {}

    /// A thread knows that an agent is complete, or its reads are.
    fn complete(&self, _: &mut Self::Memory, _thread: usize, _agent: usize, _reads: bool) {}

    /// Whether anything is ever bound early.
    fn binds(&self) -> bool {
        false
    }

    /// Whether the thread may bind an instruction early now.
    fn may_bind_early(&self, _: &Code, _: &Self::Memory, _: &[Thread], _thread: usize) -> bool {
        false
    }

    /// Binds an instruction of a thread before its turn.
    fn bind_early(
        &self,
        _: &mut Context<'_>,
        _: &mut Self::Memory,
        _: &[Thread],
        _: usize,
    ) -> Result {
        Err(Halt::Refused)
    }

    /// Whether something was bound early and has not had its turn: a state without successors is
    /// then no hang.
    fn is_pending(&self, _: &Self::Memory) -> bool {
        false
    }

    /// Whether a thread may find no way on because of what was chosen earlier: a state without
    /// successors in which not all who are left wait at barriers is then no hang either.
    fn may_refuse(&self) -> bool {
        false
    }

    /// Whether everything that earlier choices promised has come true: if not, the end of a run
    /// counts for nothing.
    fn is_whole(&self, _: &Self::Memory) -> bool {
        true
    }

    /// What is undefined about a run that has come to its end.
    fn hazards(&self, _: &Code, _: &Self::Memory) -> Vec<Hazard> {
        Vec::new()
    }

    /// Brings the contents, and what barriers carry, into a normal form. `false` if that lost
    /// possible behaviour (a bound on the history was met).
    fn tidy(
        &self,
        _: &Code,
        _: &mut Self::Memory,
        _: &mut dyn Iterator<Item = &mut Self::Carried>,
    ) -> bool {
        true
    }

    /// Hashes contents and what barriers carry, after [`Backend::tidy`]. Equal behaviour may hash
    /// differently, different behaviour never equally.
    fn hash(
        &self,
        m: &Self::Memory,
        threads: &[Thread],
        carried: &mut dyn Iterator<Item = &Self::Carried>,
        hasher: &mut dyn Hasher,
    );

    /// The possible final values of a location.
    fn finals(&self, m: &Self::Memory, loc: usize) -> Vec<i64>;
}
