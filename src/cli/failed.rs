//! Remembers the failures of the last run over the same paths, for `--rerun-failed`.
//!
//! # Invariants
//! - A question that a run skipped keeps its place in the record; an answered one is in it if and
//!   only if it failed. A run over everything replaces the record.
//! - An unreadable record is a warning, and counts as none: everything is asked.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::digest::{hex, sha256};
use super::files;
use diag::{Diagnostic, file};
use report::{AnswerLine, QueryStatus};
use verdict::Property;

/// Path, test, model, property.
type QuestionNames = (String, String, String, String);

/// Questions that failed: not met, undecided, or a defect.
#[derive(Clone, Debug, Default)]
pub(super) struct FailureList(BTreeSet<QuestionNames>);

impl FailureList {
    /// Whether nothing failed.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a question is among them.
    pub(super) fn has(&self, path: &str, test: &str, model: &str, property: &Property) -> bool {
        self.0
            .contains(&(path.into(), test.into(), model.into(), property.to_string()))
    }
}

/// The record of one folder and list of paths, and the answers since it was read.
pub(super) struct FailedRecord {
    file: PathBuf,
    failed: BTreeSet<QuestionNames>,
    asked: BTreeSet<QuestionNames>,
}

impl FailedRecord {
    /// The record of runs over `paths` from the current folder.
    pub(super) fn open(folder: &Path, paths: &[PathBuf]) -> FailedRecord {
        let mut name = env::current_dir().unwrap_or_default().into_os_string();
        for path in paths {
            name.push("\0");
            name.push(path);
        }
        let file = folder
            .join("failed")
            .join(hex(&sha256(name.as_encoded_bytes())));
        FailedRecord {
            file,
            failed: BTreeSet::new(),
            asked: BTreeSet::new(),
        }
    }

    /// The earlier failures; `None`: unknown. A fault of the file is a warning.
    pub(super) fn before(&self) -> (Option<FailureList>, Option<Diagnostic>) {
        let read = || -> io::Result<BTreeSet<QuestionNames>> {
            Ok(serde_json::from_slice(&file::read(
                &self.file,
                file::LARGEST,
            )?)?)
        };
        match read() {
            Ok(failed) => (Some(FailureList(failed)), None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(error) => {
                let message = format!(
                    "the record of the last failures cannot be read: `{}`: {error}",
                    self.file.display()
                );
                (
                    None,
                    Some(Diagnostic::plain("damaged-record", message).warning()),
                )
            }
        }
    }

    /// Notes an answer.
    pub(super) fn note(&mut self, line: &AnswerLine) {
        let asked = (
            line.path.clone(),
            line.test.clone(),
            line.model.clone(),
            line.property.to_string(),
        );
        let status = line.status();
        if status.fails() || matches!(status, QueryStatus::Undecided(_) | QueryStatus::Defect) {
            self.failed.insert(asked.clone());
        }
        self.asked.insert(asked);
    }

    /// Writes the record; `everything`: the run covered all tests.
    pub(super) fn write(mut self, everything: bool) -> Option<Diagnostic> {
        if !everything && let (Some(FailureList(before)), _) = self.before() {
            self.failed.extend(
                before
                    .into_iter()
                    .filter(|asked| !self.asked.contains(asked)),
            );
        }
        let written = serde_json::to_vec(&self.failed)
            .map_err(io::Error::from)
            .and_then(|bytes| {
                if let Some(folder) = self.file.parent() {
                    fs::create_dir_all(folder)?;
                }
                files::keep(&self.file, &bytes)
            });
        let error = written.err()?;
        let message = format!(
            "the failures cannot be recorded for `--rerun-failed`: `{}`: {error}",
            self.file.display()
        );
        Some(Diagnostic::plain("unwritable-record", message).warning())
    }
}
