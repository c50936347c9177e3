//! A litmus test as data: a program, a proposition about its outcomes, and the expected answer of
//! each model.
//!
//! # Invariants
//! - A [`LitmusTest`] is fully resolved: every name in its condition refers to a register or a
//!   location of the program.
//! - Spans point into [`LitmusTest::file`]; code from a placeholder of a template points to its
//!   source text.

mod print;

pub use print::{show, show_observable};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use diag::{SourceFile, Span};
use indexmap::IndexMap;

use crate::options::Setting;
use crate::{BinOp, CmpOp, LocId, Program, RegId, ThreadId, Ty, WorkItem};

/// The largest loop bound.
pub const MAX_BOUND: u32 = 1000;

/// One litmus test (one instance, if its file is a template).
#[derive(Clone, Debug)]
pub struct LitmusTest {
    /// Its name; unique among the instances of a template.
    pub name: String,
    /// Free text.
    pub doc: String,
    /// Its origin, such as a paper or a suite.
    pub source: String,
    /// Words to select tests by.
    pub tags: Vec<String>,
    /// The file it was read from.
    pub file: Arc<SourceFile>,
    /// The program under test.
    pub program: Program,
    /// The condition to check; `None` if the file has no condition.
    pub condition: Option<Prop>,
    /// The condition as written.
    pub condition_text: String,
    /// Its span in the file; empty if there is none.
    pub condition_span: Span,
    /// How the file quantifies its condition (`.litmus`); TOML tests say `exists` unless they say
    /// otherwise.
    pub quantifier: Quantifier,
    /// Restricts the executions considered, for every property.
    pub filter: Option<Prop>,
    /// Observables that outcomes show in addition to those of the condition.
    pub observe: Vec<Observable>,
    /// Expected answers by model name, in file order.
    pub expect: IndexMap<String, Expectation>,
    /// Model options that the test sets (`[options]`).
    pub options: Vec<Setting>,
    /// The loop bound that the test sets.
    pub bound: Option<u32>,
    /// Expected results of executor runs.
    pub runs: Vec<RunExpectation>,
    /// Of a kernel of a source file: how it is launched.
    pub launch: Option<KernelLaunch>,
}

/// How a kernel of a source file is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// The kernel.
    pub kernel: String,
    /// The launch as it can be written in the file or on the command line.
    pub text: String,
    /// Blocks, by dimension.
    pub grid: Vec<u32>,
    /// Threads per block, by dimension.
    pub block: Vec<u32>,
    /// Where it comes from.
    pub by: LaunchOrigin,
    /// Where the name of the kernel stands in the file.
    pub span: Span,
    /// Buffers that begin with any values: reading them is no mistake.
    pub inputs: Vec<String>,
    /// Whether a kernel has fewer threads than in the `given` launch.
    pub is_smaller: bool,
    /// Buffers without values that begin with 0, as the course of the kernel depends on them.
    pub zeroed: Vec<String>,
    /// The reason for a smaller launch; for a program, the choices of its run.
    pub notes: Vec<String>,
    /// Of a program: its arguments.
    pub arguments: Vec<String>,
    /// Values of constants that were given.
    pub constants: BTreeMap<String, i64>,
    /// The launch before it was made smaller.
    pub given: GivenLaunch,
    /// Of a program with smaller constants: its launches with those that are written.
    pub full: Option<FullLaunches>,
    /// The threads that run; `None`: all.
    pub threads: Option<Vec<WorkItem>>,
    /// The compiler that made the code of the test; `None`: the code is that of the file.
    pub compiler: Option<String>,
}

/// The launches of a program before its constants were made smaller.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FullLaunches {
    /// Each as the command line takes it.
    pub texts: Vec<String>,
    /// Whether no launch of the program is left out.
    pub are_all: bool,
}

/// A launch of any size.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GivenLaunch {
    /// The launch as it can be written.
    pub text: String,
    /// Blocks, by dimension.
    pub grid: Vec<u32>,
    /// Threads per block, by dimension.
    pub block: Vec<u32>,
    /// The numbers that it gives to the kernel, by parameter.
    pub numbers: Vec<(String, i64)>,
    /// Whether the file or the command line gives the arguments.
    pub has_arguments: bool,
}

/// Where a launch comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchOrigin {
    /// A line of the file.
    Line,
    /// The command line.
    CommandLine,
    /// `main` of the file, which has so many launches: the test is the whole program.
    Main(usize),
    /// It was chosen to suit the code.
    Choice,
}

impl LitmusTest {
    /// The observables of outcomes, each once: first those of the condition and the filter, then
    /// the listed ones.
    pub fn observables(&self) -> Vec<Observable> {
        observables(self.condition.iter().chain(&self.filter), &self.observe)
    }
}

/// The observables of several propositions and a list, each once, in order of first mention.
pub fn observables<'a>(
    props: impl IntoIterator<Item = &'a Prop>,
    more: &[Observable],
) -> Vec<Observable> {
    let mut list: Vec<Observable> = Vec::new();
    let mut note = |o: Observable| {
        if !list.contains(&o) {
            list.push(o);
        }
    };
    for p in props {
        p.observables(&mut note);
    }
    more.iter().copied().for_each(&mut note);
    list
}

/// How a condition is quantified over final states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// Some execution satisfies it.
    Exists,
    /// No execution satisfies it.
    NotExists,
    /// Every execution satisfies it.
    ForAll,
    /// The test has no condition.
    #[default]
    None,
}

impl Quantifier {
    /// The word for it in result lines.
    pub fn name(self) -> &'static str {
        match self {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::ForAll => "forall",
            Quantifier::None => "none",
        }
    }
}

/// A proposition over final values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prop {
    /// Conjunction; empty: true.
    And(Vec<Prop>),
    /// Disjunction; empty: false.
    Or(Vec<Prop>),
    /// Negation.
    Not(Box<Prop>),
    /// A comparison, carried out in the given type.
    Cmp(CmpOp, Ty, ConditionTerm, ConditionTerm),
}

impl Prop {
    /// Calls `f` for every observable, in the order of writing.
    pub fn observables(&self, f: &mut impl FnMut(Observable)) {
        match self {
            Prop::And(ps) | Prop::Or(ps) => ps.iter().for_each(|p| p.observables(f)),
            Prop::Not(p) => p.observables(f),
            Prop::Cmp(_, _, a, b) => {
                for side in [a, b] {
                    side.atoms(&mut |atom| {
                        if let Atom::Observable(o) = atom {
                            f(*o);
                        }
                    });
                }
            }
        }
    }

    /// Whether it compares results of arithmetic on values.
    pub fn computes(&self) -> bool {
        match self {
            Prop::And(ps) | Prop::Or(ps) => ps.iter().any(Prop::computes),
            Prop::Not(p) => p.computes(),
            Prop::Cmp(_, _, a, b) => [a, b]
                .iter()
                .any(|side| matches!(side, ConditionTerm::Of(..))),
        }
    }
}

/// One side of a comparison: an arithmetic expression in the type of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionTerm {
    /// A value.
    Atom(Atom),
    /// A sum, a difference or a product.
    Of(BinOp, Box<ConditionTerm>, Box<ConditionTerm>),
}

impl From<Atom> for ConditionTerm {
    fn from(atom: Atom) -> ConditionTerm {
        ConditionTerm::Atom(atom)
    }
}

impl ConditionTerm {
    /// Calls `f` for every atom, in the order of writing.
    pub fn atoms<'s>(&'s self, f: &mut impl FnMut(&'s Atom)) {
        match self {
            ConditionTerm::Atom(atom) => f(atom),
            ConditionTerm::Of(_, a, b) => {
                a.atoms(f);
                b.atoms(f);
            }
        }
    }

    /// Evaluates the expression: `atom` maps atoms, `of` combines the results of operands. Returns
    /// the first error.
    pub fn fold<T, E>(
        &self,
        atom: &mut impl FnMut(&Atom) -> Result<T, E>,
        of: &mut impl FnMut(BinOp, T, T) -> T,
    ) -> Result<T, E> {
        Ok(match self {
            ConditionTerm::Atom(a) => atom(a)?,
            ConditionTerm::Of(op, a, b) => {
                let (a, b) = (a.fold(atom, of)?, b.fold(atom, of)?);
                of(*op, a, b)
            }
        })
    }

    /// The same expression with mapped atoms.
    ///
    /// # Errors
    /// The first one that `to` returns.
    pub fn mapped<E>(
        &self,
        to: &mut impl FnMut(&Atom) -> Result<Atom, E>,
    ) -> Result<ConditionTerm, E> {
        self.fold(
            &mut |atom| to(atom).map(ConditionTerm::Atom),
            &mut |op, a, b| ConditionTerm::Of(op, a.into(), b.into()),
        )
    }
}

/// A value in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atom {
    /// An integer.
    Const(i64),
    /// A final value.
    Observable(Observable),
    /// The address of an element of a location.
    Address {
        /// The location.
        loc: LocId,
        /// The element.
        index: u32,
    },
}

/// A register or memory cell whose final value can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Observable {
    /// A register of a thread.
    Reg(ThreadId, RegId),
    /// An element of a location. If each CTA or thread has a copy of the location, this is the copy
    /// that `viewer` sees.
    Mem {
        /// The location.
        loc: LocId,
        /// The element.
        index: u32,
        /// The thread that sees the copy. Required if there are several copies.
        viewer: Option<ThreadId>,
    },
}

/// The expected answers of one model for a test. Absent properties are not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Reachability of the condition.
    pub reachability: Option<Reachability>,
    /// The same under readings of the source that change the answer.
    pub readings: Vec<(Setting, Reachability)>,
    /// `racy` (true) or `race-free`.
    pub race: Option<bool>,
    /// `undefined` (true) or `defined`.
    pub undefined: Option<bool>,
    /// `misused` (true) or `proper`.
    pub lifetime: Option<bool>,
    /// `hangs` (true) or `terminates`, by progress model.
    pub liveness: BTreeMap<String, bool>,
    /// The axiom that forbids the condition.
    pub axiom: Option<String>,
    /// The section of the specification.
    pub source: Option<String>,
    /// The known reason for which the model answers differently.
    pub known: Option<String>,
    /// Its span in the file.
    pub span: Span,
}

impl Expectation {
    /// The number of properties with an expected answer.
    pub fn answers(&self) -> usize {
        let each = [
            self.reachability.is_some(),
            self.race.is_some(),
            self.undefined.is_some(),
            self.lifetime.is_some(),
        ];
        each.into_iter().filter(|expected| *expected).count() + self.liveness.len()
    }
}

/// Runs of the executor and their expected results, in the words of the test format. `None` means
/// the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunExpectation {
    /// `sc`, `weak` or `language`.
    pub memory: Option<&'static str>,
    /// How many choices runs make early, as on the command line.
    pub early: Option<&'static str>,
    /// The choice of the thread that steps next.
    pub scheduling: Option<&'static str>,
    /// `random` or `exhaustive`.
    pub schedule: Option<&'static str>,
    /// The number of random runs.
    pub runs: Option<u32>,
    /// The limit on the steps of a run.
    pub steps: Option<u32>,
    /// Threads per warp.
    pub warp_size: Option<u32>,
    /// Multiprocessors.
    pub sms: Option<u32>,
    /// The number of blocks resident on one multiprocessor.
    pub resident: Option<u32>,
    /// The target whose multiprocessors have room as their resources allow.
    pub target: Option<&'static str>,
    /// The registers of a thread, for `target`.
    pub registers: Option<u32>,
    /// Whether the launch is cooperative.
    pub cooperative: bool,
    /// The expected end of runs.
    pub ends: Option<&'static str>,
    /// `racy` or `race-free`.
    pub race: Option<&'static str>,
    /// Whether the condition holds in all, some or none of the outcomes.
    pub condition: Option<&'static str>,
    /// Part of the reason given for a race or for a run that does not finish.
    pub why: Option<String>,
    /// Its span in the file.
    pub span: Span,
}

impl fmt::Display for RunExpectation {
    /// The settings of the runs, then the expected results.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![self.memory.unwrap_or("sc").to_owned()];
        words.extend(self.early.map(|mode| format!("early {mode}")));
        words.extend(self.scheduling.map(str::to_owned));
        words.push(match self.schedule {
            Some("exhaustive") => "exhaustive".into(),
            _ => format!("{} random runs", self.runs.unwrap_or(RUNS)),
        });
        let numbers = [
            ("warps of", self.warp_size),
            ("sms", self.sms),
            ("resident", self.resident),
            ("registers", self.registers),
        ];
        words.extend(
            numbers
                .iter()
                .filter_map(|(what, n)| n.map(|n| format!("{what} {n}"))),
        );
        words.extend(self.target.map(str::to_owned));
        words.extend(self.cooperative.then(|| "cooperative".to_owned()));
        let mut expected: Vec<String> = Vec::new();
        expected.extend(self.ends.map(|e| format!("ends {e}")));
        expected.extend(self.race.map(str::to_owned));
        expected.extend(self.condition.map(|c| format!("condition {c}")));
        expected.extend(self.why.as_ref().map(|w| format!("`{w}`")));
        write!(f, "{}: {}", words.join(", "), expected.join(", "))
    }
}

/// The default number of random runs.
pub const RUNS: u32 = 100;

/// An expected answer about the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reachability {
    /// Some execution satisfies it.
    Allowed,
    /// No execution satisfies it.
    Forbidden,
    /// Every execution satisfies it (quantifier `forall`).
    Required,
}

impl Reachability {
    /// The word in test files.
    pub fn word(self) -> &'static str {
        match self {
            Reachability::Allowed => "allowed",
            Reachability::Forbidden => "forbidden",
            Reachability::Required => "required",
        }
    }
}
