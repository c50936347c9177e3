//! Random kernels of one block, and an interpreter that explores their interleavings. The kernels
//! have rounds of ordinary accesses between barriers, and a counter from which threads draw
//! numbers. Branches, ends of loops and exits depend on values read.
//!
//! The interpreter shares nothing with the rest of the project: no front end, no skeleton, no
//! model. It keeps a vector clock for each thread (Flanagan, Freund, "FastTrack", PLDI 2009), which
//! only barriers advance.
//!
//! # Semantics
//! - If no interleaving has a data race, every execution that the model allows looks like one of
//!   them. Ordinary accesses have the values that barriers make known, and the counter is one
//!   location.
//! - A barrier without a count waits for all threads of the block that have not exited (PTX ISA
//!   9.4, bar); an exit makes nothing known. So if a barrier completes because of an exit, and
//!   several threads draw numbers, there may be more executions than interleavings. One thread may
//!   draw behind that barrier, and still before the other.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

use program::litmus::LitmusTest;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::made;

/// Registers of a thread that are observed, and the one that counts rounds.
const REGISTERS: usize = 3;
const ROUND: usize = REGISTERS;
/// Ordinary locations, and the counter behind them.
const LOCATIONS: [&str; 3] = ["x", "y", "z"];
const COUNTER: usize = LOCATIONS.len();
const MOST_THREADS: usize = 3;
/// The limit on explored states.
const MOST_STATES: usize = 60_000;

/// The value that a store writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    Int(i64),
    Reg(usize),
}

/// A register, whether it should be equal, and the value to compare with.
type Test = (usize, bool, i64);

/// Statements.
#[derive(Clone, Debug, PartialEq)]
enum Stmt {
    Store(usize, Operand),
    Load(usize, usize),
    /// Adds 1 to the counter, and returns the old value.
    Draw(usize),
    /// With this number of threads, or with all.
    Barrier(Option<usize>),
    If(Test, Vec<Stmt>),
    /// Statements for one thread only.
    Only(usize, Vec<Stmt>),
    /// At most two rounds, and a condition that ends them earlier.
    Twice(Vec<Stmt>, Option<(usize, Test)>),
    Exit(Test),
}

/// A kernel: the statements of each thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    threads: Vec<Vec<Stmt>>,
}

/// The next action of a thread.
#[derive(Clone, Debug)]
enum Step {
    Store(usize, Operand),
    Load(usize, usize),
    Draw(usize),
    Barrier(Option<usize>),
    /// Jumps there if the test fails.
    Unless(Test, usize),
    Clear(usize),
    Next(usize),
    Exit,
}

/// The possible behaviour.
#[derive(Debug, Default, PartialEq)]
pub struct Behaviour {
    /// Final values by name, sorted.
    pub outcomes: BTreeSet<verdict::State>,
    /// Whether some interleaving has a data race.
    pub racy: bool,
    /// Whether in some interleaving threads wait forever.
    pub stuck: bool,
    /// Whether in some interleaving a barrier completes because of an exit, and several threads
    /// draw numbers.
    pub loose: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    at: Vec<usize>,
    registers: Vec<[i64; REGISTERS + 1]>,
    memory: [i64; COUNTER + 1],
    /// By thread: the barrier at which it waits.
    waits: Vec<Option<Option<usize>>>,
    clocks: Vec<[u8; MOST_THREADS]>,
    /// By location and thread: the time of its last write and read, in the clock of that thread.
    written: [[u8; MOST_THREADS]; COUNTER],
    read: [[u8; MOST_THREADS]; COUNTER],
}

struct Body<'a> {
    rng: &'a mut Pcg64Mcg,
    threads: usize,
    value: i64,
    /// Whether only one thread draws numbers, and passes them to the others.
    lone: bool,
}

impl Body<'_> {
    fn test(&mut self) -> Test {
        (
            self.rng.random_range(0..REGISTERS),
            self.rng.random_bool(0.5),
            self.rng.random_range(0..3),
        )
    }

    fn operand(&mut self) -> Operand {
        self.value += 1;
        if self.rng.random_bool(0.4) {
            Operand::Reg(self.rng.random_range(0..REGISTERS))
        } else {
            Operand::Int(self.value % 3)
        }
    }

    fn block(&mut self, budget: usize, depth: usize) -> Vec<Stmt> {
        let mut block = Vec::new();
        let mut left = budget;
        while left > 0 {
            left -= 1;
            let register = self.rng.random_range(0..REGISTERS);
            let location = self.rng.random_range(0..LOCATIONS.len());
            let inner = self.rng.random_range(1..=left.clamp(1, 3));
            block.push(match self.rng.random_range(0..20) {
                0..3 => Stmt::Store(location, self.operand()),
                3..6 => Stmt::Load(register, location),
                6..8 if self.lone => Stmt::Only(
                    0,
                    vec![
                        Stmt::Draw(register),
                        Stmt::Store(location, Operand::Reg(register)),
                    ],
                ),
                6..8 => Stmt::Draw(register),
                8..12 => Stmt::Barrier(None),
                12 => Stmt::Barrier(Some(self.rng.random_range(2..=self.threads))),
                13 | 14 if depth < 2 => {
                    left = left.saturating_sub(inner);
                    Stmt::If(self.test(), self.block(inner, depth + 1))
                }
                15..17 if depth < 2 => {
                    left = left.saturating_sub(inner);
                    let thread = self.rng.random_range(0..self.threads);
                    Stmt::Only(thread, self.block(inner, 2))
                }
                17 if depth == 0 => {
                    let inner = left.clamp(1, 4);
                    left = left.saturating_sub(inner);
                    let body = self.block(inner, 1);
                    let ends = self.rng.random_bool(0.7);
                    let ends = ends.then(|| (self.rng.random_range(0..=body.len()), self.test()));
                    Stmt::Twice(body, ends)
                }
                18 => Stmt::Exit(self.test()),
                _ => Stmt::Barrier(None),
            });
        }
        block
    }
}

impl Kernel {
    /// The kernel of a seed.
    pub fn of(seed: u64) -> Kernel {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let threads = *[2, 2, 3].choose(&mut rng).expect("not empty");
        let budget = rng.random_range(4..=if threads == 2 { 9 } else { 7 });
        let alike = rng.random_bool(0.7);
        let lone = rng.random_bool(0.4);
        let mut body = Body {
            rng: &mut rng,
            threads,
            value: 0,
            lone,
        };
        let first = body.block(budget, 0);
        let of = |_: usize| {
            if alike {
                first.clone()
            } else {
                body.block(budget, 0)
            }
        };
        Kernel {
            threads: (0..threads).map(of).collect(),
        }
    }

    /// The kernel as a test.
    pub fn text(&self) -> String {
        let registers = (0..self.threads.len())
            .flat_map(|t| (0..REGISTERS).map(move |r| format!("\"T{t}:r{r}\"")));
        let observed: Vec<String> = registers
            .chain(
                LOCATIONS
                    .iter()
                    .chain(&["c"])
                    .map(|name| format!("\"{name}\"")),
            )
            .collect();
        let mut text = format!(
            "name = \"Phases\"\nobserve = [{}]\n\n[memory]\n",
            observed.join(", ")
        );
        LOCATIONS
            .iter()
            .chain(&["c"])
            .for_each(|name| writeln!(text, "{name} = 0").expect("text grows"));
        for (t, body) in self.threads.iter().enumerate() {
            let registers: Vec<String> = (0..REGISTERS).map(|r| format!("r{r} = 0")).collect();
            write!(
                text,
                "\n[[thread]]\nname = \"T{t}\"\ncta = 0\nregs = {{ {} }}\n",
                registers.join(", ")
            )
            .expect("text grows");
            text += "code = '''\n";
            for (at, step) in flat(t, body).iter().enumerate() {
                let operand = |operand: &Operand| match operand {
                    Operand::Int(v) => v.to_string(),
                    Operand::Reg(r) => register(*r),
                };
                let code = match step {
                    Step::Store(l, value) => {
                        format!("st.weak.u32 [{}], {}", LOCATIONS[*l], operand(value))
                    }
                    Step::Load(r, l) => {
                        format!("ld.weak.u32 {}, [{}]", register(*r), LOCATIONS[*l])
                    }
                    Step::Draw(r) => format!("atom.relaxed.cta.add.u32 {}, [c], 1", register(*r)),
                    Step::Barrier(None) => "bar.sync 0".to_owned(),
                    Step::Barrier(Some(count)) => format!("bar.sync {}, {count}", count - 1),
                    Step::Unless((r, equal, v), to) => {
                        let not = if *equal { "ne" } else { "eq" };
                        format!("setp.{not}.u32 p, {}, {v}; @p bra L{to}", register(*r))
                    }
                    Step::Clear(r) => format!("mov.u32 {}, 0", register(*r)),
                    Step::Next(r) => format!("add.u32 {0}, {0}, 1", register(*r)),
                    Step::Exit => "exit".to_owned(),
                };
                writeln!(text, "L{at}: {code};").expect("text grows");
            }
            text += "'''\n";
        }
        text
    }

    /// The kernel, read.
    pub fn read(&self) -> LitmusTest {
        made::read(&self.text())
    }

    /// The behaviour over all interleavings; `None` if there are too many.
    pub fn behaviour(&self) -> Option<Behaviour> {
        let code: Vec<Vec<Step>> = self
            .threads
            .iter()
            .enumerate()
            .map(|(t, body)| flat(t, body))
            .collect();
        let n = code.len();
        let mut clocks = vec![[0; MOST_THREADS]; n];
        (0..n).for_each(|t| clocks[t][t] = 1);
        let start = State {
            at: vec![0; n],
            registers: vec![[0; REGISTERS + 1]; n],
            memory: [0; COUNTER + 1],
            waits: vec![None; n],
            clocks,
            written: Default::default(),
            read: Default::default(),
        };
        let drawn = code
            .iter()
            .filter(|steps| steps.iter().any(|step| matches!(step, Step::Draw(_))))
            .count();
        let (mut all, mut seen, mut stack) = (Behaviour::default(), HashSet::new(), vec![start]);
        while let Some(state) = stack.pop() {
            if seen.len() > MOST_STATES {
                return None;
            }
            if !seen.insert(state.clone()) {
                continue;
            }
            let waits = |t: usize| state.waits[t].is_some();
            let has_ended = |t: usize| !waits(t) && matches!(code[t][state.at[t]], Step::Exit);
            let runs: Vec<usize> = (0..n).filter(|&t| !waits(t) && !has_ended(t)).collect();
            for &t in &runs {
                let mut next = state.clone();
                next.step(t, &code, &mut all);
                stack.push(next);
            }
            if runs.is_empty() {
                match (0..n).all(has_ended) {
                    true => _ = all.outcomes.insert(state.outcome()),
                    false => all.stuck = true,
                }
            }
        }
        all.loose &= drawn > 1;
        Some(all)
    }

    /// The smallest kernel that single deletions of statements reach and on which the property
    /// still holds.
    pub fn smallest(&self, holds: impl Fn(&Kernel) -> bool) -> Kernel {
        made::smallest(self, Kernel::smaller, holds)
    }

    fn smaller(&self) -> Vec<Kernel> {
        let fewer = (0..self.threads.len())
            .filter(|_| self.threads.len() > 2)
            .map(|t| {
                let mut kernel = self.clone();
                kernel.threads.remove(t);
                kernel
            });
        let shorter = (0..self.threads.len()).flat_map(|t| {
            without(&self.threads[t]).into_iter().map(move |body| {
                let mut kernel = self.clone();
                kernel.threads[t] = body;
                kernel
            })
        });
        fewer.chain(shorter).collect()
    }
}

/// A block without one of its statements, or with that statement's content in its place.
fn without(block: &[Stmt]) -> Vec<Vec<Stmt>> {
    let mut all = Vec::new();
    for (i, stmt) in block.iter().enumerate() {
        let with = |new: Vec<Stmt>| [&block[..i], &new, &block[i + 1..]].concat();
        all.push(with(Vec::new()));
        match stmt {
            Stmt::If(test, inner) => {
                all.push(with(inner.clone()));
                all.extend(
                    without(inner)
                        .into_iter()
                        .map(|inner| with(vec![Stmt::If(*test, inner)])),
                );
            }
            Stmt::Only(thread, inner) => {
                all.extend(
                    without(inner)
                        .into_iter()
                        .map(|inner| with(vec![Stmt::Only(*thread, inner)])),
                );
            }
            Stmt::Twice(inner, ends) => {
                all.push(with(inner.clone()));
                let ends = |inner: &Vec<Stmt>| ends.filter(|(at, _)| *at <= inner.len());
                all.extend(without(inner).into_iter().map(|inner| {
                    let ends = ends(&inner);
                    with(vec![Stmt::Twice(inner, ends)])
                }));
            }
            _ => {}
        }
    }
    all
}

fn register(r: usize) -> String {
    if r == ROUND {
        "i".to_owned()
    } else {
        format!("r{r}")
    }
}

/// The steps of a thread.
fn flat(thread: usize, body: &[Stmt]) -> Vec<Step> {
    let mut steps = Vec::new();
    emit(thread, body, &mut steps);
    steps.push(Step::Exit);
    steps
}

fn emit(thread: usize, block: &[Stmt], steps: &mut Vec<Step>) {
    let test = |steps: &mut Vec<Step>, of: Test| {
        steps.push(Step::Unless(of, 0));
        steps.len() - 1
    };
    let here = |steps: &mut Vec<Step>, at: usize| {
        let end = steps.len();
        if let Step::Unless(_, to) = &mut steps[at] {
            *to = end;
        }
    };
    for stmt in block {
        match stmt {
            Stmt::Store(l, value) => steps.push(Step::Store(*l, *value)),
            Stmt::Load(r, l) => steps.push(Step::Load(*r, *l)),
            Stmt::Draw(r) => steps.push(Step::Draw(*r)),
            Stmt::Barrier(count) => steps.push(Step::Barrier(*count)),
            Stmt::If(of, inner) => {
                let at = test(steps, *of);
                emit(thread, inner, steps);
                here(steps, at);
            }
            Stmt::Only(only, inner) if *only == thread => emit(thread, inner, steps),
            Stmt::Only(..) => {}
            Stmt::Exit(of) => {
                let at = test(steps, *of);
                steps.push(Step::Exit);
                here(steps, at);
            }
            Stmt::Twice(inner, ends) => {
                steps.push(Step::Clear(ROUND));
                let start = steps.len();
                let (at, of) = ends.unwrap_or((0, (ROUND, true, 9)));
                emit(thread, &inner[..at], steps);
                // The condition that ends the rounds: a register has the value.
                let end = test(steps, (of.0, !of.1, of.2));
                emit(thread, &inner[at..], steps);
                steps.push(Step::Next(ROUND));
                steps.push(Step::Unless((ROUND, true, 2), start));
                here(steps, end);
            }
        }
    }
}

impl State {
    fn step(&mut self, t: usize, code: &[Vec<Step>], all: &mut Behaviour) {
        let before = |clocks: &[u8; MOST_THREADS], all: &[u8; MOST_THREADS]| {
            (0..MOST_THREADS).all(|u| u == t || all[u] <= clocks[u])
        };
        let now = self.clocks[t][t];
        self.at[t] += 1;
        match &code[t][self.at[t] - 1] {
            Step::Store(l, value) => {
                let clocks = &self.clocks[t];
                all.racy |= !before(clocks, &self.written[*l]) || !before(clocks, &self.read[*l]);
                self.written[*l][t] = now;
                self.memory[*l] = match value {
                    Operand::Int(v) => *v,
                    Operand::Reg(r) => self.registers[t][*r],
                };
            }
            Step::Load(r, l) => {
                all.racy |= !before(&self.clocks[t], &self.written[*l]);
                self.read[*l][t] = now;
                self.registers[t][*r] = self.memory[*l];
            }
            Step::Draw(r) => {
                self.registers[t][*r] = self.memory[COUNTER];
                self.memory[COUNTER] += 1;
            }
            Step::Barrier(count) => self.waits[t] = Some(*count),
            Step::Unless((r, equal, v), to) => {
                if (self.registers[t][*r] == *v) != *equal {
                    self.at[t] = *to;
                }
            }
            Step::Clear(r) => self.registers[t][*r] = 0,
            Step::Next(r) => self.registers[t][*r] += 1,
            Step::Exit => unreachable!("who has ended takes no step"),
        }
        all.loose |= self.meet(code);
    }

    /// Releases the threads that have met; returns whether one of them would wait for a thread that
    /// has exited.
    fn meet(&mut self, code: &[Vec<Step>]) -> bool {
        let (n, mut by_exit) = (self.at.len(), false);
        let counts: BTreeSet<Option<usize>> = self.waits.iter().flatten().copied().collect();
        for count in counts {
            let here: Vec<usize> = (0..n).filter(|&t| self.waits[t] == Some(count)).collect();
            let ended = (0..n)
                .filter(|&t| self.waits[t].is_none() && matches!(code[t][self.at[t]], Step::Exit));
            if here.len() < count.unwrap_or(n - ended.count()) {
                continue;
            }
            by_exit |= count.is_none() && here.len() < n;
            let mut all = [0; MOST_THREADS];
            for &t in &here {
                (0..MOST_THREADS).for_each(|u| all[u] = all[u].max(self.clocks[t][u]));
            }
            for &t in &here {
                self.clocks[t] = all;
                self.clocks[t][t] += 1;
                self.waits[t] = None;
            }
        }
        by_exit
    }

    fn outcome(&self) -> verdict::State {
        let memory = LOCATIONS.iter().chain(&["c"]).zip(self.memory);
        let mut outcome: verdict::State = memory
            .map(|(name, value)| ((*name).into(), value.to_string().into()))
            .collect();
        for (t, registers) in self.registers.iter().enumerate() {
            outcome.extend(
                (0..REGISTERS)
                    .map(|r| (format!("T{t}:r{r}").into(), registers[r].to_string().into())),
            );
        }
        outcome.sort();
        outcome
    }
}
