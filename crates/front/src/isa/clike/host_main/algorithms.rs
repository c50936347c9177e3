//! Calls of `<algorithm>` and `<numeric>` in host code: the elements that they read and write.
//!
//! # How
//! - An algorithm reads each element of its ranges, and writes each element of its target. The
//!   values are not worked out, but for copies.
//! - The functions that it calls for each element get values that are not worked out.
//!
//! # Sources
//! - ISO C++, algorithms, numeric.ops.

use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::values::HostValue;
use program::Ty;

/// The accesses of an algorithm to its ranges.
#[derive(Clone, Copy, PartialEq)]
enum AccessPattern {
    /// `(first, last, …)`: reads.
    Reads,
    /// `(first, last, other, …)`: reads both ranges.
    ReadsBoth,
    /// `(first, last, target, …)`: reads, and writes as many elements.
    Copies,
    /// `(first, last, other, target, …)`: reads both ranges, and writes as many elements.
    Joins,
    /// `(first, last, …)`: reads and writes.
    Updates,
    /// `(first, last, …)`: writes.
    Writes,
    /// `(first, count, …)`: writes.
    WritesCount,
}

/// The algorithms, by name.
const ALGORITHMS: [(&str, AccessPattern); 37] = [
    ("accumulate", AccessPattern::Reads),
    ("reduce", AccessPattern::Reads),
    ("max_element", AccessPattern::Reads),
    ("min_element", AccessPattern::Reads),
    ("minmax_element", AccessPattern::Reads),
    ("count", AccessPattern::Reads),
    ("count_if", AccessPattern::Reads),
    ("find", AccessPattern::Reads),
    ("find_if", AccessPattern::Reads),
    ("all_of", AccessPattern::Reads),
    ("any_of", AccessPattern::Reads),
    ("none_of", AccessPattern::Reads),
    ("is_sorted", AccessPattern::Reads),
    ("adjacent_find", AccessPattern::Reads),
    ("binary_search", AccessPattern::Reads),
    ("lower_bound", AccessPattern::Reads),
    ("upper_bound", AccessPattern::Reads),
    ("for_each", AccessPattern::Updates),
    ("equal", AccessPattern::ReadsBoth),
    ("mismatch", AccessPattern::ReadsBoth),
    ("inner_product", AccessPattern::ReadsBoth),
    ("transform_reduce", AccessPattern::ReadsBoth),
    ("copy", AccessPattern::Copies),
    ("copy_n", AccessPattern::Copies),
    ("partial_sum", AccessPattern::Copies),
    ("inclusive_scan", AccessPattern::Copies),
    ("exclusive_scan", AccessPattern::Copies),
    ("adjacent_difference", AccessPattern::Copies),
    ("transform", AccessPattern::Copies),
    ("merge", AccessPattern::Joins),
    ("sort", AccessPattern::Updates),
    ("stable_sort", AccessPattern::Updates),
    ("reverse", AccessPattern::Updates),
    ("shuffle", AccessPattern::Updates),
    ("generate", AccessPattern::Writes),
    ("generate_n", AccessPattern::WritesCount),
    ("fill_n", AccessPattern::WritesCount),
];

impl Machine<'_> {
    /// A call of an algorithm; `None`: the call is another one.
    pub(super) fn algorithm(
        &mut self,
        name: &str,
        values: &[HostValue],
        range: &Range<usize>,
    ) -> Option<Read<HostValue>> {
        let (_, pattern) = ALGORITHMS.iter().find(|known| known.0 == name)?;
        let [first, second, rest @ ..] = values else {
            return None;
        };
        // An address that is not worked out, or `std::count` as a number.
        if !matches!(first, HostValue::Pointer(_) | HostValue::Cell(_)) {
            return None;
        }
        Some(self.run_algorithm(name, *pattern, first, second, rest, range))
    }

    fn run_algorithm(
        &mut self,
        name: &str,
        mut pattern: AccessPattern,
        first: &HostValue,
        second: &HostValue,
        rest: &[HostValue],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let counts = pattern == AccessPattern::WritesCount || name == "copy_n";
        let length = match counts {
            true => second.clone(),
            false => self.binary("-", second.clone(), first.clone(), range)?,
        };
        let length = self.known(&length, range)?;
        // `transform(first, last, other, target, f)`
        if name == "transform" && rest.len() == 3 {
            pattern = AccessPattern::Joins;
        }
        let keeps = matches!(name, "copy" | "copy_n");
        let value = match (name, rest) {
            ("fill_n", [value, ..]) => value.clone(),
            _ => HostValue::Unknown,
        };
        for at in 0..length {
            let mut read = HostValue::Unknown;
            if !matches!(pattern, AccessPattern::Writes | AccessPattern::WritesCount) {
                read = self.element_value(first, at, range)?;
            }
            let new = if keeps { read } else { value.clone() };
            match (pattern, rest) {
                (AccessPattern::ReadsBoth, [other, ..]) => {
                    self.element_value(other, at, range)?;
                }
                (AccessPattern::Copies, [target, ..]) => {
                    self.set_element(target, at, new, range)?
                }
                (AccessPattern::Joins, [other, target, ..]) => {
                    self.element_value(other, at, range)?;
                    self.set_element(target, at, new, range)?;
                }
                (
                    AccessPattern::Updates | AccessPattern::Writes | AccessPattern::WritesCount,
                    _,
                ) => {
                    self.set_element(first, at, new, range)?;
                }
                _ => {}
            }
        }
        match (pattern, rest) {
            (AccessPattern::Copies, [target, ..]) | (AccessPattern::Joins, [_, target, ..]) => {
                self.binary("+", target.clone(), HostValue::Int(length, Ty::WORD), range)
            }
            _ => Ok(HostValue::Unknown),
        }
    }

    pub(super) fn element_value(
        &mut self,
        of: &HostValue,
        at: i64,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let place = self.element(of, at, range)?;
        self.load(&place, range)
    }

    fn set_element(
        &mut self,
        of: &HostValue,
        at: i64,
        value: HostValue,
        range: &Range<usize>,
    ) -> Read<()> {
        let place = self.element(of, at, range)?;
        self.store(&place, value, range)
    }
}
