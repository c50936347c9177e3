//! Reproducers: what is needed to see a defect of ours again, in a folder of its own.
//!
//! # Invariants
//! - The folder's name depends on what is in it: the same defect gives the same folder, and overwrites it.

use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use super::catalogue::Named;
use super::settings::Settings;
use crate::check::Engine;
use crate::diag::SourceFile;
use crate::litmus::LitmusTest;

/// A defect, as it is told to the user.
#[derive(Clone, Debug)]
pub(super) struct Defect {
    /// Where it showed: test, model, question.
    pub place: String,
    /// What law was broken.
    pub text: String,
    /// The reproducer's folder, or why there is none.
    pub reproducer: Result<PathBuf, String>,
}

/// Writes the reproducer of a defect that showed when `question` was asked.
pub(super) fn record(test: &LitmusTest, model: &Named, question: &str, text: &str, settings: &Settings) -> Defect {
    let place = format!("{} under {}, {question}", test.name, model.label);
    let mut files = vec![(format!("test.{}", ending(&test.file)), test.file.text.clone())];
    let mut request = model.request.clone();
    if request != model.label {
        // A file of the user's, with what it includes.
        for file in &model.model.files {
            let name = Path::new(&file.name).file_name().map_or("model.cat".into(), |n| n.to_string_lossy());
            files.push((name.into_owned(), file.text.clone()));
        }
        request = Path::new(&request).file_name().map_or(request.clone(), |n| n.to_string_lossy().into_owned());
    }
    let command = command(&files[0].0, &request, settings);
    let report = format!(
        "fencepost {}\n{place}\n\n{text}\n\nTo see it again, in this folder:\n{command}\n",
        env!("CARGO_PKG_VERSION")
    );
    files.push(("defect.txt".into(), report));
    let reproducer = write(&settings.repro_dir, &files).map_err(|error| error.to_string());
    Defect { place, text: text.to_owned(), reproducer }
}

fn ending(file: &SourceFile) -> &'static str {
    if file.name.ends_with(".litmus") { "litmus" } else { "toml" }
}

fn command(test: &str, model: &str, settings: &Settings) -> String {
    let engine = match settings.engine {
        Engine::Auto => "auto",
        Engine::Symbolic => "symbolic",
        Engine::Enumerate => "enumerate",
        Engine::Both => "both",
    };
    let mut words = format!("fencepost check {test} --model {model} --engine {engine} --all-properties");
    words += &format!(" --bound {}", settings.limits.bound);
    for (name, value) in &settings.set {
        words += &format!(" --set {name}={value}");
    }
    words
}

fn write(folder: &Path, files: &[(String, String)]) -> io::Result<PathBuf> {
    let mut hasher = rustc_hash::FxHasher::default();
    for (name, text) in files {
        hasher.write(name.as_bytes());
        hasher.write(text.as_bytes());
    }
    let folder = folder.join(format!("fencepost-defect-{:016x}", hasher.finish()));
    fs::create_dir_all(&folder)?;
    for (name, text) in files {
        fs::write(folder.join(name), text)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_defect_has_the_same_folder() {
        let folder = tempfile::tempdir().unwrap();
        let files = |text: &str| vec![("test.toml".to_owned(), text.to_owned())];
        let a = write(folder.path(), &files("a")).unwrap();
        assert_eq!(a, write(folder.path(), &files("a")).unwrap());
        assert_ne!(a, write(folder.path(), &files("b")).unwrap());
        assert_eq!(fs::read_to_string(a.join("test.toml")).unwrap(), "a");
    }
}
