//! Finds the cells of large memory that a program can access or observe.
//!
//! A cell outside them has one write, the initial one, and no read: it is in no relation that an
//! axiom looks at, so the skeleton leaves it out.
//!
//! # Invariants
//! - Small memory has all its cells.
//! - An access at an address that is no number can go to each cell.

use program::litmus::LitmusTest;
use program::memory::{CellId, Memory};
use rustc_hash::FxHashSet;

use super::event::Event;
use super::unrolling::unrolled::Unrolling;

/// Memory up to this number of cells is not looked at.
const SMALL: usize = 256;

/// The cells of which an access of `size` bytes covers a part.
fn covered(memory: &Memory, address: i64, size: u32) -> impl Iterator<Item = CellId> {
    let end = address.saturating_add(i64::from(size));
    let from = memory
        .cells
        .partition_point(|cell| cell.address.saturating_add(i64::from(cell.ty.bytes())) <= address);
    let cells = memory.cells[from..].iter();
    cells
        .take_while(move |cell| cell.address < end)
        .map(|cell| cell.memory)
}

/// The cells that have initial writes.
#[derive(Clone, Debug)]
pub(super) enum TouchedCells {
    All,
    These(FxHashSet<CellId>),
}

impl TouchedCells {
    /// The cells that are known before any unrolling: those that the test observes.
    pub(super) fn first(memory: &Memory, test: &LitmusTest) -> TouchedCells {
        if memory.cells.len() <= SMALL {
            return TouchedCells::All;
        }
        let mut cells = FxHashSet::default();
        let mut note = |o| cells.extend(memory.observed(&test.program, o));
        test.observe.iter().copied().for_each(&mut note);
        for prop in test.condition.iter().chain(&test.filter) {
            prop.observables(&mut note);
        }
        TouchedCells::These(cells)
    }

    /// Whether a cell has an initial write.
    pub(super) fn has(&self, cell: CellId) -> bool {
        match self {
            TouchedCells::All => true,
            TouchedCells::These(cells) => cells.contains(&cell),
        }
    }

    /// Adds the cells that the events of an unrolling can access. Returns whether they are more
    /// than before.
    pub(super) fn grow(&mut self, memory: &Memory, out: &Unrolling) -> bool {
        let TouchedCells::These(cells) = self else {
            return false;
        };
        let before = cells.len();
        let of_memory = |event: &&Event| event.thread.is_some() && !event.is_of_tensor_memory();
        for event in out.events.iter().filter(of_memory) {
            let Some(address) = event.addr else {
                continue;
            };
            let Some(address) = out.pool.as_const(address) else {
                *self = TouchedCells::All;
                return true;
            };
            cells.extend(covered(memory, address, event.ty.bytes()));
        }
        cells.len() > before
    }
}
