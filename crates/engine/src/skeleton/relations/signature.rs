//! Lists all base names that a model may use about a skeleton, in one table. A row has the name,
//! its meaning, its wording in explanations, and its builder.
//!
//! # Invariants
//! - A relation is about two events *given that both execute*. Pairs that depend on more (an
//!   address known only at run time, the phase of a barrier) are *open*. Each has the condition
//!   under which it holds.
//! - Initial writes belong to no thread: scope relations leave them out.
//! - A tag ([`program::tags`]) is the set of events that carry it; it needs no row here.
//! - The words of rules about endless executions come last, so that a model that may not use them
//!   has the same ids.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::base::{
    Base, BaseRel, Build, ObjectTraits, accesses, cells, edges, events, group, halves,
    has_launched_clusters, includes, kernels, leaves, lends, mapping, near, not_cooperative,
    objects, pairs, phases, relation, remote, speaks_of_readings, threads, whole,
};
use super::tensor::has_tensor_memory;
use super::{copies, endless, tensor};
use crate::skeleton::Skeleton;
use crate::skeleton::graph::EdgeKind;
use crate::skeleton::values::domain::Domains;
use cat::algebra::fingerprint::{HashAlgebra, number};
use cat::algebra::presence::Presence;
use cat::algebra::{Leaves, Value, Values, interpret_all};
use cat::model::ir::{Axiom, FreeId, Kind, Model, NodeId, NodeOp, TestEffect};
use cat::model::signature::{BaseId, BaseName, OptionSpec, Signature};
use cat::rel::{EventId, EventSet};
use program::dialect::Convergence;
use program::options::{OPTIONS, Setting};
use program::tags::{Speakers, TAGS, TagRow};
use program::{
    ATTRIBUTES, Barrier, BarrierAction, BarrierNaming, Class, EVENT_SETS, EventKind, GroupRelation,
    Op, Program, SCOPE_ROWS, Scope, Tag,
};

/// A base set or relation.
pub struct BaseRow {
    /// Its name in models.
    pub name: &'static str,
    /// One line; a prefix before a colon names the dialect that has it.
    pub doc: &'static str,
    /// Clauses for a member and for a non-member; `{a}` and `{b}` are placeholders for the events.
    /// Callers with the events add the parts that depend on the program (which memory, which
    /// groups).
    pub says: [String; 2],
    /// Its role for tools.
    pub role: BaseRole,
    /// Its builder.
    pub(crate) build: Build,
    /// Whether a program can give it members.
    needs: Needs,
}

/// Receives the name of the row.
type Needs = fn(&'static str, &Program) -> bool;

/// For base names that any program can have members of.
const NOTHING: Needs = |_, _| true;

/// The role of a base relation, so that tools need not know its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseRole {
    /// No role.
    None,
    /// Program order.
    ProgramOrder,
    /// One kind of dependency.
    Dependency,
    /// Order from calls of the runtime.
    Launch,
    /// Cells of one access.
    Whole,
    /// Members of one atomic object.
    Members,
    /// Order of asynchronous operations.
    Asynchronous,
    /// Accesses to the same memory.
    Memory,
    /// Accesses through the same address.
    Address,
    /// Scopes that include each other's thread.
    Inclusion,
    /// Whether a reading of the source is chosen.
    Reading,
}

impl BaseRow {
    fn kind(&self) -> Kind {
        match self.build {
            Build::Set(_) => Kind::Set,
            Build::Rel(_) => Kind::Rel,
        }
    }

    /// Its meaning, without the dialect prefix.
    pub fn meaning(&self) -> &'static str {
        self.doc.split_once(": ").map_or(self.doc, |(_, doc)| doc)
    }
}

/// A set; explanations call its members `noun`.
fn called(name: &'static str, doc: &'static str, noun: &str, build: Build) -> BaseRow {
    BaseRow {
        name,
        doc,
        says: ["", "not "].map(|not| format!("{{a}} is {not}{noun}")),
        role: BaseRole::None,
        build,
        needs: NOTHING,
    }
}

/// A set; explanations use its name.
fn set(name: &'static str, doc: &'static str, build: Build) -> BaseRow {
    called(name, doc, &format!("in `{name}`"), build)
}

/// The row of a base name.
pub fn row(id: BaseId) -> &'static BaseRow {
    &ROWS[id.index()]
}

/// Builds a base set or relation.
pub(crate) fn base(sk: &mut Skeleton, domains: &Domains, id: BaseId) -> Base {
    match &row(id).build {
        Build::Set(build) => Base::Set(build(sk, domains)),
        Build::Rel(build) => Base::Rel(build(sk, domains)),
    }
}

/// The number of base relations with a role.
pub fn count(role: BaseRole) -> usize {
    ROWS.iter().filter(|row| row.role == role).count()
}

/// Whether a model uses a base relation with that role.
pub fn speaks_of(model: &Model, role: BaseRole) -> bool {
    model
        .nodes
        .iter()
        .any(|n| matches!(n.op, NodeOp::Base(id) if row(id).role == role))
}

/// By node of a model: whether it is empty in all executions of a program, because it needs
/// instructions that the program lacks. Fixpoints count as non-empty.
pub fn absent(model: &Model, program: &Program) -> Vec<bool> {
    struct Present<'p>(&'p Program);
    impl Leaves<Presence> for Present<'_> {
        fn base(&self, id: BaseId, kind: Kind) -> Value<bool, bool> {
            let may = is_present(id, self.0);
            match kind {
                Kind::Set => Value::Set(may),
                Kind::Rel => Value::Rel(may),
            }
        }
        fn free(&self, _: FreeId) -> bool {
            true
        }
    }
    let values = interpret_all(
        model,
        &Presence,
        &Present(program),
        &vec![true; model.nodes.len()],
    );
    let mut absent: Vec<bool> = values
        .iter()
        .map(|v| !may_hold(v.as_deref().expect("all are asked for")))
        .collect();
    model
        .groups
        .iter()
        .for_each(|group| absent[group.range.start as usize..group.range.end as usize].fill(false));
    absent
}

fn may_hold(value: &Value<bool, bool>) -> bool {
    match value {
        Value::Set(may) | Value::Rel(may) => *may,
    }
}

/// The meaning of a model for a program, as numbers. Models with equal numbers agree on the
/// program, in their axioms and in the flags with these effects. For models with fixpoints, equal
/// numbers mean equal node tables.
pub fn fingerprint(model: &Model, program: &Program, effects: &[TestEffect]) -> BTreeSet<u64> {
    struct Numbers<'p>(&'p Program);
    impl Leaves<HashAlgebra> for Numbers<'_> {
        fn base(&self, id: BaseId, kind: Kind) -> Value<u64, u64> {
            let value = if is_present(id, self.0) {
                number(("base", id))
            } else {
                0
            };
            match kind {
                Kind::Set => Value::Set(value),
                Kind::Rel => Value::Rel(value),
            }
        }
        fn free(&self, id: FreeId) -> u64 {
            number(("free", id.0))
        }
    }
    if !model.groups.is_empty() {
        let tests = model
            .axioms
            .iter()
            .chain(&model.flags)
            .map(|a| (a.effect, a.test, a.negated, a.node));
        let bounds = model
            .free
            .iter()
            .map(|f| (f.shape, f.within, f.containing, f.covering));
        let nodes = model.nodes.iter().map(|n| n.op);
        let all = (
            nodes.collect::<Vec<_>>(),
            tests.collect::<Vec<_>>(),
            bounds.collect::<Vec<_>>(),
            &model.options,
        );
        return BTreeSet::from([number(all)]);
    }
    let values = interpret_all(
        model,
        &HashAlgebra,
        &Numbers(program),
        &vec![true; model.nodes.len()],
    );
    let flags = model
        .flags
        .iter()
        .filter(|flag| effects.contains(&flag.effect));
    // A node without members is empty, irreflexive and acyclic. An axiom on it demands nothing, and
    // a flag marks nothing.
    let tests = model.axioms.iter().chain(flags).filter(|a: &&Axiom| {
        number_of(&values, a.node) != 0 || a.negated != (a.effect != TestEffect::Rejects)
    });
    let tests = tests.map(|a| number((a.effect, a.test, a.negated, number_of(&values, a.node))));
    let bounds = model.free.iter().enumerate().map(|(i, free)| {
        let least = [free.containing, free.covering]
            .map(|bound| bound.map_or(0, |node| number_of(&values, node)));
        number((i, free.shape, number_of(&values, free.within), least))
    });
    let options = model
        .options
        .iter()
        .map(|option| number(("option", option)));
    tests.chain(bounds).chain(options).collect()
}

/// The number of a node.
fn number_of(values: &Values<HashAlgebra>, node: NodeId) -> u64 {
    match values[node.index()].as_deref().expect("all are asked for") {
        Value::Set(n) | Value::Rel(n) => *n,
    }
}

/// Whether a program can have members of a base set or relation.
pub fn is_present(id: BaseId, program: &Program) -> bool {
    let BaseRow { name, needs, .. } = row(id);
    needs(name, program)
}

/// Whether a flag of a model can mark any execution of a program, by [`absent`].
pub fn may_raise(model: &Model, flag: usize, program: &Program) -> bool {
    let flag = &model.flags[flag];
    Presence::may_raise(flag, !absent(model, program)[flag.node.index()])
}

/// Whether a model defines each value of an option.
pub fn has_readings(model: &Model, option: &str) -> bool {
    // The skeleton splits an access into cells; the model only relates them.
    let cells = option == "b128" && speaks_of(model, BaseRole::Whole);
    cells
        || model
            .nodes
            .iter()
            .any(|n| matches!(n.op, NodeOp::Base(id) if is_value_of(option, row(id).name)))
}

/// Whether a name is `OPTION.VALUE`, for a value of an option.
fn is_value_of(option: &str, name: &str) -> bool {
    name.strip_prefix(option)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a model uses a word for a feature that only PTX programs have.
pub fn has_words_of_ptx(model: &Model) -> bool {
    tags_of(model).any(|tag| tag.row().speakers == Speakers::Ptx)
}

/// The tags that a model speaks of.
fn tags_of(model: &Model) -> impl Iterator<Item = Tag> {
    model.nodes.iter().filter_map(|node| match node.op {
        NodeOp::Base(id) => Tag::named(row(id).name),
        _ => None,
    })
}

/// Whether a model uses one of these base sets.
pub fn has_set(model: &Model, names: &[&str]) -> bool {
    let mut nodes = model.nodes.iter();
    nodes.any(|node| matches!(node.op, NodeOp::Base(id) if names.contains(&row(id).name)))
}

/// Whether a model tells accesses apart by their tags.
pub fn has_tags(model: &Model) -> bool {
    // These say something of launches, and nothing of accesses.
    const OF_LAUNCHES: [Tag; 4] = [
        Tag::LaunchDependents,
        Tag::GridWait,
        Tag::Aligned,
        Tag::Lanes,
    ];
    tags_of(model).any(|of| !OF_LAUNCHES.contains(&of))
}

/// Whether a model tells accesses apart by their tags, but does not speak of this one.
pub fn is_deaf_to(model: &Model, tag: Tag) -> bool {
    has_tags(model) && !tags_of(model).any(|of| of == tag)
}

/// The base names of models: a table with a row for each name.
pub fn signature() -> Signature {
    of(&ROWS[..ROWS.len() - endless::ROWS.len() - CHECKER.len()])
}

/// The base names of rules about endless executions: those of models, and [`endless::ROWS`].
pub fn of_endless() -> Signature {
    of(&ROWS[..ROWS.len() - CHECKER.len()])
}

/// Two sets that no model can name. A task fills them, to query pairs of a write and a read.
const CHECKER: [&str; 2] = ["first writes", "first reads"];

/// The ids of these sets.
pub(crate) fn of_the_checker() -> [BaseId; 2] {
    [2, 1].map(|back| BaseId((ROWS.len() - back) as u16))
}

fn of(rows: &[BaseRow]) -> Signature {
    let names = rows.iter().map(|row| BaseName {
        name: row.name,
        kind: row.kind(),
        doc: row.doc,
    });
    Signature {
        names: names.collect(),
        options: OPTIONS
            .iter()
            .map(|o| OptionSpec {
                name: o.name,
                values: o.values,
                doc: o.doc,
                unspoken: o.unspoken,
            })
            .collect(),
    }
}

static ROWS: LazyLock<Vec<BaseRow>> = LazyLock::new(|| {
    let mut rows = sets();
    rows.extend(relations());
    let endless = endless::ROWS.iter().map(|&(name, doc, pairs)| {
        let says = ["", "not "].map(|not| format!("{{a}} and {{b}} are {not}in `{name}`"));
        BaseRow {
            name,
            doc,
            says,
            role: BaseRole::None,
            build: endless::relation(pairs),
            needs: NOTHING,
        }
    });
    rows.extend(endless);
    rows.extend(CHECKER.map(|name| set(name, "the event that the checker expects", none())));
    rows
});

/// An empty set.
fn none() -> Build {
    Build::Set(Box::new(|sk, _| EventSet::empty(sk.len())))
}

/// Base sets of the skeleton that no other table lists.
fn single_sets() -> [BaseRow; 9] {
    [
        set(
            "FW",
            "final writes: empty, kept for published files",
            none(),
        ),
        set(
            "NAL",
            "accesses to locations declared non-atomic (C-like dialects)",
            accesses(|_, object| !object.atomic),
        ),
        set(
            "FGA",
            "OpenCL: accesses to fine-grained shared virtual memory with atomics",
            accesses(|sk, object| sk.program.machine.has_svm_atomics(object.kind)),
        ),
        set(
            "HOST",
            "events of host threads",
            events(|sk, e| e.thread.is_some_and(|t| sk.program.thread(t).place.host)),
        ),
        set(
            "P2P",
            "CUDA: events of GPU threads, but accesses to memory of a GPU without native atomics \
            between the two",
            Build::Set(Box::new(|sk, domains| {
                EventSet::from_fn(sk.len(), |e| near(sk, domains, e))
            })),
        ),
        BaseRow {
            needs: |_, program| program.has_mbarriers(),
            ..set(
                "OBJ",
                "PTX: accesses to mbarrier objects",
                accesses(|_, object| object.class == Some(Class::Mbarrier)),
            )
        },
        BaseRow {
            needs: |_, program| has_launched_clusters(program),
            ..called(
                "LAUNCHED",
                "PTX: events of threads in a CTA that starts and exits in the test; empty if no \
                such CTA is in a cluster",
                "of a thread in a CTA that starts and exits in the test",
                events(|sk, e| {
                    has_launched_clusters(&sk.program)
                        && e.thread
                            .is_some_and(|t| sk.program.thread(t).place.launched)
                }),
            )
        },
        set(
            "UL",
            "unlock events: empty, kept for published files",
            none(),
        ),
        set("LK", "lock events: empty, kept for published files", none()),
    ]
}

/// Base sets: those of the skeleton, attributes of the machine, tags.
fn sets() -> Vec<BaseRow> {
    let mut rows: Vec<BaseRow> = (EVENT_SETS.iter())
        .map(|&(name, doc, noun, kinds)| {
            called(name, doc, noun, events(move |_, e| kinds.contains(&e.kind)))
        })
        .collect();
    rows.extend(single_sets());
    rows.extend(MEMORY_KINDS.iter().map(|&(name, doc)| {
        set(
            name,
            doc,
            accesses(move |_, object| object.kind.set() == name),
        )
    }));
    rows.extend(ATTRIBUTES.iter().map(|&name| {
        let doc = "CUDA, OpenCL: every event if the test's machine has the attribute, else none";
        set(
            name,
            doc,
            events(move |sk, _| sk.program.machine.supports(name)),
        )
    }));
    for (option, row) in OPTIONS
        .iter()
        .enumerate()
        .filter(|(_, row)| row.reading.is_some())
    {
        rows.extend(
            row.values
                .iter()
                .enumerate()
                .map(|(value, word)| reading(Setting { option, value }, row.name, word)),
        );
    }
    rows.extend(TAGS.iter().map(tag));
    rows.extend(SCOPE_ROWS.iter().flat_map(|row| {
        row.sets.iter().copied().map(move |name| {
            let build = events(move |_, e| e.scope == Some(row.scope));
            set(name, "operations of this scope", build)
        })
    }));
    // Tags of other dialects are sets without members. A dialect with such events lists the tag in
    // `TAGS`.
    rows.extend(
        DIALECT_TAGS
            .iter()
            .map(|&(name, doc)| set(name, doc, none())),
    );
    rows
}

/// Whether an instruction requires threads of a group to converge. In PTX, this is an aligned
/// barrier in a warp of the test, or a mask of lanes.
fn may_diverge(program: &Program) -> bool {
    let aligned = program.dialect.row().convergence == Convergence::Aligned;
    !aligned
        || program.instrs().any(|(t, _, instr)| {
            let in_warp = program.thread(t).place.warp.is_some();
            let lanes = matches!(
                instr.op,
                Op::Give {
                    among: Scope::Warp,
                    ..
                }
            );
            lanes && in_warp
                || instr.op.has(Tag::Lanes)
                || instr
                    .op
                    .barrier()
                    .is_some_and(|b| b.lanes.is_some() || in_warp && b.is_aligned())
        })
}

/// Whether barriers of the program may give different thread counts.
fn may_say_unlike_counts(program: &Program) -> bool {
    let mut counts: Vec<Option<Option<i64>>> = program
        .instrs()
        .filter_map(|(_, _, i)| count_of(&i.op))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts.len() > 1 || counts.contains(&Some(None))
}

/// The thread count of a counted barrier: whether it has one, and the constant.
fn count_of(of: &Op) -> Option<Option<Option<i64>>> {
    match of {
        Op::Barrier(Barrier {
            naming: BarrierNaming::Counted { count, .. },
            ..
        }) => Some(count.as_ref().map(|count| count.value(&|_| None))),
        _ => None,
    }
}

/// Whether the program has a barrier for all threads of a group with separate instructions for
/// arrival and wait.
fn may_miss_turns(program: &Program) -> bool {
    let barriers = program.instrs().filter_map(|(_, _, i)| i.op.barrier());
    barriers
        .into_iter()
        .any(|b| b.takes_turns() && b.action != BarrierAction::Sync)
}

/// Whether the program has the barrier of a grid with a non-cooperative launch.
fn has_uncooperative(program: &Program) -> bool {
    program.instrs().any(|(t, _, i)| {
        i.op.barrier()
            .is_some_and(|b| program.is_uncooperative(t, b))
    })
}

/// Whether the program has a feature that readings are about, or one that the reading
/// `OPTION.VALUE` is about.
fn speaks_of_reading(name: &str, program: &Program) -> bool {
    let option = OPTIONS.iter().find(|row| is_value_of(row.name, name));
    let reading = option.and_then(|row| row.reading.as_ref());
    speaks_of_readings(program) || reading.is_some_and(|reading| reading.bears_on(program))
}

/// All events, if a reading is chosen and the program has a feature that readings are about.
fn reading(chosen: Setting, option: &str, value: &str) -> BaseRow {
    let doc = format!(
        "PTX: with `{option} = {value}`, every event of a program with the feature that this \
        option concerns, else none"
    );
    let (name, doc): (&'static str, &'static str) =
        (format!("{option}.{value}").leak(), doc.leak());
    let needs: Needs = |name, program| speaks_of_reading(name, program);
    let build = Build::Set(Box::new(move |sk, _| {
        let holds = sk.options.has(chosen) && speaks_of_reading(name, &sk.program);
        EventSet::from_fn(sk.len(), |_| holds)
    }));
    let says = ["", "not "].map(|not| format!("`{option}` is {not}`{value}`"));
    BaseRow {
        name,
        doc,
        says,
        role: BaseRole::Reading,
        build,
        needs,
    }
}

/// The events that carry a tag; for the tag of a memory region, also the accesses to it.
fn tag(tag: &TagRow) -> BaseRow {
    let (tag, name, doc) = (tag.tag, tag.name, tag.doc);
    let to = REGIONS.iter().find(|r| r.0 == tag).map(|r| r.1);
    let carries = move |sk: &Skeleton, domains: &Domains, e: EventId| {
        sk.event(e).tags.has(tag) || to.is_some_and(|to| objects(sk, domains, e).any(to))
    };
    let build = Build::Set(Box::new(move |sk, domains| {
        EventSet::from_fn(sk.len(), |e| carries(sk, domains, e))
    }));
    let noun = format!(
        "`{name}` ({})",
        doc.split_once(": ").map_or(doc, |(_, doc)| doc)
    );
    // Initial writes are of the generic proxy.
    let needs: Needs = match to {
        None if tag != Tag::Generic => |name, program| {
            let tag = Tag::named(name);
            tag.is_some_and(|tag| program.instrs().any(|(_, _, instr)| instr.op.has(tag)))
        },
        _ => NOTHING,
    };
    BaseRow {
        needs,
        ..called(name, doc, &noun, build)
    }
}

/// Whether an object has a property.
type Is = fn(ObjectTraits) -> bool;

/// Tags that fences get from their flags, and accesses from their memory.
const REGIONS: &[(Tag, Is)] = &[
    (Tag::Global, |object| object.opencl.global),
    (Tag::Local, |object| object.opencl.local),
    (Tag::Capped, |object| object.opencl.capped),
];

/// Accesses by the allocator of the memory ([`program::MemoryKind`]).
const MEMORY_KINDS: &[(&str, &str)] = &[
    ("MANAGED", "CUDA: accesses to managed memory"),
    (
        "MAPPED",
        "CUDA: accesses to mapped (pinned) memory of the host",
    ),
    (
        "PAGEABLE",
        "CUDA: accesses to system-allocated memory, files aside",
    ),
    (
        "PAGEABLE_FILE",
        "CUDA: accesses to system-allocated memory that maps a file",
    ),
    ("GPU_MEMORY", "CUDA: accesses to memory of a GPU"),
    (
        "PRIVATE",
        "CUDA: accesses to memory of a single block or thread",
    ),
    (
        "BUFFER",
        "OpenCL: accesses to buffer objects outside shared virtual memory",
    ),
    ("IMAGE", "OpenCL: accesses to images"),
    ("PIPE", "OpenCL: accesses to pipes"),
    (
        "SVM_COARSE",
        "OpenCL: accesses to coarse-grained shared virtual memory",
    ),
    (
        "SVM_FINE",
        "OpenCL: accesses to fine-grained shared virtual memory without atomics",
    ),
    (
        "SVM_FINE_ATOMIC",
        "OpenCL: accesses to fine-grained shared virtual memory of a buffer, with atomics",
    ),
    (
        "SVM_SYSTEM",
        "OpenCL: accesses to fine-grained shared virtual memory of the system",
    ),
    (
        "PROGRAM_SCOPE",
        "OpenCL: accesses to variables at program scope",
    ),
];

/// Tags of single dialects that published models use: an event is in such a set if it carries the
/// tag.
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

/// Base relations: the role, the name, the builder and the meaning; then the clauses for a member
/// and for a non-member. The function is long because it is a table.
fn relations() -> Vec<BaseRow> {
    macro_rules! rows {
        ($(
            $role:ident $name:literal = $build:expr $(, if $needs:expr)? =>
            $doc:literal, $yes:literal, $no:literal;
        )*) => {
            vec![$(BaseRow {
                name: $name,
                doc: $doc,
                says: [$yes, $no].map(str::to_owned),
                role: BaseRole::$role,
                build: $build,
                needs: [$($needs,)? NOTHING][0],
            }),*]
        };
    }
    let mut rows = rows! {
        ProgramOrder "po" = relation(|sk, _| BaseRel::fixed(sk.program_order().clone())) =>
         "program order",
            "{a} comes before {b} in its thread", "{a} does not come before {b} in program order";
        None "int" = pairs(|_, a, b| a.thread == b.thread) => "both events in one thread (initial \
        writes form one)",
            "both are of one thread", "they are of different threads";
        None "ext" = pairs(|_, a, b| a.thread != b.thread) => "events in different threads",
            "they are of different threads", "both are of one thread";
        Memory "loc" = cells(|memory, c| memory.cell(c).memory) => "same memory (physical \
        location)",
            "both access the same memory", "they do not access the same memory";
        Address "vloc" = cells(|memory, c| memory.cell(c).virtual_address) => "same virtual \
        address",
            "both use the same address", "they do not use the same address";
        None "rmw" = relation(halves) => "read half to write half of one atomic",
            "{a} and {b} are the two halves of one atomic", "they are not the two halves of one \
            atomic";
        Whole "inst" = relation(whole),
            if |_, program: &Program| program.of_several_cells().is_some() =>
            "cells of one access, where it is to several",
            "{a} and {b} are cells of one access", "they are not of one access";
        Members "members" = relation(whole),
            if |_, program: &Program| program.of_several_cells().is_some() =>
            "members of one atomic object, which one access reads or writes",
            "{a} and {b} are members of one access", "they are not of one access";
        None "partial" = pairs(|_, a, b| (a.part, a.parts) != (b.part, b.parts)),
            if |_, program: &Program| program.of_several_cells().is_some() =>
            "accesses that do not have the same bytes, if both are to one cell; empty where all \
            accesses of an object have one size",
            "the accesses do not have the same bytes", "both accesses have the same bytes";
        Dependency "addr" = edges(EdgeKind::Addr) => "address dependency",
            "the address of {b} depends on the value of {a}",
            "the address of {b} does not depend on {a}";
        Dependency "data" = edges(EdgeKind::Data) => "data dependency",
            "the value of {b} depends on the value of {a}", "the value of {b} does not depend on \
            {a}";
        Dependency "ctrl" = edges(EdgeKind::Ctrl) => "control dependency",
            "the value of {a} decides whether {b} executes",
            "the value of {a} does not decide whether {b} executes";
        Inclusion "sr" = pairs(includes) => "each event's scope includes the other's thread",
            "each one's scope includes the other's thread", "one's scope does not include the \
            other's thread";
    };
    rows.extend(groups(0));
    rows.extend(rows! {
        None "one-gpu" =
            threads(|sk, a, b| {
                a == b || sk.program.thread(a).place.same_gpu(&sk.program.thread(b).place)
            }) =>
            "threads on one GPU, whatever their memory synchronization domains",
            "both threads are on one GPU", "their threads are on different GPUs";
    });
    rows.extend(groups(1));
    rows.extend(rows! {
        None "skernel" = relation(kernels) =>
            "OpenCL: work-items of one kernel instance that the host enqueued, and of its \
            descendants",
            "both are of one kernel instance that the host enqueued, and of its descendants",
            "they are not of one kernel instance that the host enqueued, and of its descendants";
        None "mapping" = relation(mapping) =>
            "OpenCL: accesses of a command that maps memory, and those of the one that ends the \
            mapping",
            "the command of {b} ends the mapping that the command of {a} begins",
            "the command of {b} ends no mapping that the command of {a} begins";
        None "same-object" = cells(|memory, c| memory.cell(memory.cell(c).memory).location.0) =>
            "accesses to elements of one object",
            "both access one object", "they do not access one object";
        None "syncbar" = edges(EdgeKind::Sync) => "arrival to wait of one barrier and phase",
            "{a} arrives at a barrier in the phase that {b} waits for",
            "{b} does not wait for the phase of a barrier in which {a} arrives";
        None "divergence" = edges(EdgeKind::Divergence),
            if |_, program: &Program| may_diverge(program) =>
            "arrivals at a barrier that some thread of the group does not execute as it must",
            "not all threads of the group come to the barrier of {a}", "all threads come to the \
            barrier";
        None "unlike-count" = edges(EdgeKind::UnlikeCount),
            if |_, program: &Program| may_say_unlike_counts(program) =>
            "arrivals at one barrier that say different thread counts",
            "{a} and {b} are for one barrier and say different thread counts",
            "{a} and {b} are not for one barrier with different thread counts";
        None "unlike-met" = edges(EdgeKind::UnlikeMet),
            if |_, program: &Program| may_say_unlike_counts(program) =>
            "arrivals in one phase of a barrier that say different thread counts",
            "{a} and {b} are in one phase of a barrier and say different thread counts",
            "{a} and {b} are not in one phase of a barrier with different thread counts";
        None "out-of-turn" = edges(EdgeKind::OutOfTurn),
            if |_, program: &Program| may_miss_turns(program) =>
            "at barriers for all threads of a group: an arrival to the thread's next arrival \
            without a wait between them, or to itself without a later wait; a wait to the next \
            wait without an arrival between them, or to itself without an earlier arrival",
            "{b} follows {a} without an arrival or wait of the other kind between them",
            "an arrival or wait of the other kind is between {a} and {b}";
        None "not-cooperative" = relation(not_cooperative),
            if |_, program: &Program| has_uncooperative(program) =>
            "CUDA: an arrival at the barrier of a grid without a cooperative launch, with itself",
            "{a} is in a grid without a cooperative launch", "{a} is not in a grid without a \
            cooperative launch";
        None "exitbar" = edges(EdgeKind::Exits) =>
            "event of a thread to a wait that passes because the thread has ended",
            "{b} passes because the thread of {a} has ended",
            "{b} does not wait for the end of the thread of {a}";
        None "nextbar" = edges(EdgeKind::Next) =>
            "event of a phase of a barrier to an arrival in the next one that comes when the \
            phase is over",
            "{b} comes when the phase of {a} is over", "{b} does not come in the phase after that \
            of {a}";
        None "meets" = edges(EdgeKind::Meets) =>
            "event before lanes of a warp hand each other values to one of another lane after that",
            "{a} comes before its lane meets that of {b}, and {b} after that",
            "the lanes of {a} and {b} do not meet between them";
        None "same-phase" = phases(false) =>
            "PTX: operations on one mbarrier object that fall in one phase",
            "both fall in one phase of the mbarrier object", "they do not fall in one phase of an \
            mbarrier object";
        None "next-phase" = phases(true) =>
            "PTX: operations on one mbarrier object, the second in the phase after that of the \
            first",
            "{b} finds the phase of {a} complete, and the one after it current",
            "{b} does not find the phase of {a} to be the one that was completed last";
        None "remote" = relation(remote) =>
            "PTX: an access to shared memory of another CTA, with itself",
            "{a} is to shared memory of another CTA", "{a} is not to shared memory of another CTA";
        None "lends" = relation(lends), if |_, program: &Program| has_launched_clusters(program) =>
            "PTX: event of a thread to accesses by other CTAs to the shared memory of the \
            thread's CTA; empty if no CTA of a cluster starts in the test",
            "{b} is to shared memory of the CTA of {a}, which is another one",
            "{b} is not to shared memory of the CTA of {a}, from another one";
        None "leaves" = relation(leaves),
            if |_, program: &Program| has_launched_clusters(program) =>
            "PTX: an access to shared memory of another CTA that exits, with itself; empty if no \
            CTA of a cluster starts in the test",
            "{a} accesses shared memory of a CTA that exits", "{a} accesses shared memory of a \
            CTA that does not exit";
        Asynchronous "starts" = relation(copies::starts) =>
            "PTX: event of a thread to those of asynchronous operations that it begins later",
            "{a} comes before the start of the asynchronous operation of {b}",
            "{a} does not come before the start of an asynchronous operation of {b}";
        Asynchronous "inop" = relation(copies::inop) =>
            "PTX: read of an asynchronous operation to the events that use its value: the write \
            of the value, accesses to the address",
            "{b} uses the value that the asynchronous operation reads in {a}",
            "{b} does not use a value that an asynchronous operation reads in {a}";
        Asynchronous "carries" = relation(copies::carries) =>
            "PTX: event of an asynchronous copy to the arrival that the complete copy makes",
            "the complete copy of {a} makes the arrival {b}", "the copy of {a} does not make the \
            arrival {b}";
        Asynchronous "group-done" = relation(copies::group_done) =>
            "PTX: event of an asynchronous copy to a wait for its group",
            "{b} waits for the copy of {a}", "{b} does not wait for the copy of {a}";
        Asynchronous "group-read" = relation(copies::group_read) =>
            "PTX: read of an asynchronous copy to a wait until its group has been read",
            "{b} waits until the copy of {a} has read", "{b} does not wait until the copy of {a} \
            has read";
        None "covers" = relation(copies::covers) =>
            "PTX: `fence.proxy.async`, or a fence restricted to a state space, to an access to \
            memory of the named state space (any, if it names none)",
            "{b} is to memory of the state space that the fence {a} names",
            "{b} is not to memory of the state space that the fence {a} names";
        None "one-memory" = relation(copies::one_memory),
            if |_, program: &Program| program.asynchronous().is_some() =>
            "PTX: accesses to shared memory of one CTA, or to memory that all CTAs share; empty \
            if no operation is asynchronous",
            "both are to memory of one CTA, or of all", "they are to memory of different CTAs";
        None "at-destination" = relation(copies::at_destination),
            if |_, program: &Program| speaks_of_readings(program) =>
            "PTX: events of one CTA, with an asynchronous operation in the CTA that has its \
            destination; empty if no reading applies",
            "both are in one CTA, by the destination of the asynchronous operation",
            "they are in different CTAs, by the destination of the asynchronous operation";
        None "same-group" = relation(copies::same_group) =>
            "PTX: events of copies by `cp.async` of one group, the second one begun later",
            "both copies are of one group", "the copies are not of one group";
        None "tensor-overlap" = relation(tensor::overlap),
            if |_, program: &Program| has_tensor_memory(program) =>
            "PTX: accesses to tensor memory of one CTA with a common lane and column",
            "both access one place in tensor memory", "they access no common place in tensor \
            memory";
        None "tensor-within" = relation(tensor::within),
            if |_, program: &Program| has_tensor_memory(program) =>
            "PTX: an allocation of tensor memory, and an access that stays in its columns",
            "{b} accesses columns that {a} allocates", "{b} does not stay in the columns that {a} \
            allocates";
        None "same-accumulator" = relation(tensor::same_accumulator),
            if |_, program: &Program| has_tensor_memory(program) =>
            "PTX: `tcgen05.mma` with one accumulator, shape and kind",
            "both have one accumulator, shape and kind", "they differ in accumulator, shape or \
            kind";
        Launch "launch" = edges(EdgeKind::Launch) =>
            "event of a host program to one that calls of the runtime order after it",
            "calls of the runtime order {a} before {b}", "no calls of the runtime order {a} \
            before {b}";
        Launch "launch-fine" = edges(EdgeKind::LaunchFine) =>
            "OpenCL: the same, for accesses to fine-grained shared virtual memory",
            "calls of the runtime order {a} before {b} in fine-grained memory",
            "no calls of the runtime order {a} before {b} in fine-grained memory";
        None "call-order" = edges(EdgeKind::CallOrder) =>
            "event before a call of the runtime to one after a later call by another host thread \
            on the same stream, \
             queue or event; event before a query of CUDA that finds work incomplete to one after \
             that work",
            "a call after {a} comes before one of another host thread on the same stream, queue \
            or event, before {b}",
            "no call after {a} comes before one of another host thread on the same stream, queue \
            or event, before {b}";
        None "dependents" = edges(EdgeKind::Dependents) =>
            "PTX: event of a kernel to those of a kernel that depends on it, launched with \
            programmatic stream serialization",
            "the kernel of {b} depends on that of {a}", "the kernel of {b} does not depend on \
            that of {a}";
        Launch "ssw" = edges(EdgeKind::Launch) => "system-synchronises-with: the same as `launch`",
            "calls of the runtime order {a} before {b}", "no calls of the runtime order {a} \
            before {b}";
        None "asw" = pairs(|_, a, b| a.kind == EventKind::Init && b.thread.is_some()) =>
            "additional synchronises-with: initial writes before every event of a thread",
            "{a} comes before all threads start", "{a} is not an initial write";
    });
    rows
}

/// The relations between threads of one group, under PTX's names (0) or others (1).
fn groups(names: usize) -> impl Iterator<Item = BaseRow> {
    SCOPE_ROWS.iter().filter_map(move |row| {
        let GroupRelation { name, doc, says } = row.groups[names]?;
        Some(BaseRow {
            name,
            doc,
            says: says.map(str::to_owned),
            role: BaseRole::None,
            build: group(row.scope),
            needs: NOTHING,
        })
    })
}
