//! Devices behind the ICD loader, which is looked for when first asked for: nothing here is linked.
//!
//! # Sources
//! - OpenCL API specification, *Querying Devices*, *Executing Kernels*.

#![expect(unsafe_code, reason = "the crate marks every call that hands memory to a driver")]

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{self, CL_DEVICE_TYPE_ALL};
use opencl3::error_codes::{CL_DEVICE_NOT_FOUND, ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::kernel::{ExecuteKernel, Kernel as Compiled};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE};
use opencl3::platform;
use opencl3::program::Program;

use crate::launch::{Buffers, Grid};
use crate::trouble::Trouble;

/// `CL_PLATFORM_NOT_FOUND_KHR`: the loader knows no platform.
const NO_PLATFORM: i32 = -1001;

/// A launch that takes longer has hung: it is a thousand times what one takes.
const LONGEST: Duration = Duration::from_secs(60);

/// A device.
pub struct Device {
    /// Its number among all devices.
    pub number: usize,
    /// What its vendor calls it.
    pub name: String,
    /// The platform that it belongs to.
    pub platform: String,
    /// The version of its driver.
    pub driver: String,
    /// Which OpenCL it has.
    pub version: String,
    units: u32,
    device: device::Device,
    /// A launch did not end: what comes behind it never begins.
    lost: AtomicBool,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opencl:{} {} ({}, driver {})", self.number, self.name, self.platform, self.driver)
    }
}

/// All devices, in the order in which the loader names them.
///
/// # Errors
/// [`Trouble::Failed`], if there is no loader, or if a driver fails.
pub fn devices() -> Result<Vec<Device>, Trouble> {
    let platforms = match platform::get_platforms() {
        Ok(platforms) => platforms,
        Err(ClError(NO_PLATFORM)) => return Ok(Vec::new()),
        Err(error) => return Err(failed("platforms", error)),
    };
    let mut all = Vec::new();
    for platform in platforms {
        let ids = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => ids,
            Err(ClError(CL_DEVICE_NOT_FOUND)) => continue,
            Err(error) => return Err(failed("devices", error)),
        };
        for id in ids {
            let device = device::Device::new(id);
            let told = |text: opencl3::Result<String>| text.map(|t| t.trim().to_owned()).unwrap_or_default();
            all.push(Device {
                number: all.len(),
                name: told(device.name()),
                platform: told(platform.name()),
                driver: told(device.driver_version()),
                version: told(device.version()),
                units: device.max_compute_units().unwrap_or(1).max(1),
                device,
                lost: AtomicBool::new(false),
            });
        }
    }
    Ok(all)
}

fn failed(what: &str, error: ClError) -> Trouble {
    Trouble::Failed(match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => {
            "there is no OpenCL here: its loader, `libOpenCL`, was not found (Debian: `ocl-icd-libopencl1`, and a \
             driver such as `pocl-opencl-icd`)"
                .into()
        }
        _ => format!("OpenCL: {what}: {error}"),
    })
}

impl Device {
    /// How many work-groups it works on at once, as far as it says.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Builds a kernel.
    pub(crate) fn build(&self, source: &str) -> Result<Kernel<'_>, Trouble> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(Trouble::Failed("the device does not answer any more".into()));
        }
        let context = Context::from_device(&self.device).map_err(|e| failed("context", e))?;
        let mut program = Program::create_from_source(&context, source).map_err(|e| failed("program", e))?;
        // OpenCL C of version 2 has the atomic functions; of version 3, as far as the device has them.
        let mut logs = Vec::new();
        for version in ["-cl-std=CL3.0", "-cl-std=CL2.0"] {
            match program.build(&[self.device.id()], version) {
                Ok(()) => {
                    logs.clear();
                    break;
                }
                Err(_) => logs.push(program.get_build_log(self.device.id()).unwrap_or_default()),
            }
        }
        if let Some(log) = logs.first() {
            let error = log.lines().find(|line| line.contains("error"));
            // Without the place in a file of the driver's.
            let why = error.and_then(|line| line.rsplit(": ").next()).unwrap_or("it does not say why").trim();
            return Err(Trouble::Refused(format!("the compiler of the device refuses the kernel: {why}")));
        }
        let queue =
            CommandQueue::create_default_with_properties(&context, 0, 0).map_err(|e| failed("queue", e))?;
        let compiled = Compiled::create(&program, "test").map_err(|e| failed("kernel", e))?;
        Ok(Kernel { lost: &self.lost, context, queue, compiled })
    }
}

/// A kernel on a device.
pub(crate) struct Kernel<'d> {
    lost: &'d AtomicBool,
    context: Context,
    queue: CommandQueue,
    compiled: Compiled,
}

impl Kernel<'_> {
    /// Launches it, and gives its memory and its results back.
    pub(crate) fn launch(&mut self, given: &Buffers, grid: &Grid) -> Result<(Vec<u8>, Vec<i64>), Trouble> {
        let memory = self.buffer(&given.memory)?;
        let places = self.buffer(&given.places)?;
        let meeting = self.buffer(&vec![0u32; given.meeting])?;
        let results = self.buffer(&vec![0i64; given.results])?;
        let order = self.buffer(&given.order)?;
        let mut call = ExecuteKernel::new(&self.compiled);
        // SAFETY: the arguments are those of the kernel, in number, order and type; the kernel writes within the buffers.
        let event = unsafe {
            call.set_arg(&memory).set_arg(&places).set_arg(&meeting).set_arg(&results).set_arg(&order);
            for number in &given.numbers {
                call.set_arg(number);
            }
            call.set_global_work_size(grid.groups * grid.size)
                .set_local_work_size(grid.size)
                .enqueue_nd_range(&self.queue)
                .map_err(|e| failed("launch", e))?
        };
        self.queue.flush().map_err(|e| failed("flush", e))?;
        if let Err(trouble) = wait(&event) {
            self.lost.store(true, Ordering::Relaxed);
            return Err(trouble);
        }
        Ok((self.read(&memory, given.memory.len())?, self.read(&results, given.results)?))
    }

    fn buffer<T>(&self, content: &[T]) -> Result<Buffer<T>, Trouble> {
        // One element at least: there are no empty buffers, and the first of them is never read.
        let (flags, at) = match content {
            [] => (CL_MEM_READ_WRITE, ptr::null_mut()),
            some => (CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, some.as_ptr().cast_mut().cast()),
        };
        // SAFETY: the content is copied before the call returns, and is as long as is said.
        unsafe { Buffer::create(&self.context, flags, content.len().max(1), at) }.map_err(|e| failed("buffer", e))
    }

    fn read<T: Copy + Default>(&self, buffer: &Buffer<T>, count: usize) -> Result<Vec<T>, Trouble> {
        let mut content = vec![T::default(); count];
        if count > 0 {
            // SAFETY: the call blocks until all is copied, and the buffer is at least that long.
            unsafe { self.queue.enqueue_read_buffer(buffer, 1, 0, &mut content, &[]) }
                .map_err(|e| failed("read", e))?;
        }
        Ok(content)
    }
}

/// Waits for a launch, but not for ever.
fn wait(event: &Event) -> Result<(), Trouble> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        let status = event.command_execution_status().map_err(|e| failed("status", e))?.0;
        if status == CL_COMPLETE {
            return Ok(());
        }
        if status < 0 {
            return Err(failed("the launch", ClError(status)));
        }
        if start.elapsed() > LONGEST {
            return Err(Trouble::Failed(format!("a launch did not end within {} s", LONGEST.as_secs())));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}
