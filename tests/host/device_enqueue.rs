//! Kernels that enqueue kernels: each ordering rule is needed, all engines agree, and errors are
//! reported.

use fencepost::check::{Engine, Limits, Session};
use fencepost::diag::{TextStyle, render};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::program::host::Rule;
use fencepost::verdict::{Reason, Verdict};
use testkit::suite::shipped;

fn file(path: &str, name: &str) -> LitmusTest {
    let tests =
        read_path(format!("litmus/host/{path}.toml").as_ref()).unwrap_or_else(|e| panic!("{e:?}"));
    tests
        .into_iter()
        .find(|t| t.name == name)
        .unwrap_or_else(|| panic!("no {name} in {path}"))
}

/// The test without an ordering rule.
fn without(mut test: LitmusTest, rule: Rule) -> LitmusTest {
    let host = test.program.host.as_mut().expect("a host program");
    host.rules = host.rules.without(rule);
    test
}

#[test]
fn every_rule_of_the_device_is_needed() {
    let cases = [
        (
            "opencl",
            "opencl/Child+enqueuer",
            "Child+enqueuer+no-wait+svm-fine",
            Rule::Issue,
        ),
        (
            "opencl",
            "opencl/Child+same-group",
            "Child+same-group+wait-kernel+buffer",
            Rule::WaitKernel,
        ),
        (
            "opencl",
            "opencl/Child+same-group",
            "Child+same-group+wait-work-group+buffer",
            Rule::WaitWorkGroup,
        ),
        (
            "opencl",
            "opencl/Children+event",
            "Children+event",
            Rule::WaitList,
        ),
        (
            "opencl",
            "opencl/Child.user-event",
            "Child.user-event-set-behind",
            Rule::UserEvent,
        ),
        (
            "opencl",
            "opencl/Child+completes-parent",
            "Child+completes-parent",
            Rule::Family,
        ),
        ("cuda", "cuda/Launch+before", "Launch+before", Rule::Launch),
        (
            "cuda",
            "cuda/Launch+one-stream",
            "Launch+one-stream",
            Rule::Stream,
        ),
        ("cuda", "cuda/Launch+tail", "Launch+tail", Rule::TailLaunch),
        (
            "cuda",
            "cuda/Launch+tails",
            "Launch+tails",
            Rule::TailLaunch,
        ),
        (
            "cuda",
            "cuda/Launch+next-kernel",
            "Launch+next-kernel",
            Rule::Family,
        ),
    ];
    for (name, path, test, rule) in cases {
        let (model, test) = (shipped(name), file(path, test));
        let less = without(test.clone(), rule);
        for &engine in Engine::ALONE {
            let race = |test: &LitmusTest| {
                Session::new(test, &model, engine, Limits::default(), &[])
                    .race()
                    .expect("a race flag")
                    .verdict
            };
            assert_eq!(race(&test), Verdict::RaceFree, "{path}");
            assert_eq!(race(&less), Verdict::Racy, "{path} without {}", rule.id());
        }
    }
}

#[test]
fn two_kernels_of_the_host_on_one_buffer_are_left_to_implementations() {
    let text =
        std::fs::read_to_string("litmus/host/opencl/Kernels+atomics.toml").expect("the file");
    let text = text.replace("kind = \"svm-coarse\"", "kind = \"buffer\"");
    let test = &parse("t.toml", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}"))[0];
    let model = shipped("opencl");
    for &engine in Engine::ALONE {
        let mut session = Session::new(test, &model, engine, Limits::default(), &[]);
        let verdict = session.reachability(None, false).verdict;
        assert!(
            matches!(verdict.reason(), Some(Reason::ImplementationDefined { .. })),
            "{verdict:?}"
        );
    }
}

/// The message about a program whose kernel `parent` has that code.
fn said(dialect: &str, code: &str) -> String {
    let (queues, call) = match dialect {
        "opencl" => (
            "queues = { q = \"in-order\" }\n",
            "clEnqueueNDRangeKernel(q, parent, NULL, 2, 2);",
        ),
        _ => ("", "parent<<<1, 2>>>();"),
    };
    let text = format!(
        "name = \"t\"\ndialect = \"{dialect}\"\nmemory = {{ x = 0 }}\n{queues}\
         [[kernel]]\nname = \"parent\"\ncode = '''\n{code}\n'''\n\
         [[kernel]]\nname = \"child\"\ncode = \"int r = 0;\"\n[[host]]\ncode = \"{call}\"\n"
    );
    match parse("t.toml", text.as_bytes()) {
        Ok(_) => String::new(),
        Err(all) => all.iter().map(|d| render(d, TextStyle::Plain)).collect(),
    }
}

#[test]
fn what_kernels_cannot_enqueue_is_named() {
    let enqueue = "enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1),";
    let cases = [
        ("opencl", format!("{enqueue} ^{{ chidl(); }});"), vec!["there is no kernel `chidl`", "`child`"]),
        (
            "opencl",
            format!("{enqueue} 1, &e, NULL, ^{{ child(); }});"),
            vec!["`e` is not an event of this thread"],
        ),
        (
            "opencl",
            format!("int r = *x;\nif (r == 1) {{ {enqueue} ^{{ child(); }}); }}"),
            vec!["in a branch or a loop", "on the place of the thread"],
        ),
        ("opencl", format!("{enqueue} ^{{ parent(); }});"), vec!["more than 24 deep"]),
        ("opencl", "enqueue_marker(get_default_queue(), 0, NULL, &m);".to_string(), vec!["needs a wait list"]),
        (
            "opencl",
            format!("clk_event_t u = create_user_event();\n{enqueue} 1, &u, NULL, ^{{ child(); }});"),
            vec!["no call sets the user event `u`", "never starts"],
        ),
        (
            "opencl",
            format!("clk_event_t e;\n{enqueue} 0, NULL, &e, ^{{ child(); }});\n\
                     set_user_event_status(e, CL_COMPLETE);"),
            vec!["`e` is not a user event of this thread", "undefined"],
        ),
        (
            "opencl",
            "clk_event_t u = create_user_event();\nset_user_event_status(u, -1);".to_string(),
            vec!["the user event `u` fails", "implementation-defined"],
        ),
        (
            "opencl",
            "clk_event_t u = create_user_event();\nset_user_event_status(u, CL_COMPLETE);\n\
             set_user_event_status(u, CL_COMPLETE);"
                .to_string(),
            vec!["`u` is set twice"],
        ),
        (
            "opencl",
            "set_user_event_status(u, CL_COMPLETE);".to_string(),
            vec!["`u` is not a user event of this thread"],
        ),
        (
            "opencl",
            "create_user_event();".to_string(),
            vec!["the new event has no name", "clk_event_t u"],
        ),
        (
            "opencl",
            "enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ child(); });".to_string(),
            vec!["`q` is not a queue of the device"],
        ),
        (
            "opencl",
            "enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT, ndrange_1D(1), ^{ child(); });"
                .to_string(),
            vec!["`CLK_ENQUEUE_FLAGS_WAIT` is not allowed here", "CLK_ENQUEUE_FLAGS_WAIT_KERNEL"],
        ),
        (
            "opencl",
            "enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_2D(1), ^{ child(); });"
                .to_string(),
            vec!["expected 2 numbers"],
        ),
        (
            "opencl",
            "clFinish(q);".to_string(),
            vec!["there is no call `clFinish` here", "the host's or that of kernels"],
        ),
        ("cuda", "child<<<1, 1>>>();".to_string(), vec!["two threads of a block launch into one stream"]),
        (
            "cuda",
            "child<<<1, 1, 0, cudaStreamTailLaunch>>>();".to_string(),
            vec!["two threads of a grid launch into its tail"],
        ),
        ("cuda", "child<<<1, 1, 0, s>>>();".to_string(), vec!["streams of the host are unknown to the device"]),
        ("cuda", "cudaDeviceSynchronize();".to_string(), vec!["there is no call `cudaDeviceSynchronize` here"]),
    ];
    for (dialect, code, words) in cases {
        let said = said(dialect, &code);
        for word in words {
            assert!(
                said.contains(word),
                "`{code}`: `{word}` is missing in:\n{said}"
            );
        }
    }
}

#[test]
fn branches_on_the_place_of_a_thread_are_no_obstacle() {
    let enqueue = "enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ child(); });";
    for code in [
        format!("if (get_global_id(0) == 1) {{ {enqueue} }}"),
        format!("if (get_global_id(0) != 1) {{ *x = 1; }} else {{ {enqueue} }}"),
        format!("if (get_local_id(0) != 0) {{ return; }}\n{enqueue}"),
    ] {
        assert_eq!(said("opencl", &code), "", "{code}");
    }
}
