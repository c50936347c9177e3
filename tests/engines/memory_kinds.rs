//! Kinds of memory of OpenCL: behaviour that is left to implementations has no answer, and the
//! verdict says so.
//!
//! `litmus/opencl/kinds` has the tests with an answer.

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, parse};
use fencepost::model::ir::Model;
use fencepost::verdict::{Reason, Verdict};
use testkit::suite::shipped;

/// Two kernel instances update a counter; `second` is the code of the second one.
fn counters(kind: &str, second: &str) -> LitmusTest {
    let text = format!(
        "name = \"t\"\ndialect = \"opencl\"\ncondition = 'c[0] == 2'\n\
         memory = {{ c = {{ init = [0, 0], type = \"atomic_int\", kind = \"{kind}\" }}, y = 0 }}\n\
         [[thread]]\ncode = \"atomic_fetch_add_explicit(c, 1, memory_order_relaxed, memory_scope_device);\"\n\
         [[thread]]\nkernel = 1\nwork_group = 1\ncode = \"{second}\"\n"
    );
    parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}"))
        .remove(0)
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
        let model = shipped(name);
        for &engine in Engine::ALONE {
            // One location, and two locations of one object.
            for second in [add, next] {
                for verdict in answers(&counters("buffer", second), &model, engine) {
                    let reason = verdict
                        .reason()
                        .unwrap_or_else(|| panic!("{name}: {verdict:?}"))
                        .to_string();
                    assert!(
                        reason.starts_with("implementation-defined: `atomic_fetch_add_explicit"),
                        "{reason}"
                    );
                    assert!(
                        reason.contains("(P0, line 6) and") && reason.contains("(P1, line 10)"),
                        "{reason}"
                    );
                }
            }
            // Shared virtual memory, reads and different objects are defined.
            let defined = [Verdict::RaceFree, Verdict::Defined];
            assert_eq!(
                answers(&counters("svm-coarse", add), &model, engine)[1..],
                defined
            );
            assert_eq!(
                answers(&counters("buffer", "*y = 1;"), &model, engine)[1..],
                defined
            );
            // A race under every implementation is undefined.
            let plain = answers(
                &counters("buffer", "*(volatile int *)c = 7;"),
                &model,
                engine,
            );
            assert_eq!(plain[1..], [Verdict::Racy, Verdict::Undefined]);
        }
    }
}

#[test]
fn outcomes_of_what_is_left_to_implementations_are_not_all() {
    let add = "atomic_fetch_add_explicit(c, 1, memory_order_relaxed, memory_scope_device);";
    let (model, buffer, svm) = (
        shipped("opencl"),
        counters("buffer", add),
        counters("svm-fine", add),
    );
    let outcomes =
        |test| Session::new(test, &model, Engine::Auto, Limits::default(), &[]).outcomes();
    assert!(outcomes(&svm).complete);
    let open = outcomes(&buffer);
    assert!(!open.complete && matches!(open.reason, Some(Reason::ImplementationDefined { .. })));
}

/// The messages about a test of OpenCL with these pieces of memory, an initialiser and a kernel.
fn program_scope(memory: &str, init: &str, kernel: &str) -> Vec<String> {
    let text = format!(
        "name = \"t\"\ndialect = \"opencl\"\nqueues = {{ q = \"in-order\", p = {{ order = \"in-order\", device = 1 }} }}\n\
         memory = {{ {memory} }}\n[[kernel]]\nname = \"init\"\ninitializer = true\ncode = '{init}'\n\
         [[kernel]]\nname = \"K\"\ncode = '{kernel}'\n[[host]]\ncode = '''\nclEnqueueNDRangeKernel(q, K, NULL, 1, 1);\n\
         clEnqueueNDRangeKernel(p, K, NULL, 1, 1);\n'''\n"
    );
    match parse("t.toml", text.as_bytes()) {
        Ok(_) => Vec::new(),
        Err(all) => all
            .iter()
            .map(|d| format!("{}: {}", d.id, d.message))
            .collect(),
    }
}

#[test]
fn initialisers_of_programs_use_no_shared_virtual_memory() {
    let variables = "x = { kind = \"program-scope\" }, y = { kind = \"program-scope\" }";
    assert_eq!(program_scope(variables, "*x = 1;", "*y = *x;"), [""; 0]);
    for kind in ["svm-coarse", "svm-fine", "svm-fine-atomic", "system"] {
        let memory = format!("{variables}, s = {{ kind = \"{kind}\" }}");
        let found = program_scope(&memory, "*x = *s;", "*y = *s;");
        let expected =
            "svm-in-initializer: an initialiser uses `s`, which is shared virtual memory";
        assert_eq!(found, [expected], "{kind}");
    }
}

#[test]
fn first_values_of_variables_at_program_scope_are_constants() {
    let memory = |init: &str| {
        let variable = "kind = \"program-scope\"";
        format!(
            "b = 0, x = {{ {variable} }}, a = {{ init = \"{init}\", type = \"long\", {variable} }}"
        )
    };
    let found = program_scope(&memory("&b"), "", "int r = 1;");
    assert_eq!(
        found,
        ["program-scope: the address of `b` is not a constant"]
    );
    assert_eq!(program_scope(&memory("&x"), "", "int r = 1;"), [""; 0]);
}

#[test]
fn each_device_has_its_own_variable_of_a_program() {
    let text = "name = \"t\"\ndialect = \"opencl\"\ncondition = 'P0:x == 1 && P1:x == 1 && P1:r != 0'\n\
                memory = { x = { kind = \"program-scope\" } }\n[[thread]]\ncode = \"*x = 1;\"\n\
                [[thread]]\nDEVICE\nwork_group = 1\ncode = \"int r = *x; *x = 1;\"\n";
    let test = |device: &str| {
        let text = text.replace("DEVICE", device);
        parse("t.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}"))
            .remove(0)
    };
    let model = shipped("opencl");
    for &engine in Engine::ALONE {
        let [reachability, race, _] = answers(&test("device = 1"), &model, engine);
        assert_eq!(
            [reachability, race],
            [Verdict::Forbidden, Verdict::RaceFree]
        );
        assert_eq!(answers(&test(""), &model, engine)[1], Verdict::Racy);
    }
    // The condition must name the device whose copy it means.
    let ambiguous = text.replace("DEVICE", "device = 1").replace("P1:x", "x");
    let found = parse("t.toml", ambiguous.as_bytes()).expect_err("ambiguous");
    assert_eq!(found[0].message, "every device has its own copy of `x`");
}
