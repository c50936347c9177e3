//! Interprets programs by interleaving: threads take turns on one memory.
//!
//! It explores every interleaving, depth first, and remembers the states it has seen. It shares
//! nothing with the skeleton or the checkers. It executes control flow, values, read-modify-writes
//! and barriers by the micro-ops' documentation, one step at a time.
//!
//! # Semantics
//! - Loads, stores and whole read-modify-writes are single steps. Fences, orders, scopes and
//!   proxies have no effect.
//! - A counted barrier has a set of threads that have arrived. The phase completes when their
//!   number reaches the count; without a count, when all threads of the group that have not ended
//!   have arrived. Then the set is emptied and waiting threads go on. A thread that has arrived in
//!   a phase cannot arrive again before the phase completes.
//! - A thread that hands values to others waits until all of those that have not ended are at an
//!   instruction that names the same ones. Programs in which one of them has ended are left out
//!   here.
//! - A thread passes an instance barrier without a quorum once every thread has reached the
//!   barriers of its group with its number. Those are left out here ([`Stop::Unsupported`]).
//! - Only executions in which every thread runs to its end have a final state.

use std::collections::{BTreeSet, HashSet};

use crate::suite::is_long;
use program::litmus::{LitmusTest, Observable};
use program::unknown::are_made;
use program::{
    Attendance, BarrierAction, BarrierNaming, Expr, Init, Layout, LocId, LocationKind, Op, Program,
    Scope, Space, Ty, Update,
};

/// The reason why there is no set of final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A construct that this interpreter does not support.
    Unsupported(&'static str),
    /// Too many states to explore.
    TooManyStates,
    /// An access outside memory.
    Astray,
}

/// Final values by name, as the checkers print them.
pub type FinalState = verdict::State;

/// At most this many states.
pub(super) fn most() -> usize {
    if is_long() { 400_000 } else { 40_000 }
}
/// A thread that takes this number of steps without access to memory never comes back.
const MAX_LOCAL_STEPS: usize = 2_000;
/// Distance between objects.
const SPACING: i64 = 0x1_0000;

/// A state of the whole program.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) threads: Vec<ThreadState>,
    memory: Vec<i64>,
    barriers: Vec<Phase>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ThreadState {
    pc: usize,
    regs: Vec<i64>,
    /// By rank: the values of its last meeting.
    brought: Vec<i64>,
    pub(super) doing: Doing,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    Running,
    /// It has come to the barrier or the meeting at `pc` and waits there.
    Waiting,
    /// It runs in a loop without access to memory.
    Lost,
    Ended,
}

/// The present phase of one barrier of one group.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Phase {
    domain: Scope,
    /// The mask of a warp's lanes that the barrier is for, if it has one.
    lanes: Option<u32>,
    group: usize,
    id: i64,
    count: Option<i64>,
    arrived: u64,
}

pub(super) struct Machine<'a> {
    program: &'a Program,
    /// Location, owner, first cell, layout, and number of cells.
    objects: Vec<(LocId, usize, usize, Layout, usize)>,
}

/// The final states of a test, restricted to what it observes.
///
/// # Errors
/// If this interpreter cannot run the program.
pub fn final_states(test: &LitmusTest) -> Result<BTreeSet<FinalState>, Stop> {
    // Elements of a vector have no order, but this machine executes them in one.
    if test
        .program
        .instrs()
        .any(|(_, _, instr)| instr.element.of > 1 || instr.element.cells > 1)
    {
        return Err(Stop::Unsupported("vectors"));
    }
    if test.program.asynchronous().is_some() {
        return Err(Stop::Unsupported("asynchronous copies"));
    }
    if are_made(&test.program) {
        return Err(Stop::Unsupported("values that are not worked out"));
    }
    // Kernels whose warps do this have many threads, and too many states to explore.
    let meets_others =
        |t, op: &Op| matches!(op, Op::Give { among, .. } if test.program.seat(t, *among).of > 1);
    if test
        .program
        .instrs()
        .any(|(t, _, instr)| meets_others(t, &instr.op))
    {
        return Err(Stop::Unsupported("values of other lanes"));
    }
    // Even a wait that no run reaches: the threads that it waits for may be stuck before it.
    let waits = |op: &Op| {
        op.barrier()
            .is_some_and(|b| b.action == BarrierAction::Wait)
    };
    if test.program.instrs().any(|(_, _, instr)| waits(&instr.op)) {
        return Err(Stop::Unsupported("waits apart from arrivals"));
    }
    let (machine, start) = machine(test);
    let mut seen: HashSet<State> = HashSet::new();
    let mut finals = BTreeSet::new();
    let mut stack = vec![start];
    let most = most();
    while let Some(state) = stack.pop() {
        if seen.contains(&state) {
            continue;
        }
        if seen.len() >= most {
            return Err(Stop::TooManyStates);
        }
        if state.threads.iter().all(|t| t.doing == Doing::Ended) {
            finals.insert(machine.observe(test, &state)?);
        }
        for t in 0..state.threads.len() {
            if state.threads[t].doing == Doing::Running {
                let mut next = state.clone();
                if machine.step(&mut next, t)? {
                    stack.push(next);
                }
            }
        }
        seen.insert(state);
    }
    Ok(finals)
}

/// The interpreter of a test's program, and its initial state.
pub(super) fn machine(test: &LitmusTest) -> (Machine<'_>, State) {
    let program = &test.program;
    let mut machine = Machine {
        program,
        objects: Vec::new(),
    };
    let mut memory = Vec::new();
    for (i, location) in program.locations.iter().enumerate() {
        let LocationKind::Object {
            layout,
            init,
            space,
            ..
        } = &location.kind
        else {
            continue;
        };
        let owners: Vec<usize> = match space {
            Space::Global | Space::Constant | Space::Param => vec![0],
            Space::Local | Space::Register => (0..program.threads.len()).collect(),
            Space::Shared => {
                let mut owners: Vec<usize> = (0..program.threads.len())
                    .map(|t| machine.group(t, Scope::Cta))
                    .collect();
                owners.sort_unstable();
                owners.dedup();
                owners
            }
        };
        for owner in owners {
            machine.objects.push((
                LocId(i as u16),
                owner,
                memory.len(),
                layout.clone(),
                init.len(),
            ));
            memory.extend(init.iter().enumerate().map(|(i, v)| match v {
                Init::Int(v) => layout.field(i as u32).ty.wrap(*v),
                Init::Unknown => 0,
                Init::Address { loc, index } => machine.element_address(*loc, *index, owner),
            }));
        }
    }
    let threads = program
        .threads
        .iter()
        .enumerate()
        .map(|(t, thread)| ThreadState {
            pc: 0,
            regs: thread
                .regs
                .iter()
                .map(|r| match &r.init {
                    Init::Int(v) => *v,
                    Init::Unknown => 0,
                    Init::Address { loc, index } => machine.element_address(*loc, *index, t),
                })
                .collect(),
            brought: Vec::new(),
            doing: Doing::Running,
        })
        .collect();
    let mut start = State {
        threads,
        memory,
        barriers: Vec::new(),
    };
    for t in 0..program.threads.len() {
        machine.settle(&mut start, t);
    }
    (machine, start)
}

/// The cell of an object's copy that begins at an address.
fn element(address: i64, loc: LocId, owner: usize, layout: &Layout, count: usize) -> Option<u32> {
    let offset = address - (i64::from(loc.0) * 64 + owner as i64 + 1) * SPACING;
    let element = offset.div_euclid(layout.bytes(layout.cells()) as i64);
    let first = u32::try_from(element)
        .ok()?
        .checked_mul(layout.cells() as u32)?;
    let cells = first..(first.saturating_add(layout.cells() as u32)).min(count as u32);
    cells
        .into_iter()
        .find(|cell| layout.offset(*cell) == offset)
}

impl Machine<'_> {
    /// The first thread of a thread's group.
    fn group(&self, thread: usize, scope: Scope) -> usize {
        let place = &self.program.threads[thread].place;
        (0..thread)
            .find(|&u| self.program.threads[u].place.same(place, scope))
            .unwrap_or(thread)
    }

    /// The object's base address in the copy that a thread sees.
    fn address(&self, loc: LocId, thread: usize) -> i64 {
        let object = self.program.object(loc);
        let LocationKind::Object { space, .. } = self.program.location(object).kind else {
            unreachable!()
        };
        let owner = match space {
            Space::Global | Space::Constant | Space::Param => 0,
            Space::Local | Space::Register => thread,
            Space::Shared => self.group(thread, Scope::Cta),
        };
        // Objects are numbered by location and owner, so that an address does not depend on the
        // order of set-up.
        (i64::from(object.0) * 64 + owner as i64 + 1) * SPACING
    }

    fn element_address(&self, loc: LocId, index: u32, thread: usize) -> i64 {
        self.address(loc, thread) + self.program.layout(loc).offset(index)
    }

    /// A value, by name if it is an address.
    fn show(&self, v: i64) -> String {
        for (loc, owner, _, layout, count) in &self.objects {
            let (loc, owner, count) = (*loc, *owner, *count);
            if let Some(cell) = element(v, loc, owner, layout, count) {
                let mut name = self.program.location(loc).name.clone();
                name.push_str(&layout.suffix(cell, count));
                if self.objects.iter().filter(|o| o.0 == loc).count() > 1 {
                    name = format!("{}:{name}", self.program.threads[owner].name);
                }
                return format!("&{name}");
            }
        }
        v.to_string()
    }

    /// The cell that an access of that type and address refers to.
    fn cell(&self, address: i64, access: Ty) -> Result<(usize, Ty), Stop> {
        let found = self
            .objects
            .iter()
            .find_map(|(loc, owner, first, layout, count)| {
                let cell = element(address, *loc, *owner, layout, *count)?;
                let ty = layout.field(cell).ty;
                (ty.bits == access.bits).then_some((first + cell as usize, ty))
            });
        found.ok_or(Stop::Astray)
    }

    fn eval(&self, state: &State, t: usize, e: &Expr) -> i64 {
        let leaf = |e: &Expr| match e {
            Expr::Reg(r) => Some(state.threads[t].regs[r.0 as usize]),
            Expr::Address(loc) => Some(self.address(*loc, t)),
            _ => None,
        };
        e.value(&leaf).expect("registers and addresses have values")
    }

    /// Executes one instruction that others can notice, and everything up to the next one. `false`
    /// if it must wait.
    pub(super) fn step(&self, state: &mut State, t: usize) -> Result<bool, Stop> {
        let pc = state.threads[t].pc;
        match &self.program.threads[t].code[pc].op {
            Op::Load { dst, addr, access } => {
                let (cell, _) = self.cell(self.eval(state, t, addr), access.ty)?;
                state.threads[t].regs[dst.0 as usize] = access.ty.wrap(state.memory[cell]);
            }
            Op::Store {
                addr,
                value,
                access,
            } => {
                let (cell, ty) = self.cell(self.eval(state, t, addr), access.ty)?;
                state.memory[cell] = ty.wrap(access.ty.wrap(self.eval(state, t, value)));
            }
            Op::Rmw {
                dst,
                addr,
                update,
                read,
                write,
            } => {
                let (cell, ty) = self.cell(self.eval(state, t, addr), read.ty)?;
                let old = read.ty.wrap(state.memory[cell]);
                if let (Update::When { .. }, Some(dst)) = (update, dst) {
                    state.threads[t].regs[dst.0 as usize] = old;
                }
                let new = match update {
                    Update::When { cond, new } => {
                        (self.eval(state, t, cond) != 0).then(|| self.eval(state, t, new))
                    }
                    Update::Exchange(e) => Some(self.eval(state, t, e)),
                    Update::Apply(op, e) => Some(op.apply(write.ty, old, self.eval(state, t, e))),
                    Update::CompareExchange { expected, new } => {
                        (read.ty.wrap(self.eval(state, t, expected)) == old)
                            .then(|| self.eval(state, t, new))
                    }
                };
                if let Some(new) = new {
                    state.memory[cell] = ty.wrap(write.ty.wrap(new));
                }
                if let Some(dst) = dst {
                    state.threads[t].regs[dst.0 as usize] = old;
                }
            }
            Op::Barrier(b) => {
                let BarrierNaming::Counted { id, count } = &b.naming else {
                    return Err(Stop::Unsupported("instance barriers"));
                };
                let id = self.eval(state, t, id);
                let count = count.as_ref().map(|c| self.eval(state, t, c));
                let group = self.group(t, b.domain);
                let mask = b.lanes.as_ref().map(|mask| self.eval(state, t, mask));
                let lanes =
                    mask.and_then(|mask| self.program.named_by(program::ThreadId(t as u16), mask));
                let key = (b.domain, lanes, group, id);
                let is_it = |p: &Phase| (p.domain, p.lanes, p.group, p.id) == key;
                let at = state.barriers.iter().position(is_it).unwrap_or_else(|| {
                    state.barriers.push(Phase {
                        domain: b.domain,
                        lanes,
                        group,
                        id,
                        count,
                        arrived: 0,
                    });
                    state
                        .barriers
                        .sort_by_key(|p| (p.domain, p.lanes, p.group, p.id));
                    state
                        .barriers
                        .iter()
                        .position(is_it)
                        .expect("just put there")
                });
                if state.barriers[at].count != count {
                    return Err(Stop::Unsupported("one barrier with different counts"));
                }
                if state.barriers[at].arrived >> t & 1 != 0 {
                    return Ok(false);
                }
                state.barriers[at].arrived |= 1 << t;
                if b.action == BarrierAction::Sync {
                    state.threads[t].doing = Doing::Waiting;
                    self.complete(state);
                    return Ok(true);
                }
            }
            Op::Give {
                attendance: Attendance::Present,
                ..
            } => return Err(Stop::Unsupported("lanes that run together")),
            Op::Give { .. } => {
                state.threads[t].doing = Doing::Waiting;
                self.complete(state);
                return self.exited(state);
            }
            Op::Choice { .. } => return Err(Stop::Unsupported("spurious failures")),
            Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => {
                return Err(Stop::Unsupported("host programs"));
            }
            Op::Mark { .. } | Op::Take { .. } | Op::Assign { .. } | Op::Branch { .. } => {
                unreachable!("settled")
            }
        }
        state.threads[t].pc += 1;
        self.settle(state, t);
        self.complete(state);
        self.exited(state)
    }

    /// The scope and group (by its first thread) within which a thread hands over a value, and the
    /// ranks that it names.
    fn gives(&self, state: &State, t: usize) -> Option<(Scope, usize, i64)> {
        if state.threads[t].doing != Doing::Waiting {
            return None;
        }
        match &self.program.threads[t].code[state.threads[t].pc].op {
            Op::Give { among, lanes, .. } => {
                Some((*among, self.group(t, *among), self.eval(state, t, lanes)))
            }
            _ => None,
        }
    }

    /// The threads that the handover of a thread waits for.
    fn named(&self, (among, group, lanes): (Scope, usize, i64)) -> Vec<usize> {
        let mates = (0..self.program.threads.len()).filter(|u| self.group(*u, among) == group);
        mates
            .enumerate()
            .filter(|(rank, _)| lanes >> rank & 1 != 0)
            .map(|(_, u)| u)
            .collect()
    }

    /// An error if a thread waits for values of a thread that has ended; otherwise, whether any
    /// thread could go on.
    fn exited(&self, state: &State) -> Result<bool, Stop> {
        let ended = |u: usize| state.threads[u].doing == Doing::Ended;
        let asked = (0..state.threads.len()).filter_map(|t| self.gives(state, t));
        match asked.flat_map(|asked| self.named(asked)).any(ended) {
            true => Err(Stop::Unsupported("values of lanes that have ended")),
            false => Ok(true),
        }
    }

    /// Releases the threads that exchange values; returns whether there are some.
    fn meet(&self, state: &mut State) -> bool {
        for t in 0..state.threads.len() {
            let Some(asked) = self.gives(state, t) else {
                continue;
            };
            let named = self.named(asked);
            if !named.contains(&t) || named.iter().any(|u| self.gives(state, *u) != Some(asked)) {
                continue;
            }
            let mut brought = vec![0; 64];
            for &u in &named {
                let Op::Give { value, .. } = &self.program.threads[u].code[state.threads[u].pc].op
                else {
                    continue;
                };
                let rank = (0..u)
                    .filter(|v| self.group(*v, asked.0) == asked.1)
                    .count();
                brought[rank] = self.eval(state, u, value);
            }
            for u in named {
                let thread = &mut state.threads[u];
                (thread.brought, thread.doing) = (brought.clone(), Doing::Running);
                thread.pc += 1;
                self.settle(state, u);
            }
            return true;
        }
        false
    }

    /// Runs a thread up to its next instruction that others can notice.
    fn settle(&self, state: &mut State, t: usize) {
        let code = &self.program.threads[t].code;
        for _ in 0..MAX_LOCAL_STEPS {
            let pc = state.threads[t].pc;
            let Some(instr) = code.get(pc) else {
                state.threads[t].doing = Doing::Ended;
                return;
            };
            match &instr.op {
                Op::Assign { dst, value } => {
                    let v = self.eval(state, t, value);
                    state.threads[t].regs[dst.0 as usize] = v;
                    state.threads[t].pc += 1;
                }
                Op::Branch { cond, target } => {
                    state.threads[t].pc = if self.eval(state, t, cond) != 0 {
                        *target
                    } else {
                        pc + 1
                    };
                }
                Op::Take { dst, lane } => {
                    let brought = state.threads[t].brought.get(usize::from(*lane)).copied();
                    state.threads[t].regs[dst.0 as usize] = brought.unwrap_or(0);
                    state.threads[t].pc += 1;
                }
                Op::Mark { .. } => state.threads[t].pc += 1,
                _ => return,
            }
        }
        state.threads[t].doing = Doing::Lost;
    }

    /// Completes phases and meetings until no more can complete.
    fn complete(&self, state: &mut State) {
        loop {
            let full = state.barriers.iter().position(|p| match p.count {
                Some(n) => p.arrived != 0 && i64::from(p.arrived.count_ones()) >= n,
                None => {
                    p.arrived != 0
                        && (0..state.threads.len()).all(|u| {
                            !self.takes_part(u, p)
                                || p.arrived >> u & 1 != 0
                                || state.threads[u].doing == Doing::Ended
                        })
                }
            });
            let Some(at) = full else {
                if self.meet(state) {
                    continue;
                }
                return;
            };
            let phase = state.barriers.remove(at);
            for u in 0..state.threads.len() {
                if phase.arrived >> u & 1 != 0 && self.waits_at(state, u, &phase) {
                    state.threads[u].doing = Doing::Running;
                    state.threads[u].pc += 1;
                    self.settle(state, u);
                }
            }
        }
    }

    /// Whether a thread waits at this barrier (it may have arrived here and wait at another one).
    fn waits_at(&self, state: &State, t: usize, phase: &Phase) -> bool {
        if state.threads[t].doing != Doing::Waiting {
            return false;
        }
        let Op::Barrier(b) = &self.program.threads[t].code[state.threads[t].pc].op else {
            return false;
        };
        let BarrierNaming::Counted { id, .. } = &b.naming else {
            unreachable!("checked on arrival")
        };
        let mask = b.lanes.as_ref().map(|mask| self.eval(state, t, mask));
        let lanes = mask.and_then(|mask| self.program.named_by(program::ThreadId(t as u16), mask));
        (b.domain, lanes) == (phase.domain, phase.lanes) && self.eval(state, t, id) == phase.id
    }

    /// Whether a phase without a count waits for a thread.
    fn takes_part(&self, thread: usize, phase: &Phase) -> bool {
        let warp = self.group(thread, Scope::Warp);
        let lane = (0..thread)
            .filter(|&u| self.group(u, Scope::Warp) == warp)
            .count();
        self.group(thread, phase.domain) == phase.group
            && phase.lanes.is_none_or(|mask| mask >> lane & 1 != 0)
    }

    fn observe(&self, test: &LitmusTest, state: &State) -> Result<FinalState, Stop> {
        let mut observed = Vec::new();
        let mut note = |o: Observable| {
            if !observed.contains(&o) {
                observed.push(o);
            }
        };
        for prop in test.condition.iter().chain(&test.filter) {
            prop.observables(&mut note);
        }
        test.observe.iter().copied().for_each(&mut note);
        let mut values = Vec::new();
        for o in observed {
            match o {
                Observable::Reg(t, r) => {
                    let thread = &self.program.threads[t.0 as usize];
                    let register = &thread.regs[r.0 as usize];
                    let v = register
                        .ty
                        .wrap(state.threads[t.0 as usize].regs[r.0 as usize]);
                    values.push((
                        format!("{}:{}", thread.name, register.name).into(),
                        self.show(v).into(),
                    ));
                }
                Observable::Mem { loc, index, viewer } => {
                    let object = self.program.object(loc);
                    let copies = self.objects.iter().filter(|o| o.0 == object).count();
                    if copies > 1 && viewer.is_none() {
                        return Err(Stop::Unsupported("memory with several copies"));
                    }
                    let owner = self
                        .objects
                        .iter()
                        .find(|o| o.0 == object)
                        .map_or(0, |o| o.1);
                    let address = match viewer {
                        Some(v) => self.element_address(loc, index, v.0 as usize),
                        None => self.element_address(loc, index, owner),
                    };
                    let layout = self.program.layout(loc);
                    let (cell, ty) = self.cell(address, layout.field(index).ty)?;
                    let elements = self
                        .objects
                        .iter()
                        .find(|o| o.0 == object)
                        .map_or(1, |o| o.4);
                    let mut name = self.program.location(loc).name.clone();
                    name.push_str(&layout.suffix(index, elements));
                    if copies > 1 {
                        let viewer = viewer.map_or(0, |v| v.0 as usize);
                        let owner = match self.program.location(object).kind {
                            LocationKind::Object {
                                space: Space::Shared,
                                ..
                            } => self.group(viewer, Scope::Cta),
                            _ => viewer,
                        };
                        name = format!("{}:{name}", self.program.threads[owner].name);
                    }
                    values.push((name.into(), self.show(ty.wrap(state.memory[cell])).into()));
                }
            }
        }
        values.sort();
        Ok(values)
    }
}
