//! The rule that makes the difference between two models on a program, found by trying.
//!
//! Where one model forbids what the other allows, the program is changed a little, by one kind of change at a time, until
//! they agree; then every change that is not needed is taken back. The kind that removes the difference is the rule, and
//! the instructions that had to change are where it bites. So whatever is reported was seen: with that change, both models
//! gave the same answer.
//!
//! # Invariants
//! - A rule is named only if every question about the changed programs was decided.
//! - Rules are tried in a fixed order, the narrower first, so that the report is repeatable.

use super::super::decide::{self, listed};
use super::super::plan::Unit;
use super::super::settings::Settings;
use super::edits::{self, Rule};
use cat::model::ir::Model;
use engine::task::thin_air_axioms;
use front::mapping::Mapping;
use program::edits::{Change, Edit, Site, edited};
use program::litmus::{LitmusTest, Prop};
use program::{Dialect, LocationKind, Program, Scope};
use report::Place;
use verdict::{Verdict, Witness};
use why::Session;

/// What the models differ on.
#[derive(Clone, Copy)]
pub(super) enum Asked<'p> {
    /// Whether a proposition can hold (`true`: fail).
    Outcome(&'p Prop, bool),
    /// Whether the program races, or is undefined in another way.
    Race,
}

/// What makes the difference.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    /// The rule.
    pub rule: String,
    /// Where it bites.
    pub places: Vec<Place>,
    /// What was seen: the end of a sentence.
    pub seen: String,
}

/// Whether the model of a unit says no to a version of its program: the outcome is forbidden, or nothing is undefined.
/// `None`: undecided.
fn refuses(
    unit: &Unit<'_>,
    model: &Model,
    source: &LitmusTest,
    asked: Asked<'_>,
    settings: &Settings,
) -> Option<bool> {
    let lowered = match unit.mapping {
        None => None,
        Some(name) => Some(Mapping::named(name)?.lowered(source).ok()?),
    };
    let test = lowered.as_ref().unwrap_or(source);
    let mut session = Session::new(test, model, settings.engine, settings.limits, &settings.set);
    match asked {
        Asked::Outcome(prop, negate) => match session.reachability(Some(prop), negate).verdict {
            Verdict::Forbidden => Some(true),
            Verdict::Allowed => Some(false),
            _ => None,
        },
        Asked::Race => {
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

/// Two models that differ: `refusing` says no, `weak` yes. Without the first one, only the second must change its mind.
pub(super) struct Search<'s, 'u> {
    pub refusing: Option<&'s Unit<'u>>,
    pub weak: &'s Unit<'u>,
    pub asked: Asked<'s>,
    pub settings: &'s Settings,
}

impl Search<'_, '_> {
    /// The rule; `None` if no change of one kind, and no sum of them, removes the difference.
    pub(super) fn cause(&self) -> Option<Cause> {
        let (narrow, broad) = edits::STRONGER.split_at(edits::NARROW);
        self.thin_air()
            .or_else(|| narrow.iter().find_map(|rule| self.stronger(rule)))
            .or_else(|| edits::WEAKER.iter().find_map(|rule| self.weaker(rule)))
            .or_else(|| broad.iter().find_map(|rule| self.stronger(rule)))
            .or_else(|| self.sum())
    }

    /// The sequentially consistent operations that the difference rests on: if they are less, the models agree, on
    /// whatever answer.
    pub(super) fn of_sc(&self) -> Vec<Place> {
        let lists = [edits::lesser_accesses, edits::lesser_fences].map(|list| list(self.program()));
        for edits in lists.into_iter().filter(|edits| !edits.is_empty()) {
            for no in [false, true] {
                if self.both(&edits, no) {
                    return self.places(&self.least(edits, no));
                }
            }
        }
        Vec::new()
    }

    fn program(&self) -> &Program {
        &self.weak.source.program
    }

    fn version(&self, edits: &[Edit]) -> LitmusTest {
        LitmusTest { program: edited(self.program(), edits), ..self.weak.source.clone() }
    }

    /// Whether both models say no (`true`) or yes to the changed program.
    fn both(&self, edits: &[Edit], no: bool) -> bool {
        let test = self.version(edits);
        let says =
            |unit: &Unit<'_>| refuses(unit, &unit.model.model, &test, self.asked, self.settings) == Some(no);
        // The one that has to change its mind first.
        let (first, second) = if no { (Some(self.weak), self.refusing) } else { (self.refusing, Some(self.weak)) };
        first.is_none_or(says) && second.is_none_or(says)
    }

    /// Takes back what is not needed, the last first.
    fn least(&self, mut edits: Vec<Edit>, no: bool) -> Vec<Edit> {
        for i in (0..edits.len()).rev() {
            let mut fewer = edits.clone();
            fewer.remove(i);
            if !fewer.is_empty() && self.both(&fewer, no) {
                edits = fewer;
            }
        }
        edits
    }

    fn stronger(&self, rule: &Rule) -> Option<Cause> {
        let edits = (rule.edits)(self.program());
        if edits.is_empty() || !self.both(&edits, true) {
            return None;
        }
        let edits = self.least(edits, true);
        let seen = format!("with {} there, {}", self.with(rule, &edits), self.agreed(true));
        Some(Cause { rule: rule.name.into(), places: self.places(&edits), seen })
    }

    fn weaker(&self, rule: &Rule) -> Option<Cause> {
        if matches!(self.asked, Asked::Race) {
            return None;
        }
        let edits = (rule.edits)(self.program());
        if edits.is_empty() || !self.both(&edits, false) {
            return None;
        }
        let edits = self.least(edits, false);
        let seen = format!("with {}, {}", rule.with, self.agreed(false));
        Some(Cause { rule: rule.name.into(), places: self.places(&edits), seen })
    }

    /// All kinds of change together, one after the other.
    fn sum(&self) -> Option<Cause> {
        let mut all: Vec<(usize, Edit)> = Vec::new();
        for (r, rule) in edits::STRONGER.iter().enumerate() {
            let list = |all: &[(usize, Edit)]| all.iter().map(|e| e.1).collect::<Vec<_>>();
            // Later kinds see what earlier ones made; places stay, but for the fences, which come last.
            let so_far = edited(self.program(), &list(&all));
            all.extend((rule.edits)(&so_far).into_iter().map(|e| (r, e)));
            if r > 0 && self.both(&list(&all), true) {
                let edits = self.least(list(&all), true);
                let mut used: Vec<usize> = all.iter().filter(|e| edits.contains(&e.1)).map(|e| e.0).collect();
                used.dedup();
                let name = |r: &usize| edits::STRONGER[*r].name;
                let with: Vec<String> = used.iter().map(|r| self.with(&edits::STRONGER[*r], &edits)).collect();
                let seen = format!("with {} there, {}", with.join(" and "), self.agreed(true));
                let rule = used.iter().map(name).collect::<Vec<_>>().join(", ");
                return Some(Cause { rule, places: self.places(&edits), seen });
            }
        }
        None
    }

    /// Values that justify themselves: only an axiom against them stands between the two models.
    fn thin_air(&self) -> Option<Cause> {
        let (refusing, Asked::Outcome(prop, negate)) = (self.refusing?, self.asked) else { return None };
        let mut lesser = Model::clone(&refusing.model.model);
        let against = thin_air_axioms(&lesser);
        if against.is_empty() {
            return None;
        }
        let names: Vec<String> = against.iter().map(|&i| lesser.axioms[i].name.clone()).collect();
        lesser.axioms.retain(|a| !names.contains(&a.name));
        if refuses(refusing, &lesser, refusing.source, self.asked, self.settings) != Some(false) {
            return None;
        }
        let mut session = decide::open(self.weak, self.settings, false);
        let witness = session.reachability(Some(prop), negate).witness?;
        let places = cycle_of_values(&witness);
        let label = &refusing.model.label;
        let seen = format!("these values rest on each other, which `{label}` excludes by {}", listed(&names));
        Some(Cause { rule: "thin air".into(), places, seen })
    }

    fn with(&self, rule: &Rule, edits: &[Edit]) -> String {
        let scope = edits.iter().find_map(|e| match e.1 {
            Change::Scope(scope) => Some(scope),
            _ => None,
        });
        match scope {
            Some(scope) if rule.name == "scope inclusion" => {
                format!("{} scope", scope_word(self.program().dialect, scope))
            }
            _ if rule.name != "region" => rule.with.into(),
            _ => {
                let global = edits.iter().any(|e| e.1 == Change::Global);
                let flags = edits.iter().any(|e| e.1 == Change::BothRegions);
                match (global, flags) {
                    (true, true) => "the flags of both regions and global memory".into(),
                    (true, false) => "global memory".into(),
                    _ => rule.with.into(),
                }
            }
        }
    }

    /// What both say then.
    fn agreed(&self, no: bool) -> String {
        let word = match (self.asked, no) {
            (Asked::Race, _) => "calls it defined",
            (_, true) => "forbids it",
            (_, false) => "allows it",
        };
        let changed = if no { Some(self.weak) } else { self.refusing };
        let label = changed.map_or("", |unit| unit.model.label.as_str());
        let too = if self.refusing.is_some() { " too" } else { "" };
        format!("`{label}` {word}{too}")
    }

    fn places(&self, edits: &[Edit]) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for (site, _) in edits {
            let place = match *site {
                Site::Instr(t, i) => {
                    let thread = self.program().thread(t);
                    let instr = &thread.code[i];
                    Place { thread: thread.name.clone(), line: instr.line, text: instr.text.clone() }
                }
                Site::Thread(t) => {
                    let thread = self.program().thread(t).name.clone();
                    Place { text: format!("the place of {thread}"), thread, line: 0 }
                }
                Site::Location(l) => {
                    let location = self.program().location(l);
                    let what = match location.kind {
                        LocationKind::Alias { .. } => "which is another location's second name",
                        LocationKind::Object { .. } => "which is local memory",
                    };
                    let text = format!("location `{}`, {what}", location.name);
                    Place { thread: String::new(), line: 0, text }
                }
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

/// A scope in the words of the dialect.
fn scope_word(dialect: Dialect, scope: Scope) -> &'static str {
    match (dialect, scope) {
        (_, Scope::Thread) => "thread",
        (Dialect::OpenCl, Scope::Warp) => "sub_group",
        (Dialect::OpenCl, Scope::Cta) => "work_group",
        (Dialect::OpenCl | Dialect::Cuda, Scope::Gpu) => "device",
        (Dialect::OpenCl, Scope::Sys) => "all_svm_devices",
        (Dialect::Cuda, Scope::Cta) => "block",
        (Dialect::Cuda, Scope::Sys) => "system",
        (_, Scope::Warp) => "warp",
        (_, Scope::Cta) => "cta",
        (_, Scope::Cluster) => "cluster",
        (_, Scope::QueueFamily) => "queue family",
        (_, Scope::Gpu) => "gpu",
        (_, Scope::Sys) => "sys",
    }
}

/// The instructions on a cycle of program order and reads-from in an execution.
fn cycle_of_values(witness: &Witness) -> Vec<Place> {
    let pairs = |name: &str| -> Vec<(usize, usize)> {
        witness.relations.iter().filter(|r| r.0 == name).flat_map(|r| r.1.clone()).collect()
    };
    let (order, sources) = (pairs("po"), pairs("rf"));
    let steps: Vec<(usize, usize)> = order.iter().chain(&sources).copied().collect();
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
    // The ends of reads-from between threads say enough.
    let mut ends: Vec<usize> =
        sources.iter().filter(|&&(a, b)| on_cycle[a] && on_cycle[b]).flat_map(|&(a, b)| [a, b]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.into_iter().map(|e| place_of(&witness.events[e])).collect()
}

/// The instruction of an event.
pub(super) fn place_of(event: &verdict::WitnessEvent) -> Place {
    Place { thread: event.thread_name.clone(), line: event.line, text: event.text.clone() }
}
