//! Finds installed compilers and runs them.
//!
//! # Invariants
//! - A compiler runs in a temporary folder, for at most [`PATIENCE`] per call, and leaves no files.
//! - If the compiler refuses one function, the others are compiled without it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::operation::{AtomicOperation, SourceLanguage, prologue};

/// The time limit for one call of a compiler.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The compiler family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// clang, for C and OpenCL C.
    Clang,
    /// NVIDIA's nvcc, for CUDA C++.
    Nvcc,
}

/// The first target with scopes (PTX ISA, Memory Consistency Model, Scope and applicability of the
/// model).
const SCOPED: u32 = 70;

/// A compiler.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// Its family.
    pub family: Family,
    /// The path of its executable.
    pub path: PathBuf,
    /// Its version line.
    pub version: String,
    /// Include folders for headers.
    pub include: Vec<PathBuf>,
    /// The target, as in `sm_70`.
    pub arch: String,
}

/// The result for one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A PTX text with its function.
    Text(String),
    /// The compiler's reason for refusing it.
    Refused(String),
}

impl Compiler {
    /// The compiler at that path, or with that name. It compiles for `arch`, by default for the
    /// oldest target that it supports.
    ///
    /// # Errors
    /// A sentence that says why it cannot run.
    pub fn new(
        family: Family,
        path: &Path,
        include: &[PathBuf],
        arch: Option<&str>,
    ) -> Result<Compiler, String> {
        let answer = Command::new(path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`{}` cannot be run: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&answer.stdout);
        // nvcc prints its version in its last lines.
        let line = match family {
            Family::Clang => text.lines().next(),
            Family::Nvcc => text.lines().find(|line| line.contains("release")),
        };
        match line.map(str::trim).filter(|_| answer.status.success()) {
            Some(version) => Ok(Compiler {
                family,
                path: path.to_owned(),
                version: version.to_owned(),
                include: include.to_vec(),
                arch: arch.map_or_else(|| oldest(family, path), str::to_owned),
            }),
            None => Err(format!(
                "`{} --version` printed no version of a known compiler",
                path.display()
            )),
        }
    }

    /// The compilers on `PATH`, recognised by name.
    pub fn installed(include: &[PathBuf], arch: Option<&str>) -> Vec<Compiler> {
        let folders: Vec<PathBuf> = std::env::var_os("PATH")
            .iter()
            .flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>())
            .collect();
        let mut found: Vec<Compiler> = Vec::new();
        for folder in folders {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            let mut names: Vec<String> = entries
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .collect();
            names.sort();
            for name in names {
                let Some(family) = family(&name) else {
                    continue;
                };
                let Ok(compiler) = Compiler::new(family, &folder.join(&name), include, arch) else {
                    continue;
                };
                // `clang` is often an alias of another entry.
                if !found.iter().any(|c| c.version == compiler.version) {
                    found.push(compiler);
                }
            }
        }
        found
    }

    /// The languages that it compiles.
    pub fn languages(&self) -> &'static [SourceLanguage] {
        match self.family {
            Family::Clang => &[
                SourceLanguage::C11,
                SourceLanguage::Scoped,
                SourceLanguage::OpenCl,
            ],
            Family::Nvcc => &[SourceLanguage::Cuda],
        }
    }

    /// Compiles operations and returns the output of each. If it cannot compile even an empty text
    /// (no target, or no headers), returns the reason.
    ///
    /// # Errors
    /// Errors of files or of the process.
    pub fn compile(
        &self,
        language: SourceLanguage,
        operations: &[AtomicOperation],
    ) -> io::Result<Result<Vec<(AtomicOperation, Output)>, String>> {
        let folder = tempfile::tempdir()?;
        if let Output::Refused(why) = self.run(language, &[], folder.path())? {
            return Ok(Err(why));
        }
        let mut outputs = Vec::with_capacity(operations.len());
        self.compile_part(language, operations, folder.path(), &mut outputs)?;
        Ok(Ok(outputs))
    }

    /// Compiles all operations at once; if that fails, each half separately.
    fn compile_part(
        &self,
        language: SourceLanguage,
        operations: &[AtomicOperation],
        folder: &Path,
        outputs: &mut Vec<(AtomicOperation, Output)>,
    ) -> io::Result<()> {
        match (self.run(language, operations, folder)?, operations) {
            (Output::Text(text), _) => {
                outputs.extend(
                    operations
                        .iter()
                        .map(|operation| (*operation, Output::Text(text.clone()))),
                );
            }
            (Output::Refused(_), []) => {}
            (Output::Refused(why), [one]) => outputs.push((*one, Output::Refused(why))),
            (Output::Refused(_), several) => {
                let (a, b) = several.split_at(several.len() / 2);
                self.compile_part(language, a, folder, outputs)?;
                self.compile_part(language, b, folder, outputs)?;
            }
        }
        Ok(())
    }

    /// Compiles a whole source file to PTX that names its lines. For clang without CUDA's headers,
    /// `prelude` is a header with the words of the language.
    ///
    /// # Errors
    /// Errors of files or of the process.
    pub fn module_of(&self, source: &Path, prelude: &str) -> io::Result<Output> {
        let folder = tempfile::tempdir()?;
        let source = fs::canonicalize(source)?;
        let made = folder.path().join("module.ptx");
        let cuda = source.extension().is_none_or(|ending| ending != "cl");
        let mut command = Command::new(&self.path);
        match self.family {
            Family::Nvcc => {
                command.args(["-ptx", "-O3", "-w", "-lineinfo", "-std=c++17"]);
                command.arg(format!("-arch={}", self.arch));
            }
            Family::Clang => {
                let header = folder.path().join("prelude.h");
                fs::write(&header, prelude)?;
                command.args([
                    "-S",
                    "-O2",
                    "-w",
                    "-gline-tables-only",
                    "-fno-crash-diagnostics",
                ]);
                match cuda {
                    true => command
                        .args([
                            "-x",
                            "cuda",
                            "--cuda-device-only",
                            "-nocudainc",
                            "-nocudalib",
                        ])
                        .arg(format!("--cuda-gpu-arch={}", self.arch)),
                    false => command
                        .args(["-x", "cl", "-cl-std=CL2.0", "--target=nvptx64-nvidia-cuda"])
                        .arg(format!("-march={}", self.arch)),
                };
                command.arg("-include").arg(header);
            }
        }
        command.arg("-o").arg(&made);
        for include in &self.include {
            command.arg(format!("-I{}", include.display()));
        }
        command.arg(&source);
        self.outcome(command, folder.path(), &made)
    }

    fn run(
        &self,
        language: SourceLanguage,
        operations: &[AtomicOperation],
        folder: &Path,
    ) -> io::Result<Output> {
        let row = language.row();
        let source = folder.join(format!("operations.{}", row.ending));
        let made = folder.join("operations.ptx");
        let functions: String = operations
            .iter()
            .map(|operation| operation.source(language))
            .collect();
        fs::write(&source, format!("{}{functions}", prologue(language)))?;
        let mut command = Command::new(&self.path);
        command.args(row.options).args(["-o"]).arg(&made);
        match self.family {
            Family::Clang => command
                .args([
                    "--target=nvptx64-nvidia-cuda",
                    "-nogpulib",
                    "-O2",
                    "-S",
                    "-w",
                    "-fno-crash-diagnostics",
                ])
                .arg(format!("-march={}", self.arch)),
            Family::Nvcc => command
                .args(["-ptx", "-O3", "-w"])
                .arg(format!("-arch={}", self.arch)),
        };
        command
            .args(
                self.include
                    .iter()
                    .map(|folder| format!("-I{}", folder.display())),
            )
            .arg(&source);
        self.outcome(command, folder, &made)
    }

    /// Runs a command in a folder; the result is the text of the file that it makes.
    fn outcome(&self, mut command: Command, folder: &Path, made: &Path) -> io::Result<Output> {
        let said = folder.join("said");
        let log = File::create(&said)?;
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut child = command.spawn()?;
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > until {
                child.kill()?;
                child.wait()?;
                return Ok(Output::Refused(format!(
                    "no answer within {} seconds",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if status.success() {
            return Ok(Output::Text(fs::read_to_string(made)?));
        }
        Ok(Output::Refused(reason(&String::from_utf8_lossy(
            &fs::read(&said)?,
        ))))
    }
}

/// The oldest target that the memory model covers. nvcc lists its targets and drops old ones in new
/// versions; clang keeps all.
fn oldest(family: Family, path: &Path) -> String {
    let listed = || {
        let answer = Command::new(path)
            .arg("--list-gpu-code")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        text.lines()
            .filter_map(|line| line.trim().strip_prefix("sm_")?.parse().ok())
            .filter(|n| *n >= SCOPED)
            .min()
    };
    let number = if family == Family::Nvcc {
        listed()
    } else {
        None
    };
    format!("sm_{}", number.unwrap_or(SCOPED))
}

/// The compiler family for the name of an executable.
fn family(name: &str) -> Option<Family> {
    match name {
        "nvcc" => Some(Family::Nvcc),
        "clang" => Some(Family::Clang),
        _ => name
            .strip_prefix("clang-")
            .filter(|rest| rest.chars().all(|c| c.is_ascii_digit()))
            .map(|_| Family::Clang),
    }
}

/// The first error message without parts that change between runs: addresses and files.
fn reason(said: &str) -> String {
    let line = said
        .lines()
        .find(|line| line.contains("error"))
        .or(said.lines().next())
        .unwrap_or("it does not say why");
    let start = line.find("error").unwrap_or(0);
    let words = line[start..]
        .split_whitespace()
        .filter(|word| !word.starts_with("0x"));
    let reason = words.collect::<Vec<_>>().join(" ");
    reason
        .trim_start_matches("error: ")
        .trim_start_matches("error in backend: ")
        .trim_end_matches(',')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whose_a_compiler_is() {
        assert_eq!(family("clang"), Some(Family::Clang));
        assert_eq!(family("clang-19"), Some(Family::Clang));
        assert_eq!(family("nvcc"), Some(Family::Nvcc));
        for other in [
            "clang++",
            "clang-format",
            "clang-cpp-19",
            "nvcc.profile",
            "gcc",
        ] {
            assert_eq!(family(other), None, "{other}");
        }
    }

    #[test]
    fn reasons_are_the_same_in_every_run() {
        let said = "warning: slow\nfatal error: error in backend: Cannot select: 0x55b: i32,ch = \
            AtomicLoad 0x55c, 0x55d\n";
        assert_eq!(reason(said), "Cannot select: i32,ch = AtomicLoad");
        assert_eq!(reason(""), "it does not say why");
    }

    #[test]
    fn what_is_no_compiler_is_named() {
        let missing =
            Compiler::new(Family::Clang, Path::new("/nowhere/clang"), &[], None).unwrap_err();
        assert!(
            missing.contains("`/nowhere/clang` cannot be run"),
            "{missing}"
        );
    }
}
