//! Describes the asynchronous copies that code begins, and the memory in which they are counted.

use program::{BinOp, Expr, RegId, Space, Ty};

/// The counters of completed copies.
pub(super) const COPIES: &str = "__copies";
/// The number of work-items that may make a copy: a power of two.
pub(super) const COPIERS: usize = 4;
/// Whether code may copy asynchronously.
pub(super) fn copies(text: &str) -> bool {
    text.contains("async_work_group_")
}

/// The copies that the code begins, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct AsyncCopies {
    pub(super) sites: Vec<CopySite>,
    /// Whether a wait stands in a loop. A copy behind it may be one that it waits for.
    pub(super) waits_in_loop: bool,
}

/// A place in the code that begins a copy.
#[derive(Clone, Debug)]
pub(super) struct CopySite {
    pub(super) to: CopyEnd,
    pub(super) from: CopyEnd,
    pub(super) number: i64,
    /// The event, while this work-item still has to make the copy; else 0.
    pub(super) pending: RegId,
}

/// One end of a copy.
#[derive(Clone, Debug)]
pub(super) struct CopyEnd {
    pub(super) addr: Expr,
    pub(super) ty: Ty,
    pub(super) space: Option<Space>,
    /// The bytes of an element.
    pub(super) size: i64,
    /// Where the words of an element begin, in bytes.
    pub(super) words: Vec<i64>,
    /// The distance of two elements, in elements.
    pub(super) stride: i64,
}

impl CopyEnd {
    /// The address of a word of an element.
    pub(super) fn element(&self, k: i64, word: i64) -> Expr {
        let distance = k * self.stride * self.size + word;
        match (&self.addr, distance) {
            (addr, 0) => addr.clone(),
            (addr, distance) => Expr::Bin(
                BinOp::Add,
                Ty::WORD,
                addr.clone().into(),
                Expr::Const(distance).into(),
            ),
        }
    }
}
