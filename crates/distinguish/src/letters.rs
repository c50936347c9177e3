//! Letters: the orders and scopes that an instruction may have in a dialect, how it is written, and
//! how a program of such instructions is written as a test.
//!
//! # Invariants
//! - The words are those of the dialect's row; nothing here knows a language by name.
//! - What is written is read back by the front end: a letter means what its text means.

use std::fmt::Write as _;

use program::words::Order;
use program::writing::Access;
use program::{Dialect, Place, Scope};

use crate::outcome::Outcome;
use crate::shape::{Kind, LOCATIONS, Shape, Slot};

/// What programs are made of only if it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Further {
    /// System scope, and threads on several devices.
    System,
    /// Cluster scope, and threads in several clusters.
    Cluster,
    /// Compare-exchanges in place of exchanges.
    Compare,
    /// Additions that return nothing.
    Reduce,
    /// Accesses by another virtual address, and the proxy fence.
    Alias,
    /// Accesses through the surface proxy, and its fence.
    Surface,
    /// Locations whose accesses are not atomic.
    Plain,
    /// Stores of what depends on what the thread has read.
    Depend,
    /// Reads after which a thread goes on only if they read what the outcome says.
    Branch,
    /// Barriers of the threads of a group.
    Barrier,
}

impl Further {
    /// In words, if a dialect does not have it.
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
            Further::Plain => (!row.weak, "accesses that are not atomic besides weak ones"),
            Further::Depend | Further::Branch => (true, "dependencies"),
            Further::Barrier => (barrier(dialect).is_some(), "barriers"),
        };
        (!has).then_some(noun)
    }
}

/// How a barrier of a group is written, for all memory that there is.
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

/// By which name memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Its own.
    Own,
    /// Another virtual address.
    Alias,
    /// A surface.
    Surface,
}

/// A name other than its own.
struct Other {
    name: Name,
    /// What stands before the location's own.
    before: &'static str,
    /// What the test says of it besides.
    proxy: &'static str,
    /// The instructions that store and load.
    accesses: [&'static str; 2],
    fence: &'static str,
    /// What they are called.
    noun: &'static str,
}

const OTHERS: [Other; 2] = [
    Other {
        name: Name::Alias,
        before: "a",
        proxy: "",
        accesses: ["st", "ld"],
        fence: "fence.proxy.alias",
        noun: "aliases",
    },
    Other {
        name: Name::Surface,
        before: "s",
        proxy: ", proxy = \"surface\"",
        accesses: ["sust", "suld"],
        fence: "fence.proxy.surface",
        noun: "surfaces",
    },
];

/// An instruction, but for its location and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter {
    /// What it does.
    pub kind: Kind,
    /// By which name; a fence other than that of memory's own name is a proxy fence.
    pub name: Name,
    /// Its order; `None`: it is weak.
    pub order: Option<Order>,
    /// Its scope; `None`: it has none.
    pub scope: Option<Scope>,
    /// Of a write: what it writes depends on all that its thread has read. Of a read: the thread
    /// goes on only if it reads what the outcome says.
    pub tied: bool,
}

impl Letter {
    /// Whether it is the other one, or asks for less.
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

/// What programs are made of.
#[derive(Clone, Debug)]
pub struct Alphabet {
    /// In which language.
    pub dialect: Dialect,
    /// The letters, those of one kind together, none after one that asks for more.
    pub letters: Vec<Letter>,
    /// Whether threads go on only if some reads read what an outcome says.
    pub branches: bool,
    /// Whether read-modify-writes are written as compare-exchanges, which expect what an outcome
    /// says that they read.
    pub compares: bool,
    /// The levels of the scope tree at which threads are in one group or in different ones, from
    /// the widest.
    pub levels: Vec<Scope>,
}

const ACCESSES: [(Kind, &[Order]); 4] = [
    (
        Kind::Write,
        &[Order::Relaxed, Order::Release, Order::SeqCst],
    ),
    (Kind::Read, &[Order::Relaxed, Order::Acquire, Order::SeqCst]),
    (
        Kind::Update,
        &[
            Order::Relaxed,
            Order::Acquire,
            Order::Release,
            Order::AcqRel,
            Order::SeqCst,
        ],
    ),
    (Kind::Reduce, &[Order::Relaxed, Order::Release]),
];

impl Alphabet {
    /// That of a dialect: group and device scope, and what is asked for.
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
        let mut names = vec![Name::Own];
        names.extend(asked(Further::Alias).then_some(Name::Alias));
        names.extend(asked(Further::Surface).then_some(Name::Surface));
        if scopes.is_empty() {
            scopes.push(None);
        }
        let mut letters = Vec::new();
        let bare = |kind, name| Letter {
            kind,
            name,
            order: None,
            scope: None,
            tied: false,
        };
        let orders_and_scopes = |kind, name, order, letters: &mut Vec<Letter>| {
            let with = |&scope| Letter {
                order: Some(order),
                scope,
                ..bare(kind, name)
            };
            letters.extend(scopes.iter().map(with));
        };
        for (kind, orders) in ACCESSES {
            let is_plain = matches!(kind, Kind::Read | Kind::Write);
            if kind == Kind::Reduce && !asked(Further::Reduce) {
                continue;
            }
            for &name in names.iter().filter(|name| is_plain || **name == Name::Own) {
                if row.weak && is_plain {
                    letters.push(bare(kind, name));
                }
                for &order in orders
                    .iter()
                    .filter(|o| row.sc_accesses || **o != Order::SeqCst)
                {
                    orders_and_scopes(kind, name, order, &mut letters);
                }
            }
        }
        // Where accesses are weak unless they say otherwise, a fence that only acquires or releases
        // is a late addition.
        let halves: &[Order] = if row.weak {
            &[]
        } else {
            &[Order::Acquire, Order::Release]
        };
        for &order in halves.iter().chain(&[Order::AcqRel, Order::SeqCst]) {
            orders_and_scopes(Kind::Fence, Name::Own, order, &mut letters);
        }
        letters.extend(names[1..].iter().map(|&name| bare(Kind::Fence, name)));
        let plain = asked(Further::Plain).then_some([Kind::PlainWrite, Kind::PlainRead]);
        let barrier = asked(Further::Barrier).then_some(Kind::Barrier);
        letters.extend(
            plain
                .into_iter()
                .flatten()
                .chain(barrier)
                .map(|kind| bare(kind, Name::Own)),
        );
        let tied = |letter: &Letter| match letter.kind {
            Kind::Write | Kind::PlainWrite => asked(Further::Depend),
            Kind::Read | Kind::Update => asked(Further::Branch),
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
        let levels = [
            (Scope::Gpu, asked(Further::System)),
            (Scope::Cluster, asked(Further::Cluster)),
            (
                Scope::Cta,
                row.levels.iter().any(|level| level.scope == Scope::Cta),
            ),
        ];
        let levels = levels
            .into_iter()
            .filter(|(_, has)| *has)
            .map(|(level, _)| level)
            .collect();
        let (compares, branches) = (further.contains(&Further::Compare), asked(Further::Branch));
        Alphabet {
            dialect,
            letters,
            branches,
            compares,
            levels,
        }
    }

    /// What instructions there are.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.letters.iter().map(|letter| letter.kind).collect();
        kinds.dedup();
        kinds
    }

    /// By instruction of a shape: the letters that it may have. Nothing is tied to nothing, and
    /// every thread comes to its barrier.
    pub fn fitting(&self, shape: &Shape) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for slots in &shape.threads {
            for (i, slot) in slots.iter().enumerate() {
                let (before, after) = (&slots[..i], &slots[i + 1..]);
                let ties = match slot.kind.reads() {
                    true => {
                        !after.is_empty() && !after.iter().any(|later| later.kind == Kind::Barrier)
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

    /// Whether what a program does besides what its outcome says depends on the outcome.
    pub fn asks(&self) -> bool {
        self.branches || self.compares
    }

    /// What is left of a compare-exchange that finds something else than it expects: a load, with
    /// the order that is written for it, of the same scope.
    pub fn failing(&self, letter: usize) -> Option<usize> {
        let Letter {
            kind, order, scope, ..
        } = self.letters[letter];
        let fits = |l: &usize| {
            let load = &self.letters[*l];
            (load.name, load.order, load.scope, load.tied)
                == (Name::Own, order.map(on_failure), scope, false)
        };
        (self.compares && kind == Kind::Update).then(|| self.of(Kind::Read).find(fits))?
    }

    /// Whether it has letters of a kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.of(kind).next().is_some()
    }

    /// The letters of a kind, by number.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = usize> + '_ {
        (0..self.letters.len()).filter(move |&i| self.letters[i].kind == kind)
    }

    /// Whether the first letter is the second one, or asks for less.
    pub fn is_below(&self, a: usize, b: usize) -> bool {
        self.letters[a].is_below(&self.letters[b])
    }

    /// The letters that ask for one step less than that one.
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

    /// The ways to put the threads of one group in two.
    pub fn steps_apart(&self, places: &[Place]) -> Vec<Vec<Place>> {
        let groups = |places: &[Place]| {
            let of = |level: &Scope| {
                let mut groups: Vec<_> = places.iter().map(|p| p.group(*level)).collect();
                groups.sort_unstable();
                groups.dedup();
                groups.len()
            };
            self.levels.iter().map(of).sum::<usize>()
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

    /// Threads in one group.
    pub fn together(&self, threads: usize) -> Vec<Place> {
        vec![self.place(|_| 0); threads]
    }

    /// Every thread in a group of its own, at all levels.
    pub fn apart(&self, threads: usize) -> Vec<Place> {
        (0..threads as u32)
            .map(|t| self.place(|level| if self.levels.contains(&level) { t } else { 0 }))
            .collect()
    }

    fn place(&self, group: impl Fn(Scope) -> u32) -> Place {
        let cluster = self
            .levels
            .contains(&Scope::Cluster)
            .then(|| group(Scope::Cluster));
        Place {
            cluster,
            ..Place::device(group(Scope::Gpu), group(Scope::Cta))
        }
    }

    /// Where threads may run: every way to put them in groups, those first that keep them apart.
    pub fn placements(&self, threads: usize) -> Vec<Vec<Place>> {
        let mut all = vec![self.together(threads)];
        for (above, &level) in self.levels.iter().enumerate() {
            let above = &self.levels[..above];
            let finer = |places: Vec<Place>| {
                groupings(threads).into_iter().filter_map(move |groups| {
                    let mut places = places.clone();
                    for (place, group) in places.iter_mut().zip(groups) {
                        match level {
                            Scope::Gpu => place.gpu = group,
                            Scope::Cluster => place.cluster = Some(group),
                            _ => place.cta = group,
                        }
                    }
                    // A number of a group means one group in each group above it: one way to write
                    // it is enough.
                    let fits = |(i, p): (usize, &Place)| {
                        let same = |q: &&Place| q.group(level) == p.group(level);
                        let first = places[..i].iter().find(same);
                        first.is_none_or(|q| {
                            above.iter().all(|wider| q.group(*wider) == p.group(*wider))
                        })
                    };
                    places.iter().enumerate().all(fits).then_some(places)
                })
            };
            all = all.into_iter().flat_map(finer).collect();
        }
        // On one device before several.
        all.sort_by_key(|places| places.iter().map(|p| p.gpu).max());
        all
    }

    /// Where the threads of a shape may run: if one of a group comes to a barrier, all do.
    pub fn placed(&self, shape: &Shape) -> Vec<Vec<Place>> {
        let mut all = self.placements(shape.threads.len());
        all.retain(|places| meets(shape, places));
        all
    }

    /// In words, for answers.
    pub fn describe(&self) -> String {
        let row = self.dialect.row();
        let words = |kind| {
            let mut orders: Vec<&str> = Vec::new();
            for l in self
                .of(kind)
                .map(|i| &self.letters[i])
                .filter(|l| l.name == Name::Own)
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
            ("stores", Kind::Write),
            ("loads", Kind::Read),
            (updates, Kind::Update),
            ("fences", Kind::Fence),
        ];
        let mut text: Vec<String> = kinds
            .iter()
            .map(|(noun, kind)| format!("{noun} ({})", words(*kind)))
            .collect();
        if self.has(Kind::Reduce) {
            text.push(format!("reductions that add ({})", words(Kind::Reduce)));
        }
        let named = |name| self.letters.iter().any(|l| l.name == name);
        for Other { noun, .. } in OTHERS.iter().filter(|other| named(other.name)) {
            text.push(format!(
                "stores and loads by {noun}, and the proxy fence of {noun}"
            ));
        }
        if self.has(Kind::PlainRead) {
            text.push("plain stores and loads of locations of their own".to_owned());
        }
        let tied = |kind| self.letters.iter().any(|l| l.tied && l.kind == kind);
        if tied(Kind::Write) {
            text.push("stores of what depends on all that the thread has read".to_owned());
        }
        if tied(Kind::Read) {
            text.push(
                "branches that end a thread unless an atomic read is as the outcome says"
                    .to_owned(),
            );
        }
        if self.has(Kind::Barrier) {
            let before = if tied(Kind::Read) {
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

    /// An instruction as it is written, in one line: with the word that declares its register, if
    /// it needs one, and what it reads, if it is one that expects something.
    fn write(
        &self,
        letter: &Letter,
        location: &str,
        (declared, register): (&str, &str),
        value: &str,
        read: usize,
    ) -> String {
        let read = Some(read).filter(|_| self.compares && letter.kind == Kind::Update);
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
                Kind::Write | Kind::PlainWrite => {
                    format!("{store}{suffix} {before}{location}, {value}")
                }
                Kind::Read | Kind::PlainRead => {
                    format!("{load}{suffix} {register}, {before}{location}")
                }
                Kind::Reduce => format!("red{suffix}.add {location}, {value}"),
                Kind::Update => match read {
                    None => format!("atom{suffix}.exch {register}, {location}, {value}"),
                    Some(read) => {
                        format!("atom{suffix}.cas {register}, {location}, {read}, {value}")
                    }
                },
                Kind::Fence => other.map_or_else(
                    || (row.fence)(order, &scope),
                    |other| other.fence.to_owned(),
                ),
                Kind::Barrier => barrier(self.dialect).unwrap_or_default().to_owned(),
            };
        };
        let place = if writing.objects {
            location.to_owned()
        } else {
            format!("*{location}")
        };
        let (function, value) = match letter.kind {
            Kind::Write => ("store", Some(value)),
            Kind::Read => ("load", None),
            Kind::Update if read.is_some() => ("compare_exchange_strong", Some(value)),
            Kind::Update => ("exchange", Some(value)),
            Kind::Reduce => ("fetch_add", Some(value)),
            Kind::Fence => return format!("{};", (row.fence)(order, &scope)),
            Kind::Barrier => return format!("{};", barrier(self.dialect).unwrap_or_default()),
            Kind::PlainWrite => return format!("{place} = {value};"),
            Kind::PlainRead => return format!("{declared}{register} = {place};"),
        };
        let failure = letter
            .order
            .map_or(order, |o| row.order_word(on_failure(o)));
        let expected = read.map(|_| (register, failure));
        let access = Access {
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
            // Where it fails, the register is what was read, and that is something else.
            return format!("{declared}{register} = {read}; {call};");
        }
        if letter.kind.tells() {
            format!("{declared}{register} = {call};")
        } else {
            format!("{call};")
        }
    }

    /// The lines of a thread whose first instruction has that number.
    fn code(
        &self,
        shape: &Shape,
        thread: usize,
        first: usize,
        letters: &[usize],
        outcome: Option<&Outcome>,
    ) -> String {
        let (slots, values) = (&shape.threads[thread], values(shape));
        let written = outcome.and_then(|outcome| outcome.written(shape));
        let written = written.as_ref().unwrap_or(&values);
        let is_assembly = self.dialect.row().writing.is_none();
        let (mut text, mut open) = (String::new(), 0);
        // By register: what the outcome says that it holds.
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
                self.write(letter, location, (declared, &register), &value, read)
            );
            if slot.kind.tells() {
                held.push(read);
            }
            if tied && slot.kind.reads() {
                if is_assembly {
                    let _ = writeln!(text, "bne {register}, {read}, END");
                } else {
                    // Conditions speak of registers that outlive the block.
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

    /// A program as a test: the head is everything before its memory. The outcome says what
    /// compare-exchanges expect.
    pub fn test(
        &self,
        head: &str,
        shape: &Shape,
        places: &[Place],
        letters: &[usize],
        outcome: Option<&Outcome>,
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
        for Other {
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

/// Whether all threads of a group come to a barrier if one of them does.
fn meets(shape: &Shape, places: &[Place]) -> bool {
    let comes = |slots: &Vec<Slot>| slots.iter().any(|slot| slot.kind == Kind::Barrier);
    let threads = || shape.threads.iter().zip(places);
    threads().all(|(a, p)| threads().all(|(b, q)| !p.same(q, Scope::Cta) || comes(a) == comes(b)))
}

/// The order of a compare-exchange that fails: it adds none to what succeeds.
fn on_failure(order: Order) -> Order {
    match order {
        Order::AcqRel => Order::Acquire,
        Order::Release => Order::Relaxed,
        order => order,
    }
}

/// An order without what all words for orders begin with.
fn bare(word: &str) -> &str {
    word.trim_start_matches('.')
        .trim_start_matches("memory_order_")
}

/// What each instruction writes or adds: every write to a location another value, from 1; among
/// additions, powers of two, so that a sum tells what it is made of.
pub fn values(shape: &Shape) -> Vec<usize> {
    let adds = shape.has(Kind::Reduce);
    let mut written = [0; LOCATIONS.len()];
    let value = |(_, slot): (usize, Slot)| match slot.location {
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

/// The ways to put so many in groups, as group numbers in order of first use; those with most
/// groups first.
fn groupings(count: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..count {
        let longer = |g: Vec<u32>| {
            let fresh = g.iter().max().map_or(0, |m| m + 1);
            (0..=fresh).map(move |next| [g.as_slice(), &[next]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all.sort_by_key(|g| std::cmp::Reverse(g.iter().max().copied()));
    all
}
