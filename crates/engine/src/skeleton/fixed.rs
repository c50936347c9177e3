//! Memory that nobody writes: what is read there is known while the program is unrolled.
//!
//! The inputs of a kernel decide which threads do something, and at which addresses. Where they are
//! taken for what a read may return, guards and addresses stay open that are not.
//!
//! # Why nothing is lost
//! - The only write that a read of such memory can take its value from is the initial one, in every
//!   execution and under every model: `rf` relates accesses to one location. So the value is that
//!   one, and a value that can be no other one carries no dependency ([`super::deps`]); syntactic
//!   dependencies are noted as before.
//! - The read stays an event: it may race, it is ordered, and it is shown.
//! - Which objects are written follows from all instructions that write, whatever decides whether
//!   they execute and whatever is read, so that no value out of thin air brings another one about.
//!   What is left are addresses that lead out of their object: [`Fixed::is_hit`] asks for them once
//!   all addresses are known, and the program is unrolled without this.

use super::Skeleton;
use super::domain::Domains;
use program::memory::{CellId, Memory};
use program::points::Points;
use program::{LocId, Op, Program, ThreadId, Ty};

/// Objects that nobody writes.
#[derive(Clone, Debug, Default)]
pub struct Fixed(Vec<bool>);

impl Fixed {
    /// Those of a program. In a host program the runtime writes memory, too.
    pub(super) fn of(program: &Program) -> Fixed {
        if program.host.is_some() {
            return Fixed::default();
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
                // Whoever takes it may write there.
                Op::Give { value, .. } => (true, Some(value)),
                // What a mark says of its address is for the model to tell.
                op => (
                    false,
                    op.address()
                        .filter(|_| op.write().is_some() || matches!(op, Op::Mark { .. })),
                ),
            };
            let Some(addr) = addr else { continue };
            let objects = points.of(t, addr);
            if objects.is_empty() && !gives {
                return Fixed::default();
            }
            objects
                .into_iter()
                .for_each(|object| fixed[usize::from(object.0)] = false);
        }
        Fixed(fixed)
    }

    fn has(&self, program: &Program, loc: LocId) -> bool {
        self.0
            .get(usize::from(program.object(loc).0))
            .is_some_and(|fixed| *fixed)
    }

    /// What a read returns, if nobody writes what it is to.
    pub(super) fn value(
        &self,
        program: &Program,
        memory: &Memory,
        thread: ThreadId,
        (address, ty): (i64, Ty),
    ) -> Option<i64> {
        let cell = memory.cell(memory.accessed(program, thread, address, ty.bytes(), false)?);
        let first = memory.cell(cell.memory);
        (!first.unknown && self.has(program, cell.location.0)).then(|| ty.wrap(first.init))
    }

    /// Whether a write may be to such memory after all.
    pub(crate) fn is_hit(&self, sk: &Skeleton, domains: &Domains) -> bool {
        let hits = |c: &CellId| self.has(&sk.program, sk.memory.cell(*c).location.0);
        let writes =
            (0..sk.len()).filter(|&i| sk.events[i].thread.is_some() && sk.events[i].is_write());
        writes
            .into_iter()
            .any(|w| domains.cells[w].iter().any(hits))
    }
}
