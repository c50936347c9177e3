//! Synchronization: which releases an acquire meets, and what it knows from then on.
//!
//! A release sequence by modification order may be relied on before it is known that nothing
//! foreign will come between its members. Then both are tried: that nothing ever will, and that
//! something will before the end ([`Pin`]).

use rustc_hash::FxHashSet;

use super::graph::{Contents, Event, Kind, Pin};
use super::language::{Meeting, Sequence};
use super::{Clike, LOCAL, REGIONS};
use crate::choice::Chooser;
use crate::code::Code;
use crate::{Halt, Result};
use program::Scope;

/// Writes that an acquire has come by, each with the scope of the read that it came by it through
/// and whether that was atomic: through another read of that kind there is nothing new behind them.
type Met = FxHashSet<(usize, Scope, bool)>;

impl Clike {
    /// Adds to the past of an event, which is not in the history yet or open, what its acquires
    /// take over.
    pub(super) fn acquire(
        &self,
        code: &Code,
        chooser: &mut dyn Chooser,
        m: &mut Contents,
        e: &mut Event,
    ) -> Result {
        if !e.acquire || !self.rules.synchronization {
            return Ok(());
        }
        for region in REGIONS {
            if !e.regions.has(region) {
                continue;
            }
            if e.kind == Kind::Read {
                let read = e.clone();
                self.meet(code, chooser, m, e, (&read, region), &mut Met::default())?;
            } else if self.rules.acquire_fence {
                let before = |i: &usize| {
                    let y = &m.events[*i];
                    y.kind == Kind::Read && y.regions.has(region)
                };
                let reads: Vec<usize> =
                    m.threads[e.thread].iter().copied().filter(before).collect();
                let mut met = Met::default();
                for y in reads {
                    let read = m.events[y].clone();
                    self.meet(code, chooser, m, e, (&read, region), &mut met)?;
                }
            }
        }
        Ok(())
    }

    /// What an acquire takes over through one read.
    fn meet(
        &self,
        code: &Code,
        chooser: &mut dyn Chooser,
        m: &mut Contents,
        e: &mut Event,
        (read, region): (&Event, usize),
        met: &mut Met,
    ) -> Result {
        let source = read.source;
        if !read.atomic || !m.events[source].atomic {
            return Ok(());
        }
        for head in self.heads(code, m, read, (e, region), met)? {
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
                let counts =
                    |s: &usize| self.rules.release_fence && m.events[*s].regions.has(region);
                ends.extend(before.filter(counts));
            }
            ends.retain(|&s| {
                let s = &m.events[s];
                s.thread != e.thread && self.inclusive(code, s, e, region)
            });
            // Nothing new is nothing to rely on.
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
    fn regions(&self, s: &Event, e: &Event, region: usize) -> impl Iterator<Item = usize> + use<> {
        let both = |e: &Event| e.is_fence() && REGIONS.iter().all(|&g| e.regions.has(g));
        let cross =
            self.rules.cross && self.language.regions && ((s.sc && e.sc) || (both(s) && both(e)));
        REGIONS.into_iter().filter(move |&g| g == region || cross)
    }

    /// An event knows another, and its past, from synchronization in a region.
    pub(super) fn know(&self, m: &Contents, e: &mut Event, s: usize, region: usize) {
        let from = &m.events[s];
        for g in self.regions(from, e, region).collect::<Vec<_>>() {
            e.past[g].insert(s);
            e.past[g].join(&from.past[g]);
        }
    }

    /// The heads of the release sequences that a read may be reading from, for an acquire, in a
    /// region; by chains, without what was met already.
    ///
    /// # Errors
    /// Blocked, if a release may come to be behind one of them that was bound early; nothing has
    /// changed then.
    fn heads(
        &self,
        code: &Code,
        m: &Contents,
        read: &Event,
        acquire: (&Event, usize),
        met: &mut Met,
    ) -> Result<Vec<usize>> {
        let source = read.source;
        let waits = |w: usize| self.awaits(code, m, w, acquire);
        if self.language.sequence == Sequence::Run {
            let loc = m.events[source].loc;
            if !self.rules.sequence || !self.ordered(code, loc) {
                return if waits(source) {
                    Err(Halt::Blocked)
                } else {
                    Ok(vec![source])
                };
            }
            let list = &m.order[loc];
            let run = |&h: &usize| {
                m.events[h].kind == Kind::Write
                    && m.is_member(source, m.events[h].thread)
                    && m.is_run(Pin {
                        head: h,
                        last: source,
                        holds: true,
                    })
            };
            let mut heads: Vec<usize> = list[..=m.position(source)]
                .iter()
                .copied()
                .filter(run)
                .collect();
            if heads.iter().any(|&h| waits(h)) {
                return Err(Halt::Blocked);
            }
            heads.retain(|&h| m.events[h].atomic);
            return Ok(heads);
        }
        // Back through read-modify-writes; every link is between operations that include each
        // other.
        let (mut heads, mut at, mut reader) = (Vec::new(), source, read);
        while m.events[at].kind == Kind::Write
            && self.inclusive(code, &m.events[at], reader, 0)
            && met.insert((at, read.scope[0], read.atomic))
        {
            if waits(at) {
                return Err(Halt::Blocked);
            }
            heads.push(at);
            let x = &m.events[at];
            if self.language.sequence == Sequence::LaterChain && self.rules.sequence {
                let before = m.of(x.thread).take_while(|(i, _)| *i != at);
                let earlier =
                    |(_, h): &(usize, &Event)| h.kind == Kind::Write && h.loc == x.loc && h.atomic;
                heads.extend(before.filter(earlier).map(|(i, _)| i));
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

    /// Whether a release sequence is relied on; if that is open, it is chosen and remembered.
    fn relies(&self, chooser: &mut dyn Chooser, m: &mut Contents, pin: Pin) -> bool {
        if self.language.sequence != Sequence::Run || pin.head == pin.last {
            return true;
        }
        let list = &m.order[m.events[pin.head].loc];
        let at = |w: usize| m.position(w);
        // Only before a write that is no read-modify-write may something foreign come.
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

    /// A wait takes over what arrivals hand on.
    pub(super) fn take(&self, m: &Contents, e: &mut Event, arrivals: impl Iterator<Item = usize>) {
        if !self.rules.barriers {
            return;
        }
        for a in arrivals {
            let from = &m.events[a];
            if from.thread == e.thread {
                continue;
            }
            match self.language.meeting {
                Meeting::Nothing => {}
                Meeting::Order => self.know(m, e, a, 0),
                Meeting::Fences => {
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
