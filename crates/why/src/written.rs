//! Changes as a programmer would write them: other words for orders and scopes, functions with
//! other endings, fences and barriers between statements, atomic accesses in place of plain ones.
//!
//! A change replaces a few parts of the file. The front end alone decides what the new file means;
//! a text that it refuses is never offered.
//!
//! # Invariants
//! - The front end read every level of a [`Knob`], and the level changes or adds an instruction.
//! - New text goes behind a statement, on its line: lines keep their numbers.

use std::ops::Range;

use diag::Span;
use front::litmus::{Splice, respelled};
use program::litmus::LitmusTest;
use program::strength::{self, ALL_FLAGS, Order};
use program::writing::{AtomicAccess, Writing};
use program::{Dialect, DialectRow, Instr, LocId, Op, Scope, ThreadId, Ty};

use crate::knobs::{Knob, Level, Spot, Written, instr, said, spots};

/// Punctuation of more than one character.
const LONG: &[&str] = &[
    "<<=", ">>=", "::", "->", "++", "--", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "&=",
    "|=", "^=", "<<", ">>",
];

/// The number of ways to put a barrier into threads whose code differs.
const APART: usize = 64;

/// The code of a test as text.
pub(crate) struct Source<'t> {
    test: &'t LitmusTest,
    row: &'static DialectRow,
    writing: &'static Writing,
    /// The tokens of each part of the file that is code, behind an empty one.
    tokens: Vec<Range<usize>>,
}

/// The effect of a change, as the front end reads it.
struct Effect {
    /// Instructions that have another order, scope or kind of access.
    changed: Vec<Spot>,
    /// Added instructions, by their place in the changed program.
    added: Vec<Spot>,
}

/// A part of the code between braces.
struct Block {
    range: Range<usize>,
    is_loop: bool,
    is_branch: bool,
}

impl Block {
    fn holds(&self, gap: &Range<usize>) -> bool {
        self.range.start <= gap.start && gap.end <= self.range.end
    }
}

/// An access to memory as an expression.
struct Accessed {
    /// The replaced text.
    range: Range<usize>,
    /// The object.
    place: String,
    function: &'static str,
    /// The stored or added value: a part of the text, or else 1.
    value: Option<Range<usize>>,
    spots: Vec<Spot>,
}

impl<'t> Source<'t> {
    /// The code of a test; `None` if changes are not written in its dialect.
    pub(crate) fn new(test: &'t LitmusTest) -> Option<Source<'t>> {
        let row = test.program.dialect.row();
        let writing = row.writing?;
        let mut source = Source {
            test,
            row,
            writing,
            tokens: Vec::new(),
        };
        // An empty token separates regions.
        source.tokens = (declarations(test).into_iter().chain(regions(test)))
            .flat_map(|region| {
                std::iter::once(region.start..region.start).chain(tokens(&test.file.text, region))
            })
            .collect();
        Some(source)
    }

    /// The code of a test in PTX. Only statements are added there; other changes are printed.
    pub(crate) fn assembly(test: &'t LitmusTest) -> Option<Source<'t>> {
        let row = test.program.dialect.row();
        let mut source = Source {
            test,
            row,
            writing: &program::writing::PTX,
            tokens: Vec::new(),
        };
        source.tokens = (regions(test).into_iter())
            .flat_map(|region| {
                std::iter::once(region.start..region.start).chain(tokens(&test.file.text, region))
            })
            .collect();
        (test.program.dialect == Dialect::Ptx).then_some(source)
    }

    fn is_assembly(&self) -> bool {
        self.row.writing.is_none()
    }

    /// A statement as it is added: in kernels of assembly, behind an instruction or in front of the
    /// first one.
    fn statement_at(&self, gap: &Range<usize>, statement: &str) -> String {
        match self
            .kernels()
            .find(|span| [span.start, span.end].contains(&gap.start))
        {
            Some(span) if self.is_assembly() && span.end == gap.start => format!("; {statement}"),
            Some(_) if self.is_assembly() => format!("{statement}; "),
            _ => format!(" {statement};"),
        }
    }

    /// The places of instructions of kernels.
    fn kernels(&self) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let program = &self.test.program;
        let code = program
            .instrs()
            .filter(|(t, _, _)| !program.thread(*t).place.host);
        code.map(|(_, _, instr)| instr.span.range())
            .filter(|span| !span.is_empty())
    }

    fn text(&self) -> &'t str {
        &self.test.file.text
    }

    /// A token, by index; empty behind the last one.
    fn token(&self, at: usize) -> &'t str {
        self.tokens
            .get(at)
            .map_or("", |range| &self.text()[range.clone()])
    }

    fn before(&self, at: usize, by: usize) -> &'t str {
        at.checked_sub(by).map_or("", |at| self.token(at))
    }

    /// The effect of a change; `None` if the front end refuses it.
    fn effect(&self, splices: &[Splice]) -> Option<Effect> {
        let (new, put_in) = respelled(self.test, splices)?;
        let (mut changed, mut added) = (Vec::new(), Vec::new());
        for t in new.program.thread_ids() {
            let (old, new) = (
                &self.test.program.thread(t).code,
                &new.program.thread(t).code,
            );
            let is_new = |instr: &Instr| put_in.iter().any(|span| within(instr.span, *span));
            let (there, kept): (Vec<_>, Vec<_>) =
                new.iter().enumerate().partition(|(_, instr)| is_new(instr));
            added.extend(there.into_iter().map(|(i, _)| (t, i)));
            if kept.len() != old.len() {
                return None;
            }
            let differs = |(i, (a, (_, b))): (usize, (&Instr, &(usize, &Instr)))| {
                (said(&a.op) != said(&b.op)).then_some((t, i))
            };
            changed.extend(old.iter().zip(&kept).enumerate().filter_map(differs));
        }
        Some(Effect { changed, added })
    }

    /// A knob that puts other words in one place: those that the front end takes.
    fn knob(
        &self,
        kind: Written,
        range: &Range<usize>,
        words: impl IntoIterator<Item = String>,
    ) -> Option<Knob> {
        let span = Span::new(range.start, range.end);
        let mut spots = Vec::new();
        let mut levels = Vec::new();
        for word in words {
            let splices = vec![Splice { span, text: word }];
            let effect = self
                .effect(&splices)
                .filter(|e| !e.changed.is_empty() || !e.added.is_empty());
            let Some(effect) = effect else { continue };
            spots = if effect.added.is_empty() {
                effect.changed
            } else {
                effect.added
            };
            levels.push(Level::text(splices));
        }
        (!levels.is_empty()).then(|| Knob::written_so(kind, &spots, levels))
    }

    /// The words of the code that state a scope, or end in one, up to a scope.
    pub(crate) fn scopes(&self, wide: Scope) -> Vec<Knob> {
        let mut words: Vec<(&str, Scope)> = self.row.scopes.to_vec();
        words.dedup_by_key(|word| word.1);
        let knob = |at: usize| {
            let word = self.token(at);
            let of_name = || {
                self.writing
                    .family(word)
                    .filter(|_| self.token(at + 1) == "(")
            };
            let (own, all) = match self.spelled(at, self.row.scopes) {
                Some((own, prefix)) => {
                    let word = |(word, scope): &(&str, Scope)| (word[prefix..].to_owned(), *scope);
                    (own, words.iter().map(word).collect())
                }
                None => {
                    let names = of_name()?;
                    (names.iter().find(|name| name.0 == word)?.1, names)
                }
            };
            let wider = all
                .into_iter()
                .filter(|name| own < name.1 && name.1 <= wide)
                .map(|name| name.0);
            self.knob(Written::Scope, &self.tokens[at], wider)
        };
        (0..self.tokens.len()).filter_map(knob).collect()
    }

    /// The words of the code that state an order.
    pub(crate) fn orders(&self) -> Vec<Knob> {
        let knob = |at: usize| {
            let (own, prefix) = self.spelled(at, self.row.orders)?;
            let stronger = |o: &&(&str, Order)| {
                o.1 != Order::Consume
                    && o.1.bits() != own.bits()
                    && o.1.bits() & own.bits() == own.bits()
            };
            let mut orders: Vec<_> = self.row.orders.iter().filter(stronger).collect();
            orders.sort_by_key(|o| o.1.bits().count_ones());
            self.knob(
                Written::Order,
                &self.tokens[at],
                orders.into_iter().map(|o| o.0[prefix..].to_owned()),
            )
        };
        (0..self.tokens.len()).filter_map(knob).collect()
    }

    /// The meaning of a token among some words, and the prefix that is left out there:
    /// `memory_order::release`.
    fn spelled<T: Copy>(&self, at: usize, words: &[(&str, T)]) -> Option<(T, usize)> {
        let word = self.token(at);
        let prefix = if self.before(at, 1) == "::" {
            self.before(at, 2)
        } else {
            ""
        };
        let named = |name: &str| match name.strip_suffix(word)? {
            "" => Some(0),
            rest => {
                (!prefix.is_empty() && rest.strip_suffix('_') == Some(prefix)).then_some(rest.len())
            }
        };
        words
            .iter()
            .find_map(|&(name, meaning)| Some((meaning, named(name)?)))
    }

    /// Flags of fences; for barriers that meet, together.
    pub(crate) fn flags(&self) -> Vec<Knob> {
        let knob = |at: usize| {
            let alone = [self.before(at, 1), self.token(at + 1)]
                .iter()
                .all(|next| *next != "|");
            // A number can stand for no flags; only the front end can distinguish it from other
            // numbers.
            let is_flag = |flag: &str| flag == self.token(at) || self.token(at) == "0";
            if !self.row.regions || !alone || !ALL_FLAGS.split(" | ").any(is_flag) {
                return None;
            }
            let knob = self.knob(Written::Flags, &self.tokens[at], [ALL_FLAGS.to_owned()])?;
            knob.instr(&self.test.program)
                .is_some_and(|i| strength::lacks_flags(&i.op))
                .then_some(knob)
        };
        let knobs = (0..self.tokens.len()).filter_map(knob);
        let is_fence = |knob: &Knob| {
            knob.instr(&self.test.program)
                .is_some_and(|i| i.op.is_fence())
        };
        let (fences, barriers): (Vec<Knob>, Vec<Knob>) = knobs.partition(is_fence);
        fences.into_iter().chain(Knob::joined(barriers)).collect()
    }

    /// Gaps for new statements: behind others, between accesses to memory. A statement in a loop
    /// comes before all of the loop, and behind it, as one round follows another.
    fn gaps(&self) -> Vec<Range<usize>> {
        let blocks = self.blocks();
        let visible = |spots: &[Spot]| {
            spots
                .iter()
                .any(|s| instr(&self.test.program, *s).op.is_visible())
        };
        let all: Vec<Spot> = spots(&self.test.program).collect();
        // Between the first and the last access of some thread.
        let beside = |gap: &Range<usize>, behind: bool| {
            let loops: Vec<&Block> = blocks
                .iter()
                .filter(|b| b.is_loop && b.holds(gap))
                .collect();
            let side = all.iter().filter(|s| {
                let span = instr(&self.test.program, **s).span.range();
                let around = loops.iter().any(|b| b.range.contains(&span.start));
                around
                    || if behind {
                        span.start >= gap.start
                    } else {
                        span.end <= gap.start
                    }
            });
            visible(&side.copied().collect::<Vec<_>>())
        };
        let mut gaps = self.ends();
        gaps.retain(|gap| beside(gap, false) && beside(gap, true));
        gaps
    }

    /// The places where statements end, and where blocks and the code begin.
    fn ends(&self) -> Vec<Range<usize>> {
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
            let kernels: Vec<Range<usize>> = self.kernels().collect();
            let program = &self.test.program;
            let first = |t: ThreadId| {
                program
                    .thread(t)
                    .code
                    .iter()
                    .map(|i| i.span.range())
                    .find(|s| !s.is_empty())
            };
            let device = program
                .thread_ids()
                .filter(|t| !program.thread(*t).place.host);
            let firsts: Vec<Range<usize>> = device.filter_map(first).collect();
            // The calls of its host are C.
            let bounds = kernels
                .iter()
                .map(|k| k.start)
                .min()
                .zip(kernels.iter().map(|k| k.end).max());
            ends.retain(|end| {
                bounds.is_none_or(|(start, last)| end.start < start || last + 1 < end.start)
            });
            ends.extend(kernels.iter().map(|span| span.end..span.end));
            ends.extend(firsts.iter().map(|span| span.start..span.start));
            ends.sort_unstable_by_key(|end: &Range<usize>| end.start);
            ends.dedup();
        }
        ends
    }

    /// The blocks of the code that are bodies.
    fn blocks(&self) -> Vec<Block> {
        let mut open = Vec::new();
        let mut blocks = Vec::new();
        if self.is_assembly() {
            let program = &self.test.program;
            for (t, at, branch) in program.instrs() {
                let code = &program.thread(t).code;
                let Some(to) = branch.op.target() else {
                    continue;
                };
                let span = |i: usize| code.get(i).map(|i| i.span.range());
                let (here, there) = (branch.span.range(), span(to));
                let block = match to <= at {
                    true => there.map(|there| (there.start..here.end, true)),
                    false => Some((
                        here.end..there.map_or(usize::MAX, |there| there.start),
                        false,
                    )),
                };
                let is_new = |b: &Block, range: &Range<usize>| b.range == *range;
                if let Some((range, is_loop)) =
                    block.filter(|b| !blocks.iter().any(|old| is_new(old, &b.0)))
                {
                    // Code behind a branch forward, up to its target.
                    blocks.push(Block {
                        range,
                        is_loop,
                        is_branch: !is_loop,
                    });
                }
            }
            return blocks;
        }
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
                    let is_loop = matches!(head, "for" | "while" | "do");
                    let is_branch = matches!(head, "if" | "else" | "switch");
                    let range = self.tokens[first].end..self.tokens[at].start;
                    blocks.push(Block {
                        range,
                        is_loop,
                        is_branch,
                    });
                }
                _ => {}
            }
        }
        blocks
    }

    /// Fences between statements, up to a scope.
    pub(crate) fn fences(&self, wide: Scope) -> Vec<Knob> {
        let fences = self.fence_texts(wide, |scope| *scope <= wide);
        let knob = |gap| self.knob(Written::More, &gap, fences.iter().cloned());
        self.gaps().into_iter().filter_map(knob).collect()
    }

    /// The gaps for a fence, and the fences that fit there, of some scopes.
    pub(crate) fn put_in(&self, scopes: &[Scope], wide: Scope) -> Vec<(Span, Vec<String>)> {
        let fences = self.fence_texts(wide, |scope| scopes.contains(scope));
        self.gaps()
            .into_iter()
            .map(|gap| (Span::new(gap.start, gap.end), fences.clone()))
            .collect()
    }

    /// The words of the code that state an order or a scope, and their alternatives: any order, and
    /// some scopes.
    pub(crate) fn words(&self, scopes: &[Scope]) -> Vec<(Span, Vec<String>)> {
        let mut of_scopes: Vec<(&str, Scope)> = self.row.scopes.to_vec();
        of_scopes.dedup_by_key(|word| word.1);
        let words = |at: usize| {
            let word = self.token(at);
            if let Some((_, prefix)) = self.spelled(at, self.row.orders) {
                let orders = self.row.orders.iter().filter(|o| o.1 != Order::Consume);
                return Some(orders.map(|o| o.0[prefix..].to_owned()).collect());
            }
            let names: Vec<(String, Scope)> = match self.spelled(at, self.row.scopes) {
                Some((_, prefix)) => of_scopes
                    .iter()
                    .map(|(word, s)| (word[prefix..].to_owned(), *s))
                    .collect(),
                None => self
                    .writing
                    .family(word)
                    .filter(|_| self.token(at + 1) == "(")?,
            };
            let names = names.into_iter().filter(|name| scopes.contains(&name.1));
            Some(names.map(|name| name.0).collect::<Vec<String>>())
        };
        let others = |at: usize| {
            let mut words = words(at)?;
            words.retain(|word| word != self.token(at));
            let range = &self.tokens[at];
            Some((Span::new(range.start, range.end), words))
        };
        (0..self.tokens.len()).filter_map(others).collect()
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
            let orders = [Order::Release, Order::Acquire, Order::AcqRel, Order::SeqCst];
            let fence = |o: Order, s: Scope| {
                (self.row.fence)(self.row.order_word(o), &self.row.scope_word(s))
            };
            orders
                .into_iter()
                .flat_map(|o| scopes.iter().map(move |s| fence(o, *s)))
                .collect()
        } else {
            let fences = self.writing.fences.iter().filter(|fence| up_to(&fence.1));
            fences.map(|fence| fence.0.to_owned()).collect()
        };
        fences
            .into_iter()
            .map(|fence| format!(" {fence};"))
            .collect()
    }

    /// Barriers between statements, in code that all threads of a group have. Those outside of
    /// branches come first; the number says how many they are. The code goes on with the barriers
    /// that it names; without any, with that of the whole group.
    pub(crate) fn barriers(&self) -> (Vec<Knob>, usize) {
        let is_named = |call: &str| {
            let name = call.split('(').next().unwrap_or(call);
            (0..self.tokens.len()).any(|at| self.token(at) == name)
        };
        let any = self.writing.barriers.iter().any(|b| is_named(b.0));
        let words = self.writing.barriers.iter().filter(|b| {
            if any {
                is_named(b.0)
            } else {
                b.1 == Scope::Cta
            }
        });
        let words: Vec<&(&str, Scope)> = words.collect();
        let knob = |gap: &Range<usize>| {
            let meets = |knob: &Knob, scope: Scope| self.is_of_groups(knob, scope);
            let narrow = words.iter().map(|b| b.1).min()?;
            let barrier = |b: &&&(&str, Scope)| {
                let one = self.knob(Written::Barrier, gap, [self.statement_at(gap, b.0)]);
                one.is_some_and(|one| meets(&one, b.1))
            };
            let texts: Vec<String> = words
                .iter()
                .filter(barrier)
                .map(|b| self.statement_at(gap, b.0))
                .collect();
            self.knob(Written::Barrier, gap, texts)
                .filter(|knob| meets(knob, narrow))
        };
        let blocks = self.blocks();
        let is_head = |gap: &Range<usize>| {
            blocks
                .iter()
                .any(|b| b.is_loop && b.range.start == gap.start)
        };
        let on_branch = |gap: &Range<usize>| blocks.iter().any(|b| b.is_branch && b.holds(gap));
        // At the end of a round, rather than at the start of the next one.
        let mut gaps = self.gaps();
        gaps.sort_by_key(|gap| (on_branch(gap), is_head(gap), gap.start));
        let straight = gaps
            .iter()
            .filter(|gap| !on_branch(gap))
            .filter_map(knob)
            .collect::<Vec<_>>();
        let branches = gaps.iter().filter(|gap| on_branch(gap)).filter_map(knob);
        let first = straight.len();
        (straight.into_iter().chain(branches).collect(), first)
    }

    /// Barriers of threads whose code differs: one in each thread of a group.
    pub(crate) fn meetings(&self) -> Vec<Knob> {
        let program = &self.test.program;
        let gaps = self.gaps();
        let mut found = Vec::new();
        let Some(&(word, scope)) = self.writing.barriers.last() else {
            return found;
        };
        let of_one = |gap: &Range<usize>| {
            let knob = self.knob(Written::Barrier, gap, [self.statement_at(gap, word)])?;
            let mut threads: Vec<ThreadId> = knob.spots().map(|spot| spot.0).collect();
            threads.dedup();
            (threads.len() == 1).then(|| (threads[0], knob))
        };
        let all: Vec<(ThreadId, Knob)> = gaps.iter().filter_map(of_one).collect();
        let mut seen: Vec<ThreadId> = Vec::new();
        for t in program.thread_ids() {
            let mates = || {
                program.thread_ids().filter(move |u| {
                    program
                        .thread(*u)
                        .place
                        .same(&program.thread(t).place, scope)
                })
            };
            if seen.contains(&t) || mates().count() < 2 {
                continue;
            }
            seen.extend(mates());
            let of = |u: ThreadId| {
                all.iter()
                    .filter(move |knob| knob.0 == u)
                    .map(|knob| knob.1.clone())
            };
            if mates()
                .map(|u| of(u).count())
                .try_fold(1_usize, usize::checked_mul)
                .is_none_or(|n| n > APART)
            {
                continue;
            }
            let ways = mates().fold(vec![Vec::new()], |ways: Vec<Vec<Knob>>, u| {
                let with = |way: &Vec<Knob>| {
                    of(u)
                        .map(|knob| [way.clone(), vec![knob]].concat())
                        .collect::<Vec<_>>()
                };
                ways.iter().flat_map(with).collect()
            });
            found.extend(
                ways.into_iter()
                    .filter_map(Knob::joined)
                    .filter(|knob| self.is_of_groups(knob, scope)),
            );
        }
        found
    }

    /// Whether a knob adds to all threads of some groups, some of which have several.
    fn is_of_groups(&self, knob: &Knob, scope: Scope) -> bool {
        let program = &self.test.program;
        let mut threads: Vec<ThreadId> = knob.spots().map(|spot| spot.0).collect();
        threads.dedup();
        let command = |t: ThreadId| program.host.as_ref().and_then(|host| host.command_of(t));
        let mates = |t: ThreadId| {
            let place = &program.thread(t).place;
            program.thread_ids().filter(move |u| {
                command(*u) == command(t) && program.thread(*u).place.same(place, scope)
            })
        };
        let on_device = threads.iter().all(|t| !program.thread(*t).place.host);
        on_device
            && threads
                .iter()
                .all(|t| mates(*t).all(|u| threads.contains(&u)))
            && threads.iter().any(|t| mates(*t).count() > 1)
    }

    /// Statements of kernels that wait for pending work: earlier kernels, and copies.
    pub(crate) fn waits(&self) -> Vec<Knob> {
        let named = |part: &str| (0..self.tokens.len()).any(|at| self.token(at).contains(part));
        let commands = self
            .test
            .program
            .host
            .iter()
            .flat_map(|host| &host.commands);
        let depends = commands.clone().any(|command| command.programmatic);
        let is_wait = |parts: &[&str]| {
            parts
                .iter()
                .any(|p| named(p) || depends && p.to_lowercase().contains("griddep"))
        };
        let waits: Vec<&str> = self
            .writing
            .waits
            .iter()
            .filter(|w| is_wait(w.1))
            .map(|w| w.0)
            .collect();
        if waits.is_empty() {
            return Vec::new();
        }
        // In assembly the rest is no text, and each of these helps alone or not.
        let kind = if self.is_assembly() {
            Written::Barrier
        } else {
            Written::More
        };
        let gaps = self.ends();
        let knob = |(wait, gap): (&&str, &Range<usize>)| {
            self.knob(kind, gap, [self.statement_at(gap, wait)])
        };
        waits
            .iter()
            .flat_map(|wait| gaps.iter().map(move |gap| (wait, gap)))
            .filter_map(knob)
            .collect()
    }

    /// Plain accesses to memory in the code.
    fn plain(&self) -> Vec<Accessed> {
        (0..self.tokens.len())
            .filter_map(|at| self.accessed(at))
            .collect()
    }

    /// The plain access to the object that a token names.
    fn accessed(&self, at: usize) -> Option<Accessed> {
        let (text, program) = (self.text(), &self.test.program);
        let word = self.token(at);
        let named = program
            .locations
            .iter()
            .position(|l| l.name == word)
            .map(|l| LocId(l as u16));
        fn is_word(token: &str) -> bool {
            token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        }
        if !is_word(word)
            || word.starts_with(char::is_numeric)
            || matches!(self.before(at, 1), "." | "->" | "::")
        {
            return None;
        }
        let mut last = at;
        while self.token(last + 1) == "[" {
            last = self.closing(last + 1)?;
        }
        let mut first = at;
        let mut place = text[self.tokens[at].start..self.tokens[last].end].to_owned();
        let mut object = named.is_some() && self.writing.objects || last > at;
        match self.before(at, 1) {
            // `*(volatile int*)&x`
            "&" if self.before(at, 2) == ")" => {
                first = self.opening(at.checked_sub(2)?)?.checked_sub(1)?;
                object = self.token(first) == "*";
            }
            "&" => return None,
            "*" if !is_word(self.before(at, 2)) && !matches!(self.before(at, 2), ")" | "]") => {
                first = at - 1;
                place.insert(0, '*');
                object = last == at;
            }
            _ => {}
        }
        let start = self.tokens[first].start;
        let value = |from: usize| {
            let end = (from..self.tokens.len()).find(|&i| self.token(i) == ";")?;
            let start = self.tokens.get(from)?.start;
            Some(start..start + text[start..self.tokens[end].start].trim_end().len())
        };
        let stands_alone = matches!(self.before(first, 1), "" | ";" | "{" | "}" | ")");
        let (function, value, end) = match self.token(last + 1) {
            "(" => return None,
            "++" if stands_alone => ("fetch_add", None, self.tokens[last + 1].end),
            sign @ ("=" | "+=" | "-=" | "&=" | "|=" | "^=") if stands_alone => {
                let functions = [
                    ("=", "store"),
                    ("+=", "fetch_add"),
                    ("-=", "fetch_sub"),
                    ("&=", "fetch_and"),
                    ("|=", "fetch_or"),
                ];
                let function = functions
                    .iter()
                    .find(|f| f.0 == sign)
                    .map_or("fetch_xor", |f| f.1);
                let value = value(last + 2)?;
                (function, Some(value.clone()), value.end)
            }
            _ => ("load", None, self.tokens[last].end),
        };
        let wanted = |op: &Op| {
            let base = op.address().and_then(|address| address.base());
            let here = named.is_none() || base.is_none() || base == named;
            let kind = match function {
                "load" => op.read().is_some(),
                "store" => op.write().is_some(),
                _ => true,
            };
            here && kind && strength::is_plain(op)
        };
        let inside = |spot: &Spot| {
            let instr = instr(program, *spot);
            wanted(&instr.op)
                && within(
                    Span::new(start, end.min(instr.span.end as usize)),
                    instr.span,
                )
        };
        let spots: Vec<Spot> = spots(program).filter(inside).collect();
        let accessed = Accessed {
            range: start..end,
            place,
            function,
            value,
            spots,
        };
        (object && !accessed.spots.is_empty()).then_some(accessed)
    }

    /// Accesses as atomic ones; `None` if the type of an object has no name.
    fn atomic(&self, all: &[&Accessed], order: Order, scope: Option<Scope>) -> Option<Vec<Splice>> {
        // A stored value may hold another access.
        fn holds(outer: &Accessed, inner: &Accessed) -> bool {
            let value = outer.value.as_ref();
            value.is_some_and(|value| {
                value.start <= inner.range.start && inner.range.end <= value.end
            })
        }
        let mut splices = Vec::new();
        for one in all
            .iter()
            .filter(|one| !all.iter().any(|outer| holds(outer, one)))
        {
            let inner: Vec<&Accessed> = all
                .iter()
                .copied()
                .filter(|inner| holds(one, inner))
                .collect();
            let mut inner = self.atomic(&inner, order, scope)?;
            let declared = inner
                .iter()
                .position(|s| !one.range.contains(&(s.span.start as usize)));
            splices.extend(declared.map(|at| inner.swap_remove(at)));
            let value = one
                .value
                .as_ref()
                .map(|value| filled(self.text(), value.clone(), &inner));
            splices.extend(self.atomic_one(one, value, order, scope)?);
        }
        splices.sort_unstable();
        splices.dedup();
        Some(splices)
    }

    fn atomic_one(
        &self,
        accessed: &Accessed,
        value: Option<String>,
        order: Order,
        scope: Option<Scope>,
    ) -> Option<Vec<Splice>> {
        let op = &instr(&self.test.program, accessed.spots[0]).op;
        let ty = type_name(op.accesses().next()?.ty)?;
        let order = match (accessed.function, order) {
            ("load", Order::AcqRel) => Order::Acquire,
            ("store", Order::AcqRel) => Order::Release,
            _ => order,
        };
        let scope = scope.map_or(String::new(), |scope| self.row.scope_word(scope));
        let value = value.or_else(|| (accessed.function == "fetch_add").then(|| "1".to_owned()));
        let text = (self.writing.access)(&AtomicAccess {
            function: accessed.function,
            ty,
            place: &accessed.place,
            expected: None,
            value: value.as_deref(),
            order: self.row.order_word(order),
            scope: &scope,
        });
        let span = Span::new(accessed.range.start, accessed.range.end);
        let named = op
            .address()
            .and_then(|address| address.base())
            .filter(|_| !self.writing.objects);
        let declared =
            named.and_then(|loc| self.declared_plain(&self.test.program.location(loc).name, ty));
        Some(
            [Splice { span, text }]
                .into_iter()
                .chain(declared)
                .collect(),
        )
    }

    /// The type in the declaration of a location, made atomic, if it is another one.
    fn declared_plain(&self, name: &str, ty: &str) -> Option<Splice> {
        let mut at = 0;
        for line in self.text().split_inclusive('\n') {
            let (quoted, start) = (format!("\"{ty}\""), at);
            at += line.len();
            let rest = line.trim_start().strip_prefix(name).map(str::trim_start);
            if let (true, Some(found)) = (
                rest.is_some_and(|rest| rest.starts_with('=')),
                line.find(&quoted),
            ) {
                let start = start + found + 1;
                let text = format!("atomic_{ty}");
                return Some(Splice {
                    span: Span::new(start, start + ty.len()),
                    text,
                });
            }
        }
        None
    }

    /// A knob for each plain access.
    pub(crate) fn accesses(&self, wide: Scope) -> Vec<Knob> {
        let scope = (!self.row.scopes.is_empty()).then_some(wide);
        let knob = |accessed: Accessed| {
            let level = |order| {
                let splices = self.atomic(&[&accessed], order, scope)?;
                respelled(self.test, &splices)?;
                Some(Level::text(splices))
            };
            let levels: Vec<Level> = [Order::Relaxed, Order::AcqRel]
                .into_iter()
                .filter_map(level)
                .collect();
            (!levels.is_empty()).then(|| Knob::written_so(Written::More, &accessed.spots, levels))
        };
        self.plain().into_iter().filter_map(knob).collect()
    }

    /// All plain accesses to a location together.
    pub(crate) fn atomicity(&self, loc: LocId, accesses: &[Spot]) -> Option<Knob> {
        let plain = self.plain();
        let concerned = |a: &&Accessed| a.spots.iter().any(|s| accesses.contains(s));
        let plain: Vec<&Accessed> = plain.iter().filter(concerned).collect();
        let mut scopes: Vec<Option<Scope>> = self.row.choices().into_iter().map(Some).collect();
        if scopes.is_empty() {
            scopes.push(None);
        }
        let orders = [Order::Relaxed, Order::AcqRel, Order::SeqCst];
        let ways = orders
            .into_iter()
            .flat_map(|o| scopes.iter().map(move |&s| (o, s)));
        let level = |(order, scope): (Order, Option<Scope>)| {
            let splices = self.atomic(&plain, order, scope)?;
            respelled(self.test, &splices)?;
            Some(Level::text(splices).called(self.row.order_word(order)))
        };
        let levels: Vec<Level> = ways.filter_map(level).collect();
        (!levels.is_empty())
            .then(|| Knob::written_so(Written::More, accesses, levels).of_location(loc))
    }

    /// The index of the bracket that closes one, and of the one that opens it.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        (open..self.tokens.len()).find(|&i| {
            depth += level(self.token(i));
            depth == 0
        })
    }

    fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0;
        (0..=close).rev().find(|&i| {
            depth += level(self.token(i));
            depth == 0
        })
    }
}

fn level(token: &str) -> i32 {
    match token {
        "(" | "[" => 1,
        ")" | "]" => -1,
        _ => 0,
    }
}

fn within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The name of a type in all languages.
fn type_name(ty: Ty) -> Option<&'static str> {
    match (ty.bits, ty.signed) {
        (32, true) => Some("int"),
        (32, false) => Some("unsigned"),
        (64, true) => Some("long"),
        _ => None,
    }
}

/// A part of a text with parts of it replaced.
fn filled(text: &str, range: Range<usize>, splices: &[Splice]) -> String {
    let (mut new, mut at) = (String::new(), range.start);
    for splice in splices {
        let span = splice.span.range();
        new += &text[at..span.start];
        new += &splice.text;
        at = span.end;
    }
    new + &text[at..range.end]
}

/// The types of locations as the file declares them: strings on the line that begins with a
/// location's name.
fn declarations(test: &LitmusTest) -> Vec<Range<usize>> {
    let text = &test.file.text;
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let name = line
            .split('=')
            .next()
            .unwrap_or("")
            .trim()
            .trim_matches('"');
        let declared = line.contains('=') && test.program.locations.iter().any(|l| l.name == name);
        let quoted = line
            .find("type")
            .and_then(|n| Some(n + line[n..].find('"')? + 1));
        if let (true, Some(open)) = (declared, quoted)
            && let Some(len) = line[open..].find('"')
        {
            found.push(start + open..start + open + len);
        }
    }
    found
}

/// What is between the outermost braces around a place of a source file.
fn function_around(text: &str, at: usize) -> Option<Range<usize>> {
    let (mut depth, mut start, mut i) = (0, 0, 0);
    while let Some(c) = text[i..].chars().next() {
        let rest = &text[i..];
        let passed = match rest.get(..2) {
            Some("//") => rest.find('\n').unwrap_or(rest.len()),
            Some("/*") => rest.find("*/").map_or(rest.len(), |n| n + 2),
            _ => 0,
        };
        if passed > 0 {
            i += passed;
            continue;
        }
        match c {
            '{' => {
                start = if depth == 0 { i + 1 } else { start };
                depth += 1;
            }
            '}' => {
                depth = usize::saturating_sub(depth, 1);
                if depth == 0 && (start..i).contains(&at) {
                    return Some(start..i);
                }
            }
            _ => {}
        }
        i += c.len_utf8();
    }
    None
}

/// The parts of a file that are code of the test: whole strings of TOML, whole functions of a
/// source file, else from the first to the last instruction of a thread.
fn regions(test: &LitmusTest) -> Vec<Range<usize>> {
    let text = &test.file.text;
    let mut regions: Vec<Range<usize>> = Vec::new();
    let whole = |span: Range<usize>| {
        if test.launch.is_some() {
            return function_around(text, span.start);
        }
        ["'''", "\"\"\""].iter().find_map(|quote| {
            let open = text[..span.start].rfind(quote)?;
            let close = span.end + text[span.end..].find(quote)?;
            text[..open]
                .trim_end()
                .ends_with('=')
                .then(|| open + quote.len()..close)
        })
    };
    for t in test.program.thread_ids() {
        let spans: Vec<Range<usize>> = test
            .program
            .thread(t)
            .code
            .iter()
            .map(|i| i.span.range())
            .collect();
        for span in spans.iter().filter(|span| !span.is_empty()) {
            if regions.iter().any(|r| r.contains(&span.start)) {
                continue;
            }
            regions.push(whole(span.clone()).unwrap_or_else(|| {
                // Up to the end of the statement.
                let end = text[span.end..]
                    .find([';', '\n'])
                    .map_or(span.end, |n| span.end + n + 1);
                span.start..end
            }));
        }
    }
    let more = instance(test).into_iter().filter(|r| {
        regions
            .iter()
            .all(|have| r.end <= have.start || have.end <= r.start)
    });
    regions.extend(more.collect::<Vec<_>>());
    regions.sort_by_key(|r| r.start);
    regions
}

/// The values of a test that is an instance of its file: they belong to the code, but to no
/// instruction.
fn instance(test: &LitmusTest) -> Vec<Range<usize>> {
    let text = &test.file.text;
    let (mut found, mut at, mut inside) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let value = value.trim();
        let quoted =
            value.len() > 1 && value.starts_with(['"', '\'']) && value.ends_with(&value[..1]);
        if line.starts_with('[') {
            inside = false;
        } else if key.trim() == "name" && quoted {
            inside = value[1..value.len() - 1] == test.name;
        } else if inside && quoted {
            let open = start + line.find(value).unwrap_or(0);
            found.push(open + 1..open + value.len() - 1);
        }
    }
    found
}

/// The tokens of a part of a file, without comments and strings.
fn tokens(text: &str, region: Range<usize>) -> Vec<Range<usize>> {
    let (mut all, mut at) = (Vec::new(), region.start);
    while at < region.end {
        let rest = &text[at..region.end];
        let word = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |n| n + 2)
        } else if let Some(string) = rest.strip_prefix('"') {
            string.find('"').map_or(rest.len(), |n| n + 2)
        } else {
            0
        };
        let long = LONG
            .iter()
            .find(|p| rest.starts_with(**p))
            .map_or(0, |p| p.len());
        let one = rest.chars().next().map_or(1, char::len_utf8);
        let len = if word > 0 { word } else { long.max(one) };
        if skipped == 0 && !rest.starts_with(char::is_whitespace) {
            all.push(at..at + len);
        }
        at += skipped.max(if skipped > 0 { 0 } else { len });
    }
    all
}

mod calls;
#[cfg(test)]
mod tests;
