//! The functions of pipes, the pipes that a kernel takes, and the word that holds a pipe's state.
//!
//! # Invariants
//! - The state of a pipe is one word: the entry at the reading end, the number of packets, and the
//!   numbers of entries that are reserved for writing and for reading, 16 bits each.
//! - A reservation is a number other than 0: its first entry, its number in the work-item, and the
//!   pipe. No two of a work-item are alike.

use program::{BinOp, CmpOp, Expr, LocId, RegId, Scope, Tag, Ty};

/// The end of a pipe that a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeEnd {
    Read,
    Write,
}

impl PipeEnd {
    /// The tag of its accesses.
    pub(super) fn tag(self) -> Tag {
        match self {
            PipeEnd::Read => Tag::PipeRead,
            PipeEnd::Write => Tag::PipeWrite,
        }
    }

    /// The qualifier of a parameter, and the operation that it excludes.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            PipeEnd::Read => ("read_only", "written"),
            PipeEnd::Write => ("write_only", "read"),
        }
    }
}

/// What a function of pipes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeAction {
    /// Moves a packet.
    Packet(PipeEnd),
    /// Reserves entries, for a work-item or a group of them.
    Reserve(PipeEnd, Scope),
    /// Ends a reservation.
    Commit(PipeEnd, Scope),
    /// The number of packets in the pipe.
    Packets,
    /// The largest number of packets.
    MostPackets,
    /// Whether a reservation is valid.
    IsValid,
}

impl PipeAction {
    /// The end that the function uses, if it uses one.
    pub(super) fn end(self) -> Option<PipeEnd> {
        match self {
            PipeAction::Packet(end) | PipeAction::Reserve(end, _) | PipeAction::Commit(end, _) => {
                Some(end)
            }
            PipeAction::Packets | PipeAction::MostPackets | PipeAction::IsValid => None,
        }
    }

    /// The smallest number of arguments, and the largest.
    pub(super) fn arguments(self) -> [usize; 2] {
        match self {
            PipeAction::Packet(_) => [2, 4],
            PipeAction::Reserve(..) | PipeAction::Commit(..) => [2, 2],
            PipeAction::Packets | PipeAction::MostPackets | PipeAction::IsValid => [1, 1],
        }
    }
}

/// The functions, by name.
const FUNCTIONS: &[(&str, PipeAction)] = {
    use PipeAction::{Commit, IsValid, MostPackets, Packet, Packets, Reserve};
    use PipeEnd::{Read, Write};
    use Scope::{Cta, Thread, Warp};
    &[
        ("read_pipe", Packet(Read)),
        ("write_pipe", Packet(Write)),
        ("reserve_read_pipe", Reserve(Read, Thread)),
        ("reserve_write_pipe", Reserve(Write, Thread)),
        ("commit_read_pipe", Commit(Read, Thread)),
        ("commit_write_pipe", Commit(Write, Thread)),
        ("work_group_reserve_read_pipe", Reserve(Read, Cta)),
        ("work_group_reserve_write_pipe", Reserve(Write, Cta)),
        ("work_group_commit_read_pipe", Commit(Read, Cta)),
        ("work_group_commit_write_pipe", Commit(Write, Cta)),
        ("sub_group_reserve_read_pipe", Reserve(Read, Warp)),
        ("sub_group_reserve_write_pipe", Reserve(Write, Warp)),
        ("sub_group_commit_read_pipe", Commit(Read, Warp)),
        ("sub_group_commit_write_pipe", Commit(Write, Warp)),
        ("get_pipe_num_packets", Packets),
        ("get_pipe_max_packets", MostPackets),
        ("is_valid_reserve_id", IsValid),
    ]
};

/// What the function of that name does; `None`: it is no function of pipes.
pub(super) fn action(word: &str) -> Option<PipeAction> {
    let found = FUNCTIONS.iter().find(|function| function.0 == word)?;
    Some(found.1)
}

/// A pipe that a kernel takes.
#[derive(Clone, Debug)]
pub(super) struct PipeParameter {
    pub(super) name: String,
    pub(super) end: PipeEnd,
    /// The memory of the packets.
    pub(super) packets: LocId,
    /// The memory of the state.
    pub(super) state: LocId,
    /// The largest number of packets.
    pub(super) most: i64,
    /// The places that reserve entries.
    pub(super) sites: Vec<ReserveSite>,
    /// The number of entries of a reservation.
    pub(super) entries: Option<i64>,
    /// Whether code has used a reservation.
    pub(super) is_used: bool,
}

impl PipeParameter {
    /// The entry of a number, which may be too large.
    pub(super) fn entry(&self, number: Expr) -> Expr {
        bin(BinOp::Rem, number, Expr::Const(self.most))
    }
}

/// A place that reserves entries of a pipe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReserveSite {
    pub(super) group: Scope,
    /// The open reservation, or 0.
    pub(super) open: RegId,
    /// The entries of it that the work-item wrote, as bits.
    pub(super) written: RegId,
}

impl ReserveSite {
    /// Whether a reservation is the open one of this place.
    pub(super) fn has(&self, id: &Reservation) -> Expr {
        cmp(CmpOp::Eq, Expr::Reg(self.open), id.0.clone())
    }
}

/// The type of the state and of reservations.
pub(super) const STATE: Ty = Ty::WORD;

/// The largest number of packets of a pipe.
pub const MOST_PACKETS: usize = 1 << 12;

/// The largest number of entries of a reservation: a work-item keeps a bit for each.
pub(super) const MOST_RESERVED: i64 = 64;

/// The name of the memory of a pipe's state.
pub(super) fn state_name(pipe: &str) -> String {
    format!("{pipe}.state")
}

pub(super) fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, STATE, a.into(), b.into())
}

pub(super) fn add(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Add, a, b)
}

pub(super) fn cmp(op: CmpOp, a: Expr, b: Expr) -> Expr {
    Expr::Cmp(op, STATE, a.into(), b.into())
}

/// A part of a word: its lowest bit, and its mask.
type WordPart = (i64, i64);

const HEAD: WordPart = (0, 0xffff);
const COUNT: WordPart = (16, 0xffff);
const WRITING: WordPart = (32, 0xffff);
const READING: WordPart = (48, 0x7fff);

/// The parts of a reservation: first entry, number, pipe.
const PARTS: [WordPart; 3] = [(0, 0xffff), (16, 0xffff), (32, 0xffff)];

fn part(word: &Expr, (low, mask): WordPart) -> Expr {
    let shifted = bin(BinOp::Shr, word.clone(), Expr::Const(low));
    bin(BinOp::And, shifted, Expr::Const(mask))
}

fn shifted(value: Expr, (low, _): WordPart) -> Expr {
    bin(BinOp::Shl, value, Expr::Const(low))
}

/// The state of a pipe of a size.
pub(super) struct PipeState {
    pub(super) word: Expr,
    pub(super) most: i64,
}

impl PipeState {
    fn part(&self, of: WordPart) -> Expr {
        part(&self.word, of)
    }

    fn entry(&self, from_head: Expr) -> Expr {
        let sum = add(self.part(HEAD), from_head);
        bin(BinOp::Rem, sum, Expr::Const(self.most))
    }

    /// The number of packets, and whether no entry is reserved.
    pub(super) fn packets(&self) -> (Expr, Expr) {
        let reserved = bin(BinOp::Or, self.part(WRITING), self.part(READING));
        (self.part(COUNT), cmp(CmpOp::Eq, reserved, Expr::Const(0)))
    }

    /// Whether `n` further entries can be reserved.
    pub(super) fn has(&self, end: PipeEnd, n: i64) -> Expr {
        match end {
            PipeEnd::Read => {
                let taken = add(self.part(READING), Expr::Const(n));
                cmp(CmpOp::Le, taken, self.part(COUNT))
            }
            PipeEnd::Write => {
                let full = add(self.part(COUNT), self.part(WRITING));
                cmp(CmpOp::Le, add(full, Expr::Const(n)), Expr::Const(self.most))
            }
        }
    }

    /// The next entry to reserve.
    pub(super) fn next(&self, end: PipeEnd) -> Expr {
        match end {
            PipeEnd::Read => self.entry(self.part(READING)),
            PipeEnd::Write => self.entry(add(self.part(COUNT), self.part(WRITING))),
        }
    }

    /// The state once `n` entries are reserved.
    pub(super) fn reserved(&self, end: PipeEnd, n: i64) -> Expr {
        let of = match end {
            PipeEnd::Read => READING,
            PipeEnd::Write => WRITING,
        };
        add(self.word.clone(), Expr::Const(n << of.0))
    }

    /// The state once `n` entries, which are not reserved, are read or written.
    pub(super) fn moved(&self, end: PipeEnd, n: i64) -> Expr {
        match end {
            PipeEnd::Read => {
                let next = self.entry(Expr::Const(n));
                let others = bin(BinOp::Sub, self.word.clone(), self.part(HEAD));
                let fewer = bin(BinOp::Sub, others, Expr::Const(n << COUNT.0));
                add(fewer, next)
            }
            PipeEnd::Write => add(self.word.clone(), Expr::Const(n << COUNT.0)),
        }
    }

    /// Whether `n` entries are reserved.
    pub(super) fn is_reserved(&self, end: PipeEnd, n: i64) -> Expr {
        let least = |of| cmp(CmpOp::Ge, self.part(of), Expr::Const(n));
        match end {
            PipeEnd::Read => bin(BinOp::And, least(READING), least(COUNT)),
            PipeEnd::Write => least(WRITING),
        }
    }

    /// The state once a reservation of `n` entries is committed.
    pub(super) fn committed(&self, end: PipeEnd, n: i64) -> Expr {
        let of = match end {
            PipeEnd::Read => READING,
            PipeEnd::Write => WRITING,
        };
        bin(BinOp::Sub, self.moved(end, n), Expr::Const(n << of.0))
    }
}

/// A reservation, as code holds it.
pub(super) struct Reservation(pub(super) Expr);

impl Reservation {
    /// The reservation of a number, which is not 0.
    pub(super) fn of(first: Expr, number: Expr, pipe: LocId) -> Expr {
        let pipe = Expr::Const(i64::from(pipe.0) << PARTS[2].0);
        add(add(first, shifted(number, PARTS[1])), pipe)
    }

    pub(super) fn first(&self) -> Expr {
        part(&self.0, PARTS[0])
    }

    pub(super) fn is_valid(&self) -> Expr {
        cmp(CmpOp::Ne, self.0.clone(), Expr::Const(0))
    }
}
