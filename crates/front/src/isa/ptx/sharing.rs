//! Lowered code that the threads of a kernel share.
//!
//! Threads of a large kernel differ in a few special registers, such as `%tid.x`. The code is
//! lowered once with a placeholder for each of them, and every thread puts its own values there.
//!
//! # Invariants
//! - A placeholder is a register that no code can name, and nothing knows its value. Code that is
//!   right for every value of a register is right for the thread's.
//! - Code that cannot be lowered without the values is lowered for each thread.
//! - Two threads share code only if nothing else that lowering reads differs between them
//!   ([`super::Seats`]).

use std::sync::{Arc, PoisonError};

use diag::Sink;
use program::{Expr, RegId, Tile};

use super::code::{LoweredThread, PtxCode, PtxEnv, SharedCode};
use super::lower;
use crate::isa::Symbols;

impl SharedCode {
    /// Whether the code is that of a thread with these settings, as far as lowering reads them.
    fn serves(&self, env: &PtxEnv) -> bool {
        self.lowered.is_none() || self.env == *env
    }
}

impl PtxCode {
    /// Lowers the code of one thread. The result is only meaningful if `sink` got no errors.
    pub fn lower(&self, env: &PtxEnv, symbols: &Symbols, sink: &mut Sink) -> LoweredThread {
        if env.varying.is_empty() {
            return lower::lower(self, env, symbols, sink);
        }
        let common = common(env);
        let mut all = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(|code| code.serves(&common));
        let at = found.unwrap_or_else(|| {
            all.push(shared(self, common, symbols, sink));
            all.len() - 1
        });
        match &all[at].lowered {
            Some(lowered) => lowered.with_values(env),
            None => lower::lower(self, env, symbols, sink),
        }
    }
}

/// Lowers code for all threads that have these settings.
fn shared(unit: &PtxCode, env: PtxEnv, symbols: &Symbols, sink: &mut Sink) -> SharedCode {
    let (before, errors) = (sink.mark(), sink.errors());
    let lowered = lower::lower(unit, &env, symbols, sink);
    let most = usize::from(u16::MAX) - env.varying.len();
    let is_right = sink.errors() == errors && lowered.regs.len() <= most;
    if !is_right {
        sink.take_back(before);
    }
    let lowered = is_right.then_some(lowered);
    SharedCode { env, lowered }
}

/// The settings with placeholders for the special registers that vary.
fn common(env: &PtxEnv) -> PtxEnv {
    let mut common = env.clone();
    for (name, value) in &mut common.specials {
        if let Some(at) = env.varying.iter().position(|varies| varies == name) {
            *value = Expr::Reg(placeholder(at));
        }
    }
    common
}

/// The last registers are placeholders.
fn placeholder(at: usize) -> RegId {
    // There are fewer than a hundred special registers.
    RegId(u16::MAX - at as u16)
}

impl LoweredThread {
    /// The code with a thread's values in the place of placeholders.
    fn with_values(&self, env: &PtxEnv) -> LoweredThread {
        let values: Vec<Option<Expr>> = env
            .varying
            .iter()
            .map(|varies| {
                let of = env.specials.iter().find(|(name, _)| name == varies);
                of.map(|(_, value)| value.clone())
            })
            .collect();
        let value = |e: &Expr| match e {
            Expr::Reg(RegId(reg)) => values.get(usize::from(u16::MAX - reg))?.clone(),
            _ => None,
        };
        // A conversion of a constant is a constant, as in code that is lowered with the value.
        let put = &mut |e: &mut Expr| match e {
            Expr::Cast(ty, of) if matches!(**of, Expr::Const(_)) => {
                if let Expr::Const(number) = **of {
                    *e = Expr::Const(ty.wrap(number));
                }
            }
            part => {
                if let Some(value) = value(part) {
                    *part = value;
                }
            }
        };
        let mut thread = self.clone();
        for instr in &mut thread.code {
            for operand in instr.op.operands_mut() {
                operand.visit_mut(put);
            }
            if let Some(tile) = &mut instr.tile
                && let Tile::Box { coordinates, .. } = &**tile
                && coordinates
                    .iter()
                    .any(|e| e.any(&|part| value(part).is_some()))
                && let Tile::Box { coordinates, .. } = Arc::make_mut(tile)
            {
                coordinates.iter_mut().for_each(|e| e.visit_mut(put));
            }
        }
        thread
    }
}
