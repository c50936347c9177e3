//! Loops: early exits, nests, halvings, barriers inside of them.
#![cfg(feature = "z3")]

mod common;

use common::{asked, kernel, never, races, without};
use parametric::{KernelProperty, KernelVerdict, Proved};

const MEMORY: &str = "a = { type = \"int\", size = 64 }
r = { type = \"int\", size = 64 }";

fn cuda(code: &str) -> String {
    let head = "__shared__ int s[2048];\nint n;\nint t = threadIdx.x;\n\
                int i = blockIdx.x * blockDim.x + t;\n";
    let launch = "grid = 2\nblock = 4\nregs = { n = 4 }";
    kernel("cuda", MEMORY, launch, &[head, code].concat())
}

/// The kernel is proved for every launch, and without the `nth` of its barriers refuted.
fn both(code: &str, nth: usize) {
    never(&cuda(code), true, Proved::EveryLaunch);
    races(&cuda(&without(code, "__syncthreads();", nth)), true);
}

/// It is not proved that threads of a block stay together.
fn may_part(code: &str) {
    if let KernelVerdict::Never { .. } = asked(&cuda(code), KernelProperty::Divergence, true) {
        panic!("threads part before the barrier of\n{code}");
    }
    if let KernelVerdict::Never { .. } = asked(&cuda(code), KernelProperty::Race, true) {
        panic!("barriers that threads part before order nothing in\n{code}");
    }
}

#[test]
fn early_exit() {
    let code = "for (int k = 0; k < n; k++) {
  s[t] = k;
  __syncthreads();
  if (a[k] == 7) break;
  r[i] = s[(t + 1) % blockDim.x];
  __syncthreads();
}";
    both(code, 0);
    both(code, 1);
    // What decides on the exit is not the same in all threads.
    may_part(&code.replace("a[k] == 7", "a[k] == t"));
}

#[test]
fn while_a_number_halves() {
    let code = "int d = n & 1023;
s[t] = i;
s[t + 1024] = i;
__syncthreads();
while (d > 0) {
  int v = s[t + d];
  __syncthreads();
  s[t] += v;
  __syncthreads();
  d >>= 1;
}";
    never(&cuda(code), true, Proved::EveryLaunch);
    races(&cuda(&without(code, "__syncthreads();", 1)), true);
}

#[test]
fn nests() {
    let code = "for (int j = 0; j < n; j++) {
  for (int k = j; k < n; k++) {
    s[t] = k;
    __syncthreads();
    int v = s[(t + 1) % blockDim.x];
    __syncthreads();
    s[t] = v;
  }
}";
    both(code, 0);
    both(code, 1);
}

#[test]
fn two_buffers() {
    let code = "int b = 0;
for (int k = 0; k < n; k++) {
  s[b * 1024 + t] = k;
  __syncthreads();
  r[i] = s[b * 1024 + (t + 1) % blockDim.x];
  b ^= 1;
}";
    both(code, 0);
    let one = code.replace("b ^= 1;", "b ^= 0;");
    races(&cuda(&one), true);
    let other = code.replace("b ^= 1;", "b = 1 - b;");
    never(&cuda(&other), true, Proved::EveryLaunch);
}

#[test]
fn previous_value() {
    let code = "int last = 1;
for (int k = 0; k < n; k++) {
  s[t * 2 + last % 2] = k;
  last = k;
}";
    never(&cuda(code), true, Proved::EveryLaunch);
    races(&cuda(&code.replace("t * 2 +", "t +")), true);
}

#[test]
fn contradictions_prove_nothing() {
    let text = cuda("a[0] = 1;");
    let text = text.replace("[kernel]", "[kernel]\nassume = \"n < 0 && n > 0\"");
    match asked(&text, KernelProperty::Race, true) {
        KernelVerdict::Undecided { reason, .. } => {
            assert!(reason.contains("no launch"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

/// A loop that goes on until a number has wrapped around does not end before.
#[test]
fn a_number_doubles_until_nothing_is_left() {
    let code = "if (n > 2)
  for (TYPE d = FROM; d != 0; d *= 2) r[AT] = 1;";
    for (ty, from) in [("unsigned", "0x40000000"), ("unsigned char", "64")] {
        let code = code.replace("TYPE", ty).replace("FROM", from);
        let code = |at: &str| cuda(&code.replace("AT", at));
        races(&code("t & 8"), true);
        let free = asked(&code("i"), KernelProperty::Race, false);
        assert!(matches!(free, KernelVerdict::Never { .. }), "{free:?}");
    }
}

/// Nothing is proved of a loop that never ends, if a thread may come to it.
#[test]
fn a_loop_without_an_end_proves_nothing() {
    let code = "if (n > 2)
  for (unsigned d = 0x40000000; d != LAST; d *= 2) r[i] = 1;";
    for (last, ends) in [("3", false), ("0", true)] {
        let text = cuda(&code.replace("LAST", last));
        let is_proved = [true, false].map(|any| {
            let said = asked(&text, KernelProperty::Race, any);
            matches!(said, KernelVerdict::Never { .. })
        });
        assert_eq!(is_proved[1], ends, "{text}");
        assert!(ends || !is_proved[0], "{text}");
    }
}
