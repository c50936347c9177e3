//! Reads the headers in the folder of a source file that includes them.
//!
//! # Invariants
//! - No file outside of the folder of the source file is read.

use std::path::{Path, PathBuf};

use diag::file;
use front::litmus::source::{Options, SourceKind, included};

/// The largest size of a header, and the largest number of them.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 64;

/// The headers of a file: the word behind `#include`, the name, and the text of each.
pub(super) fn beside(path: &Path, text: &str) -> Vec<(String, String, String)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found: Vec<(String, String, String)> = Vec::new();
    let mut open: Vec<(PathBuf, String)> = vec![(folder.to_owned(), text.to_owned())];
    while let Some((near, text)) = open.pop() {
        for name in included(&text) {
            if found.len() == MOST || found.iter().any(|header| header.0 == name) {
                continue;
            }
            let places = [near.join(name), folder.join(name)];
            let Some(place) = places.into_iter().find(|place| is_inside(place, folder)) else {
                continue;
            };
            let Some(text) = read(&place) else { continue };
            let near = place.parent().unwrap_or(folder).to_owned();
            open.push((near, text.clone()));
            let told = place.to_string_lossy().into_owned();
            found.push((name.to_owned(), told, text));
        }
    }
    found
}

/// Options for a file, with its headers if it is a source file.
pub(super) fn with_options(path: &Path, bytes: &[u8], options: &Options) -> Options {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_source = options.language.is_some() || ending.is_some_and(is_ending);
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_source);
    Options {
        headers: text.map_or(Vec::new(), |text| beside(path, text)),
        ..options.clone()
    }
}

fn is_ending(ending: &str) -> bool {
    SourceKind::of_ending(ending).is_some()
}

fn read(place: &Path) -> Option<String> {
    let bytes = file::read(place, LARGEST).ok()?;
    String::from_utf8(bytes).ok()
}

/// Whether a file is in a folder or below it, behind all links.
fn is_inside(place: &Path, folder: &Path) -> bool {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    match (place.canonicalize(), folder.canonicalize()) {
        (Ok(place), Ok(folder)) => place.is_file() && place.starts_with(folder),
        _ => false,
    }
}
