//! Random kernels with barriers of CUDA C++: right ones with a few lines changed. What one run
//! says of all executions is compared with the exact engines.

use std::fmt::Write as _;

use fencepost::litmus::{self, LitmusTest};
use fencepost::verdict::Verdict;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs, shipped};

use crate::steady::{Comparison, claims};

/// One warp fills a buffer and arrives; the other one waits and reads.
const ONE: &str = "if (t == 0) { init(&a[0], 2 * W); }
__syncthreads();
if (t < W) {
s[t] = 1;
(void)a[0].arrive();
} else {
auto token = a[0].arrive();
r[t] = t;
a[0].wait(cuda::std::move(token));
x = s[t - W];
}";

/// A buffer that is filled twice.
const TWO: &str = "if (t == 0) { init(&a[0], 2 * W); init(&b[0], 2 * W); }
__syncthreads();
if (t < W) {
for (int i = 0; i < 2; ++i) {
b[0].arrive_and_wait();
s[t] = i;
(void)a[0].arrive();
}
} else {
(void)b[0].arrive();
for (int i = 0; i < 2; ++i) {
a[0].arrive_and_wait();
x += s[t - W];
if (i == 0) (void)b[0].arrive();
}
}";

/// A ring of two stages and three items.
const RING: &str = "if (t == 0)
for (int i = 0; i < 2; ++i) { init(&a[i], W); init(&b[i], W); }
__syncthreads();
if (t < W) {
for (int i = 0; i < 3; ++i) {
b[i % 2].wait_parity(1 ^ (i / 2 & 1));
s[i % 2 * W + t] = i;
(void)a[i % 2].arrive();
}
} else {
for (int i = 0; i < 3; ++i) {
a[i % 2].wait_parity(i / 2 & 1);
x += s[i % 2 * W + t - W];
(void)b[i % 2].arrive();
}
}";

/// All threads meet again and again, and some leave.
const MEET: &str = "if (t == 0) { init(&a[0], 2 * W); }
__syncthreads();
for (int i = 0; i < 2; ++i) {
if (t == 0) s[i] = t;
a[0].arrive_and_wait();
x += s[i];
}
__syncthreads();
s[t] = x;
if (t < W)
(void)a[0].arrive();
else {
a[0].arrive_and_wait();
x += s[0];
}";

/// Lines that may come in somewhere.
const LINES: [&str; 14] = [
    "(void)a[0].arrive();",
    "(void)b[0].arrive();",
    "a[0].arrive_and_wait();",
    "b[0].arrive_and_wait();",
    "a[0].wait_parity(0);",
    "b[0].wait_parity(1);",
    "a[0].wait_parity(1);",
    "(void)a[0].arrive(2);",
    "a[0].arrive_and_drop();",
    "__syncthreads();",
    "s[0] = t;",
    "x += s[1];",
    "init(&a[0], 2 * W);",
    "if (t == 0)",
];

/// Parts of lines with a part that may stand in their place.
const PARTS: [[&str; 2]; 12] = [
    ["2 * W", "W"],
    ["2 * W", "2 * W - 1"],
    ["2 * W", "2 * W + 1"],
    ["W)", "W + 1)"],
    ["arrive_and_wait()", "arrive()"],
    ["arrive()", "arrive_and_wait()"],
    ["1 ^ ", ""],
    ["& 1)", "& 0)"],
    ["t < W", "t == 0"],
    ["t == 0", "t < 2"],
    ["i < 2", "i < 3"],
    ["i == 0", "i == 1"],
];

fn any<'a>(random: &mut Pcg64Mcg, lines: &[&'a str]) -> &'a str {
    lines.choose(random).expect("there are some")
}

/// The kernel of a number, as a test file.
fn kernel(seed: u64) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let code = any(&mut random, &[ONE, TWO, RING, MEET]);
    let mut lines: Vec<String> = code.lines().map(str::to_owned).collect();
    for _ in 0..random.random_range(0..3) {
        let at = random.random_range(0..lines.len());
        let is_whole = lines[at].ends_with(';') && !lines[at].starts_with("for");
        match random.random_range(0..6) {
            0 if is_whole => drop(lines.remove(at)),
            1 if is_whole => lines.insert(at, lines[at].clone()),
            2 if is_whole && at + 1 < lines.len() && lines[at + 1].ends_with(';') => {
                lines.swap(at, at + 1);
            }
            3 => lines.insert(at, any(&mut random, &LINES).to_owned()),
            _ => {
                let [from, to] = PARTS.choose(&mut random).expect("there are some");
                lines[at] = lines[at].replacen(from, to, 1);
            }
        }
    }
    let width = 1 + u32::from(random.random_range(0..4) == 0);
    let scope = match random.random_range(0..8) {
        0 => "thread_scope_thread",
        1 => "thread_scope_device",
        _ => "thread_scope_block",
    };
    let mut text = String::from("name = \"k\"\ndialect = \"cuda\"\n[memory]\n");
    let _ = write!(
        text,
        "r = {{ type = \"int\", size = 8 }}\n[kernel]\ngrid = 1\nblock = {}\ncode = '''\n\
         __shared__ cuda::barrier<cuda::{scope}> a[2], b[2];\n__shared__ int s[8];\n\
         int t = threadIdx.x;\nint x = 0;\n{}\nr[t] = x;\n'''\n",
        2 * width,
        lines.join("\n").replace('W', &width.to_string()),
    );
    text
}

fn read(text: &str) -> Option<LitmusTest> {
    litmus::parse("k.toml", text.as_bytes()).ok()?.pop()
}

#[test]
fn one_run_agrees_on_random_barriers() {
    let model = shipped("cuda");
    let mut comparison = Comparison::default();
    let (count, first) = (programs(240), number("FENCEPOST_SEED", 1));
    for seed in first..first + count {
        let text = kernel(seed);
        let Some(test) = read(&text) else { continue };
        let before = comparison.different.len();
        comparison.add(&test, &model);
        if comparison.different.len() > before {
            comparison.different.push(format!("seed {seed}:\n{text}"));
        }
    }
    comparison.check(count as usize / 8);
}

#[test]
fn right_kernels_have_no_fault() {
    let model = shipped("cuda");
    for code in [ONE, TWO, RING, MEET] {
        let test = |code: &str| {
            let text = format!(
                "name = \"k\"\ndialect = \"cuda\"\n[memory]\nr = {{ type = \"int\", size = 64 }}\n\
                 [kernel]\ngrid = 1\nblock = 64\ncode = '''\n\
                 __shared__ cuda::barrier<cuda::thread_scope_block> a[2], b[2];\n\
                 __shared__ int s[64];\nint t = threadIdx.x;\nint x = 0;\n{}\nr[t] = x;\n'''\n",
                code.replace('W', "32"),
            );
            read(&text).expect("a test")
        };
        let all = claims(&test(code), &model);
        assert!(all.contains(&("race", Verdict::RaceFree)), "{code}");
        assert!(all.contains(&("undefined", Verdict::Defined)), "{code}");
        assert!(all.contains(&("liveness", Verdict::Terminates)), "{code}");
        let early = code.replacen("(void)a[", "if (t != 0) (void)a[", 1);
        let all = claims(&test(&early), &model);
        assert!(!all.contains(&("liveness", Verdict::Terminates)), "{early}");
    }
}
