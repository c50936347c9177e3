//! Storage of mbarrier objects that holds ordinary data behind `mbarrier.inval`: of variables of
//! modules, and in CUDA C++.

use std::fs;

use super::fencepost;

/// What `check` says of one file.
fn checked(file: &str, text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(file), text).expect("writable");
    let said = fencepost(folder.path(), &["check", file]);
    (said.code, said.out + &said.err)
}

#[test]
fn storage_of_a_variable_is_free_behind_its_end() {
    for (declared, size) in [
        (".b64 bar", "u32"),
        (".b64 bar", "u64"),
        (".b8 bar[8]", "u64"),
        (".b8 bar[8]", "u16"),
    ] {
        let kernel = |inval: &str| {
            format!(
                "// fencepost: k<<<1, 1>>>(0)\n.version 8.5\n.target sm_90\n.address_size 64\n\
                 .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n\
                 .shared .align 8 {declared};\nmov.u32 %r1, bar;\n\
                 mbarrier.init.shared.b64 [%r1], 1;\n\
                 mbarrier.arrive.shared.b64 %rd1, [%r1];\n{inval}st.shared.{size} [%r1], 4;\n\
                 ld.shared.{size} %rd2, [%r1];\nret;\n}}\n"
            )
        };
        let (code, said) = checked("k.ptx", &kernel("mbarrier.inval.shared.b64 [%r1];\n"));
        assert_eq!(code, Some(0), "{declared} {size}: {said}");
        assert!(said.contains("no barrier divergence, no hang"), "{said}");
        let (code, said) = checked("k.ptx", &kernel(""));
        assert_eq!(code, Some(1), "{declared} {size}: {said}");
        assert!(said.contains("error[undefined]: `k`: misuse"), "{said}");
    }
}

#[test]
fn storage_of_an_object_of_the_library_is_free_behind_its_end() {
    let kernel = |inval: &str| {
        format!(
            "#include <cuda/ptx>\n// fencepost: k<<<1, 2>>>(out[2])\n\
             __global__ void k(int *out) {{\n\
             __shared__ uint64_t bar;\nint t = threadIdx.x;\n\
             if (t == 0) cuda::ptx::mbarrier_init(&bar, 2);\n\
             __syncthreads();\nuint64_t token = cuda::ptx::mbarrier_arrive(&bar);\n\
             while (!cuda::ptx::mbarrier_try_wait(&bar, token)) ;\n__syncthreads();\n\
             if (t == 0) {{ {inval}bar = 5; out[0] = bar; }}\n}}\n"
        )
    };
    let (code, said) = checked("k.cu", &kernel("cuda::ptx::mbarrier_inval(&bar); "));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = checked("k.cu", &kernel(""));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error[undefined]: `k`: misuse"), "{said}");
}
