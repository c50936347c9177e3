//! Host programs: ordering rules, waits that never end, runs compared with the launch graph,
//! kernels in PTX, and kernels that enqueue kernels.

mod device_enqueue;
mod opencl;
mod ptx;
mod rules;
mod runs;
