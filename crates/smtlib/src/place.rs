//! Finds the program `z3`, and checks its version.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The environment variable that names the program.
pub const VARIABLE: &str = "FENCEPOST_Z3";

/// The oldest version that is used: that of Debian 12. The tests run with 5.3.
pub const OLDEST: (u32, u32, u32) = (4, 8, 12);

/// Names the sources of the program, at the end of every error.
const ADVICE: &str = "get it with `pip install z3-solver` or `apt-get install z3`, or name it in \
    FENCEPOST_Z3";

/// The program `z3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolverBinary {
    /// Its file.
    pub path: PathBuf,
    /// Its version, as in `5.3.2`.
    pub version: String,
}

/// Why no program is usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableProgram {
    /// Neither folder has it.
    #[error(
        "this needs the program `z3`, which is neither in the folder of fencepost nor in PATH; \
        {ADVICE}"
    )]
    Missing,
    /// The user named a file that does not exist.
    #[error("{VARIABLE} is `{0}`, and there is no such file; {ADVICE}")]
    NoFile(PathBuf),
    /// It does not start, or prints no version.
    #[error("`{path}` is not the program `z3`: {reason}; {ADVICE}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// It is too old.
    #[error(
        "`{path}` is Z3 {version}, and the oldest usable version is {}.{}.{}; {ADVICE}",
        OLDEST.0, OLDEST.1, OLDEST.2
    )]
    Old {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: String,
    },
}

/// Whether the user named a program, which then replaces libz3.
pub fn is_chosen() -> bool {
    named().is_some()
}

/// Whether there is a file that may be the program. Starts nothing.
pub fn is_there() -> bool {
    located().is_ok()
}

/// The program, found and started once to ask for its version.
///
/// # Errors
/// The program is missing or unusable.
pub fn program() -> Result<&'static SolverBinary, UnusableProgram> {
    static PROGRAM: OnceLock<Result<SolverBinary, UnusableProgram>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            located()
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|path| checked(path))
        })
        .as_ref()
        .map_err(Clone::clone)
}

/// The name that the user gave; an empty one counts as none.
fn named() -> Option<OsString> {
    env::var_os(VARIABLE).filter(|name| !name.is_empty())
}

fn located() -> &'static Result<PathBuf, UnusableProgram> {
    static LOCATED: OnceLock<Result<PathBuf, UnusableProgram>> = OnceLock::new();
    LOCATED.get_or_init(|| {
        let folder = env::current_exe().ok();
        let folder = folder.as_deref().and_then(Path::parent);
        locate(named(), folder, env::var_os("PATH").unwrap_or_default())
    })
}

/// The file, from the variable, the program's own folder, and the folders of `PATH`.
fn locate(
    named: Option<OsString>,
    own: Option<&Path>,
    path: OsString,
) -> Result<PathBuf, UnusableProgram> {
    if let Some(named) = named {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(UnusableProgram::NoFile(named))
        };
    }
    let file = format!("z3{}", env::consts::EXE_SUFFIX);
    own.map(Path::to_path_buf)
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
        .ok_or(UnusableProgram::Missing)
}

/// Starts the program for its version.
fn checked(path: &Path) -> Result<SolverBinary, UnusableProgram> {
    fn wrong(reason: String, path: &Path) -> UnusableProgram {
        UnusableProgram::Wrong {
            path: path.to_path_buf(),
            reason,
        }
    }
    let done = Command::new(path)
        .arg("-version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| wrong(error.to_string(), path))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    // `Z3 version 5.3.2 - 64 bit`
    let version = said
        .strip_prefix("Z3 version ")
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or_else(|| {
            wrong(
                format!("`{} -version` prints no version of Z3", path.display()),
                path,
            )
        })?;
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let mut part = || parts.next().flatten().unwrap_or(0);
    if (part(), part(), part()) < OLDEST {
        return Err(UnusableProgram::Old {
            path: path.to_path_buf(),
            version: version.to_owned(),
        });
    }
    Ok(SolverBinary {
        path: path.to_path_buf(),
        version: version.to_owned(),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that prints this text.
    fn script(folder: &Path, says: &str) -> PathBuf {
        let path = folder.join("z3");
        fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        path
    }

    #[test]
    fn only_a_recent_z3_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let version = |says: &str| checked(&script(folder.path(), says));
        for (says, version_of) in [
            ("Z3 version 4.8.12 - 64 bit", "4.8.12"),
            ("Z3 version 5.3.2 - 64 bit", "5.3.2"),
        ] {
            assert_eq!(version(says).expect("usable").version, version_of);
        }
        let old = version("Z3 version 4.8.7 - 64 bit").expect_err("too old");
        assert!(matches!(old, UnusableProgram::Old { .. }), "{old}");
        let other = version("cvc5 1.2.0").expect_err("another solver");
        assert!(other.to_string().contains("prints no version"), "{other}");
    }

    #[test]
    fn the_user_the_folder_and_the_path_come_in_this_order() {
        let [own, path] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let search = || path.path().as_os_str().to_owned();
        let locate = |named: Option<OsString>| locate(named, Some(own.path()), search());
        let missing = locate(None).expect_err("nothing there");
        assert!(missing.to_string().contains("pip install z3-solver"));
        let last = script(path.path(), "");
        assert_eq!(locate(None), Ok(last.clone()));
        assert_eq!(locate(None), Ok(last.clone()));
        let first = script(own.path(), "");
        assert_eq!(locate(None), Ok(first));
        assert_eq!(locate(Some(last.clone().into())), Ok(last));
        // A wrong name is an error: another Z3 in its place would be a surprise.
        let wrong = locate(Some("missing/z3".into()));
        assert_eq!(wrong, Err(UnusableProgram::NoFile("missing/z3".into())));
    }
}
