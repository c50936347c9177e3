//! Lists the words of the C-like dialects: integer types, qualifiers, namespaces.

use std::borrow::Cow;

use super::types::BYTE;
use program::{Dialect, Ty};

const fn int(bits: u8) -> Ty {
    Ty { bits, signed: true }
}

const fn uint(bits: u8) -> Ty {
    Ty {
        bits,
        signed: false,
    }
}

/// Integer types by name, and whether C, OpenCL C and CUDA C++ have them, including their headers.
const TYPES: &[(&str, Ty, [bool; 3])] = &[
    ("int", int(32), [true; 3]),
    ("uint", uint(32), [false, true, true]),
    ("long", int(64), [true; 3]),
    ("ulong", uint(64), [false, true, true]),
    ("short", int(16), [true; 3]),
    ("ushort", uint(16), [false, true, true]),
    ("char", int(8), [true; 3]),
    ("uchar", uint(8), [false, true, false]),
    ("unsigned", uint(32), [true; 3]),
    ("signed", int(32), [true; 3]),
    ("bool", BYTE, [true; 3]),
    ("_Bool", BYTE, [true, true, false]),
    ("size_t", uint(64), [true; 3]),
    ("reserve_id_t", int(64), [false, true, false]),
    ("cudaTextureObject_t", uint(64), [false, false, true]),
    ("CUtexObject", uint(64), [false, false, true]),
    ("int8_t", int(8), [true, false, true]),
    ("uint8_t", uint(8), [true, false, true]),
    ("int16_t", int(16), [true, false, true]),
    ("uint16_t", uint(16), [true, false, true]),
    ("int32_t", int(32), [true, false, true]),
    ("uint32_t", uint(32), [true, false, true]),
    ("int64_t", int(64), [true, false, true]),
    ("uint64_t", uint(64), [true, false, true]),
    ("int_least8_t", int(8), [true, false, true]),
    ("uint_least8_t", uint(8), [true, false, true]),
    ("int_least16_t", int(16), [true, false, true]),
    ("uint_least16_t", uint(16), [true, false, true]),
    ("int_least32_t", int(32), [true, false, true]),
    ("uint_least32_t", uint(32), [true, false, true]),
    ("int_least64_t", int(64), [true, false, true]),
    ("uint_least64_t", uint(64), [true, false, true]),
    ("intmax_t", int(64), [true, false, true]),
    ("uintmax_t", uint(64), [true, false, true]),
    ("intptr_t", int(64), [true; 3]),
    ("uintptr_t", uint(64), [true; 3]),
    ("ptrdiff_t", int(64), [true; 3]),
    ("clock_t", int(64), [false, false, true]),
    ("wchar_t", int(32), [true, false, true]),
    ("char16_t", uint(16), [true, false, true]),
    ("char32_t", uint(32), [true, false, true]),
];

/// Atomic types with names that differ from those of their value types, after `atomic_`.
const ATOMIC_TYPES: &[(&str, Ty)] = &[
    ("schar", int(8)),
    ("llong", int(64)),
    ("ullong", uint(64)),
    ("uchar", uint(8)),
    ("uint", uint(32)),
];

/// The atomic types of OpenCL C (*Atomic Integer and Floating-Point Types*), after `atomic_`.
const ATOMIC_IN_OPENCL: &[&str] = &[
    "int",
    "uint",
    "long",
    "ulong",
    "size_t",
    "intptr_t",
    "uintptr_t",
    "ptrdiff_t",
    "flag",
];

/// The languages in the order of the columns in tables, and their names.
pub(super) const LANGUAGES: [(Dialect, &str); 3] = [
    (Dialect::C, "C"),
    (Dialect::OpenCl, "OpenCL C"),
    (Dialect::Cuda, "CUDA C++"),
];

/// The column of a dialect's language in tables.
pub(super) fn column(dialect: Dialect) -> usize {
    LANGUAGES.iter().position(|of| of.0 == dialect).unwrap_or(0)
}

/// The keywords of C, OpenCL C and CUDA C++.
const KEYWORDS: [&[&str]; 3] = [C_KEYWORDS, OPENCL_KEYWORDS, CPP_KEYWORDS];
const COMMON: &[&str] = &[
    "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "return", "short",
    "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
    "volatile", "while", "auto",
];
const C_KEYWORDS: &[&str] = &[
    "restrict",
    "_Atomic",
    "_Bool",
    "_Generic",
    "_Static_assert",
    "_Thread_local",
];
const OPENCL_KEYWORDS: &[&str] = &[
    "restrict",
    "_Bool",
    "bool",
    "half",
    "size_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
    "uchar",
    "ushort",
    "uint",
    "ulong",
    "global",
    "__global",
    "local",
    "__local",
    "constant",
    "__constant",
    "private",
    "__private",
    "generic",
    "__generic",
    "kernel",
    "__kernel",
];
const CPP_KEYWORDS: &[&str] = &[
    "alignas",
    "alignof",
    "asm",
    "bool",
    "catch",
    "char16_t",
    "char32_t",
    "class",
    "const_cast",
    "constexpr",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "false",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "nullptr",
    "operator",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
];

/// Whether a word is a keyword of a language.
pub(super) fn is_keyword(word: &str, dialect: Dialect) -> bool {
    COMMON.contains(&word) || KEYWORDS[column(dialect)].contains(&word)
}

/// The result types of runtime calls.
const RESULT_TYPES: &[(&str, Ty)] = &[("cudaError_t", Ty::S32), ("cl_int", Ty::S32)];

/// The results of CUDA's queries (CUDA runtime API, *Data types used by CUDA Runtime*, cudaError).
pub(super) const RESULTS: [(&str, i64); 2] = [("cudaSuccess", 0), ("cudaErrorNotReady", 600)];

/// The statuses of commands (OpenCL API specification, clGetEventInfo).
pub(super) const STATUSES: [(&str, i64); 4] = [
    ("CL_COMPLETE", 0),
    ("CL_RUNNING", 1),
    ("CL_SUBMITTED", 2),
    ("CL_QUEUED", 3),
];

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

/// Whether 0 and 1 are the only values of the type of that name.
pub(super) fn is_boolean(name: &str) -> bool {
    matches!(bare(name), "bool" | "_Bool" | "atomic_bool")
}

/// The type of that name in any of the languages, and whether it is atomic.
pub(super) fn type_named(name: &str) -> Option<(Ty, bool)> {
    let name = bare(name);
    if name == "atomic_flag" {
        return Some((Ty::S32, true));
    }
    fn plain(name: &str) -> Option<Ty> {
        let result = RESULT_TYPES.iter().find(|t| t.0 == name).map(|t| t.1);
        TYPES.iter().find(|t| t.0 == name).map(|t| t.1).or(result)
    }
    match name.strip_prefix("atomic_") {
        Some(rest) => {
            let special = ATOMIC_TYPES.iter().find(|t| t.0 == rest).map(|t| t.1);
            special.or_else(|| plain(rest)).map(|ty| (ty, true))
        }
        None => plain(name).map(|ty| (ty, false)),
    }
}

/// Whether this language has a type that at least one language has.
pub(super) fn has_type(name: &str, dialect: Dialect) -> bool {
    let name = bare(name);
    let here = column(dialect);
    match name.strip_prefix("atomic_") {
        Some(rest) if dialect.row().regions => ATOMIC_IN_OPENCL.contains(&rest),
        Some("bool" | "flag") => true,
        Some(rest) => {
            ATOMIC_TYPES.iter().any(|t| t.0 == rest)
                || matches!(rest, "ushort" | "ulong")
                || TYPES.iter().any(|t| t.0 == rest && t.2[here])
        }
        None => TYPES.iter().find(|t| t.0 == name).is_none_or(|t| t.2[here]),
    }
}

/// Names of the types that a declaration may begin with.
pub(super) fn type_names() -> Vec<String> {
    TYPES
        .iter()
        .flat_map(|t| [t.0.to_string(), format!("atomic_{}", t.0)])
        .collect()
}

/// Qualifiers that do not matter to a model.
pub(super) const QUALIFIERS: &[&str] = &[
    "volatile",
    "const",
    "restrict",
    "__restrict",
    "private",
    "__private",
];

/// A name without the namespaces of the standard libraries.
pub(super) fn bare(name: &str) -> &str {
    ["cuda::std::", "cuda::", "std::"]
        .iter()
        .find_map(|p| name.strip_prefix(p))
        .unwrap_or(name)
}

/// An order or scope of C++ in the spelling of C: `cuda::std::memory_order::release` becomes
/// `memory_order_release`.
pub(super) fn enumerator(name: &str) -> Cow<'_, str> {
    let name = bare(name.strip_prefix("::").unwrap_or(name));
    match (
        name.strip_prefix("memory_order::"),
        name.strip_prefix("thread_scope::"),
    ) {
        (Some(order), _) => format!("memory_order_{order}").into(),
        (_, Some(scope)) => scope.into(),
        _ => name.into(),
    }
}

/// Types of thread groups, without their namespace.
pub(super) const GROUP_TYPES: &[&str] = &[
    "thread_group",
    "thread_block",
    "grid_group",
    "cluster_group",
    "thread_block_tile",
    "coalesced_group",
];

/// A name without the namespace of cooperative groups.
pub(super) fn group_word(name: &str) -> &str {
    ["cooperative_groups::", "cg::"]
        .iter()
        .find_map(|p| name.strip_prefix(p))
        .unwrap_or(name)
}

/// A parameter of a template whose arguments are words of the library, such as scopes.
pub(super) fn takes_words(word: &str) -> bool {
    matches!(bare(word), "thread_scope" | "memory_order")
}
