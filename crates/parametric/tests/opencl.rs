//! Kernels in OpenCL C at 65,536 work-groups of 1,024 work-items.
#![cfg(feature = "z3")]

mod common;

use common::{asked, kernel, never, races, without};
use parametric::{KernelProperty, KernelVerdict, Proved};

const LAUNCH: &str = "global = 67108864\nlocal = 1024";

fn opencl(memory: &str, code: &str) -> String {
    kernel("opencl", memory, LAUNCH, code)
}

/// The kernel is proved, and without the `nth` of its barriers refuted.
fn both(memory: &str, code: &str, nth: usize) {
    never(&opencl(memory, code), false, Proved::EveryContent);
    let dropped = without(code, "barrier(CLK_LOCAL_MEM_FENCE);", nth);
    races(&opencl(memory, &dropped), false);
}

const ARRAYS: &str = "a = { type = \"int\", size = 67108864 }
b = { type = \"int\", size = 67108864 }
s = { type = \"int\", size = 1026, space = \"local\" }";

const REDUCTION: &str = "int t = get_local_id(0);
s[t] = a[get_global_id(0)];
barrier(CLK_LOCAL_MEM_FENCE);
for (int d = get_local_size(0) / 2; d > 0; d >>= 1) {
  if (t < d) s[t] += s[t + d];
  barrier(CLK_LOCAL_MEM_FENCE);
}
if (t == 0) b[get_group_id(0)] = s[0];";

#[test]
fn reduction() {
    both(ARRAYS, REDUCTION, 0);
    both(ARRAYS, REDUCTION, 1);
}

#[test]
fn a_fence_of_other_memory_orders_nothing() {
    let other = REDUCTION.replace("CLK_LOCAL_MEM_FENCE", "CLK_GLOBAL_MEM_FENCE");
    races(&opencl(ARRAYS, &other), false);
    let both = REDUCTION.replace(
        "CLK_LOCAL_MEM_FENCE",
        "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE",
    );
    never(&opencl(ARRAYS, &both), false, Proved::EveryContent);
}

#[test]
fn stencil() {
    let code = "int t = get_local_id(0);
int i = get_global_id(0);
s[t + 1] = a[i];
if (t == 0) s[0] = a[max(i - 1, 0)];
if (t == get_local_size(0) - 1) s[t + 2] = a[min(i + 1, 67108863)];
barrier(CLK_LOCAL_MEM_FENCE);
b[i] = s[t] + s[t + 1] + s[t + 2];";
    both(ARRAYS, code, 0);
}

#[test]
fn a_value_of_the_group() {
    // All work-items read one value, so they come to the second barrier together.
    let code = "int t = get_local_id(0);
if (t == 0) s[0] = a[get_group_id(0)];
barrier(CLK_LOCAL_MEM_FENCE);
if (s[0] == 3) {
  s[t + 1] = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  b[get_global_id(0)] = s[1024 - t];
}";
    both(ARRAYS, code, 0);
}

/// A branch in which all work-items write one place, on a test of the number of an address.
fn on_the_address(test: &str) -> String {
    let code = format!("if ({test}) a[get_global_id(0)] = 1; else a[0] = get_global_id(0);");
    opencl(ARRAYS, &code)
}

#[test]
fn no_proof_rests_on_the_number_of_an_address() {
    let tests = [
        "(uint)(ulong)a == 0",
        "((ulong)a & 0xffff0) == 0",
        "((ulong)a >> 20) != 0",
        "(ulong)a % 7 == 3",
    ];
    for test in tests {
        let text = on_the_address(test);
        let found = asked(&text, KernelProperty::Race, false);
        assert!(
            !matches!(found, KernelVerdict::Never { .. }),
            "{text}\n{found:?}"
        );
    }
    // No object is at null.
    let text = on_the_address("(ulong)a != 0");
    let found = asked(&text, KernelProperty::Race, false);
    assert!(
        matches!(found, KernelVerdict::Never { .. }),
        "{text}\n{found:?}"
    );
}
