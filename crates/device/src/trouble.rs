//! Why a test was not run on a device.

use thiserror::Error;

/// Why a test was not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// The test cannot be run on such devices.
    #[error("{0}")]
    Refused(String),
    /// The device or its driver failed.
    #[error("{0}")]
    Failed(String),
}
