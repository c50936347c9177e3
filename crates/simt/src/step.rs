//! The machine: executes one step of one thread, and all actions that follow without a choice.
//!
//! # Invariants
//! - A step that returns [`StepHalt`] leaves its state inconsistent: callers step copies.
//! - [`Machine::settle`] executes everything that commutes with every step of every other thread.
//!   That covers arithmetic, branches, fences that only join knowledge, arrivals whose phase does
//!   not depend on the order of arrival, and completed barriers. No outcome depends on their time.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use super::agents::Await;
use super::barrier::{BarrierStep, Barriers, arrival_commutes};
use super::choice::{Chooser, Script, Tape};
use super::code::{Access, Act, Code, Fence, eval, new_value};
use super::fingerprint::Hasher128;
use super::host::HostProgress;
use super::layer::Layers;
use super::meetings::{BROUGHT, beside, meetings, names_itself};
use super::memory::{Age, At, Backend, Context, MemoryAccess};
use super::record::{Log, RunEvent};
use super::state::MachineState;
use super::thread::{ThreadState, ThreadStatus, threads};
use super::{FaultKind, Result, StepHalt};
use program::{Attendance, Barrier, BarrierAction, Expr, Op, RegId, ThreadId, Ty, Update};

/// The number of steps without access to memory after which a thread counts as lost; see
/// [`ThreadStatus::Lost`].
const MAX_LOCAL_STEPS: usize = 4_000;

/// A number of groups of asynchronous operations that is larger than any wait may leave pending.
const MOST_GROUPS: u32 = 1 << 16;

/// A pick of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) thread: usize,
    /// Whether to bind an instruction before its turn, instead of executing the next one.
    pub(super) early: bool,
}

/// A program, a memory and a scheduler layer.
pub(super) struct Machine<'a, B> {
    pub(super) code: &'a Code,
    pub(super) memory: B,
    pub(super) layer: Layers,
    /// Whether commands wait for a flush.
    pub(super) lazy: bool,
    /// Whether fences and barriers are steps of the scheduler: threads may stop before them.
    pub(super) patient: bool,
}

impl<B: Backend> Machine<'_, B> {
    /// The state before the first step.
    pub(super) fn start(&self, log: &mut dyn Log) -> Result<MachineState<B>> {
        let threads = threads(self.code);
        let layer = self.layer.start(self.code, &threads);
        let memory = self.memory.start(self.code);
        let host = HostProgress::new(self.code);
        let mut state = MachineState {
            threads,
            barriers: Barriers::default(),
            memory,
            layer,
            host,
        };
        self.start_host(&mut state);
        let mut woken = Vec::new();
        self.advance(&mut state, log, &mut woken);
        let all = (0..state.threads.len()).rev().collect();
        self.settle(&mut state, all, log)?;
        Ok(state)
    }

    /// The picks that the scheduler has. Not every pick has a successor.
    pub(super) fn actions(&self, state: &MachineState<B>) -> Vec<Action> {
        let mut actions = Vec::new();
        for thread in 0..state.threads.len() {
            let both = [
                Action {
                    thread,
                    early: false,
                },
                Action {
                    thread,
                    early: true,
                },
            ];
            actions.extend(
                both.into_iter()
                    .take(1 + usize::from(self.binds()))
                    .filter(|&a| self.may(state, a)),
            );
        }
        actions
    }

    /// Whether the scheduler may pick that.
    pub(super) fn may(&self, state: &MachineState<B>, action: Action) -> bool {
        let t = action.thread;
        let Some(status) = state.threads.get(t).map(|thread| thread.status) else {
            return false;
        };
        self.layer
            .may_step(self.code, &state.layer, &state.threads, t)
            && if action.early {
                matches!(status, ThreadStatus::Running | ThreadStatus::Waiting)
                    && self
                        .memory
                        .may_bind_early(self.code, &state.memory, &state.threads, t)
            } else {
                status == ThreadStatus::Running && self.ready(state, t)
            }
    }

    /// Whether asynchronous operations let a thread go on.
    pub(super) fn ready(&self, state: &MachineState<B>, t: usize) -> bool {
        let pc = state.threads[t].pc;
        self.code
            .begins(t, pc)
            .all(|(a, _)| state.threads[a].is_over())
            && self.code.threads[t]
                .acts
                .get(pc)
                .is_none_or(|act| match act {
                    Act::Mark {
                        mark: Fence::Await(wait),
                        ..
                    } => self.awaited(state, t, *wait).all(|a| {
                        let agent = &state.threads[a];
                        agent.is_over()
                            || wait.reads
                                && !self.code.threads[a].acts[agent.pc..]
                                    .iter()
                                    .any(|act| act.read().is_some() && act.write().is_none())
                    }),
                    Act::Mark {
                        mark: Fence::GridWait,
                        ..
                    } => state.host.may_pass(self.code, t),
                    _ => true,
                })
    }

    /// The agents that a thread's wait for groups is about.
    fn awaited(
        &self,
        state: &MachineState<B>,
        t: usize,
        wait: Await,
    ) -> impl Iterator<Item = usize> {
        self.code
            .all_agents()
            .filter(move |(u, a)| {
                a.owner == t && a.group == Some(wait.group) && state.threads[*u].age > wait.pending
            })
            .map(|(u, _)| u)
    }

    /// Begins the agents of a thread's next instruction.
    fn begin(&self, state: &mut MachineState<B>, at: At, woken: &mut Vec<usize>) -> usize {
        let mut next = at.instr;
        for (a, agent) in self.code.begins(at.thread, at.instr) {
            next = agent.instr.end;
            let regs = state.threads[at.thread].regs.clone();
            let after: Vec<usize> = agent
                .tells
                .iter()
                .copied()
                .filter(|&b| !state.threads[b].is_over())
                .collect();
            let status = if after.is_empty() {
                ThreadStatus::Running
            } else {
                ThreadStatus::Held
            };
            let clock = state.threads[a].clock;
            state.threads[a] = ThreadState {
                pc: 0,
                status,
                clock,
                regs,
                brought: Vec::new(),
                age: 0,
                after,
            };
            self.memory.begin(&mut state.memory, at.thread, a);
            if status == ThreadStatus::Running {
                self.memory.gather(&mut state.memory, &agent.tells, a);
                woken.push(a);
            }
        }
        next
    }

    /// An agent has ended: agents that waited for it may go on.
    fn ended(&self, state: &mut MachineState<B>, t: usize, owner: usize, woken: &mut Vec<usize>) {
        self.memory.ended(&mut state.memory, t);
        for (a, agent) in self.code.all_agents() {
            let thread = &mut state.threads[a];
            if thread.status == ThreadStatus::Held && thread.after.contains(&t) {
                thread.after.retain(|u| *u != t);
                if thread.after.is_empty() {
                    thread.status = ThreadStatus::Running;
                    self.memory.gather(&mut state.memory, &agent.tells, a);
                    woken.push(a);
                }
            }
        }
        woken.push(owner);
    }

    /// Executes a pick and its consequences; returns the age of the values that it read.
    pub(super) fn step(
        &self,
        state: &mut MachineState<B>,
        action: Action,
        chooser: &mut dyn Chooser,
        log: &mut dyn Log,
    ) -> Result<Age> {
        let mut cx = Context {
            code: self.code,
            chooser,
            log,
            age: Age::New,
        };
        let mut woken = Vec::new();
        if action.early {
            self.memory
                .bind_early(&mut cx, &mut state.memory, &state.threads, action.thread)?;
        } else {
            self.execute(state, action.thread, &mut cx, &mut woken)?;
            woken.push(action.thread);
        }
        let age = cx.age;
        self.settle(state, woken, log)?;
        Ok(age)
    }

    /// Every way of executing a pick: the choices, the next state or the halt, and the events.
    pub(super) fn ways(
        &self,
        state: &MachineState<B>,
        action: Action,
    ) -> impl Iterator<Item = (Vec<u32>, Result<MachineState<B>>, Vec<RunEvent>)> {
        let mut script = Some(Script::default());
        std::iter::from_fn(move || {
            let choices = script.as_mut()?;
            let (mut next, mut events) = (state.clone(), Vec::new());
            choices.rewind();
            let result = self
                .step(&mut next, action, choices, &mut events)
                .map(|_| next);
            let answers = choices.taken();
            if !choices.advance() {
                script = None;
            }
            Some((answers, result, events))
        })
    }

    /// Like [`Machine::step`], but if the choices are not possible, returns `false` and leaves the
    /// state as it is.
    pub(super) fn attempt(
        &self,
        state: &mut MachineState<B>,
        action: Action,
        chooser: &mut dyn Chooser,
        log: &mut dyn Log,
    ) -> Result<bool> {
        if self.binds() || self.memory.may_refuse() {
            let mut next = state.clone();
            let done = possible(self.step(&mut next, action, chooser, log))?;
            if done {
                *state = next;
            }
            return Ok(done);
        }
        // Without early binds, only accesses are ever refused. They change one location and the
        // knowledge of one thread.
        let t = action.thread;
        let thread = state.threads[t].clone();
        let place = self
            .code
            .touched(&self.code.threads[t].acts[thread.pc], &thread.regs);
        let saved = self.memory.save(&state.memory, t, place);
        let done = possible(self.step(state, action, chooser, log))?;
        if !done {
            state.threads[t] = thread;
            self.memory.restore(&mut state.memory, saved);
        }
        Ok(done)
    }

    /// Executes a thread's next instruction. Adds to `woken` the threads that may step now and
    /// could not before.
    fn execute(
        &self,
        state: &mut MachineState<B>,
        t: usize,
        cx: &mut Context<'_>,
        woken: &mut Vec<usize>,
    ) -> Result {
        let code = self.code;
        let thread = &state.threads[t];
        let at = At {
            thread: t,
            instr: thread.pc,
            clock: thread.clock,
        };
        // Schedulers never pick such a thread, but a schedule written by hand may.
        if !self.ready(state, t) {
            return Err(StepHalt::Blocked);
        }
        if self.call_runtime(state, at, cx, woken)? || self.run_agents(state, at, cx, woken) {
            return Ok(());
        }
        let thread = &state.threads[t];
        if code.threads[t].divides[at.instr]
            && divides_by_zero(&code.program.threads[t].code[at.instr].op, &thread.regs)
        {
            return Err(fault(at, FaultKind::Division, "divides by zero"));
        }
        let (cells, ops) = code.at_once(t, at.instr);
        if cells > 1 {
            for (dst, value) in self
                .several(cx, &mut state.memory, at, &thread.regs, ops)
                .ok_or_else(|| stray(at, "is"))??
            {
                state.threads[t].regs[dst.0 as usize] = value;
            }
            self.go(state, t, at.instr + usize::from(ops), woken);
            return Ok(());
        }
        let mut next = at.instr + 1;
        match &code.threads[t].acts[at.instr] {
            Act::Load { .. } | Act::Store { .. } | Act::Rmw { .. } => self.access(state, at, cx)?,
            Act::Mark { addr, mark } => {
                let fence = match (*mark, addr) {
                    (Fence::Map { acquire, scope, .. }, Some(addr)) => {
                        let place = code.place(t, eval(addr, &thread.regs), Ty::U64, false);
                        let place = place.ok_or_else(|| stray(at, "names a tensor map"))?;
                        let va = Some(place.va);
                        Fence::Map { acquire, scope, va }
                    }
                    (other, _) => other,
                };
                self.memory.fence(cx, &mut state.memory, at, fence)?;
            }
            Act::Barrier(b) => {
                if !self.barrier(state, at, b, cx)? {
                    self.waits(state, at, woken);
                    return Ok(());
                }
            }
            Act::Give {
                attendance: Attendance::Present,
                ..
            } => self.give_at_once(state, at, cx, woken),
            Act::Give { among, lanes, .. } => {
                if !names_itself(code, t, *among, eval(lanes, &thread.regs)) {
                    return Err(fault(
                        at,
                        FaultKind::Barrier,
                        "does not name its own thread, or reads from a thread that does not arrive",
                    ));
                }
                self.waits(state, at, woken);
                return Ok(());
            }
            Act::Take { dst, lane } => {
                let brought = thread.brought.get(usize::from(*lane)).copied();
                state.threads[t].regs[dst.0 as usize] = brought.unwrap_or(0);
            }
            Act::Call(_) | Act::Enqueue(_) | Act::Status { .. } => {
                unreachable!("carried out above")
            }
            Act::Choice { dst, .. } => {
                let choice = cx.chooser.choose(2) as i64;
                state.threads[t].regs[dst.0 as usize] = choice;
            }
            Act::Assign { dst, value } => {
                let value = eval(value, &thread.regs);
                state.threads[t].regs[dst.0 as usize] = value;
            }
            Act::Branch { cond, target } => {
                let taken = eval(cond, &thread.regs) != 0;
                cx.log.note(RunEvent::Jump(at.spot(), taken));
                if taken {
                    next = *target;
                }
            }
        }
        self.go(state, t, next, woken);
        Ok(())
    }

    /// Executes a call of the runtime or a query; `false` if the instruction is neither.
    fn call_runtime(
        &self,
        state: &mut MachineState<B>,
        at: At,
        cx: &mut Context<'_>,
        woken: &mut Vec<usize>,
    ) -> Result<bool> {
        match self.code.threads[at.thread].acts[at.instr] {
            Act::Call(call) => {
                if !self.call(state, cx, woken, at, call)? {
                    state.threads[at.thread].status = ThreadStatus::Held;
                    return Ok(true);
                }
            }
            Act::Enqueue(command) => self.enqueue_child(state, cx, woken, at, command)?,
            Act::Status { dst, of } => {
                let status = self.asks(state, cx, at, of);
                state.threads[at.thread].regs[dst.0 as usize] = status;
            }
            _ => return Ok(false),
        }
        self.go(state, at.thread, at.instr + 1, woken);
        Ok(true)
    }

    /// Begins agents, or executes a mark about groups of them or about dependent commands; `false`
    /// if the instruction does neither.
    fn run_agents(
        &self,
        state: &mut MachineState<B>,
        at: At,
        cx: &mut Context<'_>,
        woken: &mut Vec<usize>,
    ) -> bool {
        let (code, t) = (self.code, at.thread);
        if code.begins(t, at.instr).next().is_some() {
            let next = self.begin(state, at, woken);
            code.begins(t, at.instr)
                .for_each(|(a, _)| cx.log.note(RunEvent::Begin(at.spot(), a)));
            self.go(state, t, next, woken);
            return true;
        }
        let Act::Mark { mark, .. } = code.threads[t].acts[at.instr] else {
            return false;
        };
        match mark {
            Fence::Commit(group) => {
                for (a, agent) in code.all_agents() {
                    let of = &mut state.threads[a];
                    if agent.owner == t && agent.group == Some(group) {
                        of.age = (of.age + 1).min(MOST_GROUPS);
                    }
                }
                cx.log.note(RunEvent::Fence(at.spot()));
            }
            Fence::Trigger => self.trigger(state, cx.log, at, woken),
            Fence::GridWait => self.passes_grid(state, cx.log, at),
            Fence::Await(wait) => {
                let done: Vec<usize> = self.awaited(state, t, wait).collect();
                for a in done {
                    self.memory.complete(&mut state.memory, t, a, wait.reads);
                    cx.log.note(RunEvent::Complete(at.spot(), a, wait.reads));
                }
                cx.log.note(RunEvent::Fence(at.spot()));
            }
            _ => return false,
        }
        self.go(state, t, at.instr + 1, woken);
        true
    }

    /// A thread waits at its instruction.
    fn waits(&self, state: &mut MachineState<B>, at: At, woken: &mut Vec<usize>) {
        state.threads[at.thread].status = ThreadStatus::Waiting;
        let MachineState { layer, threads, .. } = state;
        self.layer
            .stepped(self.code, layer, threads, at.thread, at.instr, woken);
    }

    /// Executes a load, a store or a read-modify-write.
    fn access(&self, state: &mut MachineState<B>, at: At, cx: &mut Context<'_>) -> Result {
        let (code, t) = (self.code, at.thread);
        let regs = &state.threads[t].regs;
        let m = &mut state.memory;
        let act = &code.threads[t].acts[at.instr];
        let address = eval(act.address().expect("an access has an address"), regs);
        match act {
            Act::Load { dst, access, .. } => {
                let place = code.place(t, address, access.ty, false).ok_or_else(|| {
                    match code.program.threads[t].code[at.instr].op.aborts() {
                        true => fault(at, FaultKind::Stray, "ends the program"),
                        false => stray(at, "reads"),
                    }
                })?;
                let access = *access;
                let value = self
                    .memory
                    .load(cx, m, MemoryAccess { at, place, access })?;
                state.threads[t].regs[dst.0 as usize] = access.ty.wrap(value);
            }
            Act::Store { value, access, .. } => {
                let place = code
                    .place(t, address, access.ty, true)
                    .ok_or_else(|| stray(at, "writes"))?;
                let (access, value) = (*access, access.ty.wrap(eval(value, regs)));
                self.memory
                    .store(cx, m, MemoryAccess { at, place, access }, value)?;
            }
            Act::Rmw {
                dst,
                update,
                read,
                write,
                ..
            } => {
                let place = code
                    .place(t, address, read.ty, true)
                    .ok_or_else(|| stray(at, "updates"))?;
                let new = |old: i64| {
                    let old = read.ty.wrap(old);
                    let mut regs = regs.clone();
                    if let (Update::When { .. }, Some(dst)) = (update, dst) {
                        regs[dst.0 as usize] = old;
                    }
                    new_value(update, old, read.ty, write.ty, &|e| Some(eval(e, &regs)))?
                };
                let [from, to] = [*read, *write].map(|access| MemoryAccess { at, place, access });
                let old = self.memory.rmw(cx, m, from, to, &new)?;
                if let Some(dst) = dst {
                    state.threads[t].regs[dst.0 as usize] = read.ty.wrap(old);
                }
            }
            _ => unreachable!("an access"),
        }
        Ok(())
    }

    /// Executes a barrier instruction; `false` if the thread waits.
    fn barrier(
        &self,
        state: &mut MachineState<B>,
        at: At,
        b: &Barrier,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        let (code, t, m) = (self.code, at.thread, &mut state.memory);
        let mut carried = B::Carried::default();
        if b.action != BarrierAction::Wait {
            self.layer
                .arrives(code, &state.layer, &state.threads, t, b)?;
            if let Some(other) = state.barriers.elsewhere(code, at.spot(), b, &state.threads) {
                let line = code
                    .line(other, state.threads[other].pc)
                    .cloned()
                    .unwrap_or_default();
                let name = &code.program.threads[other].name;
                let what = format!(
                    "is not where {name} waits, at line {line}: the threads must meet at one call"
                );
                return Err(fault(at, FaultKind::Barrier, &what));
            }
            // The memory keeps which lanes the barrier names, but no registers.
            let regs = &state.threads[t].regs;
            let lanes = b.lanes.as_ref().map(|mask| Expr::Const(eval(mask, regs)));
            let b = &Barrier { lanes, ..b.clone() };
            carried = self.memory.arrive(cx, m, at, b)?;
        }
        let regs = &state.threads[t].regs;
        let (came, phase) = state
            .barriers
            .execute(code, at.spot(), b, regs, &carried, B::join)?;
        if b.action != BarrierAction::Wait {
            cx.log.note(RunEvent::Arrive(at.spot(), phase));
        }
        match came {
            BarrierStep::On(Some(carried)) => {
                self.memory.pass(code, m, at, &carried);
                cx.log.note(RunEvent::Pass(at.spot(), phase));
            }
            BarrierStep::On(None) => {}
            BarrierStep::Waits => return Ok(false),
        }
        Ok(true)
    }

    /// Hands values over among the threads that are at this instruction now, or to the thread
    /// alone: a choice, if there are others.
    fn give_at_once(
        &self,
        state: &mut MachineState<B>,
        at: At,
        cx: &mut Context<'_>,
        woken: &mut Vec<usize>,
    ) {
        let t = at.thread;
        let mut group = beside(self.code, t, |u| {
            let other = &state.threads[u];
            (other.status == ThreadStatus::Running).then_some((other.pc, other.regs.as_slice()))
        });
        if group.len() > 1 && cx.chooser.choose(2) == 1 {
            group.retain(|one| one.0 == t);
        }
        let all = group.iter().fold(0, |all, one| all | one.2);
        for &(u, rank, _) in &group {
            state.threads[u].brought = vec![0; BROUGHT];
            state.threads[u].brought[rank] = all;
        }
        for &(u, ..) in group.iter().filter(|one| one.0 != t) {
            self.go(state, u, at.instr + 1, woken);
            woken.push(u);
        }
    }

    /// Executes an operation on several cells at once, and returns the new values of registers;
    /// `None`: it is outside memory.
    fn several(
        &self,
        cx: &mut Context<'_>,
        m: &mut B::Memory,
        at: At,
        regs: &[i64],
        ops: u8,
    ) -> Option<Result<Vec<(RegId, i64)>>> {
        let (code, t) = (self.code, at.thread);
        let acts = &code.threads[t].acts[at.instr..at.instr + usize::from(ops)];
        let cells = code.at_once(t, at.instr).0 / ops;
        let ty = acts[0].accesses().next()?.ty;
        let pieces = Pieces {
            ty,
            piece: ty.piece(cells),
            cells: usize::from(cells),
        };
        if eval(acts[0].address()?, regs) % (i64::from(ty.bytes()) * i64::from(ops)) != 0 {
            return None;
        }
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (i, act) in acts.iter().enumerate() {
            let address = eval(act.address()?, regs);
            let at = At {
                instr: at.instr + i,
                ..at
            };
            for k in 0..pieces.cells {
                let ty = pieces.piece;
                let address = address + k as i64 * i64::from(ty.bytes());
                let place = code.place(t, address, ty, act.write().is_some())?;
                let part = ((i * pieces.cells + k) as u8, cells * ops);
                let to = |access: &Access| MemoryAccess {
                    at,
                    place,
                    access: Access {
                        ty,
                        part,
                        ..*access
                    },
                };
                reads.extend(act.read().map(to));
                writes.extend(act.write().map(to));
            }
        }
        let new = |old: &[i64]| {
            let values = new_values(acts, &pieces.join(old), regs);
            values.into_iter().flat_map(|v| pieces.cut(v)).collect()
        };
        let old = match self.memory.several(cx, m, &reads, &writes, &new) {
            Ok(old) => old,
            Err(halt) => return Some(Err(halt)),
        };
        Some(Ok(acts
            .iter()
            .zip(pieces.join(&old))
            .filter_map(|(act, v)| Some((act.defines()?, v)))
            .collect()))
    }

    /// Moves a thread to its next instruction.
    pub(super) fn go(
        &self,
        state: &mut MachineState<B>,
        t: usize,
        next: usize,
        woken: &mut Vec<usize>,
    ) {
        let agent = self.code.agent(t).map(|a| a.owner);
        let value = self.code.threads[t].acts[state.threads[t].pc]
            .defines()
            .map(|r| r.0 as usize);
        let thread = &mut state.threads[t];
        let from = thread.pc;
        thread.pc = next;
        thread.clock += 1;
        thread.status = if next == self.code.threads[t].acts.len() {
            ThreadStatus::Ended
        } else {
            ThreadStatus::Running
        };
        self.layer
            .stepped(self.code, &mut state.layer, &state.threads, t, from, woken);
        if let Some(owner) = agent {
            // The owner's registers get the values that a matrix instruction reads, for inspection.
            if let Some(r) = value {
                let value = state.threads[t].regs[r];
                state.threads[owner].regs[r] = value;
            }
            if state.threads[t].is_over() {
                self.ended(state, t, owner, woken);
            }
        }
    }

    /// Executes everything that commutes with all other steps. Only the threads of `todo` can have
    /// such actions; the last one comes first.
    fn settle(
        &self,
        state: &mut MachineState<B>,
        mut todo: Vec<usize>,
        log: &mut dyn Log,
    ) -> Result {
        let mut steps: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        // Whether a thread has arrived or ended since the last look at the barriers.
        let mut arrivals = true;
        loop {
            while let Some(t) = todo.pop() {
                let at = steps.iter().position(|s| s.0 == t).unwrap_or_else(|| {
                    steps.push((t, 0));
                    steps.len() - 1
                });
                while state.threads[t].status == ThreadStatus::Running
                    && self
                        .layer
                        .may_step(self.code, &state.layer, &state.threads, t)
                    && self.layer.decides_nothing(&state.layer, t)
                {
                    if steps[at].1 == MAX_LOCAL_STEPS {
                        state.threads[t].status = ThreadStatus::Lost;
                        break;
                    }
                    if !self.by_itself(state, t, log, &mut todo)? {
                        break;
                    }
                    steps[at].1 += 1;
                }
                arrivals |= state.threads[t].status != ThreadStatus::Running;
            }
            if !std::mem::take(&mut arrivals) {
                return Ok(());
            }
            let completed = self.complete(state, log, &mut todo);
            if !(self.advance(state, log, &mut todo) || completed) {
                return Ok(());
            }
        }
    }

    /// Executes a thread's next instruction if it commutes with all other steps.
    fn by_itself(
        &self,
        state: &mut MachineState<B>,
        t: usize,
        log: &mut dyn Log,
        woken: &mut Vec<usize>,
    ) -> Result<bool> {
        if !self.ready(state, t) {
            return Ok(false);
        }
        let begins = self.code.begins(t, state.threads[t].pc).next().is_some();
        let commutes = begins
            || match &self.code.threads[t].acts[state.threads[t].pc] {
                Act::Assign { .. } | Act::Branch { .. } | Act::Take { .. } => true,
                Act::Mark { .. } | Act::Barrier(_) | Act::Give { .. } if self.patient => false,
                // The set of participants depends on the order of steps.
                Act::Give {
                    attendance: Attendance::Present,
                    ..
                } => false,
                Act::Give { .. } => true,
                // Only the first one of a CTA counts.
                Act::Mark {
                    mark: Fence::Trigger,
                    ..
                } => false,
                Act::Mark { mark: fence, .. } => {
                    self.memory.fence_commutes(&state.memory, t, *fence)
                }
                Act::Barrier(b) => {
                    arrival_commutes(self.code, b) && self.memory.arrival_commutes(&state.memory, t)
                }
                // A choice is a separate step.
                Act::Load { .. } | Act::Store { .. } | Act::Rmw { .. } | Act::Choice { .. } => {
                    false
                }
                Act::Call(_) | Act::Enqueue(_) | Act::Status { .. } => false,
            };
        if !commutes {
            return Ok(false);
        }
        let mut chooser = Tape::new(&[]);
        let mut cx = Context {
            code: self.code,
            chooser: &mut chooser,
            log,
            age: Age::New,
        };
        // A fence may have to wait for an early bind: it is then left for later, and changes
        // nothing.
        match self.execute(state, t, &mut cx, woken) {
            Err(StepHalt::Blocked) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Releases the threads that wait at completed barriers.
    fn complete(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        woken: &mut Vec<usize>,
    ) -> bool {
        let mut free = Vec::new();
        let MachineState {
            threads,
            barriers,
            memory,
            ..
        } = state;
        barriers.complete(
            self.code,
            |u| threads[u].is_over(),
            |t, carried, phase| {
                let at = At {
                    thread: t,
                    instr: threads[t].pc,
                    clock: threads[t].clock,
                };
                self.memory.pass(self.code, memory, at, carried);
                log.note(RunEvent::Pass(at.spot(), phase));
                free.push(t);
            },
        );
        let stands = |t: usize| {
            let thread = &threads[t];
            (thread.status == ThreadStatus::Waiting).then_some((thread.pc, thread.regs.as_slice()))
        };
        for (group, brought) in meetings(self.code, &stands, &|t| threads[t].is_over()) {
            group
                .iter()
                .for_each(|&t| threads[t].brought.clone_from(&brought));
            free.extend(group);
        }
        for &t in &free {
            let next = state.threads[t].pc + 1;
            self.go(state, t, next, woken);
        }
        woken.extend(free.iter().rev());
        !free.is_empty()
    }

    /// Whether the memory ever binds anything early.
    pub(super) fn binds(&self) -> bool {
        self.memory.binds()
    }

    /// Whether every thread has run to its end.
    pub(super) fn is_finished(&self, state: &MachineState<B>) -> bool {
        let absent = |t: usize| {
            let host = self.code.program.host.as_deref();
            let command = host.and_then(|h| h.command_of(ThreadId(t as u16)));
            command.is_some_and(|c| state.host.is_absent(c))
        };
        state
            .threads
            .iter()
            .enumerate()
            .all(|(t, thread)| thread.is_over() || absent(t))
            && state.host.is_over()
    }

    /// Brings a state into normal form; returns `false` if the history reached its bound.
    pub(super) fn tidy(&self, state: &mut MachineState<B>) -> bool {
        let Barriers {
            phases, granted, ..
        } = &mut state.barriers;
        let carried = phases
            .iter_mut()
            .map(|p| &mut p.carried)
            .chain(granted.iter_mut().map(|g| &mut g.2));
        let mut carried = carried.chain(state.host.known.values_mut());
        self.memory.tidy(self.code, &mut state.memory, &mut carried)
    }

    /// The fingerprint of a state in normal form.
    pub(super) fn fingerprint(&self, state: &MachineState<B>) -> u128 {
        let mut f = Hasher128::default();
        for (t, thread) in state.threads.iter().enumerate() {
            thread.hash_into(&self.code.threads[t].live, &mut f);
        }
        let Barriers {
            phases,
            granted,
            reached,
            ..
        } = &state.barriers;
        for p in phases {
            (&p.key, p.count, &p.arrived, &p.waiting, p.open).hash(&mut f);
        }
        f.write_usize(granted.len());
        granted.iter().for_each(|g| (&g.0, g.1).hash(&mut f));
        reached.hash(&mut f);
        state.host.hash_into(&mut f);
        let carried = phases
            .iter()
            .map(|p| &p.carried)
            .chain(granted.iter().map(|g| &g.2));
        let mut carried = carried.chain(state.host.known.values());
        self.memory
            .hash(&state.memory, &state.threads, &mut carried, &mut f);
        state.layer.hash(&mut f);
        f.value()
    }
}

/// The cells of values that an operation accesses at once.
struct Pieces {
    /// The type of a value.
    ty: Ty,
    /// The type of a cell.
    piece: Ty,
    /// The number of cells of a value.
    cells: usize,
}

impl Pieces {
    fn shift(&self, k: usize) -> u32 {
        k as u32 * u32::from(self.piece.bits)
    }

    /// The values that consecutive cells hold.
    fn join(&self, cells: &[i64]) -> Vec<i64> {
        let bits = Ty {
            signed: false,
            ..self.piece
        };
        cells
            .chunks(self.cells)
            .map(|cells| {
                let cells = cells.iter().enumerate();
                self.ty
                    .wrap(cells.fold(0, |value, (k, p)| value | bits.wrap(*p) << self.shift(k)))
            })
            .collect()
    }

    /// The cells of a value; `None` for each if there is none.
    fn cut(&self, value: Option<i64>) -> impl Iterator<Item = Option<i64>> {
        let unsigned = Ty {
            signed: false,
            ..self.ty
        };
        (0..self.cells).map(move |k| {
            let bits = unsigned.wrap(value?) as u64 >> self.shift(k);
            Some(self.piece.wrap(bits as i64))
        })
    }
}

/// The values that micro-ops write, given the values that they read; `None`: nothing.
fn new_values(acts: &[Act], found: &[i64], regs: &[i64]) -> Vec<Option<i64>> {
    let mut regs = regs.to_vec();
    for (act, old) in acts.iter().zip(found) {
        if let Act::Rmw {
            dst: Some(dst),
            update: Update::When { .. },
            ..
        } = act
        {
            regs[dst.0 as usize] = *old;
        }
    }
    let values = acts.iter().enumerate().map(|(i, act)| match act {
        Act::Store { value, .. } => Some(eval(value, &regs)),
        Act::Rmw {
            update,
            read,
            write,
            ..
        } => new_value(update, found[i], read.ty, write.ty, &|e| {
            Some(eval(e, &regs))
        })
        .flatten(),
        _ => None,
    });
    values.collect()
}

fn fault(at: At, kind: FaultKind, what: &str) -> StepHalt {
    StepHalt::Fault {
        kind,
        thread: at.thread,
        instr: at.instr,
        what: what.to_owned(),
    }
}

/// The fault of an access outside memory.
fn stray(at: At, what: &str) -> StepHalt {
    fault(at, FaultKind::Stray, &format!("{what} outside memory"))
}

/// Whether a step was possible.
fn possible(step: Result<Age>) -> Result<bool> {
    match step {
        Ok(_) => Ok(true),
        Err(StepHalt::Refused | StepHalt::Blocked) => Ok(false),
        Err(halt) => Err(halt),
    }
}

/// Whether an instruction divides by zero, given its thread's registers.
fn divides_by_zero(op: &Op, regs: &[i64]) -> bool {
    fn within(e: &Expr, regs: &[i64]) -> bool {
        match e {
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => false,
            Expr::Bin(op, ty, a, b) => {
                within(a, regs) || within(b, regs) || op.divides() && ty.wrap(eval(b, regs)) == 0
            }
            Expr::Cmp(_, _, a, b) => within(a, regs) || within(b, regs),
            Expr::Select(c, a, b) => {
                within(c, regs) || within(if eval(c, regs) != 0 { a } else { b }, regs)
            }
            Expr::Cast(_, a) => within(a, regs),
            Expr::Fused(_, three) => three.iter().any(|e| within(e, regs)),
        }
    }
    op.operands().iter().any(|e| within(e, regs))
}
