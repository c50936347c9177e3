//! Kinds of change: the parts of a program that can be made weaker or stronger, in every dialect.
//!
//! A kind lists its [`Knob`]s in a program. The levels of a knob go from the weakest to the
//! strongest, and one of them is the written one. Explanations turn knobs down, to see what an
//! answer needs; repairs turn them up ([`search`](crate::search)).
//!
//! # Invariants
//! - The written level changes nothing; every other level is one change of all places of the knob.
//! - Copies of one instruction (threads of one kernel) share one knob. Barriers that meet share
//!   one, too, since a barrier without its partner waits without end.

use std::collections::HashMap;

use front::litmus::{Splice, respelled};
use program::edits::{Change, Edit, EditSite, edited};
use program::litmus::LitmusTest;
use program::strength;
use program::{EventKind, Instr, LocId, Op, Program, Scope, Tags, ThreadId};

mod kinds;
mod needs;
mod version;

pub use kinds::{
    Around, Kind, WEAK, barriers, buffers, dependencies, fences, fences_before, flags, has_proxy,
    names, orders, places, proxies, proxy_fences, proxy_fences_anywhere, regions, scopes,
    strengths,
};
pub(crate) use needs::{rewritten, threads};
pub use version::version;
pub(crate) use version::{Added, Changes, Version};

/// An instruction of a thread.
pub type Spot = (ThreadId, usize);

/// The action of a knob's level.
#[derive(Clone, Debug)]
enum Act {
    /// Nothing: the written level.
    Own,
    /// Change instructions, locations or threads.
    Change(Change),
    /// Replace parts of the file.
    Text(Vec<Splice>),
}

/// A level of a knob: its action, and its state in words; empty: nothing is there.
#[derive(Clone, Debug)]
pub(crate) struct KnobLevel(Act, String);

impl KnobLevel {
    /// A level that changes the text.
    pub(crate) fn text(splices: Vec<Splice>) -> KnobLevel {
        KnobLevel(Act::Text(splices), String::new())
    }

    /// The same level, with other words for its state.
    pub(crate) fn called(self, says: &str) -> KnobLevel {
        KnobLevel(self.0, says.to_owned())
    }
}

/// A part of a program with levels.
#[derive(Clone, Debug)]
pub struct Knob {
    /// The places that it changes.
    pub sites: Vec<EditSite>,
    levels: Vec<KnobLevel>,
    /// The level that is written.
    written: usize,
    kind: Written,
}

/// The subject of a change of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The scope.
    Scope,
    /// The order.
    Order,
    /// The flags.
    Flags,
    /// A barrier that is absent.
    Barrier,
    /// A call of a host thread that is absent, or names another stream.
    Call,
    /// Anything else that is absent or plain.
    More,
}

impl Knob {
    /// A knob with levels below and above the written one.
    fn new(
        sites: Vec<EditSite>,
        below: Vec<(Change, String)>,
        own: String,
        above: Vec<(Change, String)>,
    ) -> Knob {
        let written = below.len();
        let change = |(change, says)| KnobLevel(Act::Change(change), says);
        let own = KnobLevel(Act::Own, own);
        let levels = below
            .into_iter()
            .map(change)
            .chain([own])
            .chain(above.into_iter().map(change))
            .collect();
        Knob {
            sites,
            levels,
            written,
            kind: Written::More,
        }
    }

    /// A knob that changes the text of the file to something stronger.
    pub(crate) fn written_so(kind: Written, spots: &[Spot], above: Vec<KnobLevel>) -> Knob {
        let levels = [KnobLevel(Act::Own, String::new())]
            .into_iter()
            .chain(above)
            .collect();
        Knob {
            sites: at(spots),
            levels,
            written: 0,
            kind,
        }
    }

    /// A knob whose levels are texts in no order. The written level changes nothing of the text.
    pub(crate) fn of_texts(spots: &[Spot], texts: Vec<Vec<Splice>>, written: usize) -> Knob {
        let levels = texts
            .into_iter()
            .enumerate()
            .map(|(at, splices)| match at == written {
                true => KnobLevel(Act::Own, String::new()),
                false => KnobLevel::text(splices),
            })
            .collect();
        Knob {
            sites: at(spots),
            levels,
            written,
            kind: Written::More,
        }
    }

    /// The same, for everything that concerns a location.
    pub(crate) fn of_location(mut self, loc: LocId) -> Knob {
        self.sites.insert(0, EditSite::Location(loc));
        self
    }

    /// The written level and weaker ones; `None` if nothing is weaker.
    pub fn down(mut self) -> Option<Knob> {
        self.levels.truncate(self.written + 1);
        (self.levels.len() > 1).then_some(self)
    }

    /// The written level and stronger ones; `None` if nothing is stronger.
    pub fn up(mut self) -> Option<Knob> {
        self.levels.drain(..self.written);
        self.written = 0;
        (self.levels.len() > 1).then_some(self)
    }

    /// The written level, and the last level that is wanted.
    pub fn only(mut self, wanted: impl Fn(Change) -> bool) -> Option<Knob> {
        let own = self.levels[self.written].clone();
        let level = self
            .levels
            .into_iter()
            .rev()
            .find(|level| level.change().is_some_and(&wanted))?;
        (self.levels, self.written) = (vec![own, level], 0);
        Some(self)
    }

    /// Drops levels that the front end refuses as text.
    pub(crate) fn writable(mut self, test: &LitmusTest) -> Option<Knob> {
        let written = |level: &KnobLevel| {
            let Some(change) = level
                .change()
                .filter(|c| !matches!(c, Change::FenceBefore(_)))
            else {
                return true;
            };
            let splices: Option<Vec<Splice>> = self
                .spots()
                .map(|spot| rewritten(test, spot, &[change]))
                .collect();
            splices.is_none_or(|mut splices| {
                splices.sort_unstable();
                splices.dedup();
                let edits = self
                    .spots()
                    .map(|(t, i)| (EditSite::Instr(t, i), change))
                    .collect::<Vec<_>>();
                let changed = edited(&test.program, &edits);
                respelled(test, &splices).is_some_and(|(new, _)| {
                    self.spots().all(|spot| {
                        let there = new.program.thread(spot.0).code.get(spot.1);
                        there
                            .is_some_and(|there| said(&there.op) == said(&instr(&changed, spot).op))
                    })
                })
            })
        };
        let (own, above) = self.levels.split_first()?;
        let levels: Vec<KnobLevel> = std::iter::once(own)
            .chain(above.iter().filter(|l| written(l)))
            .cloned()
            .collect();
        self.levels = levels;
        (self.levels.len() > 1).then_some(self)
    }

    /// One knob for each place.
    pub fn apart(self) -> impl Iterator<Item = Knob> {
        let Knob {
            sites,
            levels,
            written,
            kind,
        } = self;
        sites.into_iter().map(move |site| Knob {
            sites: vec![site],
            levels: levels.clone(),
            written,
            kind,
        })
    }

    /// One knob for the places of all; `None` if there are no knobs.
    pub fn joined(knobs: Vec<Knob>) -> Option<Knob> {
        let mut sites: Vec<EditSite> = knobs.iter().flat_map(|knob| knob.sites.clone()).collect();
        sites.sort_unstable();
        knobs
            .into_iter()
            .reduce(|mut all, knob| {
                for (level, more) in all.levels.iter_mut().zip(knob.levels) {
                    if let (KnobLevel(Act::Text(splices), _), KnobLevel(Act::Text(more), _)) =
                        (level, more)
                    {
                        splices.extend(more);
                    }
                }
                all
            })
            .map(|all| Knob { sites, ..all })
    }

    /// Whether it helps alone or not at all: more barriers, or more waiting calls, are not
    /// stronger.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self.kind, Written::Barrier | Written::Call)
    }

    /// Whether it moves a thread to another place.
    pub(crate) fn is_place(&self) -> bool {
        matches!(self.sites.as_slice(), [EditSite::Thread(_)])
    }

    /// The subject of its changes of the text.
    pub(crate) fn kind(&self) -> Written {
        self.kind
    }

    /// Its strongest level.
    pub fn top(&self) -> usize {
        self.levels.len() - 1
    }

    /// The written level.
    pub fn written(&self) -> usize {
        self.written
    }

    /// The change of the program at a level.
    pub fn change(&self, level: usize) -> Option<Change> {
        self.levels[level].change()
    }

    /// The state at a level in words.
    pub(crate) fn says(&self, level: usize) -> &str {
        &self.levels[level].1
    }

    /// The changes of the text at a level.
    pub(crate) fn splices(&self, level: usize) -> &[Splice] {
        match &self.levels[level].0 {
            Act::Text(splices) => splices,
            _ => &[],
        }
    }

    /// Its changes of the program at a level.
    pub fn edits(&self, level: usize) -> impl Iterator<Item = Edit> {
        self.change(level)
            .into_iter()
            .flat_map(|change| self.sites.iter().map(move |&site| (site, change)))
    }

    /// The place of the fence that a level puts in front of an instruction.
    pub(crate) fn fence_site(&self, level: usize) -> Option<EditSite> {
        let fence = matches!(self.change(level)?, Change::FenceBefore(_));
        self.sites.first().filter(|_| fence).copied()
    }

    /// The instructions that it changes.
    pub fn spots(&self) -> impl Iterator<Item = Spot> {
        self.sites.iter().filter_map(|site| match *site {
            EditSite::Instr(t, i) => Some((t, i)),
            _ => None,
        })
    }

    /// The first of its instructions; text behind the last instruction belongs to none.
    pub fn instr<'p>(&self, program: &'p Program) -> Option<&'p Instr> {
        self.spots()
            .next()
            .and_then(|(thread, at)| program.thread(thread).code.get(at))
    }
}

impl KnobLevel {
    fn change(&self) -> Option<Change> {
        if let Act::Change(change) = self.0 {
            Some(change)
        } else {
            None
        }
    }
}

/// The part of an instruction that a model may see.
pub(crate) fn said(op: &Op) -> (Vec<(EventKind, Tags)>, Option<Scope>) {
    (
        op.tags()
            .into_iter()
            .map(|(kind, tags)| (kind, *tags))
            .collect(),
        op.scope(),
    )
}

/// The instruction at a spot.
pub fn instr(program: &Program, (thread, at): Spot) -> &Instr {
    &program.thread(thread).code[at]
}

pub(crate) fn spots(program: &Program) -> impl Iterator<Item = Spot> {
    program.instrs().map(|(t, i, _)| (t, i))
}

pub(crate) fn at(spots: &[Spot]) -> Vec<EditSite> {
    spots.iter().map(|&(t, i)| EditSite::Instr(t, i)).collect()
}

/// The instructions of a kind, each with its copies: those made of the same text.
pub(crate) fn sites_of(program: &Program, wanted: &dyn Fn(&Instr) -> bool) -> Vec<Vec<Spot>> {
    let mut sites: Vec<(_, usize, Vec<Spot>)> = Vec::new();
    for thread in program.thread_ids() {
        let mut seen: HashMap<_, usize> = HashMap::new();
        for (at, this) in program.thread(thread).code.iter().enumerate() {
            // Elements of a vector change together.
            if this.element.at > 0 || !wanted(this) {
                continue;
            }
            let ordinal = *seen.entry(this.span).and_modify(|n| *n += 1).or_default();
            let like = |site: &&mut (_, usize, Vec<Spot>)| {
                let op = &instr(program, site.2[0]).op;
                (site.0, site.1) == (this.span, ordinal)
                    && strength::order(op) == strength::order(&this.op)
                    && strength::scope(op) == strength::scope(&this.op)
            };
            match sites.iter_mut().find(like) {
                Some(site) => site.2.push((thread, at)),
                None => sites.push((this.span, ordinal, vec![(thread, at)])),
            }
        }
    }
    sites.into_iter().map(|site| site.2).collect()
}

#[cfg(test)]
mod tests {
    use super::needs::respelt;
    use super::{Around, fences_before, instr, spots};
    use front::litmus::parse;

    /// A copy is several micro-ops: a fence before it comes before the first one.
    #[test]
    fn a_fence_stands_in_front_of_an_instruction() {
        let text = "name = \"T\"\n[memory]\nx = { type = \"u32\", space = \"shared\" }\ng = { \
        type = \"u32\" }\n\
            [[thread]]\ncta = 0\ncode = '''\nst.u32 [g], 1;\ncp.async.ca.shared.global [x], [g], \
            4;\n\
            cp.async.wait_all;\nld.shared.u32 a, [x];\n'''\n";
        let tests = parse("t.toml", text.as_bytes()).expect("a test");
        let program = &tests[0].program;
        let sites = fences_before(&Around::new(program));
        let at = |knob: &super::Knob| knob.sites.clone();
        let accesses = spots(program)
            .filter(|spot| instr(program, *spot).op.is_access())
            .count();
        assert!(accesses > 3, "{accesses}");
        assert_eq!(
            sites.len(),
            2,
            "{:?}",
            sites.iter().map(at).collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_is_not_changed_of_an_instruction_stays_as_it_is_written() {
        for (there, own, new, respelled) in [
            (
                "ld.acquire.sys.b32 %r2,[%rd3]",
                "ld.acquire.sys.u32 r2, [rd3]",
                "ld.relaxed.gpu.u32 r2, [rd3]",
                Some("ld.relaxed.gpu.b32 %r2,[%rd3]"),
            ),
            // The default.
            (
                "@%p1 ld.global.u32 \t%r2, [%rd3]",
                "ld.weak.u32 r2, [rd3]",
                "ld.acquire.gpu.u32 r2, [rd3]",
                Some("@%p1 ld.acquire.gpu.global.u32 \t%r2, [%rd3]"),
            ),
            (
                "atom.exch.acquire.gpu.b32 %r2,[%rd2],%r3",
                "atom.acquire.gpu.exch.u32 r2, [rd2], r3",
                "atom.acquire.cta.exch.u32 r2, [rd2], r3",
                Some("atom.exch.acquire.cta.b32 %r2,[%rd2],%r3"),
            ),
            // Another instruction.
            ("membar.gl", "fence.sc.gpu", "fence.acq_rel.gpu", None),
        ] {
            assert_eq!(respelt(there, own, new).as_deref(), respelled);
        }
    }
}
