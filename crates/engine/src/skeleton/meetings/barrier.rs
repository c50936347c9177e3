//! Decides which waits at barriers pass, and which arrivals come before which waits.
//!
//! A barrier instruction is an arrival and a wait. Whether a wait passes is a choice of the
//! program; a constraint ties it to the arrivals of the other threads. Waits that always pass are
//! found first, so that code after an ordinary barrier is not conditional.
//!
//! There are two kinds (see [`program::BarrierNaming`]):
//! - *Counted* barriers are PTX's: an arrival belongs to a phase. Every thread that uses the
//!   barrier may take part in every phase (no count, or as many threads as the count). The phase is
//!   then the number of earlier arrivals of the same thread. If fewer threads make up a phase, or
//!   threads give different counts, the phases are free choices. After an arrival without a wait, a
//!   thread waits before it arrives again. The exception is a barrier of all threads of the group:
//!   there such arrivals and waits have to take turns ([`turns`]).
//! - *Instance* barriers are those of the published suites: events with equal instance numbers and
//!   identifiers match; nothing resets.
//!
//! # Invariants
//! - A circular wait never passes, whether it waits for an arrival or for the end of a thread.
//!   Barrier edges together with program order must be acyclic, which the checkers enforce on
//!   [`BarrierEdges::order`].
//!
//! # Sources
//! - PTX ISA, Parallel Synchronization and Communication Instructions, `bar`/`barrier`.

mod aligned;
pub(crate) mod alike;
mod divergence;
mod matching;
mod passing;
mod phases;
mod together;
mod turns;

use program::{Tag, ThreadId};
use std::collections::BTreeSet;
use std::rc::Rc;

use alike::SharedWaits;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::skeleton::graph::{EdgeKind, EdgeLists, Edges};
use crate::skeleton::pool::{Cond, TermId, TermPool};
use crate::skeleton::progress::Purpose;
use crate::skeleton::unrolling::deps::WaitDecision;
use crate::skeleton::unrolling::unrolled::{BarrierGroup, GuardedArrival, Unrolling, Use, WaitKey};
use cat::rel::EventId;
use program::Program;
use program::dialect::Convergence;
use verdict::Reason;

/// The edges and constraints that barriers add to a skeleton.
#[derive(Default)]
pub(crate) struct BarrierEdges {
    /// Pairs of events by kind.
    pub(crate) edges: EdgeLists,
    /// A wait, the condition that its thread reaches it, and the condition that it passes because
    /// some thread ended without arriving.
    pub(crate) absent: Vec<(EventId, Cond, Cond)>,
    /// Events of one barrier and phase, in either direction, for questions about progress.
    pub(crate) partners: Edges,
    /// Conditions that every execution satisfies.
    pub(crate) constraints: Vec<Cond>,
    /// By choice: the conditions that decide whether its wait passes.
    pub(crate) decided: FxHashMap<u32, WaitDecision>,
}

/// Waits that pass whenever a thread reaches them, whatever the other threads read; and the classes
/// of waits that pass alike.
pub(crate) fn passing(
    program: &Program,
    out: &mut Unrolling,
    purpose: Purpose,
) -> Result<(FxHashSet<WaitKey>, SharedWaits), Reason> {
    let mut known: FxHashSet<WaitKey> = FxHashSet::default();
    let waits = out.waits.clone();
    let mut rules = BarrierRules::new(program, out, purpose);
    // The known waits decide only whether another wait surely passes, not when it passes.
    let passes = waits
        .iter()
        .map(|w| rules.passes(w))
        .collect::<Result<Vec<Cond>, Reason>>()?;
    // A conjunction of choices: restricted to it, a condition is its cofactor, so that whether one
    // implies another there is decided exactly. It grows by rounds, since waits of one phase then
    // share what is restricted, and from the last choice to the first, which shares its parts.
    let mut care = Cond::TRUE;
    loop {
        let before = known.len();
        let mut found: FxHashSet<WaitKey> = FxHashSet::default();
        for (w, &passes) in waits.iter().zip(&passes) {
            if known.contains(&w.key) || w.reached == Cond::FALSE {
                continue;
            }
            let pool = rules.pool();
            let [reached, here] = [w.reached, passes].map(|c| pool.restrict(c, care));
            let implied = reached != Cond::FALSE && pool.entails(reached, here);
            if passes == Cond::TRUE || implied {
                found.insert(w.key.clone());
            }
        }
        let choices = waits.iter().filter(|w| found.contains(&w.key));
        let more = choices
            .rev()
            .fold(Cond::TRUE, |more, w| rules.pool().and(w.pass, more));
        care = rules.pool().and(care, more);
        known.extend(found);
        if known.len() == before {
            let shared = match purpose.is_progress() {
                true => SharedWaits::default(),
                false => alike::classes(&waits, &passes, &known),
            };
            return Ok((known, shared));
        }
    }
}

/// The edges and constraints of all barriers.
pub(crate) fn edges(
    program: &Program,
    out: &mut Unrolling,
    purpose: Purpose,
) -> Result<BarrierEdges, Reason> {
    let mut result = BarrierEdges::default();
    let of_lanes = out.events.iter().any(|event| event.tags.has(Tag::Lanes));
    if out.arrivals.is_empty() && out.waits.is_empty() && out.segments.is_empty() && !of_lanes {
        return Ok(result);
    }
    let (arrivals, waits) = (out.arrivals.clone(), out.waits.clone());
    let mut rules = BarrierRules::new(program, out, purpose);
    let chosen = rules.choose(&mut result.constraints)?;
    if chosen.phase.iter().any(Option::is_some) {
        // Phases are chosen in the order in which threads arrive, and lanes that meet respect it.
        result
            .edges
            .of_mut(EdgeKind::BarrierOrder)
            .extend_from_slice(&rules.out.meets);
    }
    for w in &waits {
        let passes = rules.passes_with(w, &chosen)?;
        if w.pass != Cond::TRUE {
            if let Some(choice) = rules.pool().as_choice(w.pass) {
                result.decided.insert(
                    choice,
                    WaitDecision {
                        reached: w.reached,
                        passes,
                    },
                );
            }
            let tied = rules.pool().iff(w.pass, passes);
            let tied = rules.pool().implies(w.reached, tied);
            result.constraints.push(tied);
        }
        for (i, a, _) in rules.matching_arrivals(w.at).iter() {
            let cond = rules.synchronises(*i, a, w, &chosen)?;
            if cond != Cond::FALSE {
                // A wait before an arrival does not synchronize.
                let edges = if w.to_arrive() {
                    result.edges.of_mut(EdgeKind::Next)
                } else {
                    result.edges.of_mut(EdgeKind::Sync)
                };
                edges.push((a.event, w.event, cond));
                result
                    .edges
                    .add(EdgeKind::BarrierOrder, (a.event, w.event, cond));
            }
        }
        rules.exits(w, &chosen, &mut result)?;
    }
    *result.edges.of_mut(EdgeKind::OutOfTurn) = rules.out_of_turn()?;
    rules.leave_out(&chosen, &mut result.constraints);
    if purpose.is_progress() {
        result.partners = rules.partners(&arrivals, &chosen, &result.edges);
    }
    if matches!(
        program.dialect.row().convergence,
        Convergence::All | Convergence::Running
    ) {
        for (i, a) in arrivals.iter().enumerate() {
            let absent = rules.diverges(i, a, &chosen);
            let elsewhere = rules.other_call(i, a, &chosen);
            let cond = rules.pool().or(absent, elsewhere);
            if cond != Cond::FALSE {
                result
                    .edges
                    .add(EdgeKind::Divergence, (a.event, a.event, cond));
            }
        }
    }
    if program.dialect.row().convergence == Convergence::Aligned {
        *result.edges.of_mut(EdgeKind::Divergence) = rules.unaligned();
    }
    for (i, a) in arrivals.iter().enumerate() {
        rules.exits_to_arrive(i, a, &chosen, &mut result)?;
        for (j, b, _) in rules.matching_arrivals(a.at).iter() {
            rules.meets_unlike((i, a), (*j, b), &chosen, &mut result);
            let cond = rules.next_phase((i, a), (*j, b), &chosen)?;
            if cond != Cond::FALSE {
                result
                    .edges
                    .add(EdgeKind::BarrierOrder, (a.event, b.event, cond));
            }
        }
    }
    Ok(result)
}

/// The rules of barriers, over the unrolled events. [`matching`] finds the partners, [`phases`] the
/// phases; [`passing()`], [`divergence`] and [`aligned`] derive the results.
struct BarrierRules<'a> {
    program: &'a Program,
    purpose: Purpose,
    out: &'a mut Unrolling,
    /// By arrival with a determined phase: the condition for each phase.
    determined: FxHashMap<usize, Rc<[Cond]>>,
    /// By wait, under the chosen phases: the condition for each phase. The phases are chosen before
    /// the first wait is examined.
    waited: FxHashMap<(EventId, bool), Rc<[Cond]>>,
    // The rest is the same for all operations at a barrier, or for all arrivals of a thread. It is
    // computed once: there are as many pairs of operations as threads squared.
    /// The first thread with which a thread can meet in a group.
    firsts: FxHashMap<(BarrierGroup, ThreadId), ThreadId>,
    /// By barrier: the arrivals that may be there.
    matching: FxHashMap<BarrierId, MatchingArrivals>,
    /// By barrier: the thread counts of its arrivals.
    counts: FxHashMap<BarrierId, BTreeSet<Option<usize>>>,
    /// By barrier and counts: whether the program determines the phases.
    fixed_phases: FxHashMap<(BarrierId, Vec<Option<usize>>), bool>,
    /// By barrier and phase, under the chosen phases: the arrivals in it.
    in_phase: FxHashMap<(BarrierId, usize), PhaseArrivals>,
    /// As `in_phase`, by thread.
    threads_in_phase: FxHashMap<(BarrierId, usize), Rc<FxHashMap<ThreadId, Cond>>>,
    /// By barrier, phase and counts: the condition that the phase is complete.
    full: FxHashMap<(BarrierId, usize, Vec<Option<usize>>), Cond>,
    /// By thread: the condition that it waits without end.
    stuck: FxHashMap<ThreadId, Cond>,
    /// By instruction and thread: the condition that it executes an event behind the instruction.
    behind: FxHashMap<(usize, ThreadId), Cond>,
}

/// The arrivals that may be at a barrier, each with its number and its condition.
type MatchingArrivals = Rc<[(usize, GuardedArrival, Cond)]>;

/// The arrivals that may be in a phase, each with its condition.
type PhaseArrivals = Rc<[(Use, Cond)]>;

/// A barrier: operations with equal ids meet the same other operations under the same conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct BarrierId {
    group: BarrierGroup,
    /// The first thread that can meet there.
    first: ThreadId,
    /// The instance, and the term that names the barrier.
    name: (Option<i64>, Option<TermId>),
}

impl<'a> BarrierRules<'a> {
    fn new(program: &'a Program, out: &'a mut Unrolling, purpose: Purpose) -> Self {
        BarrierRules {
            program,
            purpose,
            out,
            determined: FxHashMap::default(),
            waited: FxHashMap::default(),
            firsts: FxHashMap::default(),
            matching: FxHashMap::default(),
            counts: FxHashMap::default(),
            fixed_phases: FxHashMap::default(),
            in_phase: FxHashMap::default(),
            threads_in_phase: FxHashMap::default(),
            full: FxHashMap::default(),
            stuck: FxHashMap::default(),
            behind: FxHashMap::default(),
        }
    }

    fn pool(&mut self) -> &mut TermPool {
        &mut self.out.pool
    }
}

#[cfg(test)]
mod tests {
    use crate::skeleton::Skeleton;
    use crate::tests::parsed;
    use program::options::OptionValues;
    use verdict::Reason;

    /// The skeleton of a block whose threads meet again and again; in the end, one of them goes
    /// around a barrier if it reads a value.
    fn meeting(threads: usize, times: usize) -> Result<Skeleton, Reason> {
        let mut text = "name = \"Meeting\"\nmemory = { x = 0 }\ncondition = 'x == 1'\n".to_owned();
        let again = "bar.sync 0; ".repeat(times);
        for t in 0..threads {
            let last = match t {
                0 => "ld.relaxed.cta.u32 r, [x]; setp.eq.u32 p, r, 1; @p bra E; bar.sync 0; E:",
                1 => "st.relaxed.cta.u32 [x], 1; bar.sync 0;",
                _ => "bar.sync 0;",
            };
            text += &format!("[[thread]]\ncta = 0\ncode = '{again}{last}'\n");
        }
        Skeleton::build(&parsed(&text), OptionValues::default(), 1)
    }

    #[test]
    fn phases_of_many_threads_have_few_parts() {
        let size = |threads| meeting(threads, 8).expect("small").pool.size();
        // Before the barriers are known to pass, each wait is a choice.
        assert!(size(120) < 12 * size(40));
    }
}
