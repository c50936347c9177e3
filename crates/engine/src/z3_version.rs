//! Is libz3 there, and the one the bindings are made for?
//!
//! Nothing else asks: another version links, and may then answer wrongly, because the numbers of
//! its enumerations moved; and libz3 is loaded when it is first called, which is too late to tell
//! that it is not there. So every program that uses Z3 calls [`check`] before its first question.

/// What the bindings are made for: major and minor version. Patch releases within it are alike.
const EXPECTED: (u32, u32) = (5, 3);

/// The version of libz3, as it names itself. It is loaded if it is not.
///
/// # Errors
/// It cannot be loaded.
#[cfg(feature = "z3")]
pub fn loaded() -> Result<&'static str, UnusableZ3> {
    libz3::load()?;
    Ok(z3::full_version())
}

/// Without Z3 there is no version.
///
/// # Errors
/// None.
#[cfg(not(feature = "z3"))]
pub fn loaded() -> Result<&'static str, UnusableZ3> {
    Ok("")
}

/// Loads libz3 and compares it with the bindings.
///
/// # Errors
/// It cannot be loaded, or is not the version that the bindings are made for.
///
/// ```
/// engine::z3_version::check()?;
/// # Ok::<(), engine::z3_version::UnusableZ3>(())
/// ```
#[cfg(feature = "z3")]
pub fn check() -> Result<(), UnusableZ3> {
    compare(loaded()?)
}

/// Without Z3 there is nothing to check.
///
/// # Errors
/// None.
#[cfg(not(feature = "z3"))]
pub fn check() -> Result<(), UnusableZ3> {
    Ok(())
}

/// Z3 cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableZ3 {
    /// There is no libz3 to load.
    #[cfg(feature = "z3")]
    #[error(transparent)]
    Missing(#[from] libz3::Missing),
    /// A libz3 of another version was loaded.
    #[error(
        "the loader found {found} as libz3, but this program is made for Z3 {}.{}; see that LD_LIBRARY_PATH (macOS: \
         DYLD_LIBRARY_PATH) names no other libz3, and build inside the repository, so that its .cargo/config.toml is read",
        EXPECTED.0, EXPECTED.1
    )]
    Other {
        /// How it names itself.
        found: String,
    },
}

#[cfg_attr(not(feature = "z3"), allow(dead_code))] // tested without Z3 too
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
