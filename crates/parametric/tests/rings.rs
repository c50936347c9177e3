//! Rings of mbarrier objects: stages that a producer fills and consumers empty, for any number of
//! rounds.
#![cfg(feature = "z3")]

mod common;
mod ring;

use common::{asked, kernel, never, races, without};
use parametric::{KernelProperty, KernelVerdict, Proved};
use ring::{RING, ring};

#[test]
fn a_ring_of_two_stages() {
    never(&ring(RING), true, Proved::EveryLaunch);
}

#[test]
fn a_parity_that_does_not_turn() {
    // The producer takes its own stage for empty.
    let code = RING.replacen("\tselp.b32 %r4, %r13, %r4, %p4;\n", "", 1);
    races(&ring(&code), false);
}

#[test]
fn a_wait_that_is_missing() {
    let wait = "\tmbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r4;
\t@!%p3 bra WAIT_FULL;\n";
    races(&ring(&without(RING, wait, 0)), false);
}

#[test]
fn an_arrival_before_the_access() {
    let arrival = "\tmbarrier.arrive.shared.b64 _, [%r7];\n";
    let early = without(RING, arrival, 0);
    let store = "\tst.shared.u32 [%r9], %r2;\n";
    let early = early.replace(store, &format!("{arrival}{store}"));
    races(&ring(&early), false);
}

#[test]
fn a_relaxed_arrival() {
    let code = RING.replacen(
        "mbarrier.arrive.shared",
        "mbarrier.arrive.relaxed.cta.shared",
        1,
    );
    races(&ring(&code), false);
}

/// The stage and the parity as functions of the iteration, three stages, and a consumer for each
/// thread but the first.
const MADE: &str = "\t.reg .pred %p<9>;
\t.reg .b32 %r<40>;
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, 0;
\tmov.u32 %r10, full;
\tmov.u32 %r11, empty;
\tmov.u32 %r12, s;
\tsetp.ne.u32 %p1, %r1, 0;
\t@%p1 bra READY;
\tmov.u32 %r15, %ntid.x;
\tsub.u32 %r15, %r15, 1;
\tmbarrier.init.shared.b64 [full], 1;
\tmbarrier.init.shared.b64 [full+8], 1;
\tmbarrier.init.shared.b64 [full+16], 1;
\tmbarrier.init.shared.b64 [empty], %r15;
\tmbarrier.init.shared.b64 [empty+8], %r15;
\tmbarrier.init.shared.b64 [empty+16], %r15;
READY:
\tbar.sync 0;
\t@%p1 bra DRAIN;
FILL:
\tsetp.ge.u32 %p2, %r2, n;
\t@%p2 bra DONE;
\trem.u32 %r3, %r2, 3;
\tdiv.u32 %r4, %r2, 3;
\tand.b32 %r4, %r4, 1;
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
\tbra FILL;
DRAIN:
\tsetp.ge.u32 %p2, %r2, n;
\t@%p2 bra DONE;
\trem.u32 %r3, %r2, 3;
\tdiv.u32 %r4, %r2, 3;
\tand.b32 %r4, %r4, 1;
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
\tbra DRAIN;
DONE:
\tret;";

const MADE_MEMORY: &str = "s = { type = \"u32\", size = 3, space = \"shared\" }
full = { type = \"mbarrier\", size = 3, space = \"shared\" }
empty = { type = \"mbarrier\", size = 3, space = \"shared\" }";

const MADE_LAUNCH: &str = "grid = 1\nblock = 3\nregs = { n = 4 }";

#[test]
fn consumers_of_a_whole_block() {
    let ring = |code: &str| kernel("ptx", MADE_MEMORY, MADE_LAUNCH, code);
    never(&ring(MADE), true, Proved::EveryLaunch);
    // A phase is complete before all consumers have read.
    let fewer = MADE.replace("sub.u32 %r15, %r15, 1", "sub.u32 %r15, %r15, 2");
    races(&ring(&fewer), false);
    // Thread 0 arrives at stages that are not the ones that it fills.
    let other = MADE.replacen("rem.u32 %r3, %r2, 3", "rem.u32 %r3, %r2, 2", 1);
    races(&ring(&other), false);
}

#[test]
fn one_round() {
    let code = "\t.reg .b32 %r<9>;
\t.reg .pred %p<3>;
\tmov.u32 %r1, %tid.x;
\tsetp.ne.u32 %p1, %r1, 0;
\t@%p1 bra OTHER;
\tst.shared.u32 [s], 1;
\tmbarrier.arrive.shared.b64 _, [full];
\tret;
OTHER:
\tmbarrier.wait.shared.b64 [full], 0;
\tld.shared.u32 %r2, [s];
\tret;";
    never(&ring(code), true, Proved::EveryLaunch);
    let other = code.replace("[full], 0", "[full], 1");
    races(&ring(&other), false);
}

/// One stage, whose parity a consumer makes of a number that wraps around.
const WRAPPING: &str = "\t.reg .pred %p<9>;
\t.reg .b32 %r<40>;
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, 0;
\tsetp.ne.u32 %p1, %r1, 0;
\t@%p1 bra CONSUMER;
FILL:
\tsetp.ge.u32 %p2, %r2, n;
\t@%p2 bra DONE;
\tand.b32 %r4, %r2, 1;
\txor.b32 %r8, %r4, 1;
WAIT_EMPTY:
\tmbarrier.try_wait.parity.shared.b64 %p3, [empty], %r8;
\t@!%p3 bra WAIT_EMPTY;
\tst.shared.u32 [s], %r2;
\tmbarrier.arrive.shared.b64 _, [full];
\tadd.u32 %r2, %r2, 1;
\tbra FILL;
CONSUMER:
\tsetp.gt.u32 %p2, %r1, 1;
\t@%p2 bra DONE;
DRAIN:
\tsetp.ge.u32 %p2, %r2, n;
\t@%p2 bra DONE;
\tshl.b32 %r20, %r2, BY;
\tshr.u32 %r21, %r20, BY;
\tsetp.eq.u32 %p5, %r21, %r2;
\tand.b32 %r4, %r2, 1;
\txor.b32 %r22, %r4, 1;
\tselp.b32 %r4, %r4, %r22, %p5;
WAIT_FULL:
\tmbarrier.try_wait.parity.shared.b64 %p3, [full], %r4;
\t@!%p3 bra WAIT_FULL;
\tld.shared.u32 %r14, [s];
\tmbarrier.arrive.shared.b64 _, [empty];
\tadd.u32 %r2, %r2, 1;
\tbra DRAIN;
DONE:
\tret;";

/// In iteration 4, the parity is that of the phase before if two bits of the number are left.
#[test]
fn a_parity_of_a_number_that_wraps_around() {
    let memory = "s = { type = \"u32\", space = \"shared\" }
full = { type = \"mbarrier\", init = 1, space = \"shared\" }
empty = { type = \"mbarrier\", init = 1, space = \"shared\" }";
    let ring = |by: &str| {
        let launch = "grid = 1\nblock = 2\nregs = { n = 5 }";
        kernel("ptx", memory, launch, &WRAPPING.replace("BY", by))
    };
    races(&ring("30"), false);
    for any in [false, true] {
        let said = asked(&ring("30"), KernelProperty::Race, any);
        assert!(!matches!(said, KernelVerdict::Never { .. }), "{said:?}");
    }
    never(&ring("26"), false, Proved::EveryContent);
}
