//! Generates programs: critical cycles in their customary shapes, with random orders, scopes,
//! fences and regions, and loose sequences of operations.
//!
//! Most programs are meant to be free of races. Most scopes include all threads, and most reads of
//! plain data come after a test of the awaited value.
//!
//! # Sources
//! - The names of shapes: Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014; Z6.U: Lahav,
//!   Vafeiadis, Kang, Hur, Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI 2017.

use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;

use super::{Flags, How, Lang, Loc, Order, Program, Scope, Stmt, Thread, Update, Val};

/// Shapes: threads separated by `|`; `W`, `R`, `U` (read-modify-write) with a location, `B` a
/// barrier.
const SHAPES: &[(&str, &str)] = &[
    ("MP", "Wx Wy | Ry Rx"),
    ("MP3", "Wx Wy | Ry Rx Wx"),
    ("SB", "Wx Ry | Wy Rx"),
    ("LB", "Rx Wy | Ry Wx"),
    ("S", "Wx Wy | Ry Wx"),
    ("R", "Wx Wy | Wy Rx"),
    ("2+2W", "Wx Wy | Wy Wx"),
    ("CoRR", "Wx | Rx Rx"),
    ("CoRW", "Wx | Rx Wx | Rx Rx"),
    ("WRC", "Wx | Rx Wy | Ry Rx"),
    ("RWC", "Wx | Rx Ry | Wy Rx"),
    ("WWC", "Wx | Rx Wy | Ry Wx"),
    ("ISA2", "Wx Wy | Ry Wz | Rz Rx"),
    ("3SB", "Wx Ry | Wy Rz | Wz Rx"),
    ("3LB", "Rx Wy | Ry Wz | Rz Wx"),
    ("Z6.U", "Wx Wy | Uy Ry | Wy Rx"),
    ("Z6.3", "Wx Wy | Wy Wz | Rz Rx"),
    ("IRIW", "Wx | Wy | Rx Ry | Ry Rx"),
    ("RelSeq", "Wx Wy Wy | Ry Rx"),
    ("RelSeq+U", "Wx Wy | Uy | Ry Rx"),
    ("RelSeq+U+W", "Wx Wy | Uy Wy | Ry Rx"),
    ("RelSeq+own", "Wx Wy | Uy | Uy Rx"),
    ("Lock", "Uy Wx Rx Wy | Uy Wx Wy"),
    ("Dekker+U", "Ux Ry | Uy Rx"),
    ("U+U", "Ux Ry | Ux Ry | Wy"),
    ("Bar-MP", "Wx B Wy | B Rx Ry"),
    ("Bar-WRC", "Wx B | B Wy | Ry Rx"),
    ("Bar-SB", "Wx B Ry | Wy B Rx"),
];

/// The percentage of programs that are loose sequences instead.
const LOOSE: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    Read(usize),
    Write(usize),
    Update(usize),
    Barrier,
}

/// The program of a seed.
pub fn program(lang: Lang, seed: u64) -> Program {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let (shape, slots) = slots(rng, lang);
    let count = 1 + slots
        .iter()
        .flatten()
        .filter_map(location)
        .max()
        .unwrap_or(0);
    // The places of threads: barriers need the first two in one group.
    let barrier = slots.iter().flatten().any(|s| *s == Slot::Barrier);
    let layout = rng.random_range(0..100);
    let place = |i: usize| match layout {
        _ if barrier && i < 2 => (0, 0),
        0..35 => (0, 0),
        35..80 => (0, i as u32),
        80..90 => (0, (i / 2) as u32),
        _ => ((i % 2) as u32, 0),
    };
    let places: Vec<(u32, u32)> = (0..slots.len()).map(place).collect();
    let one_group = places.iter().all(|p| *p == places[0]);
    let one_device = places.iter().all(|p| p.0 == places[0].0);
    let enough = match (one_group, one_device) {
        (true, _) => Scope::Group,
        (_, true) => Scope::Device,
        _ => Scope::All,
    };
    let locations: Vec<Loc> = (0..count)
        .map(|i| Loc {
            name: ["x", "y", "z"][i].into(),
            atomic: true,
            local: lang != Lang::C && one_group && rng.random_bool(0.25),
            fine: !one_device || rng.random_bool(0.3),
        })
        .collect();
    let wide = |rng: &mut Pcg64Mcg| {
        if rng.random_bool(0.75) {
            enough
        } else {
            any(rng, &[enough, Scope::Device, Scope::All])
        }
    };
    let mut maker = Maker {
        scopes: (0..count).map(|_| wide(rng)).collect(),
        fence: wide(rng),
        loose_scopes: rng.random_bool(0.2),
        fences: if rng.random_bool(0.5) { 0.3 } else { 0.05 },
        sc: *[0.1, 0.4, 0.8].choose(rng).expect("not empty"),
        lang,
        locations,
        written: vec![0; count],
        rng,
    };
    // Plain data: the location that the first thread writes first; most reads of it come after a
    // test.
    if maker.rng.random_bool(0.35) {
        maker.locations[0].atomic = false;
    }
    let guarded = maker.rng.random_bool(0.85);
    // Draws the values first, so that a reader can wait for any of them.
    let values: Vec<Vec<i64>> = slots
        .iter()
        .map(|t| t.iter().map(|s| maker.value(*s)).collect())
        .collect();
    let mut threads: Vec<Thread> = (slots.iter().zip(&values).zip(places).enumerate())
        .map(|(i, ((slots, values), (device, group)))| {
            let body = maker.thread(slots, values, guarded);
            Thread {
                name: format!("T{i}"),
                device,
                group,
                warp: None,
                body,
            }
        })
        .collect();
    if lang != Lang::C {
        meet_lanes(&mut threads, seed);
    }
    Program {
        lang,
        shape,
        locations: maker.locations,
        threads,
    }
}

/// The program of a seed, changed so that a kernel of one device can run it: all threads are on one
/// device, none hands over values as part of a group, and the barriers of a group are alike.
pub fn program_of_one_device(lang: Lang, seed: u64) -> Program {
    let mut program = program(lang, seed);
    let flags = program.threads.iter().find_map(|t| barrier(&t.body));
    for t in &mut program.threads {
        (t.group, t.device, t.warp) = (t.group + t.device, 0, None);
        t.body = of_one_device(std::mem::take(&mut t.body), flags);
    }
    program
}

/// The flags of the first barrier.
fn barrier(body: &[Stmt]) -> Option<Flags> {
    body.iter().find_map(|stmt| match stmt {
        Stmt::Barrier { flags } => Some(*flags),
        Stmt::If { body, .. } => barrier(body),
        _ => None,
    })
}

fn of_one_device(body: Vec<Stmt>, same: Option<Flags>) -> Vec<Stmt> {
    let changed = |stmt| match stmt {
        Stmt::Lanes { .. } => None,
        Stmt::Barrier { flags } => Some(Stmt::Barrier {
            flags: same.unwrap_or(flags),
        }),
        Stmt::If { reg, value, body } => Some(Stmt::If {
            reg,
            value,
            body: of_one_device(body, same),
        }),
        other => Some(other),
    };
    body.into_iter().filter_map(changed).collect()
}

/// In one of five programs, makes threads hand values to themselves, as lanes that are alone in
/// their warps. Some of these programs name the warps. All other choices of a seed stay the same.
fn meet_lanes(threads: &mut [Thread], seed: u64) {
    if seed % 5 != 2 {
        return;
    }
    let placed = seed.is_multiple_of(3);
    let rng = &mut Pcg64Mcg::seed_from_u64(!seed);
    for (i, t) in threads.iter_mut().enumerate() {
        t.warp = placed.then_some(i as u32);
        if i == 0 || rng.random_bool(0.6) {
            let [dst, value] = [0, 1].map(|_| rng.random_range(0..3));
            let at = rng.random_range(0..=t.body.len());
            t.body.insert(at, Stmt::Lanes { dst, value });
        }
    }
}

fn any<T: Copy>(rng: &mut Pcg64Mcg, list: &[T]) -> T {
    *list.choose(rng).expect("never empty")
}

fn location(slot: &Slot) -> Option<usize> {
    match slot {
        Slot::Read(l) | Slot::Write(l) | Slot::Update(l) => Some(*l),
        Slot::Barrier => None,
    }
}

fn slots(rng: &mut Pcg64Mcg, lang: Lang) -> (&'static str, Vec<Vec<Slot>>) {
    if rng.random_range(0..100) < LOOSE {
        let threads = rng.random_range(2..=3);
        let slot = |rng: &mut Pcg64Mcg| {
            let l = rng.random_range(0..2);
            match rng.random_range(0..10) {
                0..4 => Slot::Read(l),
                4..8 => Slot::Write(l),
                _ => Slot::Update(l),
            }
        };
        let list = |rng: &mut Pcg64Mcg| (0..rng.random_range(1..=3)).map(|_| slot(rng)).collect();
        return ("none", (0..threads).map(|_| list(rng)).collect());
    }
    let able: Vec<_> = SHAPES
        .iter()
        .filter(|s| lang != Lang::C || !s.1.contains('B'))
        .collect();
    let (name, text) = able.choose(rng).expect("not empty");
    let slot = |word: &str| {
        let l = word.as_bytes().get(1).map_or(0, |c| usize::from(c - b'x'));
        match word.as_bytes()[0] {
            b'R' => Slot::Read(l),
            b'W' => Slot::Write(l),
            b'U' => Slot::Update(l),
            _ => Slot::Barrier,
        }
    };
    (
        name,
        text.split('|')
            .map(|t| t.split_whitespace().map(slot).collect())
            .collect(),
    )
}

struct Maker<'a> {
    rng: &'a mut Pcg64Mcg,
    lang: Lang,
    locations: Vec<Loc>,
    /// By location: the usual scope of its atomics.
    scopes: Vec<Scope>,
    /// The usual scope of fences.
    fence: Scope,
    loose_scopes: bool,
    fences: f64,
    sc: f64,
    /// By location: the number of values given out so far.
    written: Vec<i64>,
}

impl Maker<'_> {
    /// The value that a slot writes: the next one of its location.
    fn value(&mut self, slot: Slot) -> i64 {
        match slot {
            Slot::Write(l) | Slot::Update(l) => {
                self.written[l] += 1;
                self.written[l]
            }
            _ => 0,
        }
    }

    fn scope(&mut self, mostly: Scope) -> Scope {
        if self.loose_scopes && self.rng.random_bool(0.3) {
            any(self.rng, &[Scope::Group, Scope::Device, Scope::All])
        } else {
            mostly
        }
    }

    fn how(&mut self, l: usize, orders: &[Order]) -> How {
        if !self.locations[l].atomic {
            return How {
                order: Order::Plain,
                scope: Scope::Group,
            };
        }
        let order = if self.rng.random_bool(self.sc) {
            Order::SeqCst
        } else {
            any(self.rng, orders)
        };
        let mostly = self.scopes[l];
        How {
            order,
            scope: self.scope(mostly),
        }
    }

    fn flags(&mut self) -> Flags {
        if self.rng.random_bool(0.5) {
            return Flags {
                global: true,
                local: true,
            };
        }
        let local = self.rng.random_bool(0.4);
        Flags {
            global: !local,
            local,
        }
    }

    fn fence(&mut self, body: &mut Vec<Stmt>) {
        if self.rng.random_bool(self.fences) {
            let orders = [
                Order::Acquire,
                Order::Release,
                Order::AcqRel,
                Order::SeqCst,
                Order::SeqCst,
            ];
            let (order, mostly) = (any(self.rng, &orders), self.fence);
            let how = How {
                order,
                scope: self.scope(mostly),
            };
            let flags = self.flags();
            body.push(Stmt::Fence { how, flags });
        }
    }

    /// The statements of a thread. After a read with a test, the rest is conditional.
    fn thread(&mut self, slots: &[Slot], values: &[i64], guarded: bool) -> Vec<Stmt> {
        let mut body = Vec::new();
        let Some((slot, rest)) = slots.split_first() else {
            return body;
        };
        let (value, later) = (values[0], &values[1..]);
        let dst = rest.len();
        let mut waited = None;
        match *slot {
            Slot::Read(l) => {
                let how = self.how(l, &[Order::Relaxed, Order::Acquire, Order::Acquire]);
                body.push(Stmt::Load { dst, loc: l, how });
                waited = self.locations[l].atomic.then_some(l);
            }
            Slot::Write(l) => {
                self.fence(&mut body);
                let how = self.how(l, &[Order::Relaxed, Order::Release, Order::Release]);
                body.push(Stmt::Store {
                    loc: l,
                    value: Val::Int(value),
                    how,
                });
            }
            Slot::Update(l) if !self.locations[l].atomic => {
                let how = self.how(l, &[]);
                body.push(Stmt::Store {
                    loc: l,
                    value: Val::Int(value),
                    how,
                });
            }
            Slot::Update(l) => {
                let how = self.how(
                    l,
                    &[
                        Order::Relaxed,
                        Order::Acquire,
                        Order::Release,
                        Order::AcqRel,
                    ],
                );
                let update = match self.rng.random_range(0..5) {
                    0 | 1 => Update::Add,
                    2 | 3 => Update::Exchange,
                    _ => {
                        let legal: &[Order] = match how.order {
                            Order::SeqCst => &[Order::Relaxed, Order::Acquire, Order::SeqCst],
                            Order::Acquire | Order::AcqRel => &[Order::Relaxed, Order::Acquire],
                            _ => &[Order::Relaxed],
                        };
                        Update::Cas(self.rng.random_range(0..=1), any(self.rng, legal))
                    }
                };
                let value = if update == Update::Add { 1 } else { value };
                body.push(Stmt::Rmw {
                    dst,
                    loc: l,
                    update,
                    value,
                    how,
                });
                waited = Some(l).filter(|_| !matches!(update, Update::Cas(..)));
            }
            Slot::Barrier => {
                let flags = self.flags();
                body.push(Stmt::Barrier { flags });
            }
        }
        let mut after = Vec::new();
        if waited.is_some() {
            self.fence(&mut after);
        }
        after.extend(self.thread(rest, later, guarded));
        // A barrier under a condition that other threads do not share is undefined.
        let plain_ahead = rest
            .iter()
            .filter_map(location)
            .any(|l| !self.locations[l].atomic);
        let able = !rest.contains(&Slot::Barrier) && !after.is_empty();
        match waited {
            Some(l)
                if able
                    && self.written[l] > 0
                    && (if plain_ahead {
                        guarded
                    } else {
                        self.rng.random_bool(0.15)
                    }) =>
            {
                let value = self.rng.random_range(1..=self.written[l]);
                body.push(Stmt::If {
                    reg: dst,
                    value,
                    body: after,
                });
            }
            _ => body.extend(after),
        }
        if self.lang == Lang::Cuda && self.rng.random_bool(0.05) {
            // A data dependency; it leaves few outcomes only in a model that excludes values out of
            // thin air.
            if let (Some(_), Some(Stmt::Store { value, .. })) = (waited, body.last_mut()) {
                *value = Val::Reg(dst);
            }
        }
        body
    }
}
