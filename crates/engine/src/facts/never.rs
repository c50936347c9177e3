//! Finds the writes that a read never reads from, so that it takes fewer values.
//!
//! The bounds of the values relation exclude them: for example, no read takes a value that was
//! overwritten before a barrier that precedes it.

use std::time::Instant;

use super::Facts;
use super::bounds::TaskBounds;
use super::implied::Implied;
use super::listing::Listing;
use crate::task::Task;

/// Whether values are missing, which fewer sources could make listable. Axioms imply these facts,
/// and a task about values out of thin air asks about executions that break axioms.
pub(super) fn helps(task: &Task<'_>, listing: &Listing) -> bool {
    let is_open = listing.domains.open && !task.excludes_thin_air();
    !task.thin_air && (is_open || listing.needed.is_some())
}

/// Adds the pairs to the facts.
pub(super) fn add(
    plain: &Facts<'_>,
    bounds: &TaskBounds,
    _: Option<Instant>,
    implied: &mut Implied,
) {
    implied.never = bounds.never_read(plain);
}
