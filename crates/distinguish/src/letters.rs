//! Letters: the orders and scopes that an instruction may have in a dialect. This module writes
//! letters as text, and programs of letters as tests.
//!
//! # Invariants
//! - Words come from the dialect's row; this module knows no language by name.
//! - The front end parses the written text: a letter means what its text means.

use std::fmt::Write as _;

use program::words::Order;
use program::writing::AtomicAccess;
use program::{Dialect, DialectRow, Place, Scope};

use crate::outcome::ShapeOutcome;
use crate::shape::{InstrKind, LOCATIONS, ProgramShape, ShapeSlot};

/// Optional constituents of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Further {
    /// System scope, and threads on several devices.
    System,
    /// Cluster scope, and threads in several clusters.
    Cluster,
    /// Compare-exchanges in place of exchanges.
    Compare,
    /// Additions without a result.
    Reduce,
    /// Accesses by another virtual address, and the alias fence.
    Alias,
    /// Accesses through the surface proxy, and its fence.
    Surface,
    /// Locations with non-atomic accesses.
    Plain,
    /// Stores of values that depend on the thread's earlier reads.
    Depend,
    /// Reads after which a thread continues only if they return the value in the outcome.
    Branch,
    /// Barriers of the threads of a group.
    Barrier,
}

impl Further {
    /// The noun for it if a dialect lacks it.
    pub fn lacks(self, dialect: Dialect) -> Option<&'static str> {
        let row = dialect.row();
        let (has, noun) = match self {
            Further::System => (has_scope(row, Scope::Sys), "system scope"),
            Further::Cluster => (has_scope(row, Scope::Cluster), "scope of clusters"),
            Further::Compare => (true, "compare-exchanges"),
            Further::Reduce => (row.proxies, "reductions that return nothing"),
            Further::Alias => (row.proxies, "virtual aliases"),
            Further::Surface => (row.proxies, "surfaces"),
            Further::Plain => (!row.weak, "non-atomic accesses other than weak ones"),
            Further::Depend | Further::Branch => (true, "dependencies"),
            Further::Barrier => (barrier(dialect).is_some(), "barriers"),
        };
        (!has).then_some(noun)
    }

    /// Whether it is one of those that were chosen, and the dialect has it.
    fn is_in(self, chosen: &[Further], dialect: Dialect) -> bool {
        chosen.contains(&self) && self.lacks(dialect).is_none()
    }
}

/// Whether a dialect has a word for a scope.
fn has_scope(row: &DialectRow, scope: Scope) -> bool {
    row.scopes.iter().any(|known| known.1 == scope)
}

/// A group barrier as source text, with all memory regions.
fn barrier(dialect: Dialect) -> Option<&'static str> {
    match dialect.row().writing {
        None => Some("bar.sync 0"),
        Some(writing) => writing
            .barriers
            .iter()
            .rfind(|b| b.1 == Scope::Cta)
            .map(|b| b.0),
    }
}

/// The name by which an instruction accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessName {
    /// The location's name.
    Own,
    /// Another virtual address.
    Alias,
    /// A surface reference.
    Surface,
}

/// A name other than the location's.
struct OtherName {
    name: AccessName,
    /// The prefix before the location's name.
    before: &'static str,
    /// The proxy in the test's declaration.
    proxy: &'static str,
    /// The instructions that store and load.
    accesses: [&'static str; 2],
    fence: &'static str,
    /// The noun for its accesses.
    noun: &'static str,
}

const OTHERS: [OtherName; 2] = [
    OtherName {
        name: AccessName::Alias,
        before: "a",
        proxy: "",
        accesses: ["st", "ld"],
        fence: "fence.proxy.alias",
        noun: "aliases",
    },
    OtherName {
        name: AccessName::Surface,
        before: "s",
        proxy: ", proxy = \"surface\"",
        accesses: ["sust", "suld"],
        fence: "fence.proxy.surface",
        noun: "surfaces",
    },
];

/// An instruction without its location and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The kind of instruction.
    pub kind: InstrKind,
    /// The name that it uses; a fence with another name than [`AccessName::Own`] is a proxy fence.
    pub name: AccessName,
    /// Its order; `None`: it is weak.
    pub order: Option<Order>,
    /// Its scope; `None`: it has none.
    pub scope: Option<Scope>,
    /// For a write: its value depends on all earlier reads of its thread. For a read: the thread
    /// continues only if it returns the value in the outcome.
    pub tied: bool,
}

impl Letter {
    /// A letter without order and scope.
    fn bare(kind: InstrKind, name: AccessName) -> Letter {
        Letter {
            kind,
            name,
            order: None,
            scope: None,
            tied: false,
        }
    }

    /// The letter with an order, in each of some scopes.
    fn scoped(self, order: Order, scopes: &[Option<Scope>]) -> impl Iterator<Item = Letter> {
        scopes.iter().map(move |&scope| Letter {
            order: Some(order),
            scope,
            ..self
        })
    }

    /// Whether it is the same or weaker.
    pub fn is_below(&self, other: &Letter) -> bool {
        if self.kind != other.kind || self.name != other.name || self.tied && !other.tied {
            return false;
        }
        let order = match (self.order, other.order) {
            (None, _) => return true,
            (Some(_), None) => false,
            (Some(a), Some(b)) => a.bits() & !b.bits() == 0,
        };
        order && self.scope <= other.scope
    }
}

/// The letters and placements for programs.
#[derive(Clone, Debug)]
pub struct Alphabet {
    /// The language.
    pub dialect: Dialect,
    /// The letters, sorted by kind; no letter precedes a weaker one.
    pub letters: Vec<Letter>,
    /// Whether threads continue only if some reads return their values in the outcome.
    pub branches: bool,
    /// Whether read-modify-writes are written as compare-exchanges that expect the values in the
    /// outcome.
    pub compares: bool,
    /// The levels of the scope tree at which threads are in the same or in different groups, widest
    /// first.
    pub levels: Vec<Scope>,
}

const ACCESSES: [(InstrKind, &[Order]); 4] = [
    (
        InstrKind::Write,
        &[Order::Relaxed, Order::Release, Order::SeqCst],
    ),
    (
        InstrKind::Read,
        &[Order::Relaxed, Order::Acquire, Order::SeqCst],
    ),
    (
        InstrKind::Update,
        &[
            Order::Relaxed,
            Order::Acquire,
            Order::Release,
            Order::AcqRel,
            Order::SeqCst,
        ],
    ),
    (InstrKind::Reduce, &[Order::Relaxed, Order::Release]),
];

impl Alphabet {
    /// The alphabet of a dialect: group and device scope, and the requested further letters.
    pub fn new(dialect: Dialect, further: &[Further]) -> Alphabet {
        let row = dialect.row();
        let asked = |what: Further| what.is_in(further, dialect);
        let scopes = scopes(dialect, further);
        let mut names = vec![AccessName::Own];
        names.extend(asked(Further::Alias).then_some(AccessName::Alias));
        names.extend(asked(Further::Surface).then_some(AccessName::Surface));
        let mut letters = Vec::new();
        for (kind, orders) in ACCESSES {
            let is_plain = matches!(kind, InstrKind::Read | InstrKind::Write);
            if kind == InstrKind::Reduce && !asked(Further::Reduce) {
                continue;
            }
            for &name in names
                .iter()
                .filter(|name| is_plain || **name == AccessName::Own)
            {
                if row.weak && is_plain {
                    letters.push(Letter::bare(kind, name));
                }
                for &order in orders
                    .iter()
                    .filter(|o| row.sc_accesses || **o != Order::SeqCst)
                {
                    letters.extend(Letter::bare(kind, name).scoped(order, &scopes));
                }
            }
        }
        // In dialects with weak accesses, fences that only acquire or release are a late addition,
        // and are left out.
        let halves: &[Order] = if row.weak {
            &[]
        } else {
            &[Order::Acquire, Order::Release]
        };
        for &order in halves.iter().chain(&[Order::AcqRel, Order::SeqCst]) {
            let fence = Letter::bare(InstrKind::Fence, AccessName::Own);
            letters.extend(fence.scoped(order, &scopes));
        }
        letters.extend(
            names[1..]
                .iter()
                .map(|&name| Letter::bare(InstrKind::Fence, name)),
        );
        let plain = asked(Further::Plain).then_some([InstrKind::PlainWrite, InstrKind::PlainRead]);
        let barrier = asked(Further::Barrier).then_some(InstrKind::Barrier);
        letters.extend(
            plain
                .into_iter()
                .flatten()
                .chain(barrier)
                .map(|kind| Letter::bare(kind, AccessName::Own)),
        );
        let tied: Vec<Letter> = letters
            .iter()
            .filter(|letter| match letter.kind {
                InstrKind::Write | InstrKind::PlainWrite => asked(Further::Depend),
                InstrKind::Read | InstrKind::Update => asked(Further::Branch),
                _ => false,
            })
            .map(|letter| Letter {
                tied: true,
                ..*letter
            })
            .collect();
        letters.extend(tied);
        letters.sort_by_key(|letter| letter.kind);
        let levels = levels(dialect, further);
        let (compares, branches) = (further.contains(&Further::Compare), asked(Further::Branch));
        Alphabet {
            dialect,
            letters,
            branches,
            compares,
            levels,
        }
    }

    /// Without the letters that leave OpenCL's guidelines: atomic operations and fences are
    /// sequentially consistent, and have the widest scope. That is the scope of a device, or that
    /// of all devices if the memory is shared by all of them.
    pub fn of_guidelines(mut self) -> Alphabet {
        let widest = self.letters.iter().filter_map(|letter| letter.scope).max();
        self.letters.retain(|letter| match letter.order {
            Some(order) => order == Order::SeqCst && letter.scope == widest,
            None => true,
        });
        self
    }

    /// The kinds of instructions.
    pub fn kinds(&self) -> Vec<InstrKind> {
        let mut kinds: Vec<InstrKind> = self.letters.iter().map(|letter| letter.kind).collect();
        kinds.dedup();
        kinds
    }

    /// For each instruction of a shape, the letters that it may have. A tied letter needs an
    /// instruction to be tied to, and every thread has to reach its barrier.
    pub fn fitting(&self, shape: &ProgramShape) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for slots in &shape.threads {
            for (i, slot) in slots.iter().enumerate() {
                let (before, after) = (&slots[..i], &slots[i + 1..]);
                let ties = match slot.kind.reads() {
                    true => {
                        !after.is_empty()
                            && !after.iter().any(|later| later.kind == InstrKind::Barrier)
                    }
                    false => before.iter().any(|earlier| earlier.kind.tells()),
                };
                all.push(
                    self.of(slot.kind)
                        .filter(|&l| ties || !self.letters[l].tied)
                        .collect(),
                );
            }
        }
        all
    }

    /// Whether the program's text depends on the outcome.
    pub fn asks(&self) -> bool {
        self.branches || self.compares
    }

    /// The letter that remains of a failing compare-exchange: a load with the failure order and the
    /// same scope.
    pub fn failing(&self, letter: usize) -> Option<usize> {
        let Letter {
            kind, order, scope, ..
        } = self.letters[letter];
        (self.compares && kind == InstrKind::Update).then(|| {
            self.of(InstrKind::Read).find(|l| {
                let load = &self.letters[*l];
                (load.name, load.order, load.scope, load.tied)
                    == (AccessName::Own, order.map(on_failure), scope, false)
            })
        })?
    }

    /// Whether it has letters of this kind.
    pub fn has(&self, kind: InstrKind) -> bool {
        self.of(kind).next().is_some()
    }

    /// The letters of a kind, by number.
    pub fn of(&self, kind: InstrKind) -> impl Iterator<Item = usize> + '_ {
        (0..self.letters.len()).filter(move |&i| self.letters[i].kind == kind)
    }

    /// Whether the first letter is the same as the second or weaker.
    pub fn is_below(&self, a: usize, b: usize) -> bool {
        self.letters[a].is_below(&self.letters[b])
    }

    /// The letters one step weaker than this one.
    pub fn steps_below(&self, letter: usize) -> Vec<usize> {
        let others = (0..self.letters.len()).filter(|&l| l != letter);
        let all: Vec<usize> = others.filter(|&l| self.is_below(l, letter)).collect();
        let mut steps = all.clone();
        steps.retain(|&l| {
            !all.iter()
                .any(|&other| other != l && self.is_below(l, other))
        });
        steps
    }

    /// The placements that split one group of threads into two.
    pub fn steps_apart(&self, places: &[Place]) -> Vec<Vec<Place>> {
        let mut finer = self.placements(places.len());
        finer.retain(|other| {
            self.groups(other) == self.groups(places) + 1 && self.splits(places, other)
        });
        finer
    }

    /// The number of groups at all levels.
    fn groups(&self, places: &[Place]) -> usize {
        let mut count = 0;
        for level in &self.levels {
            let mut groups: Vec<_> = places.iter().map(|p| p.group(*level)).collect();
            groups.sort_unstable();
            groups.dedup();
            count += groups.len();
        }
        count
    }

    /// Whether threads that share a group in `finer` share it in `places`, too.
    fn splits(&self, places: &[Place], finer: &[Place]) -> bool {
        let mut pairs = (0..places.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.all(|(i, j)| {
            self.levels
                .iter()
                .all(|&level| !finer[i].same(&finer[j], level) || places[i].same(&places[j], level))
        })
    }

    /// All threads in one group.
    pub fn together(&self, threads: usize) -> Vec<Place> {
        vec![self.place(0); threads]
    }

    /// Each thread alone in a group at all levels.
    pub fn apart(&self, threads: usize) -> Vec<Place> {
        (0..threads as u32).map(|t| self.place(t)).collect()
    }

    /// A place in the group of that number at every level.
    fn place(&self, group: u32) -> Place {
        let mut place = Place::device(0, 0);
        for &level in &self.levels {
            place.set_group(level, Some(group));
        }
        place
    }

    /// All placements of threads in groups, those with separate groups first.
    pub fn placements(&self, threads: usize) -> Vec<Vec<Place>> {
        let mut all = vec![self.together(threads)];
        for (above, &level) in self.levels.iter().enumerate() {
            let above = &self.levels[..above];
            let mut finer = Vec::new();
            for places in &all {
                for groups in groupings(threads) {
                    let mut places = places.clone();
                    for (place, group) in places.iter_mut().zip(groups) {
                        place.set_group(level, Some(group));
                    }
                    // A group number denotes one group within each wider group, so one numbering is
                    // enough.
                    if is_within(&places, level, above) {
                        finer.push(places);
                    }
                }
            }
            all = finer;
        }
        // Placements on one device come before those on several.
        all.sort_by_key(|places| places.iter().map(|p| p.gpu).max());
        all
    }

    /// The placements for a shape in which all threads of a group reach a barrier if one does.
    pub fn placed(&self, shape: &ProgramShape) -> Vec<Vec<Place>> {
        let mut all = self.placements(shape.threads.len());
        all.retain(|places| meets(shape, places));
        all
    }

    /// The words for the orders of the letters of a kind, as a list.
    fn orders(&self, kind: InstrKind) -> String {
        let row = self.dialect.row();
        let mut orders: Vec<&str> = Vec::new();
        for l in self.of(kind).map(|i| &self.letters[i]) {
            let word = l.order.map_or("weak", |o| bare(row.order_word(o)));
            if l.name == AccessName::Own && !orders.contains(&word) {
                orders.push(word);
            }
        }
        orders.join(", ")
    }

    /// Whether a letter uses this name.
    fn has_name(&self, name: AccessName) -> bool {
        self.letters.iter().any(|l| l.name == name)
    }

    /// Whether a letter of a kind is tied.
    fn has_tied(&self, kind: InstrKind) -> bool {
        self.letters.iter().any(|l| l.tied && l.kind == kind)
    }

    /// A description for answers.
    pub fn describe(&self) -> String {
        let row = self.dialect.row();
        let updates = if self.compares {
            "compare-exchanges that succeed"
        } else {
            "exchanges"
        };
        let kinds = [
            ("stores", InstrKind::Write),
            ("loads", InstrKind::Read),
            (updates, InstrKind::Update),
            ("fences", InstrKind::Fence),
        ];
        let mut text: Vec<String> = kinds
            .iter()
            .map(|(noun, kind)| format!("{noun} ({})", self.orders(*kind)))
            .collect();
        if self.has(InstrKind::Reduce) {
            text.push(format!(
                "reductions that add ({})",
                self.orders(InstrKind::Reduce)
            ));
        }
        for OtherName { noun, .. } in OTHERS.iter().filter(|other| self.has_name(other.name)) {
            text.push(format!(
                "stores and loads by {noun}, and the proxy fence of {noun}"
            ));
        }
        if self.has(InstrKind::PlainRead) {
            text.push("plain stores and loads of further locations".to_owned());
        }
        if self.has_tied(InstrKind::Write) {
            text.push("stores of values that depend on all earlier reads of the thread".to_owned());
        }
        if self.has_tied(InstrKind::Read) {
            text.push(
                "branches that end a thread unless an atomic read has the value of the outcome"
                    .to_owned(),
            );
        }
        if self.has(InstrKind::Barrier) {
            let before = if self.has_tied(InstrKind::Read) {
                ", no branch before it"
            } else {
                ""
            };
            text.push(format!(
                "a barrier in all threads of a {}{before}",
                row.noun(Scope::Cta)
            ));
        }
        if OTHERS.iter().any(|other| self.has_name(other.name)) {
            text.push("no fence next to another".to_owned());
        }
        let mut scopes: Vec<String> = Vec::new();
        for scope in self.letters.iter().filter_map(|l| l.scope) {
            let word = row.bare_scope(scope);
            if !scopes.contains(&word) {
                scopes.push(word);
            }
        }
        if !scopes.is_empty() {
            text.push(format!("scopes {}", scopes.join(", ")));
        }
        for level in &self.levels {
            text.push(format!("threads in any {}s", row.noun(*level)));
        }
        text.join("; ")
    }

    /// An instruction as one line of text: with the declaration of its register, if it needs one,
    /// and its expected value, if it is a compare-exchange.
    fn write(
        &self,
        letter: &Letter,
        location: &str,
        declared: &str,
        register: &str,
        value: &str,
        read: usize,
    ) -> String {
        let read = Some(read).filter(|_| self.compares && letter.kind == InstrKind::Update);
        let row = self.dialect.row();
        let order = letter.order.map_or("", |o| row.order_word(o));
        let scope = letter.scope.map_or(String::new(), |s| row.scope_word(s));
        let Some(writing) = row.writing else {
            let suffix = if letter.order.is_none() {
                ".weak".to_owned()
            } else {
                format!("{order}{scope}")
            };
            let other = OTHERS.iter().find(|other| other.name == letter.name);
            let (before, [store, load]) =
                other.map_or(("", ["st", "ld"]), |other| (other.before, other.accesses));
            return match letter.kind {
                InstrKind::Write | InstrKind::PlainWrite => {
                    format!("{store}{suffix} {before}{location}, {value}")
                }
                InstrKind::Read | InstrKind::PlainRead => {
                    format!("{load}{suffix} {register}, {before}{location}")
                }
                InstrKind::Reduce => format!("red{suffix}.add {location}, {value}"),
                InstrKind::Update => match read {
                    None => format!("atom{suffix}.exch {register}, {location}, {value}"),
                    Some(read) => {
                        format!("atom{suffix}.cas {register}, {location}, {read}, {value}")
                    }
                },
                InstrKind::Fence => other.map_or_else(
                    || (row.fence)(order, &scope),
                    |other| other.fence.to_owned(),
                ),
                InstrKind::Barrier => barrier(self.dialect).unwrap_or_default().to_owned(),
            };
        };
        let place = if writing.objects {
            location.to_owned()
        } else {
            format!("*{location}")
        };
        let (function, value) = match letter.kind {
            InstrKind::Write => ("store", Some(value)),
            InstrKind::Read => ("load", None),
            InstrKind::Update if read.is_some() => ("compare_exchange_strong", Some(value)),
            InstrKind::Update => ("exchange", Some(value)),
            InstrKind::Reduce => ("fetch_add", Some(value)),
            InstrKind::Fence => return format!("{};", (row.fence)(order, &scope)),
            InstrKind::Barrier => return format!("{};", barrier(self.dialect).unwrap_or_default()),
            InstrKind::PlainWrite => return format!("{place} = {value};"),
            InstrKind::PlainRead => return format!("{declared}{register} = {place};"),
        };
        let failure = letter
            .order
            .map_or(order, |o| row.order_word(on_failure(o)));
        let expected = read.map(|_| (register, failure));
        let access = AtomicAccess {
            function,
            ty: "int",
            place: &place,
            expected,
            value,
            order,
            scope: &scope,
        };
        let call = (writing.access)(&access);
        if let Some(read) = read {
            // On failure, the register holds the value read, which differs from the expected one.
            return format!("{declared}{register} = {read}; {call};");
        }
        if letter.kind.tells() {
            format!("{declared}{register} = {call};")
        } else {
            format!("{call};")
        }
    }

    /// The lines of a thread, given the number of its first instruction.
    fn code(
        &self,
        shape: &ProgramShape,
        thread: usize,
        first: usize,
        letters: &[usize],
        outcome: Option<&ShapeOutcome>,
    ) -> String {
        let (slots, values) = (&shape.threads[thread], values(shape));
        let written = outcome.and_then(|outcome| outcome.written(shape));
        let written = written.as_ref().unwrap_or(&values);
        let is_assembly = self.dialect.row().writing.is_none();
        let (mut text, mut open) = (String::new(), 0);
        // For each register, its value in the outcome.
        let mut held: Vec<usize> = Vec::new();
        for (i, slot) in slots.iter().enumerate() {
            let at = first + i;
            let location = slot.location.map_or("", |l| LOCATIONS[usize::from(l)]);
            let register = format!("r{}", held.len());
            let letter = &self.letters[letters[at]];
            let read = outcome
                .and_then(|o| o.sources[at])
                .map_or(0, |w| written[usize::from(w)]);
            let tied = letter.tied && outcome.is_some();
            let mut value = values[at].to_string();
            if tied && slot.kind.writes() && !slot.kind.reads() && !held.is_empty() {
                let rest = values[at] as i64 - held.iter().sum::<usize>() as i64;
                let mut terms: Vec<String> = (0..held.len()).map(|r| format!("r{r}")).collect();
                if rest != 0 {
                    terms.push(rest.to_string());
                }
                value = terms.join(" + ");
                if is_assembly && terms.len() > 1 {
                    value = format!("v{i}");
                    let _ = writeln!(text, "add {value}, {}, {}", terms[0], terms[1]);
                    terms[2..].iter().for_each(|term| {
                        let _ = writeln!(text, "add {value}, {value}, {term}");
                    });
                }
            }
            let declared = if open == 0 { "int " } else { "" };
            let _ = writeln!(
                text,
                "{}",
                self.write(letter, location, declared, &register, &value, read)
            );
            if slot.kind.tells() {
                held.push(read);
            }
            if tied && slot.kind.reads() {
                if is_assembly {
                    let _ = writeln!(text, "bne {register}, {read}, END");
                } else {
                    // Conditions use registers, so these are declared outside the block.
                    let later = slots[i + 1..]
                        .iter()
                        .filter(|slot| slot.kind.tells())
                        .count();
                    let later = if open == 0 {
                        held.len()..held.len() + later
                    } else {
                        0..0
                    };
                    later.for_each(|r| {
                        let _ = writeln!(text, "int r{r} = 0;");
                    });
                    let _ = writeln!(text, "if ({register} == {read}) {{");
                }
                open += 1;
            }
        }
        match is_assembly {
            true if open > 0 => text += "END:\n",
            true => {}
            false => text += &"}\n".repeat(open),
        }
        text
    }

    /// A program as a test; `head` is the text before its memory. The outcome supplies the values
    /// that compare-exchanges expect.
    pub fn test(
        &self,
        head: &str,
        shape: &ProgramShape,
        places: &[Place],
        letters: &[usize],
        outcome: Option<&ShapeOutcome>,
    ) -> String {
        let row = self.dialect.row();
        let mut text = head.to_owned();
        text.push_str("\n[memory]\n");
        let wide = row.regions && self.letters.iter().any(|l| l.scope == Some(Scope::Sys));
        for (l, name) in LOCATIONS[..shape.locations()].iter().enumerate() {
            let ty = if shape.is_plain(l) {
                "int"
            } else {
                "atomic_int"
            };
            let shared = if wide { ", svm = \"fine-atomic\"" } else { "" };
            let held = match row.writing {
                Some(writing) if !writing.objects => format!("{{ type = \"{ty}\"{shared} }}"),
                _ => "0".to_owned(),
            };
            let _ = writeln!(text, "{name} = {held}");
        }
        for OtherName {
            name: other,
            before,
            proxy,
            ..
        } in OTHERS
        {
            if letters.iter().any(|&l| self.letters[l].name == other) {
                for name in &LOCATIONS[..shape.locations()] {
                    let _ = writeln!(text, "{before}{name} = {{ alias = \"{name}\"{proxy} }}");
                }
            }
        }
        let several = places.iter().any(|p| p.gpu != places[0].gpu);
        let is_said = |scope| match scope {
            Scope::Cta => true,
            Scope::Gpu => several,
            _ => self.levels.contains(&scope),
        };
        let mut next = 0;
        for (thread, (slots, place)) in shape.threads.iter().zip(places).enumerate() {
            text.push_str("\n[[thread]]\n");
            for level in row.levels.iter().filter(|l| is_said(l.scope)) {
                let _ = writeln!(
                    text,
                    "{} = {}",
                    level.key,
                    place.group(level.scope).unwrap_or(0)
                );
            }
            let code = self.code(shape, thread, next, letters, outcome);
            let _ = writeln!(text, "code = '''\n{code}'''");
            next += slots.len();
        }
        text
    }
}

/// The scopes of the letters; if the dialect has none, the letters are without one.
fn scopes(dialect: Dialect, further: &[Further]) -> Vec<Option<Scope>> {
    let mut scopes = vec![Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
    scopes.retain(|scope| match scope {
        Scope::Cluster => Further::Cluster.is_in(further, dialect),
        Scope::Sys => Further::System.is_in(further, dialect),
        _ => has_scope(dialect.row(), *scope),
    });
    match scopes.is_empty() {
        true => vec![None],
        false => scopes.into_iter().map(Some).collect(),
    }
}

/// Whether threads that share a group of a level share all wider groups, too.
fn is_within(places: &[Place], level: Scope, above: &[Scope]) -> bool {
    (0..places.len()).all(|i| {
        let p = &places[i];
        let first = places[..i]
            .iter()
            .find(|q| q.group(level) == p.group(level));
        first.is_none_or(|q| above.iter().all(|wider| q.group(*wider) == p.group(*wider)))
    })
}

/// The levels at which placements differ, widest first.
fn levels(dialect: Dialect, further: &[Further]) -> Vec<Scope> {
    let row = dialect.row();
    let levels = [
        (Scope::Gpu, Further::System.is_in(further, dialect)),
        (Scope::Cluster, Further::Cluster.is_in(further, dialect)),
        (
            Scope::Cta,
            row.levels.iter().any(|level| level.scope == Scope::Cta),
        ),
    ];
    levels
        .into_iter()
        .filter(|(_, has)| *has)
        .map(|(level, _)| level)
        .collect()
}

/// Whether all threads of a group reach a barrier if one of them does.
fn meets(shape: &ProgramShape, places: &[Place]) -> bool {
    fn comes(slots: &[ShapeSlot]) -> bool {
        slots.iter().any(|slot| slot.kind == InstrKind::Barrier)
    }
    let threads: Vec<_> = shape.threads.iter().zip(places).collect();
    threads.iter().all(|(a, p)| {
        let mut group = threads.iter().filter(|(_, q)| p.same(q, Scope::Cta));
        group.all(|(b, _)| comes(a) == comes(b))
    })
}

/// The order of a failing compare-exchange: its success order adds nothing to it.
fn on_failure(order: Order) -> Order {
    match order {
        Order::AcqRel => Order::Acquire,
        Order::Release => Order::Relaxed,
        order => order,
    }
}

/// The word for an order without the common prefix.
fn bare(word: &str) -> &str {
    word.trim_start_matches('.')
        .trim_start_matches("memory_order_")
}

/// The value that each instruction writes or adds. Writes to a location get 1, 2, ….
/// With additions, values are powers of two, so that a sum shows its terms.
pub fn values(shape: &ProgramShape) -> Vec<usize> {
    let adds = shape.has(InstrKind::Reduce);
    let mut written = [0; LOCATIONS.len()];
    let mut values = Vec::new();
    for (_, slot) in shape.slots() {
        let Some(l) = slot.location.filter(|_| slot.kind.writes()) else {
            values.push(0);
            continue;
        };
        written[usize::from(l)] += 1;
        let number = written[usize::from(l)];
        values.push(if adds {
            1 << ((number - 1) % 8)
        } else {
            number
        });
    }
    values
}

/// The partitions of `count` threads, as group numbers in order of first use; those with most
/// groups first.
fn groupings(count: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|g| {
                let fresh = g.iter().max().map_or(0, |m| m + 1);
                (0..=fresh).map(move |next| [g.as_slice(), &[next]].concat())
            })
            .collect();
    }
    all.sort_by_key(|g| std::cmp::Reverse(g.iter().max().copied()));
    all
}
