//! Decides whether generated code is as strong as a mapping requires.
//!
//! # Invariants
//! - An order on an access is kept by an access with that order and no smaller scope, or by a fence
//!   on the right side: before a releasing access, after an acquiring one (the Atomics ABI lists
//!   both). A required fence is kept by a fence on the same side.
//! - In doubt the result is "weaker". Code that counts as strong enough is so instruction by
//!   instruction, without the model. A search of programs decides whether weaker code is
//!   observable.

use crate::compiled::{CompiledInstr, CompiledItem};
use front::mapping::{MappingStep, OpKind, Semantics, StepScope};
use program::Scope;

/// The comparison of generated with required code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// Weaker in some respect.
    Weaker,
    /// Stronger in some respect and weaker in none.
    Stronger,
    /// The same.
    Equal,
}

/// An operation as fences around one access.
#[derive(Clone, Copy, Debug, Default)]
struct FencedAccess<'a> {
    before: &'a [MappingStep],
    access: Option<MappingStep>,
    reduction: bool,
    /// A load before a compare-exchange loop that predicts its expected value.
    guess: Option<MappingStep>,
    /// Whether the operation may end after that load.
    fails_early: bool,
    after: &'a [MappingStep],
}

/// Compares generated with required code (at fixed scopes) for this kind of operation. `None`: the
/// code has instructions that cannot be judged, or more than one access.
pub fn strength(kind: OpKind, made: &[CompiledItem], asked: &[MappingStep]) -> Option<Strength> {
    let mut steps = Vec::with_capacity(made.len());
    let mut reduction = false;
    // An optional fence does not count.
    let made: Vec<&CompiledItem> = made
        .iter()
        .filter(|item| !item.is_optional || !is_fence(item))
        .collect();
    for item in &made {
        steps.push(match &item.what {
            CompiledInstr::Step(step) => *step,
            CompiledInstr::Reduction(step) => {
                reduction = true;
                *step
            }
            CompiledInstr::Call(_) | CompiledInstr::Unread(..) => return None,
        });
    }
    let mut guess = None;
    let looped = made.iter().position(|item| item.is_looped);
    // The load before the loop.
    if looped.is_some_and(|at| at > 0 && !is_fence(made[at - 1])) {
        guess = looped.map(|at| steps.remove(at - 1));
    }
    // A compare-exchange may fail after the first load finds another value; it then ends.
    let is_optional = made.iter().any(|item| item.is_optional);
    let fails_early = is_optional && guess.is_some() && kind == OpKind::Cas;
    if is_optional && !fails_early {
        return None;
    }
    let made = FencedAccess {
        reduction,
        guess,
        fails_early,
        ..parts(&steps)?
    };
    let asked = parts(asked)?;
    Some(match (keeps(made, asked), keeps(asked, made)) {
        (false, _) => Strength::Weaker,
        (true, true) => Strength::Equal,
        (true, false) => Strength::Stronger,
    })
}

fn is_fence(item: &CompiledItem) -> bool {
    matches!(item.what, CompiledInstr::Step(step) if step.kind == OpKind::Fence)
}

fn parts(steps: &[MappingStep]) -> Option<FencedAccess<'_>> {
    let mut accesses = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.kind != OpKind::Fence);
    let Some((at, access)) = accesses.next() else {
        return Some(FencedAccess {
            before: steps,
            ..FencedAccess::default()
        });
    };
    let parts = FencedAccess {
        before: &steps[..at],
        access: Some(*access),
        after: &steps[at + 1..],
        ..FencedAccess::default()
    };
    accesses.next().is_none().then_some(parts)
}

fn reach(step: MappingStep) -> Scope {
    match step.reach {
        StepScope::Fixed(scope) => scope,
        // Volatile accesses are relaxed with system scope.
        StepScope::None | StepScope::Mapped => Scope::Sys,
    }
}

fn acquires(semantics: Semantics) -> bool {
    matches!(
        semantics,
        Semantics::Acquire | Semantics::AcqRel | Semantics::Sc
    )
}

fn releases(semantics: Semantics) -> bool {
    matches!(
        semantics,
        Semantics::Release | Semantics::AcqRel | Semantics::Sc
    )
}

/// Whether one of the fences has the order of `asked` and at least its scope.
fn fenced(fences: &[MappingStep], asked: MappingStep) -> bool {
    fences
        .iter()
        .any(|fence| has_order(fence.semantics, asked.semantics) && reach(*fence) >= reach(asked))
}

fn has_order(there: Semantics, asked: Semantics) -> bool {
    match asked {
        Semantics::Sc => there == Semantics::Sc,
        _ => (!acquires(asked) || acquires(there)) && (!releases(asked) || releases(there)),
    }
}

/// Whether the code has everything that is required.
fn keeps(made: FencedAccess<'_>, asked: FencedAccess<'_>) -> bool {
    fn fences(there: &[MappingStep], asked: &[MappingStep]) -> bool {
        asked.iter().all(|fence| fenced(there, *fence))
    }
    let Some(access) = asked.access else {
        return made.access.is_none() && fences(made.before, asked.before);
    };
    let Some(there) = made.access else {
        return false;
    };
    fn strong(step: MappingStep) -> bool {
        step.semantics != Semantics::Weak
    }
    let same = match access.semantics {
        Semantics::Weak => true,
        Semantics::Volatile => there.semantics == Semantics::Volatile,
        _ => strong(there) && reach(there) >= reach(access),
    };
    fn side(
        wants: fn(Semantics) -> bool,
        near: &[MappingStep],
        semantics: Semantics,
        access: &MappingStep,
        there: &MappingStep,
    ) -> bool {
        let fence = MappingStep {
            kind: OpKind::Fence,
            semantics,
            reach: StepScope::Fixed(reach(*access)),
        };
        !wants(access.semantics)
            || wants(there.semantics) && reach(*there) >= reach(*access)
            || fenced(near, fence)
    }
    let ordered = side(acquires, made.after, Semantics::Acquire, &access, &there)
        && side(releases, made.before, Semantics::Release, &access, &there);
    // An acquire fence after an `atom` makes it acquire; after a `red` it does not.
    let result = !made.reduction || asked.reduction;
    // A failure at the first load has the failure order: the part of the success order that a load
    // can have.
    let first = made.guess.is_none_or(|guess| {
        let acquired = side(acquires, made.after, Semantics::Acquire, &access, &guess);
        strong(guess) && (!made.fails_early || acquired)
    });
    same && ordered
        && result
        && first
        && fences(made.before, asked.before)
        && fences(made.after, asked.after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::functions;
    use front::mapping::{Mapping, SourceOrder};

    fn judged(kind: OpKind, order: SourceOrder, scope: Scope, made: &str) -> Option<Strength> {
        let asked = crate::asked(
            Mapping::named("cuda-ptx").expect("shipped"),
            kind,
            order,
            scope,
        )
        .expect("a row");
        let text = format!(".func f()\n{{ {made} }}");
        strength(kind, &functions(&text)["f"], &asked)
    }

    #[test]
    fn orders_and_scopes_count() {
        use Strength::{Equal, Stronger, Weaker};
        let load = |order, made| judged(OpKind::Load, order, Scope::Gpu, made);
        assert_eq!(
            load(SourceOrder::Acquire, "ld.acquire.gpu.u32 %r1, [%rd1];"),
            Some(Equal)
        );
        assert_eq!(
            load(SourceOrder::Acquire, "ld.acquire.sys.u32 %r1, [%rd1];"),
            Some(Stronger)
        );
        assert_eq!(
            load(SourceOrder::Acquire, "ld.acquire.cta.u32 %r1, [%rd1];"),
            Some(Weaker)
        );
        assert_eq!(
            load(SourceOrder::Acquire, "ld.relaxed.gpu.u32 %r1, [%rd1];"),
            Some(Weaker)
        );
        assert_eq!(
            load(
                SourceOrder::Acquire,
                "ld.relaxed.gpu.u32 %r1, [%rd1]; fence.acq_rel.gpu;"
            ),
            Some(Stronger)
        );
        assert_eq!(
            load(
                SourceOrder::Acquire,
                "fence.acq_rel.gpu; ld.relaxed.gpu.u32 %r1, [%rd1];"
            ),
            Some(Weaker)
        );
        assert_eq!(
            load(SourceOrder::Relaxed, "ld.volatile.u32 %r1, [%rd1];"),
            Some(Stronger)
        );
        assert_eq!(
            load(SourceOrder::Volatile, "ld.relaxed.sys.u32 %r1, [%rd1];"),
            Some(Weaker)
        );
        assert_eq!(
            load(SourceOrder::SeqCst, "ld.acquire.gpu.u32 %r1, [%rd1];"),
            Some(Weaker)
        );
        assert_eq!(
            load(
                SourceOrder::SeqCst,
                "fence.sc.gpu; ld.acquire.gpu.u32 %r1, [%rd1];"
            ),
            Some(Equal)
        );
        assert_eq!(load(SourceOrder::Relaxed, "call.uni _Z4loadv, ();"), None);
        assert_eq!(
            load(
                SourceOrder::Relaxed,
                "ld.relaxed.gpu.u32 %r1, [%rd1]; ld.relaxed.gpu.u32 %r1, [%rd2];"
            ),
            None
        );
        let store = |order, made| judged(OpKind::Store, order, Scope::Gpu, made);
        assert_eq!(
            store(
                SourceOrder::Release,
                "fence.acq_rel.gpu; st.relaxed.gpu.u32 [%rd1], 1;"
            ),
            Some(Stronger)
        );
        // The fence before it already releases.
        assert_eq!(
            store(
                SourceOrder::SeqCst,
                "fence.sc.gpu; st.release.gpu.u32 [%rd1], 1;"
            ),
            Some(Equal)
        );
        assert_eq!(store(SourceOrder::Plain, "st.u32 [%rd1], 1;"), Some(Equal));
        let fence = |order, made| judged(OpKind::Fence, order, Scope::Gpu, made);
        assert_eq!(
            fence(SourceOrder::Acquire, "fence.acq_rel.gpu;"),
            Some(Stronger)
        );
        assert_eq!(fence(SourceOrder::Acquire, ""), Some(Weaker));
        assert_eq!(fence(SourceOrder::Relaxed, ""), Some(Equal));
        assert_eq!(
            judged(
                OpKind::Fence,
                SourceOrder::SeqCst,
                Scope::Thread,
                "fence.sc.cta;"
            ),
            Some(Stronger)
        );
    }

    #[test]
    fn read_modify_writes_may_be_loops_and_reductions() {
        use Strength::{Equal, Weaker};
        let rmw = |order, made: &str| judged(OpKind::Rmw, order, Scope::Cta, made);
        assert_eq!(
            rmw(SourceOrder::Relaxed, "red.relaxed.cta.add.u32 [%rd1], 1;"),
            Some(Weaker)
        );
        assert_eq!(
            rmw(
                SourceOrder::Relaxed,
                "atom.add.relaxed.cta.u32 %r1, [%rd1], 1;"
            ),
            Some(Equal)
        );
        let looped = |first: &str| {
            let made = format!(
                "{first} %r1, [%rd1]; L: atom.cas.relaxed.cta.b32 %r2, [%rd1], %r1, %r3; @%p1 bra \
                 L;"
            );
            rmw(SourceOrder::Relaxed, &made)
        };
        assert_eq!(looped("ld.relaxed.cta.u32"), Some(Equal));
        assert_eq!(looped("ld.u32"), Some(Weaker));
    }

    #[test]
    fn a_compare_exchange_may_fail_at_the_first_look() {
        use Strength::{Equal, Weaker};
        let made = |first: &str, last: &str| {
            format!(
                "{first} %r1, [%rd1]; L: @%p1 bra M; atom.cas.acquire.gpu.b32 %r2, [%rd1], %r1, \
                 %r3; @%p2 bra L; M: {last}"
            )
        };
        let cas = |first, last| {
            judged(
                OpKind::Cas,
                SourceOrder::Acquire,
                Scope::Gpu,
                &made(first, last),
            )
        };
        // libcu++ 3 does so for compare-exchanges of 8 and 16 bits; one that fails there has not
        // acquired.
        assert_eq!(cas("ld.relaxed.gpu.u32", ""), Some(Weaker));
        assert_eq!(cas("ld.acquire.gpu.u32", ""), Some(Equal));
        assert_ne!(
            cas("ld.relaxed.gpu.u32", "fence.acq_rel.gpu;"),
            Some(Weaker)
        );
        assert_eq!(cas("ld.acquire.cta.u32", ""), Some(Weaker));
        // Other operations cannot end there.
        assert_eq!(
            judged(
                OpKind::Rmw,
                SourceOrder::Acquire,
                Scope::Gpu,
                &made("ld.acquire.gpu.u32", "")
            ),
            None
        );
        // An optional fence orders nothing.
        let load = "ld.relaxed.gpu.u32 %r1, [%rd1]; @%p1 bra M; fence.acq_rel.gpu; M: ret;";
        assert_eq!(
            judged(OpKind::Load, SourceOrder::Acquire, Scope::Gpu, load),
            Some(Weaker)
        );
    }
}
