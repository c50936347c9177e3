//! Constants in registers: what a register holds in front of an instruction, where that is the same
//! on every way there.
//!
//! Some operands say how many accesses an instruction makes, or to which memory: they have to be
//! known before a program runs. Compilers put them into registers like any others. A data-flow
//! analysis of a thread's micro-ops finds them: a value is a constant, or the address of a byte of
//! a location.
//!
//! # Invariants
//! - A value is known only if each way to the instruction that conditions allow gives the register
//!   this one. Of an instruction that no such way leads to, all ways count.
//! - What is read from memory, or brought by other lanes, is not known.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::operands::plus;
use program::memory::ALIGNMENT;
use program::{BinOp, Expr, Instr, LocId, Op, RegId, Ty};

/// The registers whose values are known.
pub(super) type Values = HashMap<RegId, Expr>;

/// The value of an expression, if it is known, given those of registers. `narrow`: whether the
/// addresses of a location fit 32 bits.
pub(super) fn value(
    e: &Expr,
    known: &dyn Fn(RegId) -> Option<Expr>,
    narrow: &dyn Fn(LocId) -> bool,
) -> Option<Expr> {
    let of = |e: &Expr| value(e, known, narrow);
    let whole = |ty: Ty, loc: LocId| ty.bits == 64 || (ty.bits == 32 && narrow(loc));
    match e {
        Expr::Const(_) | Expr::Address(_) => Some(e.clone()),
        Expr::Reg(r) => known(*r),
        Expr::Bin(BinOp::Unknown, ..) | Expr::Fused(..) => None,
        Expr::Bin(op, ty, a, b) => match (of(a)?, of(b)?) {
            (Expr::Const(_), Expr::Const(0)) if op.divides() => None,
            (Expr::Const(a), Expr::Const(b)) => Some(Expr::Const(op.apply(*ty, a, b))),
            (address, Expr::Const(by)) | (Expr::Const(by), address) if *op == BinOp::Add => {
                whole(*ty, address.base()?).then(|| plus(address, by, BYTES))
            }
            (address, Expr::Const(by)) if *op == BinOp::Sub => {
                whole(*ty, address.base()?).then(|| plus(address, by.wrapping_neg(), BYTES))
            }
            // Whether what is known of where objects begin is enough is asked of the code
            // (`pointers`).
            (address, Expr::Const(mask)) | (Expr::Const(mask), address) if *op == BinOp::And => {
                let (loc, offset) = place(&address)?;
                match (Ty {
                    signed: true,
                    ..*ty
                })
                .wrap(mask)
                {
                    mask if (0..ALIGNMENT).contains(&mask) => Some(Expr::Const(offset & mask)),
                    mask if (-ALIGNMENT..0).contains(&mask) && whole(*ty, loc) => {
                        Some(behind(Expr::Address(loc), offset & mask))
                    }
                    _ => None,
                }
            }
            _ => None,
        },
        Expr::Cmp(op, ty, a, b) => match (of(a)?, of(b)?) {
            (Expr::Const(a), Expr::Const(b)) => Some(Expr::Const(i64::from(op.holds(*ty, a, b)))),
            _ => None,
        },
        Expr::Select(cond, a, b) => match of(cond)? {
            Expr::Const(0) => of(b),
            Expr::Const(_) => of(a),
            _ => None,
        },
        Expr::Cast(ty, inner) => match of(inner)? {
            Expr::Const(v) => Some(Expr::Const(ty.wrap(v))),
            address => whole(*ty, address.base()?).then_some(address),
        },
    }
}

/// The location of which a known value is an address, and how many bytes behind its beginning.
pub(super) fn place(value: &Expr) -> Option<(LocId, i64)> {
    match value {
        Expr::Address(loc) => Some((*loc, 0)),
        Expr::Bin(BinOp::Add, _, base, offset) => match (&**base, &**offset) {
            (Expr::Address(loc), Expr::Const(offset)) => Some((*loc, *offset)),
            _ => None,
        },
        _ => None,
    }
}

/// The address so many bytes behind another one.
pub(super) fn behind(address: Expr, bytes: i64) -> Expr {
    plus(address, bytes, BYTES)
}

/// Offsets of addresses count bytes.
const BYTES: Ty = Ty {
    bits: 8,
    signed: false,
};

/// What is known in front of these micro-ops, if `start` is known at the start of the thread; and
/// whether a way leads there.
pub(super) fn before(
    code: &[Instr],
    start: &Values,
    narrow: &dyn Fn(LocId) -> bool,
    asked: impl Iterator<Item = usize>,
) -> Vec<(Values, bool)> {
    let asked: Vec<usize> = asked.collect();
    let places: BTreeSet<usize> = asked.iter().copied().collect();
    let flows = [Ways::Likely, Ways::Written, Ways::All].map(|ways| {
        let mut found = HashMap::new();
        let tell = &mut |at, known: &Values| {
            if places.contains(&at) {
                found.insert(at, known.clone());
            }
        };
        flow(code, start.clone(), &mut Registers { narrow, ways, tell });
        found
    });
    let of = |at: &usize| {
        let found = flows
            .iter()
            .zip([true, false, false])
            .find_map(|(f, reached)| Some((f.get(at)?.clone(), reached)));
        found.unwrap_or_default()
    };
    asked.iter().map(of).collect()
}

/// Which micro-ops a way leads to that conditions allow, as far as their values are known.
pub(super) fn reached(code: &[Instr], narrow: &dyn Fn(LocId) -> bool) -> Vec<bool> {
    let mut reached = vec![false; code.len() + 1];
    let tell = &mut |at, _: &Values| reached[at] = true;
    flow(
        code,
        Values::new(),
        &mut Registers {
            narrow,
            ways: Ways::Likely,
            tell,
        },
    );
    reached
}

/// Which ways of a branch there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    /// Those that what is known of its condition allows.
    Likely,
    /// Those that a condition that is written as a constant allows.
    Written,
    /// Both: behind what ends the thread, nothing else leads on.
    All,
}

/// What a flow keeps track of.
pub(super) trait Domain {
    /// What is known at a place.
    type State: Clone;

    /// A micro-op that a way leads to, or the end: tells what is known in front of it, the last
    /// time what counts, and goes on behind it.
    fn step(&mut self, at: usize, instr: Option<&Instr>, state: &mut Self::State);

    /// Whether a branch is taken; `None`: both ways are gone.
    fn taken(&self, cond: &Expr, state: &Self::State) -> Option<bool>;

    /// Leaves of the state at a place what holds on one more way to it. Whether it changes.
    fn meet(&self, state: &mut Self::State, other: &Self::State) -> bool;
}

/// Goes all ways through a thread. States are kept where ways meet, and carried from there to the
/// next such place.
pub(super) fn flow<D: Domain>(code: &[Instr], start: D::State, domain: &mut D) {
    let heads: HashSet<usize> = code.iter().filter_map(|instr| instr.op.target()).collect();
    let mut states = HashMap::from([(0, start)]);
    let mut open = BTreeSet::from([0]);
    while let Some(head) = open.pop_first() {
        let (mut at, mut state) = (head, states[&head].clone());
        loop {
            domain.step(at, code.get(at), &mut state);
            let Some(instr) = code.get(at) else { break };
            let (mut next, mut target) = (true, None);
            if let Op::Branch { cond, target: to } = &instr.op {
                let taken = domain.taken(cond, &state);
                next = taken != Some(true);
                target = (taken != Some(false)).then_some(*to);
            }
            at += 1;
            let meets = next && heads.contains(&at);
            for to in target.into_iter().chain(meets.then_some(at)) {
                let changes = match states.get_mut(&to) {
                    Some(known) => domain.meet(known, &state),
                    None => states.insert(to, state.clone()).is_none(),
                };
                if changes {
                    open.insert(to);
                }
            }
            if meets || !next {
                break;
            }
        }
    }
}

/// Constants in registers, on some ways.
struct Registers<'a> {
    narrow: &'a dyn Fn(LocId) -> bool,
    ways: Ways,
    tell: &'a mut dyn FnMut(usize, &Values),
}

impl Domain for Registers<'_> {
    type State = Values;

    fn step(&mut self, at: usize, instr: Option<&Instr>, known: &mut Values) {
        (self.tell)(at, known);
        match instr.map(|instr| &instr.op) {
            Some(Op::Assign { dst, value: e }) => {
                match value(e, &|r| known.get(&r).cloned(), self.narrow) {
                    Some(new) => drop(known.insert(*dst, new)),
                    None => drop(known.remove(dst)),
                }
            }
            other => {
                if let Some(dst) = other.and_then(Op::defines) {
                    known.remove(&dst);
                }
            }
        }
    }

    fn taken(&self, cond: &Expr, known: &Values) -> Option<bool> {
        let cond = match self.ways {
            Ways::Likely => value(cond, &|r| known.get(&r).cloned(), self.narrow),
            Ways::Written => Some(cond.clone()),
            Ways::All => None,
        };
        cond.and_then(|cond| {
            if let Expr::Const(v) = cond {
                Some(v != 0)
            } else {
                None
            }
        })
    }

    fn meet(&self, state: &mut Values, other: &Values) -> bool {
        let before = state.len();
        state.retain(|reg, value| other.get(reg) == Some(value));
        state.len() < before
    }
}
