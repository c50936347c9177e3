//! mbarrier objects: hands the knowledge of arrivals to the waits that observe their phase
//! complete.
//!
//! An object is a location, and its writes are all its operations, in one order. Each write carries
//! the arrivals of its phase, and those of the previous phase, which a wait takes over.
//!
//! # Sources
//! - PTX ISA 9.4, *mbarrier.test_wait / mbarrier.try_wait*; `mbarrier-sync` in `models/ptx.cat`.

use std::rc::Rc;

use super::tail::PendingRead;
use super::write::{ObjectArrival, ObjectArrivals, PatternHead, ReadOrigin};
use super::{Weak, WeakContents};
use crate::code::{Code, OnObject};
use crate::memory::MemoryAccess;
use program::Scope;
use program::mbarrier::{PHASES, phase_of};

impl Weak {
    /// An operation on an object, just after the commit of its write.
    pub(super) fn on_object(
        &self,
        m: &mut WeakContents,
        code: &Code,
        t: MemoryAccess,
        slot: usize,
        origin: ReadOrigin,
        does: OnObject,
    ) {
        let MemoryAccess { at, place, access } = t;
        let location = &m.locations[place.loc];
        let ReadOrigin::From(source, _) = origin else {
            unreachable!("every operation reads its object")
        };
        let from = location.get(usize::from(source));
        let (before, after) = (phase_of(from.value), phase_of(location.get(slot).value));
        let mut arrivals = (*from.arrivals).clone();
        match does {
            OnObject::Init => {
                let me = &mut m.threads[at.thread];
                Self::know(code, &mut me.inits, t, slot, false);
            }
            OnObject::Arrive => {
                let me = &m.threads[at.thread];
                let fences = me
                    .release_fences
                    .iter()
                    .filter(|_| self.rules.release_fence);
                let own = access.release.then_some((&access.scope, &me.known));
                let heads = fences.chain(own);
                arrivals
                    .current
                    .extend(heads.map(|(&scope, view)| ObjectArrival {
                        head: PatternHead {
                            thread: at.thread as u16,
                            scope,
                            view: view.clone(),
                        },
                        scope: access.scope,
                        told: false,
                        read: false,
                    }));
            }
            OnObject::Complete => {
                let mut view = m.threads[at.thread].own.clone();
                super::tags::complete(&mut view);
                let head = PatternHead {
                    thread: at.thread as u16,
                    scope: access.scope,
                    view,
                };
                let scope = access.scope;
                arrivals.current.push(ObjectArrival {
                    head,
                    scope,
                    told: true,
                    read: false,
                });
                for (_, pending) in &m.threads[at.thread].pending {
                    if let PendingRead::Head(head) = pending {
                        arrivals.current.push(ObjectArrival {
                            head: head.clone(),
                            scope,
                            told: true,
                            read: true,
                        });
                    }
                }
            }
            OnObject::Wait => self.take_over(m, code, t, &arrivals),
            OnObject::Other => {}
        }
        if after != before {
            let complete = std::mem::take(&mut arrivals.current);
            // The end of an object completes no phase.
            arrivals.complete = if after == (before + 1) % PHASES {
                complete
            } else {
                Vec::new()
            };
        }
        let write = m.locations[place.loc].get_mut(slot);
        write.arrivals = Rc::new(arrivals);
        write.flat = true;
    }

    /// A wait has observed the phase complete.
    fn take_over(
        &self,
        m: &mut WeakContents,
        code: &Code,
        t: MemoryAccess,
        arrivals: &ObjectArrivals,
    ) {
        if !self.rules.synchronization {
            return;
        }
        let MemoryAccess { at, place, access } = t;
        let joins = |u: u16, s: Scope| {
            let u = usize::from(u);
            !self.rules.scopes || u == at.thread || code.mutual(u, s, at.thread, access.scope)
        };
        let met = arrivals
            .complete
            .iter()
            .filter(|a| a.told || joins(a.head.thread, a.scope));
        for a in met {
            if a.read {
                m.pend(at.thread, place.va, PendingRead::Head(a.head.clone()));
                continue;
            }
            // Makes it the waiting thread's, so that every later fence acquires it.
            let own = PatternHead {
                thread: at.thread as u16,
                ..a.head.clone()
            };
            let head = if a.told { &own } else { &a.head };
            if access.acquire && joins(head.thread, head.scope) {
                m.threads[at.thread].known.join(&head.view);
            }
            m.pend(at.thread, place.va, PendingRead::Head(head.clone()));
        }
    }
}
