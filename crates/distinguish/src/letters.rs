//! Letters: the orders and scopes that an instruction may have in a dialect. This module writes
//! letters as text, and programs of letters as tests.
//!
//! # Invariants
//! - Words come from the dialect's row; this module knows no language by name.
//! - The front end parses the written text: a letter means what its text means.

use std::fmt::Write as _;

use program::words::Order;
use program::writing::AtomicAccess;
use program::{Dialect, Place, Scope};

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
        let scope = |scope| row.scopes.iter().any(|known| known.1 == scope);
        let (has, noun) = match self {
            Further::System => (scope(Scope::Sys), "system scope"),
            Further::Cluster => (scope(Scope::Cluster), "scope of clusters"),
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
        let asked = |what| further.contains(&what) && what.lacks(dialect).is_none();
        let is_asked = |s: &Scope| match s {
            Scope::Cluster => asked(Further::Cluster),
            Scope::Sys => asked(Further::System),
            _ => row.scopes.iter().any(|known| known.1 == *s),
        };
        let known = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
        let mut scopes: Vec<Option<Scope>> = known.into_iter().filter(is_asked).map(Some).collect();
        let mut names = vec![AccessName::Own];
        names.extend(asked(Further::Alias).then_some(AccessName::Alias));
        names.extend(asked(Further::Surface).then_some(AccessName::Surface));
        if scopes.is_empty() {
            scopes.push(None);
        }
        let mut letters = Vec::new();
        let orders_and_scopes = |kind, name, order, letters: &mut Vec<Letter>| {
            letters.extend(scopes.iter().map(|&scope| Letter {
                order: Some(order),
                scope,
                ..Letter::bare(kind, name)
            }));
        };
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
                    orders_and_scopes(kind, name, order, &mut letters);
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
            orders_and_scopes(InstrKind::Fence, AccessName::Own, order, &mut letters);
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
        let tied = |letter: &Letter| match letter.kind {
            InstrKind::Write | InstrKind::PlainWrite => asked(Further::Depend),
            InstrKind::Read | InstrKind::Update => asked(Further::Branch),
            _ => false,
        };
        let tied: Vec<Letter> = letters
            .iter()
            .filter(|l| tied(l))
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
        let below = |a: usize, b: usize| a != b && self.is_below(a, b);
        let all: Vec<usize> = (0..self.letters.len())
            .filter(|&l| below(l, letter))
            .collect();
        all.iter()
            .copied()
            .filter(|&l| !all.iter().any(|&between| below(l, between)))
            .collect()
    }

    /// The placements that split one group of threads into two.
    pub fn steps_apart(&self, places: &[Place]) -> Vec<Vec<Place>> {
        let groups = |places: &[Place]| {
            self.levels
                .iter()
                .map(|level| {
                    let mut groups: Vec<_> = places.iter().map(|p| p.group(*level)).collect();
                    groups.sort_unstable();
                    groups.dedup();
                    groups.len()
                })
                .sum::<usize>()
        };
        let is_finer = |other: &Vec<Place>| {
            let pairs = || (0..places.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let kept = |scope| {
                pairs().all(|(i, j)| {
                    !other[i].same(&other[j], scope) || places[i].same(&places[j], scope)
                })
            };
            groups(other) == groups(places) + 1 && self.levels.iter().all(|level| kept(*level))
        };
        self.placements(places.len())
            .into_iter()
            .filter(is_finer)
            .collect()
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
            let finer = |places: Vec<Place>| {
                groupings(threads).into_iter().filter_map(move |groups| {
                    let mut places = places.clone();
                    for (place, group) in places.iter_mut().zip(groups) {
                        place.set_group(level, Some(group));
                    }
                    // A group number denotes one group within each wider group, so one numbering is
                    // enough.
                    let fits = |(i, p): (usize, &Place)| {
                        let first = places[..i]
                            .iter()
                            .find(|q| q.group(level) == p.group(level));
                        first.is_none_or(|q| {
                            above.iter().all(|wider| q.group(*wider) == p.group(*wider))
                        })
                    };
                    places.iter().enumerate().all(fits).then_some(places)
                })
            };
            all = all.into_iter().flat_map(finer).collect();
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

    /// A description for answers.
    pub fn describe(&self) -> String {
        let row = self.dialect.row();
        let words = |kind| {
            let mut orders: Vec<&str> = Vec::new();
            for l in self
                .of(kind)
                .map(|i| &self.letters[i])
                .filter(|l| l.name == AccessName::Own)
            {
                let word = l.order.map_or("weak", |o| bare(row.order_word(o)));
                if !orders.contains(&word) {
                    orders.push(word);
                }
            }
            orders.join(", ")
        };
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
            .map(|(noun, kind)| format!("{noun} ({})", words(*kind)))
            .collect();
        if self.has(InstrKind::Reduce) {
            text.push(format!(
                "reductions that add ({})",
                words(InstrKind::Reduce)
            ));
        }
        let named = |name| self.letters.iter().any(|l| l.name == name);
        for OtherName { noun, .. } in OTHERS.iter().filter(|other| named(other.name)) {
            text.push(format!(
                "stores and loads by {noun}, and the proxy fence of {noun}"
            ));
        }
        if self.has(InstrKind::PlainRead) {
            text.push("plain stores and loads of further locations".to_owned());
        }
        let tied = |kind| self.letters.iter().any(|l| l.tied && l.kind == kind);
        if tied(InstrKind::Write) {
            text.push("stores of values that depend on all earlier reads of the thread".to_owned());
        }
        if tied(InstrKind::Read) {
            text.push(
                "branches that end a thread unless an atomic read has the value of the outcome"
                    .to_owned(),
            );
        }
        if self.has(InstrKind::Barrier) {
            let before = if tied(InstrKind::Read) {
                ", no branch before it"
            } else {
                ""
            };
            text.push(format!(
                "a barrier in all threads of a {}{before}",
                row.noun(Scope::Cta)
            ));
        }
        if OTHERS.iter().any(|other| named(other.name)) {
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

/// The levels at which placements differ, widest first.
fn levels(dialect: Dialect, further: &[Further]) -> Vec<Scope> {
    let row = dialect.row();
    let asked = |what| further.contains(&what) && what.lacks(dialect).is_none();
    let levels = [
        (Scope::Gpu, asked(Further::System)),
        (Scope::Cluster, asked(Further::Cluster)),
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
    let threads = || shape.threads.iter().zip(places);
    threads().all(|(a, p)| threads().all(|(b, q)| !p.same(q, Scope::Cta) || comes(a) == comes(b)))
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
    let value = |(_, slot): (usize, ShapeSlot)| match slot.location {
        Some(l) if slot.kind.writes() => {
            written[usize::from(l)] += 1;
            let number = written[usize::from(l)];
            if adds {
                1 << ((number - 1) % 8)
            } else {
                number
            }
        }
        _ => 0,
    };
    shape.slots().map(value).collect()
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
