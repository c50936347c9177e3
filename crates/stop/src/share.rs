//! Limits the memory and the stack of one question, on the thread that answers it.
//!
//! # Invariants
//! - A used-up share stays so until the [`Share`] is dropped: work that was cut short never resumes
//!   for the same question.
//! - A thread without a share has no limit, and a poll costs two loads.
//! - The addresses of local variables measure the stack, which takes no unsafe code.
//!
//! - The program's allocator reports to [`count`]. Without such an allocator, as in another program
//!   that uses this library, memory is not limited.
//!
//! The count excludes memory that other libraries allocate: [`memory_for_all`] gives their limit.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The resource that a question used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Memory.
    Memory,
    /// The stack: functions call themselves too deeply.
    Stack,
}

#[derive(Clone, Copy)]
struct ShareLimits {
    /// How much more memory the thread may hold than when the question began.
    memory: Option<usize>,
    /// The memory that the thread held when the question began.
    held: usize,
    /// How much of the stack may be used.
    stack: usize,
    /// The stack's address when the question began.
    top: usize,
}

thread_local! {
    static LIMITS: Cell<Option<ShareLimits>> = const { Cell::new(None) };
    static SPENT: Cell<Option<Spent>> = const { Cell::new(None) };
}

thread_local! {
    /// Bytes that this thread has allocated, less those that it has freed. It has no destructor, so
    /// an allocator may use it at any time.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Adds an allocation of this thread to its count, and takes off the memory that it freed. It
/// allocates nothing and cannot panic, so an allocator may call it.
#[inline]
pub fn count(allocated: usize, freed: usize) {
    HELD.set(HELD.get().wrapping_add(allocated).wrapping_sub(freed));
}

/// How many bytes this thread has allocated, less those that it has freed. Only differences are
/// meaningful: freeing memory of another thread can make the number wrap.
fn held_now() -> usize {
    HELD.get()
}

/// How many shares exist.
static SHARES: AtomicUsize = AtomicUsize::new(0);

/// Limits the question of this thread until it is dropped.
#[must_use = "the share ends where this is dropped"]
pub struct Share {
    outer: (Option<ShareLimits>, Option<Spent>),
}

/// Begins a question on this thread and sets its limits, in bytes, for memory and for stack from
/// here on. A nested question suspends the outer one until it ends.
pub fn share(memory: Option<usize>, stack: usize) -> Share {
    let limits = ShareLimits {
        memory,
        held: held_now(),
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

/// The resource that this thread's question has used up, if any. Checks the memory now.
pub fn spent() -> Option<Spent> {
    is_spent();
    SPENT.get()
}

/// The memory limit for a library that all questions share: the sum of their shares. `None` means
/// no limit.
pub fn memory_for_all() -> Option<usize> {
    let shares = SHARES.load(Ordering::Relaxed).max(1);
    LIMITS
        .get()?
        .memory
        .map(|memory| memory.saturating_mul(shares))
}

/// Whether this thread's question has used up its memory or stack.
pub(crate) fn is_spent() -> bool {
    if SPENT.get().is_some() {
        return true;
    }
    let Some(ShareLimits {
        memory: Some(most),
        held,
        ..
    }) = LIMITS.get()
    else {
        return false;
    };
    // A negative value means that the thread freed more than it allocated.
    let more = held_now().wrapping_sub(held).cast_signed();
    if usize::try_from(more).is_ok_and(|more| more > most) {
        SPENT.set(Some(Spent::Memory));
    }
    SPENT.get().is_some()
}

/// Whether recursive functions have to return now, because this thread's question has used up its
/// stack. Their results are then meaningless, and [`late`](super::late) holds from here on.
pub fn deep() -> bool {
    let Some(ShareLimits { stack, top, .. }) = LIMITS.get() else {
        return false;
    };
    let deep = top.abs_diff(here()) > stack;
    if deep {
        SPENT.set(Some(Spent::Stack));
    }
    deep
}

/// The approximate address of the stack's top.
#[inline(always)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(black_box(&local)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recurses until [`deep`] stops it; the depth that it reached.
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
