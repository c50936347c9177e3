//! Fencepost: a memory-model checker for GPU programs.
//!
//! A litmus test is a tiny concurrent program with one question: can this outcome happen? Fencepost
//! unrolls the program into a graph of events, reads a memory model from a text, and answers under
//! that model with any of three engines.
//!
//! ```text
//!  litmus/*.toml ─▶ LitmusTest { Program, condition }    models/*.cat ─▶ Model { nodes, axioms }
//!                        │                                                   │
//!                   skeleton: guarded events, values as terms                │
//!                        ├───────────────────┬────────────────────┬──────────┤
//!                check::enumerate     check::symbolic      check::replay     (skeleton and model)
//!                        └───────────────────┴──────────┬─────────┘
//!                                     verdict ─▶ report ─▶ exit code
//! ```
//!
//! The rooms of the house are crates under `crates/`, of which this one is the public face:
//!
//! | Crate | What |
//! |---|---|
//! | [`diag`] | source text, spans, diagnostics |
//! | [`stop`] | a request to stop, from outside |
//! | [`verdict`] | answers and their evidence |
//! | `models`, `examples` | shipped models and tests, embedded |
//! | `cat` | the `.cat` language: [`model`], [`rel`], [`algebra`] |
//! | [`mod@program`] | the program IR, the machine, changes of programs, tests as data |
//! | `front` | instructions and mappings ([`program::isa`], [`program::mapping`]), [`litmus`] |
//! | [`simt`] | the executor: runs tests step by step |
//! | `engine` | [`skeleton`], the engines, replay, liveness |
//! | `why` | [`check::Session`], explanations, repairs |
//! | `device` | tests as kernels on real devices (feature `device`) |
//! | `operational` | what the executor observed, held against a model |
//! | [`report`] | output formats |
//! | `cli` | the command line (feature `cli`) |
//!
//! Arrows point one way, and cargo sees to it: `cat` knows no program, `simt` no model, `report` no
//! engine.
//!
//! # As a library
//!
//! ```toml
//! [dependencies]
//! fencepost = { version = "0.1", default-features = false }
//! ```
//!
//! Without its features the package is a library: no command line, no signal handler, no allocator,
//! and no Z3. It reads no environment variable, but for the engine `symbolic`, which looks for the
//! program `z3` in `FENCEPOST_Z3` and `PATH`.
//!
//! | Feature | Adds |
//! |---|---|
//! | `cli` (default) | the program `fencepost`, and the module `cli` |
//! | `z3` (default) | the engine `symbolic` with libz3 linked, which the build fetches |
//! | `device` | the module `device` |
//!
//! These follow semantic versioning: [`check::Session`], [`check::Engine`], [`check::Limits`],
//! [`verdict::Answer`], [`verdict::Verdict`], [`litmus::LitmusTest`], [`litmus::parse`],
//! [`model::ir::Model`] and [`model::load_shipped`]. A release with the same first number that is
//! not zero (before 1.0: the same second number) keeps their names and arguments. The rest may
//! change in any release.
//!
//! # Example
//!
//! ```
//! use fencepost::{check, litmus, model, skeleton::signature::signature, verdict::Verdict};
//!
//! let text = r#"
//! name = "MP"
//! condition = "P1:r0 == 1 && P1:r1 == 0"
//! memory = { x = 0, f = 0 }
//! [[thread]]
//! code = "st.weak x, 1; st.release.gpu f, 1"
//! [[thread]]
//! cta = 1
//! code = "ld.acquire.gpu r0, f; ld.weak r1, x"
//! "#;
//! let test = &litmus::parse("mp.toml", text.as_bytes()).expect("a valid test")[0];
//! let ptx = model::load_shipped("ptx", &signature()).expect("shipped").expect("valid");
//! let limits = check::Limits::default();
//! let session = check::Session::new(test, &ptx, check::Engine::Auto, limits, &[]);
//! let mut session = session.explaining();
//! let answer = session.reachability(None, false);
//! assert_eq!(answer.verdict, Verdict::Forbidden);
//! assert_eq!(answer.axioms, ["Causality"]);
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
// Who works on it reads the private parts too (`cargo doc --document-private-items`).
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(feature = "cli")]
pub mod cli;

pub use cat::{algebra, model, rel};
#[cfg(feature = "device")]
pub use device;
pub use {diag, report, simt, stop, verdict};

/// The program IR, front ends of instructions, and mappings.
pub mod program {
    pub use ::program::*;
    pub use front::{isa, mapping};
}

/// Litmus tests and their formats.
pub mod litmus {
    pub use front::litmus::*;
}

/// What a program fixes.
pub mod skeleton {
    pub use ::program::memory::{self, Cell, CellId, Memory};
    pub use engine::skeleton::*;
}

/// Questions about a test under a model.
pub mod check {
    pub use engine::*;
    pub use operational;
    pub use why::{Session, known_gap};
}
