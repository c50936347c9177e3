//! A model, asked about small programs: which outcomes it allows, and whether it calls the program defined.
//!
//! What an instruction does is learned once per letter, from the skeleton of a program that has them all. Programs of these
//! letters are then put together without reading any: sets from the letters, relations from where the instructions stand.
//!
//! # Invariants
//! - What is put together is what [`Task`] makes of the same program, base by base; the tests hold the two together.
//! - A relation that is not known here is empty in such programs, or the model is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::flat::{Flat, MOST_EVENTS, Rows, close, is_acyclic, ones};
use crate::letters::{Alphabet, Name};
use crate::outcome::{Outcome, alike, orders};
use crate::reduced::{Bits, Pairs, Reduced, STANDINGS, Same, reduced};
use crate::shape::{Kind, MOST_THREADS, Program, Shape, Slot};
use cat::model::ir::{Effect, FreeId, Kind as Sort, Model, NodeOp, Shape as Form, Test};
use cat::model::signature::{BaseId, OptionValue};
use engine::skeleton::base::Base;
use engine::skeleton::signature::{may_raise, row};
use engine::task::Task;
use front::litmus;
use front::mapping::Mapping;
use program::EventKind;
use program::litmus::LitmusTest;
use program::options::Setting;
use program::{Place, Scope};
use rustc_hash::FxHashMap;

/// A model, and how it comes to judge programs of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The model.
    pub model: &'a Model,
    /// Through which mapping.
    pub mapping: Option<&'static Mapping>,
    /// Options of the model.
    pub set: &'a [Setting],
    /// What was learnt of the letters, if it was.
    pub learnt: Option<&'a Arc<Learnt>>,
}

impl<'a> Judged<'a> {
    /// Another model in its place.
    pub fn instead<'b>(&self, model: &'b Model) -> Judged<'b>
    where
        'a: 'b,
    {
        Judged { model, ..*self }
    }

    /// What the letters mean to it.
    pub(crate) fn learnt(&self, alphabet: &Alphabet) -> Result<Arc<Learnt>, String> {
        match self.learnt.filter(|learnt| learnt.options == self.model.options) {
            Some(learnt) => Ok(Arc::clone(learnt)),
            None => Ok(Arc::new(Learnt::new(*self, alphabet)?)),
        }
    }
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
    /// What is written depends on what is read: by an addition, or where it is tied to what the thread has read.
    Data,
    /// What executes depends on what is read: behind a branch, or in a compare-exchange.
    Control,
    /// Arrival and wait of one barrier.
    Meeting,
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
    ("data", Relation::Data),
    ("ctrl", Relation::Control),
    ("syncbar", Relation::Meeting),
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
    /// Its type: an initial write, or an event of a letter.
    ty: u16,
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
    /// Of a compare-exchange: whether it writes depends on what it reads.
    compares: bool,
    /// A read whose value the thread has in a register.
    tells: bool,
    /// What it writes depends on all of these; or whether the thread goes on depends on what it reads.
    tied: bool,
    /// Half of a barrier: it arrives, or it waits.
    arrives: bool,
    waits: bool,
}

/// What letters mean to models that ask the same of the skeleton.
#[derive(Debug)]
pub struct Learnt {
    /// A program that has them all.
    test: LitmusTest,
    options: Vec<OptionValue>,
    /// By letter: its events.
    becomes: Vec<Vec<Event>>,
    /// By letter: what is left of it where it finds something else than it expects, if it expects something.
    failing: Vec<Option<usize>>,
    pairs: Pairs,
    /// How two threads can be placed: which groups they share.
    apart: Vec<Vec<bool>>,
    /// Base sets by type, base relations by pair; or why none is asked for.
    bases: BTreeMap<BaseId, Result<Bits, String>>,
}

/// A model and the program that it is asked about.
#[derive(Clone, Debug)]
pub struct Judge {
    model: Arc<Model>,
    learnt: Arc<Learnt>,
    leaves: Arc<Vec<Bits>>,
    flat: Flat,
    /// Flags that mean that the program is undefined.
    flags: Vec<usize>,
    /// When it is known whether they are raised.
    flagged: usize,
    /// The outcomes of a shape that look alike, where several do.
    alike: (Option<Shape>, Vec<Vec<Outcome>>),
    /// The outcomes of a shape, and of what its branches leave of it, but for which write is last.
    outcomes: FxHashMap<Shape, Vec<Outcome>>,

    /// The program that was turned to.
    loaded: Option<(Shape, Vec<Place>, Vec<usize>)>,
    events: Vec<Event>,
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

/// A free order, its bounds, and the ways to choose it.
#[derive(Clone, Debug)]
struct Ways {
    free: FreeId,
    within: Rows,
    containing: Rows,
    covering: Rows,
    all: Vec<Vec<u32>>,
}

impl Learnt {
    /// Learns them from a program that has them all.
    ///
    /// # Errors
    /// Why there is none, or the model cannot judge it.
    pub fn new(judged: Judged<'_>, alphabet: &Alphabet) -> Result<Learnt, String> {
        let model = judged.model;
        let test = sample(alphabet, judged.mapping)?;
        let mut task = Task::new(&test, model, judged.set, 1, None).map_err(|reason| reason.to_string())?;
        let mut by_line: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut initial = Vec::new();
        for (e, event) in task.sk.events.iter().enumerate() {
            match event.thread {
                None => initial.push(e),
                Some(t) if t.0 == 0 => {
                    by_line.entry(task.sk.program.thread(t).code[event.instr].line.number).or_default().push(e);
                }
                Some(_) => {}
            }
        }
        // Whether the halves of an instruction stand so, if the model asks for that relation.
        let halves = |name: &str, read: usize, write: usize| {
            let of = |node: &cat::model::ir::Node| match node.op {
                NodeOp::Base(id) if row(id).name == name => Some(id),
                _ => None,
            };
            match model.nodes.iter().find_map(of).map(|id| task.base(id)) {
                Some(Base::Rel(rel)) => rel.fixed.has(read, write),
                _ => false,
            }
        };
        // By type: an event of the sample that has it, and its letter.
        let (atomic, plain) = initial.first().zip(initial.last()).ok_or("no initial write")?;
        let mut types: Vec<(usize, Option<usize>)> = vec![(*atomic, None), (*plain, None)];
        // A fence may become nothing; its line has no events then.
        let first = test.program.threads[0].code.first().map_or(0, |i| i.line.number);
        let mut becomes = vec![Vec::new(); alphabet.letters.len()];
        for (l, letter) in alphabet.letters.iter().enumerate() {
            let events = by_line.remove(&(first + l as u32)).unwrap_or_default();
            let read = events.iter().copied().find(|&e| task.sk.events[e].is_read());
            let write = events.iter().copied().find(|&e| task.sk.events[e].is_write());
            let related = |name| read.zip(write).is_some_and(|(read, write)| halves(name, read, write));
            let (adds, compares) = (related("data"), related("ctrl"));
            for e in events {
                let event = &task.sk.events[e];
                becomes[l].push(Event {
                    ty: types.len() as u16,
                    scope: event.scope,
                    reads: event.is_read(),
                    writes: event.is_write(),
                    thread: None,
                    slot: 0,
                    location: None,
                    aliased: letter.name == Name::Alias,
                    adds,
                    compares,
                    tells: event.is_read() && letter.kind.tells(),
                    tied: letter.tied && (event.is_read() || event.is_write() && !letter.kind.reads()),
                    arrives: event.kind == EventKind::Arrive,
                    waits: event.kind == EventKind::Wait,
                });
                types.push((e, Some(l)));
            }
        }
        let two = alphabet.placements(2).into_iter();
        let mut placed: Vec<(Vec<bool>, Vec<Place>)> =
            two.map(|places| (groups(&places[0], &places[1]), places)).collect();
        placed.sort_by(|a, b| a.0.cmp(&b.0));
        placed.dedup_by(|a, b| a.0 == b.0);
        let apart: Vec<Vec<bool>> = placed.iter().map(|p| p.0.clone()).collect();
        let count = types.len();
        let mut pairs = Pairs {
            types: count,
            possible: Bits::none(count * count * STANDINGS),
            inverse: [0; STANDINGS],
            own: 0,
        };
        (0..STANDINGS).for_each(|s| pairs.inverse[s] = (s & 1 | inverse(s >> 1) << 1) as u8);
        pairs.own = 1 << (OWN << 1) | 1 << (OWN << 1 | 1);
        let initial = [false, true].map(Event::initial);
        let of: Vec<Event> = initial.into_iter().chain(becomes.iter().flatten().copied()).collect();
        // Each pair, with two events that stand so, and their places.
        let mut examples = Vec::new();
        for (a, b, standing) in (0..count)
            .flat_map(|a| (0..count).flat_map(move |b| (0..STANDINGS).map(move |standing| (a, b, standing))))
        {
            let letters = (types[a].1, types[b].1);
            let Some(example) = example((&of[a], &of[b]), letters, standing, apart.len()) else { continue };
            let class = (standing >> 1).checked_sub(PLACED);
            let places = &placed[class.unwrap_or(0)].1;
            pairs.possible.add(pairs.at(a, b, standing));
            examples.push((pairs.at(a, b, standing), example, places));
        }
        let mut bases = BTreeMap::new();
        for node in &model.nodes {
            let NodeOp::Base(id) = node.op else { continue };
            let name = row(id).name;
            let bits = match task.base(id) {
                _ if bases.contains_key(&id) => continue,
                Base::Set(set) => {
                    let mut bits = Bits::none(count);
                    (0..count).filter(|t| set.has(types[*t].0)).for_each(|t| bits.add(t));
                    Ok(bits)
                }
                Base::Rel(found) => match RELATIONS.iter().find(|r| r.0 == name).map(|r| r.1) {
                    None if !(found.fixed.is_empty() && found.open.is_empty()) => {
                        Err(format!("`{}` speaks of `{name}`, which such programs have", model.name))
                    }
                    relation => {
                        let mut bits = Bits::none(count * count * STANDINGS);
                        let relation = relation.unwrap_or(Relation::Empty);
                        let related = |e: &&(usize, [(usize, Event); 2], &Vec<Place>)| {
                            let [(i, a), (j, b)] = &e.1;
                            is_related(relation, (*i, a), (*j, b), e.2)
                        };
                        examples.iter().filter(related).for_each(|e| bits.add(e.0));
                        Ok(bits)
                    }
                },
            };
            bases.insert(id, bits);
        }
        task.open.clear();
        let options = model.options.clone();
        let failing = (0..alphabet.letters.len()).map(|l| alphabet.failing(l)).collect();
        Ok(Learnt { test, options, becomes, failing, pairs, apart, bases })
    }
}

/// How an event stands to itself, and from where on standings say which groups two threads share.
const OWN: usize = 0;
const PLACED: usize = 8;

/// How the first event stands to the second if the second stands so to the first.
fn inverse(standing: usize) -> usize {
    match standing {
        1 => 2,
        2 => 1,
        3 => 4,
        4 => 3,
        5 => 6,
        6 => 5,
        same => same,
    }
}

/// How two events stand to each other: of one thread, whether in one instruction and which one first; of several, which of
/// the ways to place them it is. The last bit: whether they access one location.
fn standing((i, a): (usize, &Event), (j, b): (usize, &Event), class: impl Fn(u8, u8) -> usize) -> usize {
    let how = match (a.thread, b.thread) {
        _ if i == j => OWN,
        (None, None) => 7,
        (None, Some(_)) => 5,
        (Some(_), None) => 6,
        (Some(x), Some(y)) if x != y => PLACED + class(x, y),
        _ if a.slot == b.slot => 1 + usize::from(i > j),
        _ => 3 + usize::from(i > j),
    };
    how << 1 | usize::from(a.location.is_some() && a.location == b.location)
}

/// Two events of types that stand so to each other, if there can be such.
fn example(
    (a, b): (&Event, &Event),
    letters: (Option<usize>, Option<usize>),
    standing: usize,
    classes: usize,
) -> Option<[(usize, Event); 2]> {
    let (how, one) = (standing >> 1, standing & 1 == 1);
    let accesses = |e: &Event| e.reads || e.writes;
    let located = |e: &Event, at: u8| accesses(e).then_some(at);
    let both = accesses(a) && accesses(b);
    let thread = |e: &Event, of: u8| (!e.is_initial()).then_some(of);
    let own = || a.ty == b.ty && one == accesses(a);
    let initial = (a.is_initial(), b.is_initial());
    let in_one = || initial == (false, false) && letters.0 == letters.1 && one == both;
    let fits = match how {
        OWN => own(),
        1 => in_one() && a.ty < b.ty,
        2 => in_one() && a.ty > b.ty,
        3 | 4 => initial == (false, false) && (both || !one),
        5 => initial == (true, false) && (both || !one),
        6 => initial == (false, true) && (both || !one),
        7 => initial == (true, true) && !one,
        how => how - PLACED < classes && initial == (false, false) && (both || !one),
    };
    let (i, j) = match how {
        OWN => (0, 0),
        2 | 4 | 6 => (1, 0),
        _ => (0, 1),
    };
    let slot = |at: usize| if how == 3 || how == 4 { at as u8 } else { 0 };
    let other = u8::from(how >= PLACED);
    let of = |e: &Event, at: usize, t: u8, l: u8| Event {
        thread: thread(e, t),
        slot: slot(at),
        location: located(e, l),
        ..*e
    };
    let elsewhere = u8::from(!one && how != OWN);
    fits.then(|| [(i, of(a, i, 0, 0)), (j, of(b, j, other, elsewhere))])
}

/// Which groups two threads share.
fn groups(p: &Place, q: &Place) -> Vec<bool> {
    let scopes = [Scope::Warp, Scope::Cta, Scope::Cluster, Scope::QueueFamily, Scope::Gpu, Scope::Sys];
    let shared = scopes.iter().map(|scope| p.same(q, *scope));
    shared.chain([p.same_gpu(q), p.kernel == q.kernel]).collect()
}

impl Event {
    /// The initial write of a location, of plain accesses or not.
    fn initial(plain: bool) -> Event {
        Event {
            ty: u16::from(plain),
            scope: None,
            reads: false,
            writes: true,
            thread: None,
            slot: 0,
            location: None,
            aliased: false,
            adds: false,
            compares: false,
            tells: false,
            tied: false,
            arrives: false,
            waits: false,
        }
    }

    fn is_initial(&self) -> bool {
        self.ty < 2
    }
}

impl Judge {
    /// Learns what letters mean to a model. With `flags`, it can say whether programs are defined.
    ///
    /// # Errors
    /// Why the model cannot judge such programs.
    pub fn new(judged: Judged<'_>, alphabet: &Alphabet, flags: bool) -> Result<Judge, String> {
        Judge::of(judged, judged.learnt(alphabet)?, flags)
    }

    /// The same with what was learnt.
    ///
    /// # Errors
    /// Why the model cannot judge such programs.
    pub fn of(judged: Judged<'_>, learnt: Arc<Learnt>, flags: bool) -> Result<Judge, String> {
        let Reduced { model, leaves } = reduced_by(judged.model, &learnt, flags)?;
        let flags: Vec<usize> = (0..model.flags.len()).collect();
        let some = |is: fn(&Event) -> bool| learnt.becomes.iter().flatten().any(is);
        if !flags.is_empty() && some(|e| e.tied && e.reads) && some(|e| e.adds || e.tied && e.writes) {
            return Err(format!(
                "`{}` calls programs undefined, and where branches ask for values that depend on others it is not worked out which",
                judged.model.name
            ));
        }
        let is_order = |f: &usize| model.free[*f].shape == Form::Order;
        let least: Vec<Vec<usize>> =
            (0..model.free.len())
                .filter(is_order)
                .map(|f| {
                    if flags.is_empty() { least(&model, FreeId(f as u32)).unwrap_or_default() } else { Vec::new() }
                })
                .collect();
        let model = Arc::new(model);
        let flat = Flat::new(Arc::clone(&model), flags.iter().map(|&f| model.flags[f].node));
        Ok(Judge {
            flagged: flags.iter().map(|&f| flat.stage(model.flags[f].node)).fold(1, usize::max),
            model,
            learnt,
            leaves: Arc::new(leaves),
            alike: (None, Vec::new()),
            outcomes: FxHashMap::default(),
            flat,
            flags,
            loaded: None,
            events: Vec::new(),
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
            self.events.push(Event { location: Some(l), ..Event::initial(shape.is_plain(usize::from(l))) });
        }
        for (i, ((thread, slot), &letter)) in shape.slots().zip(letters).enumerate() {
            let (mut reading, mut writing) = (None, None);
            for event in &self.learnt.becomes[letter] {
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
        let Learnt { pairs, apart, .. } = &*self.learnt;
        let mut classes = [[0; MOST_THREADS]; MOST_THREADS];
        let placed = &places[..shape.threads.len()];
        for (x, p) in placed.iter().enumerate() {
            for (y, q) in placed.iter().enumerate().filter(|(y, _)| *y != x) {
                let shared = groups(p, q);
                classes[x][y] =
                    apart.iter().position(|known| *known == shared).expect("placements of two are all");
            }
        }
        let events = &self.events;
        let pair = |i: usize, j: usize| {
            let (a, b) = (&events[i], &events[j]);
            let class = |x: u8, y: u8| classes[usize::from(x)][usize::from(y)];
            pairs.at(a.ty.into(), b.ty.into(), standing((i, a), (j, b), class))
        };
        let mut numbers = [[0; MOST_EVENTS]; MOST_EVENTS];
        (0..n).for_each(|i| (0..n).for_each(|j| numbers[i][j] = pair(i, j)));
        let leaves = &self.leaves;
        self.flat.begin(n, |leaf, sort, rows| {
            let bits = &leaves[leaf.index()];
            match sort {
                Sort::Set => {
                    let is_in = |e: &usize| bits.has(events[*e].ty.into());
                    rows[0] = (0..n).filter(is_in).fold(0, |all, e| all | 1 << e);
                }
                Sort::Rel => {
                    for (row, numbers) in rows.iter_mut().zip(&numbers[..n]) {
                        let related = |j: &usize| bits.has(numbers[*j]);
                        *row = (0..n).filter(related).fold(0, |all, j| all | 1 << j);
                    }
                }
            }
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

    /// Turns to a program: whether no consistent execution makes it undefined. Its branches ask for what the outcome says.
    /// `false`, too, if it has too many events.
    pub fn defines(&mut self, (shape, places, letters): Program<'_>, outcome: &Outcome) -> bool {
        if !self.outcomes.contains_key(shape) {
            self.outcomes.clear();
        }
        let branches = |slot: usize| self.learnt.becomes[letters[slot]].iter().any(|e| e.tied && e.reads);
        let learnt = Arc::clone(&self.learnt);
        let failing = |slot: usize| learnt.failing[letters[slot]];
        cuts(shape, branches, |slot| failing(slot).is_some()).iter().all(|cut| {
            let letter = |(at, &slot): (usize, &usize)| match failing(slot) {
                Some(failing) if cut.branches.contains(&(at, false)) => failing,
                _ => letters[slot],
            };
            let letters: Vec<usize> = cut.kept.iter().enumerate().map(letter).collect();
            if !self.load(&cut.shape, places, &letters) {
                return false;
            }
            let mut known = std::mem::take(&mut self.outcomes);
            let of_shape = known.entry(cut.shape.clone()).or_insert_with_key(|shape| {
                let mut outcomes = crate::outcome::outcomes(shape);
                outcomes.retain(|outcome| outcome.written(shape).is_some());
                // Whichever write is last: nothing is said of it.
                outcomes.iter_mut().for_each(|outcome| outcome.last.clear());
                outcomes.sort();
                outcomes.dedup();
                outcomes
            });
            let defined = !of_shape.iter().any(|o| cut.shows(o, outcome) && self.flags(o));
            self.outcomes = known;
            defined
        })
    }

    /// Whether a flag is raised, or may be by what is chosen after that stage.
    fn may_be_raised(&self, stage: usize) -> bool {
        self.flags.iter().map(|&flag| &self.model.flags[flag]).any(|flag| {
            if self.flat.stage(flag.node) <= stage {
                return self.flat.holds(flag.test, flag.node) != flag.negated;
            }
            let is_of_some = flag.test == Test::Empty && flag.negated;
            !is_of_some || !self.flat.stays_empty(flag.node, stage)
        })
    }

    /// Computes a stage; whether it is not rejected, and, with `flagged`, a flag is not known to stay down.
    fn passes(&mut self, stage: usize, flagged: bool) -> bool {
        // Where an order is the least that its axioms ask for, they are no reason to reject yet.
        let asked = |axiom| self.least.iter().any(|asking| asking.contains(&axiom));
        if self.flat.run(stage, asked).is_err() {
            return false;
        }
        !flagged || stage > self.flagged || self.may_be_raised(stage)
    }

    fn some(&mut self, outcome: &Outcome, flagged: bool) -> bool {
        if !self.possible || flagged && !self.may_be_raised(0) {
            return false;
        }
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
        self.passes(1, flagged) && self.complete(0, last, flagged)
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

    /// The rows of the bases of a model for the program, for tests.
    #[cfg(test)]
    pub(crate) fn base_rows(&self) -> Vec<(BaseId, Sort, Rows)> {
        let places = &self.loaded.as_ref().expect("a program").1;
        let class = |x: u8, y: u8| {
            let shared = groups(&places[usize::from(x)], &places[usize::from(y)]);
            self.learnt.apart.iter().position(|known| *known == shared).expect("known")
        };
        let of = |(id, bits): (&BaseId, &Result<Bits, String>)| {
            let (bits, n) = (bits.as_ref().expect("it judges"), self.events.len());
            let mut rows = [0; MOST_EVENTS];
            let is_set = bits.is_of(self.learnt.pairs.types);
            let sort = if is_set { Sort::Set } else { Sort::Rel };
            for (i, a) in self.events.iter().enumerate() {
                let related = |j: &usize| {
                    let b = &self.events[*j];
                    let pairs = &self.learnt.pairs;
                    bits.has(pairs.at(a.ty.into(), b.ty.into(), standing((i, a), (*j, b), class)))
                };
                match sort {
                    Sort::Set => rows[0] |= u32::from(bits.has(a.ty.into())) << i,
                    Sort::Rel => rows[i] = (0..n).filter(related).fold(0, |all, j| all | 1 << j),
                }
            }
            (*id, sort, rows)
        };
        self.learnt.bases.iter().map(of).collect()
    }
}

/// What is executed of a program if some of its branches end their threads, and some of its compare-exchanges fail.
struct Cut {
    shape: Shape,
    /// Its instructions, as those of the whole.
    kept: Vec<usize>,
    /// Of its instructions those that ask for what they read, and whether they find it: a thread goes on, an exchange writes.
    branches: Vec<(usize, bool)>,
}

impl Cut {
    /// Whether all goes as it does here if this is read, where the outcome of the whole is what they ask for. Every write has
    /// a value of its own.
    fn shows(&self, read: &Outcome, asked: &Outcome) -> bool {
        self.branches.iter().all(|&(at, goes_on)| {
            let source = read.sources[at].map(|w| self.kept[usize::from(w)]);
            (source == asked.sources[self.kept[at]].map(usize::from)) == goes_on
        })
    }
}

/// The whole, and what is left of it by branches and by compare-exchanges.
fn cuts(shape: &Shape, branches: impl Fn(usize) -> bool, compares: impl Fn(usize) -> bool) -> Vec<Cut> {
    let mut all = vec![Cut { shape: Shape { threads: Vec::new() }, kept: Vec::new(), branches: Vec::new() }];
    let mut first = 0;
    for slots in &shape.threads {
        let branching: Vec<usize> = (0..slots.len() - 1).filter(|i| branches(first + i)).collect();
        let ends = branching.iter().map(|i| i + 1).chain([slots.len()]);
        all = ends
            .flat_map(|end| {
                let with = |before: &Cut| {
                    let (mut shape, mut kept) = (before.shape.clone(), before.kept.clone());
                    let mut known = before.branches.clone();
                    let here = branching.iter().filter(|i| **i < end);
                    known.extend(here.map(|i| (kept.len() + i, i + 1 < end)));
                    shape.threads.push(slots[..end].to_vec());
                    kept.extend(first..first + end);
                    Cut { shape, kept, branches: known }
                };
                all.iter().map(with).collect::<Vec<Cut>>()
            })
            .collect();
        first += slots.len();
    }
    all.into_iter().flat_map(|cut| fail(cut, &compares)).collect()
}

/// What is executed if some of its compare-exchanges fail: they read.
fn fail(cut: Cut, compares: impl Fn(usize) -> bool) -> Vec<Cut> {
    let comparing: Vec<usize> = (0..cut.kept.len()).filter(|&at| compares(cut.kept[at])).collect();
    let mut all = vec![cut];
    for at in comparing {
        let with = |cut: Cut, found: bool| {
            let Cut { mut shape, kept, mut branches } = cut;
            if !branches.contains(&(at, found)) {
                branches.push((at, found));
            }
            if !found {
                let slots = shape.threads.iter_mut().flatten();
                slots.skip(at).take(1).for_each(|slot| slot.kind = Kind::Read);
            }
            Cut { shape, kept, branches }
        };
        let ways = |cut: Cut| {
            // If a thread goes on or ends with it, that is known.
            let known = cut.branches.iter().find(|branch| branch.0 == at).map(|branch| branch.1);
            let fits = move |found: &bool| known.is_none_or(|known| known == *found);
            let Cut { shape, kept, branches } = cut;
            [true, false].into_iter().filter(fits).map(move |found| {
                with(Cut { shape: shape.clone(), kept: kept.clone(), branches: branches.clone() }, found)
            })
        };
        all = all.into_iter().flat_map(ways).collect();
    }
    all
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
    let is_before = || i < j && a.thread.is_some() && a.thread == b.thread;
    match relation {
        Relation::ProgramOrder => is_before(),
        Relation::OneThread => a.thread == b.thread,
        Relation::Apart => a.thread != b.thread,
        Relation::OneLocation => a.location.is_some() && a.location == b.location,
        Relation::OneAddress => a.location.is_some() && a.location == b.location && a.aliased == b.aliased,
        Relation::Data if a.slot == b.slot => a.adds && is_related(Relation::Halves, (i, a), (j, b), places),
        Relation::Data => is_before() && a.tells && b.writes && b.tied,
        Relation::Control if a.slot == b.slot => {
            a.compares && is_related(Relation::Halves, (i, a), (j, b), places)
        }
        Relation::Control => is_before() && a.slot != b.slot && a.reads && a.tied,
        Relation::Meeting => {
            let once = a.thread != b.thread || a.slot == b.slot;
            a.arrives && b.waits && once && both(&|p, q| p.same(q, Scope::Cta))
        }
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

/// What a model says of programs of these letters; with `flags`, which are defined, too.
fn reduced_by(model: &Model, learnt: &Learnt, flags: bool) -> Result<Reduced, String> {
    // What no program of these letters has cannot make it undefined.
    let undefined =
        |i: &usize| model.flags[*i].effect == Effect::Undefined && may_raise(model, *i, &learnt.test.program);
    let flags: Vec<usize> = (0..model.flags.len()).filter(undefined).filter(|_| flags).collect();
    let mut refused = None;
    let reduced = reduced(model, &flags, &learnt.pairs, |id| match &learnt.bases[&id] {
        Ok(bits) => bits.clone(),
        Err(why) => {
            refused = Some(why.clone());
            Bits::none(learnt.pairs.types * learnt.pairs.types * STANDINGS)
        }
    });
    refused.map_or(Ok(reduced), Err)
}

/// What a model says of programs of these letters, for the same reasons: equal for models of which none can tell them apart.
///
/// # Errors
/// Why it cannot judge such programs.
pub fn says(judged: Judged<'_>, alphabet: &Alphabet) -> Result<Says, String> {
    let learnt = judged.learnt(alphabet)?;
    let same = reduced_by(judged.model, &learnt, true)?.same();
    Ok(Says { same, becomes: learnt.becomes.clone() })
}

/// What a model says, and of which events.
#[derive(Debug, PartialEq)]
pub struct Says {
    same: Same,
    becomes: Vec<Vec<Event>>,
}

/// A program of two threads, each with every letter once, a line each.
///
/// # Errors
/// Why there is none.
pub fn sample(alphabet: &Alphabet, mapping: Option<&Mapping>) -> Result<LitmusTest, String> {
    let slot = |l: &crate::letters::Letter| {
        let location = l.kind.accesses().then_some(u8::from(l.kind.is_plain()));
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
