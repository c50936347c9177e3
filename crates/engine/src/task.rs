//! Prepares a task: one test under one model at one loop bound, ready for any engine.
//!
//! # Invariants
//! - All engines read the same task and nothing else.
//! - `Task::open_values` is set only if values outside all domains could matter; a negative answer
//!   is then `undecided`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::bounds::TaskBounds;
use crate::limits::BoundTrial;
use crate::objects::{self, ObjectResults};
use crate::query::FinalState;
use crate::skeleton::base::{self, Base};
use crate::skeleton::domain::{self, Domains, KnownFacts};
use crate::skeleton::needed::NeededTerms;
use crate::skeleton::rivals::Rivals;
use crate::skeleton::signature::{self, BaseRole};
use crate::skeleton::{Cond, Purpose, Skeleton, observable_ty, place};
use crate::sums::{self, Sum};
use cat::model::ir::{Axiom, FreeShape, Model, NodeId, NodeOp, Test};
use cat::model::signature::BaseId;
use cat::rel::EventSet;
use program::litmus::{self, Atom as PropAtom, LitmusTest, Observable, Prop};
use program::memory::{CellId, Memory};
use program::options::{OptionValues, Setting};
use program::unknown::{Site, Unknowns};
use program::{Program, Tag, Ty};
use verdict::{Place, Reason, State};

/// One test under one model at one bound.
#[derive(Clone)]
pub struct Task<'a> {
    /// The test.
    pub test: &'a LitmusTest,
    /// The model.
    pub model: &'a Model,
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
    /// Memory cells among [`Task::observed`].
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
    /// The values that the task keeps, and why it gave up the others: it could not list them.
    pub needed: Option<(NeededTerms, Reason)>,
    /// Whether descriptions of executions have every relation that the model names.
    pub detail: bool,
    /// Whether the domains leave out values that the axioms exclude.
    pub narrowed: bool,
    /// Why the domains have to: without the axioms, the values could not be listed.
    pub unlisted: Option<Reason>,
    /// The sums of atomics at one location.
    pub(crate) sums: Vec<Sum>,
    /// The results for mbarrier objects with many operations.
    pub(crate) objects: ObjectResults,
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

/// The options of a test under a model; `set` overrides both.
fn options(test: &LitmusTest, model: &Model, set: &[Setting]) -> OptionValues {
    let of_model = model
        .options
        .iter()
        .map(|&(option, value)| Setting { option, value });
    OptionValues::of(of_model.chain(test.options.iter().chain(set).copied()))
}

impl<'a> Task<'a> {
    /// Whether values out of thin air continue without end under these axioms, so that no engine
    /// sees all of them. A model excludes such values by an axiom, which a query may leave out.
    pub fn misses_values(&self, axioms: &[bool]) -> bool {
        self.open_values || (self.domains.open && axioms.contains(&false))
    }

    /// Builds the skeleton and everything that all engines need.
    ///
    /// # Errors
    /// The reason why every question about the test is `undecided`.
    pub fn new(
        test: &'a LitmusTest,
        model: &'a Model,
        set: &[Setting],
        bound: u32,
        deadline: Option<Instant>,
    ) -> Result<Task<'a>, Reason> {
        Task::build(Purpose::Outcomes, test, model, set, bound, false, deadline)
    }

    /// As [`Task::new`], for a purpose. Under a purpose about progress, the model may use the names
    /// of [`signature::of_endless`]. With `thin_air`, domains hold values out of thin air even if
    /// an axiom excludes them: queries that leave that axiom out need this.
    pub fn build(
        purpose: Purpose,
        test: &'a LitmusTest,
        model: &'a Model,
        set: &[Setting],
        bound: u32,
        thin_air: bool,
        deadline: Option<Instant>,
    ) -> Result<Task<'a>, Reason> {
        let settings = TaskSettings {
            purpose,
            test,
            model,
            set,
            bound,
            thin_air,
            deadline,
        };
        let nothing = ObjectResults::default();
        let first_facts = TaskFacts {
            known: KnownFacts::default(),
            sums: &[],
            objects: &nothing,
            rough: false,
        };
        let first = settings.build(first_facts);
        let made;
        let rough = match &first {
            Ok(task)
                if !task.open_values
                    && task.needed.is_none()
                    && !settings.adds_up(task)
                    && settings.of_many(task).is_none() =>
            {
                return first;
            }
            Ok(task) => task,
            Err(Reason::TooManyValues(_)) => {
                let facts = TaskFacts {
                    rough: true,
                    ..first_facts
                };
                match settings.build(facts) {
                    Ok(task) => {
                        made = task;
                        &made
                    }
                    Err(_) => return first,
                }
            }
            Err(_) => return first,
        };
        match settings.build_narrowed(rough, &first)? {
            Some(again) => Ok(again),
            None => first,
        }
    }

    /// Checks that the model can express the program, and that the engines support the model.
    fn in_model(test: &LitmusTest, model: &Model) -> Result<(), Reason> {
        if let Some(f) = model
            .free
            .iter()
            .enumerate()
            .find(|(i, f)| f.shape == FreeShape::Function && *i != model.values.0 as usize)
        {
            return Err(Reason::Unsupported(format!(
                "free function `{}` besides `values`",
                f.1.name
            )));
        }
        if test.program.host.is_some() && !signature::speaks_of(model, BaseRole::Launch) {
            return Err(Reason::NotInModel(
                "calls of the runtime by host threads".into(),
            ));
        }
        if let Some(instr) = test
            .program
            .assembly()
            .filter(|_| signature::is_deaf_to(model, Tag::Generic))
        {
            let why = "PTX in assembly or in a function of the library, which means something \
            under a model of PTX alone";
            return Err(Reason::NotInModel(format!(
                "`{}` (line {}), {why}",
                instr.text, instr.line
            )));
        }
        let dependent = test
            .program
            .host
            .iter()
            .flat_map(|host| &host.commands)
            .find(|c| c.programmatic);
        if let Some(command) =
            dependent.filter(|_| signature::is_deaf_to(model, Tag::LaunchDependents))
        {
            return Err(Reason::NotInModel(format!(
                "dependent launches (`{}`)",
                command.name
            )));
        }
        let has = |tag: Tag| {
            test.program
                .instrs()
                .map(|(_, _, i)| i)
                .find(|i| i.op.has(tag))
                .filter(|_| signature::is_deaf_to(model, tag))
        };
        if let Some(instr) = has(Tag::Mbarrier).or(has(Tag::MbarrierInit)) {
            let what = format!("mbarrier objects (`{}`, line {})", instr.text, instr.line);
            return Err(Reason::NotInModel(what));
        }
        if let Some(instr) = has(Tag::LaunchDependents).or(has(Tag::GridWait)) {
            let what = format!("dependent launches (`{}`, line {})", instr.text, instr.line);
            return Err(Reason::NotInModel(what));
        }
        if let Some(instr) = has(Tag::Half) {
            let what = format!(
                "proxy fences of one direction (`{}`, line {})",
                instr.text, instr.line
            );
            return Err(Reason::NotInModel(what));
        }
        if let Some(instr) = test
            .program
            .asynchronous()
            .filter(|_| !signature::speaks_of(model, BaseRole::Asynchronous))
        {
            let what = format!(
                "asynchronous operations (`{}`, line {})",
                instr.text, instr.line
            );
            return Err(Reason::NotInModel(what));
        }
        if let Some(instr) = test
            .program
            .of_several_cells()
            .filter(|_| !signature::speaks_of(model, BaseRole::Whole))
        {
            let why = match instr.element.whole {
                true => "an access of 128 bits",
                false => "an access to an object that is accessed in smaller pieces elsewhere",
            };
            return Err(Reason::NotInModel(format!(
                "`{}` (line {}), {why}",
                instr.text, instr.line
            )));
        }
        Ok(())
    }

    /// The same task under other settings; `None` if it has to be built anew.
    ///
    /// If the settings differ only in readings that no event depends on, unrolling finds the same
    /// events, guards, terms and domains. Then only the sets that name the chosen reading change.
    pub fn under(&self, set: &[Setting]) -> Option<Task<'a>> {
        let options = options(self.test, self.model, set);
        if self.narrowed || !options.same_events(self.sk.options) || has_unknown(&self.sk.memory) {
            return None;
        }
        let mut task = self.clone();
        task.sk.options = options;
        for (&id, (_, base)) in &mut task.bases {
            if signature::row(id).role == BaseRole::Reading {
                *base = base::base(&mut task.sk, &task.domains, id);
            }
        }
        Some(task)
    }

    /// Why an answer about these propositions is unavailable: they depend on values that the
    /// checker cannot work out. With `lists`, the answer also covers all observables of outcomes.
    pub fn unknown<'p>(
        &self,
        props: impl IntoIterator<Item = &'p Prop>,
        lists: bool,
    ) -> Option<Reason> {
        let program = &self.test.program;
        let mut asked = Vec::new();
        props
            .into_iter()
            .for_each(|p| p.observables(&mut |o| asked.push(o)));
        asked.extend(self.observed.iter().filter(|_| lists));
        if let Some(why) = asked.iter().find_map(|&o| self.given_up(o)) {
            return Some(why.clone());
        }
        let made = asked
            .into_iter()
            .find_map(|o| self.unknowns.shown(program, &self.sk.memory, o))?;
        Some(not_worked_out(program, made, ASKED.to_owned()))
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
        let program = &self.test.program;
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
        let mut asked = Vec::new();
        props
            .into_iter()
            .for_each(|p| p.observables(&mut |o| asked.push(o)));
        asked.extend(self.observed.iter().filter(|_| lists));
        if let Some(cell) = asked.iter().find_map(|o: &Observable| {
            self.sk
                .observed_cell(*o)
                .filter(|c| self.unwritten.ends.contains(c))
        }) {
            let memory = self.sk.memory.cell(cell).name.clone();
            return Some(Reason::Unwritten {
                read: None,
                memory,
                depends: ASKED.to_owned(),
            });
        }
        let made = asked
            .into_iter()
            .find_map(|o| unknowns.shown(program, &self.sk.memory, o))?;
        Some(read((made, ASKED.to_owned())))
    }

    /// The reads that can observe memory before any write to it.
    pub fn reads_of_nothing_written(&self) -> Vec<verdict::Unwritten> {
        self.unwritten
            .reads
            .iter()
            .map(|(site, memory): (&Site, &String)| {
                let Place { text, thread, line } = place(&self.sk.program, *site);
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

    /// The memory cell of an access, if it is the same in all executions in which the access
    /// executes.
    pub(crate) fn surely_at(&self, e: usize) -> Option<CellId> {
        let cells = &self.domains.cells[e];
        let one = cells
            .first()
            .filter(|_| cells.len() == 1 && !self.domains.may_fault[e])?;
        Some(self.sk.memory.cell(*one).memory)
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

    /// Why the task gave up the values of an observable, if it did.
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
                .in_cell(&self.test.program, &self.sk.memory, memory)
                .is_some()
    }

    /// A value as outcomes show it: addresses by name, `?` for a value that the checker cannot work
    /// out.
    pub fn show_value(&self, o: Observable, v: i64) -> String {
        if self
            .unknowns
            .shown(&self.test.program, &self.sk.memory, o)
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

/// The settings of a task.
#[derive(Clone, Copy)]
struct TaskSettings<'a, 's> {
    purpose: Purpose,
    test: &'a LitmusTest,
    model: &'a Model,
    set: &'s [Setting],
    bound: u32,
    thin_air: bool,
    deadline: Option<Instant>,
}

/// Facts that hold in all executions, for a task to use. With `rough`, values are not listed, and
/// the task serves only to bound relations.
#[derive(Clone, Copy)]
struct TaskFacts<'f> {
    known: KnownFacts<'f>,
    sums: &'f [Sum],
    objects: &'f ObjectResults,
    rough: bool,
}

/// A skeleton, its domains, and the kept values if others were given up, with the reason.
type UnrolledValues = (Skeleton, Domains, Option<(NeededTerms, Reason)>);

impl<'a> TaskSettings<'a, '_> {
    /// Whether looking for sums of atomics is worthwhile.
    fn adds_up(&self, task: &Task<'_>) -> bool {
        !self.purpose.is_progress() && !self.thin_air && sums::are_large(task)
    }

    /// An operation on an mbarrier object with many, if its results are of use.
    fn of_many(&self, task: &Task<'_>) -> Option<Place> {
        if self.thin_air {
            None
        } else {
            objects::of_many(task)
        }
    }

    /// Whether no value out of thin air matters, because an axiom excludes them all.
    fn excludes_thin_air(&self) -> bool {
        !self.thin_air && excludes_thin_air(self.model)
    }

    /// As [`Task::build`], with facts that hold in all executions.
    fn build(self, facts: TaskFacts<'_>) -> Result<Task<'a>, Reason> {
        let TaskSettings {
            test,
            model,
            set,
            deadline,
            ..
        } = self;
        Task::in_model(test, model)?;
        let unknowns = Unknowns::of(&test.program);
        if let Some((made, steered)) = unknowns.steered() {
            return Err(not_worked_out(
                &test.program,
                made,
                place(&test.program, steered).to_string(),
            ));
        }
        let options = options(test, model, set);
        let props: Vec<&Prop> = test.condition.iter().chain(&test.filter).collect();
        let (mut sk, mut domains, mut needed) = self.unrolled(facts, options, &props, true)?;
        if sk.fixed.is_hit(&sk, &domains) {
            (sk, domains, needed) = self.unrolled(facts, options, &props, false)?;
        }
        // A value computed from an unnamed value may be any other value.
        domains.open |= domains.seeded && props.iter().any(|p| p.computes());
        let open_values = domains.open && !self.excludes_thin_air();
        let (bases, open) = bases(model, &mut sk, &domains, deadline)?;
        let rivals = options
            .same_value_benign()
            .then(|| Rivals::of(&mut sk, &domains, &unknowns));
        let absent = signature::absent(model, &sk.program);
        debug_assert!(
            bases
                .iter()
                .all(|(&id, (_, base))| signature::is_present(id, &sk.program) || base.is_empty()),
            "what needs other instructions has no members"
        );
        let fault = fault(&mut sk, &domains, deadline)?;
        let observed = test.observables();
        let mut observed_cells: Vec<CellId> = Vec::new();
        for &o in &observed {
            if let Some(c) = sk.observed_cell(o)
                && !observed_cells.contains(&c)
            {
                observed_cells.push(c);
            }
        }
        let mut at_cell = Vec::new();
        for &cell in &observed_cells {
            if stop::late(deadline) {
                return Err(Reason::Time);
            }
            at_cell.push(writers(&mut sk, &domains, cell));
        }
        // Later users of the pool have their own deadline.
        sk.pool.unwatch()?;
        let check_barrier_order = has_cyclic_barrier_order(&sk);
        Ok(Task {
            names: observed
                .iter()
                .map(|&o| sk.memory.observable_name(&sk.program, o).into())
                .collect(),
            test,
            model,
            sk,
            domains,
            bases,
            open,
            fault,
            started: Cond::TRUE,
            open_values,
            observed,
            observed_cells,
            at_cell,
            check_barrier_order,
            absent,
            rivals,
            unknowns,
            unwritten: UnwrittenReads::default(),
            needed,
            detail: false,
            narrowed: false,
            unlisted: None,
            sums: facts.sums.to_vec(),
            objects: ObjectResults::default(),
        })
    }

    /// Builds a task with the facts that the axioms imply, worked out on the task `rough`; `first`
    /// is the task without them. `None` if they do not help.
    fn build_narrowed(
        self,
        rough: &Task<'a>,
        first: &Result<Task<'a>, Reason>,
    ) -> Result<Option<Task<'a>>, Reason> {
        // A read with fewer sources has fewer values.
        let all = vec![true; self.model.axioms.len()];
        let bounds = TaskBounds::new(rough, &all, self.deadline).ok_or(Reason::Time)?;
        let never = bounds.never_read(rough);
        let sums = if self.adds_up(rough) {
            sums::sums(rough, &bounds)
        } else {
            Vec::new()
        };
        let objects = if self.thin_air {
            ObjectResults::default()
        } else {
            objects::found(rough, &bounds, self.deadline)
        };
        if never.is_empty() && sums.is_empty() && objects.words.is_empty() {
            return Ok(None);
        }
        let facts = TaskFacts {
            known: KnownFacts {
                never: Some(&never),
                found: Some(&objects.words),
            },
            sums: &sums,
            objects: &objects,
            rough: false,
        };
        match self.build(facts) {
            Ok(mut again) if again.sk.len() == rough.sk.len() && again.needed.is_none() => {
                // The axioms justify that those values are never read.
                again.domains.open = true;
                again.narrowed = true;
                again.objects = objects;
                again.unlisted = match first {
                    Ok(task) if !sums.is_empty() => sums[0].place(&task.sk).map(Reason::AddedUp),
                    Ok(task) if task.needed.is_none() && !again.objects.words.is_empty() => {
                        self.of_many(task).map(Reason::InOrder)
                    }
                    Ok(task) => task.needed.as_ref().map(|(_, why)| why.clone()),
                    Err(why) => Some(why.clone()),
                };
                Ok(Some(again))
            }
            Err(reason @ (Reason::Time | Reason::Interrupted)) => Err(reason),
            _ => Ok(None),
        }
    }

    /// Unrolls the program and computes the domains; [`Skeleton::build_for`] explains `fold`.
    fn unrolled(
        &self,
        facts: TaskFacts<'_>,
        options: OptionValues,
        props: &[&Prop],
        fold: bool,
    ) -> Result<UnrolledValues, Reason> {
        let (purpose, deadline) = (self.purpose, self.deadline);
        let mut sk = Skeleton::build_for(purpose, self.test, options, self.bound, fold, deadline)?;
        for sum in facts.sums {
            let seen = sum.seen(&mut sk);
            sk.sums.extend(seen);
        }
        sk.fall_in(&facts.objects.phases);
        let seeds = if self.excludes_thin_air() {
            Vec::new()
        } else {
            seeds(&sk, props)
        };
        match Domains::compute(&sk, &seeds, facts.known, None, facts.rough, deadline) {
            Ok(domains) => Ok((sk, domains, None)),
            Err(why) => match self.with_fewer_values(&sk, facts.known, &why) {
                Some((sk, domains, needed)) => Ok((sk, domains, Some((needed, why)))),
                None => Err(why),
            },
        }
    }

    /// The skeleton without the values that nothing depends on, with its domains, if it then has
    /// few enough values; `why` is the reason why it has no domains with all values.
    fn with_fewer_values(
        &self,
        sk: &Skeleton,
        known: KnownFacts<'_>,
        why: &Reason,
    ) -> Option<(Skeleton, Domains, NeededTerms)> {
        // No proposition requires any value to exist.
        let may = self.excludes_thin_air() && matches!(why, Reason::TooManyValues(_));
        let filtered = litmus::observables(&self.test.filter, &[]);
        [self.test.observables(), filtered]
            .into_iter()
            .filter(|_| may)
            .find_map(|observables| {
                let mut sk = sk.clone();
                let needed = NeededTerms::alone(&mut sk, &observables);
                let domains =
                    Domains::compute(&sk, &[], known, Some(&needed), false, self.deadline).ok()?;
                needed
                    .covers(&sk, &domains)
                    .then_some((sk, domains, needed))
            })
    }
}

/// The base sets and relations that a model uses, each with the number of open cells of those
/// before it; and the conditions of all open cells.
#[expect(clippy::type_complexity)]
fn bases(
    model: &Model,
    sk: &mut Skeleton,
    domains: &Domains,
    deadline: Option<Instant>,
) -> Result<(FxHashMap<BaseId, (usize, Base)>, Vec<Cond>), Reason> {
    let (mut bases, mut open) = (FxHashMap::default(), Vec::new());
    for node in &model.nodes {
        if let NodeOp::Base(id) = node.op
            && !bases.contains_key(&id)
        {
            let b = base::base(sk, domains, id);
            let first = open.len();
            if let Base::Rel(r) = &b {
                open.extend(r.open.iter().map(|cell| cell.2));
            }
            bases.insert(id, (first, b));
            if stop::late(deadline) {
                return Err(Reason::Time);
            }
        }
    }
    Ok((bases, open))
}

/// The condition under which some access addresses no memory, or a thread meets others that do not
/// arrive.
fn fault(sk: &mut Skeleton, domains: &Domains, deadline: Option<Instant>) -> Result<Cond, Reason> {
    let mut fault = Cond::FALSE;
    for i in 0..sk.len() {
        if i.is_multiple_of(256) && stop::late(deadline) {
            return Err(Reason::Time);
        }
        if domains.may_fault[i] {
            let f = base::faults(sk, domains, i);
            let here = sk.pool.and(f, sk.events[i].guard);
            fault = sk.pool.or(fault, here);
        }
    }
    for at in 0..sk.unmet.len() {
        fault = sk.pool.or(fault, sk.unmet[at].0);
    }
    Ok(fault)
}

/// The writes that may go to a cell, each with the condition for that.
fn writers(sk: &mut Skeleton, domains: &Domains, cell: CellId) -> Vec<(usize, Cond)> {
    let mut writers = Vec::new();
    for i in 0..sk.len() {
        if !sk.events[i].is_write() {
            continue;
        }
        let mut here = Cond::FALSE;
        for &c in &domains.cells[i] {
            if sk.memory.cell(c).memory == cell {
                let at = base::is_at(sk, i, c);
                here = sk.pool.or(here, at);
            }
        }
        if here != Cond::FALSE {
            writers.push((i, here));
        }
    }
    writers
}

/// Whether `po` and barrier order together can be cyclic.
fn has_cyclic_barrier_order(sk: &Skeleton) -> bool {
    !sk.barrier_order.is_empty() && {
        let mut order = sk.program_order().clone();
        for &(a, b, _) in &sk.barrier_order {
            order.insert(a.index(), b.index());
        }
        order.has_cycle(&EventSet::full(sk.len()))
    }
}

/// Constants that a value out of thin air could be compared with, and one that occurs nowhere.
fn seeds(sk: &Skeleton, props: &[&Prop]) -> Vec<i64> {
    fn constants(p: &Prop, out: &mut BTreeSet<i64>) {
        match p {
            Prop::And(ps) | Prop::Or(ps) => ps.iter().for_each(|p| constants(p, out)),
            Prop::Not(p) => constants(p, out),
            Prop::Cmp(_, _, a, b) => {
                for side in [a, b] {
                    side.atoms(&mut |atom| {
                        if let PropAtom::Const(v) = atom {
                            out.insert(*v);
                        }
                    });
                }
            }
        }
    }
    let mut seeds: BTreeSet<i64> = domain::compared_constants(sk).into_iter().collect();
    props.iter().for_each(|p| constants(p, &mut seeds));
    for t in sk.pool.term_ids() {
        seeds.extend(sk.pool.as_const(t));
    }
    let fresh = seeds.iter().max().map_or(1, |m| m.saturating_add(1));
    // The program distinguishes from `fresh` only constants in its propositions and tests.
    let mut named: BTreeSet<i64> = domain::compared_constants(sk).into_iter().collect();
    props.iter().for_each(|p| constants(p, &mut named));
    named.insert(fresh);
    named.into_iter().collect()
}

/// Whether an axiom of the model makes every cycle of `rf` and value flow impossible.
fn excludes_thin_air(model: &Model) -> bool {
    model
        .axioms
        .iter()
        .any(|a| closes_value_flow(model, a, true))
}

/// The axioms that only exclude values out of thin air. They forbid cycles of `rf` with program
/// order or dependencies, and mention no other free relation.
pub fn thin_air_axioms(model: &Model) -> Vec<usize> {
    (0..model.axioms.len())
        .filter(|&i| {
            closes_value_flow(model, &model.axioms[i], true) && is_alone(model, &model.axioms[i])
        })
        .collect()
}

/// Whether an axiom mentions no other free relation than the values.
fn is_alone(model: &Model, a: &Axiom) -> bool {
    let mut seen = vec![false; model.nodes.len()];
    let mut todo = vec![a.node];
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        match &model.node(id).op {
            NodeOp::Free(f) if *f != model.values => return false,
            NodeOp::Var(group, _) => {
                let group = &model.groups[*group as usize];
                todo.extend(group.bodies.iter().copied());
            }
            op => todo.extend(op.operands()),
        }
    }
    true
}

/// Whether an axiom is `acyclic` over a union that holds the values relation and all three
/// dependencies. With `by_order`, program order may replace the dependencies.
pub(crate) fn closes_value_flow(model: &Model, a: &Axiom, by_order: bool) -> bool {
    if a.test != Test::Acyclic || a.negated {
        return false;
    }
    let mut parts: Vec<NodeId> = vec![a.node];
    let (mut has_values, mut ordered, mut dependencies) = (false, false, BTreeSet::new());
    while let Some(id) = parts.pop() {
        match &model.node(id).op {
            NodeOp::Union(x, y) => parts.extend([*x, *y]),
            NodeOp::Free(f) => has_values |= *f == model.values,
            NodeOp::Base(base) => match signature::row(*base).role {
                BaseRole::ProgramOrder => ordered = true,
                BaseRole::Dependency => {
                    dependencies.insert(*base);
                }
                _ => {}
            },
            _ => {}
        }
    }
    has_values
        && (by_order && ordered || dependencies.len() == signature::count(BaseRole::Dependency))
}
