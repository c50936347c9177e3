//! Adds barriers and waits between statements.
//!
//! # Invariants
//! - An added barrier is for all threads of a group.

use std::ops::Range;

use program::{Scope, ThreadId};

use super::Source;
use super::gaps::BracedBlock;
use crate::knobs::{Knob, Written};

/// The number of ways to put a barrier into threads whose code differs.
const APART: usize = 64;

impl Source<'_> {
    /// Barriers between statements, in code that all threads of a group have. Those outside of
    /// branches come first; the number says how many they are. The code goes on with the barriers
    /// that it names; without any, with that of the whole group.
    pub(crate) fn barriers(&self) -> (Vec<Knob>, usize) {
        let all = self.writing.barriers;
        let named = all.iter().filter(|barrier| self.names_call(barrier.0));
        let mut words: Vec<&(&str, Scope)> = named.collect();
        if words.is_empty() {
            words = all.iter().filter(|b| b.1 == Scope::Cta).collect();
        }
        let blocks = self.blocks();
        // At the end of a round, rather than at the start of the next one.
        let mut gaps = self.gaps();
        gaps.sort_by_key(|gap| {
            let is_head = |b: &BracedBlock| b.is_loop && b.range.start == gap.start;
            (
                on_branch(&blocks, gap),
                blocks.iter().any(is_head),
                gap.start,
            )
        });
        let (mut straight, mut branches) = (Vec::new(), Vec::new());
        for gap in &gaps {
            let knobs = match on_branch(&blocks, gap) {
                true => &mut branches,
                false => &mut straight,
            };
            knobs.extend(self.barrier_at(gap, &words));
        }
        let first = straight.len();
        straight.append(&mut branches);
        (straight, first)
    }

    /// Whether the code names the function of a call.
    fn names_call(&self, call: &str) -> bool {
        let name = call.split('(').next().unwrap_or(call);
        (0..self.tokens.len()).any(|at| self.token(at) == name)
    }

    /// A knob for the barriers that all threads of a group meet at, put into a gap.
    fn barrier_at(&self, gap: &Range<usize>, words: &[&(&str, Scope)]) -> Option<Knob> {
        let narrow = words.iter().map(|b| b.1).min()?;
        if let [only] = words {
            // The front end reads the program for each knob.
            return self
                .knob(Written::Barrier, gap, [self.statement_at(gap, only.0)])
                .filter(|knob| self.is_of_groups(knob, only.1));
        }
        let mut texts = Vec::new();
        for &&(word, scope) in words {
            let text = self.statement_at(gap, word);
            let one = self.knob(Written::Barrier, gap, [text.clone()]);
            if one.is_some_and(|one| self.is_of_groups(&one, scope)) {
                texts.push(text);
            }
        }
        self.knob(Written::Barrier, gap, texts)
            .filter(|knob| self.is_of_groups(knob, narrow))
    }

    /// Barriers of threads whose code differs: one in each thread of a group.
    pub(crate) fn meetings(&self) -> Vec<Knob> {
        let program = &self.test.program;
        let mut found = Vec::new();
        let Some(&(word, scope)) = self.writing.barriers.last() else {
            return found;
        };
        let gaps = self.gaps();
        let all: Vec<(ThreadId, Knob)> = gaps
            .iter()
            .filter_map(|gap| self.barrier_of_one(gap, word))
            .collect();
        let mut seen: Vec<ThreadId> = Vec::new();
        for t in program.thread_ids() {
            let place = &program.thread(t).place;
            let mut mates: Vec<ThreadId> = program.thread_ids().collect();
            mates.retain(|u| program.thread(*u).place.same(place, scope));
            if seen.contains(&t) || mates.len() < 2 {
                continue;
            }
            seen.extend(&mates);
            found.extend(
                one_of_each(&all, &mates)
                    .into_iter()
                    .filter_map(Knob::joined)
                    .filter(|knob| self.is_of_groups(knob, scope)),
            );
        }
        found
    }

    /// A barrier in a gap, if only one thread gets it.
    fn barrier_of_one(&self, gap: &Range<usize>, word: &str) -> Option<(ThreadId, Knob)> {
        let knob = self.knob(Written::Barrier, gap, [self.statement_at(gap, word)])?;
        let mut threads: Vec<ThreadId> = knob.spots().map(|spot| spot.0).collect();
        threads.dedup();
        (threads.len() == 1).then(|| (threads[0], knob))
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
        let mut commands = self
            .test
            .program
            .host
            .iter()
            .flat_map(|host| &host.commands);
        let depends = commands.any(|command| command.programmatic);
        let waits: Vec<&str> = self
            .writing
            .waits
            .iter()
            .filter(|wait| {
                wait.1.iter().any(|part| {
                    self.names(part) || depends && part.to_lowercase().contains("griddep")
                })
            })
            .map(|wait| wait.0)
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
        let mut knobs = Vec::new();
        for wait in waits {
            for gap in &gaps {
                knobs.extend(self.knob(kind, gap, [self.statement_at(gap, wait)]));
            }
        }
        knobs
    }

    /// Whether a token of the code has this part.
    fn names(&self, part: &str) -> bool {
        (0..self.tokens.len()).any(|at| self.token(at).contains(part))
    }
}

/// Whether only one side of a branch reaches a gap.
fn on_branch(blocks: &[BracedBlock], gap: &Range<usize>) -> bool {
    blocks.iter().any(|b| b.is_branch && b.holds(gap))
}

/// All ways to take one knob of each thread; none if they are too many.
fn one_of_each(all: &[(ThreadId, Knob)], threads: &[ThreadId]) -> Vec<Vec<Knob>> {
    let mut ways: Vec<Vec<Knob>> = vec![Vec::new()];
    for thread in threads {
        let own: Vec<&Knob> = all
            .iter()
            .filter(|knob| knob.0 == *thread)
            .map(|knob| &knob.1)
            .collect();
        if ways.len() * own.len() > APART {
            return Vec::new();
        }
        let mut longer = Vec::new();
        for way in &ways {
            for knob in &own {
                longer.push([way.as_slice(), &[(*knob).clone()]].concat());
            }
        }
        ways = longer;
    }
    ways
}
