//! Relates the events of several threads: barriers, lanes that exchange values, and launches.
//!
//! | File | Content |
//! |---|---|
//! | [`barrier`] | the phases of barriers, and the order that they give |
//! | [`lanes`] | lanes of a group that meet to exchange values |
//! | [`launch`] | the calls of a host program, and the commands that they start |
//! | [`answers`] | the answers of queries about commands |

mod answers;
pub(crate) mod barrier;
mod lanes;
pub(crate) mod launch;
