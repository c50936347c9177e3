//! Tests the C-like dialects and their models from outside: for each axiom a forbidden program and
//! an allowed twin, and the messages for bad files.

use fencepost::check::{Engine, Limits, Session};
use fencepost::diag::{TextStyle, render};
use fencepost::litmus::{LitmusTest, parse, to_toml};
use fencepost::verdict::Verdict;
use testkit::suite::shipped;

fn read(name: &str, text: &str) -> Result<Vec<LitmusTest>, String> {
    parse(name, text.as_bytes())
        .map_err(|all| all.iter().map(|d| render(d, TextStyle::Plain)).collect())
}

/// A `.litmus` test of functions with given bodies.
fn test(head: &str, threads: &[(&str, &str)], exists: &str) -> LitmusTest {
    let mut text = format!("{head} t\n{{ [x] = 0; }}\n");
    for (i, (parameters, body)) in threads.iter().enumerate() {
        let place = if head == "C" { "" } else { "@wg 0, dev 0 " };
        text.push_str(&format!("P{i}{place}({parameters}) {{ {body} }}\n"));
    }
    text.push_str(&format!("exists ({exists})\n"));
    read("t.litmus", &text)
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0)
}

/// Whether the condition can hold.
#[track_caller]
fn allowed(test: &LitmusTest, model: &str) -> bool {
    let model = shipped(model);
    let answer =
        Session::new(test, &model, Engine::Both, Limits::default(), &[]).reachability(None, false);
    assert_eq!(answer.defect, None);
    match answer.verdict {
        Verdict::Allowed => true,
        Verdict::Forbidden => false,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn racy(test: &LitmusTest, model: &str) -> bool {
    let model = shipped(model);
    let answer = Session::new(test, &model, Engine::Both, Limits::default(), &[])
        .race()
        .expect("has a race flag");
    assert_eq!(answer.defect, None);
    answer.verdict == Verdict::Racy
}

const C: &str = "atomic_int* x, atomic_int* y";
const CL: &str = "global atomic_int* x, global atomic_int* y";

fn store(x: &str, v: &str, order: &str) -> String {
    format!("atomic_store_explicit({x}, {v}, memory_order_{order});")
}

fn load(r: &str, x: &str, order: &str) -> String {
    format!("int {r} = atomic_load_explicit({x}, memory_order_{order});")
}

/// Judges a program of atomic operations under all models in which it has a meaning.
#[track_caller]
fn judge(bodies: &[String], exists: &str, expected: &[(&str, bool)]) {
    for (model, answer) in expected {
        let (head, parameters) = if model.contains("c11") {
            ("C", C)
        } else {
            ("OPENCL", CL)
        };
        let threads: Vec<(&str, &str)> = bodies.iter().map(|b| (parameters, b.as_str())).collect();
        assert_eq!(
            allowed(&test(head, &threads, exists), model),
            *answer,
            "{model}: {bodies:?}"
        );
    }
}

const FORBIDDEN: &[(&str, bool)] = &[
    ("c11", false),
    ("rc11", false),
    ("opencl", false),
    ("opencl-total", false),
];
const ALLOWED: &[(&str, bool)] = &[
    ("c11", true),
    ("rc11", true),
    ("opencl", true),
    ("opencl-total", true),
];

#[test]
fn message_passing_needs_release_and_acquire() {
    let mp = |w, r| {
        [
            store("x", "1", "relaxed") + &store("y", "1", w),
            load("r0", "y", r) + &load("r1", "x", "relaxed"),
        ]
    };
    judge(&mp("release", "acquire"), "1:r0=1 /\\ 1:r1=0", FORBIDDEN);
    judge(&mp("relaxed", "acquire"), "1:r0=1 /\\ 1:r1=0", ALLOWED);
    judge(&mp("release", "relaxed"), "1:r0=1 /\\ 1:r1=0", ALLOWED);
}

#[test]
fn store_buffering_needs_sc() {
    let sb = |w: &str, r: &str| {
        [
            store("x", "1", w) + &load("r0", "y", r),
            store("y", "1", w) + &load("r0", "x", r),
        ]
    };
    judge(&sb("seq_cst", "seq_cst"), "0:r0=0 /\\ 1:r0=0", FORBIDDEN);
    judge(&sb("release", "acquire"), "0:r0=0 /\\ 1:r0=0", ALLOWED);
}

#[test]
fn coherence() {
    let reads = load("r0", "x", "relaxed") + &load("r1", "x", "relaxed");
    let writer = store("x", "1", "relaxed");
    judge(
        &[writer.clone(), reads.clone()],
        "1:r0=1 /\\ 1:r1=0",
        FORBIDDEN,
    );
    judge(&[writer, reads], "1:r0=0 /\\ 1:r1=1", ALLOWED);
}

#[test]
fn atomicity() {
    let rmw = "int r0 = atomic_fetch_add_explicit(x, 1, memory_order_relaxed);".to_string();
    judge(&[rmw.clone(), rmw.clone()], "x=1", FORBIDDEN);
    judge(&[rmw.clone(), rmw], "x=2", ALLOWED);
}

#[test]
fn load_buffering_tells_rc11_apart() {
    let lb = |w: &str, r: &str| {
        [
            load("r0", "x", r) + &store("y", "1", w),
            load("r0", "y", r) + &store("x", "1", w),
        ]
    };
    let expected = &[("c11", true), ("rc11", false), ("opencl", true)];
    judge(&lb("relaxed", "relaxed"), "0:r0=1 /\\ 1:r0=1", expected);
    judge(&lb("release", "acquire"), "0:r0=1 /\\ 1:r0=1", FORBIDDEN);
}

#[test]
fn a_plain_location_holds_a_visible_side_effect() {
    let threads = |order: &str| {
        let writer = "*x = 1;".to_string() + &store("y", "1", order);
        let reader = load("r0", "y", "acquire") + "if (r0) { int r1 = *x; int r2 = 1 - r1; }";
        [writer, reader]
    };
    for (head, parameters, model) in [
        ("C", "int* x, atomic_int* y", "c11"),
        ("C", "int* x, atomic_int* y", "rc11"),
        ("OPENCL", "global int* x, global atomic_int* y", "opencl"),
    ] {
        for (order, forbidden) in [("release", true), ("relaxed", false)] {
            let bodies = threads(order);
            let both = [
                (parameters, bodies[0].as_str()),
                (parameters, bodies[1].as_str()),
            ];
            let test = test(head, &both, "1:r2=1");
            assert_eq!(racy(&test, model), !forbidden, "{model} {order}");
            assert_eq!(allowed(&test, model), !forbidden, "{model} {order}");
        }
    }
}

#[test]
fn values_out_of_thin_air_are_decided_where_cycles_only_add() {
    let cycle = |value: &str| {
        [
            load("r0", "x", "relaxed") + &store("y", value, "relaxed"),
            load("r0", "y", "relaxed") + &store("x", "r0", "relaxed"),
        ]
    };
    judge(&cycle("r0"), "0:r0=42", &[("c11", true), ("rc11", false)]);
    judge(
        &cycle("r0 + 1"),
        "0:r0=42",
        &[("c11", false), ("rc11", false)],
    );
}

#[test]
fn what_is_imported_means_the_same() {
    let local = "local atomic_int* x, atomic_int* y, global int* z";
    let fence =
        "atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_release, memory_scope_device);";
    let body = "*z = 1; B1: barrier(CLK_GLOBAL_MEM_FENCE);".to_string()
        + fence
        + &store("x", "1", "relaxed");
    let test = test(
        "OPENCL",
        &[
            (local, &body),
            (local, "B1: barrier(CLK_GLOBAL_MEM_FENCE); int r = *z;"),
        ],
        "1:r=0",
    );
    let text = to_toml(&test).expect("can be written");
    let again = read("t.toml", &text)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .remove(0);
    for model in ["opencl", "opencl-3.1", "opencl-total"] {
        assert_eq!(allowed(&test, model), allowed(&again, model), "{model}");
        assert_eq!(racy(&test, model), racy(&again, model), "{model}");
    }
    let ops = |t: &LitmusTest| -> Vec<String> {
        t.program
            .threads
            .iter()
            .flat_map(|t| &t.code)
            .map(|i| format!("{:?}", i.op))
            .collect()
    };
    assert_eq!(ops(&test).len(), ops(&again).len());
}

#[test]
fn messages_for_bad_code() {
    let bad = "OPENCL bad
{ [x] = 0; atomic_int y[2] = {0, 0}; z == 1; }
P0@wg 0, dev 0 (global atomic_int* x, global atomic_imt* y) {
  atomic_store_explicit(x, 1, memory_order_acquire);
  int r0 = atomic_load_explicit(x, memory_order_relaxed, memory_scope_devise);
  atomic_work_item_fence(CLK_GLOBAL_MEM_FENC, memory_order_release, memory_scope_device);
  atomic_thread_fence(memory_order_seq_cst);
  B1: *x = 1;
  C1: barrier(0);
  int r1 = 1 +;
}
P1@wg 0, dev 0 (global atomic_int* x) {
  int r0 = *q;
  *y = 1;
  atomic_store_explicit(x, 1, memory_order_release, memory_scope_device, 1);
}
exists (0:r0 = 1)
";
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!(read("bad.litmus", bad).err().unwrap_or_default());
    });
}

#[test]
fn messages_for_bad_cuda_code() {
    let bad = r#"name = "bad"
dialect = "cuda"
condition = 'true'
[memory]
x = 0
f = 0
c = { init = 0, space = "const" }
[[thread]]
block = 0
code = '''
#include "mine.h"
cuda::atomic_ref<int, cuda::thread_scope_device> a(f);
a.store(1, cuda::memory_order_acquire);
int r0 = a.load(cuda::memory_order_release);
int r1 = a.load(cuda::memory_order_acq_rel, 1);
a.fetch_nand(1);
a.store();
cuda::atomic_ref<int, cuda::thread_scope_gpu> b(f);
cuda::atomic_ref<int, cuda::memory_scope_device> b2(f);
cuda::atomic_ref<float, cuda::thread_scope_device> d(f);
cuda::atomic_ref<int, 3> e(f);
cuda::atomic_ref<long long, cuda::thread_scope_device> e2(f);
std::atomic_ref<int, cuda::thread_scope_device> e3(f);
cuda::atomic_ref<int, cuda::thread_scope_device> x(f);
a.compare_exchange_strong(r0, 1, cuda::memory_order_acquire, cuda::memory_order_release);
cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_grid);
cuda::atomic_thread_fence();
__syncthreads(1);
__syncwarp(0);
atomicAdd(&r0, 1);
atomicAdd(x, 1);
atomicFoo(&f, 1);
atomic_store(&f, 1);
cuda::atomic<int, cuda::thread_scope_device> g;
cuda::barrier<cuda::thread_scope_block> bar;
__shared__ int s[4];
int r9 = *x;
x = x++;
r1 = (r0 = 2) + 1;
f.store(1);
a = 1;
c = 1;
atomicAdd(&c, 1);
goto end;
'''
"#;
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!(read("bad.toml", bad).err().unwrap_or_default());
    });
}

#[test]
fn assembly_means_something_under_models_of_ptx_and_sc_alone() {
    let text = r#"name = "asm"
dialect = "cuda"
condition = "P0:r == 0"
[memory]
x = 0
[[thread]]
block = 0
code = '''
int r = 0;
asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(r) : "l"(&x) : "memory");
'''
"#;
    let tests = read("asm.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let answer = |model: &str| {
        let model = shipped(model);
        Session::new(&tests[0], &model, Engine::Both, Limits::default(), &[])
            .reachability(None, false)
            .verdict
    };
    for model in ["cuda", "cuda-17"] {
        let verdict = format!("{:?}", answer(model));
        assert!(
            verdict.contains("NotInModel") && verdict.contains("line 10"),
            "{verdict}"
        );
    }
    assert_eq!(answer("sc"), Verdict::Allowed);
}
