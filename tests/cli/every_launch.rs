//! Kernels for launches of any size: what `check` says of source files beyond one launch, and of
//! kernels whose threads are too many for the exact engines. Each bug has a twin without it.
#![cfg(feature = "z3")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::suite::{files, sample};

use super::{Said, fencepost};

/// What `check` says of a file.
fn check(name: &str, text: &str, arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), text).expect("writable");
    fencepost(
        folder.path(),
        &[&["check", "--no-cache", name], arguments].concat(),
    )
}

/// The answers about one property as objects.
fn answers(name: &str, text: &str, property: &str) -> Vec<Value> {
    let said = check(
        name,
        text,
        &[
            "--property",
            property,
            "--format",
            "jsonl",
            "--timeout",
            "60s",
        ],
    );
    let lines = said.out.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect()
}

/// The verdict about a property of the only kernel of a file.
fn verdict(name: &str, text: &str, property: &str) -> String {
    let all = answers(name, text, property);
    let [one] = all.as_slice() else {
        panic!("{text}: {all:?}");
    };
    one["verdict"].as_str().expect("a verdict").to_owned()
}

const REDUCTION: &str = "\
// fencepost: sum<<<64, 1024>>>(a[], r[], 60000)
__global__ void sum(int *a, int *r, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? a[i] : 0;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) r[blockIdx.x] = s[0];
}
";

#[test]
fn a_launch_of_any_size_is_decided() {
    let said = check("sum.cu", REDUCTION, &["--property", "race"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let line = "`sum`: race-free for every launch and every input";
    assert!(said.out.contains(line), "{}", said.out);
    let all = answers("sum.cu", REDUCTION, "race");
    assert_eq!(all[0]["engine"], "parametric");
    assert_eq!(all[0]["proved"], "every-launch");
    assert!(all[0]["assumed"].is_array());
    assert_eq!(verdict("sum.cu", REDUCTION, "divergence"), "uniform");
}

#[test]
fn a_race_of_a_large_launch_is_shown_at_its_lines() {
    let wrong = REDUCTION.replacen("  __syncthreads();\n", "", 1);
    let said = check("sum.cu", &wrong, &["--property", "race"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    let head = "error[race]: `sum`: threads race on `s[512]`";
    assert!(said.out.contains(head), "{}", said.out);
    let written = "thread 512 of block 0 writes `s[512]`";
    assert!(said.out.contains(written), "{}", said.out);
    let read = "thread 0 of block 0 reads `s[512]`";
    assert!(said.out.contains(read), "{}", said.out);
    // With it, the kernel is proved.
    let help = "= help: add `__syncthreads();` behind line 6";
    assert!(said.out.contains(help), "{}", said.out);
}

#[test]
fn advice_is_a_barrier_that_is_proved() {
    let advice = |text: &str, arguments: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("sum.cu"), text).expect("writable");
        let command = ["advise", "sum.cu", "--timeout", "60s"];
        fencepost(folder.path(), &[&command, arguments].concat())
    };
    let wrong = REDUCTION.replacen("  __syncthreads();\n", "", 1);
    let said = advice(&wrong, &[]);
    assert!(said.out.contains("+  __syncthreads();\n"), "{}", said.out);
    let proved = "  it is so if `__syncthreads();` comes behind line 6\n  proved for every launch";
    assert!(said.out.contains(proved), "{}", said.out);
    let said = advice(&wrong, &["--format", "jsonl"]);
    let object: Value = serde_json::from_str(&said.out).expect("an object");
    assert_eq!(object["proved"], "every-launch");
    assert_eq!(object["program"], REDUCTION);
    // No barrier of a block orders the threads of two.
    let two =
        "// fencepost: sum<<<64, 1024>>>(r[])\n__global__ void sum(int *r) {\n  r[0] = 1;\n}\n";
    let said = advice(two, &[]);
    assert!(!said.out.contains("__syncthreads"), "{}", said.out);
}

/// What only PTX has words for is asked of its model, and proved like the rest.
#[test]
fn kernels_with_copies_are_proved() {
    let text = "\
// fencepost: copy<<<64, 256>>>(a[], r[])
#include <cuda_pipeline.h>
__global__ void copy(int *a, int *r) {
  __shared__ int s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __pipeline_memcpy_async(&s[threadIdx.x], &a[i], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  r[i] = s[255 - threadIdx.x];
}
";
    let all = answers("copy.cu", text, "race");
    assert_eq!(all[0]["verdict"], "race-free", "{all:?}");
    assert_eq!(all[0]["engine"], "parametric");
    let wrong = text.replace("  __syncthreads();\n", "");
    assert_ne!(verdict("copy.cu", &wrong, "race"), "race-free");
}

#[test]
fn a_barrier_that_threads_miss_is_shown() {
    let wrong = REDUCTION.replacen("__syncthreads", "if (t % 2 == 0) __syncthreads", 1);
    assert_eq!(verdict("sum.cu", &wrong, "divergence"), "divergent");
}

/// Nothing is taken from the arguments that happen to be chosen.
#[test]
fn arguments_that_a_file_leaves_out_are_any() {
    let kernel = |at: &str| {
        format!(
            "//--local_size=64 --num_groups=64\n\
             kernel void f(local int *a, local int *b, int c) {{\n  \
             local int *p;\n  int t = get_local_id(0);\n  \
             if (c) p = b + t; else p = a + {at};\n  *p = t;\n}}\n"
        )
    };
    assert_eq!(verdict("f.cl", &kernel("12"), "race"), "racy");
    assert_eq!(verdict("f.cl", &kernel("2 * t"), "race"), "race-free");
}

#[test]
fn preconditions_are_assumed() {
    let kernel = |first: &str| {
        format!(
            "//--blockDim=64 --gridDim=64\n__global__ void f(int *a, int n) {{\n  {first}\n  \
             a[n * (blockIdx.x * blockDim.x + threadIdx.x)] = 1;\n}}\n"
        )
    };
    for holds in [
        "__requires(n == 3);",
        "__builtin_assume(n == 3);",
        "if (n != 3) return;",
    ] {
        let all = answers("f.cu", &kernel(holds), "race");
        assert_eq!(all[0]["verdict"], "race-free", "{holds}");
    }
    let all = answers("f.cu", &kernel("__requires(n == 3);"), "race");
    let assumed = all[0]["assumed"].to_string();
    assert!(assumed.contains("preconditions hold"), "{assumed}");
    assert_eq!(verdict("f.cu", &kernel(""), "race"), "racy");
    assert_eq!(
        verdict("f.cu", &kernel("__requires(n >= 0);"), "race"),
        "racy"
    );
}

/// One buffer passed twice is one buffer.
#[test]
fn pointers_to_one_buffer_are_seen() {
    let kernel = |arguments: &str| {
        format!(
            "// fencepost: shift<<<64, 1024>>>({arguments})\n\
             __global__ void shift(int *p, int *q) {{\n  \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n  p[i] = q[i + 1];\n}}\n"
        )
    };
    assert_eq!(verdict("s.cu", &kernel("a[], b[]"), "race"), "race-free");
    assert_eq!(verdict("s.cu", &kernel("a[], a"), "race"), "racy");
}

/// None of these is called race-free: a barrier that depends on memory, an index in memory, and an
/// index of a sum that may leave its type, unless that is assumed.
#[test]
fn pointers_in_parameters_lead_to_objects_of_their_own() {
    let apart = "\
//pass
//--blockDim=256 --gridDim=64
struct Pair { int *to; int *from; };
__global__ void k(Pair p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  p.to[i] = p.from[i + 1];
}
";
    let all = answers("k.cu", apart, "race");
    assert_eq!(all[0]["verdict"], "race-free", "{all:?}");
    let assumed = all[0]["assumed"].to_string();
    assert!(
        assumed.contains("pointers in `p` lead to objects of their own"),
        "{assumed}"
    );
    let same = apart.replace("p.from[", "p.to[");
    assert_eq!(verdict("k.cu", &same, "race"), "racy");
}

#[test]
fn what_is_not_modelled_is_never_race_free() {
    let kernel = |body: &str| {
        format!(
            "// fencepost: f<<<64, 1024>>>(a[], b[])\n__global__ void f(int *a, int *b) {{\n  \
             int t = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}\n"
        )
    };
    for body in [
        "b[t] = 1; if (b[t + 1]) __syncthreads(); a[0] = 1;",
        "a[b[t]] = 1;",
        "b[t] = t; a[b[t + 1]] = 1;",
    ] {
        let found = verdict("f.cu", &kernel(body), "race");
        assert_ne!(found, "race-free", "{body}");
    }
    let all = answers("f.cu", &kernel("unsigned u = t; a[u * 4u] = 1;"), "race");
    let assumed = all[0]["assumed"].to_string();
    let is_free = all[0]["verdict"] == "race-free";
    assert!(!is_free || assumed.contains("no overflow"), "{all:?}");
}

/// A small launch keeps its exact answer; the proof says how far it goes.
#[test]
fn a_small_launch_keeps_its_answer() {
    let kernel = "// fencepost: f<<<1, 4>>>(a[])\n\
                  __global__ void f(int *a) { a[threadIdx.x] = 1; }\n";
    let all = answers("f.cu", kernel, "race");
    assert_eq!(all[0]["verdict"], "race-free");
    assert_eq!(all[0]["proved"], "every-launch");
    assert!(
        all[0]["assumed"]
            .to_string()
            .contains("a grid of one block")
    );
    let locked = "// fencepost: f<<<2, 1>>>(l[1] = 0, d[1] = 0)\n\
                  __global__ void f(int *l, int *d) {\n  \
                  while (atomicCAS(l, 0, 1) != 0);\n  __threadfence();\n  d[0] = d[0] + 1;\n  \
                  __threadfence();\n  atomicExch(l, 0);\n}\n";
    let all = answers("f.cu", locked, "race");
    assert_eq!(all[0]["verdict"], "race-free");
    assert_eq!(all[0]["proved"], "launch");
    assert!(all[0]["lines"].is_array(), "{all:?}");
}

#[test]
fn kernels_in_toml_with_too_many_threads_are_decided() {
    let kernel = |index: &str| {
        format!(
            "name = \"big\"\ndialect = \"cuda\"\n[memory]\na = {{ type = \"int\", size = 64 }}\n\
             [kernel]\ngrid = 65536\nblock = 1024\ncode = \"a[{index}] = 1;\"\n"
        )
    };
    let right = kernel("blockIdx.x * blockDim.x + threadIdx.x");
    let arguments = ["--property", "race", "--property", "divergence"];
    let said = check("big.toml", &right, &arguments);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("1 race-free, 1 uniform"), "{}", said.out);
    // Each answer says how far it goes.
    assert_eq!(said.out.matches(", assuming: ").count(), 2, "{}", said.out);
    let said = check("big.toml", &kernel("threadIdx.x"), &["--property", "race"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("shows it"), "{}", said.out);
    // Outcomes are exact, so this stays too large.
    assert_eq!(check("big.toml", &right, &[]).code, Some(2));
}

#[test]
fn launches_of_source_files_can_be_left_open() {
    let arguments = ["--launch", "any", "--property", "race"];
    let said = check("sum.cu", REDUCTION, &arguments);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let said = check(
        "f.cu",
        "__global__ void f(int *a) { a[threadIdx.x] = 1; }\n",
        &arguments,
    );
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
}

/// Standard input is read like a file, with both kinds of requests.
#[test]
fn kernels_of_standard_input_are_decided_for_every_launch() {
    let folder = tempfile::tempdir().expect("a folder");
    let piped = |text: &str, arguments: &[&str]| -> Said {
        let path = folder.path().join("in");
        std::fs::write(&path, text).expect("written");
        let file = std::fs::File::open(&path).expect("there");
        let arguments = [&["check", "-", "--property", "race"], arguments].concat();
        let mut command = super::command(folder.path(), &arguments);
        command.stdin(file).output().expect("it runs").into()
    };
    let said = piped(REDUCTION, &["--language", "cuda", "--launch", "any"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let large = "name = \"big\"\ndialect = \"cuda\"\nmemory = { a = 0 }\n[kernel]\n\
                 grid = 65536\nblock = 1024\ncode = \"a = 1;\"\n";
    let said = piped(large, &[]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    // Beside a small test, the questions stay with the exact engines.
    std::fs::write(
        folder.path().join("small.toml"),
        large.replace("1024", "1").replace("65536", "2"),
    )
    .expect("written");
    let said = piped(large, &["small.toml"]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(
        said.err.contains("threads") && said.out.contains("racy"),
        "{}",
        said.err
    );
}

/// Answers about every launch go the way of all answers: selections, formats, exit codes.
#[test]
fn questions_about_every_launch_are_selected_and_reported_like_others() {
    let arguments = |more: &[&'static str]| [&["--launch", "any"], more].concat();
    let said = check("sum.cu", REDUCTION, &arguments(&["--format", "json"]));
    let report: Value = serde_json::from_str(&said.out).expect("one object");
    let words = |key: &str| -> Vec<&str> {
        let all = report["answers"].as_array().expect("a list").iter();
        all.map(|answer| answer[key].as_str().expect("text"))
            .collect()
    };
    assert_eq!(words("verdict"), ["race-free", "uniform"]);
    assert_eq!(words("proved"), ["every-launch", "every-launch"]);
    assert_eq!(words("model"), ["cuda", "cuda"]);
    let said = check("sum.cu", REDUCTION, &arguments(&["--filter", "none-such"]));
    assert_eq!(said.code, Some(4), "{}", said.err);
    let said = check("sum.cu", REDUCTION, &arguments(&["--list"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out
            .starts_with("sum.cu: sum [cuda]: race, divergence\n")
    );
    // No proof is about outcomes or ends, and none rests on another model.
    let said = check(
        "sum.cu",
        REDUCTION,
        &arguments(&["--property", "undefined"]),
    );
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(
        said.err.contains("decided for one launch only"),
        "{}",
        said.err
    );
    let other = ["--model", "sc", "--property", "race"];
    let said = check("sum.cu", REDUCTION, &arguments(&other));
    assert_eq!(said.code, Some(3), "{}{}", said.out, said.err);
}

/// The table of the book about compiled kernels: no answer contradicts it, and of an answer that
/// the table has, at most time is missing.
#[test]
fn compiled_kernels_are_as_the_book_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let book = fs::read_to_string(root.join("docs/src/every-launch.md")).expect("a page");
    let told = |test: &str| {
        let name = format!("`{test}`");
        let named = |row: &&str| row.starts_with("| ") && row.contains(&name);
        let rows: Vec<&str> = book.lines().filter(named).collect();
        let [row] = rows.as_slice() else {
            panic!("{test} is in {} rows of the table", rows.len());
        };
        let answers = [
            ("| race-free", "race-free"),
            ("| racy", "racy"),
            ("| not proved", "undecided"),
        ];
        let answer = answers.iter().find(|(start, _)| row.starts_with(start));
        answer.unwrap_or_else(|| panic!("{row}")).1
    };
    let (mut equal, mut late) = (0, 0);
    for file in sample(files(&root.join("litmus/compiled"), &["toml"])) {
        let path = file.to_str().expect("a path");
        let asked = [
            "check",
            "--no-cache",
            path,
            "--launch",
            "any",
            "--property",
            "race",
        ];
        let said = fencepost(root, &[&asked[..], &["--format", "jsonl"]].concat());
        // A launch with clusters cannot be left open.
        for line in said.out.lines() {
            let answer: Value = serde_json::from_str(line).expect("an object");
            let test = answer["test"].as_str().expect("a name");
            match answer["verdict"].as_str().expect("a verdict") {
                verdict if verdict == told(test) => equal += 1,
                "undecided" => late += 1,
                verdict => panic!("{test}: {verdict}, and the book says {}", told(test)),
            }
        }
    }
    assert!(equal > late, "{equal} as in the book, {late} undecided");
}

/// Two warps that fill and read a buffer in turn.
const TWO_BARRIERS: &str = "// fencepost: two<<<1, 64>>>(out[32])
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void two(int *out) {
  __shared__ barrier full, empty;
  __shared__ int buffer[32];
  if (threadIdx.x == 0) { init(&full, 64); init(&empty, 64); }
  __syncthreads();
  unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 2; ++i) {
      empty.arrive_and_wait();
      buffer[lane] = i + lane;
      (void)full.arrive();
    }
  } else {
    (void)empty.arrive();
    int s = 0;
    for (int i = 0; i < 2; ++i) {
      full.arrive_and_wait();
      s += buffer[31 - lane];
      if (i == 0) (void)empty.arrive();
    }
    out[lane] = s;
  }
}
";

#[test]
fn warps_with_barriers_have_no_misuse_and_no_hang() {
    let words = |text: &str| {
        let asked = "--property undefined --property liveness:fair --format jsonl --timeout 4s";
        let said = check("two.cu", text, &asked.split(' ').collect::<Vec<_>>());
        let lines = said.out.lines().map(|line| {
            let line: Value = serde_json::from_str(line).expect("an object");
            line["verdict"].as_str().expect("a verdict").to_owned()
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(words(TWO_BARRIERS), ["defined", "terminates"]);
    // The last phase never ends.
    let hangs = TWO_BARRIERS.replace("if (i == 0) (void)empty", "if (i == 1) (void)empty");
    assert_ne!(words(&hangs), ["defined", "terminates"]);
    // The wait may look when the next phase is over, too.
    let late = TWO_BARRIERS.replace(
        "full.arrive_and_wait();",
        "auto t = full.arrive(); (void)full.arrive(); full.wait(cuda::std::move(t));",
    );
    assert_ne!(words(&late)[0], "defined");
}

/// A race that only a smaller launch has is told as one of that launch.
#[test]
fn a_race_of_a_smaller_launch_is_told_as_such() {
    let text = "\
__global__ void k(int *o) {
  int c = __syncthreads_count(1);
  if (c == 64) o[threadIdx.x] = 1;
  else o[0] = 1;
}
// fencepost: k<<<1, THREADS>>>(o[64])
";
    for (threads, told) in [
        ("64", "launch smaller than given: 1 racy"),
        ("4", "launch as in the file: 1 racy"),
    ] {
        let text = text.replace("THREADS", threads);
        let said = check("votes.cu", &text, &["--property", "race"]);
        assert!(
            said.out.contains(told),
            "{threads}: {}{}",
            said.out,
            said.err
        );
    }
}

/// A program of 1,024 threads: the width of its rows decides whether blocks race.
const GRID: &str = "\
__global__ void k(int *o, const int *at, int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  o[y * w + x] = 1;
}
int main() {
  int *p, *q;
  cudaMalloc(&p, 4096 * 4);
  cudaMalloc(&q, 4096 * 4);
  dim3 block(16, 16), grid(2, 2);
  k<<<grid, block>>>(p, q, 32);
  cudaDeviceSynchronize();
}
";

/// The launches of a program that is decided with smaller constants count with the written ones.
#[test]
fn launches_of_a_program_are_asked_about_at_full_size() {
    let proved = "`main` with the written constants: each launch is race-free for itself";
    for (change, verdict, told) in [
        (["", ""], "1 race-free", proved),
        // With blocks of two threads, rows of 31 elements do not meet.
        (
            [", 32)", ", 31)"],
            "1 racy",
            "the race is one of `k<<<dim3(2, 2), dim3(16, 16)>>>",
        ),
        // The program may fill the memory so that no elements meet.
        (
            ["o[y * w", "o[at[y] * w"],
            "1 not decided",
            "is not proved: threads may race at line 4",
        ),
        (["(p, q, ", "(p + 1, q, "], "1 race-free", proved),
        (["(p, q, ", "(p, p + 1, "], "1 race-free", proved),
    ] {
        let said = check("grid.cu", &GRID.replacen(change[0], change[1], 1), &[]);
        let all = format!("{}{}", said.out, said.err);
        assert!(
            all.contains(verdict) && all.contains(told),
            "{change:?}: {all}"
        );
    }
}

/// A program for a million elements: its launch is found behind long loops of the host. What these
/// change is unknown.
#[test]
fn long_loops_of_the_host_are_left_out_at_full_size() {
    let text = "\
__global__ void add(const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i + STEP] = a[i];
}
int main() {
  const int N = 1 << 20;
  int last = 0, blocks = 0;
  float *h = new float[N];
  for (int i = 0; i < N; i++) { h[i] = rand() / (float)RAND_MAX; last = i; }
  for (int n = N; n > 1; n /= 2) blocks += 205;
  float *a, *c;
  cudaMalloc(&a, N * 4 + 400);
  cudaMalloc(&c, N * 4 + 400);
  cudaMemcpy(a, h, N * 4, cudaMemcpyHostToDevice);
  add<<<blocks, 256>>>(a, TO, COUNT);
  cudaMemcpy(h, c, N * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < N; i++) if (h[i] < 0) { printf(\"%d\\n\", i); return 1; }
  return 0;
}
";
    let proved = "`main` with the written constants: each launch is race-free for itself";
    for (to, count, step, told) in [
        ("c", "N", "0", proved),
        ("c", "N", "100", proved),
        (
            "c",
            "N",
            "(i & 64)",
            "the race is one of `add<<<4100, 256>>>",
        ),
        ("a", "N", "1", "1 racy"),
        // The loop decides the number.
        ("c", "last", "0", "not all launches were tried alone"),
    ] {
        let text = text
            .replace("TO", to)
            .replace("COUNT", count)
            .replace("STEP", step);
        let said = check("add.cu", &text, &["--property", "race"]);
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains(told), "{to} {count} {step}: {all}");
    }
}

/// A launch in a graph is not asked about alone, and the answer says so.
#[test]
fn launches_of_graphs_are_left_out_at_full_size() {
    let text = GRID.replace(
        "  k<<<grid, block>>>(p, q, 32);",
        "  cudaStream_t s; cudaStreamCreate(&s);\n  cudaGraph_t g; cudaGraphExec_t e;\n  \
             cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);\n  \
             k<<<grid, block, 0, s>>>(p, q, 31);\n  cudaStreamEndCapture(s, &g);\n  \
             cudaGraphInstantiate(&e, g, 0);\n  cudaGraphLaunch(e, s);",
    );
    let said = check("graph.cu", &text, &[]);
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("not all launches were tried alone"), "{all}");
}
