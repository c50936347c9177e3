//! Explains which value a looping thread waits for, and which threads could still write it.
//!
//! The analysis walks through one more iteration with concrete numbers. It replaces one location's
//! value by each value that occurs in the loop's code or that another thread writes. The thread
//! waits for the values with which the walk leaves the loop.
//!
//! # Invariants
//! - This code decides no verdict; it explains the results of other code. If it cannot decide, it
//!   says less.
//! - Stores, fences and barriers on the way do not change later reads of the walk. Spurious
//!   failures do not happen.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{Expr, LocId, Op, Program, ThreadId};

/// A longer walk counts as lost.
const MAX_STEPS: usize = 4_000;

/// The state of a thread: its next instruction and its registers.
#[derive(Clone, Debug)]
pub struct LoopWalk {
    /// The next instruction.
    pub pc: usize,
    /// The registers by index.
    pub regs: Vec<i64>,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// The next instruction is outside the range.
    Left,
    /// The walk returned to the first instruction.
    Again,
    /// A read has no known value.
    Read,
    /// The walk got too long, or an address is unknown.
    Lost,
}

/// The values of a location that end a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitValues {
    /// One of these.
    These(Vec<i64>),
    /// All but this one.
    AllBut(i64),
}

/// One read of a loop, with the values that it waits for.
#[derive(Clone, Debug)]
pub struct Poll {
    /// The address that it reads.
    pub address: i64,
    /// The value that it reads now.
    pub seen: i64,
    /// The values that would end the loop if all other memory stays the same; `None`: no single
    /// value does.
    pub wanted: Option<ExitValues>,
    /// Instructions of other threads that may still execute and write such a value, or an unknown
    /// value.
    pub writers: Vec<(ThreadId, usize)>,
    /// Whether the list is complete; otherwise there are writes to unknown addresses.
    pub sure: bool,
}

impl Poll {
    /// Whether the value would end the loop.
    pub fn wants(&self, value: i64) -> bool {
        match &self.wanted {
            Some(ExitValues::These(values)) => values.contains(&value),
            Some(ExitValues::AllBut(other)) => value != *other,
            None => false,
        }
    }
}

impl ExitValues {
    /// As a condition on `place`: `x == 1 or 2`, `x != 0`.
    pub fn text(&self, place: &str, show: &dyn Fn(i64) -> String) -> String {
        match self {
            ExitValues::AllBut(other) => format!("{place} != {}", show(*other)),
            ExitValues::These(values) => {
                let values: Vec<String> = values.iter().map(|&v| show(v)).collect();
                format!("{place} == {}", values.join(" or "))
            }
        }
    }
}

/// A program in the middle of an execution.
pub struct PausedProgram<'a> {
    /// The program.
    pub program: &'a Program,
    /// The address of a location in the view of a thread.
    pub address: &'a dyn Fn(ThreadId, LocId) -> Option<i64>,
    /// Whether two addresses name the same memory.
    pub same: &'a dyn Fn(i64, i64) -> bool,
    /// By thread: the first instruction that it may still execute; `None`: the thread has ended.
    pub rest: Vec<Option<usize>>,
}

impl PausedProgram<'_> {
    fn eval(&self, t: ThreadId, e: &Expr, regs: Option<&[i64]>) -> Option<i64> {
        e.value(&|leaf| match leaf {
            Expr::Reg(r) => regs?.get(r.0 as usize).copied(),
            Expr::Address(loc) => (self.address)(t, *loc),
            _ => None,
        })
    }

    /// Continues a walk until it leaves the range or reaches its first instruction twice. `read`
    /// supplies the values of reads.
    pub fn walk(
        &self,
        t: ThreadId,
        walk: &mut LoopWalk,
        range: Option<&RangeInclusive<usize>>,
        read: &mut dyn FnMut(i64) -> Option<i64>,
    ) -> WalkEnd {
        let code = &self.program.thread(t).code;
        let mut rounds = 0;
        for step in 0..MAX_STEPS {
            if range.is_some_and(|r| !r.contains(&walk.pc)) || walk.pc == code.len() {
                return WalkEnd::Left;
            }
            rounds += u32::from(step > 0 && range.is_some_and(|r| walk.pc == *r.start()));
            if rounds == 2 {
                return WalkEnd::Again;
            }
            let at = |e: &Expr| self.eval(t, e, Some(&walk.regs));
            let mut next = walk.pc + 1;
            let set = match &code[walk.pc].op {
                op if op.read().is_some() => {
                    let Some(address) = op.address().and_then(at) else {
                        return WalkEnd::Lost;
                    };
                    let Some(value) = read(address) else {
                        return WalkEnd::Read;
                    };
                    op.defines()
                        .zip(op.read())
                        .map(|(dst, access)| (dst, access.ty.wrap(value)))
                }
                // Values from other threads are not tracked.
                Op::Take { .. } => return WalkEnd::Lost,
                Op::Choice { dst, .. } => Some((*dst, 0)),
                Op::Assign { dst, value } => {
                    let Some(value) = at(value) else {
                        return WalkEnd::Lost;
                    };
                    Some((*dst, value))
                }
                Op::Branch { cond, target } => {
                    let Some(cond) = at(cond) else {
                        return WalkEnd::Lost;
                    };
                    if cond != 0 {
                        next = *target;
                    }
                    None
                }
                // Other events complete eventually.
                Op::Status { dst, of } => {
                    let host = self.program.host.as_deref();
                    let never = host.and_then(|host| host.query(*of).never);
                    Some((*dst, never.map_or(0, |never| never.stays)))
                }
                _ => None,
            };
            if let Some((dst, value)) = set {
                walk.regs[dst.0 as usize] = value;
            }
            walk.pc = next;
        }
        WalkEnd::Lost
    }

    /// The reads in a loop of a thread that is in it, each with the values that it waits for.
    /// `seen` is the current memory.
    pub fn polls(
        &self,
        t: ThreadId,
        walk: &LoopWalk,
        range: &RangeInclusive<usize>,
        seen: &dyn Fn(i64) -> Option<i64>,
    ) -> Vec<Poll> {
        let mut reads: Vec<(i64, i64)> = Vec::new();
        self.walk(t, &mut walk.clone(), Some(range), &mut |address| {
            let value = seen(address)?;
            if reads.iter().all(|r| r.0 != address) {
                reads.push((address, value));
            }
            Some(value)
        });
        reads
            .iter()
            .map(|&(address, value)| self.poll(t, walk, range, &reads, address, value))
            .collect()
    }

    fn poll(
        &self,
        t: ThreadId,
        walk: &LoopWalk,
        range: &RangeInclusive<usize>,
        reads: &[(i64, i64)],
        address: i64,
        seen: i64,
    ) -> Poll {
        let leaves = |value: i64| {
            self.walk(t, &mut walk.clone(), Some(range), &mut |a| {
                let told = reads.iter().find(|r| r.0 == a).map(|r| r.1);
                if (self.same)(a, address) {
                    Some(value)
                } else {
                    told
                }
            }) == WalkEnd::Left
        };
        let (writes, sure) = self.writes(t, address);
        let mut values: BTreeSet<i64> = writes.iter().filter_map(|w| w.2).collect();
        for instr in &self.program.thread(t).code[range.clone()] {
            instr
                .op
                .operands()
                .iter()
                .for_each(|e| constants(e, &mut values));
        }
        values.extend(
            values
                .clone()
                .into_iter()
                .filter(|&v| v > 0)
                .flat_map(|v| [v - 1, v.saturating_add(1)]),
        );
        values.extend([seen, seen.saturating_add(1)]);
        let (good, bad): (Vec<i64>, Vec<i64>) = values.into_iter().partition(|&v| leaves(v));
        let wanted = match (good.as_slice(), bad.as_slice()) {
            ([], _) => None,
            // The thread continues, but through instructions outside this loop.
            (good, _) if good.contains(&seen) => None,
            ([_, _, ..], [only]) => Some(ExitValues::AllBut(*only)),
            _ => Some(ExitValues::These(good.clone())),
        };
        let helps =
            |value: Option<i64>| wanted.is_none() || value.is_none_or(|v| good.contains(&v));
        let writers = writes
            .into_iter()
            .filter(|w| helps(w.2))
            .map(|w| (w.0, w.1))
            .collect();
        Poll {
            address,
            seen,
            wanted,
            writers,
            sure,
        }
    }

    /// The writes of other threads to an address that may still execute, each with its value if
    /// known; and whether the list is complete.
    fn writes(&self, t: ThreadId, address: i64) -> (Vec<(ThreadId, usize, Option<i64>)>, bool) {
        let (mut found, mut sure) = (Vec::new(), true);
        for u in self.program.thread_ids().filter(|&u| u != t) {
            let Some(from) = self.rest[u.0 as usize] else {
                continue;
            };
            for pc in self.reachable(u, from) {
                let op = &self.program.thread(u).code[pc].op;
                let (Some(addr), Some(access)) = (op.address(), op.write()) else {
                    continue;
                };
                let value = op
                    .written()
                    .and_then(|e| self.eval(u, e, None))
                    .map(|v| access.ty.wrap(v));
                match self.eval(u, addr, None) {
                    Some(a) if (self.same)(a, address) => found.push((u, pc, value)),
                    Some(_) => {}
                    None => sure = false,
                }
            }
        }
        (found, sure)
    }

    /// Whether some thread may still write to an address.
    pub fn may_write(&self, address: i64) -> bool {
        self.program.thread_ids().any(|u| {
            let Some(from) = self.rest[u.0 as usize] else {
                return false;
            };
            self.reachable(u, from).into_iter().any(|pc| {
                let op = &self.program.thread(u).code[pc].op;
                let at = op
                    .write()
                    .and(op.address())
                    .map(|addr| self.eval(u, addr, None));
                at.is_some_and(|at| at.is_none_or(|a| (self.same)(a, address)))
            })
        })
    }

    /// The instructions that a thread can reach from one of them, including that one, in order.
    fn reachable(&self, t: ThreadId, from: usize) -> BTreeSet<usize> {
        let code = &self.program.thread(t).code;
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(pc) = todo.pop() {
            if pc >= code.len() || !seen.insert(pc) {
                continue;
            }
            let op = &code[pc].op;
            todo.extend(
                op.target()
                    .into_iter()
                    .chain(op.falls_through().then_some(pc + 1)),
            );
        }
        seen
    }
}

/// The loop that begins at an instruction: up to the last jump back to it.
pub fn loop_at(program: &Program, t: ThreadId, header: usize) -> Option<RangeInclusive<usize>> {
    let code = &program.thread(t).code;
    let end = (header..code.len())
        .rev()
        .find(|&pc| code[pc].op.target() == Some(header))?;
    Some(header..=end)
}

/// The numbers in an expression.
fn constants(e: &Expr, into: &mut BTreeSet<i64>) {
    e.visit(&mut |e| {
        if let Expr::Const(v) = e {
            into.insert(*v);
        }
    });
}
