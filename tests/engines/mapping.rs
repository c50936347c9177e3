//! Checks the mappings to PTX on random programs: the source program allows everything that the
//! mapped program allows.
//!
//! The model of the source language must allow every outcome that PTX allows after the mapping. The
//! exceptions are undefined source programs, and outcomes in a known gap of the mapping. For the
//! same programs the whole outcome sets of all engines are compared, with their race flags.
//!
//! `testkit::suite` sets the number of programs per mapping (defined ones) and language,
//! `FENCEPOST_SEED` the first seed, `FENCEPOST_TIMEOUT_MS` the time for one query.
//!
//! # Sources
//! - D. Lustig, S. Sahasrabuddhe, O. Giroux, "A Formal Analysis of the NVIDIA PTX Memory
//!   Consistency Model", ASPLOS 2019: the theorem for scoped C++, for the mapping of that time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fencepost::check::known_gap::reduced;
use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{self, LitmusTest};
use fencepost::model::Model;
use fencepost::program::mapping::{GapTest, Mapping};
use fencepost::verdict::{Reason, State, Verdict};
use testkit::clike::shapes::program;
use testkit::clike::{Lang, Program};
use testkit::suite::{files, number, programs, sample, shipped};

fn limits() -> Limits {
    Limits {
        bound: Some(2),
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 3000))),
    }
}

fn session<'a>(test: &'a LitmusTest, model: &'a Model, engine: Engine) -> Session<'a> {
    Session::new(test, model, engine, limits(), &[])
}

/// The allowed states; `None` if the list is not complete.
fn allowed(test: &LitmusTest, model: &Model) -> Option<BTreeSet<State>> {
    let list = session(test, model, Engine::Enumerate).outcomes();
    assert_eq!(list.defect, None);
    list.allowed_states()
}

/// The result for one program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    /// A race or other undefined behaviour: any result is fine.
    Undefined,
    /// PTX allows the same outcomes.
    Exactly,
    /// PTX allows fewer.
    Stronger,
    /// It allows more, and all of that is in the named gap.
    Gap(String),
    /// It allows more.
    Violated,
    /// A limit was reached.
    Undecided,
}

fn judge(test: &LitmusTest, source: &Model, ptx: &Model, mapping: &Mapping) -> Kept {
    let mut asked = session(test, source, Engine::Enumerate);
    for answer in [asked.race(), asked.undefined()].into_iter().flatten() {
        match answer.verdict {
            Verdict::Racy | Verdict::Undefined => return Kept::Undefined,
            Verdict::Undecided(_) => return Kept::Undecided,
            _ => {}
        }
    }
    let mapped = mapping
        .lowered(test)
        .expect("everything generated has a counterpart");
    let (Some(promised), Some(found)) = (allowed(test, source), allowed(&mapped, ptx)) else {
        return Kept::Undecided;
    };
    if found == promised {
        return Kept::Exactly;
    }
    if found.is_subset(&promised) {
        return Kept::Stronger;
    }
    // Every new outcome must be in a gap; the widest necessary one is counted.
    let mut widest = None;
    let mut left: BTreeSet<State> = found.difference(&promised).cloned().collect();
    for gap in &mapping.gaps {
        let inside: Option<BTreeSet<State>> = match &gap.told {
            GapTest::Less => {
                reduced(source, gap).map_or(Some(BTreeSet::new()), |kept| allowed(test, &kept))
            }
            GapTest::Mended(by) => {
                let other = Mapping::named(by)
                    .expect("a mapping")
                    .lowered(test)
                    .expect("as above");
                allowed(&other, ptx).map(|states| left.difference(&states).cloned().collect())
            }
        };
        let Some(inside) = inside else {
            return Kept::Undecided;
        };
        let before = left.len();
        left.retain(|state| !inside.contains(state));
        if left.len() < before {
            widest = Some(gap.name.clone());
        }
    }
    match widest {
        Some(name) if left.is_empty() => Kept::Gap(name),
        _ => Kept::Violated,
    }
}

struct Check {
    lang: Lang,
    source: &'static str,
    ptx: &'static str,
    mapping: &'static str,
}

/// Judges programs until enough of them are defined. Returns the counts, and the programs with the
/// wanted result.
fn run(
    check: &Check,
    defined: u64,
    wanted: fn(&Kept) -> bool,
) -> (BTreeMap<Kept, u64>, Vec<(u64, Program)>) {
    let (source, ptx) = (shipped(check.source), shipped(check.ptx));
    let mapping = Mapping::named(check.mapping).expect("a mapping");
    let (mut counts, mut found) = (BTreeMap::new(), Vec::new());
    let mut shapes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seed = number("FENCEPOST_SEED", 1);
    let mut done = 0;
    while done < defined {
        let program = program(check.lang, seed);
        let kept = judge(&program.read("generated"), &source, &ptx, mapping);
        if !matches!(kept, Kept::Undefined | Kept::Undecided) {
            done += 1;
            *shapes.entry(program.shape).or_default() += 1;
        }
        if wanted(&kept) {
            found.push((seed, program));
        }
        *counts.entry(kept).or_default() += 1;
        seed += 1;
    }
    println!(
        "{} under {} and {}: {counts:?}",
        check.mapping, check.source, check.ptx
    );
    println!("  defined programs by shape: {shapes:?}");
    (counts, found)
}

/// The smallest similar program with the same result, ready to be committed.
fn small(check: &Check, program: &Program, wanted: fn(&Kept) -> bool) -> String {
    let (source, ptx) = (shipped(check.source), shipped(check.ptx));
    let mapping = Mapping::named(check.mapping).expect("a mapping");
    program
        .shrink(|p| wanted(&judge(&p.read("generated"), &source, &ptx, mapping)))
        .text("Small")
}

fn violated(kept: &Kept) -> bool {
    *kept == Kept::Violated
}

/// Requires that nothing is violated; returns the counts.
fn keeps(check: &Check, defined: u64) -> BTreeMap<Kept, u64> {
    let (counts, found) = run(check, programs(defined), violated);
    let shown: Vec<String> = found
        .iter()
        .take(3)
        .map(|(seed, p)| format!("seed {seed}:\n{}", small(check, p, violated)))
        .collect();
    assert!(
        found.is_empty(),
        "{} violations of {}\n{}",
        found.len(),
        check.mapping,
        shown.join("\n")
    );
    counts
}

#[test]
fn opencl_keeps_its_promises_but_for_the_known_gaps() {
    let check = Check {
        lang: Lang::OpenCl,
        source: "opencl",
        ptx: "ptx",
        mapping: "opencl-ptx",
    };
    keeps(&check, 120);
}

/// Programs that showed the gap: an exchange that reads a consequence of its own value, and a
/// release sequence that it heads.
#[test]
fn a_read_modify_write_that_does_not_release_is_a_known_gap() {
    for (lang, seed, name) in [
        (Lang::Cuda, 2112, "cuda"),
        (Lang::OpenCl, 2112, "opencl"),
        (Lang::OpenCl, 13084, "opencl"),
    ] {
        let test = program(lang, seed).read("generated");
        let (source, ptx) = (shipped(name), shipped("ptx"));
        let judged = |mapping: &str| {
            judge(
                &test,
                &source,
                &ptx,
                Mapping::named(mapping).expect("a mapping"),
            )
        };
        assert_eq!(
            judged(&format!("{name}-ptx")),
            Kept::Gap("SC read-modify-write".into()),
            "seed {seed}"
        );
        let mended = judged(&format!("{name}-ptx-old-rmw"));
        assert!(
            matches!(mended, Kept::Exactly | Kept::Stronger),
            "seed {seed}: {mended:?}"
        );
    }
}

#[test]
fn the_older_mapping_keeps_the_release_sequences_of_opencl() {
    let check = Check {
        lang: Lang::OpenCl,
        source: "opencl",
        ptx: "ptx",
        mapping: "opencl-ptx-old-rmw",
    };
    let counts = keeps(&check, 60);
    assert!(!counts.contains_key(&Kept::Gap("SC read-modify-write".into())));
}

#[test]
fn opencl_with_wide_scopes_keeps_its_promises() {
    let check = Check {
        lang: Lang::OpenCl,
        source: "opencl-3.1",
        ptx: "ptx",
        mapping: "opencl-ptx",
    };
    keeps(&check, 60);
}

#[test]
fn cuda_keeps_its_promises() {
    let check = Check {
        lang: Lang::Cuda,
        source: "cuda",
        ptx: "ptx",
        mapping: "cuda-ptx",
    };
    keeps(&check, 120);
}

#[test]
fn cuda_keeps_its_promises_on_the_first_ptx_model() {
    let check = Check {
        lang: Lang::Cuda,
        source: "cuda",
        ptx: "ptx-v6.0",
        mapping: "cuda-ptx",
    };
    keeps(&check, 50);
}

#[test]
fn the_older_mapping_keeps_the_promises_of_cpp_17() {
    let check = Check {
        lang: Lang::Cuda,
        source: "cuda-17",
        ptx: "ptx",
        mapping: "cuda-ptx-old-rmw",
    };
    let counts = keeps(&check, 100);
    assert!(
        !counts.keys().any(|k| matches!(k, Kept::Gap(_))),
        "the older mapping has no known gap"
    );
}

#[test]
fn a_load_without_acquire_is_found_out() {
    for (lang, source, mapping) in [
        (Lang::OpenCl, "opencl", "opencl-ptx-erratum"),
        (Lang::Cuda, "cuda", "cuda-ptx-erratum"),
    ] {
        let check = Check {
            lang,
            source,
            ptx: "ptx",
            mapping,
        };
        let (counts, found) = run(&check, programs(50).clamp(50, 600), violated);
        assert!(
            counts.get(&Kept::Violated).is_some_and(|&n| n > 0),
            "{mapping} is not found out: {counts:?}"
        );
        let text = small(&check, &found[0].1, violated);
        println!("{text}");
        assert!(
            text.contains("load") && text.contains("seq_cst"),
            "no seq_cst load is left:\n{text}"
        );
    }
}

/// The text that `show --lowered` prints, read again, allows the same as the lowered program.
#[test]
fn the_text_of_a_lowered_program_means_the_same() {
    let ptx = shipped("ptx");
    let folders = [
        ("litmus/c11", "c-ptx"),
        ("litmus/cuda", "cuda-ptx"),
        ("litmus/idioms/cuda", "cuda-ptx"),
        ("litmus/opencl", "opencl-ptx"),
        ("litmus/idioms/opencl", "opencl-ptx"),
    ];
    let mut tests: Vec<(LitmusTest, &str)> = Vec::new();
    for (folder, mapping) in folders {
        for file in sample(files(Path::new(folder), &["toml"])) {
            let bytes = std::fs::read(&file).expect("readable");
            let name = file.to_str().expect("UTF-8");
            tests.extend(
                litmus::parse(name, &bytes)
                    .expect("valid")
                    .into_iter()
                    .map(|test| (test, mapping)),
            );
        }
    }
    for (lang, mapping) in [(Lang::Cuda, "cuda-ptx"), (Lang::OpenCl, "opencl-ptx")] {
        tests
            .extend((0..programs(60)).map(|seed| (program(lang, seed).read("generated"), mapping)));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (test, mapping) in &tests {
        let mapping = Mapping::named(mapping).expect("shipped");
        let spelled = mapping
            .spelled(test)
            .ok()
            .and_then(|spelled| litmus::to_toml(&spelled).ok());
        let again = spelled
            .as_ref()
            .and_then(|text| litmus::parse("lowered.toml", text.as_bytes()).ok());
        let (Some(text), Some(again)) = (spelled, again) else {
            // `show --lowered` reports that, and prints nothing.
            *counts.entry("no words").or_default() += 1;
            continue;
        };
        let [again] = again.as_slice() else {
            panic!("{text}")
        };
        let lowered = mapping.lowered(test).expect("it was spelled");
        let (Some(there), Some(here)) = (allowed(&lowered, &ptx), allowed(again, &ptx)) else {
            *counts.entry("undecided").or_default() += 1;
            continue;
        };
        assert_eq!(there, here, "{} by {}\n{text}", test.name, mapping.name);
        let race = |test: &LitmusTest| {
            session(test, &ptx, Engine::Enumerate)
                .race()
                .map(|answer| answer.verdict)
        };
        assert_eq!(
            race(&lowered),
            race(again),
            "{} by {}\n{text}",
            test.name,
            mapping.name
        );
        *counts.entry("the same").or_default() += 1;
    }
    println!("{counts:?}");
    let same = counts.get("the same").copied().unwrap_or_default();
    assert!(same * 10 > tests.len() * 8, "{counts:?}");
}

/// Whole outcome sets of all engines, with their race flags.
#[test]
fn engines_agree() {
    let count = programs(15);
    let first = number("FENCEPOST_SEED", 1);
    let languages: [(Lang, &[&str]); 3] = [
        (
            Lang::OpenCl,
            &[
                "opencl",
                "opencl-3.1",
                "opencl-simp",
                "opencl-2.0",
                "opencl-total",
            ],
        ),
        (Lang::Cuda, &["cuda", "cuda-17"]),
        (Lang::C, &["c11", "rc11"]),
    ];
    for (lang, models) in languages {
        let models: Vec<Model> = models.iter().copied().map(shipped).collect();
        let (mut asked, mut incomplete, mut racy) = (0, 0, 0);
        for seed in first..first + count {
            let program = program(lang, seed);
            let test = program.read("generated");
            for model in &models {
                let both = |test: &LitmusTest| -> fencepost::verdict::Outcomes {
                    session(test, model, Engine::Both).outcomes()
                };
                let list = both(&test);
                if let Some(law) = list.defect {
                    let small = program.shrink(|p| both(&p.read("generated")).defect.is_some());
                    panic!(
                        "seed {seed}, {}: {law}\n{}",
                        model.name,
                        small.text("Small")
                    );
                }
                asked += 1;
                incomplete += u64::from(!list.complete);
                racy += u64::from(list.outcomes.iter().any(|o| o.racy));
            }
        }
        println!(
            "{lang:?}: {asked} pairs of a program and a model, {racy} racy, {incomplete} not complete"
        );
    }
}

/// In assembly, instructions that only PTX has map to themselves, and the language's model ignores
/// them.
#[test]
fn marks_of_ptx_in_assembly_are_of_ptx_alone() {
    for statement in [
        "wgmma.fence.sync.aligned",
        "cp.async.commit_group",
        "griddepcontrol.launch_dependents",
    ] {
        let text = format!(
            "name = \"T\"\ndialect = \"cuda\"\ncondition = 'x == 1'\nmemory = {{ x = 0 }}\n[[thread]]\nblock = 0\n\
             code = '''x = 1; asm volatile(\"{statement};\" ::: \"memory\");'''\n"
        );
        let test = litmus::parse("t.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
            .remove(0);
        let (cuda, ptx) = (shipped("cuda"), shipped("ptx"));
        let said = session(&test, &cuda, Engine::Auto)
            .reachability(None, false)
            .verdict;
        assert!(
            matches!(said, Verdict::Undecided(Reason::NotInModel(_))),
            "{statement}: {said:?}"
        );
        let mapping = Mapping::current(test.program.dialect).expect("there is one");
        let lowered = mapping
            .lowered(&test)
            .unwrap_or_else(|e| panic!("{statement}: {e:?}"));
        assert_eq!(
            session(&lowered, &ptx, Engine::Auto)
                .reachability(None, false)
                .verdict,
            Verdict::Allowed
        );
    }
}
