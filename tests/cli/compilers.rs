//! Reads the output of compilers with the built binary.
//!
//! `tests/cli/compilers` has the output of two compilers for a part of the operations, as
//! `fencepost compilers --save` writes it. `cargo test --test cli -- --ignored compilers` checks an
//! installed clang, the one that `CLANG` names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Said, command, fencepost};

const CLANG: &str = "tests/cli/compilers/clang-19.1.7-c11-sm_70.ptx";
const NVCC: &str = "tests/cli/compilers/nvcc-13.5-cuda-sm_80.ptx";

fn compilers(arguments: &[&str]) -> (Vec<Value>, Said) {
    let said = fencepost(
        Path::new("."),
        &[&["compilers", "--format", "jsonl"], arguments].concat(),
    );
    let lines = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    (lines, said)
}

/// The verdicts of the operations with a form, an order and a size.
fn verdict<'a>(report: &'a Value, form: &str, order: &str, bits: Option<u8>) -> Vec<&'a str> {
    let has = |list: &Value, item: &Value| list.as_array().is_some_and(|list| list.contains(item));
    let fits = |operation: &&Value| {
        has(&operation["forms"], &form.into())
            && operation["order"] == order
            && bits.is_none_or(|bits| has(&operation["bits"], &bits.into()))
    };
    let all = report["operations"].as_array().expect("a list");
    all.iter()
        .filter(fits)
        .map(|operation| operation["verdict"].as_str().expect("a word"))
        .collect()
}

#[test]
fn a_clang_drops_orders_and_programs_notice() {
    let (lines, said) = compilers(&["--read", CLANG]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let (report, found) = lines.split_first().expect("a report");
    assert_eq!(
        (&report["language"], &report["mapping"]),
        (&"c11".into(), &"c-ptx".into())
    );
    for (form, order, bits, wanted) in [
        ("load", "plain", Some(32), "equal"),
        ("load", "relaxed", Some(32), "stronger"),
        ("store", "relaxed", Some(8), "stronger"),
        ("load", "acquire", Some(32), "refused"),
        ("fence", "acq_rel", None, "refused"),
        ("exchange", "acquire", Some(32), "weaker"),
        ("add_unused", "release", Some(32), "weaker"),
        ("cas", "acquire", Some(32), "weaker"),
        ("cas", "acquire", Some(8), "weaker"),
    ] {
        assert_eq!(
            verdict(report, form, order, bits),
            [wanted],
            "{form} {order} {bits:?}"
        );
    }
    // Exchanges and compare-exchanges, each with acquire and release: one program for each, which
    // uses it.
    let words = [
        "atomic_exchange_explicit",
        "atomic_compare_exchange_strong_explicit",
    ];
    let orders = ["memory_order_acquire", "memory_order_release"];
    let wanted = words
        .iter()
        .flat_map(|word| orders.map(|order| (word, order)));
    assert_eq!(found.len(), 4, "{found:?}");
    for (distinction, (word, order)) in found.iter().zip(wanted) {
        let [program] = distinction["found"].as_array().expect("a list").as_slice() else {
            panic!("{distinction:?}")
        };
        let text = program["program"].as_str().expect("a test");
        let used = text
            .lines()
            .find(|line| line.contains(word))
            .unwrap_or_default();
        assert!(used.contains(order), "{word} {order}: {text}");
        assert_eq!(program["relation"], "violated");
    }
}

#[test]
fn a_mapping_that_says_what_a_compiler_does_breaks_a_spin_lock() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().to_str().expect("a plain name");
    let (_, said) = compilers(&["--read", CLANG, "--save", saved, "--size", "0"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let mapping = folder.path().join("clang-19.1.7-c11-sm_70.toml");
    let record = folder.path().join("clang-19.1.7-c11-sm_70.ptx");
    assert_eq!(
        fs::read_to_string(record).expect("saved"),
        fs::read_to_string(CLANG).expect("stored")
    );
    let compare = |mapping: &str| {
        let words = [
            "compare",
            "litmus/c11/spin-lock.toml",
            "--models",
            "c11,ptx",
            "--mapping",
            mapping,
        ];
        fencepost(Path::new("."), &words)
    };
    let kept = compare("c-ptx");
    assert_eq!(kept.code, Some(0), "{}{}", kept.out, kept.err);
    let broken = compare(mapping.to_str().expect("a plain name"));
    assert_eq!(broken.code, Some(1), "{}{}", broken.out, broken.err);
    assert!(
        broken
            .out
            .contains("ptx via clang-19.1.7-c11-sm_70 allowed racy"),
        "{}",
        broken.out
    );
    assert!(
        broken.out.contains("    1  forbidden  allowed, racy"),
        "{}",
        broken.out
    );

    let (_, again) = compilers(&["--read", CLANG, "--save", saved, "--size", "0"]);
    assert_eq!(again.code, Some(2));
    assert!(
        again.err.contains("exists and is left as it is") && again.err.contains("`--force`"),
        "{}",
        again.err
    );
}

/// A compiler without the target or the language is reported once; the others are still reported.
#[cfg(unix)]
#[test]
fn what_a_compiler_does_not_compile_at_all_is_told_once() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let nvcc = folder.path().join("nvcc");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Cuda compilation tools, release 13.5, V13.5.37' && exit\n\
                  echo \"nvcc fatal   : Unsupported gpu architecture 'sm_70'\"; exit 1\n";
    fs::write(&nvcc, script).expect("writable");
    fs::set_permissions(&nvcc, fs::Permissions::from_mode(0o755)).expect("its own");
    let nvcc = nvcc.to_str().expect("a plain name");
    let (lines, said) = compilers(&["--nvcc", nvcc]);
    assert_eq!((said.code, lines.len()), (Some(2), 0), "{}", said.err);
    assert_eq!(
        said.err
            .matches("Unsupported gpu architecture 'sm_70'")
            .count(),
        1,
        "{}",
        said.err
    );
    assert!(
        said.err.contains("nothing of cuda for `sm_70`") && said.err.contains("`--arch`"),
        "{}",
        said.err
    );
    // A compiler that lists its targets gets the oldest one with scopes.
    let listing = script.replace(
        "echo \"nvcc",
        "[ \"$1\" = --list-gpu-code ] && printf 'sm_52\\nsm_89\\nsm_75\\n' && exit\n echo \"nvcc",
    );
    fs::write(nvcc, listing).expect("writable");
    let (_, said) = compilers(&["--nvcc", nvcc]);
    assert!(
        said.err.contains("nothing of cuda for `sm_75`"),
        "{}",
        said.err
    );
    let (_, said) = compilers(&["--nvcc", nvcc, "--arch", "sm_70"]);
    assert!(
        said.err.contains("nothing of cuda for `sm_70`"),
        "{}",
        said.err
    );
    let (lines, said) = compilers(&["--nvcc", nvcc, "--language", "c11", "--read", NVCC]);
    assert_eq!((said.code, lines.len()), (Some(2), 1), "{}", said.err);
    assert!(
        said.err.contains("`--language`") && said.err.contains("it compiles cuda"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("no test matched"), "{}", said.err);
}

#[test]
fn a_library_loses_the_order_of_a_failure() {
    let (lines, said) = compilers(&["--read", NVCC]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let [report] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    for (form, order, bits, wanted) in [
        ("cas", "acquire", Some(8), "weaker"),
        ("cas", "seq_cst", Some(8), "weaker"),
        ("cas", "release", Some(8), "equal"),
        ("cas", "acquire", Some(32), "equal"),
        ("exchange", "acquire", Some(8), "equal"),
        ("load", "seq_cst", Some(32), "equal"),
    ] {
        assert_eq!(
            verdict(report, form, order, bits),
            [wanted],
            "{form} {order} {bits:?}"
        );
    }
    // A fence at the scope of a thread is unnecessary, and none is emitted.
    assert_eq!(
        verdict(report, "fence", "acquire", None),
        ["stronger", "equal"]
    );
    assert_eq!(
        verdict(report, "fence", "seq_cst", None),
        ["equal", "equal"]
    );
    // A row of a mapping has no sizes.
    assert!(
        said.err
            .contains("no search for a program that notices `cas acquire`"),
        "{}",
        said.err
    );
}

#[test]
fn people_are_told_what_is_not_as_strong() {
    let said = fencepost(Path::new("."), &["compilers", "--read", NVCC]);
    insta::assert_snapshot!(said.out, @r###"
    cuda by Cuda compilation tools, release 13.5, V13.5.37, sm_80, held against `cuda-ptx`: 48 operations: 40 equal, 6 stronger, 2 weaker
      weaker    cas acquire u8 gpu: ld.relaxed.s; atom.acquire.s in a loop; expected: atom.acquire.s
      weaker    cas seq_cst u8 gpu: fence.sc.s; ld.relaxed.s; atom.acquire.s in a loop; expected: fence.sc.s; atom.acquire.s
    48 answers
    "###);
    let said = fencepost(
        Path::new("."),
        &["compilers", "--read", CLANG, "--size", "0"],
    );
    insta::assert_snapshot!(said.out.lines().take(9).collect::<Vec<_>>().join("\n"), @r###"
    c11 by Debian clang version 19.1.7 (3~deb12u1), sm_70, held against `c-ptx`: 30 operations: 4 equal, 4 stronger, 16 weaker, 6 refused
      weaker    exchange|add|add_unused|cas acquire u32: atom.relaxed.gpu; expected: atom.acquire.sys
      weaker    exchange|add|add_unused|cas acquire u8: ld.weak; atom.relaxed.gpu in a loop; expected: atom.acquire.sys
      weaker    exchange|add|add_unused|cas release u32: atom.relaxed.gpu; expected: atom.release.sys
      weaker    exchange|add|add_unused|cas release u8: ld.weak; atom.relaxed.gpu in a loop; expected: atom.release.sys
      refused   load acquire u32 u8: Cannot select: i32,ch = AtomicLoad<(load acquire (s32) from %ir.0)>
      refused   store release u32 u8: Cannot select: ch = AtomicStore<(store release (s32) into %ir.0)> Constant:i32<1>
      refused   fence acquire: Cannot select: ch = AtomicFence TargetConstant:i64<4>, TargetConstant:i64<1>
      refused   fence acq_rel: Cannot select: ch = AtomicFence TargetConstant:i64<6>, TargetConstant:i64<1>
    "###);
}

#[test]
fn what_is_no_record_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("kernel.ptx"), ".version 8.0\n").expect("writable");
    fs::write(
        folder.path().join("basic.ptx"),
        "// fencepost compilers: basic; a compiler\n",
    )
    .expect("writable");
    for (arguments, message) in [
        (
            &["--read", "kernel.ptx"][..],
            "`kernel.ptx` is not an output of `compilers`: its first line is not",
        ),
        (
            &["--read", "basic.ptx"],
            "`basic` is not a language with atomic operations",
        ),
        (&["--read", "none.ptx"], "`none.ptx`"),
        (&["--clang", "none/clang"], "`none/clang` cannot be run"),
        (&["--language", "basic"], "c11, scoped, opencl, cuda"),
        (&["--size", "7"], "7 is not in 0..=6"),
        (&["--model", "ptx"], "takes no `--model`"),
        (&["--force"], "--save"),
        (&["--format", "junit", "--read", "kernel.ptx"], "junit"),
    ] {
        let said = fencepost(folder.path(), &[&["compilers"], arguments].concat());
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{arguments:?}: {}",
            said.err
        );
        assert!(said.err.contains(message), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn without_a_compiler_nothing_is_compiled_and_that_is_said() {
    let mut none = command(Path::new("."), &["compilers"]);
    let said: Said = none
        .env("PATH", "")
        .output()
        .expect("the binary was built for this test")
        .into();
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(3), ""),
        "{}",
        said.err
    );
    assert!(said.err.contains("no compiler was found"), "{}", said.err);
}

#[test]
#[ignore = "needs a clang, which `CLANG` names"]
fn what_an_installed_clang_makes_is_read() {
    let clang = std::env::var("CLANG").expect("`CLANG` names a clang");
    let (lines, said) = compilers(&["--clang", &clang, "--language", "c11", "--size", "0"]);
    let report = lines.first().unwrap_or_else(|| panic!("{}", said.err));
    let operations = report["operations"].as_array().expect("a list");
    assert!(
        operations.iter().all(|o| o["verdict"] != "refused") || said.code != Some(0),
        "{report}"
    );
    // Plain accesses stay plain in every compiler.
    assert_eq!(
        verdict(report, "load", "plain", Some(32)),
        ["equal"],
        "{report}"
    );
    assert_eq!(
        verdict(report, "store", "plain", Some(8)),
        ["equal"],
        "{report}"
    );
    // Exchanges are atomic, or calls of a library whose code is not available here.
    let made: Vec<&str> = operations
        .iter()
        .filter(|o| {
            o["forms"]
                .as_array()
                .is_some_and(|forms| forms.contains(&"exchange".into()))
        })
        .filter_map(|o| o["made"].as_str())
        .collect();
    assert!(
        !made.is_empty()
            && made
                .iter()
                .all(|made| made.contains("atom") || made.contains("call")),
        "{made:?}"
    );
}
