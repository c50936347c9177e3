//! Advice: the cheapest orders, scopes and fences that keep a program right, or make it so.
//!
//! | Module | Content |
//! |---|---|
//! | `choice` | the options for each place, in a partial order |
//! | `costs` | their costs |
//! | `cheapest` | the cheapest setting that holds |
//!
//! # Invariants
//! - Each proposal was decided: it keeps every goal, and with any choice one step weaker, some
//!   goal fails.
//! - "Nothing is cheaper" assumes that stronger orders, wider scopes and more fences never lose a
//!   goal. For models without this property ([`Advice::least`]), advice claims the first point
//!   alone.
//! - A program that is wrong gets nothing weaker. [`Session`] mends a race, as it does where it
//!   shows one.
//! - An undecided program counts as a failure; [`Advice::undecided`] counts them.

mod cheapest;
mod choice;
mod costs;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use cat::model::ir::Model;
use engine::query::Deadline;
use engine::{Engine, Limits};
use front::litmus::Splice;
use front::mapping::Mapping;
use program::SourceLine;
use program::litmus::LitmusTest;
use program::options::Setting as ModelOption;
use verdict::{Need, Reason, Remedy, Verdict, Where};

use crate::ask::Ask;
use crate::knobs::{Changes, Knob};
use crate::needs::Forbidding;
use crate::search::{GivenUp, Search, Setting};
use crate::session::{Session, Shown};
use cheapest::Space;
use choice::{Choice, choices, makes_another};

pub use costs::{Costs, MOST};

/// The largest number of programs that one piece of advice decides.
const DECISIONS: usize = 20_000;

/// The largest number of choices; more would take too long.
const CHOICES: usize = 60;

/// The number of failing executions that are tried in other versions.
const SHOWN: usize = 8;

/// The goals for a test under a model.
#[derive(Clone)]
pub struct TestGoals<'a> {
    /// The test as written.
    pub test: &'a LitmusTest,
    /// The model.
    pub model: &'a Model,
    /// The model's name.
    pub name: &'a str,
    /// Makes a test that the model can judge.
    pub mapping: Option<&'static Mapping>,
    /// The goals: questions that are answered as [`Ask::goal`] says.
    pub goals: Vec<Ask>,
}

/// Engine, limits and costs of a search.
pub struct SearchSetup<'a> {
    /// The engine that decides.
    pub engine: Engine,
    /// The limits; the time is that of all questions together.
    pub limits: Limits,
    /// Options of the models.
    pub set: &'a [ModelOption],
    /// The costs of orders, scopes and fences.
    pub costs: &'a Costs,
}

impl SearchSetup<'_> {
    /// The test that the model judges in place of the given one.
    fn judged<'t>(
        test: &'t LitmusTest,
        asked: &TestGoals<'_>,
    ) -> Result<Cow<'t, LitmusTest>, Reason> {
        match asked.mapping.map(|mapping| mapping.lowered(test)) {
            None => Ok(Cow::Borrowed(test)),
            Some(Ok(lowered)) => Ok(Cow::Owned(lowered)),
            Some(Err(why)) => Err(Reason::NotInModel(why)),
        }
    }

    fn session<'t>(
        &self,
        judged: &'t LitmusTest,
        asked: &TestGoals<'t>,
        left: Option<Duration>,
    ) -> Session<'t> {
        // All engines decide the result afterwards.
        let engine = if self.engine == Engine::Both {
            Engine::Auto
        } else {
            self.engine
        };
        let limits = Limits {
            timeout: left,
            ..self.limits
        };
        Session::new(judged, asked.model, engine, limits, self.set)
    }

    /// Whether a goal is met; `None`: the model does not speak of it.
    fn met(session: &mut Session<'_>, goal: &Ask) -> Result<Option<bool>, Reason> {
        match session.decide(goal).map(|answer| answer.verdict) {
            _ if stop::requested().is_some() => Err(Reason::Interrupted),
            None => Ok(None),
            Some(Verdict::Forbidden | Verdict::RaceFree | Verdict::Defined) => Ok(Some(true)),
            Some(Verdict::Undecided(reason)) => Err(reason),
            Some(_) => Ok(Some(false)),
        }
    }

    /// Whether a written test meets a goal.
    fn meets(
        &self,
        one: &TestGoals<'_>,
        goal: &Ask,
        left: Option<Duration>,
    ) -> Result<Option<bool>, Reason> {
        let judged = Self::judged(one.test, one)?;
        Self::met(&mut self.session(&judged, one, left), goal)
    }

    /// Whether a test meets all goals. Executions that ruled out other versions are tried first,
    /// the latest before others.
    fn keeps(
        &self,
        test: &LitmusTest,
        asked: &TestGoals<'_>,
        left: Option<Duration>,
        shown: &mut VecDeque<Shown>,
    ) -> Result<bool, Reason> {
        let judged = Self::judged(test, asked)?;
        let mut session = self.session(&judged, asked, left);
        if let Some(at) = shown.iter().position(|shown| session.still_shows(shown)) {
            shown.make_contiguous()[..=at].rotate_right(1);
            #[cfg(test)]
            tests::is_so(&mut session, asked);
            return Ok(false);
        }
        for goal in &asked.goals {
            if Self::met(&mut session, goal)? == Some(false) {
                shown.truncate(SHOWN - 1);
                session
                    .take_shown()
                    .into_iter()
                    .for_each(|new| shown.push_front(new));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a changed test keeps all its goals; `None`: not decided.
    fn keeps_all(
        &self,
        asked: &[TestGoals<'_>],
        splices: &[Splice],
        left: Option<Duration>,
        shown: &mut [VecDeque<Shown>],
    ) -> Result<Option<bool>, GivenUp> {
        let changes = Changes {
            edits: Vec::new(),
            splices: splices.to_vec(),
        };
        let Some(version) = changes.of(asked[0].test) else {
            return Ok(Some(false));
        };
        for (one, shown) in asked.iter().zip(shown) {
            match self.keeps(&version.test, one, left, shown) {
                Ok(true) => {}
                Ok(false) => return Ok(Some(false)),
                Err(reason @ (Reason::Time | Reason::Interrupted)) => return Err(GivenUp(reason)),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(true))
    }

    /// Whether a changed test surely keeps all its goals, decided without earlier executions.
    fn keeps_now(
        &self,
        asked: &[TestGoals<'_>],
        splices: &[Splice],
        left: Option<Duration>,
    ) -> bool {
        let mut shown: Vec<VecDeque<Shown>> = asked.iter().map(|_| VecDeque::new()).collect();
        matches!(
            self.keeps_all(asked, splices, left, &mut shown),
            Ok(Some(true))
        )
    }
}

/// Answers about several tests of one text. A change elsewhere changes no answer of a test.
#[derive(Default)]
struct KnownAnswers {
    several: bool,
    /// By test and change: whether the change makes another program of the test.
    concerns: HashMap<(usize, Splice), bool>,
    /// By test and the changes that concern it: whether it keeps its goals; `None`: not decided.
    keeps: HashMap<(usize, Vec<Splice>), Option<bool>>,
}

impl KnownAnswers {
    /// The changes that concern a test.
    fn part(
        &mut self,
        number: usize,
        test: &LitmusTest,
        changes: &[Splice],
    ) -> (usize, Vec<Splice>) {
        let mut concerns = |splice: &&Splice| {
            let key = (number, (*splice).clone());
            !self.several
                || *self
                    .concerns
                    .entry(key)
                    .or_insert_with_key(|key| makes_another(test, &key.1))
        };
        (
            number,
            changes.iter().filter(&mut concerns).cloned().collect(),
        )
    }
}

/// A place in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The new text, and the text that it replaces.
    pub text: String,
    /// Its line in the file as written.
    pub line: SourceLine,
    /// The threads that have it.
    pub threads: String,
}

/// The price of leaving out one part of the advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Without {
    /// No program without it keeps the goals: every solution has it.
    Needed,
    /// The cheapest program without it costs this much more, and has these other parts.
    More(u64, Vec<Part>),
    /// Not determined.
    Open(Reason),
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Advice {
    /// Whether the written program keeps its goals; `None`: not decided.
    pub held: Option<bool>,
    /// The cost of the written program.
    pub cost: u64,
    /// The cheapest program that keeps the goals; `None` if none does.
    pub found: Option<Solution>,
    /// Added goals, which the written program meets: each with the number of the test.
    pub kept: Vec<(usize, Ask)>,
    /// Whether nothing cheaper keeps the goals: in these models, a stronger program forbids no
    /// less.
    pub least: bool,
    /// The number of places with options.
    pub choices: usize,
    /// The number of programs decided.
    pub decided: usize,
    /// The number of programs with an undecided answer.
    pub undecided: usize,
    /// The reason why the search stopped early, or why the written program is undecided.
    pub given_up: Option<Reason>,
    /// If nothing repairs the program: another reading of the source, in which these changes do.
    pub reading: Option<(String, Vec<Need>)>,
}

/// The cheapest program that keeps the goals.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Its cost.
    pub cost: u64,
    /// Its file.
    pub text: String,
    /// The parts that differ from the written program.
    pub changes: Vec<Part>,
    /// Each part, and the price of leaving it out.
    pub menu: Vec<(Part, Without)>,
    /// The program with each single choice one step weaker; none of them keeps the goals.
    pub weaker: Vec<String>,
}

/// Looks for the cheapest program. All tests are made of the same text.
pub fn advise(mut asked: Vec<TestGoals<'_>>, how: &SearchSetup<'_>) -> Advice {
    let deadline = how.limits.timeout.map(|t| Instant::now() + t);
    let left = || deadline.map(|d| d.saturating_duration_since(Instant::now()));
    let kept = keep_met_goals(&mut asked, how, &left);
    let mut shown: Vec<VecDeque<Shown>> = asked.iter().map(|_| VecDeque::new()).collect();
    let written = written_keeps(&asked, how, &left, &mut shown);
    let mut tests: Vec<&LitmusTest> = asked.iter().map(|one| one.test).collect();
    tests.dedup_by_key(|test| std::ptr::from_ref::<LitmusTest>(test));
    let (choices, cost) = choices(&tests, how.costs);
    let mut advice = Advice {
        held: written.as_ref().ok().copied(),
        cost,
        found: None,
        kept,
        least: asked.iter().all(|one| wider_is_stronger(one.name)),
        choices: choices.len(),
        decided: 1,
        undecided: 0,
        given_up: written.as_ref().err().cloned(),
        reading: None,
    };
    let Some(&first) = tests.first().filter(|_| written.is_ok()) else {
        return advice;
    };
    if choices.len() > CHOICES {
        advice.given_up = Some(Reason::TooManyChanges);
        return advice;
    }
    let by_test: Vec<&[TestGoals<'_>]> = asked
        .chunk_by(|a, b| std::ptr::eq(a.test, b.test))
        .collect();
    // Fences and orders mend a wrong program, as questions about races show; meanwhile nothing gets
    // weaker.
    let wrong = written == Ok(false);
    if wrong && let Some((mended, decided)) = mended(&by_test, how, left(), cost) {
        (advice.found, advice.decided) = (Some(mended), decided + 1);
        return advice;
    }
    let counts = Counts {
        decided: Cell::new(1),
        undecided: Cell::new(0),
    };
    let mut versions = Versions {
        how,
        by_test: &by_test,
        known: KnownAnswers {
            several: by_test.len() > 1,
            ..KnownAnswers::default()
        },
        shown,
        counts: &counts,
    };
    let decides =
        |changes: &Changes, left: Option<Duration>| versions.keep_goals(&changes.splices, left);
    let knobs: Vec<Knob> = choices.iter().map(|choice| choice.knob.clone()).collect();
    let search = Search::new(first, knobs, !wrong, DECISIONS, deadline, decides);
    let mut space = Space::new(&choices, search);
    let allowed = if wrong {
        space.no_weaker()
    } else {
        space.everything()
    };
    match space.cheapest(allowed.clone()) {
        Ok(found) => {
            advice.found = found
                .map(|setting| solution(&tests, &choices, &mut space, &setting, &allowed, cost));
        }
        Err(GivenUp(reason)) => advice.given_up = Some(reason),
    }
    drop(space);
    advice.decided = counts.decided.get();
    advice.undecided = counts.undecided.get();
    if wrong && advice.found.is_none() && advice.given_up.is_none() {
        forbid(&mut advice, &by_test, how, left());
    }
    advice
}

/// Adds the goals of being race-free and defined where the written program meets them, so that they
/// stay met. Returns them with the numbers of their tests.
fn keep_met_goals(
    asked: &mut [TestGoals<'_>],
    how: &SearchSetup<'_>,
    left: &dyn Fn() -> Option<Duration>,
) -> Vec<(usize, Ask)> {
    let mut kept = Vec::new();
    for (number, one) in asked.iter_mut().enumerate() {
        for goal in [Ask::Race, Ask::Undefined] {
            if !one.goals.contains(&goal) && how.meets(one, &goal, left()) == Ok(Some(true)) {
                one.goals.push(goal.clone());
                kept.push((number, goal));
            }
        }
    }
    kept
}

/// Whether the written program keeps all goals.
fn written_keeps(
    asked: &[TestGoals<'_>],
    how: &SearchSetup<'_>,
    left: &dyn Fn() -> Option<Duration>,
    shown: &mut [VecDeque<Shown>],
) -> Result<bool, Reason> {
    let mut written = Ok(true);
    for (one, shown) in asked.iter().zip(shown) {
        match how.keeps(one.test, one, left(), shown) {
            Ok(true) => {}
            Ok(false) => written = Ok(false),
            Err(reason) if written == Ok(true) => written = Err(reason),
            Err(_) => {}
        }
    }
    written
}

/// The numbers of programs decided, and of those without an answer.
struct Counts {
    decided: Cell<usize>,
    undecided: Cell<usize>,
}

/// The versions of a text, each decided for every test that is made of it.
struct Versions<'s, 'a> {
    how: &'s SearchSetup<'s>,
    by_test: &'s [&'s [TestGoals<'a>]],
    known: KnownAnswers,
    /// By question, the executions that ruled out earlier versions.
    shown: Vec<VecDeque<Shown>>,
    counts: &'s Counts,
}

impl Versions<'_, '_> {
    /// Whether a version keeps the goals of all tests.
    fn keep_goals(&mut self, splices: &[Splice], left: Option<Duration>) -> Result<bool, GivenUp> {
        if stop::requested().is_some() {
            return Err(GivenUp(Reason::Interrupted));
        }
        let Counts { decided, undecided } = self.counts;
        decided.set(decided.get() + 1);
        let mut rest = self.shown.as_mut_slice();
        for (number, of_test) in self.by_test.iter().enumerate() {
            let (shown, others) = rest.split_at_mut(of_test.len());
            rest = others;
            let part = self.known.part(number, of_test[0].test, splices);
            let keeps = match self.known.keeps.get(&part) {
                Some(keeps) => *keeps,
                None => {
                    let keeps = self.how.keeps_all(of_test, &part.1, left, shown)?;
                    *self.known.keeps.entry(part).or_insert(keeps)
                }
            };
            match keeps {
                Some(true) => {}
                Some(false) => return Ok(false),
                None => {
                    undecided.set(undecided.get() + 1);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Adds the changes that an explanation of an allowed outcome names, if they keep everything: proxy
/// fences, flags, and places of threads are no choices of the search. Without such changes, adds
/// another reading of the source that has some.
fn forbid(
    advice: &mut Advice,
    by_test: &[&[TestGoals<'_>]],
    how: &SearchSetup<'_>,
    left: Option<Duration>,
) {
    let deadline = Deadline(left.map(|left| Instant::now() + left));
    for one in by_test.iter().copied().flatten() {
        let negate = one.goals.iter().find_map(|goal| match goal {
            Ask::Reachability { negate, .. } => Some(*negate),
            _ => None,
        });
        let (Some(negate), Ok(judged)) = (negate, SearchSetup::judged(one.test, one)) else {
            continue;
        };
        let session = how.session(&judged, one, left);
        let mut session = match one.mapping {
            Some(mapping) => session.via(one.test, mapping),
            None => session,
        };
        if let Ok(found) = session.forbidding(negate, deadline) {
            advice.decided += found.decided;
            let solution = kept_solution(&found, one, by_test, how, left, advice.cost);
            if solution.is_some() {
                (advice.found, advice.reading) = (solution, None);
                return;
            }
        }
        if advice.reading.is_none() {
            advice.reading = session.by_reading(negate, deadline).map(|found| {
                let (name, value) = found.0.words();
                (format!("{name}={value}"), found.1.needs)
            });
        }
    }
}

/// A change as a condition: "it is so if …".
fn condition(need: &Need) -> String {
    let (new, old) = (need.instead.trim_matches('`'), &need.text);
    match need.place {
        Where::Before => format!("`{new}` is before `{old}`"),
        Where::After => format!("`{new}` is behind `{old}`"),
        Where::Instead if old.is_empty() || need.line.number == 0 => need.instead.clone(),
        Where::Instead => format!("`{new}` is in place of {} in `{old}`", need.what),
    }
}

/// How much more the instructions of a changed test cost.
fn added_cost(test: &LitmusTest, changed: &LitmusTest, how: &SearchSetup<'_>) -> u64 {
    let [before, after] = [test, changed].map(|test| choices(&[test], how.costs).1);
    after.saturating_sub(before)
}

/// The program with some changes, if it keeps all goals.
fn kept_solution(
    found: &Forbidding,
    one: &TestGoals<'_>,
    by_test: &[&[TestGoals<'_>]],
    how: &SearchSetup<'_>,
    left: Option<Duration>,
    cost: u64,
) -> Option<Solution> {
    let splices = found.changes.in_text(one.test)?;
    if !by_test.iter().all(|all| how.keeps_now(all, &splices, left)) {
        return None;
    }
    fn part(need: &Need) -> Part {
        Part {
            text: condition(need),
            line: need.line.clone(),
            threads: need.thread.clone(),
        }
    }
    let more = added_cost(one.test, &found.version.test, how);
    Some(Solution {
        cost: cost + more,
        text: text(one.test, &splices),
        changes: found.needs.iter().map(part).collect(),
        menu: Vec::new(),
        weaker: Vec::new(),
    })
}

/// The repaired program that a question about one of its races shows, if it keeps everything.
fn mended(
    by_test: &[&[TestGoals<'_>]],
    how: &SearchSetup<'_>,
    left: Option<Duration>,
    cost: u64,
) -> Option<(Solution, usize)> {
    by_test
        .iter()
        .copied()
        .flatten()
        .filter(|one| {
            one.goals
                .iter()
                .any(|goal| matches!(goal, Ask::Race | Ask::Undefined))
        })
        .find_map(|one| {
            let judged = SearchSetup::judged(one.test, one).ok()?;
            let session = how.session(&judged, one, left);
            let mut session = match one.mapping {
                Some(mapping) => session.via(one.test, mapping),
                None => session,
            };
            let fault = session.race()?.fault?;
            let deadline = Deadline(left.map(|left| Instant::now() + left));
            let repair = session.repaired(&fault, deadline)?;
            let (Remedy::Changes(changes), Some(version)) = (repair.remedy, repair.version) else {
                return None;
            };
            let splices = repair.changes.in_text(one.test)?;
            if !by_test.iter().all(|all| how.keeps_now(all, &splices, left)) {
                return None;
            }
            fn part(change: verdict::Change) -> Part {
                let threads = change
                    .edit
                    .as_ref()
                    .map_or(String::new(), |edit| edit.thread.clone());
                Part {
                    text: change.text,
                    line: change.line,
                    threads,
                }
            }
            let more = added_cost(one.test, &version.test, how);
            let solution = Solution {
                cost: cost + more,
                text: text(one.test, &splices),
                changes: changes.into_iter().map(part).collect(),
                menu: Vec::new(),
                weaker: Vec::new(),
            };
            Some((solution, repair.decided))
        })
}

/// Whether a wider scope forbids no less under a model. It may forbid less where scopes have to be
/// equal (`opencl`, *Overhauling SC atomics in C11 and OpenCL*), and in a model by the user.
fn wider_is_stronger(model: &str) -> bool {
    [
        "ptx",
        "ptx-v6.0",
        "ptx-v7.5",
        "cuda",
        "cuda-17",
        "opencl-3.1",
        "c11",
        "rc11",
        "sc",
    ]
    .contains(&model)
}

/// Describes the cheapest setting.
fn solution<D: FnMut(&Changes, Option<Duration>) -> Result<bool, GivenUp>>(
    tests: &[&LitmusTest],
    choices: &[Choice],
    space: &mut Space<'_, D>,
    setting: &Setting,
    among: &[u64],
    written_cost: u64,
) -> Solution {
    let written = space.written();
    let part = |k: usize, option: usize| {
        let (text, line, threads) = choices[k].says(tests[choices[k].test], option);
        Part {
            text,
            line,
            threads,
        }
    };
    let differ = |a: &Setting, b: &Setting| -> Vec<Part> {
        (0..a.len())
            .filter(|&k| a[k] != b[k])
            .map(|k| part(k, a[k]))
            .collect()
    };
    let least = space.cost(setting);
    let mut menu = Vec::new();
    for k in 0..setting.len() {
        let weaker = space.not_above(k, setting[k]);
        if weaker & among[k] == 0 || space.weaker(k, setting[k]).is_empty() {
            continue;
        }
        let mut allowed = among.to_vec();
        allowed[k] &= weaker;
        let without = match space.cheapest(allowed) {
            Ok(None) => Without::Needed,
            Ok(Some(other)) => Without::More(space.cost(&other) - least, differ(&other, setting)),
            Err(GivenUp(reason)) => Without::Open(reason),
        };
        menu.push((part(k, setting[k]), without));
    }
    let weaker = (0..setting.len()).flat_map(|k| {
        let steps = space
            .weaker(k, setting[k])
            .into_iter()
            .filter(move |option| among[k] >> option & 1 == 1);
        steps.map(move |option| (k, option))
    });
    let weaker = weaker.map(|(k, option)| {
        let mut lower = setting.clone();
        lower[k] = option;
        text(tests[0], &space.search.changes(&lower).splices)
    });
    Solution {
        cost: (written_cost + least).saturating_sub(space.cost(&written)),
        text: text(tests[0], &space.search.changes(setting).splices),
        changes: differ(setting, &written),
        menu,
        weaker: weaker.collect(),
    }
}

/// The file with other text in some places. Lines that held only removed text go, too.
fn text(test: &LitmusTest, splices: &[Splice]) -> String {
    let text = &test.file.text;
    let mut splices: Vec<&Splice> = splices.iter().collect();
    splices.sort_unstable();
    splices.dedup();
    let (mut new, mut at) = (String::with_capacity(text.len()), 0);
    for splice in splices {
        let span = splice.span.range();
        new += &text[at..span.start];
        at = span.end;
        let line = new.rfind('\n').map_or(0, |n| n + 1);
        let rest = text[at..].find('\n').map_or(text.len(), |n| at + n + 1);
        if splice.text.is_empty()
            && new[line..].trim().is_empty()
            && text[at..rest].trim().is_empty()
        {
            new.truncate(line);
            at = rest;
        } else if splice.text.is_empty() && new.ends_with(' ') && text[at..].starts_with(' ') {
            at += 1;
        }
        new += &splice.text;
    }
    new + &text[at..]
}

#[cfg(test)]
mod tests;
