//! Shared parts of tests: random programs, oracles, changes of programs, folders of tests.
//!
//! | Module | Contents |
//! |---|---|
//! | `generate`, `rings`, `spins` | random programs in PTX: loose, critical cycles, loops that may hang |
//! | `mbarriers` | random programs in PTX with mbarrier objects |
//! | `clike` | random programs in OpenCL C, CUDA C++ and C |
//! | `sequential` | random programs of one thread in C and C++, also for a compiler of the language |
//! | `hosts`, `in_ptx` | random host programs; those with kernels in two languages |
//! | `made` | reads generated programs, and makes them smaller |
//! | `rewrite` | changes that must have no effect, or must only forbid |
//! | `interleave`, `lasso` | oracles: final states and endless behaviour of threads that take turns on one memory |
//! | `phases` | random kernels of one block with barriers and exits, and an oracle for them: vector clocks |
//! | `bytewise` | an oracle for accesses of several sizes in PTX, and programs for it |
//! | `redundant` | proofs that a model has the same meaning without a clause |
//! | `sides` | the executor's memories of languages, compared with their models |
//! | `suite`, `lines` | tests in folders, the extent of testing; lines of reports |
// Only tests make and examine these programs: the names of their fields suffice.
#![allow(missing_docs)]

pub mod bytewise;
pub mod clike;
pub mod generate;
pub mod hosts;
pub mod in_ptx;
pub mod interleave;
pub mod lasso;
pub mod lines;
pub mod made;
pub mod mbarriers;
pub mod phases;
pub mod redundant;
pub mod rewrite;
pub mod rings;
pub mod sequential;
pub mod sides;
pub mod spins;
pub mod suite;

/// Tests allocate as the program does.
#[global_allocator]
static ALLOCATOR: streams::CountingAllocator = streams::CountingAllocator;
