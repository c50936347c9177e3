//! Lists the values that terms can have, from the graph of events.
//!
//! | File | Content |
//! |---|---|
//! | [`images`] | the values of a term, from those of the reads in it |
//! | [`domain`] | the values of reads, from those of the writes that they can read from |
//! | [`linear`] | whether two sums are equal for all values |
//! | [`reached`] | whether a guard can hold by the values so far |
//! | [`needed`] | the terms that decide guards, addresses or the answer |

pub mod domain;
pub mod images;
pub(crate) mod linear;
pub mod needed;
mod reached;
