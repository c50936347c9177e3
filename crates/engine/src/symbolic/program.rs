//! Wraps the program `z3` as a [`Solver`] over text, for builds without libz3 and for users who
//! name one.
//!
//! # Invariants
//! - The text of all clauses is kept. After a failure, another process gets all of it again.
//! - Everything is propositional, in the logic `QF_FD`, as with libz3.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use smtlib::{Failure, Process};

use super::sat::{SatLit, Solver, SolverAnswer};
use verdict::Reason;

/// How long the program may take to print an assignment.
const PRINTING: Duration = Duration::from_secs(60);

/// The program `z3` as a solver.
#[derive(Default)]
pub(super) struct Z3Program {
    /// Declarations and clauses.
    text: String,
    /// How much of the text the process has.
    sent: usize,
    process: Option<Process>,
    vars: u32,
    /// By variable: its value in the last assignment.
    assignment: Vec<bool>,
}

impl Z3Program {
    /// Brings a process up to date and asks; `sat`, `unsat` or `unknown`.
    fn check(&mut self, question: &str, deadline: Option<Instant>) -> Result<String, Failure> {
        if self
            .process
            .as_ref()
            .is_none_or(|process| !process.is_ready())
        {
            self.process = Some(Process::new()?);
            self.sent = 0;
        }
        let process = self.process.as_mut().expect("it was made above");
        let mut commands = String::new();
        if self.sent == 0 {
            commands += "(set-logic QF_FD)\n";
        }
        commands += &self.text[self.sent..];
        commands += question;
        let answer = process.ask(&commands, deadline)?;
        self.sent = self.text.len();
        Ok(answer)
    }

    /// Reads the assignment after `sat`.
    fn read(&mut self) -> Result<(), Failure> {
        let mut command = String::from("(get-value (");
        for var in 0..self.vars {
            let _ = write!(command, "v{var} ");
        }
        command += "))\n";
        self.assignment = vec![false; self.vars as usize];
        let (Some(process), true) = (&mut self.process, self.vars > 0) else {
            return Ok(());
        };
        let answer = process.ask(&command, Some(Instant::now() + PRINTING))?;
        for (name, value) in smtlib::values(&answer) {
            let var = name
                .strip_prefix('v')
                .and_then(|number| number.parse::<usize>().ok());
            if let Some(slot) = var.and_then(|var| self.assignment.get_mut(var)) {
                *slot = value == "true";
            }
        }
        Ok(())
    }

    /// The reason for `unknown`.
    fn reason(&mut self, deadline: Option<Instant>) -> Reason {
        let why = match &mut self.process {
            Some(process) => process.ask("(get-info :reason-unknown)\n", deadline),
            None => Ok(String::new()),
        };
        match why {
            _ if stop::late(deadline) => Reason::Time,
            Ok(why) if why.contains("timeout") || why.contains("canceled") => Reason::Time,
            Ok(why) if why.contains("memory") => Reason::Memory,
            Ok(why) => Reason::Engine(format!("the solver gave up: {why}")),
            Err(failure) => reason(failure),
        }
    }
}

impl Drop for Z3Program {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.put_back();
        }
    }
}

/// A literal as a term.
fn term(out: &mut String, literal: SatLit) {
    let _ = match literal.positive {
        true => write!(out, "v{} ", literal.var),
        false => write!(out, "(not v{}) ", literal.var),
    };
}

fn reason(failure: Failure) -> Reason {
    match failure {
        Failure::Time => Reason::Time,
        Failure::Memory => Reason::Memory,
        other => Reason::Engine(other.to_string()),
    }
}

impl Solver for Z3Program {
    fn new_var(&mut self, _: Option<bool>) -> u32 {
        let _ = writeln!(self.text, "(declare-const v{} Bool)", self.vars);
        self.vars += 1;
        self.vars - 1
    }

    fn add_clause(&mut self, clause: &[SatLit]) {
        // `or` takes one term, but not none.
        self.text += "(assert (or false ";
        clause
            .iter()
            .for_each(|&literal| term(&mut self.text, literal));
        self.text += "))\n";
    }

    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> SolverAnswer {
        if milliseconds == Some(0) {
            return SolverAnswer::Unknown(Reason::Time);
        }
        let deadline =
            milliseconds.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        let limit = milliseconds.map_or(u32::MAX, |ms| u32::try_from(ms).unwrap_or(u32::MAX));
        let mut question = format!("(set-option :timeout {limit})\n(check-sat-assuming (");
        assumptions
            .iter()
            .for_each(|&literal| term(&mut question, literal));
        question += "))\n";
        self.assignment.clear();
        let answer = match self.check(&question, deadline) {
            Ok(answer) => answer,
            Err(failure) => return SolverAnswer::Unknown(reason(failure)),
        };
        match answer.as_str() {
            "unsat" => SolverAnswer::Unsat,
            "sat" => match self.read() {
                Ok(()) => SolverAnswer::Sat,
                Err(failure) => SolverAnswer::Unknown(reason(failure)),
            },
            "unknown" | "timeout" => SolverAnswer::Unknown(self.reason(deadline)),
            other => SolverAnswer::Unknown(Reason::Engine(format!("Z3 printed `{other}`"))),
        }
    }

    fn value(&self, var: u32) -> bool {
        self.assignment
            .get(var as usize)
            .is_some_and(|&value| value)
    }
}
