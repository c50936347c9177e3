//! Checks uses of OpenCL variables at program scope: by the host, by kernels, and by initialisers.
//!
//! # Sources
//! - OpenCL C, *global Address Space*: variables at program scope live as long as the program,
//!   their values persist between kernels, and devices do not share them; *Initialization of
//!   Program Scope and Static Variables*.
//! - OpenCL API specification, *Execution Model*, program initialization: initialisers use no
//!   shared virtual memory; *Memory Model*: the host has no access to variables of a program.

use diag::{Sink, Span};
use program::host::{CommandKind, CommandOrigin};
use program::{Expr, Init, Instr, LocId, LocationKind, MemoryKind, Program, Thread};

/// Reports variables at program scope in host threads and host commands, and shared virtual memory
/// in initialisers and clean-up kernels.
pub(super) fn check(program: &Program, sink: &mut Sink) {
    let host = program.host.as_deref();
    for t in program.thread_ids() {
        let thread = program.thread(t);
        let command = host.and_then(|h| Some(h.command(h.command_of(t)?)));
        let kind = command.map(|command| command.kind);
        let of_host = thread.place.host
            || matches!(
                kind,
                Some(CommandKind::Copy | CommandKind::Map | CommandKind::Unmap)
            );
        if of_host {
            refuse(
                program,
                thread,
                &|kind| kind == MemoryKind::ProgramScope,
                sink,
                |sink, span, name| {
                    let message =
                        format!("the host cannot name `{name}`, a variable of the program");
                    sink.error("program-scope", span, message, |d| {
                        d.label("expected memory that the host can use")
                            .note(
                                "variables at program scope are known to kernels alone, and each \
                                 device has its own (OpenCL C, global Address Space)",
                            )
                            .help("let a kernel copy it to a buffer")
                    });
                },
            );
        }
        if command.is_some_and(|command| command.origin == CommandOrigin::Start) {
            let subject = match kind {
                Some(CommandKind::Initializer { .. }) => "an initialiser",
                _ => "a clean-up kernel",
            };
            refuse(program, thread, &is_svm, sink, |sink, span, name| {
                let message = format!("{subject} uses `{name}`, which is shared virtual memory");
                sink.error("svm-in-initializer", span, message, |d| {
                    d.label("expected variables at program scope").note(
                        "kernels of initialisers and destructors do not use SVM pointers (OpenCL \
                         API, Execution Model: program initialization)",
                    )
                });
            });
        }
    }
}

fn is_svm(kind: MemoryKind) -> bool {
    kind.is_fine_grained() || kind == MemoryKind::SvmCoarse
}

/// Reports the memory of a wrong kind that a thread's code names, each object once.
fn refuse(
    program: &Program,
    thread: &Thread,
    wrong: &dyn Fn(MemoryKind) -> bool,
    sink: &mut Sink,
    report: impl Fn(&mut Sink, Span, &str),
) {
    let first = thread
        .code
        .first()
        .map_or(Span::default(), |instr| instr.span);
    let given = thread.regs.iter().filter_map(|r| match r.init {
        Init::Address { loc, .. } => Some((loc, first)),
        Init::Int(_) | Init::Unknown => None,
    });
    let uses = thread
        .code
        .iter()
        .flat_map(|instr| named(instr).into_iter().map(|loc| (loc, instr.span)));
    let mut told: Vec<(LocId, Span)> = Vec::new();
    for (loc, span) in given.chain(uses) {
        let LocationKind::Object { kind, .. } = program.location(program.object(loc)).kind else {
            continue;
        };
        if wrong(kind) && !told.contains(&(loc, span)) {
            report(sink, span, &program.location(loc).name);
            told.push((loc, span));
        }
    }
}

/// The memory that an instruction names.
fn named(instr: &Instr) -> Vec<LocId> {
    let mut found = Vec::new();
    let mut note = |e: &Expr| {
        if let Expr::Address(loc) = e {
            found.push(*loc);
        }
    };
    instr.op.operands().iter().for_each(|e| e.visit(&mut note));
    found
}
