//! Runs a thread's operations on mbarrier objects: arrivals, and loops that wait for a phase.
//!
//! # Invariants
//! - A loop that does nothing but to test a phase until it is complete is one operation: it waits.
//! - An operation that is not recognized is [`ObjectRole::Other`]: its object orders nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use program::mbarrier::arrivals;
use program::tags::Tag;
use program::{Access, BinOp, CmpOp, Expr, Instr, Op, RegId, Scope, Update};

use crate::exec::{Exec, MemoryEffect, State};
use crate::operations::{ObjectOp, ObjectRole, PhaseTest, is_misuse, is_of_object};
use crate::solver::{Said, SolverConstants, ask};
use crate::words;

/// The time for the question whether a loop ends only behind a complete phase.
const QUESTION: Duration = Duration::from_secs(1);

impl Exec<'_> {
    /// Whether a branch skips the end of a thread that breaks a precondition of an operation on
    /// an mbarrier object.
    pub(crate) fn is_precondition(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| &self.code[before].op);
        let behind = self.code.get(at + 1).map(|instr| &instr.op);
        let is_of_object = before.is_some_and(is_of_object) && behind.is_some_and(is_misuse);
        is_of_object || self.is_barriers_precondition(at)
    }

    /// Runs an operation on an mbarrier object.
    pub(crate) fn of_object(&mut self, at: usize, state: &mut State) {
        let code = self.code;
        let Op::Rmw {
            dst,
            addr,
            update,
            write,
            ..
        } = &code[at].op
        else {
            return;
        };
        // All operations on an object are atomic, whatever their scopes.
        let scope = write
            .scope
            .map_or(Scope::Cta, |scope| scope.max(Scope::Cta));
        let whole = Access {
            scope: Some(scope),
            ..write.clone()
        };
        let old = self.access(at, state, addr, MemoryEffect::Updates, &whole);
        if let Some(dst) = dst {
            state.regs[usize::from(dst.0)] = old;
        }
        let Update::When { cond, new } = update else {
            return;
        };
        let role = self.role(at, state, write, cond, new);
        let order = match role {
            ObjectRole::Wait(_) => Tag::Acquire,
            _ => Tag::Release,
        };
        let synchronizes = write.tags.has(order);
        let ops = self.object_ops(at, state, addr, role, synchronizes);
        if write.tags.has(Tag::MbarrierWait) {
            let passes = self.eval(at, cond, state);
            let passes = self.terms.truth(passes);
            self.phase_test = Some(PhaseTest { passes, ops });
        } else if self.recording {
            self.found.objects.extend(ops);
        }
    }

    fn role(
        &mut self,
        at: usize,
        state: &State,
        write: &Access,
        cond: &Expr,
        new: &Expr,
    ) -> ObjectRole {
        let tags = &write.tags;
        if tags.has(Tag::MbarrierWait) {
            let parity = parity_awaited(cond).map(|parity| self.eval(at, parity, state));
            return parity.map_or(ObjectRole::Other, ObjectRole::Wait);
        }
        if tags.has(Tag::MbarrierInit) {
            let count = count_made(new).map(|count| self.eval(at, count, state));
            return count.map_or(ObjectRole::Other, ObjectRole::Init);
        }
        let count = arrivals(new).map(|count| self.eval(at, count, state));
        let count = count.and_then(|count| self.terms.constant(count));
        match tags.has(Tag::MbarrierArrive) && count == Some(1) {
            true => ObjectRole::Arrive,
            false => ObjectRole::Other,
        }
    }

    /// The operation on each of the objects that its address may be of.
    pub(crate) fn object_ops(
        &mut self,
        at: usize,
        state: &State,
        addr: &Expr,
        role: ObjectRole,
        synchronizes: bool,
    ) -> Vec<ObjectOp> {
        let address = self.eval(at, addr, state);
        let head = self.heads.last().copied();
        let head = head.unwrap_or_else(|| self.terms.int(1));
        let places = self.places(address).unwrap_or_default();
        let is_one = places.len() == 1;
        let mut ops = Vec::new();
        for place in places {
            ops.push(ObjectOp {
                guard: self.terms.and(vec![state.guard, place.guard]),
                head,
                facts: [&state.facts[..], &state.within].concat(),
                object: place.object,
                offset: place.offset,
                role: if is_one { role } else { ObjectRole::Other },
                synchronizes,
                iterations: self.outer.clone(),
                at: self.origin[at],
                order: at,
                token: None,
            });
        }
        ops
    }

    /// Runs a loop that only waits for a phase; whether it is such a loop. The thread leaves the
    /// loop with what its last test found.
    pub(crate) fn waits(
        &mut self,
        header: usize,
        end: usize,
        entry: &State,
        pending: &mut BTreeMap<usize, State>,
    ) -> bool {
        if !tests_alone(&self.code[header..=end], header) {
            return false;
        }
        let recording = std::mem::replace(&mut self.recording, false);
        let ended = self.one_test(header, end, entry);
        self.recording = recording;
        if !ended.is_some_and(|(_, state, test)| self.passes(entry, &state, &test)) {
            return false;
        }
        let Some((target, state, test)) = self.one_test(header, end, entry) else {
            return false;
        };
        if self.recording {
            self.found.objects.extend(test.ops);
        }
        let guard = entry.guard;
        self.leave_for(pending, target, State { guard, ..state });
        true
    }

    /// Where a thread leaves such a loop behind its first test.
    fn one_test(
        &mut self,
        header: usize,
        end: usize,
        entry: &State,
    ) -> Option<(usize, State, PhaseTest)> {
        let mut inside = BTreeMap::from([(header, entry.clone())]);
        self.phase_test = None;
        self.range(header..end + 1, &mut inside, Some(header))?;
        let test = self.phase_test.take()?;
        let (target, state) = inside.pop_first()?;
        inside.is_empty().then_some((target, state, test))
    }

    /// Whether a thread leaves the loop only where the phase is complete.
    fn passes(&mut self, entry: &State, state: &State, test: &PhaseTest) -> bool {
        let not = self.terms.not(test.passes);
        let text = words::question(self.terms, &[entry.guard, state.guard, not]);
        ask(&text, QUESTION, SolverConstants::Nothing) == Said::No
    }
}

/// Whether code tests the phase of one object, and carries nothing from one iteration to the next.
fn tests_alone(code: &[Instr], header: usize) -> bool {
    fn is_test(op: &Op) -> bool {
        match op {
            Op::Rmw { write, .. } => is_of_object(op) && write.tags.has(Tag::MbarrierWait),
            Op::Load { access, .. } => access.tags.has(Tag::Object),
            _ => false,
        }
    }
    fn is_plain(op: &Op) -> bool {
        matches!(op, Op::Assign { .. } | Op::Branch { .. }) || is_misuse(op)
    }
    if code.iter().filter(|i| is_test(&i.op)).count() != 1
        || !code.iter().all(|i| is_test(&i.op) || is_plain(&i.op))
    {
        return false;
    }
    // A branch that goes over an assignment would leave a value of an earlier iteration.
    let goes_over = |(at, instr): (usize, &Instr)| {
        let target = instr.op.target().unwrap_or(0).saturating_sub(header);
        let over = code.get(at + 1..target.min(code.len())).unwrap_or_default();
        target < code.len() && over.iter().any(|i| i.op.defines().is_some())
    };
    if code.iter().enumerate().any(goes_over) {
        return false;
    }
    let assigned: Vec<RegId> = code.iter().filter_map(|i| i.op.defines()).collect();
    let mut known: Vec<RegId> = Vec::new();
    for instr in code {
        // An operation may read the value that it has just read from memory.
        let own = instr.op.defines();
        let mut is_known = true;
        for e in instr.op.operands().as_slice() {
            e.registers(&mut |r| {
                let is_own = is_test(&instr.op) && own == Some(r);
                is_known &= is_own || known.contains(&r) || !assigned.contains(&r);
            });
        }
        if !is_known {
            return false;
        }
        known.extend(own);
    }
    true
}

/// The count of an object that an operation makes; `None`: the operation makes no object. `new` is
/// the word after it.
pub(crate) fn count_made(new: &Expr) -> Option<&Expr> {
    let (_, fields) = sum(new)?;
    let (fields, _) = sum(fields)?;
    match fields {
        Expr::Bin(BinOp::Mul, _, count, _) => match &**count {
            Expr::Bin(BinOp::And, _, count, _) => Some(count),
            _ => None,
        },
        _ => None,
    }
}

/// The parity of the phase that a wait needs to be complete; `None`: the wait has a token. `passes`
/// is the condition under which it passes.
fn parity_awaited(passes: &Expr) -> Option<&Expr> {
    let Expr::Bin(BinOp::And, _, complete, _) = passes else {
        return None;
    };
    let Expr::Bin(BinOp::And, _, _, passed) = &**complete else {
        return None;
    };
    match &**passed {
        Expr::Cmp(CmpOp::Ne, _, _, parity) => Some(parity),
        _ => None,
    }
}

/// The two summands of a sum.
fn sum(e: &Expr) -> Option<(&Expr, &Expr)> {
    match e {
        Expr::Bin(BinOp::Add, _, a, b) => Some((a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::mbarrier as object;

    #[test]
    fn operations_are_recognized() {
        let word = || Expr::Reg(RegId(0));
        let is = |found: Option<&Expr>, n: i64| matches!(found, Some(Expr::Const(v)) if *v == n);
        assert!(is(count_made(&object::init(word(), Expr::Const(6))), 6));
        assert!(is(
            arrivals(&object::settled(object::arrive(word(), Expr::Const(2)))),
            2
        ));
        let with_bytes = object::settled(object::arrive(
            object::expect(word(), Expr::Const(16), 1),
            Expr::Const(1),
        ));
        assert!(is(arrivals(&with_bytes), 1));
        let passes = object::both(
            object::both(
                object::live(word()),
                object::has_passed_parity(word(), Expr::Const(1)),
            ),
            object::live(word()),
        );
        assert!(is(parity_awaited(&passes), 1));
        let leaves = object::settled(object::arrive(
            object::drop(word(), Expr::Const(1)),
            Expr::Const(1),
        ));
        let bytes = object::settled(object::expect(word(), Expr::Const(16), 1));
        let token = object::both(
            object::both(
                object::live(word()),
                object::has_passed(word(), Expr::Const(1)),
            ),
            object::live(word()),
        );
        for new in [&leaves, &bytes, &object::inval(word())] {
            assert!(arrivals(new).is_none() && count_made(new).is_none());
        }
        assert!(count_made(&object::settled(object::arrive(word(), Expr::Const(1)))).is_none());
        assert!(arrivals(&object::init(word(), Expr::Const(6))).is_none());
        assert!(parity_awaited(&token).is_none());
    }
}
