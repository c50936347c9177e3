//! Puts the blocks of a thread in an order in which each loop is one range that begins with its
//! header.
//!
//! Compilers rotate loops and move blocks out of line, so a loop may be entered in the middle of
//! its range. Code that already is in order stays as it is.
//!
//! # Invariants
//! - The new code has the same runs as the old one.
//! - A loop with two entries has no such order. The code stays, and [`into_a_loop`] reports a
//!   branch into the loop.

use std::collections::{BTreeMap, BTreeSet};

use program::{Expr, Instr, Op};

/// Code in order.
pub(crate) struct CodeOrder {
    pub(crate) code: Vec<Instr>,
    /// For each instruction, its index in the code as it was.
    pub(crate) origin: Vec<usize>,
}

/// Puts code in order.
pub(crate) fn in_order(code: &[Instr]) -> CodeOrder {
    let as_it_is = || CodeOrder {
        code: code.to_vec(),
        origin: (0..code.len()).collect(),
    };
    if into_a_loop(code, &loops(code)).is_none() {
        return as_it_is();
    }
    let blocks = Blocks::of(code);
    let mut order = Vec::new();
    match blocks.arrange(&blocks.reachable(), 0, &mut order) {
        Some(()) => blocks.written(code, &order),
        None => as_it_is(),
    }
}

/// The loops: headers, each with the last instruction of its loop. A loop reaches from the target
/// of a branch backwards to the last such branch.
pub(crate) fn loops(code: &[Instr]) -> BTreeMap<usize, usize> {
    let mut loops: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, instr) in code.iter().enumerate() {
        if let Some(target) = instr.op.target().filter(|target| *target <= at) {
            let end = loops.entry(target).or_insert(at);
            *end = (*end).max(at);
        }
    }
    // One that begins inside of another one ends there, too.
    loop {
        let all: Vec<(usize, usize)> = loops.iter().map(|(h, e)| (*h, *e)).collect();
        let overlapping = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
        let cross = overlapping.filter(|(a, b)| a.0 < b.0 && b.0 <= a.1 && a.1 < b.1);
        let Some((a, end)) = cross.map(|(a, b)| (a.0, b.1)).next() else {
            break;
        };
        loops.insert(a, end);
    }
    loops
}

/// A branch from outside of a loop to an instruction of it that is not its header.
pub(crate) fn into_a_loop(code: &[Instr], loops: &BTreeMap<usize, usize>) -> Option<usize> {
    let mut branches = code.iter().enumerate();
    branches.find_map(|(at, instr)| {
        instr
            .op
            .target()
            .filter(|t| {
                let mut all = loops.iter();
                all.any(|(h, e)| *h < *t && *t <= *e && !(*h <= at && at <= *e))
            })
            .map(|_| at)
    })
}

/// The blocks of a thread: runs of instructions that are entered at the first and left at the last.
struct Blocks {
    /// The first instruction of each, and the number of instructions at the end.
    starts: Vec<usize>,
    /// The blocks that may follow each.
    next: Vec<Vec<usize>>,
}

/// Whether a branch is taken in any case.
fn is_jump(op: &Op) -> bool {
    matches!(op, Op::Branch { cond: Expr::Const(v), .. } if *v != 0)
}

impl Blocks {
    fn of(code: &[Instr]) -> Blocks {
        let mut starts = BTreeSet::from([0, code.len()]);
        for (at, instr) in code.iter().enumerate() {
            if let Some(target) = instr.op.target() {
                starts.extend([target, at + 1]);
            }
        }
        let starts: Vec<usize> = starts.into_iter().collect();
        let block = |at: usize| starts.binary_search(&at).ok().filter(|_| at < code.len());
        let next = starts
            .windows(2)
            .map(|bounds| {
                let last = &code[bounds[1] - 1].op;
                let through = block(bounds[1]).filter(|_| !is_jump(last));
                let target = last.target().and_then(block);
                through.into_iter().chain(target).collect()
            })
            .collect();
        Blocks { starts, next }
    }

    fn reachable(&self) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = vec![0];
        while let Some(block) = open.pop() {
            if seen.insert(block) {
                open.extend(&self.next[block]);
            }
        }
        seen
    }

    /// Appends blocks in order, of which `header` is the first; `None`: some loop has two entries.
    fn arrange(
        &self,
        among: &BTreeSet<usize>,
        header: usize,
        order: &mut Vec<usize>,
    ) -> Option<()> {
        order.push(header);
        let mut rest = among.clone();
        rest.remove(&header);
        let mut search = ComponentSearch {
            blocks: self,
            among: &rest,
            number: BTreeMap::new(),
            stack: Vec::new(),
            components: Vec::new(),
        };
        for block in &rest {
            search.visit(*block);
        }
        // The search finds the first component last.
        let components = std::mem::take(&mut search.components);
        for component in components.into_iter().rev() {
            match component.iter().copied().collect::<Vec<usize>>()[..] {
                [one] if !self.next[one].contains(&one) => order.push(one),
                _ => {
                    let entry = self.entry(among, &component)?;
                    self.arrange(&component, entry, order)?;
                }
            }
        }
        Some(())
    }

    /// The one block at which others enter a loop.
    fn entry(&self, among: &BTreeSet<usize>, component: &BTreeSet<usize>) -> Option<usize> {
        let outside = among.iter().filter(|block| !component.contains(block));
        let entered = outside.flat_map(|block| &self.next[*block]);
        let entries: BTreeSet<usize> = entered.filter(|b| component.contains(b)).copied().collect();
        match entries.into_iter().collect::<Vec<usize>>()[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The code of blocks in that order.
    fn written(&self, code: &[Instr], order: &[usize]) -> CodeOrder {
        let mut layout = CodeOrder {
            code: Vec::new(),
            origin: Vec::new(),
        };
        let mut new = BTreeMap::new();
        for (n, block) in order.iter().enumerate() {
            new.insert(self.starts[*block], layout.code.len());
            let (start, end) = (self.starts[*block], self.starts[*block + 1]);
            layout.code.extend_from_slice(&code[start..end]);
            layout.origin.extend(start..end);
            let last = &code[end - 1];
            let follows = order
                .get(n + 1)
                .is_some_and(|next| self.starts[*next] == end);
            if !is_jump(&last.op) && !follows {
                let op = Op::Branch {
                    cond: Expr::Const(1),
                    target: end,
                };
                layout.code.push(Instr { op, ..last.clone() });
                layout.origin.push(end - 1);
            }
        }
        let end = layout.code.len();
        for instr in &mut layout.code {
            if let Op::Branch { target, .. } = &mut instr.op {
                *target = new.get(target).copied().unwrap_or(end);
            }
        }
        layout
    }
}

/// A search for strongly connected blocks (Tarjan, *Depth-first search and linear graph
/// algorithms*, 1972).
struct ComponentSearch<'a> {
    blocks: &'a Blocks,
    among: &'a BTreeSet<usize>,
    /// By block: when it was come to, and the first block on the stack that it reaches.
    number: BTreeMap<usize, (usize, usize)>,
    stack: Vec<usize>,
    components: Vec<BTreeSet<usize>>,
}

impl ComponentSearch<'_> {
    fn visit(&mut self, block: usize) {
        if self.number.contains_key(&block) {
            return;
        }
        let own = self.number.len();
        self.number.insert(block, (own, own));
        self.stack.push(block);
        let mut first = own;
        for next in &self.blocks.next[block] {
            if !self.among.contains(next) {
                continue;
            }
            if !self.number.contains_key(next) {
                self.visit(*next);
                first = first.min(self.number[next].1);
            } else if self.stack.contains(next) {
                first = first.min(self.number[next].0);
            }
        }
        self.number.insert(block, (own, first));
        if first == own {
            let at = self.stack.iter().rposition(|b| *b == block).unwrap_or(0);
            self.components
                .push(self.stack.split_off(at).into_iter().collect());
        }
    }
}
