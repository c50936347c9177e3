//! The seats of a thread in its groups, as lowering reads them.
//!
//! # Invariants
//! - Code reads a rank through a seat, and the seat notes it. Lowered code that depends on no rank
//!   serves threads of every rank ([`super::sharing`]).

use std::cell::Cell;

use program::GroupSeat;

/// A thread's seats in its warp and its CTA, and how much of them lowering read.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    warp: GroupSeat,
    block: GroupSeat,
    read: Cell<SeatsRead>,
}

/// The facts of seats that lowering read.
#[derive(Clone, Copy, Debug, Default)]
struct SeatsRead {
    /// The rank in the warp.
    warp: bool,
    /// Whether that rank is the first.
    leads: bool,
    /// The rank in the CTA.
    block: bool,
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
        let read = self.read.get();
        self.read.set(SeatsRead { warp: true, ..read });
        self.warp
    }

    /// The warp, for code that is the same in all of its lanes: the rank is that of the first.
    pub(super) fn any_of_warp(&self) -> GroupSeat {
        GroupSeat {
            rank: 0,
            ..self.warp
        }
    }

    /// Whether the thread is the first lane of its warp.
    pub(super) fn leads_warp(&self) -> bool {
        let read = self.read.get();
        self.read.set(SeatsRead {
            leads: true,
            ..read
        });
        self.warp.rank == 0
    }

    /// The seat in the CTA.
    pub(super) fn block(&self) -> GroupSeat {
        let read = self.read.get();
        self.read.set(SeatsRead {
            block: true,
            ..read
        });
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
        let (own, others) = (self.read.get(), other.read.get());
        let same = |read: bool, a: GroupSeat, b: GroupSeat| match read {
            true => a == b,
            false => a == GroupSeat { rank: a.rank, ..b },
        };
        let leads = (self.warp.rank == 0) == (other.warp.rank == 0);
        same(own.warp || others.warp, self.warp, other.warp)
            && same(own.block || others.block, self.block, other.block)
            && (leads || !(own.leads || others.leads))
    }
}
