//! Index spaces of kernels: up to three dimensions, an offset, and possibly incomplete groups.
//!
//! In each dimension, ids start at the offset, and groups have the local size; the last group may
//! be smaller. A CUDA grid is an index space with only full groups and offset 0.
//!
//! # Invariants
//! - Missing dimensions have size 1 and offset 0.
//! - Offset plus size fits a `size_t` of 64 bits, so no arithmetic here overflows; the number of
//!   items may.
//!
//! # Sources
//! - OpenCL API specification, *Mapping Work-items Onto an ND-range*; OpenCL C, *Work-Item
//!   Functions*, for linear ids.
//! - CUDA C++ Programming Guide, *Thread Hierarchy*: thread numbers in a block, x fastest.

use thiserror::Error;

/// An index space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdRange {
    dimensions: usize,
    global: [u64; 3],
    local: [u64; 3],
    offset: [u64; 3],
}

/// The reasons why sizes do not form an index space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RangeError {
    /// No dimension, or more than three.
    #[error("an index space has 1 to 3 dimensions")]
    Dimensions,
    /// Groups of size 0 in that dimension.
    #[error("groups of size 0 in dimension {0}")]
    EmptyGroups(usize),
    /// The last id of that dimension exceeds `size_t`.
    #[error("in dimension {0}, offset and size exceed the largest `size_t`")]
    Overflow(usize),
}

/// One item of an index space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkItem {
    /// Its group's number in each dimension.
    pub group: [u64; 3],
    /// Its number in the group, in each dimension.
    pub local: [u64; 3],
}

/// The linear index of a point in a box, dimension 0 fastest.
fn linear(at: [u64; 3], size: [u64; 3]) -> u64 {
    (at[2] * size[1] + at[1]) * size[0] + at[0]
}

/// All points of a box, dimension 0 fastest.
fn points(size: [u64; 3]) -> impl Iterator<Item = [u64; 3]> {
    (0..size[2])
        .flat_map(move |z| (0..size[1]).flat_map(move |y| (0..size[0]).map(move |x| [x, y, z])))
}

impl NdRange {
    /// The space of `global` items in groups of `local`, with ids from `offset` on. Missing sizes
    /// are 1, missing offsets 0.
    ///
    /// # Errors
    /// If the sizes do not form an index space.
    pub fn new(global: &[u64], local: &[u64], offset: &[u64]) -> Result<NdRange, RangeError> {
        if global.is_empty() || [global, local, offset].iter().any(|all| all.len() > 3) {
            return Err(RangeError::Dimensions);
        }
        fn padded(all: &[u64], otherwise: u64) -> [u64; 3] {
            [0, 1, 2].map(|d| all.get(d).copied().unwrap_or(otherwise))
        }
        let range = NdRange {
            dimensions: global.len(),
            global: padded(global, 1),
            local: padded(local, 1),
            offset: padded(offset, 0),
        };
        for d in 0..3 {
            if range.local[d] == 0 {
                return Err(RangeError::EmptyGroups(d));
            }
            if range.offset[d].checked_add(range.global[d]).is_none() {
                return Err(RangeError::Overflow(d));
            }
        }
        Ok(range)
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Its size.
    pub fn global(&self) -> [u64; 3] {
        self.global
    }

    /// The size of a full group.
    pub fn local(&self) -> [u64; 3] {
        self.local
    }

    /// The first id.
    pub fn offset(&self) -> [u64; 3] {
        self.offset
    }

    /// The number of items; `None` if it exceeds 64 bits.
    pub fn count(&self) -> Option<u64> {
        if self.global.contains(&0) {
            return Some(0);
        }
        self.global
            .iter()
            .try_fold(1u64, |n, size| n.checked_mul(*size))
    }

    /// The number of groups in each dimension.
    pub fn groups(&self) -> [u64; 3] {
        [0, 1, 2].map(|d| self.global[d].div_ceil(self.local[d]))
    }

    /// The size of a group; the last one of a dimension may be smaller.
    pub fn size(&self, group: [u64; 3]) -> [u64; 3] {
        [0, 1, 2].map(|d| self.local[d].min(self.global[d] - group[d] * self.local[d]))
    }

    /// The first dimension whose size is no multiple of the group size, so that its groups differ
    /// in size.
    pub fn remainder(&self) -> Option<usize> {
        (0..3).find(|&d| !self.global[d].is_multiple_of(self.local[d]))
    }

    /// All items, sorted by group.
    pub fn items(&self) -> impl Iterator<Item = WorkItem> + '_ {
        let groups = if self.count() == Some(0) {
            [0; 3]
        } else {
            self.groups()
        };
        points(groups)
            .flat_map(|group| points(self.size(group)).map(move |local| WorkItem { group, local }))
    }

    /// The global id of an item.
    pub fn global_id(&self, item: WorkItem) -> [u64; 3] {
        [0, 1, 2].map(|d| item.group[d] * self.local[d] + item.local[d] + self.offset[d])
    }

    /// The item's number in the whole space, without the offset.
    pub fn global_linear_id(&self, item: WorkItem) -> u64 {
        let id = self.global_id(item);
        linear([0, 1, 2].map(|d| id[d] - self.offset[d]), self.global)
    }

    /// The item's number in its group.
    pub fn local_linear_id(&self, item: WorkItem) -> u64 {
        linear(item.local, self.size(item.group))
    }

    /// The number of the item's group among all groups.
    pub fn group_linear_id(&self, item: WorkItem) -> u64 {
        linear(item.group, self.groups())
    }
}

/// The sub-groups of a group of `size` items, each with up to `room` items: all except the last are
/// full. This code assumes that item `n` is in sub-group `n / room`. OpenCL leaves the mapping to
/// the implementation (OpenCL API specification, *Execution Model: Mapping Work-items Onto an
/// ND-range*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubGroups {
    /// Items in the group.
    pub size: u64,
    /// Items in a full sub-group.
    pub room: u64,
}

impl SubGroups {
    /// The number of sub-groups.
    pub fn count(self) -> u64 {
        self.size.div_ceil(self.room)
    }

    /// The sub-group of an item, by its number in the group.
    pub fn of(self, item: u64) -> u64 {
        item / self.room
    }

    /// The number of items in a sub-group.
    pub fn members(self, sub_group: u64) -> u64 {
        self.room.min(self.size - sub_group * self.room)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn each_axis() -> impl Iterator<Item = (u64, u64, u64)> {
        (0..=5).flat_map(|g| (1..=3).flat_map(move |s| [0, 2].map(move |f| (g, s, f))))
    }

    #[test]
    fn the_example_of_ten_items_in_groups_of_four_from_three_on() {
        let range = NdRange::new(&[10], &[4], &[3]).unwrap();
        assert_eq!(range.groups(), [3, 1, 1]);
        let sizes: Vec<u64> = (0..3).map(|w| range.size([w, 0, 0])[0]).collect();
        assert_eq!(sizes, [4, 4, 2]);
        let at = range
            .items()
            .find(|i| range.global_id(*i)[0] == 12)
            .unwrap();
        assert_eq!((at.group[0], at.local[0]), (2, 1));
        assert_eq!(range.remainder(), Some(0));
    }

    /// Every id from the offset on occurs exactly once, groups are contiguous, and linear ids count
    /// without gaps.
    #[test]
    fn every_global_id_occurs_once() {
        for (x, y) in each_axis().flat_map(|x| each_axis().map(move |y| (x, y))) {
            let range = NdRange::new(&[x.0, y.0, 2], &[x.1, y.1, 2], &[x.2, y.2, 7]).unwrap();
            let items: Vec<WorkItem> = range.items().collect();
            assert_eq!(items.len() as u64, range.count().unwrap());
            let ids: HashSet<[u64; 3]> = items.iter().map(|i| range.global_id(*i)).collect();
            assert_eq!(ids.len(), items.len());
            let (global, offset) = (range.global(), range.offset());
            assert!(
                ids.iter()
                    .all(|id| (0..3).all(|d| (offset[d]..offset[d] + global[d]).contains(&id[d])))
            );
            let linear: HashSet<u64> = items.iter().map(|i| range.global_linear_id(*i)).collect();
            assert_eq!(linear, (0..items.len() as u64).collect());
            let of_groups: u64 = points(range.groups())
                .map(|g| range.size(g).iter().product::<u64>())
                .sum();
            assert_eq!(of_groups, items.len() as u64);
        }
    }

    #[test]
    fn groups_are_found_from_global_ids_and_local_ids_count_without_gaps() {
        let range = NdRange::new(&[5, 3], &[2, 2], &[1, 4]).unwrap();
        let mut seen: Vec<(u64, u64)> = Vec::new();
        for item in range.items() {
            let id = range.global_id(item);
            for (d, id) in id.into_iter().enumerate() {
                assert_eq!(
                    (id - item.local[d] - range.offset()[d]) / range.local()[d],
                    item.group[d]
                );
            }
            seen.push((range.group_linear_id(item), range.local_linear_id(item)));
        }
        // The order is group after group, each from 0 on: four group shapes in two dimensions.
        let sizes = [4, 4, 2, 2, 2, 1];
        let expected: Vec<(u64, u64)> = (0..6)
            .flat_map(|g| (0..sizes[g as usize]).map(move |l| (g, l)))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_space_may_be_empty_but_not_overflow() {
        let empty = NdRange::new(&[0, 4], &[2, 2], &[]).unwrap();
        assert_eq!((empty.count(), empty.items().count()), (Some(0), 0));
        assert!(NdRange::new(&[2], &[1], &[u64::MAX - 2]).is_ok());
        assert_eq!(
            NdRange::new(&[2], &[1], &[u64::MAX - 1]),
            Err(RangeError::Overflow(0))
        );
        assert_eq!(
            NdRange::new(&[1, 2], &[1, 0], &[]),
            Err(RangeError::EmptyGroups(1))
        );
        assert_eq!(NdRange::new(&[], &[], &[]), Err(RangeError::Dimensions));
        assert_eq!(NdRange::new(&[1; 4], &[], &[]), Err(RangeError::Dimensions));
        assert_eq!(
            NdRange::new(&[1 << 40, 1 << 40], &[1], &[])
                .unwrap()
                .count(),
            None
        );
    }

    #[test]
    fn sub_groups_are_full_but_the_last() {
        for (size, room) in (1..20).flat_map(|n| (1..6).map(move |z| (n, z))) {
            let all = SubGroups { size, room };
            let members: Vec<u64> = (0..all.count()).map(|g| all.members(g)).collect();
            assert_eq!(members.iter().sum::<u64>(), size);
            assert!(members.iter().rev().skip(1).all(|n| *n == room));
            assert!((0..size).all(|item| all.of(item) < all.count()));
        }
    }
}
