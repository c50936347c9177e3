//! `fencepost import`: `.litmus` files to TOML.
//!
//! # Invariants
//! - A file that exists is left alone unless `--force` was given.
//! - Below the output folder, files lie as they lay below the folder they were found under.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::ImportArgs;
use super::load::{self, File, Loaded};
use super::pool::Pool;
use super::terminal::{Terminal, cannot_write};
use super::{defect, exit, seams};
use diag::Diagnostic;

/// Runs it; returns the exit code.
pub(super) fn run(args: &ImportArgs, terminal: &Terminal) -> u8 {
    let Loaded { files, mut diagnostics, crashes } = load::load(&args.files, Pool::new(None));
    let mut events =
        exit::Events { answered: !files.is_empty(), defect: !crashes.is_empty(), ..Default::default() };
    for crash in crashes {
        terminal.diagnose(&defect::diagnostic(&defect::record_crash(&crash, &std::env::temp_dir())));
    }
    let mut text = String::new();
    match &args.output {
        Some(folder) => {
            for file in &files {
                diagnostics.extend(write(file, folder, args.force).err().map(|diagnostic| *diagnostic));
            }
        }
        None => match files.as_slice() {
            [] => {}
            [one] => match toml(one) {
                Ok(written) => text = written,
                Err(diagnostic) => diagnostics.push(*diagnostic),
            },
            several => diagnostics.push(
                Diagnostic::plain("several-tests", format!("{} files do not fit into one", several.len()))
                    .help("name a folder to write to: `-o DIR`"),
            ),
        },
    }
    events.invalid = terminal.diagnose_all(&diagnostics) > 0;
    terminal.printed(&text, events.code())
}

fn toml(file: &File) -> Result<String, Box<Diagnostic>> {
    let tests: Result<Vec<String>, _> = file.tests.iter().map(seams::to_toml).collect();
    Ok(tests?.join("\n"))
}

fn write(file: &File, folder: &Path, force: bool) -> Result<(), Box<Diagnostic>> {
    let target = target(file, folder);
    let failed = |error| Box::new(cannot_write(&target, &error));
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    if !force && target.exists() {
        let message = format!("`{}` exists and is left as it is", target.display());
        return Err(Box::new(Diagnostic::plain("file-exists", message).help("`--force` overwrites it")));
    }
    fs::write(&target, toml(file)?).map_err(failed)
}

fn target(file: &File, folder: &Path) -> PathBuf {
    let path = if file.below == "-" { "stdin" } else { file.below.as_str() };
    let stem = path.strip_suffix(".litmus").or_else(|| path.strip_suffix(".toml")).unwrap_or(path);
    folder.join(format!("{stem}.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_kept_and_dots_in_names_survive() {
        let at = |path: &str| {
            target(&File { path: String::new(), below: path.into(), tests: Vec::new() }, Path::new("out"))
        };
        assert_eq!(at("ptx/MP.v2.litmus"), Path::new("out/ptx/MP.v2.toml"));
        assert_eq!(at("odd"), Path::new("out/odd.toml"));
        assert_eq!(at("-"), Path::new("out/stdin.toml"));
    }
}
