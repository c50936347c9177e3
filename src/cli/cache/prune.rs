//! Deletes verdicts that no build will look up again.
//!
//! Every build of this program has a folder, and never reads that of another one. When a build
//! first keeps a verdict, it deletes folders of other builds that have long been idle, and the
//! oldest ones if there are many.
//!
//! # Invariants
//! - Only folders with the names of builds are touched, and none that was written within
//!   [`IN_USE`].
//! - Nothing depends on it: a folder that cannot be deleted stays, without a message.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder written within this time is in use,
const IN_USE: Duration = Duration::from_secs(24 * 3600);
/// one not written within this time is forgotten,
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);
/// and between the two, this number is kept.
const KEPT: usize = 4;

/// Deletes the idle folders of other builds in `verdicts`.
pub(super) fn others(verdicts: &Path, build: &str) {
    let now = SystemTime::now();
    let entries = fs::read_dir(verdicts).into_iter().flatten().flatten();
    let mut found: Vec<(Duration, PathBuf)> = entries
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter(|e| {
            e.file_name()
                .to_str()
                .is_some_and(|name| name != build && like(name, build))
        })
        .map(|e| {
            (
                now.duration_since(last_write(&e.path()))
                    .unwrap_or_default(),
                e.path(),
            )
        })
        .filter(|(age, _)| *age > IN_USE)
        .collect();
    found.sort_unstable();
    for (i, (age, path)) in found.iter().enumerate() {
        if *age > FORGOTTEN || i >= KEPT {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Whether a name has the form of a build's.
fn like(name: &str, build: &str) -> bool {
    name.len() == build.len() && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The time of the last write into a folder or one of its shelves.
fn last_write(folder: &Path) -> SystemTime {
    fn of(path: &Path) -> Option<SystemTime> {
        fs::metadata(path).and_then(|data| data.modified()).ok()
    }
    let shelves = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| of(&e.path()));
    shelves
        .chain(of(folder))
        .max()
        .unwrap_or_else(SystemTime::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_folders_of_other_builds_go_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let day = Duration::from_secs(24 * 3600);
        let make = |name: &str, days: u32| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("ab")).unwrap();
            let then = SystemTime::now() - day * days;
            for path in [path.join("ab"), path] {
                fs::File::open(&path).unwrap().set_modified(then).unwrap();
            }
        };
        let own = "0".repeat(8);
        make(&own, 100);
        make("notes", 100);
        make("zzzzzzzz", 100);
        make("11111111", 0);
        for i in 2..8 {
            make(&i.to_string().repeat(8), i);
        }
        make("99999999", 40);
        others(folder.path(), &own);
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort_unstable();
        let kept = [
            "00000000", "11111111", "22222222", "33333333", "44444444", "55555555", "notes",
            "zzzzzzzz",
        ];
        assert_eq!(left, kept);
    }
}
