//! Ranges of work-items: which groups there are, how large each is, which number each work-item has.
//!
//! CUDA's grids are ranges without offset whose blocks are all of one size.
//!
//! # Invariants
//! - Groups come in the order of their linear numbers, work-items of a group in that of theirs; x changes fastest.
//! - The last group of a dimension holds what is left, if the size does not divide.
//! # Sources
//! - OpenCL API specification, *Mapping Work-items Onto an ND-range*: `g = w·S + s + F`, `W = ceil(G / S)`.
//! - OpenCL C, *Work-Item Functions*, for linear numbers: by the actual size of the group.
//! - CUDA C++ Programming Guide, *Thread Hierarchy*.

/// A range of work-items, in up to three dimensions; those that are missing have size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdRange {
    /// How many dimensions it was given with.
    pub dims: u32,
    /// What every number begins at.
    pub offset: [u64; 3],
    /// Work-items.
    pub global: [u64; 3],
    /// Work-items in a group; the last group of a dimension may have fewer.
    pub local: [u64; 3],
}

/// A work-item of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkItem {
    /// The number of its group.
    pub group: [u64; 3],
    /// Its number in the group.
    pub local: [u64; 3],
    /// The size of its group.
    pub size: [u64; 3],
}

impl NdRange {
    /// A row of groups of equal size.
    pub fn row(groups: u64, local: u64) -> NdRange {
        NdRange { dims: 1, offset: [0; 3], global: [groups * local, 1, 1], local: [local, 1, 1] }
    }

    /// A range from lists of sizes; what they do not give is 1, or 0 for the offset.
    pub fn new(offset: &[u64], global: &[u64], local: &[u64]) -> NdRange {
        let fill = |list: &[u64], other| [0, 1, 2].map(|d| list.get(d).copied().unwrap_or(other));
        let dims = global.len().clamp(1, 3) as u32;
        NdRange { dims, offset: fill(offset, 0), global: fill(global, 1), local: fill(local, 1) }
    }

    /// How many work-items it has; `None`: more than 64 bits can count.
    pub fn count(&self) -> Option<u64> {
        self.global.iter().try_fold(1u64, |n, g| n.checked_mul(*g))
    }

    /// Whether some work-item has a number that 64 bits cannot hold.
    pub fn overflows(&self) -> bool {
        self.global.iter().zip(&self.offset).any(|(g, f)| g.checked_add(*f).is_none())
    }

    /// How many groups it has.
    pub fn groups(&self) -> [u64; 3] {
        [0, 1, 2].map(|d| self.global[d].div_ceil(self.local[d].max(1)))
    }

    /// Its work-items, group by group.
    pub fn items(&self) -> Vec<WorkItem> {
        let groups = self.groups();
        let mut items = Vec::new();
        for group in points(groups) {
            let size = [0, 1, 2].map(|d| self.local[d].min(self.global[d] - group[d] * self.local[d]));
            items.extend(points(size).map(|local| WorkItem { group, local, size }));
        }
        items
    }

    /// The global number of a work-item.
    pub fn number(&self, item: &WorkItem) -> [u64; 3] {
        [0, 1, 2].map(|d| item.group[d] * self.local[d] + item.local[d] + self.offset[d])
    }

    /// The linear global number of a work-item.
    pub fn linear(&self, item: &WorkItem) -> u64 {
        let at = [0, 1, 2].map(|d| item.group[d] * self.local[d] + item.local[d]);
        linear(at, self.global)
    }

    /// The linear number of a work-item's group.
    pub fn linear_group(&self, item: &WorkItem) -> u64 {
        linear(item.group, self.groups())
    }
}

impl WorkItem {
    /// Its linear number in the group.
    pub fn linear(&self) -> u64 {
        linear(self.local, self.size)
    }

    /// How many work-items its group has.
    pub fn group_size(&self) -> u64 {
        self.size.iter().product()
    }
}

fn linear(at: [u64; 3], size: [u64; 3]) -> u64 {
    (at[2] * size[1] + at[1]) * size[0] + at[0]
}

/// All points of a box, x changing fastest.
fn points(size: [u64; 3]) -> impl Iterator<Item = [u64; 3]> {
    (0..size[2]).flat_map(move |z| (0..size[1]).flat_map(move |y| (0..size[0]).map(move |x| [x, y, z])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_group_holds_what_is_left() {
        // OpenCL API specification: 10 work-items in groups of 4, from 3 on.
        let range = NdRange::new(&[3], &[10], &[4]);
        assert_eq!(range.groups(), [3, 1, 1]);
        let items = range.items();
        assert_eq!(items.len(), 10);
        let sizes: Vec<u64> = items.iter().map(WorkItem::group_size).collect();
        assert_eq!(sizes, [4, 4, 4, 4, 4, 4, 4, 4, 2, 2]);
        let twelve = items.iter().find(|i| range.number(i)[0] == 12).unwrap();
        assert_eq!((twelve.group[0], twelve.local[0]), (2, 1));
    }

    #[test]
    fn two_dimensions_have_four_shapes_of_groups() {
        let range = NdRange::new(&[], &[5, 3], &[2, 2]);
        let mut shapes: Vec<[u64; 3]> = range.items().iter().map(|i| i.size).collect();
        shapes.sort_unstable();
        shapes.dedup();
        assert_eq!(shapes, [[1, 1, 1], [1, 2, 1], [2, 1, 1], [2, 2, 1]]);
        let numbers: Vec<u64> = range.items().iter().map(|i| range.linear(i)).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..15).collect::<Vec<_>>());
        // The corner group has one work-item, whose number in the group is 0 whatever the full size is.
        let corner = range.items().into_iter().find(|i| i.group == [2, 1, 0]).unwrap();
        assert_eq!((corner.linear(), range.linear(&corner)), (0, 14));
    }

    #[test]
    fn numbers_that_no_word_holds_are_seen() {
        assert!(NdRange::new(&[u64::MAX], &[1], &[1]).overflows());
        assert!(!NdRange::new(&[u64::MAX - 1], &[1], &[1]).overflows());
        assert_eq!(NdRange::new(&[], &[u64::MAX, 2], &[1]).count(), None);
        assert_eq!(NdRange::new(&[], &[0], &[1]).items(), []);
    }
}
