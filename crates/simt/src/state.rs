//! The state of a run: threads, barriers, memory, scheduler layers and host.

use super::barrier::Barriers;
use super::host::HostProgress;
use super::layer::LayersState;
use super::memory::Backend;
use super::thread::ThreadState;

/// A state of a machine.
#[derive(Clone, Debug)]
pub(super) struct MachineState<B: Backend> {
    pub(super) threads: Vec<ThreadState>,
    pub(super) barriers: Barriers<B::Carried>,
    pub(super) memory: B::Memory,
    /// The state of the scheduler layers.
    pub(super) layer: LayersState,
    /// The queues, commands and events of the host program.
    pub(super) host: HostProgress<B::Carried>,
}
