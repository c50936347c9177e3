//! GPUs behind the driver's library. The program looks for it at the first use: nothing is linked,
//! and no toolkit is needed.
//!
//! # Invariants
//! - Memory that an unfinished launch may still write to is never freed.
//!
//! # Sources
//! - CUDA Driver API, *Device Management*, *Primary Context Management*, *Module Management*,
//!   *Memory Management*, *Execution Control*.

#![expect(
    unsafe_code,
    reason = "calls of a driver are; each says why it is sound"
)]

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::result::{self, DriverError, ctx, module, primary_ctx};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};

use crate::device::{Device, DeviceInfo, Kernel, wait};
use crate::launch::{Buffers, LaunchGrid};
use crate::trouble::Trouble;
use program::dialect::Runtime;

/// A GPU.
struct Gpu {
    about: DeviceInfo,
    device: sys::CUdevice,
    /// Whether a launch did not end: later launches then never begin.
    lost: AtomicBool,
}

/// All GPUs, in the order of the driver.
///
/// # Errors
/// [`Trouble::Failed`], if there is no driver, or if it fails.
pub fn devices() -> Result<Vec<Box<dyn Device>>, Trouble> {
    // SAFETY: loading a library runs its initialisation; that of the driver has no visible effect
    // here.
    if !unsafe { sys::is_culib_present() } {
        let why = "no CUDA driver was found: its library `libcuda` is missing";
        return Err(Trouble::Failed(why.into()));
    }
    match result::init() {
        Ok(()) => {}
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok(Vec::new()),
        Err(error) => return Err(failed("the driver", error)),
    }
    let mut version = 0;
    // SAFETY: the call writes the number to a valid place.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(|e| failed("version", e))?;
    let count = result::device::get_count().map_err(|e| failed("devices", e))?;
    let gpu = |number: i32| -> Result<Box<dyn Device>, DriverError> {
        let device = result::device::get(number)?;
        // SAFETY: the device is one of the driver's.
        let told = |what| unsafe { result::device::get_attribute(device, what) };
        let major = told(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = told(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let units = told(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let about = DeviceInfo {
            runtime: Runtime::Cuda,
            number: number as usize,
            name: result::device::get_name(device)?,
            platform: "CUDA".into(),
            driver: format!("{}.{}", version / 1000, version % 1000 / 10),
            version: format!("sm_{major}{minor}"),
            units: units.max(1) as u32,
        };
        Ok(Box::new(Gpu {
            about,
            device,
            lost: AtomicBool::new(false),
        }))
    };
    (0..count)
        .map(|number| gpu(number).map_err(|e| failed("devices", e)))
        .collect()
}

fn failed(what: &str, error: DriverError) -> Trouble {
    let name = error.error_name().map_or_else(
        |_| format!("{:?}", error.0),
        |name| name.to_string_lossy().into(),
    );
    let text = error.error_string().map_or_else(
        |_| String::new(),
        |text| format!(", {}", text.to_string_lossy()),
    );
    Trouble::Failed(format!("CUDA: {what}: {name}{text}"))
}

impl Device for Gpu {
    fn about(&self) -> &DeviceInfo {
        &self.about
    }

    fn build(&self, source: &str) -> Result<Box<dyn Kernel + '_>, Trouble> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(Trouble::Failed(
                "the device does not answer any more".into(),
            ));
        }
        // SAFETY: the device is one of the driver's; its context lives as long as the process.
        let context =
            unsafe { primary_ctx::retain(self.device) }.map_err(|e| failed("context", e))?;
        // SAFETY: that context was just made.
        unsafe { ctx::set_current(context) }.map_err(|e| failed("context", e))?;
        let module = load(source)?;
        // SAFETY: the module was just loaded.
        let function = unsafe { module::get_function(module, c"test".into()) }
            .map_err(|e| failed("kernel", e))?;
        Ok(Box::new(GpuKernel {
            lost: &self.lost,
            context,
            module,
            function,
        }))
    }
}

/// Compiles a module.
fn load(source: &str) -> Result<sys::CUmodule, Trouble> {
    let text =
        CString::new(source).map_err(|_| Trouble::Refused("its name has a zero byte".into()))?;
    let mut log = [0u8; 4096];
    let mut options = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values: [*mut c_void; 2] = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(log.len()),
    ];
    let mut module = ptr::null_mut();
    // SAFETY: the text ends with a zero, there are as many options as values, and the log has the
    // length given.
    let done = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match done.result() {
        Ok(()) => Ok(module),
        // This device or its driver does not accept the text.
        Err(DriverError(
            error @ (CUresult::CUDA_ERROR_INVALID_PTX
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU),
        )) => {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]);
            let said = log
                .lines()
                .find(|line| line.contains("error") || line.contains("fatal"));
            let why = said.map_or_else(|| format!("{error:?}"), |line| line.trim().to_owned());
            Err(Trouble::Refused(format!(
                "the compiler of the device refuses the kernel: {why}"
            )))
        }
        Err(error) => Err(failed("module", error)),
    }
}

/// A kernel on a GPU.
struct GpuKernel<'d> {
    lost: &'d AtomicBool,
    context: sys::CUcontext,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl Drop for GpuKernel<'_> {
    fn drop(&mut self) {
        if !self.lost.load(Ordering::Relaxed) {
            // SAFETY: no launch of it still runs.
            _ = unsafe { module::unload(self.module) };
        }
    }
}

/// Memory of a GPU.
struct DeviceBuffer<'d> {
    lost: &'d AtomicBool,
    at: sys::CUdeviceptr,
}

impl<'d> DeviceBuffer<'d> {
    /// Memory with this content, at least one element.
    fn new<T: Copy + Default>(
        lost: &'d AtomicBool,
        content: &[T],
    ) -> Result<DeviceBuffer<'d>, Trouble> {
        let one = [T::default()];
        let content = if content.is_empty() { &one } else { content };
        // SAFETY: a context is current; the size is not 0.
        let at = unsafe { result::malloc_sync(size_of_val(content)) }
            .map_err(|e| failed("memory", e))?;
        let buffer = DeviceBuffer { lost, at };
        // SAFETY: the memory is as large as the content, which is copied before the call returns.
        unsafe { result::memcpy_htod_sync(at, content) }.map_err(|e| failed("copy", e))?;
        Ok(buffer)
    }

    fn read<T: Copy + Default>(&self, count: usize) -> Result<Vec<T>, Trouble> {
        let mut content = vec![T::default(); count];
        if count > 0 {
            // SAFETY: the memory is at least that large, and the call returns after the copy.
            unsafe { result::memcpy_dtoh_sync(&mut content, self.at) }
                .map_err(|e| failed("copy", e))?;
        }
        Ok(content)
    }
}

impl Drop for DeviceBuffer<'_> {
    fn drop(&mut self) {
        if !self.lost.load(Ordering::Relaxed) {
            // SAFETY: no launch with it still runs.
            _ = unsafe { result::free_sync(self.at) };
        }
    }
}

impl Kernel for GpuKernel<'_> {
    fn launch(
        &mut self,
        given: &Buffers,
        grid: &LaunchGrid,
    ) -> Result<(Vec<u8>, Vec<i64>), Trouble> {
        // SAFETY: the context is kept. Another thread may have built the kernel.
        unsafe { ctx::set_current(self.context) }.map_err(|e| failed("context", e))?;
        let memory = DeviceBuffer::new(self.lost, &given.memory)?;
        let meeting = DeviceBuffer::new(self.lost, &vec![0u32; given.meeting])?;
        let results = DeviceBuffer::new(self.lost, &vec![0i64; given.results])?;
        let order = DeviceBuffer::new(self.lost, &given.order)?;
        let mut addresses = [meeting.at, results.at, order.at];
        let mut numbers = given.numbers;
        // The address of the first copy of each object, and the distance of copies.
        let mut places: Vec<u64> = given
            .places
            .iter()
            .enumerate()
            .map(|(i, p)| if i % 2 == 0 { memory.at + p } else { *p })
            .collect();
        let mut arguments: Vec<*mut c_void> = Vec::new();
        arguments.extend(addresses.iter_mut().map(|a| ptr::from_mut(a).cast()));
        arguments.extend(numbers.iter_mut().map(|n| ptr::from_mut(n).cast()));
        arguments.extend(places.iter_mut().map(|p| ptr::from_mut(p).cast()));
        let (groups, size) = ((grid.groups as u32, 1, 1), (grid.size as u32, 1, 1));
        // SAFETY: the arguments match the kernel in number, order and type; it writes only within
        // its memory.
        unsafe {
            result::launch_kernel(
                self.function,
                groups,
                size,
                0,
                ptr::null_mut(),
                &mut arguments,
            )
            .map_err(|e| failed("launch", e))?;
        }
        wait(ended).inspect_err(|_| self.lost.store(true, Ordering::Relaxed))?;
        Ok((
            memory.read(given.memory.len())?,
            results.read(given.results)?,
        ))
    }
}

/// Whether every launch has ended.
fn ended() -> Result<bool, Trouble> {
    // SAFETY: the null stream belongs to the context.
    match unsafe { sys::cuStreamQuery(ptr::null_mut()) }.result() {
        Ok(()) => Ok(true),
        Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
        Err(error) => Err(failed("the launch", error)),
    }
}
