//! Asynchronous copies of work-groups in OpenCL C.
#![cfg(feature = "z3")]

mod common;

use common::{asked, kernel, never, races, without};
use parametric::{KernelProperty, KernelVerdict, Proved};

const MEMORY: &str = "p = { type = \"int\", size = 256 }
q = { type = \"int\", size = 256 }";

fn opencl(code: &str) -> String {
    kernel("opencl", MEMORY, "global = 256\nlocal = 4", code)
}

const IN: &str = "__local int mine[4];
event_t e = async_work_group_copy(mine, p + 4 * get_group_id(0), 4, 0);
wait_group_events(1, &e);
q[get_global_id(0)] = mine[3 - get_local_id(0)];";

const WAIT: &str = "wait_group_events(1, &e);";

#[test]
fn a_wait_orders_a_copy_before_what_follows() {
    never(&opencl(IN), false, Proved::EveryContent);
    races(&opencl(&without(IN, WAIT, 0)), false);
    // The source may be written behind the wait, and not before.
    let back = IN.replace("q[", "p[");
    never(&opencl(&back), false, Proved::EveryContent);
    let early = format!("{}{WAIT}", without(&back, WAIT, 0));
    races(&opencl(&early), false);
}

const OUT: &str = "__local int mine[4];
mine[get_local_id(0)] = get_global_id(0);
barrier(CLK_LOCAL_MEM_FENCE);
event_t e = async_work_group_copy(q + 4 * get_group_id(0), mine, 4, 0);
wait_group_events(1, &e);
mine[get_local_id(0)] = 0;";

#[test]
fn a_barrier_orders_what_precedes_a_copy() {
    never(&opencl(OUT), false, Proved::EveryContent);
    races(
        &opencl(&without(OUT, "barrier(CLK_LOCAL_MEM_FENCE);", 0)),
        false,
    );
    races(&opencl(&without(OUT, WAIT, 0)), false);
    // Two work-groups copy to one place.
    races(&opencl(&OUT.replace("4 * get_group_id(0)", "0")), false);
}

#[test]
fn an_event_may_stand_for_two_copies() {
    let two = "__local int mine[4], yours[4];
event_t e = async_work_group_copy(mine, p + 4 * get_group_id(0), 4, 0);
e = async_work_group_copy(yours, p + 4 * get_group_id(0), 4, e);
wait_group_events(1, &e);
q[get_global_id(0)] = mine[3 - get_local_id(0)] + yours[3 - get_local_id(0)];";
    never(&opencl(two), false, Proved::EveryContent);
    // The event that is given is the event of both copies.
    let one = two.replace(
        "e = async_work_group_copy(yours",
        "async_work_group_copy(yours",
    );
    never(&opencl(&one), false, Proved::EveryContent);
    races(&opencl(&one.replace("4, e)", "4, 0)")), false);
    races(&opencl(&two.replace("4, e)", "4, 0)")), false);
}

#[test]
fn a_loop_copies_and_waits() {
    let rounds = "__local int mine[4];
for (int i = 0; i < 3; i++) {
  event_t e = async_work_group_copy(mine, p + 4 * get_group_id(0), 4, 0);
  wait_group_events(1, &e);
  q[get_global_id(0)] = mine[3 - get_local_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
}";
    never(&opencl(rounds), false, Proved::EveryContent);
    // The exact engines do not follow such a wait in a loop, so no execution shows the race.
    let open = without(rounds, "barrier(CLK_LOCAL_MEM_FENCE);", 0);
    match asked(&opencl(&open), KernelProperty::Race, false) {
        KernelVerdict::Undecided { reason, .. } => {
            assert!(reason.contains("lines 12 and 14 may race"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn operands_that_differ_are_not_proved() {
    let places = IN.replace("get_group_id(0)", "get_local_id(0)");
    let events = "__local int mine[4], yours[4];
event_t e = async_work_group_copy(mine, p + 4 * get_group_id(0), 4, 0);
event_t f = async_work_group_copy(yours, p + 4 * get_group_id(0), 4, 0);
event_t one = get_local_id(0) > 1 ? e : f;
wait_group_events(1, &one);";
    for differ in [&places[..], events] {
        match asked(&opencl(differ), KernelProperty::Race, false) {
            KernelVerdict::Undecided { reason, .. } => {
                assert!(reason.contains("different operands"), "{reason}");
            }
            other => panic!("{differ}\n{other:?}"),
        }
    }
    let same = events.replace("get_local_id(0)", "get_group_id(0)");
    never(&opencl(&same), false, Proved::EveryContent);
}
