//! Answers about a kernel: race-free or uniform for every launch, refuted by an execution, or
//! undecided with the reason.
//!
//! # Invariants
//! - A proof is a question without an answer for each pair of accesses that can conflict; one that
//!   is not answered in its time is no proof.
//! - What the conditions of a question have in common is satisfiable, or nothing is proved.
//! - A race is told only with an execution of the exact engines.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use diag::{SourceLine, Span};
use front::litmus::form::Form;
use program::litmus::LitmusTest;
use program::{CmpOp, Dialect, LocId, LocationKind, Program, Scope, Space, Ty};
use rustc_hash::{FxHashMap, FxHashSet};
use verdict::Launches;

use crate::asking::{asked, asked_of_words};
use crate::barriers::is_arrival;
use crate::bounds::{is_inside, is_of_inputs, outside};
use crate::exec::{AccessAt, Behaviour, ReadValues, behaviour};
use crate::launch::{Sizes, most_threads, names, setting};
use crate::operations::is_of_object;
use crate::overflow::overflow;
use crate::pairs::{
    Inclusion, PairQuestion, Sides, SymbolicRun, Together, conflict, divergence, race, unlike,
};
use crate::phases::handovers;
use crate::replay::{self, ExactLaunch, Replayed};
use crate::solver::{Said, SolverConstants, ask};
use crate::term::{Term, Terms};
use crate::{assume, integers, words};

/// A question about a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelProperty {
    /// Can two accesses race?
    Race,
    /// Can two threads of a block part before a barrier?
    Divergence,
    /// Can an access lie outside of its object? It is asked where races are.
    Bounds,
}

/// A kernel, and the file that it is in.
#[derive(Clone, Copy)]
pub struct KernelInput<'a> {
    /// The kernel for every launch.
    pub form: &'a Form,
    /// The name of its file.
    pub name: &'a str,
    /// The file.
    pub bytes: &'a [u8],
    /// Of a kernel of a source file: the test that was made of it.
    pub source: Option<&'a LitmusTest>,
}

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct KernelLimits {
    /// Time for one question.
    pub question: Duration,
    /// Time for one answer.
    pub answer: Duration,
    /// Pairs of accesses.
    pub pairs: usize,
    /// Whether suspicions are tried on small launches.
    pub tries: bool,
    /// A part that proofs are made without, in a test of this crate.
    #[doc(hidden)]
    pub without: Option<Part>,
}

/// A part of the argument. Without one of the first five, something racy is called race-free, or
/// something divergent uniform; without one of the others, a proof is missing.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Threads of different blocks.
    Grid,
    /// The scopes of atomic accesses.
    Scopes,
    /// Threads that end in front of a barrier, whose last accesses stay unordered.
    Exits,
    /// Threads come to the barriers together.
    Together,
    /// The two threads are in iterations of their own.
    Iterations,
    /// A wait for an mbarrier object orders accesses behind those before the arrivals.
    Rings,
    /// Two atomic additions read different values.
    Tickets,
    /// A thread reads from its own memory the last value that it stored there.
    OwnMemory,
    /// The solver answers whether numbers leave their types.
    Leaving,
}

impl RunOptions {
    /// For a suspicion.
    pub(crate) fn of(apart: &Apart) -> RunOptions {
        RunOptions {
            wraps: apart.wraps,
            ..RunOptions::default()
        }
    }
}

impl Default for KernelLimits {
    fn default() -> KernelLimits {
        KernelLimits {
            question: Duration::from_secs(2),
            answer: Duration::from_secs(10),
            pairs: 5_000,
            tries: true,
            without: None,
        }
    }
}

/// How far a proof goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proved {
    /// All launches, and all inputs.
    EveryLaunch,
    /// Launches of one size, and all inputs.
    EveryInput,
    /// The launch that the file gives, with its arguments, and all contents of memory.
    EveryContent,
}

impl Proved {
    /// In the words of answers.
    pub fn launches(self) -> Launches {
        match self {
            Proved::EveryLaunch => Launches::Every,
            Proved::EveryInput => Launches::Size,
            Proved::EveryContent => Launches::Arguments,
        }
    }
}

/// Two places of a kernel that a proof could not separate; of a barrier, both are the same.
#[derive(Clone, Debug)]
pub struct Apart {
    /// The lines.
    pub lines: [SourceLine; 2],
    /// The places of the instructions in the file.
    pub spans: [Span; 2],
    /// Their numbers in the code.
    pub at: [usize; 2],
    /// Whether the threads are of one block.
    pub together: Together,
    /// Whether it depends on values that the proof knows nothing of.
    pub free: bool,
    /// Whether an access may lie outside of its object. Both places are the same.
    pub leaves: bool,
    /// Whether numbers that loops double wrap around.
    pub wraps: bool,
}

/// An answer about a kernel.
#[derive(Clone, Debug)]
pub enum KernelVerdict {
    /// It cannot happen.
    Never {
        /// How far that goes.
        proved: Proved,
        /// The assumptions of the proof.
        assumed: Vec<String>,
    },
    /// It happens: an execution of the exact engines shows it.
    Happens {
        /// The launch that shows it.
        launch: String,
        /// Where it was suspected.
        apart: Apart,
        /// The exact answer, with its execution.
        exact: Box<verdict::Answer>,
        /// The kernel with that launch.
        test: Box<LitmusTest>,
    },
    /// It does not happen in small launches, with the inputs of the file.
    Tried {
        /// Blocks and threads of the largest launch.
        up_to: [u64; 2],
        /// Where it was suspected.
        apart: Apart,
    },
    /// It is not known.
    Undecided {
        /// Why.
        reason: String,
        /// Where it was suspected, if it was.
        apart: Option<Apart>,
    },
}

/// Decides a property of a kernel: for every launch, or for the one that its file gives.
pub fn decide(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    any: bool,
    limits: &KernelLimits,
) -> KernelVerdict {
    let sizes = match any {
        true => Sizes::ANY,
        false => Sizes::given(kernel.form),
    };
    decide_for(kernel, property, sizes, limits)
}

/// Decides a property of a kernel for launches of some sizes.
pub fn decide_for(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    sizes: Sizes,
    limits: &KernelLimits,
) -> KernelVerdict {
    let end = Instant::now() + limits.answer;
    let proof = Proof {
        kernel,
        limits,
        end,
        overflow: false,
        wraps: false,
        leaving: None,
    };
    proof.decide(property, sizes.within(kernel.form.limit), true)
}

/// The lines of accesses and barriers that no thread comes to in any launch. A proof says nothing
/// of these. If they are not dead code, some condition is wrong.
///
/// # Errors
/// The kernel's assumption cannot be read.
pub fn unreached(
    kernel: KernelInput<'_>,
    any: bool,
    question: Duration,
) -> Result<Vec<SourceLine>, String> {
    let sizes = match any {
        true => Sizes::ANY,
        false => Sizes::given(kernel.form),
    };
    let mut run = run(
        kernel.form,
        sizes.within(kernel.form.limit),
        RunOptions::default(),
    )?;
    let accesses = run.behaviour.accesses.iter();
    let accesses = accesses.map(|a| (a.guard, a.facts.clone(), a.at));
    let barriers = run.behaviour.barriers.iter();
    let barriers = barriers.map(|b| (b.guard, [&b.facts[..], &b.within].concat(), b.at));
    let places: Vec<(Term, Vec<Term>, usize)> = accesses.chain(barriers).collect();
    let code = &kernel.form.test.program.threads[0].code;
    let mut lines = Vec::new();
    for (guard, facts, at) in places {
        let setting = &run.setting;
        let mut all = [&setting.facts[..], &setting.of_thread, &facts].concat();
        all.push(guard);
        let (text, _) = integers::question(&mut run.terms, &all);
        if ask(&text, question, SolverConstants::Nothing) == Said::No {
            lines.push(code[at].line.clone());
        }
    }
    Ok(lines)
}

struct Proof<'a> {
    kernel: KernelInput<'a>,
    limits: &'a KernelLimits,
    end: Instant,
    /// Whether sums were taken not to overflow.
    overflow: bool,
    /// Whether all questions are about machine words, where numbers wrap around.
    wraps: bool,
    /// The lines at which numbers may leave their types, where those are known.
    leaving: Option<BTreeSet<u32>>,
}

/// How a kernel is run.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunOptions {
    /// Up to any race of an execution, not up to the first one.
    pub(crate) beyond_races: bool,
    /// Numbers that loops double may wrap around.
    pub(crate) wraps: bool,
    /// As in [`KernelLimits`].
    pub(crate) without: Option<Part>,
}

/// Runs a kernel.
///
/// # Errors
/// Its assumption cannot be read.
pub(crate) fn run(form: &Form, sizes: Sizes, options: RunOptions) -> Result<SymbolicRun, String> {
    let without = options.without;
    let mut terms = Terms::default();
    let mut setting = setting(form, sizes, &mut terms);
    if let Some((text, _)) = &form.assume {
        let names = names(form, &setting);
        let assumed = assume::parse(text, &names, &mut terms)
            .map_err(|why| format!("`assume` cannot be read: {why}"))?;
        setting.facts.push(assumed);
    }
    let regs = setting.regs.clone();
    let reads = ReadValues {
        trusting: !options.beyond_races,
        remembers: without != Some(Part::OwnMemory),
        wraps: options.wraps,
    };
    let mut behaviour = behaviour(&form.test.program, regs, &mut terms, reads, &form.targets);
    reach_no_further(&form.test.program, &mut behaviour);
    let mut run = SymbolicRun {
        terms,
        setting,
        behaviour,
        handovers: Vec::new(),
        trusts_phases: false,
        sides: Sides::default(),
        equal: FxHashMap::default(),
    };
    if without != Some(Part::Rings) {
        run.handovers = handovers(&mut run, &form.test.program, options.wraps);
    }
    Ok(run)
}

/// Gives atomic accesses of OpenCL the scopes that they have in effect: in local memory that of the
/// work-group at most, and that of the device in memory that is not fine-grained with atomics
/// (`models/opencl-scopes.cat`).
fn reach_no_further(program: &Program, behaviour: &mut Behaviour) {
    if program.dialect != Dialect::OpenCl {
        return;
    }
    for access in &mut behaviour.accesses {
        let widest = match &program.location(access.object).kind {
            LocationKind::Object {
                space: Space::Shared,
                ..
            } => Scope::Cta,
            LocationKind::Object { kind, .. } if program.machine.has_svm_atomics(*kind) => {
                Scope::Sys
            }
            _ => Scope::Gpu,
        };
        access.atomic = access.atomic.map(|scope| scope.min(widest));
    }
}

impl Proof<'_> {
    /// `trusting`: values are those of an execution up to its first race.
    fn decide(mut self, property: KernelProperty, sizes: Sizes, trusting: bool) -> KernelVerdict {
        fn undecided(reason: String) -> KernelVerdict {
            KernelVerdict::Undecided {
                reason,
                apart: None,
            }
        }
        if self.kernel.form.range.remainder().is_some() && !sizes.grid.contains(&None) {
            return undecided("the last work-group is smaller than the others".into());
        }
        let options = RunOptions {
            beyond_races: !trusting,
            wraps: self.wraps,
            without: self.limits.without,
        };
        let mut run = match run(self.kernel.form, sizes, options) {
            Ok(run) => run,
            Err(why) => return undecided(why),
        };
        if let Some((at, why)) = run.behaviour.unknown.iter().next() {
            return undecided(format!("line {}: {why}", self.line(*at).number));
        }
        let exits = run.behaviour.exits.clone();
        self.leave_out(&mut run.behaviour);
        if let Err(why) = self.satisfiable(&mut run) {
            // A loop may end only behind a number that wraps around.
            return match self.wraps {
                true => undecided(why),
                false => self.of_words().decide(property, sizes, trusting),
            };
        }
        let suspected = match property {
            KernelProperty::Race => self.unlike(&mut run).and_then(|()| self.races(&mut run)),
            KernelProperty::Divergence => self.divergences(&mut run, property),
            KernelProperty::Bounds => Ok(None),
        };
        let apart = match suspected {
            Ok(None) => None,
            Ok(Some(apart)) => Some(apart),
            Err(reason) => return undecided(reason),
        };
        let is_proved = apart.is_none() && property == KernelProperty::Divergence;
        if is_proved && run.behaviour.trusts && !matches!(self.races(&mut run), Ok(None)) {
            return self.decide(property, sizes, false);
        }
        // A count of barriers says nothing if threads part before one.
        if apart.is_none() && property == KernelProperty::Race && self.needs_uniform(&run) {
            // A test leaves out exits only where they order accesses.
            run.behaviour.exits = exits;
            match self.divergences(&mut run, property) {
                Ok(None) => {}
                Ok(Some(apart)) => {
                    let line = self.line(apart.at[0]).number;
                    let reason =
                        format!("line {line}: threads of a block may part before this barrier");
                    return KernelVerdict::Undecided {
                        reason,
                        apart: Some(apart),
                    };
                }
                Err(reason) => return undecided(reason),
            }
        }
        if apart.is_none()
            && let Some(answer) = self.overflows(property, sizes, trusting, &mut run)
        {
            return answer;
        }
        match apart {
            None if property == KernelProperty::Race => self.within_bounds(sizes, run),
            None => self.never(sizes, &run),
            Some(apart) if self.limits.tries => self.tried(property, sizes, apart),
            Some(apart) => self.suspected(property, apart, "small launches were not tried"),
        }
    }

    /// A proof over machine words.
    fn of_words(&self) -> Proof<'_> {
        Proof {
            kernel: self.kernel,
            limits: self.limits,
            end: self.end,
            overflow: false,
            wraps: true,
            leaving: None,
        }
    }

    /// Holds a proof against the numbers of a launch. `Some`: the proof does not
    /// hold, as numbers leave their types.
    fn overflows(
        &mut self,
        property: KernelProperty,
        sizes: Sizes,
        trusting: bool,
        run: &mut SymbolicRun,
    ) -> Option<KernelVerdict> {
        let doubles = !run.behaviour.doublings.is_empty();
        self.overflow |= run.trusts_phases;
        if !(self.overflow || doubles) || self.wraps {
            return None;
        }
        let is_open = sizes.block.contains(&None) || sizes.grid.contains(&None);
        let dialect = self.kernel.form.test.program.dialect;
        let time = match self.limits.without {
            Some(Part::Leaving) => Duration::ZERO,
            _ => self.limits.answer / 8,
        };
        let found = overflow(run, dialect, time);
        if let Some(at) = found.undefined {
            let number = self.line(at).number;
            return Some(KernelVerdict::Undecided {
                reason: format!("line {number}: a signed number overflows, which is undefined"),
                apart: None,
            });
        }
        if found.wraps {
            return Some(self.of_words().decide(property, sizes, trusting));
        }
        self.overflow = (self.overflow && is_open) || !found.open.is_empty();
        let lines = found.open.iter().map(|at| self.line(*at).number);
        self.leaving = Some(lines.collect()).filter(|_| !is_open);
        None
    }

    fn line(&self, at: usize) -> SourceLine {
        self.kernel.form.test.program.threads[0].code[at]
            .line
            .clone()
    }

    /// Whether barriers have to be reached by all threads of a block, for their number to order
    /// accesses. In PTX, threads that have ended are not waited for, and each barrier of a block is
    /// the same.
    fn needs_uniform(&self, run: &SymbolicRun) -> bool {
        let orders = run.behaviour.barriers.iter().any(|barrier| barrier.orders);
        orders && self.limits.without != Some(Part::Together)
    }

    /// Leaves out a part of the argument, where a test wants it.
    fn leave_out(&self, behaviour: &mut Behaviour) {
        match self.limits.without {
            Some(Part::Exits) => behaviour.exits.clear(),
            Some(Part::Tickets) => behaviour.tickets.clear(),
            Some(Part::Scopes) => {
                for access in &mut behaviour.accesses {
                    access.atomic = access.atomic.map(|_| Scope::Sys);
                }
            }
            _ => {}
        }
    }

    fn never(&self, sizes: Sizes, run: &SymbolicRun) -> KernelVerdict {
        let mut assumed = vec!["objects of different names do not overlap".to_string()];
        let [any_block, any_grid] = [sizes.block, sizes.grid].map(|all| all.contains(&None));
        let is_any = any_block || any_grid;
        if any_block {
            let most = most_threads(self.kernel.form);
            assumed.push(format!(
                "blocks of at most {most} threads, fewer than 2^31 threads"
            ));
        } else if any_grid {
            assumed.push("blocks as the kernel demands, fewer than 2^31 threads".into());
        }
        if any_block && !any_grid {
            assumed.push("a grid of one block".into());
        }
        if !run.setting.unread.is_empty() {
            let axes = run.setting.unread.join(" and ");
            assumed.push(format!("size 1 in {axes}, which the code does not read"));
        }
        if self.overflow || run.terms.may_overflow {
            let at = match &self.leaving {
                Some(lines) if !lines.is_empty() => format!(" ({})", lines_text(lines)),
                _ => String::new(),
            };
            assumed.push(format!("no overflow in sums and products of indices{at}"));
        }
        let code = &self.kernel.form.test.program.threads[0].code;
        if code.iter().enumerate().any(|(at, i)| i.op.jumps_back(at)) {
            assumed.push("loops end, in fewer than 2^31 iterations".into());
        }
        if code.iter().any(|i| i.op.aborts()) {
            assumed.push("assertions and preconditions hold".into());
        }
        if code.iter().any(|i| is_of_object(&i.op)) {
            assumed.push("operations on mbarrier objects meet their preconditions".into());
        }
        if code.iter().any(|i| is_arrival(&i.op)) {
            assumed.push("operations on barriers meet their preconditions".into());
        }
        let program = &self.kernel.form.test.program;
        assumed.extend(run.behaviour.followed.iter().map(|holder| {
            let name = &program.location(*holder).name;
            format!("pointers in `{name}` lead to objects of their own")
        }));
        let nulls = run.behaviour.nulls.iter().map(|at| self.line(*at).number);
        let nulls: BTreeSet<u32> = nulls.collect();
        if !nulls.is_empty() {
            let lines = lines_text(&nulls);
            assumed.push(format!("no access through a null pointer ({lines})"));
        }
        assumed.extend(self.kernel.form.test.program.assumed.iter().cloned());
        if let Some((text, _)) = &self.kernel.form.assume {
            assumed.push(text.clone());
        }
        let proved = match (is_any, sizes.any_arguments) {
            (true, _) => Proved::EveryLaunch,
            (false, true) => Proved::EveryInput,
            (false, false) => Proved::EveryContent,
        };
        KernelVerdict::Never { proved, assumed }
    }

    /// The answer about a kernel without races: an execution that leaves an object, if the launch
    /// is given and has one. What else may leave an object is an assumption.
    fn within_bounds(&mut self, sizes: Sizes, mut run: SymbolicRun) -> KernelVerdict {
        let is_given = !sizes.block.contains(&None) && !sizes.grid.contains(&None);
        let enough = Instant::now() + self.limits.answer / 4;
        let mut open: BTreeMap<LocId, BTreeSet<u32>> = BTreeMap::new();
        let mut known: FxHashSet<(Term, Term, u32, LocId)> = FxHashSet::default();
        for place in run.behaviour.places.clone() {
            let sizes_of = self.kernel.form.sizes.iter();
            let mut of_object = sizes_of.filter(|size| size.object == place.object);
            let size = of_object.next().filter(|size| size.of_code);
            let Some(bytes) = size.map(|size| size.bytes) else {
                continue;
            };
            let is_new = known.insert((place.guard, place.offset, place.bytes, place.object));
            if !is_new || is_inside(&run, &place, bytes) {
                continue;
            }
            let question = outside(&mut run, &place, bytes);
            let is_of_launch = is_given && !is_of_inputs(&run, &question);
            if Instant::now() < enough {
                let (said, _, overflow) = match self.wraps {
                    true => asked_of_words(&mut run, question, self.limits.question),
                    false => asked(&mut run, question, self.limits.question),
                };
                if said == Said::No {
                    self.overflow |= overflow;
                    continue;
                }
            }
            let apart = Apart {
                leaves: true,
                ..self.apart([place.at; 2], Together::Thread, false)
            };
            let time = enough.saturating_duration_since(Instant::now());
            let shown = match is_of_launch {
                true => replay::outside_of(self.kernel, sizes, &apart, time),
                false => None,
            };
            if let Some(found) = shown {
                return happens(found, apart);
            }
            open.entry(place.object)
                .or_default()
                .insert(apart.lines[0].number);
        }
        let mut answer = self.never(sizes, &run);
        if let KernelVerdict::Never { assumed, .. } = &mut answer {
            assumed.extend(open.iter().map(|(object, lines)| {
                let name = &self.kernel.form.test.program.location(*object).name;
                let lines = lines_text(lines);
                format!("accesses to `{name}` stay inside of it ({lines})")
            }));
        }
        answer
    }

    fn tried(&self, property: KernelProperty, sizes: Sizes, apart: Apart) -> KernelVerdict {
        let left = self.end.saturating_duration_since(Instant::now());
        match replay::replay(self.kernel, property, sizes, &apart, left) {
            Replayed::Happens(found) => happens(*found, apart),
            Replayed::Never { up_to } => KernelVerdict::Tried { up_to, apart },
            Replayed::Unknown(why) => self.suspected(property, apart, &why),
        }
    }

    /// The answer where something is suspected and not shown.
    fn suspected(&self, property: KernelProperty, apart: Apart, why: &str) -> KernelVerdict {
        let [a, b] = &apart.lines;
        let what = match property {
            KernelProperty::Race => format!("lines {} and {} may race", a.number, b.number),
            KernelProperty::Divergence => {
                format!("threads may part before the barrier of line {}", a.number)
            }
            KernelProperty::Bounds => format!("line {} may leave its object", a.number),
        };
        KernelVerdict::Undecided {
            reason: format!("{what}; {why}"),
            apart: Some(apart),
        }
    }

    /// Whether what questions take for granted can hold: else everything would be proved.
    fn satisfiable(&mut self, run: &mut SymbolicRun) -> Result<(), String> {
        let mut sets: BTreeSet<Vec<Term>> = BTreeSet::from([Vec::new()]);
        let accesses = run.behaviour.accesses.iter().map(|a| a.facts.clone());
        let barriers = run.behaviour.barriers.iter().map(|b| b.facts.clone());
        sets.extend(accesses.chain(barriers));
        for (n, facts) in sets.into_iter().enumerate() {
            let mut all = [
                run.setting.facts.clone(),
                run.setting.of_thread.clone(),
                facts,
            ]
            .concat();
            all.dedup();
            if self.contradict(run, &all) {
                return Err(match n {
                    0 => "no launch satisfies the assumptions".into(),
                    _ => "the facts about the loops contradict each other".into(),
                });
            }
        }
        for of_loop in run.behaviour.loops.clone() {
            let setting = &run.setting;
            let mut all = [&setting.facts[..], &setting.of_thread, &of_loop.facts].concat();
            all.push(of_loop.guard);
            let ends = [&all[..], &[of_loop.ended]].concat();
            if self.contradict(run, &ends) && !self.contradict(run, &all) {
                let line = self.line(of_loop.at).number;
                return Err(format!("line {line}: the loop does not end"));
            }
        }
        Ok(())
    }

    /// Whether conditions are shown not to hold together.
    fn contradict(&self, run: &mut SymbolicRun, conditions: &[Term]) -> bool {
        let text = match self.wraps {
            true => words::question(&run.terms, conditions),
            false => integers::question(&mut run.terms, conditions).0,
        };
        ask(&text, self.limits.question, SolverConstants::Nothing) == Said::No
    }

    /// That all threads of a block give the same operands to a copy of their work-group.
    ///
    /// # Errors
    /// The begin of a copy for which this is not proved.
    fn unlike(&mut self, run: &mut SymbolicRun) -> Result<(), String> {
        for begin in run.behaviour.begins.clone() {
            let question = unlike(run, &begin);
            if self.answer(run, question)?.is_some() {
                let line = self.line(begin.at).number;
                return Err(format!(
                    "line {line}: work-items of a group may give this call different operands"
                ));
            }
        }
        Ok(())
    }

    /// The first pair of accesses that is not proved not to race.
    fn races(&mut self, run: &mut SymbolicRun) -> Result<Option<Apart>, String> {
        let accesses = run.behaviour.accesses.clone();
        let inclusion = Inclusion::of(self.kernel.form.test.program.dialect);
        let mut asked = 0;
        let mut first: Option<Apart> = None;
        // Behind a suspicion, time is better spent on trying it.
        let enough = Instant::now() + self.limits.answer / 5;
        for (i, a) in accesses.iter().enumerate() {
            for b in &accesses[i..] {
                if first.is_some() && Instant::now() > enough {
                    return Ok(first);
                }
                for together in [Together::Thread, Together::Block, Together::Grid] {
                    let left_out =
                        together == Together::Grid && self.limits.without == Some(Part::Grid);
                    if left_out || !conflict(a, b, together, self.space(a), inclusion) {
                        continue;
                    }
                    asked += 1;
                    if asked > self.limits.pairs {
                        let why = format!("more than {} pairs of accesses", self.limits.pairs);
                        return first.map(Some).ok_or(why);
                    }
                    let mut question = race(run, a, b, together);
                    if self.limits.without == Some(Part::Iterations) {
                        for (x, y) in &question.iterations {
                            let same = run.terms.cmp(CmpOp::Eq, Ty::WORD, *x, *y);
                            question.conditions.push(same);
                        }
                    }
                    let free = match self.answer(run, question) {
                        Ok(None) => continue,
                        Ok(Some(free)) => free,
                        // A suspicion can still be tried.
                        Err(why) => return first.map(Some).ok_or(why),
                    };
                    let apart = self.apart([a.at, b.at], together, free);
                    if !free {
                        return Ok(Some(apart));
                    }
                    first.get_or_insert(apart);
                }
            }
        }
        Ok(first)
    }

    /// The first barrier before which threads are not proved to stay together.
    /// What orders nothing does not matter to races.
    fn divergences(
        &mut self,
        run: &mut SymbolicRun,
        of: KernelProperty,
    ) -> Result<Option<Apart>, String> {
        let is_race = of == KernelProperty::Race;
        if let Some(at) = run.behaviour.ignored.iter().next().filter(|_| !is_race) {
            let line = self.line(*at).number;
            return Err(format!(
                "line {line}: a barrier of this kind is not modelled"
            ));
        }
        for barrier in run.behaviour.barriers.clone() {
            if is_race && !barrier.orders {
                continue;
            }
            let question = divergence(run, &barrier);
            if let Some(free) = self.answer(run, question)? {
                return Ok(Some(self.apart([barrier.at; 2], Together::Block, free)));
            }
        }
        Ok(None)
    }

    fn space(&self, a: &AccessAt) -> Space {
        match &self.kernel.form.test.program.location(a.object).kind {
            LocationKind::Object { space, .. } => *space,
            LocationKind::Alias { .. } => Space::Global,
        }
    }

    fn apart(&self, at: [usize; 2], together: Together, free: bool) -> Apart {
        let code = &self.kernel.form.test.program.threads[0].code;
        Apart {
            lines: at.map(|at| code[at].line.clone()),
            spans: at.map(|at| code[at].span),
            at,
            together,
            free,
            leaves: false,
            wraps: self.wraps,
        }
    }

    /// Asks a question; `None`: it has no answer, which is proved; else whether free values take
    /// part in it.
    fn answer(
        &mut self,
        run: &mut SymbolicRun,
        question: PairQuestion,
    ) -> Result<Option<bool>, String> {
        if Instant::now() > self.end {
            return Err("time".into());
        }
        let time = self.limits.question;
        let said = match self.wraps {
            true => asked_of_words(run, question, time),
            false => asked(run, question, time),
        };
        match said {
            (Said::No, _, overflow) => {
                self.overflow |= overflow;
                Ok(None)
            }
            (_, free, _) => Ok(Some(free)),
        }
    }
}

/// The numbers of lines in words.
fn lines_text(lines: &BTreeSet<u32>) -> String {
    let all: Vec<String> = lines.iter().map(u32::to_string).collect();
    let word = if all.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", all.join(", "))
}

/// The answer that an execution gives.
fn happens(found: ExactLaunch, apart: Apart) -> KernelVerdict {
    let ExactLaunch {
        launch,
        answer,
        test,
    } = found;
    KernelVerdict::Happens {
        launch,
        apart,
        exact: Box::new(answer),
        test: Box::new(test),
    }
}
