//! Tensor memory: the parts of it that instructions access.
//!
//! Each CTA has 128 lanes with 512 columns of 32 bits. An address is a number: the lane in bits 16
//! to 31, the column in bits 0 to 15.
//!
//! # Invariants
//! - A part consists of whole groups of 16 lanes. Instructions that access fewer lanes of a group
//!   have no part, so a front end refuses them.
//!
//! # Sources
//! - PTX ISA 9.4, *Tensor Memory* (Addressing, Allocation).

use crate::Tag;

/// The tags of instructions on tensor memory.
pub const TENSOR_TAGS: [Tag; 10] = [
    Tag::TensorLoad,
    Tag::TensorStore,
    Tag::TensorMultiply,
    Tag::TensorOperand,
    Tag::TensorAlloc,
    Tag::TensorFree,
    Tag::TensorWaitLoad,
    Tag::TensorWaitStore,
    Tag::TensorBefore,
    Tag::TensorAfter,
];

/// The number of groups.
const GROUPS: i64 = 8;
/// The warps of a warpgroup, each of which accesses a quarter of the lanes.
const WARPS: u32 = 4;
/// The number of columns.
pub const COLUMNS: i64 = 512;

/// A part of tensor memory, relative to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorPart {
    /// Groups of 16 lanes, as bits: the first one is that of the address.
    pub groups: u8,
    /// The number of columns from that of the address on.
    pub columns: u16,
    /// As many columns again, this distance behind the first ones.
    pub again: Option<u16>,
    /// The shape and the kind of a product, as a number; 0 for other instructions.
    pub form: u64,
}

impl TensorPart {
    /// All lanes of some columns.
    pub const fn columns(columns: u16) -> TensorPart {
        TensorPart {
            groups: u8::MAX,
            columns,
            again: None,
            form: 0,
        }
    }

    /// The lanes of a group, which accesses touch together.
    pub const LANES: i64 = 16;

    /// The group that begins with the lane of an address, and the column; `None` if no group does.
    pub fn place(address: i64) -> Option<(i64, i64)> {
        let lane = address >> 16;
        let group = lane / TensorPart::LANES;
        let begins = lane % TensorPart::LANES == 0 && (0..GROUPS).contains(&group);
        begins.then_some((group, address & 0xffff))
    }

    /// Whether groups of lanes are those that a warp may access: a quarter, by its number. An
    /// unknown warp has some quarter.
    pub fn is_of_warp(groups: u8, warp: Option<u32>) -> bool {
        let quarters = 0..WARPS;
        quarters
            .filter(|quarter| warp.is_none_or(|warp| warp % WARPS == *quarter))
            .any(|quarter| groups & !(0b11 << (2 * quarter)) == 0)
    }

    /// The distances from the address' column to its ranges of columns, and their length.
    pub fn ranges(&self) -> impl Iterator<Item = (i64, i64)> {
        let columns = i64::from(self.columns);
        let all = [Some(0), self.again.map(i64::from)];
        all.into_iter().flatten().map(move |from| (from, columns))
    }

    /// The groups at an address; `None` if one is outside.
    pub fn groups_at(&self, group: i64) -> Option<u8> {
        let groups = i64::from(self.groups) << group.clamp(0, GROUPS);
        ((0..GROUPS).contains(&group) && groups <= i64::from(u8::MAX)).then_some(groups as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_beyond_the_last_are_no_part() {
        let half = TensorPart {
            groups: 0b101_0101,
            ..TensorPart::columns(8)
        };
        assert_eq!(half.groups_at(1), Some(0b1010_1010));
        assert_eq!(half.groups_at(2), None);
        assert_eq!(half.groups_at(8), None);
        assert_eq!(TensorPart::place(0x50_0003), Some((5, 3)));
        assert_eq!(TensorPart::place(0x51_0003), None);
        assert_eq!(TensorPart::place(0x80_0000), None);
    }

    #[test]
    fn a_warp_has_a_quarter_of_the_lanes() {
        assert!(TensorPart::is_of_warp(0b1100, Some(5)) && TensorPart::is_of_warp(0b1100, None));
        assert!(!TensorPart::is_of_warp(0b1100, Some(4)) && !TensorPart::is_of_warp(0b0110, None));
    }
}
