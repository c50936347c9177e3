//! Whole programs as input: `main` of a `.cu` file, which launches kernels with streams and events.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Said, fencepost};

/// A program that is right, and its twin with one bug: the line that is told, the kind of error, and
/// the section of CUDA's documentation that is named.
const TWINS: &[(&str, usize, &str, &str)] = &[
    ("copy_back", 33, "race", "API synchronization behavior"),
    (
        "event_between_streams",
        6,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    ("event_recorded_early", 6, "race", "cudaEventRecord"),
    ("event_waited_early", 6, "race", "cudaStreamWaitEvent"),
    (
        "event_reused",
        6,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "default_stream",
        6,
        "race",
        "Stream synchronization behavior",
    ),
    (
        "default_stream_between",
        6,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "memset_async",
        2,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "memset_default_stream",
        1,
        "race",
        "Stream synchronization behavior",
    ),
    (
        "pageable_overwritten",
        18,
        "race",
        "API synchronization behavior",
    ),
    (
        "pageable_staged",
        15,
        "race",
        "API synchronization behavior",
    ),
    (
        "pageable_in_flight",
        6,
        "race",
        "Stream synchronization behavior",
    ),
    (
        "pinned_overwritten",
        20,
        "race",
        "API synchronization behavior",
    ),
    (
        "managed_read",
        10,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    (
        "managed_write",
        12,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    ("zero_copy", 9, "race", "Asynchronous Concurrent Execution"),
    ("host_function", 25, "race", "cudaLaunchHostFunc"),
    (
        "host_function_other_stream",
        11,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "two_threads",
        19,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    (
        "threads_and_streams",
        3,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "event_query",
        17,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    (
        "stream_query",
        16,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    (
        "free_async",
        18,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "malloc_async",
        2,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    ("free_pinned", 17, "race", "API synchronization behavior"),
    ("free_heap", 8, "race", "API synchronization behavior"),
    ("stream_destroyed", 16, "lifetime", "cudaStreamDestroy"),
    ("event_destroyed", 17, "lifetime", "cudaEventDestroy"),
    ("use_after_free", 15, "lifetime", "Memory Management"),
    ("double_free", 9, "lifetime", "Memory Management"),
    ("use_after_free_async", 11, "lifetime", "Memory Management"),
    ("free_beside_thread", 3, "lifetime", "Memory Management"),
    ("thread_joined", 13, "lifetime", "thread.thread.destr"),
    (
        "double_buffer",
        2,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    ("chunks", 5, "race", "CUDA C++ Programming Guide, Streams"),
    (
        "wrong_stream",
        17,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    ("wrong_event", 21, "race", "cudaEventRecord"),
    (
        "per_thread_default",
        4,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "device_to_device",
        15,
        "race",
        "API synchronization behavior",
    ),
    ("fan_in", 6, "race", "CUDA C++ Programming Guide, Streams"),
    (
        "launch_call",
        14,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    ("graph", 6, "race", "cudaEventRecord"),
    (
        "graph_read",
        21,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    ("template_kernel", 5, "race", "no barrier between them"),
    ("loop_scope", 11, "race", "API synchronization behavior"),
    ("scan", 35, "race", "CUDA C++ Programming Guide, Streams"),
    ("cooperative", 8, "race", "nothing"),
    ("tiled_transpose", 29, "race", "no barrier between them"),
    (
        "block_reduction_float",
        22,
        "race",
        "no barrier between them",
    ),
    ("producer_consumer", 25, "race", "no barrier between them"),
    (
        "stencil_streams",
        7,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "graph_nodes",
        18,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
    (
        "cooperative_solver",
        12,
        "race",
        "no synchronization connects the blocks",
    ),
    ("hash_insert", 27, "race", "no barrier between them"),
    ("scan_three", 16, "race", "no barrier between them"),
    (
        "managed_flag",
        23,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    ("constants", 15, "race", "nothing orders the two"),
    ("matrix_2d", 25, "race", "API synchronization behavior"),
    (
        "host_atomic",
        14,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    (
        "registered",
        11,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    ("lambda_kernel", 15, "race", "no barrier between them"),
    (
        "stop_token",
        12,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    (
        "stop_callback",
        11,
        "race",
        "Asynchronous Concurrent Execution",
    ),
    ("stop_callback_end", 10, "race", "no `join`"),
    ("virtual_memory", 26, "lifetime", "Memory Management"),
    (
        "memory_pool",
        5,
        "race",
        "CUDA C++ Programming Guide, Streams",
    ),
];

/// The same of programs of OpenCL.
const OPENCL_TWINS: &[(&str, usize, &str, &str)] = &[
    ("convolution", 16, "race", "no barrier between them"),
    (
        "read_not_blocking",
        16,
        "race",
        "Host-side and Device-side Commands",
    ),
    (
        "out_of_order",
        2,
        "race",
        "clCreateCommandQueueWithProperties",
    ),
    (
        "two_queues",
        2,
        "race",
        "only events order commands of different queues",
    ),
    (
        "fill_and_copy",
        1,
        "race",
        "clCreateCommandQueueWithProperties",
    ),
    (
        "sub_buffers",
        7,
        "race",
        "OpenCL API specification, Execution Model: Synchronization",
    ),
    ("image", 11, "race", "clCreateCommandQueueWithProperties"),
    (
        "image_read",
        27,
        "race",
        "Host-side and Device-side Commands",
    ),
    (
        "image_copies",
        36,
        "race",
        "Host-side and Device-side Commands",
    ),
    (
        "rectangle",
        26,
        "race",
        "Host-side and Device-side Commands",
    ),
    ("pipe", 29, "launch-argument", "clCreatePipe"),
    ("host_pointer", 30, "undefined", "used unmapped"),
    ("release_memory", 17, "lifetime", "clReleaseMemObject"),
    ("release_queue", 18, "lifetime", "clReleaseCommandQueue"),
    ("release_event", 19, "lifetime", "clReleaseEvent"),
];

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/programs")
}

fn check(folder: &Path, arguments: &[&str]) -> Said {
    fencepost(folder, &[&["check", "--no-cache"], arguments].concat())
}

/// A folder with one program.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("p.cu"), text).expect("writable");
    folder
}

#[test]
fn each_program_is_right_and_its_twin_is_wrong_at_its_line() {
    twins(TWINS, "cu");
}

#[test]
fn each_program_of_opencl_is_right_and_its_twin_is_wrong_at_its_line() {
    twins(OPENCL_TWINS, "cl");
}

fn twins(all: &[(&str, usize, &str, &str)], ending: &str) {
    for (name, line, id, section) in all {
        let right = check(&programs(), &[&format!("{name}.{ending}")]);
        assert_eq!(
            (right.code, right.err.as_str()),
            (Some(0), ""),
            "{name}: {}",
            right.out
        );
        assert!(
            right
                .out
                .contains("1 race-free; no barrier divergence, no hang"),
            "{name}: {}",
            right.out
        );
        assert!(
            right.out.contains("nothing used after its end"),
            "{name}: {}",
            right.out
        );
        let file = format!("{name}.bug.{ending}");
        let wrong = check(&programs(), &[&file]);
        let said = wrong.out + &wrong.err;
        assert!(matches!(wrong.code, Some(1 | 2)), "{name}: {said}");
        let (place, error) = (format!("{file}:{line}:"), format!("error[{id}]"));
        for expected in [place.as_str(), &error, section] {
            assert!(said.contains(expected), "{name}: no `{expected}` in {said}");
        }
    }
}

#[test]
fn a_stop_callback_runs_once_and_in_any_order() {
    for name in ["stop_callback_once", "stop_callback_order"] {
        let right = check(&programs(), &[&format!("{name}.cu")]);
        assert_eq!(right.code, Some(0), "{name}: {}{}", right.out, right.err);
        let wrong = check(&programs(), &[&format!("{name}.bug.cu")]);
        let said = wrong.out + &wrong.err;
        assert!(said.contains("can end the program"), "{name}: {said}");
    }
}

#[test]
fn two_addresses_of_one_allocation_need_a_fence_of_aliases() {
    let right = fs::read_to_string(programs().join("virtual_alias.cu")).expect("a program");
    let wrong = right.replace("fence.proxy.alias", "fence.sc.sys");
    assert_ne!(right, wrong);
    for (text, code) in [(right, 0), (wrong, 3)] {
        let folder = folder(&text);
        let said = check(folder.path(), &["p.cu", "--model", "ptx"]);
        assert_eq!(said.code, Some(code), "{}{}", said.out, said.err);
    }
}

#[test]
fn a_status_that_is_polled_orders_nothing() {
    let right = check(&programs(), &["poll_status.cl"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    assert!(right.out.contains("3 race-free"), "{}", right.out);
    let wrong = check(&programs(), &["poll_status.bug.cl"]);
    assert_eq!(wrong.code, Some(1), "{}{}", wrong.out, wrong.err);
    assert!(wrong.out.contains("3 racy"), "{}", wrong.out);
}

#[test]
fn a_c_file_that_calls_opencl_is_a_program_whatever_its_ending() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(programs().join("sub_buffers.cl")).expect("a program");
    fs::write(folder.path().join("p.c"), text).expect("writable");
    let said = check(folder.path(), &["p.c"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    // A kernel that names its groups needs their size.
    let text = fs::read_to_string(folder.path().join("p.c")).expect("a program");
    let text = text.replace("get_global_id(0)", "get_group_id(0)");
    fs::write(folder.path().join("p.c"), text).expect("writable");
    let said = check(folder.path(), &["p.c"]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(
        said.err.contains("its kernel names `get_group_id`"),
        "{}",
        said.err
    );
}

/// A negative status terminates the fill. It was read as `CL_COMPLETE`.
#[test]
fn a_program_may_fail_an_event() {
    let text = fs::read_to_string(programs().join("poll_status.cl")).expect("a program");
    let text = text.replace("0, NULL, &filled);", "1, &gate, &filled);");
    let text = text.replace(
        "  clFlush(fills);",
        "  clSetUserEventStatus(gate, STATUS);\n  clFinish(fills);",
    );
    let text = text.replace(
        "  cl_event filled;",
        "  cl_event filled, gate = clCreateUserEvent(context, &err);",
    );
    for (status, code) in [("CL_COMPLETE", 0), ("-1", 2)] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = text.replace("STATUS);", &format!("{status});"));
        fs::write(folder.path().join("p.cl"), text).expect("writable");
        let said = check(folder.path(), &["p.cl"]);
        assert_eq!(said.code, Some(code), "{}{}", said.out, said.err);
        let refuses = said.err.contains("this queue may no longer be available");
        assert_eq!(refuses, code == 2, "{}", said.err);
    }
}

#[test]
fn a_program_is_written_down_as_a_test_with_the_same_answer() {
    for (file, verdict) in [("chunks.cu", "race-free"), ("chunks.bug.cu", "racy")] {
        let written = fencepost(&programs(), &["import", file, "--expect", verdict]);
        assert_eq!(written.code, Some(0), "{}", written.err);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("p.toml"), &written.out).expect("writable");
        let said = check(folder.path(), &["p.toml"]);
        assert_eq!(
            said.code,
            Some(0),
            "{}{}\n{}",
            said.out,
            said.err,
            written.out
        );
    }
}

const KERNEL: &str =
    "__global__ void k(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] = n; }\n";

/// Programs that cannot be followed: the place, the message, and what to do next.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        "int main() { return 0; }",
        "p.cu:2:5",
        "this program launches no kernel",
        "--launch 'KERNEL<<<1, 32>>>'",
    ),
    (
        "int main() {\n int *p; cudaMallocManaged(&p, 4);\n k<<<1, 1>>>(p, 1);\n \
         cudaDeviceSynchronize();\n k<<<*p, 1>>>(p, 1);\n}",
        "p.cu:6:6",
        "the size of this launch depends on what the device computes",
        "write a number here",
    ),
    (
        "int main() { int *p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); }",
        "p.cu:2:41",
        "`k` takes 2 arguments, 1 given",
        "expected (p, n)",
    ),
    (
        "int main() { int h[4]; k<<<1, 1>>>(h, 4); }",
        "p.cu:2:36",
        "the kernel is handed `h`, which is memory of the host",
        "use `cudaMalloc` or `cudaMallocManaged`",
    ),
    (
        "int main() { int *p; cudaMalloc(&p, 4); k<<<1, 1>>>(p, 1); return *p; }",
        "p.cu:2:67",
        "the host accesses `p`, which is memory of the device",
        "copy it with `cudaMemcpy`",
    ),
    (
        "int main() { int *p; cudaMalloc(&p, 4); cudaMemset(p, 0, 8); }",
        "p.cu:2:41",
        "bytes 0 to 7 of `p`, which has 4",
        "allocated here",
    ),
    (
        "int main(int argc, char **argv) { int *p; cudaMalloc(&p, 4 * atoi(argv[1])); }",
        "p.cu:2:67",
        "the program is not given argument 1",
        "--args 64",
    ),
    (
        "int main() { int *p; cudaMalloc3D(&p, 4); }",
        "p.cu:2:22",
        "`cudaMalloc3D` is not followed",
        "--launch",
    ),
    (
        "int main() { int *p; cudaMalloc(&p, 4); cudaFreeHost(p); }",
        "p.cu:2:41",
        "`p` is not freed as it was allocated",
        "expected memory of `cudaMallocHost`",
    ),
    (
        "int main() { int *p; cudaMallocManaged(&p, 4); Pool q; q.run([=] { *p = 1; }); }",
        "p.cu:2:62",
        "this object may call the function that it is given",
        "std::thread",
    ),
    (
        "int main() { int *p; cudaMallocManaged(&p, 4); auto q = new Pool([=] { *p = 1; }); }",
        "p.cu:2:66",
        "this object may call the function that it is given",
        "std::thread",
    ),
    (
        "int main() { std::stop_source s; std::stop_callback c(s.get_token(), [=] { \
         cudaDeviceSynchronize(); }); }",
        "p.cu:2:76",
        "a stop callback that calls the runtime is not followed",
        "in the thread that requests the stop",
    ),
    (
        "int main() { std::stop_source s; int n = 0; std::stop_callback c(s.get_token(), [&] { \
         n = 1; }); }",
        "p.cu:2:81",
        "threads share a variable that one of them changes",
        "new int",
    ),
    (
        "int main() { std::signal(SIGINT, f); }",
        "p.cu:2:14",
        "signal handlers are not followed",
        "it is unspecified which thread of execution contains the signal handler invocation",
    ),
    (
        "int main() { CUdeviceptr p; cuMemAddressReserve(&p, 64, 0, 0, 0);\n \
         k<<<1, 1>>>((int *)p, 1); }",
        "p.cu:3:14",
        "no memory is mapped to `p`",
        "cuMemMap",
    ),
    (
        "int main() { CUdeviceptr p; CUmemGenericAllocationHandle h;\n \
         cuMemAddressReserve(&p, 64, 0, 0, 0); cuMemCreate(&h, 64, 0, 0); cuMemMap(p, 64, 0, \
         h, 0);\n k<<<1, 1>>>((int *)p, 1); }",
        "p.cu:4:14",
        "the access to `p` is not set",
        "cuMemSetAccess",
    ),
    (
        "int main() { CUdeviceptr p; CUmemGenericAllocationHandle h; CUmemAccessDesc a;\n \
         cuMemAddressReserve(&p, 64, 0, 0, 0); cuMemCreate(&h, 64, 0, 0); \
         cuMemMap(p, 64, 0, h, 0);\n cuMemSetAccess(p, 64, &a, 1);\n k<<<1, 1>>>((int *)p, \
         1);\n cuMemUnmap(p, 64); }",
        "p.cu:6:2",
        "a command may still use this mapping",
        "cudaDeviceSynchronize",
    ),
    (
        "int main() { CUdeviceptr p; CUmemGenericAllocationHandle h;\n \
         cuMemAddressReserve(&p, 64, 0, 0, 0); cuMemCreate(&h, 32, 0, 0);\n cuMemMap(p, 32, 0, \
         h, 0); }",
        "p.cu:4:2",
        "a part of a range or of an allocation is not followed",
        "reserve a range for each allocation",
    ),
];

#[test]
fn what_is_not_followed_is_refused_at_its_place() {
    for (main, place, message, next) in REFUSED {
        let folder = folder(&format!("{KERNEL}{main}\n"));
        let said = check(folder.path(), &["p.cu"]);
        let all = said.out + &said.err;
        assert_eq!(said.code, Some(2), "{main}: {all}");
        for expected in [place, message, next] {
            assert!(all.contains(expected), "{main}: no `{expected}` in {all}");
        }
    }
}

#[test]
fn arguments_and_constants_come_from_the_command_line() {
    let folder = folder(
        "__global__ void k(int *p) { p[threadIdx.x] = 1; }\n#define BLOCK 512\n\
         int main(int argc, char **argv) {\n  int n = argc > 1 ? atoi(argv[1]) : 0;\n  int *p;\n  \
         cudaMalloc(&p, n * sizeof(int));\n  k<<<1, BLOCK>>>(p);\n  cudaDeviceSynchronize();\n}\n",
    );
    let define = ["p.cu", "--args", "2", "--define", "BLOCK=2"];
    let said = check(folder.path(), &define);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    // Three threads write memory of two elements.
    let said = check(
        folder.path(),
        &["p.cu", "--args", "2", "--define", "BLOCK=3"],
    );
    assert_ne!(said.code, Some(0), "{}{}", said.out, said.err);
}

#[test]
fn a_program_of_many_threads_is_decided_with_smaller_constants() {
    let program = |wait: &str| {
        format!(
            "__global__ void add(const int *a, int *b, int n) {{\n  int i = blockIdx.x * blockDim.x + \
             threadIdx.x;\n  if (i < n) b[i] += a[i];\n}}\nint main() {{\n  const int n = 1 << 20;\n  \
             int *a, *b;\n  cudaMallocManaged(&a, n * sizeof(int));\n  cudaMallocManaged(&b, n * \
             sizeof(int));\n  for (int i = 0; i < n; ++i) a[i] = b[i] = i;\n  add<<<(n + 255) / 256, \
             256>>>(a, b, n);\n  {wait}\n  return b[1];\n}}\n"
        )
    };
    let right = folder(&program("cudaDeviceSynchronize();"));
    let said = check(right.path(), &["p.cu"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("`n = 16`, 4 in place of 256"),
        "{}",
        said.out
    );
    let wrong = folder(&program(""));
    let said = check(wrong.path(), &["p.cu"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("p.cu:13:10"), "{}", said.out);
}

#[test]
fn a_branch_on_what_the_device_computes_is_followed_both_ways() {
    let program = "__global__ void k(int *p) { *p = *p + 1; }\nint main() {\n  int *p;\n  \
                   cudaMallocManaged(&p, sizeof(int));\n  *p = 0;\n  cudaStream_t s;\n  \
                   cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n  k<<<1, 1>>>(p);\n  \
                   cudaDeviceSynchronize();\n  if (*p > 1) {\n    k<<<1, 1>>>(p);\n    k<<<1, 1, 0, \
                   s>>>(p);\n  }\n  cudaDeviceSynchronize();\n}\n";
    let folder = folder(program);
    let said = check(folder.path(), &["p.cu"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("1 program, 2 ways through `main`"),
        "{}",
        said.out
    );
    assert!(said.out.contains("1 racy, 1 race-free"), "{}", said.out);
}
