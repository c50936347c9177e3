//! How far the accesses of a program reach into each of its objects, where numbers decide that.
//!
//! Who launches a kernel without saying how long its buffers are gets buffers of this length. No
//! answer rests on it: an engine finds an access outside of an object by itself.
//!
//! # Invariants
//! - Both ways of a branch are gone whose condition depends on memory; what is read is not known.
//! - A walk through a thread ends after so many steps, whatever its loops do.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::points::Points;
use crate::{Expr, Init, Instr, LocId, LocationKind, Op, Program, ThreadId};

/// At most so many micro-ops are gone through, in one thread and in all.
const STEPS: usize = 20_000;
const ALL_STEPS: usize = 500_000;
/// A branch whose condition is not known is come to at most so often in one thread.
const FORKS: usize = 64;
/// What lies farther behind the beginning of an object is before the next one.
const FARTHEST: u64 = u32::MAX as u64;
/// Objects lie so far apart that no index leads from one to the other.
const APART: u32 = 40;
/// Addresses of shared memory fit 32 bits (PTX ISA, Generic Addressing), and no object there has a
/// megabyte.
const SHARED_APART: u32 = 20;
/// So many objects have addresses of 31 bits.
const MOST_SHARED: usize = (1 << (31 - SHARED_APART)) - 1;

/// How far accesses reach.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// By object: the end of the last access, in bytes from its beginning.
    pub bytes: BTreeMap<LocId, u64>,
    /// Objects that are accessed at places that memory decides.
    pub open: BTreeSet<LocId>,
}

/// The extents of a program's accesses.
pub fn extents(program: &Program) -> Extents {
    let points = Points::compute(program);
    let mut found = Extents::default();
    let mut left = ALL_STEPS;
    let shared: Vec<LocId> = (0..program.locations.len() as u16)
        .map(LocId)
        .filter(|loc| program.is_shared(*loc))
        .take(MOST_SHARED)
        .collect();
    for thread in program.thread_ids() {
        let mut walk = Walk {
            program,
            points: &points,
            shared: &shared,
            thread,
            steps: STEPS.min(left),
            forks: HashMap::new(),
            seen: HashSet::new(),
            found: &mut found,
        };
        walk.go();
        left = left.saturating_sub(STEPS - walk.steps.min(STEPS));
    }
    found
}

/// What registers hold, where that is known.
type Registers = Vec<Option<i64>>;

struct Walk<'p> {
    program: &'p Program,
    points: &'p Points,
    /// The objects whose addresses fit 32 bits.
    shared: &'p [LocId],
    thread: ThreadId,
    steps: usize,
    forks: HashMap<usize, usize>,
    seen: HashSet<(usize, Registers)>,
    found: &'p mut Extents,
}

impl Walk<'_> {
    fn base(&self, loc: LocId) -> i64 {
        match self.shared.binary_search(&loc) {
            Ok(number) => (number as i64 + 1) << SHARED_APART,
            Err(_) => (i64::from(loc.0) + 1) << APART,
        }
    }

    /// The object at an address.
    fn object_at(&self, address: i64) -> Option<LocId> {
        match address >> APART {
            0 => {
                let number = usize::try_from((address >> SHARED_APART) - 1).ok()?;
                self.shared.get(number).copied()
            }
            number => u16::try_from(number - 1).ok().map(LocId),
        }
    }

    fn go(&mut self) {
        let program = self.program;
        let thread = program.thread(self.thread);
        let registers = thread
            .regs
            .iter()
            .map(|reg| match &reg.init {
                Init::Int(value) => Some(*value),
                Init::Address { loc, index } => {
                    let offset = program.layout(program.object(*loc)).offset(*index);
                    Some(self.base(program.object(*loc)) + offset)
                }
                Init::Unknown => None,
            })
            .collect();
        let mut open: Vec<(usize, Registers)> = vec![(0, registers)];
        while let Some((mut at, mut held)) = open.pop() {
            while let Some(instr) = thread.code.get(at) {
                if self.steps == 0 {
                    return;
                }
                self.steps -= 1;
                self.access(instr, &held);
                at += 1;
                match &instr.op {
                    Op::Branch { cond, target } => match self.value(cond, &held) {
                        Some(0) => {}
                        Some(_) => at = *target,
                        None => {
                            let times = self.forks.entry(at).or_default();
                            *times += 1;
                            if *times > FORKS || !self.seen.insert((at, held.clone())) {
                                break;
                            }
                            open.push((*target, held.clone()));
                        }
                    },
                    Op::Assign { dst, value } => {
                        held[usize::from(dst.0)] = self.value(value, &held);
                    }
                    op => {
                        if let Some(dst) = op.defines() {
                            held[usize::from(dst.0)] = None;
                        }
                    }
                }
            }
        }
    }

    fn value(&self, e: &Expr, held: &Registers) -> Option<i64> {
        e.value(&|leaf| match leaf {
            Expr::Reg(reg) => held.get(usize::from(reg.0)).copied().flatten(),
            Expr::Address(loc) => Some(self.base(self.program.object(*loc))),
            _ => None,
        })
    }

    fn access(&mut self, instr: &Instr, held: &Registers) {
        let op = &instr.op;
        let Some(addr) = op.address() else { return };
        let Some(access) = op.accesses().next() else {
            return;
        };
        let Some(address) = self.value(addr, held) else {
            let all = self.points.of(usize::from(self.thread.0), addr);
            self.found.open.extend(all);
            return;
        };
        let known = self
            .object_at(address)
            .filter(|loc| usize::from(loc.0) < self.program.locations.len());
        let Some(loc) = known else { return };
        if let LocationKind::Object { .. } = self.program.location(loc).kind {
            let offset = (address - self.base(loc)) as u64;
            if offset > FARTHEST {
                return;
            }
            let end = self.found.bytes.entry(loc).or_default();
            let of_tile = instr.tile.as_ref().map(|tile| tile.end() as u64);
            let bytes = of_tile.unwrap_or(u64::from(access.ty.bytes()));
            *end = (*end).max(offset + bytes);
        }
    }
}
