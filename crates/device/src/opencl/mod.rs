//! OpenCL: the kernel's text, and the devices behind the ICD loader.

mod runtime;
mod source;

pub use runtime::devices;
pub(crate) use source::source;
