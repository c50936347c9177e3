//! Binds launches to kernels of PTX; their accesses show the types of their parameters.
//!
//! # Invariants
//! - A parameter of 64 bits is taken for a pointer until it is known that nothing is accessed
//!   through it.
//! - Each piece of a structure that code reads is an argument.

use std::collections::BTreeSet;

use super::bind::{BoundLaunch, LaunchMemory};
use super::launch::Contents;
use crate::isa::clike::{BlockLimit, KernelHead, KernelParameter, Traits};
use crate::isa::ptx::module::Kernel;
use crate::isa::ptx::type_named;
use crate::litmus::kernel::{Launch, PtxFile};
use diag::Span;
use program::points::Points;
use program::{LocationKind, Program};

/// The type of a buffer of bytes; accesses show its elements.
pub(super) const BYTES: &str = "bytes";

/// Bytes of a buffer while it is found out how far its accesses reach.
pub(super) const TRIAL_BYTES: u64 = 2048;
/// The same, where accesses reach further.
pub(super) const LONG_TRIAL_BYTES: u64 = 1 << 17;

/// Registers that a machine fills, and a test gives a value that stays.
const TIMERS: [&str; 6] = [
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%clock",
    "%clock_hi",
    "%clock64",
];

/// The registers by which a cooperative grid finds its workspace.
const WORKSPACE: [&str; 2] = ["%envreg1", "%envreg2"];

/// The demangled name of a kernel, unless another kernel has the same one.
pub(super) fn short(source: &PtxFile, name: &str) -> String {
    let plain = source.path_of(name);
    let same = source
        .kernels()
        .filter(|(kernel, _)| source.path_of(&kernel.name) == plain);
    match same.count() {
        1 => plain,
        _ => name.to_owned(),
    }
}

/// A kernel's parameters, and hints at its launch.
pub(super) fn head(source: &PtxFile, kernel: &Kernel, span: Span) -> KernelHead {
    let mut head = KernelHead {
        name: short(source, &kernel.name),
        span,
        ..KernelHead::default()
    };
    for (name, ty) in source.pieces_of(kernel) {
        let wide = type_named(&ty).is_some_and(|ty| ty.bits == 64);
        head.parameters.push(KernelParameter {
            name,
            span,
            by_value: false,
            pointee: wide.then(|| BYTES.to_owned()),
            space: None,
            class: None,
            type_name: ty,
        });
    }
    let dynamic = source.dynamic_of(kernel);
    head.dynamic = dynamic
        .into_iter()
        .map(|name| (name, BYTES.to_owned()))
        .collect();
    head.cluster = kernel.demands(".reqnctapercluster").map(sides);
    head.limit = limit(kernel, &source.text_of(kernel));
    head.traits = traits(source, kernel);
    head
}

/// The threads that execute a matrix instruction together.
const WARPGROUP: u32 = 128;

/// The block that a kernel demands, or its largest one. One whose warpgroups work together is as
/// large as it may be.
fn limit(kernel: &Kernel, text: &str) -> Option<BlockLimit> {
    let exactly = kernel.demands(".reqntid").map(sides);
    let most = kernel.demands(".maxntid").map(sides);
    if has_word(text, "wgmma.") || has_word(text, "tcgen05.") {
        let whole = exactly.or(most).unwrap_or([WARPGROUP, 1, 1]);
        return Some(BlockLimit::Exactly(whole));
    }
    let most = most.map(|sizes| sizes.iter().product());
    exactly
        .map(BlockLimit::Exactly)
        .or(most.map(BlockLimit::AtMost))
}

/// Sizes in all three dimensions.
fn sides(sizes: &[u32]) -> [u32; 3] {
    [0, 1, 2].map(|d| sizes.get(d).copied().unwrap_or(1))
}

/// Whether a text has words that begin so: `red.` is no part of `shared.`.
fn has_word(text: &str, start: &str) -> bool {
    fn is_inside(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_'
    }
    let mut found = text.match_indices(start);
    found.any(|(at, _)| !start.starts_with(is_inside) || !text[..at].ends_with(is_inside))
}

fn traits(source: &PtxFile, kernel: &Kernel) -> Traits {
    let text = source.text_of(kernel);
    let has = |words: &[&str]| words.iter().any(|word| has_word(&text, word));
    let lanes = [
        "shfl.",
        "vote.",
        "match.",
        "activemask",
        "%laneid",
        "bar.warp",
        "redux.",
        "elect.",
        "ldmatrix.",
        "stmatrix.",
        "movmatrix.",
        "mma.",
        "wmma.",
    ];
    let shared = kernel.variables.iter().filter(|v| v.space == "shared");
    let sizes = shared.filter_map(|v| Some(v.elements? * u64::from(v.ty.bytes())));
    Traits {
        // The meeting of a grid is many accesses of each thread.
        threads: has(&["%tid", "%ntid"]) && !has(&["%envreg"]),
        objects: has(&["mbarrier.", "cp.async"]),
        any_size: has(&["%ntid"]),
        blocks: has(&["%ctaid", "%nctaid", "%cluster"]),
        rows: has(&["%tid.y"]),
        block_rows: has(&["%ctaid.y"]) && !has(&["%ctaid.x"]),
        lanes: has(&lanes),
        grid_wide: has(&["%envreg"]),
        atomics: has(&["atom.", "red.", ".acquire", ".release"]),
        shared: sizes
            .filter(|bytes| *bytes > 8)
            .map(|bytes| vec![bytes.div_ceil(4).max(1)])
            .collect(),
        bounds: Vec::new(),
    }
}

/// The launch as the reader of modules takes it, and the buffers that begin with any values.
pub(super) fn launch(
    source: &PtxFile,
    kernel: &Kernel,
    bound: &BoundLaunch,
) -> (Launch, BTreeSet<String>) {
    let mut args = Vec::new();
    let mut told: BTreeSet<usize> = BTreeSet::new();
    for argument in &bound.arguments {
        let name = &argument.parameter;
        args.push(match argument.of {
            None => format!("{name}={}", argument.number),
            Some(of) => {
                let memory = &bound.memory[of];
                match (told.insert(of), argument.number) {
                    (true, 0) => format!("{name}={}", buffer(memory, bound.trial_bytes)),
                    (_, 0) => format!("{name}={}", memory.name),
                    (_, at) => format!("{name}=&{}[{at}]", memory.name),
                }
            }
        });
    }
    for memory in bound
        .memory
        .iter()
        .filter(|m| m.dynamic && m.same_as.is_none())
    {
        args.push(format!(
            "{}={BYTES}[{}]",
            memory.name,
            memory.length.unwrap_or(bound.trial_bytes)
        ));
    }
    let text = source.text_of(kernel);
    if WORKSPACE.iter().any(|register| text.contains(register)) {
        let [low, high] = WORKSPACE;
        args.push(format!("{low}=0"));
        args.push(format!("{high}=grid_workspace:u32[2]=0"));
    }
    let words: BTreeSet<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '%'))
        .collect();
    let timers = TIMERS.iter().filter(|timer| words.contains(*timer));
    args.extend(timers.map(|timer| format!("{timer}=0")));
    let inputs = bound
        .memory
        .iter()
        .filter(|m| matches!(m.contents, Contents::Open | Contents::Unknown) && !m.dynamic)
        .map(|m| m.name.clone())
        .collect();
    let launch = Launch {
        grid: bound.grid.clone(),
        block: bound.block.clone(),
        cluster: Vec::new(),
        args,
        ask: None,
    };
    (launch, inputs)
}

/// A buffer as the reader of modules takes it.
fn buffer(memory: &LaunchMemory, trial_bytes: u64) -> String {
    let length = memory.length.unwrap_or(trial_bytes);
    let head = format!("{}:{}[{length}]", memory.name, memory.element);
    match &memory.contents {
        Contents::Values(values) if memory.length.is_some() && memory.element != BYTES => {
            let one = values.len() == 1;
            let count = if one { length as usize } else { values.len() };
            let all = (0..count).map(|i| values[if one { 0 } else { i }].to_string());
            format!("{head}={}", all.collect::<Vec<_>>().join(","))
        }
        _ => head,
    }
}

/// Gives buffers the types that their accesses have, and makes numbers of parameters through which
/// nothing is accessed; whether one of them was.
pub(super) fn settle(bound: &mut BoundLaunch, program: &Program) -> bool {
    let points = Points::compute(program);
    let mut accessed: BTreeSet<String> = BTreeSet::new();
    for (thread, _, instr) in program.instrs() {
        let Some(addr) = instr.op.address() else {
            continue;
        };
        let objects = points.of(usize::from(thread.0), addr);
        accessed.extend(
            objects
                .into_iter()
                .map(|loc| program.location(loc).name.clone()),
        );
    }
    let width = bound.width();
    let mut changed = false;
    for argument in &mut bound.arguments {
        let Some(memory) = argument.of.map(|of| &bound.memory[of]) else {
            continue;
        };
        if memory.element == BYTES && !accessed.contains(&memory.name) && memory.length.is_none() {
            (argument.of, argument.number) = (None, width);
            changed = true;
        }
    }
    for memory in bound
        .memory
        .iter_mut()
        .filter(|m| m.element == BYTES && !m.dynamic)
    {
        let location = program.locations.iter().find(|l| l.name == memory.name);
        if let Some(LocationKind::Object { layout, .. }) = location.map(|l| &l.kind)
            && layout.cells() == 1
        {
            memory.element = layout.field(0).ty.ptx_name();
        }
    }
    changed
}
