//! Joins the tables of functions of all C-like dialects.

use super::calls::{FunctionRow, ROWS};
use super::cuda_calls::FUNCTIONS;
use super::sub_groups;

/// The functions.
pub(super) fn rows() -> impl Iterator<Item = &'static FunctionRow> {
    ROWS.iter().chain(sub_groups::ROWS).chain(FUNCTIONS)
}
