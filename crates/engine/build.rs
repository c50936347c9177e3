//! Finds or fetches libz3, and gives its place to the linker and the loader.
//!
//! The script takes libz3 from the first of these that has it:
//! 1. the folder named by `FENCEPOST_Z3_DIR` (it, or its `lib` or `bin`, holds libz3 5.3);
//! 2. `.z3/` at the top of the repository, as left by an earlier build;
//! 3. `tools/get_z3.py`, which has pip download the pinned wheel and unpacks it into `.z3/`.
//!
//! # Invariants
//! - libz3 lies in `OUT_DIR`, the first place the linker looks. Cargo adds it to the loader's path
//!   for `cargo run`, `cargo test` and doctests. The crate z3-sys only prints `-lz3`; the final
//!   link, after this script, needs the library.
//! - Binaries carry an rpath, which the build script of the command line prints, because cargo does
//!   not pass linker arguments on to other packages. So this script publishes where it put libz3
//!   and where it found it.
//! - Without the feature `z3` this script does nothing.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that `tools/get_z3.py` pins and writes to `VERSION`.
const VERSION: &str = "5.3.2.0";

/// Names the folder that holds libz3, instead of `.z3/`.
const FOLDER_VARIABLE: &str = "FENCEPOST_Z3_DIR";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={FOLDER_VARIABLE}");
    if env::var_os("CARGO_FEATURE_Z3").is_none() || env::var_os("DOCS_RS").is_some() {
        return;
    }
    if let Err(message) = provide() {
        // One `error` line each: cargo shows them without the noise of a panic and its backtrace.
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

/// Puts libz3 into `OUT_DIR` and prints its place for cargo.
fn provide() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let system = variable("CARGO_CFG_TARGET_OS")?;
    if env::var_os("Z3_SYS_Z3_VERSION").is_none() {
        println!(
            "cargo:warning=.cargo/config.toml was not read (cargo reads it from the current folder upwards): \
             run cargo inside the repository, or set Z3_NO_PKG_CONFIG=1 and Z3_SYS_Z3_VERSION=5.3.2"
        );
    }
    let from = find(&system)?;
    for (name, path) in libraries(&from, &system) {
        place(&path, &out.join(&name))
            .map_err(|e| format!("cannot put {name} into {}: {e}", out.display()))?;
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo::metadata=put={}", out.display());
    println!("cargo::metadata=found={}", from.display());
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("cargo did not set {name}: {e}"))
}

/// The folder that holds libz3; runs the download if necessary.
fn find(system: &str) -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(FOLDER_VARIABLE) {
        let named = PathBuf::from(named);
        return [named.clone(), named.join("lib"), named.join("bin")]
            .into_iter()
            .find(|folder| !libraries(folder, system).is_empty())
            .and_then(|folder| fs::canonicalize(folder).ok())
            .ok_or_else(|| {
                format!(
                    "{FOLDER_VARIABLE} is {}, which holds no libz3",
                    named.display()
                )
            });
    }
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..");
    let root =
        fs::canonicalize(&root).map_err(|e| format!("cannot find {}: {e}", root.display()))?;
    let folder = root.join(".z3");
    let script = root.join("tools").join("get_z3.py");
    println!("cargo:rerun-if-changed={}", script.display());
    println!(
        "cargo:rerun-if-changed={}",
        folder.join("VERSION").display()
    );
    let have = fs::read_to_string(folder.join("VERSION")).unwrap_or_default();
    let is_there = have.trim() == VERSION && !libraries(&folder, system).is_empty();
    if !is_there {
        fetch(&script, &folder, system)?;
    } else if !folder.join("z3").is_file() {
        // Folders of earlier builds have no program, and only tests need it.
        let _ = fetch(&script, &folder, system);
    }
    Ok(folder)
}

/// Runs the set-up script.
fn fetch(script: &Path, folder: &Path, system: &str) -> Result<(), String> {
    let machine = variable("CARGO_CFG_TARGET_ARCH")?;
    let mut command = Command::new("python3");
    command
        .arg(script)
        .arg(folder)
        .args(["--system", system, "--machine", &machine]);
    let problem = match command.output() {
        Ok(done) if done.status.success() => return Ok(()),
        Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        Err(error) => {
            format!(
                "cannot run python3: {error}; on Debian and Ubuntu: apt-get install python3 python3-pip"
            )
        }
    };
    let mut message =
        format!("libz3 {VERSION} is not there and could not be fetched.\n{problem}\n");
    let _ = writeln!(
        message,
        "Three ways: let the build fetch it (python3 with pip and a network, once); set \
        {FOLDER_VARIABLE} to a folder with libz3 {VERSION}; build without Z3: \
        --no-default-features --features cli"
    );
    Err(message)
}

/// Every file of `folder` that is libz3 under one of its names, sorted by name; none if there is
/// nothing to link.
fn libraries(folder: &Path, system: &str) -> Vec<(String, PathBuf)> {
    let (linked, ending) = match system {
        "macos" => ("libz3.dylib", ".dylib"),
        "windows" => ("libz3.lib", ""),
        _ => ("libz3.so", ".so"),
    };
    if !folder.join(linked).is_file() {
        return Vec::new();
    }
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, _)| name.starts_with("libz3.") && name.contains(ending))
        .collect();
    found.sort();
    found
}

/// Makes a hard link, or a copy where that is impossible (another disk).
fn place(from: &Path, to: &Path) -> std::io::Result<()> {
    let from = fs::canonicalize(from)?;
    if to.exists() {
        fs::remove_file(to)?;
    }
    fs::hard_link(&from, to).or_else(|_| fs::copy(&from, to).map(drop))
}
