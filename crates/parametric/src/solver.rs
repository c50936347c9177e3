//! Runs the solver on questions in SMT-LIB: the only file that names it.
//!
//! # Invariants
//! - A question that is not answered in its time is [`Said::Unknown`], never a no.
//! - A model gives numbers for the constants that a question names. To print a whole model takes
//!   ten times as long as to find it.

use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

/// How long the program may take to print numbers.
const PRINTING: Duration = Duration::from_secs(20);

/// What a solver says of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The conditions cannot hold together.
    No,
    /// They can, with these values of constants.
    Yes(FxHashMap<String, i64>),
    /// It is not known, and why.
    Unknown(String),
}

/// Whether there is a solver: libz3 in this build, or the program `z3`.
pub fn is_there() -> bool {
    engine::z3_version::is_there()
}

/// Which constants of a question have numbers, and in which arithmetic.
#[derive(Clone, Copy, Debug)]
pub enum SolverConstants<'a> {
    /// No number is of interest.
    Nothing,
    /// These are words of 64 bits.
    Words(&'a [String]),
}

/// Asks a question in SMT-LIB.
pub fn ask(text: &str, time: Duration, wanted: SolverConstants<'_>) -> Said {
    if let Err(error) = engine::z3_version::check() {
        return Said::Unknown(error.to_string());
    }
    #[cfg(feature = "z3")]
    if !smtlib::is_chosen() {
        return ask_library(text, time, wanted);
    }
    ask_program(text, time, wanted).unwrap_or_else(|failure| Said::Unknown(failure.to_string()))
}

/// Asks the program `z3`.
fn ask_program(
    text: &str,
    time: Duration,
    wanted: SolverConstants<'_>,
) -> Result<Said, smtlib::Failure> {
    let mut process = smtlib::Process::new()?;
    let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1);
    let commands = format!("(set-option :timeout {millis})\n{text}\n(check-sat)\n");
    let deadline = Instant::now().checked_add(time);
    let said = match process.ask(&commands, deadline)?.as_str() {
        "unsat" => Said::No,
        "sat" => Said::Yes(printed_values(&mut process, text, wanted)?),
        _ => Said::Unknown(process.ask("(get-info :reason-unknown)\n", deadline)?),
    };
    process.put_back();
    Ok(said)
}

/// The numbers that the program prints for the constants that the question declares.
fn printed_values(
    process: &mut smtlib::Process,
    text: &str,
    wanted: SolverConstants<'_>,
) -> Result<FxHashMap<String, i64>, smtlib::Failure> {
    let SolverConstants::Words(names) = wanted else {
        return Ok(FxHashMap::default());
    };
    let declared: FxHashSet<&str> = text
        .split("(declare-fun ")
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    let names = names.iter().map(String::as_str);
    let names: Vec<&str> = names.filter(|name| declared.contains(name)).collect();
    if names.is_empty() {
        return Ok(FxHashMap::default());
    }
    let command = format!("(get-value ({}))\n", names.join(" "));
    let answer = process.ask(&command, Instant::now().checked_add(PRINTING))?;
    fn number(value: &str) -> Option<u64> {
        u64::from_str_radix(value.strip_prefix("#x")?, 16).ok()
    }
    Ok(smtlib::values(&answer)
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), number(value)?.cast_signed())))
        .collect())
}

/// Asks libz3.
#[cfg(feature = "z3")]
fn ask_library(text: &str, time: Duration, wanted: SolverConstants<'_>) -> Said {
    use z3::{Params, SatResult, Solver};
    let solver = Solver::new();
    let mut params = Params::new();
    let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    params.set_u32("timeout", millis.max(1));
    params.set_bool("ctrl_c", false);
    solver.set_params(&params);
    solver.from_string(text);
    match solver.check_assumptions(&[]) {
        SatResult::Unsat => Said::No,
        SatResult::Sat => Said::Yes(values(&solver, wanted)),
        SatResult::Unknown => {
            Said::Unknown(solver.get_reason_unknown().unwrap_or_else(|| "time".into()))
        }
    }
}

/// The numbers that a solver has found.
#[cfg(feature = "z3")]
fn values(solver: &z3::Solver, wanted: SolverConstants<'_>) -> FxHashMap<String, i64> {
    let (SolverConstants::Words(names), Some(model)) = (wanted, solver.get_model()) else {
        return FxHashMap::default();
    };
    names
        .iter()
        .filter_map(|name| {
            let word = z3::ast::BV::new_const(name.as_str(), 64);
            let value = model.eval(&word, false)?.as_u64()?;
            Some((name.clone(), value as i64))
        })
        .collect()
}

#[cfg(all(test, feature = "z3"))]
mod tests {
    use super::*;

    #[test]
    fn questions_are_answered() {
        let time = Duration::from_secs(2);
        let names = ["x", "y", "unsaid"].map(String::from);
        let asked = |text: &str| ask(text, time, SolverConstants::Words(&names));
        let x = "(declare-fun x () (_ BitVec 64))";
        let y = "(declare-fun y () (_ BitVec 64))(assert (= y (bvsub #x0000000000000000 x)))";
        let above = format!("{x}{y}(assert (bvugt x #x0000000000000002))");
        let Said::Yes(all) = asked(&format!("{above}(assert (bvult x #x0000000000000004))")) else {
            panic!("3 is there");
        };
        assert_eq!((all["x"], all["y"], all.get("unsaid")), (3, -3, None));
        let no = asked(&format!("{above}(assert (bvult x #x0000000000000003))"));
        assert_eq!(no, Said::No);
    }
}
