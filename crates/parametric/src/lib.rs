//! Kernels for every launch: races and divergence with unknown threads, inputs and sizes.
//!
//! | Module | What |
//! |---|---|
//! | [`term`] | values of a thread whose number is not known |
//! | `layout` | code in an order in which loops are ranges |
//! | [`exec`], `loops` | what one thread does: accesses and barriers, with conditions |
//! | [`operations`] | what is noted of operations beside accesses |
//! | [`memory`], [`objects`] | the same for accesses, and for mbarrier objects |
//! | `group_copies` | the same for asynchronous copies of work-groups |
//! | [`launch`], [`assume`] | what holds of coordinates, sizes and arguments |
//! | [`pairs`] | questions about two threads |
//! | `asking` | such questions, in both arithmetics |
//! | `bounds` | questions about the sizes of objects |
//! | `overflow` | questions about numbers that leave their types |
//! | [`phases`] | what mbarrier objects order |
//! | [`integers`], [`words`] | questions as SMT-LIB: without overflow, or as machines compute |
//! | [`solver`] | the solver |
//! | [`mod@decide`] | answers about a kernel |
//! | [`replay`] | possible races, tried on a small launch by the exact engines |
//! | `trace` | two threads of such a launch, shortened to two accesses |

mod asking;
pub mod assume;
mod barriers;
mod bounds;
pub mod decide;
pub mod exec;
mod group_copies;
pub mod integers;
pub mod launch;
mod layout;
mod loops;
pub mod memory;
pub mod objects;
pub mod operations;
mod overflow;
pub mod pairs;
pub mod phases;
pub mod replay;
pub mod solver;
pub mod term;
mod trace;
pub mod words;

pub use decide::{
    KernelInput, KernelLimits, KernelProperty, KernelVerdict, Proved, decide, decide_for, unreached,
};
pub use launch::Sizes;
