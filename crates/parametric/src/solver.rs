//! The solver, asked in SMT-LIB: the only file that names it.
//!
//! # Invariants
//! - A question that is not answered in its time is [`Said::Unknown`], never a no.
//! - Numbers of a model are those of constants; functions are not read.

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

/// Asks a question in SMT-LIB.
#[cfg(feature = "z3")]
pub fn ask(text: &str, time: Duration) -> Said {
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
        SatResult::Sat => {
            let model = solver.get_model().map(|model| model.to_string());
            Said::Yes(values(&model.unwrap_or_default()))
        }
        SatResult::Unknown => {
            Said::Unknown(solver.get_reason_unknown().unwrap_or_else(|| "time".into()))
        }
    }
}

/// Without a solver nothing is answered.
#[cfg(not(feature = "z3"))]
pub fn ask(_: &str, _: Duration) -> Said {
    Said::Unknown("this program was built without a solver".into())
}

/// The numbers of constants in a model as it is printed: `t5 -> 3`, `t6 -> (- 1)`, `w7 -> #x0a`.
#[cfg_attr(not(feature = "z3"), allow(dead_code))]
fn values(model: &str) -> FxHashMap<String, i64> {
    let value = |text: &str| {
        let text = text.trim();
        if let Some(digits) = text.strip_prefix("#x") {
            return u64::from_str_radix(digits, 16).ok().map(|v| v as i64);
        }
        if let Some(rest) = text.strip_prefix("(-") {
            return rest
                .trim_end_matches(')')
                .trim()
                .parse()
                .map(|v: i64| -v)
                .ok();
        }
        text.parse().ok()
    };
    let line = |line: &str| {
        let (name, text) = line.split_once("->")?;
        Some((name.trim().to_string(), value(text)?))
    };
    model.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let all = values("t5 -> 3\nt6 -> (- 1)\nw7 -> #xffffffffffffffff\nf -> {\n  0\n}");
        assert_eq!((all["t5"], all["t6"], all["w7"]), (3, -1, -1));
    }

    #[cfg(feature = "z3")]
    #[test]
    fn questions_are_answered() {
        let time = Duration::from_secs(2);
        let asked = |text: &str| ask(text, time);
        let text = "(declare-fun x () Int)(assert (> x 2))(assert (< x 4))";
        let Said::Yes(all) = asked(text) else {
            panic!("3 is there");
        };
        assert_eq!(all["x"], 3);
        let no = "(declare-fun x () Int)(assert (> x 2))(assert (< x 3))";
        assert_eq!(asked(no), Said::No);
    }
}
