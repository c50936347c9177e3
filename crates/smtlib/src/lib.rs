//! Runs the program `z3` and asks it in SMT-LIB: commands go in, answers come out.
//!
//! A build without libz3, such as the static program, answers with it all that needs Z3. The user
//! names the program in `FENCEPOST_Z3`; then a build with libz3 uses it too.
//!
//! # Invariants
//! - [`Process::ask`] ends when the deadline passes or [`stop::late`] holds, whatever the program
//!   does.
//! - An answer is used only if the program printed it whole and printed no error. Everything else
//!   is a [`Failure`].
//! - The program ends with its [`Process`], or with this program: its standard input closes.
//!
//! # Sources
//! - *The SMT-LIB Standard*, version 2.7, Commands: `check-sat-assuming`, `get-value`, `reset`,
//!   `echo`.

mod place;
mod process;

pub use place::{OLDEST, SolverBinary, UnusableProgram, VARIABLE, is_chosen, is_there, program};
pub use process::{Failure, Process, values};
