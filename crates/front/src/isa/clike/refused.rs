//! What is refused in a program, in words: rules of the languages that it breaks, and constructs that are not supported.
//!
//! # Sources
//! - C11, 7.17.7, *Operations on atomic types*; ISO C++, atomics.ref.ops; OpenCL C, *Atomic Functions*, *Memory Scope*,
//!   *constant Address Space*.

use program::{Dialect, Scope};

/// Names of constructs that are not supported: what they are, and what to write instead.
const UNSUPPORTED: &[(&str, &str, &str)] = &[
    ("pipeline", "pipelines are", "leave asynchronous copies out"),
    ("float", "floating-point types are", "use an integer type"),
    ("double", "floating-point types are", "use an integer type"),
    ("half", "floating-point types are", "use an integer type"),
    ("class", "classes of your own are", "use plain variables"),
    ("union", "unions are", "use plain variables"),
    ("template", "templates of your own are", "write out the instance that is used"),
    ("operator", "operators of your own are", "write out what they do"),
    ("try", "exceptions are", "leave them out"),
    ("throw", "exceptions are", "leave them out"),
    ("delete", "memory from the heap is", "declare it in `[memory]`"),
    ("goto", "jumps are", "use `if` and loops"),
];

/// Functions that the languages and their compilers have, and the checker has not: how their names begin, what they are, and
/// what to write instead.
const FUNCTIONS: &[(&str, &str, &str)] = &[
    ("__shfl", "shuffles without `_sync`, which GPUs of today do not have", "use `__shfl_sync`"),
    ("__ballot", "votes without `_sync`, which GPUs of today do not have", "use `__ballot_sync`"),
    ("__any", "votes without `_sync`, which GPUs of today do not have", "use `__any_sync`"),
    ("__all", "votes without `_sync`, which GPUs of today do not have", "use `__all_sync`"),
    ("__match_", "warp matches with a second result", "use `__match_any_sync`"),
    (
        "__activemask",
        "which lanes of a warp run together is not determined by the program",
        "write the mask that is meant",
    ),
    (
        "__sync_",
        "builtins that are documented as full barriers, which no order of C11 is",
        "use `__atomic_…`, with an order",
    ),
    (
        "__atomic_",
        "builtins with values in memory, or without effect on it",
        "use the forms that end in `_n`, or `__atomic_fetch_…`",
    ),
    (
        "__scoped_atomic_",
        "builtins with values in memory, or without effect on it",
        "use the forms that end in `_n`",
    ),
    ("__nv_atomic_", "builtins with values in memory", "use the forms that end in `_n`"),
    ("__cvta_", "conversions between address spaces", "give assembly the pointer itself: `\"l\"(p)`"),
    ("__cluster_", "queries of clusters", "leave them out"),
    ("__pipeline_", "asynchronous copies", "copy with plain loads and stores"),
    ("memcpy_async", "asynchronous copies", "copy with plain loads and stores"),
    ("async_work_group_", "asynchronous copies", "copy with plain loads and stores"),
    ("wait_group_events", "asynchronous copies", "copy with plain loads and stores"),
    ("clock", "time", "leave it out"),
    ("vload", "vectors of what lies in a row", "load the elements one by one"),
    ("vstore", "vectors of what lies in a row", "store the elements one by one"),
    (
        "convert_",
        "conversions of OpenCL C by name",
        "write a cast, which `convert_` without `_sat` is for integers",
    ),
    ("as_", "other readings of the bits of a value", "write a cast between integers of one size"),
    ("__funnelshift_", "funnel shifts", "write out the shifts"),
    ("__byte_perm", "permutations of bytes", "write out the shifts"),
    ("__double", "floating-point numbers", "use integers"),
    ("__float", "floating-point numbers", "use integers"),
    ("__int_as_float", "floating-point numbers", "use integers"),
    ("__longlong_as_double", "floating-point numbers", "use integers"),
    ("abort", "the abortion of a program", "write the outcome that must not be into `condition`"),
    ("exit", "the end of a program", "use `return`"),
    ("malloc", "memory from the heap", "declare it in `[memory]`"),
    ("free", "memory from the heap", "leave it out"),
    ("memcpy", "copies of memory", "copy with plain loads and stores"),
    ("memset", "copies of memory", "write with plain stores"),
    ("tex", "textures", "see the texture proxy of PTX: `tld`"),
    ("surf", "surfaces", "see the surface proxy of PTX: `suld`, `sust`"),
    ("read_image", "images, which no published model covers", "use buffers"),
    ("write_image", "images, which no published model covers", "use buffers"),
    ("read_pipe", "pipes", "use a buffer and atomic operations"),
    ("write_pipe", "pipes", "use a buffer and atomic operations"),
    (
        "work_group_",
        "work-group functions of extensions and of pipes",
        "exchange through local memory and `barrier`, which orders more",
    ),
    (
        "sub_group_",
        "sub-group functions of extensions, which not all work-items of the sub-group have to come to",
        "exchange through local memory and `sub_group_barrier`, which orders more",
    ),
    ("__builtin_c", "counts that are undefined for 0", "use `__builtin_popcount`, or `__clz` in CUDA C++"),
    (
        "atomic_signal_fence",
        "fences between a thread and its signal handlers",
        "leave it out: it orders no threads",
    ),
    ("thrd_", "threads that programs start", "write each as a `[[thread]]`"),
    (
        "pthread_",
        "threads that programs start, and their locks",
        "write each as a `[[thread]]`, and the lock with atomic operations",
    ),
    ("mtx_", "locks of the C library", "write the lock with atomic operations"),
];

/// What a function that is not supported is, and what to write instead; `None`: there is none of that name.
pub(super) fn function(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.rsplit("::").next().unwrap_or(name);
    FUNCTIONS.iter().find(|f| name.starts_with(f.0)).map(|f| (f.1, f.2))
}

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
        assert!(unsupported("cuda::pipeline").is_some() && unsupported("pipeline").is_none());
        assert!(unsupported("goto").is_some() && unsupported("x").is_none());
    }

    #[test]
    fn scopes_of_other_dialects_are_understood_in_messages() {
        assert_eq!(scope_meant("cuda::thread_scope_gpu", Dialect::Cuda), Some("thread_scope_device"));
        assert_eq!(scope_meant("memory_scope_block", Dialect::OpenCl), Some("memory_scope_work_group"));
        assert_eq!(scope_meant("memory_scope_devise", Dialect::OpenCl), None);
    }
}
