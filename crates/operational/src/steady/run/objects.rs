//! Operations of a run on mbarrier objects.
//!
//! # Invariants
//! - The word of an object is always known. An operation changes it as its micro-op says.
//! - A phase that might end in another order than in this run gives the run up.

use super::super::clock::Clock;
use super::super::shadow::{AccessKind, Touch};
use super::{
    Completion, EarlyEnd, Ended, ObjectPhase, Parting, PassedWait, SteadyRun, Turn, unsteady,
};
use program::mbarrier::{PHASE, PHASES, awaited, count_of, phase_of};
use program::{Access, BinOp, Expr, Op, Program, RegId, Tag, Update};

/// A test of the phase of an object.
pub(super) struct PhaseTest<'p> {
    /// The register of the word.
    dst: RegId,
    access: &'p Access,
    /// Whether the phase is complete, and the test may be made.
    passes: &'p Expr,
    /// Whether the test may be made.
    may: &'p Expr,
}

impl<'p> SteadyRun<'p> {
    /// Ends an operation: it signals its object.
    pub(super) fn complete(&mut self, completion: &Completion) -> Ended<()> {
        let (t, at) = completion.site;
        let over = self.barriers.object(completion.address).complete.len();
        if completion.phase.is_some_and(|phase| phase != over) {
            return unsteady(self.instr(t, at), "possibly in another phase");
        }
        if let Some((ranges, memory)) = &completion.object {
            let touch = Touch {
                performer: self.performers,
                event: 1,
                site: (t, at),
                write: true,
                kind: AccessKind::Object,
                async_proxy: false,
                tensormap: false,
                memory: *memory,
            };
            self.performers += 1;
            self.touch(touch, ranges, &completion.known)?;
        }
        let mut known = Clock::default();
        completion
            .performers
            .iter()
            .for_each(|own| known.learn(*own, 1));
        self.events += 1;
        let passed = self.update(t, at, completion.address)?;
        let Some((old, new)) = passed else {
            return Err(EarlyEnd::Misuse(t, at));
        };
        let object = self.barriers.object(completion.address);
        object.present.join(&known);
        object.begun.join(&completion.known);
        if phase_of(old) != phase_of(new) {
            self.completed(t, at, completion.address);
        }
        Ok(())
    }

    /// Completes the phase of an object.
    fn completed(&mut self, t: usize, at: usize, address: i64) {
        let mut pending = self.pending.iter();
        if let Some(other) = pending.find(|other| other.address == address) {
            // Another operation may come before. This run is one of the executions.
            self.parting.get_or_insert(Parting::Phase {
                ended: (t, at),
                outstanding: other.site,
            });
        }
        self.barriers.object(address).advance();
    }

    /// Applies an operation to the word of an mbarrier object. Returns the old word and the new
    /// one, if it writes.
    pub(super) fn update(
        &mut self,
        t: usize,
        at: usize,
        address: i64,
    ) -> Ended<Option<(i64, i64)>> {
        let instr = self.instr(t, at);
        let Op::Rmw {
            dst: Some(dst),
            update: Update::When { cond, new },
            write,
            ..
        } = &instr.op
        else {
            return unsteady(instr, "an operation of this form on an mbarrier object");
        };
        let bytes = write.ty.bytes();
        let Some(old) = self.memory.load(address, bytes) else {
            return unsteady(instr, "on memory with an unknown value");
        };
        self.set(t, *dst, Some(old));
        let with = Some((*dst, old));
        match self.eval_with(t, cond, with) {
            None => unsteady(instr, "with a precondition on an unknown value"),
            Some(0) => Ok(None),
            Some(_) => {
                let Some(new) = self.eval_with(t, new, with) else {
                    return unsteady(instr, "with an unknown number");
                };
                self.memory
                    .store(address, address + i64::from(bytes), Some(new));
                Ok(Some((old, new)))
            }
        }
    }

    /// An operation of a thread on an mbarrier object.
    pub(super) fn object(&mut self, t: usize, at: usize) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let Op::Rmw { addr, write, .. } = &instr.op else {
            return Ok(Turn::On);
        };
        let Some(address) = self.eval(t, addr) else {
            return unsteady(instr, "at an address that depends on an unknown value");
        };
        let tags = write.tags;
        let waits = tags.has(Tag::MbarrierWait);
        let init = tags.has(Tag::MbarrierInit);
        if tags.has(Tag::Relaxed) || waits && !tags.has(Tag::Acquire) {
            return unsteady(instr, "a relaxed operation");
        }
        if let Some(test) = self.phase_test(t, at).filter(|_| waits) {
            return self.wait(t, at, address, &test);
        }
        let done = self.update(t, at, address)?;
        let kind = if init {
            AccessKind::Init
        } else {
            AccessKind::Object
        };
        self.touches(t, at, write, kind)?;
        let Some(words) = done else {
            // What follows finds the misuse.
            return Ok(Turn::On);
        };
        if init {
            self.renew(t, at, address);
            self.threads[t].inits.push(address);
            return Ok(Turn::On);
        }
        self.arrives(t, at, address, words)
    }

    /// Notes an operation of a thread on an object, as an access.
    pub(super) fn touches(
        &mut self,
        t: usize,
        at: usize,
        access: &Access,
        kind: AccessKind,
    ) -> Ended<()> {
        let event = self.tick(t);
        let Some((ranges, memory)) = self.ranges(t, at, access)? else {
            return Ok(());
        };
        let touch = Touch {
            performer: t,
            event,
            site: (t, at),
            write: self.instr(t, at).op.write().is_some(),
            kind,
            async_proxy: false,
            tensormap: false,
            memory,
        };
        let known = self.clocks[t].clone();
        self.touch(touch, &ranges, &known)
    }

    /// Begins the life of an object.
    pub(super) fn renew(&mut self, t: usize, at: usize, address: i64) {
        let Some(gone) = self.barriers.renew(address) else {
            return;
        };
        self.doubt(t, at, "another object was here before");
        let knows = |wait: &PassedWait| self.clocks[t].of(wait.site.0) >= wait.event;
        let mut passed = self.passed.iter().filter(|wait| wait.object == gone);
        if let Some(late) = passed.find(|wait| !knows(wait)) {
            let (t, at) = late.site;
            self.parting.get_or_insert(Parting::Wait(t, at));
        }
    }

    /// An operation that has changed the word of an object, mostly an arrival.
    pub(super) fn arrives(
        &mut self,
        t: usize,
        at: usize,
        address: i64,
        (old, new): (i64, i64),
    ) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let tags = instr.op.write().map(|write| write.tags).unwrap_or_default();
        let known = &self.clocks[t];
        let object = self.barriers.object(address);
        let phases = known.phases.get(&object.index).copied().unwrap_or(0);
        if phases != object.complete.len() as i64 {
            // PTX ISA, Phase of the mbarrier object: a wait for the phase before comes first.
            return match tags.has(Tag::MbarrierArrive) {
                true => Err(EarlyEnd::Misuse(t, at)),
                false => unsteady(instr, "possibly in an earlier phase"),
            };
        }
        let index = object.index;
        // The end of an object is its last phase: a wait that may come behind it has no object.
        let ends = count_of(new) == 0;
        let is_arrival = tags.has_any(&[Tag::MbarrierArrive, Tag::Object]);
        if ends || is_arrival && !tags.has(Tag::Relaxed) {
            object.present.join(known);
        }
        let place = ObjectPhase {
            object: index,
            phase: phases,
            thread: t,
        };
        match is_arrival {
            true => self.may_be_last(t, at, old, place),
            false => self.expects(t, at, place),
        }
        if phase_of(old) != phase_of(new) {
            self.completed(t, at, address);
        }
        Ok(Turn::On)
    }

    /// A thread tests the phase of an object, and comes back until it passes.
    pub(super) fn wait(
        &mut self,
        t: usize,
        at: usize,
        address: i64,
        test: &PhaseTest<'_>,
    ) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let bytes = test.access.ty.bytes();
        let Some(word) = self.memory.load(address, bytes) else {
            return unsteady(instr, "on memory with an unknown value");
        };
        self.set(t, test.dst, Some(word));
        let object = self.barriers.object(address);
        let (index, complete) = (object.index, object.complete.len() as i64);
        let known = self.clocks[t].phases.get(&index).copied().unwrap_or(0);
        let passes = match self.eval_with(t, test.passes, Some((test.dst, word))) {
            None => return unsteady(instr, "with a precondition on an unknown value"),
            Some(passes) => passes != 0,
        };
        // It may look at any state of the object that its thread does not know to be over.
        let mut states = (known..complete).map(|over| earlier(word, complete - over));
        let may = |word: i64| self.eval_with(t, test.may, Some((test.dst, word))) == Some(1);
        if !states.all(may) {
            self.doubt(
                t,
                at,
                "a wait with a precondition that an earlier state breaks",
            );
        }
        if !passes {
            if count_of(word) == 0 {
                return unsteady(instr, "on memory without an object");
            }
            if self.might_have_passed(t, test, word, complete - known) {
                self.parting.get_or_insert(Parting::Wait(t, at));
            }
            if self.threads[t].in_vain != Some(at) {
                self.looks(t, at, test.access)?;
            }
            self.threads[t].in_vain = Some(at);
            return Ok(Turn::Waits);
        }
        // It may look before the phase is over, so it does once.
        if self.threads[t].in_vain != Some(at) && known < complete {
            self.set(t, test.dst, Some(earlier(word, complete - known)));
            self.threads[t].in_vain = Some(at);
            self.events += 1;
            return Ok(Turn::Waits);
        }
        self.touches(t, at, test.access, AccessKind::Object)?;
        self.passes(t, at, address, test, word);
        Ok(Turn::On)
    }

    /// The test of a phase, in a wait at an object.
    pub(super) fn phase_test(&self, t: usize, at: usize) -> Option<PhaseTest<'p>> {
        let program: &'p Program = self.program;
        let code = &program.threads[t].code;
        let (dst, access, passes) = match (&code[at].op, code.get(at + 1).map(|i| &i.op)) {
            (
                Op::Rmw {
                    dst: Some(dst),
                    update: Update::When { cond, .. },
                    write,
                    ..
                },
                _,
            ) => (*dst, write, cond),
            (Op::Load { dst, access, .. }, Some(Op::Assign { value, .. })) => {
                awaited(value, &Expr::Reg(*dst))?;
                (*dst, access, value)
            }
            _ => return None,
        };
        match passes {
            Expr::Bin(BinOp::And, _, _, may) => Some(PhaseTest {
                dst,
                access,
                passes,
                may,
            }),
            _ => None,
        }
    }

    /// A wait looks at an object in vain.
    fn looks(&mut self, t: usize, at: usize, access: &Access) -> Ended<()> {
        let Some((ranges, memory)) = self.ranges(t, at, access)? else {
            return Ok(());
        };
        let touch = Touch {
            performer: t,
            event: self.clocks[t].of(t) + 1,
            site: (t, at),
            write: false,
            kind: AccessKind::Object,
            async_proxy: false,
            tensormap: false,
            memory,
        };
        let known = self.clocks[t].clone();
        self.touch(touch, &ranges, &known)
    }

    /// Whether a wait in vain could have passed in an earlier phase of those that its thread does
    /// not know to be over: so many.
    fn might_have_passed(&self, t: usize, test: &PhaseTest<'_>, word: i64, phases: i64) -> bool {
        (1..=phases).any(|back| {
            let word = earlier(word, back);
            self.eval_with(t, test.passes, Some((test.dst, word))) != Some(0)
        })
    }

    /// A wait that an object lets pass: it learns of the first phase that does.
    fn passes(&mut self, t: usize, at: usize, address: i64, test: &PhaseTest<'_>, word: i64) {
        let object = self.barriers.object(address);
        let (index, complete) = (object.index, object.complete.len() as i64);
        let known = self.clocks[t].phases.get(&index).copied().unwrap_or(0);
        let lets_pass = |over: &i64| {
            let word = earlier(word, complete - over);
            self.eval_with(t, test.passes, Some((test.dst, word))) == Some(1)
        };
        let first = (known..=complete).find(lets_pass).unwrap_or(complete);
        self.passed.push(PassedWait {
            object: index,
            over: first as usize,
            site: (t, at),
            event: self.clocks[t].of(t),
        });
        if first > known {
            let given = self.barriers.object(address).complete[first as usize - 1].clone();
            self.clocks[t].join(&given);
        }
    }
}

/// The word of an object, so many phases before.
fn earlier(word: i64, phases: i64) -> i64 {
    let phase = (phase_of(word) - phases).rem_euclid(PHASES);
    word & !((PHASES - 1) << PHASE) | phase << PHASE
}
