//! The engine's table of conflicts, held against the models: for two accesses of two threads, the
//! engine leaves a pair open exactly where the model of the dialect calls the program racy.
//!
//! # Clauses
//! - *Conflict*: two accesses of different threads overlap, and one is a write.
//! - *Excluded* in `models/ptx.cat`: both are strong, of one size, in scopes that hold both.
//! - *Excluded* in `models/cuda.cat`: both are atomic, in thread scopes that hold both.
//! - *Excluded* in `models/opencl.cat`: both are atomic, in equal scopes that hold both.
//! - *Ordered*: by a barrier of the block; in OpenCL, if its flags name the memory.
#![cfg(feature = "z3")]

use std::time::Duration;

use cat::model::load_shipped;
use engine::skeleton::signature::signature;
use engine::{Engine, Limits as ExactLimits};
use parametric::{KernelInput, KernelLimits, KernelProperty, KernelVerdict, decide};
use verdict::Verdict;
use why::Session;

/// A language: where threads stand, its accesses to `x`, and what may come between two.
struct Language {
    dialect: &'static str,
    /// The type of `x`, and the word for shared memory.
    object: &'static str,
    shared: &'static str,
    /// Runs code in one thread alone: `%` is its number, `$` the code.
    thread: &'static str,
    block: &'static str,
    /// `#` is the number of the thread.
    accesses: &'static [&'static str],
    between: &'static [&'static str],
}

const CUDA: Language = Language {
    dialect: "cuda",
    object: "int",
    shared: "shared",
    thread: "if (threadIdx.x == %) { $ }",
    block: "if (blockIdx.x == %) { $ }",
    accesses: &[
        "x[0] = 1;",
        "r[#] = x[0];",
        "atomicAdd(&x[0], 1);",
        "atomicAdd_block(&x[0], 1);",
        "atomicAdd_system(&x[0], 1);",
        "cuda::atomic_ref<int, cuda::thread_scope_block> f(x[0]); \
         f.store(1, cuda::memory_order_relaxed);",
        "cuda::atomic_ref<int, cuda::thread_scope_device> f(x[0]); \
         r[#] = f.load(cuda::memory_order_acquire);",
        "x[1] = 1;",
    ],
    between: &["", "__syncthreads();"],
};

const OPENCL: Language = Language {
    dialect: "opencl",
    object: "atomic_int",
    shared: "local",
    thread: "if (get_local_id(0) == %) { $ }",
    block: "if (get_group_id(0) == %) { $ }",
    accesses: &[
        "atomic_init(&x[0], 1);",
        "atomic_store_explicit(&x[0], 1, memory_order_relaxed, memory_scope_work_group);",
        "atomic_store_explicit(&x[0], 1, memory_order_relaxed, memory_scope_device);",
        "r[#] = atomic_load_explicit(&x[0], memory_order_acquire, memory_scope_work_group);",
        "r[#] = atomic_load_explicit(&x[0], memory_order_relaxed, memory_scope_device);",
        "atomic_fetch_add_explicit(&x[0], 1, memory_order_relaxed, memory_scope_all_svm_devices);",
    ],
    between: &[
        "",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        "barrier(CLK_GLOBAL_MEM_FENCE);",
        "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    ],
};

const PTX: Language = Language {
    dialect: "ptx",
    object: "u32",
    shared: "shared",
    thread: "setp.ne.u32 %p#, %tid.x, %;\n@%p# bra L#;\n$\nL#:",
    block: "setp.ne.u32 %p#, %ctaid.x, %;\n@%p# bra L#;\n$\nL#:",
    accesses: &[
        "st.weak.SPACE.u32 [x], 1;",
        "ld.weak.SPACE.u32 %r#, [x];",
        "st.relaxed.cta.SPACE.u32 [x], 1;",
        "st.relaxed.gpu.SPACE.u32 [x], 1;",
        "ld.acquire.cta.SPACE.u32 %r#, [x];",
        "ld.relaxed.sys.SPACE.u32 %r#, [x];",
        "atom.relaxed.gpu.SPACE.add.u32 %r#, [x], 1;",
        "st.volatile.SPACE.u32 [x], 1;",
        "st.weak.SPACE.u32 [x+4], 1;",
    ],
    between: &["", "bar.sync 0;", "barrier.sync 0;"],
};

/// A program of two threads, each with one access, of one block or of two.
fn program(l: &Language, pair: [&str; 2], between: &str, apart: bool, space: &str) -> String {
    let guard = if apart { l.block } else { l.thread };
    let one = |n: usize| {
        let number = n.to_string();
        let code = guard.replace("%;", &format!("{number};"));
        let code = code.replace("== %)", &format!("== {number})"));
        let code = code.replace('$', pair[n]).replace('#', &number);
        code.replace("SPACE", space)
    };
    let (grid, block) = if apart { (2, 1) } else { (1, 2) };
    let object = l.object;
    let result = if l.dialect == "ptx" {
        ""
    } else {
        "r = { type = \"int\", size = 2 }\n"
    };
    format!(
        "name = \"k\"\ndialect = \"{}\"\n[memory]\nx = {{ type = \"{object}\", size = 2, \
         space = \"{space}\" }}\n{result}[kernel]\ngrid = {grid}\nblock = {block}\n\
         code = '''\n{}\n{between}\n{}\n'''\n",
        l.dialect,
        one(0),
        one(1)
    )
}

/// Whether the model calls it racy.
fn exact(l: &Language, text: &str) -> bool {
    let tests = front::litmus::parse("k.toml", text.as_bytes());
    let tests = tests.unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    let model = load_shipped(l.dialect, &signature()).expect("shipped");
    let model = model.expect("a model");
    let limits = ExactLimits {
        bound: None,
        timeout: Some(Duration::from_secs(60)),
    };
    let mut session = Session::new(&tests[0], &model, Engine::Auto, limits, &[]);
    match session.race().expect("a race flag").verdict {
        Verdict::Racy => true,
        Verdict::RaceFree => false,
        other => panic!("{text}\n{other:?}"),
    }
}

/// Whether the engine leaves a pair open.
fn suspected(text: &str) -> bool {
    let forms = front::litmus::form::forms("k.toml", text.as_bytes());
    let forms = forms.unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    let kernel = KernelInput {
        form: &forms[0],
        name: "k.toml",
        bytes: text.as_bytes(),
        source: None,
    };
    let limits = KernelLimits {
        question: Duration::from_secs(20),
        answer: Duration::from_secs(60),
        tries: false,
        ..KernelLimits::default()
    };
    match decide(kernel, KernelProperty::Race, false, &limits) {
        KernelVerdict::Never { .. } => false,
        KernelVerdict::Undecided { apart: Some(_), .. } => true,
        other => panic!("{text}\n{other:?}"),
    }
}

/// Tries each pair of accesses, in global memory and in shared, in one block and in two.
fn agrees(l: &Language) {
    let mut racy = [0, 0];
    for (i, a) in l.accesses.iter().enumerate() {
        for b in &l.accesses[i..] {
            let cases = [(false, "global"), (false, l.shared), (true, "global")];
            for (apart, space) in cases {
                // Threads of two blocks meet at no barrier.
                let count = if apart { 1 } else { l.between.len() };
                for between in &l.between[..count] {
                    let text = program(l, [a, b], between, apart, space);
                    let is_racy = exact(l, &text);
                    racy[usize::from(is_racy)] += 1;
                    assert_eq!(suspected(&text), is_racy, "{text}");
                }
            }
        }
    }
    assert!(racy[0] > 10 && racy[1] > 10, "{racy:?}");
}

#[test]
fn of_cuda() {
    agrees(&CUDA);
}

#[test]
fn of_opencl() {
    agrees(&OPENCL);
}

#[test]
fn of_ptx() {
    agrees(&PTX);
}
