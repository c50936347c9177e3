//! Reads the headers that a source file includes.
//!
//! # Invariants
//! - A header is in the project of the source file, or in a folder that the command names.
//! - The project is the nearest folder above the file with `.git` or `fencepost.toml`, else the
//!   working directory if it contains the file, else the folder of the file.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::{Path, PathBuf};

use super::paths::Found;
use diag::file;
use front::litmus::source::{Options, SourceKind, included};

/// The largest size of a header, and the largest number of them.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 64;

/// The headers of a file: the word behind `#include`, the name, and the text of each. The search
/// begins near the including file, and ends in the folders `include`.
pub(super) fn of(path: &Path, text: &str, include: &[PathBuf]) -> Vec<(String, String, String)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut roots: Vec<PathBuf> = include
        .iter()
        .filter_map(|f| f.canonicalize().ok())
        .collect();
    roots.extend(project(folder));
    let mut found: Vec<(String, String, String)> = Vec::new();
    let mut open: Vec<(PathBuf, String)> = vec![(folder.to_owned(), text.to_owned())];
    while let Some((near, text)) = open.pop() {
        for name in included(&text) {
            if found.len() == MOST || found.iter().any(|header| header.0 == name) {
                continue;
            }
            let beside = [near.join(name), folder.join(name)];
            let mut places = beside
                .into_iter()
                .chain(include.iter().map(|f| f.join(name)));
            let Some(place) = places.find(|place| is_inside(place, &roots)) else {
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

/// Leaves out files of folders that another file includes: they are read with it. Files that the
/// command names stay, and so do files that include each other.
pub(super) fn without_included(
    found: Vec<Found>,
    arguments: &[PathBuf],
    include: &[PathBuf],
) -> Vec<Found> {
    let is_source = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(is_ending)
    };
    let sources = found.iter().filter_map(|f| f.file.as_deref());
    let sources: Vec<&Path> = sources.filter(|path| is_source(path)).collect();
    if sources.len() < 2 {
        return found;
    }
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let with_headers = |path: &Path| {
        let text = read(path).unwrap_or_default();
        let headers = of(path, &text, include);
        let headers = headers.iter().map(|header| place(Path::new(&header.1)));
        (place(path), headers.collect::<HashSet<_>>())
    };
    let inclusions: HashMap<PathBuf, HashSet<PathBuf>> =
        sources.into_iter().map(with_headers).collect();
    let includes = |one: &PathBuf, other: &PathBuf| inclusions[one].contains(other);
    let is_included = |path: &Path| {
        let file = place(path);
        let others = inclusions.keys().filter(|other| **other != file);
        is_source(path)
            && others
                .into_iter()
                .any(|o| includes(o, &file) && !includes(&file, o))
    };
    let named: HashSet<PathBuf> = arguments.iter().map(|path| place(path)).collect();
    let stays = |f: &Found| {
        let left_out = |path: &PathBuf| is_included(path) && !named.contains(&place(path));
        !f.file.as_ref().is_some_and(left_out)
    };
    let kept: Vec<bool> = found.iter().map(stays).collect();
    let kept = found.into_iter().zip(kept).filter(|(_, stays)| *stays);
    kept.map(|(f, _)| f).collect()
}

/// The folder of the project that contains a folder.
fn project(folder: &Path) -> Option<PathBuf> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let folder = folder.canonicalize().ok()?;
    let marked = |place: &&Path| {
        [".git", "fencepost.toml"]
            .iter()
            .any(|mark| place.join(mark).exists())
    };
    let working = || {
        let working = env::current_dir().ok()?.canonicalize().ok()?;
        folder.starts_with(&working).then_some(working)
    };
    let found = folder.ancestors().find(marked).map(Path::to_owned);
    Some(found.or_else(working).unwrap_or(folder))
}

/// Options for a file, with its headers if it is a source file.
pub(super) fn with_options(path: &Path, bytes: &[u8], options: &Options) -> Options {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_source = options.language.is_some() || ending.is_some_and(is_ending);
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_source);
    Options {
        headers: text.map_or(Vec::new(), |text| of(path, text, &options.include)),
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

/// Whether a file is in one of the folders or below it, behind all links.
fn is_inside(place: &Path, roots: &[PathBuf]) -> bool {
    let place = place.canonicalize();
    place.is_ok_and(|place| place.is_file() && roots.iter().any(|root| place.starts_with(root)))
}
