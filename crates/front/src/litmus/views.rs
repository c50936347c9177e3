//! Divides dynamic shared memory that code of the C family views as several types.
//!
//! Such code carves one array by offsets, through pointers to other types. The cells of the array
//! are then what its accesses make of it, as in PTX.
//!
//! # Invariants
//! - Memory whose accesses all have the size of its elements stays as it is.
//! - An access to an element of another size is an error in all other memory.
//! - If code views such memory as structures, all of it is divided.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *__shared__*: arrays of dynamic shared memory begin at one
//!   address, and pointers with offsets into one array give the others.

use std::collections::BTreeSet;

use crate::isa::ptx::parts;
use diag::{Sink, Span};
use program::points::{Points, access_of};
use program::{LocId, Program};

/// Divides the arrays in `dynamic` as their accesses demand. `structures`: code views some of it as
/// structures, so accesses to all structures are held against their members.
pub(super) fn divide(program: &mut Program, dynamic: &[LocId], structures: bool, sink: &mut Sink) {
    if dynamic.is_empty() {
        return;
    }
    let points = Points::compute(program);
    let viewed = match structures {
        true => {
            viewed(program, &points, dynamic, sink);
            dynamic.iter().copied().collect()
        }
        false => viewed(program, &points, dynamic, sink),
    };
    if viewed.is_empty() {
        return;
    }
    let viewed: Vec<LocId> = viewed.into_iter().collect();
    viewed
        .iter()
        .for_each(|object| parts::in_bytes(program, *object));
    let cells = parts::cut(program, &points, &viewed, None, sink);
    for ((thread, instr), count) in cells {
        program.threads[thread].code[instr].element.cells = count;
    }
}

/// The arrays that some access views as elements of another size; reports such accesses to other
/// memory.
fn viewed(
    program: &Program,
    points: &Points,
    dynamic: &[LocId],
    sink: &mut Sink,
) -> BTreeSet<LocId> {
    let mut viewed = BTreeSet::new();
    let mut told: BTreeSet<(u32, u32)> = BTreeSet::new();
    for (t, _, instr) in program.instrs() {
        let Some((addr, ty)) = access_of(&instr.op) else {
            continue;
        };
        for object in points.of(usize::from(t.0), addr) {
            let bits = program.element(object).bits;
            let Span { start, end } = instr.span;
            if program.layout(object).cells() > 1 || bits == ty.bits {
                continue;
            }
            if dynamic.contains(&object) {
                viewed.insert(object);
            } else if told.insert((start, end)) {
                let name = &program.location(object).name;
                let message = format!("a {}-bit access to {bits}-bit elements", ty.bits);
                sink.error("mixed-size", instr.span, message, |d| {
                    d.label(format!("this can be an access to `{name}`"))
                        .help("let each pointer point to memory with elements of its own size")
                });
            }
        }
    }
    viewed
}
