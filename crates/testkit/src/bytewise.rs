//! An oracle for accesses of several sizes in PTX: evaluates the axioms over whole operations and
//! single bytes, and enumerates every execution.
//!
//! It shares nothing with the engines: neither the program IR, nor cells, nor the text of a model.
//! An operation is one event of any size, and a read has a source for each of its bytes. A "byte"
//! here is the smallest access of a program, so that reads of it do not tear; larger reads do.
//!
//! Source: PTX ISA 9.4, Memory Consistency Model: Memory Operations (Overlap), Morally strong
//! operations, Release and Acquire Patterns, the orders, and the axioms.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A small program over one object.
#[derive(Clone, Debug)]
pub struct Program {
    /// The number of bits of a "byte".
    pub bits: u32,
    /// The object is declared in words of this number of bytes.
    pub declared: usize,
    pub bytes: usize,
    pub threads: Vec<Thread>,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub cta: usize,
    pub code: Vec<Ins>,
}

#[derive(Clone, Debug)]
pub enum Ins {
    Load {
        order: &'static str,
        gpu: bool,
        at: Range<usize>,
    },
    Store {
        order: &'static str,
        gpu: bool,
        at: Range<usize>,
        value: Operand,
    },
    Atom {
        order: &'static str,
        gpu: bool,
        at: Range<usize>,
        op: &'static str,
        value: i64,
    },
    Fence {
        order: &'static str,
        gpu: bool,
    },
}

/// The value that a write stores.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    Const(i64),
    /// The result of an earlier load or atomic of the thread.
    Register(usize),
}

/// The possible behaviour of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// The outcomes of its consistent executions, as [`Program::text`] observes them.
    pub outcomes: BTreeSet<verdict::State>,
    /// Whether accesses to different bytes race in one of them.
    pub undefined: bool,
}

fn any<T: Copy>(rng: &mut Pcg64Mcg, list: &[T]) -> T {
    *list.choose(rng).expect("never empty")
}

/// Two or three threads over four bytes of memory.
pub fn generate(seed: u64) -> Program {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let bits = any(&mut rng, &[8, 16, 32, 32, 32]);
    let threads = rng.random_range(2..=3);
    let mut value = 0;
    let mut thread = |_| {
        let (mut code, mut registers) = (Vec::new(), 0);
        for _ in 0..rng.random_range(1..=if threads == 2 { 3 } else { 2 }) {
            let wide = rng.random_bool(0.4);
            let first = if wide {
                2 * rng.random_range(0..2)
            } else {
                any(&mut rng, &[0, 0, 1, 2, 2, 3])
            };
            let (at, gpu) = (first..first + 1 + usize::from(wide), rng.random_bool(0.8));
            value += 1;
            let whole = if wide { value << bits | value } else { value };
            code.push(match rng.random_range(0..12) {
                0..5 => {
                    registers += 1;
                    Ins::Load {
                        order: any(&mut rng, &["weak", "relaxed", "acquire", "acquire"]),
                        gpu,
                        at,
                    }
                }
                5..9 => {
                    let order = any(&mut rng, &["weak", "relaxed", "release", "release"]);
                    let copied = registers > 0 && rng.random_bool(0.2);
                    let value = if copied {
                        Operand::Register(rng.random_range(0..registers))
                    } else {
                        Operand::Const(whole)
                    };
                    Ins::Store {
                        order,
                        gpu,
                        at,
                        value,
                    }
                }
                9 if at.len() as u32 * bits >= 32 => {
                    registers += 1;
                    let order = any(&mut rng, &["relaxed", "acquire", "release", "acq_rel"]);
                    Ins::Atom {
                        order,
                        gpu,
                        at,
                        op: any(&mut rng, &["exch", "add"]),
                        value: whole,
                    }
                }
                9 => Ins::Load {
                    order: "relaxed",
                    gpu,
                    at: {
                        registers += 1;
                        at
                    },
                },
                _ => Ins::Fence {
                    order: any(&mut rng, &["acq_rel", "acq_rel", "sc"]),
                    gpu,
                },
            });
        }
        Thread {
            cta: rng.random_range(0..2),
            code,
        }
    };
    let threads = (0..threads).map(&mut thread).collect();
    Program {
        bits,
        declared: 1,
        bytes: 4,
        threads,
    }
}

impl Program {
    /// The program as a test that observes every register and the first bytes.
    pub fn text(&self) -> String {
        let (mut threads, mut observe) = (String::new(), vec![]);
        for (t, thread) in self.threads.iter().enumerate() {
            let (mut code, mut registers) = (String::new(), 0);
            for ins in &thread.code {
                let scope = |order: &str, gpu: bool| match (order, gpu) {
                    ("weak", _) => "weak".to_owned(),
                    (_, true) => format!("{order}.gpu"),
                    (_, false) => format!("{order}.cta"),
                };
                let bits = |at: &Range<usize>| at.len() as u32 * self.bits;
                let place = |at: &Range<usize>| format!("[x+{}]", at.start as u32 * self.bits / 8);
                match ins {
                    Ins::Load { order, gpu, at } => {
                        let order = scope(order, *gpu);
                        code += &format!("ld.{order}.u{} r{registers}, {};\n", bits(at), place(at));
                    }
                    Ins::Store {
                        order,
                        gpu,
                        at,
                        value,
                    } => {
                        let value = match value {
                            Operand::Const(n) => n.to_string(),
                            Operand::Register(r) => format!("r{r}"),
                        };
                        code += &format!(
                            "st.{}.u{} {}, {value};\n",
                            scope(order, *gpu),
                            bits(at),
                            place(at)
                        );
                    }
                    Ins::Atom {
                        order,
                        gpu,
                        at,
                        op,
                        value,
                    } => {
                        let (order, op) = (
                            scope(order, *gpu),
                            format!("{op}.{}{}", if *op == "exch" { "b" } else { "u" }, bits(at)),
                        );
                        code +=
                            &format!("atom.{order}.{op} r{registers}, {}, {value};\n", place(at));
                    }
                    Ins::Fence { order, gpu } => {
                        code += &format!("fence.{};\n", scope(order, *gpu))
                    }
                }
                if matches!(ins, Ins::Load { .. } | Ins::Atom { .. }) {
                    observe.push(format!("\"P{t}:r{registers}\""));
                    registers += 1;
                }
            }
            threads += &format!(
                "\n[[thread]]\ncta = {}\ncode = '''\n{code}'''\n",
                thread.cta
            );
        }
        let words = vec!["0"; self.bytes / self.declared].join(", ");
        let ty = self.bits * self.declared as u32;
        observe.push("\"x[0]\"".into());
        format!(
            "name = \"bytewise\"\nobserve = [{}]\n\n[memory]\nx = {{ init = [{words}], type = \"u{ty}\" }}\n{threads}",
            observe.join(", ")
        )
    }

    /// The possible behaviour.
    pub fn behaviour(&self) -> Behaviour {
        let events = Events::of(self);
        let mut behaviour = Behaviour {
            outcomes: BTreeSet::new(),
            undefined: false,
        };
        let mut source = BTreeMap::new();
        let open: Vec<(usize, usize)> = (0..events.list.len())
            .filter(|&e| events.list[e].kind == Kind::Read)
            .flat_map(|e| events.list[e].at.clone().map(move |byte| (e, byte)))
            .collect();
        events.sources(&open, &mut source, &mut behaviour);
        behaviour
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Init,
    Read,
    Write,
    Fence,
}

/// An operation, or a half of an atomic.
#[derive(Clone, Debug)]
struct Event {
    kind: Kind,
    thread: Option<usize>,
    cta: usize,
    at: Range<usize>,
    strong: bool,
    gpu: bool,
    acquire: bool,
    release: bool,
    sc: bool,
    /// For a write: the value that it stores; for the second half of an atomic, in terms of the
    /// value that the first half reads.
    writes: Option<Written>,
}

#[derive(Clone, Copy, Debug)]
enum Written {
    Const(i64),
    /// The value that this event reads.
    Copy(usize),
    /// That value plus a constant.
    Sum(usize, i64),
}

/// A relation: for each event, the set of its successors.
#[derive(Clone, Debug, PartialEq)]
struct Pairs(Vec<u32>);

impl Pairs {
    fn of(n: usize, holds: impl Fn(usize, usize) -> bool) -> Pairs {
        Pairs(
            (0..n)
                .map(|a| (0..n).filter(|&b| holds(a, b)).map(|b| 1 << b).sum())
                .collect(),
        )
    }
    fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 == 1
    }
    fn all(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let n = self.0.len();
        (0..n).flat_map(move |a| (0..n).filter(move |&b| self.has(a, b)).map(move |b| (a, b)))
    }
    fn or(&self, other: &Pairs) -> Pairs {
        Pairs(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }
    fn then(&self, other: &Pairs) -> Pairs {
        let row = |row: &u32| {
            (0..self.0.len())
                .filter(|b| row >> b & 1 == 1)
                .fold(0, |all, b| all | other.0[b])
        };
        Pairs(self.0.iter().map(row).collect())
    }
    fn closed(mut self) -> Pairs {
        loop {
            let next = self.or(&self.then(&self));
            if next == self {
                return self;
            }
            self = next;
        }
    }
    fn cyclic(&self) -> bool {
        let closed = self.clone().closed();
        (0..self.0.len()).any(|a| closed.has(a, a))
    }
}

fn overlap(a: &Event, b: &Event) -> bool {
    a.at.start < b.at.end && b.at.start < a.at.end
}

/// The operations of a program, and the fixed parts of their orders.
struct Events<'p> {
    program: &'p Program,
    list: Vec<Event>,
    /// Reads of registers, thread by thread.
    registers: Vec<Vec<usize>>,
    po: Pairs,
    rmw: Vec<(usize, usize)>,
    /// Morally strong pairs.
    ms: Pairs,
    /// The first and last operations of release and acquire patterns.
    releases: Vec<(usize, usize)>,
    acquires: Vec<(usize, usize)>,
    /// A value that one event reads determines a value that the other writes.
    dep: Pairs,
    /// Atomics that overlap in part.
    partial_atomics: Pairs,
}

impl<'p> Events<'p> {
    fn of(program: &'p Program) -> Events<'p> {
        let plain = Event {
            kind: Kind::Init,
            thread: None,
            cta: 0,
            at: 0..0,
            strong: false,
            gpu: false,
            acquire: false,
            release: false,
            sc: false,
            writes: Some(Written::Const(0)),
        };
        let mut list: Vec<Event> = (0..program.bytes)
            .map(|b| Event {
                at: b..b + 1,
                ..plain.clone()
            })
            .collect();
        let (mut registers, mut rmw) = (Vec::new(), Vec::new());
        for (t, thread) in program.threads.iter().enumerate() {
            let mut read: Vec<usize> = Vec::new();
            for ins in &thread.code {
                let event = |kind, order: &str, gpu: bool, at: &Range<usize>| Event {
                    kind,
                    thread: Some(t),
                    cta: thread.cta,
                    at: at.clone(),
                    strong: order != "weak",
                    gpu,
                    acquire: ["acquire", "acq_rel", "sc"].contains(&order) && kind != Kind::Write,
                    release: ["release", "acq_rel", "sc"].contains(&order) && kind != Kind::Read,
                    sc: order == "sc",
                    writes: None,
                };
                match ins {
                    Ins::Load { order, gpu, at } => {
                        read.push(list.len());
                        list.push(event(Kind::Read, order, *gpu, at));
                    }
                    Ins::Store {
                        order,
                        gpu,
                        at,
                        value,
                    } => {
                        let writes = Some(match *value {
                            Operand::Const(n) => Written::Const(n),
                            Operand::Register(r) => Written::Copy(read[r]),
                        });
                        list.push(Event {
                            writes,
                            ..event(Kind::Write, order, *gpu, at)
                        });
                    }
                    Ins::Atom {
                        order,
                        gpu,
                        at,
                        op,
                        value,
                    } => {
                        let r = list.len();
                        read.push(r);
                        rmw.push((r, r + 1));
                        list.push(event(Kind::Read, order, *gpu, at));
                        let writes = Some(match *op {
                            "exch" => Written::Const(*value),
                            _ => Written::Sum(r, *value),
                        });
                        list.push(Event {
                            writes,
                            ..event(Kind::Write, order, *gpu, at)
                        });
                    }
                    Ins::Fence { order, gpu } => {
                        list.push(event(Kind::Fence, order, *gpu, &(0..0)))
                    }
                }
            }
            registers.push(read);
        }
        let n = list.len();
        let (e, of) = (&list, |x: usize| &list[x]);
        let threads = |a: usize, b: usize| e[a].thread.is_some() && e[a].thread == e[b].thread;
        let po = Pairs::of(n, |a, b| a < b && threads(a, b));
        let mutual = |a: usize, b: usize| {
            let both = e[a].thread.is_some() && e[b].thread.is_some() && e[a].strong && e[b].strong;
            both && (e[a].cta == e[b].cta || e[a].gpu && e[b].gpu)
        };
        let memory = |x: usize| e[x].kind != Kind::Fence;
        let ms = Pairs::of(n, |a, b| {
            let scoped = threads(a, b) || mutual(a, b);
            a != b && scoped && (!memory(a) || !memory(b) || e[a].at == e[b].at)
        });
        let atomic = |x: usize| rmw.iter().any(|&(r, w)| x == r || x == w);
        let partial_atomics = Pairs::of(n, |a, b| {
            let both = atomic(a) && atomic(b) && (threads(a, b) || mutual(a, b));
            a != b && both && overlap(of(a), of(b)) && e[a].at != e[b].at
        });
        let strong = |x: usize, kind: Kind| e[x].kind == kind && e[x].strong;
        let all = || (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)));
        let releases = all().filter(|&(a, b)| match e[a].kind {
            _ if !e[a].release => false,
            Kind::Write => a == b || po.has(a, b) && strong(b, Kind::Write) && e[a].at == e[b].at,
            _ => po.has(a, b) && strong(b, Kind::Write),
        });
        let acquires = all().filter(|&(a, b)| match e[b].kind {
            _ if !e[b].acquire => false,
            Kind::Read => a == b || po.has(a, b) && strong(a, Kind::Read) && e[a].at == e[b].at,
            _ => po.has(a, b) && strong(a, Kind::Read),
        });
        let (releases, acquires) = (releases.collect(), acquires.collect());
        let dep = Pairs::of(
            n,
            |a, b| matches!(e[b].writes, Some(Written::Copy(r) | Written::Sum(r, _)) if r == a),
        );
        Events {
            program,
            registers,
            po,
            rmw,
            ms,
            releases,
            acquires,
            dep,
            partial_atomics,
            list,
        }
    }

    /// Enumerates all sources of the bytes that are read.
    fn sources(
        &self,
        open: &[(usize, usize)],
        source: &mut BTreeMap<(usize, usize), usize>,
        behaviour: &mut Behaviour,
    ) {
        let Some((&(read, byte), rest)) = open.split_first() else {
            return self.orders(source, behaviour);
        };
        for (w, event) in self.list.iter().enumerate() {
            let writes = matches!(event.kind, Kind::Write | Kind::Init) && event.at.contains(&byte);
            // Causality excludes a later write of the same thread; skipping it here saves time.
            if writes && !self.po.has(read, w) {
                source.insert((read, byte), w);
                self.sources(rest, source, behaviour);
            }
        }
        source.remove(&(read, byte));
    }

    /// Enumerates the orders of fences.
    fn orders(&self, source: &BTreeMap<(usize, usize), usize>, behaviour: &mut Behaviour) {
        let n = self.list.len();
        let rf = Pairs::of(n, |w, r| {
            source
                .iter()
                .any(|(&(read, _), &from)| (from, read) == (w, r))
        });
        if rf.or(&self.dep).cyclic() {
            return;
        }
        let strong_rf = Pairs::of(n, |w, r| rf.has(w, r) && self.ms.has(w, r));
        let rmw = Pairs::of(n, |a, b| self.rmw.contains(&(a, b)));
        let mut observed = strong_rf.clone();
        for _ in 0..self.rmw.len() {
            observed = observed.or(&observed.then(&rmw).then(&strong_rf));
        }
        let fence = |x: usize| self.list[x].kind == Kind::Fence && self.list[x].sc;
        let fences: Vec<(usize, usize)> = self
            .ms
            .all()
            .filter(|&(a, b)| a < b && fence(a) && fence(b))
            .collect();
        for choice in 0..1u32 << fences.len() {
            let sc = directed(n, &fences, choice).closed();
            let synchronizes = Pairs::of(n, |a, b| {
                let meet = |&(x, w): &(usize, usize)| {
                    x == a
                        && self
                            .acquires
                            .iter()
                            .any(|&(r, y)| y == b && observed.has(w, r))
                };
                sc.has(a, b) || self.ms.has(a, b) && self.releases.iter().any(meet)
            });
            let base = self.po.or(&synchronizes).closed();
            let against = base
                .all()
                .any(|(a, b)| fence(a) && fence(b) && self.ms.has(a, b) && !sc.has(a, b));
            if sc.cyclic() || base.cyclic() || against {
                continue;
            }
            let preserved = Pairs::of(n, |a, b| {
                base.has(a, b) && overlap(&self.list[a], &self.list[b])
            });
            let causality = preserved.or(&observed.then(&preserved));
            self.coherence(source, &rf, &causality, behaviour);
        }
    }

    /// Enumerates the coherence orders.
    fn coherence(
        &self,
        source: &BTreeMap<(usize, usize), usize>,
        rf: &Pairs,
        causality: &Pairs,
        behaviour: &mut Behaviour,
    ) {
        let (n, e) = (self.list.len(), &self.list);
        let write = |x: usize| matches!(e[x].kind, Kind::Write | Kind::Init);
        let writes = |a: usize, b: usize| write(a) && write(b) && overlap(&e[a], &e[b]);
        let fixed = Pairs::of(n, |a, b| {
            writes(a, b)
                && (causality.has(a, b) || e[a].kind == Kind::Init && e[b].kind == Kind::Write)
        });
        let related = |a: usize, b: usize| self.ms.has(a, b) || self.partial_atomics.has(a, b);
        let open: Vec<(usize, usize)> = (0..n)
            .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
            .filter(|&(a, b)| writes(a, b) && related(a, b) && !fixed.has(a, b) && !fixed.has(b, a))
            .collect();
        for choice in 0..1u32 << open.len() {
            let co = fixed.or(&directed(n, &open, choice)).closed();
            if (0..n).any(|a| co.has(a, a)) {
                continue;
            }
            let fr = Pairs::of(n, |r, w| {
                let overwritten = |(&(read, byte), &from): (&(usize, usize), &usize)| {
                    read == r && e[w].at.contains(&byte) && co.has(from, w)
                };
                write(w) && source.iter().any(overwritten)
            });
            if self.consistent(source, rf, causality, &co, &fr) {
                self.record(source, causality, &co, behaviour);
            }
        }
    }

    fn consistent(
        &self,
        source: &BTreeMap<(usize, usize), usize>,
        rf: &Pairs,
        causality: &Pairs,
        co: &Pairs,
        fr: &Pairs,
    ) -> bool {
        let (n, e) = (self.list.len(), &self.list);
        let comes_between = |pairs: &Pairs| {
            let between = |r: usize, w: usize, x: usize| {
                pairs.has(r, x) && fr.has(r, x) && pairs.has(x, w) && co.has(x, w)
            };
            self.rmw
                .iter()
                .any(|&(r, w)| (0..n).any(|x| between(r, w, x)))
        };
        let torn = source.iter().any(|(&(r, _), &w)| {
            let other = |(&(read, byte), &from): (&(usize, usize), &usize)| {
                read == r && e[w].at.contains(&byte) && co.has(from, w)
            };
            self.ms.has(w, r) && source.iter().any(other)
        });
        let per_location = Pairs::of(n, |a, b| {
            let communicates =
                rf.has(a, b) || co.has(a, b) && overlap(&e[a], &e[b]) || fr.has(a, b);
            self.ms.has(a, b) && communicates || self.po.has(a, b) && overlap(&e[a], &e[b])
        });
        let against = |com: &Pairs| com.all().any(|(a, b)| causality.has(b, a));
        !(comes_between(&self.ms)
            || comes_between(&self.partial_atomics)
            || torn
            || per_location.cyclic()
            || against(rf)
            || against(fr))
    }

    /// Records the behaviour of a consistent execution.
    fn record(
        &self,
        source: &BTreeMap<(usize, usize), usize>,
        causality: &Pairs,
        co: &Pairs,
        behaviour: &mut Behaviour,
    ) {
        let (n, e) = (self.list.len(), &self.list);
        let accesses = |x: usize| matches!(e[x].kind, Kind::Read | Kind::Write);
        let conflict = |a: usize, b: usize| {
            accesses(a) && accesses(b) && (e[a].kind == Kind::Write || e[b].kind == Kind::Write)
        };
        behaviour.undefined |= (0..n).any(|a| {
            let races = |b: usize| {
                conflict(a, b)
                    && overlap(&e[a], &e[b])
                    && e[a].at != e[b].at
                    && !causality.has(a, b)
                    && !causality.has(b, a)
            };
            (a + 1..n).any(races)
        });
        let mut state: verdict::State = Vec::new();
        for (t, registers) in self.registers.iter().enumerate() {
            for (r, &read) in registers.iter().enumerate() {
                state.push((
                    format!("P{t}:r{r}").into(),
                    self.read(source, read).to_string().into(),
                ));
            }
        }
        let mut finals = vec![Vec::new()];
        for byte in 0..self.program.declared {
            let writes = |w: usize| e[w].writes.is_some() && e[w].at.contains(&byte);
            let last: Vec<usize> = (0..n)
                .filter(|&w| writes(w) && !(0..n).any(|x| writes(x) && co.has(w, x)))
                .collect();
            let with = |bytes: &Vec<i64>| {
                let bytes = bytes.clone();
                let one =
                    |&w: &usize| [bytes.as_slice(), &[self.written(source, w, byte)]].concat();
                last.iter().map(one).collect::<Vec<_>>()
            };
            finals = finals.iter().flat_map(with).collect();
        }
        for bytes in finals {
            let mut state = state.clone();
            state.push(("x[0]".into(), self.whole(&bytes).to_string().into()));
            behaviour.outcomes.insert(state);
        }
    }

    fn whole(&self, bytes: &[i64]) -> i64 {
        bytes
            .iter()
            .rev()
            .fold(0, |high, byte| high << self.program.bits | byte)
    }

    /// The value that an event reads.
    fn read(&self, source: &BTreeMap<(usize, usize), usize>, read: usize) -> i64 {
        let byte = |byte: usize| self.written(source, source[&(read, byte)], byte);
        self.whole(&self.list[read].at.clone().map(byte).collect::<Vec<_>>())
    }

    /// The value that a write stores in a byte.
    fn written(&self, source: &BTreeMap<(usize, usize), usize>, write: usize, byte: usize) -> i64 {
        let value = match self.list[write].writes.expect("it writes") {
            Written::Const(value) => value,
            Written::Copy(read) => self.read(source, read),
            Written::Sum(read, more) => self.read(source, read) + more,
        };
        let bits = self.program.bits;
        value >> (bits * (byte - self.list[write].at.start) as u32) & ((1 << bits) - 1)
    }
}

/// Each pair in one of its directions.
fn directed(n: usize, pairs: &[(usize, usize)], choice: u32) -> Pairs {
    Pairs::of(n, |a, b| {
        let forward = pairs
            .iter()
            .position(|&p| p == (a, b))
            .is_some_and(|i| choice >> i & 1 == 0);
        forward
            || pairs
                .iter()
                .position(|&p| p == (b, a))
                .is_some_and(|i| choice >> i & 1 == 1)
    })
}
