//! Compares kernels in SPIR-V with their source in OpenCL C.
//!
//! `clang-15` and `llvm-spirv-15` make modules of random kernels, without and with optimisations;
//! `CLANG` and `LLVM_SPIRV` override them. The front end reads source and module. Sequential
//! programs ([`testkit::sequential`]) must leave the same values in memory. Programs of several
//! work-items ([`testkit::clike`]) must have the same outcomes and the same race verdict.
//!
//! If one of the two tools is missing, the tests say so and pass. `FENCEPOST_PROGRAMS` and
//! `FENCEPOST_SEED` work as in the other tests of random programs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use fencepost::check::{Engine, Limits, Session};
use fencepost::diag::{Diagnostic, Severity};
use fencepost::litmus::source::Options;
use fencepost::litmus::{LitmusTest, TestFile, read_with};
use fencepost::model::Model;
use fencepost::program::LocId;
use fencepost::program::litmus::Observable;
use fencepost::verdict::State;
use testkit::clike::Lang;
use testkit::clike::kernel::ProgramKernel;
use testkit::clike::shapes::program_of_one_device;
use testkit::sequential::{Language, Program};
use testkit::suite::{number, programs, shipped};

use crate::sequential::run;

/// Kernels in one module. The translator refuses modules with integers of odd sizes, which
/// optimisations make; then each kernel gets a module of its own.
const BATCH: usize = 25;

/// The optimisations of the compiler.
const LEVELS: [&str; 2] = ["-O0", "-O1"];

/// A kernel with a launch.
struct RandomKernel {
    seed: u64,
    name: String,
    kernel: ProgramKernel,
}

/// The tests of kernels by name, with the reasons why others cannot be read.
#[derive(Default)]
struct ReadKernels {
    tests: BTreeMap<String, LitmusTest>,
    refused: BTreeMap<String, u64>,
}

/// The output of a tool, or what it says; `None` if there is no such tool.
fn tool(variable: &str, name: &str, arguments: &[&str]) -> Option<Result<(), String>> {
    let program = std::env::var(variable).unwrap_or(name.into());
    match Command::new(&program).args(arguments).output() {
        Ok(made) if made.status.success() => Some(Ok(())),
        Ok(made) => Some(Err(String::from_utf8_lossy(&made.stderr).into_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => panic!("{program}: {e}"),
    }
}

/// The module that the tools make of a source; `None` if one of them is missing.
fn module(source: &str, level: &str, folder: &Path) -> Option<Result<Vec<u8>, String>> {
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
    let (code, bitcode, module) = (path("all.cl"), path("all.bc"), path("all.spv"));
    std::fs::write(&code, source).expect("a folder of our own");
    let how = [
        "-target",
        "spirv64",
        "-cl-std=CL2.0",
        "-Xclang",
        "-finclude-default-header",
        "-w",
        level,
        "-fwrapv",
        "-fno-discard-value-names",
        "-emit-llvm",
        "-c",
        &code,
        "-o",
        &bitcode,
    ];
    if let Err(why) = tool("CLANG", "clang-15", &how)? {
        panic!("{why}\n{source}");
    }
    let made = tool("LLVM_SPIRV", "llvm-spirv-15", &[&bitcode, "-o", &module])?;
    Some(made.map(|()| std::fs::read(&module).expect("it was just made")))
}

/// Reads the kernels of a file with their launches.
fn read(name: &str, bytes: &[u8], kernels: &[RandomKernel], into: &mut ReadKernels) {
    let options = Options {
        launches: kernels.iter().map(|k| k.kernel.launch.clone()).collect(),
        ..Options::default()
    };
    let read = read_with(name, bytes, &options);
    let found = read.unwrap_or_else(|warnings| TestFile {
        warnings,
        ..TestFile::default()
    });
    for wrong in &found.warnings {
        if wrong.severity == Severity::Error {
            *into.refused.entry(kind_of(wrong)).or_default() += 1;
        }
    }
    for mut test in found.tests {
        let kernel = kernels.iter().find(|k| k.name == test.name);
        let kernel = kernel.expect("each test is of a launch");
        test.observe = observed(&test, &kernel.kernel.observed);
        into.tests.insert(test.name.clone(), test);
    }
}

/// A message without its numbers and the names of kernels.
fn kind_of(wrong: &Diagnostic) -> String {
    let words = wrong
        .message
        .split(' ')
        .filter(|word| !word.starts_with("`k"));
    let plain = |word: &str| {
        word.trim_matches(|c: char| c.is_ascii_digit() || c == ':')
            .to_owned()
    };
    format!(
        "{}; {}",
        words.map(plain).collect::<Vec<_>>().join(" "),
        wrong.label
    )
}

/// The elements of buffers, which have the same order in all languages.
fn observed(test: &LitmusTest, buffers: &[(String, u32)]) -> Vec<Observable> {
    let mut all = Vec::new();
    for (name, size) in buffers {
        let loc = test.program.locations.iter().position(|l| l.name == *name);
        let loc = loc.unwrap_or_else(|| panic!("no buffer `{name}`\n{}", test.file.text));
        let loc = LocId(loc as u16);
        all.extend((0..*size).map(|index| Observable::Mem {
            loc,
            index,
            viewer: None,
        }));
    }
    all
}

/// Whether the translator wrote a module: for some constants it writes a linkage that is none.
fn is_module(bytes: &[u8]) -> bool {
    let read = read_with("all.spv", bytes, &Options::default());
    !read.is_err_and(|wrong| wrong.iter().any(|d| d.id == "spirv-module"))
}

/// The tests of modules; `None` without the tools.
fn in_spirv(kernels: &[RandomKernel], level: &str, folder: &Path) -> Option<ReadKernels> {
    let mut all = ReadKernels::default();
    let mut parts = vec![kernels];
    while let Some(part) = parts.pop() {
        let source: String = part.iter().map(|k| k.kernel.code.as_str()).collect();
        match module(&source, level, folder)? {
            Ok(bytes) if part.len() == 1 || is_module(&bytes) => {
                read("all.spv", &bytes, part, &mut all);
            }
            Err(why) if part.len() == 1 => {
                let why = why.lines().next().unwrap_or_default();
                *all.refused.entry(format!("llvm-spirv: {why}")).or_default() += 1;
            }
            _ => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
        }
    }
    Some(all)
}

/// Random kernels of a number of seeds, in parts.
fn parts(count: u64, make: impl Fn(u64) -> RandomKernel) -> Vec<Vec<RandomKernel>> {
    let first = number("FENCEPOST_SEED", 1);
    let all: Vec<u64> = (first..first + count).collect();
    all.chunks(BATCH)
        .map(|seeds| seeds.iter().map(|seed| make(*seed)).collect())
        .collect()
}

fn without_tools() {
    eprintln!("there is no `clang-15` with `llvm-spirv-15`: nothing compared");
}

#[test]
fn kernels_in_spirv_compute_what_their_source_says() {
    let folder = tempfile::tempdir().expect("a folder for the compiler");
    let (mut compared, mut refused) = (0, BTreeMap::<String, u64>::new());
    let made = |seed| {
        let (program, name) = (Program::of(Language::OpenCl, seed), format!("k{seed}"));
        let results = program.results() as u32;
        RandomKernel {
            seed,
            kernel: ProgramKernel {
                code: program.opencl_kernel(&name),
                launch: format!("{name}<<<1, 1>>>(results[{results}])"),
                observed: vec![("results".into(), results)],
            },
            name,
        }
    };
    for part in parts(programs(800), made) {
        for level in LEVELS {
            let Some(read) = in_spirv(&part, level, folder.path()) else {
                return without_tools();
            };
            for (why, count) in read.refused {
                *refused.entry(why).or_default() += count;
            }
            for kernel in &part {
                let Some(test) = read.tests.get(&kernel.name) else {
                    continue;
                };
                let program = Program::of(Language::OpenCl, kernel.seed);
                let source = run(&program.read()).expect("it ends");
                let found = run(test).unwrap_or_else(|why| {
                    panic!(
                        "seed {} {level}: {why}\n{}",
                        kernel.seed, kernel.kernel.code
                    )
                });
                assert_eq!(
                    found, source,
                    "seed {} {level}:\n{}",
                    kernel.seed, kernel.kernel.code
                );
                compared += 1;
            }
        }
    }
    eprintln!("{compared} kernels compared with their source; refused: {refused:#?}");
    assert!(compared > 0, "{refused:#?}");
}

/// The values of a state. Integers have no sign in SPIR-V, so each is taken as one with a sign.
fn values(state: &State) -> Vec<i32> {
    let value = |text: &str| text.parse::<i64>().expect("a number") as i32;
    state.iter().map(|(_, text)| value(text)).collect()
}

/// What is possible in a test, and whether it races; `None`: the engines cannot say.
fn possible(test: &LitmusTest, model: &Model) -> Option<(BTreeSet<Vec<i32>>, String)> {
    let limits = Limits {
        timeout: Some(std::time::Duration::from_secs(5)),
        ..Limits::default()
    };
    let mut session = Session::new(test, model, Engine::Auto, limits, &[]);
    let race = session.race()?.verdict.word().to_owned();
    let found = session.outcomes();
    assert_eq!(found.defect, None, "{}", test.file.text);
    if !found.complete || race == "undecided" {
        return None;
    }
    let allowed = found.outcomes.into_iter().filter(|o| o.allowed);
    Some((allowed.map(|o| values(&o.state)).collect(), race))
}

#[test]
fn kernels_in_spirv_have_the_outcomes_of_their_source() {
    let folder = tempfile::tempdir().expect("a folder for the compiler");
    let model = shipped("opencl");
    let (mut compared, mut racy, mut open) = (0, 0, 0);
    let mut refused = BTreeMap::<String, u64>::new();
    let made = |seed| {
        let name = format!("k{seed}");
        let kernel = program_of_one_device(Lang::OpenCl, seed).kernel(&name);
        RandomKernel { seed, name, kernel }
    };
    for part in parts(programs(800), made) {
        let source: String = part.iter().map(|k| k.kernel.code.as_str()).collect();
        let mut sources = ReadKernels::default();
        read("all.cl", source.as_bytes(), &part, &mut sources);
        assert!(sources.refused.is_empty(), "{:#?}", sources.refused);
        for level in LEVELS {
            let Some(read) = in_spirv(&part, level, folder.path()) else {
                return without_tools();
            };
            for (why, count) in read.refused {
                *refused.entry(why).or_default() += count;
            }
            for kernel in &part {
                let (Some(test), Some(source)) = (
                    read.tests.get(&kernel.name),
                    sources.tests.get(&kernel.name),
                ) else {
                    continue;
                };
                let (Some(found), Some(wanted)) =
                    (possible(test, &model), possible(source, &model))
                else {
                    open += 1;
                    continue;
                };
                // Optimisations may use that a race is undefined: they leave out accesses.
                if level != LEVELS[0] && wanted.1 == "racy" {
                    continue;
                }
                assert_eq!(
                    found, wanted,
                    "seed {} {level}:\n{}\n{}",
                    kernel.seed, kernel.kernel.launch, kernel.kernel.code
                );
                compared += 1;
                racy += u64::from(wanted.1 == "racy");
            }
        }
    }
    eprintln!(
        "{compared} kernels compared with their source, {racy} of them racy; {open} undecided; \
         refused: {refused:#?}"
    );
    assert!(compared > 0, "{refused:#?}");
}
