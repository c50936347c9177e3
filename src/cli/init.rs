//! `fencepost init`: the files with which a project begins.
//!
//! # Invariants
//! - It overwrites nothing: a project that has a `fencepost.toml` is left as it is, and so is each
//!   other file that is there.
//! - `fencepost check` then passes in the folder.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::args::InitArgs;
use super::new::{self, SCHEMA};
use super::terminal::{Terminal, cannot_write};
use super::{config, exit, seams};
use diag::Diagnostic;

/// The name of the configuration's schema.
const CONFIG_SCHEMA: &str = "fencepost.config.schema.json";

const CONFIG: &str = r##"#:schema fencepost.config.schema.json
# Options of Fencepost in this folder and below it. The command line wins over them.

# What `fencepost check` decides if no path is given.
paths = ["litmus"]

# `check` also takes the kernels in these source files.
# kernels = ["**/*.cu", "**/*.cl"]

# `fencepost check --profile ci`
[profile.ci]
reports = ["junit=fencepost.xml"]
"##;

/// The folder of tests, and the first one.
const TESTS: &str = "litmus";
const TEST: (&str, &str) = ("MP.toml", include_str!("new/templates/ptx/mp.toml"));

/// Runs it; returns the exit code.
pub(super) fn run(args: &InitArgs, terminal: &Terminal) -> u8 {
    match create(&args.folder) {
        Ok(made) => terminal.printed(&made, exit::OK),
        Err(diagnostic) => {
            terminal.diagnose(&diagnostic);
            exit::INVALID
        }
    }
}

/// Writes the files that are missing, and lists them.
fn create(folder: &Path) -> Result<String, Box<Diagnostic>> {
    let parts = folder.components();
    let folder: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    let at = folder.join(config::NAME);
    if fs::symlink_metadata(&at).is_ok() {
        let message = format!("`{}` exists and is left as it is", at.display());
        let help = "`fencepost new NAME` adds a test";
        return Err(Box::new(
            Diagnostic::plain("file-exists", message).help(help),
        ));
    }
    let test = TEST.1.replacen("\"NAME\"", "\"MP\"", 1);
    let files = [
        (config::NAME.to_owned(), CONFIG.to_owned()),
        (
            CONFIG_SCHEMA.to_owned(),
            format!("{:#}\n", config::schema()),
        ),
        (SCHEMA.to_owned(), format!("{:#}\n", seams::schema())),
        (
            format!("{TESTS}/{}", TEST.0),
            format!("#:schema ../{SCHEMA}\n{test}"),
        ),
    ];
    let tests = folder.join(TESTS);
    fs::create_dir_all(&tests).map_err(|error| Box::new(cannot_write(&tests, &error)))?;
    let mut made = String::new();
    for (name, text) in files {
        let path = folder.join(name);
        match new::write_new(&path, &text) {
            Ok(()) => made.push_str(&format!("{}\n", path.display())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Box::new(cannot_write(&path, &error))),
        }
    }
    Ok(made)
}
