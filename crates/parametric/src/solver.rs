//! Runs the solver on questions in SMT-LIB: the only file that names it.
//!
//! # Invariants
//! - A question that is not answered in its time is [`Said::Unknown`], never a no.
//! - A model gives numbers for the constants that a question names. To print a whole model takes
//!   ten times as long as to find it.

use std::time::Duration;

use rustc_hash::FxHashMap;

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

/// Whether there is a solver.
pub const IS_THERE: bool = cfg!(feature = "z3");

/// Which constants of a question have numbers, and in which arithmetic.
#[derive(Clone, Copy, Debug)]
pub enum SolverConstants<'a> {
    /// No number is of interest.
    Nothing,
    /// These are words of 64 bits.
    Words(&'a [String]),
}

/// Asks a question in SMT-LIB.
#[cfg(feature = "z3")]
pub fn ask(text: &str, time: Duration, wanted: SolverConstants<'_>) -> Said {
    use z3::{Params, SatResult, Solver};
    if let Err(error) = engine::z3_version::check() {
        return Said::Unknown(error.to_string());
    }
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

/// Without a solver nothing is answered.
#[cfg(not(feature = "z3"))]
pub fn ask(_: &str, _: Duration, _: SolverConstants<'_>) -> Said {
    Said::Unknown("this program was built without a solver".into())
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
