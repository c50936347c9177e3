//! Compares the front end of the C family with independent compilers.
//!
//! A compiler of C, C++ or OpenCL C compiles random sequential programs ([`testkit::sequential`]),
//! and they run. The final values of memory and registers must be those of the executor's memory
//! `sc` with the program's one thread. For a part of them, the model `sc` must give the same.
//!
//! The compilers are `cc`, `c++` and, for OpenCL C, `clang-15`; `CC`, `CXX` and `CLANG` override
//! them. `-fwrapv` gives signed overflow the meaning that it has here. If a compiler is missing,
//! the test says so and passes: CI has all. The test of OpenCL C is ignored by default: `cargo test
//! --test engines -- --ignored opencl_c_means`. `FENCEPOST_PROGRAMS` and `FENCEPOST_SEED` work as
//! in the other tests of random programs.
//!
//! The same programs serve as kernels in CUDA C++: `NVCC` compiles them to PTX, and `fencepost
//! import` reads that. This compares the instructions of PTX with their source.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use fencepost::check::{Engine, Limits, Session};
use fencepost::diag::Diagnostic;
use fencepost::litmus::LitmusTest;
use fencepost::litmus::kernel::{Launch, PtxFile};
use fencepost::program::{Instr, Op};
use fencepost::simt::{MachineMemory, RunOptions, Schedule, observe};
use testkit::made;
use testkit::sequential::{Language, Program};
use testkit::suite::{number, programs, shipped};

/// The number of programs in one file for the compiler.
const BATCH: u64 = 200;
/// For one of this number of programs the model decides, too, if its code is no longer than
/// `LARGEST`.
const ASKED: u64 = 5;
const LARGEST: usize = 200;

const STANDARD: &str = "#include <stdio.h>\n#include <stdbool.h>\n#include <stdlib.h>\n";
/// OpenCL C, *Integer Functions*: those that the programs use.
const OPENCL: &str = "#define popcount(x) ((unsigned)__builtin_popcount(x))\n#define abs(x) ((unsigned)__builtin_abs(x))\n";
const MAIN: &str = "#include <stdio.h>\nvoid test(long *);\n";
const SHOW: &str = "static void show(int first, int n) { for (int i = 0; i < n; i++) printf(\"%ld \", all[first + i]); printf(\"\\n\"); }\n";

/// The output of the compiler's programs, a line each; `None` if there is no compiler.
fn compiled(language: Language, programs: &[Program], folder: &Path) -> Option<Vec<String>> {
    let (variable, compiler, standard, ending) = match language {
        Language::C => ("CC", "cc", "-std=gnu11", "c"),
        Language::Cpp => ("CXX", "c++", "-std=gnu++17", "cc"),
        Language::OpenCl => ("CLANG", "clang-15", "-w", "cl"),
    };
    let compiler = std::env::var(variable).unwrap_or(compiler.into());
    let (source, program) = (folder.join(format!("all.{ending}")), folder.join("all"));
    let mut made = Command::new(&compiler);
    made.args([standard, "-O0", "-fwrapv", "-w", "-o"])
        .arg(&program);
    let functions = programs
        .iter()
        .enumerate()
        .map(|(i, p)| p.function(&format!("f{i}")));
    let mut text = functions.collect::<String>();
    if language == Language::OpenCl {
        // OpenCL C has no library and cannot print: a program in C prints the values.
        let first = |i: usize| programs[..i].iter().map(Program::results).sum::<usize>();
        let calls = (0..programs.len())
            .map(|i| format!("f{i}(results + {});\n", first(i)))
            .collect::<String>();
        text = format!("{OPENCL}{text}kernel void test(global long *results) {{\n{calls}}}\n");
        let show = |(i, p): (usize, &Program)| format!("show({}, {});\n", first(i), p.results());
        let shows = programs.iter().enumerate().map(show).collect::<String>();
        let main = format!(
            "{MAIN}long all[{}];\n{SHOW}int main(void) {{\ntest(all);\n{shows}}}\n",
            first(programs.len()).max(1)
        );
        let printing = folder.join("main.c");
        std::fs::write(&printing, main).expect("a folder of our own");
        // The name of each file gives its language.
        made.arg(&printing);
    } else {
        let calls = (0..programs.len())
            .map(|i| format!("f{i}();\n"))
            .collect::<String>();
        text = format!("{STANDARD}{text}int main(void) {{\n{calls}return 0; }}\n");
    }
    std::fs::write(&source, text).expect("a folder of our own");
    let made = made.arg(&source).output();
    let made = match made {
        Ok(made) => made,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => panic!("{compiler}: {e}"),
    };
    assert!(
        made.status.success(),
        "{}\n{}",
        source.display(),
        String::from_utf8_lossy(&made.stderr)
    );
    let ran = Command::new(&program).output().expect("it was just made");
    assert!(ran.status.success(), "{}: {}", source.display(), ran.status);
    let lines = String::from_utf8(ran.stdout).expect("numbers");
    Some(lines.lines().map(|l| l.trim().to_string()).collect())
}

/// The final values by the executor.
fn executed(program: &Program) -> String {
    run(&program.read()).unwrap_or_else(|why| panic!("{why}\n{}", program.text()))
}

/// The final values of a test that has one outcome.
pub(crate) fn run(test: &LitmusTest) -> Result<String, String> {
    let options = RunOptions {
        memory: MachineMemory::Sc,
        ..RunOptions::default()
    };
    let seen = observe(test, &options, Schedule::Random { runs: 1, seed: 1 })
        .map_err(|why| format!("{why:?}"))?;
    match seen.outcomes.as_slice() {
        [one] => Ok(one
            .state
            .iter()
            .map(i64::to_string)
            .collect::<Vec<_>>()
            .join(" ")),
        _ => Err(format!("it does not end: {:?}", seen.stops)),
    }
}

/// The final values by the model; `None` if the program is too large.
fn decided(program: &Program) -> Option<String> {
    let (test, model) = (program.read(), shipped("sc"));
    // Unrolling nested loops gives very many copies: only the executor runs them.
    let code = &test.program.threads[0].code;
    let back = |(at, instr): (usize, &Instr)| matches!(instr.op, Op::Branch { target, .. } if target <= at);
    if code.len() > LARGEST || code.iter().enumerate().filter(|i| back(*i)).count() > 1 {
        return None;
    }
    let limits = Limits {
        bound: Some(8),
        timeout: Some(std::time::Duration::from_secs(5)),
    };
    let found = Session::new(&test, &model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(found.defect, None, "{}", program.text());
    let allowed: Vec<_> = found.outcomes.into_iter().filter(|o| o.allowed).collect();
    match allowed.as_slice() {
        // A number that is also an address is printed as one.
        [one] if one.state.iter().any(|v| v.1.starts_with('&')) => None,
        [one] if found.complete => Some(
            one.state
                .iter()
                .map(|v| v.1.clone())
                .collect::<Vec<_>>()
                .join(" "),
        ),
        _ if !found.complete => None,
        all => panic!("{} outcomes of one thread\n{}", all.len(), program.text()),
    }
}

fn agree(language: Language) {
    let folder = tempfile::tempdir().expect("a folder for the compiler");
    let (count, first) = (programs(2_000), number("FENCEPOST_SEED", 1));
    let (mut compared, mut asked) = (0, 0);
    for start in (first..first + count).step_by(BATCH as usize) {
        let seeds: Vec<u64> = (start..(start + BATCH).min(first + count)).collect();
        let all: Vec<Program> = seeds
            .iter()
            .map(|seed| Program::of(language, *seed))
            .collect();
        let Some(lines) = compiled(language, &all, folder.path()) else {
            assert!(
                std::env::var_os("CI").is_none(),
                "there is no compiler for {language:?}, and in CI there is one"
            );
            eprintln!("no compiler for {language:?}: nothing compared");
            return;
        };
        assert_eq!(lines.len(), all.len());
        for ((program, line), seed) in all.iter().zip(&lines).zip(&seeds) {
            if executed(program) != *line {
                let differs = |p: &Program| {
                    compiled(language, std::slice::from_ref(p), folder.path())
                        .is_some_and(|l| l[0] != executed(p))
                };
                let small = made::smallest(program, Program::smaller, differs);
                let lines = compiled(language, std::slice::from_ref(&small), folder.path())
                    .expect("it was there");
                panic!(
                    "seed {seed}:\n{}\ncompiler {}\nhere     {}",
                    small.text(),
                    lines[0],
                    executed(&small)
                );
            }
            compared += 1;
            if seed % ASKED == 0
                && let Some(decided) = decided(program)
            {
                assert_eq!(decided, *line, "seed {seed}:\n{}", program.text());
                asked += 1;
            }
        }
    }
    eprintln!(
        "{language:?}: {compared} programs compared with the compiler's, {asked} of them also by the model `sc`"
    );
    assert!(asked > 0 || count < ASKED, "the model was asked nothing");
}

#[test]
fn c_means_what_its_compiler_says() {
    agree(Language::C);
}

#[test]
fn cpp_means_what_its_compiler_says() {
    agree(Language::Cpp);
}

#[test]
#[ignore = "needs a compiler of OpenCL C"]
fn opencl_c_means_what_its_compiler_says() {
    agree(Language::OpenCl);
}

/// The final values of a kernel of a module, or the reason why it cannot be read.
fn imported(module: &PtxFile, name: &str, results: usize) -> Result<String, String> {
    let launch = Launch {
        grid: vec![1],
        block: vec![1],
        args: vec![format!("0=results:s64[{results}]")],
        ask: Some("results[0] == 0".into()),
        ..Launch::default()
    };
    let first = |all: Vec<Diagnostic>| all.first().map_or(String::new(), |d| d.message.clone());
    let (text, _) = module.to_toml(Some(name), &launch).map_err(first)?;
    let observe: Vec<String> = (0..results).map(|i| format!("\"results[{i}]\"")).collect();
    let text = text.replace(
        "\n[memory]\n",
        &format!("observe = [{}]\n\n[memory]\n", observe.join(", ")),
    );
    run(&made::read(&text))
}

#[test]
#[ignore = "needs NVCC, NVIDIA's compiler of CUDA C++"]
fn kernels_mean_what_their_source_says() {
    let nvcc = std::env::var("NVCC").expect("NVCC is the path of nvcc");
    let folder = tempfile::tempdir().expect("a folder for the compiler");
    let (source, ptx) = (folder.path().join("all.cu"), folder.path().join("all.ptx"));
    let (count, seed) = (programs(1_000), number("FENCEPOST_SEED", 1));
    let (mut compared, mut refused) = (0, BTreeMap::<String, u32>::new());
    for start in (seed..seed + count).step_by(BATCH as usize) {
        let seeds = start..(start + BATCH).min(seed + count);
        // GCC takes such a label of unsigned type; ISO C++ and this compiler do not.
        let takes = |p: &(u64, Program)| !p.1.text().contains("case -1:");
        let all: Vec<(u64, Program)> = seeds
            .map(|seed| (seed, Program::of(Language::Cpp, seed)))
            .filter(takes)
            .collect();
        let text: String = all
            .iter()
            .map(|(seed, program)| program.kernel(&format!("k{seed}")))
            .collect();
        std::fs::write(&source, text).expect("a folder of our own");
        // Without and with the compiler's optimisations.
        for how in [&["-G"][..], &[]] {
            let mut made = Command::new(&nvcc);
            made.args(["-ptx", "-w", "-std=c++17", "-arch=compute_90", "-o"])
                .arg(&ptx)
                .args(how)
                .arg(&source);
            let made = made.output().expect("nvcc runs");
            assert!(
                made.status.success(),
                "{}",
                String::from_utf8_lossy(&made.stderr)
            );
            let text = std::fs::read_to_string(&ptx).expect("it was just made");
            let module = PtxFile::read("all.ptx", &text).unwrap_or_else(|all| panic!("{all:?}"));
            for (seed, program) in &all {
                match imported(&module, &format!("k{seed}"), program.results()) {
                    Ok(found) => assert_eq!(
                        found,
                        executed(program),
                        "seed {seed} {how:?}:\n{}",
                        program.text()
                    ),
                    Err(why) => {
                        // Only the parts in quotes differ between programs.
                        let kind = why.split('`').step_by(2).collect::<Vec<_>>().join("…");
                        *refused.entry(kind).or_default() += 1;
                        continue;
                    }
                }
                compared += 1;
            }
        }
    }
    eprintln!("{compared} kernels compared with their source; refused: {refused:#?}");
    assert!(compared > count / 2, "{refused:#?}");
}
