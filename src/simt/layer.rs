//! The scheduler layer: which threads may step now.
//!
//! The rules of memory do not know it. A layer has a state of its own, is asked before every step, and is told after it:
//! warps that share a program counter, and blocks that wait for a free multiprocessor, are layers.

use std::fmt::Debug;
use std::hash::Hash;

use super::code::Code;
use super::state::Thread;

/// Which threads may step now.
pub(super) trait Layer {
    /// What it remembers.
    type State: Clone + Debug + Hash;

    /// Before the first step.
    fn start(&self, code: &Code) -> Self::State;

    /// Whether a thread may step, or go on by itself, now.
    fn may_step(&self, code: &Code, state: &Self::State, threads: &[Thread], thread: usize) -> bool;

    /// A thread went on; it was at instruction `from`.
    fn stepped(&self, code: &Code, state: &mut Self::State, threads: &[Thread], thread: usize, from: usize);
}

/// Every thread may always step: PTX for sm_70 and later, with every block resident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Independent;

impl Layer for Independent {
    type State = ();

    fn start(&self, _: &Code) {}

    fn may_step(&self, _: &Code, (): &(), _: &[Thread], _: usize) -> bool {
        true
    }

    fn stepped(&self, _: &Code, (): &mut (), _: &[Thread], _: usize, _: usize) {}
}
