//! The interface of all devices, common to all runtimes.
//!
//! # Invariants
//! - Waiting for a launch always ends.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use crate::launch::{Buffers, LaunchGrid};
use crate::trouble::Trouble;
use program::dialect::Runtime;

/// The properties of a device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The runtime that knows it.
    pub runtime: Runtime,
    /// Its number among all devices of that runtime.
    pub number: usize,
    /// The name that its vendor gave it.
    pub name: String,
    /// The platform that it belongs to.
    pub platform: String,
    /// The version of its driver.
    pub driver: String,
    /// The version of its runtime's language.
    pub version: String,
    /// The number of work-groups that it runs at once, by its own account.
    pub units: u32,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceInfo {
            number,
            name,
            platform,
            driver,
            ..
        } = self;
        write!(
            f,
            "{}:{number} {name} ({platform}, driver {driver})",
            word(self.runtime)
        )
    }
}

/// The name of a runtime for `--on`.
pub fn word(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Cuda => "cuda",
        Runtime::OpenCl => "opencl",
    }
}

/// A device.
pub trait Device: Send {
    /// The properties of the device.
    fn about(&self) -> &DeviceInfo;

    /// Builds a kernel.
    ///
    /// # Errors
    /// [`Trouble`], if its compiler does not take it, or if the device fails.
    fn build(&self, source: &str) -> Result<Box<dyn Kernel + '_>, Trouble>;
}

/// A kernel on a device.
pub trait Kernel {
    /// Launches the kernel, and returns its memory and its results.
    ///
    /// # Errors
    /// [`Trouble::Failed`].
    fn launch(
        &mut self,
        given: &Buffers,
        grid: &LaunchGrid,
    ) -> Result<(Vec<u8>, Vec<i64>), Trouble>;
}

/// A longer launch has hung: a normal one takes a thousandth of this.
const LONGEST: Duration = Duration::from_secs(60);

/// Waits for a launch, up to the limit; `ended` says whether it is through.
pub(crate) fn wait(mut ended: impl FnMut() -> Result<bool, Trouble>) -> Result<(), Trouble> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    while !ended()? {
        if start.elapsed() > LONGEST {
            return Err(Trouble::Failed(format!(
                "a launch did not end within {} s",
                LONGEST.as_secs()
            )));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    Ok(())
}
