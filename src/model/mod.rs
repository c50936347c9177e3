//! The model language: `.cat` text to relational IR.

pub mod ir;
pub mod signature;
