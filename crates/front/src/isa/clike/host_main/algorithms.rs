//! Calls of `<algorithm>` and `<numeric>` in host code: the elements that they read and write.
//!
//! # How
//! - An algorithm reads each element of its ranges, and writes each element of its target. What it
//!   computes is not worked out, but for copies.
//! - The functions that it calls for each element get values that are not worked out.
//!
//! # Sources
//! - ISO C++, algorithms, numeric.ops.

use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::values::HostValue;
use program::Ty;

/// What an algorithm does with its operands.
#[derive(Clone, Copy, PartialEq)]
enum Pattern {
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
const ALGORITHMS: [(&str, Pattern); 37] = [
    ("accumulate", Pattern::Reads),
    ("reduce", Pattern::Reads),
    ("max_element", Pattern::Reads),
    ("min_element", Pattern::Reads),
    ("minmax_element", Pattern::Reads),
    ("count", Pattern::Reads),
    ("count_if", Pattern::Reads),
    ("find", Pattern::Reads),
    ("find_if", Pattern::Reads),
    ("all_of", Pattern::Reads),
    ("any_of", Pattern::Reads),
    ("none_of", Pattern::Reads),
    ("is_sorted", Pattern::Reads),
    ("adjacent_find", Pattern::Reads),
    ("binary_search", Pattern::Reads),
    ("lower_bound", Pattern::Reads),
    ("upper_bound", Pattern::Reads),
    ("for_each", Pattern::Updates),
    ("equal", Pattern::ReadsBoth),
    ("mismatch", Pattern::ReadsBoth),
    ("inner_product", Pattern::ReadsBoth),
    ("transform_reduce", Pattern::ReadsBoth),
    ("copy", Pattern::Copies),
    ("copy_n", Pattern::Copies),
    ("partial_sum", Pattern::Copies),
    ("inclusive_scan", Pattern::Copies),
    ("exclusive_scan", Pattern::Copies),
    ("adjacent_difference", Pattern::Copies),
    ("transform", Pattern::Copies),
    ("merge", Pattern::Joins),
    ("sort", Pattern::Updates),
    ("stable_sort", Pattern::Updates),
    ("reverse", Pattern::Updates),
    ("shuffle", Pattern::Updates),
    ("generate", Pattern::Writes),
    ("generate_n", Pattern::WritesCount),
    ("fill_n", Pattern::WritesCount),
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
        mut pattern: Pattern,
        first: &HostValue,
        second: &HostValue,
        rest: &[HostValue],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let counts = pattern == Pattern::WritesCount || name == "copy_n";
        let length = match counts {
            true => second.clone(),
            false => self.binary("-", second.clone(), first.clone(), range)?,
        };
        let length = self.known(&length, range)?;
        // `transform(first, last, other, target, f)`
        if name == "transform" && rest.len() == 3 {
            pattern = Pattern::Joins;
        }
        let keeps = matches!(name, "copy" | "copy_n");
        let value = match (name, rest) {
            ("fill_n", [value, ..]) => value.clone(),
            _ => HostValue::Unknown,
        };
        for at in 0..length {
            let mut read = HostValue::Unknown;
            if !matches!(pattern, Pattern::Writes | Pattern::WritesCount) {
                read = self.element_value(first, at, range)?;
            }
            let new = if keeps { read } else { value.clone() };
            match (pattern, rest) {
                (Pattern::ReadsBoth, [other, ..]) => {
                    self.element_value(other, at, range)?;
                }
                (Pattern::Copies, [target, ..]) => self.set_element(target, at, new, range)?,
                (Pattern::Joins, [other, target, ..]) => {
                    self.element_value(other, at, range)?;
                    self.set_element(target, at, new, range)?;
                }
                (Pattern::Updates | Pattern::Writes | Pattern::WritesCount, _) => {
                    self.set_element(first, at, new, range)?;
                }
                _ => {}
            }
        }
        match (pattern, rest) {
            (Pattern::Copies, [target, ..]) | (Pattern::Joins, [_, target, ..]) => {
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
