//! Defines the state of a thread during unrolling: registers, guard and dependencies.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::skeleton::pool::{Cond, TermId};
use cat::rel::EventId;

/// Read events that a value depends on by syntax.
pub(crate) type Taint = Rc<BTreeSet<EventId>>;

/// A thread in one place, on all paths that lead there.
#[derive(Clone, Debug)]
pub(crate) struct UnrollState {
    pub(crate) guard: Cond,
    pub(crate) regs: Vec<TermId>,
    /// The dependencies of each register, and those of the control flow that led here.
    pub(crate) taints: Vec<Taint>,
    pub(crate) ctrl: Taint,
    /// By lane: the value that it brought when this thread last met others, until another path
    /// joins.
    pub(crate) brought: Rc<Taken>,
    /// Whether nothing was executed since the last place where the thread could stop.
    pub(crate) fresh: bool,
}

/// By lane: the value that it brought; under [`program::ATTENDED`], the set of lanes that came.
pub(crate) type Taken = Vec<Option<(TermId, Taint)>>;

/// The union of two dependencies.
pub(crate) fn union(a: &Taint, b: &Taint) -> Taint {
    if b.is_empty() || Rc::ptr_eq(a, b) {
        a.clone()
    } else if a.is_empty() {
        b.clone()
    } else {
        Rc::new(a.union(b).copied().collect())
    }
}
