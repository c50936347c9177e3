//! Describes the place of a thread in words.

use program::{Program, ThreadId};

/// The host, or block, warp and lane.
pub(super) fn place(program: &Program, thread: usize) -> String {
    let place = &program.threads[thread].place;
    if place.host {
        return "host".into();
    }
    let mut text = format!("block {}", place.cta);
    if let Some(warp) = place.warp {
        text += &format!(
            ", warp {warp}, lane {}",
            program.lane(ThreadId(thread as u16))
        );
    }
    if place.gpu != 0 {
        text += &format!(", GPU {}", place.gpu);
    }
    text
}
