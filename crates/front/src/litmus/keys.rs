//! The keys of the TOML test format, in one table; the reader's checks and the JSON schema use it.
//!
//! # Invariants
//! - The reader rejects every key that is not in this table, and the schema forbids it.

use super::fronts::FRONTS;
use crate::document::{TableKey, ValueShape, key, required};
pub(super) use program::occupancy::TARGETS;
use program::options::OPTIONS;
use program::proxy::PROXY_FENCE_WORDS;

/// Names of integer types, first PTX's, then those of the C-like dialects.
pub(super) const TYPES: &[&str] = &[
    "mbarrier",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "b8",
    "b16",
    "b32",
    "b64",
    "bool",
    "char",
    "uchar",
    "short",
    "ushort",
    "int",
    "uint",
    "long",
    "ulong",
    "float",
    "double",
    "half",
    "__nv_bfloat16",
    "atomic_bool",
    "atomic_int",
    "atomic_uint",
    "atomic_long",
    "atomic_ulong",
    "atomic_flag",
];
/// Supported dialects.
pub(super) const DIALECTS: &[&str] = &{
    let mut names = [""; FRONTS.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = FRONTS[n].dialect.name();
        n += 1;
    }
    names
};
/// Kinds of shared virtual memory.
pub(super) const SVM: &[&str] = &["none", "coarse", "fine", "fine-atomic"];
/// Regions of OpenCL memory.
const REGIONS: &[&str] = &["global", "local"];
/// Names of address spaces.
pub(super) const SPACES: &[&str] = &["global", "shared", "const", "param", "local"];
/// How CUDA memory is allocated, or its space.
pub(super) const KINDS: &[&str] = &[
    "device", "managed", "mapped", "system", "file", "shared", "local",
];
/// How OpenCL memory is allocated and shared.
pub(super) const OPENCL_KINDS: &[&str] = &[
    "buffer",
    "image",
    "pipe",
    "svm-coarse",
    "svm-fine",
    "svm-fine-atomic",
    "system",
    "program-scope",
];
/// All kinds, of CUDA and of OpenCL.
const ALL_KINDS: &[&str] = &[
    "device",
    "managed",
    "mapped",
    "system",
    "file",
    "shared",
    "local",
    "buffer",
    "image",
    "pipe",
    "svm-coarse",
    "svm-fine",
    "svm-fine-atomic",
    "program-scope",
];
pub(super) const PROXIES: &[&str] = PROXY_FENCE_WORDS.split_at(2).1;
/// Expected answers about the condition.
pub(super) const REACHABILITY: &[&str] = &["allowed", "forbidden", "required"];
/// Expected answers about races.
pub(super) const RACE: &[&str] = &["racy", "race-free"];
/// Expected answers about undefined behaviour.
pub(super) const UNDEFINED: &[&str] = &["undefined", "defined"];
/// Expected answers about lifetimes.
pub(super) const LIFETIME: &[&str] = &["misused", "proper"];
/// Expected answers about termination.
pub(super) const LIVENESS: &[&str] = &["terminates", "hangs"];
pub(super) const PROGRESS: &[&str] = &["fair", "hsa", "hsa-obe", "lobe", "obe"];
/// The properties that a matrix can give answers about.
pub const PROPERTIES: &[&str] = &[
    "reachability",
    "race",
    "undefined",
    "divergence",
    "lifetime",
    "liveness:fair",
    "liveness:hsa",
    "liveness:hsa-obe",
    "liveness:lobe",
    "liveness:obe",
];

/// An initial value: an integer, or a string such as `"&x"` or `"&x[1]"`.
const VALUE: ValueShape = ValueShape::OneOf(&[ValueShape::Integer, ValueShape::Text]);
const VALUES: ValueShape = ValueShape::OneOf(&[
    ValueShape::Integer,
    ValueShape::Text,
    ValueShape::List(&VALUE),
]);
const REGS: ValueShape = ValueShape::Open(&[], &VALUE);

/// Keys of a whole test.
pub(super) const TEST: &[TableKey] = &[
    required(
        "name",
        ValueShape::Text,
        "the test's name; in a template, usually with placeholders",
    ),
    key("doc", ValueShape::Text, "free text"),
    key("source", ValueShape::Text, "where the test comes from"),
    key(
        "tags",
        ValueShape::List(&ValueShape::Text),
        "words to select tests by",
    ),
    key(
        "allow",
        ValueShape::List(&ValueShape::Text),
        "warnings that the file provokes on purpose, by the name in brackets",
    ),
    key(
        "dialect",
        ValueShape::Word(DIALECTS),
        "the language of the code; ptx if absent",
    ),
    key(
        "barriers",
        ValueShape::Word(&["ptx", "litmus"]),
        "operands of barriers: ptx (barrier, thread count) or litmus (instance, id, quorum); \
         ptx if absent",
    ),
    key(
        "reductions",
        ValueShape::Word(&["ptx", "litmus"]),
        "litmus: `red` may be acquire, as in the published suites; ptx if absent",
    ),
    key(
        "condition",
        ValueShape::Text,
        "the proposition to decide, such as `P1:r0 == 1 /\\ x == 2`",
    ),
    key(
        "quantifier",
        ValueShape::Word(&["exists", "~exists", "forall"]),
        "the quantifier of the condition; exists if absent",
    ),
    key(
        "filter",
        ValueShape::Text,
        "only executions that satisfy this proposition are considered",
    ),
    key(
        "observe",
        ValueShape::List(&ValueShape::Text),
        "registers and locations that outcomes show, in addition to those of the condition",
    ),
    key(
        "options",
        ValueShape::Table(&OPTION_KEYS),
        "options of the model, such as `dep = \"syntactic\"`",
    ),
    key(
        "bound",
        ValueShape::Count,
        "the largest number of iterations of a loop; `--bound` overrides it, 4 if both are absent",
    ),
    key(
        "memory",
        ValueShape::Open(
            &[],
            &ValueShape::OneOf(&[
                ValueShape::Integer,
                ValueShape::Text,
                ValueShape::List(&VALUE),
                ValueShape::Table(LOCATION),
            ]),
        ),
        "locations: `x = 0`, `a = [0, 0]`, `p = \"&x\"` or a table",
    ),
    key(
        "machine",
        ValueShape::Table(MACHINE),
        "CUDA, OpenCL: attributes of the machine; all hold if absent",
    ),
    key(
        "thread",
        ValueShape::List(&ValueShape::Table(THREAD)),
        "the threads, in order",
    ),
    key(
        "kernel",
        ValueShape::OneOf(&[
            ValueShape::Table(KERNEL),
            ValueShape::List(&ValueShape::Table(NAMED_KERNEL)),
        ]),
        "threads that all run one code; with `host`: a list of kernels that the host launches",
    ),
    key(
        "host",
        ValueShape::List(&ValueShape::Table(HOST)),
        "CUDA, PTX, OpenCL: the threads of the host, in order",
    ),
    key(
        "function",
        ValueShape::List(&ValueShape::Table(FUNCTION)),
        "functions of the host that the runtime calls",
    ),
    key(
        "streams",
        ValueShape::Open(
            &[],
            &ValueShape::OneOf(&[ValueShape::Word(STREAMS), ValueShape::Table(STREAM)]),
        ),
        "CUDA and PTX: streams by name, blocking or non-blocking",
    ),
    key(
        "queues",
        ValueShape::Open(
            &[],
            &ValueShape::OneOf(&[ValueShape::Word(QUEUES), ValueShape::Table(QUEUE)]),
        ),
        "OpenCL: command queues by name, in-order or out-of-order",
    ),
    key(
        "events",
        ValueShape::List(&ValueShape::Text),
        "CUDA: events, by name",
    ),
    key(
        "expect",
        ValueShape::Open(&[], &ValueShape::Table(EXPECT)),
        "expected answers, by model",
    ),
    key(
        "run",
        ValueShape::List(&ValueShape::Table(RUN)),
        "observations that runs of the executor must show",
    ),
    key(
        "axis",
        ValueShape::List(&ValueShape::Table(AXIS)),
        "template: a choice between values; all combinations are tests",
    ),
    key(
        "matrix",
        ValueShape::List(&ValueShape::Table(MATRIX)),
        "template: expected answers as a grid over two axes",
    ),
    key(
        "instance",
        ValueShape::List(&ValueShape::Open(INSTANCE, &ValueShape::Text)),
        "template: one test each, with a name and values for placeholders",
    ),
];

/// Keys for the options of models.
const OPTION_KEYS: [TableKey; OPTIONS.len()] = {
    let mut keys = [key("", ValueShape::Text, ""); OPTIONS.len()];
    let mut i = 0;
    while i < keys.len() {
        keys[i] = key(
            OPTIONS[i].name,
            ValueShape::Word(OPTIONS[i].values),
            OPTIONS[i].doc,
        );
        i += 1;
    }
    keys
};

/// Keys of a location given as a table.
pub(super) const LOCATION: &[TableKey] = &[
    key(
        "init",
        VALUES,
        "initial value, or a list with one per element, or per member of a structure; \
         `\"unknown\"`: any value; 0 if absent",
    ),
    key(
        "size",
        ValueShape::Count,
        "number of elements that all start at `init`",
    ),
    key(
        "type",
        ValueShape::Type(TYPES),
        "type of an element; if absent, that of the accesses. PTX: also `mbarrier`, an object \
         made with the count in `init`, or none yet; CUDA: also a class, such as \
         `cuda::atomic<int>`; C family: also a structure that the code defines",
    ),
    key(
        "bytes",
        ValueShape::Count,
        "PTX: an array of this number of bytes, with accesses of several sizes; instead of `type` \
        and `size`",
    ),
    key(
        "fields",
        ValueShape::Open(&[], &ValueShape::Text),
        "PTX: the fields of an element, in order, each at a multiple of its size: `{ data = \
        \"u32[4]\", bar = \"mbarrier\" }`; instead of `type`",
    ),
    key(
        "tensor",
        ValueShape::Text,
        "PTX: the shape of the tensor of a tensor map: `b16[64, 128] box[64, 8] swizzle128` \
         (sizes and box from the dimension with adjacent elements; `strides[128]` in bytes)",
    ),
    key(
        "space",
        ValueShape::Word(SPACES),
        "global (one copy), shared (one per CTA), const, local (one per thread; OpenCL: one \
         per work-group)",
    ),
    key(
        "kind",
        ValueShape::Word(ALL_KINDS),
        "CUDA: device, managed, mapped, system, file, shared or local; managed if absent. \
         OpenCL: buffer, image, pipe, svm-coarse, svm-fine, svm-fine-atomic or system; buffer \
         if absent",
    ),
    key(
        "width",
        ValueShape::Count,
        "OpenCL: the number of pixels in a row of an image; all of them if absent",
    ),
    key(
        "height",
        ValueShape::Count,
        "OpenCL: the number of rows in a slice of an image; all of them if absent",
    ),
    key(
        "gpu",
        ValueShape::Count,
        "CUDA: the GPU that has this memory, for the kind `device`; 0 if absent",
    ),
    key(
        "atomic",
        ValueShape::Bool,
        "C and OpenCL: whether it is an atomic object; if absent, its type says so",
    ),
    key(
        "svm",
        ValueShape::Word(SVM),
        "OpenCL: the kind of shared virtual memory, as in `kind`; none if absent",
    ),
    key(
        "regions",
        ValueShape::List(&ValueShape::Word(REGIONS)),
        "OpenCL, as the published suites read it: one object in all of these regions, \
         fine-grained, scopes as written",
    ),
    key(
        "multimem",
        ValueShape::Bool,
        "PTX: an alias of an array with an element for each device is the multimem address of \
         these",
    ),
    key(
        "at",
        ValueShape::Text,
        "a second name for the address of this location, declared before: arrays of dynamic \
        shared memory begin at one place",
    ),
    key(
        "alias",
        ValueShape::Text,
        "another name for the memory of this location, declared before",
    ),
    key(
        "proxy",
        ValueShape::Word(PROXIES),
        "the proxy an alias goes through; generic (a second address) if absent",
    ),
];

/// Attributes of the machine, by their names in the CUDA runtime.
pub(super) const MACHINE: &[TableKey] = &[
    key(
        "pageableMemoryAccess",
        ValueShape::Bool,
        "GPUs reach system-allocated memory",
    ),
    key(
        "pageableMemoryAccessUsesHostPageTables",
        ValueShape::Bool,
        "… through the host's page tables; matters for files",
    ),
    key(
        "concurrentManagedAccess",
        ValueShape::Bool,
        "host and GPUs may access managed memory at the same time",
    ),
    key(
        "hostNativeAtomicSupported",
        ValueShape::Bool,
        "GPUs and the host have atomics in mapped memory",
    ),
    key(
        "p2pNativeAtomicSupported",
        ValueShape::OneOf(&[
            ValueShape::Bool,
            ValueShape::List(&ValueShape::List(&ValueShape::Count)),
        ]),
        "GPUs have atomics in each other's memory: all, none, or those listed as in `[[0, 1]]`",
    ),
    key(
        "CL_DEVICE_SVM_ATOMICS",
        ValueShape::Bool,
        "OpenCL: devices have atomics in fine-grained shared virtual memory",
    ),
];

pub(super) const THREAD: &[TableKey] = &[
    key("name", ValueShape::Text, "P0, P1, … if absent"),
    key("gpu", ValueShape::Count, "its GPU; 0 if absent"),
    key("device", ValueShape::Count, "the same as `gpu`"),
    key(
        "cta",
        ValueShape::Count,
        "its CTA, counted per GPU; 0 if absent",
    ),
    key("block", ValueShape::Count, "the same as `cta`"),
    key("work_group", ValueShape::Count, "the same as `cta`"),
    key(
        "cluster",
        ValueShape::Count,
        "the cluster of its CTA; if absent, the CTA is alone in its cluster",
    ),
    key(
        "warp",
        ValueShape::Count,
        "its warp, counted per CTA; if absent, the thread is alone in its warp",
    ),
    SUB_GROUP,
    key(
        "domain",
        ValueShape::Count,
        "memory synchronization domain of its kernel; 0 if absent",
    ),
    key(
        "kernel",
        ValueShape::Count,
        "OpenCL: its kernel instance, one of several enqueued by the host; 0 if absent",
    ),
    key("host", ValueShape::Bool, "a host thread"),
    key(
        "launched",
        ValueShape::Bool,
        "whether the thread runs no other code: its CTA starts and exits, as those of a kernel do",
    ),
    key("regs", REGS, "registers with initial values"),
    required("code", ValueShape::Text, "its code; may be empty"),
];

/// A size: a number, or one for each of up to three dimensions.
const EXTENT: ValueShape =
    ValueShape::OneOf(&[ValueShape::Count, ValueShape::List(&ValueShape::Count)]);

/// Keys that all kinds of kernels share.
const CLUSTER: TableKey = key(
    "cluster",
    EXTENT,
    "CTAs per cluster, or `[x, y, z]`; if absent, each CTA is alone in its cluster",
);
const DOMAIN: TableKey = key(
    "domain",
    ValueShape::Count,
    "its memory synchronization domain; 0 if absent",
);
const SAME_REGS: TableKey = key(
    "regs",
    REGS,
    "registers with initial values, the same in all threads",
);

const COOPERATIVE: TableKey = key(
    "cooperative",
    ValueShape::Bool,
    "a cooperative launch: it fails unless all blocks are resident at once",
);

/// Another name for `warp`.
/// Which work-items share a sub-group.
pub(super) const MAPPINGS: &[&str] = &["consecutive", "strided"];
const SUB_GROUP_MAPPING: TableKey = key(
    "sub_group_mapping",
    ValueShape::Word(MAPPINGS),
    "OpenCL: the work-items of a sub-group have consecutive linear ids, or ids that are the number \
     of sub-groups apart; consecutive if absent",
);
const SUB_GROUP: TableKey = key("sub_group", ValueShape::Count, "the same as `warp`");

pub(super) const KERNEL: &[TableKey] = &[
    key(
        "grid",
        EXTENT,
        "number of CTAs, or `[x, y, z]`; 1 if absent",
    ),
    key(
        "block",
        EXTENT,
        "threads per CTA, or `[x, y, z]`; needed, except where OpenCL has `global` and `local`",
    ),
    key(
        "global",
        EXTENT,
        "OpenCL: the global size, in up to three dimensions; 0: a kernel without work-items",
    ),
    key(
        "local",
        EXTENT,
        "OpenCL: the size of a work-group; the last ones of a dimension may be smaller",
    ),
    key("offset", EXTENT, "OpenCL: the first global id; 0 if absent"),
    key(
        "uniform",
        ValueShape::Bool,
        "OpenCL: whether all work-groups must be full; false if absent",
    ),
    CLUSTER,
    key(
        "warp",
        ValueShape::Count,
        "threads per warp, in the order of their linear ids; 32 if absent",
    ),
    SUB_GROUP,
    SUB_GROUP_MAPPING,
    key("gpu", ValueShape::Count, "the GPU it runs on; 0 if absent"),
    key("device", ValueShape::Count, "the same as `gpu`"),
    DOMAIN,
    COOPERATIVE,
    SAME_REGS,
    key(
        "assume",
        ValueShape::Text,
        "assumptions about the launch and `regs`, for answers about every launch: `n <= 1024 && \
        blockDim.x % 32 == 0`",
    ),
    required(
        "code",
        ValueShape::Text,
        "the code of every thread; `%tid.x`, `%ctaid.x`, `%ntid.x`, `%nctaid.x` differ",
    ),
];

/// Keys of a kernel in a host program.
pub(super) const NAMED_KERNEL: &[TableKey] = &[
    required("name", ValueShape::Text, "what launches call it"),
    CLUSTER,
    key("warp", ValueShape::Count, "threads per warp; 32 if absent"),
    SUB_GROUP,
    SUB_GROUP_MAPPING,
    DOMAIN,
    COOPERATIVE,
    key(
        "programmatic",
        ValueShape::Bool,
        "CUDA, PTX: launched with programmatic stream serialization: it may start before the \
         kernel in front of it in its stream has ended",
    ),
    key(
        "initializer",
        ValueShape::Bool,
        "OpenCL: initialisers of program-scope variables, run before all kernels",
    ),
    key(
        "cleanup",
        ValueShape::Bool,
        "OpenCL: destructors of program-scope variables, run after all kernels",
    ),
    key(
        "uniform",
        ValueShape::Bool,
        "OpenCL: whether all work-groups of a launch must be full; false if absent",
    ),
    SAME_REGS,
    required(
        "code",
        ValueShape::Text,
        "the code of every thread; in a test in PTX, the host alone is CUDA C++",
    ),
];

pub(super) const HOST: &[TableKey] = &[
    key("name", ValueShape::Text, "H0, H1, … if absent"),
    key("regs", REGS, "registers with initial values"),
    required(
        "code",
        ValueShape::Text,
        "its code: accesses to memory and calls of the runtime",
    ),
];

pub(super) const FUNCTION: &[TableKey] = &[
    required("name", ValueShape::Text, "what calls call it"),
    required("code", ValueShape::Text, "its code: accesses to memory"),
];

pub(super) const STREAMS: &[&str] = &["blocking", "non-blocking"];
pub(super) const QUEUES: &[&str] = &["in-order", "out-of-order"];

pub(super) const STREAM: &[TableKey] = &[
    key("kind", ValueShape::Word(STREAMS), "blocking if absent"),
    key("device", ValueShape::Count, "its device; 0 if absent"),
];

pub(super) const QUEUE: &[TableKey] = &[
    key("order", ValueShape::Word(QUEUES), "in-order if absent"),
    key("device", ValueShape::Count, "its device; 0 if absent"),
    key(
        "context",
        ValueShape::Text,
        "its context; `context` if absent",
    ),
];

/// Keys of one model's expected answers.
pub(super) const EXPECT: &[TableKey] = &[
    key(
        "reachability",
        ValueShape::Word(REACHABILITY),
        "of the condition; required: every execution satisfies it",
    ),
    key(
        "readings",
        ValueShape::Open(&[], &ValueShape::Open(&[], &ValueShape::Word(REACHABILITY))),
        "of the condition, if the answer depends on the reading of a source: by option and value, \
        as in `{ async-fence = { thread = \"allowed\" } }`; other values keep the expectation",
    ),
    key(
        "race",
        ValueShape::Word(RACE),
        "whether some execution has a data race",
    ),
    key(
        "undefined",
        ValueShape::Word(UNDEFINED),
        "whether some execution is undefined",
    ),
    key(
        "lifetime",
        ValueShape::Word(LIFETIME),
        "of a host program: whether some execution uses memory, a stream or an event after its end",
    ),
    key(
        "liveness",
        ValueShape::Table(LIVENESS_KEYS),
        "whether it ends, by progress model",
    ),
    key(
        "axiom",
        ValueShape::Text,
        "the axiom that `forbidden` rests on",
    ),
    key(
        "source",
        ValueShape::Text,
        "the section of the specification",
    ),
    key(
        "known",
        ValueShape::Text,
        "why the model is known to answer differently: if unmet, it is reported and does not \
        fail; if met, it fails",
    ),
];

/// Memory models of the executor.
pub(super) const MEMORIES: &[&str] = &["sc", "weak", "language"];
/// Scheduling modes of the executor.
pub(super) const SCHEDULING: &[&str] = &[
    "independent",
    "lockstep",
    "units",
    "serial-groups",
    "subgroups",
];
/// How the executor chooses the next step.
pub(super) const SCHEDULES: &[&str] = &["random", "exhaustive"];
/// How runs can end.
pub(super) const ENDS: &[&str] = &[
    "finished",
    "deadlock",
    "livelock",
    "stale-livelock",
    "step-limit",
    "stray",
    "divergence",
    "division",
    "launch-failure",
];
/// How many steps runs may bind early.
pub(super) const EARLY: &[&str] = &["none", "local", "full:1", "full:2", "full"];
/// How many outcomes satisfy the condition.
pub(super) const HOLDS: &[&str] = &["always", "sometimes", "never"];

/// Keys of a run of the executor, with its expected results.
pub(super) const RUN: &[TableKey] = &[
    key(
        "memory",
        ValueShape::Word(MEMORIES),
        "sc (if absent); weak, PTX's; language, that of the test's own language",
    ),
    key(
        "early",
        ValueShape::Word(EARLY),
        "the operations that weak memories bind early; none if absent",
    ),
    key(
        "scheduling",
        ValueShape::Word(SCHEDULING),
        "which thread steps next; independent if absent",
    ),
    key(
        "schedule",
        ValueShape::Word(SCHEDULES),
        "random (if absent) or exhaustive",
    ),
    key(
        "runs",
        ValueShape::Count,
        "how many random runs; 100 if absent",
    ),
    key(
        "steps",
        ValueShape::Count,
        "the largest number of steps of a run",
    ),
    key(
        "warp_size",
        ValueShape::Count,
        "the number of threads in a warp; as in the test if absent",
    ),
    key(
        "sms",
        ValueShape::Count,
        "multiprocessors; enough for every block if absent",
    ),
    key(
        "resident",
        ValueShape::Count,
        "the number of blocks for which a multiprocessor has room",
    ),
    key(
        "target",
        ValueShape::Word(TARGETS),
        "a target such as sm_80; its registers and shared memory give `resident`",
    ),
    key(
        "registers",
        ValueShape::Count,
        "the registers of each thread, with `target`; enough for every block if absent",
    ),
    key("cooperative", ValueShape::Bool, "a cooperative launch"),
    key(
        "ends",
        ValueShape::Word(ENDS),
        "how runs end: finished, all of them; otherwise, one of them",
    ),
    key(
        "race",
        ValueShape::Word(RACE),
        "whether some run has a race",
    ),
    key(
        "condition",
        ValueShape::Word(HOLDS),
        "the observed outcomes in which the condition holds",
    ),
    key(
        "why",
        ValueShape::Text,
        "part of the reason given for a race, or for a run that does not finish",
    ),
];

const LIVENESS_KEYS: &[TableKey] = &[
    key(
        "fair",
        ValueShape::Word(LIVENESS),
        "every thread is scheduled again and again",
    ),
    key(
        "hsa",
        ValueShape::Word(LIVENESS),
        "the lowest-numbered live thread is",
    ),
    key(
        "hsa-obe",
        ValueShape::Word(LIVENESS),
        "the lowest-numbered live thread and those that have started are",
    ),
    key(
        "lobe",
        ValueShape::Word(LIVENESS),
        "threads up to the highest-numbered one that has started are",
    ),
    key(
        "obe",
        ValueShape::Word(LIVENESS),
        "threads that have started are",
    ),
];

/// Keys of an axis of a template.
pub(super) const AXIS: &[TableKey] = &[
    required(
        "name",
        ValueShape::Text,
        "`${name}` is replaced by the name of the chosen value",
    ),
    required(
        "value",
        ValueShape::List(&ValueShape::Open(AXIS_VALUE, &ValueShape::Text)),
        "the values to choose from",
    ),
];

const AXIS_VALUE: &[TableKey] = &[required(
    "name",
    ValueShape::Text,
    "the value's name; other keys are placeholders",
)];

/// Keys of a grid of expected answers.
pub(super) const MATRIX: &[TableKey] = &[
    required("model", ValueShape::Text, "the model"),
    key(
        "property",
        ValueShape::Word(PROPERTIES),
        "the property of the answers; reachability if absent",
    ),
    required("rows", ValueShape::Text, "the axis of the rows"),
    key(
        "columns",
        ValueShape::Text,
        "the axis of the columns; if absent, each row has one answer",
    ),
    key(
        "readings",
        ValueShape::Text,
        "an option that chooses the reading of a source: its values are the columns, and each row \
        has the answers of one test",
    ),
    key(
        "letters",
        ValueShape::Open(&[], &ValueShape::Text),
        "the meaning of the cells; A, F and R if absent",
    ),
    required(
        "table",
        ValueShape::Text,
        "the grid: white space between cells, `-` for no expectation",
    ),
    key(
        "axiom",
        ValueShape::Text,
        "the axiom that `forbidden` rests on",
    ),
    key(
        "source",
        ValueShape::Text,
        "the section of the specification",
    ),
];

/// Keys of one test of a template. Other keys are placeholders.
pub(super) const INSTANCE: &[TableKey] = &[
    required("name", ValueShape::Text, "the test's name"),
    key(
        "expect",
        ValueShape::Open(&[], &ValueShape::Table(EXPECT)),
        "expected answers, by model",
    ),
];
