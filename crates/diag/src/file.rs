//! Files that users name, read as a whole.
//!
//! # Invariants
//! - Only regular files are read: a pipe without a writer would be waited for, and a device may
//!   have no end.
//! - No more than the limit is ever held.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// No test, model or configuration is larger.
pub const LARGEST: u64 = 16 << 20;

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
/// What the system says; that it is something else than a file, or larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Looked at before it is opened, for that alone may wait for ever.
    regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    regular(&file.metadata()?)?;
    take(file, most)
}

/// All that can be read, if it is at most `most` bytes.
///
/// # Errors
/// What the system says; that it is larger.
pub fn take(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// What is wrong with what is no regular file.
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
