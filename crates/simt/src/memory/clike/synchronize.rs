//! Synchronization: finds the releases that an acquire synchronizes with, and extends its past.
//!
//! A release sequence by modification order may be needed before it is known whether a foreign
//! write will come between its members. Then the machine tries both: no such write ever comes, or
//! one comes before the end ([`Pin`]).

use rustc_hash::FxHashSet;

use super::graph::{History, HistoryEvent, HistoryKind, Pin};
use super::language::{BarrierMeaning, Sequence};
use super::{Clike, LOCAL, REGIONS};
use crate::choice::Chooser;
use crate::code::Code;
use crate::{Result, StepHalt};
use program::Scope;

/// Writes that an acquire has passed, each with the scope and atomicity of the read through which
/// it passed. A second read of the same kind finds nothing new behind them.
type Met = FxHashSet<(usize, Scope, bool)>;

/// A read through which an acquire synchronizes in a region.
#[derive(Clone, Copy)]
struct ReadInRegion<'r> {
    read: &'r HistoryEvent,
    region: usize,
}

impl Clike {
    /// Adds to the past of an event everything that its acquires take over. The event is not in the
    /// history yet, or is open.
    pub(super) fn acquire(
        &self,
        code: &Code,
        chooser: &mut dyn Chooser,
        m: &mut History,
        e: &mut HistoryEvent,
    ) -> Result {
        if !e.acquire || !self.rules.synchronization {
            return Ok(());
        }
        for region in REGIONS {
            if !e.regions.has(region) {
                continue;
            }
            if e.kind == HistoryKind::Read {
                let read = e.clone();
                let through = ReadInRegion {
                    read: &read,
                    region,
                };
                self.meet(code, chooser, m, e, through, &mut Met::default())?;
            } else if self.rules.acquire_fence {
                let reads: Vec<usize> = m.threads[e.thread]
                    .iter()
                    .copied()
                    .filter(|i| {
                        let y = &m.events[*i];
                        y.kind == HistoryKind::Read && y.regions.has(region)
                    })
                    .collect();
                let mut met = Met::default();
                for y in reads {
                    let read = m.events[y].clone();
                    let through = ReadInRegion {
                        read: &read,
                        region,
                    };
                    self.meet(code, chooser, m, e, through, &mut met)?;
                }
            }
        }
        Ok(())
    }

    /// Takes over the past that an acquire gets through one read.
    fn meet(
        &self,
        code: &Code,
        chooser: &mut dyn Chooser,
        m: &mut History,
        e: &mut HistoryEvent,
        through: ReadInRegion<'_>,
        met: &mut Met,
    ) -> Result {
        let ReadInRegion { read, region } = through;
        let source = read.source;
        if !read.atomic || !m.events[source].atomic {
            return Ok(());
        }
        for head in self.heads(code, m, through, e, met)? {
            let mut ends: Vec<usize> = Vec::new();
            let h = &*m.events[head];
            if h.release && h.regions.has(region) {
                ends.push(head);
            }
            if h.regions.has(region) {
                let at = m.place(head);
                let before = m.fences[h.thread]
                    .iter()
                    .copied()
                    .take_while(|&s| m.place(s) < at);
                ends.extend(
                    before.filter(|s| self.rules.release_fence && m.events[*s].regions.has(region)),
                );
            }
            ends.retain(|&s| {
                let s = &m.events[s];
                s.thread != e.thread && self.inclusive(code, s, e, region)
            });
            // A release that adds nothing needs no assumption.
            ends.retain(|&s| {
                self.regions(&m.events[s], e, region)
                    .any(|g| !e.past[g].has(s))
            });
            if !ends.is_empty()
                && self.relies(
                    chooser,
                    m,
                    Pin {
                        head,
                        last: source,
                        holds: true,
                    },
                )
            {
                for s in ends {
                    self.know(m, e, s, region);
                }
            }
        }
        Ok(())
    }

    /// The regions for which synchronization in one of them counts.
    fn regions(
        &self,
        s: &HistoryEvent,
        e: &HistoryEvent,
        region: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        fn both(e: &HistoryEvent) -> bool {
            e.is_fence() && REGIONS.iter().all(|&g| e.regions.has(g))
        }
        let cross =
            self.rules.cross && self.language.regions && ((s.sc && e.sc) || (both(s) && both(e)));
        REGIONS.into_iter().filter(move |&g| g == region || cross)
    }

    /// Adds another event and its past to an event, by synchronization in a region.
    pub(super) fn know(&self, m: &History, e: &mut HistoryEvent, s: usize, region: usize) {
        let from = &m.events[s];
        for g in self.regions(from, e, region).collect::<Vec<_>>() {
            e.past[g].insert(s);
            e.past[g].join(&from.past[g]);
        }
    }

    /// The heads of the release sequences that a read may read from, for an acquire in a region.
    /// For chains, it skips the writes in `met`.
    ///
    /// # Errors
    /// Blocked, if one of them was bound early and a release may come to be behind it; then nothing
    /// has changed.
    fn heads(
        &self,
        code: &Code,
        m: &History,
        through: ReadInRegion<'_>,
        acquire: &HistoryEvent,
        met: &mut Met,
    ) -> Result<Vec<usize>> {
        let ReadInRegion { read, region } = through;
        let source = read.source;
        let waits = |w: usize| self.awaits(code, m, w, acquire, region);
        if self.language.sequence == Sequence::Run {
            let loc = m.events[source].loc;
            if !self.rules.sequence || !self.ordered(code, loc) {
                return if waits(source) {
                    Err(StepHalt::Blocked)
                } else {
                    Ok(vec![source])
                };
            }
            let list = &m.order[loc];
            let mut heads: Vec<usize> = list[..=m.position(source)]
                .iter()
                .copied()
                .filter(|&h| {
                    m.events[h].kind == HistoryKind::Write
                        && m.is_member(source, m.events[h].thread)
                        && m.is_run(Pin {
                            head: h,
                            last: source,
                            holds: true,
                        })
                })
                .collect();
            if heads.iter().any(|&h| waits(h)) {
                return Err(StepHalt::Blocked);
            }
            heads.retain(|&h| m.events[h].atomic);
            return Ok(heads);
        }
        // Goes back through read-modify-writes; every link joins operations that include each
        // other.
        let (mut heads, mut at, mut reader) = (Vec::new(), source, read);
        while m.events[at].kind == HistoryKind::Write
            && self.inclusive(code, &m.events[at], reader, 0)
            && met.insert((at, read.scope[0], read.atomic))
        {
            if waits(at) {
                return Err(StepHalt::Blocked);
            }
            heads.push(at);
            let x = &m.events[at];
            if self.language.sequence == Sequence::LaterChain && self.rules.sequence {
                let before = m.of(x.thread).take_while(|(i, _)| *i != at);
                heads.extend(
                    before
                        .filter(|(_, h)| h.kind == HistoryKind::Write && h.loc == x.loc && h.atomic)
                        .map(|(i, _)| i),
                );
            }
            let Some(half) = x.read.filter(|_| self.rules.sequence) else {
                break;
            };
            reader = &m.events[half];
            at = reader.source;
        }
        heads.retain(|&h| self.inclusive(code, &m.events[h], read, 0));
        Ok(heads)
    }

    /// Whether the acquire relies on a release sequence; an open question becomes a choice, which
    /// is recorded.
    fn relies(&self, chooser: &mut dyn Chooser, m: &mut History, pin: Pin) -> bool {
        if self.language.sequence != Sequence::Run || pin.head == pin.last {
            return true;
        }
        let list = &m.order[m.events[pin.head].loc];
        let at = |w: usize| m.position(w);
        // A foreign write can only come before a write that is not a read-modify-write.
        let inner = at(pin.head) + 1..=at(pin.last);
        if !self.rules.pins || list[inner].iter().all(|&w| m.events[w].read.is_some()) {
            return true;
        }
        let same = |p: &&Pin| {
            m.events[p.head].thread == m.events[pin.head].thread
                && m.events[p.head].loc == m.events[pin.head].loc
        };
        let within = |a: &Pin, b: &Pin| at(b.head) <= at(a.head) && at(a.last) <= at(b.last);
        if m.pins
            .iter()
            .filter(same)
            .any(|p| p.holds && within(&pin, p))
        {
            return true;
        }
        if m.pins
            .iter()
            .filter(same)
            .any(|p| !p.holds && within(p, &pin))
        {
            return false;
        }
        let holds = chooser.choose(2) == 0;
        if holds || self.rules.breaks {
            m.pins.push(Pin { holds, ..pin });
        }
        holds
    }

    /// Adds to the past of a wait the events that arrivals hand on.
    pub(super) fn take(
        &self,
        m: &History,
        e: &mut HistoryEvent,
        arrivals: impl Iterator<Item = usize>,
    ) {
        if !self.rules.barriers {
            return;
        }
        for a in arrivals {
            let from = &m.events[a];
            if from.thread == e.thread {
                continue;
            }
            match self.language.meeting {
                BarrierMeaning::Nothing => {}
                BarrierMeaning::Order => self.know(m, e, a, 0),
                BarrierMeaning::Fences => {
                    for g in REGIONS {
                        if from.regions.has(g) && e.regions.has(g) {
                            self.know(m, e, a, g);
                        }
                    }
                }
            }
        }
        assert!(self.language.regions || e.past[LOCAL].iter().next().is_none());
    }
}
