//! Finds the gaps between statements, and puts fences into them.

use std::ops::Range;

use diag::Span;
use program::Scope;
use program::strength::Order;

use super::Source;
use crate::knobs::{Knob, Spot, Written, instr, spots};

/// A part of the code between braces.
pub(super) struct BracedBlock {
    pub(super) range: Range<usize>,
    pub(super) is_loop: bool,
    pub(super) is_branch: bool,
}

impl BracedBlock {
    pub(super) fn holds(&self, gap: &Range<usize>) -> bool {
        self.range.start <= gap.start && gap.end <= self.range.end
    }
}

impl Source<'_> {
    /// Gaps for new statements: behind others, between accesses to memory. A statement in a loop
    /// comes before all of the loop, and behind it, as one round follows another.
    pub(super) fn gaps(&self) -> Vec<Range<usize>> {
        let blocks = self.blocks();
        let all: Vec<Spot> = spots(&self.test.program).collect();
        let mut gaps = self.ends();
        // Between the first and the last access of some thread.
        gaps.retain(|gap| {
            let loops: Vec<&BracedBlock> = blocks
                .iter()
                .filter(|b| b.is_loop && b.holds(gap))
                .collect();
            [false, true]
                .iter()
                .all(|behind| self.has_access(&all, &loops, gap, *behind))
        });
        gaps
    }

    /// Whether an access comes before a gap in these loops, or behind it.
    fn has_access(
        &self,
        all: &[Spot],
        loops: &[&BracedBlock],
        gap: &Range<usize>,
        behind: bool,
    ) -> bool {
        all.iter().any(|spot| {
            let instr = instr(&self.test.program, *spot);
            let span = instr.span.range();
            let is_there = if behind {
                span.start >= gap.start
            } else {
                span.end <= gap.start
            };
            let around = loops.iter().any(|b| b.range.contains(&span.start));
            (around || is_there) && instr.op.is_visible()
        })
    }

    /// The places where statements end, and where blocks and the code begin.
    pub(super) fn ends(&self) -> Vec<Range<usize>> {
        let mut depth = 0;
        let mut ends = Vec::new();
        for (at, range) in self.tokens.iter().enumerate() {
            match self.token(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                "" => {
                    depth = 0;
                    ends.push(range.end..range.end);
                }
                ";" | "{" | "}" if depth == 0 => ends.push(range.end..range.end),
                _ => {}
            }
        }
        if self.is_assembly() {
            self.use_instructions(&mut ends);
        }
        ends
    }

    /// Replaces the ends of statements in kernels of assembly by those of instructions. Host code
    /// stays as it is.
    fn use_instructions(&self, ends: &mut Vec<Range<usize>>) {
        let kernels: Vec<Range<usize>> = self.kernels().collect();
        let first = kernels.iter().map(|k| k.start).min();
        let last = kernels.iter().map(|k| k.end).max();
        if let (Some(first), Some(last)) = (first, last) {
            ends.retain(|end| end.start < first || last + 1 < end.start);
        }
        ends.extend(kernels.iter().map(|span| span.end..span.end));
        let program = &self.test.program;
        for t in program.thread_ids() {
            if program.thread(t).place.host {
                continue;
            }
            let mut spans = program.thread(t).code.iter().map(|i| i.span.range());
            let first = spans.find(|span| !span.is_empty());
            ends.extend(first.map(|span| span.start..span.start));
        }
        ends.sort_unstable_by_key(|end: &Range<usize>| end.start);
        ends.dedup();
    }

    /// The blocks of the code that are bodies.
    pub(super) fn blocks(&self) -> Vec<BracedBlock> {
        if self.is_assembly() {
            return self.blocks_of_branches();
        }
        let mut open = Vec::new();
        let mut blocks = Vec::new();
        for at in 0..self.tokens.len() {
            match self.token(at) {
                "{" => open.push(at),
                "}" => {
                    let Some(first) = open.pop() else { continue };
                    let head = match self.before(first, 1) {
                        ")" => self
                            .opening(first - 1)
                            .map_or("", |paren| self.before(paren, 1)),
                        word => word,
                    };
                    blocks.push(BracedBlock {
                        range: self.tokens[first].end..self.tokens[at].start,
                        is_loop: matches!(head, "for" | "while" | "do"),
                        is_branch: matches!(head, "if" | "else" | "switch"),
                    });
                }
                _ => {}
            }
        }
        blocks
    }

    /// The blocks of assembly: loops, and the code behind a branch forward, up to its target.
    fn blocks_of_branches(&self) -> Vec<BracedBlock> {
        let program = &self.test.program;
        let mut blocks: Vec<BracedBlock> = Vec::new();
        for (t, at, branch) in program.instrs() {
            let Some(to) = branch.op.target() else {
                continue;
            };
            let here = branch.span.range();
            let target = program.thread(t).code.get(to).map(|i| i.span.range());
            let is_loop = to <= at;
            let range = match target {
                Some(there) if is_loop => there.start..here.end,
                None if is_loop => continue,
                Some(there) => here.end..there.start,
                None => here.end..usize::MAX,
            };
            if !blocks.iter().any(|old| old.range == range) {
                blocks.push(BracedBlock {
                    range,
                    is_loop,
                    is_branch: !is_loop,
                });
            }
        }
        blocks
    }

    /// Fences between statements, up to a scope.
    pub(crate) fn fences(&self, wide: Scope) -> Vec<Knob> {
        let fences = self.fence_texts(wide, |scope| *scope <= wide);
        self.gaps()
            .iter()
            .filter_map(|gap| self.knob(Written::More, gap, fences.iter().cloned()))
            .collect()
    }

    /// The gaps for a fence, and the fences that fit there, of some scopes.
    pub(crate) fn put_in(&self, scopes: &[Scope], wide: Scope) -> Vec<(Span, Vec<String>)> {
        let fences = self.fence_texts(wide, |scope| scopes.contains(scope));
        self.gaps()
            .into_iter()
            .map(|gap| (Span::new(gap.start, gap.end), fences.clone()))
            .collect()
    }

    /// The statement that an instruction is, with its semicolon; `None` if it is only part of one,
    /// or all of another's body.
    pub(crate) fn statement(&self, at: Spot) -> Option<Span> {
        let span = instr(&self.test.program, at).span;
        let first = self
            .tokens
            .iter()
            .position(|range| !range.is_empty() && range.start == span.start as usize)?;
        let end = (first..self.tokens.len()).find(|&i| self.token(i) == ";")?;
        let stands_alone = matches!(self.before(first, 1), "" | ";" | "{" | "}");
        stands_alone.then(|| Span::new(self.tokens[first].start, self.tokens[end].end))
    }

    /// Fences as statements. Code that names no orders gets fences without one.
    fn fence_texts(&self, wide: Scope, up_to: impl Fn(&Scope) -> bool) -> Vec<String> {
        let named = (0..self.tokens.len()).any(|at| self.spelled(at, self.row.orders).is_some());
        let fences: Vec<String> = if self.writing.fences.is_empty() || named {
            let mut scopes: Vec<Scope> = self.row.choices().into_iter().filter(up_to).collect();
            scopes.retain(|scope| *scope >= Scope::Cta);
            if scopes.is_empty() {
                scopes.push(wide);
            }
            let mut fences = Vec::new();
            for order in [Order::Release, Order::Acquire, Order::AcqRel, Order::SeqCst] {
                let order = self.row.order_word(order);
                for scope in &scopes {
                    fences.push((self.row.fence)(order, &self.row.scope_word(*scope)));
                }
            }
            fences
        } else {
            let fences = self.writing.fences.iter().filter(|fence| up_to(&fence.1));
            fences.map(|fence| fence.0.to_owned()).collect()
        };
        fences
            .into_iter()
            .map(|fence| format!(" {fence};"))
            .collect()
    }
}
