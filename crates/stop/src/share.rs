//! What one question may use of memory and of the stack, on the thread that answers it.
//!
//! # Invariants
//! - What is spent stays spent until the [`Share`] is dropped: nothing that was cut short is taken
//!   up again for the same question.
//! - A thread without a share is bounded by nothing, and asking costs two loads.
//! - The stack is measured by the addresses of local variables, so to measure it takes no unsafe
//!   code.
//!
//! Memory that other libraries allocate by themselves is not counted here: [`memory_for_all`] says
//! how much they may hold.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a question had too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Memory.
    Memory,
    /// The stack: something calls itself too often.
    Stack,
}

#[derive(Clone, Copy)]
struct Limits {
    /// How much more memory the thread may hold than when the question began.
    memory: Option<usize>,
    /// What it held then.
    held: usize,
    /// How much of the stack may be used.
    stack: usize,
    /// Where the stack was then.
    top: usize,
}

thread_local! {
    static LIMITS: Cell<Option<Limits>> = const { Cell::new(None) };
    static SPENT: Cell<Option<Spent>> = const { Cell::new(None) };
}

/// How many shares there are.
static SHARES: AtomicUsize = AtomicUsize::new(0);

/// A question is being answered on this thread until this is dropped.
#[must_use = "the share ends where this is dropped"]
pub struct Share {
    outer: (Option<Limits>, Option<Spent>),
}

/// Begins a question on this thread: it may hold so much memory, in bytes, and use so much of the
/// stack from here on. Inside another one, that is put off until this one ends.
pub fn share(memory: Option<usize>, stack: usize) -> Share {
    let limits = Limits {
        memory,
        held: streams::held(),
        stack,
        top: here(),
    };
    SHARES.fetch_add(1, Ordering::Relaxed);
    Share {
        outer: (LIMITS.replace(Some(limits)), SPENT.replace(None)),
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        SHARES.fetch_sub(1, Ordering::Relaxed);
        LIMITS.set(self.outer.0);
        SPENT.set(self.outer.1);
    }
}

/// What the question of this thread has spent, if it has. Memory is looked at now.
pub fn spent() -> Option<Spent> {
    is_spent();
    SPENT.get()
}

/// How much memory a library may hold that all questions use and that counts for all of them
/// together: the share of each that is being answered now. `None`: as much as there is.
pub fn memory_for_all() -> Option<usize> {
    let shares = SHARES.load(Ordering::Relaxed).max(1);
    LIMITS
        .get()?
        .memory
        .map(|memory| memory.saturating_mul(shares))
}

/// Whether memory or stack of this thread's question is used up.
pub(crate) fn is_spent() -> bool {
    if SPENT.get().is_some() {
        return true;
    }
    let Some(Limits {
        memory: Some(most),
        held,
        ..
    }) = LIMITS.get()
    else {
        return false;
    };
    // More was freed than allocated where this is negative.
    let more = streams::held().wrapping_sub(held).cast_signed();
    if usize::try_from(more).is_ok_and(|more| more > most) {
        SPENT.set(Some(Spent::Memory));
    }
    SPENT.get().is_some()
}

/// Whether functions that call themselves have to end now: the stack of this thread's question is
/// used up. What they return then means nothing, and [`late`](super::late) holds from here on.
pub fn deep() -> bool {
    let Some(Limits { stack, top, .. }) = LIMITS.get() else {
        return false;
    };
    let deep = top.abs_diff(here()) > stack;
    if deep {
        SPENT.set(Some(Spent::Stack));
    }
    deep
}

/// Where the stack is now, about.
#[inline(always)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(black_box(&local)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls itself until it may not; how often that was.
    fn down(times: usize) -> usize {
        let room = black_box([0_u8; 64]);
        if deep() || times == 1_000_000 {
            times
        } else {
            down(times + 1) + usize::from(room[0])
        }
    }

    #[test]
    fn calls_that_go_down_end_in_time() {
        {
            let _share = share(None, 100_000);
            assert!(!crate::late(None));
            let times = down(0);
            assert!((10..2000).contains(&times), "{times}");
            assert!(crate::late(None), "it stays spent");
            assert_eq!(spent(), Some(Spent::Stack));
            {
                let _inner = share(None, 100_000);
                assert_eq!(spent(), None, "another question has its own");
            }
            assert_eq!(spent(), Some(Spent::Stack));
        }
        assert_eq!((spent(), crate::late(None)), (None, false));
    }
}
