//! The places of jumps and labels in the code of a function.
//!
//! # Invariants
//! - Places stay until the function ends: a jump may come before its label.

use std::collections::BTreeMap;
use std::ops::Range;

/// A place in the code of a function, with the open blocks around it.
#[derive(Clone, Debug)]
pub(super) struct JumpPlace {
    /// The index of the micro-op.
    pub(super) at: usize,
    /// The open blocks, the innermost last.
    pub(super) blocks: Vec<usize>,
    pub(super) range: Range<usize>,
}

/// The jumps of the function that the lowering has reached.
#[derive(Debug, Default)]
pub(super) struct Jumps {
    pub(super) labels: BTreeMap<String, JumpPlace>,
    pub(super) jumps: Vec<(String, JumpPlace)>,
    /// Blocks, and the indices at which they declare something with an initial value.
    pub(super) initialised: Vec<(usize, usize)>,
}

impl Jumps {
    /// Whether code behind this place can run again.
    pub(super) fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }
}
