//! Explanations as they are printed: one per axiom of the shipped models that some test rests on, and one per kind of test.
//!
//! What they say was verified where they are made; here they are read. `INSTA_UPDATE=always` rewrites them.

mod common;

use std::path::Path;
use std::process::Command;

use common::lines::line;
use fencepost::check::{Engine, Limits, Session};
use fencepost::model::{Model, load_shipped};
use fencepost::report::{Format, HumanOptions, reporter};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::Property;

/// What is printed for a test under a model.
fn asked(test: &str, model: &str, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["ask", test, "--model", model, "--color", "never"])
        .args(more)
        .output()
        .expect("the binary was built for this test");
    let text = String::from_utf8(output.stdout).expect("stdout is UTF-8");
    assert_eq!(output.status.code(), Some(0), "{test} under {model}: {text}");
    text
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
    ("tests/explain/MP.c.toml", "c11"),
    ("tests/explain/MP.plain.c.toml", "c11"),
    ("tests/explain/LB.c.toml", "c11"),
    ("tests/explain/RMW.c.toml", "c11"),
    ("tests/explain/SB.c.toml", "c11"),
);

explained!(rc11:
    ("tests/explain/MP.c.toml", "rc11"),
    ("tests/explain/LB.c.toml", "rc11"),
    ("tests/explain/RMW.c.toml", "rc11"),
    ("tests/explain/SB.c.toml", "rc11"),
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
);

explained!(levels: ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "ptx", "-v"));

explained!(impossible: ("litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml", "ptx", "--outcome", "P1:r0 == 7 /\\ P1:r1 == 0"));

/// Axioms that no minimal set has, since others forbid whatever they do: each is asked alone.
#[test]
fn alone() {
    let alone = [
        ("litmus/ptx/02-fence-sc/LB+fence.sc.gpu+fence.sc.gpu.toml", "ptx", "Fence-SC"),
        ("litmus/opencl/T101.toml", "opencl", "Global-happens-before"),
        ("litmus/opencl/LB+rel+acq.local.toml", "opencl", "Local-happens-before"),
        ("tests/explain/LB.c.toml", "c11", "Happens-before"),
    ];
    let mut out = Vec::new();
    let mut human = reporter(Format::Human, &HumanOptions::default());
    for (path, name, axiom) in alone {
        let test = &fencepost::litmus::read_path(Path::new(path)).expect("a good test")[0];
        let mut model = load_shipped(name, &signature()).expect("shipped").expect("valid");
        let asked = |model: &Model| {
            let limits = Limits { bound: 1, timeout: None };
            Session::new(test, model, Engine::Auto, limits, &[]).with_explanations().reachability(None, false)
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
