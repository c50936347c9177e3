//! Programs in C, CUDA C++ and OpenCL C that have no meaning, or use unsupported features.

use super::Folder;

/// A test in a C-like dialect whose one thread runs `code`.
fn c_like(dialect: &str, memory: &str, code: &str) -> String {
    format!(
        "name = \"T\"\ndialect = \"{dialect}\"\ncondition = 'true'\n[memory]\n{memory}\n[[thread]]\ncode = '''\n{code}\n'''\n"
    )
}

#[test]
fn orders_and_scopes_that_a_dialect_does_not_have() {
    let cases = [
        (
            "c",
            "atomic_store_explicit(x, 1, memory_order_acquire);",
            "a store cannot acquire (C11, 7.17.7.1)",
        ),
        (
            "c",
            "int r = atomic_load_explicit(x, memory_order_release);",
            "a load cannot release (C11, 7.17.7.2)",
        ),
        (
            "c",
            "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_device);",
            "C has no scopes",
        ),
        (
            "opencl",
            "atomic_store_explicit(x, 1, memory_order_acquire, memory_scope_device);",
            "a store cannot acquire",
        ),
        (
            "opencl",
            "int r = atomic_load_explicit(x, memory_order_release, memory_scope_device);",
            "a load cannot release",
        ),
        (
            "opencl",
            "int r = atomic_load_explicit(x, memory_order_consume, memory_scope_device);",
            "a load cannot release",
        ),
        (
            "opencl",
            "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_block);",
            "did you mean `memory_scope_work_group`?",
        ),
        (
            "opencl",
            "atomic_store_explicit(x, 1, memory_order_relaxed, thread_scope_device);",
            "did you mean `memory_scope_device`?",
        ),
        (
            "opencl",
            "atomic_work_item_fence(0, memory_order_release, memory_scope_device);",
            "a fence without flags is undefined",
        ),
    ];
    for (dialect, code, rule) in cases {
        let folder = Folder::new(&[(
            "t.toml",
            &c_like(dialect, "x = { type = \"atomic_int\" }", code),
        )]);
        folder.refused(&["t.toml"], &["t.toml:8:", rule]);
    }
    let reference = "cuda::atomic_ref<int, cuda::thread_scope_device>(x)";
    let cases = [
        (
            format!("{reference}.store(1, cuda::memory_order_acquire);"),
            "a store cannot acquire (ISO C++, atomics.ref.ops)",
        ),
        (
            format!("int r = {reference}.load(cuda::memory_order_release);"),
            "a load cannot release (ISO C++, atomics.ref.ops)",
        ),
        (
            reference.replace("device", "gpu") + ".store(1);",
            "did you mean `thread_scope_device`?",
        ),
        (
            "cuda::atomic<int> a;".into(),
            "is a `cuda::atomic<int, cuda::thread_scope_system>` of one thread",
        ),
        (
            "#include \"mine.h\"".into(),
            "headers of your own are not supported",
        ),
        (
            "#ifdef DEBUG".into(),
            "the code does not decide this branch",
        ),
        (
            "template <int... N> void f() {}".into(),
            "templates of any number of parameters are not supported",
        ),
        (
            "x = 1; int r = __ldg(&x);".into(),
            "`__ldg` of memory that may be written",
        ),
        (
            "int *p = &x; int r = __ldg(p); *p = 1;".into(),
            "use a plain load, or `__ldcg`",
        ),
        ("int r = __nanosleep(1);".into(), "this has no value"),
        (
            "unsigned t = 1; int r = abs(t);".into(),
            "`abs` of something without a sign",
        ),
        (
            "static int t = 1;".into(),
            "`static` variables are not supported",
        ),
        (
            "static const int t = x;".into(),
            "the value of a `static` variable is not a constant",
        ),
        (
            "static const int *t = nullptr;".into(),
            "the value of a `static` variable is not a constant",
        ),
        (
            "int r = __shfl(1, 0);".into(),
            "`__shfl` is not supported: shuffles without `_sync`",
        ),
        (
            "int r = __shfl_sync(-1, 1, 0, x);".into(),
            "only constants are supported here",
        ),
        (
            "int r = __shfl_sync(-1, 1, 0, 3);".into(),
            "expected a power of two",
        ),
    ];
    for (code, rule) in cases {
        let folder = Folder::new(&[("t.toml", &c_like("cuda", "x = 0", &code))]);
        folder.refused(&["t.toml"], &["t.toml:8:", rule]);
    }
}

#[test]
fn members_are_named_as_their_structure_has_them() {
    let test = |memory: &str, condition: &str| {
        let code = "struct Node { int data; int at[2]; }; Node t = m; int r = t.data;";
        format!(
            "name = \"t\"\ndialect = \"cuda\"\ncondition = \"{condition}\"\n[memory]\nx = 0\n{memory}\n[[thread]]\ncode = \"{code}\"\n"
        )
    };
    let node = "m = { type = \"Node\" }";
    for (memory, condition, part) in [
        (node, "m == 1", "`m` has more than one value"),
        (node, "m.dat == 1", "did you mean `m.data`?"),
        (
            node,
            "m.at == 1",
            "expected one of `m.data`, `m.at[0]`, `m.at[1]`",
        ),
        (node, "m[1].data == 1", "`m` has no `[1].data`"),
        (node, "x.data == 1", "`x` is not a structure"),
        (node, "P0:t == 1", "`t` has more than one value"),
        (node, "P0:r == &m.q", "`m` has no `.q`"),
        (
            "m = { type = \"Nodes\" }",
            "x == 1",
            "`type` cannot be `Nodes`",
        ),
        (
            "m = { type = \"Node\", init = [1, 2] }",
            "x == 1",
            "2 values for a `Node`",
        ),
        (
            "m = { type = \"Node\", size = 100000 }",
            "x == 1",
            "memory holds 1 to 65536 values",
        ),
        (
            "m = { type = \"Node\", init = [1, 2, \"&m.q\"] }",
            "x == 1",
            "there is no `&m.q`",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &test(memory, condition))]);
        folder.refused(&["t.toml"], &["t.toml:", part]);
    }
}

#[test]
fn evaluations_that_are_not_sequenced_cannot_be_written() {
    for code in [
        "*x = (*x)++;",
        "*x = ++*x;",
        "int r = ++*x + *x;",
        "int i = 0; int r = i++ + i;",
        "int r = (*x = 1) + *x;",
        "int r = (*x += 1) + *x;",
    ] {
        let folder = Folder::new(&[("t.toml", &c_like("c", "x = { type = \"int\" }", code))]);
        folder.refused(&["t.toml"], &["t.toml:8:", "error[unsequenced]"]);
    }
}

#[test]
fn reads_that_may_be_noticed_are_not_left_in_any_order() {
    let kernel = |code: &str| {
        let reads = "__device__ int at(const int *p, int i) { return p[i]; }";
        let adds = "__device__ int add(int *p) { return atomicAdd(p, 1); }";
        format!(
            "name = \"T\"\ndialect = \"cuda\"\ncondition = 'true'\nmemory = {{ a = [1, 2] }}\n[kernel]\nblock = 2\n\
             code = '''\n{reads}\n{adds}\n__global__ void k(int *a) {{ {code} }}\n'''\n"
        )
    };
    let rule = "the order of two accesses in this expression is left open";
    for code in [
        "volatile int *p = a; int r = p[threadIdx.x] + (p[0] + p[1]);",
        "int r = ((volatile int *)a)[threadIdx.x] + (((volatile int *)a)[0] + a[1]);",
        "int r = a[threadIdx.x] + (a[0] = 3);",
        "int r = a[threadIdx.x] + (atomicAdd(a, 1) + add(a));",
        "int r = add(a) + at(a, add(a));",
    ] {
        Folder::new(&[("t.toml", &kernel(code))]).refused(&["t.toml"], &["t.toml:10:", rule]);
    }
    for code in [
        "int r = a[threadIdx.x] + a[0];",
        "int r = at(a, threadIdx.x) + a[0];",
        // The order of a single access is chosen.
        "volatile int *p = a; int r = p[threadIdx.x] + p[0];",
        "int r = ((volatile int *)a)[threadIdx.x] + a[0];",
        "int r = a[threadIdx.x] + atomicAdd(a, 1);",
        "int r = at(a, threadIdx.x) + add(a);",
    ] {
        let said = Folder::new(&[("t.toml", &kernel(code))]).run(&["check", "t.toml"]);
        assert_eq!(said.code, Some(0), "{code}: {}", said.err);
    }
}

#[test]
fn lanes_of_a_thread_without_a_warp_and_of_the_host() {
    let test = |dialect: &str, place: &str, code: &str| {
        let text = format!(
            "name = \"T\"\ndialect = \"{dialect}\"\ncondition = 'true'\nmemory = {{ x = 0 }}\n[[thread]]\n{place}\ncode = '{code}'\n"
        );
        Folder::new(&[("t.toml", &text)])
    };
    let strangers = "this mask can name other lanes, but the thread is alone in its warp";
    for (dialect, code) in [
        ("cuda", "__syncwarp(0x3);"),
        ("cuda", "unsigned m = 3; if (x == 1) m = 1; __syncwarp(m);"),
        ("cuda", "int r = __shfl_sync(0x3, 1, 0);"),
        ("cuda", "int r = __reduce_add_sync(0x2, 1);"),
        ("ptx", "bar.warp.sync 3;"),
        ("ptx", "shfl.sync.idx.b32 r, 7, 0, 31, 3;"),
        ("ptx", "ld.weak.u32 m, [x]; match.any.sync.b32 r, 7, m;"),
    ] {
        test(dialect, "", code).refused(&["t.toml"], &["t.toml:7:", strangers, "`warp = 0`"]);
        let said = test(dialect, "warp = 0", code).run(&["check", "t.toml"]);
        assert!(!said.err.contains(strangers), "{code}: {}", said.err);
    }
    for (dialect, code) in [
        ("cuda", "int r = __shfl_sync(0x1, 5, 0);"),
        ("cuda", "int r = __all_sync(0x3, 1);"),
        ("cuda", "__syncwarp();"),
        ("ptx", "shfl.sync.idx.b32 r, 7, 0, 31, -1;"),
        ("ptx", "bar.sync 0;"),
        ("opencl", "int r = sub_group_reduce_add(1);"),
    ] {
        let rules = [
            "t.toml:7:",
            "in code of the host",
            "a thread of the host is in no group of threads",
        ];
        test(dialect, "host = true", code).refused(&["t.toml"], &rules);
    }
}

#[test]
fn lanes_that_meet_nobody_are_worth_a_warning() {
    let threads = |place: &str| {
        let thread = format!("[[thread]]\n{place}\ncode = '__syncwarp();'\n");
        let text = format!(
            "name = \"T\"\ndialect = \"cuda\"\ncondition = 'true'\nmemory = {{ x = 0 }}\n{thread}{thread}"
        );
        Folder::new(&[("t.toml", &text)]).run(&["check", "t.toml"])
    };
    let alone = threads("block = 0");
    for word in [
        "warning[lone-lane]: P0 is alone in its warp, and no thread meets it here",
        "`warp = 0`",
    ] {
        assert!(alone.err.contains(word), "{}", alone.err);
    }
    assert_eq!(alone.code, Some(0));
    assert!(!threads("block = 0\nwarp = 0").err.contains("lone-lane"));
}

#[test]
fn constant_memory_is_neither_atomic_nor_written() {
    let memory = "c = { type = \"atomic_int\", space = \"const\" }\nd = { type = \"int\", space = \"const\" }";
    let cases = [
        "int r = atomic_load_explicit(c, memory_order_relaxed, memory_scope_device);",
        "atomic_store_explicit(c, 1, memory_order_relaxed, memory_scope_device);",
        "*d = 1;",
    ];
    for code in cases {
        let folder = Folder::new(&[("t.toml", &c_like("opencl", memory, code))]);
        folder.refused(
            &["t.toml"],
            &[
                "error[constant-memory]",
                "t.toml:9:",
                "which is in constant memory",
            ],
        );
    }
    // A plain load of constant memory is allowed.
    let folder = Folder::new(&[("t.toml", &c_like("opencl", memory, "int r = *d;"))]);
    assert_eq!(folder.run(&["check", "t.toml"]).code, Some(0));
}

#[test]
fn local_memory_that_work_groups_share_is_worth_a_warning() {
    let litmus = "OPENCL shared\n{ [x] = 0; }\n\
        P0@wg 0, dev 0 (local atomic_int* x) { atomic_store_explicit(x, 1, memory_order_relaxed); }\n\
        P1@wg 1, dev 0 (local atomic_int* x) { int r0 = atomic_load_explicit(x, memory_order_relaxed); }\n\
        exists (1:r0 = 1)\n";
    let folder = Folder::new(&[
        ("t.litmus", litmus),
        ("own.litmus", &litmus.replace("@wg 1", "@wg 0")),
    ]);
    let said = folder.run(&["check", "t.litmus", "--format", "jsonl"]);
    assert_eq!(
        (said.code, said.out.lines().count()),
        (Some(0), 1),
        "{}",
        said.err
    );
    for words in [
        "warning[shared-local]: local memory `x` is shared by two work-groups",
        "t.litmus:4:",
        "3 | P0@wg 0",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert_eq!(folder.run(&["check", "own.litmus"]).err, "");
    // In TOML, each work-group has a separate copy: no memory is shared, and neither sees the
    // other's value.
    let toml = "name = \"T\"\ndialect = \"opencl\"\ncondition = 'P1:r0 == 1'\n[memory]\n\
        x = { type = \"atomic_int\", space = \"local\" }\n[[thread]]\nwork_group = 0\ncode = 'atomic_store(x, 1);'\n\
        [[thread]]\nwork_group = 1\ncode = 'int r0 = atomic_load(x);'\n";
    folder.write("t.toml", toml.as_bytes());
    let said = folder.run(&["check", "t.toml", "--format", "jsonl"]);
    assert!(
        said.err.is_empty() && said.out.contains("\"verdict\":\"forbidden\""),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn the_scope_of_one_work_item_is_worth_a_warning() {
    let code = "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_work_item);";
    let folder = Folder::new(&[(
        "t.toml",
        &c_like("opencl", "x = { type = \"atomic_int\" }", code),
    )]);
    let said = folder.run(&["check", "t.toml"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("warning[useless-scope]") && said.err.contains("OpenCL C, Memory Scope"),
        "{}",
        said.err
    );
}

/// Operators on such an object would have no scope in CUDA C++, and PTX has no such types.
#[test]
fn atomic_types_of_c_are_of_no_other_dialect() {
    for (dialect, code, wanted) in [
        ("cuda", "x = 1;", "`cuda::std::atomic_int`"),
        (
            "ptx",
            "st.relaxed.gpu.u32 [x], 1;",
            "expected a type such as `u32`",
        ),
    ] {
        for ty in ["atomic_int", "atomic_ulong", "atomic_flag"] {
            let folder = Folder::new(&[(
                "t.toml",
                &c_like(dialect, &format!("x = {{ type = \"{ty}\" }}"), code),
            )]);
            let said = folder.run(&["check", "t.toml"]);
            assert_eq!(said.code, Some(2), "{dialect}: {}{}", said.out, said.err);
            for words in [
                "error[conflicting-keys]",
                "has no atomic types of C",
                wanted,
                ":5:",
            ] {
                assert!(
                    said.err.contains(words),
                    "{dialect}: `{words}` is missing in\n{}",
                    said.err
                );
            }
        }
    }
}

#[test]
fn index_spaces_that_there_are_not() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "opencl",
            "global = 2\nlocal = 2\noffset = 18446744073709551614",
            &["bad-range", "exceed the largest `size_t`", ":7:10"],
        ),
        (
            "opencl",
            "global = [4, 3]\nlocal = [2, 2]\nuniform = true",
            &[
                "bad-range",
                "dimension 1, 3 work-items are not whole work-groups of 2",
                ":5:10",
            ],
        ),
        (
            "opencl",
            "global = 4\nlocal = 0",
            &["bad-range", "groups of size 0", ":6:9"],
        ),
        (
            "opencl",
            "global = 4\nlocal = [2, 2]",
            &["bad-range", "2 dimensions, but `global` has 1"],
        ),
        (
            "opencl",
            "global = [1, 1, 1, 1]\nlocal = 1",
            &["bad-range", "1 to 3 dimensions"],
        ),
        ("opencl", "global = 4", &["missing-key", "no `local`"]),
        (
            "opencl",
            "global = 4\nlocal = 2\ngrid = 2",
            &["conflicting-keys", "both say how many work-items"],
        ),
        (
            "opencl",
            "global = [4294967296, 4294967296]\nlocal = [1, 1]",
            &["too-many-threads"],
        ),
        (
            "opencl",
            "global = -4\nlocal = 2",
            &["wrong-type", "a negative integer"],
        ),
        (
            "cuda",
            "global = 4\nlocal = 2",
            &["conflicting-keys", "expected `grid` and `block`"],
        ),
        (
            "cuda",
            "block = [2, 0]",
            &["bad-number", "`block` cannot be 0", ":5:9"],
        ),
        ("cuda", "grid = 2", &["missing-key", "no `block`"]),
        (
            "cuda",
            "grid = [4294967296, 4294967296]\nblock = [4294967296, 2]",
            &["too-many-threads"],
        ),
    ];
    for (dialect, range, words) in cases {
        let text = format!(
            "name = \"t\"\ndialect = \"{dialect}\"\nmemory = {{ x = 0 }}\n[kernel]\n{range}\ncode = \"int r = 1;\"\n"
        );
        Folder::new(&[("t.toml", &text)]).refused(&["t.toml"], words);
    }
}

#[test]
fn an_object_that_may_have_two_forms_has_no_counterpart_in_ptx() {
    let memory = "b = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1, space = \"shared\" }\n\
                  d = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1 }\nn = 1";
    let code = "auto *p = n ? &b : &d; p->arrive();";
    let folder = Folder::new(&[("t.toml", &c_like("cuda", memory, code))]);
    let said = folder.run(&["ask", "t.toml", "--model", "ptx"]);
    let reason = "it may be one of several that PTX has in different forms";
    assert!(said.out.contains(reason), "{}{}", said.out, said.err);
}

#[test]
fn functions_that_are_instructions_in_forms_that_are_not_supported() {
    let memory = "x = { init = [0, 0, 0, 0], type = \"int\", space = \"shared\" }\n\
                  g = { init = [0, 0, 0, 0], type = \"int\" }\n\
                  c = { init = [0, 0, 0, 0], type = \"char\", space = \"shared\" }\n\
                  d = { init = [0, 0, 0, 0], type = \"char\" }\n\
                  w = { type = \"u64\" }\nb = { type = \"u64\", space = \"shared\" }\n\
                  n = 16\n\
                  bar = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1, space = \"shared\" }\n\
                  far = { type = \"cuda::barrier<cuda::thread_scope_device>\", init = 1, space = \"shared\" }";
    let bulk = |ends: &str| {
        format!(
            "cuda::ptx::cp_async_bulk(cuda::ptx::space_shared, cuda::ptx::space_global, {ends}, &b);"
        )
    };
    for (code, words) in [
        (
            "cuda::ptx::getctarank(cuda::ptx::space_cluster, &x);".to_owned(),
            "the instruction `cuda::ptx::getctarank` is not supported",
        ),
        (
            "cuda::ptx::fence_proxy_alias(1);".to_owned(),
            "this form of `cuda::ptx::fence_proxy_alias` is not supported",
        ),
        (
            "cuda::ptx::mbarrier_init(&g[0], 1);".to_owned(),
            "this is not an address of a 64-bit word",
        ),
        (
            "cuda::ptx::mbarrier_init(&w, 1);".to_owned(),
            "`w` is not in shared memory",
        ),
        (
            "cuda::ptx::mbarrier_init(&b, 40000);".to_owned(),
            "an mbarrier object cannot count 40000 arrivals",
        ),
        (
            bulk("x, g, 12"),
            "a bulk operation has a multiple of 16 bytes",
        ),
        (bulk("x, g, n"), "this has to be a constant"),
        (bulk("x, g, 32"), "bytes 0 to 31 of `g`, which has 16"),
        (bulk("x, x, 16"), "`x` is not in global memory"),
        (bulk("g, g, 16"), "`g` is not in shared memory"),
        (
            bulk("n ? x : x, g, 16"),
            "the target of this pointer is unknown",
        ),
        (
            bulk("x, d, 16"),
            "a copy between elements of different sizes",
        ),
        (
            "cuda::device::memcpy_async_tx(x, g, 16, far);".to_owned(),
            "this is not a barrier of block scope",
        ),
        (
            "cuda::device::barrier_native_handle(x);".to_owned(),
            "this is not a barrier of block scope",
        ),
        (
            "cuda::memcpy_async(x, g, 6, bar);".to_owned(),
            "a copy of 6 bytes with alignment 4 cannot be asynchronous here",
        ),
        (
            "cuda::memcpy_async(c, d, 4, bar);".to_owned(),
            "a copy of 4 bytes with alignment 1 cannot be asynchronous here",
        ),
        (
            "cuda::memcpy_async(1, x, g, 16, bar);".to_owned(),
            "this form of `cuda::memcpy_async` is not supported",
        ),
        (
            "auto p = cuda::make_pipeline(1, 2);".to_owned(),
            "this is not a supported pipeline",
        ),
        (
            "cuda::pipeline<cuda::thread_scope_block> p;".to_owned(),
            "this declaration of a pipeline is not supported",
        ),
        (
            "auto p = cuda::make_pipeline(); p.quit();".to_owned(),
            "`quit` of a pipeline is not supported",
        ),
        (
            "cuda::pipeline_consumer_wait_prior<1>(x);".to_owned(),
            "this takes a number and a pipeline of one thread",
        ),
    ] {
        Folder::new(&[("t.toml", &c_like("cuda", memory, &code))]).refused(&["t.toml"], &[words]);
    }
    let moved = "name = \"T\"\ndialect = \"cuda\"\ncondition = 'true'\nmemory = { g = { init = [1, 2, 3, 4], type = \"int\" } }\n\
                 [kernel]\nblock = 1\ncode = '''\n__global__ void k(int *g) {\n__shared__ int x[4]; auto p = cuda::make_pipeline();\n\
                 for (int i = 0; i < 2; ++i) { cuda::memcpy_async(x, g, 4, p); g = g + 1; }\n}\n'''\n";
    Folder::new(&[("t.toml", moved)])
        .refused(&["t.toml"], &["the target of this pointer is unknown"]);
    let host = "name = \"T\"\ndialect = \"cuda\"\ncondition = 'true'\nmemory = { x = 0 }\n[[host]]\ncode = \"cudaGridDependencySynchronize();\"\n";
    Folder::new(&[("t.toml", host)]).refused(
        &["t.toml"],
        &["`cudaGridDependencySynchronize` is a function of the device"],
    );
    // The language has no words for them; the target of a pointer is known only after mapping.
    for (model, code, words) in [
        (
            "cuda",
            "cuda::memcpy_async(x, g, 16, bar);",
            "PTX in assembly or in a function of the library",
        ),
        (
            "ptx",
            "auto *p = n ? &b : &w; cuda::ptx::mbarrier_arrive(p);",
            "an mbarrier object is a word of 64 bits in shared memory, and `w` is not",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &c_like("cuda", memory, code))]);
        let said = folder.run(&["ask", "t.toml", "--model", model]);
        assert!(said.out.contains(words), "{code}: {}{}", said.out, said.err);
    }
}

#[test]
fn counts_and_arguments_that_barriers_of_the_library_do_not_have() {
    for (code, words) in [
        ("init(&b, 40000);", "expected a count between 0 and 32767"),
        ("b.wait();", "one argument: the phase of the wait"),
        ("b.wait_parity();", "one argument: the phase of the wait"),
        (
            "b.try_wait_for(0);",
            "two arguments: the phase of the wait, and a time",
        ),
        (
            "b.try_wait_until(0, 0);",
            "`try_wait_until` of a barrier is not supported",
        ),
    ] {
        let memory =
            "b = { type = \"cuda::barrier<cuda::thread_scope_block>\", space = \"shared\" }";
        Folder::new(&[("t.toml", &c_like("cuda", memory, code))]).refused(&["t.toml"], &[words]);
    }
}

#[test]
fn what_has_no_counterpart_in_ptx_is_undecided_under_models_of_ptx() {
    let code =
        "int r = atomic_fetch_add_explicit(x, 1, memory_order_relaxed, memory_scope_device);";
    let folder = Folder::new(&[(
        "t.toml",
        &c_like("opencl", "x = { type = \"u8\", atomic = true }", code),
    )]);
    let said = folder.run(&["check", "t.toml", "--model", "ptx"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    for words in [
        "undecided",
        "not in this model: mapping `opencl-ptx` has no counterpart in PTX of `int r = atomic_fetch_add_explicit(",
        "line 8",
        "PTX `atom` has no such operation of 8 bits",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    // For an undecided program no outcome is listed or compared.
    for command in [
        "outcomes t.toml --model ptx",
        "compare t.toml --models opencl,ptx",
        "run t.toml --model ptx",
    ] {
        let said = folder.run(&command.split(' ').collect::<Vec<_>>());
        assert!(
            said.out.contains("not in this model: mapping `opencl-ptx`"),
            "{command}: {}{}",
            said.out,
            said.err
        );
    }
    assert_eq!(
        folder.run(&["check", "t.toml", "--model", "opencl"]).code,
        Some(0)
    );
}
