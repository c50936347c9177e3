//! Finds the rule that makes the difference between two models on a program, by trying changes.
//!
//! One model forbids what the other allows. The search changes the program, by one kind of change
//! at a time, until the models agree; then it takes back every change that is not needed. That kind
//! of change is the rule, and the changed instructions are the places where it matters. So each
//! report was seen: with that change, both models gave the same answer.
//!
//! # Invariants
//! - A rule is named only if every question about the changed programs was decided.
//! - Rules are tried in a fixed order, the narrower first, so that the report is repeatable.

use std::time::Instant;

use cat::model::ir::Model;
use engine::query::Deadline;
use engine::thin_air::thin_air_axioms;
use program::edits::{Change, Edit, EditSite, edited};
use program::litmus::LitmusTest;
use program::strength::{self, Order};
use program::{LocationKind, Op, Program, Tag};
use verdict::{InstrPlace, Remedy, Style, Verdict, Where, Witness, WitnessEvent};

use super::{Means, Side, listed};
use crate::ask::Ask;
use crate::knobs::{self, Around, Kind, Knob, Version};
use crate::needs::{Forbidding, forbidding};
use crate::search::{Search, of_test};

/// A kind of change, and the name of a difference that it removes.
struct DifferenceRule {
    /// The rule's name in reports.
    name: &'static str,
    kinds: &'static [Kind],
    /// The instructions that it changes.
    of: fn(&Op) -> bool,
    /// The levels that it takes.
    to: fn(Change) -> bool,
    /// The effect of the changes, after "with".
    with: &'static str,
}

/// Changes that make a program stronger, in the order of trying; the first [`NARROW`] come before
/// those of [`WEAKER`].
const STRONGER: &[DifferenceRule] = &[
    DifferenceRule {
        name: "scope inclusion",
        kinds: &[knobs::scopes],
        of: any,
        to: every,
        with: "a scope that holds all threads",
    },
    DifferenceRule {
        name: "region",
        kinds: &[knobs::flags, knobs::regions],
        of: any,
        to: every,
        with: "the flags of both regions",
    },
    DifferenceRule {
        name: "proxy",
        kinds: &[knobs::names, knobs::proxies],
        of: any,
        to: every,
        with: "the location's own name and the generic proxy",
    },
    DifferenceRule {
        name: "reduction",
        kinds: &[knobs::strengths],
        of: any,
        to: |c| c == Change::Result,
        with: "`atom` in place of `red`",
    },
    DifferenceRule {
        name: "release and acquire",
        kinds: &[knobs::orders],
        of: any,
        to: synchronizes,
        with: "release or acquire order",
    },
    DifferenceRule {
        name: "moral strength",
        kinds: &[knobs::orders],
        of: |op| !knobs::has_proxy(op),
        to: |c| matches!(c, Change::Atomic(Order::Relaxed, _)),
        with: "a relaxed access in place of a weak one",
    },
    DifferenceRule {
        name: "sequential consistency",
        kinds: &[knobs::orders],
        of: any,
        to: |c| c == Change::Order(Order::SeqCst),
        with: "seq_cst order",
    },
    DifferenceRule {
        name: "program order",
        kinds: &[knobs::fences_before],
        of: any,
        to: every,
        with: "a fence of sequential consistency in front",
    },
];

/// Tags of compare-exchanges whose order on failure is not the default of their order on success.
const ON_FAILURE: &[Tag] = &[Tag::FailRelaxed, Tag::FailAcquire, Tag::FailSeqCst];

/// The number of [`STRONGER`] rules that concern the subject of an operation, not its effect.
const NARROW: usize = 3;

/// Changes that remove an order which one model has and the other lacks.
const WEAKER: &[DifferenceRule] = &[
    DifferenceRule {
        name: "SC fence",
        kinds: &[knobs::fences],
        of: is_sc,
        to: synchronizes,
        with: "an acq_rel fence in its place",
    },
    DifferenceRule {
        name: "SC access",
        kinds: &[knobs::orders],
        of: is_sc,
        to: synchronizes,
        with: "acquire or release order in its place",
    },
    DifferenceRule {
        name: "barrier",
        kinds: &[knobs::barriers],
        of: any,
        to: every,
        with: "the barrier taken out",
    },
];

fn any(_: &Op) -> bool {
    true
}

fn is_sc(op: &Op) -> bool {
    strength::order(op) == Some(Order::SeqCst)
}

fn every(_: Change) -> bool {
    true
}

fn synchronizes(change: Change) -> bool {
    matches!(
        change,
        Change::Order(Order::Acquire | Order::Release | Order::AcqRel)
    )
}

impl DifferenceRule {
    /// Its knobs in a program, each as written or changed; `up`: to something stronger.
    fn knobs(&'static self, program: &Program, up: bool) -> Vec<Turned> {
        let around = Around::new(program);
        let knobs = self.kinds.iter().flat_map(|kind| {
            let mut knobs: Vec<Knob> = kind(&around).into_iter().flat_map(Knob::apart).collect();
            knobs.sort_by_key(|knob| knob.sites[0]);
            knobs
        });
        knobs
            .filter(|knob| knob.instr(program).is_none_or(|i| (self.of)(&i.op)))
            .filter_map(|knob| if up { knob.up() } else { knob.down() })
            .filter_map(|knob| Some((self, knob.only(self.to)?)))
            .collect()
    }
}

/// A knob that is as written or changed, and its rule.
type Turned = (&'static DifferenceRule, Knob);

/// The cause of a difference.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    /// The rule.
    pub rule: String,
    /// The places where it matters.
    pub places: Vec<InstrPlace>,
    /// The observation, as the end of a sentence.
    pub seen: String,
}

/// Two models that differ: `refusing` says no, `weak` says yes. Without the first one, only the
/// second must change its answer.
pub(super) struct Difference<'s> {
    pub refusing: Option<&'s Side<'s>>,
    pub weak: &'s Side<'s>,
    pub asked: Ask,
    pub means: &'s Means,
}

impl Difference<'_> {
    /// The rule; `None` if no change of one kind, and no sum of them, removes the difference.
    pub(super) fn cause(&self) -> Option<Cause> {
        let (narrow, broad) = STRONGER.split_at(NARROW);
        let weaker = if self.asked == Ask::Race { &[] } else { WEAKER };
        let narrow = || {
            let found = narrow
                .iter()
                .find_map(|rule| self.removed(rule.knobs(self.program(), true), true))?;
            // A change of locations is no change of the code: it names the rule, and the
            // explanation's changes are the places.
            let of_code = found.places.iter().any(|place| place.line.is_known());
            Some(match self.lacking() {
                Some(lacking) if lacking.rule == found.rule => lacking,
                Some(lacking) if !of_code => Cause {
                    rule: found.rule,
                    ..lacking
                },
                _ => found,
            })
        };
        self.thin_air()
            .or_else(narrow)
            .or_else(|| {
                weaker
                    .iter()
                    .find_map(|rule| self.removed(rule.knobs(self.program(), false), false))
            })
            .or_else(|| self.lacking())
            .or_else(|| {
                broad
                    .iter()
                    .find_map(|rule| self.removed(rule.knobs(self.program(), true), true))
            })
            .or_else(|| self.sum())
    }

    /// The element that an explanation finds lacking under the weak model, if the other model still
    /// says no with it.
    fn lacking(&self) -> Option<Cause> {
        let test = with_condition(self.weak.test, &self.asked);
        let source = with_condition(self.weak.source, &self.asked);
        let session = self.means.session(&test, self.weak.model);
        let mut session = match self.weak.mapping {
            Some(mapping) => session.via(&source, mapping),
            None => session,
        };
        let deadline = Deadline(self.means.limits.timeout.map(|left| Instant::now() + left));
        let (needs, version) = match self.asked {
            Ask::Reachability { negate, .. } => {
                let Forbidding { needs, version, .. } =
                    forbidding(&session, negate, deadline.0).ok()?;
                (needs, version)
            }
            _ => {
                let fault = self.weak.fault().filter(|fault| fault.race)?;
                let (Remedy::Changes(changes), Some(version)) =
                    session.remedied(fault, deadline)?
                else {
                    return None;
                };
                (
                    changes
                        .into_iter()
                        .filter_map(|change| change.edit)
                        .collect(),
                    version,
                )
            }
        };
        if !self.both(&version.test, true) {
            return None;
        }
        let rules = gained(self.program(), &version);
        if rules.is_empty() {
            return None;
        }
        let (mut places, mut with): (Vec<InstrPlace>, Vec<String>) = Default::default();
        for need in needs {
            let behind = match need.place {
                Where::Instead => "",
                Where::Before => " in front",
                Where::After => " behind",
            };
            push_new(&mut with, format!("`{}`{behind}", need.instead));
            push_new(
                &mut places,
                InstrPlace {
                    thread: need.thread,
                    line: need.line,
                    text: need.text,
                },
            );
        }
        let seen = format!("with {} there, {}", with.join(" and "), self.agreed(true));
        Some(Cause {
            rule: rules.join(", "),
            places,
            seen,
        })
    }

    /// The sequentially consistent operations that the difference rests on: without them, the
    /// models agree.
    pub(super) fn of_sc(&self) -> Vec<InstrPlace> {
        let ways = [&WEAKER[1], &WEAKER[0]]
            .into_iter()
            .flat_map(|rule| [(rule, false), (rule, true)]);
        ways.into_iter()
            .find_map(|(rule, no)| self.least(rule.knobs(self.program(), false), no))
            .map(|knobs| self.places(&knobs))
            .unwrap_or_default()
    }

    fn program(&self) -> &Program {
        &self.weak.source.program
    }

    /// Whether both models say no (`true`) or yes to a changed program.
    fn both(&self, test: &LitmusTest, no: bool) -> bool {
        // The one that has to change its answer first.
        let (first, second) = if no {
            (Some(self.weak), self.refusing)
        } else {
            (self.refusing, Some(self.weak))
        };
        let mut sides = first.into_iter().chain(second);
        sides.all(|side| self.refuses(side, side.model, test) == Some(no))
    }

    /// The knobs that must be turned for both models to say no (`true`) or yes; `None` if even all
    /// of them together fail.
    fn least(&self, knobs: Vec<Turned>, no: bool) -> Option<Vec<Turned>> {
        let decide = |test: &LitmusTest, _| Ok(self.both(test, no));
        let list = knobs.iter().map(|k| k.1.clone()).collect();
        let mut search = Search::new(
            self.weak.source,
            list,
            false,
            usize::MAX,
            None,
            of_test(self.weak.source, decide),
        );
        let all = search.top();
        let found = search.first_of([all]).ok()??;
        let setting = search.lowered(found, (0..knobs.len()).rev()).ok()?;
        Some(
            knobs
                .into_iter()
                .zip(setting)
                .filter(|(_, level)| *level > 0)
                .map(|(knob, _)| knob)
                .collect(),
        )
    }

    /// The rules, if stronger programs make both models say no (`no`), or weaker ones make them say
    /// yes.
    fn removed(&self, knobs: Vec<Turned>, no: bool) -> Option<Cause> {
        let least = self.least(knobs, no)?;
        let mut rules: Vec<&DifferenceRule> = least.iter().map(|k| k.0).collect();
        rules.dedup_by_key(|rule| rule.name);
        let with: Vec<String> = rules.iter().map(|rule| self.with(rule, &least)).collect();
        let there = if no { " there" } else { "" };
        let seen = format!("with {}{there}, {}", with.join(" and "), self.agreed(no));
        let rule = rules
            .iter()
            .map(|rule| rule.name)
            .collect::<Vec<_>>()
            .join(", ");
        Some(Cause {
            rule,
            places: self.places(&least),
            seen,
        })
    }

    /// All kinds of change together, one after the other.
    fn sum(&self) -> Option<Cause> {
        let mut all: Vec<Turned> = Vec::new();
        STRONGER.iter().enumerate().find_map(|(r, rule)| {
            // Later kinds see the results of earlier ones. Places stay valid, except for fences, so
            // fences come last.
            let edits: Vec<Edit> = all.iter().flat_map(|(_, knob)| knob.edits(1)).collect();
            let more = rule.knobs(&edited(self.program(), &edits), true);
            let is_new = r > 0 && !more.is_empty();
            all.extend(more);
            is_new.then(|| self.removed(all.clone(), true)).flatten()
        })
    }

    /// Whether a model says no to a version of its program: it forbids the outcome, or nothing is
    /// undefined. `None`: undecided.
    fn refuses(&self, side: &Side<'_>, model: &Model, source: &LitmusTest) -> Option<bool> {
        let lowered = match side.mapping {
            None => None,
            Some(mapping) => Some(mapping.lowered(source).ok()?),
        };
        let mut session = self
            .means
            .session(lowered.as_ref().unwrap_or(source), model);
        match &self.asked {
            outcome @ Ask::Reachability { .. } => match session.decide(outcome)?.verdict {
                Verdict::Forbidden => Some(true),
                Verdict::Allowed => Some(false),
                _ => None,
            },
            _ => {
                let answers = [session.race(), session.undefined()];
                let mut none = true;
                for answer in answers.into_iter().flatten() {
                    match answer.verdict {
                        Verdict::RaceFree | Verdict::Defined => {}
                        Verdict::Undecided(_) => return None,
                        _ => none = false,
                    }
                }
                Some(none)
            }
        }
    }

    /// Values that justify themselves: only an axiom against them separates the two models.
    fn thin_air(&self) -> Option<Cause> {
        let refusing = self.refusing.filter(|_| self.asked != Ask::Race)?;
        let mut lesser = Model::clone(refusing.model);
        let against = thin_air_axioms(&lesser);
        if against.is_empty() {
            return None;
        }
        let names: Vec<String> = against
            .iter()
            .map(|&i| lesser.axioms[i].name.clone())
            .collect();
        lesser.axioms.retain(|a| !names.contains(&a.name));
        if self.refuses(refusing, &lesser, refusing.source) != Some(false) {
            return None;
        }
        let mut weak = self.means.session(self.weak.test, self.weak.model);
        let witness = weak.decide(&self.asked)?.witness?;
        let places = cycle_of_values(&witness);
        let label = refusing.label;
        let seen = format!(
            "these values rest on each other, which `{label}` excludes by {}",
            listed(&names)
        );
        Some(Cause {
            rule: "thin air".into(),
            places,
            seen,
        })
    }

    fn with(&self, rule: &DifferenceRule, knobs: &[Turned]) -> String {
        let changes: Vec<Change> = knobs
            .iter()
            .filter_map(|(_, knob)| knob.change(1))
            .collect();
        let scope = changes.iter().find_map(|change| match *change {
            Change::Scope(scope) if rule.name == "scope inclusion" => Some(scope),
            _ => None,
        });
        match scope {
            Some(scope) => format!("{} scope", self.program().dialect.row().bare_scope(scope)),
            None if rule.name == "region" && changes.contains(&Change::Global) => {
                match changes.contains(&Change::Regions) {
                    true => "the flags of both regions and global memory".into(),
                    false => "global memory".into(),
                }
            }
            None => rule.with.into(),
        }
    }

    /// The common answer in words.
    fn agreed(&self, no: bool) -> String {
        let word = match (&self.asked, no) {
            (Ask::Race, _) => "calls it defined",
            (_, true) => "forbids it",
            (_, false) => "allows it",
        };
        let changed = if no { Some(self.weak) } else { self.refusing };
        let label = changed.map_or("", |side| side.label);
        let too = if self.refusing.is_some() { " too" } else { "" };
        format!("`{label}` {word}{too}")
    }

    fn places(&self, knobs: &[Turned]) -> Vec<InstrPlace> {
        let mut places: Vec<InstrPlace> = Vec::new();
        for site in knobs.iter().flat_map(|(_, knob)| &knob.sites) {
            let place = match *site {
                EditSite::Instr(t, i) => {
                    let thread = self.program().thread(t);
                    let instr = &thread.code[i];
                    InstrPlace {
                        thread: thread.name.clone(),
                        line: instr.line.clone(),
                        text: instr.text.clone(),
                    }
                }
                EditSite::Thread(t) => {
                    let thread = self.program().thread(t).name.clone();
                    InstrPlace {
                        text: format!("the place of {thread}"),
                        thread,
                        line: 0.into(),
                    }
                }
                EditSite::Location(l) => {
                    let location = self.program().location(l);
                    let what = match location.kind {
                        LocationKind::Alias { .. } => "which is another location's second name",
                        LocationKind::Object { .. } => "which is local memory",
                    };
                    let text = format!("location `{}`, {what}", location.name);
                    InstrPlace {
                        thread: String::new(),
                        line: 0.into(),
                        text,
                    }
                }
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

/// The rules that a stronger version of a program gains.
fn gained(old: &Program, version: &Version) -> Vec<&'static str> {
    let new = &version.test.program;
    let mut rules = Vec::new();
    for t in old.thread_ids() {
        if old.thread(t).place != new.thread(t).place {
            push_new(&mut rules, "scope inclusion");
        }
        let mut before = old.thread(t).code.iter();
        for (i, instr) in new.thread(t).code.iter().enumerate() {
            let gained = match version.added.has(new, (t, i)) {
                true => put_in(&instr.op).into_iter().collect(),
                false => before
                    .next()
                    .map_or(Vec::new(), |old| turned(&old.op, &instr.op)),
            };
            gained
                .into_iter()
                .for_each(|rule| push_new(&mut rules, rule));
        }
    }
    rules
}

/// The purpose of an added instruction.
fn put_in(op: &Op) -> Option<&'static str> {
    match strength::order(op) {
        Some(Order::SeqCst) => Some("program order"),
        Some(_) => Some("release and acquire"),
        None if op.barrier().is_some() => Some("barrier"),
        None => op.is_fence().then_some("proxy"),
    }
}

/// The gain of one instruction over another of the same form.
fn turned(old: &Op, new: &Op) -> Vec<&'static str> {
    let order = match strength::order(new).filter(|order| strength::order(old) != Some(*order)) {
        Some(Order::SeqCst) => Some("sequential consistency"),
        Some(Order::Relaxed) if old.has(Tag::Weak) => Some("moral strength"),
        Some(Order::Relaxed) => Some("atomicity"),
        Some(_) => Some("release and acquire"),
        None => None,
    };
    let scope = strength::scope(old).is_some_and(|scope| strength::scope(new) != Some(scope));
    let rules = [
        scope.then_some("scope inclusion"),
        (strength::lacks_flags(old) && !strength::lacks_flags(new)).then_some("region"),
        (knobs::has_proxy(old) && !knobs::has_proxy(new)).then_some("proxy"),
        (old.has(Tag::Reduction) && !new.has(Tag::Reduction)).then_some("reduction"),
        order.or_else(|| {
            ON_FAILURE
                .iter()
                .any(|tag| old.has(*tag) != new.has(*tag))
                .then_some("release and acquire")
        }),
    ];
    rules.into_iter().flatten().collect()
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// The instructions on a cycle of program order and reads-from in an execution.
fn cycle_of_values(witness: &Witness) -> Vec<InstrPlace> {
    let (order, sources) = (
        witness.drawn_as(Style::ProgramOrder),
        witness.drawn_as(Style::ReadsFrom),
    );
    let steps: Vec<(usize, usize)> = order.iter().chain(sources).copied().collect();
    let n = witness.events.len();
    let reach = |from: usize| {
        let mut seen = vec![false; n];
        let mut todo = vec![from];
        while let Some(e) = todo.pop() {
            for &(_, b) in steps.iter().filter(|s| s.0 == e) {
                if !std::mem::replace(&mut seen[b], true) {
                    todo.push(b);
                }
            }
        }
        seen
    };
    let on_cycle: Vec<bool> = (0..n).map(|e| reach(e)[e]).collect();
    // The ends of reads-from between threads suffice.
    let mut ends: Vec<usize> = sources
        .iter()
        .filter(|&&(a, b)| on_cycle[a] && on_cycle[b])
        .flat_map(|&(a, b)| [a, b])
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends.into_iter()
        .map(|e| place_of(&witness.events[e]))
        .collect()
}

/// The instruction of an event.
pub(super) fn place_of(event: &WitnessEvent) -> InstrPlace {
    InstrPlace {
        thread: event.thread_name.clone(),
        line: event.line.clone(),
        text: event.text.clone(),
    }
}

/// The test with the condition of a question in place of its own.
fn with_condition(test: &LitmusTest, asked: &Ask) -> LitmusTest {
    match asked {
        Ask::Reachability { prop, .. } => LitmusTest {
            condition: prop.clone(),
            ..test.clone()
        },
        _ => test.clone(),
    }
}
