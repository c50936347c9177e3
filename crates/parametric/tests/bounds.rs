//! Tests accesses out of bounds: shown in a launch that is given, an assumption elsewhere. Each has
//! a twin that stays inside.
#![cfg(feature = "z3")]

#[expect(dead_code, reason = "questions about races alone")]
mod common;

use common::{asked, kernel};
use parametric::{KernelProperty, KernelVerdict};

const STAYS: &str = "stay inside of it";

/// The answer about races: the line of an execution that leaves an object, or the assumptions
/// about objects.
#[derive(Debug, PartialEq)]
enum Seen {
    Leaves(u32),
    Assumed(Vec<String>),
}

fn seen(memory: &str, launch: &str, code: &str, any: bool) -> Seen {
    let text = kernel("cuda", memory, launch, code);
    match asked(&text, KernelProperty::Race, any) {
        KernelVerdict::Happens { apart, exact, .. } if apart.leaves => {
            let reason = exact.verdict.reason();
            assert!(
                matches!(reason, Some(verdict::Reason::Astray(Some(_)))),
                "{reason:?}"
            );
            let first = text
                .lines()
                .position(|line| line == "code = '''")
                .unwrap_or(0);
            Seen::Leaves(apart.lines[0].number - first as u32 - 1)
        }
        KernelVerdict::Never { assumed, .. } => {
            let of_objects = assumed.into_iter().filter(|a| a.contains(STAYS));
            Seen::Assumed(of_objects.collect())
        }
        other => panic!("{text}\n{other:?}"),
    }
}

fn inside() -> Seen {
    Seen::Assumed(Vec::new())
}

const FILL: &str = "__shared__ int s[256];\ns[threadIdx.x] = 1;";

#[test]
fn a_block_larger_than_an_array_leaves_it() {
    let launch = |block: u32| format!("grid = 65536\nblock = {block}");
    assert_eq!(seen("", &launch(512), FILL, false), Seen::Leaves(2));
    assert_eq!(seen("", &launch(257), FILL, false), Seen::Leaves(2));
    assert_eq!(seen("", &launch(256), FILL, false), inside());
}

#[test]
fn an_open_launch_assumes_that_accesses_stay_inside() {
    let launch = "grid = 1\nblock = 64";
    match seen("", launch, FILL, true) {
        Seen::Assumed(all) => assert!(all.len() == 1 && all[0].contains("`s`"), "{all:?}"),
        other => panic!("{other:?}"),
    }
    let guarded = "__shared__ int s[256];\nif (threadIdx.x < 256) s[threadIdx.x] = 1;";
    assert_eq!(seen("", launch, guarded, true), inside());
}

#[test]
fn loops_and_negative_indices_leave_an_array() {
    let launch = "grid = 4096\nblock = 128";
    let strided = |test: &str| {
        format!(
            "__shared__ int s[300];\nfor (int i = threadIdx.x; i {test} 300; i += 128)\ns[i] = 1;"
        )
    };
    assert_eq!(seen("", launch, &strided("<="), false), Seen::Leaves(3));
    assert_eq!(seen("", launch, &strided("<"), false), inside());
    let before = |by: u32| {
        format!("__shared__ int s[128];\nint t = threadIdx.x;\nif (t >= {by}) s[t - 1] = t;")
    };
    assert_eq!(seen("", launch, &before(0), false), Seen::Leaves(3));
    assert_eq!(seen("", launch, &before(1), false), inside());
}

/// A file cannot give the size of memory for many threads, so the proof does not hold it against
/// the accesses.
#[test]
fn memory_of_the_file_may_be_larger() {
    let memory = "x = { size = 1024, type = \"int\" }";
    let code = "x[blockIdx.x * blockDim.x + threadIdx.x] = 1;";
    assert_eq!(
        seen(memory, "grid = 4096\nblock = 64", code, false),
        inside()
    );
}

#[test]
fn values_of_memory_are_inputs() {
    let memory = "x = { size = 64, type = \"int\" }";
    let launch = "grid = 1\nblock = 64";
    let code =
        |mask: &str| format!("__shared__ int s[64];\natomicAdd(&s[x[threadIdx.x] & {mask}], 1);");
    match seen(memory, launch, &code("127"), false) {
        Seen::Assumed(all) => assert_eq!(all.len(), 1, "{all:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(seen(memory, launch, &code("63"), false), inside());
}

#[test]
fn memory_of_one_thread_has_a_size() {
    let launch = "grid = 1\nblock = 64";
    let code = |last: u32| {
        format!(
            "int own[8];\nfor (int i = 0; i <= {last}; i++) own[i + threadIdx.x % 2] = i;\n\
             int sum = own[threadIdx.x % 8];"
        )
    };
    assert_eq!(seen("", launch, &code(7), false), Seen::Leaves(2));
    assert_eq!(seen("", launch, &code(6), false), inside());
}
