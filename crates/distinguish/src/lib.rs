//! The smallest program on which two models differ.
//!
//! | Module | What |
//! |---|---|
//! | [`shape`] | threads of instructions without orders, scopes and places, by size |
//! | [`letters`] | what orders and scopes an instruction may have, and how a program of such is written |
//! | [`outcome`] | what a program of a shape may show |
//! | [`reduced`] | a model as far as programs of some letters go |
//! | [`flat`] | a model's table over machine words |
//! | [`judge`] | a model, asked about small programs |
//! | [`mod@search`] | the search; [`fn@suite`], the minimal conformance suite of one model |
//!
//! Nothing here is the last word: what is found is a test as people write it, and whoever reports
//! it has it decided by the engines.
//!
//! # Sources
//! - Which programs, the weakest first, each forbidden and every weakening allowed: D. Lustig, A.
//!   Wright, A. Papakonstantinou, O. Giroux, "Automated Synthesis of Comprehensive Memory Model
//!   Litmus Test Suites", ASPLOS 2017.
//! - Programs that tell models apart: J. Wickerson, M. Batty, T. Sorensen, G. Constantinides,
//!   "Automatically Comparing Memory Consistency Models", POPL 2017.

pub mod flat;
pub mod judge;
pub mod letters;
pub mod outcome;
pub mod reduced;
pub mod search;
pub mod shape;

pub use judge::{Judged, Learnt, Says, says};
pub use letters::{Alphabet, Further};
pub use outcome::Tier;
pub use search::{Answer, Found, Minimal, Sought, Suite, Wanted, search, suite};
