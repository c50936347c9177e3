//! Constants in registers: what a register holds in front of an instruction, where that is the same on every way there.
//!
//! Some operands say how many accesses an instruction makes, or to which memory: they have to be known before a program runs. Compilers
//! put them into registers like any others. A data-flow analysis of a thread's micro-ops finds them: a value is a constant, or the
//! address of a byte of a location.
//!
//! # Invariants
//! - A value is known only if each way to the instruction that conditions allow gives the register this one. Of an instruction that no
//!   such way leads to, all ways count.
//! - What is read from memory, or brought by other lanes, is not known.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::operands::plus;
use program::{BinOp, Expr, Instr, LocId, Op, RegId, Ty};

/// The registers whose values are known.
pub(super) type Values = HashMap<RegId, Expr>;

/// The value of an expression, if it is known. `narrow`: whether the addresses of a location fit 32 bits.
pub(super) fn value(e: &Expr, known: &Values, narrow: &dyn Fn(LocId) -> bool) -> Option<Expr> {
    let of = |e: &Expr| value(e, known, narrow);
    let whole = |ty: Ty, loc: LocId| ty.bits == 64 || (ty.bits == 32 && narrow(loc));
    match e {
        Expr::Const(_) | Expr::Address(_) => Some(e.clone()),
        Expr::Reg(r) => known.get(r).cloned(),
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

/// Offsets of addresses count bytes.
const BYTES: Ty = Ty { bits: 8, signed: false };

/// What is known in front of these micro-ops, if `start` is known at the start of the thread; and whether a way leads there.
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
        flow(code, start, narrow, ways, &mut |at, known| {
            if places.contains(&at) {
                found.insert(at, known.clone());
            }
        });
        found
    });
    let of = |at: &usize| {
        let found =
            flows.iter().zip([true, false, false]).find_map(|(f, reached)| Some((f.get(at)?.clone(), reached)));
        found.unwrap_or_default()
    };
    asked.iter().map(of).collect()
}

/// Which micro-ops a way leads to that conditions allow, as far as their values are known.
pub(super) fn reached(code: &[Instr], narrow: &dyn Fn(LocId) -> bool) -> Vec<bool> {
    let mut reached = vec![false; code.len() + 1];
    flow(code, &Values::new(), narrow, Ways::Likely, &mut |at, _| reached[at] = true);
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

/// Tells what is known in front of the micro-ops that a way leads to, the last time what counts.
///
/// States are kept where ways meet, and carried from there to the next such place.
fn flow(
    code: &[Instr],
    start: &Values,
    narrow: &dyn Fn(LocId) -> bool,
    ways: Ways,
    tell: &mut dyn FnMut(usize, &Values),
) {
    let heads: HashSet<usize> = code.iter().filter_map(|instr| instr.op.target()).collect();
    let mut states = HashMap::from([(0, start.clone())]);
    let mut open = BTreeSet::from([0]);
    while let Some(head) = open.pop_first() {
        let (mut at, mut known) = (head, states[&head].clone());
        loop {
            tell(at, &known);
            let Some(instr) = code.get(at) else { break };
            let (mut next, mut target) = (true, None);
            match &instr.op {
                Op::Assign { dst, value: e } => {
                    match value(e, &known, narrow) {
                        Some(new) => known.insert(*dst, new),
                        None => known.remove(dst),
                    };
                }
                Op::Branch { cond, target: to } => {
                    let cond = match ways {
                        Ways::Likely => value(cond, &known, narrow),
                        Ways::Written => Some(cond.clone()),
                        Ways::All => None,
                    };
                    let taken = cond.and_then(|cond| if let Expr::Const(v) = cond { Some(v != 0) } else { None });
                    next = taken != Some(true);
                    target = (taken != Some(false)).then_some(*to);
                }
                other => {
                    if let Some(dst) = other.defines() {
                        known.remove(&dst);
                    }
                }
            }
            at += 1;
            let meets = next && heads.contains(&at);
            for to in target.into_iter().chain(meets.then_some(at)) {
                if meet(&mut states, to, &known) {
                    open.insert(to);
                }
            }
            if meets || !next {
                break;
            }
        }
    }
}

/// Leaves of the state at a place what holds on one more way to it. Whether it changes.
fn meet(states: &mut HashMap<usize, Values>, at: usize, known: &Values) -> bool {
    let Some(state) = states.get_mut(&at) else {
        states.insert(at, known.clone());
        return true;
    };
    let before = state.len();
    state.retain(|reg, value| known.get(reg) == Some(value));
    state.len() < before
}
