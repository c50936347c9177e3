//! What tests share: random programs, files, models, lines of reports.
#![allow(dead_code, unreachable_pub)] // each test file uses a part of it

pub mod clike;
pub mod generate;
pub mod hosts;
pub mod in_ptx;
pub mod interleave;
pub mod lasso;
pub mod lines;
pub mod rewrite;
pub mod rings;
pub mod sides;
pub mod spins;
pub mod suite;
