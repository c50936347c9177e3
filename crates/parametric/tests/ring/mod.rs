//! A ring of two stages: thread 0 fills them in turn, and thread 1 empties them.

/// Memory of a ring.
const MEMORY: &str = "r = { type = \"u32\", size = 64 }
s = { type = \"u32\", size = 2, space = \"shared\" }
full = { type = \"mbarrier\", init = [1, 1], space = \"shared\" }
empty = { type = \"mbarrier\", init = [1, 1], space = \"shared\" }";

/// Thread 0 fills two stages in turn, and thread 1 empties them.
pub(crate) const RING: &str = "\t.reg .pred %p<9>;
\t.reg .b32 %r<40>;
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, 0;
\tmov.u32 %r3, 0;
\tmov.u32 %r4, 0;
\tmov.u32 %r10, full;
\tmov.u32 %r11, empty;
\tmov.u32 %r12, s;
\tsetp.ne.u32 %p1, %r1, 0;
\t@%p1 bra CONSUMER;
FILL:
\tsetp.ge.u32 %p2, %r2, n;
\t@%p2 bra DONE;
\tshl.b32 %r5, %r3, 3;
\tadd.u32 %r6, %r11, %r5;
\tadd.u32 %r7, %r10, %r5;
\txor.b32 %r8, %r4, 1;
WAIT_EMPTY:
\tmbarrier.try_wait.parity.shared.b64 %p3, [%r6], %r8;
\t@!%p3 bra WAIT_EMPTY;
\tshl.b32 %r16, %r3, 2;
\tadd.u32 %r9, %r12, %r16;
\tst.shared.u32 [%r9], %r2;
\tmbarrier.arrive.shared.b64 _, [%r7];
\tadd.u32 %r2, %r2, 1;
\tadd.u32 %r3, %r3, 1;
\tsetp.eq.u32 %p4, %r3, 2;
\tselp.b32 %r3, 0, %r3, %p4;
\txor.b32 %r13, %r4, 1;
\tselp.b32 %r4, %r13, %r4, %p4;
\tbra FILL;
CONSUMER:
\tsetp.gt.u32 %p2, %r1, 1;
\t@%p2 bra DONE;
DRAIN:
\tsetp.ge.u32 %p2, %r2, n;
\t@%p2 bra DONE;
\tshl.b32 %r5, %r3, 3;
\tadd.u32 %r6, %r11, %r5;
\tadd.u32 %r7, %r10, %r5;
WAIT_FULL:
\tmbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r4;
\t@!%p3 bra WAIT_FULL;
\tshl.b32 %r16, %r3, 2;
\tadd.u32 %r9, %r12, %r16;
\tld.shared.u32 %r14, [%r9];
\tmbarrier.arrive.shared.b64 _, [%r6];
\tadd.u32 %r2, %r2, 1;
\tadd.u32 %r3, %r3, 1;
\tsetp.eq.u32 %p4, %r3, 2;
\tselp.b32 %r3, 0, %r3, %p4;
\txor.b32 %r13, %r4, 1;
\tselp.b32 %r4, %r13, %r4, %p4;
\tbra DRAIN;
DONE:
\tret;";

const LAUNCH: &str = "grid = 1\nblock = 2\nregs = { n = 3 }";

/// A ring as a file.
pub(crate) fn ring(code: &str) -> String {
    format!(
        "name = \"k\"\ndialect = \"ptx\"\n[memory]\n{MEMORY}\n[kernel]\n{LAUNCH}\ncode = '''\n{code}\n'''\n"
    )
}
