//! Recognizes a thread's operations on barriers of CUDA C++: `init`, arrivals, and loops that wait.
//!
//! A barrier is a word, as an mbarrier object is. Here a wait is a plain loop of loads, mostly for
//! the phase of a token: the phase in which an arrival of the thread fell.
//!
//! # Invariants
//! - An operation that is not recognized is [`ObjectRole::Other`]: its barrier orders nothing.
//! - Only barriers in shared memory order accesses, so no thread of another block arrives.
//!
//! # Sources
//! - ISO C++, thread.barrier.class; libcu++, *cuda::barrier*.

use program::mbarrier::{self, Awaited, arrivals, awaited};
use program::tags::Tag;
use program::{Access, Expr, Op, Scope, Update};

use crate::exec::{Exec, State};
use crate::objects::count_made;
use crate::operations::{ObjectOp, ObjectRole, PhaseTest, is_misuse};

impl Exec<'_> {
    /// Notes an operation on an object of the library, behind its access.
    pub(crate) fn of_barrier(&mut self, at: usize, state: &State) {
        let code = self.code;
        let op = &code[at].op;
        let (Some(addr), true) = (op.address(), op.has(Tag::Object)) else {
            return;
        };
        let role = match op {
            Op::Load { .. } => return self.tests_phase(at, state),
            Op::Store { value, access, .. } => self.begun(at, state, value, access),
            Op::Rmw {
                update: Update::When { new, .. },
                ..
            } => self.arrival(at, state, new),
            _ => ObjectRole::Other,
        };
        let synchronizes = op.write().is_some_and(|write| write.tags.has(Tag::Release));
        let mut ops = self.barrier_ops(at, state, addr, role, synchronizes);
        if let Op::Rmw { dst: Some(dst), .. } = op {
            let token = mbarrier::token(Expr::Reg(*dst), addr.clone());
            let token = self.eval(at, &token, state);
            ops.iter_mut().for_each(|op| op.token = Some(token));
        }
        if self.recording {
            self.found.objects.extend(ops);
        }
    }

    /// The effect of a plain write: it begins the life of a barrier, or ends one.
    fn begun(&mut self, at: usize, state: &State, value: &Expr, access: &Access) -> ObjectRole {
        if !access.tags.has(Tag::Begins) {
            return ObjectRole::Other;
        }
        if let Expr::Const(word) = value
            && mbarrier::phase_of(*word) == 0
        {
            return ObjectRole::Init(self.terms.int(mbarrier::count_of(*word)));
        }
        let count = count_made(value).map(|count| self.eval(at, count, state));
        count.map_or(ObjectRole::Other, ObjectRole::Init)
    }

    fn arrival(&mut self, at: usize, state: &State, new: &Expr) -> ObjectRole {
        let count = arrivals(new).map(|count| self.eval(at, count, state));
        match count.and_then(|count| self.terms.constant(count)) {
            Some(1) => ObjectRole::Arrive,
            _ => ObjectRole::Other,
        }
    }

    /// Notes a load if the next instruction compares its value with a phase.
    fn tests_phase(&mut self, at: usize, state: &State) {
        let code = self.code;
        let (Op::Load { dst, addr, access }, Some(next)) = (&code[at].op, code.get(at + 1)) else {
            return;
        };
        let Op::Assign { value, .. } = &next.op else {
            return;
        };
        let Some(awaited) = awaited(value, &Expr::Reg(*dst)) else {
            return;
        };
        let role = match awaited {
            Awaited::Token(token) => ObjectRole::WaitFor(self.eval(at, token, state)),
            Awaited::Parity(parity) => ObjectRole::Wait(self.eval(at, parity, state)),
        };
        let passes = self.eval(at, value, state);
        let passes = self.terms.truth(passes);
        let acquires = access.tags.has(Tag::Acquire);
        let ops = self.barrier_ops(at, state, addr, role, acquires);
        self.phase_test = Some(PhaseTest { passes, ops });
    }

    /// The operation on each of the barriers that its address may be of.
    fn barrier_ops(
        &mut self,
        at: usize,
        state: &State,
        addr: &Expr,
        role: ObjectRole,
        synchronizes: bool,
    ) -> Vec<ObjectOp> {
        let mut accesses = self.code[at].op.accesses();
        // A wider scope may need a kind of memory that is atomic that far.
        let of_block = accesses.all(|access| {
            let scopes = Scope::Cta..=Scope::Gpu;
            let scope = access.scope;
            access.tags.has(Tag::Begins) || scope.is_some_and(|scope| scopes.contains(&scope))
        });
        let mut ops = self.object_ops(at, state, addr, role, synchronizes && of_block);
        for op in &mut ops {
            if !of_block || !self.program.is_shared(op.object) {
                op.role = ObjectRole::Other;
            }
        }
        ops
    }

    /// Whether a branch skips the end of a thread that breaks a precondition of an operation on a
    /// barrier.
    pub(crate) fn is_barriers_precondition(&self, at: usize) -> bool {
        let op = |back: usize| at.checked_sub(back).map(|at| &self.code[at].op);
        let is_test = || match (op(2), op(1)) {
            (Some(load @ Op::Load { dst, .. }), Some(Op::Assign { value, .. })) => {
                load.has(Tag::Object) && awaited(value, &Expr::Reg(*dst)).is_some()
            }
            _ => false,
        };
        let ends = self.code.get(at + 1).is_some_and(|i| is_misuse(&i.op));
        ends && (op(1).is_some_and(is_arrival) || is_test())
    }
}

/// Whether a micro-op is an arrival at a barrier that expects as many arrivals afterwards.
pub(crate) fn is_arrival(op: &Op) -> bool {
    match op {
        Op::Rmw {
            update: Update::When { new, .. },
            ..
        } => op.has(Tag::Object) && arrivals(new).is_some(),
        _ => false,
    }
}
