//! Words of the C-like dialects: integer types, qualifiers, namespaces.

use std::borrow::Cow;

use super::types::BYTE;
use program::Ty;

/// Integer types by name. `atomic_` in front of one makes it atomic.
const TYPES: &[(&str, Ty)] = &[
    ("int", Ty::S32),
    ("uint", Ty::U32),
    ("long", Ty::WORD),
    ("ulong", Ty::U64),
    ("short", Ty { bits: 16, signed: true }),
    ("ushort", Ty { bits: 16, signed: false }),
    ("char", Ty { bits: 8, signed: true }),
    ("uchar", Ty { bits: 8, signed: false }),
    ("unsigned", Ty::U32),
    ("signed", Ty::S32),
    ("bool", BYTE),
    ("size_t", Ty::U64),
    ("int8_t", Ty { bits: 8, signed: true }),
    ("uint8_t", BYTE),
    ("int16_t", Ty { bits: 16, signed: true }),
    ("uint16_t", Ty { bits: 16, signed: false }),
    ("int32_t", Ty::S32),
    ("uint32_t", Ty::U32),
    ("int64_t", Ty::WORD),
    ("uint64_t", Ty::U64),
    ("intptr_t", Ty::WORD),
    ("uintptr_t", Ty::U64),
    ("ptrdiff_t", Ty::WORD),
];

/// Types of what calls of a runtime give back.
const RESULT_TYPES: &[(&str, Ty)] = &[("cudaError_t", Ty::S32), ("cl_int", Ty::S32)];

/// What queries of CUDA give back (CUDA runtime API, *Data types used by CUDA Runtime*, cudaError).
pub(super) const RESULTS: [(&str, i64); 2] = [("cudaSuccess", 0), ("cudaErrorNotReady", 600)];

/// The limits of integer types (C11, 7.10 and 7.20; OpenCL C, *Integer Macros*).
pub(super) const LIMITS: [(&str, i64, Ty); 24] = [
    ("CHAR_BIT", 8, Ty::S32),
    ("SCHAR_MAX", 127, Ty::S32),
    ("UCHAR_MAX", 255, Ty::S32),
    ("SHRT_MAX", 0x7fff, Ty::S32),
    ("USHRT_MAX", 0xffff, Ty::S32),
    ("INT_MAX", 0x7fff_ffff, Ty::S32),
    ("INT_MIN", -0x8000_0000, Ty::S32),
    ("UINT_MAX", 0xffff_ffff, Ty::U32),
    ("LONG_MAX", i64::MAX, Ty::WORD),
    ("LONG_MIN", i64::MIN, Ty::WORD),
    ("ULONG_MAX", -1, Ty::U64),
    ("LLONG_MAX", i64::MAX, Ty::WORD),
    ("ULLONG_MAX", -1, Ty::U64),
    ("INT8_MAX", 127, Ty::S32),
    ("UINT8_MAX", 255, Ty::S32),
    ("INT16_MAX", 0x7fff, Ty::S32),
    ("UINT16_MAX", 0xffff, Ty::S32),
    ("INT32_MAX", 0x7fff_ffff, Ty::S32),
    ("INT32_MIN", -0x8000_0000, Ty::S32),
    ("UINT32_MAX", 0xffff_ffff, Ty::U32),
    ("INT64_MAX", i64::MAX, Ty::WORD),
    ("INT64_MIN", i64::MIN, Ty::WORD),
    ("UINT64_MAX", -1, Ty::U64),
    ("SIZE_MAX", -1, Ty::U64),
];

/// Whether a type's values are 0 and 1 alone, by its name.
pub(super) fn is_boolean(name: &str) -> bool {
    matches!(bare(name), "bool" | "atomic_bool")
}

/// The type of that name, and whether it is atomic.
pub(super) fn type_named(name: &str) -> Option<(Ty, bool)> {
    let name = bare(name);
    if name == "atomic_flag" {
        return Some((Ty::S32, true));
    }
    let plain = |name: &str| TYPES.iter().chain(RESULT_TYPES).find(|t| t.0 == name).map(|t| t.1);
    match name.strip_prefix("atomic_") {
        Some(rest) => plain(rest).map(|ty| (ty, true)),
        None => plain(name).map(|ty| (ty, false)),
    }
}

/// Names of the types that a declaration may begin with.
pub(super) fn type_names() -> Vec<String> {
    TYPES.iter().flat_map(|t| [t.0.to_string(), format!("atomic_{}", t.0)]).collect()
}

/// Words that may stand beside a type and say nothing that matters to a model.
pub(super) const QUALIFIERS: &[&str] = &["volatile", "const", "restrict", "__restrict", "private", "__private"];

/// A name without the namespaces of the standard libraries.
pub(super) fn bare(name: &str) -> &str {
    ["cuda::std::", "cuda::", "std::"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name)
}

/// An order or scope of C++ as C would write it: `cuda::std::memory_order::release` is `memory_order_release`.
pub(super) fn enumerator(name: &str) -> Cow<'_, str> {
    let name = bare(name.strip_prefix("::").unwrap_or(name));
    match (name.strip_prefix("memory_order::"), name.strip_prefix("thread_scope::")) {
        (Some(order), _) => format!("memory_order_{order}").into(),
        (_, Some(scope)) => scope.into(),
        _ => name.into(),
    }
}

/// Types of groups of threads, without their namespace.
pub(super) const GROUP_TYPES: &[&str] = &["thread_block", "grid_group", "cluster_group", "thread_block_tile"];

/// A name without the namespace of cooperative groups.
pub(super) fn group_word(name: &str) -> &str {
    ["cooperative_groups::", "cg::"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name)
}
