//! Letters: the orders and scopes that an instruction may have in a dialect, how it is written, and how a program of such
//! instructions is written as a test.
//!
//! # Invariants
//! - The words are those of the dialect's row; nothing here knows a language by name.
//! - What is written is read back by the front end: a letter means what its text means.

use std::fmt::Write as _;

use program::words::Order;
use program::writing::Access;
use program::{Dialect, Place, Scope};

use crate::outcome::Outcome;
use crate::shape::{Kind, LOCATIONS, Shape};

/// An instruction, but for its location and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter {
    /// What it does.
    pub kind: Kind,
    /// Its order; `None`: it is weak.
    pub order: Option<Order>,
    /// Its scope; `None`: it has none.
    pub scope: Option<Scope>,
}

impl Letter {
    /// Whether it is the other one, or asks for less.
    pub fn is_below(&self, other: &Letter) -> bool {
        let order = match (self.order, other.order) {
            (None, _) => return self.kind == other.kind,
            (Some(_), None) => false,
            (Some(a), Some(b)) => a.bits() & !b.bits() == 0,
        };
        self.kind == other.kind && order && self.scope <= other.scope
    }
}

/// What programs are made of.
#[derive(Clone, Debug)]
pub struct Alphabet {
    /// In which language.
    pub dialect: Dialect,
    /// The letters, those of one kind together, none after one that asks for more.
    pub letters: Vec<Letter>,
    /// Whether read-modify-writes are written as compare-exchanges, which expect what an outcome says that they read.
    pub compares: bool,
    /// The levels of the scope tree at which threads are in one group or in different ones, from the widest.
    pub levels: Vec<Scope>,
}

const ACCESSES: [(Kind, &[Order]); 3] = [
    (Kind::Write, &[Order::Relaxed, Order::Release, Order::SeqCst]),
    (Kind::Read, &[Order::Relaxed, Order::Acquire, Order::SeqCst]),
    (Kind::Update, &[Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst]),
];

impl Alphabet {
    /// That of a dialect: group and device scope, wider ones with `system`.
    pub fn new(dialect: Dialect, system: bool) -> Alphabet {
        let row = dialect.row();
        let known: &[Scope] =
            if system { &[Scope::Cta, Scope::Gpu, Scope::Sys] } else { &[Scope::Cta, Scope::Gpu] };
        let has = |s: &&Scope| row.scopes.iter().any(|known| known.1 == **s);
        let mut scopes: Vec<Option<Scope>> = known.iter().filter(has).map(|s| Some(*s)).collect();
        if scopes.is_empty() {
            scopes.push(None);
        }
        let mut letters = Vec::new();
        for (kind, orders) in ACCESSES {
            if row.weak && kind != Kind::Update {
                letters.push(Letter { kind, order: None, scope: None });
            }
            for &order in orders.iter().filter(|o| row.sc_accesses || **o != Order::SeqCst) {
                letters.extend(scopes.iter().map(|&scope| Letter { kind, order: Some(order), scope }));
            }
        }
        // Where accesses are weak unless they say otherwise, a fence that only acquires or releases is a late addition.
        let halves: &[Order] = if row.weak { &[] } else { &[Order::Acquire, Order::Release] };
        for &order in halves.iter().chain(&[Order::AcqRel, Order::SeqCst]) {
            let kind = Kind::Fence;
            letters.extend(scopes.iter().map(|&scope| Letter { kind, order: Some(order), scope }));
        }
        let widest = if system { 0 } else { 1 };
        let levels = [Scope::Gpu, Scope::Cta].into_iter().skip(widest);
        let levels = levels.filter(|s| row.levels.iter().any(|level| level.scope == *s)).collect();
        Alphabet { dialect, letters, compares: false, levels }
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
        let all: Vec<usize> = (0..self.letters.len()).filter(|&l| below(l, letter)).collect();
        all.iter().copied().filter(|&l| !all.iter().any(|&between| below(l, between))).collect()
    }

    /// The ways to put the threads of one group in two.
    pub fn steps_apart(&self, places: &[Place]) -> Vec<Vec<Place>> {
        let groups = |places: &[Place]| {
            let mut groups: Vec<(u32, u32)> = places.iter().map(|p| (p.gpu, p.cta)).collect();
            groups.sort_unstable();
            groups.dedup();
            let mut gpus: Vec<u32> = groups.iter().map(|g| g.0).collect();
            gpus.dedup();
            groups.len() + gpus.len()
        };
        let is_finer = |other: &Vec<Place>| {
            let pairs = || (0..places.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let kept = |scope| {
                pairs().all(|(i, j)| !other[i].same(&other[j], scope) || places[i].same(&places[j], scope))
            };
            groups(other) == groups(places) + 1 && kept(Scope::Cta) && kept(Scope::Gpu)
        };
        self.placements(places.len()).into_iter().filter(is_finer).collect()
    }

    /// Threads in one group.
    pub fn together(&self, threads: usize) -> Vec<Place> {
        vec![Place::device(0, 0); threads]
    }

    /// Every thread in a group of its own, at all levels.
    pub fn apart(&self, threads: usize) -> Vec<Place> {
        let place = |t| Place::device(if self.levels.contains(&Scope::Gpu) { t } else { 0 }, t);
        (0..threads as u32).map(place).collect()
    }

    /// Where threads may run: every way to put them in groups, those first that keep them apart.
    pub fn placements(&self, threads: usize) -> Vec<Vec<Place>> {
        let mut all = vec![vec![Place::device(0, 0); threads]];
        for &level in &self.levels {
            let finer = |places: Vec<Place>| {
                groupings(threads).into_iter().filter_map(move |groups| {
                    let mut places = places.clone();
                    for (place, group) in places.iter_mut().zip(groups) {
                        match level {
                            Scope::Gpu => place.gpu = group,
                            _ => place.cta = group,
                        }
                    }
                    // A number of a group means one group in each group above it: one way to write it is enough.
                    let fits = |(i, p): (usize, &Place)| {
                        let same = |q: &&Place| q.cta == p.cta;
                        level != Scope::Cta || places[..i].iter().find(same).is_none_or(|q| q.gpu == p.gpu)
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

    /// In words, for answers.
    pub fn describe(&self) -> String {
        let row = self.dialect.row();
        let words = |kind| {
            let mut orders: Vec<&str> = Vec::new();
            for l in self.of(kind).map(|i| &self.letters[i]) {
                let word = l.order.map_or("weak", |o| bare(row.order_word(o)));
                if !orders.contains(&word) {
                    orders.push(word);
                }
            }
            orders.join(", ")
        };
        let updates = if self.compares { "compare-exchanges that succeed" } else { "exchanges" };
        let kinds =
            [("stores", Kind::Write), ("loads", Kind::Read), (updates, Kind::Update), ("fences", Kind::Fence)];
        let mut text: Vec<String> =
            kinds.iter().map(|(noun, kind)| format!("{noun} ({})", words(*kind))).collect();
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

    /// An instruction as it is written; `read`: what it reads, of those that expect something.
    pub fn write(
        &self,
        letter: &Letter,
        location: &str,
        register: &str,
        value: usize,
        read: Option<usize>,
    ) -> String {
        let read = read.filter(|_| letter.kind == Kind::Update);
        let row = self.dialect.row();
        let order = letter.order.map_or("", |o| row.order_word(o));
        let scope = letter.scope.map_or(String::new(), |s| row.scope_word(s));
        let Some(writing) = row.writing else {
            let suffix = if letter.order.is_none() { ".weak".to_owned() } else { format!("{order}{scope}") };
            return match letter.kind {
                Kind::Write => format!("st{suffix} {location}, {value}"),
                Kind::Read => format!("ld{suffix} {register}, {location}"),
                Kind::Update => match read {
                    None => format!("atom{suffix}.exch {register}, {location}, {value}"),
                    Some(read) => format!("atom{suffix}.cas {register}, {location}, {read}, {value}"),
                },
                Kind::Fence => (row.fence)(order, &scope),
            };
        };
        let place = if writing.objects { location.to_owned() } else { format!("*{location}") };
        let value = value.to_string();
        let (function, value) = match letter.kind {
            Kind::Write => ("store", Some(value.as_str())),
            Kind::Read => ("load", None),
            Kind::Update if read.is_some() => ("compare_exchange_strong", Some(value.as_str())),
            Kind::Update => ("exchange", Some(value.as_str())),
            Kind::Fence => return format!("{};", (row.fence)(order, &scope)),
        };
        // What fails adds no order to what succeeds.
        let failure = match letter.order {
            Some(Order::AcqRel) => row.order_word(Order::Acquire),
            Some(Order::Release) => row.order_word(Order::Relaxed),
            _ => order,
        };
        let expected = read.map(|_| (register, failure));
        let access = Access { function, ty: "int", place: &place, expected, value, order, scope: &scope };
        let call = (writing.access)(&access);
        if let Some(read) = read {
            // Where it fails, the register is what was read, and that is something else.
            return format!("int {register} = {read};\n{call};");
        }
        if letter.kind.reads() { format!("int {register} = {call};") } else { format!("{call};") }
    }

    /// A program as a test: the head is everything before its memory. The outcome says what compare-exchanges expect.
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
        for name in &LOCATIONS[..shape.locations()] {
            let ty = match row.writing {
                Some(writing) if !writing.objects && wide => "{ type = \"atomic_int\", svm = \"fine-atomic\" }",
                Some(writing) if !writing.objects => "{ type = \"atomic_int\" }",
                _ => "0",
            };
            let _ = writeln!(text, "{name} = {ty}");
        }
        let several = places.iter().any(|p| p.gpu != places[0].gpu);
        let (mut next, values) = (0, values(shape));
        for (slots, place) in shape.threads.iter().zip(places) {
            text.push_str("\n[[thread]]\n");
            for level in row.levels.iter().filter(|l| l.scope == Scope::Cta || several && l.scope == Scope::Gpu) {
                let _ = writeln!(text, "{} = {}", level.key, place.group(level.scope).unwrap_or(0));
            }
            text.push_str("code = '''\n");
            let mut registers = 0;
            for slot in slots {
                let location = slot.location.map_or("", |l| LOCATIONS[usize::from(l)]);
                let register = format!("r{registers}");
                registers += usize::from(slot.kind.reads());
                let letter = &self.letters[letters[next]];
                let source = outcome.filter(|_| self.compares).map(|outcome| outcome.sources[next]);
                let read = source.map(|source| source.map_or(0, |w| values[usize::from(w)]));
                let _ = writeln!(text, "{}", self.write(letter, location, &register, values[next], read));
                next += 1;
            }
            text.push_str("'''\n");
        }
        text
    }
}

/// An order without what all words for orders begin with.
fn bare(word: &str) -> &str {
    word.trim_start_matches('.').trim_start_matches("memory_order_")
}

/// What each instruction writes: every write to a location another value, from 1.
pub fn values(shape: &Shape) -> Vec<usize> {
    let mut written = [0; LOCATIONS.len()];
    let value = |(_, slot): (usize, crate::shape::Slot)| match slot.location {
        Some(l) if slot.kind.writes() => {
            written[usize::from(l)] += 1;
            written[usize::from(l)]
        }
        _ => 0,
    };
    shape.slots().map(value).collect()
}

/// The ways to put so many in groups, as group numbers in order of first use; those with most groups first.
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
