//! Sessions of questions about one test under one model, and the reasons for the answers.
//!
//! | Module | Content |
//! |---|---|
//! | `ask` | questions about properties |
//! | [`session`] | questions at rising loop bounds, put to the engines |
//! | [`difference`] | why two models differ, and whether a mapping keeps what its source model
//! promises |
//! | `explain` | why an outcome is forbidden, or what an allowed one lacks |
//! | [`knobs`] | kinds of change: the parts of a program that can be made weaker or stronger |
//! | `search` | the one search for few changes that turn an answer |
//! | `needs` | what a forbidden outcome rests on, and what an allowed one lacks |
//! | `remedy` | changes that make a racy program race-free |
//! | [`advice`] | the cheapest orders, scopes and fences that keep a program right |
//! | `written` | changes as a programmer would write them |
//! | [`known_gap`] | a source model reduced to what a mapping is known to keep of it |

pub mod advice;
mod ask;
pub mod difference;
mod explain;
pub mod knobs;
pub mod known_gap;
mod needs;
mod remedy;
mod search;
pub mod session;
mod written;

pub use ask::Ask;
pub use session::Session;
