//! Unrolls threads into guarded events.
//!
//! | File | Content |
//! |---|---|
//! | [`unroll`] | runs a thread symbolically, all paths at once |
//! | [`execute`] | adds the events of one instruction |
//! | [`returns`] | finds rounds of loops that bring a thread back where it was |
//! | [`kept`], [`racing`] | instructions that such rounds must keep |
//! | [`ends`] | the ways in which threads end, for questions about progress |
//! | [`deps`] | the reads that values and guards depend on |
//! | [`state`], [`unrolled`] | the state of a thread, and the results |

pub(crate) mod deps;
pub(crate) mod ends;
mod execute;
pub(crate) mod kept;
pub(crate) mod racing;
pub(crate) mod returns;
pub(crate) mod state;
pub(crate) mod unroll;
pub(crate) mod unrolled;
