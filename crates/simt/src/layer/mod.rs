//! The scheduler layer: decides which threads may step now.
//!
//! The rules of memory do not use it. Each layer keeps its state; the machine consults it before
//! every step and notifies it after the step.
//!
//! | File | What |
//! |---|---|
//! | `residency` | blocks that wait for a free multiprocessor |
//! | `warps`, `flow` | warps that share a program counter; the control-flow graph |
//! | `units` | threads of a warp at one instruction, grouped by a schedule optimizer |
//! | `turns` | threads of a group one after the other, groups one after the other (OpenCL) |
//!
//! [`Layers`] combines them: residency works with any order of threads.
//!
//! # Sources
//! - CUDA Programming Guide, *Hardware Implementation*, *SIMT Architecture* and *Independent Thread
//!   Scheduling*.
//! - OpenCL API specification, *Execution Model: Mapping work-items onto an NDRange*, *Forward
//!   progress*.

mod flow;
pub(super) mod residency;
mod turns;
mod units;
mod warps;

use super::code::Code;
use super::thread::ThreadState;
use super::{LaunchOptions, Result, Scheduling};
use program::{Barrier, Scope};
use residency::Residency;
use turns::Turns;
use units::Units;
use warps::{LockstepWarps, Warp};

/// The order in which resident threads step.
#[derive(Clone, Debug)]
enum StepOrder {
    /// Any: PTX for sm_70 and later.
    Any,
    /// Warps share a program counter.
    Lockstep(LockstepWarps),
    /// Threads of a warp at one instruction step together.
    Units(Units),
    /// One after the other.
    Turns(Turns),
}

/// All layers of a machine.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    residency: Option<Residency>,
    order: StepOrder,
}

/// The state of all layers.
#[derive(Clone, Debug, Hash)]
pub(super) struct LayersState {
    /// By launch: the number of blocks admitted so far.
    admitted: Vec<u32>,
    warps: Vec<Warp>,
    /// By warp: the lanes of the unit that have yet to step.
    units: Vec<u64>,
    /// The group whose turn it is.
    turn: Option<u32>,
}

impl Layers {
    /// The layers that the options select.
    ///
    /// # Errors
    /// If the program cannot be launched in this way.
    pub(super) fn new(
        code: &Code,
        scheduling: Scheduling,
        launch: &LaunchOptions,
    ) -> Result<Layers, String> {
        let order = match scheduling {
            Scheduling::Independent => StepOrder::Any,
            Scheduling::Lockstep => StepOrder::Lockstep(LockstepWarps::new(code)?),
            Scheduling::Units => StepOrder::Units(Units::new(code)?),
            Scheduling::SerialGroups => StepOrder::Turns(Turns {
                scope: Scope::Cta,
                alone: true,
            }),
            Scheduling::Subgroups => StepOrder::Turns(Turns {
                scope: Scope::Warp,
                alone: false,
            }),
        };
        Ok(Layers {
            residency: Residency::new(code, launch),
            order,
        })
    }

    /// The state before the first step.
    pub(super) fn start(&self, code: &Code, threads: &[ThreadState]) -> LayersState {
        LayersState {
            admitted: self
                .residency
                .as_ref()
                .map_or(Vec::new(), |r| r.start(threads)),
            warps: match &self.order {
                StepOrder::Lockstep(warps) => warps.start(code, threads),
                _ => Vec::new(),
            },
            units: match &self.order {
                StepOrder::Units(units) => units.start(),
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
        threads: &[ThreadState],
        thread: usize,
    ) -> bool {
        // Threads of the host are not work-items.
        code.program.threads[thread].place.host
            || self
                .residency
                .as_ref()
                .is_none_or(|r| r.may_enter(&state.admitted, threads, thread))
                && match &self.order {
                    StepOrder::Any => true,
                    StepOrder::Lockstep(warps) => warps.is_active(&state.warps, thread),
                    StepOrder::Units(units) => units.may_step(&state.units, thread),
                    StepOrder::Turns(turns) => turns.is_next(code, state.turn, threads, thread),
                }
    }

    /// Whether a thread that may step may do so without a choice, because that decides nothing.
    pub(super) fn decides_nothing(&self, state: &LayersState, thread: usize) -> bool {
        self.residency
            .as_ref()
            .is_none_or(|r| r.is_in(&state.admitted, thread))
            && match &self.order {
                StepOrder::Any => true,
                StepOrder::Lockstep(warps) => !warps.is_split(&state.warps, thread),
                StepOrder::Units(units) => units.has_formed(&state.units, thread),
                StepOrder::Turns(turns) => !turns.alone || state.turn.is_some(),
            }
    }

    /// A command has started, and its threads are no longer held.
    pub(super) fn started(&self, state: &mut LayersState, threads: &[ThreadState]) {
        if let Some(residency) = &self.residency {
            residency.started(&mut state.admitted, threads);
        }
    }

    /// A thread stepped from instruction `from`, or waits at a barrier now. Adds to `woken` the
    /// threads that may step now and could not before.
    pub(super) fn stepped(
        &self,
        code: &Code,
        state: &mut LayersState,
        threads: &[ThreadState],
        thread: usize,
        from: usize,
        woken: &mut Vec<usize>,
    ) {
        if let Some(residency) = &self.residency {
            residency.stepped(&mut state.admitted, threads, thread, woken);
        }
        match &self.order {
            StepOrder::Any => {}
            StepOrder::Lockstep(warps) => {
                warps.stepped(code, &mut state.warps, threads, thread, from, woken)
            }
            StepOrder::Units(units) => {
                units.stepped(&mut state.units, threads, thread, from, woken)
            }
            StepOrder::Turns(turns) => turns.stepped(code, &mut state.turn, threads, thread, woken),
        }
    }

    /// A thread is about to arrive at a barrier.
    ///
    /// # Errors
    /// If the present state of the layer forbids it.
    pub(super) fn arrives(
        &self,
        code: &Code,
        state: &LayersState,
        threads: &[ThreadState],
        thread: usize,
        barrier: &Barrier,
    ) -> Result {
        match &self.order {
            StepOrder::Lockstep(warps) => {
                warps.arrives(code, &state.warps, threads, thread, barrier)
            }
            StepOrder::Any | StepOrder::Units(_) | StepOrder::Turns(_) => Ok(()),
        }
    }

    /// The reason why a thread may not step now, in words; `None` if it may.
    pub(super) fn obstacle(
        &self,
        code: &Code,
        state: &LayersState,
        threads: &[ThreadState],
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
            StepOrder::Any => None,
            StepOrder::Lockstep(warps) => warps.obstacle(code, &state.warps, threads, thread),
            StepOrder::Units(units) => units.obstacle(code, &state.units, thread),
            StepOrder::Turns(turns) => turns.obstacle(code, state.turn, threads, thread),
        }
    }

    /// The lanes that are active together with a thread, for trace lines.
    pub(super) fn active(&self, state: &LayersState, thread: usize) -> Option<u64> {
        match &self.order {
            StepOrder::Lockstep(warps) => Some(warps.active(&state.warps, thread)),
            StepOrder::Any | StepOrder::Units(_) | StepOrder::Turns(_) => None,
        }
    }
}
