//! Values of options: names, and texts with more structure.

use std::path::PathBuf;

use clap::ValueEnum;
use front::litmus::source::SourceKind;

use crate::cli::memory::{self, Size};
use diag::nearest;
use engine::Engine;
use program::dialect::Runtime;
use program::occupancy::{self, Multiprocessor};
use report::ReportFormat;
use simt::{Early, Scheduling};

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Names of ways to schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SchedulingArg {
    /// Any thread: PTX for sm_70 and later.
    Independent,
    /// Warps share a program counter, as before Volta.
    Lockstep,
    /// Threads of a warp at one instruction step together, as a schedule optimizer groups them.
    Units,
    /// One work-group at a time, its work-items up to the next barrier in turn.
    SerialGroups,
    /// Work-items of a sub-group in turn.
    Subgroups,
}

impl From<SchedulingArg> for Scheduling {
    fn from(scheduling: SchedulingArg) -> Scheduling {
        match scheduling {
            SchedulingArg::Independent => Scheduling::Independent,
            SchedulingArg::Lockstep => Scheduling::Lockstep,
            SchedulingArg::Units => Scheduling::Units,
            SchedulingArg::SerialGroups => Scheduling::SerialGroups,
            SchedulingArg::Subgroups => Scheduling::Subgroups,
        }
    }
}

/// How many blocks a multiprocessor has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Resident {
    /// So many.
    Blocks(u32),
    /// As its resources allow.
    Auto(&'static Multiprocessor),
}

/// Reads a number of blocks, or `auto:sm_80`.
///
/// # Errors
/// It is neither, or the target is unknown.
pub(in crate::cli) fn resident(text: &str) -> Result<Resident, String> {
    if let Some(target) = text.strip_prefix("auto:") {
        let sm = occupancy::multiprocessor(target).ok_or_else(|| {
            let known = occupancy::MULTIPROCESSORS.iter();
            let known: Vec<String> = known.map(|sm| format!("sm_{}", sm.target)).collect();
            format!("expected one of {}", known.join(", "))
        })?;
        return Ok(Resident::Auto(sm));
    }
    let blocks = text.parse().ok().filter(|blocks| *blocks > 0);
    let expected = "expected a positive number, or `auto:` and a target such as `auto:sm_80`";
    blocks
        .map(Resident::Blocks)
        .ok_or_else(|| expected.to_owned())
}

/// A device of a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct DeviceArg {
    /// Its runtime.
    pub(in crate::cli) runtime: Runtime,
    /// Its number, or a part of its name; `None`: the first.
    pub(in crate::cli) device: Option<String>,
}

/// Memory: a limit for each question, or the kind of memory of the executor's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum MemoryArg {
    /// One store, threads in turns.
    Sc,
    /// The memory that the model allows, in order.
    Weak,
    /// A limit.
    Size(Size),
}

/// A schedule as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum ScheduleArg {
    /// Everything in turn.
    Exhaustive,
    /// Chance.
    Random,
    /// A file.
    Replay(PathBuf),
}

pub(in crate::cli) fn early(text: &str) -> Result<Early, String> {
    Early::parse(text).ok_or_else(|| {
        format!(
            "expected none, local, or full:N as in full:2{}",
            near(text, &["none", "local", "full"])
        )
    })
}

pub(in crate::cli) fn device(text: &str) -> Result<DeviceArg, String> {
    let (word, device) = text
        .split_once(':')
        .map_or((text, None), |(word, device)| (word, Some(device)));
    let runtime = [Runtime::OpenCl, Runtime::Cuda]
        .into_iter()
        .find(|runtime| ::device::word(*runtime) == word);
    match (runtime, device) {
        (Some(runtime), None) => Ok(DeviceArg {
            runtime,
            device: None,
        }),
        (Some(runtime), Some(device)) if !device.is_empty() => Ok(DeviceArg {
            runtime,
            device: Some(device.to_owned()),
        }),
        _ => Err(
            "expected opencl or cuda, or opencl:DEVICE or cuda:DEVICE with its number or a \
            part of its name; `fencepost devices` lists them"
                .to_owned(),
        ),
    }
}

/// How many, as in 5000 and 1e6.
pub(in crate::cli) fn count(text: &str) -> Result<u64, String> {
    let parsed = match text.split_once(['e', 'E']) {
        Some((digits, zeros)) => digits.parse::<u64>().ok().and_then(|n| {
            let factor = 10u64.checked_pow(zeros.parse().ok()?)?;
            n.checked_mul(factor)
        }),
        None => text.parse().ok(),
    };
    parsed
        .filter(|n| *n > 0)
        .ok_or_else(|| "expected a number, as in 5000 or 1e6".to_owned())
}

pub(in crate::cli) fn memory(text: &str) -> Result<MemoryArg, String> {
    match text {
        "sc" => Ok(MemoryArg::Sc),
        "weak" => Ok(MemoryArg::Weak),
        _ => memory::parse(text).map(MemoryArg::Size),
    }
}

pub(in crate::cli) fn schedule(text: &str) -> Result<ScheduleArg, String> {
    match text {
        "exhaustive" => Ok(ScheduleArg::Exhaustive),
        "random" => Ok(ScheduleArg::Random),
        _ => match text.strip_prefix("replay:") {
            Some(file) if !file.is_empty() => Ok(ScheduleArg::Replay(file.into())),
            _ => {
                let hint = near(text, &["exhaustive", "random", "replay"]);
                Err(format!("expected exhaustive, random, or replay:FILE{hint}"))
            }
        },
    }
}

/// The word that was probably meant; words may have a value behind a colon.
fn near(text: &str, words: &[&str]) -> String {
    let word = text.split(':').next().unwrap_or(text);
    nearest(word, words.iter().copied())
        .map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// Names of engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum EngineArg {
    /// The faster one for the question at hand.
    Auto,
    /// A circuit, and Z3.
    Symbolic,
    /// A circuit, and a SAT solver that is built in.
    Sat,
    /// Explicit enumeration.
    Enumerate,
    /// All of them, and fail if they differ.
    Both,
}

impl From<EngineArg> for Engine {
    fn from(engine: EngineArg) -> Engine {
        match engine {
            EngineArg::Auto => Engine::Auto,
            EngineArg::Symbolic => Engine::Symbolic,
            EngineArg::Sat => Engine::Sat,
            EngineArg::Enumerate => Engine::Enumerate,
            EngineArg::Both => Engine::Both,
        }
    }
}

/// The reaction to an empty selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum NoTests {
    /// All is well.
    Pass,
    /// Exit code 4.
    #[default]
    Fail,
}

/// Findings that may be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Deny {
    /// Programs that are undefined under the model, if the test does not mention it.
    Undefined,
    /// Programs that race under the model, where the test does not mention it.
    Race,
}

/// Rules of style that programs may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LintArg {
    /// The guidelines of OpenCL, with which a program needs no relaxed memory model.
    Guidelines,
}

/// Languages of source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LanguageArg {
    /// CUDA C++
    Cuda,
    /// OpenCL C
    Opencl,
    /// PTX
    Ptx,
    /// SPIR-V
    Spirv,
}

impl LanguageArg {
    /// As the reader of files has it.
    pub(in crate::cli) fn kind(self) -> SourceKind {
        match self {
            LanguageArg::Cuda => SourceKind::Cuda,
            LanguageArg::Opencl => SourceKind::OpenCl,
            LanguageArg::Ptx => SourceKind::Ptx,
            LanguageArg::Spirv => SourceKind::SpirV,
        }
    }
}

/// Advice that counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum DenyAdvice {
    /// Programs in which something is stronger than it must be.
    OverSynchronised,
}

/// Names of formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FormatArg {
    /// For people.
    Human,
    /// One object.
    Json,
    /// One object per line.
    Jsonl,
    /// XML for CI servers (`check`, `ask`, `compare`).
    Junit,
    /// Findings, for code scanning (`check`, `ask`, `compare`).
    Sarif,
    /// Findings, as annotations of GitHub Actions (`check`, `ask`, `compare`).
    Github,
    /// Findings, for the Code Quality report of GitLab (`check`, `ask`, `compare`).
    Gitlab,
    /// A table of findings, for summaries of jobs (`check`, `ask`, `compare`), or of outcomes
    /// (`outcomes`).
    Markdown,
    /// The Test Anything Protocol (`check`, `ask`, `compare`).
    Tap,
    /// Comma-separated values (`check`, `ask`, `compare`, `outcomes`).
    Csv,
    /// A table for papers (`check`, `ask`, `compare`, `outcomes`).
    Latex,
    /// A page with a table to search, and pictures (`check`, `ask`, `compare`).
    Html,
}

/// The answers of a suite with pictures in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum PicturesArg {
    /// None.
    None,
    /// Answers that are not as expected.
    Unmet,
    /// All answers with an execution to draw; takes time.
    All,
}

/// The events of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OnlyArg {
    /// Accesses that race, and the steps of a cycle.
    Racing,
}

impl From<FormatArg> for ReportFormat {
    fn from(format: FormatArg) -> ReportFormat {
        match format {
            FormatArg::Human => ReportFormat::Human,
            FormatArg::Json => ReportFormat::Json,
            FormatArg::Jsonl => ReportFormat::Jsonl,
            FormatArg::Junit => ReportFormat::Junit,
            FormatArg::Sarif => ReportFormat::Sarif,
            FormatArg::Github => ReportFormat::Github,
            FormatArg::Gitlab => ReportFormat::Gitlab,
            FormatArg::Markdown => ReportFormat::Markdown,
            FormatArg::Csv => ReportFormat::Csv,
            FormatArg::Latex => ReportFormat::Latex,
            FormatArg::Tap => ReportFormat::Tap,
            FormatArg::Html => ReportFormat::Html,
        }
    }
}

pub(in crate::cli) fn option_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.into(), value.into()))
        }
        _ => Err("expected OPTION=VALUE".into()),
    }
}

pub(in crate::cli) fn report_file(text: &str) -> Result<(FormatArg, PathBuf), String> {
    match text.split_once('=') {
        Some((format, file)) if !file.is_empty() => {
            Ok((FormatArg::from_str(format, false)?, file.into()))
        }
        _ => Err("expected FORMAT=FILE, as in jsonl=answers.jsonl".into()),
    }
}
