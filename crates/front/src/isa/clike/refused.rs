//! What is refused in a program, in words: rules of the languages that it breaks, and constructs that are not supported.
//!
//! # Sources
//! - C11, 7.17.7, *Operations on atomic types*; ISO C++, atomics.ref.ops; OpenCL C, *Atomic Functions*, *Memory Scope*,
//!   *constant Address Space*.

use program::{Dialect, Scope};

/// Names of constructs that are not supported: what they are, and what to write instead.
const UNSUPPORTED: &[(&str, &str, &str)] = &[
    (
        "atomic",
        "declarations of atomic objects in the code are",
        "declare it in `[memory]`: `f = { type = \"cuda::atomic<int, cuda::thread_scope_device>\" }`",
    ),
    (
        "atomic_flag",
        "declarations of flags in the code are",
        "declare it in `[memory]`: `f = { type = \"cuda::std::atomic_flag\" }`",
    ),
    (
        "barrier",
        "declarations of barriers in the code are",
        "declare it in `[memory]`: `b = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 2 }`",
    ),
    (
        "latch",
        "declarations of latches in the code are",
        "declare it in `[memory]`: `l = { type = \"cuda::latch<cuda::thread_scope_block>\", init = 2 }`",
    ),
    (
        "counting_semaphore",
        "declarations of semaphores in the code are",
        "declare it in `[memory]`, with its `type`",
    ),
    (
        "binary_semaphore",
        "declarations of semaphores in the code are",
        "declare it in `[memory]`, with its `type`",
    ),
    ("pipeline", "pipelines are", "leave asynchronous copies out"),
    ("float", "floating-point types are", "use an integer type"),
    ("double", "floating-point types are", "use an integer type"),
    ("half", "floating-point types are", "use an integer type"),
    ("goto", "jumps are", "use `if` and loops"),
];

/// What is not supported about a word that begins a statement, and what to do instead. A namespace in front says that
/// a class of a library is meant.
pub(super) fn unsupported(word: &str) -> Option<(&'static str, &'static str)> {
    let name = word.rsplit("::").next().unwrap_or(word);
    let class = UNSUPPORTED.iter().take_while(|u| u.0 != "float").any(|u| u.0 == name);
    if class != word.contains("::") {
        return None;
    }
    UNSUPPORTED.iter().find(|u| u.0 == name).map(|u| (u.1, u.2))
}

/// Endings of names of scopes in all dialects and in PTX.
const ENDINGS: &[(&str, Scope)] = &[
    ("thread", Scope::Thread),
    ("work_item", Scope::Thread),
    ("warp", Scope::Warp),
    ("wavefront", Scope::Warp),
    ("block", Scope::Cta),
    ("cta", Scope::Cta),
    ("workgroup", Scope::Cta),
    ("work_group", Scope::Cta),
    ("gpu", Scope::Gpu),
    ("grid", Scope::Gpu),
    ("device", Scope::Gpu),
    ("sys", Scope::Sys),
    ("system", Scope::Sys),
];

/// The dialect's name for a scope that another dialect calls so.
pub(super) fn scope_meant(word: &str, dialect: Dialect) -> Option<&'static str> {
    let (_, scope) = ENDINGS.iter().find(|e| word.ends_with(&format!("_{}", e.0)))?;
    dialect.row().scopes.iter().find(|s| s.1 == *scope).map(|s| s.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_need_their_namespace_and_keywords_have_none() {
        assert!(unsupported("cuda::barrier").is_some() && unsupported("cuda::std::atomic").is_some());
        assert!(unsupported("barrier").is_none() && unsupported("latch").is_none());
        assert!(unsupported("goto").is_some() && unsupported("x").is_none());
    }

    #[test]
    fn scopes_of_other_dialects_are_understood_in_messages() {
        assert_eq!(scope_meant("cuda::thread_scope_gpu", Dialect::Cuda), Some("thread_scope_device"));
        assert_eq!(scope_meant("memory_scope_block", Dialect::OpenCl), Some("memory_scope_work_group"));
        assert_eq!(scope_meant("memory_scope_devise", Dialect::OpenCl), None);
    }
}
