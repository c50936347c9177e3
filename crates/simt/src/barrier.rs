//! Barriers: records arrivals and waits, completes phases, and hands knowledge from arrivals to
//! waits.
//!
//! *Counted* barriers are PTX's. A phase with a thread count completes after that many arrivals; a
//! phase without one, once every thread of the group has arrived or ended. Completion empties the
//! set of arrivals and releases the waiting threads, each with everything that arrivals carried.
//! The next arrival opens the next phase. A thread that has arrived cannot arrive again before the
//! phase completes: it waits. At a barrier without a count the second arrival is out of turn, which
//! is undefined. A grid's barrier waits even for threads that have ended, and then never completes.
//!
//! *Instance* barriers come from the published suites; nothing resets them. Without a quorum an
//! event passes once threads have reached every matching barrier of the program; it gets everything
//! that all of them carried. With a quorum `q`, the first `q` arrivals open the barrier for every
//! thread and for good; every wait gets what those `q` carried. The suites allow any set of at
//! least `q` reached events to be ordered before every wait. No outcome is lost: a larger set
//! orders more, and an event outside the set may as well come late.
//!
//! # Invariants
//! - A thread is in [`Phase::waiting`] only if it is in [`Phase::arrived`].
//!
//! # Sources
//! - PTX ISA, Parallel Synchronization and Communication Instructions, `bar`/`barrier`,
//!   `barrier.cluster`.

use super::code::{Act, Code, eval};
use super::record::Spot;
use super::set::Set;
use super::thread::ThreadState;
use super::{FaultKind, Result, StepHalt};
use program::dialect::Convergence;
use program::{Barrier, BarrierAction, BarrierNaming, Expr, Scope, ThreadId};

/// Identifies a barrier of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BarrierKey {
    domain: Scope,
    /// The lanes in the mask of a warp's barrier that has one.
    lanes: Option<u32>,
    /// The first thread of the group.
    group: usize,
    /// Whether the thread is alone at this barrier, because it names a mask without itself.
    alone: bool,
    /// The instance number of an instance barrier.
    instance: Option<i64>,
    id: Option<i64>,
}

/// The present phase of a barrier.
#[derive(Clone, Debug)]
pub(super) struct Phase<C> {
    pub(super) key: BarrierKey,
    /// Its number among all phases of the run; for the log alone.
    pub(super) number: u32,
    /// Thread count or quorum.
    pub(super) count: Option<i64>,
    pub(super) arrived: Set,
    pub(super) waiting: Set,
    /// Instance barriers: whether the barrier is open for good.
    pub(super) open: bool,
    /// The join of everything that the arrivals carried.
    pub(super) carried: C,
}

impl<C> Phase<C> {
    /// The threads that have to arrive before the phase completes, for a barrier without a count.
    fn missing(&self, code: &Code, over: &impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
        let awaits_ended = Barrier::awaits_ended(self.key.domain);
        self.key
            .members(code)
            .filter(move |&u| !self.arrived.has(u) && (awaits_ended || !over(u)))
    }
}

/// All barriers.
#[derive(Clone, Debug, Default)]
pub(super) struct Barriers<C> {
    /// Sorted by key.
    pub(super) phases: Vec<Phase<C>>,
    /// Completed phases whose wait has not executed yet, by thread.
    pub(super) granted: Vec<(BarrierKey, usize, C, u32)>,
    /// The number of phases opened so far.
    opened: u32,
    /// Instance barriers that threads have reached: thread and instruction.
    pub(super) reached: Vec<(usize, usize)>,
}

/// The effect of a barrier instruction.
pub(super) enum BarrierStep<C> {
    /// The thread goes on, with this knowledge.
    On(Option<C>),
    /// It waits.
    Waits,
}

/// The effect of a barrier instruction, and the number of the phase.
pub(super) type BarrierOutcome<C> = (BarrierStep<C>, u32);

fn unsupported(what: &str) -> StepHalt {
    StepHalt::Unsupported(format!("not in this machine: {what}"))
}

fn out_of_turn(at: Spot, what: &str) -> StepHalt {
    fault(at, format!("is out of turn: {what}"))
}

fn fault(at: Spot, what: String) -> StepHalt {
    StepHalt::Fault {
        kind: FaultKind::Barrier,
        thread: at.thread,
        instr: at.instr,
        what,
    }
}

/// The thread count of a phase whose threads give two different counts: a barrier without a count
/// takes all threads of the group.
fn common_count(
    code: &Code,
    key: &BarrierKey,
    at: Spot,
    present: Option<i64>,
    given: Option<i64>,
) -> Result<i64> {
    let group = key.members(code).count() as i64;
    if key.instance.is_some() {
        return Err(unsupported("one phase of a barrier with different quorums"));
    }
    let counts = [present, given];
    if counts.contains(&None) && counts.contains(&Some(group)) {
        return Ok(group);
    }
    fn of(count: Option<i64>) -> String {
        count.map_or("all threads".into(), |c| format!("{c} threads"))
    }
    Err(StepHalt::Fault {
        kind: FaultKind::Barrier,
        thread: at.thread,
        instr: at.instr,
        what: format!(
            "is for {}, where another thread came for {}",
            of(given),
            of(present)
        ),
    })
}

/// The barrier that an instruction names now, and its count or quorum.
fn naming(code: &Code, t: usize, b: &Barrier, regs: &[i64]) -> (BarrierKey, Option<i64>) {
    let (instance, id, count) = match &b.naming {
        BarrierNaming::Counted { id, count } => (None, Some(id), count),
        BarrierNaming::Instance {
            instance,
            id,
            quorum,
        } => (Some(*instance), id.as_ref(), quorum),
    };
    let value = |e: &Expr| eval(e, regs);
    let mask = b.lanes.as_ref().map(value);
    let lanes = mask.and_then(|mask| code.program.named_by(ThreadId(t as u16), mask));
    let alone = !takes_part(code, lanes, t);
    let group = if alone { t } else { code.group(t, b.domain) };
    let key = BarrierKey {
        domain: b.domain,
        lanes,
        group,
        alone,
        instance,
        id: id.map(value),
    };
    (key, count.as_ref().map(value))
}

/// Whether a thread is in a warp barrier's mask.
fn takes_part(code: &Code, lanes: Option<u32>, t: usize) -> bool {
    lanes.is_none_or(|mask| mask >> code.lanes[t].min(31) & 1 != 0)
}

impl BarrierKey {
    /// The threads that the barrier is for.
    fn members(&self, code: &Code) -> impl Iterator<Item = usize> {
        let group = code.members(self.group, self.domain).iter().copied();
        group.filter(|&u| self.holds(code, u))
    }

    /// Whether the barrier is for this thread.
    fn holds(&self, code: &Code, t: usize) -> bool {
        match self.alone {
            true => t == self.group,
            false => {
                // The group is named by its first thread.
                code.group(t, self.domain) == self.group && takes_part(code, self.lanes, t)
            }
        }
    }
}

/// Whether an arrival at this barrier commutes with every step of other threads. It does if the
/// participants of a phase do not depend on the order of arrival. A barrier without a count may be
/// one that other threads reach with a count.
pub(super) fn arrival_commutes(code: &Code, b: &Barrier) -> bool {
    // Whether the arrival is out of turn depends on earlier arrivals.
    let in_turn = b.action != BarrierAction::Arrive || !b.takes_turns();
    in_turn
        && !b.says_count()
        && (!code.counts || matches!(b.naming, BarrierNaming::Instance { .. }))
}

impl<C: Clone + Default> Barriers<C> {
    /// Executes a barrier instruction of a thread; its arrival hands `carried` over.
    pub(super) fn execute(
        &mut self,
        code: &Code,
        at: Spot,
        b: &Barrier,
        regs: &[i64],
        carried: &C,
        join: impl Fn(&mut C, &C),
    ) -> Result<BarrierOutcome<C>> {
        let t = at.thread;
        let (key, count) = naming(code, t, b, regs);
        let is_aligned = code.program.dialect.row().convergence == Convergence::Aligned;
        // Other languages report it at the end of a run, with their other undefined behaviour.
        if key.alone && is_aligned {
            return Err(fault(at, "names threads without itself".to_owned()));
        }
        let granted = self.granted.iter().position(|g| g.0 == key && g.1 == t);
        if b.action == BarrierAction::Wait {
            return self.wait(&key, granted, at, b);
        }
        // In PTX, a thread that knows in another way that the phase is over may arrive again.
        let is_open = self
            .phases
            .iter()
            .any(|p| p.key == key && p.count.is_none() && p.arrived.has(t));
        if b.takes_turns() && (is_open || granted.is_some() && !is_aligned) {
            return Err(out_of_turn(
                at,
                "the thread has arrived, and has not waited since",
            ));
        }
        self.granted.retain(|g| g.0 != key || g.1 != t);
        if key.instance.is_some() {
            check_instance(code, at, b)?;
            self.reached.push((t, at.instr));
            self.reached.sort_unstable();
        }
        let index = self.phase_of(&key, count);
        let phase = &mut self.phases[index];
        // A thread that has arrived waits for the phase to end, whatever its action is.
        if !phase.open && phase.arrived.has(t) {
            if key.instance.is_some() {
                return Err(unsupported(
                    "a thread that reaches one barrier instance twice",
                ));
            }
            return Err(StepHalt::Blocked);
        }
        if phase.count != count {
            phase.count = Some(common_count(code, &key, at, phase.count, count)?);
        }
        if phase.open {
            let carried = (b.action == BarrierAction::Sync).then(|| phase.carried.clone());
            return Ok((BarrierStep::On(carried), phase.number));
        }
        phase.arrived.insert(t);
        join(&mut phase.carried, carried);
        if b.action == BarrierAction::Arrive {
            return Ok((BarrierStep::On(None), phase.number));
        }
        phase.waiting.insert(t);
        Ok((BarrierStep::Waits, phase.number))
    }

    /// Executes a wait without an arrival; `granted` is the index of the thread's completed phase.
    fn wait(
        &mut self,
        key: &BarrierKey,
        granted: Option<usize>,
        at: Spot,
        b: &Barrier,
    ) -> Result<BarrierOutcome<C>> {
        let t = at.thread;
        let arrived = self
            .phases
            .iter()
            .position(|p| p.key == *key && p.arrived.has(t));
        if b.takes_turns() && granted.is_none() && arrived.is_none() {
            return Err(out_of_turn(
                at,
                "the thread has not arrived since it waited last",
            ));
        }
        if let Some(i) = granted {
            let (_, _, carried, number) = self.granted.remove(i);
            return Ok((BarrierStep::On(Some(carried)), number));
        }
        if let Some(i) = arrived {
            self.phases[i].waiting.insert(t);
        }
        Ok((BarrierStep::Waits, 0))
    }

    /// The index of a barrier's present phase, which this opens if there is none.
    fn phase_of(&mut self, key: &BarrierKey, count: Option<i64>) -> usize {
        let at = match self.phases.binary_search_by(|p| p.key.cmp(key)) {
            Ok(at) => return at,
            Err(at) => at,
        };
        let number = self.opened;
        self.opened += 1;
        self.phases.insert(
            at,
            Phase {
                key: key.clone(),
                number,
                count,
                arrived: Set::default(),
                waiting: Set::default(),
                open: false,
                carried: C::default(),
            },
        );
        at
    }

    /// Whether a thread reaches a barrier at which it has already arrived, in a phase that is not
    /// over. It then waits until the phase is over.
    pub(super) fn holds_up(&self, code: &Code, t: usize, thread: &ThreadState) -> bool {
        let Some(b) = code.threads[t].acts.get(thread.pc).and_then(Act::barrier) else {
            return false;
        };
        if b.action == BarrierAction::Wait || matches!(b.naming, BarrierNaming::Instance { .. }) {
            return false;
        }
        let (key, _) = naming(code, t, b, &thread.regs);
        self.phases
            .iter()
            .any(|p| p.key == key && p.arrived.has(t) && !(b.takes_turns() && p.count.is_none()))
    }

    /// A thread that waits in the phase that `t` is about to join, and runs the same code, but at
    /// another call. It is returned only if that is an error. It is one for `__syncthreads` in the
    /// whole block, and for PTX's aligned barriers within a warp.
    pub(super) fn elsewhere(
        &self,
        code: &Code,
        at: Spot,
        b: &Barrier,
        threads: &[ThreadState],
    ) -> Option<usize> {
        let t = at.thread;
        let BarrierNaming::Counted { count: None, .. } = &b.naming else {
            return None;
        };
        let stands = |u: usize| code.threads[u].acts.get(threads[u].pc);
        let split = |u: usize| {
            let barrier = stands(u).and_then(Act::barrier);
            barrier.is_some_and(|b| b.action == BarrierAction::Wait)
        };
        // A thread that only waits arrived at another instruction, which its state does not keep.
        let part = |u: usize| threads[u].pc != at.instr && code.kin[u] == code.kin[t] && !split(u);
        let reach = match code.program.dialect.row().convergence {
            Convergence::Running if b.domain == Scope::Cta => Scope::Cta,
            // If another thread of the warp waits at any barrier, it is a different one.
            Convergence::Aligned if b.is_aligned() => {
                let aligned = |u: usize| {
                    let barrier = stands(u).and_then(Act::barrier);
                    barrier.is_some_and(Barrier::is_aligned)
                };
                let mut all = self
                    .phases
                    .iter()
                    .filter(|p| {
                        p.key.domain == b.domain && p.count.is_none() && p.key.instance.is_none()
                    })
                    .flat_map(|p| p.waiting.iter());
                return all.find(|&u| part(u) && aligned(u) && code.holds(t, Scope::Warp, u));
            }
            _ => return None,
        };
        let (key, _) = naming(code, t, b, &threads[t].regs);
        let phase = self.phases.iter().find(|p| p.key == key)?;
        phase
            .waiting
            .iter()
            .find(|&u| part(u) && code.holds(t, reach, u))
    }

    /// Completes phases until none can complete. Calls `release` for each thread that goes on, with
    /// the knowledge that it gets.
    pub(super) fn complete(
        &mut self,
        code: &Code,
        over: impl Fn(usize) -> bool,
        mut release: impl FnMut(usize, &C, u32),
    ) {
        while let Some(at) = self
            .phases
            .iter()
            .position(|p| !p.open && self.is_full(code, p, &over))
        {
            if self.phases[at].key.instance.is_some() {
                let phase = &mut self.phases[at];
                phase.open = true;
                let waiting = std::mem::take(&mut phase.waiting);
                waiting
                    .iter()
                    .for_each(|t| release(t, &phase.carried, phase.number));
                continue;
            }
            let phase = self.phases.remove(at);
            for t in phase.arrived.iter() {
                if phase.waiting.has(t) {
                    release(t, &phase.carried, phase.number);
                } else if waits_later(code, t, phase.key.domain) {
                    self.granted.retain(|g| g.0 != phase.key || g.1 != t);
                    self.granted
                        .push((phase.key.clone(), t, phase.carried.clone(), phase.number));
                    self.granted.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
                }
            }
        }
    }

    /// Barriers with waiting threads: the arrived threads, the waiting threads, the missing ones
    /// (ended or not), and the thread count.
    pub(super) fn waits<'a>(
        &'a self,
        code: &'a Code,
        over: impl Fn(usize) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a Set, &'a Set, Vec<usize>, Option<i64>)> {
        let waiting = self.phases.iter().filter(|p| !p.waiting.is_empty());
        waiting.map(move |p| {
            let missing = p.missing(code, &over).collect();
            (&p.arrived, &p.waiting, missing, p.count)
        })
    }

    fn is_full(&self, code: &Code, p: &Phase<C>, over: &impl Fn(usize) -> bool) -> bool {
        if p.arrived.is_empty() {
            return false;
        }
        match (p.count, p.key.instance) {
            (Some(n), _) => p.arrived.len() as i64 >= n,
            (None, None) => p.missing(code, over).next().is_none(),
            (None, Some(instance)) => p.key.members(code).all(|u| {
                barriers(code, u).all(|(pc, b)| {
                    !is_instance(b, instance)
                        || self.reached.contains(&(u, pc))
                        || known_id(code, u, pc, b).is_some_and(|id| id != p.key.id)
                })
            }),
        }
    }
}

fn barriers(code: &Code, t: usize) -> impl Iterator<Item = (usize, &Barrier)> {
    code.threads[t]
        .acts
        .iter()
        .enumerate()
        .filter_map(|(pc, a)| Some((pc, a.barrier()?)))
}

fn is_instance(b: &Barrier, number: i64) -> bool {
    matches!(b.naming, BarrierNaming::Instance { instance, .. } if instance == number)
}

fn waits_later(code: &Code, t: usize, domain: Scope) -> bool {
    barriers(code, t).any(|(_, b)| b.action == BarrierAction::Wait && b.domain == domain)
}

/// The identifier that an instance barrier will name at every execution, if the code shows it.
fn known_id(code: &Code, t: usize, pc: usize, b: &Barrier) -> Option<Option<i64>> {
    let BarrierNaming::Instance { id, .. } = &b.naming else {
        return None;
    };
    match id {
        None => Some(None),
        Some(Expr::Const(v)) => Some(Some(*v)),
        Some(Expr::Reg(r)) => {
            // The register receives only constants, and no branch precedes.
            let thread = &code.threads[t];
            let mut value = Some(thread.start[r.0 as usize]);
            for act in &thread.acts[..pc] {
                match act {
                    Act::Branch { .. } => return None,
                    Act::Assign {
                        dst,
                        value: Expr::Const(v),
                    } if dst == r => value = Some(*v),
                    act if act.defines() == Some(*r) => value = None,
                    _ => {}
                }
            }
            value.map(Some)
        }
        Some(_) => None,
    }
}

/// Checks that an instance barrier has one meaning: threads reach each one at most once, and its
/// kind is the same everywhere.
fn check_instance(code: &Code, spot: Spot, b: &Barrier) -> Result {
    let BarrierNaming::Instance {
        instance,
        id,
        quorum,
    } = &b.naming
    else {
        return Ok(());
    };
    let (pc, acts) = (spot.instr, &code.threads[spot.thread].acts);
    let looped = acts
        .iter()
        .enumerate()
        .any(|(at, a)| a.target().is_some_and(|target| target <= pc && pc <= at));
    if looped {
        return Err(unsupported("a barrier instance in a loop"));
    }
    for u in 0..code.threads.len() {
        for (at, other) in barriers(code, u).filter(|(_, o)| is_instance(o, *instance)) {
            if quorum.is_none() && known_id(code, u, at, other).is_none() {
                // Another thread could pass before this identifier, which may name another barrier,
                // is known.
                return Err(unsupported(
                    "a barrier instance with an identifier that depends on a read",
                ));
            }
            let BarrierNaming::Instance {
                id: x, quorum: q, ..
            } = &other.naming
            else {
                continue;
            };
            if x.is_some() != id.is_some() || q.is_some() != quorum.is_some() {
                return Err(unsupported(
                    "one barrier instance with and without an identifier or a quorum",
                ));
            }
        }
    }
    Ok(())
}
