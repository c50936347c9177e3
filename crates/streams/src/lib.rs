//! Holds the unsafe code of the program's start: whether standard output was open, that freed
//! memory is kept, and the allocator that counts the memory of each thread.
//!
//! Before `main`, the standard library opens `/dev/null` in place of a closed standard stream, so
//! that no other file takes its number. Every write then succeeds and is lost, so a user of `>&-`
//! would miss the error. Therefore an initializer of the program checks the stream earlier.
//!
//! # Invariants
//! - The initializer makes one system call and stores one flag; the allocator gets one number.
//! - [`CountingAllocator`] forwards every request unchanged, and only adds up sizes.
//!
//! # Sources
//! - *System V Application Binary Interface*, Dynamic Linking, Initialization and Termination
//!   Functions: `.init_array`; Apple, *Mach-O Runtime Architecture*, `__mod_init_func`.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, Ordering};

use mimalloc::MiMalloc;

/// The allocator of the program: mimalloc, and a count of bytes for each thread.
pub struct CountingAllocator;

// SAFETY: every request goes to mimalloc with the same arguments, and its result comes back
// unchanged. `stop::count` allocates nothing and cannot panic.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        stop::count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        stop::count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        stop::count(0, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, and `at` is mimalloc's.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        stop::count(size, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, and `at` is mimalloc's.
        unsafe { MiMalloc.realloc(at, layout, size) }
    }
}

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed at the start; false on systems without the check.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Makes the allocator keep freed memory for later allocations.
///
/// Relations of a thousand events are large blocks, made and freed by the hundred. By default
/// mimalloc returns them to the system after 10 ms. The system then clears each page anew, which
/// took longer than all other work.
pub fn keep_freed_memory() {
    // mimalloc.h: `mi_option_purge_delay` of `mi_option_t`, and the function that sets it.
    const PURGE_DELAY: c_int = 15;
    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
    }
    // SAFETY: this stores a number in a table of the allocator, which reads it whenever it frees;
    // -1 means "never".
    unsafe { mi_option_set(PURGE_DELAY, -1) };
}

#[cfg(unix)]
extern "C" fn look() {
    // SAFETY: this command reads the flags of a descriptor, open or not, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions of this type, called once before `main`; `look`
// uses nothing that the runtime sets up.
#[cfg(unix)]
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
static LOOK: extern "C" fn() = look;
