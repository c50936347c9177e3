//! The seats of a thread in its groups, as lowering reads them.
//!
//! # Invariants
//! - Code reads a rank through a seat, and the seat notes it. Lowered code that depends on no rank
//!   serves threads of every rank ([`super::sharing`]).

use std::cell::Cell;

use program::GroupSeat;

/// A thread's seats in its warp and its CTA, and whether lowering read them.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    warp: GroupSeat,
    block: GroupSeat,
    /// Whether the seats in the warp and in the CTA were read.
    read: Cell<(bool, bool)>,
}

impl Seats {
    /// Seats that nothing has read.
    pub fn new(warp: GroupSeat, block: GroupSeat) -> Seats {
        Seats {
            warp,
            block,
            read: Cell::default(),
        }
    }

    /// The seat in the warp.
    pub(super) fn warp(&self) -> GroupSeat {
        self.read.set((true, self.read.get().1));
        self.warp
    }

    /// The seat in the CTA.
    pub(super) fn block(&self) -> GroupSeat {
        self.read.set((self.read.get().0, true));
        self.block
    }

    /// The number of threads in the warp.
    pub(super) fn warp_size(&self) -> u32 {
        self.warp.of
    }

    /// The number of threads in the CTA.
    pub(super) fn block_size(&self) -> u32 {
        self.block.of
    }

    /// All lanes of the warp, as a mask.
    pub(super) fn whole_warp(&self) -> i64 {
        self.warp.all()
    }

    /// Whether the thread stands for every lane of its warp.
    pub(super) fn is_anywhere(&self) -> bool {
        self.warp.anywhere
    }
}

/// Seats are equal if all that lowering read of either is equal in both.
impl PartialEq for Seats {
    fn eq(&self, other: &Seats) -> bool {
        let (warp, block) = (
            self.read.get().0 || other.read.get().0,
            self.read.get().1 || other.read.get().1,
        );
        let same = |read: bool, a: GroupSeat, b: GroupSeat| match read {
            true => a == b,
            false => a == GroupSeat { rank: a.rank, ..b },
        };
        same(warp, self.warp, other.warp) && same(block, self.block, other.block)
    }
}
