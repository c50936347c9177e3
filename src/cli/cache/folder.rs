//! Finds the cache's folder, by the conventions of the platform.
//!
//! # Sources
//! - *XDG Base Directory Specification*, Environment variables; macOS *File System Programming
//!   Guide*, Library directory; Windows *Known folders*, `FOLDERID_LocalAppData`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names the folder.
const FOLDER: &str = "FENCEPOST_CACHE_DIR";

/// If set, and not to an empty text or `0`, no verdicts are kept or looked up.
const OFF: &str = "FENCEPOST_NO_CACHE";

/// Whether the environment turns the cache off.
pub(in crate::cli) fn is_off() -> bool {
    set(OFF).is_some_and(|value| value != "0")
}

/// The folder that the environment names; else `configured`; else that of the platform. `None`: no
/// place exists.
pub(in crate::cli) fn default_folder(configured: Option<&Path>) -> Option<PathBuf> {
    if let Some(named) = set(FOLDER) {
        return Some(named.into());
    }
    configured
        .map(Path::to_owned)
        .or_else(|| of_platform(env::consts::OS, &set))
}

/// A variable with a value.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn of_platform(system: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification ignores relative paths in these variables.
    let folder = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = match system {
        "windows" => folder("LOCALAPPDATA"),
        "macos" => folder("HOME").map(|home| home.join("Library/Caches")),
        _ => folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache"))),
    };
    caches.map(|caches| caches.join("fencepost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_platform_has_its_place() {
        let with = |system: &str, variables: &[(&str, &str)]| {
            let get = |name: &str| {
                variables
                    .iter()
                    .find(|v| v.0 == name)
                    .map(|v| OsString::from(v.1))
            };
            of_platform(system, &get).map(|path| path.display().to_string())
        };
        let both = [("XDG_CACHE_HOME", "/c"), ("HOME", "/h")];
        assert_eq!(with("linux", &both).as_deref(), Some("/c/fencepost"));
        assert_eq!(
            with("linux", &both[1..]).as_deref(),
            Some("/h/.cache/fencepost")
        );
        assert_eq!(
            with("macos", &both).as_deref(),
            Some("/h/Library/Caches/fencepost")
        );
        let relative = [("XDG_CACHE_HOME", "c"), ("HOME", "/h")];
        assert_eq!(
            with("linux", &relative).as_deref(),
            Some("/h/.cache/fencepost")
        );
        assert_eq!(with("linux", &[]), None);
    }
}
