//! Keeps verdicts in files between runs.
//!
//! # Invariants
//! - A kept answer prints exactly as when it was found: the file has the whole [`Answer`].
//! - The lookup key has everything that an answer depends on ([`key`]), the build of this program
//!   included. A file of another build is never read.
//! - Only answers that do not depend on the clock are kept: every answer of a (test, model) pair
//!   was decided, and none of them came near its time limit. The answers of a pair are kept
//!   together, because they share a session.
//! - A fault of the cache changes no verdict and no exit code. A file that is cut, changed or
//!   unreadable is a warning, and the questions are put again; a folder that cannot be written is a
//!   warning.
//! - Several processes may use one folder: an entry appears as a whole or not at all
//!   ([`super::files`]), and two processes that write one entry write the same.
//!
//! # Layout
//! `verdicts/BUILD/XX/REST`, where `XX` and `REST` are the key. The folder may be deleted at any
//! time. [`prune`] deletes the entries of old builds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::files;
use super::plan::Unit;
use super::settings::Settings;
use diag::Diagnostic;
use verdict::Answer;

mod entry;
mod folder;
mod key;
mod prune;

pub(super) use folder::{default_folder, is_off};
pub(super) use key::Keys;
use key::{BUILD, Key};

/// The largest entry, in bytes.
const LARGEST: u64 = 64 << 20;

/// Kept verdicts of this build.
pub(super) struct Cache {
    folder: PathBuf,
    keys: Keys,
    hits: AtomicUsize,
    troubles: Mutex<Troubles>,
}

/// Faults: the first of each kind, and their number.
#[derive(Default)]
struct Troubles {
    damaged: Option<(PathBuf, String)>,
    damaged_count: usize,
    unwritable: Option<(PathBuf, io::Error)>,
}

impl Cache {
    /// A cache in a folder, which need not exist.
    pub(super) fn new(folder: &Path) -> Cache {
        Cache {
            folder: folder.join("verdicts").join(BUILD),
            keys: Keys::default(),
            hits: AtomicUsize::new(0),
            troubles: Mutex::default(),
        }
    }

    /// The key of a pair's answers.
    pub(super) fn key(&self, unit: &Unit<'_>, settings: &Settings, explain: bool) -> Key {
        self.keys.of(unit, settings, explain)
    }

    /// The answers to a pair's questions, if they are known; `None` is a question that the model
    /// has no words for.
    pub(super) fn get(&self, key: &Key, questions: usize) -> Option<Vec<Option<Answer>>> {
        let path = self.path(key);
        let bytes = match diag::file::read(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.damaged(path, format!("cannot be read: {error}"));
                return None;
            }
        };
        match entry::read(&bytes, key, questions) {
            Ok(answers) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                Some(answers)
            }
            Err(what) => {
                self.damaged(path, what.to_owned());
                None
            }
        }
    }

    /// Keeps the answers of a pair.
    pub(super) fn put(&self, key: &Key, answers: &[Option<Answer>]) {
        let path = self.path(key);
        let kept = entry::write(key, answers).and_then(|bytes| {
            if let (Some(verdicts), false) = (self.folder.parent(), self.folder.exists()) {
                prune::others(verdicts, BUILD);
            }
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            files::keep(&path, &bytes)
        });
        if let Err(error) = kept {
            self.troubles().unwritable.get_or_insert((path, error));
        }
    }

    /// The number of pairs answered from here.
    pub(super) fn hits(&self) -> usize {
        self.hits.load(Ordering::Relaxed)
    }

    /// Warnings about faults since the last call.
    pub(super) fn warnings(&self) -> Vec<Diagnostic> {
        let troubles = std::mem::take(&mut *self.troubles());
        let damaged = troubles.damaged.map(|(path, what)| {
            let more = match troubles.damaged_count {
                0 | 1 => String::new(),
                n => format!(" (and {} more like it)", n - 1),
            };
            let message = format!(
                "a verdict in the cache cannot be used: `{}` {what}{more}",
                path.display()
            );
            Diagnostic::plain("damaged-cache", message)
                .help("no answer is lost: the questions were decided again")
        });
        let unwritable = troubles.unwritable.map(|(path, error)| {
            let message = format!(
                "the cache cannot store verdicts: `{}`: {error}",
                path.display()
            );
            let help = "name another folder in FENCEPOST_CACHE_DIR, or give `--no-cache`";
            Diagnostic::plain("unwritable-cache", message).help(help)
        });
        damaged
            .into_iter()
            .chain(unwritable)
            .map(Diagnostic::warning)
            .collect()
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = key.to_string();
        let (shelf, rest) = name.split_at(2);
        self.folder.join(shelf).join(rest)
    }

    fn damaged(&self, path: PathBuf, what: String) {
        let mut troubles = self.troubles();
        troubles.damaged_count += 1;
        troubles.damaged.get_or_insert((path, what));
    }

    fn troubles(&self) -> std::sync::MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
