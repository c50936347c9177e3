//! Finds the test files of PATH arguments.
//!
//! # Invariants
//! - The order is that of the arguments, and inside a folder that of the relative paths, part by
//!   part: it depends on names alone, never on the file system's order.
//! - An unreadable path becomes a diagnostic; everything else is still found.
//! - A file that two arguments lead to under the same name is taken once, at its first place. A
//!   link in a folder is another name.
//! - Two files never have the same `path`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use diag::{Diagnostic, nearest};

/// A test file, or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file; `None` for standard input.
    pub file: Option<PathBuf>,
    /// `path` in result lines: relative to the working directory, whatever argument led to it; for
    /// a file outside of it, as the argument has it, and below an absolute folder its place there.
    pub path: String,
    /// Its place below the folder of the argument; the base name of a file given by name.
    pub below: String,
}

/// Files with the ending of a test that are none.
const NO_TESTS: [&str; 2] = ["Cargo.toml", "fencepost.toml"];

/// Finds the test files under `arguments`; adds unreadable paths to `diagnostics`.
pub fn discover(arguments: &[PathBuf], diagnostics: &mut Vec<Diagnostic>) -> Vec<Found> {
    discover_with(arguments, &[], diagnostics)
}

/// As [`discover`], with source files: those whose paths match one of the patterns `kernels`.
pub fn discover_with(
    arguments: &[PathBuf],
    kernels: &[PathBuf],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Found> {
    let kernels: Vec<Vec<String>> = kernels.iter().map(|pattern| parts_of(pattern)).collect();
    let mut found = Vec::new();
    for argument in arguments {
        if argument.as_os_str() == "-" {
            found.push(Found {
                file: None,
                path: "-".into(),
                below: "-".into(),
            });
            continue;
        }
        match fs::metadata(argument) {
            Ok(data) if data.is_dir() => search(
                argument,
                &kernels,
                &mut Vec::new(),
                &mut HashSet::new(),
                &mut found,
                diagnostics,
            ),
            Ok(_) => {
                let below = argument
                    .file_name()
                    .unwrap_or(argument.as_os_str())
                    .to_string_lossy()
                    .into_owned();
                found.push(Found {
                    file: Some(argument.clone()),
                    path: from_here(argument),
                    below,
                });
            }
            Err(error) => diagnostics.push(unreadable(argument, &error)),
        }
    }
    // Resolving a path looks at each of its folders, so it is done only for paths that could be one
    // file.
    let mut alike: HashMap<String, usize> = HashMap::new();
    found
        .iter()
        .for_each(|f| *alike.entry(f.below.clone()).or_default() += 1);
    let (mut files, mut paths) = (HashSet::new(), HashSet::new());
    found.retain(|f| {
        let file = f.file.as_ref().map(|file| match alike[&f.below] {
            1 => file.clone(),
            _ => fs::canonicalize(file).unwrap_or_else(|_| file.clone()),
        });
        let is_new = files.insert((file, f.below.clone()));
        let path = f.file.as_deref().map(parts_of);
        is_new && paths.insert(path)
    });
    // Two folders with files of one name: only the whole path distinguishes them.
    let mut alike: HashMap<String, usize> = HashMap::new();
    found
        .iter()
        .for_each(|f| *alike.entry(f.path.clone()).or_default() += 1);
    for f in found.iter_mut().filter(|f| alike[&f.path] > 1) {
        f.path = f.file.as_deref().map_or_else(|| f.path.clone(), from_here);
    }
    found
}

/// The parts of a path, from the root of the file system on; `..` takes one away.
fn parts_of(path: &Path) -> Vec<String> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut parts = Vec::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts
}

/// Whether a path matches one of some patterns, which are looked at part by part.
fn is_kernel(path: &Path, kernels: &[Vec<String>]) -> bool {
    !kernels.is_empty() && {
        let parts = parts_of(path);
        kernels.iter().any(|pattern| matches(pattern, &parts))
    }
}

/// `**` stands for any number of folders; `*` and `?` for letters of one name.
fn matches(pattern: &[String], parts: &[String]) -> bool {
    match pattern {
        [] => parts.is_empty(),
        [any, rest @ ..] if any == "**" => (0..=parts.len()).any(|n| matches(rest, &parts[n..])),
        [first, rest @ ..] => {
            parts.first().is_some_and(|part| {
                let letters = |text: &str| text.chars().collect::<Vec<_>>();
                letters_match(&letters(first), &letters(part))
            }) && matches(rest, &parts[1..])
        }
    }
}

fn letters_match(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|n| letters_match(rest, &name[n..])),
        [letter, rest @ ..] => {
            let fits = name.first().is_some_and(|c| *letter == '?' || letter == c);
            fits && letters_match(rest, &name[1..])
        }
    }
}

/// A path relative to the working directory; one outside of it as the argument has it.
fn from_here(path: &Path) -> String {
    let (here, parts) = (parts_of(Path::new(".")), parts_of(path));
    match parts.strip_prefix(here.as_slice()) {
        Some(below) => below.join("/"),
        None => path.to_string_lossy().into_owned(),
    }
}

/// A file or folder that cannot be read.
pub fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    if let (io::ErrorKind::NotFound, Ok(target)) = (error.kind(), fs::read_link(path)) {
        let message = format!(
            "`{}` is a link to `{}`, which does not exist",
            path.display(),
            target.display()
        );
        Diagnostic::plain("missing-path", message)
    } else if error.kind() == io::ErrorKind::NotFound {
        let missing = Diagnostic::plain(
            "missing-path",
            format!("`{}` does not exist", path.display()),
        );
        // A word alone may be the name of a test.
        let is_word = path.components().count() == 1 && path.extension().is_none();
        match neighbour(path) {
            Some(near) => missing.help(format!("did you mean `{}`?", near.display())),
            None if is_word => missing.help(format!(
                "to choose tests by their names: `--filter {}`",
                path.display()
            )),
            None => missing,
        }
    } else {
        Diagnostic::plain(
            "unreadable-path",
            format!("cannot read `{}`: {error}", path.display()),
        )
    }
}

/// A file or folder beside the path whose name is almost the same.
fn neighbour(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path.parent()?;
    let look_in = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = fs::read_dir(look_in).ok()?.flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    nearest(wanted, names.iter().map(String::as_str)).map(|name| folder.join(name))
}

/// The identity of a folder, whatever path leads to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl Identity {
    #[cfg(unix)]
    fn of(folder: &Path) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;
        let data = fs::metadata(folder)?;
        Ok(Identity((data.dev(), data.ino())))
    }

    #[cfg(not(unix))]
    fn of(folder: &Path) -> io::Result<Identity> {
        fs::canonicalize(folder).map(Identity)
    }
}

/// Searches one folder. `parts` leads to it from the argument; `above` are the folders around it,
/// so that a symbolic link back to one of them is not followed again.
fn search(
    folder: &Path,
    kernels: &[Vec<String>],
    parts: &mut Vec<String>,
    above: &mut HashSet<Identity>,
    found: &mut Vec<Found>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let read = || -> io::Result<(Identity, Vec<fs::DirEntry>)> {
        Ok((
            Identity::of(folder)?,
            fs::read_dir(folder)?.collect::<io::Result<_>>()?,
        ))
    };
    let (identity, mut entries) = match read() {
        Ok(read) => read,
        Err(error) => return diagnostics.push(unreadable(folder, &error)),
    };
    if !above.insert(identity.clone()) {
        return;
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let path = entry.path();
        let is_test = name.ends_with(".litmus")
            || (name.ends_with(".toml") && !NO_TESTS.contains(&name.as_str()))
            || is_kernel(&path, kernels);
        match fs::metadata(&path) {
            Ok(data) if data.is_dir() => {
                if name != "target" {
                    parts.push(name);
                    search(&path, kernels, parts, above, found, diagnostics);
                    parts.pop();
                }
            }
            Ok(_) if is_test => {
                parts.push(name);
                let below = parts.join("/");
                found.push(Found {
                    path: match from_here(&path) {
                        whole if Path::new(&whole).is_absolute() => below.clone(),
                        path => path,
                    },
                    file: Some(path),
                    below,
                });
                parts.pop();
            }
            Ok(_) => {}
            // A dangling link matters only if a test was meant.
            Err(error) if is_test => diagnostics.push(unreadable(&path, &error)),
            Err(_) => {}
        }
    }
    above.remove(&identity);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    /// The paths that are found, those below a folder without its name.
    fn paths(
        folder: &tempfile::TempDir,
        arguments: &[PathBuf],
    ) -> (Vec<String>, Vec<&'static str>) {
        let mut diagnostics = Vec::new();
        let found = discover(arguments, &mut diagnostics);
        let found = found.into_iter().map(|f| below(folder, &f.path));
        (found.collect(), diagnostics.iter().map(|d| d.id).collect())
    }

    fn below(folder: &tempfile::TempDir, path: &str) -> String {
        let prefix = format!("{}/", folder.path().display());
        path.strip_prefix(&prefix).unwrap_or(path).to_owned()
    }

    #[test]
    fn a_folder_gives_its_tests_in_order_and_passes_over_the_rest() {
        let folder = tree(&[
            "b.toml",
            "a.litmus",
            "c/z.toml",
            "c/a.litmus",
            "c.toml",
            "README.md",
            "Cargo.toml",
            "fencepost.toml",
            "c/fencepost.toml",
            "target/x.toml",
            "c/target/x.litmus",
            ".hidden/x.toml",
            ".x.toml",
        ]);
        let (found, diagnostics) = paths(&folder, &[folder.path().into()]);
        assert_eq!(
            found,
            ["a.litmus", "b.toml", "c/a.litmus", "c/z.toml", "c.toml"]
        );
        assert!(diagnostics.is_empty());
    }

    #[test]
    fn source_files_are_taken_where_patterns_say_so() {
        let folder = tree(&[
            "src/a.cu",
            "src/deep/b.cu",
            "src/c.cl",
            "other/d.cu",
            "t.toml",
        ]);
        let found = |patterns: &[&str]| {
            let patterns: Vec<PathBuf> = patterns.iter().map(|p| folder.path().join(p)).collect();
            let all = discover_with(&[folder.path().into()], &patterns, &mut Vec::new());
            let found = all.into_iter().map(|f| below(&folder, &f.path));
            found.collect::<Vec<_>>()
        };
        assert_eq!(found(&[]), ["t.toml"]);
        assert_eq!(
            found(&["src/**/*.cu"]),
            ["src/a.cu", "src/deep/b.cu", "t.toml"]
        );
        assert_eq!(found(&["src/?.c*"]), ["src/a.cu", "src/c.cl", "t.toml"]);
    }

    #[test]
    fn a_file_by_name_is_taken_whatever_it_is_called() {
        let folder = tree(&["odd.txt", "Cargo.toml", "target/x.toml"]);
        let at = |name: &str| folder.path().join(name);
        let (found, diagnostics) = paths(
            &folder,
            &[
                at("odd.txt"),
                "-".into(),
                at("Cargo.toml"),
                at("target"),
                at("gone"),
            ],
        );
        assert_eq!(found, ["odd.txt", "-", "Cargo.toml", "x.toml"]);
        assert_eq!(diagnostics, ["missing-path"]);
    }

    #[test]
    fn a_name_that_is_almost_right_is_told() {
        let folder = tree(&["MP+rel+acq.toml", "other.toml"]);
        let mut diagnostics = Vec::new();
        discover(
            &[
                folder.path().join("MP+rel+acp.toml"),
                folder.path().join("unlike"),
            ],
            &mut diagnostics,
        );
        let near = folder.path().join("MP+rel+acq.toml").display().to_string();
        let help: Vec<_> = diagnostics.iter().map(|d| d.help.clone()).collect();
        assert_eq!(help, [Some(format!("did you mean `{near}`?")), None]);
    }

    #[test]
    fn a_file_that_is_named_twice_is_taken_once() {
        let folder = tree(&["a.toml", "sub/a.toml"]);
        let at = |name: &str| folder.path().join(name);
        let arguments = [
            at("a.toml"),
            "-".into(),
            at("sub/../a.toml"),
            "-".into(),
            folder.path().into(),
            at("sub"),
        ];
        let found = paths(&folder, &arguments).0;
        assert_eq!(found, ["a.toml", "-", "sub/a.toml"]);
    }

    #[test]
    fn files_of_one_name_are_told_apart() {
        let folder = tree(&["x/a.toml", "y/a.toml", "y/b.toml"]);
        let at = |name: &str| folder.path().join(name);
        let (found, _) = paths(&folder, &[at("x"), at("y")]);
        assert_eq!(found, ["x/a.toml", "y/a.toml", "b.toml"]);
        let (found, _) = paths(&folder, &[at("x/a.toml"), at("y/a.toml")]);
        assert_eq!(found, ["x/a.toml", "y/a.toml"]);
    }

    #[test]
    fn a_path_is_relative_to_the_working_directory_whatever_leads_to_it() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(from_here(&here.join("a/b.toml")), "a/b.toml");
        assert_eq!(from_here(Path::new("./a/../b.toml")), "b.toml");
        assert_eq!(from_here(Path::new("../b.toml")), "../b.toml");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_for_ever() {
        use std::os::unix::fs::symlink;
        let folder = tree(&["real/a.toml"]);
        symlink(folder.path(), folder.path().join("real/back")).unwrap();
        symlink(folder.path().join("real"), folder.path().join("again")).unwrap();
        symlink(
            folder.path().join("gone"),
            folder.path().join("dangling.toml"),
        )
        .unwrap();
        let (found, diagnostics) = paths(&folder, &[folder.path().into()]);
        assert_eq!(found, ["again/a.toml", "real/a.toml"]);
        assert_eq!(diagnostics, ["missing-path"]);
    }
}
