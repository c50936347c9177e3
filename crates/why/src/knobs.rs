//! Kinds of change: what of a program can be turned down or up, in every dialect.
//!
//! A kind lists its [`Knob`]s in a program. The levels of a knob go from the weakest to the strongest, and one of them is
//! what is written. Whoever wants to know what an answer rests on turns knobs down; whoever wants to know what it lacks
//! turns them up ([`search`](crate::search)).
//!
//! # Invariants
//! - What is written changes nothing; every other level is one change of all places of the knob.
//! - Copies of one instruction (threads of one kernel) have one knob; so have barriers that meet, since one without its
//!   partner waits for ever.

use std::collections::{BTreeSet, HashMap};

use diag::Span;
use front::litmus::{Splice, printed, respelled};
use program::edits::{Change, Edit, Fence, PROXIES, Site, edited, enough, fence_text};
use program::litmus::LitmusTest;
use program::strength::{self, Order};
use program::{
    BarrierNaming, DialectRow, EventKind, Expr, Instr, LocId, Location, LocationKind, MemoryKind, Op, Program,
    Scope, SourceLine, Space, Tags, Thread, ThreadId,
};
use verdict::{Need, Where};

/// An instruction of a thread.
pub type Spot = (ThreadId, usize);

/// What stands at a level of a knob.
#[derive(Clone, Debug)]
enum Act {
    /// What is written.
    Own,
    /// The instructions, locations or threads are changed so.
    Change(Change),
    /// Parts of the file are.
    Text(Vec<Splice>),
}

/// A level of a knob: what is there then, and in words; empty: nothing.
#[derive(Clone, Debug)]
pub(crate) struct Level(Act, String);

impl Level {
    /// One that changes the text.
    pub(crate) fn text(splices: Vec<Splice>) -> Level {
        Level(Act::Text(splices), String::new())
    }
}

/// Something that can be turned.
#[derive(Clone, Debug)]
pub struct Knob {
    /// What it changes.
    pub sites: Vec<Site>,
    levels: Vec<Level>,
    /// Which of them is there.
    written: usize,
    kind: Written,
}

/// What a change of the text concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The scope of what is there.
    Scope,
    /// Its order.
    Order,
    /// Its flags.
    Flags,
    /// A barrier that is not there.
    Barrier,
    /// What else is not there, or is plain.
    More,
}

impl Knob {
    /// A knob with levels below and above what is written.
    fn new(sites: Vec<Site>, below: Vec<(Change, String)>, own: String, above: Vec<(Change, String)>) -> Knob {
        let written = below.len();
        let change = |(change, says)| Level(Act::Change(change), says);
        let own = Level(Act::Own, own);
        let levels = below.into_iter().map(change).chain([own]).chain(above.into_iter().map(change)).collect();
        Knob { sites, levels, written, kind: Written::More }
    }

    /// A knob that changes the text of the file, to something stronger.
    pub(crate) fn written_so(kind: Written, spots: &[Spot], above: Vec<Level>) -> Knob {
        let levels = [Level(Act::Own, String::new())].into_iter().chain(above).collect();
        Knob { sites: at(spots), levels, written: 0, kind }
    }

    /// One whose levels are texts, in any order, but that one is what is written: nothing of the text is changed there.
    pub(crate) fn of_texts(spots: &[Spot], texts: Vec<Vec<Splice>>, written: usize) -> Knob {
        let level = |(at, splices)| match at == written {
            true => Level(Act::Own, String::new()),
            false => Level::text(splices),
        };
        let levels = texts.into_iter().enumerate().map(level).collect();
        Knob { sites: at(spots), levels, written, kind: Written::More }
    }

    /// The same, of all that concerns a location.
    pub(crate) fn of_location(mut self, loc: LocId) -> Knob {
        self.sites.insert(0, Site::Location(loc));
        self
    }

    /// As written, or weaker; `None` if nothing is weaker.
    pub fn down(mut self) -> Option<Knob> {
        self.levels.truncate(self.written + 1);
        (self.levels.len() > 1).then_some(self)
    }

    /// As written, or stronger; `None` if nothing is stronger.
    pub fn up(mut self) -> Option<Knob> {
        self.levels.drain(..self.written);
        self.written = 0;
        (self.levels.len() > 1).then_some(self)
    }

    /// As written, or the last level of which something holds.
    pub fn only(mut self, wanted: impl Fn(Change) -> bool) -> Option<Knob> {
        let own = self.levels[self.written].clone();
        let level = self.levels.into_iter().rev().find(|level| level.change().is_some_and(&wanted))?;
        (self.levels, self.written) = (vec![own, level], 0);
        Some(self)
    }

    /// Without levels at which some instruction could not be written so: the front end refuses its text.
    pub(crate) fn writable(mut self, test: &LitmusTest) -> Option<Knob> {
        let written = |level: &Level| {
            let Some(change) = level.change().filter(|c| !matches!(c, Change::FenceBefore(_))) else {
                return true;
            };
            let splices: Option<Vec<Splice>> = self.spots().map(|spot| rewritten(test, spot, &[change])).collect();
            splices.is_none_or(|mut splices| {
                splices.sort_unstable();
                splices.dedup();
                let edits = self.spots().map(|(t, i)| (Site::Instr(t, i), change)).collect::<Vec<_>>();
                let changed = edited(&test.program, &edits);
                let same = |new: &Program, spot: Spot| {
                    let there = new.thread(spot.0).code.get(spot.1);
                    there.is_some_and(|there| said(&there.op) == said(&instr(&changed, spot).op))
                };
                respelled(test, &splices).is_some_and(|(new, _)| self.spots().all(|spot| same(&new.program, spot)))
            })
        };
        let (own, above) = self.levels.split_first()?;
        let levels: Vec<Level> =
            std::iter::once(own).chain(above.iter().filter(|l| written(l))).cloned().collect();
        self.levels = levels;
        (self.levels.len() > 1).then_some(self)
    }

    /// One knob for each place.
    pub fn apart(self) -> impl Iterator<Item = Knob> {
        let Knob { sites, levels, written, kind } = self;
        sites.into_iter().map(move |site| Knob { sites: vec![site], levels: levels.clone(), written, kind })
    }

    /// One knob for the places of all; `None` if there are none.
    pub fn joined(knobs: Vec<Knob>) -> Option<Knob> {
        let mut sites: Vec<Site> = knobs.iter().flat_map(|knob| knob.sites.clone()).collect();
        sites.sort_unstable();
        knobs
            .into_iter()
            .reduce(|mut all, knob| {
                for (level, more) in all.levels.iter_mut().zip(knob.levels) {
                    if let (Level(Act::Text(splices), _), Level(Act::Text(more), _)) = (level, more) {
                        splices.extend(more);
                    }
                }
                all
            })
            .map(|all| Knob { sites, ..all })
    }

    /// Whether it helps alone or not at all: of barriers, more are not stronger.
    pub(crate) fn is_alone(&self) -> bool {
        self.kind == Written::Barrier
    }

    /// Whether it is the place of a thread.
    pub(crate) fn is_place(&self) -> bool {
        matches!(self.sites.as_slice(), [Site::Thread(_)])
    }

    /// What its changes of the text concern.
    pub(crate) fn kind(&self) -> Written {
        self.kind
    }

    /// Its strongest level.
    pub fn top(&self) -> usize {
        self.levels.len() - 1
    }

    /// The level that is written.
    pub fn written(&self) -> usize {
        self.written
    }

    /// What changes of the program at a level.
    pub fn change(&self, level: usize) -> Option<Change> {
        self.levels[level].change()
    }

    /// What changes of the text at a level.
    pub(crate) fn splices(&self, level: usize) -> &[Splice] {
        match &self.levels[level].0 {
            Act::Text(splices) => splices,
            _ => &[],
        }
    }

    /// Its changes of the program at a level.
    pub fn edits(&self, level: usize) -> impl Iterator<Item = Edit> {
        self.change(level).into_iter().flat_map(|change| self.sites.iter().map(move |&site| (site, change)))
    }

    /// The instructions that it changes.
    pub fn spots(&self) -> impl Iterator<Item = Spot> {
        self.sites.iter().filter_map(|site| match *site {
            Site::Instr(t, i) => Some((t, i)),
            _ => None,
        })
    }

    /// The first of its instructions.
    pub fn instr<'p>(&self, program: &'p Program) -> Option<&'p Instr> {
        self.spots().next().map(|spot| instr(program, spot))
    }

    /// What is there at one level, and what is at another.
    pub fn needs(&self, test: &LitmusTest, what: usize, instead: usize) -> Vec<Need> {
        match self.splices(instead) {
            [] => vec![self.need(test, what, instead)],
            splices => splices.iter().map(|splice| self.spelled(test, splice)).collect(),
        }
    }

    /// A change of the text.
    fn spelled(&self, test: &LitmusTest, splice: &Splice) -> Need {
        let (file, span) = (&test.file, splice.span);
        let instead = splice.text.trim().to_owned();
        let place = if span.range().is_empty() { Where::After } else { Where::Instead };
        let what = file.text[span.range()].to_owned();
        let here = |instr: &&Instr| instr.span.start <= span.start && span.end <= instr.span.end;
        let all = || self.spots().map(|spot| instr(&test.program, spot)).chain(test.program.instrs().map(|i| i.2));
        let line = file.line_column(span.start as usize).0;
        let of = all().find(here).filter(|_| place == Where::Instead);
        let (line, text) = match of {
            Some(instr) => (line, instr.text.clone()),
            None if place == Where::After => behind(&file.text, span.start as usize),
            None => (line, file.text.lines().nth(line - 1).unwrap_or("").trim().to_owned()),
        };
        // Where a word stands twice, all of the instruction tells which is meant.
        let (what, instead) = match of {
            Some(instr) if text.matches(&what).count() > 1 => {
                let (start, end) = (instr.span.start as usize, instr.span.end as usize);
                let all = |word: &str| {
                    let new = [&file.text[start..span.start as usize], word, &file.text[span.end as usize..end]];
                    new.concat().split_whitespace().collect::<Vec<_>>().join(" ")
                };
                (all(&what), all(&instead))
            }
            _ => (what, instead),
        };
        let there = |spot: &Spot| {
            let at = instr(&test.program, *spot).span;
            place == Where::Instead && at.start <= span.start && span.end <= at.end
        };
        let here: Vec<Spot> = spots(&test.program).filter(there).collect();
        let all = if here.is_empty() { self.spots().collect() } else { here };
        Need {
            thread: threads(&test.program, all),
            line: source_line(&test.program, line as u32),
            text,
            what,
            instead,
            place,
        }
    }

    fn need(&self, test: &LitmusTest, what: usize, instead: usize) -> Need {
        let program = &test.program;
        let thread = threads(program, self.spots().collect());
        let (line, text) =
            self.instr(program).map_or((0.into(), String::new()), |i| (i.line.clone(), i.text.clone()));
        let says = |level: usize| self.levels[level].1.clone();
        let (mut before, mut after) = (says(what), says(instead));
        // What cannot be said by one word in place of another is said by all of the instruction.
        if instead > what
            && let (Some(spot), Some(change)) = (self.spots().next(), self.change(instead))
            && let Some(new) = rewritten(test, spot, &[change])
                .filter(|_| !matches!(change, Change::Generic | Change::FenceBefore(_)))
        {
            let word =
                Splice { span: new.span, text: test.file.text[new.span.range()].replacen(&before, &after, 1) };
            if !text.contains(&before) || respelled(test, &[word]).is_none() {
                let new: Vec<&str> = new.text.split_whitespace().collect();
                (before, after) = (text.clone(), new.join(" "));
            }
        }
        let place = match self.change(instead) {
            Some(Change::FenceBefore(_)) => Where::Before,
            _ => Where::Instead,
        };
        Need { thread, line, text, what: before, instead: after, place }
    }
}

impl Level {
    fn change(&self) -> Option<Change> {
        if let Act::Change(change) = self.0 { Some(change) } else { None }
    }
}

/// What a model may see of an instruction.
pub(crate) fn said(op: &Op) -> (Vec<(EventKind, Tags)>, Option<Scope>) {
    (op.tags().into_iter().map(|(kind, tags)| (kind, tags.clone())).collect(), op.scope())
}

/// The names of the threads of some instructions.
fn threads(program: &Program, spots: Vec<Spot>) -> String {
    let mut threads: Vec<ThreadId> = spots.into_iter().map(|s| s.0).collect();
    threads.dedup();
    let name = |t: &ThreadId| program.thread(*t).name.clone();
    match threads.as_slice() {
        [first, .., last] => format!("{} to {}", name(first), name(last)),
        [one] => name(one),
        [] => String::new(),
    }
}

/// An instruction of an assembly language as it is written with some changes; `None` where it is not printed, or does not stand
/// as it is in the file.
pub(crate) fn rewritten(test: &LitmusTest, spot: Spot, changes: &[Change]) -> Option<Splice> {
    let old = instr(&test.program, spot);
    let there = test.file.text.get(old.span.range())?;
    if there.split_whitespace().collect::<Vec<_>>().join(" ") != old.text {
        return None;
    }
    let edits: Vec<Edit> = changes.iter().map(|change| (Site::Instr(spot.0, spot.1), *change)).collect();
    let changed = edited(&test.program, &edits);
    let alone = |program: &Program| {
        let thread = program.thread(spot.0);
        let elements = thread.code[spot.1].element.siblings(spot.1);
        let alone = Thread { code: thread.code[elements].to_vec(), ..thread.clone() };
        Some(printed(&alone, program)?.map(|text| text.trim().to_owned()))
    };
    let own = alone(&test.program)?;
    let text = match alone(&changed)? {
        Ok(new) => own.ok().and_then(|own| respelt(there, &own, &new)).unwrap_or_else(|| {
            // Its predicate has become a branch around it, which is not printed.
            match there.split_once(char::is_whitespace) {
                Some((predicate, _)) if predicate.starts_with('@') => format!("{predicate} {new}"),
                _ => new,
            }
        }),
        // Refused where it stands.
        Err(_) => "?".to_owned(),
    };
    Some(Splice { span: old.span, text })
}

/// An instruction as it is written, with other words in its name where the name that is printed has others: a compiler's names of
/// registers and types stay. `None` where more is different.
fn respelt(there: &str, own: &str, new: &str) -> Option<String> {
    let parts = |text: &str| {
        let (name, operands) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        (name.split('.').map(str::to_owned).collect::<Vec<_>>(), operands.to_owned())
    };
    let predicate = if there.starts_with('@') { there.find(char::is_whitespace)? } else { 0 };
    let start = predicate + there[predicate..].find(|c: char| !c.is_whitespace())?;
    let (mut words, operands) = parts(&there[start..]);
    let ((own, of_own), (new, of_new)) = (parts(own), parts(new));
    if of_own != of_new || words[0] != own[0] || own[0] != new[0] {
        return None;
    }
    // What is not written is what goes without saying.
    let gone = |word: &String| own.contains(word) && !new.contains(word);
    let at = words.iter().position(gone).unwrap_or(1);
    words.retain(|word| !gone(word));
    let added: Vec<String> = new.iter().filter(|word| !own.contains(word)).cloned().collect();
    words.splice(at..at, added);
    Some(format!("{}{}{operands}", &there[..start], words.join(".")))
}

/// A line of a test's file, with what the code on it says of where it came from.
fn source_line(program: &Program, number: u32) -> SourceLine {
    let there = program.instrs().map(|(_, _, instr)| &instr.line).find(|line| line.number == number);
    there.cloned().unwrap_or_else(|| number.into())
}

/// The line on which a statement ends, and what of it stands there.
fn behind(text: &str, end: usize) -> (usize, String) {
    let line = text[..end].bytes().filter(|b| *b == b'\n').count() + 1;
    let whole = text[..end].rsplit('\n').next().unwrap_or("").trim();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in whole.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ';' | '{' | '}' if depth == 0 && at + 1 < whole.len() => start = at + 1,
            _ => {}
        }
    }
    (line, whole[start..].trim().to_owned())
}

/// A kind of change: its knobs in a program.
pub type Kind = fn(&Around<'_>) -> Vec<Knob>;

/// A program, and the narrowest scope that is wide enough for it.
pub struct Around<'p> {
    program: &'p Program,
    wide: Scope,
}

impl<'p> Around<'p> {
    /// A program, with its narrowest scope that is wide enough.
    pub fn new(program: &'p Program) -> Around<'p> {
        Around { program, wide: enough(program) }
    }

    /// A program, in which even wider scopes are tried.
    pub fn unbounded(program: &'p Program) -> Around<'p> {
        Around { program, wide: Scope::Sys }
    }

    /// The narrowest scope that is wide enough.
    pub fn wide(&self) -> Scope {
        self.wide
    }

    /// A knob for each instruction, with its copies, that has `levels`: below, as written, above.
    fn each(&self, levels: impl Fn(&Instr) -> Option<Levels>) -> Vec<Knob> {
        // Assembly has other words than its program.
        let own = |op: &Op| self.row().proxies || !op.is_ptx();
        let sites = sites_of(self.program, &|instr| own(&instr.op) && levels(instr).is_some());
        let knob = |spots: Vec<Spot>| {
            let (below, own, above) = levels(instr(self.program, spots[0]))?;
            Some(Knob::new(at(&spots), below, own, above))
        };
        sites.into_iter().filter_map(knob).collect()
    }

    fn row(&self) -> &'static DialectRow {
        self.program.dialect.row()
    }

    /// The names of the function that an instruction calls, where they say the scope, and nothing says an order.
    fn family(&self, instr: &Instr) -> Option<Vec<(String, Scope)>> {
        let writing = self.row().writing?;
        instr.text.split(|c: char| !(c.is_alphanumeric() || c == '_')).find_map(|word| writing.family(word))
    }

    /// The levels of an order.
    pub(crate) fn order(&self, instr: &Instr) -> Option<Levels> {
        let (row, op) = (self.row(), &instr.op);
        if self.family(instr).is_some() {
            let below = || vec![(Change::Nothing, String::new())];
            return op.is_fence().then(|| (below(), String::new(), vec![]));
        }
        let word = |o: Order| row.order_word(o).to_owned();
        // No instruction, and what has one form.
        if op.is_ptx_mark()
            || ["MISUSE", "ASY", "HALF"].iter().any(|tag| op.has(tag))
            || op.has("MB") && op.has("WEAK")
        {
            return None;
        }
        if op.has("WEAK") {
            let synchronizing = if op.read().is_some() { Order::Acquire } else { Order::Release };
            let scope = row.scope_word(self.wide);
            let strong = |o: Order| (Change::Atomic(o, Some(self.wide)), format!("{}{scope}", word(o)));
            return Some((vec![], WEAK.to_owned(), [Order::Relaxed, synchronizing].map(strong).into()));
        }
        let own = strength::order(op);
        let mut below = Vec::new();
        if op.is_fence() {
            below.push((Change::Nothing, String::new()));
        } else if row.weak && op.accesses().count() == 1 {
            below.push((Change::Weak, WEAK.to_owned()));
        }
        let may = |o: &Order| *o != Order::SeqCst || row.sc_accesses || op.is_fence();
        let level = |o: Order| (Change::Order(o), word(o));
        below.extend(strength::weaker(op).into_iter().map(level));
        let above = strength::stronger(op).into_iter().filter(may).map(level).collect();
        (own.is_some() || op.is_fence()).then(|| (below, own.map_or_else(String::new, word), above))
    }

    /// Fences in front of all accesses but the first of a thread.
    fn fences_before(&self, kinds: &[Fence]) -> Vec<Knob> {
        let program = self.program;
        // Nothing orders what is first in its thread, and nothing stands between the micro-ops of one instruction.
        let begins = |&(t, at): &Spot| {
            let (before, this) = (&program.thread(t).code[..at], instr(program, (t, at)));
            let own = before.iter().rev().take_while(|i| i.span == this.span).any(|i| i.op.is_visible());
            !own && before.iter().any(|i| i.op.is_visible())
        };
        let level = |&fence: &Fence| (Change::FenceBefore(fence), fence_text(program.dialect, fence));
        let above: Vec<_> = kinds.iter().map(level).collect();
        let mut sites = sites_of(program, &|i| i.op.is_access());
        sites.retain(|spots| begins(&spots[0]));
        sites.iter().map(|spots| Knob::new(at(spots), vec![], String::new(), above.clone())).collect()
    }

    /// A knob for each location that can become another.
    fn locations(&self, change: Change, says: &str, can: impl Fn(&LocationKind) -> bool) -> Vec<Knob> {
        let locations = self.program.locations.iter().zip(0..).filter(|(l, _)| can(&l.kind));
        let above = || vec![(change, says.to_owned())];
        locations.map(|(_, l)| Knob::new(vec![Site::Location(LocId(l))], vec![], String::new(), above())).collect()
    }
}

/// Levels below what is written, that, and those above.
pub(crate) type Levels = (Vec<(Change, String)>, String, Vec<(Change, String)>);

/// What an access is that is not strong.
pub const WEAK: &str = ".weak";

/// Scopes, up to one that holds all threads.
pub fn scopes(around: &Around<'_>) -> Vec<Knob> {
    let row = around.row();
    around.each(|instr| {
        let own = strength::scope(&instr.op)
            .filter(|_| !instr.op.is_fence() || !(instr.op.has("MBI") || instr.op.has("HALF")))?;
        let words = || row.choices().into_iter().map(|s| (row.scope_word(s), s)).collect();
        let words: Vec<(String, Scope)> = around.family(instr).unwrap_or_else(words);
        let says =
            words.iter().find(|word| word.1 == own).map_or_else(|| row.scope_word(own), |word| word.0.clone());
        let level = |(word, s): (String, Scope)| (Change::Scope(s), word);
        let (below, above): (Vec<_>, Vec<_>) = words.into_iter().filter(|s| s.1 != own).partition(|s| s.1 < own);
        let most = if instr.op.has("MB") { Scope::Cluster.min(around.wide) } else { around.wide };
        let above = above.into_iter().filter(|s| s.1 <= most);
        Some((below.into_iter().map(level).collect(), says, above.map(level).collect()))
    })
}

/// Orders of accesses.
pub fn orders(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| around.order(i).filter(|_| !i.op.is_fence()))
}

/// Fences, and their orders.
pub fn fences(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| around.order(i).filter(|_| i.op.is_fence()))
}

/// Orders of accesses and fences; of a reduction of PTX, whether it reads.
pub fn strengths(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| match i.op.has("RED") && !i.op.has("ASY") {
        true => Some((vec![], "red".to_owned(), vec![(Change::Result, "atom".to_owned())])),
        false => around.order(i),
    })
}

/// Proxies of PTX.
pub fn proxies(around: &Around<'_>) -> Vec<Knob> {
    let generic = || vec![(Change::Generic, "the generic proxy".to_owned())];
    let through = |op: &Op| around.row().proxies && has_proxy(op) && !op.has("ASY");
    around.each(|i| through(&i.op).then(|| (vec![], "its proxy".to_owned(), generic())))
}

/// Whether an access of PTX goes through another proxy than the generic one.
pub fn has_proxy(op: &Op) -> bool {
    PROXIES.iter().any(|p| goes_through(op, p))
}

/// Second names of locations (PTX).
pub fn names(around: &Around<'_>) -> Vec<Knob> {
    around.locations(Change::OneName, "", |kind| matches!(kind, LocationKind::Alias { .. }))
}

/// Flags of fences and barriers of OpenCL.
pub fn flags(around: &Around<'_>) -> Vec<Knob> {
    let all = || vec![(Change::Regions, strength::ALL_FLAGS.to_owned())];
    let lacks = |op: &Op| around.row().regions && strength::lacks_flags(op);
    around.each(|i| lacks(&i.op).then(|| (vec![], "its flags".to_owned(), all())))
}

/// Local memory of OpenCL.
pub fn regions(around: &Around<'_>) -> Vec<Knob> {
    let local = |kind: &LocationKind| matches!(kind, LocationKind::Object { opencl, .. } if opencl.local && !opencl.global);
    around.locations(Change::Global, "", local)
}

/// Buffers of OpenCL that several devices use.
pub fn buffers(around: &Around<'_>) -> Vec<Knob> {
    let program = around.program;
    let devices: BTreeSet<u32> = program.threads.iter().map(|t| t.place.gpu).collect();
    let several = around.row().regions && devices.len() > 1;
    around.locations(Change::FineGrained, "", |kind| match kind {
        // What each device has of its own is not shared.
        LocationKind::Object { kind: MemoryKind::ProgramScope, .. } => false,
        LocationKind::Object { opencl, kind, .. } => {
            several && opencl.global && !program.machine.has_svm_atomics(*kind)
        }
        LocationKind::Alias { .. } => false,
    })
}

/// Barriers, with those that they meet.
pub fn barriers(around: &Around<'_>) -> Vec<Knob> {
    let mut groups: Vec<(String, Vec<Spot>)> = Vec::new();
    for spot in spots(around.program) {
        let Some(barrier) = instr(around.program, spot).op.barrier() else { continue };
        let key = match &barrier.naming {
            BarrierNaming::Counted { id, .. } => format!("{id:?}"),
            BarrierNaming::Instance { instance, .. } => instance.to_string(),
        };
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => group.1.push(spot),
            None => groups.push((key, vec![spot])),
        }
    }
    let nothing = || vec![(Change::Nothing, String::new())];
    groups.iter().map(|g| Knob::new(at(&g.1), nothing(), String::new(), vec![])).collect()
}

/// Threads where others run; not in programs with barriers or shared memory, which mean something else elsewhere.
pub fn places(around: &Around<'_>) -> Vec<Knob> {
    let program = around.program;
    let local = |l: &Location| matches!(l.kind, LocationKind::Object { space: Space::Shared, .. });
    let barrier = program.instrs().any(|(_, _, i)| i.op.barrier().is_some());
    if barrier || program.locations.iter().any(local) || around.row().levels.is_empty() {
        return Vec::new();
    }
    let group = around.row().noun(Scope::Cta);
    let elsewhere = |t: ThreadId| {
        let b = program.thread(t);
        let other = program.thread_ids().take_while(|o| *o < t).find(|&o| {
            let a = program.thread(o);
            a.place != b.place && !a.place.host && !b.place.host
        })?;
        let says = format!("{} in the {group} of {}", b.name, program.thread(other).name);
        Some(Knob::new(vec![Site::Thread(t)], vec![], String::new(), vec![(Change::PlaceOf(other), says)]))
    };
    program.thread_ids().filter_map(elsewhere).collect()
}

/// Fences between the proxies that a program of PTX goes through.
pub fn proxy_fences(around: &Around<'_>) -> Vec<Knob> {
    let program = around.program;
    let used = |proxy: &str| match proxy {
        "ALIAS" => program.locations.iter().any(|l| matches!(l.kind, LocationKind::Alias { .. })),
        _ => spots(program).any(|s| goes_through(&instr(program, s).op, proxy)),
    };
    let kinds = PROXIES.iter().filter(|p| around.row().proxies && used(p));
    kinds.flat_map(|p| around.fences_before(&[Fence::Proxy(p)])).collect()
}

/// Fences that order memory.
pub fn fences_before(around: &Around<'_>) -> Vec<Knob> {
    around.fences_before(&[Order::AcqRel, Order::SeqCst].map(|order| Fence::Memory(order, around.wide)))
}

/// Stores of values that were read, and branches on them: `value` says what a store writes, `path` whether a branch is
/// taken, in the execution that the answer rests on.
pub fn dependencies(
    program: &Program,
    value: &dyn Fn(Spot) -> Option<i64>,
    path: &dyn Fn(Spot) -> Option<bool>,
) -> Vec<Knob> {
    let reads = |e: &Expr| {
        let mut any = false;
        e.registers(&mut |_| any = true);
        any
    };
    let knob = |spot: Spot| {
        let level = match &instr(program, spot).op {
            Op::Store { value: written, .. } if reads(written) => {
                let v = value(spot)?;
                (Change::Value(v), format!("the value {v} whatever was read"))
            }
            Op::Branch { cond, .. } if reads(cond) => {
                let taken = path(spot)?;
                let word = if taken { "always" } else { "never" };
                (Change::Path(taken), format!("a branch that is {word} taken"))
            }
            _ => return None,
        };
        Some(Knob::new(at(&[spot]), vec![level], DEPENDENCE.to_owned(), vec![]))
    };
    spots(program).filter_map(knob).collect()
}

/// What is there of a dependency as written.
const DEPENDENCE: &str = "the dependence on what was read";

/// Whether an access goes through a proxy of PTX.
fn goes_through(op: &Op, proxy: &str) -> bool {
    op.is_access() && op.has(proxy)
}

/// An instruction.
pub fn instr(program: &Program, (thread, at): Spot) -> &Instr {
    &program.thread(thread).code[at]
}

pub(crate) fn spots(program: &Program) -> impl Iterator<Item = Spot> {
    program.instrs().map(|(t, i, _)| (t, i))
}

pub(crate) fn at(spots: &[Spot]) -> Vec<Site> {
    spots.iter().map(|&(t, i)| Site::Instr(t, i)).collect()
}

/// The instructions of a kind, each with its copies: those made of the same text.
pub(crate) fn sites_of(program: &Program, wanted: &dyn Fn(&Instr) -> bool) -> Vec<Vec<Spot>> {
    let mut sites: Vec<(_, usize, Vec<Spot>)> = Vec::new();
    for thread in program.thread_ids() {
        let mut seen: HashMap<_, usize> = HashMap::new();
        for (at, this) in program.thread(thread).code.iter().enumerate() {
            // Elements of a vector change together.
            if this.element.at > 0 || !wanted(this) {
                continue;
            }
            let ordinal = *seen.entry(this.span).and_modify(|n| *n += 1).or_default();
            let like = |site: &&mut (_, usize, Vec<Spot>)| {
                let op = &instr(program, site.2[0]).op;
                (site.0, site.1) == (this.span, ordinal)
                    && strength::order(op) == strength::order(&this.op)
                    && strength::scope(op) == strength::scope(&this.op)
            };
            match sites.iter_mut().find(like) {
                Some(site) => site.2.push((thread, at)),
                None => sites.push((this.span, ordinal, vec![(thread, at)])),
            }
        }
    }
    sites.into_iter().map(|site| site.2).collect()
}

/// The test after some edits; what was changed says so in its text.
pub fn version(test: &LitmusTest, edits: &[Edit]) -> LitmusTest {
    let mut program = edited(&test.program, edits);
    for (site, change) in edits {
        let Site::Instr(t, i) = *site else { continue };
        let before = |e: &&Edit| matches!(**e, (Site::Instr(u, j), Change::FenceBefore(_)) if u == t && j <= i);
        let at = i + edits.iter().filter(before).count();
        let (thread, old) = (&program.threads[usize::from(t.0)], instr(&test.program, (t, i)));
        let new = &thread.code[at];
        if matches!((&new.op, change), (Op::Branch { .. }, _) | (_, Change::FenceBefore(_) | Change::Value(_))) {
            continue;
        }
        let elements = new.element.siblings(at);
        let alone = Thread { code: thread.code[elements.clone()].to_vec(), ..thread.clone() };
        let row = program.dialect.row();
        let text = match (printed(&alone, &program), *change) {
            (Some(Ok(text)), _) => text.trim().to_owned(),
            (_, Change::Scope(scope)) => format!("{} /* {} */", old.text.trim(), row.scope_word(scope)),
            (_, Change::Order(order)) => format!("{} /* {} */", old.text.trim(), row.order_word(order)),
            _ => continue,
        };
        program.threads[usize::from(t.0)].code[elements].iter_mut().for_each(|e| e.text.clone_from(&text));
    }
    LitmusTest { program, ..test.clone() }
}

/// Changes of a test: of its text, and of what the front end made of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) edits: Vec<Edit>,
    pub(crate) splices: Vec<Splice>,
}

/// A changed test.
pub(crate) struct Version {
    pub(crate) test: LitmusTest,
    pub(crate) added: Added,
}

/// What was put into a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added {
    spots: Vec<Spot>,
    /// Parts of the file.
    spans: Vec<Span>,
}

impl Added {
    /// Whether an instruction is one of those.
    pub(crate) fn has(&self, program: &Program, spot: Spot) -> bool {
        let span = instr(program, spot).span;
        self.spots.contains(&spot) || self.spans.iter().any(|s| s.start <= span.start && span.end <= s.end)
    }
}

impl Changes {
    /// The test with all of them; `None` if the front end refuses it.
    pub(crate) fn of(&self, test: &LitmusTest) -> Option<Version> {
        let mut splices = self.splices.clone();
        splices.sort_unstable();
        splices.dedup();
        if splices.is_empty() {
            return Some(Version { test: version(test, &self.edits), added: self.added(Vec::new()) });
        }
        let (read, spans) = respelled(test, &splices)?;
        Some(Version { test: version(&read, &self.edits), added: self.added(spans) })
    }

    fn added(&self, spans: Vec<Span>) -> Added {
        let fence = |edit: &Edit| match *edit {
            (Site::Instr(t, i), Change::FenceBefore(_)) => Some((t, i)),
            _ => None,
        };
        let mut before: Vec<Spot> = self.edits.iter().filter_map(fence).collect();
        before.sort_unstable();
        let earlier = |at: usize| before[..at].iter().filter(|s| s.0 == before[at].0).count();
        let spots = (0..before.len()).map(|at| (before[at].0, before[at].1 + earlier(at))).collect();
        Added { spots, spans }
    }
}

#[cfg(test)]
mod tests {
    use super::{Around, fences_before, instr, respelt, spots};
    use front::litmus::parse;

    /// A copy is several micro-ops: what stands in front of it stands in front of the first one.
    #[test]
    fn a_fence_stands_in_front_of_an_instruction() {
        let text = "name = \"T\"\n[memory]\nx = { type = \"u32\", space = \"shared\" }\ng = { type = \"u32\" }\n\
            [[thread]]\ncta = 0\ncode = '''\nst.u32 [g], 1;\ncp.async.ca.shared.global [x], [g], 4;\n\
            cp.async.wait_all;\nld.shared.u32 a, [x];\n'''\n";
        let tests = parse("t.toml", text.as_bytes()).expect("a test");
        let program = &tests[0].program;
        let sites = fences_before(&Around::new(program));
        let at = |knob: &super::Knob| knob.sites.clone();
        let accesses = spots(program).filter(|spot| instr(program, *spot).op.is_access()).count();
        assert!(accesses > 3, "{accesses}");
        assert_eq!(sites.len(), 2, "{:?}", sites.iter().map(at).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_changed_of_an_instruction_stays_as_it_is_written() {
        for (there, own, new, respelled) in [
            (
                "ld.acquire.sys.b32 %r2,[%rd3]",
                "ld.acquire.sys.u32 r2, [rd3]",
                "ld.relaxed.gpu.u32 r2, [rd3]",
                Some("ld.relaxed.gpu.b32 %r2,[%rd3]"),
            ),
            // What goes without saying.
            (
                "@%p1 ld.global.u32 \t%r2, [%rd3]",
                "ld.weak.u32 r2, [rd3]",
                "ld.acquire.gpu.u32 r2, [rd3]",
                Some("@%p1 ld.acquire.gpu.global.u32 \t%r2, [%rd3]"),
            ),
            (
                "atom.exch.acquire.gpu.b32 %r2,[%rd2],%r3",
                "atom.acquire.gpu.exch.u32 r2, [rd2], r3",
                "atom.acquire.cta.exch.u32 r2, [rd2], r3",
                Some("atom.exch.acquire.cta.b32 %r2,[%rd2],%r3"),
            ),
            // Another instruction.
            ("membar.gl", "fence.sc.gpu", "fence.acq_rel.gpu", None),
        ] {
            assert_eq!(respelt(there, own, new).as_deref(), respelled);
        }
    }
}
