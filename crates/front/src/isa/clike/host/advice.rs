//! Calls that a program has and a test has not: what a test says instead.
//!
//! # Invariants
//! - A call that the table of calls has is none of these: it is looked for there first.

/// How names of calls begin, or go on to their end, and what a test says in their place.
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
    (&["cudaStreamAddCallback"], "use `cudaLaunchHostFunc(s, f)`"),
    (
        &["cudaMemset", "cudaMemcpy2D", "cudaMemcpyPeer"],
        "let a kernel write the memory, or use `cudaMemcpyAsync`",
    ),
    (
        &["clEnqueueNativeKernel"],
        "what it orders is left to implementations; use a callback or a kernel",
    ),
    (
        &["create_user_event", "set_user_event_status"],
        "user events of kernels are not supported; use wait lists of `enqueue_kernel`",
    ),
];

/// What a test says instead of a call.
pub(super) fn instead_of(call: &str) -> Option<&'static str> {
    INSTEAD
        .iter()
        .find(|(names, _)| names.iter().any(|n| call.starts_with(n)))
        .map(|(_, advice)| *advice)
}
