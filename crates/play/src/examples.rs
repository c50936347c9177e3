//! The examples of the page, by topic.

use serde::Serialize;

/// An example.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Example {
    /// Its topic.
    pub topic: &'static str,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// The name of its file.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// An example with its text from a shipped test.
macro_rules! shipped {
    ($topic:literal, $title:literal, $folder:literal, $file:literal) => {
        Example {
            topic: $topic,
            title: $title,
            file: $file,
            text: include_str!(concat!("../../../litmus/", $folder, "/", $file)),
        }
    };
}

/// An example of the chapter "A first hour".
macro_rules! first_hour {
    ($title:literal, $file:literal) => {
        Example {
            topic: "First hour",
            title: $title,
            file: $file,
            text: include_str!(concat!("../examples/", $file)),
        }
    };
}

/// The examples, topic by topic.
pub const EXAMPLES: &[Example] = &[
    first_hour!("A flag without order", "flag.toml"),
    first_hour!("Release and acquire", "flag-released.toml"),
    first_hour!("A sum without a barrier", "reduce.cu"),
    shipped!(
        "First hour",
        "A scope that is too narrow",
        "ptx/06-causality",
        "MP+rel.cta+acq.gpu.toml"
    ),
    shipped!(
        "First hour",
        "Two flags, release and acquire",
        "ptx/02-fence-sc",
        "SB+rel.gpu-acq.gpu+rel.gpu-acq.gpu.toml"
    ),
    shipped!(
        "First hour",
        "A barrier",
        "ptx/13-barriers",
        "MP+bar.sync+bar.sync.toml"
    ),
    shipped!(
        "CUDA C++",
        "A flag as an atomic object",
        "cuda",
        "MP+rel.device+acq.device.toml"
    ),
    shipped!(
        "CUDA C++",
        "A flag of block scope",
        "cuda",
        "MP+rel.block+acq.device.toml"
    ),
    shipped!("CUDA C++", "A spin lock", "cuda", "Lock+atomicExch.toml"),
    shipped!(
        "OpenCL C",
        "A message in a struct",
        "opencl",
        "MP+struct.toml"
    ),
    shipped!("OpenCL C", "A lock", "opencl", "Lock+atomic_flag.toml"),
    shipped!("C11", "Release and acquire", "c11", "MP+rel+acq.toml"),
    shipped!(
        "C11",
        "Two flags, sequentially consistent",
        "c11",
        "SB+sc.toml"
    ),
    shipped!(
        "Proxies",
        "Which fences imply others",
        "proxies",
        "implied.toml"
    ),
    shipped!("Does it end?", "A handshake", "liveness", "handshake.toml"),
];
