//! A model, asked about small programs: which outcomes it allows, and whether it calls the program defined.
//!
//! What an instruction does is learned once per letter, from the skeleton of a program that has them all. Programs of these
//! letters are then put together without reading any: sets from the letters, relations from where the instructions stand.
//!
//! # Invariants
//! - What is put together is what [`Task`] makes of the same program, base by base; the tests hold the two together.
//! - A relation that is not known here is empty in such programs, or the model is refused.

use std::collections::BTreeMap;

use crate::flat::{Flat, MOST_EVENTS, Rows, close, is_acyclic, ones};
use crate::letters::{Alphabet, Name};
use crate::outcome::{Outcome, alike, orders};
use crate::shape::{Kind, Shape, Slot};
use cat::model::ir::{Effect, FreeId, Kind as Sort, Model, NodeOp, Shape as Form, Test};
use engine::skeleton::base::Base;
use engine::skeleton::signature::{may_raise, row};
use engine::task::Task;
use front::litmus;
use front::mapping::Mapping;
use program::litmus::LitmusTest;
use program::options::Setting;
use program::{Place, Scope};

/// A model, and how it comes to judge programs of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The model.
    pub model: &'a Model,
    /// Through which mapping.
    pub mapping: Option<&'static Mapping>,
    /// Options of the model.
    pub set: &'a [Setting],
}

/// Relations by where the events stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    ProgramOrder,
    OneThread,
    Apart,
    OneLocation,
    OneAddress,
    Halves,
    /// The same of an addition: what is written depends on what is read.
    Added,
    Inclusion,
    Group(Scope),
    OneGpu,
    Kernel,
    Initial,
    Empty,
}

/// The relations that are known by name; those that programs of letters cannot have are empty.
const RELATIONS: &[(&str, Relation)] = &[
    ("po", Relation::ProgramOrder),
    ("int", Relation::OneThread),
    ("ext", Relation::Apart),
    ("loc", Relation::OneLocation),
    ("vloc", Relation::OneAddress),
    ("same-object", Relation::OneLocation),
    ("rmw", Relation::Halves),
    ("data", Relation::Added),
    ("sr", Relation::Inclusion),
    ("swarp", Relation::Group(Scope::Warp)),
    ("ssg", Relation::Group(Scope::Warp)),
    ("scta", Relation::Group(Scope::Cta)),
    ("swg", Relation::Group(Scope::Cta)),
    ("scluster", Relation::Group(Scope::Cluster)),
    ("sqf", Relation::Group(Scope::QueueFamily)),
    ("sgpu", Relation::Group(Scope::Gpu)),
    ("sdv", Relation::Group(Scope::Gpu)),
    ("one-gpu", Relation::OneGpu),
    ("skernel", Relation::Kernel),
    ("asw", Relation::Initial),
];

/// An event of a letter, or of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    /// Which base sets it is in, by their number.
    sets: u128,
    scope: Option<Scope>,
    reads: bool,
    writes: bool,
    /// Of a program: its thread, none of an initial write; its instruction; its location.
    thread: Option<u8>,
    slot: u8,
    location: Option<u8>,
    /// By another virtual address than its own.
    aliased: bool,
    /// Of an addition: what it writes depends on what it reads.
    adds: bool,
}

/// A model and the program that it is asked about.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    model: &'a Model,
    flat: Flat<'a>,
    /// How each base is made, in the order of [`Flat::bases`]: the number of a set, or a relation.
    bases: Vec<Result<u8, Relation>>,
    /// By letter: its events.
    becomes: Vec<Vec<Event>>,
    /// The base sets of an initial write.
    initial: u128,
    /// Flags that mean that the program is undefined.
    flags: Vec<usize>,
    /// When it is known whether they are raised.
    flagged: usize,
    /// The outcomes of a shape that look alike, where several do.
    alike: (Option<Shape>, Vec<Vec<Outcome>>),
    /// The outcomes of a shape, but for which write is last.
    outcomes: (Option<Shape>, Vec<Outcome>),

    /// The program that was turned to.
    loaded: Option<(Shape, Vec<Place>, Vec<usize>)>,
    events: Vec<Event>,
    /// What relations were made for: those hold that do not depend on scopes.
    stand: (Vec<Stand>, Vec<Place>),
    /// What no choice can change is not rejected.
    possible: bool,
    /// By instruction: its event that reads, and that writes.
    reading: Vec<Option<usize>>,
    writing: Vec<Option<usize>>,
    /// Where writes may be read from.
    readable: Rows,
    /// The ways to choose each order, and what is chosen.
    orders: Vec<Ways>,
    chosen: Vec<Rows>,
    /// By order: the axioms that ask for pairs of it, if nothing is gained by pairs that nobody asks for ([`least`]).
    least: Vec<Vec<usize>>,
}

/// Where an event stands: its thread, its instruction, its location, whether it reads, writes, and does so by another address.
type Stand = (Option<u8>, u8, Option<u8>, bool, bool, [bool; 2]);

/// A free order, its bounds, and the ways to choose it.
#[derive(Clone, Debug)]
struct Ways {
    free: FreeId,
    within: Rows,
    containing: Rows,
    covering: Rows,
    all: Vec<Vec<u32>>,
}

impl<'a> Judge<'a> {
    /// Learns what letters mean to a model. With `flags`, it can say whether programs are defined.
    ///
    /// # Errors
    /// Why the model cannot judge such programs.
    pub fn new(judged: Judged<'a>, alphabet: &Alphabet, flags: bool) -> Result<Judge<'a>, String> {
        let model = judged.model;
        let test = sample(alphabet, judged.mapping)?;
        // What no program of these letters has cannot make it undefined.
        let undefined =
            |i: &usize| model.flags[*i].effect == Effect::Undefined && may_raise(model, *i, &test.program);
        let flags: Vec<usize> = (0..model.flags.len()).filter(undefined).filter(|_| flags).collect();
        let is_order = |f: &usize| model.free[*f].shape == Form::Order;
        let least: Vec<Vec<usize>> = (0..model.free.len())
            .filter(is_order)
            .map(
                |f| if flags.is_empty() { least(model, FreeId(f as u32)).unwrap_or_default() } else { Vec::new() },
            )
            .collect();
        let flat = Flat::new(model, flags.iter().map(|&f| model.flags[f].node));
        let mut task = Task::new(&test, model, judged.set, 1, None).map_err(|reason| reason.to_string())?;
        let mut sets: Vec<cat::rel::EventSet> = Vec::new();
        let mut bases = Vec::new();
        for (id, sort) in flat.bases() {
            let name = row(id).name;
            if sort == Sort::Set {
                let Base::Set(set) = task.base(id) else { unreachable!("models are typed") };
                sets.push(set.clone());
                bases.push(Ok(sets.len() as u8 - 1));
                continue;
            }
            let known = RELATIONS.iter().find(|r| r.0 == name).map(|r| r.1);
            let Base::Rel(found) = task.base(id) else { unreachable!("models are typed") };
            if known.is_none() && !(found.fixed.is_empty() && found.open.is_empty()) {
                return Err(format!("`{}` speaks of `{name}`, which such programs have", model.name));
            }
            bases.push(Err(known.unwrap_or(Relation::Empty)));
        }
        if sets.len() > 128 {
            return Err(format!("`{}` speaks of more than 128 base sets", model.name));
        }
        let sets_of = |e: usize| (0..sets.len()).filter(|&s| sets[s].has(e)).fold(0, |all, s| all | 1u128 << s);
        let mut initial = 0;
        let mut by_line: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        for (e, event) in task.sk.events.iter().enumerate() {
            let (reads, writes, sets, scope) = (event.is_read(), event.is_write(), sets_of(e), event.scope);
            match event.thread {
                None => initial = sets,
                Some(t) if t.0 == 0 => {
                    let line = task.sk.program.thread(t).code[event.instr].line;
                    let (thread, slot, location, aliased, adds) = (None, 0, None, false, false);
                    let event = Event { sets, scope, reads, writes, thread, slot, location, aliased, adds };
                    by_line.entry(line).or_default().push(event);
                }
                Some(_) => {}
            }
        }
        // A fence may become nothing; its line has no events then.
        let first = test.program.threads[0].code.first().map_or(0, |i| i.line);
        let line = |l: usize| by_line.remove(&(first + l as u32)).unwrap_or_default();
        let mut line = line;
        let mut becomes: Vec<Vec<Event>> = (0..alphabet.letters.len()).map(&mut line).collect();
        for (events, letter) in becomes.iter_mut().zip(&alphabet.letters) {
            for event in events {
                (event.aliased, event.adds) = (letter.name == Name::Alias, letter.kind == Kind::Reduce);
            }
        }
        task.open.clear();
        Ok(Judge {
            model,
            bases,
            becomes,
            initial,
            flagged: flags.iter().map(|&f| flat.stage(model.flags[f].node)).fold(1, usize::max),
            alike: (None, Vec::new()),
            outcomes: (None, Vec::new()),
            flat,
            flags,
            loaded: None,
            events: Vec::new(),
            stand: Default::default(),
            possible: true,
            reading: Vec::new(),
            writing: Vec::new(),
            readable: [0; MOST_EVENTS],
            orders: Vec::new(),
            chosen: vec![[0; MOST_EVENTS]; least.len()],
            least,
        })
    }

    /// Whether it can say that a program is undefined.
    pub fn knows_undefined(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Turns to a program. `false`: it has too many events.
    pub fn load(&mut self, shape: &Shape, places: &[Place], letters: &[usize]) -> bool {
        if self.loaded.as_ref().is_some_and(|(s, p, l)| s == shape && p == places && l == letters) {
            return true;
        }
        self.loaded = None;
        self.events.clear();
        self.reading.clear();
        self.writing.clear();
        for l in 0..shape.locations() as u8 {
            self.events.push(Event {
                sets: self.initial,
                scope: None,
                reads: false,
                writes: true,
                thread: None,
                slot: 0,
                location: Some(l),
                aliased: false,
                adds: false,
            });
        }
        for (i, ((thread, slot), &letter)) in shape.slots().zip(letters).enumerate() {
            let (mut reading, mut writing) = (None, None);
            for event in &self.becomes[letter] {
                let accesses = event.reads || event.writes;
                if event.reads {
                    reading = Some(self.events.len());
                }
                if event.writes {
                    writing = Some(self.events.len());
                }
                let location = slot.location.filter(|_| accesses);
                self.events.push(Event { thread: Some(thread as u8), slot: i as u8, location, ..*event });
            }
            self.reading.push(reading);
            self.writing.push(writing);
        }
        let n = self.events.len();
        if n > MOST_EVENTS {
            return false;
        }
        let stands =
            || self.events.iter().map(|e| (e.thread, e.slot, e.location, e.reads, e.writes, [e.aliased, e.adds]));
        let moved = self.stand.1 != places || !stands().eq(self.stand.0.iter().copied());
        if moved {
            self.stand = (stands().collect(), places.to_vec());
        }
        let (events, bases) = (&self.events, &self.bases);
        self.flat.begin(n, |base, rows| match bases[base] {
            Ok(set) => {
                rows[0] = (0..n).filter(|&e| events[e].sets >> set & 1 == 1).fold(0, |all, e| all | 1 << e);
            }
            Err(relation) if moved || relation == Relation::Inclusion => {
                for (i, a) in events.iter().enumerate() {
                    let related = |j: usize| is_related(relation, (i, a), (j, &events[j]), places);
                    rows[i] = (0..n).filter(|&j| related(j)).fold(0, |all, j| all | 1 << j);
                }
            }
            Err(_) => {}
        });
        self.possible = self.flat.run(0, |_| false).is_ok();
        // What comes behind the axiom that nothing keeps was not computed for this program.
        self.loaded = Some((shape.clone(), places.to_vec(), letters.to_vec()));
        if !self.possible {
            return true;
        }
        let mut next = 0;
        for (f, free) in self.model.free.iter().enumerate() {
            let of = |node| *self.flat.value(node);
            if free.shape == Form::Function {
                self.readable = of(free.within);
                continue;
            }
            let bound = |node: Option<_>| cut(node.map_or([0; MOST_EVENTS], of), n);
            let (within, containing, covering) =
                (cut(of(free.within), n), bound(free.containing), bound(free.covering));
            let known = |w: &Ways| w.within == within && w.containing == containing && w.covering == covering;
            if !self.orders.get(next).is_some_and(|w| known(w) && w.all.first().is_none_or(|o| o.len() == n)) {
                let open = if self.least[next].is_empty() { within } else { both_ways(&covering, &within, n) };
                let mut all = orders(n, &open[..n], &containing[..n], &covering[..n]);
                for order in &mut all {
                    close(order);
                    (0..n).for_each(|r| order[r] &= within[r]);
                }
                all.retain(|order| is_acyclic(order));
                let ways = Ways { free: FreeId(f as u32), within, containing, covering, all };
                self.orders.truncate(next);
                self.orders.push(ways);
            }
            next += 1;
        }
        true
    }

    /// Whether some consistent execution of the program shows the outcome.
    pub fn allows(&mut self, outcome: &Outcome) -> bool {
        let Some((shape, ..)) = self.loaded.as_ref().filter(|loaded| loaded.0.has(Kind::Reduce)) else {
            return self.some(outcome, false);
        };
        // Whatever an addition read that tells nobody.
        if self.alike.0.as_ref() != Some(shape) {
            self.alike = (Some(shape.clone()), alike(shape).into_values().collect());
        }
        let all = std::mem::take(&mut self.alike.1);
        let alike = all.iter().find(|alike| alike.contains(outcome));
        let allowed = alike.is_some_and(|alike| alike.iter().any(|outcome| self.some(outcome, false)));
        self.alike.1 = all;
        allowed
    }

    /// Whether some consistent execution that shows the outcome makes the program undefined.
    pub fn flags(&mut self, outcome: &Outcome) -> bool {
        self.some(outcome, true)
    }

    /// Turns to a program: whether no consistent execution makes it undefined. `false`, too, if it has too many events.
    pub fn defines(&mut self, shape: &Shape, places: &[Place], letters: &[usize]) -> bool {
        if !self.load(shape, places, letters) {
            return false;
        }
        let (mut of, mut outcomes) = std::mem::take(&mut self.outcomes);
        if of.as_ref() != Some(shape) {
            outcomes = crate::outcome::outcomes(shape);
            outcomes.retain(|outcome| outcome.written(shape).is_some());
            // Whichever write is last: nothing is said of it.
            outcomes.iter_mut().for_each(|outcome| outcome.last.clear());
            outcomes.sort();
            outcomes.dedup();
            of = Some(shape.clone());
        }
        let defined = !outcomes.iter().any(|outcome| self.flags(outcome));
        self.outcomes = (of, outcomes);
        defined
    }

    /// Computes a stage; whether it is not rejected, and, with `flagged`, a flag is not known to stay down.
    fn passes(&mut self, stage: usize, flagged: bool) -> bool {
        // Where an order is the least that its axioms ask for, they are no reason to reject yet.
        let asked = |axiom| self.least.iter().any(|asking| asking.contains(&axiom));
        if self.flat.run(stage, asked).is_err() {
            return false;
        }
        let raised = |f: &usize| {
            let flag = &self.model.flags[*f];
            self.flat.holds(flag.test, flag.node) != flag.negated
        };
        !flagged || stage != self.flagged || self.flags.iter().any(raised)
    }

    fn some(&mut self, outcome: &Outcome, flagged: bool) -> bool {
        let mut rf = [0; MOST_EVENTS];
        for (i, reading) in self.reading.iter().enumerate() {
            let Some(read) = *reading else { continue };
            let location = self.events[read].location;
            let write = match outcome.sources[i] {
                Some(w) => self.writing[usize::from(w)],
                None => (0..self.events.len()).find(|&e| self.events[e].location == location),
            };
            let Some(write) = write.filter(|&w| self.readable[w] >> read & 1 == 1) else { return false };
            rf[write] |= 1 << read;
        }
        self.flat.choose(self.model.values, &rf);
        // What comes after a last write: nothing of its location.
        let mut last = 0u32;
        for w in &outcome.last {
            if let Some(e) = self.writing[usize::from(*w)] {
                last |= 1 << e;
            }
        }
        self.possible && self.passes(1, flagged) && self.complete(0, last, flagged)
    }

    fn complete(&mut self, next: usize, last: u32, flagged: bool) -> bool {
        if next == self.orders.len() {
            return self.grows(last);
        }
        for i in 0..self.orders[next].all.len() {
            let Ways { free, all, .. } = &self.orders[next];
            if *free == self.model.finals && !leaves_last(&all[i], last) {
                continue;
            }
            let mut rows = [0; MOST_EVENTS];
            rows[..all[i].len()].copy_from_slice(&all[i]);
            let free = *free;
            self.chosen[next] = rows;
            self.flat.choose(free, &rows);
            if self.passes(2 + next, flagged) && self.complete(next + 1, last, flagged) {
                return true;
            }
        }
        false
    }

    /// Whether it is accepted what was chosen, and in addition what axioms ask of the orders that are least.
    fn grows(&mut self, last: u32) -> bool {
        let n = self.events.len();
        let mut grown: Vec<(usize, Rows)> = Vec::new();
        let good = loop {
            let unmet = |(i, asking): (usize, &Vec<usize>)| {
                let axioms = asking.iter().map(|&axiom| &self.model.axioms[axiom]);
                let mut unmet = axioms.filter(|a| !self.flat.holds(a.test, a.node));
                unmet.next().map(|axiom| (i, *self.flat.value(axiom.node)))
            };
            let Some((i, asked)) = self.least.iter().enumerate().find_map(unmet) else {
                break true;
            };
            let mut rows = self.chosen[i];
            grown.push((i, rows));
            (0..n).for_each(|r| rows[r] |= asked[r]);
            close(&mut rows[..n]);
            let Ways { free, within, .. } = &self.orders[i];
            let fits = (0..n).all(|r| asked[r] & !within[r] == 0) && is_acyclic(&rows[..n]);
            (0..n).for_each(|r| rows[r] &= within[r]);
            if !fits || *free == self.model.finals && !leaves_last(&rows[..n], last) {
                break false;
            }
            self.chosen[i] = rows;
            self.flat.choose(*free, &rows);
            if !(i..self.orders.len()).all(|order| self.passes(2 + order, false)) {
                break false;
            }
        };
        // What was chosen stands for the next try.
        let first = grown.iter().map(|(i, _)| *i).min();
        for (i, rows) in grown.into_iter().rev() {
            self.chosen[i] = rows;
            self.flat.choose(self.orders[i].free, &rows);
        }
        // So does what was computed from it.
        let again = first.map_or(0..0, |first| first..self.orders.len() - 1);
        again.for_each(|order| {
            let _ = self.passes(2 + order, false);
        });
        good
    }

    /// The rows of a base relation or set of the program, for tests.
    #[cfg(test)]
    pub(crate) fn base_rows(&self) -> Vec<(cat::model::signature::BaseId, Sort, Rows)> {
        self.flat.base_rows()
    }
}

/// Whether nothing comes after a last write.
fn leaves_last(order: &[u32], last: u32) -> bool {
    (0..order.len()).all(|e| last >> e & 1 == 0 || order[e] == 0)
}

/// The pairs of `within` that `covering` relates in either direction.
fn both_ways(covering: &Rows, within: &Rows, n: usize) -> Rows {
    let mut open = *covering;
    for (r, row) in covering[..n].iter().enumerate() {
        ones(*row).for_each(|k| open[k] |= 1 << r);
    }
    (0..n).for_each(|r| open[r] &= within[r]);
    open
}

/// The axioms that ask for pairs of a free order, `empty … \ order`, if a pair that is in it without need only makes axioms
/// reject: it stands nowhere else on the right of a difference. `None`: it does.
fn least(model: &Model, free: FreeId) -> Option<Vec<usize>> {
    let mut asking = Vec::new();
    for (i, axiom) in model.axioms.iter().enumerate() {
        let plain = !axiom.negated;
        let asked = match model.node(axiom.node).op {
            NodeOp::Diff(asked, order) if plain && axiom.test == Test::Empty => {
                matches!(model.node(order).op, NodeOp::Free(f) if f == free).then_some(asked)
            }
            _ => None,
        };
        let node = asked.unwrap_or(axiom.node);
        asking.extend(asked.map(|_| i));
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![(node, plain)];
        while let Some((id, grows)) = todo.pop() {
            if !seen.insert((id, grows)) {
                continue;
            }
            match model.node(id).op {
                NodeOp::Free(f) if f == free && !grows => return None,
                NodeOp::Diff(a, b) => todo.extend([(a, grows), (b, !grows)]),
                NodeOp::Var(group, _) => {
                    todo.extend(model.groups[group as usize].bodies.iter().map(|body| (*body, grows)));
                }
                op => todo.extend(op.operands().map(|o| (o, grows))),
            }
        }
    }
    Some(asking)
}

/// Rows of so many events; what stands behind them is of another program.
fn cut(mut rows: Rows, n: usize) -> Rows {
    rows[n..].fill(0);
    rows
}

fn is_related(relation: Relation, (i, a): (usize, &Event), (j, b): (usize, &Event), places: &[Place]) -> bool {
    let both = |f: &dyn Fn(&Place, &Place) -> bool| match (a.thread, b.thread) {
        (Some(x), Some(y)) => x == y || f(&places[usize::from(x)], &places[usize::from(y)]),
        _ => false,
    };
    match relation {
        Relation::ProgramOrder => i < j && a.thread.is_some() && a.thread == b.thread,
        Relation::OneThread => a.thread == b.thread,
        Relation::Apart => a.thread != b.thread,
        Relation::OneLocation => a.location.is_some() && a.location == b.location,
        Relation::OneAddress => a.location.is_some() && a.location == b.location && a.aliased == b.aliased,
        Relation::Added => a.adds && is_related(Relation::Halves, (i, a), (j, b), places),
        Relation::Halves => a.thread.is_some() && a.thread == b.thread && a.slot == b.slot && a.reads && b.writes,
        Relation::Inclusion => match (a.scope, b.scope) {
            (Some(x), Some(y)) => both(&|p, q| p.same(q, x) && p.same(q, y)),
            _ => false,
        },
        Relation::Group(scope) => both(&|p, q| p.same(q, scope)),
        Relation::OneGpu => both(&Place::same_gpu),
        Relation::Kernel => both(&|p, q| p.same_gpu(q) && p.kernel == q.kernel),
        Relation::Initial => a.thread.is_none() && b.thread.is_some(),
        Relation::Empty => false,
    }
}

/// Whether the model can judge programs of these letters.
pub fn judges(judged: Judged<'_>, alphabet: &Alphabet) -> bool {
    Judge::new(judged, alphabet, true).is_ok()
}

/// A program of two threads, each with every letter once, a line each.
///
/// # Errors
/// Why there is none.
pub fn sample(alphabet: &Alphabet, mapping: Option<&Mapping>) -> Result<LitmusTest, String> {
    let slot = |l: &crate::letters::Letter| {
        let location = (l.kind != Kind::Fence).then_some(0);
        Slot { kind: l.kind, location }
    };
    let slots: Vec<Slot> = alphabet.letters.iter().map(slot).collect();
    let shape = Shape { threads: vec![slots.clone(), slots] };
    let letters: Vec<usize> = (0..alphabet.letters.len()).chain(0..alphabet.letters.len()).collect();
    let head = format!("name = \"letters\"\ndialect = \"{}\"\n", alphabet.dialect.name());
    let text = alphabet.test(&head, &shape, &[Place::device(0, 0), Place::device(0, 1)], &letters, None);
    let test = read(&text)?;
    match mapping {
        Some(mapping) => mapping.lowered(&test),
        None => Ok(test),
    }
}

/// Reads a program that was written here.
pub(crate) fn read(text: &str) -> Result<LitmusTest, String> {
    let tests = litmus::parse("program.toml", text.as_bytes());
    let refused = |errors: Vec<diag::Diagnostic>| {
        errors
            .first()
            .map_or_else(|| "the program cannot be read".to_owned(), |e| format!("{}: {text}", e.message))
    };
    tests.map_err(refused)?.pop().ok_or_else(|| "there is no program".to_owned())
}

#[cfg(test)]
mod tests;
