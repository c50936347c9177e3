//! Executes one instruction symbolically: adds its events, and updates the registers.
//!
//! # Invariants
//! - An event is added under the guard of the state; a wait narrows the guard to the executions in
//!   which it passes.

use std::ops::Range;

use super::kept::keeps;
use super::returns::VisibleEffect;
use super::state::{Taint, UnrollState, union};
use super::unroll::Unroller;
use super::unrolled::{
    BarrierGroup, GuardedArrival, GuardedWait, Naming, PreservingRmw, QueryAnswer, Unrolling, Use,
    WaitKey,
};
use crate::skeleton::event::Event;
use crate::skeleton::graph::{MAX_EVENTS, MAX_VALUE_DEPTH};
use crate::skeleton::loops::Position;
use crate::skeleton::pool::{Cond, TermId};
use cat::rel::EventId;
use program::host::QueryId;
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, CmpOp, Element, EventKind, Expr, Instr,
    Mark, Op, RegId, Scope, Tag, Tags, ThreadId, Ty, Update,
};
use verdict::Reason;

/// The place of an instruction.
struct Here<'a> {
    thread: ThreadId,
    pc: usize,
    at: &'a Position,
}

impl Here<'_> {
    /// An event without address and value.
    fn event(&self, kind: EventKind, guard: Cond, tags: &Tags, scope: Option<Scope>) -> Event {
        let (thread, instr, tags) = (Some(self.thread), self.pc, *tags);
        Event {
            kind,
            thread,
            instr,
            guard,
            tags,
            scope,
            addr: None,
            value: None,
            ty: Ty::WORD,
            part: 0,
            parts: 1,
        }
    }
}

impl Unroller<'_> {
    /// The value of an expression, and the reads that it depends on.
    pub(crate) fn eval(
        &mut self,
        state: &UnrollState,
        e: &Expr,
        thread: ThreadId,
    ) -> (TermId, Taint) {
        match e {
            Expr::Const(v) => (self.out.pool.constant(*v), Taint::default()),
            Expr::Reg(r) => (state.regs[r.0 as usize], state.taints[r.0 as usize].clone()),
            Expr::Address(loc) => {
                let address = self.memory.address(self.program, *loc, 0, Some(thread));
                (
                    self.out.pool.constant(address.unwrap_or(0)),
                    Taint::default(),
                )
            }
            Expr::Bin(BinOp::Tells, ty, a, b) => self.eval(
                state,
                &Expr::Cmp(CmpOp::Eq, *ty, a.clone(), b.clone()),
                thread,
            ),
            Expr::Bin(op, ty, a, b) => {
                let ((a, ta), (b, tb)) = (self.eval(state, a, thread), self.eval(state, b, thread));
                (self.out.pool.bin(*op, *ty, a, b), union(&ta, &tb))
            }
            Expr::Cmp(op, ty, a, b) => {
                let ((a, ta), (b, tb)) = (self.eval(state, a, thread), self.eval(state, b, thread));
                let c = self.out.pool.cmp(*op, *ty, a, b);
                (self.out.pool.truth(c), union(&ta, &tb))
            }
            Expr::Select(c, a, b) => {
                let (c, tc) = self.eval(state, c, thread);
                let ((a, ta), (b, tb)) = (self.eval(state, a, thread), self.eval(state, b, thread));
                let c = self.out.pool.non_zero(c);
                (self.out.pool.ite(c, a, b), union(&tc, &union(&ta, &tb)))
            }
            Expr::Cast(ty, a) => {
                let (a, t) = self.eval(state, a, thread);
                (self.out.pool.cast(*ty, a), t)
            }
            Expr::Fused(fused, three) => {
                let [(a, ta), (b, tb), (c, tc)] =
                    three.each_ref().map(|e| self.eval(state, e, thread));
                (
                    self.out.pool.fused(*fused, [a, b, c]),
                    union(&ta, &union(&tb, &tc)),
                )
            }
        }
    }

    /// Adds an event at the state.
    fn push(
        &mut self,
        event: Event,
        state: &mut UnrollState,
        at: &Position,
    ) -> Result<EventId, Reason> {
        if self.out.events.len() >= MAX_EVENTS {
            return Err(Reason::TooManyEvents(MAX_EVENTS));
        }
        let id = EventId::new(self.out.events.len());
        self.out.ctrl.extend(state.ctrl.iter().map(|&r| (r, id)));
        self.out.events.push(event);
        state.fresh = false;
        if self.purpose.is_progress() {
            self.out.places.push((id, at.clone()));
        }
        Ok(id)
    }

    /// Executes one instruction other than a branch. Returns its effect for the detection of spin
    /// loops: whether it writes, or takes part in a barrier.
    pub(crate) fn execute(
        &mut self,
        state: &mut UnrollState,
        op: &Op,
        thread: ThreadId,
        pc: usize,
        at: &Position,
    ) -> Result<VisibleEffect, Reason> {
        let here = Here { thread, pc, at };
        match op {
            Op::Branch { .. } => unreachable!("branches are steps"),
            Op::Give { .. } => unreachable!("it is carried out where lanes meet"),
            Op::Take { dst, lane } => {
                let brought = state.brought.get(usize::from(*lane)).cloned();
                let brought = brought.ok_or_else(|| {
                    Reason::Unsupported("a value of a lane that was not met".into())
                })?;
                let (value, taint) =
                    brought.unwrap_or_else(|| (self.out.pool.constant(0), Taint::default()));
                state.set(*dst, value, taint);
                Ok(VisibleEffect::NONE)
            }
            Op::Assign { dst, value } => {
                let (v, t) = self.eval(state, value, thread);
                if self.out.pool.depth(v) > MAX_VALUE_DEPTH {
                    return Err(Reason::TooDeepValue(MAX_VALUE_DEPTH));
                }
                state.set(*dst, v, t);
                Ok(VisibleEffect::NONE)
            }
            Op::Load { dst, addr, access } => {
                let addr = self.eval(state, addr, thread);
                let (_, value, taint) = self.read(state, &here, access, &addr)?;
                state.set(*dst, value, taint);
                Ok(VisibleEffect {
                    shows: self.shows(state.guard, &here),
                    ..VisibleEffect::NONE
                })
            }
            Op::Store {
                addr,
                value,
                access,
            } => {
                let addr = self.eval(state, addr, thread);
                let value = self.eval(state, value, thread);
                let guard = state.guard;
                self.write(state, &here, access, [&addr, &value], guard)?;
                Ok(VisibleEffect::when(guard))
            }
            Op::Rmw { .. } if self.options.rmw_single() => Err(Reason::Unsupported(
                "read-modify-writes under a model that makes them one event (`rmw = single`)"
                    .into(),
            )),
            Op::Rmw { .. } if self.program.thread(thread).code[pc].element.whole => {
                self.whole_rmw(state, &here)
            }
            Op::Rmw { .. } => self.rmw(state, &here, op),
            Op::Mark { addr, mark } => self.mark(state, &here, addr.as_ref(), mark),
            Op::Call(_) | Op::Enqueue(_) => Ok(VisibleEffect::NONE),
            Op::Status { dst, of } => {
                let value = self.query(state.guard, &here, *of);
                state.set(*dst, value, Taint::default());
                Ok(VisibleEffect::NONE)
            }
            Op::Choice { dst, .. } => {
                let choice = self.out.pool.fresh_choice();
                if self.purpose.is_progress() {
                    self.out.spurious.push((thread, at.clone(), choice));
                }
                let value = self.out.pool.truth(choice);
                state.set(*dst, value, Taint::default());
                Ok(VisibleEffect::NONE)
            }
            Op::Barrier(b) => self.meet_barrier(state, &here, b),
        }
    }

    /// Adds an answer of a query, and returns its value.
    fn query(&mut self, guard: Cond, here: &Here<'_>, of: QueryId) -> TermId {
        let pool = &mut self.out.pool;
        let host = self.program.host.as_deref().expect("a host program");
        let query = host.query(of);
        let open = match query.never {
            None => pool.fresh_choice(),
            Some(_) => Cond::TRUE,
        };
        let states = query.incomplete(host);
        // By status from 1: the condition that the answer is this status or an earlier state.
        let mut reached = vec![open; *states.start() as usize];
        let mut value = pool.constant(*states.start());
        for state in *states.start() + 1..=*states.end() {
            let choice = pool.fresh_choice();
            let last = reached[reached.len() - 1];
            reached.push(pool.and(last, choice));
            let constant = pool.constant(state);
            value = pool.ite(reached[reached.len() - 1], constant, value);
        }
        reached.resize(3, Cond::FALSE);
        let complete = pool.constant(query.complete(host));
        let value = pool.ite(open, value, complete);
        self.out.answers.push(QueryAnswer {
            query: of,
            thread: here.thread,
            instr: here.pc,
            place: here.at.clone(),
            events: self.out.events.len(),
            guard,
            open,
            waiting: reached[1],
            queued: reached[2],
            for_ever: Cond::FALSE,
        });
        value
    }

    /// Adds the event of a mark.
    fn mark(
        &mut self,
        state: &mut UnrollState,
        here: &Here<'_>,
        addr: Option<&Expr>,
        mark: &Mark,
    ) -> Result<VisibleEffect, Reason> {
        let addr = addr.map(|addr| self.eval(state, addr, here.thread));
        let event = Event {
            addr: addr.as_ref().map(|a| a.0),
            ..here.event(mark.kind, state.guard, &mark.tags, mark.scope)
        };
        let id = self.push(event, state, here.at)?;
        addr.iter()
            .for_each(|(_, taint)| self.depend(id, taint, true));
        Ok(VisibleEffect::NONE)
    }

    /// Executes a read-modify-write of one access.
    fn rmw(
        &mut self,
        state: &mut UnrollState,
        here: &Here<'_>,
        op: &Op,
    ) -> Result<VisibleEffect, Reason> {
        let Op::Rmw {
            dst,
            addr,
            update,
            read,
            write,
        } = op
        else {
            unreachable!("it is called for read-modify-writes")
        };
        let (thread, instr) = (here.thread, here.pc);
        let addr = self.eval(state, addr, thread);
        let shows = self.shows(state.guard, here);
        let (reads, old, from_read) = self.read(state, here, read, &addr)?;
        if let (Update::When { .. }, Some(dst)) = (update, dst) {
            state.set(*dst, old, from_read.clone());
        }
        let found = (old, from_read.clone());
        let (new, taint, guard) = self.updated(state, thread, update, read.ty, write.ty, &found);
        let mut written = None;
        if guard != Cond::FALSE {
            let writes = self.write(state, here, write, [&addr, &(new, taint)], guard)?;
            written = Some((reads.start, writes.start)).filter(|_| reads.len() == 1);
            self.out.rmw.extend(
                reads
                    .zip(writes)
                    .map(|(r, w)| (EventId::new(r), EventId::new(w))),
            );
        }
        let loops = here.at.iterations().next().is_some() && self.program.host.is_none();
        if let Some(dst) = dst {
            state.set(*dst, old, from_read);
        }
        let (keeps, depends) =
            match loops && written.is_some() && !self.writing.contains(&(thread, instr)) {
                true => keeps(&mut self.out.pool, update, old, new, write.ty, guard),
                false => (Cond::FALSE, true),
            };
        let (changes, keeps) = (self.out.pool.not(keeps), self.out.pool.and(guard, keeps));
        if let (Some((read, write)), true) = (written, keeps != Cond::FALSE) {
            let (read, write) = (EventId::new(read), EventId::new(write));
            self.out.kept.push(PreservingRmw {
                thread,
                instr,
                read,
                write,
                depends,
            });
        }
        Ok(VisibleEffect {
            changes: self.out.pool.and(guard, changes),
            keeps,
            shows,
            ..VisibleEffect::NONE
        })
    }

    /// The value that a read-modify-write stores after it read `old`, with its dependencies; and
    /// the condition under which it stores it.
    fn updated(
        &mut self,
        state: &UnrollState,
        thread: ThreadId,
        update: &Update,
        read: Ty,
        write: Ty,
        old: &(TermId, Taint),
    ) -> (TermId, Taint, Cond) {
        let (old, from_read) = old;
        let guard = state.guard;
        match update {
            Update::When { cond, new } => {
                let (c, tc) = self.eval(state, cond, thread);
                let (v, tv) = self.eval(state, new, thread);
                let c = self.out.pool.non_zero(c);
                let guard = self.out.pool.and(guard, c);
                (v, union(&tv, &tc), guard)
            }
            Update::Exchange(e) => {
                let (v, t) = self.eval(state, e, thread);
                (v, t, guard)
            }
            Update::Apply(op, e) => {
                let (v, t) = self.eval(state, e, thread);
                let new = self.out.pool.bin(*op, write, *old, v);
                (new, union(&t, from_read), guard)
            }
            Update::CompareExchange { expected, new } => {
                let (x, tx) = self.eval(state, expected, thread);
                let (v, tv) = self.eval(state, new, thread);
                let pool = &mut self.out.pool;
                let x = pool.cast(read, x);
                let success = pool.cmp(program::CmpOp::Eq, read, *old, x);
                if self.options.failed_cas_write() {
                    let taint = union(&union(&tv, &tx), from_read);
                    (pool.ite(success, v, *old), taint, guard)
                } else {
                    let guard = pool.and(guard, success);
                    (v, union(&tv, &union(&tx, from_read)), guard)
                }
            }
        }
    }

    /// Executes a barrier: an arrival, a wait, or both.
    fn meet_barrier(
        &mut self,
        state: &mut UnrollState,
        here: &Here<'_>,
        b: &Barrier,
    ) -> Result<VisibleEffect, Reason> {
        let (thread, at) = (here.thread, here.at);
        let effect = state.guard;
        let named = self.barrier(state, b, thread)?;
        if b.action != BarrierAction::Wait {
            if self.may_have_arrived(state, named) {
                self.may_stop(state, here.pc)?;
                // The arrival is the next event.
                let event = EventId::new(self.out.events.len());
                self.waits(state, named, (thread, at.clone(), true), event)?;
            }
            let arrival = here.event(EventKind::Arrive, state.guard, &b.arrive, b.scope);
            let event = self.push(arrival, state, at)?;
            self.out.arrivals.push(GuardedArrival {
                event,
                guard: state.guard,
                at: named,
                place: at.clone(),
            });
        }
        if b.action != BarrierAction::Arrive {
            self.may_stop(state, here.pc)?;
            let event = EventId::new(self.out.events.len());
            self.waits(state, named, (thread, at.clone(), false), event)?;
            let wait = here.event(EventKind::Wait, state.guard, &b.wait, b.scope);
            self.push(wait, state, at)?;
        }
        Ok(VisibleEffect::meeting(effect))
    }

    /// The condition under which a read has to remain if iterations that contain it are left out.
    fn shows(&mut self, guard: Cond, here: &Here<'_>) -> Cond {
        let read = (here.thread, here.pc);
        if here.at.iterations().next().is_some() {
            self.out.looped.insert(read);
        }
        if self.racing.contains(&read) && !self.purpose.is_progress() {
            guard
        } else {
            Cond::FALSE
        }
    }

    /// A read-modify-write of 128 bits: it reads all pieces before it writes one. The first
    /// micro-op executes for all of them.
    fn whole_rmw(
        &mut self,
        state: &mut UnrollState,
        here: &Here<'_>,
    ) -> Result<VisibleEffect, Reason> {
        let program = self.program;
        let code = &program.thread(here.thread).code;
        if code[here.pc].element.at > 0 {
            return Ok(VisibleEffect::NONE);
        }
        let mut changes = self.shows(state.guard, here);
        let mut pieces = Vec::new();
        for pc in code[here.pc].element.siblings(here.pc) {
            let Op::Rmw {
                dst,
                addr,
                update: Update::When { cond, new },
                read,
                write,
            } = &code[pc].op
            else {
                unreachable!("a piece of an atomic is written if something holds of all of them")
            };
            let here = Here { pc, ..*here };
            let addr = self.eval(state, addr, here.thread);
            let (reads, old, from_read) = self.read(state, &here, read, &addr)?;
            dst.iter()
                .for_each(|dst| state.set(*dst, old, from_read.clone()));
            pieces.push((here, addr, reads, cond, new, write));
        }
        for (here, addr, reads, cond, new, write) in pieces {
            let ((c, tc), (v, tv)) = (
                self.eval(state, cond, here.thread),
                self.eval(state, new, here.thread),
            );
            let c = self.out.pool.non_zero(c);
            let guard = self.out.pool.and(state.guard, c);
            if guard != Cond::FALSE {
                let writes =
                    self.write(state, &here, write, [&addr, &(v, union(&tv, &tc))], guard)?;
                self.out.rmw.extend(
                    reads
                        .zip(writes)
                        .map(|(r, w)| (EventId::new(r), EventId::new(w))),
                );
                changes = self.out.pool.or(changes, guard);
            }
        }
        Ok(VisibleEffect::when(changes))
    }

    /// The barrier that an instruction of a thread names.
    pub(crate) fn barrier(
        &mut self,
        state: &UnrollState,
        b: &Barrier,
        thread: ThreadId,
    ) -> Result<Use, Reason> {
        let lanes = match &b.lanes {
            Some(mask) => {
                let mask = self.eval(state, mask, thread).0;
                let unknown = "a barrier of a warp with lanes that depend on a read";
                let mask = self
                    .out
                    .pool
                    .as_const(mask)
                    .ok_or_else(|| Reason::Unsupported(unknown.into()))?;
                self.program.named_by(thread, mask)
            }
            None => None,
        };
        let mut term = |e: &Expr| self.eval(state, e, thread).0;
        let naming = match &b.naming {
            BarrierNaming::Counted { id, count } => Naming::Counted {
                id: term(id),
                count: count.as_ref().map(&mut term),
            },
            BarrierNaming::Instance {
                instance,
                id,
                quorum,
            } => Naming::Instance {
                instance: *instance,
                id: id.as_ref().map(&mut term),
                quorum: quorum.as_ref().map(&mut term),
            },
        };
        Ok(Use {
            thread,
            group: BarrierGroup {
                domain: b.domain,
                lanes,
            },
            naming,
        })
    }

    /// Whether the thread may have arrived at that barrier without waiting there since.
    fn may_have_arrived(&mut self, state: &UnrollState, to: Use) -> bool {
        let Naming::Counted { id, .. } = to.naming else {
            return false;
        };
        let code = &self.program.thread(to.thread).code;
        let Unrolling {
            pool,
            arrivals,
            waits,
            events,
            ..
        } = &mut self.out;
        let mut same = |other: Use| {
            let Naming::Counted { id: x, .. } = other.naming else {
                return false;
            };
            (other.thread, other.group) == (to.thread, to.group)
                && pool.cmp(CmpOp::Eq, Ty::WORD, x, id) != Cond::FALSE
        };
        // If all threads of the group take part, this case is undefined.
        let Some(last) = arrivals
            .iter()
            .rev()
            .find(|a| same(a.at) && splits(code, events, a))
            .map(|a| a.event)
        else {
            return false;
        };
        let Some(since) = waits
            .iter()
            .find(|w| w.event > last && w.at.thread == to.thread && w.at.naming == to.naming)
        else {
            return true;
        };
        let passed = pool.and(since.reached, since.pass);
        let missed = pool.not(passed);
        pool.and(state.guard, missed) != Cond::FALSE
    }

    /// Lets a thread continue only if it passes a barrier.
    fn waits(
        &mut self,
        state: &mut UnrollState,
        at: Use,
        key: WaitKey,
        event: EventId,
    ) -> Result<(), Reason> {
        let reached = state.guard;
        let pass = match self.shared.get(&key) {
            _ if self.passing.contains(&key) => Cond::TRUE,
            Some(first) => {
                let pool = &mut self.out.pool;
                let choice = self.choices.entry(first.clone());
                *choice.or_insert_with(|| pool.fresh_choice())
            }
            None => self.out.pool.fresh_choice(),
        };
        if self.purpose.is_progress() {
            let blocked = self.out.pool.not(pass);
            state.guard = self.out.pool.and(reached, blocked);
            self.ends(state)?;
        }
        state.guard = self.out.pool.and(reached, pass);
        self.out.waits.push(GuardedWait {
            key,
            event,
            reached,
            pass,
            at,
        });
        Ok(())
    }

    /// Adds a read, one event for each cell. Returns these events, and the value with its
    /// dependencies.
    fn read(
        &mut self,
        state: &mut UnrollState,
        here: &Here<'_>,
        access: &Access,
        address: &(TermId, Taint),
    ) -> Result<(Range<usize>, TermId, Taint), Reason> {
        let first = self.out.events.len();
        let parts = self.cells(here);
        let ty = access.ty.piece(parts);
        let mut pieces = Vec::new();
        for part in 0..parts {
            let id = EventId::new(self.out.events.len());
            let addr = self.cell_address(address.0, ty, part);
            let value = self.out.pool.read(id, ty);
            let kind = (EventKind::Read, state.guard);
            let event = self.cell_event(here, access, kind, part, [addr, value])?;
            let known = self.out.pool.as_const(addr).filter(|_| event.parts == 1);
            let known = known.and_then(|a| {
                self.fixed
                    .value(self.program, self.memory, here.thread, a, ty)
            });
            pieces.push(known.map_or(value, |v| self.out.pool.constant(v)));
            self.push(event, state, here.at)?;
            self.depend(id, &address.1, true);
        }
        let events = first..self.out.events.len();
        let value = self.whole(access.ty, pieces);
        Ok((
            events.clone(),
            value,
            Taint::new(events.map(EventId::new).collect()),
        ))
    }

    /// Adds a write of a value, one event for each cell.
    fn write(
        &mut self,
        state: &mut UnrollState,
        here: &Here<'_>,
        access: &Access,
        operands: [&(TermId, Taint); 2],
        guard: Cond,
    ) -> Result<Range<usize>, Reason> {
        let first = self.out.events.len();
        let parts = self.cells(here);
        let ty = access.ty.piece(parts);
        let [address, stored] = operands;
        let stored_value = self.out.pool.cast(access.ty, stored.0);
        for part in 0..parts {
            let addr = self.cell_address(address.0, ty, part);
            let value = self.piece(access.ty, stored_value, part, parts);
            let kind = (EventKind::Write, guard);
            let event = self.cell_event(here, access, kind, part, [addr, value])?;
            let id = self.push(event, state, here.at)?;
            self.depend(id, &address.1, true);
            self.depend(id, &stored.1, false);
        }
        Ok(first..self.out.events.len())
    }

    /// The event of one cell of an access, with its address and value.
    fn cell_event(
        &self,
        here: &Here<'_>,
        access: &Access,
        kind: (EventKind, Cond),
        part: u8,
        terms: [TermId; 2],
    ) -> Result<Event, Reason> {
        let (before, all) = self.among(here, access.ty);
        let [addr, value] = terms;
        Ok(Event {
            addr: Some(addr),
            value: Some(value),
            ty: access.ty.piece(self.cells(here)),
            part: before + part,
            parts: all,
            ..here.event(kind.0, kind.1, &self.half(&access.tags)?, access.scope)
        })
    }

    /// The number of cells of an access.
    fn cells(&self, here: &Here<'_>) -> u8 {
        self.program.thread(here.thread).code[here.pc].element.cells
    }

    /// How many cells of the access precede those of this micro-op, and how many the access has. A
    /// scalar of 128 bits has several micro-ops. They are one access or, under `b128 = split`, one
    /// access per 64 bits unless it is an atomic.
    fn among(&self, here: &Here<'_>, ty: Ty) -> (u8, u8) {
        let instr = &self.program.thread(here.thread).code[here.pc];
        let Element {
            at,
            of,
            cells,
            whole,
        } = instr.element;
        let is_atomic = matches!(instr.op, Op::Rmw { .. });
        let joined = match (whole, self.options.b128_split() && !is_atomic) {
            (false, _) => 1,
            (true, false) => of,
            (true, true) => (64 / ty.bits).max(1),
        };
        (at % joined * cells, joined * cells)
    }

    /// The address of a cell of an access.
    fn cell_address(&mut self, addr: TermId, ty: Ty, part: u8) -> TermId {
        match i64::from(part) * i64::from(ty.bytes()) {
            0 => addr,
            offset => {
                let offset = self.out.pool.constant(offset);
                self.out.pool.bin(BinOp::Add, Ty::U64, addr, offset)
            }
        }
    }

    /// The value that consists of these pieces, the lowest bits first.
    fn whole(&mut self, ty: Ty, pieces: Vec<TermId>) -> TermId {
        if let [value] = pieces[..] {
            return value;
        }
        let unsigned = Ty {
            signed: false,
            ..ty
        };
        let bits = i64::from(ty.bits) / pieces.len() as i64;
        let pool = &mut self.out.pool;
        let mut whole = pieces[0];
        for (shift, &piece) in (1..).map(|k| k * bits).zip(&pieces[1..]) {
            let shift = pool.constant(shift);
            let high = pool.bin(BinOp::Shl, unsigned, piece, shift);
            whole = pool.bin(BinOp::Or, unsigned, whole, high);
        }
        let whole = pool.cast(ty, whole);
        self.out.pieces.insert(whole, pieces);
        whole
    }

    /// A piece of a value. If the value was read in such pieces, the result depends only on its own
    /// piece.
    fn piece(&mut self, ty: Ty, value: TermId, part: u8, parts: u8) -> TermId {
        if parts == 1 {
            return value;
        }
        if let Some(pieces) = self
            .out
            .pieces
            .get(&value)
            .filter(|p| p.len() == usize::from(parts))
        {
            return pieces[usize::from(part)];
        }
        let pool = &mut self.out.pool;
        let shift = pool.constant(i64::from(ty.bits / parts) * i64::from(part));
        let shifted = pool.bin(
            BinOp::Shr,
            Ty {
                signed: false,
                ..ty
            },
            value,
            shift,
        );
        pool.cast(ty.piece(parts), shifted)
    }

    /// The tags of an RMW half under the option `red`.
    fn half(&self, tags: &Tags) -> Result<Tags, Reason> {
        if !tags.has(Tag::Reduction) {
            return Ok(*tags);
        }
        if self.options.red_atom() {
            return Ok(tags.without(&[Tag::Reduction]));
        }
        if tags.has(Tag::Acquire) {
            return Err(Reason::NotInModel(
                "`red` with acquire order (the option `red = atom` gives it a meaning)".into(),
            ));
        }
        Ok(*tags)
    }

    fn depend(&mut self, event: EventId, on: &Taint, address: bool) {
        let list = if address {
            &mut self.out.addr
        } else {
            &mut self.out.data
        };
        list.extend(on.iter().map(|&r| (r, event)));
    }
}

/// Whether an arrival at a barrier without turns has a separate wait.
fn splits(code: &[Instr], events: &[Event], a: &GuardedArrival) -> bool {
    let barrier = code[events[a.event.index()].instr].op.barrier();
    barrier.is_some_and(|b| b.action == BarrierAction::Arrive && !b.takes_turns())
}

impl UnrollState {
    pub(crate) fn set(&mut self, reg: RegId, value: TermId, taint: Taint) {
        self.regs[reg.0 as usize] = value;
        self.taints[reg.0 as usize] = taint;
    }
}
