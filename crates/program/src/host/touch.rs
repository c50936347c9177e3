//! Which calls are about the same lane or event, so that it matters which of them comes first.
//!
//! # Sources
//! - OpenCL API specification, *Host environment and thread safety*: calls of several threads come
//!   one after the other.
//! - CUDA driver API, *Stream synchronization behavior*, for streams that take turns with the
//!   legacy default stream.

use std::collections::BTreeSet;

use super::{CallId, HandleKind, HostOp, HostProgram, LaneId, LaneKind, Ref};

/// What a call is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// A stream or queue.
    Lane(LaneId),
    /// The legacy default stream of a device, and all that take turns with it.
    Legacy(u32),
    /// An event that is recorded.
    Handle(super::HandleId),
}

/// The pairs of calls of different threads that are about the same, as they come in an order of all
/// calls; sorted.
pub(super) fn ordered(host: &HostProgram, order: &[CallId]) -> Vec<(CallId, CallId)> {
    let about: Vec<BTreeSet<About>> = order.iter().map(|c| of(host, *c)).collect();
    let mut pairs = Vec::new();
    for (i, &x) in order.iter().enumerate() {
        for (j, &y) in order.iter().enumerate().skip(i + 1) {
            if host.call(x).thread != host.call(y).thread && !about[i].is_disjoint(&about[j]) {
                pairs.push((x, y));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// What whoever is about a lane is about.
pub(super) fn of_lane(host: &HostProgram, id: LaneId) -> impl Iterator<Item = About> + use<> {
    let legacy = match host.lane(id).kind {
        LaneKind::Null | LaneKind::Stream { blocking: true } => {
            Some(About::Legacy(host.lane(id).device))
        }
        _ => None,
    };
    [About::Lane(id)].into_iter().chain(legacy)
}

fn of(host: &HostProgram, call: CallId) -> BTreeSet<About> {
    let lane = |id: LaneId| of_lane(host, id);
    match &host.call(call).op {
        HostOp::Enqueue { command, .. } => host
            .command(*command)
            .lane
            .into_iter()
            .flat_map(lane)
            .collect(),
        HostOp::Finish(l) | HostOp::Flush(l) | HostOp::Release(l) => lane(*l).collect(),
        HostOp::SyncDevice(device) => {
            let all = (0..host.lanes.len() as u16)
                .map(LaneId)
                .filter(|l| host.lane(*l).device == *device);
            all.flat_map(lane).collect()
        }
        HostOp::Record(h, l) | HostOp::LaneWait(l, h) => {
            lane(*l).chain([About::Handle(*h)]).collect()
        }
        HostOp::Wait(refs) => refs
            .iter()
            .filter_map(|r| match r {
                Ref::Handle(h) if host.handle(*h).kind == HandleKind::Recorded => {
                    Some(About::Handle(*h))
                }
                _ => None,
            })
            .collect(),
        HostOp::CreateUser(_) | HostOp::SetUser(_) => BTreeSet::new(),
    }
}
