//! Snapshots of printed explanations: for each axiom of the shipped models that some test rests on,
//! and for each kind of test.
//!
//! The code that makes an explanation verifies it; here its text is checked. `INSTA_UPDATE=always`
//! rewrites the snapshots.

use std::path::Path;

use fencepost::check::{Engine, Limits, Session};
use fencepost::model::Model;
use fencepost::report::{HumanOptions, ReportFormat, reporter};
use fencepost::verdict::Property;
use testkit::lines::line;

use super::fencepost;
use testkit::suite::shipped;

/// The text printed for a test under a model.
fn asked(test: &str, model: &str, more: &[&str]) -> String {
    let asked = ["ask", test, "--model", model, "--color", "never"];
    let said = fencepost(Path::new("."), &[&asked, more].concat());
    assert_eq!(said.code, Some(0), "{test} under {model}: {}", said.out);
    said.out
}

/// A snapshot of some tests, each under a model.
macro_rules! explained {
    ($name:ident: $(($test:expr, $model:expr $(, $more:expr)*)),+ $(,)?) => {
        #[test]
        fn $name() {
            let texts = [$(asked($test, $model, &[$($more),*])),+];
            insta::with_settings!({ snapshot_path => "explain", prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(stringify!($name), texts.join("\n"));
            });
        }
    };
}

explained!(ptx:
    ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "ptx"),
    ("litmus/ptx/01-coherence/CoWW+rel.gpu+acq.gpu.toml", "ptx"),
    ("litmus/ptx/02-fence-sc/LB+fence.sc.gpu+fence.sc.gpu.toml", "ptx-v7.5"),
    ("litmus/ptx/03-atomicity/2RMW+atom+atom.toml", "ptx"),
    ("litmus/ptx/04-no-thin-air/LB+data.weak+data.weak.toml", "ptx"),
    ("litmus/ptx/05-sc-per-location/CoWW-RR.gen-sur+sur-gen.toml", "ptx"),
    ("litmus/ptx/11-base-causality/LB.surface+fence.acq_rel.gpu+fence.acq_rel.gpu.toml", "ptx"),
);

explained!(cuda:
    ("litmus/cuda/MP+rel.device+acq.device.toml", "cuda"),
    ("litmus/cuda/RMW+RMW.device.toml", "cuda"),
    ("litmus/cuda/SB+sc.device.toml", "cuda"),
    ("litmus/cuda/LB+data.toml", "cuda"),
);

explained!(opencl:
    ("litmus/opencl/T17.toml", "opencl"),
    ("litmus/opencl/T101.toml", "opencl"),
    ("litmus/opencl/T01.toml", "opencl"),
    ("litmus/opencl/T92.toml", "opencl"),
    ("litmus/opencl/T57.toml", "opencl"),
    ("litmus/opencl/RWC+sc+acq-sc+sc.toml", "opencl"),
);

explained!(c11:
    ("tests/cli/explain/MP.c.toml", "c11"),
    ("tests/cli/explain/MP.plain.c.toml", "c11"),
    ("tests/cli/explain/LB.c.toml", "c11"),
    ("tests/cli/explain/RMW.c.toml", "c11"),
    ("tests/cli/explain/SB.c.toml", "c11"),
);

explained!(rc11:
    ("tests/cli/explain/MP.c.toml", "rc11"),
    ("tests/cli/explain/LB.c.toml", "rc11"),
    ("tests/cli/explain/RMW.c.toml", "rc11"),
    ("tests/cli/explain/SB.c.toml", "rc11"),
);

explained!(opencl_versions:
    ("litmus/opencl/CoRR.local.toml", "opencl"),
    ("litmus/opencl/T60.toml", "opencl-2.0"),
    ("litmus/opencl/T68.toml", "opencl-2.0"),
    ("litmus/opencl/T80.toml", "opencl-2.0"),
    ("litmus/opencl/SB+fence.sc+sc.toml", "opencl-2.0"),
    ("litmus/opencl/T60.toml", "opencl-simp"),
    ("litmus/opencl/T100.toml", "opencl-thin-air-sb"),
    ("litmus/opencl/T104.toml", "opencl-thin-air-dep"),
);

explained!(sc:
    ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "sc"),
    ("litmus/ptx/03-atomicity/2RMW+atom+atom.toml", "sc"),
);

explained!(kinds:
    ("litmus/cuda/MP+plain.toml", "cuda"),
    ("litmus/ptx/13-barriers/MP+bar.sync+bar.sync.toml", "ptx"),
    ("litmus/ptx/14-proxies/ISA2.sust+surface+ld.toml", "ptx"),
    ("litmus/compare/Region.fences.one.opencl.toml", "opencl"),
    ("litmus/ptx/02-fence-sc/SB+fence.sc.gpu+fence.sc.gpu.rlx.toml", "ptx"),
    ("litmus/cuda/MP+rel.device+acq.device.toml", "ptx"),
);

explained!(allowed:
    ("litmus/ptx/06-causality/MP+rel.cta+acq.gpu.toml", "ptx"),
    ("litmus/ptx/14-proxies/ISA2.sust+surface+ld.early-fence.toml", "ptx"),
    ("litmus/ptx/02-fence-sc/SB+rel.gpu-acq.gpu+rel.gpu-acq.gpu.toml", "ptx"),
    ("litmus/cuda/SB+rel+acq.device.toml", "cuda"),
    ("litmus/ptx/13-barriers/MP+bar.sync+bar.sync.other-cta.toml", "ptx"),
    ("litmus/regressions/MP+predicated.toml", "ptx"),
);

explained!(levels: ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "ptx", "-v"));

explained!(impossible: ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "ptx", "--outcome", "P1:r0 == 7 /\\ P1:r1 == 0"));

/// Axioms that are in no minimal set, because other axioms forbid everything that they forbid: each
/// is tested alone.
#[test]
fn alone() {
    let alone = [
        (
            "litmus/ptx/02-fence-sc/LB+fence.sc.gpu+fence.sc.gpu.toml",
            "ptx",
            "Fence-SC",
        ),
        ("litmus/opencl/T101.toml", "opencl", "Global-happens-before"),
        (
            "litmus/opencl/LB+rel+acq.local.toml",
            "opencl",
            "Local-happens-before",
        ),
        ("tests/cli/explain/LB.c.toml", "c11", "Happens-before"),
    ];
    let mut out = Vec::new();
    let mut human = reporter(
        ReportFormat::Human,
        &HumanOptions {
            few: true,
            ..HumanOptions::default()
        },
    );
    for (path, name, axiom) in alone {
        let test = &fencepost::litmus::read_path(Path::new(path)).expect("a good test")[0];
        let mut model = shipped(name);
        let asked = |model: &Model| {
            let limits = Limits {
                bound: Some(1),
                timeout: None,
            };
            Session::new(test, model, Engine::Auto, limits, &[])
                .with_explanations()
                .reachability(None, false)
        };
        let whole = asked(&model);
        assert!(
            whole.axioms.iter().all(|a| a != axiom),
            "{path}: {axiom} is needed after all: {:?}",
            whole.axioms
        );
        model.axioms.retain(|a| a.name == axiom);
        let answer = asked(&model);
        assert_eq!(answer.axioms, [axiom], "{path}");
        let about = format!("{name}, {axiom} alone");
        let line = line(path, test, &about, Property::Reachability, answer);
        human.line(&mut out, &line).expect("memory is enough");
    }
    let text = anstream::adapter::strip_str(&String::from_utf8(out).expect("UTF-8")).to_string();
    insta::with_settings!({ snapshot_path => "explain", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("alone", text);
    });
}

/// The shipped models, copied to a folder with other names for two free relations.
fn renamed(names: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir("models")
        .expect("the models")
        .map(|f| f.expect("a file").path())
    {
        if file.extension().is_none_or(|e| e != "cat") || file.ends_with("stdlib.cat") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("text");
        let part_of_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let mut new = String::new();
        for word in text.split_inclusive(|c| !part_of_name(c)) {
            let name = word.trim_end_matches(|c| !part_of_name(c));
            let other = names
                .iter()
                .find(|(old, _)| *old == name)
                .map_or(name, |(_, other)| other);
            new = new + other + &word[name.len()..];
        }
        std::fs::write(folder.path().join(file.file_name().expect("a name")), new)
            .expect("it can be written");
    }
    folder
}

/// Tools identify free relations by their roles, and styles by the models' texts.
#[test]
fn what_a_model_calls_its_relations_changes_nothing() {
    let names = [("rf", "qz"), ("co", "jx")];
    let folder = renamed(&names);
    let told = |words: &[&str], model: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fencepost"));
        let output = command
            .args(words)
            .args(["--color", "never", "--model", model])
            .output()
            .expect("it runs");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "",
            "{words:?} under {model}"
        );
        String::from_utf8(output.stdout).expect("stdout is UTF-8")
    };
    for (test, model) in [
        ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "ptx"),
        (
            "litmus/ptx/04-no-thin-air/LB+data.weak+data.weak.toml",
            "ptx",
        ),
        (
            "litmus/ptx/01-coherence/CoWW+rel.gpu+acq.gpu.toml",
            "ptx-v7.5",
        ),
        ("litmus/cuda/RMW+RMW.device.toml", "cuda"),
        ("litmus/cuda/MP+rel.block+acq.device.toml", "cuda"),
        ("litmus/opencl/T17.toml", "opencl"),
        ("litmus/opencl/LB+rel+acq.local.toml", "opencl-2.0"),
        ("tests/cli/explain/LB.c.toml", "rc11"),
        ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "sc"),
    ] {
        let file = format!("{model}.cat");
        let (own, other) = (format!("models/{file}"), folder.path().join(&file));
        for words in [
            &["ask", test, "-v"][..],
            &["check", test, "--all-properties"],
            &["show", test],
        ] {
            let expected = told(words, &own);
            // Answers refer to a file by its path.
            let mut text = told(words, other.to_str().expect("UTF-8"))
                .replace(other.to_str().expect("UTF-8"), &own);
            names
                .iter()
                .for_each(|(old, new)| text = text.replace(new, old));
            assert_eq!(text, expected, "{words:?} under {model}");
        }
    }
}
