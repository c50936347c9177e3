//! Advises how a test replaces runtime calls of a program that tests do not have.
//!
//! # Invariants
//! - The lookup in the table of calls comes first, so no call of that table gets advice.

/// The beginnings of call names, and the replacement of these calls in a test.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &[
            "cudaMalloc",
            "cudaFree",
            "cudaHostAlloc",
            "cudaHostRegister",
            "clCreateBuffer",
            "clSVMAlloc",
            "clSVMFree",
        ],
        "memory is declared in `[memory]`, with its `kind`",
    ),
    (
        &["clReleaseMemObject", "clRetainMemObject"],
        "memory of a test lives as long as the program",
    ),
    (
        &["cudaStreamCreate"],
        "streams are declared, as in `streams = { s = \"non-blocking\" }`",
    ),
    (
        &["cudaEventCreate"],
        "events are declared, as in `events = [\"e\"]`",
    ),
    (
        &["clCreateCommandQueue"],
        "queues are declared, as in `queues = { q = \"out-of-order\" }`",
    ),
    (
        &["clCreateProgramWithBuiltInKernels"],
        "use a kernel of the test: \"the semantics of a built-in kernel are defined outside of \
         OpenCL\" (OpenCL API, Execution Model, Categories of Kernels)",
    ),
    (
        &[
            "clCreateContext",
            "clCreateProgram",
            "clBuildProgram",
            "clCreateKernel",
        ],
        "kernels are the test's `[[kernel]]`s",
    ),
    (&["clSetKernelArg"], "kernels name memory themselves"),
    (
        &["cudaLaunchKernel", "cudaLaunchCooperativeKernel"],
        "a launch is written `K<<<grid, block, 0, stream>>>();`",
    ),
    (
        &["clGetEventProfilingInfo"],
        "ask for states with `clGetEventInfo`: a counter is \"the current device time counter in \
         nanoseconds\" (OpenCL API, clGetEventProfilingInfo), a number that no rule fixes",
    ),
    (
        &["capture_event_profiling_info"],
        "let a child wait for the event: the values are \"the elapsed time\" of a command \"in \
         nanoseconds\" (OpenCL C, capture_event_profiling_info), numbers that no rule fixes",
    ),
    (
        &["clCreateSubBuffer"],
        "name a part of the memory, as in `&x[2]`; a `.cl` file with `main` may call it",
    ),
    (&["cudaStreamAddCallback"], "use `cudaLaunchHostFunc(s, f)`"),
    (
        &["cudaMemcpy2D", "cudaMemcpyPeer"],
        "let a kernel write the memory, or use `cudaMemcpyAsync`",
    ),
    (
        &["clEnqueueNativeKernel"],
        "use a callback or a kernel: \"the semantics of native kernels are \
         implementation-defined\" (OpenCL API, Execution Model, Categories of Kernels)",
    ),
];

/// The replacement of a call in a test.
pub(super) fn instead_of(call: &str) -> Option<&'static str> {
    INSTEAD
        .iter()
        .find(|(names, _)| names.iter().any(|n| call.starts_with(n)))
        .map(|(_, advice)| *advice)
}
