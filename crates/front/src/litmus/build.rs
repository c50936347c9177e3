//! Builds a [`Program`] from parsed threads and declared memory: the last step of all readers.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use super::{program_scope, views};
use crate::isa::Symbols;
use crate::isa::clike;
use crate::isa::ptx::{
    PtxCode, PtxEnv, RegInit, Seats, place_columns, pointers, refuse_accumulators,
    warn_of_empty_waits, warn_of_lost_bytes,
};
use diag::{Sink, Span};
use program::points::Points;
use program::{
    Dialect, Expr, GroupKey, GroupSeat, Init, Instr, LocId, LocationKind, Machine, Op, Place,
    Program, Scope, Tag, Thread,
};

/// A thread with parsed code, before lowering.
pub(super) struct ThreadDraft {
    pub(super) name: String,
    pub(super) place: Place,
    /// Index into the parsed units; all threads of a kernel share one.
    pub(super) unit: usize,
    pub(super) regs: Vec<RegInit>,
    pub(super) specials: Vec<(String, i64)>,
}

/// The CTAs of a program, for the distances between their copies of shared memory.
struct Clusters<'a> {
    /// The first thread of each CTA; each host thread counts as one CTA.
    ctas: Vec<&'a Place>,
    /// The number of each CTA in that list.
    numbers: HashMap<GroupKey, usize>,
    /// The numbers of the CTAs of each cluster.
    members: HashMap<GroupKey, Vec<usize>>,
}

impl<'a> Clusters<'a> {
    fn of(places: &'a [Place]) -> Clusters<'a> {
        let (mut ctas, mut numbers) = (Vec::new(), HashMap::default());
        let mut members: HashMap<GroupKey, Vec<usize>> = HashMap::default();
        for place in places {
            let number = ctas.len();
            let Some(cta) = place.group_key(Scope::Cta) else {
                ctas.push(place);
                continue;
            };
            if let Entry::Vacant(new) = numbers.entry(cta) {
                new.insert(number);
                ctas.push(place);
                if let Some(cluster) = place.group_key(Scope::Cluster) {
                    members.entry(cluster).or_default().push(number);
                }
            }
        }
        for members in members.values_mut() {
            members.sort_by_key(|&number| ctas[number].cta);
        }
        Clusters {
            ctas,
            numbers,
            members,
        }
    }

    /// The CTAs of a place's cluster, ordered by their numbers. Each entry is the distance of that
    /// CTA's copy of shared memory from the place's copy, in copies.
    fn around(&self, place: &Place) -> Vec<i64> {
        let Some(own) = place
            .group_key(Scope::Cta)
            .and_then(|cta| self.numbers.get(&cta).copied())
        else {
            return Vec::new();
        };
        let cluster = place
            .group_key(Scope::Cluster)
            .and_then(|cluster| self.members.get(&cluster));
        let mut all = cluster.cloned().unwrap_or_default();
        if !all.contains(&own) {
            all.push(own);
            all.sort_by_key(|&number| self.ctas[number].cta);
        }
        all.into_iter()
            .map(|number| number as i64 - own as i64)
            .collect()
    }
}

pub(super) fn build(
    dialect: Dialect,
    threads: Vec<ThreadDraft>,
    units: &[PtxCode],
    mut symbols: Symbols,
    env: &PtxEnv,
    sink: &mut Sink,
) -> Program {
    for unit in units {
        unit.settle_types(env.strict, &mut symbols, sink);
    }
    let errors = sink.errors();
    let lowered = lower_ptx(threads, units, &symbols, env, sink).into_iter();
    let (threads, untyped): (Vec<Thread>, Vec<_>) = lowered
        .map(|(thread, untyped)| (thread, Some(untyped)))
        .unzip();
    let open = symbols.open();
    let locations = symbols.into_locations();
    let mut program = Program {
        dialect,
        threads,
        locations,
        machine: Machine::full(),
        host: None,
        assumed: Vec::new(),
        group_copies: Vec::new(),
    };
    if sink.errors() == errors {
        pointers::resolve(&mut program, &untyped, &open, sink);
    }
    place_columns(&mut program, sink);
    refuse_accumulators(&program, sink);
    refuse_host_groups(&program, sink);
    warn_of_lone_lanes(&program, sink);
    warn_of_empty_waits(&program, sink);
    warn_of_lost_bytes(&program, sink);
    program
}

/// Lowers threads in PTX, after types are settled. Returns each with its accesses through registers
/// that do not name a type.
pub(super) fn lower_ptx(
    threads: Vec<ThreadDraft>,
    units: &[PtxCode],
    symbols: &Symbols,
    env: &PtxEnv,
    sink: &mut Sink,
) -> Vec<(Thread, Vec<usize>)> {
    let places: Vec<Place> = threads.iter().map(|t| t.place.clone()).collect();
    let clusters = Clusters::of(&places);
    let varying: Vec<Arc<[String]>> = (0..units.len())
        .map(|unit| varying(threads.iter().filter(|t| t.unit == unit)))
        .collect();
    let [mut warps, blocks] =
        [Scope::Warp, Scope::Cta].map(|group| GroupSeat::all_among(&places, group));
    if env.of_every_thread {
        warps = GroupSeat::ANYWHERE
            .into_iter()
            .cycle()
            .take(places.len())
            .collect();
    }
    threads
        .into_iter()
        .enumerate()
        .map(|(t, thread): (usize, ThreadDraft)| {
            let (warp, block) = (warps[t], blocks[t]);
            let cluster = clusters.around(&thread.place);
            let env = PtxEnv {
                regs: thread.regs,
                specials: constants(thread.specials),
                varying: varying[thread.unit].clone(),
                seats: Seats::new(warp, block),
                cluster,
                ..env.clone()
            };
            let lowered = units[thread.unit].lower(&env, symbols, sink);
            let untyped = lowered.untyped().to_vec();
            let (name, place, source) = (thread.name, thread.place, String::new());
            (
                Thread {
                    name,
                    place,
                    regs: lowered.regs,
                    code: lowered.code,
                    source,
                },
                untyped,
            )
        })
        .collect()
}

fn constants(specials: Vec<(String, i64)>) -> Vec<(String, Expr)> {
    let all = specials.into_iter();
    all.map(|(name, value)| (name, Expr::Const(value)))
        .collect()
}

/// Up to this number of threads, each thread's code is lowered alone. Special registers are then
/// constants, which makes the code more precise.
const MOST_ALONE: usize = 32;

/// Finds the special registers that differ between the threads of one code. It finds none for few
/// threads.
fn varying<'t>(threads: impl Iterator<Item = &'t ThreadDraft>) -> Arc<[String]> {
    let all: Vec<&ThreadDraft> = threads.collect();
    if all.len() <= MOST_ALONE {
        return Arc::default();
    }
    let mut names: Vec<String> = Vec::new();
    for thread in &all[1..] {
        for (special, first) in thread.specials.iter().zip(&all[0].specials) {
            if special != first && !names.contains(&special.0) {
                names.push(special.0.clone());
            }
        }
    }
    names.into()
}

/// A thread in a C-like dialect with parsed code, before lowering.
pub(super) struct CThreadDraft {
    pub(super) name: String,
    pub(super) place: Place,
    /// The thread's code; threads of a kernel share it.
    pub(super) unit: Rc<clike::ClikeCode>,
    /// Whether the thread belongs to a kernel.
    pub(super) of_kernel: bool,
    pub(super) env: clike::Env,
}

/// Lowers all threads of a program in a C-like dialect.
pub(super) fn build_clike(
    dialect: Dialect,
    threads: Vec<CThreadDraft>,
    mut symbols: Symbols,
    sink: &mut Sink,
) -> Program {
    declare_votes(
        dialect,
        threads.iter().map(|t| &*t.unit),
        &mut symbols,
        sink,
    );
    let published = threads.iter().any(|t| !t.env.strict);
    let errors = sink.errors();
    let threads = lower_clike(threads, &mut symbols, sink)
        .into_iter()
        .map(|(thread, _)| thread)
        .collect();
    let machine = Machine::full();
    let (dynamic, structures) = (symbols.dynamic(), symbols.views_structures());
    let assumed = symbols.assumed();
    let group_copies = std::mem::take(&mut symbols.group_copies);
    let mut program = Program {
        dialect,
        threads,
        locations: symbols.into_locations(),
        machine,
        host: None,
        assumed,
        group_copies,
    };
    if sink.errors() == errors {
        views::divide(&mut program, &dynamic, structures, sink);
    }
    if !published {
        settle_atomicity(&mut program);
    }
    refuse_host_groups(&program, sink);
    warn_of_lone_lanes(&program, sink);
    warn_of_shared_local(&program, sink);
    program_scope::check(&program, sink);
    program
}

/// Makes every atomically accessed object atomic, whatever its type: functions of OpenCL 1.x and
/// builtins of compilers work on plain objects. An atomic access through a register may reach any
/// object that the register may point to, so it makes all of these atomic. An object without atomic
/// accesses keeps its executions, unless they race.
pub(super) fn settle_atomicity(program: &mut Program) {
    let accesses: Vec<(usize, Expr)> = program
        .instrs()
        .filter(|(_, _, instr)| instr.op.is_access() && instr.op.has(Tag::Atomic))
        .filter_map(|(thread, _, instr)| Some((usize::from(thread.0), instr.op.address()?.clone())))
        .collect();
    let through_register = accesses.iter().any(|(_, addr)| addr.base().is_none());
    let points = through_register.then(|| Points::compute(program));
    let mut objects: BTreeSet<LocId> = BTreeSet::new();
    let mut anywhere = false;
    for (thread, addr) in &accesses {
        match (addr.base(), &points) {
            (Some(loc), _) => drop(objects.insert(program.object(loc))),
            (None, Some(points)) => {
                let all = points.of(*thread, addr);
                // A computed address may be that of any object.
                anywhere |= all.is_empty();
                objects.extend(all);
            }
            (None, None) => {}
        }
    }
    for (i, location) in program.locations.iter_mut().enumerate() {
        if let LocationKind::Object { atomic, .. } = &mut location.kind {
            *atomic |= anywhere || objects.contains(&LocId(i as u16));
        }
    }
}

/// Declares the memory that votes of blocks and copies of work-groups use, if some code has them.
pub(super) fn declare_votes<'a>(
    dialect: Dialect,
    mut units: impl Iterator<Item = &'a clike::ClikeCode>,
    symbols: &mut Symbols,
    sink: &mut Sink,
) {
    let Some(language) = clike::Language::of(dialect) else {
        return;
    };
    if language.cpp {
        if units.any(clike::ClikeCode::votes) {
            clike::declare_votes(symbols, sink);
        }
    } else if units.any(clike::ClikeCode::copies) {
        clike::declare_copies(symbols, sink);
    }
}

/// Lowers threads in a C-like dialect. Returns each with its calls of the runtime.
pub(super) fn lower_clike(
    threads: Vec<CThreadDraft>,
    symbols: &mut Symbols,
    sink: &mut Sink,
) -> Vec<(Thread, Vec<clike::host::Request>)> {
    let places: Vec<Place> = threads.iter().map(|t| t.place.clone()).collect();
    let clusters = Clusters::of(&places);
    let [mut warps, blocks] =
        [Scope::Warp, Scope::Cta].map(|group| GroupSeat::all_among(&places, group));
    if threads.iter().any(|thread| thread.env.places_are_registers) {
        warps = GroupSeat::ANYWHERE
            .into_iter()
            .cycle()
            .take(places.len())
            .collect();
    }
    let mut read_only: Vec<(usize, usize)> = Vec::new();
    let lower = |(t, mut thread): (usize, CThreadDraft)| {
        (thread.env.warp, thread.env.block) = (warps[t], blocks[t]);
        thread.env.cluster = clusters.around(&thread.place);
        let lowered = thread.unit.lower(&thread.env, symbols, sink);
        read_only.extend(lowered.read_only.iter().map(|at| (t, *at)));
        // A kernel's code has a different meaning in every thread.
        let source = if thread.of_kernel {
            String::new()
        } else {
            thread.unit.text().to_string()
        };
        let (name, place) = (thread.name, thread.place);
        (
            Thread {
                name,
                place,
                regs: lowered.regs,
                code: lowered.code,
                source,
            },
            lowered.calls,
        )
    };
    let lowered: Vec<_> = threads.into_iter().enumerate().map(lower).collect();
    refuse_written(&lowered, &read_only, symbols, sink);
    lowered
}

/// Reads through the read-only cache are plain reads if nothing writes the memory. Otherwise they
/// are refused.
fn refuse_written(
    threads: &[(Thread, Vec<clike::host::Request>)],
    reads: &[(usize, usize)],
    symbols: &Symbols,
    sink: &mut Sink,
) {
    let object = |thread: &Thread, instr: &Instr| {
        let base = base_in(thread, instr.op.address()?)?;
        Some(symbols.object(base).0)
    };
    for &(t, at) in reads {
        let Some(read) = threads[t].0.code.get(at) else {
            continue;
        };
        let of = object(&threads[t].0, read);
        let all = threads.iter().flat_map(|(thread, _)| {
            let code = thread.code.iter();
            code.map(move |instr: &Instr| (thread, instr))
        });
        let mut writes =
            all.filter(|(_, instr)| matches!(instr.op, Op::Store { .. } | Op::Rmw { .. }));
        let may_be = |thread: &Thread, write: &Instr| {
            of.is_none() || object(thread, write).is_none_or(|other| Some(other) == of)
        };
        if let Some((_, write)) = writes.find(|(thread, write)| may_be(thread, write)) {
            sink.error(
                "unsupported-function",
                read.span,
                "`__ldg` of memory that may be written",
                |d| {
                    d.label("it reads through a cache that no memory model covers")
                        .also(write.span, "a write, perhaps there")
                        .note(
                            "it is for memory that nothing writes while the kernel runs (CUDA \
                             C++ Programming Guide, Read-Only Data Cache Load Function)",
                        )
                        .help("use a plain load, or `__ldcg`")
                },
            );
        }
    }
}

/// The object into which an address leads, also where a register holds the address: the one that
/// all assignments of the register lead into.
fn base_in(thread: &Thread, addr: &Expr) -> Option<LocId> {
    let mut leaf = addr;
    while let Expr::Bin(_, _, first, _) = leaf {
        leaf = first;
    }
    let Expr::Reg(reg) = leaf else {
        return addr.base();
    };
    if !matches!(thread.regs[usize::from(reg.0)].init, Init::Int(_)) {
        return None;
    }
    let mut found = None;
    let code = thread.code.iter();
    for instr in code.filter(|instr| instr.op.defines() == Some(*reg)) {
        let base = match &instr.op {
            Op::Assign { value, .. } => value.base()?,
            _ => return None,
        };
        if found.is_some_and(|other| other != base) {
            return None;
        }
        found = Some(base);
    }
    found
}

/// Refuses barriers and value exchanges in host threads: a host thread belongs to no group of
/// threads.
pub(super) fn refuse_host_groups(program: &Program, sink: &mut Sink) {
    for thread in program.threads.iter().filter(|t| t.place.host) {
        for instr in &thread.code {
            let (code, what) = match &instr.op {
                Op::Barrier(_) => (
                    "host-barrier",
                    "a barrier of the device in code of the host".to_owned(),
                ),
                Op::Give { among, .. } => {
                    let group = program.dialect.row().noun(*among);
                    (
                        "host-lanes",
                        format!(
                            "the threads of a {group} hand each other values, in code of the host"
                        ),
                    )
                }
                _ => continue,
            };
            sink.error(code, instr.span, what, |d| {
                d.label("expected it in code of the device")
                    .note("a thread of the host is in no group of threads")
            });
        }
    }
}

/// Warns about a thread that is alone in its warp only because the test does not give its warp. The
/// warning is for threads that meet their warp while other threads of the block exist.
pub(super) fn warn_of_lone_lanes(program: &Program, sink: &mut Sink) {
    let Some(level) = program
        .dialect
        .row()
        .levels
        .iter()
        .find(|level| level.scope == Scope::Warp)
    else {
        return;
    };
    for (t, thread) in program.threads.iter().enumerate() {
        let beside =
            |(u, other): (usize, &Thread)| u != t && thread.place.same(&other.place, Scope::Cta);
        if thread.place.host
            || thread.place.warp.is_some()
            || !program.threads.iter().enumerate().any(beside)
        {
            continue;
        }
        let Some(instr) = thread.code.iter().find(|instr: &&Instr| match &instr.op {
            Op::Barrier(barrier) => barrier.domain == Scope::Warp,
            Op::Give { among, .. } => *among == Scope::Warp,
            _ => false,
        }) else {
            continue;
        };
        let message = format!(
            "{} is alone in its {}, and no thread meets it here",
            thread.name, level.noun
        );
        sink.warn("lone-lane", instr.span, message, |d| {
            d.label("other threads of the block do not take part")
                .help(format!(
                    "give the threads of one {} `{} = 0`",
                    level.noun, level.key
                ))
        });
    }
}

/// Warns about local memory that work-groups share: the published OpenCL tests have it, but no
/// device does.
pub(super) fn warn_of_shared_local(program: &Program, sink: &mut Sink) {
    for (i, location) in program.locations.iter().enumerate() {
        let LocationKind::Object { opencl, .. } = &location.kind else {
            continue;
        };
        if !opencl.local || opencl.capped {
            continue;
        }
        let mut first: Option<(&Thread, Span)> = None;
        for thread in &program.threads {
            let access = thread
                .code
                .iter()
                .find(|instr| names(&instr.op, LocId(i as u16)));
            let Some(access) = access else { continue };
            match first {
                None => first = Some((thread, access.span)),
                Some((owner, span)) if !owner.place.same(&thread.place, Scope::Cta) => {
                    let message = format!(
                        "local memory `{}` is shared by two work-groups",
                        location.name
                    );
                    sink.warn("shared-local", access.span, message, |d| {
                        d.label(format!("{} is in another work-group", thread.name))
                            .also(span, format!("{} accesses it, too", owner.name))
                            .note(
                                "each work-group has its own local memory; it is read as \
                                 one object for all",
                            )
                    });
                    break;
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether an instruction accesses the location by its name.
fn names(op: &Op, loc: LocId) -> bool {
    op.address()
        .is_some_and(|addr| addr.any(&|e| *e == Expr::Address(loc)))
}
