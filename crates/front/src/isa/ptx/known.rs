//! Constant propagation: finds registers that hold the same constant or address on every path to an
//! instruction.
//!
//! Some operands decide how many accesses an instruction makes, or to which memory, so they must be
//! known before a program runs. Compilers put them into registers. A data-flow analysis over a
//! thread's micro-ops finds their values: a constant, or the address of a byte of a location.
//!
//! # Invariants
//! - A value is known only if every path to the instruction that known conditions allow gives the
//!   register this value. If no such path exists, all paths count.
//! - Values read from memory, or received from other lanes, are never known.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::descriptors;
use super::followed::Followed;
use super::operands::plus;
use program::memory::ALIGNMENT;
use program::{BinOp, Expr, Instr, LocId, Op, RegId, Ty};

/// The registers with known values.
pub(super) type Values = HashMap<RegId, Expr>;

/// Evaluates an expression from the known values of registers; `None` if that is impossible.
/// `narrow`: whether the addresses of a location fit 32 bits.
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
        Expr::Bin(op, ty, a, b) => {
            let (a, b) = (of(a), of(b));
            if let Some(of_descriptor) =
                descriptors::computed(*op, *ty, a.as_ref(), b.as_ref(), narrow)
            {
                return of_descriptor;
            }
            binary(*op, *ty, a?, b?, &whole)
        }
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
            other => match descriptors::converted(&other, *ty) {
                Some(of_descriptor) => of_descriptor,
                None => whole(*ty, other.base()?).then_some(other),
            },
        },
    }
}

/// Evaluates an operation on known values. `whole`: whether a type holds a location's addresses.
fn binary(op: BinOp, ty: Ty, a: Expr, b: Expr, whole: &dyn Fn(Ty, LocId) -> bool) -> Option<Expr> {
    match (a, b) {
        (Expr::Const(_), Expr::Const(0)) if op.divides() => None,
        (Expr::Const(a), Expr::Const(b)) => Some(Expr::Const(op.apply(ty, a, b))),
        (address, Expr::Const(by)) | (Expr::Const(by), address) if op == BinOp::Add => {
            whole(ty, address.base()?).then(|| plus(address, by, BYTES))
        }
        (address, Expr::Const(by)) if op == BinOp::Sub => {
            whole(ty, address.base()?).then(|| plus(address, by.wrapping_neg(), BYTES))
        }
        // The assumed alignment of objects is checked elsewhere (`pointers`).
        (address, Expr::Const(mask)) | (Expr::Const(mask), address) if op == BinOp::And => {
            let (loc, offset) = place(&address)?;
            match (Ty { signed: true, ..ty }).wrap(mask) {
                mask if (0..ALIGNMENT).contains(&mask)
                    || (0..descriptors::ALIGNED).contains(&mask) && whole(Ty::U32, loc) =>
                {
                    Some(Expr::Const(offset & mask))
                }
                mask if (-ALIGNMENT..0).contains(&mask) && whole(ty, loc) => {
                    Some(behind(Expr::Address(loc), offset & mask))
                }
                mask if descriptors::keeps_address(mask) && whole(Ty::U32, loc) => {
                    let kept = offset & (mask | !(descriptors::ALIGNED - 1));
                    Some(behind(Expr::Address(loc), kept))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Splits a known address into its location and the offset in bytes.
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

/// The address `bytes` after another one.
pub(super) fn behind(address: Expr, bytes: i64) -> Expr {
    plus(address, bytes, BYTES)
}

/// Offsets of addresses count bytes.
const BYTES: Ty = Ty {
    bits: 8,
    signed: false,
};

/// The table with the values at the start of a thread.
fn table(followed: &Followed, start: &Values) -> ValueTable {
    let mut table = vec![None; followed.count];
    for (reg, value) in start {
        if let Some(number) = followed.number(*reg) {
            table[number] = Some(Arc::new(value.clone()));
        }
    }
    table
}

/// The value of a register in a table.
fn known_in(table: &ValueTable, followed: &Followed, reg: RegId) -> Option<Expr> {
    let value = table[followed.number(reg)?].as_ref()?;
    Some((**value).clone())
}

/// By the number of a followed register: its known value.
type ValueTable = Vec<Option<Arc<Expr>>>;

/// A micro-op, and the registers whose known values before it are wanted.
pub(super) struct ValueRequest {
    /// The index of the micro-op.
    pub(super) at: usize,
    /// The registers.
    pub(super) registers: Vec<RegId>,
}

/// For each micro-op in `asked`: the known values of its registers before it, and whether a path
/// reaches it. `start` holds the values at the start of the thread.
pub(super) fn before(
    code: &[Instr],
    start: &Values,
    narrow: &dyn Fn(LocId) -> bool,
    asked: &[ValueRequest],
) -> Vec<(Values, bool)> {
    let mut places = vec![false; code.len() + 1];
    for request in asked {
        places[request.at] = true;
    }
    let wanted = asked.iter().flat_map(|request| &request.registers);
    let followed = &Followed::of(code, wanted.copied());
    let mut flows: Vec<HashMap<usize, ValueTable>> = Vec::new();
    for ways in [
        BranchPolicy::Likely,
        BranchPolicy::Written,
        BranchPolicy::All,
    ] {
        let is_found = |request: &ValueRequest| flows.iter().any(|f| f.contains_key(&request.at));
        if asked.iter().all(is_found) {
            break;
        }
        let mut found = HashMap::new();
        let tell = &mut |at, known: &ValueTable| {
            if places[at] {
                found.insert(at, known.clone());
            }
        };
        let mut registers = Registers {
            narrow,
            ways,
            followed,
            tell,
        };
        flow(code, table(followed, start), &mut registers);
        flows.push(found);
    }
    let before = |request: &ValueRequest| {
        let mut flows = flows.iter().zip([true, false, false]);
        let found = flows.find_map(|(f, reached)| Some((f.get(&request.at)?, reached)));
        let Some((table, reached)) = found else {
            return (Values::new(), false);
        };
        let values = request.registers.iter();
        let values = values.filter_map(|reg| Some((*reg, known_in(table, followed, *reg)?)));
        (values.collect(), reached)
    };
    asked.iter().map(before).collect()
}

/// The micro-ops that paths reach, as far as known conditions allow.
pub(super) fn reached(code: &[Instr], narrow: &dyn Fn(LocId) -> bool) -> Vec<bool> {
    let mut reached = vec![false; code.len() + 1];
    let tell = &mut |at, _: &ValueTable| reached[at] = true;
    let followed = &Followed::of(code, std::iter::empty());
    flow(
        code,
        table(followed, &Values::new()),
        &mut Registers {
            narrow,
            ways: BranchPolicy::Likely,
            followed,
            tell,
        },
    );
    reached
}

/// The branches that an analysis follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchPolicy {
    /// Those that the known value of the condition allows.
    Likely,
    /// Those that the condition allows, if it is a constant in the code.
    Written,
    /// Both sides of every branch. This also reaches code after the end of the thread.
    All,
}

/// An analysis that [`flow`] runs over a thread.
pub(super) trait Domain {
    /// The facts at one point of the code.
    type State: Clone;

    /// Visits a micro-op, or the end of the code, on a path. Records the state before it; the last
    /// visit counts. Updates the state to the one after it.
    fn step(&mut self, at: usize, instr: Option<&Instr>, state: &mut Self::State);

    /// Whether a branch is taken; `None` if both sides are possible.
    fn taken(&self, cond: &Expr, state: &Self::State) -> Option<bool>;

    /// Keeps only the facts in `state` that also hold in `other`, a state from a further path.
    /// Returns whether `state` changed.
    fn meet(&self, state: &mut Self::State, other: &Self::State) -> bool;
}

/// For each micro-op, and the end: whether several others may precede it.
fn joins(code: &[Instr]) -> Vec<bool> {
    let mut before = vec![0usize; code.len() + 1];
    before[0] = 1;
    for (at, instr) in code.iter().enumerate() {
        let mut goes_on = true;
        if let Op::Branch { cond, target } = &instr.op {
            before[*target] += 1;
            goes_on = !matches!(cond, Expr::Const(v) if *v != 0);
        }
        before[at + 1] += usize::from(goes_on);
    }
    before.into_iter().map(|count| count > 1).collect()
}

/// Follows all paths through a thread. States are stored only where paths join or part, and
/// recomputed between such places.
pub(super) fn flow<D: Domain>(code: &[Instr], start: D::State, domain: &mut D) {
    let joins = joins(code);
    let mut states = HashMap::from([(0, start)]);
    let mut open = BTreeSet::from([0]);
    while let Some(head) = open.pop_first() {
        let (mut at, mut state) = (head, states[&head].clone());
        loop {
            domain.step(at, code.get(at), &mut state);
            let Some(instr) = code.get(at) else { break };
            let mut ways = [Some(at + 1), None];
            if let Op::Branch { cond, target } = &instr.op {
                ways = match domain.taken(cond, &state) {
                    Some(true) => [Some(*target), None],
                    Some(false) => ways,
                    None => [Some(at + 1), Some(*target)],
                };
            }
            let [first, second] = ways;
            let parts = second.is_some();
            let mut next = None;
            for to in first.into_iter().chain(second) {
                if !parts && !joins[to] {
                    next = Some(to);
                    continue;
                }
                let changes = match states.get_mut(&to) {
                    Some(known) => domain.meet(known, &state),
                    None => states.insert(to, state.clone()).is_none(),
                };
                if changes {
                    open.insert(to);
                }
            }
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
    }
}

/// The analysis of constants in registers, on some branches.
struct Registers<'a> {
    narrow: &'a dyn Fn(LocId) -> bool,
    ways: BranchPolicy,
    /// The registers that something depends on; the others stay unknown.
    followed: &'a Followed,
    tell: &'a mut dyn FnMut(usize, &ValueTable),
}

impl Registers<'_> {
    fn value(&self, e: &Expr, known: &ValueTable) -> Option<Expr> {
        value(e, &|reg| known_in(known, self.followed, reg), self.narrow)
    }
}

impl Domain for Registers<'_> {
    type State = ValueTable;

    fn step(&mut self, at: usize, instr: Option<&Instr>, known: &mut ValueTable) {
        (self.tell)(at, known);
        let Some(op) = instr.map(|instr| &instr.op) else {
            return;
        };
        let Some(number) = op.defines().and_then(|dst| self.followed.number(dst)) else {
            return;
        };
        known[number] = match op {
            Op::Assign { value: e, .. } => self.value(e, known).map(Arc::new),
            _ => None,
        };
    }

    fn taken(&self, cond: &Expr, known: &ValueTable) -> Option<bool> {
        let cond = match self.ways {
            BranchPolicy::Likely => self.value(cond, known),
            BranchPolicy::Written => Some(cond.clone()),
            BranchPolicy::All => None,
        };
        cond.and_then(|cond| {
            if let Expr::Const(v) = cond {
                Some(v != 0)
            } else {
                None
            }
        })
    }

    fn meet(&self, state: &mut ValueTable, other: &ValueTable) -> bool {
        let mut weaker = false;
        for (cell, other) in state.iter_mut().zip(other) {
            let Some(value) = cell else { continue };
            let joined = match other {
                Some(other) if Arc::ptr_eq(value, other) || value == other => continue,
                Some(other) => descriptors::joined(value, other, self.narrow),
                None => None,
            };
            if joined.as_ref() != Some(&**value) {
                weaker = true;
                *cell = joined.map(Arc::new);
            }
        }
        weaker
    }
}
