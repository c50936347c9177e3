//! The ways to read a kernel: as it is, for every launch, or with another launch.
//!
//! # Invariants
//! - The code of a [`Form`] is that of two threads whose places differ in every coordinate.

use crate::isa::clike::BlockLimit;
use diag::Span;
use program::litmus::LitmusTest;
use program::{Init, LocId, NdRange, WorkItem};

/// A kernel whose thread is not fixed.
#[derive(Clone, Debug)]
pub struct Form {
    /// The test with one thread, which stands for all of them.
    pub test: LitmusTest,
    /// The launch that the file gives.
    pub range: NdRange,
    /// The number of threads in a warp.
    pub warp: u32,
    /// The registers that hold numbers given to the kernel.
    pub arguments: Vec<String>,
    /// The file's assumption about the launch and the arguments, and its place.
    pub assume: Option<(String, Span)>,
    /// The blocks that the kernel demands, in a source file.
    pub limit: Option<BlockLimit>,
    /// The sizes of objects, as far as the file gives them.
    pub sizes: Vec<ObjectSize>,
    /// The objects that pointers in parameter structures lead to: one for each pointer.
    pub targets: Vec<PointerTarget>,
}

/// The object that a pointer in a parameter structure leads to. The program declares it, and no
/// instruction names it.
#[derive(Clone, Copy, Debug)]
pub struct PointerTarget {
    /// The structure.
    pub holder: LocId,
    /// The place of the pointer in it, in bytes.
    pub offset: i64,
    /// The object.
    pub object: LocId,
}

/// The size of an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSize {
    /// The object.
    pub object: LocId,
    /// Its bytes.
    pub bytes: u64,
    /// Whether the code gives it, so that it is the same in every launch. A file cannot give the
    /// true size of memory for many threads.
    pub of_code: bool,
}

/// Another launch of a kernel than the one that its file gives.
#[derive(Clone, Debug)]
pub struct LaunchVariant {
    /// Its index space.
    pub range: NdRange,
    /// Other values of registers, by name.
    pub arguments: Vec<(String, i64)>,
    /// The threads that run; `None`: all.
    pub threads: Option<Vec<WorkItem>>,
    /// The largest number of elements of an array.
    pub most_elements: usize,
}

/// The way to read a file.
#[derive(Clone, Debug, Default)]
pub(super) enum Reading {
    /// Its tests, as they are.
    #[default]
    Exact,
    /// Its kernels, with the thread's place in registers.
    Form,
    /// Its kernels, launched otherwise.
    At(LaunchVariant),
}

/// The elements of an array whose size is not known.
pub(super) const ENOUGH: usize = 16;

/// A form of a test with two threads; `None`: they do not run the same code.
pub(super) fn of_two(
    mut test: LitmusTest,
    range: NdRange,
    warp: u32,
    arguments: Vec<String>,
    assume: Option<(String, Span)>,
) -> Result<Form, Span> {
    let [first, second] = &test.program.threads[..] else {
        return Err(Span::default());
    };
    let differs = first.code.iter().zip(&second.code);
    let mut differs = differs.filter(|(a, b)| format!("{:?}", a.op) != format!("{:?}", b.op));
    if let Some((at, _)) = differs.next() {
        return Err(at.span);
    }
    if first.code.len() != second.code.len() {
        return Err(first.code.last().map_or(Span::default(), |at| at.span));
    }
    test.program.threads.truncate(1);
    let thread = &test.program.threads[0];
    let arguments = arguments
        .into_iter()
        .filter(|name| {
            let register = thread.register(name.strip_prefix('%').unwrap_or(name));
            register.is_some_and(|r| matches!(thread.regs[usize::from(r.0)].init, Init::Int(_)))
        })
        .collect();
    Ok(Form {
        test,
        range,
        warp,
        arguments,
        assume,
        limit: None,
        sizes: Vec::new(),
        targets: Vec::new(),
    })
}
