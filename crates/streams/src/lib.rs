//! Whether standard output was open when the program began.
//!
//! Before `main`, the standard library opens `/dev/null` in the place of a standard stream that is closed, so that no other
//! file takes its number. Every write then goes well, and is lost: who asks for a result with `>&-` would be told that all
//! is well. So this is looked up earlier, by an initializer of the program.
//!
//! # Invariants
//! - All unsafe code of this program's own is in here; the initializer makes one system call and stores one flag.
//!
//! # Sources
//! - *System V Application Binary Interface*, Dynamic Linking, Initialization and Termination Functions: `.init_array`;
//!   Apple, *Mach-O Runtime Architecture*, `__mod_init_func`.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed. Where that cannot be looked up, it was not.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(unix)]
extern "C" fn look() {
    // SAFETY: this command reads the flags of a descriptor, open or not, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: what the section holds are pointers to functions of this type, called once before `main`; `look` needs nothing of
// what the runtime sets up.
#[cfg(unix)]
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;
