//! Binding before commit: a read takes its source, and a write becomes visible, before their
//! instruction has its turn.
//!
//! What can be bound is found by looking [ahead](super::ahead); what taking a source and becoming
//! visible means is each memory's own matter. Commit checks everything again: a run in which
//! something bound early cannot be committed counts for nothing.
//!
//! # Invariants
//! - Binds happen in an order that contains reads-from and value dependencies: no value justifies
//!   itself.

use super::ahead::{Bound, Candidate, Look, Release, What};
use super::{At, Backend, Context, Target};
use crate::code::{Access, Act, Code};
use crate::thread::Thread;
use crate::{Early, Halt, Result};

/// What an instruction was bound to. Reads and writes are known by numbers that are the memory's
/// own.
#[derive(Clone, Debug)]
pub(super) struct Bind {
    pub(super) thread: usize,
    /// The instruction, by the thread's clock when it has its turn.
    pub(super) clock: u32,
    pub(super) loc: usize,
    pub(super) read: Option<usize>,
    pub(super) write: Option<usize>,
    /// Releases before or at it that have not had their turn and could head a release pattern
    /// through its write.
    pub(super) releases: Vec<Release>,
}

/// Everything that was bound and has not had its turn, by thread and clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Binds(Vec<Bind>);

impl Binds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Bind> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Bind> {
        self.0.iter_mut()
    }

    /// Those of a thread.
    pub(super) fn of(&self, thread: usize) -> impl Iterator<Item = &Bind> {
        self.0.iter().filter(move |b| b.thread == thread)
    }

    /// The bind of a write.
    pub(super) fn of_write(&self, loc: usize, write: usize) -> Option<&Bind> {
        self.0
            .iter()
            .find(|b| (b.loc, b.write) == (loc, Some(write)))
    }

    /// What the instruction that has its turn was bound to.
    pub(super) fn take(&mut self, at: At) -> Option<Bind> {
        let i = self
            .0
            .iter()
            .position(|b| (b.thread, b.clock) == (at.thread, at.clock))?;
        Some(self.0.remove(i))
    }

    /// An instruction has had its turn: early writes after it no longer wait for its release.
    pub(super) fn had_turn(&mut self, at: At) {
        let mine = self.0.iter_mut().filter(|b| b.thread == at.thread);
        mine.for_each(|b| b.releases.retain(|r| r.clock > at.clock));
    }

    fn add(&mut self, bind: Bind) {
        let at = self
            .0
            .partition_point(|b| (b.thread, b.clock) < (bind.thread, bind.clock));
        self.0.insert(at, bind);
    }
}

/// Where the value that a write depends on comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Half {
    /// It is no half of a read-modify-write.
    None,
    /// That of an exchange, whose read is bound later.
    Open,
    /// That of a read-modify-write that reads so.
    Of(Target, usize),
}

/// A memory in which instructions are bound before their turn.
pub(super) trait Binding: Backend {
    /// Whether an exchange's write may be published alone.
    const HALVES: bool;

    /// How much may be bound; `None`, if nothing ever is.
    fn early(&self) -> Early;

    /// Whether arrivals at barriers are release fences.
    fn arrivals_release(&self) -> bool;

    /// Whether writes there may be bound.
    fn may_publish(&self, code: &Code, loc: usize) -> bool;

    fn bound(m: &Self::Memory) -> &Binds;

    fn bound_mut(m: &mut Self::Memory) -> &mut Binds;

    /// The value that a read took.
    fn taken(m: &Self::Memory, loc: usize, read: usize) -> i64;

    /// Gives a read its source.
    fn source(&self, cx: &mut Context<'_>, m: &mut Self::Memory, t: Target) -> Result<usize>;

    /// Makes a write visible.
    fn show(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        t: Target,
        value: i64,
        half: Half,
    ) -> Result<usize>;

    /// The read of an exchange whose write is visible has its source.
    fn catch(&self, code: &Code, m: &mut Self::Memory, write: usize, half: (Target, usize));

    /// What a thread could bind now.
    fn candidates(
        &self,
        code: &Code,
        m: &Self::Memory,
        threads: &[Thread],
        t: usize,
    ) -> Vec<Candidate> {
        let mine = || Self::bound(m).of(t);
        let bound = |clock: u32| {
            let bind = mine().find(|b| b.clock == clock)?;
            Some(Bound {
                read: bind.read.map(|r| Self::taken(m, bind.loc, r)),
                write: bind.write.is_some(),
            })
        };
        let (early, thread, binds) = (self.early(), &threads[t], mine().count());
        let (halves, fences) = (Self::HALVES, self.arrivals_release());
        let mut found = Look {
            code,
            early,
            t,
            thread,
            bound: &bound,
            binds,
            halves,
            fences,
        }
        .candidates();
        found.retain(|c| c.what == What::Read || self.may_publish(code, c.place.loc));
        found
    }

    /// Binds one of the candidates.
    fn bind(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        threads: &[Thread],
        t: usize,
    ) -> Result {
        let chosen = Candidate::choose(self.candidates(cx.code, m, threads, t), cx, t)?;
        let at = At {
            thread: t,
            instr: chosen.instr,
            clock: chosen.clock,
        };
        let target = |access: &Access| Target {
            at,
            place: chosen.place,
            access: *access,
        };
        let loc = chosen.place.loc;
        let mut bind = Bind {
            thread: t,
            clock: at.clock,
            loc,
            read: None,
            write: None,
            releases: Vec::new(),
        };
        match &cx.code.threads[t].acts[at.instr] {
            Act::Load { access, .. } => bind.read = Some(self.source(cx, m, target(access))?),
            Act::Store { access, .. } => {
                bind.write = Some(self.show(cx, m, target(access), chosen.value, Half::None)?);
            }
            Act::Rmw { write, .. } if chosen.what == What::Publish => {
                bind.write = Some(self.show(cx, m, target(write), chosen.value, Half::Open)?);
            }
            atomic @ Act::Rmw { read, write, .. } => {
                let half = (target(read), self.source(cx, m, target(read))?);
                if chosen.what == What::Catch {
                    bind = Self::bound_mut(m).take(at).ok_or(Halt::Refused)?;
                    self.catch(cx.code, m, bind.write.ok_or(Halt::Refused)?, half);
                } else if let Some(new) = chosen.written(atomic, Self::taken(m, loc, half.1))? {
                    bind.write =
                        Some(self.show(cx, m, target(write), new, Half::Of(half.0, half.1))?);
                }
                bind.read = Some(half.1);
            }
            _ => return Err(Halt::Refused),
        }
        if chosen.what != What::Catch {
            bind.releases = chosen.releases;
        }
        Self::bound_mut(m).add(bind);
        Ok(())
    }
}
