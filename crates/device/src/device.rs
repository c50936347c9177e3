//! What all devices have, whoever's runtime knows them.
//!
//! # Invariants
//! - A launch is not waited for without end.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use crate::launch::{Buffers, Grid};
use crate::trouble::Trouble;
use program::dialect::Runtime;

/// What is told of a device.
#[derive(Clone, Debug)]
pub struct About {
    /// Whose runtime knows it.
    pub runtime: Runtime,
    /// Its number among all devices of that runtime.
    pub number: usize,
    /// What its vendor calls it.
    pub name: String,
    /// The platform that it belongs to.
    pub platform: String,
    /// The version of its driver.
    pub driver: String,
    /// Which version of its runtime's language it has.
    pub version: String,
    /// How many work-groups it works on at once, as far as it says.
    pub units: u32,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About {
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

/// A runtime as `--on` names it.
pub fn word(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Cuda => "cuda",
        Runtime::OpenCl => "opencl",
    }
}

/// A device.
pub trait Device: Send {
    /// What is told of it.
    fn about(&self) -> &About;

    /// Builds a kernel.
    ///
    /// # Errors
    /// [`Trouble`], if its compiler does not take it, or if the device fails.
    fn build(&self, source: &str) -> Result<Box<dyn Kernel + '_>, Trouble>;
}

/// A kernel on a device.
pub trait Kernel {
    /// Launches it, and gives its memory and its results back.
    ///
    /// # Errors
    /// [`Trouble::Failed`].
    fn launch(&mut self, given: &Buffers, grid: &Grid) -> Result<(Vec<u8>, Vec<i64>), Trouble>;
}

/// A launch that takes longer has hung: it is a thousand times what one takes.
const LONGEST: Duration = Duration::from_secs(60);

/// Waits for a launch, but not for ever; `ended` tells whether it is through.
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
