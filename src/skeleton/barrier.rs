//! Barriers: who lets whom pass, and which arrivals are ordered before which waits.
//!
//! A barrier instruction is an arrival and a wait. Whether a wait passes is a choice of the program, tied by a
//! constraint to what the other threads reach; waits that pass whatever happens are found first, so that code after an
//! ordinary barrier is not conditional.
//!
//! Two kinds (see [`crate::program::BarrierNaming`]):
//! - *Counted* barriers are PTX's: an arrival belongs to a phase. Where every thread that uses the barrier takes part in
//!   every phase (no count, or as many threads as the count), the phase is the number of earlier arrivals of the same
//!   thread. Where fewer threads than use it make up a phase, the phases are free choices.
//! - *Instance* barriers are those of the published suites: events with equal instance numbers and identifiers match;
//!   nothing resets.
//!
//! # Invariants
//! - A circular wait never passes, be it for an arrival or for the end of a thread: barrier edges together with program
//!   order must be acyclic, which the checkers enforce on [`BarrierEdges::order`].
//! # Sources
//! - PTX ISA, Parallel Synchronization and Communication Instructions, `bar`/`barrier`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::pool::{Cond, Pool, TermId};
use super::progress::Purpose;
use super::unroll::{Arrival, Ending, Group, Naming, Unrolled, Wait, WaitKey};
use super::{BuildError, MAX_PHASE_CHOICES};
use crate::program::{CmpOp, Dialect, Program, Scope, ThreadId, Ty};
use crate::rel::EventId;

/// Pairs of events, each under a condition that holds given that both execute.
pub(super) type Edges = Vec<(EventId, EventId, Cond)>;

/// What barriers contribute to a skeleton.
#[derive(Default)]
pub(super) struct BarrierEdges {
    /// Arrival to wait of one barrier and phase: the base relation `syncbar`.
    pub(super) sync: Edges,
    /// Event of a thread to a wait that passes because that thread has ended: the base relation `exitbar`.
    pub(super) exits: Edges,
    /// Order in time that barriers impose: `sync`, `exits`, and arrivals of one phase before those of the next.
    pub(super) order: Edges,
    /// Arrivals to themselves, where some thread of the group ends, or waits elsewhere for ever, without having arrived
    /// at that barrier in that phase: the base relation `divergence`.
    pub(super) divergence: Edges,
    /// Events of one barrier and phase, in either direction, for questions about progress.
    pub(super) partners: Edges,
    /// Conditions that every execution satisfies.
    pub(super) constraints: Vec<Cond>,
    /// By choice: the condition under which the wait that it stands for passes.
    pub(super) decided: FxHashMap<u32, Cond>,
}

/// Waits that pass whenever they are reached, whatever the other threads read.
pub(super) fn passing(program: &Program, out: &mut Unrolled) -> Result<FxHashSet<WaitKey>, BuildError> {
    let mut known: FxHashSet<WaitKey> = FxHashSet::default();
    let waits = out.waits.clone();
    loop {
        let mut care = Cond::TRUE;
        for w in waits.iter().filter(|w| known.contains(&w.key)) {
            care = out.pool.and(care, w.pass);
        }
        let before = known.len();
        for w in &waits {
            if known.contains(&w.key) {
                continue;
            }
            let passes = Rules::new(program, out).passes(w)?;
            let given = out.pool.and(care, w.reached);
            if w.reached != Cond::FALSE && out.pool.restrict(passes, given) == Cond::TRUE {
                known.insert(w.key.clone());
            }
        }
        if known.len() == before {
            return Ok(known);
        }
    }
}

/// The edges and constraints of all barriers.
pub(super) fn edges(program: &Program, out: &mut Unrolled, purpose: Purpose) -> Result<BarrierEdges, BuildError> {
    let mut result = BarrierEdges::default();
    if out.arrivals.is_empty() && out.waits.is_empty() {
        return Ok(result);
    }
    let (arrivals, waits) = (out.arrivals.clone(), out.waits.clone());
    let mut rules = Rules::new(program, out);
    let chosen = rules.choose(&mut result.constraints)?;
    for w in &waits {
        let passes = rules.passes_with(w, &chosen)?;
        if w.pass != Cond::TRUE {
            if let Some(choice) = rules.pool().as_choice(w.pass) {
                result.decided.insert(choice, passes);
            }
            let tied = rules.pool().iff(w.pass, passes);
            let tied = rules.pool().implies(w.reached, tied);
            result.constraints.push(tied);
        }
        for (i, a) in arrivals.iter().enumerate() {
            let cond = rules.synchronises(i, a, w, &chosen)?;
            if cond != Cond::FALSE {
                result.sync.push((a.event, w.event, cond));
                result.order.push((a.event, w.event, cond));
            }
        }
        rules.exits(w, &chosen, &mut result)?;
    }
    if purpose.is_progress() {
        result.partners = result.sync.iter().flat_map(|&(a, w, c)| [(a, w, c), (w, a, c)]).collect();
        for (i, a) in arrivals.iter().enumerate() {
            for (j, b) in arrivals.iter().enumerate() {
                let cond = if i == j { Cond::FALSE } else { rules.together(i, a, j, b, &chosen) };
                if cond != Cond::FALSE {
                    result.partners.push((a.event, b.event, cond));
                }
            }
        }
    }
    if matches!(program.dialect, Dialect::OpenCl | Dialect::Cuda) {
        for (i, a) in arrivals.iter().enumerate() {
            let absent = rules.diverges(i, a, &chosen);
            let elsewhere = rules.other_call(i, a, &chosen);
            let cond = rules.pool().or(absent, elsewhere);
            if cond != Cond::FALSE {
                result.divergence.push((a.event, a.event, cond));
            }
        }
    }
    for (i, a) in arrivals.iter().enumerate() {
        for (j, b) in arrivals.iter().enumerate() {
            let cond = rules.next_phase(i, a, j, b, &chosen)?;
            if cond != Cond::FALSE {
                result.order.push((a.event, b.event, cond));
            }
        }
    }
    Ok(result)
}

/// Free choices made for arrivals, by index.
struct Chosen {
    /// Counted barriers with more threads than their count: `phase[i][k]`, arrival `i` is in phase `k`.
    phase: Vec<Option<Vec<Cond>>>,
    /// Instance barriers with a quorum: arrival `i` is in the chosen set.
    member: Vec<Option<Cond>>,
}

struct Rules<'a> {
    program: &'a Program,
    out: &'a mut Unrolled,
}

impl<'a> Rules<'a> {
    fn new(program: &'a Program, out: &'a mut Unrolled) -> Self {
        Rules { program, out }
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.out.pool
    }

    fn same_group(&self, group: Group, a: ThreadId, b: ThreadId) -> bool {
        let takes_part = |t| group.lanes.is_none_or(|mask| mask >> self.program.lane(t).min(31) & 1 != 0);
        let place = |t| &self.program.thread(t).place;
        a == b || (place(a).same(place(b), group.domain) && takes_part(a) && takes_part(b))
    }

    fn equal(&mut self, a: TermId, b: TermId) -> Cond {
        self.pool().cmp(CmpOp::Eq, Ty::WORD, a, b)
    }

    /// When two barrier operations name the same barrier.
    fn matches(&mut self, a: (ThreadId, Group, Naming), b: (ThreadId, Group, Naming)) -> Cond {
        if a.1 != b.1 || !self.same_group(a.1, a.0, b.0) {
            return Cond::FALSE;
        }
        match (a.2, b.2) {
            (Naming::Counted { id: x, .. }, Naming::Counted { id: y, .. }) => self.equal(x, y),
            (Naming::Instance { instance: i, id: x, .. }, Naming::Instance { instance: j, id: y, .. }) => {
                match (x, y) {
                    _ if i != j => Cond::FALSE,
                    (Some(x), Some(y)) => self.equal(x, y),
                    _ => Cond::TRUE,
                }
            }
            _ => Cond::FALSE,
        }
    }

    fn matching_arrivals(&mut self, to: (ThreadId, Group, Naming)) -> Vec<(usize, Arrival, Cond)> {
        let arrivals = self.out.arrivals.clone();
        let mut found = Vec::new();
        for (i, a) in arrivals.into_iter().enumerate() {
            let m = self.matches((a.thread, a.group, a.naming), to);
            if m != Cond::FALSE {
                found.push((i, a, m));
            }
        }
        found
    }

    fn constant(&self, t: TermId, what: &'static str) -> Result<usize, BuildError> {
        let v = self.out.pool.as_const(t).ok_or(BuildError::DynamicBarrierOperand(what))?;
        Ok(usize::try_from(v).unwrap_or(0))
    }

    /// The conditions "`of` arrived at this barrier before `event`", one per arrival.
    fn earlier(&mut self, of: ThreadId, event: EventId, to: (ThreadId, Group, Naming)) -> Vec<Cond> {
        let mut conds = Vec::new();
        for (_, a, m) in self.matching_arrivals(to) {
            if a.thread == of && a.event < event {
                conds.push(self.pool().and(a.guard, m));
            }
        }
        conds
    }

    /// The number of threads in a phase, if the barrier at `to` has a count.
    fn count_of(&mut self, to: (ThreadId, Group, Naming)) -> Result<Option<usize>, BuildError> {
        let mut counts = Vec::new();
        for (_, a, _) in self.matching_arrivals(to) {
            let Naming::Counted { count, .. } = a.naming else { continue };
            counts.push(count.map(|t| self.constant(t, "thread count")).transpose()?);
        }
        if let Naming::Counted { count, .. } = to.2 {
            counts.push(count.map(|t| self.constant(t, "thread count")).transpose()?);
        }
        counts.dedup();
        match counts.as_slice() {
            [one] => Ok(*one),
            _ => Err(BuildError::MixedBarrierCounts),
        }
    }

    fn users(&mut self, to: (ThreadId, Group, Naming)) -> Vec<ThreadId> {
        let mut users: Vec<ThreadId> = self.matching_arrivals(to).iter().map(|(_, a, _)| a.thread).collect();
        users.sort();
        users.dedup();
        users
    }

    /// Makes the free choices of all barriers, with their constraints.
    fn choose(&mut self, constraints: &mut Vec<Cond>) -> Result<Chosen, BuildError> {
        let arrivals = self.out.arrivals.clone();
        let mut chosen = Chosen { phase: vec![None; arrivals.len()], member: vec![None; arrivals.len()] };
        for (i, a) in arrivals.iter().enumerate() {
            let to = (a.thread, a.group, a.naming);
            match a.naming {
                Naming::Counted { .. } => {
                    let users = self.users(to).len();
                    if self.count_of(to)?.is_some_and(|c| c < users) {
                        let all = self.matching_arrivals(to).len();
                        if all > MAX_PHASE_CHOICES {
                            return Err(BuildError::TooManyPhases);
                        }
                        let phases: Vec<Cond> = (0..all).map(|_| self.pool().fresh_choice()).collect();
                        let one = self.pool().exactly(1, &phases);
                        constraints.push(self.pool().implies(a.guard, one));
                        chosen.phase[i] = Some(phases);
                    }
                }
                Naming::Instance { .. } => {
                    let matching = self.matching_arrivals(to);
                    let quorums: Vec<TermId> = self.quorums(to);
                    let mut all_needed = true;
                    for q in quorums.iter().copied() {
                        all_needed &= self.constant(q, "quorum")? >= matching.len();
                    }
                    if !quorums.is_empty() && !all_needed {
                        let member = self.pool().fresh_choice();
                        constraints.push(self.pool().implies(member, a.guard));
                        chosen.member[i] = Some(member);
                    }
                }
            }
        }
        self.constrain_phases(&arrivals, &chosen, constraints)?;
        let waits = self.out.waits.clone();
        for w in &waits {
            if let Naming::Instance { quorum, .. } = w.naming {
                let mut members = Vec::new();
                let mut all = Cond::TRUE;
                for (i, a, m) in self.matching_arrivals((w.thread, w.group, w.naming)) {
                    let Some(member) = chosen.member[i] else { continue };
                    let pool = self.pool();
                    members.push(pool.and(member, m));
                    let here = pool.and(a.guard, m);
                    let included = pool.implies(here, member);
                    all = pool.and(all, included);
                }
                if members.is_empty() {
                    continue;
                }
                let enough = match quorum {
                    Some(q) => {
                        let q = self.constant(q, "quorum")?;
                        self.pool().at_least(q, &members)
                    }
                    None => all,
                };
                let passed = self.pool().and(w.reached, w.pass);
                constraints.push(self.pool().implies(passed, enough));
            }
        }
        Ok(chosen)
    }

    fn quorums(&mut self, to: (ThreadId, Group, Naming)) -> Vec<TermId> {
        let waits = self.out.waits.clone();
        let mut quorums = Vec::new();
        for w in waits {
            if self.matches((w.thread, w.group, w.naming), to) != Cond::FALSE
                && let Naming::Instance { quorum: Some(q), .. } = w.naming
            {
                quorums.push(q);
            }
        }
        quorums.sort();
        quorums.dedup();
        quorums
    }

    fn constrain_phases(
        &mut self,
        arrivals: &[Arrival],
        chosen: &Chosen,
        constraints: &mut Vec<Cond>,
    ) -> Result<(), BuildError> {
        for (i, a) in arrivals.iter().enumerate() {
            let Some(phases) = &chosen.phase[i] else { continue };
            let to = (a.thread, a.group, a.naming);
            let count = self.count_of(to)?.expect("only counted barriers have phase choices");
            for (k, &mine) in phases.iter().enumerate() {
                let (_, others) = self.in_phase(to, k, chosen);
                let pool = self.pool();
                let here = pool.and(a.guard, mine);
                let too_many = pool.at_least(count + 1, &others);
                let few = pool.not(too_many);
                constraints.push(pool.implies(here, few));
                if k > 0 {
                    let (_, before) = self.in_phase(to, k - 1, chosen);
                    let pool = self.pool();
                    let full = pool.at_least(count, &before);
                    constraints.push(pool.implies(here, full));
                }
            }
            // Phases of one thread grow.
            for (j, b) in arrivals.iter().enumerate() {
                if b.thread != a.thread || b.event <= a.event {
                    continue;
                }
                let Some(later) = &chosen.phase[j] else { continue };
                let m = self.matches((b.thread, b.group, b.naming), to);
                let pool = self.pool();
                let both = pool.and(a.guard, b.guard);
                let both = pool.and(both, m);
                for (k, &mine) in phases.iter().enumerate() {
                    for &not_later in later.iter().take(k + 1) {
                        let clash = pool.and(mine, not_later);
                        let clash = pool.and(clash, both);
                        constraints.push(pool.not(clash));
                    }
                }
            }
        }
        Ok(())
    }

    /// Which arrivals at the barrier are in phase `k`.
    fn in_phase(&mut self, to: (ThreadId, Group, Naming), k: usize, chosen: &Chosen) -> (Vec<usize>, Vec<Cond>) {
        let (mut indices, mut conds) = (Vec::new(), Vec::new());
        for (i, a, m) in self.matching_arrivals(to) {
            let in_k = self.phase_is(i, &a, k, chosen);
            let pool = self.pool();
            let here = pool.and(a.guard, m);
            conds.push(pool.and(here, in_k));
            indices.push(i);
        }
        (indices, conds)
    }

    /// When arrival `i` is in phase `k`, given that it executes.
    fn phase_is(&mut self, i: usize, a: &Arrival, k: usize, chosen: &Chosen) -> Cond {
        match &chosen.phase[i] {
            Some(phases) => phases.get(k).copied().unwrap_or(Cond::FALSE),
            None => {
                let earlier = self.earlier(a.thread, a.event, (a.thread, a.group, a.naming));
                self.pool().exactly(k, &earlier)
            }
        }
    }

    /// When the wait is for phase `k`: its thread's latest arrival is in that phase.
    fn waits_for(&mut self, w: &Wait, k: usize, chosen: &Chosen) -> Cond {
        let own: Vec<(usize, Arrival, Cond)> = self
            .matching_arrivals((w.thread, w.group, w.naming))
            .into_iter()
            .filter(|(_, a, _)| a.thread == w.thread && a.event < w.event)
            .collect();
        let mut result = Cond::FALSE;
        let mut none_later = Cond::TRUE;
        for (i, a, m) in own.into_iter().rev() {
            let in_k = self.phase_is(i, &a, k, chosen);
            let pool = self.pool();
            let here = pool.and(a.guard, m);
            let latest = pool.and(here, none_later);
            let hit = pool.and(latest, in_k);
            result = pool.or(result, hit);
            let absent = pool.not(here);
            none_later = pool.and(none_later, absent);
        }
        result
    }

    fn passes(&mut self, w: &Wait) -> Result<Cond, BuildError> {
        let n = self.out.arrivals.len();
        // A chosen phase never lets a wait pass for sure: those barriers stay choices.
        let none = Chosen { phase: vec![None; n], member: vec![None; n] };
        if let Naming::Counted { .. } = w.naming {
            let to = (w.thread, w.group, w.naming);
            let users = self.users(to).len();
            if self.count_of(to)?.is_some_and(|c| c < users) {
                return Ok(Cond::FALSE);
            }
        }
        self.passes_with(w, &none)
    }

    /// When a wait that is reached lets its thread pass.
    fn passes_with(&mut self, w: &Wait, chosen: &Chosen) -> Result<Cond, BuildError> {
        let to = (w.thread, w.group, w.naming);
        let matching = self.matching_arrivals(to);
        match w.naming {
            Naming::Instance { quorum: None, .. } => {
                let mut all = Cond::TRUE;
                for (_, a, m) in matching {
                    let pool = self.pool();
                    let here = pool.implies(m, a.guard);
                    all = pool.and(all, here);
                }
                Ok(all)
            }
            Naming::Instance { quorum: Some(q), .. } => {
                let q = self.constant(q, "quorum")?;
                let mut here = Vec::new();
                for (_, a, m) in matching {
                    here.push(self.pool().and(a.guard, m));
                }
                Ok(self.pool().at_least(q, &here))
            }
            Naming::Counted { .. } => {
                let users = self.users(to);
                let count = self.count_of(to)?;
                let mut result = Cond::FALSE;
                for k in 0..matching.len() {
                    let mine = self.waits_for(w, k, chosen);
                    if mine == Cond::FALSE {
                        continue;
                    }
                    let (indices, in_k) = self.in_phase(to, k, chosen);
                    let full = match count {
                        Some(c) => self.pool().at_least(c, &in_k),
                        None => {
                            // Every thread of the group has arrived, or has ended.
                            let mut all = Cond::TRUE;
                            for t in self.program.thread_ids() {
                                if !self.same_group(w.group, w.thread, t) {
                                    continue;
                                }
                                let mut arrived = ended(&self.out.endings, t);
                                if users.contains(&t) {
                                    for (&i, &c) in indices.iter().zip(&in_k) {
                                        if self.out.arrivals[i].thread == t {
                                            arrived = self.pool().or(arrived, c);
                                        }
                                    }
                                }
                                all = self.pool().and(all, arrived);
                            }
                            all
                        }
                    };
                    let hit = self.pool().and(mine, full);
                    result = self.pool().or(result, hit);
                }
                Ok(result)
            }
        }
    }

    /// The events that come before a wait because their thread has to end before it passes: those of threads of the
    /// group that do not arrive in the phase waited for, if the barrier waits for all that have not ended.
    fn exits(&mut self, w: &Wait, chosen: &Chosen, result: &mut BarrierEdges) -> Result<(), BuildError> {
        let to = (w.thread, w.group, w.naming);
        if !matches!(w.naming, Naming::Counted { .. }) || self.count_of(to)?.is_some() {
            return Ok(());
        }
        for t in self.program.thread_ids() {
            if t == w.thread || !self.same_group(w.group, w.thread, t) {
                continue;
            }
            let mut absent = Cond::FALSE;
            for k in 0..self.out.arrivals.len() {
                let mine = self.waits_for(w, k, chosen);
                if mine == Cond::FALSE {
                    continue;
                }
                let (indices, in_k) = self.in_phase(to, k, chosen);
                let mut arrived = Cond::FALSE;
                for (&i, &c) in indices.iter().zip(&in_k) {
                    if self.out.arrivals[i].thread == t {
                        arrived = self.pool().or(arrived, c);
                    }
                }
                let pool = self.pool();
                let missing = pool.not(arrived);
                let hit = pool.and(mine, missing);
                absent = pool.or(absent, hit);
            }
            if absent == Cond::FALSE {
                continue;
            }
            for i in 0..self.out.events.len() {
                let (id, thread, guard) = (EventId::new(i), self.out.events[i].thread, self.out.events[i].guard);
                if thread != Some(t) {
                    continue;
                }
                let pool = self.pool();
                let care = pool.and(guard, w.reached);
                if pool.and(care, absent) != Cond::FALSE {
                    let cond = pool.restrict(absent, care);
                    result.exits.push((id, w.event, cond));
                    result.order.push((id, w.event, cond));
                }
            }
        }
        Ok(())
    }

    /// When a thread of the group meets arrival `i` at another call of the code that both run, given that it executes.
    /// OpenCL C, *Synchronization Functions*: all work-items must come to the barrier. CUDA Programming Guide,
    /// *Synchronization Functions*: the condition that leads to `__syncthreads` must not differ in the block; a warp's
    /// threads may meet wherever their masks agree, but each must be in its own.
    fn other_call(&mut self, i: usize, a: &Arrival, chosen: &Chosen) -> Cond {
        let lane = self.program.lane(a.thread);
        if a.group.lanes.is_some_and(|mask| mask >> lane.min(31) & 1 == 0) {
            return Cond::TRUE;
        }
        let counted = matches!(a.naming, Naming::Counted { .. });
        if !counted || (self.program.dialect == Dialect::Cuda && a.group.domain == Scope::Warp) {
            return Cond::FALSE;
        }
        let program = self.program;
        let call =
            |t: ThreadId, e: EventId, out: &Unrolled| program.thread(t).code[out.events[e.index()].instr].span;
        let code = |t: ThreadId| program.thread(t).code.first().map(|c| c.span);
        let mine = call(a.thread, a.event, self.out);
        let mut result = Cond::FALSE;
        for (j, b, m) in self.matching_arrivals((a.thread, a.group, a.naming)) {
            if b.thread == a.thread
                || code(b.thread) != code(a.thread)
                || call(b.thread, b.event, self.out) == mine
            {
                continue;
            }
            for k in 0..self.out.arrivals.len() {
                let (x, y) = (self.phase_is(i, a, k, chosen), self.phase_is(j, &b, k, chosen));
                let pool = self.pool();
                let here = pool.and(b.guard, m);
                let both = pool.and(x, y);
                let both = pool.and(both, here);
                result = pool.or(result, both);
            }
        }
        self.pool().restrict(result, a.guard)
    }

    /// When some thread of the group never comes to where arrival `i` is, given that it executes. In CUDA, threads that
    /// have ended are not waited for.
    fn diverges(&mut self, i: usize, a: &Arrival, chosen: &Chosen) -> Cond {
        let to = (a.thread, a.group, a.naming);
        let waits = self.out.waits.clone();
        let mut result = Cond::FALSE;
        for t in self.program.thread_ids() {
            if t == a.thread || !self.same_group(a.group, a.thread, t) {
                continue;
            }
            let mut arrived = Cond::FALSE;
            match a.naming {
                Naming::Instance { .. } => {
                    for (_, b, m) in self.matching_arrivals(to) {
                        if b.thread == t {
                            let here = self.pool().and(b.guard, m);
                            arrived = self.pool().or(arrived, here);
                        }
                    }
                }
                Naming::Counted { .. } => {
                    for k in 0..self.out.arrivals.len() {
                        let mine = self.phase_is(i, a, k, chosen);
                        if mine == Cond::FALSE {
                            continue;
                        }
                        let (indices, in_k) = self.in_phase(to, k, chosen);
                        for (&j, &c) in indices.iter().zip(&in_k) {
                            if self.out.arrivals[j].thread == t {
                                let both = self.pool().and(mine, c);
                                arrived = self.pool().or(arrived, both);
                            }
                        }
                    }
                }
            }
            let mut over = match self.program.dialect {
                Dialect::Cuda => Cond::FALSE,
                _ => ended(&self.out.endings, t),
            };
            for w in waits.iter().filter(|w| w.thread == t) {
                let blocked = self.pool().not(w.pass);
                let blocked = self.pool().and(w.reached, blocked);
                over = self.pool().or(over, blocked);
            }
            let missing = self.pool().not(arrived);
            let never = self.pool().and(missing, over);
            result = self.pool().or(result, never);
        }
        self.pool().restrict(result, a.guard)
    }

    /// When arrival `i` is ordered before the wait, given that both execute.
    fn synchronises(&mut self, i: usize, a: &Arrival, w: &Wait, chosen: &Chosen) -> Result<Cond, BuildError> {
        let m = self.matches((a.thread, a.group, a.naming), (w.thread, w.group, w.naming));
        if m == Cond::FALSE {
            return Ok(m);
        }
        match w.naming {
            Naming::Instance { .. } => Ok(match chosen.member[i] {
                Some(member) => self.pool().and(m, member),
                None => m,
            }),
            Naming::Counted { .. } => {
                let mut same = Cond::FALSE;
                for k in 0..self.out.arrivals.len() {
                    let in_k = self.phase_is(i, a, k, chosen);
                    if in_k == Cond::FALSE {
                        continue;
                    }
                    let mine = self.waits_for(w, k, chosen);
                    let both = self.pool().and(in_k, mine);
                    same = self.pool().or(same, both);
                }
                let cond = self.pool().and(m, same);
                // Only matters when both execute.
                let care = self.pool().and(a.guard, w.reached);
                Ok(self.pool().restrict(cond, care))
            }
        }
    }

    /// When two arrivals are at one barrier in one phase. Instance barriers have a single one.
    fn together(&mut self, i: usize, a: &Arrival, j: usize, b: &Arrival, chosen: &Chosen) -> Cond {
        let m = self.matches((a.thread, a.group, a.naming), (b.thread, b.group, b.naming));
        if m == Cond::FALSE || !matches!(a.naming, Naming::Counted { .. }) {
            return m;
        }
        let mut same = Cond::FALSE;
        for k in 0..self.out.arrivals.len() {
            let (first, second) = (self.phase_is(i, a, k, chosen), self.phase_is(j, b, k, chosen));
            let both = self.pool().and(first, second);
            same = self.pool().or(same, both);
        }
        self.pool().and(m, same)
    }

    /// When arrival `a` is in the phase right before that of `b`.
    fn next_phase(
        &mut self,
        i: usize,
        a: &Arrival,
        j: usize,
        b: &Arrival,
        chosen: &Chosen,
    ) -> Result<Cond, BuildError> {
        let Naming::Counted { .. } = a.naming else { return Ok(Cond::FALSE) };
        if i == j {
            return Ok(Cond::FALSE);
        }
        let m = self.matches((a.thread, a.group, a.naming), (b.thread, b.group, b.naming));
        if m == Cond::FALSE {
            return Ok(m);
        }
        let mut next = Cond::FALSE;
        for k in 0..self.out.arrivals.len() {
            let first = self.phase_is(i, a, k, chosen);
            if first == Cond::FALSE {
                continue;
            }
            let second = self.phase_is(j, b, k + 1, chosen);
            let both = self.pool().and(first, second);
            next = self.pool().or(next, both);
        }
        let cond = self.pool().and(m, next);
        let care = self.pool().and(a.guard, b.guard);
        Ok(self.pool().restrict(cond, care))
    }
}

fn ended(endings: &[Ending], thread: ThreadId) -> Cond {
    endings[thread.0 as usize].done
}
