//! Barriers of CUDA C++: warps that fill and read a buffer in turn, for blocks of any width.
#![cfg(feature = "z3")]

mod common;

use std::time::Duration;

use common::{asked_within, kernel, never, races, without};
use parametric::{KernelLimits, KernelProperty, KernelVerdict, Proved};

/// The kernel with so many threads in a warp, and two warps in a block.
fn of_width(width: u32, code: &str) -> String {
    let memory = "r = { type = \"int\", size = 1024 }";
    let code = code.replace("WIDTH", &width.to_string());
    let launch = format!("grid = 1\nblock = {}", 2 * width);
    kernel("cuda", memory, &launch, &code)
}

/// Whether the kernel is proved race-free; no launch is tried.
fn is_proved(text: &str) -> bool {
    let limits = KernelLimits {
        question: Duration::from_secs(20),
        answer: Duration::from_secs(200),
        tries: false,
        ..KernelLimits::default()
    };
    let answer = asked_within(text, KernelProperty::Race, false, &limits);
    matches!(answer, KernelVerdict::Never { .. })
}

/// No proof for wide warps, and an execution with a race for warps of one thread.
fn races_in_small(code: &str) {
    races(&of_width(1, code), false);
    assert!(!is_proved(&of_width(32, code)), "{code}");
}

fn never_in_wide(code: &str) {
    never(&of_width(32, code), false, Proved::EveryContent);
    for width in [2, 200] {
        assert!(is_proved(&of_width(width, code)), "{width}: {code}");
    }
}

/// One warp fills a buffer and arrives; the other one waits and reads.
const ONE: &str = "__shared__ cuda::barrier<cuda::thread_scope_block> full;
__shared__ int s[256];
if (threadIdx.x == 0) { init(&full, 2 * WIDTH); }
__syncthreads();
int lane = threadIdx.x % WIDTH;
if (threadIdx.x < WIDTH) {
  s[lane] = 1;
  (void)full.arrive();
} else {
  full.arrive_and_wait();
  r[lane] = s[WIDTH - 1 - lane];
}";

#[test]
fn one_phase() {
    never_in_wide(ONE);
    // A token that is kept, and the two statements apart.
    let kept = ONE.replace(
        "full.arrive_and_wait();",
        "auto token = full.arrive();\nr[512 + lane] = 1;\nfull.wait(cuda::std::move(token));",
    );
    never_in_wide(&kept);
    let parity = ONE.replace(
        "full.arrive_and_wait();",
        "(void)full.arrive();\nfull.wait_parity(0);",
    );
    never_in_wide(&parity);
    let other = parity.replace("wait_parity(0)", "wait_parity(1)");
    races_in_small(&other);
    races_in_small(&ONE.replace("full, 2 * WIDTH", "full, 2 * WIDTH - 1"));
    races_in_small(&ONE.replace("full.arrive_and_wait()", "(void)full.arrive()"));
    let early = ONE.replace(
        "s[lane] = 1;\n  (void)full.arrive();",
        "(void)full.arrive();\n  s[lane] = 1;",
    );
    races_in_small(&early);
    races_in_small(&without(ONE, "__syncthreads();\n", 0));
}

#[test]
fn operations_that_count_otherwise() {
    // A thread that arrives twice stands for another one.
    let twice = ONE.replace(
        "full.arrive_and_wait();",
        "(void)full.arrive();\n  full.arrive_and_wait();",
    );
    races_in_small(&twice);
    let of_two = ONE.replace(
        "full.arrive_and_wait();",
        "auto token = full.arrive(2);\nfull.wait(cuda::std::move(token));",
    );
    races_in_small(&of_two);
    let again = ONE.replace(
        "full.arrive_and_wait();",
        "if (threadIdx.x == WIDTH) { init(&full, 1); }\n  full.arrive_and_wait();",
    );
    races_in_small(&again);
    // The word counts for threads of one scope only.
    let narrow = ONE.replace("thread_scope_block", "thread_scope_thread");
    races_in_small(&narrow);
}

/// Two barriers: one warp may fill, the other one may read.
const TWO: &str = "__shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
__shared__ int s[256];
if (threadIdx.x == 0) { init(&full, 2 * WIDTH); init(&empty, 2 * WIDTH); }
__syncthreads();
int lane = threadIdx.x % WIDTH;
if (threadIdx.x < WIDTH) {
  for (int i = 0; i < 2; ++i) {
    empty.arrive_and_wait();
    s[lane] = i + lane;
    (void)full.arrive();
  }
} else {
  (void)empty.arrive();
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    full.arrive_and_wait();
    sum += s[WIDTH - 1 - lane];
    if (i == 0) (void)empty.arrive();
  }
  r[lane] = sum;
}";

#[test]
fn two_barriers_in_turn() {
    never_in_wide(TWO);
    races_in_small(&TWO.replace("empty.arrive_and_wait()", "(void)empty.arrive()"));
    races_in_small(&TWO.replace("full.arrive_and_wait()", "(void)full.arrive()"));
    races_in_small(&TWO.replace("empty, 2 * WIDTH", "empty, WIDTH"));
    let early = TWO.replace(
        "sum += s[WIDTH - 1 - lane];\n    if (i == 0) (void)empty.arrive();",
        "if (i == 0) (void)empty.arrive();\n    sum += s[WIDTH - 1 - lane];",
    );
    races_in_small(&early);
    let late = TWO.replace(
        "s[lane] = i + lane;\n    (void)full.arrive();",
        "(void)full.arrive();\n    s[lane] = i + lane;",
    );
    races_in_small(&late);
}

/// A ring of three stages and six items.
const RING: &str = "__shared__ cuda::barrier<cuda::thread_scope_block> full[3], empty[3];
__shared__ int s[3][256];
if (threadIdx.x == 0)
  for (int i = 0; i < 3; ++i) { init(&full[i], blockDim.x); init(&empty[i], blockDim.x); }
__syncthreads();
int lane = threadIdx.x % WIDTH;
if (threadIdx.x < WIDTH) {
  for (int i = 0; i < 6; ++i) {
    int stage = i % 3;
    empty[stage].arrive_and_wait();
    s[stage][lane] = i;
    (void)full[stage].arrive();
  }
} else {
  for (int i = 0; i < 3; ++i) (void)empty[i].arrive();
  int sum = 0;
  for (int i = 0; i < 6; ++i) {
    int stage = i % 3;
    full[stage].arrive_and_wait();
    sum += s[stage][WIDTH - 1 - lane];
    (void)empty[stage].arrive();
  }
  r[lane] = sum;
}";

#[test]
fn a_ring_of_three_stages() {
    never_in_wide(RING);
    races_in_small(&RING.replace(
        "empty[stage].arrive_and_wait()",
        "(void)empty[stage].arrive()",
    ));
    races_in_small(&RING.replace(
        "full[stage].arrive_and_wait()",
        "(void)full[stage].arrive()",
    ));
    let early = RING.replace(
        "s[stage][lane] = i;\n    (void)full[stage].arrive();",
        "(void)full[stage].arrive();\n    s[stage][lane] = i;",
    );
    races_in_small(&early);
    // The consumers fill the first round of each stage twice.
    races_in_small(&RING.replace(
        "(void)empty[i].arrive();",
        "{ (void)empty[i].arrive(); (void)empty[i].arrive(); }",
    ));
}
