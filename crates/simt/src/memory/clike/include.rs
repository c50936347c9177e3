//! Scopes: computes how far an operation reaches, and whether two operations include each other.
//!
//! Source: Khronos, OpenCL API specification, Memory Model, Overview of Atomic and Fence
//! Operations; NVIDIA, libcu++, "Memory model", Atomicity.

use super::graph::{HistoryEvent, HistoryKind};
use super::language::ScopeRule;
use super::{Clike, GLOBAL};
use crate::code::{Code, PhysicalLocation};
use program::Scope;

impl Clike {
    /// The effective scopes of an access. In local memory it reaches at most the work-group; in
    /// memory that is not fine-grained with atomics, at most the device.
    pub(super) fn reach(
        &self,
        code: &Code,
        thread: usize,
        location: &PhysicalLocation,
        scope: Scope,
    ) -> [Scope; 2] {
        let memory = location.opencl;
        let fine = code.program.machine.has_svm_atomics(location.kind);
        let scope = Clike::of_host(code, thread, scope);
        let wide = matches!(scope, Scope::Gpu | Scope::Sys);
        let scope = match () {
            () if memory.capped && wide => Scope::Cta,
            () if memory.global && !fine && scope == Scope::Sys => Scope::Gpu,
            () => scope,
        };
        [scope; 2]
    }

    /// Atomic operations of the host have no scopes: they get the widest.
    fn of_host(code: &Code, thread: usize, scope: Scope) -> Scope {
        if code.program.threads[thread].place.host && scope != Scope::Thread {
            Scope::Sys
        } else {
            scope
        }
    }

    /// The effective scopes of a fence, which has no location.
    pub(super) fn fence_reach(
        code: &Code,
        thread: usize,
        capped: bool,
        scope: Scope,
    ) -> [Scope; 2] {
        let scope = Clike::of_host(code, thread, scope);
        let wide = matches!(scope, Scope::Gpu | Scope::Sys);
        [scope, if capped && wide { Scope::Cta } else { scope }]
    }

    /// Whether two operations include each other, in the memory of a region.
    pub(super) fn inclusive(
        &self,
        code: &Code,
        a: &HistoryEvent,
        b: &HistoryEvent,
        region: usize,
    ) -> bool {
        if a.kind == HistoryKind::Initial
            || b.kind == HistoryKind::Initial
            || !a.atomic
            || !b.atomic
        {
            return false;
        }
        let (x, y) = (a.scope[region], b.scope[region]);
        let host = |e: &HistoryEvent| code.program.threads[e.thread].place.host;
        let holds = |scope| scope != Scope::Thread && code.holds(a.thread, scope, b.thread);
        match self.language.scopes {
            _ if !self.rules.scopes => true,
            ScopeRule::Everywhere => true,
            ScopeRule::Mutual => a.thread == b.thread || code.mutual(a.thread, x, b.thread, y),
            // Host threads use the atomic operations of their own language.
            ScopeRule::Equal | ScopeRule::AtLeast if host(a) && host(b) => true,
            ScopeRule::Equal => x == y && holds(x),
            ScopeRule::AtLeast => holds(x.min(y)),
        }
    }

    /// Whether two accesses of different threads cannot race: both are atomic, with inclusive
    /// scopes.
    pub(super) fn exempt(&self, code: &Code, a: &HistoryEvent, b: &HistoryEvent) -> bool {
        self.inclusive(code, a, b, GLOBAL)
    }
}
