//! The skeleton: what the program fixes.

pub mod signature;
