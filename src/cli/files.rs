//! Writes files that exist as a whole or not at all.
//!
//! # Invariants
//! - A reader of the path sees the old content or the new one, never a part: the new content goes
//!   to a file beside it, which then takes its name.
//! - A path that is no regular file (a device, a pipe) is written directly: it cannot be replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Whether a path can be replaced: it names a regular file, or nothing yet.
pub(super) fn replaceable(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |data| data.is_file())
}

/// Finds out whether a path can be written to, and changes nothing.
pub(super) fn probe(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if replaceable(path) {
        beside(&behind_links(path)).map(drop)
    } else {
        Ok(())
    }
}

/// Gives a file this content.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if !replaceable(path) {
        return File::create(path)?.write_all(content);
    }
    let path = behind_links(path);
    let mut new = beside(&path)?;
    new.write_all(content)?;
    new.persist(&path).map(drop).map_err(|e| e.error)
}

/// As [`replace`], for an internal file, which is read again: never anything but a regular file.
pub(super) fn keep(path: &Path, content: &[u8]) -> io::Result<()> {
    if replaceable(path) {
        replace(path, content)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// A link stays one: its target is replaced.
fn behind_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A new file in the same folder, which goes away unless it takes the path's name.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".fencepost-").suffix(".tmp");
    let permissions = fs::metadata(path).map(|data| data.permissions()).ok();
    #[cfg(unix)]
    let permissions =
        permissions.or_else(|| Some(std::os::unix::fs::PermissionsExt::from_mode(0o666)));
    if let Some(permissions) = permissions {
        builder.permissions(permissions);
    }
    builder
        .tempfile_in(folder)
        .map_err(|error| without_path(&error))
}

/// The error without the name of the file beside it, which is internal.
fn without_path(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let alone = text
        .split_once(" at path ")
        .map_or(text.as_str(), |(alone, _)| alone);
    io::Error::new(error.kind(), alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        probe(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        replace(&path, b"old, and longer").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }

    #[test]
    fn an_error_names_no_file_that_nobody_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace(&folder.path().join("missing/a"), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains(".fencepost-"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_written_to_and_says_when_it_is_full() {
        assert!(probe(Path::new("/dev/full")).is_ok());
        assert!(replace(Path::new("/dev/full"), b"x").is_err());
        assert!(replace(Path::new("/dev/null"), b"x").is_ok());
    }
}
