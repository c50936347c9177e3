//! Finds the reads that can observe memory before any write to it, where that memory may hold any
//! value (`Init::Unknown`).
//!
//! # Invariants
//! - Programs run with 0 in place of such a value. The value may be 0, so an execution that an
//!   engine finds is real. The checker answers "no execution" only if that does not depend on the
//!   value. To this end, a read that can observe it returns a value that is not worked out
//!   ([`program::unknown`]).
//! - The 0 hides no such read. In any execution, the first read of such memory depends on no such
//!   value. Up to that read, the execution is also one with zeros. So executions count even if they
//!   do not run to their end.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Variable Memory Space Specifiers*; PTX ISA 9.4, *Initializers*
//!   (`.global` and `.const` alone); OpenCL C, *Local Address Space Qualifier*: memory that a group
//!   shares has no first value.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::execution::Execution;
use super::facts::{Facts, UnwrittenReads, has_unknown};
use super::query::Query;
use crate::facts::bounds::TaskBounds;
use crate::skeleton::base::Base;
use crate::skeleton::signature::{self, of_the_checker};
use crate::skeleton::{Cond, Skeleton};
use cat::model::ir::{Axiom, Kind, Model, ModelNode, NodeId, NodeOp, Test, TestEffect};
use cat::rel::{EventSet, Rel};
use program::memory::{Cell, CellId};
use program::unknown::{Site, Unknowns};
use verdict::Reason;

/// The name of the flag that marks these reads.
const FLAG: &str = "unwritten";

/// After this number of searches, all remaining reads count.
const MOST: usize = 16;

/// A function that runs the engines: it returns an execution of the task that the query describes,
/// if one exists.
pub(crate) type Ask<'x> =
    dyn for<'t> Fn(Facts<'t>, &Query<'t>) -> Result<Option<Execution>, Reason> + 'x;

/// Whether this is the flag that marks these reads. It distinguishes threads that are otherwise
/// alike.
pub(crate) fn is_ours(model: &Model, flag: usize) -> bool {
    model.flags[flag].name == FLAG && model.flags[flag].effect == TestEffect::Hazard
}

/// What may observe memory before any write to it, as far as bounds tell.
pub(crate) struct Suspects {
    /// The initial writes of memory that may hold any value.
    initial: EventSet,
    /// Reads, each with the initial writes that it may read from.
    reads: BTreeMap<usize, Vec<usize>>,
    /// Writes and reads of one place where the read never reads from the write.
    never: Rel,
}

impl Suspects {
    /// Finds the suspects of a task. `None` if its memory begins with known values. Also returns
    /// the bounds of the task.
    ///
    /// # Errors
    /// There is no time left.
    pub(crate) fn of(
        facts: &Facts<'_>,
        deadline: Option<Instant>,
    ) -> Result<Option<(Suspects, TaskBounds)>, Reason> {
        if !has_unknown(&facts.sk.memory) {
            return Ok(None);
        }
        let sk = &facts.sk;
        let initial = EventSet::from_fn(sk.len(), |e| {
            let e = e.index();
            sk.events[e].thread.is_none()
                && facts
                    .surely_at(e)
                    .is_some_and(|c| first_cell(sk, c).unknown)
        });
        let all = vec![true; facts.task.model.axioms.len()];
        let bounds = TaskBounds::new(facts, &all, deadline).ok_or(Reason::Time)?;
        let never = bounds.never_read(facts);
        let mut reads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let of_threads =
            (0..sk.len()).filter(|&e| sk.events[e].is_read() && sk.events[e].thread.is_some());
        for read in of_threads {
            let sources: Vec<usize> = initial
                .iter()
                .filter(|w| facts.domains.may_overlap(sk, read, *w) && !never.has(*w, read))
                .collect();
            if !sources.is_empty() {
                reads.insert(read, sources);
            }
        }
        let suspects = Suspects {
            initial,
            reads,
            never,
        };
        Ok(Some((suspects, bounds)))
    }

    /// All suspects, as if each were confirmed: no less than [`unwritten`] finds. So an answer that
    /// depends on none of them depends on no unwritten memory.
    pub(crate) fn all(&self, facts: &Facts<'_>) -> UnwrittenReads {
        let mut found = UnwrittenReads {
            never: Some(self.never.clone()),
            ..UnwrittenReads::default()
        };
        for (&read, sources) in &self.reads {
            found
                .reads
                .extend(site(&facts.sk, read).map(|site| (site, name_of(facts, sources[0]))));
        }
        let observed = facts.observed_cells.iter();
        found.ends = observed
            .copied()
            .filter(|cell| facts.sk.memory.cell(*cell).unknown)
            .collect();
        found.work_out(facts);
        found
    }
}

impl UnwrittenReads {
    /// Finds the values that depend on these reads.
    fn work_out(&mut self, facts: &Facts<'_>) {
        let sites = self.reads.keys().copied().collect();
        self.unknowns = Unknowns::with_unwritten(&facts.task.test.program, sites);
    }
}

/// Finds the suspects that can observe memory before any write to it, and the memory that can keep
/// its initial value to the end.
///
/// # Errors
/// Why this could not be worked out.
pub(crate) fn unwritten(
    facts: &Facts<'_>,
    suspects: &Suspects,
    ask: &Ask<'_>,
) -> Result<UnwrittenReads, Reason> {
    let sk = &facts.sk;
    let Suspects { initial, never, .. } = suspects;
    let mut left = suspects.reads.clone();
    let mut found = UnwrittenReads {
        ends: at_the_end(facts, ask)?,
        ..UnwrittenReads::default()
    };
    if left.is_empty() {
        return Ok(found);
    }
    let model = asking(facts.task.model);
    let mut asked: Facts<'_> = facts.clone();
    asked.task.model = &model;
    asked.absent = signature::absent(&model, &sk.program);
    let [writes, reads] = of_the_checker();
    asked.bases.insert(writes, (0, Base::Set(initial.clone())));
    for n in 0.. {
        left.retain(|read, _| site(sk, *read).is_some_and(|site| !found.reads.contains_key(&site)));
        if left.is_empty() {
            break;
        }
        if n == MOST {
            found.reads.extend(
                left.iter()
                    .filter_map(|(read, from)| Some((site(sk, *read)?, name_of(facts, from[0])))),
            );
            break;
        }
        asked.bases.insert(
            reads,
            (
                0,
                Base::Set(EventSet::from_fn(sk.len(), |e| {
                    left.contains_key(&e.index())
                })),
            ),
        );
        let flags = Some(vec![model.flags.len() - 1]);
        let query = Query {
            complete: false,
            no_fault: false,
            flags,
            ..Query::complete(&model)
        };
        let Some(execution) = ask(asked.clone(), &query)? else {
            break;
        };
        let from = &execution.free[model.values.0 as usize];
        for (source, read) in from
            .iter()
            .filter(|(w, r)| initial.has(*w) && left.contains_key(r))
        {
            found
                .reads
                .extend(site(sk, read).map(|site| (site, name_of(facts, source))));
        }
    }
    found.never = Some(never.clone());
    found.work_out(facts);
    Ok(found)
}

/// The name of the memory of an initial write.
fn name_of(facts: &Facts<'_>, source: usize) -> String {
    facts
        .surely_at(source)
        .map_or(String::new(), |c| first_cell(&facts.sk, c).name.clone())
}

/// The cell that an alias stands for.
fn first_cell(sk: &Skeleton, c: CellId) -> &Cell {
    sk.memory.cell(sk.memory.cell(c).memory)
}

/// The instruction of a read.
fn site(sk: &Skeleton, read: usize) -> Option<Site> {
    Some((sk.events[read].thread?, sk.events[read].instr))
}

/// Observed memory cells that can keep their initial value to the end.
fn at_the_end(facts: &Facts<'_>, ask: &Ask<'_>) -> Result<BTreeSet<CellId>, Reason> {
    let mut observed = facts.observed_cells.iter();
    if !observed.any(|&cell| facts.sk.memory.cell(cell).unknown) {
        return Ok(BTreeSet::new());
    }
    let mut facts = facts.clone();
    let mut open = Vec::new();
    for (&cell, writers) in facts.observed_cells.iter().zip(&facts.at_cell) {
        if !facts.sk.memory.cell(cell).unknown {
            continue;
        }
        let mut written = Cond::FALSE;
        for &(write, here) in writers
            .iter()
            .filter(|(w, _)| facts.sk.events[*w].thread.is_some())
        {
            let guarded = facts.sk.pool.and(here, facts.sk.events[write].guard);
            written = facts.sk.pool.or(written, guarded);
        }
        let not = facts.sk.pool.not(written);
        if not != Cond::FALSE {
            open.push((cell, not));
        }
    }
    let mut found = BTreeSet::new();
    for (cell, not) in open {
        let props = facts.task.test.filter.iter().map(|p| (p, true)).collect();
        let query = Query {
            require: not,
            props,
            no_fault: false,
            ..Query::complete(facts.task.model)
        };
        if ask(facts.clone(), &query)?.is_some() {
            found.insert(cell);
        }
    }
    Ok(found)
}

/// A model with one more flag: some read of one set takes its value from some write of another set.
fn asking(model: &Model) -> Model {
    let mut model = model.clone();
    let free = NodeOp::Free(model.values);
    let nodes = &mut model.nodes;
    let [writes, reads] = of_the_checker().map(|id| add(nodes, NodeOp::Base(id), Kind::Set, true));
    let pairs = add(nodes, NodeOp::Product(writes, reads), Kind::Rel, true);
    let values = add(nodes, free, Kind::Rel, false);
    let node = add(nodes, NodeOp::Inter(values, pairs), Kind::Rel, false);
    model.flags.push(Axiom {
        name: FLAG.to_owned(),
        test: Test::Empty,
        negated: true,
        effect: TestEffect::Hazard,
        node,
        doc: String::new(),
        span: Default::default(),
    });
    model
}

/// Adds a node to a model.
fn add(nodes: &mut Vec<ModelNode>, op: NodeOp, kind: Kind, is_static: bool) -> NodeId {
    nodes.push(ModelNode {
        op,
        kind,
        is_static,
        name: None,
        span: Default::default(),
    });
    NodeId(nodes.len() as u32 - 1)
}
