//! Fencepost: a memory-model checker for GPU programs.
//!
//! A litmus test is a tiny concurrent program with one question: can this outcome happen? Fencepost unrolls the program
//! into a graph of events, reads a memory model from a text, and answers under that model with either of two engines.
//!
//! ```text
//!  litmus/*.toml ─▶ LitmusTest { Program, condition, expectations }     models/*.cat ─▶ Model { nodes, free relations, axioms }
//!                        │                                                                │
//!                   skeleton: guarded events, values as terms                             │
//!                        ├───────────────────┬─────────────────────┬──────────────────────┤
//!                check::enumerate     check::symbolic        check::replay      (each reads skeleton and model)
//!                        └───────────────────┴──────────┬──────────┘
//!                                     verdict ─▶ report ─▶ exit code
//! ```
//!
//! | Module | What |
//! |---|---|
//! | [`diag`] | source text, spans, diagnostics |
//! | [`rel`] | events as integers, sets and relations of them |
//! | [`program`] | the program IR; instruction tables in [`program::isa`] |
//! | [`litmus`] | litmus tests: TOML, `.litmus`, conditions, expectations |
//! | [`skeleton`] | what a program fixes: events, guards, values, base relations |
//! | [`model`] | the `.cat` language, down to a table of relational operators |
//! | [`algebra`] | ways to run that table: on bits, on bounds, as gates |
//! | [`simt`] | the executor: runs tests step by step |
//! | [`check`] | the engines, and [`check::Session`], which answers questions |
//! | [`verdict`] | answers and their evidence |
//! | [`stop`] | a request to stop, from outside |
//! | [`report`], [`cli`] | output formats and the command line |
//!
//! Arrows point one way: `model` never sees `skeleton`, `report` never sees `check`.
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
//! let mut session = check::Session::new(test, &ptx, check::Engine::Auto, limits, &[]).explaining();
//! let answer = session.reachability(None, false);
//! assert_eq!(answer.verdict, Verdict::Forbidden);
//! assert_eq!(answer.axioms, ["Causality"]);
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
// Who works on it reads the private parts too (`cargo doc --document-private-items`).
#![allow(rustdoc::private_intra_doc_links)]

pub mod algebra;
pub mod check;
pub mod cli;
pub mod diag;
pub mod litmus;
pub mod model;
pub mod program;
pub mod rel;
pub mod report;
pub mod simt;
pub mod skeleton;
pub mod stop;
pub mod verdict;
