//! The smallest program on which two models differ.
//!
//! | Module | What |
//! |---|---|
//! | [`shape`] | threads of instructions without orders, scopes and places, by size |
//! | [`letters`] | the orders and scopes of an instruction, and the text of a program |
//! | [`outcome`] | the possible results of a program of a shape |
//! | [`reduced`] | a model reduced to programs of some letters |
//! | [`flat`] | a model's table over machine words |
//! | [`judge`] | a model's answers for small programs |
//! | [`mod@search`] | the search; [`fn@suite`], the minimal conformance suite of one model |
//!
//! These results are not final: each is written as a test, and the caller has the engines decide
//! it.
//!
//! # Sources
//! - The programs in a suite, weakest first, each forbidden with every weakening allowed: D.
//!   Lustig, A. Wright, A. Papakonstantinou, O. Giroux, "Automated Synthesis of Comprehensive
//!   Memory Model Litmus Test Suites", ASPLOS 2017.
//! - Programs that distinguish models: J. Wickerson, M. Batty, T. Sorensen, G. Constantinides,
//!   "Automatically Comparing Memory Consistency Models", POPL 2017.

pub mod flat;
pub mod judge;
pub mod letters;
pub mod outcome;
pub mod reduced;
pub mod search;
pub mod shape;

pub use judge::{JudgeSetup, LetterMeanings, ModelSummary, says};
pub use letters::{Alphabet, Further};
pub use outcome::Tier;
pub use search::{
    DifferingProgram, MinimalSuite, MinimalTest, SearchAnswer, SearchRequest, SuiteRequest, search,
    suite,
};
