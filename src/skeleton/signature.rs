//! The one table of base names: what a model may say about a skeleton, with one line each.
//!
//! Tags (from [`crate::program::tags`]) are sets too; they need no row here.

use crate::model::ir::Kind;
use crate::model::signature::{BaseName, OptionSpec, Signature};
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
    ("UL", "unlock events: empty, kept for published files"),
    ("LK", "lock events: empty, kept for published files"),
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
    ("sgpu", "threads of one GPU (device)"),
    ("ssg", "threads of one sub-group"),
    ("swg", "threads of one work-group"),
    ("sqf", "threads of one queue family"),
    ("sdv", "threads of one device"),
    ("syncbar", "arrival to wait of one barrier and phase"),
    ("ssw", "system-synchronises-with edges of the test"),
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
];

/// The table.
pub fn signature() -> Signature {
    let set = |(name, doc): &(&'static str, &'static str)| BaseName { name, kind: Kind::Set, doc };
    let mut names: Vec<BaseName> = SETS.iter().map(set).collect();
    names.extend(TAGS.iter().map(set));
    names.extend(SCOPE_TAGS.iter().map(|(name, _)| BaseName {
        name,
        kind: Kind::Set,
        doc: "operations of this scope",
    }));
    names.extend(RELATIONS.iter().map(|(name, doc)| BaseName { name, kind: Kind::Rel, doc }));
    Signature { names, options: OPTIONS.to_vec() }
}
