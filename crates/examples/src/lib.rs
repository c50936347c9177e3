//! The shipped litmus tests that explanations show, embedded. A crate of its own, so that an
//! expectation that changes builds nothing else again.

use include_dir::{Dir, include_dir};

/// The folders of tests that files are called after.
pub static TESTS: [Dir<'static>; 8] = [
    include_dir!("$CARGO_MANIFEST_DIR/litmus/ptx"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/ptx-async"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/cuda"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/opencl"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/c11"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/host"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/regressions"),
    include_dir!("$CARGO_MANIFEST_DIR/litmus/tensor"),
];
