//! The last step of all readers: parsed threads and declared memory to a [`Program`].

use std::collections::HashMap;

use crate::diag::Sink;
use crate::program::isa::Symbols;
use crate::program::isa::clike;
use crate::program::isa::ptx::{Env, RegInit, Unit, pointers};
use crate::program::{Dialect, Place, Program, Thread};

/// A thread whose code is parsed.
pub(super) struct ThreadDraft {
    pub(super) name: String,
    pub(super) place: Place,
    /// Index into the parsed units; threads of a kernel share one.
    pub(super) unit: usize,
    pub(super) regs: Vec<RegInit>,
    /// Values of special registers.
    pub(super) specials: Vec<(String, i64)>,
}

/// Lowers all threads.
pub(super) fn build(
    threads: Vec<ThreadDraft>,
    units: &[Unit],
    mut symbols: Symbols,
    env: &Env,
    sink: &mut Sink,
) -> Program {
    for unit in units {
        unit.settle_types(env.strict, &mut symbols, sink);
    }
    let warp_of = |place: &Place| Some((place.gpu, place.queue_family, place.cta, place.warp?));
    let mut warps: HashMap<_, u32> = HashMap::new();
    for thread in &threads {
        *warps.entry(warp_of(&thread.place)).or_default() += 1;
    }
    let errors = sink.errors();
    let lower = |thread: ThreadDraft| {
        let warp = warp_of(&thread.place);
        let warp_threads = if warp.is_some() { warps.get(&warp).copied().unwrap_or(1) } else { 1 };
        let env = Env { regs: thread.regs, specials: thread.specials, warp_threads, ..env.clone() };
        let lowered = units[thread.unit].lower(&env, &mut symbols, sink);
        let untyped = lowered.untyped().to_vec();
        let (name, place, source) = (thread.name, thread.place, String::new());
        (Thread { name, place, regs: lowered.regs, code: lowered.code, source }, untyped)
    };
    let (threads, untyped): (Vec<Thread>, Vec<Vec<usize>>) = threads.into_iter().map(lower).unzip();
    let open = symbols.untyped();
    let mut program = Program { dialect: Dialect::Ptx, threads, locations: symbols.into_locations() };
    if sink.errors() == errors {
        pointers::resolve(&mut program, &untyped, &open, sink);
    }
    program
}

/// A thread in a C-like dialect whose code is parsed.
pub(super) struct CThreadDraft {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) unit: clike::Unit,
    pub(super) env: clike::Env,
}

/// Lowers all threads of a program in a C-like dialect.
pub(super) fn build_clike(
    dialect: Dialect,
    threads: Vec<CThreadDraft>,
    symbols: Symbols,
    sink: &mut Sink,
) -> Program {
    let lower = |thread: CThreadDraft| {
        let lowered = thread.unit.lower(&thread.env, &symbols, sink);
        let source = thread.unit.text().to_string();
        Thread { name: thread.name, place: thread.place, regs: lowered.regs, code: lowered.code, source }
    };
    let threads = threads.into_iter().map(lower).collect();
    Program { dialect, threads, locations: symbols.into_locations() }
}
