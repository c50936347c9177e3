//! Runs all engines on one task: chooses the engine, and combines several answers.
//!
//! # Invariants
//! - An execution leaves this module only after its replay.
//! - A difference between the engines is a defect, never an answer.

use std::cell::RefCell;
use std::rc::Rc;

use super::Engine;
use super::enumerate::{Enumerate, Patience};
use super::execution::Execution;
use super::facts::bounds::TaskBounds;
use super::facts::{Facts, UnwrittenReads};
use super::initial::{self, Suspects};
use super::query::{Deadline, FinalState, Query, QueryResult};
use super::replay::{self, Replay};
use super::symbolic::{Backend, CircuitEstimate, Symbolic};
use crate::facts::sums::settled;
use crate::limits::Halt;
use cat::algebra::gates::LARGEST;
use program::options::Setting;
use verdict::Reason;

/// The largest circuit that `auto` builds at once, in gates or clauses. If a larger one is needed,
/// the enumerating engine tries first. `cargo bench --bench families` gave these figures: wasted
/// work is less than half of the work that follows.
const SMALL: usize = 8_000;

/// With at most this number of events circuits are small, however many cells are open.
const FEW: usize = 24;

/// How long the enumerating engine tries, unless a probe shows earlier that this will not suffice.
/// Each state that it finds saves a call of the solver.
const PATIENCE: Patience = Patience {
    steps: 28,
    probe: 32,
    more_by_state: 20,
};

/// How many clauses about values buy one more step: computed values slow a solver down, but hardly
/// a search.
const VALUES: usize = 20;

/// The largest relation size, in words, that gets all of these steps. With larger relations each
/// step takes longer, so the number falls, down to zero.
const STEPPED: u64 = 256;

/// How long to try on a task with this number of events: a large task should not waste more time.
fn patience(events: usize, values: usize) -> Patience {
    let words = (events * events.div_ceil(64)) as u64;
    let steps = PATIENCE.steps + (values / VALUES) as u64;
    Patience {
        steps: steps * STEPPED / words.max(STEPPED),
        ..PATIENCE
    }
}

/// The known size of the work.
#[derive(Clone, Copy, Default)]
struct WorkSize {
    /// The expected size of the circuit.
    expected: CircuitEstimate,
    /// Whether the circuit is large, by expectation or by trial.
    large: bool,
    /// Whether the enumerating engine tried and gave up.
    in_vain: bool,
}

/// A task with its engines.
pub struct TaskEngines<'a> {
    /// The task.
    pub facts: Rc<Facts<'a>>,
    enumerate: Enumerate<'a>,
    /// Bounds before any choice: for executions in which all axioms hold and, once needed, for
    /// others.
    starts: Vec<Rc<TaskBounds>>,
    /// One circuit for each entry of `starts`.
    symbolic: Vec<Symbolic<'a>>,
    size: WorkSize,
    /// The reads that may observe memory before any write to it, if that is not worked out yet.
    suspects: Option<Suspects>,
    /// Executions of this task and of those that share its events. The flag says whether to try
    /// them first, when no report shows the execution.
    seen: (Rc<RefCell<Vec<Execution>>>, bool),
}

/// An execution that passed its replay, and the results of the replay.
pub type Checked = (Execution, Replay);

/// The engines' answer.
pub enum Reply {
    /// An execution exists.
    Yes(Box<Checked>),
    /// No execution exists.
    No,
    /// An engine reached a limit.
    Unknown(Reason),
    /// A law was broken.
    Defect(String),
}

impl Reply {
    /// The execution, if one exists.
    pub fn found(self) -> Result<Option<Box<Checked>>, Halt> {
        match self {
            Reply::Yes(found) => Ok(Some(found)),
            Reply::No => Ok(None),
            Reply::Unknown(reason) => Err(Halt::Undecided(reason)),
            Reply::Defect(law) => Err(Halt::Defect(law)),
        }
    }
}

impl<'a> TaskEngines<'a> {
    /// A task before any work.
    pub fn new(facts: Facts<'a>) -> Self {
        TaskEngines::with(facts, WorkSize::default(), Default::default())
    }

    /// A task, after working out which of its values depend on memory before any write to it.
    ///
    /// # Errors
    /// Why this could not be worked out.
    pub fn settled(mut facts: Facts<'a>, deadline: Deadline) -> Result<Self, Reason> {
        let Some((suspects, bounds)) = Suspects::of(&facts, deadline.0)? else {
            return Ok(TaskEngines::new(facts));
        };
        facts.unwritten = confirmed(&facts, &suspects, deadline)?;
        Ok(TaskEngines {
            starts: vec![Rc::new(bounds)],
            ..TaskEngines::new(facts)
        })
    }

    /// A task that works out which of its values depend on memory before any write to it only once
    /// an answer may depend on that. Until then its facts name all reads that may see such memory.
    ///
    /// # Errors
    /// There is no time left.
    pub fn suspecting(mut facts: Facts<'a>, deadline: Deadline) -> Result<Self, Reason> {
        let Some((suspects, bounds)) = Suspects::of(&facts, deadline.0)? else {
            return Ok(TaskEngines::new(facts));
        };
        facts.unwritten = suspects.all(&facts);
        Ok(TaskEngines {
            starts: vec![Rc::new(bounds)],
            suspects: Some(suspects),
            ..TaskEngines::new(facts)
        })
    }

    /// Why the answer "no execution" depends on memory before any write to it, if it does. Suspects
    /// are confirmed only if it depends on one of them.
    fn first_value(
        &mut self,
        query: &Query<'_>,
        lists: bool,
        deadline: Deadline,
    ) -> Option<Reason> {
        let props = || query.props.iter().map(|p| p.0);
        let suspected = self.facts.first_value(props(), lists)?;
        let Some(suspects) = &self.suspects else {
            return Some(suspected);
        };
        let mut facts = (*self.facts).clone();
        facts.unwritten = UnwrittenReads::default();
        match confirmed(&facts, suspects, deadline) {
            Ok(unwritten) => {
                facts.unwritten = unwritten;
                self.facts = Rc::new(facts);
                self.suspects = None;
                self.facts.first_value(props(), lists)
            }
            Err(reason) => Some(reason),
        }
    }

    /// The same task under other settings, for questions about existence that do not show the
    /// execution. `None` if it has to be built anew.
    pub fn under(&self, set: &[Setting]) -> Option<Self> {
        Some(TaskEngines::with(
            self.facts.under(set)?,
            self.size,
            (self.seen.0.clone(), true),
        ))
    }

    fn with(facts: Facts<'a>, size: WorkSize, seen: (Rc<RefCell<Vec<Execution>>>, bool)) -> Self {
        let facts = Rc::new(facts);
        TaskEngines {
            enumerate: Enumerate::new(&facts),
            starts: Vec::new(),
            symbolic: Vec::new(),
            size,
            suspects: None,
            seen,
            facts,
        }
    }

    /// An earlier execution that the plain evaluator accepts for this query. The evaluator judges
    /// executions whatever their origin, so this is sound.
    fn known(&self, query: &Query<'_>) -> Option<Checked> {
        self.seen
            .0
            .borrow()
            .iter()
            .filter(|_| self.seen.1)
            .find_map(|execution| {
                let replayed = replay::check(&self.facts, execution, query).ok()?;
                Some((execution.clone(), replayed))
            })
    }

    /// Puts a query to the engine or engines, and replays their executions.
    pub fn ask(
        &mut self,
        engine: Engine,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Reply, &'static str) {
        let (said, who) = self.put_to(engine, query, deadline);
        let depends_on = match said {
            Reply::No => self.first_value(query, false, deadline),
            _ => None,
        };
        (depends_on.map_or(said, Reply::Unknown), who)
    }

    /// As [`FactsEngines::ask`], with 0 in memory before any write to it.
    fn put_to(
        &mut self,
        engine: Engine,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Reply, &'static str) {
        if let Some(reason) = self.facts.unknown(query.props.iter().map(|p| p.0), false) {
            return (Reply::Unknown(reason), engine.name());
        }
        let (found, who) = match engine {
            Engine::Both => return (self.ask_all(query, deadline), engine.name()),
            Engine::Auto => {
                if let Some(known) = self.known(query) {
                    return (Reply::Yes(Box::new(known)), engine.name());
                }
                self.by_size(
                    query,
                    deadline,
                    |prepared, size| prepared.find(Engine::Sat, size, query, deadline),
                    |engine, patience| engine.find_within(query, deadline, patience),
                )
            }
            alone => (self.find(alone, LARGEST, query, deadline), alone),
        };
        let said = self.judge(found, who, query);
        if let (Engine::Auto, Reply::Yes(found)) = (engine, &said) {
            self.seen.0.borrow_mut().push(found.0.clone());
        }
        (said, who.name())
    }

    /// Chooses the engine by the size of the circuit. A small circuit is solved at once; before a
    /// large one, the enumerating engine tries. It also takes tasks that are too large for any
    /// circuit.
    fn by_size<T: Gap>(
        &mut self,
        query: &Query<'_>,
        deadline: Deadline,
        solve: impl Fn(&mut Self, usize) -> T,
        walk: impl Fn(&Enumerate<'a>, Option<Patience>) -> Option<T>,
    ) -> (T, Engine) {
        let whole = |engine: &Enumerate<'a>| {
            (
                walk(engine, None).expect("patience without end"),
                Engine::Enumerate,
            )
        };
        let events = self.facts.sk.len();
        if !self.size.large && self.symbolic.is_empty() && events > FEW {
            let start = self.start(&query.axioms, deadline);
            self.size.expected = start.map_or_else(
                |_| CircuitEstimate::default(),
                |start| Symbolic::expected(&self.facts, &start, SMALL),
            );
            self.size.large = self.size.expected.values + self.size.expected.relations > SMALL;
        }
        if !self.size.large {
            let said = solve(self, SMALL);
            match said.gap() {
                None | Some(Reason::Time | Reason::TooManyOutcomes(_)) => {
                    return (said, Engine::Sat);
                }
                Some(Reason::TooManyGates) => self.size.large = true,
                Some(_) => return whole(&self.enumerate),
            }
        }
        // A circuit that exists already answers further questions sooner.
        if !self.size.in_vain && self.symbolic.iter().all(|circuit| circuit.size() < LARGEST) {
            match walk(
                &self.enumerate,
                Some(patience(events, self.size.expected.values)),
            ) {
                Some(found) => return (found, Engine::Enumerate),
                None => self.size.in_vain = true,
            }
        }
        let said = solve(self, LARGEST);
        match said.gap() {
            None | Some(Reason::Time | Reason::TooManyOutcomes(_)) => (said, Engine::Sat),
            Some(_) => whole(&self.enumerate),
        }
    }

    /// Puts a query to all engines, and compares their answers.
    fn ask_all(&mut self, query: &Query<'_>, deadline: Deadline) -> Reply {
        let (mut yes, mut no, mut unknown) = (None, None, None);
        for &engine in Engine::ALONE {
            let found = self.find(engine, LARGEST, query, deadline);
            match self.judge(found, engine, query) {
                Reply::Defect(law) => return Reply::Defect(law),
                Reply::Unknown(reason) => _ = unknown.get_or_insert(reason),
                Reply::No => _ = no.get_or_insert(engine),
                Reply::Yes(found) => _ = yes.get_or_insert((engine, found)),
            }
        }
        match (yes, no, unknown) {
            // If values out of thin air continue without end, each engine sees another part of
            // them.
            (Some((some, _)), Some(none), _) if !self.facts.misses_values(&query.axioms) => {
                Reply::Defect(format!(
                    "the engines differ: {} finds an execution, {} finds none",
                    some.name(),
                    none.name()
                ))
            }
            (.., Some(reason)) => Reply::Unknown(reason),
            (Some((_, found)), ..) => Reply::Yes(found),
            (None, ..) => Reply::No,
        }
    }

    /// An engine's answer, with its execution replayed.
    fn judge(&self, found: QueryResult, who: Engine, query: &Query<'_>) -> Reply {
        match found {
            QueryResult::No => Reply::No,
            QueryResult::Unknown(reason) => Reply::Unknown(reason),
            QueryResult::Yes(execution) => {
                let execution = settled(&self.facts, *execution);
                match replay::check(&self.facts, &execution, query) {
                    Ok(replayed) => Reply::Yes(Box::new((execution, replayed))),
                    Err(law) => Reply::Defect(format!(
                        "a witness of the engine {} failed its replay: {law}",
                        who.name()
                    )),
                }
            }
        }
    }

    /// The final states of all executions that a query describes, by the engine or engines.
    pub fn all_states(
        &mut self,
        engine: Engine,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Halt>, &'static str) {
        let props = query.props.iter().map(|p| p.0);
        let unknown = self.facts.unknown(props, true);
        if let Some(reason) = unknown.or_else(|| self.first_value(query, true, deadline)) {
            return (Vec::new(), Some(Halt::Undecided(reason)), engine.name());
        }
        let ((states, reason), who) = match engine {
            Engine::Both => {
                let (states, halt) = self.states_of_all(query, deadline);
                return (states, halt, engine.name());
            }
            Engine::Auto => self.by_size(
                query,
                deadline,
                |prepared, size| prepared.states(Engine::Sat, size, query, deadline),
                |engine, patience| engine.states_within(query, deadline, patience),
            ),
            alone => (self.states(alone, LARGEST, query, deadline), alone),
        };
        (states, reason.map(Halt::Undecided), who.name())
    }

    /// The final states that all engines find, compared.
    fn states_of_all(
        &mut self,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Halt>) {
        let mut all: Vec<FinalState> = Vec::new();
        let mut first: Option<(Engine, Vec<FinalState>)> = None;
        let mut gap = None;
        for &engine in Engine::ALONE {
            let (states, reason) = self.states(engine, LARGEST, query, deadline);
            all.extend_from_slice(&states);
            if reason.is_some() {
                gap = gap.or(reason);
                continue;
            }
            match &first {
                Some((other, theirs))
                    if *theirs != states && !self.facts.misses_values(&query.axioms) =>
                {
                    let law = format!(
                        "the engines differ in outcomes: only {}: {}; only {}: {}",
                        other.name(),
                        self.only_in(theirs, &states),
                        engine.name(),
                        self.only_in(&states, theirs)
                    );
                    return (states, Some(Halt::Defect(law)));
                }
                Some(_) => {}
                None => first = Some((engine, states)),
            }
        }
        all.sort_unstable();
        all.dedup();
        (all, gap.map(Halt::Undecided))
    }

    /// The states of one list that are not in another.
    fn only_in(&self, of: &[FinalState], not: &[FinalState]) -> String {
        let named = of
            .iter()
            .filter(|s| !not.contains(s))
            .map(|s| self.facts.name_state(s));
        named
            .map(|state| format!("{state:?}"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Puts a query to one engine, with a circuit of at most this size.
    fn find(
        &mut self,
        engine: Engine,
        size: usize,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> QueryResult {
        self.put(
            engine,
            size,
            query,
            deadline,
            |enumerate| enumerate.find(query, deadline),
            |circuit, with| circuit.find(with, query, deadline),
        )
    }

    /// As [`FactsEngines::find`], for all final states.
    fn states(
        &mut self,
        engine: Engine,
        size: usize,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> States {
        self.put(
            engine,
            size,
            query,
            deadline,
            |enumerate| enumerate.states(query, deadline),
            |circuit, with| circuit.states(with, query, deadline),
        )
    }

    /// Runs one engine.
    fn put<T: Gap>(
        &mut self,
        engine: Engine,
        size: usize,
        query: &Query<'_>,
        deadline: Deadline,
        walk: impl FnOnce(&Enumerate<'a>) -> T,
        solve: impl FnOnce(&mut Symbolic<'a>, Backend) -> T,
    ) -> T {
        let asked = match backend(engine) {
            Ok(None) => return walk(&self.enumerate),
            Ok(Some(with)) => self
                .symbolic(&query.axioms, size, deadline)
                .map(|circuit| solve(circuit, with)),
            Err(reason) => Err(reason),
        };
        asked.unwrap_or_else(T::of)
    }

    /// Bounds for executions in which certain axioms hold, computed at first need.
    fn start(&mut self, axioms: &[bool], deadline: Deadline) -> Result<Rc<TaskBounds>, Reason> {
        if let Some(start) = self.starts.iter().find(|start| start.serve(axioms)) {
            return Ok(start.clone());
        }
        let all = axioms.iter().all(|&on| on);
        let rested = if all {
            axioms.to_vec()
        } else {
            vec![false; axioms.len()]
        };
        let start = Rc::new(TaskBounds::new(&self.facts, &rested, deadline.0).ok_or(Reason::Time)?);
        self.starts.push(start.clone());
        Ok(start)
    }

    /// The circuit for executions in which certain axioms hold, built at first need. It has at most
    /// this size, unless a larger one exists.
    fn symbolic(
        &mut self,
        axioms: &[bool],
        size: usize,
        deadline: Deadline,
    ) -> Result<&mut Symbolic<'a>, Reason> {
        let start = self.start(axioms, deadline)?;
        // An encoding that ran out of time is useless to the next question, which has its own
        // deadline. A large task has no room for a small circuit in addition.
        let is_of = |circuit: &Symbolic<'_>| Rc::ptr_eq(circuit.start(), &start);
        self.symbolic.retain(|circuit| {
            !circuit.out_of_time() && (!is_of(circuit) || circuit.size() >= size)
        });
        let at = self.symbolic.iter().position(is_of).unwrap_or_else(|| {
            self.symbolic
                .push(Symbolic::new(&self.facts, start.clone(), size, deadline));
            self.symbolic.len() - 1
        });
        Ok(&mut self.symbolic[at])
    }
}

/// Final states, and why the list may be incomplete.
type States = (Vec<FinalState>, Option<Reason>);

/// A result that may be incomplete.
trait Gap {
    /// The empty result, for a reason.
    fn of(reason: Reason) -> Self;

    /// Why the result is incomplete, if it is.
    fn gap(&self) -> Option<&Reason>;
}

impl Gap for QueryResult {
    fn of(reason: Reason) -> Self {
        QueryResult::Unknown(reason)
    }

    fn gap(&self) -> Option<&Reason> {
        if let QueryResult::Unknown(reason) = self {
            Some(reason)
        } else {
            None
        }
    }
}

impl Gap for States {
    fn of(reason: Reason) -> Self {
        (Vec::new(), Some(reason))
    }

    fn gap(&self) -> Option<&Reason> {
        self.1.as_ref()
    }
}

/// The suspects that can observe memory before any write to it.
fn confirmed(
    facts: &Facts<'_>,
    suspects: &Suspects,
    deadline: Deadline,
) -> Result<UnwrittenReads, Reason> {
    let ask = |facts: Facts<'_>, query: &Query<'_>| match TaskEngines::new(facts)
        .ask(Engine::Auto, query, deadline)
        .0
    {
        Reply::Yes(found) => Ok(Some(found.0)),
        Reply::No => Ok(None),
        Reply::Unknown(reason) => Err(reason),
        Reply::Defect(law) => Err(Reason::Engine(law)),
    };
    initial::unwritten(facts, suspects, &ask)
}

/// The solver for an engine that answers alone; `None` if it needs no circuit.
fn backend(engine: Engine) -> Result<Option<Backend>, Reason> {
    match engine {
        Engine::Symbolic => Ok(Some(Backend::Z3)),
        Engine::Sat | Engine::Auto | Engine::Both => Ok(Some(Backend::Sat)),
        Engine::Enumerate => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::enumerate;
    use crate::tests::{facts, holds, parsed, shipped};

    /// Two threads that each store to their own location, in turn with a fence, and read the
    /// other's.
    fn store_buffering(rounds: usize, fence: &str) -> String {
        let mut text =
            "name = \"SB\"\ncondition = 'P0:r0 == 0 /\\ P1:r0 == 0'\nmemory = { x = 0, y = 0 }\n"
                .to_string();
        for (cta, (mine, other)) in [("x", "y"), ("y", "x")].into_iter().enumerate() {
            let code = format!("st.relaxed.gpu {mine}, 1; {fence} ld.relaxed.gpu r0, {other}; ")
                .repeat(rounds);
            text += &format!("[[thread]]\ncta = {cta}\ncode = \"{code}\"\n");
        }
        text
    }

    /// The number of steps that the enumerating engine takes to look for the condition, and whether
    /// it ends.
    fn steps(text: &str, patience: Option<Patience>) -> (u64, bool) {
        let test = parsed(text);
        let model = shipped("ptx");
        enumerate::steps(&facts(&test, &model), &holds(&test, &model), patience)
    }

    #[test]
    fn auto_goes_by_the_size_of_the_circuit() {
        let answered_by = |text: &str, all: bool| {
            let test = parsed(text);
            let model = shipped("ptx");
            let mut prepared = TaskEngines::new(facts(&test, &model));
            let query = Query {
                props: if all {
                    vec![]
                } else {
                    vec![(test.condition.as_ref().expect("has one"), true)]
                },
                ..Query::complete(&model)
            };
            let who = if all {
                prepared.all_states(Engine::Auto, &query, Deadline(None)).2
            } else {
                prepared.ask(Engine::Auto, &query, Deadline(None)).1
            };
            (who, prepared.size.large, prepared.symbolic.len())
        };
        for all in [false, true] {
            assert_eq!(
                answered_by(&store_buffering(1, "fence.sc.gpu;"), all),
                ("sat", false, 1)
            );
            // The enumerating engine takes too long with this number of fences.
            assert_eq!(
                answered_by(&store_buffering(16, "fence.sc.gpu;"), all),
                ("sat", true, 1)
            );
        }
        // Many threads; the first path is already an answer.
        let one = |k: usize| {
            format!(
                "ld.relaxed.gpu r{k}, x; setp.eq p, r{k}, 0; @p bra L{k}; st.relaxed.gpu y, {}; \
                L{k}: ",
                k + 1
            )
        };
        let code: String = (0..4).map(one).collect();
        let condition = "y == 4 /\\ P0:r0 == 1 /\\ P0:r3 == 0";
        let mut branches = format!(
            "name = \"Branches\"\ncondition = '{condition}'\nmemory = {{ x = 0, y = 0 }}\n"
        );
        for code in std::iter::repeat_n(code.as_str(), 24).chain(["st.relaxed.gpu x, 1;"]) {
            branches += &format!("[[thread]]\ncode = \"{code}\"\n");
        }
        assert_eq!(answered_by(&branches, false), ("enumerate", true, 0));
        // The search takes more than 28 steps; the values computed from each other justify them.
        let code = "atom.relaxed.gpu.add.u32 r0, x, 1; ld.relaxed.gpu.u32 r1, x; ".repeat(8);
        let counter = format!(
            "name = \"Counter\"\ncondition = 'P0:r1 == 8 /\\ P1:r1 == 16'\nmemory = {{ x = 0 }}\n\
             [[thread]]\ncta = 0\ncode = \"{code}\"\n[[thread]]\ncta = 1\ncode = \"{code}\"\n"
        );
        assert_eq!(answered_by(&counter, false), ("enumerate", true, 0));
    }

    #[test]
    fn a_search_tells_early_that_it_will_be_long() {
        let searched = |rounds: usize, patience: Option<Patience>| {
            let text = store_buffering(rounds, "fence.sc.gpu;");
            steps(&text, patience)
        };
        // A short search runs to its end.
        let whole = searched(2, None);
        let early = Patience {
            steps: 400,
            ..PATIENCE
        };
        assert!(whole.1 && whole.0 > PATIENCE.probe, "{whole:?}");
        assert_eq!(searched(2, Some(early)), whole);
        let late = Patience {
            probe: early.steps,
            ..early
        };
        let (sooner, later) = (searched(8, Some(early)), searched(8, Some(late)));
        assert!(
            !sooner.1 && !later.1 && sooner.0 < later.0 / 2,
            "{sooner:?} {later:?}"
        );
    }

    #[test]
    fn what_nothing_speaks_against_is_not_gone_through_for_every_way_of_it() {
        // None of four atomic additions finds five; loads of other locations come first.
        let searched = |beside: usize| {
            let others: Vec<String> = (0..beside).map(|i| format!("x{i}")).collect();
            let each = |of: &dyn Fn(&String) -> String| others.iter().map(of).collect::<String>();
            let mut text = format!(
                "name = \"Beside\"\ncondition = 'P1:r == 5'\nmemory = {{ c = 0{} }}\n",
                each(&|x| format!(", {x} = 0"))
            );
            let add = "atom.relaxed.gpu.add r, c, 1; ".repeat(2);
            let threads = [
                each(&|x| format!("ld.relaxed.gpu {x}r, {x}; ")) + &add,
                add,
                each(&|x| format!("st.relaxed.gpu {x}, 1; ")),
            ];
            for (cta, code) in threads.iter().filter(|code| !code.is_empty()).enumerate() {
                text += &format!("[[thread]]\ncta = {cta}\ncode = \"{code}\"\n");
            }
            let (steps, whole) = steps(&text, None);
            assert!(whole);
            steps
        };
        let (alone, beside) = (searched(0), searched(10));
        // In the order of events the search would take a thousand times as long.
        assert!(alone > 20 && beside < 60 * alone, "{alone} {beside}");
    }

    /// Operations on one location follow each other: the search decides which comes next, not which
    /// others each one follows.
    #[test]
    fn operations_are_put_one_behind_the_other() {
        let searched = |n: usize, condition: &str| {
            let mut text =
                format!("name = \"Counter\"\ncondition = '{condition}'\nmemory = {{ c = 0 }}\n");
            for cta in 0..n {
                text += &format!(
                    "[[thread]]\ncta = {cta}\ncode = \"atom.relaxed.gpu.add r, c, {}\"\n",
                    1 << cta
                );
            }
            steps(&text, None)
        };
        // The sum is the same in each order; the last operation finds the sum of all others.
        for (n, condition) in (3..6).zip(["c == 6", "c == 14", "c == 30"]) {
            let orders: u64 = (1..=n as u64).product();
            let (steps, whole) = searched(n, condition);
            assert!(whole && steps < 30 * orders, "{n}: {steps}");
            let (steps, _) = searched(n, &condition.replace("==", "!="));
            assert!(steps < 30, "{n}: {steps}");
        }
    }

    /// A thread that adds up what it reads, in both orders.
    fn sums(reads: usize, condition: &str) -> String {
        let each = |of: &dyn Fn(usize) -> String| (0..reads).map(of).collect::<String>();
        let code = each(&|i| format!("ld.relaxed.gpu.u32 r{i}, [x{i}]; "))
            + "mov.u32 s, 0; mov.u32 t, 0; "
            + &each(&|i| format!("add.u32 s, s, r{i}; "))
            + &each(&|i| format!("add.u32 t, t, r{}; ", reads - 1 - i));
        let writes = each(&|i| format!("st.relaxed.gpu.u32 [x{i}], {}; ", 1 << i));
        let cells: Vec<String> = (0..reads).map(|i| format!("x{i} = 0")).collect();
        format!(
            "name = \"Sums\"\ncondition = '{condition}'\nmemory = {{ {} }}\n\
             [[thread]]\ncode = '{code}'\n[[thread]]\ncode = '{writes}'\n",
            cells.join(", ")
        )
    }

    #[test]
    fn equal_sums_need_no_bits() {
        let model = shipped("ptx");
        for (condition, is_possible) in [
            ("P0:s != P0:t", false),
            ("~(P0:s == P0:t)", false),
            ("P0:s == P0:t && P0:r0 == 1", true),
            ("P0:s != P0:r0", true),
        ] {
            // With many reads, the bits of the sums are too many for a small circuit.
            for (reads, engines) in [(24, &[Engine::Sat][..]), (3, Engine::ALONE)] {
                let test = parsed(&sums(reads, condition));
                let query = holds(&test, &model);
                for &engine in engines {
                    let mut prepared = TaskEngines::new(facts(&test, &model));
                    let size = if is_possible { LARGEST } else { SMALL };
                    let found = prepared.find(engine, size, &query, Deadline(None));
                    assert!(found.gap().is_none(), "{condition} {reads} {engine:?}");
                    let is_found = matches!(found, QueryResult::Yes(_));
                    assert_eq!(is_found, is_possible, "{condition} {reads} {engine:?}");
                }
            }
        }
    }

    #[test]
    fn a_question_without_stack_is_given_up() {
        let text = store_buffering(2, "fence.sc.gpu;");
        let test = parsed(&text);
        let model = shipped("ptx");
        let query = holds(&test, &model);
        for &engine in Engine::ALONE
            .iter()
            .filter(|&&engine| engine != Engine::Enumerate)
        {
            let asked = |stack: usize| {
                let facts = facts(&test, &model);
                let mut prepared = TaskEngines::new(facts);
                let _share = stop::share(None, stack);
                let (said, _) = prepared.ask(engine, &query, Deadline(None));
                (matches!(said, Reply::Unknown(Reason::Time)), stop::spent())
            };
            assert_eq!(asked(2_000), (true, Some(stop::Spent::Stack)), "{engine:?}");
            assert_eq!(asked(10_000_000), (false, None), "{engine:?}");
        }
    }

    #[test]
    fn a_question_that_ran_out_of_time_takes_nothing_from_the_next() {
        // Large enough that building the circuit runs out of time, not only the solver.
        let mut text =
            "name = \"SB\"\ncondition = 'P0:r0 == 0 /\\ P1:r0 == 0'\nmemory = { x = 0, y = 0 }\n"
                .to_string();
        for (cta, (mine, other)) in [("x", "y"), ("y", "x")].into_iter().enumerate() {
            let store = format!("st.relaxed.gpu {mine}, 1; ").repeat(8);
            text += &format!(
                "[[thread]]\ncta = {cta}\ncode = \"{store} ld.relaxed.gpu r0, {other}\"\n"
            );
        }
        let test = parsed(&text);
        let model = shipped("ptx");
        let facts = facts(&test, &model);
        let mut prepared = TaskEngines::new(facts);
        let query = holds(&test, &model);
        // The circuit exists already when a query needs the axioms but has no time to encode them.
        let no_axioms = Query {
            axioms: vec![false; model.axioms.len()],
            ..query.clone()
        };
        prepared.ask(Engine::Sat, &no_axioms, Deadline(None));
        for &engine in Engine::ALONE.iter().chain(&[Engine::Both]) {
            let past = Deadline(Some(Instant::now()));
            let (said, _) = prepared.ask(engine, &query, past);
            assert!(matches!(said, Reply::Unknown(Reason::Time)) || engine == Engine::Enumerate);
            let (said, _) = prepared.ask(engine, &query, Deadline(None));
            assert!(matches!(said, Reply::Yes(_)), "{engine:?}");
        }
    }
}
