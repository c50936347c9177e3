//! The one table of base names: what a model may say about a skeleton, with one line each.
//!
//! Tags (from [`program::tags`]) are sets too; they need no row here.

use cat::model::ir::Kind;
use cat::model::signature::{BaseName, OptionSpec, Signature};
use program::ATTRIBUTES;
use program::tags::{SCOPE_TAGS, TAGS};

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

/// Accesses by who allocated the memory ([`program::MemoryKind`]).
pub(super) const MEMORY_KINDS: &[(&str, &str)] = &[
    ("MANAGED", "CUDA: accesses to managed memory"),
    ("MAPPED", "CUDA: accesses to mapped (pinned) memory of the host"),
    ("PAGEABLE", "CUDA: accesses to system-allocated memory, files aside"),
    ("PAGEABLE_FILE", "CUDA: accesses to system-allocated memory that maps a file"),
    ("GPU_MEMORY", "CUDA: accesses to memory of a GPU"),
    ("PRIVATE", "CUDA: accesses to memory of a single block or thread"),
    ("BUFFER", "OpenCL: accesses to buffer objects that are no shared virtual memory"),
    ("SVM_COARSE", "OpenCL: accesses to coarse-grained shared virtual memory"),
    ("SVM_FINE", "OpenCL: accesses to fine-grained shared virtual memory without atomics"),
    ("SVM_FINE_ATOMIC", "OpenCL: accesses to fine-grained shared virtual memory of a buffer, with atomics"),
    ("SVM_SYSTEM", "OpenCL: accesses to fine-grained shared virtual memory of the system"),
    ("PROGRAM_SCOPE", "OpenCL: accesses to variables at program scope"),
];

/// Attributes of the machine ([`program::ATTRIBUTES`]).
const MACHINE: &str = "CUDA, OpenCL: every event if the test's machine has the attribute, else none";

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
    ("skernel", "OpenCL: work-items of one kernel instance that the host enqueued, and of its descendants"),
    ("mapping", "OpenCL: accesses of a command that maps memory, and those of the one that ends the mapping"),
    ("same-object", "accesses to elements of one object"),
    ("syncbar", "arrival to wait of one barrier and phase"),
    (
        "divergence",
        "OpenCL, CUDA: arrivals at a barrier that some thread of the group does not execute as it must",
    ),
    ("exitbar", "event of a thread to a wait that passes because the thread has ended"),
    ("launch", "event of a host program to one that calls of the runtime order after it"),
    ("launch-fine", "OpenCL: the same, for accesses to fine-grained shared virtual memory"),
    (
        "call-order",
        "event before a call of the runtime to one after a later call by another host thread on the same stream, queue or event; \
         event before a query of CUDA that finds work incomplete to one after that work",
    ),
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

/// Base relations as clauses, in which `{a}` and `{b}` stand for the events; and what to say of two events that are not
/// so related. What depends on the program (which memory, which groups) is added by whoever has the events.
const CLAUSES: &[(&str, &str, &str)] = &[
    ("po", "{a} comes before {b} in its thread", "{a} does not come before {b} in program order"),
    ("int", "both are of one thread", "they are of different threads"),
    ("ext", "they are of different threads", "both are of one thread"),
    ("loc", "both access the same memory", "they do not access the same memory"),
    ("vloc", "both use the same address", "they do not use the same address"),
    ("rmw", "{a} and {b} are the two halves of one atomic", "they are not the two halves of one atomic"),
    ("addr", "the address of {b} depends on what {a} reads", "the address of {b} does not depend on {a}"),
    ("data", "what {b} writes depends on what {a} reads", "what {b} writes does not depend on {a}"),
    ("ctrl", "whether {b} executes depends on what {a} reads", "whether {b} executes does not depend on {a}"),
    ("sr", "each one's scope includes the other's thread", "one's scope does not include the other's thread"),
    ("swarp", "both threads are in one warp", "their threads are in different warps"),
    ("scta", "both threads are in one CTA", "their threads are in different CTAs"),
    ("scluster", "both threads are in one cluster", "their threads are in different clusters"),
    ("sgpu", "both threads are on one GPU", "their threads are not of one GPU"),
    ("one-gpu", "both threads are on one GPU", "their threads are on different GPUs"),
    ("ssg", "both are in one sub-group", "they are in different sub-groups"),
    ("swg", "both are in one work-group", "they are in different work-groups"),
    ("sqf", "both are in one queue family", "they are in different queue families"),
    ("sdv", "both are on one device", "they are on different devices"),
    (
        "skernel",
        "both are of one kernel instance that the host enqueued, and of its descendants",
        "they are not of one kernel instance that the host enqueued, and of its descendants",
    ),
    (
        "mapping",
        "the command of {b} ends the mapping that the command of {a} begins",
        "the command of {b} ends no mapping that the command of {a} begins",
    ),
    ("same-object", "both access one object", "they do not access one object"),
    (
        "syncbar",
        "{a} arrives at a barrier in the phase that {b} waits for",
        "{b} does not wait for the phase of a barrier in which {a} arrives",
    ),
    ("divergence", "not all threads of the group come to the barrier of {a}", "all threads come to the barrier"),
    (
        "exitbar",
        "{b} passes because the thread of {a} has ended",
        "{b} does not wait for the end of the thread of {a}",
    ),
    ("launch", "calls of the runtime order {a} before {b}", "no calls of the runtime order {a} before {b}"),
    (
        "launch-fine",
        "calls of the runtime order {a} before {b} in fine-grained memory",
        "no calls of the runtime order {a} before {b} in fine-grained memory",
    ),
    (
        "call-order",
        "a call after {a} comes before one of another host thread on the same stream, queue or event, before {b}",
        "no call after {a} comes before one of another host thread on the same stream, queue or event, before {b}",
    ),
    ("ssw", "calls of the runtime order {a} before {b}", "no calls of the runtime order {a} before {b}"),
    ("asw", "{a} comes before all threads start", "{a} is no initial write"),
];

/// A base relation as a clause; `holds`: of a pair that it has.
pub fn clause(name: &str, holds: bool) -> Option<&'static str> {
    CLAUSES.iter().find(|c| c.0 == name).map(|c| if holds { c.1 } else { c.2 })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_relation_has_its_clauses() {
        for (name, _) in RELATIONS {
            assert!(clause(name, true).is_some() && clause(name, false).is_some(), "`{name}` has no clause");
        }
        assert_eq!(CLAUSES.len(), RELATIONS.len());
    }
}
