//! Writes reproducers: everything needed to see a defect of Fencepost again, in a new folder.
//!
//! # Invariants
//! - The folder's name depends on its contents: the same defect gives the same folder, and
//!   overwrites it.

use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use super::catalogue::Named;
use super::load::Crash;
use super::settings::Settings;
use device::TestKernel;
use diag::{Diagnostic, SourceFile};
use engine::Engine;
use program::litmus::LitmusTest;

/// A defect, as the user sees it.
#[derive(Clone, Debug)]
pub(super) struct Defect {
    /// Its place: test, model, question.
    pub place: String,
    /// The broken law.
    pub text: String,
    /// The reproducer's folder, or the reason why it is missing.
    pub reproducer: Result<PathBuf, String>,
}

/// The file with the schedule, beside a defect of `run`.
pub(super) const SCHEDULE: &str = "schedule.json";

/// How to see a defect of `run` again.
#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    /// Options, each with a blank before it.
    pub words: String,
    /// The text of [`SCHEDULE`].
    pub schedule: Option<String>,
}

/// Writes the reproducer of a defect that appeared when `question` was put.
pub(super) fn record(
    test: &LitmusTest,
    model: &Named,
    question: &str,
    text: &str,
    settings: &Settings,
) -> Defect {
    reproduce(test, model, question, text, settings, None)
}

/// Writes the reproducer of a defect that appeared in a run of a test.
pub(super) fn record_run(
    test: &LitmusTest,
    model: &Named,
    text: &str,
    settings: &Settings,
    again: &Again,
) -> Defect {
    reproduce(test, model, "run", text, settings, Some(again))
}

/// Writes the evidence that a device does something the model forbids: the test, the kernel, and
/// the launch.
pub(super) fn record_find(
    test: &LitmusTest,
    text: &str,
    kernel: &TestKernel<'_>,
    again: &str,
    settings: &Settings,
) -> Result<PathBuf, String> {
    let test_file = format!("test.{}", ending(&test.file));
    let report = format!(
        "fencepost {}\n{}\n\n{text}\n\nTo look for it again, in this folder:\nfencepost run \
        {test_file} {again}\n",
        env!("CARGO_PKG_VERSION"),
        test.name
    );
    let files = [
        (test_file, test.file.text.clone().into_bytes()),
        (kernel.file.into(), kernel.source.as_bytes().to_vec()),
        ("find.txt".into(), report.into_bytes()),
    ];
    write(&settings.repro_dir, "find", &files).map_err(|error| error.to_string())
}

fn reproduce(
    test: &LitmusTest,
    model: &Named,
    question: &str,
    text: &str,
    settings: &Settings,
    again: Option<&Again>,
) -> Defect {
    let place = format!("{} under {}, {question}", test.name, model.request);
    let mut files = vec![(
        format!("test.{}", ending(&test.file)),
        test.file.text.clone().into_bytes(),
    )];
    let mut request = model.request.clone();
    if request != model.label {
        // A user's file, with its includes.
        for file in &model.model.files {
            let name = Path::new(&file.name)
                .file_name()
                .map_or("model.cat".into(), |n| n.to_string_lossy());
            files.push((name.into_owned(), file.text.clone().into_bytes()));
        }
        request = Path::new(&request)
            .file_name()
            .map_or(request.clone(), |n| n.to_string_lossy().into_owned());
    }
    let command = command(&files[0].0, &request, settings, again);
    files.extend(
        again
            .and_then(|a| a.schedule.as_ref())
            .map(|s| (SCHEDULE.to_owned(), s.clone().into_bytes())),
    );
    let report = format!(
        "fencepost {}\n{place}\n\n{text}\n\nTo see it again, in this folder:\n{command}\n",
        env!("CARGO_PKG_VERSION")
    );
    files.push(("defect.txt".into(), report.into_bytes()));
    let reproducer =
        write(&settings.repro_dir, "defect", &files).map_err(|error| error.to_string());
    Defect {
        place,
        text: text.to_owned(),
        reproducer,
    }
}

/// Writes the reproducer of a panic of the test front end.
pub(super) fn record_crash(crash: &Crash, repro_dir: &Path) -> Defect {
    let name = match Path::new(&crash.path).file_name() {
        Some(name) if crash.path != "-" => name.to_string_lossy().into_owned(),
        _ => "stdin".to_owned(),
    };
    let place = format!("reading {}", crash.path);
    let report = format!(
        "fencepost {}\n{place}\n\n{}\n\nTo see it again, in this folder:\nfencepost check {name}\n",
        env!("CARGO_PKG_VERSION"),
        crash.message
    );
    let files = [
        (name, crash.bytes.clone()),
        ("defect.txt".into(), report.into()),
    ];
    let reproducer = write(repro_dir, "defect", &files).map_err(|error| error.to_string());
    Defect {
        place,
        text: crash.message.clone(),
        reproducer,
    }
}

/// A defect as a diagnostic.
pub(super) fn diagnostic(defect: &Defect) -> Diagnostic {
    let diagnostic =
        Diagnostic::plain("defect", format!("a defect of Fencepost: {}", defect.place));
    let diagnostic = defect.text.lines().fold(diagnostic, |d, line| d.note(line));
    match &defect.reproducer {
        Ok(folder) => diagnostic.help(format!("a reproducer was written to {}", folder.display())),
        Err(why) => diagnostic.note(format!("no reproducer could be written: {why}")),
    }
}

fn ending(file: &SourceFile) -> &'static str {
    if file.name.ends_with(".litmus") {
        "litmus"
    } else {
        "toml"
    }
}

fn command(test: &str, model: &str, settings: &Settings, again: Option<&Again>) -> String {
    let engine = if settings.engine == Engine::Auto {
        "auto"
    } else {
        settings.engine.name()
    };
    let (command, rest) = match again {
        Some(again) => ("run", again.words.as_str()),
        None => ("check", " --all-properties"),
    };
    let mut words = format!("fencepost {command} {test} --model {model} --engine {engine}{rest}");
    if let Some(bound) = settings.limits.bound {
        words += &format!(" --bound {bound}");
    }
    for (name, value) in settings.set.iter().map(|s| s.words()) {
        words += &format!(" --set {name}={value}");
    }
    if let Some(mapping) = settings.mapping {
        words += &format!(" --mapping {}", mapping.asked);
    }
    words
}

fn write(folder: &Path, kind: &str, files: &[(String, Vec<u8>)]) -> io::Result<PathBuf> {
    let mut hasher = rustc_hash::FxHasher::default();
    for (name, text) in files {
        hasher.write(name.as_bytes());
        hasher.write(text);
    }
    let folder = folder.join(format!("fencepost-{kind}-{:016x}", hasher.finish()));
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
        let files = |text: &str| vec![("test.toml".to_owned(), text.as_bytes().to_vec())];
        let a = write(folder.path(), "defect", &files("a")).unwrap();
        assert_eq!(a, write(folder.path(), "defect", &files("a")).unwrap());
        assert_ne!(a, write(folder.path(), "defect", &files("b")).unwrap());
        assert_eq!(fs::read_to_string(a.join("test.toml")).unwrap(), "a");
    }
}
