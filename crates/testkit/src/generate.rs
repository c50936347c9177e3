//! Random litmus tests as text, and smaller versions of them.
//!
//! A [`Source`] is a program in a form that can be changed. [`Source::text`] writes it as a TOML
//! test. So every program goes through the front end, and a failing one is printed ready to be
//! committed.
//!
//! # Invariants
//! - Every generated program is valid input: the front end accepts it.
//! - All registers start at 0 and are observed, as is all memory.
//! - A loop changes memory only by constant stores and exchanges, so that a program has few states.
//! - Lanes meet only themselves: a thread is alone in its warp, which the test may name or not.
//! - No thread arrives twice at a barrier without a wait in between (undefined in PTX).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use program::litmus::LitmusTest;
use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;

use crate::made;

/// Orders of accesses, from the weakest.
pub const LOAD_ORDERS: &[&str] = &["weak", "relaxed", "acquire"];
/// Orders of stores, from the weakest.
pub const STORE_ORDERS: &[&str] = &["weak", "relaxed", "release"];
/// Scopes, from the narrowest.
pub const SCOPES: &[&str] = &["cta", "cluster", "gpu", "sys"];

/// A program that can be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Names of locations, and the locations that they alias.
    pub locations: Vec<(String, Option<String>)>,
    /// The threads.
    pub threads: Vec<ThreadSource>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSource {
    /// Its name, which stays when threads are permuted.
    pub name: String,
    /// Its GPU.
    pub gpu: u32,
    /// Its cluster on that GPU.
    pub cluster: Option<u32>,
    /// Its CTA on that GPU.
    pub cta: u32,
    /// Its warp in that CTA, if the test gives one.
    pub warp: Option<u32>,
    /// Its code.
    pub code: Vec<Line>,
}

/// One instruction, or a label in front of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Predicate register, and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// Its operation.
    pub op: Ins,
}

/// An operand: a register or a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// A register.
    Reg(String),
    /// A constant.
    Int(i64),
}

/// Instructions.
#[derive(Clone, Debug, PartialEq)]
pub enum Ins {
    /// `ld`
    Load {
        dst: String,
        loc: String,
        order: &'static str,
        scope: &'static str,
    },
    /// `st`
    Store {
        loc: String,
        value: Val,
        order: &'static str,
        scope: &'static str,
    },
    /// `atom` (with a destination) or `red`
    Rmw {
        dst: Option<String>,
        loc: String,
        op: &'static str,
        args: Vec<Val>,
        order: &'static str,
        scope: &'static str,
    },
    /// `fence`
    Fence {
        order: &'static str,
        scope: &'static str,
    },
    /// `bar.sync` or `bar.arrive`
    Barrier {
        arrive: bool,
        id: u32,
        count: Option<u32>,
    },
    /// `shfl.sync` and similar instructions, for the whole warp.
    Lanes {
        op: &'static str,
        dst: String,
        value: String,
    },
    /// `add` and so on, `mov`, `setp.*`
    Arith {
        op: &'static str,
        dst: String,
        args: Vec<Val>,
    },
    /// `beq` and so on
    Branch {
        op: &'static str,
        a: Val,
        b: Val,
        label: String,
    },
    /// `L:`
    Label(String),
    /// A wait for asynchronous operations or a mark of theirs, without any operation.
    Wait(&'static str),
}

/// Waits and marks that need no operation before them.
pub const WAITS: &[&str] = &[
    "cp.async.wait_all",
    "cp.async.wait_group 0",
    "cp.async.wait_group 1",
    "cp.async.commit_group",
    "cp.async.bulk.wait_group 0",
    "cp.async.bulk.wait_group 1",
    "cp.async.bulk.wait_group.read 0",
    "cp.async.bulk.commit_group",
    "wgmma.wait_group.sync.aligned 0",
    "wgmma.commit_group.sync.aligned",
];

impl Ins {
    /// Its order and scope, if they can be changed, with the list of possible orders.
    pub fn strength(
        &mut self,
    ) -> Option<(
        &'static [&'static str],
        &mut &'static str,
        &mut &'static str,
    )> {
        match self {
            Ins::Load { order, scope, .. } => Some((LOAD_ORDERS, order, scope)),
            Ins::Store { order, scope, .. } => Some((STORE_ORDERS, order, scope)),
            Ins::Rmw {
                dst: Some(_),
                order,
                scope,
                ..
            } => Some((&["relaxed", "acquire", "acq_rel"], order, scope)),
            Ins::Rmw { order, scope, .. } => Some((&["relaxed", "release"], order, scope)),
            Ins::Fence { order, scope } => Some((&["acquire", "acq_rel", "sc"], order, scope)),
            _ => None,
        }
    }

    fn registers(&self, found: &mut BTreeSet<String>) {
        let mut val = |v: &Val| {
            if let Val::Reg(r) = v {
                found.insert(r.clone());
            }
        };
        match self {
            Ins::Store { value, .. } => val(value),
            Ins::Lanes { value, .. } => val(&Val::Reg(value.clone())),
            Ins::Rmw { args, .. } | Ins::Arith { args, .. } => args.iter().for_each(val),
            Ins::Branch { a, b, .. } => [a, b].into_iter().for_each(val),
            _ => {}
        }
        match self {
            Ins::Load { dst, .. }
            | Ins::Arith { dst, .. }
            | Ins::Lanes { dst, .. }
            | Ins::Rmw { dst: Some(dst), .. } => {
                found.insert(dst.clone());
            }
            _ => {}
        }
    }
}

impl std::fmt::Display for Val {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Val::Reg(r) => f.write_str(r),
            Val::Int(v) => write!(f, "{v}"),
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((p, negated)) = &self.guard {
            write!(f, "@{}{p} ", if *negated { "!" } else { "" })?;
        }
        let strength = |order: &str, scope: &str| match order {
            "weak" => ".weak".to_string(),
            _ => format!(".{order}.{scope}"),
        };
        let list = |vals: &[Val]| {
            vals.iter()
                .map(Val::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match &self.op {
            Ins::Load {
                dst,
                loc,
                order,
                scope,
            } => write!(f, "ld{} {dst}, [{loc}];", strength(order, scope)),
            Ins::Store {
                loc,
                value,
                order,
                scope,
            } => write!(f, "st{} [{loc}], {value};", strength(order, scope)),
            Ins::Rmw {
                dst,
                loc,
                op,
                args,
                order,
                scope,
            } => match dst {
                Some(d) => write!(f, "atom.{order}.{scope}.{op} {d}, [{loc}], {};", list(args)),
                None => write!(f, "red.{order}.{scope}.{op} [{loc}], {};", list(args)),
            },
            Ins::Fence { order, scope } => write!(f, "fence.{order}.{scope};"),
            Ins::Barrier { arrive, id, count } => {
                write!(f, "bar.{} {id}", if *arrive { "arrive" } else { "sync" })?;
                match count {
                    Some(n) => write!(f, ", {n};"),
                    None => write!(f, ";"),
                }
            }
            Ins::Lanes { op, dst, value } => {
                let lane = if op.starts_with("shfl") {
                    "0, 31, "
                } else {
                    ""
                };
                write!(f, "{op} {dst}, {value}, {lane}0xffffffff;")
            }
            Ins::Arith { op, dst, args } => write!(f, "{op} {dst}, {};", list(args)),
            Ins::Branch { op, a, b, label } => write!(f, "{op} {a}, {b}, {label};"),
            Ins::Label(l) => write!(f, "{l}:"),
            Ins::Wait(text) => write!(f, "{text};"),
        }
    }
}

impl Source {
    /// The program as a TOML test.
    pub fn text(&self, name: &str) -> String {
        let mut out = format!("name = \"{name}\"\n");
        let mut observe: Vec<String> = Vec::new();
        let mut registers: Vec<BTreeSet<String>> = Vec::new();
        for t in &self.threads {
            let mut found = BTreeSet::new();
            for line in &t.code {
                line.op.registers(&mut found);
                if let Some((p, _)) = &line.guard {
                    found.insert(p.clone());
                }
            }
            observe.extend(
                found
                    .iter()
                    .filter(|r| !r.starts_with('p'))
                    .map(|r| format!("\"{}:{r}\"", t.name)),
            );
            registers.push(found);
        }
        observe.extend(
            self.locations
                .iter()
                .filter(|l| l.1.is_none())
                .map(|l| format!("\"{}\"", l.0)),
        );
        writeln!(out, "observe = [{}]\n\n[memory]", observe.join(", ")).expect("strings grow");
        for (name, alias) in &self.locations {
            match alias {
                None => writeln!(out, "{name} = 0").expect("strings grow"),
                Some(of) => writeln!(out, "{name} = {{ alias = \"{of}\" }}").expect("strings grow"),
            }
        }
        for (t, registers) in self.threads.iter().zip(registers) {
            write!(
                out,
                "\n[[thread]]\nname = \"{}\"\ngpu = {}\ncta = {}\n",
                t.name, t.gpu, t.cta
            )
            .expect("strings grow");
            if let Some(c) = t.cluster {
                writeln!(out, "cluster = {c}").expect("strings grow");
            }
            if let Some(w) = t.warp {
                writeln!(out, "warp = {w}").expect("strings grow");
            }
            if !registers.is_empty() {
                let regs: Vec<String> = registers.iter().map(|r| format!("{r} = 0")).collect();
                writeln!(out, "regs = {{ {} }}", regs.join(", ")).expect("strings grow");
            }
            out.push_str("code = '''\n");
            for line in &t.code {
                writeln!(out, "{line}").expect("strings grow");
            }
            out.push_str("'''\n");
        }
        out
    }

    /// Reads the program.
    ///
    /// # Panics
    /// If the front end rejects it: that is a defect of the front end or of this generator.
    pub fn read(&self, name: &str) -> LitmusTest {
        made::read(&self.text(name))
    }

    /// Programs that are a little smaller: without one thread or instruction (a label goes with its
    /// jumps).
    pub fn smaller(&self) -> Vec<Source> {
        let mut list = Vec::new();
        if self.threads.len() > 1 {
            for t in 0..self.threads.len() {
                let mut s = self.clone();
                s.threads.remove(t);
                list.push(s);
            }
        }
        for t in 0..self.threads.len() {
            for i in 0..self.threads[t].code.len() {
                let mut s = self.clone();
                let code = &mut s.threads[t].code;
                let gone = code.remove(i);
                if let Ins::Label(l) = gone.op {
                    code.retain(
                        |line| !matches!(&line.op, Ins::Branch { label, .. } if *label == l),
                    );
                }
                list.push(s);
            }
        }
        for t in 0..self.threads.len() {
            for i in 0..self.threads[t].code.len() {
                let line = &self.threads[t].code[i];
                if line.guard.is_some() {
                    let mut s = self.clone();
                    s.threads[t].code[i].guard = None;
                    list.push(s);
                }
            }
        }
        list
    }

    /// The smallest program that single deletions of threads and instructions reach and on which
    /// `fails` still holds.
    pub fn shrink(&self, fails: impl Fn(&Source) -> bool) -> Source {
        // A deletion can leave a predicate that nothing sets.
        made::smallest(self, Source::smaller, |s| {
            made::is_read(&s.text("smaller")) && fails(s)
        })
    }

    /// The same program with extra waits that have nothing to wait for.
    pub fn with_waits(&self, seed: u64) -> Source {
        let (mut s, rng) = (self.clone(), &mut Pcg64Mcg::seed_from_u64(!seed));
        for thread in &mut s.threads {
            for _ in 0..rng.random_range(0..=2) {
                let at = rng.random_range(0..=thread.code.len());
                thread.code.insert(
                    at,
                    Line {
                        guard: None,
                        op: Ins::Wait(any(rng, WAITS)),
                    },
                );
            }
        }
        s
    }

    /// The same program with its threads in another order.
    pub fn permuted(&self, rng: &mut Pcg64Mcg) -> Source {
        use rand::seq::SliceRandom;
        let mut s = self.clone();
        s.threads.shuffle(rng);
        s
    }

    /// The same program with other names for locations and registers, and the map from old to new
    /// names.
    pub fn renamed(&self) -> (Source, BTreeMap<String, String>) {
        let mut names = BTreeMap::new();
        let mut s = self.clone();
        let n = s.locations.len();
        for (i, (name, _)) in self.locations.iter().enumerate() {
            names.insert(name.clone(), format!("mem{}", n - i));
        }
        let new = |old: &String| names[old].clone();
        for (name, alias) in &mut s.locations {
            *name = new(name);
            *alias = alias.as_ref().map(new);
        }
        let reg = |r: &mut String| {
            if r.starts_with('r') {
                *r = format!("q{r}");
            }
        };
        let val = |v: &mut Val| {
            if let Val::Reg(r) = v {
                reg(r);
            }
        };
        let mut renamed = BTreeMap::new();
        for t in &mut s.threads {
            for line in &mut t.code {
                let mut found = BTreeSet::new();
                line.op.registers(&mut found);
                for r in found.into_iter().filter(|r| r.starts_with('r')) {
                    renamed.insert(format!("{}:{r}", t.name), format!("{}:q{r}", t.name));
                }
                match &mut line.op {
                    Ins::Load { loc, .. } | Ins::Store { loc, .. } | Ins::Rmw { loc, .. } => {
                        *loc = new(loc)
                    }
                    _ => {}
                }
                match &mut line.op {
                    Ins::Load { dst, .. } => reg(dst),
                    Ins::Lanes { dst, value, .. } => {
                        reg(dst);
                        reg(value);
                    }
                    Ins::Store { value, .. } => val(value),
                    Ins::Rmw { dst, args, .. } => {
                        dst.iter_mut().for_each(reg);
                        args.iter_mut().for_each(val);
                    }
                    Ins::Arith { dst, args, .. } => {
                        reg(dst);
                        args.iter_mut().for_each(val);
                    }
                    Ins::Branch { a, b, .. } => {
                        val(a);
                        val(b);
                    }
                    Ins::Fence { .. } | Ins::Barrier { .. } | Ins::Label(_) | Ins::Wait(_) => {}
                }
            }
        }
        names.extend(renamed);
        (s, names)
    }

    /// The same program with one change: a stronger access, atomic or fence, a wider scope, or a
    /// further fence. Also says what changed.
    pub fn strengthened(&self, rng: &mut Pcg64Mcg) -> (Source, String) {
        let mut s = self.clone();
        let t = rng.random_range(0..s.threads.len());
        let code = &mut s.threads[t].code;
        let able: Vec<usize> = (0..code.len())
            .filter(|&i| code[i].op.strength().is_some())
            .collect();
        if let Some(&i) = able.choose(rng).filter(|_| rng.random_bool(0.75)) {
            let before = code[i].to_string();
            let (orders, order, scope) = code[i].op.strength().expect("chosen for having one");
            let up = orders
                .iter()
                .position(|o| o == order)
                .map_or(1, |at| at + 1);
            let wider = SCOPES
                .iter()
                .position(|o| o == scope)
                .map_or(3, |at| at + 1);
            if rng.random_bool(0.5) && up < orders.len() {
                *order = orders[up];
            } else if *order != "weak" && wider < SCOPES.len() {
                *scope = SCOPES[wider];
            }
            let what = format!("{before}  ->  {}", code[i]);
            return (s, what);
        }
        let fence = Line {
            guard: None,
            op: Ins::Fence {
                order: any(rng, FENCES),
                scope: any(rng, SCOPES),
            },
        };
        let at = rng.random_range(0..=code.len());
        let what = format!("added {fence} at line {at} of {}", s.threads[t].name);
        s.threads[t].code.insert(at, fence);
        (s, what)
    }
}

const FENCES: &[&str] = &["sc", "acq_rel", "acquire", "release"];

fn any<T: Copy>(rng: &mut Pcg64Mcg, list: &[T]) -> T {
    *list.choose(rng).expect("never empty")
}

/// The size of a generated program.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// At most this many threads (at least two).
    pub threads: usize,
    /// At most this many instructions per thread, labels not counted.
    pub instructions: usize,
}

/// The program of a seed.
pub fn program(seed: u64, shape: Shape) -> Source {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let mut locations: Vec<(String, Option<String>)> = vec![("x".into(), None), ("y".into(), None)];
    if rng.random_bool(0.25) {
        locations.push(("z".into(), None));
    }
    if rng.random_bool(0.15) {
        locations.push(("w".into(), Some("x".into())));
    }
    let names: Vec<String> = locations.iter().map(|l| l.0.clone()).collect();
    let count = rng.random_range(2..=shape.threads.max(2));
    let scattered = rng.random_bool(0.5);
    let mut threads: Vec<ThreadSource> = (0..count)
        .map(|i| ThreadSource {
            name: format!("T{i}"),
            gpu: if scattered {
                u32::from(rng.random_bool(0.2))
            } else {
                0
            },
            cluster: None,
            cta: if scattered { rng.random_range(0..2) } else { 0 },
            warp: None,
            code: Vec::new(),
        })
        .collect();
    if rng.random_bool(0.2) {
        threads.iter_mut().for_each(|t| t.cluster = Some(0));
    }
    // Each barrier is used in one way: without a count, or with one.
    let barriers = rng.random_bool(0.3);
    let counts: [Option<u32>; 2] = std::array::from_fn(|_| {
        rng.random_bool(0.5)
            .then(|| rng.random_range(1..=count as u32))
    });
    for t in &mut threads {
        let budget = rng.random_range(1..=shape.instructions);
        let mut body = Body {
            rng,
            names: &names,
            counts: barriers.then_some(counts),
            labels: 0,
            arrived: [false; 2],
        };
        t.code = body.block(budget, 0);
    }
    meet_lanes(&mut threads, seed);
    Source { locations, threads }
}

/// In one of five programs, makes threads hand values to themselves, as lanes that are alone in
/// their warps. Some of these programs name the warps. All other choices of a seed stay the same.
fn meet_lanes(threads: &mut [ThreadSource], seed: u64) {
    if seed % 5 != 2 {
        return;
    }
    let placed = seed.is_multiple_of(3);
    let rng = &mut Pcg64Mcg::seed_from_u64(!seed);
    for (i, t) in threads.iter_mut().enumerate() {
        t.warp = placed.then_some(i as u32);
        if i == 0 || rng.random_bool(0.6) {
            let [dst, value] = [0, 1].map(|_| format!("r{}", rng.random_range(0..3)));
            let op = any(
                rng,
                &[
                    "shfl.sync.idx.b32",
                    "redux.sync.add.u32",
                    "match.any.sync.b32",
                ],
            );
            // Before all code or after it: other places may be inside a branch.
            let at = if rng.random_bool(0.5) {
                0
            } else {
                t.code.len()
            };
            t.code.insert(
                at,
                Line {
                    guard: None,
                    op: Ins::Lanes { op, dst, value },
                },
            );
        }
    }
}

/// A program of accesses with fences between them, of all orders and scopes. So one of two fences
/// of a thread can be morally strong with a fence of another thread while the other is not. Most
/// accesses are strong and reach the other threads, which are in separate CTAs: there are many
/// paths between the threads, in both directions.
pub fn fenced(seed: u64, shape: Shape) -> Source {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let names = ["x".to_string(), "y".to_string()];
    let count = if rng.random_bool(0.8) {
        2
    } else {
        shape.threads.max(2)
    };
    let apart = rng.random_bool(0.8);
    let mut circle = seed.is_multiple_of(4).then(|| circle(rng, &names));
    let thread = |t: usize| {
        let plain = |op| Line { guard: None, op };
        let mut body = Body {
            rng,
            names: &names,
            counts: None,
            labels: 0,
            arrived: [false; 2],
        };
        let mut code = vec![plain(body.strong())];
        // Two fences of the first thread are often morally strong with each other, and the first
        // one with no fence of another thread.
        let nested = t == 0 && body.rng.random_bool(0.6);
        for i in 0..body.rng.random_range(1 + usize::from(t == 0)..=2) {
            let orders: &[_] = if nested {
                &["sc"]
            } else {
                &["sc", "sc", "acq_rel", "acq_rel", "acquire", "release"]
            };
            let scopes = if nested {
                &SCOPES[2 * i..2 * i + 2]
            } else {
                SCOPES
            };
            code.push(plain(Ins::Fence {
                order: any(body.rng, orders),
                scope: any(body.rng, scopes),
            }));
            code.push(plain(body.strong()));
        }
        if let Some(part) = circle.as_mut().and_then(|all| all.get_mut(t)) {
            code = std::mem::take(part);
        }
        let (gpu, cluster, cta) = (0, None, if apart { t as u32 } else { 0 });
        ThreadSource {
            name: format!("T{t}"),
            gpu,
            cluster,
            cta,
            warp: None,
            code,
        }
    };
    let threads = (0..count).map(thread).collect();
    Source {
        locations: names.iter().map(|name| (name.clone(), None)).collect(),
        threads,
    }
}

/// Two threads, each with an exchange that can take the value of the other's last access. The first
/// has two fences, of which only the second is morally strong with the fence between the accesses
/// of the other thread: base causality would lead in a circle through both.
fn circle(rng: &mut Pcg64Mcg, names: &[String]) -> [Vec<Line>; 2] {
    let mut body = Body {
        rng,
        names,
        counts: None,
        labels: 0,
        arrived: [false; 2],
    };
    let between = body.strong();
    let [near, wide] = [&SCOPES[..2], &SCOPES[2..]].map(|scopes| any(body.rng, scopes));
    let fence = |order, scope| Ins::Fence { order, scope };
    let other = any(body.rng, &["acq_rel", "acq_rel", "sc"]);
    let last = match body.rng.random_bool(0.5) {
        true => Ins::Store {
            loc: names[0].clone(),
            value: Val::Int(1),
            order: "release",
            scope: any(body.rng, &SCOPES[2..]),
        },
        false => body.exchange(&names[0], &["release", "acq_rel"]),
    };
    let first = vec![
        body.exchange(&names[1], &["acquire", "acq_rel"]),
        fence("sc", near),
        between,
        fence("sc", wide),
        last,
    ];
    let second = vec![
        body.exchange(&names[0], &["relaxed", "acquire"]),
        fence(other, any(body.rng, &SCOPES[2..])),
        body.exchange(&names[1], &["relaxed", "release"]),
    ];
    [first, second].map(|code| {
        code.into_iter()
            .map(|op| Line { guard: None, op })
            .collect()
    })
}

struct Body<'a> {
    rng: &'a mut Pcg64Mcg,
    names: &'a [String],
    counts: Option<[Option<u32>; 2]>,
    labels: usize,
    arrived: [bool; 2],
}

impl Body<'_> {
    fn reg(&mut self) -> String {
        format!("r{}", self.rng.random_range(0..3))
    }

    fn loc(&mut self) -> String {
        self.names.choose(self.rng).expect("never empty").clone()
    }

    fn val(&mut self) -> Val {
        if self.rng.random_bool(0.3) {
            Val::Reg(self.reg())
        } else {
            Val::Int(self.rng.random_range(1..=2))
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn block(&mut self, mut budget: usize, depth: usize) -> Vec<Line> {
        let mut code = Vec::new();
        let plain = |op| Line { guard: None, op };
        while budget > 0 {
            let kind = self.rng.random_range(0..100);
            if kind < 14 && budget >= 2 && depth < 2 {
                // A forward branch, perhaps with an `else`.
                let inner = self.rng.random_range(1..budget);
                let (skip, end) = (self.label(), self.label());
                let op = any(self.rng, &["beq", "bne", "blt", "bge", "bgt", "ble"]);
                let (a, b) = (Val::Reg(self.reg()), Val::Int(self.rng.random_range(0..=2)));
                code.push(plain(Ins::Branch {
                    op,
                    a,
                    b,
                    label: skip.clone(),
                }));
                code.extend(self.block(inner, depth + 1));
                budget -= 1 + inner;
                if budget > 0 && self.rng.random_bool(0.5) {
                    code.push(plain(Ins::Branch {
                        op: "beq",
                        a: Val::Int(0),
                        b: Val::Int(0),
                        label: end.clone(),
                    }));
                    code.push(plain(Ins::Label(skip)));
                    let other = self.rng.random_range(1..=budget);
                    code.extend(self.block(other, depth + 1));
                    budget -= other;
                    code.push(plain(Ins::Label(end)));
                } else {
                    code.push(plain(Ins::Label(skip)));
                }
            } else if kind < 20 && budget >= 2 && depth == 0 {
                budget -= 2;
                self.repeat(&mut code);
            } else if kind < 26 && budget >= 2 {
                // A predicated instruction.
                let p = format!("p{}", self.rng.random_range(0..2));
                let op = any(self.rng, &["setp.eq", "setp.ne", "setp.lt", "setp.ge"]);
                let args = vec![Val::Reg(self.reg()), Val::Int(self.rng.random_range(0..=2))];
                code.push(plain(Ins::Arith {
                    op,
                    dst: p.clone(),
                    args,
                }));
                let mut line = self.simple();
                line.guard = Some((p, self.rng.random_bool(0.4)));
                code.push(line);
                budget -= 2;
            } else {
                code.push(self.simple());
                budget -= 1;
            }
        }
        code
    }

    /// A loop that waits for a value, or has a counter or an attempt that may fail.
    fn repeat(&mut self, code: &mut Vec<Line>) {
        let plain = |op| Line { guard: None, op };
        let head = self.label();
        let (loc, dst) = (self.loc(), self.reg());
        let (order, scope) = (any(self.rng, LOAD_ORDERS), any(self.rng, SCOPES));
        code.push(plain(Ins::Label(head.clone())));
        match self.rng.random_range(0..5) {
            0 | 1 => {
                code.push(plain(Ins::Load {
                    dst: dst.clone(),
                    loc,
                    order,
                    scope,
                }));
                let op = any(self.rng, &["beq", "bne"]);
                let b = Val::Int(self.rng.random_range(0..=1));
                code.push(plain(Ins::Branch {
                    op,
                    a: Val::Reg(dst),
                    b,
                    label: head,
                }));
            }
            2 => {
                let order = any(self.rng, &["relaxed", "acquire", "release", "acq_rel"]);
                let (op, args) = if self.rng.random_bool(0.5) {
                    ("cas", vec![Val::Int(0), Val::Int(1)])
                } else {
                    ("exch", vec![Val::Int(1)])
                };
                code.push(plain(Ins::Rmw {
                    dst: Some(dst.clone()),
                    loc,
                    op,
                    args,
                    order,
                    scope,
                }));
                code.push(plain(Ins::Branch {
                    op: "bne",
                    a: Val::Reg(dst),
                    b: Val::Int(0),
                    label: head,
                }));
            }
            _ => {
                // `c` counts to two; registers of this name belong to loops only.
                let c = format!("rc{}", self.labels);
                if self.rng.random_bool(0.5) {
                    code.push(plain(Ins::Load {
                        dst,
                        loc,
                        order,
                        scope,
                    }));
                } else {
                    let order = any(self.rng, STORE_ORDERS);
                    code.push(plain(Ins::Store {
                        loc,
                        value: Val::Reg(c.clone()),
                        order,
                        scope,
                    }));
                }
                let add = vec![Val::Reg(c.clone()), Val::Int(1)];
                code.push(plain(Ins::Arith {
                    op: "add",
                    dst: c.clone(),
                    args: add,
                }));
                code.push(plain(Ins::Branch {
                    op: "blt",
                    a: Val::Reg(c),
                    b: Val::Int(2),
                    label: head,
                }));
            }
        }
    }

    /// An exchange that reaches other CTAs.
    fn exchange(&mut self, loc: &str, orders: &[&'static str]) -> Ins {
        Ins::Rmw {
            dst: Some(self.reg()),
            loc: loc.to_owned(),
            op: "exch",
            args: vec![Val::Int(1)],
            order: any(self.rng, orders),
            scope: any(self.rng, &SCOPES[2..]),
        }
    }

    /// An access that is usually strong and usually reaches other CTAs.
    fn strong(&mut self) -> Ins {
        let wide = self.rng.random_bool(0.9);
        let scope = any(self.rng, if wide { &SCOPES[2..] } else { SCOPES });
        let (loc, weak) = (self.loc(), usize::from(self.rng.random_bool(0.9)));
        match self.rng.random_range(0..4) {
            0 => Ins::Load {
                dst: self.reg(),
                loc,
                order: any(self.rng, &LOAD_ORDERS[weak..]),
                scope,
            },
            1 => Ins::Store {
                loc,
                value: self.val(),
                order: any(self.rng, &STORE_ORDERS[weak..]),
                scope,
            },
            _ => {
                let order = any(self.rng, &["relaxed", "acquire", "release", "acq_rel"]);
                let op = any(self.rng, &["exch", "add"]);
                Ins::Rmw {
                    dst: Some(self.reg()),
                    loc,
                    op,
                    args: vec![self.val()],
                    order,
                    scope,
                }
            }
        }
    }

    fn simple(&mut self) -> Line {
        let scope = any(self.rng, SCOPES);
        let op = match self.rng.random_range(0..100) {
            0..34 => Ins::Load {
                dst: self.reg(),
                loc: self.loc(),
                order: any(self.rng, LOAD_ORDERS),
                scope,
            },
            34..64 => Ins::Store {
                loc: self.loc(),
                value: self.val(),
                order: any(self.rng, STORE_ORDERS),
                scope,
            },
            64..78 => {
                let order = any(self.rng, &["relaxed", "acquire", "release", "acq_rel"]);
                let (dst, loc) = (Some(self.reg()), self.loc());
                match self.rng.random_range(0..4) {
                    0 => Ins::Rmw {
                        dst,
                        loc,
                        op: "add",
                        args: vec![self.val()],
                        order,
                        scope,
                    },
                    1 => Ins::Rmw {
                        dst,
                        loc,
                        op: "exch",
                        args: vec![self.val()],
                        order,
                        scope,
                    },
                    2 => {
                        let args = vec![Val::Int(self.rng.random_range(0..=1)), self.val()];
                        Ins::Rmw {
                            dst,
                            loc,
                            op: "cas",
                            args,
                            order,
                            scope,
                        }
                    }
                    _ => {
                        let (op, order) = (
                            any(self.rng, &["add", "max", "xor"]),
                            any(self.rng, &["relaxed", "release"]),
                        );
                        Ins::Rmw {
                            dst: None,
                            loc,
                            op,
                            args: vec![self.val()],
                            order,
                            scope,
                        }
                    }
                }
            }
            78..88 => Ins::Fence {
                order: any(self.rng, FENCES),
                scope,
            },
            88..95 if self.counts.is_some() => self.barrier(),
            _ => {
                let dst = self.reg();
                if self.rng.random_bool(0.5) {
                    Ins::Arith {
                        op: "mov",
                        dst,
                        args: vec![self.val()],
                    }
                } else {
                    let op = any(self.rng, &["add", "sub", "xor", "and", "mul"]);
                    let args = vec![Val::Reg(self.reg()), self.val()];
                    Ins::Arith { op, dst, args }
                }
            }
        };
        Line { guard: None, op }
    }

    fn barrier(&mut self) -> Ins {
        let id = self.rng.random_range(0..2usize);
        let count = self.counts.and_then(|c| c[id]);
        if self.arrived[id] {
            return Ins::Fence {
                order: "sc",
                scope: "cta",
            };
        }
        let arrive = count.is_some() && self.rng.random_bool(0.25);
        self.arrived[id] = arrive;
        Ins::Barrier {
            arrive,
            id: id as u32,
            count,
        }
    }
}
