//! The one table of base names: what a model may say about a skeleton, with one line each.
//!
//! Tags (from [`crate::program::tags`]) are sets too; they need no row here.

use crate::model::ir::Kind;
use crate::model::signature::{BaseName, OptionSpec, Signature};
use crate::program::ATTRIBUTES;
use crate::program::tags::{SCOPE_TAGS, TAGS};

/// Base sets that are not tags.
const SETS: &[(&str, &str)] = &[
    ("R", "reads"),
    ("W", "writes, initial ones included"),
    ("M", "reads and writes"),
    ("F", "fences and both halves of barriers"),
    ("IW", "initial writes"),
    ("FW", "final writes: empty, kept for published files"),
    ("NAL", "accesses to locations declared non-atomic (C-like dialects)"),
    ("FGA", "OpenCL: accesses to fine-grained shared virtual memory with atomics"),
    ("HOST", "events of host threads"),
    ("P2P", "CUDA: events of GPU threads, but accesses to memory of a GPU without native atomics between the two"),
    ("UL", "unlock events: empty, kept for published files"),
    ("LK", "lock events: empty, kept for published files"),
];

/// CUDA: accesses by who allocated the memory ([`crate::program::MemoryKind`]).
pub(super) const MEMORY_KINDS: &[(&str, &str)] = &[
    ("MANAGED", "CUDA: accesses to managed memory"),
    ("MAPPED", "CUDA: accesses to mapped (pinned) memory of the host"),
    ("PAGEABLE", "CUDA: accesses to system-allocated memory, files aside"),
    ("PAGEABLE_FILE", "CUDA: accesses to system-allocated memory that maps a file"),
    ("GPU_MEMORY", "CUDA: accesses to memory of a GPU"),
    ("PRIVATE", "CUDA: accesses to memory of a single block or thread"),
];

/// Attributes of the machine ([`crate::program::ATTRIBUTES`]).
const MACHINE: &str = "CUDA: every event if the test's machine has the attribute, else none";

/// Tags of single dialects that published models speak of: an event is in such a set if it carries the tag.
const DIALECT_TAGS: &[(&str, &str)] = &[
    ("ATOM", "Vulkan: atomic access"),
    ("NONPRIV", "Vulkan: non-private access"),
    ("AV", "Vulkan: availability operation"),
    ("VIS", "Vulkan: visibility operation"),
    ("AVDEVICE", "Vulkan: device-wide availability operation"),
    ("VISDEVICE", "Vulkan: device-wide visibility operation"),
    ("SC0", "Vulkan: access of storage class 0"),
    ("SC1", "Vulkan: access of storage class 1"),
    ("SC2", "Vulkan: access of storage class 2"),
    ("SC3", "Vulkan: access of storage class 3"),
    ("SEMSC0", "Vulkan: semantics include storage class 0"),
    ("SEMSC1", "Vulkan: semantics include storage class 1"),
    ("SEMSC2", "Vulkan: semantics include storage class 2"),
    ("SEMSC3", "Vulkan: semantics include storage class 3"),
    ("SEMAV", "Vulkan: semantics include availability"),
    ("SEMVIS", "Vulkan: semantics include visibility"),
    ("CBAR", "Vulkan: control barrier"),
];

/// Base relations.
const RELATIONS: &[(&str, &str)] = &[
    ("po", "program order"),
    ("int", "both events in one thread (initial writes form one)"),
    ("ext", "events in different threads"),
    ("loc", "same memory (physical location)"),
    ("vloc", "same virtual address"),
    ("rmw", "read half to write half of one atomic"),
    ("addr", "address dependency"),
    ("data", "data dependency"),
    ("ctrl", "control dependency"),
    ("sr", "each event's scope includes the other's thread"),
    ("swarp", "threads of one warp (sub-group)"),
    ("scta", "threads of one CTA (work-group)"),
    ("scluster", "threads of one cluster"),
    ("sgpu", "threads of one GPU (device), and of one memory synchronization domain"),
    ("one-gpu", "threads on one GPU, whatever their memory synchronization domains"),
    ("ssg", "threads of one sub-group"),
    ("swg", "threads of one work-group"),
    ("sqf", "threads of one queue family"),
    ("sdv", "threads of one device"),
    ("syncbar", "arrival to wait of one barrier and phase"),
    (
        "divergence",
        "OpenCL, CUDA: arrivals at a barrier that some thread of the group does not execute as it must",
    ),
    ("exitbar", "event of a thread to a wait that passes because the thread has ended"),
    ("launch", "event of a host program to one that calls of the runtime order after it"),
    ("launch-fine", "OpenCL: the same, for accesses to fine-grained shared virtual memory"),
    ("ssw", "system-synchronises-with: the same as `launch`"),
    ("asw", "additional synchronises-with: initial writes before every event of a thread"),
];

/// Options; the first value is the default.
const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "failed-cas",
        values: &["none", "write"],
        doc: "what a failed compare-and-swap writes: nothing, or the old value",
    },
    OptionSpec {
        name: "red",
        values: &["no-acquire", "atom"],
        doc: "whether the read half of a reduction can acquire: never (PTX ISA, 8.11), or as an atom does",
    },
    OptionSpec {
        name: "dep",
        values: &["value", "syntactic"],
        doc: "dependencies: only those that a value really carries, or all that the syntax shows",
    },
    OptionSpec {
        name: "rmw",
        values: &["pair", "single"],
        doc: "a read-modify-write: a read and a write, or one event that is both (published files that never say rmw)",
    },
];

/// What a base relation is, without the dialect that has it.
pub fn doc(name: &str) -> Option<&'static str> {
    let row = RELATIONS.iter().chain(TAGS).find(|r| r.0 == name)?;
    Some(row.1.split_once(": ").map_or(row.1, |(_, doc)| doc))
}

/// The table.
pub fn signature() -> Signature {
    let set = |(name, doc): &(&'static str, &'static str)| BaseName { name, kind: Kind::Set, doc };
    let mut names: Vec<BaseName> = SETS.iter().map(set).collect();
    names.extend(MEMORY_KINDS.iter().map(set));
    names.extend(ATTRIBUTES.iter().map(|name| set(&(*name, MACHINE))));
    names.extend(TAGS.iter().map(set));
    names.extend(SCOPE_TAGS.iter().map(|(name, _)| BaseName {
        name,
        kind: Kind::Set,
        doc: "operations of this scope",
    }));
    for tag in DIALECT_TAGS {
        // A dialect that makes such events lists the tag in `TAGS`.
        if names.iter().all(|n| n.name != tag.0) {
            names.push(set(tag));
        }
    }
    names.extend(RELATIONS.iter().map(|(name, doc)| BaseName { name, kind: Kind::Rel, doc }));
    Signature { names, options: OPTIONS.to_vec() }
}
