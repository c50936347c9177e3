//! Finds libz3, or gets it, and tells the linker and the loader where it is.
//!
//! Where it comes from, in this order:
//! 1. the folder named by `FENCEPOST_Z3_DIR` (it, or its `lib` or `bin`, holds libz3 5.3);
//! 2. `.z3/` beside this file, as left by an earlier build;
//! 3. `tools/get_z3.py`, which has pip download the pinned wheel and unpacks it into `.z3/`.
//!
//! What always holds:
//! - libz3 lies in `OUT_DIR`, the first place the linker looks, and cargo adds `OUT_DIR` to the loader's path for
//!   `cargo run`, `cargo test` and doctests. z3-sys only prints `-lz3`; the library is needed at the final link,
//!   after this script.
//! - Binaries carry an rpath: beside the binary, `../lib/fencepost`, `OUT_DIR` relative to `target/<profile>/`, and
//!   last, for `cargo install --path .`, the folder libz3 was found in. Not through `rustflags`: doctests do
//!   not see those, and `RUSTFLAGS` in the environment would drop them.
//! - Without the feature `z3` this script does nothing but name the build ([`identity`]).

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that `tools/get_z3.py` pins; it writes it to `VERSION`.
const VERSION: &str = "5.3.2.0";

/// Names the folder that holds libz3, instead of `.z3/`.
const FOLDER_VARIABLE: &str = "FENCEPOST_Z3_DIR";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Embedded as folders: cargo has to be told when a file joins them.
    for folder in ["models", "litmus", "src/cli/new/templates"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rerun-if-env-changed={FOLDER_VARIABLE}");
    println!("cargo:rustc-env=FENCEPOST_BUILD={}", identity());
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

/// What this program is built from, as a number: kept verdicts of another build are not used.
///
/// Sources, models, manifest and lock file, features, target, profile, compiler flags, and the compiler's version.
fn identity() -> String {
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for root in ["src", "models", "Cargo.toml", "Cargo.lock", "build.rs"] {
        println!("cargo:rerun-if-changed={root}");
        contents(Path::new(root), &mut parts);
    }
    let of_build = |name: &str| {
        name.starts_with("CARGO_FEATURE_") || name.starts_with("CARGO_CFG_TARGET_") || {
            ["TARGET", "PROFILE", "OPT_LEVEL", "DEBUG", "CARGO_ENCODED_RUSTFLAGS", "CARGO_PKG_VERSION"]
                .contains(&name)
        }
    };
    for (name, value) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if of_build(&name) {
            parts.push((name, value.to_string_lossy().into_owned().into_bytes()));
        }
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("-vV").output().map(|done| done.stdout).unwrap_or_default();
    parts.push(("rustc".to_owned(), version));
    parts.sort();
    // Two passes that begin differently: 128 bits. Not a secret, and nobody gains by a collision.
    let pass = |seed: u8| {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u8(seed);
        parts.hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", pass(1), pass(2))
}

/// Every file at or below a path, by path and content.
fn contents(path: &Path, parts: &mut Vec<(String, Vec<u8>)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            contents(&entry.path(), parts);
        }
    } else if let Ok(bytes) = fs::read(path) {
        parts.push((path.display().to_string(), bytes));
    }
}

/// Puts libz3 into `OUT_DIR` and prints the linker's arguments.
fn provide() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let system = variable("CARGO_CFG_TARGET_OS")?;
    if env::var_os("Z3_SYS_Z3_VERSION").is_none() {
        println!(
            "cargo:warning=.cargo/config.toml was not read (cargo reads it from the current folder upwards): \
             run cargo inside the repository, or set Z3_NO_PKG_CONFIG=1 and Z3_SYS_Z3_VERSION=5.3.2"
        );
    }
    let from = find(&out, &system)?;
    for (name, path) in libraries(&from, &system) {
        place(&path, &out.join(&name)).map_err(|e| format!("cannot put {name} into {}: {e}", out.display()))?;
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    for folder in rpaths(&out, &from, &system) {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("cargo did not set {name}: {e}"))
}

/// The folder that holds libz3, fetched if need be.
fn find(out: &Path, system: &str) -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(FOLDER_VARIABLE) {
        let named = PathBuf::from(named);
        return [named.clone(), named.join("lib"), named.join("bin")]
            .into_iter()
            .find(|folder| !libraries(folder, system).is_empty())
            .and_then(|folder| fs::canonicalize(folder).ok())
            .ok_or_else(|| format!("{FOLDER_VARIABLE} is {}, which holds no libz3", named.display()));
    }
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    // A published package must not be written to by its build script.
    let published = root.join(".cargo_vcs_info.json").exists();
    let folder = if published { out.join("z3") } else { root.join(".z3") };
    let script = root.join("tools").join("get_z3.py");
    println!("cargo:rerun-if-changed={}", script.display());
    println!("cargo:rerun-if-changed={}", folder.join("VERSION").display());
    let have = fs::read_to_string(folder.join("VERSION")).unwrap_or_default();
    if have.trim() != VERSION || libraries(&folder, system).is_empty() {
        fetch(&script, &folder, system)?;
    }
    Ok(folder)
}

/// Runs the set-up script.
fn fetch(script: &Path, folder: &Path, system: &str) -> Result<(), String> {
    let machine = variable("CARGO_CFG_TARGET_ARCH")?;
    let mut command = Command::new("python3");
    command.arg(script).arg(folder).args(["--system", system, "--machine", &machine]);
    let problem = match command.output() {
        Ok(done) if done.status.success() => return Ok(()),
        Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        Err(error) => {
            format!("cannot run python3: {error}; on Debian and Ubuntu: apt-get install python3 python3-pip")
        }
    };
    let mut message = format!("libz3 {VERSION} is not there and could not be fetched.\n{problem}\n");
    let _ = writeln!(
        message,
        "Either let the build fetch it (python3 with pip, and a network, once), or set {FOLDER_VARIABLE} to a folder \
         that holds libz3 {VERSION}, or build without Z3: --no-default-features"
    );
    Err(message)
}

/// Every file of `folder` that is libz3 under one of its names, in order of names; none if there is nothing to link.
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

/// Hard link, or copy where that is impossible (another disk).
fn place(from: &Path, to: &Path) -> std::io::Result<()> {
    let from = fs::canonicalize(from)?;
    if to.exists() {
        fs::remove_file(to)?;
    }
    fs::hard_link(&from, to).or_else(|_| fs::copy(&from, to).map(drop))
}

/// Where binaries look for libz3 when cargo does not run them.
fn rpaths(out: &Path, from: &Path, system: &str) -> Vec<String> {
    let origin = match system {
        "windows" => return Vec::new(),
        "macos" => "@loader_path",
        _ => "$ORIGIN",
    };
    let mut list = vec![origin.to_owned(), format!("{origin}/../lib/fencepost")];
    // OUT_DIR is target/<profile>/build/<package>-<hash>/out; binaries lie in target/<profile>/, tests, benches and
    // examples one folder deeper.
    let tail: Vec<_> = out.iter().rev().take(3).collect();
    if let [last, package, build] = tail.as_slice() {
        let below = Path::new(build).join(package).join(last);
        list.push(format!("{origin}/{}", below.display()));
        list.push(format!("{origin}/../{}", below.display()));
    }
    list.push(from.display().to_string());
    list
}
