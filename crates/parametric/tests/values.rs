//! Values of reads: tickets of atomic additions, memory of one thread, and what threads of a block
//! read alike in one barrier interval. And results of functions without a body, which are any value.
#![cfg(feature = "z3")]

mod common;

use common::{asked, kernel, never, races, without};
use parametric::{KernelProperty, KernelVerdict, Proved};

const MEMORY: &str = "a = { type = \"int\", size = 4096 }
r = { type = \"int\", size = 4096 }
c = { type = \"int\" }";

fn cuda(launch: &str, code: &str) -> String {
    kernel("cuda", MEMORY, launch, code)
}

const TWO: &str = "grid = 2\nblock = 2\nregs = { n = 4 }";
const BLOCK: &str = "grid = 1\nblock = 4\nregs = { n = 4 }";

#[test]
fn tickets_are_places_of_their_own() {
    let own = "int n;\nint at = atomicAdd(&c, 1);\nr[at] = threadIdx.x;";
    never(&cuda(TWO, own), true, Proved::EveryLaunch);
    // A ticket of a block is not one of the grid, and a sum of nothing is no ticket.
    races(
        &cuda(TWO, &own.replace("atomicAdd", "atomicAdd_block")),
        true,
    );
    races(&cuda(TWO, &own.replace("1)", "0)")), true);
    races(&cuda(TWO, &own.replace("r[at]", "r[at / 2]")), true);
}

/// A large summand makes the counter wrap around: it counts down, or gives a number twice.
#[test]
fn tickets_that_count_down() {
    let own = "int n;
unsigned at = atomicAdd((unsigned *)&c, BY);
if (at >= FROM) a[0] = at;";
    let said = |by: &str, from: &str| {
        let code = own.replace("BY", by).replace("FROM", from);
        asked(&cuda(BLOCK, &code), KernelProperty::Race, false)
    };
    let cases = [
        ("0xffffffffu", "0xfffffffeu"),
        ("0u - (threadIdx.x + 1u)", "0xfffffff0u"),
        ("0x80000000u", "0u"),
        ("(threadIdx.x + 1u) * 0x40000000u", "1u"),
    ];
    for (by, from) in cases {
        let said = said(by, from);
        assert!(
            !matches!(said, KernelVerdict::Never { .. }),
            "{by}: {said:?}"
        );
    }
    let one = said("1u", "0xffffffffu");
    assert!(matches!(one, KernelVerdict::Never { .. }), "{one:?}");
}

#[test]
fn tickets_of_several_places() {
    let own = "int n;\nint at = atomicAdd(&c, 4);\nfor (int i = 0; i < 4; i++) r[at + i] = i;";
    never(&cuda(TWO, own), true, Proved::EveryLaunch);
    races(&cuda(TWO, &own.replace("i < 4", "i < 5")), true);
}

#[test]
fn a_counter_that_is_set_back() {
    let own = "__shared__ int count, out[64];
int n;
for (int i = 0; i < n; i++) {
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int at = atomicAdd(&count, 1);
  out[at] = i;
  __syncthreads();
}";
    never(&cuda(BLOCK, own), true, Proved::EveryLaunch);
    races(&cuda(BLOCK, &without(own, "__syncthreads();", 1)), false);
    // Set back in between, it gives a number twice.
    let twice = "__shared__ int count;
int n;
if (threadIdx.x == 0) count = 0;
__syncthreads();
int at = atomicAdd(&count, 1);
__syncthreads();
if (threadIdx.x == 0) count = 0;
__syncthreads();
int other = atomicAdd(&count, 1);
if (threadIdx.x == 0) r[at] = 1;
if (threadIdx.x == 1) r[other] = 1;";
    races(&cuda(BLOCK, twice), false);
}

#[test]
fn memory_of_one_thread() {
    let own = "int n;
int at[2];
at[0] = threadIdx.x;
at[1] = 7;
int *p = &at[0];
a[*p] = 1;";
    never(&cuda(BLOCK, own), false, Proved::EveryContent);
    races(&cuda(BLOCK, &own.replace("&at[0]", "&at[1]")), false);
    let looped = "int n;
int at[2];
at[0] = threadIdx.x;
for (int i = 0; i < 3; i++) { int *p = &at[0]; *p = *p / 2; }
a[at[0]] = 1;";
    races(&cuda(BLOCK, looped), false);
}

#[test]
fn a_block_reads_one_value() {
    let uniform = "__shared__ int flag;
int n;
if (threadIdx.x == 0) flag = a[blockIdx.x];
__syncthreads();
if (flag == 3) __syncthreads();
r[blockIdx.x * blockDim.x + threadIdx.x] = flag;";
    never(&cuda(BLOCK, uniform), true, Proved::EveryLaunch);
    // Each thread reads a flag of its own.
    let own = "__shared__ int flag[4];
int n;
flag[threadIdx.x] = threadIdx.x;
__syncthreads();
if (flag[threadIdx.x] == 3) __syncthreads();
r[threadIdx.x] = 1;";
    assert!(parts(&cuda(BLOCK, own)));
    // A thread writes while another one reads.
    let racy = "__shared__ int flag;
int n;
if (threadIdx.x == 0) flag = 0;
__syncthreads();
if (threadIdx.x == 1) flag = 3;
if (flag == 3) __syncthreads();
r[threadIdx.x] = 1;";
    assert!(!is_uniform(&cuda(BLOCK, racy)));
}

#[test]
fn other_synchronization_changes_values() {
    // An exchange hands the flag from thread to thread in one interval.
    let handed = "__shared__ int flag;
int n;
if (threadIdx.x == 0) flag = 0;
__syncthreads();
if (threadIdx.x == 1) { flag = 3; __threadfence_block(); atomicExch(&c, 1); }
if (threadIdx.x == 0 || atomicAdd(&c, 0) == 1) {
  __threadfence_block();
  if (flag == 3) __syncthreads();
}
r[threadIdx.x] = 1;";
    assert!(!is_uniform(&cuda(BLOCK, handed)));
}

fn parts(text: &str) -> bool {
    matches!(
        asked(text, KernelProperty::Divergence, false),
        KernelVerdict::Happens { .. }
    )
}

fn is_uniform(text: &str) -> bool {
    matches!(
        asked(text, KernelProperty::Divergence, false),
        KernelVerdict::Never { .. }
    )
}

const PAIRS: &str = "grid = 2\nblock = 2";

#[test]
fn a_result_is_any_value() {
    let code = "__device__ int some(int n);
int i = blockIdx.x * blockDim.x + threadIdx.x;
if (some(i)) a[i] = some(1);";
    never(&cuda(PAIRS, code), true, Proved::EveryLaunch);
    match asked(&cuda(PAIRS, code), KernelProperty::Race, true) {
        KernelVerdict::Never { assumed, .. } => {
            let names = |text: &String| text.contains("`some`, which has no body");
            assert!(assumed.iter().any(names), "{assumed:?}");
        }
        other => panic!("{other:?}"),
    }
    // Nothing tells the two results of one call with equal arguments apart, or alike.
    let place = code.replace("a[i]", "a[some(i)]");
    match asked(&cuda(PAIRS, &place), KernelProperty::Race, true) {
        KernelVerdict::Undecided { .. } | KernelVerdict::Tried { .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_loop_ends_at_any_time() {
    let code = "__device__ bool more();
int i = threadIdx.x + blockIdx.x * blockDim.x;
while (more()) a[i] += 1;";
    never(&cuda(PAIRS, code), true, Proved::EveryLaunch);
    let barrier = code.replace("a[i] += 1;", "{ a[i] += 1; __syncthreads(); }");
    let parts = asked(&cuda(PAIRS, &barrier), KernelProperty::Divergence, true);
    let is_proved = matches!(parts, KernelVerdict::Never { .. });
    assert!(!is_proved, "threads may leave the loop at different times");
}

#[test]
fn a_null_pointer_leads_nowhere() {
    let code = "int *p = blockIdx.x == 0 ? &a[0] : nullptr;
p[threadIdx.x] = 1;";
    match asked(&cuda(PAIRS, code), KernelProperty::Race, true) {
        KernelVerdict::Never { assumed, .. } => {
            let text = "no access through a null pointer (line 12)";
            assert!(assumed.iter().any(|a| a == text), "{assumed:?}");
        }
        other => panic!("{other:?}"),
    }
    let one = code.replace("[threadIdx.x]", "[0]");
    let race = asked(&cuda(PAIRS, &one), KernelProperty::Race, true);
    let is_proved = matches!(race, KernelVerdict::Never { .. });
    assert!(!is_proved, "both threads of a block write there");
}

#[test]
fn accesses_race_in_front_of_assertions() {
    let code = "a[0] = threadIdx.x;
assert(threadIdx.x > 7);";
    races(&cuda(PAIRS, code), true);
    // There is no execution in which an assumption fails.
    let assumed = code.replace("assert(", "__assume(");
    let race = asked(&cuda(PAIRS, &assumed), KernelProperty::Race, false);
    let happens = matches!(race, KernelVerdict::Happens { .. });
    assert!(!happens, "no thread of this launch meets the assumption");
}

/// A thread reads back what it wrote, as long as it does not synchronize with others.
#[test]
fn memory_that_a_thread_wrote_before() {
    let own = "__shared__ int s[64];
int n;
s[threadIdx.x] = atomicAdd(&c, 1);
int x = a[s[threadIdx.x]];
r[s[threadIdx.x]] = 1;";
    never(&cuda(TWO, own), true, Proved::EveryLaunch);
    // The place is another one, or the thread writes it again.
    races(
        &cuda(
            TWO,
            &own.replace("r[s[threadIdx.x]]", "r[s[threadIdx.x + 1]]"),
        ),
        false,
    );
    let again = own.replace("int x =", "s[2 * threadIdx.x] = 0;\nint x =");
    races(&cuda(TWO, &again), false);
    let looped = own.replace(
        "int x =",
        "for (int i = 0; i < n; i++) s[threadIdx.x] = i;\nint x =",
    );
    races(&cuda(TWO, &looped), false);
}

/// A fence and a lock order writes of others in between.
#[test]
fn a_lock_forgets_what_a_thread_wrote() {
    let held = "int n;
while (atomicCAS(&c, 0, 1) != 0) {}
__threadfence();
a[0] = threadIdx.x;
__threadfence();
atomicExch(&c, 0);
if (blockIdx.x == 0) r[a[0]] = 1;";
    let text = cuda(TWO, held);
    let given = asked(&text, KernelProperty::Race, false);
    assert!(!matches!(given, KernelVerdict::Never { .. }), "{given:?}");
}

const LARGE: &str = "grid = 65536\nblock = 1024\nregs = { n = 4 }";

/// Numbers that leave their types in the launch: unsigned ones wrap around, signed ones must not.
#[test]
fn numbers_that_leave_their_types() {
    let code = "int n;
int b = blockIdx.x;
TYPE i = (b * 1024 + threadIdx.x) * (TYPE)BY;
a[i] = 1;";
    let code = |ty: &str, by: u32| code.replace("TYPE", ty).replace("BY", &by.to_string());
    let memory =
        "a = { type = \"int\", size = 4096 }\nr = { type = \"int\" }\nc = { type = \"int\" }";
    let cuda = |code: &str| kernel("cuda", memory, LARGE, code);
    never(&cuda(&code("unsigned", 64)), false, Proved::EveryContent);
    races(&cuda(&code("unsigned", 128)), false);
    let signed = |by: u32| {
        let code = code("int", by).replace("threadIdx.x", "(int)threadIdx.x");
        asked(&cuda(&code), KernelProperty::Race, false)
    };
    match signed(16) {
        KernelVerdict::Never { assumed, .. } => {
            assert!(
                !assumed.iter().any(|a| a.contains("overflow")),
                "{assumed:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    match signed(64) {
        KernelVerdict::Undecided { reason, .. } => {
            assert!(
                reason.ends_with("a signed number overflows, which is undefined"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// What the engine says of a race in a block of four threads, and in every launch.
fn is_free(code: &str) -> [bool; 2] {
    [false, true].map(|any| {
        let said = asked(&cuda(BLOCK, code), KernelProperty::Race, any);
        matches!(said, KernelVerdict::Never { .. })
    })
}

/// An unsigned number that wraps around in small launches, or with small arguments, is no
/// assumption. In a block of four threads, the numbers here are apart all the same.
#[test]
fn numbers_that_wrap_around_in_small_launches() {
    let of_place = "int n;
int i = blockIdx.x * blockDim.x + threadIdx.x;
r[(unsigned)(i + 1) * BYu >> 29] = 1;";
    assert_eq!(
        is_free(&of_place.replace("BY", "0x60000000")),
        [true, false]
    );
    assert_eq!(
        is_free(&of_place.replace("BYu >> 29", "8u >> 3")),
        [true; 2]
    );
    let of_input = "int n;
int t = threadIdx.x;
if (blockIdx.x == 0) r[(unsigned)(t + n) << BY >> BY] = 1;";
    assert_eq!(is_free(&of_input.replace("BY", "30")), [true, false]);
    assert_eq!(is_free(&of_input.replace("BY", "2")), [true; 2]);
    let of_loop = "int n;
int t = threadIdx.x;
if (blockIdx.x == 0)
  for (int k = 0; k < n; k++) r[(unsigned)(t + 4 * k) * BYu >> 28] = t;";
    assert_eq!(is_free(&of_loop.replace("BY", "0x40000000")), [true, false]);
}

/// The numbers on which barriers and ends of threads depend count, too.
#[test]
fn numbers_that_wrap_around_before_barriers() {
    let barrier = "int n;
if ((unsigned)(threadIdx.x + 1) * BYu != 0u) __syncthreads();
__syncthreads();";
    assert!(!is_uniform(&cuda(
        BLOCK,
        &barrier.replace("BY", "0x40000000")
    )));
    assert!(is_uniform(&cuda(BLOCK, &barrier.replace("BY", "4"))));
    let end = "__shared__ int s[1024];
int n;
int t = threadIdx.x;
s[t] = 7;
if ((unsigned)(t + 1) * BYu == 0u) return;
__syncthreads();
if (t == 0) r[blockIdx.x] = s[3];";
    assert_eq!(is_free(&end.replace("BY", "0x40000000")), [false; 2]);
    assert_eq!(is_free(&end.replace("BY", "4")), [true; 2]);
}
