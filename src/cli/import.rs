//! `fencepost import`: turns `.litmus` files, and kernels of `.ptx` files, into TOML.
//!
//! # Invariants
//! - It leaves an existing file alone unless `--force` was given.
//! - A file appears as a whole, or not at all.
//! - The output folder keeps the structure of the input folders.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::ImportArgs;
use super::load::{self, File, Loaded};
use super::pool::Pool;
use super::terminal::{Terminal, cannot_write};
use super::{defect, exit, files, seams};
use diag::{Diagnostic, Severity, file};
use front::litmus::kernel::{Launch, PtxFile};
use front::litmus::source::{self, Options, SourceKind};

/// Runs it; returns the exit code.
pub(super) fn run(args: &ImportArgs, terminal: &Terminal) -> u8 {
    if let [one] = args.files.as_slice() {
        let ending = one.extension().and_then(|ending| ending.to_str());
        let kind = ending.and_then(SourceKind::of_ending);
        // Compilers are asked to print to a pipe.
        let piped = one.as_os_str() == "-" && is_of_kernel(args) && args.launches.is_empty();
        match kind.or(piped.then_some(SourceKind::Ptx)) {
            Some(SourceKind::Ptx) if args.launches.is_empty() => {
                return module(one, args, terminal);
            }
            Some(kind) => return launched(one, kind, args, terminal),
            None => {}
        }
    }
    if is_of_kernel(args) {
        let message = "`--kernel`, `--grid`, `--block`, `--cluster`, `--arg` and `--ask` take one \
            `.ptx` file, or PTX on standard input (`-`)";
        terminal.diagnose(&Diagnostic::plain("conflicting-options", message));
        return exit::INVALID;
    }
    let Loaded {
        files,
        mut diagnostics,
        crashes,
        ..
    } = load::load(load::LoadRequest {
        arguments: &args.files,
        pool: Pool::new(None),
        options: &Options::default(),
        kernels: &[],
    });
    let mut events = exit::Events {
        answered: !files.is_empty(),
        defect: !crashes.is_empty(),
        ..Default::default()
    };
    for crash in crashes {
        terminal.diagnose(&defect::diagnostic(&defect::record_crash(
            &crash,
            &std::env::temp_dir(),
        )));
    }
    let mut text = String::new();
    match &args.output {
        Some(folder) => {
            for file in &files {
                diagnostics.extend(
                    write(file, folder, args.force)
                        .err()
                        .map(|diagnostic| *diagnostic),
                );
            }
        }
        None => match files.as_slice() {
            [] => {}
            [one] => match toml(one) {
                Ok(written) => text = written,
                Err(diagnostic) => diagnostics.push(*diagnostic),
            },
            several => diagnostics.push(
                Diagnostic::plain(
                    "several-tests",
                    format!("{} files do not fit into one", several.len()),
                )
                .help("name a folder to write to: `-o DIR`"),
            ),
        },
    }
    events.invalid = terminal.diagnose_all(&diagnostics) > 0;
    if events.code() == exit::NO_TEST {
        terminal.diagnose(&exit::no_test());
    }
    terminal.printed(&text, events.code())
}

/// Whether an option names a kernel or its launch.
fn is_of_kernel(args: &ImportArgs) -> bool {
    let launch = [&args.grid, &args.block, &args.cluster];
    args.kernel.is_some()
        || args.ask.is_some()
        || !args.args.is_empty()
        || launch.iter().any(|sizes| !sizes.is_empty())
}

/// A module of PTX: a list of its contents, or a test of one of its kernels.
fn module(path: &Path, args: &ImportArgs, terminal: &Terminal) -> u8 {
    let (name, text) = match path.as_os_str() == "-" {
        true => ("<stdin>".to_owned(), load::text_of_stdin()),
        false => {
            let text = load::text(path, file::LARGEST);
            (path.display().to_string(), text)
        }
    };
    let text = match text {
        Ok(text) => text,
        Err(diagnostic) => {
            terminal.diagnose(&diagnostic);
            return exit::INVALID;
        }
    };
    let launch = Launch {
        grid: args.grid.clone(),
        block: args.block.clone(),
        cluster: args.cluster.clone(),
        args: args.args.clone(),
        ask: args.ask.clone(),
    };
    let list = !is_of_kernel(args);
    let made = PtxFile::read(&name, &text).and_then(|source| match list {
        true => Ok((source.listing(), Vec::new())),
        false => {
            let made = source.to_toml(args.kernel.as_deref(), &launch);
            made.map(|(text, warnings)| (text + &expectation(SourceKind::Ptx, args), warnings))
        }
    });
    let (text, mut diagnostics) = match made {
        Ok(made) => made,
        Err(diagnostics) => (String::new(), diagnostics),
    };
    let mut printed = text.as_str();
    if let (Some(file), false, true) = (
        &args.output,
        list,
        diagnostics.iter().all(|d| d.severity != Severity::Error),
    ) {
        diagnostics.extend(
            put(file, text.clone(), args.force)
                .err()
                .map(|diagnostic| *diagnostic),
        );
        printed = "";
    }
    let invalid = terminal.diagnose_all(&diagnostics) > 0;
    terminal.printed(
        printed,
        exit::Events {
            answered: true,
            invalid,
            ..Default::default()
        }
        .code(),
    )
}

/// A source file: a test for each kernel and launch.
fn launched(path: &Path, kind: SourceKind, args: &ImportArgs, terminal: &Terminal) -> u8 {
    let name = path.display().to_string();
    let bytes = match file::read(path, file::LARGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            terminal.diagnose(&super::paths::unreadable(path, &error));
            return exit::INVALID;
        }
    };
    let options = Options {
        language: None,
        launches: args.launches.clone(),
        arguments: super::args::words(args.program.as_deref()),
        constants: args.constants.iter().cloned().collect(),
        headers: super::headers::of(path, &String::from_utf8_lossy(&bytes), &args.include),
        include: args.include.clone(),
        with: None,
    };
    let (all, mut diagnostics) = match source::to_toml(&name, &bytes, kind, &options) {
        Ok(made) => made,
        Err(diagnostics) => (Vec::new(), diagnostics),
    };
    let expected = |text: String| text + &expectation(kind, args);
    let mut printed = String::new();
    match (all.len(), &args.output) {
        (0, _) => {}
        (1, None) => printed = all.into_iter().map(|(_, text)| expected(text)).collect(),
        (n, None) => diagnostics.push(
            Diagnostic::plain(
                "several-tests",
                format!("{n} tests do not fit into one file"),
            )
            .help("name a folder to write to: `-o DIR`; or one launch: `--launch 'K<<<2, 4>>>'`"),
        ),
        (n, Some(output)) => {
            for (name, text) in all {
                let into = output.join(format!("{name}.toml"));
                let file = if n == 1 { output } else { &into };
                let wrong = put(file, expected(text), args.force).err();
                diagnostics.extend(wrong.map(|diagnostic| *diagnostic));
            }
        }
    }
    let invalid = terminal.diagnose_all(&diagnostics) > 0;
    let events = exit::Events {
        answered: true,
        invalid,
        ..Default::default()
    };
    terminal.printed(&printed, events.code())
}

/// What is expected of the test of a kernel.
fn expectation(kind: SourceKind, args: &ImportArgs) -> String {
    let model = kind.dialect().default_model();
    args.expect.as_ref().map_or(String::new(), |verdict| {
        format!("\n[expect]\n{model} = {{ race = \"{verdict}\" }}\n")
    })
}

fn toml(file: &File) -> Result<String, Box<Diagnostic>> {
    let tests: Result<Vec<String>, _> = file.tests.iter().map(seams::to_toml).collect();
    Ok(tests?.join("\n"))
}

fn write(file: &File, folder: &Path, force: bool) -> Result<(), Box<Diagnostic>> {
    put(&target(file, folder), toml(file)?, force)
}

/// Writes a file as a whole, and the folders that it needs.
pub(super) fn put(target: &Path, text: String, force: bool) -> Result<(), Box<Diagnostic>> {
    let failed = |error| Box::new(cannot_write(target, &error));
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    if !force && target.exists() {
        let message = format!("`{}` exists and is left as it is", target.display());
        return Err(Box::new(
            Diagnostic::plain("file-exists", message).help("`--force` overwrites it"),
        ));
    }
    files::replace(target, text.as_bytes()).map_err(failed)
}

fn target(file: &File, folder: &Path) -> PathBuf {
    let path = if file.below == "-" {
        "stdin"
    } else {
        file.below.as_str()
    };
    let stem = path
        .strip_suffix(".litmus")
        .or_else(|| path.strip_suffix(".toml"))
        .unwrap_or(path);
    folder.join(format!("{stem}.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_kept_and_dots_in_names_survive() {
        let at = |path: &str| {
            target(
                &File {
                    path: String::new(),
                    below: path.into(),
                    tests: Vec::new(),
                },
                Path::new("out"),
            )
        };
        assert_eq!(at("ptx/MP.v2.litmus"), Path::new("out/ptx/MP.v2.toml"));
        assert_eq!(at("odd"), Path::new("out/odd.toml"));
        assert_eq!(at("-"), Path::new("out/stdin.toml"));
    }
}
