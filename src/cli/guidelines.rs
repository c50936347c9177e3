//! `check --lint guidelines`: says where a program in OpenCL C leaves the guidelines under which
//! its authors need not know the relaxed memory model.
//!
//! # Invariants
//! - A program without a warning that does not race either follows all five.
//!
//! # Sources
//! - OpenCL API specification, *Memory Model: Overview*. Kernels share global memory through
//!   commands. Work-items of a group share local memory through barriers. Atomic operations are
//!   sequentially consistent, and their scope depends on the memory. Nothing races.
//!
//! # Where we differ
//! - The fifth guideline is the property `race`, which the lint asks for.

use std::collections::{BTreeMap, BTreeSet};

use diag::Diagnostic;
use program::litmus::LitmusTest;
use program::{
    Access, Dialect, Instr, LocId, LocationKind, MemoryKind, Op, Program, Scope, Space, Tag,
};

/// The warnings about a test; none for other languages.
pub(super) fn warnings(test: &LitmusTest) -> Vec<Diagnostic> {
    let program = &test.program;
    if program.dialect != Dialect::OpenCl {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (_, _, instr) in program.instrs() {
        all.extend(of_instruction(test, instr));
    }
    all.extend(of_commands(test));
    all.sort_by_key(|warning| (warning.span.start, warning.id));
    all.dedup_by_key(|warning| (warning.span.start, warning.id));
    all
}

fn warning(
    test: &LitmusTest,
    id: &'static str,
    instr: &Instr,
    label: &str,
    help: &str,
) -> Diagnostic {
    let message = format!("`{}` leaves {}", test.name, id.replace('-', " "));
    Diagnostic::error(id, &test.file, instr.span, message)
        .label(label)
        .help(help)
        .warning()
}

/// The warning about an instruction on its own: guidelines 2, 3 and 4.
fn of_instruction(test: &LitmusTest, instr: &Instr) -> Option<Diagnostic> {
    let program = &test.program;
    let flagged = instr.op.has_any(&[Tag::Global, Tag::Local]);
    let is_fence = matches!(instr.op, Op::Mark { .. }) && flagged;
    let access = atomic_access(&instr.op);
    let object = instr.op.address().and_then(|addr| addr.base());
    let local =
        object.is_some_and(|loc| is_local(program, loc)) || (is_fence && instr.op.has(Tag::Local));
    if local && (is_fence || access.is_some()) {
        return Some(warning(
            test,
            "guideline-2",
            instr,
            "synchronization inside of a work-group by other means than a barrier",
            "write `work_group_barrier(CLK_LOCAL_MEM_FENCE)`",
        ));
    }
    if !is_fence && access.is_none() {
        return None;
    }
    let wide = object.is_none_or(|loc| is_shared_atomically(program, loc));
    let (id, scopes, help): (_, &[Scope], _) = match wide && has_shared_atomics(program) {
        true => (
            "guideline-3",
            &[Scope::Sys],
            "use `memory_order_seq_cst` with `memory_scope_all_svm_devices`",
        ),
        false => (
            "guideline-4",
            &[Scope::Gpu, Scope::Sys],
            "use `memory_order_seq_cst` with `memory_scope_device` or a wider scope",
        ),
    };
    let ordered = instr.op.has(Tag::SeqCst);
    let scope = access.map_or_else(|| instr.op.scope(), |access| access.scope);
    let scoped = scope.is_some_and(|scope| scopes.contains(&scope));
    let label = match (ordered, scoped) {
        (true, true) => return None,
        (false, _) => "this order is weaker than sequential consistency",
        (true, false) => "this scope is narrower than the guideline",
    };
    Some(warning(test, id, instr, label, help))
}

/// The access of an atomic operation.
fn atomic_access(op: &Op) -> Option<&Access> {
    let mut accesses = op.accesses();
    accesses.find(|access| access.scope.is_some_and(|scope| scope != Scope::Thread))
}

/// The warnings about the first guideline: several commands access one object of global memory
/// atomically, or the host and a command do.
fn of_commands(test: &LitmusTest) -> Vec<Diagnostic> {
    let program = &test.program;
    let Some(host) = program.host.as_deref() else {
        return Vec::new();
    };
    let mut users: BTreeMap<LocId, BTreeSet<Option<u16>>> = BTreeMap::new();
    let mut sites: Vec<(LocId, &Instr)> = Vec::new();
    for (thread, _, instr) in program.instrs() {
        let loc = instr.op.address().and_then(|addr| addr.base());
        let Some(loc) =
            loc.filter(|loc| atomic_access(&instr.op).is_some() && !is_local(program, *loc))
        else {
            continue;
        };
        let command = host.command_of(thread).map(|command| command.0);
        users.entry(loc).or_default().insert(command);
        sites.push((loc, instr));
    }
    let shared = |loc: &LocId| users[loc].len() > 1;
    let shared = sites.into_iter().filter(|(loc, _)| shared(loc));
    shared
        .map(|(_, instr)| {
            warning(
                test,
                "guideline-1",
                instr,
                "commands share this memory while they run",
                "let the second command wait for the event of the first one",
            )
        })
        .collect()
}

fn is_local(program: &Program, loc: LocId) -> bool {
    match &program.locations[usize::from(program.object(loc).0)].kind {
        LocationKind::Object { space, .. } => *space == Space::Shared,
        LocationKind::Alias { .. } => false,
    }
}

fn is_shared_atomically(program: &Program, loc: LocId) -> bool {
    match &program.locations[usize::from(program.object(loc).0)].kind {
        LocationKind::Object { kind, .. } => {
            matches!(kind, MemoryKind::SvmFineAtomic | MemoryKind::SvmSystem)
        }
        LocationKind::Alias { .. } => false,
    }
}

/// Whether the program has memory that several devices and the host may access atomically.
fn has_shared_atomics(program: &Program) -> bool {
    (0..program.locations.len() as u16).any(|loc| is_shared_atomically(program, LocId(loc)))
}
