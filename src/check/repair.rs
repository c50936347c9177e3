//! What would make a racy program race-free: wider scopes, stronger orders, atomic accesses.
//!
//! The operations of a program have *knobs*, each with levels: 0 is what is written, the last is the most that there
//! is. A setting of the knobs is a program of its own, which is decided anew; nothing is concluded from the racy
//! execution alone. One knob is tried, then two, then all together; a setting that helps is then turned down, knob by
//! knob, as far as it goes on helping. Only where no order and no scope helps is plain memory made atomic.
//!
//! # Invariants
//! - A setting that is handed out was decided to be race-free, by the engine of the session.
//! - Copies of one instruction (threads of one kernel) have one knob.
//!
//! # Sources
//! - Minimal sets by deletion: as for unsatisfiable cores.

use std::collections::HashMap;
use std::time::Instant;

use super::Session;
use super::task::Task;
use crate::diag::Span;
use crate::litmus::LitmusTest;
use crate::program::isa::clike::strength::{self, Order};
use crate::program::{Dialect, LocId, LocationKind, Op, Place, Scope, ThreadId};
use crate::verdict::{Answer, Change, Fault, Remedy, Verdict};

/// At most so many programs are decided.
const DECISIONS: usize = 300;

/// Pairs of knobs are tried among at most so many.
const PAIRED: usize = 16;

/// An instruction of a thread.
type Spot = (ThreadId, usize);

/// What can be turned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Knob {
    /// The order of a site.
    Order(usize, Vec<Order>),
    /// The scope of a site.
    Scope(usize, Vec<Scope>),
    /// OpenCL: whether fences and barriers have the flags of all regions; those of one meeting have the same.
    Flags(Vec<Spot>),
    /// All plain accesses to a location become atomic.
    Atomic(LocId, Vec<(Order, Option<Scope>)>),
}

impl Knob {
    fn top(&self) -> usize {
        match self {
            Knob::Order(_, levels) => levels.len(),
            Knob::Scope(_, levels) => levels.len(),
            Knob::Flags(_) => 1,
            Knob::Atomic(_, levels) => levels.len(),
        }
    }
}

/// An atomic operation or a fence as written, with its copies.
struct Site {
    spots: Vec<Spot>,
    span: Span,
    ordinal: usize,
}

/// Levels of the knobs, in their order.
type Setting = Vec<usize>;

struct Search<'s, 'a> {
    session: &'s Session<'a>,
    sites: Vec<Site>,
    knobs: Vec<Knob>,
    /// Plain accesses, by the location that they may be to.
    plain: Vec<(LocId, Spot)>,
    known: HashMap<Setting, bool>,
    deadline: Option<Instant>,
    /// The last race that was found.
    race: Option<Box<Fault>>,
}

/// Why a search was given up.
struct GivenUp(String);

/// Looks for what removes the races of a test; `first` is one of them, found in the program as it is.
pub(super) fn search(session: &Session<'_>, task: &Task<'_>, first: &Fault, deadline: Option<Instant>) -> Remedy {
    let mut search = Search {
        session,
        sites: sites(session.test()),
        knobs: Vec::new(),
        plain: plain_accesses(task),
        known: HashMap::new(),
        deadline,
        race: None,
    };
    search.knobs = knobs(session.test(), &search.sites);
    match search.run(first) {
        Ok(remedy) => remedy,
        Err(GivenUp(reason)) => Remedy::Undecided(reason),
    }
}

impl Search<'_, '_> {
    fn run(&mut self, first: &Fault) -> Result<Remedy, GivenUp> {
        let none: Setting = vec![0; self.knobs.len()];
        if let Some(setting) = self.ordered()? {
            let setting = self.lowered(setting)?;
            return Ok(Remedy::Changes(self.changes(&setting, first)));
        }
        // Nothing orders the accesses: the memory that they race for must be atomic, and then perhaps more of it.
        let mut object = first.object.clone();
        let mut made: Vec<LocId> = Vec::new();
        while let Some(loc) = object.as_deref().and_then(|name| self.location(name)) {
            if made.contains(&loc) || !self.plain.iter().any(|p| p.0 == loc) {
                break;
            }
            made.push(loc);
            self.knobs.push(Knob::Atomic(loc, atomic_levels(self.session.test().program.dialect)));
            self.known.clear();
            let mut alone = none.clone();
            alone.resize(self.knobs.len(), 0);
            for (knob, level) in self.knobs.iter().zip(&mut alone) {
                if matches!(knob, Knob::Atomic(..)) {
                    *level = knob.top();
                }
            }
            let all: Setting = self.knobs.iter().map(Knob::top).collect();
            for setting in [alone, all] {
                if self.race_free(&setting)? {
                    let setting = self.lowered(setting)?;
                    return Ok(Remedy::Changes(self.changes(&setting, first)));
                }
            }
            object = self.race.as_ref().and_then(|race| race.object.clone());
        }
        Ok(Remedy::None(match self.sites.is_empty() {
            true => "the program has no atomic operation and no fence that could order them".into(),
            false => "they race even with every order seq_cst and every scope as wide as can be".into(),
        }))
    }

    /// A setting of orders and scopes that helps: of one knob, of two, or of all.
    fn ordered(&mut self) -> Result<Option<Setting>, GivenUp> {
        let n = self.knobs.len();
        let top: Setting = self.knobs.iter().map(Knob::top).collect();
        if n == 0 || !self.race_free(&top)? {
            return Ok(None);
        }
        for i in 0..n {
            let mut one = vec![0; n];
            one[i] = top[i];
            if self.race_free(&one)? {
                return Ok(Some(one));
            }
        }
        for i in 0..n.min(PAIRED) {
            for j in i + 1..n.min(PAIRED) {
                let mut two = vec![0; n];
                (two[i], two[j]) = (top[i], top[j]);
                if self.race_free(&two)? {
                    return Ok(Some(two));
                }
            }
        }
        Ok(Some(top))
    }

    /// Turns every knob down as far as the program stays race-free.
    fn lowered(&mut self, mut setting: Setting) -> Result<Setting, GivenUp> {
        // Plain memory stays plain if it can, first of all that which the first race is about: if the rest orders it,
        // fewer changes are left.
        let atomic = |i: &usize| matches!(self.knobs[*i], Knob::Atomic(..));
        let (plain, ordered): (Vec<usize>, Vec<usize>) = (0..setting.len()).partition(atomic);
        for i in plain.into_iter().chain(ordered) {
            for level in 0..setting[i] {
                let mut lower = setting.clone();
                lower[i] = level;
                if self.race_free(&lower)? {
                    setting = lower;
                    break;
                }
            }
        }
        Ok(setting)
    }

    /// Decides the program of a setting.
    fn race_free(&mut self, setting: &Setting) -> Result<bool, GivenUp> {
        if let Some(&known) = self.known.get(setting) {
            return Ok(known);
        }
        let left = self.deadline.map(|d| d.saturating_duration_since(Instant::now()));
        if self.known.len() >= DECISIONS || left.is_some_and(|left| left.is_zero()) {
            return Err(GivenUp("there are too many changes to try".into()));
        }
        let test = self.changed(setting);
        let answer: Option<Answer> = self.session.of(&test, left).race();
        let free = match answer {
            Some(Answer { verdict: Verdict::RaceFree, .. }) => true,
            Some(Answer { verdict: Verdict::Racy, fault, .. }) => {
                self.race = fault;
                false
            }
            Some(Answer { verdict: Verdict::Undecided(reason), .. }) => return Err(GivenUp(reason)),
            _ => return Err(GivenUp("the model knows no races".into())),
        };
        self.known.insert(setting.clone(), free);
        Ok(free)
    }

    /// The test with its knobs so turned.
    fn changed(&self, setting: &Setting) -> LitmusTest {
        let mut test = self.session.test().clone();
        for (knob, &level) in self.knobs.iter().zip(setting) {
            let Some(level) = level.checked_sub(1) else { continue };
            match knob {
                Knob::Order(site, levels) => {
                    for &spot in &self.sites[*site].spots {
                        strength::set_order(op_mut(&mut test, spot), levels[level]);
                    }
                }
                Knob::Scope(site, levels) => {
                    for &spot in &self.sites[*site].spots {
                        strength::set_scope(op_mut(&mut test, spot), levels[level]);
                    }
                }
                Knob::Flags(spots) => {
                    for &spot in spots {
                        strength::set_flags(op_mut(&mut test, spot));
                    }
                }
                Knob::Atomic(loc, levels) => {
                    let (order, scope) = levels[level];
                    for &(_, spot) in self.plain.iter().filter(|p| p.0 == *loc) {
                        strength::make_atomic(op_mut(&mut test, spot), order, scope);
                    }
                    if let LocationKind::Object { atomic, .. } = &mut test.program.locations[loc.0 as usize].kind {
                        *atomic = true;
                    }
                }
            }
        }
        test
    }

    fn location(&self, name: &str) -> Option<LocId> {
        let at = self.session.test().program.locations.iter().position(|l| l.name == name)?;
        u16::try_from(at).ok().map(LocId)
    }

    /// The changes in words, in the order of the program.
    fn changes(&self, setting: &Setting, first: &Fault) -> Vec<Change> {
        let test = self.session.test();
        let dialect = test.program.dialect;
        let scope_word = |s: Scope| strength::scope_name(dialect, s).unwrap_or("?");
        let mut changes = Vec::new();
        for (knob, &level) in self.knobs.iter().zip(setting) {
            let Some(level) = level.checked_sub(1) else { continue };
            changes.push(match knob {
                Knob::Order(site, levels) => {
                    let (spot, name) = self.site(*site);
                    let (line, new) = (instr(test, spot).line, levels[level].name());
                    let old = strength::order(&instr(test, spot).op).map_or("?", Order::name);
                    Change {
                        line,
                        text: format!("{name} at line {line} has `{new}`, not `{old}`"),
                        reason: format!(
                            "{name} at line {line} does not synchronize with `{old}`: it takes `{new}`"
                        ),
                    }
                }
                Knob::Scope(site, levels) => {
                    let (spot, name) = self.site(*site);
                    let line = instr(test, spot).line;
                    let old = strength::scope(&instr(test, spot).op).unwrap_or(Scope::Thread);
                    let (old_word, new) = (scope_word(old), scope_word(levels[level]));
                    let out = left_out(test, spot.0, old);
                    // Of the accesses that race, the fault itself says so.
                    let owner = &test.program.thread(spot.0).name;
                    let known =
                        (first.events.iter()).any(|e| e.event.line == line && e.event.thread_name == *owner);
                    let lack = if out.is_empty() {
                        format!("is not the scope of what {name} should synchronize with")
                    } else {
                        format!("does not include {}", out.join(", "))
                    };
                    Change {
                        line,
                        text: format!("{name} at line {line} has `{new}`, not `{old_word}`"),
                        reason: match known {
                            true => String::new(),
                            false => format!("`{old_word}` of {name} at line {line} {lack}"),
                        },
                    }
                }
                Knob::Flags(spots) => {
                    let line = instr(test, spots[0]).line;
                    let (what, have) = match instr(test, spots[0]).op {
                        Op::Barrier(_) => ("the barriers".to_owned(), "have"),
                        _ => (format!("{} at line {line}", self.called(spots)), "has"),
                    };
                    Change {
                        line,
                        text: format!("{what} {have} `{}`", strength::ALL_FLAGS),
                        reason: format!("the flags of {what} leave out memory that has to be ordered"),
                    }
                }
                Knob::Atomic(loc, levels) => {
                    let (order, scope) = levels[level];
                    let how = match order {
                        Order::SeqCst => "`memory_order_seq_cst`",
                        Order::AcqRel => "`memory_order_release` for stores, `memory_order_acquire` for loads",
                        _ => "`memory_order_relaxed` is enough",
                    };
                    let at = scope.map_or(String::new(), |s| format!(" at `{}`", scope_word(s)));
                    let name = &test.program.location(*loc).name;
                    Change {
                        line: 0,
                        text: format!("every access to `{name}` is atomic{at} ({how})"),
                        reason: match first.object.as_ref() == Some(name) {
                            true => {
                                format!("nothing orders the accesses to `{name}`, and they are not all atomic")
                            }
                            false => format!("the accesses to `{name}` are not all atomic"),
                        },
                    }
                }
            });
        }
        changes.sort_by_key(|c| c.line);
        changes
    }

    /// A site's first spot, and what to call it.
    fn site(&self, site: usize) -> (Spot, String) {
        let spots = &self.sites[site].spots;
        (spots[0], self.called(spots))
    }

    /// What to call copies of one operation.
    fn called(&self, spots: &[Spot]) -> String {
        let test = self.session.test();
        let noun = match instr(test, spots[0]).op {
            Op::Load { .. } => "load",
            Op::Store { .. } => "store",
            Op::Rmw { .. } => "read-modify-write",
            _ => "fence",
        };
        let names: Vec<&str> = spots.iter().map(|s| test.program.thread(s.0).name.as_str()).collect();
        let owner = match names.as_slice() {
            [one] => format!("{one}'s"),
            [first, .., last] => format!("the ({first} to {last})"),
            [] => String::new(),
        };
        format!("{owner} {noun}")
    }
}

fn instr(test: &LitmusTest, (thread, at): Spot) -> &crate::program::Instr {
    &test.program.thread(thread).code[at]
}

fn op_mut(test: &mut LitmusTest, (thread, at): Spot) -> &mut Op {
    &mut test.program.threads[thread.0 as usize].code[at].op
}

/// The threads that a scope leaves out.
fn left_out(test: &LitmusTest, thread: ThreadId, scope: Scope) -> Vec<String> {
    let from: &Place = &test.program.thread(thread).place;
    let others = test.program.thread_ids().filter(|&t| t != thread);
    others
        .map(|t| test.program.thread(t))
        .filter(|t| !from.same(&t.place, scope))
        .map(|t| t.name.clone())
        .collect()
}

/// The atomic operations and fences of a test. Those made of the same text are copies.
fn sites(test: &LitmusTest) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    for thread in test.program.thread_ids() {
        let mut seen: HashMap<Span, usize> = HashMap::new();
        for (at, instr) in test.program.thread(thread).code.iter().enumerate() {
            if strength::order(&instr.op).is_none() {
                continue;
            }
            let ordinal = *seen.entry(instr.span).and_modify(|n| *n += 1).or_default();
            let like = |s: &&mut Site| {
                let first = &test.program.thread(s.spots[0].0).code[s.spots[0].1].op;
                (s.span, s.ordinal) == (instr.span, ordinal)
                    && strength::order(first) == strength::order(&instr.op)
                    && strength::scope(first) == strength::scope(&instr.op)
            };
            match sites.iter_mut().find(like) {
                Some(site) => site.spots.push((thread, at)),
                None => sites.push(Site { spots: vec![(thread, at)], span: instr.span, ordinal }),
            }
        }
    }
    sites
}

/// The knobs of sites, scopes first: a scope that is too small is the likelier mistake.
fn knobs(test: &LitmusTest, sites: &[Site]) -> Vec<Knob> {
    let dialect = test.program.dialect;
    let op = |s: &Site| &test.program.thread(s.spots[0].0).code[s.spots[0].1].op;
    let scopes = sites.iter().enumerate().map(|(i, s)| Knob::Scope(i, strength::wider(op(s), dialect)));
    let orders = sites.iter().enumerate().map(|(i, s)| Knob::Order(i, strength::stronger(op(s))));
    let mut knobs: Vec<Knob> = scopes.chain(orders).filter(|knob| knob.top() > 0).collect();
    if dialect == Dialect::OpenCl {
        let lacking = |s: &&Site| matches!(op(s), Op::Fence { .. }) && strength::lacks_flags(op(s));
        knobs.extend(sites.iter().filter(lacking).map(|s| Knob::Flags(s.spots.clone())));
        let spots =
            test.program.thread_ids().flat_map(|t| (0..test.program.thread(t).code.len()).map(move |i| (t, i)));
        let is_barrier =
            |s: &Spot| matches!(&instr(test, *s).op, op @ Op::Barrier(_) if strength::lacks_flags(op));
        let barriers: Vec<Spot> = spots.filter(is_barrier).collect();
        if !barriers.is_empty() {
            knobs.push(Knob::Flags(barriers));
        }
    }
    knobs
}

/// How plain memory can become atomic, weakest first.
fn atomic_levels(dialect: Dialect) -> Vec<(Order, Option<Scope>)> {
    let mut scopes: Vec<Option<Scope>> = strength::scopes(dialect).iter().map(|s| Some(s.1)).collect();
    scopes.dedup();
    if scopes.is_empty() {
        scopes.push(None);
    }
    let orders = [Order::Relaxed, Order::AcqRel, Order::SeqCst];
    orders.into_iter().flat_map(|order| scopes.iter().map(move |&scope| (order, scope))).collect()
}

/// The plain accesses of a program, each with the locations that it may be to.
fn plain_accesses(task: &Task<'_>) -> Vec<(LocId, Spot)> {
    let sk = &task.sk;
    let mut found = Vec::new();
    for (e, event) in sk.events.iter().enumerate() {
        let Some(thread) = event.thread else { continue };
        if !event.is_memory() || !strength::is_plain(&sk.program.thread(thread).code[event.instr].op) {
            continue;
        }
        for &cell in &task.domains.cells[e] {
            let loc = sk.memory.cell(sk.memory.cell(cell).memory).location.0;
            let access = (loc, (thread, event.instr));
            if !found.contains(&access) {
                found.push(access);
            }
        }
    }
    found
}
