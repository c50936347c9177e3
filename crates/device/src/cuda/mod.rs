//! GPUs behind the CUDA driver.

mod once;
mod runtime;
mod skeleton;
mod source;

pub use once::Once;
pub(crate) use once::once;
pub use runtime::devices;
pub use source::WarpFill;
pub(crate) use source::source;
