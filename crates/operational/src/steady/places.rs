//! Memory of a run: where the objects lie, and what their cells hold.
//!
//! # Invariants
//! - A value is known only if every execution has it: one that an asynchronous operation or an
//!   atomic writes is unknown.

use program::memory::Memory;
use program::{LocationKind, Program, Space, ThreadId};

/// A copy of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectCopy {
    pub(super) base: i64,
    pub(super) end: i64,
    pub(super) space: Space,
    /// Whether it has mbarrier objects.
    pub(super) has_mbarriers: bool,
    /// The index of its first cell.
    cell: usize,
}

/// The memory.
pub(super) struct RunMemory {
    pub(super) map: Memory,
    /// By address.
    copies: Vec<ObjectCopy>,
    values: Vec<Option<i64>>,
}

impl RunMemory {
    /// The memory at the start.
    ///
    /// # Errors
    /// If an object has an address for another proxy.
    pub(super) fn new(program: &Program) -> Result<RunMemory, String> {
        let other = program
            .locations
            .iter()
            .find(|location| matches!(&location.kind, LocationKind::Alias { .. }));
        if let Some(location) = other {
            return Err(format!("`{}`, another address of memory", location.name));
        }
        let map = Memory::new(program);
        let mut copies: Vec<ObjectCopy> = Vec::new();
        for (i, cell) in map.cells.iter().enumerate() {
            let end = cell.address + i64::from(cell.ty.bytes());
            match copies.last_mut() {
                Some(last) if cell.location.1 > 0 => last.end = last.end.max(end),
                _ => copies.push(ObjectCopy {
                    base: cell.address,
                    end,
                    space: cell.space,
                    has_mbarriers: program.location(cell.location.0).kind.has_mbarriers(),
                    cell: i,
                }),
            }
        }
        let cells = map.cells.iter();
        let values = cells
            .map(|cell| (!cell.unknown).then_some(cell.init))
            .collect();
        Ok(RunMemory {
            map,
            copies,
            values,
        })
    }

    /// The address of an object for a thread.
    pub(super) fn address(&self, program: &Program, loc: program::LocId, t: usize) -> Option<i64> {
        self.map.address(program, loc, 0, Some(ThreadId(t as u16)))
    }

    /// The copy that has all bytes of a range, and the range by the first address of its memory.
    pub(super) fn copy(&self, from: i64, to: i64) -> Option<(ObjectCopy, i64)> {
        let at = self.copies.partition_point(|copy| copy.base <= from);
        let copy = *self.copies.get(at.checked_sub(1)?)?;
        let first = &self.map.cells[copy.cell];
        let target = self.map.cells[first.memory.0 as usize].address;
        (to <= copy.end).then_some((copy, target - copy.base))
    }

    fn cells(&self, from: i64, to: i64) -> std::ops::Range<usize> {
        let start = self
            .map
            .cells
            .partition_point(|cell| cell.address + i64::from(cell.ty.bytes()) <= from);
        let end = self.map.cells.partition_point(|cell| cell.address < to);
        start..end.max(start)
    }

    /// The value at an address, if it is known.
    pub(super) fn load(&self, address: i64, bytes: u32) -> Option<i64> {
        let cell = self.map.cell_at(address, bytes)?;
        self.values[self.map.cell(cell).memory.0 as usize]
    }

    /// Writes a value, or an unknown one, to a range.
    pub(super) fn store(&mut self, from: i64, to: i64, value: Option<i64>) {
        let range = self.cells(from, to);
        let whole = range.len() == 1 && {
            let cell = &self.map.cells[range.start];
            (cell.address, cell.address + i64::from(cell.ty.bytes())) == (from, to)
        };
        for i in range {
            let cell = &self.map.cells[i];
            let value = value.filter(|_| whole).map(|value| cell.ty.wrap(value));
            self.values[cell.memory.0 as usize] = value;
        }
    }

    /// The name of the memory at an address.
    pub(super) fn name(&self, address: i64) -> Option<String> {
        let range = self.cells(address, address + 1);
        self.map
            .cells
            .get(range.start)
            .map(|cell| cell.name.clone())
    }
}
