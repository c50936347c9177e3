//! The machine: one step of one thread, and what follows by itself.
//!
//! # Invariants
//! - A step that gives [`Halt`] leaves its state in pieces: callers step copies.
//! - [`Machine::settle`] carries out what commutes with every step of every other thread: arithmetic, branches, fences that
//!   only join what is known, arrivals whose phase does not depend on who comes first, and completed barriers. No
//!   outcome depends on when those happen.

use std::hash::{Hash, Hasher};

use super::Halt;
use super::barrier::{Barriers, Came, arrival_commutes};
use super::choice::{Chooser, Tape};
use super::code::{Act, Code, eval};
use super::fingerprint::Fingerprint;
use super::layer::Layer;
use super::memory::{At, Backend, Context};
use super::record::{Event, Log};
use super::state::{State, Status, threads};
use crate::program::{BarrierAction, Update};

/// A thread that takes so many steps without touching memory is taken for lost; see [`Status::Lost`].
const MAX_LOCAL_STEPS: usize = 4_000;

/// What the scheduler picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) thread: usize,
    /// Bind an instruction before its turn, instead of carrying out the next one.
    pub(super) early: bool,
}

/// A program, a memory and a scheduler layer.
pub(super) struct Machine<'a, B, L> {
    pub(super) code: &'a Code,
    pub(super) memory: B,
    pub(super) layer: L,
}

/// The state of a machine.
pub(super) type StateOf<B, L> = State<<B as Backend>::Memory, <B as Backend>::Carried, <L as Layer>::State>;

impl<B: Backend, L: Layer> Machine<'_, B, L> {
    /// The state before the first step.
    pub(super) fn start(&self, log: &mut dyn Log) -> Result<StateOf<B, L>, Halt> {
        let mut state = State {
            threads: threads(self.code),
            barriers: Barriers::default(),
            memory: self.memory.start(self.code),
            layer: self.layer.start(self.code),
        };
        self.settle(&mut state, log)?;
        Ok(state)
    }

    /// What the scheduler may pick. Not every pick has a successor.
    pub(super) fn actions(&self, state: &StateOf<B, L>) -> Vec<Action> {
        let mut actions = Vec::new();
        for (thread, t) in state.threads.iter().enumerate() {
            if self.layer.may_step(self.code, &state.layer, &state.threads, thread) {
                if t.status == Status::Running {
                    actions.push(Action { thread, early: false });
                }
                if matches!(t.status, Status::Running | Status::Waiting)
                    && self.memory.may_bind_early(self.code, &state.memory, &state.threads, thread)
                {
                    actions.push(Action { thread, early: true });
                }
            }
        }
        actions
    }

    /// Carries out a pick, and what follows by itself.
    pub(super) fn step(
        &self,
        state: &mut StateOf<B, L>,
        action: Action,
        chooser: &mut dyn Chooser,
        log: &mut dyn Log,
    ) -> Result<(), Halt> {
        let mut cx = Context { code: self.code, chooser, log };
        if action.early {
            self.memory.bind_early(&mut cx, &mut state.memory, &state.threads, action.thread)?;
        } else {
            self.execute(state, action.thread, &mut cx)?;
        }
        self.settle(state, log)
    }

    /// Carries out a thread's next instruction.
    fn execute(&self, state: &mut StateOf<B, L>, t: usize, cx: &mut Context<'_>) -> Result<(), Halt> {
        let code = self.code;
        let thread = &state.threads[t];
        let at = At { thread: t, instr: thread.pc, clock: thread.clock };
        let m = &mut state.memory;
        let stray = |what: &str| Halt::Stray { thread: t, instr: at.instr, what: what.to_owned() };
        let mut next = at.instr + 1;
        match &code.threads[t].acts[at.instr] {
            Act::Load { dst, addr, access } => {
                let address = eval(addr, &thread.regs);
                let place = code.place(t, address, access.ty, false).ok_or_else(|| stray("reads"))?;
                let value = self.memory.load(cx, m, at, place, access)?;
                state.threads[t].regs[dst.0 as usize] = access.ty.wrap(value);
            }
            Act::Store { addr, value, access } => {
                let address = eval(addr, &thread.regs);
                let place = code.place(t, address, access.ty, true).ok_or_else(|| stray("writes"))?;
                let value = access.ty.wrap(eval(value, &thread.regs));
                self.memory.store(cx, m, at, place, access, value)?;
            }
            Act::Rmw { dst, addr, update, read, write } => {
                let address = eval(addr, &thread.regs);
                let place = code.place(t, address, read.ty, true).ok_or_else(|| stray("updates"))?;
                let regs = thread.regs.clone();
                let new = |old: i64| {
                    let old = read.ty.wrap(old);
                    new_value(update, old, read.ty, write.ty, &|e| Some(eval(e, &regs)))?
                };
                let old = self.memory.rmw(cx, m, at, place, (read, write), &new)?;
                if let Some(dst) = dst {
                    state.threads[t].regs[dst.0 as usize] = read.ty.wrap(old);
                }
            }
            Act::Fence(fence) => self.memory.fence(cx, m, at, *fence)?,
            Act::Barrier(b) => {
                let carried = match b.action {
                    BarrierAction::Wait => B::Carried::default(),
                    _ => self.memory.arrive(cx, m, at, b)?,
                };
                let came = state.barriers.execute(code, (t, at.instr), b, &thread.regs, &carried, B::join)?;
                if b.action != BarrierAction::Wait {
                    cx.log.note(Event::Arrive { thread: t, instr: at.instr });
                }
                match came {
                    Came::On(Some(carried)) => {
                        self.memory.pass(code, m, at, &carried);
                        cx.log.note(Event::Pass { thread: t, instr: at.instr });
                    }
                    Came::On(None) => {}
                    Came::Waits => {
                        state.threads[t].status = Status::Waiting;
                        return Ok(());
                    }
                }
            }
            Act::Assign { dst, value } => {
                let value = eval(value, &thread.regs);
                state.threads[t].regs[dst.0 as usize] = value;
            }
            Act::Branch { cond, target } => {
                if eval(cond, &thread.regs) != 0 {
                    next = *target;
                }
            }
        }
        self.go(state, t, next);
        Ok(())
    }

    /// Moves a thread on.
    fn go(&self, state: &mut StateOf<B, L>, t: usize, next: usize) {
        let thread = &mut state.threads[t];
        let from = thread.pc;
        thread.pc = next;
        thread.clock += 1;
        thread.status = if next == self.code.threads[t].acts.len() { Status::Ended } else { Status::Running };
        self.layer.stepped(self.code, &mut state.layer, &state.threads, t, from);
    }

    /// Carries out everything that commutes with all else.
    fn settle(&self, state: &mut StateOf<B, L>, log: &mut dyn Log) -> Result<(), Halt> {
        for t in 0..state.threads.len() {
            if state.threads[t].pc == self.code.threads[t].acts.len() {
                state.threads[t].status = Status::Ended;
            }
        }
        loop {
            let mut moved = false;
            for t in 0..state.threads.len() {
                let mut steps = 0;
                while state.threads[t].status == Status::Running
                    && self.layer.may_step(self.code, &state.layer, &state.threads, t)
                {
                    if steps == MAX_LOCAL_STEPS {
                        state.threads[t].status = Status::Lost;
                        break;
                    }
                    if !self.by_itself(state, t, log)? {
                        break;
                    }
                    steps += 1;
                    moved = true;
                }
            }
            moved |= self.complete(state, log);
            if !moved {
                return Ok(());
            }
        }
    }

    /// Carries out a thread's next instruction if it commutes with all else.
    fn by_itself(&self, state: &mut StateOf<B, L>, t: usize, log: &mut dyn Log) -> Result<bool, Halt> {
        let commutes = match &self.code.threads[t].acts[state.threads[t].pc] {
            Act::Assign { .. } | Act::Branch { .. } => true,
            Act::Fence(fence) => self.memory.fence_commutes(&state.memory, t, *fence),
            Act::Barrier(b) => arrival_commutes(b) && self.memory.arrival_commutes(&state.memory, t),
            Act::Load { .. } | Act::Store { .. } | Act::Rmw { .. } => false,
        };
        if !commutes {
            return Ok(false);
        }
        let mut chooser = Tape::new(&[]);
        let mut cx = Context { code: self.code, chooser: &mut chooser, log };
        // A fence may have to wait for what was bound early: it is then left for later, and it changes nothing.
        match self.execute(state, t, &mut cx) {
            Err(Halt::Blocked) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Lets go who waits at completed barriers.
    fn complete(&self, state: &mut StateOf<B, L>, log: &mut dyn Log) -> bool {
        let mut free = Vec::new();
        let State { threads, barriers, memory, .. } = state;
        barriers.complete(
            self.code,
            |u| threads[u].is_over(),
            |t, carried| {
                let at = At { thread: t, instr: threads[t].pc, clock: threads[t].clock };
                self.memory.pass(self.code, memory, at, carried);
                log.note(Event::Pass { thread: t, instr: threads[t].pc });
                free.push(t);
            },
        );
        for &t in &free {
            let next = state.threads[t].pc + 1;
            self.go(state, t, next);
        }
        !free.is_empty()
    }

    /// Whether anything is ever bound early.
    pub(super) fn binds(&self) -> bool {
        self.memory.binds()
    }

    /// Whether every thread has run to its end.
    pub(super) fn is_finished(&self, state: &StateOf<B, L>) -> bool {
        state.threads.iter().all(|t| t.is_over())
    }

    /// Brings a state into normal form; `false` if a bound on the history was met.
    pub(super) fn tidy(&self, state: &mut StateOf<B, L>) -> bool {
        let Barriers { phases, granted, .. } = &mut state.barriers;
        let mut carried = phases.iter_mut().map(|p| &mut p.carried).chain(granted.iter_mut().map(|g| &mut g.2));
        self.memory.tidy(self.code, &mut state.memory, &mut carried)
    }

    /// The fingerprint of a state in normal form.
    pub(super) fn fingerprint(&self, state: &StateOf<B, L>) -> u128 {
        let mut f = Fingerprint::default();
        for (t, thread) in state.threads.iter().enumerate() {
            thread.hash_into(&self.code.threads[t].live, &mut f);
        }
        let Barriers { phases, granted, reached } = &state.barriers;
        for p in phases {
            (&p.key, p.count, p.arrived, p.waiting, p.open).hash(&mut f);
        }
        f.write_usize(granted.len());
        granted.iter().for_each(|g| (&g.0, g.1).hash(&mut f));
        reached.hash(&mut f);
        let mut carried = phases.iter().map(|p| &p.carried).chain(granted.iter().map(|g| &g.2));
        self.memory.hash(&state.memory, &state.threads, &mut carried, &mut f);
        state.layer.hash(&mut f);
        f.value()
    }
}

/// What a read-modify-write writes, given the value that it read; `Some(None)`: nothing; `None`: an operand is unknown.
pub(super) fn new_value(
    update: &Update,
    old: i64,
    read: crate::program::Ty,
    write: crate::program::Ty,
    value: &dyn Fn(&crate::program::Expr) -> Option<i64>,
) -> Option<Option<i64>> {
    Some(match update {
        Update::Exchange(e) => Some(write.wrap(value(e)?)),
        Update::Apply(op, e) => Some(write.wrap(op.apply(write, old, value(e)?))),
        Update::CompareExchange { expected, new } => {
            if read.wrap(value(expected)?) == old {
                Some(write.wrap(value(new)?))
            } else {
                None
            }
        }
    })
}
