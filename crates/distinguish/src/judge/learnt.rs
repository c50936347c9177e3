//! Learns the meaning of letters in a model, once per letter, from the skeleton of a program with
//! all letters.
//!
//! Programs of these letters are then assembled without parsing. Sets follow from the letters, and
//! relations from the positions of instructions.
//!
//! # Invariants
//! - The assembled bases equal those that [`Facts`] computes for the same program; tests compare
//!   them.
//! - A relation without a rule here is empty in such programs, or the model is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::letters::{AccessName, Alphabet, Letter};
use crate::reduced::{ComparableModel, ReducedModel, STANDINGS, TypePairs, TypeSet, reduced};
use crate::shape::{ProgramShape, ShapeSlot};
use cat::model::ir::{Model, NodeOp, TestEffect};
use cat::model::signature::{BaseId, OptionValue};
use engine::facts::Facts;
use engine::skeleton::base::Base;
use engine::skeleton::signature::{may_raise, row};
use engine::task::Task;
use front::litmus;
use front::mapping::Mapping;
use program::EventKind;
use program::litmus::LitmusTest;
use program::options::Setting;
use program::{Place, SCOPE_ROWS, Scope};

/// A model, and the way in which it judges programs of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct JudgeSetup<'a> {
    /// The model.
    pub model: &'a Model,
    /// The mapping to its dialect, if any.
    pub mapping: Option<&'static Mapping>,
    /// Options of the model.
    pub set: &'a [Setting],
    /// The learned letters, if available.
    pub learnt: Option<&'a Arc<LetterMeanings>>,
}

impl<'a> JudgeSetup<'a> {
    /// The same with another model.
    pub fn instead<'b>(&self, model: &'b Model) -> JudgeSetup<'b>
    where
        'a: 'b,
    {
        JudgeSetup { model, ..*self }
    }

    /// The learned letters; learns them if necessary.
    pub(crate) fn learnt(&self, alphabet: &Alphabet) -> Result<Arc<LetterMeanings>, String> {
        match self
            .learnt
            .filter(|learnt| learnt.options == self.model.options)
        {
            Some(learnt) => Ok(Arc::clone(learnt)),
            None => Ok(Arc::new(LetterMeanings::new(*self, alphabet)?)),
        }
    }
}

/// Relations that depend only on the positions of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PositionRelation {
    ProgramOrder,
    OneThread,
    Apart,
    OneLocation,
    OneAddress,
    Halves,
    /// The written value depends on the value read: in an addition, or in a store that is tied to
    /// earlier reads of its thread.
    Data,
    /// The execution of an event depends on the value read: after a branch, or in a
    /// compare-exchange.
    Control,
    /// Arrival and wait of the same barrier.
    Meeting,
    Inclusion,
    Group(Scope),
    OneGpu,
    Kernel,
    Initial,
    Empty,
}

/// The relations known by name; relations that such programs cannot have are empty.
const RELATIONS: &[(&str, PositionRelation)] = &[
    ("po", PositionRelation::ProgramOrder),
    ("int", PositionRelation::OneThread),
    ("ext", PositionRelation::Apart),
    ("loc", PositionRelation::OneLocation),
    ("vloc", PositionRelation::OneAddress),
    ("same-object", PositionRelation::OneLocation),
    ("rmw", PositionRelation::Halves),
    ("data", PositionRelation::Data),
    ("ctrl", PositionRelation::Control),
    ("syncbar", PositionRelation::Meeting),
    ("sr", PositionRelation::Inclusion),
    ("one-gpu", PositionRelation::OneGpu),
    ("skernel", PositionRelation::Kernel),
    ("asw", PositionRelation::Initial),
];

/// An event of a letter or of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LetterEvent {
    /// Its type: that of an initial write, or of an event of a letter.
    pub(super) ty: u16,
    pub(super) scope: Option<Scope>,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// In a program: its thread (`None` for an initial write), its instruction and its location.
    pub(super) thread: Option<u8>,
    pub(super) slot: u8,
    pub(super) location: Option<u8>,
    /// Whether it uses another virtual address than the location's name.
    pub(super) aliased: bool,
    /// In an addition: the written value depends on the value read.
    pub(super) adds: bool,
    /// In a compare-exchange: whether it writes depends on the value read.
    pub(super) compares: bool,
    /// A read with its value in a register.
    pub(super) tells: bool,
    /// For a write: its value depends on all tied reads. For a read: its value decides whether the
    /// thread continues.
    pub(super) tied: bool,
    /// The two halves of a barrier: it arrives, or it waits.
    pub(super) arrives: bool,
    pub(super) waits: bool,
}

/// The meaning of letters for models with equal skeleton options.
#[derive(Debug)]
pub struct LetterMeanings {
    /// A program with all letters.
    test: LitmusTest,
    options: Vec<OptionValue>,
    /// The events of each letter.
    pub(super) becomes: Vec<Vec<LetterEvent>>,
    /// For each compare-exchange letter, the letter that remains if it fails.
    pub(super) failing: Vec<Option<usize>>,
    pub(super) pairs: TypePairs,
    /// The possible placements of two threads: the groups that they share.
    pub(super) apart: Vec<Vec<bool>>,
    /// Base sets by type, base relations by pair; or the reason for which none is available.
    pub(super) bases: BTreeMap<BaseId, Result<TypeSet, String>>,
}

impl LetterMeanings {
    /// Learns the letters from a program that contains all of them.
    ///
    /// # Errors
    /// If there is no such program, or the model cannot judge it.
    pub fn new(judged: JudgeSetup<'_>, alphabet: &Alphabet) -> Result<LetterMeanings, String> {
        let model = judged.model;
        let test = sample(alphabet, judged.mapping)?;
        let mut facts = Facts::of(&Task::new(&test, model, judged.set, 1), None)
            .map_err(|reason| reason.to_string())?;
        let (initial, mut by_line) = events_by_line(&facts);
        // For each type, an event of the sample with this type, and its letter.
        let (atomic, plain) = initial
            .first()
            .zip(initial.last())
            .ok_or("no initial write")?;
        let mut types: Vec<(usize, Option<usize>)> = vec![(*atomic, None), (*plain, None)];
        // A fence may become nothing; its line then has no events.
        let first = test.program.threads[0]
            .code
            .first()
            .map_or(0, |i| i.line.number);
        let mut becomes = vec![Vec::new(); alphabet.letters.len()];
        for (l, letter) in alphabet.letters.iter().enumerate() {
            let events = by_line.remove(&(first + l as u32)).unwrap_or_default();
            becomes[l] = letter_events(&mut facts, model, letter, &events, types.len());
            types.extend(events.into_iter().map(|e| (e, Some(l))));
        }
        let two = alphabet.placements(2).into_iter();
        let mut placed: Vec<(Vec<bool>, Vec<Place>)> = two
            .map(|places| (groups(&places[0], &places[1]), places))
            .collect();
        placed.sort_by(|a, b| a.0.cmp(&b.0));
        placed.dedup_by(|a, b| a.0 == b.0);
        let apart: Vec<Vec<bool>> = placed.iter().map(|p| p.0.clone()).collect();
        let count = types.len();
        let mut pairs = TypePairs {
            types: count,
            possible: TypeSet::none(count * count * STANDINGS),
            inverse: [0; STANDINGS],
            own: 0,
        };
        (0..STANDINGS).for_each(|s| pairs.inverse[s] = (s & 1 | inverse(s >> 1) << 1) as u8);
        pairs.own = 1 << (OWN << 1) | 1 << (OWN << 1 | 1);
        let initial = [false, true].map(LetterEvent::initial);
        let of: Vec<LetterEvent> = initial
            .into_iter()
            .chain(becomes.iter().flatten().copied())
            .collect();
        let letter_of: Vec<Option<usize>> = types.iter().map(|t| t.1).collect();
        let examples = examples(&mut pairs, &of, &letter_of, &placed);
        let mut bases = BTreeMap::new();
        for node in &model.nodes {
            let NodeOp::Base(id) = node.op else { continue };
            let name = row(id).name;
            let bits = match facts.base(id) {
                _ if bases.contains_key(&id) => continue,
                Base::Set(set) => {
                    let mut bits = TypeSet::none(count);
                    (0..count)
                        .filter(|t| set.has(types[*t].0))
                        .for_each(|t| bits.add(t));
                    Ok(bits)
                }
                Base::Rel(found) => {
                    let is_empty = found.fixed.is_empty() && found.open.is_empty();
                    relation_bits(name, is_empty, count, &examples).ok_or_else(|| {
                        format!(
                            "`{}` uses `{name}`, and the search cannot compute it for programs of \
                            this alphabet",
                            model.name
                        )
                    })
                }
            };
            bases.insert(id, bits);
        }
        facts.open.clear();
        let options = model.options.clone();
        let failing = (0..alphabet.letters.len())
            .map(|l| alphabet.failing(l))
            .collect();
        Ok(LetterMeanings {
            test,
            options,
            becomes,
            failing,
            pairs,
            apart,
            bases,
        })
    }
}

/// The initial writes of a sample, and the events of its first thread by line.
fn events_by_line(facts: &Facts<'_>) -> (Vec<usize>, BTreeMap<u32, Vec<usize>>) {
    let mut by_line: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut initial = Vec::new();
    for (e, event) in facts.sk.events.iter().enumerate() {
        match event.thread {
            None => initial.push(e),
            Some(t) if t.0 == 0 => {
                by_line
                    .entry(facts.sk.program.thread(t).code[event.instr].line.number)
                    .or_default()
                    .push(e);
            }
            Some(_) => {}
        }
    }
    (initial, by_line)
}

/// Whether the relation contains the two halves of an instruction, if the model uses it.
fn relates_halves(
    facts: &mut Facts<'_>,
    model: &Model,
    name: &str,
    read: usize,
    write: usize,
) -> bool {
    let base = model.nodes.iter().find_map(|node| match node.op {
        NodeOp::Base(id) if row(id).name == name => Some(id),
        _ => None,
    });
    match base.map(|id| facts.base(id)) {
        Some(Base::Rel(rel)) => rel.fixed.has(read, write),
        _ => false,
    }
}

/// The events of a letter, given those of its line in the sample; `first` is the type of the first.
fn letter_events(
    facts: &mut Facts<'_>,
    model: &Model,
    letter: &Letter,
    events: &[usize],
    first: usize,
) -> Vec<LetterEvent> {
    let read = events
        .iter()
        .copied()
        .find(|&e| facts.sk.events[e].is_read());
    let write = events
        .iter()
        .copied()
        .find(|&e| facts.sk.events[e].is_write());
    let [adds, compares] = ["data", "ctrl"].map(|name| {
        read.zip(write)
            .is_some_and(|(read, write)| relates_halves(facts, model, name, read, write))
    });
    let mut found = Vec::new();
    for (i, &e) in events.iter().enumerate() {
        let event = &facts.sk.events[e];
        found.push(LetterEvent {
            ty: (first + i) as u16,
            scope: event.scope,
            reads: event.is_read(),
            writes: event.is_write(),
            thread: None,
            slot: 0,
            location: None,
            aliased: letter.name == AccessName::Alias,
            adds,
            compares,
            tells: event.is_read() && letter.kind.tells(),
            tied: letter.tied && (event.is_read() || event.is_write() && !letter.kind.reads()),
            arrives: event.kind == EventKind::Arrive,
            waits: event.kind == EventKind::Wait,
        });
    }
    found
}

/// Two events with a standing: the index of their types' pair, the events, their threads' places.
type Example<'p> = (usize, [(usize, LetterEvent); 2], &'p Vec<Place>);

/// For each pair of types and standing, two events in that relative position, if there are such.
/// Marks the pair as possible.
fn examples<'p>(
    pairs: &mut TypePairs,
    of: &[LetterEvent],
    letter_of: &[Option<usize>],
    placed: &'p [(Vec<bool>, Vec<Place>)],
) -> Vec<Example<'p>> {
    let count = of.len();
    let mut examples = Vec::new();
    for (a, b, standing) in (0..count).flat_map(|a| {
        (0..count).flat_map(move |b| (0..STANDINGS).map(move |standing| (a, b, standing)))
    }) {
        let letters = (letter_of[a], letter_of[b]);
        let Some(example) = example(&of[a], &of[b], letters, standing, placed.len()) else {
            continue;
        };
        let class = (standing >> 1).checked_sub(PLACED);
        let places = &placed[class.unwrap_or(0)].1;
        pairs.possible.add(pairs.at(a, b, standing));
        examples.push((pairs.at(a, b, standing), example, places));
    }
    examples
}

/// The pairs of a base relation, by its name. `None`: it has no rule and is not empty.
fn relation_bits(
    name: &str,
    is_empty: bool,
    count: usize,
    examples: &[Example<'_>],
) -> Option<TypeSet> {
    let group = SCOPE_ROWS
        .iter()
        .find(|row| row.groups.iter().flatten().any(|of| of.name == name));
    let relation = group
        .map(|row| PositionRelation::Group(row.scope))
        .or_else(|| RELATIONS.iter().find(|r| r.0 == name).map(|r| r.1));
    if relation.is_none() && !is_empty {
        return None;
    }
    let mut bits = TypeSet::none(count * count * STANDINGS);
    let relation = relation.unwrap_or(PositionRelation::Empty);
    for (at, [(i, a), (j, b)], places) in examples {
        let (a, b) = (NumberedEvent::new(*i, a), NumberedEvent::new(*j, b));
        if is_related(relation, a, b, places) {
            bits.add(*at);
        }
    }
    Some(bits)
}

/// The standing of an event to itself, and the first standing that encodes shared groups.
const OWN: usize = 0;
const PLACED: usize = 8;

/// The standing of the second event to the first, given that of the first to the second.
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

/// An event of a program with its number.
#[derive(Clone, Copy)]
pub(super) struct NumberedEvent<'e> {
    at: usize,
    pub(super) event: &'e LetterEvent,
}

impl<'e> NumberedEvent<'e> {
    pub(super) fn new(at: usize, event: &'e LetterEvent) -> Self {
        NumberedEvent { at, event }
    }
}

/// The relative position of two events. In one thread: whether they are in one instruction, and
/// which comes first. In different threads: the class of their placement. The last bit: whether
/// they access one location.
pub(super) fn standing(
    first: NumberedEvent<'_>,
    second: NumberedEvent<'_>,
    class: impl Fn(u8, u8) -> usize,
) -> usize {
    let NumberedEvent { at: i, event: a } = first;
    let NumberedEvent { at: j, event: b } = second;
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

/// Two events with these types and this standing, if such events exist.
fn example(
    a: &LetterEvent,
    b: &LetterEvent,
    letters: (Option<usize>, Option<usize>),
    standing: usize,
    classes: usize,
) -> Option<[(usize, LetterEvent); 2]> {
    let (how, one) = (standing >> 1, standing & 1 == 1);
    fn accesses(e: &LetterEvent) -> bool {
        e.reads || e.writes
    }
    let both = accesses(a) && accesses(b);
    fn thread(e: &LetterEvent, of: u8) -> Option<u8> {
        (!e.is_initial()).then_some(of)
    }
    let initial = (a.is_initial(), b.is_initial());
    let in_one = initial == (false, false) && letters.0 == letters.1 && one == both;
    let fits = match how {
        OWN => a.ty == b.ty && one == accesses(a),
        1 => in_one && a.ty < b.ty,
        2 => in_one && a.ty > b.ty,
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
    let of = |e: &LetterEvent, at: usize, t: u8, l: u8| LetterEvent {
        thread: thread(e, t),
        slot: slot(at),
        location: accesses(e).then_some(l),
        ..*e
    };
    let elsewhere = u8::from(!one && how != OWN);
    fits.then(|| [(i, of(a, i, 0, 0)), (j, of(b, j, other, elsewhere))])
}

/// The groups that two threads share.
pub(super) fn groups(p: &Place, q: &Place) -> Vec<bool> {
    let shared = SCOPE_ROWS[1..].iter().map(|row| p.same(q, row.scope));
    shared
        .chain([p.same_gpu(q), p.kernel == q.kernel])
        .collect()
}

impl LetterEvent {
    /// The initial write of a location, for plain accesses or atomic ones.
    pub(super) fn initial(plain: bool) -> LetterEvent {
        LetterEvent {
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

    pub(super) fn is_initial(&self) -> bool {
        self.ty < 2
    }
}

fn is_related(
    relation: PositionRelation,
    first: NumberedEvent<'_>,
    second: NumberedEvent<'_>,
    places: &[Place],
) -> bool {
    let NumberedEvent { at: i, event: a } = first;
    let NumberedEvent { at: j, event: b } = second;
    fn both(
        f: &dyn Fn(&Place, &Place) -> bool,
        places: &[Place],
        a_thread: &Option<u8>,
        b_thread: &Option<u8>,
    ) -> bool {
        match (*a_thread, *b_thread) {
            (Some(x), Some(y)) => x == y || f(&places[usize::from(x)], &places[usize::from(y)]),
            _ => false,
        }
    }
    let is_before = i < j && a.thread.is_some() && a.thread == b.thread;
    match relation {
        PositionRelation::ProgramOrder => is_before,
        PositionRelation::OneThread => a.thread == b.thread,
        PositionRelation::Apart => a.thread != b.thread,
        PositionRelation::OneLocation => a.location.is_some() && a.location == b.location,
        PositionRelation::OneAddress => {
            a.location.is_some() && a.location == b.location && a.aliased == b.aliased
        }
        PositionRelation::Data if a.slot == b.slot => {
            a.adds && is_related(PositionRelation::Halves, first, second, places)
        }
        PositionRelation::Data => is_before && a.tells && b.writes && b.tied,
        PositionRelation::Control if a.slot == b.slot => {
            a.compares && is_related(PositionRelation::Halves, first, second, places)
        }
        PositionRelation::Control => is_before && a.slot != b.slot && a.reads && a.tied,
        PositionRelation::Meeting => {
            let once = a.thread != b.thread || a.slot == b.slot;
            a.arrives
                && b.waits
                && once
                && both(&|p, q| p.same(q, Scope::Cta), places, &a.thread, &b.thread)
        }
        PositionRelation::Halves => {
            a.thread.is_some() && a.thread == b.thread && a.slot == b.slot && a.reads && b.writes
        }
        PositionRelation::Inclusion => match (a.scope, b.scope) {
            (Some(x), Some(y)) => both(
                &|p, q| p.same(q, x) && p.same(q, y),
                places,
                &a.thread,
                &b.thread,
            ),
            _ => false,
        },
        PositionRelation::Group(scope) => {
            both(&|p, q| p.same(q, scope), places, &a.thread, &b.thread)
        }
        PositionRelation::OneGpu => both(&Place::same_gpu, places, &a.thread, &b.thread),
        PositionRelation::Kernel => both(
            &|p, q| p.same_gpu(q) && p.kernel == q.kernel,
            places,
            &a.thread,
            &b.thread,
        ),
        PositionRelation::Initial => a.thread.is_none() && b.thread.is_some(),
        PositionRelation::Empty => false,
    }
}

/// Reduces a model to programs of these letters; with `flags`, including definedness.
pub(super) fn reduced_by(
    model: &Model,
    learnt: &LetterMeanings,
    flags: bool,
) -> Result<ReducedModel, String> {
    // A flag that no program of these letters can raise is dropped.
    let flags: Vec<usize> = (0..model.flags.len())
        .filter(|i| {
            model.flags[*i].effect == TestEffect::Undefined
                && may_raise(model, *i, &learnt.test.program)
        })
        .filter(|_| flags)
        .collect();
    let mut refused = None;
    let reduced = reduced(model, &flags, &learnt.pairs, |id| {
        match &learnt.bases[&id] {
            Ok(bits) => bits.clone(),
            Err(why) => {
                refused = Some(why.clone());
                TypeSet::none(learnt.pairs.types * learnt.pairs.types * STANDINGS)
            }
        }
    });
    refused.map_or(Ok(reduced), Err)
}

/// The reduced model in a comparable form. Two models with equal forms agree on all programs of
/// these letters.
///
/// # Errors
/// Why the model cannot judge such programs.
pub fn says(judged: JudgeSetup<'_>, alphabet: &Alphabet) -> Result<ModelSummary, String> {
    let learnt = judged.learnt(alphabet)?;
    let same = reduced_by(judged.model, &learnt, true)?.same();
    Ok(ModelSummary {
        same,
        becomes: learnt.becomes.clone(),
    })
}

/// A reduced model and the events of its letters.
#[derive(Debug, PartialEq)]
pub struct ModelSummary {
    same: ComparableModel,
    becomes: Vec<Vec<LetterEvent>>,
}

/// A program of two threads; each contains every letter once, one per line.
///
/// # Errors
/// If there is no such program.
pub fn sample(alphabet: &Alphabet, mapping: Option<&Mapping>) -> Result<LitmusTest, String> {
    let slots: Vec<ShapeSlot> = alphabet
        .letters
        .iter()
        .map(|l| {
            let location = l.kind.accesses().then_some(u8::from(l.kind.is_plain()));
            ShapeSlot {
                kind: l.kind,
                location,
            }
        })
        .collect();
    let shape = ProgramShape {
        threads: vec![slots.clone(), slots],
    };
    let letters: Vec<usize> = (0..alphabet.letters.len())
        .chain(0..alphabet.letters.len())
        .collect();
    let head = format!(
        "name = \"letters\"\ndialect = \"{}\"\n",
        alphabet.dialect.name()
    );
    let text = alphabet.test(
        &head,
        &shape,
        &[Place::device(0, 0), Place::device(0, 1)],
        &letters,
        None,
    );
    let test = read(&text)?;
    match mapping {
        Some(mapping) => mapping.lowered(&test),
        None => Ok(test),
    }
}

/// Parses a program that this module has written.
pub(super) fn read(text: &str) -> Result<LitmusTest, String> {
    let tests = litmus::parse("program.toml", text.as_bytes());
    tests
        .map_err(|errors: Vec<diag::Diagnostic>| {
            errors.first().map_or_else(
                || "the program cannot be read".to_owned(),
                |e| format!("{}: {text}", e.message),
            )
        })?
        .pop()
        .ok_or_else(|| "there is no program".to_owned())
}
