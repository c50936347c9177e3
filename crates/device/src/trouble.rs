//! The reasons why a test did not run on a device.

use thiserror::Error;

/// The reason why a test did not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// Such devices cannot run the test.
    #[error("{0}")]
    Refused(String),
    /// The device or its driver failed.
    #[error("{0}")]
    Failed(String),
}
