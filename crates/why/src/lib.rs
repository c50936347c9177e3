//! Sessions of questions about one test under one model, and why the answers are what they are.
//!
//! | Module | What |
//! |---|---|
//! | [`session`] | questions at rising loop bounds, put to the engines |
//! | `explain` | why an outcome is forbidden, or what is missing for it to be |
//! | `search` | few changes of a program that turn an answer |
//! | `repair` | what would make a racy program race-free |
//! | [`known_gap`] | a source model reduced to what a mapping is known to keep of it |

mod explain;
pub mod known_gap;
mod repair;
mod search;
pub mod session;

pub use session::Session;
