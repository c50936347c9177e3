//! The state of a run: threads, barriers, memory, scheduler layers and host.

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
    /// The state of the scheduler layers.
    pub(super) layer: LayersState,
    /// The queues, commands and events of the host program.
    pub(super) host: HostState<B::Carried>,
}
