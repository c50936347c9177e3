//! The state of a run, apart from memory: where each thread stands, and who waits at which barrier.

use super::barrier::Barriers;
use super::host::HostState;
use super::layer::LayersState;
use super::memory::Backend;
use super::thread::Thread;

/// A state of a machine.
#[derive(Clone, Debug)]
pub(super) struct State<B: Backend> {
    pub(super) threads: Vec<Thread>,
    pub(super) barriers: Barriers<B::Carried>,
    pub(super) memory: B::Memory,
    /// What the scheduler's layers remember.
    pub(super) layer: LayersState,
    /// What host threads have enqueued.
    pub(super) host: HostState<B::Carried>,
}
