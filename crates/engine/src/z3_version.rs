//! Checks that libz3 is there and has the version that the bindings need.
//!
//! No other code checks this. Another version links, and may then answer wrongly, because the
//! numbers of its enumerations differ. A missing libz3 would show only at the first call, too late
//! for an error. So every program that uses Z3 calls [`check`] before its first question.

/// Major and minor version of Z3 that the bindings need. Patch releases of it are alike.
const EXPECTED: (u32, u32) = (5, 3);

/// The version of Z3 that answers: that of the program `z3` if the user named one or the build has
/// no libz3, otherwise the version that libz3 reports. Loads or starts it first if necessary.
///
/// # Errors
/// Z3 is not there, or the program is too old.
pub fn loaded() -> Result<&'static str, UnusableZ3> {
    #[cfg(feature = "z3")]
    if !smtlib::is_chosen() {
        libz3::load()?;
        return Ok(z3::full_version());
    }
    Ok(&smtlib::program()?.version)
}

/// Finds Z3 and checks its version: libz3 must have that of the bindings, and the program must not
/// be too old.
///
/// # Errors
/// Z3 is not there, or has an unusable version.
///
/// ```
/// # if cfg!(feature = "z3") {
/// engine::z3_version::check()?;
/// # }
/// # Ok::<(), engine::z3_version::UnusableZ3>(())
/// ```
pub fn check() -> Result<(), UnusableZ3> {
    let version = loaded()?;
    if cfg!(feature = "z3") && !smtlib::is_chosen() {
        compare(version)?;
    }
    Ok(())
}

/// Whether Z3 can probably be asked. Loads and starts nothing.
pub fn is_there() -> bool {
    cfg!(feature = "z3") || smtlib::is_there()
}

/// Why Z3 is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableZ3 {
    /// The loader found no libz3.
    #[cfg(feature = "z3")]
    #[error(transparent)]
    Missing(#[from] libz3::MissingLibrary),
    /// The program `z3` is missing or unusable.
    #[error(transparent)]
    Program(#[from] smtlib::UnusableProgram),
    /// The loader loaded a libz3 of another version.
    #[error(
        "the loader found {found} as libz3, but this program is made for Z3 {}.{}; see that \
        LD_LIBRARY_PATH (macOS: \
         DYLD_LIBRARY_PATH) names no other libz3, and build inside the repository, so that its \
         .cargo/config.toml is read",
        EXPECTED.0, EXPECTED.1
    )]
    Other {
        /// The version that it reports.
        found: String,
    },
}

fn compare(found: &str) -> Result<(), UnusableZ3> {
    // `5.3.2.0`; builds from a source tree may add words.
    let number = found
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = number
        .unwrap_or("")
        .split('.')
        .map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) == EXPECTED => Ok(()),
        _ => Err(UnusableZ3::Other {
            found: found.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_expected_version_passes() {
        for good in ["5.3.2.0", "Z3 5.3.2.0", "5.3.9.1 abc"] {
            assert_eq!(compare(good), Ok(()), "{good}");
        }
        for bad in ["4.8.12.0", "4.13.3.0", "5.30.0.0", "", "unknown"] {
            assert!(compare(bad).is_err(), "{bad}");
        }
    }

    #[cfg(feature = "z3")]
    #[test]
    fn a_solver_of_the_expected_version_runs() {
        use z3::ast::Bool;
        use z3::{SatResult, Solver};

        assert_eq!(check(), Ok(()));
        let solver = Solver::new();
        let (a, b) = (Bool::new_const("a"), Bool::new_const("b"));
        solver.assert(Bool::or(&[&a, &b]));
        assert_eq!(solver.check_assumptions(&[a.not()]), SatResult::Sat);
        assert_eq!(
            solver.check_assumptions(&[a.not(), b.not()]),
            SatResult::Unsat
        );
    }
}
