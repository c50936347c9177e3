//! Finds memory that no thread writes: unrolling knows the values of its reads.
//!
//! The inputs of a kernel decide which threads act, and at which addresses. If a read of them could
//! return any value, guards and addresses would stay open unnecessarily.
//!
//! # Why nothing is lost
//! - A read of such memory can only read from the initial write. This holds in every execution and
//!   under every model, because `rf` relates accesses to one location. So it returns that value. A
//!   value without alternatives carries no dependency ([`super::unrolling::deps`]); syntactic
//!   dependencies are recorded as before.
//! - The read remains an event: it may race, it is ordered, and it is shown.
//! - All writing instructions decide which objects are written, whatever their conditions and
//!   whatever is read. So no value out of thin air adds another object. Only addresses outside
//!   their object remain: [`Domains::hit_fixed`] checks them once all addresses are known,
//!   and the program is then unrolled without this optimization.
//!
//! [`Domains::hit_fixed`]: super::domain::Domains::hit_fixed

use program::memory::Memory;
use program::points::Points;
use program::{LocId, Op, Program, ThreadId, Ty};

/// Objects that no thread writes.
#[derive(Clone, Debug, Default)]
pub struct UnwrittenObjects(Vec<bool>);

impl UnwrittenObjects {
    /// The objects of a program that no thread writes; none in a host program, because the runtime
    /// writes memory, too.
    pub(super) fn of(program: &Program) -> UnwrittenObjects {
        if program.host.is_some() {
            return UnwrittenObjects::default();
        }
        let points = Points::compute(program);
        let mut fixed = vec![true; program.locations.len()];
        for (t, instr) in program
            .threads
            .iter()
            .enumerate()
            .flat_map(|(t, thread)| thread.code.iter().map(move |i| (t, i)))
        {
            let (gives, addr) = match &instr.op {
                // The lane that takes the address may write there.
                Op::Give { value, .. } => (true, Some(value)),
                // A number of tensor memory is no address.
                Op::Mark { mark, .. } if mark.tensor.is_some() => continue,
                // The model interprets the address of a mark.
                op => (
                    false,
                    op.address()
                        .filter(|_| op.write().is_some() || matches!(op, Op::Mark { .. })),
                ),
            };
            let Some(addr) = addr else { continue };
            let objects = points.of(t, addr);
            if objects.is_empty() && !gives {
                return UnwrittenObjects::default();
            }
            objects
                .into_iter()
                .for_each(|object| fixed[usize::from(object.0)] = false);
        }
        UnwrittenObjects(fixed)
    }

    /// Whether no thread writes this object.
    pub(super) fn has(&self, program: &Program, loc: LocId) -> bool {
        self.0
            .get(usize::from(program.object(loc).0))
            .is_some_and(|fixed| *fixed)
    }

    /// The value that a read returns, if no thread writes its memory.
    pub(super) fn value(
        &self,
        program: &Program,
        memory: &Memory,
        thread: ThreadId,
        address: i64,
        ty: Ty,
    ) -> Option<i64> {
        let cell = memory.cell(memory.accessed(program, thread, address, ty.bytes(), false)?);
        let first = memory.cell(cell.memory);
        (!first.unknown && self.has(program, cell.location.0)).then(|| ty.wrap(first.init))
    }
}
