//! Describes asynchronous copies of whole work-groups in code for every launch.
//!
//! Such code makes a copy in every thread, of an element of which the number is unknown. These
//! registers say how far the copies of one place in the code have come.
//!
//! # Sources
//! - OpenCL C, *Async Copies from Global to Local Memory, Local to Global Memory, and Prefetch*.

use crate::RegId;

/// A place in the code that begins copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupCopy {
    /// Where it copies to.
    pub to: RegId,
    /// Where it copies from.
    pub from: RegId,
    /// How many elements.
    pub number: RegId,
    /// How many copies the thread has begun here. Its assignment is the begin of a copy.
    pub begun: RegId,
    /// 0: the thread has waited for all of them; 1: for all but the last one; else more are open.
    pub open: RegId,
    /// 1 where accesses belong to a copy of this place, else 0.
    pub runs: RegId,
}
