//! Devices behind the ICD loader. The program looks for it at the first use: nothing is linked.
//!
//! # Sources
//! - OpenCL API specification, *Querying Devices*, *Executing Kernels*.

#![expect(
    unsafe_code,
    reason = "the crate marks every call that hands memory to a driver"
)]

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{self, CL_DEVICE_TYPE_ALL};
use opencl3::error_codes::{CL_DEVICE_NOT_FOUND, ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::kernel::{ExecuteKernel, Kernel as Compiled};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE};
use opencl3::platform;
use opencl3::program::Program;

use crate::device::{Device, DeviceInfo, Kernel, wait};
use crate::launch::{Buffers, LaunchGrid};
use crate::trouble::Trouble;
use program::dialect::Runtime;

/// `CL_PLATFORM_NOT_FOUND_KHR`: the loader knows no platform.
const NO_PLATFORM: i32 = -1001;

/// A device.
struct ClDevice {
    about: DeviceInfo,
    device: device::Device,
    /// Whether a launch did not end: later launches then never begin.
    lost: AtomicBool,
}

/// All devices, in the order in which the loader names them.
///
/// # Errors
/// [`Trouble::Failed`], if there is no loader, or if a driver fails.
pub fn devices() -> Result<Vec<Box<dyn Device>>, Trouble> {
    let platforms = match platform::get_platforms() {
        Ok(platforms) => platforms,
        Err(ClError(NO_PLATFORM)) => return Ok(Vec::new()),
        Err(error) => return Err(failed("platforms", error)),
    };
    let mut all: Vec<Box<dyn Device>> = Vec::new();
    for platform in platforms {
        let ids = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => ids,
            Err(ClError(CL_DEVICE_NOT_FOUND)) => continue,
            Err(error) => return Err(failed("devices", error)),
        };
        for id in ids {
            let device = device::Device::new(id);
            fn told(text: opencl3::Result<String>) -> String {
                text.map(|t| t.trim().to_owned()).unwrap_or_default()
            }
            let about = DeviceInfo {
                runtime: Runtime::OpenCl,
                number: all.len(),
                name: told(device.name()),
                platform: told(platform.name()),
                driver: told(device.driver_version()),
                version: told(device.version()),
                units: device.max_compute_units().unwrap_or(1).max(1),
            };
            all.push(Box::new(ClDevice {
                about,
                device,
                lost: AtomicBool::new(false),
            }));
        }
    }
    Ok(all)
}

fn failed(what: &str, error: ClError) -> Trouble {
    Trouble::Failed(match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => {
            "no OpenCL loader was found: `libOpenCL` is missing (Debian: \
             `ocl-icd-libopencl1`, and a driver such as `pocl-opencl-icd`)"
                .into()
        }
        _ => format!("OpenCL: {what}: {error}"),
    })
}

impl Device for ClDevice {
    fn about(&self) -> &DeviceInfo {
        &self.about
    }

    fn build(&self, source: &str) -> Result<Box<dyn Kernel + '_>, Trouble> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(Trouble::Failed(
                "the device does not answer any more".into(),
            ));
        }
        let context = Context::from_device(&self.device).map_err(|e| failed("context", e))?;
        let mut program =
            Program::create_from_source(&context, source).map_err(|e| failed("program", e))?;
        // OpenCL C of version 2 has all atomic functions; version 3 has those that the device
        // supports.
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
            // Drops the place, which is in a file of the driver's.
            let why = error
                .and_then(|line| line.rsplit(": ").next())
                .unwrap_or("it does not say why")
                .trim();
            return Err(Trouble::Refused(format!(
                "the compiler of the device refuses the kernel: {why}"
            )));
        }
        let queue = CommandQueue::create_default_with_properties(&context, 0, 0)
            .map_err(|e| failed("queue", e))?;
        let compiled = Compiled::create(&program, "test").map_err(|e| failed("kernel", e))?;
        Ok(Box::new(ClKernel {
            lost: &self.lost,
            context,
            queue,
            compiled,
        }))
    }
}

/// A kernel on a device.
struct ClKernel<'d> {
    lost: &'d AtomicBool,
    context: Context,
    queue: CommandQueue,
    compiled: Compiled,
}

impl Kernel for ClKernel<'_> {
    fn launch(
        &mut self,
        given: &Buffers,
        grid: &LaunchGrid,
    ) -> Result<(Vec<u8>, Vec<i64>), Trouble> {
        let memory = self.buffer(&given.memory)?;
        let places = self.buffer(&given.places)?;
        let meeting = self.buffer(&vec![0u32; given.meeting])?;
        let results = self.buffer(&vec![0i64; given.results])?;
        let order = self.buffer(&given.order)?;
        let mut call = ExecuteKernel::new(&self.compiled);
        // SAFETY: the arguments match the kernel in number, order and type; the kernel writes only
        // within the buffers.
        let event = unsafe {
            call.set_arg(&memory)
                .set_arg(&places)
                .set_arg(&meeting)
                .set_arg(&results)
                .set_arg(&order);
            for number in &given.numbers {
                call.set_arg(number);
            }
            call.set_global_work_size(grid.groups * grid.size)
                .set_local_work_size(grid.size)
                .enqueue_nd_range(&self.queue)
                .map_err(|e| failed("launch", e))?
        };
        self.queue.flush().map_err(|e| failed("flush", e))?;
        wait(|| ended(&event)).inspect_err(|_| self.lost.store(true, Ordering::Relaxed))?;
        Ok((
            self.read(&memory, given.memory.len())?,
            self.read(&results, given.results)?,
        ))
    }
}

impl ClKernel<'_> {
    fn buffer<T>(&self, content: &[T]) -> Result<Buffer<T>, Trouble> {
        // At least one element: there are no empty buffers, and no code reads this element.
        let (flags, at) = match content {
            [] => (CL_MEM_READ_WRITE, ptr::null_mut()),
            some => (
                CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                some.as_ptr().cast_mut().cast(),
            ),
        };
        // SAFETY: the content is copied before the call returns, and has the length given.
        unsafe { Buffer::create(&self.context, flags, content.len().max(1), at) }
            .map_err(|e| failed("buffer", e))
    }

    fn read<T: Copy + Default>(&self, buffer: &Buffer<T>, count: usize) -> Result<Vec<T>, Trouble> {
        let mut content = vec![T::default(); count];
        if count > 0 {
            // SAFETY: the call blocks until the copy is complete, and the buffer is at least that
            // long.
            unsafe {
                self.queue
                    .enqueue_read_buffer(buffer, 1, 0, &mut content, &[])
            }
            .map_err(|e| failed("read", e))?;
        }
        Ok(content)
    }
}

/// Whether a launch has ended.
fn ended(event: &Event) -> Result<bool, Trouble> {
    match event
        .command_execution_status()
        .map_err(|e| failed("status", e))?
        .0
    {
        CL_COMPLETE => Ok(true),
        status if status < 0 => Err(failed("the launch", ClError(status))),
        _ => Ok(false),
    }
}
