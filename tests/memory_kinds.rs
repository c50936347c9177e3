//! Kinds of memory of OpenCL: what is left to implementations has no answer, and says so.
//!
//! What has one is in `litmus/opencl/kinds`.

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, parse};
use fencepost::model::ir::Model;
use fencepost::model::load_shipped;
use fencepost::skeleton::signature::signature;
use fencepost::verdict::Verdict;

#[cfg(feature = "z3")]
const ENGINES: [Engine; 2] = [Engine::Symbolic, Engine::Enumerate];
#[cfg(not(feature = "z3"))]
const ENGINES: [Engine; 1] = [Engine::Enumerate];

/// Two kernel instances update a counter; `second` is what the second one does.
fn counters(kind: &str, second: &str) -> LitmusTest {
    let text = format!(
        "name = \"t\"\ndialect = \"opencl\"\ncondition = 'c[0] == 2'\n\
         memory = {{ c = {{ init = [0, 0], type = \"atomic_int\", kind = \"{kind}\" }}, y = 0 }}\n\
         [[thread]]\ncode = \"atomic_fetch_add_explicit(c, 1, memory_order_relaxed, memory_scope_device);\"\n\
         [[thread]]\nkernel = 1\nwork_group = 1\ncode = \"{second}\"\n"
    );
    parse("t.toml", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}")).remove(0)
}

fn model(name: &str) -> Model {
    load_shipped(name, &signature()).expect("shipped").expect("valid")
}

/// The answers about reachability, races and undefined behaviour.
fn answers(test: &LitmusTest, model: &Model, engine: Engine) -> [Verdict; 3] {
    let mut session = Session::new(test, model, engine, Limits::default(), &[]);
    [
        session.reachability(None, false).verdict,
        session.race().expect("a race flag").verdict,
        session.undefined().expect("a flag").verdict,
    ]
}

#[test]
fn atomic_operations_of_two_kernels_on_a_buffer_are_left_to_implementations() {
    let add = "atomic_fetch_add_explicit(c, 1, memory_order_relaxed, memory_scope_device);";
    let next = "atomic_fetch_add_explicit(&c[1], 1, memory_order_relaxed, memory_scope_device);";
    for name in ["opencl", "opencl-3.1", "opencl-2.0"] {
        let model = model(name);
        for engine in ENGINES {
            // One location, and two of one object.
            for second in [add, next] {
                for verdict in answers(&counters("buffer", second), &model, engine) {
                    let reason = verdict.reason().unwrap_or_else(|| panic!("{name}: {verdict:?}"));
                    assert!(reason.starts_with("implementation-defined: `atomic_fetch_add_explicit"), "{reason}");
                    assert!(reason.contains("(P0, line 6) and") && reason.contains("(P1, line 10)"), "{reason}");
                }
            }
            // Not so in shared virtual memory, between reads, or for other objects.
            let defined = [Verdict::RaceFree, Verdict::Defined];
            assert_eq!(answers(&counters("svm-coarse", add), &model, engine)[1..], defined);
            assert_eq!(answers(&counters("buffer", "*y = 1;"), &model, engine)[1..], defined);
            // What races whatever implementations do is undefined.
            let plain = answers(&counters("buffer", "*(volatile int *)c = 7;"), &model, engine);
            assert_eq!(plain[1..], [Verdict::Racy, Verdict::Undefined]);
        }
    }
}

#[test]
fn outcomes_of_what_is_left_to_implementations_are_not_all() {
    let add = "atomic_fetch_add_explicit(c, 1, memory_order_relaxed, memory_scope_device);";
    let (model, buffer, svm) = (model("opencl"), counters("buffer", add), counters("svm-fine", add));
    let outcomes = |test| Session::new(test, &model, Engine::Auto, Limits::default(), &[]).outcomes();
    assert!(outcomes(&svm).complete);
    let open = outcomes(&buffer);
    assert!(!open.complete && open.reason.is_some_and(|r| r.starts_with("implementation-defined")));
}
