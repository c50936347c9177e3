//! Finds the loops of a thread's code, and gives each state of an unrolled thread a position.
//!
//! The instructions are put into a weak topological order. Every step of control flow leads to a
//! later instruction, or back to the head of a loop around both. A loop is a strongly connected
//! part of the code. It has one head, its entry; without the head it falls apart into instructions
//! and inner loops, which are ordered in the same way. The order of blocks in the text matters only
//! if control flow does not decide which comes first.
//!
//! # Invariants
//! - A loop is an interval of that order that begins with its head; any two are disjoint or nested,
//!   and have different heads.
//! - [`Position`]s of one thread are totally ordered, and every step of control flow goes to a
//!   larger one. A thread is unrolled in that order.
//!
//! # Sources
//! - F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993: weak topological
//!   orderings. In a loop with several entries, the first one in the text is the head.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use program::{Expr, Op, RegId, Thread, live_registers};
use verdict::Reason;

/// The deepest nesting of loops.
const MAX_NESTING: usize = 200;

/// One loop, as an interval of the order: `head ..= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    head: usize,
    end: usize,
}

impl Loop {
    fn contains(self, rank: usize) -> bool {
        (self.head..=self.end).contains(&rank)
    }
}

/// The place of a state in an unrolled thread. For each enclosing loop, outermost first, it has the
/// head and the iteration number; then the instruction. Heads and instructions are ranks in the
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Position {
    at: Vec<u32>,
    pc: u32,
}

impl Position {
    /// The instruction.
    pub(super) fn pc(&self) -> usize {
        self.pc as usize
    }

    /// The part of the position behind `beginning`, if it begins so.
    pub(super) fn suffix(&self, beginning: &[u32]) -> Option<&[u32]> {
        self.at.strip_prefix(beginning)
    }

    /// The loop iterations around it, outermost first, each as a prefix that identifies it.
    pub(super) fn iterations(&self) -> impl Iterator<Item = &[u32]> {
        (2..self.at.len()).step_by(2).map(|end| &self.at[..end])
    }

    /// The loop with its iteration number at `round`, as a prefix.
    pub(super) fn around(&self, round: usize) -> &[u32] {
        &self.at[..round]
    }

    /// The rank of that loop's head.
    pub(super) fn head(&self, round: usize) -> u32 {
        self.at[round - 1]
    }

    /// The number of that loop's iteration.
    pub(super) fn number(&self, round: usize) -> u32 {
        self.at[round]
    }

    /// The same place in another iteration.
    pub(super) fn at_number(&self, round: usize, number: u32) -> Position {
        let mut at = self.clone();
        at.at[round] = number;
        at
    }
}

/// A step from one position to another.
pub(super) enum FlowStep {
    /// A step to a later instruction, or to the end.
    Forward(Position),
    /// A step to another iteration of a loop, which begins there. `round` is the place of the
    /// loop's iteration number in the position.
    Back { to: Position, round: usize },
}

/// A jump back to `to`, which begins another iteration of a loop; its number is at `round` in the
/// position.
#[derive(Clone, Copy)]
pub(super) struct Jump<'p> {
    pub(super) to: &'p Position,
    pub(super) round: usize,
}

/// The loops of a thread; if it has any, also the registers needed at each instruction.
pub(super) struct Loops {
    /// Sorted with outer loops first.
    loops: Vec<Loop>,
    /// By instruction: its rank in the order. Without loops, the order of the text serves as well.
    ranks: Vec<usize>,
    /// By rank: its instruction.
    code: Vec<usize>,
    /// By branch: the loops that it can count the iterations of, each with the registers that
    /// change in the loop and decide the branch.
    tests: Vec<Vec<(Loop, Vec<RegId>)>>,
    live: Vec<Vec<bool>>,
}

impl Loops {
    /// Analyses a thread. `observed` gives the registers needed at the end.
    ///
    /// # Errors
    /// Its loops are nested too deeply.
    pub(super) fn new(thread: &Thread, observed: &[bool]) -> Result<Loops, Reason> {
        let n = thread.code.len();
        let mut all = Loops {
            loops: Vec::new(),
            ranks: Vec::new(),
            code: Vec::new(),
            tests: Vec::new(),
            live: Vec::new(),
        };
        // Without loops the tables, which are large, have no use.
        if !thread
            .code
            .iter()
            .enumerate()
            .any(|(pc, instr)| instr.op.jumps_back(pc))
        {
            return Ok(all);
        }
        let flow = FlowGraph::new(thread);
        all.arrange(&(0..n).collect(), &flow, 0)?;
        all.ranks = vec![0; n];
        for (rank, &pc) in all.code.iter().enumerate() {
            all.ranks[pc] = rank;
        }
        all.live = live_registers(thread, observed);
        all.tests = (0..n).map(|pc| all.counted_by(thread, &flow, pc)).collect();
        Ok(all)
    }

    /// Appends the instructions of a loop at this depth to the order.
    fn arrange(
        &mut self,
        part: &BTreeSet<usize>,
        flow: &FlowGraph,
        depth: usize,
    ) -> Result<(), Reason> {
        if depth > MAX_NESTING {
            return Err(Reason::Unsupported(format!(
                "loops nested deeper than {MAX_NESTING}"
            )));
        }
        let mut graph = DiGraphMap::<usize, ()>::new();
        for &pc in part {
            graph.add_node(pc);
            flow.next(pc).filter(|to| part.contains(to)).for_each(|to| {
                graph.add_edge(pc, to, ());
            });
        }
        let components: Vec<BTreeSet<usize>> = kosaraju_scc(&graph)
            .into_iter()
            .map(|c| c.into_iter().collect())
            .collect();
        let mut of = rustc_hash::FxHashMap::default();
        components
            .iter()
            .enumerate()
            .for_each(|(i, c)| of.extend(c.iter().map(|&pc| (pc, i))));
        let mut before = vec![0; components.len()];
        let leaving = |i: usize| {
            let steps = components[i].iter().flat_map(|&pc| flow.next(pc));
            steps
                .filter_map(|to| of.get(&to).copied())
                .filter(move |&j| j != i)
        };
        (0..components.len()).for_each(|i| leaving(i).for_each(|j| before[j] += 1));
        // The first ready component in the text comes first.
        let ready = |i: usize| Reverse((components[i].first().copied(), i));
        let mut open: BinaryHeap<_> = (0..components.len())
            .filter(|&i| before[i] == 0)
            .map(ready)
            .collect();
        while let Some(Reverse((_, i))) = open.pop() {
            let component = &components[i];
            match component.iter().copied().collect::<Vec<_>>()[..] {
                [only] if !flow.next(only).any(|to| to == only) => self.code.push(only),
                _ => {
                    let head = *component
                        .iter()
                        .find(|pc| {
                            flow.before[**pc]
                                .iter()
                                .any(|from| !component.contains(from))
                        })
                        .or(component.first())
                        .expect("not empty");
                    let (at, first) = (self.loops.len(), self.code.len());
                    self.loops.push(Loop {
                        head: first,
                        end: first,
                    });
                    self.code.push(head);
                    let mut rest = component.clone();
                    rest.remove(&head);
                    self.arrange(&rest, flow, depth + 1)?;
                    self.loops[at].end = self.code.len() - 1;
                }
            }
            for j in leaving(i) {
                before[j] -= 1;
                if before[j] == 0 {
                    open.push(ready(j));
                }
            }
        }
        Ok(())
    }

    /// The loops that a branch can count the iterations of. A register that changes in the loop
    /// decides the branch. One of its ways, but not the other, leads to a jump to the head within
    /// the iteration.
    fn counted_by(&self, thread: &Thread, flow: &FlowGraph, pc: usize) -> Vec<(Loop, Vec<RegId>)> {
        let Op::Branch { cond, target } = &thread.code[pc].op else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for &l in self.loops.iter().filter(|l| l.contains(self.ranks[pc])) {
            let body = &self.code[l.head..=l.end];
            let counters = changed(thread, body, cond);
            let head = self.code[l.head];
            let counts = !counters.is_empty()
                && flow.before[head]
                    .iter()
                    .filter(|&&from| self.ranks.get(from).is_some_and(|&rank| l.contains(rank)))
                    .any(|&from| {
                        let natural = flow.natural_loop(head, from);
                        natural.contains(&pc)
                            && natural.contains(target) != natural.contains(&(pc + 1))
                    });
            if counts {
                found.push((l, counters));
            }
        }
        found
    }

    /// Whether the instruction is the head of a loop.
    pub(super) fn is_head(&self, pc: usize) -> bool {
        self.ranks
            .get(pc)
            .is_some_and(|&rank| self.loops.iter().any(|l| l.head == rank))
    }

    /// A position in the numbering of the thread's loops, independent of the code between them.
    /// Gives the index of the loop at `round`, and the iteration numbers up to it.
    pub(super) fn number(&self, at: &Position, round: usize) -> Vec<u32> {
        let which = self
            .loops
            .iter()
            .position(|l| l.head as u32 == at.head(round));
        let rounds = (1..=round).step_by(2).map(|round| at.number(round));
        which
            .map(|which| which as u32)
            .into_iter()
            .chain(rounds)
            .collect()
    }

    /// The instruction of that rank.
    pub(super) fn instr(&self, rank: u32) -> usize {
        self.code
            .get(rank as usize)
            .copied()
            .unwrap_or(rank as usize)
    }

    /// The loops that a branch may count the iterations of. Each comes as the place of its
    /// iteration number in a position of that branch, and the registers that count.
    pub(super) fn tested(&self, pc: usize) -> impl Iterator<Item = (usize, &[RegId])> {
        let tests = self.tests.get(pc).into_iter().flatten();
        tests.map(move |(l, counters)| (self.round_of(l), counters.as_slice()))
    }

    /// The place of a loop's iteration number in a position of its instructions.
    fn round_of(&self, l: &Loop) -> usize {
        2 * self
            .loops
            .iter()
            .filter(|o| o.contains(l.head) && o.contains(l.end))
            .count()
            - 1
    }

    /// The number of loops around both instructions; the second may be the end.
    pub(super) fn around(&self, pc: usize, other: usize) -> usize {
        let (rank, other) = (self.rank(pc), self.rank(other));
        self.loops
            .iter()
            .filter(|l| l.contains(rank) && l.contains(other))
            .count()
    }

    /// Whether the thread has a loop at all.
    pub(super) fn any(&self) -> bool {
        !self.loops.is_empty()
    }

    /// Whether the value of a register at that instruction can still matter.
    pub(super) fn is_live(&self, pc: usize, reg: RegId) -> bool {
        self.live[pc][reg.0 as usize]
    }

    /// The position of an instruction reached without any loop iteration.
    pub(super) fn start(&self, pc: usize) -> Position {
        self.position(pc, |_| 0)
    }

    fn rank(&self, pc: usize) -> usize {
        self.ranks.get(pc).copied().unwrap_or(pc)
    }

    fn position(&self, pc: usize, mut count: impl FnMut(Loop) -> u32) -> Position {
        let rank = self.rank(pc);
        let mut at = Vec::new();
        for &l in self.loops.iter().filter(|l| l.contains(rank)) {
            at.push(l.head as u32);
            at.push(count(l));
        }
        at.push(rank as u32);
        Position { at, pc: pc as u32 }
    }

    /// The iteration number of a loop in a position with rank `rank`; 0 outside the loop.
    fn iteration(&self, from: &Position, rank: usize, l: Loop) -> u32 {
        let depth = self
            .loops
            .iter()
            .filter(|o| o.head <= l.head && l.end <= o.end)
            .count();
        if l.contains(rank) {
            from.at[2 * depth - 1]
        } else {
            0
        }
    }

    /// The step from a position to instruction `target`.
    pub(super) fn step(&self, from: &Position, target: usize) -> FlowStep {
        let (rank, to) = (self.rank(from.pc()), self.rank(target));
        if to > rank {
            return FlowStep::Forward(self.position(target, |l| self.iteration(from, rank, l)));
        }
        let innermost = *self
            .loops
            .iter()
            .rfind(|l| l.contains(to))
            .expect("a step back leads to the head of a loop");
        assert!(
            innermost.head == to && innermost.contains(rank),
            "a step back leads to a head around both"
        );
        let round = 2 * self.loops.iter().filter(|l| l.contains(to)).count() - 1;
        let next = self.iteration(from, rank, innermost) + 1;
        FlowStep::Back {
            to: self.position(target, |l| {
                if l == innermost {
                    next
                } else {
                    self.iteration(from, rank, l)
                }
            }),
            round,
        }
    }
}

/// The registers that these instructions compute and that an expression depends on through such
/// computations.
fn changed(thread: &Thread, body: &[usize], e: &Expr) -> Vec<RegId> {
    let (mut found, mut todo) = (BTreeSet::new(), Vec::new());
    e.registers(&mut |r| todo.push(r));
    while let Some(r) = todo.pop() {
        let mut values = body
            .iter()
            .filter_map(|pc| match &thread.code[*pc].op {
                Op::Assign { dst, value } if *dst == r => Some(value),
                _ => None,
            })
            .peekable();
        if values.peek().is_some() && found.insert(r) {
            values.for_each(|value| value.registers(&mut |r| todo.push(r)));
        }
    }
    found.into_iter().collect()
}

/// The steps of control flow in a thread's code, except those to its end.
struct FlowGraph {
    after: Vec<[Option<usize>; 2]>,
    before: Vec<Vec<usize>>,
}

impl FlowGraph {
    fn new(thread: &Thread) -> FlowGraph {
        let n = thread.code.len();
        let mut before = vec![Vec::new(); n];
        let mut after = Vec::with_capacity(n);
        for (pc, instr) in thread.code.iter().enumerate() {
            let next = Some(pc + 1).filter(|_| instr.op.falls_through());
            let ways = [next, instr.op.target().filter(|t| Some(*t) != next)]
                .map(|way| way.filter(|&to| to < n));
            ways.iter().flatten().for_each(|&to| before[to].push(pc));
            after.push(ways);
        }
        FlowGraph { after, before }
    }

    fn next(&self, pc: usize) -> impl Iterator<Item = usize> {
        self.after[pc].into_iter().flatten()
    }

    /// The natural loop: `head`, and the instructions from which `from` is reachable without
    /// passing `head`.
    fn natural_loop(&self, head: usize, from: usize) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = [head].into();
        let mut todo = vec![from];
        while let Some(pc) = todo.pop() {
            if found.insert(pc) {
                todo.extend(&self.before[pc]);
            }
        }
        found
    }
}
