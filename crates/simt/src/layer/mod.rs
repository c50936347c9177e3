//! The scheduler layer: which threads may step now.
//!
//! The rules of memory do not know it. A layer has a state of its own, is asked before every step,
//! and is told after it.
//!
//! | File | What |
//! |---|---|
//! | `residency` | blocks that wait for a free multiprocessor |
//! | `warps`, `flow` | warps that share a program counter: reconvergence stack; the control-flow graph it rests on |
//! | `turns` | threads of a group one after the other, groups one after the other (OpenCL) |
//!
//! [`Layers`] puts them together: residency goes with any order of threads.
//!
//! # Sources
//! - CUDA Programming Guide, *Hardware Implementation*, *SIMT Architecture* and *Independent Thread
//!   Scheduling*.
//! - OpenCL API specification, *Execution Model: Mapping work-items onto an NDRange*, *Forward
//!   progress*.

mod flow;
pub(super) mod residency;
mod turns;
mod warps;

use super::code::Code;
use super::thread::Thread;
use super::{Launch, Result, Scheduling};
use program::{Barrier, Scope};
use residency::Residency;
use turns::Turns;
use warps::{Warp, Warps};

/// In which order the threads that are there step.
#[derive(Clone, Debug)]
enum Order {
    /// Any: PTX for sm_70 and later.
    Any,
    /// Warps share a program counter.
    Lockstep(Warps),
    /// One after the other.
    Turns(Turns),
}

/// All layers of a machine.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    residency: Option<Residency>,
    order: Order,
}

/// What layers remember.
#[derive(Clone, Debug, Hash)]
pub(super) struct LayersState {
    /// By launch: how many blocks have been let in.
    admitted: Vec<u32>,
    warps: Vec<Warp>,
    /// The group whose turn it is.
    turn: Option<u32>,
}

impl Layers {
    /// The layers that options ask for.
    ///
    /// # Errors
    /// Why the program cannot be launched so.
    pub(super) fn new(
        code: &Code,
        scheduling: Scheduling,
        launch: &Launch,
    ) -> Result<Layers, String> {
        let order = match scheduling {
            Scheduling::Independent => Order::Any,
            Scheduling::Lockstep => Order::Lockstep(Warps::new(code)?),
            Scheduling::SerialGroups => Order::Turns(Turns {
                scope: Scope::Cta,
                alone: true,
            }),
            Scheduling::Subgroups => Order::Turns(Turns {
                scope: Scope::Warp,
                alone: false,
            }),
        };
        Ok(Layers {
            residency: Residency::new(code, launch),
            order,
        })
    }

    /// Before the first step.
    pub(super) fn start(&self, code: &Code, threads: &[Thread]) -> LayersState {
        LayersState {
            admitted: self
                .residency
                .as_ref()
                .map_or(Vec::new(), |r| r.start(threads)),
            warps: match &self.order {
                Order::Lockstep(warps) => warps.start(code, threads),
                _ => Vec::new(),
            },
            turn: None,
        }
    }

    /// Whether a thread may step now.
    pub(super) fn may_step(
        &self,
        code: &Code,
        state: &LayersState,
        threads: &[Thread],
        thread: usize,
    ) -> bool {
        // Threads of the host are nobody's work-items.
        code.program.threads[thread].place.host
            || self
                .residency
                .as_ref()
                .is_none_or(|r| r.may_enter(&state.admitted, threads, thread))
                && match &self.order {
                    Order::Any => true,
                    Order::Lockstep(warps) => warps.is_active(&state.warps, thread),
                    Order::Turns(turns) => turns.is_next(code, state.turn, threads, thread),
                }
    }

    /// Whether a thread that may step may also go on by itself: whether that decides nothing.
    pub(super) fn decides_nothing(&self, state: &LayersState, thread: usize) -> bool {
        self.residency
            .as_ref()
            .is_none_or(|r| r.is_in(&state.admitted, thread))
            && match &self.order {
                Order::Any => true,
                Order::Lockstep(warps) => !warps.is_split(&state.warps, thread),
                Order::Turns(turns) => !turns.alone || state.turn.is_some(),
            }
    }

    /// A command has started, and its threads are no longer held.
    pub(super) fn started(&self, state: &mut LayersState, threads: &[Thread]) {
        if let Some(residency) = &self.residency {
            residency.started(&mut state.admitted, threads);
        }
    }

    /// A thread went on, or waits at a barrier now; it was at instruction `from`. Adds to `woken`
    /// who may step now and might not before.
    pub(super) fn stepped(
        &self,
        code: &Code,
        state: &mut LayersState,
        threads: &[Thread],
        thread: usize,
        from: usize,
        woken: &mut Vec<usize>,
    ) {
        if let Some(residency) = &self.residency {
            residency.stepped(&mut state.admitted, threads, thread, woken);
        }
        match &self.order {
            Order::Any => {}
            Order::Lockstep(warps) => {
                warps.stepped(code, &mut state.warps, threads, (thread, from), woken)
            }
            Order::Turns(turns) => turns.stepped(code, &mut state.turn, threads, thread, woken),
        }
    }

    /// A thread is about to arrive at a barrier.
    ///
    /// # Errors
    /// If it must not, as it is now.
    pub(super) fn arrives(
        &self,
        code: &Code,
        state: &LayersState,
        threads: &[Thread],
        thread: usize,
        barrier: &Barrier,
    ) -> Result {
        match &self.order {
            Order::Lockstep(warps) => warps.arrives(code, &state.warps, threads, (thread, barrier)),
            Order::Any | Order::Turns(_) => Ok(()),
        }
    }

    /// Why a thread may not step now, in words; `None` if it may.
    pub(super) fn obstacle(
        &self,
        code: &Code,
        state: &LayersState,
        threads: &[Thread],
        thread: usize,
    ) -> Option<String> {
        if self
            .residency
            .as_ref()
            .is_some_and(|r| !r.may_enter(&state.admitted, threads, thread))
        {
            return Some("its block is not resident: it waits for another block to finish".into());
        }
        match &self.order {
            Order::Any => None,
            Order::Lockstep(warps) => warps.obstacle(code, &state.warps, threads, thread),
            Order::Turns(turns) => turns.obstacle(code, state.turn, threads, thread),
        }
    }

    /// The lanes that are active beside a thread, as trace lines show them.
    pub(super) fn active(&self, state: &LayersState, thread: usize) -> Option<u64> {
        match &self.order {
            Order::Lockstep(warps) => Some(warps.active(&state.warps, thread)),
            Order::Any | Order::Turns(_) => None,
        }
    }
}
