//! Reads whole files that users name.
//!
//! # Invariants
//! - Only regular files are read: reading a pipe without a writer would block, and a device may
//!   have no end.
//! - At most the limit plus one byte is held in memory.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// The size limit in bytes; no test, model or configuration is larger.
pub const LARGEST: u64 = 16 << 20;

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// The error of the system, or one that says that the path is not a regular file or that the file
/// is too large.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // The type is checked before opening, because opening a pipe can block forever.
    regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    regular(&file.metadata()?)?;
    take(file, most)
}

/// Reads everything from a source, if it is at most `most` bytes.
///
/// # Errors
/// The error of the system, or one that says that the content is too large.
pub fn take(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Fails with the reason if the file is not a regular one.
fn regular(data: &Metadata) -> io::Result<()> {
    if data.is_file() {
        return Ok(());
    }
    let what = if data.is_dir() {
        "a folder"
    } else {
        "a pipe, a device or a socket"
    };
    let message = format!("it is {what}, and only regular files are read");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds() {
        assert_eq!(take(&b"abc"[..], 3).unwrap(), b"abc");
        assert_eq!(
            take(&b"abc"[..], 2).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn folders_and_devices_are_no_files() {
        assert!(
            read(Path::new("."), 1)
                .unwrap_err()
                .to_string()
                .contains("a folder")
        );
        #[cfg(unix)]
        assert!(
            read(Path::new("/dev/zero"), 1)
                .unwrap_err()
                .to_string()
                .contains("a device")
        );
    }
}
