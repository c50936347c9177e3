//! Computes at which bytes of an object an access through a register can begin.
//!
//! The analysis runs threads over ranges of numbers. A value read from memory is any number, and a
//! branch on such a value takes both sides. A loop runs as often as its numbers decide. If it
//! creates too many states, they are merged into one with unbounded ranges.
//!
//! Lanes of a warp can give each other addresses, as for matrices. A first round then computes what
//! each lane gives, and takes any value from the others; a second round takes what was given.
//!
//! # Invariants
//! - No verdict depends on the result; it only decides how memory is divided into cells. An access
//!   outside the computed places belongs to no cell, and the engines detect it by its address.
//! - Numbers stay within their types: wrapping indices are not followed.
//! - States hold only registers that addresses and branches depend on, and forget those that are
//!   dead: states that differ in nothing else have the same continuations.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::ranges::Range;
use super::shapes::{CodeShape, CodeShapes};
use program::points::access_of;
use program::{
    BinOp, Expr, GroupKey, GroupSeat, Init, Instr, InstrId, LocId, Op, Place, Program, RegId, Scope,
};

/// The number of separate states kept for each label of a thread; the second number counts if the
/// first takes too many steps.
const STATES: [usize; 2] = [96, 2];
/// The number of micro-ops that the analysis runs with each number of states, over all threads.
const STEPS: usize = 8_000_000;

/// A number or, with a base, an address at that offset in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OffsetValue {
    base: Option<LocId>,
    at: Range,
}

/// A possible value; `None`: any value.
type KnownOffset = Option<OffsetValue>;

fn number(at: Range) -> KnownOffset {
    Some(OffsetValue { base: None, at })
}

/// What each thread gives to the lanes of its warp in one execution of an instruction.
type GivenOffsets = HashMap<(usize, InstrId), KnownOffset>;

/// The offsets of each access, by object. `unknown` lists accesses that may be anywhere.
#[derive(Default)]
pub(super) struct Offsets {
    found: BTreeMap<(usize, usize), HashMap<LocId, HashSet<Range>>>,
    unknown: HashSet<(usize, usize)>,
    /// What threads give to lanes that access memory at addresses that they take.
    given: GivenOffsets,
}

impl Offsets {
    /// Computes the offsets of accesses in some threads.
    pub(super) fn compute(program: &Program, threads: &BTreeSet<usize>) -> Offsets {
        let warps = Warps::of(program);
        let mut shapes = CodeShapes::new(program);
        let shapes: Vec<_> = threads.iter().map(|t| (*t, shapes.of(*t))).collect();
        let first = Offsets::round(program, &shapes, &warps, &GivenOffsets::new());
        if first.given.is_empty() {
            return first;
        }
        Offsets::round(program, &shapes, &warps, &first.given)
    }

    /// Runs the threads. A lane takes the value that `given` has for it; without one, it takes any
    /// value.
    fn round(
        program: &Program,
        threads: &[(usize, Rc<CodeShape>)],
        warps: &Warps,
        given: &GivenOffsets,
    ) -> Offsets {
        let mut offsets = Offsets::default();
        let mut fewer = 0;
        for (t, shape) in threads {
            let t = *t;
            let mut run = OffsetRun {
                program,
                thread: t,
                shape,
                warps,
                given,
                steps: 0,
                offsets: &mut offsets,
            };
            let mut tries = (fewer..STATES.len()).filter(|n| {
                run.steps = STEPS / threads.len();
                run.all(STATES[*n]).is_some()
            });
            if let Some(n) = tries.next() {
                // Other threads mostly have the same code.
                fewer = n;
            } else {
                let all = 0..program.threads[t].code.len();
                offsets.unknown.extend(all.map(|i| (t, i)));
            }
        }
        offsets
    }

    /// The ranges of an access in an object, sorted; `None` if it can be anywhere. `at` is the
    /// access: thread and micro-op.
    pub(super) fn ranges(&self, at: (usize, usize), object: LocId) -> Option<Vec<Range>> {
        if self.unknown.contains(&at) {
            return None;
        }
        let ranges = self.found.get(&at).and_then(|of| of.get(&object));
        let mut ranges: Vec<Range> = ranges.into_iter().flatten().copied().collect();
        ranges.sort_unstable();
        Some(ranges)
    }
}

/// The bytes of an object at which an access of a size can begin, considering only aligned places
/// inside the object. `ranges` are those of the access ([`Offsets::ranges`]).
pub(super) fn places(
    program: &Program,
    object: LocId,
    size: u32,
    ranges: Option<&[Range]>,
) -> Vec<i64> {
    let layout = program.layout(object);
    let (bytes, copied) = match &program.location(object).kind {
        program::LocationKind::Object { init, .. } => (
            layout.bytes(init.len()),
            program.copied(object) != program::CopyPer::Not,
        ),
        program::LocationKind::Alias { .. } => return Vec::new(),
    };
    let apart = copied.then(|| program::memory::stride(bytes));
    let bytes = bytes as i64;
    let mut all: Vec<i64> = match ranges {
        None => (0..bytes).step_by(size as usize).collect(),
        Some(ranges) => ranges
            .iter()
            .flat_map(|range| range.within(bytes, apart))
            .collect(),
    };
    all.retain(|n| n % i64::from(size) == 0 && n + i64::from(size) <= bytes);
    all.sort_unstable();
    all.dedup();
    all
}

/// The threads of each warp, by lane.
struct Warps {
    keys: Vec<Option<GroupKey>>,
    threads: HashMap<(GroupKey, u32), usize>,
}

impl Warps {
    fn of(program: &Program) -> Warps {
        let places: Vec<Place> = program.threads.iter().map(|t| t.place.clone()).collect();
        let keys: Vec<Option<GroupKey>> = places
            .iter()
            .map(|place| place.group_key(Scope::Warp))
            .collect();
        let seats = GroupSeat::all_among(&places, Scope::Warp);
        let threads = (0..).zip(keys.iter().zip(&seats));
        let threads = threads.filter_map(|(t, (key, seat))| Some((((*key)?, seat.rank), t)));
        Warps {
            threads: threads.collect(),
            keys,
        }
    }

    /// The thread in a lane of the warp of `thread`.
    fn mate(&self, thread: usize, lane: u8) -> Option<usize> {
        let key = self.keys[thread]?;
        self.threads.get(&(key, u32::from(lane))).copied()
    }
}

/// The run of one thread.
struct OffsetRun<'a> {
    program: &'a Program,
    thread: usize,
    shape: &'a CodeShape,
    warps: &'a Warps,
    /// What lanes give, as far as it is known.
    given: &'a GivenOffsets,
    /// The number of micro-ops that may still be run.
    steps: usize,
    offsets: &'a mut Offsets,
}

impl OffsetRun<'_> {
    /// Follows all paths with a number of states for each label; `None` if there are too many.
    fn all(&mut self, most: usize) -> Option<()> {
        let program = self.program;
        let thread = &program.threads[self.thread];
        let mut start = vec![None; self.shape.followed.count];
        for (id, reg) in (0..).map(RegId).zip(&thread.regs) {
            let Some(slot) = self.shape.followed.number(id) else {
                continue;
            };
            start[slot] = match &reg.init {
                Init::Int(n) => number(Range::one(*n)),
                Init::Unknown => None,
                Init::Address { loc, index } => Some(OffsetValue {
                    base: Some(program.object(*loc)),
                    at: Range::one(program.layout(*loc).offset(*index)),
                }),
            };
        }
        let mut open = vec![(0, start)];
        let mut seen: HashMap<usize, FxHashSet<Vec<KnownOffset>>> = HashMap::new();
        let mut wide: HashMap<usize, Vec<KnownOffset>> = HashMap::new();
        while let Some((mut at, mut regs)) = open.pop() {
            loop {
                at = self.shape.next[at];
                let Some(instr) = thread.code.get(at) else {
                    break;
                };
                self.steps = self.steps.checked_sub(1)?;
                if let Some(live) = &self.shape.labels[at] {
                    let own = live.iter().map(|slot| regs[*slot]).collect();
                    let states = seen.entry(at).or_default();
                    if states.len() < most {
                        if !states.insert(own) {
                            break;
                        }
                    } else {
                        let joined = match wide.get(&at) {
                            Some(before) => before
                                .iter()
                                .zip(&own)
                                .map(|(a, b)| widened(*a, *b))
                                .collect(),
                            None => own,
                        };
                        if wide.get(&at) == Some(&joined) {
                            break;
                        }
                        live.iter()
                            .zip(&joined)
                            .for_each(|(slot, joined)| regs[*slot] = *joined);
                        wide.insert(at, joined);
                    }
                }
                self.note(at, instr, &regs);
                match &instr.op {
                    Op::Branch { cond, target } => {
                        match self.value(cond, &regs).and_then(|v| v.at.is_one()) {
                            Some(0) => {}
                            Some(_) => {
                                at = *target;
                                continue;
                            }
                            None => open.push((*target, regs.clone())),
                        }
                    }
                    op => {
                        if let Some(slot) =
                            op.defines().and_then(|dst| self.shape.followed.number(dst))
                        {
                            regs[slot] = match op {
                                Op::Assign { value: e, .. } => self.value(e, &regs),
                                Op::Take { lane, .. } => self.taken(*lane, instr.id),
                                _ => None,
                            };
                        }
                    }
                }
                at += 1;
            }
        }
        Some(())
    }

    /// The value that a lane gives in an instruction.
    fn taken(&self, lane: u8, instr: InstrId) -> KnownOffset {
        let from = self.warps.mate(self.thread, lane)?;
        self.given.get(&(from, instr)).copied().flatten()
    }

    fn note(&mut self, at: usize, instr: &Instr, regs: &[KnownOffset]) {
        if let Op::Give {
            value,
            among: Scope::Warp,
            ..
        } = &instr.op
            && self.shape.exchanged.contains(&instr.id)
        {
            let value = self.value(value, regs);
            let given = self.offsets.given.entry((self.thread, instr.id));
            given
                .and_modify(|known| *known = either(*known, value))
                .or_insert(value);
        }
        let Some((addr, _)) = access_of(&instr.op) else {
            return;
        };
        match self.value(addr, regs) {
            Some(OffsetValue {
                base: Some(object),
                at: range,
            }) => {
                let of = self.offsets.found.entry((self.thread, at)).or_default();
                of.entry(object).or_default().insert(range);
            }
            // A constant that is not an address: the access faults.
            Some(OffsetValue {
                base: None,
                at: range,
            }) if range.is_one().is_some() => {}
            _ => {
                self.offsets.unknown.insert((self.thread, at));
            }
        }
    }

    fn value(&self, e: &Expr, regs: &[KnownOffset]) -> KnownOffset {
        let of = |e: &Expr| self.value(e, regs);
        match e {
            Expr::Const(n) => number(Range::one(*n)),
            Expr::Reg(r) => self.shape.followed.number(*r).and_then(|slot| regs[slot]),
            Expr::Address(loc) => Some(OffsetValue {
                base: Some(self.program.object(*loc)),
                at: Range::one(0),
            }),
            Expr::Bin(op, ty, a, b) => {
                // An unknown operand may be any number, but next to an address it counts as a
                // number.
                let (a, b) = (of(a), of(b));
                match (base_of(a), base_of(b)) {
                    (None, None) if a.is_none() && b.is_none() => None,
                    (None, None) => number(match (range_of(a).is_one(), range_of(b).is_one()) {
                        (Some(_), Some(0)) if op.divides() => Range::ANY,
                        (Some(a), Some(b)) if *op != BinOp::Unknown => {
                            Range::one(op.apply(*ty, a, b))
                        }
                        // An unknown operand may also be an address.
                        _ if (a.is_none() || b.is_none())
                            && matches!(op, BinOp::Add | BinOp::Sub) =>
                        {
                            return None;
                        }
                        _ => Range::apply(*op, *ty, range_of(a), range_of(b)),
                    }),
                    (Some(loc), None) if matches!(op, BinOp::Add | BinOp::Sub | BinOp::And) => {
                        let at = match op {
                            BinOp::Add => range_of(a).plus(range_of(b)),
                            BinOp::Sub => range_of(a).plus(range_of(b).times(-1)),
                            // Objects are aligned to their elements, so masking low bits stays in
                            // the object.
                            _ if range_of(b).is_one().is_some_and(|mask| mask < 0) => {
                                Range::apply(*op, *ty, range_of(a), range_of(b))
                            }
                            _ => return number(Range::apply(*op, *ty, range_of(a), range_of(b))),
                        };
                        Some(OffsetValue {
                            base: Some(loc),
                            at,
                        })
                    }
                    (None, Some(loc)) if *op == BinOp::Add => Some(OffsetValue {
                        base: Some(loc),
                        at: range_of(a).plus(range_of(b)),
                    }),
                    (Some(x), Some(y)) if *op == BinOp::Sub && x == y => {
                        number(range_of(a).plus(range_of(b).times(-1)))
                    }
                    _ => None,
                }
            }
            Expr::Fused(..) => number(Range::ANY),
            Expr::Cmp(op, ty, a, b) => number(match (of(a)?, of(b)?) {
                (OffsetValue { base: None, at: a }, OffsetValue { base: None, at: b }) => {
                    match (a.is_one(), b.is_one()) {
                        (Some(a), Some(b)) => Range::one(i64::from(op.holds(*ty, a, b))),
                        _ => Range::BIT,
                    }
                }
                _ => Range::BIT,
            }),
            Expr::Select(cond, a, b) => match of(cond).and_then(|v| v.at.is_one()) {
                Some(0) => of(b),
                Some(_) => of(a),
                None => either(of(a), of(b)),
            },
            Expr::Cast(ty, inner) => match of(inner)? {
                OffsetValue { base: None, at } => number(at.cast(*ty)),
                address => Some(address),
            },
        }
    }
}

fn base_of(v: KnownOffset) -> Option<LocId> {
    v.and_then(|v| v.base)
}

fn range_of(v: KnownOffset) -> Range {
    v.map_or(Range::ANY, |v| v.at)
}

/// A value that is one of two.
fn either(a: KnownOffset, b: KnownOffset) -> KnownOffset {
    let (a, b) = (a?, b?);
    (a.base == b.base).then(|| OffsetValue {
        at: a.at.or(b.at),
        ..a
    })
}

/// A register's value, widened for further iterations of a loop.
fn widened(a: KnownOffset, b: KnownOffset) -> KnownOffset {
    let (a, b) = (a?, b?);
    (a.base == b.base).then(|| OffsetValue {
        at: a.at.widened(b.at),
        ..a
    })
}
