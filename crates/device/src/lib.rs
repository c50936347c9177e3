//! Runs tests on real devices: turns a program into a kernel, launches it many times, and counts
//! its final states.
//!
//! | Module | Contents |
//! |---|---|
//! | `kernel` | the parts of a kernel, for all languages |
//! | `device` | the interface of all devices: properties, building and launching a kernel |
//! | `opencl` | the kernel in OpenCL C, and the devices behind the ICD loader |
//! | `cuda` | the kernel in PTX, and the GPUs behind the CUDA driver |
//! | `launch` | the memory of each instance, the random parameters of a launch, and its results |
//!
//! # How a launch works
//! - An *instance* is one execution of the test, on separate memory. A launch holds many of them.
//! - A *team* of work-groups of the device runs the work-groups of a test, one each, and processes
//!   its instances one after the other. Groups join a team in the order in which the device starts
//!   them, so that the groups of a team run side by side.
//! - Before each instance the groups of a team *meet*: each waits for the others, but never for
//!   long. After a miss they do not wait again in that launch.
//! - The seed draws anew for each launch everything that may matter and that the test does not fix:
//!   the distance of instances, their order, the group that comes first, delays, and the number of
//!   groups that only stress memory.
//!
//! # Invariants
//! - Every launch ends: every wait and every loop of the test is bounded. An instance with a thread
//!   that did not come to its end counts as stuck, and has no outcome.
//! - A program that has no faithful kernel is refused with the reason.
//! - Every instance is counted: as an outcome or as stuck.

pub mod cuda;
mod device;
mod histogram;
mod kernel;
mod launch;
pub mod opencl;
mod trouble;

use std::time::{Duration, Instant};

pub use device::{Device, DeviceInfo, Kernel, word};
pub use histogram::Histogram;
pub use launch::{Buffers, LaunchGrid};
use launch::{InstanceLayout, KernelShape, LaunchDraw};
use program::dialect::Runtime;
use program::litmus::LitmusTest;
use rand::SeedableRng;
use rand_pcg::Pcg64;
pub use trouble::Trouble;

/// The extent of a run on a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// The smallest number of instances, in launches of equal size.
    pub instances: u64,
    /// The seed; another one draws other launches.
    pub seed: u64,
    /// The time after the first launch from which on no launch begins.
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
pub struct TestKernel<'t> {
    test: &'t LitmusTest,
    shape: KernelShape,
    /// The number of threads of each of its groups.
    size: usize,
    /// Its text.
    pub source: String,
    /// A name for a file with the source.
    pub file: &'static str,
}

impl TestKernel<'_> {
    /// A single instance of a kernel in PTX, as a test again; `None` if its memory has no form for
    /// that.
    pub fn once(&self) -> Option<cuda::Once> {
        cuda::once(self.test, &self.shape, self.size)
    }
}

/// Makes a kernel of a test, for the devices of a runtime.
///
/// # Errors
/// [`Trouble::Refused`], if such devices cannot run it.
pub fn prepare(test: &LitmusTest, runtime: Runtime) -> Result<TestKernel<'_>, Trouble> {
    match runtime {
        Runtime::Cuda => prepare_ptx(test, cuda::WarpFill::Whole),
        Runtime::OpenCl => {
            let shape = KernelShape::of(test).map_err(Trouble::Refused)?;
            let source = opencl::source(test, &shape).map_err(Trouble::Refused)?;
            Ok(TestKernel {
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
/// [`Trouble::Refused`], if such devices cannot run it.
pub fn prepare_ptx(test: &LitmusTest, warps: cuda::WarpFill) -> Result<TestKernel<'_>, Trouble> {
    let shape = KernelShape::of(test).map_err(Trouble::Refused)?;
    let (source, size) = cuda::source(test, &shape, warps).map_err(Trouble::Refused)?;
    Ok(TestKernel {
        test,
        size,
        shape,
        source,
        file: "kernel.ptx",
    })
}

/// Runs a test on a device; results before a failure of the device are kept.
pub fn run(
    prepared: &TestKernel<'_>,
    device: &dyn Device,
    options: &DeviceOptions,
) -> (Histogram, Option<Trouble>) {
    let mut seen = Histogram::default();
    let trouble = go_on(prepared, device, options, &mut seen).err();
    (seen, trouble)
}

fn go_on(
    prepared: &TestKernel<'_>,
    device: &dyn Device,
    options: &DeviceOptions,
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
        let drawn = LaunchDraw::draw(&prepared.shape, device.about().units, left, &mut random);
        let layout = InstanceLayout::new(&prepared.shape, &drawn);
        let began = Instant::now();
        let grid = drawn.grid(prepared.shape.groups.len(), prepared.size);
        let (memory, results) = kernel.launch(&layout.buffers(), &grid)?;
        seen.busy += began.elapsed();
        seen.launches += 1;
        layout.count(prepared.test, &memory, &results, seen);
    }
    Ok(())
}
