//! Barriers of a warp, by their masks, and exchanges of values between lanes.
#![cfg(feature = "z3")]

mod common;

use common::{asked, kernel, never, races, without};
use parametric::{KernelProperty, KernelVerdict, Proved};

const MEMORY: &str = "a = { type = \"int\", size = 67108864 }
r = { type = \"int\", size = 67108864 }";

const LAUNCH: &str = "grid = 65536\nblock = 1024";

fn cuda(code: &str) -> String {
    let head = "__shared__ int s[2048];\nint t = threadIdx.x;\nint lane = t % 32;\n\
                int i = blockIdx.x * blockDim.x + t;\n";
    kernel("cuda", MEMORY, LAUNCH, &[head, code].concat())
}

/// It is not proved that threads of a warp stay together.
fn may_part(text: &str) {
    if let KernelVerdict::Never { .. } = asked(text, KernelProperty::Divergence, false) {
        panic!("lanes do not come to the barrier of\n{text}");
    }
}

#[test]
fn a_warp() {
    let code = "s[t] = a[i];\n__syncwarp();\nr[i] = s[t ^ 1];";
    never(&cuda(code), false, Proved::EveryContent);
    races(&cuda(&without(code, "__syncwarp();", 0)), false);
    // The other thread is of another warp.
    races(&cuda(&code.replace("t ^ 1", "t ^ 32")), false);
}

#[test]
fn a_mask() {
    let code = "if (lane < 16) {\ns[t] = a[i];\n__syncwarp(0xffff);\nr[i] = s[t ^ 8];\n}";
    never(&cuda(code), false, Proved::EveryContent);
    races(&cuda(&without(code, "__syncwarp(0xffff);", 0)), false);
    // Lanes 16 to 31 wait for each other, and so do lanes 0 to 15.
    let both = "s[t] = a[i];
if (lane < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
r[i] = s[t ^ 8];";
    never(&cuda(both), false, Proved::EveryContent);
    races(&cuda(&both.replace("t ^ 8", "t ^ 16")), false);
}

#[test]
fn lanes_part() {
    let code = "if (lane < 16) __syncwarp(0xffff);";
    never(&cuda(code), false, Proved::EveryContent);
    may_part(&cuda(&code.replace("0xffff", "")));
    let code = "if (t < 512) r[i] = __shfl_xor_sync(0xffffffff, a[i], 1);\n__syncthreads();";
    never(&cuda(code), false, Proved::EveryContent);
    may_part(&cuda(&code.replace("t < 512", "t % 2 == 0")));
}

#[test]
fn reduction_by_shuffles() {
    let code = "int v = a[i];
for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
if (lane == 0) s[t / 32] = v;
__syncthreads();
if (t < 32) {
  v = s[t];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  if (t == 0) r[blockIdx.x] = v;
}";
    never(&cuda(code), false, Proved::EveryContent);
    races(&cuda(&without(code, "__syncthreads();", 0)), false);
}

/// Each warp has rounds of its own.
#[test]
fn rounds_of_warps() {
    let code = "int n;
for (int k = t / 32; k < n; k += blockDim.x / 32) {
  s[t] = k;
  __syncwarp();
  int v = s[t ^ 1];
  __syncwarp();
  s[t] = v;
}";
    let text = |code: &str| {
        let launch = "[kernel]\nregs = { n = 64 }";
        cuda(code).replace("[kernel]", launch)
    };
    never(&text(code), false, Proved::EveryContent);
    races(&text(&without(code, "__syncwarp();", 0)), false);
    races(&text(&without(code, "__syncwarp();", 1)), false);
}

#[test]
fn in_ptx() {
    let code = "\t.reg .pred \t%p<3>;
\t.reg .b32 \t%r<12>;
\tmov.u32 \t%r1, %tid.x;
\tshl.b32 \t%r2, %r1, 2;
\tmov.u32 \t%r3, s;
\tadd.s32 \t%r4, %r3, %r2;
\tst.shared.u32 \t[%r4], %r1;
\tbar.warp.sync \t-1;
\txor.b32 \t%r5, %r2, 4;
\tadd.s32 \t%r6, %r3, %r5;
\tld.shared.u32 \t%r7, [%r6];
\tshfl.sync.down.b32 \t%r8|%p1, %r7, 16, 31, -1;
\tvote.sync.ballot.b32 \t%r9, %p1, -1;
\tret;";
    let memory = "s = { type = \"u32\", size = 1024, space = \"shared\" }";
    let text = |code: &str| kernel("ptx", memory, LAUNCH, code);
    never(&text(code), false, Proved::EveryContent);
    races(&text(&without(code, "bar.warp.sync \t-1;", 0)), false);
    let half = code.replace("bar.warp.sync \t-1", "bar.warp.sync \t0xffff");
    // Lanes 16 to 31 are not named.
    if let KernelVerdict::Never { .. } = asked(&text(&half), KernelProperty::Race, false) {
        panic!("race of\n{half}");
    }
}

/// The mask of the lanes behind a lane has its highest bit in all lanes but the last.
#[test]
fn masks_of_lanes_have_32_bits() {
    let code = "\t.reg .pred %p<9>;
\t.reg .b32 %r<9>;
\tmov.u32 %r1, %lanemask_gt;
\tsetp.lt.u32 %p1, %r1, 0x80000000;
\t@%p1 bra DONE;
\tst.shared.u32 [s], %r1;
DONE:
\tret;";
    let memory = "s = { type = \"u32\", size = 16, space = \"shared\" }";
    let ptx = |code: &str| kernel("ptx", memory, "grid = 1\nblock = 4", code);
    let said = asked(&ptx(code), KernelProperty::Race, false);
    assert!(!matches!(said, KernelVerdict::Never { .. }), "{said:?}");
    // No number of 32 bits is larger.
    let none = code.replace(
        "setp.lt.u32 %p1, %r1, 0x80000000",
        "setp.le.u32 %p1, %r1, 0xffffffff",
    );
    let said = asked(&ptx(&none), KernelProperty::Race, false);
    assert!(matches!(said, KernelVerdict::Never { .. }), "{said:?}");
}
