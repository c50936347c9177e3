//! Holds everything known about a task before solving. All engines read it.
//!
//! [`Facts::of`] runs a short list of passes ([`passes`]). Each pass finds facts that the axioms
//! imply, from bounds of the model's relations.
//!
//! | File | Content |
//! |---|---|
//! | [`passes`] | the list of passes, and the order of the work |
//! | [`listing`] | events with the possible values of their terms |
//! | [`relations`] | base relations and other conditions over these events |
//! | [`bounds`] | bounds of all relations of the model |
//! | [`excluded`] | relations among a few events that the axioms exclude |
//! | [`companions`] | events that execute whenever another one does |
//! | [`mod@never`], [`sums`], [`objects`] | one pass each |
//! | [`implied`] | the results of passes |
//!
//! # Invariants
//! - All engines read the same facts and nothing else.
//! - Every fact holds in every execution in which all axioms hold, and the facts of
//!   [`Implied`] in no others.
//! - [`Facts::open_values`] is set only if values outside all domains could matter; a negative
//!   answer is then `undecided`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::limits::BoundTrial;
use crate::query::FinalState;
use crate::skeleton::base::Base;
use crate::skeleton::domain::Domains;
use crate::skeleton::needed::NeededTerms;
use crate::skeleton::rivals::Rivals;
use crate::skeleton::signature::{self, BaseRole};
use crate::skeleton::{Cond, Event, Skeleton, Term, TermId, observable_ty, place};
use crate::task::Task;
use cat::algebra::companions::Companions;
use cat::model::signature::BaseId;
use cat::rel::Rel;
use implied::Implied;
use program::litmus::{Atom as PropAtom, Observable, Prop};
use program::memory::{CellId, Memory};
use program::options::Setting;
use program::unknown::{Site, Unknowns};
use program::{Program, Ty};
use verdict::{InstrPlace, Reason, State};

pub(crate) mod bounds;
mod companions;
pub(crate) mod excluded;
pub(crate) mod implied;
mod listing;
mod never;
pub(crate) mod objects;
pub(crate) mod passes;
mod relations;
pub(crate) mod sums;

/// Everything known about a task before solving.
#[derive(Clone)]
pub struct Facts<'a> {
    /// The task.
    pub task: Task<'a>,
    /// The test's events.
    pub sk: Skeleton,
    /// The possible values of terms.
    pub domains: Domains,
    /// Base sets and relations that the model uses, each with the number of open cells of those
    /// before it.
    pub bases: FxHashMap<BaseId, (usize, Base)>,
    /// The condition under which each open cell of a base relation holds.
    pub open: Vec<Cond>,
    /// The condition under which some access addresses no memory, or a thread meets others that do
    /// not arrive.
    pub fault: Cond,
    /// The condition under which every started command has run: see [`crate::liveness::parts`].
    pub started: Cond,
    /// Whether a negative answer may have missed values out of thin air.
    pub open_values: bool,
    /// The observables that outcomes show, in order.
    pub observed: Vec<Observable>,
    /// The name of each observable.
    names: Vec<Arc<str>>,
    /// Memory cells among [`Facts::observed`].
    pub observed_cells: Vec<CellId>,
    /// By observed cell: the writes that may go to it, each with the condition for that.
    pub at_cell: Vec<Vec<(usize, Cond)>>,
    /// Whether `po` and barrier order together can be cyclic: the checkers must exclude that.
    pub check_barrier_order: bool,
    /// By node of the model: whether it is empty in all executions ([`signature::absent`]).
    pub absent: Vec<bool>,
    /// The conditions under which writes of several threads store different values, if the option
    /// `same-value` makes equal values no race.
    pub rivals: Option<Rivals>,
    /// Values that the checker cannot work out; no answer may depend on them.
    pub unknowns: Unknowns,
    /// The reads of memory before any write to it.
    pub unwritten: UnwrittenReads,
    /// If the engine cannot list every value: the terms whose values it lists, and the reason.
    pub needed: Option<(NeededTerms, Reason)>,
    /// Why the domains rest on the axioms: without them, the values could not be listed.
    pub unlisted: Option<Reason>,
    /// The events that execute whenever another one does.
    companions: Option<Rc<Companions>>,
    /// The facts that rest on the axioms.
    pub(crate) implied: Implied,
}

/// The reads and final values that show memory before any write to it, where memory begins with any
/// value (`Init::Unknown`).
#[derive(Clone, Debug, Default)]
pub struct UnwrittenReads {
    /// Micro-ops that can read memory before any write to it, with the name of that memory.
    pub reads: BTreeMap<Site, String>,
    /// Observed memory cells that can keep their initial value to the end.
    pub ends: BTreeSet<CellId>,
    /// The values that depend on these reads.
    pub unknowns: Unknowns,
    /// Writes and reads of one place where the read never reads from the write.
    pub never: Option<Rel>,
}

/// Whether some memory cell begins with any value.
pub(crate) fn has_unknown(memory: &Memory) -> bool {
    memory.cells.iter().any(|cell| cell.unknown)
}

fn not_worked_out(program: &Program, made: Site, depends: String) -> Reason {
    Reason::Unknown {
        made: place(program, made),
        depends,
    }
}

/// Names the question's propositions as the thing that depends on a value.
const ASKED: &str = "what is asked about";

impl<'a> Facts<'a> {
    /// Whether the listed values hold only in executions in which every axiom does.
    pub fn is_narrowed(&self) -> bool {
        !self.implied.is_empty()
    }

    /// Whether values out of thin air continue without end under these axioms, so that no engine
    /// sees all of them. A model excludes such values by an axiom, which a query may leave out.
    pub fn misses_values(&self, axioms: &[bool]) -> bool {
        self.open_values || (self.domains.open && axioms.contains(&false))
    }

    /// The same task under other settings; `None` if it has to be built anew.
    ///
    /// If the settings differ only in readings that no event depends on, unrolling finds the same
    /// events, guards, terms and domains. Then only the sets that name the chosen reading change.
    pub fn under(&self, set: &[Setting]) -> Option<Facts<'a>> {
        let task = self.task.under(set);
        if !self.implied.is_empty()
            || !task.options.same_events(self.sk.options)
            || has_unknown(&self.sk.memory)
        {
            return None;
        }
        let mut facts = self.clone();
        facts.sk.options = task.options;
        facts.task = task;
        for (&id, (_, base)) in &mut facts.bases {
            if signature::row(id).role == BaseRole::Reading {
                *base = signature::base(&mut facts.sk, &facts.domains, id);
            }
        }
        Some(facts)
    }

    /// Why an answer about these propositions is unavailable: they depend on values that the
    /// checker cannot work out. With `lists`, the answer also covers all observables of outcomes.
    pub fn unknown<'p>(
        &self,
        props: impl IntoIterator<Item = &'p Prop>,
        lists: bool,
    ) -> Option<Reason> {
        let program = &self.task.test.program;
        let asked = self.asked(props, lists);
        if let Some(why) = asked.iter().find_map(|&o| self.given_up(o)) {
            return Some(why.clone());
        }
        let made = asked
            .into_iter()
            .find_map(|o| self.unknowns.shown(program, &self.sk.memory, o))?;
        Some(not_worked_out(program, made, ASKED.to_owned()))
    }

    /// The observables of these propositions; with `lists`, also all observables of outcomes.
    fn asked<'p>(&self, props: impl IntoIterator<Item = &'p Prop>, lists: bool) -> Vec<Observable> {
        let mut asked = Vec::new();
        for prop in props {
            prop.observables(&mut |o| asked.push(o));
        }
        asked.extend(self.observed.iter().filter(|_| lists));
        asked
    }

    /// Why the answer "no execution" depends on memory before any write to it, if it does. With
    /// `lists`, the answer also covers all observables of outcomes. An execution that an engine
    /// found remains valid: that memory may hold 0.
    pub fn first_value<'p>(
        &self,
        props: impl IntoIterator<Item = &'p Prop>,
        lists: bool,
    ) -> Option<Reason> {
        if self.unwritten.reads.is_empty() && self.unwritten.ends.is_empty() {
            return None;
        }
        let program = &self.task.test.program;
        let read = |(made, depends): (Site, String)| {
            let memory = self.unwritten.reads.get(&made).cloned().unwrap_or_default();
            Reason::Unwritten {
                read: Some(Box::new(place(program, made))),
                memory,
                depends,
            }
        };
        let unknowns = &self.unwritten.unknowns;
        if let Some((made, steered)) = unknowns.steered() {
            return Some(read((made, place(program, steered).to_string())));
        }
        let asked = self.asked(props, lists);
        let mut cells = asked.iter().filter_map(|&o| self.sk.observed_cell(o));
        if let Some(cell) = cells.find(|cell| self.unwritten.ends.contains(cell)) {
            return Some(Reason::Unwritten {
                read: None,
                memory: self.sk.memory.cell(cell).name.clone(),
                depends: ASKED.to_owned(),
            });
        }
        let reads = self.reads_of_unwritten();
        let made = asked.into_iter().find_map(|o| {
            let made = unknowns.shown(program, &self.sk.memory, o)?;
            self.shows(&reads, o).then_some(made)
        })?;
        Some(read((made, ASKED.to_owned())))
    }

    /// By event: whether it is a read, and can see memory before any write to it. One instruction
    /// has an event for each element that a loop writes.
    fn reads_of_unwritten(&self) -> Vec<bool> {
        let events = &self.sk.events;
        let is_mistaken = |event: &Event| {
            let site = event.thread.map(|thread| (thread, event.instr));
            event.is_read() && site.is_some_and(|site| self.unwritten.reads.contains_key(&site))
        };
        let mut reads: Vec<bool> = events.iter().map(is_mistaken).collect();
        loop {
            let writes: Vec<usize> = (0..events.len())
                .filter(|&e| events[e].is_write() && events[e].thread.is_some())
                .filter(|&e| self.carries(&reads, e))
                .collect();
            let may_read = |read: usize, write: usize| {
                let never = self.unwritten.never.as_ref();
                self.domains.may_overlap(&self.sk, read, write)
                    && never.is_none_or(|never| !never.has(write, read))
            };
            let more: Vec<usize> = (0..events.len())
                .filter(|&e| events[e].is_read() && !reads[e])
                .filter(|&e| writes.iter().any(|&w| may_read(e, w)))
                .collect();
            if more.is_empty() {
                return reads;
            }
            more.into_iter().for_each(|e| reads[e] = true);
        }
    }

    /// Whether a write, its place or its value may rest on some of these reads.
    fn carries(&self, reads: &[bool], write: usize) -> bool {
        let Event {
            value, addr, guard, ..
        } = self.sk.events[write];
        let Some(value) = value.filter(|_| !self.sk.given_up.contains(&write)) else {
            return true;
        };
        let terms = [value].into_iter().chain(addr);
        self.rests_on(reads, terms.chain(self.sk.pool.compared(guard)))
    }

    /// Whether an observable may show a value that rests on some of these reads.
    fn shows(&self, reads: &[bool], observable: Observable) -> bool {
        if let Some(term) = self.sk.observed_register(observable) {
            return self.rests_on(reads, [term]);
        }
        let cell = self.sk.observed_cell(observable);
        let at = self
            .observed_cells
            .iter()
            .position(|observed| Some(*observed) == cell);
        let Some(at) = at else { return true };
        let writers = self.at_cell[at].iter().map(|(write, _)| *write);
        let mut own = writers.filter(|&write| self.sk.events[write].thread.is_some());
        own.any(|write| self.carries(reads, write))
    }

    /// Whether some term contains one of these reads.
    fn rests_on(&self, reads: &[bool], terms: impl IntoIterator<Item = TermId>) -> bool {
        let mut seen: FxHashSet<TermId> = FxHashSet::default();
        let mut left: Vec<TermId> = terms.into_iter().collect();
        while let Some(term) = left.pop() {
            match self.sk.pool.term(term) {
                Term::Read(e) if reads[e.index()] => return true,
                _ if seen.insert(term) => left.extend(self.sk.pool.parts(term)),
                _ => {}
            }
        }
        false
    }

    /// The reads that can observe memory before any write to it.
    pub fn reads_of_nothing_written(&self) -> Vec<verdict::Unwritten> {
        self.unwritten
            .reads
            .iter()
            .map(|(site, memory): (&Site, &String)| {
                let InstrPlace { text, thread, line } = place(&self.sk.program, *site);
                verdict::Unwritten {
                    thread,
                    line,
                    text,
                    memory: memory.clone(),
                }
            })
            .collect()
    }

    /// The part that the loop bound leaves open: the cut at which a thread can go on, if one
    /// exists.
    pub fn tried(&self, goes_on: Option<usize>) -> BoundTrial {
        let open = goes_on.map(|cut| {
            let (_, thread, header) = self.sk.cuts[cut];
            place(&self.sk.program, (thread, header))
        });
        BoundTrial {
            open,
            cut: self.sk.cut != Cond::FALSE,
            deepest: self.sk.deepest,
        }
    }

    /// A base set or relation that the model uses.
    pub fn base(&self, id: BaseId) -> &Base {
        &self.bases[&id].1
    }

    /// The memory cell of an access, as [`Domains::surely_at`] finds it.
    pub(crate) fn surely_at(&self, e: usize) -> Option<CellId> {
        self.domains.surely_at(&self.sk, e)
    }

    /// A final state with its names.
    pub fn name_state(&self, state: &FinalState) -> State {
        self.name_states([state]).next().expect("there is one")
    }

    /// Final states with their names, in the order given.
    pub fn name_states<'s>(
        &self,
        states: impl IntoIterator<Item = &'s FinalState>,
    ) -> impl Iterator<Item = State> {
        let mut shown = FxHashMap::<(usize, i64), Arc<str>>::default();
        states.into_iter().map(move |state| {
            state
                .iter()
                .enumerate()
                .map(|(i, &v): (usize, &i64)| {
                    let value = shown
                        .entry((i, v))
                        .or_insert_with(|| self.show_value(self.observed[i], v).into());
                    (self.names[i].clone(), value.clone())
                })
                .collect()
        })
    }

    /// Why the values of an observable, if it did.
    fn given_up(&self, o: Observable) -> Option<&Reason> {
        self.needed
            .as_ref()
            .filter(|(needed, _)| !needed.knows(&self.sk, o))
            .map(|(_, why)| why)
    }

    /// Whether the value of a cell may be impossible to work out.
    pub fn is_unknown(&self, cell: CellId) -> bool {
        let memory = self.sk.memory.cell(cell).memory;
        self.needed
            .as_ref()
            .is_some_and(|(needed, _)| !needed.has(memory))
            || self
                .unknowns
                .in_cell(&self.task.test.program, &self.sk.memory, memory)
                .is_some()
    }

    /// A value as outcomes show it: addresses by name, `?` for a value that the checker cannot work
    /// out.
    pub fn show_value(&self, o: Observable, v: i64) -> String {
        if self
            .unknowns
            .shown(&self.task.test.program, &self.sk.memory, o)
            .is_some()
            || self.given_up(o).is_some()
        {
            return "?".to_owned();
        }
        self.sk
            .memory
            .show_held(&self.sk.program, o, self.observable_ty(o), v)
    }

    /// A value; if the program uses addresses as values, the name of the memory at that address.
    pub fn show(&self, v: i64) -> String {
        self.sk.memory.show(&self.sk.program, v)
    }

    /// The type in which an observable is compared.
    pub fn observable_ty(&self, o: Observable) -> Ty {
        observable_ty(&self.sk.program, &self.sk.memory, o)
    }

    /// The value of one side of a comparison, given final values of observables.
    pub fn atom_value(
        &self,
        atom: &PropAtom,
        observable: &mut dyn FnMut(Observable) -> Option<i64>,
    ) -> Option<i64> {
        match *atom {
            PropAtom::Const(v) => Some(v),
            PropAtom::Observable(o) => observable(o),
            PropAtom::Address { loc, index } => {
                let viewer = self.sk.program.thread_ids().next();
                self.sk.memory.address(&self.sk.program, loc, index, viewer)
            }
        }
    }
}
