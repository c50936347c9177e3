//! Runs this program as a child, for servers: with a time limit, and cancelled at once.
//!
//! A server lives for hours, and a question can need all memory or end in a defect. A child takes
//! its memory and its threads along when it ends.
//!
//! # Invariants
//! - [`run`] ends when the limit passes, on a cancellation, and on a request to stop; the child has
//!   ended by then.
//! - The child writes to files in a temporary folder, so it never waits for a reader.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often a wait looks for the end, a cancellation, or a signal.
const PAUSE: Duration = Duration::from_millis(5);

/// The most bytes of an output that are passed on.
const LONGEST: usize = 64 << 10;

/// A command line for the child.
pub(super) struct ChildJob {
    /// The command and its options; the path of the input comes last.
    pub(super) arguments: Vec<String>,
    /// The input.
    pub(super) input: Input,
    /// The reports that the command writes, in addition to its output.
    pub(super) reports: &'static [&'static str],
    /// The longest time.
    pub(super) time: Duration,
}

/// The input of a child.
pub(super) enum Input {
    /// A file or folder, as the working directory has it.
    Path(PathBuf),
    /// A text, with the name of the file that it becomes.
    Text(String, String),
    /// A word of the command line.
    Word(String),
}

/// How a child ended.
pub(super) enum ChildOutcome {
    /// By itself.
    Finished(Finished),
    /// The limit passed.
    OutOfTime,
    /// The caller cancelled it, or the program has to stop.
    Cancelled,
}

/// The output of a child.
pub(super) struct Finished {
    /// The exit code; `None` after a signal.
    pub(super) code: Option<i32>,
    /// Standard output.
    pub(super) out: String,
    /// Standard error.
    pub(super) err: String,
    /// The report in JSON, or null.
    pub(super) report: Value,
    /// The report in SARIF, or null.
    pub(super) sarif: Value,
    /// The input as the child left it: `--bless` changes it.
    pub(super) text: Option<String>,
}

/// Ends the child when it is dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // If it has ended already, both calls fail and do no harm.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a child to its end.
///
/// # Errors
/// The child does not start, or its files cannot be written.
pub(super) fn run(job: &ChildJob, cancelled: &AtomicBool) -> io::Result<ChildOutcome> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(&job.arguments)
        .args(["--color", "never"])
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .stdout(fs::File::create(at("out"))?)
        .stderr(fs::File::create(at("err"))?);
    if !job.reports.is_empty() {
        command.arg("--no-config");
    }
    for &report in job.reports {
        let file = at(report);
        command
            .arg("--report")
            .arg(format!("{report}={}", file.display()));
    }
    let mut written = None;
    match &job.input {
        Input::Path(path) => command.arg("--").arg(path),
        Input::Word(word) => command.arg("--").arg(word),
        Input::Text(name, text) => {
            fs::create_dir(at("input"))?;
            let path = at("input").join(name);
            fs::write(&path, text)?;
            written = Some(path);
            command.arg("--").arg(name).current_dir(at("input"))
        }
    };
    let mut child = Guard(command.spawn()?);
    let end = Instant::now() + job.time;
    let code = loop {
        if let Some(status) = child.0.try_wait()? {
            break status.code();
        }
        if cancelled.load(Ordering::Relaxed) || stop::requested().is_some() {
            return Ok(ChildOutcome::Cancelled);
        }
        if Instant::now() >= end {
            return Ok(ChildOutcome::OutOfTime);
        }
        thread::sleep(PAUSE);
    };
    let report = |name: &str| {
        let text = fs::read(at(name)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    };
    Ok(ChildOutcome::Finished(Finished {
        code,
        out: beginning(&at("out"))?,
        err: beginning(&at("err"))?,
        report: report("json"),
        sarif: report("sarif"),
        text: written.and_then(|path| fs::read_to_string(path).ok()),
    }))
}

/// The text of a file, cut at the end of a line if it is too long.
fn beginning(path: &Path) -> io::Result<String> {
    let mut text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    if text.len() > LONGEST {
        let cut = text.as_bytes()[..LONGEST]
            .iter()
            .rposition(|&byte| byte == b'\n');
        text.truncate(cut.map_or(0, |at| at + 1));
        text += "… (cut)\n";
    }
    Ok(text)
}
