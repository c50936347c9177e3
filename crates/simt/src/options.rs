//! The settings of a run: memory, early binds, scheduling, launch, limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{MachineMemory, MemoryRules};

/// The limit on early binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// Nothing: no outcome of the load-buffering family.
    None,
    /// Plain and relaxed accesses move past plain and relaxed accesses to other addresses, as
    /// hardware might do.
    Local,
    /// At most this number of instructions per thread at once, past anything.
    Full(u32),
}

impl Early {
    /// The largest number of binds per thread at once.
    pub(super) fn limit(self) -> usize {
        match self {
            Early::None => 0,
            Early::Local => usize::MAX,
            Early::Full(n) => n as usize,
        }
    }

    /// Reads `none`, `local`, `full:N` and `full`.
    pub fn parse(text: &str) -> Option<Early> {
        match text {
            "none" => Some(Early::None),
            "local" => Some(Early::Local),
            "full" => Some(Early::Full(u32::MAX)),
            _ => text.strip_prefix("full:")?.parse().ok().map(Early::Full),
        }
    }
}

impl std::fmt::Display for Early {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Early::None => f.write_str("none"),
            Early::Local => f.write_str("local"),
            Early::Full(u32::MAX) => f.write_str("full"),
            Early::Full(n) => write!(f, "full:{n}"),
        }
    }
}

/// The rule that picks the next thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduling {
    /// Any thread: PTX for sm_70 and later.
    Independent,
    /// Warps share a program counter, as before Volta.
    Lockstep,
    /// Threads of a warp at one instruction step together, as a schedule optimizer groups them.
    Units,
    /// OpenCL: one work-group at a time, its work-items one after the other up to the next barrier.
    SerialGroups,
    /// OpenCL: sub-groups make progress independently, the work-items of one take turns.
    Subgroups,
}

impl Scheduling {
    /// All of them.
    pub const ALL: [Scheduling; 5] = [
        Scheduling::Independent,
        Scheduling::Lockstep,
        Scheduling::Units,
        Scheduling::SerialGroups,
        Scheduling::Subgroups,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::Independent => "independent",
            Scheduling::Lockstep => "lockstep",
            Scheduling::Units => "units",
            Scheduling::SerialGroups => "serial-groups",
            Scheduling::Subgroups => "subgroups",
        }
    }
}

/// The device and the parameters of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOptions {
    /// Multiprocessors of each GPU; `None`: enough for every block.
    pub sms: Option<u32>,
    /// Blocks that a multiprocessor has room for; `None`: 1 if `sms` is given.
    pub resident: Option<u32>,
    /// Whether the launch is cooperative: it then fails unless all blocks are resident at once.
    pub cooperative: bool,
    /// Threads per warp; `None`: as the test says.
    pub warp_size: Option<u32>,
    /// Threads that a block can have.
    pub max_block: u32,
    /// Bytes of shared memory that a block can have.
    pub max_shared: u64,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        LaunchOptions {
            sms: None,
            resident: None,
            cooperative: false,
            warp_size: None,
            max_block: 1024,
            max_shared: 48 * 1024,
        }
    }
}

impl LaunchOptions {
    /// Blocks that a GPU has room for at once; `None`: any number.
    pub fn capacity(&self) -> Option<usize> {
        match (self.sms, self.resident) {
            (None, None) => None,
            (sms, resident) => Some(sms.unwrap_or(1) as usize * resident.unwrap_or(1) as usize),
        }
    }
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// The rule that picks the next thread.
    pub scheduling: Scheduling,
    /// The device and the parameters of the launch.
    pub launch: LaunchOptions,
    /// The memory.
    pub memory: MachineMemory,
    /// Early binds, for memories that have any.
    pub early: Early,
    /// The rules in force.
    pub rules: MemoryRules,
    /// The largest number of steps of a run.
    pub steps: usize,
    /// The largest number of states of an exhaustive exploration.
    pub states: usize,
    /// The time limit.
    pub timeout: Option<Duration>,
    /// Whether to look for races in runs.
    pub races: bool,
    /// Whether a command of an OpenCL queue waits for a flush; else it is submitted at once.
    pub lazy: bool,
    /// Whether an exhaustive exploration finds the progress models under which some run never ends.
    pub progress: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            scheduling: Scheduling::Independent,
            launch: LaunchOptions::default(),
            memory: MachineMemory::Weak,
            early: Early::None,
            rules: MemoryRules::ALL,
            steps: 10_000,
            states: 2_000_000,
            timeout: Some(Duration::from_secs(60)),
            races: false,
            lazy: false,
            progress: false,
        }
    }
}

impl RunOptions {
    /// A machine without the rule of that name, in every memory that has it. Such a machine is
    /// wrong: tests check that the difference shows.
    ///
    /// # Errors
    /// The existing rules, if none has that name.
    pub fn without(self, rule: &str) -> Result<RunOptions, Vec<&'static str>> {
        Ok(RunOptions {
            rules: self.rules.without(rule).ok_or_else(|| {
                let mut names = MemoryRules::NAMES.to_vec();
                names.sort_unstable();
                names
            })?,
            ..self
        })
    }
}
