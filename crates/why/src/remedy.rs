//! Finds changes that make a racy program race-free, and says them.
//!
//! Changes that order the accesses come first: wider scopes, stronger orders, fences and their
//! flags, barriers, waits for copies and earlier kernels, calls of the host. If none of them helps,
//! plain memory becomes atomic. That alone may leave the test's condition allowed. If stronger
//! orders of the same accesses forbid it, the remedy has these; otherwise it says that the order of
//! values stays as open as before.
//!
//! # Invariants
//! - Nothing becomes weaker. The proposed program is defined, and hangs no more than the original.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use engine::facts::Facts;
use program::edits::{Change, EditSite, enough};
use program::litmus::{LitmusTest, Quantifier};
use program::strength::{self, Order};
use program::{LocId, Program, Scope, SourceLine, Tag, ThreadId};
use verdict::{Change as Advised, Fault, FaultEvent, Need, Reason, Remedy, Verdict, Where};

use crate::knobs::{self, Around, Changes, Kind, Knob, Spot, Version, Written};
use crate::needs::ends;
use crate::search::{GivenUp, Search, Setting, of_test};
use crate::session::Session;
use crate::written::Source;

/// The number of programs decided before memory becomes atomic, and again after.
const DECISIONS: usize = 300;

/// A change that makes a program race-free.
pub(crate) struct Repair {
    pub(crate) remedy: Remedy,
    /// The changed test.
    pub(crate) version: Option<Version>,
    /// The changes.
    pub(crate) changes: Changes,
    /// The number of programs decided.
    pub(crate) decided: usize,
}

/// Looks for changes that remove the races of a test. `first` is one of its races, found in the
/// original program.
pub(crate) fn remedy(
    session: &Session<'_>,
    facts: &Facts<'_>,
    first: &Fault,
    deadline: Option<Instant>,
) -> Option<Repair> {
    let written = session.written();
    let of_commands = is_between_commands(&session.test().program, first);
    let Candidates {
        source,
        knobs,
        weak,
        straight,
    } = Candidates::of(written, of_commands)?;
    let judge = RaceJudge {
        session,
        race: RefCell::new(None),
        left_open: Cell::new(false),
        in_order: Cell::new(false),
    };
    let decides = of_test(written, |test, left| judge.race_free(test, left));
    let mut search = RemedySearch {
        ordered: knobs.len(),
        search: Search::new(written, knobs, false, DECISIONS, deadline, decides).past_undecided(),
        source,
        straight,
        weak,
        of_commands,
    };
    // The plain accesses are known for the judged program.
    let (plain, object) = match std::ptr::eq(written, session.test()) {
        true => (plain_accesses(facts), first.object.clone()),
        false => (HashMap::new(), None),
    };
    let found = match search.ordering() {
        Ok(None) => search.with_atomic_memory(&judge, plain, object),
        found => found,
    };
    let found = match found {
        Ok(Some(strongest)) => search.weakest(&judge, written, strongest).map(Some),
        found => found,
    };
    let search = &search.search;
    let setting = found.as_ref().ok().and_then(Option::as_ref);
    let version = setting.and_then(|setting| search.version(setting));
    let changes = match (&version, setting) {
        (Some(_), Some(setting)) => search.changes(setting),
        _ => Changes::default(),
    };
    let decided = search.decided();
    let remedy = match (found, search.open.clone()) {
        (Ok(Some(setting)), _) => {
            // What is ordered by the rest needs no warning.
            let warns = !judge.in_order.get();
            let mut changes: Vec<Advised> = search
                .turned(&setting)
                .flat_map(|(knob, level)| said(written, knob, level, first, warns))
                .collect();
            changes.sort_by_key(|c| c.line.number);
            Remedy::Changes(changes)
        }
        (Ok(None), Some(reason)) | (Err(GivenUp(reason)), _) => Remedy::Undecided(reason),
        (Ok(None), None) => Remedy::None(no_remedy(written, judge.left_open.get())),
    };
    Some(Repair {
        remedy,
        version,
        changes,
        decided,
    })
}

/// The reason why no change removes the races.
fn no_remedy(written: &LitmusTest, left_open: bool) -> String {
    let has_orders = written
        .program
        .instrs()
        .any(|(_, _, i)| strength::order(&i.op).is_some());
    if left_open {
        "nothing orders their commands, and atomic operations of several kernel instances on one \
        buffer are implementation-defined"
    } else if written.file.text.contains("${") {
        "no change of the text that all tests of the file share removes them, and the search does \
        not change the values of a test"
    } else if has_orders {
        "they race even with every order and every scope as strong as can be written there"
    } else {
        "the program has no atomic operation or fence that could order them, and no added barrier \
        or call does"
    }
    .into()
}

/// The changes to try.
struct Candidates<'a> {
    source: Source<'a>,
    /// The changes that order accesses.
    knobs: Vec<Knob>,
    /// Stronger orders of plain accesses, which make memory atomic.
    weak: Vec<Knob>,
    /// The knobs of barriers in straight code.
    straight: Range<usize>,
}

impl<'a> Candidates<'a> {
    /// `of_commands`: whether the race is of two commands of a host, which no barrier orders.
    fn of(written: &'a LitmusTest, of_commands: bool) -> Option<Self> {
        let (source, mut knobs, weak) = match Source::new(written) {
            Some(source) => {
                let knobs = changes_of_text(written, &source);
                (source, knobs, Vec::new())
            }
            None => {
                let source = Source::assembly(written)?;
                let (mut knobs, weak) = changes_of_assembly(written);
                knobs.extend(source.waits());
                (source, knobs, weak)
            }
        };
        let (barriers, straight) = match of_commands {
            true => (Vec::new(), 0),
            false => source.barriers(),
        };
        let straight = knobs.len()..knobs.len() + straight;
        knobs.extend(barriers.into_iter().chain(source.calls()));
        Some(Candidates {
            source,
            knobs,
            weak,
            straight,
        })
    }
}

/// The changes of words in C-like code. Scopes and regions come first: one that is too small is the
/// likelier mistake. Then new text: fences and waits. Without atomic accesses, fences order
/// nothing, and the front end would read the program for each.
fn changes_of_text(written: &LitmusTest, source: &Source<'_>) -> Vec<Knob> {
    let program = &written.program;
    let buffers = knobs::buffers(&Around::unbounded(program))
        .into_iter()
        .filter_map(Knob::up)
        .collect();
    let has_atomics = program
        .instrs()
        .any(|(_, _, instr)| instr.op.has_any(&[Tag::Atomic, Tag::Volatile]));
    let fences = match has_atomics {
        true => source.fences(enough(program)),
        false => Vec::new(),
    };
    let kinds = [
        source.scopes(Scope::Sys),
        source.flags(),
        source.orders(),
        buffers,
        fences,
        source.waits(),
    ];
    kinds.into_iter().flatten().collect()
}

/// The changes of instructions of PTX: those that order accesses, and those of plain accesses.
fn changes_of_assembly(written: &LitmusTest) -> (Vec<Knob>, Vec<Knob>) {
    let program = &written.program;
    let around = Around::new(program);
    let up = |kind: Kind| -> Vec<Knob> {
        kind(&around)
            .into_iter()
            .filter_map(Knob::up)
            .filter_map(|k| k.writable(written))
            .collect()
    };
    let (weak, strong): (Vec<Knob>, Vec<Knob>) = up(knobs::orders).into_iter().partition(|knob| {
        knob.instr(program)
            .is_some_and(|instr| strength::is_plain(&instr.op))
    });
    let kinds = [
        up(knobs::scopes),
        strong,
        up(knobs::fences),
        up(knobs::proxy_fences_anywhere),
        up(knobs::fences_before),
    ];
    (kinds.into_iter().flatten().collect(), weak)
}

/// Decides whether a changed program has no race.
struct RaceJudge<'s, 'a> {
    session: &'s Session<'a>,
    /// The last race found.
    race: RefCell<Option<Box<Fault>>>,
    /// Whether some tried program is left to implementations.
    left_open: Cell<bool>,
    /// Whether the condition has to be forbidden, too.
    in_order: Cell<bool>,
}

impl RaceJudge<'_, '_> {
    fn race_free(&self, test: &LitmusTest, left: Option<Duration>) -> Result<bool, GivenUp> {
        let session = self.session;
        let Some(judged) = session.judged(test) else {
            return Ok(false);
        };
        let mut changed = session.of(&judged, left);
        let answer = changed.race();
        match answer.map(|answer| (answer.verdict, answer.fault)) {
            Some((Verdict::RaceFree, _)) => Ok(ends(session, test, &mut changed, left)
                && (!self.in_order.get() || is_forbidden(session, &judged, left)?)),
            Some((Verdict::Racy, fault)) => {
                self.race.replace(fault);
                Ok(false)
            }
            // A program that only some implementations define is no remedy.
            Some((Verdict::Undecided(Reason::ImplementationDefined { .. }), _)) => {
                self.left_open.set(true);
                Ok(false)
            }
            Some((Verdict::Undecided(reason), _)) => Err(GivenUp(reason)),
            _ => Err(GivenUp(Reason::Engine("the model knows no races".into()))),
        }
    }

    /// The memory of the last race found.
    fn object(&self) -> Option<String> {
        self.race.borrow().as_ref()?.object.clone()
    }
}

/// A search for a remedy.
struct RemedySearch<'a, D> {
    search: Search<'a, D>,
    source: Source<'a>,
    straight: Range<usize>,
    weak: Vec<Knob>,
    /// The number of knobs that order accesses; the others make memory atomic.
    ordered: usize,
    /// Whether the race is of two commands of a host, which no barrier orders.
    of_commands: bool,
}

impl<D: FnMut(&Changes, Option<Duration>) -> Result<bool, GivenUp>> RemedySearch<'_, D> {
    /// Changes that order the accesses.
    fn ordering(&mut self) -> Result<Option<Setting>, GivenUp> {
        let search = &mut self.search;
        if let Some(setting) = search.one_two_or_all()? {
            return Ok(Some(setting));
        }
        if self.straight.len() > 1 {
            // If several barriers are missing, none helps alone.
            let mut all = vec![0; search.knobs.len()];
            for i in self.straight.clone() {
                all[i] = search.knobs[i].top();
            }
            if let Some(setting) = search.first_of([all])? {
                return Ok(Some(setting));
            }
        }
        // A barrier or a call may need another one, or a wait, beside it.
        let pairs = search.pairs_alone();
        if let Some(setting) = search.first_of(pairs)? {
            return Ok(Some(setting));
        }
        if self.of_commands {
            return Ok(None);
        }
        // Threads with code of different text meet at a barrier.
        let meetings = self.source.meetings();
        let before = self.ordered;
        let alone: Vec<Setting> = (0..meetings.len())
            .map(|at| {
                let mut setting = vec![0; before + meetings.len()];
                setting[before + at] = 1;
                setting
            })
            .collect();
        search.add(meetings);
        self.ordered = search.knobs.len();
        search.first_of(alone)
    }

    /// Changes that make memory atomic: the memory of the race, and then more memory, as long as
    /// races for it are left.
    fn with_atomic_memory(
        &mut self,
        judge: &RaceJudge<'_, '_>,
        mut plain: HashMap<String, (LocId, Vec<Spot>)>,
        mut object: Option<String>,
    ) -> Result<Option<Setting>, GivenUp> {
        if !self.weak.is_empty() {
            let weak = std::mem::take(&mut self.weak);
            return self.first_with(weak);
        }
        while let Some((loc, accesses)) = object.and_then(|name| plain.remove(&name)) {
            let Some(knob) = self.source.atomicity(loc, &accesses) else {
                break;
            };
            if let Some(setting) = self.first_with(vec![knob])? {
                return Ok(Some(setting));
            }
            object = judge.object();
        }
        Ok(None)
    }

    /// Adds knobs that make memory atomic; the first setting that helps, without changes that order
    /// accesses or with all of them.
    fn first_with(&mut self, knobs: Vec<Knob>) -> Result<Option<Setting>, GivenUp> {
        self.search.add(knobs);
        let top = self.search.top();
        let mut alone = top.clone();
        alone[..self.ordered].fill(0);
        self.search.first_of([alone, top])
    }

    /// The weakest changes below a setting that helps. If they only make accesses atomic, and
    /// stronger orders of these accesses forbid the condition, they are such orders.
    fn weakest(
        &mut self,
        judge: &RaceJudge<'_, '_>,
        written: &LitmusTest,
        strongest: Setting,
    ) -> Result<Setting, GivenUp> {
        let setting = self.lowered(strongest.clone())?;
        let only_silences = self
            .search
            .turned(&setting)
            .all(|(knob, level)| silences(&written.program, knob, level));
        let unwanted = written.condition.is_some() && written.quantifier == Quantifier::Exists;
        if !only_silences || !unwanted {
            return Ok(setting);
        }
        judge.in_order.set(true);
        self.search.forget();
        let better = match self.search.helps(&strongest) {
            Ok(true) => self.lowered(strongest).ok(),
            _ => None,
        };
        match better {
            Some(better) if better != setting => Ok(better),
            _ => {
                judge.in_order.set(false);
                Ok(setting)
            }
        }
    }

    /// Lowers a setting. Plain memory stays plain if it can, above all that of the first race: if
    /// the rest orders it, fewer changes are left. Of the rest, added text goes first, and scopes
    /// last.
    fn lowered(&mut self, setting: Setting) -> Result<Setting, GivenUp> {
        let order = (self.ordered..self.search.knobs.len()).chain((0..self.ordered).rev());
        self.search.lowered(setting, order)
    }
}

/// Whether a race is of two commands of a host, or of one and the host.
fn is_between_commands(program: &Program, first: &Fault) -> bool {
    let Some(host) = &program.host else {
        return false;
    };
    let command = |event: &FaultEvent| {
        let thread = event.event.thread.map(|thread| ThreadId(thread as u16));
        thread.and_then(|thread| host.command_of(thread))
    };
    match first.events.as_slice() {
        [a, b] => command(a) != command(b),
        _ => false,
    }
}

/// Whether no execution of a program has the condition of the test.
fn is_forbidden(
    session: &Session<'_>,
    judged: &LitmusTest,
    left: Option<Duration>,
) -> Result<bool, GivenUp> {
    match session.of(judged, left).reachability(None, false).verdict {
        Verdict::Undecided(reason) => Err(GivenUp(reason)),
        verdict => Ok(verdict == Verdict::Forbidden),
    }
}

/// The plain accesses of a program, by the name of the location that they may access.
fn plain_accesses(facts: &Facts<'_>) -> HashMap<String, (LocId, Vec<Spot>)> {
    let sk = &facts.sk;
    let mut found = HashMap::new();
    for (e, event) in sk.events.iter().enumerate() {
        let Some(thread) = event.thread else { continue };
        let spot = (thread, event.instr);
        if !event.is_memory() || !strength::is_plain(&knobs::instr(&sk.program, spot).op) {
            continue;
        }
        for &cell in &facts.domains.cells[e] {
            let loc = sk.memory.cell(sk.memory.cell(cell).memory).location.0;
            let accesses = &mut found
                .entry(sk.program.location(loc).name.clone())
                .or_insert((loc, Vec::new()))
                .1;
            if !accesses.contains(&spot) {
                accesses.push(spot);
            }
        }
    }
    found
}

/// The changes of a knob in words; `first` is the race that is shown with them. `warns`: whether to
/// say that a change orders nothing.
fn said(test: &LitmusTest, knob: &Knob, level: usize, first: &Fault, warns: bool) -> Vec<Advised> {
    let program = &test.program;
    let location = knob.sites.iter().find_map(|site| match *site {
        EditSite::Location(loc) => Some(&program.location(loc).name),
        _ => None,
    });
    if let (Some(object), Some(_)) = (location, knob.change(level)) {
        let text = format!("`{object}` is fine-grained shared virtual memory with atomics");
        let reason = format!("`{object}` is a buffer: operations on it reach no other device");
        return vec![Advised {
            line: 0.into(),
            text,
            reason,
            edit: None,
        }];
    }
    let mut reason = reason(program, knob, location, first);
    let silences = warns && silences(program, knob, level);
    let change = |need: Need| {
        let Need {
            line,
            thread,
            what,
            instead,
            text,
            place,
        } = &need;
        let whose = if thread.is_empty() {
            String::new()
        } else {
            format!("{thread}'s ")
        };
        let text = match place {
            Where::Instead => format!("{whose}line {line} has `{instead}`, not `{what}`"),
            Where::Before => format!("{whose}line {line} has `{instead}` before `{text}`"),
            _ if text.is_empty() => format!("{whose}line {line} has `{instead}` in front"),
            _ => format!("{whose}line {line} has `{instead}` after `{text}`"),
        };
        let text = if silences {
            format!("{text} (values stay unordered)")
        } else {
            text
        };
        Advised {
            line: line.clone(),
            text,
            reason: std::mem::take(&mut reason),
            edit: Some(need),
        }
    };
    knob.needs(test, 0, level).into_iter().map(change).collect()
}

/// Whether a change makes accesses atomic and orders nothing: the race is gone, and the order of
/// values is as open as before.
fn silences(program: &Program, knob: &Knob, level: usize) -> bool {
    if let Some(Change::Atomic(order, _)) = knob.change(level) {
        return order == Order::Relaxed;
    }
    let relaxed = program.dialect.row().order_word(Order::Relaxed);
    let of_location = knob
        .sites
        .iter()
        .any(|site| matches!(site, EditSite::Location(_)));
    of_location && knob.says(level) == relaxed
}

/// Why the written text does not suffice; empty if the fault says so.
fn reason(program: &Program, knob: &Knob, location: Option<&String>, first: &Fault) -> String {
    if let Some(object) = location {
        return match first.object.as_ref() == Some(object) {
            true => {
                format!("nothing orders the accesses to `{object}`, and they are not all atomic")
            }
            false => format!("the accesses to `{object}` are not all atomic"),
        };
    }
    let spots: Vec<Spot> = knob.spots().collect();
    let Some(op) = knob.instr(program).map(|instr| &instr.op) else {
        return String::new();
    };
    let (line, name) = called(program, &spots);
    let row = program.dialect.row();
    match knob.kind() {
        Written::Scope => {
            let old = strength::scope(op).unwrap_or(Scope::Thread);
            let (owner, word) = (program.thread(spots[0].0), row.scope_word(old));
            // The fault itself says so of the racing accesses.
            let said =
                |e: &FaultEvent| (&e.event.line, &e.event.thread_name) == (&line, &owner.name);
            let out: Vec<&str> = (program.threads.iter())
                .filter(|t| t.name != owner.name && !owner.place.same(&t.place, old))
                .map(|t| t.name.as_str())
                .collect();
            match out.as_slice() {
                _ if first.events.iter().any(said) => String::new(),
                [] => format!(
                    "the scope `{word}` of {name} at line {line} differs from that of the other \
                    side"
                ),
                out => format!(
                    "`{word}` of {name} at line {line} does not include {}",
                    out.join(", ")
                ),
            }
        }
        Written::Order => {
            let old = strength::order(op).map_or("?", |o| row.order_word(o));
            format!("{name} at line {line} does not synchronize with `{old}`")
        }
        Written::Flags => {
            let what = if op.barrier().is_some() {
                "the barriers".to_owned()
            } else {
                format!("{name} at line {line}")
            };
            format!("the flags of {what} leave out memory that has to be ordered")
        }
        Written::Barrier | Written::Call | Written::More => String::new(),
    }
}

/// The line of an operation, and a name for it and its copies.
fn called(program: &Program, spots: &[Spot]) -> (SourceLine, String) {
    let Some(&first) = spots.first() else {
        return (0.into(), String::new());
    };
    let instr = knobs::instr(program, first);
    let name = |spot: &Spot| program.thread(spot.0).name.as_str();
    let owner = match spots {
        [first, .., last] => format!("the ({} to {})", name(first), name(last)),
        _ => format!("{}'s", name(&first)),
    };
    (instr.line.clone(), format!("{owner} {}", instr.op.noun()))
}
