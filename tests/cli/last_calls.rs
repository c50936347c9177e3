//! Hosts whose last call waits forever: the answer names the call and the object of its wait.

use std::fs;

use super::{Said, fencepost};

/// A host program with a kernel `k` that spins forever and a kernel `q` that ends.
fn hangs(hosts: &[&str]) -> String {
    let spin = "while (cuda::atomic_ref<int, cuda::thread_scope_system>(flag).load(cuda::memory_order_relaxed) == 0) { }";
    let hosts: String = hosts
        .iter()
        .map(|calls| format!("[[host]]\ncode = '''\n{calls}\n'''\n"))
        .collect();
    format!(
        "name = \"T\"\ndialect = \"cuda\"\nstreams = {{ w = \"non-blocking\", v = \"non-blocking\" }}\nevents = [\"e\"]\n\
         memory = {{ flag = 0, x = 0 }}\n[[kernel]]\nname = \"k\"\ncode = \"{spin}\"\n[[kernel]]\nname = \"q\"\ncode = \"x = 1;\"\n\
         {hosts}[expect]\ncuda = {{ liveness = {{ fair = \"hangs\" }} }}\n"
    )
}

fn said(test: &str, engine: &str) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("test.toml"), test).expect("written");
    fencepost(
        folder.path(),
        &["check", "-v", "test.toml", "--engine", engine, "--no-cache"],
    )
}

/// How a thread ends, in the answer about a program.
fn end_of(said: &Said, thread: &str) -> String {
    let ends = said
        .out
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(&format!("{thread}  ")));
    ends.map(str::to_owned)
        .next()
        .unwrap_or_else(|| panic!("{thread} is not told: {}{}", said.out, said.err))
}

#[test]
fn a_host_is_blocked_in_the_call_that_waits() {
    let waits = |calls: &str, call: &str| {
        let said = said(&hangs(&[calls]), "both");
        let end = end_of(&said, "H0");
        assert!(
            end.starts_with("H0  blocked  waits forever: `k` does not end  line "),
            "{end}"
        );
        assert!(end.ends_with(call), "{end}");
        assert!(said.out.contains("to complete -> "), "{}", said.out);
    };
    waits(
        "k<<<1, 1, 0, w>>>();\ncudaStreamSynchronize(w);",
        "cudaStreamSynchronize(w);",
    );
    waits(
        "k<<<1, 1, 0, w>>>();\ncudaDeviceSynchronize();",
        "cudaDeviceSynchronize();",
    );
    waits(
        "k<<<1, 1, 0, w>>>();\ncudaEventRecord(e, w);\ncudaEventSynchronize(e);",
        "cudaEventSynchronize(e);",
    );
    waits(
        "k<<<1, 1, 0, w>>>();\nq<<<1, 1, 0, w>>>();\ncudaStreamSynchronize(w);",
        "cudaStreamSynchronize(w);",
    );
    // If two calls would wait, the first counts.
    waits(
        "k<<<1, 1, 0, w>>>();\ncudaStreamSynchronize(v);\ncudaDeviceSynchronize();\ncudaStreamSynchronize(w);",
        "cudaDeviceSynchronize();",
    );
}

#[test]
fn a_host_that_waits_for_nothing_of_that_is_done() {
    let done = |hosts: &[&str], thread: &str| {
        let said = said(&hangs(hosts), "both");
        let end = end_of(&said, thread);
        assert!(
            end.contains("done") && end.ends_with("runs to its end"),
            "{end}"
        );
    };
    done(&["k<<<1, 1, 0, w>>>();"], "H0");
    done(
        &["k<<<1, 1, 0, w>>>();\nq<<<1, 1, 0, v>>>();\ncudaStreamSynchronize(v);"],
        "H0",
    );
    let hosts = [
        "k<<<1, 1, 0, w>>>();\ncudaDeviceSynchronize();",
        "q<<<1, 1, 0, v>>>();\ncudaStreamSynchronize(v);",
    ];
    done(&hosts, "H1");
    assert!(end_of(&said(&hangs(&hosts), "sat"), "H0").starts_with("H0  blocked"));
}
