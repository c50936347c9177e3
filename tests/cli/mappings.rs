//! Mappings in files, lowered programs, and given targets, tested with the built binary.

use std::fs;
use std::path::Path;

use super::fencepost;

/// A mapping of C that drops all orders.
const RELAXED: &str = r#"from = "c"
to = "ptx"
base = "c-ptx"
doc = "no order at all"
sources = ["nobody"]

[load]
acquire = "ld.relaxed.sys"

[store]
release = "st.relaxed.sys"
"#;

#[test]
fn a_mapping_is_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("relaxed.toml");
    fs::write(&path, RELAXED).expect("writable");
    let of = |mapping: &str| {
        let words = [
            "compare",
            "litmus/c11/MP+rel+acq.toml",
            "--models",
            "c11,ptx",
            "--mapping",
            mapping,
        ];
        fencepost(Path::new("."), &words)
    };
    assert_eq!(of("c-ptx").code, Some(0));
    let said = of(path.to_str().expect("a plain name"));
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(
        said.out.contains("ptx via relaxed allowed") && said.out.contains("violated"),
        "{}",
        said.out
    );

    for (text, message) in [
        (RELAXED.replace("acquire", "aquire"), "`aquire`"),
        (RELAXED.replace("ld.relaxed.sys", "ld.relaxed.moon"), "moon"),
        (
            RELAXED.replace("ld.relaxed.sys", "st.relaxed.sys"),
            "st.relaxed.sys",
        ),
        (RELAXED.replace("c-ptx", "c-riscv"), "c-riscv"),
        (
            RELAXED.replace("from = \"c\"", "from = \"fortran\""),
            "fortran",
        ),
        (RELAXED.replace("[load]", "[lode]"), "lode"),
    ] {
        fs::write(&path, &text).expect("writable");
        let said = of(path.to_str().expect("a plain name"));
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{text}: {}",
            said.err
        );
        // The message gives the file and line.
        assert!(
            said.err.contains(message) && said.err.contains("relaxed.toml:"),
            "{text}: {}",
            said.err
        );
    }
    let said = of("none.toml");
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("none.toml"), "{}", said.err);
}

#[test]
fn what_a_mapping_makes_is_shown_as_a_test() {
    let said = fencepost(
        Path::new("."),
        &["show", "litmus/cuda/SB+sc.device.toml", "--lowered"],
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!(said.out, @r###"
    # `SB+sc.device` by mapping `cuda-ptx`: the current Atomics ABI: leading fence.sc.
    name = "SB+sc.device"
    doc = "Store buffering, sequentially consistent."
    source = "ISO C++, atomics.order"
    tags = ["sb"]
    condition = 'P0:r == 0 /\ P1:r == 0'

    [memory]
    x = { init = 0, type = "s32" }
    y = { init = 0, type = "s32" }

    [[thread]]
    cta = 0
    code = '''
    fence.sc.gpu
    st.relaxed.gpu x, 1
    fence.sc.gpu
    ld.acquire.gpu $0, y
    mov.s32 r, $0
    '''

    [[thread]]
    cta = 1
    code = '''
    fence.sc.gpu
    st.relaxed.gpu y, 1
    fence.sc.gpu
    ld.acquire.gpu $0, x
    mov.s32 r, $0
    '''
    "###);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("lowered.toml"), &said.out).expect("writable");
    let asked = fencepost(
        folder.path(),
        &["ask", "lowered.toml", "--model", "ptx", "--format", "jsonl"],
    );
    assert!(
        asked.out.contains(r#""verdict":"forbidden""#),
        "{}{}",
        asked.out,
        asked.err
    );

    for (words, code, message) in [
        (
            &["litmus/c11/SB+sc.toml", "--lowered"][..],
            2,
            "name one with `--mapping`: c-ptx, c-ptx-old-rmw",
        ),
        (
            &[
                "litmus/ptx/02-fence-sc/2+2W+fence.acq_rel.gpu+fence.acq_rel.gpu.toml",
                "--lowered",
            ],
            2,
            "`--mapping` must name a mapping that lowers PTX assembly",
        ),
        (
            &[
                "litmus/c11/SB+sc.toml",
                "--lowered",
                "--mapping",
                "cuda-ptx",
            ],
            2,
            "name one with `--mapping`",
        ),
        (
            &["litmus/c11/SB+sc.toml", "--lowered", "--relations", "rf"],
            2,
            "--relations",
        ),
    ] {
        let said = fencepost(Path::new("."), &[&["show"], words].concat());
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(code), ""),
            "{words:?}: {}",
            said.err
        );
        assert!(said.err.contains(message), "{words:?}: {}", said.err);
    }
}

const SOURCE: &str = "litmus/compiled/cas-u8.toml";
const TARGET: &str = "litmus/compiled/cas-u8.libcudacxx.toml";

#[test]
fn a_target_can_be_given() {
    let said = fencepost(Path::new("."), &["compare", SOURCE, "--target", TARGET]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    insta::assert_snapshot!(said.out, @r###"
    cas-u8: exists (P1:e == 1 && P1:r == 0)
      cuda forbidden race-free defined, ptx via cas-u8.libcudacxx allowed racy
      P1:e P1:r  cuda       ptx
         0    0  allowed    allowed
         1    0  forbidden  allowed, racy
         1    1  allowed    allowed, racy
      cuda and ptx: violated: `cas-u8.libcudacxx` does not keep its promise: `cuda` forbids the condition by Coherence, `ptx` allows it

    cuda and ptx, 1 test: 1 violated; the condition differs in 1; by rule: 1 × no rule found
    2 answers: 1 allowed, 1 forbidden; 1 expectation, all met
    "###);

    // With the order on failure, it is right.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("target.toml");
    let with = |words: &[&str], changed: &dyn Fn(&str) -> String| {
        fs::write(&path, changed(&fs::read_to_string(TARGET).expect("ours"))).expect("writable");
        fencepost(
            Path::new("."),
            &[
                &["compare", "--target", path.to_str().expect("a plain name")],
                words,
            ]
            .concat(),
        )
    };
    let said = with(&[SOURCE], &|text| {
        text.replace("ld.relaxed.gpu.u8", "ld.acquire.gpu.u8")
    });
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("respected"), "{}", said.out);

    type Change = fn(&str) -> String;
    let refused: [(&[&str], Change, &str); 6] = [
        (
            &[SOURCE],
            |t| t.replace("P1:e", "P1:f").replace(" e, ", " f, "),
            "has no register P1:e",
        ),
        (
            &[SOURCE],
            |_| fs::read_to_string(SOURCE).expect("ours"),
            "source and target are both CUDA C++",
        ),
        (&[SOURCE], |t| t.replace("st.weak", "st.week"), "st.week"),
        (&[SOURCE, TARGET], str::to_owned, "the source has 2 tests"),
        (
            &[SOURCE, "--mapping", "cuda-ptx"],
            str::to_owned,
            "--mapping",
        ),
        (&["litmus/c11/LB.toml"], str::to_owned, "has no register"),
    ];
    for (words, changed, message) in refused {
        let said = with(words, &changed);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{words:?}: {}",
            said.err
        );
        assert!(said.err.contains(message), "{words:?}: {}", said.err);
    }
}

#[test]
fn names_and_not_numbers_tell_what_a_target_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "dialect = \"c\"\nname = \"s\"\ncondition = \"P0:b == -1 && x == 2\"\n[memory]\nx = { type = \"atomic_int\" }\n\
                  [[thread]]\ncode = '''\nint a = 7;\nint b = -1;\natomic_store(x, 2);\n'''\n";
    // Different registers come first, and different memory.
    let target = "name = \"t\"\n[memory]\ny = 0\nx = { type = \"s32\" }\n[[thread]]\ncta = 0\ncode = '''\n\
                  mov.u32 c, 5;\nmov.u32 b, 4294967295;\nst.relaxed.sys.s32 [x], 2;\n'''\n";
    fs::write(folder.path().join("s.toml"), source).expect("writable");
    fs::write(folder.path().join("t.toml"), target).expect("writable");
    let compare = || fencepost(folder.path(), &["compare", "s.toml", "--target", "t.toml"]);
    let said = compare();
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("respected"), "{}", said.out);
    let wrong = target.replace("b, 4294967295", "b, 5");
    fs::write(folder.path().join("t.toml"), wrong).expect("writable");
    assert_eq!(compare().code, Some(1), "{}", compare().out);
    // Memory is compared by the numbers that it holds.
    fs::write(
        folder.path().join("t.toml"),
        target.replace("\"s32\"", "\"u32\""),
    )
    .expect("writable");
    assert!(
        compare().err.contains("it needs the same type in both"),
        "{}",
        compare().err
    );
}

/// The verdict and the mapping of an answer under a model, and the name of the model in the answer.
fn judged(test: &str, model: &str) -> [serde_json::Value; 3] {
    let said = fencepost(
        Path::new("."),
        &["check", test, "--model", model, "--format", "jsonl"],
    );
    let line = said
        .out
        .lines()
        .next()
        .unwrap_or_else(|| panic!("{test} under {model}: {}", said.err));
    let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
    ["verdict", "mapping", "model"].map(|key| line[key].clone())
}

#[test]
fn a_copy_of_a_model_judges_as_the_model_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("writable");
        path.to_str().expect("a plain name").to_owned()
    };
    for shipped in ["ptx", "ptx-v6.0"] {
        let text = fs::read_to_string(format!("models/{shipped}.cat")).expect("shipped");
        let body = text.split_once('\n').expect("a head").1;
        let files = [
            write("my.cat", &text),
            write(&format!("{shipped}.cat"), &text),
            // Without a head, its words determine its language.
            write("headless.cat", body),
            write("including.cat", &format!("include \"{shipped}.cat\"\n")),
        ];
        for test in ["litmus/cuda/SB+sc.device.toml", "litmus/opencl/T01.toml"] {
            let [verdict, mapping, model] = judged(test, shipped);
            assert!(
                mapping.is_string() && model == shipped,
                "{test}: {mapping}, {model}"
            );
            for file in &files {
                let [word, through, called] = judged(test, file);
                assert_eq!(
                    (&word, &through),
                    (&verdict, &mapping),
                    "{test} under {file}"
                );
                assert_eq!(called, file.as_str());
            }
        }
    }
    // A model without a mapping is skipped, like the shipped model.
    let opencl = write(
        "mine.cat",
        &fs::read_to_string("models/opencl.cat").expect("shipped"),
    );
    let ptx = write(
        "mine.ptx.cat",
        &fs::read_to_string("models/ptx.cat").expect("shipped"),
    );
    for (test, model, copy, dialect) in [
        ("litmus/cuda/SB+sc.device.toml", "opencl", &opencl, "cuda"),
        ("litmus/c11/SB+sc.toml", "ptx", &ptx, "c"),
    ] {
        for model in [model, copy] {
            let said = fencepost(Path::new("."), &["check", test, "--model", model]);
            let message = format!("model `{model}` does not judge {dialect} programs");
            assert!(
                !said.out.contains("1 answer") && said.err.contains(&message),
                "{}{}",
                said.out,
                said.err
            );
        }
    }
}

#[test]
fn a_mapping_of_another_language_is_an_error() {
    for (test, model, mapping, fits) in [
        (
            "litmus/cuda/SB+sc.device.toml",
            "ptx",
            "opencl-ptx",
            "mappings from CUDA C++: cuda-ptx, ",
        ),
        (
            "litmus/cuda/SB+sc.device.toml",
            "cuda",
            "c-ptx",
            "mappings from CUDA C++: cuda-ptx, ",
        ),
        (
            "litmus/c11/SB+sc.toml",
            "ptx-v7.5",
            "cuda-ptx",
            "mappings from C11 atomics: c-ptx, ",
        ),
        (
            "litmus/ptx/01-coherence/CoWW.toml",
            "ptx",
            "cuda-ptx",
            "leave out `--mapping`",
        ),
    ] {
        let said = fencepost(
            Path::new("."),
            &["check", test, "--model", model, "--mapping", mapping],
        );
        assert_eq!(said.code, Some(2), "{test}: {}{}", said.out, said.err);
        let message = format!("mapping `{mapping}` does not map");
        assert!(
            said.err.contains(&message) && said.err.contains(fits),
            "{test}: {}",
            said.err
        );
    }
}
