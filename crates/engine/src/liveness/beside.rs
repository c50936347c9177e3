//! Finds commands that may run beside threads of a kernel that may not end, and decides whether
//! progress models cover them.
//!
//! A progress model names the threads of one kernel that must be run; some models use the order of
//! their groups. Ordered commands never run at the same time. For unordered ones, only occupancy
//! models give an answer: a group that has started is run.
//!
//! # Sources
//! - Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models", OOPSLA 2021:
//!   executions of one kernel.
//! - CUDA C++ Programming Guide, *Execution Model*: kernels without dependency may starve one
//!   another.

use std::collections::BTreeSet;

use program::Program;
use program::host::{CommandId, HostProgram, LaunchGraph, LaunchNode};
use program::progress::ProgressModel;
use verdict::Reason;

/// The commands that may run at the same time as threads of a kernel that may not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConcurrentCommands {
    Nothing,
    /// Other kernels on the device.
    Kernels,
    /// Commands other than kernels.
    Others,
}

impl ConcurrentCommands {
    /// Classifies a program's commands. `sure`: by thread, whether it surely ends.
    pub(super) fn of(
        program: &Program,
        sure: &[bool],
        graph: &LaunchGraph,
        never: &BTreeSet<LaunchNode>,
    ) -> ConcurrentCommands {
        let host = program.host.as_deref().expect("a host program");
        let commands: Vec<CommandId> = host
            .command_ids()
            .filter(|c| {
                !never.contains(&LaunchNode::Start(*c)) && !host.command(*c).threads.is_empty()
            })
            .collect();
        let mut found = ConcurrentCommands::Nothing;
        for &a in commands
            .iter()
            .filter(|c| device(program, host, **c).is_some())
        {
            if host
                .command(a)
                .threads
                .iter()
                .all(|t| sure[usize::from(t.0)])
            {
                continue;
            }
            let after = graph.never(&[LaunchNode::End(a)]);
            for &b in commands
                .iter()
                .filter(|b| **b != a && !after.contains(&LaunchNode::Start(**b)))
            {
                if !graph
                    .never(&[LaunchNode::End(b)])
                    .contains(&LaunchNode::Start(a))
                {
                    found = found.max(match device(program, host, b) {
                        None => ConcurrentCommands::Others,
                        other if other == device(program, host, a) => ConcurrentCommands::Kernels,
                        Some(_) => ConcurrentCommands::Nothing,
                    });
                }
            }
        }
        found
    }

    /// Why a progress model does not decide which threads are served, if it does not.
    pub(super) fn unsettled(self, model: ProgressModel) -> Option<Reason> {
        let what = match (self, model) {
            (_, ProgressModel::Fair)
            | (ConcurrentCommands::Nothing, _)
            | (ConcurrentCommands::Kernels, ProgressModel::Obe) => {
                return None;
            }
            (ConcurrentCommands::Kernels, _) => {
                "several kernels may run at once on a device: it orders only groups of one kernel"
            }
            (ConcurrentCommands::Others, _) => {
                "commands other than kernels may run at the same time: it covers only threads of \
                kernels"
            }
        };
        Some(Reason::Unserved {
            model: model.to_string(),
            what: what.to_owned(),
        })
    }
}

/// The device that runs a command, if it is a kernel.
fn device(program: &Program, host: &HostProgram, c: CommandId) -> Option<u32> {
    let place = &program.thread(host.command(c).threads[0]).place;
    (!place.host && !host.command(c).kind.is_of_runtime()).then_some(place.gpu)
}
