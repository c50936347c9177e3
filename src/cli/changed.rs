//! `--changed[=REV]`: the files that differ from a commit, and those that git does not know yet.
//!
//! # Invariants
//! - A test of a changed file is always kept. So is every test if a file has changed that any test
//!   may rest on: a model, a header, a configuration.
//! - Standard input has no file, and is kept.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use diag::Diagnostic;

/// Endings of files that tests of other files rest on.
const FOR_ALL: [&str; 6] = ["cat", "cuh", "h", "hh", "hpp", "inc"];

/// The files that changed.
#[derive(Clone, Default)]
pub(super) struct Changed {
    files: BTreeSet<PathBuf>,
    for_all: Option<String>,
}

impl Changed {
    /// The files that differ from a commit. Errors: no repository, no such commit, no git.
    pub(super) fn since(rev: &str) -> Result<Changed, Box<Diagnostic>> {
        let root = git(&["rev-parse", "--show-toplevel"])?;
        let root = Path::new(root.trim_end_matches('\n'));
        let commit = format!("{rev}^{{commit}}");
        git(&["rev-parse", "--verify", "--end-of-options", &commit])?;
        let folder = root.to_string_lossy();
        let differ = ["-C", &folder, "diff", "--name-only", "-z", rev, "--"];
        let new = [
            "-C",
            &folder,
            "ls-files",
            "-z",
            "--others",
            "--exclude-standard",
        ];
        let mut changed = Changed::default();
        for listed in [git(&differ)?, git(&new)?] {
            for name in listed.split('\0').filter(|name| !name.is_empty()) {
                changed.add(root, name);
            }
        }
        Ok(changed)
    }

    fn add(&mut self, root: &Path, name: &str) {
        let path = root.join(name);
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or("");
        let is_configuration = path.file_name() == Some(OsStr::new("fencepost.toml"));
        if is_configuration || FOR_ALL.contains(&ending) {
            self.for_all.get_or_insert_with(|| name.to_owned());
        }
        // A file that is gone has no tests.
        self.files.extend(fs::canonicalize(path));
    }

    /// The first changed file that any test may rest on, relative to the repository.
    pub(super) fn for_all(&self) -> Option<&str> {
        self.for_all.as_deref()
    }

    /// Whether the tests of a file are kept. `path` leads to it from the working directory.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.for_all.is_some()
            || fs::canonicalize(path).map_or(true, |path| self.files.contains(&path))
    }
}

/// The output of a git command; its first line of errors if it fails.
fn git(arguments: &[&str]) -> Result<String, Box<Diagnostic>> {
    fn failed(why: &str) -> Box<Diagnostic> {
        let plain = Diagnostic::plain("changed", format!("`--changed` needs git: {why}"));
        Box::new(plain.help("name a commit of the repository that holds the current folder"))
    }
    let output = Command::new("git")
        .args(arguments)
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(failed(errors.lines().next().unwrap_or("it failed")))
}
