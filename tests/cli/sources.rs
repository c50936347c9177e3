//! Source files as input: `check reduce.cu` alone, launches in the file and on the command line,
//! and what is said of files that are no kernels.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Said, fencepost};

/// A kernel that is right, and its twin with one bug: the file, the place that is told, and what is
/// wrong there.
const TWINS: [(&str, &str, &str); 21] = [
    (
        "block_reduction.cu",
        "block_reduction.bug.cu:11:",
        "error[race]",
    ),
    ("block_scan.cu", "block_scan.bug.cu:8:", "error[race]"),
    ("block_sums.cu", "block_sums.bug.cu:20:", "error[race]"),
    (
        "carved_barrier.cu",
        "carved_barrier.bug.cu:16:",
        "error[race]",
    ),
    (
        "carved_shared.cu",
        "carved_shared.bug.cu:11:",
        "error[race]",
    ),
    (
        "carved_structures.cu",
        "carved_structures.bug.cu:13:",
        "error[race]",
    ),
    ("convolution.cl", "convolution.bug.cl:7:", "error[race]"),
    (
        "dynamic_shared.cu",
        "dynamic_shared.bug.cu:6:",
        "error[race]",
    ),
    (
        "early_return.cu",
        "early_return.bug.cu:",
        "error[divergence]",
    ),
    ("hash_table.cu", "hash_table.bug.cu:9:", "error[race]"),
    ("histogram.cu", "histogram.bug.cu:9:", "error[race]"),
    ("last_block.cu", "last_block.bug.cu:11:", "error[race]"),
    ("local_views.cl", "local_views.bug.cl:13:", "error[race]"),
    (
        "matrix_product.cu",
        "matrix_product.bug.cu:12:",
        "error[race]",
    ),
    ("queue.cu", "queue.bug.cu:12:", "error[race]"),
    ("random_walk.cu", "random_walk.bug.cu:11:", "error[race]"),
    (
        "shared_helpers.cu",
        "shared_helpers.bug.cu:34:",
        "error[race]",
    ),
    ("spin_lock.cu", "spin_lock.bug.cu:7:", "error[hang]"),
    ("texture.cu", "texture.bug.cu:8:", "error[race]"),
    ("transpose.cu", "transpose.bug.cu:11:", "error[race]"),
    ("warp_sum.cu", "warp_sum.bug.cu:9:", "error[race]"),
];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/sources")
}

/// A folder with one file.
fn folder(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), text).expect("writable");
    folder
}

fn check(folder: &Path, arguments: &[&str]) -> Said {
    fencepost(folder, &[&["check", "--no-cache"], arguments].concat())
}

#[test]
fn each_kernel_is_right_and_its_twin_is_wrong_at_its_line() {
    for (right, place, word) in TWINS {
        let said = check(&sources(), &[right]);
        assert_eq!(
            (said.code, said.err.as_str()),
            (Some(0), ""),
            "{right}: {}",
            said.out
        );
        assert!(
            said.out
                .contains("1 race-free; no barrier divergence, no hang"),
            "{}",
            said.out
        );
        let wrong = place.split(':').next().unwrap_or_default();
        let said = check(&sources(), &[wrong]);
        assert_eq!(said.code, Some(1), "{wrong}: {}{}", said.out, said.err);
        assert!(
            said.out.contains(word) && said.out.contains(place),
            "{wrong}: {}",
            said.out
        );
    }
}

const REDUCE: &str = "\
#include <cstdio>
#include <vector>

__global__ void block_sum(const int *in, int *out, int n) {
  __shared__ int s[64];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + tid;
  s[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (tid < k) s[tid] += s[tid + k];
  }
  if (tid == 0) out[blockIdx.x] = s[0];
}

__global__ void fill(int *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = i;
}

void report() {
  std::vector<float> v = {1.0f};
  auto f = [&](int x) { return v[x]; };
  printf(\"%f\\n\", f(0));
}
";

#[test]
fn the_first_screen_of_a_racy_kernel() {
    let folder = folder("reduce.cu", REDUCE);
    let said = check(folder.path(), &["reduce.cu"]);
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""));
    insta::assert_snapshot!(said.out, @r"
    error[race]: `block_sum`: threads race on `s[2]` of block 0
      --> reduce.cu:11:18
       |
    11 |     if (tid < k) s[tid] += s[tid + k];
       |                  ^^^^^^^^^^^^^^^^^^^^^ thread 0 of block 0 reads `s[2]`; thread 2 of block 0 writes `s[2]`
       |
       = note: nothing orders the two: no barrier between them
       = help: add `__syncthreads();` behind line 11
    launch chosen: block_sum<<<2, 8>>>(in[16], out[2], 16)
    launch chosen: fill<<<2, 4>>>(p[8], 8)
    `fill`: race-free for every launch and every input, assuming: objects of different names do not overlap; blocks of at most 1024 threads, fewer than 2^31 threads; size 1 in y and z, which the code does not read; no overflow in sums and products of indices
    2 kernels, launches chosen: 1 racy, 1 race-free; no barrier divergence, no hang
    ");
}

#[test]
fn launches_come_from_the_command_line_or_the_file() {
    let launch = "fill<<<1, 2>>>(p[2], 2)";
    let folder = folder("reduce.cu", REDUCE);
    let said = check(folder.path(), &["reduce.cu", "--launch", launch]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out
            .contains("\n1 kernel, launch as on the command line: 1 race-free"),
        "{}",
        said.out
    );
    let text = format!("// fencepost: {launch}\n// fencepost: fill<<<2, 2>>>(p[4], 4)\n{REDUCE}");
    fs::write(folder.path().join("two.cu"), text).expect("writable");
    let said = check(folder.path(), &["two.cu", "--format", "jsonl"]);
    let launches: Vec<&str> = said
        .out
        .lines()
        .filter(|l| l.contains("\"fill<<<"))
        .collect();
    assert_eq!(launches.len(), 6, "three answers of each: {}", said.out);
    // Sizes as files for GPUVerify have them.
    let text = format!("//pass\n//--blockDim=[2,1] --gridDim=2\n{REDUCE}");
    fs::write(folder.path().join("sizes.cu"), text).expect("writable");
    let said = check(folder.path(), &["sizes.cu", "--format", "jsonl"]);
    assert!(said.out.contains("fill<<<2, dim3(2, 1)>>>"), "{}", said.out);
}

/// What is chosen can be pasted back, and gives the same answers.
#[test]
fn a_chosen_launch_is_told_and_can_be_pasted_back() {
    for file in [
        "queue.cu",
        "warp_sum.bug.cu",
        "dynamic_shared.cu",
        "convolution.cl",
    ] {
        let said = check(&sources(), &[file]);
        let chosen = said
            .out
            .lines()
            .find_map(|line| line.strip_prefix("launch chosen: "));
        let chosen = chosen.unwrap_or_else(|| panic!("{}", said.out)).to_owned();
        let again = check(&sources(), &[file, "--launch", &chosen]);
        let without = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains("launch"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(without(&said.out), without(&again.out), "{file}");
    }
}

#[test]
fn what_is_no_kernel_says_what_to_type() {
    let all = [
        (
            "host.cu",
            "int main() { return 0; }\n",
            "no-kernel",
            "__global__",
        ),
        (
            "notes.txt",
            "Some notes about kernels.\n",
            "unknown-file",
            "--language",
        ),
        (
            "empty.cl",
            "int f(int x) { return x; }\n",
            "no-kernel",
            "__kernel",
        ),
    ];
    for (name, text, id, help) in all {
        let folder = folder(name, text);
        let said = check(folder.path(), &[name]);
        assert_eq!(said.code, Some(2), "{name}");
        assert!(
            said.err.contains(id) && said.err.contains(help),
            "{name}: {}",
            said.err
        );
        assert_eq!(
            said.err.matches("error[").count(),
            1,
            "{name}: {}",
            said.err
        );
    }
}

#[test]
fn a_launch_that_does_not_fit_is_told_at_its_place() {
    let folder = folder("reduce.cu", REDUCE);
    let with = |launch: &str, parts: &[&str]| {
        let said = check(folder.path(), &["reduce.cu", "--launch", launch]);
        assert_eq!(said.code, Some(2), "{launch}: {}", said.out);
        for part in parts {
            assert!(said.err.contains(part), "{launch}: {}", said.err);
        }
    };
    with(
        "block_sum<<<2, 4>>>(in[8], 8)",
        &["takes 3 arguments, 2 given", "block_sum(in[], out[], n)"],
    );
    with(
        "block_sum<<<2, 4>>>(8, out[2], 8)",
        &["`in` is a pointer", "--launch:1:"],
    );
    with(
        "block_sum<<<2, 4>>>(in[8], out[2], n[4])",
        &["`n` is a value"],
    );
    with(
        "block_sum<<<2, 4>>>(in[8], &ou[1], 8)",
        &["binds a buffer `ou`"],
    );
    with("block_sun<<<2, 4>>>()", &["did you mean `block_sum`?"]);
    with(
        "block_sum<<<2>>>()",
        &["this is not a launch", "kernel<<<2, 64>>>"],
    );
    let text = format!("// fencepost: fill<<<1, 2>>>(p[2])\n{REDUCE}");
    fs::write(folder.path().join("line.cu"), text).expect("writable");
    let said = check(folder.path(), &["line.cu"]);
    assert!(said.err.contains("line.cu:1:15"), "{}", said.err);
    // The other kernel is decided all the same.
    assert!(
        said.code == Some(2) && said.out.contains("1 racy"),
        "{}",
        said.out
    );
}

/// A kernel that limits its blocks: a launch that exceeds the limit fails, and the chosen launch
/// keeps it.
#[test]
fn a_launch_keeps_the_limit_of_its_kernel() {
    let bounds = "__global__ void __launch_bounds__(32, 2) k(int *a) { a[threadIdx.x] = 1; }\n";
    let exact = "__kernel __attribute__((reqd_work_group_size(8, 2, 1))) void k(__global int *a)\n\
                 { a[get_local_id(1) * 8 + get_local_id(0)] = 1; }\n";
    let folder = folder("bounds.cu", bounds);
    fs::write(folder.path().join("exact.cl"), exact).expect("writable");
    for (file, launch, message) in [
        ("bounds.cu", "k<<<1, 33>>>(a[64])", "takes at most 32"),
        (
            "bounds.cu",
            "k<<<1, dim3(8, 8)>>>(a[64])",
            "takes at most 32",
        ),
        ("exact.cl", "k<<<1, 16>>>(a[64])", "takes exactly 8, 2, 1"),
    ] {
        let said = check(folder.path(), &[file, "--launch", launch]);
        assert_eq!(said.code, Some(2), "{file}, {launch}: {}", said.out);
        let told = said.err.contains("launch-mismatch") && said.err.contains(message);
        assert!(told, "{file}, {launch}: {}", said.err);
    }
    for (file, launch) in [
        ("bounds.cu", "k<<<1, 32>>>(a[64])"),
        ("exact.cl", "k<<<1, dim3(8, 2)>>>(a[64])"),
    ] {
        let said = check(folder.path(), &[file, "--launch", launch]);
        assert_eq!(said.code, Some(0), "{file}, {launch}: {}", said.err);
    }
    let chosen = check(folder.path(), &["exact.cl"]);
    let told = chosen.out.contains("k<<<1, dim3(8, 2)>>>");
    assert!(told, "{}{}", chosen.out, chosen.err);
}

/// A launch keeps the demands of its kernel: in `main`, in a test, and in a line of a file.
#[test]
fn launches_of_every_origin_keep_what_the_kernel_demands() {
    let bounds = "__global__ void __launch_bounds__(2) k(int *a) { a[threadIdx.x] = 1; }\n";
    let pairs = "__global__ void __cluster_dims__(2, 1, 1) k(int *a) { a[blockIdx.x] = 1; }\n";
    let main = |code: &str, launch: &str| {
        format!(
            "{code}int main() {{ int *a; cudaMalloc(&a, 64); k<<<{launch}>>>(a); \
             cudaDeviceSynchronize(); return 0; }}\n"
        )
    };
    let test = |block: u32| {
        format!(
            "name = \"t\"\ndialect = \"cuda\"\ncondition = \"a[0] == 1\"\n\
             memory = {{ a = {{ init = 0, size = 8 }} }}\n[kernel]\ngrid = 1\nblock = {block}\n\
             regs = {{ a = \"&a\" }}\ncode = '''\n{bounds}'''\n"
        )
    };
    let line = |blocks: u32| format!("// fencepost: k<<<{blocks}, 1>>>(a[4])\n{pairs}");
    let most = "takes at most 2";
    let whole = "3 blocks are not whole clusters of 2";
    for (name, bad, good, message) in [
        ("m.cu", main(bounds, "1, 3"), main(bounds, "1, 2"), most),
        ("c.cu", main(pairs, "3, 1"), main(pairs, "2, 1"), whole),
        ("t.toml", test(3), test(2), most),
        ("l.cu", line(3), line(2), whole),
    ] {
        let folder = folder(name, &bad);
        let said = check(folder.path(), &[name]);
        assert_eq!(said.code, Some(2), "{name}: {}{}", said.out, said.err);
        let told = said.err.contains("error[launch-mismatch]") && said.err.contains(message);
        assert!(told, "{name}: {}", said.err);
        fs::write(folder.path().join(name), &good).expect("writable");
        let said = check(folder.path(), &[name]);
        assert_eq!(said.code, Some(0), "{name}: {}{}", said.out, said.err);
    }
}

/// Blocks of one cluster that `main` launches meet; without the cluster, they race.
#[test]
fn main_launches_the_clusters_of_a_kernel() {
    let code = "#include <cooperative_groups.h>\n\
                __global__ void __cluster_dims__(2, 1, 1) k(int *a) {\n\
                if (blockIdx.x == 0) a[0] = 1;\n\
                cooperative_groups::this_cluster().sync();\n\
                if (blockIdx.x == 1) a[1] = a[0];\n}\n\
                int main() { int *a; cudaMalloc(&a, 64); k<<<2, 1>>>(a); cudaDeviceSynchronize(); \
                return 0; }\n";
    let alone = code.replace("__cluster_dims__(2, 1, 1)", "");
    for (text, found) in [(code, "1 race-free"), (&alone, "1 racy")] {
        let folder = folder("k.cu", text);
        let said = check(folder.path(), &["k.cu"]);
        assert!(said.out.contains(found), "{}{}", said.out, said.err);
    }
}

/// A chosen launch of a module has the block that the module demands.
#[test]
fn a_chosen_launch_of_a_module_keeps_its_demands() {
    let module = ".version 8.0\n.target sm_90\n.address_size 64\n\
                  .visible .entry k(.param .u64 p)\nDEMAND\n{\n.reg .b64 a; .reg .b32 t;\n\
                  ld.param.u64 a, [p];\nmov.u32 t, %tid.x;\nst.global.u32 [a], 1;\nret;\n}\n";
    for (demand, launch) in [
        (".reqntid 8, 2", "k<<<1, dim3(8, 2)>>>"),
        (".maxntid 2", "k<<<1, 2>>>"),
        ("", "k<<<1, 4>>>"),
    ] {
        let folder = folder("k.ptx", &module.replace("DEMAND", demand));
        let said = check(folder.path(), &["k.ptx"]);
        assert!(
            said.out.contains(launch),
            "{demand}: {}{}",
            said.out,
            said.err
        );
    }
}

/// Files for GPUVerify give numbers of a kernel, and statements about all kernels.
#[test]
fn files_for_another_verifier_give_numbers() {
    let code = "__kernel void k(__local int *a, int x) {\n\
                if (x == 3) a[get_local_id(0)] = 3; else a[0] = get_local_id(0);\n}\n";
    let sizes = "//--local_size=2 --num_groups=1";
    for (numbers, message) in [
        ("--kernel-args=k,0x00000003", "1 race-free"),
        ("--kernel-args=k,0x4", "1 racy"),
        ("", "1 racy"),
        ("--kernel-args=other,0x3", "1 racy"),
        ("--kernel-args=k,*", "is no hexadecimal number"),
        ("--kernel-args=k,3,4", "expected a value for each of: `x`"),
    ] {
        let folder = folder("k.cl", &format!("{sizes} {numbers}\n{code}"));
        let said = check(folder.path(), &["k.cl"]);
        let told = format!("{}{}", said.out, said.err);
        assert!(told.contains(message), "{numbers}: {told}");
    }
    let axiom = "__axiom(blockIdx.x == 1);\n\
                 __global__ void k(int *a) { if (blockIdx.x != 1) a[0] = threadIdx.x; }\n";
    let folder = folder("k.cu", axiom);
    let said = check(folder.path(), &["k.cu"]);
    let told = said.err.contains("k.cu:1:1") && said.err.contains("neither checked nor used");
    assert!(told && said.code == Some(1), "{}{}", said.out, said.err);
}

#[test]
fn too_many_threads_become_fewer_and_that_is_said() {
    let folder = folder("reduce.cu", REDUCE);
    let launch = "fill<<<64, 256>>>(p[16384], 16384)";
    let said = check(folder.path(), &["reduce.cu", "--launch", launch]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out
            .contains("has 16384 threads, too many to decide one by one"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("launch chosen: fill<<<2, 4>>>(p[8], 8)"),
        "{}",
        said.out
    );
    // The answer is about the smaller launch.
    assert!(
        said.out.contains("launch smaller than given: 1 race-free"),
        "{}",
        said.out
    );
}

#[test]
fn headers_that_are_not_there_are_named_where_something_is_missing() {
    let text = "#include \"mine.h\"\n__global__ void k(int *p) { *p = MINE; }\n";
    // Named twice, it is told once; the functions of this header of samples are known.
    let more = "#include \"mine.h\"\n#include \"helper_cuda.h\"\n";
    let folder = folder("k.cu", &format!("{more}{text}"));
    let said = check(folder.path(), &["k.cu"]);
    let told = |name: &str| said.err.matches(name).count();
    assert_eq!(
        (told("mine.h"), told("helper_cuda.h")),
        (1, 0),
        "{}",
        said.err
    );
    assert!(
        said.code == Some(2) && said.err.contains("`mine.h` is not beside this file"),
        "{}",
        said.err
    );
    // Nothing is needed of this one.
    fs::write(folder.path().join("k.cu"), text.replace("MINE", "1")).expect("writable");
    let said = check(folder.path(), &["k.cu"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
}

#[test]
fn reports_have_the_lines_of_the_source() {
    let github = check(&sources(), &["queue.bug.cu", "--format", "github"]);
    assert!(
        github.out.starts_with("::error file=queue.bug.cu,line=12,"),
        "{}",
        github.out
    );
    let sarif = check(&sources(), &["queue.bug.cu", "--format", "sarif"]);
    let log: serde_json::Value = serde_json::from_str(&sarif.out).expect("SARIF");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "program-fault");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "queue.bug.cu");
    assert_eq!(place["region"]["startLine"], 12);
}

#[test]
fn folders_give_source_files_where_the_configuration_says_so() {
    let folder = folder("reduce.cu", REDUCE);
    let none = check(folder.path(), &["."]);
    assert_eq!(none.code, Some(4), "{}", none.out);
    fs::write(
        folder.path().join("fencepost.toml"),
        "kernels = [\"*.cu\"]\n",
    )
    .expect("writable");
    let said = check(folder.path(), &["."]);
    assert!(
        said.code == Some(1) && said.out.contains("reduce.cu:11:"),
        "{}",
        said.out
    );
}

/// A file that another one includes lacks what that one defines.
#[test]
fn a_file_of_a_folder_is_read_with_the_one_that_includes_it() {
    let folder = folder(
        "kernel.cu",
        "__global__ void k(int *a) { a[N] = threadIdx.x; }\n",
    );
    let put = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("writable");
    };
    put("fencepost.toml", "kernels = [\"*.cu\"]\n");
    put("main.cu", "#define N 1\n#include \"kernel.cu\"\n");
    let said = check(folder.path(), &["."]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("kernel.cu:1:29"), "{}", said.out);
    // Named, it is read alone.
    let said = check(folder.path(), &[".", "kernel.cu"]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(said.err.contains("`N`"), "{}", said.err);
    // Of two files that include each other, both stay.
    put(
        "kernel.cu",
        "#pragma once\n#include \"main.cu\"\n#define N 1\n",
    );
    let said = check(folder.path(), &["."]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    for file in ["kernel.cu", "main.cu"] {
        assert!(said.err.contains(file), "{}", said.err);
    }
}

#[test]
fn import_writes_the_test_down() {
    let folder = folder("reduce.cu", REDUCE);
    let launch = "fill<<<1, 2>>>(p[2], 2)";
    let arguments = [
        "import",
        "reduce.cu",
        "--launch",
        launch,
        "--expect",
        "race-free",
        "-o",
        "t.toml",
    ];
    let said = fencepost(folder.path(), &arguments);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let said = check(folder.path(), &["t.toml"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("1 expectation, all met"), "{}", said.out);
}

const MODULE: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .entry _Z4racyPiS_(
	.param .u64 _Z4racyPiS__param_0,
	.param .u64 _Z4racyPiS__param_1
)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [_Z4racyPiS__param_0];
	ld.param.u64 %rd2, [_Z4racyPiS__param_1];
	cvta.to.global.u64 %rd3, %rd1;
	cvta.to.global.u64 %rd4, %rd2;
	mov.u32 %r1, %ctaid.x;
	st.global.u32 [%rd3], %r1;
	ld.global.u32 %r2, [%rd3];
	st.global.u32 [%rd4+4], %r2;
	ret;
}
";

#[test]
fn a_module_needs_no_more_than_its_name() {
    let folder = folder("k.ptx", MODULE);
    let said = check(folder.path(), &["k.ptx"]);
    // In PTX, a race is information.
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(0), ""),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("warning[race]: `racy`") && said.out.contains("k.ptx:16:"),
        "{}",
        said.out
    );
    let chosen = "launch chosen: racy<<<2, 1>>>(buffer0:u32[1], buffer1:u32[2])";
    assert!(said.out.contains(chosen), "{}", said.out);
    let denied = check(folder.path(), &["k.ptx", "--deny", "race"]);
    assert_eq!(denied.code, Some(1), "{}", denied.out);
    let launch = "rac<<<1, 1>>>(a:u32[1] = 5, b:u32[2])";
    let said = check(folder.path(), &["k.ptx", "--launch", launch]);
    assert!(said.out.contains("1 race-free"), "{}{}", said.out, said.err);
}

#[test]
fn a_race_of_a_test_is_a_failure_where_it_is_denied() {
    let text = "name = \"T\"\nmemory = { x = 0 }\n[[thread]]\ncta = 0\ncode = \"st.weak x, 1\"\n[[thread]]\ncta = 1\ncode = \"st.weak x, 2\"\n";
    let folder = folder("t.toml", text);
    let race = ["t.toml", "--property", "race"];
    assert_eq!(check(folder.path(), &race).code, Some(0));
    let denied = check(folder.path(), &[&race[..], &["--deny", "race"]].concat());
    assert_eq!(denied.code, Some(1), "{}", denied.out);
    // A test without a condition says so.
    let said = fencepost(folder.path(), &["ask", "t.toml"]);
    assert!(
        said.out
            .contains("no condition given; some execution exists"),
        "{}",
        said.out
    );
}

#[test]
fn every_command_takes_a_source_file() {
    let folder = folder("reduce.cu", REDUCE);
    let launch = ["--launch", "fill<<<1, 2>>>(p[2], 2)"];
    let commands: [&[&str]; 6] = [
        &["ask", "reduce.cu"],
        &["outcomes", "reduce.cu"],
        &["show", "reduce.cu", "-o", "x.svg"],
        &["compare", "reduce.cu", "--models", "cuda,sc"],
        &["run", "reduce.cu", "--runs", "10"],
        &["advise", "reduce.cu"],
    ];
    for command in commands {
        let said = fencepost(folder.path(), &[command, &launch[..]].concat());
        assert!(
            matches!(said.code, Some(0 | 1 | 3)),
            "{command:?}: {}{}",
            said.out,
            said.err
        );
        assert!(!said.err.contains("this is not TOML"), "{}", said.err);
    }
    let mut piped = super::command(folder.path(), &["check", "-", "--language", "cuda"]);
    let file = fs::File::open(folder.path().join("reduce.cu")).expect("there");
    let said: Said = piped.stdin(file).output().expect("it runs").into();
    assert!(
        said.code == Some(1) && said.out.contains("error[race]"),
        "{}{}",
        said.out,
        said.err
    );
}

/// The answer names the setting and the first value on which it rests.
#[test]
fn settings_and_first_values_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry same()\n{\n\
                  .shared .align 4 .b32 s;\nst.shared.b32 [s], 7;\nret;\n}\n";
    fs::write(folder.path().join("same.ptx"), module).expect("writable");
    let launch = ["--launch", "same<<<1, 2>>>()"];
    let asked = ["same.ptx", "--set", "same-value=benign"];
    let said = check(folder.path(), &[&asked[..], &launch].concat());
    assert!(
        said.out.contains("`same-value=benign` is set") && said.out.contains("1 race-free"),
        "{}",
        said.out
    );
    let said = check(folder.path(), &[&asked[..1], &launch].concat());
    assert!(
        !said.out.contains("is set") && said.out.contains("1 racy"),
        "{}",
        said.out
    );

    let loops = "__global__ void k(const int *n, int *out) {\n\
          for (int i = 0; i < n[0]; i++) out[i] = i;\n}\n";
    fs::write(folder.path().join("loops.cu"), loops).expect("writable");
    let begins = "`n` begins with 0 here";
    for (launch, is_named) in [
        ("k<<<1, 1>>>(n[1], out[4])", true),
        ("k<<<1, 1>>>(n[1] = 2, out[4])", false),
    ] {
        let said = check(folder.path(), &["loops.cu", "--launch", launch]);
        assert_eq!(said.out.contains(begins), is_named, "{}", said.out);
    }
}

/// A kernel in a header beside the file: its places are those of the header.
#[test]
fn headers_beside_the_file_are_read() {
    let kernel = "#pragma once\n#include \"size.h\"\n__global__ void k(int *p) {\n  __shared__ int \
                  s[SIZE];\n  s[threadIdx.x] = p[threadIdx.x];\n  p[threadIdx.x] = s[SIZE - 1 - \
                  threadIdx.x];\n}\n";
    let folder = folder(
        "k.cu",
        "#include \"inc/kernel.cuh\"\n#include \"inc/kernel.cuh\"\n",
    );
    let inside = folder.path().join("inc");
    fs::create_dir(&inside).expect("a folder");
    fs::write(inside.join("kernel.cuh"), kernel).expect("writable");
    fs::write(inside.join("size.h"), "#define SIZE 4\n").expect("writable");
    let said = check(folder.path(), &["k.cu"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("inc/kernel.cuh:6:3"), "{}", said.out);
    let barrier = kernel.replace(
        "  p[threadIdx.x] =",
        "  __syncthreads();\n  p[threadIdx.x] =",
    );
    fs::write(inside.join("kernel.cuh"), barrier).expect("writable");
    let said = check(folder.path(), &["k.cu"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
}

#[test]
fn headers_outside_of_the_folder_are_not_read() {
    let text = "#include \"../mine.h\"\n__global__ void k(int *p) { *p = MINE; }\n";
    let folder = folder("outer.cu", text);
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("a folder");
    fs::write(inside.join("k.cu"), text).expect("writable");
    fs::write(folder.path().join("mine.h"), "#define MINE 1\n").expect("writable");
    let said = check(&inside, &["k.cu"]);
    assert!(
        said.code == Some(2) && said.err.contains("`../mine.h` is outside of the folder"),
        "{}",
        said.err
    );
}

/// A version that decides a branch is chosen and told, and `--define` gives another one.
#[test]
fn versions_that_decide_branches_are_told() {
    let text = "__global__ void k(int *p) {\n\
        #if __CUDA_ARCH__ >= 800\n  atomicAdd(p, 1);\n#else\n  *p = threadIdx.x;\n#endif\n}\n\
        // fencepost: k<<<1, 2>>>(p[1])\n";
    let folder = folder("k.cu", text);
    let said = check(folder.path(), &["k.cu"]);
    assert!(
        said.code == Some(0) && said.out.contains("`__CUDA_ARCH__` is 900"),
        "{}{}",
        said.out,
        said.err
    );
    let said = check(folder.path(), &["k.cu", "--define", "__CUDA_ARCH__=750"]);
    assert!(
        said.code == Some(1) && !said.out.contains("is 900"),
        "{}{}",
        said.out,
        said.err
    );
}

/// Headers of the project, and of the folders that `-I` names.
#[test]
fn headers_of_the_project_and_of_named_folders_are_read() {
    let text = "#include \"../inc/mine.h\"\n__global__ void k(int *p) { p[threadIdx.x] = MINE; }\n";
    let folder = folder("outer.cu", text);
    let (inside, inc) = (folder.path().join("src"), folder.path().join("inc"));
    for path in [&inside, &inc] {
        fs::create_dir(path).expect("a folder");
    }
    fs::write(inc.join("mine.h"), "#define MINE 1\n").expect("writable");
    fs::write(inside.join("k.cu"), text).expect("writable");
    for (name, line) in [("quoted.cu", "\"mine.h\""), ("angled.cu", "<mine.h>")] {
        let text = text.replace("\"../inc/mine.h\"", line);
        fs::write(inside.join(name), text).expect("writable");
        let said = check(&inside, &[name]);
        assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
        let said = check(&inside, &[name, "-I", "../inc"]);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    }
    let said = check(&inside, &["quoted.cu"]);
    assert!(
        said.err.contains("name its folder with `-I`"),
        "{}",
        said.err
    );
    assert_eq!(check(&inside, &["k.cu"]).code, Some(2));
    fs::write(folder.path().join("fencepost.toml"), "").expect("writable");
    let said = check(&inside, &["k.cu"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
}

/// Words of other languages, joined lines, groups of any kind and constants of C's headers, as
/// programs have them. A name that the build defines brings one error, and the option for it.
#[test]
fn programs_have_names_and_lines_of_their_own() {
    let text = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n\
        struct Pack { int v; __device__ static Pack constant(int v) { Pack p; p.v = v; return p; }\n\
        __device__ static Pack zero() { return constant(0); } };\n\
        __device__ int local(int x) { return x + 1; }\n\
        __device__ int sum(cg::thread_group g, int *x, int v) {\n  int lane = g.thread_rank();\n\
          for (int i = g.size() / 2; i > 0; i /= 2) {\n    x[lane] = v; g.sync();\n\
            if (lane < i) v += x[lane + i];\n    g.sync();\n  }\n  return v;\n}\n\
        __global__ void k(int *out) {\n  __shared__ int x[8];\n\
          auto warp = cg::tiled_partition<4>(cg::this_thread_block());\n\
          int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();\n\
          int v = sum(cg::this_thread_block(), x, Pack::zero().v + local(idx)) \\\n    + SIZE;\n\
          if (threadIdx.x == 0) out[blockIdx.x] = v;\n}\n\
        int main() {\n  enum { A, B = 3, C };\n\
          if (FLT_MAX > INFINITY || C != 4 || A != 0) return 1;\n  int *out;\n\
          cudaMalloc(&out, 8);\n  k<<<2, 8>>>(out);\n  cudaDeviceSynchronize();\n\
          return INT_MAX == 0;\n}\n";
    let folder = folder("k.cu", text);
    let said = check(folder.path(), &["k.cu", "--define", "SIZE=1"]);
    assert!(
        said.code == Some(0) && said.out.contains("1 race-free"),
        "{}{}",
        said.out,
        said.err
    );
    let dropped = text.replace("v; g.sync();", "v;");
    fs::write(folder.path().join("bug.cu"), dropped).expect("writable");
    let said = check(folder.path(), &["bug.cu", "--define", "SIZE=1"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    let said = check(folder.path(), &["k.cu"]);
    assert_eq!(said.err.matches("error[").count(), 1, "{}", said.err);
    assert!(said.err.contains("`--define SIZE=16`"), "{}", said.err);
}

/// An instance of a function of the host brings nothing of it to the kernels.
#[test]
fn instances_of_host_functions_stay_with_the_host() {
    let text = "template <typename T> __global__ void k(T *d, int n) {\n\
          if (threadIdx.x < n) d[threadIdx.x] = 0;\n}\n\
        template <typename T> void host(T *d, int n) {\n  dim3 threads(4);\n\
          k<<<1, threads>>>(d, n);\n}\n\
        template void host<float>(float *d, int n);\ntemplate void host<int>(int *d, int n);\n";
    let folder = folder("k.cu", text);
    let said = check(folder.path(), &["k.cu"]);
    assert!(
        said.code == Some(0) && said.out.contains("1 race-free"),
        "{}{}",
        said.out,
        said.err
    );
}

/// A chosen launch differs in the dimensions that the code uses.
#[test]
fn chosen_launches_have_the_dimensions_of_the_code() {
    let text = "__global__ void k(float *d, int n) {\n\
          int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;\n\
          if (i < n) d[i] = 1;\n}\n\
        __global__ void column(float *w) { w[blockDim.x * blockIdx.y + threadIdx.x] += 1; }\n\
        __global__ void plane(float *w) { w[2 * threadIdx.y + threadIdx.x] += 1; }\n";
    let folder = folder("k.cu", text);
    let said = check(folder.path(), &["k.cu"]);
    for launch in [
        "k<<<2, 4>>>(",
        "column<<<dim3(1, 2), 4>>>(",
        "plane<<<1, dim3(2, 2)>>>(",
    ] {
        assert!(
            said.out.contains(launch),
            "{launch}: {}{}",
            said.out,
            said.err
        );
    }
    assert!(said.out.contains("3 race-free"), "{}{}", said.out, said.err);
}

/// Functions of the code stand beside those of the language that have their names. Of two functions
/// of the host, the number of arguments decides; their types do not.
#[test]
fn functions_stand_beside_those_of_the_language() {
    let text = "__host__ __device__ float2 make_float2(float s) { return make_float2(s, s); }\n\
        __device__ float2 fabs(float2 v) { return make_float2(fabs(v.x), fabs(v.y)); }\n\
        __device__ float2 operator+(float2 a, float2 b) {\n\
          return make_float2(a.x + b.x, a.y + b.y);\n}\n\
        __device__ float2 operator*(float2 a, float s) { return make_float2(a.x * s, a.y * s); }\n\
        __device__ float sum(float2 v) { return v.x + v.y; }\n\
        __global__ void k(float2 *p, float *q) {\n  int i = threadIdx.x;\n\
          float2 t = fabs(p[i]);\n  t = make_float2(t.x) + t * 2.0f;\n\
          q[i] = sum(t * 0.5f);\n}\n\
        void run(float2 *p, float *q) { k<<<1, 4>>>(p, q); }\nvoid run(float2 *p) { }\n\
        int main() {\n  float2 *p; float *q;\n  cudaMalloc(&p, 32);\n  cudaMalloc(&q, 16);\n\
          run(p);\n  float2 two = make_float2(2);\n\
          if (two.y == 2) run(p, q);\n  cudaDeviceSynchronize();\n}\n";
    let folder = folder("k.cu", text);
    let said = check(folder.path(), &["k.cu"]);
    assert!(
        said.code == Some(0) && said.out.contains("1 race-free"),
        "{}{}",
        said.out,
        said.err
    );
    let racy = text.replace("q[i] =", "q[i / 2] =");
    fs::write(folder.path().join("bug.cu"), racy).expect("writable");
    let said = check(folder.path(), &["bug.cu"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    let alike = text.replace("void run(float2 *p) { }", "void run(float2 *p, int *q) { }");
    let alike = alike.replace("run(p);\n", "");
    fs::write(folder.path().join("alike.cu"), alike).expect("writable");
    let said = check(folder.path(), &["alike.cu"]);
    assert!(
        said.code == Some(2) && said.err.contains("several functions `run`"),
        "{}{}",
        said.out,
        said.err
    );
}
