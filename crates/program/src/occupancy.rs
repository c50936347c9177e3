//! Computes how many blocks a multiprocessor has room for.
//!
//! # Sources
//! - PTX ISA, *PTX Machine Model*: registers and shared memory are divided among the blocks of a
//!   multiprocessor; a kernel of which not one block fits does not launch.
//! - CUDA C++ Programming Guide, *Compute Capabilities*, Technical Specifications: the table.
//! - CUDA Toolkit, `cuda_occupancy.h`: registers are given to warps in units of 256, warps to four
//!   partitions; shared memory in units of 128 bytes, with 1024 more for each block since sm_80.

use crate::{LocationKind, Program, Scope, Space};

/// The limits of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// The target: 80 for sm_80.
    pub target: u32,
    threads: u64,
    blocks: u64,
    shared: u64,
}

const fn sm(target: u32, threads: u64, blocks: u64, kilobytes: u64) -> Multiprocessor {
    Multiprocessor {
        target,
        threads,
        blocks,
        shared: kilobytes * 1024,
    }
}

/// All multiprocessors that the guide lists since sm_70.
pub static MULTIPROCESSORS: [Multiprocessor; 12] = [
    sm(70, 2048, 32, 96),
    sm(72, 2048, 32, 96),
    sm(75, 1024, 16, 64),
    sm(80, 2048, 32, 164),
    sm(86, 1536, 16, 100),
    sm(87, 1536, 16, 164),
    sm(89, 1536, 24, 100),
    sm(90, 2048, 32, 228),
    sm(100, 2048, 32, 228),
    sm(103, 2048, 32, 228),
    sm(120, 1536, 24, 100),
    sm(121, 1536, 24, 100),
];

/// Their names.
pub const TARGETS: &[&str] = &[
    "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103",
    "sm_120", "sm_121",
];

const WARP: u64 = 32;
const REGISTERS: u64 = 64 * 1024;
const PARTITIONS: u64 = 4;
const REGISTER_UNIT: u64 = 256;
const SHARED_UNIT: u64 = 128;
/// The shared memory of each block that the system keeps, and the first target with it.
const RESERVED: (u64, u32) = (1024, 80);

impl Multiprocessor {
    /// How many blocks with so many threads, bytes of shared memory, and registers of each thread
    /// it has room for.
    ///
    /// # Errors
    /// Not one block fits.
    pub fn room(&self, threads: u64, shared: u64, registers: Option<u64>) -> Result<u64, String> {
        let warps = threads.div_ceil(WARP).max(1);
        let reserved = if self.target >= RESERVED.1 {
            RESERVED.0
        } else {
            0
        };
        let bytes = shared.next_multiple_of(SHARED_UNIT) + reserved;
        let by_registers = registers.filter(|n| *n > 0).map(|registers| {
            let of_warp = (registers * WARP).next_multiple_of(REGISTER_UNIT);
            REGISTERS / PARTITIONS / of_warp * PARTITIONS / warps
        });
        let limits = [
            (self.blocks, "blocks"),
            (self.threads / WARP / warps, "threads"),
            (
                self.shared.checked_div(bytes).unwrap_or(self.blocks),
                "shared memory",
            ),
            (by_registers.unwrap_or(self.blocks), "registers"),
        ];
        match limits.iter().min_by_key(|limit| limit.0) {
            Some((0, what)) => Err(format!(
                "launch failed: a multiprocessor of sm_{} has too few {what} for one block",
                self.target
            )),
            Some((room, _)) => Ok(*room),
            None => Ok(self.blocks),
        }
    }

    /// How many blocks of a program it has room for: of the kernel with the largest blocks.
    ///
    /// # Errors
    /// Not one block fits.
    pub fn room_for(&self, program: &Program, registers: Option<u64>) -> Result<u64, String> {
        let launched = program
            .thread_ids()
            .filter(|&t| !program.thread(t).place.host);
        let blocks = launched.filter(|&t| program.seat(t, Scope::Cta).rank == 0);
        let threads = blocks
            .map(|t| u64::from(program.seat(t, Scope::Cta).of))
            .max();
        let shared = program
            .locations
            .iter()
            .map(|location| match &location.kind {
                LocationKind::Object {
                    layout,
                    init,
                    space: Space::Shared,
                    ..
                } => layout.bytes(init.len()),
                _ => 0,
            });
        self.room(threads.unwrap_or(1), shared.sum(), registers)
    }
}

/// The multiprocessor of a target such as `sm_80`.
pub fn multiprocessor(target: &str) -> Option<&'static Multiprocessor> {
    let number = target.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
    let number: u32 = number.parse().ok()?;
    MULTIPROCESSORS.iter().find(|sm| sm.target == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(target: &str, threads: u64, shared: u64, registers: u64) -> Option<u64> {
        multiprocessor(target)?
            .room(threads, shared, Some(registers))
            .ok()
    }

    #[test]
    fn each_target_has_a_name() {
        let names = MULTIPROCESSORS.iter().map(|sm| format!("sm_{}", sm.target));
        assert!(names.eq(TARGETS.iter().map(|name| (*name).to_owned())));
    }

    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(room("sm_80", 256, 0, 32), Some(8));
        assert_eq!(room("sm_80", 32, 0, 32), Some(32));
        assert_eq!(room("sm_80", 256, 0, 64), Some(4));
        assert_eq!(room("sm_80", 256, 0, 65), Some(3));
        assert_eq!(room("sm_80", 1024, 0, 64), Some(1));
        assert_eq!(room("sm_80", 1024, 0, 65), None);
        assert_eq!(room("sm_80", 64, 48 * 1024, 32), Some(3));
        assert_eq!(room("sm_75", 64, 32 * 1024, 32), Some(2));
        assert_eq!(room("sm_75", 64, 32 * 1024 + 1, 32), Some(1));
        assert_eq!(room("sm_86", 128, 0, 32), Some(12));
        assert_eq!(room("sm_90a", 64, 0, 16), Some(32));
        assert_eq!(multiprocessor("sm_60"), None);
    }
}
