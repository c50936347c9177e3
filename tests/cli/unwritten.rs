//! Memory that code declares begins with unknown values: a property that depends on one is
//! undecided, with the read named, and all others are decided.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fencepost;

/// The answers about a test, by property, under all engines.
fn answers(folder: &Path, test: &str) -> Vec<Value> {
    fs::write(folder.join("t.toml"), test).expect("writable");
    let properties = ["reachability", "race", "liveness:fair"]
        .iter()
        .flat_map(|p| ["--property", p]);
    let arguments: Vec<&str> = ["check", "t.toml", "--engine", "both", "--format", "jsonl"]
        .into_iter()
        .chain(properties)
        .collect();
    let said = fencepost(folder, &arguments);
    said.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{}", said.err)))
        .collect()
}

/// The answer about a property.
fn of(all: &[Value], property: &str) -> (String, String) {
    let line = all.iter().find(|line| line["property"] == property);
    let line = line.unwrap_or_else(|| panic!("{property}: {all:?}"));
    (
        line["verdict"].as_str().expect("a word").to_owned(),
        line["reason"].as_str().unwrap_or_default().to_owned(),
    )
}

/// Imports a kernel, and returns the test.
fn imported(folder: &Path, module: &str, arguments: &[&str]) -> (String, String) {
    fs::write(folder.join("k.ptx"), module).expect("writable");
    let launch = ["import", "k.ptx", "--block", "2", "-o", "k.toml", "--force"];
    let said = fencepost(folder, &[&launch[..], arguments].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    (
        fs::read_to_string(folder.join("k.toml")).expect("a test"),
        said.err,
    )
}

const HEAD: &str = ".version 8.5\n.target sm_80\n.address_size 64\n";

/// Thread 0 writes through `a`, thread 1 reads through `b`.
fn two_arrays(barrier: &str, offset: &str) -> String {
    format!(
        "{HEAD}.extern .shared .align 16 .b8 a[];\n.extern .shared .align 16 .b8 b[];\n\
         .visible .entry k(.param .u64 k_0)\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n\
         ld.param.u64 %rd1, [k_0];\nmov.u32 %r1, %tid.x;\nsetp.ne.s32 %p1, %r1, 0;\n@!%p1 st.shared.u32 [a], 7;\n{barrier}\n\
         @%p1 ld.shared.u32 %r3, [b{offset}];\n@%p1 st.global.u32 [%rd1], %r3;\nret;\n}}\n"
    )
}

#[test]
fn arrays_of_dynamic_shared_memory_begin_at_one_address() {
    let folder = tempfile::tempdir().expect("a folder");
    for (barrier, offset, ask, reachability, race) in [
        ("", "", "out == 7", "allowed", "racy"),
        ("bar.sync 0;", "", "out != 7", "forbidden", "race-free"),
        ("bar.sync 0;", "", "out == 7", "allowed", "race-free"),
        ("", "+4", "out == 7", "undecided", "race-free"),
    ] {
        for size in [
            &["--arg", "a=u32[4]"][..],
            &["--arg", "b=bytes[16]"],
            &["--arg", "a=u32[2]", "--arg", "b=u64[2]"],
        ] {
            let module = two_arrays(barrier, offset);
            let (test, _) = imported(
                folder.path(),
                &module,
                &[&["--arg", "0=out", "--ask", ask], size].concat(),
            );
            assert!(test.contains("b = { at = \"a\" }"), "{test}");
            let all = answers(folder.path(), &test);
            assert_eq!(
                of(&all, "reachability").0,
                reachability,
                "{barrier}{offset} {ask}: {all:?}"
            );
            assert_eq!(of(&all, "race").0, race, "{barrier}{offset} {ask}: {all:?}");
        }
    }
}

#[test]
fn what_rests_on_memory_that_nothing_has_written_is_undecided() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = |declared: &str, code: &str| {
        format!(
            "{HEAD}.visible .entry k(.param .u64 k_0)\n{{\n{declared}\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n\
             ld.param.u64 %rd1, [k_0];\n{code}\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
        )
    };
    let shared = ".shared .align 4 .u32 s;";
    for (declared, code, reachability, ends) in [
        (shared, "ld.shared.u32 %r1, [s];", "undecided", "terminates"),
        // A branch depends on it.
        (
            shared,
            "ld.shared.u32 %r2, [s];\nsetp.eq.u32 %p1, %r2, 5;\nmov.u32 %r1, 0;\n@%p1 mov.u32 %r1, 7;",
            "undecided",
            "undecided",
        ),
        (
            shared,
            "atom.shared.add.u32 %r2, [s], 1;\nld.shared.u32 %r1, [s];",
            "undecided",
            "terminates",
        ),
        // Each thread writes before it reads.
        (
            shared,
            "st.shared.u32 [s], 3;\nld.shared.u32 %r1, [s];",
            "forbidden",
            "terminates",
        ),
        // No instruction uses the value read.
        (
            shared,
            "ld.shared.u32 %r2, [s];\nmov.u32 %r1, 3;",
            "forbidden",
            "terminates",
        ),
        // Variables in global memory begin with zeros.
        (
            ".global .align 4 .u32 s;",
            "ld.global.u32 %r1, [s];",
            "forbidden",
            "terminates",
        ),
    ] {
        // Global variables are at module scope.
        let module = match declared.starts_with(".global") {
            true => kernel("", code).replace(".visible", &format!("{declared}\n.visible")),
            false => kernel(declared, code),
        };
        let (test, _) = imported(
            folder.path(),
            &module,
            &["--arg", "0=out", "--ask", "out == 7"],
        );
        let all = answers(folder.path(), &test);
        let (verdict, reason) = of(&all, "reachability");
        assert_eq!(verdict, reachability, "{code}: {all:?}");
        // Both threads write the result.
        assert_eq!(of(&all, "race").0, "racy", "{code}: {all:?}");
        assert_eq!(of(&all, "liveness:fair").0, ends, "{code}: {all:?}");
        if verdict == "undecided" {
            assert!(
                reason.contains("not worked out") && reason.contains("before any write to it"),
                "{reason}"
            );
        }
        let told = all[0]["unwritten"].as_array().map_or(0, Vec::len);
        let reads = code.contains(" %r2, [s]") || verdict == "undecided";
        assert_eq!(told > 0, reads, "{code}: {all:?}");
    }
}

/// The same holds in every language; the value that a thread waits for in such memory may be there,
/// or may never come.
#[test]
fn languages_say_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = |dialect: &str, ask: &str, threads: &str, code: &str| {
        format!(
            "name = \"t\"\ndialect = \"{dialect}\"\ncondition = '{ask}'\n[kernel]\n{threads}\ncode = '''\n{code}\n'''\n"
        )
    };
    let (cuda, opencl) = ("block = 2", "global = 2\nlocal = 2");
    for (dialect, threads, code, word) in [
        (
            "cuda",
            cuda,
            "__shared__ int s[2];\nint r = s[threadIdx.x];",
            "undecided",
        ),
        (
            "cuda",
            cuda,
            "__shared__ int s[2];\ns[threadIdx.x] = 0;\nint r = s[threadIdx.x];",
            "forbidden",
        ),
        (
            "cuda",
            cuda,
            "__shared__ int s[2];\nint r = 0;\nif (s[threadIdx.x] == 3) r = 7;",
            "undecided",
        ),
        (
            "opencl",
            opencl,
            "__local int s[2];\nint r = s[get_local_id(0)];",
            "undecided",
        ),
        (
            "opencl",
            opencl,
            "__local int s[2];\ns[get_local_id(0)] = 1;\nint r = s[get_local_id(0)];",
            "forbidden",
        ),
        // Constructors initialise objects that have them.
        (
            "cuda",
            cuda,
            "__shared__ cuda::barrier<cuda::thread_scope_block> b;\n__shared__ int s;\nif (threadIdx.x == 0) { init(&b, 2); s = 3; }\n\
             __syncthreads();\nb.arrive_and_wait();\nint r = s;",
            "forbidden",
        ),
    ] {
        let all = answers(folder.path(), &test(dialect, "0:r == 7", threads, code));
        assert_eq!(of(&all, "reachability").0, word, "{code}: {all:?}");
        let race = if code.contains("if (s[") {
            "undecided"
        } else {
            "race-free"
        };
        assert_eq!(of(&all, "race").0, race, "{code}: {all:?}");
    }
    let spin = test(
        "cuda",
        "true",
        "block = 1",
        "__shared__ int s;\nwhile (*(volatile int *)&s == 1) {}\nint r = 1;",
    );
    assert_eq!(
        of(&answers(folder.path(), &spin), "liveness:fair").0,
        "undecided"
    );
}

#[test]
fn buffers_without_values_are_unknown_where_they_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = format!(
        "{HEAD}.visible .entry k(.param .u64 k_0, .param .u64 k_1)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<3>;\n\
         ld.param.u64 %rd1, [k_0];\nld.param.u64 %rd2, [k_1];\nld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;\nret;\n}}\n"
    );
    let asked = |input: &str| {
        let (test, said) = imported(
            folder.path(),
            &module,
            &["--arg", input, "--arg", "1=out", "--ask", "out == 7"],
        );
        let all = answers(folder.path(), &test);
        (test, said, of(&all, "reachability").0)
    };
    let (test, said, verdict) = asked("0=in:u32[2]");
    assert!(
        test.contains("in = { init = \"unknown\", size = 2, type = \"u32\" }"),
        "{test}"
    );
    assert!(test.contains("out = { init = 0 }"), "{test}");
    assert!(
        said.contains("`in` begins with unknown values") && said.contains("--arg 0=in=0"),
        "{said}"
    );
    assert_eq!(verdict, "undecided");
    for (input, verdict) in [
        ("0=in:u32[2]=0", "forbidden"),
        ("0=in=0", "forbidden"),
        ("0=in:u32[2]=7", "allowed"),
        ("0=in:bytes[8]=0", "forbidden"),
    ] {
        let (test, said, found) = asked(input);
        assert!(!test.contains("unknown") && said.is_empty(), "{test}{said}");
        assert_eq!(found, verdict, "{input}");
    }
}

#[test]
fn arrays_of_dynamic_shared_memory_are_one_in_cuda_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = |memory: &str| {
        format!(
            "name = \"t\"\ndialect = \"cuda\"\ncondition = '1:r == 1'\n[memory]\na = {{ size = 2, type = \"int\", space = \"shared\" }}\n{memory}\n\
             [kernel]\nblock = 2\ncode = '''\nextern __shared__ int a[];\nextern __shared__ unsigned b[];\n__global__ void k() {{\n\
             if (threadIdx.x == 0) a[0] = 1;\nint r = 0;\nif (threadIdx.x == 1) r = b[0];\n}}\n'''\n"
        )
    };
    assert_eq!(
        of(&answers(folder.path(), &test("b = { at = \"a\" }")), "race").0,
        "racy"
    );
    fs::write(
        folder.path().join("t.toml"),
        test("b = { size = 2, type = \"uint\", space = \"shared\" }"),
    )
    .expect("writable");
    let said = fencepost(folder.path(), &["check", "t.toml"]);
    assert!(
        said.code == Some(2) && said.err.contains("`b` begins where `a` does"),
        "{}",
        said.err
    );
    assert!(said.err.contains("`b = { at = \"a\" }`"), "{}", said.err);
}

#[test]
fn kernels_of_source_files_name_reads_of_nothing_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let cuda = |code: &str| {
        format!(
            "// fencepost: k<<<1, 2, 8>>>(out[2])\nextern __shared__ int dynamic[];\n\
             __global__ void k(int *out) {{\n\
             __shared__ int s[4];\nint t = threadIdx.x;\n{code}\n}}\n"
        )
    };
    let opencl = |code: &str| {
        format!(
            "// fencepost: k<<<1, 2>>>(out[2])\n__kernel void k(__global int *out) {{\n\
             __local int s[2];\n\
             int t = get_local_id(0);\n{code}\n}}\n"
        )
    };
    for (file, text, read) in [
        // Every launch is proved race-free, and a proof knows nothing of such reads.
        (
            "k.cu",
            cuda("s[t] = 1; __syncthreads(); out[t] = s[t + 1];"),
            Some("`s[2]`"),
        ),
        (
            "k.cu",
            cuda("s[t] = 1; __syncthreads(); out[t] = s[1 - t];"),
            None,
        ),
        (
            "k.cu",
            cuda("if (t == 0) dynamic[0] = 1; __syncthreads(); out[t] = dynamic[t];"),
            Some("`dynamic[1]`"),
        ),
        (
            "k.cu",
            cuda("dynamic[t] = 1; __syncthreads(); out[t] = dynamic[t];"),
            None,
        ),
        (
            "k.cu",
            cuda("atomicAdd(&s[0], 1); out[t] = t;"),
            Some("`s[0]`"),
        ),
        ("k.cl", opencl("out[t] = s[t];"), Some("`s[0]`")),
        ("k.cl", opencl("s[t] = t; out[t] = s[t];"), None),
        // A race elsewhere does not explain the read; a race for the word itself does.
        ("k.cu", cuda("out[0] = t; out[1] = s[0];"), Some("`s[0]`")),
        ("k.cu", cuda("s[t] = 1; out[t] = s[1 - t];"), None),
    ] {
        fs::write(folder.path().join(file), &text).expect("writable");
        let said = fencepost(folder.path(), &["check", file]);
        let all = format!("{}{}", said.out, said.err);
        let notes = all.matches("before any write to it").count();
        assert_eq!(notes, usize::from(read.is_some()), "{text}{all}");
        assert!(read.is_none_or(|read| all.contains(read)), "{text}{all}");
        let _ = fs::remove_file(folder.path().join(file));
    }
}

/// An element keeps its own value, whatever a loop or a structure puts into the others.
#[test]
fn elements_of_unrolled_loops_are_independent() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = |dialect: &str, ask: &str, code: &str| {
        let (word, launch) = match dialect {
            "opencl" => ("int", "global = 1\nlocal = 1"),
            "cuda" => ("int", "block = 1"),
            _ => ("u32", "block = 1"),
        };
        format!(
            "name = \"t\"\ndialect = \"{dialect}\"\ncondition = '{ask}'\n[memory]\n\
             in = {{ init = \"unknown\", size = 4, type = \"{word}\" }}\n\
             out = {{ init = [0, 0, 0, 0], type = \"{word}\" }}\n\
             [kernel]\n{launch}\ncode = '''\n{code}\n'''\n"
        )
    };
    let loops = "int r[4]; for (int i = 0; i < 4; i++) r[i] = in[i]; r[0] = 5; for (int i = 0; \
        i < 4; i++) out[i] = r[i];";
    let copied = "for (int i = 0; i < 4; i++) { int v = in[i]; if (i == 1) v = 5; out[i] = v; }";
    let sums = "int n = 0; for (int i = 0; i < 4; i++) { out[i] = i; n += in[i]; } out[3] = n;";
    let lanes = "ld.weak.u32 r0, [in]\nshfl.sync.idx.b32 r1, r0, 0, 31, 1\n\
        st.weak.u32 [out], r1\nst.weak.u32 [out+4], 5";
    let vector = "ld.weak.v2.u32 {r0, r1}, [in]\nmov.u32 r1, 5\nst.weak.v2.u32 [out], {r0, r1}\n\
                  ld.weak.u32 r2, [out+4]\nst.weak.u32 [out+8], r2\nld.weak.u32 r3, [out]\n\
                  st.weak.u32 [out+12], r3";
    for (dialect, code, ask, word) in [
        ("cuda", loops, "out[0] != 5", "forbidden"),
        ("cuda", loops, "out[1] == 5", "undecided"),
        ("opencl", copied, "out[1] != 5", "forbidden"),
        ("opencl", copied, "out[2] == 5", "undecided"),
        ("cuda", sums, "out[2] != 2", "forbidden"),
        ("cuda", sums, "out[3] == 5", "undecided"),
        ("ptx", lanes, "out[1] != 5", "forbidden"),
        ("ptx", lanes, "out[0] == 7", "undecided"),
        ("ptx", vector, "out[2] != 5", "forbidden"),
        ("ptx", vector, "out[3] == 7", "undecided"),
    ] {
        let all = answers(folder.path(), &test(dialect, ask, code));
        assert_eq!(of(&all, "reachability").0, word, "{ask}: {code}: {all:?}");
    }
}

/// A changed program is decided by what bounds suspect. If the answer depends on a suspect, the
/// solver looks at it, so that it spoils no repair.
#[test]
fn a_repair_may_rest_on_reads_that_are_only_suspected() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |first: &str| {
        let test = format!(
            "name = \"t\"\ncondition = 'P1:r0 == 1 /\\ P1:r1 == 0'\n\
             memory = {{ x = {first}, f = 0 }}\n\
             [[thread]]\ncta = 0\ncode = \"st.weak x, 1; st.relaxed.gpu f, 1\"\n\
             [[thread]]\ncta = 1\n\
             code = \"ld.acquire.gpu r0, f; bne r0, 1, END; ld.weak r1, x; END:\"\n"
        );
        fs::write(folder.path().join("t.toml"), test).expect("writable");
        fencepost(folder.path(), &["ask", "t.toml", "--model", "ptx"]).out
    };
    for first in ["0", "\"unknown\""] {
        let said = asked(first);
        assert!(
            said.contains("forbidden with\n    `.release` in place of `.relaxed`"),
            "{said}"
        );
        let names = said.contains("can read `x` before any write to it");
        assert_eq!(names, first != "0", "{said}");
    }
}
