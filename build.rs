//! Names the build, and tells binaries where libz3 is.
//!
//! What always holds:
//! - Binaries carry an rpath: beside the binary, `../lib/fencepost`, where the build put libz3, relative to
//!   `target/<profile>/`, and last, for `cargo install --path .`, the folder it was found in. Not through `rustflags`:
//!   `RUSTFLAGS` in the environment would drop them. `crates/engine/build.rs` found it.

use std::env;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Embedded as a folder: cargo has to be told when a file joins it.
    println!("cargo:rerun-if-changed=src/cli/new/templates");
    println!("cargo:rustc-env=FENCEPOST_BUILD={}", identity());
    let named = |name: &str| env::var(format!("DEP_FENCEPOST_Z3_{name}"));
    if let (Ok(put), Ok(found), Ok(system)) = (
        named("PUT"),
        named("FOUND"),
        env::var("CARGO_CFG_TARGET_OS"),
    ) {
        for folder in rpaths(Path::new(&put), Path::new(&found), &system) {
            println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
        }
    }
}

/// What this program is built from, as a number: kept verdicts of another build are not used.
///
/// Sources, models, manifest and lock file, features, target, profile, compiler flags, and the compiler's version.
fn identity() -> String {
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    let own = ["src", "models", "Cargo.toml", "Cargo.lock", "build.rs"].map(PathBuf::from);
    let crates = fs::read_dir("crates")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    // What tests share is no part of the program.
    for root in own
        .into_iter()
        .chain(crates.filter(|path| !path.ends_with("testkit")))
    {
        println!("cargo:rerun-if-changed={}", root.display());
        contents(&root, &mut parts);
    }
    let of_build = |name: &str| {
        name.starts_with("CARGO_FEATURE_") || name.starts_with("CARGO_CFG_TARGET_") || {
            [
                "TARGET",
                "PROFILE",
                "OPT_LEVEL",
                "DEBUG",
                "CARGO_ENCODED_RUSTFLAGS",
                "CARGO_PKG_VERSION",
            ]
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
    let version = Command::new(rustc)
        .arg("-vV")
        .output()
        .map(|done| done.stdout)
        .unwrap_or_default();
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
    // The links of crates lead to the models, which are read once, and to tests, which decide nothing.
    if path.is_symlink() {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            contents(&entry.path(), parts);
        }
    } else if let Ok(bytes) = fs::read(path) {
        parts.push((path.display().to_string(), bytes));
    }
}

/// Where binaries look for libz3 when cargo does not run them.
fn rpaths(out: &Path, from: &Path, system: &str) -> Vec<String> {
    let origin = match system {
        "windows" => return Vec::new(),
        "macos" => "@loader_path",
        _ => "$ORIGIN",
    };
    let mut list = vec![origin.to_owned(), format!("{origin}/../lib/fencepost")];
    // libz3 is put into target/<profile>/build/<package>-<hash>/out; binaries lie in target/<profile>/, tests, benches and
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
