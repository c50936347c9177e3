//! Lists the constructs that Fencepost refuses, with messages: violations of language rules, and
//! unsupported constructs.
//!
//! # Sources
//! - C11, 7.17.7, *Operations on atomic types*; ISO C++, atomics.ref.ops; OpenCL C, *Atomic
//!   Functions*, *Memory Scope*, *constant Address Space*.

use super::floats;
use super::types::Structure;
use super::words::{LANGUAGES, column, has_type, type_named};
use diag::{Sink, Span};
use program::{Dialect, Scope};

/// Unsupported library classes: a description, and an alternative.
const CLASSES: &[(&str, &str, &str)] = &[(
    "multi_grid_group",
    "groups over several devices are",
    "use the grid of one device",
)];

/// Unsupported words: whether C, OpenCL C and CUDA C++ have them, a description, and an
/// alternative.
const WORDS: &[(&[&str], [bool; 3], &str, &str)] = &[
    (&["half"], [false, true, true], "", "use `float`"),
    (
        &["_Float16", "__float128", "_Complex", "_Imaginary"],
        [true, false, false],
        FLOATING,
        INTEGERS,
    ),
    (
        &["__nv_fp8_e4m3", "__nv_fp8_e5m2"],
        CUDA,
        FLOATING,
        INTEGERS,
    ),
    (
        &["__int128", "__int128_t", "__uint128_t"],
        [true, false, false],
        "integers of 128 bits are",
        "use 64 bits",
    ),
    (&["class"], CUDA, "", "C has `struct`"),
    (
        &["try", "throw", "catch", "noexcept"],
        CUDA,
        "exceptions are",
        "leave them out",
    ),
    (
        &["delete"],
        CUDA,
        "memory from the heap is",
        "declare it in `[memory]`",
    ),
    (
        &["template", "typename", "decltype", "operator"],
        CUDA,
        "",
        "write out what is meant",
    ),
    (
        &["namespace", "using"],
        CUDA,
        "namespaces of your own are",
        "write the names without them",
    ),
    (
        &["virtual", "friend", "mutable"],
        CUDA,
        "such members of classes are",
        "use functions",
    ),
    (
        &["typeid", "dynamic_cast"],
        CUDA,
        "types at run time are",
        "write the intended operation",
    ),
    (
        &["typeof", "__typeof__", "__typeof"],
        [true, false, true],
        "types of expressions are",
        "write the type",
    ),
    (&["alignof", "alignas"], CUDA, ALIGNMENT, UNALIGNED),
    (
        &["_Alignof", "_Alignas"],
        [true, false, false],
        ALIGNMENT,
        UNALIGNED,
    ),
    (&["__align__"], CUDA, ALIGNMENT, UNALIGNED),
    (&["__alignof__"], [true, false, true], ALIGNMENT, UNALIGNED),
    (
        &["_Generic"],
        [true, false, false],
        "generic selections are",
        "write the one that is selected",
    ),
    (
        &["thread_local"],
        CUDA,
        "variables of threads of the host are",
        "use a variable of the function",
    ),
    (
        &["_Thread_local"],
        [true, false, false],
        "such variables are",
        "use a variable of the thread's code",
    ),
    (
        &["_Noreturn"],
        [true, false, false],
        "functions that do not return are",
        "leave the word out",
    ),
    (
        &["__extension__", "__label__"],
        [true, false, true],
        "extensions of GCC are",
        "write it in the language",
    ),
    (
        &["__managed__"],
        CUDA,
        "managed variables of the code are",
        "declare it in `[memory]`, with `kind = \"managed\"`",
    ),
    (
        &["__cluster_dims__", "__block_size__"],
        CUDA,
        "shapes of launches in the code are",
        "say them in `[kernel]`: `cluster = 2`, `block = 32`",
    ),
    (
        &[
            "and", "or", "not", "xor", "bitand", "bitor", "compl", "and_eq", "or_eq", "xor_eq",
            "not_eq",
        ],
        CUDA,
        "operators in words are",
        "write the sign: `&&`",
    ),
    (
        &["__volatile__", "__const__", "__const"],
        [true, false, true],
        "such spellings are",
        "write the word without `__`",
    ),
    (
        &["dim3"],
        CUDA,
        "variables of type `dim3` are",
        "write the member that is meant, as in `blockDim.x`",
    ),
    (
        &["cudaSurfaceObject_t", "texture", "surface"],
        CUDA,
        "surfaces and texture references are",
        "fetch from a texture object, `cudaTextureObject_t`; for surfaces, compile the file: \
         `--with nvcc`",
    ),
    (
        &[
            "image1d_t",
            "image1d_buffer_t",
            "image2d_t",
            "read_only",
            "write_only",
            "read_write",
            "__read_only",
            "__write_only",
            "__read_write",
        ],
        OPENCL,
        "",
        "use memory",
    ),
    (
        &["image1d_array_t", "image2d_array_t", "image3d_t"],
        OPENCL,
        "",
        "use memory",
    ),
    (
        &[
            "image2d_depth_t",
            "image2d_array_depth_t",
            "image2d_msaa_t",
            "image2d_array_msaa_t",
        ],
        OPENCL,
        "images of this shape are",
        "use `image2d_t` or `image2d_array_t`",
    ),
    (&["sampler_t"], OPENCL, "", "use memory"),
    (
        &["pipe", "__pipe", "reserve_id_t"],
        OPENCL,
        "",
        "use memory",
    ),
    (
        &["constexpr", "static_cast", "reinterpret_cast", "const_cast"],
        CUDA,
        "",
        "C has `const`, and casts `(int)x`",
    ),
    (&["__shared__"], CUDA, "", "OpenCL C has `local`"),
    (&["__global__"], CUDA, "", "OpenCL C has `kernel`"),
    (
        &[
            "__device__",
            "__host__",
            "__constant__",
            "__managed__",
            "__forceinline__",
            "__noinline__",
        ],
        CUDA,
        "",
        "leave it out",
    ),
    (
        &["__launch_bounds__", "__maxnreg__"],
        CUDA,
        "",
        "leave it out",
    ),
    (
        &["kernel", "__kernel"],
        OPENCL,
        "",
        "CUDA C++ has `__global__`",
    ),
    (
        &["local", "__local"],
        OPENCL,
        "",
        "CUDA C++ has `__shared__`",
    ),
    (
        &[
            "__global",
            "global",
            "__constant",
            "constant",
            "__private",
            "__generic",
        ],
        OPENCL,
        "",
        "leave it out",
    ),
    (&["register"], [true, false, false], "", "leave it out"),
    (
        &["_Atomic"],
        [true, false, false],
        "",
        "use the atomic types and functions of the language",
    ),
    (
        &["restrict"],
        [true, true, false],
        "",
        "CUDA C++ has `__restrict__`",
    ),
    (
        &["threadIdx", "blockIdx", "blockDim", "gridDim"],
        CUDA,
        "",
        "OpenCL C has `get_local_id(0)` and its like",
    ),
];

/// The reason why signal handlers are refused, and what to use.
const HANDLERS: &str = "write the handler as a thread of its own if it may be one: \"it is \
                        unspecified which thread of execution contains the signal handler \
                        invocation\" (ISO C++, intro.multithread)";

const OPENCL: [bool; 3] = [false, true, false];
const CUDA: [bool; 3] = [false, false, true];
const FLOATING: &str = "such floating-point types are";
const INTEGERS: &str = "use `float` or an integer type: orders and races do not depend on it";
const ALIGNMENT: &str = "alignments of your own are";
const UNALIGNED: &str = "leave them out, if nothing depends on them";

/// The reason for refusing a word.
pub(super) struct Refused {
    /// Whether C, OpenCL C and CUDA C++ have it.
    pub(super) has: [bool; 3],
    /// A description; empty if Fencepost supports the word in the languages that have it.
    pub(super) what: &'static str,
    pub(super) instead: &'static str,
}

impl Refused {
    pub(super) fn report(&self, word: &str, dialect: Dialect, span: Span, sink: &mut Sink) {
        let Refused { has, what, instead } = *self;
        if has[column(dialect)] {
            sink.error("unsupported", span, format!("{what} not supported"), |d| {
                d.label("the language has them, Fencepost does not")
                    .help(instead)
            });
            return;
        }
        let others: Vec<&str> = LANGUAGES
            .iter()
            .zip(has)
            .filter(|of| of.1)
            .map(|of| of.0.1)
            .collect();
        sink.error(
            "not-in-language",
            span,
            format!("there is no `{word}` in {}", LANGUAGES[column(dialect)].1),
            |d| {
                let have = if others.len() == 1 { "has" } else { "have" };
                d.label(format!("{} {have} it", others.join(" and ")))
                    .help(instead)
            },
        );
    }
}

/// Whether a file may use a word of another language as a name of its own: `local(0)` in CUDA C++.
pub(super) fn is_own_name(word: &str, dialect: Dialect) -> bool {
    let other =
        |row: &&(&[&str], [bool; 3], &str, &str)| row.0.contains(&word) && !row.1[column(dialect)];
    dialect == Dialect::Cuda && !word.starts_with('_') && WORDS.iter().any(|row| other(&row))
}

/// The reason for refusing a word in a language; `None`: the word is allowed, or no language has
/// it.
pub(super) fn word(word: &str, dialect: Dialect) -> Option<Refused> {
    if floats::named(word, column(dialect)).is_some() {
        return None;
    }
    if let Some((_, has, what, instead)) = WORDS.iter().find(|row| row.0.contains(&word)) {
        let supported = has[column(dialect)] && what.is_empty();
        return (!supported).then_some(Refused {
            has: *has,
            what,
            instead,
        });
    }
    type_word(word, dialect)
}

/// The same for type names that are not keywords.
fn type_word(word: &str, dialect: Dialect) -> Option<Refused> {
    let vectors = [
        false,
        Structure::vector(word, true).is_some(),
        Structure::vector(word, false).is_some(),
    ];
    if vectors[column(dialect)] {
        return None;
    }
    if vectors.contains(&true) {
        let has = vectors;
        return Some(Refused {
            has,
            what: "",
            instead: "use a variable for each component",
        });
    }
    let of = word.trim_end_matches(|c: char| c.is_ascii_digit());
    if of == "half" && of != word {
        return Some(Refused {
            has: [false, true, true],
            what: FLOATING,
            instead: INTEGERS,
        });
    }
    if type_named(word).is_none() || has_type(word, dialect) {
        return None;
    }
    let all = [Dialect::C, Dialect::OpenCl, Dialect::Cuda];
    let has = all.map(|dialect| has_type(word, dialect));
    Some(Refused {
        has,
        what: "",
        instead: "use a type of the language, such as `unsigned int`",
    })
}

/// Whether a word names a type in one of the languages, or can begin a declaration.
pub(super) fn names_type(name: &str, dialect: Dialect) -> bool {
    type_named(name).is_some()
        || Structure::vector(name, dialect.row().regions).is_some_and(|_| column(dialect) > 0)
        || word(name, dialect).is_some()
}

/// Unsupported functions of the languages and their compilers: the beginnings of their names, a
/// description, and an alternative.
const FUNCTIONS: &[(&str, &str, &str)] = &[
    (
        "__shfl",
        "shuffles without `_sync`, which GPUs of today do not have",
        "use `__shfl_sync`",
    ),
    (
        "__ballot",
        "votes without `_sync`, which GPUs of today do not have",
        "use `__ballot_sync`",
    ),
    (
        "__any",
        "votes without `_sync`, which GPUs of today do not have",
        "use `__any_sync`",
    ),
    (
        "__all",
        "votes without `_sync`, which GPUs of today do not have",
        "use `__all_sync`",
    ),
    (
        "__match_",
        "warp matches with a second result",
        "use `__match_any_sync`",
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
    (
        "__nv_atomic_",
        "builtins with values in memory",
        "use the forms that end in `_n`",
    ),
    (
        "__cvta_",
        "conversions between address spaces",
        "give assembly the pointer itself: `\"l\"(p)`",
    ),
    ("__cluster_", "queries of clusters", "leave them out"),
    (
        "__pipeline_",
        "asynchronous copies",
        "copy with plain loads and stores",
    ),
    (
        "memcpy_async",
        "asynchronous copies",
        "copy with plain loads and stores",
    ),
    (
        "async_work_group_",
        "asynchronous copies",
        "copy with plain loads and stores",
    ),
    (
        "wait_group_events",
        "asynchronous copies",
        "copy with plain loads and stores",
    ),
    ("signal", "signal handlers", HANDLERS),
    ("sigaction", "signal handlers", HANDLERS),
    ("raise", "signal handlers", HANDLERS),
    ("clock", "time", "leave it out"),
    (
        "vload",
        "vectors of what lies in a row",
        "load the elements one by one",
    ),
    (
        "vstore",
        "vectors of what lies in a row",
        "store the elements one by one",
    ),
    (
        "convert_",
        "conversions of vectors and of floating-point numbers",
        "convert the components one by one",
    ),
    (
        "as_",
        "other readings of vectors and of floating-point numbers",
        "convert the components one by one",
    ),
    (
        "mad_sat",
        "sums of products that keep to their type",
        "write out the steps",
    ),
    ("upsample", "joined halves", "write out the shift"),
    (
        "shuffle",
        "vectors of what lies in a row",
        "name the components",
    ),
    ("__double", "floating-point numbers", "use integers"),
    ("__float", "floating-point numbers", "use integers"),
    ("__int_as_float", "floating-point numbers", "use integers"),
    (
        "__longlong_as_double",
        "floating-point numbers",
        "use integers",
    ),
    (
        "abort",
        "the abortion of a program",
        "write the outcome that must not be into `condition`",
    ),
    ("exit", "the end of a program", "use `return`"),
    ("malloc", "memory from the heap", "declare it in `[memory]`"),
    ("free", "memory from the heap", "leave it out"),
    (
        "memcpy",
        "copies of memory",
        "copy with plain loads and stores",
    ),
    ("memset", "copies of memory", "write with plain stores"),
    ("tex", "textures", "see the texture proxy of PTX: `tld`"),
    (
        "surf",
        "surfaces",
        "see the surface proxy of PTX: `suld`, `sust`",
    ),
    ("read_imageh", "images of `half`", "use `read_imagef`"),
    ("write_imageh", "images of `half`", "use `write_imagef`"),
    (
        "get_image_",
        "queries of images but their width and height",
        "write the number",
    ),
    (
        "work_group_",
        "work-group functions of extensions",
        "exchange through local memory and `barrier`, which orders more",
    ),
    (
        "sub_group_",
        "sub-group functions of extensions, which not all work-items of the sub-group have to \
        come to",
        "exchange through local memory and `sub_group_barrier`, which orders more",
    ),
    (
        "__builtin_c",
        "counts that are undefined for 0",
        "use `__builtin_popcount`, or `__clz` in CUDA C++",
    ),
    (
        "thrd_",
        "threads that programs start",
        "write each as a `[[thread]]`",
    ),
    (
        "pthread_",
        "threads that programs start, and their locks",
        "write each as a `[[thread]]`, and the lock with atomic operations",
    ),
    (
        "mtx_",
        "locks of the C library",
        "write the lock with atomic operations",
    ),
];

/// The description of an unsupported function, and an alternative; `None`: no such function.
pub(super) fn function(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.rsplit("::").next().unwrap_or(name);
    FUNCTIONS
        .iter()
        .find(|f| name.starts_with(f.0))
        .map(|f| (f.1, f.2))
}

/// The description of an unsupported library class, and an alternative.
pub(super) fn class(word: &str) -> Option<(&'static str, &'static str)> {
    let (_, name) = word.rsplit_once("::")?;
    CLASSES.iter().find(|c| c.0 == name).map(|c| (c.1, c.2))
}

/// Endings of scope names in all dialects and in PTX.
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

/// The dialect's name for a scope, given the name in another dialect.
pub(super) fn scope_meant(word: &str, dialect: Dialect) -> Option<&'static str> {
    let (_, scope) = ENDINGS
        .iter()
        .find(|e| word.ends_with(&format!("_{}", e.0)))?;
    dialect
        .row()
        .scopes
        .iter()
        .find(|s| s.1 == *scope)
        .map(|s| s.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_refused_where_they_mean_something() {
        let said =
            |name: &str, dialect| word(name, dialect).map(|refused| refused.what.to_string());
        assert!(class("cg::multi_grid_group").is_some() && class("multi_grid_group").is_none());
        assert_eq!(said("x", Dialect::C), None);
        for (name, [c, opencl, cuda]) in [
            ("uint", [false, true, true]),
            ("uchar", [false, true, false]),
            ("_Bool", [true, true, false]),
            ("int8_t", [true, false, true]),
            ("size_t", [true; 3]),
            ("atomic_uint", [true; 3]),
            ("atomic_char", [true, false, true]),
            ("int2", [false, true, true]),
            ("longlong2", [false, false, true]),
            ("kernel", [false, true, false]),
            ("__global__", [false, false, true]),
            ("restrict", [true, true, false]),
        ] {
            for (dialect, has) in [
                (Dialect::C, c),
                (Dialect::OpenCl, opencl),
                (Dialect::Cuda, cuda),
            ] {
                assert_eq!(said(name, dialect).is_none(), has, "{name} in {dialect}");
            }
        }
    }

    #[test]
    fn scopes_of_other_dialects_are_understood_in_messages() {
        assert_eq!(
            scope_meant("cuda::thread_scope_gpu", Dialect::Cuda),
            Some("thread_scope_device")
        );
        assert_eq!(
            scope_meant("memory_scope_block", Dialect::OpenCl),
            Some("memory_scope_work_group")
        );
        assert_eq!(scope_meant("memory_scope_devise", Dialect::OpenCl), None);
    }
}
