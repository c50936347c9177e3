//! Values handed from lane to lane of a warp: shuffles, votes, matches, reductions.
//!
//! All of them are one meeting of the lanes that the mask names: each brings a value, and computes with what the others
//! brought. None orders accesses to memory.
//!
//! # Sources
//! - PTX ISA 9.4, *shfl.sync*, *vote.sync*, *match.sync*, *redux.sync*: the lanes of the mask wait for each other; which lane a
//!   shuffle reads, by its `c` operand; what is undefined.
//!
//! # Where we differ
//! - The mask is a constant. Where the lane that a shuffle reads is none, its own lane takes from all of them, and chooses.
//! - What the ISA leaves undefined, a lane outside of its own mask and a value of a lane that does not come, meets nobody.

use super::lower::{Arg, Call, Emit};
use super::table::{Group, GroupKind, ResultTy, Role, Row};
use program::{BinOp, CmpOp, Expr, Op, RegId, Ty};

const MODES: Group = Group { kind: GroupKind::Op, words: &["up", "down", "bfly", "idx"] };
const B32: Group = Group { kind: GroupKind::Type, words: &["b32"] };
const PRED: Group = Group { kind: GroupKind::Ignored, words: &["pred"] };
const MATCHED: Group = Group { kind: GroupKind::Type, words: &["b32", "b64"] };
const REDUCED: Group = Group { kind: GroupKind::Type, words: &["u32", "s32", "b32"] };
const REDUCTIONS: Group = Group { kind: GroupKind::Op, words: &["add", "min", "max", "and", "or", "xor"] };
const VOTE: &[Role] = &[Role::Dst, Role::Pred, Role::Loose];
const COMBINED: &[Role] = &[Role::Dst, Role::Val, Role::Loose];

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "shfl",
        "`shfl.sync.{up|down|bfly|idx}.b32 d{|p}, a, b, c, mask`",
        "a value of another lane; orders no accesses",
        &[MODES, B32],
        &[Role::DstAndPred, Role::Val, Role::Loose, Role::Loose, Role::Loose],
        shuffle,
    )
    .keyed(&["sync"]),
    Row::new(
        "vote",
        "`vote.sync.all.pred d, {!}a, mask`",
        "whether a predicate holds in every lane",
        &[PRED],
        VOTE,
        |e, c| {
            vote(e, c, |all| fold(BinOp::And, Ty::U32, all));
        },
    )
    .keyed(&["sync", "all"])
    .result(ResultTy::Pred),
    Row::new(
        "vote",
        "`vote.sync.any.pred d, {!}a, mask`",
        "whether a predicate holds in some lane",
        &[PRED],
        VOTE,
        |e, c| {
            vote(e, c, |all| fold(BinOp::Or, Ty::U32, all));
        },
    )
    .keyed(&["sync", "any"])
    .result(ResultTy::Pred),
    Row::new(
        "vote",
        "`vote.sync.uni.pred d, {!}a, mask`",
        "whether a predicate is the same in all lanes",
        &[PRED],
        VOTE,
        |e, c| {
            vote(e, c, |all| equal(Ty::U32, all));
        },
    )
    .keyed(&["sync", "uni"])
    .result(ResultTy::Pred),
    Row::new(
        "vote",
        "`vote.sync.ballot.b32 d, {!}a, mask`",
        "the lanes in which a predicate holds, as a set of bits",
        &[B32],
        VOTE,
        |e, c| {
            let Some(met) = met(e, c, 2, c.expr(1), Ty::U32) else { return };
            let bit = |(lane, value): &(u32, Expr)| bin(BinOp::Shl, Ty::U32, value.clone(), int(i64::from(*lane)));
            let set = fold(BinOp::Or, Ty::U32, &met.iter().map(bit).collect::<Vec<_>>());
            put(e, c, 0, set);
        },
    )
    .keyed(&["sync", "ballot"])
    .result(ResultTy::U32),
    Row::new(
        "match",
        "`match.any.sync.{b32|b64} d, a, mask`",
        "the lanes that bring the same value as this one, as a set of bits",
        &[MATCHED],
        COMBINED,
        |e, c| {
            let own = e.fit(c.expr(1), c.ty);
            let Some(met) = met(e, c, 2, own.clone(), c.ty) else { return };
            let bit = |(lane, value): &(u32, Expr)| {
                let same = Expr::Cmp(CmpOp::Eq, c.ty, value.clone().into(), own.clone().into());
                Expr::Select(same.into(), int(1 << lane).into(), int(0).into())
            };
            let set = fold(BinOp::Or, Ty::U32, &met.iter().map(bit).collect::<Vec<_>>());
            put(e, c, 0, set);
        },
    )
    .keyed(&["sync", "any"])
    .result(ResultTy::U32),
    Row::new(
        "match",
        "`match.all.sync.{b32|b64} d{|p}, a, mask`",
        "the lanes of the mask if all bring the same value, else 0",
        &[MATCHED],
        &[Role::DstAndPred, Role::Val, Role::Loose],
        |e, c| {
            let own = e.fit(c.expr(1), c.ty);
            let Some(met) = met(e, c, 2, own, c.ty) else { return };
            let set = met.iter().fold(0, |set, (lane, _)| set | 1 << lane);
            let values: Vec<Expr> = met.into_iter().map(|m| m.1).collect();
            let same = equal(c.ty, &values);
            put(e, c, 0, Expr::Select(same.clone().into(), int(set).into(), int(0).into()));
            put(e, c, 1, same);
        },
    )
    .keyed(&["sync", "all"])
    .result(ResultTy::U32),
    Row::new(
        "redux",
        "`redux.sync.{add|min|max}.{u32|s32} d, a, mask`, `redux.sync.{and|or|xor}.b32 d, a, mask`",
        "the values of all lanes, combined",
        &[REDUCTIONS, REDUCED],
        COMBINED,
        |e, c| {
            let operation = match c.quals.get(GroupKind::Op) {
                Some("min") => BinOp::Min,
                Some("max") => BinOp::Max,
                Some("and") => BinOp::And,
                Some("or") => BinOp::Or,
                Some("xor") => BinOp::Xor,
                _ => BinOp::Add,
            };
            let own = e.fit(c.expr(1), c.ty);
            let Some(met) = met(e, c, 2, own, c.ty) else { return };
            let values: Vec<Expr> = met.into_iter().map(|m| m.1).collect();
            put(e, c, 0, fold(operation, c.ty, &values));
        },
    )
    .keyed(&["sync"]),
];

/// How a shuffle names the lane that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// So many lanes below.
    Up,
    /// So many lanes above.
    Down,
    /// By exclusive or.
    Bfly,
    /// By its number.
    Idx,
}

/// The lane that a shuffle reads, given its operands `b` and `c`; and whether that is in bounds, else it reads its own.
fn source_lane(mode: ShuffleMode, own: i64, b: i64, c: i64) -> (i64, bool) {
    let (b, segment, clamp) = (b & 31, c >> 8 & 31, c & 31);
    let last = (own & segment) | (clamp & !segment);
    let (from, within) = match mode {
        ShuffleMode::Up => (own - b, own - b >= last),
        ShuffleMode::Down => (own + b, own + b <= last),
        ShuffleMode::Bfly => (own ^ b, own ^ b <= last),
        ShuffleMode::Idx => {
            let lane = (own & segment) | (b & !segment);
            (lane, lane <= last)
        }
    };
    (if within { from } else { own }, within)
}

/// What a shuffle does for each value of its operand `b`, of which five bits count: sets of these values.
pub(in crate::isa) struct Shuffled {
    /// `b`.
    by: Expr,
    /// The values that it can have.
    possible: u32,
    /// The lanes that are read, each with the values that read it.
    pub(in crate::isa) lanes: Vec<(u32, u32)>,
    /// Those in bounds.
    within: u32,
}

impl Shuffled {
    /// The shuffle of a lane among those that meet; `c` is its operand of that name.
    pub(in crate::isa) fn new(mode: ShuffleMode, own: u32, by: Expr, c: i64, meet: u32) -> Shuffled {
        let possible = if let Expr::Const(v) = by { 1 << (v & 31) } else { u32::MAX };
        let (mut sets, mut within) = ([0u32; 32], 0);
        for b in (0..32).filter(|b| possible >> b & 1 != 0) {
            let (from, is_within) = source_lane(mode, i64::from(own), b, c);
            within |= u32::from(is_within) << b;
            // A lane that does not come, or that is not in its own mask, has nothing to give or to take.
            if meet >> own & 1 != 0 && meet >> from & 1 != 0 {
                sets[from as usize] |= 1 << b;
            }
        }
        let lanes = (0..32).zip(sets).filter(|(_, set)| *set != 0).collect();
        Shuffled { by, possible, lanes, within }
    }

    /// Whether `b` is in a set of its values.
    fn is_in(&self, set: u32) -> Expr {
        match set & self.possible {
            0 => int(0),
            all if all == self.possible => int(1),
            some => {
                let at = bin(BinOp::And, Ty::U32, self.by.clone(), int(31));
                bin(BinOp::And, Ty::U32, bin(BinOp::Shr, Ty::U32, int(i64::from(some)), at), int(1))
            }
        }
    }

    /// Whether a lane that comes is read.
    pub(in crate::isa) fn is_defined(&self) -> Expr {
        self.is_in(self.lanes.iter().fold(0, |all, (_, set)| all | set))
    }

    /// Whether the lane that is meant is in bounds.
    fn is_within(&self) -> Expr {
        self.is_in(self.within)
    }

    /// What is read, of what was taken from each of the lanes.
    pub(in crate::isa) fn chosen(&self, taken: &[Expr]) -> Expr {
        let choices = self.lanes.iter().zip(taken);
        let choose = |other: Expr, ((_, set), value): (&(u32, u32), &Expr)| {
            Expr::Select(self.is_in(*set).into(), value.clone().into(), other.into())
        };
        taken.first().map_or(int(0), |first| choices.skip(1).fold(first.clone(), choose))
    }
}

/// How a lane meets those that are named, and nobody if what it asks for is not defined; `here` is how long the code is.
pub(in crate::isa) fn meet(value: Expr, lanes: u32, defined: Expr, here: usize) -> Vec<Op> {
    match defined {
        Expr::Const(0) => vec![Op::Give { value, lanes: UNDEFINED }],
        Expr::Const(_) => vec![Op::Give { value, lanes }],
        some => vec![
            Op::Branch { cond: some, target: here + 2 },
            Op::Give { value: value.clone(), lanes: UNDEFINED },
            Op::Give { value, lanes },
        ],
    }
}

/// No lanes: whoever comes there meets nobody.
const UNDEFINED: u32 = 0;

fn int(v: i64) -> Expr {
    Expr::Const(v)
}

fn bin(op: BinOp, ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, ty, a.into(), b.into())
}

/// All values, combined.
pub(in crate::isa) fn fold(op: BinOp, ty: Ty, all: &[Expr]) -> Expr {
    all.iter().cloned().reduce(|a, b| bin(op, ty, a, b)).unwrap_or(int(0))
}

/// Whether all are the same.
pub(in crate::isa) fn equal(ty: Ty, all: &[Expr]) -> Expr {
    let pairs: Vec<Expr> =
        all.windows(2).map(|w| Expr::Cmp(CmpOp::Eq, ty, w[0].clone().into(), w[1].clone().into())).collect();
    if pairs.is_empty() { int(1) } else { fold(BinOp::And, Ty::U32, &pairs) }
}

/// Puts a value into the destination of that number, if there is one.
fn put(e: &mut Emit<'_, '_>, c: &Call, number: usize, value: Expr) {
    if let Some(Arg::Dst(Some(dst))) = c.elements(0).get(number) {
        e.push(Op::Assign { dst: *dst, value });
    }
}

/// A constant operand.
fn constant(e: &mut Emit<'_, '_>, c: &Call, operand: usize, what: &str) -> Option<i64> {
    if let Expr::Const(v) = c.expr(operand) {
        return Some(v);
    }
    e.error("unsupported-operand", c.opcode.clone(), format!("{what} is no constant"), |d| {
        d.label(
            "only constants are supported here: from a register, it depends on what is computed who meets whom",
        )
    });
    None
}

/// The lanes of the warp that an operand names.
pub(super) fn named(e: &mut Emit<'_, '_>, c: &Call, operand: usize) -> Option<u32> {
    let mask = constant(e, c, operand, "the mask of lanes")? as u32;
    let threads = e.env.warp_threads;
    if threads > 32 {
        e.error("unsupported-mask", c.opcode.clone(), "a warp has at most 32 lanes", |d| {
            d.label(format!("this one has {threads}"))
        });
        return None;
    }
    let all = if threads >= 32 { u32::MAX } else { (1u32 << threads) - 1 };
    if mask & all == 0 {
        e.error("unsupported-mask", c.opcode.clone(), "this mask names no thread of the warp", |d| {
            d.label(format!("the lanes of this warp are 0 to {}", threads.saturating_sub(1)))
        });
        return None;
    }
    Some(mask & all)
}

/// Meets the lanes that an operand names, with a value; what each of them brings.
fn met(e: &mut Emit<'_, '_>, c: &Call, mask: usize, value: Expr, ty: Ty) -> Option<Vec<(u32, Expr)>> {
    let lanes = named(e, c, mask)?;
    let named_itself = i64::from(lanes >> e.env.lane & 1);
    meet(value, lanes, int(named_itself), e.here()).into_iter().for_each(|op| e.push(op));
    let mut all = Vec::new();
    for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
        all.push((lane, Expr::Reg(taken(e, c, lane, ty)?)));
    }
    Some(all)
}

/// Takes what a lane brought into a register that the code cannot name.
fn taken(e: &mut Emit<'_, '_>, c: &Call, lane: u32, ty: Ty) -> Option<RegId> {
    let Some(dst) = e.regs.intern(&format!("lane {lane}")) else {
        e.error("too-many-registers", c.opcode.clone(), "a thread has at most 65535 registers", |d| d);
        return None;
    };
    e.regs.wrote(dst, ty);
    e.push(Op::Take { dst, lane: lane as u8 });
    Some(dst)
}

fn vote(e: &mut Emit<'_, '_>, c: &Call, combine: fn(&[Expr]) -> Expr) {
    let Some(met) = met(e, c, 2, c.expr(1), Ty::U32) else { return };
    let values: Vec<Expr> = met.into_iter().map(|m| m.1).collect();
    put(e, c, 0, combine(&values));
}

fn shuffle(e: &mut Emit<'_, '_>, c: &Call) {
    let Some(clamp) = constant(e, c, 3, "`c` of a shuffle") else { return };
    let mode = match c.quals.get(GroupKind::Op) {
        Some("up") => ShuffleMode::Up,
        Some("down") => ShuffleMode::Down,
        Some("bfly") => ShuffleMode::Bfly,
        Some(_) => ShuffleMode::Idx,
        None => {
            return e.error("unknown-instruction", c.opcode.clone(), "a shuffle needs a mode", |d| {
                d.label(format!("expected the form {}", c.row.syntax))
            });
        }
    };
    let value = e.fit(c.expr(1), c.ty);
    let Some(lanes) = named(e, c, 4) else { return };
    let shuffled = Shuffled::new(mode, e.env.lane, c.expr(2), clamp, lanes);
    meet(value, lanes, shuffled.is_defined(), e.here()).into_iter().for_each(|op| e.push(op));
    let mut all = Vec::new();
    for &(lane, _) in &shuffled.lanes {
        all.push(Expr::Reg(match taken(e, c, lane, c.ty) {
            Some(taken) => taken,
            None => return,
        }));
    }
    // The lane may be named by the register that the value goes to.
    put(e, c, 1, shuffled.is_within());
    put(e, c, 0, shuffled.chosen(&all));
}
