//! Chooses the parts of a launch that are not written: blocks, threads, lengths and contents of
//! buffers.
//!
//! # How
//! - Two blocks, if the code tells blocks apart, all blocks meet, or it synchronises through
//!   memory; else one. They differ in the dimension that the code uses.
//! - As many threads in a block as shared arrays have elements, at most a warp, or a few, if the
//!   code asks how many there are; two, where they meet at objects in memory or copy
//!   asynchronously, as each makes many events; a warp, if lanes hand each other values; one, if
//!   the code does not tell threads apart; else four. `__launch_bounds__` and
//!   `reqd_work_group_size` have precedence.
//! - A number that a parameter is compared with decides on the parameter; else there are as many
//!   elements as threads. Preconditions that compare it with a number hold.
//! - A buffer reaches as far as the launch accesses it, and begins with any values. It begins with
//!   0 if the course of the program depends on them.

use std::collections::BTreeSet;

use super::bind::{BoundLaunch, bytes_of};
use super::head::TRIAL;
use super::launch::Contents;
use crate::isa::clike::{BlockLimit, KernelHead, KernelParameter};
use program::extent::extents;
use program::points::Points;
use program::unknown::Unknowns;
use program::{CmpOp, Init, LocId, LocationKind, Program};

/// Threads in a warp.
const WARP: u32 = 32;
/// Threads in a block of which nothing says how many it has.
const FEW: u32 = 4;
/// Threads in a block of which each makes many events.
const PAIR: u32 = 2;
/// Threads in a block of code that takes any number: three steps of a tree.
const SOME: u32 = 8;
/// The most bytes of shared memory that a block has (CUDA C++ Programming Guide, Technical
/// Specifications per Compute Capability).
const MOST_SHARED: u64 = 227 << 10;
/// The largest number of threads in a row of a block with rows.
const ROW: u64 = 4;

/// Threads per block.
pub(super) fn block(head: &KernelHead) -> Vec<u32> {
    let wanted = wanted(head);
    match head.limit {
        Some(BlockLimit::Exactly(sizes)) => {
            let last = sizes.iter().rposition(|size| *size != 1).unwrap_or(0);
            sizes[..=last].to_vec()
        }
        Some(BlockLimit::AtMost(most)) if wanted.iter().product::<u32>() > most => vec![most],
        _ => wanted,
    }
}

/// Threads per block that the code asks for.
fn wanted(head: &KernelHead) -> Vec<u32> {
    let traits = &head.traits;
    if traits.lanes {
        return vec![WARP];
    }
    if !traits.threads {
        return vec![1];
    }
    if traits.objects && !traits.rows {
        return vec![PAIR];
    }
    let array = traits.shared.first();
    if traits.rows {
        let side = array.and_then(|sizes| sizes.first()).copied();
        let side = side.map_or(2, |side| if side <= 2 * ROW { side } else { ROW });
        return vec![side.max(1) as u32; 2];
    }
    // Threads in a row access the last dimension.
    let elements = array.and_then(|sizes| sizes.last()).copied();
    let most = if traits.any_size { SOME } else { WARP };
    let elements = elements.unwrap_or(u64::from(FEW));
    vec![elements.clamp(2, u64::from(most)) as u32]
}

/// Blocks.
pub(super) fn grid(head: &KernelHead) -> Vec<u32> {
    if let Some([x, y, z]) = head.cluster {
        return vec![x, y, z];
    }
    let traits = &head.traits;
    let object = head.parameters.iter().any(|p| p.class.is_some());
    if traits.block_rows {
        vec![1, 2]
    } else if traits.blocks || traits.grid_wide || traits.atomics || object {
        vec![2]
    } else {
        vec![1]
    }
}

/// The value of a parameter; `width`: threads in the first dimension.
pub(super) fn scalar(parameter: &KernelParameter, head: &KernelHead, width: i64) -> i64 {
    let of = |bound: &&crate::isa::clike::ParameterBound| bound.parameter == parameter.name;
    let mut bounds = head.traits.bounds.iter().filter(of).peekable();
    let constants: Vec<i64> = bounds.clone().filter_map(|b| b.constant).collect();
    let open = bounds.peek().is_none() || bounds.any(|b| b.constant.is_none());
    let usual = match constants.first() {
        Some(&constant) if !open => constant.max(1),
        _ if parameter.type_name == "bool" => 1,
        _ => width,
    };
    let required = head.traits.bounds.iter().filter(of);
    let required = required.filter_map(|b| b.required.zip(b.constant));
    required.fold(usual, |value, (op, constant)| match op {
        CmpOp::Eq => constant,
        CmpOp::Ne if value == constant => constant + 1,
        CmpOp::Ne => value,
        CmpOp::Lt => value.min(constant - 1),
        CmpOp::Le => value.min(constant),
        CmpOp::Gt => value.max(constant + 1),
        CmpOp::Ge => value.max(constant),
    })
}

/// Gives buffers of unsaid length the length that their accesses need; whether some had none.
pub(super) fn lengths(bound: &mut BoundLaunch, program: &Program) {
    let reach = extents(program);
    let threads = bound.threads();
    for memory in bound
        .memory
        .iter_mut()
        .filter(|m| m.length.is_none() && m.same_as.is_none())
    {
        let found = program.locations.iter().position(|l| l.name == memory.name);
        let Some(at) = found else { continue };
        let loc = LocId(at as u16);
        let layout = match &program.locations[at].kind {
            LocationKind::Object { layout, .. } => layout,
            LocationKind::Alias { .. } => continue,
        };
        let bytes = memory.element == super::ptx::BYTES;
        let dynamic = bytes_of(&memory.element).filter(|_| memory.dynamic);
        let element = if bytes {
            1
        } else if let Some(size) = dynamic {
            // Accesses may have divided it.
            size
        } else {
            layout.bytes(layout.cells()).max(1)
        };
        let end = reach.bytes.get(&loc).copied().unwrap_or(0);
        let (most, word) = match bytes {
            true if memory.dynamic => (MOST_SHARED, 8),
            true => (2 * TRIAL, 8),
            false => (TRIAL, 1),
        };
        let mut length = end.div_ceil(element).clamp(1, most);
        if reach.open.contains(&loc) {
            length = length.max((threads * word).min(most));
        }
        memory.length = Some(length);
    }
}

/// Lets buffers of unsaid contents begin with 0 on which the course of the program depends;
/// whether there was one.
pub(super) fn contents(bound: &mut BoundLaunch, program: &Program) -> bool {
    let mut open: BTreeSet<LocId> = BTreeSet::new();
    for memory in bound
        .memory
        .iter()
        .filter(|m| m.contents == Contents::Open && !m.dynamic)
    {
        let found = program.locations.iter().position(|l| l.name == memory.name);
        open.extend(
            found
                .map(|at| LocId(at as u16))
                .filter(|loc| is_unknown(program, *loc)),
        );
    }
    if open.is_empty() {
        return false;
    }
    let points = Points::compute(program);
    let reads = program
        .instrs()
        .filter(|(_, _, instr)| instr.op.read().is_some());
    let of_open = reads.filter_map(|(t, at, instr)| {
        let objects = points.of(usize::from(t.0), instr.op.address()?);
        let found = objects.into_iter().find(|loc| open.contains(loc))?;
        Some(((t, at), found))
    });
    let of_open: Vec<_> = of_open.collect();
    let sites = of_open.iter().map(|(site, _)| *site).collect();
    let Some((made, _)) = Unknowns::with_unwritten(program, sites).steered() else {
        return false;
    };
    let Some((_, loc)) = of_open.iter().find(|(site, _)| *site == made) else {
        return false;
    };
    let name = &program.location(*loc).name;
    bound.zeroed.push(name.clone());
    let steers = bound.memory.iter_mut().filter(|m| m.name == *name);
    steers.for_each(|m| m.contents = Contents::Values(vec![0]));
    true
}

fn is_unknown(program: &Program, loc: LocId) -> bool {
    match &program.location(loc).kind {
        LocationKind::Object { init, .. } => init.contains(&Init::Unknown),
        LocationKind::Alias { .. } => false,
    }
}
