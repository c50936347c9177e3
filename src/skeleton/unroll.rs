//! Unrolling a thread into guarded events.
//!
//! A thread is executed symbolically, all paths at once. States that reach the same [`Position`] are merged: their
//! guards by disjunction, each register by a choice between its values. An iteration of a loop that executes no write
//! and no barrier and leaves every register that is still needed unchanged has no effect; one such iteration stands
//! for all that could follow, and the thread *spins* there. Other iterations are continued up to the bound, where the
//! thread is *cut*.
//!
//! # Invariants
//! - Events of a thread are created in an order that contains program order.
//! - At every point of a thread the guards of done, spinning, cut and waiting states are disjoint and cover everything.
//! - Every state has a value for every register: a register set on one side of a branch keeps, on the other side, the
//!   value it had before.
//! - Unrolled for questions about progress ([`Purpose::Progress`]), threads end in further ways (see
//!   [`super::progress`]); otherwise nothing here depends on them.
//! # Sources
//! - Iterations without effect: specification of liveness in the style of Dartagnan's spin-loop detection.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::event::{Event, EventKind};
use super::loops::{Loops, Position, Step};
use super::memory::Memory;
use super::pool::{Cond, Pool, TermId};
use super::progress::{Purpose, Repeat, Spin};
use super::{BuildError, MAX_EVENTS, MAX_POOL, MAX_STEPS, MAX_VALUE_DEPTH, Options};
use crate::program::{BarrierAction, BarrierNaming, Expr, Op, Program, RegId, Scope, Tags, ThreadId, Ty, Update};
use crate::rel::EventId;

/// Read events that a value depends on in the eyes of the syntax.
pub(super) type Taint = Rc<std::collections::BTreeSet<EventId>>;

/// Identifies one dynamic instance of a wait, across repeated unrollings of the same thread.
pub(super) type WaitKey = (ThreadId, Position);

/// An arrival at a barrier, as unrolled.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) event: EventId,
    pub(super) thread: ThreadId,
    pub(super) guard: Cond,
    pub(super) naming: Naming,
    pub(super) group: Group,
}

/// A wait at a barrier, as unrolled.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) key: WaitKey,
    pub(super) event: EventId,
    pub(super) thread: ThreadId,
    /// Guard of the instruction: the thread wants to pass.
    pub(super) reached: Cond,
    /// Whether it passes: a choice, or true where that is known.
    pub(super) pass: Cond,
    pub(super) naming: Naming,
    pub(super) group: Group,
}

/// Which threads a barrier can bring together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) domain: Scope,
    /// Of a warp: the lanes named.
    pub(super) lanes: Option<u32>,
}

/// [`BarrierNaming`] with its operands evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Counted { id: TermId, count: Option<TermId> },
    Instance { instance: i64, id: Option<TermId>, quorum: Option<TermId> },
}

/// How a thread's states end.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// Ran to its end.
    pub(super) done: Cond,
    /// Cut at the loop bound.
    pub(super) cut: Cond,
    /// In an iteration without effect.
    pub(super) spinning: Cond,
    /// Final value of each register where done; for questions about progress, wherever the thread ends.
    pub(super) regs: Vec<TermId>,
    /// What questions about progress ask about.
    pub(super) progress: Endings,
}

/// The further ways in which a thread can end, for questions about progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Endings {
    /// Never run again, by place.
    pub(super) stopped: Vec<Cond>,
    /// In an iteration without effect, by iteration.
    pub(super) spins: Vec<Spin>,
    /// In blocks of iterations that repeat.
    pub(super) repeats: Vec<Repeat>,
    /// The states in which the thread ends, merged, if their registers are asked for.
    at_end: Option<State>,
}

/// Everything the unrolling produces.
#[derive(Default)]
pub(super) struct Unrolled {
    pub(super) pool: Pool,
    pub(super) events: Vec<Event>,
    pub(super) rmw: Vec<(EventId, EventId)>,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) waits: Vec<Wait>,
    pub(super) endings: Vec<Ending>,
    /// Syntactic dependencies, if the options ask for them: address, data, control.
    pub(super) addr: Vec<(EventId, EventId)>,
    pub(super) data: Vec<(EventId, EventId)>,
    pub(super) ctrl: Vec<(EventId, EventId)>,
    pub(super) has_loops: bool,
    /// For questions about progress: what choices of this module demand, and the place of every event of a thread.
    pub(super) constraints: Vec<Cond>,
    pub(super) places: Vec<(EventId, Position)>,
    /// For questions about progress: the choices of weak compare-exchanges to fail spuriously, with their places.
    pub(super) spurious: Vec<(ThreadId, Position, Cond)>,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) guard: Cond,
    pub(super) regs: Vec<TermId>,
    taints: Vec<Taint>,
    ctrl: Taint,
    /// Whether nothing was executed since the thread could last stop.
    fresh: bool,
}

/// What is remembered of a loop iteration to decide whether it had an effect.
pub(super) struct Iteration {
    pub(super) regs: Option<Vec<TermId>>,
    effect: Cond,
}

/// The program-wide part of unrolling; threads are added one by one.
pub(super) struct Unroller<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory,
    pub(super) options: Options,
    pub(super) bound: u32,
    /// Waits that are known to let their thread pass.
    pub(super) passing: &'a FxHashSet<WaitKey>,
    pub(super) purpose: Purpose,
    pub(super) out: Unrolled,
    /// Ways in which the present thread ends.
    pub(super) endings: Endings,
}

impl Unroller<'_> {
    /// Adds the events of a thread. `observed`: the registers needed at its end.
    pub(super) fn thread(&mut self, id: ThreadId, observed: &[bool]) -> Result<(), BuildError> {
        let program = self.program;
        let thread = program.thread(id);
        let loops = Loops::new(thread, observed);
        self.out.has_loops |= loops.any();
        let no_taint = Taint::default();
        let regs: Vec<TermId> = thread
            .regs
            .iter()
            .map(|r| {
                let v = self.memory.initial(program, &r.init, Some(id));
                self.out.pool.constant(v)
            })
            .collect();
        let taints = vec![no_taint.clone(); regs.len()];
        let mut start = State { guard: Cond::TRUE, taints, regs, ctrl: no_taint, fresh: false };
        if !thread.code.is_empty() {
            self.may_stop(&mut start)?;
        }
        let mut end: Option<State> = None;
        let mut ending = Ending {
            done: Cond::FALSE,
            cut: Cond::FALSE,
            spinning: Cond::FALSE,
            regs: Vec::new(),
            progress: Endings::default(),
        };
        let mut iterations: FxHashMap<Vec<u32>, Iteration> = FxHashMap::default();
        let mut pending: BTreeMap<Position, State> = BTreeMap::new();
        let last = thread.code.len();
        if last == 0 {
            end = Some(start);
        } else {
            pending.insert(loops.start(0), start);
        }
        let mut steps = 0usize;
        while let Some((at, mut state)) = pending.pop_first() {
            steps += 1;
            if steps > MAX_STEPS {
                return Err(BuildError::TooManySteps);
            }
            if self.out.pool.size() > MAX_POOL {
                return Err(BuildError::TooManyParts);
            }
            let pc = at.pc();
            for iteration in at.iterations() {
                let record =
                    iterations.entry(iteration.to_vec()).or_insert(Iteration { regs: None, effect: Cond::FALSE });
                if iteration[iteration.len() - 2] as usize == pc && record.regs.is_none() {
                    record.regs = Some(state.regs.clone());
                }
            }
            let mut jumps: Vec<(Cond, usize)> = Vec::new();
            let instr = &thread.code[pc];
            match &instr.op {
                Op::Branch { cond, target } => {
                    let (value, taint) = self.eval(&state, cond, id);
                    let taken = self.out.pool.non_zero(value);
                    if !taken.is_const() || !taint.is_empty() {
                        state.ctrl = union(&state.ctrl, &taint);
                    }
                    let pool = &mut self.out.pool;
                    let fallthrough = pool.not(taken);
                    jumps.push((pool.and(state.guard, taken), *target));
                    jumps.push((pool.and(state.guard, fallthrough), pc + 1));
                }
                op => {
                    if op.is_visible() {
                        self.may_stop(&mut state)?;
                    }
                    let effect = self.execute(&mut state, op, id, pc, &at)?;
                    for iteration in at.iterations() {
                        let record = iterations.get_mut(iteration).expect("recorded above");
                        record.effect = self.out.pool.or(record.effect, effect);
                    }
                    jumps.push((state.guard, pc + 1));
                }
            }
            jumps.retain(|(guard, _)| *guard != Cond::FALSE);
            let mut state = Some(state);
            for (i, &(guard, target)) in jumps.iter().enumerate() {
                // Threads have many registers and few branches: only a branch copies them.
                let last_jump = i + 1 == jumps.len();
                let mut next =
                    if last_jump { state.take() } else { state.clone() }.expect("taken by the last jump");
                next.guard = guard;
                if target == last {
                    self.merge(&mut end, next)?;
                    continue;
                }
                let to = match loops.step(&at, target) {
                    Step::Forward(to) => to,
                    Step::Back { iteration, next: count, to, at_header } => {
                        let idle = self.without_effect(&iterations[&iteration], &next, &loops, target, at_header);
                        let pool = &mut self.out.pool;
                        let idle = pool.and(next.guard, idle);
                        ending.spinning = pool.or(ending.spinning, idle);
                        let busy = pool.not(idle);
                        let going_on = pool.and(next.guard, busy);
                        if self.purpose.is_progress() {
                            next.guard = idle;
                            self.spins(&next, &iteration, target, id)?;
                            next.guard = going_on;
                            if at_header {
                                self.repeats(&mut next, &iteration, &iterations, &loops, id)?;
                            }
                        } else {
                            next.guard = going_on;
                        }
                        if count >= self.bound {
                            ending.cut = self.out.pool.or(ending.cut, next.guard);
                            self.ends(&next)?;
                            continue;
                        }
                        if next.guard == Cond::FALSE {
                            continue;
                        }
                        to
                    }
                };
                let mut slot = pending.remove(&to);
                self.merge(&mut slot, next)?;
                pending.insert(to, slot.expect("merged"));
            }
        }
        if let Some(state) = end {
            ending.done = state.guard;
            self.ends(&state)?;
            ending.regs = state.regs;
        } else {
            ending.regs = vec![self.out.pool.constant(0); thread.regs.len()];
        }
        ending.progress = std::mem::take(&mut self.endings);
        if let Some(state) = ending.progress.at_end.take() {
            ending.regs = state.regs;
        }
        self.out.endings.push(ending);
        Ok(())
    }

    /// Notes the registers of a state in which the thread ends, if somebody asks for them.
    pub(super) fn ends(&mut self, state: &State) -> Result<(), BuildError> {
        if !matches!(self.purpose, Purpose::Progress { registers: true, .. }) || state.guard == Cond::FALSE {
            return Ok(());
        }
        let mut slot = self.endings.at_end.take();
        self.merge(&mut slot, state.clone())?;
        self.endings.at_end = slot;
        Ok(())
    }

    /// A place where a thread may stop for ever, if it executed anything since the last one.
    fn may_stop(&mut self, state: &mut State) -> Result<(), BuildError> {
        if !matches!(self.purpose, Purpose::Progress { stops: true, .. })
            || state.fresh
            || state.guard == Cond::FALSE
        {
            return Ok(());
        }
        let pool = &mut self.out.pool;
        let stop = pool.fresh_choice();
        self.out.constraints.push(pool.implies(stop, state.guard));
        let here = pool.and(state.guard, stop);
        let on = pool.not(stop);
        let on = pool.and(state.guard, on);
        self.endings.stopped.push(stop);
        state.guard = here;
        self.ends(state)?;
        (state.guard, state.fresh) = (on, true);
        Ok(())
    }

    /// Merges a state into the one that waits at the same position.
    fn merge(&mut self, slot: &mut Option<State>, new: State) -> Result<(), BuildError> {
        let Some(old) = slot else {
            *slot = Some(new);
            return Ok(());
        };
        let pool = &mut self.out.pool;
        let guard = pool.or(old.guard, new.guard);
        let choose_new = pool.restrict(new.guard, guard);
        for (o, n) in old.regs.iter_mut().zip(&new.regs) {
            *o = pool.ite(choose_new, *n, *o);
            if pool.depth(*o) > MAX_VALUE_DEPTH {
                return Err(BuildError::TooDeepValue);
            }
        }
        for (o, n) in old.taints.iter_mut().zip(&new.taints) {
            *o = union(o, n);
        }
        old.ctrl = union(&old.ctrl, &new.ctrl);
        old.fresh &= new.fresh;
        old.guard = guard;
        Ok(())
    }

    /// When the iteration that ends in `state` had no effect.
    fn without_effect(
        &mut self,
        iteration: &Iteration,
        state: &State,
        loops: &Loops,
        header: usize,
        at_header: bool,
    ) -> Cond {
        let (Some(before), true) = (&iteration.regs, at_header) else {
            return Cond::FALSE;
        };
        let pool = &mut self.out.pool;
        let mut idle = pool.not(iteration.effect);
        for (i, (&old, &new)) in before.iter().zip(&state.regs).enumerate() {
            if loops.is_live(header, RegId(i as u16)) {
                let same = pool.cmp(crate::program::CmpOp::Eq, Ty::WORD, old, new);
                idle = pool.and(idle, same);
            }
        }
        idle
    }

    fn eval(&mut self, state: &State, e: &Expr, thread: ThreadId) -> (TermId, Taint) {
        match e {
            Expr::Const(v) => (self.out.pool.constant(*v), Taint::default()),
            Expr::Reg(r) => (state.regs[r.0 as usize], state.taints[r.0 as usize].clone()),
            Expr::Address(loc) => {
                let cell = self.memory.cell_of(self.program, *loc, 0, Some(thread));
                let address = cell.map_or(0, |c| self.memory.cell(c).address);
                (self.out.pool.constant(address), Taint::default())
            }
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
        }
    }

    fn push(&mut self, event: Event, state: &mut State, at: &Position) -> Result<EventId, BuildError> {
        if self.out.events.len() >= MAX_EVENTS {
            return Err(BuildError::TooManyEvents);
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

    /// Executes one instruction other than a branch. Says when it has an effect in the sense of spin loops: when it
    /// writes, or takes part in a barrier.
    fn execute(
        &mut self,
        state: &mut State,
        op: &Op,
        thread: ThreadId,
        pc: usize,
        at: &Position,
    ) -> Result<Cond, BuildError> {
        let event = |kind, guard, tags: &Tags, scope| Event {
            kind,
            thread: Some(thread),
            instr: pc,
            guard,
            tags: tags.clone(),
            scope,
            addr: None,
            value: None,
            ty: Ty::WORD,
        };
        match op {
            Op::Branch { .. } => unreachable!("branches are steps"),
            Op::Assign { dst, value } => {
                let (v, t) = self.eval(state, value, thread);
                if self.out.pool.depth(v) > MAX_VALUE_DEPTH {
                    return Err(BuildError::TooDeepValue);
                }
                state.set(*dst, v, t);
                Ok(Cond::FALSE)
            }
            Op::Load { dst, addr, access } => {
                let (a, ta) = self.eval(state, addr, thread);
                let mut e = event(EventKind::Read, state.guard, &access.tags, access.scope);
                let id = EventId::new(self.out.events.len());
                let value = self.out.pool.read(id, access.ty);
                (e.addr, e.value, e.ty) = (Some(a), Some(value), access.ty);
                self.push(e, state, at)?;
                self.depend(id, &ta, true);
                state.set(*dst, value, Taint::new([id].into()));
                Ok(Cond::FALSE)
            }
            Op::Store { addr, value, access } => {
                let (a, ta) = self.eval(state, addr, thread);
                let (v, tv) = self.eval(state, value, thread);
                let mut e = event(EventKind::Write, state.guard, &access.tags, access.scope);
                let v = self.out.pool.cast(access.ty, v);
                (e.addr, e.value, e.ty) = (Some(a), Some(v), access.ty);
                let id = self.push(e, state, at)?;
                self.depend(id, &ta, true);
                self.depend(id, &tv, false);
                Ok(state.guard)
            }
            Op::Rmw { .. } if self.options.rmw_single => Err(BuildError::SingleEventRmw),
            Op::Rmw { dst, addr, update, read, write } => {
                let (a, ta) = self.eval(state, addr, thread);
                let mut r = event(EventKind::Read, state.guard, &self.half(&read.tags)?, read.scope);
                let r_id = EventId::new(self.out.events.len());
                let old = self.out.pool.read(r_id, read.ty);
                (r.addr, r.value, r.ty) = (Some(a), Some(old), read.ty);
                self.push(r, state, at)?;
                self.depend(r_id, &ta, true);
                let from_read = Taint::new([r_id].into());
                let mut guard = state.guard;
                let (new, taint) = match update {
                    Update::When { cond, new } => {
                        if let Some(dst) = dst {
                            state.set(*dst, old, from_read.clone());
                        }
                        let (c, tc) = self.eval(state, cond, thread);
                        let (v, tv) = self.eval(state, new, thread);
                        let c = self.out.pool.non_zero(c);
                        guard = self.out.pool.and(guard, c);
                        (v, union(&tv, &tc))
                    }
                    Update::Exchange(e) => self.eval(state, e, thread),
                    Update::Apply(op, e) => {
                        let (v, t) = self.eval(state, e, thread);
                        (self.out.pool.bin(*op, write.ty, old, v), union(&t, &from_read))
                    }
                    Update::CompareExchange { expected, new } => {
                        let (x, tx) = self.eval(state, expected, thread);
                        let (v, tv) = self.eval(state, new, thread);
                        let pool = &mut self.out.pool;
                        let x = pool.cast(read.ty, x);
                        let success = pool.cmp(crate::program::CmpOp::Eq, read.ty, old, x);
                        if self.options.failed_cas_write {
                            let taint = union(&union(&tv, &tx), &from_read);
                            (pool.ite(success, v, old), taint)
                        } else {
                            guard = pool.and(guard, success);
                            (v, union(&tv, &union(&tx, &from_read)))
                        }
                    }
                };
                if guard != Cond::FALSE {
                    let mut w = event(EventKind::Write, guard, &self.half(&write.tags)?, write.scope);
                    let new = self.out.pool.cast(write.ty, new);
                    (w.addr, w.value, w.ty) = (Some(a), Some(new), write.ty);
                    let w_id = self.push(w, state, at)?;
                    self.depend(w_id, &ta, true);
                    self.depend(w_id, &taint, false);
                    self.out.rmw.push((r_id, w_id));
                }
                if let Some(dst) = dst {
                    state.set(*dst, old, from_read);
                }
                Ok(guard)
            }
            Op::Fence { tags, scope } => {
                self.push(event(EventKind::Fence, state.guard, tags, *scope), state, at)?;
                Ok(Cond::FALSE)
            }
            Op::Call(_) | Op::Enqueue(_) => Ok(Cond::FALSE),
            // A status may be any, but an event that completes is not asked about in vain for ever.
            Op::Spurious { dst } | Op::Status { dst, .. } => {
                let choice = self.out.pool.fresh_choice();
                if self.purpose.is_progress() {
                    self.out.spurious.push((thread, at.clone(), choice));
                }
                let value = self.out.pool.truth(choice);
                state.set(*dst, value, Taint::default());
                Ok(Cond::FALSE)
            }
            Op::Barrier(b) => {
                let effect = state.guard;
                let group = Group { domain: b.domain, lanes: b.lanes };
                let mut term = |e: &Expr| self.eval(state, e, thread).0;
                let naming = match &b.naming {
                    BarrierNaming::Counted { id, count } => {
                        Naming::Counted { id: term(id), count: count.as_ref().map(&mut term) }
                    }
                    BarrierNaming::Instance { instance, id, quorum } => Naming::Instance {
                        instance: *instance,
                        id: id.as_ref().map(&mut term),
                        quorum: quorum.as_ref().map(&mut term),
                    },
                };
                if b.action != BarrierAction::Wait {
                    let id = self.push(event(EventKind::Arrive, state.guard, &b.arrive, b.scope), state, at)?;
                    self.out.arrivals.push(Arrival { event: id, thread, guard: state.guard, naming, group });
                }
                if b.action != BarrierAction::Arrive {
                    self.may_stop(state)?;
                    let reached = state.guard;
                    let key = (thread, at.clone());
                    let pass = if self.passing.contains(&key) { Cond::TRUE } else { self.out.pool.fresh_choice() };
                    let guard = self.out.pool.and(reached, pass);
                    let id = self.push(event(EventKind::Wait, guard, &b.wait, b.scope), state, at)?;
                    if self.purpose.is_progress() {
                        let blocked = self.out.pool.not(pass);
                        state.guard = self.out.pool.and(reached, blocked);
                        self.ends(state)?;
                    }
                    self.out.waits.push(Wait { key, event: id, thread, reached, pass, naming, group });
                    state.guard = guard;
                }
                Ok(effect)
            }
        }
    }

    /// The tags of an RMW half under the option `red`.
    fn half(&self, tags: &Tags) -> Result<Tags, BuildError> {
        if !tags.has("RED") {
            return Ok(tags.clone());
        }
        if self.options.red_atom {
            return Ok(Tags::of(&tags.iter().filter(|t| *t != "RED").collect::<Vec<_>>()));
        }
        if tags.has("ACQ") {
            return Err(BuildError::AcquiringReduction);
        }
        Ok(tags.clone())
    }

    fn depend(&mut self, event: EventId, on: &Taint, address: bool) {
        let list = if address { &mut self.out.addr } else { &mut self.out.data };
        list.extend(on.iter().map(|&r| (r, event)));
    }
}

impl State {
    fn set(&mut self, reg: RegId, value: TermId, taint: Taint) {
        self.regs[reg.0 as usize] = value;
        self.taints[reg.0 as usize] = taint;
    }
}

fn union(a: &Taint, b: &Taint) -> Taint {
    if b.is_empty() || Rc::ptr_eq(a, b) {
        a.clone()
    } else if a.is_empty() {
        b.clone()
    } else {
        Rc::new(a.union(b).copied().collect())
    }
}
