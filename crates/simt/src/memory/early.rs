//! Binding before commit: a read takes its source, or a write becomes visible, before the turn of
//! its instruction.
//!
//! The look [ahead](super::ahead) finds possible binds; each memory defines how to take a source
//! and how to become visible. Commit checks everything again: a run in which an early event cannot
//! be committed does not count.
//!
//! # Invariants
//! - Binds happen in an order that contains reads-from and value dependencies: no value justifies
//!   itself.

use super::ahead::{BindCandidate, BindKind, EarlierBind, LookAhead, Release};
use super::{At, Backend, Context, MemoryAccess};
use crate::code::{Access, Act, Code};
use crate::thread::ThreadState;
use crate::{Early, Result, StepHalt};

/// The bind of an instruction. The memory assigns the numbers of reads and writes.
#[derive(Clone, Debug)]
pub(super) struct Bind {
    pub(super) thread: usize,
    /// The thread's clock at the turn of its instruction.
    pub(super) clock: u32,
    pub(super) loc: usize,
    pub(super) read: Option<usize>,
    pub(super) write: Option<usize>,
    /// Releases before or at it whose turn has not come, if they could head a release pattern
    /// through its write.
    pub(super) releases: Vec<Release>,
}

/// All binds whose turn has not come, by thread and clock.
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

    /// The binds of a thread.
    pub(super) fn of(&self, thread: usize) -> impl Iterator<Item = &Bind> {
        self.0.iter().filter(move |b| b.thread == thread)
    }

    /// The bind of a write.
    pub(super) fn of_write(&self, loc: usize, write: usize) -> Option<&Bind> {
        self.0
            .iter()
            .find(|b| (b.loc, b.write) == (loc, Some(write)))
    }

    /// Removes and returns the bind of the instruction whose turn it is.
    pub(super) fn take(&mut self, at: At) -> Option<Bind> {
        let i = self
            .0
            .iter()
            .position(|b| (b.thread, b.clock) == (at.thread, at.clock))?;
        Some(self.0.remove(i))
    }

    /// An instruction has had its turn: later early writes no longer wait for its release.
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

/// The source of the value that a write depends on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Half {
    /// The write is not half of a read-modify-write.
    None,
    /// The write belongs to an exchange whose read is bound later.
    Open,
    /// The write belongs to a read-modify-write with this read.
    Of(MemoryAccess, usize),
}

/// A memory that can bind instructions before their turn.
pub(super) trait Binding: Backend {
    /// Whether an exchange's write may be published alone.
    const HALVES: bool;

    /// The limit on binds; [`Early::None`] if there never are any.
    fn early(&self) -> Early;

    /// Whether arrivals at barriers are release fences.
    fn arrivals_release(&self) -> bool;

    /// Whether writes to the location may be bound.
    fn may_publish(&self, code: &Code, loc: usize) -> bool;

    fn bound(m: &Self::Memory) -> &Binds;

    fn bound_mut(m: &mut Self::Memory) -> &mut Binds;

    /// The value that a read took.
    fn taken(m: &Self::Memory, loc: usize, read: usize) -> i64;

    /// Gives a read its source.
    fn source(&self, cx: &mut Context<'_>, m: &mut Self::Memory, t: MemoryAccess) -> Result<usize>;

    /// Makes a write visible.
    fn show(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        t: MemoryAccess,
        value: i64,
        half: Half,
    ) -> Result<usize>;

    /// Gives a source to the read of an exchange whose write is visible.
    fn catch(
        &self,
        code: &Code,
        m: &mut Self::Memory,
        write: usize,
        read: MemoryAccess,
        source: usize,
    );

    /// The binds that are possible for a thread now.
    fn candidates(
        &self,
        code: &Code,
        m: &Self::Memory,
        threads: &[ThreadState],
        t: usize,
    ) -> Vec<BindCandidate> {
        let mine = || Self::bound(m).of(t);
        let bound = |clock: u32| {
            let bind = mine().find(|b| b.clock == clock)?;
            Some(EarlierBind {
                read: bind.read.map(|r| Self::taken(m, bind.loc, r)),
                write: bind.write.is_some(),
            })
        };
        let (early, thread, binds) = (self.early(), &threads[t], mine().count());
        let (halves, fences) = (Self::HALVES, self.arrivals_release());
        let mut found = LookAhead {
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
        found.retain(|c| c.what == BindKind::Read || self.may_publish(code, c.place.loc));
        found
    }

    /// Performs one of the candidates.
    fn bind(
        &self,
        cx: &mut Context<'_>,
        m: &mut Self::Memory,
        threads: &[ThreadState],
        t: usize,
    ) -> Result {
        let chosen = BindCandidate::choose(self.candidates(cx.code, m, threads, t), cx, t)?;
        let at = At {
            thread: t,
            instr: chosen.instr,
            clock: chosen.clock,
        };
        let target = |access: &Access| MemoryAccess {
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
            Act::Rmw { write, .. } if chosen.what == BindKind::Publish => {
                bind.write = Some(self.show(cx, m, target(write), chosen.value, Half::Open)?);
            }
            atomic @ Act::Rmw { read, write, .. } => {
                let source = self.source(cx, m, target(read))?;
                if chosen.what == BindKind::Catch {
                    bind = Self::bound_mut(m).take(at).ok_or(StepHalt::Refused)?;
                    let publication = bind.write.ok_or(StepHalt::Refused)?;
                    self.catch(cx.code, m, publication, target(read), source);
                } else if let Some(new) = chosen.written(atomic, Self::taken(m, loc, source))? {
                    bind.write = Some(self.show(
                        cx,
                        m,
                        target(write),
                        new,
                        Half::Of(target(read), source),
                    )?);
                }
                bind.read = Some(source);
            }
            _ => return Err(StepHalt::Refused),
        }
        if chosen.what != BindKind::Catch {
            bind.releases = chosen.releases;
        }
        Self::bound_mut(m).add(bind);
        Ok(())
    }
}
