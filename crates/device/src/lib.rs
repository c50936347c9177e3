//! Tests on real devices: a program as a kernel, launched many times, its final states counted.
//!
//! | Module | What |
//! |---|---|
//! | `kernel` | what a kernel is made of, whatever language it is written in |
//! | `device` | what all devices have: their names, building and launching a kernel |
//! | `opencl` | the kernel in OpenCL C, and the devices behind the ICD loader |
//! | `cuda` | the kernel in PTX, and the GPUs behind the CUDA driver |
//! | `launch` | where the memory of each instance lies, what is drawn for a launch, and what came out of it |
//!
//! # How a launch is made
//! - An *instance* is one execution of the test, on memory of its own. A launch holds many of them.
//! - The work-groups of a test are played by a *team* of work-groups of the device, one each, which
//!   goes through its instances one after the other. Groups join a team in the order in which the
//!   device starts them, so that those of a team run side by side.
//! - Before each instance the groups of a team *meet*: each waits for the others, but never for
//!   long. Where they miss each other once, they do not wait again in that launch.
//! - What may matter and is nobody's business is drawn anew for each launch, from the seed: how far
//!   instances lie apart, in which order they are gone through, which group comes first, delays,
//!   how many groups do nothing but stress memory.
//!
//! # Invariants
//! - Whatever a launch does, it ends: every wait and every loop of the test is bounded. An instance
//!   with a thread that did not come to its end counts as stuck, and has no outcome.
//! - A program that cannot be built faithfully is refused with the reason.
//! - Every instance is counted: as an outcome or as stuck.

pub mod cuda;
mod device;
mod histogram;
mod kernel;
mod launch;
pub mod opencl;
mod trouble;

use std::time::{Duration, Instant};

pub use device::{About, Device, Kernel, word};
pub use histogram::Histogram;
pub use launch::{Buffers, Grid};
use launch::{Drawn, Layout, Shape};
use program::dialect::Runtime;
use program::litmus::LitmusTest;
use rand::SeedableRng;
use rand_pcg::Pcg64;
pub use trouble::Trouble;

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// At least so many instances, in launches that are equally large.
    pub instances: u64,
    /// Another seed draws other launches.
    pub seed: u64,
    /// No launch begins later than this after the first.
    pub time: Option<Duration>,
}

/// All devices of a runtime, in the order in which it names them.
///
/// # Errors
/// [`Trouble::Failed`], if there is no such runtime, or if a driver fails.
pub fn devices(runtime: Runtime) -> Result<Vec<Box<dyn Device>>, Trouble> {
    match runtime {
        Runtime::Cuda => cuda::devices(),
        Runtime::OpenCl => opencl::devices(),
    }
}

/// A kernel, ready to be launched.
pub struct Prepared<'t> {
    test: &'t LitmusTest,
    shape: Shape,
    /// How many threads each of its groups has.
    size: usize,
    /// Its text.
    pub source: String,
    /// A name for a file of it.
    pub file: &'static str,
}

impl Prepared<'_> {
    /// One instance of a kernel in PTX, as a test again; `None`: its memory is of no form that can
    /// be told.
    pub fn once(&self) -> Option<cuda::Once> {
        cuda::once(self.test, &self.shape, self.size)
    }
}

/// Makes a kernel of a test, for the devices of a runtime.
///
/// # Errors
/// [`Trouble::Refused`], if it cannot be run on such devices.
pub fn prepare(test: &LitmusTest, runtime: Runtime) -> Result<Prepared<'_>, Trouble> {
    match runtime {
        Runtime::Cuda => prepare_ptx(test, cuda::Warps::Whole),
        Runtime::OpenCl => {
            let shape = Shape::of(test).map_err(Trouble::Refused)?;
            let source = opencl::source(test, &shape).map_err(Trouble::Refused)?;
            Ok(Prepared {
                test,
                size: shape.group_size(),
                shape,
                source,
                file: "kernel.cl",
            })
        }
    }
}

/// Makes a kernel in PTX of a test.
///
/// # Errors
/// [`Trouble::Refused`], if it cannot be run on such devices.
pub fn prepare_ptx(test: &LitmusTest, warps: cuda::Warps) -> Result<Prepared<'_>, Trouble> {
    let shape = Shape::of(test).map_err(Trouble::Refused)?;
    let (source, size) = cuda::source(test, &shape, warps).map_err(Trouble::Refused)?;
    Ok(Prepared {
        test,
        size,
        shape,
        source,
        file: "kernel.ptx",
    })
}

/// Runs a test on a device; what was seen before a device fails is kept.
pub fn run(
    prepared: &Prepared<'_>,
    device: &dyn Device,
    options: &Options,
) -> (Histogram, Option<Trouble>) {
    let mut seen = Histogram::default();
    let trouble = go_on(prepared, device, options, &mut seen).err();
    (seen, trouble)
}

fn go_on(
    prepared: &Prepared<'_>,
    device: &dyn Device,
    options: &Options,
    seen: &mut Histogram,
) -> Result<(), Trouble> {
    let mut kernel = device.build(&prepared.source)?;
    let mut random = Pcg64::seed_from_u64(options.seed);
    let start = Instant::now();
    while seen.instances() < options.instances
        && options.time.is_none_or(|time| start.elapsed() < time)
        && stop::requested().is_none()
    {
        let left = options.instances - seen.instances();
        let drawn = Drawn::draw(&prepared.shape, device.about().units, left, &mut random);
        let layout = Layout::new(&prepared.shape, &drawn);
        let began = Instant::now();
        let grid = drawn.grid(prepared.shape.groups.len(), prepared.size);
        let (memory, results) = kernel.launch(&layout.buffers(), &grid)?;
        seen.busy += began.elapsed();
        seen.launches += 1;
        layout.count(prepared.test, &memory, &results, seen);
    }
    Ok(())
}
