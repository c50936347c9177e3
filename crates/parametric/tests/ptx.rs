//! Kernels in PTX as compilers print them: addresses of 64 bits, shared addresses of 32 bits,
//! rotated and unrolled loops, predicates.
#![cfg(feature = "z3")]

mod common;

use common::{kernel, never, races, without};
use parametric::Proved;

/// A launch of 65,536 blocks of 1,024 threads.
const LARGE: &str = "grid = 65536\nblock = 1024";

/// The kernel is proved, and without the `nth` of its barriers refuted.
fn both(memory: &str, launch: &str, code: &str, nth: usize) {
    never(
        &kernel("ptx", memory, launch, code),
        false,
        Proved::EveryContent,
    );
    let dropped = without(code, "bar.sync \t0;", nth);
    races(&kernel("ptx", memory, launch, &dropped), false);
}

const ARRAYS: &str = "a = { type = \"u32\", size = 67108864 }
r = { type = \"u32\", size = 67108864 }
s = { type = \"u32\", size = 1056, space = \"shared\" }";

const POINTERS: &str = "regs = { k_param_0 = \"&a\", k_param_1 = \"&r\" }";

const DECLARED: &str = "\t.reg .pred \t%p<9>;
\t.reg .b32 \t%r<40>;
\t.reg .b64 \t%rd<20>;
\tld.param.u64 \t%rd1, [k_param_0];
\tld.param.u64 \t%rd2, [k_param_1];
";

/// `for (d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; barrier; }`
const REDUCTION: &str = "\tcvta.to.global.u64 \t%rd3, %rd1;
\tmov.u32 \t%r1, %ctaid.x;
\tmov.u32 \t%r20, %ntid.x;
\tmov.u32 \t%r3, %tid.x;
\tmad.lo.s32 \t%r8, %r1, %r20, %r3;
\tmul.wide.u32 \t%rd4, %r8, 4;
\tadd.s64 \t%rd5, %rd3, %rd4;
\tld.global.u32 \t%r9, [%rd5];
\tshl.b32 \t%r10, %r3, 2;
\tmov.u32 \t%r11, s;
\tadd.s32 \t%r4, %r11, %r10;
\tst.shared.u32 \t[%r4], %r9;
\tbar.sync \t0;
\tsetp.lt.u32 \t%p1, %r20, 2;
\t@%p1 bra \t$L__BB0_4;
$L__BB0_1:
\tshr.u32 \t%r6, %r20, 1;
\tsetp.ge.u32 \t%p2, %r3, %r6;
\t@%p2 bra \t$L__BB0_3;
\tshl.b32 \t%r12, %r6, 2;
\tadd.s32 \t%r13, %r4, %r12;
\tld.shared.u32 \t%r14, [%r13];
\tld.shared.u32 \t%r15, [%r4];
\tadd.s32 \t%r16, %r15, %r14;
\tst.shared.u32 \t[%r4], %r16;
$L__BB0_3:
\tbar.sync \t0;
\tsetp.gt.u32 \t%p3, %r20, 3;
\tmov.u32 \t%r20, %r6;
\t@%p3 bra \t$L__BB0_1;
$L__BB0_4:
\tsetp.ne.s32 \t%p4, %r3, 0;
\t@%p4 bra \t$L__BB0_6;
\tld.shared.u32 \t%r17, [s];
\tcvta.to.global.u64 \t%rd6, %rd2;
\tmul.wide.u32 \t%rd7, %r1, 4;
\tadd.s64 \t%rd8, %rd6, %rd7;
\tst.global.u32 \t[%rd8], %r17;
$L__BB0_6:
\tret;";

#[test]
fn reduction() {
    let code = [DECLARED, REDUCTION].concat();
    let launch = format!("{LARGE}\n{POINTERS}");
    both(ARRAYS, &launch, &code, 0);
    both(ARRAYS, &launch, &code, 1);
}

#[test]
fn reduction_for_every_launch() {
    let code = [DECLARED, REDUCTION].concat();
    let memory = ARRAYS.replace("67108864", "64");
    let launch = format!("grid = 2\nblock = 4\n{POINTERS}");
    let text = kernel("ptx", &memory, &launch, &code);
    never(&text, true, Proved::EveryLaunch);
    let dropped = without(&code, "bar.sync \t0;", 1);
    races(&kernel("ptx", &memory, &launch, &dropped), true);
}

/// `tile[y][x] = a[..]; barrier; r[..] = tile[x][y]`, with predicates in the place of branches.
#[test]
fn transpose() {
    let code = "\tmov.u32 \t%r1, %tid.x;
\tmov.u32 \t%r2, %tid.y;
\tmov.u32 \t%r3, %ctaid.x;
\tmov.u32 \t%r4, %ctaid.y;
\tshl.b32 \t%r5, %r3, 5;
\tadd.s32 \t%r6, %r5, %r1;
\tshl.b32 \t%r7, %r4, 5;
\tadd.s32 \t%r8, %r7, %r2;
\tsetp.lt.s32 \t%p1, %r6, 8192;
\tshl.b32 \t%r9, %r8, 13;
\tadd.s32 \t%r10, %r9, %r6;
\tcvta.to.global.u64 \t%rd3, %rd1;
\tmul.wide.s32 \t%rd4, %r10, 4;
\tadd.s64 \t%rd5, %rd3, %rd4;
\t@%p1 ld.global.u32 \t%r11, [%rd5];
\tmov.u32 \t%r12, s;
\tmad.lo.s32 \t%r13, %r2, 132, %r12;
\tshl.b32 \t%r14, %r1, 2;
\tadd.s32 \t%r15, %r13, %r14;
\t@%p1 st.shared.u32 \t[%r15], %r11;
\tbar.sync \t0;
\tadd.s32 \t%r16, %r7, %r1;
\tadd.s32 \t%r17, %r5, %r2;
\tmad.lo.s32 \t%r18, %r1, 132, %r12;
\tshl.b32 \t%r19, %r2, 2;
\tadd.s32 \t%r20, %r18, %r19;
\tld.shared.u32 \t%r21, [%r20];
\tcvta.to.global.u64 \t%rd6, %rd2;
\tshl.b32 \t%r22, %r17, 13;
\tadd.s32 \t%r23, %r22, %r16;
\tmul.wide.s32 \t%rd7, %r23, 4;
\tadd.s64 \t%rd8, %rd6, %rd7;
\tst.global.u32 \t[%rd8], %r21;
\tret;";
    let launch = format!("grid = [256, 256]\nblock = [32, 32]\n{POINTERS}");
    both(ARRAYS, &launch, &[DECLARED, code].concat(), 0);
}

/// `for (i = ..; i < n; i += stride) r[i] = a[i]`, entered at its test: the body is out of line.
#[test]
fn rotated_loop() {
    let code = "\tld.param.u32 \t%r9, [k_param_2];
\tcvta.to.global.u64 \t%rd3, %rd1;
\tcvta.to.global.u64 \t%rd4, %rd2;
\tmov.u32 \t%r1, %ntid.x;
\tmov.u32 \t%r2, %ctaid.x;
\tmov.u32 \t%r3, %tid.x;
\tmad.lo.s32 \t%r4, %r2, %r1, %r3;
\tmov.u32 \t%r5, %nctaid.x;
\tmul.lo.s32 \t%r6, %r5, %r1;
\tbra.uni \t$L__BB0_2;
$L__BB0_1:
\tmul.wide.s32 \t%rd5, %r4, 4;
\tadd.s64 \t%rd6, %rd3, %rd5;
\tld.global.u32 \t%r7, [%rd6];
\tadd.s64 \t%rd7, %rd4, %rd5;
\tst.global.u32 \t[%rd7], %r7;
\tadd.s32 \t%r4, %r4, %r6;
$L__BB0_2:
\tsetp.lt.s32 \t%p1, %r4, %r9;
\t@%p1 bra \t$L__BB0_1;
\tret;";
    let memory = ARRAYS.replace("67108864", "64");
    let launch = "grid = 2\nblock = 4\n\
                  regs = { k_param_0 = \"&a\", k_param_1 = \"&r\", k_param_2 = 16 }";
    let code = [DECLARED, code].concat();
    never(
        &kernel("ptx", &memory, launch, &code),
        true,
        Proved::EveryLaunch,
    );
    let wrong = code.replace("%r2, %r1, %r3;", "%r2, 1, %r3;");
    races(&kernel("ptx", &memory, launch, &wrong), true);
}

/// Two elements in each round, and a pointer that moves instead of an index.
#[test]
fn unrolled_loop() {
    let code = "\tcvta.to.global.u64 \t%rd3, %rd2;
\tmov.u32 \t%r1, %tid.x;
\tmul.wide.u32 \t%rd4, %r1, 4;
\tadd.s64 \t%rd5, %rd3, %rd4;
\tmov.u32 \t%r2, 0;
$L__BB0_1:
\tst.global.u32 \t[%rd5], %r1;
\tst.global.u32 \t[%rd5+4096], %r1;
\tadd.s64 \t%rd5, %rd5, 8192;
\tadd.s32 \t%r2, %r2, 2;
\tsetp.ne.s32 \t%p1, %r2, 64;
\t@%p1 bra \t$L__BB0_1;
\tret;";
    let launch = format!("grid = 1\nblock = 1024\n{POINTERS}");
    let code = [DECLARED, code].concat();
    never(
        &kernel("ptx", ARRAYS, &launch, &code),
        false,
        Proved::EveryContent,
    );
    let wrong = code.replace("+4096", "+4092");
    races(&kernel("ptx", ARRAYS, &launch, &wrong), false);
}
