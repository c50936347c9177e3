//! Choices: the options for one place of the code, in a partial order.
//!
//! A [`Choice`] is a [`Knob`] whose levels are texts: an instruction with each order and scope that
//! it may have, or without them; a fence, or none. The front end reads each text, and only texts
//! that it accepts are options.
//!
//! # Invariants
//! - One option is the written text; it changes nothing.
//! - Copies of an instruction, and launches of the same code, share their choices.

use std::collections::BTreeMap;

use diag::Span;
use front::litmus::{Splice, respelled};
use program::edits::{Change, Edit, EditSite, NewFence, edited, fence_text};
use program::litmus::LitmusTest;
use program::strength::{self, Order};
use program::{Op, Program, Scope, SourceLine, ThreadId};

use super::costs::Costs;
use crate::knobs::{Around, Knob, Spot, instr, rewritten, said, sites_of, spots, threads};
use crate::written::Source;

/// The strength of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    /// The bits of its order; `None`: weak, plain, or absent.
    order: Option<u8>,
    scope: Option<Scope>,
}

impl Stand {
    const ABSENT: Stand = Stand {
        order: None,
        scope: None,
    };

    fn of(op: &Op) -> Stand {
        let atomic = op.is_fence() || op.is_access() && !strength::is_plain(op);
        let order = atomic.then(|| strength::order(op).map_or(0, Order::bits));
        Stand {
            order,
            scope: order.and(strength::scope(op)),
        }
    }

    /// Whether it is no stronger than another one.
    fn up_to(&self, other: &Stand) -> bool {
        match (self.order, other.order) {
            (None, _) => true,
            (_, None) => false,
            (Some(a), Some(b)) => a & b == a && self.scope <= other.scope,
        }
    }
}

/// The options for one place.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Its options as levels, in no order. It is at its instructions; for an absent fence, at the
    /// place where it would be.
    pub(super) knob: Knob,
    /// By option: the strengths of the instructions that it concerns.
    stands: Vec<Vec<Stand>>,
    /// By option: its cost.
    pub(super) costs: Vec<u64>,
    /// The number of the test that has its instructions.
    pub(super) test: usize,
}

impl Choice {
    fn new(spots: Vec<Spot>, options: Vec<(Vec<Splice>, Vec<Stand>, u64)>) -> Option<Choice> {
        let written = options.iter().position(|option| option.0.is_empty())?;
        let own = options[written].1.clone();
        let (mut texts, mut stands, mut costs) = (Vec::new(), Vec::new(), Vec::new());
        for (text, stand, cost) in options {
            // Two spellings of one strength are one option.
            if text.is_empty() || stand != own && !stands.contains(&stand) && texts.len() < 63 {
                texts.push(text);
                stands.push(stand);
                costs.push(cost);
            }
        }
        let written = texts.iter().position(Vec::is_empty).unwrap_or(written);
        (texts.len() > 1).then(|| Choice {
            knob: Knob::of_texts(&spots, texts, written),
            stands,
            costs,
            test: 0,
        })
    }

    /// The changes of the text that all options make.
    fn splices(&self) -> impl Iterator<Item = &Splice> {
        (0..self.costs.len()).flat_map(|option| self.knob.splices(option))
    }

    /// Whether an option is no stronger than another one.
    pub(super) fn up_to(&self, a: usize, b: usize) -> bool {
        let mut pairs = self.stands[a].iter().zip(&self.stands[b]);
        pairs.all(|(a, b)| a.up_to(b))
    }

    /// Its place in the text.
    fn key(&self) -> Option<Span> {
        self.splices().map(|splice| splice.span).min()
    }

    /// An option in words, with its line and threads.
    pub(super) fn says(&self, test: &LitmusTest, option: usize) -> (String, SourceLine, String) {
        let program = &test.program;
        let mut own: Vec<Spot> = self.knob.spots().collect();
        own.sort_unstable();
        let threads = threads(program, own);
        if let Some(put_in) = self.splices().find(|s| s.span.range().is_empty()) {
            let (says, line) = self.absent_fence(program, option, put_in.span.start);
            return (says, line, threads);
        }
        let Some(first) = self.knob.instr(program) else {
            return (String::new(), 0.into(), threads);
        };
        let text = &test.file.text;
        let written = self.knob.written();
        let mut pieces = self.pieces(text, first.span);
        if option != written {
            pieces.retain(|p| self.shown(text, option, *p) != self.shown(text, written, *p));
        }
        let own = self.all_shown(text, written, &pieces);
        let new = self.all_shown(text, option, &pieces);
        let says = match new.as_str() {
            _ if option == written => format!("`{own}`"),
            "" => format!("no `{own}`"),
            new => format!("`{new}` in place of `{own}`"),
        };
        (says, first.line.clone(), threads)
    }

    /// An option for an absent fence in words, with the line of the instruction behind it.
    fn absent_fence(&self, program: &Program, option: usize, at: u32) -> (String, SourceLine) {
        let next = spots(program)
            .filter(|spot| self.knob.spots().any(|own| own.0 == spot.0))
            .map(|spot| instr(program, spot))
            .filter(|next| next.span.start >= at && next.op.is_visible())
            .min_by_key(|next| next.span.start);
        let (line, before) = next.map_or((0.into(), ""), |next| {
            (next.line.clone(), next.text.as_str())
        });
        let fence = self
            .knob
            .splices(option)
            .first()
            .map_or("", |s| s.text.trim().trim_end_matches(';').trim());
        let says = match fence {
            "" => format!("no fence before `{before}`"),
            fence => format!("`{fence}` before `{before}`"),
        };
        (says, line)
    }

    /// The parts of the text that show it. A change of several lines, such as a scope in a
    /// declaration, is shown line by line.
    fn pieces(&self, text: &str, first: Span) -> Vec<Span> {
        let span = self
            .splices()
            .fold(first, |all, splice| all.to(splice.span));
        if !text[span.range()].contains('\n') {
            return vec![span];
        }
        let changed = self.splices().map(|splice| splice.span);
        let mut pieces: Vec<Span> = changed.chain([first]).map(|at| lines(text, at)).collect();
        pieces.sort_unstable();
        pieces.dedup();
        pieces
    }

    /// The text of an option in one part.
    fn shown(&self, text: &str, option: usize, piece: Span) -> String {
        let (mut new, mut at) = (String::new(), piece.start as usize);
        for splice in self.knob.splices(option) {
            if piece.start <= splice.span.start && splice.span.end <= piece.end {
                new += &text[at..splice.span.start as usize];
                new += &splice.text;
                at = splice.span.end as usize;
            }
        }
        new += &text[at..(piece.end as usize).max(at)];
        let line = diag::one_line(&new);
        line.trim_end_matches(';').trim_end().to_owned()
    }

    /// The text of an option in several parts.
    fn all_shown(&self, text: &str, option: usize, pieces: &[Span]) -> String {
        let mut all: Vec<String> = pieces
            .iter()
            .map(|piece| self.shown(text, option, *piece))
            .collect();
        all.retain(|piece| !piece.is_empty());
        all.join("` and `")
    }
}

/// The whole lines of a part of the text.
fn lines(text: &str, at: Span) -> Span {
    let start = text[..at.start as usize].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at.end as usize..]
        .find('\n')
        .map_or(text.len(), |n| at.end as usize + n);
    Span::new(start, end)
}

/// The choices of tests that share their code, and the cost of everything that could be chosen, as
/// written.
pub(super) fn choices(tests: &[&LitmusTest], costs: &Costs) -> (Vec<Choice>, u64) {
    let scopes = scopes(tests);
    let mut all: Vec<Choice> = Vec::new();
    for (number, test) in tests.iter().enumerate() {
        let of_test = match Source::new(test) {
            Some(source) => spelled(test, &source, &scopes, costs),
            None => assembly(test, &scopes, costs),
        };
        for choice in of_test {
            match all.iter_mut().find(|other| other.key() == choice.key()) {
                Some(other) => other.merge(&choice),
                None => all.push(Choice {
                    test: number,
                    ..choice
                }),
            }
        }
    }
    all.retain(|choice| choice.costs.len() > 1);
    all.sort_by_key(Choice::key);
    // Instructions that the text has once cost once.
    fn at(test: &LitmusTest) -> Vec<(ThreadId, usize)> {
        spots(&test.program).collect::<Vec<Spot>>()
    }
    let mut by_span = BTreeMap::new();
    tests
        .iter()
        .for_each(|test| weigh(&test.program, &at(test), costs, &mut by_span));
    (all, by_span.values().sum())
}

impl Choice {
    /// Keeps the options that both have, for the instructions of both.
    fn merge(&mut self, other: &Choice) {
        let options = (0..self.costs.len()).filter_map(|i| {
            let text = self.knob.splices(i);
            let j = (0..other.costs.len()).find(|j| other.knob.splices(*j) == text)?;
            let stands = [self.stands[i].clone(), other.stands[j].clone()].concat();
            Some((text.to_vec(), stands, self.costs[i]))
        });
        if let Some(merged) = Choice::new(self.knob.spots().collect(), options.collect()) {
            *self = Choice {
                test: self.test,
                ..merged
            };
        } else {
            // Only the written option is left.
            self.costs.truncate(1);
        }
    }
}

/// The scopes to choose from: those in the program, and for each set of threads the narrowest scope
/// that holds it.
fn scopes(tests: &[&LitmusTest]) -> Vec<Scope> {
    let row = tests.first().map(|test| test.program.dialect.row());
    let (mut kept, mut seen): (Vec<Scope>, Vec<Vec<bool>>) = (Vec::new(), Vec::new());
    for scope in row.map(|row| row.choices()).unwrap_or_default() {
        let groups = pairs_together(tests, scope);
        let new = scope >= Scope::Cta && !seen.contains(&groups);
        let mut instrs = tests.iter().flat_map(|test| test.program.instrs());
        if new || instrs.any(|i| strength::scope(&i.2.op) == Some(scope)) {
            kept.push(scope);
            seen.push(groups);
        }
    }
    kept
}

/// For each pair of threads of each test, whether they share a scope.
fn pairs_together(tests: &[&LitmusTest], scope: Scope) -> Vec<bool> {
    let mut together = Vec::new();
    for test in tests {
        let threads = &test.program.threads;
        for (i, thread) in threads.iter().enumerate() {
            let before = threads[..i].iter();
            together.extend(before.map(|other| thread.place.same(&other.place, scope)));
        }
    }
    together
}

/// Whether an instruction is in a loop: a later branch goes back to before it.
fn in_loop(program: &Program, (thread, at): Spot) -> bool {
    let code = &program.thread(thread).code;
    code.iter()
        .enumerate()
        .skip(at)
        .any(|(i, back)| back.op.target().is_some_and(|to| to <= at && to <= i))
}

/// An instruction without its branch target.
fn body(op: &Op) -> String {
    match op {
        Op::Branch { cond, .. } => format!("{cond:?}"),
        op => format!("{op:?}"),
    }
}

/// Whether a change of the text makes another program of a test.
pub(super) fn makes_another(test: &LitmusTest, splice: &Splice) -> bool {
    fn ops(program: &Program) -> Vec<String> {
        program
            .instrs()
            .map(|(thread, _, instr)| format!("{thread:?} {:?}", instr.op))
            .collect()
    }
    respelled(test, std::slice::from_ref(splice))
        .is_none_or(|(new, _)| ops(&new.program) != ops(&test.program))
}

/// The result of reading a changed text: the program, and its new instructions.
struct Read {
    program: Program,
    added: Vec<Spot>,
}

/// Reads a text in which the instructions of some places were changed, added or removed. `None` if
/// the front end refuses it, or if anything else became different.
fn read(test: &LitmusTest, splices: &[Splice], changed: &[Spot], gone: bool) -> Option<Read> {
    let (new, put_in) = respelled(test, splices)?;
    let mut added = Vec::new();
    for t in new.program.thread_ids() {
        let (there, kept): (Vec<usize>, Vec<usize>) = (0..new.program.thread(t).code.len())
            .partition(|i| {
                let span = new.program.thread(t).code[*i].span;
                put_in
                    .iter()
                    .any(|at| at.start <= span.start && span.end <= at.end)
            });
        added.extend(there.into_iter().map(|i| (t, i)));
        let old = test.program.thread(t).code.iter().enumerate();
        let old: Vec<_> = old
            .filter(|(i, _)| !gone || !changed.contains(&(t, *i)))
            .collect();
        if old.len() != kept.len() {
            return None;
        }
        for ((i, old), new_at) in old.into_iter().zip(kept) {
            let may_differ = !gone && changed.contains(&(t, i));
            if !may_differ && body(&old.op) != body(&new.program.thread(t).code[new_at].op) {
                return None;
            }
        }
    }
    Some(Read {
        program: new.program,
        added,
    })
}

/// The strengths of instructions, and their cost; copies count once.
fn weighed(program: &Program, at: &[Spot], costs: &Costs) -> (Vec<Stand>, u64) {
    let stands = at
        .iter()
        .map(|spot| Stand::of(&instr(program, *spot).op))
        .collect();
    let mut by_span = BTreeMap::new();
    weigh(program, at, costs, &mut by_span);
    (stands, by_span.values().sum())
}

/// The costs of instructions by place. Copies count once, and the dearest micro-op counts for its
/// instruction.
fn weigh(program: &Program, at: &[Spot], costs: &Costs, by_span: &mut BTreeMap<Span, u64>) {
    for spot in at {
        let this = instr(program, *spot);
        let cost = by_span.entry(this.span).or_default();
        *cost = (*cost).max(costs.of(&this.op, in_loop(program, *spot)));
    }
}

/// An option of present instructions.
fn option(
    test: &LitmusTest,
    splices: Vec<Splice>,
    at: &[Spot],
    costs: &Costs,
) -> Option<(Vec<Splice>, Vec<Stand>, u64)> {
    let (stands, cost) = match splices.is_empty() {
        true => weighed(&test.program, at, costs),
        false => weighed(&read(test, &splices, at, false)?.program, at, costs),
    };
    Some((splices, stands, cost))
}

/// The option that removes a fence: the first of the texts that the front end takes.
fn without(
    test: &LitmusTest,
    texts: impl IntoIterator<Item = Span>,
    at: &[Spot],
) -> Option<(Vec<Splice>, Vec<Stand>, u64)> {
    texts.into_iter().find_map(|span| {
        let splices = vec![Splice {
            span,
            text: String::new(),
        }];
        read(test, &splices, at, true)?;
        Some((splices, vec![Stand::ABSENT; at.len()], 0))
    })
}

/// An absent fence: none, or one of some texts. A fence that is a choice already gets none beside
/// it.
fn put_in(
    test: &LitmusTest,
    span: Span,
    texts: impl IntoIterator<Item = String>,
    chosen: &[Spot],
    costs: &Costs,
) -> Option<Choice> {
    let mut at: Vec<Spot> = Vec::new();
    let mut options = Vec::new();
    for text in texts {
        let splices = vec![Splice { span, text }];
        let Some(Read { program, added }) =
            read(test, &splices, &[], false).filter(|read| !read.added.is_empty())
        else {
            continue;
        };
        let fences = added
            .iter()
            .all(|spot| instr(&program, *spot).op.is_fence());
        let put_between = added
            .iter()
            .all(|spot| is_put_between(&program, *spot, &added, chosen));
        if !fences || !put_between || !(at.is_empty() || at == added) {
            continue;
        }
        let (stands, cost) = weighed(&program, &added, costs);
        at = added;
        options.push((splices, stands, cost));
    }
    let none = (Vec::new(), vec![Stand::ABSENT; at.len()], 0);
    options.insert(0, none);
    Choice::new(at, options)
}

/// Whether a new fence has an instruction on each side that is no fence with a choice already.
fn is_put_between(program: &Program, spot: Spot, added: &[Spot], chosen: &[Spot]) -> bool {
    let code = &program.thread(spot.0).code;
    let before = (0..spot.1).rev().find(|i| code[*i].op.is_visible());
    let after = (spot.1 + 1..code.len()).find(|i| code[*i].op.is_visible());
    [before, after].into_iter().all(|next| {
        let Some(i) = next else { return false };
        let new = added.iter().filter(|new| new.0 == spot.0 && new.1 < i);
        let old = i - new.count();
        !code[i].op.is_fence() || !chosen.contains(&(spot.0, old))
    })
}

/// The choices of assembly, whose instructions are printed.
fn assembly(test: &LitmusTest, scopes: &[Scope], costs: &Costs) -> Vec<Choice> {
    let program = &test.program;
    let around = Around::new(program);
    let mut choices = Vec::new();
    for at in sites_of(program, &|instr| around.order(instr).is_some()) {
        let this = instr(program, at[0]);
        let Some((below, _, above)) = around.order(this) else {
            continue;
        };
        let own = strength::scope(&this.op);
        let orders = below
            .iter()
            .chain(&above)
            .map(|level| Some(level.0))
            .chain([None]);
        let mut options = Vec::new();
        for change in orders {
            if change == Some(Change::Nothing) {
                options.extend(without(test, statements(test, this.span), &at));
                continue;
            }
            let scoped = change != Some(Change::Weak) && (own.is_some() || change.is_some());
            let of_scopes: Vec<Option<Scope>> = match scoped {
                true => own
                    .filter(|own| !scopes.contains(own))
                    .iter()
                    .chain(scopes)
                    .map(|s| Some(*s))
                    .collect(),
                false => vec![None],
            };
            for scope in of_scopes {
                let scope = scope.filter(|scope| change.is_some() || Some(*scope) != own);
                let changes: Vec<Change> =
                    change.into_iter().chain(scope.map(Change::Scope)).collect();
                if changes.is_empty() {
                    options.extend(option(test, Vec::new(), &at, costs));
                    continue;
                }
                let texts: Option<Vec<Splice>> = at
                    .iter()
                    .map(|spot| rewritten(test, *spot, &changes))
                    .collect();
                let Some(mut texts) = texts else { continue };
                texts.sort_unstable();
                texts.dedup();
                let edits: Vec<Edit> = at
                    .iter()
                    .flat_map(|spot| {
                        changes
                            .iter()
                            .map(|c| (EditSite::Instr(spot.0, spot.1), *c))
                    })
                    .collect();
                let meant = edited(program, &edits);
                let Some(read) = read(test, &texts, &at, false) else {
                    continue;
                };
                if at
                    .iter()
                    .all(|s| said(&instr(&read.program, *s).op) == said(&instr(&meant, *s).op))
                {
                    options.extend(option(test, texts, &at, costs));
                }
            }
        }
        choices.extend(Choice::new(at, options));
    }
    let chosen: Vec<Spot> = choices
        .iter()
        .flat_map(|choice| choice.knob.spots())
        .collect();
    // Fences in front of accesses.
    for at in sites_of(program, &|instr| instr.op.is_access()) {
        let span = Span::new(
            instr(program, at[0]).span.start as usize,
            instr(program, at[0]).span.start as usize,
        );
        let line = &test.file.text[..span.start as usize];
        let indent = line.rsplit('\n').next().unwrap_or("");
        let end = if indent.trim().is_empty() {
            format!("\n{indent}")
        } else {
            "; ".to_owned()
        };
        let kinds = [Order::AcqRel, Order::SeqCst].into_iter();
        let fences = kinds.flat_map(|order| {
            scopes
                .iter()
                .map(move |scope| NewFence::Memory(order, *scope))
        });
        let texts = fences.map(|fence| fence_text(program.dialect, fence) + &end);
        choices.extend(put_in(test, span, texts, &chosen, costs));
    }
    choices
}

/// An instruction as a statement: with its semicolon, or without.
fn statements(test: &LitmusTest, span: Span) -> Vec<Span> {
    let behind = &test.file.text[span.end as usize..];
    let space = behind.len() - behind.trim_start_matches([' ', '\t']).len();
    let whole = behind[space..].starts_with(';').then(|| Span {
        end: span.end + space as u32 + 1,
        ..span
    });
    whole.into_iter().chain([span]).collect()
}

/// The choices of a language: its words for orders and scopes, and fences as statements.
fn spelled(test: &LitmusTest, source: &Source<'_>, scopes: &[Scope], costs: &Costs) -> Vec<Choice> {
    let program = &test.program;
    // Words that concern the same instructions are chosen together.
    let mut together: Vec<(Vec<Spot>, Vec<Vec<Splice>>)> = Vec::new();
    for (span, words) in source.words(scopes) {
        let mut at: Vec<Spot> = Vec::new();
        let mut texts = Vec::new();
        for text in words {
            let splice = Splice { span, text };
            let Some((new, _)) = respelled(test, std::slice::from_ref(&splice)) else {
                continue;
            };
            if program
                .thread_ids()
                .any(|t| new.program.thread(t).code.len() != program.thread(t).code.len())
            {
                continue;
            }
            fn stand(program: &Program, spot: &Spot) -> Stand {
                Stand::of(&instr(program, *spot).op)
            }
            let changed =
                spots(program).filter(|spot| stand(program, spot) != stand(&new.program, spot));
            let changed: Vec<Spot> = changed.collect();
            if !changed.is_empty() {
                at.extend(changed);
                texts.push(splice);
            }
        }
        at.sort_unstable();
        at.dedup();
        if texts.is_empty() {
            continue;
        }
        match together.iter_mut().find(|group| group.0 == at) {
            Some(group) => group.1.push(texts),
            None => together.push((at, vec![texts])),
        }
    }
    let fences = sites_of(program, &|instr| instr.op.is_fence());
    let gone = |at: &Vec<Spot>| without(test, source.statement(at[0]), at);
    let mut choices = Vec::new();
    for (at, words) in &together {
        let mut all: Vec<Vec<Splice>> = vec![Vec::new()];
        for texts in words {
            for some in 0..all.len() {
                for splice in texts {
                    all.push([all[some].as_slice(), std::slice::from_ref(splice)].concat());
                }
            }
        }
        let mut options: Vec<_> = all
            .into_iter()
            .filter_map(|texts| option(test, texts, at, costs))
            .collect();
        options.extend(fences.iter().find(|fence| *fence == at).and_then(gone));
        choices.extend(Choice::new(at.clone(), options));
    }
    for at in fences
        .iter()
        .filter(|at| !together.iter().any(|group| group.0 == **at))
    {
        let options = option(test, Vec::new(), at, costs)
            .into_iter()
            .chain(gone(at));
        choices.extend(Choice::new(at.clone(), options.collect()));
    }
    let chosen: Vec<Spot> = choices
        .iter()
        .flat_map(|choice| choice.knob.spots())
        .collect();
    // A fence between two accesses is one fence, at whatever place between them.
    let mut between: Vec<Vec<(ThreadId, usize)>> = Vec::new();
    for (span, texts) in source.put_in(scopes, Around::new(program).wide()) {
        let Some(choice) = put_in(test, span, texts, &chosen, costs) else {
            continue;
        };
        let mut place = Vec::new();
        for (thread, at) in choice.knob.spots() {
            let code = program.thread(thread).code.iter().take(at);
            place.push((thread, code.filter(|i| i.op.is_visible()).count()));
        }
        if !between.contains(&place) {
            between.push(place);
            choices.push(choice);
        }
    }
    choices
}
